// If, Loop and Scan decided on the device: the same bits as host control, in every mode.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor/state/plan.h"
#include "support/models/flow_models.h"
#include "support/models/model_fixture.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, MODEL_COUNT = 120, GPU_MODEL_COUNT = 24, RUN_COUNT = 6 };

// Runs one executor and gives its outputs as one block of numbers.
static void run(rondo_executor *executor, size_t output_count, uint64_t seed, int64_t n, bool go,
                float *out) {
    flow_feeds feeds;
    rondo_binding fetches[FLOW_OUTPUT_MAX] = {{0}};
    char names[FLOW_OUTPUT_MAX][32];
    flow_feeds_make(&feeds, seed, n, go);
    for (size_t i = 0; i < output_count; ++i) {
        (void)snprintf(names[i], sizeof names[i], "out%zu", i);
        fetches[i].name = names[i];
        fetches[i].tensor = (rondo_tensor){
            .dtype = RONDO_DTYPE_F32, .shape = {.rank = 2, .extent = {3, 3}}, .data = out + 9 * i};
    }
    OK(rondo_executor_run(executor, feeds.bindings, FLOW_FEED_COUNT, fetches, output_count));
}

// Takes nothing of the fixture but its program.
static rondo_executor *create(model_fixture *f, rondo_graphs_mode graphs, bool op_by_op,
                              bool on_host) {
    rondo_executor_options options = {.struct_size = sizeof options};
    options.graphs = graphs;
    options.op_by_op = op_by_op;
    rondo_executor *executor;
    rondo_device *device;
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(f->program, device, &options, &executor));
    rondo_device_release(device);
    executor->keeps_control_on_host = on_host;
    return executor;
}

TEST(test_executor_device_control__same_bits_as_on_the_host) {
    static const struct {
        int64_t n;
        bool go;
    } rows[RUN_COUNT] = {{2, true}, {0, true}, {1, true}, {5, false}, {7, true}, {2, true}};
    const bool is_host = strcmp(on_devices_get_name(), "host") == 0;
    const uint64_t model_count = is_host ? MODEL_COUNT : GPU_MODEL_COUNT;
    size_t device_count = 0, here_count = 0;
    for (uint64_t seed = 0; seed < model_count; ++seed) {
        model_fixture f;
        model_fixture_init(&f);
        const size_t count = flow_model_build(&f.builder, seed);
        model_fixture_load(&f);
        rondo_executor *executors[] = {
            create(&f, RONDO_GRAPHS_OFF, false, true),  // the others as this one
            create(&f, RONDO_GRAPHS_ON, false, false), create(&f, RONDO_GRAPHS_OFF, false, false),
            create(&f, RONDO_GRAPHS_OFF, true, true),  // the last as this one
            create(&f, RONDO_GRAPHS_ON, true, false),
        };
        for (size_t r = 0; r < RUN_COUNT; ++r) {
            float results[5][9 * FLOW_OUTPUT_MAX];
            for (size_t e = 0; e < 5; ++e) {
                run(executors[e], count, seed + r, rows[r].n, rows[r].go, results[e]);
                const float *like = results[e < 3 ? 0 : 3];
                if (memcmp(results[e], like, 9 * count * sizeof(float)) != 0) {
                    fail_msg("model %d, run %zu: executor %zu has other bits", (int)seed, r, e);
                }
            }
        }
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        OK(rondo_executor_get_stats(executors[1], &stats));
        device_count += stats.bypassed_count == 0 ? 1 : 0;
        const rondo__work_log *work = &executors[1]->work;
        here_count += work->here_ns > 0 || work->is_all_here ? 1 : 0;
        for (size_t e = 0; e < 5; ++e) {
            rondo_executor_destroy(executors[e]);
        }
        model_fixture_deinit(&f);
    }
    // A trip count that nobody knows ahead is no reason for a bypass, nor to wake another thread.
    assert_int_equal(device_count, model_count);
    assert_int_equal(here_count, is_host ? model_count : 0);
}

// ---- what is left to the host, and why --------------------------------------------------------

static const char *add(model_builder *b, Onnx__GraphProto *graph, const char *op,
                       const char *inputs, const char *output) {
    (void)model_builder_add_node(b, graph, op, output, inputs, output);
    return output;
}

