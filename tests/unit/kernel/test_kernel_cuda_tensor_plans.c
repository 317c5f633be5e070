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

#include "backend/cuda/driver/cuda_tensor_map.h"
#include "kernel/cuda/convolution/cuda_conv_tensor.h"
#include "kernel/cuda/convolution/cuda_conv_tma.h"
#include "op/fused/fused.h"
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

typedef enum row_norm {
    NOT_NORMALISED,
    NORM_SEEN,         // the kernel looks at the rows
    NORM_SEEN_SHOWN,   // and puts the normalised ones out
    NORM_GIVEN,        // it is told moments of them
    NORM_GIVEN_SHOWN,  //
} row_norm;

typedef struct problem {
    int64_t batch, height, width, channels, filters, kernel, stride, before, after, dilation;
    bool has_bias, has_residual;
    rondo__activation activation;
    row_norm norm;  // of a product's rows; the bias is then one of the offsets
    bool has_moments;
    int64_t second_channels, second_stride;  // of a second convolution by single pixels; 0: none
} problem;

// With height 1 windows are 1 x kernel; products have kernel 1. Extents that fill no tile, rows of
// results that begin anywhere (33 and 50 filters), windows that leave the image, rows that end
// within a tile, parts of 64 channels and parts of 64, 32 and 16 elements.
static const problem problems[] = {
    {1, 1, 130, 200, 96, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_GELU, .norm = NOT_NORMALISED},
    {1, 1, 37, 776, 33, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_NONE, .norm = NOT_NORMALISED},
    {1, 1, 70, 1544, 50, 1, 1, 0, 0, 1, false, false, RONDO__ACTIVATION_NONE,
     .norm = NOT_NORMALISED},
    {2, 7, 9, 64, 72, 3, 1, 1, 1, 1, true, true, RONDO__ACTIVATION_RELU, .norm = NOT_NORMALISED},
    {2, 9, 7, 128, 40, 3, 2, 1, 0, 1, true, false, RONDO__ACTIVATION_CLIP, .norm = NOT_NORMALISED},
    {1, 12, 11, 96, 33, 3, 1, 2, 2, 2, false, true, RONDO__ACTIVATION_NONE, .norm = NOT_NORMALISED},
    {3, 6, 5, 48, 64, 5, 1, 2, 2, 1, true, false, RONDO__ACTIVATION_NONE, .norm = NOT_NORMALISED},
    {1, 8, 8, 64, 64, 1, 2, 0, 0, 1, true, false, RONDO__ACTIVATION_NONE, .norm = NOT_NORMALISED},
    // Few channels and no border along x: taps beside each other are copied as one row.
    {2, 9, 11, 16, 72, 4, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_RELU, .norm = NOT_NORMALISED},
    {3, 10, 9, 32, 40, 3, 2, 0, 0, 1, true, false, RONDO__ACTIVATION_NONE, .norm = NOT_NORMALISED},
    {1, 8, 13, 8, 33, 4, 1, 0, 0, 1, false, true, RONDO__ACTIVATION_NONE, .norm = NOT_NORMALISED},
    {2, 1, 40, 16, 40, 3, 1, 0, 0, 1, true, false, RONDO__ACTIVATION_NONE, .norm = NOT_NORMALISED},
    // One step, and many tiles.
    {1, 1, 1030, 64, 136, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_RELU,
     .norm = NOT_NORMALISED},
    // Enough tiles that plans without a split, and with few parts, are among them.
    {1, 1, 130, 200, 680, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_NONE,
     .norm = NOT_NORMALISED},
    {1, 12, 11, 64, 680, 3, 1, 1, 1, 1, true, true, RONDO__ACTIVATION_RELU, .norm = NOT_NORMALISED},
    // Moments of the results' rows; rows that are normalised, by moments and without.
    {1, 1, 130, 200, 96, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_GELU, .has_moments = true},
    {1, 1, 67, 768, 160, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_NONE, .has_moments = true},
    {1, 1, 130, 192, 96, 1, 1, 0, 0, 1, false, true, RONDO__ACTIVATION_GELU, .norm = NORM_SEEN},
    {1, 1, 37, 800, 50, 1, 1, 0, 0, 1, false, false, RONDO__ACTIVATION_NONE,
     .norm = NORM_SEEN_SHOWN},
    {1, 1, 130, 192, 96, 1, 1, 0, 0, 1, false, true, RONDO__ACTIVATION_GELU, .norm = NORM_GIVEN},
    {1, 1, 37, 800, 50, 1, 1, 0, 0, 1, false, false, RONDO__ACTIVATION_NONE,
     .norm = NORM_GIVEN_SHOWN},
    {1, 1, 70, 768, 680, 1, 1, 0, 0, 1, false, true, RONDO__ACTIVATION_RELU,
     .norm = NORM_GIVEN_SHOWN},
    // A second convolution by single pixels.
    {2, 7, 9, 72, 40, 1, 1, 0, 0, 1, true, false, RONDO__ACTIVATION_RELU, .second_channels = 48,
     .second_stride = 2},
    {1, 12, 11, 64, 200, 1, 1, 0, 0, 1, true, true, RONDO__ACTIVATION_NONE, .second_channels = 136,
     .second_stride = 1},
    {2, 9, 11, 64, 72, 3, 2, 1, 1, 1, true, false, RONDO__ACTIVATION_RELU, .second_channels = 32,
     .second_stride = 2},
    {1, 9, 9, 32, 72, 3, 1, 1, 1, 1, false, false, RONDO__ACTIVATION_NONE, .second_channels = 64,
     .second_stride = 1},
};

