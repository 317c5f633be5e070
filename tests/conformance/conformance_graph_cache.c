// rondo/graph_cache.h: what is found, captured, evicted, pinned; steps that cannot be captured;
// captures in the background. Choices by time are in tests/unit/cache/test_cache_governor.c.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>

#include "conformance/conformance.h"
#include "rondo/graph_cache.h"
#include "rondo/pool.h"

enum { COUNT = 32 };

typedef enum step_kind { STEP_RECORDS, STEP_WAITS, STEP_FAILS, STEP_USES_THE_CACHE } step_kind;

// The content of a key is all that its step depends on.
typedef struct step_key {
    uint32_t term;
    uint32_t launch_count;
} step_key;

typedef struct scene {
    suite_context *context;
    rondo_graph_cache *cache;
    rondo_stream *stream;
    rondo_pool *pool;  // NULL: the step takes no memory
    uint32_t *x;
    atomic_int call_count;
    uint64_t sequence;  // of the latest error record at the beginning
} scene;

typedef struct step_data {
    scene *s;
    step_kind kind;
    step_key key;
} step_data;

// x = x * 3 + term, and then as many times x = x + 1 as there are launches.
static rondo_status run_step(rondo_stream *stream, void *user_data) {
    const step_data *data = user_data;
    scene *s = data->s;
    void *block = NULL;
    atomic_fetch_add(&s->call_count, 1);
    rondo_status status = suite_affine(s->context, stream, s->x, COUNT, 3, data->key.term);
    if (status == RONDO_STATUS_OK && s->pool != NULL) {
        status = rondo_pool_allocate(s->pool, stream, 4096, &block);
    }
    for (uint32_t i = 0; status == RONDO_STATUS_OK && i < data->key.launch_count; ++i) {
        status = suite_affine(s->context, stream, s->x, COUNT, 1, 1);
    }
    if (status == RONDO_STATUS_OK && block != NULL) {
        status = rondo_pool_free(s->pool, block);
    }
    if (status == RONDO_STATUS_OK && data->kind == STEP_WAITS) {
        status = rondo_stream_synchronize(stream);
    } else if (status == RONDO_STATUS_OK && data->kind == STEP_FAILS) {
        status = rondo_pool_create(NULL, NULL, &(rondo_pool *){NULL});
    } else if (status == RONDO_STATUS_OK && data->kind == STEP_USES_THE_CACHE) {
        (rondo_graph_cache_destroy)(s->cache);  // left alone; not for the sweep to see
        status = rondo_graph_cache_clear(s->cache);
    }
    return status;
}

static rondo_graph_cache_options make_options(rondo_cache_policy policy, size_t entry_limit) {
    return (rondo_graph_cache_options){.struct_size = sizeof(rondo_graph_cache_options),
                                       .policy = policy,
                                       .entry_limit = entry_limit};
}

static void open_scene(scene *s, suite_context *context, const rondo_graph_cache_options *options) {
    memset(s, 0, sizeof *s);
    s->context = context;
    s->x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    s->stream = suite_create_stream(context);
    ASSERT_OK(rondo_graph_cache_create(context->device, options, &s->cache));
    suite_set(context, s->x, 1, COUNT);
    s->sequence = rondo_error_get_last()->sequence;
}

static void close_scene(scene *s) {
    rondo_graph_cache_destroy(s->cache);
    rondo_pool_release(s->pool);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->x);
}

static rondo_status run_kind(scene *s, step_kind kind, step_key key, rondo_cache_outcome *out) {
    step_data data = {.s = s, .kind = kind, .key = key};
    return rondo_graph_cache_run(s->cache, &key, sizeof key, s->stream, run_step, &data, out);
}

// Where a failure was planned (tests/sweep) the cache may have got over it, by running eagerly or
// evicting others. What a case says of its choices holds without such failures.
static void assert_undisturbed(const scene *s) {
    if (suite_is_swept && rondo_error_get_last()->sequence != s->sequence) {
        rondo_status status = rondo_error_get_last()->status;
        ASSERT_OK(status);
    }
}

