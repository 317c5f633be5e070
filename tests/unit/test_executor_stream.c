// Executors as a part of a program's own work, on the host, a real GPU where there is one, and the
// fake driver: device tensors as feeds and fetches, the program's stream, runs that do not wait,
// nothing taken from the heap by a replayed run.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "rondo/rondo.h"
#include "support/add_program.h"
#include "support/expect_ok.h"
#include "support/fake_cuda.h"

static const char *device_name = "host";

static const rondo_shape add_shape = {.rank = 1, .extent = {ADD_COUNT}};

// ---- a heap that counts -----------------------------------------------------------------------

static atomic_size_t taken_count;

static void *take(void *user_data, size_t bytes, size_t alignment) {
    (void)user_data;
    atomic_fetch_add(&taken_count, 1);
    void *address = NULL;
    return posix_memalign(&address, alignment < sizeof address ? sizeof address : alignment,
                          bytes) == 0
               ? address
               : NULL;
}

static void *retake(void *user_data, void *address, size_t bytes) {
    (void)user_data;
    atomic_fetch_add(&taken_count, 1);
    return realloc(address, bytes);
}

static void give(void *user_data, void *address) {
    (void)user_data;
    free(address);
}

// ---- a device, a program, an executor ---------------------------------------------------------

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;  // of the program
    rondo_program *program;
    rondo_executor *executor;
    rondo_tensor x, y, s;  // on the device
} world;

static world *open_with(rondo_graphs_mode graphs, bool on_own_stream) {
    static world w;
    w = (world){0};
    OK(rondo_device_open(device_name, &w.device));
    OK(rondo_stream_create(w.device, NULL, &w.stream));
    OK(add_program_build(&w.program));
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    options.graphs = graphs;
    options.stream = on_own_stream ? NULL : w.stream;
    OK(rondo_executor_create(w.program, w.device, &options, &w.executor));
    rondo_tensor *const tensors[] = {&w.x, &w.y, &w.s};
    for (size_t i = 0; i < 3; ++i) {
        OK(rondo_tensor_init_device(w.device, RONDO_DTYPE_F32, &add_shape, tensors[i]));
        assert_ptr_equal(tensors[i]->device, w.device);
    }
    return &w;
}

static world *open_world(void) {
    return open_with(RONDO_GRAPHS_ON, true);
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_tensor_deinit(&w->x);
    rondo_tensor_deinit(&w->y);
    rondo_tensor_deinit(&w->s);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
}

static rondo_tensor on_host(float *values) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = add_shape, .data = values};
}

static void write_x(const world *w, const rondo_tensor *to, float first) {
    float values[ADD_COUNT];
    add_program_fill(values, first);
    const rondo_tensor from = on_host(values);
    OK(rondo_tensor_copy(w->stream, &from, to));
    OK(rondo_stream_synchronize(w->stream));
}

static void expect_values(const world *w, const rondo_tensor *tensor, float first, bool is_y) {
    float values[ADD_COUNT] = {0};
    const rondo_tensor to = on_host(values);
    OK(rondo_tensor_copy(w->stream, tensor, &to));
    OK(rondo_stream_synchronize(w->stream));
    assert_int_equal(add_program_check(values, first, is_y), ADD_COUNT);
}

static void expect_message(rondo_status status, rondo_status wanted, const char *text) {
    assert_int_equal(status, wanted);
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, rondo_error_get_last()->message);
    }
}

static void expect_invalid(rondo_status status, const char *text) {
    expect_message(status, RONDO_STATUS_INVALID, text);
}

// ---- device tensors ---------------------------------------------------------------------------

