// backend/cuda/driver/cuda_backend.c — the table of CUDA, and the device itself.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "backend/cuda/compile/cuda_module.h"
#include "backend/cuda/driver/cuda_event.h"
#include "backend/cuda/driver/cuda_launch.h"
#include "backend/cuda/driver/cuda_memory.h"
#include "backend/cuda/driver/cuda_peer.h"
#include "backend/cuda/driver/cuda_stream.h"
#include "backend/cuda/driver/discover.h"
#include "backend/cuda/graph/cuda_capture.h"
#include "backend/cuda/graph/cuda_child.h"
#include "backend/cuda/graph/cuda_conditional.h"
#include "backend/cuda/graph/cuda_executable.h"
#include "backend/cuda/graph/cuda_frontier.h"
#include "backend/cuda/graph/cuda_line.h"
#include "backend/cuda/graph/cuda_memory_node.h"
#include "backend/cuda/graph/cuda_patch.h"
#include "backend/cuda/graph/cuda_recorded.h"
#include "backend/cuda/graph/cuda_template.h"
#include "backend/cuda/graph/cuda_use.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"

static int32_t count_devices(char *reason, size_t reason_bytes) {
    const rondo__cuda_api *api = NULL;
    int count = 0;
    if (reason_bytes > 0) {
        reason[0] = '\0';
    }
    if (rondo__cuda_get_api(&api) != RONDO_STATUS_OK) {
        snprintf(reason, reason_bytes, "%s", rondo_error_get_last()->message);
        return 0;
    }
    rondo__cu_result code = api->cuDeviceGetCount(&count);
    if (code != RONDO__CU_SUCCESS) {
        (void)rondo__cuda_fail(api, NULL, code, "cuDeviceGetCount", __FILE__, __LINE__,
                               "cannot count the GPUs");
        snprintf(reason, reason_bytes, "%s", rondo_error_get_last()->message);
        return 0;
    }
    if (count == 0) {
        snprintf(reason, reason_bytes,
                 "the NVIDIA driver sees no GPU; look at CUDA_VISIBLE_DEVICES and nvidia-smi");
    }
    return count;
}

// Free memory is known only inside a context. One is not made just to ask: that takes a good part
// of a second and some hundred megabytes on the GPU.
static void read_free_memory(const rondo__cuda_api *api, rondo__cu_device device,
                             rondo_device_info *info) {
    unsigned int flags = 0;
    int is_active = 0;
    rondo__cu_context context = NULL;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (api->cuDevicePrimaryCtxGetState(device, &flags, &is_active) != RONDO__CU_SUCCESS ||
        is_active == 0 || api->cuDevicePrimaryCtxRetain(&context, device) != RONDO__CU_SUCCESS) {
        return;
    }
    if (api->cuCtxPushCurrent(context) == RONDO__CU_SUCCESS) {
        if (api->cuMemGetInfo(&free_bytes, &total_bytes) == RONDO__CU_SUCCESS) {
            info->free_bytes = free_bytes;
        }
        (void)api->cuCtxPopCurrent(&context);
    }
    (void)api->cuDevicePrimaryCtxRelease(device);
}

