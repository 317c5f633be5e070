// backend/cuda/graph/cuda_use.c — what recorded work uses: the allocation behind an address, the
// arguments of a kernel node and how that is launched.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_use.h"

#include <string.h>

#include "backend/cuda/graph/cuda_template.h"
#include "base/error.h"
#include "base/hash.h"

#define HASH_NUMBERS(seed, ...) \
    rondo__hash64((seed), (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}))

// Also of the program's own and of other libraries; memory that only a graph allocates is none.
rondo_status rondo__cuda_find_allocation(rondo_device *device_, const void *address,
                                         rondo__allocation *out_allocation) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    const rondo__cuda_api *api = device->api;
    rondo__cu_address wanted = (rondo__cu_address)(uintptr_t)address;
    *out_allocation = (rondo__allocation){.id = 0};
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    uint64_t id = 0;
    rondo__cu_address begin = 0;
    size_t bytes = 0;
    rondo__cu_result code =
        api->cuPointerGetAttribute(&id, RONDO__CU_POINTER_ATTRIBUTE_BUFFER_ID, wanted);
    if (code == RONDO__CU_SUCCESS) {
        code = api->cuPointerGetAttribute(&begin, RONDO__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                          wanted);
    }
    if (code == RONDO__CU_SUCCESS) {
        code = api->cuPointerGetAttribute(&bytes, RONDO__CU_POINTER_ATTRIBUTE_RANGE_SIZE, wanted);
    }
    if (code == RONDO__CU_SUCCESS) {
        *out_allocation = (rondo__allocation){.begin = begin, .bytes = bytes, .id = id};
    } else if (!rondo__cuda_is_refusal(code)) {
        status = RONDO__CUDA_FAIL(device, code, "cuPointerGetAttribute",
                                  "cannot ask what memory %p lies in", address);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_find_owner(rondo_device *device_, const void *address,
                                    int32_t *out_ordinal) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    const rondo__cuda_api *api = device->api;
    const rondo__cu_address wanted = (rondo__cu_address)(uintptr_t)address;
    *out_ordinal = -1;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    unsigned int memory_type = RONDO__CU_MEMORY_TYPE_HOST;
    int ordinal = -1;
    rondo__cu_result code =
        api->cuPointerGetAttribute(&memory_type, RONDO__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, wanted);
    if (code == RONDO__CU_SUCCESS && memory_type == RONDO__CU_MEMORY_TYPE_DEVICE) {
        code = api->cuPointerGetAttribute(&ordinal, RONDO__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                          wanted);
    }
    rondo_status status = RONDO_STATUS_OK;
    if (code == RONDO__CU_SUCCESS) {
        *out_ordinal = ordinal;
    } else if (!rondo__cuda_is_refusal(code)) {
        status = RONDO__CUDA_FAIL(device, code, "cuPointerGetAttribute",
                                  "cannot ask whose memory %p lies in", address);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// One by one, until the driver says that there are no more: that the index is wrong. Any other
// refusal tells nothing of the arguments, and what was compared without them would seem unchanged.
static rondo_status visit_parameters(rondo__cuda_device *device,
                                     const rondo__cu_kernel_node *params,
                                     rondo__visit_parameter visit, void *user_data) {
    const rondo__cuda_api *api = device->api;
    for (size_t i = 0;; i++) {
        rondo__parameter place = {.offset = 0};
        rondo__cu_result code =
            params->function != NULL
                ? api->cuFuncGetParamInfo(params->function, i, &place.offset, &place.bytes)
                : api->cuKernelGetParamInfo(params->kernel, i, &place.offset, &place.bytes);
        if (code == RONDO__CU_ERROR_INVALID_VALUE) {
            return RONDO_STATUS_OK;
        }
        if (code != RONDO__CU_SUCCESS) {
            return RONDO__CUDA_FAIL(device, code, "cuFuncGetParamInfo",
                                    "cannot look at the arguments of a kernel node");
        }
        RETURN_IF_ERROR(visit(user_data, place, params->parameters[i]));
    }
}

static rondo_status visit_packed(void *const *extra, rondo__visit_parameter visit,
                                 void *user_data) {
    const void *packed = NULL;
    rondo__parameter place = {.offset = 0};
    for (; *extra != RONDO__CU_LAUNCH_END; extra += 2) {
        if (extra[0] == RONDO__CU_LAUNCH_BUFFER_POINTER) {
            packed = extra[1];
        } else if (extra[0] == RONDO__CU_LAUNCH_BUFFER_SIZE) {
            memcpy(&place.bytes, extra[1], sizeof(place.bytes));
        }
    }
    return packed != NULL && place.bytes > 0 ? visit(user_data, place, packed) : RONDO_STATUS_OK;
}

bool rondo__cuda_shows_parameters(const rondo__cuda_device *device,
                                  const rondo__cu_kernel_node *params) {
    return params->extra != NULL || params->parameters == NULL ||
           (device->api->capabilities & RONDO__CUDA_CAN_LIST_PARAMETERS) != 0;
}

rondo_status rondo__cuda_visit_parameters(rondo__cuda_device *device,
                                          const rondo__cu_kernel_node *params,
                                          rondo__visit_parameter visit, void *user_data) {
    if (params->extra != NULL) {
        return visit_packed(params->extra, visit, user_data);
    }
    return params->parameters != NULL && rondo__cuda_shows_parameters(device, params)
               ? visit_parameters(device, params, visit, user_data)
               : RONDO_STATUS_OK;
}

typedef struct bytes_visitor {
    rondo__visit_bytes visit;
    void *user_data;
} bytes_visitor;

static rondo_status visit_bytes(void *user_data, rondo__parameter place, const void *bytes) {
    const bytes_visitor *visitor = user_data;
    return visitor->visit(visitor->user_data, bytes, place.bytes);
}

rondo_status rondo__cuda_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data) {
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    const rondo__cuda_api *api = device->api;
    if ((api->capabilities & RONDO__CUDA_CAN_DESCRIBE_KERNELS) == 0) {
        return RONDO_STATUS_OK;
    }
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    rondo__cu_kernel_node params;
    memset(&params, 0, sizeof(params));
    rondo__cu_result code = api->cuGraphKernelNodeGetParams(recorded->nodes[index], &params);
    if (rondo__cuda_is_refusal(code)) {
        return RONDO_STATUS_OK;
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphKernelNodeGetParams",
                                "cannot look at the arguments of a kernel node");
    }
    bytes_visitor visitor = {visit, user_data};
    return rondo__cuda_visit_parameters(device, &params, visit_bytes, &visitor);
}

