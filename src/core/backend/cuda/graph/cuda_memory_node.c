// backend/cuda/graph/cuda_memory_node.c — nodes that take memory in stream order and give it back.
//
// A captured cuMemAllocAsync takes it from the device's current pool, whose properties the node
// keeps. So a node is read again once it is recorded: it may have come from a pool that a program
// has made for something else.
//
// Source:    CUDA Driver API, CUDA_MEM_ALLOC_NODE_PARAMS; bench/results/core/driver_truth_h200.md.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_memory_node.h"

#include <string.h>

#include "backend/cuda/driver/cuda_stream.h"
#include "backend/cuda/graph/cuda_frontier.h"
#include "backend/cuda/graph/cuda_template.h"
#include "base/error.h"

static bool is_plain(const rondo__cuda_device *device, const rondo__cu_memory_node *params) {
    bool is_own = params->location_type == RONDO__CU_MEMORY_LOCATION_DEVICE &&
                  params->location == device->ordinal;
    for (size_t i = 0; i < params->access_count && params->accesses != NULL; ++i) {
        const rondo__cu_memory_access *access = &params->accesses[i];
        is_own = is_own && access->location_type == RONDO__CU_MEMORY_LOCATION_DEVICE &&
                 access->location == device->ordinal;
    }
    return is_own && params->allocation_type == RONDO__CU_MEMORY_ALLOCATION_PINNED &&
           params->handle_types == 0 && params->security == NULL && params->usage == 0;
}

static rondo_status read_taking(rondo__cuda_device *device, rondo__cu_graph_node node,
                                rondo__memory_node *out_node) {
    rondo__cu_memory_node params;
    memset(&params, 0, sizeof params);
    const rondo__cu_result code = device->api->cuGraphMemAllocNodeGetParams(node, &params);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphMemAllocNodeGetParams",
                                "cannot ask what memory a node takes");
    }
    *out_node = (rondo__memory_node){.takes = true,
                                     .address = (void *)(uintptr_t)params.address,
                                     .byte_count = params.byte_count,
                                     .is_plain = is_plain(device, &params)};
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_read_memory_node(rondo__template *template_, size_t index,
                                          rondo__memory_node *out_node) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    int type = 0;
    rondo__cu_address address = 0;
    *out_node = (rondo__memory_node){.takes = false};
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    if (index >= recorded->node_count) {
        return RONDO_FAIL(INVALID, "there is no node %zu, the graph has %zu", index,
                          recorded->node_count);
    }
    rondo__cu_result code = device->api->cuGraphNodeGetType(recorded->nodes[index], &type);
    if (code == RONDO__CU_SUCCESS && type == RONDO__CU_GRAPH_NODE_MEM_ALLOC) {
        return read_taking(device, recorded->nodes[index], out_node);
    }
    if (code == RONDO__CU_SUCCESS) {
        code = device->api->cuGraphMemFreeNodeGetParams(recorded->nodes[index], &address);
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphMemFreeNodeGetParams",
                                "cannot ask what memory node %zu gives back", index);
    }
    out_node->address = (void *)(uintptr_t)address;
    return RONDO_STATUS_OK;
}

// The node that the stream stands behind.
static rondo_status check_taken(rondo_stream *stream, uint64_t byte_count, const void *address) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__node_handle node = 0;
    rondo__memory_node taken;
    size_t count = 0;
    RETURN_IF_ERROR(rondo__cuda_get_frontier(stream, &node, 1, &count));
    if (count != 1) {
        return RONDO_FAIL(INTERNAL, "the driver recorded %zu nodes for memory", count);
    }
    RETURN_IF_ERROR(read_taking(device, (rondo__cu_graph_node)node, &taken));
    if (!taken.is_plain || taken.byte_count != byte_count || taken.address != address) {
        return RONDO_FAIL(UNSUPPORTED,
                          "the current memory pool of %s has memory of another kind than the node "
                          "had; set its default pool (cuDeviceSetMemPool) for the call",
                          stream->device->name);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_take_memory(rondo_stream *stream, uint64_t byte_count,
                                     void **out_address) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_address address = 0;
    bool was_pushed = false;
    *out_address = NULL;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    const rondo__cu_result code = device->api->cuMemAllocAsync(&address, (size_t)byte_count,
                                                               rondo__cuda_native_stream(stream));
    if (code != RONDO__CU_SUCCESS) {
        status =
            RONDO__CUDA_STREAM_FAIL(stream, code, "cuMemAllocAsync",
                                    "cannot record that %zu bytes are taken", (size_t)byte_count);
    } else {
        status = check_taken(stream, byte_count, (const void *)(uintptr_t)address);
    }
    rondo__cuda_leave(device, was_pushed);
    *out_address = status == RONDO_STATUS_OK ? (void *)(uintptr_t)address : NULL;
    return status;
}

rondo_status rondo__cuda_give_memory_back(rondo_stream *stream, void *address) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    const rondo__cu_result code = device->api->cuMemFreeAsync((rondo__cu_address)(uintptr_t)address,
                                                              rondo__cuda_native_stream(stream));
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, "cuMemFreeAsync",
                                         "cannot record that memory is given back");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}
