// profile/tracks.c — see tracks.h.
// SPDX-License-Identifier: Apache-2.0

#include "profile/tracks.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"

// The track that `work` fits on, or a new one; UINT32_MAX: no memory.
static uint32_t find_track(rondo__profile_tracks *tracks, const rondo__profile_work *work) {
    uint32_t lane = 0;
    for (size_t i = 0; i < tracks->count; ++i) {
        const rondo__profile_track *track = &tracks->tracks[i];
        if (track->device != work->device || track->stream != work->stream) {
            continue;
        }
        if (track->end_ns <= work->begin_ns) {
            return (uint32_t)i;
        }
        lane = track->lane + 1;
    }
    if (RONDO__ARRAY_RESERVE(tracks->tracks, tracks->capacity, tracks->count + 1) !=
        RONDO_STATUS_OK) {
        return UINT32_MAX;
    }
    tracks->tracks[tracks->count] =
        (rondo__profile_track){.device = work->device, .stream = work->stream, .lane = lane};
    return (uint32_t)tracks->count++;
}

rondo_status rondo__profile_tracks_make(const rondo__profile_records *records,
                                        rondo__profile_tracks *out_tracks) {
    *out_tracks = (rondo__profile_tracks){0};
    out_tracks->of_work = rondo__calloc(records->work_count + 1, sizeof *out_tracks->of_work);
    if (out_tracks->of_work == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < records->work_count; ++i) {
        const rondo__profile_work *work = &records->works[i];
        const uint32_t track = find_track(out_tracks, work);
        if (track == UINT32_MAX) {
            return RONDO_STATUS_NO_MEMORY;
        }
        out_tracks->of_work[i] = track;
        out_tracks->tracks[track].end_ns = work->end_ns;
    }
    return RONDO_STATUS_OK;
}

void rondo__profile_tracks_deinit(rondo__profile_tracks *tracks) {
    rondo__free(tracks->tracks);
    rondo__free(tracks->of_work);
    *tracks = (rondo__profile_tracks){0};
}

const char *rondo__profile_name_device(int32_t device, char buffer[32]) {
    (void)snprintf(buffer, 32, device < 0 ? "processor" : "cuda:%" PRId32, device);
    return buffer;
}

const char *rondo__profile_name_track(const rondo__profile_track *track, char buffer[64]) {
    (void)snprintf(buffer, 64,
                   track->lane == 0 ? "stream %" PRIu64 : "stream %" PRIu64 ", branch %u",
                   track->stream, (unsigned)track->lane + 1);
    return buffer;
}
