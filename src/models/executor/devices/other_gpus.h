// executor/devices/other_gpus.h — other GPUs than the executor's, on which ops are placed
// ("gpu:1").
//
//   executor's stream   begin ── segment ──┬───────────── segment ── end
//   the other GPU's         └── (waits) ── └─ copy, segment ──┘
//
// Each step of a plan is on one device, on the stream that the executor has there, and a segment
// has a graph there. Between the streams there are events, so the processor waits for nothing: a
// step waits for the latest steps on other streams that it reads something of; all streams wait for
// the begin of a run, and its end for all of them. So runs follow each other on all devices, and a
// wait for the executor's stream is a wait for all of them.
//
// Order between the streams is not the order of the plan. So a value that one device writes and
// another one reads keeps its bytes until the run ends, and no other value of the plan shares
// pinned memory that another GPU reads or writes (compile/value_slots.c): memory that is used again
// needs no event.
//
// A graph holds work of one device. CUDA can record another device's work into it by events, but
// then one launch waits for all of it, each patch and check would need to know whose a node is, and
// drivers differ in what they take: so a graph for each segment, and events between.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// The number of the executor's GPU; -1 on the host.
int rondo__other_gpus_get_own(const rondo_executor *executor);

// The GPU of this number, another one than the executor's, opened at its first use.
//
// Errors:    those of rondo_device_open and rondo_stream_create, NO_MEMORY.
// Threads:   one thread per executor; as all functions below.
RONDO_MUST_USE rondo_status rondo__other_gpus_open(rondo_executor *executor, int ordinal,
                                                   rondo__peer **out_peer);
// Gives up all of a caller's executor; its plans are gone.
void rondo__other_gpus_free(rondo_executor *executor);
// Gives up their weights: the executor gets another program.
void rondo__other_gpus_forget_weights(rondo_executor *executor);

// Lets the plan have ops there; once is enough.
RONDO_MUST_USE rondo_status rondo__other_gpus_add(rondo_executor *executor, rondo__plan *plan,
                                                  int ordinal);
void rondo__other_gpus_drop(rondo__unit *unit, rondo__plan *plan);  // with the plan

// Where node `n` is placed, if that is another GPU; otherwise RONDO__SIDE_DEVICE.
uint8_t rondo__other_gpus_get_side(const rondo__plan *plan, size_t n);

// Decides which step waits for which, once steps and items are there.
//
// Errors:    NO_MEMORY, and those of rondo_event_create.
RONDO_MUST_USE rondo_status rondo__other_gpus_link(rondo__unit *unit, rondo__plan *plan);

// Puts the waits and marks of a run on the streams; nothing where the plan has no peers.
//
// Errors:    those of rondo_event_record and rondo_stream_wait_event.
RONDO_MUST_USE rondo_status rondo__other_gpus_begin(rondo__unit *unit, rondo__plan *plan);
RONDO_MUST_USE rondo_status rondo__other_gpus_enter(const rondo__unit *unit,
                                                    const rondo__plan *plan,
                                                    const rondo__step *step);
RONDO_MUST_USE rondo_status rondo__other_gpus_leave(const rondo__unit *unit,
                                                    const rondo__plan *plan,
                                                    const rondo__step *step);
RONDO_MUST_USE rondo_status rondo__other_gpus_end(rondo__unit *unit, rondo__plan *plan);

// Waits for the other GPUs, and gets what failed there.
//
// Errors:    those of rondo_stream_synchronize.
RONDO_MUST_USE rondo_status rondo__other_gpus_synchronize(const rondo__plan *plan);

// The same for all that the executor has opened, whatever plans it has now.
RONDO_MUST_USE rondo_status rondo__other_gpus_synchronize_all(const rondo_executor *executor);
