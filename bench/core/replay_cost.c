// What a replay costs the CPU beyond the driver: rondo_graph_replay against the bare cuGraphLaunch
// of the same executable, in one process, turn by turn.
//
//   build/bench/replay_cost [CALLS]
//
// Each turn times one call of each kind, in changing order, with the clock's own cost on both
// sides; the stream is drained every 16 turns, so that no call waits for room in the driver's
// queue. A block of turns gives the median of each kind; every block has a graph of its own, and
// what is reported is the median block and the smallest and largest difference of any block.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/rondo.h"

typedef int (*graph_launch_function)(void *executable, void *stream);
typedef int (*set_context_function)(void *context);
typedef int (*get_stream_context_function)(void *stream, void **out_context);

enum { DRAIN_EVERY = 16, WARM_UP_TURNS = 200, BLOCK_COUNT = 9 };

static const char g_text[] =
    "extern \"C\" __global__ void step(float *x, float f) { x[threadIdx.x] *= f; }\n";

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    void *executable;
    graph_launch_function launch;
    set_context_function set_context;
    void *context;
} bench;

static double time_bare(const bench *b) {
    uint64_t start = rondo__clock_now_ns();
    int code = b->launch(b->executable, rondo_stream_get_native(b->stream));
    uint64_t end = rondo__clock_now_ns();
    if (code != 0) {
        fprintf(stderr, "cuGraphLaunch: %d\n", code);
        exit(1);
    }
    return (double)(end - start);
}

static double time_rondo(const bench *b) {
    uint64_t start = rondo__clock_now_ns();
    rondo_status status = rondo_graph_replay(b->graph, b->stream);
    uint64_t end = rondo__clock_now_ns();
    must(status);
    return (double)(end - start);
}

// Medians of one block, ns.
typedef struct block {
    double bare;
    double ours;
    double ours_without_context;
} block;

static block run_block(const bench *b, size_t call_count, double *bare, double *ours) {
    block result;
    for (size_t i = 0; i < WARM_UP_TURNS + call_count; i++) {
        size_t slot = i < WARM_UP_TURNS ? 0 : i - WARM_UP_TURNS;
        if (i % 2 == 0) {
            bare[slot] = time_bare(b);
            ours[slot] = time_rondo(b);
        } else {
            ours[slot] = time_rondo(b);
            bare[slot] = time_bare(b);
        }
        if (i % DRAIN_EVERY == 0) {
            must(rondo_stream_synchronize(b->stream));
        }
    }
    result.bare = get_median(bare, call_count);
    result.ours = get_median(ours, call_count);
    // The same from a thread where no context is current: Rondo selects it and puts it back.
    b->set_context(NULL);
    for (size_t i = 0; i < call_count; i++) {
        ours[i] = time_rondo(b);
        if (i % DRAIN_EVERY == 0) {
            must(rondo_stream_synchronize(b->stream));
        }
    }
    b->set_context(b->context);
    must(rondo_stream_synchronize(b->stream));
    result.ours_without_context = get_median(ours, call_count);
    return result;
}

static void record(bench *b, void *function, void *memory, size_t node_count) {
    struct {
        void *x;
        float f;
    } arguments = {memory, 1.0f};
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "step",
                           .function = function,
                           .grid = {1, 1, 1},
                           .block = {32, 1, 1},
                           .arguments = &arguments,
                           .argument_bytes = sizeof(void *) + sizeof(float)};
    must(rondo_graph_create(b->device, NULL, &b->graph));
    must(rondo_graph_capture_begin(b->graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (size_t i = 0; i < node_count; i++) {
        must(rondo_stream_launch(b->stream, &launch));
    }
    must(rondo_graph_capture_end(b->graph));
    must(rondo_graph_get_native(b->graph, NULL, &b->executable));
    must(rondo_graph_upload(b->graph, b->stream));
}

static void measure(bench *b, void *function, void *memory, size_t node_count, size_t call_count,
                    double *bare, double *ours) {
    double bares[BLOCK_COUNT];
    double differences[BLOCK_COUNT];
    double without_context[BLOCK_COUNT];
    for (int i = 0; i < BLOCK_COUNT; i++) {
        record(b, function, memory, node_count);
        block medians = run_block(b, call_count, bare, ours);
        rondo_graph_destroy(b->graph);
        bares[i] = medians.bare;
        differences[i] = medians.ours - medians.bare;
        without_context[i] = medians.ours_without_context - medians.bare;
    }
    const double difference = get_median(differences, BLOCK_COUNT);
    printf("%6zu  %14.0f  %10.0f  (%4.0f to %4.0f)  %20.0f\n", node_count,
           get_median(bares, BLOCK_COUNT), difference, differences[0], differences[BLOCK_COUNT - 1],
           get_median(without_context, BLOCK_COUNT));
}

int main(int argc, char **argv) {
    static const size_t node_counts[] = {1, 8, 100, 1000};
    size_t call_count = argc > 1 ? strtoul(argv[1], NULL, 10) : 4000;
    if (call_count == 0) {
        fprintf(stderr, "usage: replay_cost [CALLS]   (at least 1)\n");
        return 2;
    }
    double *bare = make_values(call_count);
    double *ours = make_values(call_count);
    bench b = {0};
    rondo_device_info info = {.struct_size = sizeof info};
    get_stream_context_function get_stream_context = NULL;
    find_in_driver("cuGraphLaunch", &b.launch);
    find_in_driver("cuCtxSetCurrent", &b.set_context);
    find_in_driver("cuStreamGetCtx", &get_stream_context);
    must(rondo_device_open("cuda:0", &b.device));
    must(rondo_device_get_info(b.device, &info));
    must(rondo_stream_create(b.device, NULL, &b.stream));
    void *memory = NULL;
    if (get_stream_context(rondo_stream_get_native(b.stream), &b.context) != 0 ||
        b.set_context(b.context) != 0) {
        fprintf(stderr, "cannot make the context current\n");
        return 2;
    }
    must(rondo_memory_allocate(b.device, RONDO_MEMORY_DEVICE, 256, &memory));
    must(rondo_stream_fill(b.stream, memory, 0, 4, 64));
    void *function = get_kernel(b.device, g_text, "step", NULL);

    printf("%s, CUDA driver %d.%d, %zu calls of each kind in a block\n", info.description,
           info.driver_version / 1000, info.driver_version % 1000 / 10, call_count);
    printf("%6s  %14s  %10s  %14s  %20s\n", "nodes", "cuGraphLaunch", "Rondo adds", "(blocks)",
           "with no context, adds");
    for (size_t i = 0; i < sizeof(node_counts) / sizeof(node_counts[0]); i++) {
        // Long graphs keep the GPU busy for long; fewer calls do for them.
        size_t fewer = call_count * 8 / node_counts[i];
        size_t count = node_counts[i] <= 8 ? call_count : fewer < 300 ? 300 : fewer;
        measure(&b, function, memory, node_counts[i], count < call_count ? count : call_count, bare,
                ours);
    }
    printf("CPU time of the call, ns; medians over %d blocks\n", BLOCK_COUNT);
    rondo_memory_free(b.device, memory);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    free(bare);
    free(ours);
    return 0;
}
