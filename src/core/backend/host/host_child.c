// backend/host/host_child.c — graphs inside graphs.
//
// A CHILD node owns a copy of the template it was recorded from. For dumps it stays what it is; to
// run, a template is flattened: each CHILD node is replaced by the nodes inside it, so that
// branches inside and outside run side by side.
//
//      a -> [ b -> c ] -> f         a -> b -> c -> f
//           [ d -> e ]                \-> d -> e -/
//
// Cost: one copy of nodes and arguments per CHILD node, and one more while an executable is made.
// SPDX-License-Identifier: Apache-2.0

#include "backend/host/host_child.h"

#include <string.h>

#include "backend/host/host_capture.h"
#include "base/error.h"
#include "base/memory.h"

static const rondo__host_template *child_of(const rondo__host_node *node) {
    return ((const rondo__host_child *)node->arguments)->recorded;
}

// ---- copying ----------------------------------------------------------------------------------

static rondo_status copy_template(const rondo__host_template *recorded,
                                  rondo__host_template **out_copy) {
    *out_copy = NULL;
    rondo__host_template *copy = rondo__calloc(1, sizeof *copy);
    if (copy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    copy->head.device = recorded->head.device;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < recorded->node_count && status == RONDO_STATUS_OK; ++i) {
        rondo__host_node node = recorded->nodes[i];
        rondo__host_child child = {0};
        node.label = NULL;  // that is of the other graph
        if (node.kind == RONDO__NODE_CHILD) {
            status = copy_template(child_of(&node), &child.recorded);
            node.arguments = &child;
        }
        if (status == RONDO_STATUS_OK) {
            const size_t *predecessors =
                node.edge_count > 0 ? &recorded->predecessors[node.first_edge] : NULL;
            status = rondo__host_template_append(copy, &node, predecessors, node.edge_count);
        }
        if (status != RONDO_STATUS_OK && child.recorded != NULL) {
            rondo__host_destroy_template(&child.recorded->head);
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__host_destroy_template(&copy->head);
        return status;
    }
    *out_copy = copy;
    return RONDO_STATUS_OK;
}

// ---- the table's entries ----------------------------------------------------------------------

rondo_status rondo__host_clone(rondo__template *template_, rondo__template **out_clone) {
    rondo__host_template *copy;
    const rondo_status status = copy_template((const rondo__host_template *)template_, &copy);
    *out_clone = status == RONDO_STATUS_OK ? &copy->head : NULL;
    return status;
}

rondo_status rondo__host_get_child(rondo__template *template_, size_t index,
                                   rondo__template **out_child) {
    const rondo__host_template *recorded = (const rondo__host_template *)template_;
    *out_child = NULL;
    if (index >= recorded->node_count || recorded->nodes[index].kind != RONDO__NODE_CHILD) {
        return RONDO_FAIL(INVALID, "node %zu holds no graph", index);
    }
    const rondo__host_child *child = recorded->nodes[index].arguments;
    *out_child = &child->recorded->head;
    return RONDO_STATUS_OK;
}

// Nothing runs it: executables are made from flattened templates.
static void run_nothing(void *arguments) {
    (void)arguments;
}

rondo_status rondo__host_add_child(rondo_stream *stream_, rondo__template *template_) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_child child;
    bool was_recorded = false;
    rondo_status status = copy_template((const rondo__host_template *)template_, &child.recorded);
    if (status == RONDO_STATUS_OK) {
        rondo__host_node node = {.kind = RONDO__NODE_CHILD,
                                 .run = run_nothing,
                                 .name = "",
                                 .arguments = &child,
                                 .argument_bytes = sizeof child};
        status = rondo__host_record_node(stream, &node, &was_recorded);
    }
    if (status == RONDO_STATUS_OK && !was_recorded) {
        status = RONDO_FAIL_AS("rondo_stream_add_graph", STATE, "stream %u does not record",
                               (unsigned)stream_->number);
    }
    if (!was_recorded && child.recorded != NULL) {
        rondo__host_destroy_template(&child.recorded->head);
    }
    return status;
}

// ---- flattening -------------------------------------------------------------------------------

// Indices of nodes of the flat template.
typedef struct node_set {
    size_t *nodes;
    size_t count;
    size_t capacity;
} node_set;

static rondo_status add_node(node_set *set, size_t node) {
    for (size_t i = 0; i < set->count; ++i) {
        if (set->nodes[i] == node) {
            return RONDO_STATUS_OK;
        }
    }
    rondo_status status = RONDO__ARRAY_RESERVE(set->nodes, set->capacity, set->count + 1);
    if (status == RONDO_STATUS_OK) {
        set->nodes[set->count++] = node;
    }
    return status;
}

