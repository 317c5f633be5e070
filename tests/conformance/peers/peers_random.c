// What PyTorch's own tests ask of random numbers in graphs, by their numbers; and what nobody's do.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/random/random_support.h"

#include "support/fake/fake_cuda.h"

typedef struct parts {
    suite_context *context;
    rondo_stream *stream;
    rondo_generator *generator;
    rondo_graph *graph;
    uint32_t *out;  // two draws
} parts;

enum { SEED = 77, OUT_WORDS = 256 };

static parts make_parts(suite_context *context) {
    return (parts){.context = context,
                   .stream = suite_create_stream(context),
                   .generator = suite_create_generator(context, SEED),
                   .graph = suite_create_graph(context, true),
                   .out = suite_allocate(context, RONDO_MEMORY_DEVICE, OUT_WORDS)};
}

static void free_parts(parts *p) {
    rondo_graph_destroy(p->graph);
    rondo_generator_release(p->generator);
    rondo_stream_destroy(p->stream);
    suite_free(p->context, RONDO_MEMORY_DEVICE, p->out);
}

// A graph of `draws` draws into the two places in turn.
static void capture_draws(parts *p, int draws) {
    ASSERT_OK(rondo_graph_capture_begin(p->graph, p->stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < draws; ++i) {
        ASSERT_OK(suite_draw(p->generator, p->stream, p->out + 64 * (i % 2)));
    }
    ASSERT_OK(rondo_graph_capture_end(p->graph));
}

// ---- PyTorch ----------------------------------------------------------------------------------

SUITE_CASE_EXECUTED(torch_04_two_generators_swapped_in_one_capture) {
    parts p = make_parts(context);
    rondo_generator *other = suite_create_generator(p.context, 5);
    uint32_t *more = suite_allocate(p.context, RONDO_MEMORY_DEVICE, OUT_WORDS);
    ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    ASSERT_OK(suite_draw(other, p.stream, more));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out + 64));
    ASSERT_OK(suite_draw(other, p.stream, more + 64));
    ASSERT_OK(suite_draw(other, p.stream, more + 128));
    ASSERT_OK(rondo_graph_capture_end(p.graph));
    for (uint64_t i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
        ASSERT_DRAWN(p.context, p.out, SEED, i * 32);
        ASSERT_DRAWN(p.context, p.out + 64, SEED, i * 32 + 16);
        ASSERT_DRAWN(p.context, more, 5, i * 48);
        ASSERT_DRAWN(p.context, more + 64, 5, i * 48 + 16);
        ASSERT_DRAWN(p.context, more + 128, 5, i * 48 + 32);
        ASSERT_STANDS(p.generator, SEED, (i + 1) * 32);
        ASSERT_STANDS(other, 5, (i + 1) * 48);
    }
    suite_free(p.context, RONDO_MEMORY_DEVICE, more);
    rondo_generator_release(other);
    free_parts(&p);
}

enum { DROP_COUNT = 1000 };

// Dropout of ones into y, and noise on top of it.
static rondo_status drop(parts *p, const float *x, float *y) {
    rondo_status status =
        rondo_random_dropout(p->generator, p->stream, RONDO_DTYPE_F32, x, y, NULL, DROP_COUNT, 0.3);
    return status != RONDO_STATUS_OK ? status
                                     : rondo_random_normal(p->generator, p->stream, RONDO_DTYPE_F32,
                                                           y + DROP_COUNT, 501, 1.0, 2.0);
}

SUITE_CASE_EXECUTED(torch_13_graph_eager_graph_equals_eager) {
    parts p = make_parts(context);
    enum { Y_COUNT = DROP_COUNT + 501 };
    float *x = (float *)suite_allocate(p.context, RONDO_MEMORY_DEVICE, DROP_COUNT);
    float *y = (float *)suite_allocate(p.context, RONDO_MEMORY_DEVICE, Y_COUNT);
    suite_set(p.context, (uint32_t *)x, 0x3f800000, DROP_COUNT);
    static float eager[4][Y_COUNT];
    static float mixed[4][Y_COUNT];
    ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(drop(&p, x, y));
    ASSERT_OK(rondo_graph_capture_end(p.graph));
    for (uint64_t seed = 1; seed <= 2; ++seed) {
        ASSERT_OK(rondo_generator_set_seed(p.generator, seed));
        for (int i = 0; i < 4; ++i) {
            ASSERT_OK(drop(&p, x, y));
            suite_read(p.context, eager[i], y, sizeof eager[i]);
        }
        // Beginning with a replay, and beginning with an eager call.
        for (int first = 0; first < 2; ++first) {
            ASSERT_OK(rondo_generator_set_seed(p.generator, seed));
            for (int i = 0; i < 4; ++i) {
                suite_set(p.context, (uint32_t *)y, 0xffffffff, Y_COUNT);
                ASSERT_OK(i % 2 == first ? rondo_graph_replay(p.graph, p.stream) : drop(&p, x, y));
                suite_read(p.context, mixed[i], y, sizeof mixed[i]);
                assert_memory_equal(mixed[i], eager[i], sizeof eager[i]);
            }
        }
        assert_memory_not_equal(eager[0], eager[1], sizeof eager[0]);
    }
    // Another seed, other numbers.
    ASSERT_OK(rondo_generator_set_seed(p.generator, 1));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    suite_read(p.context, mixed[0], y, sizeof mixed[0]);
    assert_memory_not_equal(mixed[0], eager[0], sizeof eager[0]);
    suite_free(p.context, RONDO_MEMORY_DEVICE, x);
    suite_free(p.context, RONDO_MEMORY_DEVICE, y);
    free_parts(&p);
}

