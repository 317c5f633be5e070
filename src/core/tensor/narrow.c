// tensor/narrow.c — see narrow.h.
// Source: OCP Microscaling Formats 1.0 (F4E2M1, F8E8M0), OCP 8-bit Floating Point 1.0 (F8E4M3FN,
// F8E5M2), the tables of ONNX's Cast.
// SPDX-License-Identifier: Apache-2.0
#include "tensor/narrow.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

// A small float: 1 sign bit, exponent, `fraction` bits. The largest finite magnitude is `largest`;
// `beyond` is what lies above it and `nan` what is no number: they get the sign unless they have
// one. F4E2M1 has no NaN, and ONNX's reference makes -0 of it.
typedef struct format {
    unsigned fraction;
    int bias;
    uint8_t sign, largest, beyond, nan;
    bool has_one_zero;  // 0x80 is NaN, its only one: neither it nor 0 has a sign
} format;

static const format formats[] = {
    [RONDO_DTYPE_F4E2M1 - RONDO_DTYPE_F4E2M1] = {1, 1, 0x08, 0x07, 0x07, 0x08, false},
    [RONDO_DTYPE_F8E4M3FN - RONDO_DTYPE_F4E2M1] = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, false},
    [RONDO_DTYPE_F8E4M3FNUZ - RONDO_DTYPE_F4E2M1] = {3, 8, 0x80, 0x7f, 0x80, 0x80, true},
    [RONDO_DTYPE_F8E5M2 - RONDO_DTYPE_F4E2M1] = {2, 15, 0x80, 0x7b, 0x7c, 0x7e, false},
    [RONDO_DTYPE_F8E5M2FNUZ - RONDO_DTYPE_F4E2M1] = {2, 16, 0x80, 0x7f, 0x80, 0x80, true},
};

static const format *find_format(rondo_dtype dtype) {
    return dtype >= RONDO_DTYPE_F4E2M1 && dtype <= RONDO_DTYPE_F8E5M2FNUZ
               ? &formats[dtype - RONDO_DTYPE_F4E2M1]
               : NULL;
}

unsigned rondo__narrow_get_bits(rondo_dtype dtype) {
    switch (dtype) {
        case RONDO_DTYPE_I2:
        case RONDO_DTYPE_U2:
            return 2;
        case RONDO_DTYPE_I4:
        case RONDO_DTYPE_U4:
        case RONDO_DTYPE_F4E2M1:
            return 4;
        case RONDO_DTYPE_F8E4M3FN:
        case RONDO_DTYPE_F8E4M3FNUZ:
        case RONDO_DTYPE_F8E5M2:
        case RONDO_DTYPE_F8E5M2FNUZ:
        case RONDO_DTYPE_F8E8M0:
            return 8;
        default:
            return 0;
    }
}

bool rondo__dtype_is_narrow_integer(rondo_dtype dtype) {
    return dtype >= RONDO_DTYPE_I4 && dtype <= RONDO_DTYPE_U2;
}

size_t rondo__dtype_get_bits(rondo_dtype dtype) {
    const unsigned narrow = rondo__narrow_get_bits(dtype);
    return narrow != 0 ? narrow : 8 * rondo_dtype_get_bytes(dtype);
}

// ---- to floats --------------------------------------------------------------------------------

int32_t rondo__narrow_get_int(rondo_dtype dtype, uint8_t bits) {
    switch (dtype) {
        case RONDO_DTYPE_I4:
            return (int32_t)((bits & 0xfu) ^ 0x8u) - 8;
        case RONDO_DTYPE_U4:
            return bits & 0xf;
        case RONDO_DTYPE_I2:
            return (int32_t)((bits & 0x3u) ^ 0x2u) - 2;
        case RONDO_DTYPE_U2:
            return bits & 0x3;
        default:
            return 0;
    }
}

float rondo_narrow_to_float(rondo_dtype dtype, uint8_t bits) {
    const format *f = find_format(dtype);
    if (dtype == RONDO_DTYPE_F8E8M0) {
        return bits == 0xff ? NAN : ldexpf(1.0f, (int)bits - 127);
    }
    if (f == NULL) {
        return (float)rondo__narrow_get_int(dtype, bits);
    }
    const unsigned magnitude = bits & (f->sign - 1u);
    if (f->has_one_zero && bits == 0x80) {
        return NAN;
    }
    float value = 0.0f;
    if (magnitude > f->largest) {
        value = magnitude == f->beyond && f->beyond != f->nan ? INFINITY : NAN;
    } else {
        const int exponent = (int)(magnitude >> f->fraction);
        const unsigned hidden = exponent > 0 ? 1u << f->fraction : 0;
        const unsigned fraction = (magnitude & ((1u << f->fraction) - 1u)) | hidden;
        value =
            ldexpf((float)fraction, (exponent > 0 ? exponent : 1) - f->bias - (int)f->fraction);
    }
    return (bits & f->sign) != 0 ? -value : value;
}

// ---- from floats ------------------------------------------------------------------------------

