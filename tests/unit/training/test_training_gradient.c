// Gradients as executors run them: through If, Loop and Scan, of ops of the program's own, of what
// was dropped, at kinks, computed once more, and of programs that are read back.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/models/build_node.h"
#include "support/models/user_ops.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/variables_world.h"

enum { COUNT = 6 };

static const rondo_shape row = {1, {COUNT}};

static rondo_builder *begin(rondo_dtype dtype) {
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", dtype, COUNT)));
    return b;
}

static void add_number(rondo_builder *b, const char *name, rondo_dtype dtype, const void *value) {
    static const rondo_shape scalar = {0};
    OK(rondo_builder_add_constant(b, name, dtype, &scalar, value));
}

// Ends the program "x" to "y" with the gradient "dx".
static void finish(rondo_builder *b, bool trains, const rondo_gradient_options *options,
                   variables_world *w) {
    const rondo_executor_options how = {.struct_size = sizeof how, .training = trains, .seed = 9};
    OK(rondo_builder_add_gradients(b, "y", (const char *[]){"x"}, (const char *[]){"dx"}, 1,
                                   options));
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_add_output(b, "dx", NULL));
    w->program = build_finish(b);
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    OK(rondo_executor_create(w->program, w->device, &how, &w->executor));
}

static double run(const variables_world *w, double *x, double *dx) {
    rondo_binding fetches[] = {{.name = "y"}, {.name = "dx"}};
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F64, x, row);
    OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
    const double *made = fetches[0].tensor.data;
    double sum = 0.0;
    for (int64_t i = 0; i < rondo_shape_get_count(&fetches[0].tensor.shape); ++i) {
        sum += made[i];
    }
    if (dx != NULL) {
        assert_int_equal(rondo_shape_get_count(&fetches[1].tensor.shape), COUNT);
        memcpy(dx, fetches[1].tensor.data, COUNT * sizeof *dx);
    }
    rondo_tensor_deinit(&fetches[0].tensor);
    rondo_tensor_deinit(&fetches[1].tensor);
    return sum;
}

// dx is what differences say, at these points.
static void check(const variables_world *w, double *x) {
    double dx[COUNT];
    (void)run(w, x, dx);
    for (size_t i = 0; i < COUNT; ++i) {
        const double at = x[i];
        x[i] = at + 1e-5;
        const double up = run(w, x, NULL);
        x[i] = at - 1e-5;
        const double down = run(w, x, NULL);
        x[i] = at;
        const double want = (up - down) / 2e-5;
        if (!(fabs(dx[i] - want) <= 1e-6 * (1.0 + fabs(want)))) {
            fail_msg("element %zu: %.9g, by differences %.9g", i, dx[i], want);
        }
    }
}

static void check_both_signs(rondo_builder *b, const rondo_gradient_options *options) {
    double up[COUNT] = {0.3, 0.8, -0.2, 0.7, 0.4, 0.9};
    double down[COUNT] = {-0.3, -0.8, 0.2, -0.7, -0.4, -0.9};
    variables_world w;
    finish(b, false, options, &w);
    check(&w, up);
    check(&w, down);
    check(&w, up);
    variables_close(&w);
}

// ---- control flow -------------------------------------------------------------------------------

TEST(branches) {
    const double zero = 0.0;
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    rondo_builder *yes;
    rondo_builder *no;
    add_number(b, "zero", RONDO_DTYPE_F64, &zero);
    build_node(b, "ReduceSum", "x", "s", &WITH(ATTRIBUTE_INT("keepdims", 0)));
    build_op(b, "Greater", "s", "zero", "is_up");
    build_op(b, "Tanh", "x", NULL, "t");
    OK(rondo_builder_create_body(b, "yes", &yes));
    build_op(yes, "Mul", "x", "t", "a");
    build_op(yes, "Exp", "a", NULL, "a2");
    OK(rondo_builder_add_output(yes, "a2", NULL));
    OK(rondo_builder_add_output(yes, "a", NULL));
    OK(rondo_builder_create_body(b, "no", &no));
    build_op(no, "Sin", "x", NULL, "c");
    build_op(no, "Identity", "c", NULL, "c2");
    OK(rondo_builder_add_output(no, "c", NULL));
    OK(rondo_builder_add_output(no, "c2", NULL));
    const rondo_builder_node_options options =
        WITH(ATTRIBUTE_BODY("then_branch", yes), ATTRIBUTE_BODY("else_branch", no));
    build_node(b, "If", "is_up", "u v", &options);
    rondo_builder_destroy(yes);
    rondo_builder_destroy(no);
    build_op(b, "Mul", "u", "v", "y");
    check_both_signs(b, NULL);
}

