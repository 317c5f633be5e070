// pool/arena_use.h — one graph's blocks of one pool, while its capture is open and at its end.
// arena.c makes and removes uses, arena_use.c fills them.
#ifndef RONDO_POOL_ARENA_USE_H
#define RONDO_POOL_ARENA_USE_H

#include "pool/arena.h"

// The use of the pool by the capture's graph, made when there is none.
//
// Errors:    NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__arena_get_use(rondo_pool *pool, rondo__capture *capture,
                                                 rondo__arena_use **out_use);

// Whether a graph with memory in the capture's own arena was recorded into the capture.
bool rondo__arena_has_child(rondo__capture *capture);

// Counters.  Threads: safe.
void rondo__arena_count_live(rondo_arena *arena, uint64_t bytes);
void rondo__arena_count_freed(rondo_arena *arena, uint64_t bytes);
void rondo__arena_count_region(rondo_arena *arena, uint64_t bytes);

// The rest with the pool's lock held.

// Keeps the record of an arena block, whose bytes were given back, for the next block.
void rondo__arena_drop_record(rondo_pool *pool, rondo__block *block);

// Work in the open capture uses the block. If another graph produces it, this graph imports it.
void rondo__arena_use_note_import(rondo__arena_use *use, const rondo__block *block);

// The capture has ended. Every later capture of the arena may take its free blocks. Its live blocks
// become outputs, or are freed when the capture is undone. Also with the arena's lock held.
void rondo__arena_use_close(rondo__arena_use *use, bool is_undone);

// The use is removed; blocks that are still live stay valid without it.
void rondo__arena_use_forget_blocks(rondo__arena_use *use);

#endif  // RONDO_POOL_ARENA_USE_H
