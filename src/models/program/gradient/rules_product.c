// program/gradient/rules_product.c — gradients of products of matrices, and of Einsum.
// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)
#define SECOND rondo__gradient_input(call, 1)
#define MADE rondo__gradient_output(call, 0)
#define DY (call->changes[0])

// A vector counts as a matrix of one row or column.
static void expand_vectors(rondo__gradient *g, const rondo__gradient_call *call, int32_t a_rank,
                           int32_t b_rank) {
    const size_t begin = rondo__gradient_begin(g);
    const int32_t a = a_rank == 1 ? E("Unsqueeze", FIRST, rondo__gradient_int(g, 0)) : FIRST;
    const int32_t b = b_rank == 1 ? E("Unsqueeze", SECOND, rondo__gradient_int(g, 1)) : SECOND;
    const int32_t y = rondo__gradient_reshape_like(g, E("MatMul", a, b), MADE);
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

// Rows of all batches as one matrix: [..., m, n] to [-1, n].
static int32_t flatten_rows(rondo__gradient *g, int32_t value, int32_t rank) {
    return rank == 2 ? value : rondo__gradient_set_int(g, E("Flatten", value), "axis", rank - 1);
}

RULE(rule_matmul) {
    const int32_t a_rank = rondo__gradient_need_rank(g, call, FIRST);
    const int32_t b_rank = rondo__gradient_need_rank(g, call, SECOND);
    if (a_rank == 1 || b_rank == 1) {
        expand_vectors(g, call, a_rank, b_rank);
        return;
    }
    const int32_t y_rank = a_rank > b_rank ? a_rank : b_rank;
    if (rondo__gradient_wants(g, call, 0)) {
        const int32_t change = E("MatMul", DY, rondo__gradient_swap(g, SECOND, b_rank));
        rondo__gradient_give(g, call, 0, rondo__gradient_sum_to(g, change, FIRST));
    }
    if (!rondo__gradient_wants(g, call, 1)) {
        return;
    }
    if (b_rank == 2) {
        const int32_t rows = flatten_rows(g, FIRST, a_rank);
        const int32_t changes = flatten_rows(g, DY, y_rank);
        rondo__gradient_give(g, call, 1, E("MatMul", rondo__gradient_swap(g, rows, 2), changes));
        return;
    }
    const int32_t change = E("MatMul", rondo__gradient_swap(g, FIRST, a_rank), DY);
    rondo__gradient_give(g, call, 1, rondo__gradient_sum_to(g, change, SECOND));
}

static int32_t gemm(rondo__gradient *g, int32_t a, int32_t b, float alpha, bool turn_a,
                    bool turn_b) {
    int32_t y = E("Gemm", a, b);
    y = rondo__gradient_set_float(g, y, "alpha", alpha);
    y = rondo__gradient_set_int(g, y, "transA", turn_a);
    return rondo__gradient_set_int(g, y, "transB", turn_b);
}

RULE(rule_gemm) {
    const float alpha = rondo__op_get_float(&call->op, "alpha", 1.0f);
    const float beta = rondo__op_get_float(&call->op, "beta", 1.0f);
    const bool turn_a = rondo__op_get_int(&call->op, "transA", 0) != 0;
    const bool turn_b = rondo__op_get_int(&call->op, "transB", 0) != 0;
    if (rondo__gradient_wants(g, call, 0)) {
        rondo__gradient_give(g, call, 0,
                             turn_a ? gemm(g, SECOND, DY, alpha, turn_b, true)
                                    : gemm(g, DY, SECOND, alpha, false, !turn_b));
    }
    if (rondo__gradient_wants(g, call, 1)) {
        rondo__gradient_give(g, call, 1,
                             turn_b ? gemm(g, DY, FIRST, alpha, true, turn_a)
                                    : gemm(g, FIRST, DY, alpha, !turn_a, false));
    }
    if (rondo__gradient_wants(g, call, 2)) {
        const int32_t factor = rondo__gradient_number(g, (double)beta, DY);
        const int32_t change = beta == 1.0f ? DY : E("Mul", DY, factor);
        rondo__gradient_give(g, call, 2, rondo__gradient_sum_to(g, change, call->inputs[2]));
    }
}

// ---- Einsum -------------------------------------------------------------------------------------

enum { TERM_MAX = 64, TERM_COUNT_MAX = 8 };

typedef struct equation {
    size_t count;
    char terms[TERM_COUNT_MAX][TERM_MAX];
    char output[TERM_MAX];
} equation;

static bool append(char *term, char c) {
    const size_t length = strlen(term);
    if (length + 1 >= TERM_MAX) {
        return false;
    }
    term[length] = c;
    term[length + 1] = '\0';
    return true;
}

// Without an arrow the output has the labels that stand there once, in alphabetical order.
static bool make_output(equation *eq) {
    for (int c = 'A'; c <= 'z'; ++c) {
        int uses = 0;
        for (size_t t = 0; isalpha(c) && t < eq->count; ++t) {
            for (const char *at = eq->terms[t]; *at != '\0'; ++at) {
                uses += *at == c;
            }
        }
        if (uses == 1 && !append(eq->output, (char)c)) {
            return false;
        }
    }
    return true;
}

// Labels for the axes of an ellipsis, the last `count` of the characters that equations of users
// cannot have.
static bool append_ellipsis(char *term, int32_t count) {
    for (int32_t i = RONDO_RANK_MAX - count; i < RONDO_RANK_MAX; ++i) {
        if (i < 0 || !append(term, (char)('\x01' + i))) {
            return false;
        }
    }
    return true;
}

// Labels only; false for one that an operand has twice. `axes`: of an ellipsis in each operand,
// then in the output.
static bool parse(const char *text, const int32_t *axes, equation *out_equation) {
    const char *whole = text;
    *out_equation = (equation){.count = 1};
    bool has_arrow = false;
    for (; *text != '\0'; ++text) {
        char *term =
            has_arrow ? out_equation->output : out_equation->terms[out_equation->count - 1];
        if (*text == ' ') {
            continue;
        } else if (strncmp(text, "...", 3) == 0) {
            const size_t at = has_arrow ? TERM_COUNT_MAX : out_equation->count - 1;
            text += 2;
            if (!append_ellipsis(term, axes[at])) {
                return false;
            }
        } else if (*text == ',') {
            if (out_equation->count++ == TERM_COUNT_MAX - 1) {
                return false;
            }
        } else if (text[0] == '-' && text[1] == '>') {
            has_arrow = true;
            text += 1;
        } else if (!isalpha((unsigned char)*text) || strchr(term, *text) != NULL ||
                   !append(term, *text)) {
            return false;
        }
    }
    if (!has_arrow && strstr(whole, "...") != NULL &&
        !append_ellipsis(out_equation->output, axes[TERM_COUNT_MAX])) {
        return false;
    }
    return has_arrow || make_output(out_equation);
}

// Labels of an ellipsis become unused letters.
static void name_labels(char *text) {
    char free[RONDO_RANK_MAX];
    size_t count = 0;
    for (int c = 'z'; c >= 'A' && count < RONDO_RANK_MAX; --c) {
        if (isalpha(c) && strchr(text, c) == NULL) {
            free[count++] = (char)c;
        }
    }
    for (char *at = text; *at != '\0'; ++at) {
        const int label = *at - 1;
        *at = label < RONDO_RANK_MAX && (size_t)label < count ? free[label] : *at;
    }
}

// The change with operand `t`: of dy and the other operands. Labels that only this operand has were
// summed: there it is the same for all.
static int32_t change_of_term(rondo__gradient *g, const rondo__gradient_call *call,
                              const equation *eq, size_t t) {
    char text[(TERM_COUNT_MAX + 2) * (TERM_MAX + 2)];
    char known[(TERM_COUNT_MAX + 1) * TERM_MAX];
    int32_t inputs[TERM_COUNT_MAX + 1];
    char kept[TERM_MAX] = "";
    int64_t missing[RONDO_RANK_MAX];
    size_t missing_count = 0;
    size_t count = 0;
    inputs[count++] = DY;
    (void)snprintf(text, sizeof text, "%s", eq->output);
    (void)snprintf(known, sizeof known, "%s", eq->output);
    for (size_t i = 0; i < eq->count; ++i) {
        if (i != t) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), ",%s", eq->terms[i]);
            (void)snprintf(known + strlen(known), sizeof known - strlen(known), "%s", eq->terms[i]);
            inputs[count++] = call->inputs[i];
        }
    }
    for (size_t d = 0; eq->terms[t][d] != '\0'; ++d) {
        if (strchr(known, eq->terms[t][d]) != NULL) {
            (void)append(kept, eq->terms[t][d]);
        } else if (missing_count < RONDO_RANK_MAX) {
            missing[missing_count++] = (int64_t)d;
        }
    }
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "->%s", kept);
    name_labels(text);
    int32_t change = rondo__gradient_set_string(g, rondo__gradient_emit(g, "Einsum", inputs, count),
                                                "equation", text);
    if (missing_count > 0) {
        change = E("Unsqueeze", change, rondo__gradient_ints(g, missing, missing_count));
    }
    // An extent of 1 may have been repeated.
    change = rondo__gradient_expand_like(g, change, call->inputs[t]);
    return rondo__gradient_sum_to(g, change, call->inputs[t]);
}

