// op/support.c — see support.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "op/half.h"

rondo_dtype rondo__dtype_widen(rondo_dtype dtype) {
    return rondo__is_half(dtype) ? RONDO_DTYPE_F32 : dtype;
}

rondo_status rondo__infer_check_same_dtype(const rondo__infer *infer, size_t first, size_t second) {
    rondo_dtype a = infer->inputs[first].dtype;
    rondo_dtype b = infer->inputs[second].dtype;
    if (a != b) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "input %zu is %s and input %zu is %s; they must be of one type", first,
                             rondo_dtype_get_name(a), second, rondo_dtype_get_name(b));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_check_bytes(const rondo__infer *infer, size_t input) {
    const rondo_dtype dtype = infer->inputs[input].dtype;
    if (dtype != RONDO_DTYPE_I8 && dtype != RONDO_DTYPE_U8) {
        return rondo__op_fail_dtype(infer->op, input, dtype);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_like_input(rondo__infer *infer) {
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &infer->inputs[0].shape);
}

rondo_status rondo__op_resolve_axis(const rondo__op *op, int64_t axis, int32_t rank,
                                    int32_t *out_axis) {
    *out_axis = 0;
    if (axis < -(int64_t)rank || axis >= rank) {
        return RONDO_OP_FAIL(op, BAD_DATA, "axis %lld is outside [%d, %d)", (long long)axis, -rank,
                             rank);
    }
    *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
    return RONDO_STATUS_OK;
}

rondo_status rondo__op_resolve_axes(const rondo__op *op, const int64_t *axes, size_t count,
                                    int32_t rank, uint32_t *out_mask) {
    *out_mask = 0;
    uint32_t mask = 0;
    for (size_t i = 0; i < count; ++i) {
        int32_t axis = 0;
        RETURN_IF_ERROR(rondo__op_resolve_axis(op, axes[i], rank, &axis));
        if ((mask >> axis & 1u) != 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "axis %lld is given twice", (long long)axes[i]);
        }
        mask |= 1u << axis;
    }
    *out_mask = mask;
    return RONDO_STATUS_OK;
}

int64_t rondo__tensor_get_int(const rondo_tensor *tensor, int64_t index) {
    switch (tensor->dtype) {
#define GET_CASE(name, type) \
    case RONDO_DTYPE_##name: \
        return (int64_t)((const type *)tensor->data)[index];
        RONDO_OP_INTEGER_MAP(GET_CASE)
#undef GET_CASE
        case RONDO_DTYPE_BOOL:
            return ((const uint8_t *)tensor->data)[index] != 0;
        default:
            return rondo__dtype_is_narrow_integer(tensor->dtype)
                       ? rondo__narrow_get_int(tensor->dtype,
                                               ((const uint8_t *)tensor->data)[index])
                       : 0;
    }
}

double rondo__tensor_get_number(const rondo_tensor *tensor, int64_t index) {
    switch (tensor->dtype) {
        case RONDO_DTYPE_F32:
            return (double)((const float *)tensor->data)[index];
        case RONDO_DTYPE_F64:
            return ((const double *)tensor->data)[index];
        case RONDO_DTYPE_F16:
            return (double)rondo_f16_to_float(((const uint16_t *)tensor->data)[index]);
        case RONDO_DTYPE_BF16:
            return (double)rondo__bfloat_to_float(((const uint16_t *)tensor->data)[index]);
        case RONDO_DTYPE_U64:
            return (double)((const uint64_t *)tensor->data)[index];
        default:
            return rondo__dtype_is_narrow(tensor->dtype)
                       ? (double)rondo_narrow_to_float(tensor->dtype,
                                                       ((const uint8_t *)tensor->data)[index])
                       : (double)rondo__tensor_get_int(tensor, index);
    }
}