static rondo_status describe_device(int32_t ordinal, rondo_device_info *out_info) {
    const rondo__cuda_api *api = NULL;
    RETURN_IF_ERROR(rondo__cuda_get_api(&api));
    rondo_device_info info = {.struct_size = sizeof info};
    rondo__cu_device device = 0;
    size_t total_bytes = 0;
    int units = 0;
    int major = 0;
    int minor = 0;
    const char *call = "cuDeviceGet";
    rondo__cu_result code = api->cuDeviceGet(&device, ordinal);
    if (code == RONDO__CU_SUCCESS) {
        call = "cuDeviceGetName";
        code = api->cuDeviceGetName(info.description, (int)sizeof(info.description), device);
    }
    if (code == RONDO__CU_SUCCESS) {
        call = "cuDeviceTotalMem";
        code = api->cuDeviceTotalMem(&total_bytes, device);
    }
    if (code == RONDO__CU_SUCCESS) {
        call = "cuDeviceGetAttribute";
        code = api->cuDeviceGetAttribute(&units, RONDO__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                         device);
    }
    if (code == RONDO__CU_SUCCESS) {
        code = api->cuDeviceGetAttribute(
            &major, RONDO__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    }
    if (code == RONDO__CU_SUCCESS) {
        code = api->cuDeviceGetAttribute(
            &minor, RONDO__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    }
    if (code != RONDO__CU_SUCCESS) {
        return rondo__cuda_fail(api, NULL, code, call, __FILE__, __LINE__, "cannot describe GPU %d",
                                (int)ordinal);
    }
    snprintf(info.name, sizeof(info.name), "cuda:%d", (int)ordinal);
    info.available = true;
    info.memory_bytes = total_bytes;
    info.compute_units = units;
    info.arch_major = major;
    info.arch_minor = minor;
    info.driver_version = api->driver_version;
    read_free_memory(api, device, &info);
    *out_info = info;
    return RONDO_STATUS_OK;
}

static rondo_status read_limits(rondo__cuda_device *device) {
    const rondo__cuda_api *api = device->api;
    int major = 0;
    int minor = 0;
    int shared_bytes = 0;
    rondo__cu_result code = api->cuDeviceGetAttribute(
        &major, RONDO__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->ordinal);
    if (code == RONDO__CU_SUCCESS) {
        code = api->cuDeviceGetAttribute(
            &minor, RONDO__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->ordinal);
    }
    if (code == RONDO__CU_SUCCESS) {
        code = api->cuDeviceGetAttribute(
            &shared_bytes, RONDO__CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            device->ordinal);
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuDeviceGetAttribute", "cannot read limits of %s",
                                device->head.name);
    }
    device->arch = 10 * major + minor;
    device->shared_bytes_max = shared_bytes;
    return RONDO_STATUS_OK;
}

static rondo_status open_device(int32_t ordinal, rondo_device **out_device) {
    *out_device = NULL;
    const rondo__cuda_api *api = NULL;
    RETURN_IF_ERROR(rondo__cuda_get_api(&api));
    rondo__cuda_device *device = rondo__calloc(1, sizeof(*device));
    if (device == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    static _Atomic(uint64_t) last_serial;
    const uint64_t start_ns = rondo__clock_now_ns();
    rondo_status status = RONDO_STATUS_OK;
    device->serial = atomic_fetch_add(&last_serial, 1) + 1;
    device->head.ordinal = ordinal;
    snprintf(device->head.name, sizeof(device->head.name), "cuda:%d", (int)ordinal);
    atomic_init(&device->head.reference_count, 1);
    atomic_init(&device->head.is_lost, false);
    atomic_init(&device->head.is_forked, false);
    device->api = api;
    rondo__cu_result code = api->cuDeviceGet(&device->ordinal, ordinal);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuDeviceGet", "cannot find %s", device->head.name);
        goto free_device;
    }
    status = read_limits(device);
    if (status != RONDO_STATUS_OK) {
        goto free_device;
    }
    code = api->cuDevicePrimaryCtxRetain(&device->context, device->ordinal);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuDevicePrimaryCtxRetain", "cannot open %s",
                                  device->head.name);
        goto free_device;
    }
    status = rondo__compile_ahead_create(&device->ahead);
    if (status != RONDO_STATUS_OK) {
        rondo__cuda_log_failure(device, device->api->cuDevicePrimaryCtxRelease(device->ordinal),
                                "cuDevicePrimaryCtxRelease");
        goto free_device;
    }
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->scratch_lock, NULL);
    pthread_mutex_init(&device->capture_lock, NULL);
    pthread_cond_init(&device->has_waited, NULL);
    RONDO_LOG_DEBUG_F("opened %s in %.0f ms", device->head.name,
                      (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    *out_device = &device->head;
    return status;

free_device:
    rondo__free(device);
    return status;
}

static void close_device(rondo_device *device_) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__compile_ahead_destroy(device->ahead);
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    // Host functions still in flight use their arguments until they have run.
    rondo__cuda_log_failure(device, device->api->cuCtxSynchronize(), "cuCtxSynchronize");
    rondo__cuda_unload_modules(device);
    for (size_t i = 0; i < device->scratch_count; i++) {
        rondo__cuda_log_failure(device, device->api->cuMemFree(device->scratch[i]), "cuMemFree");
    }
    rondo__cuda_leave(device, was_pushed);
    rondo__cuda_free_pending_calls(device);
    bool has_lost_body = device->lost_bodies != NULL;
    rondo__cuda_free_captures(device);
    if (!has_lost_body) {
        rondo__cuda_log_failure(device, device->api->cuDevicePrimaryCtxRelease(device->ordinal),
                                "cuDevicePrimaryCtxRelease");
    }
    pthread_cond_destroy(&device->has_waited);
    pthread_mutex_destroy(&device->capture_lock);
    pthread_mutex_destroy(&device->scratch_lock);
    pthread_mutex_destroy(&device->lock);
    rondo__free(device->modules);
    rondo__free(device->module_table);
    rondo__free(device->texts);
    rondo__free(device);
    rondo__error_restore(&saved);
}

// The driver (580) crashes when it waits for a context while a capture begins or ends there. So a
// capture that is open refuses the wait, and one that is about to begin waits for it.
static rondo_status begin_wait(rondo__cuda_device *device) {
    pthread_mutex_lock(&device->capture_lock);
    bool is_recording = device->captures != NULL;
    device->wait_count += !is_recording;
    pthread_mutex_unlock(&device->capture_lock);
    return is_recording ? RONDO_FAIL_AS("rondo_device_synchronize", STATE,
                                        "a stream of %s records, so the device cannot be waited "
                                        "for; end the capture first",
                                        device->head.name)
                        : RONDO_STATUS_OK;
}

static void end_wait(rondo__cuda_device *device) {
    pthread_mutex_lock(&device->capture_lock);
    device->wait_count -= 1;
    pthread_cond_broadcast(&device->has_waited);
    pthread_mutex_unlock(&device->capture_lock);
}

