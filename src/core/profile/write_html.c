// profile/write_html.c — a profile as one page that needs nothing else: no network, no server.
//
//   <style>   page/style.css
//   <body>    page/body.html, in it the picture of the plan
//   <script>  the data, as JSON that the browser does not run
//   <script>  page/*.js
//
// Three things keep a name from a hostile model a mere name: JSON has no "<" (base/text.h), scripts
// put names in as text only, and the page's policy lets no script run but the one with its number.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "profile/page_parts.h"
#include "profile/page_texts.h"
#include "profile/report.h"
#include "profile/texts.h"
#include "profile/tracks.h"
#include "rondo/version.h"

// More events than a browser draws well; the tables are of all.
enum { SHOWN_MAX = 200000 };

typedef struct page {
    const rondo__profile_report *report;
    const rondo__profile_records *records;
    size_t span_count;  // those shown
    size_t work_count;
    rondo__profile_tracks tracks;
    rondo__page_parts parts;
    rondo__profile_texts texts;
    rondo__profile_out *out;
    rondo__text *text;
} page;

// The number of a text, which the list at the end has under it.
static unsigned get_text(page *p, const char *text) {
    uint32_t number = 0;
    if (!rondo__profile_texts_find(&p->texts, text, &number)) {
        p->text->failed = 1;
    }
    return number;
}

// ---- the data ---------------------------------------------------------------------------------

static uint64_t since_begin(const page *p, uint64_t time_ns) {
    return time_ns > p->records->begin_ns ? time_ns - p->records->begin_ns : 0;
}

// "key":[, between the last list and this one.
static void begin_list(page *p, const char *key) {
    rondo__text_append(p->text, ",\n\"%s\":[", key);
}

static void end_list(page *p) {
    rondo__text_append_bytes(p->text, "]", 1);
}

static void append_comma(page *p, size_t index) {
    rondo__text_append_bytes(p->text, ",\n", index > 0 ? 2 : 0);
}

static void append_names(page *p, const char *key, size_t count, const char *(*get_name)(int)) {
    begin_list(p, key);
    for (size_t i = 0; i < count; ++i) {
        append_comma(p, i);
        rondo__text_append_json(p->text, get_name((int)i));
    }
    end_list(p);
}

static const char *get_category(int index) {
    return rondo__span_category_get_name((rondo__span_category)index);
}

static const char *get_kind(int index) {
    return rondo__work_kind_get_name((rondo__work_kind)index);
}

static const char *get_way(int index) {
    return rondo__way_get_name((rondo__way)index);
}

static void append_head(page *p) {
    rondo__text_append(p->text, "{\"rondo\":\"%s\",\"title\":", rondo_version_get_text());
    rondo__text_append_json(p->text, p->report->title);
    rondo__text_append(p->text, ",\"source\":");
    rondo__text_append_json(p->text, p->records->source);
    rondo__text_append(p->text,
                       ",\"duration\":%" PRIu64 ",\"dropped\":%" PRIu64
                       ",\"spanCount\":%zu,\"workCount\":%zu",
                       p->records->end_ns - p->records->begin_ns, p->records->dropped_count,
                       p->records->span_count, p->records->work_count);
    append_names(p, "categories", RONDO__SPAN_COUNT, get_category);
    append_names(p, "kinds", RONDO__WORK_COUNT, get_kind);
    append_names(p, "ways", RONDO__WAY_H2H + 1, get_way);
    begin_list(p, "threads");
    for (size_t i = 0; i < p->records->thread_count; ++i) {
        append_comma(p, i);
        rondo__text_append_json(p->text, p->records->threads[i].name);
    }
    end_list(p);
    begin_list(p, "tracks");
    for (size_t i = 0; i < p->tracks.count; ++i) {
        char device[32];
        char track[64];
        append_comma(p, i);
        rondo__text_append(p->text, "[\"%s\",\"%s\"]",
                           rondo__profile_name_device(p->tracks.tracks[i].device, device),
                           rondo__profile_name_track(&p->tracks.tracks[i], track));
    }
    end_list(p);
}

static void append_records(page *p) {
    begin_list(p, "spans");
    for (size_t i = 0; i < p->span_count && rondo__profile_out_pass(p->out); ++i) {
        const rondo__profile_span *span = &p->records->spans[i];
        append_comma(p, i);
        rondo__text_append(
            p->text, "[%" PRIu64 ",%" PRIu32 ",%d,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d,%d]",
            span->parent, span->thread, (int)span->category, get_text(p, span->name),
            get_text(p, span->detail), since_begin(p, span->begin_ns),
            span->end_ns - span->begin_ns, span->bytes, (int)span->way, span->is_async ? 1 : 0);
    }
    end_list(p);
    begin_list(p, "works");
    for (size_t i = 0; i < p->work_count && rondo__profile_out_pass(p->out); ++i) {
        const rondo__profile_work *work = &p->records->works[i];
        append_comma(p, i);
        rondo__text_append(
            p->text, "[%" PRIu64 ",%d,%d,%u,%u,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
            work->span <= p->span_count ? work->span : 0, (int)work->kind, (int)work->way,
            get_text(p, work->name), get_text(p, work->label), p->tracks.of_work[i], work->bytes,
            since_begin(p, work->begin_ns), work->end_ns - work->begin_ns);
    }
    end_list(p);
    begin_list(p, "samples");
    for (size_t i = 0; i < p->records->sample_count && rondo__profile_out_pass(p->out); ++i) {
        const rondo__profile_sample *sample = &p->records->samples[i];
        append_comma(p, i);
        rondo__text_append(p->text, "[%u,%" PRIu64 ",%" PRIu64 "]", get_text(p, sample->name),
                           since_begin(p, sample->time_ns), sample->value);
    }
    end_list(p);
}

