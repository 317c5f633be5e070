// kernel/host/product/host_bits_product.c — com.microsoft.MatMulNBits with constant weights, by the
// loops of simd_bits.c.
//
// B is cut into panels of columns once for the program, a byte of each column beside each other: as
// large as it was. Few rows are multiplied by the panels as they are, so that what is read is what
// is stored; with more of them, a panel is widened to f32 part by part, and multiplied by the tiles
// of other products.
//
//   work     | sums of a's blocks | a with whole blocks | its pairs (simd.h), of 4 bits |
//            or | widened part of a panel, per thread |
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"
#include "op/math/bits_product.h"

enum {
    FEW_ROWS = 3 * RONDO__BITS_ROWS,  // multiplied by what is stored
    PART_NUMBERS = 1024,              // of k, of a widened part; one block at least
};

typedef struct bits_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__bits_product product;
    int64_t panel_count;
    bool has_bias;
    const uint8_t *b;           // panels [blocks * block_bytes, panel_columns]
    const float *scales;        // panels [blocks, panel_columns]
    const uint8_t *byte_zeros;  // likewise, or
    const float *zeros;
    bool is_padded;       // the last block of k is not whole
    int64_t part_blocks;  // of a widened part
    int64_t parts;        // of the panels, each with memory of its own; 0: few rows
    size_t a_at, pairs_at, widened_bytes;  // in the work
} bits_kernel;

typedef struct run_state {
    const bits_kernel *kernel;
    const float *a, *bias;
    int64_t a_row;
    const float *sums;
    const float *pairs;
    char *work;
    float *y;
} run_state;

// The panel from block `first` on.
static rondo__bits_tile get_panel(const bits_kernel *kernel, int64_t panel, int64_t first,
                                  int64_t blocks) {
    const rondo__bits_product *p = &kernel->product;
    const int64_t width = kernel->simd->panel_columns;
    const int64_t at = (panel * p->blocks + first) * width;
    const int64_t rest = p->n - panel * width;
    return (rondo__bits_tile){
        .bits = p->bits,
        .columns = (int32_t)(rest < width ? rest : width),
        .blocks = blocks,
        .block_bytes = p->block_bytes,
        .b = kernel->b + at * p->block_bytes,
        .scales = kernel->scales + at,
        .byte_zeros = kernel->byte_zeros != NULL ? kernel->byte_zeros + at : NULL,
        .zeros = kernel->zeros != NULL ? kernel->zeros + at : NULL,
    };
}

// ---- few rows ---------------------------------------------------------------------------------

static void multiply_panels(void *data, int64_t first, int64_t end) {
    const run_state *state = data;
    const bits_kernel *kernel = state->kernel;
    const rondo__bits_product *p = &kernel->product;
    const int64_t width = kernel->simd->panel_columns;
    for (int64_t panel = first; panel < end; ++panel) {
        float bias[64];  // what lies behind n cannot be read
        rondo__bits_tile tile = get_panel(kernel, panel, 0, p->blocks);
        if (kernel->has_bias) {
            memset(bias, 0, sizeof bias);
            memcpy(bias, state->bias + panel * width, (size_t)tile.columns * sizeof *bias);
            tile.bias = bias;
        }
        for (int64_t row = 0; row < p->m;) {
            const int64_t rest = p->m - row;
            tile.rows = (int32_t)(rest < RONDO__BITS_ROWS ? rest : RONDO__BITS_ROWS);
            tile.a = state->a + row * state->a_row;
            tile.paired = state->pairs + row * state->a_row;
            tile.a_row = state->a_row;
            tile.sums = state->sums + row * p->blocks;
            tile.sums_row = p->blocks;
            tile.y = state->y + row * p->n + panel * width;
            tile.y_row = p->n;
            kernel->simd->multiply_bits(&tile);
            row += tile.rows;
        }
    }
}

static void sum_rows(void *data, int64_t first, int64_t end) {
    const run_state *state = data;
    const rondo__bits_product *p = &state->kernel->product;
    float *sums = (float *)(void *)state->work;
    for (int64_t i = first; i < end; ++i) {
        const int64_t row = i / p->blocks, begin = i % p->blocks * p->block;
        sums[i] = (float)state->kernel->simd->sum(state->a + row * state->a_row + begin, p->block);
    }
}

// a with zeros behind k.
static void pad_rows(run_state *state) {
    const rondo__bits_product *p = &state->kernel->product;
    float *padded = (float *)(void *)(state->work + state->kernel->a_at);
    const int64_t length = p->blocks * p->block;
    for (int64_t row = 0; row < p->m; ++row) {
        memcpy(padded + row * length, state->a + row * p->k, (size_t)p->k * sizeof *padded);
        memset(padded + row * length + p->k, 0, (size_t)(length - p->k) * sizeof *padded);
    }
    state->a = padded;
    state->a_row = length;
}

