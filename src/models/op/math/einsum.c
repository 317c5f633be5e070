// op/math/einsum.c — Einsum: products summed over labels, as the equation says.
//
// The equation is turned into labels: one for each letter, and one for each axis that an ellipsis
// stands for (aligned at the end, as in broadcasting). Every operand and the output then has a step
// for each label: how far its element moves when the label counts up. A letter that stands twice in
// an operand has the sum of both steps, which is the diagonal. Labels that the output lacks are
// summed over; they come last in the order of iteration.
// SPDX-License-Identifier: Apache-2.0
#include "op/math/einsum.h"

#include <ctype.h>
#include <string.h>

#include "op/image/window.h"
#include "op/reference.h"

enum {
    LETTER_COUNT = 52,
    LABEL_MAX = RONDO__EINSUM_LABEL_MAX,
};

// Labels: 0 .. 51 letters, 52 + k the k-th axis of ellipses, counted from their end.
static int32_t get_label(char letter) {
    return islower((unsigned char)letter) ? letter - 'a' : letter - 'A' + 26;
}

// Reads one term ("ij...") of a known rank (or of unknown rank: -1) into labels, one for each axis.
static rondo_status read_term(const rondo__op *op, const char *term, size_t length, int32_t rank,
                              int32_t ellipsis_rank, int32_t *out_labels, int32_t *out_count) {
    int32_t letters = 0;
    int32_t ellipsis_at = -1;
    int32_t count = 0;
    for (size_t i = 0; i < length; i++) {
        letters += isalpha((unsigned char)term[i]) != 0;
    }
    for (size_t i = 0; i < length; i++) {
        const char c = term[i];
        if (c == ' ') {
            continue;
        }
        if (c == '.' && ellipsis_at < 0 && i + 2 < length && term[i + 1] == '.' &&
            term[i + 2] == '.') {
            ellipsis_at = count;
            const int32_t axes = rank < 0 ? ellipsis_rank : rank - letters;
            if (axes < 0 || count + axes > RONDO_RANK_MAX) {
                return RONDO_OP_FAIL(op, BAD_DATA,
                                     "a term of attribute equation does not fit rank %d", rank);
            }
            for (int32_t k = axes - 1; k >= 0; k--) {
                out_labels[count++] = LETTER_COUNT + k;
            }
            i += 2;
            continue;
        }
        if (!isalpha((unsigned char)c)) {
            return RONDO_OP_FAIL(
                op, BAD_DATA,
                "attribute equation is malformed: byte %zu of the term \"%.*s\" is no letter", i,
                (int)(length < 40 ? length : 40), term);
        }
        if (count == RONDO_RANK_MAX) {
            return rondo__op_fail_unsupported(op, "a term with more than 8 labels");
        }
        out_labels[count++] = get_label(c);
    }
    if (rank >= 0 && count != rank) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "a term of attribute equation has %d labels, the input has rank %d",
                             count, rank);
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

// The labels of an output that the equation does not write: ellipsis axes, then letters that occur
// once, in alphabetical order (upper case first, as numpy sorts).
static int32_t make_implicit_output(const int32_t *uses, int32_t ellipsis_rank, int32_t *labels) {
    int32_t count = 0;
    for (int32_t k = ellipsis_rank - 1; k >= 0; k--) {
        labels[count++] = LETTER_COUNT + k;
    }
    for (int32_t i = 0; i < LETTER_COUNT; i++) {
        const int32_t label = (i + 26) % LETTER_COUNT;
        if (uses[label] == 1 && count < RONDO_RANK_MAX) {
            labels[count++] = label;
        }
    }
    return count;
}

// The terms of an equation's left side.
typedef struct terms {
    int32_t labels[RONDO__EINSUM_OPERAND_MAX][RONDO_RANK_MAX];  // of each operand
    int64_t extents[LABEL_MAX];                                 // -1: no such label
    int32_t uses[LABEL_MAX];
    int32_t ellipsis_rank;
} terms;

static rondo_status add_label(const rondo__op *op, terms *t, int32_t label, int64_t extent) {
    const int64_t known = t->extents[label];
    if (known >= 0 && known != extent && known != 1 && extent != 1) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "a label of attribute equation has extents %lld and %lld",
                             (long long)known, (long long)extent);
    }
    if (known < 0 || known == 1) {
        t->extents[label] = extent;
    }
    t->uses[label]++;
    if (label >= LETTER_COUNT && label - LETTER_COUNT + 1 > t->ellipsis_rank) {
        t->ellipsis_rank = label - LETTER_COUNT + 1;
    }
    return RONDO_STATUS_OK;
}

