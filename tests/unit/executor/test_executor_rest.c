// Ops behind shapes that depend on data: planned for the shapes that come out, captured at the
// second use of a plan, and right against the reference, op by op.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/model_fixture.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, WIDTH = 80 };  // a value of so many elements is no key

// ---- models of x [WIDTH], y in any shape ------------------------------------------------------

static Onnx__NodeProto *add(model_builder *b, const char *op, const char *inputs,
                            const char *output) {
    return model_builder_add_node(b, b->graph, op, output, inputs, output);
}

static void add_ints(model_builder *b, const char *name, const int64_t *values, size_t count) {
    const int64_t dims[] = {(int64_t)count};
    Onnx__TensorProto *tensor = model_builder_add_initializer(b, b->graph, name, INT64, 1, dims);
    model_builder_set_raw(b, tensor, values, count * sizeof *values);
}

static void add_scalar(model_builder *b, const char *name, int64_t value) {
    Onnx__TensorProto *tensor = model_builder_add_initializer(b, b->graph, name, INT64, 0, NULL);
    model_builder_set_raw(b, tensor, &value, sizeof value);
}

static void add_weights(model_builder *b, const char *name, int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    float *values = model_builder_allocate(b, (size_t)(rows * columns) * sizeof *values);
    for (int64_t i = 0; i < rows * columns; ++i) {
        values[i] = (float)(i % 7 - 3) / 4;
    }
    Onnx__TensorProto *tensor = model_builder_add_initializer(b, b->graph, name, FLOAT, 2, dims);
    model_builder_set_raw(b, tensor, values, (size_t)(rows * columns) * sizeof *values);
}

// The k elements of x that are not 0, as rows: [k, 1].
static void build_rows(model_builder *b) {
    add(b, "NonZero", "x", "found");
    add(b, "Transpose", "found", "places");
    add(b, "GatherND", "x places", "picked");
    static const int64_t last[] = {-1};
    add_ints(b, "last", last, 1);
    add(b, "Unsqueeze", "picked last", "rows");
}

// A small network over them.
static void build_network(model_builder *b) {
    build_rows(b);
    add_weights(b, "w", 1, 8);
    add_weights(b, "v", 8, 8);
    add(b, "MatMul", "rows w", "a");
    add(b, "Relu", "a", "r");
    add(b, "MatMul", "r v", "c");
    add(b, "Softmax", "c", "y");
}

// The same, with the arithmetic of shapes that exporters write: [k, 8] to [k * 8] and back.
static void build_shapes(model_builder *b) {
    static const int64_t zero[] = {0};
    static const int64_t eight[] = {8};
    static const int64_t all[] = {-1};
    build_rows(b);
    add_weights(b, "w", 1, 8);
    add_ints(b, "zero", zero, 1);
    add_ints(b, "eight", eight, 1);
    add_ints(b, "all", all, 1);
    add(b, "MatMul", "rows w", "a");
    add(b, "Reshape", "a all", "flat");
    add(b, "Sigmoid", "flat", "s");
    add(b, "Shape", "picked", "shape");
    add(b, "Gather", "shape zero", "k");
    model_builder_set_int(b, add(b, "Concat", "k eight", "back"), "axis", 0);
    add(b, "Reshape", "s back", "m");
    add(b, "ConstantOfShape", "back", "zeros");
    add(b, "Add", "m zeros", "y");
}

// What a text-to-speech model does: durations, their sum, a Range of it, a mask, a product.
static void build_durations(model_builder *b) {
    static const float one[] = {1};
    model_builder_add_floats(b, b->graph, "one", one, 1);
    add_scalar(b, "begin", 0);
    add_scalar(b, "step", 1);
    static const int64_t last[] = {-1};
    static const int64_t first[] = {0};
    add_ints(b, "last", last, 1);
    add_ints(b, "first", first, 1);
    add(b, "Ceil", "x", "lengths");
    add(b, "CumSum", "lengths first0", "ends");
    add_scalar(b, "first0", 0);
    model_builder_set_int(b, add(b, "ReduceSum", "lengths", "total"), "keepdims", 0);
    model_builder_set_int(b, add(b, "Cast", "total", "count"), "to", INT64);
    add(b, "Range", "begin count step", "places");
    model_builder_set_int(b, add(b, "Cast", "places", "times"), "to", FLOAT);
    add(b, "Unsqueeze", "times last", "column");
    add(b, "Unsqueeze", "ends first", "row");
    add(b, "Less", "column row", "mask");
    model_builder_set_int(b, add(b, "Cast", "mask", "weights"), "to", FLOAT);
    add(b, "Unsqueeze", "x last", "content");
    add(b, "MatMul", "weights content", "p");
    add(b, "Add", "p one", "y");
}

