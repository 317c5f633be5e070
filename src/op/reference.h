// op/reference.h — what the plain references of the heavier ops share: tensors as doubles.
//
// Most of them work in three steps: widen the inputs to doubles, compute on doubles, narrow the
// result to the dtype of the output. That gives one body for all element types, exact integers up
// to 2^53, and sums that are better than those of any kernel they are the oracle of.
#ifndef RONDO_OP_REFERENCE_H
#define RONDO_OP_REFERENCE_H

#include <stdint.h>

#include "base/error.h"
#include "op/op.h"
#include "op/support.h"
#include "rondo/tensor.h"

// A zero-filled array of doubles; count 0 gives a valid address.
//
// Errors:    NO_MEMORY.
// Ownership: free with rondo__free.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__doubles_create(int64_t count, double **out_values);

// The elements of `tensor` as doubles; NULL (and OK) for a NULL tensor.
//
// Errors:    NO_MEMORY.
// Ownership: free with rondo__free.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__widen(const rondo_tensor *tensor, double **out_values);

// Writes one output of a compute, with the dtype and shape that inference gave. An output that
// nobody wants is skipped.
//
// Errors:    as rondo__compute_get_inferred.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__narrow(rondo__compute *compute, size_t output,
                                          const double *values);

// The input, or NULL when it is absent.
static inline const rondo_tensor *rondo__compute_get_input(const rondo__compute *compute,
                                                           size_t input) {
    return rondo__compute_has_input(compute, input) ? compute->inputs[input] : NULL;
}

#endif  // RONDO_OP_REFERENCE_H
