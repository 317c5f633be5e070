// graph/capture_report.c — the report on a capture that failed, and the error record that is its
// short form.
// SPDX-License-Identifier: Apache-2.0

#include "graph/capture_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/cause.h"
#include "backend/check.h"
#include "base/escape.h"
#include "base/text.h"
#include "base/write_struct.h"

// ---- names and texts --------------------------------------------------------------------------

typedef struct cause_text {
    int32_t value;
    const char *name;
    const char *what;
    const char *advice;
} cause_text;

static const cause_text *find_text(int32_t cause) {
#define CAUSE(name, what, advice) \
    { RONDO_CAUSE_##name, #name, what, advice }
    static const cause_text texts[] = {
        CAUSE(NONE, "nothing broke it", ""),
        CAUSE(SYNCHRONIZE, "a call waited for, or asked about, work that is only being recorded",
              "make that call before the capture or after its end; inside, order work with events"),
        CAUSE(ALLOCATION,
              "memory was allocated outside a pool, which the mode of the capture forbids",
              "allocate before the capture or from a rondo_pool, or record in thread_local mode"),
        CAUSE(LEGACY_STREAM, "work met the legacy default stream, which waits for other streams",
              "use streams of your own, made with the non-blocking flag, also for library handles"),
        CAUSE(PAGEABLE_COPY,
              "a copy from or to pageable host memory, which may be gone at a replay",
              "allocate that memory with RONDO_MEMORY_PINNED, or copy before the capture"),
        CAUSE(UNJOINED_STREAM, "a stream forked inside the capture was not joined again",
              "record an event on it and let the first stream wait for that before the end"),
        CAUSE(OTHER_THREAD, "another thread made a call that global mode forbids to every thread",
              "record in thread_local mode, or hold that thread's call back until the end"),
        CAUSE(OTHER_DEVICE, "a call mixed the capture with an object of another device",
              "keep one capture to streams, events and memory of one device"),
        CAUSE(ABORTED, "the program gave the capture up", "mend what made the program give it up"),
        CAUSE(OUT_OF_MEMORY, "host or device memory is exhausted",
              "free some, use a smaller batch, or raise the limit of the pool"),
        CAUSE(WORK_REFUSED, "work was refused, or what orders it, so the step would lack it",
              "mend that call; it fails outside a capture, too"),
        CAUSE(STREAM_DESTROYED, "a stream was destroyed while it recorded",
              "destroy streams after the end of the capture"),
        CAUSE(INSTANTIATION, "the recorded step could not be made executable",
              "see the driver's code; free memory, or split the step"),
        CAUSE(MERGE, "a stream waited for an event of another capture",
              "wait only for events recorded in the same capture"),
        CAUSE(OUTSIDE_WORK, "recorded work was to wait for work outside the capture",
              "record that event inside the capture, or wait for it before"),
        CAUSE(UNSEEN_CALL, "a call that did not go through Rondo broke it",
              "look between the last good node and where it was noticed for calls that wait, "
              "query, allocate or use the legacy stream; more label scopes narrow it down"),
        CAUSE(OTHER, "see the message", "see the message"),
    };
#undef CAUSE
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        if (texts[i].value == cause) {
            return &texts[i];
        }
    }
    return NULL;
}

const char *rondo_capture_cause_get_name(int32_t cause) {
    const cause_text *text = find_text(cause);
    return text != NULL ? text->name : "UNKNOWN";
}

// ---- filling ----------------------------------------------------------------------------------

static void fill_place(rondo_graph *graph, const rondo__blame *blame) {
    rondo_capture_report *report = &graph->report;
    rondo__text_fit(report->label, sizeof report->label, blame->label);
    report->has_last_node = blame->has_node;
    report->is_index_exact = blame->is_index_exact;
    report->last_node_index = blame->node_index;
    report->last_node_depth = blame->node_depth;
    rondo__text_fit(report->last_node_name, sizeof report->last_node_name, blame->node_name);
    rondo__text_fit(report->last_node_label, sizeof report->last_node_label, blame->node_label);
}