// Reads the equation up to `end`.
static rondo_status read_terms(const rondo__op *op, const char *term, const char *end,
                               size_t operand_count, const rondo_shape *const *shapes,
                               terms *out_terms) {
    memset(out_terms, 0, sizeof *out_terms);
    memset(out_terms->extents, -1, sizeof out_terms->extents);
    for (size_t i = 0; i < operand_count; i++) {
        const char *comma = memchr(term, ',', (size_t)(end - term));
        if ((comma == NULL) != (i + 1 == operand_count)) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attribute equation has another number of terms than the %zu "
                                 "inputs",
                                 operand_count);
        }
        const char *term_end = comma == NULL ? end : comma;
        int32_t count;
        RETURN_IF_ERROR(read_term(op, term, (size_t)(term_end - term), shapes[i]->rank, 0,
                                  out_terms->labels[i], &count));
        for (int32_t k = 0; k < count; k++) {
            RETURN_IF_ERROR(
                add_label(op, out_terms, out_terms->labels[i][k], shapes[i]->extent[k]));
        }
        term = term_end + 1;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__einsum_make_plan(const rondo__op *op, size_t operand_count,
                                     const rondo_shape *const *shapes,
                                     rondo__einsum_plan *out_plan) {
    rondo__einsum_plan *plan = out_plan;
    memset(plan, 0, sizeof *plan);
    const char *equation = rondo__op_get_string(op, "equation", NULL);
    if (equation == NULL) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute equation is missing");
    }
    if (operand_count > RONDO__EINSUM_OPERAND_MAX) {
        return rondo__op_fail_unsupported(op, "more than 8 inputs");
    }
    plan->operand_count = operand_count;
    const char *arrow = strstr(equation, "->");
    const char *end = arrow == NULL ? equation + strlen(equation) : arrow;

    terms t;
    RETURN_IF_ERROR(read_terms(op, equation, end, operand_count, shapes, &t));

    // The output's labels come first in the iteration, then those that are summed over.
    int32_t order[LABEL_MAX];
    int32_t count;
    if (arrow != NULL) {
        RETURN_IF_ERROR(
            read_term(op, arrow + 2, strlen(arrow + 2), -1, t.ellipsis_rank, order, &count));
    } else {
        count = make_implicit_output(t.uses, t.ellipsis_rank, order);
    }
    int32_t place[LABEL_MAX];  // position of a label in the order, -1 none
    memset(place, -1, sizeof place);
    for (int32_t i = 0; i < count; i++) {
        if (t.extents[order[i]] < 0 || place[order[i]] >= 0) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attribute equation has an output label that is unknown or "
                                 "stands twice");
        }
        place[order[i]] = i;
        plan->output.extent[i] = t.extents[order[i]];
    }
    plan->output.rank = count;
    plan->output_count = count;
    for (int32_t label = 0; label < LABEL_MAX; label++) {
        if (t.extents[label] >= 0 && place[label] < 0) {
            place[label] = count;
            order[count++] = label;
        }
    }
    plan->label_count = count;
    for (int32_t i = 0; i < count; i++) {
        plan->extent[i] = t.extents[order[i]];
    }
    for (size_t i = 0; i < operand_count; i++) {
        int64_t step = 1;
        for (int32_t k = shapes[i]->rank - 1; k >= 0; k--) {
            if (shapes[i]->extent[k] != 1) {
                plan->step[i][place[t.labels[i][k]]] += step;
            }
            step *= shapes[i]->extent[k];
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__einsum_infer(rondo__infer *infer) {
    const rondo_shape *shapes[RONDO__EINSUM_OPERAND_MAX] = {NULL};
    for (size_t i = 0; i < infer->input_count; i++) {
        if (!rondo__infer_has_input(infer, i)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu is missing", i);
        }
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
        if (i < RONDO__EINSUM_OPERAND_MAX) {
            shapes[i] = &infer->inputs[i].shape;
        }
    }
    rondo__einsum_plan plan;
    RETURN_IF_ERROR(rondo__einsum_make_plan(infer->op, infer->input_count, shapes, &plan));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &plan.output);
}

// One element of the output: the sum over the labels that the output lacks. Whole numbers of any
// width multiply modulo 2^64, which is also right modulo their own width.
#define DEFINE_SUM_PRODUCTS(suffix, type)                                                          \
    static void sum_products_##suffix(const rondo__einsum_plan *plan, const void *const *operands, \
                                      const int64_t *base, void *out_sum) {                        \
        const int32_t first = plan->output_count;                                                  \
        const int32_t rank = plan->label_count - first;                                            \
        int64_t index[LABEL_MAX] = {0};                                                            \
        type sum = 0;                                                                              \
        do {                                                                                       \
            type product = 1;                                                                      \
            for (size_t i = 0; i < plan->operand_count; i++) {                                     \
                int64_t at = base[i];                                                              \
                for (int32_t k = 0; k < rank; k++) {                                               \
                    at += index[k] * plan->step[i][first + k];                                     \
                }                                                                                  \
                product *= ((const type *)operands[i])[at];                                        \
            }                                                                                      \
            sum += product;                                                                        \
        } while (rondo__index_advance(rank, plan->extent + first, index));                         \
        *(type *)out_sum = sum;                                                                    \
    }
