// The fake driver's conditional nodes. A node owns its bodies, which are graphs; an executable has
// copies of them. A handle's value is one number of the process, set by the one kernel that knows
// how. A node whose handle nobody set in time is noted as a violation.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda_state.h"

// ---- handles ----------------------------------------------------------------------------------

rondo__cu_result fake_cuGraphConditionalHandleCreate(uint64_t *out_handle, rondo__cu_graph graph,
                                                     rondo__cu_context context,
                                                     unsigned int default_value,
                                                     unsigned int flags) {
    (void)context;
    (void)default_value;
    ENTER("cuGraphConditionalHandleCreate");
    NEED_CONTEXT("cuGraphConditionalHandleCreate");
    if (!fake_is_alive(graph, FAKE_GRAPH) || flags != 0) {
        fake_violation("cuGraphConditionalHandleCreate with wrong arguments");
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    size_t index = g_fake.condition_count++;
    g_fake.condition_is_set[index % FAKE_CONDITIONS_MAX] = false;
    g_fake.condition_graphs[index % FAKE_CONDITIONS_MAX] = (const fake_graph *)(const void *)graph;
    *out_handle = index + 1;
    return fake_leave(code);
}

bool fake_has_unused_condition(const fake_graph *graph) {
    bool has = false;
    for (size_t i = 0; i < g_fake.condition_count && i < FAKE_CONDITIONS_MAX; i++) {
        has = has || g_fake.condition_graphs[i] == graph;
    }
    return has;
}

void fake_forget_conditions(const fake_graph *graph) {
    for (size_t i = 0; i < g_fake.condition_count && i < FAKE_CONDITIONS_MAX; i++) {
        if (g_fake.condition_graphs[i] == graph) {
            g_fake.condition_graphs[i] = NULL;
        }
    }
}

// What the kernel of backend/cuda/graph/cuda_conditional.c does.
static void set_condition(const void *arguments, size_t argument_bytes) {
    struct {
        uint64_t handle;
        uint64_t predicate;
        uint32_t how;
        uint32_t wanted;
    } call;
    if (argument_bytes != sizeof call) {
        fake_violation("rondo_condition with %zu bytes of arguments", argument_bytes);
        return;
    }
    memcpy(&call, arguments, sizeof call);
    uint32_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)call.predicate, sizeof value);
    if (call.how == 1) {
        value = value == call.wanted;
    } else if (call.how == 2) {
        value = value != call.wanted;
    }
    size_t index = (size_t)(call.handle - 1) % FAKE_CONDITIONS_MAX;
    g_fake.condition_values[index] = value;
    g_fake.condition_is_set[index] = true;
}

const fake_kernel_entry fake_condition_kernel = {.name = "rondo_condition",
                                                 .kernel = set_condition};

// ---- nodes ------------------------------------------------------------------------------------

static bool is_valid(const rondo__cu_conditional_node *params) {
    bool is_new = g_fake.options.driver_version >= 12080;
    switch (params->type) {
        case RONDO__CU_CONDITIONAL_IF:
            return params->body_count == 1 || (is_new && params->body_count == 2);
        case RONDO__CU_CONDITIONAL_WHILE:
            return params->body_count == 1;
        case RONDO__CU_CONDITIONAL_SWITCH:
            return is_new && params->body_count > 0;
        default:
            return false;
    }
}

static size_t find_index(const fake_graph *graph, rondo__cu_graph_node handle) {
    const fake_node *node = fake_find_in_graph(graph, handle);
    return node != NULL ? (size_t)(node - graph->nodes) : SIZE_MAX;
}

static bool is_one_row(size_t height, size_t bytes) {
    return height == 1 && bytes > 0;
}

static bool take_kernel(const rondo__cu_kernel_node *kernel, fake_node *work) {
    const unsigned int shape[7] = {kernel->grid[0],     kernel->grid[1],  kernel->grid[2],
                                   kernel->block[0],    kernel->block[1], kernel->block[2],
                                   kernel->shared_bytes};
    return fake_take_launch(work, kernel->function, shape, kernel->parameters, kernel->extra);
}

// Takes what the node does from the parameters.
static rondo__cu_result take_params(const rondo__cu_node_params *params, fake_node *work) {
    const rondo__cu_copy_node *copy = &params->value.copy.copy;
    const rondo__cu_fill_node *fill = &params->value.fill.fill;
    switch (params->type) {
        case RONDO__CU_GRAPH_NODE_KERNEL:
            return take_kernel(&params->value.kernel, work) ? RONDO__CU_SUCCESS
                                                            : RONDO__CU_ERROR_INVALID_VALUE;
        case RONDO__CU_GRAPH_NODE_MEMCPY:
            work->source = (const void *)(uintptr_t)copy->source.device;
            work->destination = (void *)(uintptr_t)copy->destination.device;
            work->source_type = copy->source.memory_type;
            work->destination_type = copy->destination.memory_type;
            work->count = copy->width_bytes;
            return params->value.copy.context != NULL && is_one_row(copy->height, work->count) &&
                           copy->depth == 1
                       ? RONDO__CU_SUCCESS
                       : RONDO__CU_ERROR_INVALID_VALUE;
        case RONDO__CU_GRAPH_NODE_MEMSET:
            work->destination = (void *)(uintptr_t)fill->destination;
            work->value = fill->value;
            work->element_bytes = fill->element_bytes;
            work->count = fill->width;
            return params->value.fill.context != NULL && is_one_row(fill->height, work->count)
                       ? RONDO__CU_SUCCESS
                       : RONDO__CU_ERROR_INVALID_VALUE;
        default:
            return RONDO__CU_ERROR_INVALID_VALUE;
    }
}

