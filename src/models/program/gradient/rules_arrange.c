// program/gradient/rules_arrange.c — gradients of ops that move elements.
//
// Ops that have an op the other way round use it. For all others the op is applied to 0, 1, 2, ...:
// that tells where each element of y came from, and dy is added up there. Plans fold those numbers.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/memory.h"
#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)
#define MADE rondo__gradient_output(call, 0)
#define DY (call->changes[0])

RULE(rule_reshape) {
    rondo__gradient_give(g, call, 0, rondo__gradient_reshape_like(g, DY, FIRST));
}

RULE(rule_transpose) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    int64_t back[RONDO_RANK_MAX] = {0};
    size_t count = 0;
    const int64_t *order = rondo__op_get_ints(&call->op, "perm", &count);
    for (int32_t d = 0; d < rank; ++d) {
        const int64_t from = order != NULL && (size_t)d < count ? order[d] : rank - 1 - d;
        if (from >= 0 && from < rank) {
            back[from] = d;
        }
    }
    if (rank >= 0) {
        rondo__gradient_give(g, call, 0, rondo__gradient_transpose(g, DY, back, rank));
    }
}

// Repeats the node on the numbers of its positions, and adds dy up there.
RULE(rule_by_places) {
    rondo__op op = {0};
    int32_t places = RONDO__VALUE_NONE;
    int32_t inputs[8];
    const int32_t numbers = rondo__gradient_count_up(g, FIRST);
    if (g->status != RONDO_STATUS_OK || call->input_count > 8) {
        return;
    }
    memcpy(inputs, call->inputs, call->input_count * sizeof *inputs);
    inputs[0] = numbers;
    g->status = rondo__program_add_value(g->program, "places", &places);
    if (g->status == RONDO_STATUS_OK) {
        g->status = rondo__op_copy(&call->op, &op);
    }
    if (g->status == RONDO_STATUS_OK) {
        rondo__free(op.name);
        op.name = NULL;
        g->status = rondo__program_add_node(g->program, &op, inputs, call->input_count,
                                            call->input_count, &places, 1);
    }
    rondo__op_deinit(&op);
    rondo__gradient_give(g, call, 0, rondo__gradient_scatter_flat(g, places, DY, FIRST, false));
}

// ---- Slice and Pad ------------------------------------------------------------------------------

typedef struct slice_box {
    int32_t count;
    int64_t starts[RONDO_RANK_MAX], ends[RONDO_RANK_MAX], axes[RONDO_RANK_MAX];
    int64_t steps[RONDO_RANK_MAX];
} slice_box;

static bool read_list(rondo__gradient *g, const rondo__gradient_call *call, size_t input,
                      const char *name, int32_t count, int64_t first, int64_t by,
                      int64_t *out_list) {
    size_t known = 0;
    const int64_t *list = rondo__op_get_ints(&call->op, name, &known);
    for (int32_t i = 0; i < count; ++i) {
        out_list[i] = list != NULL && (size_t)i < known ? list[i] : first + by * i;
    }
    const int32_t value = rondo__gradient_input(call, input);
    return value < 0 || rondo__gradient_read_ints(g, value, out_list, RONDO_RANK_MAX) == count;
}

static bool read_slice(rondo__gradient *g, const rondo__gradient_call *call, slice_box *out_box) {
    size_t listed = 0;
    (void)rondo__op_get_ints(&call->op, "starts", &listed);
    const int32_t starts = rondo__gradient_input(call, 1);
    out_box->count = starts >= 0
                         ? rondo__gradient_read_ints(g, starts, out_box->starts, RONDO_RANK_MAX)
                         : (int32_t)listed;
    const int32_t count = out_box->count;
    return count > 0 && count <= RONDO_RANK_MAX &&
           read_list(g, call, 1, "starts", count, 0, 0, out_box->starts) &&
           read_list(g, call, 2, "ends", count, 0, 0, out_box->ends) &&
           read_list(g, call, 3, "axes", count, 0, 1, out_box->axes) &&
           read_list(g, call, 4, "steps", count, 1, 0, out_box->steps);
}

