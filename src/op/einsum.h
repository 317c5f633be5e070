// op/einsum.h — the two functions of Einsum.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_OP_EINSUM_H
#define RONDO_OP_EINSUM_H

#include "op/op.h"

// Errors:    BAD_DATA (attribute equation), UNSUPPORTED (rank, input count).
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__einsum_infer(rondo__infer *infer);

// Errors:    as rondo__einsum_infer, and NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__einsum_compute(rondo__compute *compute);

#endif  // RONDO_OP_EINSUM_H
