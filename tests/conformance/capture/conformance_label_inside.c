// Label scopes and graphs inside nodes: bodies of conditional nodes, graphs recorded into others.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "conformance/capture/label_support.h"
#include "conformance/control/inside_support.h"
#include "rondo/inspect.h"
#include "rondo/update.h"

// ---- bodies -----------------------------------------------------------------------------------

SUITE_CASE(test_conformance_label_inside__bodies_carry_outer_and_inner) {
    suite_need(context, RONDO_FEATURE_IF_ELSE);
    label_scene s = label_create_scene(context);
    label_begin(&s);
    LABEL_WORK(&s, s.a, "");
    ASSERT_OK(rondo_label_push(s.a, "solver"));
    rondo_scope choice = label_begin_scope(&s, s.a, RONDO_SCOPE_IF_ELSE, 0);
    rondo_stream *body = label_enter(choice, 0);
    assert_string_equal(rondo_label_get_path(body), "solver");
    LABEL_WORK(&s, body, "solver");
    ASSERT_OK(rondo_label_push(body, "update"));
    assert_string_equal(rondo_label_get_path(body), "solver/update");
    LABEL_WORK(&s, body, "solver/update");
    ASSERT_OK(rondo_label_push(body, "x"));
    LABEL_WORK(&s, body, "solver/update/x");
    ASSERT_OK(rondo_label_pop(body));
    LABEL_WORK(&s, body, "solver/update");
    ASSERT_OK(rondo_label_pop(body));
    // What was opened outside is not closed inside.
    ASSERT_STATUS(rondo_label_pop(body), STATE);
    LABEL_WORK(&s, body, "solver");
    ASSERT_OK(rondo_scope_leave(choice));
    body = label_enter(choice, 1);
    ASSERT_OK(rondo_label_push(body, "retry"));
    LABEL_WORK(&s, body, "solver/retry");
    ASSERT_OK(rondo_label_pop(body));
    label_leave_and_end(choice);
    uint32_t behind = LABEL_WORK(&s, s.a, "solver");
    ASSERT_OK(rondo_label_pop(s.a));
    // Only inside: nothing is open outside, and a label that has the same name as one above.
    choice = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    body = label_enter(choice, 0);
    LABEL_WORK(&s, body, "");
    ASSERT_OK(rondo_label_push(body, "solver"));
    LABEL_WORK(&s, body, "solver");
    ASSERT_OK(rondo_label_pop(body));
    label_leave_and_end(choice);
    LABEL_WORK(&s, s.a, "");
    label_end_dumped(&s);
    ASSERT_LABEL(&s, behind, "solver");
    label_destroy_scene(&s);
}

SUITE_CASE(test_conformance_label_inside__bodies_nest) {
    suite_need(context, RONDO_FEATURE_SWITCH);
    label_scene s = label_create_scene(context);
    label_begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "a"));
    rondo_scope choice = label_begin_scope(&s, s.a, RONDO_SCOPE_SWITCH, 4);
    rondo_stream *first = label_enter(choice, 1);
    // A body without labels of its own, around one that has some.
    LABEL_WORK(&s, first, "a");
    rondo_scope loop = label_begin_scope(&s, first, RONDO_SCOPE_WHILE, 0);
    rondo_stream *second = label_enter(loop, 0);
    ASSERT_OK(rondo_label_push(second, "b"));
    LABEL_WORK(&s, second, "a/b");
    rondo_scope branch = label_begin_scope(&s, second, RONDO_SCOPE_IF_ELSE, 0);
    rondo_stream *third = label_enter(branch, 1);
    LABEL_WORK(&s, third, "a/b");
    ASSERT_OK(rondo_label_push(third, "c"));
    assert_string_equal(rondo_label_get_path(third), "a/b/c");
    LABEL_WORK(&s, third, "a/b/c");
    ASSERT_OK(rondo_label_pop(third));
    label_leave_and_end(branch);
    LABEL_WORK(&s, second, "a/b");
    ASSERT_OK(rondo_label_pop(second));
    LABEL_WORK(&s, second, "a");
    label_leave_and_end(loop);
    ASSERT_OK(rondo_scope_leave(choice));
    rondo_stream *last = label_enter(choice, 3);
    ASSERT_OK(rondo_label_push(last, "d"));
    LABEL_WORK(&s, last, "a/d");
    ASSERT_OK(rondo_label_pop(last));
    label_leave_and_end(choice);
    ASSERT_OK(rondo_label_pop(s.a));
    label_end_dumped(&s);
    label_destroy_scene(&s);
}

