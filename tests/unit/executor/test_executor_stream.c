// Executors as a part of a program's own work, on the host, a real GPU where there is one, and the
// fake driver: device tensors as feeds and fetches, the program's stream, runs that do not wait,
// nothing taken from the heap by a replayed run.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/add_world.h"
#include "support/cases/one_op.h"
#include "support/counting_heap.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

// ---- a device, a program, an executor ---------------------------------------------------------

static add_world *open_world(void) {
    return add_world_open(RONDO_GRAPHS_ON, false);
}

// ---- device tensors ---------------------------------------------------------------------------

TEST(test_executor_stream__device_tensors) {
    add_world *w = open_world();
    assert_int_equal((uintptr_t)w->x.data % 256, 0);
    assert_int_equal(rondo_tensor_is_on_host(&w->x), rondo_device_is_host(w->device));
    assert_true(rondo_tensor_is_on_host(NULL));
    add_world_write(w->stream, &w->x, 3);
    OK(rondo_tensor_copy(w->stream, &w->x, &w->y));  // on the device
    float values[ADD_COUNT];
    rondo_tensor to = add_program_on_host(values);
    OK(rondo_tensor_copy(w->stream, &w->y, &to));
    OK(rondo_stream_synchronize(w->stream));
    assert_true(values[0] == 3 && values[ADD_COUNT - 1] == ADD_COUNT + 2);
    to.shape.extent[0] = 3;
    EXPECT(INVALID, "source is f32 [64], destination is", rondo_tensor_copy(w->stream, &w->y, &to));
    to.shape = add_shape;
    to.dtype = RONDO_DTYPE_I32;
    EXPECT(INVALID, "destination is i32 [64]", rondo_tensor_copy(w->stream, &w->y, &to));
    EXPECT(INVALID, "stream", rondo_tensor_copy(NULL, &w->y, &w->x));
    EXPECT(INVALID, "source", rondo_tensor_copy(w->stream, NULL, &w->x));
    EXPECT(INVALID, "always in host memory",
           rondo_tensor_init_device(w->device, RONDO_DTYPE_STRING, &add_shape, &to));
    EXPECT(INVALID, "99", rondo_tensor_init_device(w->device, 99, &add_shape, &to));
    const rondo_shape none = {.rank = 1, .extent = {0}};
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &none, &to));
    assert_non_null(to.data);
    rondo_tensor_deinit(&to);
    if (!rondo_device_is_host(w->device)) {
        EXPECT(INVALID, "item 0 lies on cuda:0", rondo_tensor_init_sequence(&w->x, 1, &to));
        rondo_builder *builder;
        OK(rondo_builder_create(NULL, &builder));
        EXPECT(INVALID, "lies on cuda:0",
               rondo_builder_add_parameter(builder, "w", &w->x, RONDO_PARAMETER_COPIED));
        rondo_builder_destroy(builder);
    }
    add_world_close(w);
}

TEST(test_executor_stream__feeds_and_fetches_on_the_device) {
    add_world *w = open_world();
    rondo_tensor other;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &other));
    for (int run = 0; run < 6; ++run) {
        const float first = (float)(10 * run);
        rondo_tensor *x = run % 2 == 0 ? &w->x : &other;
        add_world_write(w->stream, x, first);
        float host_s[ADD_COUNT];
        const rondo_binding feed = {"x", *x};
        rondo_binding fetches[] = {{"y", w->y}, {"s", add_program_on_host(host_s)}};
        if (run % 3 == 2) {
            fetches[0].tensor = (rondo_tensor){.device = w->device};  // to be allocated there
        }
        OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
        assert_ptr_equal(fetches[0].tensor.device, w->device);
        add_world_expect(w->stream, &fetches[0].tensor, first, true);
        assert_int_equal(add_program_check(host_s, first, false), ADD_COUNT);
        if (run % 3 == 2) {
            rondo_tensor_deinit(&fetches[0].tensor);
        }
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(w->executor, &stats));
    assert_int_equal(stats.replay_run_count, 5);
    EXPECT(STATE, "device tensors", rondo_executor_rerun(w->executor));
    rondo_tensor_deinit(&other);
    add_world_close(w);
}

static uint64_t count_in_place(const add_world *w) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(w->executor, &stats));
    return stats.in_place_run_count;
}

