// Destroying, releasing and freeing while captures are open: that breaks none of them, frees
// nothing that running work still uses, and loses nothing.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "conformance/memory/memory_support.h"
#include "conformance/random/random_support.h"
#include "rondo/report.h"
#include "support/fake/fake_cuda.h"
#include "support/peek.h"

enum { COUNT = 1024, SPIN_US = 20000 };

// ---- giving things back beside a capture in global mode ---------------------------------------

typedef struct belongings {
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *other;
    rondo_event *event;
    rondo_graph *graph;
    rondo_pool *pool;
    rondo_generator *generator;
    void *memory;
    void *pinned;
} belongings;

// Everything has been used, so that giving it back has something to wait for.
static belongings make_belongings(suite_context *context) {
    belongings b = {.device = context->device};
    b.stream = suite_create_stream(context);
    b.other = suite_create_stream(context);
    b.event = suite_create_event(context, 0);
    b.pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    b.graph = memory_create_graph(context, "left", NULL);
    b.memory = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    b.pinned = suite_allocate(context, RONDO_MEMORY_PINNED, COUNT);
    b.generator = suite_create_generator(context, 7);
    memory_begin(b.graph, b.stream);
    uint32_t *inside = memory_take(b.pool, b.stream, COUNT);
    memory_fill(b.stream, inside, 1, COUNT);
    ASSERT_OK(rondo_random_words(b.generator, b.stream, inside, COUNT));
    memory_free(b.pool, inside);
    memory_end(b.graph);
    ASSERT_OK(rondo_graph_replay(b.graph, b.stream));
    uint32_t *block = memory_take(b.pool, b.stream, COUNT);
    ASSERT_OK(rondo_pool_use(b.pool, b.other, block));
    memory_fill(b.other, block, 1, COUNT);
    memory_free(b.pool, block);
    memory_fill(b.other, b.memory, 1, COUNT);
    ASSERT_OK(rondo_event_record(b.event, b.other));
    ASSERT_OK(rondo_random_words(b.generator, b.other, b.memory, COUNT));
    return b;
}

static void *give_back(void *data) {
    belongings *b = data;
    rondo_generator_release(b->generator);
    rondo_graph_destroy(b->graph);
    rondo_pool_release(b->pool);
    rondo_event_destroy(b->event);
    rondo_stream_destroy(b->other);
    rondo_stream_destroy(b->stream);
    rondo_memory_free(b->device, b->memory);
    rondo_memory_free(b->device, b->pinned);
    return NULL;
}

static void check_giving_back(suite_context *context, bool in_another_thread) {
    size_t area_count = peek_count_areas(context->device);
    belongings b = make_belongings(context);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_GLOBAL));
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    if (in_another_thread) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, give_back, &b), 0);
        pthread_join(thread, NULL);
    } else {
        (void)give_back(&b);
    }
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    memory_replay(graph, stream);
    ASSERT_VALUE(context, x, 0, 7);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    assert_int_equal(peek_count_areas(context->device), area_count);
}

SUITE_CASE_EXECUTED(test_conformance_teardown__giving_back_breaks_no_global_capture) {
    check_giving_back(context, false);
}

SUITE_CASE_EXECUTED(test_conformance_teardown__nor_does_it_in_another_thread) {
    check_giving_back(context, true);
}

// ---- what a recording stream has used before --------------------------------------------------

// The stream cannot be waited for, yet its earlier work may still use the memory.
SUITE_CASE(test_conformance_teardown__pool_whose_stream_records) {
    size_t area_count = peek_count_areas(context->device);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *other = suite_create_stream(context);
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *own = memory_take(pool, stream, COUNT);
    uint32_t *shared = memory_take(pool, other, COUNT);
    ASSERT_OK(rondo_pool_use(pool, stream, shared));
    ASSERT_OK(suite_spin(context, stream, SPIN_US));
    memory_fill(stream, own, 1, COUNT);
    memory_fill(stream, shared, 1, COUNT);
    memory_begin(graph, stream);
    memory_free(pool, own);
    memory_free(pool, shared);
    rondo_pool_release(pool);
    rondo_status status = rondo_graph_capture_end(graph);  // which decides about the frees
    if (status != RONDO_STATUS_OK) {
        // That of the stream's own block is undone, and the pool lives as long as that.
        memory_free(pool, own);
    }
    ASSERT_OK(status);
    assert_int_equal(peek_count_areas(context->device), area_count);
    ASSERT_OK(rondo_stream_synchronize(stream));
    rondo_graph_destroy(graph);
    rondo_stream_destroy(other);
    rondo_stream_destroy(stream);
}

