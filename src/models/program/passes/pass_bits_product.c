// program/passes/pass_bits_product.c — a product with weights of a few bits, which exporters write
// as real ones, becomes com.microsoft.MatMulNBits.
//
//   w int4 [K, N] ── DequantizeLinear (blocks along K) ──┐
//   x ───────────────────────────────────────────────────┴ MatMul
//
// or with w [N, K] and a Transpose behind it. Weights of 2 and 4 bits may have one scale, or one
// for each column; those of 8 bits are left to products of bytes unless they have blocks. Nothing
// is written where the weights or what goes with them are computed.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/math/bits_product.h"
#include "op/support.h"
#include "program/edit.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { BLOCK_MIN = 16, BLOCK_OF_COLUMNS = 32 };

// Weights as the product wants them: column by column.
typedef struct weights {
    const rondo_tensor *bytes, *scales, *zeros;  // zeros: NULL where they are 0
    bool is_signed;
    int32_t k_axis;
    int32_t bits;
    int64_t k, n, block, blocks;
} weights;

// 0: none of those types.
static int32_t get_bits(rondo_dtype dtype, bool *out_is_signed) {
    *out_is_signed = dtype == RONDO_DTYPE_I2 || dtype == RONDO_DTYPE_I4 || dtype == RONDO_DTYPE_I8;
    switch (dtype) {
        case RONDO_DTYPE_I2:
        case RONDO_DTYPE_U2:
            return 2;
        case RONDO_DTYPE_I4:
        case RONDO_DTYPE_U4:
            return 4;
        case RONDO_DTYPE_I8:
        case RONDO_DTYPE_U8:
            return 8;
        default:
            return 0;
    }
}

// The DequantizeLinear above a factor, perhaps above a Transpose of its two axes.
static const rondo__node *find_source(const rondo_program *program, int32_t factor,
                                      int32_t *out_k_axis) {
    const rondo__node *turned = rondo__match_maker(program, factor, RONDO__OP_Transpose);
    *out_k_axis = turned != NULL ? 1 : 0;
    if (turned == NULL) {
        return rondo__match_maker(program, factor, RONDO__OP_DequantizeLinear);
    }
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&turned->op, "perm", &count);
    const bool is_turned = perm == NULL || (count == 2 && perm[0] == 1);
    return is_turned ? rondo__match_maker(program, turned->inputs[0], RONDO__OP_DequantizeLinear)
                     : NULL;
}

// Whether each number of a column's block has the scale that the blocks of the product give it.
static bool read_blocks(const rondo__node *node, weights *w) {
    const rondo_shape *shape = &w->scales->shape;
    const int64_t at = rondo__op_get_int(&node->op, "axis", 1);
    const int64_t axis = at < 0 ? at + 2 : at;
    w->block = rondo__op_get_int(&node->op, "block_size", 0);
    if (w->block == 0) {  // for a column, or for all
        w->block = BLOCK_OF_COLUMNS;
        w->blocks = (w->k + w->block - 1) / w->block;
        return w->bits < 8 && (rondo_shape_get_count(shape) == 1 ||
                               (shape->rank == 1 && shape->extent[0] == w->n && axis != w->k_axis));
    }
    w->blocks = (w->k + w->block - 1) / w->block;
    return axis == w->k_axis && w->block >= BLOCK_MIN && w->block <= INT32_MAX &&
           (w->block & (w->block - 1)) == 0 && shape->rank == 2 &&
           shape->extent[w->k_axis] == w->blocks && shape->extent[1 - w->k_axis] == w->n;
}

static bool fits(const rondo_tensor *zeros, const weights *w) {
    return zeros != NULL && zeros->dtype == w->bytes->dtype &&
           rondo_shape_get_count(&zeros->shape) == rondo_shape_get_count(&w->scales->shape);
}

static bool read_weights(const rondo_program *program, int32_t factor, weights *w) {
    *w = (weights){0};
    const rondo__node *node = find_source(program, factor, &w->k_axis);
    if (node == NULL || node->input_count < 2 ||
        rondo__op_get_int(&node->op, "output_dtype", 0) != 0) {
        return false;
    }
    const int32_t zeros = node->input_count > 2 ? node->inputs[2] : RONDO__VALUE_NONE;
    w->bytes = rondo__match_constant(program, node->inputs[0]);
    w->scales = rondo__match_constant(program, node->inputs[1]);
    w->zeros = rondo__match_constant(program, zeros);
    if (w->bytes == NULL || w->scales == NULL || w->bytes->shape.rank != 2 ||
        (w->scales->dtype != RONDO_DTYPE_F32 && w->scales->dtype != RONDO_DTYPE_F16) ||
        (zeros >= 0 && !fits(w->zeros, w))) {
        return false;
    }
    w->bits = get_bits(w->bytes->dtype, &w->is_signed);
    w->k = w->bytes->shape.extent[w->k_axis];
    w->n = w->bytes->shape.extent[1 - w->k_axis];
    return w->bits != 0 && w->k > 0 && w->n > 0 && read_blocks(node, w);
}

// Where the scale of a column's block stands among the weights' scales.
static int64_t find_scale(const weights *w, int64_t column, int64_t block) {
    const rondo_shape *shape = &w->scales->shape;
    return shape->rank == 2 && rondo_shape_get_count(shape) > 1
               ? (w->k_axis == 0 ? block * w->n + column : column * w->blocks + block)
           : rondo_shape_get_count(shape) == 1 ? 0
                                               : column;
}

static void put_bits(uint8_t *bytes, int32_t bits, int64_t index, int32_t number) {
    const int64_t first = index * bits;
    const uint32_t mask = (1u << bits) - 1u;
    bytes[first >> 3] = (uint8_t)(bytes[first >> 3] | ((uint32_t)number & mask) << (first & 7));
}

