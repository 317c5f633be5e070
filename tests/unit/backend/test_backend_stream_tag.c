// What others keep of a stream (device/stream_tag.c), counted in calls on the fake driver: coming
// after a stream that runs, records or is gone, and what that costs where it is not needed. That
// the order holds is shown by conformance_random_shared.c.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "base/error.h"
#include "device/stream_tag.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;    // the one that is followed
    rondo_stream *follower;  // the one that follows
    rondo_stream *origin;    // of captures that `stream` joins
    rondo_event *event;
    rondo_event *fork;
    rondo_graph *graph;
    rondo__stream_tag *tag;
} world;

static void open_world(world *w) {
    *w = (world){0};
    fake_cuda_reset(NULL);
    fake_cuda_install();
    OK(rondo_device_open("cuda:0", &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    OK(rondo_stream_create(w->device, NULL, &w->follower));
    OK(rondo_stream_create(w->device, NULL, &w->origin));
    OK(rondo_event_create(w->device, 0, &w->event));
    OK(rondo_event_create(w->device, 0, &w->fork));
    OK(rondo_graph_create(w->device, NULL, &w->graph));
}

static void close_world(world *w) {
    rondo__stream_tag_release(w->tag);
    rondo_graph_destroy(w->graph);
    rondo_event_destroy(w->event);
    rondo_event_destroy(w->fork);
    rondo_stream_destroy(w->stream);
    rondo_stream_destroy(w->follower);
    rondo_stream_destroy(w->origin);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

static void begin(world *w, rondo_stream *stream) {
    OK(rondo_graph_capture_begin(w->graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static void join(world *w, rondo_stream *stream) {
    OK(rondo_event_record(w->fork, w->origin));
    OK(rondo_stream_wait_event(stream, w->fork));
}

// Calls of the driver since the latest look.
typedef struct counts {
    size_t all;
    size_t records;
    size_t waits;
} counts;

static counts count_calls(void) {
    static counts before;
    counts now = {.all = fake_cuda_count_calls(NULL),
                  .records = fake_cuda_count_calls("cuEventRecord"),
                  .waits = fake_cuda_count_calls("cuStreamWaitEvent")};
    counts since = {now.all - before.all, now.records - before.records, now.waits - before.waits};
    before = now;
    return since;
}

#define ASSERT_FOLLOWS(w, record_count, wait_count)                        \
    do {                                                                   \
        (void)count_calls();                                               \
        OK(rondo__stream_tag_follow((w)->follower, (w)->tag, (w)->event)); \
        counts since_ = count_calls();                                     \
        assert_int_equal(since_.records, (record_count));                  \
        assert_int_equal(since_.waits, (wait_count));                      \
    } while (0)

// ---- streams that are there -------------------------------------------------------------------

TEST(test_backend_stream_tag__the_same_stream_costs_nothing) {
    world w;
    open_world(&w);
    w.tag = rondo__stream_tag_watch(w.follower);
    (void)count_calls();
    OK(rondo__stream_tag_follow(w.follower, w.tag, w.event));
    assert_int_equal(count_calls().all, 0);
    close_world(&w);
}

TEST(test_backend_stream_tag__a_stream_that_runs_gets_an_event) {
    world w;
    open_world(&w);
    w.tag = rondo__stream_tag_watch(w.stream);
    ASSERT_FOLLOWS(&w, 1, 1);
    // One that records nothing any more runs, too.
    begin(&w, w.stream);
    OK(rondo_graph_capture_end(w.graph));
    ASSERT_FOLLOWS(&w, 1, 1);
    close_world(&w);
}

TEST(test_backend_stream_tag__places_are_left_by_watched_streams_alone) {
    world w;
    open_world(&w);
    for (int i = 0; i < 3; ++i) {
        size_t events = fake_cuda_count_calls("cuEventCreate");
        (void)count_calls();
        begin(&w, w.stream);
        assert_int_equal(count_calls().records, i == 0 ? 0 : 1);
        rondo_graph_capture_abort(w.graph);
        // One event serves all captures.
        assert_int_equal(fake_cuda_count_calls("cuEventCreate") - events, i == 1 ? 1 : 0);
        // A wait for what is in no capture needs no place, nor does one in the capture itself.
        (void)count_calls();
        join(&w, w.stream);
        assert_int_equal(count_calls().records, 1);  // the fork's own
        begin(&w, w.origin);
        (void)count_calls();
        join(&w, w.stream);
        assert_int_equal(count_calls().records, i == 0 ? 1 : 2);
        join(&w, w.stream);
        assert_int_equal(count_calls().records, 1);
        rondo_graph_capture_abort(w.graph);
        if (i == 0) {
            w.tag = rondo__stream_tag_watch(w.stream);
        }
    }
    close_world(&w);
}

TEST(test_backend_stream_tag__a_stream_that_records_has_its_place) {
    for (int has_joined = 0; has_joined < 2; ++has_joined) {
        world w;
        open_world(&w);
        w.tag = rondo__stream_tag_watch(w.stream);
        begin(&w, has_joined ? w.origin : w.stream);
        if (has_joined) {
            join(&w, w.stream);
        }
        ASSERT_FOLLOWS(&w, 0, 1);
        assert_int_equal(rondo_stream_synchronize(w.stream), RONDO_STATUS_STATE);  // breaks it
        ASSERT_FOLLOWS(&w, 0, 1);
        rondo_graph_capture_abort(w.graph);
        ASSERT_FOLLOWS(&w, 1, 1);
        close_world(&w);
    }
}

// A place that could not be left is missed only by those who want it.
TEST(test_backend_stream_tag__without_a_place_it_is_said) {
    for (int what = 0; what < 2; ++what) {
        world w;
        open_world(&w);
        w.tag = rondo__stream_tag_watch(w.stream);
        size_t failing = 0;
        for (;; ++failing) {
            fake_cuda_fail_nth((long)failing, RONDO__CU_ERROR_OUT_OF_MEMORY);
            rondo_status status =
                rondo_graph_capture_begin(w.graph, w.stream, RONDO_CAPTURE_THREAD_LOCAL);
            bool has_failed = fake_cuda_has_failed();
            const char *call = fake_cuda_get_failed_call();
            fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
            if (has_failed && strcmp(call, what == 0 ? "cuEventCreate" : "cuEventRecord") == 0) {
                OK(status);
                break;
            }
            assert_true(has_failed);
            rondo_graph_capture_abort(w.graph);
            if (what == 0) {  // the event is there by now: start over
                close_world(&w);
                open_world(&w);
                w.tag = rondo__stream_tag_watch(w.stream);
            }
        }
        assert_int_equal(rondo__stream_tag_follow(w.follower, w.tag, w.event), RONDO_STATUS_STATE);
        assert_non_null(strstr(rondo_error_get_last()->message, "records a capture now"));
        OK(rondo_graph_capture_end(w.graph));
        ASSERT_FOLLOWS(&w, 1, 1);
        close_world(&w);
    }
}

// ---- waiting beside a thread that uses the stream -----------------------------------------------

static void *begin_relaxed(void *data) {
    world *w = data;
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_RELAXED));
    return NULL;
}

static void run_in_thread(void *(*function)(void *), world *w) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, w), 0);
    pthread_join(thread, NULL);
}

static void begin_now(void *data) {
    run_in_thread(begin_relaxed, data);
}

// A begin beside the step that asks and puts the event: it comes after that.
static struct {
    pthread_t thread;
    bool is_running;
    atomic_bool has_begun;
    bool began_meanwhile;
} g_beside;

static void *begin_beside(void *data) {
    (void)begin_relaxed(data);
    atomic_store(&g_beside.has_begun, true);
    return NULL;
}

static void begin_in_between(void *data) {
    atomic_store(&g_beside.has_begun, false);
    assert_int_equal(pthread_create(&g_beside.thread, NULL, begin_beside, data), 0);
    g_beside.is_running = true;
    usleep(20000);
    g_beside.began_meanwhile = atomic_load(&g_beside.has_begun);
}

// Whenever the capture begins, it is not broken; and nobody takes an event in it for a wait.
TEST(test_backend_stream_tag__a_wait_breaks_no_capture_that_begins) {
    static const struct {
        const char *call;
        void (*hook)(void *data);
        bool has_waited;
    } moments[] = {
        {"cuStreamSynchronize", begin_now, true},        {"cuEventCreate", begin_now, false},
        {"cuStreamIsCapturing", begin_in_between, true}, {"cuEventRecord", begin_in_between, true},
        {"cuEventSynchronize", begin_now, true},
    };
    for (size_t i = 0; i < sizeof moments / sizeof *moments; ++i) {
        world w;
        open_world(&w);
        w.tag = rondo__stream_tag_retain(w.stream);
        fake_cuda_set_hook(moments[i].call, moments[i].hook, &w);
        assert_int_equal(rondo__stream_tag_wait(w.tag), moments[i].has_waited);
        fake_cuda_set_hook(NULL, NULL, NULL);
        if (g_beside.is_running) {
            pthread_join(g_beside.thread, NULL);
            g_beside.is_running = false;
            assert_false(g_beside.began_meanwhile);
        }
        bool is_capturing = false;
        OK(rondo_stream_is_recording(w.stream, &is_capturing));
        if (is_capturing) {
            OK(rondo_graph_capture_end(w.graph));
        }
        assert_true(rondo__stream_tag_wait(w.tag));
        close_world(&w);
    }
}

// ---- streams that are gone --------------------------------------------------------------------

TEST(test_backend_stream_tag__a_stream_that_was_waited_for_is_done) {
    world w;
    open_world(&w);
    w.tag = rondo__stream_tag_watch(w.stream);
    begin(&w, w.stream);
    OK(rondo_graph_capture_end(w.graph));
    assert_false(rondo__stream_tag_is_done(w.tag));
    rondo_stream_destroy(w.stream);
    w.stream = NULL;
    assert_true(rondo__stream_tag_is_done(w.tag));
    (void)count_calls();
    OK(rondo__stream_tag_follow(w.follower, w.tag, w.event));
    assert_int_equal(count_calls().all, 0);
    close_world(&w);
}

TEST(test_backend_stream_tag__one_that_went_in_a_capture_leaves_its_place) {
    world w;
    open_world(&w);
    w.tag = rondo__stream_tag_watch(w.stream);
    begin(&w, w.origin);
    join(&w, w.stream);
    rondo_stream_destroy(w.stream);
    w.stream = NULL;
    assert_true(rondo__stream_tag_is_finished(w.tag));
    assert_false(rondo__stream_tag_is_done(w.tag));
    ASSERT_FOLLOWS(&w, 0, 1);
    // The end of the capture waits for its work.
    rondo_graph_capture_abort(w.graph);
    assert_true(rondo__stream_tag_is_done(w.tag));
    ASSERT_FOLLOWS(&w, 0, 0);
    close_world(&w);
}

// The place can be waited for, too, by the host.
TEST(test_backend_stream_tag__what_is_left_is_waited_for_at_its_place) {
    for (int is_watched = 0; is_watched < 2; ++is_watched) {
        world w;
        bool was_recorded;
        open_world(&w);
        w.tag = is_watched ? rondo__stream_tag_watch(w.stream) : rondo__stream_tag_retain(w.stream);
        begin(&w, w.origin);
        join(&w, w.stream);
        rondo_stream_destroy(w.stream);
        w.stream = NULL;
        assert_int_equal(rondo__stream_tag_record(w.tag, w.event, &was_recorded),
                         RONDO_STATUS_STATE);
        assert_false(was_recorded);
        // Without one, only the end of the capture helps.
        assert_int_equal(rondo__stream_tag_wait_at_any_price(w.tag), is_watched);
        assert_false(rondo__stream_tag_is_done(w.tag));
        assert_false(rondo__stream_tag_wait(w.tag));
        rondo_graph_capture_abort(w.graph);
        assert_true(rondo__stream_tag_is_done(w.tag));
        assert_true(rondo__stream_tag_wait(w.tag));
        OK(rondo__stream_tag_record(w.tag, w.event, &was_recorded));
        assert_false(was_recorded);
        close_world(&w);
    }
}

// One on which the capture began takes it along, and is waited for at once.
TEST(test_backend_stream_tag__one_that_ends_its_capture_is_done) {
    world w;
    open_world(&w);
    w.tag = rondo__stream_tag_retain(w.stream);
    (void)rondo_stream_get_native(w.stream);  // from now on it may record by itself
    OK(w.device->backend->begin_capture(w.stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
    rondo_stream_destroy(w.stream);
    w.stream = NULL;
    assert_true(rondo__stream_tag_is_done(w.tag));
    close_world(&w);
}

// A capture that is not Rondo's, and a wrapper of its stream goes in it.
TEST(test_backend_stream_tag__one_that_left_none_needs_the_device) {
    world w;
    rondo_stream *wrapper;
    rondo__template *recorded = NULL;
    open_world(&w);
    OK(rondo_stream_wrap(w.device, rondo_stream_get_native(w.stream), &wrapper));
    w.tag = rondo__stream_tag_retain(wrapper);
    (void)rondo_stream_get_native(w.stream);  // from now on it may record by itself
    OK(w.device->backend->begin_capture(w.stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
    begin(&w, w.origin);
    rondo_stream_destroy(wrapper);
    assert_false(rondo__stream_tag_wait(w.tag));
    OK(w.device->backend->end_capture(w.stream, &recorded));
    w.device->backend->destroy_template(recorded);
    assert_false(rondo__stream_tag_wait_at_any_price(w.tag));
    assert_int_equal(rondo__stream_tag_follow(w.follower, w.tag, w.event), RONDO_STATUS_STATE);
    assert_non_null(strstr(rondo_error_get_last()->message, "end the captures on cuda:0"));
    rondo_graph_capture_abort(w.graph);
    size_t waits = fake_cuda_count_calls("cuCtxSynchronize");
    assert_false(rondo__stream_tag_wait(w.tag));
    assert_int_equal(fake_cuda_count_calls("cuCtxSynchronize"), waits);
    OK(rondo__stream_tag_follow(w.follower, w.tag, w.event));
    assert_int_equal(fake_cuda_count_calls("cuCtxSynchronize"), waits + 1);
    assert_true(rondo__stream_tag_is_done(w.tag));
    OK(rondo__stream_tag_follow(w.follower, w.tag, w.event));
    assert_int_equal(fake_cuda_count_calls("cuCtxSynchronize"), waits + 1);
    close_world(&w);
}

// The native stream of a wrapper goes on without it, so what somebody may still want to come after
// is waited for.
TEST(test_backend_stream_tag__wrappers_are_waited_for_where_somebody_asks) {
    for (int is_remembered = 0; is_remembered < 2; ++is_remembered) {
        world w;
        rondo_stream *wrapper;
        open_world(&w);
        OK(rondo_stream_wrap(w.device, rondo_stream_get_native(w.stream), &wrapper));
        if (is_remembered) {
            w.tag = rondo__stream_tag_watch(wrapper);
        }
        size_t waits = fake_cuda_count_calls("cuStreamSynchronize");
        rondo_stream_destroy(wrapper);
        assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize") - waits, is_remembered);
        assert_true(!is_remembered || rondo__stream_tag_is_done(w.tag));
        close_world(&w);
    }
}

// One that records cannot be waited for, but its place can; the legacy stream has none, and to wait
// for it would break other captures.
TEST(test_backend_stream_tag__wrappers_that_go_in_a_capture) {
    for (int is_legacy = 0; is_legacy < 2; ++is_legacy) {
        world w;
        rondo_stream *wrapper;
        open_world(&w);
        void *native = is_legacy ? NULL : rondo_stream_get_native(w.stream);
        OK(rondo_stream_wrap(w.device, native, &wrapper));
        w.tag = rondo__stream_tag_watch(wrapper);
        begin(&w, w.origin);
        if (!is_legacy) {
            join(&w, wrapper);
        }
        size_t waits = fake_cuda_count_calls("cuStreamSynchronize");
        rondo_stream_destroy(wrapper);
        assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize"), waits);
        if (is_legacy) {
            assert_int_equal(rondo__stream_tag_follow(w.follower, w.tag, w.event),
                             RONDO_STATUS_STATE);
        } else {
            ASSERT_FOLLOWS(&w, 0, 1);
        }
        rondo_graph_capture_abort(w.graph);
        OK(rondo__stream_tag_follow(w.follower, w.tag, w.event));
        close_world(&w);
    }
}

TEST_MAIN()
