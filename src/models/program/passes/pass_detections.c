// program/passes/pass_detections.c — what detectors do with their boxes.
//
// The best of each class, in a dozen ops of unknown shapes for each, become one rondo.BestRows:
//
//   scores ── Gather (column) ─┬─ Greater ── NonZero ── Transpose ─ where
//                              └─ GatherND (where) ─ good ── TopK (min(300, length)) ─┬─ best
//   rows ──────────────────────── GatherND (where) ────────────── Gather (indices) ───┘
//   Concat of the rows of all classes, of their best scores, and of a label for each of them
//
// NonMaxSuppression finds no more boxes than a Slice behind it takes:
//
//   NonMaxSuppression ── Gather (numbers of boxes) ── Squeeze ── Slice (the first 300)
//
// Runs before the pass that bundles ops of unknown shapes, which would hide these ops in a body.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

enum { CHAIN_MAX = 4 };  // ops that keep one number as it is

// The inputs and limits of one class.
typedef struct part {
    int32_t scores, rows;
    int64_t column, most;
    float threshold;
} part;

// A constant whole number, alone in its tensor.
static bool read_int(const rondo_program *program, int32_t value, int64_t *out_number) {
    const rondo_tensor *constant = value >= 0 && rondo__value_is_constant(&program->values[value])
                                       ? &program->values[value].constant
                                       : NULL;
    if (constant == NULL || constant->dtype != RONDO_DTYPE_I64 ||
        rondo_shape_get_count(&constant->shape) != 1) {
        return false;
    }
    *out_number = rondo__tensor_get_int(constant, 0);
    return true;
}

// Follows ops that only reshape one number back to the value that they start from.
static int32_t get_number(const rondo_program *program, int32_t value) {
    static const rondo__op_id forms[] = {RONDO__OP_Reshape, RONDO__OP_Unsqueeze, RONDO__OP_Squeeze,
                                         RONDO__OP_Identity};
    for (int i = 0; i < CHAIN_MAX; ++i) {
        const rondo__node *node = NULL;
        for (size_t f = 0; f < sizeof forms / sizeof *forms && node == NULL; ++f) {
            node = rondo__match_maker(program, value, forms[f]);
        }
        if (node == NULL) {
            break;
        }
        value = node->inputs[0];
    }
    return value;
}

// Whether `value` is the length of the list `of`.
static bool is_length(const rondo_program *program, int32_t value, int32_t of) {
    int64_t index = 0;
    const rondo__node *gather =
        rondo__match_maker(program, get_number(program, value), RONDO__OP_Gather);
    value = gather != NULL ? gather->inputs[0] : get_number(program, value);
    const rondo__node *shape = rondo__match_maker(program, value, RONDO__OP_Shape);
    return shape != NULL && shape->inputs[0] == of &&
           (gather == NULL || (read_int(program, gather->inputs[1], &index) && index == 0));
}

// min(most, the length of the list `of`).
static bool match_least(const rondo_program *program, int32_t value, int32_t of,
                        int64_t *out_most) {
    const rondo__node *least =
        rondo__match_maker(program, get_number(program, value), RONDO__OP_ReduceMin);
    const rondo__node *concat =
        least != NULL ? rondo__match_maker(program, least->inputs[0], RONDO__OP_Concat) : NULL;
    if (concat == NULL || concat->input_count != 2 || least->input_count != 1) {
        return false;
    }
    for (int i = 0; i < 2; ++i) {
        if (read_int(program, concat->inputs[i], out_most) && *out_most >= 0 &&
            is_length(program, concat->inputs[1 - i], of)) {
            return true;
        }
    }
    return false;
}

