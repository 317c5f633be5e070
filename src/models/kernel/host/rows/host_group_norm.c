// kernel/host/rows/host_group_norm.c — InstanceNormalization, GroupNormalization and their fused
// form on f32, in both layouts.
//
// Channels first, a group of an image is one run of memory. Channels last, an image is rows of
// `columns` numbers: of as many pixels side by side as make a row worth a call. All passes go over
// such rows: sums by column, squares around the means, results. Column j has channel j % channels.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/math/group_norm.h"
#include "op/support.h"

enum {
    COLUMNS = 1024,        // of a row, unless there are more channels
    SUM_ROWS = 64,         // added up in f32; longer sums are of such blocks, in double
    PARTS_MAX = 16,        // of an image, for as many threads
    PART_FLOATS = 1 << 14  // at least
};

typedef struct group_norm_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__group_norm norm;
    rondo__activation activation;
    float alpha, beta;
    int64_t grain;  // rows, or parts of an image, that are worth a thread
    // Channels last:
    int64_t columns, part_count, part_floats;
} group_norm_kernel;

// Where the workspace of channels last has what.
typedef struct workspace {
    double *totals, *squares;              // [part, columns]
    double *mean, *variance;               // [groups]
    float *block, *block_squares;          // [part, columns]
    float *center, *rest, *scale, *shift;  // [columns]; the mean is center + rest
} workspace;

static workspace lay_out(const group_norm_kernel *kernel, void *memory) {
    const int64_t all = kernel->part_count * kernel->columns;
    workspace w = {.totals = memory};
    w.squares = w.totals + all;
    w.mean = w.squares + all;
    w.variance = w.mean + kernel->norm.groups;
    w.block = (float *)(w.variance + kernel->norm.groups);
    w.block_squares = w.block + all;
    w.center = w.block_squares + all;
    w.rest = w.center + kernel->columns;
    w.scale = w.rest + kernel->columns;
    w.shift = w.scale + kernel->columns;
    return w;
}

static size_t get_workspace_bytes(const group_norm_kernel *kernel) {
    const size_t all = (size_t)(kernel->part_count * kernel->columns);
    const size_t doubles = 2 * all + 2 * (size_t)kernel->norm.groups;
    return doubles * sizeof(double) + (2 * all + 4 * (size_t)kernel->columns) * sizeof(float);
}

static float find_scale(const group_norm_kernel *kernel, double variance) {
    return (float)(1.0 / sqrt(variance + kernel->norm.epsilon));
}

// ---- channels first ---------------------------------------------------------------------------

static void normalize_group(const group_norm_kernel *kernel, int64_t row, const float *x,
                            const float *gain, const float *shift, float *y) {
    const rondo__group_norm *norm = &kernel->norm;
    const int64_t channels = norm->channels / norm->groups, group = row % norm->groups;
    const int64_t length = channels * norm->span;
    const double center = kernel->simd->sum(x, length) / (double)length;
    double rest, squares;
    kernel->simd->moments(x, length, (float)center, &rest, &squares);
    rest /= (double)length;
    const float scale = find_scale(kernel, squares / (double)length - rest * rest);
    const float left_over = isfinite(rest) ? (float)rest : 0.0f;
    for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = norm->is_by_group ? group : group * channels + c;
        kernel->simd->center_scale(x + c * norm->span, y + c * norm->span, norm->span,
                                   (float)center, left_over, scale * gain[at], shift[at]);
    }
    rondo__simd_activate(kernel->simd, kernel->activation, kernel->alpha, kernel->beta, y, length);
}

typedef struct norm_run {
    const group_norm_kernel *kernel;
    const float *x, *gain, *shift;
    float *y;
    const workspace *w;
    bool is_centered;
} norm_run;

static void normalize_groups(void *data, int64_t first, int64_t end) {
    const norm_run *run = data;
    const rondo__group_norm *norm = &run->kernel->norm;
    const int64_t length = norm->channels / norm->groups * norm->span;
    for (int64_t row = first; row < end; ++row) {
        normalize_group(run->kernel, row, run->x + row * length, run->gain, run->shift,
                        run->y + row * length);
    }
}

static rondo_status run_first(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *memory) {
    (void)memory;
    const group_norm_kernel *kernel = (const group_norm_kernel *)head;
    norm_run run = {
        .kernel = kernel, .x = inputs[0], .gain = inputs[1], .shift = inputs[2], .y = outputs[0]};
    rondo__workers_loop(kernel->norm.batch * kernel->norm.groups, kernel->grain, normalize_groups,
                        &run);
    return RONDO_STATUS_OK;
}