static void assert_outcome(const scene *s, rondo_cache_outcome outcome,
                           rondo_cache_outcome expected) {
    if (outcome != expected) {
        assert_undisturbed(s);
    }
    assert_int_equal(outcome, expected);
}

static void assert_x(scene *s, uint32_t expected) {
    ASSERT_OK(rondo_stream_synchronize(s->stream));
    ASSERT_VALUE(s->context, s->x, COUNT - 1, expected);
}

static void run(scene *s, uint32_t term, rondo_cache_outcome expected) {
    rondo_cache_outcome outcome = RONDO_CACHE_NOTHING;
    ASSERT_OK(run_kind(s, STEP_RECORDS, (step_key){.term = term, .launch_count = 1}, &outcome));
    assert_outcome(s, outcome, expected);
}

static rondo_graph_cache_stats get_stats(scene *s) {
    rondo_graph_cache_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_cache_get_stats(s->cache, &stats));
    return stats;
}

static rondo_graph_cache_entry get_entry(scene *s, uint32_t term) {
    step_key key = {.term = term, .launch_count = 1};
    rondo_graph_cache_entry entry = {.struct_size = sizeof entry};
    ASSERT_OK(rondo_graph_cache_get_entry(s->cache, &key, sizeof key, &entry));
    return entry;
}

static bool is_held(scene *s, uint32_t term) {
    return get_entry(s, term).has_graph;
}

// ---- keys and bounds --------------------------------------------------------------------------

