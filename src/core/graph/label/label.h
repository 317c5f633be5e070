// graph/label/label.h — how recorded nodes come by their labels.
//
// A stream keeps the path of its open scopes (capture/label_stack.h). While it records, each push
// and pop is a point: the nodes that the stream's next one will depend on, and how many nodes there
// are. Between two points of a stream lies a segment, in which one path was open. When the template
// is there, a node lies in the segment that ends at the first point of a stream that comes after
// it:
//
//   stream A   a1  push x  a2 ------------- b joined  a3  pop x        a2, a3: "x"
//   stream B               \  push y  b1  pop y  b2  /                 b1: "x/y", b2: "x"
//
// For b1 that is "y" on B, and "x" on A by the join. The scope opened last counts; scopes that were
// opened before it and closed after it come before it in the path. Edges alone decide, so work that
// Rondo did not record counts, too. For each stream with scopes all edges are gone over once, from
// the latest node to the first.
//
// A forked stream's segment labels nothing where no scope of its own was open, nor before the
// stream's first point of the capture, because it may have forked anywhere. And no segment labels a
// node that is older than itself: that was recorded before the scope, though it joined inside. A
// node's age is its index, wherever indices follow the order of recording, which CUDA does not
// promise and which is checked. The age of a point is the number of nodes there were; in captures
// too large to be counted at each scope that of the stream's own latest node, which lets in what
// another stream recorded just before the scope.
//
// What cannot be told: edges do not say which of two streams recorded a node that both wait for. So
// where a forked stream keeps a scope open and waits for another one again, a node of that other
// one may get the scope; and work that never joins a stream with scopes inside them has no label.
//
// A conditional node's body is a capture of its own inside; its nodes carry the path of the node,
// and behind it what was opened in the body. A recorded graph's nodes carry the path of the node
// around them, and behind it their own, as long as the driver's copy is seen to be one.
//
// Labels are kept when there is something to say: at a push, or a recorded graph that has some. So
// a capture without labels costs nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"

// A capture has begun on a stream where scopes may be open.
//
// Errors:    NO_MEMORY.
// Threads:   the thread that begins the capture.
RONDO_MUST_USE rondo_status rondo__label_join(rondo__capture *capture);

// A graph with these participants was just recorded on `stream`, which records into the capture or
// body with this id: the node is the stream's whole frontier. `source` is the graph's template.
//
// Errors:    NO_MEMORY, DRIVER.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__label_note_child(rondo__capture *capture, uint64_t id,
                                                    rondo_stream *stream,
                                                    const rondo__participant *participants,
                                                    rondo__template *source);

// The capture has ended and gave this template: finds the label of each node.
//
// Errors:    NO_MEMORY, STATE, DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__label_resolve(rondo__capture *capture,
                                                 rondo__template *recorded);

// The whole path of a node, by its id (graph/template.h), or, for a node of the graph itself, by
// its index; both as they were when the capture ended. "" when it has none.
//
// Returns:   borrowed from the participants.
const char *rondo__label_of_node(const rondo__participant *participants, size_t id);
const char *rondo__label_of_index(const rondo__participant *participants, size_t index);

// A number of these labels that no others of the process have; 0: there are none.
uint64_t rondo__label_get_number(const rondo__participant *participants);

// Shows the label of each node and where that is: `level` counts the levels that the walk of the
// template (graph/template.h) enters, the graph itself being 0.
void rondo__label_visit(const rondo__participant *participants,
                        void (*visit)(void *user_data, uint32_t level, uint32_t index,
                                      const char *label),
                        void *user_data);

// ---- lines (graph/line.h) ---------------------------------------------------------------------

typedef struct rondo__label_line rondo__label_line;

// Errors:    NO_MEMORY, as the next two.
RONDO_MUST_USE rondo_status rondo__label_line_create(rondo__label_line **out_line);
// The nodes from here on lie in the scopes that are open on the stream and, in those, in `text`.
RONDO_MUST_USE rondo_status rondo__label_line_open(rondo__label_line *line,
                                                   const rondo_stream *stream, const char *text);
// One node more.
RONDO_MUST_USE rondo_status rondo__label_line_add(rondo__label_line *line);
// The labels of the template, which holds these nodes in their order, as the participant that
// rondo__label_resolve leaves.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__label_line_end(rondo__label_line *line,
                                                  rondo__template *recorded,
                                                  rondo__participant **out_participant);
void rondo__label_line_destroy(rondo__label_line *line);  // NULL is fine