// ---- launch attributes ------------------------------------------------------------------------

// All that a kernel node can have, and how many bytes of a value mean something.
static const struct {
    int id;
    size_t bytes;
} attribute_rows[] = {
    {RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 12},
    {RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 4},
    {RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY, 4},
    {RONDO__CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 28},
    {RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING, 4},
    {RONDO__CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 2},
    {RONDO__CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 4},
    {RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER, 12},
    {RONDO__CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_CARVEOUT, 4},
};

static void take_attribute(rondo__launch_attributes *attributes, int id,
                           const rondo__cu_launch_attribute_value *value, size_t bytes) {
    switch (id) {
        case RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            memcpy(attributes->cluster, value->cluster, sizeof(attributes->cluster));
            break;
        case RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            attributes->is_cooperative = value->is_cooperative != 0;
            break;
        case RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY:
            attributes->priority = -(int64_t)value->priority;
            break;
        case RONDO__CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            attributes->access_policy = rondo__hash64(RONDO__HASH_SEED, value->room, bytes);
            break;
        default:
            attributes->others = rondo__hash64(attributes->others, value->room, bytes);
            break;
    }
}

rondo_status rondo__cuda_read_native_attributes(rondo__cuda_device *device,
                                                rondo__cu_graph_node node,
                                                rondo__launch_attributes *out_attributes) {
    rondo__launch_attributes attributes = {.others = RONDO__HASH_SEED};
    for (size_t i = 0; i < sizeof(attribute_rows) / sizeof(*attribute_rows); i++) {
        const int id = attribute_rows[i].id;
        rondo__cu_launch_attribute_value value;
        memset(&value, 0, sizeof(value));
        rondo__cu_result code = device->api->cuGraphKernelNodeGetAttribute(node, id, &value);
        if (code == RONDO__CU_SUCCESS) {
            take_attribute(&attributes, id, &value, attribute_rows[i].bytes);
        } else if (rondo__cuda_is_refusal(code)) {
            const int32_t refusal[] = {id, code};
            attributes.others = rondo__hash64(attributes.others, refusal, sizeof(refusal));
        } else {
            return RONDO__CUDA_FAIL(device, code, "cuGraphKernelNodeGetAttribute",
                                    "cannot look at attribute %d of a kernel node", id);
        }
    }
    *out_attributes = attributes;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_read_attributes(rondo__template *template_, size_t index,
                                         rondo__launch_attributes *out_attributes) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    return rondo__cuda_read_native_attributes(rondo__cuda_device_of(template_->device),
                                              recorded->nodes[index], out_attributes);
}

// ---- the attributes of all levels -------------------------------------------------------------

enum { FIRST_WITH_CLUSTERS = 90, FIRST_WITH_PREFERRED = 100 };

static rondo_status sum_up_level(rondo__cuda_template *level, rondo__cuda_attribute_sum *sum);

