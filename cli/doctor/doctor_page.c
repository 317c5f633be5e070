// doctor_page.c — the report of `rondo doctor` as a page, with the timeline of a step, and what
// stands in the way. One file, without scripts and without anything from elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "doctor_report.h"

enum { WIDTH = 1000, ROW = 18, WORKS_SHOWN = 4000, STREAMS_SHOWN = 8 };
enum { FINDINGS_ROW, HOST_ROW, DEVICE_ROW };

// Text from outside, between tags or in an attribute.
static void put_text(FILE *file, const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;
        switch (byte) {
            case '&':
                fputs("&amp;", file);
                break;
            case '<':
                fputs("&lt;", file);
                break;
            case '>':
                fputs("&gt;", file);
                break;
            case '"':
                fputs("&quot;", file);
                break;
            default:
                fputc(byte < ' ' || byte == 0x7f ? '?' : byte, file);
                break;
        }
    }
}

static const char *get_colour(rondo__doctor_kind kind) {
    switch (kind) {
        case RONDO__DOCTOR_KIND_LAUNCH:
        case RONDO__DOCTOR_KIND_GRAPH_LAUNCH:
            return "#3b78c2";
        case RONDO__DOCTOR_KIND_COPY:
        case RONDO__DOCTOR_KIND_FILL:
            return "#3f9e68";
        case RONDO__DOCTOR_KIND_WAIT:
        case RONDO__DOCTOR_KIND_COPY_WAIT:
        case RONDO__DOCTOR_KIND_FILL_WAIT:
            return "#c2463b";
        default:
            return "#b58a2c";
    }
}

// ---- the timeline -----------------------------------------------------------------------------

typedef struct picture {
    FILE *file;
    uint64_t begin_ns;
    double scale;  // pixels a nanosecond
} picture;

static void draw(const picture *p, int row, uint64_t begin_ns, uint64_t duration_ns,
                 const char *colour, const char *label, const char *name) {
    char length[32];
    const double x = ((double)begin_ns - (double)p->begin_ns) * p->scale;
    const double width = (double)duration_ns * p->scale;
    fprintf(p->file, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>",
            x, row * ROW + 2, width > 0.4 ? width : 0.4, ROW - 4, colour);
    put_text(p->file, label);
    fputs(" ", p->file);
    put_text(p->file, name);
    fprintf(p->file, " %s</title></rect>\n",
            cli_doctor_format_us((double)duration_ns * 1e-3, length, sizeof length));
}

static bool is_within(const rondo__doctor_step *step, const rondo__doctor_work *work) {
    return work->begin_ns >= step->begin_ns && work->begin_ns < step->begin_ns + step->length_ns;
}

static size_t count_works(const cli_doctor *doctor, const rondo__doctor_step *step) {
    size_t count = 0;
    for (size_t i = 0; i < doctor->log->work_count; i++) {
        count += is_within(step, &doctor->log->works[i]);
    }
    return count;
}

// One with device times, if there is any, and that something else did not make long.
static const rondo__doctor_step *choose_step(const cli_doctor *doctor) {
    const rondo__doctor_steps *steps = &doctor->steps;
    const rondo__doctor_step *chosen = NULL;
    size_t most = steps->period / 2;  // of the device's works; all where a step has them
    for (size_t i = 0; i + 1 < steps->count; i++) {
        const rondo__doctor_step *step = &steps->steps[i];
        const bool is_longer =
            chosen != NULL && most == steps->period && step->length_ns >= chosen->length_ns;
        if (!step->is_typical || !step->is_timed || step->length_ns == 0 || is_longer) {
            continue;
        }
        const size_t found = count_works(doctor, step);
        const size_t works = found < steps->period ? found : steps->period;
        if (works > most ||
            (works == most && chosen != NULL && step->length_ns < chosen->length_ns)) {
            chosen = step;
            most = works;
        }
    }
    return chosen != NULL ? chosen : &steps->steps[steps->reference];
}

