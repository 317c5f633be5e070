// A table of words that is too large for the GPU, and one step of training on it.
//
//   ids -- embedding -+--> rows -- l2_normalize -- square_error_cost -- mean --> loss
//           (cpu)     |                 |  gradient of the loss, by rows
//   table             +<-- SGD (cpu) ---+
//
// The table stays in the processor's memory, where it is looked up and where the touched rows are
// updated; all between runs on the GPU, where there is one. Only rows travel. The same steps are
// taken on the processor alone, with a table of the touched rows, and compared.
//
//   embedding [DEVICE] [--rows N] [--place PATTERN=PLACE]...  10 000 000 rows of 150 take 5.6 GiB
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/models.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        rondo_status status_ = (call);                                           \
        if (status_ != RONDO_STATUS_OK) {                                        \
            fprintf(stderr, "%s: %s\n", #call, rondo_error_get_last()->message); \
            return EXIT_FAILURE;                                                 \
        }                                                                        \
    } while (0)

enum { WIDTH = 150, IDS = 64, STEPS = 5, ROWS_DEFAULT = 10000, PLACES_MAX = 8 };

static const float rate = 500.0f;

// ---- one step of SGD on the rows of a table -----------------------------------------------------

static float *g_tables[2];  // the whole one, and that of the run on the processor alone

static rondo_status infer_sgd(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                              rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    outputs[0].dtype = RONDO_DTYPE_F32;
    outputs[0].shape = inputs[1].shape;
    return RONDO_STATUS_OK;
}

// Inputs: ids [n] and the gradient of each looked-up row [n, WIDTH]. A row that several ids name
// takes all of their steps. Output: the rows as they are then.
static rondo_status compute_sgd(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                                rondo_tensor *outputs, size_t output_count) {
    rondo_attribute which;
    const int64_t *ids = inputs[0].data;
    const float *gradient = inputs[1].data;
    (void)input_count;
    (void)output_count;
    if (!rondo_op_get_attribute(node, "table", &which)) {
        return rondo_op_fail(node, RONDO_STATUS_BAD_DATA, "needs `table`");
    }
    float *table = g_tables[which.int_value];
    const size_t count = (size_t)inputs[0].shape.extent[0];
    for (size_t i = 0; i < count; ++i) {
        float *row = table + (size_t)ids[i] * WIDTH;
        for (size_t k = 0; k < WIDTH; ++k) {
            row[k] -= rate * gradient[i * WIDTH + k];
        }
    }
    for (size_t i = 0; i < count; ++i) {
        memcpy((float *)outputs[0].data + i * WIDTH, table + (size_t)ids[i] * WIDTH,
               WIDTH * sizeof(float));
    }
    return RONDO_STATUS_OK;
}

// ---- the program --------------------------------------------------------------------------------

static rondo_status add(rondo_builder *builder, const char *op, const char *a, const char *b,
                        const char *output) {
    return rondo_builder_add_node(builder, op, (const char *[]){a, b}, b != NULL ? 2 : 1, &output,
                                  1, NULL);
}

// Sums along the last axis, which stays.
static rondo_status add_sum(rondo_builder *builder, const char *x, const char *output) {
    return add(builder, "ReduceSum", x, "last", output);
}

// dloss/drow = (g - n * sum(g * n)) / length, where n = row / length and g = 2 (n - label) / count.
static int add_gradient(rondo_builder *builder) {
    CHECK(add(builder, "Mul", "rows", "rows", "squares"));
    CHECK(add_sum(builder, "squares", "sum"));
    CHECK(add(builder, "Add", "sum", "epsilon", "sum_e"));
    CHECK(add(builder, "Sqrt", "sum_e", NULL, "length"));
    CHECK(add(builder, "Sub", "normal", "label", "difference"));
    CHECK(add(builder, "Mul", "difference", "factor", "g"));
    CHECK(add(builder, "Mul", "g", "normal", "gn"));
    CHECK(add_sum(builder, "gn", "along"));
    CHECK(add(builder, "Mul", "normal", "along", "radial"));
    CHECK(add(builder, "Sub", "g", "radial", "tangent"));
    CHECK(add(builder, "Div", "tangent", "length", "gradient"));
    return EXIT_SUCCESS;
}