// One of every sampler, by number; ends with UNSUPPORTED.
static rondo_status sample(parts *p, int sampler, void *out, const void *in) {
    const rondo_dtype dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F64, RONDO_DTYPE_F16,
                                  RONDO_DTYPE_BF16};
    const rondo_dtype dtype = dtypes[sampler % 4];
    switch (sampler / 4) {
        case 0:
            return rondo_random_uniform(p->generator, p->stream, dtype, out, 77, -1.0, 3.0);
        case 1:
            return rondo_random_normal(p->generator, p->stream, dtype, out, 77, 0.5, 2.0);
        case 2:
            return rondo_random_bernoulli(p->generator, p->stream, dtype, out, 77, 0.4);
        case 3:
            return rondo_random_bernoulli_each(p->generator, p->stream, RONDO_DTYPE_F32, in, dtype,
                                               out, 77);
        case 4:
            return rondo_random_dropout(p->generator, p->stream, dtype, in, out, NULL, 77, 0.5);
        default:
            return sampler % 4 == 0 ? suite_draw(p->generator, p->stream, out)
                                    : RONDO_STATUS_UNSUPPORTED;
    }
}

SUITE_CASE_EXECUTED(torch_14_every_sampler_draws_as_if_eager) {
    parts p = make_parts(context);
    uint32_t *in = suite_allocate(p.context, RONDO_MEMORY_DEVICE, OUT_WORDS);
    suite_set(p.context, in, 0x3f003c00, OUT_WORDS);  // 0.5 and the like, in each type
    uint32_t eager[2][OUT_WORDS];
    uint32_t graph[2][OUT_WORDS];
    for (int sampler = 0; sampler <= 20; ++sampler) {
        ASSERT_OK(rondo_generator_set_seed(p.generator, 9));
        ASSERT_OK(suite_draw(p.generator, p.stream, in + 128));  // a dummy: the offset counts
        for (int i = 0; i < 2; ++i) {
            suite_set(p.context, p.out, 0xabababab, OUT_WORDS);
            ASSERT_OK(sample(&p, sampler, p.out, in));
            suite_read(p.context, eager[i], p.out, sizeof eager[i]);
        }
        suite_set(p.context, p.out, 0xabababab, OUT_WORDS);
        ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_OK(sample(&p, sampler, p.out, in));
        ASSERT_OK(rondo_graph_capture_end(p.graph));
        ASSERT_VALUE(p.context, p.out, 0, 0xabababab);
        ASSERT_OK(rondo_generator_set_seed(p.generator, 9));
        ASSERT_OK(suite_draw(p.generator, p.stream, in + 128));
        for (int i = 0; i < 2; ++i) {
            suite_set(p.context, p.out, 0xabababab, OUT_WORDS);
            ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
            suite_read(p.context, graph[i], p.out, sizeof graph[i]);
        }
        assert_memory_equal(eager, graph, sizeof eager);
        assert_memory_not_equal(eager[0], eager[1], sizeof eager[0]);
        ASSERT_OK(rondo_graph_reset(p.graph));
    }
    suite_free(p.context, RONDO_MEMORY_DEVICE, in);
    free_parts(&p);
}

