// executor/run/carried.h — a bound run as one replay: its graph brings the feeds, does the
// plan's work, and takes the fetches away.
//
//   feeds in host memory   pageable: by the processor to the plan's staging memory; from there, or
//                          from pinned memory where it lies, by the graph's first kernel. In a
//                          run that is not waited for: by an input lane (input_lanes.h)
//   near tensors           stand in for values (stand_ins.h), or are copied as the others
//   fetches                likewise, by its last kernel; pageable ones leave staging memory when
//                          the wait is over, or by a host function behind the replay
//   large tensors          by copies on the stream, before and behind the replay
//
// On the host the graph works on tensors of the device, and the thread that waits copies the
// others and runs it.
//
// So a run of small tensors is a launch and a wait; without it six copies and four time stamps took
// most of 43 us on an H200. Where another tensor of the same kind is bound the graph is patched;
// after other changes it is made anew. Generators take part in the graph as in a plan's own, so
// that a run draws what it would have drawn by names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/run/fetch.h"

// Records the graph of such a run; *out_carried stays NULL where the plan cannot be recorded so.
//
// fetch      has prepared results, of a plan with one segment. Whether the run waits decides which
//            ways tensors of host memory go.
//
// Errors:    LOST. Other failures mean that the run is as others are.
// Ownership: destroy it before the executor; not between a run and its wait, if that belongs to the
//            same call.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__carried_make(const rondo__fetch *fetch,
                                                const rondo_tensor *feeds,
                                                rondo__carried **out_carried);
void rondo__carried_destroy(rondo__carried *carried);  // NULL is fine

// Whether the plan still has the graph that it had when this one was made, whose marks tell a
// watchdog where the run is.
bool rondo__carried_is_watched_so(rondo__carried *carried);

// Whether it does runs that wait, or those that do not; without tensors of host memory both.
bool rondo__carried_serves(const rondo__carried *carried, bool waits);

// Takes other tensors of the same types and shapes. False: they need another graph.
bool rondo__carried_follow(rondo__carried *carried, const rondo__fetch *fetch,
                           const rondo_tensor *feeds);

// Puts the run of fetch->carried on the stream.
//
// Errors:    as rondo_graph_replay and rondo_stream_copy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__carried_put(const rondo__fetch *fetch,
                                               const rondo_tensor *feeds);

// Whether a feed is a device tensor.
bool rondo__carried_is_near(const rondo__carried *carried);
// Whether it has device tensors, and copies none of them.
bool rondo__carried_is_in_place(const rondo__carried *carried);
// Whether the device writes output `i` where it was bound.
bool rondo__carried_writes(const rondo__carried *carried, size_t i);
// Where its ops leave output `i`: what is an input, or a view of one, lies in the feed.
const void *rondo__carried_get_place(const rondo__carried *carried, size_t i);
