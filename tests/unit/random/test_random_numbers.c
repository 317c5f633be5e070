// Random numbers apart from generators: the words against the paper's known answers, the numbers
// against the C library, and every instruction set against the others.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "random/cu/philox.cuh"
#include "random/cu/random_numbers.cuh"
#include "random/random_loops.h"
#include "rondo/random.h"
#include "rondo/tensor.h"
#include "support/test.h"

// Random123's kat_vectors, philox4x32 10: counter, key, result.
static const uint32_t known_answers[][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e,
     0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
     0x5001e420, 0x24126ea1},
};

TEST(test_random_numbers__words_are_the_known_answers) {
    for (size_t i = 0; i < sizeof known_answers / sizeof *known_answers; ++i) {
        const uint32_t *known = known_answers[i];
        uint32_t words[4];
        rondo_random_philox((uint64_t)known[5] << 32 | known[4],
                            (uint64_t)known[3] << 32 | known[2],
                            (uint64_t)known[1] << 32 | known[0], words);
        assert_memory_equal(words, known + 6, sizeof words);
    }
    uint32_t words[4];
    uint32_t expected[4];
    const uint32_t counter[4] = {5, 1, 0, 0};
    rondo_philox((uint64_t)3 << 32 | 7, (uint64_t)1 << 32 | 5, words);
    rondo_philox_words(7, 3, counter, expected);
    assert_memory_equal(words, expected, sizeof words);
}

// ---- instruction sets -------------------------------------------------------------------------

enum { COUNT = 4099, KERNELS = RONDO__RANDOM_SET };

typedef struct loops_entry {
    const char *name;
    const rondo__random_loops *loops;
} loops_entry;

static size_t list_loops(loops_entry *out) {
    size_t count = 0;
    out[count++] = (loops_entry){"baseline", &rondo__random_loops_baseline};
#if defined(__x86_64__)
    extern const rondo__random_loops rondo__random_loops_avx2;
    extern const rondo__random_loops rondo__random_loops_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        out[count++] = (loops_entry){"avx2", &rondo__random_loops_avx2};
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        out[count++] = (loops_entry){"avx512", &rondo__random_loops_avx512};
    }
#endif
    return count;
}

TEST(test_random_numbers__all_instruction_sets_agree) {
    loops_entry entries[3];
    const size_t count = list_loops(entries);
    // The offset carries into the counter's high word within the run.
    const uint64_t position[2] = {0x123456789abcdef0, 0xfffffff0};
    static double x[COUNT];
    static double first[COUNT];
    static double other[COUNT];
    static uint8_t first_mask[COUNT];
    static uint8_t mask[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (double)i * 0.37 - 100.0;
    }
    const rondo_dtype dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F16, RONDO_DTYPE_BF16,
                                  RONDO_DTYPE_F64};
    for (int kernel = 0; kernel < KERNELS; ++kernel) {
        const bool is_f64 =
            kernel == RONDO__RANDOM_UNIFORM_F64 || kernel == RONDO__RANDOM_NORMAL_F64;
        for (size_t d = 0; d < 4; ++d) {
            rondo__random_arguments arguments = {.state = position,
                                                 .relative = 3,
                                                 .count = COUNT,
                                                 .in = x,
                                                 .a = 1.25,
                                                 .b = 3.5,
                                                 .c = 4.625,
                                                 .bits = 8,
                                                 .threshold = 0x60000000,
                                                 .dtype = (uint64_t)dtypes[d]};
            if (kernel == RONDO__RANDOM_BERNOULLI) {
                arguments.dtype = (uint64_t)1 << d;
                arguments.in_dtype = (uint64_t)dtypes[d];
            }
            for (size_t e = 0; e < count; ++e) {
                memset(other, 0x5a, sizeof other);
                memset(mask, 0x5a, sizeof mask);
                arguments.out = e == 0 ? first : other;
                arguments.mask = e == 0 ? first_mask : mask;
                if (e == 0) {
                    memset(first, 0x5a, sizeof first);
                    memset(first_mask, 0x5a, sizeof first_mask);
                }
                const uint64_t groups = is_f64 ? (COUNT + 1) / 2 : (COUNT + 3) / 4;
                // In two parts, the second of them short.
                entries[e].loops->run[kernel](&arguments, 0, groups - 5);
                entries[e].loops->run[kernel](&arguments, groups - 5, groups);
                if (e > 0 && (memcmp(first, other, sizeof first) != 0 ||
                              memcmp(first_mask, mask, sizeof mask) != 0)) {
                    fail_msg("kernel %d, dtype %d: %s differs from %s", kernel, (int)dtypes[d],
                             entries[e].name, entries[0].name);
                }
            }
        }
    }
    assert_true(count >= 1);
}

