// kernel/host/host_product.c — MatMul, Gemm and rondo.MatMul on f32 with the tiles of simd_tile.c.
//
// b is cut into panels as wide as a tile, each stored row after row, so that a tile reads it from
// front to back. A constant b is packed once, at preparation. Otherwise its panels are packed at
// each run into the workspace, except that whole panels of a row-major b are read where they are.
// a is read in place at any strides: a tile only broadcasts its elements.
//
// Work is cut into units of one tile height by one panel, all batches together, and dealt out in
// runs of neighbours, so that a panel stays in the cache while the tiles along its height use it.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/packed_matrix.h"
#include "kernel/host/product_form.h"

typedef struct product_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__product_form form;
    bool is_parallel;
    int64_t panel_count;
    int64_t row_block_count;
    bool reads_b_in_place;  // whole panels
    const float *packed;    // constant b; NULL: packed at each run
} product_kernel;

static int64_t get_panel_floats(const product_kernel *kernel) {
    return kernel->form.product.k * kernel->simd->panel_columns;
}

static void pack_panel(const product_kernel *kernel, const float *b, int64_t panel, float *out) {
    const rondo__product *product = &kernel->form.product;
    const bool is_swapped = product->trans_b;
    rondo__pack_panel(kernel->simd, b, is_swapped ? 1 : product->n, is_swapped ? product->k : 1,
                      product->k, product->n, panel, out);
}

// Offsets of matrices a and b (counted in matrices) of one batch entry.
static void locate_batch(const rondo__product *product, int64_t batch, int64_t *out_a,
                         int64_t *out_b) {
    *out_a = 0;
    *out_b = 0;
    for (int32_t i = product->batch_rank - 1; i >= 0; --i) {
        const int64_t index = batch % product->batch[i];
        batch /= product->batch[i];
        *out_a += index * product->a_step[i];
        *out_b += index * product->b_step[i];
    }
}

typedef struct run_state {
    const product_kernel *kernel;
    const float *a, *b, *bias, *z, *panels;
    float *y;
} run_state;

// One tile: rows of block `row_block` against panel `panel` of one batch entry.
static void run_unit(const run_state *state, int64_t batch, int64_t panel, int64_t row_block,
                     int64_t a_matrix, int64_t b_matrix) {
    const product_kernel *kernel = state->kernel;
    const rondo__product *product = &kernel->form.product;
    const int64_t m = product->m, n = product->n, k = product->k;
    const int64_t width = kernel->simd->panel_columns;
    const int64_t row = row_block * kernel->simd->tile_rows;
    const int64_t column = panel * width;
    const int64_t rows = m - row < kernel->simd->tile_rows ? m - row : kernel->simd->tile_rows;
    const int64_t columns = n - column < width ? n - column : width;
    const int64_t at = (batch * m + row) * n + column;
    rondo__tile tile = {
        .k = k,
        .a = state->a + a_matrix * m * k + (product->trans_a ? row : row * k),
        .a_row = product->trans_a ? 1 : k,
        .a_column = product->trans_a ? m : 1,
        .rows = (int32_t)rows,
        .columns = (int32_t)columns,
        .scale = kernel->form.scale,
        .bias = state->bias != NULL ? state->bias + column : NULL,
        .z = state->z != NULL ? state->z + at : NULL,
        .z_row = n,
        .y = state->y + at,
        .y_row = n,
    };
    if (kernel->reads_b_in_place && columns == width) {
        tile.b = state->b + b_matrix * k * n + column;
        tile.b_row = n;
    } else {
        tile.b =
            state->panels + (b_matrix * kernel->panel_count + panel) * get_panel_floats(kernel);
        tile.b_row = width;
    }
    kernel->simd->multiply_tile(&tile);
    for (int64_t r = 0; r < rows; ++r) {
        rondo__simd_activate(kernel->simd, kernel->form.activation, kernel->form.alpha,
                             kernel->form.beta, tile.y + r * n, columns);
    }
}

