// Data that an op does not allow is BAD_DATA for who waits, with the op's name, on the host as on a
// GPU, in the run that captures and in those that replay; and the next run works.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/cases/one_op.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { INPUTS_MAX = 3, BYTES_MAX = 512, GRAPH_RUNS = 3 };

typedef struct fault_input {
    rondo_dtype dtype;
    rondo_shape shape;
} fault_input;

typedef struct fault_case {
    const char *op;
    fault_input inputs[INPUTS_MAX];
    size_t faulty;      // which input is
    int64_t good, bad;  // its first element; all others are 1
} fault_case;

static const int64_t pooled_shape[] = {1, 2};
static const rondo_attribute pooled = {
    .name = "pooled_shape", .kind = RONDO_ATTRIBUTE_INTS, .ints = pooled_shape, .count = 2};
static const rondo_builder_node_options pooling = {
    .struct_size = sizeof pooling, .attributes = &pooled, .attribute_count = 1};

#define INPUT(type, ...) \
    { RONDO_DTYPE_##type, __VA_ARGS__ }
#define BOXES(boxes) INPUT(F32, {4, {2, 3, 4, 4}}), boxes
static const fault_case cases[] = {
    {"Gather", {INPUT(F32, {2, {4, 3}}), INPUT(I64, {1, {5}})}, 1, -4, 4},
    {"Gather", {INPUT(F32, {2, {4, 3}}), INPUT(I32, {1, {5}})}, 1, 3, -5},
    {"GatherElements", {INPUT(F32, {2, {4, 3}}), INPUT(I64, {2, {2, 3}})}, 1, 3, 1000},
    {"GatherND", {INPUT(F32, {2, {4, 3}}), INPUT(I64, {2, {3, 2}})}, 1, 3, 4},
    {"ScatterElements",
     {INPUT(F32, {2, {4, 3}}), INPUT(I64, {2, {1, 3}}), INPUT(F32, {2, {1, 3}})},
     1,
     3,
     INT64_MIN},
    {"ScatterND",
     {INPUT(F32, {2, {4, 3}}), INPUT(I64, {2, {1, 1}}), INPUT(F32, {2, {1, 3}})},
     1,
     3,
     INT64_MAX},
    {"CumSum", {INPUT(F32, {2, {4, 3}}), INPUT(I64, {1, {1}})}, 1, -2, 2},
    {"ReverseSequence", {INPUT(F32, {2, {3, 4}}), INPUT(I64, {1, {4}})}, 1, 3, 4},
    {"NegativeLogLikelihoodLoss", {INPUT(F32, {2, {5, 4}}), INPUT(I64, {1, {5}})}, 1, 3, 4},
    {"SoftmaxCrossEntropyLoss", {INPUT(F32, {2, {5, 4}}), INPUT(I64, {1, {5}})}, 1, 3, -1},
    {"Div", {INPUT(I32, {1, {9}}), INPUT(I32, {1, {9}})}, 1, 2, 0},
    {"Div", {INPUT(I64, {2, {4, 3}}), INPUT(I64, {1, {1}})}, 1, -1, 0},
    {"Mod", {INPUT(U8, {1, {9}}), INPUT(U8, {1, {9}})}, 1, 2, 0},
    {"RoiAlign", {BOXES(INPUT(F32, {2, {3, 4}})), INPUT(I64, {1, {3}})}, 2, 0, 2},
    {"RoiAlign", {BOXES(INPUT(F32, {2, {3, 4}})), INPUT(I64, {1, {3}})}, 2, 1, -1},
    {"RoiAlign", {BOXES(INPUT(F32, {2, {3, 4}})), INPUT(I64, {1, {3}})}, 2, 1, INT64_MIN},
    {"RoiAlign", {BOXES(INPUT(F32, {2, {3, 4}})), INPUT(I64, {1, {3}})}, 1, 0, -1000000},
    {"MaxRoiPool", {BOXES(INPUT(F32, {2, {3, 5}}))}, 1, 0, 2},
    {"MaxRoiPool", {BOXES(INPUT(F32, {2, {3, 5}}))}, 1, 1, -1},
    {"MaxRoiPool", {BOXES(INPUT(F32, {2, {3, 5}}))}, 1, 1, INT64_MAX},
};

static void fill(const fault_input *input, int64_t first, void *data) {
    const int64_t count = rondo_shape_get_count(&input->shape);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t value = i == 0 ? first : 1;
        const float real = (float)value;
        const size_t bytes = rondo_dtype_get_bytes(input->dtype);
        const bool is_real = input->dtype == RONDO_DTYPE_F32;
        memcpy((char *)data + (size_t)i * bytes, is_real ? (const void *)&real : &value, bytes);
    }
}

