// profile/profile_source.h — where times of device work come from.
//
// Work that the workers of host streams do is timed by them (RONDO__HOOK_WORK). For devices whose
// work happens elsewhere one source is chosen when a profile starts. It tells what it learns by
// rondo__hook_post_work, from any thread, at any time between `start` and the return of `stop`:
//
//   start ... span_begin(7) ... cuLaunchKernel ... span_end(7) ... flush, stop
//             push 7 as external id                pop             post {span 7, times}
//
// Numbers of spans are those of base/log/hook.h; the profile makes its own of them afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "base/log/hook.h"
#include "rondo/profile.h"

// One function each; NULL ones are left out, but for `start`.
typedef struct rondo__profile_source {
    rondo_profile_source kind;
    const char *name;  // "CUPTI"
    // Begins to listen. UNAVAILABLE, with a record that says why and what would help, where this
    // source cannot be had now; then nothing else is called.
    rondo_status (*start)(void);
    // Posts what is known of all work that has ended. Called by `stop`'s thread before it.
    void (*flush)(void);
    // Nothing is posted when it has returned.
    void (*stop)(void);
    // Writes where the times come from, for people: "CUPTI 13.0: each kernel and copy". Asked after
    // `stop`, so it may say what was missed.
    void (*describe)(char *text, size_t bytes);
    // Work that was lost on the way, asked at the same time.
    uint64_t (*count_dropped)(void);
    // The calling thread has begun or ended a span. Cheap, and without hooks; no lock that the
    // driver's calls are made under.
    void (*span_begin)(uint64_t span, const rondo__hook_span *what);
    void (*span_end)(uint64_t span);
} rondo__profile_source;

extern const rondo__profile_source rondo__profile_source_cupti;
extern const rondo__profile_source rondo__profile_source_events;

// Why CUPTI did not start when it was tried last; "" when it did.
const char *rondo__profile_cupti_get_reason(void);

// Starts the source that is asked for. AUTO: the first that starts, or none. *out_source is NULL
// for none.
//
// Errors:    INVALID (no such kind), UNAVAILABLE (a kind asked for by name cannot be had).
RONDO_MUST_USE rondo_status rondo__profile_source_start(rondo_profile_source kind,
                                                        const rondo__profile_source **out_source);
