// Runs whose tensors are bound once, on the host, a real GPU where there is one, and the fake
// driver: the same results as by names, whatever changes between two of them.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/add_world.h"
#include "support/cases/one_op.h"
#include "support/counting_heap.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

static rondo_executor_stats get_stats(rondo_executor *executor) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    return stats;
}

// ---- one shape --------------------------------------------------------------------------------

TEST(test_executor_bound_run__runs_as_by_names) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_bound_run *run;
    float x[2][ADD_COUNT], y[ADD_COUNT], s[ADD_COUNT];
    const rondo_tensor xs[] = {add_program_on_host(x[0]), add_program_on_host(x[1])};
    const rondo_tensor to_y = add_program_on_host(y);
    const rondo_tensor to_s = add_program_on_host(s);
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &xs[0]));
    OK(rondo_bound_run_set_fetch(run, "y", &to_y));
    OK(rondo_bound_run_set_fetch(run, "s", &to_s));
    for (int i = 0; i < 8; ++i) {
        const float first = (float)(5 * i);
        add_program_fill(x[i / 4], first);
        if (i == 4) {  // other memory of the same shape: the plan stays
            OK(rondo_bound_run_set_feed(run, "x", &xs[1]));
        }
        if (i == 6) {  // in between a run by names
            OK(add_program_run(w->executor, 99));
        }
        memset(y, 0, sizeof y);
        OK(rondo_bound_run_run(run));
        assert_int_equal(add_program_check(y, first, true), ADD_COUNT);
        assert_int_equal(add_program_check(s, first, false), ADD_COUNT);
    }
    // Memory of another fetch, also in part, is refused until that one is taken away.
    float room[ADD_COUNT + 1];
    const rondo_tensor to_room = add_program_on_host(room), to_part = add_program_on_host(room + 1);
    OK(rondo_bound_run_set_fetch(run, "y", &to_room));
    const rondo_tensor *const taken[] = {&to_room, &to_part};
    for (int i = 0; i < 2; ++i) {
        EXPECT(INVALID, "fetches \"s\" and \"y\" overlap; bind each to memory of its own",
               rondo_bound_run_set_fetch(run, "s", taken[i]));
    }
    OK(rondo_bound_run_set_fetch(run, "y", NULL));
    OK(rondo_bound_run_set_fetch(run, "s", &to_part));
    OK(rondo_bound_run_set_fetch(run, "s", &to_s));
    OK(rondo_bound_run_set_fetch(run, "y", &to_y));
    OK(rondo_bound_run_set_fetch(run, "s", NULL));
    memset(s, 0, sizeof s);
    OK(rondo_bound_run_run(run));
    assert_true(s[1] == 0);
    const rondo_executor_stats stats = get_stats(w->executor);
    assert_int_equal(stats.plan_miss_count, 1);
    assert_int_equal(stats.plan_hit_count, 9);
    assert_int_equal(stats.replay_run_count, 9);
    rondo_run_times times = {.struct_size = sizeof times};
    OK(rondo_executor_get_times(w->executor, &times));
    assert_true(times.was_replayed && times.latency_ns > 0);
    OK(rondo_executor_rerun(w->executor));
    rondo_bound_run_destroy(run);
    add_world_close(w);
}

TEST(test_executor_bound_run__tensors_of_the_device) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_bound_run *run;
    rondo_tensor other, found;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &other));
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_fetch(run, "y", &(rondo_tensor){.device = w->device}));
    OK(rondo_bound_run_set_fetch(run, "s", &w->s));
    EXPECT(STATE, "none has succeeded", rondo_bound_run_get_fetch(run, "y", &found));
    void *kept = NULL;
    for (int i = 0; i < 8; ++i) {
        const rondo_tensor *x = i % 2 == 0 ? &w->x : &other;
        add_world_write(w->stream, x, (float)i);
        OK(rondo_bound_run_set_feed(run, "x", x));
        if (i < 4) {
            OK(rondo_bound_run_run(run));
        } else {
            OK(rondo_bound_run_run_async(run, NULL));
            OK(rondo_executor_wait(w->executor));
        }
        OK(rondo_bound_run_get_fetch(run, "y", &found));
        assert_ptr_equal(found.device, w->device);
        assert_true(kept == NULL || kept == found.data);
        kept = found.data;
        add_world_expect(w->stream, &found, (float)i, true);
        add_world_expect(w->stream, &w->s, (float)i, false);
        rondo_tensor_deinit(&found);
    }
    assert_true(get_stats(w->executor).in_place_run_count > 0);
    rondo_bound_run_destroy(run);
    rondo_tensor_deinit(&other);
    add_world_close(w);
}

