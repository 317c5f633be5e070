// What generators cost: a replay with generators against one without, an eager op against a plain
// kernel, and how fast memory fills with random numbers against plain filling.
//
//   build/bench/random_cost [DEVICE]        default: cuda:0; "host" has no bare launch to compare
//
// A turn times one call of each kind, in changing order; the stream is drained every 16 turns. What
// is reported are medians over all turns of CPU time, and medians over 15 fills of device time.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/rondo.h"

typedef int (*graph_launch_function)(void *executable, void *stream);

enum { DRAIN_EVERY = 16, TURNS = 8000, GENERATORS_MAX = 16, FILLS = 15 };

// A kernel that writes 256 words, as the draw does.
static const char plain_text[] =
    "extern \"C\" __global__ void plain(unsigned *x, unsigned long long n) {\n"
    "    if (threadIdx.x < n) { x[threadIdx.x] = threadIdx.x; }\n"
    "}\n";

typedef struct plain_arguments {
    uint32_t *x;
    uint64_t count;
} plain_arguments;

static void run_plain(void *data) {
    const plain_arguments *arguments = data;
    for (uint32_t i = 0; i < arguments->count; ++i) {
        arguments->x[i] = i;
    }
}

// A kernel of the program's own that draws: words, as rondo_random_words makes them.
static const char own_text[] =
    "extern \"C\" __global__ void own(unsigned *x, const unsigned long long *state,\n"
    "                               unsigned long long relative, unsigned long long count) {\n"
    "    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;\n"
    "    unsigned words[4];\n"
    "    if (i < count) {\n"
    "        rondo_philox(state[0], state[1] + relative + i, words);\n"
    "        for (int k = 0; k < 4; ++k) { x[4 * i + k] = words[k]; }\n"
    "    }\n"
    "}\n";

typedef struct own_arguments {
    uint32_t *x;
    rondo_random_range range;
} own_arguments;

static void run_own(void *data) {
    const own_arguments *arguments = data;
    const rondo_random_range *range = &arguments->range;
    for (uint64_t i = 0; i < range->count; ++i) {
        rondo_random_philox(range->state[0], 0, range->state[1] + range->relative + i,
                            &arguments->x[4 * i]);
    }
}

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    rondo_generator *generators[GENERATORS_MAX];
    uint32_t *memory;
    graph_launch_function launch;  // NULL on the host
    plain_arguments plain_arguments;
    rondo_launch plain;
    void *own;  // kernel
} bench;

static void prepare_plain(bench *b) {
    b->plain_arguments = (plain_arguments){b->memory, 256};
    b->plain = (rondo_launch){.struct_size = sizeof(rondo_launch),
                              .name = "plain",
                              .function = get_kernel(b->device, plain_text, "plain", run_plain),
                              .grid = {1, 1, 1},
                              .block = {256, 1, 1},
                              .arguments = &b->plain_arguments,
                              .argument_bytes = sizeof b->plain_arguments};
}

static void prepare_own(bench *b) {
    const char *philox = rondo_random_get_device_text();
    const size_t bytes = strlen(philox) + sizeof own_text;
    char *text = malloc(bytes);
    if (text == NULL) {
        exit(2);
    }
    (void)snprintf(text, bytes, "%s%s", philox, own_text);
    b->own = get_kernel(b->device, text, "own", run_own);
    free(text);
}

static rondo_status put_own(const bench *b, size_t bytes) {
    own_arguments arguments = {.x = b->memory};
    const rondo_launch launch = {.struct_size = sizeof launch,
                                 .name = "own",
                                 .function = b->own,
                                 .grid = {(uint32_t)(bytes / 16 / 256), 1, 1},
                                 .block = {256, 1, 1},
                                 .arguments = &arguments,
                                 .argument_bytes = sizeof arguments};
    must(rondo_generator_reserve(b->generators[0], b->stream, bytes / 16, &arguments.range));
    return rondo_stream_launch(b->stream, &launch);
}

// ---- replays ----------------------------------------------------------------------------------

