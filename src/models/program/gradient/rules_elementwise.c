// program/gradient/rules_elementwise.c — gradients of ops that work element by element.
//
// At kinks and ends these follow PyTorch 2.15: relu and abs 0 at 0, the limits of clamp 0, halves
// where two are equal. What is selected is selected (Where), not multiplied, so that a NaN on the
// other side stays there.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)
#define MADE rondo__gradient_output(call, 0)
#define DY (call->changes[0])

static int32_t num(rondo__gradient *g, double number, int32_t like) {
    return rondo__gradient_number(g, number, like);
}

static float get_float(const rondo__gradient_call *call, const char *name, float fallback) {
    return rondo__op_get_float(&call->op, name, fallback);
}

// Gives dy times `factor` to input 0.
static void scale(rondo__gradient *g, const rondo__gradient_call *call, int32_t factor) {
    rondo__gradient_give(g, call, 0, E("Mul", DY, factor));
}

// dy where the condition holds, 0 elsewhere.
static int32_t keep(rondo__gradient *g, int32_t condition, int32_t change) {
    return E("Where", condition, change, num(g, 0.0, change));
}

// ---- one input ----------------------------------------------------------------------------------

RULE(rule_identity) {
    rondo__gradient_give(g, call, 0, DY);
}

RULE(rule_neg) {
    rondo__gradient_give(g, call, 0, E("Neg", DY));
}

RULE(rule_abs) {
    scale(g, call, E("Sign", FIRST));
}

RULE(rule_exp) {
    scale(g, call, MADE);
}

RULE(rule_log) {
    rondo__gradient_give(g, call, 0, E("Div", DY, FIRST));
}

RULE(rule_sqrt) {
    rondo__gradient_give(g, call, 0, E("Div", DY, E("Mul", MADE, num(g, 2.0, MADE))));
}

RULE(rule_reciprocal) {
    scale(g, call, E("Neg", E("Mul", MADE, MADE)));
}

RULE(rule_sin) {
    scale(g, call, E("Cos", FIRST));
}

RULE(rule_cos) {
    scale(g, call, E("Neg", E("Sin", FIRST)));
}

RULE(rule_tan) {
    scale(g, call, E("Add", E("Mul", MADE, MADE), num(g, 1.0, MADE)));
}

// 1 / sqrt(a + b * x * x)
static int32_t inverse_root(rondo__gradient *g, int32_t x, double a, double b) {
    const int32_t square = E("Mul", E("Mul", x, x), num(g, b, x));
    return E("Reciprocal", E("Sqrt", E("Add", square, num(g, a, x))));
}

RULE(rule_asin) {
    scale(g, call, inverse_root(g, FIRST, 1.0, -1.0));
}

RULE(rule_acos) {
    scale(g, call, E("Neg", inverse_root(g, FIRST, 1.0, -1.0)));
}

RULE(rule_atan) {
    rondo__gradient_give(g, call, 0,
                         E("Div", DY, E("Add", E("Mul", FIRST, FIRST), num(g, 1.0, FIRST))));
}

RULE(rule_sinh) {
    scale(g, call, E("Cosh", FIRST));
}

RULE(rule_cosh) {
    scale(g, call, E("Sinh", FIRST));
}

RULE(rule_tanh) {
    scale(g, call, E("Sub", num(g, 1.0, MADE), E("Mul", MADE, MADE)));
}

RULE(rule_asinh) {
    scale(g, call, inverse_root(g, FIRST, 1.0, 1.0));
}

RULE(rule_acosh) {
    scale(g, call, inverse_root(g, FIRST, -1.0, 1.0));
}

RULE(rule_atanh) {
    rondo__gradient_give(g, call, 0,
                         E("Div", DY, E("Sub", num(g, 1.0, FIRST), E("Mul", FIRST, FIRST))));
}

RULE(rule_erf) {
    const int32_t bell = E("Exp", E("Neg", E("Mul", FIRST, FIRST)));
    scale(g, call, E("Mul", bell, num(g, 1.1283791670955126, FIRST)));
}

RULE(rule_sigmoid) {
    scale(g, call, E("Mul", MADE, E("Sub", num(g, 1.0, MADE), MADE)));
}

RULE(rule_relu) {
    // A NaN is not at most 0, and its change comes through.
    const int32_t off = E("LessOrEqual", MADE, num(g, 0.0, MADE));
    rondo__gradient_give(g, call, 0, E("Where", off, num(g, 0.0, DY), DY));
}

