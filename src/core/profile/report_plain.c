// profile/report_plain.c — the report for people, in the order known from Paddle's profiler.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "profile/report.h"

enum { NAME_WIDTH = 56 };

static const char *get_key_name(rondo_profile_key key) {
    static const char *const names[] = {"total time",   "number of calls", "shortest call",
                                        "longest call", "average time",    "GPU time"};
    return names[key];
}

static double to_ms(uint64_t ns) {
    return (double)ns / 1e6;
}

static double get_ratio(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

static void write_head(const rondo__profile_report *report, rondo__text *text) {
    const rondo__profile_table *table = report->table;
    rondo__text_append(text, "---- profile");
    if (report->title[0] != '\0') {
        rondo__text_append(text, ": ");
        rondo__text_append_escaped(text, report->title);
    }
    rondo__text_append(text,
                       " ----\n\n"
                       "Time unit: ms\n"
                       "Sorted by: %s\n"
                       "Times of devices: %s\n\n",
                       get_key_name(report->key), report->records->source);
    rondo__text_append(text, "Total time: %.4f\n", to_ms(table->total_ns));
    rondo__text_append(text, "  Computation time         %12.4f   Ratio: %6.2f%%\n",
                       to_ms(table->computation_ns),
                       100.0 * get_ratio(table->computation_ns, table->total_ns));
    rondo__text_append(text, "  Framework overhead       %12.4f   Ratio: %6.2f%%\n\n",
                       to_ms(table->framework_ns),
                       100.0 * get_ratio(table->framework_ns, table->total_ns));
}

static void write_copies(const rondo__profile_table *table, rondo__text *text) {
    const uint64_t calls = table->async_calls + table->sync_calls;
    const uint64_t ns = table->async_ns + table->sync_ns;
    const uint64_t bytes = table->async_bytes + table->sync_bytes;
    rondo__text_append(
        text,
        "---- GPU memcpy summary ----\n\n"
        "GPU memcpy       Calls: %-8" PRIu64 " Total: %12.4f   Ratio: %6.2f%%   %.3f MB\n",
        calls, to_ms(ns), 100.0 * get_ratio(ns, table->total_ns), (double)bytes / 1e6);
    rondo__text_append(
        text, "  async          Calls: %-8" PRIu64 " Total: %12.4f   Ratio: %6.2f%%   %.3f MB\n",
        table->async_calls, to_ms(table->async_ns),
        100.0 * get_ratio(table->async_ns, table->total_ns), (double)table->async_bytes / 1e6);
    rondo__text_append(
        text, "  sync           Calls: %-8" PRIu64 " Total: %12.4f   Ratio: %6.2f%%   %.3f MB\n\n",
        table->sync_calls, to_ms(table->sync_ns),
        100.0 * get_ratio(table->sync_ns, table->total_ns), (double)table->sync_bytes / 1e6);
}

// A name behind its indentation, cut to its column; too long ones keep their ends, which differ.
static void write_name(const rondo__profile_row *row, rondo__text *text) {
    char shown[512];
    char name[400];
    (void)rondo_text_escape(row->name, name, sizeof name);
    const int indent = row->depth < 16 ? (int)row->depth * 2 : 32;
    const int length =
        snprintf(shown, sizeof shown, "%*s%s%s%s%.60s", indent, "", row->is_work ? "* " : "", name,
                 row->detail[0] != '\0' ? " " : "", row->detail);
    if (length > NAME_WIDTH) {
        rondo__text_append(text, "%.*s...%s", indent + 8, shown,
                           shown + length - (NAME_WIDTH - indent - 11));
    } else {
        rondo__text_append(text, "%-*s", NAME_WIDTH, shown);
    }
}

static void write_row(const rondo__profile_table *table, const rondo__profile_row *row,
                      uint64_t whole, rondo__text *text) {
    write_name(row, text);
    rondo__text_append(text, " %8" PRIu64 " %12.4f", row->calls, to_ms(row->total_ns));
    rondo__text_append(text, " %12.4f (%8.6f) %12.4f (%8.6f)", to_ms(row->cpu_ns),
                       get_ratio(row->cpu_ns, whole), to_ms(row->gpu_ns),
                       get_ratio(row->gpu_ns, table->total_ns));
    rondo__text_append(text, " %11.4f %11.4f %11.4f   %8.6f\n", to_ms(row->min_ns),
                       to_ms(row->max_ns), to_ms(row->total_ns) / (double)row->calls,
                       get_ratio(row->total_ns, whole));
}

static void write_columns(rondo__text *text) {
    rondo__text_append(text, "%-*s %8s %12s %23s %23s %11s %11s %11s   %8s\n", NAME_WIDTH, "Event",
                       "Calls", "Total", "CPU Time (Ratio)", "GPU Time (Ratio)", "Min", "Max",
                       "Ave", "Ratio");
}

static void write_table(const rondo__profile_report *report, rondo__profile_out *out) {
    const rondo__profile_table *table = report->table;
    uint32_t thread = UINT32_MAX;
    if (!report->per_thread) {
        rondo__text_append(&out->text, "---- Event summary%s ----\n\n",
                           table->thread_count > 1 ? ", threads merged" : "");
        write_columns(&out->text);
    }
    for (size_t i = 0; i < table->row_count && rondo__profile_out_pass(out); ++i) {
        const rondo__profile_row *row = &table->rows[i];
        if (row->thread != thread) {
            thread = row->thread;
            rondo__text_append(&out->text, "%s---- Event summary of thread %u, %s ----\n\n",
                               i > 0 ? "\n" : "", (unsigned)thread,
                               report->records->threads[thread].name);
            write_columns(&out->text);
        }
        write_row(table, row, report->per_thread ? table->total_ns : table->rows_ns, &out->text);
    }
}

static void write_notes(const rondo__profile_report *report, rondo__text *text) {
    const rondo__profile_table *table = report->table;
    rondo__text_append(text,
                       "\nRows with * are work of devices. CPU time is a total without waits; GPU "
                       "time is how long devices\nwere busy with what an event put there. The two "
                       "overlap where the processor goes on meanwhile.\n");
    if (table->thread_count > 1 && !report->per_thread) {
        rondo__text_append(text,
                           "%u threads had events, side by side: top-level totals add up to %u "
                           "times the total time.\n",
                           (unsigned)table->thread_count, (unsigned)table->thread_count);
    }
    if (report->records->dropped_count > 0) {
        rondo__text_append(text,
                           "%" PRIu64
                           " records did not fit and are missing above; a larger record_limit "
                           "keeps them.\n",
                           report->records->dropped_count);
    }
}

void rondo__profile_write_plain(const rondo__profile_report *report, rondo__profile_out *out) {
    write_head(report, &out->text);
    write_copies(report->table, &out->text);
    write_table(report, out);
    if (rondo__profile_out_pass(out)) {
        write_notes(report, &out->text);
    }
}
