// What the cases on label scopes share.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/capture/label_support.h"
#include "rondo/inspect.h"

#include <inttypes.h>

label_scene label_create_scene(suite_context *context) {
    label_scene s = {.context = context,
                     .graph = suite_create_graph(context, true),
                     .a = suite_create_stream(context),
                     .b = suite_create_stream(context),
                     .c = suite_create_stream(context),
                     .x = suite_allocate(context, RONDO_MEMORY_DEVICE, LABEL_WORDS)};
    for (int i = 0; i < LABEL_EVENTS; ++i) {
        s.events[i] = suite_create_event(context, 0);
    }
    return s;
}

void label_destroy_scene(label_scene *s) {
    rondo_graph_destroy(s->graph);
    for (int i = 0; i < LABEL_EVENTS; ++i) {
        rondo_event_destroy(s->events[i]);
    }
    rondo_stream_destroy(s->c);
    rondo_stream_destroy(s->b);
    rondo_stream_destroy(s->a);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->x);
}

void label_begin(label_scene *s) {
    s->count = 0;
    s->expected_count = 0;
    ASSERT_OK(rondo_graph_capture_begin(s->graph, s->a, RONDO_CAPTURE_THREAD_LOCAL));
}

uint32_t label_work(label_scene *s, rondo_stream *stream) {
    assert_true(s->count < LABEL_WORDS);
    ASSERT_OK(rondo_stream_fill(stream, s->x + s->count, s->count, 4, 1));
    return s->count++;
}

uint32_t label_work_in(label_scene *s, rondo_stream *stream, const char *label, int line) {
    assert_true(s->expected_count < LABEL_EXPECTED_MAX);
    uint32_t word = label_work(s, stream);
    s->expected[s->expected_count++] = (label_expected){word, label, line};
    return word;
}

void label_end(label_scene *s) {
    ASSERT_OK(rondo_graph_capture_end(s->graph));
    for (size_t i = 0; i < s->expected_count; ++i) {
        label_check(s, s->expected[i].word, s->expected[i].label, s->expected[i].line);
    }
}

void label_end_dumped(label_scene *s) {
    ASSERT_OK(rondo_graph_capture_end(s->graph));
    for (size_t i = 0; i < s->expected_count; ++i) {
        label_check_dumped(s, s->graph, s->expected[i].word, 0, s->expected[i].label,
                           s->expected[i].line);
    }
}

rondo_scope label_begin_scope(label_scene *s, rondo_stream *stream, rondo_scope_kind kind,
                              uint32_t branch_count) {
    rondo_scope scope;
    ASSERT_OK(rondo_scope_begin(stream, kind, s->x + LABEL_WORDS - 1, branch_count, &scope));
    return scope;
}

rondo_stream *label_enter(rondo_scope scope, uint32_t branch) {
    rondo_stream *body = NULL;
    ASSERT_OK(rondo_scope_enter(scope, branch, &body));
    return body;
}

void label_leave_and_end(rondo_scope scope) {
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
}

void label_order(label_scene *s, rondo_stream *from, rondo_stream *to, int event) {
    ASSERT_OK(rondo_event_record(s->events[event], from));
    ASSERT_OK(rondo_stream_wait_event(to, s->events[event]));
}

void label_check(label_scene *s, uint32_t word, const char *label, int line) {
    uint64_t count = 0;
    ASSERT_OK(rondo_graph_get_node_count(s->graph, &count));
    // The latest first: in a large graph those are asked for.
    for (uint64_t i = count; i-- > 0;) {
        rondo_graph_node node = {.struct_size = sizeof node};
        ASSERT_OK(rondo_graph_get_node(s->graph, i, &node));
        if (node.kind != RONDO_NODE_FILL || node.destination != s->x + word) {
            continue;
        }
        if (strcmp(node.label, label) != 0) {
            fail_msg("line %d: word %u is labelled \"%s\", not \"%s\"", line, (unsigned)word,
                     node.label, label);
        }
        return;
    }
    fail_msg("line %d: no node fills word %u", line, (unsigned)word);
}

// Behind the nth occurrence of `text`.
static const char *find_behind(const char *bytes, const char *text, int nth) {
    const char *found = strstr(bytes, text);
    while (found != NULL && nth-- > 0) {
        found = strstr(found + 1, text);
    }
    return found != NULL ? found + strlen(text) : NULL;
}

// A fill ends with its address, and then its label, if it has one.
static void check_form(const char *bytes, const char *address, int nth, const char *label,
                       bool is_dot, int line) {
    const char *behind = find_behind(bytes, address, nth);
    if (behind == NULL) {
        fail_msg("line %d: %s is not there %d times in %s", line, address, nth + 1, bytes);
        return;
    }
    char wanted[512];
    if (is_dot) {
        snprintf(wanted, sizeof wanted, "%s%s\"];", label[0] != '\0' ? "\\nin " : "", label);
    } else if (label[0] != '\0') {
        snprintf(wanted, sizeof wanted, ", \"label\": \"%s\"}", label);
    } else {
        snprintf(wanted, sizeof wanted, "}");
    }
    if (strncmp(behind, wanted, strlen(wanted)) != 0) {
        fail_msg("line %d: behind %s stands %.100s..., not %s", line, address, behind, wanted);
    }
}

void label_check_dumped(label_scene *s, rondo_graph *graph, uint32_t word, int nth,
                        const char *label, int line) {
    static suite_text text;
    char address[64];
    text.length = 0;
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_JSON, suite_append_text, &text));
    snprintf(address, sizeof address, "\"destination\": \"0x%" PRIxPTR "\"",
             (uintptr_t)(s->x + word));
    check_form(text.bytes, address, nth, label, false, line);
    text.length = 0;
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_DOT, suite_append_text, &text));
    snprintf(address, sizeof address, "\\nat 0x%" PRIxPTR, (uintptr_t)(s->x + word));
    check_form(text.bytes, address, nth, label, true, line);
}
