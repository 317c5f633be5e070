// program/passes/pass_byte_product.c — products of 8-bit integers with what quantise_dynamic writes
// around them become rondo.MatMulInteger and rondo.ConvInteger, whose sums end as real numbers at
// once.
//
//   x ── DynamicQuantizeLinear ─┬─ bytes ── MatMulInteger ── Cast ── Mul ── Add ── Relu
//                               └─ scale ── Mul (by the weights' scale) ──┘
//
// Taken in after the product, in this order, where each value has no other user: the Cast to f32, a
// factor that is one number or one for each column, a bias, a residual, an activation. A
// convolution's bias may instead be added to its sums, rounded down to their steps:
//
//   ConvInteger ── Add ── Cast ── Mul (by step)       Add's other operand is
//                                                     Cast(Floor(Div(bias, step)))
//
// Convolutions of images become rondo.ConvInteger and rondo.QLinearConv in any case: those may have
// their channels last.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/window_write.h"

enum { IMAGE_RANK = 4, INPUT_COUNT = 8 };

typedef struct chain {
    rondo_program *program;
    rondo__rewriting *rewriting;
    size_t node;
    bool is_convolution;
    rondo_shape shape;  // of the result
    int32_t result;     // value the chain ends in
    int32_t step;       // that the bias was divided by
    int32_t scale, factor, bias, residual;
    bool is_bias_in_steps;
    rondo__activation activation;
    float alpha, beta;
} chain;

static int64_t get_columns(const chain *c) {
    return c->shape.extent[c->is_convolution ? 1 : c->shape.rank - 1];
}

// Whether the value, broadcast to the result, is one number for each column or filter.
static bool goes_by_column(const chain *c, int32_t value) {
    rondo_shape shape;
    const int32_t axis = c->is_convolution ? 1 : c->shape.rank - 1;
    if (!rondo__value_get_shape(&c->program->values[value], &shape) ||
        rondo_shape_get_count(&shape) != get_columns(c)) {
        return false;
    }
    const int32_t own = axis - (c->shape.rank - shape.rank);
    return own >= 0 && shape.extent[own] == get_columns(c);
}

static bool has_result_shape(const chain *c, int32_t value) {
    rondo_shape shape;
    return rondo__value_get_shape(&c->program->values[value], &shape) &&
           rondo_shape_is_equal(&shape, &c->shape);
}

// The node that alone uses the chain's result, and makes one of its shape from it; NULL: none does.
static const rondo__node *get_next(const chain *c) {
    const int32_t user = rondo__uses_get_single(&c->rewriting->uses, c->result);
    if (user < 0 || c->rewriting->remove[user]) {
        return NULL;
    }
    const rondo__node *next = &c->program->nodes[user];
    return next->output_count == 1 && has_result_shape(c, next->outputs[0]) ? next : NULL;
}

static void take(chain *c, const rondo__node *node) {
    c->rewriting->remove[node - c->program->nodes] = true;
    c->result = node->outputs[0];
}

// The other operand of a node of two; RONDO__VALUE_NONE where both are the result.
static int32_t get_other(const chain *c, const rondo__node *node) {
    if (node->input_count != 2 || node->inputs[0] == node->inputs[1]) {
        return RONDO__VALUE_NONE;
    }
    return node->inputs[node->inputs[0] == c->result ? 1 : 0];
}

// ---- what is taken in -------------------------------------------------------------------------

// Cast(Floor(Div(bias, step))), perhaps reshaped.
static bool match_steps(const chain *c, int32_t value, int32_t *out_bias, int32_t *out_step) {
    const rondo_program *program = c->program;
    const int32_t maker = program->values[value].producer;
    if (maker >= 0 && (program->nodes[maker].op.def->flags & RONDO__OP_VIEW) != 0) {
        value = program->nodes[maker].inputs[0];
    }
    const rondo__node *cast = rondo__match_maker(program, value, RONDO__OP_Cast);
    const rondo__node *floor =
        cast != NULL ? rondo__match_maker(program, cast->inputs[0], RONDO__OP_Floor) : NULL;
    const rondo__node *quotient =
        floor != NULL ? rondo__match_maker(program, floor->inputs[0], RONDO__OP_Div) : NULL;
    if (quotient == NULL || rondo__match_dtype(program, value) != RONDO_DTYPE_I32) {
        return false;
    }
    *out_bias = quotient->inputs[0];
    *out_step = quotient->inputs[1];
    const int64_t steps = rondo__match_count(program, *out_step);
    return rondo__match_dtype(program, *out_bias) == RONDO_DTYPE_F32 &&
           rondo__match_count(program, *out_bias) == get_columns(c) &&
           (steps == 1 || steps == get_columns(c));
}

// An Add to the sums themselves. Other addends are left alone.
static void take_steps(chain *c) {
    const rondo__node *add = get_next(c);
    const int32_t other =
        add != NULL && rondo__node_is(add, RONDO__OP_Add) ? get_other(c, add) : RONDO__VALUE_NONE;
    if (c->is_convolution && other >= 0 && goes_by_column(c, other) &&
        match_steps(c, other, &c->bias, &c->step)) {
        c->is_bias_in_steps = true;
        take(c, add);
    }
}

