// executor/devices/transfers.h — where values cross between the processor and a GPU, or between
// GPUs.
//
//   before   x ── Gather ── MatMul ── y     after   x ── Gather ── [copy] ── MatMul ── y
//                  cpu       gpu                          cpu                 gpu
//
// Once it is known where each node of a plan runs, each value has a side. Where a node reads a
// value that lies on another side, the program gets a node rondo.Transfer, an item of a segment
// like others, so that each value crosses to a side at most once in a run, in stream order,
// captured and planned like all else. A GPU that reads a value of another GPU fetches it, if the
// driver copies directly; otherwise the value goes through pinned memory. Constants do not cross,
// because ops read them where they are. An input that both sides read is fed to both. A view is
// made again on the other side, of the copy of its source.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/copy_note.h"
#include "executor/state/plan.h"

// Makes room for what the insertion adds, so that nodes and values stay where they are: kernels
// point at them. Before any kernel is prepared.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor; as all functions below.
RONDO_MUST_USE rondo_status rondo__transfers_reserve(const rondo__plan *plan);

// Inserts the copies. `class_of`, `kernels` and the plan's homes have room for the values, once for
// each side, behind the nodes there are. Fills the plan's order, sides and mirrors.
//
// Errors:    NO_MEMORY, and those of rondo_device_copies_directly.
RONDO_MUST_USE rondo_status rondo__transfers_insert(const rondo__unit *unit, rondo__plan *plan,
                                                    rondo__node_class *class_of,
                                                    rondo__kernel **kernels);

bool rondo__kernel_is_transfer(const rondo__kernel *kernel);

// Logs a copy that a replay on `device` makes.
void rondo__transfer_log_replayed(const rondo__kernel *kernel, const rondo_device *device);

// Copies from host memory to host memory in stream order; also where the stream records.
//
// Errors:    those of rondo_stream_call_host.
RONDO_MUST_USE rondo_status rondo__transfers_put_bytes(rondo_stream *stream, void *to,
                                                       const void *from, size_t bytes);

// Copies between the processor and the device, in stream order; the note says what and for whom.
//
// Errors:    those of rondo_stream_copy.
RONDO_MUST_USE rondo_status rondo__transfers_copy(rondo_stream *stream, rondo__transfer_way way,
                                                  const rondo__copy_note *note, void *to,
                                                  const void *from, size_t bytes);

// Counts a copy that is no item of a step; stops: the run waits for it here.
void rondo__transfers_note(rondo_executor *executor, rondo__transfer_way way, size_t bytes,
                           bool stops);

// What a step copies.
const rondo__transfer_counts *rondo__transfers_count_step(const rondo__plan *plan,
                                                          rondo__step *step);
