// What an op costs a model that cannot be captured: launched between two graphs, or computed on the
// processor, beside two raw graph launches and the op itself; and what capturing costs with labels.
//
//   build/bench/bypass_cost [DEVICE] [REPEATS] [--check]         default: host 2000
//
// The model is 41 ops in a row, of which the middle one is the special one; each adds 1 to 1024
// floats with one kernel (on the host a C function). A step is timed from the call to the end of
// the wait: rondo_executor_rerun, and by hand replay, launch, replay, wait. The rows take turns, a
// hundred steps each. Median of the repeats, and the smallest. --check: exit status 1 where the op
// launched between graphs costs more than 10 us over doing it by hand, which is the goal on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/models.h"
#include "rondo/user_op.h"

enum { SIDE = 20, WIDTH = 1024, WARM_UP = 20, BLOCK = 100 };

#define GOAL_US 10.0

static const char g_text[] =
    "extern \"C\" __global__ void add_one(const float *x, float *y, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) { y[i] = x[i] + 1.0f; }\n"
    "}\n";

typedef struct call {
    const float *x;
    float *y;
    uint32_t n;
} call;

static void add_one(void *arguments) {
    const call *c = arguments;
    for (uint32_t i = 0; i < c->n; ++i) {
        c->y[i] = c->x[i] + 1.0f;
    }
}

static void *g_function;

static rondo_status put(rondo_stream *stream, const float *x, float *y) {
    const call arguments = {x, y, WIDTH};
    const rondo_launch launch = {.struct_size = sizeof launch,
                                 .name = "add_one",
                                 .function = g_function,
                                 .grid = {WIDTH / 256, 1, 1},
                                 .block = {256, 1, 1},
                                 .arguments = &arguments,
                                 .argument_bytes = offsetof(call, n) + sizeof arguments.n};
    return rondo_stream_launch(stream, &launch);
}

// ---- the ops ----------------------------------------------------------------------------------

static rondo_status infer(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                          rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    outputs[0] = inputs[0];
    return RONDO_STATUS_OK;
}

static rondo_status launch_op(rondo_op_node *node, const rondo_op_launch *launch) {
    (void)node;
    return put(launch->stream, launch->inputs[0].data, launch->outputs[0].data);
}

static rondo_status compute_op(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                               rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    add_one(&(call){inputs[0].data, outputs[0].data, WIDTH});
    return RONDO_STATUS_OK;
}

static void register_op(const char *name, rondo_op_capture capture, bool has_kernel) {
    rondo_op_definition d = {.struct_size = sizeof d,
                             .domain = "bench",
                             .name = name,
                             .input_min = 1,
                             .input_max = 1,
                             .output_min = 1,
                             .output_max = 1,
                             .infer = infer,
                             .compute = compute_op,
                             .capture = capture};
    if (has_kernel) {
        d.host.launch = launch_op;
        d.cuda.launch = launch_op;
    }
    must(rondo_op_register(&d));
}

// ---- the model --------------------------------------------------------------------------------

typedef struct model {
    const char *what;
    const char *middle;  // op
    rondo_program *program;
    rondo_executor *executor;
    double *times;
} model;

static void build(model *m, rondo_device *device) {
    rondo_builder *builder;
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "v0",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 1,
                          .extent = {WIDTH}};
    const rondo_builder_node_options options = {.struct_size = sizeof options, .domain = "bench"};
    must(rondo_builder_create(NULL, &builder));
    must(rondo_builder_add_input(builder, &x));
    char to[16] = "v0";
    for (int i = 0; i <= 2 * SIDE; ++i) {
        char from[16];
        memcpy(from, to, sizeof from);
        (void)snprintf(to, sizeof to, "v%d", i + 1);
        must(rondo_builder_add_node(builder, i == SIDE ? m->middle : "Step", (const char *[]){from},
                                    1, (const char *[]){to}, 1, &options));
    }
    must(rondo_builder_add_output(builder, to, NULL));
    must(rondo_builder_finish(builder, &m->program));
    rondo_builder_destroy(builder);
    must(rondo_executor_create(m->program, device, NULL, &m->executor));
    static float zeroes[WIDTH];
    const rondo_binding feed = {
        .name = "v0", .tensor = {.dtype = RONDO_DTYPE_F32, .shape = {1, {WIDTH}}, .data = zeroes}};
    for (int run = 0; run < WARM_UP; ++run) {
        rondo_binding fetch = {.name = to};
        must(rondo_executor_run(m->executor, &feed, 1, &fetch, 1));
        if (((const float *)fetch.tensor.data)[WIDTH - 1] != 2.0f * SIDE + 1.0f) {
            fprintf(stderr, "%s: a wrong result\n", m->what);
            exit(2);
        }
        rondo_tensor_deinit(&fetch.tensor);
    }
}

// ---- by hand ----------------------------------------------------------------------------------

typedef struct by_hand {
    rondo_stream *stream;
    rondo_graph *graphs[2];
    float *memory[2];
} by_hand;