SUITE_CASE_EXECUTED(test_conformance_teardown__generator_whose_stream_records) {
    size_t area_count = peek_count_areas(context->device);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_PINNED, COUNT);
    memset(x, 0, COUNT * sizeof *x);
    rondo_generator *generator = suite_create_generator(context, 7);
    ASSERT_OK(suite_spin(context, stream, SPIN_US));
    ASSERT_OK(rondo_random_words(generator, stream, x, COUNT));
    memory_begin(graph, stream);
    rondo_generator_release(generator);
    if (!context->is_cuda) {
        assert_int_not_equal(x[COUNT - 1], 0);  // the state was there until this had run
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_stream_synchronize(stream));
    assert_int_not_equal(x[COUNT - 1], 0);
    rondo_graph_destroy(graph);
    suite_free(context, RONDO_MEMORY_PINNED, x);
    rondo_stream_destroy(stream);
    assert_int_equal(peek_count_areas(context->device), area_count);
}

// ---- giving up on another thread ----------------------------------------------------------------

static void *abort_capture(void *graph) {
    rondo_graph_capture_abort(graph);
    return NULL;
}

static void *destroy_graph(void *graph) {
    rondo_graph_destroy(graph);
    return NULL;
}

static void run_in_thread(void *(*function)(void *), rondo_graph *graph) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, graph), 0);
    pthread_join(thread, NULL);
}

