// What the place of an op costs, and what replay gains where ops of both places follow each other.
//
//   build/bench/placement_cost [DEVICE] [TURNS]      default: cuda:0 and 200
//
// "crop": x cut to the shape of another tensor, whose slice is computed in each run; on the GPU,
// where it is copied there and back while the run waits, and on the processor. "mixed": rows of a
// table looked up on the processor, then 20 ops on the GPU: products and softmaxes, of some 5 and 2
// us on an H200, or normalisations and softmaxes of 2 us each. A run is timed from the call to its
// results in the program's memory; eager and replayed runs take turns of five, of which the first
// is not counted. Goal: a replay of the mixed program at least 1.5 times as fast as an eager run of
// the same plan.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "base/clock.h"
#include "bench.h"
#include "goals.h"
#include "rondo/models.h"

enum {
    ROWS = 64,
    COLUMNS = 256,
    KEPT_ROWS = 48,
    KEPT_COLUMNS = 192,
    TABLE_ROWS = 100000,
    WIDTH = 150,
    STEP_COUNT = 10,  // of two ops each
    WARM_UP = 8,
    TURN_RUNS = 5,
};

static float g_x[ROWS * COLUMNS];
static float g_size[KEPT_ROWS * KEPT_COLUMNS];
static int64_t g_ids[ROWS];

static rondo_builder *begin(void) {
    rondo_builder *builder = NULL;
    must(rondo_builder_create(NULL, &builder));
    return builder;
}

static void add(rondo_builder *builder, const char *op, const char *name, const char *const *inputs,
                size_t count, const char *output) {
    const rondo_builder_node_options options = {.struct_size = sizeof options, .name = name};
    must(rondo_builder_add_node(builder, op, inputs, count, &output, 1, &options));
}

static rondo_program *finish(rondo_builder *builder, const char *output) {
    rondo_program *program = NULL;
    must(rondo_builder_add_output(builder, output, NULL));
    must(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);
    return program;
}

static void add_indices(rondo_builder *builder, const char *name, int64_t count,
                        const int64_t *values) {
    const rondo_shape shape = {.rank = 1, .extent = {count}};
    must(rondo_builder_add_constant(builder, name, RONDO_DTYPE_I64, &shape, values));
}

static void add_matrix_input(rondo_builder *builder, const char *name, int64_t rows,
                             int64_t columns) {
    const rondo_port port = {.struct_size = sizeof port,
                             .name = name,
                             .dtype = RONDO_DTYPE_F32,
                             .rank = 2,
                             .extent = {rows, columns}};
    must(rondo_builder_add_input(builder, &port));
}

static rondo_program *build_crop(void) {
    static const int64_t zeros[] = {0, 0};
    static const int64_t two = 2;
    rondo_builder *builder = begin();
    add_matrix_input(builder, "x", ROWS, COLUMNS);
    add_matrix_input(builder, "size", KEPT_ROWS, KEPT_COLUMNS);
    add_indices(builder, "zeros", 2, zeros);
    add_indices(builder, "zero", 1, zeros);
    add_indices(builder, "two", 1, &two);
    must(rondo_builder_add_shape(builder, "size", "shape"));
    add(builder, "Slice", "slice", (const char *[]){"shape", "zero", "two"}, 3, "ends");
    add(builder, "Slice", "crop", (const char *[]){"x", "zeros", "ends"}, 3, "y");
    return finish(builder, "y");
}

// ids -> Gather on the processor -> (`op` with w, Softmax) x STEP_COUNT, which nothing fuses.
static rondo_program *build_mixed(const char *op, const rondo_shape *w, float *table,
                                  const float *weight) {
    const rondo_tensor rows = {
        .dtype = RONDO_DTYPE_F32, .shape = {2, {TABLE_ROWS, WIDTH}}, .data = table};
    const rondo_port ids = {.struct_size = sizeof ids,
                            .name = "ids",
                            .dtype = RONDO_DTYPE_I64,
                            .rank = 1,
                            .extent = {ROWS}};
    rondo_builder *builder = begin();
    must(rondo_builder_add_input(builder, &ids));
    must(rondo_builder_add_parameter(builder, "table", &rows, RONDO_PARAMETER_SHARED));
    must(rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F32, w, weight));
    must(rondo_builder_begin_place(builder, "cpu"));
    must(rondo_builder_add_embedding(builder, "ids", "table", "v0"));
    must(rondo_builder_end_place(builder));
    char names[2 * STEP_COUNT + 1][8] = {"v0"};
    for (int i = 0; i < 2 * STEP_COUNT; i++) {
        (void)snprintf(names[i + 1], sizeof names[0], "v%d", i + 1);
        add(builder, i % 2 == 0 ? op : "Softmax", names[i + 1], (const char *[]){names[i], "w"},
            i % 2 == 0 ? 2 : 1, names[i + 1]);
    }
    return finish(builder, names[2 * STEP_COUNT]);
}