// The rows of `value` that a condition picks: the condition, and what is picked from.
static bool match_picked(const rondo_program *program, int32_t value, int32_t *out_from,
                         int32_t *out_condition) {
    const rondo__node *pick = rondo__match_maker(program, value, RONDO__OP_GatherND);
    const rondo__node *turn =
        pick != NULL ? rondo__match_maker(program, pick->inputs[1], RONDO__OP_Transpose) : NULL;
    const rondo__node *found =
        turn != NULL ? rondo__match_maker(program, turn->inputs[0], RONDO__OP_NonZero) : NULL;
    rondo_shape shape;
    if (found == NULL || rondo__op_get_int(&pick->op, "batch_dims", 0) != 0 ||
        !rondo__value_get_shape(&program->values[found->inputs[0]], &shape) || shape.rank != 1) {
        return false;
    }
    const rondo__attribute *order = rondo__op_find(&turn->op, "perm");
    if (order != NULL && (order->count != 2 || order->ints[0] != 1)) {
        return false;
    }
    *out_from = pick->inputs[0];
    *out_condition = found->inputs[0];
    return true;
}

// A column of scores, and the rows in which it is above a threshold.
static bool match_column(const rondo_program *program, int32_t picked, part *out_part,
                         int32_t *out_condition) {
    int32_t column = -1;
    rondo_shape shape, list;
    if (!match_picked(program, picked, &column, out_condition)) {
        return false;
    }
    const rondo__node *greater = rondo__match_maker(program, *out_condition, RONDO__OP_Greater);
    const rondo__node *gather = rondo__match_maker(program, column, RONDO__OP_Gather);
    if (greater == NULL || gather == NULL || greater->inputs[0] != column ||
        !rondo__match_scalar(program, greater->inputs[1], &out_part->threshold) ||
        !read_int(program, gather->inputs[1], &out_part->column) ||
        !rondo__value_get_shape(&program->values[gather->inputs[0]], &shape) || shape.rank != 2 ||
        !rondo__value_get_shape(&program->values[column], &list) || list.rank != 1 ||
        program->values[gather->inputs[0]].dtype != RONDO_DTYPE_F32) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&gather->op, "axis", 0);
    out_part->scores = gather->inputs[0];
    out_part->column += out_part->column < 0 ? shape.extent[1] : 0;
    return axis == 1 || axis == -1;
}

// The TopK of the best rows of one class, whose rows `value` is; NULL: it is not that.
static const rondo__node *match_part(const rondo_program *program, int32_t value, part *out_part) {
    const rondo__node *gather = rondo__match_maker(program, value, RONDO__OP_Gather);
    const rondo__node *top =
        gather != NULL ? rondo__match_maker(program, gather->inputs[1], RONDO__OP_TopK) : NULL;
    int32_t of_scores = -1, of_rows = -1;
    rondo_shape shape;
    if (top == NULL || top->output_count < 2 || top->outputs[1] != gather->inputs[1] ||
        top->input_count < 2 || rondo__op_get_int(&gather->op, "axis", 0) != 0 ||
        rondo__op_get_int(&top->op, "largest", 1) == 0 ||
        rondo__op_get_int(&top->op, "sorted", 1) == 0 ||
        !match_column(program, top->inputs[0], out_part, &of_scores) ||
        !match_picked(program, gather->inputs[0], &out_part->rows, &of_rows) ||
        of_rows != of_scores ||
        !match_least(program, top->inputs[1], top->inputs[0], &out_part->most)) {
        return NULL;
    }
    const rondo__value *rows = &program->values[out_part->rows];
    return rondo__value_get_shape(rows, &shape) && shape.rank == 2 && rows->dtype == RONDO_DTYPE_F32
               ? top
               : NULL;
}

// Whether all parts that the Concat joins are of one kind: the next column of the same scores.
static bool match_rows(const rondo_program *program, const rondo__node *concat, part *out_first) {
    if (concat->input_count < 2 || rondo__op_get_int(&concat->op, "axis", 0) != 0) {
        return false;
    }
    for (size_t i = 0; i < concat->input_count; ++i) {
        part own = {0};
        if (match_part(program, concat->inputs[i], &own) == NULL) {
            return false;
        }
        if (i == 0) {
            *out_first = own;
        }
        if (own.scores != out_first->scores || own.rows != out_first->rows ||
            own.most != out_first->most || own.threshold != out_first->threshold ||
            own.column != out_first->column + (int64_t)i) {
            return false;
        }
    }
    return true;
}

