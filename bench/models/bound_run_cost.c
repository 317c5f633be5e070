// What a run costs beyond its replay, and what a bound run takes off: a step of four feeds and two
// fetches, each of one row of numbers, so that names, checks and look-ups show.
//
//   build/bench/bound_run_cost [DEVICE] [ROUNDS] [KIND]     (KIND: that one alone, for a profiler)
//
// Each round times BATCH calls of each kind, one kind after the other in changing order; what is
// reported is the median round and the least. "graph" is the same work as a graph of the program's
// own: a replay and the wait for it. "copies" adds the six copies that a run makes, by memcpy.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/executor_stream.h"
#include "rondo/models.h"

enum { BATCH = 200, ROUNDS = 200, FEEDS = 4, FETCHES = 2, WIDTH = 16 };

// Where the tensors of a bound run lie.
enum { PAGEABLE, PINNED, DEVICE, MEMORIES };

static const char *const feed_names[FEEDS] = {"a", "b", "c", "d"};
static const char *const fetch_names[FETCHES] = {"sum", "product"};

typedef struct scene {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_bound_run *bound[MEMORIES];
    rondo_tensor tensors[MEMORIES][FEEDS + FETCHES];  // feeds, then fetches
    rondo_binding feeds[FEEDS], fetches[FETCHES];
    float *memory[FEEDS + FETCHES];
    rondo_stream *stream;
    rondo_graph *graph;
} scene;

static rondo_program *make_program(void) {
    rondo_builder *b;
    rondo_program *program;
    must(rondo_builder_create(NULL, &b));
    for (int i = 0; i < FEEDS; ++i) {
        const rondo_port port = {.struct_size = sizeof port,
                                 .name = feed_names[i],
                                 .dtype = RONDO_DTYPE_F32,
                                 .rank = 1,
                                 .extent = {WIDTH}};
        must(rondo_builder_add_input(b, &port));
    }
    static const char *const inputs[FETCHES][2] = {{"a", "b"}, {"c", "d"}};
    static const char *const ops[FETCHES] = {"Add", "Mul"};
    for (int i = 0; i < FETCHES; ++i) {
        must(rondo_builder_add_node(b, ops[i], inputs[i], 2, &fetch_names[i], 1, NULL));
        must(rondo_builder_add_output(b, fetch_names[i], NULL));
    }
    must(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    return program;
}

typedef struct operands {
    const float *a, *b;
    float *c;
} operands;

static void add(void *arguments) {
    const operands *o = arguments;
    for (int i = 0; i < WIDTH; ++i) {
        o->c[i] = o->a[i] + o->b[i];
    }
}

static void multiply(void *arguments) {
    const operands *o = arguments;
    for (int i = 0; i < WIDTH; ++i) {
        o->c[i] = o->a[i] * o->b[i];
    }
}

static void take(scene *s, int memory, const rondo_shape *shape, rondo_tensor *out_tensor) {
    *out_tensor = (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = *shape};
    if (memory == PAGEABLE) {
        must(rondo_tensor_init(RONDO_DTYPE_F32, shape, out_tensor));
    } else if (memory == PINNED) {
        must(rondo_memory_allocate(s->device, RONDO_MEMORY_PINNED, WIDTH * sizeof(float),
                                   &out_tensor->data));
    } else {
        must(rondo_tensor_init_device(s->device, RONDO_DTYPE_F32, shape, out_tensor));
    }
}

static void bind(scene *s, int memory, const rondo_shape *shape) {
    must(rondo_bound_run_create(s->executor, &s->bound[memory]));
    for (int i = 0; i < FEEDS + FETCHES; ++i) {
        rondo_tensor *tensor = &s->tensors[memory][i];
        take(s, memory, shape, tensor);
        must(i < FEEDS
                 ? rondo_bound_run_set_feed(s->bound[memory], feed_names[i], tensor)
                 : rondo_bound_run_set_fetch(s->bound[memory], fetch_names[i - FEEDS], tensor));
    }
}

static void unbind(scene *s, int memory) {
    rondo_bound_run_destroy(s->bound[memory]);
    for (int i = 0; i < FEEDS + FETCHES; ++i) {
        if (memory == PINNED) {
            rondo_memory_free(s->device, s->tensors[memory][i].data);
        } else {
            rondo_tensor_deinit(&s->tensors[memory][i]);
        }
    }
}

static void open_scene(scene *s, const char *device_name) {
    const rondo_shape shape = {.rank = 1, .extent = {WIDTH}};
    must(rondo_device_open(device_name, &s->device));
    s->program = make_program();
    must(rondo_executor_create(s->program, s->device, NULL, &s->executor));
    for (int i = 0; i < FEEDS; ++i) {
        s->feeds[i].name = feed_names[i];
        must(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &s->feeds[i].tensor));
    }
    for (int i = 0; i < FETCHES; ++i) {
        s->fetches[i].name = fetch_names[i];
        must(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &s->fetches[i].tensor));
    }
    for (int memory = PAGEABLE; memory < MEMORIES; ++memory) {
        bind(s, memory, &shape);
    }
    for (int i = 0; i < FEEDS + FETCHES; ++i) {
        s->memory[i] = calloc(WIDTH, sizeof(float));
    }
    if (rondo_device_is_host(s->device)) {
        must(rondo_stream_create(s->device, NULL, &s->stream));
        must(rondo_graph_create(s->device, NULL, &s->graph));
        must(rondo_graph_capture_begin(s->graph, s->stream, RONDO_CAPTURE_THREAD_LOCAL));
        const operands sum = {s->memory[0], s->memory[1], s->memory[4]};
        const operands product = {s->memory[2], s->memory[3], s->memory[5]};
        must(rondo_stream_call_host(s->stream, "add", add, &sum, sizeof sum));
        must(rondo_stream_call_host(s->stream, "multiply", multiply, &product, sizeof product));
        must(rondo_graph_capture_end(s->graph));
    }
}

