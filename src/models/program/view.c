// program/view.c — see view.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/view.h"

#include <string.h>

#include "program/passes/match.h"

enum {
    MOVES_MAX = 16,  // one behind the other; exporters write half as many
    PIECES_MAX = 8,  // of one extent
};

// On the way an extent may be one of several pieces, each with its own stride, as batch and heads
// are that were merged and will come apart again. Outermost first.
typedef struct pieces {
    int32_t count;
    int64_t extent[PIECES_MAX];
    int64_t stride[PIECES_MAX];
} pieces;

typedef struct sight {
    int64_t offset;
    float factor;
    int32_t rank;
    pieces axes[RONDO_RANK_MAX];
} sight;

static void make_dense(const rondo_shape *shape, sight *out_sight) {
    *out_sight = (sight){.rank = shape->rank, .factor = 1.0f};
    int64_t stride = 1;
    for (int32_t d = shape->rank - 1; d >= 0; --d) {
        out_sight->axes[d] = (pieces){1, {shape->extent[d]}, {stride}};
        stride *= shape->extent[d];
    }
}

// Puts a piece in front of the others; it is one with the first of them where they lie evenly.
static bool push_front(pieces *axis, int64_t extent, int64_t stride) {
    if (extent == 1 && axis->count > 0) {
        return true;
    }
    if (axis->count > 0 && (axis->extent[0] == 1 || stride == axis->stride[0] * axis->extent[0])) {
        axis->stride[0] = axis->extent[0] == 1 ? stride : axis->stride[0];
        axis->extent[0] *= extent;
        return true;
    }
    if (axis->count == PIECES_MAX) {
        return false;
    }
    memmove(axis->extent + 1, axis->extent, (size_t)axis->count * sizeof axis->extent[0]);
    memmove(axis->stride + 1, axis->stride, (size_t)axis->count * sizeof axis->stride[0]);
    axis->extent[0] = extent;
    axis->stride[0] = stride;
    axis->count += 1;
    return true;
}

static int64_t get_extent(const sight *s, int32_t d) {
    int64_t extent = 1;
    for (int32_t i = 0; i < s->axes[d].count; ++i) {
        extent *= s->axes[d].extent[i];
    }
    return extent;
}

// Extents of the new shape are cut from the old pieces, last ones first.
static bool reshape(sight *s, const rondo_shape *shape) {
    int64_t extent[RONDO_RANK_MAX * PIECES_MAX], stride[RONDO_RANK_MAX * PIECES_MAX];
    int32_t at = 0;
    for (int32_t d = 0; d < s->rank; ++d) {
        for (int32_t i = 0; i < s->axes[d].count; ++i) {
            extent[at] = s->axes[d].extent[i];
            stride[at++] = s->axes[d].stride[i];
        }
    }
    sight made = {.offset = s->offset, .factor = s->factor, .rank = shape->rank};
    int64_t left = 1, step = 1;  // of the piece that is being cut
    for (int32_t d = shape->rank - 1; d >= 0; --d) {
        pieces *axis = &made.axes[d];
        int64_t wanted = shape->extent[d];
        if (wanted <= 0) {
            return false;
        }
        while (wanted > 1) {
            while (left == 1 && at > 0) {
                left = extent[--at];
                step = stride[at];
            }
            const int64_t cut = left < wanted ? left : wanted;
            if (cut <= 1 || left % cut != 0 || wanted % cut != 0 || !push_front(axis, cut, step)) {
                return false;
            }
            wanted /= cut;
            left /= cut;
            step *= cut;
        }
        if (axis->count == 0) {
            (void)push_front(axis, 1, 0);
        }
    }
    *s = made;
    return true;
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

// Which axis it is; it must be of one piece.
static bool get_axis(const sight *view, int64_t axis, int32_t *out_axis) {
    *out_axis = (int32_t)(axis < 0 ? axis + view->rank : axis);
    return axis >= -view->rank && axis < view->rank && view->axes[*out_axis].count == 1;
}

static bool turn(sight *view, const rondo__node *node) {
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    const sight from = *view;
    if (perm != NULL && count != (size_t)view->rank) {
        return false;
    }
    for (int32_t d = 0; d < view->rank; ++d) {
        const int64_t source = perm != NULL ? perm[d] : view->rank - 1 - d;
        if (source < 0 || source >= view->rank) {
            return false;
        }
        view->axes[d] = from.axes[source];
    }
    return true;
}

// One index of an axis.
static bool pick(sight *view, const rondo_program *program, const rondo__node *node,
                 const rondo_shape *result) {
    int32_t axis;
    int64_t index;
    if (!get_axis(view, rondo__op_get_int(&node->op, "axis", 0), &axis) ||
        !get_number(program, node->inputs[1], 0, &index) ||
        rondo_shape_get_count(&program->values[node->inputs[1]].constant.shape) != 1) {
        return false;
    }
    index = index < 0 ? index + view->axes[axis].extent[0] : index;
    if (index < 0 || index >= view->axes[axis].extent[0]) {
        return false;
    }
    view->offset += index * view->axes[axis].stride[0];
    view->axes[axis].extent[0] = 1;
    return reshape(view, result);
}

static bool split(sight *view, const rondo_program *program, const rondo__node *node,
                  int32_t value) {
    int32_t axis;
    rondo_shape shape;
    if (!get_axis(view, rondo__op_get_int(&node->op, "axis", 0), &axis)) {
        return false;
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] < 0 || !rondo__program_get_shape(program, node->outputs[i], &shape) ||
            shape.rank != view->rank) {
            return false;
        }
        if (node->outputs[i] == value) {
            view->axes[axis].extent[0] = shape.extent[axis];
            return true;
        }
        view->offset += shape.extent[axis] * view->axes[axis].stride[0];
    }
    return false;
}

