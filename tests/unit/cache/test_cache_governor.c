// What a graph cache chooses, with planted times: a clock that moves by what a run is said to cost.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache_object.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/test.h"

// What runs of the present key cost, and what the clock has to know: between two readings there is
// a step (recorded or not), the making of an executable, or a replay.
typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph_cache *cache;
    uint64_t eager_ns, replay_ns, capture_ns, executable_ns;
    uint64_t eager_device_ns, replay_device_ns;
    uint64_t now_ns;
    uint64_t total_ns;  // of all runs, also of those that nobody measures
    uint64_t eager_total_ns;
    bool is_open;       // one reading was made
    bool was_run;       // the step was, since then
    bool was_recorded;  // and recorded
    bool makes_exec;    // the next two readings are around the executable
} world;

static world g_world;

static uint64_t read_clock(void *user_data) {
    world *w = user_data;
    if (w->is_open) {
        if (w->was_run) {
            w->now_ns += w->was_recorded ? w->capture_ns : w->eager_ns;
            w->makes_exec = w->was_recorded;
        } else if (w->makes_exec) {
            w->now_ns += w->executable_ns;
            w->makes_exec = false;
        } else {
            w->now_ns += w->replay_ns;
        }
    }
    w->was_run = false;
    w->is_open = !w->is_open;
    return w->now_ns;
}

static uint64_t get_device_ns(void *user_data, bool is_replay) {
    const world *w = user_data;
    return is_replay ? w->replay_device_ns : w->eager_device_ns;
}

static void do_nothing(void *arguments) {
    (void)arguments;
}

static rondo_status run_step(rondo_stream *stream, void *user_data) {
    world *w = user_data;
    w->was_run = true;
    if (rondo_stream_is_recording(stream, &w->was_recorded) != RONDO_STATUS_OK) {
        return RONDO_STATUS_INTERNAL;
    }
    return rondo_stream_call_host(stream, "nothing", do_nothing, NULL, 0);
}

