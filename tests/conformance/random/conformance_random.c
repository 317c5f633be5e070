// What rondo/random.h promises of the numbers, the order of uses and misuse.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "conformance/random/random_support.h"

static void *take(suite_context *context, size_t bytes) {
    return suite_allocate(context, RONDO_MEMORY_DEVICE, (bytes + 3) / 4);
}

// ---- the same bits everywhere -----------------------------------------------------------------

enum { SAMPLE_COUNT = 1001 };

static rondo_status sample(rondo_generator *generator, rondo_stream *stream, int op,
                           rondo_dtype dtype, void *out, const void *in, uint8_t *mask) {
    switch (op) {
        case 0:
            return rondo_random_uniform(generator, stream, dtype, out, SAMPLE_COUNT, -1.0, 3.0);
        case 1:
            return rondo_random_normal(generator, stream, dtype, out, SAMPLE_COUNT, 0.5, 2.0);
        case 2:
            return rondo_random_bernoulli(generator, stream, dtype, out, SAMPLE_COUNT, 0.3);
        case 3:
            return rondo_random_bernoulli_each(generator, stream, dtype, in, RONDO_DTYPE_U8, out,
                                               SAMPLE_COUNT);
        default:
            return rondo_random_dropout(generator, stream, dtype, in, out, mask, SAMPLE_COUNT, 0.4);
    }
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

// Of all dtypes, aligned to whole groups or to elements only: FNV-1a of each op's results.
SUITE_CASE(test_conformance_random__numbers_have_golden_bits) {
    static const uint64_t golden[5][4] = {
        // uniform
        {UINT64_C(0xe16f6aac14a74b39), UINT64_C(0xe26ae95c603a6445), UINT64_C(0x861e1c06b067ca1d),
         UINT64_C(0x163f91383d77542d)},
        // normal
        {UINT64_C(0x5f95226b320b9d90), UINT64_C(0xc663feca68ae710f), UINT64_C(0xff0bddbb17b3e290),
         UINT64_C(0xee97888ac1306cdc)},
        // bernoulli
        {UINT64_C(0xa99aa2822fa9e655), UINT64_C(0x25893d07fa0cac85), UINT64_C(0x211f00794e4d334d),
         UINT64_C(0xf2fecb75d0f2e65d)},
        // bernoulli_each
        {UINT64_C(0xe1624393db91942a), UINT64_C(0xe1624393db91942a), UINT64_C(0xe1624393db91942a),
         UINT64_C(0x2e938ded77dfe66b)},
        // dropout
        {UINT64_C(0xafeced1eff0887f4), UINT64_C(0x454fd5359c0c0f3e), UINT64_C(0x9b4ab76dba0ae65a),
         UINT64_C(0x9496aa5e9f19f259)},
    };
    static const rondo_dtype dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F64, RONDO_DTYPE_F16,
                                         RONDO_DTYPE_BF16};
    rondo_generator *generator = suite_create_generator(context, 0);
    const size_t room = (SAMPLE_COUNT + 3) * sizeof(double);
    char *in = take(context, room);
    char *out = take(context, room);
    uint8_t *mask = take(context, room);
    // Inputs of each dtype: multiples of 1/1024 from 0 to 1.
    static double f64[SAMPLE_COUNT + 1];
    static float f32[SAMPLE_COUNT + 1];
    static uint16_t half[2][SAMPLE_COUNT + 1];
    for (int i = 0; i <= SAMPLE_COUNT; ++i) {
        f64[i] = i / 1024.0;
        f32[i] = (float)f64[i];
        uint32_t bits;
        memcpy(&bits, &f32[i], sizeof bits);
        half[0][i] = rondo_f16_from_float(f32[i]);
        half[1][i] = (uint16_t)(bits >> 16);
    }
    const void *const inputs[] = {f32, f64, half[0], half[1]};
    for (int op = 0; op < 5; ++op) {
        for (int d = 0; d < 4; ++d) {
            const size_t bytes = rondo_dtype_get_bytes(dtypes[d]);
            const size_t out_bytes = op == 3 ? 1 : bytes;
            for (size_t shift = 0; shift < 2; ++shift) {
                static char result[sizeof f64];
                static uint8_t kept[SAMPLE_COUNT];
                char *in_here = in + shift * bytes;
                char *out_here = out + shift * out_bytes;
                ASSERT_OK(rondo_stream_copy(context->stream, in_here, inputs[d],
                                            SAMPLE_COUNT * bytes, RONDO_COPY_HOST_TO_DEVICE));
                suite_set(context, (uint32_t *)(void *)out, 0x5b5b5b5b, room / 4);
                // The counter's low word overflows within the op.
                const rondo_generator_state place = {.seed = UINT64_C(0x0123456789abcdef),
                                                     .offset = UINT64_C(0x1fffffff0)};
                ASSERT_OK(rondo_generator_set_state(generator, &place));
                ASSERT_OK(sample(generator, context->stream, op, dtypes[d], out_here, in_here,
                                 mask + shift));
                const uint64_t counters = dtypes[d] == RONDO_DTYPE_F64 && op < 2 ? 501 : 251;
                ASSERT_STANDS(generator, place.seed, place.offset + counters);
                suite_read(context, result, out_here, SAMPLE_COUNT * out_bytes);
                uint64_t hash =
                    hash_bytes(UINT64_C(0xcbf29ce484222325), result, SAMPLE_COUNT * out_bytes);
                if (op == 4) {
                    suite_read(context, kept, mask + shift, SAMPLE_COUNT);
                    hash = hash_bytes(hash, kept, SAMPLE_COUNT);
                }
                if (hash != golden[op][d]) {
                    print_error("op %d, %s, shift %zu: 0x%016llx, not 0x%016llx\n", op,
                                rondo_dtype_get_name(dtypes[d]), shift, (unsigned long long)hash,
                                (unsigned long long)golden[op][d]);
                    fail();
                }
                // Nothing is written behind the end.
                uint8_t behind = 0;
                suite_read(context, &behind, out_here + SAMPLE_COUNT * out_bytes, 1);
                assert_int_equal(behind, 0x5b);
            }
        }
    }
    rondo_generator_release(generator);
}

