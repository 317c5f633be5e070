// The graph object: replays, its states, statistics, dumps, handles, updates.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "conformance/random/random_support.h"
#include "rondo/inspect.h"
#include "rondo/label.h"

#include "rondo/pool.h"

// Records x = x * factor + term on the context's stream.
static void capture_affine(suite_context *context, rondo_graph *graph, uint32_t *x, uint32_t factor,
                           uint32_t term) {
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, factor, term));
    ASSERT_OK(rondo_graph_capture_end(graph));
}

SUITE_CASE_EXECUTED(test_conformance_graph__replays_many_times) {
    const int replay_count = suite_rounds(2000, 20);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = suite_create_graph(context, false);
    capture_affine(context, graph, x, 3, 7);
    uint32_t expected = 1;
    for (int i = 0; i < replay_count; ++i) {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        expected = expected * 3 + 7;
        if (i % 500 == 0) {
            // Replays and eager work mix in order.
            ASSERT_OK(suite_affine(context, context->stream, x, 1, 5, 1));
            expected = expected * 5 + 1;
        }
    }
    ASSERT_VALUE(context, x, 0, expected);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.replay_count, replay_count);
    rondo_graph_destroy(graph);
}

SUITE_CASE_EXECUTED(test_conformance_graph__replays_on_several_streams_are_ordered) {
    rondo_stream *streams[3];
    for (int i = 0; i < 3; ++i) {
        streams[i] = suite_create_stream(context);
    }
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 3, 1));
    ASSERT_OK(suite_spin(context, context->stream, 20));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 5, 2));
    ASSERT_OK(rondo_graph_capture_end(graph));
    uint32_t expected = 1;
    for (int i = 0; i < 150; ++i) {
        ASSERT_OK(rondo_graph_replay(graph, streams[i % 3]));
        expected = (expected * 3 + 1) * 5 + 2;
    }
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_stream_synchronize(streams[i]));
    }
    ASSERT_VALUE(context, x, 0, expected);
    // The streams may go before the graph.
    for (int i = 0; i < 3; ++i) {
        rondo_stream_destroy(streams[i]);
    }
    rondo_graph_destroy(graph);
}

SUITE_CASE(test_conformance_graph__destroy_and_reset_wait_for_replays) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    for (int round = 0; round < 2; ++round) {
        suite_set(context, x, 1, 1);
        rondo_stream *stream = suite_create_stream(context);
        rondo_graph *graph = suite_create_graph(context, false);
        ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_OK(suite_spin(context, stream, 2000));
        ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
        ASSERT_OK(rondo_graph_capture_end(graph));
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_OK(rondo_graph_replay(graph, stream));
        if (round == 0) {
            ASSERT_OK(rondo_graph_reset(graph));
        } else {
            rondo_graph_destroy(graph);
            graph = NULL;
        }
        bool is_idle = false;
        ASSERT_OK(rondo_stream_query(stream, &is_idle));
        assert_true(is_idle);
        ASSERT_VALUE(context, x, 0, 13);
        rondo_graph_destroy(graph);
        rondo_stream_destroy(stream);
    }
}

SUITE_CASE(test_conformance_graph__reset_and_record_again) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_graph *graph = suite_create_graph(context, true);
    for (uint32_t round = 0; round < 20; ++round) {
        suite_set(context, x, 2, 1);
        capture_affine(context, graph, x, round, 100);
        ASSERT_STATUS(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL),
                      STATE);
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_VALUE(context, x, 0, 2 * round + 100);
        ASSERT_OK(rondo_graph_reset(graph));
        ASSERT_STATUS(rondo_graph_replay(graph, context->stream), STATE);
        ASSERT_MESSAGE_HAS("reset");
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_int_equal(stats.node_count + stats.replay_count, 0);
        ASSERT_OK(rondo_graph_reset(graph));
    }
    rondo_graph_destroy(graph);
}

static bool stop_at_once(void *user_data, const char *text, size_t bytes) {
    (void)text;
    (void)bytes;
    ++*(int *)user_data;
    return false;
}

