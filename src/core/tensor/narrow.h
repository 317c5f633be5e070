// tensor/narrow.h — elements of 8, 4 and 2 bits: I4 to F8E8M0, one a byte in memory.
//
// Packed they are in ONNX files only, whose reader and writer turn them here: the first element is
// in the lowest bits of its byte, and what is left of the last byte is 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/tensor.h"

// 8, 4 or 2; 0 for a type that is not narrow.
unsigned rondo__narrow_get_bits(rondo_dtype dtype);
static inline bool rondo__dtype_is_narrow(rondo_dtype dtype) {
    return rondo__narrow_get_bits(dtype) != 0;
}
// I4, U4, I2, U2.
bool rondo__dtype_is_narrow_integer(rondo_dtype dtype);
// Bits of one element of any type.
size_t rondo__dtype_get_bits(rondo_dtype dtype);

typedef enum rondo__narrow_rounding {
    RONDO__NARROW_UP,
    RONDO__NARROW_DOWN,
    RONDO__NARROW_NEAREST,  // ties go up
} rondo__narrow_rounding;

// How a float becomes a narrow one, as the attributes of Cast say it.
typedef struct rondo__narrow_rule {
    bool is_unbounded;                // beyond the limits of an 8-bit float is NaN or infinity
    rondo__narrow_rounding rounding;  // of F8E8M0 alone
} rondo__narrow_rule;

// The element for a float; of integers the low bits. `rule` NULL: zeros.
uint8_t rondo__narrow_encode(rondo_dtype dtype, float value, const rondo__narrow_rule *rule);
// The same for floats one behind the other.
void rondo__narrow_encode_array(rondo_dtype dtype, const float *values, uint8_t *elements,
                                size_t count, const rondo__narrow_rule *rule);
// An integer's element, sign extended.
int32_t rondo__narrow_get_int(rondo_dtype dtype, uint8_t bits);

// Bytes of `count` elements as ONNX packs them; false when they cannot be counted.
bool rondo__dtype_get_packed_bytes(rondo_dtype dtype, size_t count, size_t *out_bytes);
// Between packed bytes and one element a byte; 8-bit types are copied.
void rondo__narrow_unpack(rondo_dtype dtype, const uint8_t *packed, size_t count,
                          uint8_t *elements);
void rondo__narrow_pack(rondo_dtype dtype, const uint8_t *elements, size_t count, uint8_t *packed);
