// support/cases/kernel_replay.h — a kernel's launch as a graph; a kernel as a plan file has it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

// Records the launch (nothing may run) and replays it; with `by_nodes` the graph is made node by
// node, without a capture, where the kernel and the device can.
rondo_status kernel_replay(rondo__kernel *kernel, rondo_stream *stream, const void *const *inputs,
                           void *const *outputs, void *workspace, bool by_nodes);

// Puts in the place of a kernel the one that is prepared from its record, where it has one, and
// fails where that is another, or an altered record leads to anything but a kernel of some kind.
rondo_status kernel_restore(const rondo__kernel_request *request, rondo__kernel **in_out_kernel);
