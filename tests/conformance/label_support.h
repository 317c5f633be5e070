// conformance/label_support.h — what the cases on label scopes share.
//
// The nodes of a graph are found by what they fill: node i of a test fills word i.
#ifndef RONDO_TESTS_CONFORMANCE_LABEL_SUPPORT_H
#define RONDO_TESTS_CONFORMANCE_LABEL_SUPPORT_H

#include "conformance.h"
#include "rondo/label.h"

enum { LABEL_WORDS = 8192, LABEL_EVENTS = 6 };

typedef struct label_scene {
    suite_context *context;
    rondo_graph *graph;
    rondo_stream *a;
    rondo_stream *b;
    rondo_stream *c;
    rondo_event *events[LABEL_EVENTS];
    uint32_t *x;
    uint32_t count;  // words filled so far
} label_scene;

label_scene label_create_scene(suite_context *context);
void label_destroy_scene(label_scene *s);
// Begins a capture on stream a, and counts words anew.
void label_begin(label_scene *s);
// Records a node; the word that it fills.
uint32_t label_work(label_scene *s, rondo_stream *stream);
// What `to` records from now on comes after what `from` recorded.
void label_order(label_scene *s, rondo_stream *from, rondo_stream *to, int event);

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

#endif  // RONDO_TESTS_CONFORMANCE_LABEL_SUPPORT_H
