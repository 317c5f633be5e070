// kernel/host/product/host_product.c — MatMul, Gemm and rondo.MatMul on f32 with the tiles of
// simd_tile.c.
//
// b is cut into panels as wide as a tile, each stored row after row, so that a tile reads it from
// front to back. A constant b is packed once, at preparation. Otherwise its panels are packed at
// each run into the workspace, except that whole panels of a row-major b are read where they are.
// a is read in place: a tile only broadcasts its elements.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"
#include "kernel/host/product/product_form.h"

enum {
    // Whole panels of a right operand that is fed are packed, too, where that costs less than so
    // many rows take longer in place, of rows of b that meet in few sets of the cache;
    PACKED_ROWS = 64,
    PACKED_COLUMNS = 256,
    // from fewer on where they are apart by a multiple of 4 KiB, of which a second-level cache
    // holds some 512, and where b is larger than such a cache.
    MEETING_COLUMNS = 1024,
    MEETING_ROWS = 512,
    LARGE_BYTES = 8 * 1024 * 1024,
    LARGE_PACKED_ROWS = 20,
};

typedef struct product_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__product_form form;
    float low, high;  // of a clamp that the activation is
    bool is_clamp;
    int64_t panel_count;
    rondo__cut cut;       // of one batch entry
    int64_t grain;        // units of all of them
    int64_t in_place;     // columns of b that are read where they are
    const float *packed;  // constant b; NULL: packed at each run
    int32_t *a_offsets;   // of a column of a that is stored as a row; NULL: a is not
} product_kernel;

static void deinit_product(rondo__host_kernel *head) {
    rondo__free(((product_kernel *)head)->a_offsets);
}

static int64_t get_panel_floats(const product_kernel *kernel) {
    return kernel->form.product.k * kernel->simd->panel_columns;
}

typedef struct run_state {
    const product_kernel *kernel;
    const float *a, *b, *bias, *z, *panels;
    float *y, *workspace;
} run_state;

static void pack_panels(void *data, int64_t begin, int64_t end) {
    const run_state *state = data;
    const product_kernel *kernel = state->kernel;
    const rondo__product *product = &kernel->form.product;
    const int64_t first = kernel->in_place / kernel->simd->panel_columns;
    const int64_t wanted = kernel->panel_count - first;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = i / wanted, panel = first + i % wanted;
        rondo__pack_panel(
            kernel->simd, state->b + matrix * product->k * product->n,
            product->trans_b ? 1 : product->n, product->trans_b ? product->k : 1, product->k,
            product->n, panel,
            state->workspace + (matrix * kernel->panel_count + panel) * get_panel_floats(kernel));
    }
}

// Columns [first, end) of some rows; they are all packed, or none is.
static void run_columns(const run_state *state, const rondo__row_product *rows, int64_t b_matrix,
                        int64_t first, int64_t end) {
    const product_kernel *kernel = state->kernel;
    const rondo__product *product = &kernel->form.product;
    const int64_t width = kernel->simd->panel_columns;
    rondo__row_product part = *rows;
    if (first >= end) {
        return;
    }
    part.n = end - first;
    part.y += first;
    part.z = part.z != NULL ? part.z + first : NULL;
    part.bias = part.bias != NULL ? part.bias + first : NULL;
    if (first < kernel->in_place) {
        part.panels = state->b + b_matrix * product->k * product->n + first;
        part.panel_step = width;
        part.streams = false;
        part.b_row = product->n;
    } else {
        part.panels = state->panels +
                      (b_matrix * kernel->panel_count + first / width) * get_panel_floats(kernel);
        part.panel_step = get_panel_floats(kernel);
        part.b_row = width;
    }
    rondo__multiply_rows(&part);
}

