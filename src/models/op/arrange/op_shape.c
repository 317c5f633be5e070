// op/arrange/op_shape.c — ops that make tensors from shapes and constants: Constant,
// ConstantOfShape, Expand, EyeLike, Range, Shape, Size.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "op/broadcast.h"
#include "op/element_types.h"
#include "op/op.h"
#include "op/support.h"

// ---- Constant ---------------------------------------------------------------------------------

static rondo_status check_constant(const rondo__op *op) {
    if (op->attribute_count != 1) {
        return RONDO_OP_FAIL(op, BAD_DATA, "must have one attribute that holds its value, has %zu",
                             op->attribute_count);
    }
    return RONDO_STATUS_OK;
}

// The value, borrowed from the attribute.
typedef struct constant_view {
    rondo_dtype dtype;
    rondo_shape shape;
    const void *data;
} constant_view;

static rondo_status get_constant(const rondo__op *op, constant_view *out_value) {
    RETURN_IF_ERROR(check_constant(op));
    const rondo__attribute *attribute = &op->attributes[0];
    const rondo_shape list = {.rank = 1, .extent = {(int64_t)attribute->count}};
    const rondo_shape scalar = {0};
    switch (attribute->kind) {
        case RONDO__ATTRIBUTE_TENSOR:
            *out_value =
                (constant_view){attribute->tensor_value.dtype, attribute->tensor_value.shape,
                                attribute->tensor_value.data};
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_INT:
            *out_value = (constant_view){RONDO_DTYPE_I64, scalar, &attribute->int_value};
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_FLOAT:
            *out_value = (constant_view){RONDO_DTYPE_F32, scalar, &attribute->float_value};
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_INTS:
            *out_value = (constant_view){RONDO_DTYPE_I64, list, attribute->ints};
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_FLOATS:
            *out_value = (constant_view){RONDO_DTYPE_F32, list, attribute->floats};
            return RONDO_STATUS_OK;
        default:
            return rondo__op_fail_unsupported(op, "attribute of type string or graph");
    }
}

static rondo_status infer_constant(rondo__infer *infer) {
    constant_view value;
    RETURN_IF_ERROR(get_constant(infer->op, &value));
    return rondo__infer_set_output(infer, 0, value.dtype, &value.shape);
}

static rondo_status compute_constant(rondo__compute *compute) {
    constant_view value;
    void *output = NULL;
    RETURN_IF_ERROR(get_constant(compute->op, &value));
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    size_t bytes = (size_t)rondo_shape_get_count(&value.shape) * rondo_dtype_get_bytes(value.dtype);
    if (bytes > 0) {
        memcpy(output, value.data, bytes);
    }
    return RONDO_STATUS_OK;
}

// ---- ConstantOfShape --------------------------------------------------------------------------

