// op/reference.c — see reference.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/reference.h"

#include <math.h>

#include "base/memory.h"

// A zero-filled array of doubles; count 0 gives a valid address.
// Ownership: free with rondo__free.
static rondo_status create_doubles(int64_t count, double **out_values) {
    *out_values = NULL;
    if (count < 0) {
        return RONDO_FAIL(NO_MEMORY, "an array of doubles would have more than 2^63 elements");
    }
    double *values = rondo__calloc(count == 0 ? 1 : (size_t)count, sizeof *values);
    if (values == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_values = values;
    return RONDO_STATUS_OK;
}

rondo_status rondo__widen(const rondo_tensor *tensor, double **out_values) {
    *out_values = NULL;
    if (tensor == NULL) {
        return RONDO_STATUS_OK;
    }
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    double *values;
    RETURN_IF_ERROR(create_doubles(count, &values));
    rondo__convert_elements(tensor->dtype, tensor->data, RONDO_DTYPE_F64, values, (size_t)count);
    *out_values = values;
    return RONDO_STATUS_OK;
}

rondo_status rondo__narrow_by(rondo__compute *compute, size_t output, const double *values,
                              const rondo__narrow_rule *rule) {
    if (!rondo__compute_wants_output(compute, output)) {
        return RONDO_STATUS_OK;
    }
    void *data;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, output, &data));
    const rondo__tensor_info *info = &compute->inferred[output];
    rondo__convert_elements_by(RONDO_DTYPE_F64, values, info->dtype, data,
                               (size_t)rondo_shape_get_count(&info->shape), rule);
    return RONDO_STATUS_OK;
}

rondo_status rondo__narrow(rondo__compute *compute, size_t output, const double *values) {
    return rondo__narrow_by(compute, output, values, NULL);
}

rondo_status rondo__narrow_rounded(rondo__compute *compute, size_t output, double *values) {
    const rondo__tensor_info *info = &compute->inferred[output];
    if (rondo__dtype_is_integer(info->dtype)) {
        const int64_t count = rondo_shape_get_count(&info->shape);
        for (int64_t i = 0; i < count; i++) {
            values[i] = rondo__saturate(values[i], info->dtype);
        }
    }
    return rondo__narrow(compute, output, values);
}

// Keeps a new array; one that does not fit is a mistake of ours.
static double *keep(rondo__scratch *scratch, double *values) {
    if (scratch->count == RONDO__SCRATCH_MAX) {
        rondo__free(values);
        scratch->status = RONDO_FAIL(INTERNAL, "a compute asked for more than %d arrays",
                                     (int)RONDO__SCRATCH_MAX);
        return NULL;
    }
    scratch->arrays[scratch->count++] = values;
    return values;
}

double *rondo__scratch_create(rondo__scratch *scratch, int64_t count) {
    if (scratch->status != RONDO_STATUS_OK) {
        return NULL;
    }
    double *values;
    scratch->status = create_doubles(count, &values);
    return scratch->status == RONDO_STATUS_OK ? keep(scratch, values) : NULL;
}

double *rondo__scratch_widen(rondo__scratch *scratch, const rondo_tensor *tensor) {
    if (scratch->status != RONDO_STATUS_OK || tensor == NULL) {
        return NULL;
    }
    double *values;
    scratch->status = rondo__widen(tensor, &values);
    return scratch->status == RONDO_STATUS_OK ? keep(scratch, values) : NULL;
}

rondo_status rondo__scratch_end(rondo__scratch *scratch) {
    while (scratch->count > 0) {
        rondo__free(scratch->arrays[--scratch->count]);
    }
    return scratch->status;
}

rondo_status rondo__scratch_end_as(rondo__scratch *scratch, rondo__compute *compute, size_t output,
                                   const double *values) {
    if (scratch->status == RONDO_STATUS_OK) {
        scratch->status = rondo__narrow(compute, output, values);
    }
    return rondo__scratch_end(scratch);
}

rondo_status rondo__infer_check_float(const rondo__infer *infer, size_t first, size_t count) {
    if (!rondo__dtype_is_float(infer->inputs[first].dtype)) {
        return rondo__op_fail_dtype(infer->op, first, infer->inputs[first].dtype);
    }
    for (size_t i = first + 1; i < first + count; i++) {
        if (rondo__infer_has_input(infer, i)) {
            RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, first, i));
        }
    }
    return RONDO_STATUS_OK;
}

double rondo__saturate(double value, rondo_dtype dtype) {
    double low = 0.0;
    double high = 0.0;
    switch (dtype) {
        case RONDO_DTYPE_I4:
            low = -8.0;
            high = 7.0;
            break;
        case RONDO_DTYPE_U4:
            high = 15.0;
            break;
        case RONDO_DTYPE_I2:
            low = -2.0;
            high = 1.0;
            break;
        case RONDO_DTYPE_U2:
            high = 3.0;
            break;
        case RONDO_DTYPE_I8:
            low = INT8_MIN;
            high = INT8_MAX;
            break;
        case RONDO_DTYPE_U8:
            high = UINT8_MAX;
            break;
        case RONDO_DTYPE_I16:
            low = INT16_MIN;
            high = INT16_MAX;
            break;
        case RONDO_DTYPE_U16:
            high = UINT16_MAX;
            break;
        case RONDO_DTYPE_I32:
            low = INT32_MIN;
            high = INT32_MAX;
            break;
        case RONDO_DTYPE_U32:
            high = UINT32_MAX;
            break;
        case RONDO_DTYPE_I64:
            low = (double)INT64_MIN;
            high = (double)INT64_MAX;  // 2^63, which conversions take for the limit
            break;
        case RONDO_DTYPE_U64:
            high = (double)UINT64_MAX;
            break;
        default:
            return value;
    }
    if (isnan(value)) {
        return 0.0;
    }
    value = rint(value);
    return value < low ? low : value > high ? high : value;
}

double rondo__requantize(double sum, double x_scale, double w_scale, double y_scale, double y_zero,
                         rondo_dtype dtype) {
    const float both = (float)x_scale * (float)w_scale;
    const float factor = both / (float)y_scale;
    const float value = (float)sum * factor;
    return rondo__saturate(rint((double)value) + y_zero, dtype);
}
