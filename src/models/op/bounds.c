// op/bounds.c — see bounds.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/bounds.h"

bool rondo__bound_axis(const rondo__bounding *b, rondo__op_bound *out_bound) {
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

bool rondo__op_get_bound(const rondo__op *op, const rondo__tensor_info *inputs, size_t input_count,
                         size_t output, rondo__op_bound *out_bound) {
    const rondo__bounding b = {op, inputs, input_count, output};
    bool is_known = op->def->bound != NULL && input_count >= op->def->input_min;
    for (size_t i = 0; i < input_count && is_known; ++i) {
        is_known = inputs[i].dtype == RONDO_DTYPE_NONE || inputs[i].is_shape_known;
    }
    return is_known && op->def->bound(&b, out_bound) &&
           rondo_shape_get_count(&out_bound->shape) >= 0;
}
