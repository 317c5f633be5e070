// backend/cuda/graph/cuda_template.c — templates (CUgraph) and executables (CUgraphExec).
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_template.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cuda/driver/cuda_launch.h"
#include "base/error.h"
#include "base/memory.h"

// ---- templates --------------------------------------------------------------------------------

void rondo__cuda_destroy_template(rondo__template *template_) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    rondo_error saved;
    rondo__error_save(&saved);
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    while (recorded->children != NULL) {
        rondo__cuda_template *child = recorded->children;
        recorded->children = child->next;
        rondo__cuda_destroy_template(&child->head);
    }
    if (!recorded->is_borrowed) {
        rondo__cuda_log_failure(device, device->api->cuGraphDestroy(recorded->native),
                                "cuGraphDestroy");
    }
    rondo__cuda_leave(device, was_pushed);
    rondo__cuda_free_notes(recorded->notes);
    rondo__free(recorded->nodes);
    rondo__free(recorded);
    rondo__error_restore(&saved);
}

rondo_status rondo__cuda_count_nodes(rondo__template *template_, size_t *out_count) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    // Asked anew each time: the caller may have edited the graph through its native handle.
    size_t count = 0;
    rondo__cu_result code = device->api->cuGraphGetNodes(recorded->native, NULL, &count);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphGetNodes", "cannot count the nodes");
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_fetch_nodes(rondo__cuda_template *recorded) {
    rondo__cuda_device *device = rondo__cuda_device_of(recorded->head.device);
    size_t count = 0;
    RETURN_IF_ERROR(rondo__cuda_count_nodes(&recorded->head, &count));
    if (recorded->has_nodes && recorded->node_count == count) {
        return RONDO_STATUS_OK;
    }
    rondo__cu_graph_node *nodes = NULL;
    if (count > 0) {
        nodes = rondo__calloc(count, sizeof(*nodes));
        if (nodes == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        rondo__cu_result code = device->api->cuGraphGetNodes(recorded->native, nodes, &count);
        if (code != RONDO__CU_SUCCESS) {
            rondo__free(nodes);
            return RONDO__CUDA_FAIL(device, code, "cuGraphGetNodes", "cannot list the nodes");
        }
    }
    rondo__free(recorded->nodes);
    recorded->has_only_kernels = false;
    recorded->nodes = nodes;
    recorded->node_count = count;
    recorded->has_nodes = true;
    return RONDO_STATUS_OK;
}

// Details are for dumps: what the driver cannot tell is left empty. Each returns what it said.
static rondo__cu_result describe_kernel(const rondo__cuda_api *api, rondo__cu_graph_node node,
                                        rondo__node_info *info) {
    rondo__cu_kernel_node params;
    memset(&params, 0, sizeof(params));
    if ((api->capabilities & RONDO__CUDA_CAN_DESCRIBE_KERNELS) == 0) {
        return RONDO__CU_SUCCESS;
    }
    rondo__cu_result code = api->cuGraphKernelNodeGetParams(node, &params);
    if (code != RONDO__CU_SUCCESS) {
        return code;
    }
    memcpy(info->grid, params.grid, sizeof(info->grid));
    memcpy(info->block, params.block, sizeof(info->block));
    info->shared_bytes = params.shared_bytes;
    if ((api->capabilities & RONDO__CUDA_CAN_NAME_FUNCTIONS) == 0) {
        return RONDO__CU_SUCCESS;
    }
    const char *name = NULL;
    code = params.function != NULL ? api->cuFuncGetName(&name, params.function)
                                   : api->cuKernelGetName(&name, params.kernel);
    if (code == RONDO__CU_SUCCESS && name != NULL) {
        info->name = name;
    }
    return code;
}

// A copy of the "default" kind does not say what its ends are, and of memory that a capture takes
// (cudaMallocAsync) the driver (580) knows as little as of pageable host memory. Nobody must take
// such an address for one that the processor can read.
static rondo__cu_result ask_for_host_memory(const rondo__cuda_api *api,
                                            const rondo__cu_copy_end *end, bool *out_is_host,
                                            bool *out_is_unknown) {
    unsigned int memory_type = (unsigned int)end->memory_type;
    rondo__cu_result code = RONDO__CU_SUCCESS;
    if (end->memory_type == RONDO__CU_MEMORY_TYPE_UNIFIED) {
        memory_type = RONDO__CU_MEMORY_TYPE_DEVICE;
        code = api->cuPointerGetAttribute(&memory_type, RONDO__CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                          end->device);
    }
    const bool is_refused = rondo__cuda_is_refusal(code);
    *out_is_host = !is_refused && memory_type == RONDO__CU_MEMORY_TYPE_HOST;
    *out_is_unknown = is_refused;
    return is_refused ? RONDO__CU_SUCCESS : code;
}

static const void *get_copy_address(const rondo__cu_copy_end *end) {
    return end->memory_type == RONDO__CU_MEMORY_TYPE_HOST ? end->host
                                                          : (const void *)(uintptr_t)end->device;
}

static rondo__cu_result describe_copy(const rondo__cuda_api *api, rondo__cu_graph_node node,
                                      rondo__node_info *info) {
    rondo__cu_copy_node params;
    memset(&params, 0, sizeof(params));
    rondo__cu_result code = api->cuGraphMemcpyNodeGetParams(node, &params);
    if (code != RONDO__CU_SUCCESS) {
        return code;
    }
    info->source = get_copy_address(&params.source);
    info->destination = get_copy_address(&params.destination);
    size_t rows = params.height > 0 ? params.height : 1;
    size_t slices = params.depth > 0 ? params.depth : 1;
    info->byte_count = (uint64_t)params.width_bytes * rows * slices;
    info->width = params.width_bytes;
    info->height = rows;
    info->depth = slices;
    bool is_from_host = false;
    bool is_to_host = false;
    code = ask_for_host_memory(api, &params.source, &is_from_host, &info->is_source_unknown);
    if (code == RONDO__CU_SUCCESS && !is_from_host) {
        code = ask_for_host_memory(api, &params.destination, &is_to_host,
                                   &info->is_destination_unknown);
    }
    info->copy_kind = is_from_host ? RONDO_COPY_HOST_TO_DEVICE
                      : is_to_host ? RONDO_COPY_DEVICE_TO_HOST
                                   : RONDO_COPY_DEVICE_TO_DEVICE;
    return code;
}

static rondo__cu_result describe_fill(const rondo__cuda_api *api, rondo__cu_graph_node node,
                                      rondo__node_info *info) {
    rondo__cu_fill_node params;
    memset(&params, 0, sizeof(params));
    rondo__cu_result code = api->cuGraphMemsetNodeGetParams(node, &params);
    if (code != RONDO__CU_SUCCESS) {
        return code;
    }
    info->destination = (const void *)(uintptr_t)params.destination;
    info->fill_value = params.value;
    size_t rows = params.height > 0 ? params.height : 1;
    info->byte_count = (uint64_t)params.width * params.element_bytes * rows;
    info->element_bytes = params.element_bytes;
    info->width = params.width;
    info->height = rows;
    info->pitch_bytes = params.pitch_bytes;
    return RONDO__CU_SUCCESS;
}

static rondo__cu_result describe_event(const rondo__cuda_api *api, rondo__cu_graph_node node,
                                       rondo__node_info *info) {
    rondo__cu_event event = NULL;
    rondo__cu_result code = info->kind == RONDO__NODE_EVENT_RECORD
                                ? api->cuGraphEventRecordNodeGetEvent(node, &event)
                                : api->cuGraphEventWaitNodeGetEvent(node, &event);
    if (code == RONDO__CU_SUCCESS) {
        info->event = event;
    }
    return code;
}

static rondo__cu_result describe_host(const rondo__cuda_api *api, rondo__cu_graph_node node,
                                      rondo__node_info *info) {
    rondo__cu_host_node params;
    memset(&params, 0, sizeof(params));
    rondo__cu_result code = api->cuGraphHostNodeGetParams(node, &params);
    if (code == RONDO__CU_SUCCESS) {
        info->name = rondo__cuda_get_host_call_name(&params);
    }
    return code;
}

static rondo__node_kind get_kind(int type) {
    switch (type) {
        case RONDO__CU_GRAPH_NODE_KERNEL:
            return RONDO__NODE_KERNEL;
        case RONDO__CU_GRAPH_NODE_MEMCPY:
            return RONDO__NODE_COPY;
        case RONDO__CU_GRAPH_NODE_MEMSET:
            return RONDO__NODE_FILL;
        case RONDO__CU_GRAPH_NODE_HOST:
            return RONDO__NODE_HOST;
        case RONDO__CU_GRAPH_NODE_GRAPH:
            return RONDO__NODE_CHILD;
        case RONDO__CU_GRAPH_NODE_EMPTY:
            return RONDO__NODE_EMPTY;
        case RONDO__CU_GRAPH_NODE_WAIT_EVENT:
            return RONDO__NODE_EVENT_WAIT;
        case RONDO__CU_GRAPH_NODE_EVENT_RECORD:
            return RONDO__NODE_EVENT_RECORD;
        case RONDO__CU_GRAPH_NODE_CONDITIONAL:
            return RONDO__NODE_CONDITIONAL;
        default:
            return RONDO__NODE_OTHER;
    }
}

rondo_status rondo__cuda_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    size_t kernel_count = 0;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    for (size_t i = 0; i < recorded->node_count; i++) {
        int type = 0;
        rondo__cu_result code = device->api->cuGraphNodeGetType(recorded->nodes[i], &type);
        if (code != RONDO__CU_SUCCESS) {
            return RONDO__CUDA_FAIL(device, code, "cuGraphNodeGetType", "cannot look at node %zu",
                                    i);
        }
        ++counts[get_kind(type)];
        kernel_count += type == RONDO__CU_GRAPH_NODE_KERNEL;
        recorded->takes_memory = recorded->takes_memory || type == RONDO__CU_GRAPH_NODE_MEM_ALLOC;
    }
    recorded->has_only_kernels = kernel_count == recorded->node_count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_describe_native(rondo__cuda_device *device, rondo__cu_graph_node node,
                                         rondo__node_info *out_info) {
    const rondo__cuda_api *api = device->api;
    int type = 0;
    rondo__cu_result code = api->cuGraphNodeGetType(node, &type);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphNodeGetType", "cannot look at a node");
    }
    rondo__node_info info = {.kind = get_kind(type), .name = "", .native = node};
    info.is_memory =
        type == RONDO__CU_GRAPH_NODE_MEM_ALLOC || type == RONDO__CU_GRAPH_NODE_MEM_FREE;
    if (info.kind == RONDO__NODE_KERNEL) {
        code = describe_kernel(api, node, &info);
    } else if (info.kind == RONDO__NODE_COPY) {
        code = describe_copy(api, node, &info);
    } else if (info.kind == RONDO__NODE_FILL) {
        code = describe_fill(api, node, &info);
    } else if (info.kind == RONDO__NODE_HOST) {
        code = describe_host(api, node, &info);
    } else if (info.kind == RONDO__NODE_EVENT_RECORD || info.kind == RONDO__NODE_EVENT_WAIT) {
        code = describe_event(api, node, &info);
    }
    if (code != RONDO__CU_SUCCESS && !rondo__cuda_is_refusal(code)) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphNodeGetParams", "cannot describe a node");
    }
    *out_info = info;
    return RONDO_STATUS_OK;
}

