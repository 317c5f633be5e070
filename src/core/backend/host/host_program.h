// backend/host/host_program.h — the runnable form of a template.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>

#include "backend/host/host_template.h"

typedef struct rondo__host_program rondo__host_program;
typedef struct rondo__host_notes rondo__host_notes;  // host_timing.h
typedef struct rondo__host_team rondo__host_team;

typedef struct rondo__host_instruction {
    void (*run)(void *);
    void *arguments;
} rondo__host_instruction;

// A run of instructions in which each depends on the one before only.
typedef struct rondo__host_segment {
    uint32_t first;  // instruction
    uint32_t count;
    uint32_t first_successor;  // into successors
    uint32_t successor_count;
    uint32_t predecessor_count;
} rondo__host_segment;

// State of a run with parallel branches; see host_team.c.
typedef struct rondo__host_job {
    struct rondo__host_job *next;  // guarded by the team's lock
    const struct rondo__host_program *program;
    atomic_uint *pending;  // per segment: predecessors not yet done
    atomic_uint *ready;    // queue of segments that may run, plus one; 0: not yet written
    _Alignas(64) atomic_uint pushed;
    _Alignas(64) atomic_uint popped;
    _Alignas(64) atomic_uint remaining;  // segments not yet done
    _Atomic(uint64_t) helped_count;      // nodes that helpers ran
    atomic_uint signal;                  // futex of the thread that owns the job
    atomic_bool is_owner_asleep;
    atomic_int helper_count;  // helpers inside
    rondo__failure_slot *failure;
    const struct rondo__host_timing *timing;  // of the owner's thread
} rondo__host_job;

// A conditional node: what it chooses from.
typedef struct rondo__host_choice {
    struct rondo__host_choice *next;  // of the same program
    rondo_scope_kind kind;
    const void *predicate;
    uint32_t count;
    rondo__host_program *bodies[];  // NULL: empty
} rondo__host_choice;

// The runnable form; replays in flight hold a reference. Once made only the replays themselves
// change it, which run one after the other: the job, serials, and what they were told to patch.
struct rondo__host_program {
    // The members that a replay reads are one line of the processor's cache, up to "places".
    atomic_int reference_count;
    size_t external_count;
    size_t width;  // most segments that may run at once; 1: a straight line
    rondo__host_team *team;
    size_t count;
    rondo__host_instruction *instructions;
    uint32_t *places;  // by the index of a node in the template: its instruction
    unsigned char *arguments;
    size_t segment_count;
    rondo__host_segment *segments;
    uint32_t *successors;
    rondo__host_job job;
    // Of the executable, which outlives the replays; NULL for what runs inside another program.
    _Atomic(uint64_t) *executed_count;
    // Arguments of the nodes that use external events; each replay sets their serials first.
    rondo__host_external **externals;  // external_count
    rondo__host_choice *choices;       // of the conditional nodes
    rondo__host_notes *notes;          // what its nodes are called; NULL: not kept
};

RONDO_MUST_USE rondo_status rondo__host_program_create(const rondo__host_template *recorded,
                                                       rondo__host_program **out_program);
void rondo__host_program_release(rondo__host_program *program);
void rondo__host_program_run(rondo__host_program *program);