// x = sin(x) * w + x, five times; y: that, and all the sines.
TEST(turns) {
    const int64_t count = 5;
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    rondo_builder *body;
    add_number(b, "count", RONDO_DTYPE_I64, &count);
    build_op(b, "Cos", "x", NULL, "w");
    OK(rondo_builder_create_body(b, NULL, &body));
    const rondo_port ports[] = {PORT("turn", RONDO_DTYPE_I64), PORT("go", RONDO_DTYPE_BOOL),
                                PORT("h", RONDO_DTYPE_F64, COUNT)};
    for (size_t i = 0; i < 3; ++i) {
        OK(rondo_builder_add_input(body, &ports[i]));
    }
    build_op(body, "Identity", "go", NULL, "goes");
    build_op(body, "Sin", "h", NULL, "sine");
    build_op(body, "Mul", "sine", "w", "part");
    build_op(body, "Add", "part", "h", "h2");
    OK(rondo_builder_add_output(body, "goes", NULL));
    OK(rondo_builder_add_output(body, "h2", NULL));
    OK(rondo_builder_add_output(body, "sine", NULL));
    build_node(b, "Loop", "count - x", "last sines", &WITH(ATTRIBUTE_BODY("body", body)));
    rondo_builder_destroy(body);
    build_op(b, "Mul", "last", "sines", "y");
    check_both_signs(b, NULL);
}

// A running product over the elements of x.
TEST(scans) {
    const double one = 1.0;
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    rondo_builder *body;
    add_number(b, "one", RONDO_DTYPE_F64, &one);
    OK(rondo_builder_create_body(b, NULL, &body));
    OK(rondo_builder_add_input(body, &PORT("h", RONDO_DTYPE_F64)));
    OK(rondo_builder_add_input(body, &PORT("e", RONDO_DTYPE_F64)));
    build_op(body, "Exp", "e", NULL, "power");
    build_op(body, "Mul", "h", "power", "h2");
    build_op(body, "Identity", "h2", NULL, "row");
    OK(rondo_builder_add_output(body, "h2", NULL));
    OK(rondo_builder_add_output(body, "row", NULL));
    const rondo_builder_node_options options =
        WITH(ATTRIBUTE_BODY("body", body), ATTRIBUTE_INT("num_scan_inputs", 1));
    build_node(b, "Scan", "one x", "last rows", &options);
    rondo_builder_destroy(body);
    build_op(b, "Mul", "last", "rows", "y");
    check_both_signs(b, NULL);
}

// ---- parameters that bodies use ----------------------------------------------------------------

// An If by the sign of the sum of `x`: sin(x * w), or x * w.
static void add_choice(rondo_builder *b, const char *x, const char *prefix, const char *out) {
    static const double zero = 0.0;
    char names[4][32];
    const char *const endings[] = {"zero", "sum", "is_up", "keep"};
    rondo_builder *bodies[2];
    for (size_t i = 0; i < 4; ++i) {
        (void)snprintf(names[i], sizeof names[i], "%s.%s", prefix, endings[i]);
    }
    add_number(b, names[0], RONDO_DTYPE_F64, &zero);
    OK(rondo_builder_add_node(b, "ReduceSum", &x, 1, (const char *[]){names[1]}, 1,
                              &WITH(ATTRIBUTE_INT("keepdims", 0))));
    build_op(b, "Greater", names[1], names[0], names[2]);
    for (size_t i = 0; i < 2; ++i) {
        OK(rondo_builder_create_body(b, i == 0 ? "yes" : "no", &bodies[i]));
        build_op(bodies[i], "Mul", x, "w", "product");
        build_op(bodies[i], i == 0 ? "Sin" : "Identity", "product", NULL, "made");
        OK(rondo_builder_add_output(bodies[i], "made", NULL));
    }
    const rondo_builder_node_options options =
        WITH(ATTRIBUTE_BODY("then_branch", bodies[0]), ATTRIBUTE_BODY("else_branch", bodies[1]));
    OK(rondo_builder_add_node(b, "If", (const char *[]){names[2]}, 1, &out, 1, &options));
    rondo_builder_destroy(bodies[0]);
    rondo_builder_destroy(bodies[1]);
}