SUITE_CASE(test_conformance_teardown__aborted_by_another_thread) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_GLOBAL,
                                               RONDO_CAPTURE_RELAXED};
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_graph_capture_begin(graph, stream, modes[i]));
        ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
        run_in_thread(abort_capture, graph);
        bool is_capturing = true;
        ASSERT_OK(rondo_stream_is_recording(stream, &is_capturing));
        assert_false(is_capturing);
        ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
        if (modes[i] != RONDO_CAPTURE_RELAXED) {
            // Only this thread can take the stream out of recording, and it learns why.
            ASSERT_MESSAGE_HAS("another thread gave the capture up");
            rondo_capture_report report = {.struct_size = sizeof report};
            ASSERT_OK(rondo_graph_get_report(graph, &report));
            assert_int_equal(report.cause, RONDO_CAUSE_ABORTED);
            assert_true(report.is_other_thread);
        }
        ASSERT_OK(rondo_stream_synchronize(stream));
    }
    memory_begin(graph, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    memory_end(graph);
    memory_replay(graph, stream);
    ASSERT_VALUE(context, x, 0, 3);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

static void note_warning(void *user_data, rondo_log_level level, const char *message) {
    (void)level;
    *(bool *)user_data = strstr(message, "by another thread") != NULL;
}

// The graph is gone; the stream is this thread's to destroy.
SUITE_CASE(test_conformance_teardown__destroyed_by_another_thread) {
    static bool was_told;  // outlives a case that stops here
    rondo_stream *stream = suite_create_stream(context);
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = suite_create_graph(context, false);
    memory_begin(graph, stream);
    uint32_t *x = memory_take(pool, stream, COUNT);
    memory_fill(stream, x, 1, COUNT);
    memory_free(pool, x);
    was_told = false;
    rondo_log_set_sink(note_warning, &was_told);
    run_in_thread(destroy_graph, graph);
    rondo_log_set_sink(NULL, NULL);
    assert_true(was_told);
    rondo_stream_destroy(stream);
    ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
    assert_int_equal(memory_get_pool_stats(pool).reserved_bytes, 0);
    rondo_pool_release(pool);
}

// ---- streams destroyed while they record -------------------------------------------------------

typedef struct leaver {
    suite_context *context;
    rondo_stream *origin;
    rondo_stream *stream;  // does eager work, joins the capture, and goes
    rondo_stream *other;
    rondo_graph *graph;
    rondo_pool *pool;
} leaver;

static leaver create_leaver(suite_context *context) {
    leaver l = {.context = context,
                .origin = suite_create_stream(context),
                .stream = suite_create_stream(context),
                .other = suite_create_stream(context),
                .graph = suite_create_graph(context, false),
                .pool = memory_create_pool(context, RONDO_MEMORY_DEVICE)};
    return l;
}

// Begins a capture that the stream joins, and destroys it in there.
static void leave_in_capture(leaver *l) {
    memory_begin(l->graph, l->origin);
    memory_join(l->context, l->stream, l->origin);
    rondo_stream_destroy(l->stream);
    l->stream = NULL;
}

// What is taken on another stream now has its own bytes to the end, whatever the stream that went
// still runs. On CUDA that cannot be waited for before the end of the capture, and is then.
static void check_left_memory(leaver *l, const uint32_t *x) {
    uint32_t *y = memory_take(l->pool, l->other, COUNT);
    if (l->context->is_cuda) {
        assert_ptr_not_equal(y, x);
    }
    memory_fill(l->other, y, 2, COUNT);
    ASSERT_STATUS(rondo_graph_capture_end(l->graph), STATE);
    ASSERT_OK(rondo_device_synchronize(l->context->device));
    ASSERT_VALUE(l->context, y, COUNT - 1, 2);
    memory_free(l->pool, y);
    // Nothing is held back any more.
    ASSERT_OK(rondo_pool_trim(l->pool, 0, NULL));
    rondo_pool_stats stats = memory_get_pool_stats(l->pool);
    assert_int_equal(stats.reserved_bytes + stats.pending_bytes, 0);
}

static void destroy_leaver(leaver *l) {
    rondo_pool_release(l->pool);
    rondo_graph_destroy(l->graph);
    rondo_stream_destroy(l->other);
    rondo_stream_destroy(l->origin);
}

SUITE_CASE(test_conformance_teardown__blocks_of_a_stream_that_goes_in_a_capture) {
    leaver l = create_leaver(context);
    uint32_t *x = memory_take(l.pool, l.stream, COUNT);
    ASSERT_OK(suite_spin(context, l.stream, SPIN_US));
    memory_fill(l.stream, x, 1, COUNT);
    memory_free(l.pool, x);
    leave_in_capture(&l);
    check_left_memory(&l, x);
    destroy_leaver(&l);
}

SUITE_CASE(test_conformance_teardown__blocks_used_by_a_stream_that_goes_in_a_capture) {
    leaver l = create_leaver(context);
    uint32_t *x = memory_take(l.pool, l.other, COUNT);
    ASSERT_OK(rondo_pool_use(l.pool, l.stream, x));
    ASSERT_OK(suite_spin(context, l.stream, SPIN_US));
    memory_fill(l.stream, x, 1, COUNT);
    leave_in_capture(&l);
    memory_free(l.pool, x);
    check_left_memory(&l, x);
    destroy_leaver(&l);
}

SUITE_CASE(test_conformance_teardown__graphs_replayed_by_a_stream_that_goes_in_a_capture) {
    leaver l = create_leaver(context);
    rondo_graph *replayed = suite_create_graph(context, false);
    memory_begin(replayed, l.stream);
    uint32_t *x = memory_take(l.pool, l.stream, COUNT);
    ASSERT_OK(suite_spin(context, l.stream, SPIN_US));
    memory_fill(l.stream, x, 1, COUNT);
    memory_free(l.pool, x);
    memory_end(replayed);
    ASSERT_OK(rondo_graph_replay(replayed, l.stream));
    leave_in_capture(&l);
    rondo_graph_destroy(replayed);
    check_left_memory(&l, x);
    destroy_leaver(&l);
}

static void *destroy_stream(void *stream) {
    rondo_stream_destroy(stream);
    return NULL;
}

// The driver lets only the thread that began end the capture. The stream is kept until that thread
// gives the capture up, or learns that it failed.
SUITE_CASE(test_conformance_teardown__streams_destroyed_by_another_thread) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_GLOBAL,
                                               RONDO_CAPTURE_RELAXED};
    size_t objects = context->is_fake ? fake_cuda_count_objects() : 0;
    rondo_stream *branch = suite_create_stream(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    for (int round = 0; round < 9; ++round) {
        rondo_stream *stream = suite_create_stream(context);
        rondo_graph *graph = suite_create_graph(context, false);
        rondo_capture_mode mode = modes[round % 3];
        ASSERT_OK(rondo_graph_capture_begin(graph, stream, mode));
        ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
        memory_join(context, branch, stream);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, destroy_stream, stream), 0);
        pthread_join(thread, NULL);
        if (round / 3 == 0) {
            ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
            rondo_capture_report report = {.struct_size = sizeof report};
            ASSERT_OK(rondo_graph_get_report(graph, &report));
            assert_int_equal(report.cause, RONDO_CAUSE_STREAM_DESTROYED);
            assert_true(report.is_other_thread);
        } else if (round / 3 == 1) {
            rondo_graph_capture_abort(graph);
        }
        rondo_graph_destroy(graph);
        // Nothing records any more, the branch neither, and no call is forbidden.
        ASSERT_OK(rondo_device_synchronize(context->device));
        ASSERT_OK(suite_affine(context, branch, x, 1, 2, 1));
        ASSERT_OK(rondo_stream_synchronize(branch));
    }
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    rondo_stream_destroy(branch);
    if (context->is_fake) {
        assert_int_equal(fake_cuda_count_objects(), objects);
        assert_string_equal(fake_cuda_get_violations(), "");
    }
}

