// graph/file/memory_nodes.h — memory that nodes of a graph take and give back, for its record.
//
// Two nodes may take memory at one address, the second behind the node that gives the first one's
// back: only the edges tell which of them an address means. So it means the one that a node has
// behind it and that no node between has given back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "graph/template.h"

typedef struct rondo__taken_memory {
    uintptr_t begin;
    uint64_t byte_count;
    size_t taker;        // the node
    size_t number;       // in the record; SIZE_MAX: not there yet
    bool is_given_back;  // by a node that is in the record
    bool has_giver;      // some node gives it back
} rondo__taken_memory;

typedef struct rondo__memory_nodes {
    rondo__taken_memory *list;
    size_t count;
    size_t word_count;   // of a row
    uint64_t *rows;      // two of each node: what it and those before it take, and give back
    uintptr_t *given;    // of each node: the address that it gives back; 0: none
    size_t *given_back;  // of each node: what lies there; SIZE_MAX: nothing that is known
    size_t written;      // how many have a number
} rondo__memory_nodes;

typedef enum rondo__memory_result {
    RONDO__MEMORY_OTHER,     // no node takes memory there
    RONDO__MEMORY_LIVE,      // *out_index
    RONDO__MEMORY_NOT_LIVE,  // *out_index: not yet taken, or given back, where the node stands
} rondo__memory_result;

// Reads the nodes that take memory; there may be none, and then the calls below find nothing.
//
// Errors:    UNSUPPORTED, NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__memory_nodes_init(rondo__template *recorded,
                                                     const rondo__node_info *infos, size_t count,
                                                     rondo__memory_nodes *out_nodes);
void rondo__memory_nodes_deinit(rondo__memory_nodes *nodes);

// Notes what stands behind a node; the nodes that it depends on were noted before.
void rondo__memory_nodes_note(rondo__memory_nodes *nodes, size_t node, const rondo__edge *edges,
                              size_t first_edge, size_t past_edge);

// What the address means for a node. takes_end: the address of the memory's end belongs to it.
rondo__memory_result rondo__memory_nodes_find(const rondo__memory_nodes *nodes, size_t node,
                                              uintptr_t address, bool takes_end, size_t *out_index);
