// The fake driver's several devices: whose memory is where, which of it work may touch, and
// copies from one to another.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "support/fake/fake_cuda_state.h"

int fake_get_device(rondo__cu_context context) {
    const char *place = (const char *)(const void *)context;
    return context != NULL && place >= g_fake.contexts && place < g_fake.contexts + FAKE_DEVICES_MAX
               ? (int)(place - g_fake.contexts)
               : -1;
}

void fake_check_selected(const fake_stream *stream, const char *name) {
    const rondo__cu_context current =
        g_fake_thread.depth > 0 ? g_fake_thread.contexts[g_fake_thread.depth - 1] : NULL;
    if (stream->object.context != NULL && stream->object.context != current) {
        fake_violation("%s on a stream of device %d while device %d is selected", name,
                       fake_get_device(stream->object.context), fake_get_device(current));
    }
}

void fake_check_reach(const fake_stream *stream, const void *address, const char *name) {
    const fake_memory *memory = fake_find_memory(address);
    if (memory == NULL || memory->is_host) {
        return;
    }
    const int from = fake_get_device(stream->object.context);
    const int to = fake_get_device(memory->object.context);
    if (from >= 0 && to >= 0 && from != to && !g_fake.peers[from][to]) {
        fake_violation("%s of device %d touches memory of device %d, to which it has no way", name,
                       from, to);
    }
}

void fake_check_launch(const fake_stream *stream, const fake_node *work) {
    const fake_module *module = work->kernel->module;
    if (stream->object.context != NULL && module->object.context != stream->object.context) {
        fake_violation("a kernel of device %d is launched on a stream of device %d",
                       fake_get_device(module->object.context),
                       fake_get_device(stream->object.context));
    }
    for (size_t i = 0; i + sizeof(void *) <= work->argument_bytes; i += sizeof(void *)) {
        const void *address;
        memcpy(&address, work->arguments + i, sizeof(address));
        fake_check_reach(stream, address, "a kernel");
    }
}

rondo__cu_result fake_cuPointerGetAttribute(void *out_value, int attribute,
                                            rondo__cu_address address) {
    ENTER("cuPointerGetAttribute");
    const fake_memory *memory = fake_find_memory((const void *)(uintptr_t)address);
    if (memory == NULL) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    switch (attribute) {
        case RONDO__CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned int *)out_value =
                memory->is_host ? RONDO__CU_MEMORY_TYPE_HOST : RONDO__CU_MEMORY_TYPE_DEVICE;
            break;
        case RONDO__CU_POINTER_ATTRIBUTE_BUFFER_ID:
            *(uint64_t *)out_value = memory->id;
            break;
        case RONDO__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)out_value = fake_get_device(memory->object.context);
            break;
        case RONDO__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(rondo__cu_address *)out_value = (rondo__cu_address)(uintptr_t)memory->bytes;
            break;
        case RONDO__CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)out_value = memory->byte_count;
            break;
        default:
            return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuDeviceCanAccessPeer(int *out_can_access, rondo__cu_device device,
                                            rondo__cu_device peer) {
    ENTER("cuDeviceCanAccessPeer");
    *out_can_access = device != peer && !g_fake.options.has_no_peers;
    return fake_leave(code);
}

rondo__cu_result fake_cuCtxEnablePeerAccess(rondo__cu_context peer, unsigned int flags) {
    ENTER("cuCtxEnablePeerAccess");
    NEED_CONTEXT("cuCtxEnablePeerAccess");
    if (fake_break_unsafe("cuCtxEnablePeerAccess")) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    const int from = fake_get_device(g_fake_thread.contexts[g_fake_thread.depth - 1]);
    const int to = fake_get_device(peer);
    if (flags != 0 || from < 0 || to < 0 || from == to || g_fake.retain_counts[to] == 0) {
        fake_violation("cuCtxEnablePeerAccess from device %d to device %d", from, to);
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT);
    }
    if (g_fake.options.has_no_peers) {
        return fake_leave(RONDO__CU_ERROR_PEER_ACCESS_UNSUPPORTED);
    }
    if (g_fake.peers[from][to]) {
        return fake_leave(RONDO__CU_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    }
    g_fake.peers[from][to] = true;
    return fake_leave(code);
}

static void check_owner(const void *address, rondo__cu_context context) {
    const fake_memory *memory = fake_find_memory(address);
    const int device = fake_get_device(context);
    if (device < 0 || g_fake.retain_counts[device] == 0 || memory == NULL ||
        memory->object.context != context) {
        fake_violation("cuMemcpyPeerAsync of memory that is not of device %d", device);
    }
}

rondo__cu_result fake_cuMemcpyPeerAsync(rondo__cu_address destination, rondo__cu_context to,
                                        rondo__cu_address source, rondo__cu_context from,
                                        size_t bytes, rondo__cu_stream handle) {
    ENTER("cuMemcpyPeerAsync");
    NEED_CONTEXT("cuMemcpyPeerAsync");
    GET_STREAM("cuMemcpyPeerAsync");
    fake_check_selected(stream, "cuMemcpyPeerAsync");
    check_owner((const void *)(uintptr_t)destination, to);
    check_owner((const void *)(uintptr_t)source, from);
    if (from == to && stream->origin != NULL) {  // driver 580, whatever the mode
        stream->origin->is_broken = true;
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_MEMCPY,
                      .source = (const void *)(uintptr_t)source,
                      .destination = (void *)(uintptr_t)destination,
                      .source_type = RONDO__CU_MEMORY_TYPE_DEVICE,
                      .destination_type = RONDO__CU_MEMORY_TYPE_DEVICE,
                      .count = bytes};
    return fake_submit(handle, "cuMemcpyPeerAsync", &work);
}
