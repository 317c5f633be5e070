// profile/page_parts.h — what a page has tables of: each of the program's outermost events, as
// "eager" and "replay" of the tool, and the whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/report.h"

enum { RONDO__PAGE_PART_MAX = 12 };

typedef struct rondo__page_part {
    const char *name;
    uint64_t begin_ns;
    uint64_t end_ns;
    rondo__profile_table table;
} rondo__page_part;

typedef struct rondo__page_parts {
    size_t count;
    rondo__page_part parts[RONDO__PAGE_PART_MAX + 1];  // the whole is the last
} rondo__page_parts;

// Events whose names occur once; a step that the program repeats is a row, and no part.
//
// Errors:    NO_MEMORY.
// Ownership: deinit what it made, also after a failure.
RONDO_MUST_USE rondo_status rondo__page_parts_init(const rondo__profile_report *report,
                                                   rondo__page_parts *out_parts);
void rondo__page_parts_deinit(rondo__page_parts *parts);
