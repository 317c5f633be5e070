// backend/cuda/graph/cuda_executable.c — Executables: instantiating, updating, replaying.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_executable.h"

#include <string.h>

#include "backend/cuda/driver/cuda_stream.h"
#include "backend/cuda/graph/cuda_frontier.h"
#include "backend/cuda/graph/cuda_patch.h"
#include "backend/cuda/graph/cuda_template.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"

enum { FIRST_WITH_NODE_PRIORITY = 11070 };  // CUDA 11.7

// ---- executables ------------------------------------------------------------------------------

static const char *describe_instantiate_result(int32_t result) {
    switch (result) {
        case RONDO__CU_INSTANTIATE_INVALID_STRUCTURE:
            return "the structure is invalid, a cycle for example";
        case RONDO__CU_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED:
            return "a node does what the device cannot do";
        case RONDO__CU_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED:
            return "its nodes belong to more than one device";
        case RONDO__CU_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED:
            return "a conditional handle belongs to no node";
        default:
            return "the driver refused it";
    }
}

// Names the node at fault, where the driver says which, in the record of the failure.
static void blame_node(rondo__cuda_template *recorded, rondo__cu_graph_node node) {
    rondo__cuda_device *device = rondo__cuda_device_of(recorded->head.device);
    rondo__node_info info = {.name = ""};
    if (node == NULL) {
        return;
    }
    rondo_error failure;
    rondo__error_save(&failure);
    bool is_known = rondo__cuda_describe_native(device, node, &info) == RONDO_STATUS_OK;
    rondo__error_restore(&failure);
    if (is_known && info.name[0] != '\0') {
        rondo__error_set_op(info.name);
    }
}

// Memory of the program's own (cudaMallocAsync) that the step leaves live: each replay gives up
// what the one before took, or the driver would refuse the second. Kernels of streams with unlike
// priorities keep theirs; where all are alike, the stream of the replay counts, as it would for the
// step itself.
static uint64_t choose_flags(const rondo__cuda_template *recorded,
                             const rondo__cuda_attribute_sum *attributes) {
    const rondo__cuda_api *api = rondo__cuda_device_of(recorded->head.device)->api;
    uint64_t flags = recorded->takes_memory ? RONDO__CU_INSTANTIATE_AUTO_FREE_ON_LAUNCH : 0;
    if (attributes->has_priorities && api->driver_version >= FIRST_WITH_NODE_PRIORITY) {
        flags |= RONDO__CU_INSTANTIATE_USE_NODE_PRIORITY;
    }
    return flags;
}

// A node that no body may hold; NULL: there is none.
static const char *get_misfit(int type) {
    switch (type) {
        case RONDO__CU_GRAPH_NODE_HOST:
            return "a host function, and no body can";
        case RONDO__CU_GRAPH_NODE_WAIT_EVENT:
        case RONDO__CU_GRAPH_NODE_EVENT_RECORD:
            return "an external event, and no body can";
        case RONDO__CU_GRAPH_NODE_MEM_ALLOC:
        case RONDO__CU_GRAPH_NODE_MEM_FREE:
            return "a memory node, as cudaMallocAsync and libraries record, and no body can; give "
                   "the library a workspace (cublasSetWorkspace, behind each cublasSetStream)";
        default:
            return NULL;
    }
}

// The driver only says that an argument is wrong.
static const char *find_misfit(const rondo__cuda_template *recorded) {
    const rondo__cuda_api *api = rondo__cuda_device_of(recorded->head.device)->api;
    const char *misfit = NULL;
    for (rondo__cuda_note *note = recorded->notes; note != NULL; note = note->next) {
        for (uint32_t branch = 0; branch < note->branch_count; branch++) {
            rondo__cuda_template *body = &note->bodies[branch];
            const size_t count =
                rondo__cuda_fetch_nodes(body) == RONDO_STATUS_OK ? body->node_count : 0;
            for (size_t i = 0; i < count && misfit == NULL; i++) {
                int type = RONDO__CU_GRAPH_NODE_KERNEL;
                (void)api->cuGraphNodeGetType(body->nodes[i], &type);
                misfit = get_misfit(type);
            }
        }
    }
    return misfit;
}

static rondo_status fail_instantiation(rondo__cuda_template *recorded, rondo__cu_result code,
                                       const rondo__cu_instantiate_params *params) {
    rondo__cuda_device *device = rondo__cuda_device_of(recorded->head.device);
    const char *misfit =
        code == RONDO__CU_ERROR_INVALID_VALUE || code == RONDO__CU_ERROR_NOT_SUPPORTED
            ? find_misfit(recorded)
            : NULL;
    if (misfit != NULL) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphInstantiateWithParams",
                                "the body of a conditional node holds %s", misfit);
    }
    return RONDO__CUDA_FAIL(device, code, "cuGraphInstantiateWithParams",
                            "cannot instantiate the graph, %s",
                            describe_instantiate_result(params->result));
}