// Ranges of step 1; their lengths are those of the result.
static bool slice(sight *view, const rondo_program *program, const rondo__node *node,
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
        start = start < 0 ? start + view->axes[axis].extent[0] : start;
        if (start < 0 || start + result->extent[axis] > view->axes[axis].extent[0]) {
            return false;
        }
        view->offset += start * view->axes[axis].stride[0];
    }
    for (int32_t d = 0; d < view->rank; ++d) {
        if (get_extent(view, d) != result->extent[d]) {
            view->axes[d].extent[0] = result->extent[d];  // of one piece: it was sliced
        }
    }
    return get_number(program, starts, 0, &start);
}

// Extents of 1 become larger, and new ones come in front.
static bool expand(sight *view, const rondo_shape *result) {
    const sight from = *view;
    const int32_t added = result->rank - from.rank;
    if (added < 0) {
        return false;
    }
    view->rank = result->rank;
    for (int32_t d = 0; d < result->rank; ++d) {
        const int64_t extent = d >= added ? get_extent(&from, d - added) : 1;
        if (d >= added && extent == result->extent[d]) {
            view->axes[d] = from.axes[d - added];
        } else if (extent == 1) {
            view->axes[d] = (pieces){1, {result->extent[d]}, {0}};
        } else {
            return false;
        }
    }
    return true;
}

// The operand of a Mul or Div by a number.
static bool scale(sight *view, const rondo_program *program, const rondo__node *node,
                  size_t operand, const rondo_shape *result) {
    float number;
    if (!rondo__match_scalar(program, node->inputs[1 - operand], &number)) {
        return false;
    }
    const bool is_div = rondo__node_is(node, RONDO__OP_Div);
    if (is_div && (operand != 0 || number == 0.0f)) {
        return false;
    }
    view->factor = is_div ? view->factor / number : view->factor * number;
    return reshape(view, result);
}

static bool is_scaling(const rondo_program *program, const rondo__node *node, size_t *out_operand) {
    float number;
    const bool is_it = rondo__node_is(node, RONDO__OP_Mul) || rondo__node_is(node, RONDO__OP_Div);
    *out_operand = is_it && rondo__match_scalar(program, node->inputs[0], &number) ? 1 : 0;
    return is_it;
}

// What a trace looks through beside moves.
typedef struct trace_options {
    bool factors, repeats;
    int32_t axis;  // from the end, that may repeat each element
} trace_options;

