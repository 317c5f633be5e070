// Feeds and shapes that contradict each other, on the host and on the fake driver: each run fails
// with an error that names what it is about, and the next one works, eagerly, captured and
// replayed.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_flow.h"
#include "support/fake/fake_random.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { INPUTS_MAX = 3, NODES_MAX = 4 };

typedef struct input {
    const char *name;
    rondo_dtype dtype;
    int32_t rank;
    int64_t extent[2];
    const char *symbol[2];
} input;

typedef struct node {
    const char *op;
    const char *inputs[3];
    const char *output;
} node;

// What is fed: for each input its shape and first elements, the others are ones.
typedef struct feeds {
    int32_t rank[INPUTS_MAX];
    int64_t extent[INPUTS_MAX][2];
    int64_t element[INPUTS_MAX][2];
} feeds;

typedef struct row {
    const char *name;
    input inputs[INPUTS_MAX];
    node nodes[NODES_MAX];
    feeds good;
    feeds bad;
    rondo_status status;
    const char *texts[2];  // of the error: message, op or call
} row;

#define F32 RONDO_DTYPE_F32
#define I64 RONDO_DTYPE_I64

static const row rows[] = {
    {"a feed is smaller than declared",
     {{"x", F32, 1, {6}, {NULL}}},
     {{"Neg", {"x"}, "y"}},
     {{1}, {{6}}, {{0}}},
     {{1}, {{5}}, {{0}}},
     RONDO_STATUS_INVALID,
     {"feed \"x\" has shape [5]", "takes [6]"}},
    {"a feed has another rank",
     {{"x", F32, 1, {6}, {NULL}}},
     {{"Neg", {"x"}, "y"}},
     {{1}, {{6}}, {{0}}},
     {{2}, {{6, 1}}, {{0}}},
     RONDO_STATUS_INVALID,
     {"feed \"x\" has shape [6, 1]", "takes [6]"}},
    {"a symbol is two numbers",
     {{"x", F32, 1, {-1}, {"n"}}, {"z", F32, 1, {-1}, {"n"}}},
     {{"Add", {"x", "z"}, "y"}},
     {{1, 1}, {{6}, {6}}, {{0}}},
     {{1, 1}, {{6}, {4}}, {{0}}},
     RONDO_STATUS_INVALID,
     {"\"x\"", "\"z\""}},
    {"shapes that do not go together",
     {{"x", F32, 1, {-1}, {"n"}}, {"z", F32, 1, {-1}, {"m"}}},
     {{"Neg", {"x"}, "a"}, {"Add", {"a", "z"}, "y"}},
     {{1, 1}, {{6}, {6}}, {{0}}},
     {{1, 1}, {{6}, {4}}, {{0}}},
     RONDO_STATUS_BAD_DATA,
     {"Add", "[6]"}},
    {"an input's value asks for another shape",
     {{"x", F32, 1, {6}, {NULL}}, {"s", I64, 1, {2}, {NULL}}},
     {{"Neg", {"x"}, "a"}, {"Reshape", {"a", "s"}, "b"}, {"Neg", {"b"}, "y"}},
     {{1, 1}, {{6}, {2}}, {{0}, {2, 3}}},
     {{1, 1}, {{6}, {2}}, {{0}, {2, 4}}},
     RONDO_STATUS_BAD_DATA,
     {"Reshape", "[6] has 6 elements"}},
    {"the data asks for another shape",
     {{"x", F32, 1, {4}, {NULL}}, {"z", F32, 2, {1, -1}, {NULL}}},
     {{"NonZero", {"x"}, "a"}, {"CastLike", {"a", "z"}, "b"}, {"Add", {"b", "z"}, "y"}},
     {{1, 2}, {{4}, {1, 3}}, {{0, 1}, {0}}},
     {{1, 2}, {{4}, {1, 3}}, {{1, 1}, {0}}},
     RONDO_STATUS_BAD_DATA,
     {"Add", "[1, 4]"}},
};

static const char *const device_names[] = {"host", "cuda:0"};

