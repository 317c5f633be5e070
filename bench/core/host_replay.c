// What the host backend costs beyond the work itself: eager, replayed, and in parallel branches.
//
//   build/bench/host_replay [ROUNDS]
//
// Every number is the median over the rounds; the smallest is beside it, since other programs on
// the machine only ever add. "over the work" means: less the time that the same calls take in a
// plain loop in this thread.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/rondo.h"

enum { NODE_COUNT = 1000, ROUND_COUNT = 200, ROUND_COUNT_MAX = 100000, BRANCH_NODES = 20 };

// ---- samples ----------------------------------------------------------------------------------

typedef struct samples {
    double *values;
    size_t count;
} samples;

static void print_line(const char *what, samples *s, double divisor, const char *unit) {
    double median = get_median(s->values, s->count) / divisor;
    printf("%-58s %9.1f %9.1f  %s\n", what, median, s->values[0] / divisor, unit);
}

// ---- work -------------------------------------------------------------------------------------

// As many argument bytes as a small kernel has.
typedef struct step_arguments {
    uint64_t *counter;
    uint64_t rest[7];
} step_arguments;

static void run_step(void *data) {
    ++*((step_arguments *)data)->counter;
}

// About 20 us of arithmetic that touches no memory.
static void run_crunch(void *data) {
    double value = *(double *)data;
    for (int i = 0; i < 8000; ++i) {
        value = value * 1.0000001 + 0.5;
    }
    *(volatile double *)data = value;
}

static rondo_launch make_launch(rondo_host_function function, const void *arguments,
                                size_t argument_bytes) {
    union {
        rondo_host_function function;
        void *address;
    } target = {.function = function};
    return (rondo_launch){.struct_size = sizeof(rondo_launch),
                          .name = "step",
                          .function = target.address,
                          .grid = {1, 1, 1},
                          .block = {1, 1, 1},
                          .arguments = arguments,
                          .argument_bytes = argument_bytes};
}

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    samples samples;
    uint64_t counter;
} bench;

static void issue_chain(bench *b) {
    step_arguments arguments = {.counter = &b->counter};
    rondo_launch launch = make_launch(run_step, &arguments, sizeof arguments);
    for (int i = 0; i < NODE_COUNT; ++i) {
        must(rondo_stream_launch(b->stream, &launch));
    }
}

// ---- measurements -----------------------------------------------------------------------------

static void measure_eager(bench *b, double plain_ns) {
    samples submit = {.values = make_values(b->samples.count), .count = b->samples.count};
    for (size_t i = 0; i < b->samples.count; ++i) {
        uint64_t start = rondo__clock_now_ns();
        issue_chain(b);
        uint64_t submitted = rondo__clock_now_ns();
        must(rondo_stream_synchronize(b->stream));
        submit.values[i] = (double)(submitted - start);
        b->samples.values[i] = (double)(rondo__clock_now_ns() - start) - plain_ns;
    }
    print_line("eager: submitting, per op", &submit, NODE_COUNT, "ns");
    print_line("eager: submit to done over the work, per op", &b->samples, NODE_COUNT, "ns");
    free(submit.values);
}

static double measure_plain(bench *b) {
    step_arguments arguments = {.counter = &b->counter};
    void (*volatile function)(void *) = run_step;
    for (size_t i = 0; i < b->samples.count; ++i) {
        uint64_t start = rondo__clock_now_ns();
        for (int j = 0; j < NODE_COUNT; ++j) {
            function(&arguments);
        }
        b->samples.values[i] = (double)(rondo__clock_now_ns() - start);
    }
    print_line("the work alone, per op", &b->samples, NODE_COUNT, "ns");
    return b->samples.values[0];
}

