// Which ops are bypassed where shapes depend on data or pass through control flow, and that the
// results stay right: the first run is eager, the second captures, the third replays.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/model_fixture.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

// ---- models -----------------------------------------------------------------------------------

// y = Sqrt(Relu(2 * sum of the indices of what is not 0)).
static void build_count(model_builder *b) {
    static const float two[] = {2};
    model_builder_add_floats(b, b->graph, "two", two, 1);
    model_builder_add_node(b, b->graph, "NonZero", "found", "x", "n");
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "Cast", "cast", "n", "c"), "to",
                          FLOAT);
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "ReduceSum", "sum", "c", "s"),
                          "keepdims", 0);
    model_builder_add_node(b, b->graph, "Mul", "double", "s two", "d");
    model_builder_add_node(b, b->graph, "Relu", "relu", "d", "r");
    model_builder_add_node(b, b->graph, "Sqrt", "root", "r", "y");
}

static Onnx__GraphProto *build_branch(model_builder *b, const char *op, const char *inputs) {
    Onnx__GraphProto *branch = model_builder_new_graph(b, op);
    char output[32];
    (void)snprintf(output, sizeof output, "%s_out", op);
    model_builder_add_node(b, branch, op, op, inputs, output);
    model_builder_add_output(b, branch, output, FLOAT, NULL);
    return branch;
}

// y = Exp(x > 0 somewhere ? f(x) : g(x)) + x
static void build_if(model_builder *b, const char *then_op, const char *then_inputs,
                     const char *else_op) {
    static const float zero[] = {0};
    model_builder_add_floats(b, b->graph, "zero", zero, 1);
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "ReduceMax", "max", "x", "m"),
                          "keepdims", 0);
    model_builder_add_node(b, b->graph, "Greater", "greater", "m zero", "c");
    Onnx__NodeProto *node = model_builder_add_node(b, b->graph, "If", "if", "c", "i");
    Onnx__GraphProto *branch = build_branch(b, then_op, then_inputs);
    if (strcmp(then_op, "Concat") == 0) {
        model_builder_set_int(b, branch->node[0], "axis", 0);
    }
    model_builder_add_body(b, node, "then_branch", branch);
    model_builder_add_body(b, node, "else_branch", build_branch(b, else_op, "x"));
    model_builder_add_node(b, b->graph, "Exp", "exp", "i", "e");
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "ReduceSum", "sum", "e", "s"),
                          "keepdims", 0);
    model_builder_add_node(b, b->graph, "Add", "add", "s x", "y");
}

static void build_if_alike(model_builder *b) {
    build_if(b, "Neg", "x", "Abs");
}

static void build_if_apart(model_builder *b) {
    build_if(b, "Concat", "x x", "Abs");
}

// Two turns over a state; rows of it, too. `op` makes the next state, `inputs` names s and x.
static void build_loop(model_builder *b, const char *op, const char *inputs) {
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    model_builder_add_input(b, body, "i", INT64, "");
    model_builder_add_input(b, body, "c", BOOL, "");
    model_builder_add_input(b, body, "s", FLOAT, NULL);
    model_builder_add_node(b, body, "Identity", "keep", "c", "c2");
    Onnx__NodeProto *step = model_builder_add_node(b, body, op, "step", inputs, "s2");
    if (strcmp(op, "Concat") == 0) {
        model_builder_set_int(b, step, "axis", 0);
    }
    model_builder_set_int(b, model_builder_add_node(b, body, "ReduceSum", "row", "s2", "o"),
                          "keepdims", 0);
    model_builder_add_output(b, body, "c2", BOOL, "");
    model_builder_add_output(b, body, "s2", FLOAT, NULL);
    model_builder_add_output(b, body, "o", FLOAT, NULL);
    static const int64_t turns = 2;
    Onnx__TensorProto *count = model_builder_add_initializer(b, b->graph, "turns", INT64, 0, NULL);
    model_builder_set_raw(b, count, &turns, sizeof turns);
    Onnx__NodeProto *node =
        model_builder_add_node(b, b->graph, "Loop", "loop", "turns - x", "f rows");
    model_builder_add_body(b, node, "body", body);
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "ReduceSum", "sum", "f", "fs"),
                          "keepdims", 0);
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "ReduceMax", "most", "rows", "rs"),
                          "keepdims", 0);
    model_builder_add_node(b, b->graph, "Add", "add", "fs rs", "a");
    model_builder_add_node(b, b->graph, "Neg", "negate", "a", "y");
}