// How many axes the ellipsis of each operand stands for; the most is the output's.
static void count_axes(rondo__gradient *g, const rondo__gradient_call *call, int32_t *out_axes) {
    const char *text = rondo__op_get_string(&call->op, "equation", "");
    int32_t labels = 0;
    size_t t = 0;
    for (; t < TERM_COUNT_MAX && t < call->input_count; ++text) {
        if (*text == ',' || *text == '-' || *text == '\0') {
            const int32_t rank = rondo__gradient_rank(g, call->inputs[t]);
            out_axes[t] = rank > labels ? rank - labels : 0;
            labels = 0;
            t += 1;
            if (*text != ',') {
                break;
            }
        }
        labels += isalpha((unsigned char)*text) != 0;
    }
    for (t = 0; t < TERM_COUNT_MAX; ++t) {
        out_axes[TERM_COUNT_MAX] =
            out_axes[t] > out_axes[TERM_COUNT_MAX] ? out_axes[t] : out_axes[TERM_COUNT_MAX];
    }
}

RULE(rule_einsum) {
    equation eq;
    int32_t axes[TERM_COUNT_MAX + 1] = {0};
    count_axes(g, call, axes);
    if (!parse(rondo__op_get_string(&call->op, "equation", ""), axes, &eq) ||
        eq.count != call->input_count) {
        rondo__gradient_refuse(g, call, "a label twice in an operand, or over 8 operands");
        return;
    }
    for (size_t t = 0; t < eq.count; ++t) {
        if (rondo__gradient_wants(g, call, t)) {
            rondo__gradient_give(g, call, t, change_of_term(g, call, &eq, t));
        }
    }
}

const rondo__gradient_row rondo__gradient_rows_product[] = {
    {RONDO__OP_MatMul, rule_matmul},
    {RONDO__OP_Gemm, rule_gemm},
    {RONDO__OP_Einsum, rule_einsum},
    {RONDO__OP_NONE, NULL},
};