// Deeper than anybody nests by hand.
SUITE_CASE(test_conformance_label_inside__any_depth) {
    enum { DEPTH = 24 };
    const int depth = suite_rounds(DEPTH, 3);
    suite_need(context, RONDO_FEATURE_IF);
    label_scene s = label_create_scene(context);
    rondo_scope scopes[DEPTH];
    uint32_t words[DEPTH];
    // Not made executable: what a driver says of that depth is another matter.
    rondo_graph *graph = inside_create_deferred(context);
    inside_begin(graph, s.a);
    rondo_stream *stream = s.a;
    for (int i = 0; i < depth; ++i) {
        scopes[i] = label_begin_scope(&s, stream, RONDO_SCOPE_IF, 0);
        stream = label_enter(scopes[i], 0);
        ASSERT_OK(rondo_label_push(stream, "l"));
        words[i] = label_work(&s, stream);
    }
    for (int i = depth; i-- > 0;) {
        label_leave_and_end(scopes[i]);
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
    char path[2 * DEPTH + 1] = "";
    for (int i = 0; i < depth; ++i) {
        strcat(path, i > 0 ? "/l" : "l");
        ASSERT_DUMPED_NTH(&s, graph, words[i], 0, path);
    }
    rondo_graph_destroy(graph);
    label_destroy_scene(&s);
}

// Streams forked inside a body, with and without scopes of their own.
SUITE_CASE(test_conformance_label_inside__branches_of_a_body) {
    suite_need(context, RONDO_FEATURE_IF);
    label_scene s = label_create_scene(context);
    label_begin(&s);
    // The scope lies on a stream that was forked inside a label, and has none of its own.
    ASSERT_OK(rondo_label_push(s.a, "model"));
    label_order(&s, s.a, s.b, 0);
    LABEL_WORK(&s, s.a, "model");
    rondo_scope scope = label_begin_scope(&s, s.b, RONDO_SCOPE_IF, 0);
    rondo_stream *body = label_enter(scope, 0);
    LABEL_WORK(&s, body, "model");
    ASSERT_OK(rondo_label_push(body, "x"));
    label_order(&s, body, s.c, 1);
    LABEL_WORK(&s, s.c, "model/x");
    ASSERT_OK(rondo_label_push(s.c, "y"));
    LABEL_WORK(&s, s.c, "model/x/y");
    ASSERT_OK(rondo_label_pop(s.c));
    LABEL_WORK(&s, body, "model/x");
    label_order(&s, s.c, body, 2);
    LABEL_WORK(&s, body, "model/x");
    ASSERT_OK(rondo_label_pop(body));
    LABEL_WORK(&s, body, "model");
    label_leave_and_end(scope);
    LABEL_WORK(&s, s.b, "model");
    label_order(&s, s.b, s.a, 3);
    ASSERT_OK(rondo_label_pop(s.a));
    LABEL_WORK(&s, s.a, "");
    // The stream that was in the body is outside now.
    label_order(&s, s.a, s.c, 4);
    ASSERT_OK(rondo_label_push(s.c, "z"));
    LABEL_WORK(&s, s.c, "z");
    ASSERT_OK(rondo_label_pop(s.c));
    label_order(&s, s.c, s.a, 5);
    label_end_dumped(&s);
    label_destroy_scene(&s);
}

// A scope that is opened on the stream outside, while only bodies can be recorded, is theirs.
SUITE_CASE(test_conformance_label_inside__scopes_around_one_body) {
    suite_need(context, RONDO_FEATURE_IF_ELSE);
    label_scene s = label_create_scene(context);
    label_begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "layer"));
    rondo_scope scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF_ELSE, 0);
    ASSERT_OK(rondo_label_push(s.a, "then"));
    rondo_stream *body = label_enter(scope, 0);
    assert_string_equal(rondo_label_get_path(body), "layer/then");
    LABEL_WORK(&s, body, "layer/then");
    ASSERT_OK(rondo_label_push(body, "x"));
    LABEL_WORK(&s, body, "layer/then/x");
    // Left open: it ends with the body.
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_label_pop(s.a));
    body = label_enter(scope, 1);
    assert_string_equal(rondo_label_get_path(body), "layer");
    LABEL_WORK(&s, body, "layer");
    label_leave_and_end(scope);
    ASSERT_OK(rondo_label_pop(s.a));
    label_end_dumped(&s);
    label_destroy_scene(&s);
}

typedef struct labelled_body {
    label_scene *scene;
    const char *path;  // expected inside
    uint32_t word;
} labelled_body;