static rondo__cuda_note *find_note(rondo__cuda_note *notes, rondo__cu_graph_node node) {
    while (notes != NULL && notes->node != node) {
        notes = notes->next;
    }
    return notes;
}

static rondo__cuda_note *get_notes(const rondo__cuda_template *recorded) {
    return recorded->root != NULL ? recorded->root->notes : recorded->notes;
}

void rondo__cuda_describe_conditional(rondo__cuda_note *notes, rondo__cu_graph_node node,
                                      rondo__node_info *info) {
    static const char *const names[] = {
        [RONDO_SCOPE_IF] = "if",
        [RONDO_SCOPE_IF_ELSE] = "if_else",
        [RONDO_SCOPE_SWITCH] = "switch",
        [RONDO_SCOPE_WHILE] = "while",
    };
    const rondo__cuda_note *note = find_note(notes, node);
    if (note != NULL) {
        info->name = names[note->kind];
        info->predicate = note->predicate;
        info->branch_count = note->branch_count;
        info->row_count = note->row_count;
        info->row_index = note->row_index;
        info->row_kind = note->row_kind;
    }
}

rondo_status rondo__cuda_get_body(rondo__template *template_, size_t index, uint32_t branch,
                                  rondo__template **out_body) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    *out_body = NULL;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    rondo__cuda_note *note = index < recorded->node_count
                                 ? find_note(get_notes(recorded), recorded->nodes[index])
                                 : NULL;
    if (note != NULL && branch < note->branch_count) {
        *out_body = &note->bodies[branch].head;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    if (index >= recorded->node_count) {
        return RONDO_FAIL_AS("rondo_graph_get_node", INVALID,
                             "there is no node %zu, the graph has %zu", index,
                             recorded->node_count);
    }
    RETURN_IF_ERROR(rondo__cuda_describe_native(rondo__cuda_device_of(template_->device),
                                                recorded->nodes[index], out_info));
    if (out_info->kind == RONDO__NODE_CONDITIONAL) {
        rondo__cuda_describe_conditional(get_notes(recorded), recorded->nodes[index], out_info);
    }
    return RONDO_STATUS_OK;
}

