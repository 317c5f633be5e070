// Captures of Rondo's that others end or break. First: the program ends one by a driver call of its
// own, and its stream goes before the graph learns of it. Nothing is left pointing at the stream,
// and nothing leaks. Then: what other threads may do meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/driver/cuda_device.h"
#include "rondo/graph.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

typedef struct world {
    rondo_device *device;
    rondo_graph *graph;
} world;

static rondo_stream *begin(world *w) {
    rondo_stream *stream = NULL;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    OK(rondo_device_open("cuda:0", &w->device));
    OK(rondo_stream_create(w->device, NULL, &stream));
    OK(rondo_graph_create(w->device, NULL, &w->graph));
    OK(rondo_graph_capture_begin(w->graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    return stream;
}

// The stream has gone when this returns, and so has what its memory held.
static void begin_and_lose_stream(world *w) {
    const rondo__cuda_api *api = NULL;
    rondo__cu_graph recorded = NULL;
    rondo_stream *stream = begin(w);
    OK(rondo__cuda_get_api(&api));
    assert_int_equal(api->cuStreamEndCapture((rondo__cu_stream)stream->native, &recorded), 0);
    assert_int_equal(api->cuGraphDestroy(recorded), 0);
    rondo_stream_destroy(stream);
    // Makes the backend forget what it kept for later.
    OK(rondo_stream_create(w->device, NULL, &stream));
    rondo_stream_destroy(stream);
}

// The graph and this thread are as good as new.
static void end(world *w) {
    rondo_stream *stream = NULL;
    OK(rondo_stream_create(w->device, NULL, &stream));
    OK(rondo_graph_capture_begin(w->graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_graph_capture_end(w->graph));
    rondo_graph_destroy(w->graph);
    rondo_stream_destroy(stream);
    rondo_device_release(w->device);
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
}

TEST(test_graph_ended__the_end_says_what_happened) {
    world w;
    begin_and_lose_stream(&w);
    assert_int_equal(rondo_graph_capture_end(w.graph), RONDO_STATUS_STATE);
    assert_string_equal(rondo_error_get_last()->call, "rondo_stream_destroy");
    end(&w);
}

TEST(test_graph_ended__it_may_be_given_up) {
    world w;
    begin_and_lose_stream(&w);
    rondo_graph_capture_abort(w.graph);
    end(&w);
}

TEST(test_graph_ended__the_graph_may_go_first) {
    world w;
    begin_and_lose_stream(&w);
    rondo_graph_destroy(w.graph);
    OK(rondo_graph_create(w.device, NULL, &w.graph));
    end(&w);
}

static void *destroy(void *stream) {
    rondo_stream_destroy(stream);
    return NULL;
}

typedef struct helper {
    rondo_device *device;
    pthread_t thread;
    sem_t is_done;
    bool was_in_time;
} helper;

static void *come_and_go(void *data) {
    helper *h = data;
    rondo_stream *stream = NULL;
    if (rondo_stream_create(h->device, NULL, &stream) == RONDO_STATUS_OK) {
        rondo_stream_destroy(stream);
        sem_post(&h->is_done);
    }
    return NULL;
}

static void wait_for_helper(void *data) {
    helper *h = data;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 5;
    assert_int_equal(pthread_create(&h->thread, NULL, come_and_go, h), 0);
    h->was_in_time = sem_timedwait(&h->is_done, &limit) == 0;
}

// The work of a stream that was left to this thread may wait for what another thread does next.
TEST(test_graph_ended__others_go_on_while_a_left_stream_is_waited_for) {
    world w;
    pthread_t destroyer;
    rondo_stream *stream = begin(&w);
    helper h = {.device = w.device};
    sem_init(&h.is_done, 0, 0);
    assert_int_equal(pthread_create(&destroyer, NULL, destroy, stream), 0);
    pthread_join(destroyer, NULL);
    fake_cuda_set_hook("cuStreamSynchronize", wait_for_helper, &h);
    assert_int_equal(rondo_graph_capture_end(w.graph), RONDO_STATUS_STATE);
    pthread_join(h.thread, NULL);
    assert_true(h.was_in_time);
    sem_destroy(&h.is_done);
    end(&w);
}

TEST_MAIN()
