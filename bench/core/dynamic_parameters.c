// What a step with changing parameters costs, in every way there is: 40 000 steps of eight kernels
// of 32 floats, four of them with another factor in each step.
//
//   twice { out = 1.004 * in; in = 1.004 * out; out = f * in; in = f * out }, f = 1 + 0.001 * step
//
//   build/bench/dynamic_parameters [DEVICE [STEPS [TURNS [SAMPLES]]]]    host, 40000, 2000, 1000
//
// The ways take turns, 5 rounds of all of them, and each is drained every 64 steps; what is printed
// are medians over the rounds of wall time for all steps, and of CPU time a step. On CUDA there are
// two more: "raw" calls the driver by itself, cuGraphExecKernelNodeSetParams for each kernel with a
// changing factor, then cuGraphLaunch; and all ways come again with kernels that overlap
// (RONDO_LAUNCH_OVERLAP). Then 1000 kernels, TURNS steps: four of them with a changing factor, and
// all. Results must have the same bits in every way.
//
// Wall time of a step holds waits for a stream whose queue is full. So for 1000 kernels, four of
// them changing, SAMPLES patches and launches are timed apart, each on a stream that was drained
// before: what the calling thread spends. At last what unchanged arguments cost beyond a replay.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/driver/cuda_device.h"
#include "base/clock.h"
#include "bench.h"
#include "rondo/rondo.h"

enum {
    WIDTH = 32,
    NODES_MAX = 1000,
    ROUNDS = 5,
    DRAIN_EVERY = 64,
    TURNS = 2000,
    PLAIN = 20000,
    SAMPLES = 1000,
    WARM_UP = 50,
};

// ---- the step ---------------------------------------------------------------------------------

static const char scale_text[] =
    "extern \"C\" __global__ void scale(float *out, const float *in, float factor, int count) {\n"
    "    if (threadIdx.x < count) { out[threadIdx.x] = factor * in[threadIdx.x]; }\n"
    "}\n"
    "extern \"C\" __global__ void scale_overlap(float *out, const float *in, float factor,\n"
    "                                         int count) {\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "    asm volatile(\"griddepcontrol.launch_dependents;\");\n"
    "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
    "#endif\n"
    "    if (threadIdx.x < count) { out[threadIdx.x] = factor * in[threadIdx.x]; }\n"
    "}\n";

typedef struct scale_arguments {
    float *out;
    const float *in;
    float factor;
    int32_t count;
} scale_arguments;

static void run_scale(void *data) {
    const scale_arguments *a = data;
    for (int32_t i = 0; i < a->count; ++i) {
        a->out[i] = a->factor * a->in[i];
    }
}

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    float *buffers[2];
    void *function;
    bool overlaps;
    size_t node_count;
    rondo_graph *graph;  // of the way that is measured
    rondo_stepper *stepper;
    float factor;                 // of the step that is recorded
    rondo_node nodes[NODES_MAX];  // with a changing factor
    bool are_all_dynamic;
    rondo_learned *learned;
    // Of the raw way.
    const rondo__cuda_api *api;  // NULL: not CUDA
    rondo__cu_graph_exec exec;
    rondo__cu_graph_node raw_nodes[NODES_MAX];
    rondo__cu_kernel_node raw_params[NODES_MAX];
} bench;

// Kernels 2, 3, 6 and 7 of each eight; of more than eight only those of the first.
static bool is_dynamic(const bench *b, size_t index) {
    return b->are_all_dynamic || (index < 8 && index % 4 >= 2);
}

static scale_arguments get_arguments(const bench *b, size_t index, float factor) {
    return (scale_arguments){.out = b->buffers[1 - index % 2],
                             .in = b->buffers[index % 2],
                             .factor = is_dynamic(b, index) ? factor : 1.004f,
                             .count = WIDTH};
}

