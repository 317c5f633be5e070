// What the capture core costs: replay, capture, instantiation, pool, growth of memory; on the host
// also nodes in a row and parallel branches.
//
//   build/bench/capture_core DEVICE [--quick] [--check]
//
//   DEVICE    "host" or "cuda:N"
//   --quick   fewer rounds: seconds instead of a minute; for a look, not for a record
//   --check   exit status 1 when a goal is missed
//
// On a GPU each figure is taken beside the same work through the bare driver, turn by turn in one
// process, so that clocks and neighbours hit both sides alike: differences and ratios are taken
// within a turn, and the median over the turns is printed. The driver is called through dlopen, the
// library through its public calls.
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "goals.h"
#include "rondo/rondo.h"

enum { DRAIN_EVERY = 16 };

// One column of samples for each thing that a turn measures.
typedef struct table {
    double *values[6];
    size_t count;
} table;

static table make_table(size_t count) {
    table t = {.count = count};
    for (int i = 0; i < 6; ++i) {
        t.values[i] = make_values(count);
    }
    return t;
}

static void free_table(table *t) {
    for (int i = 0; i < 6; ++i) {
        free(t->values[i]);
    }
}

// ---- the bare driver --------------------------------------------------------------------------

// Hand-written, so that no compiler is needed: o[i] = f * in[i] for i < n, as in a step of
// hundreds of short kernels.
static const char g_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry step(.param .u64 po, .param .u64 pin, .param .u32 pn, .param .f32 pf) {\n"
    "  .reg .pred %p; .reg .f32 %f<3>; .reg .b32 %r<5>; .reg .b64 %d<6>;\n"
    "  ld.param.u64 %d1, [po]; ld.param.u64 %d2, [pin];\n"
    "  ld.param.u32 %r4, [pn]; ld.param.f32 %f1, [pf];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.s32 %r1, %r1, %r2, %r3;\n"
    "  setp.ge.s32 %p, %r1, %r4;\n"
    "  @%p bra done;\n"
    "  mul.wide.s32 %d3, %r1, 4; add.s64 %d4, %d2, %d3; add.s64 %d5, %d1, %d3;\n"
    "  ld.global.f32 %f2, [%d4]; mul.f32 %f2, %f2, %f1; st.global.f32 [%d5], %f2;\n"
    "done: ret;\n}\n";

typedef struct driver {
    int (*stream_get_context)(void *stream, void **out_context);
    int (*set_context)(void *context);
    int (*load_module)(void **out_module, const void *image);
    int (*get_function)(void **out_function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **out_graph);
    int (*instantiate)(void **out_executable, void *graph, unsigned long long flags);
    int (*graph_launch)(void *executable, void *stream);
    int (*destroy_executable)(void *executable);
    int (*destroy_graph)(void *graph);
    int (*get_memory)(size_t *out_free, size_t *out_total);
} driver;

static void must_driver(int code, const char *call) {
    if (code != 0) {
        fprintf(stderr, "capture_core: %s gave %d\n", call, code);
        exit(2);
    }
}

static void open_driver(driver *d, void *stream) {
    find_in_driver("cuStreamGetCtx", &d->stream_get_context);
    find_in_driver("cuCtxSetCurrent", &d->set_context);
    find_in_driver("cuModuleLoadData", &d->load_module);
    find_in_driver("cuModuleGetFunction", &d->get_function);
    find_in_driver("cuLaunchKernel", &d->launch);
    find_in_driver("cuStreamBeginCapture_v2", &d->begin_capture);
    find_in_driver("cuStreamEndCapture", &d->end_capture);
    find_in_driver("cuGraphInstantiateWithFlags", &d->instantiate);
    find_in_driver("cuGraphLaunch", &d->graph_launch);
    find_in_driver("cuGraphExecDestroy", &d->destroy_executable);
    find_in_driver("cuGraphDestroy", &d->destroy_graph);
    find_in_driver("cuMemGetInfo_v2", &d->get_memory);
    void *context = NULL;
    must_driver(d->stream_get_context(stream, &context), "cuStreamGetCtx");
    must_driver(d->set_context(context), "cuCtxSetCurrent");
}

// ---- the work ---------------------------------------------------------------------------------

// What the kernel takes, packed as it lays it out.
typedef struct step_arguments {
    float *output;
    const float *input;
    int32_t count;
    float factor;
} step_arguments;

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    void *native;
    bool is_host;
    bool is_quick;
    driver driver;
    void *function;
    float *memory[2];
} bench;

