// backend/cuda/graph/cuda_patch.c — nodes of an executable that do something else from the next
// replay on.
//
// The driver keeps replays in flight as they were. What it does not keep are the arguments of host
// functions: a patched host node gets a block of its own, which is needed until the replays have
// run that were put on a stream while it was the node's. So each block counts its runs:
//
//   patch, replay, replay, patch, replay         block 1: free after 2 runs; block 2 is the node's
//
// Replays run one after the other, so blocks become free in the order in which they ceased to be a
// node's: those wait in a row, of which only the first is looked at.
//
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_patch.h"

#include <string.h>

#include "backend/cuda/driver/cuda_launch.h"
#include "backend/cuda/graph/cuda_template.h"
#include "backend/cuda/graph/cuda_use.h"
#include "base/error.h"
#include "base/memory.h"

enum { SCRATCH_BYTES = 256 };

// A block of a host node, and how often it has to run before it is free.
typedef struct rondo__cuda_patched_call {
    struct rondo__cuda_patched_call *next;  // that ceased to be a node's after this one
    rondo__cuda_host_call *call;
    uint64_t first_replay;
    uint64_t run_count;  // known since it is no node's any more
} patched_call;

// ---- reading ----------------------------------------------------------------------------------

static rondo_status take_bytes(rondo__node_image *image, size_t offset, const void *bytes,
                               size_t byte_count) {
    if (offset + byte_count > image->argument_bytes) {
        unsigned char *room = rondo__malloc_aligned(offset + byte_count, 16);
        if (room == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        memset(room, 0, offset + byte_count);
        if (image->argument_bytes > 0) {
            memcpy(room, image->arguments, image->argument_bytes);
        }
        rondo__free(image->arguments);
        image->arguments = room;
        image->argument_bytes = offset + byte_count;
    }
    memcpy(image->arguments + offset, bytes, byte_count);
    return RONDO_STATUS_OK;
}

// The image of a kernel that is being read.
typedef struct reading {
    rondo__node_image *image;
    size_t parameter_capacity;
    bool is_packed;
} reading;

static rondo_status take_parameter(void *user_data, rondo__parameter place, const void *bytes) {
    reading *r = user_data;
    rondo__node_image *image = r->image;
    if (!r->is_packed) {
        rondo_status status = RONDO__ARRAY_RESERVE(image->parameters, r->parameter_capacity,
                                                   image->parameter_count + 1);
        RETURN_IF_ERROR(status);
        image->parameters[image->parameter_count++] = place;
    }
    return take_bytes(image, place.offset, bytes, place.bytes);
}

// Where the driver finds the parameters when the node is patched; they stay there.
static rondo_status point_to_parameters(rondo__node_image *image) {
    image->parameter_addresses =
        rondo__calloc(image->parameter_count + 1, sizeof(*image->parameter_addresses));
    if (image->parameter_addresses == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < image->parameter_count; i++) {
        image->parameter_addresses[i] = image->arguments + image->parameters[i].offset;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_kernel(rondo__cuda_device *device, rondo__cu_graph_node node,
                                rondo__node_image *image) {
    const rondo__cuda_api *api = device->api;
    rondo__cu_kernel_node params;
    memset(&params, 0, sizeof(params));
    if ((api->capabilities & RONDO__CUDA_CAN_PATCH_KERNELS) == 0 ||
        (api->capabilities & RONDO__CUDA_CAN_DESCRIBE_KERNELS) == 0) {
        image->fixed = "the driver is older than CUDA 12.0, which brought the patching of kernels";
        image->is_opaque = true;
        return RONDO_STATUS_OK;
    }
    rondo__cu_result code = api->cuGraphKernelNodeGetParams(node, &params);
    if (rondo__cuda_is_refusal(code)) {
        image->fixed = "the driver does not tell what the kernel is";
        image->is_opaque = true;
        return RONDO_STATUS_OK;
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphKernelNodeGetParams",
                                "cannot look at a kernel node");
    }
    image->function = params.function;
    image->kernel = params.kernel;
    image->context = params.context;
    image->is_opaque = !rondo__cuda_shows_parameters(device, &params);
    if (params.context != NULL && params.context != device->context) {
        image->fixed = "a kernel of a green context, of which the driver patches none";
        image->is_switchable = true;
    }
    RETURN_IF_ERROR(rondo__cuda_read_native_attributes(device, node, &image->attributes));
    reading r = {.image = image, .is_packed = params.extra != NULL};
    RETURN_IF_ERROR(rondo__cuda_visit_parameters(device, &params, take_parameter, &r));
    return point_to_parameters(image);
}

static rondo_status read_host(rondo__cuda_device *device, rondo__cu_graph_node node,
                              rondo__node_image *image) {
    rondo__cu_host_node params = {.function = NULL};
    rondo__cu_result code = device->api->cuGraphHostNodeGetParams(node, &params);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphHostNodeGetParams",
                                "cannot look at a host node");
    }
    const rondo__cuda_host_call *call = rondo__cuda_find_call(&params);
    if (call == NULL) {
        image->fixed =
            "a host function that the program's own driver call recorded, whose "
            "arguments that only the program knows";
        image->is_opaque = true;
        return RONDO_STATUS_OK;
    }
    union {
        rondo_host_function function;
        void *address;
    } target = {.function = rondo__cuda_get_call_function(call)};
    image->function = target.address;
    size_t bytes = 0;
    const void *arguments = rondo__cuda_get_call_arguments(call, &bytes);
    return bytes > 0 ? take_bytes(image, 0, arguments, bytes) : RONDO_STATUS_OK;
}

