// op/image/window.h — the geometry of convolutions and pools: a window that slides over spatial
// axes.
//
// One function turns kernel_shape, strides, dilations, pads, auto_pad and ceil_mode of an op, plus
// the extents of its input, into explicit numbers, all checked. Inference, references and kernels
// use the same numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

enum { RONDO__SPATIAL_MAX = RONDO_RANK_MAX - 2 };

typedef struct rondo__window {
    int32_t rank;                           // spatial axes, 1 to RONDO__SPATIAL_MAX
    int64_t input[RONDO__SPATIAL_MAX];      // extents
    int64_t kernel[RONDO__SPATIAL_MAX];     // at least 1
    int64_t stride[RONDO__SPATIAL_MAX];     // at least 1
    int64_t dilation[RONDO__SPATIAL_MAX];   // at least 1
    int64_t pad_begin[RONDO__SPATIAL_MAX];  // at least 0
    int64_t pad_end[RONDO__SPATIAL_MAX];    // at least 0
    int64_t output[RONDO__SPATIAL_MAX];     // extents
} rondo__window;

// Fills the window of a convolution or pool.
//
// input      `rank` spatial extents of x.
// kernel     `rank` spatial extents of the weight; NULL: attribute kernel_shape is required.
// Errors:    BAD_DATA (attribute named in the message), UNSUPPORTED (more spatial axes than
//            RONDO__SPATIAL_MAX).
RONDO_MUST_USE rondo_status rondo__window_init(const rondo__op *op, int32_t rank,
                                               const int64_t *input, const int64_t *kernel,
                                               rondo__window *out_window);

// The same for a transposed convolution: attributes output_padding and output_shape count, and
// `output` is what the convolution would have had as its input.
//
// Errors:    as rondo__window_init.
RONDO_MUST_USE rondo_status rondo__window_init_transposed(const rondo__op *op, int32_t rank,
                                                          const int64_t *input,
                                                          const int64_t *kernel,
                                                          rondo__window *out_window);

// Reads an attribute of one positive int per axis (default 1), each at most 2^31 - 1.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__window_read_positive(const rondo__op *op, const char *name,
                                                        int32_t rank, int64_t *out_values);

// The taps [begin, end) of the window at output index `position` on `axis` that fall inside the
// input.
void rondo__window_clip_taps(const rondo__window *window, int32_t axis, int64_t position,
                             int64_t *out_begin, int64_t *out_end);

// The output positions [begin, end) on `axis` whose tap `tap` falls inside the input.
void rondo__window_clip_positions(const rondo__window *window, int32_t axis, int64_t tap,
                                  int64_t *out_begin, int64_t *out_end);

// The part of the window at output index `position` that lies inside the input, along the first
// `axes` axes: where it starts, and how many taps it has.
void rondo__window_clip(const rondo__window *window, int32_t axes, const int64_t *position,
                        int64_t *out_start, int64_t *out_extent);

// Whether a window lies only in the padding.
bool rondo__window_has_empty(const rondo__window *window);

// Counts `index` (of `rank` entries) up by one, last axis fastest; false after the last one.
bool rondo__index_advance(int32_t rank, const int64_t *extents, int64_t *index);
