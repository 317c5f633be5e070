// op/arrange/slice.c — see slice.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/arrange/slice.h"

#include <string.h>

#include "base/error.h"
#include "op/support.h"

// The bounds as lists of numbers: starts, ends, axes, steps.
typedef struct bound_lists {
    int64_t values[RONDO__SLICE_LISTS][RONDO_RANK_MAX];
    size_t counts[RONDO__SLICE_LISTS];
    bool is_given[RONDO__SLICE_LISTS];
} bound_lists;

static rondo_status read_attributes(const rondo__op *op, bound_lists *out) {
    static const char *const names[3] = {"starts", "ends", "axes"};
    for (size_t i = 0; i < 3; ++i) {
        const int64_t *values = rondo__op_get_ints(op, names[i], &out->counts[i]);
        out->is_given[i] = values != NULL;
        if (out->counts[i] > RONDO_RANK_MAX || (i < 2 && values == NULL)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s is missing or too long", names[i]);
        }
        if (out->counts[i] > 0) {
            memcpy(out->values[i], values, out->counts[i] * sizeof(int64_t));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_inputs(const rondo__op *op, const rondo_tensor *const *lists,
                                bound_lists *out) {
    static const char *const names[RONDO__SLICE_LISTS] = {"starts", "ends", "axes", "steps"};
    for (size_t i = 0; i < RONDO__SLICE_LISTS; ++i) {
        if (lists[i] != NULL) {
            RETURN_IF_ERROR(rondo__op_read_ints(op, names[i], lists[i], RONDO_RANK_MAX,
                                                out->values[i], &out->counts[i]));
            out->is_given[i] = true;
        }
    }
    return RONDO_STATUS_OK;
}

static int64_t clamp(int64_t value, int64_t lowest, int64_t highest) {
    return value < lowest ? lowest : value > highest ? highest : value;
}

// Cuts one axis of the slice, whose strides are those of x so far.
static void cut_axis(rondo__slice *slice, int32_t axis, int64_t first, int64_t end, int64_t step) {
    const int64_t extent = slice->shape.extent[axis];
    const int64_t highest = step > 0 ? extent : extent - 1;
    // A start before the first element means the first, also when stepping back: so the standard
    // says, where NumPy takes nothing.
    first = clamp(first < 0 ? first + extent : first, 0, highest);
    end = clamp(end < 0 ? end + extent : end, step > 0 ? 0 : -1, highest);
    // The distance is at most the extent and the step's size at least 1.
    const int64_t distance = extent == 0 ? 0 : step > 0 ? end - first : first - end;
    const uint64_t size = step > 0 ? (uint64_t)step : UINT64_C(0) - (uint64_t)step;
    const int64_t count = distance <= 0 ? 0 : (int64_t)(((uint64_t)distance - 1) / size + 1);
    slice->shape.extent[axis] = count;
    slice->offset += count > 0 ? first * slice->stride[axis] : 0;
    // A step beyond the extent is never taken, and may be too large to multiply.
    slice->stride[axis] *= count > 1 ? step : 1;
}

rondo_status rondo__slice_init(const rondo__op *op, const rondo_shape *x,
                               const rondo_tensor *const lists[RONDO__SLICE_LISTS],
                               rondo__slice *out_slice) {
    bound_lists bounds = {0};
    RETURN_IF_ERROR(op->opset < 10 ? read_attributes(op, &bounds)
                                   : read_inputs(op, lists, &bounds));
    const size_t count = bounds.counts[0];
    for (size_t i = 1; i < RONDO__SLICE_LISTS; ++i) {
        if (bounds.is_given[i] && bounds.counts[i] != count) {
            return RONDO_OP_FAIL(op, BAD_DATA, "starts, ends, axes and steps must be equally long");
        }
    }
    if (!bounds.is_given[2] && count > (size_t)x->rank) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%zu starts are given for rank %d", count, x->rank);
    }
    rondo__slice slice = {.shape = *x};
    rondo__shape_get_strides(x, slice.stride);
    uint32_t seen = 0;
    for (size_t i = 0; i < count; ++i) {
        int32_t axis = (int32_t)i;
        if (bounds.is_given[2]) {
            RETURN_IF_ERROR(rondo__op_resolve_axis(op, bounds.values[2][i], x->rank, &axis));
        }
        const int64_t step = bounds.is_given[3] ? bounds.values[3][i] : 1;
        if (step == 0 || (seen >> axis & 1u) != 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "axis %d has step 0 or is given twice", axis);
        }
        seen |= 1u << axis;
        cut_axis(&slice, axis, bounds.values[0][i], bounds.values[1][i], step);
    }
    if (rondo_shape_get_count(&slice.shape) == 0) {
        slice.offset = 0;
    }
    *out_slice = slice;
    return RONDO_STATUS_OK;
}

rondo_status rondo__slice_init_known(const rondo__op *op, const rondo__tensor_info *inputs,
                                     size_t input_count, rondo__slice *out_slice) {
    const rondo_tensor *lists[RONDO__SLICE_LISTS] = {NULL};
    for (size_t i = 0; i < RONDO__SLICE_LISTS; ++i) {
        if (i + 1 >= input_count || inputs[i + 1].dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        lists[i] = inputs[i + 1].constant;
        if (lists[i] == NULL) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    return rondo__slice_init(op, &inputs[0].shape, lists, out_slice);
}
