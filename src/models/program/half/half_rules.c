// program/half/half_rules.c — which nodes of an f32 program stay in f32 when it is computed in f16.
//
// f16 has 11 bits, reaches 65504, and below 2^-14 loses bits until 6e-8. Most of a network does not
// suffer: weights and activations lie near 1, and kernels add up in f32. The rules find the values
// that do suffer from the ops, without running them:
//
//   1. Ops whose row says so (Pow, Exp, Log, quantisation, boxes ...) stay.
//   2. Constants that f16 cannot hold keep their user.
//   3. What follows is decided by the class of a value, which says what f16 would do to it:
//
//        WIDE   may leave the range (squares, exponentials, long sums). Each reader stays, and so
//               on, until an op brings values back (softmax, a normalisation, sigmoid, a quotient).
//        FINE   a factor or divisor that may be tiny (a root, a reciprocal). Readers stay; a
//               product with an ordinary value is ordinary again.
//        EXACT  counts, ids, positions. What is made of them alone stays; mixed with ordinary
//               values they are no better than those.
//
//   4. What becomes a whole number, a box, a root or a logarithm is traced back through
//      element-wise ops and moves, which stay as well; so is what a normalisation with a huge
//      variance reads, down to the product that makes it.
//
//     x (f16) ──┬────────────────────────────── Sub ──────────── Div ── (f16)
//               │                                │ (f16)          │
//               └─ ReduceMean ───────────────────┤                │  FINE
//                                                └─ Pow ── ReduceMean ── Add 1e-12 ── Sqrt
//                                                  WIDE        WIDE         WIDE
//
// Turned down: measuring the ranges on sample inputs, which users would have to have; a list of
// whole patterns, which every exporter writes otherwise.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"
#include "program/edit.h"
#include "program/half/half_judge.h"
#include "program/passes/match.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

// A sum of more elements than this may leave the range: 65504 is 256 times 256.
enum { SUM_COUNT_MAX = 256 };

static const char square_reason[] = "squares leave the range of f16";
static const char control_reason[] =
    "values cross its border as declared; the ops inside are decided on their own";
static const char dynamic_reason[] =
    "its shape depends on data, so it runs on the host, where f16 gains nothing";
static const char object_reason[] =
    "strings and sequences stay on the host, and what they hold in f32";
static const char wide_reason[] = "an op before it makes values that may leave the range of f16";
static const char fine_reason[] = "an op before it makes factors that f16 flushes to 0";
static const char traced_exact_reason[] = "its result becomes whole numbers, boxes or spectra";
static const char traced_fine_reason[] = "a root or a logarithm is taken of its result";
static const char variance_reason[] = "its variance says that values leave the range of f16";
static const char traced_wide_reason[] = "a normalisation after it expects values out of range";
static const char refused_reason[] = "the op takes no f16 here";
static const char own_reason[] = "an op of the program's own computes in the model's types";
static const char foreign_reason[] = "the model converts here from another type";
static const char made_reason[] = "it makes its values, and no op before it could make f16 of them";
static const char move_reason[] = "it moves f32 values to ops that stay in f32";
static const char asked_reason[] = "asked for by keep_f32";
static const char single_reason[] = "bf16 has 8 bits, and is for products";
static const char trained_reason[] = "a training step keeps scales, weights and states in f32";

// ---- casts of the model -----------------------------------------------------------------------

static bool is_small_whole(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_BOOL || dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_U8;
}

// Casts to f32 make f16 where that is exact. Casts from f32 to whole numbers stay, and what leads
// to them.
static const char *judge_cast(const rondo_program *program, const rondo__node *node,
                              uint8_t *out_class, uint32_t *out_kind) {
    const rondo_dtype from = rondo__half_get_type(program, rondo__match_input(node, 0));
    const rondo_dtype to = rondo__half_get_type(program, node->outputs[0]);
    *out_kind = HALF_CARRIES;
    *out_class = HALF_PLAIN;
    if (to == RONDO_DTYPE_F32 && from != RONDO_DTYPE_F32) {
        const bool is_real = from == RONDO_DTYPE_F64 || from == RONDO_DTYPE_BF16;
        *out_class = is_real || is_small_whole(from) ? HALF_PLAIN : HALF_EXACT;
        return is_real ? foreign_reason : is_small_whole(from) ? NULL : HALF_COUNTED;
    }
    if (from == RONDO_DTYPE_F32 && to != RONDO_DTYPE_F32 && to != RONDO_DTYPE_BOOL) {
        *out_kind |= HALF_TRACED;
        return to == RONDO_DTYPE_F64 || to == RONDO_DTYPE_BF16 ? foreign_reason : HALF_COUNTED;
    }
    return NULL;
}