// ---- distributions ----------------------------------------------------------------------------

enum { MANY = 1 << 20, BINS = 256 };

// Fails unless |value - expected| is within `deviations` of `deviation`; NaN fails.
static void assert_near(double value, double expected, double deviation, const char *what) {
    if (!(fabs(value - expected) <= 5 * deviation)) {
        fail_msg("%s is %g, not within five standard deviations (%g) of %g", what, value, deviation,
                 expected);
    }
}

static void assert_chi_square(const uint32_t *counts, const double *expected, const char *what) {
    double sum = 0;
    for (int i = 0; i < BINS; ++i) {
        sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    }
    assert_near(sum, BINS - 1, sqrt(2.0 * (BINS - 1)), what);
}

SUITE_CASE(test_conformance_random__uniform_numbers_are_even) {
    rondo_generator *generator = suite_create_generator(context, 2026);
    float *out = take(context, MANY * sizeof *out);
    float *x = malloc(MANY * sizeof *x);
    assert_non_null(x);
    ASSERT_OK(rondo_random_uniform(generator, context->stream, RONDO_DTYPE_F32, out, MANY, 0, 1));
    suite_read(context, x, out, MANY * sizeof *x);
    uint32_t counts[BINS] = {0};
    double expected[BINS];
    double sum = 0;
    double squares = 0;
    double lagged = 0;
    for (int i = 0; i < MANY; ++i) {
        assert_true(x[i] >= 0.0f && x[i] < 1.0f);
        ++counts[(int)(x[i] * BINS)];
        sum += (double)x[i];
        squares += ((double)x[i] - 0.5) * ((double)x[i] - 0.5);
        lagged += ((double)x[i] - 0.5) * ((double)x[(i + 1) % MANY] - 0.5);
    }
    for (int i = 0; i < BINS; ++i) {
        expected[i] = (double)MANY / BINS;
    }
    assert_near(sum / MANY, 0.5, sqrt(1.0 / 12 / MANY), "the mean");
    assert_near(squares / MANY, 1.0 / 12, sqrt(1.0 / 180 / MANY), "the variance");
    assert_near(lagged / MANY, 0, 1.0 / 12 / sqrt(MANY), "the covariance of neighbours");
    assert_chi_square(counts, expected, "chi-square");
    // Ranges: never the upper end, also in the coarse types; a range of nothing.
    uint16_t *half = (uint16_t *)(void *)out;
    uint16_t *bits = malloc(MANY * sizeof *bits);
    assert_non_null(bits);
    ASSERT_OK(
        rondo_random_uniform(generator, context->stream, RONDO_DTYPE_F16, half, MANY, -3.0, 1.0));
    suite_read(context, bits, half, MANY * sizeof *bits);
    float low = 9;
    float high = -9;
    for (int i = 0; i < MANY; ++i) {
        low = fminf(low, rondo_f16_to_float(bits[i]));
        high = fmaxf(high, rondo_f16_to_float(bits[i]));
    }
    assert_true(low == -3.0f);
    assert_true(high < 1.0f && high > 0.99f);
    ASSERT_OK(rondo_random_uniform(generator, context->stream, RONDO_DTYPE_F32, out, 9, 7.5, 7.5));
    suite_read(context, x, out, 9 * sizeof *x);
    for (int i = 0; i < 9; ++i) {
        assert_true(x[i] == 7.5f);
    }
    free(bits);
    free(x);
    rondo_generator_release(generator);
}

