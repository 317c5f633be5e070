// kernel/host/host_row_convolution.c — convolutions along one axis on f32, with a constant weight,
// no groups and no dilation, as one product with our tiles.
//
// With channels last, what a window sees is one run of kernel * channels numbers, and the next
// window's run starts stride * channels further on: rows of a matrix that overlap. So
//
//   y [positions, filters] = rows of x [positions, kernel * channels] x w' + b + z
//
// needs no copy of each window. x is laid out with channels last and its padding once; y is turned
// back where channels come first. oneDNN is made for images: on such rows it reaches a fifth of
// this (bench/results/host_kernels.md).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/thread_count.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/packed_matrix.h"
#include "op/convolution.h"
#include "op/fused.h"

typedef struct row_convolution {
    rondo__host_kernel head;
    rondo__packed_matrix matrix;  // [kernel * channels, filters]
    bool channels_last;
    rondo__activation activation;
    float alpha, beta;
    int64_t batch, channels, filters;
    int64_t width, padded_width, pad_begin, stride, positions;
    int64_t part_positions, part_filters;  // of one unit of work
    size_t result_at;                      // in the workspace, in floats: y with channels last
} row_convolution;

// ---- running ----------------------------------------------------------------------------------

// to [columns, rows] = from [rows, columns]
static void turn(const float *from, int64_t rows, int64_t columns, float *to) {
    enum { BLOCK = 16 };
    for (int64_t first = 0; first < rows; first += BLOCK) {
        const int64_t end = first + BLOCK < rows ? first + BLOCK : rows;
        for (int64_t column = 0; column < columns; ++column) {
            for (int64_t row = first; row < end; ++row) {
                to[column * rows + row] = from[row * columns + column];
            }
        }
    }
}

static int64_t count_parts(int64_t count, int64_t part) {
    return (count + part - 1) / part;
}

static void run_part(const row_convolution *kernel, int64_t part, const float *rows,
                     const float *bias, const float *z, float *y) {
    const int64_t width = count_parts(kernel->filters, kernel->part_filters);
    const int64_t first = part / width * kernel->part_positions;
    const int64_t column = part % width * kernel->part_filters;
    const int64_t rest = kernel->positions - first, rest_columns = kernel->filters - column;
    const int64_t count = rest < kernel->part_positions ? rest : kernel->part_positions;
    const int64_t at = first * kernel->filters + column;
    rondo__packed_matrix matrix = kernel->matrix;
    matrix.panels += column * matrix.k;
    matrix.n = rest_columns < kernel->part_filters ? rest_columns : kernel->part_filters;
    rondo__packed_multiply(&matrix, rows + first * kernel->stride * kernel->channels,
                           kernel->stride * kernel->channels, count,
                           bias != NULL ? bias + column : NULL, z != NULL ? z + at : NULL,
                           kernel->filters, y + at, kernel->filters);
    for (int64_t row = 0; row < count; ++row) {
        rondo__simd_activate(matrix.simd, kernel->activation, kernel->alpha, kernel->beta,
                             y + at + row * kernel->filters, matrix.n);
    }
}

