// op/image/convolution.h — the arithmetic of Conv and its relatives on doubles, in [N, C,
// spatial...].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/image/window.h"
#include "op/op.h"

typedef struct rondo__convolution {
    rondo__window window;
    int64_t batch;
    int64_t channels;  // of x
    int64_t filters;   // channels of y
    int64_t group;
    int64_t input_span;   // product of the spatial extents of x
    int64_t output_span;  // of y
    int64_t kernel_span;
    rondo_shape output;  // of y, in the layout asked for
} rondo__convolution;

// Checks shapes and attributes of a convolution.
//
// x          [N, C, spatial...]; with channels_last [N, spatial..., C].
// w          [M, C / group, kernel...].
// Errors:    BAD_DATA, UNSUPPORTED (rank).
RONDO_MUST_USE rondo_status rondo__convolution_init(const rondo__op *op, const rondo_shape *x,
                                                    const rondo_shape *w, bool channels_last,
                                                    rondo__convolution *out_convolution);

// Adds conv(x, w) to y, all as doubles in channels-first layout.
void rondo__convolution_run(const rondo__convolution *convolution, const double *x, const double *w,
                            double *y);

// Checks a transposed convolution; w is [C, M / group, kernel...]. window.input is x,
// window.output is y.
//
// Errors:    BAD_DATA, UNSUPPORTED (rank).
RONDO_MUST_USE rondo_status rondo__convolution_init_transposed(const rondo__op *op,
                                                               const rondo_shape *x,
                                                               const rondo_shape *w,
                                                               rondo__convolution *out_convolution);

// Adds the transposed convolution to y.
void rondo__convolution_run_transposed(const rondo__convolution *convolution, const double *x,
                                       const double *w, double *y);

// Sets each plane of y [N, filters, span] to its filter's bias.
void rondo__convolution_fill_bias(const rondo__convolution *convolution, const double *bias,
                                  double *y);

// Checks an optional bias input of `filters` elements.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__convolution_check_bias(const rondo__op *op,
                                                          const rondo_shape *bias, int64_t filters);

// Copies [batch, rows, columns] to [batch, columns, rows]: from one channel layout to the other.
void rondo__transpose_planes(const double *source, int64_t batch, int64_t rows, int64_t columns,
                             double *target);
