// pool/ancestors.h — which recorded nodes come before the position where a stream stands.
//
// A section is a capture or one conditional body in it; the driver's capture id names it. A block
// that one stream of a capture freed may serve another stream once all work on the block comes
// before what that stream records next. The work is named by nodes: those at which the freeing
// stream stood. The other stream's ancestors are a set that only grows, because a stream only moves
// on. Each walk starts at the stream's frontier and stops at known nodes, so each node is walked
// once for each stream that asks.
//
//   parent:  a -- b -- [conditional N] -- c      known at x: a, b (N itself has not finished)
//                        body:  x -- y           known at c: a, b, N, which stands for its body
//
// Nodes of a body are compared as they are inside the body. From outside, the conditional node that
// holds the body stands for them. Cost: 24 bytes a known node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/capture.h"

enum { RONDO__POSITION_NODES = 32 };

// A recorded node, and the section that holds it.
typedef struct rondo__section_node {
    uint64_t section;
    rondo__node_handle node;
} rondo__section_node;

typedef struct rondo__section_node_list {
    rondo__section_node *entries;
    size_t count;
    size_t capacity;
} rondo__section_node_list;

// Where a stream stands, asked once: what it records into, and the nodes that the next one will
// depend on.
typedef struct rondo__position {
    uint64_t section;  // the capture or body; 0: none, a broken one, or the stream is gone
    size_t count;      // of the nodes; where more than fit, they are asked for again when needed
    rondo__node_handle nodes[RONDO__POSITION_NODES];
} rondo__position;

typedef struct rondo__ancestors {
    rondo__section_node *slots;  // open addressing; section 0: empty
    size_t count;
    size_t capacity;   // a power of two, or 0
    bool has_entered;  // the nodes before the body's conditional node are in
    rondo__section_node_list to_walk;
} rondo__ancestors;

// Zeroed is initialised.
void rondo__ancestors_deinit(rondo__ancestors *ancestors);
void rondo__section_nodes_deinit(rondo__section_node_list *list);

// Asks where the tag's stream stands; its failures count as a stream that records nothing.
void rondo__position_ask(rondo__stream_tag *tag, rondo__position *out_position);

// Appends a position of `stream` inside the capture: its nodes, or when a body has recorded nothing
// yet, what comes before the body. Nothing when no work comes before.
//
// Errors:    NO_MEMORY, STATE, DRIVER, LOST.
// Threads:   one at a time for each list.
RONDO_MUST_USE rondo_status rondo__section_nodes_add_position(rondo__section_node_list *list,
                                                              rondo__capture *capture,
                                                              rondo_stream *stream,
                                                              const rondo__position *position);

// Appends the conditional node of a body, which stands for all work in it.
//
// Errors:    NO_MEMORY.
// Threads:   one at a time for each list.
RONDO_MUST_USE rondo_status rondo__section_nodes_add_body(rondo__section_node_list *list,
                                                          const rondo__capture_body *body);

// Adds everything that comes before the position where `stream`, recording in `section`, stands
// now.
//
// Errors:    NO_MEMORY, STATE, DRIVER, LOST; then nothing is known, which is safe.
// Threads:   one at a time for each set.
RONDO_MUST_USE rondo_status rondo__ancestors_extend(rondo__ancestors *ancestors,
                                                    rondo__capture *capture, rondo_stream *stream,
                                                    uint64_t section);

// True when all the nodes are known to come before.
bool rondo__ancestors_hold(const rondo__ancestors *ancestors, rondo__capture *capture,
                           const rondo__section_node *nodes, size_t count);
