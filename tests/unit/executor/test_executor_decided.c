// Ifs whose conditions follow from single integers in host memory: plans for their values have the
// branch that is taken as straight code, and other values get plans of their own.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/state/plan.h"
#include "support/models/model_fixture.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { FLOAT = 1, INT64 = 7, COUNT = 3 };

// ---- a model of three branches ------------------------------------------------------------------

static void add_number(model_builder *b, const char *name, int64_t number) {
    model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, name, INT64, 0, NULL),
                          &number, sizeof number);
}

static void add_axis(model_builder *b, Onnx__NodeProto *node) {
    model_builder_set_int(b, node, "axis", 0);
}

static Onnx__GraphProto *build_inner(model_builder *b, const char *op, const char *output) {
    Onnx__GraphProto *graph = model_builder_new_graph(b, output);
    model_builder_add_node(b, graph, op, output, "twice", output);
    model_builder_add_output(b, graph, output, FLOAT, NULL);
    return graph;
}

// y, z = If(rate == 16000) -x, x
//        else, with "twice" = x twice: If(rate > 4000) |twice| else -twice; and 7
static void build(model_builder *b, bool draws) {
    static const float seven = 7;
    model_builder_add_input(b, b->graph, "x", FLOAT, "n");
    model_builder_add_input(b, b->graph, "rate", INT64, "");
    add_number(b, "high", 16000);
    add_number(b, "low", 4000);
    model_builder_add_floats(b, b->graph, "seven", &seven, 1);
    model_builder_add_node(b, b->graph, "Equal", "is_high", "rate high", "is_high");
    model_builder_add_node(b, b->graph, "Greater", "is_low", "rate low", "is_low");

    Onnx__GraphProto *then_graph = model_builder_new_graph(b, "then");
    model_builder_add_node(b, then_graph, "Neg", "minus", "x", draws ? "minus" : "a");
    if (draws) {
        model_builder_add_node(b, then_graph, "RandomUniformLike", "noise", "x", "noise");
        model_builder_add_node(b, then_graph, "Sub", "nothing", "noise noise", "nothing");
        model_builder_add_node(b, then_graph, "Add", "same", "minus nothing", "a");
    }
    model_builder_add_output(b, then_graph, "a", FLOAT, NULL);
    model_builder_add_output(b, then_graph, "x", FLOAT, NULL);

    Onnx__GraphProto *else_graph = model_builder_new_graph(b, "else");
    add_axis(b, model_builder_add_node(b, else_graph, "Concat", "join", "x x", "twice"));
    Onnx__NodeProto *inner =
        model_builder_add_node(b, else_graph, "If", "inner", "is_low", "inner_y");
    model_builder_add_body(b, inner, "then_branch", build_inner(b, "Abs", "t"));
    model_builder_add_body(b, inner, "else_branch", build_inner(b, "Neg", "e"));
    model_builder_add_output(b, else_graph, "inner_y", FLOAT, NULL);
    model_builder_add_output(b, else_graph, "seven", FLOAT, NULL);

    Onnx__NodeProto *node = model_builder_add_node(b, b->graph, "If", "choice", "is_high", "y z");
    model_builder_add_body(b, node, "then_branch", then_graph);
    model_builder_add_body(b, node, "else_branch", else_graph);
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
    model_builder_add_output(b, b->graph, "z", FLOAT, NULL);
}

// ---- runs ---------------------------------------------------------------------------------------

typedef struct world {
    model_fixture f;
    rondo_device *device;
    rondo_executor *executor;
} world;

static void open_world(world *w, bool draws) {
    rondo_executor_options options = {.struct_size = sizeof options};
    model_fixture_init(&w->f);
    build(&w->f.builder, draws);
    model_fixture_load(&w->f);
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    OK(rondo_executor_create(w->f.program, w->device, &options, &w->executor));
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_device_release(w->device);
    model_fixture_deinit(&w->f);
}

static void expect(const rondo_tensor *tensor, const float *values, int64_t count) {
    assert_int_equal(rondo_shape_get_count(&tensor->shape), count);
    assert_memory_equal(tensor->data, values, (size_t)count * sizeof *values);
}

// Runs with a rate and compares; `rate` may be a tensor on the device.
static void run_with(world *w, const rondo_tensor *rate, int64_t value) {
    float x[COUNT] = {1, -2, 3};
    const float minus[] = {-1, 2, -3, -1, 2, -3};
    const float absolute[] = {1, 2, 3, 1, 2, 3};
    const float seven = 7;
    const bool is_high = value == 16000;
    const rondo_binding feeds[] = {BIND("x", RONDO_DTYPE_F32, x, COUNT), {"rate", *rate}};
    rondo_binding fetches[] = {{.name = "y"}, {.name = "z"}};
    OK(rondo_executor_run(w->executor, feeds, 2, fetches, 2));
    expect(&fetches[0].tensor, value > 4000 && !is_high ? absolute : minus, is_high ? 3 : 6);
    expect(&fetches[1].tensor, is_high ? x : &seven, is_high ? 3 : 1);
    rondo_tensor_deinit(&fetches[0].tensor);
    rondo_tensor_deinit(&fetches[1].tensor);
}