static rondo__cuda_convolution describe(const problem *p) {
    const int64_t reach = (p->kernel - 1) * p->dilation + 1;
    const int64_t out_height =
        p->height == 1 ? 1 : (p->height + p->before + p->after - reach) / p->stride + 1;
    const int64_t out_width = (p->width + p->before + p->after - reach) / p->stride + 1;
    rondo__cuda_convolution c = {
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
    if (p->second_channels > 0) {
        c.has_second = true;
        c.second = (rondo__window){
            .channels_last = true,
            .spatial_rank = 2,
            .batch = p->batch,
            .channels_in = p->second_channels,
            .channels_out = p->filters,
            .in = {1, (out_height - 1) * p->second_stride + 1, out_width * p->second_stride},
            .out = {1, out_height, out_width},
            .kernel = {1, 1, 1},
            .stride = {1, p->second_stride, p->second_stride},
            .dilation = {1, 1, 1},
        };
        c.second_at = rondo__cuda_align_second(&c.window);
        c.weight_pitch = c.second_at + p->second_channels;
    }
    return c;
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
        const uint16_t *by = w + filter * c->weight_pitch + tap * v->channels_in;
        for (int64_t k = 0; k < v->channels_in; k++) {
            sum += (double)rondo_f16_to_float(from[k]) * (double)rondo_f16_to_float(by[k]);
        }
    }
    return sum;
}

static double sum_second(const rondo__cuda_convolution *c, const uint16_t *x, const uint16_t *w,
                         int64_t pixel, int64_t filter) {
    const rondo__window *v = &c->second;
    const int64_t at = pixel % (v->out[1] * v->out[2]), image = pixel / (v->out[1] * v->out[2]);
    const int64_t y = at / v->out[2] * v->stride[1], column = at % v->out[2] * v->stride[2];
    const uint16_t *from = x + ((image * v->in[1] + y) * v->in[2] + column) * v->channels_in;
    const uint16_t *by = w + filter * c->weight_pitch + c->second_at;
    double sum = 0;
    for (int64_t k = 0; k < v->channels_in; k++) {
        sum += (double)rondo_f16_to_float(from[k]) * (double)rondo_f16_to_float(by[k]);
    }
    return sum;
}

// ---- one problem ------------------------------------------------------------------------------

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    unsigned long part, part_count, seen, run_count, failed_count;
} world;

static void *put_bytes(world *w, const void *values, size_t bytes) {
    void *memory = NULL;
    MUST(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, bytes, &memory));
    MUST(rondo_stream_copy(w->stream, memory, values, bytes, RONDO_COPY_HOST_TO_DEVICE));
    MUST(rondo_stream_synchronize(w->stream));
    return memory;
}

static void *put(world *w, const uint16_t *values, size_t count) {
    return put_bytes(w, values, count * 2);
}

// ---- rows that are normalised, and moments of results -----------------------------------------

// What there is on the device beside the operands, and what the normalised rows are.
typedef struct beside {
    rondo__cuda_row_norm norm;
    void *memory[7];
    void *moments, *normal;  // that a plan writes, or NULL
    double *rows;            // NULL: not normalised
    float *offsets;
    double scale;
} beside;

static void find_moments(const uint16_t *x, int64_t count, double *out_mean, double *out_square) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < count; i++) {
        mean += (double)rondo_f16_to_float(x[i]) / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        const double apart = (double)rondo_f16_to_float(x[i]) - mean;
        square += apart * apart;
    }
    *out_mean = mean;
    *out_square = square;
}

