// Sixteen threads at once, and what they may do to each other's objects.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>

#include "conformance/thread_support.h"
#include "rondo/pool.h"

enum { THREAD_COUNT = 16, BYSTANDER_COUNT = 4, ROUND_COUNT = 6, NODE_COUNT = 10, REPLAY_COUNT = 8 };

// What the threads of a case share.
typedef struct arena {
    suite_context *context;
    rondo_pool *pool;
    rondo_capture_mode mode;
    pthread_barrier_t start;
    atomic_int running_count;  // of those that capture; bystanders go on until it is 0
} arena;

typedef struct member {
    arena *shared;
    thread_outcome outcome;
    uint32_t *x;  // what the pair computes on
    rondo_stream *stream;
    rondo_graph *graph;
    struct member *partner;
    pthread_barrier_t handover;  // of a pair; the first one's is used
} member;

static void init_arena(arena *shared, suite_context *context, rondo_capture_mode mode,
                       unsigned party_count) {
    memset(shared, 0, sizeof *shared);
    shared->context = context;
    shared->mode = mode;
    ASSERT_OK(rondo_pool_create(context->device, NULL, &shared->pool));
    pthread_barrier_init(&shared->start, NULL, party_count);
}

static void deinit_arena(arena *shared) {
    pthread_barrier_destroy(&shared->start);
    rondo_pool_release(shared->pool);
}

static member *make_members(arena *shared, uint32_t count) {
    member *members = calloc(count, sizeof *members);
    assert_non_null(members);
    for (uint32_t i = 0; i < count; ++i) {
        members[i].shared = shared;
        members[i].outcome.number = i + 1;
    }
    return members;
}

// ---- capture and replay beside allocations, copies and frees ----------------------------------

static void capture_and_replay(member *self, uint32_t *x) {
    arena *shared = self->shared;
    STEP(rondo_graph_capture_begin(self->graph, self->stream, shared->mode));
    for (uint32_t i = 0; i < NODE_COUNT; ++i) {
        STEP(suite_affine(shared->context, self->stream, x, 1, 3, self->outcome.number + i));
    }
    if (self->outcome.status == RONDO_STATUS_OK) {
        thread_keep(&self->outcome, rondo_graph_capture_end(self->graph));
    } else {
        rondo_graph_capture_abort(self->graph);
    }
    for (int replay = 0; replay < suite_rounds(REPLAY_COUNT, 2); ++replay) {
        STEP(rondo_graph_replay(self->graph, self->stream));
        for (uint32_t i = 0; i < NODE_COUNT; ++i) {
            self->outcome.expected = self->outcome.expected * 3 + self->outcome.number + i;
        }
    }
}

static void *run_recorder(void *data) {
    member *self = data;
    arena *shared = self->shared;
    rondo_device *device = shared->context->device;
    void *pinned = NULL;
    rondo_device_retain(device);
    STEP(rondo_stream_create(device, NULL, &self->stream));
    STEP(rondo_graph_create(device, NULL, &self->graph));
    STEP(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 4, &pinned));
    pthread_barrier_wait(&shared->start);
    for (int round = 0;
         round < suite_rounds(ROUND_COUNT, 2) && self->outcome.status == RONDO_STATUS_OK; ++round) {
        // A block of the common pool; what another thread left in it must not show.
        void *x = NULL;
        STEP(rondo_pool_allocate(shared->pool, self->stream, 512, &x));
        STEP(rondo_stream_fill(self->stream, x, self->outcome.number, 4, 1));
        self->outcome.expected = self->outcome.number;
        capture_and_replay(self, x);
        STEP(rondo_stream_copy(self->stream, pinned, x, 4, RONDO_COPY_DEVICE_TO_HOST));
        STEP(rondo_stream_synchronize(self->stream));
        self->outcome.got = self->outcome.status == RONDO_STATUS_OK ? *(uint32_t *)pinned : 0;
        if (self->outcome.got != self->outcome.expected) {
            break;
        }
        STEP(rondo_graph_reset(self->graph));
        STEP(rondo_pool_free(shared->pool, x));
    }
    atomic_fetch_sub(&shared->running_count, 1);
    rondo_graph_destroy(self->graph);
    rondo_stream_destroy(self->stream);
    rondo_memory_free(device, pinned);
    rondo_device_release(device);
    return NULL;
}

