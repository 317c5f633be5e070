// pool/arena_graph.h — the graphs of an arena: what takes part in their captures and replays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pool/arena.h"

extern const rondo__participant_type rondo__arena_graph_type;

// The arena among a graph's participants, or NULL.
rondo_arena *rondo__arena_find(const rondo__participant *list);

// Replays that used the memory may be in flight on a stream that cannot be waited for: once the
// graph is gone, no other stream gets the memory before this one can.
void rondo__arena_hold_back(const rondo__participant *list, rondo__stream_tag *stream);

// Takes back freed blocks whose work is done, before a capture of a graph of the arena begins.
void rondo__arena_settle(rondo_arena *arena);

// The capture has begun. A shared arena takes part from the start.
//
// Errors:    NO_MEMORY.
// Threads:   the one that records.
RONDO_MUST_USE rondo_status rondo__arena_join(rondo_arena *arena, rondo__capture *capture);

// A graph that holds a capture may use memory of sharers from now on, by patches: also of pools
// that came to the arena since, and where the arena was its own then.
//
// in_out_graph  the arena graph among the graph's participants; NULL: there is none, and one is
//               made where the order is watched, also before a failure. The caller adds it.
//
// Errors:    NO_MEMORY.
// Threads:   the graph's.
RONDO_MUST_USE rondo_status rondo__arena_join_late(rondo_arena *arena, const char *label,
                                                   rondo__participant **in_out_graph);

// rondo_pool_allocate on a stream that records `capture`, in `section` of it.
//
// Errors:    NO_DEVICE_MEMORY, NO_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__arena_allocate(rondo_pool *pool, rondo_stream *stream,
                                                  rondo__capture *capture, uint64_t section,
                                                  size_t bytes, void **out_address);