DEFINE_SUM_PRODUCTS(real, double)
DEFINE_SUM_PRODUCTS(whole, uint64_t)

// The elements of an operand, as doubles or as whole numbers of 64 bits.
static const void *widen(rondo__scratch *scratch, const rondo_tensor *tensor, bool is_whole) {
    if (!is_whole) {
        return rondo__scratch_widen(scratch, tensor);
    }
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    void *values = rondo__scratch_create(scratch, count);
    if (values != NULL) {
        rondo__convert_elements(tensor->dtype, tensor->data, RONDO_DTYPE_U64, values,
                                (size_t)count);
    }
    return values;
}

static rondo_status narrow(rondo__compute *compute, const void *values, bool is_whole) {
    void *y;
    if (!is_whole) {
        return rondo__narrow(compute, 0, values);
    }
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    rondo__convert_elements(RONDO_DTYPE_U64, values, compute->inferred[0].dtype, y,
                            (size_t)rondo_shape_get_count(&compute->inferred[0].shape));
    return RONDO_STATUS_OK;
}

rondo_status rondo__einsum_compute(rondo__compute *compute) {
    const bool is_whole = rondo__dtype_is_integer(compute->inputs[0]->dtype);
    const rondo_shape *shapes[RONDO__EINSUM_OPERAND_MAX] = {NULL};
    const void *operands[RONDO__EINSUM_OPERAND_MAX] = {NULL};
    rondo__scratch scratch = {0};
    for (size_t i = 0; i < compute->input_count && i < RONDO__EINSUM_OPERAND_MAX; i++) {
        shapes[i] = &compute->inputs[i]->shape;
        operands[i] = widen(&scratch, compute->inputs[i], is_whole);
    }
    rondo__einsum_plan plan;
    if (scratch.status == RONDO_STATUS_OK) {
        scratch.status = rondo__einsum_make_plan(compute->op, compute->input_count, shapes, &plan);
    }
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    const int64_t count = rondo_shape_get_count(&plan.output);
    double *y = rondo__scratch_create(&scratch, count);
    if (scratch.status == RONDO_STATUS_OK) {
        bool has_terms = true;  // an empty sum is zero
        for (int32_t i = plan.output_count; i < plan.label_count; i++) {
            has_terms = has_terms && plan.extent[i] > 0;
        }
        int64_t index[RONDO_RANK_MAX] = {0};
        for (int64_t at = 0; at < count && has_terms; at++) {
            int64_t base[RONDO__EINSUM_OPERAND_MAX] = {0};
            for (size_t i = 0; i < plan.operand_count; i++) {
                for (int32_t k = 0; k < plan.output_count; k++) {
                    base[i] += index[k] * plan.step[i][k];
                }
            }
            (is_whole ? sum_products_whole : sum_products_real)(&plan, operands, base, y + at);
            rondo__index_advance(plan.output_count, plan.extent, index);
        }
        scratch.status = narrow(compute, y, is_whole);
    }
    return rondo__scratch_end(&scratch);
}
