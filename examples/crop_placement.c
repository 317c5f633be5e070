// Crop by another tensor's shape: which copies the place of one small op costs.
//
//   size -- Shape -- slice --> how much (rows and columns, without channels)
//                                 |
//                 x ----------- crop --> y
//
// With nothing computed ahead, the shape of `size` and its slice are computed in each run. On the
// GPU the slice is copied there and back, and the crop, whose result it decides, waits for that. On
// the processor nothing is copied. By itself Rondo puts it there; and computes it ahead, where it
// may.
//
//   crop_placement [DEVICE]
// SPDX-License-Identifier: Apache-2.0
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

enum {
    RUNS = 10,
    ROWS = 6,
    COLUMNS = 256,
    KEPT_ROWS = 4,
    KEPT_COLUMNS = 192,
    CHANNELS = 1,
    MASK = 192
};

static float g_x[ROWS][COLUMNS];
static float g_size[KEPT_ROWS][KEPT_COLUMNS][CHANNELS];
static int64_t g_mask[MASK];  // KEPT_ROWS ones
static float g_y[KEPT_ROWS][KEPT_COLUMNS];

// crop of x by the shape of `size`, or of as many rows as `mask` has ones.
static int build(bool from_data, rondo_program **out_program) {
    const int64_t zeros[] = {0, 0};
    const int64_t columns[] = {KEPT_COLUMNS};
    const rondo_port ports[] = {{.struct_size = sizeof *ports,
                                 .name = "x",
                                 .dtype = RONDO_DTYPE_F32,
                                 .rank = 2,
                                 .extent = {ROWS, COLUMNS}},
                                {.struct_size = sizeof *ports,
                                 .name = "size",
                                 .dtype = RONDO_DTYPE_F32,
                                 .rank = 3,
                                 .extent = {KEPT_ROWS, KEPT_COLUMNS, CHANNELS}},
                                {.struct_size = sizeof *ports,
                                 .name = "mask",
                                 .dtype = RONDO_DTYPE_I64,
                                 .rank = 1,
                                 .extent = {MASK}}};
    rondo_builder *builder;
    CHECK(rondo_builder_create(NULL, &builder));
    CHECK(rondo_builder_add_input(builder, &ports[0]));
    CHECK(rondo_builder_add_input(builder, &ports[from_data ? 2 : 1]));
    CHECK(rondo_builder_add_constant(builder, "zeros", RONDO_DTYPE_I64, &(rondo_shape){1, {2}},
                                     zeros));
    CHECK(rondo_builder_add_constant(builder, "columns", RONDO_DTYPE_I64, &(rondo_shape){1, {1}},
                                     columns));
    if (from_data) {
        CHECK(rondo_builder_add_node(builder, "ReduceSum", (const char *[]){"mask"}, 1,
                                     (const char *[]){"ones"}, 1, NULL));
        CHECK(rondo_builder_add_node(
            builder, "Concat", (const char *[]){"ones", "columns"}, 2, (const char *[]){"ends"}, 1,
            &(rondo_builder_node_options){
                .struct_size = sizeof(rondo_builder_node_options),
                .attributes =
                    (const rondo_attribute[]){{.name = "axis", .kind = RONDO_ATTRIBUTE_INT}},
                .attribute_count = 1}));
    } else {
        const int64_t two = 2;
        CHECK(rondo_builder_add_shape(builder, "size", "shape"));
        CHECK(rondo_builder_add_slice(builder, "shape", zeros, zeros, &two, NULL, 1, "ends"));
    }
    CHECK(rondo_builder_add_node(
        builder, "Slice", (const char *[]){"x", "zeros", "ends"}, 3, (const char *[]){"y"}, 1,
        &(rondo_builder_node_options){.struct_size = sizeof(rondo_builder_node_options),
                                      .name = "crop"}));
    CHECK(rondo_builder_add_output(builder, "y", NULL));
    CHECK(rondo_builder_finish(builder, out_program));
    rondo_builder_destroy(builder);
    return EXIT_SUCCESS;
}

