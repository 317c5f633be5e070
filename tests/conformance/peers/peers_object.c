// What PyTorch's own tests say of the graph object, by their numbers in docs/peer_tests.md.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <time.h>

#include "conformance/peers/peers_kernel.h"
#include "conformance/random/random_support.h"
#include "rondo/inspect.h"
#include "support/driver.h"
#include "support/peek.h"

static void begin(rondo_graph *graph, rondo_stream *stream) {
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static rondo_graph *create_deferred(suite_context *context) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE_ONLY;
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(context->device, &options, &graph));
    return graph;
}

static void sleep_ms(long milliseconds) {
    struct timespec pause = {.tv_nsec = milliseconds * 1000000L};
    nanosleep(&pause, NULL);
}

static bool is_capturing(rondo_stream *stream) {
    bool answer = false;
    ASSERT_OK(rondo_stream_is_recording(stream, &answer));
    return answer;
}

// ---- capture ----------------------------------------------------------------------------------

SUITE_CASE(torch_01_is_capturing) {
    rondo_stream *other = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    assert_false(is_capturing(context->stream));
    begin(graph, context->stream);
    assert_true(is_capturing(context->stream));
    assert_false(is_capturing(other));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    assert_true(is_capturing(context->stream));
    if (context->is_cuda) {
        // The same through a second handle on the native stream.
        rondo_stream *wrapped;
        ASSERT_OK(
            rondo_stream_wrap(context->device, rondo_stream_get_native(context->stream), &wrapped));
        assert_true(is_capturing(wrapped));
        rondo_stream_destroy(wrapped);
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
    assert_false(is_capturing(context->stream));
    rondo_graph_destroy(graph);
    rondo_stream_destroy(other);
}

SUITE_CASE_EXECUTED(torch_02_capture_simple) {
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1000);
    suite_set(context, x, 0, 1000);
    begin(graph, context->stream);
    for (int i = 0; i < 10; ++i) {
        ASSERT_OK(suite_affine(context, context->stream, x, 1000, 1, 3));
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_VALUE(context, x, 999, 0);
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 999, 30);
    rondo_graph_destroy(graph);
}

// The same lines for any device, asked for by name.
SUITE_CASE_EXECUTED(torch_03_device_neutral) {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    void *x;
    ASSERT_OK(rondo_device_open(rondo_device_get_name(context->device), &device));
    ASSERT_OK(rondo_stream_create(device, NULL, &stream));
    ASSERT_OK(rondo_graph_create(device, NULL, &graph));
    ASSERT_OK(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 64, &x));
    begin(graph, stream);
    assert_true(is_capturing(stream));
    ASSERT_OK(rondo_stream_fill(stream, x, 9, 4, 16));
    ASSERT_OK(suite_affine(context, stream, x, 16, 2, 0));
    ASSERT_OK(rondo_graph_capture_end(graph));
    assert_false(is_capturing(stream));
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, x, 15, 18);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_memory_free(device, x);
    rondo_device_release(device);
}

// Generators cost device memory, graphs that use them do not; all of it comes back.
SUITE_CASE(torch_05_memory_of_generators_and_graphs) {
    enum { GENERATORS = 3, GRAPHS = 8 };
    uint32_t *out = suite_allocate(context, RONDO_MEMORY_DEVICE, 64);
    rondo_generator *generators[GENERATORS];
    rondo_graph *graphs[GRAPHS];
    peek_begin_counting(context->device);
    long with_generators[GENERATORS];
    for (int i = 0; i < GENERATORS; ++i) {
        generators[i] = suite_create_generator(context, (uint64_t)i);
        ASSERT_OK(suite_draw(generators[i], context->stream, out));
        with_generators[i] = peek_count_allocations();
    }
    for (int i = 0; i < GRAPHS; ++i) {
        graphs[i] = suite_create_graph(context, false);
        begin(graphs[i], context->stream);
        for (int j = 0; j < GENERATORS; ++j) {
            ASSERT_OK(suite_draw(generators[j], context->stream, out));
        }
        ASSERT_OK(rondo_graph_capture_end(graphs[i]));
        ASSERT_OK(rondo_graph_replay(graphs[i], context->stream));
    }
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    long with_graphs = peek_count_allocations();
    for (int i = 0; i < GRAPHS; ++i) {
        rondo_graph_destroy(graphs[i]);
    }
    for (int i = 0; i < GENERATORS; ++i) {
        rondo_generator_release(generators[i]);
    }
    long at_last = peek_count_allocations();
    peek_end_counting(context->device);
    assert_true(with_generators[0] >= 1);
    for (int i = 1; i < GENERATORS; ++i) {
        assert_int_equal(with_generators[i], (i + 1) * with_generators[0]);
    }
    assert_int_equal(with_graphs, with_generators[GENERATORS - 1]);
    assert_int_equal(at_last, 0);
}

