// profile/report_plain.c — the report for people, in the order known from Paddle's profiler.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
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

// Which rows a limit leaves out: each row's children are counted, and what is beyond the limit is
// one row. Siblings stand in the order of the key, so that these are the smallest, one behind the
// other.
typedef struct row_filter {
    size_t limit;       // 0: all are shown
    size_t *counts;     // children met so far: of the top level, then of each row
    uint32_t thread;    // whose table it is
    bool *is_left_out;  // by row
} row_filter;

static bool init_filter(size_t row_limit, size_t row_count, row_filter *filter) {
    *filter = (row_filter){.limit = row_limit, .thread = UINT32_MAX};
    if (row_limit == 0) {
        return true;
    }
    filter->counts = rondo__calloc(row_count + 1, sizeof *filter->counts);
    filter->is_left_out = rondo__calloc(row_count + 1, sizeof *filter->is_left_out);
    return filter->counts != NULL && filter->is_left_out != NULL;
}

static void deinit_filter(row_filter *filter) {
    rondo__free(filter->counts);
    rondo__free(filter->is_left_out);
}

static bool is_sibling(const rondo__profile_row *one, const rondo__profile_row *other) {
    return one->parent == other->parent && one->thread == other->thread && !other->is_outside;
}

// The sum of row `first` and its siblings behind it.
static rondo__profile_row sum_rest(const rondo__profile_table *table, size_t first,
                                   size_t *out_count) {
    rondo__profile_row sum = table->rows[first];
    sum.detail = "";
    sum.is_work = false;
    *out_count = 1;
    for (size_t i = first + 1; i < table->row_count; ++i) {
        const rondo__profile_row *row = &table->rows[i];
        if (!is_sibling(&table->rows[first], row)) {
            continue;
        }
        *out_count += 1;
        sum.calls += row->calls;
        sum.total_ns += row->total_ns;
        sum.cpu_ns += row->cpu_ns;
        sum.gpu_ns += row->gpu_ns;
        sum.min_ns = row->min_ns < sum.min_ns ? row->min_ns : sum.min_ns;
        sum.max_ns = row->max_ns > sum.max_ns ? row->max_ns : sum.max_ns;
    }
    return sum;
}

// How many rows the row at `index` stands for: 1, or 0 where it is left out, or more where it is
// the first that is; then *out_sum is their sum.
static size_t filter_row(row_filter *filter, const rondo__profile_table *table, size_t index,
                         rondo__profile_row *out_sum) {
    const rondo__profile_row *row = &table->rows[index];
    size_t rest = 1;
    *out_sum = *row;
    if (filter->limit == 0 || row->is_outside) {
        return 1;
    }
    if (filter->thread != row->thread) {
        filter->thread = row->thread;
        filter->counts[0] = 0;
    }
    const bool has_parent = row->parent != SIZE_MAX;
    if (has_parent && filter->is_left_out[row->parent]) {
        filter->is_left_out[index] = true;
        return 0;
    }
    const size_t before = filter->counts[has_parent ? row->parent + 1 : 0]++;
    if (before == filter->limit) {
        *out_sum = sum_rest(table, index, &rest);
    }
    filter->is_left_out[index] = before > filter->limit || rest > 1;
    return before > filter->limit ? 0 : rest;
}

static void write_thread_title(const rondo__profile_report *report, uint32_t thread, bool is_first,
                               rondo__text *text) {
    rondo__text_append(text, "%s---- Event summary of thread %u, %s ----\n\n", is_first ? "" : "\n",
                       (unsigned)thread, report->records->threads[thread].name);
    write_columns(text);
}

static void write_rows(const rondo__profile_report *report, row_filter *filter,
                       rondo__profile_out *out) {
    const rondo__profile_table *table = report->table;
    const uint64_t whole = report->per_thread ? table->total_ns : table->rows_ns;
    uint32_t thread = UINT32_MAX;
    for (size_t i = 0; i < table->row_count && rondo__profile_out_pass(out); ++i) {
        char name[64];
        rondo__profile_row row;
        const size_t count = filter_row(filter, table, i, &row);
        if (table->rows[i].thread != thread) {
            thread = table->rows[i].thread;
            write_thread_title(report, thread, i == 0, &out->text);
        }
        if (count > 1) {
            (void)snprintf(name, sizeof name, "(%zu more)", count);
            row.name = name;
        }
        if (count > 0) {
            write_row(table, &row, whole, &out->text);
        }
    }
}

static void write_table(const rondo__profile_report *report, rondo__profile_out *out) {
    row_filter filter;
    if (!report->per_thread) {
        rondo__text_append(&out->text, "---- Event summary%s ----\n\n",
                           report->table->thread_count > 1 ? ", threads merged" : "");
        write_columns(&out->text);
    }
    if (init_filter(report->row_limit, report->table->row_count, &filter)) {
        write_rows(report, &filter, out);
    } else {
        out->text.failed = 1;
    }
    deinit_filter(&filter);
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
