// program/passes/pass_qdq.c — what quantisers write around real ops becomes arithmetic of 8-bit
// integers.
//
//   x bytes ── DequantizeLinear ──┐
//   w bytes ── DequantizeLinear ──┼─ Conv ── (Relu) ── QuantizeLinear ── bytes
//   b i32 ──── DequantizeLinear ──┘
//
// becomes QLinearConv, and a MatMul likewise QLinearMatMul: their sums are exact, where those of
// the real op are rounded, so that a result may differ by the last step. An Add becomes
// rondo.QLinearAdd, of numbers of 16 bits, too, with the same result. Scales and zero points are
// constants; the bias counts in steps of the product. An activation goes where the bytes'
// range implies it. Ops that only move or choose elements take bytes as they are where both sides
// have one scale.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// Bytes that stand for real numbers: (bytes - zero) * scale.
typedef struct quantised {
    int32_t bytes, scale, zero;  // values; scale and zero are constants
} quantised;

static bool is_byte(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_U8 || dtype == RONDO_DTYPE_I8;
}

// Numbers that an Add takes: of 16 bits, too.
static bool is_summand(rondo_dtype dtype) {
    return is_byte(dtype) || dtype == RONDO_DTYPE_U16 || dtype == RONDO_DTYPE_I16;
}

static int64_t count_elements(const rondo_program *program, int32_t value) {
    const rondo_tensor *tensor = rondo__match_constant(program, value);
    return tensor != NULL ? rondo_shape_get_count(&tensor->shape) : -1;
}

// Reads a QuantizeLinear or DequantizeLinear of `type` (RONDO_DTYPE_U8: of either kind of byte,
// RONDO_DTYPE_U16: of what an Add takes).
static bool read_step(const rondo_program *program, const rondo__node *node, rondo_dtype type,
                      quantised *out) {
    // Types that these attributes name: 1 is f32, 0 that of the scale. A QuantizeLinear's
    // output_dtype is that of its zero point.
    const int64_t real = rondo__node_is(node, RONDO__OP_DequantizeLinear)
                             ? rondo__op_get_int(&node->op, "output_dtype", 0)
                             : rondo__op_get_int(&node->op, "precision", 0);
    if (node->input_count < 2 || rondo__op_get_int(&node->op, "block_size", 0) != 0 ||
        (real != 0 && real != 1)) {
        return false;
    }
    const int32_t zero = node->input_count > 2 ? node->inputs[2] : RONDO__VALUE_NONE;
    const rondo_tensor *zeros = rondo__match_constant(program, zero);
    const rondo_tensor *scales = rondo__match_constant(program, node->inputs[1]);
    *out = (quantised){node->inputs[0], node->inputs[1], zero};
    return scales != NULL && scales->dtype == RONDO_DTYPE_F32 && zeros != NULL &&
           (type == RONDO_DTYPE_U8    ? is_byte(zeros->dtype)
            : type == RONDO_DTYPE_U16 ? is_summand(zeros->dtype)
                                      : zeros->dtype == type) &&
           rondo_shape_get_count(&zeros->shape) == rondo_shape_get_count(&scales->shape);
}

// Numbers of `type`, with one scale, that a real value is made of.
static bool read_numbers(const rondo_program *program, int32_t value, rondo_dtype type,
                         quantised *out) {
    const rondo__node *node = rondo__match_maker(program, value, RONDO__OP_DequantizeLinear);
    return node != NULL && read_step(program, node, type, out) &&
           count_elements(program, out->scale) == 1;
}

static bool read_operand(const rondo_program *program, int32_t value, quantised *out) {
    return read_numbers(program, value, RONDO_DTYPE_U8, out);
}

