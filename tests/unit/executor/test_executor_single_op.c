// Ops one by one, eagerly and inside a capture, on the host, a real GPU where there is one, and the
// fake driver, on which only additions run.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/add_world.h"
#include "support/models/user_ops.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

static const rondo_tensor add_info = {.dtype = RONDO_DTYPE_F32,
                                      .shape = {.rank = 1, .extent = {ADD_COUNT}}};

// Sums of x and y, in s.
static add_world *open_world(void) {
    return add_world_open(RONDO_GRAPHS_ON, false);
}

// Each element is `first` + its index + what the operands add.
static void expect_sum(const add_world *w, float first, float more) {
    float values[ADD_COUNT];
    add_world_read(w->stream, &w->s, values);
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        assert_true(values[i] == first + (float)i + more * (float)i);
    }
}

TEST(test_executor_single_op__eager_and_recorded) {
    add_world *w = open_world();
    rondo_op *op;
    rondo_tensor info;
    const rondo_tensor infos[] = {add_info, add_info};
    OK(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op));
    OK(rondo_op_get_output(op, 0, &info));
    assert_int_equal(info.dtype, RONDO_DTYPE_F32);
    assert_true(rondo_shape_is_equal(&info.shape, &add_shape) && info.data == NULL);
    const rondo_tensor inputs[] = {w->x, w->y};
    const rondo_tensor again[] = {w->s, w->y};
    rondo_tensor sum;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &sum));
    add_world_write(w->stream, &w->y, 0);
    add_world_write(w->stream, &w->x, 3);
    OK(rondo_op_put(op, w->stream, inputs, 2, &w->s, 1));
    expect_sum(w, 3, 1);
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_op_put(op, w->stream, inputs, 2, &w->s, 1));
    OK(rondo_op_put(op, w->stream, again, 2, &sum, 1));
    OK(rondo_graph_capture_end(w->graph));
    rondo_op_destroy(op);  // the graph keeps what it needs
    for (int round = 0; round < 3; ++round) {
        add_world_write(w->stream, &w->x, (float)round);
        OK(rondo_graph_replay(w->graph, w->stream));
        expect_sum(w, (float)round, 1);
        float values[ADD_COUNT];
        add_world_read(w->stream, &sum, values);
        assert_true(values[5] == (float)round + 15);
    }
    OK(rondo_graph_reset(w->graph));
    rondo_tensor_deinit(&sum);
    add_world_close(w);
}

TEST(test_executor_single_op__constants_are_kept) {
    add_world *w = open_world();
    float values[ADD_COUNT];
    add_program_fill(values, 0);
    rondo_tensor infos[] = {add_info, add_info};
    infos[1].data = values;
    rondo_op *op;
    OK(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op));
    memset(values, 0xFF, sizeof values);
    const rondo_tensor inputs[] = {w->x, {0}};
    add_world_write(w->stream, &w->x, 2);
    for (int launch = 0; launch < 3; ++launch) {
        OK(rondo_op_put(op, w->stream, inputs, 2, &w->s, 1));
        expect_sum(w, 2, 1);
    }
    rondo_op_destroy(op);
    add_world_close(w);
}

// Attributes, views, products with packed weights, random numbers: what the fake driver has no
// kernels for.
TEST(test_executor_single_op__all_kinds_of_ops) {
    if (on_devices_is_fake()) {
        return;
    }
    add_world *w = open_world();
    rondo_op *op;
    add_world_write(w->stream, &w->x, 0);
    float values[ADD_COUNT];
    rondo_tensor info;
    // Reshape: a view in programs, a copy here.
    int64_t extents[] = {4, -1};
    const rondo_tensor reshape[] = {add_info,
                                    {.dtype = RONDO_DTYPE_I64, .shape = {1, {2}}, .data = extents}};
    OK(rondo_op_prepare(w->device, "Reshape", NULL, reshape, 2, 1, &op));
    OK(rondo_op_get_output(op, 0, &info));
    assert_int_equal(info.shape.extent[1], ADD_COUNT / 4);
    rondo_tensor inputs[] = {w->x, {0}};
    rondo_tensor output = w->s;
    output.shape = info.shape;
    OK(rondo_op_put(op, w->stream, inputs, 2, &output, 1));
    add_world_read(w->stream, &w->s, values);
    assert_true(values[ADD_COUNT - 1] == ADD_COUNT - 1);
    rondo_op_destroy(op);
    // An attribute, and an input left out.
    const rondo_attribute axis = ATTRIBUTE_INT("axis", 0);
    rondo_op_options options = {
        .struct_size = sizeof options, .attributes = &axis, .attribute_count = 1};
    OK(rondo_op_prepare(w->device, "Softmax", &options, &add_info, 1, 1, &op));
    OK(rondo_op_put(op, w->stream, &w->x, 1, &w->s, 1));
    add_world_read(w->stream, &w->s, values);
    assert_true(values[ADD_COUNT - 1] > 0.6f && values[0] < 1e-6f);
    rondo_op_destroy(op);
    // Random numbers go on from launch to launch, also in a graph.
    const rondo_attribute shape[] = {ATTRIBUTE_INTS("shape", add_shape.extent, 1)};
    options = (rondo_op_options){.struct_size = sizeof options, .seed = 7};
    options.attributes = shape;
    options.attribute_count = 1;
    OK(rondo_op_prepare(w->device, "RandomUniform", &options, NULL, 0, 1, &op));
    float drawn[3][ADD_COUNT];
    OK(rondo_op_put(op, w->stream, NULL, 0, &w->s, 1));
    add_world_read(w->stream, &w->s, drawn[0]);
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_op_put(op, w->stream, NULL, 0, &w->s, 1));
    OK(rondo_graph_capture_end(w->graph));
    for (int i = 1; i < 3; ++i) {
        OK(rondo_graph_replay(w->graph, w->stream));
        add_world_read(w->stream, &w->s, drawn[i]);
    }
    assert_true(drawn[0][0] != drawn[1][0] && drawn[1][0] != drawn[2][0]);
    OK(rondo_graph_reset(w->graph));
    rondo_op_destroy(op);
    add_world_close(w);
}

