// profile/timing_events.c — the source that every CUDA device has: timed events around each op that
// is launched, each replay and each copy.
//
// A span that says on which stream its work is put gets a pair of events there, unless the stream
// records; one right behind another begins where that one ended. What is inside a replay is not
// seen. Devices that are open when the profile starts have their clocks tied at both ends; one that
// is opened later, at its end only.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backend/open_devices.h"
#include "base/error.h"
#include "profile/event_clock.h"
#include "profile/profile_source.h"
#include "profile/texts.h"
#include "rondo/device.h"

enum { CLOCKS_MAX = 16, DEPTH_MAX = 16, PAIR_COUNT = 1 << 14 };

static struct {
    pthread_mutex_t clock_lock;                        // held where a clock is made
    _Atomic(rondo__event_clock *) clocks[CLOCKS_MAX];  // by the order of their first use
    pthread_mutex_t text_lock;
    rondo__profile_texts texts;    // guarded by text_lock
    atomic_uint_fast64_t session;  // 0: stopped
    atomic_int caller_count;       // threads that begin or end a span here
    // Used by the thread that starts and stops.
    uint64_t last_session;
    uint64_t lost_count;
    uint64_t measured_count;
} g_events = {.clock_lock = PTHREAD_MUTEX_INITIALIZER, .text_lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct open_pair {
    rondo__event_clock *clock;
    rondo__event_pair *pair;
    rondo_stream *stream;
} open_pair;

// Pairs whose span this thread has open, and the one that it ended last.
static _Thread_local struct {
    uint64_t session;
    size_t depth;
    open_pair open[DEPTH_MAX];
    open_pair latest;  // pair NULL: none
} t_open;

// ---- clocks -----------------------------------------------------------------------------------

static rondo__event_clock *find_clock(const rondo_device *device) {
    for (size_t i = 0; i < CLOCKS_MAX; i++) {
        rondo__event_clock *clock = atomic_load_explicit(&g_events.clocks[i], memory_order_acquire);
        if (clock == NULL || rondo__event_clock_get_device(clock) == device) {
            return clock;
        }
    }
    return NULL;
}

// NULL: there are too many devices, or no events to be had.
static rondo__event_clock *add_clock(rondo_device *device, rondo_stream *stream) {
    pthread_mutex_lock(&g_events.clock_lock);
    rondo__event_clock *clock = find_clock(device);
    size_t place = 0;
    while (place < CLOCKS_MAX && atomic_load(&g_events.clocks[place]) != NULL) {
        ++place;
    }
    if (clock == NULL && place < CLOCKS_MAX) {
        clock = rondo__event_clock_create(device, stream, PAIR_COUNT);
        atomic_store_explicit(&g_events.clocks[place], clock, memory_order_release);
    }
    pthread_mutex_unlock(&g_events.clock_lock);
    return clock;
}

typedef struct device_list {
    rondo_device *devices[CLOCKS_MAX];
    size_t count;
} device_list;

static void list_device(rondo_device *device, void *data) {
    device_list *list = data;
    if (device->backend == &rondo__backend_cuda && !atomic_load(&device->is_lost) &&
        list->count < CLOCKS_MAX) {
        rondo_device_retain(device);
        list->devices[list->count++] = device;
    }
}

static rondo_status start(void) {
    device_list list = {.count = 0};
    rondo_error saved;
    rondo__error_save(&saved);
    g_events.lost_count = 0;
    g_events.measured_count = 0;
    rondo__device_visit_others(NULL, list_device, &list);
    for (size_t i = 0; i < list.count; i++) {
        rondo_stream *stream = NULL;
        if (rondo_stream_create(list.devices[i], NULL, &stream) == RONDO_STATUS_OK) {
            rondo__event_clock *clock = add_clock(list.devices[i], stream);
            if (clock != NULL) {
                rondo__event_clock_tie(clock);
            }
        }
        rondo_stream_destroy(stream);
        rondo_device_release(list.devices[i]);
    }
    rondo__error_restore(&saved);
    atomic_store(&g_events.session, ++g_events.last_session);
    return RONDO_STATUS_OK;
}

// ---- spans ------------------------------------------------------------------------------------

// Events on a stream that records would become part of the graph.
static bool is_recording(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    if (stream->is_legacy || !rondo__stream_may_record(stream)) {
        return false;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    const rondo_status status = stream->device->backend->get_capture_state(stream, &state);
    rondo__error_restore(&saved);
    return status != RONDO_STATUS_OK || state != RONDO__CAPTURE_NONE;
}

static bool find_kind(rondo__span_category category, rondo__work_kind *out_kind) {
    switch (category) {
        case RONDO__SPAN_OP:
            *out_kind = RONDO__WORK_KERNEL;
            return true;
        case RONDO__SPAN_REPLAY:
            *out_kind = RONDO__WORK_GRAPH;
            return true;
        case RONDO__SPAN_COPY:
            *out_kind = RONDO__WORK_COPY;
            return true;
        default:
            return false;
    }
}

static uint32_t find_name(const char *text) {
    uint32_t name = 0;
    pthread_mutex_lock(&g_events.text_lock);
    (void)rondo__profile_texts_find(&g_events.texts, text, &name);
    pthread_mutex_unlock(&g_events.text_lock);
    return name;
}

// Between the two the clocks stay. False: there are none any more.
static bool enter(void) {
    atomic_fetch_add(&g_events.caller_count, 1);
    const uint64_t session = atomic_load(&g_events.session);
    if (t_open.session != session) {
        t_open.session = session;
        t_open.depth = 0;
        t_open.latest.pair = NULL;
    }
    return session != 0;
}

static void leave(void) {
    atomic_fetch_sub(&g_events.caller_count, 1);
}

static void release_latest(void) {
    if (t_open.latest.pair != NULL) {
        rondo__event_clock_release(t_open.latest.clock, t_open.latest.pair);
        t_open.latest.pair = NULL;
    }
}

static void measure_begin(uint64_t span, const rondo__hook_span *what) {
    rondo__work_kind kind = RONDO__WORK_OTHER;
    rondo_stream *stream = what->stream;
    if (stream == NULL || stream->device->backend != &rondo__backend_cuda ||
        !find_kind(what->category, &kind) || t_open.depth == DEPTH_MAX ||
        atomic_load_explicit(&stream->device->is_lost, memory_order_relaxed) ||
        is_recording(stream)) {
        return;
    }
    rondo__event_clock *clock = find_clock(stream->device);
    if (clock == NULL) {
        clock = add_clock(stream->device, stream);
    }
    rondo__event_pair *former =
        what->is_next && t_open.latest.stream == stream ? t_open.latest.pair : NULL;
    rondo__event_pair *pair =
        clock != NULL ? rondo__event_clock_begin(clock, stream, former) : NULL;
    if (pair == NULL) {
        return;
    }
    pair->span = span;
    pair->stream = stream->number;
    pair->bytes = what->bytes;
    pair->name = find_name(what->name);
    pair->kind = kind;
    pair->way = what->way;
    t_open.open[t_open.depth++] = (open_pair){clock, pair, stream};
}

static void begin_span(uint64_t span, const rondo__hook_span *what) {
    if (enter()) {
        measure_begin(span, what);
        release_latest();
    }
    leave();
}

// The end of a span that this thread did not begin is nothing.
static void measure_end(uint64_t span) {
    size_t place = t_open.depth;
    while (place > 0 && t_open.open[place - 1].pair->span != span) {
        --place;
    }
    release_latest();
    if (place == 0) {
        return;
    }
    const open_pair ended = t_open.open[--place];
    if (rondo__event_clock_end(ended.clock, ended.pair, ended.stream)) {
        t_open.latest = ended;
    }
    --t_open.depth;
    memmove(&t_open.open[place], &t_open.open[place + 1],
            (t_open.depth - place) * sizeof t_open.open[0]);
}

static void end_span(uint64_t span) {
    if (enter()) {
        measure_end(span);
    }
    leave();
}

// ---- the end ----------------------------------------------------------------------------------

static void post(void *user_data, const rondo__event_clock *clock, const rondo__event_time *time) {
    (void)user_data;
    const rondo__hook_work work = {
        .kind = time->kind,
        .way = time->way,
        .name = rondo__profile_texts_get(&g_events.texts, time->name),
        .label = "",
        .span = time->span,
        .device = rondo__event_clock_get_device(clock)->ordinal,
        .stream = time->stream,
        .bytes = time->bytes,
        .begin_ns = time->begin_ns,
        .end_ns = time->end_ns,
    };
    g_events.measured_count += 1;
    rondo__hook_post_work(&work);
}

static void flush(void) {
    for (size_t i = 0; i < CLOCKS_MAX; i++) {
        rondo__event_clock *clock = atomic_load(&g_events.clocks[i]);
        if (clock != NULL) {
            rondo__event_clock_read(clock, post, NULL);
        }
    }
}

static void stop(void) {
    atomic_store(&g_events.session, 0);
    while (atomic_load(&g_events.caller_count) > 0) {
        sched_yield();
    }
    for (size_t i = 0; i < CLOCKS_MAX; i++) {
        rondo__event_clock *clock = atomic_exchange(&g_events.clocks[i], NULL);
        if (clock != NULL) {
            g_events.lost_count += rondo__event_clock_count_lost(clock);
            rondo__event_clock_destroy(clock);
        }
    }
    pthread_mutex_lock(&g_events.text_lock);
    rondo__profile_texts_deinit(&g_events.texts, false);
    pthread_mutex_unlock(&g_events.text_lock);
}

static void describe(char *text, size_t bytes) {
    if (g_events.measured_count + g_events.lost_count == 0) {
        (void)snprintf(text, bytes, "clocks of host streams' workers");
        return;
    }
    int length = snprintf(text, bytes, "timing events around ops, replays and copies");
    const char *reason = rondo__profile_cupti_get_reason();
    if (reason[0] != '\0' && length > 0 && (size_t)length < bytes) {
        (void)snprintf(text + length, bytes - (size_t)length, " (no CUPTI: %s)", reason);
    }
}

static uint64_t count_dropped(void) {
    return g_events.lost_count;
}

const rondo__profile_source rondo__profile_source_events = {
    .kind = RONDO_PROFILE_SOURCE_EVENTS,
    .name = "timing events",
    .start = start,
    .flush = flush,
    .stop = stop,
    .describe = describe,
    .count_dropped = count_dropped,
    .span_begin = begin_span,
    .span_end = end_span,
};
