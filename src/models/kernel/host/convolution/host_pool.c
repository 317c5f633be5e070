// kernel/host/convolution/host_pool.c — MaxPool (without places) and AveragePool on f32 in both
// layouts.
//
// A unit of work is one run of neighbouring outputs: all channels of a position where channels are
// last, otherwise a row along the last axis. It takes the maximum or the sum of one run of the
// input for each tap of the window; with channels first, of the rows first, then along them.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/image/pooling.h"

enum {
    TAPS_MAX = 32,      // rows of the input that are joined at once
    ROW_MAX = 1024,     // floats of a row that lies on the stack once its like are joined
    LONG_WINDOW = 1024  // taps from which on sums one by one in f32 lose digits
};

typedef struct pool_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__pool pool;
    bool channels_last;
    bool is_average;
    bool counts_padding;
    int64_t grain;
    int32_t leading;         // spatial axes outside of a run
    int64_t outer_count;     // images, or planes
    int64_t position_count;  // runs of one
    int64_t input_floats;    // of one
    int64_t run;             // outputs of a run
    int64_t row_floats;      // of the input: what a tap of the leading axes takes
    // Where the taps of a window stand, from its first on; 0: too many for a list.
    int64_t tap_count;
    int64_t taps[TAPS_MAX];
    // Channels first: the outputs that a tap along the last axis has a value for, and how many
    // taps the mean of an output along it has.
    int64_t *first, *end;
    float *counts;
    bool is_pairs;
} pool_kernel;

// NaN, if either is.
static inline float get_larger(float a, float b) {
    return a > b || a != a ? a : b;
}

static inline void take_strided(bool is_average, const float *x, int64_t stride, float *y,
                                int64_t count) {
    for (int64_t i = 0; is_average && i < count; ++i) {
        y[i] += x[i * stride];
    }
    for (int64_t i = 0; !is_average && i < count; ++i) {
        y[i] = get_larger(x[i * stride], y[i]);
    }
}

// y[i] = max(y[i], x[i * stride]), or the sum
static void take_row(const pool_kernel *kernel, const float *x, int64_t stride, float *y,
                     int64_t count) {
    if (stride == 1 && kernel->is_average) {
        kernel->simd->accumulate(x, y, count);
        return;
    }
    if (stride == 1) {
        kernel->simd->accumulate_maximum(x, y, count);
        return;
    }
    if (stride == 2) {
        take_strided(kernel->is_average, x, 2, y, count);
    } else {
        take_strided(kernel->is_average, x, stride, y, count);
    }
}

// y = the maximum or the sum over rows; y may be the first.
static void join_rows(const pool_kernel *kernel, const float *const *rows, int64_t row_count,
                      float *y, int64_t count) {
    static const float ones[TAPS_MAX] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    };
    if (kernel->is_average) {
        kernel->simd->sum_of_rows(rows, ones, row_count, y, count);
    } else {
        kernel->simd->maximum_of_rows(rows, row_count, y, count);
    }
}

// Taps of the window at `position` along an axis that the mean is of.
static float count_taps(const pool_kernel *kernel, int32_t axis, int64_t position) {
    const rondo__window *window = &kernel->pool.window;
    int64_t begin, end;
    if (!kernel->counts_padding) {
        rondo__window_clip_taps(window, axis, position, &begin, &end);
        return (float)(end - begin);
    }
    // Padding counts, but not what lies beyond it, where ceil_mode can reach.
    const int64_t room = window->pad_begin[axis] + window->input[axis] + window->pad_end[axis] -
                         position * window->stride[axis];
    const int64_t taps = (room + window->dilation[axis] - 1) / window->dilation[axis];
    return (float)(taps < window->kernel[axis] ? taps : window->kernel[axis]);
}

