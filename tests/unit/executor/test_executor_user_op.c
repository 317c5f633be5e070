// Ops that the program registers, on the host and on the fake driver: right in every run, whatever
// they do in a capture; found, bypassed and remembered where they cannot be captured; from models
// and from the builder; bad definitions and bad functions.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor/state/capture_verdict.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/build_node.h"
#include "support/models/user_ops.h"
#include "support/short_forms.h"
#include "support/sweep.h"
#include "support/test.h"

enum { CHAIN = 100 };

static rondo_device *device;

static int open_host(void **state) {
    (void)state;
    user_ops_reset();
    OK(user_ops_register());
    OK(rondo_device_open("host", &device));
    return 0;
}

static int open_fake(void **state) {
    (void)state;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    user_ops_reset();
    OK(user_ops_register());
    OK(rondo_device_open("cuda:0", &device));
    return 0;
}

static int close_host(void **state) {
    (void)state;
    user_ops_reset();
    rondo_device_release(device);
    return 0;
}

static int close_fake(void **state) {
    (void)close_host(state);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
    return 0;
}

// ---- chains -----------------------------------------------------------------------------------

typedef struct chain {
    rondo_program *program;
    rondo_executor *executor;
    size_t count;
} chain;

static void open_chain(chain *c, size_t count, const char *const *faults,
                       rondo_graphs_mode graphs) {
    const rondo_executor_options options = {.struct_size = sizeof options, .graphs = graphs};
    c->count = count;
    OK(user_ops_build_chain(count, faults, &c->program));
    OK(rondo_executor_create(c->program, device, &options, &c->executor));
}

static void close_chain(chain *c) {
    rondo_executor_destroy(c->executor);
    rondo_program_destroy(c->program);
}

static void run_chain(chain *c) {
    float y[USER_OPS_WIDTH];
    OK(user_ops_run_chain(c->executor, y));
    for (size_t i = 0; i < USER_OPS_WIDTH; ++i) {
        assert_true(y[i] == (float)c->count);
    }
}

static rondo_executor_stats get_stats(const chain *c) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(c->executor, &stats));
    return stats;
}

static void expect_counts(const chain *c, size_t segments, size_t bypassed) {
    const rondo_executor_stats stats = get_stats(c);
    if (stats.segment_count != segments || stats.bypassed_count != bypassed) {
        fail_msg("%zu segments and %zu bypassed, not %zu and %zu", (size_t)stats.segment_count,
                 (size_t)stats.bypassed_count, segments, bypassed);
    }
    assert_int_equal(stats.op_count, c->count);
    assert_int_equal(stats.node_count, c->count - bypassed);  // all else is in graphs
}

// A fault at each place of a long chain: found, bypassed, and known to the next executor.
static void plant_everywhere(const char *fault) {
    for (size_t at = sweep_get_first(); at < CHAIN; at += sweep_get_every()) {
        const char *faults[CHAIN] = {NULL};
        const size_t segments = at == 0 || at == CHAIN - 1 ? 1 : 2;
        faults[at] = fault;
        user_ops_reset();
        chain c;
        open_chain(&c, CHAIN, faults, RONDO_GRAPHS_AUTO);
        for (int run = 0; run < 4; ++run) {
            run_chain(&c);
        }
        expect_counts(&c, segments, 1);
        chain again;
        open_chain(&again, CHAIN, faults, RONDO_GRAPHS_ON);
        run_chain(&again);
        const size_t before = user_ops_count_launches();
        run_chain(&again);
        assert_int_equal(user_ops_count_launches() - before, CHAIN);  // nothing is tried in vain
        run_chain(&again);
        assert_int_equal(user_ops_count_launches() - before, CHAIN + 1);
        expect_counts(&again, segments, 1);
        close_chain(&again);
        close_chain(&c);
    }
}

TEST(test_executor_user_op__planted_everywhere) {
    static const char *const faults[] = {"wait", "wait_silently", "refuse", "fork"};
    for (size_t f = 0; f < sizeof faults / sizeof *faults; ++f) {
        plant_everywhere(faults[f]);
    }
}

// What comes of a chain of eight after some runs.
typedef struct story {
    const char *text;
    const char *faults[8];
    int runs;
    size_t segments;
    size_t bypassed;
} story;