static void test_executor_stream__device_tensors(void **state) {
    (void)state;
    world *w = open_world();
    assert_int_equal((uintptr_t)w->x.data % 256, 0);
    assert_int_equal(rondo_tensor_is_on_host(&w->x), rondo_device_is_host(w->device));
    assert_true(rondo_tensor_is_on_host(NULL));
    write_x(w, &w->x, 3);
    OK(rondo_tensor_copy(w->stream, &w->x, &w->y));  // on the device
    float values[ADD_COUNT];
    rondo_tensor to = on_host(values);
    OK(rondo_tensor_copy(w->stream, &w->y, &to));
    OK(rondo_stream_synchronize(w->stream));
    assert_true(values[0] == 3 && values[ADD_COUNT - 1] == ADD_COUNT + 2);
    to.shape.extent[0] = 3;
    expect_invalid(rondo_tensor_copy(w->stream, &w->y, &to), "source is f32 [64], destination is");
    to.shape = add_shape;
    to.dtype = RONDO_DTYPE_I32;
    expect_invalid(rondo_tensor_copy(w->stream, &w->y, &to), "destination is i32 [64]");
    expect_invalid(rondo_tensor_copy(NULL, &w->y, &w->x), "stream");
    expect_invalid(rondo_tensor_copy(w->stream, NULL, &w->x), "source");
    expect_invalid(rondo_tensor_init_device(w->device, RONDO_DTYPE_STRING, &add_shape, &to),
                   "always in host memory");
    expect_invalid(rondo_tensor_init_device(w->device, 99, &add_shape, &to), "99");
    const rondo_shape none = {.rank = 1, .extent = {0}};
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &none, &to));
    assert_non_null(to.data);
    rondo_tensor_deinit(&to);
    if (!rondo_device_is_host(w->device)) {
        expect_invalid(rondo_tensor_init_sequence(&w->x, 1, &to), "item 0 lies on cuda:0");
        rondo_builder *builder;
        OK(rondo_builder_create(NULL, &builder));
        expect_invalid(rondo_builder_add_parameter(builder, "w", &w->x, RONDO_PARAMETER_COPIED),
                       "lies on cuda:0");
        rondo_builder_destroy(builder);
    }
    close_world(w);
}

static void test_executor_stream__feeds_and_fetches_on_the_device(void **state) {
    (void)state;
    world *w = open_world();
    rondo_tensor other;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &other));
    for (int run = 0; run < 6; ++run) {
        const float first = (float)(10 * run);
        rondo_tensor *x = run % 2 == 0 ? &w->x : &other;
        write_x(w, x, first);
        float host_s[ADD_COUNT];
        const rondo_binding feed = {"x", *x};
        rondo_binding fetches[] = {{"y", w->y}, {"s", on_host(host_s)}};
        if (run % 3 == 2) {
            fetches[0].tensor = (rondo_tensor){.device = w->device};  // to be allocated there
        }
        OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
        assert_ptr_equal(fetches[0].tensor.device, w->device);
        expect_values(w, &fetches[0].tensor, first, true);
        assert_int_equal(add_program_check(host_s, first, false), ADD_COUNT);
        if (run % 3 == 2) {
            rondo_tensor_deinit(&fetches[0].tensor);
        }
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(w->executor, &stats));
    assert_int_equal(stats.replay_run_count, 5);
    expect_message(rondo_executor_rerun(w->executor), RONDO_STATUS_STATE, "device tensors");
    rondo_tensor_deinit(&other);
    close_world(w);
}

static uint64_t count_in_place(const world *w) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(w->executor, &stats));
    return stats.in_place_run_count;
}

enum { TENSORS = 3 };