// Whether two values are the same, or products of the same two.
static bool is_same(const rondo_program *program, int32_t a, int32_t b) {
    const rondo__node *first = rondo__match_maker(program, a, RONDO__OP_Mul),
                      *second = rondo__match_maker(program, b, RONDO__OP_Mul);
    if (a == b) {
        return true;
    }
    return first != NULL && second != NULL &&
           ((first->inputs[0] == second->inputs[0] && first->inputs[1] == second->inputs[1]) ||
            (first->inputs[0] == second->inputs[1] && first->inputs[1] == second->inputs[0]));
}

static bool is_one_or_each(const chain *c, int32_t value) {
    const int64_t count = rondo__match_count(c->program, value);
    return rondo__match_dtype(c->program, value) == RONDO_DTYPE_F32 &&
           (count == 1 || count == get_columns(c));
}

// The factor as it is, or as the product that makes it, which then need not be made.
static void split_factor(chain *c, int32_t value) {
    const rondo__node *product = rondo__match_maker(c->program, value, RONDO__OP_Mul);
    c->factor = value;
    for (int k = 0; product != NULL && k < 2; ++k) {
        const int32_t one = product->inputs[k], other = product->inputs[1 - k];
        if (rondo__match_count(c->program, one) == 1 && is_one_or_each(c, one) &&
            is_one_or_each(c, other)) {
            c->scale = one;
            c->factor = other;
            return;
        }
    }
}

// The Cast and the Mul, without which there is no chain.
static bool take_scaling(chain *c) {
    const rondo__node *cast = get_next(c);
    if (cast == NULL || !rondo__node_is(cast, RONDO__OP_Cast) ||
        rondo__match_dtype(c->program, cast->outputs[0]) != RONDO_DTYPE_F32) {
        return false;
    }
    take(c, cast);
    const rondo__node *product = get_next(c);
    const int32_t value = product != NULL && rondo__node_is(product, RONDO__OP_Mul)
                              ? get_other(c, product)
                              : RONDO__VALUE_NONE;
    if (value < 0 || !is_one_or_each(c, value) ||
        (rondo__match_count(c->program, value) != 1 && !goes_by_column(c, value)) ||
        (c->is_bias_in_steps && !is_same(c->program, value, c->step))) {
        return false;
    }
    take(c, product);
    split_factor(c, value);
    return true;
}

static bool take_add(chain *c, const rondo__node *add) {
    const int32_t other = get_other(c, add);
    if (!rondo__node_is(add, RONDO__OP_Add) || other < 0 || c->residual >= 0 ||
        rondo__match_dtype(c->program, other) != RONDO_DTYPE_F32) {
        return false;
    }
    if (c->bias < 0 && goes_by_column(c, other)) {
        c->bias = other;
    } else if (has_result_shape(c, other)) {
        c->residual = other;
    } else {
        return false;
    }
    take(c, add);
    return true;
}

// x times its sigmoid: the result's only two users.
static bool take_silu(chain *c) {
    const rondo__uses *uses = &c->rewriting->uses;
    const size_t first = uses->first[c->result];
    if (uses->is_output[c->result] || uses->first[c->result + 1] - first != 2) {
        return false;
    }
    for (size_t k = 0; k < 2; ++k) {
        const rondo__node *sigmoid = &c->program->nodes[uses->users[first + k]];
        const rondo__node *product = &c->program->nodes[uses->users[first + 1 - k]];
        if (rondo__node_is(sigmoid, RONDO__OP_Sigmoid) && rondo__node_is(product, RONDO__OP_Mul) &&
            get_other(c, product) == sigmoid->outputs[0] &&
            rondo__uses_get_single(uses, sigmoid->outputs[0]) >= 0) {
            c->activation = RONDO__ACTIVATION_SILU;
            take(c, sigmoid);
            take(c, product);
            return true;
        }
    }
    return false;
}

static void take_ending(chain *c) {
    const rondo__node *next = get_next(c);
    while (next != NULL && take_add(c, next)) {
        next = get_next(c);
    }
    if (next == NULL) {
        (void)take_silu(c);
    } else if (next->inputs[0] == c->result &&
               rondo__match_activation(c->program, next, &c->activation, &c->alpha, &c->beta)) {
        take(c, next);
    } else {
        c->activation = RONDO__ACTIVATION_NONE;
    }
}

// False, and nothing is taken, where the sums are not scaled.
static bool follow(chain *c) {
    const chain before = *c;
    const int32_t first = c->result;
    take_steps(c);
    if (take_scaling(c)) {
        take_ending(c);
        return true;
    }
    for (int32_t value = first; value != c->result;) {  // gives back what was taken
        const int32_t user = rondo__uses_get_single(&c->rewriting->uses, value);
        c->rewriting->remove[user] = false;
        value = c->program->nodes[user].outputs[0];
    }
    *c = before;
    return false;
}

