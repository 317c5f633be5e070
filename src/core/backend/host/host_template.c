// backend/host/host_template.c — recorded nodes and edges.
// SPDX-License-Identifier: Apache-2.0

#include "backend/host/host_template.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

enum { CHUNK_BYTES = 16 * 1024, ARGUMENT_ALIGNMENT = 16 };

struct rondo__host_chunk {
    rondo__host_chunk *next;
    size_t used;
    size_t capacity;
    _Alignas(16) unsigned char bytes[];
};

static void destroy_branches(rondo__host_branches *branches) {
    if (branches == NULL) {
        return;
    }
    for (uint32_t i = 0; i < branches->count; ++i) {
        if (branches->bodies[i] != NULL) {
            rondo__host_destroy_template(&branches->bodies[i]->head);
        }
    }
    rondo__free(branches);
}

static const char *get_branches_name(const rondo__host_branches *branches) {
    static const char *const names[] = {
        [RONDO_SCOPE_IF] = "if",
        [RONDO_SCOPE_IF_ELSE] = "if_else",
        [RONDO_SCOPE_SWITCH] = "switch",
        [RONDO_SCOPE_WHILE] = "while",
    };
    return names[branches->kind];
}

// Bytes that stay where they are as long as the template lives.
static void *reserve_bytes(rondo__host_template *recorded, size_t bytes) {
    size_t wanted = rondo__align_up(bytes, (size_t)ARGUMENT_ALIGNMENT);
    rondo__host_chunk *chunk = recorded->chunks;
    if (chunk == NULL || chunk->capacity - chunk->used < wanted) {
        size_t capacity = wanted > CHUNK_BYTES ? wanted : CHUNK_BYTES;
        chunk = rondo__malloc_aligned(sizeof *chunk + capacity, ARGUMENT_ALIGNMENT);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->next = recorded->chunks;
        chunk->used = 0;
        chunk->capacity = capacity;
        recorded->chunks = chunk;
    }
    void *address = chunk->bytes + chunk->used;
    chunk->used += wanted;
    return address;
}

rondo_status rondo__host_template_append(rondo__host_template *recorded,
                                         const rondo__host_node *node, const size_t *predecessors,
                                         size_t predecessor_count) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(recorded->nodes, recorded->node_capacity, recorded->node_count + 1);
    RETURN_IF_ERROR(status);
    status = RONDO__ARRAY_RESERVE(recorded->predecessors, recorded->edge_capacity,
                                  recorded->edge_count + predecessor_count);
    RETURN_IF_ERROR(status);

    rondo__host_node copy = *node;
    if (node->argument_bytes > 0) {
        void *arguments = reserve_bytes(recorded, node->argument_bytes);
        if (arguments == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        memcpy(arguments, node->arguments, node->argument_bytes);
        copy.arguments = arguments;
    } else {
        copy.arguments = NULL;
    }
    copy.first_edge = recorded->edge_count;
    copy.edge_count = predecessor_count;
    if (predecessor_count > 0) {
        memcpy(&recorded->predecessors[recorded->edge_count], predecessors,
               predecessor_count * sizeof *predecessors);
    }
    recorded->edge_count += predecessor_count;
    recorded->nodes[recorded->node_count++] = copy;
    return RONDO_STATUS_OK;
}

void rondo__host_destroy_template(rondo__template *template_) {
    rondo__host_template *recorded = (rondo__host_template *)template_;
    for (size_t i = 0; i < recorded->node_count; ++i) {
        if (recorded->nodes[i].kind == RONDO__NODE_CHILD) {
            const rondo__host_child *child = recorded->nodes[i].arguments;
            rondo__host_destroy_template(&child->recorded->head);
        }
    }
    while (recorded->chunks != NULL) {
        rondo__host_chunk *next = recorded->chunks->next;
        rondo__free(recorded->chunks);
        recorded->chunks = next;
    }
    for (size_t i = 0; i < recorded->node_count && !recorded->borrows_branches; ++i) {
        destroy_branches(recorded->nodes[i].branches);
    }
    rondo__free(recorded->nodes);
    rondo__free(recorded->predecessors);
    rondo__free(recorded);
}