// A data loader: takes memory from the driver and from the pool, copies, computes, frees.
static void *run_loader(void *data) {
    member *self = data;
    arena *shared = self->shared;
    rondo_device *device = shared->context->device;
    STEP(rondo_stream_create(device, NULL, &self->stream));
    pthread_barrier_wait(&shared->start);
    do {
        void *from_driver = NULL;
        void *from_pool = NULL;
        void *pinned = NULL;
        STEP(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 4096, &from_driver));
        STEP(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 4096, &pinned));
        STEP(rondo_pool_allocate(shared->pool, self->stream, 4096, &from_pool));
        if (self->outcome.status == RONDO_STATUS_OK) {
            *(uint32_t *)pinned = self->outcome.number;
        }
        STEP(rondo_stream_copy(self->stream, from_driver, pinned, 4096, RONDO_COPY_HOST_TO_DEVICE));
        STEP(rondo_stream_copy(self->stream, from_pool, from_driver, 4096,
                               RONDO_COPY_DEVICE_TO_DEVICE));
        STEP(suite_affine(shared->context, self->stream, from_pool, 1, 2, 1));
        STEP(rondo_stream_copy(self->stream, pinned, from_pool, 4096, RONDO_COPY_DEVICE_TO_HOST));
        STEP(rondo_stream_synchronize(self->stream));
        self->outcome.expected = self->outcome.number * 2 + 1;
        self->outcome.got = self->outcome.status == RONDO_STATUS_OK ? *(uint32_t *)pinned : 0;
        if (from_pool != NULL) {
            thread_keep(&self->outcome, rondo_pool_free(shared->pool, from_pool));
        }
        rondo_memory_free(device, from_driver);
        rondo_memory_free(device, pinned);
    } while (self->outcome.got == self->outcome.expected &&
             atomic_load(&shared->running_count) > 0);
    rondo_stream_destroy(self->stream);
    return NULL;
}

static void check_sixteen(suite_context *context, rondo_capture_mode mode) {
    enum { COUNT = THREAD_COUNT + BYSTANDER_COUNT };
    arena shared;
    init_arena(&shared, context, mode, COUNT);
    atomic_store(&shared.running_count, THREAD_COUNT);
    member *members = make_members(&shared, COUNT);
    for (int i = 0; i < COUNT; ++i) {
        thread_start(&members[i].outcome, i < THREAD_COUNT ? run_recorder : run_loader,
                     &members[i]);
    }
    for (int i = 0; i < COUNT; ++i) {
        thread_join(&members[i].outcome);
    }
    for (int i = 0; i < COUNT; ++i) {
        thread_check(&members[i].outcome);
    }
    free(members);
    deinit_arena(&shared);
}

SUITE_CASE_EXECUTED(test_conformance_threads16__thread_local_captures_beside_loaders) {
    check_sixteen(context, RONDO_CAPTURE_THREAD_LOCAL);
}

SUITE_CASE_EXECUTED(test_conformance_threads16__relaxed_captures_beside_loaders) {
    check_sixteen(context, RONDO_CAPTURE_RELAXED);
}

// ---- one thread captures what another replays -------------------------------------------------

// Eight pairs. The first of a pair captures a graph and hands it over; while the second replays and
// destroys that, the first captures the next.

static void *run_producer(void *data) {
    member *self = data;
    arena *shared = self->shared;
    member *consumer = self->partner;
    rondo_device *device = shared->context->device;
    STEP(rondo_stream_create(device, NULL, &self->stream));
    for (int round = 0; round < suite_rounds(ROUND_COUNT, 2); ++round) {
        rondo_graph *graph = NULL;
        STEP(rondo_graph_create(device, NULL, &graph));
        STEP(rondo_graph_capture_begin(graph, self->stream, shared->mode));
        for (int i = 0; i < NODE_COUNT; ++i) {
            STEP(suite_affine(shared->context, self->stream, consumer->x, 1, 3,
                              self->outcome.number));
        }
        STEP(rondo_graph_capture_end(graph));
        rondo_graph_capture_abort(graph);  // only if a call failed: this is the stream's thread
        consumer->graph = graph;
        pthread_barrier_wait(&self->handover);  // given
        pthread_barrier_wait(&self->handover);  // taken
    }
    rondo_stream_destroy(self->stream);
    return NULL;
}