// h = choice(h) * v + x, three times; y = choice(h): no node of the program itself reads w or v.
static rondo_program *make_bodies(const double *w, const double *v) {
    const int64_t count = 3;
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    rondo_builder *body;
    add_number(b, "count", RONDO_DTYPE_I64, &count);
    OK(rondo_builder_add_constant(b, "w", RONDO_DTYPE_F64, &row, w));
    OK(rondo_builder_add_constant(b, "v", RONDO_DTYPE_F64, &row, v));
    OK(rondo_builder_create_body(b, NULL, &body));
    const rondo_port ports[] = {PORT("turn", RONDO_DTYPE_I64), PORT("go", RONDO_DTYPE_BOOL),
                                PORT("h", RONDO_DTYPE_F64, COUNT)};
    for (size_t i = 0; i < 3; ++i) {
        OK(rondo_builder_add_input(body, &ports[i]));
    }
    build_op(body, "Identity", "go", NULL, "goes");
    add_choice(body, "h", "inner", "chosen");
    build_op(body, "Mul", "chosen", "v", "part");
    build_op(body, "Add", "part", "x", "h2");
    OK(rondo_builder_add_output(body, "goes", NULL));
    OK(rondo_builder_add_output(body, "h2", NULL));
    build_node(b, "Loop", "count - x", "last", &WITH(ATTRIBUTE_BODY("body", body)));
    rondo_builder_destroy(body);
    add_choice(b, "last", "outer", "y");
    OK(rondo_builder_add_mean(b, "y", "loss"));
    OK(rondo_builder_add_output(b, "loss", NULL));
    return build_finish(b);
}

static double run_bodies(rondo_executor *executor, double *x) {
    rondo_binding fetch = {.name = "loss"};
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F64, x, row);
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    const double loss = *(const double *)fetch.tensor.data;
    rondo_tensor_deinit(&fetch.tensor);
    return loss;
}

static double measure_bodies(rondo_program *model, double *x) {
    rondo_device *device;
    rondo_executor *executor;
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(model, device, NULL, &executor));
    const double loss = run_bodies(executor, x);
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    return loss;
}

static double measure_shifted(double *values, size_t at, double shift, const double *w,
                              const double *v, double *x) {
    values[at] += shift;
    rondo_program *model = make_bodies(w, v);
    const double loss = measure_bodies(model, x);
    rondo_program_destroy(model);
    values[at] -= shift;
    return loss;
}

// A step of SGD with a rate of 1 takes the gradient off: what it takes is what differences say.
TEST(parameters_of_bodies) {
    double w[COUNT] = {0.3, 0.8, -0.2, 0.7, 0.4, 0.9}, v[COUNT] = {0.5, -0.6, 0.7, 0.8, -0.9, 1.0};
    double x[COUNT] = {1.0, 0.5, -0.5, 0.25, 2.0, -1.0};
    double *const values[] = {v, w};
    const rondo_minimize_options sgd = {.struct_size = sizeof sgd, .learning_rate = 1.0};
    rondo_program *model = make_bodies(w, v);
    rondo_program *trained;
    rondo_builder *b;
    variables_world run = {0};
    rondo_parameter list[16];
    size_t count;
    OK(rondo_builder_create_from(model, &b));
    OK(rondo_builder_minimize(b, "loss", &sgd));
    run.program = build_finish(b);
    OK(rondo_device_open(on_devices_get_name(), &run.device));
    OK(rondo_executor_create(run.program, run.device, NULL, &run.executor));
    const double first = run_bodies(run.executor, x);
    assert_true(first == measure_bodies(model, x));
    OK(rondo_executor_get_trained(run.executor, model, &trained));
    OK(rondo_program_list_parameters(trained, 16, list, &count));
    size_t seen = 0;
    for (size_t p = 0; p < count; ++p) {
        double *old = strcmp(list[p].name, "v") == 0   ? values[0]
                      : strcmp(list[p].name, "w") == 0 ? values[1]
                                                       : NULL;
        seen += old != NULL;
        for (size_t i = 0; i < COUNT && old != NULL; ++i) {
            const double up = measure_shifted(old, i, 1e-5, w, v, x);
            const double down = measure_shifted(old, i, -1e-5, w, v, x);
            const double taken = old[i] - ((const double *)list[p].tensor->data)[i];
            if (!(fabs(taken - (up - down) / 2e-5) <= 1e-7)) {
                fail_msg("%s, element %zu: %.9g, by differences %.9g", list[p].name, i, taken,
                         (up - down) / 2e-5);
            }
        }
    }
    assert_int_equal(seen, 2);
    // What comes out has the new values where bodies use them, too.
    assert_true(measure_bodies(trained, x) == run_bodies(run.executor, x));
    rondo_program_destroy(trained);
    rondo_program_destroy(model);
    variables_close(&run);
}