// Sums to means.
static void divide(const pool_kernel *kernel, const int64_t *position, float *y) {
    float taps = 1.0f;
    for (int32_t i = 0; i < kernel->leading; ++i) {
        taps *= count_taps(kernel, i, position[i]);
    }
    if (kernel->channels_last) {
        kernel->simd->binary_scalar_b[RONDO__SCALAR_Div](y, &taps, y, kernel->run);
        return;
    }
    for (int64_t i = 0; i < kernel->run; ++i) {
        y[i] /= taps * kernel->counts[i];
    }
}

// Windows of two neighbours, side by side and wholly inside; joined with what y has unless these
// are its first.
static void pool_pairs(bool is_average, const float *row, bool is_first, float *y, int64_t count) {
    int32_t nan_count = 0;
    if (is_average) {
        for (int64_t i = 0; i < count; ++i) {
            y[i] = (is_first ? 0.0f : y[i]) + row[2 * i] + row[2 * i + 1];
        }
        return;
    }
    for (int64_t i = 0; is_first && i < count; ++i) {  // loses NaN, and counts them
        const float a = row[2 * i], b = row[2 * i + 1];
        y[i] = a > b ? a : b;
        nan_count += a != a || b != b;
    }
    for (int64_t i = 0; !is_first && i < count; ++i) {
        const float a = row[2 * i], b = row[2 * i + 1];
        const float larger = a > b ? a : b;
        y[i] = larger > y[i] ? larger : y[i];
        nan_count += a != a || b != b;
    }
    for (int64_t i = 0; nan_count > 0 && i < count; ++i) {
        y[i] = get_larger(get_larger(row[2 * i], row[2 * i + 1]), y[i]);
    }
}

// One row of the input, along the last axis, into one row of the output; the first, or another.
static void pool_row(const pool_kernel *kernel, const float *row, bool is_first, float *y) {
    const rondo__window *window = &kernel->pool.window;
    const int32_t last = window->rank - 1;
    if (kernel->is_pairs) {
        pool_pairs(kernel->is_average, row, is_first, y, kernel->run);
        return;
    }
    for (int64_t i = 0; is_first && i < kernel->run; ++i) {
        y[i] = kernel->is_average ? 0.0f : -INFINITY;
    }
    for (int64_t tap = 0; tap < window->kernel[last]; ++tap) {
        const int64_t first = kernel->first[tap];
        if (first < kernel->end[tap]) {
            const int64_t at = first * window->stride[last] + tap * window->dilation[last] -
                               window->pad_begin[last];
            take_row(kernel, row + at, window->stride[last], y + first, kernel->end[tap] - first);
        }
    }
}

// With channels first: rows of the input, of a window its first or others, into one row of the
// output.
static void pool_rows(const pool_kernel *kernel, const float *const *rows, int64_t row_count,
                      bool is_first, float *y) {
    const rondo__window *window = &kernel->pool.window;
    const int64_t width = window->input[window->rank - 1];
    float joined[ROW_MAX];
    if (row_count > 1 && width <= ROW_MAX) {
        join_rows(kernel, rows, row_count, joined, width);
        pool_row(kernel, joined, is_first, y);
        return;
    }
    for (int64_t i = 0; i < row_count; ++i) {
        pool_row(kernel, rows[i], is_first && i == 0, y);
    }
}

// The rows that a window joins, or the last of them.
static void join_window(const pool_kernel *kernel, const float *const *rows, int64_t row_count,
                        bool is_first, float *y) {
    if (kernel->channels_last) {
        join_rows(kernel, rows, row_count, y, kernel->run);
    } else {
        pool_rows(kernel, rows, row_count, is_first, y);
    }
}

// Of a window wholly inside of the input the taps stand where they always do.
static bool pool_inside(const pool_kernel *kernel, const float *x, const int64_t *position,
                        float *y) {
    const rondo__window *window = &kernel->pool.window;
    const float *rows[TAPS_MAX];
    int64_t at = 0;
    for (int32_t i = 0; i < kernel->leading; ++i) {
        const int64_t start = position[i] * window->stride[i] - window->pad_begin[i];
        const int64_t last = start + (window->kernel[i] - 1) * window->dilation[i];
        if (start < 0 || last >= window->input[i]) {
            return false;
        }
        at = at * window->input[i] + start;
    }
    for (int64_t tap = 0; tap < kernel->tap_count; ++tap) {
        rows[tap] = x + at * kernel->row_floats + kernel->taps[tap];
    }
    join_window(kernel, rows, kernel->tap_count, true, y);
    return true;
}