static rondo_status run_labelled_body(rondo_stream *stream, void *user_data) {
    labelled_body *body = user_data;
    ASSERT_OK(rondo_label_push(stream, "inner"));
    assert_string_equal(rondo_label_get_path(stream), body->path);
    body->word = label_work(body->scene, stream);
    ASSERT_OK(rondo_stream_fill(stream, body->scene->x + LABEL_WORDS - 1, 0, 4, 1));
    return rondo_label_pop(stream);
}

// The path is the same whether the function runs or is recorded.
SUITE_CASE(test_conformance_label_inside__functions_as_bodies) {
    suite_need(context, RONDO_FEATURE_SWITCH);
    label_scene s = label_create_scene(context);
    labelled_body body = {.scene = &s, .path = "outer/inner"};
    const rondo_body_function bodies[] = {NULL, run_labelled_body};
    uint32_t *flag = s.x + LABEL_WORDS - 1;
    uint32_t words[4];
    for (int is_captured = 0; is_captured < 2; ++is_captured) {
        suite_set(context, flag, 1, 1);
        if (is_captured) {
            label_begin(&s);
        }
        ASSERT_OK(rondo_label_push(s.a, "outer"));
        ASSERT_OK(rondo_control_while(s.a, flag, run_labelled_body, &body));
        words[0] = body.word;
        ASSERT_OK(rondo_control_if(s.a, flag, run_labelled_body, run_labelled_body, &body));
        words[1] = body.word;
        ASSERT_OK(rondo_control_switch(s.a, flag, bodies, 2, &body));
        words[2] = body.word;
        ASSERT_OK(rondo_label_pop(s.a));
        body.path = "inner";
        ASSERT_OK(rondo_control_if(s.a, flag, NULL, run_labelled_body, &body));
        words[3] = body.word;
        body.path = "outer/inner";
        if (!is_captured) {
            ASSERT_OK(rondo_stream_synchronize(s.a));  // the flag is set by another stream
        }
    }
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    for (int i = 0; i < 3; ++i) {
        ASSERT_DUMPED(&s, words[i], "outer/inner");
    }
    ASSERT_DUMPED(&s, words[3], "inner");
    ASSERT_OK(rondo_graph_replay(s.graph, s.a));
    ASSERT_OK(rondo_stream_synchronize(s.a));
    ASSERT_VALUE(context, s.x, words[3], words[3]);
    label_destroy_scene(&s);
}

// Cuts the object of the nth node that has `part`, from its kind to what stands behind it.
static void cut_node(const char *bytes, const char *part, int nth, char *out_node,
                     size_t capacity) {
    const char *found = strstr(bytes, part);
    while (found != NULL && nth-- > 0) {
        found = strstr(found + 1, part);
    }
    assert_non_null(found);
    size_t length = strcspn(found, "}");
    assert_true(length < capacity);
    memcpy(out_node, found, length);
    out_node[length] = '\0';
}

// A dump says of a node inside a body what it says of one outside.
SUITE_CASE(test_conformance_label_inside__bodies_show_every_field) {
    suite_need(context, RONDO_FEATURE_IF);
    label_scene s = label_create_scene(context);
    label_begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "same"));
    rondo_stream *stream = s.a;
    rondo_scope scope = {0};
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(rondo_stream_fill(stream, s.x, 0x55, 2, 100));
        ASSERT_OK(suite_affine(context, stream, s.x, 300, 2, 1));
        ASSERT_OK(rondo_stream_copy(stream, s.x + 500, s.x, 1200, RONDO_COPY_DEVICE_TO_DEVICE));
        rondo_scope inner = label_begin_scope(&s, stream, RONDO_SCOPE_IF, 0);
        ASSERT_OK(rondo_scope_end(inner));
        if (i == 0) {
            scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
            stream = label_enter(scope, 0);
        }
    }
    label_leave_and_end(scope);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    static suite_text text;
    text = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(s.graph, RONDO_TEXT_JSON, suite_append_text, &text));
    static const char *const parts[] = {
        "\"kind\": \"memset\"",
        "\"kind\": \"kernel\", \"name\": \"affine\"",
        "\"kind\": \"memcpy\"",
        "\"kind\": \"conditional\"",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        // The second conditional node outside is the one with the body.
        int nth = i == 3 ? 2 : 1;
        char outside[512];
        char inside[512];
        cut_node(text.bytes, parts[i], 0, outside, sizeof outside);
        cut_node(text.bytes, parts[i], nth, inside, sizeof inside);
        assert_string_equal(inside, outside);
        assert_non_null(strstr(inside, "\"label\": \"same\""));
    }
    label_destroy_scene(&s);
}