// ---- what is special ----------------------------------------------------------------------------

// y is x where x was kept, doubled; dx says the same of the same draw.
TEST(drops_what_it_dropped) {
    for (int trains = 0; trains < 2; ++trains) {
        variables_world w;
        double x[COUNT] = {1, 2, 3, 4, 5, 6};
        double dx[COUNT];
        double sums = 0.0;
        rondo_builder *b = begin(RONDO_DTYPE_F64);
        build_op(b, "Dropout", "x", NULL, "y");
        finish(b, trains == 1, NULL, &w);
        for (int i = 0; i < 8; ++i) {
            const double sum = run(&w, x, dx);
            double want = 0.0;
            for (size_t k = 0; k < COUNT; ++k) {
                want += x[k] * dx[k];
                assert_true(trains == 1 ? dx[k] == 0.0 || dx[k] == 2.0 : dx[k] == 1.0);
                sums += dx[k];
            }
            assert_true(fabs(sum - want) < 1e-9);
        }
        assert_true(trains == 0 || (sums > 20.0 && sums < 76.0));
        variables_close(&w);
    }
}

static rondo_status compute_cube(rondo_op_node *node, const rondo_tensor *inputs,
                                 size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    const double *x = inputs[0].data;
    double *y = outputs[0].data;
    for (int64_t i = 0; i < rondo_shape_get_count(&inputs[0].shape); ++i) {
        y[i] = x[i] * x[i] * x[i];
    }
    return RONDO_STATUS_OK;
}

// 3 x^2 dy
static rondo_status cube_gradient(void *data, const rondo_gradient_node *node,
                                  rondo_builder *builder, const char **out_changes) {
    const double three = *(const double *)data;
    static const rondo_shape scalar = {0};
    assert_true(node->input_count == 1 && node->wants[0] && node->output_count == 1);
    assert_string_equal(rondo_op_get_name(node->node), "Cube_0");
    OK(rondo_builder_add_constant(builder, "cube.three", RONDO_DTYPE_F64, &scalar, &three));
    build_op(builder, "Mul", node->inputs[0], node->inputs[0], "cube.square");
    build_op(builder, "Mul", "cube.square", "cube.three", "cube.slope");
    build_op(builder, "Mul", "cube.slope", node->changes[0], "cube.change");
    out_changes[0] = "cube.change";
    return RONDO_STATUS_OK;
}

TEST(ops_of_users) {
    static bool is_registered;
    static double three = 3.0;
    const rondo_op_definition cube = {.struct_size = sizeof cube,
                                      .domain = "test.gradient",
                                      .name = "Cube",
                                      ONE_TO_ONE,
                                      .infer = user_ops_infer_same,
                                      .compute = compute_cube};
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .domain = "test.gradient"};
    if (!is_registered) {
        OK(rondo_op_register(&cube));
    }
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    build_node(b, "Cube", "x", "c", &options);
    build_op(b, "Sin", "c", NULL, "y");
    if (!is_registered) {
        EXPECT(UNSUPPORTED, "test.gradient.Cube",
               rondo_builder_add_gradients(b, "y", (const char *[]){"x"}, (const char *[]){"dx"}, 1,
                                           NULL));
        EXPECT(INVALID, "Cone",
               rondo_op_set_gradient("test.gradient", "Cone", cube_gradient, NULL));
        OK(rondo_op_set_gradient("test.gradient", "Cube", cube_gradient, &three));
    }
    EXPECT(INVALID, "already", rondo_op_set_gradient("test.gradient", "Cube", cube_gradient, NULL));
    is_registered = true;
    check_both_signs(b, NULL);
}

TEST(computed_once_more) {
    const rondo_gradient_options options = {.struct_size = sizeof options,
                                            .recompute = (const char *const[]){"Sin", "Exp*"},
                                            .recompute_count = 2};
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    build_op(b, "Sin", "x", NULL, "a");
    build_op(b, "Exp", "a", NULL, "b");
    build_op(b, "Mul", "a", "b", "c");
    build_op(b, "Sin", "c", NULL, "y");
    check_both_signs(b, &options);
}

// Mish's rule writes its op out of smaller ones, of a value that the rule of the second Sin has had
// computed again: the change of that is the change of the value itself.
TEST(computed_once_more_and_written_out) {
    const rondo_gradient_options options = {.struct_size = sizeof options,
                                            .recompute = (const char *const[]){"*"},
                                            .recompute_count = 1};
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    build_op(b, "Sin", "x", NULL, "a");
    build_op(b, "Mish", "a", NULL, "b");
    build_op(b, "Sin", "b", NULL, "y");
    check_both_signs(b, &options);
}

