// kernel/host/rows/host_batch_norm.c — BatchNormalization in training, on f32: mean and variance of
// each channel over the batch, and what becomes of the running ones. With channels first a unit of
// work is one channel; with channels last all channels are added up side by side, in parts.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/rows/norm_lanes.h"
#include "kernel/host/simd/simd.h"
#include "op/support.h"

typedef struct batch_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    int64_t batch, channels, span;
    int64_t grain;
    double epsilon, momentum;
    bool is_last;         // channels come last
    rondo__line_cut cut;  // then
} batch_kernel;

typedef struct batch_run {
    const batch_kernel *kernel;
    const float *x, *scale, *shift, *mean, *variance;
    float *y;
    float *results[4];  // running mean and variance, those of the batch; NULL: not wanted
    double *sums;       // with channels last: [parts, 2, channels], in the workspace, then lines
    // [lanes]. The mean is center + rest: a shift that had rest * factor in it would make NaN of
    // infinite factors.
    float *center, *rest, *factor, *offset;
} batch_run;

static const float *get_row(const batch_kernel *k, const float *x, int64_t image, int64_t channel) {
    return x + (image * k->channels + channel) * k->span;
}

// The sums of x - center and of its square over the channel.
static void add_moments(const batch_run *run, int64_t channel, float center, double *out_sum,
                        double *out_squares) {
    const batch_kernel *k = run->kernel;
    *out_sum = 0.0;
    *out_squares = 0.0;
    for (int64_t image = 0; image < k->batch; ++image) {
        double sum, squares;
        k->simd->moments(get_row(k, run->x, image, channel), k->span, center, &sum, &squares);
        *out_sum += sum;
        *out_squares += squares;
    }
}

typedef struct channel_moments {
    float center, rest;  // the mean is their sum
    double mean, variance;
} channel_moments;

static channel_moments find_moments(const batch_run *run, int64_t channel, double count) {
    double sum, squares;
    const float begin = *get_row(run->kernel, run->x, 0, channel);
    add_moments(run, channel, begin, &sum, &squares);
    channel_moments m = {.mean = (double)begin + sum / count, .variance = (double)NAN};
    m.center = (float)m.mean;
    if (!isfinite(m.mean)) {  // an infinity that all have in common is the mean
        add_moments(run, channel, 0.0f, &sum, &squares);
        m.mean = sum / count;
        return m;
    }
    // Squares are of what is small: the distances from the mean, as f32 has it.
    add_moments(run, channel, m.center, &sum, &squares);
    const double rest = sum / count;
    const double spread = squares / count - rest * rest;
    m.variance = spread < 0.0 ? 0.0 : spread;
    m.rest = (float)rest;
    m.mean = (double)m.center + rest;
    return m;
}

static void put(float *result, int64_t channel, double value) {
    if (result != NULL) {
        result[channel] = (float)value;
    }
}

static void put_results(const batch_run *run, int64_t c, double mean, double variance) {
    const double momentum = run->kernel->momentum;
    put(run->results[0], c, (double)run->mean[c] * momentum + mean * (1.0 - momentum));
    put(run->results[1], c, (double)run->variance[c] * momentum + variance * (1.0 - momentum));
    put(run->results[2], c, mean);
    put(run->results[3], c, variance);
}

static void normalise_channels(void *data, int64_t first, int64_t end) {
    const batch_run *run = data;
    const batch_kernel *k = run->kernel;
    const double count = (double)(k->batch * k->span);
    for (int64_t c = first; c < end; ++c) {
        const channel_moments m = find_moments(run, c, count);
        const float scale = (float)((double)run->scale[c] / sqrt(m.variance + k->epsilon));
        for (int64_t image = 0; image < k->batch; ++image) {
            const float *x = get_row(k, run->x, image, c);
            k->simd->center_scale(x, run->y + (x - run->x), k->span, m.center, m.rest, scale,
                                  run->shift[c]);
        }
        put_results(run, c, m.mean, m.variance);
    }
}