// ---- channels last ----------------------------------------------------------------------------

// The sums of each column of the part, or, around the centers, those of the distances from them and
// of their squares.
static void sum_part(const group_norm_kernel *kernel, const workspace *w, int64_t part,
                     const float *x, bool is_centered) {
    const int64_t columns = kernel->columns, at = part * columns;
    const int64_t all = kernel->norm.span * kernel->norm.channels;
    const int64_t begin = part * kernel->part_floats;
    const int64_t end = begin + kernel->part_floats < all ? begin + kernel->part_floats : all;
    const size_t bytes = (size_t)columns * sizeof(float);
    memset(w->totals + at, 0, 2 * bytes);
    memset(w->squares + at, 0, 2 * bytes);
    for (int64_t first = begin; first < end; first += SUM_ROWS * columns) {
        memset(w->block + at, 0, bytes);
        memset(w->block_squares + at, 0, bytes);
        for (int64_t i = first; i < end && i < first + SUM_ROWS * columns; i += columns) {
            const int64_t count = end - i < columns ? end - i : columns;
            if (is_centered) {
                kernel->simd->accumulate_moments(x + i, w->center, w->block + at,
                                                 w->block_squares + at, count);
            } else {
                kernel->simd->accumulate(x + i, w->block + at, count);
            }
        }
        for (int64_t j = at; j < at + columns; ++j) {
            w->totals[j] += (double)w->block[j];
            w->squares[j] += (double)w->block_squares[j];
        }
    }
}

// Means of all groups, out of sums by part and column.
static void average(const group_norm_kernel *kernel, const double *sums, double *out_means) {
    const rondo__group_norm *norm = &kernel->norm;
    const int64_t channels = norm->channels / norm->groups;
    const int64_t pixels = kernel->part_count * kernel->columns / norm->channels;
    memset(out_means, 0, (size_t)norm->groups * sizeof *out_means);
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        for (int64_t g = 0; g < norm->groups; ++g) {
            for (int64_t c = 0; c < channels; ++c) {
                out_means[g] += *sums++;
            }
        }
    }
    for (int64_t g = 0; g < norm->groups; ++g) {
        out_means[g] /= (double)(channels * norm->span);
    }
}

// What the first pixel of a row has, for the others.
static void repeat(const group_norm_kernel *kernel, float *columns) {
    for (int64_t done = kernel->norm.channels; done < kernel->columns;) {
        const int64_t rest = kernel->columns - done, count = done < rest ? done : rest;
        memcpy(columns + done, columns, (size_t)count * sizeof *columns);
        done += count;
    }
}

static void set_centers(const group_norm_kernel *kernel, const workspace *w) {
    const int64_t channels = kernel->norm.channels / kernel->norm.groups;
    average(kernel, w->totals, w->mean);
    for (int64_t g = 0; g < kernel->norm.groups; ++g) {
        for (int64_t c = g * channels; c < (g + 1) * channels; ++c) {
            w->center[c] = (float)w->mean[g];
        }
    }
    repeat(kernel, w->center);
}

static void set_scales(const group_norm_kernel *kernel, const workspace *w, const float *gain,
                       const float *shift) {
    const int64_t channels = kernel->norm.channels / kernel->norm.groups;
    average(kernel, w->totals, w->mean);  // beside the centers
    average(kernel, w->squares, w->variance);
    for (int64_t g = 0; g < kernel->norm.groups; ++g) {
        const double rest = w->mean[g];
        const float scale = find_scale(kernel, w->variance[g] - rest * rest);
        for (int64_t c = g * channels; c < (g + 1) * channels; ++c) {
            w->scale[c] = scale * gain[c];
            w->rest[c] = (float)rest;
            w->shift[c] = shift[c];
        }
    }
    repeat(kernel, w->rest);
    repeat(kernel, w->scale);
    repeat(kernel, w->shift);
}

static void write_part(const group_norm_kernel *kernel, const workspace *w, int64_t part,
                       const float *x, float *y) {
    const int64_t all = kernel->norm.span * kernel->norm.channels;
    const int64_t begin = part * kernel->part_floats;
    const int64_t end = begin + kernel->part_floats < all ? begin + kernel->part_floats : all;
    for (int64_t i = begin; i < end; i += kernel->columns) {
        const int64_t count = end - i < kernel->columns ? end - i : kernel->columns;
        kernel->simd->scale_shift(x + i, w->center, w->rest, w->scale, w->shift, y + i, count);
        rondo__simd_activate(kernel->simd, kernel->activation, kernel->alpha, kernel->beta, y + i,
                             count);
    }
}

