// kernel/host/rows/host_batch_norm.c — BatchNormalization in training, on f32: mean and variance of
// each channel over the batch, and what becomes of the running ones. A unit of work is one channel.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/support.h"

typedef struct batch_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    int64_t batch, channels, span;
    int64_t grain;
    double epsilon, momentum;
} batch_kernel;

typedef struct batch_run {
    const batch_kernel *kernel;
    const float *x, *scale, *shift, *mean, *variance;
    float *y;
    float *results[4];  // running mean and variance, those of the batch; NULL: not wanted
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
        put(run->results[0], c, (double)run->mean[c] * k->momentum + m.mean * (1.0 - k->momentum));
        put(run->results[1], c,
            (double)run->variance[c] * k->momentum + m.variance * (1.0 - k->momentum));
        put(run->results[2], c, m.mean);
        put(run->results[3], c, m.variance);
    }
}

static rondo_status run_batch(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *workspace) {
    (void)workspace;
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
    rondo__workers_loop(kernel->channels, kernel->grain, normalise_channels, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_batch_training(const rondo__kernel_request *request,
                                                rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    bool fits = request->input_count == 5 && x->rank >= 2 && request->output_count <= 5 &&
                request->outputs[0].dtype != RONDO_DTYPE_NONE;
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
    kernel->batch = x->extent[0];
    kernel->channels = x->extent[1];
    kernel->span = rondo__shape_multiply(x, 2, x->rank);
    kernel->epsilon = (double)rondo__op_get_float(request->op, "epsilon", 1e-5f);
    kernel->momentum = (double)rondo__op_get_float(request->op, "momentum", 0.9f);
    kernel->grain = rondo__host_get_grain(
        kernel->channels, 4.0 * (double)rondo_shape_get_count(x) * sizeof(float), 0.0);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
