// The fake driver's functions that Rondo does not call and tests do (driver_symbols.h).
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda_state.h"

// ---- memory in the order of a stream ----------------------------------------------------------

enum {
    FAKE_TAKEN_MAX = 1 << 21,  // bytes that a node takes
    FAKE_ALIGNMENT = 256,
};

typedef struct fake_hidden {
    struct fake_hidden *next;
    size_t byte_count;
    _Alignas(FAKE_ALIGNMENT) unsigned char bytes[];
} fake_hidden;

// Memory of a node that allocates; freed with the driver's state.
static void *new_hidden(size_t bytes) {
    fake_hidden *hidden =
        aligned_alloc(FAKE_ALIGNMENT, (sizeof(*hidden) + bytes + FAKE_ALIGNMENT - 1) /
                                          FAKE_ALIGNMENT * FAKE_ALIGNMENT);
    if (hidden == NULL) {
        abort();
    }
    *hidden = (fake_hidden){.next = g_fake.hidden, .byte_count = bytes};
    memset(hidden->bytes, 0xcd, bytes);
    g_fake.hidden = hidden;
    return hidden->bytes;
}

void fake_free_hidden(void) {
    while (g_fake.hidden != NULL) {
        fake_hidden *next = g_fake.hidden->next;
        free(g_fake.hidden);
        g_fake.hidden = next;
    }
}

bool fake_is_pageable(const void *address) {
    bool is_hidden = false;
    for (const fake_hidden *hidden = g_fake.hidden; hidden != NULL; hidden = hidden->next) {
        is_hidden = is_hidden || ((const unsigned char *)address >= hidden->bytes &&
                                  (const unsigned char *)address - hidden->bytes <
                                      (ptrdiff_t)hidden->byte_count);
    }
    return !is_hidden && fake_find_memory(address) == NULL;
}

static const fake_stream *find_recording(rondo__cu_stream handle) {
    const fake_stream *stream =
        (uintptr_t)handle > 2 && fake_is_alive(handle, FAKE_STREAM) ? (void *)handle : NULL;
    return stream != NULL && stream->origin != NULL ? stream : NULL;
}

// Memory of as many bytes that all its nodes have given back before what stands behind `stream`:
// it is taken again, as by driver 580. NULL: there is none.
static void *find_given_back(const fake_stream *stream, size_t bytes) {
    const fake_graph *graph = stream->origin->graph;
    bool *marks = calloc(graph->node_count + 1, sizeof(*marks));
    void *found = NULL;
    if (marks == NULL) {
        abort();
    }
    for (size_t i = 0; i < stream->dependency_count; i++) {
        fake_mark_ancestors(graph, stream->dependencies[i], marks);
    }
    for (size_t i = 0; i < graph->node_count && found == NULL; i++) {
        const fake_node *taken = &graph->nodes[i];
        if (taken->type != RONDO__CU_GRAPH_NODE_MEM_ALLOC || taken->count != bytes) {
            continue;
        }
        size_t held = 0;
        for (size_t k = 0; k < graph->node_count; k++) {
            const fake_node *node = &graph->nodes[k];
            held += node->destination == taken->destination &&
                    node->type == RONDO__CU_GRAPH_NODE_MEM_ALLOC;
            held -= node->destination == taken->destination && marks[k] &&
                    node->type == RONDO__CU_GRAPH_NODE_MEM_FREE;
        }
        found = held == 0 ? taken->destination : NULL;
    }
    free(marks);
    return found;
}

// The address of a node's memory is unknown to every other call, also after a launch.
rondo__cu_result fake_cuMemAllocAsync(rondo__cu_address *out_address, size_t bytes,
                                      rondo__cu_stream handle) {
    ENTER("cuMemAllocAsync");
    NEED_CONTEXT("cuMemAllocAsync");
    const fake_stream *stream = find_recording(handle);
    if (stream == NULL) {
        (void)fake_leave(code);
        return fake_cuMemAlloc(out_address, bytes);
    }
    if (bytes == 0 || bytes > FAKE_TAKEN_MAX) {
        return fake_leave(bytes == 0 ? RONDO__CU_ERROR_INVALID_VALUE
                                     : RONDO__CU_ERROR_OUT_OF_MEMORY);
    }
    void *given_back = find_given_back(stream, bytes);
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_MEM_ALLOC,
                      .destination = given_back != NULL ? given_back : new_hidden(bytes),
                      .value = g_fake.is_pool_shared,
                      .source_type = fake_get_device(stream->object.context),
                      .count = bytes};
    *out_address = (rondo__cu_address)(uintptr_t)work.destination;
    return fake_submit(handle, "cuMemAllocAsync", &work);
}