SUITE_CASE(test_conformance_graph_cache__keys_are_content) {
    scene s;
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 0);
    open_scene(&s, context, &options);
    run(&s, 5, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    run(&s, 5, RONDO_CACHE_REPLAYED);  // another address each time
    run(&s, 6, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    assert_int_equal(atomic_load(&s.call_count), 2);
    assert_x(&s, ((1 * 3 + 6) * 3 + 6) * 3 + 7);
    // A longer key that begins alike is another one.
    char long_key[sizeof(step_key) + 1] = {0};
    step_key key = {.term = 5, .launch_count = 1};
    step_data data = {.s = &s, .key = key};
    rondo_cache_outcome outcome;
    memcpy(long_key, &key, sizeof key);
    ASSERT_OK(rondo_graph_cache_run(s.cache, long_key, sizeof long_key, s.stream, run_step, &data,
                                    &outcome));
    assert_outcome(&s, outcome, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    assert_undisturbed(&s);
    rondo_graph_cache_stats stats = get_stats(&s);
    assert_int_equal(stats.hit_count, 1);
    assert_int_equal(stats.miss_count, 3);
    assert_int_equal(stats.capture_count, 3);
    assert_int_equal(stats.instantiate_count, 3);
    assert_int_equal(stats.entry_count, 3);
    assert_int_equal(stats.key_count, 3);
    assert_true(stats.bytes > 0);
    ASSERT_OK(rondo_graph_cache_forget(s.cache, &key, sizeof key));
    ASSERT_STATUS(rondo_graph_cache_get_entry(
                      s.cache, &key, sizeof key,
                      &(rondo_graph_cache_entry){.struct_size = sizeof(rondo_graph_cache_entry)}),
                  INVALID);
    run(&s, 5, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    ASSERT_OK(rondo_graph_cache_clear(s.cache));
    stats = get_stats(&s);
    assert_int_equal(stats.key_count, 0);
    assert_int_equal(stats.bytes, 0);
    close_scene(&s);
}

SUITE_CASE(test_conformance_graph_cache__the_oldest_goes) {
    scene s;
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 2);
    open_scene(&s, context, &options);
    run(&s, 1, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    run(&s, 2, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    run(&s, 1, RONDO_CACHE_REPLAYED);
    // Its executable is patched for the third: the same launches with other arguments.
    run(&s, 3, RONDO_CACHE_UPDATED);
    assert_undisturbed(&s);
    assert_true(is_held(&s, 1));
    assert_false(is_held(&s, 2));
    assert_true(is_held(&s, 3));
    run(&s, 1, RONDO_CACHE_REPLAYED);
    run(&s, 3, RONDO_CACHE_REPLAYED);
    assert_x(&s, (((((1 * 3 + 2) * 3 + 3) * 3 + 2) * 3 + 4) * 3 + 2) * 3 + 4);
    // One more launch: it cannot be patched.
    rondo_cache_outcome outcome;
    ASSERT_OK(run_kind(&s, STEP_RECORDS, (step_key){.term = 4, .launch_count = 2}, &outcome));
    assert_outcome(&s, outcome, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    assert_undisturbed(&s);
    assert_false(is_held(&s, 1));
    rondo_graph_cache_stats stats = get_stats(&s);
    assert_int_equal(stats.eviction_count, 2);
    assert_int_equal(stats.entry_count, 2);
    assert_int_equal(stats.key_count, 4);
    assert_int_equal(stats.update_count, 1);
    close_scene(&s);
}

SUITE_CASE(test_conformance_graph_cache__bytes_are_bounded) {
    scene s;
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 0);
    open_scene(&s, context, &options);
    run(&s, 1, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    assert_undisturbed(&s);
    uint64_t bytes = get_stats(&s).bytes;
    close_scene(&s);
    options.byte_limit = 2 * bytes;
    open_scene(&s, context, &options);
    for (uint32_t term = 1; term < 5; ++term) {
        run(&s, term, RONDO_CACHE_CAPTURED_AND_REPLAYED);
        assert_undisturbed(&s);
        rondo_graph_cache_stats stats = get_stats(&s);
        assert_true(stats.bytes <= 2 * bytes);
        assert_int_equal(stats.entry_count, term < 2 ? 1 : 2);
    }
    close_scene(&s);
    options.byte_limit = bytes / 2;  // less than one
    open_scene(&s, context, &options);
    run(&s, 1, RONDO_CACHE_RAN_EAGERLY);
    if (strstr(get_entry(&s, 1).reason, "byte_limit") == NULL) {
        assert_undisturbed(&s);
        fail_msg("%s", get_entry(&s, 1).reason);
    }
    assert_x(&s, 1 * 3 + 2);
    run(&s, 1, RONDO_CACHE_RAN_EAGERLY);
    assert_int_equal(atomic_load(&s.call_count), 3);  // recorded the first time only
    close_scene(&s);
}

SUITE_CASE(test_conformance_graph_cache__pinned_keys_stay) {
    scene s;
    step_key key = {.term = 1, .launch_count = 1};
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 1);
    options.key_limit = 1;
    open_scene(&s, context, &options);
    ASSERT_OK(rondo_graph_cache_pin(s.cache, &key, sizeof key));
    assert_string_equal(get_entry(&s, 1).reason, "not run yet");
    run(&s, 2, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    run(&s, 1, RONDO_CACHE_UPDATED);
    run(&s, 2, RONDO_CACHE_RAN_EAGERLY);
    assert_non_null(strstr(get_entry(&s, 2).reason, "pinned"));
    run(&s, 3, RONDO_CACHE_RAN_EAGERLY);
    run(&s, 1, RONDO_CACHE_REPLAYED);
    assert_true(get_entry(&s, 1).is_pinned);
    assert_int_equal(get_stats(&s).key_count, 2);  // key_limit
    ASSERT_OK(rondo_graph_cache_unpin(s.cache, &key, sizeof key));
    run(&s, 3, RONDO_CACHE_UPDATED);
    assert_int_equal(get_stats(&s).entry_count, 1);
    assert_x(&s, ((((((1 * 3 + 3) * 3 + 2) * 3 + 3) * 3 + 4) * 3 + 2) * 3 + 4));
    close_scene(&s);
}

// Random keys, of three structures, under a budget of eight graphs: each run is as an eager one.
static void change_at_random(suite_context *context, rondo_cache_policy policy, int rounds) {
    scene s;
    rondo_graph_cache_options options = make_options(policy, 8);
    open_scene(&s, context, &options);
    ASSERT_OK(rondo_pool_create(context->device, NULL, &s.pool));
    uint32_t draw = 99;
    uint32_t x = 1;
    for (int i = 0; i < rounds; ++i) {
        draw = draw * 1664525u + 1013904223u;
        uint32_t term = (draw >> 16) % 50;
        step_key key = {.term = term, .launch_count = 1 + term % 3};
        ASSERT_OK(run_kind(&s, STEP_RECORDS, key, NULL));
        x = x * 3 + term + key.launch_count;
        if (i % 100 == 0 || i == rounds - 1) {
            assert_x(&s, x);
        }
    }
    rondo_graph_cache_stats stats = get_stats(&s);
    assert_true(stats.entry_count <= 8);
    assert_int_equal(stats.hit_count + stats.miss_count, rounds);
    assert_int_equal(stats.capture_count, stats.instantiate_count + stats.update_count);
    close_scene(&s);
}

SUITE_CASE(test_conformance_graph_cache__random_changes) {
    change_at_random(context, RONDO_CACHE_ALWAYS_CAPTURE, suite_rounds(2000, 12));
    change_at_random(context, RONDO_CACHE_MEASURED, suite_rounds(8000, 6));
    change_at_random(context, RONDO_CACHE_NEVER_CAPTURE, suite_rounds(500, 3));
}

// ---- steps that are not captured --------------------------------------------------------------

SUITE_CASE(test_conformance_graph_cache__what_cannot_be_captured_stays_eager) {
    scene s;
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 0);
    step_key key = {.term = 1, .launch_count = 1};
    rondo_cache_outcome outcome;
    int rounds = suite_rounds(40, 2);
    int attempts = 0;
    uint32_t x = 1;
    open_scene(&s, context, &options);
    for (int i = 0; i < rounds; ++i) {
        int before = atomic_load(&s.call_count);
        ASSERT_OK(run_kind(&s, STEP_WAITS, key, &outcome));
        assert_outcome(&s, outcome, RONDO_CACHE_RAN_EAGERLY);
        attempts += atomic_load(&s.call_count) - before - 1;
        x = x * 3 + 2;
    }
    assert_x(&s, x);
    assert_int_equal(attempts, rounds > 20 ? 2 : 1);  // at once, and after 16 more runs
    rondo_graph_cache_entry entry = get_entry(&s, 1);
    assert_non_null(strstr(entry.reason, "no graph came of it"));
    assert_int_equal(entry.eager_count, rounds);
    assert_int_equal(get_stats(&s).capture_fail_count, attempts);
    // Other keys are captured all the same, and so is this one once it is forgotten and mended.
    run(&s, 2, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    ASSERT_OK(rondo_graph_cache_forget(s.cache, &key, sizeof key));
    run(&s, 1, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    close_scene(&s);
}

SUITE_CASE(test_conformance_graph_cache__own_failures_are_passed_on) {
    static const rondo_cache_policy policies[] = {RONDO_CACHE_ALWAYS_CAPTURE,
                                                  RONDO_CACHE_NEVER_CAPTURE};
    for (size_t i = 0; i < 2; ++i) {
        scene s;
        rondo_graph_cache_options options = make_options(policies[i], 0);
        rondo_cache_outcome outcome = RONDO_CACHE_REPLAYED;
        step_key key = {.term = 1, .launch_count = 1};
        open_scene(&s, context, &options);
        ASSERT_STATUS(run_kind(&s, STEP_FAILS, key, &outcome), INVALID);
        assert_int_equal(outcome, RONDO_CACHE_NOTHING);
        ASSERT_STATUS(run_kind(&s, STEP_USES_THE_CACHE, key, NULL), STATE);
        ASSERT_MESSAGE_HAS("must not use it");
        run(&s, 1,
            policies[i] == RONDO_CACHE_NEVER_CAPTURE ? RONDO_CACHE_RAN_EAGERLY
                                                     : RONDO_CACHE_CAPTURED_AND_REPLAYED);
        close_scene(&s);
    }
}

SUITE_CASE(test_conformance_graph_cache__misuse) {
    scene s;
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 0);
    open_scene(&s, context, &options);
    step_data data = {.s = &s, .key = {.term = 1, .launch_count = 1}};
    step_key *key = &data.key;
    rondo_graph_cache *none = NULL;
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_STATUS(rondo_graph_cache_run(NULL, key, 8, s.stream, run_step, &data, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_run(s.cache, NULL, 8, s.stream, run_step, &data, NULL),
                  INVALID);
    ASSERT_STATUS(rondo_graph_cache_run(s.cache, key, 0, s.stream, run_step, &data, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_run(s.cache, key, 8, NULL, run_step, &data, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_run(s.cache, key, 8, s.stream, NULL, &data, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_pin(s.cache, NULL, 1), INVALID);
    ASSERT_STATUS(rondo_graph_cache_unpin(s.cache, key, 0), INVALID);
    ASSERT_STATUS(rondo_graph_cache_forget(NULL, key, 8), INVALID);
    ASSERT_STATUS(rondo_graph_cache_clear(NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_wait(NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_get_stats(s.cache, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_get_entry(s.cache, key, 8, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_cache_create(NULL, NULL, &none), INVALID);
    ASSERT_STATUS(rondo_graph_cache_create(context->device, NULL, NULL), INVALID);
    rondo_graph_cache_destroy(NULL);
    ASSERT_OK(rondo_graph_cache_unpin(s.cache, key, 8));  // not known: harmless
    ASSERT_OK(rondo_graph_cache_forget(s.cache, key, 8));
    for (int i = 0; i < 4; ++i) {
        rondo_graph_cache_options wrong = options;
        switch (i) {
            case 0:
                wrong.policy = 3;
                break;
            case 1:
                wrong.mode = -1;
                break;
            case 2:
                wrong.pageable_sources = 2;
                break;
            default:
                wrong.capture_in_background = true;
                wrong.mode = RONDO_CAPTURE_GLOBAL;
                break;
        }
        ASSERT_STATUS(rondo_graph_cache_create(context->device, &wrong, &none), INVALID);
        assert_null(none);
    }
    // On a stream that records nothing is broken, with a graph or without.
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(rondo_graph_capture_begin(graph, s.stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_STATUS(rondo_graph_cache_run(s.cache, key, 8, s.stream, run_step, &data, NULL),
                      STATE);
        ASSERT_OK(suite_affine(context, s.stream, s.x, COUNT, 1, 1));
        ASSERT_OK(rondo_graph_capture_end(graph));
        ASSERT_OK(rondo_graph_reset(graph));
        run(&s, 1, i == 0 ? RONDO_CACHE_CAPTURED_AND_REPLAYED : RONDO_CACHE_REPLAYED);
    }
    rondo_graph_destroy(graph);
    close_scene(&s);
}

// It cannot record, and says so; a graph that was captured elsewhere is replayed there.
SUITE_CASE(test_conformance_graph_cache__the_legacy_stream_is_eager) {
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 0);
    rondo_stream *legacy = NULL;
    scene s;
    if (!context->is_cuda) {
        suite_skip("the device has no legacy default stream");
    }
    open_scene(&s, context, &options);
    rondo_stream *own = s.stream;
    ASSERT_OK(rondo_stream_wrap(context->device, NULL, &legacy));
    s.stream = legacy;
    run(&s, 1, RONDO_CACHE_RAN_EAGERLY);
    assert_non_null(strstr(get_entry(&s, 1).reason, "legacy default stream"));
    ASSERT_OK(rondo_stream_synchronize(legacy));  // nothing orders the two streams
    s.stream = own;
    run(&s, 2, RONDO_CACHE_CAPTURED_AND_REPLAYED);
    ASSERT_OK(rondo_stream_synchronize(own));
    s.stream = legacy;
    run(&s, 2, RONDO_CACHE_REPLAYED);
    assert_x(&s, ((1 * 3 + 2) * 3 + 3) * 3 + 3);
    rondo_stream_destroy(legacy);
    s.stream = own;
    close_scene(&s);
}

SUITE_CASE(test_conformance_graph_cache__graphs_share_an_arena) {
    scene s;
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 2);
    ASSERT_OK(rondo_arena_create(context->device, NULL, &options.arena));
    open_scene(&s, context, &options);
    ASSERT_OK(rondo_pool_create(context->device, NULL, &s.pool));
    rondo_arena_stats stats = {.struct_size = sizeof stats};
    uint32_t x = 1;
    uint64_t first_bytes = 0;
    for (uint32_t i = 0; i < 6; ++i) {
        ASSERT_OK(run_kind(&s, STEP_RECORDS, (step_key){.term = i, .launch_count = 1}, NULL));
        x = x * 3 + i + 1;
        ASSERT_OK(rondo_arena_get_stats(options.arena, &stats));
        first_bytes = i == 0 ? stats.reserved_bytes : first_bytes;
        assert_undisturbed(&s);
        assert_int_equal(stats.reserved_bytes, first_bytes);
    }
    assert_x(&s, x);
    close_scene(&s);
    rondo_arena_release(options.arena);
}

// ---- captures in the background ---------------------------------------------------------------

SUITE_CASE(test_conformance_graph_cache__captures_in_the_background) {
    static scene s;  // which the other thread may use after the case has stopped in its middle
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 0);
    options.capture_in_background = true;
    options.user_data_bytes = sizeof(step_data);
    uint32_t x = 1;
    open_scene(&s, context, &options);
    for (uint32_t term = 1; term < 4; ++term) {
        run(&s, term, RONDO_CACHE_RAN_EAGERLY);
        x = x * 3 + term + 1;
        ASSERT_OK(rondo_graph_cache_wait(s.cache));
        if (suite_is_swept && !is_held(&s, term)) {
            rondo_status status = RONDO_STATUS_NO_MEMORY;  // or what else the thread was told
            ASSERT_OK(status);
        }
        for (int i = 0; i < 3; ++i) {
            run(&s, term, RONDO_CACHE_REPLAYED);
            x = x * 3 + term + 1;
        }
    }
    assert_x(&s, x);
    assert_int_equal(atomic_load(&s.call_count), 6);
    assert_int_equal(get_stats(&s).capture_count, 3);
    // What fails there leaves the key eager.
    rondo_cache_outcome outcome;
    ASSERT_OK(run_kind(&s, STEP_WAITS, (step_key){.term = 9, .launch_count = 1}, &outcome));
    assert_outcome(&s, outcome, RONDO_CACHE_RAN_EAGERLY);
    ASSERT_OK(rondo_graph_cache_wait(s.cache));
    assert_non_null(strstr(get_entry(&s, 9).reason, "no graph came of it"));
    run(&s, 9, RONDO_CACHE_RAN_EAGERLY);
    close_scene(&s);
}

// Keys change while captures run; the cache is destroyed, emptied, and asked meanwhile.
SUITE_CASE(test_conformance_graph_cache__background_work_meets_everything) {
    rondo_graph_cache_options options = make_options(RONDO_CACHE_ALWAYS_CAPTURE, 3);
    options.capture_in_background = true;
    options.user_data_bytes = sizeof(step_data);
    options.key_limit = 2;
    for (int i = 0, rounds = suite_rounds(20, 2); i < rounds; ++i) {
        static scene s;
        uint32_t x = 1;
        open_scene(&s, context, &options);
        for (uint32_t j = 0; j < 12; ++j) {
            step_key key = {.term = j % 5, .launch_count = 1};
            ASSERT_OK(run_kind(&s, STEP_RECORDS, key, NULL));
            x = x * 3 + j % 5 + 1;
            if (j == 6) {
                ASSERT_OK(rondo_graph_cache_pin(s.cache, &key, sizeof key));
            } else if (j == 7) {
                ASSERT_OK(rondo_graph_cache_forget(s.cache, &key, sizeof key));
            } else if (j == 9 && i % 2 == 0) {
                ASSERT_OK(rondo_graph_cache_clear(s.cache));
            }
        }
        assert_true(get_stats(&s).entry_count <= 3);
        assert_x(&s, x);
        ASSERT_OK(run_kind(&s, STEP_RECORDS, (step_key){.term = 77}, NULL));
        close_scene(&s);  // a capture is under way, perhaps
    }
}