// ---- edges ------------------------------------------------------------------------------------

// A node handle and its index, to look indices up by handle.
typedef struct node_place {
    rondo__cu_graph_node node;
    size_t index;
} node_place;

static int compare_places(const void *a, const void *b) {
    uintptr_t left = (uintptr_t)((const node_place *)a)->node;
    uintptr_t right = (uintptr_t)((const node_place *)b)->node;
    return left < right ? -1 : left > right;
}

static rondo__cu_result get_edges(const rondo__cuda_api *api, rondo__cu_graph graph,
                                  rondo__cu_graph_node *from, rondo__cu_graph_node *to,
                                  rondo__cu_edge_data *data, size_t *in_out_count) {
    if ((api->capabilities & RONDO__CUDA_CAN_LIST_TYPED_EDGES) != 0) {
        return api->cuGraphGetEdges_v2(graph, from, to, data, in_out_count);
    }
    return api->cuGraphGetEdges(graph, from, to, in_out_count);
}

// Room for all edges, in one block: handles from, handles to, and the edge data.
typedef struct edge_room {
    rondo__cu_graph_node *from;
    rondo__cu_graph_node *to;
    rondo__cu_edge_data *data;
    node_place *places;
} edge_room;

static void deinit_room(edge_room *room) {
    rondo__free(room->from);
    rondo__free(room->to);
    rondo__free(room->data);
    rondo__free(room->places);
}