static void draw_host(const cli_doctor *doctor, const rondo__doctor_step *step, const picture *p) {
    for (size_t i = step->first; i < step->last && i < step->first + WORKS_SHOWN; i++) {
        const rondo__doctor_event *event = &doctor->log->events[i];
        draw(p, HOST_ROW, event->begin_ns, event->duration_ns,
             get_colour(rondo__doctor_call_kind(event->call)), rondo__doctor_call_name(event->call),
             rondo__doctor_log_text(doctor->log, event->name));
    }
}

// Each finding at the call of this step that it is of.
static void draw_findings(const cli_doctor *doctor, const rondo__doctor_step *step,
                          const picture *p) {
    static const char *const colours[] = {[RONDO__DOCTOR_BREAKS] = "#c2463b",
                                          [RONDO__DOCTOR_FREEZES] = "#8a4fb5",
                                          [RONDO__DOCTOR_COSTS] = "#b58a2c",
                                          [RONDO__DOCTOR_NOTES] = "#999"};
    size_t works = 0;
    for (size_t i = step->first; i < step->last; i++) {
        const rondo__doctor_event *event = &doctor->log->events[i];
        for (size_t k = 0; k < doctor->findings.count; k++) {
            const rondo__doctor_finding *finding = &doctor->findings.rows[k];
            if (finding->call == event->call && finding->works == works) {
                const size_t harm = (size_t)rondo__doctor_get_rule(finding->rule)->harm;
                draw(p, FINDINGS_ROW, event->begin_ns, event->duration_ns, colours[harm],
                     rondo__doctor_rule_id(finding->rule), rondo__doctor_call_name(event->call));
            }
        }
        works += rondo__doctor_is_work(event->call);
    }
}

typedef struct stream_rows {
    uint32_t streams[STREAMS_SHOWN];
    int count;
} stream_rows;

// The last row is that of all other streams.
static int find_row(stream_rows *rows, uint32_t stream) {
    for (int i = 0; i < rows->count; i++) {
        if (rows->streams[i] == stream) {
            return i;
        }
    }
    if (rows->count == STREAMS_SHOWN) {
        return STREAMS_SHOWN - 1;
    }
    rows->streams[rows->count] = stream;
    return rows->count++;
}

static int count_streams(const cli_doctor *doctor, const rondo__doctor_step *step) {
    stream_rows rows = {.count = 0};
    for (size_t i = 0; i < doctor->log->work_count; i++) {
        if (is_within(step, &doctor->log->works[i])) {
            (void)find_row(&rows, doctor->log->works[i].stream);
        }
    }
    return rows.count > 0 ? rows.count : 1;
}

static void draw_device(const cli_doctor *doctor, const rondo__doctor_step *step,
                        const picture *p) {
    stream_rows rows = {.count = 0};
    size_t shown = 0;
    for (size_t i = 0; i < doctor->log->work_count && shown < WORKS_SHOWN; i++) {
        const rondo__doctor_work *work = &doctor->log->works[i];
        if (is_within(step, work)) {
            const char *name = rondo__doctor_log_text(doctor->log, work->name);
            const bool is_kernel = name[0] != '[';
            draw(p, DEVICE_ROW + find_row(&rows, work->stream), work->begin_ns, work->duration_ns,
                 is_kernel ? "#3b78c2" : "#3f9e68", "", name);
            ++shown;
        }
    }
}

