// kernel/host/rows/host_lrn.c — LRN on f32: each number over a power of the mean square of the
// channels around it.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"

enum { BLOCK = 256 };  // positions of one channel

typedef struct lrn_kernel {
    rondo__host_kernel head;
    int64_t channels, span;
    int64_t before, after;  // channels of a window, beside its own
    float scale, beta, bias;
    int64_t unit_count, grain;  // a unit: a block of a plane
} lrn_kernel;

typedef struct lrn_run {
    const lrn_kernel *kernel;
    const float *x;
    float *y;
} lrn_run;

static int64_t count_blocks(const lrn_kernel *kernel) {
    return (kernel->span + BLOCK - 1) / BLOCK;
}

// `count` positions of channel c; x and y stand at them in the image's first channel and this one.
static void normalize(const lrn_kernel *kernel, const float *x, int64_t c, int64_t count,
                      float *y) {
    float sums[BLOCK] = {0};
    const int64_t first = c < kernel->before ? 0 : c - kernel->before;
    const int64_t last =
        kernel->after >= kernel->channels - c ? kernel->channels - 1 : c + kernel->after;
    for (int64_t k = first; k <= last; ++k) {
        const float *row = x + k * kernel->span;
        for (int64_t i = 0; i < count; ++i) {
            sums[i] += row[i] * row[i];
        }
    }
    const float *own = x + c * kernel->span;
    if (kernel->beta == 0.75f) {
        for (int64_t i = 0; i < count; ++i) {
            const float root = sqrtf(kernel->bias + kernel->scale * sums[i]);
            y[i] = own[i] / (root * sqrtf(root));
        }
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        y[i] = own[i] / powf(kernel->bias + kernel->scale * sums[i], kernel->beta);
    }
}

static void run_units(void *data, int64_t first, int64_t end) {
    const lrn_run *run = data;
    const lrn_kernel *kernel = run->kernel;
    for (int64_t unit = first; unit < end; ++unit) {
        const int64_t plane = unit / count_blocks(kernel);
        const int64_t at = unit % count_blocks(kernel) * BLOCK, c = plane % kernel->channels;
        const int64_t rest = kernel->span - at;
        normalize(kernel, run->x + (plane - c) * kernel->span + at, c, rest < BLOCK ? rest : BLOCK,
                  run->y + plane * kernel->span + at);
    }
}

static rondo_status run_lrn(rondo__host_kernel *head, const void *const *inputs,
                            void *const *outputs, void *workspace) {
    (void)workspace;
    const lrn_kernel *kernel = (const lrn_kernel *)head;
    lrn_run run = {kernel, inputs[0], outputs[0]};
    rondo__workers_loop(kernel->unit_count, kernel->grain, run_units, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_lrn(const rondo__kernel_request *request,
                                     rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *shape = &request->inputs[0].shape;
    const int64_t size = rondo__op_get_int(op, "size", 0);
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || shape->rank < 2 || size < 1) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(lrn_kernel), "simd", run_lrn, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    lrn_kernel *kernel = (lrn_kernel *)head;
    const int64_t count = rondo_shape_get_count(shape);
    kernel->channels = shape->extent[1];
    kernel->span = count / (shape->extent[0] * shape->extent[1]);
    kernel->before = (size - 1) / 2;
    kernel->after = size - 1 - kernel->before;
    kernel->scale = rondo__op_get_float(op, "alpha", 1e-4f) / (float)size;
    kernel->beta = rondo__op_get_float(op, "beta", 0.75f);
    kernel->bias = rondo__op_get_float(op, "bias", 1.0f);
    kernel->unit_count = shape->extent[0] * shape->extent[1] * count_blocks(kernel);
    kernel->grain = rondo__host_get_grain(kernel->unit_count,
                                          (double)count * ((double)size + 16) * sizeof(float), 0.0);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
