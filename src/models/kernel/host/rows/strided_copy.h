// kernel/host/rows/strided_copy.h — copying elements between two strided layouts, planned once.
//
// Transpose, Slice, Expand, Concat, Split and their like are all this: a box of elements, read at
// one set of strides and written at another. The plan drops axes of extent 1, joins axes that run
// together on both sides, and picks an inner loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/tensor.h"

enum { RONDO__STRIDED_RANK_MAX = RONDO_RANK_MAX };

typedef struct rondo__strided_copy {
    size_t element_bytes;  // 1, 2, 4 or 8
    int32_t rank;          // at least 1
    int64_t extent[RONDO__STRIDED_RANK_MAX];
    int64_t from_stride[RONDO__STRIDED_RANK_MAX];  // elements; 0 repeats, negative reverses
    int64_t to_stride[RONDO__STRIDED_RANK_MAX];
    int64_t from_offset;  // of the first element
    int64_t to_offset;
    bool is_transposed;  // the source is contiguous along the block axis, not along the last one
    int32_t block_axis;  // axis whose rows are copied in blocks; -1: there is only one row
    int64_t block_rows;
    int64_t block_count;  // over all axes but the last one
    double bytes;         // read and written
} rondo__strided_copy;

// Plans a copy. Axes are in the order of the destination, innermost last.
void rondo__strided_copy_init(rondo__strided_copy *copy, size_t element_bytes, int32_t rank,
                              const int64_t *extent, const int64_t *from_stride,
                              int64_t from_offset, const int64_t *to_stride, int64_t to_offset);

// Copies, with the workers' help where that is worth while.
void rondo__strided_copy_run(const rondo__strided_copy *copy, const void *from, void *to);