SUITE_CASE(torch_06_reset_and_recapture) {
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4);
    suite_set(context, x, 1, 4);
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 4, 2, 0));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_graph_reset(graph));
    ASSERT_STATUS(rondo_graph_replay(graph, context->stream), STATE);
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 4, 5, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 3, 11);
    rondo_graph_destroy(graph);
}

SUITE_CASE(torch_07_debug_dump) {
    rondo_stream *side = suite_create_stream(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    rondo_graph *graph = suite_create_graph(context, true);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    begin(graph, context->stream);
    ASSERT_OK(rondo_event_record(fork, context->stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(suite_affine(context, side, x + 1, 1, 2, 1));
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(context->stream, join));
    ASSERT_OK(suite_affine(context, context->stream, x, 2, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    static suite_text dot;
    dot = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_DOT, suite_append_text, &dot));
    assert_non_null(strstr(dot.bytes, "digraph"));
    assert_non_null(strstr(dot.bytes, "affine"));
    size_t edges = 0;
    for (const char *at = dot.bytes; (at = strstr(at, " -> ")) != NULL; ++at) {
        ++edges;
    }
    assert_int_equal(edges, 2);  // the two branches have no common root, and meet in the third
    rondo_graph_destroy(graph);
    rondo_event_destroy(fork);
    rondo_event_destroy(join);
    rondo_stream_destroy(side);
}

SUITE_CASE(torch_08_timing) {
    const uint32_t flags = RONDO_EVENT_TIMED | RONDO_EVENT_EXTERNAL;
    rondo_event *start = suite_create_event(context, flags);
    rondo_event *end = suite_create_event(context, flags);
    rondo_graph *graph = suite_create_graph(context, false);
    int64_t elapsed_ns = 0;
    begin(graph, context->stream);
    ASSERT_OK(rondo_event_record(start, context->stream));
    ASSERT_OK(suite_spin(context, context->stream, 3000));
    ASSERT_OK(rondo_event_record(end, context->stream));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_STATUS(rondo_event_get_elapsed_ns(start, end, &elapsed_ns), STATE);
    for (int round = 0; round < 3; ++round) {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_OK(rondo_event_synchronize(end));
        ASSERT_OK(rondo_event_get_elapsed_ns(start, end, &elapsed_ns));
        assert_true(elapsed_ns > 0);
        assert_true(context->is_fake || elapsed_ns >= 2900000);
    }
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    rondo_graph_destroy(graph);
    rondo_event_destroy(start);
    rondo_event_destroy(end);
}

SUITE_CASE(torch_09_default_stream_refused) {
    if (!context->is_cuda) {
        print_message("skipped: the host has no default stream\n");
        skip();
    }
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    void *const legacy[] = {NULL, (void *)(uintptr_t)1};
    for (int i = 0; i < 2; ++i) {
        rondo_stream *stream;
        ASSERT_OK(rondo_stream_wrap(context->device, legacy[i], &stream));
        ASSERT_STATUS(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL),
                      INVALID);
        ASSERT_MESSAGE_HAS("legacy default stream cannot record");
        ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));  // it still works
        ASSERT_OK(rondo_stream_synchronize(stream));
        rondo_stream_destroy(stream);
    }
    ASSERT_VALUE(context, x, 0, 7);
    if (!context->is_prompt) {
        // The per-thread default stream records as any other.
        rondo_stream *stream;
        ASSERT_OK(rondo_stream_wrap(context->device, (void *)(uintptr_t)2, &stream));
        begin(graph, stream);
        ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
        ASSERT_OK(rondo_graph_capture_end(graph));
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_OK(rondo_stream_synchronize(stream));
        ASSERT_VALUE(context, x, 0, 15);
        rondo_stream_destroy(stream);
    }
    rondo_graph_destroy(graph);
}

static void count_warnings(void *user_data, rondo_log_level level, const char *message) {
    *(int *)user_data += level == RONDO_LOG_WARNING && strstr(message, "empty") != NULL;
}