// Two rounds of finding, the second of what came of the first; a sum joins both.
static void build_twice(model_builder *b) {
    static const int64_t last[] = {-1};
    build_rows(b);
    add(b, "Abs", "picked", "positive");
    model_builder_set_int(b, add(b, "ReduceMax", "positive", "most"), "keepdims", 0);
    add(b, "Add", "most most", "twice");
    add(b, "Sub", "positive most", "less");
    add(b, "NonZero", "less", "others");
    add(b, "Transpose", "others", "turned");
    add(b, "GatherND", "positive turned", "kept");
    add(b, "Mul", "kept twice", "m");
    add(b, "Exp", "positive", "e");
    model_builder_set_int(b, add(b, "ReduceSum", "e", "sum"), "keepdims", 0);
    add_ints(b, "one", last, 1);
    add(b, "Add", "m sum", "y");
}

// An If between ops that wait, and one that both sides share.
static void build_control(model_builder *b) {
    static const float zero[] = {0};
    build_rows(b);
    model_builder_add_floats(b, b->graph, "zero", zero, 1);
    add(b, "Neg", "rows", "n");
    model_builder_set_int(b, add(b, "ReduceSum", "n", "sum"), "keepdims", 0);
    add(b, "Greater", "sum zero", "test");
    static const int64_t only[] = {0};
    add_ints(b, "only", only, 1);
    add(b, "Squeeze", "test only", "condition");
    Onnx__NodeProto *node = add(b, "If", "condition", "i");
    static const char *const ops[] = {"Abs", "Neg"};
    for (size_t k = 0; k < 2; ++k) {
        Onnx__GraphProto *branch = model_builder_new_graph(b, ops[k]);
        model_builder_add_node(b, branch, ops[k], ops[k], "n", ops[k]);
        model_builder_add_output(b, branch, ops[k], FLOAT, NULL);
        model_builder_add_body(b, node, k == 0 ? "then_branch" : "else_branch", branch);
    }
    add(b, "Add", "i n", "j");
    add(b, "Mul", "j sum", "y");
}

// Numbers that the graph cannot know: a multinomial draw of so many values as were found.
static void build_random(model_builder *b) {
    build_rows(b);
    Onnx__NodeProto *node = add(b, "RandomUniformLike", "rows", "noise");
    Onnx__AttributeProto *seed =
        model_builder_add_attribute(b, node, "seed", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    seed->has_f = 1;
    seed->f = 3;
    add(b, "Add", "noise rows", "s");
    add(b, "Neg", "s", "y");
}

// Three turns, each of which leaves what is above 1 of the turn before, less a half; and the rows
// that were above it before. Then ops that wait for what the loop has made.
static void build_loop(model_builder *b) {
    static const float one[] = {1};
    static const float half[] = {0.5f};
    build_rows(b);
    model_builder_add_floats(b, b->graph, "one", one, 1);
    model_builder_add_floats(b, b->graph, "half", half, 1);
    static const uint8_t yes = 1;
    add_scalar(b, "turns", 3);
    model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, "yes", BOOL, 0, NULL), &yes,
                          sizeof yes);
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    model_builder_add_input(b, body, "i", INT64, "");
    model_builder_add_input(b, body, "c", BOOL, "");
    model_builder_add_input(b, body, "v", FLOAT, NULL);
    model_builder_add_node(b, body, "Identity", "go", "c", "c2");
    model_builder_add_node(b, body, "Greater", "above", "v one", "keep");
    model_builder_set_int(b, model_builder_add_node(b, body, "Compress", "kept", "v keep", "k"),
                          "axis", 0);
    model_builder_add_node(b, body, "Sub", "less", "k half", "v2");
    model_builder_add_output(b, body, "c2", BOOL, "");
    model_builder_add_output(b, body, "v2", FLOAT, NULL);
    Onnx__NodeProto *node =
        model_builder_add_node(b, b->graph, "Loop", "loop", "turns yes picked", "w");
    model_builder_add_body(b, node, "body", body);
    add(b, "Exp", "w", "e");
    add(b, "Neg", "e", "y");
}

