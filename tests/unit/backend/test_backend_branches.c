// Graphs with branches on the host device: they run at the same time, and never before what they
// depend on.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "rondo/rondo.h"
#include "support/test.h"

// ---- at the same time ---------------------------------------------------------------------------

typedef struct meeting {
    atomic_int arrived;
    atomic_int met;
} meeting;

// Arrives, then waits for the other one. In a row, the first would wait in vain.
static void meet(void *data) {
    meeting *place = *(meeting **)data;
    atomic_fetch_add(&place->arrived, 1);
    uint64_t end = rondo__clock_now_ns() + UINT64_C(20000000000);
    while (atomic_load(&place->arrived) % 2 != 0 && rondo__clock_now_ns() < end) {
    }
    if (atomic_load(&place->arrived) % 2 == 0) {
        atomic_fetch_add(&place->met, 1);
    }
}

TEST(test_backend_branches__run_at_the_same_time) {
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *event;
    rondo_graph *graph;
    rondo_device_info info = {.struct_size = sizeof info};
    meeting place = {0};
    meeting *address = &place;
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    assert_int_equal(rondo_device_get_info(device, &info), RONDO_STATUS_OK);
    if (info.compute_units < 2) {
        rondo_device_release(device);
        print_message("skipped: this machine has one processor\n");
        skip();
    }
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_create(device, NULL, &side), RONDO_STATUS_OK);
    assert_int_equal(rondo_event_create(device, 0, &event), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_event_record(event, stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_wait_event(side, event), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_call_host(stream, "meet", meet, &address, sizeof address),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_call_host(side, "meet", meet, &address, sizeof address),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_event_record(event, side), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_wait_event(stream, event), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_capture_end(graph), RONDO_STATUS_OK);
    for (int i = 0; i < 20; ++i) {
        assert_int_equal(rondo_graph_replay(graph, stream), RONDO_STATUS_OK);
    }
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
    assert_int_equal(atomic_load(&place.met), 40);
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
    rondo_stream_destroy(side);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

// ---- in the right order, whatever the shape -----------------------------------------------------

// The test's own model of a recording: which nodes come before a point of a stream or an event, as
// a set of bits.
enum { NODE_MAX = 192, WORD_COUNT = NODE_MAX / 64, STREAM_COUNT = 5, EVENT_COUNT = 6 };

typedef struct node_set {
    uint64_t words[WORD_COUNT];
} node_set;

typedef struct node_record {
    node_set before;
    atomic_uint runs;
} node_record;

typedef struct random_graph {
    node_record nodes[NODE_MAX];
    uint32_t node_count;
    atomic_uint violations;
} random_graph;

typedef struct node_arguments {
    random_graph *owner;
    uint32_t index;
} node_arguments;

// Everything before this node has run exactly once more than this node.
static void check_node(void *data) {
    const node_arguments *arguments = data;
    random_graph *owner = arguments->owner;
    node_record *self = &owner->nodes[arguments->index];
    unsigned runs = atomic_load(&self->runs);
    for (uint32_t i = 0; i < arguments->index; ++i) {
        if ((self->before.words[i / 64] >> (i % 64) & 1) != 0 &&
            atomic_load(&owner->nodes[i].runs) != runs + 1) {
            atomic_fetch_add(&owner->violations, 1);
        }
    }
    atomic_fetch_add(&self->runs, 1);
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void unite(node_set *into, const node_set *from) {
    for (int i = 0; i < WORD_COUNT; ++i) {
        into->words[i] |= from->words[i];
    }
}

typedef struct recorder {
    rondo_stream *streams[STREAM_COUNT];
    rondo_event *events[EVENT_COUNT];
    node_set stream_sets[STREAM_COUNT];
    node_set event_sets[EVENT_COUNT];
    bool has_joined[STREAM_COUNT];
    bool is_recorded[EVENT_COUNT];
} recorder;

static void add_node(random_graph *graph, recorder *r, uint32_t stream) {
    uint32_t index = graph->node_count++;
    graph->nodes[index].before = r->stream_sets[stream];
    node_arguments arguments = {.owner = graph, .index = index};
    assert_int_equal(rondo_stream_call_host(r->streams[stream], "check", check_node, &arguments,
                                            sizeof arguments),
                     RONDO_STATUS_OK);
    r->stream_sets[stream].words[index / 64] |= UINT64_C(1) << (index % 64);
}

static void record_event(recorder *r, uint32_t stream, uint32_t event) {
    assert_int_equal(rondo_event_record(r->events[event], r->streams[stream]), RONDO_STATUS_OK);
    r->event_sets[event] = r->stream_sets[stream];
    r->is_recorded[event] = true;
}

static void wait_event(recorder *r, uint32_t stream, uint32_t event) {
    assert_int_equal(rondo_stream_wait_event(r->streams[stream], r->events[event]),
                     RONDO_STATUS_OK);
    unite(&r->stream_sets[stream], &r->event_sets[event]);
    r->has_joined[stream] = true;
}

// Random nodes, records and waits; then every stream is joined to the first.
static void issue_random(random_graph *graph, recorder *r, uint32_t seed) {
    memset(r->stream_sets, 0, sizeof r->stream_sets);
    memset(r->has_joined, 0, sizeof r->has_joined);
    memset(r->is_recorded, 0, sizeof r->is_recorded);
    r->has_joined[0] = true;
    uint32_t count = 1 + next_random(&seed) % (NODE_MAX - 1);
    while (graph->node_count < count) {
        uint32_t stream = next_random(&seed) % STREAM_COUNT;
        uint32_t event = next_random(&seed) % EVENT_COUNT;
        uint32_t choice = next_random(&seed) % 10;
        if (choice < 2 && r->is_recorded[event]) {
            wait_event(r, stream, event);
        } else if (r->has_joined[stream] && choice < 5) {
            record_event(r, stream, event);
        } else if (r->has_joined[stream]) {
            add_node(graph, r, stream);
        }
    }
    for (uint32_t stream = 1; stream < STREAM_COUNT; ++stream) {
        if (r->has_joined[stream]) {
            record_event(r, stream, 0);
            wait_event(r, 0, 0);
        }
    }
}

TEST(test_backend_branches__keep_every_dependency) {
    enum { GRAPH_COUNT = 60, REPLAY_COUNT = 25 };
    rondo_device *device;
    recorder r;
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    for (int i = 0; i < STREAM_COUNT; ++i) {
        assert_int_equal(rondo_stream_create(device, NULL, &r.streams[i]), RONDO_STATUS_OK);
    }
    for (int i = 0; i < EVENT_COUNT; ++i) {
        assert_int_equal(rondo_event_create(device, 0, &r.events[i]), RONDO_STATUS_OK);
    }
    for (uint32_t seed = 0; seed < GRAPH_COUNT; ++seed) {
        random_graph *work = calloc(1, sizeof *work);
        assert_non_null(work);
        rondo_graph *graph;
        assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_STATUS_OK);
        assert_int_equal(rondo_graph_capture_begin(graph, r.streams[0], RONDO_CAPTURE_THREAD_LOCAL),
                         RONDO_STATUS_OK);
        issue_random(work, &r, seed * 7919 + 1);
        assert_int_equal(rondo_graph_capture_end(graph), RONDO_STATUS_OK);
        // On two streams in turn: replays of one graph do not overlap.
        for (int i = 0; i < REPLAY_COUNT; ++i) {
            assert_int_equal(rondo_graph_replay(graph, r.streams[i % 2]), RONDO_STATUS_OK);
        }
        assert_int_equal(rondo_stream_synchronize(r.streams[0]), RONDO_STATUS_OK);
        assert_int_equal(rondo_stream_synchronize(r.streams[1]), RONDO_STATUS_OK);
        assert_int_equal(atomic_load(&work->violations), 0);
        for (uint32_t i = 0; i < work->node_count; ++i) {
            assert_int_equal(atomic_load(&work->nodes[i].runs), REPLAY_COUNT);
        }
        rondo_graph_destroy(graph);
        free(work);
    }
    for (int i = 0; i < EVENT_COUNT; ++i) {
        rondo_event_destroy(r.events[i]);
    }
    for (int i = 0; i < STREAM_COUNT; ++i) {
        rondo_stream_destroy(r.streams[i]);
    }
    rondo_device_release(device);
}

// ---- failures inside branches -------------------------------------------------------------------

static void fail_on_helper(void *data) {
    (void)data;
    (void)RONDO_FAIL(BAD_DATA, "a branch failed");
    rondo__host_report_failure();
}

TEST(test_backend_branches__failures_reach_the_replaying_stream) {
    rondo_device *device;
    rondo_stream *streams[4];
    rondo_event *event;
    rondo_graph *graph;
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(rondo_stream_create(device, NULL, &streams[i]), RONDO_STATUS_OK);
    }
    assert_int_equal(rondo_event_create(device, 0, &event), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_capture_begin(graph, streams[0], RONDO_CAPTURE_THREAD_LOCAL),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_event_record(event, streams[0]), RONDO_STATUS_OK);
    for (int i = 1; i < 4; ++i) {
        assert_int_equal(rondo_stream_wait_event(streams[i], event), RONDO_STATUS_OK);
        assert_int_equal(rondo_stream_call_host(streams[i], "fail", fail_on_helper, NULL, 0),
                         RONDO_STATUS_OK);
    }
    for (int i = 1; i < 4; ++i) {
        assert_int_equal(rondo_event_record(event, streams[i]), RONDO_STATUS_OK);
        assert_int_equal(rondo_stream_wait_event(streams[0], event), RONDO_STATUS_OK);
    }
    assert_int_equal(rondo_graph_capture_end(graph), RONDO_STATUS_OK);
    for (int i = 0; i < 50; ++i) {
        assert_int_equal(rondo_graph_replay(graph, streams[3]), RONDO_STATUS_OK);
        assert_int_equal(rondo_stream_synchronize(streams[0]), RONDO_STATUS_OK);
        assert_int_equal(rondo_stream_synchronize(streams[3]), RONDO_STATUS_BAD_DATA);
        assert_string_equal(rondo_error_get_last()->message, "a branch failed");
    }
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
    for (int i = 0; i < 4; ++i) {
        rondo_stream_destroy(streams[i]);
    }
    rondo_device_release(device);
}

TEST_MAIN()
