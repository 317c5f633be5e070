// profile/profile_table.h — the table made of records.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/records.h"
#include "rondo/profile.h"

// One row of the event table. Spans of the same name under the same parent row are one row; what
// they put on devices stands in rows below it, one for each label, or name where there is none.
typedef struct rondo__profile_row {
    size_t parent;  // index of a row before it; SIZE_MAX: top level
    size_t depth;
    uint32_t thread;  // index; UINT32_MAX: merged
    rondo__span_category category;
    bool is_work;     // a row of device work; then cpu_ns is 0
    bool is_outside;  // time of threads outside of their spans, and work of no span
    const char *name;
    const char *detail;
    uint64_t calls;
    uint64_t total_ns;  // of the spans; of work, of the work
    uint64_t cpu_ns;    // the total without waits inside
    uint64_t gpu_ns;    // busy time of devices with what the spans put there, overlaps once
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t quartiles_ns[3];  // of the calls: the second is their median
    uint64_t bytes;
} rondo__profile_row;

typedef struct rondo__profile_table {
    size_t row_count;
    rondo__profile_row *rows;  // each before those under it; siblings in the order of the key
    uint64_t total_ns;         // of the region
    uint64_t computation_ns;   // at least one op was computed, on a device or a processor
    uint64_t framework_ns;     // the rest
    uint64_t device_ns;        // at least one device was busy
    uint32_t thread_count;     // that had spans, and the one that started the profile
    uint64_t rows_ns;          // what top-level rows of spans add up to: total_ns of each thread
    uint64_t async_calls, async_ns, async_bytes;  // copies
    uint64_t sync_calls, sync_ns, sync_bytes;
} rondo__profile_table;

// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__profile_table_init(const rondo__profile_records *records,
                                                      rondo_profile_key key, bool per_thread,
                                                      rondo__profile_table *out_table);
void rondo__profile_table_deinit(rondo__profile_table *table);

// "run", "replay" ...; "kernel", "memcpy" ...; "host to device" ...
const char *rondo__span_category_get_name(rondo__span_category category);
const char *rondo__work_kind_get_name(rondo__work_kind kind);
const char *rondo__way_get_name(rondo__way way);