// ---- runs -------------------------------------------------------------------------------------

typedef struct fixture {
    model_fixture model;
    rondo_device *host;
    rondo_executor *reference;  // there
} fixture;

static void open_model(fixture *f, void (*build)(model_builder *),
                       const rondo_executor_options *options) {
    model_builder *b = &f->model.builder;
    const rondo_executor_options plain = {
        .struct_size = sizeof plain, .reference = true, .op_by_op = true};
    model_fixture_init_on(&f->model, on_devices_get_name());
    model_builder_add_input(b, b->graph, "x", FLOAT, "k");
    build(b);
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
    f->model.options = options != NULL ? *options : f->model.options;
    model_fixture_load(&f->model);
    OK(rondo_device_open("host", &f->host));
    OK(rondo_executor_create(f->model.program, f->host, &plain, &f->reference));
}

static void close_model(fixture *f) {
    rondo_executor_destroy(f->reference);
    rondo_device_release(f->host);
    model_fixture_deinit(&f->model);
}

// x with `count` elements that are not 0, other ones for each `salt`.
static void fill(float *x, size_t count, size_t salt) {
    for (size_t i = 0; i < WIDTH; ++i) {
        const size_t place = (i * 7 + salt * 3) % WIDTH;
        x[place] = i < count ? (float)((i * 5 + salt) % 9 + 1) / 4 : 0;
    }
}

static rondo_status run(rondo_executor *executor, float *x, rondo_tensor *out_y) {
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, WIDTH);
    rondo_binding fetch = {.name = "y"};
    const rondo_status status = rondo_executor_run(executor, &feed, 1, &fetch, 1);
    *out_y = fetch.tensor;
    return status;
}

static void expect_alike(const rondo_tensor *got, const rondo_tensor *wanted, float tolerance) {
    assert_int_equal(got->dtype, wanted->dtype);
    assert_true(rondo_shape_is_equal(&got->shape, &wanted->shape));
    const float *a = got->data;
    const float *b = wanted->data;
    for (int64_t i = 0; i < rondo_shape_get_count(&got->shape); ++i) {
        // Infinities, and what they make, are the same on both sides.
        const bool is_same =
            memcmp(&a[i], &b[i], sizeof a[i]) == 0 || (a[i] != a[i] && b[i] != b[i]);
        const float most = tolerance * (b[i] > 0 ? 1 + b[i] : 1 - b[i]);
        if (!is_same && !(a[i] - b[i] <= most && b[i] - a[i] <= most)) {
            print_error("element %lld is %g, wanted %g\n", (long long)i, (double)a[i],
                        (double)b[i]);
            fail();
        }
    }
}

static void expect_right(const fixture *f, float *x) {
    rondo_tensor y;
    rondo_tensor wanted;
    OK(run(f->model.executor, x, &y));
    OK(run(f->reference, x, &wanted));
    expect_alike(&y, &wanted, 1e-4f);
    rondo_tensor_deinit(&y);
    rondo_tensor_deinit(&wanted);
}

// The bodies of rondo.Rest in the latest plan.
static size_t find_bodies(const rondo_executor *executor, rondo__unit **out_bodies, size_t most) {
    const rondo__plan *plan = executor->main.current;
    size_t count = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        for (size_t b = 0; b < step->run.body_count; ++b) {
            if (step->run.bodies[b] != NULL && step->run.bodies[b]->worth != NULL && count < most) {
                out_bodies[count++] = step->run.bodies[b];
            }
        }
    }
    return count;
}

