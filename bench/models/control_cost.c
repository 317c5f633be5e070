// What decisions inside a graph cost: a turn of a while, an if, and a switch of 128 cases.
//
//   build/bench/control_cost [DEVICE] [REPEATS]         default: host 200
//
// Each graph begins with a fill of the predicate and is timed from the replay call to the end of
// the wait. The body is one kernel that counts the predicate down, on one thread (on the host a C
// function), so what is shown is the decision and the launch. The row of nodes is the same kernel
// as often without a loop. Median and smallest of the repeats; "per turn" is the slope from 10
// turns to 1000.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/rondo.h"

static const char g_text[] =
    "extern \"C\" __global__ void count_down(unsigned *x) { x[0] -= 1; }\n";

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    uint32_t *x;
    void *function;
    size_t repeat_count;
    double *times;
} bench;

static void count_down(void *arguments) {
    --**(uint32_t **)arguments;
}

static rondo_status launch(rondo_stream *stream, void *user_data) {
    bench *b = user_data;
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "count_down",
                           .function = b->function,
                           .grid = {1, 1, 1},
                           .block = {1, 1, 1},
                           .arguments = &b->x,
                           .argument_bytes = sizeof b->x};
    return rondo_stream_launch(stream, &launch);
}

typedef struct result {
    double median_us;
    double smallest_us;
} result;

static result time_graph(bench *b, rondo_graph *graph) {
    must(rondo_graph_capture_end(graph));
    for (size_t i = 0; i < b->repeat_count + 3; ++i) {
        uint64_t start = rondo__clock_now_ns();
        must(rondo_graph_replay(graph, b->stream));
        must(rondo_stream_synchronize(b->stream));
        b->times[i < 3 ? 0 : i - 3] = (double)(rondo__clock_now_ns() - start) * 1e-3;
    }
    rondo_graph_destroy(graph);
    const double median = get_median(b->times, b->repeat_count);
    return (result){.median_us = median, .smallest_us = b->times[0]};
}

static rondo_graph *begin(bench *b, uint32_t predicate) {
    rondo_graph *graph;
    must(rondo_graph_create(b->device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    must(rondo_stream_fill(b->stream, b->x, predicate, 4, 1));
    return graph;
}

static result time_while(bench *b, uint32_t turns) {
    rondo_graph *graph = begin(b, turns);
    must(rondo_control_while(b->stream, b->x, launch, b));
    return time_graph(b, graph);
}

static result time_row(bench *b, uint32_t nodes) {
    rondo_graph *graph = begin(b, nodes);
    for (uint32_t i = 0; i < nodes; ++i) {
        must(launch(b->stream, b));
    }
    return time_graph(b, graph);
}

// Ifs in a row; the kernel inside leaves the predicate what it is when there are few of them.
static result time_ifs(bench *b, uint32_t predicate, uint32_t count) {
    rondo_graph *graph = begin(b, predicate);
    for (uint32_t i = 0; i < count; ++i) {
        must(rondo_control_if(b->stream, b->x, launch, NULL, b));
    }
    return time_graph(b, graph);
}

// Switches in a row. The kernel of a case counts the index down, to that of the next one.
static result time_switches(bench *b, uint32_t index, uint32_t count) {
    enum { CASES = 128 };
    rondo_body_function bodies[CASES];
    rondo_graph *graph = begin(b, index);
    for (int i = 0; i < CASES; ++i) {
        bodies[i] = launch;
    }
    for (uint32_t i = 0; i < count; ++i) {
        must(rondo_control_switch(b->stream, b->x, bodies, CASES, b));
    }
    return time_graph(b, graph);
}

static void print(const char *what, uint32_t count, result r) {
    printf("%-22s %6u  %12.2f  %12.2f\n", what, (unsigned)count, r.median_us, r.smallest_us);
}

static void print_slope(const char *what, result few, result many, double steps) {
    printf("%-22s         %12.3f  %12.3f\n", what, (many.median_us - few.median_us) / steps,
           (many.smallest_us - few.smallest_us) / steps);
}

static void open_bench(bench *b, const char *name) {
    must(rondo_device_open(name, &b->device));
    must(rondo_stream_create(b->device, NULL, &b->stream));
    must(rondo_memory_allocate(b->device, RONDO_MEMORY_DEVICE, 4, (void **)&b->x));
    b->function = get_kernel(b->device, g_text, "count_down", count_down);
}

int main(int argc, char **argv) {
    bench b = {.repeat_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 200};
    if (b.repeat_count == 0) {
        fprintf(stderr, "usage: control_cost [DEVICE] [REPEATS]   (at least 1)\n");
        return 2;
    }
    b.times = make_values(b.repeat_count);
    open_bench(&b, argc > 1 ? argv[1] : "host");
    printf("%s, us                       median      smallest\n", rondo_device_get_name(b.device));
    static const uint32_t counts[] = {0, 1, 10, 100, 1000};
    result loops[5];
    result rows[5];
    for (int i = 0; i < 5; ++i) {
        loops[i] = time_while(&b, counts[i]);
        print("while, turns", counts[i], loops[i]);
    }
    for (int i = 0; i < 5; ++i) {
        rows[i] = time_row(&b, counts[i]);
        print("nodes in a row", counts[i], rows[i]);
    }
    result none = time_ifs(&b, 0, 1);
    result skipped = time_ifs(&b, 0, 101);
    result taken_once = time_ifs(&b, 1000, 1);
    result taken = time_ifs(&b, 1000, 101);
    print_slope("per turn of a while", loops[2], loops[4], 990);
    print_slope("per node in a row", rows[2], rows[4], 990);
    print_slope("per if not taken", none, skipped, 100);
    print_slope("per if taken", taken_once, taken, 100);
    none = time_switches(&b, 1000, 1);
    skipped = time_switches(&b, 1000, 101);
    taken_once = time_switches(&b, 127, 1);
    taken = time_switches(&b, 127, 101);
    print_slope("per switch not taken", none, skipped, 100);
    print_slope("per switch taken", taken_once, taken, 100);
    rondo_memory_free(b.device, b.x);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    free(b.times);
    return 0;
}
