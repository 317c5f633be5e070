// op/image/sampling.h — reading images at computed positions.
//
// Which elements a position means, how many samples a bin has and whether a position lies outside
// may hang on the last bit. So positions are calculated in the type of the grid or the boxes, each
// step rounded as ONNX Runtime rounds it: f64 for f64, f32 for all others. Compiled without fused
// multiply-adds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/reference.h"

// A product, quotient, sum or difference of two positions, rounded to their type. Doubles have more
// than twice the digits of a float, so rounding twice is rounding once.
static inline double rondo__sample_round(bool is_wide, double place) {
    return is_wide ? place : (double)(float)place;
}

// The planes [N, C, span] of x as [N, span, C], in f64: what all channels do alike stands side by
// side, which is vector code.
double *rondo__sample_turn_planes(rondo__scratch *scratch, const rondo_tensor *x);