static void pool_run(const pool_kernel *kernel, const float *x, const int64_t *position, float *y) {
    const rondo__window *window = &kernel->pool.window;
    int64_t start[RONDO__SPATIAL_MAX], extent[RONDO__SPATIAL_MAX], tap[RONDO__SPATIAL_MAX] = {0};
    const float *rows[TAPS_MAX];
    int64_t row_count = 0;
    bool is_first = true;
    rondo__window_clip(window, kernel->leading, position, start, extent);
    do {
        int64_t at = 0;
        for (int32_t i = 0; i < kernel->leading; ++i) {
            at = at * window->input[i] + start[i] + tap[i] * window->dilation[i];
        }
        if (row_count == TAPS_MAX && kernel->channels_last) {
            join_rows(kernel, rows, row_count, y, kernel->run);
            rows[0] = y;
            row_count = 1;
        } else if (row_count == TAPS_MAX) {
            pool_rows(kernel, rows, row_count, is_first, y);
            is_first = false;
            row_count = 0;
        }
        rows[row_count++] = x + at * kernel->row_floats;
    } while (rondo__index_advance(kernel->leading, extent, tap));
    join_window(kernel, rows, row_count, is_first, y);
}

typedef struct pool_run_state {
    const pool_kernel *kernel;
    const float *x;
    float *y;
} pool_run_state;

static void pool_units(void *data, int64_t first, int64_t end) {
    const pool_run_state *run = data;
    const pool_kernel *kernel = run->kernel;
    const int64_t *output = kernel->pool.window.output;
    int64_t position[RONDO__SPATIAL_MAX] = {0};
    int64_t rest = first % kernel->position_count;
    const float *x = run->x + first / kernel->position_count * kernel->input_floats;
    for (int32_t i = kernel->leading - 1; i >= 0; --i) {
        position[i] = rest % output[i];
        rest /= output[i];
    }
    for (int64_t unit = first; unit < end; ++unit) {
        float *y = run->y + unit * kernel->run;
        if (kernel->tap_count == 0 || !pool_inside(kernel, x, position, y)) {
            pool_run(kernel, x, position, y);
        }
        if (kernel->is_average) {
            divide(kernel, position, y);
        }
        if (!rondo__index_advance(kernel->leading, output, position)) {
            x += kernel->input_floats;  // the next image or plane
        }
    }
}

static rondo_status run_pool(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    (void)workspace;
    const pool_kernel *kernel = (const pool_kernel *)head;
    pool_run_state run = {kernel, inputs[0], outputs[0]};
    rondo__workers_loop(kernel->outer_count * kernel->position_count, kernel->grain, pool_units,
                        &run);
    return RONDO_STATUS_OK;
}

static void list_taps(pool_kernel *kernel, double tap_count) {
    const rondo__window *window = &kernel->pool.window;
    int64_t tap[RONDO__SPATIAL_MAX] = {0};
    if (tap_count > TAPS_MAX) {
        return;
    }
    do {
        int64_t at = 0;
        for (int32_t i = 0; i < kernel->leading; ++i) {
            at = at * window->input[i] + tap[i] * window->dilation[i];
        }
        kernel->taps[kernel->tap_count++] = at * kernel->row_floats;
    } while (rondo__index_advance(kernel->leading, window->kernel, tap));
}

