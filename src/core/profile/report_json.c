// profile/report_json.c — the report and all records, for programs. The fields are described in
// rondo/profile.h.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "profile/report.h"
#include "profile/texts.h"

static void write_copies(const char *name, uint64_t calls, uint64_t ns, uint64_t bytes,
                         rondo__text *text) {
    rondo__text_append(
        text, "\"%s\": {\"calls\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", name,
        calls, ns, bytes);
}

static void write_head(const rondo__profile_report *report, rondo__text *text) {
    const rondo__profile_table *table = report->table;
    rondo__text_append(text, "{\"format\": 1, \"title\": ");
    rondo__text_append_json(text, report->title);
    rondo__text_append(text, ",\n \"source\": ");
    rondo__text_append_json(text, report->records->source);
    rondo__text_append(text,
                       ",\n \"total_ns\": %" PRIu64 ", \"computation_ns\": %" PRIu64
                       ", \"framework_ns\": %" PRIu64 ", \"device_ns\": %" PRIu64
                       ",\n \"dropped_count\": %" PRIu64 ",\n \"memcpy\": {",
                       table->total_ns, table->computation_ns, table->framework_ns,
                       table->device_ns, report->records->dropped_count);
    write_copies("async", table->async_calls, table->async_ns, table->async_bytes, text);
    rondo__text_append(text, ", ");
    write_copies("sync", table->sync_calls, table->sync_ns, table->sync_bytes, text);
    rondo__text_append(text, "},\n \"threads\": [");
    for (size_t i = 0; i < report->records->thread_count; ++i) {
        const rondo__profile_thread *thread = &report->records->threads[i];
        rondo__text_append(text, "%s{\"id\": %" PRIu64 ", \"name\": ", i > 0 ? ", " : "",
                           thread->native_id);
        rondo__text_append_json(text, thread->name);
        rondo__text_append(text, "}");
    }
    rondo__text_append(text, "],\n");
}

static void write_row(const rondo__profile_row *row, rondo__text *text) {
    rondo__text_append(text, "  {\"parent\": %" PRId64 ", \"depth\": %zu, \"thread\": %" PRId64,
                       row->parent != SIZE_MAX ? (int64_t)row->parent : -1, row->depth,
                       row->thread != UINT32_MAX ? (int64_t)row->thread : -1);
    rondo__text_append(text, ", \"category\": \"%s\", \"is_device_work\": %s, \"name\": ",
                       rondo__span_category_get_name(row->category),
                       row->is_work ? "true" : "false");
    rondo__text_append_json(text, row->name);
    rondo__text_append(text, ", \"detail\": ");
    rondo__text_append_json(text, row->detail);
    rondo__text_append(text,
                       ", \"calls\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64
                       ", \"gpu_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64
                       ", \"lower_quartile_ns\": %" PRIu64 ", \"median_ns\": %" PRIu64
                       ", \"upper_quartile_ns\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
                       row->calls, row->total_ns, row->cpu_ns, row->gpu_ns, row->min_ns,
                       row->max_ns, row->quartiles_ns[0], row->quartiles_ns[1],
                       row->quartiles_ns[2], row->bytes);
}

static void write_rows(const rondo__profile_report *report, rondo__profile_out *out) {
    rondo__text_append(&out->text, " \"rows\": [");
    for (size_t i = 0; i < report->table->row_count && rondo__profile_out_pass(out); ++i) {
        rondo__text_append(&out->text, "%s\n", i > 0 ? "," : "");
        write_row(&report->table->rows[i], &out->text);
    }
    rondo__text_append(&out->text, "],\n");
}

// ---- records ----------------------------------------------------------------------------------

// Times before the region's begin are 0.
static uint64_t since(const rondo__profile_report *report, uint64_t time_ns) {
    const uint64_t begin_ns = report->records->begin_ns;
    return time_ns > begin_ns ? time_ns - begin_ns : 0;
}

