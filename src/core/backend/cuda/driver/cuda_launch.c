// backend/cuda/driver/cuda_launch.c — kernels and host functions on a stream.
//
// A host function's arguments are copied into a block of our own, which must live until the
// function has run the last time:
//
//   eager      the block hangs in the device's list of pending calls; the trampoline takes it out
//              and frees it. What a dead GPU never ran is freed when the device is closed.
//   recorded   the block is handed to the graph being captured as a CUDA user object; the driver
//              frees it when the graph and every executable made from it are gone.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_launch.h"

#include <string.h>

#include "backend/cuda/graph/cuda_recording.h"
#include "base/error.h"
#include "base/memory.h"

struct rondo__cuda_host_call {
    rondo__cuda_device *device;
    bool is_recorded;  // belongs to a graph, not to the pending list
    rondo__cuda_host_call *previous;
    rondo__cuda_host_call *next;
    const char *name;
    rondo_host_function function;
    size_t argument_bytes;
    _Atomic(uint64_t) run_count;  // of recorded calls
    _Alignas(16) unsigned char arguments[];
};

static void unlink_call(rondo__cuda_host_call *call) {
    rondo__cuda_device *device = call->device;
    pthread_mutex_lock(&device->lock);
    if (call->previous != NULL) {
        call->previous->next = call->next;
    } else {
        device->pending_calls = call->next;
    }
    if (call->next != NULL) {
        call->next->previous = call->previous;
    }
    pthread_mutex_unlock(&device->lock);
}

static void link_call(rondo__cuda_host_call *call) {
    rondo__cuda_device *device = call->device;
    pthread_mutex_lock(&device->lock);
    call->next = device->pending_calls;
    if (call->next != NULL) {
        call->next->previous = call;
    }
    device->pending_calls = call;
    pthread_mutex_unlock(&device->lock);
}

static void run_call(void *user_data) {
    rondo__cuda_host_call *call = user_data;
    rondo__failure_slot *former = rondo__failure_enter(&call->device->head.failure);
    call->function(call->arguments);
    (void)rondo__failure_enter(former);
    if (call->is_recorded) {
        // Not read after this: the code that counts the runs may free it.
        atomic_fetch_add_explicit(&call->run_count, 1, memory_order_release);
    } else {
        unlink_call(call);
        rondo__free(call);
    }
}

static void free_recorded_call(void *user_data) {
    rondo__free(user_data);
}

void rondo__cuda_free_pending_calls(rondo__cuda_device *device) {
    rondo__cuda_host_call *call = device->pending_calls;
    device->pending_calls = NULL;
    while (call != NULL) {
        rondo__cuda_host_call *next = call->next;
        rondo__free(call);
        call = next;
    }
}

const char *rondo__cuda_get_host_call_name(const rondo__cu_host_node *node) {
    if (node->function != run_call || node->user_data == NULL) {
        return "";
    }
    return ((const rondo__cuda_host_call *)node->user_data)->name;
}

// Gives the block to the graph that the stream records. On success the graph owns it.
static rondo_status give_to_graph(rondo_stream *stream, rondo__cu_graph graph,
                                  rondo__cuda_host_call *call) {
    const rondo__cuda_api *api = rondo__cuda_device_of(stream->device)->api;
    rondo__cu_user_object object = NULL;
    rondo__cu_result code = api->cuUserObjectCreate(&object, call, free_recorded_call, 1,
                                                    RONDO__CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (code != RONDO__CU_SUCCESS) {
        rondo__free(call);
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuUserObjectCreate",
                                       "cannot keep the arguments of a host function");
    }
    code = api->cuGraphRetainUserObject(graph, object, 1, RONDO__CU_GRAPH_USER_OBJECT_MOVE);
    if (code != RONDO__CU_SUCCESS) {
        rondo_status status =
            RONDO__CUDA_STREAM_FAIL(stream, code, "cuGraphRetainUserObject",
                                    "cannot keep the arguments of a host function");
        (void)api->cuUserObjectRelease(object, 1);  // frees the block
        return status;
    }
    return RONDO_STATUS_OK;
}

static rondo_status enqueue_call(rondo_stream *stream, rondo__cuda_host_call *call,
                                 const char *name) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    rondo__cu_graph graph = NULL;
    rondo__cu_result code = api->cuStreamGetCaptureInfo(native, &state, NULL, &graph, NULL, NULL);
    if (code == RONDO__CU_ERROR_STREAM_CAPTURE_IMPLICIT) {
        // Asked of the legacy stream while another one records. Launching says so in its own words.
        state = RONDO__CU_CAPTURE_STATUS_NONE;
    } else if (code != RONDO__CU_SUCCESS) {
        rondo__free(call);
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamGetCaptureInfo",
                                       "cannot ask whether the stream records");
    }
    bool is_recorded = state == RONDO__CU_CAPTURE_STATUS_ACTIVE;
    if (is_recorded) {
        rondo_status status =
            rondo__cuda_refuse_node_in_body(stream, "rondo_stream_call_host", "host functions");
        if (status != RONDO_STATUS_OK) {
            rondo__free(call);
            rondo__error_set_op(name);
            return status;
        }
    }
    call->is_recorded = is_recorded;
    if (is_recorded) {
        // Once the graph has it, the block's life is no longer our business, launch or not.
        RETURN_IF_ERROR(give_to_graph(stream, graph, call));
    } else {
        link_call(call);
    }
    code = api->cuLaunchHostFunc(native, run_call, call);
    if (code != RONDO__CU_SUCCESS) {
        rondo_status status = RONDO__CUDA_STREAM_FAIL(stream, code, "cuLaunchHostFunc",
                                                      "cannot call the host function %s", name);
        if (!is_recorded) {
            unlink_call(call);
            rondo__free(call);
        }
        return status;
    }
    return RONDO_STATUS_OK;
}