static rondo_status instantiate_graph(rondo__cuda_template *recorded, uint64_t flags,
                                      rondo__cu_graph_exec *out_exec) {
    rondo__cuda_device *device = rondo__cuda_device_of(recorded->head.device);
    const rondo__cuda_api *api = device->api;
    if ((api->capabilities & RONDO__CUDA_CAN_BLAME_INSTANTIATION) == 0) {
        rondo__cu_result code = api->cuGraphInstantiateWithFlags(out_exec, recorded->native, flags);
        if (code != RONDO__CU_SUCCESS) {
            return RONDO__CUDA_FAIL(device, code, "cuGraphInstantiateWithFlags",
                                    "cannot instantiate the graph");
        }
        return RONDO_STATUS_OK;
    }
    rondo__cu_instantiate_params params = {.flags = flags, .result = RONDO__CU_INSTANTIATE_SUCCESS};
    rondo__cu_result code = api->cuGraphInstantiateWithParams(out_exec, recorded->native, &params);
    if (code != RONDO__CU_SUCCESS) {
        rondo_status status = fail_instantiation(recorded, code, &params);
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
    status = rondo__cuda_sum_up_attributes(recorded, atomic_load(&device->has_priorities),
                                           &executable->attributes);
    if (status != RONDO_STATUS_OK) {
        goto free_executable;
    }
    // The end of a capture does this, perhaps beside the global capture of another thread.
    int mode = rondo__cuda_relax(device);
    status = instantiate_graph(recorded, choose_flags(recorded, &executable->attributes),
                               &executable->native);
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
            return "a node is of another type, or was recorded in another order";
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

// The driver (580) says Success to other clusters and goes on with the former ones. It refuses
// another cooperative attribute by itself; priorities, windows and sync domains change no result.
static rondo_status check_attributes(const rondo__cuda_executable *executable,
                                     rondo__cuda_template *recorded, bool *out_are_same) {
    rondo__cuda_attribute_sum sum;
    *out_are_same = false;
    RETURN_IF_ERROR(rondo__cuda_sum_up_attributes(recorded, false, &sum));
    *out_are_same =
        sum.is_known && executable->attributes.is_known && sum.hash == executable->attributes.hash;
    return RONDO_STATUS_OK;
}

// Leaves *out_was_updated false where the driver cannot do it.
static rondo_status update_graph(rondo__cuda_executable *executable, rondo__cuda_template *recorded,
                                 bool *out_was_updated) {
    rondo__cuda_device *device = rondo__cuda_device_of(executable->head.device);
    rondo__cu_update_result result = {.result = RONDO__CU_UPDATE_SUCCESS};
    bool have_same_attributes;
    RETURN_IF_ERROR(check_attributes(executable, recorded, &have_same_attributes));
    if (!have_same_attributes) {
        RONDO_LOG_DEBUG_F("%s: an executable could not be updated: launch attributes changed",
                          device->head.name);
        return RONDO_STATUS_OK;
    }
    rondo__cu_result code =
        device->api->cuGraphExecUpdate(executable->native, recorded->native, &result);
    if (code == RONDO__CU_SUCCESS) {
        rondo__cuda_end_calls(executable);
        *out_was_updated = true;
        return RONDO_STATUS_OK;
    }
    // The driver says NOT_SUPPORTED for graphs with device-updatable kernels and for changed
    // conditional nodes.
    if (code != RONDO__CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE &&
        code != RONDO__CU_ERROR_NOT_SUPPORTED) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphExecUpdate", "cannot update the executable");
    }
    RONDO_LOG_DEBUG_F("%s: an executable could not be updated: %s", device->head.name,
                      code == RONDO__CU_ERROR_NOT_SUPPORTED
                          ? "the driver updates no such graphs"
                          : describe_update_result(result.result));
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_update(rondo__executable *executable, rondo__template *template_,
                                bool *out_was_updated) {
    rondo__cuda_device *device = rondo__cuda_device_of(executable->device);
    *out_was_updated = false;
    if ((device->api->capabilities & RONDO__CUDA_CAN_UPDATE_EXECUTABLES) == 0) {
        return RONDO_STATUS_OK;  // not possible here; the caller instantiates anew
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = update_graph((rondo__cuda_executable *)executable,
                                       (rondo__cuda_template *)template_, out_was_updated);
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

// The driver (580) breaks a capture that a graph is launched into. rondo_stream_add_graph records
// it, and keeps what it needs.
static rondo_status check_not_recording(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(rondo__cuda_get_capture_state(stream, &state));
    if (state == RONDO__CAPTURE_NONE) {
        ((rondo__cuda_stream *)stream)->capture = 0;  // ended; not asked again
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(
        "rondo_graph_replay", STATE,
        "stream %u records, and a replay is not recorded; rondo_stream_add_graph puts the "
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
    } else {
        ++executable->replay_count;
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
            ++executable->replay_count;
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
    // If the executable still runs, this breaks the captures that forbid unsafe calls.
    int mode = rondo__cuda_relax(device);
    rondo__cuda_log_failure(device, device->api->cuGraphExecDestroy(executable->native),
                            "cuGraphExecDestroy");
    rondo__cuda_restore(device, mode);
    rondo__cuda_leave(device, was_pushed);
    rondo__cuda_drop_calls(executable);
    rondo__free(executable);
    rondo__error_restore(&saved);
}

void *rondo__cuda_get_native_executable(rondo__executable *executable) {
    return ((rondo__cuda_executable *)executable)->native;
}