static void run_step(void *data) {
    step_arguments *arguments = data;
    arguments->output[0] = arguments->factor * arguments->input[0];
}

static void issue(const bench *b, rondo_stream *stream, size_t node_count) {
    for (size_t i = 0; i < node_count; ++i) {
        step_arguments arguments = {b->memory[i & 1], b->memory[~i & 1], 32, 1.0f};
        rondo_launch launch = {.struct_size = sizeof launch,
                               .name = "step",
                               .function = b->function,
                               .grid = {1, 1, 1},
                               .block = {256, 1, 1},
                               .arguments = &arguments,
                               .argument_bytes = sizeof arguments};
        must(rondo_stream_launch(stream, &launch));
    }
}

static void issue_bare(const bench *b, size_t node_count) {
    for (size_t i = 0; i < node_count; ++i) {
        step_arguments a = {b->memory[i & 1], b->memory[~i & 1], 32, 1.0f};
        void *parameters[] = {&a.output, &a.input, &a.count, &a.factor};
        must_driver(
            b->driver.launch(b->function, 1, 1, 1, 256, 1, 1, 0, b->native, parameters, NULL),
            "cuLaunchKernel");
    }
}

static rondo_graph *capture(const bench *b, size_t node_count) {
    rondo_graph *graph;
    must(rondo_graph_create(b->device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    issue(b, b->stream, node_count);
    must(rondo_graph_capture_end(graph));
    return graph;
}

// ---- replay against cuGraphLaunch -------------------------------------------------------------

static double time_bare_replay(const bench *b, void *executable) {
    uint64_t start = rondo__clock_now_ns();
    int code = b->driver.graph_launch(executable, b->native);
    uint64_t end = rondo__clock_now_ns();
    must_driver(code, "cuGraphLaunch");
    return (double)(end - start);
}

static double time_replay(const bench *b, rondo_graph *graph) {
    uint64_t start = rondo__clock_now_ns();
    rondo_status status = rondo_graph_replay(graph, b->stream);
    uint64_t end = rondo__clock_now_ns();
    must(status);
    return (double)(end - start);
}

// One call of each kind in a turn, of the same executable, in changing order; the stream is drained
// now and then, so that no call waits for room in the driver's queue.
static void measure_replay(const bench *b, size_t node_count) {
    size_t turns = node_count <= 8 ? 12000 : node_count <= 100 ? 4000 : 1500;
    turns = b->is_quick ? turns / 10 : turns;
    rondo_graph *graph = capture(b, node_count);
    void *executable = NULL;
    must(rondo_graph_get_native(graph, NULL, &executable));
    must(rondo_graph_upload(graph, b->stream));
    must(rondo_stream_synchronize(b->stream));
    table t = make_table(turns);
    for (size_t i = 0; i < turns + turns / 10; ++i) {
        size_t turn = i < turns / 10 ? 0 : i - turns / 10;  // the first ones warm up
        bool is_bare_first = i % 2 == 0;
        double bare = is_bare_first ? time_bare_replay(b, executable) : 0;
        double ours = time_replay(b, graph);
        bare = is_bare_first ? bare : time_bare_replay(b, executable);
        t.values[0][turn] = bare;
        t.values[1][turn] = ours;
        t.values[2][turn] = ours - bare;
        if (i % DRAIN_EVERY == 0) {
            must(rondo_stream_synchronize(b->stream));
        }
    }
    must(rondo_stream_synchronize(b->stream));
    rondo_graph_destroy(graph);
    char text[96];
    snprintf(text, sizeof text, "cuGraphLaunch of %zu nodes, CPU", node_count);
    report(text, get_median(t.values[0], turns), "ns", NO_GOAL, 0);
    snprintf(text, sizeof text, "replay of %zu nodes over cuGraphLaunch, CPU", node_count);
    report(text, get_median(t.values[2], turns), "ns", AT_MOST, 50);
    free_table(&t);
}

// ---- capture and instantiation against the driver ---------------------------------------------

static void capture_bare(const bench *b, size_t node_count, double *out_capture,
                         double *out_instantiate) {
    void *graph = NULL;
    void *executable = NULL;
    uint64_t start = rondo__clock_now_ns();
    must_driver(b->driver.begin_capture(b->native, 1), "cuStreamBeginCapture");
    issue_bare(b, node_count);
    must_driver(b->driver.end_capture(b->native, &graph), "cuStreamEndCapture");
    uint64_t captured = rondo__clock_now_ns();
    must_driver(b->driver.instantiate(&executable, graph, 0), "cuGraphInstantiate");
    uint64_t end = rondo__clock_now_ns();
    must_driver(b->driver.destroy_graph(graph), "cuGraphDestroy");
    must_driver(b->driver.destroy_executable(executable), "cuGraphExecDestroy");
    *out_capture = (double)(captured - start);
    *out_instantiate = (double)(end - captured);
}

static void capture_ours(const bench *b, rondo_graph *graph, size_t node_count, double *out_capture,
                         double *out_rest) {
    uint64_t start = rondo__clock_now_ns();
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    issue(b, b->stream, node_count);
    must(rondo_graph_capture_end(graph));
    uint64_t captured = rondo__clock_now_ns();
    must(rondo_graph_instantiate(graph));
    uint64_t end = rondo__clock_now_ns();
    must(rondo_graph_reset(graph));
    *out_capture = (double)(captured - start);
    *out_rest = (double)(end - captured);
}

// capture: all of rondo_graph_capture_begin to all of rondo_graph_capture_end, of a graph that
// defers its instantiation, so that the end holds nothing else.
static void measure_capture(const bench *b, size_t node_count) {
    size_t turns = node_count <= 8 ? 600 : node_count <= 100 ? 300 : node_count <= 1000 ? 60 : 16;
    turns = b->is_quick ? turns / 4 : turns;
    rondo_graph *graph;
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE_ONLY;
    must(rondo_graph_create(b->device, &options, &graph));
    table t = make_table(turns);
    for (size_t i = 0; i < turns + 3; ++i) {
        size_t turn = i < 3 ? 0 : i - 3;
        double bare[2];
        double ours[2];
        if (i % 2 == 0) {
            capture_bare(b, node_count, &bare[0], &bare[1]);
        }
        capture_ours(b, graph, node_count, &ours[0], &ours[1]);
        if (i % 2 == 1) {
            capture_bare(b, node_count, &bare[0], &bare[1]);
        }
        t.values[0][turn] = bare[0];
        t.values[1][turn] = bare[1];
        t.values[2][turn] = ours[0] / bare[0];
        t.values[3][turn] = ours[1] / bare[1];
        t.values[4][turn] = (ours[0] + ours[1]) / (bare[0] + bare[1]);
    }
    rondo_graph_destroy(graph);
    char text[96];
    snprintf(text, sizeof text, "driver: capture of %zu launches", node_count);
    report(text, get_median(t.values[0], turns) / 1000, "us", NO_GOAL, 0);
    snprintf(text, sizeof text, "driver: instantiation of %zu", node_count);
    report(text, get_median(t.values[1], turns) / 1000, "us", NO_GOAL, 0);
    snprintf(text, sizeof text, "capture of %zu launches against the driver", node_count);
    report(text, get_median(t.values[2], turns), "times", AT_MOST, 1.1);
    snprintf(text, sizeof text, "instantiation of %zu against the driver", node_count);
    report(text, get_median(t.values[3], turns), "times", NO_GOAL, 0);
    snprintf(text, sizeof text, "begin to ready to replay, %zu, against the driver", node_count);
    report(text, get_median(t.values[4], turns), "times", NO_GOAL, 0);
    free_table(&t);
}

// ---- the pool ---------------------------------------------------------------------------------

static void measure_pool(const bench *b) {
    enum { BLOCK_COUNT = 64, PAIR_COUNT = 256 };
    size_t turns = b->is_quick ? 200 : 4000;
    rondo_pool *pool;
    // The program does not have this stream's native handle, so the driver need not be asked.
    rondo_stream *stream;
    must(rondo_stream_create(b->device, NULL, &stream));
    must(rondo_pool_create(b->device, NULL, &pool));
    table t = make_table(turns);
    void *blocks[BLOCK_COUNT];
    for (size_t i = 0; i < turns + turns / 10; ++i) {
        size_t turn = i < turns / 10 ? 0 : i - turns / 10;
        uint64_t start = rondo__clock_now_ns();
        for (int j = 0; j < BLOCK_COUNT; ++j) {
            must(rondo_pool_allocate(pool, stream, 4096, &blocks[j]));
        }
        uint64_t allocated = rondo__clock_now_ns();
        for (int j = 0; j < BLOCK_COUNT; ++j) {
            must(rondo_pool_free(pool, blocks[j]));
        }
        uint64_t freed = rondo__clock_now_ns();
        for (int j = 0; j < PAIR_COUNT; ++j) {
            must(rondo_pool_allocate(pool, stream, 4096, &blocks[0]));
            must(rondo_pool_free(pool, blocks[0]));
        }
        t.values[0][turn] = (double)(allocated - start) / BLOCK_COUNT;
        t.values[1][turn] = (double)(freed - allocated) / BLOCK_COUNT;
        t.values[2][turn] = (double)(rondo__clock_now_ns() - freed) / PAIR_COUNT;
    }
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    must(rondo_pool_get_stats(pool, &stats));
    rondo_pool_release(pool);
    rondo_stream_destroy(stream);
    print_head("pool, 4 KiB blocks that it holds already");
    report("allocate, 64 in a row", get_median(t.values[0], turns), "ns", AT_MOST, 100);
    report("free, the same 64", get_median(t.values[1], turns), "ns", AT_MOST, 100);
    report("allocate and free at once, both together", get_median(t.values[2], turns), "ns",
           AT_MOST, 100);
    report("allocations asked of the driver meanwhile", (double)stats.driver_call_count - 1, "",
           AT_MOST, 0);
    free_table(&t);
}

// ---- growth -----------------------------------------------------------------------------------

typedef struct memory {
    double heap_bytes;
    double resident_bytes;
    double device_bytes;  // used
} memory;

static memory get_memory(const bench *b) {
    memory m = {0};
    struct mallinfo2 info = mallinfo2();
    m.heap_bytes = (double)(info.uordblks + info.hblkhd);
    m.resident_bytes = get_resident_bytes();
    if (!b->is_host) {
        size_t free_bytes = 0;
        size_t total = 0;
        must_driver(b->driver.get_memory(&free_bytes, &total), "cuMemGetInfo");
        m.device_bytes = (double)(total - free_bytes);
    }
    return m;
}

static void report_growth(const bench *b, const char *what, memory before, memory after) {
    char text[96];
    snprintf(text, sizeof text, "%s: heap", what);
    report(text, after.heap_bytes - before.heap_bytes, "bytes", AT_MOST, 0);
    // The kernel gives memory in pages and the C library keeps some: a few are no leak, as a leak
    // of one byte a round would be far beyond.
    snprintf(text, sizeof text, "%s: resident", what);
    report(text, after.resident_bytes - before.resident_bytes, "bytes", AT_MOST,
           b->is_quick ? 262144 : 65536);
    if (!b->is_host) {
        snprintf(text, sizeof text, "%s: device memory", what);
        report(text, after.device_bytes - before.device_bytes, "bytes", AT_MOST, 0);
    }
}

static void replay_many(const bench *b, rondo_graph *graph, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        must(rondo_graph_replay(graph, b->stream));
        if (i % 4096 == 0) {
            must(rondo_stream_synchronize(b->stream));
        }
    }
    must(rondo_stream_synchronize(b->stream));
}

static void capture_many(const bench *b, rondo_graph *graph, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
        issue(b, b->stream, 8);
        must(rondo_graph_capture_end(graph));
        must(rondo_graph_replay(graph, b->stream));
        must(rondo_graph_reset(graph));
    }
}

