// A graph cache from the inside: the heap under changes of keys, and captures in the background
// that take their time.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/test.h"

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph_cache *cache;
    uint32_t memory[64];
    atomic_bool is_held;       // a recorded step waits until this is false
    atomic_int waiting_count;  // steps that wait
} world;

typedef struct step_data {
    world *w;
    uint32_t key;
} step_data;

static void pause_briefly(void) {
    struct timespec pause = {.tv_nsec = 100000};
    nanosleep(&pause, NULL);
}

static rondo_status run_step(rondo_stream *stream, void *user_data) {
    const step_data *data = user_data;
    world *w = data->w;
    bool is_recording = false;
    rondo_status status = rondo_stream_is_recording(stream, &is_recording);
    if (is_recording && atomic_load(&w->is_held)) {
        atomic_fetch_add(&w->waiting_count, 1);
        while (atomic_load(&w->is_held)) {
            pause_briefly();
        }
    }
    for (uint32_t i = 0; status == RONDO_STATUS_OK && i <= data->key % 4; ++i) {
        status = rondo_stream_fill(stream, &w->memory[i], data->key, sizeof(uint32_t), 1);
    }
    return status;
}

static void open_world(world *w, const rondo_graph_cache_options *options) {
    memset(w, 0, sizeof *w);
    OK(rondo_device_open("host", &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    OK(rondo_graph_cache_create(w->device, options, &w->cache));
}

static void close_world(world *w) {
    rondo_graph_cache_destroy(w->cache);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

static rondo_cache_outcome run(world *w, uint32_t key) {
    step_data data = {.w = w, .key = key};
    rondo_cache_outcome outcome;
    OK(rondo_graph_cache_run(w->cache, &key, sizeof key, w->stream, run_step, &data, &outcome));
    return outcome;
}

static bool never_fail(void *user_data) {
    (void)user_data;
    return false;
}

// The library's allocations are counted while a hook is set.
TEST(test_cache_run__the_heap_does_not_grow) {
    rondo_graph_cache_options options = {
        .struct_size = sizeof options, .entry_limit = 8, .key_limit = 30};
    rondo__memory_set_fault(never_fail, NULL);
    for (rondo_cache_policy policy = 0; policy < 3; ++policy) {
        world w;
        uint32_t draw = 1;
        int64_t balance = 0;
        options.policy = policy;
        open_world(&w, &options);
        for (int round = 0; round < 4; ++round) {
            for (int i = 0; i < 2500; ++i) {
                draw = draw * 1664525u + 1013904223u;
                (void)run(&w, (draw >> 16) % 50);
            }
            OK(rondo_stream_synchronize(w.stream));
            OK(rondo_graph_cache_clear(w.cache));
            balance = round == 0 ? rondo__memory_get_balance() : balance;
            assert_int_equal(rondo__memory_get_balance(), balance);
        }
        close_world(&w);
    }
    rondo__memory_set_fault(NULL, NULL);
}

static rondo_graph_cache_entry get_entry(world *w, uint32_t key) {
    rondo_graph_cache_entry entry = {.struct_size = sizeof entry};
    OK(rondo_graph_cache_get_entry(w->cache, &key, sizeof key, &entry));
    return entry;
}

// While a capture takes long all runs are eager; its key is not evicted; who waits gets its graph.
TEST(test_cache_run__runs_go_on_beside_a_capture) {
    static world w;
    rondo_graph_cache_options options = {.struct_size = sizeof options,
                                         .policy = RONDO_CACHE_ALWAYS_CAPTURE,
                                         .capture_in_background = true,
                                         .user_data_bytes = sizeof(step_data),
                                         .key_limit = 1};
    open_world(&w, &options);
    atomic_store(&w.is_held, true);
    assert_int_equal(run(&w, 7), RONDO_CACHE_RAN_EAGERLY);
    while (atomic_load(&w.waiting_count) == 0) {
        pause_briefly();
    }
    for (uint32_t key = 0; key < 20; ++key) {
        assert_int_equal(run(&w, key), RONDO_CACHE_RAN_EAGERLY);
    }
    assert_string_equal(get_entry(&w, 7).reason, "eager: a capture runs in the background");
    atomic_store(&w.is_held, false);
    OK(rondo_graph_cache_wait(w.cache));
    assert_true(get_entry(&w, 7).has_graph);
    assert_int_equal(run(&w, 7), RONDO_CACHE_REPLAYED);
    // Destroyed, and forgotten, while one is under way: both wait for it.
    uint32_t key = 8;
    assert_int_equal(run(&w, key), RONDO_CACHE_RAN_EAGERLY);
    OK(rondo_graph_cache_forget(w.cache, &key, sizeof key));
    assert_int_equal(run(&w, key), RONDO_CACHE_RAN_EAGERLY);
    close_world(&w);
}

TEST_MAIN()