SUITE_CASE(test_conformance_graph__states_refuse_what_does_not_fit) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    void *handle = graph;
    static suite_text text;
    text = (suite_text){0};
    // Empty.
    ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
    ASSERT_STATUS(rondo_graph_replay(graph, context->stream), STATE);
    ASSERT_STATUS(rondo_graph_upload(graph, context->stream), STATE);
    ASSERT_STATUS(rondo_graph_instantiate(graph), STATE);
    ASSERT_STATUS(rondo_graph_dump(graph, RONDO_TEXT_DOT, suite_append_text, &text), STATE);
    ASSERT_STATUS(rondo_graph_get_native(graph, &handle, NULL), STATE);
    assert_null(handle);
    ASSERT_OK(rondo_graph_reset(graph));
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    // Recording.
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
    rondo_stream *other = suite_create_stream(context);
    ASSERT_STATUS(rondo_graph_replay(graph, other), STATE);
    ASSERT_STATUS(rondo_graph_upload(graph, other), STATE);
    ASSERT_STATUS(rondo_graph_reset(graph), STATE);
    ASSERT_STATUS(rondo_graph_instantiate(graph), STATE);
    ASSERT_OK(rondo_graph_capture_end(graph));
    // Ready, without a template.
    ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
    ASSERT_STATUS(rondo_graph_instantiate(graph), STATE);
    ASSERT_MESSAGE_HAS("RONDO_KEEP_TEMPLATE");
    ASSERT_STATUS(rondo_graph_dump(graph, RONDO_TEXT_JSON, suite_append_text, &text), STATE);
    ASSERT_MESSAGE_HAS("RONDO_KEEP_TEMPLATE");
    ASSERT_STATUS(rondo_graph_get_native(graph, &handle, NULL), STATE);
    assert_int_equal(text.length, 0);
    // Arguments.
    ASSERT_STATUS(rondo_graph_replay(NULL, context->stream), INVALID);
    ASSERT_STATUS(rondo_graph_replay(graph, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_capture_begin(NULL, context->stream, RONDO_CAPTURE_RELAXED), INVALID);
    ASSERT_STATUS(rondo_graph_capture_end(NULL), INVALID);
    ASSERT_STATUS(rondo_graph_reset(NULL), INVALID);
    ASSERT_STATUS(rondo_graph_get_stats(graph, NULL), INVALID);
    ASSERT_OK(rondo_graph_reset(graph));
    ASSERT_STATUS(rondo_graph_capture_begin(graph, NULL, RONDO_CAPTURE_RELAXED), INVALID);
    ASSERT_STATUS(rondo_graph_capture_begin(graph, context->stream, (rondo_capture_mode)5),
                  INVALID);
    rondo_graph *made = graph;
    rondo_graph_options options = {.struct_size = sizeof options};
    options.struct_size += 8;
    ASSERT_STATUS(rondo_graph_create(context->device, &options, &made), INVALID);
    assert_null(made);
    options.struct_size = 0;
    ASSERT_STATUS(rondo_graph_create(context->device, &options, &made), INVALID);
    ASSERT_STATUS(rondo_graph_create(NULL, NULL, &made), INVALID);
    ASSERT_OK(rondo_graph_create(context->device, NULL, &made));
    rondo_graph_destroy(made);
    rondo_graph_destroy(NULL);
    rondo_stream_destroy(other);
    rondo_graph_destroy(graph);
}

SUITE_CASE(test_conformance_graph__is_not_replayed_into_a_capture) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_graph *ready = suite_create_graph(context, false);
    capture_affine(context, ready, x, 1, 1);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 3));
    ASSERT_STATUS(rondo_graph_replay(ready, stream), STATE);
    ASSERT_STATUS(rondo_graph_upload(ready, stream), STATE);
    // Nor on a stream that has joined.
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    ASSERT_OK(rondo_event_record(event, stream));
    ASSERT_OK(rondo_stream_wait_event(branch, event));
    ASSERT_STATUS(rondo_graph_replay(ready, branch), STATE);
    ASSERT_OK(rondo_event_record(event, branch));
    ASSERT_OK(rondo_stream_wait_event(stream, event));
    // Harmless: the capture goes on, and afterwards all streams replay.
    ASSERT_OK(rondo_graph_capture_end(graph));
    suite_set(context, x, 1, 1);
    ASSERT_OK(rondo_graph_replay(ready, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_OK(rondo_graph_replay(graph, branch));
    ASSERT_OK(rondo_stream_synchronize(branch));
    ASSERT_VALUE(context, x, 0, 7);
    rondo_event_destroy(event);
    rondo_stream_destroy(branch);
    rondo_graph_destroy(graph);
    rondo_graph_destroy(ready);
    rondo_stream_destroy(stream);
}

static void count_warnings(void *user_data, rondo_log_level level, const char *message) {
    if (level == RONDO_LOG_WARNING && strstr(message, "empty") != NULL) {
        ++*(int *)user_data;
    }
}

SUITE_CASE(test_conformance_graph__an_empty_capture_warns) {
    int warnings = 0;
    rondo_graph *graph = suite_create_graph(context, true);
    rondo_log_set_sink(count_warnings, &warnings);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo_status status = rondo_graph_capture_end(graph);
    rondo_log_set_sink(NULL, NULL);
    ASSERT_OK(status);
    assert_int_equal(warnings, 1);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 0);
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    static suite_text text;
    text = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_JSON, suite_append_text, &text));
    rondo_graph_destroy(graph);
}

