// program/passes/pass_matmul.c — MatMul and Gemm with their surroundings become rondo.MatMul.
//
// Taken in before: a Transpose of the last two axes of an operand. Taken in after, in this order,
// as far as each value has no other user: a factor (Mul or Div by a constant), a bias of one number
// per column (or per row, as pass_turned.c leaves it), a residual of the same shape, an activation.
// A Reshape of the rows between them goes before the product, where it costs nothing. A
// rondo.MatMul of an earlier run takes in what stands behind it since layouts changed.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

typedef struct chain {
    rondo_program *program;
    rondo__rewriting *rewriting;
    size_t node;
    int32_t a;
    int32_t b;
    int32_t bias;
    int32_t residual;
    bool trans_a;
    bool trans_b;
    float scale;
    rondo__activation activation;
    float alpha;
    float beta;
    bool is_reshaped;  // the result has other rows than `a`
    int32_t result;
} chain;

// When `value` is a Transpose that swaps the last two axes, looks through it.
static void look_through_transpose(const rondo_program *program, int32_t *value,
                                   bool *is_transposed) {
    int32_t maker = program->values[*value].producer;
    if (maker < 0 || !rondo__node_is(&program->nodes[maker], RONDO__OP_Transpose)) {
        return;
    }
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&program->nodes[maker].op, "perm", &count);
    rondo_shape shape;
    if (!rondo__value_get_shape(&program->values[*value], &shape) || shape.rank < 2) {
        return;
    }
    size_t rank = (size_t)shape.rank;
    if (perm == NULL && rank != 2) {
        return;
    }
    for (size_t i = 0; perm != NULL && i < rank; ++i) {
        int64_t expected = (int64_t)(i + 2 < rank ? i : i + 2 == rank ? rank - 1 : rank - 2);
        if (count != rank || perm[i] != expected) {
            return;
        }
    }
    *value = program->nodes[maker].inputs[0];
    *is_transposed = !*is_transposed;
}

static int64_t get_columns(const rondo_shape *shape) {
    return shape->rank > 0 ? shape->extent[shape->rank - 1] : 1;
}

// A constant or value that is one number for each column: [N], or [1, ..., N] as a constant.
static bool is_column_vector(const rondo_program *program, int32_t value, int64_t columns) {
    rondo_shape shape;
    return rondo__value_get_shape(&program->values[value], &shape) && shape.rank >= 1 &&
           rondo_shape_get_count(&shape) == columns && get_columns(&shape) == columns &&
           (shape.rank == 1 || rondo__value_is_constant(&program->values[value]));
}

// A constant [M, 1] for a product of a constant [M, K], whose rows are those of the result.
static bool is_row_vector(const rondo_program *program, int32_t value, const rondo_shape *result) {
    const rondo_tensor *constant = &program->values[value].constant;
    const int64_t columns = get_columns(result);
    return constant->dtype != RONDO_DTYPE_NONE && constant->shape.rank == 2 && result->rank >= 2 &&
           constant->shape.extent[0] == result->extent[result->rank - 2] &&
           constant->shape.extent[1] == 1 && columns > 1 && constant->shape.extent[0] > 1 &&
           rondo_shape_get_count(result) == constant->shape.extent[0] * columns;
}

static rondo_status flatten_bias(rondo_program *program, int32_t value, int32_t *out_bias) {
    const rondo__value *v = &program->values[value];
    *out_bias = value;
    if (!rondo__value_is_constant(v) || v->constant.shape.rank == 1) {
        return RONDO_STATUS_OK;
    }
    rondo_tensor flat;
    rondo_tensor_share(&v->constant, &flat);
    flat.shape = (rondo_shape){.rank = 1, .extent = {rondo_shape_get_count(&flat.shape)}};
    rondo_status status = rondo__program_add_constant(program, "bias", &flat, out_bias);
    rondo_tensor_deinit(&flat);
    return status;
}

