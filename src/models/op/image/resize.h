// op/image/resize.h — what kernels of Resize and Upsample ask of the op: which input elements an
// output position sees on each axis, and how much each of them counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

typedef enum rondo__resize_mode {
    RONDO__RESIZE_NEAREST,
    RONDO__RESIZE_LINEAR,
    RONDO__RESIZE_CUBIC,
} rondo__resize_mode;

// Zeroed before it is filled, so that equal plans have equal bytes.
typedef struct rondo__resize_plan {
    rondo__resize_mode mode;
    int coordinates;  // these two as op_resize.c numbers them
    int rounding;
    bool excludes_outside;
    bool has_antialias;
    double cubic;          // coefficient a
    double extrapolation;  // value outside of the crop
    rondo_shape input;
    rondo_shape output;
    double scale[RONDO_RANK_MAX];
    // The scale as a quotient, where sizes gave it: `parts` / `whole`; 0: the scale was given.
    int64_t parts[RONDO_RANK_MAX];
    int64_t whole[RONDO_RANK_MAX];
    double start[RONDO_RANK_MAX];  // region of interest, 0 to 1
    double end[RONDO_RANK_MAX];
} rondo__resize_plan;

// The taps of an axis: as many for each of its output positions.
typedef struct rondo__resize_taps {
    int64_t count;
    int64_t first;   // the first stands at floor(coordinate) + first
    double stretch;  // of the filter, by antialias
} rondo__resize_taps;

enum { RONDO__RESIZE_INPUT_COUNT = 4 };

// Fills the plan; `values` has the tensors of inputs 1 .. 3 in their places, NULL when absent.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__resize_make_plan(const rondo__op *op, const rondo_shape *x,
                                                    const rondo_tensor *const *values,
                                                    rondo__resize_plan *out_plan);
// Whether the axis keeps its elements where they are.
bool rondo__resize_keeps_axis(const rondo__resize_plan *plan, int32_t axis);
// Errors:    BAD_DATA (a scale that asks for absurdly many).
RONDO_MUST_USE rondo_status rondo__resize_count_taps(const rondo__op *op,
                                                     const rondo__resize_plan *plan, int32_t axis,
                                                     rondo__resize_taps *out_taps);
// The indices and weights, `taps->count` of each, of output position `x`. Weights of taps outside
// the input go to its edge, or to the others when outside is excluded. False when the position lies
// outside of the crop and has the extrapolation value.
bool rondo__resize_find_taps(const rondo__resize_plan *plan, int32_t axis, int64_t x,
                             const rondo__resize_taps *taps, int64_t *indices, double *weights);
