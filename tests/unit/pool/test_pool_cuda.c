// Pools on the fake driver: streams that are gone, wrapped streams, and captures that the program
// began by itself, which a pool must neither enter nor break.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/device.h"
#include "rondo/graph.h"
#include "rondo/pool.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

enum { BYTES = 4096 };

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_pool *pool;
    const rondo__cuda_api *api;
} world;

static void open_world(world *w) {
    OK(rondo_device_open("cuda:0", &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    OK(rondo_pool_create(w->device, NULL, &w->pool));
    OK(rondo__cuda_get_api(&w->api));
}

static int set_up(void **state) {
    static world w;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    open_world(&w);
    *state = &w;
    return 0;
}

static int tear_down(void **state) {
    world *w = *state;
    rondo_pool_release(w->pool);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
    return 0;
}

static void *take(const world *w) {
    void *address = NULL;
    OK(rondo_pool_allocate(w->pool, w->stream, BYTES, &address));
    return address;
}

// Creates streams until one lies where `former` lay before it was destroyed. The heap gives memory
// out again once it has put some of that size aside. NULL: it never did.
static rondo_stream *create_in_place_of(const world *w, rondo_stream *former) {
    enum { STREAM_COUNT = 64 };
    rondo_stream *streams[STREAM_COUNT];
    for (size_t i = 0; i < STREAM_COUNT; ++i) {
        OK(rondo_stream_create(w->device, NULL, &streams[i]));
    }
    for (size_t i = 0; i < STREAM_COUNT; ++i) {
        rondo_stream_destroy(streams[i]);
    }
    rondo_stream_destroy(former);
    rondo_stream *found = NULL;
    size_t count = 0;
    for (; count < STREAM_COUNT && found == NULL; ++count) {
        OK(rondo_stream_create(w->device, NULL, &streams[count]));
        found = streams[count] == former ? former : NULL;
    }
    for (size_t i = 0; i < count; ++i) {
        rondo_stream_destroy(streams[i] != found ? streams[i] : NULL);
    }
    return found;
}

// A new stream may lie where one that is gone has lain; it is a use of its own.
TEST(test_pool_cuda__uses_are_of_streams_not_of_addresses) {
    const world *w = *state;
    void *x = take(w);
    rondo_stream *former = NULL;
    OK(rondo_stream_create(w->device, NULL, &former));
    OK(rondo_pool_use(w->pool, former, x));
    rondo_stream *other = create_in_place_of(w, former);
    if (other == NULL) {
        OK(rondo_pool_free(w->pool, x));
        print_message("skipped: the heap gave the address of a stream to none of the next ones\n");
        skip();
    }
    OK(rondo_pool_use(w->pool, other, x));
    size_t event_count = fake_cuda_count_calls("cuEventRecord");
    OK(rondo_pool_free(w->pool, x));
    // Behind the work of the stream that lives.
    assert_int_equal(fake_cuda_count_calls("cuEventRecord"), event_count + 1);
    rondo_stream_destroy(other);
}

// ---- captures that Rondo did not begin ----------------------------------------------------------

static rondo_stream *begin_own_capture(const world *w, int mode, rondo__cu_stream *out_native) {
    rondo_stream *wrapped = NULL;
    rondo__cu_context context = NULL;
    OK(w->api->cuDevicePrimaryCtxRetain(&context, 0));
    OK(w->api->cuCtxPushCurrent(context));
    OK(w->api->cuStreamCreate(out_native, RONDO__CU_STREAM_NON_BLOCKING));
    OK(rondo_stream_wrap(w->device, *out_native, &wrapped));
    OK(w->api->cuStreamBeginCapture(*out_native, mode));
    return wrapped;
}

static void end_own_capture(const world *w, rondo_stream *wrapped, rondo__cu_stream native) {
    rondo__cu_graph graph = NULL;
    OK(w->api->cuStreamEndCapture(native, &graph));
    OK(w->api->cuGraphDestroy(graph));
    rondo_stream_destroy(wrapped);
    OK(w->api->cuStreamDestroy(native));
    rondo__cu_context context = NULL;
    OK(w->api->cuCtxPopCurrent(&context));
    OK(w->api->cuDevicePrimaryCtxRelease(0));
}

// The block's last use is work that came before the capture; nothing of the pool's enters it, and
// the block is not given out before its end.
TEST(test_pool_cuda__leaves_own_captures_of_wrapped_streams_alone) {
    const world *w = *state;
    rondo__cu_stream native = NULL;
    void *x = take(w);
    rondo_stream *wrapped = begin_own_capture(w, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL, &native);
    OK(rondo_pool_use(w->pool, wrapped, x));
    OK(rondo_pool_free(w->pool, x));
    OK(rondo_pool_trim(w->pool, 0, NULL));
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    OK(rondo_pool_get_stats(w->pool, &stats));
    assert_int_equal(stats.pending_bytes, BYTES);
    end_own_capture(w, wrapped, native);
}

// Looking after freed blocks asks the driver about events, which a global capture forbids.
TEST(test_pool_cuda__breaks_no_own_capture_in_global_mode) {
    const world *w = *state;
    rondo_stream *other = NULL;
    rondo__cu_stream native = NULL;
    OK(rondo_stream_create(w->device, NULL, &other));
    void *x = take(w);
    OK(rondo_pool_use(w->pool, other, x));
    OK(rondo_pool_free(w->pool, x));
    rondo_stream *wrapped = begin_own_capture(w, RONDO__CU_CAPTURE_MODE_GLOBAL, &native);
    OK(rondo_pool_trim(w->pool, 0, NULL));
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    OK(rondo_pool_get_stats(w->pool, &stats));
    assert_int_equal(stats.pending_bytes, 0);
    end_own_capture(w, wrapped, native);
    rondo_stream_destroy(other);
}

// The wrapper goes while its stream records; what it ran before may run still, and nobody can ask.
TEST(test_pool_cuda__a_wrapper_that_goes_in_its_own_capture) {
    const world *w = *state;
    rondo_pool_options options = {.struct_size = sizeof options};
    options.limit_bytes = 2 << 20;
    rondo_pool *pool = NULL;
    rondo__cu_stream native = NULL;
    void *x = NULL;
    void *y = NULL;
    OK(rondo_pool_create(w->device, &options, &pool));
    OK(rondo_pool_allocate(pool, w->stream, BYTES, &x));
    rondo_stream *wrapped = begin_own_capture(w, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL, &native);
    OK(rondo_pool_use(pool, wrapped, x));
    rondo_stream_destroy(wrapped);
    OK(rondo_pool_free(pool, x));
    OK(rondo_pool_allocate(pool, w->stream, BYTES, &y));
    assert_ptr_not_equal(y, x);
    OK(rondo_pool_trim(pool, 0, NULL));
    end_own_capture(w, NULL, native);
    OK(rondo_pool_free(pool, y));
    OK(rondo_pool_trim(pool, 0, NULL));
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    OK(rondo_pool_get_stats(pool, &stats));
    assert_int_equal(stats.pending_bytes, BYTES);
    // Where the memory is wanted badly, the device is waited for.
    OK(rondo_pool_allocate(pool, w->stream, 2 << 20, &y));
    OK(rondo_pool_get_stats(pool, &stats));
    assert_int_equal(stats.pending_bytes, 0);
    OK(rondo_pool_free(pool, y));
    rondo_pool_release(pool);
}

// ---- what the driver is asked -----------------------------------------------------------------

static size_t count_questions(void) {
    return fake_cuda_count_calls("cuStreamGetCaptureInfo") +
           fake_cuda_count_calls("cuStreamGetCaptureInfo_v3") +
           fake_cuda_count_calls("cuStreamIsCapturing") +
           fake_cuda_count_calls("cuGraphNodeGetDependencies") +
           fake_cuda_count_calls("cuGraphNodeGetDependencies_v2");
}

#define ASSERT_ASKS(count, call)                                       \
    do {                                                               \
        size_t before_ = count_questions();                            \
        size_t calls_ = fake_cuda_count_calls(NULL);                   \
        OK(call);                                                      \
        assert_int_equal(count_questions() - before_, count);          \
        assert_int_equal(fake_cuda_count_calls(NULL) - calls_, count); \
    } while (0)

static rondo_graph *begin_graph(const world *w, rondo_stream *stream) {
    rondo_graph *graph = NULL;
    OK(rondo_graph_create(w->device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    return graph;
}

// The program may record by itself where it has the native stream, and while a capture is open, so
// there is one question a call; and no call more.
TEST(test_pool_cuda__a_call_asks_once) {
    const world *w = *state;
    void *blocks[3];
    rondo_stream *other = NULL;
    rondo_event *fork = NULL;
    OK(rondo_stream_create(w->device, NULL, &other));
    OK(rondo_event_create(w->device, 0, &fork));
    rondo_graph *graph = begin_graph(w, w->stream);
    OK(rondo_pool_allocate(w->pool, w->stream, BYTES, &blocks[0]));  // the region
    OK(rondo_stream_fill(w->stream, blocks[0], 0, 4, 1));
    for (int round = 0; round < 3; ++round) {
        ASSERT_ASKS(1, rondo_pool_allocate(w->pool, w->stream, BYTES, &blocks[1]));
        ASSERT_ASKS(1, rondo_pool_allocate(w->pool, w->stream, BYTES, &blocks[2]));
        if (round == 1) {
            OK(rondo_stream_fill(w->stream, blocks[2], 0, 4, 1));
        }
        ASSERT_ASKS(1, rondo_pool_free(w->pool, blocks[1]));
        ASSERT_ASKS(1, rondo_pool_free(w->pool, blocks[2]));
    }
    OK(rondo_event_record(fork, w->stream));
    OK(rondo_stream_wait_event(other, fork));
    ASSERT_ASKS(1, rondo_pool_use(w->pool, other, blocks[0]));
    ASSERT_ASKS(2, rondo_pool_free(w->pool, blocks[0]));  // once for each of its streams
    OK(rondo_event_record(fork, other));
    OK(rondo_stream_wait_event(w->stream, fork));
    OK(rondo_graph_capture_end(graph));
    // Elsewhere nothing is asked but whether the stream is the one that records.
    rondo_graph *second = begin_graph(w, other);
    OK(rondo_pool_allocate(w->pool, w->stream, BYTES, &blocks[0]));
    ASSERT_ASKS(0, rondo_pool_free(w->pool, blocks[0]));
    ASSERT_ASKS(1, rondo_pool_allocate(w->pool, w->stream, BYTES, &blocks[0]));
    ASSERT_ASKS(0, rondo_pool_free(w->pool, blocks[0]));
    rondo_graph_capture_abort(second);
    ASSERT_ASKS(0, rondo_pool_allocate(w->pool, w->stream, BYTES, &blocks[0]));
    ASSERT_ASKS(0, rondo_pool_free(w->pool, blocks[0]));
    assert_non_null(rondo_stream_get_native(w->stream));
    ASSERT_ASKS(1, rondo_pool_allocate(w->pool, w->stream, BYTES, &blocks[0]));
    ASSERT_ASKS(0, rondo_pool_free(w->pool, blocks[0]));
    rondo_graph_destroy(second);
    rondo_graph_destroy(graph);
    rondo_event_destroy(fork);
    rondo_stream_destroy(other);
}

// The one question fails: the block waits for the end of the capture, and the program's own record
// stays. A driver without typed edges is asked again for less, and the block serves at once.
static void check_failing_question(world *w, bool is_old) {
    void *x = NULL;
    void *y = NULL;
    rondo_graph *graph = begin_graph(w, w->stream);
    OK(rondo_pool_allocate(w->pool, w->stream, BYTES, &x));
    OK(rondo_stream_fill(w->stream, x, 0, 4, 1));
    assert_int_equal(rondo_pool_free(w->pool, &x), RONDO_STATUS_INVALID);
    fake_cuda_fail_nth(0, RONDO__CU_ERROR_NOT_SUPPORTED);
    OK(rondo_pool_free(w->pool, x));
    assert_true(fake_cuda_has_failed());
    assert_int_equal(rondo_error_get_last()->status, RONDO_STATUS_INVALID);
    OK(rondo_pool_allocate(w->pool, w->stream, BYTES, &y));
    assert_true((x == y) == is_old);
    OK(rondo_pool_free(w->pool, y));
    OK(rondo_graph_capture_end(graph));
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    OK(rondo_graph_reset(graph));
    OK(rondo_pool_trim(w->pool, 0, NULL));
    OK(rondo_pool_get_stats(w->pool, &stats));
    assert_int_equal(stats.live_count + stats.pending_bytes + stats.reserved_bytes, 0);
    rondo_graph_destroy(graph);
}

TEST(test_pool_cuda__a_failing_question_loses_nothing) {
    check_failing_question(*state, false);
}

TEST(test_pool_cuda__an_old_driver_is_asked_for_less) {
    world *w = *state;
    (void)tear_down(state);
    fake_cuda_reset(&(fake_cuda_options){.device_count = 1,
                                         .driver_version = 12020,
                                         .missing_symbol = "cuStreamGetCaptureInfo_v3",
                                         .has_get_proc_address = true});
    fake_cuda_install();
    open_world(w);
    check_failing_question(w, true);
}

TEST_MAIN_WITH(set_up, tear_down)