typedef struct bench {
    rondo_device *device;
    rondo_executor *executors[2];  // eager, replayed
    const rondo_binding *feeds;
    size_t feed_count;
    rondo_binding fetch;  // its memory is the program's
    size_t turn_count;
} bench;

static double time_run(bench *b, rondo_executor *executor) {
    uint64_t start = rondo__clock_now_ns();
    must(rondo_executor_run(executor, b->feeds, b->feed_count, &b->fetch, 1));
    return (double)(rondo__clock_now_ns() - start) / 1e3;
}

static void report_copies(const char *name, rondo_executor *executor, double runs) {
    rondo_transfer_stats copied = {.struct_size = sizeof copied};
    must(rondo_executor_get_transfers(executor, &copied));
    char text[96];
    (void)snprintf(text, sizeof text, "%s: copies of a run", name);
    report(text, (double)(copied.to_device.count + copied.to_host.count) / runs, "", NO_GOAL, 0);
    (void)snprintf(text, sizeof text, "%s: of these waited for", name);
    report(text,
           (double)(copied.synchronous_to_device.count + copied.synchronous_to_host.count) / runs,
           "", NO_GOAL, 0);
}

typedef struct samples {
    double *latency_us;
    double *enqueue_us;  // of these, until all was on the stream
    size_t count;
} samples;

static void take_turn(bench *b, rondo_executor *executor, samples *s) {
    rondo_run_times times = {.struct_size = sizeof times};
    for (int i = 0; i < TURN_RUNS; i++) {
        s->latency_us[s->count] = time_run(b, executor);
        must(rondo_executor_get_times(executor, &times));
        s->enqueue_us[s->count] = (double)times.enqueue_ns / 1e3;
        s->count += i > 0 ? 1 : 0;
    }
}

static double report_samples(const char *name, const char *form, samples *s) {
    char text[96];
    const double median = get_median(s->latency_us, s->count);
    (void)snprintf(text, sizeof text, "%s, %s", name, form);
    report(text, median, "us", NO_GOAL, 0);
    (void)snprintf(text, sizeof text, "%s, %s, 99th percentile", name, form);
    report(text, s->latency_us[s->count * 99 / 100], "us", NO_GOAL, 0);
    (void)snprintf(text, sizeof text, "%s, %s, until all is on the stream", name, form);
    report(text, get_median(s->enqueue_us, s->count), "us", NO_GOAL, 0);
    return median;
}

// Medians of eager and replayed runs.
static void measure(bench *b, const char *name, rondo_program *program, const char *place,
                    bool no_folding, double *out_us) {
    static const char *const forms[] = {"eager", "replayed"};
    samples all[2] = {{0}};
    for (int form = 0; form < 2; form++) {
        const rondo_executor_options options = {
            .struct_size = sizeof options,
            .graphs = form == 0 ? RONDO_GRAPHS_OFF : RONDO_GRAPHS_AUTO,
            .no_folding = no_folding,
            .tuning = RONDO_TUNING_FULL,
            .place = &place,
            .place_count = place != NULL};
        all[form].latency_us = make_values(b->turn_count * TURN_RUNS + 1);
        all[form].enqueue_us = make_values(b->turn_count * TURN_RUNS + 1);
        must(rondo_executor_create(program, b->device, &options, &b->executors[form]));
        for (int i = 0; i < WARM_UP; i++) {
            (void)time_run(b, b->executors[form]);
        }
    }
    for (size_t turn = 0; turn < b->turn_count; turn++) {
        for (int form = 0; form < 2; form++) {
            take_turn(b, b->executors[form], &all[form]);
        }
    }
    const double runs = (double)(WARM_UP + b->turn_count * TURN_RUNS);
    for (int form = 0; form < 2; form++) {
        out_us[form] = report_samples(name, forms[form], &all[form]);
        free(all[form].latency_us);
        free(all[form].enqueue_us);
    }
    report_copies(name, b->executors[1], runs);
    rondo_executor_destroy(b->executors[0]);
    rondo_executor_destroy(b->executors[1]);
}