// Constant bytes with one scale, or one for each of the `count` positions along `axis`.
static bool read_weights(const rondo_program *program, int32_t value, int32_t axis,
                         quantised *out) {
    const rondo__node *node = rondo__match_maker(program, value, RONDO__OP_DequantizeLinear);
    const rondo_tensor *bytes =
        node != NULL ? rondo__match_constant(program, node->inputs[0]) : NULL;
    if (bytes == NULL || !read_step(program, node, RONDO_DTYPE_U8, out)) {
        return false;
    }
    const int64_t rank = bytes->shape.rank, at = rondo__op_get_int(&node->op, "axis", 1);
    const int32_t own = (int32_t)(at < 0 ? at + rank : at);
    const int32_t wanted = axis < 0 ? (int32_t)rank + axis : axis;
    const int64_t count = count_elements(program, out->scale);
    return count == 1 ||
           (own == wanted && wanted >= 0 && wanted < rank && count == bytes->shape.extent[wanted] &&
            rondo__match_constant(program, out->scale)->shape.rank == 1);
}

// The bias as i32; RONDO__VALUE_NONE where it counts in other steps than the product.
static int32_t read_bias(const rondo_program *program, int32_t value, const quantised *x,
                         const quantised *w) {
    quantised bias;
    const rondo__node *node = rondo__match_maker(program, value, RONDO__OP_DequantizeLinear);
    const rondo_tensor *sums =
        node != NULL ? rondo__match_constant(program, node->inputs[0]) : NULL;
    if (sums == NULL || sums->dtype != RONDO_DTYPE_I32 || sums->shape.rank != 1 ||
        !read_step(program, node, RONDO_DTYPE_I32, &bias)) {
        return RONDO__VALUE_NONE;
    }
    const float *steps = rondo__match_constant(program, bias.scale)->data;
    const float *x_scale = rondo__match_constant(program, x->scale)->data;
    const float *w_scales = rondo__match_constant(program, w->scale)->data;
    const int32_t *zeros = rondo__match_constant(program, bias.zero)->data;
    const int64_t step_count = count_elements(program, bias.scale);
    const int64_t w_count = count_elements(program, w->scale);
    const int64_t count = sums->shape.extent[0];
    if ((step_count != 1 && step_count != count) || (w_count != 1 && w_count != count)) {
        return RONDO__VALUE_NONE;
    }
    for (int64_t i = 0; i < count; ++i) {
        const float step = steps[step_count == 1 ? 0 : i];
        const float product = x_scale[0] * w_scales[w_count == 1 ? 0 : i];
        if (zeros[step_count == 1 ? 0 : i] != 0 ||
            !(fabsf(step - product) <= 1e-5f * fabsf(product))) {
            return RONDO__VALUE_NONE;
        }
    }
    return bias.bytes;
}

static int32_t get_zero(const rondo_program *program, const quantised *q) {
    const rondo_tensor *zero = rondo__match_constant(program, q->zero);
    int32_t value = 0;
    rondo__convert_elements(zero->dtype, zero->data, RONDO_DTYPE_I32, &value, 1);
    return value;
}

// Whether the activation changes nothing that the bytes can say.
static bool is_implied(const rondo_program *program, const rondo__node *node, const quantised *y) {
    rondo__activation activation;
    float low, high;
    if (!rondo__match_activation(program, node, &activation, &low, &high)) {
        return false;
    }
    const rondo_dtype dtype = rondo__match_constant(program, y->zero)->dtype;
    const int32_t steps = 1 << 8 * rondo_dtype_get_bytes(dtype);
    const bool is_signed = dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_I16;
    const float scale = *(const float *)rondo__match_constant(program, y->scale)->data;
    const int32_t first = (is_signed ? -steps / 2 : 0) - get_zero(program, y);
    const float least = (float)first * scale;
    const float most = (float)(first + steps - 1) * scale;
    const float slack = 0.25f * scale;  // rounded away
    return activation == RONDO__ACTIVATION_RELU   ? least >= 0.0f
           : activation == RONDO__ACTIVATION_CLIP ? least >= low - slack && most <= high + slack
                                                  : false;
}