// Signed numbers count from -2^(bits - 1) on.
static int32_t get_number(const weights *w, const int8_t *numbers, int64_t at) {
    return w->is_signed ? numbers[at] + (1 << (w->bits - 1)) : (uint8_t)numbers[at];
}

static void pack_column(const weights *w, const int8_t *numbers, int64_t column, uint8_t *out) {
    for (int64_t i = 0; i < w->k; ++i) {
        const int64_t at = w->k_axis == 0 ? i * w->n + column : column * w->k + i;
        put_bits(out, w->bits, i, get_number(w, numbers, at));
    }
}

static void pack_blocks(const weights *w, const int8_t *zeros, int64_t column, char *out_scales,
                        uint8_t *out_zeros) {
    const size_t bytes = rondo_dtype_get_bytes(w->scales->dtype);
    for (int64_t block = 0; block < w->blocks; ++block) {
        const int64_t at = find_scale(w, column, block);
        memcpy(out_scales + (size_t)(column * w->blocks + block) * bytes,
               (const char *)w->scales->data + (size_t)at * bytes, bytes);
        if (out_zeros != NULL) {
            put_bits(out_zeros, w->bits, block, zeros != NULL ? get_number(w, zeros, at) : 0);
        }
    }
}

// The numbers as bytes, signed or not; NULL: no memory.
static int8_t *widen(const rondo_tensor *tensor, bool is_signed) {
    const size_t count = (size_t)rondo_shape_get_count(&tensor->shape);
    int8_t *numbers = rondo__malloc(count);
    if (numbers != NULL) {
        rondo__convert_elements(tensor->dtype, tensor->data,
                                is_signed ? RONDO_DTYPE_I8 : RONDO_DTYPE_U8, numbers, count);
    }
    return numbers;
}

// B, scales and zero points; where the numbers are signed and have no zero points there are none.
static rondo_status pack(const weights *w, rondo_tensor *out) {
    const bool has_zeros = w->zeros != NULL || !w->is_signed;
    const int64_t block_bytes = w->block * w->bits / 8;
    const int64_t zero_bytes = (w->blocks * w->bits + 7) / 8;
    const rondo_shape shapes[3] = {
        {3, {w->n, w->blocks, block_bytes}}, {2, {w->n, w->blocks}}, {2, {w->n, zero_bytes}}};
    const rondo_dtype dtypes[3] = {RONDO_DTYPE_U8, w->scales->dtype, RONDO_DTYPE_U8};
    for (size_t i = 0; i < (has_zeros ? 3u : 2u); ++i) {
        RETURN_IF_ERROR(rondo_tensor_init(dtypes[i], &shapes[i], &out[i]));
    }
    int8_t *numbers = widen(w->bytes, w->is_signed);
    int8_t *zeros = w->zeros != NULL ? widen(w->zeros, w->is_signed) : NULL;
    const bool has_all = numbers != NULL && (zeros != NULL || w->zeros == NULL);
    for (int64_t column = 0; column < w->n && has_all; ++column) {
        pack_column(w, numbers, column, (uint8_t *)out[0].data + column * w->blocks * block_bytes);
        pack_blocks(w, zeros, column, out[1].data,
                    has_zeros ? (uint8_t *)out[2].data + column * zero_bytes : NULL);
    }
    rondo__free(numbers);
    rondo__free(zeros);
    return has_all ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static rondo_status set_attributes(rondo__op *op, const weights *w) {
    RETURN_IF_ERROR(rondo__op_set_int(op, "K", w->k));
    RETURN_IF_ERROR(rondo__op_set_int(op, "N", w->n));
    RETURN_IF_ERROR(rondo__op_set_int(op, "bits", w->bits));
    return rondo__op_set_int(op, "block_size", w->block);
}

static rondo_status make_product(rondo_program *program, size_t n, const weights *w,
                                 const rondo_tensor *packed) {
    static const char *const names[3] = {"weights", "scales", "zero_points"};
    rondo__op op = {.opset = 1, .def = rondo__op_lookup("com.microsoft", "MatMulNBits", 1)};
    int32_t inputs[4] = {program->nodes[n].inputs[0], RONDO__VALUE_NONE, RONDO__VALUE_NONE,
                         RONDO__VALUE_NONE};
    for (size_t i = 0; i < 3; ++i) {
        if (packed[i].dtype != RONDO_DTYPE_NONE) {
            RETURN_IF_ERROR(
                rondo__program_add_constant(program, names[i], &packed[i], &inputs[1 + i]));
        }
    }
    const size_t count = inputs[3] >= 0 ? 4 : 3;
    int32_t *list = rondo__calloc(count, sizeof *list);
    rondo_status status = list == NULL ? RONDO_STATUS_NO_MEMORY : set_attributes(&op, w);
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(list);
        return status;
    }
    memcpy(list, inputs, count * sizeof *list);
    rondo__node_become(&program->nodes[n], &op, list, count);
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    const rondo__node *node = &r->program->nodes[n];
    weights w;
    if (r->remove[n] || !rondo__node_is(node, RONDO__OP_MatMul) ||
        !read_weights(r->program, node->inputs[1], &w)) {
        return RONDO_STATUS_OK;
    }
    rondo_tensor packed[3] = {{0}};
    rondo_status status = pack(&w, packed);
    if (status == RONDO_STATUS_OK) {
        status = make_product(r->program, n, &w, packed);
    }
    for (size_t i = 0; i < 3; ++i) {
        rondo_tensor_deinit(&packed[i]);
    }
    return status;
}

rondo_status rondo__pass_bits_product(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
