// Copies from one device to another: two GPUs of the fake driver and the host, eager and replayed,
// with a way between the GPUs and without one; what is refused, and what a failing driver leaves.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

enum { GPU0, GPU1, HOST, DEVICES, COUNT = 300 };

static rondo_device *g_devices[DEVICES];
static rondo_stream *g_streams[DEVICES];
static uint32_t *g_memory[DEVICES];  // pinned on the host

static void open_all(bool has_no_peers) {
    static const char *const names[DEVICES] = {"cuda:0", "cuda:1", "host"};
    const fake_cuda_options options = {.device_count = 2,
                                       .driver_version = 13000,
                                       .has_get_proc_address = true,
                                       .has_no_peers = has_no_peers};
    fake_cuda_reset(&options);
    fake_cuda_install();
    for (int i = 0; i < DEVICES; ++i) {
        OK(rondo_device_open(names[i], &g_devices[i]));
        OK(rondo_stream_create(g_devices[i], NULL, &g_streams[i]));
        OK(rondo_memory_allocate(g_devices[i == HOST ? GPU0 : i],
                                 i == HOST ? RONDO_MEMORY_PINNED : RONDO_MEMORY_DEVICE, COUNT * 4,
                                 (void **)&g_memory[i]));
    }
}

static void close_all(void) {
    for (int i = 0; i < DEVICES; ++i) {
        rondo_memory_free(g_devices[i == HOST ? GPU0 : i], g_memory[i]);
        rondo_stream_destroy(g_streams[i]);
    }
    for (int i = 0; i < DEVICES; ++i) {
        rondo_device_release(g_devices[i]);
    }
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

static rondo_status copy(int on, int to, int from) {
    return rondo_stream_copy_between(g_streams[on], g_devices[to], g_memory[to], g_devices[from],
                                     g_memory[from], COUNT * 4);
}

// The fake's memory is the process's, so all of it can be read and written here.
static void expect_copied(int to, int from, uint32_t first) {
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_int_equal(g_memory[from][i], first + i);
        assert_int_equal(g_memory[to][i], first + i);
    }
}

static void fill(int device, uint32_t first) {
    for (uint32_t i = 0; i < COUNT; ++i) {
        g_memory[device][i] = first + i;
    }
}

typedef struct way {
    int on;
    int to;
    int from;
    bool has_no_peers;
    const char *call;  // of the driver, which makes the copy; NULL: none does
} way;

static const way ways[] = {
    {GPU0, GPU0, GPU1, false, "cuMemcpyDtoDAsync"}, {GPU0, GPU1, GPU0, false, "cuMemcpyDtoDAsync"},
    {GPU1, GPU1, GPU0, false, "cuMemcpyDtoDAsync"}, {GPU0, GPU0, GPU1, true, "cuMemcpyPeerAsync"},
    {GPU1, GPU0, GPU1, true, "cuMemcpyPeerAsync"},  {GPU1, HOST, GPU1, false, "cuMemcpyDtoHAsync"},
    {GPU1, GPU1, HOST, false, "cuMemcpyHtoDAsync"},
};

TEST(test_device_copy__every_way_eager_and_replayed) {
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; ++w) {
        const way *o = &ways[w];
        rondo_graph *graph;
        open_all(o->has_no_peers);
        fill(o->from, 100);
        OK(copy(o->on, o->to, o->from));
        OK(rondo_stream_synchronize(g_streams[o->on]));
        expect_copied(o->to, o->from, 100);
        assert_int_equal(fake_cuda_count_calls(o->call), 1);
        OK(rondo_graph_create(g_devices[o->on], NULL, &graph));
        OK(rondo_graph_capture_begin(graph, g_streams[o->on], RONDO_CAPTURE_THREAD_LOCAL));
        OK(copy(o->on, o->to, o->from));
        OK(rondo_graph_capture_end(graph));
        for (uint32_t run = 0; run < 3; ++run) {
            fill(o->from, 1000 * run);
            OK(rondo_graph_replay(graph, g_streams[o->on]));
            OK(rondo_stream_synchronize(g_streams[o->on]));
            expect_copied(o->to, o->from, 1000 * run);
        }
        assert_int_equal(fake_cuda_count_calls(o->call), 2);
        rondo_graph_destroy(graph);
        close_all();
    }
}

// The way is opened once, also by a copy that is recorded, and anew for a device that was closed.
TEST(test_device_copy__a_way_is_opened_once) {
    rondo_graph *graph;
    open_all(false);
    OK(rondo_graph_create(g_devices[GPU0], NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g_streams[GPU0], RONDO_CAPTURE_GLOBAL));
    OK(copy(GPU0, GPU0, GPU1));
    OK(rondo_graph_capture_end(graph));
    rondo_graph_destroy(graph);
    for (int i = 0; i < 5; ++i) {
        OK(copy(GPU0, GPU0, GPU1));
    }
    assert_int_equal(fake_cuda_count_calls("cuCtxEnablePeerAccess"), 1);
    rondo_memory_free(g_devices[GPU1], g_memory[GPU1]);
    rondo_stream_destroy(g_streams[GPU1]);
    rondo_device_release(g_devices[GPU1]);
    OK(rondo_device_open("cuda:1", &g_devices[GPU1]));
    OK(rondo_stream_create(g_devices[GPU1], NULL, &g_streams[GPU1]));
    OK(rondo_memory_allocate(g_devices[GPU1], RONDO_MEMORY_DEVICE, COUNT * 4,
                             (void **)&g_memory[GPU1]));
    OK(copy(GPU0, GPU0, GPU1));
    assert_int_equal(fake_cuda_count_calls("cuCtxEnablePeerAccess"), 2);
    close_all();
}

