// op/fused/rotate.h — rondo.Rotate with attribute heads; see op/fused/fused.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "op/op.h"

enum { RONDO__ROTATE_PARTS_MOST = 3 };

// rondo.Rotate with attribute heads.
typedef struct rondo__rotate_heads {
    size_t count;  // of outputs
    int64_t heads[RONDO__ROTATE_PARTS_MOST];
    int64_t all, width;  // heads, and columns of each
    int64_t turned;      // outputs
} rondo__rotate_heads;

// Errors:    BAD_DATA (shapes that do not fit).
RONDO_MUST_USE rondo_status rondo__rotate_read_heads(const rondo__op *op, const rondo_shape *x,
                                                     const rondo_shape *cosines,
                                                     const rondo_shape *sines, size_t output_count,
                                                     rondo__rotate_heads *out_heads);