static rondo_status read_copy(rondo__cuda_device *device, rondo__cu_graph_node node,
                              rondo__node_image *image) {
    rondo__cu_copy_node params;
    memset(&params, 0, sizeof(params));
    rondo__cu_result code = device->api->cuGraphMemcpyNodeGetParams(node, &params);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphMemcpyNodeGetParams",
                                "cannot look at a copy node");
    }
    if (params.height > 1 || params.depth > 1) {
        image->fixed = "a copy of several rows, of which the driver patches none";
    } else if (params.source.memory_type == RONDO__CU_MEMORY_TYPE_ARRAY ||
               params.destination.memory_type == RONDO__CU_MEMORY_TYPE_ARRAY) {
        image->fixed = "a copy from or to an array";
    }
    image->is_opaque = image->info.is_source_unknown || image->info.is_destination_unknown;
    image->is_switchable = true;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_read_node(rondo__template *template_, size_t index,
                                   rondo__node_image *out_image) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    *out_image = (rondo__node_image){.index = index, .is_enabled = true};
    // Not asked anew for each node: the driver counts them one by one.
    if (!recorded->has_nodes || index >= recorded->node_count) {
        RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    }
    rondo__cu_graph_node node = recorded->nodes[index];
    RETURN_IF_ERROR(rondo__cuda_describe_native(device, node, &out_image->info));
    if (out_image->info.kind == RONDO__NODE_CONDITIONAL) {
        RETURN_IF_ERROR(rondo__cuda_describe_node(template_, index, &out_image->info));
    }
    rondo_status status = RONDO_STATUS_OK;
    switch (out_image->info.kind) {
        case RONDO__NODE_KERNEL:
            status = read_kernel(device, node, out_image);
            break;
        case RONDO__NODE_HOST:
            status = read_host(device, node, out_image);
            break;
        case RONDO__NODE_COPY:
            status = read_copy(device, node, out_image);
            break;
        case RONDO__NODE_FILL:
            out_image->has_rows = out_image->info.height > 1;
            out_image->is_switchable = true;
            out_image->fixed = out_image->has_rows ? "a fill of several rows, of which the driver "
                                                     "patches value and destination only"
                                                   : NULL;
            break;
        default:
            out_image->fixed = "nodes of this kind have nothing that can change";
            break;
    }
    if (status != RONDO_STATUS_OK) {
        rondo__node_image_deinit(out_image);
    }
    return status;
}

// ---- host functions ---------------------------------------------------------------------------

static void free_call(patched_call *p) {
    if (p != NULL) {
        rondo__free(p->call);
        rondo__free(p);
    }
}

// Frees the blocks that are no node's any more, and whose replays have run.
static void sweep_calls(rondo__cuda_patched_calls *calls) {
    while (calls->first_ended != NULL &&
           rondo__cuda_count_runs(calls->first_ended->call) >= calls->first_ended->run_count) {
        patched_call *p = calls->first_ended;
        calls->first_ended = p->next;
        free_call(p);
    }
    calls->last_ended = calls->first_ended != NULL ? calls->last_ended : NULL;
}