static void check_normals(const double *x) {
    static uint32_t counts[BINS];
    static double expected[BINS];
    memset(counts, 0, sizeof counts);
    double moments[5] = {0};
    double lagged = 0;
    uint32_t outliers = 0;
    for (int i = 0; i < MANY; ++i) {
        assert_true(isfinite(x[i]));
        double power = 1;
        for (int k = 1; k < 5; ++k) {
            power *= x[i];
            moments[k] += power / MANY;
        }
        lagged += x[i] * x[(i + 1) % MANY] / MANY;
        outliers += fabs(x[i]) > 3;
        // Equal parts of the distribution.
        ++counts[(int)fmin(BINS - 1, 0.5 * erfc(-x[i] / sqrt(2)) * BINS)];
    }
    for (int i = 0; i < BINS; ++i) {
        expected[i] = (double)MANY / BINS;
    }
    assert_near(moments[1], 0, sqrt(1.0 / MANY), "the mean");
    assert_near(moments[2], 1, sqrt(2.0 / MANY), "the variance");
    assert_near(moments[3], 0, sqrt(15.0 / MANY), "the third moment");
    assert_near(moments[4], 3, sqrt(96.0 / MANY), "the fourth moment");
    assert_near(lagged, 0, sqrt(1.0 / MANY), "the covariance of neighbours");
    assert_near(outliers, 0.0026998 * MANY, sqrt(0.0026998 * MANY), "outliers");
    assert_chi_square(counts, expected, "chi-square");
}

SUITE_CASE(test_conformance_random__normal_numbers_are_normal) {
    rondo_generator *generator = suite_create_generator(context, 2027);
    double *out = take(context, MANY * sizeof *out);
    double *x = malloc(MANY * sizeof *x);
    float *y = malloc(MANY * sizeof *y);
    assert_non_null(x);
    assert_non_null(y);
    ASSERT_OK(rondo_random_normal(generator, context->stream, RONDO_DTYPE_F64, out, MANY, 0, 1));
    suite_read(context, x, out, MANY * sizeof *x);
    check_normals(x);
    ASSERT_OK(rondo_random_normal(generator, context->stream, RONDO_DTYPE_F32, out, MANY, 10, 4));
    suite_read(context, y, out, MANY * sizeof *y);
    for (int i = 0; i < MANY; ++i) {
        x[i] = ((double)y[i] - 10) / 4;
    }
    check_normals(x);
    free(x);
    free(y);
    rondo_generator_release(generator);
}

