// op/image/pooling.h — the arithmetic of sliding pools on doubles, in [planes, spatial...].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/image/window.h"
#include "op/op.h"

typedef struct rondo__pool {
    rondo__window window;
    int64_t batch;
    int64_t channels;
    int64_t input_span;   // product of the spatial extents of x
    int64_t output_span;  // of y
    rondo_shape output;   // of y, in the layout asked for
} rondo__pool;

// Checks shapes and attributes of MaxPool, AveragePool or LpPool.
//
// x          [N, C, spatial...]; with channels_last [N, spatial..., C].
// Errors:    BAD_DATA, UNSUPPORTED (rank).
RONDO_MUST_USE rondo_status rondo__pool_init(const rondo__op *op, const rondo_shape *x,
                                             bool channels_last, rondo__pool *out_pool);

// The maximum of each window, NaN winning. An empty window gives `lowest`.
//
// indices    NULL or where each maximum stands in x, flattened over all of x; with column_major the
//            spatial part counts the first spatial axis fastest.
void rondo__pool_run_max(const rondo__pool *pool, const double *x, double lowest, double *y,
                         int64_t *indices, bool column_major);

// The mean of each window, over the elements inside the input, or over the window as far as it
// reaches into input and padding.
void rondo__pool_run_average(const rondo__pool *pool, const double *x, bool includes_pad,
                             double *y);

// The p-norm of each window.
void rondo__pool_run_norm(const rondo__pool *pool, const double *x, double p, double *y);