static void sum_parts(void *data, int64_t first, int64_t end) {
    const norm_run *run = data;
    for (int64_t part = first; part < end; ++part) {
        sum_part(run->kernel, run->w, part, run->x, run->is_centered);
    }
}

static void write_parts(void *data, int64_t first, int64_t end) {
    const norm_run *run = data;
    for (int64_t part = first; part < end; ++part) {
        write_part(run->kernel, run->w, part, run->x, run->y);
    }
}

static rondo_status run_last(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *memory) {
    const group_norm_kernel *kernel = (const group_norm_kernel *)head;
    const workspace w = lay_out(kernel, memory);
    const int64_t parts = kernel->part_count;
    for (int64_t image = 0; image < kernel->norm.batch; ++image) {
        const int64_t first = image * kernel->norm.span * kernel->norm.channels;
        norm_run run = {.kernel = kernel,
                        .x = (const float *)inputs[0] + first,
                        .y = (float *)outputs[0] + first,
                        .w = &w};
        rondo__workers_loop(parts, kernel->grain, sum_parts, &run);
        set_centers(kernel, &w);
        run.is_centered = true;
        rondo__workers_loop(parts, kernel->grain, sum_parts, &run);
        set_scales(kernel, &w, inputs[1], inputs[2]);
        rondo__workers_loop(parts, kernel->grain, write_parts, &run);
    }
    return RONDO_STATUS_OK;
}

// Parts are whole rows, the same ones whatever number of threads there is.
static void choose_parts(group_norm_kernel *kernel) {
    const rondo__group_norm *norm = &kernel->norm;
    const int64_t all = norm->span * norm->channels;
    const int64_t pixels = COLUMNS / norm->channels;
    kernel->columns = norm->channels * (pixels < 1 ? 1 : pixels < norm->span ? pixels : norm->span);
    const int64_t rows = (all + kernel->columns - 1) / kernel->columns;
    int64_t part_rows = (rows + PARTS_MAX - 1) / PARTS_MAX;
    while (part_rows < rows && part_rows * kernel->columns < PART_FLOATS) {
        part_rows *= 2;
    }
    kernel->part_floats = part_rows * kernel->columns;
    kernel->part_count = (all + kernel->part_floats - 1) / kernel->part_floats;
}

// ---- preparing --------------------------------------------------------------------------------

static bool is_all_f32(const rondo__kernel_request *request) {
    bool is_it = request->outputs[0].dtype == RONDO_DTYPE_F32;
    for (size_t i = 0; i < 3; ++i) {
        is_it = is_it && request->inputs[i].dtype == RONDO_DTYPE_F32;
    }
    return is_it;
}

static int64_t get_groups(const rondo__op *op, int64_t channels) {
    return (op->def->flags & RONDO__OP_INTERNAL) != 0    ? rondo__op_get_int(op, "groups", 1)
           : op->def->id == RONDO__OP_GroupNormalization ? rondo__op_get_int(op, "num_groups", 1)
                                                         : channels;
}

rondo_status rondo__host_prepare_group_norm(const rondo__kernel_request *request,
                                            rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *x = &request->inputs[0].shape;
    const int activation = rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    const bool is_last = rondo__op_get_int(op, "channels_last", 0) != 0;
    if (!is_all_f32(request) || x->rank < 2 || activation < 0) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const int64_t count = rondo_shape_get_count(x);
    const int64_t channels = x->extent[is_last ? x->rank - 1 : 1];
    group_norm_kernel *kernel = (group_norm_kernel *)rondo__host_kernel_create(
        request, sizeof *kernel, "simd", is_last ? run_last : run_first, NULL);
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->simd = rondo__simd_get();
    kernel->norm = (rondo__group_norm){
        .batch = x->extent[0],
        .channels = channels,
        .span = count / (x->extent[0] * channels),
        .groups = get_groups(op, channels),
        .is_by_group = rondo_shape_get_count(&request->inputs[1].shape) != channels,
        .epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-5f),
    };
    kernel->activation = (rondo__activation)activation;
    kernel->alpha = rondo__op_get_float(op, "alpha", 0.0f);
    kernel->beta = rondo__op_get_float(op, "beta", 0.0f);
    if (is_last) {
        choose_parts(kernel);
        kernel->head.base.workspace_bytes = get_workspace_bytes(kernel);
    }
    const int64_t units = is_last ? kernel->part_count : x->extent[0] * kernel->norm.groups;
    const int64_t at_once = is_last ? count / x->extent[0] : count;
    kernel->grain = rondo__host_get_grain(units, 2.0 * sizeof(float) * (double)at_once, 0.0);
    kernel->head.base.in_place_inputs = 1;
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}