// A label for each element of `value`, which TopK has made.
static bool match_label(const rondo_program *program, int32_t value, const rondo__node *top,
                        int64_t *out_label) {
    const rondo__node *fill = rondo__match_maker(program, value, RONDO__OP_ConstantOfShape);
    const rondo__node *shape =
        fill != NULL ? rondo__match_maker(program, fill->inputs[0], RONDO__OP_Shape) : NULL;
    const rondo__attribute *label = shape != NULL ? rondo__op_find(&fill->op, "value") : NULL;
    if (label == NULL || label->kind != RONDO__ATTRIBUTE_TENSOR ||
        label->tensor_value.dtype != RONDO_DTYPE_I64 || shape->inputs[0] != top->outputs[0]) {
        return false;
    }
    *out_label = rondo__tensor_get_int(&label->tensor_value, 0);
    return true;
}

// Whether `other` joins, in the same order, the scores or (is_labels) the labels of the parts.
static bool joins_beside(const rondo_program *program, const rondo__node *concat,
                         const rondo__node *other, bool is_labels, int64_t *out_label) {
    if (!rondo__node_is(other, RONDO__OP_Concat) || other->input_count != concat->input_count ||
        rondo__op_get_int(&other->op, "axis", 0) != 0) {
        return false;
    }
    for (size_t i = 0; i < concat->input_count; ++i) {
        const rondo__node *gather =
            rondo__match_maker(program, concat->inputs[i], RONDO__OP_Gather);
        const rondo__node *top = rondo__match_maker(program, gather->inputs[1], RONDO__OP_TopK);
        int64_t label = 0;
        if (is_labels ? !match_label(program, other->inputs[i], top, &label)
                      : other->inputs[i] != top->outputs[0]) {
            return false;
        }
        *out_label = i == 0 ? label : *out_label;
        if (label != *out_label + (is_labels ? (int64_t)i : 0)) {
            return false;
        }
    }
    return true;
}

static rondo_status set_attributes(rondo__op *op, const part *first, int64_t columns,
                                   int64_t label) {
    RETURN_IF_ERROR(rondo__op_set_int(op, "first", first->column));
    RETURN_IF_ERROR(rondo__op_set_int(op, "columns", columns));
    RETURN_IF_ERROR(rondo__op_set_int(op, "label", label));
    RETURN_IF_ERROR(rondo__op_set_int(op, "most", first->most));
    return rondo__op_set_float(op, "threshold", first->threshold);
}

static rondo_status join_classes(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *concat = &program->nodes[n];
    part first = {0};
    rondo_shape rows;
    if (r->remove[n] || !rondo__node_is(concat, RONDO__OP_Concat) ||
        !match_rows(program, concat, &first) ||
        !rondo__value_get_shape(&program->values[first.rows], &rows)) {
        return RONDO_STATUS_OK;
    }
    int32_t outputs[] = {concat->outputs[0], RONDO__VALUE_NONE, RONDO__VALUE_NONE};
    int64_t label = 0;
    r->remove[n] = true;
    for (size_t other = 0; other < r->node_count; ++other) {
        for (size_t i = 1; i < 3 && !r->remove[other]; ++i) {
            int64_t own = 0;
            if (outputs[i] < 0 &&
                joins_beside(program, concat, &program->nodes[other], i == 2, &own)) {
                outputs[i] = program->nodes[other].outputs[0];
                label = i == 2 ? own : label;
                r->remove[other] = true;
            }
        }
    }
    // The new op states the outputs' types and shapes: shape inference could not tell them for a
    // TopK behind a NonZero.
    const rondo_shape found[] = {{2, {-1, rows.extent[1]}}, {1, {-1}}, {1, {-1}}};
    for (size_t i = 0; i < 3; ++i) {
        if (outputs[i] >= 0) {
            program->values[outputs[i]].producer = RONDO__VALUE_NONE;
            rondo__value_set_shape(&program->values[outputs[i]],
                                   i < 2 ? RONDO_DTYPE_F32 : RONDO_DTYPE_I64, &found[i]);
        }
    }
    const int32_t inputs[] = {first.scores, first.rows};
    rondo__op op = {.opset = 1, .def = rondo__op_get_def(RONDO__FUSED_BestRows)};
    rondo_status status = set_attributes(&op, &first, (int64_t)concat->input_count, label);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_node(program, &op, inputs, 2, 2, outputs, 3);
    }
    rondo__op_deinit(&op);
    return status;
}