TEST(test_executor_bound_run__takes_no_memory) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_bound_run *run;
    float *x;
    OK(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, sizeof(float) * ADD_COUNT,
                             (void **)&x));
    const rondo_tensor from = add_program_on_host(x);
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &from));
    OK(rondo_bound_run_set_fetch(run, "y", &(rondo_tensor){0}));
    size_t before = 0;
    for (int i = 0; i < 10; ++i) {
        before = i == 7 ? counting_heap_count(false) : before;
        add_program_fill(x, (float)i);
        OK(rondo_bound_run_run(run));
    }
    assert_int_equal(counting_heap_count(false), before);
    rondo_tensor y;
    OK(rondo_bound_run_get_fetch(run, "y", &y));
    assert_int_equal(add_program_check(y.data, 9, true), ADD_COUNT);
    rondo_tensor_deinit(&y);
    // The run keeps what it needs.
    rondo_executor_destroy(w->executor);
    w->executor = NULL;
    add_program_fill(x, 7);
    OK(rondo_bound_run_run(run));
    rondo_bound_run_destroy(run);
    rondo_bound_run_destroy(NULL);
    rondo_memory_free(w->device, x);
    add_world_close(w);
}

// ---- memory of others -------------------------------------------------------------------------

static int delete_count;

static void count_delete(rondo_dlpack_managed *managed) {
    delete_count += 1;
    free(managed->tensor.extents);
    free(managed);
}

static rondo_tensor import(float *values) {
    rondo_dlpack_managed *managed = calloc(1, sizeof *managed);
    rondo_tensor tensor;
    managed->tensor = (rondo_dlpack_tensor){.data = values,
                                            .device = {RONDO_DLPACK_CPU, 0},
                                            .rank = 1,
                                            .type = {RONDO_DLPACK_FLOAT, 32, 1},
                                            .extents = malloc(sizeof(int64_t))};
    managed->tensor.extents[0] = ADD_COUNT;
    managed->deleter = count_delete;
    OK(rondo_tensor_from_dlpack(managed, &tensor, NULL));
    return tensor;
}

TEST(test_executor_bound_run__shares_what_is_imported) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_bound_run *run;
    static float x[ADD_COUNT], y[ADD_COUNT];
    rondo_tensor from = import(x);
    rondo_tensor to = import(y);
    delete_count = 0;
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &from));
    OK(rondo_bound_run_set_fetch(run, "y", &to));
    rondo_tensor_deinit(&from);
    rondo_tensor_deinit(&to);
    assert_int_equal(delete_count, 0);
    add_program_fill(x, 3);
    OK(rondo_bound_run_run(run));
    assert_int_equal(add_program_check(y, 3, true), ADD_COUNT);
    OK(rondo_bound_run_run_async(run, NULL));
    OK(rondo_bound_run_set_fetch(run, "y", NULL));  // waits: the run writes there
    assert_int_equal(delete_count, 1);
    rondo_bound_run_destroy(run);
    assert_int_equal(delete_count, 2);
    add_world_close(w);
}

typedef struct giver {
    rondo_device *device;
    void *memory;
    size_t room, calls;
} giver;

static void *give_memory(void *user_data, const char *name, const rondo_tensor *wanted,
                         size_t bytes) {
    giver *g = user_data;
    g->calls += 1;
    assert_string_equal(name, "y");
    assert_int_equal(wanted->dtype, RONDO_DTYPE_F32);
    assert_ptr_equal(wanted->device, g->device);
    assert_int_equal(bytes, sizeof(float) * (size_t)wanted->shape.extent[0]);
    return bytes <= g->room ? g->memory : NULL;
}

