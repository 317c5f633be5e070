// MatMulInteger and QLinearMatMul, and what they share with the convolutions.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/cuda_byte_product.h"

#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/cuda_matmul.h"

enum {
    SUM_DEPTH_MAX = 1 << 17,  // products of longer rows may leave 32 bits
    VECTOR_ROWS_MAX = 4,      // products of so few rows are bound by reading b
    GRID_MAX = 65535,
};

// ---- shared -----------------------------------------------------------------------------------

static const rondo__tensor_info *get_input(const rondo__cuda_kernel *kernel, int index) {
    return rondo__cuda_input(kernel, index < 0 ? SIZE_MAX : (size_t)index);
}

// Whether the zero point is known to be the middle of the type's range, so that nothing is left of
// it when the middle of unsigned bytes is taken off.
static bool is_middle(const rondo__tensor_info *zero, bool is_unsigned) {
    if (zero->dtype == RONDO_DTYPE_NONE) {
        return !is_unsigned;
    }
    const int64_t count = zero->constant == NULL ? 0 : rondo_shape_get_count(&zero->shape);
    const uint8_t *bytes = count > 0 ? zero->constant->data : NULL;
    for (int64_t i = 0; i < count; i++) {
        if (bytes[i] != (is_unsigned ? 128 : 0)) {
            return false;
        }
    }
    return count > 0;
}

static void read_operand(rondo__cuda_kernel *kernel, rondo__byte_operand *operand) {
    const rondo_dtype dtype = get_input(kernel, operand->index)->dtype;
    const rondo__tensor_info *zero = get_input(kernel, operand->zero);
    operand->is_unsigned = dtype == RONDO_DTYPE_U8;
    operand->has_zero = !is_middle(zero, operand->is_unsigned);
    if (zero->dtype != RONDO_DTYPE_NONE && zero->dtype != dtype) {
        rondo__cuda_refuse(kernel, "a zero point of another type than its operand");
    }
}

bool rondo__byte_product_read(rondo__cuda_kernel *kernel, rondo__byte_product *product) {
    const rondo_dtype scale = get_input(kernel, product->y_scale)->dtype;
    const rondo_dtype bias = get_input(kernel, product->bias)->dtype;
    read_operand(kernel, &product->a);
    read_operand(kernel, &product->b);
    if (get_input(kernel, product->a.scale)->dtype != scale ||
        get_input(kernel, product->b.scale)->dtype != scale) {
        rondo__cuda_refuse(kernel, "scales of different types");
    }
    if (bias != RONDO_DTYPE_NONE && bias != RONDO_DTYPE_I32) {
        rondo__cuda_refuse(kernel, "a bias of this type");
    }
    return kernel->status == RONDO_STATUS_OK;
}

rondo__step *rondo__byte_product_add(rondo__cuda_kernel *kernel, const rondo__byte_product *product,
                                     rondo__defines *defines, const char *name, int64_t blocks) {
    rondo__define_type(defines, "Y", rondo__cuda_output(kernel, 0)->dtype);
    if (product->y_scale != RONDO__BYTE_NONE) {
        rondo__define_type(defines, "S", get_input(kernel, product->y_scale)->dtype);
    }
    rondo__define_word(defines, "SUM", product->depth < SUM_DEPTH_MAX ? "i32" : "i64");
    rondo__define_int(defines, "A_IS_UNSIGNED", product->a.is_unsigned);
    rondo__define_int(defines, "B_IS_UNSIGNED", product->b.is_unsigned);
    rondo__define_int(defines, "A_HAS_ZERO", product->a.has_zero);
    rondo__define_int(defines, "B_HAS_ZERO", product->b.has_zero);
    return rondo__cuda_add_launch(kernel, rondo__cu_byte_product, defines, name, blocks,
                                  RONDO__CUDA_BLOCK);
}

static void push_optional(rondo__step *step, const rondo__cuda_kernel *kernel, int index) {
    rondo__step_optional_input(step, kernel, index < 0 ? SIZE_MAX : (size_t)index);
}

static void push_count(rondo__step *step, const rondo__cuda_kernel *kernel, int index) {
    const rondo__tensor_info *info = get_input(kernel, index);
    rondo__step_int(step,
                    info->dtype == RONDO_DTYPE_NONE ? 1 : rondo_shape_get_count(&info->shape));
}

void rondo__byte_product_push(rondo__step *step, const rondo__cuda_kernel *kernel,
                              const rondo__byte_product *product) {
    push_optional(step, kernel, product->a.zero);
    push_optional(step, kernel, product->b.zero);
    push_count(step, kernel, product->a.zero);
    push_count(step, kernel, product->b.zero);
    push_optional(step, kernel, product->a.scale);
    push_optional(step, kernel, product->b.scale);
    push_optional(step, kernel, product->y_scale);
    push_count(step, kernel, product->a.scale);
    push_count(step, kernel, product->b.scale);
    push_optional(step, kernel, product->y_zero);
    push_optional(step, kernel, product->bias);
    rondo__step_int(step, product->depth);
}