static int build(int64_t rows, int which, rondo_program **out_program) {
    const int64_t last = -1;
    const float epsilon = 1e-6f;
    const float factor = 2.0f / (float)(IDS * WIDTH);
    const rondo_shape scalar = {0};
    const rondo_tensor table = {RONDO_DTYPE_F32, {2, {rows, WIDTH}}, g_tables[which], NULL, NULL};
    const rondo_port ids = {.struct_size = sizeof ids,
                            .name = "ids",
                            .dtype = RONDO_DTYPE_I64,
                            .rank = 1,
                            .extent = {IDS}};
    const rondo_port label = {.struct_size = sizeof label,
                              .name = "label",
                              .dtype = RONDO_DTYPE_F32,
                              .rank = 2,
                              .extent = {IDS, WIDTH}};
    const rondo_attribute number = {
        .name = "table", .kind = RONDO_ATTRIBUTE_INT, .int_value = which};
    const rondo_builder_node_options sgd = {.struct_size = sizeof sgd,
                                            .domain = "com.example",
                                            .attributes = &number,
                                            .attribute_count = 1};
    rondo_builder *builder;
    CHECK(rondo_builder_create(NULL, &builder));
    CHECK(rondo_builder_add_input(builder, &ids));
    CHECK(rondo_builder_add_input(builder, &label));
    CHECK(rondo_builder_add_parameter(builder, "table", &table, RONDO_PARAMETER_SHARED));
    CHECK(rondo_builder_add_constant(builder, "last", RONDO_DTYPE_I64, &(rondo_shape){1, {1}},
                                     &last));
    CHECK(rondo_builder_add_constant(builder, "epsilon", RONDO_DTYPE_F32, &scalar, &epsilon));
    CHECK(rondo_builder_add_constant(builder, "factor", RONDO_DTYPE_F32, &scalar, &factor));
    CHECK(rondo_builder_begin_place(builder, "cpu"));
    CHECK(rondo_builder_add_embedding(builder, "ids", "table", "rows"));
    CHECK(rondo_builder_end_place(builder));
    CHECK(rondo_builder_add_l2_normalize(builder, "rows", -1, epsilon, "normal"));
    CHECK(rondo_builder_add_square_error_cost(builder, "normal", "label", "cost"));
    CHECK(rondo_builder_add_mean(builder, "cost", "loss"));
    if (add_gradient(builder) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    CHECK(rondo_builder_begin_place(builder, "cpu"));
    CHECK(rondo_builder_add_node(builder, "Sgd", (const char *[]){"ids", "gradient"}, 2,
                                 (const char *[]){"updated"}, 1, &sgd));
    CHECK(rondo_builder_end_place(builder));
    CHECK(rondo_builder_add_output(builder, "loss", NULL));
    CHECK(rondo_builder_add_output(builder, "updated", NULL));
    CHECK(rondo_builder_finish(builder, out_program));
    rondo_builder_destroy(builder);
    return EXIT_SUCCESS;
}

// ---- running ------------------------------------------------------------------------------------

typedef struct result {
    float loss;
    float updated[IDS * WIDTH];
} result;

static float g_label[IDS * WIDTH];

static rondo_status run(rondo_executor *executor, int64_t *ids, result *out_result) {
    const rondo_binding feeds[] = {
        {"ids", {RONDO_DTYPE_I64, {1, {IDS}}, ids, NULL, NULL}},
        {"label", {RONDO_DTYPE_F32, {2, {IDS, WIDTH}}, g_label, NULL, NULL}}};
    rondo_binding fetches[] = {
        {"loss", {RONDO_DTYPE_F32, {0}, &out_result->loss, NULL, NULL}},
        {"updated", {RONDO_DTYPE_F32, {2, {IDS, WIDTH}}, out_result->updated, NULL, NULL}}};
    return rondo_executor_run(executor, feeds, 2, fetches, 2);
}

// The largest difference of two results; infinite for NaN.
static double compare(const result *a, const result *b) {
    double most = fabs((double)a->loss - (double)b->loss);
    for (size_t i = 0; i < IDS * WIDTH; ++i) {
        const double difference = fabs((double)a->updated[i] - (double)b->updated[i]);
        most = !(difference <= most) ? difference : most;
    }
    return isnan(most) ? (double)INFINITY : most;
}

// Ids that are spread over the whole table; one comes twice. `compact` numbers the rows that they
// name, in a table of IDS rows.
static void choose_ids(int64_t rows, int64_t *ids, int64_t *compact) {
    for (int64_t i = 0; i < IDS; ++i) {
        const int64_t k = i == IDS - 1 ? 3 : i;
        ids[i] = k * ((rows - 1) / IDS) + k % 2;
        compact[i] = k;
    }
}

static int train(rondo_executor *executor, rondo_executor *alone, int64_t *ids, int64_t *compact) {
    static result have;
    static result want;
    double most = 0;
    float first = 0;
    rondo_transfer_stats copied = {.struct_size = sizeof copied};
    rondo_run_times times = {.struct_size = sizeof times};
    for (int step = 0; step < STEPS; ++step) {  // eager, captured, then replayed
        CHECK(run(executor, ids, &have));
        CHECK(rondo_executor_get_times(executor, &times));
        CHECK(run(alone, compact, &want));
        const double difference = compare(&have, &want);
        most = difference > most ? difference : most;
        first = step == 0 ? have.loss : first;
        printf("step %d: loss %.7f, alone %.7f; it takes %.1f us\n", step, (double)have.loss,
               (double)want.loss, (double)times.latency_ns * 1e-3);
    }
    for (int i = 0; i < IDS; ++i) {  // what was fetched is what the table holds
        const float *row = g_tables[0] + (size_t)ids[i] * WIDTH;
        if (memcmp(row, have.updated + (size_t)i * WIDTH, WIDTH * sizeof *row) != 0) {
            fprintf(stderr, "row %lld of the table was not updated\n", (long long)ids[i]);
            return EXIT_FAILURE;
        }
    }
    CHECK(rondo_executor_get_transfers(executor, &copied));
    printf("a step copies %.1f KiB to the GPU in %d copies, and %.1f KiB back in %d\n",
           (double)copied.to_device.bytes / STEPS / 1024, (int)(copied.to_device.count / STEPS),
           (double)copied.to_host.bytes / STEPS / 1024, (int)(copied.to_host.count / STEPS));
    printf("largest difference %g\n", most);
    return most <= 1e-5 && have.loss < first ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_both(const char *name, int64_t rows, const char *const *places, size_t place_count) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .place = places, .place_count = place_count};
    int64_t ids[IDS];
    int64_t compact[IDS];
    rondo_device *device;
    rondo_device *host;
    rondo_program *programs[2] = {NULL, NULL};
    rondo_executor *executors[2] = {NULL, NULL};
    choose_ids(rows, ids, compact);
    for (int i = 0; i < IDS; ++i) {
        memcpy(g_tables[1] + (size_t)compact[i] * WIDTH, g_tables[0] + (size_t)ids[i] * WIDTH,
               WIDTH * sizeof(float));
    }
    if (build(rows, 0, &programs[0]) != EXIT_SUCCESS ||
        build(IDS, 1, &programs[1]) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    CHECK(rondo_device_open(name, &device));
    CHECK(rondo_device_open("host", &host));
    CHECK(rondo_executor_create(programs[0], device, &options, &executors[0]));
    CHECK(rondo_executor_create(programs[1], host, NULL, &executors[1]));
    printf("%lld rows of %d on %s\n", (long long)rows, (int)WIDTH, rondo_device_get_name(device));
    const int outcome = train(executors[0], executors[1], ids, compact);
    for (int i = 0; i < 2; ++i) {
        rondo_executor_destroy(executors[i]);
        rondo_program_destroy(programs[i]);
    }
    rondo_device_release(host);
    rondo_device_release(device);
    return outcome;
}

int main(int argc, char **argv) {
    static const rondo_op_definition sgd = {.struct_size = sizeof sgd,
                                            .domain = "com.example",
                                            .name = "Sgd",
                                            .input_min = 2,
                                            .input_max = 2,
                                            .output_min = 1,
                                            .output_max = 1,
                                            .infer = infer_sgd,
                                            .compute = compute_sgd,
                                            .flags = RONDO_OP_IMPURE};
    const char *device = "auto";
    const char *places[PLACES_MAX];
    size_t place_count = 0;
    int64_t rows = ROWS_DEFAULT;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--rows") == 0 && i + 1 < argc) {
            rows = strtoll(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--place") == 0 && i + 1 < argc && place_count < PLACES_MAX) {
            places[place_count++] = argv[++i];
        } else {
            device = argv[i];
        }
    }
    if (rows < 2 * IDS || rows > INT64_C(1) << 32) {
        fprintf(stderr, "--rows is %d or more\n", 2 * IDS);
        return EXIT_FAILURE;
    }
    CHECK(rondo_op_register(&sgd));
    g_tables[0] = malloc((size_t)rows * WIDTH * sizeof(float));
    g_tables[1] = malloc((size_t)IDS * WIDTH * sizeof(float));
    if (g_tables[0] == NULL || g_tables[1] == NULL) {
        fprintf(stderr, "no memory for %lld rows\n", (long long)rows);
        return EXIT_FAILURE;
    }
    uint32_t noise = 1;
    for (size_t i = 0; i < (size_t)rows * WIDTH; ++i) {
        noise = noise * 1664525u + 1013904223u;
        g_tables[0][i] = (float)(noise >> 8) * 0x1p-24f - 0.5f;
    }
    for (size_t i = 0; i < IDS * WIDTH; ++i) {
        g_label[i] = i % WIDTH == i / WIDTH ? 1.0f : 0.0f;
    }
    const int outcome = run_both(device, rows, places, place_count);
    free(g_tables[0]);
    free(g_tables[1]);
    return outcome;
}