static rondo_status infer_constant_of_shape(rondo__infer *infer) {
    const rondo__attribute *value = rondo__op_find(infer->op, "value");
    rondo_dtype dtype = RONDO_DTYPE_F32;
    if (value != NULL) {
        if (value->kind != RONDO__ATTRIBUTE_TENSOR ||
            rondo_shape_get_count(&value->tensor_value.shape) != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute value must hold one element");
        }
        dtype = value->tensor_value.dtype;
    }
    infer->outputs[0].dtype = dtype;
    if (infer->inputs[0].constant == NULL) {
        (void)rondo__infer_needs_value(infer, 0);
        return rondo__infer_set_rank(infer, 0, rondo_shape_get_count(&infer->inputs[0].shape));
    }
    rondo_shape shape = {0};
    size_t rank = 0;
    RETURN_IF_ERROR(rondo__op_read_ints(infer->op, "the shape", infer->inputs[0].constant,
                                        RONDO_RANK_MAX, shape.extent, &rank));
    shape.rank = (int32_t)rank;
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

// Repeats one element over a dense destination.
static void fill_elements(size_t element_bytes, const void *element, void *destination,
                          int64_t count) {
    const int64_t stride = 0;
    rondo__copy_strided(element_bytes, 1, &count, &stride, element, destination);
}

static rondo_status compute_constant_of_shape(rondo__compute *compute) {
    const rondo__attribute *value = rondo__op_find(compute->op, "value");
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    const float zero = 0.0f;
    const void *element = value != NULL ? value->tensor_value.data : &zero;
    const rondo__tensor_info *info = &compute->inferred[0];
    fill_elements(rondo_dtype_get_bytes(info->dtype), element, output,
                  rondo_shape_get_count(&info->shape));
    return RONDO_STATUS_OK;
}

// ---- Shape, Size ------------------------------------------------------------------------------

// The part [first, last) of the extents that Shape gives.
static void get_shape_range(const rondo__op *op, int32_t rank, int32_t *out_first,
                            int32_t *out_last) {
    int64_t bounds[2] = {rondo__op_get_int(op, "start", 0), rondo__op_get_int(op, "end", rank)};
    for (int i = 0; i < 2; ++i) {
        bounds[i] = bounds[i] < 0 ? bounds[i] + rank : bounds[i];
        bounds[i] = bounds[i] < 0 ? 0 : bounds[i] > rank ? rank : bounds[i];
    }
    *out_first = (int32_t)bounds[0];
    *out_last = (int32_t)(bounds[1] < bounds[0] ? bounds[0] : bounds[1]);
}

static rondo_status infer_shape(rondo__infer *infer) {
    int32_t first = 0;
    int32_t last = 0;
    get_shape_range(infer->op, infer->inputs[0].shape.rank, &first, &last);
    rondo_shape shape = {.rank = 1, .extent = {last - first}};
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_I64, &shape);
}

