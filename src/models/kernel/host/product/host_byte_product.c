// kernel/host/product/host_byte_product.c — MatMulInteger and QLinearMatMul with the tiles of
// simd_byte_tile.c.
//
// A constant b is packed once for the program, with the sums of its columns; another one in each
// run. Zero points may come with each run: one for all, or one for each row of a or column of b.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/byte_matrix.h"
#include "kernel/host/product/product_form.h"

enum {
    NO_INPUT = 32,
};

typedef struct byte_product_kernel {
    rondo__host_kernel head;
    rondo__product product;
    rondo__byte_form form;
    bool is_a_signed;
    uint32_t a, b, a_zero, b_zero;  // inputs; NO_INPUT: absent
    int64_t a_zero_count, b_zero_count;
    int64_t a_rows;                                  // of all matrices a
    int64_t b_count;                                 // matrices
    const void *packed;                              // constant b; NULL: packed in each run
    size_t zeros_at, packed_at, sums_at, scales_at;  // work; rows of a come first
    // QLinearMatMul
    bool is_requantized;
    bool is_y_signed;
    int64_t a_scale_count, b_scale_count;
} byte_product_kernel;

enum { QLINEAR_A_SCALE = 1, QLINEAR_B_SCALE = 4, QLINEAR_Y_SCALE = 6, QLINEAR_Y_ZERO = 7 };

static const void *get_input(const byte_product_kernel *kernel, const void *const *inputs,
                             uint32_t input) {
    (void)kernel;
    return input == NO_INPUT ? NULL : inputs[input];
}

// Sums to steps of y.
typedef struct requantizing {
    const byte_product_kernel *kernel;
    const void *const *inputs;
    const int32_t *sums;
    float *scales;
    uint8_t *y;
} requantizing;

static void requantize_rows(void *data, int64_t first, int64_t end) {
    const requantizing *job = data;
    const byte_product_kernel *kernel = job->kernel;
    const void *const *inputs = job->inputs;
    const float *a_scale = inputs[QLINEAR_A_SCALE];
    const int64_t n = kernel->product.n;
    const float y_scale = *(const float *)inputs[QLINEAR_Y_SCALE];
    const int32_t y_zero =
        rondo__byte_get((const uint8_t *)inputs[QLINEAR_Y_ZERO], kernel->is_y_signed, 0);
    for (int64_t r = first; r < end; ++r) {
        const float row_scale = a_scale[r % kernel->a_scale_count];
        kernel->form.simd->requantize(job->sums + r * n, 0, row_scale, job->scales, y_scale, y_zero,
                                      kernel->is_y_signed, n, job->y + r * n);
    }
}

static void requantize(const byte_product_kernel *kernel, const void *const *inputs,
                       const int32_t *sums, float *scales, uint8_t *y) {
    const float *b_scale = inputs[QLINEAR_B_SCALE];
    const int64_t n = kernel->product.n, rows = kernel->product.batch_count * kernel->product.m;
    for (int64_t c = 0; c < n; ++c) {
        scales[c] = b_scale[kernel->b_scale_count == 1 ? 0 : c];
    }
    requantizing job = {kernel, inputs, sums, scales, y};
    rondo__workers_loop(rows, rondo__host_get_grain(rows, (double)(rows * n) * 5.0, 0.0),
                        requantize_rows, &job);
}

typedef struct packing {
    const byte_product_kernel *kernel;
    const uint8_t *b;
    char *to;
} packing;

static void pack_panels(void *data, int64_t first, int64_t end) {
    const packing *p = data;
    const rondo__byte_form *form = &p->kernel->form;
    for (int64_t i = first; i < end; ++i) {
        const int64_t matrix = i / form->panel_count;
        rondo__byte_pack_panel(form, p->b + matrix * form->k * form->n, form->n, 1,
                               i % form->panel_count, p->to + (size_t)matrix * form->matrix_bytes);
    }
}

static const void *pack(const byte_product_kernel *kernel, const uint8_t *b, char *to) {
    const rondo__byte_form *form = &kernel->form;
    if (kernel->packed != NULL) {
        return kernel->packed;
    }
    packing p = {kernel, b, to};
    const int64_t panels = kernel->b_count * form->panel_count;
    const double bytes = (double)(panels * form->k) * (double)form->simd->panel_columns * 4.0;
    rondo__workers_loop(panels, rondo__host_get_grain(panels, bytes, 0.0), pack_panels, &p);
    return to;
}