TEST(test_device_copy__says_whether_it_is_direct) {
    for (int has_no_peers = 0; has_no_peers < 2; ++has_no_peers) {
        bool is_direct;
        open_all(has_no_peers != 0);
        OK(rondo_device_copies_directly(g_devices[GPU0], g_devices[GPU1], &is_direct));
        assert_int_equal(is_direct, has_no_peers == 0);
        OK(rondo_device_copies_directly(g_devices[GPU0], g_devices[GPU0], &is_direct));
        assert_true(is_direct);
        OK(rondo_device_copies_directly(g_devices[GPU0], g_devices[HOST], &is_direct));
        assert_true(is_direct);
        close_all();
    }
}

typedef struct refused {
    int on;
    int to;  // DEVICES: NULL
    int from;
    size_t bytes;
    const char *text;
} refused;

static const refused refused_rows[] = {
    {HOST, GPU0, GPU1, 8, "cannot be put on a stream of host; take a stream of either"},
    {HOST, HOST, GPU1, 8, "take a stream of the other one"},
    {GPU0, GPU1, HOST, 8, "a copy from host to cuda:1 cannot be put on a stream of cuda:0"},
    {GPU0, DEVICES, GPU0, 8, "\"to\" is NULL"},
    {GPU0, GPU0, GPU1, SIZE_MAX, "overlap"},
};

static rondo_status put_nothing(rondo_stream *stream, void *user_data) {
    (void)stream;
    (void)user_data;
    return RONDO_STATUS_OK;
}

// What has a device takes streams of that alone, and says so.
TEST(test_device_copy__a_stream_of_another_device_is_refused) {
    static const char *const ends[] = {"graph \"step\" is of", "the pool is of",
                                       "the generator is of", "graph cache \"rows\" is of"};
    rondo_graph *graph;
    rondo_pool *pool;
    rondo_generator *generator;
    rondo_graph_cache *cache;
    const rondo_graph_options named = {.struct_size = sizeof named, .label = "step"};
    const rondo_graph_cache_options rows = {.struct_size = sizeof rows, .label = "rows"};
    open_all(false);
    OK(rondo_graph_create(g_devices[HOST], &named, &graph));
    OK(rondo_pool_create(g_devices[HOST], NULL, &pool));
    OK(rondo_generator_create(g_devices[HOST], 1, &generator));
    OK(rondo_graph_cache_create(g_devices[HOST], &rows, &cache));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        rondo_stream *const stream = g_streams[GPU0];
        void *memory = NULL;
        rondo_status status = RONDO_STATUS_OK;
        switch (i) {
            case 0:
                status = rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL);
                break;
            case 1:
                status = rondo_pool_allocate(pool, stream, 64, &memory);
                break;
            case 2:
                status = rondo_random_uniform(generator, stream, RONDO_DTYPE_F32, g_memory[GPU0], 1,
                                              0.0, 1.0);
                break;
            default:
                status = rondo_graph_cache_run(cache, "k", 1, stream, put_nothing, NULL, NULL);
        }
        assert_int_equal(status, RONDO_STATUS_INVALID);
        const char *message = rondo_error_get_last()->message;
        if (strstr(message, ends[i]) == NULL ||
            strstr(message, " host, the stream of cuda:0; use a stream of host") == NULL) {
            fail_msg("\"%s\" lacks \"%s\"", message, ends[i]);
        }
    }
    rondo_graph_cache_destroy(cache);
    rondo_generator_release(generator);
    rondo_pool_release(pool);
    rondo_graph_destroy(graph);
    close_all();
}

TEST(test_device_copy__refuses_by_name) {
    open_all(false);
    for (size_t r = 0; r < sizeof refused_rows / sizeof refused_rows[0]; ++r) {
        const refused *o = &refused_rows[r];
        rondo_device *to = o->to < DEVICES ? g_devices[o->to] : NULL;
        assert_int_equal(rondo_stream_copy_between(g_streams[o->on], to, g_memory[o->to % DEVICES],
                                                   g_devices[o->from], g_memory[o->from], o->bytes),
                         RONDO_STATUS_INVALID);
        const rondo_error *error = rondo_error_get_last();
        if (strstr(error->message, o->text) == NULL) {
            fail_msg("\"%s\" lacks \"%s\"", error->message, o->text);
        }
        assert_string_equal(error->call, "rondo_stream_copy_between");
    }
    OK(rondo_stream_copy_between(g_streams[GPU0], g_devices[GPU0], NULL, g_devices[GPU1], NULL, 0));
    close_all();
}

// Every driver call fails once: the copy says so, and works afterwards.
TEST(test_device_copy__when_the_driver_fails) {
    for (int has_no_peers = 0; has_no_peers < 2; ++has_no_peers) {
        bool has_failed = true;
        for (long n = 0; has_failed; ++n) {
            open_all(has_no_peers != 0);
            fill(GPU1, 7);
            fake_cuda_fail_nth(n, RONDO__CU_ERROR_UNKNOWN);
            rondo_status status = copy(GPU0, GPU0, GPU1);
            has_failed = fake_cuda_has_failed();
            const char *call = fake_cuda_get_failed_call();
            // What only asks for the context or the mode does without an answer.
            const bool may_pass = strstr(call, "cuCtxGetCurrent") != NULL ||
                                  strstr(call, "cuCtxPopCurrent") != NULL ||
                                  strstr(call, "cuThreadExchange") != NULL;
            assert_true(!has_failed || may_pass || status == RONDO_STATUS_DRIVER);
            fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
            OK(copy(GPU0, GPU0, GPU1));
            expect_copied(GPU0, GPU1, 7);
            close_all();
        }
    }
}

TEST_MAIN()