rondo_status rondo__op_read_ints(const rondo__op *op, const char *what, const rondo_tensor *tensor,
                                 size_t capacity, int64_t *out_values, size_t *out_count) {
    *out_count = 0;
    int64_t count = rondo_shape_get_count(&tensor->shape);
    if (!rondo__dtype_is_integer(tensor->dtype) || tensor->shape.rank > 1) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "%s is %s %s; it must be a list of integers", what,
                             rondo_dtype_get_name(tensor->dtype),
                             rondo_shape_format(&tensor->shape, text, sizeof text));
    }
    if (count > RONDO_RANK_MAX && capacity == RONDO_RANK_MAX) {
        char detail[96];
        (void)snprintf(detail, sizeof detail, "%s has %lld entries; a tensor has at most %d axes",
                       what, (long long)count, RONDO_RANK_MAX);
        return rondo__op_fail_unsupported(op, detail);
    }
    if (count < 0 || (size_t)count > capacity) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%s has %lld entries; at most %zu fit here", what,
                             (long long)count, capacity);
    }
    for (int64_t i = 0; i < count; ++i) {
        out_values[i] = rondo__tensor_get_int(tensor, i);
    }
    *out_count = (size_t)count;
    return RONDO_STATUS_OK;
}

void rondo__shape_get_strides(const rondo_shape *shape, int64_t *out_strides) {
    int64_t stride = 1;
    for (int32_t d = shape->rank - 1; d >= 0; --d) {
        out_strides[d] = stride;
        stride *= shape->extent[d];
    }
}

int64_t rondo__shape_multiply(const rondo_shape *shape, int32_t first, int32_t last) {
    int64_t product = 1;
    for (int32_t d = first; d < last; ++d) {
        product *= shape->extent[d];
    }
    return product;
}

// ---- conversion -------------------------------------------------------------------------------

static int64_t float_to_i64(double value) {
    if (value >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    if (value <= -9223372036854775808.0) {
        return INT64_MIN;
    }
    return value == value ? (int64_t)value : 0;  // NaN differs from itself
}

static uint64_t float_to_u64(double value) {
    if (value >= 18446744073709551616.0) {
        return UINT64_MAX;
    }
    if (value >= 9223372036854775808.0) {
        return (uint64_t)value;
    }
    return (uint64_t)float_to_i64(value);
}

// Numbers wider than f32 become 16 bits through an f32 rounded to odd: if f32 cannot hold the
// number, the neighbour whose last bit is set. That bit lies far behind those of the result, so
// that rounding again gives the same as rounding once.
static float set_odd(float rounded, bool is_above) {
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if ((bits & 1u) == 0) {
        bits = is_above ? bits - 1 : bits + 1;
        memcpy(&rounded, &bits, sizeof rounded);
    }
    return rounded;
}

static float to_odd_F64(double x) {
    const float rounded = (float)x;
    const double back = (double)rounded;
    return back < x || back > x ? set_odd(rounded, fabs(back) > fabs(x)) : rounded;
}

static float to_odd_U64(uint64_t x) {
    const float rounded = (float)x;
    const bool is_beyond = rounded >= 18446744073709551616.0f;
    const uint64_t back = is_beyond ? 0 : (uint64_t)rounded;
    return is_beyond || back != x ? set_odd(rounded, is_beyond || back > x) : rounded;
}

static float to_odd_I64(int64_t x) {
    return x < 0 ? -to_odd_U64(UINT64_C(0) - (uint64_t)x) : to_odd_U64((uint64_t)x);
}

#define to_odd_F32(x) (x)
#define to_odd_I8(x) (float)(x)
#define to_odd_I16(x) (float)(x)
#define to_odd_U8(x) (float)(x)
#define to_odd_U16(x) (float)(x)
#define to_odd_I32(x) to_odd_F64((double)(x))
#define to_odd_U32(x) to_odd_F64((double)(x))

// One function for each C type to convert from. Floats go the checked way to integers.
#define CONVERT_LOOP(to_type, expression)                    \
    for (size_t i = 0; i < count; ++i) {                     \
        ((to_type *)destination)[i] = (to_type)(expression); \
    }                                                        \
    break;

#define TO_INTEGER_CASE(name, type) \
    case RONDO_DTYPE_##name:        \
        CONVERT_LOOP(type, float_to_i64((double)x[i]))
#define TO_PLAIN_CASE(name, type) \
    case RONDO_DTYPE_##name:      \
        CONVERT_LOOP(type, x[i])

enum { CHUNK = 256 };  // elements that are converted by way of another type at once

// Narrow floats come from f32 that is rounded to odd, and narrow integers are the low bits.
#define DEFINE_CONVERT_NARROW(name, type, whole)                                       \
    static void narrow_##name(const type *x, rondo_dtype to, uint8_t *y, size_t count, \
                              const rondo__narrow_rule *rule) {                        \
        const uint64_t mask = (UINT64_C(1) << rondo__narrow_get_bits(to)) - 1;         \
        float odd[CHUNK];                                                              \
        if (rondo__dtype_is_narrow_integer(to)) {                                      \
            for (size_t i = 0; i < count; ++i) {                                       \
                y[i] = (uint8_t)((uint64_t)(whole)&mask);                              \
            }                                                                          \
            return;                                                                    \
        }                                                                              \
        for (size_t done = 0; done < count; done += CHUNK) {                           \
            const size_t now = count - done < CHUNK ? count - done : CHUNK;            \
            for (size_t i = 0; i < now; ++i) {                                         \
                odd[i] = to_odd_##name(x[done + i]);                                   \
            }                                                                          \
            rondo__narrow_encode_array(to, odd, y + done, now, rule);                  \
        }                                                                              \
    }