// Rows of x far from zero, so that a mean in single precision counts.
static void move_rows(uint16_t *x, size_t count) {
    for (size_t i = 0; i < count; i++) {
        x[i] = rondo_f16_from_float(rondo_f16_to_float(x[i]) + 2.0f);
    }
}

static void init_norm(world *w, const problem *p, const uint16_t *x, const uint16_t *weights,
                      beside *b) {
    const int64_t rows = p->width, length = p->channels, parts = length / RONDO__MOMENT_COLUMNS;
    const bool is_given = p->norm >= NORM_GIVEN;
    const bool is_shown = p->norm == NORM_SEEN_SHOWN || p->norm == NORM_GIVEN_SHOWN;
    uint16_t *gain = draw((size_t)length, 1), *shift = draw((size_t)length, 1);
    float *sums = calloc((size_t)p->filters, sizeof *sums);
    float *moments = calloc((size_t)(rows * (parts + 1) * 2), sizeof *moments);
    const float scale = 0.25f;
    b->rows = calloc((size_t)(rows * 2), sizeof *b->rows);
    b->offsets = calloc((size_t)p->filters, sizeof *b->offsets);
    if (sums == NULL || moments == NULL || b->rows == NULL || b->offsets == NULL) {
        exit(EXIT_FAILURE);
    }
    for (int64_t n = 0; n < p->filters; n++) {
        double sum = 0;
        for (int64_t k = 0; k < length; k++) {
            sum += (double)rondo_f16_to_float(weights[n * length + k]);
        }
        sums[n] = (float)sum;
        b->offsets[n] = (float)(n % 7) / 4 - 1;
    }
    for (int64_t row = 0; row < rows; row++) {
        double mean, square;
        find_moments(x + row * length, length, &mean, &square);
        b->rows[2 * row] = mean;
        b->rows[2 * row + 1] = 1 / sqrt(square / (double)length + 1e-5);
        for (int64_t i = 0; i < parts; i++) {
            find_moments(x + row * length + i * RONDO__MOMENT_COLUMNS, RONDO__MOMENT_COLUMNS, &mean,
                         &square);
            moments[(row * parts + i) * 2] = (float)mean;
            moments[(row * parts + i) * 2 + 1] = (float)square;
        }
    }
    b->scale = (double)scale;
    b->memory[0] = put_bytes(w, sums, (size_t)p->filters * sizeof *sums);
    b->memory[1] = put_bytes(w, b->offsets, (size_t)p->filters * sizeof *sums);
    b->memory[2] = put_bytes(w, &scale, sizeof scale);
    b->memory[3] = put(w, gain, (size_t)length);
    b->memory[4] = put(w, shift, (size_t)length);
    b->memory[5] = put_bytes(w, moments, (size_t)(rows * (parts + 1) * 2) * sizeof *moments);
    b->memory[6] = put(w, x, (size_t)(rows * length));
    b->normal = is_shown ? b->memory[6] : NULL;
    b->norm = (rondo__cuda_row_norm){.dtype = RONDO_DTYPE_F16,
                                     .gain_dtype = RONDO_DTYPE_F16,
                                     .rows = rows,
                                     .length = length,
                                     .x = rondo__address_input(0),
                                     .gain = rondo__address_fixed(b->memory[3]),
                                     .shift = rondo__address_fixed(b->memory[4]),
                                     .has_shift = true,
                                     .epsilon = 1e-5f,
                                     .is_wanted = is_shown,
                                     .normal = rondo__address_fixed(b->memory[6]),
                                     .has_moments = is_given,
                                     .moments = rondo__address_fixed(b->memory[5]),
                                     .weight_sums = rondo__address_fixed(b->memory[0]),
                                     .offsets = rondo__address_fixed(b->memory[1]),
                                     .weight_scale = rondo__address_fixed(b->memory[2])};
    free(gain), free(shift), free(sums), free(moments);
}

// Of a product with normalised rows: (x - mean) / deviation times the weights, and the offset.
static double normalise_sum(const beside *b, const uint16_t *weights, int64_t length, int64_t row,
                            int64_t filter, double sum) {
    double of_weights = 0;
    for (int64_t k = 0; k < length; k++) {
        of_weights += (double)rondo_f16_to_float(weights[filter * length + k]);
    }
    return (sum - b->rows[2 * row] * of_weights) * b->rows[2 * row + 1] * b->scale +
           (double)b->offsets[filter];
}

