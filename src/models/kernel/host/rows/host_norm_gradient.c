// kernel/host/rows/host_norm_gradient.c — rondo.NormGradient of f32: the way back through
// BatchNormalization, with channels first or last, and through LayerNormalization.
//
// Of a batch, changes are added up in parts, and then each line is gone through again. Parts are
// positions where channels come last, and channels where they come first. Rows are in parts, too,
// for the sums of each column.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/rows/norm_lanes.h"
#include "kernel/host/simd/simd.h"
#include "op/support.h"

typedef struct gradient_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    bool is_row, is_last;
    int64_t batch, channels, span;  // of channels first
    rondo__line_cut cut;            // of rows and of channels last
    double epsilon;
} gradient_kernel;

typedef struct gradient_run {
    const gradient_kernel *kernel;
    const float *dy, *x, *scale, *mean, *variance, *y;
    float *dx;
    float *results[2];  // the changes of scale and shift; NULL: not wanted
    double *sums;       // [parts, 2, channels]: of g * normal, of g
    rondo__norm_lanes lanes;
    float *vectors;     // [5, lanes]: what lanes points to
    float *part_lines;  // [parts, LINES_OF_PART, lanes]
} gradient_run;

enum { LANE_VECTORS = 5, LINES_OF_PART = 5 };

static void put(float *result, int64_t channel, double value) {
    if (result != NULL) {
        result[channel] = (float)value;
    }
}

// What a channel is multiplied by, once its sums are known.
static void put_factors(const gradient_run *run, int64_t channel, int64_t at, double product,
                        double sum, double count) {
    const double inverse = 1.0 / sqrt((double)run->variance[channel] + run->kernel->epsilon);
    float *vectors = run->vectors;
    const int64_t lanes = run->kernel->cut.lanes;
    vectors[2 * lanes + at] = (float)((double)run->scale[channel] * inverse);
    vectors[3 * lanes + at] = (float)(sum / count);
    vectors[4 * lanes + at] = (float)(product / count);
    put(run->results[0], channel, product);
    put(run->results[1], channel, sum);
}

static const float *get_behind(const gradient_run *run, int64_t at) {
    return run->y != NULL ? run->y + at : NULL;
}

// ---- channels last ------------------------------------------------------------------------------

static void add_parts(void *data, int64_t first, int64_t end) {
    const gradient_run *run = data;
    const gradient_kernel *kernel = run->kernel;
    const rondo__line_cut *cut = &kernel->cut;
    for (int64_t part = first; part < end; ++part) {
        double *sums = run->sums + part * 2 * cut->channels;
        rondo__norm_lanes lanes = run->lanes;
        lanes.product = run->part_lines + part * LINES_OF_PART * cut->lanes;
        lanes.sum = lanes.product + cut->lanes;
        const int64_t last = rondo__host_part(cut->lines, part + 1, cut->parts);
        int64_t line = rondo__host_part(cut->lines, part, cut->parts);
        memset(sums, 0, (size_t)(2 * cut->channels) * sizeof *sums);
        while (line < last) {
            const int64_t left = last - line;
            const int64_t stop = line + (left < RONDO__LINES_IN_F32 ? left : RONDO__LINES_IN_F32);
            memset(lanes.product, 0, (size_t)(2 * cut->lanes) * sizeof(float));
            for (; line < stop; ++line) {
                const int64_t at = line * cut->lanes;
                kernel->simd->add_changes(run->dy + at, get_behind(run, at), run->x + at, &lanes,
                                          rondo__line_get_length(cut, line));
            }
            rondo__line_add(cut, lanes.product, sums);
            rondo__line_add(cut, lanes.sum, sums + cut->channels);
        }
    }
}

static void apply_lines(void *data, int64_t first, int64_t end) {
    const gradient_run *run = data;
    const rondo__line_cut *cut = &run->kernel->cut;
    for (int64_t line = first; line < end; ++line) {
        const int64_t at = line * cut->lanes;
        run->kernel->simd->apply_changes(run->dy + at, get_behind(run, at), run->x + at,
                                         &run->lanes, run->dx + at,
                                         rondo__line_get_length(cut, line));
    }
}

static void go_back_last(gradient_run *run) {
    const rondo__line_cut *cut = &run->kernel->cut;
    const double count = (double)(cut->floats / cut->channels);
    for (int64_t c = 0; c < cut->channels; ++c) {
        run->vectors[c] = run->mean[c];
        run->vectors[cut->lanes + c] =
            (float)(1.0 / sqrt((double)run->variance[c] + run->kernel->epsilon));
    }
    rondo__line_repeat(cut, run->vectors);
    rondo__line_repeat(cut, run->vectors + cut->lanes);
    rondo__workers_loop(cut->parts,
                        rondo__host_get_grain(cut->parts, (double)cut->floats * 12.0, 0.0),
                        add_parts, run);
    rondo__line_cut_join(&run->kernel->cut, run->sums);
    for (int64_t c = 0; c < cut->channels; ++c) {
        put_factors(run, c, c, run->sums[c], run->sums[cut->channels + c], count);
    }
    for (int i = 2; i < LANE_VECTORS; ++i) {
        rondo__line_repeat(cut, run->vectors + i * cut->lanes);
    }
    rondo__workers_loop(cut->lines,
                        rondo__host_get_grain(cut->lines, (double)cut->floats * 16.0, 0.0),
                        apply_lines, run);
}