SUITE_CASE(test_conformance_random__coins_and_dropout_keep_their_odds) {
    rondo_generator *generator = suite_create_generator(context, 2028);
    float *x = take(context, MANY * sizeof *x);
    uint8_t *mask = take(context, MANY);
    uint8_t *coins = malloc(MANY);
    float *y = malloc(MANY * sizeof *y);
    assert_non_null(coins);
    assert_non_null(y);
    const double odds[] = {0.0, 0x1p-20, 0.3, 0.999, 1.0};
    for (size_t k = 0; k < sizeof odds / sizeof *odds; ++k) {
        const double p = odds[k];
        ASSERT_OK(
            rondo_random_bernoulli(generator, context->stream, RONDO_DTYPE_BOOL, mask, MANY, p));
        suite_read(context, coins, mask, MANY);
        double ones = 0;
        for (int i = 0; i < MANY; ++i) {
            assert_true(coins[i] <= 1);
            ones += coins[i];
        }
        assert_near(ones / MANY, p, sqrt(p * (1 - p) / MANY), "the part of ones");

        suite_set(context, (uint32_t *)(void *)x, 0x40400000, MANY);
        ASSERT_OK(
            rondo_random_dropout(generator, context->stream, RONDO_DTYPE_F32, x, x, mask, MANY, p));
        suite_read(context, coins, mask, MANY);
        suite_read(context, y, x, MANY * sizeof *y);
        const float kept = 3.0f * (p < 1 ? (float)(1.0 / (1.0 - p)) : 0.0f);
        ones = 0;
        for (int i = 0; i < MANY; ++i) {
            assert_true(y[i] == (coins[i] != 0 ? kept : 0.0f));
            ones += coins[i];
        }
        assert_near(ones / MANY, 1 - p, sqrt(p * (1 - p) / MANY), "the part that is kept");
    }
    free(coins);
    free(y);
    rondo_generator_release(generator);
}

// ---- order ------------------------------------------------------------------------------------

SUITE_CASE(test_conformance_random__uses_on_several_streams_come_in_order) {
    rondo_generator *generator = suite_create_generator(context, 1);
    rondo_stream *streams[3];
    uint32_t *out = take(context, 3 * 64 * 4);
    for (int i = 0; i < 3; ++i) {
        streams[i] = suite_create_stream(context);
    }
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, streams[0], RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_draw(generator, streams[0], out));
    ASSERT_OK(rondo_graph_capture_end(graph));
    uint64_t offset = 0;
    for (int round = 0; round < 5; ++round) {
        // Each of these is late, and each of the next must not overtake it.
        ASSERT_OK(suite_linger(context, streams[1], 2000));
        ASSERT_OK(suite_draw(generator, streams[1], out + 64));
        ASSERT_OK(suite_linger(context, streams[2], 1000));
        ASSERT_OK(suite_draw(generator, streams[2], out + 128));
        ASSERT_OK(rondo_graph_replay(graph, streams[0]));
        ASSERT_DRAWN(context, out + 64, 1, offset);
        ASSERT_DRAWN(context, out + 128, 1, offset + 16);
        ASSERT_DRAWN(context, out, 1, offset + 32);
        offset += 48;
        ASSERT_OK(suite_linger(context, streams[0], 2000));
        ASSERT_OK(rondo_graph_replay(graph, streams[0]));
        ASSERT_OK(suite_draw(generator, streams[2], out + 128));
        ASSERT_OK(rondo_graph_replay(graph, streams[1]));
        ASSERT_DRAWN(context, out + 128, 1, offset + 16);
        ASSERT_DRAWN(context, out, 1, offset + 32);
        offset += 48;
        // A new seed waits for those who still read the old one.
        ASSERT_OK(suite_linger(context, streams[1], 2000));
        ASSERT_OK(suite_draw(generator, streams[1], out + 64));
        ASSERT_OK(rondo_generator_set_seed(generator, 2));
        ASSERT_OK(suite_draw(generator, streams[2], out + 128));
        ASSERT_DRAWN(context, out + 64, 1, offset);
        ASSERT_DRAWN(context, out + 128, 2, 0);
        const rondo_generator_state back = {.seed = 1, .offset = offset};
        ASSERT_OK(rondo_generator_set_state(generator, &back));
    }
    // Streams that are gone are no trouble.
    ASSERT_OK(suite_draw(generator, streams[1], out + 64));
    rondo_stream_destroy(streams[1]);
    rondo_stream_destroy(streams[2]);
    ASSERT_OK(rondo_graph_replay(graph, streams[0]));
    ASSERT_DRAWN(context, out, 1, offset + 16);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(streams[0]);
    ASSERT_OK(suite_draw(generator, context->stream, out));
    ASSERT_DRAWN(context, out, 1, offset + 32);
    rondo_generator_release(generator);
}

static void record_empty_body(rondo_stream *stream, const uint32_t *predicate) {
    rondo_scope scope;
    rondo_stream *body;
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, predicate, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
}