// s = x + x; nothing reads the second input.
TEST(test_executor_stream__an_input_that_nothing_reads) {
    add_world *w = open_world();
    rondo_program *program;
    rondo_executor *executor;
    rondo_port x = PORT("x", RONDO_DTYPE_F32, ADD_COUNT);
    static const char *const operands[] = {"x", "x"}, *const results[] = {"s"};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &x));
    x.name = "unread";
    OK(rondo_builder_add_input(builder, &x));
    OK(rondo_builder_add_node(builder, "Add", operands, 2, results, 1, NULL));
    OK(rondo_builder_add_output(builder, "s", NULL));
    program = build_finish(builder);
    OK(rondo_executor_create(program, w->device, NULL, &executor));
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    for (int run = 0; run < 6; ++run) {
        const rondo_binding feeds[] = {{"x", w->x}, {"unread", w->y}};
        rondo_binding fetch = {"s", w->s};
        float s[ADD_COUNT];
        add_world_write(w->stream, &w->x, (float)run);
        OK(rondo_executor_run(executor, feeds, 2, &fetch, 1));
        add_world_read(w->stream, &w->s, s);
        assert_true(s[3] == 2.0f * (float)(run + 3));
    }
    OK(rondo_executor_get_stats(executor, &stats));
    assert_true(stats.in_place_run_count > 0);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    add_world_close(w);
}

enum { TENSORS = 3 };

TEST(test_executor_stream__addresses_are_patched) {
    add_world *w = open_world();
    rondo_tensor x[TENSORS];
    rondo_tensor y[TENSORS];
    for (int i = 0; i < TENSORS; ++i) {
        OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &x[i]));
        OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &y[i]));
    }
    for (int run = 0; run < 12; ++run) {
        const float first = (float)(3 * run);
        float s[ADD_COUNT];
        add_world_write(w->stream, &x[run % TENSORS], first);
        const rondo_binding feed = {"x", x[run % TENSORS]};
        rondo_binding fetches[] = {{"y", y[run % TENSORS]}, {"s", add_program_on_host(s)}};
        const size_t copies = fake_cuda_count_calls("cuMemcpyDtoDAsync");
        if (run % 2 == 0) {
            OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
        } else {
            OK(rondo_executor_run_async(w->executor, &feed, 1, fetches, 2, NULL));
            OK(rondo_executor_wait(w->executor));
        }
        assert_true(run < 4 || fake_cuda_count_calls("cuMemcpyDtoDAsync") == copies);
        add_world_expect(w->stream, &y[run % TENSORS], first, true);
        assert_int_equal(add_program_check(s, first, false), ADD_COUNT);
    }
    assert_int_equal(count_in_place(w), 9);
    rondo_run_times times = {.struct_size = sizeof times};
    OK(rondo_executor_get_times(w->executor, &times));
    assert_true(times.was_replayed && times.ran_op_count == 2 && times.replayed_op_count == 2);
    // Other ports, and back.
    float values[ADD_COUNT];
    add_program_fill(values, 1);
    rondo_binding feed = {"x", add_program_on_host(values)};
    rondo_binding fetch = {"y", y[0]};
    for (int run = 0; run < 3; ++run) {
        OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
        add_world_expect(w->stream, &y[0], 1, true);
    }
    assert_int_equal(count_in_place(w), 11);
    feed.tensor = x[0];
    for (int run = 0; run < 3; ++run) {
        add_world_write(w->stream, &x[0], (float)run);
        OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
        add_world_expect(w->stream, &y[0], (float)run, true);
    }
    assert_int_equal(count_in_place(w), 13);
    OK(rondo_executor_set_graphs(w->executor, RONDO_GRAPHS_OFF));
    add_world_write(w->stream, &x[0], 77);
    OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    add_world_expect(w->stream, &y[0], 77, true);
    assert_int_equal(count_in_place(w), 13);
    for (int i = 0; i < TENSORS; ++i) {
        rondo_tensor_deinit(&x[i]);
        rondo_tensor_deinit(&y[i]);
    }
    add_world_close(w);
}

