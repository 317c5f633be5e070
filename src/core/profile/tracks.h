// profile/tracks.h — device work as rows of a picture, in which nothing lies over anything else.
//
// A stream has one track, and more where branches of a graph run side by side: each piece of work
// goes to the first track of its stream that is free when it begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/records.h"
#include "rondo/export.h"
#include "rondo/status.h"

typedef struct rondo__profile_track {
    int32_t device;
    uint64_t stream;
    uint32_t lane;  // from 0, within the stream
    uint64_t end_ns;
} rondo__profile_track;

typedef struct rondo__profile_tracks {
    size_t count;
    size_t capacity;
    rondo__profile_track *tracks;
    uint32_t *of_work;  // the track of each piece of work
} rondo__profile_tracks;

// Errors:    NO_MEMORY.
// Ownership: deinit what it made, also after a failure.
RONDO_MUST_USE rondo_status rondo__profile_tracks_make(const rondo__profile_records *records,
                                                       rondo__profile_tracks *out_tracks);
void rondo__profile_tracks_deinit(rondo__profile_tracks *tracks);

// "cuda:0", "processor".
const char *rondo__profile_name_device(int32_t device, char buffer[32]);
// "stream 7", "stream 7, branch 2".
const char *rondo__profile_name_track(const rondo__profile_track *track, char buffer[64]);
