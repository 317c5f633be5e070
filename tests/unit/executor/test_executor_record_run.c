// A model as a part of a larger graph: recorded into the program's capture, on the host, a real GPU
// where there is one, and the fake driver.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/add_world.h"
#include "support/cases/one_op.h"
#include "support/driver.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

static rondo_executor *make_executor(const add_world *w, rondo_program *program,
                                     size_t plan_limit) {
    rondo_executor *executor;
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    options.graphs = RONDO_GRAPHS_ON;
    options.plan_limit = plan_limit;
    OK(rondo_executor_create(program, w->device, &options, &executor));
    return executor;
}

static add_world *open_world(void) {
    return add_world_open(RONDO_GRAPHS_ON, false);
}

static void write_x(const add_world *w, float first) {
    add_world_write(w->stream, &w->x, first);
}

static void run_once(const add_world *w, float first) {
    write_x(w, first);
    const rondo_binding feed = {"x", w->x};
    rondo_binding fetches[] = {{"y", w->y}, {"s", w->s}};
    OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
    add_world_expect(w->stream, &w->y, first, true);
}

static rondo_status record(const add_world *w, rondo_executor *executor) {
    const rondo_binding feed = {"x", w->x};
    const rondo_binding fetches[] = {{"y", w->y}, {"s", w->s}};
    return rondo_executor_record(executor, w->stream, &feed, 1, fetches, 2);
}

static void begin(const add_world *w) {
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static void expect_replay(const add_world *w, float first) {
    write_x(w, first);
    OK(rondo_graph_replay(w->graph, w->stream));
    add_world_expect(w->stream, &w->y, first, true);
    add_world_expect(w->stream, &w->s, first, false);
}

static uint64_t count_nodes(const add_world *w) {
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    OK(rondo_graph_get_stats(w->graph, &stats));
    return stats.node_count;
}

// ---- what works -------------------------------------------------------------------------------

TEST(test_executor_record_run__a_model_is_nodes_of_a_graph) {
    add_world *w = open_world();
    run_once(w, 1);
    begin(w);
    OK(rondo_stream_fill(w->stream, w->y.data, 0, 4, ADD_COUNT));
    OK(record(w, w->executor));
    OK(rondo_graph_capture_end(w->graph));
    assert_int_equal(count_nodes(w), 3);  // nothing is copied
    for (int round = 0; round < 4; ++round) {
        expect_replay(w, (float)(5 * round));
        run_once(w, (float)(100 + round));  // eager, captured, replayed
    }
    rondo_executor_destroy(w->executor);  // the graph keeps what it needs
    w->executor = NULL;
    rondo_program_destroy(w->program);
    w->program = NULL;
    expect_replay(w, 33);
    add_world_close(w);
}

// An executor of the program whose ops are where `place` says; one run is behind it.
static rondo_executor *make_placed(const add_world *w, rondo_program *program, const char *place,
                                   uint64_t weight_limit) {
    rondo_executor *executor;
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    options.place = &place;
    options.place_count = place != NULL ? 1 : 0;
    options.weight_limit_bytes = weight_limit;
    OK(rondo_executor_create(program, w->device, &options, &executor));
    const rondo_binding feed = {"x", w->x};
    for (int run = 0; run < 3; ++run) {
        OK(rondo_executor_run(executor, &feed, 1, NULL, 0));
    }
    return executor;
}

// Ops of the processor are host functions in the graph, with memory of the graph's own.
TEST(test_executor_record_run__ops_of_the_processor) {
    static const char *const places[] = {"Add_0=cpu", "Add_1=cpu", "Add*=cpu"};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        add_world *w = open_world();
        rondo_executor *executor = make_placed(w, w->program, places[i], 0);
        begin(w);
        OK(record(w, executor));
        OK(rondo_graph_capture_end(w->graph));
        for (int round = 0; round < 3; ++round) {
            expect_replay(w, (float)(5 * round));
            write_x(w, 70);  // runs of the executor have other memory
            const rondo_binding feed = {"x", w->x};
            rondo_binding fetch = {"y", w->y};
            OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
            add_world_expect(w->stream, &w->y, 70, true);
        }
        // From and to pinned memory.
        OK(rondo_graph_reset(w->graph));
        float *pinned;
        OK(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, 2 * sizeof(float) * ADD_COUNT,
                                 (void **)&pinned));
        const rondo_binding feed = {"x", add_program_on_host(pinned)};
        const rondo_binding fetch = {"y", add_program_on_host(pinned + ADD_COUNT)};
        begin(w);
        OK(rondo_executor_record(executor, w->stream, &feed, 1, &fetch, 1));
        OK(rondo_graph_capture_end(w->graph));
        rondo_executor_destroy(executor);  // the graph keeps what it needs
        for (int round = 0; round < 3; ++round) {
            add_program_fill(pinned, (float)round);
            OK(rondo_graph_replay(w->graph, w->stream));
            OK(rondo_stream_synchronize(w->stream));
            assert_int_equal(add_program_check(pinned + ADD_COUNT, (float)round, true), ADD_COUNT);
        }
        OK(rondo_graph_reset(w->graph));
        rondo_memory_free(w->device, pinned);
        add_world_close(w);
    }
}