static void activate(const product_kernel *kernel, const rondo__row_product *rows, int64_t first,
                     int64_t end) {
    for (int64_t r = 0; !kernel->is_clamp && r < rows->m; ++r) {
        rondo__simd_activate(kernel->simd, kernel->form.activation, kernel->form.alpha,
                             kernel->form.beta, rows->y + r * rows->y_row + first, end - first);
    }
}

static void run_unit(const run_state *state, int64_t batch, int64_t unit) {
    const product_kernel *kernel = state->kernel;
    const rondo__product *product = &kernel->form.product;
    const int64_t m = product->m, n = product->n, k = product->k;
    const int64_t width = kernel->simd->panel_columns;
    const int64_t row_part = unit % kernel->cut.row_parts;
    const int64_t panel_part = unit / kernel->cut.row_parts;
    const int64_t height = kernel->simd->narrow_tile_rows;
    const int64_t row = rondo__host_row_part(m, height, row_part, kernel->cut.row_parts);
    const int64_t first =
        width * rondo__host_part(kernel->panel_count, panel_part, kernel->cut.panel_parts);
    const int64_t last =
        width * rondo__host_part(kernel->panel_count, panel_part + 1, kernel->cut.panel_parts);
    const int64_t end = last < n ? last : n;
    const int64_t middle = kernel->in_place < first ? first
                           : kernel->in_place > end ? end
                                                    : kernel->in_place;
    int64_t a_matrix, b_matrix;
    rondo__product_locate_batch(product, batch, &a_matrix, &b_matrix);
    const rondo__row_product rows = {
        .simd = kernel->simd,
        .m = rondo__host_row_part(m, height, row_part + 1, kernel->cut.row_parts) - row,
        .k = k,
        .a = state->a + a_matrix * m * k + (product->trans_a ? row : row * k),
        .a_row = product->trans_a ? 1 : k,
        .a_offsets = kernel->a_offsets,
        .streams = kernel->cut.streams,
        .scale = kernel->form.scale,
        .low = kernel->low,
        .high = kernel->high,
        .bias = state->bias,
        .z = state->z != NULL ? state->z + (batch * m + row) * n : NULL,
        .z_row = n,
        .y = state->y + (batch * m + row) * n,
        .y_row = n,
    };
    run_columns(state, &rows, b_matrix, first, middle);
    run_columns(state, &rows, b_matrix, middle, end);
    activate(kernel, &rows, first, end);
}

static void run_units(void *data, int64_t begin, int64_t end) {
    const run_state *state = data;
    const int64_t per_batch = state->kernel->cut.row_parts * state->kernel->cut.panel_parts;
    for (int64_t unit = begin; unit < end; ++unit) {
        run_unit(state, unit / per_batch, unit % per_batch);
    }
}