// y = x + x of any length.
static rondo_program *make_twice(void) {
    rondo_port port = {
        .struct_size = sizeof port, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    port.extent[0] = -1;
    port.symbol[0] = "n";
    return one_op_build("Add", &port, 1, (const char *[]){"x", "x", NULL}, "y", NULL);
}

typedef struct twice {
    rondo_device *device;
    rondo_stream *stream;
    rondo_program *program;
    rondo_executor *executor;
    rondo_bound_run *run;
} twice;

static twice open_twice(size_t plan_limit) {
    twice t = {0};
    rondo_executor_options options = {.struct_size = sizeof options, .plan_limit = plan_limit};
    OK(rondo_device_open(on_devices_get_name(), &t.device));
    OK(rondo_stream_create(t.device, NULL, &t.stream));
    t.program = make_twice();
    OK(rondo_executor_create(t.program, t.device, &options, &t.executor));
    OK(rondo_bound_run_create(t.executor, &t.run));
    return t;
}

static void close_twice(twice *t) {
    rondo_bound_run_destroy(t->run);
    rondo_executor_destroy(t->executor);
    rondo_program_destroy(t->program);
    rondo_stream_destroy(t->stream);
    rondo_device_release(t->device);
}

static float numbers[ADD_COUNT];

static rondo_tensor first_of(int64_t count) {
    return (rondo_tensor){
        .dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {count}}, .data = numbers};
}

static void expect_twice(rondo_bound_run *run, int64_t count) {
    rondo_tensor y;
    OK(rondo_bound_run_get_fetch(run, "y", &y));
    assert_int_equal(y.shape.extent[0], count);
    for (int64_t i = 0; i < count; ++i) {
        assert_true(((const float *)y.data)[i] == 2 * numbers[i]);
    }
    rondo_tensor_deinit(&y);
}

TEST(test_executor_bound_run__the_program_allocates) {
    twice t = open_twice(0);
    giver g = {.device = t.device, .room = sizeof numbers};
    OK(rondo_memory_allocate(t.device, RONDO_MEMORY_DEVICE, sizeof numbers, &g.memory));
    OK(rondo_bound_run_set_allocator(t.run, give_memory, &g));
    OK(rondo_bound_run_set_fetch(t.run, "y", &(rondo_tensor){.device = t.device}));
    add_program_fill(numbers, 1);
    static const int64_t lengths[] = {8, 8, 8, 16, 16, 8};
    static const size_t calls[] = {1, 1, 1, 2, 2, 3};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        const rondo_tensor x = first_of(lengths[i]);
        rondo_tensor y, copy;
        float values[ADD_COUNT] = {0};
        OK(rondo_bound_run_set_feed(t.run, "x", &x));
        OK(rondo_bound_run_run(t.run));
        assert_int_equal(g.calls, calls[i]);
        OK(rondo_bound_run_get_fetch(t.run, "y", &y));
        assert_ptr_equal(y.data, g.memory);
        copy = x;
        copy.data = values;
        OK(rondo_tensor_copy(t.stream, &y, &copy));
        OK(rondo_stream_synchronize(t.stream));
        assert_true(values[0] == 2 && values[lengths[i] - 1] == 2 * numbers[lengths[i] - 1]);
        rondo_tensor_deinit(&y);
    }
    g.room = 100;
    const rondo_tensor large = first_of(32);
    OK(rondo_bound_run_set_feed(t.run, "x", &large));
    const rondo_status status = rondo_bound_run_run(t.run);
    assert_true(status == RONDO_STATUS_NO_DEVICE_MEMORY || status == RONDO_STATUS_NO_MEMORY);
    assert_non_null(strstr(rondo_error_get_last()->message, "allocator gave no 128 bytes"));
    g.room = sizeof numbers;
    OK(rondo_bound_run_run(t.run));
    OK(rondo_bound_run_set_allocator(t.run, NULL, NULL));
    OK(rondo_bound_run_run(t.run));
    OK(rondo_bound_run_set_fetch(t.run, "y", &(rondo_tensor){0}));
    OK(rondo_bound_run_run(t.run));
    expect_twice(t.run, 32);
    assert_int_equal(g.calls, 5);
    rondo_memory_free(t.device, g.memory);
    close_twice(&t);
}

// ---- what changes -----------------------------------------------------------------------------

TEST(test_executor_bound_run__shapes_change) {
    for (size_t limit = 0; limit < 2; ++limit) {  // with 1, each run drops the plan of the other
        twice t = open_twice(limit);
        rondo_bound_run *other;
        OK(rondo_bound_run_create(t.executor, &other));
        OK(rondo_bound_run_set_fetch(t.run, "y", &(rondo_tensor){0}));
        OK(rondo_bound_run_set_fetch(other, "y", &(rondo_tensor){0}));
        const rondo_tensor small = first_of(5);
        OK(rondo_bound_run_set_feed(other, "x", &small));
        for (int i = 0; i < 12; ++i) {
            const int64_t length = i < 6 ? 7 : 7 + i;
            const rondo_tensor x = first_of(length);
            add_program_fill(numbers, (float)i);
            OK(rondo_bound_run_set_feed(t.run, "x", &x));
            OK(rondo_bound_run_run(t.run));
            expect_twice(t.run, length);
            OK(rondo_bound_run_run(other));
            expect_twice(other, 5);
            expect_twice(t.run, length);
        }
        const rondo_executor_stats stats = get_stats(t.executor);
        assert_int_equal(stats.plan_count, limit == 0 ? 8 : 1);
        assert_int_equal(stats.plan_miss_count, limit == 0 ? 8 : 24);
        rondo_bound_run_destroy(other);
        close_twice(&t);
    }
}

