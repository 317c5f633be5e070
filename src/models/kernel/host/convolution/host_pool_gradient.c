// kernel/host/convolution/host_pool_gradient.c — rondo.PoolGradient of f32 images: the maxima are
// found again, with all channels of a pixel side by side where they come last. A unit of work is an
// image, or a plane.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/image/pooling.h"

enum { TAPS_MAX = 64 };

typedef struct gradient_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__pool pool;
    int64_t images, pixel;  // floats of a pixel
    bool is_disjoint;       // each pixel is in one window
    int64_t grain;
} gradient_kernel;

typedef struct gradient_run {
    const gradient_kernel *kernel;
    const float *dy, *x;
    float *dx;
} gradient_run;

// The pixels of a window that lie inside, as offsets in the image.
static int64_t list_taps(const gradient_kernel *kernel, int64_t row, int64_t column,
                         int64_t *offsets) {
    const rondo__window *w = &kernel->pool.window;
    const int64_t top = row * w->stride[0] - w->pad_begin[0];
    const int64_t left = column * w->stride[1] - w->pad_begin[1];
    int64_t count = 0;
    for (int64_t i = 0; i < w->kernel[0]; ++i) {
        const int64_t y = top + i * w->dilation[0];
        for (int64_t j = 0; j < w->kernel[1] && (uint64_t)y < (uint64_t)w->input[0]; ++j) {
            const int64_t x = left + j * w->dilation[1];
            if ((uint64_t)x < (uint64_t)w->input[1]) {
                offsets[count++] = (y * w->input[1] + x) * kernel->pixel;
            }
        }
    }
    return count;
}

static void change_images(void *data, int64_t first, int64_t end) {
    const gradient_run *run = data;
    const gradient_kernel *kernel = run->kernel;
    const rondo__pool *pool = &kernel->pool;
    const int64_t pixel = kernel->pixel, image_floats = pool->input_span * pixel;
    int64_t offsets[TAPS_MAX];
    const float *taps[TAPS_MAX];
    float *targets[TAPS_MAX];
    for (int64_t image = first; image < end; ++image) {
        const float *x = run->x + image * image_floats;
        const float *dy = run->dy + image * pool->output_span * pixel;
        float *dx = run->dx + image * image_floats;
        if (!kernel->is_disjoint) {
            memset(dx, 0, (size_t)image_floats * sizeof *dx);
        }
        for (int64_t at = 0; at < pool->output_span; ++at) {
            int64_t count = list_taps(kernel, at / pool->window.output[1],
                                      at % pool->window.output[1], offsets);
            if (count == 0) {  // the reference counts such a window to the first pixel
                offsets[count++] = 0;
            }
            for (int64_t t = 0; t < count; ++t) {
                taps[t] = x + offsets[t];
                targets[t] = dx + offsets[t];
            }
            kernel->simd->place_changes(taps, count, dy + at * pixel, targets, !kernel->is_disjoint,
                                        pixel);
        }
    }
}

static rondo_status run_gradient(rondo__host_kernel *head, const void *const *inputs,
                                 void *const *outputs, void *workspace) {
    (void)workspace;
    const gradient_kernel *kernel = (const gradient_kernel *)head;
    gradient_run run = {kernel, inputs[0], inputs[1], outputs[0]};
    rondo__workers_loop(kernel->images, kernel->grain, change_images, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_pool_gradient(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[1].shape;
    const bool is_last = rondo__op_get_int(request->op, "channels_last", 0) != 0;
    rondo__pool pool;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || x->rank != 4 ||
        request->inputs[1].dtype != RONDO_DTYPE_F32 ||
        rondo__pool_init(request->op, x, is_last, &pool) != RONDO_STATUS_OK ||
        pool.window.kernel[0] * pool.window.kernel[1] > TAPS_MAX) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(gradient_kernel), "simd", run_gradient, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    gradient_kernel *kernel = (gradient_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->pool = pool;
    kernel->images = is_last ? pool.batch : pool.batch * pool.channels;
    kernel->pixel = is_last ? pool.channels : 1;
    kernel->is_disjoint = true;
    for (int32_t d = 0; d < 2; ++d) {
        const rondo__window *w = &kernel->pool.window;
        kernel->is_disjoint = kernel->is_disjoint && w->kernel[d] == w->stride[d] &&
                              w->dilation[d] == 1 && w->pad_begin[d] == 0 &&
                              w->output[d] * w->stride[d] == w->input[d];
    }
    const double reads = (double)rondo_shape_get_count(&pool.output) *
                         (double)(pool.window.kernel[0] * pool.window.kernel[1]);
    kernel->grain = rondo__host_get_grain(kernel->images, reads * 3.0 * sizeof(float), 0.0);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