// The node has another block from now on.
static void end_call(rondo__cuda_executable *executable, size_t index) {
    rondo__cuda_patched_calls *calls = &executable->calls;
    patched_call *p = calls->of_nodes[index];
    calls->of_nodes[index] = NULL;
    if (p == NULL || p->first_replay == executable->replay_count) {
        free_call(p);
        return;
    }
    p->run_count = executable->replay_count - p->first_replay;
    if (calls->last_ended != NULL) {
        calls->last_ended->next = p;
    } else {
        calls->first_ended = p;
    }
    calls->last_ended = p;
}

void rondo__cuda_end_calls(rondo__cuda_executable *executable) {
    rondo__cuda_patched_calls *calls = &executable->calls;
    for (size_t i = 0; i < calls->node_count; i++) {
        end_call(executable, i);
    }
    rondo__free(calls->of_nodes);
    calls->of_nodes = NULL;
    calls->node_count = 0;
    sweep_calls(calls);
}

void rondo__cuda_drop_calls(rondo__cuda_executable *executable) {
    rondo__cuda_patched_calls *calls = &executable->calls;
    rondo__cuda_end_calls(executable);
    while (calls->first_ended != NULL) {
        patched_call *p = calls->first_ended;
        calls->first_ended = p->next;
        rondo__cuda_leave_call(p->call);
        rondo__free(p);
    }
    calls->last_ended = NULL;
}

