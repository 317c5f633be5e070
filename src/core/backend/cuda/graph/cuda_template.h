// backend/cuda/graph/cuda_template.h — recorded nodes and edges, and what is noted of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_device.h"

// Facts about a conditional node that the driver (before CUDA 13.2) does not tell.
typedef struct rondo__cuda_note rondo__cuda_note;

typedef struct rondo__cuda_template {
    rondo__template head;
    rondo__cu_graph native;
    rondo__cu_graph_node *nodes;  // fetched on first use
    size_t node_count;
    bool has_nodes;
    bool has_only_kernels;  // known once its kinds were counted
    bool takes_memory;      // it has nodes that allocate; known once its kinds were counted
    bool is_plain;          // no kernel has a cluster, or another priority than its stream
    bool is_borrowed;       // the graph inside a node: the driver owns it
    struct rondo__cuda_template *children;  // of the graphs inside its nodes; owned
    struct rondo__cuda_template *next;      // in the list of its parent
    rondo__cuda_note *notes;                // of its conditional nodes and of those inside bodies
    struct rondo__cuda_template *root;      // bodies: the template that has the notes; NULL: itself
} rondo__cuda_template;

struct rondo__cuda_note {
    rondo__cuda_note *next;
    rondo__cu_graph_node node;
    rondo_scope_kind kind;
    const void *predicate;
    uint32_t branch_count;
    uint32_t row_count, row_index;  // as in rondo__node_info
    rondo_scope_kind row_kind;
    rondo__cuda_template bodies[];  // borrowed graphs, to be listed
};

void rondo__cuda_destroy_template(rondo__template *template_);
rondo_status rondo__cuda_count_nodes(rondo__template *template_, size_t *out_count);
rondo_status rondo__cuda_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]);
rondo_status rondo__cuda_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info);
// The same for a node by its handle.
rondo_status rondo__cuda_describe_native(rondo__cuda_device *device, rondo__cu_graph_node node,
                                         rondo__node_info *out_info);
// Adds what only the notes say of a conditional node.
void rondo__cuda_describe_conditional(rondo__cuda_note *notes, rondo__cu_graph_node node,
                                      rondo__node_info *info);
rondo_status rondo__cuda_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count);
rondo_status rondo__cuda_list_edge_kinds(rondo__template *template_, uint8_t *out_kinds,
                                         size_t capacity, size_t *out_count);
// Fetches the node handles of the template unless the kept ones are still as many as it has.
rondo_status rondo__cuda_fetch_nodes(rondo__cuda_template *recorded);
void *rondo__cuda_get_native_template(rondo__template *template_);
rondo_status rondo__cuda_get_child(rondo__template *template_, size_t index,
                                   rondo__template **out_child);
rondo_status rondo__cuda_get_body(rondo__template *template_, size_t index, uint32_t branch,
                                  rondo__template **out_body);
rondo_status rondo__cuda_list_handles(rondo__template *template_, rondo__node_handle *handles,
                                      size_t count);
// Frees notes, which belong to a capture and then to its template.
void rondo__cuda_free_notes(rondo__cuda_note *notes);
