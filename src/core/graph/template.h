// graph/template.h — a template as an object: its nodes and those of the graphs inside them.
//
// A template is a level of nodes and edges. A node may hold further levels: a recorded graph holds
// one, a conditional node one for each body. The walk below is the only one over all of them; it
// meets the nodes of a level by their index, each followed by what it holds:
//
//   id  index  parent
//    0    0      -       kernel
//    1    1      -       conditional
//    2    0      1         body 0: fill
//    3    1      1                 kernel
//    4    0      1         body 1: copy
//    5    2      -       kernel
//
// So a node has an id: how many were met before it. Templates of one structure number the same
// nodes alike, and an id outlives the template: it names the node of the executable, too. The node
// table leads from an id to the position in the template and to the backend's handle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"
#include "rondo/inspect.h"

typedef struct rondo__template_node rondo__template_node;

// ---- the walk ---------------------------------------------------------------------------------

// The template itself, or a graph inside a node.
typedef struct rondo__template_level {
    rondo__template *recorded;         // NULL: a body that is empty, or not known
    const rondo__template_node *node;  // that it lies in; NULL: the template itself
    uint32_t branch;                   // which body of the node; 0 of a recorded graph
    size_t depth;                      // levels around it
    bool skips_rest;                   // set by a visitor: the level's (other) nodes are not met
} rondo__template_level;

struct rondo__template_node {
    size_t id;
    size_t index;  // among the nodes of its level
    rondo__template_level *level;
    rondo__node_info info;
};

// Functions that the walk calls; all are optional, and a failure ends the walk. Nodes are described
// only if a function takes the description.
typedef struct rondo__template_visitor {
    rondo_status (*enter_level)(void *user_data, rondo__template_level *level);
    rondo_status (*enter_node)(void *user_data, const rondo__template_node *node);
    rondo_status (*leave_node)(void *user_data, const rondo__template_node *node);
    rondo_status (*leave_level)(void *user_data, const rondo__template_level *level);
} rondo__template_visitor;

// Errors:    those of the visitor; NO_MEMORY, DRIVER.
// Threads:   one thread per template, as for all below.
RONDO_MUST_USE rondo_status rondo__template_visit(rondo__template *recorded,
                                                  const rondo__template_visitor *visitor,
                                                  void *user_data);

// How many levels a node holds, and one of them (NULL: an empty body).
uint32_t rondo__node_count_levels(const rondo__node_info *info);
RONDO_MUST_USE rondo_status rondo__node_get_level(rondo__template *recorded, size_t index,
                                                  const rondo__node_info *info, uint32_t branch,
                                                  rondo__template **out_inner);

// "kernel", "memcpy" and so on.
const char *rondo__node_kind_get_name(rondo__node_kind kind);

// ---- nodes by id ------------------------------------------------------------------------------

// Where a node is.
typedef struct rondo__node_key {
    rondo__node_kind kind;  // CHILD or CONDITIONAL; OTHER for all that hold no levels
    size_t parent;          // id of the node around it; SIZE_MAX: none
    uint32_t branch;        // which level of that
    uint32_t level_number;  // levels that the walk entered before its own, empty ones, too
    size_t index;           // in its level
    rondo__template *level;
    rondo__node_handle handle;  // CUDA: its CUgraphNode; host: its index in the level
} rondo__node_key;

// All nodes, by id. Good for as long as the template lives and is not edited.
typedef struct rondo__node_table {
    rondo__node_key *keys;
    size_t count;
    size_t capacity;
} rondo__node_table;

// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__node_table_init(rondo__template *recorded,
                                                   rondo__node_table *out_table);
void rondo__node_table_deinit(rondo__node_table *table);

// The nodes of one level by the handles that they had while they were recorded.
typedef struct rondo__node_places {
    struct rondo__node_place *places;  // by handle
    size_t count;
} rondo__node_places;

// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__node_places_init(rondo__template *recorded,
                                                    rondo__node_places *out_places);
// The node's index; SIZE_MAX: there is none.
size_t rondo__node_places_find(const rondo__node_places *places, rondo__node_handle handle);
void rondo__node_places_deinit(rondo__node_places *places);

// ---- edges ------------------------------------------------------------------------------------

typedef struct rondo__edge {
    size_t from;
    size_t to;
    uint8_t kind;  // 1: programmatic
} rondo__edge;

// The edges of one level, in the backend's order.
typedef struct rondo__edge_table {
    rondo__edge *edges;
    size_t count;
} rondo__edge_table;

// Errors:    NO_MEMORY, STATE (edited meanwhile), DRIVER.
RONDO_MUST_USE rondo_status rondo__edge_table_init(rondo__template *recorded,
                                                   rondo__edge_table *out_table);
// By `to`, then by `from`.
void rondo__edge_table_sort(rondo__edge_table *table);
void rondo__edge_table_deinit(rondo__edge_table *table);

// ---- hashes -----------------------------------------------------------------------------------

// Numbers that equal templates have in common, also in another process. Whether templates with
// equal numbers are the same is for rondo__template_compare to say.
typedef struct rondo__template_hash {
    uint64_t structure;  // kinds, names, launch shapes, sizes, edges, all levels; no addresses
    uint64_t content;    // addresses and values as well; not the arguments of functions
} rondo__template_hash;

// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__template_get_hash(rondo__template *recorded,
                                                     rondo__template_hash *out_hash);

// ---- differences (template_diff.c) ------------------------------------------------------------

// A field in which two templates differ.
typedef struct rondo__difference {
    size_t node;        // id in both
    char place[40];     // the node as dumps name it: "3"; "3_0_2" is node 2 of body 0 of node 3
    const char *label;  // borrowed from `labels`; "" when it has none
    char field[40];  // "block.x"; or "kind", "edges", "level", "node" where the structures differ
    char before[72];
    char after[72];
} rondo__difference;

typedef struct rondo__template_diff {
    bool has_same_structure;  // otherwise there is one entry: the first position where they differ
    rondo__difference *entries;
    size_t count;
    size_t capacity;
} rondo__template_diff;

// What changed from `before` to `after`: every field that rondo_graph_get_node has, and the
// arguments of kernels word by word, as far as the backend shows them. At most `limit` entries.
//
// labels     the participants of the graph that `after` is of, which know its labels; NULL: no
//            labels.
//
// Errors:    NO_MEMORY, STATE (edited meanwhile), DRIVER.
RONDO_MUST_USE rondo_status rondo__template_compare(rondo__template *before, rondo__template *after,
                                                    const rondo__participant *labels, size_t limit,
                                                    rondo__template_diff *out_diff);
void rondo__template_diff_deinit(rondo__template_diff *diff);

// "node 3 (layer/gemm): block.x 64 before, 128 now".
//
// Returns:   the length of the whole text; no more than `capacity` bytes are written.
size_t rondo__difference_format(const rondo__difference *difference, char *text, size_t capacity);

// Whether the template can have only one executable at a time, as far as the kinds of its nodes
// tell. They do not tell for device-updatable kernels: there the second executable is refused with
// UNSUPPORTED.
RONDO_MUST_USE rondo_status rondo__graph_check_exclusive(rondo__template *recorded,
                                                         bool *out_is_exclusive);