// How much Pad puts back, [2 * rank]; false where numbers are missing, or steps are not 1.
static bool find_slice_pads(rondo__gradient *g, const rondo__gradient_call *call, int32_t rank,
                            int64_t *out_pads) {
    slice_box box = {0};
    if (rank < 0 || !read_slice(g, call, &box)) {
        return false;
    }
    memset(out_pads, 0, 2 * (size_t)rank * sizeof *out_pads);
    for (int32_t i = 0; i < box.count; ++i) {
        const int64_t axis = box.axes[i] < 0 ? box.axes[i] + rank : box.axes[i];
        const int64_t extent = rondo__gradient_extent(g, FIRST, (int32_t)axis);
        if (box.steps[i] != 1 || extent < 0) {
            return false;
        }
        int64_t start = box.starts[i] < 0 ? box.starts[i] + extent : box.starts[i];
        int64_t end = box.ends[i] < 0 ? box.ends[i] + extent : box.ends[i];
        start = start < 0 ? 0 : start > extent ? extent : start;
        end = end > extent ? extent : end < start ? start : end;
        out_pads[axis] = start;
        out_pads[axis + rank] = extent - end;
    }
    return true;
}

RULE(rule_slice) {
    int64_t pads[2 * RONDO_RANK_MAX];
    const int32_t rank = rondo__gradient_rank(g, FIRST);
    if (!find_slice_pads(g, call, rank, pads)) {
        rule_by_places(g, call);
        return;
    }
    rondo__gradient_give(g, call, 0, E("Pad", DY, rondo__gradient_ints(g, pads, 2 * (size_t)rank)));
}

RULE(rule_pad) {
    const char *mode = rondo__op_get_string(&call->op, "mode", "constant");
    if (strcmp(mode, "constant") != 0) {
        rule_by_places(g, call);
        return;
    }
    // Pads the other way round cut off what was put on.
    int32_t pads = rondo__gradient_input(call, 1);
    if (pads < 0) {
        size_t count = 0;
        const int64_t *list = rondo__op_get_ints(&call->op, "pads", &count);
        pads = rondo__gradient_ints(g, list, count);
    }
    const int32_t back = E("Neg", pads);
    const int32_t axes = rondo__gradient_input(call, 3);
    const int32_t change =
        axes >= 0 ? E("Pad", DY, back, RONDO__VALUE_NONE, axes) : E("Pad", DY, back);
    rondo__gradient_give(g, call, 0, change);
    if (rondo__gradient_wants(g, call, 2)) {
        // The border takes the gradient that the inside does not take.
        const int32_t all = rondo__gradient_set_int(g, E("ReduceSum", DY), "keepdims", 0);
        const int32_t inside = rondo__gradient_set_int(g, E("ReduceSum", change), "keepdims", 0);
        const int32_t value = call->inputs[2];
        rondo__gradient_give(g, call, 2,
                             rondo__gradient_reshape_like(g, E("Sub", all, inside), value));
    }
}

// ---- Concat, Split, Expand ----------------------------------------------------------------------

RULE(rule_concat) {
    enum { INPUTS_MAX = 1024 };
    const int64_t axis = rondo__op_get_int(&call->op, "axis", 1);
    int32_t sizes[INPUTS_MAX];
    int32_t parts[INPUTS_MAX];
    if (call->input_count > INPUTS_MAX) {
        rondo__gradient_refuse(g, call, "more than 1024 inputs");
        return;
    }
    if (call->input_count == 1) {
        rondo__gradient_give(g, call, 0, DY);
        return;
    }
    // An input without elements may have any shape, and has no part of it.
    size_t full[INPUTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < call->input_count; ++i) {
        const rondo__tensor_info *info = rondo__gradient_info(g, call->inputs[i]);
        if (!info->is_shape_known || rondo_shape_get_count(&info->shape) > 0) {
            full[count] = i;
            sizes[count++] = rondo__gradient_axis_size(g, call->inputs[i], axis);
        }
    }
    if (count == 0) {
        return;
    }
    const int32_t split =
        rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", sizes, count), "axis", 0);
    const int32_t inputs[2] = {DY, split};
    rondo__gradient_emit_many(g, "Split", inputs, 2, parts, count);
    (void)rondo__gradient_set_int(g, parts[0], "axis", axis);
    for (size_t i = 0; i < count; ++i) {
        rondo__gradient_give(g, call, full[i], parts[i]);
    }
}