static void build(const row *o, rondo_program **out_program) {
    rondo_builder *builder = build_begin();
    for (int i = 0; i < INPUTS_MAX && o->inputs[i].name != NULL; ++i) {
        const input *in = &o->inputs[i];
        rondo_port port = PORT(in->name, in->dtype);
        port.rank = in->rank;
        for (int d = 0; d < in->rank; ++d) {
            port.extent[d] = in->extent[d];
            port.symbol[d] = in->symbol[d];
        }
        OK(rondo_builder_add_input(builder, &port));
    }
    for (int n = 0; n < NODES_MAX && o->nodes[n].op != NULL; ++n) {
        const node *made = &o->nodes[n];
        OK(rondo_builder_add_node(builder, made->op, made->inputs, made->inputs[1] != NULL ? 2 : 1,
                                  &made->output, 1, NULL));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    OK(rondo_builder_finish(builder, out_program));
    rondo_builder_destroy(builder);
}

static rondo_status run(rondo_executor *executor, const row *o, const feeds *fed) {
    rondo_binding bindings[INPUTS_MAX];
    rondo_binding fetch = {.name = "y"};
    size_t count = 0;
    for (; count < INPUTS_MAX && o->inputs[count].name != NULL; ++count) {
        rondo_shape shape = {.rank = fed->rank[count]};
        memcpy(shape.extent, fed->extent[count], sizeof fed->extent[count]);
        bindings[count] = (rondo_binding){.name = o->inputs[count].name};
        OK(rondo_tensor_init(o->inputs[count].dtype, &shape, &bindings[count].tensor));
        for (int64_t e = 0; e < rondo_shape_get_count(&shape); ++e) {
            const int64_t value = e < 2 ? fed->element[count][e] : 1;
            if (o->inputs[count].dtype == I64) {
                ((int64_t *)bindings[count].tensor.data)[e] = value;
            } else {
                ((float *)bindings[count].tensor.data)[e] = (float)value;
            }
        }
    }
    rondo_status status = rondo_executor_run(executor, bindings, count, &fetch, 1);
    rondo_tensor_deinit(&fetch.tensor);
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor_deinit(&bindings[i].tensor);
    }
    return status;
}

static void check_error(const row *o, rondo_status status) {
    const rondo_error *error = rondo_error_get_last();
    char all[600];
    (void)snprintf(all, sizeof all, "%s: %s", error->op, error->message);
    for (int t = 0; t < 2; ++t) {
        if (status != o->status || strstr(all, o->texts[t]) == NULL) {
            fail_msg("%s: status %d, \"%s\"; wanted %d and %s", o->name, (int)status, all,
                     (int)o->status, o->texts[t]);
        }
    }
}

static void expect_row(const row *o, const char *device_name, bool is_good_first) {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    fake_cuda_install_compiler();
    fake_random_set_kernels();
    fake_flow_set_kernels();
    OK(rondo_device_open(device_name, &device));
    build(o, &program);
    OK(rondo_executor_create(program, device, NULL, &executor));
    for (int i = 0; i < 4; ++i) {  // before anything is captured, and when all is
        if (is_good_first || i > 0) {
            OK(run(executor, o, &o->good));
        }
        check_error(o, run(executor, o, &o->bad));
    }
    OK(run(executor, o, &o->good));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

TEST(test_executor_bad_input__is_named_and_harms_nothing) {
    for (size_t d = 0; d < 2; ++d) {
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
            expect_row(&rows[r], device_names[d], false);
            expect_row(&rows[r], device_names[d], true);
        }
    }
}

// Options that are no value of their type: refused by name, and nothing is made.
TEST(test_executor_bad_input__options) {
    static const struct {
        rondo_executor_options options;
        const char *text;
    } wrong[] = {
        {{.graphs = RONDO_GRAPHS_MEASURED + 1}, "options.graphs is 4"},
        {{.graphs = -1}, "options.graphs is -1"},
        {{.tuning = RONDO_TUNING_KEEP + 1}, "options.tuning is 5"},
        {{.tuning = -1}, "options.tuning is -1"},
        {{.branches = RONDO_BRANCHES_OFF + 1}, "options.branches is 3"},
        {{.branches = -7}, "options.branches is -7"},
        {{.self_check_action = 2}, "options.self_check_action is 2"},
        {{.dtype = RONDO_DTYPE_I64}, "options.dtype is i64"},
        {{.thread_count = 1025}, "options.thread_count is 1025"},
    };
    rondo_device *device;
    rondo_program *program;
    OK(rondo_device_open("host", &device));
    build(&rows[0], &program);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        rondo_executor_options options = wrong[i].options;
        rondo_executor *executor = (rondo_executor *)&options;  // is cleared
        options.struct_size = sizeof options;
        assert_int_equal(rondo_executor_create(program, device, &options, &executor),
                         RONDO_STATUS_INVALID);
        assert_null(executor);
        if (strstr(rondo_error_get_last()->message, wrong[i].text) == NULL) {
            fail_msg("\"%s\", wanted %s", rondo_error_get_last()->message, wrong[i].text);
        }
    }
    rondo_program_destroy(program);
    rondo_device_release(device);
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return RUN_TESTS(NULL, NULL);
}
