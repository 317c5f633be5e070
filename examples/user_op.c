// An op of the program's own in a model: a part on the stream, and one that waits in its launch.
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

// com.example.Bars: as many rows as the attribute `heights` has numbers, row i filled with the i-th
// of them; as long as the input. What it does is the same on a GPU and on the host. The calls are
// counted in the definition's data: a launch that was captured is called no more.
static rondo_status infer(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                          rondo_tensor *outputs, size_t output_count) {
    rondo_attribute heights;
    (void)input_count;
    (void)output_count;
    if (!rondo_op_get_attribute(node, "heights", &heights) || inputs[0].shape.rank != 1) {
        return rondo_op_fail(node, RONDO_STATUS_BAD_DATA, "needs `heights`, and an input [n]");
    }
    outputs[0].dtype = RONDO_DTYPE_F32;
    outputs[0].shape = (rondo_shape){2, {(int64_t)heights.count, inputs[0].shape.extent[0]}};
    return RONDO_STATUS_OK;
}

static rondo_status launch(rondo_op_node *node, const rondo_op_launch *launch) {
    rondo_attribute heights;
    rondo_attribute slow;
    const size_t width = (size_t)launch->outputs[0].shape.extent[1];
    rondo_status status = RONDO_STATUS_OK;
    int *launch_count = rondo_op_get_data(node);
    ++*launch_count;
    (void)rondo_op_get_attribute(node, "heights", &heights);
    for (size_t i = 0; i < heights.count && status == RONDO_STATUS_OK; ++i) {
        uint32_t bits;
        memcpy(&bits, &heights.floats[i], sizeof bits);
        status = rondo_stream_fill(launch->stream, (float *)launch->outputs[0].data + i * width,
                                   bits, sizeof bits, width);
    }
    if (status == RONDO_STATUS_OK && rondo_op_get_attribute(node, "slow", &slow)) {
        status = rondo_stream_synchronize(launch->stream);  // no graph can hold this
    }
    return status;
}

int main(void) {
    static int launch_count;  // an op is there until the process ends
    const rondo_op_definition bars = {.struct_size = sizeof bars,
                                      .domain = "com.example",
                                      .name = "Bars",
                                      .input_min = 1,
                                      .input_max = 1,
                                      .output_min = 1,
                                      .output_max = 1,
                                      .infer = infer,
                                      .host = {.launch = launch},
                                      .cuda = {.launch = launch},
                                      .data = &launch_count};
    CHECK(rondo_op_register(&bars));
    rondo_builder *builder;
    const float numbers[] = {1, 2, 3};
    const rondo_attribute attributes[] = {
        {.name = "heights", .kind = RONDO_ATTRIBUTE_FLOATS, .count = 3, .floats = numbers},
        {.name = "slow", .kind = RONDO_ATTRIBUTE_INT, .int_value = 1}};
    rondo_builder_node_options own = {.struct_size = sizeof own,
                                      .domain = "com.example",
                                      .attributes = attributes,
                                      .attribute_count = 1};
    const rondo_port x = {
        .struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1, .extent = {4}};
    CHECK(rondo_builder_create(NULL, &builder));
    CHECK(rondo_builder_add_input(builder, &x));
    CHECK(rondo_builder_add_node(builder, "Bars", (const char *[]){"x"}, 1, (const char *[]){"a"},
                                 1, &own));
    own.attribute_count = 2;
    CHECK(rondo_builder_add_node(builder, "Bars", (const char *[]){"x"}, 1, (const char *[]){"b"},
                                 1, &own));
    CHECK(rondo_builder_add_node(builder, "Mul", (const char *[]){"a", "b"}, 2,
                                 (const char *[]){"y"}, 1, NULL));
    CHECK(rondo_builder_add_output(builder, "y", NULL));
    rondo_program *program;
    CHECK(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);

    rondo_device *device;
    rondo_executor *executor;
    CHECK(rondo_device_open("auto", &device));
    CHECK(rondo_executor_create(program, device, NULL, &executor));
    float row[4] = {0};
    float y[3][4];
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {4}}, row, NULL, NULL}};
    rondo_binding fetch = {"y", {RONDO_DTYPE_F32, {2, {3, 4}}, y, NULL, NULL}};
    for (int run = 0; run < 3; ++run) {  // eager; captured, as far as can be; replayed
        CHECK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        launch_count = run < 2 ? 0 : launch_count;
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    CHECK(rondo_executor_get_stats(executor, &stats));
    printf("%g %g %g; %d ops, %d between graphs; the last run called launch %d time(s)\n",
           (double)y[0][0], (double)y[1][0], (double)y[2][3], (int)stats.op_count,
           (int)stats.bypassed_count, launch_count);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return y[2][3] == 9.0f && stats.bypassed_count == 1 && launch_count == 1 ? EXIT_SUCCESS
                                                                             : EXIT_FAILURE;
}
