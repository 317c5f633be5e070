// op/element_types.c — see element_types.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/element_types.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "op/support.h"

// X(ONNX data_type, our dtype, ONNX's name, what to do)
#define TYPE_MAP(X)                                                                         \
    X(1, F32, "float", "")                                                                  \
    X(2, U8, "uint8", "")                                                                   \
    X(3, I8, "int8", "")                                                                    \
    X(4, U16, "uint16", "")                                                                 \
    X(5, I16, "int16", "")                                                                  \
    X(6, I32, "int32", "")                                                                  \
    X(7, I64, "int64", "")                                                                  \
    X(8, STRING, "string", "")                                                              \
    X(9, BOOL, "bool", "")                                                                  \
    X(10, F16, "float16", "")                                                               \
    X(11, F64, "double", "")                                                                \
    X(12, U32, "uint32", "")                                                                \
    X(13, U64, "uint64", "")                                                                \
    X(14, C64, "complex64", ": use two floats, real and imaginary, on a last axis of 2")    \
    X(15, C128, "complex128", ": use two doubles, real and imaginary, on a last axis of 2") \
    X(16, BF16, "bfloat16", "")                                                             \
    X(17, F8E4M3FN, "float8e4m3fn", "")                                                     \
    X(18, F8E4M3FNUZ, "float8e4m3fnuz", "")                                                 \
    X(19, F8E5M2, "float8e5m2", "")                                                         \
    X(20, F8E5M2FNUZ, "float8e5m2fnuz", "")                                                 \
    X(21, U4, "uint4", "")                                                                  \
    X(22, I4, "int4", "")                                                                   \
    X(23, F4E2M1, "float4e2m1", "")                                                         \
    X(24, F8E8M0, "float8e8m0", "")                                                         \
    X(25, U2, "uint2", "")                                                                  \
    X(26, I2, "int2", "")                                                                   \
    X(27, NONE, "float6e2m3", ": use float8e4m3fn")                                         \
    X(28, NONE, "float6e3m2", ": use float8e5m2")

static const struct {
    rondo_dtype dtype;
    const char *name;
    const char *cure;
    const char *explanation;
    const char *nested_explanation;
} element_types[RONDO_ONNX_TYPE_MAX + 1] = {
#define TYPE_ROW(number, our, words, todo)                                 \
    [number] = {RONDO_DTYPE_##our, words, todo, "a tensor of " words todo, \
                "a sequence or optional of tensors of " words todo},
    TYPE_MAP(TYPE_ROW)
#undef TYPE_ROW
};

static bool is_defined(int64_t data_type) {
    return data_type > 0 && data_type <= RONDO_ONNX_TYPE_MAX;
}

rondo_dtype rondo__dtype_from_onnx(int64_t data_type) {
    return is_defined(data_type) ? element_types[data_type].dtype : RONDO_DTYPE_NONE;
}

const char *rondo__onnx_type_get_name(int64_t data_type) {
    return is_defined(data_type) ? element_types[data_type].name : NULL;
}

static bool is_foreign(int64_t data_type) {
    return is_defined(data_type) && element_types[data_type].dtype == RONDO_DTYPE_NONE;
}

const char *rondo__onnx_type_explain(int64_t data_type) {
    return is_foreign(data_type) ? element_types[data_type].explanation : NULL;
}

const char *rondo__onnx_type_explain_nested(int64_t data_type) {
    return is_foreign(data_type) ? element_types[data_type].nested_explanation : NULL;
}

rondo_status rondo__op_fail_element_type(const rondo__op *op, const char *attribute,
                                         int64_t data_type) {
    char detail[160];
    if (is_defined(data_type)) {
        (void)snprintf(detail, sizeof detail, "attribute %s=%" PRId64 ", %s%s", attribute,
                       data_type, element_types[data_type].name, element_types[data_type].cure);
    } else {
        (void)snprintf(detail, sizeof detail,
                       "attribute %s=%" PRId64 ", which is no element type; 1 to %d are", attribute,
                       data_type, RONDO_ONNX_TYPE_MAX);
    }
    return rondo__op_fail_unsupported(op, detail);
}
