// backend/cuda/driver/cuda_launch.h — kernels and host functions put on a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_device.h"

rondo_status rondo__cuda_call_host(rondo_stream *stream, const char *name,
                                   rondo_host_function function, const void *arguments,
                                   size_t argument_bytes);
rondo_status rondo__cuda_launch(rondo_stream *stream, const rondo_launch *launch);
// The name given to call_host, when a host node is one of ours; otherwise "".
const char *rondo__cuda_get_host_call_name(const rondo__cu_host_node *node);
// A host function for a node of an executable, which is not in a capture. NULL: no memory.
rondo__cuda_host_call *rondo__cuda_create_call(rondo__cuda_device *device, const char *name,
                                               rondo_host_function function, const void *arguments,
                                               size_t argument_bytes);
// How often such a call has run to its end.
uint64_t rondo__cuda_count_runs(const rondo__cuda_host_call *call);
// The params of a host node that runs the call.
rondo__cu_host_node rondo__cuda_get_call_params(rondo__cuda_host_call *call);
// It may still run: kept until the device is closed.
void rondo__cuda_leave_call(rondo__cuda_host_call *call);
// The function and arguments of a host node that is one of ours; NULL: it is not.
const rondo__cuda_host_call *rondo__cuda_find_call(const rondo__cu_host_node *node);
rondo_host_function rondo__cuda_get_call_function(const rondo__cuda_host_call *call);
const void *rondo__cuda_get_call_arguments(const rondo__cuda_host_call *call, size_t *out_bytes);
// Frees what never ran; only once the device will run nothing any more.
void rondo__cuda_free_pending_calls(rondo__cuda_device *device);
