// Elements of 8, 4 and 2 bits: every code to a float, every f16 and bf16 to a code, packing.
//
// The expected results are those of ml_dtypes 0.6 (onnx.numpy_helper's saturate_cast and
// to_float8e8m0 where the rules are ONNX's), as one hash for each list.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "tensor/narrow.h"

static const uint64_t hash_seed = UINT64_C(0xcbf29ce484222325);

// FNV-1a.
static uint64_t hash_byte(uint64_t hash, uint8_t byte) {
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

static uint64_t hash_float(uint64_t hash, float value) {
    uint8_t bytes[4];
    memcpy(bytes, &value, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; ++i) {
        hash = hash_byte(hash, bytes[i]);
    }
    return hash;
}

// Number `i` of all floats of 16 bits.
static float get_half(rondo_dtype dtype, uint32_t i) {
    const uint32_t bits = i << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return dtype == RONDO_DTYPE_F16 ? rondo_f16_to_float((uint16_t)i) : value;
}

TEST(test_tensor_narrow__codes_to_floats) {
    static const struct {
        rondo_dtype dtype;
        uint32_t count;
        uint64_t hash;  // with 0 in place of NaN
    } rows[] = {
        {RONDO_DTYPE_F4E2M1, 16, UINT64_C(0x2403bb76b85dfea5)},
        {RONDO_DTYPE_F8E4M3FN, 256, UINT64_C(0x854cabd1defe4645)},
        {RONDO_DTYPE_F8E4M3FNUZ, 256, UINT64_C(0x2a7400edefc937a5)},
        {RONDO_DTYPE_F8E5M2, 256, UINT64_C(0xa5377db4cd98b445)},
        {RONDO_DTYPE_F8E5M2FNUZ, 256, UINT64_C(0x6aba1f9f0b3e0fa5)},
        {RONDO_DTYPE_F8E8M0, 256, UINT64_C(0x6a9ffc41c1c66d68)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        uint64_t hash = hash_seed;
        for (uint32_t i = 0; i < rows[r].count; ++i) {
            const float value = rondo_narrow_to_float(rows[r].dtype, (uint8_t)i);
            const rondo__narrow_rule rule = {.rounding = RONDO__NARROW_DOWN};
            hash = hash_float(hash, isnan(value) ? 0.0f : value);
            if (!isnan(value) && !isinf(value)) {  // and back
                assert_int_equal(rondo__narrow_encode(rows[r].dtype, value, &rule), i);
            }
        }
        if (hash != rows[r].hash) {
            fail_msg("%s: other numbers", rondo_dtype_get_name(rows[r].dtype));
        }
    }
    for (int32_t i = 0; i < 256; ++i) {  // the bits above do not count
        assert_int_equal(rondo__narrow_get_int(RONDO_DTYPE_U4, (uint8_t)i), i % 16);
        assert_int_equal(rondo__narrow_get_int(RONDO_DTYPE_I4, (uint8_t)i), (i + 8) % 16 - 8);
        assert_int_equal(rondo__narrow_get_int(RONDO_DTYPE_U2, (uint8_t)i), i % 4);
        assert_int_equal(rondo__narrow_get_int(RONDO_DTYPE_I2, (uint8_t)i), (i + 2) % 4 - 2);
        assert_true(rondo_narrow_to_float(RONDO_DTYPE_F4E2M1, (uint8_t)i) ==
                    rondo_narrow_to_float(RONDO_DTYPE_F4E2M1, (uint8_t)(i % 16)));
    }
}

TEST(test_tensor_narrow__floats_to_codes) {
    static const struct {
        rondo_dtype dtype, from;
        uint64_t saturated, unbounded;
    } rows[] = {
        {RONDO_DTYPE_F4E2M1, RONDO_DTYPE_F16, UINT64_C(0x1fb1dba66200138b),
         UINT64_C(0x1fb1dba66200138b)},
        {RONDO_DTYPE_F4E2M1, RONDO_DTYPE_BF16, UINT64_C(0xfb418570cc66248b),
         UINT64_C(0xfb418570cc66248b)},
        {RONDO_DTYPE_F8E4M3FN, RONDO_DTYPE_F16, UINT64_C(0xaf47090016b81063),
         UINT64_C(0x427aaebb3ee1dd63)},
        {RONDO_DTYPE_F8E4M3FN, RONDO_DTYPE_BF16, UINT64_C(0xd126f2d8d2ed16d3),
         UINT64_C(0x230e22d8cab98a73)},
        {RONDO_DTYPE_F8E4M3FNUZ, RONDO_DTYPE_F16, UINT64_C(0x8085b2e0380086e3),
         UINT64_C(0x4e68c3bcff07e86d)},
        {RONDO_DTYPE_F8E4M3FNUZ, RONDO_DTYPE_BF16, UINT64_C(0x2cebd7e9234e80f3),
         UINT64_C(0x85296e5e38c36ded)},
        {RONDO_DTYPE_F8E5M2, RONDO_DTYPE_F16, UINT64_C(0x26fad67d8c0b8573),
         UINT64_C(0x61911f52756e0a25)},
        {RONDO_DTYPE_F8E5M2, RONDO_DTYPE_BF16, UINT64_C(0x855d40493170ce93),
         UINT64_C(0xdc6cf332c1ad7525)},
        {RONDO_DTYPE_F8E5M2FNUZ, RONDO_DTYPE_F16, UINT64_C(0x0d13f62be652bd63),
         UINT64_C(0x9b8fc14b6031566d)},
        {RONDO_DTYPE_F8E5M2FNUZ, RONDO_DTYPE_BF16, UINT64_C(0xd903eac4738ac443),
         UINT64_C(0x211a8d8442070f6d)},
    };
    static const rondo__narrow_rule unbounded = {.is_unbounded = true};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        uint64_t saturated_hash = hash_seed;
        uint64_t unbounded_hash = hash_seed;
        for (uint32_t i = 0; i < 65536; ++i) {
            const float value = get_half(rows[r].from, i);
            if (!isnan(value)) {
                saturated_hash =
                    hash_byte(saturated_hash, rondo_narrow_from_float(rows[r].dtype, value));
                unbounded_hash = hash_byte(unbounded_hash,
                                           rondo__narrow_encode(rows[r].dtype, value, &unbounded));
            }
        }
        if (saturated_hash != rows[r].saturated || unbounded_hash != rows[r].unbounded) {
            fail_msg("%s of %s: other numbers", rondo_dtype_get_name(rows[r].dtype),
                     rondo_dtype_get_name(rows[r].from));
        }
    }
}

TEST(test_tensor_narrow__nan) {
    static const struct {
        rondo_dtype dtype;
        uint8_t positive, negative;
    } rows[] = {
        {RONDO_DTYPE_F4E2M1, 0x08, 0x08},
        {RONDO_DTYPE_F8E4M3FN, 0x7f, 0xff},
        {RONDO_DTYPE_F8E4M3FNUZ, 0x80, 0x80},
        {RONDO_DTYPE_F8E5M2, 0x7e, 0xfe},
        {RONDO_DTYPE_F8E5M2FNUZ, 0x80, 0x80},
        {RONDO_DTYPE_F8E8M0, 0xff, 0xff},
        {RONDO_DTYPE_I4, 0, 0},
        {RONDO_DTYPE_F32, 0, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        const float nan = fabsf(NAN);
        assert_int_equal(rondo_narrow_from_float(rows[r].dtype, nan), rows[r].positive);
        assert_int_equal(rondo_narrow_from_float(rows[r].dtype, -nan), rows[r].negative);
    }
    assert_true(isnan(rondo_narrow_to_float(RONDO_DTYPE_F8E4M3FN, 0xff)));
    assert_true(isnan(rondo_narrow_to_float(RONDO_DTYPE_F8E5M2FNUZ, 0x80)));
    assert_true(isnan(rondo_narrow_to_float(RONDO_DTYPE_F8E5M2, 0x7d)));
    assert_true(rondo_narrow_to_float(RONDO_DTYPE_F8E5M2, 0xfc) == -INFINITY);
}

// Of all normal numbers; what lies below them the reference rounds too high.
TEST(test_tensor_narrow__powers_of_two) {
    static const struct {
        rondo__narrow_rounding rounding;
        rondo_dtype from;
        uint64_t saturated, unbounded;
    } rows[] = {
        {RONDO__NARROW_UP, RONDO_DTYPE_F16, UINT64_C(0xadaf9e8a39221b2f),
         UINT64_C(0xadaf9e8a39221b2f)},
        {RONDO__NARROW_UP, RONDO_DTYPE_BF16, UINT64_C(0x05aec6f8d42ffbda),
         UINT64_C(0xc31ae442de1d805b)},
        {RONDO__NARROW_DOWN, RONDO_DTYPE_F16, UINT64_C(0x49aa64ea4be92512),
         UINT64_C(0x49aa64ea4be92512)},
        {RONDO__NARROW_DOWN, RONDO_DTYPE_BF16, UINT64_C(0x288988b2d45f2fa5),
         UINT64_C(0x288988b2d45f2fa5)},
        {RONDO__NARROW_NEAREST, RONDO_DTYPE_F16, UINT64_C(0x048e281b8c65dd87),
         UINT64_C(0x048e281b8c65dd87)},
        {RONDO__NARROW_NEAREST, RONDO_DTYPE_BF16, UINT64_C(0x52d9b51480b7d365),
         UINT64_C(0x41f898b253c3d925)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        uint64_t hashes[2] = {hash_seed, hash_seed};
        for (uint32_t i = 0; i < 65536; ++i) {
            const float value = get_half(rows[r].from, i);
            for (int k = 0; k < 2 && isnormal(value) && value > 0.0f; ++k) {
                const rondo__narrow_rule rule = {.is_unbounded = k == 1,
                                                 .rounding = rows[r].rounding};
                hashes[k] =
                    hash_byte(hashes[k], rondo__narrow_encode(RONDO_DTYPE_F8E8M0, value, &rule));
            }
        }
        if (hashes[0] != rows[r].saturated || hashes[1] != rows[r].unbounded) {
            fail_msg("row %zu: other numbers", r);
        }
    }
    // The table of ONNX's Cast, and the least number.
    static const rondo__narrow_rule nearest = {true, RONDO__NARROW_NEAREST};
    assert_int_equal(rondo_narrow_from_float(RONDO_DTYPE_F8E8M0, 0.0f), 0);
    assert_int_equal(rondo_narrow_from_float(RONDO_DTYPE_F8E8M0, INFINITY), 0xfe);
    assert_int_equal(rondo_narrow_from_float(RONDO_DTYPE_F8E8M0, 1e-44f), 0);
    assert_int_equal(rondo_narrow_from_float(RONDO_DTYPE_F8E8M0, ldexpf(1.0f, -127)), 0);
    assert_int_equal(rondo_narrow_from_float(RONDO_DTYPE_F8E8M0, ldexpf(1.25f, -127)), 1);
    assert_int_equal(rondo__narrow_encode(RONDO_DTYPE_F8E8M0, 0.0f, &nearest), 0xff);
    assert_int_equal(rondo__narrow_encode(RONDO_DTYPE_F8E8M0, INFINITY, &nearest), 0xff);
    assert_int_equal(rondo__narrow_encode(RONDO_DTYPE_F8E8M0, ldexpf(1.25f, -127), &nearest), 0);
    assert_int_equal(rondo__narrow_encode(RONDO_DTYPE_F8E8M0, ldexpf(1.5f, -127), &nearest), 1);
}

TEST(test_tensor_narrow__integers_wrap) {
    static const struct {
        rondo_dtype dtype;
        uint64_t hash;
    } rows[] = {{RONDO_DTYPE_I4, UINT64_C(0x9b4a3ad3a10bc325)},
                {RONDO_DTYPE_U4, UINT64_C(0x9b4a3ad3a10bc325)},
                {RONDO_DTYPE_I2, UINT64_C(0xe340b942ce999f25)},
                {RONDO_DTYPE_U2, UINT64_C(0xe340b942ce999f25)}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        uint64_t hash = hash_seed;
        for (uint32_t i = 0; i < 65536; ++i) {
            const float value = get_half(RONDO_DTYPE_F16, i);
            hash = isnan(value) || isinf(value)
                       ? hash
                       : hash_byte(hash, rondo_narrow_from_float(rows[r].dtype, value));
        }
        if (hash != rows[r].hash) {
            fail_msg("%s: other numbers", rondo_dtype_get_name(rows[r].dtype));
        }
    }
}

TEST(test_tensor_narrow__packing) {
    static const uint8_t elements[5] = {0x1, 0xf2, 0x3, 0x4, 0x5};
    static const uint8_t fours[3] = {0x21, 0x43, 0x05}, twos[2] = {0x39, 0x01};
    uint8_t packed[3], unpacked[5];
    size_t bytes = 0;
    assert_true(rondo__dtype_get_packed_bytes(RONDO_DTYPE_I4, 5, &bytes));
    assert_int_equal(bytes, 3);
    rondo__narrow_pack(RONDO_DTYPE_I4, elements, 5, packed);
    assert_memory_equal(packed, fours, 3);
    rondo__narrow_unpack(RONDO_DTYPE_I4, packed, 5, unpacked);
    for (size_t i = 0; i < 5; ++i) {
        assert_int_equal(unpacked[i], elements[i] & 0xf);
    }
    assert_true(rondo__dtype_get_packed_bytes(RONDO_DTYPE_U2, 5, &bytes));
    assert_int_equal(bytes, 2);
    rondo__narrow_pack(RONDO_DTYPE_U2, elements, 5, packed);
    assert_memory_equal(packed, twos, 2);
    rondo__narrow_unpack(RONDO_DTYPE_U2, packed, 5, unpacked);
    for (size_t i = 0; i < 5; ++i) {
        assert_int_equal(unpacked[i], elements[i] & 0x3);
    }
    assert_true(rondo__dtype_get_packed_bytes(RONDO_DTYPE_F8E5M2, SIZE_MAX, &bytes));
    assert_true(bytes == SIZE_MAX);
    assert_true(rondo__dtype_get_packed_bytes(RONDO_DTYPE_U2, SIZE_MAX, &bytes));
    assert_true(bytes == SIZE_MAX / 4 + 1);
    assert_false(rondo__dtype_get_packed_bytes(RONDO_DTYPE_C128, SIZE_MAX / 8, &bytes));
}

TEST_MAIN()