typedef struct large_text {
    size_t length;
    char bytes[1 << 20];
} large_text;

static bool append_large(void *user_data, const char *bytes, size_t count) {
    large_text *text = user_data;
    assert_true(count < sizeof text->bytes - text->length);
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    return true;
}

// Three words for each layer, in the order of recording.
static void check_layers(label_scene *s, int layer_count) {
    static large_text text;
    text.length = 0;
    ASSERT_OK(rondo_graph_dump(s->graph, RONDO_TEXT_JSON, append_large, &text));
    text.bytes[text.length] = '\0';
    const char *at = text.bytes;
    for (int i = 0; i < 3 * layer_count; ++i) {
        char wanted[128];
        snprintf(wanted, sizeof wanted,
                 "\"destination\": \"0x%" PRIxPTR "\", \"label\": \"layer%d\"}",
                 (uintptr_t)(s->x + i), i / 3);
        at = strstr(at, wanted);
        if (at == NULL) {
            fail_msg("no %s in its place", wanted);
        }
    }
}

// More nodes in a body than are counted at each scope.
SUITE_CASE(test_conformance_label_inside__large_bodies) {
    suite_need(context, RONDO_FEATURE_IF);
    const int layer_count = suite_rounds(400, 4);
    const size_t ballast = (size_t)suite_rounds(0, 1030);
    label_scene s = label_create_scene(context);
    label_begin(&s);
    rondo_scope scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    rondo_stream *body = label_enter(scope, 0);
    for (size_t i = 0; i < ballast; ++i) {
        ASSERT_OK(suite_affine(context, body, s.x, 1, 1, 0));
    }
    for (int layer = 0; layer < layer_count; ++layer) {
        char name[32];
        snprintf(name, sizeof name, "layer%d", layer);
        ASSERT_OK(rondo_label_push(body, name));
        for (int i = 0; i < 3; ++i) {
            (void)label_work(&s, body);
        }
        ASSERT_OK(rondo_label_pop(body));
    }
    label_leave_and_end(scope);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    if (!suite_is_swept) {  // where each node that is described would be a point
        check_layers(&s, layer_count);
    }
    label_destroy_scene(&s);
}

// ---- recorded graphs --------------------------------------------------------------------------

// Records a node without and one with a label into a graph of its own; the words stay.
static rondo_graph *capture_labelled(label_scene *s, const char *label, uint32_t words[2]) {
    rondo_graph *graph = inside_create_deferred(s->context);
    inside_begin(graph, s->a);
    words[0] = label_work(s, s->a);
    ASSERT_OK(rondo_label_push(s->a, label));
    words[1] = label_work(s, s->a);
    ASSERT_OK(rondo_label_pop(s->a));
    ASSERT_OK(rondo_graph_capture_end(graph));
    return graph;
}

SUITE_CASE(test_conformance_label_inside__a_recorded_graph_brings_its_labels) {
    suite_need_children(context);
    label_scene s = label_create_scene(context);
    uint32_t words[2];
    uint32_t more[2];
    rondo_graph *inner = capture_labelled(&s, "gemm", words);
    rondo_graph *middle = inside_create_deferred(context);
    inside_begin(middle, s.a);
    more[0] = label_work(&s, s.a);
    ASSERT_OK(rondo_label_push(s.a, "block"));
    ASSERT_OK(rondo_stream_add_graph(s.a, inner));
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_stream_add_graph(s.a, inner));
    more[1] = label_work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(middle));
    ASSERT_DUMPED_NTH(&s, middle, words[0], 0, "block");
    ASSERT_DUMPED_NTH(&s, middle, words[1], 0, "block/gemm");
    ASSERT_DUMPED_NTH(&s, middle, words[0], 1, "");
    ASSERT_DUMPED_NTH(&s, middle, words[1], 1, "gemm");
    // They outlive the graph that they came with, and go with a graph that takes over another.
    rondo_graph_destroy(inner);
    rondo_graph *outer = inside_create_deferred(context);
    inside_begin(outer, s.a);
    ASSERT_OK(rondo_stream_add_graph(s.a, middle));
    ASSERT_OK(rondo_label_push(s.a, "model"));
    ASSERT_OK(rondo_stream_add_graph(s.a, middle));
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_graph_capture_end(outer));
    ASSERT_OK(rondo_graph_reset(middle));
    ASSERT_OK(rondo_graph_update(s.graph, outer, NULL));
    rondo_graph_destroy(outer);
    for (int i = 0; i < 2; ++i) {
        const char *model = i == 0 ? "" : "model/";
        char path[64];
        ASSERT_DUMPED_NTH(&s, s.graph, more[0], i, i == 0 ? "" : "model");
        snprintf(path, sizeof path, "%sblock", model);
        ASSERT_DUMPED_NTH(&s, s.graph, words[0], 2 * i, path);
        snprintf(path, sizeof path, "%sblock/gemm", model);
        ASSERT_DUMPED_NTH(&s, s.graph, words[1], 2 * i, path);
        snprintf(path, sizeof path, "%sgemm", model);
        ASSERT_DUMPED_NTH(&s, s.graph, words[1], 2 * i + 1, path);
        ASSERT_DUMPED_NTH(&s, s.graph, more[1], i, i == 0 ? "" : "model");
    }
    ASSERT_OK(rondo_graph_replay(s.graph, s.a));
    ASSERT_OK(rondo_stream_synchronize(s.a));
    ASSERT_VALUE(context, s.x, words[1], words[1]);
    rondo_graph_destroy(middle);
    label_destroy_scene(&s);
}