TEST(test_executor_stream__addresses_in_the_middle) {
    add_world *w = open_world();
    const rondo_shape large = {.rank = 1, .extent = {2 * ADD_COUNT}};
    rondo_tensor block;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &large, &block));
    rondo_tensor x = {.dtype = RONDO_DTYPE_F32, .shape = add_shape, .device = w->device};
    x.data = (char *)block.data + 3 * sizeof(float);
    for (int run = 0; run < 4; ++run) {
        add_world_write(w->stream, &x, (float)run);
        const rondo_binding feed = {"x", x};
        rondo_binding fetches[] = {{"y", x}, {"s", w->s}};  // y in place of x
        OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
        add_world_expect(w->stream, &x, (float)run, true);
        add_world_expect(w->stream, &w->s, (float)run, false);
    }
    rondo_tensor_deinit(&block);
    add_world_close(w);
}

TEST(test_executor_stream__wrong_tensors_are_named) {
    add_world *w = open_world();
    float values[ADD_COUNT];
    add_program_fill(values, 1);
    const rondo_binding good = {"x", add_program_on_host(values)};
    rondo_binding fetch = {"y", w->y};
    rondo_binding bad = {"x", w->x};
    bad.tensor.shape.extent[0] = 3;
    EXPECT(INVALID, "feed \"x\" has shape [3], the model takes [64]",
           rondo_executor_run(w->executor, &bad, 1, &fetch, 1));
    bad = (rondo_binding){"x", w->x};
    bad.tensor.dtype = RONDO_DTYPE_I32;
    EXPECT(INVALID, "feed \"x\" is i32", rondo_executor_run(w->executor, &bad, 1, &fetch, 1));
    bad = (rondo_binding){"x", w->x};
    bad.tensor.data = NULL;
    EXPECT(INVALID, "feed \"x\": its data is NULL",
           rondo_executor_run_async(w->executor, &bad, 1, &fetch, 1, NULL));
    fetch.tensor.shape.extent[0] = 3;
    EXPECT(INVALID, "fetch \"y\": the tensor given is f32 [3], the output is f32 [64]",
           rondo_executor_run_async(w->executor, &good, 1, &fetch, 1, NULL));
    EXPECT(INVALID, "executor is NULL", rondo_executor_run_async(NULL, &good, 1, &fetch, 1, NULL));
    EXPECT(INVALID, "feeds is NULL",
           rondo_executor_run_async(w->executor, NULL, 1, &fetch, 1, NULL));
    EXPECT(INVALID, "executor is NULL", rondo_executor_wait(NULL));
    fetch.tensor = w->y;
    OK(rondo_executor_run(w->executor, &good, 1, &fetch, 1));
    add_world_expect(w->stream, &w->y, 1, true);
    add_world_close(w);
}

// ---- the program's stream ---------------------------------------------------------------------

static void fill_later(void *arguments) {
    float *values;
    memcpy(&values, arguments, sizeof values);
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    (void)nanosleep(&pause, NULL);
    add_program_fill(values, 5);
}

TEST(test_executor_stream__order_on_the_programs_stream) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, true);
    assert_ptr_equal(rondo_executor_get_stream(w->executor), w->stream);
    float *later = NULL;
    OK(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, sizeof(float) * ADD_COUNT,
                             (void **)&later));
    const rondo_tensor from = add_program_on_host(later);
    for (int run = 0; run < 4; ++run) {
        memset(later, 0, sizeof(float) * ADD_COUNT);
        OK(rondo_stream_call_host(w->stream, "fill", fill_later, &later, sizeof later));
        OK(rondo_tensor_copy(w->stream, &from, &w->x));
        const rondo_binding feed = {"x", w->x};
        rondo_binding fetches[] = {{"y", w->y}, {"s", w->s}};
        if (run % 2 == 0) {
            OK(rondo_executor_run_async(w->executor, &feed, 1, fetches, 2, NULL));
        } else {
            OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
        }
        add_world_expect(w->stream, &w->y, 5, true);  // by a copy behind the run
        add_world_expect(w->stream, &w->s, 5, false);
    }
    rondo_memory_free(w->device, later);
    add_world_close(w);
}

