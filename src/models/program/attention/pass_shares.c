// program/attention/pass_shares.c — the shares of an attention in f16 are not rounded where only a
// product reads them.
//
//   before   shares = Softmax(x)            f16      after   w      = Cast(x)                 f32
//            y      = rondo.MatMul(shares, v)                shares = Softmax(w)              f32
//                                           f16              y      = rondo.MatMul(shares, v) f16
//
// Both ops calculate in f32 anyway; rounded in between, shares no longer add up to 1, and y is off
// by up to two units of f16, where y of shares in f32 is the exact result, rounded once. On the
// host, which widens f16 for both: a rounding is saved, and no op is added that was not there.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { ONNX_FLOAT = 1, ONNX_FLOAT16 = 10 };  // TensorProto.DataType

// The product that alone reads `shares`, as its first operand; -1: there is none.
static int32_t find_product(const rondo__rewriting *r, int32_t shares) {
    const rondo_program *program = r->program;
    const int32_t user = rondo__uses_get_single(&r->uses, shares);
    if (user < 0 || r->remove[user] ||
        !rondo__node_is(&program->nodes[user], RONDO__FUSED_MatMul)) {
        return -1;
    }
    const rondo__node *product = &program->nodes[user];
    return product->inputs[0] == shares && rondo__op_find(&product->op, "to") == NULL &&
                   program->values[product->outputs[0]].dtype == RONDO_DTYPE_F16
               ? user
               : -1;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *softmax = &program->nodes[n];
    if (!rondo__node_is(softmax, RONDO__OP_Softmax) &&
        !rondo__node_is(softmax, RONDO__FUSED_Softmax)) {
        return RONDO_STATUS_OK;
    }
    const int32_t x = softmax->inputs[0], shares = softmax->outputs[0];
    const int32_t product = find_product(r, shares);
    rondo_shape shape;
    int32_t wide;
    if (product < 0 || program->values[shares].dtype != RONDO_DTYPE_F16 ||
        program->values[x].dtype != RONDO_DTYPE_F16 ||
        !rondo__value_get_shape(&program->values[x], &shape)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_add_shaped(program, program->values[x].name, RONDO_DTYPE_F32,
                                              &shape, &wide));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Cast", program->values[wide].name, &x,
                                              1, &wide, 1));
    rondo__node *cast = &program->nodes[program->node_count - 1];
    cast->place = program->nodes[n].place;
    RETURN_IF_ERROR(rondo__op_set_int(&cast->op, "to", ONNX_FLOAT));
    RETURN_IF_ERROR(rondo__op_set_int(&program->nodes[product].op, "to", ONNX_FLOAT16));
    program->nodes[n].inputs[0] = wide;
    rondo__value_set_shape(&program->values[shares], RONDO_DTYPE_F32, &shape);
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_shares(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