// As many nodes whether generators draw or not: each draws once and is moved on once.
static rondo_graph *record(const bench *b, int generator_count, int node_count) {
    rondo_graph *graph;
    must(rondo_graph_create(b->device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < node_count; ++i) {
        if (i < generator_count) {
            must(rondo_random_words(b->generators[i], b->stream, b->memory, 256));
        } else if (i >= 2 * generator_count) {
            must(rondo_stream_launch(b->stream, &b->plain));
        }
    }
    must(rondo_graph_capture_end(graph));
    must(rondo_graph_upload(graph, b->stream));
    must(rondo_graph_replay(graph, b->stream));
    must(rondo_stream_synchronize(b->stream));
    return graph;
}

static double time_replay(const bench *b, rondo_graph *graph) {
    const uint64_t start = rondo__clock_now_ns();
    const rondo_status status = rondo_graph_replay(graph, b->stream);
    const uint64_t end = rondo__clock_now_ns();
    must(status);
    return (double)(end - start);
}

static double time_bare(const bench *b, rondo_graph *graph) {
    void *executable = NULL;
    if (b->launch == NULL) {
        return 0;
    }
    must(rondo_graph_get_native(graph, NULL, &executable));
    const uint64_t start = rondo__clock_now_ns();
    const int code = b->launch(executable, rondo_stream_get_native(b->stream));
    const uint64_t end = rondo__clock_now_ns();
    if (code != 0) {
        fprintf(stderr, "cuGraphLaunch: %d\n", code);
        exit(2);
    }
    return (double)(end - start);
}

static void measure_replays(const bench *b) {
    static double times[4][TURNS];
    printf("%-34s %10s %10s %12s\n", "replay, ns of CPU", "ours", "bare", "ours - bare");
    const int counts[] = {1, 4, GENERATORS_MAX};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k) {
        const int nodes = 2 * counts[k];
        rondo_graph *none = record(b, 0, nodes);
        rondo_graph *some = record(b, counts[k], nodes);
        for (int i = 0; i < TURNS; ++i) {
            for (int j = 0; j < 4; ++j) {
                const int kind = (i + j) % 4;
                rondo_graph *graph = kind < 2 ? none : some;
                times[kind][i] = kind % 2 == 0 ? time_replay(b, graph) : time_bare(b, graph);
            }
            if (i % (DRAIN_EVERY / 4) == 0) {
                must(rondo_stream_synchronize(b->stream));
            }
        }
        double medians[4];
        for (int kind = 0; kind < 4; ++kind) {
            medians[kind] = get_median(times[kind], TURNS);
        }
        printf("%2d nodes, no generator             %10.0f %10.0f %12.0f\n", nodes, medians[0],
               medians[1], medians[0] - medians[1]);
        printf("%2d nodes, %2d generators            %10.0f %10.0f %12.0f\n", nodes, counts[k],
               medians[2], medians[3], medians[2] - medians[3]);
        printf("   generators add                                         %12.0f\n",
               (medians[2] - medians[3]) - (medians[0] - medians[1]));
        rondo_graph_destroy(none);
        rondo_graph_destroy(some);
    }
}

static void measure_eager(const bench *b) {
    static double times[TURNS];
    double medians[2];
    for (int kind = 0; kind < 2; ++kind) {
        for (int i = 0; i < TURNS; ++i) {
            const uint64_t start = rondo__clock_now_ns();
            must(kind == 0 ? rondo_random_words(b->generators[0], b->stream, b->memory, 256)
                           : rondo_stream_launch(b->stream, &b->plain));
            times[i] = (double)(rondo__clock_now_ns() - start);
            if (i % DRAIN_EVERY == 0) {
                must(rondo_stream_synchronize(b->stream));
            }
        }
        medians[kind] = get_median(times, TURNS);
    }
    printf("eager, ns of CPU: 256 random words %.0f, a plain kernel %.0f\n", medians[0],
           medians[1]);
}

// ---- filling ----------------------------------------------------------------------------------

