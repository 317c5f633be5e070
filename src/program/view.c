// program/view.c — see view.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/view.h"

#include <string.h>

#include "program/match.h"

enum { MOVES_MAX = 16 };  // one behind the other; exporters write half as many

static void make_dense(int32_t value, const rondo_shape *shape, rondo__view *out_view) {
    *out_view = (rondo__view){.base = value, .rank = shape->rank, .factor = 1.0f};
    int64_t stride = 1;
    for (int32_t d = shape->rank - 1; d >= 0; --d) {
        out_view->extent[d] = shape->extent[d];
        out_view->stride[d] = stride;
        stride *= shape->extent[d];
    }
}

// New extents are cut from old ones, last first: those of one group must lie evenly.
bool rondo__view_reshape(rondo__view *view, const rondo_shape *shape) {
    int64_t extent[RONDO_RANK_MAX], stride[RONDO_RANK_MAX], made[RONDO_RANK_MAX];
    int32_t rank = 0, at = 0;
    for (int32_t d = 0; d < view->rank; ++d) {  // without extents of 1, and with neighbours merged
        if (view->extent[d] == 0) {
            return false;
        }
        if (rank > 0 && stride[rank - 1] == view->stride[d] * view->extent[d]) {
            extent[rank - 1] *= view->extent[d];
            stride[rank - 1] = view->stride[d];
        } else if (view->extent[d] != 1) {
            extent[rank] = view->extent[d];
            stride[rank++] = view->stride[d];
        }
    }
    at = rank - 1;
    int64_t left = at >= 0 ? extent[at] : 1, step = at >= 0 ? stride[at] : 1;
    for (int32_t d = shape->rank - 1; d >= 0; --d) {
        const int64_t wanted = shape->extent[d];
        if (wanted != 1 && left == 1 && at > 0) {
            at -= 1;
            left = extent[at];
            step = stride[at];
        }
        if (wanted <= 0 || left % wanted != 0) {
            return false;
        }
        made[d] = step;
        step *= wanted;
        left /= wanted;
    }
    if (left != 1 || at > 0) {
        return false;
    }
    view->rank = shape->rank;
    memcpy(view->extent, shape->extent, sizeof view->extent);
    memcpy(view->stride, made, sizeof view->stride);
    return true;
}

static bool get_shape(const rondo_program *program, int32_t value, rondo_shape *out_shape) {
    return rondo__value_get_shape(&program->values[value], out_shape);
}

// Element `i` of a constant list of whole numbers.
static bool get_number(const rondo_program *program, int32_t value, int64_t i, int64_t *out) {
    const rondo_tensor *list = value >= 0 ? &program->values[value].constant : NULL;
    if (list == NULL || i >= rondo_shape_get_count(&list->shape)) {
        return false;
    }
    if (list->dtype == RONDO_DTYPE_I64) {
        *out = ((const int64_t *)list->data)[i];
    } else if (list->dtype == RONDO_DTYPE_I32) {
        *out = ((const int32_t *)list->data)[i];
    }
    return list->dtype == RONDO_DTYPE_I64 || list->dtype == RONDO_DTYPE_I32;
}

static bool get_axis(const rondo__view *view, int64_t axis, int32_t *out_axis) {
    *out_axis = (int32_t)(axis < 0 ? axis + view->rank : axis);
    return axis >= -view->rank && axis < view->rank;
}

static bool turn(rondo__view *view, const rondo__node *node) {
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    const rondo__view from = *view;
    if (perm != NULL && count != (size_t)view->rank) {
        return false;
    }
    for (int32_t d = 0; d < view->rank; ++d) {
        const int64_t source = perm != NULL ? perm[d] : view->rank - 1 - d;
        if (source < 0 || source >= view->rank) {
            return false;
        }
        view->extent[d] = from.extent[source];
        view->stride[d] = from.stride[source];
    }
    return true;
}

// One index of an axis.
static bool pick(rondo__view *view, const rondo_program *program, const rondo__node *node,
                 const rondo_shape *result) {
    int32_t axis;
    int64_t index;
    if (!get_axis(view, rondo__op_get_int(&node->op, "axis", 0), &axis) ||
        !get_number(program, node->inputs[1], 0, &index) ||
        rondo_shape_get_count(&program->values[node->inputs[1]].constant.shape) != 1) {
        return false;
    }
    index = index < 0 ? index + view->extent[axis] : index;
    if (index < 0 || index >= view->extent[axis]) {
        return false;
    }
    view->offset += index * view->stride[axis];
    view->extent[axis] = 1;
    return rondo__view_reshape(view, result);
}

static bool split(rondo__view *view, const rondo_program *program, const rondo__node *node,
                  int32_t value) {
    int32_t axis;
    rondo_shape shape;
    if (!get_axis(view, rondo__op_get_int(&node->op, "axis", 0), &axis)) {
        return false;
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] < 0 || !get_shape(program, node->outputs[i], &shape) ||
            shape.rank != view->rank) {
            return false;
        }
        if (node->outputs[i] == value) {
            view->extent[axis] = shape.extent[axis];
            return true;
        }
        view->offset += shape.extent[axis] * view->stride[axis];
    }
    return false;
}