// ---- graphs destroyed beside a thread that records ---------------------------------------------

typedef struct hand_over {
    _Atomic(rondo_graph *) graph;  // to be destroyed
    atomic_bool is_over;
} hand_over;

static void *destroy_graphs(void *data) {
    hand_over *h = data;
    while (!atomic_load(&h->is_over)) {
        rondo_graph_destroy(atomic_exchange(&h->graph, NULL));
        sched_yield();
    }
    return NULL;
}

// One thread replays a graph and begins the next capture on the same stream; another one destroys
// the graph, for which it waits for that stream. Whoever comes first, no capture breaks.
SUITE_CASE(test_conformance_teardown__graphs_destroyed_as_a_capture_begins) {
    static hand_over h;  // outlives a case that stops here
    rondo_stream *stream = suite_create_stream(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 0, 1);
    atomic_init(&h.graph, NULL);
    atomic_init(&h.is_over, false);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, destroy_graphs, &h), 0);
    int rounds = suite_rounds(3000, 3);
    rondo_status status = RONDO_STATUS_OK;
    // Nothing is asserted while the thread runs, which a case that stops would not end.
    for (int i = 0; i < rounds && status == RONDO_STATUS_OK; ++i) {
        rondo_graph *graph;
        status = rondo_graph_create(context->device, NULL, &graph);
        if (status == RONDO_STATUS_OK) {
            status = rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL);
        }
        if (status == RONDO_STATUS_OK) {
            (void)!suite_affine(context, stream, x, 1, 1, 1);
            status = rondo_graph_capture_end(graph);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo_graph_replay(graph, stream);
        }
        rondo_graph *none = NULL;
        while (!atomic_compare_exchange_weak(&h.graph, &none, graph)) {
            none = NULL;
            sched_yield();
        }
    }
    atomic_store(&h.is_over, true);
    pthread_join(thread, NULL);
    rondo_graph_destroy(atomic_exchange(&h.graph, NULL));
    ASSERT_OK(status);
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, x, 0, rounds);
    rondo_stream_destroy(stream);
}