static void test_executor_stream__addresses_are_patched(void **state) {
    (void)state;
    world *w = open_world();
    rondo_tensor x[TENSORS];
    rondo_tensor y[TENSORS];
    for (int i = 0; i < TENSORS; ++i) {
        OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &x[i]));
        OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &y[i]));
    }
    for (int run = 0; run < 12; ++run) {
        const float first = (float)(3 * run);
        float s[ADD_COUNT];
        write_x(w, &x[run % TENSORS], first);
        const rondo_binding feed = {"x", x[run % TENSORS]};
        rondo_binding fetches[] = {{"y", y[run % TENSORS]}, {"s", on_host(s)}};
        const size_t copies = fake_cuda_count_calls("cuMemcpyDtoDAsync");
        if (run % 2 == 0) {
            OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
        } else {
            OK(rondo_executor_run_async(w->executor, &feed, 1, fetches, 2, NULL));
            OK(rondo_executor_wait(w->executor));
        }
        assert_true(run < 4 || fake_cuda_count_calls("cuMemcpyDtoDAsync") == copies);
        expect_values(w, &y[run % TENSORS], first, true);
        assert_int_equal(add_program_check(s, first, false), ADD_COUNT);
    }
    assert_int_equal(count_in_place(w), 9);
    // Other ports, and back.
    float values[ADD_COUNT];
    add_program_fill(values, 1);
    rondo_binding feed = {"x", on_host(values)};
    rondo_binding fetch = {"y", y[0]};
    for (int run = 0; run < 3; ++run) {
        OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
        expect_values(w, &y[0], 1, true);
    }
    assert_int_equal(count_in_place(w), 11);
    feed.tensor = x[0];
    for (int run = 0; run < 3; ++run) {
        write_x(w, &x[0], (float)run);
        OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
        expect_values(w, &y[0], (float)run, true);
    }
    assert_int_equal(count_in_place(w), 13);
    OK(rondo_executor_set_graphs(w->executor, RONDO_GRAPHS_OFF));
    write_x(w, &x[0], 77);
    OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    expect_values(w, &y[0], 77, true);
    assert_int_equal(count_in_place(w), 13);
    for (int i = 0; i < TENSORS; ++i) {
        rondo_tensor_deinit(&x[i]);
        rondo_tensor_deinit(&y[i]);
    }
    close_world(w);
}

static void test_executor_stream__addresses_in_the_middle(void **state) {
    (void)state;
    world *w = open_world();
    const rondo_shape large = {.rank = 1, .extent = {2 * ADD_COUNT}};
    rondo_tensor block;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &large, &block));
    rondo_tensor x = {.dtype = RONDO_DTYPE_F32, .shape = add_shape, .device = w->device};
    x.data = (char *)block.data + 3 * sizeof(float);
    for (int run = 0; run < 4; ++run) {
        write_x(w, &x, (float)run);
        const rondo_binding feed = {"x", x};
        rondo_binding fetches[] = {{"y", x}, {"s", w->s}};  // y in place of x
        OK(rondo_executor_run(w->executor, &feed, 1, fetches, 2));
        expect_values(w, &x, (float)run, true);
        expect_values(w, &w->s, (float)run, false);
    }
    rondo_tensor_deinit(&block);
    close_world(w);
}

static void test_executor_stream__wrong_tensors_are_named(void **state) {
    (void)state;
    world *w = open_world();
    float values[ADD_COUNT];
    add_program_fill(values, 1);
    const rondo_binding good = {"x", on_host(values)};
    rondo_binding fetch = {"y", w->y};
    rondo_binding bad = {"x", w->x};
    bad.tensor.shape.extent[0] = 3;
    expect_invalid(rondo_executor_run(w->executor, &bad, 1, &fetch, 1),
                   "feed \"x\" has shape [3], the model takes [64]");
    bad = (rondo_binding){"x", w->x};
    bad.tensor.dtype = RONDO_DTYPE_I32;
    expect_invalid(rondo_executor_run(w->executor, &bad, 1, &fetch, 1), "feed \"x\" is i32");
    bad = (rondo_binding){"x", w->x};
    bad.tensor.data = NULL;
    expect_invalid(rondo_executor_run_async(w->executor, &bad, 1, &fetch, 1, NULL),
                   "feed \"x\": its data is NULL");
    fetch.tensor.shape.extent[0] = 3;
    expect_invalid(rondo_executor_run_async(w->executor, &good, 1, &fetch, 1, NULL),
                   "fetch \"y\": the tensor given is f32 [3], the output is f32 [64]");
    expect_invalid(rondo_executor_run_async(NULL, &good, 1, &fetch, 1, NULL), "executor is NULL");
    expect_invalid(rondo_executor_run_async(w->executor, NULL, 1, &fetch, 1, NULL),
                   "feeds is NULL");
    expect_invalid(rondo_executor_wait(NULL), "executor is NULL");
    fetch.tensor = w->y;
    OK(rondo_executor_run(w->executor, &good, 1, &fetch, 1));
    expect_values(w, &w->y, 1, true);
    close_world(w);
}