// ---- back from whole numbers, boxes, roots and logarithms --------------------------------------

// A standard deviation above 4096 means values of which some are beyond 65504.
static bool expects_wide(const rondo_program *program, const rondo__node *node) {
    if (!rondo__node_is(node, RONDO__OP_BatchNormalization) || node->input_count < 5 ||
        rondo__match_input(node, 4) < 0) {
        return false;
    }
    const rondo_tensor *variance = &program->values[rondo__match_input(node, 4)].constant;
    bool is_huge = false;
    for (int64_t i = 0;
         variance->dtype == RONDO_DTYPE_F32 && i < rondo_shape_get_count(&variance->shape); ++i) {
        is_huge = is_huge || ((const float *)variance->data)[i] > 4096.0f * 4096.0f;
    }
    return is_huge;
}

// The table's verdict on a node, before values are looked at.
static const char *judge_op(const rondo__half_analysis *a, size_t n, uint8_t *out_class,
                            uint32_t *out_kind) {
    const rondo__node *node = &a->program->nodes[n];
    const rondo__half_rule *r = rondo__half_find_rule(node);
    *out_kind = r->kind;
    *out_class = HALF_PLAIN;
    if (rondo__node_is(node, RONDO__OP_Cast) || rondo__node_is(node, RONDO__OP_CastLike)) {
        return judge_cast(a->program, node, out_class, out_kind);
    }
    if ((r->kind & HALF_STAYS) != 0) {
        *out_class = r->result;
        if (rondo__node_is(node, RONDO__OP_Pow) && rondo__match_input(node, 1) >= 0) {
            float exponent = 2.0f;
            const bool is_root =
                rondo__match_scalar(a->program, rondo__match_input(node, 1), &exponent) &&
                exponent <= 1.0f && exponent >= -1.0f;
            *out_class = is_root ? HALF_FINE : HALF_WIDE;
        }
        return r->reason;
    }
    if ((r->kind & HALF_LONG_SUM) != 0 &&
        rondo__half_count_summed(a->program, node) > SUM_COUNT_MAX) {
        *out_class = r->result;
        return r->reason;
    }
    if (rondo__node_is(node, RONDO__OP_Mul) &&
        rondo__match_input(node, 0) == rondo__match_input(node, 1)) {
        *out_class = HALF_WIDE;
        return square_reason;
    }
    if (rondo__node_is(node, RONDO__OP_OneHot) &&
        rondo__half_is_single(a->program, rondo__match_input(node, 0))) {
        *out_kind |= HALF_TRACED;
        return HALF_COUNTED;
    }
    if (expects_wide(a->program, node)) {
        *out_kind |= HALF_TRACED;
        return variance_reason;
    }
    if ((node->op.def->flags & RONDO__OP_RANDOM) != 0) {
        return HALF_DRAWN;
    }
    return rondo__half_reads_single(a->program, node) ? NULL : made_reason;
}

static void want_value(rondo__half_analysis *a, int32_t value, uint8_t how) {
    if (value < 0 || !rondo__half_is_computed(a->program, value)) {
        return;
    }
    const uint8_t former = a->wanted[value];
    if (former != HALF_WIDE && (former != HALF_EXACT || how == HALF_WIDE)) {
        a->wanted[value] = how;
    }
}

static void want_inputs(rondo__half_analysis *a, const rondo__node *node, uint8_t how) {
    for (size_t i = 0; i < node->input_count; ++i) {
        want_value(a, node->inputs[i], how);
    }
}

