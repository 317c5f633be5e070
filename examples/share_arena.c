// Models that run one after the other need their values' memory one after the other: executors with
// a common run arena lie in the same bytes. How many these are is asked first: arena_bytes of the
// statistics, here of the largest model.
//
//   share_arena [DEVICE]
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/models.h>

enum { MODELS = 3, ROUNDS = 3 };

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

// y = x @ transpose(x): values of rows * rows.
static rondo_program *make_program(int64_t rows) {
    rondo_builder *builder;
    rondo_program *program;
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "x",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 2,
                          .extent = {rows, 16}};
    check(rondo_builder_create(NULL, &builder));
    check(rondo_builder_add_input(builder, &x));
    check(rondo_builder_add_node(builder, "Transpose", (const char *[]){"x"}, 1,
                                 (const char *[]){"t"}, 1, NULL));
    check(rondo_builder_add_node(builder, "MatMul", (const char *[]){"x", "t"}, 2,
                                 (const char *[]){"y"}, 1, NULL));
    check(rondo_builder_add_output(builder, "y", NULL));
    check(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);
    return program;
}

int main(int argc, char **argv) {
    static const int64_t rows[MODELS] = {64, 128, 256};
    static float ones[256 * 16];
    rondo_device *device;
    rondo_run_arena *arena;
    rondo_executor *executors[MODELS];
    check(rondo_device_open(argc > 1 ? argv[1] : "auto", &device));
    const rondo_run_arena_options enough = {.struct_size = sizeof enough, .bytes = 320 << 10};
    check(rondo_run_arena_create(device, &enough, &arena));
    const rondo_executor_options options = {.struct_size = sizeof options, .run_arena = arena};
    for (int m = 0; m < MODELS; ++m) {
        rondo_program *program = make_program(rows[m]);
        check(rondo_executor_create(program, device, &options, &executors[m]));
        rondo_program_destroy(program);
    }
    for (size_t i = 0; i < sizeof ones / sizeof *ones; ++i) {
        ones[i] = 1;
    }

    int wrong = 0;
    uint64_t sum = 0;
    for (int i = 0; i < MODELS * ROUNDS; ++i) {
        const int m = i % MODELS;
        const rondo_binding x = {"x",
                                 {.dtype = RONDO_DTYPE_F32,
                                  .shape = {.rank = 2, .extent = {rows[m], 16}},
                                  .data = ones}};
        rondo_binding y = {.name = "y"};
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        check(rondo_executor_run(executors[m], &x, 1, &y, 1));
        check(rondo_executor_get_stats(executors[m], &stats));
        sum += i < MODELS ? stats.arena_bytes : 0;
        wrong += ((const float *)y.tensor.data)[rows[m] * rows[m] - 1] != 16;
        rondo_tensor_deinit(&y.tensor);
    }
    const uint64_t shared = rondo_run_arena_get_bytes(arena);
    printf("%d models on %s: %llu KiB together, %llu KiB shared, %d wrong results\n", MODELS,
           rondo_device_get_name(device), (unsigned long long)sum / 1024,
           (unsigned long long)shared / 1024, wrong);

    for (int m = 0; m < MODELS; ++m) {
        rondo_executor_destroy(executors[m]);
    }
    rondo_run_arena_destroy(arena);
    rondo_device_release(device);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
