// backend/host/host_executable.h — programs that replays run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_lane.h"
#include "backend/host/host_program.h"

// Node kinds and edges in a row, bodies of conditional nodes inside: equal exactly for templates
// that an executable may be updated to.
typedef struct rondo__host_shape {
    size_t *words;
    size_t count;
    size_t capacity;
} rondo__host_shape;

typedef struct rondo__host_changes rondo__host_changes;  // host_patch.h

// A replay reads the first line of the processor's cache; the streams' threads write the second.
typedef struct rondo__host_executable {
    rondo__executable head;
    rondo__host_program *program;
    rondo__host_changes *changes;  // that the next replay makes first; NULL: none
    rondo__host_lane *last_lane;   // retained; NULL: never replayed
    uint64_t last_position;
    // The shape of the template that the program came from, which an update compares.
    rondo__host_shape shape;
    _Atomic(uint64_t) executed_count;
} rondo__host_executable;

rondo_status rondo__host_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable);
rondo_status rondo__host_update(rondo__executable *executable, rondo__template *template_,
                                bool *out_was_updated);
rondo_status rondo__host_upload(rondo__executable *executable, rondo_stream *stream);
rondo_status rondo__host_replay(rondo__executable *executable, rondo_stream *stream);
bool rondo__host_replay_here(rondo__executable *executable, rondo_stream *stream);
uint64_t rondo__host_count_executed(rondo__executable *executable);
void rondo__host_destroy_executable(rondo__executable *executable);
