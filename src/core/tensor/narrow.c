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

// X(dtype, the members of its format)
#define FORMAT_MAP(X)                                 \
    X(F4E2M1, 1, 1, 0x08, 0x07, 0x07, 0x08, false)    \
    X(F8E4M3FN, 3, 7, 0x80, 0x7e, 0x7f, 0x7f, false)  \
    X(F8E4M3FNUZ, 3, 8, 0x80, 0x7f, 0x80, 0x80, true) \
    X(F8E5M2, 2, 15, 0x80, 0x7b, 0x7c, 0x7e, false)   \
    X(F8E5M2FNUZ, 2, 16, 0x80, 0x7f, 0x80, 0x80, true)

static const format formats[] = {
#define FORMAT_ROW(name, ...) [RONDO_DTYPE_##name - RONDO_DTYPE_F4E2M1] = {__VA_ARGS__},
    FORMAT_MAP(FORMAT_ROW)
#undef FORMAT_ROW
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
        value = ldexpf((float)fraction, (exponent > 0 ? exponent : 1) - f->bias - (int)f->fraction);
    }
    return (bits & f->sign) != 0 ? -value : value;
}

// ---- from floats ------------------------------------------------------------------------------

static uint32_t get_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// For exponents of normal numbers.
static float get_power(int exponent) {
    const uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The power of two in F8E8M0 that |value| becomes.
static uint8_t encode_power(float value, const rondo__narrow_rule *rule) {
    enum { LARGEST = 0xfe, NO_NUMBER = 0xff };
    uint32_t bits = get_bits(value) & UINT32_C(0x7fffffff);
    int code = -1;
    if (isnan(value)) {
        return NO_NUMBER;
    }
    if (bits > 0) {
        code = (int)(bits >> 23);
        if (code == 0) {  // not normal: shifted until it looks as if it were
            code = 1;
            for (; bits < UINT32_C(0x00800000); bits <<= 1) {
                --code;
            }
        }
        const uint32_t fraction = bits & UINT32_C(0x007fffff);
        code += (rule->rounding == RONDO__NARROW_UP && fraction > 0) ||
                (rule->rounding == RONDO__NARROW_NEAREST && fraction >= UINT32_C(0x00400000));
    }
    if (code < 0 || code > LARGEST) {
        return rule->is_unbounded ? NO_NUMBER : code < 0 ? 0 : LARGEST;
    }
    return (uint8_t)code;
}

// In units of the last place that the result has it is a whole number below 32, rounded to even
// ties by adding a number whose last place is 1 and taking it away again. Infinity is beyond all.
static inline uint8_t encode_float(format f, float value, bool is_unbounded) {
    const uint32_t bits = get_bits(value);
    const uint32_t sign = (bits >> 31) != 0 ? f.sign : 0;
    const int least = 1 - f.bias;
    int exponent = (int)(bits >> 23 & 0xff) - 127;
    exponent = exponent < least ? least : exponent;
    const float scaled = fabsf(value) * get_power((int)f.fraction - exponent);
    const float units = (scaled + 0x1.8p23f) - 0x1.8p23f;
    const uint32_t whole = units < 32.0f ? (uint32_t)(int32_t)units : 32;
    uint32_t magnitude = ((uint32_t)(exponent - least) << f.fraction) + whole;
    const bool is_beyond = magnitude > f.largest;
    magnitude = !is_beyond ? magnitude : is_unbounded ? f.beyond : f.largest;
    magnitude = isnan(value) ? f.nan : magnitude;
    const bool has_sign = (magnitude & f.sign) == 0 && !(f.has_one_zero && magnitude == 0);
    return (uint8_t)(has_sign ? magnitude | sign : magnitude);
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
           : f != NULL                 ? encode_float(*f, value, rule->is_unbounded)
                                       : encode_integer(dtype, value);
}

void rondo__narrow_encode_array(rondo_dtype dtype, const float *values, uint8_t *elements,
                                size_t count, const rondo__narrow_rule *rule) {
    const bool is_unbounded = rule != NULL && rule->is_unbounded;
    switch (dtype) {
// Each format's numbers are known to its loop.
#define ENCODE_CASE(name, ...)                                                          \
    case RONDO_DTYPE_##name:                                                            \
        for (size_t i = 0; i < count; ++i) {                                            \
            elements[i] = encode_float((format){__VA_ARGS__}, values[i], is_unbounded); \
        }                                                                               \
        return;
        FORMAT_MAP(ENCODE_CASE)
#undef ENCODE_CASE
        default:
            for (size_t i = 0; i < count; ++i) {
                elements[i] = rondo__narrow_encode(dtype, values[i], rule);
            }
            return;
    }
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
