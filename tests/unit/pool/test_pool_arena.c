// Arenas under random traffic, against a model that knows every node's ancestors: live blocks never
// overlap, no stream is given bytes whose work need not come before it, the bookkeeping holds, and
// everything is given back in the end.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_object.h"
#include "pool/arena_graph.h"
#include "pool/arena_use.h"
#include "pool/order.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum {
    STREAMS = 4,
    NODES_MAX = 512,
    WORDS = NODES_MAX / 64,
    BLOCKS_MAX = 48,
    UNITS_MAX = 1 << 15,
    GRAPHS = 3,
};

// Nodes of the capture in progress.
typedef struct node_set {
    uint64_t words[WORDS];
} node_set;

static void add_node(node_set *set, size_t node) {
    set->words[node / 64] |= UINT64_C(1) << node % 64;
}

static void add_all(node_set *set, const node_set *other) {
    for (int i = 0; i < WORDS; ++i) {
        set->words[i] |= other->words[i];
    }
}

static bool is_subset(const node_set *set, const node_set *of) {
    for (int i = 0; i < WORDS; ++i) {
        if ((set->words[i] & ~of->words[i]) != 0) {
            return false;
        }
    }
    return true;
}

// What is known of 512 bytes.
typedef struct unit {
    uintptr_t address;
    bool is_live;
    node_set touched_by;  // in the capture in progress
} unit;

typedef struct block {
    uintptr_t begin;
    size_t bytes;
    int stream;
    int capture;  // it was taken in
} block;

typedef struct world {
    rondo_device *device;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_graph *graphs[GRAPHS];
    rondo_stream *streams[STREAMS];
    node_set ancestors[STREAMS];  // with what the stream stands at
    size_t node_count;
    bool is_recording;
    bool has_joined[STREAMS];
    block blocks[BLOCKS_MAX];
    size_t block_count;
    int capture;             // number of the one that is open, or was last
    block late[BLOCKS_MAX];  // from before it, freed inside it: its end decides
    size_t late_count;
    unit *units;  // open addressing
    size_t reuse_count;
} world;

static unit *get_unit(world *w, uintptr_t address) {
    size_t i = (address >> 9) * UINT64_C(0x9E3779B97F4A7C15) >> 40 & (UNITS_MAX - 1);
    while (w->units[i].address != 0 && w->units[i].address != address) {
        i = (i + 1) & (UNITS_MAX - 1);
    }
    w->units[i].address = address;
    return &w->units[i];
}

static void touch(world *w, const block *b, int stream) {
    if (w->node_count == NODES_MAX) {
        return;
    }
    OK(rondo_stream_fill(w->streams[stream], (void *)b->begin, 1, 1, 16));
    add_node(&w->ancestors[stream], w->node_count);
    for (uintptr_t a = b->begin; a < b->begin + b->bytes; a += 512) {
        add_node(&get_unit(w, a)->touched_by, w->node_count);
    }
    ++w->node_count;
}

static void take(world *w, int stream) {
    size_t bytes = 1 + (size_t)rand() % (rand() % 8 == 0 ? 60000 : 3000);
    void *address;
    OK(rondo_pool_allocate(w->pool, w->streams[stream], bytes, &address));
    block *b = &w->blocks[w->block_count++];
    *b = (block){.begin = (uintptr_t)address,
                 .bytes = (bytes + 511) / 512 * 512,
                 .stream = stream,
                 .capture = w->capture};
    bool is_reuse = false;
    for (uintptr_t a = b->begin; a < b->begin + b->bytes; a += 512) {
        unit *u = get_unit(w, a);
        assert_false(u->is_live);
        assert_true(is_subset(&u->touched_by, &w->ancestors[stream]));
        is_reuse = is_reuse || !is_subset(&u->touched_by, &(node_set){{0}});
        u->is_live = true;
    }
    w->reuse_count += is_reuse;
}

static void bury(world *w, const block *b) {
    for (uintptr_t a = b->begin; a < b->begin + b->bytes; a += 512) {
        get_unit(w, a)->is_live = false;
    }
}

static void give(world *w, size_t index) {
    block b = w->blocks[index];
    OK(rondo_pool_free(w->pool, (void *)b.begin));
    w->blocks[index] = w->blocks[--w->block_count];
    if (w->is_recording && b.capture != w->capture) {
        w->late[w->late_count++] = b;
    } else {
        bury(w, &b);
    }
}

// What the end of a capture decides: frees are done or undone.
static void settle(world *w, bool has_succeeded) {
    while (w->late_count > 0) {
        block b = w->late[--w->late_count];
        if (has_succeeded) {
            bury(w, &b);
        } else {
            w->blocks[w->block_count++] = b;
        }
    }
}

static void join(world *w, int to, int from) {
    rondo_event *event;
    OK(rondo_event_create(w->device, 0, &event));
    OK(rondo_event_record(event, w->streams[from]));
    OK(rondo_stream_wait_event(w->streams[to], event));
    rondo_event_destroy(event);
    add_all(&w->ancestors[to], &w->ancestors[from]);
    w->has_joined[to] = true;
}

