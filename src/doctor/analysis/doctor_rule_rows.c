// doctor/analysis/doctor_rule_rows.c — the texts of the rules; docs/doctor.md says more of each.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "doctor/analysis/doctor_rules.h"

#define ROW(identity, rule_harm, rule_what, rule_cure, rule_rondo)        \
    [RONDO__DOCTOR_RULE_##identity] = {.harm = RONDO__DOCTOR_##rule_harm, \
                                       .what = (rule_what),               \
                                       .cure = (rule_cure),               \
                                       .rondo = (rule_rondo)}

static const rondo__doctor_rule_row g_rows[RONDO__DOCTOR_RULE_COUNT] = {
    ROW(WAIT_DEVICE, BREAKS, "waits for the whole device in the middle of the step",
        "wait once, behind the step; order streams by events", NULL),
    ROW(WAIT_STREAM, BREAKS, "waits for a stream in the middle of the step",
        "wait once, behind the step", NULL),
    ROW(WAIT_EVENT, BREAKS, "waits for an event in the middle of the step",
        "let a stream wait for it (cuStreamWaitEvent), or wait behind the step", NULL),
    ROW(READ_BACK, BREAKS, "reads a result back and waits for it in the middle of the step",
        "keep the value on the device; decide there (a conditional node), or read it a step later",
        "rondo_control_if and rondo_control_while decide on the device"),
    ROW(QUERY, BREAKS, "asks whether work is done in the middle of the step",
        "ask behind the step; keep watching threads out of captures (thread-local mode)",
        "captures are thread-local, so that other threads may ask"),
    ROW(ELAPSED_TIME, BREAKS, "takes the time between events in the middle of the step",
        "take times around the replay", "rondo profile takes times inside of a graph"),
    ROW(SYNCHRONOUS_COPY, BREAKS, "copies with a call that waits",
        "copy asynchronously on the step's stream, from or to pinned memory", NULL),
    ROW(SYNCHRONOUS_FILL, BREAKS, "fills memory by a call on the legacy stream",
        "use the asynchronous form on the step's stream", NULL),
    ROW(PAGEABLE_COPY, BREAKS, "copies from or to memory that is not pinned",
        "keep a pinned buffer, and copy from it", "an executor's feeds go through pinned memory"),
    ROW(ALLOCATE, BREAKS, "allocates or frees device memory",
        "allocate ahead of the loop, or from a pool that keeps its memory",
        "memory of a capture comes from the graph's pool"),
    ROW(FREE_USED, FREEZES, "frees memory that the step's work uses",
        "keep it as long as the graph lives", "the graph keeps what its capture allocated"),
    ROW(HOST_MEMORY, BREAKS, "allocates, frees or registers pinned memory",
        "make it ahead of the loop and use it again", "pinned memory comes from a pool"),
    ROW(STREAM_MEMORY, COSTS, "allocates or frees memory in stream order",
        "it is captured as nodes, which cost at each replay: allocate ahead of the loop",
        "memory of a capture comes from the graph's pool"),
    ROW(MAP_MEMORY, BREAKS, "maps or unmaps device memory",
        "let the memory grow ahead of the loop; turn growing segments off for the step", NULL),
    ROW(LOAD_MODULE, BREAKS, "loads or unloads device code",
        "run the step once before it is captured; CUDA_MODULE_LOADING=EAGER", NULL),
    ROW(MAKE_STREAM, BREAKS, "makes or destroys a stream",
        "keep streams and library handles between steps", NULL),
    ROW(MAKE_EVENT, COSTS, "makes or destroys events", "keep events between steps",
        "events of a graph are edges"),
    ROW(HOST_FUNCTION, COSTS, "runs a host function in stream order",
        "it is captured, and stops the device at each replay: move it out of the step", NULL),
    ROW(CALLBACK_CALLS, BREAKS, "calls the driver inside a host function of a stream",
        "the driver forbids it: let the function wake a thread that calls", NULL),
    ROW(STREAM_CALLBACK, BREAKS, "adds a stream callback", "use cuLaunchHostFunc", NULL),
    ROW(ATTACH_MEMORY, BREAKS, "attaches managed memory to a stream",
        "attach it ahead of the loop, or use device memory", NULL),
    ROW(REBUILD_GRAPH, COSTS, "builds or updates a graph each step",
        "instantiate once, and set the parameters that change",
        "a learned step patches only the words that changed; a cache keeps graphs by shape"),
    ROW(MANY_GRAPHS, COSTS, "launches many graphs a step", "capture the whole step into one",
        "children and conditional bodies are one launch"),
    ROW(LEGACY_STREAM, BREAKS, "works on the legacy default stream",
        "run the step on a stream of its own", "a device's streams are its own"),
    ROW(FOREIGN_EVENT, BREAKS, "waits for an event that is not recorded in the step",
        "record it in the step, or wait for it before the step begins",
        "the report on a broken capture names the event"),
    ROW(UNJOINED_FORK, BREAKS, "leaves a stream that it forked, without joining it",
        "let the first stream wait for an event recorded behind the fork's last work", NULL),
    ROW(SEPARATE_STREAM, BREAKS, "works on a second stream that no event ties to the first",
        "fork and join it by events, or capture it apart", NULL),
    ROW(CHANGING_SHAPE, FREEZES, "launches a kernel with a grid or block that changes",
        "pad to few shapes, and keep a graph for each", "a graph cache keeps one by shape"),
    ROW(DATA_SHAPE, FREEZES, "launches with a grid that depends on data it has read back",
        "launch for the largest case and let the kernel look at the count on the device",
        "counted dimensions keep extents on the device"),
    ROW(CHANGING_KERNEL, FREEZES, "launches other kernels in some steps",
        "keep a graph for each sequence, or decide on the device",
        "rondo_control_if decides on the device; a graph cache keeps one by key"),
    ROW(CHANGING_COPY, FREEZES, "copies an amount that changes", "copy the largest amount",
        "a graph cache keeps one by shape"),
    ROW(COUNTER, FREEZES, "passes a number that grows by the same each step",
        "keep it in device memory and count there", "a learned step patches it"),
    ROW(MOVING_ADDRESS, FREEZES, "passes an address that changes",
        "copy into buffers that stay, or set the parameter at each replay",
        "a learned step patches it; rondo_graph_patch sets it"),
    ROW(CHANGING_SCALAR, FREEZES, "passes a number that changes",
        "keep it in device memory and write it ahead of the replay", "rondo_graph_patch sets it"),
    ROW(RANDOM_STATE, FREEZES, "passes the state of a random generator, which replays would repeat",
        "keep the state in device memory, and move it on there",
        "generators of a capture move on by themselves"),
    ROW(COLLECTIVE_ORDER, FREEZES, "runs collectives in an order that changes",
        "run them in one order on every rank", NULL),
    ROW(COLLECTIVE_RANKS, BREAKS, "runs collectives in another order than another process does",
        "run them in one order on every rank: these wait for each other for ever", NULL),
    ROW(UNWRITTEN_WORD, NOTES,
        "passes bytes of a struct that change and look as if the program never wrote them",
        "none, if they are padding or an empty functor; fill the struct with zeros to be sure",
        NULL),
};

static const char *const g_ids[] = {
#define RULE_ID(identity, id) [RONDO__DOCTOR_RULE_##identity] = (id),
    RONDO__DOCTOR_RULE_MAP(RULE_ID)
#undef RULE_ID
};

const rondo__doctor_rule_row *rondo__doctor_get_rule(size_t rule) {
    return rule < RONDO__DOCTOR_RULE_COUNT ? &g_rows[rule] : NULL;
}

const char *rondo__doctor_rule_id(size_t rule) {
    return rule < RONDO__DOCTOR_RULE_COUNT ? g_ids[rule] : "";
}