static void prepare(by_hand *h, rondo_device *device) {
    must(rondo_stream_create(device, NULL, &h->stream));
    for (int i = 0; i < 2; ++i) {
        void *memory = NULL;
        must(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, WIDTH * sizeof(float), &memory));
        h->memory[i] = memory;
        must(rondo_stream_fill(h->stream, memory, 0, 4, WIDTH));
    }
    for (int g = 0; g < 2; ++g) {
        must(rondo_graph_create(device, NULL, &h->graphs[g]));
        must(rondo_graph_capture_begin(h->graphs[g], h->stream, RONDO_CAPTURE_THREAD_LOCAL));
        for (int i = 0; i < SIDE; ++i) {
            must(put(h->stream, h->memory[i % 2], h->memory[1 - i % 2]));
        }
        must(rondo_graph_capture_end(h->graphs[g]));
    }
}

static void step_by_hand(by_hand *h) {
    must(rondo_graph_replay(h->graphs[0], h->stream));
    must(put(h->stream, h->memory[0], h->memory[1]));
    must(rondo_graph_replay(h->graphs[1], h->stream));
    must(rondo_stream_synchronize(h->stream));
}

// Steps first .. end - 1, by hand or by the executor, after a few that are not timed.
static void time_steps(by_hand *h, rondo_executor *executor, double *times, size_t first,
                       size_t end) {
    for (size_t i = first; i < end + WARM_UP; ++i) {
        const uint64_t start = rondo__clock_now_ns();
        if (h != NULL) {
            step_by_hand(h);
        } else {
            must(rondo_executor_rerun(executor));
        }
        times[i < first + WARM_UP ? first : i - WARM_UP] =
            (double)(rondo__clock_now_ns() - start) * 1e-3;
    }
}

static void print(const char *what, double *times, size_t count, double *out_median) {
    *out_median = get_median(times, count);
    printf("%-44s %10.2f  %10.2f\n", what, *out_median, times[0]);
}

int main(int argc, char **argv) {
    const bool checks = argc > 1 && strcmp(argv[argc - 1], "--check") == 0;
    const int given = checks ? argc - 1 : argc;
    const size_t count = given > 2 ? strtoul(argv[2], NULL, 10) : 2000;
    if (count == 0) {
        fprintf(stderr, "usage: bypass_cost [DEVICE] [REPEATS] [--check]   (at least 1)\n");
        return 2;
    }
    rondo_device *device;
    must(rondo_device_open(given > 1 ? argv[1] : "host", &device));
    g_function = get_kernel(device, g_text, "add_one", add_one);
    register_op("Step", RONDO_OP_CAPTURE_YES, true);
    register_op("Wall", RONDO_OP_CAPTURE_NO, true);
    register_op("Plain", RONDO_OP_CAPTURE_YES, false);
    model models[] = {{.what = "executor: all in one graph", .middle = "Step"},
                      {.what = "executor: one op launched between graphs", .middle = "Wall"},
                      {.what = "executor: one op in plain C", .middle = "Plain"}};
    enum { MODELS = sizeof models / sizeof *models };
    by_hand h;
    prepare(&h, device);
    double *hand_times = make_values(count);
    for (int m = 0; m < MODELS; ++m) {
        models[m].times = make_values(count);
        build(&models[m], device);
    }
    for (size_t first = 0; first < count; first += BLOCK) {
        const size_t end = first + BLOCK < count ? first + BLOCK : count;
        time_steps(&h, NULL, hand_times, first, end);
        for (int m = 0; m < MODELS; ++m) {
            time_steps(NULL, models[m].executor, models[m].times, first, end);
        }
    }
    double medians[MODELS];
    double by_hand_median;
    printf("%-44s %10s  %10s\n", rondo_device_get_name(device), "median us", "smallest");
    print("by hand: replay, launch, replay, wait", hand_times, count, &by_hand_median);
    for (int m = 0; m < MODELS; ++m) {
        print(models[m].what, models[m].times, count, &medians[m]);
    }
    const double over = medians[1] - by_hand_median;
    printf("one op launched between graphs, over doing it by hand: %.2f us (goal on a GPU: %.0f)\n",
           over, GOAL_US);
    for (int m = 0; m < MODELS; ++m) {
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        must(rondo_executor_get_stats(models[m].executor, &stats));
        printf("%s: %d graphs, %d ops bypassed, captured in %.1f us a node\n", models[m].what,
               (int)stats.segment_count, (int)stats.bypassed_count,
               (double)stats.capture_ns * 1e-3 / (double)stats.node_count);
        rondo_executor_destroy(models[m].executor);
        rondo_program_destroy(models[m].program);
        free(models[m].times);
    }
    rondo_graph_stats by_hand_stats = {.struct_size = sizeof by_hand_stats};
    must(rondo_graph_get_stats(h.graphs[1], &by_hand_stats));
    printf("by hand, without labels: captured in %.1f us a node\n",
           (double)by_hand_stats.capture_ns * 1e-3 / (double)by_hand_stats.node_count);
    for (int i = 0; i < 2; ++i) {
        rondo_graph_destroy(h.graphs[i]);
        rondo_memory_free(device, h.memory[i]);
    }
    rondo_stream_destroy(h.stream);
    rondo_device_release(device);
    free(hand_times);
    return checks && !(over <= GOAL_US) ? 1 : 0;
}