SUITE_CASE_EXECUTED(torch_21_rewinding_inside_a_capture) {
    parts p = make_parts(context);
    ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo_generator_mark before;
    rondo_generator_mark after;
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    ASSERT_OK(rondo_generator_get_mark(p.generator, p.stream, &before));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    ASSERT_OK(rondo_generator_get_mark(p.generator, p.stream, &after));
    ASSERT_OK(rondo_generator_rewind(p.generator, p.stream, &before));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out + 64));  // recomputed
    ASSERT_OK(rondo_generator_rewind(p.generator, p.stream, &after));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out + 128));
    ASSERT_OK(rondo_graph_capture_end(p.graph));
    for (uint64_t i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
        ASSERT_DRAWN(p.context, p.out, SEED, i * 48 + 16);
        ASSERT_DRAWN(p.context, p.out + 64, SEED, i * 48 + 16);
        ASSERT_DRAWN(p.context, p.out + 128, SEED, i * 48 + 32);
    }
    // The same eagerly; and marks that no longer mean anything.
    ASSERT_STATUS(rondo_generator_rewind(p.generator, p.stream, &before), STATE);
    ASSERT_MESSAGE_HAS("capture");
    ASSERT_OK(rondo_generator_get_mark(p.generator, p.stream, &before));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    ASSERT_OK(rondo_generator_rewind(p.generator, p.stream, &before));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out + 64));
    ASSERT_DRAWN(p.context, p.out, SEED, 144);
    ASSERT_DRAWN(p.context, p.out + 64, SEED, 144);
    ASSERT_STANDS(p.generator, SEED, 160);
    ASSERT_OK(rondo_generator_get_mark(p.generator, p.stream, &before));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_STATUS(rondo_generator_rewind(p.generator, p.stream, &before), STATE);
    ASSERT_OK(rondo_generator_get_mark(p.generator, p.stream, &before));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_STATUS(rondo_generator_rewind(p.generator, p.stream, &before), STATE);
    ASSERT_MESSAGE_HAS("replay");
    free_parts(&p);
}

SUITE_CASE_EXECUTED(torch_22_a_seed_during_the_capture_is_refused) {
    parts p = make_parts(context);
    ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
    // It does not take part yet.
    ASSERT_OK(rondo_generator_set_seed(p.generator, 3));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    ASSERT_STATUS(rondo_generator_set_seed(p.generator, 4), STATE);
    ASSERT_MESSAGE_HAS("draws from generator ");
    ASSERT_MESSAGE_HAS("\"suite\"");
    rondo_generator_state there = {.seed = 4};
    ASSERT_STATUS(rondo_generator_set_state(p.generator, &there), STATE);
    ASSERT_MESSAGE_HAS("draws from generator ");
    ASSERT_STATUS(rondo_generator_get_state(p.generator, &there), STATE);
    ASSERT_MESSAGE_HAS("draws from generator ");
    // The capture goes on, and the seed is that of before.
    ASSERT_OK(rondo_graph_capture_end(p.graph));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_DRAWN(p.context, p.out, 3, 0);
    ASSERT_OK(rondo_generator_set_seed(p.generator, 4));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_DRAWN(p.context, p.out, 4, 0);
    free_parts(&p);
}

// ---- pains of PyTorch's users -------------------------------------------------------------------

SUITE_CASE_EXECUTED(test_peers_random__a_seed_between_replays_takes_effect) {
    parts p = make_parts(context);
    capture_draws(&p, 2);
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_DRAWN(p.context, p.out, SEED, 32);
    for (uint64_t seed = 100; seed < 103; ++seed) {
        ASSERT_OK(rondo_generator_set_seed(p.generator, seed));
        ASSERT_STANDS(p.generator, seed, 0);
        ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
        ASSERT_DRAWN(p.context, p.out, seed, 0);
        ASSERT_DRAWN(p.context, p.out + 64, seed, 16);
        ASSERT_STANDS(p.generator, seed, 32);
    }
    const rondo_generator_state place = {.seed = 8, .offset = UINT64_C(0xfffffff8)};
    ASSERT_OK(rondo_generator_set_state(p.generator, &place));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_DRAWN(p.context, p.out, 8, UINT64_C(0xfffffff8));
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    ASSERT_DRAWN(p.context, p.out, 8, UINT64_C(0xfffffff8) + 32);
    free_parts(&p);
}

