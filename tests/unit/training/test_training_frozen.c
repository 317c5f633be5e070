// Numbers that a program's own op takes from the host in each launch, such as a rate that goes on
// from run to run: where a program trains, a capture that froze one is found, told and given up.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "executor/state/capture_verdict.h"
#include "rondo/log.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/models/user_ops.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { COUNT = 4 };

static float rate;  // of the host; what test.Decay multiplies by

typedef struct decay_call {
    const float *from;
    float *to;
    uint64_t count;
    float factor;
    uint32_t unused;
} decay_call;

static void run_decay(void *arguments) {
    const decay_call *call = arguments;
    for (uint64_t i = 0; i < call->count; ++i) {
        call->to[i] = call->from[i] * call->factor;
    }
}

static rondo_status launch(const rondo_op_launch *l, float factor) {
    const decay_call call = {l->inputs[0].data, l->outputs[0].data,
                             (uint64_t)rondo_shape_get_count(&l->inputs[0].shape), factor, 0};
    return rondo_stream_launch(l->stream,
                               &LAUNCH("decay", (void *)run_decay, 1, 1, &call, sizeof call));
}

static rondo_status launch_decay(rondo_op_node *node, const rondo_op_launch *l) {
    (void)node;
    return launch(l, rate);
}

static rondo_status launch_half(rondo_op_node *node, const rondo_op_launch *l) {
    (void)node;
    return launch(l, 0.5f);
}

static void register_ops(void) {
    const rondo_op_definition ops[] = {{.struct_size = sizeof *ops,
                                        .domain = "test",
                                        .name = "Decay",
                                        ONE_TO_ONE,
                                        .infer = user_ops_infer_same,
                                        .host = {.launch = launch_decay}},
                                       {.struct_size = sizeof *ops,
                                        .domain = "test",
                                        .name = "Half",
                                        ONE_TO_ONE,
                                        .infer = user_ops_infer_same,
                                        .host = {.launch = launch_half}},
                                       {.struct_size = sizeof *ops,
                                        .domain = "test",
                                        .name = "Sure",
                                        ONE_TO_ONE,
                                        .infer = user_ops_infer_same,
                                        .host = {.launch = launch_decay},
                                        .capture = RONDO_OP_CAPTURE_YES}};
    for (size_t i = 0; i < 3; ++i) {
        OK(rondo_op_register(&ops[i]));
    }
}

// y = op(Half(x + x)); `trains`: a variable counts runs.
static rondo_program *make_program(const char *op, bool trains) {
    const rondo_start start = {.struct_size = sizeof start, .kind = RONDO_START_CONSTANT};
    const rondo_builder_node_options own = {.struct_size = sizeof own, .domain = "test"};
    static const rondo_shape scalar = {0};
    const float one = 1.0f;
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, COUNT)));
    build_node(b, "Add", "x x", "s", NULL);
    build_node(b, "Half", "s", "h", &own);
    build_node(b, op, "h", "y", &own);
    OK(rondo_builder_add_output(b, "y", NULL));
    if (trains) {
        OK(rondo_builder_add_variable(b, &PORT("count", RONDO_DTYPE_F32), &start));
        OK(rondo_builder_add_constant(b, "one", RONDO_DTYPE_F32, &scalar, &one));
        build_node(b, "Add", "count one", "next", NULL);
        OK(rondo_builder_set_update(b, "count", "next"));
    }
    return build_finish(b);
}

static char warnings[4096];

static void note_warning(void *data, rondo_log_level level, const char *message) {
    (void)data;
    const size_t used = strlen(warnings);
    if (level == RONDO_LOG_WARNING) {
        (void)snprintf(warnings + used, sizeof warnings - used, "%s\n", message);
    }
}

static rondo_status run(rondo_executor *executor, float *out_y) {
    float x[COUNT] = {1.0f, 2.0f, 3.0f, 4.0f};
    const rondo_shape shape = {1, {COUNT}};
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, x, shape);
    rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, out_y, shape);
    return rondo_executor_run(executor, &feed, 1, &fetch, 1);
}

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
} world;