static void use(world *w, size_t index, int stream) {
    block *b = &w->blocks[index];
    // As a program would: the stream comes after the owner's work so far.
    join(w, stream, b->stream);
    OK(rondo_pool_use(w->pool, w->streams[stream], (void *)b->begin));
    touch(w, b, stream);
}

static void check(world *w) {
    for (rondo__arena_pool *a = w->pool->arena_pools; a != NULL; a = a->next) {
        assert_true(rondo__heap_check(&a->heap));
        for (const rondo__arena_use *u = a->uses; u != NULL; u = u->next_in_pool) {
            for (const rondo__section_stream *s = u->section_streams; s != NULL; s = s->next) {
                assert_true(rondo__heap_check_shared(&a->heap, &s->free));
            }
        }
    }
    assert_true(rondo__heap_check(&w->pool->idle));
    uint64_t live = 0;
    for (size_t i = 0; i < w->block_count; ++i) {
        live += w->blocks[i].bytes;
    }
    for (size_t i = 0; i < w->late_count; ++i) {
        live += w->late[i].bytes;
    }
    assert_int_equal(w->pool->stats.live_bytes, live);
    assert_int_equal(w->pool->stats.live_count, w->block_count + w->late_count);
}

static void step(world *w) {
    int stream = rand() % STREAMS;
    if (!w->has_joined[stream]) {
        join(w, stream, 0);
    }
    switch (rand() % 6) {
        case 0:
        case 1:
            if (w->block_count + w->late_count < BLOCKS_MAX) {
                take(w, stream);
                touch(w, &w->blocks[w->block_count - 1], stream);
            }
            break;
        case 2:
        case 3:
            if (w->block_count > 0) {
                give(w, (size_t)rand() % w->block_count);
            }
            break;
        case 4:
            if (rand() % 3 == 0) {
                join(w, stream, rand() % STREAMS == stream ? 0 : stream);
            }
            if (w->block_count > 0 && rand() % 2 == 0) {
                use(w, (size_t)rand() % w->block_count, stream);
            }
            break;
        default:
            join(w, 0, stream);
            break;
    }
}

// The streams of blocks from earlier captures must be in this one, or be joined, before use.
static void capture(world *w, rondo_graph *graph, bool aborts) {
    OK(rondo_graph_reset(graph));
    memset(w->ancestors, 0, sizeof w->ancestors);
    memset(w->has_joined, 0, sizeof w->has_joined);
    for (size_t i = 0; i < UNITS_MAX; ++i) {
        memset(&w->units[i].touched_by, 0, sizeof w->units[i].touched_by);
    }
    w->node_count = 0;
    OK(rondo_graph_capture_begin(graph, w->streams[0], RONDO_CAPTURE_RELAXED));
    w->capture += 1;
    w->is_recording = true;
    w->has_joined[0] = true;
    for (int i = 1; i < STREAMS; ++i) {
        join(w, i, 0);
    }
    for (int i = 0; i < 300; ++i) {
        step(w);
        if (i % 25 == 0) {
            check(w);
        }
    }
    if (aborts) {
        rondo_graph_capture_abort(graph);
    } else {
        for (int i = 1; i < STREAMS; ++i) {
            join(w, 0, i);
        }
        OK(rondo_graph_capture_end(graph));
    }
    w->is_recording = false;
    settle(w, !aborts);
    check(w);
}

TEST(test_pool_arena__random_traffic_against_a_model) {
    srand(11);
    world w = {.units = calloc(UNITS_MAX, sizeof *w.units)};
    assert_non_null(w.units);
    OK(rondo_device_open("host", &w.device));
    OK(rondo_pool_create(w.device, NULL, &w.pool));
    OK(rondo_arena_create(w.device, NULL, &w.arena));
    for (int i = 0; i < STREAMS; ++i) {
        OK(rondo_stream_create(w.device, NULL, &w.streams[i]));
    }
    rondo_graph_options options = {.struct_size = sizeof options};
    options.arena = w.arena;
    for (int i = 0; i < GRAPHS; ++i) {
        OK(rondo_graph_create(w.device, &options, &w.graphs[i]));
    }
    for (int round = 0; round < 60; ++round) {
        capture(&w, w.graphs[rand() % GRAPHS], rand() % 5 == 0);
        while (w.block_count > 0 && rand() % 4 != 0) {
            give(&w, (size_t)rand() % w.block_count);  // eagerly
        }
        check(&w);
    }
    assert_true(w.reuse_count > 100);
    for (int i = 0; i < GRAPHS; ++i) {
        rondo_graph_destroy(w.graphs[i]);
    }
    check(&w);
    while (w.block_count > 0) {
        give(&w, 0);
    }
    OK(rondo_device_synchronize(w.device));
    OK(rondo_pool_trim(w.pool, 0, NULL));
    assert_int_equal(w.pool->stats.reserved_bytes, 0);
    assert_int_equal(w.pool->stats.pending_bytes, 0);
    assert_null(w.pool->arena_pools);
    rondo_arena_stats stats = {.struct_size = sizeof stats};
    OK(rondo_arena_get_stats(w.arena, &stats));
    assert_int_equal(stats.live_bytes + stats.reserved_bytes + stats.graph_count, 0);
    rondo_arena_release(w.arena);
    for (int i = 0; i < STREAMS; ++i) {
        rondo_stream_destroy(w.streams[i]);
    }
    rondo_pool_release(w.pool);
    rondo_device_release(w.device);
    free(w.units);
}