// ---- matrices ---------------------------------------------------------------------------------

// A constant b of [batches, k, n] becomes [batches, n, words of k], signed: the kernels read along k.
typedef struct packed_form {
    char kind[8];
    int64_t batches, k, n, pitch;
    int64_t is_unsigned;
} packed_form;

static rondo_status fill_packed(const rondo__weight_want *want, void *packed) {
    const packed_form *form = want->form;
    const uint8_t *from = want->constant->data;
    uint8_t *to = packed;
    const uint8_t flip = form->is_unsigned != 0 ? 0x80 : 0;
    for (int64_t batch = 0; batch < form->batches; batch++) {
        for (int64_t k = 0; k < form->k; k++) {
            for (int64_t n = 0; n < form->n; n++) {
                to[(batch * form->n + n) * form->pitch + k] = (uint8_t)(*from++ ^ flip);
            }
        }
    }
    return RONDO_STATUS_OK;
}

bool rondo__byte_product_pack(rondo__cuda_kernel *kernel, size_t index, int64_t k, int64_t n,
                              rondo__address *out_packed) {
    const rondo_tensor *b = rondo__cuda_input(kernel, index)->constant;
    const packed_form form = {
        .kind = "bytes",
        .batches = rondo_shape_get_count(&b->shape) / (k * n),
        .k = k,
        .n = n,
        .pitch = (k + 3) / 4 * 4,
        .is_unsigned = b->dtype == RONDO_DTYPE_U8,
    };
    rondo__weight_want want = {
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)(form.batches * form.n * form.pitch),
        .fill = fill_packed,
    };
    return rondo__cuda_own_input(kernel, index, &want, out_packed);
}

static void push_four(rondo__step *step, const int64_t *values, int64_t unit) {
    for (int d = 0; d < RONDO__MATMUL_BATCH_RANK; d++) {
        rondo__step_int(step, values[d] / unit);
    }
}

static void add_product(rondo__cuda_kernel *kernel, rondo__byte_product *product) {
    rondo__cuda_matmul p = {0};
    rondo__defines defines = {0};
    if (!rondo__byte_product_read(kernel, product) ||
        !rondo__cuda_read_product(kernel, (size_t)product->a.index, (size_t)product->b.index, &p)) {
        return;
    }
    product->depth = p.k;
    const size_t index = (size_t)product->b.index;
    const bool is_packed = rondo__cuda_input(kernel, index)->constant != NULL &&
                           rondo__byte_product_pack(kernel, index, p.k, p.n, &p.b);
    const bool is_vector = is_packed && p.batch_count == 1 && p.m <= VECTOR_ROWS_MAX;
    const int64_t row_tiles = is_vector ? p.m : (p.m + 63) / 64;
    if (row_tiles > GRID_MAX || p.batch_count > GRID_MAX) {
        rondo__cuda_refuse(kernel, "more rows or batches than a grid holds");
        return;
    }
    rondo__define_int(&defines, "A_IS_WHOLE", p.k % 4 == 0);
    rondo__define_int(&defines, "B_IS_PACKED", is_packed);
    rondo__step *step = rondo__byte_product_add(kernel, product, &defines,
                                                is_vector ? "byte_vector" : "byte_matmul",
                                                is_vector ? (p.n + 7) / 8 : (p.n + 63) / 64);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)row_tiles;
        step->launch.grid[2] = (uint32_t)p.batch_count;
    }
    rondo__step_address(step, p.a);
    rondo__step_address(step, p.b);
    rondo__step_address(step, p.y);
    rondo__step_int(step, p.m);
    rondo__step_int(step, p.n);
    rondo__step_int(step, p.k);
    rondo__step_int(step, (p.k + 3) / 4);
    push_four(step, p.batch_extent, 1);
    push_four(step, p.a_batch, p.m * p.k);
    push_four(step, p.b_batch, p.k * p.n);
    rondo__byte_product_push(step, kernel, product);
}

void rondo__cuda_prepare_matmul_integer(rondo__cuda_kernel *kernel) {
    rondo__byte_product product = {
        .a = {.index = 0, .zero = 2, .scale = RONDO__BYTE_NONE},
        .b = {.index = 1, .zero = 3, .scale = RONDO__BYTE_NONE},
        .y_scale = RONDO__BYTE_NONE,
        .y_zero = RONDO__BYTE_NONE,
        .bias = RONDO__BYTE_NONE,
    };
    add_product(kernel, &product);
}

void rondo__cuda_prepare_qlinear_matmul(rondo__cuda_kernel *kernel) {
    rondo__byte_product product = {
        .a = {.index = 0, .scale = 1, .zero = 2},
        .b = {.index = 3, .scale = 4, .zero = 5},
        .y_scale = 6,
        .y_zero = 7,
        .bias = RONDO__BYTE_NONE,
    };
    add_product(kernel, &product);
}