TEST(test_executor_user_op__stories) {
    static const story stories[] = {
        {"nothing is wrong", {NULL}, 2, 1, 0},
        {"two at once", {NULL, "wait", NULL, NULL, "refuse", NULL, NULL, NULL}, 2, 3, 2},
        {"two beside each other", {NULL, NULL, "wait", "fork", NULL, NULL, NULL, NULL}, 2, 2, 2},
        {"all of them", {"wait", "wait", "wait", "wait", "wait", "wait", "wait", "wait"}, 2, 0, 8},
        {"one that fails once", {NULL, NULL, NULL, "once", NULL, NULL, NULL, NULL}, 2, 1, 0},
        {"by its neighbour",
         {NULL, NULL, "neighbour", "neighbour", NULL, NULL, NULL, NULL},
         2,
         2,
         0},
        {"no memory, once", {NULL, NULL, "memory_once", NULL, NULL, NULL, NULL, NULL}, 6, 1, 0},
        {"no memory, always",
         {NULL, NULL, "allocate_in_vain", NULL, NULL, NULL, NULL, NULL},
         12,
         2,
         1},
    };
    for (size_t s = 0; s < sizeof stories / sizeof *stories; ++s) {
        user_ops_reset();
        chain c;
        print_message("%s\n", stories[s].text);
        open_chain(&c, 8, stories[s].faults, RONDO_GRAPHS_AUTO);
        for (int run = 0; run < stories[s].runs; ++run) {
            run_chain(&c);
        }
        expect_counts(&c, stories[s].segments, stories[s].bypassed);
        run_chain(&c);
        close_chain(&c);
    }
}

// An op that fails in every launch fails the run, by its name and its tensor's; the next run works.
TEST(test_executor_user_op__failure) {
    const char *const faults[5] = {NULL, NULL, "always", NULL, NULL};
    chain c;
    float y[USER_OPS_WIDTH];
    open_chain(&c, 5, faults, RONDO_GRAPHS_AUTO);
    for (int round = 0; round < 3; ++round) {
        user_ops_set_failing(true);
        // Once it is in a graph, nobody asks it.
        if (round == 0) {
            assert_int_equal(user_ops_run_chain(c.executor, y), RONDO_STATUS_DRIVER);
            assert_non_null(strstr(rondo_error_get_last()->message, "step_2"));
            assert_non_null(strstr(rondo_error_get_last()->message, "\"t3\""));
            assert_string_equal(rondo_error_get_last()->op, "step_2");
        }
        user_ops_set_failing(false);
        run_chain(&c);
    }
    close_chain(&c);
}

// An op that says it can be captured, and fails in captures.
static rondo_status launch_sure(rondo_op_node *node, const rondo_op_launch *launch) {
    bool is_recording = false;
    OK(rondo_stream_is_recording(launch->stream, &is_recording));
    return is_recording
               ? rondo_op_fail(node, RONDO_STATUS_DRIVER, "it was not so sure")
               : rondo_tensor_copy(launch->stream, &launch->inputs[0], &launch->outputs[0]);
}

static rondo_program *build_sure(void) {
    static bool is_there;
    const rondo_op_definition sure = {.struct_size = sizeof sure,
                                      .domain = "test",
                                      .name = "Sure",
                                      ONE_TO_ONE,
                                      .infer = user_ops_infer_same,
                                      .host = {.launch = launch_sure},
                                      .cuda = {.launch = launch_sure},
                                      .capture = RONDO_OP_CAPTURE_YES};
    const rondo_builder_node_options options = {.struct_size = sizeof options, .domain = "test"};
    if (!is_there) {
        OK(rondo_op_register(&sure));
        is_there = true;
    }
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 4)));
    build_node(builder, "Sure", "x", "y", &options);
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

// How the last of three runs ends.
static rondo_status run_sure(rondo_program *program, rondo_graphs_mode graphs) {
    const rondo_executor_options options = {.struct_size = sizeof options, .graphs = graphs};
    float values[4] = {1, 2, 3, 4};
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {4}}, values, NULL, NULL}};
    rondo_executor *executor;
    rondo_status status = RONDO_STATUS_OK;
    OK(rondo_executor_create(program, device, &options, &executor));
    for (int run = 0; run < 3; ++run) {
        rondo_binding fetch = {.name = "y"};
        status = rondo_executor_run(executor, &feed, 1, &fetch, 1);
        rondo_tensor_deinit(&fetch.tensor);
    }
    rondo_executor_destroy(executor);
    return status;
}

