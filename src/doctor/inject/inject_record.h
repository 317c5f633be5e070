// doctor/inject/inject_record.h — the ring of this process, and how a call becomes a record.
//
// The injected library is a guest in another's program: it prints nothing, keeps errno, takes no
// lock while the driver works, and does nothing when its ring cannot be made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __x86_64__
#include <x86intrin.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>

#include "doctor/stream/doctor_event.h"

enum { RONDO__INJECT_UNKNOWN, RONDO__INJECT_ON, RONDO__INJECT_OFF };

// What every call reads and few calls write, in one line of the processor's cache.
typedef struct rondo__inject_common_state {
    _Alignas(64) atomic_int state;
    atomic_int capture_count;  // streams that record
    atomic_uint epoch;         // what is known of functions holds in one of them
    atomic_uint followed;      // what was asked for of device times
    atomic_bool is_timed;
    atomic_bool has_ticks;  // the processor's counter is known, as follows
    uint64_t base_ns, base_ticks;
    uint64_t ns_in_ticks;  // 32 bits of it behind the point
} rondo__inject_common_state;

extern rondo__inject_common_state rondo__inject_common;

typedef struct rondo__inject_thread_state {
    uint32_t thread;  // 0: not known yet
    uint32_t call_count;
    bool is_in_callback;
} rondo__inject_thread_state;

extern _Thread_local rondo__inject_thread_state rondo__inject_thread;

bool rondo__inject_start(void);

// Whether records are wanted; makes the ring on the first call. A child of fork gets its own.
static inline bool rondo__inject_is_on(void) {
    const int state = atomic_load_explicit(&rondo__inject_common.state, memory_order_relaxed);
    return __builtin_expect(state == RONDO__INJECT_ON, 1) ||
           (state == RONDO__INJECT_UNKNOWN && rondo__inject_start());
}

static inline uint32_t rondo__inject_get_epoch(void) {
    return atomic_load_explicit(&rondo__inject_common.epoch, memory_order_acquire);
}

uint64_t rondo__inject_ask_clock(void);

// CLOCK_MONOTONIC, or what the processor's own counter says of it, which takes a fraction.
static inline uint64_t rondo__inject_now_ns(void) {
#ifdef __x86_64__
    const rondo__inject_common_state *common = &rondo__inject_common;
    if (__builtin_expect(atomic_load_explicit(&common->has_ticks, memory_order_acquire), 1)) {
        const uint64_t ticks = __rdtsc();
        const uint64_t way = ticks > common->base_ticks ? ticks - common->base_ticks : 0;
        return common->base_ns + (uint64_t)((unsigned __int128)way * common->ns_in_ticks >> 32);
    }
#endif
    return rondo__inject_ask_clock();
}

enum { RONDO__INJECT_SAMPLE_EVERY = 64 };

uint32_t rondo__inject_ask_thread(void);
uint64_t rondo__inject_begin_sample(void);

// Enters a call; returns the thread. `out_entered_ns`: 0, but for a call that is a sample of what
// watching takes. None is taken along with device times.
static inline uint32_t rondo__inject_enter(uint64_t *out_entered_ns) {
    rondo__inject_thread_state *own = &rondo__inject_thread;
    *out_entered_ns = 0;
    if (__builtin_expect(++own->call_count % RONDO__INJECT_SAMPLE_EVERY == 0, 0)) {
        *out_entered_ns = rondo__inject_begin_sample();
    }
    return __builtin_expect(own->thread != 0, 1) ? own->thread : rondo__inject_ask_thread();
}

// Leaves it: what watching took. Returns what the doctor asks for: an odd number where device times
// shall be taken.
uint32_t rondo__inject_leave(uint64_t entered_ns, uint64_t duration_ns);

// The flags of a call that is made now.
static inline uint8_t rondo__inject_find_flags(bool is_per_thread) {
    const rondo__inject_common_state *common = &rondo__inject_common;
    const bool is_captured = atomic_load_explicit(&common->capture_count, memory_order_relaxed) > 0;
    const bool is_timed = atomic_load_explicit(&common->is_timed, memory_order_relaxed);
    return (uint8_t)((is_per_thread ? RONDO__DOCTOR_PER_THREAD : 0) |
                     (rondo__inject_thread.is_in_callback ? RONDO__DOCTOR_IN_CALLBACK : 0) |
                     (is_captured ? RONDO__DOCTOR_IN_CAPTURE : 0) |
                     (is_timed ? RONDO__DOCTOR_TIMED : 0));
}

// Records in short a call that was recorded whole before, by its hash. False: it was not, or there
// was no room.
bool rondo__inject_put_again(uint64_t hash, uint64_t begin_ns, uint64_t duration_ns);

// Records a call whole. `hash`: what it is known by from then on; 0: nothing.
void rondo__inject_put_whole(rondo__doctor_event *event, const uint64_t *words, uint64_t hash);

// A call that is no launch: starts a record, and returns when it was entered, as above. The caller
// sets its time just before the driver is entered.
uint64_t rondo__inject_begin(rondo__doctor_event *event, uint16_t call, bool is_per_thread);

// The time and the status; and the record goes into the ring. Returns what the doctor asks for.
uint32_t rondo__inject_end(rondo__doctor_event *event, int status, uint64_t entered_ns);

// A record of something else than a call.
void rondo__inject_put(rondo__doctor_event *event, const uint64_t *words);

// The number of a text, which is told once; 0 for NULL and where there is no room.
uint32_t rondo__inject_text(const char *text);

// By how many forks this process is away from the first: numbers of texts are its own.
uint32_t rondo__inject_count_forks(void);

// Something that the doctor shall say.
void rondo__inject_note(const char *text);

// Device times are being taken from now on, so that records say so.
void rondo__inject_set_timed(bool is_timed);

// Counts streams that record, so that records say so.
void rondo__inject_count_captures(int change);

// This thread runs a host function of a stream.
void rondo__inject_enter_callback(bool is_inside);

// Where the heap of malloc lies: pointers to it are no numbers. Told anew when it has grown.
void rondo__inject_tell_heap(void);
