// Every plan of the tensor core kernels, not only the one that would be chosen: convolutions and
// products on a GPU, or on the emulated one, against sums in double.
//
//   test_kernel_cuda_tensor_plans [PART/PARTS]     1/1; plans are dealt out in turn
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_tensor_map.h"
#include "kernel/cuda/cuda_conv_tensor.h"
#include "op/op.h"
#include "rondo/rondo.h"
#include "support/gpu_present.h"

#define MUST(call)                                                                      \
    do {                                                                                \
        if ((call) != RONDO_STATUS_OK) {                                                \
            printf("%s:%d: %s\n", __FILE__, __LINE__, rondo_error_get_last()->message); \
            exit(EXIT_FAILURE);                                                         \
        }                                                                               \
    } while (0)

typedef struct problem {
    int64_t batch, height, width, channels, filters, kernel, stride, before, after, dilation;
    bool has_bias, has_residual;
    rondo__activation activation;
} problem;

// With height 1 windows are 1 x kernel; products have kernel 1. Extents that fill no tile, rows of
// results that begin anywhere (33 and 50 filters), windows that leave the image, rows that end
// within a tile, parts of 64 channels and parts of 64, 32 and 16 elements.
static const problem problems[] = {
    {1, 1, 130, 200, 96, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_GELU},
    {1, 1, 37, 776, 33, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_NONE},
    {1, 1, 70, 1544, 50, 1, 1, 0, 0, 1, false, false, RONDO__ACTIVATION_NONE},
    {2, 7, 9, 64, 72, 3, 1, 1, 1, 1, true, true, RONDO__ACTIVATION_RELU},
    {2, 9, 7, 128, 40, 3, 2, 1, 0, 1, true, false, RONDO__ACTIVATION_CLIP},
    {1, 12, 11, 96, 33, 3, 1, 2, 2, 2, false, true, RONDO__ACTIVATION_NONE},
    {3, 6, 5, 48, 64, 5, 1, 2, 2, 1, true, false, RONDO__ACTIVATION_NONE},
    {1, 8, 8, 64, 64, 1, 2, 0, 0, 1, true, false, RONDO__ACTIVATION_NONE},
    // Few channels and no border along x: taps beside each other are copied as one row.
    {2, 9, 11, 16, 72, 4, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_RELU},
    {3, 10, 9, 32, 40, 3, 2, 0, 0, 1, true, false, RONDO__ACTIVATION_NONE},
    {1, 8, 13, 8, 33, 4, 1, 0, 0, 1, false, true, RONDO__ACTIVATION_NONE},
    {2, 1, 40, 16, 40, 3, 1, 0, 0, 1, true, false, RONDO__ACTIVATION_NONE},
    // One step, and many tiles.
    {1, 1, 1030, 64, 136, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_RELU},
    // Enough tiles that plans without a split, and with few parts, are among them.
    {1, 1, 130, 200, 680, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_NONE},
    {1, 12, 11, 64, 680, 3, 1, 1, 1, 1, true, true, RONDO__ACTIVATION_RELU},
};

static rondo__cuda_convolution describe(const problem *p) {
    const int64_t reach = (p->kernel - 1) * p->dilation + 1;
    const int64_t out_height =
        p->height == 1 ? 1 : (p->height + p->before + p->after - reach) / p->stride + 1;
    const int64_t out_width = (p->width + p->before + p->after - reach) / p->stride + 1;
    return (rondo__cuda_convolution){
        .dtype = RONDO_DTYPE_F16,
        .y_dtype = RONDO_DTYPE_F16,
        .window =
            {
                .channels_last = true,
                .spatial_rank = 2,
                .batch = p->batch,
                .channels_in = p->channels,
                .channels_out = p->filters,
                .in = {1, p->height, p->width},
                .out = {1, out_height, out_width},
                .kernel = {1, p->height == 1 ? 1 : p->kernel, p->kernel},
                .stride = {1, p->height == 1 ? 1 : p->stride, p->stride},
                .dilation = {1, p->dilation, p->dilation},
                .before = {0, p->height == 1 ? 0 : p->before, p->before},
                .after = {0, p->height == 1 ? 0 : p->after, p->after},
            },
        .groups = 1,
        .taps = (p->height == 1 ? 1 : p->kernel) * p->kernel,
        .pixels = p->batch * out_height * out_width,
        .weight_pitch = (p->height == 1 ? 1 : p->kernel) * p->kernel * p->channels,
        .x = rondo__address_input(0),
        .w = rondo__address_input(1),
        .y = rondo__address_output(0),
        .epilogue = {.activation = p->activation,
                     .alpha = 0.0f,
                     .beta = 1.5f,
                     .has_bias = p->has_bias,
                     .has_residual = p->has_residual,
                     .bias = rondo__address_input(2),
                     .residual = rondo__address_input(3)},
    };
}