static void fill_cause(rondo_graph *graph, const rondo_error *record, rondo_capture_cause cause) {
    rondo_capture_report *report = &graph->report;
    const cause_text *text = find_text((int32_t)cause);
    report->struct_size = sizeof *report;
    report->status = record->status;
    report->cause = (int32_t)cause;
    report->what = text != NULL ? text->what : "";
    report->advice = text != NULL ? text->advice : "";
    rondo__text_fit(report->message, sizeof report->message, record->message);
    rondo__text_fit(report->call, sizeof report->call, record->call);
    rondo__text_fit(report->op, sizeof report->op, record->op);
    report->driver_code = record->driver_code;
    rondo__text_fit(report->driver_name, sizeof report->driver_name, record->driver_name);
    report->file = record->file != NULL ? record->file : "";
    report->line = record->line;
}

static void fill_thread(rondo_graph *graph, const rondo__blame *blame) {
    rondo_capture_report *report = &graph->report;
    report->stream_number = blame->stream_number;
    report->thread_number = blame->thread_number;
    rondo__text_fit(report->thread_name, sizeof report->thread_name, blame->thread_name);
    report->is_other_thread = blame->thread_number != graph->thread_number;
}

// Where it broke, in a few words: ` of thread 3 "loader" in "layer3/attention" after node 12
// "gemm"`. Takes in as much as there is room for, the most telling first.
static void describe_place(const rondo_capture_report *report, size_t room, char *text,
                           size_t capacity) {
    char parts[3][72] = {"", "", ""};
    if (report->is_other_thread) {
        bool has_name = report->thread_name[0] != '\0';
        snprintf(parts[0], sizeof parts[0], " of thread %" PRIu64 "%s%s%s", report->thread_number,
                 has_name ? " \"" : "", report->thread_name, has_name ? "\"" : "");
    }
    if (report->label[0] != '\0') {
        char label[44];
        rondo__text_fit(label, sizeof label, report->label);
        snprintf(parts[1], sizeof parts[1], " in \"%s\"", label);
    }
    if (report->has_last_node) {
        bool has_name = report->last_node_name[0] != '\0';
        char name[28];
        rondo__text_fit(name, sizeof name, report->last_node_name);
        snprintf(parts[2], sizeof parts[2], " after node %" PRIu64 "%s%s%s%s",
                 report->last_node_index, report->last_node_depth > 0 ? " of the body" : "",
                 has_name ? " \"" : "", name, has_name ? "\"" : "");
    }
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < 3; ++i) {
        size_t bytes = strlen(parts[i]);
        if (length + bytes < capacity && length + bytes <= room) {
            memcpy(text + length, parts[i], bytes + 1);
            length += bytes;
        }
    }
}

// The short form of the report as this thread's error record. The cure at the end of the message
// must not be cut, so the place gives way.
static rondo_status write_record(const rondo_graph *graph, bool was_broken_by_call) {
    const rondo_capture_report *report = &graph->report;
    char message[sizeof report->message];
    char broken[128] = "";
    char place[192];
    rondo__text_fit(message, sizeof message, report->message);
    if (report->cause == RONDO_CAUSE_OTHER_THREAD) {
        snprintf(message, sizeof message, "%s; %s", report->what, report->advice);
    }
    if (was_broken_by_call) {
        snprintf(broken, sizeof broken, "broken by %s", report->call);
    } else if (report->cause == RONDO_CAUSE_UNSEEN_CALL) {
        snprintf(broken, sizeof broken, "broken by a call that Rondo did not see");
    }
    size_t used = strlen(broken) + strlen(message) + 3;
    describe_place(report, used < sizeof message ? sizeof message - used : 0, place, sizeof place);
    const char *where = broken[0] == '\0' && place[0] != '\0' ? place + 1 : place;
    // The call that broke it may have failed for a reason of its own; the end of the capture
    // reports only STATE.
    bool is_its_own = report->status != RONDO_STATUS_INVALID &&
                      report->status != RONDO_STATUS_UNSUPPORTED &&
                      report->status != RONDO_STATUS_BAD_DATA;
    rondo_status status = rondo__error_set(
        is_its_own || !was_broken_by_call ? report->status : RONDO_STATUS_STATE,
        report->driver_code, report->driver_name, report->file, report->line, report->call,
        "%s%s%s%s", broken, where, broken[0] != '\0' || where[0] != '\0' ? ": " : "", message);
    rondo__error_set_op(report->op[0] != '\0'      ? report->op
                        : report->label[0] != '\0' ? report->label
                                                   : graph->label);
    return status;
}

