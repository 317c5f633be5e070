// kernel/cuda/product/cuda_byte_ways.c — MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv,
// as models have them and as passes make them, and which way is the fastest for a product.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/product/cuda_byte_product.h"
#include "kernel/cuda/tune/cuda_tune.h"

enum {
    NONE = -1,           // no such input
    PACK_ROWS_MIN = 16,  // computed weights are not worth packing for fewer rows
    PLANS_FAST = 4,      // of the plans for tensor cores, those that a fast contest tries
};

// ---- the choice -------------------------------------------------------------------------------

typedef struct byte_problem {
    const rondo__byte_product *product;
    size_t plan_count;
    size_t plain;  // the plain way's number among all
} byte_problem;

static size_t get_plan(const byte_problem *problem, size_t index) {
    return index < problem->plain ? index : index - 1;
}

static void build_way(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    const byte_problem *problem = data;
    if (index == problem->plain) {
        rondo__byte_product_add_plain(kernel, problem->product);
    } else {
        rondo__byte_product_add_plan(kernel, problem->product, get_plan(problem, index));
    }
}

static void describe_way(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                         char *text, size_t text_bytes) {
    const byte_problem *problem = data;
    if (index == problem->plain) {
        (void)snprintf(text, text_bytes, "plain");
    } else {
        rondo__byte_product_describe_plan(kernel, problem->product, get_plan(problem, index), text,
                                          text_bytes);
    }
}

static void write_key(const rondo__byte_product *p, char *text, size_t text_bytes) {
    const rondo__window *w = &p->window;
    int length = snprintf(
        text, text_bytes,
        "bytes %s %s to %s m%lld n%lld k%lld batch %lld packed %d zeros %d %d %d act %d "
        "bias %d add %d",
        rondo_dtype_get_name(p->x.dtype), rondo_dtype_get_name(p->w.dtype),
        rondo_dtype_get_name(p->y_dtype), (long long)p->rows, (long long)p->columns,
        (long long)p->depth, (long long)p->batches, (int)p->is_packed, (int)p->x.is_off_zero,
        (int)p->x.is_off_middle, (int)p->w.is_off_middle, (int)p->activation,
        p->bias.count > 0 ? 1 + (int)p->is_bias_in_steps : 0, (int)(p->residual.count > 0));
    if (p->is_convolution && length >= 0 && (size_t)length < text_bytes) {
        (void)snprintf(text + length, text_bytes - (size_t)length,
                       " conv %s n%lld c%lld g%lld in %lldx%lldx%lld kernel %lldx%lldx%lld stride "
                       "%lldx%lldx%lld dilation %lldx%lldx%lld pads %lldx%lldx%lld",
                       w->channels_last ? "last" : "first", (long long)w->batch,
                       (long long)p->channels, (long long)p->groups, (long long)w->in[0],
                       (long long)w->in[1], (long long)w->in[2], (long long)w->kernel[0],
                       (long long)w->kernel[1], (long long)w->kernel[2], (long long)w->stride[0],
                       (long long)w->stride[1], (long long)w->stride[2], (long long)w->dilation[0],
                       (long long)w->dilation[1], (long long)w->dilation[2],
                       (long long)w->before[0], (long long)w->before[1], (long long)w->before[2]);
    }
}

void rondo__byte_product_add(rondo__cuda_kernel *kernel, const rondo__byte_product *product,
                             int64_t forced) {
    byte_problem problem = {.product = product};
    char key[480];
    if (kernel->status != RONDO_STATUS_OK) {
        return;
    }
    problem.plan_count = rondo__byte_product_count_plans(kernel, product);
    problem.plain = rondo__byte_product_is_vector(product) ? 0 : problem.plan_count;
    const size_t count = problem.plan_count + 1;
    if (forced >= 0) {
        build_way(kernel, &problem, (size_t)forced % count);
        return;
    }
    write_key(product, key, sizeof key);
    const size_t first = problem.plain == 0 ? 1 : 0;
    const rondo__tuning tuning = {
        .key = key,
        .candidate_count = count,
        .fast = ((UINT64_C(1) << PLANS_FAST) - 1) << first | UINT64_C(1) << problem.plain,
        .problem = &problem,
        .build = build_way,
        .describe = describe_way,
    };
    rondo__cuda_add_fastest(kernel, &tuning);
}

// ---- the ops ----------------------------------------------------------------------------------

// Constant weights are packed for all ways, computed ones for tensor cores and convolutions.
static bool wants_packed(const rondo__cuda_kernel *kernel, const rondo__byte_product *product,
                         size_t index) {
    rondo__byte_product packed = *product;
    packed.is_packed = true;
    if (product->is_convolution) {
        return !rondo__byte_product_is_direct(product);
    }
    return rondo__cuda_input(kernel, index)->constant != NULL ||
           (product->rows >= PACK_ROWS_MIN && rondo__byte_product_count_plans(kernel, &packed) > 0);
}

static void prepare(rondo__cuda_kernel *kernel, const rondo__byte_places *places,
                    bool is_convolution) {
    rondo__byte_product product;
    if (!rondo__byte_product_read(kernel, places, is_convolution, &product)) {
        return;
    }
    const size_t w = (size_t)places->w;
    if (wants_packed(kernel, &product, w) &&
        !rondo__byte_product_pack_weights(kernel, w, &product)) {
        return;
    }
    rondo__byte_product_add(kernel, &product, rondo__op_get_int(kernel->request->op, "way", -1));
}

// Of an op of a model, which ends in i32, and of one of ours, which may end in f32.
static const rondo__byte_places integer_places = {
    .x = 0,
    .x_scale = 4,
    .x_zero = 2,
    .w = 1,
    .w_scale = 5,
    .w_zero = 3,
    .y_scale = NONE,
    .y_zero = NONE,
    .bias = 6,
    .residual = 7,
};
static const rondo__byte_places linear_places = {
    .x = 0,
    .x_scale = 1,
    .x_zero = 2,
    .w = 3,
    .w_scale = 4,
    .w_zero = 5,
    .y_scale = 6,
    .y_zero = 7,
    .bias = 8,  // of QLinearConv
    .residual = NONE,
};

void rondo__cuda_prepare_matmul_integer(rondo__cuda_kernel *kernel) {
    prepare(kernel, &integer_places, false);
}

void rondo__cuda_prepare_qlinear_matmul(rondo__cuda_kernel *kernel) {
    prepare(kernel, &linear_places, false);
}

void rondo__cuda_prepare_conv_integer(rondo__cuda_kernel *kernel) {
    prepare(kernel, &integer_places, true);
}

void rondo__cuda_prepare_qlinear_conv(rondo__cuda_kernel *kernel) {
    prepare(kernel, &linear_places, true);
}
