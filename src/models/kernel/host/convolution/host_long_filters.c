// kernel/host/convolution/host_long_filters.c — rondo.Conv of f32 with channels last, one filter of
// many taps for each group, which changes: how filters of one channel each change with a batch is
// such a convolution. Channels of a group are as many as images, so a vector of them goes through
// all taps. A unit of work is a group.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/convolution/long_filters.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/image/convolution.h"
#include "op/support.h"

enum { TAPS_MIN = 32, CHANNELS_MIN = 4, CHANNELS_MAX = 512 };

typedef struct long_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__convolution shape;
    int64_t channels;  // of a group
    int64_t grain;
} long_kernel;

typedef struct long_run {
    const long_kernel *kernel;
    const float *x, *w;
    float *y, *turned;
} long_run;

// From [channels, taps] to [taps, channels].
static void turn_filter(const long_kernel *kernel, const float *w, float *to) {
    const int64_t taps = kernel->shape.kernel_span;
    for (int64_t c = 0; c < kernel->channels; ++c) {
        for (int64_t t = 0; t < taps; ++t) {
            to[t * kernel->channels + c] = w[c * taps + t];
        }
    }
}

// One number of y: sums of a row of taps in f32, of all rows in double.
static float sum_window(const long_kernel *kernel, const float *image, const float *filter,
                        int64_t row, int64_t column) {
    const rondo__window *w = &kernel->shape.window;
    const int64_t channels = kernel->channels, pixel = kernel->shape.channels;
    float part[CHANNELS_MAX];
    double sum = 0.0;
    int64_t begin[2], end[2];
    rondo__window_clip_taps(w, 0, row, &begin[0], &end[0]);
    rondo__window_clip_taps(w, 1, column, &begin[1], &end[1]);
    const int64_t top = row * w->stride[0] - w->pad_begin[0];
    const int64_t left = column * w->stride[1] - w->pad_begin[1];
    for (int64_t i = begin[0]; i < end[0]; ++i) {
        const int64_t line = (top + i * w->dilation[0]) * w->input[1] + left;
        memset(part, 0, (size_t)channels * sizeof *part);
        for (int64_t j = begin[1]; j < end[1]; ++j) {
            kernel->simd->add_products(image + (line + j * w->dilation[1]) * pixel,
                                       filter + (i * w->kernel[1] + j) * channels, part, channels);
        }
        sum += kernel->simd->sum(part, channels);
    }
    return (float)sum;
}

static void run_groups(void *data, int64_t first, int64_t last) {
    const long_run *run = data;
    const long_kernel *kernel = run->kernel;
    const rondo__convolution *shape = &kernel->shape;
    const int64_t width = shape->window.output[1];
    for (int64_t group = first; group < last; ++group) {
        float *filter = run->turned + group * shape->kernel_span * kernel->channels;
        turn_filter(kernel, run->w + group * shape->kernel_span * kernel->channels, filter);
        for (int64_t i = 0; i < shape->batch * shape->output_span; ++i) {
            const int64_t at = i % shape->output_span, image = i / shape->output_span;
            run->y[i * shape->filters + group] = sum_window(
                kernel,
                run->x + image * shape->input_span * shape->channels + group * kernel->channels,
                filter, at / width, at % width);
        }
    }
}

static rondo_status run_long(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    const long_kernel *kernel = (const long_kernel *)head;
    long_run run = {kernel, inputs[0], inputs[1], outputs[0], workspace};
    rondo__workers_loop(kernel->shape.group, kernel->grain, run_groups, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_long_filters(const rondo__kernel_request *request,
                                              const rondo__convolution *shape,
                                              rondo__kernel **out_kernel) {
    const int64_t channels = shape->channels / shape->group;
    bool fits = shape->group > 1 && shape->filters == shape->group && shape->window.rank == 2 &&
                shape->kernel_span >= TAPS_MIN && channels >= CHANNELS_MIN &&
                channels <= CHANNELS_MAX && request->inputs[1].constant == NULL &&
                request->inputs[1].dtype == RONDO_DTYPE_F32 &&
                strcmp(rondo__op_get_string(request->op, "activation", "none"), "none") == 0 &&
                rondo__op_get_int(request->op, "channels_last", 0) != 0;
    for (size_t i = 2; i < request->input_count; ++i) {
        fits = fits && request->inputs[i].dtype == RONDO_DTYPE_NONE;
    }
    if (!fits) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(long_kernel), "simd", run_long, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    long_kernel *kernel = (long_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->shape = *shape;
    kernel->channels = channels;
    const double work =
        (double)(shape->batch * shape->output_span * shape->kernel_span) * (double)shape->channels;
    kernel->grain = rondo__host_get_grain(shape->group, 0.0, work);
    head->base.workspace_bytes = (size_t)(shape->kernel_span * shape->channels) * sizeof(float);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