// y = Loop(n or 3 turns): s -> `op`(s), which is a row, too, where that is wanted.
static void build_loop(model_builder *b, const char *op, const char *inputs, bool is_counted,
                       bool has_rows) {
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    model_builder_add_input(b, body, "i", INT64, "");
    model_builder_add_input(b, body, "c", BOOL, "");
    model_builder_add_input(b, body, "s", FLOAT, NULL);
    model_builder_add_output(b, body, add(b, body, "Identity", "c", "c2"), BOOL, "");
    Onnx__NodeProto *node = model_builder_add_node(b, body, op, "inside", inputs, "s2");
    if (strcmp(op, "Concat") == 0) {
        Onnx__AttributeProto *axis = model_builder_add_attribute(
            b, node, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
        axis->has_i = 1;
    }
    model_builder_add_output(b, body, "s2", FLOAT, NULL);
    if (has_rows) {
        model_builder_add_output(b, body, add(b, body, "Neg", "s2", "row"), FLOAT, NULL);
    }
    const int64_t three = 3;
    model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, "three", INT64, 0, NULL),
                          &three, sizeof three);
    model_builder_add_body(
        b,
        model_builder_add_node(b, b->graph, "Loop", "loop", is_counted ? "three - x" : "n - x",
                               has_rows ? "y rows" : "y"),
        "body", body);
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
    if (has_rows) {
        model_builder_add_output(b, b->graph, "rows", FLOAT, NULL);
    }
}

static void build_grows(model_builder *b) {
    build_loop(b, "Concat", "s s", true, false);
}
static void build_draws(model_builder *b) {
    build_loop(b, "RandomUniformLike", "s", true, false);
}
static void build_uncounted_rows(model_builder *b) {
    build_loop(b, "Neg", "s", false, true);
}
static void build_counted_rows(model_builder *b) {
    build_loop(b, "Neg", "s", true, true);
}
static void build_uncounted(model_builder *b) {
    build_loop(b, "Neg", "s", false, false);
}

// y = If(condition) x else x of another shape, or all of x.
static void build_if(model_builder *b, const char *condition, bool is_same) {
    static const uint8_t yes = 1;
    model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, "yes", BOOL, 0, NULL), &yes,
                          sizeof yes);
    Onnx__NodeProto *node = model_builder_add_node(b, b->graph, "If", "choice", condition, "y");
    for (int k = 0; k < 2; ++k) {
        Onnx__GraphProto *graph = model_builder_new_graph(b, "branch");
        add(b, graph, k == 0 ? "Neg" : is_same ? "Abs" : "Flatten", "x", k == 0 ? "a" : "b");
        model_builder_add_output(b, graph, k == 0 ? "a" : "b", FLOAT, NULL);
        model_builder_add_body(b, node, k == 0 ? "then_branch" : "else_branch", graph);
    }
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
}

static void build_branches_differ(model_builder *b) {
    build_if(b, "go", false);
}
static void build_decided(model_builder *b) {
    build_if(b, "yes", false);
}
static void build_branches_agree(model_builder *b) {
    build_if(b, "go", true);
}

TEST(test_executor_device_control__says_what_hinders) {
    static const struct {
        void (*build)(model_builder *b);
        const char *expected;
        bool op_by_op;  // then no branch takes the place of its If
    } rows[] = {
        {build_grows, "on the host: carried value 0 changes its shape or type", false},
        {build_draws, "on the host: RandomUniformLike \"inside\" in its body draws random", false},
        {build_uncounted_rows, "on the host: the number of rows of output 1 depends on data",
         false},
        {build_branches_differ, "on the host: its branches do not agree in the shape of output 0",
         false},
        {build_counted_rows, "0 bypassed\n", false},
        {build_uncounted, "0 bypassed\n", false},
        {build_branches_agree, "0 bypassed\n", false},
        {build_decided, "else_branch: never taken\n", true},
        {build_decided, "1 op in 1 segment, 0 bypassed\n", false},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        model_fixture f;
        text_sink t = {{0}, 0};
        model_fixture_init(&f);
        model_builder *b = &f.builder;
        model_builder_add_input(b, b->graph, "x", FLOAT, "1 2 2");
        model_builder_add_input(b, b->graph, "n", INT64, "");
        model_builder_add_input(b, b->graph, "go", BOOL, "");
        rows[r].build(b);
        model_fixture_load(&f);
        rondo_executor *executor = create(&f, RONDO_GRAPHS_AUTO, rows[r].op_by_op, false);
        OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, text_sink_append, &t));
        if (strstr(t.text, rows[r].expected) == NULL) {
            fail_msg("row %d: no \"%s\" in:\n%s", (int)r, rows[r].expected, t.text);
        }
        // Three runs: conventionally, captured, replayed.
        float x[4] = {1, -2, 3, -4};
        int64_t n = 3;
        uint8_t go = 1;
        const rondo_shape shape = {.rank = 3, .extent = {1, 2, 2}};
        const rondo_binding feeds[] = {BIND_SHAPE("x", RONDO_DTYPE_F32, x, shape),
                                       BIND("n", RONDO_DTYPE_I64, &n),
                                       BIND("go", RONDO_DTYPE_BOOL, &go)};
        for (int i = 0; i < 3; ++i) {
            rondo_binding fetch = {.name = "y"};
            OK(rondo_executor_run(executor, feeds, 3, &fetch, 1));
            if (rows[r].build != build_draws && rows[r].build != build_grows) {
                assert_true(((float *)fetch.tensor.data)[1] == 2.0f);
            }
            rondo_tensor_deinit(&fetch.tensor);
        }
        rondo_executor_destroy(executor);
        model_fixture_deinit(&f);
    }
}