// ---- channels last ------------------------------------------------------------------------------

// The sums of x - center and of its square, of some parts.
static void add_parts(void *data, int64_t first, int64_t end) {
    const batch_run *run = data;
    const rondo__line_cut *cut = &run->kernel->cut;
    const size_t bytes = (size_t)cut->lanes * sizeof(float);
    for (int64_t part = first; part < end; ++part) {
        double *sums = run->sums + part * 2 * cut->channels;
        float *lines = run->offset + (1 + 2 * part) * cut->lanes;
        const int64_t last = rondo__host_part(cut->lines, part + 1, cut->parts);
        int64_t line = rondo__host_part(cut->lines, part, cut->parts);
        memset(sums, 0, (size_t)(2 * cut->channels) * sizeof *sums);
        while (line < last) {
            const int64_t left = last - line;
            const int64_t stop = line + (left < RONDO__LINES_IN_F32 ? left : RONDO__LINES_IN_F32);
            memset(lines, 0, 2 * bytes);
            for (; line < stop; ++line) {
                run->kernel->simd->accumulate_moments(run->x + line * cut->lanes, run->center,
                                                      lines, lines + cut->lanes,
                                                      rondo__line_get_length(cut, line));
            }
            rondo__line_add(cut, lines, sums);
            rondo__line_add(cut, lines + cut->lanes, sums + cut->channels);
        }
    }
}

// Of some rows that lie far from each other: a number near enough to take squares from.
static void guess_centers(const batch_run *run) {
    enum { SAMPLES = 64 };
    const rondo__line_cut *cut = &run->kernel->cut;
    const int64_t positions = cut->floats / cut->channels;
    const int64_t samples = positions < SAMPLES ? positions : SAMPLES;
    memset(run->center, 0, (size_t)cut->channels * sizeof(float));
    for (int64_t i = 0; i < samples; ++i) {
        run->kernel->simd->accumulate(
            run->x + rondo__host_part(positions, i, samples) * cut->channels, run->center,
            cut->channels);
    }
    for (int64_t c = 0; c < cut->channels; ++c) {
        const float center = run->center[c] / (float)samples;
        run->center[c] = isfinite(center) ? center : 0.0f;
    }
    rondo__line_repeat(cut, run->center);
}

// Of the sums: mean and variance; false if the centers were too far away, and are better now.
static bool find_channels(const batch_run *run, bool is_last_try) {
    const rondo__line_cut *cut = &run->kernel->cut;
    const double count = (double)(cut->floats / cut->channels);
    double *means = run->sums, *variances = run->sums + cut->channels;
    for (int64_t c = 0; c < cut->channels && !is_last_try; ++c) {
        const double rest = means[c] / count;
        if (isfinite(rest) && variances[c] / count < 2.0 * rest * rest) {
            for (int64_t k = 0; k < cut->channels; ++k) {
                const float center = (float)((double)run->center[k] + means[k] / count);
                run->center[k] = isfinite(center) ? center : run->center[k];
            }
            rondo__line_repeat(cut, run->center);
            return false;
        }
    }
    for (int64_t c = 0; c < cut->channels; ++c) {
        const double rest = means[c] / count;
        const double spread = variances[c] / count - rest * rest;
        const double mean = (double)run->center[c] + rest;
        const double variance = !isfinite(rest) ? (double)NAN : spread < 0.0 ? 0.0 : spread;
        const double factor = (double)run->scale[c] / sqrt(variance + run->kernel->epsilon);
        run->factor[c] = (float)factor;
        run->rest[c] = (float)rest;
        run->offset[c] = run->shift[c];
        put_results(run, c, mean, variance);
    }
    rondo__line_repeat(cut, run->rest);
    rondo__line_repeat(cut, run->factor);
    rondo__line_repeat(cut, run->offset);
    return true;
}