SUITE_CASE(torch_10_empty_capture_warns) {
    rondo_graph *graph = suite_create_graph(context, false);
    int warnings = 0;
    rondo_log_set_sink(count_warnings, &warnings);
    begin(graph, context->stream);
    rondo_status status = rondo_graph_capture_end(graph);
    rondo_log_set_sink(NULL, NULL);
    ASSERT_OK(status);
    assert_int_equal(warnings, 1);
    rondo_graph_destroy(graph);
}

// Library randomness inside and outside of graphs, handed from stream to stream by events.
SUITE_CASE(torch_20_eager_and_captured_dropout_mix) {
    enum { COUNT = 500, ROUNDS = 6 };
    rondo_generator *generator = suite_create_generator(context, 11);
    rondo_stream *other = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    rondo_graph *graph = suite_create_graph(context, false);
    float *x = (float *)suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    float *y = (float *)suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    static float expected[ROUNDS][COUNT];
    float got[COUNT];
    suite_set(context, (uint32_t *)x, 0x3f800000, COUNT);
    for (int i = 0; i < ROUNDS; ++i) {
        ASSERT_OK(rondo_random_dropout(generator, context->stream, RONDO_DTYPE_F32, x, y, NULL,
                                       COUNT, 0.3));
        suite_read(context, expected[i], y, sizeof got);
    }
    ASSERT_OK(rondo_generator_set_seed(generator, 11));
    begin(graph, context->stream);
    ASSERT_OK(
        rondo_random_dropout(generator, context->stream, RONDO_DTYPE_F32, x, y, NULL, COUNT, 0.3));
    ASSERT_OK(rondo_graph_capture_end(graph));
    for (int i = 0; i < ROUNDS; ++i) {
        rondo_stream *stream = i % 3 == 1 ? other : context->stream;
        ASSERT_OK(rondo_stream_wait_event(stream, event));
        ASSERT_OK(i % 2 == 0 ? rondo_random_dropout(generator, stream, RONDO_DTYPE_F32, x, y, NULL,
                                                    COUNT, 0.3)
                             : rondo_graph_replay(graph, stream));
        ASSERT_OK(rondo_event_record(event, stream));
        suite_read(context, got, y, sizeof got);
        assert_memory_equal(got, expected[i], sizeof got);
    }
    rondo_graph_destroy(graph);
    rondo_generator_release(generator);
    rondo_event_destroy(event);
    rondo_stream_destroy(other);
}

// ---- native handles and instantiation on demand ------------------------------------------------

SUITE_CASE(torch_28_handles_without_a_kept_template) {
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    void *native = NULL;
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_STATUS(rondo_graph_instantiate(graph), STATE);
    ASSERT_MESSAGE_HAS("RONDO_KEEP_TEMPLATE");
    ASSERT_STATUS(rondo_graph_get_native(graph, &native, NULL), STATE);
    ASSERT_MESSAGE_HAS("RONDO_KEEP_TEMPLATE");
    assert_null(native);
    rondo_graph_destroy(graph);
}