// ---- reference --------------------------------------------------------------------------------

static uint32_t g_random = 1;

static uint16_t *draw(size_t count, float size) {
    uint16_t *values = malloc(count * sizeof *values);
    if (values == NULL) {
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < count; i++) {
        g_random = g_random * 1664525u + 1013904223u;
        values[i] =
            rondo_f16_from_float(size * ((float)(g_random >> 8) / (float)(1u << 23) - 1.0f));
    }
    return values;
}

static double activate(const rondo__cuda_epilogue *e, double x) {
    switch (e->activation) {
        case RONDO__ACTIVATION_RELU:
            return x < 0 ? 0 : x;
        case RONDO__ACTIVATION_CLIP:
            return x < 0 ? 0 : x > 1.5 ? 1.5 : x;
        case RONDO__ACTIVATION_GELU:
            return 0.5 * x * (1 + erf(x * 0.7071067811865476));
        default:
            return x;
    }
}

static double sum_up(const rondo__cuda_convolution *c, const uint16_t *x, const uint16_t *w,
                     int64_t pixel, int64_t filter) {
    const rondo__window *v = &c->window;
    const int64_t at = pixel % (v->out[1] * v->out[2]), image = pixel / (v->out[1] * v->out[2]);
    double sum = 0;
    for (int64_t tap = 0; tap < c->taps; tap++) {
        const int64_t y =
            at / v->out[2] * v->stride[1] - v->before[1] + tap / v->kernel[2] * v->dilation[1];
        const int64_t column =
            at % v->out[2] * v->stride[2] - v->before[2] + tap % v->kernel[2] * v->dilation[2];
        if (y < 0 || column < 0 || y >= v->in[1] || column >= v->in[2]) {
            continue;
        }
        const uint16_t *from = x + ((image * v->in[1] + y) * v->in[2] + column) * v->channels_in;
        const uint16_t *by = w + (filter * c->taps + tap) * v->channels_in;
        for (int64_t k = 0; k < v->channels_in; k++) {
            sum += (double)rondo_f16_to_float(from[k]) * (double)rondo_f16_to_float(by[k]);
        }
    }
    return sum;
}

// ---- one problem ------------------------------------------------------------------------------

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    unsigned long part, part_count, seen, run_count, failed_count;
} world;

static void *put(world *w, const uint16_t *values, size_t count) {
    void *memory = NULL;
    MUST(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, count * 2, &memory));
    MUST(rondo_stream_copy(w->stream, memory, values, count * 2, RONDO_COPY_HOST_TO_DEVICE));
    MUST(rondo_stream_synchronize(w->stream));
    return memory;
}

// Launches the plan twice, on results that are poisoned; counts what differs from `want`.
static size_t run_plan(world *w, const rondo__kernel_request *request,
                       const rondo__cuda_convolution *c, size_t plan, void *const *inputs,
                       const double *want) {
    rondo__cuda_kernel *kernel = NULL;
    rondo__kernel *ready = NULL;
    const size_t count = (size_t)(c->pixels * c->window.channels_out);
    uint16_t *got = malloc(count * 2);
    void *y = NULL;
    MUST(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, count * 2, &y));
    MUST(rondo__cuda_begin_kernel(request, &kernel));
    rondo__cuda_add_tensor_plan(kernel, c, plan);
    MUST(rondo__cuda_finish_kernel(kernel, &ready));
    size_t wrong_count = got == NULL ? count : 0;
    for (int turn = 0; turn < 2 && got != NULL; turn++) {
        MUST(rondo_stream_fill(w->stream, y, 0xff, 1, count * 2));
        MUST(ready->launch(ready, w->stream, (const void *const *)inputs, &y, NULL));
        MUST(rondo_stream_copy(w->stream, got, y, count * 2, RONDO_COPY_DEVICE_TO_HOST));
        MUST(rondo_stream_synchronize(w->stream));
        for (size_t i = 0; i < count; i++) {
            const double value = (double)rondo_f16_to_float(got[i]);
            wrong_count += !(fabs(value - want[i]) <= 1e-3 + 2e-3 * fabs(want[i])) ? 1 : 0;
        }
    }
    rondo__kernel_destroy(ready);
    rondo_memory_free(w->device, y);
    free(got);
    return wrong_count;
}

