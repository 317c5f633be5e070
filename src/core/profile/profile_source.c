// profile/profile_source.c — the list of sources, and choosing one.
// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_source.h"

#include "base/error.h"
#include "base/log/logging.h"

// In the order in which RONDO_PROFILE_SOURCE_AUTO tries them; ended by NULL. Add yours here.
static const rondo__profile_source *const sources[] = {
    &rondo__profile_source_cupti,
    &rondo__profile_source_events,
    NULL,
};

static rondo_status start_first(const rondo__profile_source **out_source) {
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t i = 0; sources[i] != NULL && *out_source == NULL; ++i) {
        if (sources[i]->start() == RONDO_STATUS_OK) {
            *out_source = sources[i];
        } else {
            RONDO_LOG_INFO_F("a profile goes without %s: %s", sources[i]->name,
                             rondo_error_get_last()->message);
        }
    }
    rondo__error_restore(&saved);
    return RONDO_STATUS_OK;
}

rondo_status rondo__profile_source_start(rondo_profile_source kind,
                                         const rondo__profile_source **out_source) {
    *out_source = NULL;
    if (kind == RONDO_PROFILE_SOURCE_NONE) {
        return RONDO_STATUS_OK;
    }
    if (kind == RONDO_PROFILE_SOURCE_AUTO) {
        return start_first(out_source);
    }
    for (size_t i = 0; sources[i] != NULL; ++i) {
        if (sources[i]->kind == kind) {
            RETURN_IF_ERROR(sources[i]->start());
            *out_source = sources[i];
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_FAIL_AS("rondo_profile_start", UNAVAILABLE,
                         "this build has no source %d for times of devices; take "
                         "RONDO_PROFILE_SOURCE_AUTO",
                         (int)kind);
}