// Scales and regions that are computed: they are read in f32, and should have been made in it.
static void want_fixed_inputs(rondo__half_analysis *a, const rondo__node *node) {
    for (size_t i = 0; i < node->input_count; ++i) {
        if (rondo__half_is_fixed_input(node, i)) {
            want_value(a, node->inputs[i], HALF_EXACT);
        }
    }
}

static void trace_back(rondo__half_analysis *a) {
    for (size_t n = a->program->node_count; n-- > 0;) {
        const rondo__node *node = &a->program->nodes[n];
        if (!a->decisions[n].is_touched || (node->op.def->flags & RONDO__OP_CONTROL) != 0) {
            continue;
        }
        want_fixed_inputs(a, node);
        uint8_t result;
        uint32_t kind;
        const char *reason = judge_op(a, n, &result, &kind);
        if ((kind & HALF_TRACED) != 0 && reason != NULL) {
            const bool is_fine = rondo__node_is(node, RONDO__OP_Log) ||
                                 rondo__node_is(node, RONDO__OP_Sqrt) ||
                                 rondo__node_is(node, RONDO__OP_ReduceLogSum);
            want_inputs(a, node,
                        reason == variance_reason ? HALF_WIDE
                        : is_fine                 ? HALF_FINE
                                                  : HALF_EXACT);
            continue;
        }
        uint8_t how = HALF_PLAIN;
        for (size_t i = 0; i < node->output_count; ++i) {
            const uint8_t mine = node->outputs[i] >= 0 ? a->wanted[node->outputs[i]] : HALF_PLAIN;
            how = mine == HALF_WIDE || (mine == HALF_EXACT && how != HALF_WIDE) || how == HALF_PLAIN
                      ? mine
                      : how;
        }
        if (how == HALF_PLAIN || reason != NULL) {
            continue;  // an op that stays works on f32 from here on
        }
        // Probabilities, whose logarithm is taken, are small; what they are made of is not.
        const bool carries = (kind & HALF_CARRIES) != 0;
        const bool is_source = (how == HALF_FINE && (rondo__node_is(node, RONDO__OP_Softmax) ||
                                                     rondo__node_is(node, RONDO__OP_Sigmoid))) ||
                               (how == HALF_WIDE && !carries);
        if (!carries && !is_source) {
            continue;
        }
        a->decisions[n].reason = how == HALF_WIDE    ? traced_wide_reason
                                 : how == HALF_EXACT ? traced_exact_reason
                                                     : traced_fine_reason;
        if (!is_source) {
            want_inputs(a, node, how);
        }
    }
}

// ---- forward, by the classes of values --------------------------------------------------------

typedef struct operands {
    uint8_t strongest;  // class among the computed inputs
    uint8_t weakest;
    size_t count;
} operands;

static operands look_at_inputs(const rondo__half_analysis *a, const rondo__node *node) {
    operands found = {.strongest = HALF_PLAIN, .weakest = HALF_WIDE};
    for (size_t i = 0; i < node->input_count; ++i) {
        const int32_t value = node->inputs[i];
        const bool counts = value >= 0 && !rondo__half_is_constant(a->program, value) &&
                            !rondo__half_is_fixed_input(node, i);
        // Whole numbers have a class, too: sums of products of quantised numbers are WIDE.
        if (!counts ||
            (!rondo__half_is_single(a->program, value) && a->class_of[value] == HALF_PLAIN)) {
            continue;
        }
        const uint8_t mine = a->class_of[value];
        found.strongest = mine > found.strongest ? mine : found.strongest;
        found.weakest = mine < found.weakest ? mine : found.weakest;
        found.count += 1;
    }
    found.weakest = found.count > 0 ? found.weakest : HALF_PLAIN;
    return found;
}

static uint8_t get_class(const rondo__half_analysis *a, int32_t value) {
    return value >= 0 && !rondo__half_is_constant(a->program, value) ? a->class_of[value]
                                                                     : HALF_PLAIN;
}

// A quotient of two values of which the divisor is no ordinary one is ordinary: x / root, e / sum.
static bool is_quotient(const rondo__half_analysis *a, const rondo__node *node) {
    return rondo__node_is(node, RONDO__OP_Div) &&
           get_class(a, rondo__match_input(node, 1)) != HALF_PLAIN &&
           !rondo__half_is_constant(a->program, rondo__match_input(node, 0)) &&
           get_class(a, rondo__match_input(node, 0)) != HALF_EXACT;
}

