// op/arrange/op_view.c — ops that only rename the extents of their input: Dropout (inference),
// Flatten, Identity, Reshape, Squeeze, Unsqueeze. A plan may give output 0 the input's memory
// (RONDO__OP_VIEW); the references copy.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/draws.h"
#include "op/op.h"
#include "op/support.h"
#include "tensor/elements.h"

static rondo_status compute_view(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    size_t bytes = rondo_tensor_get_bytes(input);
    if (bytes > 0) {
        memcpy(output, input->data, bytes);
    }
    return RONDO_STATUS_OK;
}

// Identity passes sequences and optionals on, too.
static rondo_status infer_identity(rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    return rondo__dtype_is_nested(dtype) ? rondo__infer_set_data_dependent(infer, dtype)
                                         : rondo__infer_like_input(infer);
}

static rondo_status compute_identity(rondo__compute *compute) {
    rondo_tensor kept;
    if (!rondo__dtype_is_nested(compute->inputs[0]->dtype)) {
        return compute_view(compute);
    }
    RETURN_IF_ERROR(rondo__tensor_keep(compute->inputs[0], &kept));
    return rondo__compute_take_output(compute, 0, &kept);
}

// ---- Reshape ----------------------------------------------------------------------------------

static rondo_status infer_reshape(rondo__infer *infer) {
    const rondo__tensor_info *x = &infer->inputs[0];
    infer->outputs[0].dtype = x->dtype;
    if (infer->inputs[1].constant == NULL) {
        (void)rondo__infer_needs_value(infer, 1);
        return rondo__infer_set_rank(infer, 0, rondo_shape_get_count(&infer->inputs[1].shape));
    }
    bool allows_zero = rondo__op_get_int(infer->op, "allowzero", 0) != 0;
    int64_t wanted[RONDO_RANK_MAX];
    size_t rank = 0;
    RETURN_IF_ERROR(rondo__op_read_ints(infer->op, "the new shape", infer->inputs[1].constant,
                                        RONDO_RANK_MAX, wanted, &rank));
    rondo_shape shape = {.rank = (int32_t)rank};
    int64_t known = 1;
    int32_t open = -1;
    for (int32_t d = 0; d < shape.rank; ++d) {
        int64_t extent = wanted[d];
        if (extent == 0 && !allows_zero) {
            if (d >= x->shape.rank) {
                return RONDO_OP_FAIL(infer->op, BAD_DATA,
                                     "extent %d is to be copied from an input of rank %d", d,
                                     x->shape.rank);
            }
            extent = x->shape.extent[d];
        }
        if (extent == -1 && open < 0) {
            open = d;
            continue;
        }
        if (extent < 0) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "extent %d of the new shape is %lld", d,
                                 (long long)extent);
        }
        if (!rondo__mul_i64(known, extent, &known)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "the new shape is too large");
        }
        shape.extent[d] = extent;
    }
    int64_t count = rondo_shape_get_count(&x->shape);
    if (open >= 0 && known > 0 && count % known == 0) {
        shape.extent[open] = count / known;
    } else if (open >= 0 || known != count) {
        char from[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "%s has %lld elements, which do not fill the new shape",
                             rondo_shape_format(&x->shape, from, sizeof from), (long long)count);
    }
    return rondo__infer_set_output(infer, 0, x->dtype, &shape);
}

// ---- Squeeze, Unsqueeze -----------------------------------------------------------------------

// The axes, from the attribute (up to opset 12) or input 1. *out_is_known false: the input's value
// is not known yet.
static rondo_status read_axes(rondo__infer *infer, int64_t *out_axes, size_t *out_count,
                              bool *out_is_known) {
    *out_count = 0;
    *out_is_known = true;
    if (infer->op->opset < 13) {
        const int64_t *axes = rondo__op_get_ints(infer->op, "axes", out_count);
        if (*out_count > RONDO_RANK_MAX) {
            return rondo__op_fail_unsupported(infer->op, "attribute axes of more than 8 entries");
        }
        if (*out_count > 0) {
            memcpy(out_axes, axes, *out_count * sizeof(int64_t));
        }
        return RONDO_STATUS_OK;
    }
    if (!rondo__infer_has_input(infer, 1)) {
        return RONDO_STATUS_OK;
    }
    if (infer->inputs[1].constant == NULL) {
        *out_is_known = false;
        return rondo__infer_needs_value(infer, 1);
    }
    return rondo__op_read_ints(infer->op, "axes", infer->inputs[1].constant, RONDO_RANK_MAX,
                               out_axes, out_count);
}

static rondo_status infer_squeeze(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    int64_t axes[RONDO_RANK_MAX] = {0};
    size_t count = 0;
    bool is_known = true;
    RETURN_IF_ERROR(read_axes(infer, axes, &count, &is_known));
    if (!is_known) {
        return RONDO_STATUS_OK;
    }
    uint32_t mask = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axes(infer->op, axes, count, x->rank, &mask));
    rondo_shape shape = {0};
    for (int32_t d = 0; d < x->rank; ++d) {
        bool is_removed = count == 0 ? x->extent[d] == 1 : (mask >> d & 1u) != 0;
        if (!is_removed) {
            shape.extent[shape.rank++] = x->extent[d];
        } else if (x->extent[d] != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "axis %d has extent %lld, not 1", d,
                                 (long long)x->extent[d]);
        }
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status infer_unsqueeze(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    int64_t axes[RONDO_RANK_MAX] = {0};
    size_t count = 0;
    bool is_known = true;
    RETURN_IF_ERROR(read_axes(infer, axes, &count, &is_known));
    if (!is_known) {
        return RONDO_STATUS_OK;
    }
    rondo_shape shape = {.rank = x->rank + (int32_t)count};
    if (shape.rank > RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(infer->op, "result of rank above 8");
    }
    uint32_t mask = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axes(infer->op, axes, count, shape.rank, &mask));
    int32_t from = 0;
    for (int32_t d = 0; d < shape.rank; ++d) {
        shape.extent[d] = (mask >> d & 1u) != 0 ? 1 : x->extent[from++];
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

// ---- Flatten ----------------------------------------------------------------------------------

static rondo_status infer_flatten(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    int64_t axis = rondo__op_get_int(infer->op, "axis", 1);
    if (axis < -(int64_t)x->rank || axis > x->rank) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "axis %lld is outside [%d, %d]", (long long)axis,
                             -x->rank, x->rank);
    }
    int32_t split = (int32_t)(axis < 0 ? axis + x->rank : axis);
    rondo_shape shape = {.rank = 2};
    shape.extent[0] = rondo__shape_multiply(x, 0, split);
    shape.extent[1] = rondo__shape_multiply(x, split, x->rank);
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