// ---- what launches share ----------------------------------------------------------------------

// y = x by way of the workspace: for ops that keep something in between.
static rondo_status prepare_detour(rondo_op_node *node, rondo_op_preparation *preparation) {
    (void)node;
    preparation->workspace_bytes = sizeof(float) * ADD_COUNT;
    return RONDO_STATUS_OK;
}

static rondo_status launch_detour(rondo_op_node *node, const rondo_op_launch *launch) {
    const size_t bytes = sizeof(float) * ADD_COUNT;
    (void)node;
    const rondo_status status =
        rondo_stream_copy(launch->stream, launch->workspace, launch->inputs[0].data, bytes,
                          RONDO_COPY_DEVICE_TO_DEVICE);
    return status != RONDO_STATUS_OK
               ? status
               : rondo_stream_copy(launch->stream, launch->outputs[0].data, launch->workspace,
                                   bytes, RONDO_COPY_DEVICE_TO_DEVICE);
}

static void register_detour(void) {
    static bool is_there;
    const rondo_op_definition definition = {
        .struct_size = sizeof definition,
        .domain = "test.single",
        .name = "Detour",
        ONE_TO_ONE,
        .infer = user_ops_infer_same,
        .capture = RONDO_OP_CAPTURE_YES,
        .host = {.prepare = prepare_detour, .launch = launch_detour},
        .cuda = {.prepare = prepare_detour, .launch = launch_detour}};
    if (!is_there) {
        OK(rondo_op_register(&definition));
        is_there = true;
    }
}

static rondo_op *prepare_op(const add_world *w, const char *name) {
    const rondo_op_options options = {.struct_size = sizeof options, .domain = "test.single"};
    rondo_op *op;
    register_detour();
    OK(rondo_op_prepare(w->device, name, &options, &add_info, 1, 1, &op));
    return op;
}

static void join(rondo_event *event, rondo_stream *from, rondo_stream *to) {
    OK(rondo_event_record(event, from));
    OK(rondo_stream_wait_event(to, event));
}

static size_t count_edges(rondo_graph *graph) {
    size_t count = 0;
    OK(rondo_graph_list_edges(graph, NULL, 0, &count));
    return count;
}