// A factor that brings a sum back (1 / 512), or a divisor (512).
static bool is_scaled_back(const rondo__half_analysis *a, const rondo__node *node) {
    for (size_t i = 0; i < 2 && rondo__node_is(node, RONDO__OP_Mul); ++i) {
        const int32_t value = rondo__match_input(node, i);
        if (rondo__half_is_single(a->program, value) &&
            rondo__half_is_constant(a->program, value)) {
            const rondo_tensor *factor = &a->program->values[value].constant;
            return (rondo__half_get_traits(a->cache, factor) & RONDO__HALF_SHRINKS) != 0;
        }
    }
    float divisor;
    return rondo__node_is(node, RONDO__OP_Div) &&
           rondo__match_scalar(a->program, rondo__match_input(node, 1), &divisor) &&
           (divisor >= 64.0f || divisor <= -64.0f);
}

// Whether the classes of its inputs keep a node in f32, and the class of its results.
static const char *judge_classes(const rondo__half_analysis *a, const rondo__node *node,
                                 uint32_t kind, uint8_t *out_class) {
    const operands in = look_at_inputs(a, node);
    const bool by_element = (node->op.def->flags & RONDO__OP_ELEMENTWISE) != 0;
    const bool carries = by_element || (kind & HALF_CARRIES) != 0;
    *out_class = HALF_PLAIN;
    if (in.strongest == HALF_WIDE) {
        const bool is_back = (kind & HALF_BOUNDED) != 0 || is_quotient(a, node);
        const bool is_inverse = rondo__node_is(node, RONDO__OP_Reciprocal) ||
                                (rondo__node_is(node, RONDO__OP_Div) &&
                                 rondo__half_is_constant(a->program, rondo__match_input(node, 0)));
        *out_class = is_back                                 ? HALF_PLAIN
                     : is_inverse || is_scaled_back(a, node) ? HALF_FINE
                                                             : HALF_WIDE;
        return wide_reason;
    }
    if (in.strongest == HALF_FINE && carries) {
        const bool is_mixed =
            in.weakest == HALF_PLAIN || (kind & HALF_BOUNDED) != 0 || is_quotient(a, node);
        *out_class = is_mixed ? HALF_PLAIN : HALF_FINE;
        return fine_reason;
    }
    if (in.strongest == HALF_EXACT && in.weakest == HALF_EXACT && carries) {
        *out_class = (kind & HALF_BOUNDED) != 0 ? HALF_PLAIN : HALF_EXACT;
        return HALF_COUNTED;
    }
    return NULL;
}

static void set_results(rondo__half_analysis *a, const rondo__node *node, uint8_t result) {
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0 && rondo__half_is_single(a->program, node->outputs[i])) {
            a->class_of[node->outputs[i]] = result;
        }
    }
}

// Sums of products of quantised numbers are wide before a Cast makes them f32, also after moves.
static void pass_by(rondo__half_analysis *a, const rondo__node *node) {
    const uint32_t kind = rondo__half_find_rule(node)->kind;
    const bool is_wide =
        (kind & HALF_CARRIES) != 0 && look_at_inputs(a, node).strongest == HALF_WIDE;
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0 && (is_wide || (kind & HALF_COUNTING) != 0)) {
            a->class_of[node->outputs[i]] = HALF_WIDE;
        }
    }
}

// True when inference takes the node with `dtype` in place of f32.
static bool accepts_half(const rondo_program *program, const rondo__node *node, rondo_dtype dtype,
                         rondo__tensor_info *infos) {
    rondo_error saved;
    rondo__tensor_info *outputs = infos + node->input_count;
    memset(infos, 0, (node->input_count + node->output_count) * sizeof *infos);
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__program_get_info(program, node->inputs[i], &infos[i]);
        if (infos[i].dtype == RONDO_DTYPE_F32 && !rondo__half_is_fixed_input(node, i)) {
            infos[i].dtype = dtype;
            infos[i].constant = NULL;
        }
    }
    rondo__infer infer = {.op = &node->op,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .inputs = infos,
                          .outputs = outputs};
    rondo__error_save(&saved);
    bool accepts = rondo__op_infer(&infer) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    for (size_t i = 0; accepts && i < node->output_count; ++i) {
        accepts = node->outputs[i] < 0 || outputs[i].is_shape_known;
    }
    return accepts;
}