// ---- channels first -----------------------------------------------------------------------------

static void fill(float *line, float value) {
    for (int64_t i = 0; i < RONDO__LINE_FLOATS; ++i) {
        line[i] = value;
    }
}

// Calls `visit` for pieces of all rows of a channel, as long as a line at most.
typedef void (*visit_piece)(const gradient_run *run, const rondo__norm_lanes *lanes, int64_t at,
                            int64_t count);

static void add_piece(const gradient_run *run, const rondo__norm_lanes *lanes, int64_t at,
                      int64_t count) {
    run->kernel->simd->add_changes(run->dy + at, get_behind(run, at), run->x + at, lanes, count);
}

static void apply_piece(const gradient_run *run, const rondo__norm_lanes *lanes, int64_t at,
                        int64_t count) {
    run->kernel->simd->apply_changes(run->dy + at, get_behind(run, at), run->x + at, lanes,
                                     run->dx + at, count);
}

static void visit_image(const gradient_run *run, const rondo__norm_lanes *lanes, int64_t image,
                        int64_t channel, visit_piece visit) {
    const gradient_kernel *kernel = run->kernel;
    const int64_t begin = (image * kernel->channels + channel) * kernel->span;
    for (int64_t i = 0; i < kernel->span; i += RONDO__LINE_FLOATS) {
        const int64_t rest = kernel->span - i;
        visit(run, lanes, begin + i, rest < RONDO__LINE_FLOATS ? rest : RONDO__LINE_FLOATS);
    }
}

static void go_back_channels(void *data, int64_t first, int64_t end) {
    const gradient_run *run = data;
    const gradient_kernel *kernel = run->kernel;
    float lines[LANE_VECTORS][RONDO__LINE_FLOATS];
    const rondo__norm_lanes lanes = {lines[0], lines[1], lines[2], lines[3], lines[4]};
    const double count = (double)(kernel->batch * kernel->span);
    for (int64_t c = first; c < end; ++c) {
        const double inverse = 1.0 / sqrt((double)run->variance[c] + kernel->epsilon);
        double sum = 0.0, product = 0.0;
        fill(lines[0], run->mean[c]);
        fill(lines[1], (float)inverse);
        for (int64_t image = 0; image < kernel->batch; ++image) {
            fill(lines[3], 0.0f);
            fill(lines[4], 0.0f);
            visit_image(run, &lanes, image, c, add_piece);
            for (int64_t i = 0; i < RONDO__LINE_FLOATS; ++i) {
                sum += (double)lines[3][i];
                product += (double)lines[4][i];
            }
        }
        put(run->results[0], c, product);
        put(run->results[1], c, sum);
        fill(lines[2], (float)((double)run->scale[c] * inverse));
        fill(lines[3], (float)(sum / count));
        fill(lines[4], (float)(product / count));
        for (int64_t image = 0; image < kernel->batch; ++image) {
            visit_image(run, &lanes, image, c, apply_piece);
        }
    }
}

// ---- rows ---------------------------------------------------------------------------------------

static void go_back_row(const gradient_run *run, int64_t at, float *normal, float *change,
                        float *product) {
    const gradient_kernel *kernel = run->kernel;
    const rondo__simd *simd = kernel->simd;
    const int64_t width = kernel->cut.channels;
    const double count = (double)width;
    const float *x = run->x + at;
    const float center = (float)(simd->sum(x, width) / count);
    double rest, squares;
    simd->moments(x, width, center, &rest, &squares);
    rest /= count;
    const double variance = squares / count - rest * rest;
    const float mean = isfinite(rest) ? (float)((double)center + rest) : center;
    const float inverse = (float)(1.0 / sqrt((variance < 0.0 ? 0.0 : variance) + kernel->epsilon));
    simd->list_row_changes(run->dy + at, x, run->scale, mean, inverse, normal, change, product,
                           width);
    const float one = (float)(simd->sum(change, width) / count);
    const float two = (float)(simd->sum(product, width) / count);
    simd->apply_row_changes(change, normal, one, two, inverse, run->dx + at, width);
}