// d/dx at points where there is more than one answer: PyTorch 2.15's.
TEST(kinks) {
    static const struct {
        const char *op;
        double x[COUNT], dx[COUNT];
    } cases[] = {
        {"Relu", {0, -0.0, (double)NAN, 1, -1, (double)INFINITY}, {0, 0, 1, 1, 0, 1}},
        {"Abs", {0, -0.0, 1, -1, 2, -2}, {0, 0, 1, -1, 1, -1}},
        {"LeakyRelu", {0, 1, -1, 2, -2, 3}, {(double)0.01f, 1, (double)0.01f, 1, (double)0.01f, 1}},
        {"Elu", {0, 1, 2, 3, 4, 1000}, {1, 1, 1, 1, 1, 1}},
        {"HardSwish", {-3, 3, 4, -4, 5, -5}, {0, 1, 1, 0, 1, 0}},
        {"Sqrt", {0, 4, 1, 16, 0.25, 1}, {(double)INFINITY, 0.25, 0.5, 0.125, 1, 0.5}},
        {"ReduceL2", {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}},
        {"ReduceMax", {1, 3, 3, 0, 2, 3}, {0, 1.0 / 3, 1.0 / 3, 0, 0, 1.0 / 3}},
        {"ReduceProd", {2, 3, 0, 1, 1, 1}, {0, 0, 6, 0, 0, 0}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        variables_world w;
        double x[COUNT];
        double dx[COUNT];
        memcpy(x, cases[c].x, sizeof x);
        rondo_builder *b = begin(RONDO_DTYPE_F64);
        build_op(b, cases[c].op, "x", NULL, "y");
        finish(b, false, NULL, &w);
        (void)run(&w, x, dx);
        for (size_t i = 0; i < COUNT; ++i) {
            if (!(fabs(dx[i] - cases[c].dx[i]) <= 1e-12 || dx[i] == cases[c].dx[i])) {
                fail_msg("%s at %g: %.17g", cases[c].op, x[i], dx[i]);
            }
        }
        variables_close(&w);
    }
}

// Two heads of q share one of keys and values; how many rows there are is not known.
TEST(heads_that_share_rows_of_any_number) {
    static const rondo_shape four = {1, {4}}, one = {1, {1}};
    const rondo_builder_options opset = {.struct_size = sizeof opset, .opset = 23};
    double values[COUNT] = {0.3, 0.8, -0.2, 0.7, -0.4, 0.9};
    variables_world w;
    rondo_builder *b;
    OK(rondo_builder_create(&opset, &b));
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F64, -1)));
    OK(rondo_builder_add_constant(b, "shape", RONDO_DTYPE_I64, &four, (int64_t[]){1, 2, -1, 1}));
    OK(rondo_builder_add_constant(b, "heads", RONDO_DTYPE_I64, &one, (int64_t[]){1}));
    build_op(b, "Reshape", "x", "shape", "q");
    build_op(b, "ReduceMean", "q", "heads", "k");
    build_node(b, "Attention", "q k k", "y", NULL);
    finish(b, false, NULL, &w);
    check(&w, values);
    variables_close(&w);
}

// A finished program goes on as a builder; the second gradient is of the first.
TEST(of_what_is_read_back) {
    double x[COUNT] = {0.1, 0.2, 0.3, 0.4, 0.5, -0.6};
    double ddx[COUNT];
    rondo_program *first;
    variables_world w;
    rondo_builder *b = begin(RONDO_DTYPE_F64);
    build_op(b, "Exp", "x", NULL, "e");
    build_op(b, "Mul", "e", "x", "z");
    OK(rondo_builder_add_gradients(b, "z", (const char *[]){"x"}, (const char *[]){"y"}, 1, NULL));
    OK(rondo_builder_add_output(b, "z", NULL));
    first = build_finish(b);
    OK(rondo_builder_create_from(first, &b));
    rondo_program_destroy(first);
    finish(b, false, NULL, &w);
    (void)run(&w, x, ddx);
    for (size_t i = 0; i < COUNT; ++i) {
        assert_true(fabs(ddx[i] - exp(x[i]) * (2.0 + x[i])) < 1e-12);
    }
    variables_close(&w);
}

int main(void) {
    return ON_DEVICES();
}