static void open_world(const char *op, bool trains, rondo_graphs_mode graphs, world *w) {
    const rondo_executor_options options = {.struct_size = sizeof options, .graphs = graphs};
    rondo__verdict_forget_all();
    warnings[0] = '\0';
    w->program = make_program(op, trains);
    OK(rondo_device_open("host", &w->device));
    OK(rondo_executor_create(w->program, w->device, &options, &w->executor));
}

static rondo_executor_stats close_world(world *w) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(w->executor, &stats));
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
    return stats;
}

// The rate changes each run, which the run after the capture finds; nothing was replayed yet.
TEST(changing_numbers_are_found) {
    world w;
    float y[COUNT];
    open_world("Decay", true, RONDO_GRAPHS_AUTO, &w);
    for (int i = 0; i < 8; ++i) {
        rate = 1.0f / (float)(i + 1);
        OK(run(w.executor, y));
        for (int k = 0; k < COUNT; ++k) {
            assert_true(y[k] == (float)(k + 1) * rate);
        }
    }
    assert_non_null(strstr(warnings, "Decay"));
    assert_non_null(strstr(warnings, "argument word 3"));
    assert_non_null(strstr(warnings, "hand them over as inputs"));
    assert_null(strstr(warnings, "Half"));
    const rondo_executor_stats stats = close_world(&w);
    assert_int_equal(stats.bypassed_count, 1);
    assert_true(stats.segment_count >= 1);
}

// One that changes later is found at the next look: 1, 2, 4, 8 runs behind the capture.
TEST(later_changes_are_found) {
    world w;
    float y[COUNT];
    rate = 0.5f;
    open_world("Decay", true, RONDO_GRAPHS_AUTO, &w);
    for (int i = 0; i < 12; ++i) {
        rate = i < 4 ? 0.5f : 0.25f;  // captured by run 1
        OK(run(w.executor, y));
        assert_true(i == 4 || y[3] == 4.0f * rate);  // looked at in runs 2, 3, 5, 9
    }
    assert_non_null(strstr(warnings, "Decay"));
    assert_int_equal(close_world(&w).bypassed_count, 1);
}

// One that stays is captured as before.
TEST(constant_numbers_are_captured) {
    world w;
    float y[COUNT];
    rate = 0.25f;
    open_world("Decay", true, RONDO_GRAPHS_AUTO, &w);
    for (int i = 0; i < 8; ++i) {
        OK(run(w.executor, y));
        assert_true(y[3] == 1.0f);
    }
    assert_string_equal(warnings, "");
    assert_int_equal(close_world(&w).bypassed_count, 0);
}

// Where the caller wants graphs or an error it is an error.
TEST(strict_graphs_make_it_an_error) {
    world w;
    float y[COUNT];
    open_world("Sure", true, RONDO_GRAPHS_ON, &w);
    for (int i = 0; i < 2; ++i) {
        rate = (float)(i + 1);
        OK(run(w.executor, y));
        assert_true(y[0] == rate);
    }
    rate = 3.0f;
    EXPECT(MISMATCH, "Sure", run(w.executor, y));
    (void)close_world(&w);
    assert_non_null(strstr(warnings, "Sure"));
}

// Nothing is recorded twice where nothing trains.
TEST(others_are_left_alone) {
    world w;
    float y[COUNT];
    rate = 1.0f;
    open_world("Decay", false, RONDO_GRAPHS_AUTO, &w);
    for (int i = 0; i < 4; ++i) {
        OK(run(w.executor, y));
    }
    assert_string_equal(warnings, "");
    assert_int_equal(close_world(&w).bypassed_count, 0);
}