// Of memory that is no node's of the capture it says so, and the capture goes on without it.
rondo__cu_result fake_cuMemFreeAsync(rondo__cu_address address, rondo__cu_stream handle) {
    ENTER("cuMemFreeAsync");
    NEED_CONTEXT("cuMemFreeAsync");
    const fake_stream *stream = find_recording(handle);
    if (stream == NULL) {
        (void)fake_leave(code);
        return fake_cuMemFree(address);
    }
    const fake_graph *graph = stream->origin->graph;
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_MEM_FREE,
                      .destination = (void *)(uintptr_t)address};
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].type == RONDO__CU_GRAPH_NODE_MEM_ALLOC &&
            graph->nodes[i].destination == work.destination) {
            return fake_submit(handle, "cuMemFreeAsync", &work);
        }
    }
    return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
}

void fake_cuda_share_pool(bool is_shared) {
    g_fake.is_pool_shared = is_shared;
}

rondo__cu_result fake_cuGraphMemAllocNodeGetParams(rondo__cu_graph_node handle,
                                                   rondo__cu_memory_node *out_params) {
    ENTER("cuGraphMemAllocNodeGetParams");
    GET_NODE("cuGraphMemAllocNodeGetParams", RONDO__CU_GRAPH_NODE_MEM_ALLOC);
    *out_params = (rondo__cu_memory_node){
        .allocation_type = RONDO__CU_MEMORY_ALLOCATION_PINNED,
        .handle_types = (int32_t)node->value,
        .location_type = RONDO__CU_MEMORY_LOCATION_DEVICE,
        .location = node->source_type,
        .byte_count = node->count,
        .address = (rondo__cu_address)(uintptr_t)node->destination,
    };
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphMemFreeNodeGetParams(rondo__cu_graph_node handle,
                                                  rondo__cu_address *out_address) {
    ENTER("cuGraphMemFreeNodeGetParams");
    GET_NODE("cuGraphMemFreeNodeGetParams", RONDO__CU_GRAPH_NODE_MEM_FREE);
    *out_address = (rondo__cu_address)(uintptr_t)node->destination;
    return fake_leave(code);
}

rondo__cu_result fake_cuDeviceGetDefaultMemPool(void **out_pool, rondo__cu_device device) {
    ENTER("cuDeviceGetDefaultMemPool");
    *out_pool = &g_fake.contexts[device];
    return fake_leave(code);
}

rondo__cu_result fake_cuMemPoolTrimTo(void *pool, size_t bytes) {
    (void)pool;
    (void)bytes;
    ENTER("cuMemPoolTrimTo");
    return fake_leave(
        fake_break_unsafe("cuMemPoolTrimTo") ? RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED : code);
}

// ---- copies and fills -------------------------------------------------------------------------

rondo__cu_result fake_cuMemcpy3DAsync(const rondo__cu_copy_node *copy, rondo__cu_stream handle) {
    ENTER("cuMemcpy3DAsync");
    NEED_CONTEXT("cuMemcpy3DAsync");
    const bool is_from_host = copy->source.memory_type == RONDO__CU_MEMORY_TYPE_HOST;
    const bool is_to_host = copy->destination.memory_type == RONDO__CU_MEMORY_TYPE_HOST;
    const void *source = (const void *)(uintptr_t)copy->source.device;
    void *destination = (void *)(uintptr_t)copy->destination.device;
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_MEMCPY,
                      .source = is_from_host ? copy->source.host : source,
                      .destination = is_to_host ? copy->destination.host : destination,
                      .source_type = copy->source.memory_type,
                      .destination_type = copy->destination.memory_type,
                      .count = copy->width_bytes,
                      .height = copy->height,
                      .source_pitch = copy->source.pitch_bytes,
                      .destination_pitch = copy->destination.pitch_bytes};
    return fake_submit(handle, "cuMemcpy3DAsync", &work);
}

rondo__cu_result fake_cuMemsetD2D8Async(rondo__cu_address destination, size_t pitch_bytes,
                                        unsigned char value, size_t width, size_t height,
                                        rondo__cu_stream handle) {
    ENTER("cuMemsetD2D8Async");
    NEED_CONTEXT("cuMemsetD2D8Async");
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_MEMSET,
                      .destination = (void *)(uintptr_t)destination,
                      .destination_pitch = pitch_bytes,
                      .value = value,
                      .element_bytes = 1,
                      .count = width,
                      .height = height};
    return fake_submit(handle, "cuMemsetD2D8Async", &work);
}

// They work on the legacy stream, and are safe beside captures that it does not wait for.
static rondo__cu_result copy_and_wait(const char *name, void *destination, const void *source,
                                      size_t bytes) {
    ENTER(name);
    NEED_CONTEXT(name);
    if (fake_break_blocking()) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    fake_lazy_run_all();
    memmove(destination, source, bytes);
    return fake_leave(code);
}

rondo__cu_result fake_cuMemcpyDtoH(void *destination, rondo__cu_address source, size_t bytes) {
    return copy_and_wait("cuMemcpyDtoH", destination, (const void *)(uintptr_t)source, bytes);
}

