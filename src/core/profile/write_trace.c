// profile/write_trace.c — tracks, slices, arrows and counters in the trace event format:
//
//   process "processor"    a track for each thread, with nested slices; counters
//   process "cuda:0"       a track for each stream, and more where branches ran side by side
//   flow                   from the begin of the span that put work on a device to that work
//
// Times are microseconds since the profile began, with three digits behind the point. Slices of a
// track come in the order of their begins, and a slice before those inside it.
//
// Source: Trace Event Format (the document that chrome://tracing links to), events M, X, s, f, C.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "profile/report.h"
#include "profile/tracks.h"
#include "rondo/version.h"

enum {
    PROCESSOR_PID = 1,
    DEVICE_PID = 10,  // and the device's number; 9: streams of the processor
};

typedef struct trace {
    const rondo__profile_records *records;
    rondo__profile_tracks tracks;
    rondo__profile_out *out;
    rondo__text *text;
    bool has_event;
} trace;

// Begins an event, which the caller ends with "}".
static rondo__text *begin_event(trace *t, const char *phase, int pid, size_t tid) {
    rondo__text_append(t->text, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%zu",
                       t->has_event ? "," : "", phase, pid, tid);
    t->has_event = true;
    return t->text;
}

static void end_event(trace *t) {
    rondo__text_append_bytes(t->text, "}", 1);
}