// Lets the view go through the node that makes `value`. False: it cannot.
static bool apply(sight *view, const rondo_program *program, const rondo__node *node, int32_t value,
                  const trace_options *options) {
    rondo_shape result;
    size_t operand;
    if (!rondo__program_get_shape(program, value, &result)) {
        return false;
    }
    if ((node->op.def->flags & RONDO__OP_VIEW) != 0) {
        return node->outputs[0] == value && reshape(view, &result);
    }
    if (rondo__node_is(node, RONDO__OP_Transpose)) {
        return turn(view, node);
    }
    if (rondo__node_is(node, RONDO__OP_Gather)) {
        return pick(view, program, node, &result);
    }
    if (rondo__node_is(node, RONDO__OP_Split)) {
        return split(view, program, node, value);
    }
    if (rondo__node_is(node, RONDO__OP_Slice)) {
        return slice(view, program, node, &result);
    }
    if (rondo__node_is(node, RONDO__OP_Expand)) {
        return options->repeats && expand(view, &result);
    }
    return options->factors && is_scaling(program, node, &operand) &&
           scale(view, program, node, operand, &result);
}

// Whether the axis is one of elements that each stand several times in turn.
static bool is_repeating(const pieces *axis) {
    return (axis->count == 1 && axis->extent[0] > 1 && axis->stride[0] == 0) ||
           (axis->count == 2 && axis->stride[1] == 0);
}

// False: some extent has still several pieces.
static bool finish(const sight *view, int32_t base, const trace_options *options,
                   int64_t *out_repeats, rondo__view *out_view) {
    *out_view = (rondo__view){
        .base = base, .offset = view->offset, .rank = view->rank, .factor = view->factor};
    bool is_even = true;
    *out_repeats = 1;
    for (int32_t d = 0; d < view->rank; ++d) {
        const pieces *axis = &view->axes[d];
        out_view->extent[d] = axis->extent[0];
        out_view->stride[d] = axis->stride[0];
        if (options->repeats && d == view->rank + options->axis && is_repeating(axis)) {
            *out_repeats = axis->extent[axis->count - 1];
            out_view->extent[d] = axis->count == 2 ? axis->extent[0] : 1;
        } else {
            is_even = is_even && axis->count == 1;
        }
    }
    return is_even;
}

static void trace(const rondo_program *program, int32_t value, const trace_options *options,
                  int64_t *out_repeats, rondo__view *out_view) {
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
        if (node->inputs[operand] < 0 ||
            !rondo__program_get_shape(program, node->inputs[operand], &shape)) {
            break;
        }
        sight probe;
        make_dense(&shape, &probe);
        if (!apply(&probe, program, node, values[moves], options)) {
            break;
        }
        values[moves + 1] = node->inputs[operand];
    }
    // From as far away as all moves still fit in strides.
    for (int first = moves; first >= 0; --first) {
        (void)rondo__program_get_shape(program, values[first], &shape);
        sight view;
        make_dense(&shape, &view);
        int at = first;
        while (at > 0 &&
               apply(&view, program, &program->nodes[program->values[values[at - 1]].producer],
                     values[at - 1], options)) {
            --at;
        }
        if (at == 0 && finish(&view, values[first], options, out_repeats, out_view)) {
            return;
        }
    }
}

void rondo__view_trace(const rondo_program *program, int32_t value, bool take_factors,
                       rondo__view *out_view) {
    const trace_options options = {.factors = take_factors};
    int64_t repeats;
    trace(program, value, &options, &repeats, out_view);
}

void rondo__view_trace_repeats(const rondo_program *program, int32_t value, bool take_factors,
                               int32_t axis, int64_t *out_repeats, rondo__view *out_view) {
    const trace_options options = {.factors = take_factors, .repeats = true, .axis = axis};
    trace(program, value, &options, out_repeats, out_view);
}

bool rondo__view_is_whole(const rondo_program *program, const rondo__view *view) {
    rondo_shape base;
    int64_t count = 1;
    bool is_it = rondo__program_get_shape(program, view->base, &base) && view->offset == 0;
    for (int32_t d = view->rank - 1; d >= 0; --d) {
        is_it = is_it && (view->extent[d] == 1 || view->stride[d] == count);
        count *= view->extent[d];
    }
    return is_it && count == rondo_shape_get_count(&base);
}