// Weights that a body has for itself are no variables, and a warning names one.
TEST(weights_of_bodies_are_named) {
    static const float ones[COUNT] = {1.0f, 1.0f, 1.0f, 1.0f};
    const rondo_shape shape = {1, {COUNT}};
    for (int is_inner = 0; is_inner < 2; ++is_inner) {
        rondo_builder *b = build_begin();
        rondo_builder *bodies[2];
        OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, COUNT)));
        OK(rondo_builder_add_input(b, &PORT("p", RONDO_DTYPE_BOOL)));
        OK(rondo_builder_add_constant(b, "v", RONDO_DTYPE_F32, &shape, ones));
        build_op(b, "Mul", "x", "v", "hidden");
        for (int i = 0; i < 2; ++i) {
            const char *const names[2][2] = {{"w0", "y0"}, {"w1", "y1"}};
            OK(rondo_builder_create_body(b, NULL, &bodies[i]));
            OK(rondo_builder_add_constant(is_inner ? bodies[i] : b, names[i][0], RONDO_DTYPE_F32,
                                          &shape, ones));
            build_op(bodies[i], "Mul", "hidden", names[i][0], names[i][1]);
            OK(rondo_builder_add_output(bodies[i], names[i][1], NULL));
        }
        OK(rondo_builder_add_node(b, "If", (const char *[]){"p"}, 1, (const char *[]){"y"}, 1,
                                  &WITH(ATTRIBUTE_BODY("then_branch", bodies[0]),
                                        ATTRIBUTE_BODY("else_branch", bodies[1]))));
        rondo_builder_destroy(bodies[0]);
        rondo_builder_destroy(bodies[1]);
        OK(rondo_builder_add_mean(b, "y", "loss"));
        warnings[0] = '\0';
        OK(rondo_builder_minimize(b, "loss", NULL));
        assert_true((strstr(warnings, "\"w1\" stands in a body") != NULL) == (is_inner != 0));
        warnings[0] = '\0';
        rondo_builder_destroy(b);
    }
}

static rondo_builder *build_recurrent(void) {
    static const float numbers[COUNT * COUNT] = {0.5f, -0.25f};
    static const int64_t sizes[3] = {1, 1, COUNT};
    const struct {
        const char *name;
        rondo_shape shape;
    } constants[] = {{"w", {3, {1, COUNT, 2}}},
                     {"r", {3, {1, COUNT, COUNT}}},
                     {"start", {3, {1, 1, COUNT}}},
                     {"slope", {1, {1}}},
                     {"shift", {1, {1}}}};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, 3, 1, 2)));
    for (size_t i = 0; i < sizeof constants / sizeof *constants; ++i) {
        OK(rondo_builder_add_constant(b, constants[i].name, RONDO_DTYPE_F32, &constants[i].shape,
                                      numbers));
    }
    const rondo_attribute size = ATTRIBUTE_INT("hidden_size", COUNT);
    OK(rondo_builder_add_constant(b, "sizes", RONDO_DTYPE_I64, &(rondo_shape){1, {3}}, sizes));
    OK(rondo_builder_add_constant(b, "axis", RONDO_DTYPE_I64, &(rondo_shape){1, {1}}, sizes));
    build_op(b, "Expand", "start", "sizes", "first");  // as PyTorch writes them
    build_op(b, "Unsqueeze", "slope", "axis", "wide");
    build_node(b, "RNN", "x w r - - first", "all", &WITH(size));
    build_op(b, "PRelu", "all", "wide", "bent");
    build_op(b, "Add", "bent", "shift", "y");
    OK(rondo_builder_add_mean(b, "y", "loss"));
    return b;
}

// PRelu's slope of one element is trained; other single elements, and the states from which a
// recurrent op starts, are where they are named in full.
TEST(slopes_and_first_states) {
    static const char *const names[] = {"start", "shift"};
    for (size_t named = 0; named < 2; ++named) {
        const rondo_minimize_options options = {.struct_size = sizeof options,
                                                .learning_rate = 0.1,
                                                .train = names,
                                                .train_count = named ? 2 : 0};
        rondo_builder *b = build_recurrent();
        OK(rondo_builder_minimize(b, "loss", &options));
        rondo_program *program = build_finish(b);
        rondo_variable variables[8];
        size_t count = 0;
        OK(rondo_program_list_variables(program, 8, variables, &count));
        char found[64] = "";
        for (size_t i = 0; i < count; ++i) {
            (void)strcat(strcat(found, variables[i].name), " ");
        }
        assert_string_equal(found, named ? "start shift train.step " : "w r slope train.step ");
        rondo_program_destroy(program);
    }
}

int main(void) {
    register_ops();
    rondo_log_set_sink(note_warning, NULL);
    return RUN_TESTS(NULL, NULL);
}
