// backend/label.h — label scopes, and how recorded nodes come by their labels.
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
// Bodies of conditional nodes are templates of their own; their nodes get no labels.
#ifndef RONDO_BACKEND_LABEL_H
#define RONDO_BACKEND_LABEL_H

#include "backend/capture.h"
#include "rondo/label.h"

// The scopes open on a stream. NULL until the first push.
typedef struct rondo__label_stack rondo__label_stack;

void rondo__label_stack_destroy(rondo__label_stack *stack);  // NULL is fine

// How many scopes are open; closes those above `depth`.
size_t rondo__label_get_depth(const rondo_stream *stream);
void rondo__label_close_above(rondo_stream *stream, size_t depth);

// A capture began on its origin, where scopes may be open.
//
// Errors:    NO_MEMORY.
// Threads:   the thread that begins the capture.
RONDO_MUST_USE rondo_status rondo__label_begin(rondo__capture *capture);

// Finds the label of each node of the template that the capture gave, when scopes were used in it.
//
// Errors:    NO_MEMORY, DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__label_resolve(rondo__participant *participants,
                                                 rondo__template *template_);

// The label of a node by its index when the capture ended; "" when it has none.
//
// Returns:   borrowed as long as the participants live.
const char *rondo__label_of_node(const rondo__participant *participants, size_t index);

// label_walk.c: the segment (an index into `segments`) that each node belongs to, SIZE_MAX for
// none.

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

RONDO_MUST_USE rondo_status rondo__label_walk(rondo__template *template_,
                                              rondo__label_segment *segments, size_t segment_count,
                                              const rondo__node_handle *frontier_nodes,
                                              size_t **out_segment_of_node, size_t *out_node_count);

#endif  // RONDO_BACKEND_LABEL_H
