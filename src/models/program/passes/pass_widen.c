// program/passes/pass_widen.c — a cast to f32 goes into the product before it.
//
//   before   h = rondo.MatMul(a, b)  f16        after    y = rondo.MatMul(a, b)  f32
//            y = cast(h)             f32
//
// The sums are f32 anyway: a launch is saved, and y is not rounded and does not leave the range of
// f16. Outputs of networks in half precision end that way. It runs when chains of element-wise ops
// are formed: a cast that is part of one costs nothing there.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { ONNX_FLOAT = 1 };  // TensorProto.DataType

// A Cast, or what pass_half makes for one.
static bool is_cast_to_single(const rondo_program *program, const rondo__node *node) {
    const bool is_cast = rondo__node_is(node, RONDO__OP_Cast);
    if ((!is_cast && !rondo__node_is(node, RONDO__FUSED_Elementwise)) || node->inputs[0] < 0 ||
        rondo__op_get_int(&node->op, "to", 0) != ONNX_FLOAT ||
        program->values[node->inputs[0]].dtype != RONDO_DTYPE_F16) {
        return false;
    }
    const rondo__attribute *ops = rondo__op_find(&node->op, "ops");
    return is_cast ||
           (node->input_count == 1 && ops != NULL && ops->count == 1 &&
            strcmp(ops->strings[0], rondo__match_scalar_name(RONDO__SCALAR_Saturate)) == 0);
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *cast = &program->nodes[n];
    if (!is_cast_to_single(program, cast)) {
        return RONDO_STATUS_OK;
    }
    const int32_t half = cast->inputs[0], maker = program->values[half].producer;
    if (maker < 0 || !rondo__node_is(&program->nodes[maker], RONDO__FUSED_MatMul) ||
        rondo__uses_get_single(&r->uses, half) != (int32_t)n) {
        return RONDO_STATUS_OK;
    }
    rondo__node *product = &program->nodes[maker];
    RETURN_IF_ERROR(rondo__op_set_int(&product->op, "to", ONNX_FLOAT));
    product->outputs[0] = cast->outputs[0];
    r->remove[n] = true;
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_widen(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
