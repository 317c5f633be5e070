// op/image/pooling.c — see pooling.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/image/pooling.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/reference.h"

rondo_status rondo__pool_init(const rondo__op *op, const rondo_shape *x, bool channels_last,
                              rondo__pool *out_pool) {
    memset(out_pool, 0, sizeof *out_pool);
    rondo__pool *pool = out_pool;
    if (x->rank < 3) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input X has rank %d, at least 3 is needed", x->rank);
    }
    const int32_t first = channels_last ? 1 : 2;
    RETURN_IF_ERROR(rondo__window_init(op, x->rank - 2, x->extent + first, NULL, &pool->window));
    pool->batch = x->extent[0];
    pool->channels = x->extent[channels_last ? x->rank - 1 : 1];
    pool->input_span = rondo__shape_multiply(x, first, first + x->rank - 2);
    pool->output_span = 1;
    pool->output = *x;
    for (int32_t i = 0; i < pool->window.rank; i++) {
        pool->output.extent[first + i] = pool->window.output[i];
        if (!rondo__mul_i64(pool->output_span, pool->window.output[i], &pool->output_span)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "the product of extents overflows");
        }
    }
    if (rondo_shape_get_count(&pool->output) < 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "the output has too many elements");
    }
    return RONDO_STATUS_OK;
}

// The part of one window that lies inside the input, as taps.
typedef struct tap_box {
    int64_t begin[RONDO__SPATIAL_MAX];
    int64_t extent[RONDO__SPATIAL_MAX];
    int64_t count;
} tap_box;

static void find_box(const rondo__window *window, const int64_t *position, tap_box *box) {
    box->count = 1;
    for (int32_t i = 0; i < window->rank; i++) {
        int64_t end;
        rondo__window_clip_taps(window, i, position[i], &box->begin[i], &end);
        box->extent[i] = end - box->begin[i];
        box->count *= box->extent[i];
    }
}

// Where tap `begin + offset` of the window at `position` stands within its plane.
static int64_t get_offset(const rondo__window *window, const int64_t *position, const tap_box *box,
                          const int64_t *offset) {
    int64_t at = 0;
    for (int32_t i = 0; i < window->rank; i++) {
        at = at * window->input[i] + position[i] * window->stride[i] - window->pad_begin[i] +
             (box->begin[i] + offset[i]) * window->dilation[i];
    }
    return at;
}

static int64_t to_column_major(const rondo__window *window, int64_t at) {
    int64_t index[RONDO__SPATIAL_MAX];
    for (int32_t i = window->rank - 1; i >= 0; i--) {
        index[i] = at % window->input[i];
        at /= window->input[i];
    }
    int64_t result = 0;
    for (int32_t i = window->rank - 1; i >= 0; i--) {
        result = result * window->input[i] + index[i];
    }
    return result;
}

void rondo__pool_run_max(const rondo__pool *pool, const double *x, double lowest, double *y,
                         int64_t *indices, bool column_major) {
    const rondo__window *window = &pool->window;
    if (pool->output_span == 0) {
        return;
    }
    for (int64_t plane = 0; plane < pool->batch * pool->channels; plane++) {
        const double *source = x + plane * pool->input_span;
        int64_t position[RONDO__SPATIAL_MAX] = {0};
        do {
            tap_box box;
            find_box(window, position, &box);
            double best = lowest;
            int64_t best_at = -1;
            int64_t offset[RONDO__SPATIAL_MAX] = {0};
            if (box.count > 0) {
                do {
                    const int64_t at = get_offset(window, position, &box, offset);
                    if (best_at < 0 || source[at] > best || (isnan(source[at]) && !isnan(best))) {
                        best = source[at];
                        best_at = at;
                    }
                } while (rondo__index_advance(window->rank, box.extent, offset));
            }
            *y++ = best;
            if (indices != NULL) {
                const int64_t at = best_at < 0    ? 0
                                   : column_major ? to_column_major(window, best_at)
                                                  : best_at;
                *indices++ = plane * pool->input_span + at;
            }
        } while (rondo__index_advance(window->rank, window->output, position));
    }
}

void rondo__pool_run_average(const rondo__pool *pool, const double *x, bool includes_pad,
                             double *y) {
    const rondo__window *window = &pool->window;
    if (pool->output_span == 0) {
        return;
    }
    for (int64_t plane = 0; plane < pool->batch * pool->channels; plane++) {
        const double *source = x + plane * pool->input_span;
        int64_t position[RONDO__SPATIAL_MAX] = {0};
        do {
            tap_box box;
            find_box(window, position, &box);
            double count = (double)box.count;
            if (includes_pad) {
                // Padding counts, but not what lies beyond it (ceil_mode can reach there).
                count = 1.0;
                for (int32_t i = 0; i < window->rank; i++) {
                    const int64_t start = position[i] * window->stride[i];
                    const int64_t room =
                        window->pad_begin[i] + window->input[i] + window->pad_end[i] - start;
                    const int64_t taps = (room + window->dilation[i] - 1) / window->dilation[i];
                    count *= (double)(taps < window->kernel[i] ? taps : window->kernel[i]);
                }
            }
            double sum = 0.0;
            int64_t offset[RONDO__SPATIAL_MAX] = {0};
            if (box.count > 0) {
                do {
                    sum += source[get_offset(window, position, &box, offset)];
                } while (rondo__index_advance(window->rank, box.extent, offset));
            }
            *y++ = count > 0.0 ? sum / count : 0.0;
        } while (rondo__index_advance(window->rank, window->output, position));
    }
}

void rondo__pool_run_norm(const rondo__pool *pool, const double *x, double p, double *y) {
    const rondo__window *window = &pool->window;
    if (pool->output_span == 0) {
        return;
    }
    for (int64_t plane = 0; plane < pool->batch * pool->channels; plane++) {
        const double *source = x + plane * pool->input_span;
        int64_t position[RONDO__SPATIAL_MAX] = {0};
        do {
            tap_box box;
            find_box(window, position, &box);
            double sum = 0.0;
            int64_t offset[RONDO__SPATIAL_MAX] = {0};
            if (box.count > 0) {
                do {
                    const double value = source[get_offset(window, position, &box, offset)];
                    sum += pow(fabs(value), p);
                } while (rondo__index_advance(window->rank, box.extent, offset));
            }
            *y++ = pow(sum, 1.0 / p);
        } while (rondo__index_advance(window->rank, window->output, position));
    }
}