// Takes the node that uses the result alone into the chain when it fits; *out_is_taken tells.
static rondo_status take_next(chain *c, const rondo__node *next, bool *out_is_taken) {
    *out_is_taken = false;
    rondo_program *program = c->program;
    rondo_shape mine;
    rondo_shape result;
    if (next->output_count != 1 || !rondo__value_get_shape(&program->values[c->result], &mine) ||
        !rondo__value_get_shape(&program->values[next->outputs[0]], &result) ||
        !rondo_shape_is_equal(&mine, &result)) {
        return RONDO_STATUS_OK;
    }
    bool is_first = c->bias < 0 && c->residual < 0 && c->activation == RONDO__ACTIVATION_NONE;
    float number;
    if (is_first && rondo__node_is(next, RONDO__OP_Div) && next->inputs[0] == c->result &&
        rondo__match_scalar(program, next->inputs[1], &number) && number != 0.0f) {
        c->scale /= number;
        *out_is_taken = true;
        return RONDO_STATUS_OK;
    }
    if (c->activation == RONDO__ACTIVATION_NONE && next->inputs[0] == c->result &&
        rondo__match_activation(program, next, &c->activation, &c->alpha, &c->beta)) {
        *out_is_taken = true;
        return RONDO_STATUS_OK;
    }
    if (next->input_count != 2 || next->inputs[0] == next->inputs[1]) {
        return RONDO_STATUS_OK;
    }
    int32_t other = next->inputs[0] == c->result ? next->inputs[1] : next->inputs[0];
    if (is_first && rondo__node_is(next, RONDO__OP_Mul) &&
        rondo__match_scalar(program, other, &number)) {
        c->scale *= number;
        *out_is_taken = true;
        return RONDO_STATUS_OK;
    }
    if (!rondo__node_is(next, RONDO__OP_Add) || c->activation != RONDO__ACTIVATION_NONE ||
        c->residual >= 0 || !rondo__match_is_f32_or_f16(program, other)) {
        return RONDO_STATUS_OK;
    }
    rondo_shape theirs;
    if (c->bias < 0 && mine.rank >= 2 && is_column_vector(program, other, get_columns(&mine))) {
        *out_is_taken = true;
        return flatten_bias(program, other, &c->bias);
    }
    if (c->bias < 0 && is_row_vector(program, other, &mine)) {
        *out_is_taken = true;
        c->bias = other;
        return RONDO_STATUS_OK;
    }
    if (rondo__value_get_shape(&program->values[other], &theirs) &&
        rondo_shape_is_equal(&mine, &theirs)) {
        *out_is_taken = true;
        c->residual = other;
    }
    return RONDO_STATUS_OK;
}

// Whether the node gives the rows of the result another shape, which those of `a` could have, too.
static bool reshapes_rows(const chain *c, const rondo__node *next) {
    const rondo_program *program = c->program;
    rondo_shape b, mine, result, bias;
    if (c->bias >= 0 &&
        (!rondo__value_get_shape(&program->values[c->bias], &bias) || bias.rank != 1)) {
        return false;  // a number for each row
    }
    return (next->op.def->flags & RONDO__OP_VIEW) != 0 && next->outputs[0] >= 0 &&
           next->inputs[0] == c->result && !c->trans_a && c->residual < 0 &&
           rondo__value_get_shape(&program->values[c->b], &b) && b.rank == 2 &&
           rondo__value_get_shape(&program->values[c->result], &mine) &&
           rondo__value_get_shape(&program->values[next->outputs[0]], &result) && mine.rank >= 2 &&
           result.rank >= 2 && rondo_shape_get_count(&mine) > 0 &&
           get_columns(&mine) == get_columns(&result);
}

// The node that uses `value` alone and is still there; -1: there is none.
static int32_t get_user(const chain *c, int32_t value) {
    const int32_t user = rondo__uses_get_single(&c->rewriting->uses, value);
    return user >= 0 && !c->rewriting->remove[user] ? user : -1;
}

