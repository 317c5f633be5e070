// op/infer.c — running an op's shape inference behind the checks that all ops share.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/kinds.h"
#include "op/op.h"

rondo_status rondo__infer_needs_value(rondo__infer *infer, size_t input) {
    if (input < 32) {
        infer->needed_inputs |= UINT32_C(1) << input;
    }
    for (size_t i = 0; i < infer->output_count; ++i) {
        infer->outputs[i].is_shape_known = false;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_needs_bound(rondo__infer *infer, size_t input, size_t by, int32_t axis) {
    infer->has_bound = true;
    infer->bound_input = (uint8_t)input;
    infer->bound_by = (uint8_t)by;
    infer->bound_axis = (uint8_t)axis;
    return rondo__infer_needs_value(infer, input);
}

rondo_status rondo__infer_set_data_dependent(rondo__infer *infer, rondo_dtype output_dtype) {
    infer->is_data_dependent = true;
    for (size_t i = 0; i < infer->output_count; ++i) {
        infer->outputs[i].is_shape_known = false;
    }
    if (infer->output_count > 0) {
        infer->outputs[0].dtype = output_dtype;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_set_output(rondo__infer *infer, size_t output, rondo_dtype dtype,
                                     const rondo_shape *shape) {
    if (output >= infer->output_count) {
        return RONDO_STATUS_OK;  // an optional output that the model does not name
    }
    size_t bytes = 0;
    if (rondo_shape_get_count(shape) < 0 ||
        !rondo__mul_size((size_t)rondo_shape_get_count(shape), rondo_dtype_get_bytes(dtype),
                         &bytes) ||
        bytes > (size_t)PTRDIFF_MAX) {
        char text[160];
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "output %zu would have shape %s, which is not a size of memory",
                             output, rondo_shape_format(shape, text, sizeof text));
    }
    infer->outputs[output].dtype = dtype;
    infer->outputs[output].is_shape_known = true;
    infer->outputs[output].shape = *shape;
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_set_partial(rondo__infer *infer, size_t output,
                                      const rondo_shape *shape) {
    if (output < infer->output_count && shape->rank >= 0 && shape->rank <= RONDO_RANK_MAX) {
        infer->outputs[output].is_rank_known = true;
        infer->outputs[output].shape = *shape;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_set_rank(rondo__infer *infer, size_t output, int64_t rank) {
    rondo_shape shape = {.rank = -1};
    if (rank >= 0 && rank <= RONDO_RANK_MAX) {
        shape.rank = (int32_t)rank;
    }
    for (int32_t d = 0; d < shape.rank; ++d) {
        shape.extent[d] = -1;
    }
    return rondo__infer_set_partial(infer, output, &shape);
}

bool rondo__infer_has_input(const rondo__infer *infer, size_t input) {
    return input < infer->input_count && infer->inputs[input].dtype != RONDO_DTYPE_NONE;
}

static rondo_status check_counts(const rondo__infer *infer) {
    const rondo__op_def *def = infer->op->def;
    if (def->input_max != RONDO_OP_ANY_COUNT && infer->input_count > def->input_max) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "has %zu inputs, but takes at most %d",
                             infer->input_count, def->input_max);
    }
    for (size_t i = 0; i < def->input_min; ++i) {
        if (!rondo__infer_has_input(infer, i)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu is missing; it is required", i);
        }
    }
    if (infer->output_count < def->output_min ||
        (def->output_max != RONDO_OP_ANY_COUNT && infer->output_count > def->output_max)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "names %zu outputs, but gives %d to %d",
                             infer->output_count, def->output_min, def->output_max);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__op_infer(rondo__infer *infer) {
    infer->needed_inputs = 0;
    infer->is_data_dependent = false;
    for (size_t i = 0; i < infer->output_count; ++i) {
        infer->outputs[i] = (rondo__tensor_info){0};
    }
    RETURN_IF_ERROR(check_counts(infer));
    RETURN_IF_ERROR(rondo__infer_check_kinds(infer));
    bool are_shapes_known = true;
    for (size_t i = 0; i < infer->input_count; ++i) {
        const rondo__tensor_info *input = &infer->inputs[i];
        if (input->dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        if (!input->is_shape_known) {
            are_shapes_known = false;
        } else if (rondo_shape_get_count(&input->shape) < 0) {
            char text[160];
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has the impossible shape %s", i,
                                 rondo_shape_format(&input->shape, text, sizeof text));
        }
    }
    if (!are_shapes_known || infer->op->def->infer == NULL) {
        infer->is_data_dependent = infer->op->def->infer == NULL;
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(infer->op->def->infer(infer));
    return rondo__infer_check_made_kinds(infer);
}