// The power of two in F8E8M0 that |value| becomes.
static uint8_t encode_power(float value, const rondo__narrow_rule *rule) {
    enum { LARGEST = 0xfe, NO_NUMBER = 0xff };
    const float magnitude = fabsf(value);
    if (isnan(value)) {
        return NO_NUMBER;
    }
    int exponent = -200;
    if (isinf(value)) {
        exponent = 200;
    } else if (magnitude > 0.0f) {
        const float fraction = 2.0f * frexpf(magnitude, &exponent);  // in [1, 2)
        exponent -= 1;
        exponent += (rule->rounding == RONDO__NARROW_UP && fraction > 1.0f) ||
                    (rule->rounding == RONDO__NARROW_NEAREST && fraction >= 1.5f);
    }
    if (exponent < -127) {
        return rule->is_unbounded ? NO_NUMBER : 0;
    }
    if (exponent > 127) {
        return rule->is_unbounded ? NO_NUMBER : LARGEST;
    }
    return (uint8_t)(exponent + 127);
}

static uint8_t add_sign(const format *f, uint8_t magnitude, uint8_t sign) {
    return (magnitude & f->sign) != 0 ? magnitude : (uint8_t)(magnitude | sign);
}

static uint8_t encode_float(const format *f, float value, bool is_unbounded) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint8_t sign = (bits >> 31) != 0 ? f->sign : 0;
    if (isnan(value)) {
        return add_sign(f, f->nan, sign);
    }
    // In units of the last place that the result has: whole numbers, rounded to even ties.
    uint32_t magnitude = f->largest + 1u;
    if (!isinf(value)) {
        int exponent;
        (void)frexpf(value, &exponent);
        const int least = 1 - f->bias;
        exponent = value == 0.0f || exponent - 1 < least ? least : exponent - 1;
        const float units = rintf(ldexpf(fabsf(value), (int)f->fraction - exponent));
        magnitude = ((uint32_t)(exponent - least) << f->fraction) + (uint32_t)units;
    }
    if (magnitude > f->largest) {
        return add_sign(f, is_unbounded ? f->beyond : f->largest, sign);
    }
    return magnitude == 0 && f->has_one_zero ? 0 : (uint8_t)(magnitude | sign);
}

// Towards zero; beyond 64 bits the nearest limit, NaN to 0, as for the wider integers.
static uint8_t encode_integer(rondo_dtype dtype, float value) {
    const unsigned mask = (1u << rondo__narrow_get_bits(dtype)) - 1u;
    if (value >= 9223372036854775808.0f) {
        return (uint8_t)mask;
    }
    if (value <= -9223372036854775808.0f || isnan(value)) {
        return 0;
    }
    return (uint8_t)((uint64_t)(int64_t)value & mask);
}

uint8_t rondo__narrow_encode(rondo_dtype dtype, float value, const rondo__narrow_rule *rule) {
    static const rondo__narrow_rule usual = {0};
    const format *f = find_format(dtype);
    rule = rule != NULL ? rule : &usual;
    return dtype == RONDO_DTYPE_F8E8M0 ? encode_power(value, rule)
           : f != NULL                 ? encode_float(f, value, rule->is_unbounded)
                                       : encode_integer(dtype, value);
}

uint8_t rondo_narrow_from_float(rondo_dtype dtype, float value) {
    return rondo__dtype_is_narrow(dtype) ? rondo__narrow_encode(dtype, value, NULL) : 0;
}

// ---- packing ----------------------------------------------------------------------------------

bool rondo__dtype_get_packed_bytes(rondo_dtype dtype, size_t count, size_t *out_bytes) {
    const unsigned bits = rondo__narrow_get_bits(dtype);
    if (bits == 0) {
        return rondo__mul_size(count, rondo_dtype_get_bytes(dtype), out_bytes);
    }
    const size_t each = 8 / bits;
    *out_bytes = count / each + (count % each != 0);
    return true;
}

void rondo__narrow_unpack(rondo_dtype dtype, const uint8_t *packed, size_t count,
                          uint8_t *elements) {
    const unsigned bits = rondo__narrow_get_bits(dtype);
    const size_t each = 8 / bits;
    const uint8_t mask = (uint8_t)((1u << bits) - 1u);
    for (size_t i = 0; i < count; ++i) {
        elements[i] = (uint8_t)(packed[i / each] >> (i % each * bits)) & mask;
    }
}

void rondo__narrow_pack(rondo_dtype dtype, const uint8_t *elements, size_t count, uint8_t *packed) {
    const unsigned bits = rondo__narrow_get_bits(dtype);
    const size_t each = 8 / bits;
    const unsigned mask = (1u << bits) - 1u;
    for (size_t i = 0; i < count; i += each) {
        unsigned byte = 0;
        for (size_t k = 0; k < each && i + k < count; ++k) {
            byte |= (elements[i + k] & mask) << (k * bits);
        }
        packed[i / each] = (uint8_t)byte;
    }
}
