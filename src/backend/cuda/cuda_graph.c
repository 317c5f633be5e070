// Templates (CUgraph) and executables (CUgraphExec).
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_device.h"
#include "base/logging.h"
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
    // Asked anew each time: the caller may have edited the graph through its raw handle.
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

bool rondo__cuda_is_refusal(rondo__cu_result code) {
    return code == RONDO__CU_ERROR_INVALID_VALUE || code == RONDO__CU_ERROR_INVALID_HANDLE ||
           code == RONDO__CU_ERROR_NOT_SUPPORTED;
}

static rondo__cu_result ask_for_host_memory(const rondo__cuda_api *api,
                                            const rondo__cu_copy_end *end, bool *out_is_host) {
    unsigned int memory_type = (unsigned int)end->memory_type;
    rondo__cu_result code = RONDO__CU_SUCCESS;
    if (end->memory_type == RONDO__CU_MEMORY_TYPE_UNIFIED) {
        memory_type = RONDO__CU_MEMORY_TYPE_HOST;
        code = api->cuPointerGetAttribute(&memory_type, RONDO__CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                          end->device);
    }
    *out_is_host = memory_type == RONDO__CU_MEMORY_TYPE_HOST;
    return rondo__cuda_is_refusal(code) ? RONDO__CU_SUCCESS : code;
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
    code = ask_for_host_memory(api, &params.source, &is_from_host);
    if (code == RONDO__CU_SUCCESS && !is_from_host) {
        code = ask_for_host_memory(api, &params.destination, &is_to_host);
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
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    for (size_t i = 0; i < recorded->node_count; i++) {
        int type = 0;
        rondo__cu_result code = device->api->cuGraphNodeGetType(recorded->nodes[i], &type);
        if (code != RONDO__CU_SUCCESS) {
            return RONDO__CUDA_FAIL(device, code, "cuGraphNodeGetType", "cannot look at node %zu",
                                    i);
        }
        ++counts[get_kind(type)];
    }
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
                              "the graph was edited through its raw handle while it was listed");
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

// ---- executables ------------------------------------------------------------------------------

static const char *describe_instantiate_result(int32_t result) {
    switch (result) {
        case RONDO__CU_INSTANTIATE_INVALID_STRUCTURE:
            return "the structure is invalid, a cycle for example";
        case RONDO__CU_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED:
            return "a node does what the device cannot do";
        case RONDO__CU_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED:
            return "its nodes belong to more than one device";
        default:
            return "the driver refused it";
    }
}

// The driver's word on the node at fault, as the record's op.
static void blame_node(rondo__cuda_template *recorded, rondo__cu_graph_node node) {
    const rondo__cuda_api *api = rondo__cuda_device_of(recorded->head.device)->api;
    int type = 0;
    if (node == NULL || api->cuGraphNodeGetType(node, &type) != RONDO__CU_SUCCESS) {
        return;
    }
    rondo__node_info info = {.name = ""};
    if (type == RONDO__CU_GRAPH_NODE_KERNEL) {
        (void)describe_kernel(api, node, &info);
    } else if (type == RONDO__CU_GRAPH_NODE_HOST) {
        (void)describe_host(api, node, &info);
    }
    if (info.name[0] != '\0') {
        rondo__error_set_op(info.name);
    }
}

static rondo_status instantiate_graph(rondo__cuda_template *recorded,
                                      rondo__cu_graph_exec *out_exec) {
    rondo__cuda_device *device = rondo__cuda_device_of(recorded->head.device);
    const rondo__cuda_api *api = device->api;
    if ((api->capabilities & RONDO__CUDA_CAN_BLAME_INSTANTIATION) == 0) {
        rondo__cu_result code = api->cuGraphInstantiateWithFlags(out_exec, recorded->native, 0);
        if (code != RONDO__CU_SUCCESS) {
            return RONDO__CUDA_FAIL(device, code, "cuGraphInstantiateWithFlags",
                                    "cannot instantiate the graph");
        }
        return RONDO_STATUS_OK;
    }
    rondo__cu_instantiate_params params = {.result = RONDO__CU_INSTANTIATE_SUCCESS};
    rondo__cu_result code = api->cuGraphInstantiateWithParams(out_exec, recorded->native, &params);
    if (code != RONDO__CU_SUCCESS) {
        rondo_status status = RONDO__CUDA_FAIL(device, code, "cuGraphInstantiateWithParams",
                                               "cannot instantiate the graph, %s",
                                               describe_instantiate_result(params.result));
        blame_node(recorded, params.error_node);
        return status;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    *out_executable = NULL;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cuda_executable *executable = rondo__calloc(1, sizeof(*executable));
    if (executable == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto leave;
    }
    executable->head.device = template_->device;
    executable->launch = device->api->cuGraphLaunch;
    // The end of a capture does this, perhaps beside the global capture of another thread.
    int mode = rondo__cuda_relax(device);
    status = instantiate_graph(recorded, &executable->native);
    rondo__cuda_restore(device, mode);
    if (status != RONDO_STATUS_OK) {
        goto free_executable;
    }
    *out_executable = &executable->head;
    goto leave;

free_executable:
    rondo__free(executable);
leave:
    rondo__cuda_leave(device, was_pushed);
    return status;
}

static const char *describe_update_result(int32_t result) {
    switch (result) {
        case RONDO__CU_UPDATE_TOPOLOGY_CHANGED:
            return "nodes or edges changed";
        case RONDO__CU_UPDATE_NODE_TYPE_CHANGED:
            return "a node is of another type";
        case RONDO__CU_UPDATE_FUNCTION_CHANGED:
        case RONDO__CU_UPDATE_UNSUPPORTED_FUNCTION_CHANGE:
            return "a node runs another function";
        case RONDO__CU_UPDATE_PARAMETERS_CHANGED:
            return "parameters changed that cannot be patched";
        case RONDO__CU_UPDATE_ATTRIBUTES_CHANGED:
            return "attributes of a node changed";
        case RONDO__CU_UPDATE_NOT_SUPPORTED:
            return "a node cannot be patched at all";
        default:
            return "the driver does not say why";
    }
}

rondo_status rondo__cuda_update(rondo__executable *executable_, rondo__template *template_,
                                bool *out_was_updated) {
    rondo__cuda_executable *executable = (rondo__cuda_executable *)executable_;
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(executable_->device);
    const rondo__cuda_api *api = device->api;
    *out_was_updated = false;
    if ((api->capabilities & RONDO__CUDA_CAN_UPDATE_EXECUTABLES) == 0) {
        return RONDO_STATUS_OK;  // not possible here; the caller instantiates anew
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_update_result result = {.result = RONDO__CU_UPDATE_SUCCESS};
    rondo__cu_result code = api->cuGraphExecUpdate(executable->native, recorded->native, &result);
    if (code == RONDO__CU_SUCCESS) {
        *out_was_updated = true;
    } else if (code == RONDO__CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE) {
        RONDO_LOG_DEBUG_F("%s: an executable could not be updated: %s", device->head.name,
                          describe_update_result(result.result));
    } else {
        status =
            RONDO__CUDA_FAIL(device, code, "cuGraphExecUpdate", "cannot update the executable");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_upload(rondo__executable *executable_, rondo_stream *stream) {
    rondo__cuda_executable *executable = (rondo__cuda_executable *)executable_;
    rondo__cuda_device *device = rondo__cuda_device_of(executable_->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_result code =
        device->api->cuGraphUpload(executable->native, rondo__cuda_native_stream(stream));
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, "cuGraphUpload", "cannot upload the graph");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// The driver would record a replay into a capture as a child graph. Rondo does not: who wants that
// says so with rondo_graph_record, which also keeps what the graph needs.
static rondo_status check_not_recording(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(rondo__cuda_get_capture_state(stream, &state));
    if (state == RONDO__CAPTURE_NONE) {
        ((rondo__cuda_stream *)stream)->capture = 0;  // ended; not asked again
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(
        "rondo_graph_replay", STATE,
        "stream %u records, and a replay is not recorded; rondo_graph_record puts the "
        "graph's work into that capture",
        (unsigned)stream->number);
}

// A launch that did not succeed, or needs the context because the stream is a default one.
static rondo_status replay_in_context(rondo__cuda_executable *executable, rondo_stream *stream,
                                      rondo__cu_result code) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    if (rondo__cuda_wants_context(code)) {
        code = executable->launch(executable->native, rondo__cuda_native_stream(stream));
    }
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, "cuGraphLaunch", "cannot replay the graph");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// The hot path: the launch itself, as a stream knows its context. Only a stream that has been part
// of a capture of Rondo's is asked whether it records.
rondo_status rondo__cuda_replay(rondo__executable *executable_, rondo_stream *stream) {
    rondo__cuda_executable *executable = (rondo__cuda_executable *)executable_;
    if (((const rondo__cuda_stream *)stream)->capture != 0) {
        RETURN_IF_ERROR(check_not_recording(stream));
    }
    rondo__cu_result code = RONDO__CU_ERROR_INVALID_CONTEXT;
    if (rondo__cuda_knows_context(stream)) {
        code = executable->launch(executable->native, rondo__cuda_native_stream(stream));
        if (__builtin_expect(code == RONDO__CU_SUCCESS, 1)) {
            return RONDO_STATUS_OK;
        }
    }
    return replay_in_context(executable, stream, code);
}

void rondo__cuda_destroy_executable(rondo__executable *executable_) {
    rondo__cuda_executable *executable = (rondo__cuda_executable *)executable_;
    rondo__cuda_device *device = rondo__cuda_device_of(executable_->device);
    rondo_error saved;
    rondo__error_save(&saved);
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    // Of an executable that still runs, this breaks the captures that forbid unsafe calls.
    int mode = rondo__cuda_relax(device);
    rondo__cuda_log_failure(device, device->api->cuGraphExecDestroy(executable->native),
                            "cuGraphExecDestroy");
    rondo__cuda_restore(device, mode);
    rondo__cuda_leave(device, was_pushed);
    rondo__free(executable);
    rondo__error_restore(&saved);
}

void *rondo__cuda_get_native_executable(rondo__executable *executable) {
    return ((rondo__cuda_executable *)executable)->native;
}