// A programmatic edge leads from kernel to kernel.
static rondo__cu_result add_plain_node(fake_graph *graph, const size_t *indices,
                                       const rondo__cu_edge_data *data, size_t count,
                                       const rondo__cu_node_params *params,
                                       rondo__cu_graph_node *out_node) {
    fake_node work = {.type = params->type};
    rondo__cu_result code = take_params(params, &work);
    for (size_t i = 0; data != NULL && i < count && code == RONDO__CU_SUCCESS; i++) {
        const bool is_programmatic = data[i].type == RONDO__CU_EDGE_PROGRAMMATIC;
        const bool may_be = work.type == RONDO__CU_GRAPH_NODE_KERNEL &&
                            graph->nodes[indices[i]].type == RONDO__CU_GRAPH_NODE_KERNEL;
        work.is_programmatic = is_programmatic;
        code = data[i].from_port == (is_programmatic ? RONDO__CU_PORT_PROGRAMMATIC : 0) &&
                       (may_be || !is_programmatic)
                   ? RONDO__CU_SUCCESS
                   : RONDO__CU_ERROR_INVALID_VALUE;
    }
    if (code == RONDO__CU_SUCCESS) {
        fake_node *node = fake_append_node(graph, indices, count);
        fake_fill_node(node, &work);
        *out_node = (rondo__cu_graph_node)(uintptr_t)node->identity;
    }
    return code;
}

rondo__cu_result fake_cuGraphAddNode(rondo__cu_graph_node *out_node, rondo__cu_graph handle,
                                     const rondo__cu_graph_node *dependencies,
                                     const rondo__cu_edge_data *data, size_t dependency_count,
                                     rondo__cu_node_params *params) {
    ENTER("cuGraphAddNode");
    NEED_CONTEXT("cuGraphAddNode");
    const bool is_conditional = params->type == RONDO__CU_GRAPH_NODE_CONDITIONAL;
    if (!fake_is_alive(handle, FAKE_GRAPH) || dependency_count > FAKE_DEPENDENCIES_MAX ||
        (is_conditional && !is_valid(&params->value.conditional))) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    fake_graph *graph = (fake_graph *)(void *)handle;
    size_t indices[FAKE_DEPENDENCIES_MAX];
    for (size_t i = 0; i < dependency_count; i++) {
        indices[i] = find_index(graph, dependencies[i]);
        if (indices[i] == SIZE_MAX) {
            return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
        }
    }
    if (!is_conditional) {
        return fake_leave(add_plain_node(graph, indices, data, dependency_count, params, out_node));
    }
    fake_node *node = fake_append_node(graph, indices, dependency_count);
    rondo__cu_conditional_node *conditional = &params->value.conditional;
    node->type = RONDO__CU_GRAPH_NODE_CONDITIONAL;
    node->condition = conditional->handle;
    g_fake.condition_graphs[(size_t)(conditional->handle - 1) % FAKE_CONDITIONS_MAX] = NULL;
    node->conditional_type = conditional->type;
    node->body_count = conditional->body_count;
    node->bodies = calloc(node->body_count, sizeof(*node->bodies));
    if (node->bodies == NULL) {
        abort();
    }
    for (size_t i = 0; i < node->body_count; i++) {
        fake_graph *body = fake_new_object(FAKE_GRAPH, sizeof(*body));
        body->is_body = true;
        node->bodies[i] = (rondo__cu_graph)(void *)body;
    }
    conditional->bodies = node->bodies;
    *out_node = (rondo__cu_graph_node)(uintptr_t)node->identity;
    return fake_leave(code);
}

static fake_graph *body_of(const fake_node *node, size_t index) {
    return (fake_graph *)(void *)node->bodies[index];
}

void fake_copy_bodies(fake_node *copy) {
    if (copy->body_count == 0) {
        return;
    }
    rondo__cu_graph *originals = copy->bodies;
    copy->bodies = calloc(copy->body_count, sizeof(*copy->bodies));
    if (copy->bodies == NULL) {
        abort();
    }
    for (size_t i = 0; i < copy->body_count; i++) {
        fake_graph *body = fake_new_object(FAKE_EXEC, sizeof(*body));
        body->is_body = true;
        fake_copy_graph((const fake_graph *)(void *)originals[i], body);
        copy->bodies[i] = (rondo__cu_graph)(void *)body;
    }
}

