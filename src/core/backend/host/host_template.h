// backend/host/host_template.h — recorded nodes and edges.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

typedef struct rondo__host_template rondo__host_template;
typedef struct rondo__host_branches rondo__host_branches;

// ---- what nodes hold as their arguments --------------------------------------------------------

typedef struct rondo__host_copy_arguments {
    void *destination;
    const void *source;
    size_t bytes;
    rondo_copy_kind kind;
} rondo__host_copy_arguments;

typedef struct rondo__host_fill_arguments {
    void *destination;
    size_t count;
    uint32_t value;
    uint32_t element_bytes;
} rondo__host_fill_arguments;

// Arguments of a node that records an external event or waits for one. `serial` is set before each
// run of the program: the number of this record, or of the one to wait for; 0: not set.
typedef struct rondo__host_external {
    struct rondo__host_event *event;  // kept alive by the graph
    uint64_t serial;
    bool is_record;
} rondo__host_external;

// The arguments of a CHILD node: a template of its own.
typedef struct rondo__host_child {
    rondo__host_template *recorded;
} rondo__host_child;

// ---- nodes -------------------------------------------------------------------------------------

// The branches of a recorded conditional node.
struct rondo__host_branches {
    rondo_scope_kind kind;
    const void *predicate;
    uint32_t count;
    rondo__host_template *bodies[];  // NULL: empty
};

// A node to be recorded.
typedef struct rondo__host_node {
    rondo__node_kind kind;
    void (*run)(void *);
    const char *name;
    const char *label;  // whole path of its scopes; NULL: none, or not asked for
    const void *arguments;
    size_t argument_bytes;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    rondo__launch_attributes attributes;  // KERNEL: kept to be read; one function is all blocks
    size_t first_edge;                    // into the template's predecessors
    size_t edge_count;
    rondo__host_branches *branches;  // conditional nodes: owned by the template
    size_t origin;  // flattened: the index before; SIZE_MAX: it lay in a graph inside
} rondo__host_node;

// ---- templates ---------------------------------------------------------------------------------

// A block of argument bytes; nodes point into it.
typedef struct rondo__host_chunk rondo__host_chunk;

struct rondo__host_template {
    rondo__template head;
    rondo__host_node *nodes;  // in an order in which predecessors come first
    size_t node_count;
    size_t node_capacity;
    size_t *predecessors;
    size_t edge_count;
    size_t edge_capacity;
    rondo__host_chunk *chunks;
    bool borrows_branches;  // flattened: conditional nodes are those of another template
};

// Copies node and arguments; `predecessors` become its edges. On success the template owns the
// node's branches.
RONDO_MUST_USE rondo_status rondo__host_template_append(rondo__host_template *recorded,
                                                        const rondo__host_node *node,
                                                        const size_t *predecessors,
                                                        size_t predecessor_count);
void rondo__host_destroy_template(rondo__template *template_);
rondo_status rondo__host_count_nodes(rondo__template *template_, size_t *out_count);
rondo_status rondo__host_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]);
rondo_status rondo__host_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info);
rondo_status rondo__host_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count);
rondo_status rondo__host_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data);
rondo_status rondo__host_read_attributes(rondo__template *template_, size_t index,
                                         rondo__launch_attributes *out_attributes);
void rondo__host_label_node(rondo__template *template_, size_t index, const char *label);
rondo_status rondo__host_get_body(rondo__template *template_, size_t index, uint32_t branch,
                                  rondo__template **out_body);
