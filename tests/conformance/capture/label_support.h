// conformance/capture/label_support.h — what the cases on label scopes share.
//
// The nodes of a graph are found by what they fill: node i of a test fills word i. A case says
// where it records a node which label that shall have:
//
//   label_begin(&s);
//   LABEL_WORK(&s, s.a, "");
//   ASSERT_OK(rondo_label_push(s.a, "x"));
//   LABEL_WORK(&s, s.a, "x");
//   ASSERT_OK(rondo_label_pop(s.a));
//   label_end(&s);                             // looks at both
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/conformance.h"
#include "rondo/control.h"
#include "rondo/label.h"

enum { LABEL_WORDS = 8192, LABEL_EVENTS = 6, LABEL_EXPECTED_MAX = 32 };

// What a node that was recorded shall be labelled.
typedef struct label_expected {
    uint32_t word;
    const char *label;
    int line;
} label_expected;

typedef struct label_scene {
    suite_context *context;
    rondo_graph *graph;
    rondo_stream *a;
    rondo_stream *b;
    rondo_stream *c;
    rondo_event *events[LABEL_EVENTS];
    uint32_t *x;
    uint32_t count;  // words filled so far
    label_expected expected[LABEL_EXPECTED_MAX];
    size_t expected_count;
} label_scene;

label_scene label_create_scene(suite_context *context);
void label_destroy_scene(label_scene *s);
// Begins a capture on stream a, counts words anew, and expects nothing yet.
void label_begin(label_scene *s);
// Records a node; the word that it fills.
uint32_t label_work(label_scene *s, rondo_stream *stream);
// The same, and the end of the capture will want this label.
#define LABEL_WORK(scene, stream, label) label_work_in((scene), (stream), (label), __LINE__)
uint32_t label_work_in(label_scene *s, rondo_stream *stream, const char *label, int line);
// Ends the capture, and looks at what was expected: in the list of nodes of the graph itself, or,
// also of nodes inside, in its dumps.
void label_end(label_scene *s);
void label_end_dumped(label_scene *s);
// What `to` records from now on comes after what `from` recorded.
void label_order(label_scene *s, rondo_stream *from, rondo_stream *to, int event);

// Scopes of conditional nodes; their predicate is the last word.
rondo_scope label_begin_scope(label_scene *s, rondo_stream *stream, rondo_scope_kind kind,
                              uint32_t branch_count);
rondo_stream *label_enter(rondo_scope scope, uint32_t branch);
void label_leave_and_end(rondo_scope scope);

// The label of a node of the graph itself, from the list of nodes.
#define ASSERT_LABEL(scene, word, label) label_check((scene), (word), (label), __LINE__)
void label_check(label_scene *s, uint32_t word, const char *label, int line);
// The label of a node anywhere inside the scene's graph, or of the nth (the first is 0) that fills
// the word in another graph: from its dumps, in both forms.
#define ASSERT_DUMPED(scene, word, label) \
    label_check_dumped((scene), (scene)->graph, (word), 0, (label), __LINE__)
#define ASSERT_DUMPED_NTH(scene, graph, word, nth, label) \
    label_check_dumped((scene), (graph), (word), (nth), (label), __LINE__)
void label_check_dumped(label_scene *s, rondo_graph *graph, uint32_t word, int nth,
                        const char *label, int line);
