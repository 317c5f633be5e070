// backend/cuda/graph/cuda_line.c — see cuda_line.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_line.h"

#include "backend/cuda/driver/cuda_stream.h"
#include "backend/cuda/graph/cuda_template.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct cuda_line {
    rondo__cuda_template head;
    size_t capacity;
    bool ends_in_kernel;
} cuda_line;

rondo_status rondo__cuda_begin_line(rondo_stream *stream, rondo__template **out_template) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    *out_template = NULL;
    RETURN_IF_ERROR(rondo__cuda_api_require(
        device->api, RONDO__CUDA_CAN_CONDITIONALS | RONDO__CUDA_CAN_OVERLAP_LAUNCHES));
    if (stream->priority != 0 || (stream->is_wrapped && atomic_load(&device->has_priorities))) {
        return RONDO_FAIL_AS("rondo_stream_launch", UNSUPPORTED,
                             "kernels have the priority of the stream that records them");
    }
    cuda_line *line = rondo__calloc(1, sizeof(*line));
    if (line == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    line->head.head.device = stream->device;
    line->head.has_nodes = true;
    line->head.has_only_kernels = true;
    line->head.is_plain = true;
    bool was_pushed = false;
    rondo_status status = rondo__cuda_enter(device, &was_pushed);
    if (status == RONDO_STATUS_OK) {
        const rondo__cu_result code = device->api->cuGraphCreate(&line->head.native, 0);
        if (code != RONDO__CU_SUCCESS) {
            status = RONDO__CUDA_FAIL(device, code, "cuGraphCreate", "cannot make a graph");
        }
        rondo__cuda_leave(device, was_pushed);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(line);
        return status;
    }
    *out_template = &line->head.head;
    return RONDO_STATUS_OK;
}

// Adds the node behind the last one. One that overlaps with a kernel may start before that has
// finished, as the launch of both on a stream would have it.
static rondo_status add_node(cuda_line *line, rondo__cu_node_params *params, bool overlaps,
                             const char *name) {
    rondo__cuda_template *recorded = &line->head;
    rondo__cuda_device *device = rondo__cuda_device_of(recorded->head.device);
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(recorded->nodes, line->capacity, recorded->node_count + 1));
    rondo__cu_graph_node *node = &recorded->nodes[recorded->node_count];
    const rondo__cu_edge_data edge =
        overlaps && line->ends_in_kernel
            ? (rondo__cu_edge_data){.from_port = RONDO__CU_PORT_PROGRAMMATIC,
                                    .type = RONDO__CU_EDGE_PROGRAMMATIC}
            : (rondo__cu_edge_data){0};
    const size_t edge_count = recorded->node_count > 0 ? 1 : 0;
    const rondo__cu_result code =
        device->api->cuGraphAddNode(node, recorded->native, edge_count > 0 ? node - 1 : NULL,
                                    edge_count > 0 ? &edge : NULL, edge_count, params);
    if (code != RONDO__CU_SUCCESS) {
        const rondo_status status =
            RONDO__CUDA_FAIL(device, code, "cuGraphAddNode", "cannot add node %zu (%.48s)",
                             recorded->node_count, name);
        rondo__error_set_op(name);
        return status;
    }
    recorded->node_count++;
    line->ends_in_kernel = params->type == RONDO__CU_GRAPH_NODE_KERNEL;
    recorded->has_only_kernels = recorded->has_only_kernels && line->ends_in_kernel;
    return RONDO_STATUS_OK;
}

static rondo_status add_kernel(cuda_line *line, const rondo_launch *launch) {
    const rondo__cuda_device *device = rondo__cuda_device_of(line->head.head.device);
    if ((launch->flags & RONDO_LAUNCH_COOPERATIVE) != 0 || launch->cluster[0] != 0 ||
        launch->priority != 0) {
        return RONDO_FAIL_AS("rondo_stream_launch", UNSUPPORTED,
                             "kernel \"%.48s\" has attributes of its own",
                             launch->name != NULL ? launch->name : "");
    }
    size_t argument_bytes = launch->argument_bytes;
    // The driver only reads the parameters, though its interface takes them as void *.
    union {
        const void *read_only;
        void *address;
    } arguments = {.read_only = launch->arguments};
    void *extra[] = {RONDO__CU_LAUNCH_BUFFER_POINTER, arguments.address,
                     RONDO__CU_LAUNCH_BUFFER_SIZE, &argument_bytes, RONDO__CU_LAUNCH_END};
    const bool is_one = (launch->flags & RONDO_LAUNCH_ONE_PARAMETER) != 0 && argument_bytes > 0;
    rondo__cu_node_params params = {
        .type = RONDO__CU_GRAPH_NODE_KERNEL,
        .value.kernel = {.function = launch->function,
                         .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
                         .block = {launch->block[0], launch->block[1], launch->block[2]},
                         .shared_bytes = launch->shared_bytes,
                         .parameters = is_one ? &arguments.address : NULL,
                         .extra = is_one || argument_bytes == 0 ? NULL : extra}};
    return add_node(line, &params,
                    (launch->flags & RONDO_LAUNCH_OVERLAP) != 0 && rondo__cuda_overlaps(device),
                    launch->name != NULL ? launch->name : "");
}

static rondo__cu_copy_end get_end(const void *address) {
    return (rondo__cu_copy_end){.memory_type = RONDO__CU_MEMORY_TYPE_DEVICE,
                                .device = (rondo__cu_address)(uintptr_t)address};
}

static rondo_status add_copy(cuda_line *line, const rondo__line_node *node) {
    rondo__cu_node_params params = {
        .type = RONDO__CU_GRAPH_NODE_MEMCPY,
        .value.copy = {.context = rondo__cuda_device_of(line->head.head.device)->context,
                       .copy = {.source = get_end(node->source),
                                .destination = get_end(node->destination),
                                .width_bytes = node->bytes,
                                .height = 1,
                                .depth = 1}}};
    return add_node(line, &params, false, "memcpy");
}

static rondo_status add_fill(cuda_line *line, const rondo__line_node *node) {
    rondo__cu_node_params params = {
        .type = RONDO__CU_GRAPH_NODE_MEMSET,
        .value.fill = {.fill = {.destination = (rondo__cu_address)(uintptr_t)node->destination,
                                .element_bytes = 1,
                                .width = node->bytes,
                                .height = 1},
                       .context = rondo__cuda_device_of(line->head.head.device)->context}};
    return add_node(line, &params, false, "memset");
}

rondo_status rondo__cuda_append_node(rondo__template *template_, const rondo__line_node *node) {
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    cuda_line *line = (cuda_line *)template_;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    const rondo_status status = node->kind == RONDO__NODE_KERNEL ? add_kernel(line, node->launch)
                                : node->kind == RONDO__NODE_COPY ? add_copy(line, node)
                                                                 : add_fill(line, node);
    rondo__cuda_leave(device, was_pushed);
    return status;
}
