// backend/cuda/cuda_launch.h — kernels and host functions put on a stream.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_CUDA_CUDA_LAUNCH_H
#define RONDO_BACKEND_CUDA_CUDA_LAUNCH_H

#include "backend/cuda/cuda_device.h"

rondo_status rondo__cuda_call_host(rondo_stream *stream, const char *name,
                                   rondo_host_function function, const void *arguments,
                                   size_t argument_bytes);
rondo_status rondo__cuda_launch(rondo_stream *stream, const rondo_launch *launch);
// The name given to call_host, when a host node is one of ours; otherwise "".
const char *rondo__cuda_get_host_call_name(const rondo__cu_host_node *node);
// Frees what never ran; only once the device will run nothing any more.
void rondo__cuda_free_pending_calls(rondo__cuda_device *device);

#endif  // RONDO_BACKEND_CUDA_CUDA_LAUNCH_H