// A call that Rondo did not see: what can be said instead of a driver's word on the end.
static void describe_unseen(rondo_graph *graph, const rondo__blame *blame) {
    rondo_capture_report *report = &graph->report;
    snprintf(report->message, sizeof report->message,
             "it waits, queries, allocates or uses the legacy stream%s; noticed by %s; look there, "
             "or push labels to narrow it down",
             graph->mode == RONDO_CAPTURE_GLOBAL ? ", or is another thread's" : "",
             blame->noticed_by);
    rondo__text_fit(report->call, sizeof report->call, blame->noticed_by);
    report->op[0] = '\0';
}

rondo_status rondo__graph_report_failure(rondo_graph *graph, const rondo__blame *blame,
                                         rondo_capture_cause fallback) {
    rondo_error record;
    rondo__error_save(&record);
    rondo_capture_cause cause = rondo__cause_classify(&record, fallback);
    // A call that was seen to break the capture comes first. If none was seen, the end may know
    // more.
    bool was_seen = blame->has_cause && blame->cause != RONDO_CAUSE_UNSEEN_CALL;
    if (was_seen) {
        record = blame->record;
        cause = blame->cause;
    }
    memset(&graph->report, 0, sizeof graph->report);
    fill_place(graph, blame);
    fill_cause(graph, &record, cause);
    graph->report.thread_number = graph->thread_number;
    graph->report.stream_number = rondo__cause_get_unjoined(&record);
    if (blame->has_cause) {
        fill_thread(graph, blame);
    }
    if (cause == RONDO_CAUSE_UNSEEN_CALL) {
        describe_unseen(graph, blame);
    }
    return write_record(graph, was_seen);
}

void rondo__graph_report_abort(rondo_graph *graph, const rondo__blame *blame) {
    memset(&graph->report, 0, sizeof graph->report);
    fill_place(graph, blame);
    graph->report.thread_number = graph->thread_number;
    if (blame->has_cause) {
        fill_cause(graph, &blame->record, blame->cause);
        fill_thread(graph, blame);
    } else if (blame->is_broken) {
        const rondo_error record = {.status = RONDO_STATUS_STATE, .file = __FILE__};
        fill_cause(graph, &record, RONDO_CAUSE_UNSEEN_CALL);
        describe_unseen(graph, blame);
    } else if (blame->has_suspect) {
        fill_cause(graph, &blame->suspect, blame->suspect_cause);
    } else {
        rondo_error record = {.status = RONDO_STATUS_STATE, .file = __FILE__, .line = __LINE__};
        rondo__text_fit(record.call, sizeof record.call, "rondo_graph_capture_abort");
        rondo__text_fit(record.message, sizeof record.message, "the program gave the capture up");
        fill_cause(graph, &record, RONDO_CAUSE_ABORTED);
    }
}

// ---- the public calls -------------------------------------------------------------------------

rondo_status rondo_graph_get_report(const rondo_graph *graph, rondo_capture_report *out_report) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_report, sizeof *out_report, __func__, "rondo_capture_report"));
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    rondo_capture_report report = graph->report;
    if (report.what == NULL) {
        report.what = find_text(RONDO_CAUSE_NONE)->what;
        report.advice = "";
        report.file = "";
    }
    rondo__write_struct(out_report, &report);
    return RONDO_STATUS_OK;
}

