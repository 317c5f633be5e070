// tensor/dtype.c — element types: sizes, names, half precision.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "rondo/tensor.h"

size_t rondo_dtype_get_bytes(rondo_dtype dtype) {
    switch ((int)dtype) {
#define RONDO_DTYPE_BYTES(name, value, bytes, text) \
    case value:                                     \
        return bytes;
        RONDO_DTYPE_MAP(RONDO_DTYPE_BYTES)
#undef RONDO_DTYPE_BYTES
        default:
            return 0;
    }
}

const char *rondo_dtype_get_name(rondo_dtype dtype) {
    switch ((int)dtype) {
#define RONDO_DTYPE_TEXT(name, value, bytes, text) \
    case value:                                    \
        return text;
        RONDO_DTYPE_MAP(RONDO_DTYPE_TEXT)
#undef RONDO_DTYPE_TEXT
        default:
            return "none";
    }
}

// Half: 1 sign, 5 exponent (bias 15), 10 fraction bits. Single: 1, 8 (bias 127), 23.
uint16_t rondo_f16_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & UINT32_C(0x7fffffff);
    if (magnitude > UINT32_C(0x7f800000)) {
        // NaN: keep the top of the payload and make it quiet, so that it stays NaN.
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    }
    if (magnitude >= UINT32_C(0x477ff000)) {
        return (uint16_t)(sign | 0x7c00u);  // 65520 and above round to infinity
    }
    if (magnitude < UINT32_C(0x33000001)) {
        return (uint16_t)sign;  // 2^-25 and below round to zero
    }
    uint32_t exponent = magnitude >> 23;
    uint32_t fraction = magnitude & UINT32_C(0x7fffff);
    uint32_t shift = 13;
    uint32_t result;
    if (exponent < 113) {
        // Subnormal in half: the hidden bit becomes explicit.
        fraction |= UINT32_C(0x800000);
        shift = 126 - exponent;
        result = fraction >> shift;
    } else {
        result = ((exponent - 112) << 10) | (fraction >> shift);
    }
    uint32_t rest = fraction & ((UINT32_C(1) << shift) - 1);
    uint32_t half = UINT32_C(1) << (shift - 1);
    if (rest > half || (rest == half && (result & 1u) != 0)) {
        ++result;  // may carry into the exponent, which is right
    }
    return (uint16_t)(sign | result);
}

float rondo_f16_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1fu;
    uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0) {
        // Zero or subnormal: fraction * 2^-24, exact in single precision.
        float magnitude = ldexpf((float)fraction, -24);
        return sign != 0 ? -magnitude : magnitude;
    }
    const uint32_t quiet = fraction != 0 ? UINT32_C(0x400000) : 0;  // as processors convert NaN
    uint32_t wide = exponent == 31 ? (sign | UINT32_C(0x7f800000) | quiet | (fraction << 13))
                                   : (sign | ((exponent + 112) << 23) | (fraction << 13));
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}