typedef struct void_calls {
    rondo_stream *stream;
    rondo_event *event;
    rondo_pool *pool;
    rondo_generator *generator;
} void_calls;

static rondo_status copy_no_bytes(void_calls *v) {
    return rondo_stream_copy(v->stream, NULL, NULL, 0, RONDO_COPY_HOST_TO_DEVICE);
}

static rondo_status fill_no_elements(void_calls *v) {
    return rondo_stream_fill(v->stream, NULL, 1, 4, 0);
}

static rondo_status draw_nothing(void_calls *v) {
    return rondo_random_words(v->generator, v->stream, NULL, 0);
}

static rondo_status wait_for_itself(void_calls *v) {
    rondo_status status = rondo_event_record(v->event, v->stream);
    return status == RONDO_STATUS_OK ? rondo_stream_wait_event(v->stream, v->event) : status;
}

static rondo_status label_nothing(void_calls *v) {
    rondo_status status = rondo_label_push(v->stream, "void");
    return status == RONDO_STATUS_OK ? rondo_label_pop(v->stream) : status;
}

static rondo_status take_and_give_back(void_calls *v) {
    void *block;
    rondo_status status = rondo_pool_allocate(v->pool, v->stream, 64, &block);
    return status == RONDO_STATUS_OK ? rondo_pool_free(v->pool, block) : status;
}

// Calls that go well and put nothing into the graph do not keep the program from being warned.
SUITE_CASE_EXECUTED(test_conformance_graph__calls_without_work_leave_it_empty) {
    static rondo_status (*const calls[])(void_calls *) = {copy_no_bytes, fill_no_elements,
                                                          draw_nothing,  wait_for_itself,
                                                          label_nothing, take_and_give_back};
    static int warnings;  // outlives a case that stops here
    void_calls v = {.stream = suite_create_stream(context),
                    .event = suite_create_event(context, 0),
                    .generator = suite_create_generator(context, 1)};
    ASSERT_OK(rondo_pool_create(context->device, NULL, &v.pool));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
        rondo_graph *graph = suite_create_graph(context, false);
        warnings = 0;
        ASSERT_OK(rondo_graph_capture_begin(graph, v.stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_OK(calls[i](&v));
        rondo_log_set_sink(count_warnings, &warnings);
        rondo_status status = rondo_graph_capture_end(graph);
        rondo_log_set_sink(NULL, NULL);
        ASSERT_OK(status);
        if (warnings != 1) {
            fail_msg("call %zu: %d warnings", i, warnings);
        }
        ASSERT_OK(rondo_graph_replay(graph, v.stream));
        ASSERT_OK(rondo_stream_synchronize(v.stream));
        rondo_graph_destroy(graph);
    }
    rondo_pool_release(v.pool);
    rondo_generator_release(v.generator);
    rondo_event_destroy(v.event);
    rondo_stream_destroy(v.stream);
}

static void do_nothing(void *data) {
    (void)data;
}

static void assert_text_has(const suite_text *text, const char *part) {
    if (strstr(text->bytes, part) == NULL) {
        print_error("no \"%s\" in:\n%s\n", part, text->bytes);
        fail();
    }
}

static size_t count_parts(const char *text, const char *part) {
    size_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        ++count;
        text += strlen(part);
    }
    return count;
}

