// Arrays of half precision are converted as single elements are, bit for bit, whatever instructions
// the processor has for it.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "op/half.h"
#include "support/test.h"

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

TEST(test_op_half__all_halves_widen) {
    enum { COUNT = 1 << 16 };
    static uint16_t halves[COUNT];
    static float wide[COUNT];
    for (uint32_t i = 0; i < COUNT; ++i) {
        halves[i] = (uint16_t)i;
    }
    rondo__half_to_float_array(RONDO_DTYPE_F16, halves, wide, COUNT);
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_int_equal(to_bits(wide[i]), to_bits(rondo_f16_to_float((uint16_t)i)));
    }
}

static void expect_narrow(const float *values, size_t count) {
    uint16_t halves[256];
    rondo__half_from_float_array(RONDO_DTYPE_F16, values, halves, count);
    for (size_t i = 0; i < count; ++i) {
        if (halves[i] != rondo_f16_from_float(values[i])) {
            fail_msg("0x%08x becomes 0x%04x, alone 0x%04x", (unsigned)to_bits(values[i]),
                     (unsigned)halves[i], (unsigned)rondo_f16_from_float(values[i]));
        }
    }
}

// Each half with its neighbours in single precision, and the middle to the next half with its own.
TEST(test_op_half__ties_narrow) {
    for (uint32_t h = 0; h < 1u << 16; ++h) {
        const uint32_t bits = to_bits(rondo_f16_to_float((uint16_t)h));
        float values[9];  // one more than the instructions take at once
        for (uint32_t i = 0; i < 9; ++i) {
            const uint32_t middle = i < 5 ? 0 : 0x1000;
            values[i] = from_bits(bits + middle + i % 5 - 2);
        }
        expect_narrow(values, 9);
    }
}

TEST(test_op_half__any_bits_narrow) {
    uint64_t seed = 1;
    for (int round = 0; round < 20000; ++round) {
        float values[251];
        for (size_t i = 0; i < 251; ++i) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            // Half of them near what a half can hold.
            const uint32_t bits = (uint32_t)(seed >> 32);
            values[i] = from_bits(i % 2 == 0 ? bits
                                             : (bits & UINT32_C(0x87ffffff)) |
                                                   (UINT32_C(0x30000000) + (bits & 0x18000000)));
        }
        expect_narrow(values, (size_t)(round % 251) + 1);
    }
}

TEST_MAIN()