TEST(test_executor_stream__a_stream_that_records_runs_nothing) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, true);
    rondo_graph *graph;
    OK(rondo_graph_create(w->device, NULL, &graph));
    const rondo_binding feed = {"x", w->x};
    rondo_binding fetch = {"y", w->y};
    add_world_write(w->stream, &w->x, 2);
    for (int run = 0; run < 3; ++run) {
        OK(rondo_graph_capture_begin(graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
        OK(rondo_stream_fill(w->stream, w->s.data, 0, 4, ADD_COUNT));
        EXPECT(STATE, "records", rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
        EXPECT(STATE, "rondo_executor_record",
               rondo_executor_run_async(w->executor, &feed, 1, &fetch, 1, NULL));
        EXPECT(STATE, "records", rondo_executor_wait(w->executor));
        rondo_executor *another;
        rondo_executor_options on_it = {.struct_size = sizeof on_it, .stream = w->stream};
        EXPECT(STATE, "options.stream records",
               rondo_executor_create(w->program, w->device, &on_it, &another));
        OK(rondo_graph_capture_end(graph));  // the capture is whole
        OK(rondo_graph_reset(graph));
        OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
        add_world_expect(w->stream, &w->y, 2, true);
    }
    rondo_graph_destroy(graph);
    if (!rondo_device_is_host(w->device)) {
        rondo_device *host;
        rondo_executor *executor;
        rondo_executor_options options = {.struct_size = sizeof options, .stream = w->stream};
        OK(rondo_device_open("host", &host));
        EXPECT(INVALID, "options.stream is of cuda:0, the executor is to run on host",
               rondo_executor_create(w->program, host, &options, &executor));
        rondo_device_release(host);
    }
    add_world_close(w);
}

static atomic_bool g_is_over;  // what the stream was long at

static void take_long(void *arguments) {
    (void)arguments;
    const struct timespec while_it_works = {.tv_nsec = 50000000};
    (void)nanosleep(&while_it_works, NULL);
    atomic_store(&g_is_over, true);
}

// The program records on the executor's stream while a run is under way, and takes the memory away
// that the run writes: that waits for the run, and leaves the capture whole. `is_known` before the
// run: that the program has the stream.
static void take_away_while_it_records(bool is_known) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_bound_run *run;
    rondo_stream *stream = is_known ? rondo_executor_get_stream(w->executor) : NULL;
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &w->x));
    OK(rondo_bound_run_set_fetch(run, "y", &(rondo_tensor){.device = w->device}));
    for (int i = 0; i < 5; ++i) {
        OK(rondo_bound_run_run(run));
    }
    atomic_store(&g_is_over, false);
    OK(rondo_stream_call_host(w->executor->main.stream, "take long", take_long, NULL, 0));
    OK(rondo_bound_run_run_async(run, NULL));
    stream = rondo_executor_get_stream(w->executor);
    OK(rondo_graph_capture_begin(w->graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_bound_run_set_fetch(run, "y", NULL));
    assert_true(atomic_load(&g_is_over));
    OK(rondo_stream_fill(stream, w->s.data, 0, 4, ADD_COUNT));
    OK(rondo_graph_capture_end(w->graph));
    rondo_bound_run_destroy(run);
    add_world_close(w);
}

TEST(test_executor_stream__what_a_run_writes_goes_behind_it) {
    take_away_while_it_records(false);
    take_away_while_it_records(true);
}

// ---- runs that do not wait --------------------------------------------------------------------

enum { RUNS = 7 };

// Inputs and outputs in the program's memory, all runs put on the stream one behind the other.
static void run_behind_each_other(add_world *w) {
    float x[ADD_COUNT];
    static float y[RUNS][ADD_COUNT];
    rondo_tensor allocated[RUNS];
    rondo_event *done;
    OK(rondo_event_create(w->device, 0, &done));
    memset(y, 0, sizeof y);
    for (int run = 0; run < RUNS; ++run) {
        add_program_fill(x, (float)run);
        const rondo_binding feed = {"x", add_program_on_host(x)};
        rondo_binding fetches[] = {{"y", add_program_on_host(y[run])}, {.name = "s"}};
        OK(rondo_executor_run_async(w->executor, &feed, 1, fetches, 2, done));
        memset(x, 0xFF, sizeof x);  // free again
        allocated[run] = fetches[1].tensor;
    }
    OK(rondo_event_synchronize(done));
    for (int run = 0; run < RUNS; ++run) {
        assert_int_equal(add_program_check(y[run], (float)run, true), ADD_COUNT);
        assert_int_equal(add_program_check(allocated[run].data, (float)run, false), ADD_COUNT);
        rondo_tensor_deinit(&allocated[run]);
    }
    rondo_event_destroy(done);
}