// How many of the moments are not those of the results.
static size_t check_moments(world *w, const beside *b, const rondo__cuda_convolution *c,
                            const uint16_t *results) {
    const size_t count = (size_t)(c->pixels * c->window.channels_out / RONDO__MOMENT_COLUMNS);
    float *moments = malloc(count * 2 * sizeof *moments);
    size_t wrong_count = moments == NULL ? count : 0;
    if (moments != NULL) {
        MUST(rondo_stream_copy(w->stream, moments, b->moments, count * 2 * sizeof *moments,
                               RONDO_COPY_DEVICE_TO_HOST));
        MUST(rondo_stream_synchronize(w->stream));
    }
    for (size_t i = 0; moments != NULL && i < count; i++) {
        double mean, square;
        find_moments(results + i * RONDO__MOMENT_COLUMNS, RONDO__MOMENT_COLUMNS, &mean, &square);
        wrong_count += !(fabs((double)moments[2 * i] - mean) <= 1e-5 * (1 + fabs(mean)) &&
                         fabs((double)moments[2 * i + 1] - square) <= 1e-4 * (1 + square))
                           ? 1
                           : 0;
    }
    free(moments);
    return wrong_count;
}

static size_t check_normal(world *w, const beside *b, const uint16_t *x, const uint16_t *gain,
                           const uint16_t *shift) {
    const size_t length = (size_t)b->norm.length, count = (size_t)b->norm.rows * length;
    uint16_t *normal = malloc(count * 2);
    size_t wrong_count = normal == NULL ? count : 0;
    if (normal != NULL) {
        MUST(rondo_stream_copy(w->stream, normal, b->normal, count * 2, RONDO_COPY_DEVICE_TO_HOST));
        MUST(rondo_stream_synchronize(w->stream));
    }
    for (size_t i = 0; normal != NULL && i < count; i++) {
        const double *row = b->rows + i / length * 2;
        const double want = ((double)rondo_f16_to_float(x[i]) - row[0]) * row[1] *
                                (double)rondo_f16_to_float(gain[i % length]) +
                            (double)rondo_f16_to_float(shift[i % length]);
        const double got = (double)rondo_f16_to_float(normal[i]);
        wrong_count += !(fabs(got - want) <= 1e-3 + 2e-3 * fabs(want)) ? 1 : 0;
    }
    free(normal);
    return wrong_count;
}

// Reads back what the device has of the norm, too, and poisons what the plan is to write.
static size_t check_beside(world *w, const beside *b, const rondo__cuda_convolution *c,
                           const uint16_t *x, const uint16_t *results) {
    size_t wrong_count = b->moments != NULL ? check_moments(w, b, c, results) : 0;
    if (b->normal != NULL) {
        uint16_t *lists = malloc((size_t)b->norm.length * 4);
        uint16_t *shift = lists + b->norm.length;
        if (lists == NULL) {
            exit(EXIT_FAILURE);
        }
        MUST(rondo_stream_copy(w->stream, lists, b->memory[3], (size_t)b->norm.length * 2,
                               RONDO_COPY_DEVICE_TO_HOST));
        MUST(rondo_stream_copy(w->stream, shift, b->memory[4], (size_t)b->norm.length * 2,
                               RONDO_COPY_DEVICE_TO_HOST));
        MUST(rondo_stream_synchronize(w->stream));
        wrong_count += check_normal(w, b, x, lists, shift);
        free(lists);
    }
    return wrong_count;
}

static void poison_beside(world *w, const beside *b, const rondo__cuda_convolution *c) {
    if (b->moments != NULL) {
        MUST(rondo_stream_fill(
            w->stream, b->moments, 0xff, 1,
            (size_t)(c->pixels * c->window.channels_out) * 8 / RONDO__MOMENT_COLUMNS));
    }
    if (b->normal != NULL) {
        MUST(rondo_stream_fill(w->stream, b->normal, 0xff, 1,
                               (size_t)(b->norm.rows * b->norm.length) * 2));
    }
}

// Launches the plan twice, on results that are poisoned; counts what differs from `want`.
static size_t run_plan(world *w, const rondo__kernel_request *request,
                       const rondo__cuda_convolution *c, size_t plan, void *const *inputs,
                       const beside *b, const uint16_t *x, const double *want) {
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
        poison_beside(w, b, c);
        MUST(ready->launch(ready, w->stream, (const void *const *)inputs, &y, NULL));
        MUST(rondo_stream_copy(w->stream, got, y, count * 2, RONDO_COPY_DEVICE_TO_HOST));
        MUST(rondo_stream_synchronize(w->stream));
        for (size_t i = 0; i < count; i++) {
            const double value = (double)rondo_f16_to_float(got[i]);
            wrong_count += !(fabs(value - want[i]) <= 1e-3 + 2e-3 * fabs(want[i])) ? 1 : 0;
        }
        wrong_count += check_beside(w, b, c, x, got);
    }
    rondo__kernel_destroy(ready);
    rondo_memory_free(w->device, y);
    free(got);
    return wrong_count;
}

