// What the hooks cost a replay that nobody listens to: rondo_graph_replay as it is against the same
// code compiled with RONDO_NO_HOOKS, on the same graph, in one process, turn by turn.
//
//   build/bench/hook_cost [CALLS]
//
// The second form is graph/graph.c compiled once more into this program, under other names. The
// device takes a replay and does nothing, so that only the call itself is timed: blocks of calls
// with and without in changing order; what is reported is the median of the blocks' differences.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define rondo_graph_create rondo__bench_graph_create
#define rondo_graph_destroy rondo__bench_graph_destroy
#define rondo_graph_reset rondo__bench_graph_reset
#define rondo_graph_replay rondo__bench_graph_replay
#define rondo_graph_upload rondo__bench_graph_upload
#define rondo_graph_instantiate rondo__bench_graph_instantiate
#define rondo_graph_get_stats rondo__bench_graph_get_stats
#define rondo_graph_get_arena rondo__bench_graph_get_arena
#define rondo_graph_get_native rondo__bench_graph_get_native
#define rondo__graph_replay_here rondo__bench_graph_replay_here
#define RONDO_NO_HOOKS
#include "graph/graph.c"
#undef rondo_graph_create
#undef rondo_graph_destroy
#undef rondo_graph_reset
#undef rondo_graph_replay
#undef rondo_graph_upload
#undef rondo_graph_instantiate
#undef rondo_graph_get_stats
#undef rondo_graph_get_arena
#undef rondo_graph_get_native
#undef rondo__graph_replay_here

#include "base/clock.h"
#include "bench.h"
#include "goals.h"

// Their declarations were renamed above.
rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options,
                                rondo_graph **out_graph);
void rondo_graph_destroy(rondo_graph *graph);
rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream);

enum { BLOCK_COUNT = 201, CALLS_DEFAULT = 20000 };

static rondo_status take_replay(rondo__executable *executable, rondo_stream *stream) {
    (void)executable;
    (void)stream;
    return RONDO_STATUS_OK;
}

typedef rondo_status (*replay_function)(rondo_graph *graph, rondo_stream *stream);

static double time_block(replay_function function, rondo_graph *graph, rondo_stream *stream,
                         size_t call_count) {
    const uint64_t start = rondo__clock_now_ns();
    for (size_t i = 0; i < call_count; ++i) {
        must(function(graph, stream));
    }
    return (double)(rondo__clock_now_ns() - start) / (double)call_count;
}

static void do_nothing(void *arguments) {
    (void)arguments;
}

int main(int argc, char **argv) {
    const size_t call_count = argc > 1 ? strtoul(argv[1], NULL, 10) : CALLS_DEFAULT;
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    double with[BLOCK_COUNT];
    double without[BLOCK_COUNT];
    double differences[BLOCK_COUNT];
    if (call_count == 0) {
        fprintf(stderr, "usage: hook_cost [CALLS]   (at least 1)\n");
        return 2;
    }
    must(rondo_device_open("host", &device));
    must(rondo_stream_create(device, NULL, &stream));
    must(rondo_graph_create(device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    must(rondo_stream_call_host(stream, "nothing", do_nothing, NULL, 0));
    must(rondo_graph_capture_end(graph));
    must(rondo_graph_replay(graph, stream));  // now it is known that no tool listens
    must(rondo_stream_synchronize(stream));
    const rondo__backend *own = device->backend;
    rondo__backend quiet = *own;
    quiet.replay = take_replay;
    device->backend = &quiet;
    for (size_t i = 0; i < BLOCK_COUNT; ++i) {
        if (i % 2 == 0) {
            with[i] = time_block(rondo_graph_replay, graph, stream, call_count);
            without[i] = time_block(rondo__bench_graph_replay, graph, stream, call_count);
        } else {
            without[i] = time_block(rondo__bench_graph_replay, graph, stream, call_count);
            with[i] = time_block(rondo_graph_replay, graph, stream, call_count);
        }
        differences[i] = with[i] - without[i];
    }
    device->backend = own;
    print_head("a replay that nobody listens to");
    report("with hooks", get_median(with, BLOCK_COUNT), "ns", NO_GOAL, 0);
    report("compiled without", get_median(without, BLOCK_COUNT), "ns", NO_GOAL, 0);
    report("the hooks", get_median(differences, BLOCK_COUNT), "ns", AT_MOST, 2);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return g_missed_count > 0 ? 1 : 0;
}