// The node that alone uses the value; -1: none does, or several do.
static int32_t get_user(const rondo__rewriting *r, int32_t value) {
    const int32_t user = rondo__uses_get_single(&r->uses, value);
    return user >= 0 && !r->remove[user] ? user : -1;
}

// The QuantizeLinear behind a node, perhaps behind an activation that it implies; both are marked.
// False, and nothing is marked, where there is none.
static bool take_result(rondo__rewriting *r, const rondo__node *node, rondo_dtype type,
                        quantised *out, int32_t *out_result) {
    const rondo_program *program = r->program;
    int32_t between = -1;
    int32_t user = get_user(r, node->outputs[0]);
    if (user >= 0 && !rondo__node_is(&program->nodes[user], RONDO__OP_QuantizeLinear)) {
        between = user;
        user = program->nodes[between].output_count == 1
                   ? get_user(r, program->nodes[between].outputs[0])
                   : -1;
    }
    if (user < 0 || !rondo__node_is(&program->nodes[user], RONDO__OP_QuantizeLinear) ||
        !read_step(program, &program->nodes[user], type, out) ||
        count_elements(program, out->scale) != 1 ||
        (between >= 0 && !is_implied(program, &program->nodes[between], out))) {
        return false;
    }
    *out_result = program->nodes[user].outputs[0];
    r->remove[user] = true;
    if (between >= 0) {
        r->remove[between] = true;
    }
    return true;
}

// ---- products ---------------------------------------------------------------------------------

// The node keeps its name, attributes and version. Takes nothing on failure.
static rondo_status become_linear(rondo__rewriting *r, size_t n, rondo__op_id op,
                                  const int32_t *inputs, size_t count, int32_t result) {
    rondo__node *node = &r->program->nodes[n];
    int32_t *list = rondo__calloc(count, sizeof *list);
    if (list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(list, inputs, count * sizeof *list);
    rondo__free(node->inputs);
    node->inputs = list;
    node->input_count = count;
    node->explicit_count = count;
    node->op.def = rondo__op_get_def(op);
    node->outputs[0] = result;
    r->program->values[result].producer = (int32_t)n;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_convolution(rondo__rewriting *r, size_t n) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    quantised x, w, y;
    int32_t bias = RONDO__VALUE_NONE, result;
    if (!read_operand(program, node->inputs[0], &x) ||
        !read_weights(program, node->inputs[1], 0, &w) ||
        rondo__match_constant(program, w.bytes)->shape.rank > 4) {  // kernels of bytes take images
        return RONDO_STATUS_OK;
    }
    const bool has_bias = node->input_count > 2 && node->inputs[2] >= 0;
    if (has_bias) {
        bias = read_bias(program, node->inputs[2], &x, &w);
    }
    if ((has_bias && bias < 0) || !take_result(r, node, RONDO_DTYPE_U8, &y, &result)) {
        return RONDO_STATUS_OK;
    }
    const int32_t inputs[9] = {x.bytes, x.scale, x.zero, w.bytes, w.scale,
                               w.zero,  y.scale, y.zero, bias};
    return become_linear(r, n, RONDO__OP_QLinearConv, inputs, has_bias ? 9 : 8, result);
}

static rondo_status rewrite_product(rondo__rewriting *r, size_t n) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    quantised a, b, y;
    int32_t result;
    if (!read_operand(program, node->inputs[0], &a) ||
        !(read_weights(program, node->inputs[1], -1, &b) ||
          read_operand(program, node->inputs[1], &b)) ||
        !take_result(r, node, RONDO_DTYPE_U8, &y, &result)) {
        return RONDO_STATUS_OK;
    }
    const int32_t inputs[8] = {a.bytes, a.scale, a.zero, b.bytes, b.scale, b.zero, y.scale, y.zero};
    return become_linear(r, n, RONDO__OP_QLinearMatMul, inputs, 8, result);
}