static uint32_t get_number(rondo__profile_texts *texts, const char *string, rondo__text *text) {
    uint32_t number = 0;
    if (!rondo__profile_texts_find(texts, string, &number)) {
        text->failed = 1;
    }
    return number;
}

static void write_spans(const rondo__profile_report *report, rondo__profile_texts *texts,
                        rondo__profile_out *out) {
    rondo__text *text = &out->text;
    rondo__text_append(text, " \"spans\": [");
    for (size_t i = 0; i < report->records->span_count && rondo__profile_out_pass(out); ++i) {
        const rondo__profile_span *span = &report->records->spans[i];
        rondo__text_append(text,
                           "%s\n  [%" PRIu64 ", %" PRIu64 ", %u, \"%s\", %u, %u, %" PRIu64
                           ", %" PRIu64 ", %" PRIu64 ", %d, %s]",
                           i > 0 ? "," : "", span->id, span->parent, (unsigned)span->thread,
                           rondo__span_category_get_name(span->category),
                           (unsigned)get_number(texts, span->name, text),
                           (unsigned)get_number(texts, span->detail, text),
                           since(report, span->begin_ns), since(report, span->end_ns), span->bytes,
                           (int)span->way, span->is_async ? "true" : "false");
    }
    rondo__text_append(text, "],\n");
}

static void write_works(const rondo__profile_report *report, rondo__profile_texts *texts,
                        rondo__profile_out *out) {
    rondo__text *text = &out->text;
    rondo__text_append(text, " \"works\": [");
    for (size_t i = 0; i < report->records->work_count && rondo__profile_out_pass(out); ++i) {
        const rondo__profile_work *work = &report->records->works[i];
        rondo__text_append(text,
                           "%s\n  [%" PRIu64 ", \"%s\", %d, %u, %u, %d, %" PRIu64 ", %" PRIu64
                           ", %" PRIu64 ", %" PRIu64 "]",
                           i > 0 ? "," : "", work->span, rondo__work_kind_get_name(work->kind),
                           (int)work->way, (unsigned)get_number(texts, work->name, text),
                           (unsigned)get_number(texts, work->label, text), (int)work->device,
                           work->stream, work->bytes, since(report, work->begin_ns),
                           since(report, work->end_ns));
    }
    rondo__text_append(text, "],\n");
}

static void write_samples(const rondo__profile_report *report, rondo__profile_texts *texts,
                          rondo__profile_out *out) {
    rondo__text *text = &out->text;
    rondo__text_append(text, " \"samples\": [");
    for (size_t i = 0; i < report->records->sample_count && rondo__profile_out_pass(out); ++i) {
        const rondo__profile_sample *sample = &report->records->samples[i];
        rondo__text_append(text, "%s\n  [%u, %" PRIu64 ", %" PRIu64 "]", i > 0 ? "," : "",
                           (unsigned)get_number(texts, sample->name, text),
                           since(report, sample->time_ns), sample->value);
    }
    rondo__text_append(text, "],\n");
}

static void write_texts(const rondo__profile_texts *texts, rondo__profile_out *out) {
    rondo__text_append(&out->text, " \"texts\": [\"\"");
    for (uint32_t i = 1; i <= texts->count && rondo__profile_out_pass(out); ++i) {
        rondo__text_append(&out->text, ",\n  ");
        rondo__text_append_json(&out->text, rondo__profile_texts_get(texts, i));
    }
    rondo__text_append(&out->text, "]}\n");
}

void rondo__profile_write_json(const rondo__profile_report *report, rondo__profile_out *out) {
    rondo__profile_texts texts = {0};
    write_head(report, &out->text);
    write_rows(report, out);
    write_spans(report, &texts, out);
    write_works(report, &texts, out);
    write_samples(report, &texts, out);
    write_texts(&texts, out);
    rondo__profile_texts_deinit(&texts, false);
}