static rondo_status compute_shape(rondo__compute *compute) {
    const rondo_shape *input = &compute->inputs[0]->shape;
    int32_t first = 0;
    int32_t last = 0;
    get_shape_range(compute->op, input->rank, &first, &last);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    for (int32_t d = first; d < last; ++d) {
        ((int64_t *)output)[d - first] = input->extent[d];
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_size(rondo__infer *infer) {
    rondo_shape scalar = {0};
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_I64, &scalar);
}

static rondo_status compute_size(rondo__compute *compute) {
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    *(int64_t *)output = rondo_shape_get_count(&compute->inputs[0]->shape);
    return RONDO_STATUS_OK;
}

// ---- Expand -----------------------------------------------------------------------------------

static rondo_status infer_expand(rondo__infer *infer) {
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    if (infer->inputs[1].constant == NULL) {
        const int64_t wanted = rondo_shape_get_count(&infer->inputs[1].shape);
        const int64_t own = infer->inputs[0].shape.rank;
        (void)rondo__infer_needs_value(infer, 1);
        return rondo__infer_set_rank(infer, 0, wanted > own ? wanted : own);
    }
    rondo_shape shape = {0};
    size_t rank = 0;
    RETURN_IF_ERROR(rondo__op_read_ints(infer->op, "the shape", infer->inputs[1].constant,
                                        RONDO_RANK_MAX, shape.extent, &rank));
    shape.rank = (int32_t)rank;
    RETURN_IF_ERROR(rondo__broadcast_join(infer->op, &infer->inputs[0].shape, &shape));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_expand(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *shape = &compute->inferred[0].shape;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    int64_t own[RONDO_RANK_MAX];
    int64_t strides[RONDO_RANK_MAX] = {0};
    rondo__shape_get_strides(&input->shape, own);
    int32_t shift = shape->rank - input->shape.rank;
    for (int32_t d = shift; d < shape->rank; ++d) {
        strides[d] = input->shape.extent[d - shift] == 1 ? 0 : own[d - shift];
    }
    rondo__copy_strided(rondo_dtype_get_bytes(input->dtype), shape->rank, shape->extent, strides,
                        input->data, output);
    return RONDO_STATUS_OK;
}

// ---- EyeLike ----------------------------------------------------------------------------------

static rondo_status infer_eye_like(rondo__infer *infer) {
    const rondo_shape *shape = &infer->inputs[0].shape;
    rondo_dtype dtype = infer->inputs[0].dtype;
    if (rondo__op_find(infer->op, "dtype") != NULL) {
        int64_t number = rondo__op_get_int(infer->op, "dtype", 0);
        dtype = rondo__dtype_from_onnx(number);
        if (dtype == RONDO_DTYPE_NONE) {
            return rondo__op_fail_element_type(infer->op, "dtype", number);
        }
    }
    if (shape->rank != 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the input has rank %d; it must be a matrix",
                             shape->rank);
    }
    return rondo__infer_set_output(infer, 0, dtype, shape);
}

static rondo_status compute_eye_like(rondo__compute *compute) {
    const rondo__tensor_info *info = &compute->inferred[0];
    int64_t rows = info->shape.extent[0];
    int64_t columns = info->shape.extent[1];
    int64_t shift = rondo__op_get_int(compute->op, "k", 0);
    size_t bytes = rondo_dtype_get_bytes(info->dtype);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    if (rows * columns == 0) {
        return RONDO_STATUS_OK;
    }
    memset(output, 0, (size_t)(rows * columns) * bytes);
    if (shift <= -rows || shift >= columns) {
        return RONDO_STATUS_OK;
    }
    const uint8_t one = 1;
    for (int64_t row = 0; row < rows; ++row) {
        int64_t column = row + shift;
        if (column >= 0 && column < columns) {
            rondo__convert_elements(RONDO_DTYPE_U8, &one, info->dtype,
                                    (uint8_t *)output + (size_t)(row * columns + column) * bytes,
                                    1);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- Range ------------------------------------------------------------------------------------

// How many steps of whole numbers lie in [start, limit); the differences fit 64 unsigned bits.
static uint64_t count_whole_steps(int64_t start, int64_t limit, int64_t delta) {
    if (delta > 0 ? limit <= start : limit >= start) {
        return 0;
    }
    uint64_t distance =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : UINT64_C(0) - (uint64_t)delta;
    return (distance - 1) / step + 1;
}

static rondo_status infer_range(rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    infer->outputs[0].dtype = dtype;
    bool is_known = true;
    for (size_t i = 0; i < 3; ++i) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
        if (rondo_shape_get_count(&infer->inputs[i].shape) != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu must be one number", i);
        }
        if (infer->inputs[i].constant == NULL) {
            (void)rondo__infer_needs_value(infer, i);
            is_known = false;
        }
    }
    if (!is_known) {
        return rondo__infer_set_rank(infer, 0, 1);
    }
    const rondo_tensor *start = infer->inputs[0].constant;
    const rondo_tensor *limit = infer->inputs[1].constant;
    const rondo_tensor *delta = infer->inputs[2].constant;
    rondo_shape shape = {.rank = 1};
    if (rondo__dtype_is_integer(dtype)) {
        if (rondo__tensor_get_int(delta, 0) == 0) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "delta is 0");
        }
        uint64_t steps =
            count_whole_steps(rondo__tensor_get_int(start, 0), rondo__tensor_get_int(limit, 0),
                              rondo__tensor_get_int(delta, 0));
        shape.extent[0] = steps > INT64_MAX ? INT64_MAX : (int64_t)steps;
    } else if (rondo__dtype_is_float(dtype)) {
        double steps =
            ceil((rondo__tensor_get_number(limit, 0) - rondo__tensor_get_number(start, 0)) /
                 rondo__tensor_get_number(delta, 0));
        if (steps != steps || steps > 1e15) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "would have %g elements", steps);
        }
        shape.extent[0] = steps > 0.0 ? (int64_t)steps : 0;
    } else {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

// What 16 bits are counted in, since version 27: f32, which is what counts them in any version.
static rondo_status check_range(const rondo__op *op) {
    if (rondo__dtype_from_onnx(rondo__op_get_int(op, "stash_type", 1)) != RONDO_DTYPE_F32) {
        return rondo__op_fail_unsupported(op, "attribute stash_type is no f32");
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_range(rondo__compute *compute) {
    const rondo_tensor *start = compute->inputs[0];
    const rondo_tensor *delta = compute->inputs[2];
    int64_t count = compute->inferred[0].shape.extent[0];
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    switch (start->dtype) {
        case RONDO_DTYPE_F32:
            for (int64_t i = 0; i < count; ++i) {
                ((float *)output)[i] = (float)(rondo__tensor_get_number(start, 0) +
                                               (double)i * rondo__tensor_get_number(delta, 0));
            }
            break;
        case RONDO_DTYPE_F64:
            for (int64_t i = 0; i < count; ++i) {
                ((double *)output)[i] = rondo__tensor_get_number(start, 0) +
                                        (double)i * rondo__tensor_get_number(delta, 0);
            }
            break;
        default: {
            size_t bytes = rondo_dtype_get_bytes(start->dtype);
            for (int64_t i = 0; i < count; ++i) {
                int64_t value = (int64_t)((uint64_t)rondo__tensor_get_int(start, 0) +
                                          (uint64_t)i * (uint64_t)rondo__tensor_get_int(delta, 0));
                rondo__convert_elements(RONDO_DTYPE_I64, &value, start->dtype,
                                        (uint8_t *)output + (size_t)i * bytes, 1);
            }
            break;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const constant_attributes[] = {"value",       "value_int",    "value_ints",
                                                  "value_float", "value_floats", NULL};
static const char *const value_attributes[] = {"value", NULL};
static const char *const eye_like_attributes[] = {"dtype", "k", NULL};
static const char *const range_attributes[] = {"stash_type", NULL};
static const char *const shape_attributes[] = {"start", "end", NULL};

#define ENTRY(op, first, last, inputs, more_flags, attribute_list, infer_function, \
              compute_function, ...)                                               \
    RONDO_OP_ROW(OP, op, first, last, inputs, inputs, 1, 1, .flags = more_flags,   \
                 .capture = RONDO__CAPTURE_YES, .attributes = attribute_list,      \
                 .infer = infer_function, .compute = compute_function, .check = __VA_ARGS__)
#define HALF RONDO__OP_NATIVE_HALF

const rondo__op_def rondo__op_table_shape[] = {
    ENTRY(Constant, 1, 28, 0, HALF, constant_attributes, infer_constant, compute_constant,
          check_constant, .makes_strings = true, .makes_narrow = true),
    ENTRY(ConstantOfShape, 9, 28, 1, HALF, value_attributes, infer_constant_of_shape,
          compute_constant_of_shape, NULL, .makes_narrow = true),
    ENTRY(Expand, 8, 28, 2, HALF, no_attributes, infer_expand, compute_expand, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(EyeLike, 9, 28, 1, HALF, eye_like_attributes, infer_eye_like, compute_eye_like, NULL),
    ENTRY(Range, 11, 26, 3, 0, no_attributes, infer_range, compute_range, NULL,
          .half = {HALF_STAYS | HALF_TRACED, HALF_EXACT, HALF_COUNTED}),
    ENTRY(Range, 27, 28, 3, 0, range_attributes, infer_range, compute_range, check_range,
          .half = {HALF_STAYS | HALF_TRACED, HALF_EXACT, HALF_COUNTED}),
    ENTRY(Shape, 1, 28, 1, HALF | RONDO__OP_SHAPE_ONLY, shape_attributes, infer_shape,
          compute_shape, NULL, .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Size, 1, 28, 1, HALF | RONDO__OP_SHAPE_ONLY, no_attributes, infer_size, compute_size,
          NULL, .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    {0},
};