static void let_dangle(const fake_graph *graph) {
    for (fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        fake_stream *stream = (fake_stream *)object;
        if (object->kind == FAKE_STREAM && stream->origin == stream && stream->graph == graph) {
            stream->is_dangling = true;
        }
    }
}

// The driver (580) frees the graph of a body when its broken capture ends, and again here.
void fake_free_bodies(fake_node *node) {
    for (size_t i = 0; i < node->body_count; i++) {
        fake_graph *body = body_of(node, i);
        if (body->is_gone) {
            fake_violation("a body's graph is freed twice");
        }
        let_dangle(body);
        fake_free_graph(body);
    }
    free(node->bodies);
    node->bodies = NULL;
    node->body_count = 0;
}

// ---- running, and what may stand in a body ----------------------------------------------------

static void run_body(const fake_node *node, size_t index) {
    g_fake_body_depth += 1;
    fake_run_nodes(body_of(node, index));
    g_fake_body_depth -= 1;
}

static void skip_others(const fake_node *node, size_t taken) {
    for (size_t body = 0; body < node->body_count; body++) {
        if (body != taken) {
            g_fake_body_depth += 1;
            fake_skip_nodes(body_of(node, body));
            g_fake_body_depth -= 1;
        }
    }
}

void fake_run_conditional(const fake_node *node) {
    size_t index = (size_t)(node->condition - 1) % FAKE_CONDITIONS_MAX;
    if (!g_fake.condition_is_set[index]) {
        fake_violation("a conditional node whose condition nothing set");
        return;
    }
    const uint32_t *value = &g_fake.condition_values[index];
    if (node->conditional_type == RONDO__CU_CONDITIONAL_WHILE) {
        skip_others(node, *value != 0 ? 0 : 1);
        while (*value != 0) {
            // A body that forgets to set it would turn forever.
            g_fake.condition_is_set[index] = false;
            run_body(node, 0);
            if (!g_fake.condition_is_set[index]) {
                fake_violation("the body of a while sets no condition");
                return;
            }
        }
    } else if (node->conditional_type == RONDO__CU_CONDITIONAL_IF) {
        size_t body = *value != 0 ? 0 : 1;
        skip_others(node, body);
        if (body < node->body_count) {
            run_body(node, body);
        }
    } else {
        skip_others(node, *value);
        if (*value < node->body_count) {
            run_body(node, *value);
        }
    }
}

// What runs in a body: kernels, fills, copies between memory of the driver's, graphs of such, and
// further conditional nodes.
static bool is_unfit(const fake_node *node) {
    switch (node->type) {
        case RONDO__CU_GRAPH_NODE_KERNEL:
        case RONDO__CU_GRAPH_NODE_MEMSET:
        case RONDO__CU_GRAPH_NODE_EMPTY:
        case RONDO__CU_GRAPH_NODE_GRAPH:
        case RONDO__CU_GRAPH_NODE_CONDITIONAL:
            return false;
        case RONDO__CU_GRAPH_NODE_MEMCPY:
            return fake_is_pageable(node->source) || fake_is_pageable(node->destination);
        default:
            return true;
    }
}

static bool has_unfit(const fake_graph *graph, bool is_body) {
    bool has = false;
    for (size_t i = 0; i < graph->node_count && !has; i++) {
        const fake_node *node = &graph->nodes[i];
        has =
            (is_body && is_unfit(node)) || (node->child != NULL && has_unfit(node->child, is_body));
        for (size_t body = 0; body < node->body_count && !has; body++) {
            has = has_unfit(body_of(node, body), true);
        }
    }
    return has;
}

bool fake_has_unfit_body(const fake_graph *graph) {
    return has_unfit(graph, false);
}

// ---- recording into a body --------------------------------------------------------------------

rondo__cu_result fake_cuStreamBeginCaptureToGraph(rondo__cu_stream handle, rondo__cu_graph graph,
                                                  const rondo__cu_graph_node *dependencies,
                                                  const rondo__cu_edge_data *data,
                                                  size_t dependency_count, int mode) {
    (void)dependencies;
    (void)data;
    ENTER("cuStreamBeginCaptureToGraph");
    NEED_CONTEXT("cuStreamBeginCaptureToGraph");
    GET_STREAM("cuStreamBeginCaptureToGraph");
    if (!fake_is_alive(graph, FAKE_GRAPH) || dependency_count != 0) {
        fake_violation("cuStreamBeginCaptureToGraph with wrong arguments");
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (stream->origin != NULL) {
        return fake_leave(RONDO__CU_ERROR_ILLEGAL_STATE);
    }
    stream->origin = stream;
    stream->graph = (fake_graph *)(void *)graph;
    stream->capture_id = ++g_fake.last_capture_id;
    stream->mode = mode;
    stream->thread = pthread_self();
    stream->is_broken = false;
    stream->dependency_count = 0;
    return fake_leave(code);
}