static rondo_status fill(const bench *b, int kind, size_t bytes) {
    rondo_generator *g = b->generators[0];
    switch (kind) {
        case 0:
            return rondo_stream_fill(b->stream, b->memory, 0, 4, bytes / 4);
        case 1:
            return rondo_random_words(g, b->stream, b->memory, bytes / 4);
        case 2:
            return rondo_random_uniform(g, b->stream, RONDO_DTYPE_F32, b->memory, bytes / 4, 0, 1);
        case 3:
            return rondo_random_uniform(g, b->stream, RONDO_DTYPE_F16, b->memory, bytes / 2, 0, 1);
        case 4:
            return rondo_random_uniform(g, b->stream, RONDO_DTYPE_F64, b->memory, bytes / 8, 0, 1);
        case 5:
            return rondo_random_normal(g, b->stream, RONDO_DTYPE_F32, b->memory, bytes / 4, 0, 1);
        case 6:
            return rondo_random_normal(g, b->stream, RONDO_DTYPE_F16, b->memory, bytes / 2, 0, 1);
        case 7:
            return rondo_random_normal(g, b->stream, RONDO_DTYPE_F64, b->memory, bytes / 8, 0, 1);
        case 8:
            return put_own(b, bytes);
        default:
            return rondo_random_dropout(g, b->stream, RONDO_DTYPE_F32, b->memory, b->memory, NULL,
                                        bytes / 4, 0.5);
    }
}

static void measure_fills(const bench *b, size_t bytes) {
    static const char *const names[] = {
        "plain fill", "words",      "uniform f32", "uniform f16",       "uniform f64",
        "normal f32", "normal f16", "normal f64",  "words, own kernel", "dropout f32 in place"};
    rondo_event *start;
    rondo_event *end;
    must(rondo_event_create(b->device, RONDO_EVENT_TIMED, &start));
    must(rondo_event_create(b->device, RONDO_EVENT_TIMED, &end));
    printf("\n%-24s %10s %10s %14s\n", "filling", "ms", "GB/s", "1e9 numbers/s");
    const double widths[] = {4, 4, 4, 2, 8, 4, 2, 8, 4, 4};
    for (int kind = 0; kind < (int)(sizeof names / sizeof *names); ++kind) {
        double times[FILLS];
        for (int i = -2; i < FILLS; ++i) {
            int64_t ns;
            must(rondo_event_record(start, b->stream));
            must(fill(b, kind, bytes));
            must(rondo_event_record(end, b->stream));
            must(rondo_stream_synchronize(b->stream));
            must(rondo_event_get_elapsed_ns(start, end, &ns));
            if (i >= 0) {
                times[i] = (double)ns * 1e-6;
            }
        }
        const double ms = get_median(times, FILLS);
        const double traffic = kind == 9 ? 2.0 : 1.0;
        printf("%-24s %10.3f %10.1f %14.2f\n", names[kind], ms, traffic * (double)bytes / ms / 1e6,
               (double)bytes / widths[kind] / ms / 1e6);
    }
    rondo_event_destroy(start);
    rondo_event_destroy(end);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "cuda:0";
    bench b = {0};
    rondo_device_info info = {.struct_size = sizeof info};
    void *memory;
    must(rondo_device_open(name, &b.device));
    must(rondo_device_get_info(b.device, &info));
    must(rondo_stream_create(b.device, NULL, &b.stream));
    const bool is_host = rondo_device_is_host(b.device);
    const size_t bytes = (size_t)(is_host ? 64 : 1024) << 20;
    if (!is_host) {
        find_in_driver("cuGraphLaunch", &b.launch);
    }
    must(rondo_memory_allocate(b.device, RONDO_MEMORY_DEVICE, bytes, &memory));
    b.memory = memory;
    prepare_plain(&b);
    prepare_own(&b);
    for (int i = 0; i < GENERATORS_MAX; ++i) {
        must(rondo_generator_create(b.device, (uint64_t)i, &b.generators[i]));
    }
    printf("%s, CUDA driver %d.%d\n", info.description, info.driver_version / 1000,
           info.driver_version % 1000 / 10);
    measure_replays(&b);
    measure_eager(&b);
    measure_fills(&b, bytes);
    for (int i = 0; i < GENERATORS_MAX; ++i) {
        rondo_generator_release(b.generators[i]);
    }
    rondo_memory_free(b.device, memory);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    return 0;
}