// ---- Dropout ----------------------------------------------------------------------------------

// In inference the output is the input and the mask all true. Training draws random numbers;
// op_random.c has it. Since version 12 an input decides between the two; if it is left out, and in
// older versions, the executor does.
static rondo_status infer_dropout(rondo__infer *infer) {
    rondo_dtype mask = infer->op->opset < 10 ? infer->inputs[0].dtype : RONDO_DTYPE_BOOL;
    for (size_t i = 0; i < infer->output_count; ++i) {
        infer->outputs[i].dtype = i == 0 ? infer->inputs[0].dtype : mask;
    }
    bool is_training = infer->op->is_training;
    if (infer->op->opset >= 12 && rondo__infer_has_input(infer, 2)) {
        const rondo_tensor *training = infer->inputs[2].constant;
        if (training == NULL) {
            return rondo__infer_needs_value(infer, 2);
        }
        is_training = rondo_shape_get_count(&training->shape) == 1 &&
                      rondo__tensor_get_number(training, 0) != 0.0;
    }
    if (is_training && rondo__infer_has_input(infer, 1) && infer->inputs[1].constant == NULL) {
        return rondo__infer_needs_value(infer, 1);
    }
    RETURN_IF_ERROR(rondo__infer_like_input(infer));
    return rondo__infer_set_output(infer, 1, mask, &infer->inputs[0].shape);
}

static rondo_status compute_dropout(rondo__compute *compute) {
    const bool is_said = compute->op->opset >= 12 && rondo__compute_has_input(compute, 2);
    const bool is_training = is_said ? rondo_shape_get_count(&compute->inputs[2]->shape) == 1 &&
                                           rondo__tensor_get_number(compute->inputs[2], 0) != 0.0
                                     : compute->op->is_training;
    if (is_training) {
        return rondo__op_compute_dropout(compute);
    }
    RETURN_IF_ERROR(compute_view(compute));
    if (!rondo__compute_wants_output(compute, 1)) {
        return RONDO_STATUS_OK;
    }
    void *mask = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 1, &mask));
    const rondo__tensor_info *info = &compute->inferred[1];
    int64_t count = rondo_shape_get_count(&info->shape);
    size_t bytes = rondo_dtype_get_bytes(info->dtype);
    const uint8_t one = 1;
    for (int64_t i = 0; i < count; ++i) {
        rondo__convert_elements(RONDO_DTYPE_U8, &one, info->dtype,
                                (uint8_t *)mask + (size_t)i * bytes, 1);
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const axes_attributes[] = {"axes", NULL};
static const char *const axis_attributes[] = {"axis", NULL};
static const char *const reshape_attributes[] = {"allowzero", NULL};
static const char *const dropout_attributes[] = {"ratio", "seed", NULL};

#define ENTRY(op, first, last, inputs_min, inputs_max, outputs_max, attribute_list,              \
              infer_function, ...)                                                               \
    RONDO_OP_ROW(OP, op, first, last, inputs_min, inputs_max, 1, outputs_max,                    \
                 .flags = RONDO__OP_VIEW | RONDO__OP_NATIVE_HALF, .capture = RONDO__CAPTURE_YES, \
                 .attributes = attribute_list, .infer = infer_function, .compute = __VA_ARGS__)

const rondo__op_def rondo__op_table_view[] = {
    ENTRY(Dropout, 7, 28, 1, 3, 2, dropout_attributes, infer_dropout, compute_dropout,
          .wide_inputs = RONDO__INPUT_1),
    ENTRY(Flatten, 1, 28, 1, 1, 1, axis_attributes, infer_flatten, compute_view,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Identity, 1, 28, 1, 1, 1, no_attributes, infer_identity, compute_identity,
          .strings = RONDO__INPUT_0, .nested = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Reshape, 5, 28, 2, 2, 1, reshape_attributes, infer_reshape, compute_view,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Squeeze, 1, 12, 1, 1, 1, axes_attributes, infer_squeeze, compute_view,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Squeeze, 13, 28, 1, 2, 1, no_attributes, infer_squeeze, compute_view,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Unsqueeze, 1, 12, 1, 1, 1, axes_attributes, infer_unsqueeze, compute_view,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Unsqueeze, 13, 28, 2, 2, 1, no_attributes, infer_unsqueeze, compute_view,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    // A copy on the other side of a plan for processor and GPU.
    RONDO_OP_ROW(FUSED, Transfer, 1, RONDO_OP_OPSET_MAX, 1, 1, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .attributes = no_attributes, .infer = rondo__infer_like_input,
                 .compute = compute_view),
    {0},
};