TEST(test_executor_bound_run__wrong_entries_change_nothing) {
    twice t = open_twice(0);
    rondo_tensor x = first_of(4);
    float room[8];
    rondo_tensor y = {.dtype = RONDO_DTYPE_F32, .shape = {1, {4}}, .data = room};
    add_program_fill(numbers, 1);
    EXPECT(INVALID, "no input \"z\"; it has \"x\"", rondo_bound_run_set_feed(t.run, "z", &x));
    EXPECT(INVALID, "no output \"x2\"", rondo_bound_run_set_fetch(t.run, "x2", &y));
    EXPECT(INVALID, "\"x\" is not fed", rondo_bound_run_run(t.run));
    EXPECT(INVALID, "not bound", rondo_bound_run_get_fetch(t.run, "y", &x));
    x = first_of(4);
    OK(rondo_bound_run_set_feed(t.run, "x", &x));
    OK(rondo_bound_run_set_fetch(t.run, "y", &y));
    OK(rondo_bound_run_run(t.run));
    rondo_tensor wrong = x;
    wrong.dtype = RONDO_DTYPE_I32;
    EXPECT(INVALID, "the model takes f32", rondo_bound_run_set_feed(t.run, "x", &wrong));
    wrong = x;
    wrong.data = NULL;
    EXPECT(INVALID, "its data is NULL", rondo_bound_run_set_feed(t.run, "x", &wrong));
    wrong = x;
    wrong.shape.rank = 2;
    EXPECT(INVALID, "has shape", rondo_bound_run_set_feed(t.run, "x", &wrong));
    room[0] = 0;
    OK(rondo_bound_run_run(t.run));
    assert_true(room[0] == 2 && room[3] == 8);
    x.shape.extent[0] = 5;  // longer than what it is fetched to
    OK(rondo_bound_run_set_feed(t.run, "x", &x));
    EXPECT(INVALID, "fetch \"y\"", rondo_bound_run_run(t.run));
    y.shape.extent[0] = 5;
    OK(rondo_bound_run_set_fetch(t.run, "y", &y));
    OK(rondo_bound_run_run(t.run));
    assert_true(room[4] == 10);
    OK(rondo_bound_run_set_feed(t.run, "x", NULL));
    EXPECT(INVALID, "\"x\" is not fed", rondo_bound_run_run(t.run));
    close_twice(&t);
}

// The values of `shape` decide the shape of y, and are read in each run; host only, where the fake
// has no kernels for it.
TEST(test_executor_bound_run__values_decide_shapes) {
    const rondo_port ports[] = {PORT("x", RONDO_DTYPE_F32, 12), PORT("shape", RONDO_DTYPE_I64, 2)};
    rondo_program *program =
        one_op_build("Reshape", ports, 2, (const char *[]){"x", "shape", NULL}, "y", NULL);
    rondo_device *device;
    rondo_executor *executor;
    rondo_bound_run *run;
    int64_t extents[2] = {3, 4};
    const rondo_tensor x = first_of(12);
    const rondo_tensor shape = {
        .dtype = RONDO_DTYPE_I64, .shape = {.rank = 1, .extent = {2}}, .data = extents};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_bound_run_create(executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &x));
    OK(rondo_bound_run_set_feed(run, "shape", &shape));
    OK(rondo_bound_run_set_fetch(run, "y", &(rondo_tensor){0}));
    for (int i = 0; i < 30; ++i) {
        static const int64_t rows[] = {1, 2, 3, 4, 6, 12};
        rondo_tensor y;
        extents[0] = rows[i % 6];
        extents[1] = 12 / rows[i % 6];
        add_program_fill(numbers, (float)i);
        OK(rondo_bound_run_run(run));
        OK(rondo_bound_run_get_fetch(run, "y", &y));
        assert_int_equal(y.shape.extent[0], extents[0]);
        assert_true(((const float *)y.data)[11] == numbers[11]);
        rondo_tensor_deinit(&y);
    }
    rondo_bound_run_destroy(run);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

