// kernel/host/convolution/host_pool_places.c — MaxPool of f32 images with the places of the maxima,
// as the gradient of a pool reads them. A unit of work is one plane.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "op/image/pooling.h"

typedef struct places_kernel {
    rondo__host_kernel head;
    rondo__pool pool;
    int64_t grain;
} places_kernel;

typedef struct places_run {
    const places_kernel *kernel;
    const float *x;
    float *y;  // NULL: nobody reads the maxima
    int64_t *places;
} places_run;

// Taps of a window that lie inside, and where the first of all would stand.
typedef struct taps {
    int64_t start, begin, end;
} taps;

// As rondo__window_clip_taps; most windows are inside, which is seen without a division.
static taps clip(const rondo__window *w, int32_t axis, int64_t position) {
    taps t = {.start = position * w->stride[axis] - w->pad_begin[axis], .end = w->kernel[axis]};
    if (t.start < 0 || t.start + (t.end - 1) * w->dilation[axis] >= w->input[axis]) {
        rondo__window_clip_taps(w, axis, position, &t.begin, &t.end);
    }
    return t;
}

// The first of the largest, NaN winning, of a window.
static int64_t find_place(const rondo__window *w, const float *plane, taps rows, taps columns) {
    int64_t best_at = -1;
    float best = -INFINITY;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
        const int64_t line = (rows.start + i * w->dilation[0]) * w->input[1] + columns.start;
        for (int64_t j = columns.begin; j < columns.end; ++j) {
            const int64_t at = line + j * w->dilation[1];
            const float value = plane[at];
            if (best_at < 0 || value > best || (value != value && best == best)) {
                best = value;
                best_at = at;
            }
        }
    }
    return best_at;
}

enum { COLUMNS = 64 };  // of windows at a time

// The same of `count` windows that lie inside, side by side: without a branch for each tap, since
// which one is the largest cannot be foreseen.
static void find_places(const rondo__window *w, const float *plane, int64_t first, int64_t count,
                        float *y, int64_t *places, int64_t base) {
    const int64_t step = w->stride[1];
    float best[COLUMNS];
    int32_t at[COLUMNS];
    for (int64_t c = 0; c < count; ++c) {
        best[c] = plane[first + c * step];
        at[c] = (int32_t)(first + c * step);
    }
    for (int64_t i = 0; i < w->kernel[0]; ++i) {
        for (int64_t j = i == 0 ? 1 : 0; j < w->kernel[1]; ++j) {
            const int64_t line = first + i * w->dilation[0] * w->input[1] + j * w->dilation[1];
            for (int64_t c = 0; c < count; ++c) {
                const float value = plane[line + c * step], held = best[c];
                const bool is_larger = (value > held) | ((value != value) & (held == held));
                best[c] = is_larger ? value : held;
                at[c] = is_larger ? (int32_t)(line + c * step) : at[c];
            }
        }
    }
    for (int64_t c = 0; c < count && y != NULL; ++c) {
        y[c] = best[c];
    }
    for (int64_t c = 0; c < count; ++c) {
        places[c] = base + at[c];
    }
}

// The windows of a row from `column` on that lie inside, at most COLUMNS.
static int64_t count_inside(const rondo__window *w, taps rows, int64_t column) {
    const int64_t start = column * w->stride[1] - w->pad_begin[1];
    const int64_t room = w->input[1] - (w->kernel[1] - 1) * w->dilation[1] - 1 - start;
    if (rows.begin != 0 || rows.end != w->kernel[0] || start < 0 || room < 0) {
        return 0;
    }
    const int64_t inside = room / w->stride[1] + 1, left = w->output[1] - column;
    const int64_t count = inside < left ? inside : left;
    return count < COLUMNS ? count : COLUMNS;
}

static void pool_planes(void *data, int64_t first, int64_t end) {
    const places_run *run = data;
    const rondo__pool *pool = &run->kernel->pool;
    for (int64_t plane = first; plane < end; ++plane) {
        const float *x = run->x + plane * pool->input_span;
        int64_t to = plane * pool->output_span;
        for (int64_t row = 0; row < pool->window.output[0]; ++row) {
            const taps rows = clip(&pool->window, 0, row);
            for (int64_t column = 0; column < pool->window.output[1]; ++column, ++to) {
                const int64_t count = count_inside(&pool->window, rows, column);
                if (count > 1) {
                    find_places(&pool->window, x,
                                rows.start * pool->window.input[1] +
                                    column * pool->window.stride[1] - pool->window.pad_begin[1],
                                count, run->y != NULL ? run->y + to : NULL, run->places + to,
                                plane * pool->input_span);
                    column += count - 1;
                    to += count - 1;
                    continue;
                }
                const taps columns = clip(&pool->window, 1, column);
                const int64_t at = find_place(&pool->window, x, rows, columns);
                if (run->y != NULL) {
                    run->y[to] = at < 0 ? -INFINITY : x[at];
                }
                run->places[to] = plane * pool->input_span + (at < 0 ? 0 : at);
            }
        }
    }
}

static rondo_status run_places(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const places_kernel *kernel = (const places_kernel *)head;
    places_run run = {kernel, inputs[0], outputs[0], outputs[1]};
    rondo__workers_loop(kernel->pool.batch * kernel->pool.channels, kernel->grain, pool_planes,
                        &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_pool_places(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || x->rank != 4 || request->output_count != 2 ||
        request->outputs[1].dtype == RONDO_DTYPE_NONE ||
        rondo__op_get_int(request->op, "storage_order", 0) != 0 ||
        x->extent[2] * x->extent[3] > INT32_MAX) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(places_kernel), "simd", run_places, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    places_kernel *kernel = (places_kernel *)head;
    const rondo_status status = rondo__pool_init(request->op, x, false, &kernel->pool);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    const rondo__window *w = &kernel->pool.window;
    const double reads =
        (double)rondo_shape_get_count(&kernel->pool.output) * (double)(w->kernel[0] * w->kernel[1]);
    kernel->grain = rondo__host_get_grain(kernel->pool.batch * kernel->pool.channels,
                                          reads * 4.0 * sizeof(float), 0.0);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