// What a conditional node does to the capture around it.
SUITE_CASE(test_conformance_random__counts_inside_a_capture_can_be_settled) {
    suite_need(context, RONDO_FEATURE_IF);
    rondo_generator *generator = suite_create_generator(context, 1);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *out = take(context, 5 * 64 * 4);
    uint32_t *predicate = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, predicate, 1, 1);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_draw(generator, stream, out));
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(branch, fork));
    ASSERT_OK(suite_linger(context, branch, 3000));
    ASSERT_OK(suite_draw(generator, branch, out + 64));
    // The branch is late: the settling must wait for it.
    record_empty_body(stream, predicate);
    ASSERT_OK(suite_linger(context, stream, 3000));
    record_empty_body(stream, predicate);  // nothing was taken since
    ASSERT_OK(suite_draw(generator, branch, out + 128));
    ASSERT_OK(suite_draw(generator, stream, out + 192));
    // Now the settling is late: the draw on the branch must wait for it.
    ASSERT_OK(suite_linger(context, stream, 3000));
    record_empty_body(stream, predicate);
    ASSERT_OK(suite_draw(generator, branch, out + 256));
    ASSERT_OK(rondo_event_record(join, branch));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_graph_capture_end(graph));
    for (uint64_t i = 0; i < 4; ++i) {
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_DRAWN(context, out, 1, i * 80);
        ASSERT_DRAWN(context, out + 128, 1, i * 80 + 32);
        ASSERT_DRAWN(context, out + 192, 1, i * 80 + 48);
        ASSERT_DRAWN(context, out + 64, 1, i * 80 + 16);
        ASSERT_DRAWN(context, out + 256, 1, i * 80 + 64);
    }
    ASSERT_STANDS(generator, 1, 320);
    rondo_graph_destroy(graph);
    rondo_event_destroy(fork);
    rondo_event_destroy(join);
    rondo_stream_destroy(stream);
    rondo_stream_destroy(branch);
    rondo_generator_release(generator);
}