static rondo_status run_row_convolution(rondo__host_kernel *head, const void *const *inputs,
                                        void *const *outputs, void *workspace) {
    const row_convolution *kernel = (const row_convolution *)head;
    const float *bias = head->input_count > 2 ? inputs[2] : NULL;
    const float *z = head->input_count > 3 ? inputs[3] : NULL;
    const int64_t image = kernel->width * kernel->channels;
    const int64_t result = kernel->positions * kernel->filters;
    const int64_t parts = count_parts(kernel->positions, kernel->part_positions) *
                          count_parts(kernel->filters, kernel->part_filters);
    float *rows = workspace;
    memset(rows, 0, (size_t)(kernel->padded_width * kernel->channels) * sizeof(float));
    for (int64_t n = 0; n < kernel->batch; ++n) {
        const float *x = (const float *)inputs[0] + n * image;
        float *inside = rows + kernel->pad_begin * kernel->channels;
        float *out = (float *)outputs[0] + n * result;
        float *y = kernel->channels_last ? out : (float *)workspace + kernel->result_at;
        if (kernel->channels_last || kernel->channels == 1) {
            memcpy(inside, x, (size_t)image * sizeof(float));
        } else {
            turn(x, kernel->channels, kernel->width, inside);
        }
        RONDO_PARALLEL(parallel for schedule(static) if (parts > 1))
        for (int64_t part = 0; part < parts; ++part) {
            run_part(kernel, part, rows, bias, z != NULL ? z + n * result : NULL, y);
        }
        if (!kernel->channels_last) {
            turn(y, kernel->positions, kernel->filters, out);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

typedef struct weight_form {
    char kind[8];
    int64_t width, channels, filters, taps;
} weight_form;

// From [filters, channels, taps] to panels of [taps * channels, filters].
static rondo_status fill_weights(const rondo__weight_want *want, void *bytes) {
    const weight_form *form = want->form;
    const float *from = want->constant->data;
    float *to = bytes;
    for (int64_t first = 0; first < form->filters; first += form->width) {
        for (int64_t p = 0; p < form->taps * form->channels; ++p, to += form->width) {
            const int64_t tap = p / form->channels, c = p % form->channels;
            for (int64_t m = first; m < form->filters && m < first + form->width; ++m) {
                to[m - first] = from[(m * form->channels + c) * form->taps + tap];
            }
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status pack_weights(const rondo__kernel_request *request, int64_t taps,
                                 row_convolution *kernel) {
    const rondo__simd *simd = rondo__simd_get();
    const int64_t k = taps * kernel->channels;
    const int64_t panel_count = (kernel->filters + simd->panel_columns - 1) / simd->panel_columns;
    const weight_form form = {.kind = "rowconv",
                              .width = simd->panel_columns,
                              .channels = kernel->channels,
                              .filters = kernel->filters,
                              .taps = taps};
    const rondo__weight_want want = {
        .constant = request->inputs[1].constant,
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)(panel_count * k * simd->panel_columns) * sizeof(float),
        .fill = fill_weights,
    };
    void *panels = NULL;
    const rondo_status status = rondo__weight_list_add(request->weights, &want, &panels);
    kernel->matrix =
        (rondo__packed_matrix){.simd = simd, .k = k, .n = kernel->filters, .panels = panels};
    return status;
}

// The one axis along which the window moves; -1: there are several.
static int32_t find_axis(const rondo__window *window) {
    int32_t axis = 0;
    for (int32_t i = 0; i < window->rank; ++i) {
        if (window->input[i] == 1 && window->output[i] == 1 && window->kernel[i] == 1) {
            continue;
        }
        if (axis != 0) {
            return -1;
        }
        axis = i + 1;
    }
    return axis > 0 ? axis - 1 : 0;
}

// Among threads by positions, or, where there are few, by filters.
static void divide(row_convolution *kernel) {
    const rondo__simd *simd = kernel->matrix.simd;
    const double weights = (double)kernel->matrix.k * (double)kernel->filters;
    const bool is_parallel =
        (double)kernel->positions * weights > RONDO__HOST_PARALLEL_MULTIPLY_ADDS ||
        weights * sizeof(float) > 4 * RONDO__HOST_PARALLEL_BYTES;
    const int64_t threads = is_parallel ? rondo__host_get_thread_count() : 1;
    const int64_t blocks = count_parts(kernel->positions, simd->tile_rows);
    const int64_t panels = count_parts(kernel->filters, simd->panel_columns);
    const bool is_by_filters = blocks < threads;
    kernel->part_positions =
        is_by_filters ? kernel->positions : count_parts(blocks, threads) * simd->tile_rows;
    kernel->part_filters =
        is_by_filters ? count_parts(panels, threads) * simd->panel_columns : kernel->filters;
    const int64_t floats = (kernel->padded_width * kernel->channels + 15) / 16 * 16;
    kernel->result_at = (size_t)floats;
    kernel->head.base.workspace_bytes =
        (size_t)(floats + (kernel->channels_last ? 0 : kernel->positions * kernel->filters)) *
        sizeof(float);
}

static bool has_input(const rondo__kernel_request *request, size_t input) {
    return input < request->input_count && request->inputs[input].dtype != RONDO_DTYPE_NONE;
}

// Along which axis; UNSUPPORTED without a record: not such a convolution.
static rondo_status read_request(const rondo__kernel_request *request,
                                 rondo__convolution *out_shape, int32_t *out_axis) {
    const bool channels_last = rondo__op_get_int(request->op, "channels_last", 0) != 0;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || request->inputs[1].constant == NULL ||
        (has_input(request, 3) && !channels_last)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__convolution_init(request->op, &request->inputs[0].shape,
                                            &request->inputs[1].shape, channels_last, out_shape));
    *out_axis = find_axis(&out_shape->window);
    return *out_axis < 0 || out_shape->group != 1 || out_shape->window.dilation[*out_axis] != 1
               ? RONDO_STATUS_UNSUPPORTED
               : RONDO_STATUS_OK;
}

bool rondo__host_takes_row_convolution(const rondo__kernel_request *request) {
    rondo__convolution shape;
    int32_t axis;
    return read_request(request, &shape, &axis) == RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_row_convolution(const rondo__kernel_request *request,
                                                 rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    rondo__convolution shape;
    int32_t axis;
    RETURN_IF_ERROR(read_request(request, &shape, &axis));
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(row_convolution), "simd",
                                                         run_row_convolution, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    row_convolution *kernel = (row_convolution *)head;
    const rondo__window *window = &shape.window;
    kernel->channels_last = rondo__op_get_int(op, "channels_last", 0) != 0;
    kernel->activation =
        (rondo__activation)rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    kernel->alpha = rondo__op_get_float(op, "alpha", 0.0f);
    kernel->beta = rondo__op_get_float(op, "beta", 0.0f);
    kernel->batch = shape.batch;
    kernel->channels = shape.channels;
    kernel->filters = shape.filters;
    kernel->width = window->input[axis];
    kernel->pad_begin = window->pad_begin[axis];
    kernel->padded_width = window->pad_begin[axis] + window->input[axis] + window->pad_end[axis];
    kernel->stride = window->stride[axis];
    kernel->positions = window->output[axis];
    const rondo_status status = pack_weights(request, window->kernel[axis], kernel);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    divide(kernel);
    if (has_input(request, 3)) {  // a tile reads its part of z before it writes y
        head->base.in_place_inputs = UINT64_C(1) << 3;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