typedef struct variant {
    const char *what;
    const char *place;  // NULL: nobody says
    bool no_folding;
    bool from_data;
    int copies;  // in all runs; on a GPU
} variant;

// Runs a variant ten times; prints, and compares, what was copied.
static int run_variant(rondo_device *device, const variant *v) {
    const bool is_host = strcmp(rondo_device_get_name(device), "host") == 0;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .no_folding = v->no_folding,
                                            .place = &v->place,
                                            .place_count = v->place != NULL ? 1 : 0};
    const rondo_binding second = {
        "size", {RONDO_DTYPE_F32, {3, {KEPT_ROWS, KEPT_COLUMNS, CHANNELS}}, g_size, NULL, NULL}};
    const rondo_binding mask = {"mask", {RONDO_DTYPE_I64, {1, {MASK}}, g_mask, NULL, NULL}};
    const rondo_binding feeds[] = {{"x", {RONDO_DTYPE_F32, {2, {ROWS, COLUMNS}}, g_x, NULL, NULL}},
                                   v->from_data ? mask : second};
    rondo_binding fetch = {"y", {RONDO_DTYPE_F32, {2, {KEPT_ROWS, KEPT_COLUMNS}}, g_y, NULL, NULL}};
    rondo_program *program;
    rondo_executor *executor;
    rondo_transfer_stats copied = {.struct_size = sizeof copied};
    rondo_run_times times = {.struct_size = sizeof times};
    if (build(v->from_data, &program) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    CHECK(rondo_executor_create(program, device, &options, &executor));
    for (int run = 0; run < RUNS; ++run) {
        memset(g_y, 0, sizeof g_y);
        CHECK(rondo_executor_run(executor, feeds, 2, &fetch, 1));
        for (int row = 0; row < KEPT_ROWS; ++row) {
            if (memcmp(g_y[row], g_x[row], sizeof g_y[row]) != 0) {
                fprintf(stderr, "%s: row %d is wrong\n", v->what, row);
                return EXIT_FAILURE;
            }
        }
    }
    CHECK(rondo_executor_get_transfers(executor, &copied));
    CHECK(rondo_executor_get_times(executor, &times));
    const int count = (int)(copied.to_device.count + copied.to_host.count);
    const int waited = (int)(copied.synchronous_to_device.count + copied.synchronous_to_host.count);
    printf("%-40s %6d copies, %6d synchronous, %8.1f us a run\n", v->what, count, waited,
           (double)times.latency_ns * 1e-3);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    return waited == (is_host ? 0 : v->copies) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    static const variant variants[] = {
        {"slice on the GPU, nothing ahead", "Slice_*=gpu", true, false, 2 * RUNS},
        {"slice on the processor, nothing ahead", "Slice_*=cpu", true, false, 0},
        {"nobody says, nothing ahead", NULL, true, false, 0},
        {"nobody says", NULL, false, false, 0},
        {"shape from data", NULL, false, true, 0},
    };
    rondo_device *device;
    int result = EXIT_SUCCESS;
    for (int row = 0; row < ROWS; ++row) {
        for (int column = 0; column < COLUMNS; ++column) {
            g_x[row][column] = (float)(row * COLUMNS + column);
        }
    }
    for (int i = 0; i < KEPT_ROWS; ++i) {
        g_mask[7 * i] = 1;
    }
    CHECK(rondo_device_open(argc > 1 ? argv[1] : "auto", &device));
    const bool is_host = strcmp(rondo_device_get_name(device), "host") == 0;
    printf("%d runs on %s\n", RUNS, rondo_device_get_name(device));
    for (size_t i = 0; i < sizeof variants / sizeof *variants; ++i) {
        const bool needs_gpu =
            variants[i].place != NULL && strstr(variants[i].place, "gpu") != NULL;
        if (!(is_host && needs_gpu) && run_variant(device, &variants[i]) != EXIT_SUCCESS) {
            result = EXIT_FAILURE;
        }
    }
    rondo_device_release(device);
    return result;
}