// On two streams of a capture the second launch comes behind the first, which nothing else says.
TEST(test_executor_single_op__launches_that_share_come_in_a_row) {
    add_world *w = open_world();
    rondo_op *op = prepare_op(w, "Detour");
    rondo_stream *side;
    rondo_event *event;
    rondo_graph *graph;
    rondo_tensor t;
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    OK(rondo_stream_create(w->device, NULL, &side));
    OK(rondo_event_create(w->device, 0, &event));
    OK(rondo_graph_create(w->device, &options, &graph));
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &t));
    OK(rondo_graph_capture_begin(graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    join(event, w->stream, side);
    OK(rondo_op_put(op, w->stream, &w->x, 1, &w->s, 1));
    OK(rondo_op_put(op, side, &w->y, 1, &t, 1));
    OK(rondo_op_put(op, side, &w->y, 1, &t, 1));
    OK(rondo_op_put(op, w->stream, &w->x, 1, &w->s, 1));
    join(event, side, w->stream);
    OK(rondo_graph_capture_end(graph));
    assert_int_equal(count_edges(graph), 8);  // seven in a row, and the branch of the first stream
    for (int round = 0; round < 20; ++round) {
        add_world_write(w->stream, &w->x, (float)round);
        add_world_write(w->stream, &w->y, (float)(round + 100));
        OK(rondo_graph_replay(graph, w->stream));
        expect_sum(w, (float)round, 0);
        float values[ADD_COUNT];
        add_world_read(w->stream, &t, values);
        assert_true(values[5] == (float)(round + 105));
    }
    rondo_graph_destroy(graph);
    rondo_op_destroy(op);
    rondo_tensor_deinit(&t);
    rondo_event_destroy(event);
    rondo_stream_destroy(side);
    add_world_close(w);
}

// Outside and inside of a body, between which no edges lead.
TEST(test_executor_single_op__bodies_share_nothing_with_what_is_around) {
    add_world *w = open_world();
    if (rondo_device_supports(w->device, RONDO_FEATURE_IF) == RONDO_STATUS_OK) {
        rondo_op *op = prepare_op(w, "Detour");
        rondo_scope scope;
        rondo_stream *body;
        uint32_t *predicate;
        OK(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 4, (void **)&predicate));
        OK(rondo_stream_fill(w->stream, predicate, 1, 4, 1));
        OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
        OK(rondo_op_put(op, w->stream, &w->x, 1, &w->y, 1));
        OK(rondo_scope_begin(w->stream, RONDO_SCOPE_IF, predicate, 0, &scope));
        OK(rondo_scope_enter(scope, 0, &body));
        OK(rondo_op_put(op, body, &w->y, 1, &w->s, 1));
        OK(rondo_op_put(op, body, &w->y, 1, &w->s, 1));
        OK(rondo_scope_leave(scope));
        OK(rondo_scope_end(scope));
        OK(rondo_op_put(op, w->stream, &w->s, 1, &w->y, 1));
        OK(rondo_graph_capture_end(w->graph));
        add_world_write(w->stream, &w->x, 3);
        OK(rondo_graph_replay(w->graph, w->stream));
        expect_sum(w, 3, 0);
        rondo_op_destroy(op);
        OK(rondo_graph_reset(w->graph));
        rondo_memory_free(w->device, predicate);
    }
    add_world_close(w);
}

TEST(test_executor_single_op__refusals) {
    add_world *w = open_world();
    rondo_op *op;
    rondo_tensor infos[] = {add_info, add_info};
    EXPECT(UNSUPPORTED, "Sum2", rondo_op_prepare(w->device, "Sum2", NULL, infos, 2, 1, &op));
    infos[1].shape.extent[0] = 3;
    EXPECT(BAD_DATA, "Add", rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op));
    EXPECT(UNSUPPORTED, "NonZero", rondo_op_prepare(w->device, "NonZero", NULL, infos, 1, 1, &op));
    EXPECT(INVALID, "device", rondo_op_prepare(NULL, "Add", NULL, infos, 2, 1, &op));
    EXPECT(INVALID, "name", rondo_op_prepare(w->device, NULL, NULL, infos, 2, 1, &op));
    infos[1] = add_info;
    OK(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op));
    rondo_tensor inputs[] = {w->x, w->y};
    EXPECT(INVALID, "Add was prepared for 2 and 1",
           rondo_op_put(op, w->stream, inputs, 1, &w->s, 1));
    inputs[1].shape.extent[0] = 3;
    EXPECT(INVALID, "input 1 of Add is f32 [3], it was prepared as f32 [64]",
           rondo_op_put(op, w->stream, inputs, 2, &w->s, 1));
    inputs[1] = w->y;
    inputs[1].data = NULL;
    EXPECT(INVALID, "input 1 of Add: its data is NULL",
           rondo_op_put(op, w->stream, inputs, 2, &w->s, 1));
    inputs[1] = w->y;
    if (!rondo_device_is_host(w->device)) {
        inputs[1].device = NULL;
        EXPECT(INVALID, "input 1 of Add lies in host memory, the op was prepared for cuda:0",
               rondo_op_put(op, w->stream, inputs, 2, &w->s, 1));
        inputs[1] = w->y;
    }
    EXPECT(INVALID, "output 0 of Add overlaps input 1",
           rondo_op_put(op, w->stream, inputs, 2, &w->y, 1));
    rondo_op *none;
    EXPECT(INVALID, "no op has more",
           rondo_op_prepare(w->device, "Add", NULL, infos, 2, SIZE_MAX, &none));
    EXPECT(INVALID, "no op has more",
           rondo_op_prepare(w->device, "Add", NULL, infos, SIZE_MAX - 1, 1, &none));
    assert_int_not_equal(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1000, &none),
                         RONDO_STATUS_OK);
    rondo_tensor info;
    EXPECT(INVALID, "no output 1", rondo_op_get_output(op, 1, &info));
    // A refusal in a capture breaks it: the graph would lack the op.
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    EXPECT(INVALID, "inputs", rondo_op_put(op, w->stream, NULL, 2, &w->s, 1));
    assert_int_equal(rondo_graph_capture_end(w->graph), RONDO_STATUS_STATE);
    add_world_write(w->stream, &w->x, 1);
    add_world_write(w->stream, &w->y, 0);
    OK(rondo_op_put(op, w->stream, inputs, 2, &w->s, 1));
    expect_sum(w, 1, 1);
    rondo_op_destroy(op);
    rondo_op_destroy(NULL);
    add_world_close(w);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