// ---- no more boxes than are wanted ------------------------------------------------------------

// The one op that reads `value`, if it is this one; NULL otherwise.
static const rondo__node *get_reader(const rondo__rewriting *r, int32_t value, rondo__op_id op) {
    const int32_t reader = rondo__uses_get_single(&r->uses, value);
    return reader >= 0 && !r->remove[reader] && rondo__node_is(&r->program->nodes[reader], op) &&
                   r->program->nodes[reader].inputs[0] == value
               ? &r->program->nodes[reader]
               : NULL;
}

// How many of the first elements of a list the Slice takes; -1: it takes others.
static int64_t read_taken(const rondo_program *program, const rondo__node *slice) {
    enum { START = 1, END, AXIS, STEP };
    int64_t start, end, axis = 0, step = 1;
    return slice->op.opset >= 10 && slice->input_count > END &&
                   read_int(program, slice->inputs[START], &start) && start == 0 &&
                   read_int(program, slice->inputs[END], &end) && end >= 0 &&
                   (slice->input_count <= AXIS || slice->inputs[AXIS] < 0 ||
                    (read_int(program, slice->inputs[AXIS], &axis) && axis == 0)) &&
                   (slice->input_count <= STEP || slice->inputs[STEP] < 0 ||
                    (read_int(program, slice->inputs[STEP], &step) && step == 1))
               ? end
               : -1;
}

// Only for one class, because the limit holds for each class.
static rondo_status limit_boxes(rondo__rewriting *r, size_t n) {
    enum { SCORES = 1, MOST = 2 };
    rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    rondo_shape shape;
    int64_t most = 0, column = 0;
    if (!rondo__node_is(node, RONDO__OP_NonMaxSuppression) || node->input_count <= MOST ||
        !read_int(program, node->inputs[MOST], &most) ||
        !rondo__value_get_shape(&program->values[node->inputs[SCORES]], &shape) ||
        shape.rank != 3 || shape.extent[0] * shape.extent[1] != 1) {
        return RONDO_STATUS_OK;
    }
    const rondo__node *gather = get_reader(r, node->outputs[0], RONDO__OP_Gather);
    if (gather == NULL || rondo__op_get_int(&gather->op, "axis", 0) != 1 ||
        !read_int(program, gather->inputs[1], &column)) {
        return RONDO_STATUS_OK;
    }
    const rondo__node *squeeze = get_reader(r, gather->outputs[0], RONDO__OP_Squeeze);
    const rondo__node *slice =
        get_reader(r, (squeeze != NULL ? squeeze : gather)->outputs[0], RONDO__OP_Slice);
    const int64_t taken = slice != NULL ? read_taken(program, slice) : -1;
    if (taken < 0 || taken >= most) {
        return RONDO_STATUS_OK;
    }
    rondo_tensor limit;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &(rondo_shape){1, {1}}, &limit));
    *(int64_t *)limit.data = taken;
    const rondo_status status = rondo__program_add_constant(program, "first boxes", &limit,
                                                            &program->nodes[n].inputs[MOST]);
    rondo_tensor_deinit(&limit);
    return status;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    RETURN_IF_ERROR(join_classes(r, n));
    return limit_boxes(r, n);
}

rondo_status rondo__pass_detections(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