static void measure_replay(bench *b, double plain_ns) {
    rondo_graph *graph;
    must(rondo_graph_create(b->device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    issue_chain(b);
    must(rondo_graph_capture_end(graph));
    enum { BATCH = 20 };
    for (size_t i = 0; i < b->samples.count; ++i) {
        uint64_t start = rondo__clock_now_ns();
        for (int j = 0; j < BATCH; ++j) {
            must(rondo_graph_replay(graph, b->stream));
        }
        must(rondo_stream_synchronize(b->stream));
        b->samples.values[i] = (double)(rondo__clock_now_ns() - start) / BATCH - plain_ns;
    }
    print_line("replay of 1000 nodes in a row over the work, per node", &b->samples, NODE_COUNT,
               "ns");
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    must(rondo_graph_get_stats(graph, &stats));
    printf("%-58s %9.1f %9s  ns\n", "capture, per node", (double)stats.capture_ns / NODE_COUNT, "");
    printf("%-58s %9.1f %9s  ns\n", "instantiate, per node",
           (double)stats.instantiate_ns / NODE_COUNT, "");
    rondo_graph_destroy(graph);
}

static void measure_call(bench *b) {
    rondo_graph *graph;
    step_arguments arguments = {.counter = &b->counter};
    rondo_launch launch = make_launch(run_step, &arguments, sizeof arguments);
    must(rondo_graph_create(b->device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    must(rondo_stream_launch(b->stream, &launch));
    must(rondo_graph_capture_end(graph));
    enum { BATCH = 500 };
    for (size_t i = 0; i < b->samples.count; ++i) {
        uint64_t start = rondo__clock_now_ns();
        for (int j = 0; j < BATCH; ++j) {
            must(rondo_graph_replay(graph, b->stream));
        }
        b->samples.values[i] = (double)(rondo__clock_now_ns() - start) / BATCH;
        must(rondo_stream_synchronize(b->stream));
    }
    print_line("replay call of a graph of one node", &b->samples, 1, "ns");
    for (size_t i = 0; i < b->samples.count; ++i) {
        uint64_t start = rondo__clock_now_ns();
        must(rondo_graph_replay(graph, b->stream));
        must(rondo_stream_synchronize(b->stream));
        b->samples.values[i] = (double)(rondo__clock_now_ns() - start);
    }
    print_line("replay and wait, graph of one node", &b->samples, 1, "ns");
    rondo_graph_destroy(graph);
}

// Median time of a replay of `branch_count` branches, parallel or in a row.
static double time_branches(bench *b, int branch_count, bool is_parallel) {
    double values[8] = {0};
    rondo_stream *streams[8] = {0};
    rondo_event *joins[8] = {0};
    rondo_event *fork;
    rondo_graph *graph;
    must(rondo_event_create(b->device, 0, &fork));
    must(rondo_graph_create(b->device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    must(rondo_event_record(fork, b->stream));
    for (int i = 0; i < branch_count; ++i) {
        double *value = &values[i];
        rondo_stream *stream = b->stream;
        if (is_parallel) {
            must(rondo_stream_create(b->device, NULL, &streams[i]));
            must(rondo_event_create(b->device, 0, &joins[i]));
            must(rondo_stream_wait_event(streams[i], fork));
            stream = streams[i];
        }
        for (int j = 0; j < BRANCH_NODES; ++j) {
            rondo_launch launch = make_launch(run_crunch, value, sizeof *value);
            must(rondo_stream_launch(stream, &launch));
        }
        if (is_parallel) {
            must(rondo_event_record(joins[i], stream));
        }
    }
    for (int i = 0; is_parallel && i < branch_count; ++i) {
        must(rondo_stream_wait_event(b->stream, joins[i]));
    }
    must(rondo_graph_capture_end(graph));
    for (size_t i = 0; i < b->samples.count; ++i) {
        uint64_t start = rondo__clock_now_ns();
        must(rondo_graph_replay(graph, b->stream));
        must(rondo_stream_synchronize(b->stream));
        b->samples.values[i] = (double)(rondo__clock_now_ns() - start);
    }
    char text[80];
    snprintf(text, sizeof text, "%d branches of %d nodes of 20 us, %s", branch_count,
             (int)BRANCH_NODES, is_parallel ? "parallel" : "in a row");
    print_line(text, &b->samples, 1000, "us");
    rondo_graph_destroy(graph);
    for (int i = 0; i < branch_count; ++i) {
        rondo_stream_destroy(streams[i]);
        rondo_event_destroy(joins[i]);
    }
    rondo_event_destroy(fork);
    return b->samples.values[0];
}

static void measure_branches(bench *b, int branch_count) {
    double in_a_row = time_branches(b, branch_count, false);
    double parallel = time_branches(b, branch_count, true);
    printf("%-58s %9s %9.2f  times\n", "speed-up", "", in_a_row / parallel);
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUND_COUNT;
    if (rounds < 1 || rounds > ROUND_COUNT_MAX) {
        fprintf(stderr, "usage: host_replay [ROUNDS]   (1 to %d)\n", (int)ROUND_COUNT_MAX);
        return 2;
    }
    bench b = {.samples = {.count = (size_t)rounds}};
    b.samples.values = make_values(b.samples.count);
    must(rondo_device_open("host", &b.device));
    must(rondo_stream_create(b.device, NULL, &b.stream));
    rondo_device_info info = {.struct_size = sizeof info};
    must(rondo_device_get_info(b.device, &info));
    printf("%s, %d threads, %ld rounds\n\n%-58s %9s %9s\n", info.description,
           (int)info.compute_units, rounds, "", "median", "smallest");
    double plain_ns = measure_plain(&b);
    measure_eager(&b, plain_ns);
    measure_replay(&b, plain_ns);
    measure_call(&b);
    measure_branches(&b, 2);
    measure_branches(&b, 4);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    free(b.samples.values);
    return 0;
}