static rondo__unit *get_body(const rondo_executor *executor) {
    rondo__unit *body = NULL;
    assert_int_equal(find_bodies(executor, &body, 1), 1);
    return body;
}

// Bypassed ops of the latest plan, and how many bodies wait in it. On a GPU what NonZero finds is
// counted there, in the second round of build_twice at the end of the first body.
static const struct {
    void (*build)(model_builder *);
    size_t bypassed;
    size_t bodies;
    size_t inner_bypassed;  // in the latest plan of the first body
    size_t gpu_bypassed;
} models[] = {
    {build_network, 2, 1, 0, 1},  // NonZero and the rest
    {build_shapes, 2, 1, 0, 1},  {build_durations, 1, 1, 0, 1}, {build_twice, 4, 2, 0, 2},
    {build_control, 4, 2, 0, 3}, {build_random, 2, 1, 0, 1},
};

TEST(test_executor_rest__shapes_in_rotation) {
    enum { SHAPES = 20 };
    const bool is_host = strcmp(on_devices_get_name(), "host") == 0;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; ++m) {
        fixture f;
        float x[WIDTH];
        open_model(&f, models[m].build, NULL);
        for (size_t round = 0; round < 3; ++round) {
            uint64_t replays = 0;
            for (size_t k = 0; k < SHAPES; ++k) {
                fill(x, 2 * k + 1, round);
                expect_right(&f, x);
            }
            rondo__unit *const body = get_body(f.model.executor);
            // Nobody waits for a body on a GPU, so what reads its results must be behind it.
            assert_true(is_host || body->stream == f.model.executor->main.stream);
            replays = body->runs.replay_count;
            if (models[m].build != build_durations) {  // whose sums change with the salt
                assert_int_equal(body->plans.stats.entry_count, SHAPES);
                assert_int_equal(replays, round * SHAPES);
            }
        }
        rondo__unit *bodies[8];
        assert_int_equal(find_bodies(f.model.executor, bodies, 8), models[m].bodies);
        assert_int_equal(f.model.executor->main.current->bypassed_count,
                         is_host ? models[m].bypassed : models[m].gpu_bypassed);
        assert_int_equal(bodies[0]->current->bypassed_count, models[m].inner_bypassed);
        close_model(&f);
    }
}

// Replayed results are those of eager runs, bit by bit.
TEST(test_executor_rest__replay_is_eager) {
    const rondo_executor_options eager = {.struct_size = sizeof eager, .graphs = RONDO_GRAPHS_OFF};
    for (size_t m = 0; m < sizeof models / sizeof models[0]; ++m) {
        fixture f;
        rondo_executor *other;
        float x[WIDTH];
        open_model(&f, models[m].build, NULL);
        OK(rondo_executor_create(f.model.program, f.model.device, &eager, &other));
        for (size_t k = 0; k < 12; ++k) {
            rondo_tensor y;
            rondo_tensor wanted;
            fill(x, 9 + k % 3, 0);
            OK(run(f.model.executor, x, &y));
            OK(run(other, x, &wanted));
            assert_true(rondo_shape_is_equal(&y.shape, &wanted.shape));
            assert_memory_equal(y.data, wanted.data, rondo_tensor_get_bytes(&y));
            rondo_tensor_deinit(&y);
            rondo_tensor_deinit(&wanted);
        }
        assert_true(get_body(f.model.executor)->runs.replay_count > 0);
        assert_int_equal(get_body(other)->runs.replay_count, 0);
        rondo_executor_destroy(other);
        close_model(&f);
    }
}

TEST(test_executor_rest__in_a_loop) {
    fixture f;
    float x[WIDTH];
    open_model(&f, build_loop, NULL);
    for (size_t k = 0; k < 12; ++k) {
        fill(x, 9 + k % 4 * 17, k % 3);
        expect_right(&f, x);
    }
    memset(x, 0, sizeof x);
    expect_right(&f, x);
    close_model(&f);
}