static void append_microseconds(trace *t, const char *key, uint64_t ns) {
    rondo__text_append(t->text, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

// Times of a device's clock may lie a little before the profile's begin.
static uint64_t since_begin(const trace *t, uint64_t time_ns) {
    return time_ns > t->records->begin_ns ? time_ns - t->records->begin_ns : 0;
}

static void append_slice(trace *t, const char *name, const char *category, uint64_t begin_ns,
                         uint64_t end_ns) {
    const uint64_t begin = since_begin(t, begin_ns);
    const uint64_t end = since_begin(t, end_ns);
    append_microseconds(t, "ts", begin);
    append_microseconds(t, "dur", end > begin ? end - begin : 0);
    rondo__text_append(t->text, ",\"cat\":\"%s\",\"name\":", category);
    rondo__text_append_json(t->text, name);
}

// ---- names of tracks --------------------------------------------------------------------------

static void name_thing(trace *t, const char *what, int pid, size_t tid, const char *name) {
    rondo__text *text = begin_event(t, "M", pid, tid);
    rondo__text_append(text, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    rondo__text_append_json(text, name);
    rondo__text_append_bytes(text, "}", 1);
    end_event(t);
}

// Devices and streams in the order of their numbers, not of their first work.
static void sort_thing(trace *t, const char *what, int pid, size_t tid, uint64_t index) {
    rondo__text_append(begin_event(t, "M", pid, tid),
                       ",\"name\":\"%s\",\"args\":{\"sort_index\":%" PRIu64 "}", what, index);
    end_event(t);
}

static int get_pid(int32_t device) {
    return DEVICE_PID + device;
}

static void write_names(trace *t) {
    name_thing(t, "process_name", PROCESSOR_PID, 0, "processor");
    sort_thing(t, "process_sort_index", PROCESSOR_PID, 0, 0);
    for (size_t i = 0; i < t->records->thread_count; ++i) {
        name_thing(t, "thread_name", PROCESSOR_PID, i + 1, t->records->threads[i].name);
        sort_thing(t, "thread_sort_index", PROCESSOR_PID, i + 1, i);
    }
    for (size_t i = 0; i < t->tracks.count; ++i) {
        const rondo__profile_track *track = &t->tracks.tracks[i];
        char name[64];
        char device[32];
        const int pid = get_pid(track->device);
        name_thing(t, "process_name", pid, i + 1,
                   track->device < 0 ? "streams of the processor"
                                     : rondo__profile_name_device(track->device, device));
        sort_thing(t, "process_sort_index", pid, i + 1, (uint64_t)pid);
        name_thing(t, "thread_name", pid, i + 1, rondo__profile_name_track(track, name));
        sort_thing(t, "thread_sort_index", pid, i + 1, track->stream * 1000 + track->lane);
    }
}

// ---- slices -----------------------------------------------------------------------------------

static void append_arguments(trace *t, const char *detail, rondo__way way, uint64_t bytes) {
    const char *const texts[][2] = {{"detail", detail}, {"way", rondo__way_get_name(way)}};
    const char *comma = "";
    rondo__text_append(t->text, ",\"args\":{");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        if (texts[i][1][0] != '\0') {
            rondo__text_append(t->text, "%s\"%s\":", comma, texts[i][0]);
            rondo__text_append_json(t->text, texts[i][1]);
            comma = ",";
        }
    }
    if (bytes > 0) {
        rondo__text_append(t->text, "%s\"bytes\":%" PRIu64, comma, bytes);
    }
    rondo__text_append_bytes(t->text, "}", 1);
}

static void write_spans(trace *t) {
    for (size_t i = 0; i < t->records->span_count && rondo__profile_out_pass(t->out); ++i) {
        const rondo__profile_span *span = &t->records->spans[i];
        begin_event(t, "X", PROCESSOR_PID, (size_t)span->thread + 1);
        append_slice(t, span->name, rondo__span_category_get_name(span->category), span->begin_ns,
                     span->end_ns);
        append_arguments(t, span->detail, span->way, span->bytes);
        end_event(t);
    }
}

// An arrow begins in the span, which is open then, and ends where the work begins. Clocks of two
// machines may disagree by a little; an arrow into the past would not be shown.
static void write_arrow(trace *t, size_t index, int pid, size_t tid) {
    const rondo__profile_work *work = &t->records->works[index];
    if (work->span == 0 || work->span > t->records->span_count) {
        return;
    }
    const rondo__profile_span *span = &t->records->spans[work->span - 1];
    if (work->begin_ns < span->begin_ns) {
        return;
    }
    rondo__text *text = begin_event(t, "s", PROCESSOR_PID, (size_t)span->thread + 1);
    append_microseconds(t, "ts", since_begin(t, span->begin_ns));
    rondo__text_append(text, ",\"id\":%zu,\"cat\":\"launch\",\"name\":\"launch\"", index + 1);
    end_event(t);
    text = begin_event(t, "f", pid, tid);
    append_microseconds(t, "ts", since_begin(t, work->begin_ns));
    rondo__text_append(text, ",\"bp\":\"e\",\"id\":%zu,\"cat\":\"launch\",\"name\":\"launch\"",
                       index + 1);
    end_event(t);
}

static void write_works(trace *t) {
    for (size_t i = 0; i < t->records->work_count && rondo__profile_out_pass(t->out); ++i) {
        const rondo__profile_work *work = &t->records->works[i];
        const size_t tid = (size_t)t->tracks.of_work[i] + 1;
        const int pid = get_pid(work->device);
        begin_event(t, "X", pid, tid);
        append_slice(t, work->label[0] != '\0' ? work->label : work->name,
                     rondo__work_kind_get_name(work->kind), work->begin_ns, work->end_ns);
        append_arguments(t, work->label[0] != '\0' ? work->name : "", work->way, work->bytes);
        end_event(t);
        write_arrow(t, i, pid, tid);
    }
}

static void write_samples(trace *t) {
    for (size_t i = 0; i < t->records->sample_count && rondo__profile_out_pass(t->out); ++i) {
        const rondo__profile_sample *sample = &t->records->samples[i];
        rondo__text *text = begin_event(t, "C", PROCESSOR_PID, 0);
        append_microseconds(t, "ts", since_begin(t, sample->time_ns));
        rondo__text_append(text, ",\"name\":");
        rondo__text_append_json(text, sample->name);
        rondo__text_append(text, ",\"args\":{\"bytes\":%" PRIu64 "}", sample->value);
        end_event(t);
    }
}

void rondo__profile_write_trace(const rondo__profile_report *report, rondo__profile_out *out) {
    const rondo__profile_records *records = report->records;
    rondo__text *text = &out->text;
    trace t = {.records = records, .out = out, .text = text};
    if (rondo__profile_tracks_make(records, &t.tracks) != RONDO_STATUS_OK) {
        text->failed = 1;
    }
    rondo__text_append(text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"rondo\":\"%s\"",
                       rondo_version_get_text());
    rondo__text_append(text, ",\"title\":");
    rondo__text_append_json(text, report->title);
    rondo__text_append(text, ",\"source\":");
    rondo__text_append_json(text, records->source);
    rondo__text_append(text, ",\"dropped\":%" PRIu64 "},\"traceEvents\":[", records->dropped_count);
    if (!text->failed) {
        write_names(&t);
        write_spans(&t);
        write_works(&t);
        write_samples(&t);
    }
    rondo__text_append(text, "\n]}\n");
    rondo__profile_tracks_deinit(&t.tracks);
}