static void decide_node(rondo__half_analysis *a, size_t n, rondo__tensor_info *infos) {
    const rondo_program *program = a->program;
    const rondo__node *node = &program->nodes[n];
    rondo__half_decision *decision = &a->decisions[n];
    if (!decision->is_touched) {
        pass_by(a, node);
        return;
    }
    if ((node->op.def->flags & RONDO__OP_CONTROL) != 0) {
        decision->reason = control_reason;
        return;
    }
    if (rondo__half_has_objects(program, node)) {
        decision->reason = object_reason;
        return;
    }
    if (!rondo__half_is_known(program, node)) {
        decision->reason = dynamic_reason;
        return;
    }
    if (node->precision == RONDO__PRECISION_SINGLE) {
        decision->reason = asked_reason;
        return;
    }
    if (node->precision == RONDO__PRECISION_TRAINED) {
        decision->reason = trained_reason;
        set_results(a, node, HALF_WIDE);
        return;
    }
    const bool is_possible = accepts_half(program, node, RONDO_DTYPE_F16, infos);
    if (node->precision == RONDO__PRECISION_GRADIENT && is_possible &&
        (rondo__half_find_rule(node)->kind & HALF_PRODUCT) != 0) {
        set_results(a, node, HALF_WIDE);
        return;
    }
    if (node->precision == RONDO__PRECISION_HALF) {
        decision->reason = is_possible ? NULL : refused_reason;
        return;
    }
    uint8_t own;
    uint8_t by_constant = HALF_PLAIN;
    uint8_t by_inputs;
    uint32_t kind;
    const char *op_reason = judge_op(a, n, &own, &kind);
    const char *constant_reason =
        rondo__half_judge_constants(a, node, rondo__half_find_rule(node), &by_constant);
    const char *input_reason = judge_classes(a, node, kind, &by_inputs);
    if (op_reason != NULL) {
        decision->reason = op_reason;
        // A sum or a Cast hands on what is worse than its own result.
        const bool hands_on = (kind & HALF_CARRIES) != 0 && by_inputs > own;
        set_results(a, node, hands_on ? by_inputs : own);
    } else if (constant_reason != NULL) {
        decision->reason = constant_reason;
        set_results(a, node, by_inputs > by_constant ? by_inputs : by_constant);
    } else if (input_reason != NULL) {
        decision->reason = input_reason;
        set_results(a, node, by_inputs);
    } else if (decision->reason == NULL && (node->op.def->flags & RONDO__OP_USER) != 0) {
        decision->reason = own_reason;
    } else if (decision->reason == NULL && !is_possible) {
        decision->reason = refused_reason;
    }
}

// Products that PyTorch's autocast computes in bf16, too; the others keep what they have.
static void decide_product(rondo__half_analysis *a, size_t n, rondo__tensor_info *infos) {
    const rondo__node *node = &a->program->nodes[n];
    rondo__half_decision *decision = &a->decisions[n];
    const bool is_product =
        rondo__node_is(node, RONDO__OP_MatMul) || rondo__node_is(node, RONDO__OP_Gemm) ||
        rondo__node_is(node, RONDO__OP_Conv) || rondo__node_is(node, RONDO__OP_ConvTranspose);
    if (!decision->is_touched) {
        return;
    }
    if (node->precision == RONDO__PRECISION_SINGLE) {
        decision->reason = asked_reason;
    } else if (node->precision == RONDO__PRECISION_TRAINED) {
        decision->reason = trained_reason;
    } else if (!is_product) {
        decision->reason = single_reason;
    } else if (!rondo__half_is_known(a->program, node)) {
        decision->reason = dynamic_reason;
    } else if (!accepts_half(a->program, node, RONDO_DTYPE_BF16, infos)) {
        decision->reason = refused_reason;
    }
}