RULE(rule_split) {
    enum { OUTPUTS_MAX = 1024 };
    int32_t parts[OUTPUTS_MAX];
    if (call->output_count > OUTPUTS_MAX) {
        rondo__gradient_refuse(g, call, "more than 1024 outputs");
        return;
    }
    for (size_t i = 0; i < call->output_count; ++i) {
        const int32_t output = rondo__gradient_output(call, i);
        if (output < 0) {
            rondo__gradient_refuse(g, call, "an output that is left out");
            return;
        }
        parts[i] =
            call->changes[i] >= 0 ? call->changes[i] : rondo__gradient_fill_like(g, 0.0, output);
    }
    const int32_t whole = rondo__gradient_emit(g, "Concat", parts, call->output_count);
    rondo__gradient_give(
        g, call, 0,
        rondo__gradient_set_int(g, whole, "axis", rondo__op_get_int(&call->op, "axis", 0)));
}

RULE(rule_expand) {
    rondo__gradient_give(g, call, 0, rondo__gradient_sum_to(g, DY, FIRST));
}

// ---- by index -----------------------------------------------------------------------------------

RULE(rule_gather) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const int32_t index = rondo__gradient_input(call, 1);
    const int32_t index_rank = rondo__gradient_need_rank(g, call, index);
    int64_t axis = rondo__op_get_int(&call->op, "axis", 0);
    axis = axis < 0 ? axis + rank : axis;
    if (g->status != RONDO_STATUS_OK || axis < 0 || axis >= rank) {
        return;
    }
    // Rows are added to where they came from, in their order. Another axis comes to the front.
    const int32_t tuples = E("Unsqueeze", index, rondo__gradient_int(g, -1));
    int32_t change = DY;
    int32_t target = rondo__gradient_fill_like(g, 0.0, FIRST);
    int64_t order[2 * RONDO_RANK_MAX];
    int64_t back[RONDO_RANK_MAX];
    if (axis > 0) {
        const int32_t total = rank - 1 + index_rank;
        for (int32_t d = 0; d < total; ++d) {
            order[d] = d < index_rank ? axis + d : d < index_rank + axis ? d - index_rank : d;
        }
        change = rondo__gradient_transpose(g, change, order, total);
        for (int32_t d = 0; d < rank; ++d) {
            order[d] = d == 0 ? axis : d <= axis ? d - 1 : d;
            back[order[d]] = d;
        }
        target = rondo__gradient_transpose(g, target, order, rank);
    }
    int32_t sums =
        rondo__gradient_set_string(g, E("ScatterND", target, tuples, change), "reduction", "add");
    sums = axis > 0 ? rondo__gradient_transpose(g, sums, back, rank) : sums;
    rondo__gradient_give(g, call, 0, sums);
}

RULE(rule_gather_elements) {
    const int32_t zeros = rondo__gradient_fill_like(g, 0.0, FIRST);
    const int32_t sums = E("ScatterElements", zeros, rondo__gradient_input(call, 1), DY);
    rondo__gradient_copy_attribute(g, sums, call, "axis");
    rondo__gradient_give(g, call, 0, rondo__gradient_set_string(g, sums, "reduction", "add"));
}

RULE(rule_gather_nd) {
    if (rondo__op_get_int(&call->op, "batch_dims", 0) != 0) {
        rule_by_places(g, call);
        return;
    }
    const int32_t zeros = rondo__gradient_fill_like(g, 0.0, FIRST);
    const int32_t sums = E("ScatterND", zeros, rondo__gradient_input(call, 1), DY);
    rondo__gradient_give(g, call, 0, rondo__gradient_set_string(g, sums, "reduction", "add"));
}

// For scatters that replace or add; `read` takes the written elements from dy.
static void give_scatter(rondo__gradient *g, const rondo__gradient_call *call, const char *write,
                         const char *read) {
    const char *reduction = rondo__op_get_string(&call->op, "reduction", "none");
    const int32_t index = rondo__gradient_input(call, 1);
    const int32_t updates = rondo__gradient_input(call, 2);
    const bool replaces = strcmp(reduction, "none") == 0;
    if (!replaces && strcmp(reduction, "add") != 0) {
        rondo__gradient_refuse(g, call, "attribute reduction other than none and add");
        return;
    }
    if (rondo__gradient_wants(g, call, 0)) {
        int32_t change = DY;
        if (replaces) {
            change = E(write, DY, index, rondo__gradient_fill_like(g, 0.0, updates));
            rondo__gradient_copy_attribute(g, change, call, "axis");
        }
        rondo__gradient_give(g, call, 0, change);
    }
    if (rondo__gradient_wants(g, call, 2)) {
        const int32_t change = E(read, DY, index);
        rondo__gradient_copy_attribute(g, change, call, "axis");
        rondo__gradient_give(g, call, 2, change);
    }
}

