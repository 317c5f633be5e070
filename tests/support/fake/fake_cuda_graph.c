// The fake driver's graphs, executables and user objects.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda_state.h"

void fake_release_user_object(fake_user_object *object, unsigned int count) {
    object->reference_count -= count;
    if (object->reference_count == 0) {
        object->destroy(object->pointer);
        fake_free_object(object);
    }
}

void fake_free_graph(fake_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].child != NULL) {
            fake_free_graph(graph->nodes[i].child);
        }
    }
    for (size_t i = 0; i < graph->user_object_count; i++) {
        fake_release_user_object(graph->user_objects[i], 1);
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        fake_free_bodies(&graph->nodes[i]);
    }
    fake_forget_conditions(graph);
    free(graph->user_objects);
    free(graph->nodes);
    fake_free_object(graph);
}

// ---- graphs -----------------------------------------------------------------------------------

fake_graph *fake_get_graph(void *handle, fake_kind kind, const char *name) {
    if (!fake_is_alive(handle, kind)) {
        fake_violation("%s with a dead graph", name);
        return NULL;
    }
    return handle;
}

static rondo__cu_graph_node handle_of(const fake_node *node) {
    return (rondo__cu_graph_node)(uintptr_t)node->identity;
}

// Nodes that were recorded one behind the other have numbers in a row.
fake_node *fake_find_in_graph(const fake_graph *graph, rondo__cu_graph_node handle) {
    size_t identity = (size_t)(uintptr_t)handle;
    size_t first = graph->node_count > 0 ? graph->nodes[0].identity : 0;
    if (identity >= first && identity - first < graph->node_count &&
        graph->nodes[identity - first].identity == identity) {
        return &graph->nodes[identity - first];
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].identity == identity) {
            return &graph->nodes[i];
        }
    }
    return NULL;
}

fake_node *fake_find_node(rondo__cu_graph_node handle) {
    for (fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        fake_node *node = object->kind == FAKE_GRAPH
                              ? fake_find_in_graph((const fake_graph *)object, handle)
                              : NULL;
        if (node != NULL) {
            return node;
        }
    }
    return NULL;
}

rondo__cu_result fake_cuGraphDestroy(rondo__cu_graph handle) {
    rondo__cu_result code = fake_enter("cuGraphDestroy");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphDestroy");
    if (graph->is_body) {
        fake_violation("cuGraphDestroy of a body, which its node owns");
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    for (fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        fake_graph *exec = (fake_graph *)object;
        if (object->kind == FAKE_EXEC && exec->source == graph) {
            exec->source = NULL;
        }
    }
    fake_free_graph(graph);
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphGetNodes(rondo__cu_graph handle, rondo__cu_graph_node *nodes,
                                      size_t *in_out_count) {
    ENTER("cuGraphGetNodes");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphGetNodes");
    for (size_t i = 0; nodes != NULL && i < *in_out_count && i < graph->node_count; i++) {
        nodes[i] = handle_of(&graph->nodes[i]);
    }
    *in_out_count = graph->node_count;
    return fake_leave(code);
}

static size_t list_edges(const fake_graph *graph, rondo__cu_graph_node *from,
                         rondo__cu_graph_node *to, size_t capacity) {
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i].dependency_count; j++, count++) {
            if (from != NULL && count < capacity) {
                from[count] = handle_of(&graph->nodes[graph->nodes[i].dependencies[j]]);
                to[count] = handle_of(&graph->nodes[i]);
            }
        }
    }
    return count;
}