rondo__cuda_host_call *rondo__cuda_create_call(rondo__cuda_device *device, const char *name,
                                               rondo_host_function function, const void *arguments,
                                               size_t argument_bytes) {
    rondo__cuda_host_call *call = rondo__malloc_aligned(sizeof(*call) + argument_bytes, 16);
    if (call == NULL) {
        return NULL;
    }
    memset(call, 0, sizeof(*call));
    call->device = device;
    call->is_recorded = true;
    call->name = name != NULL ? name : "";
    call->function = function;
    call->argument_bytes = argument_bytes;
    if (argument_bytes > 0) {
        memcpy(call->arguments, arguments, argument_bytes);
    }
    return call;
}

uint64_t rondo__cuda_count_runs(const rondo__cuda_host_call *call) {
    return atomic_load_explicit(&call->run_count, memory_order_acquire);
}

rondo__cu_host_node rondo__cuda_get_call_params(rondo__cuda_host_call *call) {
    return (rondo__cu_host_node){.function = run_call, .user_data = call};
}

void rondo__cuda_leave_call(rondo__cuda_host_call *call) {
    link_call(call);
}

const rondo__cuda_host_call *rondo__cuda_find_call(const rondo__cu_host_node *node) {
    return node->function == run_call ? node->user_data : NULL;
}

rondo_host_function rondo__cuda_get_call_function(const rondo__cuda_host_call *call) {
    return call->function;
}

const void *rondo__cuda_get_call_arguments(const rondo__cuda_host_call *call, size_t *out_bytes) {
    *out_bytes = call->argument_bytes;
    return call->arguments;
}

rondo_status rondo__cuda_call_host(rondo_stream *stream, const char *name,
                                   rondo_host_function function, const void *arguments,
                                   size_t argument_bytes) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cuda_host_call *call =
        rondo__cuda_create_call(device, name, function, arguments, argument_bytes);
    if (call == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto leave;
    }
    status = enqueue_call(stream, call, call->name);

leave:
    rondo__cuda_leave(device, was_pushed);
    return status;
}

enum { ATTRIBUTES_MAX = 4, FIRST_WITH_CLUSTERS = 90 };

// What the launch asks for beyond its shape. Returns how many attributes there are.
static unsigned list_attributes(const rondo__cuda_device *device, const rondo_stream *stream,
                                const rondo_launch *launch,
                                rondo__cu_launch_attribute attributes[ATTRIBUTES_MAX]) {
    unsigned count = 0;
    // In bodies of conditional nodes every launch waits for the one before.
    if ((launch->flags & RONDO_LAUNCH_OVERLAP) != 0 &&
        !((const rondo__cuda_stream *)stream)->is_body && rondo__cuda_overlaps(device)) {
        attributes[count++] = (rondo__cu_launch_attribute){
            .id = RONDO__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            .value.is_allowed = 1};
    }
    if ((launch->flags & RONDO_LAUNCH_COOPERATIVE) != 0) {
        attributes[count++] = (rondo__cu_launch_attribute){
            .id = RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.is_cooperative = 1};
    }
    if (launch->cluster[0] != 0) {
        attributes[count++] = (rondo__cu_launch_attribute){
            .id = RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            .value.cluster = {launch->cluster[0], launch->cluster[1], launch->cluster[2]}};
    }
    if (launch->priority != 0) {
        attributes[count++] =
            (rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                         .value.priority = rondo__cuda_level_of(launch->priority)};
    }
    return count;
}

enum { PARAMETERS_MAX = 256 };

// Cooperative launches take no packed arguments (driver 580 finds them wrong), but a list of the
// parameters in them. The list is whole where the driver refuses the index behind its last one;
// *out_is_listed false: the driver does not tell where they lie.
static rondo__cu_result list_parameters(const rondo__cuda_device *device,
                                        const rondo_launch *launch, void *arguments,
                                        void *parameters[PARAMETERS_MAX], bool *out_is_listed) {
    *out_is_listed = false;
    if (device->api->cuFuncGetParamInfo == NULL) {
        return RONDO__CU_SUCCESS;
    }
    for (size_t i = 0; i < PARAMETERS_MAX; i++) {
        size_t offset = 0, bytes = 0;
        const rondo__cu_result code =
            device->api->cuFuncGetParamInfo(launch->function, i, &offset, &bytes);
        if (rondo__cuda_is_refusal(code)) {
            *out_is_listed = i > 0 && code == RONDO__CU_ERROR_INVALID_VALUE;
            return RONDO__CU_SUCCESS;
        }
        if (code != RONDO__CU_SUCCESS) {
            return code;
        }
        if (offset >= launch->argument_bytes) {
            return RONDO__CU_SUCCESS;
        }
        parameters[i] = (char *)arguments + offset;
    }
    return RONDO__CU_SUCCESS;
}