static void measure_growth(const bench *b) {
    size_t replay_count = b->is_quick ? 50000 : 1000000;
    size_t round_count = b->is_quick ? 500 : 10000;
    char text[64];
    print_head("growth");
    rondo_graph *graph = capture(b, 1);
    replay_many(b, graph, 20000);
    memory before = get_memory(b);
    replay_many(b, graph, replay_count);
    memory after = get_memory(b);
    snprintf(text, sizeof text, "%zu replays", replay_count);
    report_growth(b, text, before, after);
    must(rondo_graph_reset(graph));
    capture_many(b, graph, 300);
    before = get_memory(b);
    capture_many(b, graph, round_count);
    after = get_memory(b);
    snprintf(text, sizeof text, "%zu rounds of capture, replay, reset", round_count);
    report_growth(b, text, before, after);
    rondo_graph_destroy(graph);
}

// ---- the host backend -------------------------------------------------------------------------

static void measure_row(const bench *b) {
    enum { NODE_COUNT = 1000, BATCH = 20 };
    size_t turns = b->is_quick ? 40 : 400;
    rondo_graph *graph = capture(b, NODE_COUNT);
    table t = make_table(turns);
    void (*volatile function)(void *) = run_step;
    step_arguments arguments = {b->memory[0], b->memory[1], 32, 1.0f};
    for (size_t i = 0; i < turns; ++i) {
        uint64_t start = rondo__clock_now_ns();
        for (int j = 0; j < NODE_COUNT * BATCH; ++j) {
            function(&arguments);
        }
        uint64_t worked = rondo__clock_now_ns();
        for (int j = 0; j < BATCH; ++j) {
            must(rondo_graph_replay(graph, b->stream));
        }
        must(rondo_stream_synchronize(b->stream));
        double plain = (double)(worked - start) / (NODE_COUNT * BATCH);
        t.values[0][i] = plain;
        t.values[1][i] = (double)(rondo__clock_now_ns() - worked) / (NODE_COUNT * BATCH) - plain;
    }
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    must(rondo_graph_get_stats(graph, &stats));
    rondo_graph_destroy(graph);
    print_head("nodes in a row");
    report("the work alone, per node", get_median(t.values[0], turns), "ns", NO_GOAL, 0);
    report("replay over the work, per node", get_median(t.values[1], turns), "ns", AT_MOST, 50);
    report("capture, per node", (double)stats.capture_ns / NODE_COUNT, "ns", NO_GOAL, 0);
    report("instantiation, per node", (double)stats.instantiate_ns / NODE_COUNT, "ns", NO_GOAL, 0);
    free_table(&t);
}