rondo__cu_result fake_cuGraphGetEdges(rondo__cu_graph handle, rondo__cu_graph_node *from,
                                      rondo__cu_graph_node *to, size_t *in_out_count) {
    ENTER("cuGraphGetEdges");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphGetEdges");
    *in_out_count = list_edges(graph, from, to, *in_out_count);
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphGetEdges_v2(rondo__cu_graph handle, rondo__cu_graph_node *from,
                                         rondo__cu_graph_node *to, rondo__cu_edge_data *data,
                                         size_t *in_out_count) {
    ENTER("cuGraphGetEdges_v2");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphGetEdges_v2");
    size_t capacity = *in_out_count;
    *in_out_count = list_edges(graph, from, to, capacity);
    if (data != NULL) {
        memset(data, 0, capacity * sizeof(*data));
    }
    size_t edge = 0;
    for (size_t i = 0; data != NULL && i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i].dependency_count && edge < capacity; j++, edge++) {
            data[edge].type = graph->nodes[i].is_programmatic;
        }
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphNodeGetType(rondo__cu_graph_node handle, int *out_type) {
    ENTER("cuGraphNodeGetType");
    const fake_node *node = fake_find_node(handle);
    if (node == NULL) {
        fake_violation("cuGraphNodeGetType with a dead node");
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    *out_type = node->type;
    return fake_leave(code);
}

// Its size; 0: there are no more.
static size_t find_parameter(const fake_kernel_entry *kernel, size_t index, size_t *out_offset) {
    const unsigned int *layout = kernel != NULL ? kernel->code.layout : NULL;
    const size_t count = layout != NULL ? layout[0] : FAKE_PARAMETERS;
    if (index >= count) {
        *out_offset = 0;
        return 0;
    }
    if (layout != NULL) {
        *out_offset = layout[1 + 2 * index];
        return layout[2 + 2 * index];
    }
    *out_offset = index == 0 ? 0 : sizeof(void *) + (index - 1) * sizeof(uint32_t);
    return index == 0 ? sizeof(void *) : sizeof(uint32_t);
}

void fake_pack_parameters(fake_node *node, void **parameters) {
    for (size_t i = 0; parameters != NULL && i < FAKE_PARAMETERS_MAX; i++) {
        size_t offset = 0;
        const size_t bytes = find_parameter(node->kernel, i, &offset);
        if (bytes == 0 || offset + bytes > FAKE_ARGUMENTS_MAX) {
            break;
        }
        memcpy(node->arguments + offset, parameters[i], bytes);
        node->argument_bytes = offset + bytes;
        node->has_parameters = true;
    }
}

static rondo__cu_result get_parameter(const fake_kernel_entry *kernel, size_t index,
                                      size_t *out_offset, size_t *out_bytes) {
    *out_bytes = find_parameter(kernel, index, out_offset);
    return fake_leave(*out_bytes != 0 ? RONDO__CU_SUCCESS : RONDO__CU_ERROR_INVALID_VALUE);
}

rondo__cu_result fake_cuFuncGetParamInfo(rondo__cu_function function, size_t index,
                                         size_t *out_offset, size_t *out_bytes) {
    ENTER("cuFuncGetParamInfo");
    return get_parameter((const fake_kernel_entry *)(const void *)function, index, out_offset,
                         out_bytes);
}

rondo__cu_result fake_cuKernelGetParamInfo(rondo__cu_kernel kernel, size_t index,
                                           size_t *out_offset, size_t *out_bytes) {
    (void)kernel;
    ENTER("cuKernelGetParamInfo");
    return get_parameter(NULL, index, out_offset, out_bytes);
}

// The lists live in the node's graph in the real driver; here one of each is enough at a time.
static void describe_arguments(const fake_node *node, rondo__cu_kernel_node *out_params) {
    static _Thread_local void *parameters[FAKE_PARAMETERS_MAX];
    static _Thread_local void *extra[5];
    static _Thread_local fake_node copy;
    copy = *node;
    size_t offset = 0;
    for (size_t i = 0; i < FAKE_PARAMETERS_MAX && find_parameter(node->kernel, i, &offset) != 0;
         i++) {
        parameters[i] = copy.arguments + offset;
    }
    extra[0] = RONDO__CU_LAUNCH_BUFFER_POINTER;
    extra[1] = copy.arguments;
    extra[2] = RONDO__CU_LAUNCH_BUFFER_SIZE;
    extra[3] = &copy.argument_bytes;
    extra[4] = RONDO__CU_LAUNCH_END;
    out_params->parameters = node->has_parameters ? parameters : NULL;
    out_params->extra = node->has_parameters || node->argument_bytes == 0 ? NULL : extra;
}

rondo__cu_result fake_cuGraphKernelNodeGetParams(rondo__cu_graph_node handle,
                                                 rondo__cu_kernel_node *out_params) {
    ENTER("cuGraphKernelNodeGetParams");
    GET_NODE("cuGraphKernelNodeGetParams", RONDO__CU_GRAPH_NODE_KERNEL);
    memset(out_params, 0, sizeof(*out_params));
    union {
        const fake_kernel_entry *entry;
        rondo__cu_function handle;
    } function = {.entry = node->kernel};
    out_params->function = function.handle;
    memcpy(out_params->grid, node->shape, sizeof(out_params->grid));
    memcpy(out_params->block, node->shape + 3, sizeof(out_params->block));
    out_params->shared_bytes = node->shape[6];
    describe_arguments(node, out_params);
    return fake_leave(code);
}

// What was not asked for is all zeros; CUDA 12.8 and older know no attribute behind these. Overlap
// is the edges', which tell it, and not the node's.
rondo__cu_result fake_cuGraphKernelNodeGetAttribute(rondo__cu_graph_node handle, int attribute,
                                                    rondo__cu_launch_attribute_value *out_value) {
    ENTER("cuGraphKernelNodeGetAttribute");
    GET_NODE("cuGraphKernelNodeGetAttribute", RONDO__CU_GRAPH_NODE_KERNEL);
    if (attribute >= RONDO__CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_CARVEOUT ||
        attribute == RONDO__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    memset(out_value, 0, sizeof(*out_value));
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].id == attribute) {
            *out_value = node->attributes[i].value;
        }
    }
    return fake_leave(code);
}

