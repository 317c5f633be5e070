// Captures and threads: the modes, the thread that must end, many captures at once.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/thread_support.h"
#include "rondo/inspect.h"
#include "rondo/report.h"

// ---- another thread works while this one records ----------------------------------------------

typedef struct bystander {
    suite_context *context;
    rondo_stream *stream;  // its own
    rondo_status allocate_status;
    rondo_status work_status;
    uint32_t value;
} bystander;

// What a data loader does: allocate, copy, wait. No assertions here: cmocka's belong to one thread.
static void *run_bystander(void *data) {
    bystander *self = data;
    rondo_device *device = self->context->device;
    void *device_memory = NULL;
    void *pinned = NULL;
    self->allocate_status =
        rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 4096, &device_memory);
    if (self->allocate_status == RONDO_STATUS_OK) {
        self->allocate_status = rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 4096, &pinned);
    }
    rondo_status status = self->allocate_status;
    if (status == RONDO_STATUS_OK) {
        *(uint32_t *)pinned = 77;
        status =
            rondo_stream_copy(self->stream, device_memory, pinned, 4096, RONDO_COPY_HOST_TO_DEVICE);
    }
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(self->context, self->stream, device_memory, 1, 2, 1);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            rondo_stream_copy(self->stream, pinned, device_memory, 4096, RONDO_COPY_DEVICE_TO_HOST);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(self->stream);
    }
    self->work_status = status;
    self->value = status == RONDO_STATUS_OK ? *(uint32_t *)pinned : 0;
    rondo_memory_free(device, device_memory);
    rondo_memory_free(device, pinned);
    return NULL;
}

static bystander run_beside(suite_context *context, rondo_stream *stream) {
    bystander other = {.context = context, .stream = stream};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_bystander, &other), 0);
    pthread_join(thread, NULL);
    return other;
}

static void check_bystander(suite_context *context, rondo_capture_mode mode, bool is_tolerated) {
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *other_stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, mode));
    ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
    bystander other = run_beside(context, other_stream);
    if (is_tolerated) {
        assert_int_equal(other.work_status, RONDO_STATUS_OK);
        assert_int_equal(other.value, 155);
        ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
        ASSERT_OK(rondo_graph_capture_end(graph));
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_int_equal(stats.node_count, 2);  // nothing of the other thread was recorded
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_OK(rondo_stream_synchronize(stream));
        ASSERT_VALUE(context, x, 0, 13);
    } else {
        assert_int_equal(other.allocate_status, RONDO_STATUS_STATE);
        ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
        other = run_beside(context, other_stream);
        assert_int_equal(other.work_status, RONDO_STATUS_OK);
    }
    rondo_graph_destroy(graph);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    rondo_stream_destroy(other_stream);
    rondo_stream_destroy(stream);
}

SUITE_CASE_EXECUTED(test_conformance_thread__thread_local_mode_ignores_other_threads) {
    check_bystander(context, RONDO_CAPTURE_THREAD_LOCAL, true);
}

SUITE_CASE_EXECUTED(test_conformance_thread__relaxed_mode_ignores_other_threads) {
    check_bystander(context, RONDO_CAPTURE_RELAXED, true);
}

SUITE_CASE(test_conformance_thread__global_mode_is_broken_by_other_threads) {
    check_bystander(context, RONDO_CAPTURE_GLOBAL, false);
}

// Unlike taking memory: giving it back disturbs nobody.
typedef struct giver {
    suite_context *context;
    uint32_t *memory[2];
} giver;

static void *give_memory_back(void *data) {
    giver *self = data;
    rondo_memory_free(self->context->device, self->memory[0]);
    rondo_memory_free(self->context->device, self->memory[1]);
    return NULL;
}

SUITE_CASE(test_conformance_thread__memory_is_freed_beside_a_global_capture) {
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    giver other = {.context = context,
                   .memory = {suite_allocate(context, RONDO_MEMORY_DEVICE, 1),
                              suite_allocate(context, RONDO_MEMORY_PINNED, 1)}};
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_GLOBAL));
    ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, give_memory_back, &other), 0);
    pthread_join(thread, NULL);
    ASSERT_OK(rondo_graph_capture_end(graph));
    suite_set(context, x, 4, 1);
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, x, 0, 13);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// ---- waiting and asking in global mode --------------------------------------------------------

