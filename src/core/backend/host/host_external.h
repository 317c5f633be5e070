// backend/host/host_external.h — events that graphs record and wait for at each replay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_event.h"

rondo_status rondo__host_record_external(rondo__host_event *event, rondo__host_stream *stream);
rondo_status rondo__host_wait_external(rondo__host_stream *stream, rondo__host_event *event);
bool rondo__host_has_happened(rondo__host_event *event);   // its latest record
void rondo__host_wait_happened(rondo__host_event *event);  // on the calling thread
// The arguments of a node as an external event's; NULL when the node is none.
rondo__host_external *rondo__host_get_external(void (*run)(void *), void *arguments);
// Makes sure that the records of one replay can be asked for; undone by the second.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__host_promise_externals(rondo__host_external *const *externals,
                                                          size_t count);
void rondo__host_break_promises(rondo__host_external *const *externals, size_t count);
// Asks for the records, which were promised, and resolves the waits of one replay: one serial each,
// in the order given.
void rondo__host_ask_externals(rondo__host_external *const *externals, size_t count,
                               uint64_t *out_serials);
