// The fake driver's executables that change: whole, by a graph, and node by node.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda_state.h"

// ---- which node is which ----------------------------------------------------------------------

// As the driver's page on cuGraphExecUpdate has it: the nodes on which nothing depends are paired
// in the order in which they were made, and from each pair on what the two depend on, in the order
// of their lists. So other orders of the same nodes are other nodes.
typedef struct pairing {
    const fake_graph *exec;
    const fake_graph *graph;
    size_t *exec_of;   // of each of the graph's nodes; SIZE_MAX: none yet
    size_t *graph_of;  // the other way round
    int result;
} pairing;

static int compare_bodies(const fake_graph *exec, const fake_graph *graph);

static size_t count_rows(const fake_node *node) {
    return node->height > 0 ? node->height : 1;
}

// A node that is to be what another one is; the result of the update.
static int compare_copies(const fake_node *former, const fake_node *next) {
    const bool is_same = former->source == next->source &&
                         former->destination == next->destination && former->count == next->count &&
                         count_rows(former) == count_rows(next);
    const bool has_rows = count_rows(former) > 1 || count_rows(next) > 1;
    const bool is_turned = fake_is_host_end(former->source, former->source_type) !=
                               fake_is_host_end(next->source, next->source_type) ||
                           fake_is_host_end(former->destination, former->destination_type) !=
                               fake_is_host_end(next->destination, next->destination_type);
    return is_turned || (has_rows && !is_same) ? RONDO__CU_UPDATE_PARAMETERS_CHANGED
                                               : RONDO__CU_UPDATE_SUCCESS;
}

static int compare_fills(const fake_node *former, const fake_node *next) {
    const bool has_rows = count_rows(former) > 1 || count_rows(next) > 1;
    const bool is_same = former->count == next->count &&
                         former->element_bytes == next->element_bytes &&
                         former->destination_pitch == next->destination_pitch &&
                         count_rows(former) == count_rows(next);
    return has_rows && !is_same ? RONDO__CU_UPDATE_PARAMETERS_CHANGED : RONDO__CU_UPDATE_SUCCESS;
}

static const rondo__cu_launch_attribute *find_attribute(const fake_node *node, int id) {
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].id == id) {
            return &node->attributes[i];
        }
    }
    return NULL;
}

static bool is_cooperative(const fake_node *node) {
    const rondo__cu_launch_attribute *attribute =
        find_attribute(node, RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    return attribute != NULL && attribute->value.is_cooperative != 0;
}

static int compare_nodes(const fake_node *former, const fake_node *next) {
    if (former->type != next->type) {
        return RONDO__CU_UPDATE_NODE_TYPE_CHANGED;
    }
    switch (next->type) {
        case RONDO__CU_GRAPH_NODE_KERNEL:
            return is_cooperative(former) != is_cooperative(next)
                       ? RONDO__CU_UPDATE_ATTRIBUTES_CHANGED
                       : RONDO__CU_UPDATE_SUCCESS;
        case RONDO__CU_GRAPH_NODE_MEMCPY:
            return compare_copies(former, next);
        case RONDO__CU_GRAPH_NODE_MEMSET:
            return compare_fills(former, next);
        case RONDO__CU_GRAPH_NODE_GRAPH:
            return compare_bodies(former->child, next->child);
        default:
            break;
    }
    if (former->body_count != next->body_count ||
        former->conditional_type != next->conditional_type) {
        return RONDO__CU_UPDATE_NOT_SUPPORTED;
    }
    int result = RONDO__CU_UPDATE_SUCCESS;
    for (size_t i = 0; i < next->body_count && result == RONDO__CU_UPDATE_SUCCESS; i++) {
        result = compare_bodies((const fake_graph *)(const void *)former->bodies[i],
                                (const fake_graph *)(const void *)next->bodies[i]);
    }
    return result;
}

static void pair_nodes(pairing *p, size_t former, size_t next) {
    const fake_node *a = &p->exec->nodes[former];
    const fake_node *b = &p->graph->nodes[next];
    if (p->result != RONDO__CU_UPDATE_SUCCESS || p->exec_of[next] == former) {
        return;
    }
    if (p->exec_of[next] != SIZE_MAX || p->graph_of[former] != SIZE_MAX) {
        p->result = RONDO__CU_UPDATE_TOPOLOGY_CHANGED;
        return;
    }
    p->exec_of[next] = former;
    p->graph_of[former] = next;
    p->result = compare_nodes(a, b);
    if (p->result == RONDO__CU_UPDATE_SUCCESS &&
        (a->dependency_count != b->dependency_count ||
         (a->dependency_count > 0 && a->is_programmatic != b->is_programmatic))) {
        p->result = RONDO__CU_UPDATE_TOPOLOGY_CHANGED;
    }
    for (size_t i = 0; i < b->dependency_count && p->result == RONDO__CU_UPDATE_SUCCESS; i++) {
        pair_nodes(p, a->dependencies[i], b->dependencies[i]);
    }
}

// The next node from `index` on that no other depends on.
static size_t find_exit(const fake_graph *graph, const bool *has_dependent, size_t index) {
    while (index < graph->node_count && has_dependent[index]) {
        index++;
    }
    return index;
}

static bool *mark_dependents(const fake_graph *graph) {
    bool *marks = calloc(graph->node_count + 1, sizeof(*marks));
    if (marks == NULL) {
        abort();
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i].dependency_count; j++) {
            marks[graph->nodes[i].dependencies[j]] = true;
        }
    }
    return marks;
}