static void run_named(scene *s) {
    must(rondo_executor_run(s->executor, s->feeds, FEEDS, s->fetches, FETCHES));
}

static void run_bound(scene *s) {
    must(rondo_bound_run_run(s->bound[PAGEABLE]));
}

static void run_pinned(scene *s) {
    must(rondo_bound_run_run(s->bound[PINNED]));
}

static void run_near(scene *s) {
    must(rondo_bound_run_run(s->bound[DEVICE]));
}

static void run_again(scene *s) {
    must(rondo_executor_rerun(s->executor));
}

static void run_graph(scene *s) {
    must(rondo_graph_replay(s->graph, s->stream));
    must(rondo_stream_synchronize(s->stream));
}

static void run_copies(scene *s) {
    for (int i = 0; i < FEEDS; ++i) {
        memcpy(s->memory[i], s->feeds[i].tensor.data, WIDTH * sizeof(float));
    }
    run_graph(s);
    for (int i = 0; i < FETCHES; ++i) {
        memcpy(s->fetches[i].tensor.data, s->memory[FEEDS + i], WIDTH * sizeof(float));
    }
}

typedef struct kind {
    const char *name;
    void (*run)(scene *s);
} kind;

// What was fed from the host can be repeated, so a rerun does not come behind device tensors.
static const kind kinds[] = {{"rondo_executor_run", run_named},
                             {"rondo_bound_run_run", run_bound},
                             {"bound pinned memory", run_pinned},
                             {"rondo_executor_rerun", run_again},
                             {"bound device tensors", run_near},
                             {"graph and copies", run_copies},
                             {"graph", run_graph}};

enum { KINDS = sizeof kinds / sizeof *kinds };

int main(int argc, char **argv) {
    const char *device_name = argc > 1 ? argv[1] : "host";
    const size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : ROUNDS;
    const int only = argc > 3 ? atoi(argv[3]) : -1;
    scene s = {0};
    if (rounds == 0) {
        fprintf(stderr, "usage: bound_run_cost [DEVICE] [ROUNDS] [KIND]   (at least 1)\n");
        return 2;
    }
    open_scene(&s, device_name);
    double *times[KINDS];
    for (int k = 0; k < KINDS; ++k) {
        times[k] = make_values(rounds);
    }
    for (int i = 0; i < 10; ++i) {
        run_named(&s);
    }
    for (size_t round = 0; round < rounds; ++round) {
        for (int turn = 0; turn < KINDS; ++turn) {
            const int k = (int)((round + (size_t)turn) % KINDS);
            if ((s.graph == NULL && k >= KINDS - 2) || (only >= 0 && k != only)) {
                continue;
            }
            const uint64_t start_ns = rondo__clock_now_ns();
            for (int i = 0; i < BATCH; ++i) {
                kinds[k].run(&s);
            }
            times[k][round] = (double)(rondo__clock_now_ns() - start_ns) / BATCH;
        }
    }
    printf("%-24s %10s %10s   ns a call, %zu rounds of %d on %s\n", "", "median", "least", rounds,
           BATCH, device_name);
    for (int k = 0; k < KINDS && (s.graph != NULL || k < KINDS - 2); ++k) {
        const double median = get_median(times[k], rounds);
        printf("%-24s %10.0f %10.0f\n", kinds[k].name, median, times[k][0]);
        free(times[k]);
    }
    for (int i = 0; i < FEEDS; ++i) {
        rondo_tensor_deinit(&s.feeds[i].tensor);
    }
    for (int i = 0; i < FETCHES; ++i) {
        rondo_tensor_deinit(&s.fetches[i].tensor);
    }
    for (int i = 0; i < FEEDS + FETCHES; ++i) {
        free(s.memory[i]);
    }
    rondo_graph_destroy(s.graph);
    rondo_stream_destroy(s.stream);
    for (int memory = PAGEABLE; memory < MEMORIES; ++memory) {
        unbind(&s, memory);
    }
    rondo_executor_destroy(s.executor);
    rondo_program_destroy(s.program);
    rondo_device_release(s.device);
    return 0;
}