// Nothing found: every extent behind it is 0.
TEST(test_executor_rest__nothing_found) {
    for (size_t m = 0; m < 2; ++m) {
        fixture f;
        float x[WIDTH] = {0};
        open_model(&f, models[m].build, NULL);
        for (size_t k = 0; k < 3; ++k) {
            expect_right(&f, x);
        }
        close_model(&f);
    }
}

TEST(test_executor_rest__plans_are_bounded) {
    const rondo_executor_options options = {.struct_size = sizeof options, .plan_limit = 3};
    fixture f;
    float x[WIDTH];
    open_model(&f, build_network, &options);
    for (size_t k = 0; k < 20; ++k) {
        fill(x, k % 10 + 1, 0);
        expect_right(&f, x);
        assert_true(get_body(f.model.executor)->plans.stats.entry_count <= 3);
    }
    close_model(&f);
}

// y = Neg(Abs(picked)): too little work to be worth a plan for shapes that come once.
static void build_little(model_builder *b) {
    build_rows(b);
    add(b, "Abs", "picked", "a");
    add(b, "Neg", "a", "y");
}

TEST(test_executor_rest__shapes_that_come_once) {
    // Shapes that come again when many others came between are new ones; uses of plans pay for a
    // few.
    enum { SPARSE = 300, ROUNDS = 2, EARNED = RONDO__WORTH_CREDIT / RONDO__WORTH_HITS };
    fixture f;
    float x[SPARSE];
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, SPARSE);
    rondo_binding fetch = {.name = "y"};
    open_model(&f, build_little, NULL);
    uint64_t direct = 0;
    for (size_t run = 0; run < ROUNDS * SPARSE; ++run) {
        const size_t k = run % SPARSE + 1;
        for (size_t i = 0; i < SPARSE; ++i) {
            x[i] = i < k ? (float)(i + 1) : 0;
        }
        OK(rondo_executor_run(f.model.executor, &feed, 1, &fetch, 1));
        assert_int_equal(rondo_shape_get_count(&fetch.tensor.shape), k);
        for (size_t i = 0; i < k; ++i) {
            assert_true(((const float *)fetch.tensor.data)[i] == -(float)(i + 1));
        }
        rondo_tensor_deinit(&fetch.tensor);
        rondo__unit *const body = get_body(f.model.executor);
        direct += body->current->bypassed_count > 0 ? 1 : 0;
        assert_true(body->plans.stats.entry_count <= RONDO__WORTH_CREDIT + 1 + EARNED);
    }
    assert_int_equal(direct, ROUNDS * (SPARSE - RONDO__WORTH_CREDIT) - EARNED);
    // A shape that comes again gets its plan.
    for (size_t again = 0; again < 3; ++again) {
        OK(rondo_executor_run(f.model.executor, &feed, 1, &fetch, 1));
        rondo_tensor_deinit(&fetch.tensor);
        assert_int_equal(get_body(f.model.executor)->current->bypassed_count, 0);
    }
    assert_int_equal(get_body(f.model.executor)->runs.replay_count, RONDO__WORTH_CREDIT + 2);
    close_model(&f);
}

// y = Neg(the row of a large table that x has a place for): a plan would copy the table.
static void build_row(model_builder *b) {
    add(b, "NonZero", "x", "found");
    static const int64_t one[] = {1}, zero[] = {0}, all[] = {-1};
    add_ints(b, "all", all, 1);
    add(b, "Reshape", "found all", "place");
    add_ints(b, "one", one, 1);
    add_ints(b, "zero", zero, 1);
    add(b, "Add", "place one", "end");
    add_weights(b, "factors", 400, 1);
    add(b, "Mul", "x factors", "table");
    add(b, "Slice", "table place end zero", "row");
    add(b, "Neg", "row", "y");
}

TEST(test_executor_rest__rows_of_a_large_table) {
    fixture f;
    float x[WIDTH];
    open_model(&f, build_row, NULL);
    size_t direct = 0;
    for (size_t run = 0; run < 2 * WIDTH; ++run) {
        memset(x, 0, sizeof x);
        x[run % WIDTH] = 2;
        expect_right(&f, x);
        direct += get_body(f.model.executor)->current->bypassed_count > 0 ? 1 : 0;
    }
    // Those that had credit in the first round ran by a plan once, and never again.
    if (strcmp(on_devices_get_name(), "host") == 0) {  // a GPU's body reads the table where it is
        assert_int_equal(direct, 2 * WIDTH - RONDO__WORTH_CREDIT);
    }
    close_model(&f);
}