static size_t warning_count;

static void count_warnings(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)message;
    warning_count += level <= RONDO_LOG_WARNING ? 1 : 0;
}

// A symbol of an output that each run finds anew; until one has, there is nothing to fetch.
TEST(test_executor_bound_run__data_decide_shapes) {
    const rondo_port y_port = {.struct_size = sizeof y_port,
                               .dtype = RONDO_DTYPE_I64,
                               .rank = 2,
                               .extent = {1, -1},
                               .symbol = {NULL, "n"}};
    rondo_builder *builder;
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    rondo_bound_run *run;
    rondo_tensor y;
    int64_t room[12];
    const rondo_tensor x = first_of(12);
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 12)));
    build_node(builder, "NonZero", "x", "y", NULL);
    OK(rondo_builder_add_output(builder, "y", &y_port));
    program = build_finish(builder);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_bound_run_create(executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &x));
    // Memory of another shape: the first run fails.
    OK(rondo_bound_run_set_fetch(
        run, "y",
        &(rondo_tensor){
            .dtype = RONDO_DTYPE_I64, .shape = {.rank = 2, .extent = {1, 12}}, .data = room}));
    EXPECT(STATE, "none has succeeded", rondo_bound_run_get_fetch(run, "y", &y));
    memset(numbers, 0, 12 * sizeof *numbers);
    EXPECT(INVALID, "fetch \"y\"", rondo_bound_run_run(run));
    EXPECT(STATE, "none has succeeded", rondo_bound_run_get_fetch(run, "y", &y));
    OK(rondo_bound_run_set_fetch(run, "y", &(rondo_tensor){0}));
    warning_count = 0;
    rondo_log_set_sink(count_warnings, NULL);
    for (int i = 0; i < 6; ++i) {
        numbers[i] = 1;
        OK(rondo_bound_run_run(run));
        OK(rondo_bound_run_get_fetch(run, "y", &y));
        assert_int_equal(y.shape.extent[1], i + 1);
        rondo_tensor_deinit(&y);
    }
    rondo_log_set_sink(NULL, NULL);
    assert_int_equal(warning_count, 0);
    rondo_bound_run_destroy(run);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// ---- shapes without a run ---------------------------------------------------------------------

static void infer(rondo_executor *executor, const rondo_binding *feeds, size_t count,
                  const char *wanted) {
    rondo_binding output;
    size_t found;
    char text[96];
    OK(rondo_executor_infer_outputs(executor, feeds, count, &output, 1, &found));
    assert_int_equal(found, 1);
    assert_string_equal(output.name, "y");
    assert_null(output.tensor.data);
    assert_string_equal(output.tensor.shape.rank < 0
                            ? "?"
                            : rondo_shape_format(&output.tensor.shape, text, sizeof text),
                        wanted);
}

TEST(test_executor_bound_run__shapes_without_a_run) {
    twice t = open_twice(0);
    rondo_tensor x = first_of(9);
    x.data = NULL;
    infer(t.executor, &(rondo_binding){"x", x}, 1, "[9]");
    x.shape.extent[0] = INT64_C(1) << 40;  // nothing of that size is made
    infer(t.executor, &(rondo_binding){"x", x}, 1, "[1099511627776]");
    x.shape.extent[0] = 0;
    infer(t.executor, &(rondo_binding){"x", x}, 1, "[0]");
    size_t count = 7;
    EXPECT(INVALID, "\"x\" is not fed",
           rondo_executor_infer_outputs(t.executor, NULL, 0, NULL, 0, &count));
    assert_int_equal(count, 0);
    x.dtype = RONDO_DTYPE_F64;
    EXPECT(INVALID, "the model takes f32",
           rondo_executor_infer_outputs(t.executor, &(rondo_binding){"x", x}, 1, NULL, 0, &count));
    x = first_of(-3);
    EXPECT(INVALID, "not valid",
           rondo_executor_infer_outputs(t.executor, &(rondo_binding){"x", x}, 1, NULL, 0, &count));
    const rondo_binding both[] = {{"x", first_of(1)}, {"x", first_of(1)}};
    EXPECT(INVALID, "given twice",
           rondo_executor_infer_outputs(t.executor, both, 2, NULL, 0, &count));
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    EXPECT(STATE, "nothing has run", rondo_executor_get_stats(t.executor, &stats));
    close_twice(&t);
}

