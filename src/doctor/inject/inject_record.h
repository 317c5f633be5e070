// doctor/inject/inject_record.h — the ring of this process, and how a call becomes a record.
//
// The injected library is a guest in another's program: it prints nothing, keeps errno, takes no
// lock while the driver works, and does nothing when its ring cannot be made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "doctor/stream/doctor_event.h"

// Whether records are wanted; makes the ring on the first call. A child of fork gets its own.
bool rondo__inject_is_on(void);

// Starts a record: the call, the thread. The caller sets its time just before the driver is
// entered.
void rondo__inject_begin(rondo__doctor_event *event, uint16_t call, bool is_per_thread);

// The time and the status; and the record with its words goes into the ring.
void rondo__inject_end(rondo__doctor_event *event, int status, const uint64_t *words);

// A record of something else than a call.
void rondo__inject_put(rondo__doctor_event *event, const uint64_t *words);

// The number of a text, which is told once; 0 for NULL and where there is no room.
uint32_t rondo__inject_text(const char *text);

// By how many forks this process is away from the first: numbers of texts are its own.
uint32_t rondo__inject_count_forks(void);

// Something that the doctor shall say.
void rondo__inject_note(const char *text);

// What the doctor asks for: an odd number where device times shall be taken.
uint32_t rondo__inject_wanted_times(void);

// Device times are being taken from now on, so that records say so.
void rondo__inject_set_timed(bool is_timed);

// Counts streams that record, so that records say so.
void rondo__inject_count_captures(int change);

// This thread runs a host function of a stream.
void rondo__inject_enter_callback(bool is_inside);

// Where the heap of malloc lies: pointers to it are no numbers. Told anew when it has grown.
void rondo__inject_tell_heap(void);

// CLOCK_MONOTONIC, or what the processor's own counter says of it, which takes a fraction.
uint64_t rondo__inject_now_ns(void);
