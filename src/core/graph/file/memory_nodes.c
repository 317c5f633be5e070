// graph/file/memory_nodes.c — see memory_nodes.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph/file/memory_nodes.h"

#include "base/error.h"
#include "base/memory.h"

enum { WORD_BITS = 64 };

static rondo_status read_nodes(rondo__memory_nodes *nodes, rondo__template *recorded,
                               const rondo__node_info *infos, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        rondo__memory_node node;
        nodes->given_back[i] = SIZE_MAX;
        if (!infos[i].is_memory) {
            continue;
        }
        RETURN_IF_ERROR(recorded->device->backend->read_memory_node(recorded, i, &node));
        if (!node.takes) {
            nodes->given[i] = (uintptr_t)node.address;
            continue;
        }
        if (!node.is_plain) {
            return RONDO_FAIL_AS("rondo_graph_save", UNSUPPORTED,
                                 "node %zu (memory): it takes memory that other processes or "
                                 "devices may reach; take it from the device's default pool, or "
                                 "before the capture, as the memory of a symbol",
                                 i);
        }
        nodes->list[nodes->count++] = (rondo__taken_memory){.begin = (uintptr_t)node.address,
                                                            .byte_count = node.byte_count,
                                                            .taker = i,
                                                            .number = SIZE_MAX};
    }
    nodes->word_count = (nodes->count + WORD_BITS - 1) / WORD_BITS;
    nodes->rows = rondo__calloc(2 * count * nodes->word_count + 1, sizeof *nodes->rows);
    return nodes->rows != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

rondo_status rondo__memory_nodes_init(rondo__template *recorded, const rondo__node_info *infos,
                                      size_t count, rondo__memory_nodes *out_nodes) {
    *out_nodes = (rondo__memory_nodes){0};
    size_t memory_count = 0;
    for (size_t i = 0; i < count; ++i) {
        memory_count += infos[i].is_memory;
    }
    if (memory_count == 0 || recorded->device->backend->read_memory_node == NULL) {
        return RONDO_STATUS_OK;
    }
    out_nodes->list = rondo__calloc(memory_count, sizeof *out_nodes->list);
    out_nodes->given = rondo__calloc(count, sizeof *out_nodes->given);
    out_nodes->given_back = rondo__calloc(count, sizeof *out_nodes->given_back);
    return out_nodes->list != NULL && out_nodes->given != NULL && out_nodes->given_back != NULL
               ? read_nodes(out_nodes, recorded, infos, count)
               : RONDO_STATUS_NO_MEMORY;
}

void rondo__memory_nodes_deinit(rondo__memory_nodes *nodes) {
    rondo__free(nodes->list);
    rondo__free(nodes->rows);
    rondo__free(nodes->given);
    rondo__free(nodes->given_back);
    *nodes = (rondo__memory_nodes){0};
}

static uint64_t *get_row(const rondo__memory_nodes *nodes, size_t node) {
    return nodes->rows + 2 * node * nodes->word_count;
}

static void set_bit(uint64_t *row, size_t index) {
    row[index / WORD_BITS] |= UINT64_C(1) << (index % WORD_BITS);
}

static bool has_bit(const uint64_t *row, size_t index) {
    return (row[index / WORD_BITS] >> (index % WORD_BITS) & 1) != 0;
}

void rondo__memory_nodes_note(rondo__memory_nodes *nodes, size_t node, const rondo__edge *edges,
                              size_t first_edge, size_t past_edge) {
    if (nodes->rows == NULL) {
        return;
    }
    uint64_t *row = get_row(nodes, node);
    size_t index = 0;
    for (size_t e = first_edge; e < past_edge; ++e) {
        const uint64_t *before = get_row(nodes, edges[e].from);
        for (size_t i = 0; i < 2 * nodes->word_count; ++i) {
            row[i] |= before[i];
        }
    }
    if (nodes->given[node] != 0 && rondo__memory_nodes_find(nodes, node, nodes->given[node], false,
                                                            &index) == RONDO__MEMORY_LIVE) {
        nodes->given_back[node] = index;
        nodes->list[index].has_giver = true;
        set_bit(row + nodes->word_count, index);
    }
    for (size_t i = 0; i < nodes->count; ++i) {
        if (nodes->list[i].taker == node) {
            set_bit(row, i);
        }
    }
}

rondo__memory_result rondo__memory_nodes_find(const rondo__memory_nodes *nodes, size_t node,
                                              uintptr_t address, bool takes_end,
                                              size_t *out_index) {
    rondo__memory_result result = RONDO__MEMORY_OTHER;
    *out_index = SIZE_MAX;
    for (size_t i = 0; i < nodes->count; ++i) {
        const rondo__taken_memory *memory = &nodes->list[i];
        const uint64_t *row = get_row(nodes, node);
        if (address < memory->begin || address - memory->begin > memory->byte_count ||
            (!takes_end && address - memory->begin == memory->byte_count)) {
            continue;
        }
        if (has_bit(row, i) && !has_bit(row + nodes->word_count, i) && !memory->is_given_back) {
            *out_index = i;
            return RONDO__MEMORY_LIVE;
        }
        result = RONDO__MEMORY_NOT_LIVE;
        *out_index = i;
    }
    return result;
}