static void append_row(page *p, const rondo__profile_row *row) {
    rondo__text_append(p->text, "[%lld,%lld,%d,%d,%u,%u",
                       row->parent == SIZE_MAX ? -1 : (long long)row->parent,
                       row->thread == UINT32_MAX ? -1 : (long long)row->thread, (int)row->category,
                       row->is_work ? 1 : 0, get_text(p, row->name), get_text(p, row->detail));
    const uint64_t numbers[] = {row->calls,  row->total_ns, row->cpu_ns, row->gpu_ns,
                                row->min_ns, row->max_ns,   row->bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        rondo__text_append(p->text, ",%" PRIu64, numbers[i]);
    }
    rondo__text_append_bytes(p->text, "]", 1);
}

static void append_parts(page *p) {
    begin_list(p, "parts");
    for (size_t i = 0; i < p->parts.count; ++i) {
        const rondo__page_part *part = &p->parts.parts[i];
        const rondo__profile_table *table = &part->table;
        append_comma(p, i);
        rondo__text_append(p->text, "{\"name\":");
        rondo__text_append_json(p->text, part->name);
        rondo__text_append(
            p->text,
            ",\"begin\":%" PRIu64 ",\"end\":%" PRIu64 ",\"total\":%" PRIu64
            ",\"computation\":%" PRIu64 ",\"framework\":%" PRIu64 ",\"async\":[%" PRIu64 ",%" PRIu64
            ",%" PRIu64 "],\"sync\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
            since_begin(p, part->begin_ns), since_begin(p, part->end_ns), table->total_ns,
            table->computation_ns, table->framework_ns, table->async_calls, table->async_ns,
            table->async_bytes, table->sync_calls, table->sync_ns, table->sync_bytes);
        begin_list(p, "rows");
        for (size_t r = 0; r < table->row_count && rondo__profile_out_pass(p->out); ++r) {
            append_comma(p, r);
            append_row(p, &table->rows[r]);
        }
        rondo__text_append(p->text, "]}");
    }
    end_list(p);
}

static void append_texts(page *p) {
    begin_list(p, "texts");
    rondo__text_append(p->text, "\"\"");
    for (uint32_t i = 1; i <= p->texts.count && rondo__profile_out_pass(p->out); ++i) {
        append_comma(p, i);
        rondo__text_append_json(p->text, rondo__profile_texts_get(&p->texts, i));
    }
    rondo__text_append(p->text, "]}");
}

// ---- the page ---------------------------------------------------------------------------------

// The body, with the picture in its place.
static void append_body(page *p) {
    static const char mark[] = "<!-- @picture@ -->";
    const char *place = strstr(rondo__page_body, mark);
    rondo__text_append_bytes(p->text, rondo__page_body, (size_t)(place - rondo__page_body));
    rondo__text_append(p->text, "%s%s", p->report->picture, place + strlen(mark));
}

static void append_page(page *p) {
    static const char *const scripts[] = {rondo__page_model, rondo__page_timeline,
                                          rondo__page_table, rondo__page_main, rondo__page_test};
    rondo__text *text = p->text;
    const uint64_t number = rondo__clock_now_ns() * UINT64_C(0x9e3779b97f4a7c15);
    rondo__text_append(text,
                       "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; script-src 'nonce-%016" PRIx64 "'\">\n<title>",
                       number);
    rondo__text_append_markup(text, p->report->title);
    rondo__text_append(text, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", rondo__page_style);
    append_body(p);
    rondo__text_append(text, "<script type=\"application/json\" id=\"data\">\n");
    append_head(p);
    append_records(p);
    append_parts(p);
    append_texts(p);
    rondo__text_append(text, "\n</script>\n<script nonce=\"%016" PRIx64 "\">\n", number);
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; ++i) {
        rondo__text_append(text, "%s", scripts[i]);
    }
    rondo__text_append(text, "</script>\n</body>\n</html>\n");
}

void rondo__profile_write_html(const rondo__profile_report *report, rondo__profile_out *out) {
    const rondo__profile_records *records = report->records;
    page p = {
        .report = report,
        .records = records,
        .span_count = records->span_count < SHOWN_MAX ? records->span_count : SHOWN_MAX,
        .work_count = records->work_count < SHOWN_MAX ? records->work_count : SHOWN_MAX,
        .out = out,
        .text = &out->text,
    };
    if (rondo__page_parts_init(report, &p.parts) == RONDO_STATUS_OK &&
        rondo__profile_tracks_make(records, &p.tracks) == RONDO_STATUS_OK) {
        append_page(&p);
    } else {
        out->text.failed = 1;
    }
    rondo__profile_texts_deinit(&p.texts, false);
    rondo__profile_tracks_deinit(&p.tracks);
    rondo__page_parts_deinit(&p.parts);
}
