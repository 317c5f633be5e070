// SPDX-License-Identifier: Apache-2.0

#include "op/half.h"

void rondo__half_to_float_array(rondo_dtype dtype, const uint16_t *source, float *destination,
                                size_t count) {
    if (dtype == RONDO_DTYPE_BF16) {
        for (size_t i = 0; i < count; ++i) {
            destination[i] = rondo__bfloat_to_float(source[i]);
        }
    } else {
        for (size_t i = 0; i < count; ++i) {
            destination[i] = rondo_f16_to_float(source[i]);
        }
    }
}

void rondo__half_from_float_array(rondo_dtype dtype, const float *source, uint16_t *destination,
                                  size_t count) {
    if (dtype == RONDO_DTYPE_BF16) {
        for (size_t i = 0; i < count; ++i) {
            destination[i] = rondo__bfloat_from_float(source[i]);
        }
    } else {
        for (size_t i = 0; i < count; ++i) {
            destination[i] = rondo_f16_from_float(source[i]);
        }
    }
}
