// profile/profile.h — the profile object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/collector.h"
#include "rondo/profile.h"

typedef enum rondo__profile_state {
    RONDO__PROFILE_NEW,
    RONDO__PROFILE_RUNNING,
    RONDO__PROFILE_STOPPED,
} rondo__profile_state;

struct rondo_profile {
    rondo__profile_state state;
    rondo_profile_options options;
    const rondo__profile_source *source;  // while it runs; NULL: none
    int64_t process;                      // that started it
    size_t open_before;                   // events of the thread that started it
    char source_text[160];
    rondo__profile_store store;  // STOPPED
};