static pairing pair_graphs(const fake_graph *exec, const fake_graph *graph) {
    const size_t count = graph->node_count;
    pairing p = {.exec = exec, .graph = graph};
    if (exec->node_count != count) {
        p.result = RONDO__CU_UPDATE_TOPOLOGY_CHANGED;
        return p;
    }
    p.exec_of = malloc((2 * count + 1) * sizeof(*p.exec_of));
    if (p.exec_of == NULL) {
        abort();
    }
    p.graph_of = p.exec_of + count;
    memset(p.exec_of, 0xff, 2 * count * sizeof(*p.exec_of));
    bool *exec_marks = mark_dependents(exec);
    bool *graph_marks = mark_dependents(graph);
    size_t former = find_exit(exec, exec_marks, 0);
    size_t next = find_exit(graph, graph_marks, 0);
    while (former < count && next < count) {
        pair_nodes(&p, former, next);
        former = find_exit(exec, exec_marks, former + 1);
        next = find_exit(graph, graph_marks, next + 1);
    }
    if (p.result == RONDO__CU_UPDATE_SUCCESS && former != next) {
        p.result = RONDO__CU_UPDATE_TOPOLOGY_CHANGED;  // one has more of them
    }
    free(exec_marks);
    free(graph_marks);
    return p;
}

static int compare_bodies(const fake_graph *exec, const fake_graph *graph) {
    pairing p = pair_graphs(exec, graph);
    free(p.exec_of);
    return p.result;
}

// ---- updates ----------------------------------------------------------------------------------

// An update succeeds and leaves the clusters as they were (driver 580).
static void keep_cluster(const fake_node *former, fake_node *next) {
    static const int ids[] = {RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                              RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER};
    for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++) {
        size_t kept = 0;
        for (size_t i = 0; i < next->attribute_count; i++) {
            if (next->attributes[i].id != ids[k]) {
                next->attributes[kept++] = next->attributes[i];
            }
        }
        const rondo__cu_launch_attribute *own = find_attribute(former, ids[k]);
        if (own != NULL && kept < FAKE_ATTRIBUTES_MAX) {
            next->attributes[kept++] = *own;
        }
        next->attribute_count = kept;
    }
}

// The driver leaves off what was switched off, and an executable knows its nodes by the handles of
// the graph that it was made from, whatever it was updated with.
static void keep_former(const pairing *p, const fake_graph *former, fake_graph *next) {
    for (size_t i = 0; i < next->node_count; i++) {
        const fake_node *from = &former->nodes[p->exec_of[i]];
        next->nodes[i].is_disabled = from->is_disabled;
        next->nodes[i].identity = from->identity;
        keep_cluster(from, &next->nodes[i]);
    }
}