typedef struct asker {
    rondo_stream *stream;  // neither records
    rondo_event *event;
    rondo_graph *graph;  // holds a template
    int question;
    rondo_status status;
    rondo_error record;  // of the thread that asked
} asker;

enum { WAIT_STREAM, ASK_STREAM, WAIT_EVENT, ASK_EVENT, QUESTION_COUNT, MEASURE = QUESTION_COUNT };

static void *ask(void *data) {
    asker *self = data;
    bool is_done;
    uint64_t bytes;
    switch (self->question) {
        case WAIT_STREAM:
            self->status = rondo_stream_synchronize(self->stream);
            break;
        case ASK_STREAM:
            self->status = rondo_stream_query(self->stream, &is_done);
            break;
        case WAIT_EVENT:
            self->status = rondo_event_synchronize(self->event);
            break;
        case ASK_EVENT:
            self->status = rondo_event_query(self->event, &is_done);
            break;
        default:
            self->status = rondo_graph_measure_device_bytes(self->graph, &bytes);
            break;
    }
    self->record = *rondo_error_get_last();
    return NULL;
}

static rondo_status ask_beside(asker *self, bool is_elsewhere) {
    pthread_t thread;
    if (!is_elsewhere) {
        ask(self);
        return self->status;
    }
    assert_int_equal(pthread_create(&thread, NULL, ask, self), 0);
    pthread_join(thread, NULL);
    return self->status;
}

// Of work that no capture knows; also what the library does by itself to measure.
SUITE_CASE(test_conformance_thread__questions_break_global_captures_only) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_GLOBAL,
                                               RONDO_CAPTURE_RELAXED};
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    asker other = {.stream = suite_create_stream(context),
                   .event = suite_create_event(context, 0),
                   .graph = suite_create_graph(context, true)};
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    ASSERT_OK(rondo_graph_capture_begin(other.graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
    ASSERT_OK(rondo_graph_capture_end(other.graph));
    ASSERT_OK(suite_affine(context, other.stream, x, 1, 3, 1));
    ASSERT_OK(rondo_event_record(other.event, other.stream));
    ASSERT_OK(rondo_event_synchronize(other.event));
    for (int i = 0; i < 3 * 2 * (QUESTION_COUNT + 1); ++i) {
        rondo_capture_mode mode = modes[i % 3];
        bool is_elsewhere = i / 3 % 2 == 1;
        other.question = i / 6;
        bool breaks = mode == RONDO_CAPTURE_GLOBAL && other.question != MEASURE;
        ASSERT_OK(rondo_graph_capture_begin(graph, stream, mode));
        ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
        if (other.question != MEASURE || context->is_cuda) {
            rondo_status wanted = breaks ? RONDO_STATUS_STATE : RONDO_STATUS_OK;
            rondo_status status = ask_beside(&other, is_elsewhere);
            // So small a graph may take no memory that shows.
            bool is_fine = status == wanted ||
                           (other.question == MEASURE && status == RONDO_STATUS_UNSUPPORTED);
            if (!is_fine) {
                print_error("question %d in mode %d%s: %s: %s %s\n", other.question, (int)mode,
                            is_elsewhere ? " of another thread" : "", other.record.call,
                            other.record.message, other.record.driver_name);
            }
            assert_true(is_fine);
        }
        if (breaks) {
            rondo_capture_report report = {.struct_size = sizeof report};
            ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
            ASSERT_OK(rondo_graph_get_report(graph, &report));
            assert_int_equal(report.cause,
                             is_elsewhere ? RONDO_CAUSE_OTHER_THREAD : RONDO_CAUSE_SYNCHRONIZE);
            assert_int_equal(ask_beside(&other, is_elsewhere), RONDO_STATUS_OK);
        } else {
            ASSERT_OK(rondo_graph_capture_end(graph));
        }
        ASSERT_OK(rondo_graph_reset(graph));
    }
    rondo_graph_destroy(other.graph);
    rondo_event_destroy(other.event);
    rondo_stream_destroy(other.stream);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// ---- ending on another thread -----------------------------------------------------------------

typedef struct ender {
    rondo_graph *graph;
    rondo_status status;
} ender;

static void *run_ender(void *data) {
    ender *self = data;
    self->status = rondo_graph_capture_end(self->graph);
    return NULL;
}

static rondo_status end_elsewhere(rondo_graph *graph) {
    ender other = {.graph = graph};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_ender, &other), 0);
    pthread_join(thread, NULL);
    return other.status;
}

