#include "op/reference.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

rondo_status rondo__reference_fail(const rondo__op *op, const char *file, int32_t line,
                                   const char *call, const char *format, ...) {
    char message[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return rondo__error_set(RONDO_STATUS_BAD_DATA, 0, "", file, line, call, "%s: %s", op->def->name,
                            message);
}

bool rondo__dtype_is_float(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64 || dtype == RONDO_DTYPE_F16 ||
           dtype == RONDO_DTYPE_BF16;
}

bool rondo__axis_normalize(int64_t axis, int32_t rank, int32_t *out_axis) {
    if (axis < -(int64_t)rank || axis >= rank) {
        return false;
    }
    *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

int64_t rondo__shape_get_span(const rondo_shape *shape, int32_t begin, int32_t end) {
    int64_t count = 1;
    for (int32_t i = begin; i < end; i++) {
        count *= shape->extent[i];
    }
    return count;
}

rondo_shape rondo__shape_make(int32_t rank, const int64_t *extents) {
    rondo_shape shape = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) {
        shape.extent[i] = extents[i];
    }
    return shape;
}

rondo_status rondo__doubles_create(int64_t count, double **out_values) {
    *out_values = NULL;
    if (count < 0) {
        return RONDO_FAIL(NO_MEMORY, "an array of doubles has a negative or absurd count");
    }
    double *values = rondo__calloc(count == 0 ? 1 : (size_t)count, sizeof *values);
    if (values == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_values = values;
    return RONDO_STATUS_OK;
}

static double bfloat_to_double(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static uint16_t bfloat_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) {
        return (uint16_t)((bits >> 16) | 0x40u);  // keep it a quiet NaN
    }
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // nearest, ties to even
}

#define WIDEN_CASE(name, type)                  \
    case RONDO_DTYPE_##name: {                  \
        const type *source = tensor->data;      \
        for (int64_t i = 0; i < count; i++) {   \
            values[i] = (double)source[i];      \
        }                                       \
        break;                                  \
    }

rondo_status rondo__widen(const rondo_tensor *tensor, double **out_values) {
    *out_values = NULL;
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    double *values;
    RETURN_IF_ERROR(rondo__doubles_create(count, &values));
    switch (tensor->dtype) {
        WIDEN_CASE(F32, float)
        WIDEN_CASE(F64, double)
        WIDEN_CASE(I8, int8_t)
        WIDEN_CASE(I16, int16_t)
        WIDEN_CASE(I32, int32_t)
        WIDEN_CASE(I64, int64_t)
        WIDEN_CASE(U8, uint8_t)
        WIDEN_CASE(U16, uint16_t)
        WIDEN_CASE(U32, uint32_t)
        WIDEN_CASE(U64, uint64_t)
        WIDEN_CASE(BOOL, uint8_t)
        case RONDO_DTYPE_F16: {
            const uint16_t *source = tensor->data;
            for (int64_t i = 0; i < count; i++) {
                values[i] = (double)rondo_half_to_float(source[i]);
            }
            break;
        }
        case RONDO_DTYPE_BF16: {
            const uint16_t *source = tensor->data;
            for (int64_t i = 0; i < count; i++) {
                values[i] = bfloat_to_double(source[i]);
            }
            break;
        }
        case RONDO_DTYPE_NONE:
        case RONDO_DTYPE_COUNT:
            break;
    }
    *out_values = values;
    return RONDO_STATUS_OK;
}

// The bounds are those doubles that convert without overflow; NaN fails both comparisons.
#define NARROW_INTEGER_CASE(name, type, minimum, maximum, lowest, highest)              \
    case RONDO_DTYPE_##name: {                                                          \
        type *target = out_data;                                                        \
        for (int64_t i = 0; i < count; i++) {                                           \
            const double value = values[i];                                             \
            target[i] = value >= (highest)  ? (type)(maximum)                           \
                        : value <= (lowest) ? (type)(minimum)                           \
                        : isnan(value)      ? (type)0                                   \
                                            : (type)value;                              \
        }                                                                               \
        break;                                                                          \
    }