// ---- recorded into the program's own capture ---------------------------------------------------

typedef struct recorded {
    model_fixture f;
    rondo_executor *executor;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_tensor on_device[4];  // x, n, go and y
} recorded;

static void put(const recorded *r, size_t index, void *data) {
    rondo_tensor from = r->on_device[index];
    from.device = NULL;
    from.storage = NULL;
    from.data = data;
    OK(rondo_tensor_copy(r->stream, &from, &r->on_device[index]));
    OK(rondo_stream_synchronize(r->stream));
}

static float replay(recorded *r, float x, uint8_t go) {
    float values[4] = {x, x, x, x};
    rondo_tensor to = r->on_device[3];
    to.device = NULL;
    to.storage = NULL;
    to.data = values;
    put(r, 0, values);
    put(r, 2, &go);
    OK(rondo_graph_replay(r->graph, r->stream));
    OK(rondo_tensor_copy(r->stream, &r->on_device[3], &to));
    OK(rondo_stream_synchronize(r->stream));
    return values[3];
}

static void open_recorded(recorded *r, void (*build)(model_builder *b)) {
    const rondo_shape square = {.rank = 3, .extent = {1, 2, 2}};
    const rondo_shape scalar = {0};
    int64_t n = 3;
    memset(r, 0, sizeof *r);
    model_fixture_init(&r->f);
    model_builder *b = &r->f.builder;
    model_builder_add_input(b, b->graph, "x", FLOAT, "1 2 2");
    model_builder_add_input(b, b->graph, "n", INT64, "");
    model_builder_add_input(b, b->graph, "go", BOOL, "");
    build(b);
    model_fixture_load(&r->f);
    r->executor = create(&r->f, RONDO_GRAPHS_AUTO, false, false);
    rondo_device *device = rondo_stream_get_device(rondo_executor_get_stream(r->executor));
    OK(rondo_stream_create(device, NULL, &r->stream));
    OK(rondo_graph_create(device, NULL, &r->graph));
    for (size_t i = 0; i < 4; ++i) {
        OK(rondo_tensor_init_device(device,
                                    i == 1   ? RONDO_DTYPE_I64
                                    : i == 2 ? RONDO_DTYPE_BOOL
                                             : RONDO_DTYPE_F32,
                                    i == 0 || i == 3 ? &square : &scalar, &r->on_device[i]));
    }
    put(r, 1, &n);
    put(r, 2, &(uint8_t){1});
    put(r, 0, (float[4]){0});
}

static rondo_status record(recorded *r) {
    const rondo_binding feeds[] = {
        {"x", r->on_device[0]}, {"n", r->on_device[1]}, {"go", r->on_device[2]}};
    rondo_binding fetch = {"y", r->on_device[3]};
    OK(rondo_executor_run(r->executor, feeds, 3, &fetch, 1));
    OK(rondo_graph_capture_begin(r->graph, r->stream, RONDO_CAPTURE_THREAD_LOCAL));
    const rondo_status status = rondo_executor_record(r->executor, r->stream, feeds, 3, &fetch, 1);
    if (status != RONDO_STATUS_OK) {
        rondo_graph_capture_abort(r->graph);
        return status;
    }
    return rondo_graph_capture_end(r->graph);
}

