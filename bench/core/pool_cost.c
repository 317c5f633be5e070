// What pools cost: taking and giving a block that the cache holds, eagerly, eagerly while a capture
// is open elsewhere, and inside a capture; and whether captures leave anything behind.
//
//   build/bench/pool_cost [DEVICE] [ROUNDS]        default: cuda:0, 10000 capture and reset rounds
//
// Times are medians over 200 batches of 100 calls of CPU time, for one call each.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/rondo.h"

enum { BATCHES = 200, BATCH = 100 };

static void time_pool(const char *name, rondo_pool *pool, rondo_stream *stream, int batches) {
    static double takes[BATCHES];
    static double gives[BATCHES];
    void *blocks[BATCH];
    for (int batch = 0; batch < batches; ++batch) {
        uint64_t start = rondo__clock_now_ns();
        for (int i = 0; i < BATCH; ++i) {
            must(rondo_pool_allocate(pool, stream, 512u + 512u * (unsigned)(i % 7), &blocks[i]));
        }
        uint64_t middle = rondo__clock_now_ns();
        for (int i = 0; i < BATCH; ++i) {
            must(rondo_pool_free(pool, blocks[i]));
        }
        takes[batch] = (double)(middle - start) / BATCH;
        gives[batch] = (double)(rondo__clock_now_ns() - middle) / BATCH;
    }
    printf("%-44s allocate %7.1f ns   free %7.1f ns\n", name, get_median(takes, (size_t)batches),
           get_median(gives, (size_t)batches));
}

static void capture_once(rondo_graph *graph, rondo_pool *pool, rondo_stream *stream) {
    void *x;
    void *y;
    must(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    must(rondo_pool_allocate(pool, stream, 4096, &x));
    must(rondo_stream_fill(stream, x, 1, 4, 1024));
    must(rondo_pool_allocate(pool, stream, 1 << 20, &y));
    must(rondo_stream_copy(stream, y, x, 4096, RONDO_COPY_DEVICE_TO_DEVICE));
    must(rondo_pool_free(pool, y));
    must(rondo_graph_capture_end(graph));
    must(rondo_graph_replay(graph, stream));
    must(rondo_pool_free(pool, x));
    must(rondo_graph_reset(graph));
}

static uint64_t get_free_bytes(rondo_device *device) {
    rondo_device_info info = {.struct_size = sizeof info};
    must(rondo_device_get_info(device, &info));
    return info.free_bytes;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "cuda:0";
    int rounds = argc > 2 ? atoi(argv[2]) : 10000;
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *other;
    rondo_pool *pool;
    rondo_graph *graph;
    must(rondo_device_open(name, &device));
    must(rondo_stream_create(device, NULL, &stream));
    must(rondo_stream_create(device, NULL, &other));
    must(rondo_pool_create(device, NULL, &pool));
    must(rondo_graph_create(device, NULL, &graph));
    printf("pool_cost on %s\n", name);
    time_pool("eager", pool, stream, BATCHES);
    time_pool("eager, again", pool, stream, BATCHES);
    must(rondo_graph_capture_begin(graph, other, RONDO_CAPTURE_THREAD_LOCAL));
    time_pool("eager, a capture is open on another stream", pool, stream, BATCHES);
    time_pool("inside a capture, nothing recorded between", pool, other, BATCHES);
    rondo_graph_capture_abort(graph);

    for (int i = 0; i < rounds / 10; ++i) {
        capture_once(graph, pool, stream);
    }
    must(rondo_device_synchronize(device));
    double resident = get_resident_bytes();
    uint64_t free_bytes = get_free_bytes(device);
    rondo_pool_stats before = {.struct_size = sizeof before};
    rondo_pool_stats after = {.struct_size = sizeof after};
    must(rondo_pool_get_stats(pool, &before));
    uint64_t start = rondo__clock_now_ns();
    for (int i = 0; i < rounds; ++i) {
        capture_once(graph, pool, stream);
    }
    must(rondo_device_synchronize(device));
    double us = (double)(rondo__clock_now_ns() - start) / 1000.0 / rounds;
    must(rondo_pool_get_stats(pool, &after));
    printf(
        "%d capture and reset rounds, %.1f us each: resident %+lld KiB, device %+lld KiB, "
        "reserved %+lld KiB, driver calls for memory %llu\n",
        rounds, us, (long long)(get_resident_bytes() - resident) / 1024,
        ((long long)free_bytes - (long long)get_free_bytes(device)) / 1024,
        ((long long)after.reserved_bytes - (long long)before.reserved_bytes) / 1024,
        (unsigned long long)(after.driver_call_count - before.driver_call_count));

    rondo_graph_destroy(graph);
    rondo_pool_release(pool);
    rondo_stream_destroy(other);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return 0;
}
