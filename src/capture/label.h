// capture/label.h — label scopes, and how recorded nodes come by their labels.
//
// A stream keeps the path of its open scopes. Outside of captures that is all. Inside, each push
// and pop writes down where the stream's part of the capture stands: the nodes that the next one
// will depend on, and how many nodes there are. When the template is there, the nodes between two
// such points of one stream get the path that was open between them:
//
//   stream A   a1  push x  a2 ------------- b joined  a3  pop x        a2, a3: "x"
//   stream B               \  push y  b1  pop y  b2  /                 b1: "x/y", b2: "x"
//
// The walk goes from the later point back over predecessors, and stops at the earlier point and at
// nodes that have a label; so each node is met once. It also stops at nodes that are older than the
// earlier point, which keeps out work of a stream that forked long before and joined inside. Their
// age is their index, wherever indices follow the order of recording. CUDA 13.0 on an H200 keeps
// that order but does not promise it, so it is checked for each capture. The age of the earlier
// point is the number of nodes there were; in captures too large to be counted at each scope it is
// the age of the stream's own latest node, which lets in what another stream recorded just before
// the scope.
//
// A body of a conditional node is a capture of its own inside, and what is known of its labels a
// part of its own. A part knows its nodes' paths from its own beginning on; what stands before them
// is the path of the node that holds it:
//
//   part of the graph           push outer   [if] ------- pop          [if]: "outer"
//   part of the body                          push inner  n  pop       n: "inner", so "outer/inner"
//
// A graph that is recorded into another brings its part along, unchanged and not copied: both
// graphs share who takes part in them, and the labels are one of those. Whether the driver's copy
// of the template lists its nodes in the order of the original is not documented, so the two are
// compared; where they differ, the nodes inside carry the label of the node that holds them, and no
// more.
//
// A part is made when there is something to say: a push inside the body, or a recorded graph with
// labels. So a capture without labels costs nothing.
#ifndef RONDO_BACKEND_LABEL_H
#define RONDO_BACKEND_LABEL_H

#include "capture/capture.h"
#include "rondo/label.h"

// The scopes open on a stream. NULL until the first push.
typedef struct rondo__label_stack rondo__label_stack;

// What is known of the nodes of one template: a graph, a body, or what was recorded into them.
typedef struct rondo__label_part rondo__label_part;

// ---- label.c: streams -------------------------------------------------------------------------

void rondo__label_stack_destroy(rondo__label_stack *stack);  // NULL is fine

// How many scopes are open; closes those above `depth`.
size_t rondo__label_get_depth(const rondo_stream *stream);
void rondo__label_close_above(rondo_stream *stream, size_t depth);

// `body` is about to record a body of a conditional node on `parent`; `node_path` (NULL: empty) was
// open there when the node was recorded. The path on `body` begins with what is open on `parent`.
//
// Errors:    NO_MEMORY.
// Threads:   the thread that uses both streams.
RONDO_MUST_USE rondo_status rondo__label_inherit(rondo_stream *body, const rondo_stream *parent,
                                                 const char *node_path);
// How much of the stream's path it has inherited.
size_t rondo__label_get_inherited_length(const rondo_stream *stream);
// The stream's path behind that of the conditional node whose body it records.
const char *rondo__label_get_own_path(const rondo_stream *stream);

// ---- label_set.c: captures --------------------------------------------------------------------

// A capture began on its origin, where scopes may be open.
//
// Errors:    NO_MEMORY.
// Threads:   the thread that begins the capture.
RONDO_MUST_USE rondo_status rondo__label_begin(rondo__capture *capture);

// The path of the stream is about to change, in `call`.
//
// Errors:    NO_MEMORY, DRIVER.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__label_note_change(rondo_stream *stream, const char *call);

// The body with this id began on `body`, which has inherited its path.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per capture.
RONDO_MUST_USE rondo_status rondo__label_enter_body(rondo__capture *capture, uint64_t id,
                                                    rondo_stream *body);

// A graph with these participants was just recorded on `stream`, which records into the capture or
// body with this id: the node is the stream's whole frontier. `source` is the graph's template.
//
// Errors:    NO_MEMORY, DRIVER.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__label_note_child(rondo__capture *capture, uint64_t id,
                                                    rondo_stream *stream,
                                                    const rondo__participant *participants,
                                                    rondo__template *source);

// Finds the label of each node of the template that the capture gave, and of the nodes inside its
// nodes, when scopes were used in it.
//
// Errors:    NO_MEMORY, DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__label_resolve(rondo__participant *participants,
                                                 rondo__template *template_);

// ---- label_set.c: after the capture -----------------------------------------------------------

// The part of a graph by its participants; NULL when it has no labels. Borrowed from them.
const rondo__label_part *rondo__label_get_part(const rondo__participant *participants);
// The part of the graph inside a node, by the node's index when the capture ended; `branch` is 0
// for a recorded graph. NULL when there is none, or `part` is NULL.
const rondo__label_part *rondo__label_get_inner(const rondo__label_part *part, size_t index,
                                                uint32_t branch);
// The path of a node from the part's beginning on; "" when it has none, or `part` is NULL.
//
// Returns:   borrowed from the part.
const char *rondo__label_of_node(const rondo__label_part *part, size_t index);

// ---- label_walk.c -----------------------------------------------------------------------------

// The part of one stream between two points of a capture.
typedef struct rondo__label_segment {
    uint32_t stream_number;
    bool is_open;       // has no beginning in this capture: labels nothing
    size_t previous;    // the segment of the stream before it; SIZE_MAX: begins with the capture
    const char *path;   // open in it
    size_t first_node;  // into the frontier nodes: where it ends
    size_t node_count;  // of them
    size_t recorded_count;  // nodes the capture had at its end; SIZE_MAX: not counted
    size_t prefix;          // segment of another stream that it lies in; SIZE_MAX: none
} rondo__label_segment;

// The segment (an index into `segments`) that each node belongs to, SIZE_MAX for none.
RONDO_MUST_USE rondo_status rondo__label_walk(rondo__template *template_,
                                              rondo__label_segment *segments, size_t segment_count,
                                              const rondo__node_handle *frontier_nodes,
                                              size_t **out_segment_of_node, size_t *out_node_count);

// The indices of nodes by the handles that they had while they were recorded; SIZE_MAX: no such
// node.
//
// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__label_find_nodes(rondo__template *template_,
                                                    const rondo__node_handle *handles, size_t count,
                                                    size_t *out_indices);

// A number that templates have in common whose nodes do the same in the same order: nodes by index,
// edges, and the graphs inside.
//
// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__label_get_shape(rondo__template *template_, uint64_t *out_shape);

#endif  // RONDO_BACKEND_LABEL_H
