// support/cases/kernel_replay.h — a kernel's launch as a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

// Records the launch (nothing may run) and replays it; with `by_nodes` the graph is made node by
// node, without a capture, where the kernel and the device can.
rondo_status kernel_replay(rondo__kernel *kernel, rondo_stream *stream, const void *const *inputs,
                           void *const *outputs, void *workspace, bool by_nodes);
