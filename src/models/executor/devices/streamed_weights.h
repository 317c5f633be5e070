// executor/devices/streamed_weights.h — weights that do not stay on the GPU: under
// options.weight_limit_bytes the largest ones are in pinned host memory, and each run brings them,
// ahead of their use.
//
//   copy stream    bring 1 ── bring 2 ───── bring 3 ── ...      into two buffers in turn
//                      \          \  /          \  .
//   run's stream    ─── op 1 ────── op 2 ──────── op 3 ── ...   op 3's weights wait for op 1
//
// A unit is the weights that one op reads. Each buffer has room for the largest unit; a unit is
// copied while the op before its own runs, and its buffer is written again when its op is done.
// Events order the two streams, eagerly and in captures, where the copies become nodes of the
// segment's graph on a branch of their own. A segment brings the weights of its own ops. Kernels
// find the weights at their inputs' addresses, in the form that they asked for.
// (rondo__kernel_request).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Decides which weights spill, before kernels are prepared; plan->streamed stays NULL where none
// does.
//
// Errors:    NO_MEMORY (also: the limit leaves no room for the weights that have to stay).
// Threads:   one thread per executor; as all functions below.
RONDO_MUST_USE rondo_status rondo__streamed_decide(rondo__unit *unit, rondo__plan *plan);
void rondo__streamed_drop(rondo__unit *unit, rondo__plan *plan);  // with the plan

// Lets the kernel of node `n` ask.
void rondo__streamed_fill_request(const rondo__plan *plan, size_t n,
                                  rondo__kernel_request *request);

// How many are to be brought so far, and giving up all but the first ones: a kernel that asked for
// them is not to be had.
size_t rondo__streamed_count(const rondo__plan *plan);
void rondo__streamed_cut(const rondo__plan *plan, size_t count);

bool rondo__streamed_has(const rondo__plan *plan, int32_t value);

// Brings constant `value` as input of a node, as it is.
RONDO_MUST_USE rondo_status rondo__streamed_add(rondo__plan *plan, size_t node, size_t input,
                                                int32_t value);

// Makes units and buffers, and tells items where their inputs are, once those are resolved.
//
// Errors:    NO_MEMORY (also: the forms of weights that stay are larger than the limit),
//            NO_DEVICE_MEMORY, and those of rondo_event_create and rondo_stream_create.
RONDO_MUST_USE rondo_status rondo__streamed_plan(rondo__unit *unit, rondo__plan *plan);

// Around the launches of a segment, and of each of its items.
//
// Errors:    those of copies, rondo_event_record and rondo_stream_wait_event.
RONDO_MUST_USE rondo_status rondo__streamed_begin(const rondo__unit *unit, const rondo__plan *plan,
                                                  const rondo__step *step);
RONDO_MUST_USE rondo_status rondo__streamed_enter(const rondo__unit *unit, const rondo__plan *plan,
                                                  size_t item);
RONDO_MUST_USE rondo_status rondo__streamed_leave(const rondo__unit *unit, const rondo__plan *plan,
                                                  const rondo__step *step, size_t item);

// Brings what an item reads into a buffer of its own, on the item's stream, and says so in
// `inputs`.
//
// Errors:    those of rondo_stream_copy.
RONDO_MUST_USE rondo_status rondo__streamed_put(const rondo__plan *plan, size_t item,
                                                rondo_stream *stream, char *buffer,
                                                const void **inputs);

// Waits for copies of a run that failed on its way.
void rondo__streamed_drain(const rondo_executor *executor);

// The weights that a step brings, and the weights that the plan keeps in pinned memory.
rondo__brought rondo__streamed_measure(const rondo__plan *plan, const rondo__step *step);
size_t rondo__streamed_get_bytes(const rondo__plan *plan);
size_t rondo__streamed_get_buffer_bytes(const rondo__plan *plan);  // of both

// Gives up what an executor has for it; no plan is left.
void rondo__streamed_free(rondo_executor *executor);