static world *open_world(size_t entry_limit) {
    world *w = &g_world;
    memset(w, 0, sizeof *w);
    rondo_graph_cache_options options = {.struct_size = sizeof options, .entry_limit = entry_limit};
    rondo__cache_meter meter = {.clock = {.now_ns = read_clock, .user_data = w},
                                .device_ns = get_device_ns};
    OK(rondo_device_open("host", &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    OK(rondo_graph_cache_create(w->device, &options, &w->cache));
    rondo__graph_cache_set_meter(w->cache, &meter);
    return w;
}

static void close_world(world *w) {
    rondo_graph_cache_destroy(w->cache);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

static void plant(world *w, uint64_t eager_ns, uint64_t replay_ns, uint64_t capture_ns,
                  uint64_t executable_ns) {
    w->eager_ns = eager_ns;
    w->replay_ns = replay_ns;
    w->capture_ns = capture_ns;
    w->executable_ns = executable_ns;
}

static rondo_cache_outcome run(world *w, uint32_t key) {
    rondo_cache_outcome outcome = RONDO_CACHE_NOTHING;
    w->is_open = false;
    w->was_run = false;
    OK(rondo_graph_cache_run(w->cache, &key, sizeof key, w->stream, run_step, w, &outcome));
    bool is_new = outcome == RONDO_CACHE_CAPTURED_AND_REPLAYED || outcome == RONDO_CACHE_UPDATED;
    w->total_ns += outcome == RONDO_CACHE_RAN_EAGERLY ? w->eager_ns : w->replay_ns;
    w->total_ns += is_new ? w->capture_ns + w->executable_ns : 0;
    w->eager_total_ns += w->eager_ns;
    return outcome;
}

// How many runs until the outcome is not `outcome`; that one is counted, too.
static int run_until_not(world *w, uint32_t key, rondo_cache_outcome outcome, int most) {
    int count = 1;
    while (count < most && run(w, key) == outcome) {
        ++count;
    }
    return count;
}

static rondo_graph_cache_entry get_entry(world *w, uint32_t key) {
    rondo_graph_cache_entry entry = {.struct_size = sizeof entry};
    OK(rondo_graph_cache_get_entry(w->cache, &key, sizeof key, &entry));
    return entry;
}

static rondo_graph_cache_stats get_stats(world *w) {
    rondo_graph_cache_stats stats = {.struct_size = sizeof stats};
    OK(rondo_graph_cache_get_stats(w->cache, &stats));
    return stats;
}

TEST(test_cache_governor__a_key_that_pays_is_captured) {
    world *w = open_world(0);
    plant(w, 100000, 10000, 300000, 100000);
    assert_int_equal(run(w, 1), RONDO_CACHE_RAN_EAGERLY);  // always, the first time
    assert_string_equal(get_entry(w, 1).reason,
                        "eager: 100 us; a capture should cost 400 us and pay back after 6 runs, "
                        "and the key came 1 time");
    // 4 E / (E - E / 4): five runs more are eager, the seventh captures.
    assert_int_equal(run_until_not(w, 1, RONDO_CACHE_RAN_EAGERLY, 100), 6);
    assert_int_equal(get_entry(w, 1).capture_count, 1);
    assert_string_equal(get_entry(w, 1).reason,
                        "replay: 10 us against 100 us eager; pays back after 5 runs");
    for (int i = 0; i < 1000; ++i) {
        assert_int_equal(run(w, 1), RONDO_CACHE_REPLAYED);
    }
    rondo_graph_cache_entry entry = get_entry(w, 1);
    assert_string_equal(entry.reason, "replay: 10 us against 100 us eager; paid back after 5 runs");
    assert_int_equal(entry.payback_run_count, 5);
    assert_int_equal(entry.eager_ns, 100000);
    assert_int_equal(entry.replay_ns, 10000);
    assert_int_equal(entry.capture_ns, 300000);
    assert_int_equal(entry.instantiate_ns, 100000);
    assert_int_equal(entry.update_ns, 0);
    // What it cost is known now: the next key of that size waits one run less.
    assert_int_equal(run_until_not(w, 2, RONDO_CACHE_RAN_EAGERLY, 100), 6);
    // Keys that come once are never captured.
    for (uint32_t key = 100; key < 3000; ++key) {
        assert_int_equal(run(w, key), RONDO_CACHE_RAN_EAGERLY);
    }
    close_world(w);
}

TEST(test_cache_governor__what_is_slower_goes_back) {
    static const struct {
        uint64_t eager_ns, replay_ns, eager_device_ns, replay_device_ns;
        bool goes_back;
        const char *reason;
    } rows[] = {
        {10000, 20000, 0, 0, true, "eager: 10 us against 20 us replayed"},
        {10000, 1000, 51000, 130000, true, "eager: 51 us against 130 us replayed"},  // the device
        {10000, 1000, 120000, 130000, false, NULL},  // within an eighth: no flipping
        {10000, 1000, 12000, 30000, false, NULL},    // too short for events
        {10000, 11000, 0, 0, false, NULL},
        {10000, 10000, 0, 0, false, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        world *w = open_world(0);
        plant(w, rows[i].eager_ns, rows[i].replay_ns, 30000, 10000);
        w->eager_device_ns = rows[i].eager_device_ns;
        w->replay_device_ns = rows[i].replay_device_ns;
        for (int j = 0; j < 40; ++j) {
            (void)run(w, 1);
        }
        rondo_graph_cache_entry entry = get_entry(w, 1);
        assert_int_equal(entry.capture_count, 1);
        assert_int_equal(entry.has_graph, !rows[i].goes_back);
        assert_int_equal(get_stats(w).give_up_count, rows[i].goes_back);
        if (rows[i].goes_back) {
            assert_string_equal(entry.reason, rows[i].reason);
        }
        // And in the long run it is tried again hardly ever.
        for (int j = 0; j < 20000; ++j) {
            (void)run(w, 1);
        }
        assert_true(get_entry(w, 1).capture_count <= 8);
        if (rows[i].goes_back && rows[i].eager_device_ns == 0) {
            assert_true(w->total_ns < w->eager_total_ns + w->eager_total_ns / 50);
        }
        close_world(w);
    }
}

// One sample in five is disturbed by another program: medians do not see it.
TEST(test_cache_governor__noise_does_not_flip) {
    world *w = open_world(0);
    for (int i = 0; i < 5000; ++i) {
        uint64_t factor = i % 5 == 3 ? 50 : 1;
        plant(w, 10000, 9500 * factor, 30000, 10000);
        (void)run(w, 1);
    }
    assert_int_equal(get_entry(w, 1).capture_count, 1);
    assert_int_equal(get_stats(w).give_up_count, 0);
    close_world(w);
}

// The first runs are slow for other reasons, and a replay is slower than what comes after them.
TEST(test_cache_governor__cold_runs_do_not_deceive_for_long) {
    world *w = open_world(0);
    for (int i = 0; i < 100000; ++i) {
        plant(w, i < 8 ? 100000 : 10000, 20000, 40000, 10000);
        (void)run(w, 1);
    }
    assert_false(get_entry(w, 1).has_graph);
    assert_true(w->total_ns < w->eager_total_ns + w->eager_total_ns / 10);
    close_world(w);
}

static uint32_t draw(uint32_t *in_out_state, uint32_t count) {
    *in_out_state = *in_out_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(*in_out_state >> 8) * count) >> 24);
}

// Keys that push each other out, or stop coming just when they were captured.
TEST(test_cache_governor__what_does_not_come_back_is_not_captured) {
    uint32_t seed = 5;
    world *w = open_world(8);
    plant(w, 10000, 1000, 50000, 20000);
    for (int i = 0; i < 10000; ++i) {
        (void)run(w, draw(&seed, 50));
    }
    assert_true(get_stats(w).capture_count < 400);
    assert_true(w->total_ns < w->eager_total_ns + w->eager_total_ns / 16);
    close_world(w);
    w = open_world(8);
    plant(w, 10000, 1000, 30000, 10000);
    for (uint32_t key = 0; key < 2000; ++key) {
        for (int i = 0; i < 7; ++i) {
            (void)run(w, key);
        }
    }
    assert_true(w->total_ns < w->eager_total_ns + w->eager_total_ns / 10);
    assert_non_null(strstr(get_entry(w, 1999).reason, "a sixteenth of all runs so far"));
    close_world(w);
    // Five keys in turn and room for one: each asks for twice as many runs each time, so that the
    // one that is held may pay.
    w = open_world(1);
    plant(w, 10000, 1000, 10000, 3000);
    for (uint32_t i = 0; i < 20000; ++i) {
        (void)run(w, i % 5);
    }
    assert_true(w->total_ns < w->eager_total_ns - w->eager_total_ns / 20);
    assert_non_null(strstr(get_entry(w, 0).reason, "times as many are asked for"));
    // Keys that fit are captured and stay.
    close_world(w);
    w = open_world(8);
    rondo_graph_cache_stats before = get_stats(w);
    for (uint32_t i = 0; i < 4000; ++i) {
        (void)run(w, 5000 + i % 8);
    }
    assert_true(get_stats(w).hit_count - before.hit_count > 3000);
    close_world(w);
}

// Whatever things cost and however keys come: at most a sixteenth longer than eagerly, and the
// captures of the graphs held.
TEST(test_cache_governor__never_slower_in_the_long_run) {
    uint32_t seed = 77;
    for (int round = 0; round < 60; ++round) {
        size_t limit = 1 + draw(&seed, 8);
        uint32_t keys = 1 + draw(&seed, 24);
        uint64_t eager = UINT64_C(500) << draw(&seed, 10);
        uint64_t replay = 1 + eager * (1 + draw(&seed, 300)) / 100;
        uint64_t capture = 1 + eager * (1 + draw(&seed, 2000)) / 100;
        world *w = open_world(limit);
        plant(w, eager, replay, capture, capture / 2);
        for (int i = 0; i < 3000; ++i) {
            (void)run(w, draw(&seed, 3) == 0 ? 0 : draw(&seed, keys));
        }
        uint64_t most = w->eager_total_ns + w->eager_total_ns / 10 +
                        (limit + 2) * (capture + capture / 2 + 64 * replay);
        if (w->total_ns > most) {
            fail_msg(
                "%u keys, %zu graphs, eager %llu, replay %llu, capture %llu: %llu, and eagerly "
                "%llu",
                keys, limit, (unsigned long long)eager, (unsigned long long)replay,
                (unsigned long long)capture, (unsigned long long)w->total_ns,
                (unsigned long long)w->eager_total_ns);
        }
        // Where everything fits and replays are much faster, it must not stay eager either.
        if (keys <= limit && replay * 4 < eager && capture < eager * 10) {
            assert_true(w->total_ns < w->eager_total_ns * 3 / 4);
        }
        close_world(w);
    }
}

TEST(test_cache_governor__patching_where_it_is_cheaper) {
    for (int is_cheap = 0; is_cheap < 2; ++is_cheap) {
        rondo__experience experience = {.spent_ns = 0};
        int chosen = 0;
        rondo__governor_note_executable(&experience, false, 30000, 10);
        for (int i = 0; i < 640; ++i) {
            bool tries = rondo__governor_prefers_update(&experience);
            chosen += tries;
            uint64_t update_ns = is_cheap ? 10000 : 40000;
            rondo__governor_note_executable(&experience, tries, tries ? update_ns : 30000, 10);
        }
        assert_true(is_cheap ? chosen > 600 : chosen < 40);
        assert_true(chosen > 10);  // what was dearer is tried again now and then
    }
}

TEST_MAIN()