RULE(rule_scatter_elements) {
    give_scatter(g, call, "ScatterElements", "GatherElements");
}

RULE(rule_scatter_nd) {
    give_scatter(g, call, "ScatterND", "GatherND");
}

RULE(rule_top_k) {
    const int32_t index = rondo__gradient_take_output(g, call, 1, RONDO_DTYPE_I64);
    const int32_t zeros = rondo__gradient_fill_like(g, 0.0, FIRST);
    const int32_t sums =
        rondo__gradient_set_string(g, E("ScatterElements", zeros, index, DY), "reduction", "add");
    const int64_t axis = rondo__op_get_int(&call->op, "axis", -1);
    rondo__gradient_give(g, call, 0, rondo__gradient_set_int(g, sums, "axis", axis));
}

// ---- ops that are their own way back ------------------------------------------------------------

RULE(rule_trilu) {
    const int32_t k = rondo__gradient_input(call, 1);
    const int32_t change = k >= 0 ? E("Trilu", DY, k) : E("Trilu", DY);
    rondo__gradient_copy_attribute(g, change, call, "upper");
    rondo__gradient_give(g, call, 0, change);
}

RULE(rule_reverse_sequence) {
    const int32_t change = E("ReverseSequence", DY, rondo__gradient_input(call, 1));
    rondo__gradient_copy_attribute(g, change, call, "batch_axis");
    rondo__gradient_copy_attribute(g, change, call, "time_axis");
    rondo__gradient_give(g, call, 0, change);
}

RULE(rule_space_to_depth) {
    if (strcmp(rondo__op_get_string(&call->op, "mode", "DCR"), "DCR") != 0) {
        rule_by_places(g, call);
        return;
    }
    const int32_t change = E("DepthToSpace", DY);
    rondo__gradient_copy_attribute(g, change, call, "blocksize");
    rondo__gradient_give(g, call, 0, change);
}

RULE(rule_depth_to_space) {
    if (strcmp(rondo__op_get_string(&call->op, "mode", "DCR"), "DCR") != 0) {
        rule_by_places(g, call);
        return;
    }
    const int32_t change = E("SpaceToDepth", DY);
    rondo__gradient_copy_attribute(g, change, call, "blocksize");
    rondo__gradient_give(g, call, 0, change);
}

const rondo__gradient_row rondo__gradient_rows_arrange[] = {
    {RONDO__OP_Reshape, rule_reshape},
    {RONDO__OP_Flatten, rule_reshape},
    {RONDO__OP_Squeeze, rule_reshape},
    {RONDO__OP_Unsqueeze, rule_reshape},
    {RONDO__OP_Transpose, rule_transpose},
    {RONDO__OP_Slice, rule_slice},
    {RONDO__OP_Pad, rule_pad},
    {RONDO__OP_Concat, rule_concat},
    {RONDO__OP_Split, rule_split},
    {RONDO__OP_Expand, rule_expand},
    {RONDO__OP_Tile, rule_by_places},
    {RONDO__OP_Gather, rule_gather},
    {RONDO__OP_GatherElements, rule_gather_elements},
    {RONDO__OP_GatherND, rule_gather_nd},
    {RONDO__OP_ScatterElements, rule_scatter_elements},
    {RONDO__OP_Scatter, rule_scatter_elements},
    {RONDO__OP_ScatterND, rule_scatter_nd},
    {RONDO__OP_TopK, rule_top_k},
    {RONDO__OP_Trilu, rule_trilu},
    {RONDO__OP_ReverseSequence, rule_reverse_sequence},
    {RONDO__OP_SpaceToDepth, rule_space_to_depth},
    {RONDO__OP_DepthToSpace, rule_depth_to_space},
    {RONDO__OP_Compress, rule_by_places},
    {RONDO__OP_Shape, NULL},
    {RONDO__OP_Size, NULL},
    {RONDO__OP_ConstantOfShape, NULL},
    {RONDO__OP_EyeLike, NULL},
    {RONDO__OP_NonZero, NULL},
    {RONDO__OP_OneHot, NULL},
    {RONDO__OP_Range, NULL},
    {RONDO__OP_Constant, NULL},
    {RONDO__OP_NONE, NULL},
};
