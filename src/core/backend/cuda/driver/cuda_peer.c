// backend/cuda/driver/cuda_peer.c — copies between two GPUs: straight where the driver opens a way
// from one to the other, and otherwise by the driver's own detour through host memory.
//
// The way is opened when it is first needed, and never closed: what else uses the primary contexts
// may count on it. It makes each later allocation on the other GPU a little dearer, so it is not
// opened ahead. A way ends with the context at its other end, so what was found is kept together
// with the serial of that device.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_peer.h"

#include "backend/cuda/driver/cuda_stream.h"
#include "base/error.h"

// Whether the direct way is open; false: not asked for yet.
static bool recall(rondo__cuda_device *device, const rondo__cuda_device *other, bool *out_reaches) {
    const size_t place = (size_t)other->head.ordinal % RONDO__CUDA_PEERS_MAX;
    pthread_mutex_lock(&device->lock);
    const rondo__cuda_peer *peer = &device->peers[place];
    const bool is_known = peer->serial == other->serial;
    *out_reaches = is_known && peer->is_reached;
    pthread_mutex_unlock(&device->lock);
    return is_known;
}

static void remember(rondo__cuda_device *device, const rondo__cuda_device *other, bool reaches) {
    const size_t place = (size_t)other->head.ordinal % RONDO__CUDA_PEERS_MAX;
    pthread_mutex_lock(&device->lock);
    device->peers[place] = (rondo__cuda_peer){.serial = other->serial, .is_reached = reaches};
    pthread_mutex_unlock(&device->lock);
}

// With the context of `device` current. No lock is held: opening may wait for work, and a host
// function among that takes the lock.
static rondo_status open_way(rondo__cuda_device *device, rondo__cuda_device *other,
                             bool *out_reaches) {
    const rondo__cuda_api *api = device->api;
    int can_access = 0;
    const char *call = "cuDeviceCanAccessPeer";
    rondo__cu_result code =
        api->cuDeviceCanAccessPeer(&can_access, device->ordinal, other->ordinal);
    if (code == RONDO__CU_SUCCESS && can_access != 0) {
        call = "cuCtxEnablePeerAccess";
        int mode = rondo__cuda_relax(device);
        code = api->cuCtxEnablePeerAccess(other->context, 0);
        rondo__cuda_restore(device, mode);
    }
    switch (code) {
        case RONDO__CU_SUCCESS:
        case RONDO__CU_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            *out_reaches = can_access != 0;
            break;
        case RONDO__CU_ERROR_PEER_ACCESS_UNSUPPORTED:
        case RONDO__CU_ERROR_TOO_MANY_PEERS:
            *out_reaches = false;
            break;
        default:
            return RONDO__CUDA_FAIL(device, code, call, "cannot open the way from %s to %s",
                                    device->head.name, other->head.name);
    }
    remember(device, other, *out_reaches);
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_reaches(rondo_device *device_, rondo_device *other_, bool *out_reaches) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo__cuda_device *other = rondo__cuda_device_of(other_);
    if (recall(device, other, out_reaches)) {
        return RONDO_STATUS_OK;
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = open_way(device, other, out_reaches);
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_copy_between(rondo_stream *stream, rondo_device *to, void *destination,
                                      rondo_device *from, const void *source, size_t bytes) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    const rondo__cu_address target = (rondo__cu_address)(uintptr_t)destination;
    const rondo__cu_address origin = (rondo__cu_address)(uintptr_t)source;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    bool is_reached = false;
    RETURN_IF_ERROR(
        rondo__cuda_reaches(stream->device, stream->device == to ? from : to, &is_reached));
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    const char *call = is_reached ? "cuMemcpyDtoDAsync" : "cuMemcpyPeerAsync";
    // An address says whose it is, so with a way this is an ordinary copy, which can be recorded.
    rondo__cu_result code =
        is_reached ? api->cuMemcpyDtoDAsync(target, origin, bytes, native)
                   : api->cuMemcpyPeerAsync(target, rondo__cuda_device_of(to)->context, origin,
                                            rondo__cuda_device_of(from)->context, bytes, native);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, call, "cannot copy %zu bytes from %s to %s",
                                         bytes, from->name, to->name);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}
