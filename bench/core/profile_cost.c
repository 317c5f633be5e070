// What a profile costs the program that it looks at: runs of one plan, eager and replayed, without
// a profile and under each source, turn by turn.
//
//   build/bench/profile_cost [DEVICE] [TURNS]      default: cuda:0 and 60
//
// Two programs: "wide", whose ops take some 100 us each on an H200, as in a network; and "narrow",
// whose ops take as long as a launch, where the profile itself is what is seen. Goals: CUPTI at
// most 5 % of the wide program's time; events at most 2 us an op that is launched eagerly.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "bench.h"
#include "goals.h"
#include "rondo/models.h"
#include "rondo/profile.h"

enum { STEP_COUNT = 20, KIND_COUNT = 3 };

static const rondo_profile_source g_sources[KIND_COUNT] = {
    RONDO_PROFILE_SOURCE_NONE, RONDO_PROFILE_SOURCE_EVENTS, RONDO_PROFILE_SOURCE_CUPTI};

static float *g_weight;

// x -> (MatMul, Relu) x STEP_COUNT, with a weight that keeps numbers small.
static rondo_program *build(int64_t rows, int64_t columns) {
    rondo_builder *builder = NULL;
    rondo_program *program = NULL;
    const rondo_shape shape = {.rank = 2, .extent = {columns, columns}};
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "x",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 2,
                          .extent = {rows, columns}};
    must(rondo_builder_create(NULL, &builder));
    must(rondo_builder_add_input(builder, &x));
    must(rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F32, &shape, g_weight));
    char names[2 * STEP_COUNT + 1][8] = {"x"};
    for (int i = 0; i < 2 * STEP_COUNT; i++) {
        (void)snprintf(names[i + 1], sizeof names[0], "v%d", i);
        const char *inputs[2] = {names[i], "w"};
        const char *output = names[i + 1];
        must(rondo_builder_add_node(builder, i % 2 == 0 ? "MatMul" : "Softmax", inputs,
                                    i % 2 == 0 ? 2 : 1, &output, 1, NULL));
    }
    must(rondo_builder_add_output(builder, names[2 * STEP_COUNT], NULL));
    must(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);
    return program;
}

typedef struct bench {
    rondo_executor *executor;
    rondo_binding feed;
    rondo_binding fetch;
    rondo_profile *profiles[KIND_COUNT];  // NULL: this source cannot be had
    size_t turn_count;
} bench;

static void run(bench *b) {
    must(rondo_executor_run(b->executor, &b->feed, 1, &b->fetch, 1));
}

// Time of a run without its transfers: what the processor took to put the ops on the stream, and
// what the device took.
static void time_runs(bench *b, int kind, double *enqueue_us, double *compute_us) {
    enum { RUNS = 5 };
    rondo_run_times times = {.struct_size = sizeof times};
    double enqueue[RUNS];
    double compute[RUNS];
    if (kind >= 0) {
        must(rondo_profile_start(b->profiles[kind]));
    }
    must(rondo_executor_rerun(b->executor));
    for (int i = 0; i < RUNS; i++) {
        must(rondo_executor_rerun(b->executor));
        must(rondo_executor_get_times(b->executor, &times));
        enqueue[i] = (double)times.enqueue_ns / 1e3;
        compute[i] = (double)times.compute_ns / 1e3;
    }
    if (kind >= 0) {
        must(rondo_profile_stop(b->profiles[kind]));
    }
    *enqueue_us = get_median(enqueue, RUNS);
    *compute_us = get_median(compute, RUNS);
}

// Turn by turn without a profile (index 0) and with each; medians.
static void measure(bench *b, double *enqueue_us, double *compute_us) {
    double *values = make_values(2 * (KIND_COUNT + 1) * b->turn_count);
    for (size_t t = 0; t < b->turn_count; t++) {
        for (int kind = -1; kind < KIND_COUNT; kind++) {
            double *at = values + (size_t)(kind + 1) * 2 * b->turn_count + t;
            if (kind < 0 || b->profiles[kind] != NULL) {
                time_runs(b, kind, at, at + b->turn_count);
            }
        }
    }
    for (size_t kind = 0; kind <= KIND_COUNT; kind++) {
        double *at = values + kind * 2 * b->turn_count;
        enqueue_us[kind] = get_median(at, b->turn_count);
        compute_us[kind] = get_median(at + b->turn_count, b->turn_count);
    }
    free(values);
}