SUITE_CASE(test_conformance_thread__the_thread_that_began_must_end) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_GLOBAL};
    for (size_t i = 0; i < 2; ++i) {
        rondo_graph *graph = suite_create_graph(context, false);
        ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, modes[i]));
        ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
        assert_int_equal(end_elsewhere(graph), RONDO_STATUS_STATE);
        // Harmless: the capture goes on here.
        ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
        ASSERT_OK(rondo_graph_capture_end(graph));
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        rondo_graph_destroy(graph);
    }
}

SUITE_CASE(test_conformance_thread__relaxed_captures_end_anywhere) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_RELAXED));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 3, 1));
    assert_int_equal(end_elsewhere(graph), RONDO_STATUS_OK);
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 0, 4);
    rondo_graph_destroy(graph);
}

// ---- many at once -----------------------------------------------------------------------------

enum { THREAD_COUNT = 8, ROUND_COUNT = 12 };

typedef struct recorder {
    suite_context *context;
    thread_outcome outcome;
} recorder;

// Captures, replays, breaks a capture, captures again; all on objects of its own.
static void *run_recorder(void *data) {
    recorder *self = data;
    suite_context *context = self->context;
    rondo_device *device = context->device;
    const uint32_t number = self->outcome.number;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    void *memory = NULL;
    void *pinned = NULL;
    bool is_idle;
    STEP(rondo_stream_create(device, NULL, &stream));
    STEP(rondo_graph_create(device, NULL, &graph));
    STEP(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 4, &memory));
    STEP(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 4, &pinned));
    STEP(rondo_stream_fill(stream, memory, number, 4, 1));
    self->outcome.expected = number;
    for (int round = 0; round < suite_rounds(ROUND_COUNT, 3); ++round) {
        STEP(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
        for (uint32_t i = 0; i < 10; ++i) {
            STEP(suite_affine(context, stream, memory, 1, 3, number + i));
        }
        if (round % 3 == 2) {
            // Broken on purpose: must hurt nobody else.
            STEP(rondo_stream_query(stream, &is_idle) == RONDO_STATUS_STATE &&
                         rondo_graph_capture_end(graph) == RONDO_STATUS_STATE
                     ? RONDO_STATUS_OK
                     : RONDO_STATUS_INTERNAL);
            continue;
        }
        STEP(rondo_graph_capture_end(graph));
        for (uint32_t replay = 0; replay < 20; ++replay) {
            STEP(rondo_graph_replay(graph, stream));
            for (uint32_t i = 0; i < 10; ++i) {
                self->outcome.expected = self->outcome.expected * 3 + number + i;
            }
        }
        STEP(rondo_graph_reset(graph));
    }
    STEP(rondo_stream_copy(stream, pinned, memory, 4, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_stream_synchronize(stream));
    if (self->outcome.status == RONDO_STATUS_OK) {
        self->outcome.got = *(uint32_t *)pinned;
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_memory_free(device, memory);
    rondo_memory_free(device, pinned);
    return NULL;
}

SUITE_CASE_EXECUTED(test_conformance_thread__many_captures_at_once) {
    recorder recorders[THREAD_COUNT];
    for (uint32_t i = 0; i < THREAD_COUNT; ++i) {
        recorders[i] = (recorder){.context = context, .outcome.number = i + 1};
        thread_start(&recorders[i].outcome, run_recorder, &recorders[i]);
    }
    for (int i = 0; i < THREAD_COUNT; ++i) {
        thread_join(&recorders[i].outcome);
    }
    for (int i = 0; i < THREAD_COUNT; ++i) {
        thread_check(&recorders[i].outcome);
    }
}
