// profile/profile_slice.c — see profile_slice.h.
// SPDX-License-Identifier: Apache-2.0

#include "profile/profile_slice.h"

#include <string.h>

#include "base/memory.h"

const rondo__profile_span *rondo__profile_find_event(const rondo__profile_records *records,
                                                     const char *name) {
    for (size_t i = 0; i < records->span_count; ++i) {
        const rondo__profile_span *span = &records->spans[i];
        if (span->parent == 0 && span->category == RONDO__SPAN_USER &&
            strcmp(span->name, name) == 0) {
            return span;
        }
    }
    return NULL;
}

static uint64_t cut(uint64_t time_ns, const rondo__profile_span *event) {
    return time_ns < event->end_ns ? time_ns : event->end_ns;
}

// Copies the spans, whose numbers change; new_ids[old] is the new one, 0 of those left out.
static void copy_spans(const rondo__profile_records *all, const rondo__profile_span *event,
                       rondo__profile_slice *slice, uint64_t *new_ids) {
    size_t count = 0;
    for (size_t i = 0; i < all->span_count; ++i) {
        const rondo__profile_span *span = &all->spans[i];
        if (span == event || span->begin_ns < event->begin_ns || span->begin_ns >= event->end_ns) {
            continue;
        }
        rondo__profile_span *copy = &slice->spans[count++];
        *copy = *span;
        copy->id = count;
        copy->parent = new_ids[span->parent];
        copy->end_ns = cut(span->end_ns, event);
        new_ids[span->id] = copy->id;
    }
    slice->records.span_count = count;
}

// Work goes with the span that put it there; where that is not known, with its time.
static void copy_works(const rondo__profile_records *all, const rondo__profile_span *event,
                       rondo__profile_slice *slice, const uint64_t *new_ids) {
    size_t count = 0;
    for (size_t i = 0; i < all->work_count; ++i) {
        const rondo__profile_work *work = &all->works[i];
        const bool is_inside = work->begin_ns >= event->begin_ns && work->begin_ns < event->end_ns;
        if (!is_inside ||
            (work->span != 0 && work->span != event->id && new_ids[work->span] == 0)) {
            continue;
        }
        rondo__profile_work *copy = &slice->works[count++];
        *copy = *work;
        copy->span = new_ids[work->span];
        copy->end_ns = cut(work->end_ns, event);
    }
    slice->records.work_count = count;
}

rondo_status rondo__profile_slice_init(const rondo__profile_records *records,
                                       const rondo__profile_span *event,
                                       rondo__profile_slice *out_slice) {
    rondo__profile_slice slice = {.records = *records};
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    *out_slice = (rondo__profile_slice){0};
    uint64_t *new_ids = rondo__calloc(records->span_count + 1, sizeof *new_ids);
    slice.spans = rondo__calloc(records->span_count + 1, sizeof *slice.spans);
    slice.works = rondo__calloc(records->work_count + 1, sizeof *slice.works);
    if (new_ids == NULL || slice.spans == NULL || slice.works == NULL) {
        goto free_ids;
    }
    copy_spans(records, event, &slice, new_ids);
    copy_works(records, event, &slice, new_ids);
    slice.records.spans = slice.spans;
    slice.records.works = slice.works;
    slice.records.begin_ns = event->begin_ns;
    slice.records.end_ns = event->end_ns;
    for (size_t i = 0; i < records->sample_count; ++i) {
        const rondo__profile_sample *sample = &records->samples[i];
        if (sample->time_ns < event->begin_ns) {
            slice.records.samples = sample + 1;
            slice.records.sample_count = records->sample_count - i - 1;
        } else if (sample->time_ns > event->end_ns) {
            slice.records.sample_count -= records->sample_count - i;
            break;
        }
    }
    *out_slice = slice;
    slice.spans = NULL;
    slice.works = NULL;
    status = RONDO_STATUS_OK;

free_ids:
    rondo__free(new_ids);
    rondo__profile_slice_deinit(&slice);
    return status;
}

void rondo__profile_slice_deinit(rondo__profile_slice *slice) {
    rondo__free(slice->spans);
    rondo__free(slice->works);
    *slice = (rondo__profile_slice){0};
}