// What ON makes of it does not depend on what other executors found out.
TEST(test_executor_user_op__sure) {
    rondo_program *program = build_sure();
    assert_int_equal(run_sure(program, RONDO_GRAPHS_ON), RONDO_STATUS_DRIVER);
    OK(run_sure(program, RONDO_GRAPHS_AUTO));
    assert_int_equal(run_sure(program, RONDO_GRAPHS_ON), RONDO_STATUS_DRIVER);
    OK(run_sure(program, RONDO_GRAPHS_AUTO));
    rondo_program_destroy(program);
}

// ---- models -----------------------------------------------------------------------------------

// Builds, saves as ONNX, and loads again: a model with ops of a domain of its own.
static rondo_program *pass_through_file(rondo_builder *builder) {
    char path[] = "/tmp/rondo_user_op_XXXXXX";
    rondo_program *built = NULL;
    rondo_program *loaded = NULL;
    built = build_finish(builder);
    const int file = mkstemp(path);
    assert_true(file >= 0);
    (void)close(file);
    OK(rondo_program_save_onnx(built, path));
    OK(rondo_program_load_onnx(path, &loaded));
    (void)unlink(path);
    rondo_program_destroy(built);
    return loaded;
}

static void add_node(rondo_builder *builder, const char *op, const char *const *inputs,
                     size_t input_count, const char *output) {
    const rondo_builder_node_options options = {.struct_size = sizeof options, .domain = "test"};
    OK(rondo_builder_add_node(builder, op, inputs, input_count, &output, 1, &options));
}

static void add_input(rondo_builder *builder, const char *name, rondo_dtype dtype, int64_t extent) {
    rondo_port port = {.struct_size = sizeof port, .name = name, .dtype = dtype, .rank = 1};
    port.extent[0] = extent;
    OK(rondo_builder_add_input(builder, &port));
}

static void run_on(rondo_executor *executor, const rondo_binding *feeds, size_t feed_count,
                   const float *expected, int64_t count) {
    rondo_binding fetch = {.name = "y"};
    OK(rondo_executor_run(executor, feeds, feed_count, &fetch, 1));
    assert_int_equal(rondo_shape_get_count(&fetch.tensor.shape), count);
    for (int64_t i = 0; i < count; ++i) {
        assert_true(((const float *)fetch.tensor.data)[i] == expected[i]);
    }
    rondo_tensor_deinit(&fetch.tensor);
}

// A shape that depends on data, known to be of one axis; in front of it what can be captured.
TEST(test_executor_user_op__data_dependent) {
    rondo_builder *builder = build_begin();
    add_input(builder, "x", RONDO_DTYPE_F32, 3);
    add_node(builder, "Step", (const char *[]){"x"}, 1, "h");
    add_node(builder, "Positive", (const char *[]){"h"}, 1, "y");
    OK(rondo_builder_add_output(builder, "y", NULL));
    rondo_program *program = pass_through_file(builder);
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, NULL, &executor));
    float x[3] = {1, -5, 3};
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {3}}, x, NULL, NULL}};
    for (int run = 0; run < 3; ++run) {
        run_on(executor, &feed, 1, (const float[]){2, 4}, 2);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// A shape that the value of an input decides: plans by value.
TEST(test_executor_user_op__value_decides) {
    rondo_builder *builder = build_begin();
    add_input(builder, "x", RONDO_DTYPE_F32, 1);
    add_input(builder, "n", RONDO_DTYPE_I64, 1);
    add_node(builder, "Repeat", (const char *[]){"x", "n"}, 2, "h");
    add_node(builder, "Step", (const char *[]){"h"}, 1, "y");
    OK(rondo_builder_add_output(builder, "y", NULL));
    rondo_program *program = pass_through_file(builder);
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, NULL, &executor));
    float x = 6;
    int64_t n = 0;
    const rondo_binding feeds[] = {{"x", {RONDO_DTYPE_F32, {1, {1}}, &x, NULL, NULL}},
                                   {"n", {RONDO_DTYPE_I64, {1, {1}}, &n, NULL, NULL}}};
    for (int run = 0; run < 6; ++run) {
        n = 1 + run % 2;
        run_on(executor, feeds, 2, (const float[]){7, 7}, n);
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    assert_int_equal(stats.plan_count, 2);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// One that says it is impure runs each time, though it has no inputs; another is folded.
TEST(test_executor_user_op__impure) {
    rondo_builder *builder = build_begin();
    add_node(builder, "Tick", NULL, 0, "t");
    add_node(builder, "Step", (const char *[]){"t"}, 1, "y");
    OK(rondo_builder_add_output(builder, "y", NULL));
    rondo_program *program = pass_through_file(builder);
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, NULL, &executor));
    for (int run = 0; run < 4; ++run) {
        run_on(executor, NULL, 0, (const float[]){(float)run + 2}, 1);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);

    const float two[] = {2};
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_constant(builder, "c", RONDO_DTYPE_F32, &(rondo_shape){1, {1}}, two));
    add_node(builder, "Step", (const char *[]){"c"}, 1, "h");
    add_node(builder, "Device", (const char *[]){"h"}, 1, "y");  // without plain C: not folded
    OK(rondo_builder_add_output(builder, "y", NULL));
    program = pass_through_file(builder);
    OK(rondo_executor_create(program, device, NULL, &executor));
    run_on(executor, NULL, 0, (const float[]){4}, 1);
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    assert_int_equal(stats.op_count, 1);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// Half precision leaves the program's own ops in the types that they know.
TEST(test_executor_user_op__half) {
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = RONDO_DTYPE_F16};
    chain c = {.count = 5};
    OK(user_ops_build_chain(c.count, NULL, &c.program));
    OK(rondo_executor_create(c.program, device, &options, &c.executor));
    for (int run = 0; run < 3; ++run) {
        run_chain(&c);
    }
    close_chain(&c);
}