SUITE_CASE(test_conformance_graph__dumps_and_statistics) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 300);
    uint32_t *pinned = suite_allocate(context, RONDO_MEMORY_PINNED, 300);
    rondo_graph *graph = suite_create_graph(context, true);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo_stream *stream = context->stream;
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    ASSERT_OK(rondo_stream_fill(stream, x, 0x55, 4, 100));
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(branch, fork));
    ASSERT_OK(suite_affine(context, stream, x, 300, 2, 1));
    ASSERT_OK(rondo_stream_call_host(branch, "say \"hello\"", do_nothing, NULL, 0));
    ASSERT_OK(rondo_event_record(join, branch));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_stream_copy(stream, pinned, x, 1200, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(branch);

    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 4);
    assert_int_equal(stats.kernel_count, context->is_host ? 2 : 1);
    assert_int_equal(stats.copy_count, 2);
    assert_int_equal(stats.replay_count, 0);
    assert_true(stats.capture_ns > 0);
    assert_true(stats.instantiate_ns > 0);

    static suite_text json;
    json = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_JSON, suite_append_text, &json));
    assert_int_equal(json.length, strlen(json.bytes));
    assert_text_has(&json, "\"label\": \"suite\"");
    assert_text_has(&json,
                    "\"kind\": \"kernel\", \"name\": \"affine\", \"grid\": [3, 1, 1], "
                    "\"block\": [128, 1, 1]");
    assert_text_has(&json, "\"kind\": \"host\", \"name\": \"say \\\"hello\\\"\"");
    assert_text_has(&json, "\"kind\": \"memset\", \"value\": 85, \"bytes\": 400");
    assert_text_has(&json, "\"copy\": \"device_to_host\", \"bytes\": 1200");
    assert_int_equal(count_parts(json.bytes, "\"index\": "), 4);
    const char *edges = strstr(json.bytes, "\"edges\": ");
    assert_non_null(edges);
    assert_int_equal(count_parts(edges, "["), 5);  // the list and four edges

    static suite_text dot;
    dot = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_DOT, suite_append_text, &dot));
    assert_text_has(&dot, "digraph \"suite\" {");
    assert_text_has(&dot, "grid 3x1x1 block 128x1x1");
    assert_text_has(&dot, "say \\\"hello\\\"");
    assert_text_has(&dot, "value 85, 400 bytes");
    assert_int_equal(count_parts(dot.bytes, " -> "), 4);
    assert_int_equal(dot.bytes[dot.length - 2], '}');

    int calls = 0;
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_DOT, stop_at_once, &calls));
    assert_int_equal(calls, 1);
    ASSERT_STATUS(rondo_graph_dump(graph, (rondo_text_format)9, stop_at_once, &calls), INVALID);
    ASSERT_STATUS(rondo_graph_dump(graph, RONDO_TEXT_DOT, NULL, NULL), INVALID);
    rondo_graph_destroy(graph);
}

// Graphviz takes no string of 16 KiB, and nobody bytes that are no text.
SUITE_CASE(test_conformance_graph__long_and_broken_labels) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_graph *graph = suite_create_graph(context, true);
    static char label[20001];
    memset(label, 'x', 20000);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo_label_push(context->stream, label));
    ASSERT_OK(rondo_label_push(context->stream, "\xff\x1b[2J"));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
    ASSERT_OK(rondo_label_pop(context->stream));
    ASSERT_OK(rondo_label_pop(context->stream));
    ASSERT_OK(rondo_graph_capture_end(graph));
    static suite_text dump;
    for (rondo_text_format format = RONDO_TEXT_JSON; format <= RONDO_TEXT_DOT; ++format) {
        dump = (suite_text){0};
        ASSERT_OK(rondo_graph_dump(graph, format, suite_append_text, &dump));
        assert_true(format == RONDO_TEXT_DOT ? dump.length < 8192 : dump.length > 20000);
        assert_null(strchr(dump.bytes, '\xff'));
        assert_null(strchr(dump.bytes, '\x1b'));
    }
    rondo_graph_destroy(graph);
}

SUITE_CASE(test_conformance_graph__template_is_kept_and_instantiated_again) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = suite_create_graph(context, true);
    capture_affine(context, graph, x, 3, 1);
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_graph_instantiate(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 0, 13);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 1);
    assert_int_equal(stats.replay_count, 2);
    void *template_handle = NULL;
    void *executable_handle = NULL;
    if (!context->is_cuda) {
        ASSERT_STATUS(rondo_graph_get_native(graph, &template_handle, &executable_handle),
                      UNSUPPORTED);
    } else {
        ASSERT_OK(rondo_graph_get_native(graph, &template_handle, &executable_handle));
        assert_non_null(template_handle);
        assert_non_null(executable_handle);
    }
    rondo_graph_destroy(graph);
}