// If the driver refuses to answer, the fact counts as absent; of a plain template all are.
static rondo_status ask(const rondo__cuda_template *level, rondo__cu_graph_node node, int id,
                        rondo__cu_launch_attribute_value *out_value) {
    rondo__cuda_device *device = rondo__cuda_device_of(level->head.device);
    memset(out_value, 0, sizeof(*out_value));
    if (level->is_plain) {
        return RONDO_STATUS_OK;
    }
    rondo__cu_result code = device->api->cuGraphKernelNodeGetAttribute(node, id, out_value);
    return code == RONDO__CU_SUCCESS || rondo__cuda_is_refusal(code)
               ? RONDO_STATUS_OK
               : RONDO__CUDA_FAIL(device, code, "cuGraphKernelNodeGetAttribute",
                                  "cannot look at attribute %d of a kernel node", id);
}

static void add_cluster(rondo__cuda_attribute_sum *sum,
                        const rondo__cu_launch_attribute_value *value) {
    sum->hash = HASH_NUMBERS(sum->hash, value->cluster[0], value->cluster[1], value->cluster[2]);
}

// A call takes 0.2 us, so nothing is asked that cannot matter: there are clusters from Hopper on,
// preferred ones from Blackwell on.
static rondo_status sum_up_kernel(const rondo__cuda_template *level, rondo__cu_graph_node node,
                                  rondo__cuda_attribute_sum *sum) {
    const rondo__cuda_device *device = rondo__cuda_device_of(level->head.device);
    rondo__cu_launch_attribute_value value;
    if (device->arch >= FIRST_WITH_CLUSTERS) {
        RETURN_IF_ERROR(ask(level, node, RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
        add_cluster(sum, &value);
    }
    if (device->arch >= FIRST_WITH_PREFERRED) {
        RETURN_IF_ERROR(ask(level, node, RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER, &value));
        add_cluster(sum, &value);
    }
    if (sum->wants_priorities && sum->body_depth == 0) {
        RETURN_IF_ERROR(ask(level, node, RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
        sum->has_priorities =
            sum->has_priorities || (sum->has_kernels && value.priority != sum->first_priority);
        sum->first_priority = value.priority;
        sum->has_kernels = true;
    }
    return RONDO_STATUS_OK;
}

static rondo_status sum_up_bodies(rondo__cuda_template *level, size_t index,
                                  rondo__cuda_attribute_sum *sum) {
    rondo__template *body = NULL;
    RETURN_IF_ERROR(rondo__cuda_get_body(&level->head, index, 0, &body));
    sum->is_known = sum->is_known && body != NULL;
    ++sum->body_depth;
    for (uint32_t branch = 1; body != NULL; branch++) {
        RETURN_IF_ERROR(sum_up_level((rondo__cuda_template *)body, sum));
        RETURN_IF_ERROR(rondo__cuda_get_body(&level->head, index, branch, &body));
    }
    --sum->body_depth;
    return RONDO_STATUS_OK;
}

static rondo_status sum_up_node(rondo__cuda_template *level, size_t index,
                                rondo__cuda_attribute_sum *sum) {
    rondo__cuda_device *device = rondo__cuda_device_of(level->head.device);
    const rondo__cu_graph_node node = level->nodes[index];
    rondo__template *child = NULL;
    int type = RONDO__CU_GRAPH_NODE_KERNEL;
    if (level->has_only_kernels) {
        return sum_up_kernel(level, node, sum);
    }
    rondo__cu_result code = device->api->cuGraphNodeGetType(node, &type);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphNodeGetType", "cannot look at node %zu",
                                index);
    }
    switch (type) {
        case RONDO__CU_GRAPH_NODE_KERNEL:
            return sum_up_kernel(level, node, sum);
        case RONDO__CU_GRAPH_NODE_GRAPH:
            RETURN_IF_ERROR(rondo__cuda_get_child(&level->head, index, &child));
            return sum_up_level((rondo__cuda_template *)child, sum);
        case RONDO__CU_GRAPH_NODE_CONDITIONAL:
            return sum_up_bodies(level, index, sum);
        default:
            return RONDO_STATUS_OK;
    }
}

static rondo_status sum_up_level(rondo__cuda_template *level, rondo__cuda_attribute_sum *sum) {
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(level));
    sum->hash = HASH_NUMBERS(sum->hash, level->node_count);
    for (size_t i = 0; i < level->node_count; i++) {
        RETURN_IF_ERROR(sum_up_node(level, i, sum));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_sum_up_attributes(rondo__cuda_template *recorded, bool wants_priorities,
                                           rondo__cuda_attribute_sum *out_sum) {
    *out_sum = (rondo__cuda_attribute_sum){
        .hash = RONDO__HASH_SEED, .is_known = true, .wants_priorities = wants_priorities};
    return sum_up_level(recorded, out_sum);
}