static rondo_status follow(chain *c) {
    for (;;) {
        chain ahead = *c;  // a match that is not used leaves no trace
        int32_t user = get_user(c, c->result), reshape = -1;
        if (user >= 0 && reshapes_rows(c, &c->program->nodes[user])) {
            reshape = user;
            ahead.is_reshaped = true;
            ahead.result = c->program->nodes[reshape].outputs[0];
            user = get_user(c, ahead.result);
        }
        bool is_taken = false;
        if (user >= 0) {
            RETURN_IF_ERROR(take_next(&ahead, &c->program->nodes[user], &is_taken));
        }
        if (!is_taken) {
            return RONDO_STATUS_OK;
        }
        if (reshape >= 0) {
            c->rewriting->remove[reshape] = true;
        }
        c->rewriting->remove[user] = true;
        ahead.result = c->program->nodes[user].outputs[0];
        *c = ahead;
    }
}

// Gives `a` the rows of the result.
static rondo_status reshape_rows(chain *c) {
    rondo_shape a, rows;
    int32_t value = RONDO__VALUE_NONE;
    if (!c->is_reshaped || !rondo__value_get_shape(&c->program->values[c->a], &a) ||
        !rondo__value_get_shape(&c->program->values[c->result], &rows)) {
        return RONDO_STATUS_OK;
    }
    rows.extent[rows.rank - 1] = get_columns(&a);
    RETURN_IF_ERROR(rondo__program_add_shaped(c->program, "rows", c->program->values[c->a].dtype,
                                              &rows, &value));
    RETURN_IF_ERROR(rondo__program_add_reshape(c->program, c->a, value, &rows));
    c->a = value;
    return RONDO_STATUS_OK;
}

static rondo_status write_attributes(const chain *c, rondo__op *op) {
    RETURN_IF_ERROR(rondo__op_set_int(op, "trans_a", c->trans_a ? 1 : 0));
    RETURN_IF_ERROR(rondo__op_set_int(op, "trans_b", c->trans_b ? 1 : 0));
    RETURN_IF_ERROR(rondo__op_set_float(op, "alpha_scale", c->scale));
    RETURN_IF_ERROR(
        rondo__op_set_string(op, "activation", rondo__match_activation_name(c->activation)));
    RETURN_IF_ERROR(rondo__op_set_float(op, "alpha", c->alpha));
    return rondo__op_set_float(op, "beta", c->beta);
}

static rondo_status rewrite(const chain *c) {
    rondo__node *node = &c->program->nodes[c->node];
    int32_t *inputs = rondo__calloc(4, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = c->a;
    inputs[1] = c->b;
    inputs[2] = c->bias;
    inputs[3] = c->residual;
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX, .def = rondo__op_get_def(RONDO__FUSED_MatMul)};
    rondo_status status = write_attributes(c, &op);
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        return status;
    }
    rondo__node_become(node, &op, inputs, 4);
    node->outputs[0] = c->result;
    return RONDO_STATUS_OK;
}

// Starts a chain at the end of one that an earlier run made, if something stands there.
static void resume(chain *c, const rondo__node *node, bool *out_is_candidate) {
    const rondo__op *op = &node->op;
    const int activation = rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    if (node->input_count != 4 || activation < 0 || rondo__op_find(op, "to") != NULL ||
        rondo__op_find(op, "gates") != NULL || get_user(c, node->outputs[0]) < 0) {
        return;
    }
    *out_is_candidate = true;
    c->a = node->inputs[0];
    c->b = node->inputs[1];
    c->bias = node->inputs[2];
    c->residual = node->inputs[3];
    c->result = node->outputs[0];
    c->trans_a = rondo__op_get_int(op, "trans_a", 0) != 0;
    c->trans_b = rondo__op_get_int(op, "trans_b", 0) != 0;
    c->scale = rondo__op_get_float(op, "alpha_scale", 1.0f);
    c->activation = (rondo__activation)activation;
    c->alpha = rondo__op_get_float(op, "alpha", 0.0f);
    c->beta = rondo__op_get_float(op, "beta", 0.0f);
}

