// executor/devices/host_ops.h — ops of the processor as items of a segment of a GPU.
//
// Such an item has a kernel of the host device, and its operands lie in pinned memory of the plan
// (value slots with is_on_host). A launch puts one host function on the stream, which runs the
// kernels of this item and of the items of the processor right behind it, on the driver's thread;
// no call waits. So a capture records it as a host node. Values cross between the two sides by
// items of their own (transfers.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Prepares the node that `request` is for to run on the processor.
//
// Errors:    UNSUPPORTED (neither kernel nor reference), NO_MEMORY.
// Ownership: as rondo__kernel_prepare; `node` outlives the kernel.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__host_ops_prepare(rondo_executor *executor, rondo__plan *plan,
                                                    const rondo__kernel_request *request,
                                                    const rondo__node *node,
                                                    rondo__kernel **out_kernel);

bool rondo__kernel_is_hosted(const rondo__kernel *kernel);

// Tells a kernel of either side that its output lies where its input does.
void rondo__host_ops_join(rondo__kernel *kernel);

// How many items from `first` on, but before `end`, one host function runs; 0: the first is none.
size_t rondo__host_ops_count(const rondo__plan *plan, size_t first, size_t end);

// Puts that host function on the stream. A kernel that fails is told of by the next wait.
//
// Errors:    those of rondo_stream_call_host.
// Capture:   recorded, as a host node.
RONDO_MUST_USE rondo_status rondo__host_ops_launch(rondo_stream *stream, const rondo__item *items,
                                                   size_t count);

// Computes the item on the calling thread. Its inputs are ready, and no other work reads its
// outputs meanwhile.
//
// Errors:    those of the kernel.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__host_ops_run(const rondo__item *item);

// Gives up the host device and what the executor's plans share there.
void rondo__host_ops_free(rondo_executor *executor);
