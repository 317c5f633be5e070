// op/half.h — f16 and bf16 arrays to f32 and back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rondo/tensor.h"

static inline float rondo__bfloat_to_float(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

// Rounds to nearest even; NaN stays NaN.
static inline uint16_t rondo__bfloat_from_float(float value) {
    uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    if ((wide & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000)) {
        return (uint16_t)((wide >> 16) | 0x40u);
    }
    wide += UINT32_C(0x7fff) + ((wide >> 16) & 1u);
    return (uint16_t)(wide >> 16);
}

// `dtype` is F16 or BF16.
void rondo__half_to_float_array(rondo_dtype dtype, const uint16_t *source, float *destination,
                                size_t count);
void rondo__half_from_float_array(rondo_dtype dtype, const float *source, uint16_t *destination,
                                  size_t count);

static inline int rondo__is_half(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16;
}