SUITE_CASE_EXECUTED(test_peers_random__any_number_of_generators) {
    enum { GENERATORS = 40 };
    const int count = suite_rounds(GENERATORS, 10);
    parts p = make_parts(context);
    rondo_generator *generators[GENERATORS];
    uint32_t *out = suite_allocate(p.context, RONDO_MEMORY_DEVICE, GENERATORS * 64);
    for (int i = 0; i < count; ++i) {
        generators[i] = suite_create_generator(p.context, 1000 + (uint64_t)i);
    }
    ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < count; ++i) {
        ASSERT_OK(suite_draw(generators[i], p.stream, out + 64 * i));
    }
    ASSERT_OK(rondo_graph_capture_end(p.graph));
    // The graph keeps them.
    for (int i = 0; i < count; i += 2) {
        rondo_generator_release(generators[i]);
    }
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    for (int i = 0; i < count; ++i) {
        ASSERT_DRAWN(p.context, out + 64 * i, 1000 + (uint64_t)i, 16);
    }
    for (int i = 1; i < count; i += 2) {
        rondo_generator_release(generators[i]);
    }
    ASSERT_OK(rondo_graph_reset(p.graph));
    suite_free(p.context, RONDO_MEMORY_DEVICE, out);
    free_parts(&p);
}

SUITE_CASE_EXECUTED(test_peers_random__graphs_share_a_generator) {
    parts p = make_parts(context);
    parts q = make_parts(p.context);
    rondo_generator_release(q.generator);
    q.generator = p.generator;
    rondo_generator_retain(p.generator);
    capture_draws(&p, 1);
    capture_draws(&q, 2);
    uint64_t offset = 0;
    // On streams of their own: each use comes after the one before.
    for (int i = 0; i < 20; ++i) {
        parts *user = i % 3 == 0 ? &p : &q;
        ASSERT_OK(suite_linger(user->context, user->stream, 200));
        if (i % 5 == 4) {
            ASSERT_OK(suite_draw(user->generator, user->stream, user->out));
            offset += 16;
        } else {
            ASSERT_OK(rondo_graph_replay(user->graph, user->stream));
            offset += user == &p ? 16 : 32;
        }
    }
    ASSERT_STANDS(p.generator, SEED, offset);
    ASSERT_DRAWN(p.context, p.out, SEED, offset - 32);  // the last but one
    ASSERT_DRAWN(q.context, q.out, SEED, offset - 16);
    free_parts(&q);
    free_parts(&p);
}

SUITE_CASE_EXECUTED(test_peers_random__a_replay_adds_no_launch) {
    parts p = make_parts(context);
    capture_draws(&p, 3);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(p.graph, &stats));
    assert_int_equal(stats.node_count, 4);  // the draws, and one that moves the generator on
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    if (p.context->is_fake) {
        size_t launches = fake_cuda_count_calls(NULL);
        for (int i = 0; i < 10; ++i) {
            ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
        }
        launches = fake_cuda_count_calls(NULL) - launches;
        // As many calls as a graph without a generator makes.
        ASSERT_OK(rondo_graph_reset(p.graph));
        ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_OK(suite_affine(p.context, p.stream, p.out, 1, 1, 1));
        ASSERT_OK(rondo_graph_capture_end(p.graph));
        ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
        size_t others = fake_cuda_count_calls(NULL);
        for (int i = 0; i < 10; ++i) {
            ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
        }
        others = fake_cuda_count_calls(NULL) - others;
        assert_int_equal(launches, others);
    }
    free_parts(&p);
}

SUITE_CASE_EXECUTED(test_peers_random__a_failed_capture_leaves_generators_where_they_stood) {
    parts p = make_parts(context);
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
        if (i == 0) {
            ASSERT_STATUS(rondo_stream_synchronize(p.stream), STATE);
            ASSERT_STATUS(suite_draw(p.generator, p.stream, p.out), STATE);
            ASSERT_STATUS(rondo_graph_capture_end(p.graph), STATE);
        } else if (i == 1) {
            rondo_graph_capture_abort(p.graph);
        } else {
            // Not joined.
            rondo_stream *branch = suite_create_stream(p.context);
            rondo_event *event = suite_create_event(p.context, 0);
            ASSERT_OK(rondo_event_record(event, p.stream));
            ASSERT_OK(rondo_stream_wait_event(branch, event));
            ASSERT_OK(suite_draw(p.generator, branch, p.out));
            ASSERT_STATUS(rondo_graph_capture_end(p.graph), STATE);
            rondo_event_destroy(event);
            rondo_stream_destroy(branch);
        }
        // Free to be seeded again, and where it stood.
        ASSERT_STANDS(p.generator, SEED, 16);
    }
    ASSERT_OK(suite_draw(p.generator, p.stream, p.out));
    ASSERT_DRAWN(p.context, p.out, SEED, 16);
    capture_draws(&p, 1);
    ASSERT_OK(rondo_graph_replay(p.graph, p.stream));
    ASSERT_DRAWN(p.context, p.out, SEED, 32);
    free_parts(&p);
}