// Whether the plan is for a product of no more steps than it has buffers, by a block for each
// multiprocessor at most, though the same tile with more buffers has the same code.
static bool piles_up(const problem *p, size_t pixels, const char *name) {
    const size_t tiles = (pixels + 63) / 64 * (((size_t)p->filters + 31) / 32);
    size_t split = 0;
    return sscanf(name, "tma 64x32 stages 6 split %zu", &split) == 1 && p->height == 1 &&
           p->kernel == 1 && p->second_channels == 0 && p->channels <= 6 * 64 &&
           tiles * split <= 132;
}

static void run_problem(world *w, const problem *p) {
    rondo__cuda_convolution c = describe(p);
    beside b = {0};
    const size_t filters = (size_t)p->filters, pixels = (size_t)c.pixels;
    const size_t x_count = (size_t)(p->batch * p->height * p->width * p->channels);
    uint16_t *x = draw(x_count, 1), *bias = draw(filters, 1), *z = draw(pixels * filters, 2);
    uint16_t *weights = draw(filters * (size_t)c.weight_pitch, 0.1f);
    double *want = malloc(pixels * filters * sizeof *want);
    if (want == NULL) {
        exit(EXIT_FAILURE);
    }
    if (p->norm != NOT_NORMALISED) {
        move_rows(x, x_count);
        init_norm(w, p, x, weights, &b);
        c.norm = &b.norm;
    }
    const size_t second_count =
        (size_t)(p->batch * c.second.in[1] * c.second.in[2] * p->second_channels);
    uint16_t *second = draw(second_count + 1, 1);
    void *second_memory = NULL;
    if (c.has_second) {
        for (size_t f = 0; f < filters; f++) {  // nothing lies between the two
            for (int64_t k = c.taps * p->channels; k < c.second_at; k++) {
                weights[(int64_t)f * c.weight_pitch + k] = 0;
            }
        }
        second_memory = put(w, second, second_count);
        c.second_x = rondo__address_fixed(second_memory);
    }
    if (p->has_moments) {
        b.moments = put_bytes(w, z, pixels * filters / RONDO__MOMENT_COLUMNS * 8);
        c.epilogue.has_moments = true;
        c.epilogue.moments = rondo__address_fixed(b.moments);
    }
    for (size_t i = 0; i < pixels * filters; i++) {
        double sum = sum_up(&c, x, weights, (int64_t)(i / filters), (int64_t)(i % filters));
        sum += c.has_second
                   ? sum_second(&c, second, weights, (int64_t)(i / filters), (int64_t)(i % filters))
                   : 0;
        sum = b.rows == NULL ? sum
                             : normalise_sum(&b, weights, p->channels, (int64_t)(i / filters),
                                             (int64_t)(i % filters), sum);
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
            const size_t wrong_count = run_plan(w, &request, &planned, plan, inputs, &b, x, want);
            if (piles_up(p, pixels, name)) {
                printf("FAILED: blocks of %s could hold more memory\n", name);
                w->failed_count++;
            }
            w->run_count++;
            w->failed_count += wrong_count > 0 ? 1 : 0;
            if (wrong_count > 0) {
                printf(
                    "FAILED: %zu of %zu wrong: %s, %lld x %lld x %lld channels, %lld filters of "
                    "%lld, "
                    "%s weights, norm %d, moments %d\n",
                    wrong_count, 2 * pixels * filters, name, (long long)p->height,
                    (long long)p->width, (long long)p->channels, (long long)p->filters,
                    (long long)p->kernel, is_fixed != 0 ? "fixed" : "fed", (int)p->norm,
                    (int)p->has_moments);
            }
        }
    }
    rondo__kernel *none = NULL;
    MUST(rondo__cuda_finish_kernel(kernel, &none));
    rondo__kernel_destroy(none);
    for (size_t i = 0; i < 4; i++) {
        rondo_memory_free(w->device, inputs[i]);
    }
    for (size_t i = 0; i < sizeof b.memory / sizeof b.memory[0]; i++) {
        rondo_memory_free(w->device, b.memory[i]);
    }
    rondo_memory_free(w->device, b.moments);
    rondo_memory_free(w->device, second_memory);
    free(second);
    free(x), free(weights), free(bias), free(z), free(want), free(b.rows), free(b.offsets);
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