// ---- rewriting --------------------------------------------------------------------------------

// The window with its pads in numbers, and where channels are.
static rondo_status write_window(const chain *c, size_t x, size_t w, rondo__op *op) {
    const rondo__node *node = &c->program->nodes[c->node];
    rondo_shape image, filters;
    rondo__window window;
    if (!rondo__value_get_shape(&c->program->values[node->inputs[x]], &image) ||
        !rondo__value_get_shape(&c->program->values[node->inputs[w]], &filters)) {
        return RONDO_FAIL(INTERNAL, "%s has no known shapes", rondo__node_describe(node));
    }
    RETURN_IF_ERROR(rondo__window_init(&node->op, image.rank - 2, &image.extent[2],
                                       &filters.extent[2], &window));
    RETURN_IF_ERROR(rondo__window_write(op, &window));
    RETURN_IF_ERROR(rondo__op_set_int(op, "group", rondo__op_get_int(&node->op, "group", 1)));
    return rondo__op_set_int(op, "channels_last", 0);
}

static rondo_status write_ending(const chain *c, rondo__op *op) {
    if (c->is_bias_in_steps) {
        RETURN_IF_ERROR(rondo__op_set_int(op, "bias_in_steps", 1));
    }
    RETURN_IF_ERROR(
        rondo__op_set_string(op, "activation", rondo__match_activation_name(c->activation)));
    RETURN_IF_ERROR(rondo__op_set_float(op, "alpha", c->alpha));
    return rondo__op_set_float(op, "beta", c->beta);
}

// Gives the node its op of ours, whose inputs are its own, and then `added`.
static rondo_status become(const chain *c, size_t own_count, const int32_t *added,
                           size_t added_count, bool is_linear) {
    rondo__node *node = &c->program->nodes[c->node];
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX,
                    .def = rondo__op_get_def(is_linear           ? RONDO__FUSED_QLinearConv
                                             : c->is_convolution ? RONDO__FUSED_ConvInteger
                                                                 : RONDO__FUSED_MatMulInteger)};
    int32_t *inputs = rondo__calloc(own_count + added_count, sizeof *inputs);
    rondo_status status = inputs == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK && c->is_convolution) {
        status = write_window(c, 0, is_linear ? 3 : 1, &op);
    }
    if (status == RONDO_STATUS_OK && added_count > 0) {
        status = write_ending(c, &op);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        return status;
    }
    for (size_t i = 0; i < own_count; ++i) {
        inputs[i] = i < node->input_count ? node->inputs[i] : RONDO__VALUE_NONE;
    }
    for (size_t i = 0; i < added_count; ++i) {
        inputs[own_count + i] = added[i];
    }
    rondo__node_become(node, &op, inputs, own_count + added_count);
    node->outputs[0] = c->result;
    return RONDO_STATUS_OK;
}

// Products of matrices and images whose shapes are known.
static bool begin(chain *c) {
    const rondo__node *node = &c->program->nodes[c->node];
    const bool is_product = rondo__node_is(node, RONDO__OP_MatMulInteger);
    rondo_shape a, b;
    c->is_convolution = rondo__node_is(node, RONDO__OP_ConvInteger);
    c->result = node->outputs[0];
    return (is_product || c->is_convolution) &&
           rondo__value_get_shape(&c->program->values[node->inputs[0]], &a) &&
           rondo__value_get_shape(&c->program->values[node->inputs[1]], &b) && a.rank >= 2 &&
           b.rank >= 2 && rondo__value_get_shape(&c->program->values[c->result], &c->shape);
}

static bool is_image(const rondo_program *program, int32_t value) {
    rondo_shape shape;
    return rondo__value_get_shape(&program->values[value], &shape) && shape.rank == IMAGE_RANK;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    rondo_program *program = rewriting->program;
    const rondo__node *node = &program->nodes[n];
    chain c = {.program = program,
               .rewriting = rewriting,
               .node = n,
               .step = RONDO__VALUE_NONE,
               .scale = RONDO__VALUE_NONE,
               .factor = RONDO__VALUE_NONE,
               .bias = RONDO__VALUE_NONE,
               .residual = RONDO__VALUE_NONE};
    if (rondo__node_is(node, RONDO__OP_QLinearConv) && is_image(program, node->inputs[0]) &&
        is_image(program, node->inputs[3]) && is_image(program, node->outputs[0])) {
        c.is_convolution = true;
        c.result = node->outputs[0];
        return become(&c, node->input_count, NULL, 0, true);
    }
    if (!begin(&c)) {
        return RONDO_STATUS_OK;
    }
    if (follow(&c)) {
        const int32_t added[] = {c.scale, c.factor, c.bias, c.residual};
        return become(&c, INPUT_COUNT - 4, added, 4, false);
    }
    return c.is_convolution && c.shape.rank == IMAGE_RANK
               ? become(&c, node->input_count, NULL, 0, false)
               : RONDO_STATUS_OK;
}

rondo_status rondo__pass_byte_product(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
