// pool/ancestors.h — which recorded nodes come before the place where a stream stands.
//
// A block freed on one branch of a capture may serve another branch once all its work comes before
// what that branch records next. Work is named by marks: the nodes that the freeing stream stood
// at. A branch knows its ancestors as a set that only grows, because a stream only moves on: each
// walk starts at the stream's frontier and stops at nodes that are known, so that over a whole
// capture each node is walked once for each branch that asks.
//
//   parent:  a -- b -- [conditional N] -- c      known at x: a, b (N itself has not finished)
//                        body:  x -- y           known at c: a, b, N, which stands for its body
//
// Nodes of a body are compared inside the body by themselves, from outside as the conditional node
// that holds them. Cost: 24 bytes a known node.
#ifndef RONDO_POOL_ANCESTORS_H
#define RONDO_POOL_ANCESTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/capture.h"

enum { RONDO__POSITION_NODES = 32 };

// A node in the capture, or body, of that id.
typedef struct rondo__mark {
    uint64_t scope;
    rondo__node_handle node;
} rondo__mark;

typedef struct rondo__mark_list {
    rondo__mark *entries;
    size_t count;
    size_t capacity;
} rondo__mark_list;

// Where a stream stands, asked once: what it records into, and the nodes that the next one will
// depend on.
typedef struct rondo__position {
    uint64_t scope;  // the capture or body; 0: none, a broken one, or the stream is gone
    size_t count;    // of the nodes; where more than fit, they are asked for again when needed
    rondo__node_handle nodes[RONDO__POSITION_NODES];
} rondo__position;

typedef struct rondo__ancestors {
    rondo__mark *slots;  // open addressing; scope 0: empty
    size_t count;
    size_t capacity;   // a power of two, or 0
    bool has_entered;  // the nodes before the body's conditional node are in
    rondo__mark_list to_walk;
} rondo__ancestors;

// Zeroed is initialised.
void rondo__ancestors_deinit(rondo__ancestors *ancestors);
void rondo__mark_list_deinit(rondo__mark_list *list);

// Asks where the tag's stream stands; its failures count as a stream that records nothing.
//
// Threads:   safe.
void rondo__position_ask(rondo__stream_tag *tag, rondo__position *out_position);

// Appends a position of `stream` inside the capture: its nodes, or when a body has recorded nothing
// yet, what comes before the body. Nothing when no work comes before.
//
// Errors:    NO_MEMORY, STATE, DRIVER, LOST.
// Threads:   one at a time for each list.
RONDO_MUST_USE rondo_status rondo__marks_add_position(rondo__mark_list *list,
                                                      rondo__capture *capture, rondo_stream *stream,
                                                      const rondo__position *position);

// Appends the conditional node of a body, which stands for all work in it.
//
// Errors:    NO_MEMORY.
// Threads:   one at a time for each list.
RONDO_MUST_USE rondo_status rondo__marks_add_body(rondo__mark_list *list,
                                                  const rondo__capture_body *body);

// Learns everything before the place where `stream`, recording in `scope`, stands now.
//
// Errors:    NO_MEMORY, STATE, DRIVER, LOST; then nothing is known, which is safe.
// Threads:   one at a time for each set.
RONDO_MUST_USE rondo_status rondo__ancestors_extend(rondo__ancestors *ancestors,
                                                    rondo__capture *capture, rondo_stream *stream,
                                                    uint64_t scope);

// True when all marks were found to come before.
bool rondo__ancestors_hold(const rondo__ancestors *ancestors, rondo__capture *capture,
                           const rondo__mark *marks, size_t count);

#endif  // RONDO_POOL_ANCESTORS_H