// ---- two threads ------------------------------------------------------------------------------

typedef struct replayer {
    rondo_graph *graph;
    rondo_stream *stream;
    rondo_status status;
    char message[512];
} replayer;

static void *replay_on_thread(void *data) {
    replayer *r = data;
    r->status = rondo_graph_replay(r->graph, r->stream);
    snprintf(r->message, sizeof r->message, "%s", rondo_error_get_last()->message);
    return NULL;
}

// While one thread is between the look and the launch, another's replay of a sharer is refused.
TEST(test_pool_arena__sharers_are_replayed_by_one_thread_at_a_time) {
    rondo_device *device;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_stream *streams[2];
    rondo_graph *graphs[2];
    void *x;
    OK(rondo_device_open("host", &device));
    OK(rondo_pool_create(device, NULL, &pool));
    OK(rondo_arena_create(device, NULL, &arena));
    rondo_graph_options options = {.struct_size = sizeof options};
    options.arena = arena;
    for (int i = 0; i < 2; ++i) {
        OK(rondo_stream_create(device, NULL, &streams[i]));
        OK(rondo_graph_create(device, &options, &graphs[i]));
        OK(rondo_graph_capture_begin(graphs[i], streams[i], RONDO_CAPTURE_THREAD_LOCAL));
        OK(rondo_pool_allocate(pool, streams[i], 100, &x));
        OK(rondo_stream_fill(streams[i], x, 1, 1, 100));
        OK(rondo_pool_free(pool, x));
        OK(rondo_graph_capture_end(graphs[i]));
    }
    rondo__participant *first = graphs[1]->participants;
    while (first->type != &rondo__arena_graph_type) {
        first = first->next;
    }
    OK(rondo__order_prepare_replay(first, streams[1]));
    replayer r = {.graph = graphs[0], .stream = streams[0]};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, replay_on_thread, &r), 0);
    pthread_join(thread, NULL);
    assert_int_equal(r.status, RONDO_STATUS_STATE);
    assert_non_null(strstr(r.message, "another thread"));
    rondo__order_cancel_replay(first);
    assert_int_equal(pthread_create(&thread, NULL, replay_on_thread, &r), 0);
    pthread_join(thread, NULL);
    assert_int_equal(r.status, RONDO_STATUS_OK);
    for (int i = 0; i < 2; ++i) {
        rondo_graph_destroy(graphs[i]);
        rondo_stream_destroy(streams[i]);
    }
    rondo_arena_release(arena);
    rondo_pool_release(pool);
    rondo_device_release(device);
}

// A graph may go while another thread is between the look and the end of a replay that writes over
// its output.
TEST(test_pool_arena__a_conflict_goes_during_a_replay) {
    rondo_device *device;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_stream *stream;
    rondo_graph *graphs[2];
    void *x;
    OK(rondo_device_open("host", &device));
    OK(rondo_pool_create(device, NULL, &pool));
    OK(rondo_arena_create(device, NULL, &arena));
    OK(rondo_stream_create(device, NULL, &stream));
    rondo_graph_options options = {.struct_size = sizeof options};
    options.arena = arena;
    for (int i = 0; i < 2; ++i) {
        OK(rondo_graph_create(device, &options, &graphs[i]));
        OK(rondo_graph_capture_begin(graphs[i], stream, RONDO_CAPTURE_THREAD_LOCAL));
        OK(rondo_pool_allocate(pool, stream, 100, &x));
        OK(rondo_stream_fill(stream, x, 1, 1, 100));
        OK(rondo_graph_capture_end(graphs[i]));
        OK(rondo_graph_replay(graphs[i], stream));
        OK(rondo_stream_synchronize(stream));
        OK(rondo_pool_free(pool, x));
    }
    rondo__participant *second = graphs[1]->participants;
    while (second->type != &rondo__arena_graph_type) {
        second = second->next;
    }
    const rondo__arena_graph *in_arena = (const rondo__arena_graph *)second;
    OK(rondo__order_prepare_replay(second, stream));
    assert_int_equal(in_arena->conflicts.count, 1);
    rondo_graph_destroy(graphs[0]);
    assert_int_equal(in_arena->conflicts.count, 0);
    rondo__order_note_replay(second, stream);
    OK(rondo_graph_replay(graphs[1], stream));
    rondo_graph_destroy(graphs[1]);
    rondo_stream_destroy(stream);
    rondo_arena_release(arena);
    rondo_pool_release(pool);
    rondo_device_release(device);
}

TEST_MAIN()