static rondo_status run_product(rondo__host_kernel *head, const void *const *inputs,
                                void *const *outputs, void *workspace) {
    const product_kernel *kernel = (const product_kernel *)head;
    run_state state = {
        .kernel = kernel,
        .a = inputs[0],
        .b = inputs[1],
        .bias = kernel->form.bias_input >= 0 ? inputs[kernel->form.bias_input] : NULL,
        .z = kernel->form.z_input >= 0 ? inputs[kernel->form.z_input] : NULL,
        .panels = kernel->packed != NULL ? kernel->packed : workspace,
        .y = outputs[0],
        .workspace = workspace,
    };
    if (kernel->packed == NULL) {
        const int64_t first = kernel->in_place / kernel->simd->panel_columns;
        const int64_t panels = kernel->form.b_count * (kernel->panel_count - first);
        const double bytes = (double)(panels * get_panel_floats(kernel)) * 2 * sizeof(float);
        rondo__workers_loop(panels, rondo__host_get_grain(panels, bytes, 0.0), pack_panels, &state);
    }
    rondo__workers_loop(
        kernel->form.product.batch_count * kernel->cut.row_parts * kernel->cut.panel_parts,
        kernel->grain, run_units, &state);
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

static void cut_work(product_kernel *kernel) {
    const rondo__product *product = &kernel->form.product;
    const double work = (double)product->m * (double)product->n * (double)product->k;
    const int64_t k_parts =
        kernel->in_place == 0 ? rondo__panels_count_parts(get_panel_floats(kernel)) : 1;
    const double a_bytes =
        (double)product->m * (double)product->k * sizeof(float) / (double)k_parts;
    const double b_bytes = (double)product->n * (double)product->k * sizeof(float);
    const int64_t batches = product->batch_count;
    kernel->cut =
        rondo__host_cut(work, product->m, kernel->simd->narrow_tile_rows, a_bytes,
                        kernel->panel_count, b_bytes, (double)rondo__panels_get_cache_bytes());
    kernel->grain = 1;
    if (batches > 1) {
        const int64_t units = batches * kernel->cut.row_parts * kernel->cut.panel_parts;
        kernel->grain = rondo__host_get_grain(units, (double)batches * (a_bytes + b_bytes),
                                              (double)batches * work);
    }
}

// How a transposed a is read. UNSUPPORTED: it is larger than any offset.
static rondo_status init_offsets(product_kernel *kernel) {
    const rondo__product *product = &kernel->form.product;
    if (!product->trans_a) {
        return RONDO_STATUS_OK;
    }
    if (product->k > INT32_MAX / product->m) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    kernel->a_offsets = rondo__calloc((size_t)product->k, sizeof *kernel->a_offsets);
    for (int64_t p = 0; kernel->a_offsets != NULL && p < product->k; ++p) {
        kernel->a_offsets[p] = (int32_t)(p * product->m);
    }
    return kernel->a_offsets != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

// Whether whole panels of a right operand that is fed are packed, and not read in place.
static bool packs_panels(const product_kernel *kernel) {
    const rondo__product *product = &kernel->form.product;
    const int64_t n = product->n, k = product->k;
    const bool is_large = k * n * (int64_t)sizeof(float) > LARGE_BYTES ||
                          rondo__panels_count_parts(get_panel_floats(kernel)) > 1;
    const bool meets = n % MEETING_COLUMNS == 0 && k >= MEETING_ROWS;
    const int64_t rows = is_large && meets ? kernel->simd->narrow_tile_rows + 1
                         : is_large        ? LARGE_PACKED_ROWS
                         : meets           ? PACKED_ROWS / 2
                                           : PACKED_ROWS;
    return product->m >= rows && n >= PACKED_COLUMNS;
}

static rondo_status init_kernel(const rondo__kernel_request *request, product_kernel *kernel) {
    RETURN_IF_ERROR(rondo__product_form_init(&kernel->form, request));
    const rondo__product *product = &kernel->form.product;
    const rondo__simd *simd = rondo__simd_get();
    kernel->simd = simd;
    kernel->is_clamp = rondo__simd_get_clamp(kernel->form.activation, kernel->form.alpha,
                                             kernel->form.beta, &kernel->low, &kernel->high);
    RETURN_IF_ERROR(init_offsets(kernel));
    if (kernel->form.z_input >= 0) {  // a tile reads its part of z before it writes y
        kernel->head.base.in_place_inputs = UINT64_C(1) << kernel->form.z_input;
    }
    kernel->panel_count = (product->n + simd->panel_columns - 1) / simd->panel_columns;
    const rondo_tensor *b = request->inputs[1].constant;
    if (b == NULL) {
        const int64_t whole = product->n / simd->panel_columns * simd->panel_columns;
        kernel->in_place = product->trans_b || packs_panels(kernel) ? 0 : whole;
    }
    cut_work(kernel);
    if (b == NULL) {
        const int64_t floats =
            kernel->form.b_count * kernel->panel_count * get_panel_floats(kernel);
        kernel->head.base.workspace_bytes =
            kernel->in_place < product->n ? (size_t)floats * sizeof(float) : 0;
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
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(product_kernel), "simd",
                                                         run_product, deinit_product);
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