static void scale_lines(void *data, int64_t first, int64_t end) {
    const batch_run *run = data;
    const rondo__line_cut *cut = &run->kernel->cut;
    for (int64_t line = first; line < end; ++line) {
        run->kernel->simd->scale_shift(run->x + line * cut->lanes, run->center, run->rest,
                                       run->factor, run->offset, run->y + line * cut->lanes,
                                       rondo__line_get_length(cut, line));
    }
}

static void normalise_lines(batch_run *run, double *workspace) {
    const batch_kernel *k = run->kernel;
    const rondo__line_cut *cut = &k->cut;
    run->sums = workspace;
    run->center = (float *)(void *)(workspace + cut->parts * 2 * cut->channels);
    run->rest = run->center + cut->lanes;
    run->factor = run->rest + cut->lanes;
    run->offset = run->factor + cut->lanes;
    const int64_t part_grain = rondo__host_get_grain(cut->parts, (double)cut->floats * 4.0, 0.0);
    guess_centers(run);
    for (int tries = 0; tries < 2; ++tries) {
        rondo__workers_loop(cut->parts, part_grain, add_parts, run);
        rondo__line_cut_join(&run->kernel->cut, run->sums);
        if (find_channels(run, tries == 1)) {
            break;
        }
    }
    rondo__workers_loop(cut->lines,
                        rondo__host_get_grain(cut->lines, (double)cut->floats * 8.0, 0.0),
                        scale_lines, run);
}

static rondo_status run_batch(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *workspace) {
    const batch_kernel *kernel = (const batch_kernel *)head;
    batch_run run = {.kernel = kernel,
                     .x = inputs[0],
                     .scale = inputs[1],
                     .shift = inputs[2],
                     .mean = inputs[3],
                     .variance = inputs[4],
                     .y = outputs[0]};
    for (uint32_t i = 1; i < head->output_count && i < 5; ++i) {
        run.results[i - 1] = outputs[i];
    }
    if (kernel->is_last) {
        normalise_lines(&run, workspace);
    } else {
        rondo__workers_loop(kernel->channels, kernel->grain, normalise_channels, &run);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_batch_training(const rondo__kernel_request *request,
                                                rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    bool fits = request->input_count == 5 && x->rank >= 2 && request->output_count <= 5 &&
                request->outputs[0].dtype != RONDO_DTYPE_NONE &&
                rondo__op_get_int(request->op, "relu", 0) == 0;  // which GPUs have
    for (size_t i = 0; i < request->input_count && fits; ++i) {
        fits = request->inputs[i].dtype == RONDO_DTYPE_F32;
    }
    if (!fits || rondo_shape_get_count(x) < 1) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(batch_kernel), "simd", run_batch, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    batch_kernel *kernel = (batch_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->is_last = rondo__op_get_int(request->op, "channels_last", 0) != 0;
    kernel->batch = x->extent[0];
    kernel->channels = x->extent[kernel->is_last ? x->rank - 1 : 1];
    if (kernel->is_last) {
        const rondo__line_cut cut =
            rondo__line_cut_of(rondo__shape_multiply(x, 0, x->rank - 1), kernel->channels);
        kernel->cut = cut;
        head->base.workspace_bytes = (size_t)(cut.parts * 2 * cut.channels) * sizeof(double) +
                                     (size_t)((4 + 2 * cut.parts) * cut.lanes) * sizeof(float);
    }
    kernel->span = rondo__shape_multiply(x, 2, x->rank);
    kernel->epsilon = (double)rondo__op_get_float(request->op, "epsilon", 1e-5f);
    kernel->momentum = (double)rondo__op_get_float(request->op, "momentum", 0.9f);
    kernel->grain = rondo__host_get_grain(
        kernel->channels, 4.0 * (double)rondo_shape_get_count(x) * sizeof(float), 0.0);
    for (int32_t i = 1; i < 3; ++i) {
        head->base.kept[head->base.kept_count++] =
            (rondo__kernel_kept){.input = 2 + i, .output = i};  // the running ones
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
