// op/arrange/slice.h — which elements a Slice or a part of a Split reads; for their inference,
// references and all kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "op/op.h"

enum { RONDO__SLICE_LISTS = 4 };  // starts, ends, axes, steps

typedef struct rondo__slice {
    rondo_shape shape;               // of the output
    int64_t offset;                  // of its first element in x
    int64_t stride[RONDO_RANK_MAX];  // from one output element to the next, counted in x
} rondo__slice;

// Reads and clamps the bounds. Nothing overflows, whatever they are: a step is only used where two
// elements are that far apart.
//
// lists      starts, ends, axes and steps, NULL where absent; before opset 10 attributes are read
//            instead.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__slice_init(const rondo__op *op, const rondo_shape *x,
                                              const rondo_tensor *const lists[RONDO__SLICE_LISTS],
                                              rondo__slice *out_slice);

// The same from inputs as a kernel request has them.
//
// Errors:    BAD_DATA; UNSUPPORTED without a record when a bound is not known.
RONDO_MUST_USE rondo_status rondo__slice_init_known(const rondo__op *op,
                                                    const rondo__tensor_info *inputs,
                                                    size_t input_count, rondo__slice *out_slice);

// The extent of part `index` of a Split along its axis, also of one that nothing reads, from inputs
// as a kernel request has them.
//
// Errors:    BAD_DATA; UNSUPPORTED without a record when the sizes are not known.
RONDO_MUST_USE rondo_status rondo__split_find_extent(const rondo__op *op,
                                                     const rondo__tensor_info *inputs,
                                                     size_t input_count, size_t output_count,
                                                     size_t index, int64_t *out_extent);