static rondo_status rewrite_sum(rondo__rewriting *r, size_t n) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    quantised a, b, y;
    int32_t result;
    if (!read_numbers(program, node->inputs[0], RONDO_DTYPE_U16, &a) ||
        !read_numbers(program, node->inputs[1], RONDO_DTYPE_U16, &b) ||
        !take_result(r, node, RONDO_DTYPE_U16, &y, &result)) {
        return RONDO_STATUS_OK;
    }
    const int32_t inputs[8] = {a.bytes, a.scale, a.zero, b.bytes, b.scale, b.zero, y.scale, y.zero};
    return become_linear(r, n, RONDO__FUSED_QLinearAdd, inputs, 8, result);
}

// ---- moves ------------------------------------------------------------------------------------

static bool is_same_constant(const rondo_program *program, int32_t a, int32_t b) {
    const rondo_tensor *x = rondo__match_constant(program, a),
                       *y = rondo__match_constant(program, b);
    return x->dtype == y->dtype && rondo_shape_get_count(&x->shape) == 1 &&
           rondo_shape_get_count(&y->shape) == 1 &&
           memcmp(x->data, y->data, rondo_dtype_get_bytes(x->dtype)) == 0;
}

static bool is_same_step(const rondo_program *program, const quantised *a, const quantised *b) {
    return is_same_constant(program, a->scale, b->scale) &&
           is_same_constant(program, a->zero, b->zero);
}

// How many of the node's first inputs are what it moves or chooses from; 0: it does more.
static size_t count_moved(const rondo__node *node) {
    switch (node->op.def->id) {
        case RONDO__OP_Concat:
            return node->input_count;
        case RONDO__OP_DepthToSpace:
        case RONDO__OP_Expand:
        case RONDO__OP_Flatten:
        case RONDO__OP_Gather:
        case RONDO__OP_Identity:
        case RONDO__OP_Reshape:
        case RONDO__OP_Slice:
        case RONDO__OP_SpaceToDepth:
        case RONDO__OP_Squeeze:
        case RONDO__OP_Tile:
        case RONDO__OP_Transpose:
        case RONDO__OP_Unsqueeze:
            return 1;
        default:
            return 0;
    }
}

// Bytes through an op that only moves them, where both sides have one scale.
static void rewrite_move(rondo__rewriting *r, size_t n, size_t moved) {
    rondo_program *program = r->program;
    rondo__node *node = &program->nodes[n];
    const int32_t user = get_user(r, node->outputs[0]);
    quantised x, y;
    if (user < 0 || !rondo__node_is(&program->nodes[user], RONDO__OP_QuantizeLinear) ||
        !read_step(program, &program->nodes[user], RONDO_DTYPE_U8, &y)) {
        return;
    }
    for (size_t i = 0; i < moved; ++i) {
        if (!read_operand(program, node->inputs[i], &x) || !is_same_step(program, &x, &y)) {
            return;
        }
    }
    for (size_t i = 0; i < moved; ++i) {
        (void)read_operand(program, node->inputs[i], &x);
        node->inputs[i] = x.bytes;
    }
    node->outputs[0] = program->nodes[user].outputs[0];
    program->values[node->outputs[0]].producer = (int32_t)n;
    r->remove[user] = true;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    const rondo__node *node = &r->program->nodes[n];
    if (r->remove[n] || node->output_count != 1) {
        return RONDO_STATUS_OK;
    }
    const size_t moved = count_moved(node);
    if (moved > 0) {
        rewrite_move(r, n, moved);
    }
    return rondo__node_is(node, RONDO__OP_Conv)     ? rewrite_convolution(r, n)
           : rondo__node_is(node, RONDO__OP_MatMul) ? rewrite_product(r, n)
           : rondo__node_is(node, RONDO__OP_Add)    ? rewrite_sum(r, n)
                                                    : RONDO_STATUS_OK;
}

rondo_status rondo__pass_qdq(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
