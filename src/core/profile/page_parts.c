// profile/page_parts.c — see page_parts.h.
// SPDX-License-Identifier: Apache-2.0

#include "profile/page_parts.h"

#include <string.h>

#include "base/error.h"
#include "profile/profile_slice.h"

static bool is_repeated(const rondo__profile_records *records, size_t index) {
    const rondo__profile_span *span = &records->spans[index];
    for (size_t i = 0; i < records->span_count; ++i) {
        const rondo__profile_span *other = &records->spans[i];
        if (i != index && other->parent == 0 && other->category == RONDO__SPAN_USER &&
            strcmp(other->name, span->name) == 0) {
            return true;
        }
    }
    return false;
}

static rondo_status add_part(const rondo__profile_report *report, const rondo__profile_span *event,
                             rondo__page_parts *parts) {
    rondo__profile_slice slice;
    rondo__page_part *part = &parts->parts[parts->count];
    RETURN_IF_ERROR(rondo__profile_slice_init(report->records, event, &slice));
    const rondo_status status =
        rondo__profile_table_init(&slice.records, report->key, false, &part->table);
    if (status == RONDO_STATUS_OK) {
        part->name = event->name;
        part->begin_ns = event->begin_ns;
        part->end_ns = event->end_ns;
        ++parts->count;
    }
    rondo__profile_slice_deinit(&slice);
    return status;
}

rondo_status rondo__page_parts_init(const rondo__profile_report *report,
                                    rondo__page_parts *out_parts) {
    const rondo__profile_records *records = report->records;
    *out_parts = (rondo__page_parts){0};
    // Bounded: a program that repeats an event many times has few parts, and is not searched on.
    size_t tried = 0;
    for (size_t i = 0; i < records->span_count && tried < 4 * RONDO__PAGE_PART_MAX &&
                       out_parts->count < RONDO__PAGE_PART_MAX;
         ++i) {
        if (records->spans[i].parent == 0 && records->spans[i].category == RONDO__SPAN_USER) {
            ++tried;
            if (!is_repeated(records, i)) {
                RETURN_IF_ERROR(add_part(report, &records->spans[i], out_parts));
            }
        }
    }
    rondo__page_part *whole = &out_parts->parts[out_parts->count];
    RETURN_IF_ERROR(rondo__profile_table_init(records, report->key, false, &whole->table));
    whole->name = "everything";
    whole->begin_ns = records->begin_ns;
    whole->end_ns = records->end_ns;
    ++out_parts->count;
    return RONDO_STATUS_OK;
}

void rondo__page_parts_deinit(rondo__page_parts *parts) {
    for (size_t i = 0; i < parts->count; ++i) {
        rondo__profile_table_deinit(&parts->parts[i].table);
    }
    parts->count = 0;
}