// A graph recorded into another capture takes its turn, whatever streams the draws around it are
// on.
SUITE_CASE(test_conformance_random__recorded_graphs_draw_in_turn) {
    rondo_generator *generator = suite_create_generator(context, 1);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    rondo_graph *inner = suite_create_graph(context, true);
    rondo_graph *outer = suite_create_graph(context, false);
    uint32_t *out = take(context, 5 * 64 * 4);
    ASSERT_OK(rondo_graph_capture_begin(inner, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_linger(context, stream, 2000));
    ASSERT_OK(suite_draw(generator, stream, out));
    ASSERT_OK(rondo_graph_capture_end(inner));
    for (int has_drawn = 0; has_drawn < 2; ++has_drawn) {
        ASSERT_OK(rondo_generator_set_seed(generator, 1));
        ASSERT_OK(rondo_graph_capture_begin(outer, stream, RONDO_CAPTURE_THREAD_LOCAL));
        if (has_drawn) {
            ASSERT_OK(suite_draw(generator, stream, out + 64));
        } else {
            ASSERT_OK(suite_linger(context, stream, 1));
        }
        ASSERT_OK(rondo_event_record(fork, stream));
        ASSERT_OK(rondo_stream_wait_event(branch, fork));
        ASSERT_OK(rondo_stream_add_graph(stream, inner));
        ASSERT_OK(suite_draw(generator, branch, out + 128));
        ASSERT_OK(rondo_event_record(join, branch));
        ASSERT_OK(rondo_stream_wait_event(stream, join));
        ASSERT_OK(suite_draw(generator, stream, out + 192));
        ASSERT_STATUS(rondo_generator_set_seed(generator, 1), STATE);
        ASSERT_OK(rondo_graph_capture_end(outer));
        uint64_t offset = 0;
        for (int i = 0; i < 3; ++i) {
            ASSERT_OK(rondo_graph_replay(outer, stream));
            if (has_drawn) {
                ASSERT_DRAWN(context, out + 64, 1, offset);
                offset += 16;
            }
            ASSERT_DRAWN(context, out, 1, offset);
            ASSERT_DRAWN(context, out + 128, 1, offset + 16);
            ASSERT_DRAWN(context, out + 192, 1, offset + 32);
            ASSERT_OK(rondo_graph_replay(inner, branch));
            ASSERT_OK(suite_draw(generator, branch, out + 256));
            ASSERT_DRAWN(context, out, 1, offset + 48);
            ASSERT_DRAWN(context, out + 256, 1, offset + 64);
            offset += 80;
        }
        ASSERT_OK(rondo_graph_reset(outer));
    }
    rondo_graph_destroy(inner);
    rondo_graph_destroy(outer);
    rondo_event_destroy(fork);
    rondo_event_destroy(join);
    rondo_stream_destroy(stream);
    rondo_stream_destroy(branch);
    rondo_generator_release(generator);
}

// ---- misuse -----------------------------------------------------------------------------------

SUITE_CASE(test_conformance_random__misuse_is_refused) {
    rondo_generator *generator = suite_create_generator(context, 3);
    rondo_stream *stream = context->stream;
    float *out = take(context, 64);
    rondo_generator *none = generator;
    ASSERT_STATUS(rondo_generator_create(NULL, 0, &none), INVALID);
    assert_null(none);
    ASSERT_STATUS(rondo_generator_set_seed(NULL, 0), INVALID);
    ASSERT_STATUS(rondo_generator_set_state(generator, NULL), INVALID);
    ASSERT_STATUS(rondo_random_words(NULL, stream, (uint32_t *)(void *)out, 4), INVALID);
    ASSERT_STATUS(rondo_random_words(generator, NULL, (uint32_t *)(void *)out, 4), INVALID);
    ASSERT_STATUS(rondo_random_words(generator, stream, NULL, 4), INVALID);
    ASSERT_STATUS(rondo_random_normal(generator, stream, RONDO_DTYPE_F32, (char *)out + 2, 4, 0, 1),
                  INVALID);
    ASSERT_MESSAGE_HAS("aligned");
    ASSERT_STATUS(rondo_random_normal(generator, stream, RONDO_DTYPE_F32, out, 4, 0, -1), INVALID);
    ASSERT_STATUS(rondo_random_normal(generator, stream, RONDO_DTYPE_F32, out, 4, (double)NAN, 1),
                  INVALID);
    ASSERT_STATUS(rondo_random_normal(generator, stream, RONDO_DTYPE_I32, out, 4, 0, 1),
                  UNSUPPORTED);
    ASSERT_MESSAGE_HAS("bf16");
    ASSERT_STATUS(rondo_random_uniform(generator, stream, RONDO_DTYPE_F32, out, 4, 1, 0), INVALID);
    ASSERT_STATUS(rondo_random_uniform(generator, stream, RONDO_DTYPE_F16, out, 4, 0, 1e6),
                  INVALID);
    ASSERT_STATUS(rondo_random_uniform(generator, stream, RONDO_DTYPE_F64, out, SIZE_MAX / 4, 0, 1),
                  INVALID);
    ASSERT_STATUS(rondo_random_bernoulli(generator, stream, RONDO_DTYPE_F32, out, 4, 1.5), INVALID);
    ASSERT_STATUS(rondo_random_bernoulli(generator, stream, RONDO_DTYPE_NONE, out, 4, 0.5),
                  UNSUPPORTED);
    ASSERT_STATUS(rondo_random_dropout(generator, stream, RONDO_DTYPE_F32, out, out, NULL, 4, -0.1),
                  INVALID);
    // Nothing was drawn by any of these, nor by drawing nothing.
    ASSERT_OK(rondo_random_normal(generator, stream, RONDO_DTYPE_F32, NULL, 0, 0, 1));
    ASSERT_STANDS(generator, 3, 0);
    if (context->is_cuda) {
        rondo_device *host;
        rondo_stream *elsewhere;
        ASSERT_OK(rondo_device_open("host", &host));
        ASSERT_OK(rondo_stream_create(host, NULL, &elsewhere));
        ASSERT_STATUS(rondo_random_normal(generator, elsewhere, RONDO_DTYPE_F32, out, 4, 0, 1),
                      INVALID);
        ASSERT_MESSAGE_HAS("host");
        rondo_stream_destroy(elsewhere);
        rondo_device_release(host);
    }
    rondo_generator_retain(generator);
    rondo_generator_release(generator);
    rondo_generator_release(NULL);
    rondo_generator_release(generator);
}
