// kernel/cuda/product/cuda_byte_tensor.c — products of 8-bit integers on tensor cores, by
// byte_tensor.cu.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/product/cuda_byte_plan.h"
#include "kernel/cuda/product/cuda_byte_product.h"

enum {
    // Sums of 255 x 255 fit 32 bits up to here. Where the result itself has 32 bits, a longer sum
    // is what it is there, modulo 2^32.
    STEPS_DEPTH_MAX = 33025,
    COPY_BYTES = 16,  // of a piece of a row; of rows of other lengths 8 or 4
};

// ---- what is asked of the kernel --------------------------------------------------------------

// Bytes of a pixel, or of a row, as the kernel reads it; more than there are: it is padded.
static int64_t get_channels(const rondo__byte_product *p) {
    if (p->is_convolution) {
        return rondo__round_up(p->channels, 4);
    }
    return p->depth % 4 == 0 ? p->depth : rondo__round_up(p->depth, COPY_BYTES);
}

static int64_t get_depth(const rondo__byte_product *p) {
    return get_channels(p) * (p->is_convolution ? p->taps : 1);
}

static bool is_point(const rondo__byte_product *p) {
    for (int d = 0; d < 3 && p->is_convolution; d++) {
        if (p->window.kernel[d] != 1 || p->window.stride[d] != 1 || p->window.before[d] != 0 ||
            p->window.after[d] != 0) {
            return false;
        }
    }
    return true;
}

static bool suits(const rondo__byte_product *p) {
    const rondo__window *w = &p->window;
    const int64_t most = INT64_C(1) << 31;
    if (!p->is_packed || p->batches != 1 || p->rows >= most || p->columns >= most ||
        p->pitch >= most || (p->y_scale.count > 0 && p->depth > STEPS_DEPTH_MAX)) {
        return false;
    }
    return !p->is_convolution ||
           (w->channels_last && p->groups == 1 && w->in[0] == 1 && w->kernel[0] == 1 &&
            w->before[0] == 0 && w->stride[0] == 1 && w->batch * w->in[1] * w->in[2] < most);
}

static int64_t count_x_rows(const rondo__byte_product *p) {
    const rondo__window *w = &p->window;
    return p->is_convolution ? w->batch * w->in[1] * w->in[2] : p->rows;
}

static rondo__byte_work get_work(const rondo__byte_product *p) {
    const double y_bytes = (double)rondo_dtype_get_bytes(p->y_dtype);
    const double results = (double)p->rows * (double)p->columns;
    return (rondo__byte_work){
        .rows = p->rows,
        .columns = p->columns,
        .row_bytes = get_depth(p),
        .moved_bytes = (double)count_x_rows(p) * (double)get_channels(p) +
                       (double)p->columns * (double)p->pitch +
                       results * y_bytes * (p->residual.count > 0 ? 2 : 1),
    };
}

static size_t list_plans(const rondo__cuda_kernel *kernel, const rondo__byte_product *p,
                         rondo__byte_plan *out_plans) {
    const rondo__byte_work work = get_work(p);
    return suits(p) ? rondo__byte_plan_list(kernel, &work, out_plans) : 0;
}

size_t rondo__byte_product_count_plans(const rondo__cuda_kernel *kernel,
                                       const rondo__byte_product *product) {
    rondo__byte_plan plans[RONDO__BYTE_PLANS];
    return list_plans(kernel, product, plans);
}

void rondo__byte_product_describe_plan(const rondo__cuda_kernel *kernel,
                                       const rondo__byte_product *product, size_t plan, char *text,
                                       size_t text_bytes) {
    rondo__byte_plan plans[RONDO__BYTE_PLANS];
    if (plan < list_plans(kernel, product, plans)) {
        rondo__byte_plan_describe(&plans[plan], text, text_bytes);
    } else {
        (void)snprintf(text, text_bytes, "tensor ?");
    }
}

// ---- its launches -----------------------------------------------------------------------------

// x with rows of whole words, by a launch, where it has others.
static rondo__address add_padding(rondo__cuda_kernel *kernel, const rondo__byte_product *p) {
    const int64_t width = p->is_convolution ? p->channels : p->depth;
    const int64_t words = get_channels(p) / 4, count = count_x_rows(p) * words;
    rondo__defines defines = {0};
    if (width == words * 4) {
        return p->x.data;
    }
    const rondo__address padded =
        rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, (size_t)count * 4));
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_byte_pack, &defines, "pad_rows",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_address(step, p->x.data);
    rondo__step_address(step, padded);
    rondo__step_int(step, width);
    rondo__step_int(step, words);
    rondo__step_optional(step, p->x.zero.count > 0 ? &p->x.zero.at : NULL);
    rondo__step_int(step, p->x.zero.count > 0 ? p->x.zero.count : 1);
    return padded;
}

static void push_window(rondo__step *step, const rondo__byte_product *p) {
    const rondo__window *w = &p->window;
    rondo__step_int(step, w->in[1]);
    rondo__step_int(step, w->in[2]);
    rondo__step_int(step, w->out[1]);
    rondo__step_int(step, w->out[2]);
    rondo__step_int(step, w->kernel[2]);
    rondo__step_int(step, w->stride[1]);
    rondo__step_int(step, w->stride[2]);
    rondo__step_int(step, w->dilation[1]);
    rondo__step_int(step, w->dilation[2]);
    rondo__step_int(step, w->before[1]);
    rondo__step_int(step, w->before[2]);
}

void rondo__byte_product_add_plan(rondo__cuda_kernel *kernel, const rondo__byte_product *product,
                                  size_t plan) {
    const rondo__byte_work work = get_work(product);
    const int64_t channels = get_channels(product);
    rondo__byte_plan plans[RONDO__BYTE_PLANS];
    rondo__defines defines = {0};
    if (plan >= list_plans(kernel, product, plans)) {
        rondo__cuda_refuse(kernel, "a tensor core plan of this number");
        return;
    }
    const rondo__byte_tile *tile = plans[plan].tile;
    const rondo__address x = add_padding(kernel, product);
    rondo__byte_plan_define(&defines, &plans[plan]);
    rondo__byte_product_define(&defines, product, true);
    rondo__define_int(&defines, "EAGER_WEIGHTS", product->w.data.space == RONDO__ADDRESS_FIXED);
    rondo__define_int(&defines, "POINT", is_point(product));
    rondo__define_int(&defines, "COPY", channels % 16 == 0 ? 16 : channels % 8 == 0 ? 8 : 4);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_byte_tensor, &defines, "byte_tensor",
                               plans[plan].split, (uint32_t)(32 * tile->warps_m * tile->warps_n));
    rondo__byte_plan_shape(step, &plans[plan], &work);
    if (step != NULL && tile->is_wgmma && product->w.is_off_middle) {
        step->launch.shared_bytes += 8 * RONDO__BYTE_STEP_BYTES;  // a tile of ones
    }
    rondo__step_address(step, x);
    rondo__step_address(step, product->w.data);
    rondo__step_address(step, product->w_sums);
    rondo__step_address(step, product->y);
    rondo__byte_product_push(step, product, get_depth(product));
    rondo__step_int(step, product->rows);
    rondo__step_int(step, product->columns);
    rondo__step_int(step, get_depth(product));
    rondo__step_int(step, product->pitch);
    rondo__step_int(step, channels);
    push_window(step, product);
}