// A sum of 3 rows and what was found: fits for 1 and 3 only.
static void build_fragile(model_builder *b) {
    static const float three[] = {1, 2, 3};
    model_builder_add_floats(b, b->graph, "three", three, 3);
    build_rows(b);
    add(b, "Abs", "picked", "a");
    add(b, "Add", "a three", "sum");
    add(b, "Neg", "sum", "y");
}

TEST(test_executor_rest__misfits_are_named) {
    fixture f;
    float x[WIDTH];
    rondo_tensor y;
    open_model(&f, build_fragile, NULL);
    for (size_t k = 0; k < 9; ++k) {
        static const size_t counts[] = {3, 5, 1};
        fill(x, counts[k % 3], 0);
        if (counts[k % 3] != 5) {
            expect_right(&f, x);
            continue;
        }
        assert_int_equal(run(f.model.executor, x, &y), RONDO_STATUS_BAD_DATA);
        const rondo_error *error = rondo_error_get_last();
        if (strstr(error->message, "Add node \"sum\"") == NULL || strcmp(error->op, "sum") != 0) {
            print_error("op \"%s\": %s\n", error->op, error->message);
            fail();
        }
    }
    close_model(&f);
}

TEST(test_executor_rest__is_described) {
    static text_sink text;
    fixture f;
    open_model(&f, build_network, NULL);
    text.length = 0;
    OK(rondo_executor_describe(f.model.executor, RONDO_TEXT_PLAIN, text_sink_append, &text));
    assert_non_null(
        strstr(text.text,
               "Rest \"places\": ops that are planned when their shapes are "
               "known. It would be captured with extents that do not depend on data\n"));
    assert_non_null(strstr(text.text, "    rest: 7 ops, planned at the first run\n"));
    text.length = 0;
    OK(rondo_executor_describe(f.model.executor, RONDO_TEXT_JSON, text_sink_append, &text));
    assert_non_null(strstr(text.text, "\"ops\": [{\"op\": \"Transpose\", \"name\": \"places\"}, "));
    close_model(&f);
}

// In f16 ops behind unknown shapes stayed in f32; now their plans follow the rules.
TEST(test_executor_rest__half) {
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = RONDO_DTYPE_F16};
    fixture f;
    float x[WIDTH];
    open_model(&f, build_network, &options);
    for (size_t k = 0; k < 6; ++k) {
        rondo_tensor y;
        rondo_tensor wanted;
        fill(x, 5 + k % 2, 0);
        OK(run(f.model.executor, x, &y));
        OK(run(f.reference, x, &wanted));
        expect_alike(&y, &wanted, 1e-2f);
        rondo_tensor_deinit(&y);
        rondo_tensor_deinit(&wanted);
    }
    assert_true(get_body(f.model.executor)->current->halves.half_count > 0);
    close_model(&f);
}

// ---- random models ----------------------------------------------------------------------------

static uint32_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

enum { VECTORS_MAX = 64, KINDS_MAX = 6 };

// Vectors that were made so far, each of a kind: those of one kind have one length.
typedef struct pool {
    size_t count;
    int kind[VECTORS_MAX];
    int kind_count;
} pool;

static size_t draw_vector(const pool *p, int kind) {
    size_t v = draw((uint32_t)p->count);
    while (kind >= 0 && p->kind[v] != kind) {
        v = draw((uint32_t)p->count);
    }
    return v;
}