// Beside each other on several streams, more of them than one, with branches inside.
SUITE_CASE(test_conformance_label_inside__recorded_graphs_with_branches) {
    suite_need_children(context);
    label_scene s = label_create_scene(context);
    rondo_graph *inner = inside_create_deferred(context);
    inside_begin(inner, s.a);
    uint32_t first = label_work(&s, s.a);
    label_order(&s, s.a, s.b, 0);
    ASSERT_OK(rondo_label_push(s.a, "left"));
    ASSERT_OK(rondo_label_push(s.b, "right"));
    uint32_t right = label_work(&s, s.b);
    uint32_t left = label_work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_pop(s.b));
    label_order(&s, s.b, s.a, 1);
    uint32_t last = label_work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(inner));
    rondo_graph *outer = s.graph;
    inside_begin(outer, s.a);
    ASSERT_OK(rondo_label_push(s.a, "both"));
    label_order(&s, s.a, s.b, 2);
    ASSERT_OK(rondo_stream_add_graph(s.a, inner));
    ASSERT_OK(rondo_label_push(s.b, "second"));
    ASSERT_OK(rondo_stream_add_graph(s.b, inner));
    ASSERT_OK(rondo_label_pop(s.b));
    label_order(&s, s.b, s.a, 3);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_graph_capture_end(outer));
    for (int i = 0; i < 2; ++i) {
        const char *prefix = i == 0 ? "both" : "both/second";
        char path[64];
        ASSERT_DUMPED_NTH(&s, outer, first, i, prefix);
        snprintf(path, sizeof path, "%s/left", prefix);
        ASSERT_DUMPED_NTH(&s, outer, left, i, path);
        snprintf(path, sizeof path, "%s/right", prefix);
        ASSERT_DUMPED_NTH(&s, outer, right, i, path);
        ASSERT_DUMPED_NTH(&s, outer, last, i, prefix);
    }
    rondo_graph_destroy(inner);
    label_destroy_scene(&s);
}

SUITE_CASE(test_conformance_label_inside__a_graph_recorded_into_a_body) {
    suite_need(context, RONDO_FEATURE_IF);
    label_scene s = label_create_scene(context);
    uint32_t words[2];
    rondo_graph *inner = capture_labelled(&s, "gemm", words);
    inside_begin(s.graph, s.a);
    // In a body that has no label of its own, and in one that has.
    rondo_scope scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    rondo_stream *body = label_enter(scope, 0);
    ASSERT_OK(rondo_stream_add_graph(body, inner));
    label_leave_and_end(scope);
    ASSERT_OK(rondo_label_push(s.a, "outer"));
    scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    body = label_enter(scope, 0);
    ASSERT_OK(rondo_label_push(body, "body"));
    ASSERT_OK(rondo_stream_add_graph(body, inner));
    ASSERT_OK(rondo_label_pop(body));
    label_leave_and_end(scope);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_DUMPED_NTH(&s, s.graph, words[0], 0, "");
    ASSERT_DUMPED_NTH(&s, s.graph, words[1], 0, "gemm");
    ASSERT_DUMPED_NTH(&s, s.graph, words[0], 1, "outer/body");
    ASSERT_DUMPED_NTH(&s, s.graph, words[1], 1, "outer/body/gemm");
    rondo_graph_destroy(inner);
    label_destroy_scene(&s);
}