// Weights that each run brings are brought by each replay.
TEST(test_executor_record_run__weights_that_are_brought) {
    enum { WEIGHTS = 6 };
    add_world *w = open_world();
    rondo_program *program;
    float weights[WEIGHTS][ADD_COUNT];
    static const char *const names[] = {"w0", "w1", "w2", "w3", "w4", "w5"};
    static const char *const values[] = {"x", "t1", "t2", "t3", "t4", "t5", "t6"};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, ADD_COUNT)));
    for (int i = 0; i < WEIGHTS; ++i) {
        add_program_fill(weights[i], (float)(100 * i));
        OK(rondo_builder_add_constant(b, names[i], RONDO_DTYPE_F32, &add_shape, weights[i]));
        OK(rondo_builder_add_node(b, "Add", (const char *[]){values[i], names[i]}, 2,
                                  &values[i + 1], 1, NULL));
    }
    OK(rondo_builder_add_output(b, "t6", NULL));
    program = build_finish(b);
    rondo_executor *executor = make_placed(w, program, NULL, 4 * sizeof weights[0]);
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    assert_true((stats.spilled_constant_bytes > 0) == (strcmp(on_devices_get_name(), "host") != 0));
    const rondo_binding feed = {"x", w->x};
    const rondo_binding fetch = {"t6", w->y};
    begin(w);
    OK(rondo_executor_record(executor, w->stream, &feed, 1, &fetch, 1));
    OK(rondo_graph_capture_end(w->graph));
    for (int round = 0; round < 3; ++round) {
        float read[ADD_COUNT];
        const rondo_tensor to = add_program_on_host(read);
        write_x(w, (float)round);
        OK(rondo_graph_replay(w->graph, w->stream));
        OK(rondo_tensor_copy(w->stream, &w->y, &to));
        OK(rondo_stream_synchronize(w->stream));
        for (int i = 0; i < ADD_COUNT; ++i) {
            assert_true(read[i] == (float)(round + i + 6 * i + 1500));
        }
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    add_world_close(w);
}

TEST(test_executor_record_run__addresses_that_no_kernel_takes_are_copied) {
    add_world *w = open_world();
    run_once(w, 1);
    const rondo_shape large = {.rank = 1, .extent = {2 * ADD_COUNT}};
    rondo_tensor block;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &large, &block));
    const rondo_tensor x = w->x;
    const rondo_tensor y = w->y;
    w->x.data = w->y.data = (char *)block.data + 3 * sizeof(float);  // y in place of x
    begin(w);
    OK(record(w, w->executor));
    OK(rondo_graph_capture_end(w->graph));
    assert_int_equal(count_nodes(w), 4);
    expect_replay(w, 2);
    expect_replay(w, 3);
    OK(rondo_graph_reset(w->graph));
    w->x.data = w->y.data = x.data;  // aligned, but what is written must not be read again
    begin(w);
    OK(record(w, w->executor));
    OK(rondo_graph_capture_end(w->graph));
    assert_int_equal(count_nodes(w), 3);
    expect_replay(w, 4);
    w->x = x;
    w->y = y;
    rondo_tensor_deinit(&block);
    add_world_close(w);
}

TEST(test_executor_record_run__two_models_one_behind_the_other) {
    add_world *w = open_world();
    run_once(w, 1);
    rondo_tensor middle;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &middle));
    const rondo_binding first = {"x", w->x};
    const rondo_binding between[] = {{"y", middle}, {"x", middle}};
    const rondo_binding last = {"y", w->y};
    begin(w);
    OK(rondo_executor_record(w->executor, w->stream, &first, 1, &between[0], 1));
    OK(rondo_executor_record(w->executor, w->stream, &between[1], 1, &last, 1));
    OK(rondo_graph_capture_end(w->graph));
    write_x(w, 3);
    OK(rondo_graph_replay(w->graph, w->stream));
    float values[ADD_COUNT];
    add_world_read(w->stream, &w->y, values);
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        assert_true(values[i] == add_program_y(add_program_y(3 + (float)i, i), i));
    }
    rondo_tensor_deinit(&middle);
    add_world_close(w);
}

// y = x + x for any number of elements.
static rondo_program *build_any(void) {
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "x",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 1,
                          .extent = {-1},
                          .symbol = {"n"}};
    static const char *const operands[] = {"x", "x", NULL};
    return one_op_build("Add", &x, 1, operands, "y", NULL);
}