// y of an op of two inputs, x [12] and a list of whole numbers that decides its shape.
TEST(test_executor_bound_run__shapes_that_values_decide) {
    static const struct {
        const char *op;
        int64_t length, list[2];
        const char *without, *with;
    } rows[] = {{"Reshape", 2, {3, 4}, "[-1, -1]", "[3, 4]"},
                {"Reshape", 2, {5, 5}, "[-1, -1]", NULL},
                {"Tile", 1, {3}, "[-1]", "[36]"},
                {"Expand", 2, {2, 12}, "[-1, -1]", "[2, 12]"}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
        const rondo_port ports[] = {PORT("x", RONDO_DTYPE_F32, 12),
                                    PORT("list", RONDO_DTYPE_I64, rows[r].length)};
        rondo_program *program =
            one_op_build(rows[r].op, ports, 2, (const char *[]){"x", "list", NULL}, "y", NULL);
        rondo_device *device;
        rondo_executor *executor;
        int64_t list[2] = {rows[r].list[0], rows[r].list[1]};
        rondo_binding feeds[] = {
            {"x", first_of(12)},
            {"list", {.dtype = RONDO_DTYPE_I64, .shape = {.rank = 1, .extent = {rows[r].length}}}}};
        OK(rondo_device_open(on_devices_get_name(), &device));
        OK(rondo_executor_create(program, device, NULL, &executor));
        infer(executor, feeds, 2, rows[r].without);
        feeds[1].tensor.data = list;
        if (rows[r].with != NULL) {
            infer(executor, feeds, 2, rows[r].with);
        } else {
            size_t count;
            const rondo_status status =
                rondo_executor_infer_outputs(executor, feeds, 2, NULL, 0, &count);
            assert_int_equal(status, RONDO_STATUS_BAD_DATA);
        }
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
        rondo_device_release(device);
    }
}

TEST(test_executor_bound_run__states_and_training) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_bound_run *run;
    float x[ADD_COUNT], y[ADD_COUNT];
    const rondo_tensor from = add_program_on_host(x);
    const rondo_tensor to = add_program_on_host(y);
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &from));
    OK(rondo_bound_run_set_fetch(run, "y", &to));
    add_program_fill(x, 1);
    OK(rondo_bound_run_run(run));
    OK(rondo_bound_run_run(run));
    OK(rondo_executor_set_training(w->executor, true));
    OK(rondo_bound_run_run(run));
    assert_int_equal(add_program_check(y, 1, true), ADD_COUNT);
    OK(rondo_executor_set_training(w->executor, false));
    OK(rondo_bound_run_run(run));
    // From now on x is what s was: s = x + w, y = s + x.
    OK(rondo_executor_bind(w->executor, "s", "x"));
    OK(rondo_bound_run_run(run));  // sets the state
    OK(rondo_bound_run_set_feed(run, "x", NULL));
    for (int i = 1; i < 5; ++i) {
        OK(rondo_bound_run_run(run));
        const float w3 = 1.5f;  // w[3]
        assert_true(y[3] == 2 * (4 + (float)i * w3) + w3);
    }
    rondo_bound_run_destroy(run);
    add_world_close(w);
}

TEST(test_executor_bound_run__strings) {
    rondo_program *program = one_op_build("StringConcat", &PORT("x", RONDO_DTYPE_STRING, 2), 1,
                                          (const char *[]){"x", "x", NULL}, "y", NULL);
    rondo_device *device;
    rondo_executor *executor;
    rondo_bound_run *run;
    rondo_string words[] = {{"a", 1}, {"bc", 2}};
    const rondo_tensor x = {
        .dtype = RONDO_DTYPE_STRING, .shape = {.rank = 1, .extent = {2}}, .data = words};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_bound_run_create(executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &x));
    OK(rondo_bound_run_set_fetch(run, "y", &(rondo_tensor){0}));
    for (int i = 0; i < 4; ++i) {
        rondo_tensor y;
        words[0].size = (size_t)(i % 2);
        OK(rondo_bound_run_run(run));
        OK(rondo_bound_run_get_fetch(run, "y", &y));
        assert_int_equal(((const rondo_string *)y.data)[0].size, 2 * (i % 2));
        assert_memory_equal(((const rondo_string *)y.data)[1].data, "bcbc", 4);
        rondo_tensor_deinit(&y);
    }
    words[1].data = NULL;
    EXPECT(INVALID, "string 1 has 2 bytes, but no address", rondo_bound_run_run(run));
    rondo_bound_run_destroy(run);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

int main(void) {
    if (!counting_heap_install()) {
        return 1;
    }
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
