// profile/profile.c — the calls on profiles: one runs at a time in a process.
// SPDX-License-Identifier: Apache-2.0
#include "profile/profile.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/check.h"
#include "backend/open_devices.h"
#include "base/memory.h"
#include "base/read_options.h"

enum { RECORD_LIMIT_DEFAULT = 1000 * 1000, OPEN_MAX = 64 };

// The process whose profile runs; 0: none. A child of a fork has no part in what its parent began.
static _Atomic(int64_t) g_process;

// Events of the program's that are open on this thread.
static _Thread_local rondo__hook_scope t_events[OPEN_MAX];
static _Thread_local size_t t_event_count;

// ---- life -------------------------------------------------------------------------------------

rondo_status rondo_profile_create(const rondo_profile_options *options,
                                  rondo_profile **out_profile) {
    RETURN_IF_ERROR(rondo__check_pointer(out_profile, __func__, "out_profile"));
    *out_profile = NULL;
    rondo_profile_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_profile_options"));
    if (wanted.source < RONDO_PROFILE_SOURCE_AUTO || wanted.source > RONDO_PROFILE_SOURCE_NONE) {
        return RONDO_FAIL(INVALID, "options.source is %d, not a rondo_profile_source",
                          (int)wanted.source);
    }
    rondo_profile *profile = rondo__calloc(1, sizeof *profile);
    if (profile == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    profile->options = wanted;
    if (wanted.record_limit == 0) {
        profile->options.record_limit = RECORD_LIMIT_DEFAULT;
    }
    rondo__hook_hold_labels();
    *out_profile = profile;
    return RONDO_STATUS_OK;
}

static bool is_running_here(const rondo_profile *profile) {
    return profile->state == RONDO__PROFILE_RUNNING && profile->process == (int64_t)getpid();
}

static void stop_source(rondo_profile *profile) {
    const rondo__profile_source *source = profile->source;
    if (source != NULL && source->flush != NULL) {
        source->flush();
    }
    if (source != NULL && source->stop != NULL) {
        source->stop();
    }
}

void rondo_profile_destroy(rondo_profile *profile) {
    if (profile == NULL) {
        return;
    }
    if (is_running_here(profile)) {
        rondo__collector_end_region();
        stop_source(profile);
        rondo__collector_abandon();
        atomic_store(&g_process, 0);
    }
    rondo__profile_store_deinit(&profile->store);
    rondo__hook_release_labels();
    rondo__free(profile);
}

// ---- the region -------------------------------------------------------------------------------

static void find_capture(rondo_device *device, void *data) {
    if (atomic_load(&device->open_capture_count) > 0) {
        *(rondo_device **)data = device;
    }
}

// A source may do what breaks captures, and a capture would be in the profile by halves.
static rondo_status refuse_captures(void) {
    rondo_device *recording = NULL;
    rondo__device_visit_others(NULL, find_capture, &recording);
    return recording == NULL ? RONDO_STATUS_OK
                             : RONDO_FAIL_AS("rondo_profile_start", STATE,
                                             "a stream of %s records; start the profile before the "
                                             "capture begins or when it has ended",
                                             recording->name);
}

// Takes the one place that there is.
static rondo_status take_place(const rondo_profile *profile) {
    const int64_t process = (int64_t)getpid();
    int64_t former = atomic_load(&g_process);
    if (former != process && atomic_compare_exchange_strong(&g_process, &former, process)) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(
        "rondo_profile_start", STATE,
        "%s; stop it first, since a process has one profile at a time",
        is_running_here(profile) ? "the profile runs already" : "another profile runs already");
}

rondo_status rondo_profile_start(rondo_profile *profile) {
    RETURN_IF_ERROR(rondo__check_pointer(profile, __func__, "profile"));
    RETURN_IF_ERROR(refuse_captures());
    RETURN_IF_ERROR(take_place(profile));
    rondo__profile_store_deinit(&profile->store);
    profile->state = RONDO__PROFILE_NEW;
    rondo_status status = rondo__profile_source_start(profile->options.source, &profile->source);
    if (status == RONDO_STATUS_OK) {
        uint32_t what = RONDO__HOOK_SPANS | RONDO__HOOK_COUNTERS;
        what |= profile->options.source != RONDO_PROFILE_SOURCE_NONE ? RONDO__HOOK_WORK : 0;
        status = rondo__collector_start(profile->options.record_limit, profile->source, what);
        if (status != RONDO_STATUS_OK) {
            stop_source(profile);
        }
    }
    if (status != RONDO_STATUS_OK) {
        atomic_store(&g_process, 0);
        return status;
    }
    profile->process = (int64_t)getpid();
    profile->open_before = t_event_count;
    profile->state = RONDO__PROFILE_RUNNING;
    return RONDO_STATUS_OK;
}

static void describe_source(rondo_profile *profile) {
    if (profile->source != NULL && profile->source->describe != NULL) {
        profile->source->describe(profile->source_text, sizeof profile->source_text);
        return;
    }
    const char *text = profile->options.source == RONDO_PROFILE_SOURCE_NONE
                           ? "none: the processor's own work only"
                           : "clocks of host streams' workers";
    (void)snprintf(profile->source_text, sizeof profile->source_text, "%s",
                   profile->source != NULL ? profile->source->name : text);
}

rondo_status rondo_profile_stop(rondo_profile *profile) {
    RETURN_IF_ERROR(rondo__check_pointer(profile, __func__, "profile"));
    if (!is_running_here(profile)) {
        return RONDO_FAIL(STATE, "the profile does not run%s",
                          profile->state == RONDO__PROFILE_STOPPED ? "; it was stopped already"
                          : profile->state == RONDO__PROFILE_RUNNING
                              ? " in this process; the parent of the fork stops it"
                              : "; call rondo_profile_start first");
    }
    if (t_event_count > profile->open_before) {
        return RONDO_FAIL(STATE,
                          "%zu events that this thread has begun are open; call rondo_profile_end "
                          "for each first",
                          t_event_count - profile->open_before);
    }
    rondo__collector_end_region();
    stop_source(profile);
    const rondo_status status = rondo__collector_stop(&profile->store);
    describe_source(profile);
    if (profile->source != NULL && profile->source->count_dropped != NULL) {
        profile->store.records.dropped_count += profile->source->count_dropped();
    }
    profile->source = NULL;
    profile->store.records.source = profile->source_text;
    profile->state = status == RONDO_STATUS_OK ? RONDO__PROFILE_STOPPED : RONDO__PROFILE_NEW;
    atomic_store(&g_process, 0);
    return status;
}

// ---- the program's events ---------------------------------------------------------------------

rondo_status rondo_profile_begin(const char *name) {
    RETURN_IF_ERROR(rondo__check_pointer(name, __func__, "name"));
    if (name[0] == '\0') {
        return RONDO_FAIL(INVALID, "an event's name has at least one character");
    }
    if (t_event_count == OPEN_MAX) {
        return RONDO_FAIL(STATE, "%d events are open on this thread, \"%.40s\" would be one more",
                          (int)OPEN_MAX, name);
    }
    t_events[t_event_count++] = rondo__hook_enter(RONDO__SPAN_USER, name);
    return RONDO_STATUS_OK;
}

rondo_status rondo_profile_end(void) {
    if (t_event_count == 0) {
        return RONDO_FAIL(STATE,
                          "no event is open on this thread: there were more ends than begins");
    }
    rondo__hook_leave(&t_events[--t_event_count]);
    return RONDO_STATUS_OK;
}