static void describe_end(const void *address, int memory_type, size_t pitch,
                         rondo__cu_copy_end *end) {
    end->memory_type = memory_type;
    end->pitch_bytes = pitch;
    if (memory_type == RONDO__CU_MEMORY_TYPE_HOST) {
        end->host = (void *)(uintptr_t)address;
    } else {
        end->device = (rondo__cu_address)(uintptr_t)address;
    }
}

rondo__cu_result fake_cuGraphMemcpyNodeGetParams(rondo__cu_graph_node handle,
                                                 rondo__cu_copy_node *out_params) {
    ENTER("cuGraphMemcpyNodeGetParams");
    GET_NODE("cuGraphMemcpyNodeGetParams", RONDO__CU_GRAPH_NODE_MEMCPY);
    memset(out_params, 0, sizeof(*out_params));
    describe_end(node->source, node->source_type, node->source_pitch, &out_params->source);
    describe_end(node->destination, node->destination_type, node->destination_pitch,
                 &out_params->destination);
    out_params->width_bytes = node->count;
    out_params->height = node->height > 0 ? node->height : 1;
    out_params->depth = 1;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphMemsetNodeGetParams(rondo__cu_graph_node handle,
                                                 rondo__cu_fill_node *out_params) {
    ENTER("cuGraphMemsetNodeGetParams");
    GET_NODE("cuGraphMemsetNodeGetParams", RONDO__CU_GRAPH_NODE_MEMSET);
    *out_params = (rondo__cu_fill_node){
        .destination = (rondo__cu_address)(uintptr_t)node->destination,
        .pitch_bytes = node->destination_pitch,
        .value = node->value,
        .element_bytes = node->element_bytes,
        .width = node->count,
        .height = node->height > 0 ? node->height : 1,
    };
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphHostNodeGetParams(rondo__cu_graph_node handle,
                                               rondo__cu_host_node *out_params) {
    ENTER("cuGraphHostNodeGetParams");
    GET_NODE("cuGraphHostNodeGetParams", RONDO__CU_GRAPH_NODE_HOST);
    *out_params = (rondo__cu_host_node){.function = node->function, .user_data = node->user_data};
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphEventRecordNodeGetEvent(rondo__cu_graph_node handle,
                                                     rondo__cu_event *out_event) {
    ENTER("cuGraphEventRecordNodeGetEvent");
    GET_NODE("cuGraphEventRecordNodeGetEvent", RONDO__CU_GRAPH_NODE_EVENT_RECORD);
    *out_event = (rondo__cu_event)(void *)node->event;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphEventWaitNodeGetEvent(rondo__cu_graph_node handle,
                                                   rondo__cu_event *out_event) {
    ENTER("cuGraphEventWaitNodeGetEvent");
    GET_NODE("cuGraphEventWaitNodeGetEvent", RONDO__CU_GRAPH_NODE_WAIT_EVENT);
    *out_event = (rondo__cu_event)(void *)node->event;
    return fake_leave(code);
}

void fake_copy_graph(const fake_graph *graph, fake_graph *copy) {
    copy->node_count = graph->node_count;
    copy->node_capacity = graph->node_count;
    copy->nodes = calloc(graph->node_count + 1, sizeof(*copy->nodes));
    copy->user_object_count = graph->user_object_count;
    copy->user_objects = calloc(graph->user_object_count + 1, sizeof(*copy->user_objects));
    if (copy->nodes == NULL || copy->user_objects == NULL) {
        abort();
    }
    if (graph->node_count > 0) {
        memcpy(copy->nodes, graph->nodes, graph->node_count * sizeof(*copy->nodes));
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].child != NULL) {
            // Inside an executable they are executables: nobody may find their nodes.
            copy->nodes[i].child = fake_new_object(copy->object.kind, sizeof(fake_graph));
            fake_copy_graph(graph->nodes[i].child, copy->nodes[i].child);
        }
        fake_copy_bodies(&copy->nodes[i]);
    }
    for (size_t i = 0; i < graph->user_object_count; i++) {
        copy->user_objects[i] = graph->user_objects[i];
        copy->user_objects[i]->reference_count++;
    }
}

static bool has_type(const fake_graph *graph, int type) {
    bool has = false;
    for (size_t i = 0; i < graph->node_count; i++) {
        has = has || graph->nodes[i].type == type;
    }
    return has;
}

bool fake_may_be_copied(const fake_graph *graph) {
    return !has_type(graph, RONDO__CU_GRAPH_NODE_MEM_ALLOC) &&
           !has_type(graph, RONDO__CU_GRAPH_NODE_MEM_FREE) &&
           !has_type(graph, RONDO__CU_GRAPH_NODE_CONDITIONAL);
}

bool fake_is_device_updatable(const fake_graph *graph) {
    bool is = false;
    for (size_t i = 0; i < graph->node_count; i++) {
        const fake_node *node = &graph->nodes[i];
        for (size_t j = 0; j < node->attribute_count; j++) {
            is = is || (node->attributes[j].id == FAKE_CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE &&
                        node->attributes[j].value.is_allowed != 0);
        }
    }
    return is;
}

// Of such a graph the driver makes one executable at a time.
static bool is_exclusive(const fake_graph *graph) {
    return !fake_may_be_copied(graph) || fake_is_device_updatable(graph);
}

static bool has_executable(const fake_graph *graph) {
    for (const fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        if (object->kind == FAKE_EXEC && ((const fake_graph *)object)->source == graph) {
            return true;
        }
    }
    return false;
}

static size_t count_executable_bytes(void) {
    size_t bytes = 0;
    for (const fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        bool is_whole = object->kind == FAKE_EXEC && !((const fake_graph *)object)->is_body;
        bytes += is_whole ? FAKE_CUDA_EXEC_BYTES : 0;
    }
    return bytes;
}

static rondo__cu_result instantiate(rondo__cu_graph_exec *out_exec, rondo__cu_graph handle,
                                    unsigned long long flags, int *out_result, const char *name) {
    GET_GRAPH(handle, FAKE_GRAPH, name);
    if (fake_break_unsafe(name)) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    *out_result = RONDO__CU_INSTANTIATE_ERROR;
    if (fake_has_unfit_body(graph)) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (fake_has_unused_condition(graph)) {
        *out_result = FAKE_CU_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (is_exclusive(graph) && has_executable(graph)) {
        return fake_leave(RONDO__CU_ERROR_NOT_SUPPORTED);
    }
    *out_result = RONDO__CU_INSTANTIATE_SUCCESS;
    fake_graph *exec = fake_new_object(FAKE_EXEC, sizeof(*exec));
    fake_copy_graph(graph, exec);
    exec->source = graph;
    exec->flags = flags;
    const size_t taken = count_executable_bytes();
    g_fake.reserved_bytes = taken > g_fake.reserved_bytes ? taken : g_fake.reserved_bytes;
    *out_exec = (rondo__cu_graph_exec)(void *)exec;
    return fake_leave(RONDO__CU_SUCCESS);
}

rondo__cu_result fake_cuGraphInstantiateWithFlags(rondo__cu_graph_exec *out_exec,
                                                  rondo__cu_graph handle,
                                                  unsigned long long flags) {
    ENTER("cuGraphInstantiateWithFlags");
    NEED_CONTEXT("cuGraphInstantiateWithFlags");
    int result = RONDO__CU_INSTANTIATE_SUCCESS;
    return instantiate(out_exec, handle, flags, &result, "cuGraphInstantiateWithFlags");
}

rondo__cu_result fake_cuGraphInstantiateWithParams(rondo__cu_graph_exec *out_exec,
                                                   rondo__cu_graph handle,
                                                   rondo__cu_instantiate_params *params) {
    rondo__cu_result code = fake_enter("cuGraphInstantiateWithParams");
    if (code != RONDO__CU_SUCCESS) {
        const fake_graph *graph = (const fake_graph *)(const void *)handle;
        params->result = RONDO__CU_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
        params->error_node = graph->node_count > 0 ? handle_of(&graph->nodes[0]) : NULL;
        return fake_leave(code);
    }
    NEED_CONTEXT("cuGraphInstantiateWithParams");
    params->result = RONDO__CU_INSTANTIATE_SUCCESS;
    return instantiate(out_exec, handle, params->flags, &params->result,
                       "cuGraphInstantiateWithParams");
}

rondo__cu_result fake_cuGraphUpload(rondo__cu_graph_exec handle, rondo__cu_stream stream) {
    (void)stream;
    ENTER("cuGraphUpload");
    NEED_CONTEXT("cuGraphUpload");
    GET_GRAPH(handle, FAKE_EXEC, "cuGraphUpload");
    return fake_leave(graph != NULL ? code : RONDO__CU_ERROR_INVALID_VALUE);
}

// As driver 580 does: the nodes of a level side by side, then the levels that they hold, in order.
static void number_nodes(fake_graph *graph, uint32_t number, uint32_t *in_out_index) {
    graph->number = number;
    graph->first_index = *in_out_index;
    *in_out_index += (uint32_t)graph->node_count;
    for (size_t i = 0; i < graph->node_count; i++) {
        const fake_node *node = &graph->nodes[i];
        if (node->type == RONDO__CU_GRAPH_NODE_GRAPH) {
            number_nodes(node->child, number, in_out_index);
        }
        for (size_t j = 0; j < node->body_count; j++) {
            number_nodes((fake_graph *)(void *)node->bodies[j], number, in_out_index);
        }
    }
}

rondo__cu_result fake_cuGraphLaunch(rondo__cu_graph_exec exec_handle, rondo__cu_stream handle) {
    ENTER("cuGraphLaunch");
    if (!fake_may_launch(handle, "cuGraphLaunch")) {
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT);
    }
    GET_GRAPH(exec_handle, FAKE_EXEC, "cuGraphLaunch");
    GET_STREAM("cuGraphLaunch");
    if (stream->origin != NULL) {
        stream->origin->is_broken = true;
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (graph->has_live_memory && (graph->flags & RONDO__CU_INSTANTIATE_AUTO_FREE_ON_LAUNCH) == 0) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    size_t allocations = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        allocations += graph->nodes[i].type == RONDO__CU_GRAPH_NODE_MEM_ALLOC;
        allocations -= graph->nodes[i].type == RONDO__CU_GRAPH_NODE_MEM_FREE;
    }
    graph->has_live_memory = allocations > 0;
    if (g_fake_watcher != NULL) {
        uint32_t index = 0;
        number_nodes(graph, graph->number, &index);
        g_fake_watcher->launch();
    }
    if (!fake_lazy_takes_graph(handle, stream, graph)) {
        fake_run_nodes(graph);
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphExecDestroy(rondo__cu_graph_exec handle) {
    rondo__cu_result code = fake_enter("cuGraphExecDestroy");
    GET_GRAPH(handle, FAKE_EXEC, "cuGraphExecDestroy");
    // The driver (580) forbids it only while the executable runs; here it always may.
    if (code == RONDO__CU_SUCCESS && fake_break_unsafe("cuGraphExecDestroy")) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    fake_free_graph(graph);
    return fake_leave(code);
}

// ---- user objects -----------------------------------------------------------------------------

rondo__cu_result fake_cuUserObjectCreate(rondo__cu_user_object *out_object, void *pointer,
                                         rondo__cu_host_function destroy,
                                         unsigned int reference_count, unsigned int flags) {
    (void)flags;
    ENTER("cuUserObjectCreate");
    fake_user_object *object = fake_new_object(FAKE_USER_OBJECT, sizeof(*object));
    object->pointer = pointer;
    object->destroy = destroy;
    object->reference_count = reference_count;
    *out_object = (rondo__cu_user_object)(void *)object;
    return fake_leave(code);
}

rondo__cu_result fake_cuUserObjectRelease(rondo__cu_user_object handle, unsigned int count) {
    rondo__cu_result code = fake_enter("cuUserObjectRelease");
    if (!fake_is_alive(handle, FAKE_USER_OBJECT)) {
        fake_violation("cuUserObjectRelease of a dead object");
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    fake_release_user_object((fake_user_object *)(void *)handle, count);
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphRetainUserObject(rondo__cu_graph handle, rondo__cu_user_object object,
                                              unsigned int count, unsigned int flags) {
    ENTER("cuGraphRetainUserObject");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphRetainUserObject");
    if (!fake_is_alive(object, FAKE_USER_OBJECT) || count != 1 ||
        flags != RONDO__CU_GRAPH_USER_OBJECT_MOVE) {
        fake_violation("cuGraphRetainUserObject with wrong arguments");
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    graph->user_objects =
        realloc(graph->user_objects, (graph->user_object_count + 1) * sizeof(*graph->user_objects));
    if (graph->user_objects == NULL) {
        abort();
    }
    graph->user_objects[graph->user_object_count++] = (fake_user_object *)(void *)object;
    return fake_leave(code);
}