void rondo__narrow(const double *values, int64_t count, rondo_dtype dtype, void *out_data) {
    switch (dtype) {
        case RONDO_DTYPE_F32: {
            float *target = out_data;
            for (int64_t i = 0; i < count; i++) {
                target[i] = (float)values[i];
            }
            break;
        }
        case RONDO_DTYPE_F64:
            memcpy(out_data, values, (size_t)count * sizeof *values);
            break;
        case RONDO_DTYPE_F16: {
            uint16_t *target = out_data;
            for (int64_t i = 0; i < count; i++) {
                target[i] = rondo_half_from_float((float)values[i]);
            }
            break;
        }
        case RONDO_DTYPE_BF16: {
            uint16_t *target = out_data;
            for (int64_t i = 0; i < count; i++) {
                target[i] = bfloat_from_float((float)values[i]);
            }
            break;
        }
            NARROW_INTEGER_CASE(I8, int8_t, INT8_MIN, INT8_MAX, -128.0, 127.0)
            NARROW_INTEGER_CASE(I16, int16_t, INT16_MIN, INT16_MAX, -32768.0, 32767.0)
            NARROW_INTEGER_CASE(I32, int32_t, INT32_MIN, INT32_MAX, -2147483648.0, 2147483647.0)
            NARROW_INTEGER_CASE(I64, int64_t, INT64_MIN, INT64_MAX, -0x1p63, 0x1p63)
            NARROW_INTEGER_CASE(U8, uint8_t, 0, UINT8_MAX, 0.0, 255.0)
            NARROW_INTEGER_CASE(U16, uint16_t, 0, UINT16_MAX, 0.0, 65535.0)
            NARROW_INTEGER_CASE(U32, uint32_t, 0, UINT32_MAX, 0.0, 4294967295.0)
            NARROW_INTEGER_CASE(U64, uint64_t, 0, UINT64_MAX, 0.0, 0x1p64)
        case RONDO_DTYPE_BOOL: {
            uint8_t *target = out_data;
            for (int64_t i = 0; i < count; i++) {
                target[i] = values[i] != 0.0;
            }
            break;
        }
        case RONDO_DTYPE_NONE:
        case RONDO_DTYPE_COUNT:
            break;
    }
}

rondo_status rondo__narrow_output(rondo__compute *compute, size_t output, rondo_dtype dtype,
                                  const rondo_shape *shape, const double *values) {
    void *data;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, output, dtype, shape, &data));
    rondo__narrow(values, rondo_shape_get_count(shape), dtype, data);
    return RONDO_STATUS_OK;
}

#define READ_CASE(name, type)                           \
    case RONDO_DTYPE_##name:                            \
        for (size_t i = 0; i < (size_t)count; i++) {    \
            out_values[i] = (int64_t)((const type *)tensor->data)[i]; \
        }                                               \
        break;

rondo_status rondo__read_ints(const rondo__op *op, const rondo_tensor *tensor, const char *what,
                              size_t capacity, int64_t *out_values, size_t *out_count) {
    *out_count = 0;
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    if (count < 0 || (uint64_t)count > capacity) {
        return RONDO_OP_FAIL(op, "%s has %lld elements, at most %zu are possible", what,
                             (long long)count, capacity);
    }
    switch (tensor->dtype) {
        READ_CASE(I8, int8_t)
        READ_CASE(I16, int16_t)
        READ_CASE(I32, int32_t)
        READ_CASE(I64, int64_t)
        READ_CASE(U8, uint8_t)
        READ_CASE(U16, uint16_t)
        READ_CASE(U32, uint32_t)
        READ_CASE(U64, uint64_t)
        default:
            return RONDO_OP_FAIL(op, "%s must be an integer tensor, not %s", what,
                                 rondo_dtype_get_name(tensor->dtype));
    }
    *out_count = (size_t)count;
    return RONDO_STATUS_OK;
}