static void build_loop_alike(model_builder *b) {
    build_loop(b, "Add", "s x");
}

static void build_loop_growing(model_builder *b) {
    build_loop(b, "Concat", "s x");
}

// y = -(sum of the rows of a scan over x that adds up).
static void build_scan(model_builder *b) {
    static const float values[] = {0};
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    model_builder_add_input(b, body, "s", FLOAT, NULL);
    model_builder_add_input(b, body, "v", FLOAT, NULL);
    model_builder_add_node(b, body, "Add", "step", "s v", "s2");
    model_builder_add_node(b, body, "Identity", "row", "s2", "o");
    model_builder_add_output(b, body, "s2", FLOAT, NULL);
    model_builder_add_output(b, body, "o", FLOAT, NULL);
    model_builder_add_floats(b, b->graph, "zero", values, 1);
    Onnx__NodeProto *node = model_builder_add_node(b, b->graph, "Scan", "scan", "zero x", "f o");
    model_builder_add_body(b, node, "body", body);
    model_builder_set_int(b, node, "num_scan_inputs", 1);
    model_builder_add_node(b, b->graph, "Neg", "negate", "o", "n");
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "ReduceSum", "sum", "n", "y"),
                          "keepdims", 0);
}

// ---- runs -------------------------------------------------------------------------------------

static void open_model(model_fixture *f, void (*build)(model_builder *)) {
    model_fixture_init(f);
    model_builder_add_input(&f->builder, f->builder.graph, "x", FLOAT, "k");
    build(&f->builder);
    model_builder_add_output(&f->builder, f->builder.graph, "y", FLOAT, NULL);
    model_fixture_load(f);
}

static rondo_status run(const model_fixture *f, float *x, int64_t count, rondo_binding *out_y) {
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, count);
    *out_y = (rondo_binding){.name = "y"};
    return rondo_executor_run(f->executor, &feed, 1, out_y, 1);
}

static void expect_first(const model_fixture *f, float *x, int64_t count, double wanted) {
    rondo_binding y;
    OK(run(f, x, count, &y));
    const double got = (double)((const float *)y.tensor.data)[0];
    if (!(got - wanted <= 1e-4 && wanted - got <= 1e-4)) {
        print_error("got %g, wanted %g\n", got, wanted);
    }
    assert_true(got - wanted <= 1e-4 && wanted - got <= 1e-4);
    rondo_tensor_deinit(&y.tensor);
}

// y[0] for x = {0, 1, 2}, {3, 0, -1}, {-1, -2, -3}.
static const struct {
    void (*build)(model_builder *);
    size_t bypass_limit;
    double wanted[3];
} cases[] = {
    {build_count, 3, {2.4494897, 2, 2.4494897}},
    {build_if_alike, 1, {0 + 1.503215, 3 + 3.768069, -1 + 30.19288}},
    {build_if_apart, 3, {0 + 22.214674, 3 + 42.906832, -1 + 30.19288}},
    {build_loop_alike, 1, {-18, -12, 30}},
    {build_loop_growing, 2, {-18, -12, 30}},
    {build_scan, 1, {-4, -8, 10}},
};

TEST(test_executor_shapes__fewer_are_bypassed) {
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
        float x[3][3] = {{0, 1, 2}, {3, 0, -1}, {-1, -2, -3}};
        model_fixture f;
        open_model(&f, cases[c].build);
        for (size_t i = 0; i < 9; ++i) {
            expect_first(&f, x[i % 3], 3, cases[c].wanted[i % 3]);
        }
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        OK(rondo_executor_get_stats(f.executor, &stats));
        if (stats.bypassed_count > cases[c].bypass_limit) {
            print_error("case %zu: %zu are bypassed\n", c, (size_t)stats.bypassed_count);
        }
        assert_true(stats.bypassed_count <= cases[c].bypass_limit);
        assert_true(stats.node_count > 0);
        model_fixture_deinit(&f);
    }
}

