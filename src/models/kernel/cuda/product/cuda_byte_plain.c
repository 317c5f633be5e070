// kernel/cuda/product/cuda_byte_plain.c — products of 8-bit integers without tensor cores, by
// byte_product.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/product/cuda_byte_product.h"

enum {
    VECTOR_ROWS_MAX = 4,       // products of so few rows are bound by reading the weights
    DIRECT_FILTERS_MAX = 7,    // of a group; a tile would be nearly empty
    DIRECT_DEPTH_MAX = 33025,  // sums of 255 x 255 then fit 32 bits
    GRID_MAX = 65535,
};

static void push_four(rondo__step *step, const int64_t *values) {
    for (int d = 0; d < RONDO__BYTE_BATCH_RANK; d++) {
        rondo__step_int(step, values[d]);
    }
}

// ---- matrices ---------------------------------------------------------------------------------

bool rondo__byte_product_is_vector(const rondo__byte_product *product) {
    return !product->is_convolution && product->is_packed && product->batches == 1 &&
           product->rows <= VECTOR_ROWS_MAX;
}

static void add_matrices(rondo__cuda_kernel *kernel, const rondo__byte_product *p) {
    rondo__defines defines = {0};
    const bool is_vector = rondo__byte_product_is_vector(p);
    const int64_t row_tiles = is_vector ? 1 : (p->rows + 63) / 64;
    if (row_tiles > GRID_MAX || p->batches > GRID_MAX) {
        rondo__cuda_refuse(kernel, "more rows or batches than a grid holds");
        return;
    }
    rondo__byte_product_define(&defines, p, false);
    rondo__define_int(&defines, "X_IS_WHOLE", p->depth % 4 == 0);
    rondo__define_int(&defines, "W_IS_PACKED", p->is_packed);
    if (is_vector) {
        rondo__define_int(&defines, "ROWS", p->rows);
        rondo__define_int(&defines, "WORDS", p->depth % 16 == 0 ? 4 : 1);
    }
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_byte_product, &defines, is_vector ? "byte_vector" : "byte_matmul",
        is_vector ? (p->columns + 7) / 8 : (p->columns + 63) / 64, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)row_tiles;
        step->launch.grid[2] = (uint32_t)p->batches;
    }
    rondo__step_address(step, p->x.data);
    rondo__step_address(step, p->w.data);
    rondo__step_address(step, p->y);
    rondo__step_int(step, p->rows);
    rondo__step_int(step, p->columns);
    rondo__step_int(step, p->depth);
    rondo__step_int(step, p->pitch);
    push_four(step, p->batch_extent);
    push_four(step, p->x_batch);
    push_four(step, p->w_batch);
    rondo__byte_product_push(step, p, p->depth);
}

// ---- convolutions -----------------------------------------------------------------------------

bool rondo__byte_product_is_direct(const rondo__byte_product *product) {
    return product->is_convolution && product->columns <= DIRECT_FILTERS_MAX &&
           product->depth <= DIRECT_DEPTH_MAX;
}

static void push_convolution(rondo__step *step, const rondo__byte_product *p) {
    const rondo__window *w = &p->window;
    const int64_t in = w->in[0] * w->in[1] * w->in[2];
    const int64_t out = w->out[0] * w->out[1] * w->out[2];
    rondo__step_address(step, p->x.data);
    rondo__step_address(step, p->w.data);
    rondo__step_address(step, p->y);
    rondo__step_int(step, w->batch);
    rondo__step_int(step, p->groups);
    rondo__step_int(step, p->channels);
    rondo__step_int(step, p->columns);
    rondo__step_ints(step, w->in, 3);
    rondo__step_ints(step, w->out, 3);
    rondo__step_ints(step, w->kernel, 3);
    rondo__step_ints(step, w->stride, 3);
    rondo__step_ints(step, w->dilation, 3);
    rondo__step_ints(step, w->before, 3);
    rondo__step_int(step, w->channels_last ? 1 : in);
    rondo__step_int(step, w->channels_last ? w->channels_in : 1);
    rondo__step_int(step, w->channels_last ? 1 : out);
    rondo__step_int(step, w->channels_last ? w->channels_out : 1);
    rondo__step_int(step, (p->channels + 3) / 4);
    rondo__step_int(step, p->pitch);
    rondo__byte_product_push(step, p, p->depth);
}

static void add_convolution(rondo__cuda_kernel *kernel, const rondo__byte_product *p) {
    const int64_t positions = p->window.out[0] * p->window.out[1] * p->window.out[2];
    const int64_t filter_tiles = (p->columns + 63) / 64;
    const bool is_direct = rondo__byte_product_is_direct(p);
    rondo__defines defines = {0};
    if (!is_direct && (filter_tiles > GRID_MAX || p->groups > GRID_MAX || positions > INT32_MAX ||
                       p->depth + 4 * p->taps > INT32_MAX)) {
        rondo__cuda_refuse(kernel, "more filters, groups or positions than a grid holds");
        return;
    }
    rondo__byte_product_define(&defines, p, false);
    rondo__define_int(&defines, "X_IS_WHOLE", p->window.channels_last && p->channels % 4 == 0);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_byte_product, &defines, is_direct ? "byte_conv_direct" : "byte_conv",
        is_direct ? rondo__cuda_blocks(p->rows * p->groups * p->columns) : (p->rows + 63) / 64,
        RONDO__CUDA_BLOCK);
    if (step != NULL && !is_direct) {
        step->launch.grid[1] = (uint32_t)filter_tiles;
        step->launch.grid[2] = (uint32_t)p->groups;
    }
    push_convolution(step, p);
}

void rondo__byte_product_add_plain(rondo__cuda_kernel *kernel, const rondo__byte_product *product) {
    if (product->is_convolution) {
        add_convolution(kernel, product);
    } else {
        add_matrices(kernel, product);
    }
}
