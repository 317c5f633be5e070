// program/passes/pass_rms_norm.c — names the pattern x / sqrt(mean(x^2) + epsilon) * gain, which
// exporters write out in small ops, RMSNormalization.
//
//   x ─┬─ Pow 2 ── ReduceMean (last axis) ── Add epsilon ── Sqrt ── Reciprocal ──┐
//      └────────────────────────────────────────────────────────────────────── Mul ── Mul gain
//
// The square may be a product with itself, the root's inverse a quotient (of 1, or of x) or the
// power -0.5. The gain is a constant as long as a row. A model in half precision may widen x to f32
// in front of all that, and narrow it again before the gain, which is what the op does of itself.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/shapes/specialise.h"

enum { ONNX_FLOAT = 1 };

// The x of the value x^2; RONDO__VALUE_NONE: it is none.
static int32_t get_base_of_square(const rondo_program *program, int32_t value) {
    const rondo__node *power = rondo__match_maker(program, value, RONDO__OP_Pow);
    if (power != NULL && rondo__match_is_number(program, power->inputs[1], 2.0f)) {
        return power->inputs[0];
    }
    const rondo__node *product = rondo__match_maker(program, value, RONDO__OP_Mul);
    return product != NULL && product->inputs[0] == product->inputs[1] ? product->inputs[0]
                                                                       : RONDO__VALUE_NONE;
}

// Whether the node keeps the last axis, which alone it takes the mean of.
static bool is_mean_of_rows(const rondo_program *program, const rondo__node *mean) {
    const rondo__value *x = &program->values[mean->inputs[0]];
    size_t count = 0;
    const int64_t *axes = rondo__op_get_ints(&mean->op, "axes", &count);
    if (mean->input_count > 1 && mean->inputs[1] >= 0) {
        const rondo_tensor *list = &program->values[mean->inputs[1]].constant;
        const bool is_list = list->dtype == RONDO_DTYPE_I64 && list->shape.rank <= 1;
        axes = is_list ? list->data : NULL;
        count = is_list ? (size_t)rondo_shape_get_count(&list->shape) : 0;
    }
    return rondo__op_get_int(&mean->op, "keepdims", 1) != 0 && axes != NULL && count == 1 &&
           (axes[0] == -1 || (x->has_shape && axes[0] == x->rank - 1));
}

// The node that alone uses the value, if it is this op; -1 otherwise.
static int32_t get_user(const rondo__rewriting *r, int32_t value, rondo__op_id op) {
    const int32_t user = rondo__uses_get_single(&r->uses, value);
    return user >= 0 && !r->remove[user] && rondo__node_is(&r->program->nodes[user], op) ? user
                                                                                         : -1;
}

// The other operand of a node of two, of which `value` is one.
static int32_t get_other(const rondo__node *node, int32_t value) {
    return node->inputs[node->inputs[0] == value ? 1 : 0];
}

static int32_t get_result(const rondo__rewriting *r, int32_t node) {
    return node >= 0 ? r->program->nodes[node].outputs[0] : RONDO__VALUE_NONE;
}

// x times the inverse of the root of `sum`; RONDO__VALUE_NONE if no node makes it.
static int32_t get_quotient(const rondo__rewriting *r, int32_t sum, int32_t x) {
    const rondo_program *program = r->program;
    int32_t inverse = RONDO__VALUE_NONE;
    const int32_t power = get_user(r, sum, RONDO__OP_Pow);
    if (power >= 0) {
        const rondo__node *node = &program->nodes[power];
        const bool is_it =
            node->inputs[0] == sum && rondo__match_is_number(program, node->inputs[1], -0.5f);
        inverse = is_it ? node->outputs[0] : RONDO__VALUE_NONE;
    } else {
        const int32_t root = get_result(r, get_user(r, sum, RONDO__OP_Sqrt));
        if (root < 0) {
            return RONDO__VALUE_NONE;
        }
        const int32_t division = get_user(r, root, RONDO__OP_Div);
        inverse = get_result(r, get_user(r, root, RONDO__OP_Reciprocal));
        if (division >= 0 && program->nodes[division].inputs[1] == root) {
            const rondo__node *node = &program->nodes[division];
            if (node->inputs[0] == x) {
                return node->outputs[0];
            }
            inverse =
                rondo__match_is_number(program, node->inputs[0], 1.0f) ? node->outputs[0] : inverse;
        }
    }
    const int32_t product = inverse >= 0 ? get_user(r, inverse, RONDO__OP_Mul) : -1;
    return product >= 0 && get_other(&program->nodes[product], inverse) == x
               ? get_result(r, product)
               : RONDO__VALUE_NONE;
}