RULE(rule_leaky_relu) {
    const int32_t slope = num(g, (double)get_float(call, "alpha", 0.01f), DY);
    const int32_t on = E("Greater", FIRST, num(g, 0.0, FIRST));
    rondo__gradient_give(g, call, 0, E("Where", on, DY, E("Mul", DY, slope)));
}

// dy above 0; below, dy times factor * exp(x / width).
static void give_exponential(rondo__gradient *g, const rondo__gradient_call *call, double above,
                             double factor, double width) {
    const int32_t low = E("Min", FIRST, num(g, 0.0, FIRST));
    const int32_t power = E("Exp", E("Div", low, num(g, width, FIRST)));
    const int32_t on = E("Greater", FIRST, num(g, 0.0, FIRST));
    const int32_t up = above == 1.0 ? DY : E("Mul", DY, num(g, above, DY));
    const int32_t down = E("Mul", DY, E("Mul", power, num(g, factor, FIRST)));
    rondo__gradient_give(g, call, 0, E("Where", on, up, down));
}

RULE(rule_elu) {
    give_exponential(g, call, 1.0, (double)get_float(call, "alpha", 1.0f), 1.0);
}

RULE(rule_celu) {
    give_exponential(g, call, 1.0, 1.0, (double)get_float(call, "alpha", 1.0f));
}

RULE(rule_selu) {
    const double alpha = (double)get_float(call, "alpha", 1.67326319217681884765625f);
    const double gamma = (double)get_float(call, "gamma", 1.05070102214813232421875f);
    give_exponential(g, call, gamma, gamma * alpha, 1.0);
}

RULE(rule_softplus) {
    scale(g, call, E("Sigmoid", FIRST));
}

RULE(rule_softsign) {
    const int32_t below = E("Add", E("Abs", FIRST), num(g, 1.0, FIRST));
    rondo__gradient_give(g, call, 0, E("Div", DY, E("Mul", below, below)));
}

static int32_t is_between(rondo__gradient *g, int32_t x, double low, double high) {
    return E("And", E("Greater", x, num(g, low, x)), E("Less", x, num(g, high, x)));
}

RULE(rule_hard_sigmoid) {
    const double alpha = (double)get_float(call, "alpha", 0.2f);
    const double beta = (double)get_float(call, "beta", 0.5f);
    const int32_t line = E("Add", E("Mul", FIRST, num(g, alpha, FIRST)), num(g, beta, FIRST));
    const int32_t up = E("Mul", DY, num(g, alpha, DY));
    rondo__gradient_give(g, call, 0, keep(g, is_between(g, line, 0.0, 1.0), up));
}

RULE(rule_hard_swish) {
    const int32_t slope = E("Add", E("Div", FIRST, num(g, 3.0, FIRST)), num(g, 0.5, FIRST));
    const int32_t middle = keep(g, E("Greater", FIRST, num(g, -3.0, FIRST)), E("Mul", DY, slope));
    const int32_t high = E("GreaterOrEqual", FIRST, num(g, 3.0, FIRST));
    rondo__gradient_give(g, call, 0, E("Where", high, DY, middle));
}

RULE(rule_thresholded_relu) {
    const double alpha = (double)get_float(call, "alpha", 1.0f);
    rondo__gradient_give(g, call, 0, keep(g, E("Greater", FIRST, num(g, alpha, FIRST)), DY));
}

RULE(rule_shrink) {
    const double limit = (double)get_float(call, "lambd", 0.5f);
    const int32_t far = E("Greater", E("Abs", FIRST), num(g, limit, FIRST));
    rondo__gradient_give(g, call, 0, keep(g, far, DY));
}