TEST(test_executor_record_run__plans_that_are_given_up_stay) {
    add_world *w = open_world();
    rondo_program *program = build_any();
    rondo_executor *executor = make_executor(w, program, 1);
    const rondo_binding feed = {"x", w->x};
    rondo_binding fetch = {"y", w->y};
    write_x(w, 1);
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    begin(w);
    OK(rondo_executor_record(executor, w->stream, &feed, 1, &fetch, 1));
    OK(rondo_graph_capture_end(w->graph));
    for (int round = 0; round < 3; ++round) {
        for (int64_t count = 4; count <= ADD_COUNT; count *= 4) {
            rondo_binding part = feed;
            rondo_binding result = {.name = "y"};
            part.tensor.shape.extent[0] = count;
            OK(rondo_executor_run(executor, &part, 1, &result, 1));
            rondo_tensor_deinit(&result.tensor);
        }
        write_x(w, (float)round);
        OK(rondo_graph_replay(w->graph, w->stream));
        float values[ADD_COUNT];
        add_world_read(w->stream, &w->y, values);
        assert_true(values[0] == 2.0f * (float)round && values[63] == 2.0f * (float)(63 + round));
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    assert_true(stats.plan_eviction_count >= 8);
    OK(rondo_graph_reset(w->graph));
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    add_world_close(w);
}

// y = x + a + b + c, where a, b and c are inputs with the default 1.
static rondo_program *build_optional(void) {
    rondo_builder *builder;
    static const char *const operands[3][2] = {{"x", "a"}, {"p", "b"}, {"q", "c"}};
    static const char *const results[] = {"p", "q", "y"};
    float ones[ADD_COUNT];
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        ones[i] = 1;
    }
    const rondo_tensor fallback = {.dtype = RONDO_DTYPE_F32, .shape = add_shape, .data = ones};
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, ADD_COUNT)));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_builder_add_parameter(builder, operands[i][1], &fallback, RONDO_PARAMETER_INPUT));
        OK(rondo_builder_add_node(builder, "Add", operands[i], 2, &results[i], 1, NULL));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

// Feeds x and those of a, b and c whose bits are set, all the same tensor.
static size_t list_feeds(const add_world *w, int bits, rondo_binding *feeds) {
    static const char *const names[] = {"a", "b", "c"};
    size_t count = 0;
    feeds[count++] = (rondo_binding){"x", w->x};
    for (int i = 0; i < 3; ++i) {
        if ((bits >> i & 1) != 0) {
            feeds[count++] = (rondo_binding){names[i], w->x};
        }
    }
    return count;
}

// The first element of y where that of the inputs is 5.
static void expect_first(const add_world *w, float wanted) {
    float values[ADD_COUNT];
    add_world_read(w->stream, &w->y, values);
    assert_true(values[0] == wanted);
}

TEST(test_executor_record_run__sets_of_optional_inputs) {
    add_world *w = open_world();
    rondo_program *program = build_optional();
    rondo_executor *executor = make_executor(w, program, 0);
    rondo_binding feeds[4];
    rondo_binding fetch = {"y", w->y};
    write_x(w, 5);
    for (int round = 0; round < 2; ++round) {  // more sets than the executor keeps
        for (int bits = 0; bits < 8; ++bits) {
            const size_t count = list_feeds(w, bits, feeds);
            OK(rondo_executor_run(executor, feeds, count, &fetch, 1));
            expect_first(w, 5 + 3 + 4 * (float)(count - 1));
            if (round == 0 && bits == 1) {
                begin(w);
                OK(rondo_executor_record(executor, w->stream, feeds, count, &fetch, 1));
                OK(rondo_graph_capture_end(w->graph));
            }
            if (round > 0 || bits > 0) {
                OK(rondo_graph_replay(w->graph, w->stream));
                expect_first(w, 5 + 3 + 4);
            }
        }
    }
    rondo_tensor weights;
    OK(rondo_executor_get_variable(executor, "b", &weights));
    EXPECT(STATE, "reset or destroy the graph",
           rondo_executor_set_variable(executor, "b", &weights));
    OK(rondo_graph_reset(w->graph));
    OK(rondo_executor_set_variable(executor, "b", &weights));
    rondo_tensor_deinit(&weights);
    OK(rondo_executor_run(executor, feeds, list_feeds(w, 5, feeds), &fetch, 1));
    expect_first(w, 5 + 3 + 8);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    add_world_close(w);
}

// ---- a capture that Rondo did not begin -------------------------------------------------------