static rondo_status add_nodes(node_set *set, const node_set *others) {
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < others->count && status == RONDO_STATUS_OK; ++i) {
        status = add_node(set, others->nodes[i]);
    }
    return status;
}

static rondo_status flatten_into(rondo__host_template *flat, const rondo__host_template *recorded,
                                 bool is_inside, const node_set *entry, node_set *out_exit);

// Appends node `index`, whose predecessors' ends are in `ends`; its own end goes to ends[index].
static rondo_status flatten_node(rondo__host_template *flat, const rondo__host_template *recorded,
                                 bool is_inside, size_t index, const node_set *entry,
                                 node_set *ends, bool *has_successor) {
    const rondo__host_node *node = &recorded->nodes[index];
    node_set before = {0};
    rondo_status status = RONDO_STATUS_OK;
    if (node->edge_count == 0) {
        status = add_nodes(&before, entry);
    }
    for (size_t i = 0; i < node->edge_count && status == RONDO_STATUS_OK; ++i) {
        size_t predecessor = recorded->predecessors[node->first_edge + i];
        has_successor[predecessor] = true;
        status = add_nodes(&before, &ends[predecessor]);
    }
    if (status == RONDO_STATUS_OK && node->kind == RONDO__NODE_CHILD) {
        status = flatten_into(flat, child_of(node), true, &before, &ends[index]);
    } else if (status == RONDO_STATUS_OK) {
        status = rondo__host_template_append(flat, node, before.nodes, before.count);
        if (status == RONDO_STATUS_OK) {
            flat->nodes[flat->node_count - 1].origin = is_inside ? SIZE_MAX : index;
            status = add_node(&ends[index], flat->node_count - 1);
        }
    }
    rondo__free(before.nodes);
    return status;
}

// Appends all nodes of `recorded` behind those of `entry`; *out_exit gets its last ones.
static rondo_status flatten_into(rondo__host_template *flat, const rondo__host_template *recorded,
                                 bool is_inside, const node_set *entry, node_set *out_exit) {
    if (recorded->node_count == 0) {
        return add_nodes(out_exit, entry);
    }
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    node_set *ends = rondo__calloc(recorded->node_count, sizeof *ends);
    bool *has_successor = rondo__calloc(recorded->node_count, sizeof *has_successor);
    if (ends == NULL || has_successor == NULL) {
        goto free_room;
    }
    status = RONDO_STATUS_OK;
    for (size_t i = 0; i < recorded->node_count && status == RONDO_STATUS_OK; ++i) {
        status = flatten_node(flat, recorded, is_inside, i, entry, ends, has_successor);
    }
    for (size_t i = 0; i < recorded->node_count; ++i) {
        if (!has_successor[i] && status == RONDO_STATUS_OK) {
            status = add_nodes(out_exit, &ends[i]);
        }
        rondo__free(ends[i].nodes);
    }
free_room:
    rondo__free(ends);
    rondo__free(has_successor);
    return status;
}

static bool has_children(const rondo__host_template *recorded) {
    for (size_t i = 0; i < recorded->node_count; ++i) {
        if (recorded->nodes[i].kind == RONDO__NODE_CHILD) {
            return true;
        }
    }
    return false;
}

rondo_status rondo__host_flatten(const rondo__host_template *recorded,
                                 const rondo__host_template **out_flat) {
    *out_flat = recorded;
    if (!has_children(recorded)) {
        return RONDO_STATUS_OK;
    }
    rondo__host_template *flat = rondo__calloc(1, sizeof *flat);
    if (flat == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    flat->head.device = recorded->head.device;
    flat->borrows_branches = true;
    const node_set entry = {0};
    node_set exit = {0};
    rondo_status status = flatten_into(flat, recorded, false, &entry, &exit);
    rondo__free(exit.nodes);
    if (status != RONDO_STATUS_OK) {
        rondo__host_unflatten(recorded, flat);
        return status;
    }
    *out_flat = flat;
    return RONDO_STATUS_OK;
}

void rondo__host_unflatten(const rondo__host_template *recorded, const rondo__host_template *flat) {
    if (flat != recorded) {
        union {
            const rondo__host_template *read_only;
            rondo__host_template *owned;
        } made_here = {.read_only = flat};
        rondo__host_destroy_template(&made_here.owned->head);
    }
}
