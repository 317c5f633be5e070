// pool/order.h — in which order the sharers of an arena may be replayed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pool/arena.h"

// The arena graph's part in a replay.
rondo_status rondo__order_prepare_replay(rondo__participant *participant, rondo_stream *stream);
void rondo__order_note_replay(rondo__participant *participant, rondo_stream *stream);
void rondo__order_cancel_replay(rondo__participant *participant);

// ---- with the arena's lock held ---------------------------------------------------------------

// Whether one of two graphs takes in or writes over what the other one leaves behind, or needs.
bool rondo__order_are_tied(const rondo__arena_graph *a, const rondo__arena_graph *b);

// Whether the graph may write some of the output's bytes.
bool rondo__order_writes(const rondo__arena_graph *graph, const rondo__output *output);

// Makes room for one more output of the arena pool. With the pool's lock held, too.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__order_reserve_output(rondo__arena_pool *arena_pool);

// Sorts and merges the ranges that the graph writes, and enters its outputs.
void rondo__order_close_use(rondo__arena_use *use);

// Remembers that the graph imports the output. Without memory the capture will fail. With the
// pool's lock held.
void rondo__order_add_import(rondo__arena_use *use, rondo__output *output);

// Frees the outputs of a use, and removes them from the imports of other graphs.
void rondo__order_forget_outputs(rondo_arena *arena, rondo__arena_use *use);