rondo_status rondo__host_count_nodes(rondo__template *template_, size_t *out_count) {
    *out_count = ((rondo__host_template *)template_)->node_count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]) {
    const rondo__host_template *recorded = (rondo__host_template *)template_;
    for (size_t i = 0; i < recorded->node_count; ++i) {
        ++counts[recorded->nodes[i].kind];
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info) {
    const rondo__host_template *recorded = (rondo__host_template *)template_;
    if (index >= recorded->node_count) {
        return RONDO_FAIL_AS("rondo_graph_get_node", INVALID,
                             "there is no node %zu, the graph has %zu", index,
                             recorded->node_count);
    }
    const rondo__host_node *node = &recorded->nodes[index];
    rondo__node_info info = {
        .kind = node->kind, .name = node->name, .shared_bytes = node->shared_bytes};
    memcpy(info.grid, node->grid, sizeof info.grid);
    memcpy(info.block, node->block, sizeof info.block);
    if (node->kind == RONDO__NODE_COPY) {
        const rondo__host_copy_arguments *arguments = node->arguments;
        info.copy_kind = arguments->kind;
        info.destination = arguments->destination;
        info.source = arguments->source;
        info.byte_count = arguments->bytes;
        info.width = arguments->bytes;
        info.height = 1;
        info.depth = 1;
    } else if (node->kind == RONDO__NODE_FILL) {
        const rondo__host_fill_arguments *arguments = node->arguments;
        info.destination = arguments->destination;
        info.byte_count = (uint64_t)arguments->count * arguments->element_bytes;
        info.fill_value = arguments->value;
        info.element_bytes = arguments->element_bytes;
        info.width = arguments->count;
        info.height = 1;
    } else if (node->kind == RONDO__NODE_EVENT_RECORD || node->kind == RONDO__NODE_EVENT_WAIT) {
        const rondo__host_external *arguments = node->arguments;
        info.event = arguments->event;
    } else if (node->branches != NULL) {
        info.name = get_branches_name(node->branches);
        info.predicate = node->branches->predicate;
        info.branch_count = node->branches->count;
    }
    *out_info = info;
    return RONDO_STATUS_OK;
}

void rondo__host_label_node(rondo__template *template_, size_t index, const char *label) {
    rondo__host_template *recorded = (rondo__host_template *)template_;
    if (index < recorded->node_count) {
        recorded->nodes[index].label = label;
    }
}

rondo_status rondo__host_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data) {
    const rondo__host_node *node = &((const rondo__host_template *)template_)->nodes[index];
    return node->argument_bytes > 0 ? visit(user_data, node->arguments, node->argument_bytes)
                                    : RONDO_STATUS_OK;
}

rondo_status rondo__host_read_attributes(rondo__template *template_, size_t index,
                                         rondo__launch_attributes *out_attributes) {
    *out_attributes = ((const rondo__host_template *)template_)->nodes[index].attributes;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count) {
    const rondo__host_template *recorded = (rondo__host_template *)template_;
    size_t count = 0;
    for (size_t i = 0; i < recorded->node_count; ++i) {
        const rondo__host_node *node = &recorded->nodes[i];
        for (size_t edge = 0; edge < node->edge_count; ++edge, ++count) {
            if (out_pairs != NULL && count < capacity) {
                out_pairs[2 * count] = recorded->predecessors[node->first_edge + edge];
                out_pairs[2 * count + 1] = i;
            }
        }
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

// ---- conditional nodes ------------------------------------------------------------------------

rondo_status rondo__host_get_body(rondo__template *template_, size_t index, uint32_t branch,
                                  rondo__template **out_body) {
    const rondo__host_template *recorded = (const rondo__host_template *)template_;
    const rondo__host_branches *branches =
        index < recorded->node_count ? recorded->nodes[index].branches : NULL;
    bool is_there =
        branches != NULL && branch < branches->count && branches->bodies[branch] != NULL;
    *out_body = is_there ? &branches->bodies[branch]->head : NULL;
    return RONDO_STATUS_OK;
}
