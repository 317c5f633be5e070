// doctor/analysis/doctor_rules.h — the rules: what of a step would break a capture, or be wrong or
// slow in a replay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_steps.h"

// X(identity, "id")
#define RONDO__DOCTOR_RULE_MAP(X)              \
    X(WAIT_DEVICE, "wait-device")              \
    X(WAIT_STREAM, "wait-stream")              \
    X(WAIT_EVENT, "wait-event")                \
    X(READ_BACK, "read-back")                  \
    X(QUERY, "query")                          \
    X(ELAPSED_TIME, "elapsed-time")            \
    X(SYNCHRONOUS_COPY, "synchronous-copy")    \
    X(SYNCHRONOUS_FILL, "synchronous-fill")    \
    X(PAGEABLE_COPY, "pageable-copy")          \
    X(ALLOCATE, "allocate")                    \
    X(FREE_USED, "free-used-memory")           \
    X(HOST_MEMORY, "host-memory")              \
    X(STREAM_MEMORY, "stream-memory")          \
    X(MAP_MEMORY, "map-memory")                \
    X(LOAD_MODULE, "load-module")              \
    X(MAKE_STREAM, "make-stream")              \
    X(MAKE_EVENT, "make-event")                \
    X(HOST_FUNCTION, "host-function")          \
    X(CALLBACK_CALLS, "callback-calls-driver") \
    X(STREAM_CALLBACK, "stream-callback")      \
    X(ATTACH_MEMORY, "attach-memory")          \
    X(REBUILD_GRAPH, "rebuild-graph")          \
    X(MANY_GRAPHS, "many-graphs")              \
    X(LEGACY_STREAM, "legacy-stream")          \
    X(FOREIGN_EVENT, "foreign-event")          \
    X(UNJOINED_FORK, "unjoined-fork")          \
    X(SEPARATE_STREAM, "separate-stream")      \
    X(CHANGING_SHAPE, "changing-shape")        \
    X(DATA_SHAPE, "data-dependent-shape")      \
    X(CHANGING_KERNEL, "changing-kernel")      \
    X(CHANGING_COPY, "changing-copy")          \
    X(COUNTER, "counter")                      \
    X(MOVING_ADDRESS, "moving-address")        \
    X(CHANGING_SCALAR, "changing-scalar")      \
    X(RANDOM_STATE, "random-state")            \
    X(COLLECTIVE_ORDER, "collective-order")    \
    X(COLLECTIVE_RANKS, "collective-ranks")    \
    X(UNWRITTEN_WORD, "unwritten-word")

typedef enum rondo__doctor_rule {
#define RONDO__DOCTOR_RULE_NAME(identity, id) RONDO__DOCTOR_RULE_##identity,
    RONDO__DOCTOR_RULE_MAP(RONDO__DOCTOR_RULE_NAME)
#undef RONDO__DOCTOR_RULE_NAME
        RONDO__DOCTOR_RULE_COUNT,
} rondo__doctor_rule;

// What a rule is about.
typedef enum rondo__doctor_harm {
    RONDO__DOCTOR_BREAKS,   // a capture fails there
    RONDO__DOCTOR_FREEZES,  // a capture succeeds, and its replays do what the captured step did
    RONDO__DOCTOR_COSTS,    // neither, but it takes time
    RONDO__DOCTOR_NOTES,    // most likely none of these
} rondo__doctor_harm;

typedef struct rondo__doctor_rule_row {
    rondo__doctor_harm harm;
    const char *what;   // "waits for a stream in the middle of the step"
    const char *cure;   // what to change in the program
    const char *rondo;  // what Rondo does about it; NULL: it cannot
} rondo__doctor_rule_row;

// What it is called, "read-back"; "" for none.
const char *rondo__doctor_rule_id(size_t rule);

const rondo__doctor_rule_row *rondo__doctor_get_rule(size_t rule);

typedef struct rondo__doctor_finding {
    rondo__doctor_rule rule;
    uint16_t call;
    uint32_t name;   // of the kernel; 0: of none, or of several
    uint32_t line;   // of Python; 0: not known
    uint32_t place;  // 0: not known
    uint32_t range;  // of NVTX, around the call; 0: none
    double count;    // a step
    double cost_us;  // host time of these calls, a step
    size_t works;    // of the step, ahead of the call
    int32_t word;    // of the argument that changes; -1: none
} rondo__doctor_finding;

enum { RONDO__DOCTOR_FINDINGS_MAX = 256 };

typedef struct rondo__doctor_findings {
    rondo__doctor_finding rows[RONDO__DOCTOR_FINDINGS_MAX];
    size_t count;
    size_t dropped_count;  // for which there was no row
} rondo__doctor_findings;

// The worst first: by harm, then by cost, then by count.
void rondo__doctor_apply_rules(const rondo__doctor_steps *steps,
                               rondo__doctor_findings *out_findings);

// Adds the first collective of the step that `other`, the step of another process, has not at that
// place. Processes of which one runs none are not compared.
void rondo__doctor_compare_ranks(const rondo__doctor_steps *steps, const rondo__doctor_steps *other,
                                 rondo__doctor_findings *findings);