// One run, waited for by what runs it or by itself.
static rondo_status run(rondo_executor *executor, const rondo_binding *feeds, size_t count,
                        bool is_async) {
    rondo_binding fetch = {.name = "y"};
    rondo_status status = is_async
                              ? rondo_executor_run_async(executor, feeds, count, &fetch, 1, NULL)
                              : rondo_executor_run(executor, feeds, count, &fetch, 1);
    if (is_async && status == RONDO_STATUS_OK) {
        status = rondo_executor_wait(executor);
    }
    rondo_tensor_deinit(&fetch.tensor);
    return status;
}

static void check_case(const fault_case *c, bool is_async) {
    static const char *const names[INPUTS_MAX + 1] = {"a", "b", "c", NULL};
    const char *operands[INPUTS_MAX + 1] = {NULL};
    char data[INPUTS_MAX][BYTES_MAX];
    rondo_port ports[INPUTS_MAX];
    rondo_binding feeds[INPUTS_MAX] = {{0}};
    rondo_device *device;
    rondo_executor *executor;
    size_t count = 0;
    for (; count < INPUTS_MAX && c->inputs[count].dtype != RONDO_DTYPE_NONE; ++count) {
        const fault_input *input = &c->inputs[count];
        ports[count] = (rondo_port){.struct_size = sizeof ports[count],
                                    .name = names[count],
                                    .dtype = input->dtype,
                                    .rank = input->shape.rank};
        memcpy(ports[count].extent, input->shape.extent, sizeof input->shape.extent);
        operands[count] = names[count];
        feeds[count].name = names[count];
        feeds[count].tensor =
            (rondo_tensor){.dtype = input->dtype, .shape = input->shape, .data = data[count]};
        fill(input, 1, data[count]);
    }
    rondo_program *program = one_op_build(c->op, ports, count, operands, "y",
                                          strcmp(c->op, "MaxRoiPool") == 0 ? &pooling : NULL);
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .graphs = RONDO_GRAPHS_ON};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, &options, &executor));
    for (int i = 0; i < 2 * GRAPH_RUNS; ++i) {
        const bool is_bad = i % 2 == 1;
        fill(&c->inputs[c->faulty], is_bad ? c->bad : c->good, data[c->faulty]);
        const rondo_status status = run(executor, feeds, count, is_async);
        const char *blamed = status != RONDO_STATUS_OK ? rondo_error_get_last()->op : "";
        const rondo_status wanted = is_bad ? RONDO_STATUS_BAD_DATA : RONDO_STATUS_OK;
        if (status != wanted || (is_bad && strstr(blamed, c->op) == NULL)) {
            print_error("%s, %s, run %d: %s, \"%s\" of %s\n", on_devices_get_name(), c->op, i,
                        rondo_status_get_name(status), rondo_error_get_last()->message, blamed);
        }
        assert_int_equal(status, wanted);
        assert_true(!is_bad || strstr(blamed, c->op) != NULL);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST(test_executor_faults__who_waits_is_told) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        check_case(&cases[i], false);
        check_case(&cases[i], true);
    }
}

static rondo_status put_rows(rondo_executor *executor, float *x, int64_t *rows) {
    const rondo_binding feeds[] = {BIND("b", RONDO_DTYPE_I64, rows, 4),
                                   BIND("a", RONDO_DTYPE_F32, x, 4, 3)};
    return rondo_executor_run_async(executor, feeds, x != NULL ? 2 : 1, NULL, 0, NULL);
}

// Whoever waits for the stream first: the executor's wait tells, and what the run was to write has
// no value.
TEST(test_executor_faults__a_wait_in_between_hides_nothing) {
    static float x[12] = {1, 2, 3};
    static int64_t good[4] = {3, 2, 1, 0};
    static int64_t bad[4] = {3, 9, 1, 0};
    const rondo_port ports[] = {PORT("a", RONDO_DTYPE_F32, 4, 3), PORT("b", RONDO_DTYPE_I64, 4)};
    const char *const operands[] = {"a", "b", NULL};
    rondo_device *device;
    rondo_executor *executor;
    rondo_program *program = one_op_build("Gather", ports, 2, operands, "y", NULL);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_executor_bind(executor, "y", "a"));
    for (int i = 0; i < GRAPH_RUNS; ++i) {
        OK(put_rows(executor, x, good));
        OK(rondo_executor_wait(executor));
        OK(put_rows(executor, NULL, bad));
        (void)!rondo_stream_synchronize(rondo_executor_get_stream(executor));
        OK(put_rows(executor, NULL, good));
        EXPECT(BAD_DATA, "", rondo_executor_wait(executor));
        OK(rondo_executor_wait(executor));
        EXPECT(STATE, "may have written", put_rows(executor, NULL, good));
    }
    OK(put_rows(executor, x, good));
    OK(rondo_executor_wait(executor));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

int main(void) {
    return ON_DEVICES();
}