// What is the same for all rows along the last axis.
static rondo_status describe_rows(pool_kernel *kernel) {
    const rondo__window *window = &kernel->pool.window;
    const int32_t last = window->rank - 1;
    const size_t taps = (size_t)window->kernel[last], run = (size_t)kernel->run;
    if (kernel->channels_last) {
        return RONDO_STATUS_OK;
    }
    kernel->first = rondo__calloc(2 * taps + 1, sizeof *kernel->first);
    kernel->counts = rondo__calloc(run + 1, sizeof *kernel->counts);
    if (kernel->first == NULL || kernel->counts == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->end = kernel->first + taps;
    for (size_t tap = 0; tap < taps; ++tap) {
        rondo__window_clip_positions(window, last, (int64_t)tap, &kernel->first[tap],
                                     &kernel->end[tap]);
    }
    for (size_t i = 0; i < run; ++i) {
        kernel->counts[i] = count_taps(kernel, last, (int64_t)i);
    }
    kernel->is_pairs = taps == 2 && window->stride[last] == 2 && window->dilation[last] == 1 &&
                       window->pad_begin[last] == 0 && kernel->end[1] == kernel->run;
    return RONDO_STATUS_OK;
}

static void deinit_pool(rondo__host_kernel *head) {
    rondo__free(((pool_kernel *)head)->first);
    rondo__free(((pool_kernel *)head)->counts);
}

static void init_kernel(const rondo__pool *pool, bool channels_last, double taps,
                        pool_kernel *kernel) {
    const rondo__window *window = &pool->window;
    kernel->simd = rondo__simd_get();
    kernel->pool = *pool;
    kernel->channels_last = channels_last;
    kernel->leading = window->rank - (channels_last ? 0 : 1);
    kernel->outer_count = channels_last ? pool->batch : pool->batch * pool->channels;
    kernel->input_floats = channels_last ? pool->input_span * pool->channels : pool->input_span;
    kernel->run = channels_last ? pool->channels : window->output[window->rank - 1];
    kernel->row_floats = channels_last ? pool->channels : window->input[window->rank - 1];
    kernel->position_count = channels_last ? pool->output_span : pool->output_span / kernel->run;
    list_taps(kernel, taps);
    kernel->grain = rondo__host_get_grain(
        kernel->outer_count * kernel->position_count,
        taps * (double)rondo_shape_get_count(&pool->output) * sizeof(float), 0.0);
}

static rondo_status prepare_pool(const rondo__kernel_request *request, bool is_average,
                                 rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *x = &request->inputs[0].shape;
    const bool channels_last = rondo__op_get_int(op, "channels_last", 0) != 0;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || x->rank < 3) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(op, x, channels_last, &pool));
    double taps = 1.0;
    for (int32_t i = 0; i < pool.window.rank; ++i) {
        taps *= (double)pool.window.kernel[i];
    }
    // The reference decides the value of a window that lies only in the padding.
    if (rondo__window_has_empty(&pool.window) || (is_average && taps > LONG_WINDOW)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(pool_kernel), "simd", run_pool, deinit_pool);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    pool_kernel *kernel = (pool_kernel *)head;
    kernel->is_average = is_average;
    kernel->counts_padding = rondo__op_get_int(op, "count_include_pad", 0) != 0;
    init_kernel(&pool, channels_last, taps, kernel);
    *out_kernel = &head->base;
    const rondo_status status = describe_rows(kernel);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        *out_kernel = NULL;
    }
    return status;
}

rondo_status rondo__host_prepare_max_pool(const rondo__kernel_request *request,
                                          rondo__kernel **out_kernel) {
    const bool wants_indices =
        request->output_count > 1 && request->outputs[1].dtype != RONDO_DTYPE_NONE;
    if (wants_indices) {
        return rondo__host_prepare_pool_places(request, out_kernel);
    }
    return request->inputs[0].dtype == RONDO_DTYPE_F32
               ? prepare_pool(request, false, out_kernel)
               : rondo__host_prepare_byte_pool(request, out_kernel);
}

rondo_status rondo__host_prepare_average_pool(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel) {
    return prepare_pool(request, true, out_kernel);
}