// y = an If whose branches capture what NonZero found: nobody can plan them ahead.
static void build_captured(model_builder *b) {
    model_builder_add_node(b, b->graph, "NonZero", "found", "x", "n");
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "Cast", "cast", "n", "f"), "to",
                          FLOAT);
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "ReduceMax", "max", "x", "m"),
                          "keepdims", 0);
    model_builder_set_int(b, model_builder_add_node(b, b->graph, "Cast", "test", "m", "c"), "to",
                          BOOL);
    Onnx__NodeProto *node = model_builder_add_node(b, b->graph, "If", "if", "c", "y");
    model_builder_add_body(b, node, "then_branch", build_branch(b, "Neg", "f"));
    model_builder_add_body(b, node, "else_branch", build_branch(b, "Abs", "f"));
}

TEST(test_executor_shapes__bodies_that_wait_for_shapes) {
    static text_sink text;
    model_fixture f;
    open_model(&f, build_captured);
    text.length = 0;
    OK(rondo_executor_describe(f.executor, RONDO_TEXT_PLAIN, text_sink_append, &text));
    assert_non_null(strstr(text.text,
                           "    then_branch: 1 op, planned at the first run\n"
                           "      Neg                  Neg\n"));
    text.length = 0;
    OK(rondo_executor_describe(f.executor, RONDO_TEXT_JSON, text_sink_append, &text));
    assert_non_null(strstr(text.text, "\"ops\": [{\"op\": \"Neg\", \"name\": \"Neg\"}]}"));
    rondo_executor_destroy(f.executor);
    rondo_executor_options options = {.struct_size = sizeof options};
    options.dtype = RONDO_DTYPE_F16;
    OK(rondo_executor_create(f.program, f.device, &options, &f.executor));
    text.length = 0;
    OK(rondo_executor_describe(f.executor, RONDO_TEXT_PLAIN, text_sink_append, &text));
    assert_non_null(strstr(text.text, "of if: decided when it runs"));
    model_fixture_deinit(&f);
}

TEST(test_executor_shapes__branch_and_loop) {
    char path[512];
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    float x[48] = {0.5f};
    int64_t steps = 3;
    const rondo_binding feeds[2] = {BIND("x", RONDO_DTYPE_F32, x, 3, 16),
                                    BIND("steps", RONDO_DTYPE_I64, &steps)};
    (void)snprintf(path, sizeof path, "%s/tests/models/branch_and_loop/model.onnx",
                   get_source_dir());
    OK(rondo_device_open("host", &device));
    OK(rondo_program_load_onnx(path, &program));
    OK(rondo_executor_create(program, device, NULL, &executor));
    rondo_binding fetch = {.name = "turns"};
    OK(rondo_executor_run(executor, feeds, 2, &fetch, 1));
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    assert_true(stats.bypassed_count <= 3);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// A plan that foresees another shape than comes out says so, and names the node.
TEST(test_executor_shapes__wrong_foresight_is_an_error) {
    model_fixture f;
    float x[3] = {0, 1, 2};
    rondo_binding y;
    open_model(&f, build_count);
    expect_first(&f, x, 3, 2.4494897);
    const rondo_program *program = f.executor->main.current->program;
    const int32_t n = rondo__program_find_value(program, "n");
    assert_true(n >= 0 && program->values[n].has_shape && program->values[n].rank == 2);
    assert_int_equal(program->values[n].dims[0].number, 1);
    assert_int_equal(program->values[n].dims[1].number, -1);
    program->values[n].dims[0].number = 5;
    assert_int_equal(run(&f, x, 3, &y), RONDO_STATUS_INTERNAL);
    const char *message = rondo_error_get_last()->message;
    if (strstr(message,
               "NonZero node \"found\" is i64 [1, 2], but shape inference foresaw i64 "
               "[5, ?]") == NULL) {
        print_error("%s\n", message);
        fail();
    }
    program->values[n].dims[0].number = 1;
    expect_first(&f, x, 3, 2.4494897);
    model_fixture_deinit(&f);
}

TEST_MAIN()