TEST(test_executor_stream__runs_that_do_not_wait) {
    for (rondo_graphs_mode mode = RONDO_GRAPHS_ON; mode <= RONDO_GRAPHS_OFF; ++mode) {
        for (int own = 0; own < 2; ++own) {
            add_world *w = add_world_open(mode, own == 0);
            run_behind_each_other(w);
            OK(rondo_executor_wait(w->executor));
            OK(rondo_executor_wait(w->executor));
            rondo_run_times times = {.struct_size = sizeof times};
            OK(rondo_executor_get_times(w->executor, &times));
            assert_int_equal(times.was_replayed, mode == RONDO_GRAPHS_ON);
            assert_true(times.latency_ns > 0);
            run_behind_each_other(w);
            add_world_close(w);
        }
    }
}

TEST(test_executor_stream__other_calls_come_behind) {
    add_world *w = open_world();
    float x[ADD_COUNT];
    float y[2][ADD_COUNT];
    add_program_fill(x, 1);
    rondo_binding feed = {"x", add_program_on_host(x)};
    rondo_binding fetches[] = {{"y", add_program_on_host(y[0])}, {"y", add_program_on_host(y[1])}};
    OK(rondo_executor_run_async(w->executor, &feed, 1, &fetches[0], 1, NULL));
    add_program_fill(x, 2);
    OK(rondo_executor_run(w->executor, &feed, 1, &fetches[1], 1));
    assert_int_equal(add_program_check(y[0], 1, true), ADD_COUNT);
    assert_int_equal(add_program_check(y[1], 2, true), ADD_COUNT);
    OK(rondo_executor_run_async(w->executor, &feed, 1, &fetches[0], 1, NULL));
    OK(rondo_executor_rerun(w->executor));
    assert_int_equal(add_program_check(y[0], 2, true), ADD_COUNT);
    memset(y, 0, sizeof y);
    OK(rondo_executor_run_async(w->executor, &feed, 1, &fetches[0], 1, NULL));
    rondo_executor_destroy(w->executor);  // waits
    w->executor = NULL;
    assert_int_equal(add_program_check(y[0], 2, true), ADD_COUNT);
    add_world_close(w);
}

// Holds a stream of the host up, so that one can see who waits for it.
static atomic_bool is_open;

static void wait_for_gate(void *arguments) {
    (void)arguments;
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    while (!atomic_load(&is_open)) {
        (void)nanosleep(&pause, NULL);
    }
}

TEST(test_executor_stream__nothing_waits_for_the_device) {
    if (strcmp(on_devices_get_name(), "host") != 0) {
        return;  // the fake driver runs everything at once
    }
    add_world *w = add_world_open(RONDO_GRAPHS_ON, true);
    run_behind_each_other(w);
    OK(rondo_executor_wait(w->executor));
    atomic_store(&is_open, false);
    OK(rondo_stream_call_host(w->stream, "gate", wait_for_gate, NULL, 0));
    float x[ADD_COUNT];
    float y[2][ADD_COUNT] = {{0}};
    rondo_event *done;
    OK(rondo_event_create(w->device, 0, &done));
    for (int run = 0; run < 2; ++run) {
        add_program_fill(x, (float)(7 + run));
        const rondo_binding feed = {"x", add_program_on_host(x)};
        rondo_binding fetch = {"y", add_program_on_host(y[run])};
        OK(rondo_executor_run_async(w->executor, &feed, 1, &fetch, 1, done));
    }
    bool is_complete = true;
    OK(rondo_event_query(done, &is_complete));
    assert_false(is_complete);
    assert_true(y[0][0] == 0);
    atomic_store(&is_open, true);
    OK(rondo_event_synchronize(done));
    assert_int_equal(add_program_check(y[0], 7, true), ADD_COUNT);
    assert_int_equal(add_program_check(y[1], 8, true), ADD_COUNT);
    rondo_event_destroy(done);
    add_world_close(w);
}

// y = x[i] for whole numbers i, which may be out of range.
static rondo_program *build_gather(void) {
    const rondo_port inputs[] = {PORT("x", RONDO_DTYPE_F32, ADD_COUNT),
                                 PORT("i", RONDO_DTYPE_I64, 2)};
    static const char *const operands[] = {"x", "i", NULL};
    return one_op_build("Gather", inputs, 2, operands, "y", NULL);
}

