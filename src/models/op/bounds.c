// SPDX-License-Identifier: Apache-2.0

#include "op/bounds.h"

#include <string.h>

#include "base/checked.h"
#include "op/support.h"

typedef struct bounding {
    const rondo__op *op;
    const rondo__tensor_info *inputs;
    size_t input_count;
    size_t output;
} bounding;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Input 0 as the op sees it, with the axis that is counted: without the attribute a list.
static bool find_axis(const bounding *b, rondo__op_bound *out_bound) {
    const rondo_shape *x = &b->inputs[0].shape;
    *out_bound = (rondo__op_bound){.shape = {.rank = 1, .extent = {rondo_shape_get_count(x)}}};
    if (rondo__op_find(b->op, "axis") == NULL) {
        return true;
    }
    const int64_t axis = rondo__op_get_int(b->op, "axis", 0);
    out_bound->shape = *x;
    out_bound->axis = (int32_t)(axis < 0 ? axis + x->rank : axis);
    return out_bound->axis >= 0 && out_bound->axis < x->rank;
}

static bool bound_non_zero(const bounding *b, rondo__op_bound *out_bound) {
    const rondo_shape *x = &b->inputs[0].shape;
    // A scalar counts as a list of one.
    *out_bound = (rondo__op_bound){
        .shape = {.rank = 2, .extent = {x->rank > 0 ? x->rank : 1, rondo_shape_get_count(x)}},
        .axis = 1};
    return true;
}

static bool bound_compress(const bounding *b, rondo__op_bound *out_bound) {
    if (!find_axis(b, out_bound)) {
        return false;
    }
    int64_t *extent = &out_bound->shape.extent[out_bound->axis];
    *extent = least(*extent, b->inputs[1].shape.extent[0]);
    return true;
}

static bool bound_unique(const bounding *b, rondo__op_bound *out_bound) {
    enum { VALUES = 0, INVERSE = 2 };
    if (!find_axis(b, out_bound)) {
        return false;
    }
    if (b->output != VALUES) {
        const int64_t extent = out_bound->shape.extent[out_bound->axis];
        *out_bound = (rondo__op_bound){.shape = {.rank = 1, .extent = {extent}},
                                       .axis = b->output == INVERSE ? -1 : 0};
    }
    return true;
}

static bool bound_suppression(const bounding *b, rondo__op_bound *out_bound) {
    enum { MOST = 2 };  // boxes to keep of each class; absent: none
    const rondo_shape *scores = &b->inputs[1].shape;
    const bool has_most = MOST < b->input_count && b->inputs[MOST].dtype != RONDO_DTYPE_NONE;
    const rondo_tensor *most = has_most ? b->inputs[MOST].constant : NULL;
    int64_t kept = has_most ? scores->extent[2] : 0;
    if (most != NULL) {
        const int64_t wanted = rondo__tensor_get_int(most, 0);
        kept = least(kept, wanted < 0 ? 0 : wanted);
    }
    int64_t lines;
    *out_bound = (rondo__op_bound){.shape = {.rank = 2, .extent = {0, 3}}, .axis = 0};
    return rondo__mul_i64(scores->extent[0], scores->extent[1], &lines) &&
           rondo__mul_i64(lines, kept, &out_bound->shape.extent[0]);
}

bool rondo__op_get_bound(const rondo__op *op, const rondo__tensor_info *inputs, size_t input_count,
                         size_t output, rondo__op_bound *out_bound) {
    static const struct {
        const char *name;
        bool (*bound)(const bounding *, rondo__op_bound *);
    } rows[] = {{"Compress", bound_compress},
                {"NonMaxSuppression", bound_suppression},
                {"NonZero", bound_non_zero},
                {"Unique", bound_unique}};
    const bounding b = {op, inputs, input_count, output};
    bool is_known =
        (op->def->flags & RONDO__OP_DATA_SHAPED) != 0 && input_count >= op->def->input_min;
    for (size_t i = 0; i < input_count && is_known; ++i) {
        is_known = inputs[i].dtype == RONDO_DTYPE_NONE || inputs[i].is_shape_known;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && is_known; ++i) {
        if (op->def->domain[0] == '\0' && strcmp(op->def->name, rows[i].name) == 0) {
            return rows[i].bound(&b, out_bound) && rondo_shape_get_count(&out_bound->shape) >= 0;
        }
    }
    return false;
}
