// What ops cost on a GPU whose results' shapes depend on data, and what stands behind them: with
// the op on the GPU, which the run asks for 8 bytes, and on the processor, where the op's inputs go
// and from where its result comes back.
//
//   build/bench/counted_cost [DEVICE] [RUNS]      default: cuda:0 and 200
//
// "detector": scores of 80 classes for 8400 boxes through a sigmoid, NonMaxSuppression (at most 100
// of a class, overlap 0.5, score 0.25), and the boxes, scores and classes of what is left; some 1
// in 1000 scores pass, and 1 in 20. "places": where 1 in 100 of a million values are above 0, their
// exponentials and the sum of those. "rows": of 8400 rows of 85 those whose first value is above 0,
// times a matrix. "kinds": the different ones of 100 000 whole numbers, and how often each is
// there. Inputs are device tensors, four of them in turn, so that four counts come again and again;
// a run is timed from the call to its results in the program's memory. The two places take turns.
// Median of the runs, and the smallest; then what a run copies beside its results. It uses public
// calls only, so it can be built with an older tree.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/models.h"

enum {
    CLASSES = 80,
    BOXES = 8400,
    SIDE = 1024,
    ROWS = 8400,
    WIDTH = 85,
    KINDS = 100000,
    SETS = 4,     // of inputs
    WARM_UP = 3,  // runs of each
    TURN = 20,
    PORTS_MAX = 3,
};

// ---- models -----------------------------------------------------------------------------------

static void add(rondo_builder *b, const char *op, const char *const *inputs, size_t input_count,
                const char *const *outputs, size_t output_count, const char *attribute,
                int64_t value) {
    const rondo_attribute given = {
        .name = attribute, .kind = RONDO_ATTRIBUTE_INT, .int_value = value};
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .attributes = &given,
                                                .attribute_count = attribute != NULL ? 1 : 0};
    must(rondo_builder_add_node(b, op, inputs, input_count, outputs, output_count, &options));
}

#define NAMES(...) \
    (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)

static void add_input(rondo_builder *b, const char *name, rondo_dtype dtype,
                      const rondo_shape *shape) {
    rondo_port port = {
        .struct_size = sizeof port, .name = name, .dtype = dtype, .rank = shape->rank};
    memcpy(port.extent, shape->extent, sizeof port.extent);
    must(rondo_builder_add_input(b, &port));
}

static void add_ints(rondo_builder *b, const char *name, const int64_t *values, int64_t count) {
    const rondo_shape shape = {.rank = 1, .extent = {count}};
    must(rondo_builder_add_constant(b, name, RONDO_DTYPE_I64, &shape, values));
}

static void add_float(rondo_builder *b, const char *name, float value) {
    const rondo_shape shape = {.rank = 1, .extent = {1}};
    must(rondo_builder_add_constant(b, name, RONDO_DTYPE_F32, &shape, &value));
}

static void build_detector(rondo_builder *b) {
    add_ints(b, "most", (const int64_t[]){100}, 1);
    add_float(b, "overlap", 0.5f);
    add_float(b, "least", 0.25f);
    add_ints(b, "batch_and_box", (const int64_t[]){0, 2}, 2);
    add_ints(b, "class", (const int64_t[]){1}, 1);
    add(b, "Sigmoid", NAMES("logits"), NAMES("scores"), NULL, 0);
    add(b, "NonMaxSuppression", NAMES("boxes", "scores", "most", "overlap", "least"), NAMES("kept"),
        NULL, 0);
    add(b, "Gather", NAMES("kept", "batch_and_box"), NAMES("where"), "axis", 1);
    add(b, "GatherND", NAMES("boxes", "where"), NAMES("y0"), NULL, 0);
    add(b, "GatherND", NAMES("scores", "kept"), NAMES("y1"), NULL, 0);
    add(b, "Gather", NAMES("kept", "class"), NAMES("y2"), "axis", 1);
}

static void build_places(rondo_builder *b) {
    add(b, "Relu", NAMES("x"), NAMES("r"), NULL, 0);
    add(b, "NonZero", NAMES("r"), NAMES("found"), NULL, 0);
    add(b, "Transpose", NAMES("found"), NAMES("places"), NULL, 0);
    add(b, "GatherND", NAMES("x", "places"), NAMES("values"), NULL, 0);
    add(b, "Exp", NAMES("values"), NAMES("y0"), NULL, 0);
    add(b, "ReduceSum", NAMES("y0"), NAMES("y1"), NULL, 0);
}