#define DEFINE_NARROW_FLOAT(name, type) \
    DEFINE_CONVERT_NARROW(name, type, float_to_i64((double)x[i]))
#define DEFINE_NARROW_INTEGER(name, type) DEFINE_CONVERT_NARROW(name, type, x[i])
RONDO_OP_FLOAT_MAP(DEFINE_NARROW_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_NARROW_INTEGER)

#define DEFINE_CONVERT_FLOAT(name, type)                                                       \
    static void convert_##name(const type *x, rondo_dtype to, void *destination, size_t count, \
                               const rondo__narrow_rule *rule) {                               \
        switch (to) {                                                                          \
            TO_INTEGER_CASE(I8, int8_t)                                                        \
            TO_INTEGER_CASE(I16, int16_t)                                                      \
            TO_INTEGER_CASE(I32, int32_t)                                                      \
            TO_INTEGER_CASE(I64, int64_t)                                                      \
            TO_INTEGER_CASE(U8, uint8_t)                                                       \
            TO_INTEGER_CASE(U16, uint16_t)                                                     \
            TO_INTEGER_CASE(U32, uint32_t)                                                     \
            case RONDO_DTYPE_U64:                                                              \
                CONVERT_LOOP(uint64_t, float_to_u64((double)x[i]))                             \
                TO_PLAIN_CASE(F32, float)                                                      \
                TO_PLAIN_CASE(F64, double)                                                     \
            case RONDO_DTYPE_F16:                                                              \
                CONVERT_LOOP(uint16_t, rondo_f16_from_float(to_odd_##name(x[i])))              \
            case RONDO_DTYPE_BF16:                                                             \
                CONVERT_LOOP(uint16_t, rondo__bfloat_from_float(to_odd_##name(x[i])))          \
            case RONDO_DTYPE_BOOL:                                                             \
                CONVERT_LOOP(uint8_t, !(x[i] == 0))                                            \
            default:                                                                           \
                if (rondo__dtype_is_narrow(to)) {                                              \
                    narrow_##name(x, to, destination, count, rule);                            \
                }                                                                              \
                return;                                                                        \
        }                                                                                      \
    }
RONDO_OP_FLOAT_MAP(DEFINE_CONVERT_FLOAT)

#define DEFINE_CONVERT_INTEGER(name, type)                                                     \
    static void convert_##name(const type *x, rondo_dtype to, void *destination, size_t count, \
                               const rondo__narrow_rule *rule) {                               \
        switch (to) {                                                                          \
            TO_PLAIN_CASE(F32, float)                                                          \
            TO_PLAIN_CASE(F64, double)                                                         \
            TO_PLAIN_CASE(I8, int8_t)                                                          \
            TO_PLAIN_CASE(I16, int16_t)                                                        \
            TO_PLAIN_CASE(I32, int32_t)                                                        \
            TO_PLAIN_CASE(I64, int64_t)                                                        \
            TO_PLAIN_CASE(U8, uint8_t)                                                         \
            TO_PLAIN_CASE(U16, uint16_t)                                                       \
            TO_PLAIN_CASE(U32, uint32_t)                                                       \
            TO_PLAIN_CASE(U64, uint64_t)                                                       \
            case RONDO_DTYPE_F16:                                                              \
                CONVERT_LOOP(uint16_t, rondo_f16_from_float(to_odd_##name(x[i])))              \
            case RONDO_DTYPE_BF16:                                                             \
                CONVERT_LOOP(uint16_t, rondo__bfloat_from_float(to_odd_##name(x[i])))          \
            case RONDO_DTYPE_BOOL:                                                             \
                CONVERT_LOOP(uint8_t, x[i] != 0)                                               \
            default:                                                                           \
                if (rondo__dtype_is_narrow(to)) {                                              \
                    narrow_##name(x, to, destination, count, rule);                            \
                }                                                                              \
                return;                                                                        \
        }                                                                                      \
    }
RONDO_OP_INTEGER_MAP(DEFINE_CONVERT_INTEGER)

// Through f32, a few elements at a time.
static void convert_half(rondo_dtype from, const uint16_t *x, rondo_dtype to, uint8_t *destination,
                         size_t count, const rondo__narrow_rule *rule) {
    float wide[CHUNK];
    if (to == RONDO_DTYPE_F32) {
        rondo__half_to_float_array(from, x, (float *)(void *)destination, count);
        return;
    }
    for (size_t done = 0; done < count; done += CHUNK) {
        size_t now = count - done < CHUNK ? count - done : CHUNK;
        rondo__half_to_float_array(from, x + done, wide, now);
        convert_F32(wide, to, destination + done * rondo_dtype_get_bytes(to), now, rule);
    }
}

static void convert_bool(const uint8_t *x, rondo_dtype to, uint8_t *destination, size_t count,
                         const rondo__narrow_rule *rule) {
    uint8_t clean[CHUNK];
    for (size_t done = 0; done < count; done += CHUNK) {
        size_t now = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < now; ++i) {
            clean[i] = x[done + i] != 0;
        }
        convert_U8(clean, to, destination + done * rondo_dtype_get_bytes(to), now, rule);
    }
}

// Through f32, in which every narrow element is exact.
static void convert_narrow(rondo_dtype from, const uint8_t *x, rondo_dtype to, uint8_t *destination,
                           size_t count, const rondo__narrow_rule *rule) {
    enum { CODES = 256 };
    float table[CODES];
    float wide[CHUNK];
    const size_t codes = (size_t)1 << rondo__narrow_get_bits(from);
    for (size_t i = 0; i < codes; ++i) {
        table[i] = rondo_narrow_to_float(from, (uint8_t)i);
    }
    for (size_t i = 0; to == RONDO_DTYPE_F32 && i < count; ++i) {
        ((float *)(void *)destination)[i] = table[x[i] & (codes - 1)];
    }
    for (size_t done = 0; to != RONDO_DTYPE_F32 && done < count; done += CHUNK) {
        size_t now = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < now; ++i) {
            wide[i] = table[x[done + i] & (codes - 1)];
        }
        convert_F32(wide, to, destination + done * rondo_dtype_get_bytes(to), now, rule);
    }
}

void rondo__convert_elements_by(rondo_dtype from, const void *source, rondo_dtype to,
                                void *destination, size_t count, const rondo__narrow_rule *rule) {
    if (count == 0) {
        return;
    }
    if (from == to && from != RONDO_DTYPE_BOOL) {
        memcpy(destination, source, count * rondo_dtype_get_bytes(from));
        return;
    }
    if (from == RONDO_DTYPE_F32 && rondo__is_half(to)) {
        rondo__half_from_float_array(to, source, destination, count);
        return;
    }
    switch (from) {
#define CONVERT_CASE(name, type)                              \
    case RONDO_DTYPE_##name:                                  \
        convert_##name(source, to, destination, count, rule); \
        return;
        RONDO_OP_NUMERIC_MAP(CONVERT_CASE)
#undef CONVERT_CASE
        case RONDO_DTYPE_F16:
        case RONDO_DTYPE_BF16:
            convert_half(from, source, to, destination, count, rule);
            return;
        case RONDO_DTYPE_BOOL:
            convert_bool(source, to, destination, count, rule);
            return;
        default:
            if (rondo__dtype_is_narrow(from)) {
                convert_narrow(from, source, to, destination, count, rule);
            }
            return;
    }
}

void rondo__convert_elements(rondo_dtype from, const void *source, rondo_dtype to,
                             void *destination, size_t count) {
    rondo__convert_elements_by(from, source, to, destination, count, NULL);
}

// ---- strided copies ---------------------------------------------------------------------------

// One row of a strided copy.
static void copy_row(size_t element_bytes, const uint8_t *source, int64_t stride,
                     uint8_t *destination, int64_t count) {
    if (stride == 1) {
        memcpy(destination, source, (size_t)count * element_bytes);
        return;
    }
    switch (element_bytes) {
#define ROW_CASE(bytes, type)                                                                    \
    case bytes:                                                                                  \
        for (int64_t i = 0; i < count; ++i) {                                                    \
            ((type *)(void *)destination)[i] = ((const type *)(const void *)source)[i * stride]; \
        }                                                                                        \
        return;
        ROW_CASE(1, uint8_t)
        ROW_CASE(2, uint16_t)
        ROW_CASE(4, uint32_t)
        ROW_CASE(8, uint64_t)
        ROW_CASE(sizeof(rondo_string), rondo_string)  // C128, too
#undef ROW_CASE
        default:
            return;
    }
}

// Drops extents of 1 and joins neighbours that are one run. Returns the new rank.
static int32_t simplify(int32_t rank, const int64_t *extent, const int64_t *stride,
                        int64_t *out_extent, int64_t *out_stride) {
    int32_t count = 0;
    for (int32_t d = 0; d < rank; ++d) {
        if (extent[d] == 1) {
            continue;
        }
        if (count > 0 && out_stride[count - 1] == stride[d] * extent[d]) {
            out_extent[count - 1] *= extent[d];
            out_stride[count - 1] = stride[d];
        } else {
            out_extent[count] = extent[d];
            out_stride[count] = stride[d];
            ++count;
        }
    }
    return count;
}

void rondo__copy_strided(size_t element_bytes, int32_t rank, const int64_t *extent,
                         const int64_t *source_stride, const void *source, void *destination) {
    int64_t size[RONDO_OP_STRIDED_RANK_MAX] = {0};
    int64_t step[RONDO_OP_STRIDED_RANK_MAX] = {0};
    for (int32_t d = 0; d < rank; ++d) {
        if (extent[d] <= 0) {
            return;
        }
    }
    int32_t outer = simplify(rank, extent, source_stride, size, step) - 1;
    int64_t row_count = outer >= 0 ? size[outer] : 1;
    int64_t row_stride = outer >= 0 ? step[outer] : 1;
    int64_t index[RONDO_OP_STRIDED_RANK_MAX] = {0};
    const uint8_t *from = source;
    uint8_t *to = destination;
    for (;;) {
        copy_row(element_bytes, from, row_stride, to, row_count);
        to += (size_t)row_count * element_bytes;
        int32_t d = outer - 1;
        for (; d >= 0; --d) {
            from += step[d] * (int64_t)element_bytes;
            if (++index[d] < size[d]) {
                break;
            }
            from -= step[d] * size[d] * (int64_t)element_bytes;
            index[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}
