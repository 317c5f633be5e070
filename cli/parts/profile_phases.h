// profile_phases.h — what `rondo profile` runs: each mode prepared, then shown, as events of the
// profile.
//
//   prepare eager    the plan, and runs that warm up
//   eager            the runs that are shown
//   prepare replay   the capture, and runs that warm up
//   replay           the runs that are shown
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"

enum { PROFILE_MODE_COUNT = 2 };

typedef struct profile_phase {
    const char *name;    // "eager", "replay"
    uint64_t run_count;  // shown; 0: not run
    double *times_ms;    // of each
} profile_phase;

typedef struct profile_phases {
    profile_phase modes[PROFILE_MODE_COUNT];
    bool was_interrupted;
} profile_phases;

// Runs all modes between the start and the stop of the profile; replay only where the session
// allows graphs. On failure prints why. Ctrl-C ends it early, which is no failure.
//
// Ownership: free with profile_phases_free, also after a failure.
bool profile_phases_run(cli_session *session, rondo_profile *profile, uint64_t run_count,
                        uint64_t warm_up_count, profile_phases *out_phases);
void profile_phases_free(profile_phases *phases);