// ---- accuracy ---------------------------------------------------------------------------------

TEST(test_random_numbers__normals_are_those_of_the_formula) {
    double worst_f32 = 0;
    double worst_f64 = 0;
    for (uint64_t i = 0; i < 200000; ++i) {
        uint32_t words[4];
        rondo_random_philox(1, 0, i, words);
        if (i < 4) {
            words[0] = i & 1 ? 0xffffffff : 0;  // the ends of the radius
            words[1] = i & 2 ? 0xffffffff : 0;
        }
        float a, b;
        rondo_normal_f32(words[0], words[1], &a, &b);
        const double u = (double)fmaf((float)words[0], 0x1p-32f, 0x1p-33f);
        const double r = sqrt(-2 * log(u));
        const double angle = 2 * 3.14159265358979323846 * (double)words[1] * 0x1p-32;
        assert_true(isfinite(a) && isfinite(b));
        worst_f32 = fmax(worst_f32,
                         fmax(fabs((double)a - r * cos(angle)), fabs((double)b - r * sin(angle))));

        const uint64_t w0 = (uint64_t)words[1] << 32 | words[0];
        const uint64_t w1 = (uint64_t)words[3] << 32 | words[2];
        double c, d;
        rondo_normal_f64(w0, w1, &c, &d);
        const double v = fma((double)(w0 >> 11), 0x1p-53, 0x1p-54);
        const double s = sqrt(-2 * log(v));
        const double turn = 2 * 3.14159265358979323846 * ((double)w1 * 0x1p-64);
        assert_true(isfinite(c) && isfinite(d));
        worst_f64 = fmax(worst_f64, fmax(fabs(c - s * cos(turn)), fabs(d - s * sin(turn))));
    }
    print_message("largest error of normals: %.3g (f32), %.3g (f64)\n", worst_f32, worst_f64);
    assert_true(worst_f32 < 2e-6);
    assert_true(worst_f64 < 1e-14);
}

TEST(test_random_numbers__halves_round_as_the_tensors_do) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const bool is_nan = (bits & 0x7fff) > 0x7c00;
        const float value = rondo_f16_value((uint16_t)bits);
        if (is_nan) {
            assert_true(value != value);
            assert_int_equal(rondo_f16_bits(value), 0x7fff);
            continue;
        }
        const float expected = rondo_f16_to_float((uint16_t)bits);
        assert_memory_equal(&value, &expected, sizeof value);
        assert_int_equal(rondo_f16_bits(value), bits);
    }
    for (uint64_t i = 0; i < 100000; ++i) {
        uint32_t words[4];
        rondo_random_philox(2, 0, i, words);
        // Exponents around those of half, both signs, ties now and then.
        const uint32_t bits = (words[0] & 0x807fffff) | (96 + words[1] % 56) << 23;
        const float value = rondo_bits_to_f32(words[2] % 4 == 0 ? bits & 0xfffff000 : bits);
        assert_int_equal(rondo_f16_bits(value), rondo_f16_from_float(value));
    }
    assert_int_equal(rondo_bf16_bits(1.0f), 0x3f80);
    assert_int_equal(rondo_bf16_bits(rondo_bits_to_f32(0x3f808000)), 0x3f80);
    assert_int_equal(rondo_bf16_bits(rondo_bits_to_f32(0x3f818000)), 0x3f82);
    assert_int_equal(rondo_bf16_bits(rondo_bits_to_f32(0x7fc00001)), 0x7fff);
}

TEST(test_random_numbers__thresholds_are_exact) {
    assert_int_equal(rondo_threshold_f64(0.0), 0);
    assert_int_equal(rondo_threshold_f64(1.0), UINT64_C(1) << 32);
    assert_int_equal(rondo_threshold_f64(0.5), UINT64_C(1) << 31);
    assert_int_equal(rondo_threshold_f64(0x1p-32), 1);
    assert_int_equal(rondo_threshold_f64(0x1p-40), 1);
    assert_int_equal(rondo_threshold_f64((double)NAN), 0);
    assert_int_equal(rondo_threshold_f64(-1.0), 0);
    assert_int_equal(rondo_threshold_f64(7.0), UINT64_C(1) << 32);
    for (uint32_t i = 0; i < 1000; ++i) {
        const float p = (float)i / 999.0f;
        assert_int_equal(rondo_threshold_f32(p), rondo_threshold_f64((double)p));
    }
}

TEST_MAIN()