// ---- what is refused --------------------------------------------------------------------------

static rondo_status infer_nothing(rondo_op_node *node, const rondo_tensor *inputs,
                                  size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)inputs;
    (void)input_count;
    (void)outputs;
    (void)output_count;
    return RONDO_STATUS_OK;
}

static void refuse(rondo_op_definition definition, const char *text) {
    assert_int_equal(rondo_op_register(&definition), RONDO_STATUS_INVALID);
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", rondo_error_get_last()->message, text);
    }
}

TEST(test_executor_user_op__definitions) {
    const rondo_op_definition good = {
        .struct_size = sizeof good,
        .domain = "test",
        .name = "Silent",
        .version_min = 2,
        .version_max = 3,
        .output_min = 1,
        .output_max = 1,
        .infer = infer_nothing,
        .host = {.launch = (rondo_status(*)(rondo_op_node *, const rondo_op_launch *))1},
    };
#define REFUSE(field, value, text)       \
    do {                                 \
        rondo_op_definition bad_ = good; \
        bad_.field = value;              \
        refuse(bad_, text);              \
    } while (0)
    REFUSE(domain, NULL, "domain is missing");
    REFUSE(domain, "", "domain is missing");
    REFUSE(domain, "rondo", "choose one of its own");
    static const char *const taken[][2] = {{"ai.onnx", "Add"},
                                           {"ai.onnx.ml", "Scaler"},
                                           {"ai.onnx", "ImageScaler"},
                                           {"ai.onnx.preview", "FlexAttention"},
                                           {"ai.onnx.preview.training", "Gradient"}};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; ++i) {
        rondo_op_definition bad = good;
        bad.domain = taken[i][0];
        bad.name = taken[i][1];
        bad.version_min = bad.version_max = 200;  // of versions that nobody knows either
        refuse(bad, "has the op; choose one of its own");
    }
    REFUSE(name, NULL, "name is missing");
    REFUSE(infer, NULL, "infer is missing");
    REFUSE(host.launch, NULL, "neither");
    REFUSE(input_min, 1, "1 to 0 inputs");
    REFUSE(output_min, 0, "0 to 1 outputs");
    REFUSE(output_max, 255, "1 to 255 outputs");
    REFUSE(version_max, 1, "versions 2 to 1");
    REFUSE(capture, 3, "capture 3");
    REFUSE(flags, 8, "flags 8");
    REFUSE(struct_size, sizeof good + 1, "struct_size");
    REFUSE(name, "Step", "test.Step is there already");
    rondo_op_definition attention = good;
    attention.domain = "com.microsoft";
    attention.name = "DynamicQuantizeLSTM";
    attention.version_min = 1;
    refuse(attention, "is there already");
    assert_int_equal(rondo_op_register(NULL), RONDO_STATUS_INVALID);
    OK(rondo_op_register(&good));
    REFUSE(version_max, 0, "is there already");  // 2 and 3 are taken
    rondo_op_definition later = good;
    later.version_min = 4;
    later.version_max = 0;
    OK(rondo_op_register(&later));
    for (int32_t version = 2; version < 4; ++version) {  // of one op of ONNX's, which is not there
        rondo_op_definition absent = good;
        absent.domain = "ai.onnx";
        absent.name = "AbsentHere";
        absent.version_min = absent.version_max = version;
        OK(rondo_op_register(&absent));
        refuse(absent, "is there already");
    }
}

