// program/saved/data_blocks.h — the bytes of tensors on their way to a file. Equal bytes are
// written once: programs that share constants still do when they are read, and what a pass computes
// again is the constant that it was.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saved/section_file.h"

enum { RONDO__DATA_ALIGNMENT = 64 };

// Where blocks were seen: by address, or by content. Open addressing, at most half full.
typedef struct rondo__block_map {
    size_t *slots;  // numbers of blocks and one; 0: free
    size_t slot_count;
} rondo__block_map;

typedef struct rondo__data_block {
    const void *bytes;
    size_t byte_count;
    rondo__hash128 sum;
    size_t piece;
} rondo__data_block;

// Zeroed to start. The bytes are borrowed, and stay as they are, until the file is written.
typedef struct rondo__data_blocks {
    rondo__section_piece *pieces;  // each content once
    size_t count, capacity;
    rondo__data_block *blocks;  // each address once
    size_t block_count, block_capacity;
    rondo__block_map by_address, by_content;
    uint64_t byte_count;  // of the section so far
} rondo__data_blocks;

// Where the block lies in the section; a multiple of the alignment.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per object.
RONDO_MUST_USE rondo_status rondo__data_blocks_add(rondo__data_blocks *blocks, const void *bytes,
                                                   size_t byte_count, uint64_t *out_offset);
void rondo__data_blocks_deinit(rondo__data_blocks *blocks);