// Whether the node is a product with a factor and stored transposed, whose batches stand in front.
static bool is_fused(const rondo__node *node) {
    return (rondo__node_is(node, RONDO__MS_FusedMatMul) ||
            rondo__node_is(node, RONDO__MS_TransposeMatMul)) &&
           rondo__op_get_int(&node->op, "transBatchA", 0) == 0 &&
           rondo__op_get_int(&node->op, "transBatchB", 0) == 0;
}

// Starts a chain at a MatMul or at a Gemm that a MatMul with bias or residual can express.
static rondo_status begin(chain *c, bool *out_is_candidate) {
    *out_is_candidate = false;
    const rondo__node *node = &c->program->nodes[c->node];
    if (rondo__node_is(node, RONDO__FUSED_MatMul)) {
        resume(c, node, out_is_candidate);
        return RONDO_STATUS_OK;
    }
    bool is_gemm = rondo__node_is(node, RONDO__OP_Gemm);
    if (!is_gemm && !is_fused(node) && !rondo__node_is(node, RONDO__OP_MatMul)) {
        return RONDO_STATUS_OK;
    }
    rondo_shape a;
    rondo_shape b;
    rondo_shape y;
    c->a = node->inputs[0];
    c->b = node->inputs[1];
    c->result = node->outputs[0];
    if (!rondo__match_is_f32_or_f16(c->program, c->a) ||
        !rondo__value_get_shape(&c->program->values[c->a], &a) ||
        !rondo__value_get_shape(&c->program->values[c->b], &b) || a.rank < 2 || b.rank < 2 ||
        !rondo__value_get_shape(&c->program->values[c->result], &y)) {
        return RONDO_STATUS_OK;
    }
    // A MatMul has none of these.
    c->trans_a = rondo__op_get_int(&node->op, "transA", 0) != 0;
    c->trans_b = rondo__op_get_int(&node->op, "transB", 0) != 0;
    c->scale = rondo__op_get_float(&node->op, "alpha", 1.0f);
    if (is_gemm) {
        int32_t addend = node->input_count > 2 ? node->inputs[2] : RONDO__VALUE_NONE;
        if (addend >= 0) {
            rondo_shape shape;
            if (rondo__op_get_float(&node->op, "beta", 1.0f) != 1.0f ||
                !rondo__value_get_shape(&c->program->values[addend], &shape)) {
                return RONDO_STATUS_OK;
            }
            if (is_column_vector(c->program, addend, get_columns(&y))) {
                RETURN_IF_ERROR(flatten_bias(c->program, addend, &c->bias));
            } else if (rondo_shape_is_equal(&shape, &y)) {
                c->residual = addend;
            } else {
                return RONDO_STATUS_OK;
            }
        }
    }
    look_through_transpose(c->program, &c->a, &c->trans_a);
    look_through_transpose(c->program, &c->b, &c->trans_b);
    *out_is_candidate = true;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    chain c = {.program = rewriting->program,
               .rewriting = rewriting,
               .node = n,
               .bias = RONDO__VALUE_NONE,
               .residual = RONDO__VALUE_NONE,
               .scale = 1.0f,
               .activation = RONDO__ACTIVATION_NONE};
    bool is_candidate;
    RETURN_IF_ERROR(begin(&c, &is_candidate));
    if (!is_candidate) {
        return RONDO_STATUS_OK;
    }
    const int32_t first_result = c.result;
    RETURN_IF_ERROR(follow(&c));
    if (c.result == first_result && rondo__node_is(&c.program->nodes[n], RONDO__FUSED_MatMul)) {
        return RONDO_STATUS_OK;  // as it was
    }
    RETURN_IF_ERROR(reshape_rows(&c));
    return rewrite(&c);
}

rondo_status rondo__pass_matmul(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