static void build_rows(rondo_builder *b) {
    const rondo_shape shape = {.rank = 2, .extent = {WIDTH, 16}};
    static float w[WIDTH * 16];
    for (size_t i = 0; i < WIDTH * 16; ++i) {
        w[i] = (float)(i % 5) - 2;
    }
    must(rondo_builder_add_constant(b, "w", RONDO_DTYPE_F32, &shape, w));
    add_float(b, "zero", 0);
    add_ints(b, "first", (const int64_t[]){0}, 1);
    add_ints(b, "all", (const int64_t[]){-1}, 1);
    add(b, "Gather", NAMES("x", "first"), NAMES("column"), "axis", 1);
    add(b, "Reshape", NAMES("column", "all"), NAMES("list"), NULL, 0);
    add(b, "Greater", NAMES("list", "zero"), NAMES("keep"), NULL, 0);
    add(b, "Compress", NAMES("x", "keep"), NAMES("rows"), "axis", 0);
    add(b, "MatMul", NAMES("rows", "w"), NAMES("y0"), NULL, 0);
}

static void build_kinds(rondo_builder *b) {
    add(b, "Unique", NAMES("x"), NAMES("y0", "first", "inverse", "y1"), NULL, 0);
}

// ---- inputs -----------------------------------------------------------------------------------

static uint32_t g_random = 1;

static double draw(void) {
    g_random = g_random * 1664525u + 1013904223u;
    return (double)(g_random >> 8) / 16777216.0;
}

// Boxes of up to a tenth of the picture.
static void fill_boxes(void *data, size_t count, double share) {
    float *x = data;
    (void)share;
    for (size_t i = 0; i + 3 < count; i += 4) {
        x[i] = (float)draw();
        x[i + 1] = (float)draw();
        x[i + 2] = x[i] + (float)(0.02 + 0.08 * draw());
        x[i + 3] = x[i + 1] + (float)(0.02 + 0.08 * draw());
    }
}

// Logits, of which a share is above the threshold of 0.25, which is -1.1.
static void fill_logits(void *data, size_t count, double share) {
    float *x = data;
    for (size_t i = 0; i < count; ++i) {
        x[i] = draw() < share ? (float)(-1 + 4 * draw()) : (float)(-6 + 4 * draw());
    }
}

static void fill_values(void *data, size_t count, double share) {
    float *x = data;
    for (size_t i = 0; i < count; ++i) {
        x[i] = draw() < share ? (float)draw() + 0.1f : (float)-draw();
    }
}

static void fill_kinds(void *data, size_t count, double share) {
    int64_t *x = data;
    for (size_t i = 0; i < count; ++i) {
        x[i] = (int64_t)(draw() * share * (double)count);
    }
}

typedef struct port {
    const char *name;
    rondo_dtype dtype;
    rondo_shape shape;
    void (*fill)(void *data, size_t count, double share);
} port;

typedef struct row {
    const char *what;
    const char *op;
    void (*build)(rondo_builder *b);
    size_t input_count, output_count;
    port inputs[2];
    double share;
} row;

static const row g_rows[] = {
    {"detector, 1 in 1000 scores",
     "NonMaxSuppression",
     build_detector,
     2,
     3,
     {{"boxes", RONDO_DTYPE_F32, {3, {1, BOXES, 4}}, fill_boxes},
      {"logits", RONDO_DTYPE_F32, {3, {1, CLASSES, BOXES}}, fill_logits}},
     0.001},
    {"detector, 1 in 20 scores",
     "NonMaxSuppression",
     build_detector,
     2,
     3,
     {{"boxes", RONDO_DTYPE_F32, {3, {1, BOXES, 4}}, fill_boxes},
      {"logits", RONDO_DTYPE_F32, {3, {1, CLASSES, BOXES}}, fill_logits}},
     0.05},
    {"places",
     "NonZero",
     build_places,
     1,
     2,
     {{"x", RONDO_DTYPE_F32, {2, {SIDE, SIDE}}, fill_values}},
     0.01},
    {"rows",
     "Compress",
     build_rows,
     1,
     1,
     {{"x", RONDO_DTYPE_F32, {2, {ROWS, WIDTH}}, fill_values}},
     0.1},
    {"kinds",
     "Unique",
     build_kinds,
     1,
     2,
     {{"x", RONDO_DTYPE_I64, {1, {KINDS}}, fill_kinds}},
     0.01},
};

// ---- runs -------------------------------------------------------------------------------------

typedef struct world {
    rondo_device *device;
    const row *row;
    rondo_program *program;
    rondo_binding feeds[SETS][2];
} world;

static void make_feeds(world *w) {
    rondo_stream *stream;
    must(rondo_stream_create(w->device, NULL, &stream));
    for (size_t s = 0; s < SETS; ++s) {
        for (size_t i = 0; i < w->row->input_count; ++i) {
            const port *p = &w->row->inputs[i];
            rondo_tensor host;
            must(rondo_tensor_init(p->dtype, &p->shape, &host));
            p->fill(host.data, (size_t)rondo_shape_get_count(&p->shape), w->row->share);
            w->feeds[s][i].name = p->name;
            must(rondo_tensor_init_device(w->device, p->dtype, &p->shape, &w->feeds[s][i].tensor));
            must(rondo_tensor_copy(stream, &host, &w->feeds[s][i].tensor));
            must(rondo_stream_synchronize(stream));
            rondo_tensor_deinit(&host);
        }
    }
    rondo_stream_destroy(stream);
}