static rondo_status init_room(edge_room *room, size_t edge_count, size_t node_count) {
    room->from = rondo__calloc(edge_count, sizeof(*room->from));
    room->to = rondo__calloc(edge_count, sizeof(*room->to));
    room->data = rondo__calloc(edge_count, sizeof(*room->data));
    room->places = rondo__calloc(node_count, sizeof(*room->places));
    if (room->from == NULL || room->to == NULL || room->data == NULL || room->places == NULL) {
        deinit_room(room);
        return RONDO_STATUS_NO_MEMORY;
    }
    return RONDO_STATUS_OK;
}

static size_t find_index(const edge_room *room, size_t node_count, rondo__cu_graph_node node) {
    node_place wanted = {.node = node};
    const node_place *found =
        bsearch(&wanted, room->places, node_count, sizeof(*room->places), compare_places);
    return found != NULL ? found->index : SIZE_MAX;
}

rondo_status rondo__cuda_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    const rondo__cuda_api *api = device->api;
    *out_count = 0;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    size_t count = 0;
    rondo__cu_result code = get_edges(api, recorded->native, NULL, NULL, NULL, &count);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphGetEdges", "cannot count the edges");
    }
    if (count == 0 || out_pairs == NULL || capacity == 0) {
        *out_count = count;
        return RONDO_STATUS_OK;
    }
    edge_room room;
    RETURN_IF_ERROR(init_room(&room, count, recorded->node_count));
    rondo_status status = RONDO_STATUS_OK;
    code = get_edges(api, recorded->native, room.from, room.to, room.data, &count);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuGraphGetEdges", "cannot list the edges");
        goto free_room;
    }
    for (size_t i = 0; i < recorded->node_count; i++) {
        room.places[i] = (node_place){.node = recorded->nodes[i], .index = i};
    }
    qsort(room.places, recorded->node_count, sizeof(*room.places), compare_places);
    for (size_t i = 0; i < count && i < capacity; i++) {
        out_pairs[2 * i] = find_index(&room, recorded->node_count, room.from[i]);
        out_pairs[2 * i + 1] = find_index(&room, recorded->node_count, room.to[i]);
        if (out_pairs[2 * i] == SIZE_MAX || out_pairs[2 * i + 1] == SIZE_MAX) {
            status =
                RONDO_FAIL_AS("rondo_graph_list_edges", STATE,
                              "the graph was edited through its native handle while it was listed");
            goto free_room;
        }
    }
    *out_count = count;