static void go_back_rows(void *data, int64_t first, int64_t end) {
    const gradient_run *run = data;
    const rondo__line_cut *cut = &run->kernel->cut;
    const rondo__simd *simd = run->kernel->simd;
    const int64_t width = cut->lanes;
    for (int64_t part = first; part < end; ++part) {
        double *sums = run->sums + part * 2 * width;
        float *lines = run->part_lines + part * LINES_OF_PART * width;
        const int64_t last = rondo__host_part(cut->lines, part + 1, cut->parts);
        int64_t row = rondo__host_part(cut->lines, part, cut->parts);
        memset(sums, 0, (size_t)(2 * width) * sizeof *sums);
        while (row < last) {
            const int64_t left = last - row;
            const int64_t stop = row + (left < RONDO__LINES_IN_F32 ? left : RONDO__LINES_IN_F32);
            memset(lines, 0, (size_t)(2 * width) * sizeof *lines);
            for (; row < stop; ++row) {
                float *normal = lines + 2 * width;
                go_back_row(run, row * width, normal, normal + width, normal + 2 * width);
                simd->add_products(run->dy + row * width, normal, lines, width);
                simd->accumulate(run->dy + row * width, lines + width, width);
            }
            rondo__line_add(cut, lines, sums);
            rondo__line_add(cut, lines + width, sums + width);
        }
    }
}

static rondo_status run_gradient(rondo__host_kernel *head, const void *const *inputs,
                                 void *const *outputs, void *workspace) {
    const gradient_kernel *kernel = (const gradient_kernel *)head;
    const rondo__line_cut *cut = &kernel->cut;
    const bool is_batch = !kernel->is_row;
    gradient_run run = {.kernel = kernel,
                        .dy = inputs[0],
                        .x = inputs[1],
                        .scale = inputs[2],
                        .mean = is_batch ? inputs[3] : NULL,
                        .variance = is_batch ? inputs[4] : NULL,
                        .y = head->input_count > 5 ? inputs[5] : NULL,
                        .dx = outputs[0],
                        .sums = workspace};
    for (uint32_t i = 1; i < head->output_count && i < 3; ++i) {
        run.results[i - 1] = outputs[i];
    }
    if (is_batch && !kernel->is_last) {
        const double bytes = (double)(kernel->batch * kernel->channels * kernel->span) * 28.0;
        rondo__workers_loop(kernel->channels, rondo__host_get_grain(kernel->channels, bytes, 0.0),
                            go_back_channels, &run);
        return RONDO_STATUS_OK;
    }
    run.vectors = (float *)(void *)(run.sums + cut->parts * 2 * cut->channels);
    run.part_lines = run.vectors + LANE_VECTORS * cut->lanes;
    run.lanes =
        (rondo__norm_lanes){run.vectors, run.vectors + cut->lanes, run.vectors + 2 * cut->lanes,
                            run.vectors + 3 * cut->lanes, run.vectors + 4 * cut->lanes};
    if (is_batch) {
        go_back_last(&run);
        return RONDO_STATUS_OK;
    }
    rondo__workers_loop(cut->parts,
                        rondo__host_get_grain(cut->parts, (double)cut->floats * 32.0, 0.0),
                        go_back_rows, &run);
    rondo__line_cut_join(&run.kernel->cut, run.sums);
    for (int64_t c = 0; c < cut->channels; ++c) {
        put(run.results[0], c, run.sums[c]);
        put(run.results[1], c, run.sums[cut->channels + c]);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_norm_gradient(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[1].shape;
    bool fits = x->rank >= 2 && request->outputs[0].dtype != RONDO_DTYPE_NONE;
    for (size_t i = 0; i < request->input_count && fits; ++i) {
        fits = request->inputs[i].dtype == RONDO_DTYPE_F32 ||
               (i > 2 && request->inputs[i].dtype == RONDO_DTYPE_NONE);
    }
    if (!fits) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(gradient_kernel), "simd", run_gradient, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    gradient_kernel *kernel = (gradient_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->epsilon = (double)rondo__op_get_float(request->op, "epsilon", 1e-5f);
    kernel->is_row = request->input_count < 4 || request->inputs[3].dtype == RONDO_DTYPE_NONE;
    kernel->is_last = rondo__op_get_int(request->op, "channels_last", 0) != 0;
    kernel->batch = x->extent[0];
    kernel->channels = rondo_shape_get_count(&request->inputs[2].shape);
    kernel->span = rondo__shape_multiply(x, 2, x->rank);
    if (kernel->is_row || kernel->is_last) {
        const int64_t positions = rondo_shape_get_count(x) / kernel->channels;
        rondo__line_cut cut = rondo__line_cut_of(positions, kernel->channels);
        if (kernel->is_row) {  // a line is a row
            cut.lanes = kernel->channels;
            cut.lines = positions;
            cut.parts = positions < RONDO__PARTS_MAX ? positions : RONDO__PARTS_MAX;
        }
        kernel->cut = cut;
        head->base.workspace_bytes =
            (size_t)(cut.parts * 2 * cut.channels) * sizeof(double) +
            (size_t)((LANE_VECTORS + LINES_OF_PART * cut.parts) * cut.lanes) * sizeof(float);
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