// Whether the gain is a constant list that is as long as the rows of x are known to be.
static bool is_gain(const rondo_program *program, int32_t gain, int32_t x) {
    const rondo_tensor *list = gain >= 0 ? &program->values[gain].constant : NULL;
    const rondo__value *value = &program->values[x];
    rondo__tensor_info info;
    rondo__program_get_info(program, x, &info);
    return list != NULL && list->shape.rank == 1 && value->has_shape && value->rank > 0 &&
           value->dims[value->rank - 1].number == list->shape.extent[0] &&
           rondo__dtype_is_float(list->dtype) && info.dtype == list->dtype;
}

// x before a Cast to f32 made it; x itself where none did.
static int32_t get_narrow(const rondo_program *program, int32_t x) {
    const rondo__node *cast = rondo__match_maker(program, x, RONDO__OP_Cast);
    const bool widens = cast != NULL && rondo__op_get_int(&cast->op, "to", 0) == ONNX_FLOAT;
    return widens ? cast->inputs[0] : x;
}

// The quotient in the type of the narrow x again; RONDO__VALUE_NONE if nothing makes it so.
static int32_t narrow_quotient(const rondo__rewriting *r, int32_t quotient, int32_t narrow) {
    const int32_t cast = get_user(r, quotient, RONDO__OP_Cast);
    rondo__tensor_info x, y;
    if (cast < 0) {
        return RONDO__VALUE_NONE;
    }
    const int32_t result = get_result(r, cast);
    rondo__program_get_info(r->program, narrow, &x);
    rondo__program_get_info(r->program, result, &y);
    return (x.dtype == RONDO_DTYPE_F16 || x.dtype == RONDO_DTYPE_BF16) && x.dtype == y.dtype
               ? result
               : RONDO__VALUE_NONE;
}

// Whether what is asked of the ops' precision is the same for all.
static bool are_alike(const rondo_program *program, const int32_t *nodes, size_t count) {
    for (size_t i = 1; i < count; ++i) {
        if (program->nodes[nodes[i]].precision != program->nodes[nodes[0]].precision) {
            return false;
        }
    }
    return true;
}

static rondo_status make_op(float epsilon, rondo__op *op) {
    *op = (rondo__op){.opset = RONDO_OP_OPSET_MAX,
                      .def = rondo__op_get_def(RONDO__OP_RMSNormalization)};
    return rondo__op_set_float(op, "epsilon", epsilon);
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *mean = &program->nodes[n];
    if (!rondo__node_is(mean, RONDO__OP_ReduceMean) || r->remove[n] ||
        !is_mean_of_rows(program, mean)) {
        return RONDO_STATUS_OK;
    }
    const int32_t x = get_base_of_square(program, mean->inputs[0]);
    const int32_t add = x >= 0 ? get_user(r, mean->outputs[0], RONDO__OP_Add) : -1;
    float epsilon = 0.0f;
    if (add < 0 || rondo__uses_get_single(&r->uses, mean->inputs[0]) != (int32_t)n ||
        !rondo__match_scalar(program, get_other(&program->nodes[add], mean->outputs[0]),
                             &epsilon)) {
        return RONDO_STATUS_OK;
    }
    int32_t quotient = get_quotient(r, program->nodes[add].outputs[0], x);
    const int32_t narrow = get_narrow(program, x);
    const int32_t narrowed =
        quotient >= 0 && narrow != x ? narrow_quotient(r, quotient, narrow) : RONDO__VALUE_NONE;
    const int32_t rows = narrowed >= 0 ? narrow : x;
    quotient = narrowed >= 0 ? narrowed : quotient;
    const int32_t last = quotient >= 0 ? get_user(r, quotient, RONDO__OP_Mul) : -1;
    const int32_t gain = last >= 0 ? get_other(&program->nodes[last], quotient) : -1;
    if (last < 0 || !is_gain(program, gain, rows)) {
        return RONDO_STATUS_OK;
    }
    const int32_t parts[] = {last, (int32_t)n, program->values[mean->inputs[0]].producer, add,
                             program->values[quotient].producer};
    if (!are_alike(program, parts, sizeof parts / sizeof *parts)) {
        return RONDO_STATUS_OK;
    }
    rondo__op op;
    RETURN_IF_ERROR(make_op(epsilon, &op));
    int32_t *inputs = rondo__calloc(2, sizeof *inputs);
    if (inputs == NULL) {
        rondo__op_deinit(&op);
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = rows;
    inputs[1] = gain;
    rondo__node_become(&program->nodes[last], &op, inputs, 2);
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_rms_norm(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