static void measure_crop(bench *b, bool has_gpu) {
    static float y[KEPT_ROWS * KEPT_COLUMNS];
    const rondo_binding feeds[] = {
        {"x", {.dtype = RONDO_DTYPE_F32, .shape = {2, {ROWS, COLUMNS}}, .data = g_x}},
        {"size",
         {.dtype = RONDO_DTYPE_F32, .shape = {2, {KEPT_ROWS, KEPT_COLUMNS}}, .data = g_size}}};
    double on_gpu[2] = {0};
    double on_host[2] = {0};
    rondo_program *program = build_crop();
    b->feeds = feeds;
    b->feed_count = 2;
    b->fetch = (rondo_binding){
        "y", {.dtype = RONDO_DTYPE_F32, .shape = {2, {KEPT_ROWS, KEPT_COLUMNS}}, .data = y}};
    print_head("crop");
    if (has_gpu) {
        measure(b, "slice on the GPU", program, "slice=gpu", true, on_gpu);
    }
    measure(b, "slice on the processor", program, "slice=cpu", true, on_host);
    if (has_gpu) {
        report("on the processor: times as fast, eager", on_gpu[0] / on_host[0], "", NO_GOAL, 0);
        report("on the processor, replayed: times as fast as eager on the GPU",
               on_gpu[0] / on_host[1], "", NO_GOAL, 0);
    }
    rondo_program_destroy(program);
}

static void measure_mixed(bench *b, bool has_gpu, const char *op, const rondo_shape *w) {
    static float y[ROWS * WIDTH];
    const rondo_binding feed = {"ids",
                                {.dtype = RONDO_DTYPE_I64, .shape = {1, {ROWS}}, .data = g_ids}};
    float *table = calloc((size_t)TABLE_ROWS * WIDTH, sizeof *table);
    float *weight = calloc((size_t)WIDTH * WIDTH, sizeof *weight);
    char name[8];
    char title[64];
    double us[2];
    if (table == NULL || weight == NULL) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    for (size_t i = 0; i < ROWS; i++) {
        g_ids[i] = (int64_t)(i * (TABLE_ROWS / ROWS));
    }
    rondo_program *program = build_mixed(op, w, table, weight);
    (void)snprintf(name, sizeof name, "v%d", 2 * STEP_COUNT);
    b->feeds = &feed;
    b->feed_count = 1;
    b->fetch =
        (rondo_binding){name, {.dtype = RONDO_DTYPE_F32, .shape = {2, {ROWS, WIDTH}}, .data = y}};
    (void)snprintf(title, sizeof title, "mixed: embedding on the processor, 20 ops, %s", op);
    print_head(title);
    measure(b, "mixed", program, NULL, false, us);
    report("replay: times as fast as eager", us[0] / us[1], "", has_gpu ? AT_LEAST : NO_GOAL, 1.5);
    rondo_program_destroy(program);
    free(table);
    free(weight);
}

int main(int argc, char **argv) {
    bench b = {.turn_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 200};
    rondo_device_info info = {.struct_size = sizeof info};
    if (b.turn_count == 0) {
        fprintf(stderr, "usage: placement_cost [DEVICE] [TURNS]   (at least 1)\n");
        return 2;
    }
    must(rondo_device_open(argc > 1 ? argv[1] : "cuda:0", &b.device));
    must(rondo_device_get_info(b.device, &info));
    const bool has_gpu = !rondo_device_is_host(b.device);
    printf("%s, %zu turns\n", info.description, b.turn_count);
    measure_crop(&b, has_gpu);
    measure_mixed(&b, has_gpu, "MatMul", &(rondo_shape){2, {WIDTH, WIDTH}});
    measure_mixed(&b, has_gpu, "LayerNormalization", &(rondo_shape){1, {WIDTH}});
    rondo_device_release(b.device);
    return g_missed_count > 0 ? 1 : 0;
}
