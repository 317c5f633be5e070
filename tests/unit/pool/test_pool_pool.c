// Pools on the host device and, where there is one, on a GPU: reuse per stream, declared
// cross-stream use, statistics, trimming, limits, misuse.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "rondo/device.h"
#include "rondo/graph.h"
#include "rondo/pool.h"
#include "support/expect_ok.h"
#include "support/gpu_present.h"
#include "support/test.h"

static const char *device_name = "host";

typedef struct world {
    rondo_device *device;
    rondo_stream *a;
    rondo_stream *b;
    rondo_pool *pool;
} world;

static world make_world(const rondo_pool_options *options) {
    world w;
    OK(rondo_device_open(device_name, &w.device));
    OK(rondo_stream_create(w.device, NULL, &w.a));
    OK(rondo_stream_create(w.device, NULL, &w.b));
    OK(rondo_pool_create(w.device, options, &w.pool));
    return w;
}

static void free_world(world *w) {
    rondo_pool_release(w->pool);
    rondo_stream_destroy(w->a);
    rondo_stream_destroy(w->b);
    rondo_device_release(w->device);
}

static void *take(world *w, rondo_stream *stream, size_t bytes) {
    void *address;
    OK(rondo_pool_allocate(w->pool, stream, bytes, &address));
    assert_non_null(address);
    assert_int_equal((uintptr_t)address % 512, 0);
    return address;
}

static rondo_pool_stats get_stats(world *w) {
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    OK(rondo_pool_get_stats(w->pool, &stats));
    return stats;
}

TEST(test_pool_pool__reuses_at_once_on_the_same_stream_only) {
    world w = make_world(NULL);
    void *first = take(&w, w.a, 5000);
    OK(rondo_pool_free(w.pool, first));
    assert_ptr_equal(take(&w, w.a, 5000), first);
    OK(rondo_pool_free(w.pool, first));
    void *other = take(&w, w.b, 5000);
    assert_ptr_not_equal(other, first);
    OK(rondo_pool_free(w.pool, other));
    assert_int_equal(get_stats(&w).driver_call_count, 2);
    free_world(&w);
}

typedef struct gate {
    atomic_bool *is_open;
} gate;

static void wait_for_gate(void *arguments) {
    gate g;
    memcpy(&g, arguments, sizeof g);
    while (!atomic_load(g.is_open)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

TEST(test_pool_pool__declared_use_delays_reuse) {
    world w = make_world(NULL);
    atomic_bool is_open = false;
    gate g = {&is_open};
    void *block = take(&w, w.a, 1 << 20);
    OK(rondo_stream_call_host(w.b, "gate", wait_for_gate, &g, sizeof g));
    OK(rondo_pool_use(w.pool, w.b, block));
    OK(rondo_pool_use(w.pool, w.b, block));  // twice is fine
    OK(rondo_pool_use(w.pool, w.a, block));  // its own stream needs no declaration
    OK(rondo_pool_free(w.pool, block));
    assert_int_equal(get_stats(&w).pending_bytes, 1 << 20);
    assert_int_equal(get_stats(&w).live_bytes, 0);
    void *other = take(&w, w.a, 1 << 20);
    assert_ptr_not_equal(other, block);  // stream b still works with it
    atomic_store(&is_open, true);
    OK(rondo_stream_synchronize(w.b));
    void *more[3];
    bool is_back = false;
    for (int i = 0; i < 3; ++i) {
        more[i] = take(&w, w.a, 1 << 20);
        is_back = is_back || more[i] == block;
    }
    assert_true(is_back);
    assert_int_equal(get_stats(&w).pending_bytes, 0);
    OK(rondo_pool_free(w.pool, other));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_pool_free(w.pool, more[i]));
    }
    free_world(&w);
}

TEST(test_pool_pool__counts_and_trims) {
    world w = make_world(NULL);
    void *small = take(&w, w.a, 100);
    void *large = take(&w, w.a, (40 << 20) + 1);
    rondo_pool_stats stats = get_stats(&w);
    assert_int_equal(stats.live_count, 2);
    assert_int_equal(stats.live_bytes, 512 + (40 << 20) + 512);
    assert_int_equal(stats.reserved_bytes, (2 << 20) + (42 << 20));
    OK(rondo_pool_free(w.pool, large));
    uint64_t released;
    OK(rondo_pool_trim(w.pool, 0, &released));
    assert_int_equal(released, 42 << 20);  // the small block keeps its region
    stats = get_stats(&w);
    assert_int_equal(stats.reserved_bytes, 2 << 20);
    assert_int_equal(stats.reserved_peak_bytes, 44 << 20);
    OK(rondo_pool_free(w.pool, small));
    OK(rondo_pool_trim(w.pool, 0, &released));
    assert_int_equal(get_stats(&w).reserved_bytes, 0);
    free_world(&w);
}

TEST(test_pool_pool__limit_frees_the_cache_first) {
    rondo_pool_options options = {.struct_size = sizeof options};
    options.limit_bytes = 64 << 20;
    world w = make_world(&options);
    OK(rondo_pool_free(w.pool, take(&w, w.a, 40 << 20)));
    void *block = take(&w, w.b, 60 << 20);  // only when stream a's cache is given up
    void *none;
    assert_int_equal(rondo_pool_allocate(w.pool, w.a, 10 << 20, &none),
                     RONDO_STATUS_NO_DEVICE_MEMORY);
    assert_null(none);
    assert_non_null(strstr(rondo_error_get_last()->message, "62914560 live in 1 blocks"));
    OK(rondo_pool_free(w.pool, block));
    OK(rondo_pool_free(w.pool, take(&w, w.a, 10 << 20)));
    free_world(&w);
}