typedef struct crunch_arguments {
    double *value;
    uint64_t steps;
} crunch_arguments;

// Arithmetic that touches no memory but its result.
static void run_crunch(void *data) {
    crunch_arguments *arguments = data;
    double value = *arguments->value;
    for (uint64_t i = 0; i < arguments->steps; ++i) {
        value = value * 1.0000001 + 0.5;
    }
    *arguments->value = value;
}

static uint64_t count_crunch_steps(double microseconds) {
    double value = 1;
    crunch_arguments arguments = {&value, 100000};
    void (*volatile function)(void *) = run_crunch;  // a call that stays one
    double best = 1e30;
    for (int i = 0; i < 20; ++i) {
        uint64_t start = rondo__clock_now_ns();
        function(&arguments);
        double ns = (double)(rondo__clock_now_ns() - start);
        best = ns < best ? ns : best;
    }
    return (uint64_t)(microseconds * 1000 / best * 100000);
}

enum { BRANCH_COUNT = 4 };

typedef struct branches {
    rondo_stream *streams[BRANCH_COUNT];
    rondo_event *fork;
    rondo_event *joins[BRANCH_COUNT];
    struct {
        double value;
        char rest[120];  // of the branch's own cache lines
    } values[BRANCH_COUNT];
} branches;

static rondo_graph *capture_branches(const bench *b, branches *all, int node_count, uint64_t steps,
                                     bool is_parallel) {
    rondo_graph *graph;
    must(rondo_graph_create(b->device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    must(rondo_event_record(all->fork, b->stream));
    for (int i = 0; i < BRANCH_COUNT; ++i) {
        rondo_stream *stream = is_parallel ? all->streams[i] : b->stream;
        if (is_parallel) {
            must(rondo_stream_wait_event(stream, all->fork));
        }
        crunch_arguments arguments = {&all->values[i].value, steps};
        for (int j = 0; j < node_count; ++j) {
            must(
                rondo_stream_call_host(stream, "crunch", run_crunch, &arguments, sizeof arguments));
        }
        if (is_parallel) {
            must(rondo_event_record(all->joins[i], stream));
        }
    }
    for (int i = 0; is_parallel && i < BRANCH_COUNT; ++i) {
        must(rondo_stream_wait_event(b->stream, all->joins[i]));
    }
    must(rondo_graph_capture_end(graph));
    return graph;
}

static double time_graph(const bench *b, rondo_graph *graph) {
    uint64_t start = rondo__clock_now_ns();
    must(rondo_graph_replay(graph, b->stream));
    must(rondo_stream_synchronize(b->stream));
    return (double)(rondo__clock_now_ns() - start);
}

static void measure_branches(const bench *b, branches *all, int node_count, double node_us,
                             goal_kind kind) {
    size_t turns = b->is_quick ? 60 : 600;
    uint64_t steps = count_crunch_steps(node_us);
    rondo_graph *in_a_row = capture_branches(b, all, node_count, steps, false);
    rondo_graph *parallel = capture_branches(b, all, node_count, steps, true);
    table t = make_table(turns);
    for (size_t i = 0; i < turns; ++i) {
        t.values[0][i] = time_graph(b, in_a_row);
        t.values[1][i] = time_graph(b, parallel);
        t.values[2][i] = t.values[0][i] / t.values[1][i];
    }
    rondo_graph_destroy(in_a_row);
    rondo_graph_destroy(parallel);
    char text[96];
    snprintf(text, sizeof text, "4 branches of %d nodes of %g us, in a row", node_count, node_us);
    report(text, get_median(t.values[0], turns) / 1000, "us", NO_GOAL, 0);
    snprintf(text, sizeof text, "the same, parallel");
    report(text, get_median(t.values[1], turns) / 1000, "us", NO_GOAL, 0);
    snprintf(text, sizeof text, "times faster, median of the turns");
    report(text, get_median(t.values[2], turns), "times", kind, 1.7);
    snprintf(text, sizeof text, "times faster, fastest turn of each");
    report(text, t.values[0][0] / t.values[1][0], "times", NO_GOAL, 0);
    free_table(&t);
}

static void measure_all_branches(const bench *b) {
    branches *all = calloc(1, sizeof *all);
    if (all == NULL) {
        exit(2);
    }
    must(rondo_event_create(b->device, 0, &all->fork));
    for (int i = 0; i < BRANCH_COUNT; ++i) {
        must(rondo_stream_create(b->device, NULL, &all->streams[i]));
        must(rondo_event_create(b->device, 0, &all->joins[i]));
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    goal_kind kind = processors > 1 ? AT_LEAST : NO_GOAL;
    print_head("branches; replay and wait");
    measure_branches(b, all, 20, 20, kind);
    measure_branches(b, all, 20, 5, kind);
    // Too short for a goal: waking a sleeping processor takes as long as these branches.
    measure_branches(b, all, 4, 5, NO_GOAL);
    measure_branches(b, all, 1, 5, NO_GOAL);
    for (int i = 0; i < BRANCH_COUNT; ++i) {
        rondo_stream_destroy(all->streams[i]);
        rondo_event_destroy(all->joins[i]);
    }
    rondo_event_destroy(all->fork);
    free(all);
}

// ---- main -------------------------------------------------------------------------------------

static void open_bench(bench *b, const char *name) {
    if (rondo_device_open(name, &b->device) != RONDO_STATUS_OK) {
        fprintf(stderr, "capture_core: %s: %s\n", name, rondo_error_get_last()->message);
        exit(rondo_error_get_last()->status == RONDO_STATUS_UNAVAILABLE ? 77 : 2);
    }
    b->is_host = rondo_device_is_host(b->device);
    must(rondo_stream_create(b->device, NULL, &b->stream));
    b->native = rondo_stream_get_native(b->stream);
    for (int i = 0; i < 2; ++i) {
        void *address = NULL;
        must(rondo_memory_allocate(b->device, RONDO_MEMORY_DEVICE, 1024, &address));
        must(rondo_stream_fill(b->stream, address, 0, 4, 256));
        b->memory[i] = address;
    }
    must(rondo_stream_synchronize(b->stream));
    if (b->is_host) {
        b->function = get_kernel(b->device, NULL, NULL, run_step);
        return;
    }
    void *module = NULL;
    open_driver(&b->driver, b->native);
    must_driver(b->driver.load_module(&module, g_ptx), "cuModuleLoadData");
    must_driver(b->driver.get_function(&b->function, module, "step"), "cuModuleGetFunction");
}

static void print_machine(const bench *b) {
    rondo_device_info info = {.struct_size = sizeof info};
    double load[3] = {0};
    must(rondo_device_get_info(b->device, &info));
    (void)getloadavg(load, 3);
    printf("Rondo %s; %s, %d compute units", rondo_version_get_text(), info.description,
           (int)info.compute_units);
    if (!b->is_host) {
        printf(", CUDA driver %d.%d", info.driver_version / 1000, info.driver_version % 1000 / 10);
    }
    printf("; %ld processors, load %.1f%s\n", sysconf(_SC_NPROCESSORS_ONLN), load[0],
           b->is_quick ? "; quick" : "");
}

int main(int argc, char **argv) {
    static const size_t replay_counts[] = {1, 8, 100, 1000};
    static const size_t capture_counts[] = {1, 8, 100, 1000, 5000};
    bench b = {0};
    bool is_checked = false;
    const char *name = NULL;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--quick") == 0) {
            b.is_quick = true;
        } else if (strcmp(argv[i], "--check") == 0) {
            is_checked = true;
        } else if (name == NULL && argv[i][0] != '-') {
            name = argv[i];
        } else {
            name = NULL;
            break;
        }
    }
    if (name == NULL) {
        fprintf(stderr, "usage: capture_core DEVICE [--quick] [--check]\n");
        return 2;
    }
    open_bench(&b, name);
    print_machine(&b);
    if (b.is_host) {
        measure_row(&b);
        measure_all_branches(&b);
    } else {
        print_head("replay: the call's CPU time");
        for (size_t i = 0; i < sizeof replay_counts / sizeof *replay_counts; ++i) {
            measure_replay(&b, replay_counts[i]);
        }
        print_head("capture and instantiation");
        for (size_t i = 0; i < sizeof capture_counts / sizeof *capture_counts; ++i) {
            measure_capture(&b, capture_counts[i]);
        }
    }
    measure_pool(&b);
    measure_growth(&b);
    printf("\n%d goals missed\n", g_missed_count);
    for (int i = 0; i < 2; ++i) {
        rondo_memory_free(b.device, b.memory[i]);
    }
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    return is_checked && g_missed_count > 0 ? 1 : 0;
}