rondo__cu_result fake_cuGraphExecUpdate(rondo__cu_graph_exec exec_handle, rondo__cu_graph handle,
                                        rondo__cu_update_result *out_result) {
    ENTER("cuGraphExecUpdate");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphExecUpdate");
    fake_graph *exec = fake_get_graph(exec_handle, FAKE_EXEC, "cuGraphExecUpdate");
    if (exec == NULL) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    out_result->result = RONDO__CU_UPDATE_SUCCESS;
    if (fake_is_device_updatable(exec) || fake_is_device_updatable(graph)) {
        return fake_leave(RONDO__CU_ERROR_NOT_SUPPORTED);  // and no other result, as driver 580
    }
    const pairing p = pair_graphs(exec, graph);
    out_result->result = p.result;
    if (p.result != RONDO__CU_UPDATE_SUCCESS) {
        free(p.exec_of);
        return fake_leave(RONDO__CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    }
    for (size_t i = 0; i < exec->user_object_count; i++) {
        fake_release_user_object(exec->user_objects[i], 1);
    }
    fake_graph former = *exec;
    free(exec->user_objects);
    fake_copy_graph(graph, exec);
    keep_former(&p, &former, exec);
    for (size_t i = 0; i < former.node_count; i++) {
        if (former.nodes[i].child != NULL) {
            fake_free_graph(former.nodes[i].child);
        }
        fake_free_bodies(&former.nodes[i]);
    }
    free(former.nodes);
    free(p.exec_of);
    return fake_leave(code);
}

// ---- nodes ------------------------------------------------------------------------------------

// Of an executable, and of the graphs and bodies in it.
static fake_node *find_inside(const fake_graph *exec, rondo__cu_graph_node handle) {
    fake_node *node = fake_find_in_graph(exec, handle);
    for (size_t i = 0; i < exec->node_count && node == NULL; i++) {
        const fake_node *outer = &exec->nodes[i];
        node = outer->child != NULL ? find_inside(outer->child, handle) : NULL;
        for (size_t j = 0; j < outer->body_count && node == NULL; j++) {
            node = find_inside((const fake_graph *)(const void *)outer->bodies[j], handle);
        }
    }
    return node;
}

// The node of an executable; NULL: there is none.
static fake_node *find_in_exec(rondo__cu_graph_exec exec_handle, rondo__cu_graph_node handle,
                               int type, const char *name) {
    const fake_graph *exec = fake_get_graph(exec_handle, FAKE_EXEC, name);
    fake_node *node = exec != NULL ? find_inside(exec, handle) : NULL;
    return node != NULL && (type < 0 || node->type == type) ? node : NULL;
}

#define GET_EXEC_NODE(name, type)                             \
    ENTER(name);                                              \
    fake_node *node = find_in_exec(exec, handle, type, name); \
    if (node == NULL) {                                       \
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);     \
    }

bool fake_is_launchable(const unsigned int shape[7], const fake_kernel_entry *kernel) {
    enum { BLOCK_MAX = 1024, BLOCK_Z_MAX = 64, GRID_MAX = 65535, SHARED_MAX = 48 << 10 };
    const unsigned int limits[6] = {INT32_MAX, GRID_MAX,  GRID_MAX,
                                    BLOCK_MAX, BLOCK_MAX, BLOCK_Z_MAX};
    uint64_t threads = 1;
    for (size_t i = 0; i < 6; i++) {
        if (shape[i] == 0 || shape[i] > limits[i]) {
            return false;
        }
        threads *= i < 3 ? 1 : shape[i];
    }
    return threads <= BLOCK_MAX &&
           shape[6] <= (kernel->has_large_shared ? FAKE_SHARED_MAX : SHARED_MAX);
}

rondo__cu_result fake_cuGraphExecKernelNodeSetParams(rondo__cu_graph_exec exec,
                                                     rondo__cu_graph_node handle,
                                                     const rondo__cu_kernel_node *params) {
    GET_EXEC_NODE("cuGraphExecKernelNodeSetParams", RONDO__CU_GRAPH_NODE_KERNEL);
    if (!fake_has_context("cuGraphExecKernelNodeSetParams")) {  // driver 580 crashes
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT);
    }
    union {
        rondo__cu_function handle;
        const fake_kernel_entry *entry;
    } function = {.handle = params->function};
    unsigned int shape[7];
    memcpy(shape, params->grid, sizeof(params->grid));
    memcpy(shape + 3, params->block, sizeof(params->block));
    shape[6] = params->shared_bytes;
    if (!fake_is_launchable(shape, function.entry)) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    const rondo__cu_launch_attribute *cluster =
        find_attribute(node, RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    for (int i = 0; cluster != NULL && i < 3; i++) {
        if (cluster->value.cluster[i] > 1 && shape[i] % cluster->value.cluster[i] != 0) {
            return fake_leave(RONDO__CU_ERROR_INVALID_CLUSTER_SIZE);
        }
    }
    node->kernel = function.entry;
    memcpy(node->shape, shape, sizeof(shape));
    if (params->extra != NULL) {
        size_t bytes = *(const size_t *)params->extra[3];
        memcpy(node->arguments, params->extra[1], bytes);
        node->argument_bytes = bytes;
        return fake_leave(code);
    }
    fake_pack_parameters(node, params->parameters);
    return fake_leave(code);
}

