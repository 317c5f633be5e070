// backend/cuda/graph/cuda_executable.h — templates that can be replayed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/graph/cuda_use.h"

// The arguments that host nodes were patched to (cuda_patch.c).
typedef struct rondo__cuda_patched_calls {
    struct rondo__cuda_patched_call **of_nodes;  // by node; NULL: as it was recorded
    size_t node_count;
    // No node's any more, but replays on their way use them; the oldest first.
    struct rondo__cuda_patched_call *first_ended;
    struct rondo__cuda_patched_call *last_ended;
} rondo__cuda_patched_calls;

typedef struct rondo__cuda_executable {
    rondo__executable head;
    rondo__cu_graph_exec native;
    uint64_t replay_count;
    rondo__cuda_patched_calls calls;
    rondo__cuda_attribute_sum attributes;  // of what it was made of, and was updated to
    // cuGraphLaunch, kept here so that a replay touches no line of the device's for it.
    rondo__cu_result (*launch)(rondo__cu_graph_exec native, rondo__cu_stream stream);
} rondo__cuda_executable;

rondo_status rondo__cuda_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable);
rondo_status rondo__cuda_update(rondo__executable *executable, rondo__template *template_,
                                bool *out_was_updated);
rondo_status rondo__cuda_upload(rondo__executable *executable, rondo_stream *stream);
rondo_status rondo__cuda_replay(rondo__executable *executable, rondo_stream *stream);
void rondo__cuda_destroy_executable(rondo__executable *executable);
void *rondo__cuda_get_native_executable(rondo__executable *executable);
