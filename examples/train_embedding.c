// A table of words on the processor: forward, backward and SGD, one program.
//
//   train_embedding [DEVICE] [ROWS]      10 000 000 rows of 150 take 5.6 GiB
//
// The table is a variable; the scope "cpu" keeps what looks it up and changes it on the processor.
// Only rows that were looked up change, and only they travel where the rest runs on a GPU: the
// table lies in host memory, since no op of the GPU reads it.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/models.h>

enum { WIDTH = 150, IDS = 64, STEPS = 50 };

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s\n", rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv) {
    const int64_t rows = argc > 2 ? atoll(argv[2]) : 10000;
    const rondo_start start = {.struct_size = sizeof start, .kind = RONDO_START_NORMAL, .b = 0.1};
    const rondo_port table = {.struct_size = sizeof table,
                              .name = "table",
                              .dtype = RONDO_DTYPE_F32,
                              .rank = 2,
                              .extent = {rows, WIDTH}};
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
    const rondo_minimize_options sgd = {.struct_size = sizeof sgd, .learning_rate = 500.0};
    rondo_builder *b;
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    check(rondo_builder_create(NULL, &b));
    check(rondo_builder_add_variable(b, &table, &start));
    check(rondo_builder_add_input(b, &ids));
    check(rondo_builder_add_input(b, &label));
    check(rondo_builder_begin_place(b, "cpu"));
    check(rondo_builder_add_embedding(b, "ids", "table", "rows"));
    check(rondo_builder_end_place(b));
    check(rondo_builder_add_l2_normalize(b, "rows", 1, 1e-12f, "unit"));
    check(rondo_builder_add_square_error_cost(b, "unit", "label", "cost"));
    check(rondo_builder_add_mean(b, "cost", "loss"));
    check(rondo_builder_add_output(b, "loss", NULL));
    check(rondo_builder_minimize(b, "loss", &sgd));
    check(rondo_builder_finish(b, &program));
    check(rondo_device_open(argc > 1 ? argv[1] : "auto", &device));
    check(rondo_executor_create(program, device, NULL, &executor));

    static int64_t id[IDS];
    static float wanted[IDS][WIDTH];
    float first = 0.0f, loss = 0.0f;
    for (int64_t i = 0; i < IDS; ++i) {
        id[i] = i * 7919 % rows;
        wanted[i][i % WIDTH] = 1.0f;
    }
    const rondo_binding feeds[] = {
        {.name = "ids", .tensor = {.dtype = RONDO_DTYPE_I64, .shape = {1, {IDS}}, .data = id}},
        {.name = "label",
         .tensor = {.dtype = RONDO_DTYPE_F32, .shape = {2, {IDS, WIDTH}}, .data = wanted}}};
    rondo_binding fetch = {.name = "loss", .tensor = {.dtype = RONDO_DTYPE_F32, .data = &loss}};
    for (int step = 0; step < STEPS; ++step) {
        check(rondo_executor_run(executor, feeds, 2, &fetch, 1));
        first = step == 0 ? loss : first;
    }
    printf("loss %.6f, after %d steps %.6f\n", (double)first, STEPS, (double)loss);
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
    rondo_builder_destroy(b);
    return loss < first / 10.0f ? EXIT_SUCCESS : EXIT_FAILURE;
}