bool fake_is_host_end(const void *address, int memory_type) {
    const fake_memory *memory = fake_find_memory(address);
    if (memory_type != RONDO__CU_MEMORY_TYPE_UNIFIED) {
        return memory_type == RONDO__CU_MEMORY_TYPE_HOST;
    }
    return memory != NULL ? memory->is_host : fake_is_pageable(address);
}

static const void *address_of(const rondo__cu_copy_end *end) {
    return end->memory_type == RONDO__CU_MEMORY_TYPE_HOST ? end->host
                                                          : (const void *)(uintptr_t)end->device;
}

rondo__cu_result fake_cuGraphExecMemcpyNodeSetParams(rondo__cu_graph_exec exec,
                                                     rondo__cu_graph_node handle,
                                                     const rondo__cu_copy_node *params,
                                                     rondo__cu_context context) {
    (void)context;
    GET_EXEC_NODE("cuGraphExecMemcpyNodeSetParams", RONDO__CU_GRAPH_NODE_MEMCPY);
    const void *source = address_of(&params->source);
    const void *destination = address_of(&params->destination);
    const bool is_turned = fake_is_host_end(source, params->source.memory_type) !=
                               fake_is_host_end(node->source, node->source_type) ||
                           fake_is_host_end(destination, params->destination.memory_type) !=
                               fake_is_host_end(node->destination, node->destination_type);
    const bool is_nowhere = !fake_is_host_end(destination, params->destination.memory_type) &&
                            fake_find_memory(destination) == NULL;
    // Of several rows the driver (580) changes nothing, not even the source.
    if (params->width_bytes == 0 || is_nowhere || params->height > 1 || count_rows(node) > 1 ||
        is_turned) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    node->source = source;
    node->destination = (void *)(uintptr_t)destination;
    node->source_type = params->source.memory_type;
    node->destination_type = params->destination.memory_type;
    node->count = params->width_bytes;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphExecMemsetNodeSetParams(rondo__cu_graph_exec exec,
                                                     rondo__cu_graph_node handle,
                                                     const rondo__cu_fill_node *params,
                                                     rondo__cu_context context) {
    (void)context;
    GET_EXEC_NODE("cuGraphExecMemsetNodeSetParams", RONDO__CU_GRAPH_NODE_MEMSET);
    const size_t height = params->height > 0 ? params->height : 1;
    const bool has_rows = height > 1 || count_rows(node) > 1;
    const bool is_same_shape = params->width == node->count && height == count_rows(node) &&
                               params->element_bytes == node->element_bytes &&
                               params->pitch_bytes == node->destination_pitch;
    const bool is_element =
        params->element_bytes == 1 || params->element_bytes == 2 || params->element_bytes == 4;
    const bool is_nowhere = fake_find_memory((const void *)(uintptr_t)params->destination) == NULL;
    if (params->width == 0 || is_nowhere || !is_element || (has_rows && !is_same_shape)) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    node->destination = (void *)(uintptr_t)params->destination;
    node->value = params->value;
    node->element_bytes = params->element_bytes;
    node->count = params->width;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphExecHostNodeSetParams(rondo__cu_graph_exec exec,
                                                   rondo__cu_graph_node handle,
                                                   const rondo__cu_host_node *params) {
    GET_EXEC_NODE("cuGraphExecHostNodeSetParams", RONDO__CU_GRAPH_NODE_HOST);
    node->function = params->function;
    node->user_data = params->user_data;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphNodeSetEnabled(rondo__cu_graph_exec exec, rondo__cu_graph_node handle,
                                            unsigned int is_enabled) {
    GET_EXEC_NODE("cuGraphNodeSetEnabled", -1);
    if (node->type > RONDO__CU_GRAPH_NODE_MEMSET) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    node->is_disabled = is_enabled == 0;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphNodeGetEnabled(rondo__cu_graph_exec exec, rondo__cu_graph_node handle,
                                            unsigned int *out_is_enabled) {
    GET_EXEC_NODE("cuGraphNodeGetEnabled", -1);
    if (node->type > RONDO__CU_GRAPH_NODE_MEMSET) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    *out_is_enabled = !node->is_disabled;
    return fake_leave(code);
}