static void write_timeline(const cli_doctor *doctor, FILE *file) {
    char length[32];
    const rondo__doctor_step *step = choose_step(doctor);
    const double span = step->length_ns > 0 ? (double)step->length_ns : 1.0;
    const int rows = DEVICE_ROW + count_streams(doctor, step);
    const picture p = {.file = file, .begin_ns = step->begin_ns, .scale = WIDTH / span};
    fprintf(file,
            "<h2>One step, %s</h2>\n<p>Above what was found, then the host's calls, below the "
            "device's streams%s: launches and kernels blue, copies and fills green, waits red, "
            "other calls yellow. A name shows under the pointer.</p>\n"
            "<svg viewBox=\"0 0 %d %d\" width=\"100%%\" height=\"%d\" "
            "preserveAspectRatio=\"none\">\n",
            cli_doctor_format_us(span * 1e-3, length, sizeof length),
            step->is_timed ? "" : " (its times are not known)", WIDTH, rows * ROW, rows * 2 * ROW);
    draw_findings(doctor, step, &p);
    draw_host(doctor, step, &p);
    draw_device(doctor, step, &p);
    fputs("</svg>\n", file);
}

// ---- the text ---------------------------------------------------------------------------------

static void write_numbers(const cli_doctor *doctor, FILE *file) {
    const rondo__doctor_costs *costs = &doctor->costs;
    char texts[6][32];
    fprintf(file, "<p><b>%s.</b> The step takes %s", rondo__doctor_verdict_name(costs->verdict),
            cli_doctor_format_us(costs->step_us, texts[0], sizeof texts[0]));
    if (costs->has_times) {
        fprintf(file,
                ", the device works %s of it, %s along the critical path. As one graph a replay "
                "would take about %s (%s to %s)",
                cli_doctor_format_us(costs->device_us, texts[1], sizeof texts[1]),
                cli_doctor_format_us(costs->path.is_known ? costs->path.path_us : costs->device_us,
                                     texts[5], sizeof texts[5]),
                cli_doctor_format_us(costs->graph_us, texts[2], sizeof texts[2]),
                cli_doctor_format_us(costs->graph_low_us, texts[3], sizeof texts[3]),
                cli_doctor_format_us(costs->graph_high_us, texts[4], sizeof texts[4]));
    }
    fputs(".</p>\n", file);
}

static void write_finding(const cli_doctor *doctor, const rondo__doctor_finding *finding,
                          FILE *file) {
    const rondo__doctor_rule_row *rule = rondo__doctor_get_rule(finding->rule);
    const uint32_t place = finding->line != 0 ? finding->line : finding->place;
    char cost[32] = "";
    if (finding->cost_us > 0.0) {
        (void)cli_doctor_format_us(finding->cost_us, cost, sizeof cost);
    }
    fprintf(file, "<tr><td>%s</td><td>%s</td><td>%.3g</td><td>%s</td><td>",
            rondo__doctor_rule_id(finding->rule), rondo__doctor_call_name(finding->call),
            finding->count, cost);
    put_text(file, rondo__doctor_log_text(doctor->log, finding->name));
    fputs("</td><td>", file);
    put_text(file, rondo__doctor_log_text(doctor->log, place));
    fputs("</td><td>", file);
    put_text(file, rule->cure);
    fputs("</td></tr>\n", file);
}

bool cli_doctor_write_page(void *doctor, FILE *file) {
    const cli_doctor *from = doctor;
    fputs(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<title>rondo doctor</title>\n<style>body{font:14px sans-serif;margin:2em;max-width:1200px}"
        "svg{background:#eee}td,th{padding:2px 8px;text-align:left;vertical-align:top;"
        "border-top:1px solid #ccc;word-break:break-word}</style></head><body>\n<h1>rondo doctor: ",
        file);
    put_text(file, from->program);
    fputs("</h1>\n", file);
    write_numbers(from, file);
    if (from->steps.period > 0) {
        write_timeline(from, file);
    }
    fputs(
        "<h2>What stands in the way</h2>\n<table><tr><th>rule</th><th>call</th><th>a step</th>"
        "<th>takes</th><th>kernel</th><th>place</th><th>cure</th></tr>\n",
        file);
    for (size_t i = 0; i < from->findings.count; i++) {
        write_finding(from, &from->findings.rows[i], file);
    }
    fputs("</table>\n</body></html>\n", file);
    return !ferror(file);
}