static void run(world *w, int64_t value) {
    const rondo_tensor rate = {.dtype = RONDO_DTYPE_I64, .data = &value};
    run_with(w, &rate, value);
}

static bool was_replayed(const world *w) {
    rondo_run_times times = {.struct_size = sizeof times};
    OK(rondo_executor_get_times(w->executor, &times));
    return times.was_replayed;
}

// ---- tests --------------------------------------------------------------------------------------

// Each rate has a plan without control flow, nested or not, which the third run replays.
TEST(test_executor_decided__branches_are_straight_code) {
    static const int64_t rates[] = {16000, 8000, 1000};
    world w;
    (void)state;
    open_world(&w, false);
    for (int turn = 0; turn < 4; ++turn) {
        for (size_t i = 0; i < sizeof rates / sizeof *rates; ++i) {
            run(&w, rates[i]);
            assert_int_equal(w.executor->main.current->bypassed_count, 0);
            assert_true(turn < 2 || was_replayed(&w));
        }
    }
    close_world(&w);
}

// A number that is another one each time decides at run time, as one on the device does.
TEST(test_executor_decided__many_values_and_device_tensors) {
    const rondo_shape scalar = {0};
    rondo_tensor rate;
    world w;
    (void)state;
    open_world(&w, false);
    run(&w, 16000);
    assert_int_equal(w.executor->main.current->bypassed_count, 0);
    OK(rondo_tensor_init_device(w.device, RONDO_DTYPE_I64, &scalar, &rate));
    for (int64_t i = 0; i < 2; ++i) {
        int64_t value = i == 0 ? 16000 : 8000;
        const rondo_tensor from = {.dtype = RONDO_DTYPE_I64, .data = &value};
        rondo_stream *stream = rondo_executor_get_stream(w.executor);
        OK(rondo_tensor_copy(stream, &from, &rate));
        OK(rondo_stream_synchronize(stream));
        run_with(&w, &rate, value);
        assert_true(w.executor->main.current->bypassed_count > 0);
    }
    rondo_tensor_deinit(&rate);
    for (int64_t value = 0; value < 3 * RONDO__DECISIONS_MAX; ++value) {
        run(&w, 5000 + value);
    }
    assert_true(w.executor->main.current->bypassed_count > 0);
    const uint64_t plan_count = w.executor->main.plans.stats.entry_count;
    assert_true(plan_count <= RONDO__DECISIONS_MAX + 2);
    run(&w, 16000);
    run(&w, 1000);
    assert_int_equal(w.executor->main.plans.stats.entry_count, plan_count);
    close_world(&w);
}

// A branch that may draw has generators of its own, and stays a body.
TEST(test_executor_decided__branches_that_draw_stay) {
    world w;
    (void)state;
    open_world(&w, true);
    for (int turn = 0; turn < 3; ++turn) {
        run(&w, 16000);
        assert_true(w.executor->main.current->bypassed_count > 0);
        run(&w, 8000);
        assert_int_equal(w.executor->main.current->bypassed_count, 0);
    }
    close_world(&w);
}

// A recording would take the same branch for ever.
TEST(test_executor_decided__recordings_refuse_what_decides) {
    world w;
    rondo_stream *stream;
    rondo_graph *graph;
    void *memory;
    (void)state;
    open_world(&w, false);
    run(&w, 16000);
    OK(rondo_stream_create(w.device, NULL, &stream));
    OK(rondo_graph_create(w.device, NULL, &graph));
    OK(rondo_memory_allocate(w.device, RONDO_MEMORY_PINNED, 256, &memory));
    float *x = memory;
    int64_t *rate = (int64_t *)((char *)memory + 64);
    *rate = 16000;
    const rondo_shape three = {.rank = 1, .extent = {COUNT}};
    const rondo_binding feeds[] = {BIND_SHAPE("x", RONDO_DTYPE_F32, x, three),
                                   BIND("rate", RONDO_DTYPE_I64, rate)};
    const rondo_binding fetches[] = {BIND_SHAPE("y", RONDO_DTYPE_F32, x + 32, three),
                                     BIND_SHAPE("z", RONDO_DTYPE_F32, x + 48, three)};
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(rondo_executor_record(w.executor, stream, feeds, 2, fetches, 2),
                     RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "\"rate\" decides a branch"));
    rondo_graph_capture_abort(graph);
    rondo_memory_free(w.device, memory);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    close_world(&w);
}

int main(void) {
    return ON_DEVICES();
}