TEST(test_executor_stream__what_only_the_device_finds_out) {
    if (strcmp(on_devices_get_name(), "host") != 0) {
        return;  // kernels of a GPU take what is out of range for something else
    }
    add_world *w = open_world();
    rondo_program *program = build_gather();
    rondo_executor *executor;
    OK(rondo_executor_create(program, w->device, NULL, &executor));
    float x[ADD_COUNT];
    float y[2];
    int64_t i[2] = {0, 5};
    add_program_fill(x, 1);
    const rondo_binding feeds[] = {{"x", add_program_on_host(x)}, BIND("i", RONDO_DTYPE_I64, i, 2)};
    rondo_binding fetch = BIND("y", RONDO_DTYPE_F32, y, 2);
    for (int run = 0; run < 6; ++run) {
        i[1] = run % 2 == 0 ? 5 : ADD_COUNT;
        OK(rondo_executor_run_async(executor, feeds, 2, &fetch, 1, NULL));
        if (run % 2 == 0) {
            OK(rondo_executor_wait(executor));
            assert_true(y[0] == 1 && y[1] == 6);
        } else if (run == 3) {  // another call waits first, and tells
            EXPECT(BAD_DATA, "64", rondo_executor_run(executor, feeds, 2, &fetch, 1));
        } else {
            EXPECT(BAD_DATA, "64", rondo_executor_wait(executor));
        }
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    add_world_close(w);
}

// ---- the heap ---------------------------------------------------------------------------------

TEST(test_executor_stream__a_replayed_run_takes_no_memory) {
    add_world *w = open_world();
    float x[ADD_COUNT];
    // Pinned: behind a run that is not waited for, CUDA copies to pageable memory by a host
    // function, of which it keeps the arguments.
    float *y = NULL;
    OK(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, sizeof(float) * ADD_COUNT,
                             (void **)&y));
    add_program_fill(x, 1);
    const rondo_binding feeds[] = {{"x", add_program_on_host(x)}, {"x", w->x}};
    rondo_binding fetches[] = {{"y", add_program_on_host(y)}, {"s", w->s}};
    add_world_write(w->stream, &w->x, 1);
    for (int run = 0; run < 12; ++run) {
        const size_t before = counting_heap_count(false);
        if (run % 4 < 2) {
            OK(rondo_executor_run(w->executor, &feeds[run % 2], 1, fetches, 2));
        } else {
            OK(rondo_executor_run_async(w->executor, &feeds[run % 2], 1, fetches, 2, NULL));
            OK(rondo_executor_wait(w->executor));
        }
        const size_t count = counting_heap_count(false) - before;
        if (run >= 8 && count > 0) {
            fail_msg("run %d took memory %zu times", run, count);
        }
        assert_int_equal(add_program_check(y, 1, true), ADD_COUNT);
    }
    assert_true(counting_heap_count(false) > 0);
    rondo_memory_free(w->device, y);
    add_world_close(w);
}

// ---- two GPUs ---------------------------------------------------------------------------------