static void run_problem(world *w, const problem *p) {
    const rondo__cuda_convolution c = describe(p);
    const size_t filters = (size_t)p->filters, pixels = (size_t)c.pixels;
    const size_t x_count = (size_t)(p->batch * p->height * p->width * p->channels);
    uint16_t *x = draw(x_count, 1), *bias = draw(filters, 1), *z = draw(pixels * filters, 2);
    uint16_t *weights = draw(filters * (size_t)c.weight_pitch, 0.1f);
    double *want = malloc(pixels * filters * sizeof *want);
    if (want == NULL) {
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < pixels * filters; i++) {
        double sum = sum_up(&c, x, weights, (int64_t)(i / filters), (int64_t)(i % filters));
        sum += p->has_bias ? (double)rondo_f16_to_float(bias[i % filters]) : 0;
        sum += p->has_residual ? (double)rondo_f16_to_float(z[i]) : 0;
        want[i] = activate(&c.epilogue, sum);
    }
    void *const inputs[] = {put(w, x, x_count), put(w, weights, filters * (size_t)c.weight_pitch),
                            put(w, bias, filters), put(w, z, pixels * filters)};
    char op_name[] = "planned";
    const rondo__op op = {.name = op_name, .def = rondo__op_lookup("", "Conv", 11)};
    const rondo__tensor_info info = {.dtype = RONDO_DTYPE_F16};
    const rondo__tensor_info infos[] = {info, info, info, info};
    const rondo__kernel_request request = {.device = w->device,
                                           .op = &op,
                                           .input_count = 4,
                                           .inputs = infos,
                                           .output_count = 1,
                                           .outputs = &info};
    rondo__cuda_kernel *kernel = NULL;
    MUST(rondo__cuda_begin_kernel(&request, &kernel));
    const size_t plan_count = rondo__cuda_count_tensor_plans(kernel, &c);
    for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
        for (size_t plan = 0; plan < plan_count; plan++) {
            if (w->seen++ % w->part_count != w->part) {
                continue;
            }
            char name[64];
            rondo__cuda_convolution planned = c;
            planned.w = is_fixed != 0 ? rondo__address_fixed(inputs[1]) : c.w;
            rondo__cuda_describe_tensor_plan(kernel, &planned, plan, name, sizeof name);
            const size_t wrong_count = run_plan(w, &request, &planned, plan, inputs, want);
            w->run_count++;
            w->failed_count += wrong_count > 0 ? 1 : 0;
            if (wrong_count > 0) {
                printf(
                    "FAILED: %zu of %zu wrong: %s, %lld x %lld x %lld channels, %lld filters of "
                    "%lld, "
                    "%s weights\n",
                    wrong_count, 2 * pixels * filters, name, (long long)p->height,
                    (long long)p->width, (long long)p->channels, (long long)p->filters,
                    (long long)p->kernel, is_fixed != 0 ? "fixed" : "fed");
            }
        }
    }
    rondo__kernel *none = NULL;
    MUST(rondo__cuda_finish_kernel(kernel, &none));
    rondo__kernel_destroy(none);
    for (size_t i = 0; i < 4; i++) {
        rondo_memory_free(w->device, inputs[i]);
    }
    free(x), free(weights), free(bias), free(z), free(want);
}

int main(int argc, char **argv) {
    world w = {.part_count = 1};
    if (argc > 1) {
        char *rest = NULL;
        w.part = strtoul(argv[1], &rest, 10) - 1;
        w.part_count = *rest == '/' ? strtoul(rest + 1, NULL, 10) : 0;
    }
    if (w.part >= w.part_count) {
        printf("usage: test_kernel_cuda_tensor_plans [PART/PARTS]\n");
        return EXIT_FAILURE;
    }
    int missing_count = 0;
    if (!gpu_is_present(&missing_count)) {
        return missing_count > 0 ? EXIT_FAILURE : 77;
    }
    MUST(rondo_device_open("cuda:0", &w.device));
    MUST(rondo_stream_create(w.device, NULL, &w.stream));
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        run_problem(&w, &problems[i]);
    }
    printf("%lu plans, %lu failed%s\n", w.run_count, w.failed_count,
           rondo__cuda_can_map_tensors(w.device) ? "" : " (without tensor maps)");
    rondo_stream_destroy(w.stream);
    rondo_device_release(w.device);
    return w.failed_count > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