rondo__cu_result fake_cuMemcpyHtoD(rondo__cu_address destination, const void *source,
                                   size_t bytes) {
    return copy_and_wait("cuMemcpyHtoD", (void *)(uintptr_t)destination, source, bytes);
}

rondo__cu_result fake_cuMemsetD8(rondo__cu_address destination, unsigned char value, size_t count) {
    ENTER("cuMemsetD8");
    NEED_CONTEXT("cuMemsetD8");
    if (fake_break_blocking()) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    fake_lazy_run_all();
    memset((void *)(uintptr_t)destination, value, count);
    return fake_leave(code);
}

// ---- graphs made by calls ---------------------------------------------------------------------

rondo__cu_result fake_cuGraphCreate(rondo__cu_graph *out_graph, unsigned int flags) {
    (void)flags;
    ENTER("cuGraphCreate");
    *out_graph = (rondo__cu_graph)fake_new_object(FAKE_GRAPH, sizeof(fake_graph));
    return fake_leave(code);
}

static fake_node *add_node(rondo__cu_graph handle, const rondo__cu_graph_node *dependencies,
                           size_t count, int type, const char *name) {
    fake_graph *graph = fake_get_graph(handle, FAKE_GRAPH, name);
    size_t indices[FAKE_DEPENDENCIES_MAX];
    if (graph == NULL || count > FAKE_DEPENDENCIES_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const fake_node *before = fake_find_in_graph(graph, dependencies[i]);
        if (before == NULL) {
            return NULL;
        }
        indices[i] = (size_t)(before - graph->nodes);
    }
    fake_node *node = fake_append_node(graph, indices, count);
    node->type = type;
    return node;
}

#define ADD_NODE(name, type)                                                         \
    ENTER(name);                                                                     \
    fake_node *node = add_node(graph, dependencies, dependency_count, (type), name); \
    if (node == NULL) {                                                              \
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);                            \
    }                                                                                \
    *out_node = (rondo__cu_graph_node)(uintptr_t)node->identity;

rondo__cu_result fake_cuGraphAddKernelNode(rondo__cu_graph_node *out_node, rondo__cu_graph graph,
                                           const rondo__cu_graph_node *dependencies,
                                           size_t dependency_count,
                                           const rondo__cu_kernel_node *params) {
    ADD_NODE("cuGraphAddKernelNode", RONDO__CU_GRAPH_NODE_KERNEL);
    union {
        rondo__cu_function handle;
        const fake_kernel_entry *entry;
    } function = {.handle = params->function};
    node->kernel = function.entry;
    memcpy(node->shape, params->grid, sizeof(params->grid));
    memcpy(node->shape + 3, params->block, sizeof(params->block));
    node->shape[6] = params->shared_bytes;
    fake_pack_parameters(node, params->parameters);
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphAddMemsetNode(rondo__cu_graph_node *out_node, rondo__cu_graph graph,
                                           const rondo__cu_graph_node *dependencies,
                                           size_t dependency_count,
                                           const rondo__cu_fill_node *params,
                                           rondo__cu_context context) {
    (void)context;
    ADD_NODE("cuGraphAddMemsetNode", RONDO__CU_GRAPH_NODE_MEMSET);
    node->destination = (void *)(uintptr_t)params->destination;
    node->destination_pitch = params->pitch_bytes;
    node->value = params->value;
    node->element_bytes = params->element_bytes;
    node->count = params->width;
    node->height = params->height;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphClone(rondo__cu_graph *out_graph, rondo__cu_graph handle) {
    ENTER("cuGraphClone");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphClone");
    if (!fake_may_be_copied(graph) || fake_is_device_updatable(graph)) {
        return fake_leave(RONDO__CU_ERROR_NOT_SUPPORTED);
    }
    *out_graph = (rondo__cu_graph)(void *)fake_clone_graph(graph);
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphNodeFindInClone(rondo__cu_graph_node *out_node,
                                             rondo__cu_graph_node original,
                                             rondo__cu_graph handle) {
    ENTER("cuGraphNodeFindInClone");
    GET_GRAPH(handle, FAKE_GRAPH, "cuGraphNodeFindInClone");
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].original == (size_t)(uintptr_t)original) {
            *out_node = (rondo__cu_graph_node)(uintptr_t)graph->nodes[i].identity;
            return fake_leave(code);
        }
    }
    return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
}

// One of the flags is taken and not told.
rondo__cu_result fake_cuGraphExecGetFlags(rondo__cu_graph_exec handle, uint64_t *out_flags) {
    ENTER("cuGraphExecGetFlags");
    GET_GRAPH(handle, FAKE_EXEC, "cuGraphExecGetFlags");
    *out_flags = graph->flags & ~(uint64_t)FAKE_CU_INSTANTIATE_USE_NODE_PRIORITY;
    return fake_leave(code);
}
