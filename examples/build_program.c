// Build a program in code, run it, and save it:  build_program [FILE.onnx]
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/models.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        rondo_status status_ = (call);                                           \
        if (status_ != RONDO_STATUS_OK) {                                        \
            fprintf(stderr, "%s: %s\n", #call, rondo_error_get_last()->message); \
            return EXIT_FAILURE;                                                 \
        }                                                                        \
    } while (0)
int main(int argc, char **argv) {
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 2};
    x.symbol[0] = "batch";
    x.extent[1] = 2;
    const float weights[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const float bias[3] = {-20, 0.5f, 1};
    const rondo_shape w_shape = {2, {2, 3}};
    const rondo_shape b_shape = {1, {3}};
    const char *const gemm[] = {"x", "w", "b"};  // names of values
    const char *const relu = "h";
    const char *const output = "y";
    rondo_builder *builder;
    CHECK(rondo_builder_create(NULL, &builder));
    CHECK(rondo_builder_add_input(builder, &x));
    CHECK(rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F32, &w_shape, weights));
    CHECK(rondo_builder_add_constant(builder, "b", RONDO_DTYPE_F32, &b_shape, bias));
    CHECK(rondo_builder_add_node(builder, "Gemm", gemm, 3, &relu, 1, NULL));
    CHECK(rondo_builder_add_node(builder, "Relu", &relu, 1, &output, 1, NULL));
    CHECK(rondo_builder_add_output(builder, "y", NULL));
    rondo_program *program;
    CHECK(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);

    rondo_device *device;
    rondo_executor *executor;
    CHECK(rondo_device_open("auto", &device));
    CHECK(rondo_executor_create(program, device, NULL, &executor));
    float row[2] = {1, 2};
    rondo_binding feed = {"x", {RONDO_DTYPE_F32, {2, {1, 2}}, row, NULL, NULL}};
    rondo_binding fetch = {.name = "y"};
    CHECK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    const float *y = fetch.tensor.data;
    printf("%g %g %g\n", (double)y[0], (double)y[1], (double)y[2]);
    const int is_right = y[0] == 0.0f && y[1] == 12.5f && y[2] == 16.0f;  // small, so exact
    if (argc > 1) {
        CHECK(rondo_program_save_onnx(program, argv[1]));
    }
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