static rondo_status make_room(rondo__cuda_patched_calls *calls, size_t node_count) {
    if (node_count <= calls->node_count) {
        return RONDO_STATUS_OK;
    }
    patched_call **of_nodes = rondo__calloc(node_count, sizeof(*of_nodes));
    if (of_nodes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (calls->node_count > 0) {
        memcpy(of_nodes, calls->of_nodes, calls->node_count * sizeof(*of_nodes));
    }
    rondo__free(calls->of_nodes);
    calls->of_nodes = of_nodes;
    calls->node_count = node_count;
    return RONDO_STATUS_OK;
}

// The block that the node is to have, with what the image says.
static patched_call *create_call(rondo__cuda_device *device, const rondo__node_image *image) {
    union {
        void *address;
        rondo_host_function function;
    } target = {.address = image->function};
    patched_call *p = rondo__calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    p->call = rondo__cuda_create_call(device, image->info.name, target.function, image->arguments,
                                      image->argument_bytes);
    if (p->call == NULL) {
        rondo__free(p);
        return NULL;
    }
    return p;
}

static rondo_status patch_host(rondo__cuda_device *device, rondo__cuda_executable *executable,
                               const rondo__cuda_template *recorded,
                               const rondo__node_image *image) {
    sweep_calls(&executable->calls);
    RETURN_IF_ERROR(make_room(&executable->calls, recorded->node_count));
    patched_call *added = create_call(device, image);
    if (added == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo__cu_host_node params = rondo__cuda_get_call_params(added->call);
    rondo__cu_result code = device->api->cuGraphExecHostNodeSetParams(
        executable->native, recorded->nodes[image->index], &params);
    if (code != RONDO__CU_SUCCESS) {
        free_call(added);
        return RONDO__CUDA_FAIL(device, code, "cuGraphExecHostNodeSetParams",
                                "cannot patch the host function of node %zu", image->index);
    }
    end_call(executable, image->index);
    added->first_replay = executable->replay_count;
    executable->calls.of_nodes[image->index] = added;
    return RONDO_STATUS_OK;
}

// ---- kernels and copies -----------------------------------------------------------------------

static rondo_status patch_kernel(rondo__cuda_device *device, rondo__cuda_executable *executable,
                                 rondo__cu_graph_node node, const rondo__node_image *image) {
    size_t argument_bytes;
    void *extra[5];
    rondo__cu_kernel_node params = {
        .function = image->function,
        .grid = {image->info.grid[0], image->info.grid[1], image->info.grid[2]},
        .block = {image->info.block[0], image->info.block[1], image->info.block[2]},
        .shared_bytes = image->info.shared_bytes,
        .parameters = image->parameter_addresses,
        .kernel = image->kernel,
        .context = image->context,
    };
    if (image->parameter_count == 0 && image->argument_bytes > 0) {
        argument_bytes = image->argument_bytes;
        extra[0] = RONDO__CU_LAUNCH_BUFFER_POINTER;
        extra[1] = image->arguments;
        extra[2] = RONDO__CU_LAUNCH_BUFFER_SIZE;
        extra[3] = &argument_bytes;
        extra[4] = RONDO__CU_LAUNCH_END;
        params.parameters = NULL;
        params.extra = extra;
    }
    rondo__cu_result code =
        device->api->cuGraphExecKernelNodeSetParams(executable->native, node, &params);
    return code == RONDO__CU_SUCCESS
               ? RONDO_STATUS_OK
               : RONDO__CUDA_FAIL(device, code, "cuGraphExecKernelNodeSetParams",
                                  "cannot patch node %zu, kernel %.48s", image->index,
                                  image->info.name);
}

static void set_copy_end(rondo__cu_copy_end *end, const void *address) {
    if (end->memory_type == RONDO__CU_MEMORY_TYPE_HOST) {
        end->host = (void *)(uintptr_t)address;
    } else {
        end->device = (rondo__cu_address)(uintptr_t)address;
    }
}

static rondo_status patch_copy(rondo__cuda_device *device, rondo__cuda_executable *executable,
                               rondo__cu_graph_node node, const rondo__node_image *image) {
    rondo__cu_copy_node params;
    memset(&params, 0, sizeof(params));
    rondo__cu_result code = device->api->cuGraphMemcpyNodeGetParams(node, &params);
    if (code == RONDO__CU_SUCCESS) {
        set_copy_end(&params.source, image->info.source);
        set_copy_end(&params.destination, image->info.destination);
        params.width_bytes = (size_t)image->info.width;
        code = device->api->cuGraphExecMemcpyNodeSetParams(executable->native, node, &params,
                                                           device->context);
    }
    return code == RONDO__CU_SUCCESS
               ? RONDO_STATUS_OK
               : RONDO__CUDA_FAIL(device, code, "cuGraphExecMemcpyNodeSetParams",
                                  "cannot patch node %zu, a copy from %p to %p", image->index,
                                  image->info.source, image->info.destination);
}

// ---- fills ------------------------------------------------------------------------------------

static rondo_status allocate_scratch(rondo__cuda_device *device, size_t bytes,
                                     rondo__cu_address *out_scratch) {
    int mode = rondo__cuda_relax(device);
    rondo__cu_result code = device->api->cuMemAlloc(out_scratch, bytes);
    rondo__cuda_restore(device, mode);
    return code == RONDO__CU_SUCCESS
               ? RONDO_STATUS_OK
               : RONDO__CUDA_FAIL(device, code, "cuMemAlloc",
                                  "cannot take %zu bytes for fills that are switched off", bytes);
}

// Scratch memory of the device, which fills write while they are switched off; no work reads it. A
// smaller block stays, because executables may use it. Each is twice as large as the one before, so
// all together are less than twice the last one.
static rondo_status get_scratch(rondo__cuda_device *device, uint64_t bytes,
                                rondo__cu_address *out_scratch) {
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->scratch_lock);
    if (bytes > device->scratch_bytes) {
        uint64_t wanted = device->scratch_bytes > 0 ? device->scratch_bytes : SCRATCH_BYTES;
        while (wanted < bytes) {
            wanted *= 2;
        }
        status = allocate_scratch(device, wanted, &device->scratch[device->scratch_count]);
        if (status == RONDO_STATUS_OK) {
            ++device->scratch_count;
            device->scratch_bytes = wanted;
        }
    }
    *out_scratch = status == RONDO_STATUS_OK ? device->scratch[device->scratch_count - 1] : 0;
    pthread_mutex_unlock(&device->scratch_lock);
    return status;
}

// A fill that is switched off goes on, elsewhere: behind a memset node that the driver (580) was
// told to leave off, nothing waits for what came before it. One of several rows keeps its shape,
// which the driver does not patch.
static rondo_status let_fill_scratch(rondo__cuda_device *device, const rondo__node_image *image,
                                     rondo__cu_fill_node *params) {
    const rondo__node_info *info = &image->info;
    if (!image->has_rows) {
        params->element_bytes = 1;
        params->width = 1;
        return get_scratch(device, 1, &params->destination);
    }
    const uint64_t bytes =
        (info->height - 1) * info->pitch_bytes + info->width * info->element_bytes;
    return get_scratch(device, bytes, &params->destination);
}

static rondo_status patch_fill(rondo__cuda_device *device, rondo__cuda_executable *executable,
                               rondo__cu_graph_node node, const rondo__node_image *image) {
    const rondo__node_info *info = &image->info;
    rondo__cu_fill_node params = {
        .destination = (rondo__cu_address)(uintptr_t)info->destination,
        .pitch_bytes = image->has_rows ? (size_t)info->pitch_bytes : 0,
        .value = rondo__cut_to_element(info->fill_value, info->element_bytes),
        .element_bytes = info->element_bytes,
        .width = (size_t)info->width,
        .height = image->has_rows ? (size_t)info->height : 1,
    };
    if (!image->is_enabled) {
        RETURN_IF_ERROR(let_fill_scratch(device, image, &params));
    }
    rondo__cu_result code = device->api->cuGraphExecMemsetNodeSetParams(executable->native, node,
                                                                        &params, device->context);
    return code == RONDO__CU_SUCCESS
               ? RONDO_STATUS_OK
               : RONDO__CUDA_FAIL(device, code, "cuGraphExecMemsetNodeSetParams",
                                  "cannot patch node %zu, a fill of %p", image->index,
                                  info->destination);
}

// ---- the table's entries ----------------------------------------------------------------------

// The nodes were fetched when the image was read, and the template has not changed since.
static rondo__cu_graph_node get_node(rondo__template *template_, const rondo__node_image *image) {
    return ((const rondo__cuda_template *)template_)->nodes[image->index];
}

static rondo_status patch_node(rondo__cuda_device *device, rondo__cuda_executable *executable,
                               rondo__template *template_, const rondo__node_image *image) {
    rondo__cu_graph_node node = get_node(template_, image);
    switch (image->info.kind) {
        case RONDO__NODE_KERNEL:
            return patch_kernel(device, executable, node, image);
        case RONDO__NODE_HOST:
            return patch_host(device, executable, (const rondo__cuda_template *)template_, image);
        case RONDO__NODE_COPY:
            return patch_copy(device, executable, node, image);
        default:
            return patch_fill(device, executable, node, image);
    }
}

// The device is selected once for all nodes. It has to be: without a current context the driver
// (580) does not refuse to patch a kernel, it crashes.
rondo_status rondo__cuda_patch_nodes(rondo__executable *executable, rondo__template *template_,
                                     rondo__node_image *const *images, size_t count,
                                     size_t *out_done) {
    rondo__cuda_device *device = rondo__cuda_device_of(executable->device);
    bool was_pushed = false;
    size_t done = 0;
    rondo_status status = rondo__cuda_enter(device, &was_pushed);
    while (done < count && status == RONDO_STATUS_OK) {
        status = patch_node(device, (rondo__cuda_executable *)executable, template_, images[done]);
        done += status == RONDO_STATUS_OK;
    }
    rondo__cuda_leave(device, was_pushed);
    *out_done = done;
    return status;
}

static rondo_status switch_node(rondo__cuda_device *device, rondo__cuda_executable *executable,
                                rondo__template *template_, const rondo__node_image *image) {
    rondo__cu_result code = device->api->cuGraphNodeSetEnabled(
        executable->native, get_node(template_, image), image->is_enabled ? 1 : 0);
    return code == RONDO__CU_SUCCESS ? RONDO_STATUS_OK
                                     : RONDO__CUDA_FAIL(device, code, "cuGraphNodeSetEnabled",
                                                        "cannot switch node %zu %s", image->index,
                                                        image->is_enabled ? "on" : "off");
}

rondo_status rondo__cuda_enable_node(rondo__executable *executable_, rondo__template *template_,
                                     const rondo__node_image *image) {
    rondo__cuda_executable *executable = (rondo__cuda_executable *)executable_;
    rondo__cuda_device *device = rondo__cuda_device_of(executable_->device);
    const bool is_fill = image->info.kind == RONDO__NODE_FILL;
    if (!is_fill && (device->api->capabilities & RONDO__CUDA_CAN_TOGGLE_NODES) == 0) {
        return RONDO_FAIL_AS("rondo_graph_patch", UNSUPPORTED,
                             "the driver is older than CUDA 11.6, which brought switching nodes "
                             "off; update the driver");
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = is_fill
                              ? patch_fill(device, executable, get_node(template_, image), image)
                              : switch_node(device, executable, template_, image);
    rondo__cuda_leave(device, was_pushed);
    return status;
}
