// backend/cuda/driver/cuda_tensor_map.h — tensors as Hopper's tensor memory accelerator sees them.
//
// A kernel takes such a map as 16 words of its arguments, at a multiple of 128 bytes. It copies
// boxes of a matrix, or of images as a convolution's window walks over them, into shared memory,
// where pieces of 16 bytes are permuted by the row as wgmma wants them; what lies outside is zero.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "rondo/export.h"
#include "rondo/status.h"

enum {
    RONDO__TENSOR_MAP_WORDS = 16,
    RONDO__TENSOR_MAP_STEP_MAX = 8,      // of a window
    RONDO__TENSOR_MAP_CORNER_MAX = 127,  // how far a window may begin or end outside of an image
};

// Elements are f16; rows begin at multiples of 16 bytes.
typedef struct rondo__tensor_form {
    bool is_image;       // [n, height, width, channels]; otherwise [rows, columns]
    uint64_t extent[4];  // the innermost first
    uint64_t pitch[3];   // elements from one row to the next; of images by x, y and n
    // Of a box: columns (or channels), of which 16, 32 or 64 are copied, and rows (or pixels).
    uint32_t box_columns, box_rows;
    // Of a window, x first: its step, how far its first position lies before the image, and how far
    // its last one lies behind the position of the image's last pixel (a negative number: before
    // it).
    uint32_t step[2];
    int32_t before[2], behind[2];
} rondo__tensor_form;

// Whether the driver has such maps; the device may have no use for them.
bool rondo__cuda_can_map_tensors(rondo_device *device);

// The map of the tensor at `address`, which is a multiple of 16 bytes.
//
// Errors:    UNSUPPORTED (the driver has no maps), DRIVER.
RONDO_MUST_USE rondo_status rondo__cuda_map_tensor(rondo_device *device,
                                                   const rondo__tensor_form *form, void *address,
                                                   uint64_t out_words[RONDO__TENSOR_MAP_WORDS]);
