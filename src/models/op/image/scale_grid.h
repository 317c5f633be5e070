// op/image/scale_grid.h — which scale and zero point belong to an element of QuantizeLinear or
// DequantizeLinear.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "op/op.h"

typedef enum rondo__scale_kind {
    RONDO__SCALE_FOR_ALL,
    RONDO__SCALE_PER_PLACE,
    RONDO__SCALE_PER_BLOCK
} rondo__scale_kind;

// x is seen as [outer, length, inner] around the axis.
typedef struct rondo__scale_grid {
    rondo__scale_kind kind;
    int64_t length;
    int64_t inner;
    int64_t block;   // per block: positions of the axis that share a scale ...
    int64_t scales;  // ... and how many scales that leaves; scale is [outer, scales, inner]
} rondo__scale_grid;

// Reads attributes and shapes.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__scale_grid_init(const rondo__op *op, const rondo_shape *x,
                                                   const rondo_shape *scale,
                                                   rondo__scale_grid *out_grid);