static rondo__cu_result launch_kernel(const rondo__cuda_device *device, const rondo_stream *stream,
                                      const rondo_launch *launch) {
    size_t argument_bytes = launch->argument_bytes;
    // The driver only reads the parameters, though its interface takes them as void *.
    union {
        const void *read_only;
        void *address;
    } arguments = {.read_only = launch->arguments};
    void *extra[] = {
        RONDO__CU_LAUNCH_BUFFER_POINTER,
        arguments.address,
        RONDO__CU_LAUNCH_BUFFER_SIZE,
        &argument_bytes,
        RONDO__CU_LAUNCH_END,
    };
    const bool is_one = (launch->flags & RONDO_LAUNCH_ONE_PARAMETER) != 0 && argument_bytes > 0;
    void **parameters = is_one ? &arguments.address : NULL;
    void **packed = is_one || argument_bytes == 0 ? NULL : extra;
    void *list[PARAMETERS_MAX];
    if (packed != NULL && (launch->flags & RONDO_LAUNCH_COOPERATIVE) != 0) {
        bool is_listed = false;
        const rondo__cu_result code =
            list_parameters(device, launch, arguments.address, list, &is_listed);
        if (code != RONDO__CU_SUCCESS) {
            return code;
        }
        parameters = is_listed ? list : parameters;
        packed = is_listed ? NULL : packed;
    }
    rondo__cu_launch_attribute attributes[ATTRIBUTES_MAX];
    const unsigned count = list_attributes(device, stream, launch, attributes);
    if (count == 0) {
        return device->api->cuLaunchKernel(launch->function, launch->grid[0], launch->grid[1],
                                           launch->grid[2], launch->block[0], launch->block[1],
                                           launch->block[2], launch->shared_bytes,
                                           rondo__cuda_native_stream(stream), parameters, packed);
    }
    const rondo__cu_launch_config config = {
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .shared_bytes = launch->shared_bytes,
        .stream = rondo__cuda_native_stream(stream),
        .attributes = attributes,
        .attribute_count = count,
    };
    return device->api->cuLaunchKernelEx(&config, launch->function, parameters, packed);
}

// A launch that did not succeed, or needs the context because the stream is a default one.
static rondo_status launch_in_context(rondo_stream *stream, const rondo_launch *launch,
                                      rondo__cu_result code) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    if (rondo__cuda_wants_context(code)) {
        code = launch_kernel(device, stream, launch);
    }
    if (code != RONDO__CU_SUCCESS) {
        const char *name = launch->name != NULL ? launch->name : "";
        status = RONDO__CUDA_STREAM_FAIL(
            stream, code, "cuLaunchKernel",
            "cannot launch %.48s (grid %ux%ux%u, block %ux%ux%u, shared %u bytes)", name,
            launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
            launch->block[2], launch->shared_bytes);
        rondo__error_set_op(name);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// Refuses by name what an older driver or GPU only finds wrong.
static rondo_status check_attributes(rondo_stream *stream, const rondo_launch *launch) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    RETURN_IF_ERROR(rondo__cuda_api_require(device->api, RONDO__CUDA_CAN_OVERLAP_LAUNCHES));
    if (launch->cluster[0] != 0 && device->arch < FIRST_WITH_CLUSTERS) {
        return RONDO_FAIL_AS("rondo_stream_launch", UNSUPPORTED,
                             "kernel \"%s\": clusters came with compute capability 9.0, and %s has "
                             "%d.%d; launch it with cluster = {0}",
                             launch->name != NULL ? launch->name : "", device->head.name,
                             (int)device->arch / 10, (int)device->arch % 10);
    }
    if (launch->priority != 0) {
        atomic_store(&device->has_priorities, true);
    }
    return RONDO_STATUS_OK;
}

static bool is_special(const rondo_launch *launch) {
    return ((launch->flags & RONDO_LAUNCH_COOPERATIVE) | launch->cluster[0]) != 0 ||
           launch->priority != 0;
}

rondo_status rondo__cuda_launch(rondo_stream *stream, const rondo_launch *launch) {
    rondo__cu_result code = RONDO__CU_ERROR_INVALID_CONTEXT;
    if (__builtin_expect(is_special(launch), 0)) {
        RETURN_IF_ERROR(check_attributes(stream, launch));
    }
    if (rondo__cuda_knows_context(stream)) {
        code = launch_kernel(rondo__cuda_device_of(stream->device), stream, launch);
        if (__builtin_expect(code == RONDO__CU_SUCCESS, 1)) {
            return RONDO_STATUS_OK;
        }
    }
    return launch_in_context(stream, launch, code);
}