static void open_world(world *w, rondo_device *device, const row *r) {
    rondo_builder *b;
    *w = (world){.device = device, .row = r};
    must(rondo_builder_create(NULL, &b));
    for (size_t i = 0; i < r->input_count; ++i) {
        add_input(b, r->inputs[i].name, r->inputs[i].dtype, &r->inputs[i].shape);
    }
    r->build(b);
    for (size_t i = 0; i < r->output_count; ++i) {
        const char name[] = {'y', (char)('0' + i), '\0'};
        must(rondo_builder_add_output(b, name, NULL));
    }
    must(rondo_builder_finish(b, &w->program));
    rondo_builder_destroy(b);
    make_feeds(w);
}

static void close_world(world *w) {
    for (size_t s = 0; s < SETS; ++s) {
        for (size_t i = 0; i < w->row->input_count; ++i) {
            rondo_tensor_deinit(&w->feeds[s][i].tensor);
        }
    }
    rondo_program_destroy(w->program);
}

// One run; returns its microseconds and the first extent of the first result.
static double run_once(const world *w, rondo_executor *executor, size_t set, int64_t *out_found) {
    static const char *const names[PORTS_MAX] = {"y0", "y1", "y2"};
    rondo_binding fetches[PORTS_MAX] = {{0}};
    for (size_t i = 0; i < w->row->output_count; ++i) {
        fetches[i].name = names[i];
    }
    const uint64_t start_ns = rondo__clock_now_ns();
    must(rondo_executor_run(executor, w->feeds[set % SETS], w->row->input_count, fetches,
                            w->row->output_count));
    const double us = (double)(rondo__clock_now_ns() - start_ns) * 1e-3;
    *out_found = fetches[0].tensor.shape.extent[0];
    for (size_t i = 0; i < w->row->output_count; ++i) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
    return us;
}

static void print(const char *place, double *times, size_t count, rondo_executor *executor,
                  const rondo_transfer_stats *before) {
    rondo_transfer_stats now = {.struct_size = sizeof now};
    must(rondo_executor_get_transfers(executor, &now));
    const double runs = (double)(now.run_count - before->run_count);
    const double median = get_median(times, count);
    printf(
        "  %-22s %10.1f us, %10.1f smallest; a run copies %.0f bytes to the processor in %.1f "
        "copies, %.0f to the GPU in %.1f\n",
        place, median, times[0], (double)(now.to_host.bytes - before->to_host.bytes) / runs,
        (double)(now.to_host.count - before->to_host.count) / runs,
        (double)(now.to_device.bytes - before->to_device.bytes) / runs,
        (double)(now.to_device.count - before->to_device.count) / runs);
}

static void measure(rondo_device *device, const row *r, size_t count) {
    enum { PLACES = 2 };
    char on_processor[64];
    world w;
    rondo_executor *executors[PLACES];
    rondo_transfer_stats before[PLACES];
    double *times[PLACES];
    int64_t found[PLACES] = {0};
    (void)snprintf(on_processor, sizeof on_processor, "%s=cpu", r->op);
    const char *const entry = on_processor;
    open_world(&w, device, r);
    for (int p = 0; p < PLACES; ++p) {
        const rondo_executor_options options = {
            .struct_size = sizeof options, .place = &entry, .place_count = p == 1 ? 1 : 0};
        must(rondo_executor_create(w.program, device, &options, &executors[p]));
        for (size_t i = 0; i < WARM_UP * SETS; ++i) {
            (void)run_once(&w, executors[p], i, &found[p]);
        }
        before[p].struct_size = sizeof before[p];
        must(rondo_executor_get_transfers(executors[p], &before[p]));
        times[p] = make_values(count);
    }
    if (found[0] != found[1]) {
        fprintf(stderr, "%s: %lld and %lld results\n", r->what, (long long)found[0],
                (long long)found[1]);
        exit(2);
    }
    for (size_t first = 0; first < count; first += TURN) {
        for (int p = 0; p < PLACES; ++p) {
            for (size_t i = first; i < first + TURN && i < count; ++i) {
                times[p][i] = run_once(&w, executors[p], i, &found[p]);
            }
        }
    }
    printf("%s: %lld found\n", r->what, (long long)found[0]);
    for (int p = 0; p < PLACES; ++p) {
        print(p == 0 ? "by itself" : on_processor, times[p], count, executors[p], &before[p]);
        rondo_executor_destroy(executors[p]);
        free(times[p]);
    }
    close_world(&w);
}

int main(int argc, char **argv) {
    rondo_device *device;
    const size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 200;
    if (count == 0) {
        fprintf(stderr, "usage: counted_cost [DEVICE] [RUNS]   (at least 1)\n");
        return 2;
    }
    must(rondo_device_open(argc > 1 ? argv[1] : "cuda:0", &device));
    printf("%s, %zu runs\n", rondo_device_get_name(device), count);
    for (size_t i = 0; i < sizeof g_rows / sizeof *g_rows; ++i) {
        measure(device, &g_rows[i], count);
    }
    rondo_device_release(device);
    return 0;
}
