// pool/arena_use.h — one graph's blocks of one pool, while its capture is open and at its end.
// arena_graph.c makes and removes uses, arena_use.c fills them. All with the pool's lock held, but
// for rondo__arena_use_allocate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pool/arena.h"

// Where a section stream stood when it freed blocks. Later points come after earlier ones.
typedef struct rondo__free_point {
    uint64_t number;
    size_t first;  // in the section stream's list of nodes
    size_t count;
} rondo__free_point;

// A stream while it records into one section of an open capture.
struct rondo__section_stream {
    rondo_stream *stream;
    rondo__stream_tag *tag;  // retained
    uint64_t section;
    rondo__heap free;  // what it freed; no regions
    rondo__free_point *free_points;
    size_t free_point_count;
    size_t free_point_capacity;
    rondo__section_node_list nodes;  // of the free points, one after the other
    uint64_t last_number;            // of a free point
    rondo__ancestors ancestors;
    rondo__section_stream *next;
};

// rondo_pool_allocate on a stream that records in `section` of the use's capture.
//
// Errors:    NO_DEVICE_MEMORY, NO_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__arena_use_allocate(rondo__arena_use *use, rondo_stream *stream,
                                                      uint64_t section, size_t bytes,
                                                      void **out_address);

// A block of an arena was freed, and is no longer in the table of live blocks.
void rondo__arena_free(rondo_pool *pool, rondo__block *block);

// A stream that records in `section` (0: in none) uses the block.
void rondo__arena_note_user(rondo__block *block, uint64_t section);

// Work in the open capture uses the block. If another graph produces it, this graph imports it.
void rondo__arena_use_note_import(rondo__arena_use *use, const rondo__block *block);

// The capture has ended. Every later capture of the arena may take its free blocks. Its live blocks
// become outputs, or are freed when the capture is undone. Also with the arena's lock held.
void rondo__arena_use_close(rondo__arena_use *use, bool is_undone);

// The use is removed; blocks that are still live stay valid without it.
void rondo__arena_use_forget_blocks(rondo__arena_use *use);