// Appends to a text that may be cut; counts what it would have been.
typedef struct cut_text {
    char *bytes;
    size_t capacity;
    size_t length;
} cut_text;

RONDO_PRINTF(2, 3) static void append(cut_text *text, const char *format, ...);

static void append(cut_text *text, const char *format, ...) {
    bool has_room = text->length < text->capacity;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(has_room ? text->bytes + text->length : NULL,
                            has_room ? text->capacity - text->length : 0, format, arguments);
    va_end(arguments);
    text->length += written > 0 ? (size_t)written : 0;
}

// A name from outside, escaped, between two texts; nothing where there is no name.
static void append_name(cut_text *text, const char *before, const char *name, const char *after) {
    if (name[0] == '\0') {
        return;
    }
    append(text, "%s", before);
    while (*name != '\0') {
        char piece[RONDO__ESCAPED_MAX];
        name += rondo__escape_next(name, piece);
        append(text, "%s", piece);
    }
    append(text, "%s", after);
}

// The path of a source file from the root of the sources on.
static const char *shorten_path(const char *path) {
    const char *root = strstr(path, "src/");
    for (const char *next = root; next != NULL; next = strstr(next + 1, "src/")) {
        root = next;
    }
    return root != NULL ? root : path;
}

size_t rondo_capture_report_format(const rondo_capture_report *given, char *text, size_t capacity) {
    cut_text out = {.bytes = text, .capacity = text != NULL ? capacity : 0};
    if (out.capacity > 0) {
        text[0] = '\0';
    }
    if (given == NULL || given->struct_size < sizeof given->struct_size ||
        given->struct_size > sizeof *given) {
        return 0;
    }
    // Members that an older program's struct lacks are treated as unknown.
    rondo_capture_report whole = {.what = "", .advice = "", .file = ""};
    memcpy(&whole, given, given->struct_size);
    const rondo_capture_report *report = &whole;
    if (report->status == RONDO_STATUS_OK) {
        append(&out, "the latest capture did not fail\n");
        return out.length;
    }
    append(&out, "the capture failed (%s): %s\n", rondo_capture_cause_get_name(report->cause),
           report->what);
    append(&out, "  call:      %s%s",
           report->cause == RONDO_CAUSE_UNSEEN_CALL ? "not seen; noticed by " : "", report->call);
    append_name(&out, " of ", report->op, "");
    append(&out, "\n  message:   ");
    append_name(&out, "", report->message, "");
    append(&out, "\n");
    if (report->driver_code != 0) {
        append(&out, "  driver:    %s (%d)\n", report->driver_name, (int)report->driver_code);
    }
    append_name(&out, "  label:     ", report->label, "\n");
    if (report->has_last_node) {
        append(&out, "  last good: node %s%" PRIu64 "%s", report->is_index_exact ? "" : "at least ",
               report->last_node_index, report->last_node_depth > 0 ? " of the body" : "");
        append_name(&out, " \"", report->last_node_name, "\"");
        append_name(&out, " in \"", report->last_node_label, "\"");
        append(&out, "\n");
    } else if (report->cause != RONDO_CAUSE_UNJOINED_STREAM) {
        append(&out, "  last good: nothing was recorded before\n");
    }
    if (report->stream_number != 0) {
        append(&out, "  stream:    %u\n", (unsigned)report->stream_number);
    }
    if (report->is_other_thread) {
        append(&out, "  thread:    %" PRIu64, report->thread_number);
        append_name(&out, " \"", report->thread_name, "\"");
        append(&out, ", not the one that began the capture\n");
    }
    append(&out, "  found at:  %s:%d\n", shorten_path(report->file), (int)report->line);
    append(&out, "  cure:      %s\n", report->advice);
    return out.length;
}