static void make_pairs(run_state *state) {
    const int64_t count = state->kernel->product.m * state->a_row;
    float *pairs = (float *)(void *)(state->work + state->kernel->pairs_at);
    for (int64_t i = 0; i < count; i += 2) {
        const float second = state->a[i + 1] * 0.0625f;
        pairs[i] = state->a[i] - second;
        pairs[i + 1] = second;
    }
    state->pairs = pairs;
}

static void run_few(run_state *state) {
    const bits_kernel *kernel = state->kernel;
    const rondo__bits_product *p = &kernel->product;
    const double bytes = (double)kernel->panel_count * (double)(p->blocks * p->block_bytes) *
                         kernel->simd->panel_columns;
    if (kernel->is_padded) {
        pad_rows(state);
    }
    state->pairs = state->a;
    if (p->bits == 4) {
        make_pairs(state);
    }
    state->sums = (const float *)(const void *)state->work;
    const int64_t sums = p->m * p->blocks;
    rondo__workers_loop(sums, rondo__host_get_grain(sums, (double)(p->m * p->k) * 4.0, 0.0),
                        sum_rows, state);
    rondo__workers_loop(kernel->panel_count,
                        rondo__host_get_grain(kernel->panel_count, bytes * 2.0,
                                              (double)p->m * (double)p->n * (double)p->k),
                        multiply_panels, state);
}

// ---- many rows --------------------------------------------------------------------------------

static void multiply_panel(const run_state *state, int64_t panel, float *widened) {
    const bits_kernel *kernel = state->kernel;
    const rondo__bits_product *p = &kernel->product;
    const int64_t width = kernel->simd->panel_columns;
    for (int64_t first = 0; first < p->blocks; first += kernel->part_blocks) {
        const int64_t rest = p->blocks - first, begin = first * p->block;
        const int64_t blocks = rest < kernel->part_blocks ? rest : kernel->part_blocks;
        const int64_t k = p->k - begin < blocks * p->block ? p->k - begin : blocks * p->block;
        const rondo__bits_tile tile = get_panel(kernel, panel, first, blocks);
        float *y = state->y + panel * width;
        kernel->simd->widen_bits(&tile, widened);
        const rondo__row_product rows = {
            .simd = kernel->simd,
            .m = p->m,
            .k = k,
            .n = tile.columns,
            .a = state->a + begin,
            .a_row = p->k,
            .panels = widened,
            .panel_step = k * width,
            .b_row = width,
            .scale = 1.0f,
            .low = -INFINITY,
            .high = INFINITY,
            .bias = first == 0 && kernel->has_bias ? state->bias + panel * width : NULL,
            .z = first == 0 ? NULL : y,
            .z_row = p->n,
            .y = y,
            .y_row = p->n,
        };
        rondo__multiply_rows(&rows);
    }
}

static void run_parts(void *data, int64_t first, int64_t end) {
    const run_state *state = data;
    const bits_kernel *kernel = state->kernel;
    for (int64_t part = first; part < end; ++part) {
        float *widened = (float *)(void *)(state->work + (size_t)part * kernel->widened_bytes);
        const int64_t last = rondo__host_part(kernel->panel_count, part + 1, kernel->parts);
        for (int64_t panel = rondo__host_part(kernel->panel_count, part, kernel->parts);
             panel < last; ++panel) {
            multiply_panel(state, panel, widened);
        }
    }
}

static rondo_status run_product(rondo__host_kernel *head, const void *const *inputs,
                                void *const *outputs, void *workspace) {
    const bits_kernel *kernel = (const bits_kernel *)head;
    run_state state = {
        .kernel = kernel,
        .a = inputs[RONDO__BITS_A],
        .a_row = kernel->product.k,
        .bias = kernel->has_bias ? inputs[RONDO__BITS_BIAS] : NULL,
        .work = workspace,
        .y = outputs[0],
    };
    if (kernel->parts == 0) {
        run_few(&state);
    } else {
        rondo__workers_loop(kernel->parts, 1, run_parts, &state);
    }
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

typedef struct bytes_form {
    char kind[8];
    int64_t width;
    int64_t n, rows;       // bytes of a column in the panels
    int64_t column_bytes;  // and as it is stored
    int32_t bits;          // of numbers that become a byte each; 8: bytes as they are
} bytes_form;

// Panels of bytes, or of packed numbers as bytes.
static void fill_panels(const rondo__weight_want *want, size_t first, size_t last, void *rows) {
    const bytes_form *form = want->form;
    const uint8_t *from = want->constant->data;
    uint8_t *to = rows;
    for (int64_t panel = (int64_t)first; panel < (int64_t)last; ++panel) {
        for (int64_t c = 0; c < form->width; ++c) {
            const int64_t column = panel * form->width + c;
            const uint8_t *bytes = from + column * form->column_bytes;
            for (int64_t i = 0; i < form->rows; ++i) {
                to[i * form->width + c] =
                    column < form->n ? (uint8_t)rondo__bits_get(bytes, form->bits, i) : 0;
            }
        }
        to += form->rows * form->width;
    }
}

static rondo_status pack_bytes(const rondo__kernel_request *request, const bits_kernel *kernel,
                               size_t input, int64_t rows, int64_t column_bytes, int32_t bits,
                               const uint8_t **out_panels) {
    const bytes_form form = {.kind = "bits",
                             .width = kernel->simd->panel_columns,
                             .n = kernel->product.n,
                             .rows = rows,
                             .column_bytes = column_bytes,
                             .bits = bits};
    const rondo__weight_want want = {
        .constant = request->inputs[input].constant,
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)(kernel->panel_count * rows * form.width),
        .fill_rows = fill_panels,
        .row_count = (size_t)kernel->panel_count,
    };
    void *panels = NULL;
    const rondo_status status = rondo__weight_list_add(request->weights, &want, &panels);
    *out_panels = panels;
    return status;
}