// Captures and trims in turn leave nothing behind, records neither.
TEST(test_pool_pool__captures_and_trims_do_not_pile_up) {
    rondo__memory_set_fault(NULL, NULL);  // counts from now on
    world w = make_world(NULL);
    rondo_graph *graph;
    OK(rondo_graph_create(w.device, NULL, &graph));
    int64_t balance = 0;
    for (int i = 0; i < 40; ++i) {
        OK(rondo_graph_capture_begin(graph, w.a, RONDO_CAPTURE_THREAD_LOCAL));
        uint32_t *block = take(&w, w.a, 1 << 20);
        OK(rondo_stream_fill(w.a, block, 1, 4, 4));
        OK(rondo_pool_free(w.pool, block));
        OK(rondo_graph_capture_end(graph));
        OK(rondo_graph_reset(graph));
        OK(rondo_pool_trim(w.pool, 0, NULL));
        assert_int_equal(get_stats(&w).reserved_bytes, 0);
        balance = i == 10 ? rondo__memory_get_balance() : balance;
    }
    assert_int_equal(rondo__memory_get_balance(), balance);
    rondo_graph_destroy(graph);
    free_world(&w);
}

TEST(test_pool_pool__misuse_is_refused) {
    world w = make_world(NULL);
    void *block = take(&w, w.a, 10);
    int local;
    OK(rondo_pool_free(w.pool, block));
    assert_int_equal(rondo_pool_free(w.pool, block), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_pool_free(w.pool, &local), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_pool_use(w.pool, w.b, block), RONDO_STATUS_INVALID);
    void *address = &local;
    assert_int_equal(rondo_pool_allocate(w.pool, NULL, 1, &address), RONDO_STATUS_INVALID);
    assert_null(address);
    OK(rondo_pool_allocate(w.pool, w.a, 0, &address));
    assert_null(address);
    OK(rondo_pool_free(w.pool, NULL));
    free_world(&w);
}

TEST(test_pool_pool__blocks_outlive_the_pool) {
    world w = make_world(NULL);
    char *block = take(&w, w.a, 4096);
    rondo_pool *pool = w.pool;
    rondo_pool_release(pool);
    OK(rondo_stream_fill(w.a, block, 1, 1, 4096));
    OK(rondo_pool_free(pool, block));  // and with the last block the pool goes
    w.pool = NULL;
    free_world(&w);
}

TEST(test_pool_pool__regions_of_destroyed_streams_serve_others) {
    world w = make_world(NULL);
    for (int i = 0; i < 200; ++i) {
        rondo_stream *stream;
        OK(rondo_stream_create(w.device, NULL, &stream));
        OK(rondo_pool_free(w.pool, take(&w, stream, 1000)));
        rondo_stream_destroy(stream);
    }
    assert_int_equal(get_stats(&w).reserved_bytes, 2 << 20);
    free_world(&w);
}

static void *churn(void *argument) {
    world *w = argument;
    rondo_stream *stream;
    if (rondo_stream_create(w->device, NULL, &stream) != RONDO_STATUS_OK) {
        return argument;
    }
    void *blocks[16] = {0};
    unsigned seed = (unsigned)(uintptr_t)&blocks;
    for (int i = 0; i < 3000; ++i) {
        int k = rand_r(&seed) % 16;
        if (blocks[k] != NULL) {
            if (*(uint32_t *)blocks[k] != (uint32_t)(uintptr_t)blocks[k] ||
                rondo_pool_free(w->pool, blocks[k]) != RONDO_STATUS_OK) {
                return argument;
            }
            blocks[k] = NULL;
        } else if (rondo_pool_allocate(w->pool, stream, 1 + (size_t)rand_r(&seed) % 9000,
                                       &blocks[k]) == RONDO_STATUS_OK) {
            *(uint32_t *)blocks[k] = (uint32_t)(uintptr_t)blocks[k];
        }
    }
    for (int k = 0; k < 16; ++k) {
        (void)rondo_pool_free(w->pool, blocks[k]);
    }
    rondo_stream_destroy(stream);
    return NULL;
}

TEST(test_pool_pool__sixteen_threads) {
    world w = make_world(NULL);
    pthread_t threads[16];
    for (int i = 0; i < 16; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &w), 0);
    }
    for (int i = 0; i < 16; ++i) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(get_stats(&w).live_bytes, 0);
    free_world(&w);
}

int main(void) {
    int failed_count = RUN_TESTS(NULL, NULL);
    // All but the last, whose threads write into their blocks directly.
    const struct CMUnitTest gpu_tests[] = {
        cmocka_unit_test(test_pool_pool__reuses_at_once_on_the_same_stream_only),
        cmocka_unit_test(test_pool_pool__declared_use_delays_reuse),
        cmocka_unit_test(test_pool_pool__counts_and_trims),
        cmocka_unit_test(test_pool_pool__limit_frees_the_cache_first),
        cmocka_unit_test(test_pool_pool__misuse_is_refused),
        cmocka_unit_test(test_pool_pool__blocks_outlive_the_pool),
        cmocka_unit_test(test_pool_pool__regions_of_destroyed_streams_serve_others),
    };
    device_name = "cuda:0";
    if (gpu_is_present(&failed_count)) {
        failed_count += cmocka_run_group_tests_name("cuda:0", gpu_tests, NULL, NULL);
    }
    return failed_count;
}
