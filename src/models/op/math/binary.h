// op/math/binary.h — how element-wise kernels of two operands are written and run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "op/broadcast.h"
#include "op/op.h"

// y[i] = f(a[i * a_stride], b[i * b_stride]); strides are 0 or 1. y may be a when a_stride is 1.
typedef void (*rondo__binary_kernel)(const void *a, int64_t a_stride, const void *b,
                                     int64_t b_stride, void *y, int64_t count);

// Defines kernel name_suffix for one C type; `expression` is of u and v, both of type T. The three
// loops let the compiler keep the repeated operand in a register.
#define RONDO_OP_BINARY_KERNEL(name, suffix, type, result, expression)                            \
    static void name##_##suffix(const void *a, int64_t a_stride, const void *b, int64_t b_stride, \
                                void *y, int64_t count) {                                         \
        typedef type T;                                                                           \
        const T *us = a;                                                                          \
        const T *vs = b;                                                                          \
        result *ys = y;                                                                           \
        if (a_stride != 0 && b_stride != 0) {                                                     \
            for (int64_t i = 0; i < count; ++i) {                                                 \
                const T u = us[i];                                                                \
                const T v = vs[i];                                                                \
                ys[i] = (result)(expression);                                                     \
            }                                                                                     \
        } else if (a_stride != 0) {                                                               \
            const T v = *vs;                                                                      \
            for (int64_t i = 0; i < count; ++i) {                                                 \
                const T u = us[i];                                                                \
                ys[i] = (result)(expression);                                                     \
            }                                                                                     \
        } else {                                                                                  \
            const T u = *us;                                                                      \
            for (int64_t i = 0; i < count; ++i) {                                                 \
                const T v = vs[i * b_stride];                                                     \
                ys[i] = (result)(expression);                                                     \
            }                                                                                     \
        }                                                                                         \
    }

#define RONDO_OP_FLOAT_KERNELS(name) [RONDO_DTYPE_F32] = name##_F32, [RONDO_DTYPE_F64] = name##_F64
#define RONDO_OP_SIGNED_KERNELS(name)                                                             \
    [RONDO_DTYPE_I8] = name##_I8, [RONDO_DTYPE_I16] = name##_I16, [RONDO_DTYPE_I32] = name##_I32, \
    [RONDO_DTYPE_I64] = name##_I64
#define RONDO_OP_UNSIGNED_KERNELS(name)                                                           \
    [RONDO_DTYPE_U8] = name##_U8, [RONDO_DTYPE_U16] = name##_U16, [RONDO_DTYPE_U32] = name##_U32, \
    [RONDO_DTYPE_U64] = name##_U64
#define RONDO_OP_NUMERIC_KERNELS(name) \
    RONDO_OP_FLOAT_KERNELS(name), RONDO_OP_SIGNED_KERNELS(name), RONDO_OP_UNSIGNED_KERNELS(name)

// Walks result, a and b row by row. `y` is dense, of shape `result`.
void rondo__binary_run(rondo__binary_kernel kernel, const rondo_shape *result, const void *a,
                       const rondo_shape *a_shape, const void *b, const rondo_shape *b_shape,
                       rondo_dtype operand_dtype, rondo_dtype result_dtype, void *y);