static rondo_status run_product(rondo__host_kernel *head, const void *const *inputs,
                                void *const *outputs, void *workspace) {
    const product_kernel *kernel = (const product_kernel *)head;
    const rondo__product *product = &kernel->form.product;
    const run_state state = {
        .kernel = kernel,
        .a = inputs[0],
        .b = inputs[1],
        .bias = kernel->form.bias_input >= 0 ? inputs[kernel->form.bias_input] : NULL,
        .z = kernel->form.z_input >= 0 ? inputs[kernel->form.z_input] : NULL,
        .panels = kernel->packed != NULL ? kernel->packed : workspace,
        .y = outputs[0],
    };
    if (kernel->packed == NULL) {
        const int64_t first =
            kernel->reads_b_in_place ? product->n / kernel->simd->panel_columns : 0;
        const int64_t wanted = kernel->panel_count - first;
        RONDO_PARALLEL(parallel for schedule(static) if (kernel->is_parallel))
        for (int64_t i = 0; i < kernel->form.b_count * wanted; ++i) {
            const int64_t matrix = i / wanted;
            const int64_t panel = first + i % wanted;
            pack_panel(kernel, state.b + matrix * product->k * product->n, panel,
                       (float *)workspace +
                           (matrix * kernel->panel_count + panel) * get_panel_floats(kernel));
        }
    }
    const int64_t per_batch = kernel->panel_count * kernel->row_block_count;
    RONDO_PARALLEL(parallel for schedule(static) if (kernel->is_parallel))
    for (int64_t unit = 0; unit < product->batch_count * per_batch; ++unit) {
        const int64_t batch = unit / per_batch;
        const int64_t rest = unit % per_batch;
        int64_t a_matrix, b_matrix;
        locate_batch(product, batch, &a_matrix, &b_matrix);
        run_unit(&state, batch, rest / kernel->row_block_count, rest % kernel->row_block_count,
                 a_matrix, b_matrix);
    }
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

static rondo_status init_kernel(const rondo__kernel_request *request, product_kernel *kernel) {
    RETURN_IF_ERROR(rondo__product_form_init(&kernel->form, request));
    const rondo__product *product = &kernel->form.product;
    const rondo__simd *simd = rondo__simd_get();
    kernel->simd = simd;
    if (kernel->form.z_input >= 0) {  // a tile reads its part of z before it writes y
        kernel->head.base.in_place_inputs = UINT64_C(1) << kernel->form.z_input;
    }
    kernel->panel_count = (product->n + simd->panel_columns - 1) / simd->panel_columns;
    kernel->row_block_count = (product->m + simd->tile_rows - 1) / simd->tile_rows;
    const double work =
        (double)product->batch_count * (double)product->m * (double)product->n * (double)product->k;
    kernel->is_parallel = work > RONDO__HOST_PARALLEL_MULTIPLY_ADDS;
    rondo__host_kernel_set_parallel(&kernel->head, kernel->is_parallel);
    const rondo_tensor *b = request->inputs[1].constant;
    if (b == NULL) {
        kernel->reads_b_in_place = !product->trans_b;
        const bool needs_panels = product->trans_b || product->n % simd->panel_columns != 0;
        const int64_t floats =
            kernel->form.b_count * kernel->panel_count * get_panel_floats(kernel);
        kernel->head.base.workspace_bytes = needs_panels ? (size_t)floats * sizeof(float) : 0;
        return RONDO_STATUS_OK;
    }
    const rondo__matrix_places places = {
        .step = product->k * product->n,
        .row = product->trans_b ? 1 : product->n,
        .column = product->trans_b ? product->k : 1,
        .count = kernel->form.b_count,
        .k = product->k,
        .n = product->n,
    };
    return rondo__pack_constant(request->weights, simd, b, &places, &kernel->packed);
}

rondo_status rondo__host_prepare_product(const rondo__kernel_request *request,
                                         rondo__kernel **out_kernel) {
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(product_kernel), "simd", run_product, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = init_kernel(request, (product_kernel *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
