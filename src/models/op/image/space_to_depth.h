// op/image/space_to_depth.h — rondo.SpaceToDepth in numbers: an image in which blocks of pixels are
// the pixels, and their elements the channels.
//
//   x   [N, C, H, W], or with channels_last [N, H, W, C]
//   y   [N, rows, columns, channels]:
//       y[n, r, q, (c * block_y + i) * block_x + j] =
//           x[n, c, r * block_y + i - before_y, q * block_x + j - before_x]
//
// and 0 where that is outside of the image, and in channels that are left over. ONNX's op of this
// name has neither pads nor channels to spare, and keeps the layout.
//
//   block, before, extent   two ints each, of y and x; extent: rows and columns
//   channels                at least C * block_y * block_x
//   channels_last           of x
//   to                      ONNX's number of y's type, f32 or f16
//   saturate                1: finite numbers stay finite
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

enum { RONDO__SPACE_AXES = 2 };  // y, then x

typedef struct rondo__space_to_depth {
    int64_t batch, depth;  // depth: channels of x
    int64_t image[RONDO__SPACE_AXES];
    int64_t block[RONDO__SPACE_AXES];
    int64_t before[RONDO__SPACE_AXES];  // rows and columns of zeros in front of the image
    bool is_last, saturates;
    // Strides of x, in elements.
    int64_t image_stride, channel_stride, pixel_stride[RONDO__SPACE_AXES];
    rondo_dtype dtype;  // of y
    rondo_shape output;
} rondo__space_to_depth;

// Reads the attributes and x's shape.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__space_to_depth_init(const rondo__op *op, const rondo_shape *x,
                                                       rondo__space_to_depth *out_form);