// Appends one op. Kind 0: as x, kind 1: one element; others depend on data.
static void add_random(model_builder *b, pool *p) {
    static const char *const unary[] = {"Neg", "Abs", "Sigmoid", "Tanh", "Relu"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Max"};
    char inputs[64];
    char name[4][24];
    const size_t n = p->count;
    const size_t v = draw_vector(p, -1);
    const int kind = p->kind[v];
    p->kind[n] = kind;
    for (size_t i = 0; i < 4; ++i) {
        (void)snprintf(name[i], sizeof name[i], i == 0 ? "v%zu" : "t%zu_%zu", n, i);
    }
    switch (draw(9)) {
        case 0:
        case 1:
            (void)snprintf(inputs, sizeof inputs, "v%zu", v);
            add(b, unary[draw(5)], inputs, name[0]);
            return;
        case 2:
        case 3:
            (void)snprintf(inputs, sizeof inputs, "v%zu v%zu", v, draw_vector(p, kind));
            add(b, binary[draw(4)], inputs, name[0]);
            return;
        case 4:  // with one element, of kind 1
            (void)snprintf(inputs, sizeof inputs, "v%zu one", v);
            add(b, binary[draw(4)], inputs, name[0]);
            return;
        case 5:
            p->kind[n] = 1;
            (void)snprintf(inputs, sizeof inputs, "v%zu", v);
            add(b, draw(2) == 0 ? "ReduceSum" : "ReduceMax", inputs, name[0]);
            return;
        case 6:  // ones of its length, by way of its shape
            (void)snprintf(inputs, sizeof inputs, "v%zu", v);
            add(b, "Shape", inputs, name[1]);
            (void)snprintf(inputs, sizeof inputs, "one %s", name[1]);
            add(b, "Expand", inputs, name[0]);
            return;
        case 7:  // of another kind: twice as long
            if (p->kind_count < KINDS_MAX) {
                p->kind[n] = p->kind_count++;
                (void)snprintf(inputs, sizeof inputs, "v%zu v%zu", v, v);
                model_builder_set_int(b, add(b, "Concat", inputs, name[0]), "axis", 0);
                return;
            }
            (void)snprintf(inputs, sizeof inputs, "v%zu", v);
            add(b, "Neg", inputs, name[0]);
            return;
        default:  // what is positive of it
            (void)snprintf(inputs, sizeof inputs, "v%zu zero", v);
            add(b, "Greater", inputs, name[1]);
            if (p->kind_count < KINDS_MAX) {
                p->kind[n] = p->kind_count++;
                (void)snprintf(inputs, sizeof inputs, "v%zu %s", v, name[1]);
                model_builder_set_int(b, add(b, "Compress", inputs, name[0]), "axis", 0);
                return;
            }
            model_builder_set_int(b, add(b, "Cast", name[1], name[0]), "to", FLOAT);
            return;
    }
}

static void build_drawn(model_builder *b) {
    static const float values[] = {0, 0.5f};
    pool p = {.count = 1, .kind_count = 2};
    char inputs[512] = "";
    model_builder_add_floats(b, b->graph, "zero", values, 1);
    model_builder_add_floats(b, b->graph, "one", values + 1, 1);
    add(b, "Neg", "x", "v0");
    const size_t ops = 10 + draw(30);
    while (p.count <= ops) {
        p.kind[p.count] = -1;
        add_random(b, &p);
        p.count += 1;
    }
    for (size_t v = 0; v < p.count; ++v) {
        const size_t used = strlen(inputs);
        (void)snprintf(inputs + used, sizeof inputs - used, "%sv%zu", v > 0 ? " " : "", v);
    }
    model_builder_set_int(b, add(b, "Concat", inputs, "y"), "axis", 0);
}

TEST(test_executor_rest__random_models) {
    size_t body_count = 0;
    for (uint32_t seed = 1; seed <= 200; ++seed) {
        fixture f;
        float x[WIDTH];
        random_state = seed * 2654435761u;
        open_model(&f, build_drawn, NULL);
        for (size_t k = 0; k < 12; ++k) {
            for (size_t i = 0; i < WIDTH; ++i) {
                x[i] = (float)((i * 13 + k % 4 * 7 + seed) % 17) / 8 - 1;
            }
            expect_right(&f, x);
        }
        rondo__unit *bodies[16];
        body_count += find_bodies(f.model.executor, bodies, 16);
        close_model(&f);
    }
    assert_true(body_count >= 100);
}

int main(void) {
    return ON_DEVICES();
}