static rondo_status run_product(rondo__host_kernel *head, const void *const *inputs,
                                void *const *outputs, void *workspace) {
    const byte_product_kernel *kernel = (const byte_product_kernel *)head;
    const rondo__product *product = &kernel->product;
    const rondo__byte_form *form = &kernel->form;
    char *work = workspace;
    int32_t *zeros = (int32_t *)(void *)(work + kernel->zeros_at);
    const bool has_zeros = rondo__byte_spread_zeros(form, get_input(kernel, inputs, kernel->b_zero),
                                                    kernel->b_zero_count, zeros);
    const char *matrices = pack(kernel, inputs[kernel->b], work + kernel->packed_at);
    const rondo__byte_rows rows = rondo__byte_rows_prepare(
        form->simd, inputs[kernel->a], kernel->is_a_signed, form->k, kernel->a_rows,
        get_input(kernel, inputs, kernel->a_zero), kernel->a_zero_count, has_zeros, work);
    int32_t *y = kernel->is_requantized ? (int32_t *)(void *)(work + kernel->sums_at) : outputs[0];
    for (int64_t batch = 0; batch < product->batch_count; ++batch) {
        int64_t a_matrix, b_matrix;
        rondo__product_locate_batch(product, batch, &a_matrix, &b_matrix);
        const rondo__byte_product one = {
            .form = form,
            .matrix = matrices + (size_t)b_matrix * form->matrix_bytes,
            .b_zeros = has_zeros ? zeros : NULL,
            .a = &rows,
            .first = a_matrix * product->m,
            .rows = product->m,
            .y = y + batch * product->m * product->n,
            .y_row = product->n,
        };
        rondo__byte_product_run(&one);
    }
    if (kernel->is_requantized) {
        requantize(kernel, inputs, y, (float *)(void *)(work + kernel->scales_at), outputs[0]);
    }
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

// How many values an optional scale or zero point has: one, or one for each of `lines`; 0 for
// neither.
static int64_t count_values(const rondo__kernel_request *request, size_t input, int64_t lines) {
    if (!rondo__host_has_input(request, input)) {
        return 1;
    }
    const int64_t count = rondo_shape_get_count(&request->inputs[input].shape);
    return count == 1 || count == lines ? count : 0;
}

static bool read_inputs(const rondo__kernel_request *request, byte_product_kernel *kernel) {
    kernel->is_requantized = request->op->def->id == RONDO__OP_QLinearMatMul;
    kernel->a = 0;
    kernel->b = kernel->is_requantized ? 3 : 1;
    kernel->a_zero = 2;
    kernel->b_zero = kernel->is_requantized ? 5 : 3;
    const int64_t m = kernel->product.m, n = kernel->product.n;
    kernel->a_zero_count = count_values(request, kernel->a_zero, m);
    kernel->b_zero_count = count_values(request, kernel->b_zero, n);
    if (kernel->is_requantized) {
        for (size_t i = QLINEAR_A_SCALE; i <= QLINEAR_Y_SCALE; i++) {
            const bool is_scale =
                i == QLINEAR_A_SCALE || i == QLINEAR_B_SCALE || i == QLINEAR_Y_SCALE;
            if (is_scale && request->inputs[i].dtype != RONDO_DTYPE_F32) {
                return false;
            }
        }
        kernel->a_scale_count = count_values(request, QLINEAR_A_SCALE, m);
        kernel->b_scale_count = count_values(request, QLINEAR_B_SCALE, n);
        kernel->is_y_signed = request->inputs[QLINEAR_Y_ZERO].dtype == RONDO_DTYPE_I8;
        if (kernel->a_scale_count == 0 || kernel->b_scale_count == 0) {
            return false;
        }
    }
    kernel->a_zero = rondo__host_has_input(request, kernel->a_zero) ? kernel->a_zero : NO_INPUT;
    kernel->b_zero = rondo__host_has_input(request, kernel->b_zero) ? kernel->b_zero : NO_INPUT;
    return kernel->a_zero_count != 0 && kernel->b_zero_count != 0;
}

// Work: rows of a, zero points, packed b, and for QLinearMatMul sums and scales.
static void measure_work(byte_product_kernel *kernel) {
    const rondo__byte_form *form = &kernel->form;
    const size_t columns = (size_t)(form->panel_count * form->simd->panel_columns);
    size_t at =
        rondo__align_up(rondo__byte_rows_get_bytes(form->simd, form->k, kernel->a_rows), 64);
    kernel->zeros_at = at;
    at += rondo__align_up(columns * sizeof(int32_t), 64);
    kernel->packed_at = at;
    if (kernel->packed == NULL) {
        at += rondo__align_up((size_t)kernel->b_count * form->matrix_bytes, 64);
    }
    if (kernel->is_requantized) {
        kernel->sums_at = at;
        at += rondo__align_up(
            (size_t)rondo_shape_get_count(&kernel->product.output) * sizeof(int32_t), 64);
        kernel->scales_at = at;
        at += columns * sizeof(float);
    }
    kernel->head.base.workspace_bytes = at;
}

static rondo_status init_kernel(const rondo__kernel_request *request, byte_product_kernel *kernel) {
    rondo__product *product = &kernel->product;
    const size_t b = request->op->def->id == RONDO__OP_QLinearMatMul ? 3 : 1;
    RETURN_IF_ERROR(rondo__product_init(request->op, &request->inputs[0].shape,
                                        &request->inputs[b].shape, false, false, product));
    if (product->k > RONDO__BYTE_PRODUCT_K_MAX || !read_inputs(request, kernel)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    kernel->b_count = 1;
    for (int32_t i = 0; i < product->batch_rank; ++i) {
        kernel->b_count *= product->b_step[i] != 0 ? product->batch[i] : 1;
    }
    kernel->a_rows = rondo_shape_get_count(&request->inputs[0].shape) / product->k;
    rondo__product_join_batches(product);
    kernel->is_a_signed = request->inputs[0].dtype == RONDO_DTYPE_I8;
    kernel->form = rondo__byte_form_make(
        rondo__byte_simd_choose(request->inputs[b].constant), product->k, product->n,
        request->inputs[b].dtype == RONDO_DTYPE_I8, request->inputs[b].constant != NULL);
    const rondo_tensor *constant = request->inputs[b].constant;
    if (constant != NULL) {
        const rondo__matrix_places places = {.step = product->k * product->n,
                                             .row = product->n,
                                             .column = 1,
                                             .count = kernel->b_count,
                                             .k = product->k,
                                             .n = product->n};
        RETURN_IF_ERROR(rondo__byte_pack_constant(request->weights, &kernel->form, constant,
                                                  &places, &kernel->packed));
    }
    measure_work(kernel);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_byte_product(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel) {
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(byte_product_kernel), "simd", run_product, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = init_kernel(request, (byte_product_kernel *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