static rondo_status synchronize_device(rondo_device *device_) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = begin_wait(device);
    if (status == RONDO_STATUS_OK) {
        rondo__cu_result code = device->api->cuCtxSynchronize();
        end_wait(device);
        if (code != RONDO__CU_SUCCESS) {
            status = RONDO__CUDA_FAIL(device, code, "cuCtxSynchronize", "cannot wait for %s",
                                      device->head.name);
        }
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

const rondo__backend rondo__backend_cuda = {
    .name = "cuda",
    .count_devices = count_devices,
    .describe_device = describe_device,
    .open_device = open_device,
    .close_device = close_device,
    .synchronize_device = synchronize_device,
    .allocate = rondo__cuda_allocate,
    .deallocate = rondo__cuda_deallocate,
    .is_pageable = rondo__cuda_is_pageable,
    .get_free_bytes = rondo__cuda_get_free_bytes,
    .find_allocation = rondo__cuda_find_allocation,
    .find_owner = rondo__cuda_find_owner,
    .create_stream = rondo__cuda_create_stream,
    .wrap_stream = rondo__cuda_wrap_stream,
    .destroy_stream = rondo__cuda_destroy_stream,
    .synchronize_stream = rondo__cuda_synchronize_stream,
    .drain_stream = NULL,
    .query_stream = rondo__cuda_query_stream,
    .wait_event = rondo__cuda_wait_event,
    .create_event = rondo__cuda_create_event,
    .destroy_event = rondo__cuda_destroy_event,
    .record_event = rondo__cuda_record_event,
    .record_from_outside = rondo__cuda_record_from_outside,
    .query_event = rondo__cuda_query_event,
    .synchronize_event = rondo__cuda_synchronize_event,
    .get_elapsed_ns = rondo__cuda_get_elapsed_ns,
    .copy = rondo__cuda_copy,
    .copy_between = rondo__cuda_copy_between,
    .reaches = rondo__cuda_reaches,
    .fill = rondo__cuda_fill,
    .call_host = rondo__cuda_call_host,
    .launch = rondo__cuda_launch,
    .begin_capture = rondo__cuda_begin_capture,
    .get_capture_state = rondo__cuda_get_capture_state,
    .get_capture_id = rondo__cuda_get_capture_id,
    .get_frontier = rondo__cuda_get_frontier,
    .get_position = rondo__cuda_get_position,
    .get_predecessors = rondo__cuda_get_predecessors,
    .add_dependencies = rondo__cuda_add_dependencies,
    .set_frontier = rondo__cuda_set_frontier,
    .count_recorded = rondo__cuda_count_recorded,
    .describe_recorded = rondo__cuda_describe_recorded,
    .end_capture = rondo__cuda_end_capture,
    .begin_line = rondo__cuda_begin_line,
    .append_node = rondo__cuda_append_node,
    .check_feature = rondo__cuda_check_feature,
    .add_conditional = rondo__cuda_add_conditional,
    .begin_body = rondo__cuda_begin_body,
    .end_body = rondo__cuda_end_body,
    .release_conditional = rondo__cuda_release_conditional,
    .destroy_template = rondo__cuda_destroy_template,
    .count_nodes = rondo__cuda_count_nodes,
    // Conditional nodes; and memory nodes, which only the program's own driver calls record.
    .exclusive_kinds = 1u << RONDO__NODE_CONDITIONAL | 1u << RONDO__NODE_OTHER,
    .count_kinds = rondo__cuda_count_kinds,
    .describe_node = rondo__cuda_describe_node,
    .list_handles = rondo__cuda_list_handles,
    .list_edges = rondo__cuda_list_edges,
    .list_edge_kinds = rondo__cuda_list_edge_kinds,
    .visit_arguments = rondo__cuda_visit_arguments,
    .read_attributes = rondo__cuda_read_attributes,
    .clone = rondo__cuda_clone,
    .get_child = rondo__cuda_get_child,
    .add_child = rondo__cuda_add_child,
    .get_body = rondo__cuda_get_body,
    .instantiate = rondo__cuda_instantiate,
    .update = rondo__cuda_update,
    .read_node = rondo__cuda_read_node,
    .read_memory_node = rondo__cuda_read_memory_node,
    .take_memory = rondo__cuda_take_memory,
    .give_memory_back = rondo__cuda_give_memory_back,
    .patch_nodes = rondo__cuda_patch_nodes,
    .enable_node = rondo__cuda_enable_node,
    .upload = rondo__cuda_upload,
    .replay = rondo__cuda_replay,
    .destroy_executable = rondo__cuda_destroy_executable,
    .get_native_template = rondo__cuda_get_native_template,
    .get_native_executable = rondo__cuda_get_native_executable,
    .get_function = rondo__cuda_get_function,
    .name_function = rondo__cuda_name_function,
    .find_function = rondo__cuda_find_function,
    .prefer_shared = rondo__cuda_prefer_shared,
    .visit_kernels = rondo__cuda_visit_kernels,
    .count_kernels = rondo__cuda_count_kernels,
    .offer_kernel = rondo__cuda_offer_kernel,
    .want_function = rondo__cuda_want_function,
    .want_library = rondo__cuda_want_library,
};