TEST(test_executor_record_run__into_a_capture_of_the_drivers) {
    if (strcmp(on_devices_get_name(), "host") == 0) {
        return;
    }
    add_world *w = open_world();
    run_once(w, 1);
    const rondo__cuda_api *api = driver_enter(w->device);
    rondo__cu_stream native = rondo_stream_get_native(w->stream);
    rondo__cu_graph graph = NULL;
    rondo__cu_graph_exec exec = NULL;
    assert_int_equal(api->cuStreamBeginCapture(native, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL),
                     RONDO__CU_SUCCESS);
    OK(record(w, w->executor));
    assert_int_equal(api->cuStreamEndCapture(native, &graph), RONDO__CU_SUCCESS);
    assert_int_equal(api->cuGraphInstantiateWithFlags(&exec, graph, 0), RONDO__CU_SUCCESS);
    write_x(w, 9);
    assert_int_equal(api->cuGraphLaunch(exec, native), RONDO__CU_SUCCESS);
    add_world_expect(w->stream, &w->y, 9, true);
    assert_int_equal(api->cuGraphExecDestroy(exec), RONDO__CU_SUCCESS);
    assert_int_equal(api->cuGraphDestroy(graph), RONDO__CU_SUCCESS);
    assert_true(driver_leave(api));
    add_world_close(w);
}

// ---- what is refused --------------------------------------------------------------------------

TEST(test_executor_record_run__refusals_leave_the_capture_whole) {
    add_world *w = open_world();
    const rondo_binding feed = {"x", w->x};
    rondo_binding fetch = {"y", w->y};
    EXPECT(STATE, "does not record", record(w, w->executor));
    begin(w);
    OK(rondo_stream_fill(w->stream, w->y.data, 0, 4, ADD_COUNT));
    EXPECT(STATE, "run it once before", record(w, w->executor));
    OK(rondo_graph_capture_end(w->graph));
    OK(rondo_graph_reset(w->graph));
    run_once(w, 1);
    begin(w);
    EXPECT(INVALID, "executor is NULL",
           rondo_executor_record(NULL, w->stream, &feed, 1, &fetch, 1));
    EXPECT(INVALID, "stream", rondo_executor_record(w->executor, NULL, &feed, 1, &fetch, 1));
    EXPECT(INVALID, "\"x\" is not fed",
           rondo_executor_record(w->executor, w->stream, &feed, 0, &fetch, 1));
    fetch.tensor.data = NULL;
    EXPECT(INVALID, "fetch \"y\" has no data",
           rondo_executor_record(w->executor, w->stream, &feed, 1, &fetch, 1));
    fetch.tensor.data = w->y.data;
    fetch.tensor.dtype = RONDO_DTYPE_I32;
    EXPECT(INVALID, "fetch \"y\": the tensor given is i32 [64]",
           rondo_executor_record(w->executor, w->stream, &feed, 1, &fetch, 1));
    OK(record(w, w->executor));
    OK(rondo_graph_capture_end(w->graph));
    expect_replay(w, 6);
    OK(rondo_graph_reset(w->graph));
    float values[ADD_COUNT];
    const rondo_binding pageable = BIND_SHAPE("x", RONDO_DTYPE_F32, values, add_shape);
    fetch.tensor = w->y;
    begin(w);
    EXPECT(STATE, "feed \"x\" lies in pageable host memory",
           rondo_executor_record(w->executor, w->stream, &pageable, 1, &fetch, 1));
    rondo_binding out = fetch;
    out.tensor.device = NULL;
    out.tensor.data = values;
    EXPECT(STATE, "fetch \"y\" lies in pageable host memory",
           rondo_executor_record(w->executor, w->stream, &feed, 1, &out, 1));
    OK(record(w, w->executor));
    OK(rondo_graph_capture_end(w->graph));
    expect_replay(w, 7);
    add_world_close(w);
}

TEST(test_executor_record_run__a_bypassed_op_is_named) {
    add_world *w = open_world();
    static const char *const operands[] = {"x", NULL};
    rondo_program *program = one_op_build("NonZero", &PORT("x", RONDO_DTYPE_F32, ADD_COUNT), 1,
                                          operands, "places", NULL);
    rondo_executor *executor = make_executor(w, program, 0);
    write_x(w, 0);
    const rondo_binding feed = {"x", w->x};
    rondo_binding fetch = {.name = "places"};
    for (int run = 0; run < 3; ++run) {
        OK(rondo_executor_run_async(executor, &feed, 1, &fetch, 1, NULL));  // waits inside
        OK(rondo_executor_wait(executor));
        assert_int_equal(fetch.tensor.shape.extent[1], ADD_COUNT - 1);
        assert_int_equal(((const int64_t *)fetch.tensor.data)[0], 1);
        if (run < 2) {
            rondo_tensor_deinit(&fetch.tensor);
        }
    }
    begin(w);
    EXPECT(UNSUPPORTED, "NonZero", rondo_executor_record(executor, w->stream, &feed, 1, &fetch, 1));
    OK(rondo_graph_capture_end(w->graph));
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    add_world_close(w);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