// ---- the program's stream ---------------------------------------------------------------------

static void fill_later(void *arguments) {
    float *values;
    memcpy(&values, arguments, sizeof values);
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    (void)nanosleep(&pause, NULL);
    add_program_fill(values, 5);
}

static void test_executor_stream__order_on_the_programs_stream(void **state) {
    (void)state;
    world *w = open_with(RONDO_GRAPHS_ON, false);
    assert_ptr_equal(rondo_executor_get_stream(w->executor), w->stream);
    float *later = NULL;
    OK(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, sizeof(float) * ADD_COUNT,
                             (void **)&later));
    const rondo_tensor from = on_host(later);
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
        expect_values(w, &w->y, 5, true);  // by a copy behind the run
        expect_values(w, &w->s, 5, false);
    }
    rondo_memory_free(w->device, later);
    close_world(w);
}

static void test_executor_stream__a_stream_that_records_runs_nothing(void **state) {
    (void)state;
    world *w = open_with(RONDO_GRAPHS_ON, false);
    rondo_graph *graph;
    OK(rondo_graph_create(w->device, NULL, &graph));
    const rondo_binding feed = {"x", w->x};
    rondo_binding fetch = {"y", w->y};
    write_x(w, &w->x, 2);
    for (int run = 0; run < 3; ++run) {
        OK(rondo_graph_capture_begin(graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
        OK(rondo_stream_fill(w->stream, w->s.data, 0, 4, ADD_COUNT));
        expect_message(rondo_executor_run(w->executor, &feed, 1, &fetch, 1), RONDO_STATUS_STATE,
                       "records");
        expect_message(rondo_executor_run_async(w->executor, &feed, 1, &fetch, 1, NULL),
                       RONDO_STATUS_STATE, "rondo_executor_record");
        expect_message(rondo_executor_wait(w->executor), RONDO_STATUS_STATE, "records");
        OK(rondo_graph_capture_end(graph));  // the capture is whole
        OK(rondo_graph_reset(graph));
        OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
        expect_values(w, &w->y, 2, true);
    }
    rondo_graph_destroy(graph);
    if (!rondo_device_is_host(w->device)) {
        rondo_device *host;
        rondo_executor *executor;
        rondo_executor_options options = {.struct_size = sizeof options, .stream = w->stream};
        OK(rondo_device_open("host", &host));
        expect_invalid(rondo_executor_create(w->program, host, &options, &executor),
                       "options.stream is of cuda:0, the executor is to run on host");
        rondo_device_release(host);
    }
    close_world(w);
}

// ---- runs that do not wait --------------------------------------------------------------------

enum { RUNS = 7 };

// Inputs and outputs in the program's memory, all runs put on the stream one behind the other.
static void run_behind_each_other(world *w) {
    float x[ADD_COUNT];
    static float y[RUNS][ADD_COUNT];
    rondo_tensor allocated[RUNS];
    rondo_event *done;
    OK(rondo_event_create(w->device, 0, &done));
    memset(y, 0, sizeof y);
    for (int run = 0; run < RUNS; ++run) {
        add_program_fill(x, (float)run);
        const rondo_binding feed = {"x", on_host(x)};
        rondo_binding fetches[] = {{"y", on_host(y[run])}, {.name = "s"}};
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

static void test_executor_stream__runs_that_do_not_wait(void **state) {
    (void)state;
    for (rondo_graphs_mode mode = RONDO_GRAPHS_ON; mode <= RONDO_GRAPHS_OFF; ++mode) {
        for (int own = 0; own < 2; ++own) {
            world *w = open_with(mode, own != 0);
            run_behind_each_other(w);
            OK(rondo_executor_wait(w->executor));
            OK(rondo_executor_wait(w->executor));
            rondo_run_times times = {.struct_size = sizeof times};
            OK(rondo_executor_get_times(w->executor, &times));
            assert_int_equal(times.was_replayed, mode == RONDO_GRAPHS_ON);
            assert_true(times.latency_ns > 0);
            run_behind_each_other(w);
            close_world(w);
        }
    }
}

static void test_executor_stream__other_calls_come_behind(void **state) {
    (void)state;
    world *w = open_world();
    float x[ADD_COUNT];
    float y[2][ADD_COUNT];
    add_program_fill(x, 1);
    rondo_binding feed = {"x", on_host(x)};
    rondo_binding fetches[] = {{"y", on_host(y[0])}, {"y", on_host(y[1])}};
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
    close_world(w);
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

static void test_executor_stream__nothing_waits_for_the_device(void **state) {
    (void)state;
    if (strcmp(device_name, "host") != 0) {
        return;  // the fake driver runs everything at once
    }
    world *w = open_with(RONDO_GRAPHS_ON, false);
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
        const rondo_binding feed = {"x", on_host(x)};
        rondo_binding fetch = {"y", on_host(y[run])};
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
    close_world(w);
}

// y = x[i] for whole numbers i, which may be out of range.
static rondo_program *build_gather(void) {
    rondo_builder *builder;
    rondo_program *program;
    rondo_port port = {
        .struct_size = sizeof port, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    static const char *const operands[] = {"x", "i"};
    static const char *const result = "y";
    OK(rondo_builder_create(NULL, &builder));
    port.extent[0] = ADD_COUNT;
    OK(rondo_builder_add_input(builder, &port));
    port.name = "i";
    port.dtype = RONDO_DTYPE_I64;
    port.extent[0] = 2;
    OK(rondo_builder_add_input(builder, &port));
    OK(rondo_builder_add_node(builder, "Gather", operands, 2, &result, 1, NULL));
    OK(rondo_builder_add_output(builder, "y", NULL));
    OK(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);
    return program;
}

static void test_executor_stream__what_only_the_device_finds_out(void **state) {
    (void)state;
    if (strcmp(device_name, "host") != 0) {
        return;  // kernels of a GPU take what is out of range for something else
    }
    world *w = open_world();
    rondo_program *program = build_gather();
    rondo_executor *executor;
    OK(rondo_executor_create(program, w->device, NULL, &executor));
    float x[ADD_COUNT];
    float y[2];
    int64_t i[2] = {0, 5};
    add_program_fill(x, 1);
    const rondo_binding feeds[] = {{"x", on_host(x)},
                                   {"i", {.dtype = RONDO_DTYPE_I64, .shape = {1, {2}}, .data = i}}};
    rondo_binding fetch = {"y", {.dtype = RONDO_DTYPE_F32, .shape = {1, {2}}, .data = y}};
    for (int run = 0; run < 6; ++run) {
        i[1] = run % 2 == 0 ? 5 : ADD_COUNT;
        OK(rondo_executor_run_async(executor, feeds, 2, &fetch, 1, NULL));
        if (run % 2 == 0) {
            OK(rondo_executor_wait(executor));
            assert_true(y[0] == 1 && y[1] == 6);
        } else if (run == 3) {  // another call waits first, and tells
            expect_message(rondo_executor_run(executor, feeds, 2, &fetch, 1), RONDO_STATUS_BAD_DATA,
                           "64");
        } else {
            expect_message(rondo_executor_wait(executor), RONDO_STATUS_BAD_DATA, "64");
        }
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    close_world(w);
}

// ---- the heap ---------------------------------------------------------------------------------

static void test_executor_stream__a_replayed_run_takes_no_memory(void **state) {
    (void)state;
    world *w = open_world();
    float x[ADD_COUNT];
    // Pinned: behind a run that is not waited for, CUDA copies to pageable memory by a host
    // function, of which it keeps the arguments.
    float *y = NULL;
    OK(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, sizeof(float) * ADD_COUNT,
                             (void **)&y));
    add_program_fill(x, 1);
    const rondo_binding feeds[] = {{"x", on_host(x)}, {"x", w->x}};
    rondo_binding fetches[] = {{"y", on_host(y)}, {"s", w->s}};
    write_x(w, &w->x, 1);
    for (int run = 0; run < 12; ++run) {
        const size_t before = atomic_load(&taken_count);
        if (run % 4 < 2) {
            OK(rondo_executor_run(w->executor, &feeds[run % 2], 1, fetches, 2));
        } else {
            OK(rondo_executor_run_async(w->executor, &feeds[run % 2], 1, fetches, 2, NULL));
            OK(rondo_executor_wait(w->executor));
        }
        const size_t count = atomic_load(&taken_count) - before;
        if (run >= 8 && count > 0) {
            fail_msg("run %d took memory %zu times", run, count);
        }
        assert_int_equal(add_program_check(y, 1, true), ADD_COUNT);
    }
    assert_true(atomic_load(&taken_count) > 0);
    rondo_memory_free(w->device, y);
    close_world(w);
}

// ---- two GPUs ---------------------------------------------------------------------------------

static void test_executor_stream__tensors_of_another_gpu(void **state) {
    (void)state;
    rondo_device *second;
    if (rondo_device_open("cuda:1", &second) != RONDO_STATUS_OK) {
        return;
    }
    world *w = open_world();
    rondo_tensor far;
    OK(rondo_tensor_init_device(second, RONDO_DTYPE_F32, &add_shape, &far));
    rondo_binding feed = {"x", far};
    rondo_binding fetch = {"y", w->y};
    expect_invalid(rondo_executor_run(w->executor, &feed, 1, &fetch, 1),
                   "feed \"x\" lies on cuda:1, the executor runs on cuda:0");
    feed.tensor = w->x;
    fetch.tensor = far;
    write_x(w, &w->x, 4);
    expect_invalid(rondo_executor_run(w->executor, &feed, 1, &fetch, 1),
                   "fetch \"y\": the tensor given lies on cuda:1, the executor runs on cuda:0");
    OK(rondo_tensor_copy(w->stream, &w->x, &far));  // and back
    OK(rondo_tensor_copy(w->stream, &far, &w->s));
    feed.tensor = w->s;
    fetch.tensor = w->y;
    OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    expect_values(w, &w->y, 4, true);
    rondo_tensor_deinit(&far);
    rondo_device_release(second);
    close_world(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_stream__device_tensors),
        cmocka_unit_test(test_executor_stream__feeds_and_fetches_on_the_device),
        cmocka_unit_test(test_executor_stream__addresses_are_patched),
        cmocka_unit_test(test_executor_stream__addresses_in_the_middle),
        cmocka_unit_test(test_executor_stream__wrong_tensors_are_named),
        cmocka_unit_test(test_executor_stream__order_on_the_programs_stream),
        cmocka_unit_test(test_executor_stream__a_stream_that_records_runs_nothing),
        cmocka_unit_test(test_executor_stream__runs_that_do_not_wait),
        cmocka_unit_test(test_executor_stream__other_calls_come_behind),
        cmocka_unit_test(test_executor_stream__nothing_waits_for_the_device),
        cmocka_unit_test(test_executor_stream__what_only_the_device_finds_out),
        cmocka_unit_test(test_executor_stream__a_replayed_run_takes_no_memory),
        cmocka_unit_test(test_executor_stream__tensors_of_another_gpu),
    };
    const rondo_allocator counting = {
        .struct_size = sizeof counting, .allocate = take, .reallocate = retake, .free = give};
    if (rondo_set_allocator(&counting) != RONDO_STATUS_OK) {
        return 1;
    }
    fake_cuda_reset(NULL);
    int failed_count = cmocka_run_group_tests_name("host", tests, NULL, NULL);
    rondo_device *gpu;
    device_name = "cuda:0";
    if (rondo_device_open(device_name, &gpu) == RONDO_STATUS_OK) {
        failed_count += cmocka_run_group_tests_name("cuda:0", tests, NULL, NULL);
        rondo_device_release(gpu);
    }
    const fake_cuda_options two = {
        .device_count = 2, .driver_version = 13000, .has_get_proc_address = true};
    fake_cuda_reset(&two);
    setenv("RONDO_CACHE_DIR", "", 1);
    fake_cuda_install();
    add_program_prepare_fake();
    failed_count += cmocka_run_group_tests_name("fake", tests, NULL, NULL);
    fake_cuda_uninstall();
    return failed_count;
}