TEST(test_executor_stream__tensors_of_another_gpu) {
    rondo_device *second;
    if (rondo_device_open("cuda:1", &second) != RONDO_STATUS_OK) {
        return;
    }
    add_world *w = open_world();
    rondo_tensor far;
    OK(rondo_tensor_init_device(second, RONDO_DTYPE_F32, &add_shape, &far));
    rondo_binding feed = {"x", far};
    rondo_binding fetch = {"y", w->y};
    char expected[120];
    const char *own = rondo_device_is_host(w->device) ? "host" : "cuda:0";
    snprintf(expected, sizeof expected, "feed \"x\" lies on cuda:1, the executor runs on %s", own);
    EXPECT(INVALID, expected, rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    feed.tensor = w->x;
    fetch.tensor = far;
    add_world_write(w->stream, &w->x, 4);
    snprintf(expected, sizeof expected,
             "fetch \"y\": the tensor given lies on cuda:1, the executor runs on %s", own);
    EXPECT(INVALID, expected, rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    OK(rondo_tensor_copy(w->stream, &w->x, &far));  // and back
    OK(rondo_tensor_copy(w->stream, &far, &w->s));
    OK(rondo_stream_synchronize(w->stream));  // the executor has a stream of its own
    feed.tensor = w->s;
    fetch.tensor = w->y;
    OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    add_world_expect(w->stream, &w->y, 4, true);
    rondo_tensor_deinit(&far);
    rondo_device_release(second);
    add_world_close(w);
}

TEST(test_executor_stream__replays_are_watched) {
    add_world *w = open_world();
    rondo_watchdog *watchdog;
    rondo_executor *executor;
    rondo_graph *graph = NULL;
    size_t count, node_count;
    const rondo_watchdog_options patient = {.struct_size = sizeof patient,
                                            .timeout_ns = UINT64_C(3600000000000)};
    OK(rondo_watchdog_create(w->device, &patient, &watchdog));
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .op_by_op = true,
                                            .keep_templates = true,
                                            .watchdog = watchdog};
    OK(rondo_executor_create(w->program, w->device, &options, &executor));
    for (int run = 0; run < 6; ++run) {
        float y[ADD_COUNT], x[ADD_COUNT];
        add_program_fill(x, (float)run);
        const rondo_binding feed = {"x", add_program_on_host(x)};
        rondo_binding fetch = {"y", add_program_on_host(y)};
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        assert_int_equal(add_program_check(y, (float)run, true), ADD_COUNT);
    }
    OK(rondo_executor_list_graphs(executor, &graph, 1, &count));
    OK(rondo_graph_get_node_count(graph, &node_count));
    assert_int_equal(node_count, 4);  // two ops, each with a mark before it
    // Device tensors are taken where they are, with the same marks.
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    for (int run = 0; run < 8; ++run) {
        rondo_binding near = {"x", w->x}, made = {"y", run % 2 == 0 ? w->y : w->s};
        add_world_write(w->stream, &w->x, (float)run);
        OK(rondo_executor_run(executor, &near, 1, &made, 1));
        add_world_expect(w->stream, &made.tensor, (float)run, true);
    }
    OK(rondo_executor_get_stats(executor, &stats));
    assert_true(stats.in_place_run_count > 0);
    assert_int_equal(rondo_watchdog_get_stall_count(watchdog), 0);
    rondo_executor_destroy(executor);
    if (!rondo_device_is_host(w->device)) {
        rondo_device *host;
        OK(rondo_device_open("host", &host));
        EXPECT(INVALID, "options.watchdog is of",
               rondo_executor_create(w->program, host, &options, &executor));
        rondo_device_release(host);
    }
    rondo_watchdog_destroy(watchdog);
    add_world_close(w);
}

static bool count_text(void *user_data, const char *text, size_t bytes) {
    size_t *count = user_data;
    for (size_t i = 0; i + 5 <= bytes; ++i) {
        *count += strncmp(text + i, "\"Add ", 5) == 0 ? 1 : 0;
    }
    return true;
}

TEST(test_executor_stream__graphs_are_dumped_with_labels) {
    add_world *w = open_world();
    for (int keeps = 0; keeps < 2; ++keeps) {
        const rondo_executor_options options = {
            .struct_size = sizeof options, .op_by_op = true, .keep_templates = keeps == 1};
        rondo_executor *executor;
        rondo_graph *graph = NULL;
        size_t count = 9, node_count, labelled = 0;
        OK(rondo_executor_create(w->program, w->device, &options, &executor));
        OK(rondo_executor_list_graphs(executor, &graph, 1, &count));
        assert_int_equal(count, 0);
        OK(add_program_run(executor, 1));
        OK(add_program_run(executor, 1));
        OK(rondo_executor_list_graphs(executor, &graph, 1, &count));
        assert_int_equal(count, 1);
        if (keeps == 0) {
            EXPECT(STATE, "did not keep its template",
                   rondo_graph_get_node_count(graph, &node_count));
        } else {
            OK(rondo_graph_get_node_count(graph, &node_count));
            assert_int_equal(node_count, 2);
            OK(rondo_graph_dump(graph, RONDO_TEXT_JSON, count_text, &labelled));
            assert_int_equal(labelled, 2);
            for (size_t i = 0; i < node_count; ++i) {
                rondo_graph_node node = {.struct_size = sizeof node};
                OK(rondo_graph_get_node(graph, i, &node));
                rondo_node handle;
                OK(rondo_graph_find_nodes(graph, node.label, &handle, 1, &count));
                assert_int_equal(count, 1);
            }
        }
        rondo_executor_destroy(executor);
    }
    add_world_close(w);
}

int main(void) {
    if (!counting_heap_install()) {
        return 1;
    }
    const fake_cuda_options two = {
        .device_count = 2, .driver_version = 13000, .has_get_proc_address = true};
    return ON_DEVICES() + OVER_THE_FAKE(&two);
}