SUITE_CASE(torch_29_nodes_can_be_listed) {
    rondo_graph *graph = create_deferred(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 8);
    begin(graph, context->stream);
    ASSERT_OK(rondo_stream_fill(context->stream, x, 1, 4, 8));
    ASSERT_OK(suite_affine(context, context->stream, x, 8, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    uint64_t count = 0;
    int kernels = 0;
    int fills = 0;
    ASSERT_OK(rondo_graph_get_node_count(graph, &count));
    assert_int_equal(count, 2);
    for (uint64_t i = 0; i < count; ++i) {
        rondo_graph_node node = {.struct_size = sizeof node};
        ASSERT_OK(rondo_graph_get_node(graph, i, &node));
        kernels += node.kind == RONDO_NODE_KERNEL;
        fills += node.kind == RONDO_NODE_FILL;
    }
    assert_int_equal(kernels, 1);
    assert_int_equal(fills, 1);
    if (context->is_cuda) {
        // And by the driver's own calls.
        const rondo__cuda_api *api;
        void *native = NULL;
        rondo__cu_graph_node nodes[4];
        size_t native_count = 4;
        int types[2] = {-1, -1};
        ASSERT_OK(rondo__cuda_get_api(&api));
        ASSERT_OK(rondo_graph_get_native(graph, &native, NULL));
        assert_int_equal(api->cuGraphGetNodes(native, nodes, &native_count), 0);
        assert_int_equal(native_count, 2);
        for (int i = 0; i < 2; ++i) {
            assert_int_equal(api->cuGraphNodeGetType(nodes[i], &types[i]), 0);
        }
        assert_int_equal(types[0] + types[1],
                         RONDO__CU_GRAPH_NODE_KERNEL + RONDO__CU_GRAPH_NODE_MEMSET);
    }
    ASSERT_OK(rondo_graph_replay(graph, context->stream));  // instantiates
    ASSERT_VALUE(context, x, 7, 3);
    rondo_graph_destroy(graph);
}

SUITE_CASE(torch_30_executable_handle) {
    rondo_graph *graph = create_deferred(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    void *native = NULL;
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_STATUS(rondo_graph_get_native(graph, NULL, &native), STATE);
    ASSERT_MESSAGE_HAS("rondo_graph_instantiate");
    ASSERT_OK(rondo_graph_instantiate(graph));
    if (!context->is_cuda) {
        ASSERT_STATUS(rondo_graph_get_native(graph, NULL, &native), UNSUPPORTED);
    } else {
        ASSERT_OK(rondo_graph_get_native(graph, NULL, &native));
        assert_non_null(native);
    }
    // Without a kept template the executable is there from the start.
    rondo_graph *bare = suite_create_graph(context, false);
    begin(bare, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(bare));
    if (context->is_cuda) {
        ASSERT_OK(rondo_graph_get_native(bare, NULL, &native));
        assert_non_null(native);
    }
    rondo_graph_destroy(bare);
    rondo_graph_destroy(graph);
}

SUITE_CASE_EXECUTED(torch_31_reset_and_recapture_raw) {
    rondo_graph *graph = create_deferred(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    suite_set(context, x, 0, 2);
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_instantiate(graph));
    ASSERT_OK(rondo_graph_instantiate(graph));
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
    }
    ASSERT_VALUE(context, x, 0, 3);
    ASSERT_OK(rondo_graph_reset(graph));
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x + 1, 1, 1, 5));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 0, 3);
    ASSERT_VALUE(context, x, 1, 10);
    rondo_graph_destroy(graph);
}

// ---- a scale that lives on the device ---------------------------------------------------------

// y = x * scale; when an element is not finite, scale halves and the count of good steps restarts,
// otherwise scale doubles after every third good step.
typedef struct scaler_arguments {
    float *x;
    float *y;
    float *scale;
    uint32_t *good_steps;
    uint32_t count;
} scaler_arguments;

static const char scaler_text[] =
    "extern \"C\" __global__ void scaler(const float *x, float *y, float *scale,\n"
    "                                    unsigned *good_steps, unsigned count) {\n"
    "    bool is_finite = true;\n"
    "    for (unsigned i = 0; i < count; i++) {\n"
    "        y[i] = x[i] * *scale;\n"
    "        is_finite = is_finite && y[i] - y[i] == 0.0f;\n"
    "    }\n"
    "    *good_steps = is_finite ? *good_steps + 1 : 0;\n"
    "    if (!is_finite) { *scale *= 0.5f; }\n"
    "    if (*good_steps == 3) { *scale *= 2.0f; *good_steps = 0; }\n"
    "}\n";

static void run_scaler(void *data) {
    const scaler_arguments *a = data;
    bool is_finite = true;
    for (uint32_t i = 0; i < a->count; ++i) {
        a->y[i] = a->x[i] * *a->scale;
        is_finite = is_finite && a->y[i] - a->y[i] == 0.0f;
    }
    *a->good_steps = is_finite ? *a->good_steps + 1 : 0;
    *a->scale *= is_finite ? 1.0f : 0.5f;
    if (*a->good_steps == 3) {
        *a->scale *= 2.0f;
        *a->good_steps = 0;
    }
}

PEERS_FAKE(run_scaler, scaler_arguments);