// An extent that is known when it runs; what it makes has another rank.
static rondo_status infer_open(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                               rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    outputs[0] = (rondo_tensor){.dtype = inputs[0].dtype, .shape = {2, {3, -1}}};
    return RONDO_STATUS_OK;
}

static rondo_status make_cube(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                              rondo_tensor *outputs, size_t output_count) {
    const rondo_shape cube = {3, {1, 1, 1}};
    (void)node;
    (void)input_count;
    (void)output_count;
    return rondo_tensor_init(inputs[0].dtype, &cube, &outputs[0]);
}

TEST(test_executor_user_op__another_rank) {
    const rondo_op_definition definition = {.struct_size = sizeof definition,
                                            .domain = "test.rank",
                                            .name = "Cube",
                                            ONE_TO_ONE,
                                            .infer = infer_open,
                                            .compute = make_cube};
    static bool is_there;
    if (!is_there) {
        OK(rondo_op_register(&definition));
        is_there = true;
    }
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .domain = "test.rank"};
    rondo_program *program;
    rondo_device *opened;
    rondo_executor *executor;
    rondo_builder *builder = build_begin();
    add_input(builder, "x", RONDO_DTYPE_F32, 3);
    build_node(builder, "Cube", "x", "y", &options);
    OK(rondo_builder_add_output(builder, "y", NULL));
    program = build_finish(builder);
    OK(rondo_device_open("host", &opened));
    OK(rondo_executor_create(program, opened, NULL, &executor));
    float x[3] = {1, 2, 3};
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, 3);
    rondo_binding fetch = {.name = "y"};
    assert_int_equal(rondo_executor_run(executor, &feed, 1, &fetch, 1), RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "its infer function foresaw"));
    rondo_executor_destroy(executor);
    rondo_device_release(opened);
    rondo_program_destroy(program);
}

// Outputs that its infer function leaves as they are, and an attribute that it does not know.
TEST(test_executor_user_op__bad_functions) {
    rondo_program *program;
    const char *const output = "y";
    rondo_builder_node_options options = {
        .struct_size = sizeof options, .domain = "test", .version = 2, .name = "quiet"};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_node(builder, "Silent", NULL, 0, &output, 1, &options));
    OK(rondo_builder_add_output(builder, "y", NULL));
    assert_int_equal(rondo_builder_finish(builder, &program), RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "quiet"));
    rondo_builder_destroy(builder);

    OK(rondo_builder_create(NULL, &builder));
    add_input(builder, "x", RONDO_DTYPE_I64, 3);
    const rondo_attribute unknown = ATTRIBUTE_INT("speed", 0);
    const char *const input = "x";
    options.attributes = &unknown;
    options.attribute_count = 1;
    assert_int_equal(rondo_builder_add_node(builder, "Step", &input, 1, &output, 1, &options),
                     RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "speed"));
    options.attribute_count = 0;
    OK(rondo_builder_add_node(builder, "Step", &input, 1, &output, 1, &options));
    OK(rondo_builder_add_output(builder, "y", NULL));
    assert_int_equal(rondo_builder_finish(builder, &program), RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "Step node \"quiet\": takes f32"));
    rondo_builder_destroy(builder);
}

#define CASES(X)          \
    X(planted_everywhere) \
    X(stories)            \
    X(failure)            \
    X(sure)               \
    X(data_dependent)     \
    X(value_decides)      \
    X(impure)             \
    X(half)

int main(void) {
#define ON_HOST(name) \
    cmocka_unit_test_setup_teardown(test_executor_user_op__##name, open_host, close_host),
#define ON_FAKE(name) \
    cmocka_unit_test_setup_teardown(test_executor_user_op__##name, open_fake, close_fake),
    const struct CMUnitTest host[] = {CASES(ON_HOST) ON_HOST(definitions) ON_HOST(bad_functions)
                                          ON_HOST(another_rank)};
    const struct CMUnitTest fake[] = {CASES(ON_FAKE)};
    rondo_log_set_level(RONDO_LOG_ERROR);
    const int failures = cmocka_run_group_tests_name("host", host, NULL, NULL);
    return failures + cmocka_run_group_tests_name("fake", fake, NULL, NULL);
}