RULE(rule_mish) {
    const size_t begin = rondo__gradient_begin(g);
    const int32_t y = E("Mul", FIRST, E("Tanh", E("Softplus", FIRST)));
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

RULE(rule_swish) {
    const double alpha = (double)get_float(call, "alpha", 1.0f);
    const size_t begin = rondo__gradient_begin(g);
    const int32_t inner = alpha == 1.0 ? FIRST : E("Mul", FIRST, num(g, alpha, FIRST));
    const int32_t y = E("Mul", FIRST, E("Sigmoid", inner));
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

// x (1 + tanh(u)) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3)
static void give_tanh_gelu(rondo__gradient *g, const rondo__gradient_call *call) {
    const size_t begin = rondo__gradient_begin(g);
    const int32_t cube = E("Mul", E("Mul", E("Mul", FIRST, FIRST), FIRST), num(g, 0.044715, FIRST));
    const int32_t u = E("Mul", E("Add", FIRST, cube), num(g, 0.7978845608028654, FIRST));
    const int32_t half = E("Mul", E("Add", E("Tanh", u), num(g, 1.0, FIRST)), num(g, 0.5, FIRST));
    const int32_t y = E("Mul", FIRST, half);
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

RULE(rule_gelu) {
    if (strcmp(rondo__op_get_string(&call->op, "approximate", "none"), "tanh") == 0) {
        give_tanh_gelu(g, call);
        return;
    }
    const int32_t root = E("Mul", FIRST, num(g, 0.7071067811865476, FIRST));
    const int32_t share =
        E("Mul", E("Add", E("Erf", root), num(g, 1.0, FIRST)), num(g, 0.5, FIRST));
    const int32_t bell = E("Exp", E("Mul", E("Mul", FIRST, FIRST), num(g, -0.5, FIRST)));
    const int32_t slope = E("Mul", E("Mul", FIRST, bell), num(g, 0.3989422804014327, FIRST));
    scale(g, call, E("Add", share, slope));
}

// ---- Clip, Dropout, casts -----------------------------------------------------------------------

// A limit is an input, an attribute of older versions, or not there.
static int32_t get_limit(rondo__gradient *g, const rondo__gradient_call *call, size_t input,
                         const char *name) {
    if (rondo__gradient_input(call, input) >= 0) {
        return call->inputs[input];
    }
    const rondo__attribute *attribute = rondo__op_find(&call->op, name);
    return attribute != NULL ? num(g, (double)attribute->float_value, FIRST) : RONDO__VALUE_NONE;
}

RULE(rule_clip) {
    if (rondo__gradient_wants(g, call, 1) || rondo__gradient_wants(g, call, 2)) {
        // Limits that are computed are tensors: what is equal is shared.
        const size_t begin = rondo__gradient_begin(g);
        int32_t y = FIRST;
        y = rondo__gradient_input(call, 1) >= 0 ? E("Max", y, call->inputs[1]) : y;
        y = rondo__gradient_input(call, 2) >= 0 ? E("Min", y, call->inputs[2]) : y;
        rondo__gradient_expand(g, begin, &y, call->changes, 1);
        return;
    }
    const int32_t low = get_limit(g, call, 1, "min");
    const int32_t high = get_limit(g, call, 2, "max");
    int32_t change = DY;
    if (low >= 0) {
        change = keep(g, E("Greater", FIRST, low), change);
    }
    if (high >= 0) {
        change = keep(g, E("Less", FIRST, high), change);
    }
    rondo__gradient_give(g, call, 0, change);
}

RULE(rule_dropout) {
    // The same op applied to ones shows which elements were dropped and how the rest was scaled: y
    // = x * Dropout(1). So the node gets ones, and y becomes a product; the node draws the same
    // numbers as before.
    const int32_t ones = rondo__gradient_fill_like(g, 1.0, FIRST);
    const int32_t y = MADE;
    const int32_t x = FIRST;
    int32_t kept = RONDO__VALUE_NONE;
    rondo__gradient_settle(g);
    if (g->status == RONDO_STATUS_OK) {
        g->status = rondo__program_add_value(g->program, "kept", &kept);
    }
    rondo__gradient_settle(g);
    if (g->status != RONDO_STATUS_OK) {
        return;
    }
    rondo__node *node = &g->program->nodes[call->index];
    node->inputs[0] = ones;
    node->outputs[0] = kept;
    g->program->values[kept].producer = (int32_t)call->index;
    g->values[kept].info = g->values[x].info;
    g->values[kept].info.constant = NULL;
    const int32_t inputs[2] = {x, kept};
    g->status = rondo__program_add_simple(g->program, "", "Mul", NULL, inputs, 2, &y, 1);
    rondo__gradient_give(g, call, 0, E("Mul", DY, kept));
}

// ---- two inputs and more ------------------------------------------------------------------------

static void give_summed(rondo__gradient *g, const rondo__gradient_call *call, size_t input,
                        int32_t change) {
    if (rondo__gradient_wants(g, call, input)) {
        const int32_t x = call->inputs[input];
        rondo__gradient_give(g, call, input, rondo__gradient_sum_to(g, change, x));
    }
}

#define SECOND rondo__gradient_input(call, 1)

RULE(rule_add) {
    give_summed(g, call, 0, DY);
    give_summed(g, call, 1, DY);
}

RULE(rule_sub) {
    give_summed(g, call, 0, DY);
    if (rondo__gradient_wants(g, call, 1)) {
        give_summed(g, call, 1, E("Neg", DY));
    }
}

RULE(rule_mul) {
    if (rondo__gradient_wants(g, call, 0)) {
        give_summed(g, call, 0, E("Mul", DY, SECOND));
    }
    if (rondo__gradient_wants(g, call, 1)) {
        give_summed(g, call, 1, E("Mul", DY, FIRST));
    }
}

RULE(rule_div) {
    const int32_t part = E("Div", DY, SECOND);
    give_summed(g, call, 0, part);
    if (rondo__gradient_wants(g, call, 1)) {
        give_summed(g, call, 1, E("Neg", E("Mul", part, MADE)));
    }
}

RULE(rule_pow) {
    const int32_t power = rondo__gradient_cast_like(g, SECOND, FIRST);
    double number = 0.0;
    const bool is_number = rondo__gradient_read_number(g, SECOND, &number);
    const int32_t zero = num(g, 0.0, FIRST);
    if (rondo__gradient_wants(g, call, 0)) {
        int32_t change;
        if (is_number && number == 2.0) {
            change = E("Mul", DY, E("Mul", FIRST, num(g, 2.0, FIRST)));
        } else {
            const int32_t less = E("Pow", FIRST, E("Sub", power, num(g, 1.0, FIRST)));
            change = E("Mul", E("Mul", DY, power), less);
            if (!is_number || number == 0.0) {
                // x^0 does not change, wherever x is.
                change = E("Where", E("Equal", power, zero), num(g, 0.0, FIRST), change);
            }
        }
        give_summed(g, call, 0, change);
    }
    if (rondo__gradient_wants(g, call, 1)) {
        const int32_t at_zero = E("And", E("Equal", FIRST, zero), E("GreaterOrEqual", power, zero));
        const int32_t slope = E("Mul", DY, E("Mul", MADE, E("Log", FIRST)));
        give_summed(g, call, 1, E("Where", at_zero, zero, slope));
    }
}

RULE(rule_mod) {
    // x - floor(x / b) * b; with fmod the quotient is cut towards zero.
    give_summed(g, call, 0, DY);
    if (rondo__gradient_wants(g, call, 1)) {
        const int32_t ratio = E("Div", FIRST, SECOND);
        const bool is_cut = rondo__op_get_int(&call->op, "fmod", 0) != 0;
        const int32_t whole =
            is_cut ? E("Mul", E("Sign", ratio), E("Floor", E("Abs", ratio))) : E("Floor", ratio);
        give_summed(g, call, 1, E("Neg", E("Mul", DY, whole)));
    }
}

// Of two operands the winner takes the gradient, equal ones share it, and a NaN gives it to both.
static void give_winner(rondo__gradient *g, const rondo__gradient_call *call, const char *loses) {
    const int32_t half = E("Mul", DY, num(g, 0.5, DY));
    const int32_t shared = E("Where", E("Equal", FIRST, SECOND), half, DY);
    const int32_t zero = num(g, 0.0, DY);
    if (rondo__gradient_wants(g, call, 0)) {
        give_summed(g, call, 0, E("Where", E(loses, FIRST, SECOND), zero, shared));
    }
    if (rondo__gradient_wants(g, call, 1)) {
        give_summed(g, call, 1, E("Where", E(loses, SECOND, FIRST), zero, shared));
    }
}

static void give_winners(rondo__gradient *g, const rondo__gradient_call *call, const char *loses) {
    if (call->input_count == 1) {
        rondo__gradient_give(g, call, 0, DY);
    } else if (call->input_count == 2) {
        give_winner(g, call, loses);
    } else {
        const size_t begin = rondo__gradient_begin(g);
        int32_t y = FIRST;
        for (size_t i = 1; i < call->input_count; ++i) {
            y = E(call->op.def->name, y, call->inputs[i]);
        }
        rondo__gradient_expand(g, begin, &y, call->changes, 1);
    }
}

RULE(rule_max) {
    give_winners(g, call, "Less");
}

RULE(rule_min) {
    give_winners(g, call, "Greater");
}

RULE(rule_sum) {
    for (size_t i = 0; i < call->input_count; ++i) {
        give_summed(g, call, i, DY);
    }
}

RULE(rule_mean) {
    const int32_t part = E("Div", DY, num(g, (double)call->input_count, DY));
    for (size_t i = 0; i < call->input_count; ++i) {
        give_summed(g, call, i, part);
    }
}

RULE(rule_where) {
    const int32_t zero = num(g, 0.0, DY);
    if (rondo__gradient_wants(g, call, 1)) {
        give_summed(g, call, 1, E("Where", FIRST, DY, zero));
    }
    if (rondo__gradient_wants(g, call, 2)) {
        give_summed(g, call, 2, E("Where", FIRST, zero, DY));
    }
}

RULE(rule_prelu) {
    const int32_t on = E("Greater", FIRST, num(g, 0.0, FIRST));
    if (rondo__gradient_wants(g, call, 0)) {
        rondo__gradient_give(g, call, 0, E("Where", on, DY, E("Mul", DY, SECOND)));
    }
    if (rondo__gradient_wants(g, call, 1)) {
        give_summed(g, call, 1, E("Where", on, num(g, 0.0, DY), E("Mul", DY, FIRST)));
    }
}

const rondo__gradient_row rondo__gradient_rows_elementwise[] = {
    {RONDO__OP_Identity, rule_identity},
    {RONDO__OP_Cast, rule_identity},
    {RONDO__OP_CastLike, rule_identity},
    {RONDO__OP_Neg, rule_neg},
    {RONDO__OP_Abs, rule_abs},
    {RONDO__OP_Exp, rule_exp},
    {RONDO__OP_Log, rule_log},
    {RONDO__OP_Sqrt, rule_sqrt},
    {RONDO__OP_Reciprocal, rule_reciprocal},
    {RONDO__OP_Sin, rule_sin},
    {RONDO__OP_Cos, rule_cos},
    {RONDO__OP_Tan, rule_tan},
    {RONDO__OP_Asin, rule_asin},
    {RONDO__OP_Acos, rule_acos},
    {RONDO__OP_Atan, rule_atan},
    {RONDO__OP_Sinh, rule_sinh},
    {RONDO__OP_Cosh, rule_cosh},
    {RONDO__OP_Tanh, rule_tanh},
    {RONDO__OP_Asinh, rule_asinh},
    {RONDO__OP_Acosh, rule_acosh},
    {RONDO__OP_Atanh, rule_atanh},
    {RONDO__OP_Erf, rule_erf},
    {RONDO__OP_Sigmoid, rule_sigmoid},
    {RONDO__OP_Relu, rule_relu},
    {RONDO__OP_LeakyRelu, rule_leaky_relu},
    {RONDO__OP_Elu, rule_elu},
    {RONDO__OP_Celu, rule_celu},
    {RONDO__OP_Selu, rule_selu},
    {RONDO__OP_Softplus, rule_softplus},
    {RONDO__OP_Softsign, rule_softsign},
    {RONDO__OP_HardSigmoid, rule_hard_sigmoid},
    {RONDO__OP_HardSwish, rule_hard_swish},
    {RONDO__OP_ThresholdedRelu, rule_thresholded_relu},
    {RONDO__OP_Shrink, rule_shrink},
    {RONDO__OP_Mish, rule_mish},
    {RONDO__OP_Swish, rule_swish},
    {RONDO__OP_Gelu, rule_gelu},
    {RONDO__OP_Clip, rule_clip},
    {RONDO__OP_Dropout, rule_dropout},
    {RONDO__OP_Add, rule_add},
    {RONDO__OP_Sub, rule_sub},
    {RONDO__OP_Mul, rule_mul},
    {RONDO__OP_Div, rule_div},
    {RONDO__OP_Pow, rule_pow},
    {RONDO__OP_Mod, rule_mod},
    {RONDO__OP_Max, rule_max},
    {RONDO__OP_Min, rule_min},
    {RONDO__OP_Sum, rule_sum},
    {RONDO__OP_Mean, rule_mean},
    {RONDO__OP_Where, rule_where},
    {RONDO__OP_PRelu, rule_prelu},
    // Steps, and what is no number.
    {RONDO__OP_Floor, NULL},
    {RONDO__OP_Ceil, NULL},
    {RONDO__OP_Round, NULL},
    {RONDO__OP_Sign, NULL},
    {RONDO__OP_Not, NULL},
    {RONDO__OP_And, NULL},
    {RONDO__OP_Or, NULL},
    {RONDO__OP_Xor, NULL},
    {RONDO__OP_Equal, NULL},
    {RONDO__OP_Less, NULL},
    {RONDO__OP_LessOrEqual, NULL},
    {RONDO__OP_Greater, NULL},
    {RONDO__OP_GreaterOrEqual, NULL},
    {RONDO__OP_IsInf, NULL},
    {RONDO__OP_IsNaN, NULL},
    {RONDO__OP_BitCast, NULL},
    {RONDO__OP_NONE, NULL},
};