static void *run_consumer(void *data) {
    member *self = data;
    arena *shared = self->shared;
    member *producer = self->partner;
    rondo_device *device = shared->context->device;
    STEP(rondo_stream_create(device, NULL, &self->stream));
    for (int round = 0; round < suite_rounds(ROUND_COUNT, 2); ++round) {
        pthread_barrier_wait(&producer->handover);
        rondo_graph *graph = self->graph;
        pthread_barrier_wait(&producer->handover);
        for (int replay = 0; replay < suite_rounds(REPLAY_COUNT, 2) && graph != NULL; ++replay) {
            STEP(rondo_graph_replay(graph, self->stream));
            for (int i = 0; i < NODE_COUNT; ++i) {
                self->outcome.expected = self->outcome.expected * 3 + producer->outcome.number;
            }
        }
        rondo_graph_destroy(graph);  // in flight, perhaps
    }
    STEP(rondo_stream_synchronize(self->stream));
    rondo_stream_destroy(self->stream);
    return NULL;
}

SUITE_CASE_EXECUTED(test_conformance_threads16__one_captures_while_another_replays) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_RELAXED};
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, THREAD_COUNT);
    for (size_t mode = 0; mode < 2; ++mode) {
        arena shared;
        init_arena(&shared, context, modes[mode], 1);
        member *members = make_members(&shared, THREAD_COUNT);
        suite_set(context, x, 0, THREAD_COUNT);
        for (int i = 0; i < THREAD_COUNT; ++i) {
            members[i].x = x + i;
            members[i].partner = &members[i ^ 1];
            pthread_barrier_init(&members[i].handover, NULL, 2);
        }
        for (int i = 0; i < THREAD_COUNT; ++i) {
            thread_start(&members[i].outcome, i % 2 == 0 ? run_producer : run_consumer,
                         &members[i]);
        }
        for (int i = 0; i < THREAD_COUNT; ++i) {
            thread_join(&members[i].outcome);
        }
        for (int i = 0; i < THREAD_COUNT; ++i) {
            pthread_barrier_destroy(&members[i].handover);
        }
        for (size_t i = 0; i < THREAD_COUNT; ++i) {
            members[i].outcome.got = i % 2 == 1 ? suite_get(context, x + i, 0) : 0;
            thread_check(&members[i].outcome);
        }
        free(members);
        deinit_arena(&shared);
    }
}

// ---- destroying at the same time --------------------------------------------------------------

// Thread i replays its graph on its stream and then destroys the graph, while its neighbour
// destroys the stream: each waits for the replays, and neither may touch what the other freed.

static void *run_destroyer(void *data) {
    member *self = data;
    arena *shared = self->shared;
    rondo_device *device = shared->context->device;
    for (int round = 0; round < suite_rounds(ROUND_COUNT, 2); ++round) {
        STEP(rondo_stream_create(device, NULL, &self->stream));
        STEP(rondo_graph_create(device, NULL, &self->graph));
        STEP(rondo_graph_capture_begin(self->graph, self->stream, shared->mode));
        for (int i = 0; i < NODE_COUNT; ++i) {
            STEP(suite_affine(shared->context, self->stream, self->x, 1, 3, self->outcome.number));
        }
        STEP(rondo_graph_capture_end(self->graph));
        for (int replay = 0; replay < suite_rounds(REPLAY_COUNT, 2); ++replay) {
            STEP(rondo_graph_replay(self->graph, self->stream));
            for (int i = 0; i < NODE_COUNT; ++i) {
                self->outcome.expected = self->outcome.expected * 3 + self->outcome.number;
            }
        }
        rondo_graph_capture_abort(self->graph);  // only if a call failed: it needs its stream
        pthread_barrier_wait(&shared->start);
        rondo_graph_destroy(self->graph);
        rondo_stream_destroy(self->partner->stream);
        pthread_barrier_wait(&shared->start);
        self->graph = NULL;
        self->stream = NULL;
    }
    return NULL;
}

SUITE_CASE_EXECUTED(test_conformance_threads16__a_graph_and_its_stream_go_at_once) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, THREAD_COUNT);
    suite_set(context, x, 0, THREAD_COUNT);
    arena shared;
    init_arena(&shared, context, RONDO_CAPTURE_THREAD_LOCAL, THREAD_COUNT);
    member *members = make_members(&shared, THREAD_COUNT);
    for (int i = 0; i < THREAD_COUNT; ++i) {
        members[i].x = x + i;
        members[i].partner = &members[(i + 1) % THREAD_COUNT];
    }
    for (int i = 0; i < THREAD_COUNT; ++i) {
        thread_start(&members[i].outcome, run_destroyer, &members[i]);
    }
    for (int i = 0; i < THREAD_COUNT; ++i) {
        thread_join(&members[i].outcome);
    }
    for (size_t i = 0; i < THREAD_COUNT; ++i) {
        members[i].outcome.got = suite_get(context, x + i, 0);
        thread_check(&members[i].outcome);
    }
    free(members);
    deinit_arena(&shared);
}