// Ranges of step 1; their lengths are those of the result.
static bool slice(rondo__view *view, const rondo_program *program, const rondo__node *node,
                  const rondo_shape *result) {
    if (node->op.opset < 10 || result->rank != view->rank) {
        return false;
    }
    const int32_t starts = node->inputs[1];
    const int32_t axes = node->input_count > 3 ? node->inputs[3] : RONDO__VALUE_NONE;
    const int32_t steps = node->input_count > 4 ? node->inputs[4] : RONDO__VALUE_NONE;
    int64_t start, step, number;
    for (int64_t i = 0; get_number(program, starts, i, &start); ++i) {
        int32_t axis;
        number = i;
        step = 1;
        if ((axes >= 0 && !get_number(program, axes, i, &number)) ||
            (steps >= 0 && !get_number(program, steps, i, &step)) || step != 1 ||
            !get_axis(view, number, &axis)) {
            return false;
        }
        start = start < 0 ? start + view->extent[axis] : start;
        if (start < 0 || start + result->extent[axis] > view->extent[axis]) {
            return false;
        }
        view->offset += start * view->stride[axis];
    }
    memcpy(view->extent, result->extent, sizeof view->extent);
    return get_number(program, starts, 0, &start);
}

// The operand of a Mul or Div by a number.
static bool scale(rondo__view *view, const rondo_program *program, const rondo__node *node,
                  size_t operand, const rondo_shape *result) {
    float number;
    if (!rondo__match_scalar(program, node->inputs[1 - operand], &number)) {
        return false;
    }
    const bool is_div = rondo__node_is(node, "", "Div");
    if (is_div && (operand != 0 || number == 0.0f)) {
        return false;
    }
    view->factor = is_div ? view->factor / number : view->factor * number;
    return rondo__view_reshape(view, result);
}

static bool is_scaling(const rondo_program *program, const rondo__node *node, size_t *out_operand) {
    float number;
    const bool is_it = rondo__node_is(node, "", "Mul") || rondo__node_is(node, "", "Div");
    *out_operand = is_it && rondo__match_scalar(program, node->inputs[0], &number) ? 1 : 0;
    return is_it;
}

// Lets the view go through the node that makes `value`. False: it cannot.
static bool apply(rondo__view *view, const rondo_program *program, const rondo__node *node,
                  int32_t value, bool take_factors) {
    rondo_shape result;
    size_t operand;
    if (!get_shape(program, value, &result)) {
        return false;
    }
    if ((node->op.def->flags & RONDO__OP_VIEW) != 0) {
        return node->outputs[0] == value && rondo__view_reshape(view, &result);
    }
    if (rondo__node_is(node, "", "Transpose")) {
        return turn(view, node);
    }
    if (rondo__node_is(node, "", "Gather")) {
        return pick(view, program, node, &result);
    }
    if (rondo__node_is(node, "", "Split")) {
        return split(view, program, node, value);
    }
    if (rondo__node_is(node, "", "Slice")) {
        return slice(view, program, node, &result);
    }
    return take_factors && is_scaling(program, node, &operand) &&
           scale(view, program, node, operand, &result);
}

void rondo__view_trace(const rondo_program *program, int32_t value, bool take_factors,
                       rondo__view *out_view) {
    int32_t values[MOVES_MAX + 1] = {value};
    int moves = 0;
    rondo_shape shape;
    for (; moves < MOVES_MAX; ++moves) {
        const int32_t maker = program->values[values[moves]].producer;
        const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
        size_t operand = 0;
        if (node == NULL || node->input_count == 0) {
            break;
        }
        (void)is_scaling(program, node, &operand);
        if (node->inputs[operand] < 0 || !get_shape(program, node->inputs[operand], &shape)) {
            break;
        }
        rondo__view probe;
        make_dense(node->inputs[operand], &shape, &probe);
        if (!apply(&probe, program, node, values[moves], take_factors)) {
            break;
        }
        values[moves + 1] = node->inputs[operand];
    }
    // From as far away as all moves still fit in strides.
    for (int first = moves; first >= 0; --first) {
        (void)get_shape(program, values[first], &shape);
        make_dense(values[first], &shape, out_view);
        int at = first;
        while (at > 0 &&
               apply(out_view, program, &program->nodes[program->values[values[at - 1]].producer],
                     values[at - 1], take_factors)) {
            --at;
        }
        if (at == 0) {
            return;
        }
    }
}

bool rondo__view_is_whole(const rondo_program *program, const rondo__view *view) {
    rondo_shape base;
    int64_t count = 1;
    bool is_it = get_shape(program, view->base, &base) && view->offset == 0;
    for (int32_t d = view->rank - 1; d >= 0; --d) {
        is_it = is_it && (view->extent[d] == 1 || view->stride[d] == count);
        count *= view->extent[d];
    }
    return is_it && count == rondo_shape_get_count(&base);
}