free_room:
    deinit_room(&room);
    return status;
}

rondo_status rondo__cuda_list_edge_kinds(rondo__template *template_, uint8_t *out_kinds,
                                         size_t capacity, size_t *out_count) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    *out_count = 0;
    size_t count = 0;
    rondo__cu_result code = get_edges(device->api, recorded->native, NULL, NULL, NULL, &count);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphGetEdges", "cannot count the edges");
    }
    if (count == 0) {
        return RONDO_STATUS_OK;
    }
    edge_room room;
    RETURN_IF_ERROR(init_room(&room, count, 0));
    rondo_status status = RONDO_STATUS_OK;
    code = get_edges(device->api, recorded->native, room.from, room.to, room.data, &count);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuGraphGetEdges", "cannot list the edges");
        goto free_room;
    }
    for (size_t i = 0; i < count && i < capacity; i++) {
        out_kinds[i] = room.data[i].type == RONDO__CU_EDGE_PROGRAMMATIC;
    }
    *out_count = count;

free_room:
    deinit_room(&room);
    return status;
}

void *rondo__cuda_get_native_template(rondo__template *template_) {
    return ((rondo__cuda_template *)template_)->native;
}

// ---- graphs inside nodes ----------------------------------------------------------------------

// A view of a graph that the driver owns and that lives inside a node of `parent`, which keeps it.
static rondo_status borrow_template(rondo__cuda_template *parent, rondo__cu_graph native,
                                    rondo__template **out_template) {
    *out_template = NULL;
    for (rondo__cuda_template *child = parent->children; child != NULL; child = child->next) {
        if (child->native == native) {
            *out_template = &child->head;
            return RONDO_STATUS_OK;
        }
    }
    rondo__cuda_template *child = rondo__calloc(1, sizeof(*child));
    if (child == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    child->head.device = parent->head.device;
    child->native = native;
    child->is_borrowed = true;
    child->next = parent->children;
    parent->children = child;
    *out_template = &child->head;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_get_child(rondo__template *template_, size_t index,
                                   rondo__template **out_child) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    *out_child = NULL;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    if (index >= recorded->node_count) {
        return RONDO_FAIL(INVALID, "there is no node %zu, the graph has %zu", index,
                          recorded->node_count);
    }
    rondo__cu_graph native = NULL;
    rondo__cu_result code =
        device->api->cuGraphChildGraphNodeGetGraph(recorded->nodes[index], &native);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphChildGraphNodeGetGraph",
                                "cannot look into node %zu", index);
    }
    return borrow_template(recorded, native, out_child);
}

rondo_status rondo__cuda_list_handles(rondo__template *template_, rondo__node_handle *handles,
                                      size_t count) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    if (count == 0) {
        return RONDO_STATUS_OK;
    }
    rondo__cu_graph_node *nodes = rondo__calloc(count, sizeof(*nodes));
    if (nodes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_result code = device->api->cuGraphGetNodes(recorded->native, nodes, &count);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuGraphGetNodes", "cannot list the nodes");
    } else {
        for (size_t i = 0; i < count; i++) {
            handles[i] = (rondo__node_handle)nodes[i];
        }
    }
    rondo__free(nodes);
    return status;
}

// ---- notes ------------------------------------------------------------------------------------

void rondo__cuda_free_notes(rondo__cuda_note *notes) {
    while (notes != NULL) {
        rondo__cuda_note *next = notes->next;
        for (uint32_t i = 0; i < notes->branch_count; i++) {
            rondo__cuda_template *body = &notes->bodies[i];
            rondo__free(body->nodes);
            while (body->children != NULL) {
                rondo__cuda_template *child = body->children;
                body->children = child->next;
                rondo__cuda_destroy_template(&child->head);
            }
        }
        rondo__free(notes);
        notes = next;
    }
}
