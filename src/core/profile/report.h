// profile/report.h — the forms of a report: one function each, found in write.c's table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.h"
#include "profile/profile_table.h"
#include "rondo/text.h"

typedef struct rondo__profile_report {
    const rondo__profile_records *records;
    const rondo__profile_table *table;
    rondo_profile_key key;
    bool per_thread;
    const char *title;    // ""
    const char *picture;  // "": none
    size_t row_limit;     // of rows under one row; 0: none
} rondo__profile_report;

// Where a report goes: appended to `text`, which is handed on now and then.
typedef struct rondo__profile_out {
    rondo__text text;
    rondo_write_function write;
    void *user_data;
    bool is_stopped;  // the program wants no more of it
} rondo__profile_out;

// Hands on what has gathered, if it is much; false: the writer may stop.
bool rondo__profile_out_pass(rondo__profile_out *out);
// The same with what is left.
void rondo__profile_out_flush(rondo__profile_out *out);

// Appends the report; what fails shows in out->text (rondo__text_get_status).
typedef void (*rondo__profile_writer)(const rondo__profile_report *report, rondo__profile_out *out);

void rondo__profile_write_plain(const rondo__profile_report *report, rondo__profile_out *out);
void rondo__profile_write_json(const rondo__profile_report *report, rondo__profile_out *out);
void rondo__profile_write_trace(const rondo__profile_report *report, rondo__profile_out *out);
void rondo__profile_write_html(const rondo__profile_report *report, rondo__profile_out *out);