// ---- moves between ops that stay ---------------------------------------------------------------

// A move stays in f32, too, if its input is f32 and no node reads its output as f16: rounding and
// widening again would cost precision and time. One walk back finds whole chains.
static rondo_status keep_moves(rondo__half_analysis *a) {
    const rondo_program *program = a->program;
    bool *is_at_hand = rondo__calloc(program->value_count + 1, sizeof *is_at_hand);
    bool *is_read_half = rondo__calloc(program->value_count + 1, sizeof *is_read_half);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (is_at_hand == NULL || is_read_half == NULL) {
        goto free_lists;
    }
    status = RONDO_STATUS_OK;
    for (size_t i = 0; i < program->input_count; ++i) {
        is_at_hand[program->inputs[i]] = true;
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        bool is_here = a->decisions[n].reason != NULL;
        if (!is_here && rondo__half_is_move(node) && rondo__match_input(node, 0) >= 0) {
            is_here = true;
            for (size_t i = 0; i < node->input_count; ++i) {
                is_here = is_here && (node->inputs[i] < 0 ||
                                      !rondo__half_is_computed(program, node->inputs[i]) ||
                                      is_at_hand[node->inputs[i]]);
            }
        }
        for (size_t i = 0; i < node->output_count; ++i) {
            if (node->outputs[i] >= 0) {
                is_at_hand[node->outputs[i]] = is_here;
            }
        }
    }
    for (size_t n = program->node_count; n-- > 0;) {
        const rondo__node *node = &program->nodes[n];
        rondo__half_decision *decision = &a->decisions[n];
        bool is_free = decision->is_touched && decision->reason == NULL &&
                       rondo__half_is_move(node) &&
                       (node->precision == RONDO__PRECISION_BY_RULE ||
                        node->precision == RONDO__PRECISION_GRADIENT);
        for (size_t i = 0; i < node->output_count; ++i) {
            const int32_t value = node->outputs[i];
            is_free = is_free && (value < 0 || !rondo__half_is_single(program, value) ||
                                  (is_at_hand[value] && !is_read_half[value]));
        }
        if (is_free) {
            decision->reason = move_reason;
        }
        for (size_t i = 0; i < node->input_count && decision->reason == NULL; ++i) {
            if (node->inputs[i] >= 0) {
                is_read_half[node->inputs[i]] = true;
            }
        }
    }

free_lists:
    rondo__free(is_at_hand);
    rondo__free(is_read_half);
    return status;
}

rondo_status rondo__half_decide(const rondo_program *program, rondo__half_cache *cache,
                                rondo__half_decision *out_decisions) {
    size_t widest = 1;
    rondo__half_analysis a = {.program = program, .cache = cache, .decisions = out_decisions};
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        const size_t width = node->input_count + node->output_count;
        widest = width > widest ? width : widest;
        out_decisions[n] =
            (rondo__half_decision){.is_touched = rondo__half_reads_single(program, node) ||
                                                 rondo__half_makes_single(program, node)};
    }
    RETURN_IF_ERROR(rondo__uses_init(program, &a.uses));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo__tensor_info *infos = rondo__calloc(widest, sizeof *infos);
    a.class_of = rondo__calloc(program->value_count + 1, sizeof *a.class_of);
    a.wanted = rondo__calloc(program->value_count + 1, sizeof *a.wanted);
    if (infos == NULL || a.class_of == NULL || a.wanted == NULL) {
        goto free_lists;
    }
    if (rondo__half_get_dtype(cache) == RONDO_DTYPE_BF16) {
        for (size_t n = 0; n < program->node_count; ++n) {
            decide_product(&a, n, infos);
        }
        status = RONDO_STATUS_OK;
        goto free_lists;
    }
    trace_back(&a);
    rondo__half_mark_kept(program, HALF_WIDE, a.class_of);
    for (size_t n = 0; n < program->node_count; ++n) {
        decide_node(&a, n, infos);
    }
    status = keep_moves(&a);

free_lists:
    rondo__free(infos);
    rondo__free(a.class_of);
    rondo__free(a.wanted);
    rondo__uses_deinit(&a.uses);
    return status;
}