SUITE_CASE_EXECUTED(torch_36_scale_is_read_from_the_device) {
    static const peers_kernel kernel = {"scaler", scaler_text, run_scaler, fake_run_scaler};
    void *function = peers_get_function(context, &kernel);
    enum { COUNT = 8 };
    float *x = (float *)suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    float *y = (float *)suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    float *scale = (float *)suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    uint32_t *good_steps = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    float *pinned = (float *)suite_allocate(context, RONDO_MEMORY_PINNED, COUNT);
    const scaler_arguments arguments = {x, y, scale, good_steps, COUNT};
    const size_t bytes = offsetof(scaler_arguments, count) + sizeof(uint32_t);
    suite_set(context, (uint32_t *)scale, 0x47800000, 1);  // 65536
    suite_set(context, good_steps, 0, 1);
    rondo_graph *graph = suite_create_graph(context, false);
    begin(graph, context->stream);
    ASSERT_OK(rondo_stream_copy(context->stream, x, pinned, sizeof(float) * COUNT,
                                RONDO_COPY_HOST_TO_DEVICE));
    ASSERT_OK(peers_launch(context->stream, &kernel, function, 1, &arguments, bytes));
    ASSERT_OK(rondo_graph_capture_end(graph));
    static const bool overflows[] = {false, false, true,  false, true,  true,
                                     false, false, false, false, false, false};
    float expected = 65536.0f;
    uint32_t steps = 0;
    for (size_t i = 0; i < sizeof overflows / sizeof *overflows; ++i) {
        for (int j = 0; j < COUNT; ++j) {
            pinned[j] = 1.0f;
        }
        pinned[COUNT - 1] = overflows[i] ? 3e38f : 2.0f;
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        float first;
        suite_read(context, &first, y, sizeof first);
        assert_true(first == expected);
        steps = overflows[i] ? 0 : steps + 1;
        expected *= overflows[i] ? 0.5f : 1.0f;
        if (steps == 3) {
            expected *= 2.0f;
            steps = 0;
        }
        float now;
        suite_read(context, &now, scale, sizeof now);
        assert_true(now == expected);
        ASSERT_VALUE(context, good_steps, 0, steps);
    }
    rondo_graph_destroy(graph);
}

// ---- graphs that wait for each other ----------------------------------------------------------

typedef struct await_arguments {
    atomic_uint *flag;
} await_arguments;

static const char await_text[] =
    "extern \"C\" __global__ void await_flag(volatile unsigned *flag) {\n"
    "    while (*flag == 0) {\n"
    "    }\n"
    "}\n";

static void run_await(void *data) {
    atomic_uint *flag = ((const await_arguments *)data)->flag;
    while (atomic_load(flag) == 0) {
        sleep_ms(1);
    }
}

PEERS_FAKE(run_await, await_arguments);

SUITE_CASE_EXECUTED(torch_37_external_wait_and_record) {
    static const peers_kernel kernel = {"await_flag", await_text, run_await, fake_run_await};
    void *function = peers_get_function(context, &kernel);
    rondo_stream *side = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, RONDO_EVENT_EXTERNAL);
    rondo_graph *a = suite_create_graph(context, false);
    rondo_graph *b = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    uint32_t *y = suite_allocate(context, RONDO_MEMORY_PINNED, 1);
    atomic_uint *flag = (atomic_uint *)suite_allocate(context, RONDO_MEMORY_PINNED, 1);
    const await_arguments arguments = {flag};
    suite_set(context, x, 7, 1);
    // A spins on the flag, adds one, and records; B waits for that and copies.
    begin(a, context->stream);
    ASSERT_OK(peers_launch(context->stream, &kernel, function, 1, &arguments, sizeof arguments));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
    ASSERT_OK(rondo_event_record(event, context->stream));
    ASSERT_OK(rondo_graph_capture_end(a));
    begin(b, side);
    ASSERT_OK(rondo_stream_wait_event(side, event));
    ASSERT_OK(rondo_stream_copy(side, y, x, sizeof *y, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_graph_capture_end(b));
    // Both ready on the device, so that a launch need not wait for anything.
    ASSERT_OK(rondo_graph_upload(a, context->stream));
    ASSERT_OK(rondo_graph_upload(b, side));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    ASSERT_OK(rondo_stream_synchronize(side));
    for (uint32_t round = 0; round < 3; ++round) {
        *y = 0;
        atomic_store(flag, context->is_prompt ? 1u : 0u);
        ASSERT_OK(rondo_graph_replay(a, context->stream));
        ASSERT_OK(rondo_graph_replay(b, side));
        if (!context->is_prompt) {
            bool is_idle = true;
            sleep_ms(20);
            ASSERT_OK(rondo_stream_query(side, &is_idle));
            assert_false(is_idle);
            assert_int_equal(*(volatile uint32_t *)y, 0);
            atomic_store(flag, 1);
        }
        ASSERT_OK(rondo_stream_synchronize(side));
        assert_int_equal(*y, 8 + round);
        ASSERT_OK(rondo_stream_synchronize(context->stream));
    }
    rondo_graph_destroy(a);
    rondo_graph_destroy(b);
    rondo_event_destroy(event);
    rondo_stream_destroy(side);
}
