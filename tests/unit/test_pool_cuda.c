// Pools on the fake driver: streams that are gone, wrapped streams, and captures that the program
// began by itself, which a pool must neither enter nor break.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants the four above first
#include <cmocka.h>
#include <pthread.h>

#include "rondo/device.h"
#include "rondo/pool.h"
#include "support/expect_ok.h"
#include "support/fake_cuda.h"

enum { BYTES = 4096 };

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_pool *pool;
    const rondo__cuda_api *api;
} world;

static int set_up(void **state) {
    static world w;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    OK(rondo_device_open("cuda:0", &w.device));
    OK(rondo_stream_create(w.device, &w.stream));
    OK(rondo_pool_create(w.device, NULL, &w.pool));
    OK(rondo__cuda_get_api(&w.api));
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
        OK(rondo_stream_create(w->device, &streams[i]));
    }
    for (size_t i = 0; i < STREAM_COUNT; ++i) {
        rondo_stream_destroy(streams[i]);
    }
    rondo_stream_destroy(former);
    rondo_stream *found = NULL;
    size_t count = 0;
    for (; count < STREAM_COUNT && found == NULL; ++count) {
        OK(rondo_stream_create(w->device, &streams[count]));
        found = streams[count] == former ? former : NULL;
    }
    for (size_t i = 0; i < count; ++i) {
        rondo_stream_destroy(streams[i] != found ? streams[i] : NULL);
    }
    return found;
}

// A new stream may lie where one that is gone has lain; it is a use of its own.
static void test_pool_cuda__uses_are_of_streams_not_of_addresses(void **state) {
    const world *w = *state;
    void *x = take(w);
    rondo_stream *former = NULL;
    OK(rondo_stream_create(w->device, &former));
    OK(rondo_pool_use(w->pool, x, former));
    rondo_stream *other = create_in_place_of(w, former);
    if (other == NULL) {
        OK(rondo_pool_free(w->pool, x));
        print_message("skipped: the heap gave the address of a stream to none of the next ones\n");
        skip();
    }
    OK(rondo_pool_use(w->pool, x, other));
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
static void test_pool_cuda__leaves_own_captures_of_wrapped_streams_alone(void **state) {
    const world *w = *state;
    rondo__cu_stream native = NULL;
    void *x = take(w);
    rondo_stream *wrapped = begin_own_capture(w, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL, &native);
    OK(rondo_pool_use(w->pool, x, wrapped));
    OK(rondo_pool_free(w->pool, x));
    OK(rondo_pool_trim(w->pool, 0, NULL));
    rondo_pool_stats stats;
    OK(rondo_pool_get_stats(w->pool, &stats));
    assert_int_equal(stats.pending_bytes, BYTES);
    end_own_capture(w, wrapped, native);
}

// Looking after freed blocks asks the driver about events, which a global capture forbids.
static void test_pool_cuda__breaks_no_own_capture_in_global_mode(void **state) {
    const world *w = *state;
    rondo_stream *other = NULL;
    rondo__cu_stream native = NULL;
    OK(rondo_stream_create(w->device, &other));
    void *x = take(w);
    OK(rondo_pool_use(w->pool, x, other));
    OK(rondo_pool_free(w->pool, x));
    rondo_stream *wrapped = begin_own_capture(w, RONDO__CU_CAPTURE_MODE_GLOBAL, &native);
    OK(rondo_pool_trim(w->pool, 0, NULL));
    rondo_pool_stats stats;
    OK(rondo_pool_get_stats(w->pool, &stats));
    assert_int_equal(stats.pending_bytes, 0);
    end_own_capture(w, wrapped, native);
    rondo_stream_destroy(other);
}

// The wrapper goes while its stream records; what it ran before may run still, and nobody can ask.
static void test_pool_cuda__a_wrapper_that_goes_in_its_own_capture(void **state) {
    const world *w = *state;
    rondo_pool_options options = rondo_pool_options_default();
    options.limit_bytes = 2 << 20;
    rondo_pool *pool = NULL;
    rondo__cu_stream native = NULL;
    void *x = NULL;
    void *y = NULL;
    OK(rondo_pool_create(w->device, &options, &pool));
    OK(rondo_pool_allocate(pool, w->stream, BYTES, &x));
    rondo_stream *wrapped = begin_own_capture(w, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL, &native);
    OK(rondo_pool_use(pool, x, wrapped));
    rondo_stream_destroy(wrapped);
    OK(rondo_pool_free(pool, x));
    OK(rondo_pool_allocate(pool, w->stream, BYTES, &y));
    assert_ptr_not_equal(y, x);
    OK(rondo_pool_trim(pool, 0, NULL));
    end_own_capture(w, NULL, native);
    OK(rondo_pool_free(pool, y));
    OK(rondo_pool_trim(pool, 0, NULL));
    rondo_pool_stats stats;
    OK(rondo_pool_get_stats(pool, &stats));
    assert_int_equal(stats.pending_bytes, BYTES);
    // Where the memory is wanted badly, the device is waited for.
    OK(rondo_pool_allocate(pool, w->stream, 2 << 20, &y));
    OK(rondo_pool_get_stats(pool, &stats));
    assert_int_equal(stats.pending_bytes, 0);
    OK(rondo_pool_free(pool, y));
    rondo_pool_release(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(test_pool_cuda__##name, set_up, tear_down)
        CASE(uses_are_of_streams_not_of_addresses),
        CASE(leaves_own_captures_of_wrapped_streams_alone),
        CASE(a_wrapper_that_goes_in_its_own_capture),
        CASE(breaks_no_own_capture_in_global_mode),
#undef CASE
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