static rondo_launch get_launch(const bench *b, const scale_arguments *arguments) {
    return (rondo_launch){.struct_size = sizeof(rondo_launch),
                          .name = "scale",
                          .function = b->function,
                          .grid = {1, 1, 1},
                          .block = {256, 1, 1},
                          .arguments = arguments,
                          .argument_bytes = sizeof *arguments,
                          .flags = b->overlaps ? RONDO_LAUNCH_OVERLAP : 0};
}

// What a program has: its step, in one function.
static rondo_status issue(rondo_stream *stream, const rondo_value *values, void *user_data) {
    const bench *b = user_data;
    for (size_t i = 0; i < b->node_count; ++i) {
        const scale_arguments arguments = get_arguments(b, i, values[0].single);
        const rondo_launch launch = get_launch(b, &arguments);
        const rondo_status status = rondo_stream_launch(stream, &launch);
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the ways ---------------------------------------------------------------------------------

static void begin_eager(bench *b) {
    (void)b;
}
static void step_eager(bench *b, float factor) {
    const rondo_value value = {.single = factor};
    must(issue(b->stream, &value, b));
}

static void begin_update(bench *b) {
    must(rondo_graph_create(b->device, NULL, &b->graph));
}
static rondo_status issue_again(rondo_stream *stream, void *user_data) {
    const rondo_value value = {.single = ((bench *)user_data)->factor};
    return issue(stream, &value, user_data);
}
static void step_update(bench *b, float factor) {
    b->factor = factor;
    must(rondo_graph_recapture(b->graph, b->stream, NULL, issue_again, b, NULL));
    must(rondo_graph_replay(b->graph, b->stream));
}

static void begin_patch(bench *b) {
    size_t count = 0;
    must(rondo_graph_create(b->device, NULL, &b->graph));
    must(rondo_graph_capture_begin(b->graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (size_t i = 0; i < b->node_count; ++i) {
        const scale_arguments arguments = get_arguments(b, i, 1.0f);
        const rondo_launch launch = get_launch(b, &arguments);
        must(rondo_stream_launch(b->stream, &launch));
        if (is_dynamic(b, i)) {
            must(rondo_stream_get_last_node(b->stream, &b->nodes[count++]));
        }
    }
    must(rondo_graph_capture_end(b->graph));
}
// The kernels with a changing factor that come first; of more than eight, only those of the first.
static size_t get_end_of_dynamic(const bench *b) {
    return b->are_all_dynamic ? b->node_count : 8;
}
static void patch_nodes(bench *b, float factor) {
    static scale_arguments arguments[NODES_MAX];
    static rondo_launch launches[NODES_MAX];
    static rondo_work works[NODES_MAX];
    static rondo_patch patches[NODES_MAX];
    const size_t end = get_end_of_dynamic(b);
    size_t count = 0;
    for (size_t i = 0; i < end; ++i) {
        if (is_dynamic(b, i)) {
            arguments[count] = get_arguments(b, i, factor);
            launches[count] = get_launch(b, &arguments[count]);
            works[count] = (rondo_work){.struct_size = sizeof works[count],
                                        .kind = RONDO_NODE_KERNEL,
                                        .launch = &launches[count]};
            patches[count] = (rondo_patch){.node = b->nodes[count], .work = &works[count]};
            ++count;
        }
    }
    must(rondo_graph_patch(b->graph, patches, count));
}
static void launch_graph(bench *b, float factor) {
    (void)factor;
    must(rondo_graph_replay(b->graph, b->stream));
}
static void step_patch(bench *b, float factor) {
    patch_nodes(b, factor);
    launch_graph(b, factor);
}

static void begin_stepper(bench *b) {
    const rondo_stepper_options options = {.struct_size = sizeof options, .records_at_once = true};
    must(rondo_stepper_create(b->device, &options, &b->stepper));
}
// What the other way of a stepper that measures itself takes.
static void begin_eager_stepper(bench *b) {
    const rondo_stepper_options options = {.struct_size = sizeof options,
                                           .eager_steps = UINT32_MAX};
    must(rondo_stepper_create(b->device, &options, &b->stepper));
}
static void begin_measured_stepper(bench *b) {
    const rondo_stepper_options options = {.struct_size = sizeof options, .measures = true};
    must(rondo_stepper_create(b->device, &options, &b->stepper));
}
// Launches with a changing factor are put; the others are left out once they are recorded.
static void step_stepper(bench *b, float factor) {
    must(rondo_stepper_begin(b->stepper, b->stream));
    const bool patches = rondo_stepper_get_mode(b->stepper) == RONDO_STEPPER_PATCHES;
    const size_t end = patches ? get_end_of_dynamic(b) : b->node_count;
    for (size_t i = 0; i < end; ++i) {
        const scale_arguments arguments = get_arguments(b, i, factor);
        const rondo_launch launch = get_launch(b, &arguments);
        const rondo_work work = {
            .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &launch};
        if (is_dynamic(b, i)) {
            must(rondo_stepper_put(b->stepper, &work));
        } else if (!patches) {
            must(rondo_stream_launch(b->stream, &launch));
        }
    }
    must(rondo_stepper_end(b->stepper));
}

static void must_succeed(rondo__cu_result code, const char *call) {
    if (code != RONDO__CU_SUCCESS) {
        fprintf(stderr, "%s: %d\n", call, (int)code);
        exit(1);
    }
}

// The same graph, but from here on the driver's own calls.
static void begin_raw(bench *b) {
    rondo__cu_graph_node nodes[NODES_MAX];
    void *native = NULL;
    void *exec = NULL;
    size_t count = NODES_MAX;
    begin_patch(b);
    must(rondo_graph_get_native(b->graph, &native, &exec));
    b->exec = exec;
    must_succeed(b->api->cuCtxPushCurrent(rondo__cuda_device_of(b->device)->context), "push");
    must_succeed(b->api->cuGraphGetNodes(native, nodes, &count), "cuGraphGetNodes");
    const size_t end = get_end_of_dynamic(b);
    for (size_t i = 0, k = 0; i < end; ++i) {
        size_t index = 0;
        if (is_dynamic(b, i)) {
            must(rondo_graph_get_node_index(b->graph, b->nodes[k], &index));
            b->raw_nodes[k] = nodes[index];
            must_succeed(b->api->cuGraphKernelNodeGetParams(nodes[index], &b->raw_params[k]),
                         "cuGraphKernelNodeGetParams");
            ++k;
        }
    }
}
static void patch_raw(bench *b, float factor) {
    const size_t end = get_end_of_dynamic(b);
    for (size_t i = 0, k = 0; i < end; ++i) {
        if (is_dynamic(b, i)) {
            scale_arguments arguments = get_arguments(b, i, factor);
            void *parameters[] = {&arguments.out, &arguments.in, &arguments.factor,
                                  &arguments.count};
            b->raw_params[k].parameters = parameters;
            b->raw_params[k].extra = NULL;
            must_succeed(
                b->api->cuGraphExecKernelNodeSetParams(b->exec, b->raw_nodes[k], &b->raw_params[k]),
                "cuGraphExecKernelNodeSetParams");
            ++k;
        }
    }
}
static void launch_raw(bench *b, float factor) {
    (void)factor;
    must_succeed(b->api->cuGraphLaunch(b->exec, rondo_stream_get_native(b->stream)),
                 "cuGraphLaunch");
}
static void step_raw(bench *b, float factor) {
    patch_raw(b, factor);
    launch_raw(b, factor);
}

static void begin_any_learned(bench *b, bool measures) {
    const rondo_argument argument = {
        .struct_size = sizeof argument, .name = "factor", .kind = RONDO_ARGUMENT_FLOAT};
    const rondo_learned_options options = {
        .struct_size = sizeof options, .fallback = RONDO_LEARN_REFUSE, .measures = measures};
    const rondo_value value = {.single = 1.0f};
    must(rondo_learned_create(b->device, &options, &argument, 1, issue, b, &b->learned));
    must(rondo_learned_learn(b->learned, b->stream, &value, 1));
}
static void begin_learned(bench *b) {
    begin_any_learned(b, false);
}
static void begin_measured_learned(bench *b) {
    begin_any_learned(b, true);
}
static void step_learned(bench *b, float factor) {
    const rondo_value value = {.single = factor};
    must(rondo_learned_run(b->learned, b->stream, &value, 1));
}

typedef struct way {
    const char *name;
    void (*begin)(bench *b);
    void (*step)(bench *b, float factor);
    // The two halves of a step; NULL: it is one call, which only launches where nothing changed.
    void (*patch)(bench *b, float factor);
    void (*launch)(bench *b, float factor);
} way;

static const way ways[] = {
    {"eager", begin_eager, step_eager, NULL, NULL},
    {"record again and update", begin_update, step_update, NULL, NULL},
    {"patch by handle", begin_patch, step_patch, patch_nodes, launch_graph},
    {"stepper", begin_stepper, step_stepper, NULL, NULL},
    {"stepper, eager", begin_eager_stepper, step_stepper, NULL, NULL},
    {"learned", begin_learned, step_learned, NULL, NULL},
    {"stepper, measured", begin_measured_stepper, step_stepper, NULL, NULL},
    {"learned, measured", begin_measured_learned, step_learned, NULL, NULL},
    {"raw", begin_raw, step_raw, patch_raw, launch_raw},
};
enum { FIRST_SPLIT_WAY = 2, WAY_COUNT = sizeof ways / sizeof *ways };

static size_t count_ways(const bench *b) {
    return b->api != NULL ? WAY_COUNT : WAY_COUNT - 1;
}

static void end_way(bench *b) {
    rondo__cu_context context = NULL;
    must(rondo_stream_synchronize(b->stream));
    if (b->exec != NULL) {
        must_succeed(b->api->cuCtxPopCurrent(&context), "pop");
        b->exec = NULL;
    }
    rondo_learned_destroy(b->learned);
    rondo_stepper_destroy(b->stepper);
    rondo_graph_destroy(b->graph);
    b->learned = NULL;
    b->stepper = NULL;
    b->graph = NULL;
}

// ---- measuring --------------------------------------------------------------------------------

typedef struct cost {
    double wall_ms;  // of all steps
    double cpu_us;   // of the calls of one
    uint32_t result;
    char choice[256];  // of a way that is measured by the library, and why
} cost;

static bool take_choice(void *user_data, const char *text, size_t bytes) {
    cost *c = user_data;
    const char *line = strstr(text, "graphs measured: ");
    if (line != NULL && line < text + bytes) {
        snprintf(c->choice, sizeof c->choice, "%.*s", (int)strcspn(line, "\n"), line);
    }
    return true;
}

static void read_choice(const bench *b, cost *c) {
    if (b->stepper != NULL) {
        must(rondo_stepper_describe(b->stepper, RONDO_TEXT_PLAIN, take_choice, c));
    }
    if (b->learned != NULL) {
        must(rondo_learned_describe(b->learned, RONDO_TEXT_PLAIN, take_choice, c));
    }
}

static cost measure_way(bench *b, const way *w, uint64_t step_count) {
    uint64_t calls = 0;
    cost c = {0};
    const float ones[WIDTH] = {1.0f, 1.0f, 1.0f, 1.0f};
    float result[WIDTH];
    w->begin(b);
    must(rondo_stream_copy(b->stream, b->buffers[0], ones, sizeof ones, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_stream_synchronize(b->stream));
    const uint64_t begin = rondo__clock_now_ns();
    for (uint64_t i = 0; i < step_count; ++i) {
        const uint64_t start = rondo__clock_now_ns();
        w->step(b, 1.0f + 0.001f * (float)(i % 7));
        calls += rondo__clock_now_ns() - start;
        if (i % DRAIN_EVERY == DRAIN_EVERY - 1) {
            must(rondo_stream_synchronize(b->stream));
        }
    }
    must(rondo_stream_synchronize(b->stream));
    c.wall_ms = (double)(rondo__clock_now_ns() - begin) / 1e6;
    c.cpu_us = (double)calls / 1e3 / (double)step_count;
    must(rondo_stream_copy(b->stream, result, b->buffers[0], sizeof result,
                           RONDO_COPY_DEVICE_TO_HOST));
    must(rondo_stream_synchronize(b->stream));
    memcpy(&c.result, result, sizeof c.result);
    read_choice(b, &c);
    end_way(b);
    return c;
}

static void measure_all(bench *b, uint64_t step_count) {
    static uint32_t first_results[NODES_MAX + 1][2];  // of eager launches that do not overlap
    double walls[WAY_COUNT][ROUNDS];
    double cpus[WAY_COUNT][ROUNDS];
    uint32_t results[WAY_COUNT];
    static char choices[WAY_COUNT][sizeof((cost *)0)->choice];
    const size_t way_count = count_ways(b);
    for (size_t round = 0; round < ROUNDS; ++round) {
        for (size_t i = 0; i < way_count; ++i) {
            const size_t k = (i + round) % way_count;
            const cost c = measure_way(b, &ways[k], step_count);
            walls[k][round] = c.wall_ms;
            cpus[k][round] = c.cpu_us;
            results[k] = c.result;
            memcpy(choices[k], c.choice, sizeof choices[k]);
        }
    }
    uint32_t *expected = &first_results[b->node_count][b->are_all_dynamic];
    *expected = b->overlaps ? *expected : results[0];
    printf("%zu kernels, %s with a changing factor, %llu steps%s\n", b->node_count,
           b->are_all_dynamic ? "all" : "4", (unsigned long long)step_count,
           b->overlaps ? ", kernels overlap" : "");
    printf("%-26s %12s %14s %10s\n", "way", "wall, ms", "CPU us a step", "of eager");
    double eager = 0;
    for (size_t k = 0; k < way_count; ++k) {
        const double wall = get_median(walls[k], ROUNDS);
        eager = k == 0 ? wall : eager;
        printf("%-26s %12.1f %14.2f %9.2fx%s\n", ways[k].name, wall, get_median(cpus[k], ROUNDS),
               wall / eager, results[k] == *expected ? "" : "  WRONG RESULT");
        printf("%s%s", choices[k], choices[k][0] != '\0' ? "\n" : "");
    }
}

// ---- patch and launch apart -------------------------------------------------------------------

typedef struct split {
    double patch_us[SAMPLES];
    double launch_us[SAMPLES];
    double both_us[SAMPLES];
} split;

static double time_call(bench *b, void (*call)(bench *b, float factor), float factor) {
    const uint64_t start = rondo__clock_now_ns();
    call(b, factor);
    return (double)(rondo__clock_now_ns() - start) / 1e3;
}

// One sample, on a stream that has nothing to do. Where a step is one call, its launch is what the
// same call takes when nothing has changed.
static void take_sample(bench *b, const way *w, float factor, split *s, size_t index) {
    must(rondo_stream_synchronize(b->stream));
    if (w->patch != NULL) {
        s->patch_us[index] = time_call(b, w->patch, factor);
        s->launch_us[index] = time_call(b, w->launch, factor);
        s->both_us[index] = s->patch_us[index] + s->launch_us[index];
        return;
    }
    s->both_us[index] = time_call(b, w->step, factor);
    must(rondo_stream_synchronize(b->stream));
    s->launch_us[index] = time_call(b, w->step, factor);
    s->patch_us[index] = s->both_us[index] - s->launch_us[index];
}

static void measure_split(const bench *pattern, size_t sample_count) {
    static bench benches[WAY_COUNT];
    static split splits[WAY_COUNT];
    const size_t way_count = count_ways(pattern);
    for (size_t k = FIRST_SPLIT_WAY; k < way_count; ++k) {
        benches[k] = *pattern;
        ways[k].begin(&benches[k]);
    }
    for (size_t i = 0; i < WARM_UP + sample_count; ++i) {
        for (size_t k = FIRST_SPLIT_WAY; k < way_count; ++k) {
            take_sample(&benches[k], &ways[k], 1.0f + 0.001f * (float)(i % 7), &splits[k],
                        i < WARM_UP ? 0 : i - WARM_UP);
        }
    }
    printf("%zu kernels, 4 with a changing factor, %zu samples on a drained stream\n",
           pattern->node_count, sample_count);
    printf("%-26s %12s %14s %10s\n", "way, CPU us", "patch", "launch", "both");
    for (size_t k = FIRST_SPLIT_WAY; k < way_count; ++k) {
        printf("%-26s %12.2f %14.2f %10.2f\n", ways[k].name,
               get_median(splits[k].patch_us, sample_count),
               get_median(splits[k].launch_us, sample_count),
               get_median(splits[k].both_us, sample_count));
    }
    for (size_t k = way_count; k-- > FIRST_SPLIT_WAY;) {
        end_way(&benches[k]);
    }
}

// A run with the values of the one before, beside a replay of the same graph.
static void measure_unchanged(bench *b) {
    static double times[2][PLAIN];
    const rondo_value value = {.single = 1.5f};
    begin_learned(b);
    must(rondo_learned_run(b->learned, b->stream, &value, 1));
    rondo_graph *graph = rondo_learned_get_graph(b->learned);
    for (size_t i = 0; i < PLAIN; ++i) {
        for (size_t k = 0; k < 2; ++k) {
            const bool is_learned = (i + k) % 2 == 0;
            const uint64_t start = rondo__clock_now_ns();
            const rondo_status status = is_learned
                                            ? rondo_learned_run(b->learned, b->stream, &value, 1)
                                            : rondo_graph_replay(graph, b->stream);
            times[is_learned][i] = (double)(rondo__clock_now_ns() - start);
            must(status);
        }
        if (i % DRAIN_EVERY == 0) {
            must(rondo_stream_synchronize(b->stream));
        }
    }
    const double replay = get_median(times[0], PLAIN);
    const double learned = get_median(times[1], PLAIN);
    printf("unchanged values: %.0f ns, a replay %.0f ns, %.0f ns more\n", learned, replay,
           learned - replay);
    end_way(b);
}

static void open_bench(bench *b, const char *name, void *functions[2]) {
    union {
        rondo_host_function function;
        void *address;
    } scale = {.function = run_scale};
    must(rondo_device_open(name, &b->device));
    functions[0] = scale.address;
    functions[1] = scale.address;
    if (!rondo_device_is_host(b->device)) {
        b->api = rondo__cuda_device_of(b->device)->api;
        must(rondo__device_get_function(b->device, scale_text, NULL, 0, "scale", &functions[0]));
        must(rondo__device_get_function(b->device, scale_text, NULL, 0, "scale_overlap",
                                        &functions[1]));
    }
    must(rondo_stream_create(b->device, NULL, &b->stream));
    for (size_t i = 0; i < 2; ++i) {
        must(rondo_memory_allocate(b->device, RONDO_MEMORY_DEVICE, WIDTH * sizeof(float),
                                   (void **)&b->buffers[i]));
    }
}

static uint64_t read_number(int argc, char **argv, int index, uint64_t otherwise) {
    return argc > index ? strtoull(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    static bench b = {.node_count = 8};
    void *functions[2];
    const uint64_t step_count = read_number(argc, argv, 2, 40000);
    const uint64_t turns = read_number(argc, argv, 3, TURNS);
    const uint64_t samples = read_number(argc, argv, 4, SAMPLES);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    open_bench(&b, argc > 1 ? argv[1] : "host", functions);
    b.function = functions[0];
    measure_all(&b, step_count);
    measure_unchanged(&b);
    if (b.api != NULL) {
        b.function = functions[1];
        b.overlaps = true;
        measure_all(&b, step_count);
        b.function = functions[0];
        b.overlaps = false;
    }
    b.node_count = NODES_MAX;
    measure_split(&b, samples >= 1 && samples <= SAMPLES ? (size_t)samples : SAMPLES);
    measure_all(&b, turns);
    b.are_all_dynamic = true;
    measure_all(&b, turns);
    rondo_memory_free(b.device, b.buffers[0]);
    rondo_memory_free(b.device, b.buffers[1]);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    return 0;
}