static void report_kind(const char *program, bool is_replayed, const rondo_executor_stats *stats,
                        int kind, const double *enqueue_us, const double *compute_us,
                        bool is_wide) {
    static const char *const names[] = {"spans only", "events", "CUPTI"};
    const rondo_profile_source source = g_sources[kind];
    const char *form = is_replayed ? "replayed" : "eager";
    const double slower = 100 * (compute_us[kind + 1] / compute_us[0] - 1);
    const double op_us = (enqueue_us[kind + 1] - enqueue_us[0]) / (double)stats->op_count;
    char text[96];
    (void)snprintf(text, sizeof text, "%s, %s, %s: device time", program, form, names[kind]);
    report(text, compute_us[kind + 1], "us", NO_GOAL, 0);
    (void)snprintf(text, sizeof text, "%s, %s, %s: slower by", program, form, names[kind]);
    report(text, slower, "%", is_wide && source == RONDO_PROFILE_SOURCE_CUPTI ? AT_MOST : NO_GOAL,
           5);
    if (!is_replayed) {
        (void)snprintf(text, sizeof text, "%s, eager, %s: processor time an op", program,
                       names[kind]);
        report(text, op_us, "us", source == RONDO_PROFILE_SOURCE_EVENTS ? AT_MOST : NO_GOAL, 2);
    }
}

static void measure_program(rondo_device *device, bench *b, const char *name, int64_t rows,
                            int64_t columns, bool is_wide) {
    rondo_program *program = build(rows, columns);
    print_head(name);
    for (int is_replayed = 0; is_replayed < 2; is_replayed++) {
        double enqueue_us[KIND_COUNT + 1];
        double compute_us[KIND_COUNT + 1];
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        const rondo_executor_options options = {
            .struct_size = sizeof options,
            .graphs = is_replayed ? RONDO_GRAPHS_ON : RONDO_GRAPHS_OFF};
        must(rondo_executor_create(program, device, &options, &b->executor));
        for (int i = 0; i < 4; i++) {
            run(b);
        }
        must(rondo_executor_get_stats(b->executor, &stats));
        measure(b, enqueue_us, compute_us);
        char text[96];
        (void)snprintf(text, sizeof text, "%s, %s, no profile: device time", name,
                       is_replayed ? "replayed" : "eager");
        report(text, compute_us[0], "us", NO_GOAL, 0);
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            if (b->profiles[kind] != NULL) {
                report_kind(name, is_replayed != 0, &stats, kind, enqueue_us, compute_us, is_wide);
            }
        }
        rondo_executor_destroy(b->executor);
        rondo_tensor_deinit(&b->fetch.tensor);
    }
    rondo_program_destroy(program);
}

static void make_profiles(bench *b) {
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const rondo_profile_options options = {.struct_size = sizeof options,
                                               .source = g_sources[kind]};
        must(rondo_profile_create(&options, &b->profiles[kind]));
        if (rondo_profile_start(b->profiles[kind]) != RONDO_STATUS_OK) {
            printf("source %d is left out: %s\n", (int)g_sources[kind],
                   rondo_error_get_last()->message);
            rondo_profile_destroy(b->profiles[kind]);
            b->profiles[kind] = NULL;
        } else {
            must(rondo_profile_stop(b->profiles[kind]));
        }
    }
}

int main(int argc, char **argv) {
    enum { COLUMNS = 1024, ROWS = 2048, ROWS_ON_HOST = 16 };
    bench b = {.turn_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 60};
    rondo_device *device = NULL;
    rondo_device_info info = {.struct_size = sizeof info};
    if (b.turn_count == 0) {
        fprintf(stderr, "usage: profile_cost [DEVICE] [TURNS]   (at least 1)\n");
        return 2;
    }
    must(rondo_device_open(argc > 1 ? argv[1] : "cuda:0", &device));
    must(rondo_device_get_info(device, &info));
    printf("%s, %zu turns of 5 runs each\n", info.description, b.turn_count);
    g_weight = calloc((size_t)COLUMNS * COLUMNS, sizeof *g_weight);
    float *x = calloc((size_t)ROWS * COLUMNS, sizeof *x);
    if (g_weight == NULL || x == NULL) {
        fprintf(stderr, "no memory\n");
        return 2;
    }
    make_profiles(&b);
    b.fetch.name = "v39";
    b.feed.name = "x";
    const int64_t rows = rondo_device_is_host(device) ? ROWS_ON_HOST : ROWS;
    b.feed.tensor = (rondo_tensor){
        .dtype = RONDO_DTYPE_F32, .shape = {.rank = 2, .extent = {rows, COLUMNS}}, .data = x};
    measure_program(device, &b, "wide", rows, COLUMNS, true);
    b.feed.tensor.shape.extent[0] = 16;
    b.feed.tensor.shape.extent[1] = 64;
    measure_program(device, &b, "narrow", 16, 64, false);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        rondo_profile_destroy(b.profiles[kind]);
    }
    rondo_device_release(device);
    free(x);
    free(g_weight);
    return g_missed_count > 0 ? 1 : 0;
}