static rondo_status pack_reals(const rondo__kernel_request *request, const bits_kernel *kernel,
                               size_t input, const float **out_panels) {
    const rondo__bits_product *p = &kernel->product;
    const rondo__matrix_places places = {
        .row = 1, .column = p->blocks, .count = 1, .k = p->blocks, .n = p->n};
    return rondo__pack_constant(request->weights, kernel->simd, request->inputs[input].constant,
                                &places, out_panels);
}

static bool is_constant(const rondo__kernel_request *request, size_t input) {
    return request->inputs[input].constant != NULL;
}

static rondo_status pack_operands(const rondo__kernel_request *request, bits_kernel *kernel) {
    const rondo__bits_product *p = &kernel->product;
    RETURN_IF_ERROR(pack_bytes(request, kernel, RONDO__BITS_B, p->blocks * p->block_bytes,
                               p->blocks * p->block_bytes, 8, &kernel->b));
    RETURN_IF_ERROR(pack_reals(request, kernel, RONDO__BITS_SCALES, &kernel->scales));
    if (!rondo__host_has_input(request, RONDO__BITS_ZEROS)) {
        return RONDO_STATUS_OK;
    }
    return request->inputs[RONDO__BITS_ZEROS].dtype == RONDO_DTYPE_U8
               ? pack_bytes(request, kernel, RONDO__BITS_ZEROS, p->blocks, p->zero_bytes, p->bits,
                            &kernel->byte_zeros)
               : pack_reals(request, kernel, RONDO__BITS_ZEROS, &kernel->zeros);
}

// Where in the work things are.
static void lay_out(bits_kernel *kernel) {
    const rondo__bits_product *p = &kernel->product;
    if (p->m <= FEW_ROWS) {
        const size_t bytes = (size_t)(p->m * p->blocks * p->block) * sizeof(float);
        kernel->a_at = rondo__align_up((size_t)(p->m * p->blocks) * sizeof(float), 64);
        kernel->pairs_at = kernel->a_at + (kernel->is_padded ? bytes : 0);
        kernel->head.base.workspace_bytes = kernel->pairs_at + (p->bits == 4 ? bytes : 0);
        return;
    }
    const double work = (double)p->m * (double)p->n * (double)p->k;
    kernel->part_blocks = PART_NUMBERS / p->block > 1 ? PART_NUMBERS / p->block : 1;
    kernel->part_blocks = kernel->part_blocks < p->blocks ? kernel->part_blocks : p->blocks;
    kernel->parts = rondo__host_count_parts(kernel->panel_count, 0.0, work);
    kernel->parts = kernel->parts > 1 ? kernel->parts : 1;
    kernel->widened_bytes = rondo__align_up((size_t)(kernel->part_blocks * p->block) *
                                                (size_t)kernel->simd->panel_columns * sizeof(float),
                                            64);
    kernel->head.base.workspace_bytes = (size_t)kernel->parts * kernel->widened_bytes;
}

static rondo_status init_kernel(const rondo__kernel_request *request, bits_kernel *kernel) {
    rondo__bits_product *p = &kernel->product;
    RETURN_IF_ERROR(
        rondo__bits_product_init(request->op, &request->inputs[RONDO__BITS_A].shape, p));
    const bool has_zeros = rondo__host_has_input(request, RONDO__BITS_ZEROS);
    if (request->inputs[RONDO__BITS_A].dtype != RONDO_DTYPE_F32 ||
        rondo__host_has_input(request, RONDO__BITS_GROUPS) ||
        !is_constant(request, RONDO__BITS_B) || !is_constant(request, RONDO__BITS_SCALES) ||
        (has_zeros && !is_constant(request, RONDO__BITS_ZEROS))) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    kernel->simd = rondo__simd_get();
    kernel->has_bias = rondo__host_has_input(request, RONDO__BITS_BIAS);
    kernel->panel_count = (p->n + kernel->simd->panel_columns - 1) / kernel->simd->panel_columns;
    kernel->is_padded = p->k % p->block != 0;
    lay_out(kernel);
    return pack_operands(request, kernel);
}

rondo_status rondo__host_prepare_bits_product(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel) {
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(bits_kernel), "simd", run_product, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = init_kernel(request, (bits_kernel *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
