// profile/cupti_session.h — listening to CUPTI: activity records of all devices of the process.
//
//   thread            cuptiPush(7) ... cuGraphLaunch ... cuptiPop
//   CUPTI             external {7, correlation 41}     driver call, correlation 41
//   device, later     kernel {correlation 41, graph node 0x300000002, times}
//
// A kernel's record and the one that says which span launched it may come in any order and in
// different buffers, so both are kept until the end and joined there. CUPTI allows one listener in
// a process: there is one session, and its state is the process's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/cupti/cupti_api.h"
#include "base/log/hook.h"

// Something that a device did, with the names that CUPTI has for it.
typedef struct rondo__cupti_work {
    rondo__work_kind kind;
    rondo__way way;
    const char *name;  // of a kernel, as the compiler made it; "" of others
    uint64_t span;     // that was pushed when it was launched; 0: none
    int32_t device;
    uint32_t stream;
    uint64_t bytes;
    uint64_t begin_ns;  // rondo__clock_now_ns
    uint64_t end_ns;
    uint64_t graph_node;  // 0: not of a graph
    uint32_t graph;
} rondo__cupti_work;

// Begins to listen.
//
// Errors:    UNAVAILABLE (another tool listens, no permission, a call failed; with the cure).
// Threads:   one at a time, as all but push and pop.
RONDO_MUST_USE rondo_status rondo__cupti_session_start(const rondo__cupti_api *api);

// What this thread launches from now on belongs to the span; the end of one. Spans end in any
// order; the end of one that this thread did not begin is nothing.
void rondo__cupti_session_push(uint64_t span);
void rondo__cupti_session_pop(uint64_t span);

// Takes in all work that has ended; the caller has waited for the devices. The second shows what
// was taken in last, as often as it is called.
void rondo__cupti_session_flush(void);
void rondo__cupti_session_visit(void (*visit)(void *user_data, const rondo__cupti_work *work),
                                void *user_data);

// Listens no more and forgets all.
void rondo__cupti_session_stop(void);

// Counts a record that was visited as lost.
void rondo__cupti_session_drop(void);

// Of the session, also when it has ended: records that were lost.
uint64_t rondo__cupti_session_count_dropped(void);