static void close_recorded(recorded *r) {
    rondo_graph_destroy(r->graph);
    rondo_executor_destroy(r->executor);
    for (size_t i = 0; i < 4; ++i) {
        rondo_tensor_deinit(&r->on_device[i]);
    }
    rondo_stream_destroy(r->stream);
    model_fixture_deinit(&r->f);
}

TEST(test_executor_device_control__parts_of_other_graphs) {
    recorded r;
    open_recorded(&r, build_branches_agree);
    OK(record(&r));
    assert_true(replay(&r, -5.0f, 1) == 5.0f);
    assert_true(replay(&r, -5.0f, 0) == 5.0f);
    assert_true(replay(&r, 5.0f, 1) == -5.0f);
    assert_true(replay(&r, 5.0f, 0) == 5.0f);
    close_recorded(&r);
    open_recorded(&r, build_counted_rows);  // three turns
    OK(record(&r));
    assert_true(replay(&r, 7.0f, 1) == -7.0f);
    close_recorded(&r);
    open_recorded(&r, build_uncounted);
    assert_int_equal(record(&r), RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "a constant trip count bounds them"));
    close_recorded(&r);
}

// ---- loops without end, in runs that nobody waits for -----------------------------------------

typedef struct canceller {
    rondo_executor *executor;
    atomic_bool is_done;
} canceller;

static void *cancel_until_done(void *data) {
    canceller *c = data;
    while (!atomic_load(&c->is_done)) {
        usleep(2000);
        if (rondo_executor_cancel(c->executor) != RONDO_STATUS_OK) {
            abort();
        }
    }
    return NULL;
}

// Puts a run of `n` turns on the stream and waits for it.
static rondo_status run_later(rondo_executor *executor, int64_t n) {
    float x[4] = {1, -2, 3, -4};
    float y[4] = {0};
    uint8_t go = 1;
    const rondo_shape shape = {.rank = 3, .extent = {1, 2, 2}};
    const rondo_binding feeds[] = {BIND_SHAPE("x", RONDO_DTYPE_F32, x, shape),
                                   BIND("n", RONDO_DTYPE_I64, &n),
                                   BIND("go", RONDO_DTYPE_BOOL, &go)};
    rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, y, shape);
    OK(rondo_executor_run_async(executor, feeds, 3, &fetch, 1, NULL));
    const rondo_status status = rondo_executor_wait(executor);
    if (status == RONDO_STATUS_OK) {
        assert_true(y[1] == (n % 2 == 0 ? -2.0f : 2.0f));
    }
    return status;
}

TEST(test_executor_device_control__loops_without_end) {
    for (int is_limited = 0; is_limited < 2; ++is_limited) {
        model_fixture f;
        model_fixture_init(&f);
        model_builder *b = &f.builder;
        model_builder_add_input(b, b->graph, "x", FLOAT, "1 2 2");
        model_builder_add_input(b, b->graph, "n", INT64, "");
        model_builder_add_input(b, b->graph, "go", BOOL, "");
        build_uncounted(b);
        f.options.loop_limit = is_limited != 0 ? 100 : UINT64_MAX;
        model_fixture_load(&f);
        rondo_executor *executor;
        rondo_device *device;
        OK(rondo_device_open(on_devices_get_name(), &device));
        OK(rondo_executor_create(f.program, device, &f.options, &executor));
        for (int round = 0; round < 4; ++round) {  // the first run conventionally, then in a graph
            OK(run_later(executor, 99 + round % 2));
            canceller c = {.executor = executor};
            pthread_t thread;
            if (is_limited != 0) {
                assert_int_equal(run_later(executor, 101), RONDO_STATUS_BAD_DATA);
                assert_non_null(strstr(rondo_error_get_last()->message, "no end after 100 turns"));
                assert_string_equal(rondo_error_get_last()->op, "loop");
                continue;
            }
            assert_int_equal(pthread_create(&thread, NULL, cancel_until_done, &c), 0);
            assert_int_equal(run_later(executor, INT64_MAX), RONDO_STATUS_CANCELLED);
            atomic_store(&c.is_done, true);
            pthread_join(thread, NULL);
        }
        rondo_executor_destroy(executor);
        rondo_device_release(device);
        model_fixture_deinit(&f);
    }
}

int main(void) {
    return ON_DEVICES();
}
