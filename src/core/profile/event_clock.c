// profile/event_clock.c — see event_clock.h.
// SPDX-License-Identifier: Apache-2.0
#include "profile/event_clock.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "profile/chunk.h"
#include "rondo/device.h"

enum {
    PAIR_COUNT_FIRST = 256,     // made with the clock
    READ_COUNT = 64,            // at most so many at once inside the region
    TIE_COUNT = 5,              // tries; the shortest counts
    BASE_MOVES_NS = 1000000000  // a float of milliseconds is exact to 60 ns up to here
};

// A moment on both clocks.
typedef struct tie {
    uint64_t host_ns;
    int64_t device_ns;  // since the first base
    bool is_known;
} tie;

// As a pair was read, in the device's time.
typedef struct raw_time {
    rondo__event_time what;  // without times
    int64_t begin_ns;        // since the first base
    int64_t duration_ns;
} raw_time;

struct rondo__event_clock {
    rondo_device *device;      // retained
    pthread_mutex_t lock;      // guards what follows, and no call of the driver
    rondo__event_pair *pairs;  // all
    rondo__event_pair *free_pairs;
    rondo__event_pair *first_waiting;  // ended, not read; the oldest first
    rondo__event_pair *last_waiting;
    size_t pair_count;  // made, and at most
    size_t pair_count_max;
    size_t waiting_count;
    uint64_t lost_count;
    bool is_reading;  // the thread that has set it uses the members below
    rondo__profile_list times;
    rondo__event_pair *base;  // its end counts; the clock uses it
    int64_t base_ns;          // since the first base
    // Used by the thread that starts and stops.
    tie first;
    tie last;
};

// ---- events -----------------------------------------------------------------------------------

// The calls below write error records when they fail, which are dropped here.
static rondo_event *create_event(rondo_device *device) {
    rondo_event *event = NULL;
    rondo_error saved;
    rondo__error_save(&saved);
    if (device->backend->create_event(device, RONDO_EVENT_TIMED, &event) != RONDO_STATUS_OK) {
        event = NULL;
    }
    rondo__error_restore(&saved);
    return event;
}

static bool record(rondo_event *event, rondo_stream *stream) {
    rondo_error saved;
    rondo__error_save(&saved);
    const bool is_done = stream->device->backend->record_event(event, stream) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    return is_done;
}

static bool get_elapsed(rondo_event *from, rondo_event *to, int64_t *out_ns) {
    rondo_error saved;
    rondo__error_save(&saved);
    const bool is_known =
        from->device->backend->get_elapsed_ns(from, to, out_ns) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    return is_known;
}

static bool has_happened(rondo_event *event) {
    bool is_complete = false;
    rondo_error saved;
    rondo__error_save(&saved);
    const bool is_known =
        event->device->backend->query_event(event, &is_complete) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    return is_known && is_complete;
}

static bool wait_for(rondo_event *event) {
    rondo_error saved;
    rondo__error_save(&saved);
    const bool is_done = event->device->backend->synchronize_event(event) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    return is_done;
}

static void destroy_event(rondo_event *event) {
    if (event != NULL) {
        event->device->backend->destroy_event(event);
    }
}

// ---- pairs ------------------------------------------------------------------------------------

static void free_pair(rondo__event_pair *pair) {
    destroy_event(pair->begin);
    destroy_event(pair->end);
    rondo__profile_give_back(pair);
}

static rondo__event_pair *create_pair(rondo__event_clock *clock) {
    rondo__event_pair *pair = rondo__profile_take(sizeof *pair);
    if (pair == NULL) {
        return NULL;
    }
    memset(pair, 0, sizeof *pair);
    pair->end = create_event(clock->device);
    if (pair->end == NULL) {
        free_pair(pair);
        return NULL;
    }
    pthread_mutex_lock(&clock->lock);
    pair->next_made = clock->pairs;
    clock->pairs = pair;
    pthread_mutex_unlock(&clock->lock);
    return pair;
}

static void put_free(rondo__event_clock *clock, rondo__event_pair *pair) {
    pthread_mutex_lock(&clock->lock);
    pair->next = clock->free_pairs;
    clock->free_pairs = pair;
    pthread_mutex_unlock(&clock->lock);
}

void rondo__event_clock_release(rondo__event_clock *clock, rondo__event_pair *pair) {
    pthread_mutex_lock(&clock->lock);
    pair->user_count -= 1;
    if (pair->user_count == 0) {
        pair->next = clock->free_pairs;
        clock->free_pairs = pair;
    }
    pthread_mutex_unlock(&clock->lock);
}

// Of a pair that is read, or lost.
static void release_former(rondo__event_clock *clock, rondo__event_pair *pair) {
    if (pair->former != NULL) {
        rondo__event_clock_release(clock, pair->former);
        pair->former = NULL;
    }
}

static void count_lost(rondo__event_clock *clock) {
    pthread_mutex_lock(&clock->lock);
    clock->lost_count += 1;
    pthread_mutex_unlock(&clock->lock);
}

// ---- reading ----------------------------------------------------------------------------------

// The oldest pair that was ended, taken out; NULL: there is none, or with `has_to` false it has not
// happened yet.
static rondo__event_pair *take_waiting(rondo__event_clock *clock, bool has_to) {
    pthread_mutex_lock(&clock->lock);
    rondo__event_pair *pair = clock->first_waiting;
    pthread_mutex_unlock(&clock->lock);
    // Only the reader takes pairs out, so this one stays meanwhile.
    if (pair == NULL || (!has_to && !has_happened(pair->end))) {
        return NULL;
    }
    pthread_mutex_lock(&clock->lock);
    clock->first_waiting = pair->next;
    clock->last_waiting = pair->next != NULL ? clock->last_waiting : NULL;
    clock->waiting_count -= 1;
    pthread_mutex_unlock(&clock->lock);
    return pair;
}

// Where the pair begins, since the first base.
static bool find_begin(rondo__event_clock *clock, const rondo__event_pair *pair, int64_t *out_ns) {
    const rondo__event_pair *former = pair->former;
    if (former != NULL && former->is_read) {
        *out_ns = former->end_ns;
        return true;
    }
    int64_t offset_ns = 0;
    const bool is_known =
        get_elapsed(clock->base->end, former != NULL ? former->end : pair->begin, &offset_ns);
    *out_ns = clock->base_ns + offset_ns;
    return is_known;
}

static void move_base(rondo__event_clock *clock, rondo__event_pair *pair) {
    rondo__event_pair *former = clock->base;
    pthread_mutex_lock(&clock->lock);
    pair->user_count += 1;
    pthread_mutex_unlock(&clock->lock);
    clock->base = pair;
    clock->base_ns = pair->end_ns;
    rondo__event_clock_release(clock, former);
}

static void read_pair(rondo__event_clock *clock, rondo__event_pair *pair) {
    int64_t begin_ns = 0;
    int64_t duration_ns = 0;
    raw_time *time = NULL;
    if (find_begin(clock, pair, &begin_ns) &&
        get_elapsed(pair->former != NULL ? pair->former->end : pair->begin, pair->end,
                    &duration_ns)) {
        time = rondo__profile_list_add(&clock->times, sizeof *time);
    }
    if (time == NULL) {
        count_lost(clock);
        return;
    }
    duration_ns = duration_ns > 0 ? duration_ns : 0;
    *time = (raw_time){
        .what = {.span = pair->span,
                 .stream = pair->stream,
                 .bytes = pair->bytes,
                 .name = pair->name,
                 .kind = pair->kind,
                 .way = pair->way},
        .begin_ns = begin_ns,
        .duration_ns = duration_ns,
    };
    pair->end_ns = begin_ns + duration_ns;
    pair->is_read = true;
    if (pair->end_ns - clock->base_ns > BASE_MOVES_NS) {
        move_base(clock, pair);
    }
}

// Reads pairs that have happened, or at the end waits for each.
static void read_waiting(rondo__event_clock *clock, bool is_end) {
    pthread_mutex_lock(&clock->lock);
    const bool is_mine = !clock->is_reading;
    clock->is_reading = true;
    pthread_mutex_unlock(&clock->lock);
    if (!is_mine) {
        return;
    }
    rondo__event_pair *pair = NULL;
    for (size_t i = 0; (is_end || i < READ_COUNT) && (pair = take_waiting(clock, is_end)) != NULL;
         i++) {
        if (!is_end || wait_for(pair->end)) {
            read_pair(clock, pair);
        } else {
            count_lost(clock);
        }
        release_former(clock, pair);
        rondo__event_clock_release(clock, pair);
    }
    pthread_mutex_lock(&clock->lock);
    clock->is_reading = false;
    pthread_mutex_unlock(&clock->lock);
}

// ---- around work ------------------------------------------------------------------------------

static rondo__event_pair *take_free(rondo__event_clock *clock) {
    pthread_mutex_lock(&clock->lock);
    rondo__event_pair *pair = clock->free_pairs;
    const bool may_make = pair == NULL && clock->pair_count < clock->pair_count_max;
    if (pair != NULL) {
        clock->free_pairs = pair->next;
    }
    clock->pair_count += may_make ? 1 : 0;
    pthread_mutex_unlock(&clock->lock);
    if (may_make) {
        pair = create_pair(clock);
    }
    if (may_make && pair == NULL) {
        pthread_mutex_lock(&clock->lock);
        clock->pair_count -= 1;
        pthread_mutex_unlock(&clock->lock);
    }
    return pair;
}

// Puts the pair where `former` ended, or records its begin.
static bool begin_pair(rondo__event_clock *clock, rondo__event_pair *pair, rondo_stream *stream,
                       rondo__event_pair *former) {
    pair->is_read = false;
    pair->former = former;
    if (former != NULL) {
        pthread_mutex_lock(&clock->lock);
        former->user_count += 1;
        pthread_mutex_unlock(&clock->lock);
        return true;
    }
    if (pair->begin == NULL) {
        pair->begin = create_event(clock->device);
    }
    return pair->begin != NULL && record(pair->begin, stream);
}

rondo__event_pair *rondo__event_clock_begin(rondo__event_clock *clock, rondo_stream *stream,
                                            rondo__event_pair *former) {
    rondo__event_pair *pair = take_free(clock);
    if (pair != NULL && !begin_pair(clock, pair, stream, former)) {
        put_free(clock, pair);
        pair = NULL;
    }
    if (pair == NULL) {
        count_lost(clock);
    }
    return pair;
}

bool rondo__event_clock_end(rondo__event_clock *clock, rondo__event_pair *pair,
                            rondo_stream *stream) {
    if (!record(pair->end, stream)) {
        count_lost(clock);
        release_former(clock, pair);
        put_free(clock, pair);
        return false;
    }
    pthread_mutex_lock(&clock->lock);
    pair->user_count = 2;  // the thread, and the list
    pair->next = NULL;
    if (clock->last_waiting != NULL) {
        clock->last_waiting->next = pair;
    } else {
        clock->first_waiting = pair;
    }
    clock->last_waiting = pair;
    clock->waiting_count += 1;
    const bool is_half_full = clock->waiting_count > clock->pair_count_max / 2;
    pthread_mutex_unlock(&clock->lock);
    if (is_half_full) {
        read_waiting(clock, false);
    }
    return true;
}

// ---- the two clocks ---------------------------------------------------------------------------

// Where on the device's clock the host's `now` is; the shorter the wait, the better it is known.
static void find_tie(rondo__event_clock *clock, rondo_stream *stream, rondo_event *mark,
                     tie *out_tie) {
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < TIE_COUNT; i++) {
        int64_t offset_ns = 0;
        const uint64_t before = rondo__clock_now_ns();
        const bool is_done = record(mark, stream) && wait_for(mark);
        const uint64_t after = rondo__clock_now_ns();
        if (is_done && after - before < best_ns &&
            get_elapsed(clock->base->end, mark, &offset_ns)) {
            best_ns = after - before;
            *out_tie = (tie){.host_ns = before + best_ns / 2,
                             .device_ns = clock->base_ns + offset_ns,
                             .is_known = true};
        }
    }
}

void rondo__event_clock_tie(rondo__event_clock *clock) {
    rondo_stream *stream = NULL;
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_event *mark = create_event(clock->device);
    if (mark != NULL && rondo_stream_create(clock->device, NULL, &stream) == RONDO_STATUS_OK) {
        find_tie(clock, stream, mark, clock->first.is_known ? &clock->last : &clock->first);
    }
    rondo_stream_destroy(stream);
    destroy_event(mark);
    rondo__error_restore(&saved);
}

// The host's time of a moment of the device's. With one tie the clocks run alike.
static uint64_t to_host(const rondo__event_clock *clock, int64_t device_ns) {
    const tie *first = &clock->first;
    const tie *last = &clock->last;
    double rate = 1;
    if (last->is_known && last->device_ns - first->device_ns > 1000000) {
        rate = (double)(int64_t)(last->host_ns - first->host_ns) /
               (double)(last->device_ns - first->device_ns);
    }
    const double since = (double)(device_ns - first->device_ns) * rate;
    const int64_t host_ns = (int64_t)first->host_ns + (int64_t)since;
    return host_ns > 0 ? (uint64_t)host_ns : 0;
}

void rondo__event_clock_read(rondo__event_clock *clock,
                             void (*visit)(void *user_data, const rondo__event_clock *clock,
                                           const rondo__event_time *time),
                             void *user_data) {
    read_waiting(clock, true);
    rondo__event_clock_tie(clock);
    for (const rondo__profile_chunk *chunk = clock->times.first; chunk != NULL;
         chunk = chunk->next) {
        const raw_time *times = (const void *)chunk->bytes;
        for (size_t i = 0; i < chunk->used / sizeof *times; i++) {
            rondo__event_time time = times[i].what;
            time.begin_ns = to_host(clock, times[i].begin_ns);
            // Not the sum: what begins where this one ends must not begin before by a rounding.
            time.end_ns = to_host(clock, times[i].begin_ns + times[i].duration_ns);
            if (clock->first.is_known) {
                visit(user_data, clock, &time);
            } else {
                count_lost(clock);
            }
        }
    }
    rondo__profile_chunks_free(clock->times.first);
    clock->times = (rondo__profile_list){0};
}

uint64_t rondo__event_clock_count_lost(rondo__event_clock *clock) {
    pthread_mutex_lock(&clock->lock);
    const uint64_t count = clock->lost_count;
    pthread_mutex_unlock(&clock->lock);
    return count;
}

// ---- life -------------------------------------------------------------------------------------

rondo__event_clock *rondo__event_clock_create(rondo_device *device, rondo_stream *stream,
                                              size_t pair_count) {
    rondo__event_clock *clock = rondo__profile_take(sizeof *clock);
    if (clock == NULL) {
        return NULL;
    }
    memset(clock, 0, sizeof *clock);
    pthread_mutex_init(&clock->lock, NULL);
    rondo_device_retain(device);
    clock->device = device;
    clock->pair_count_max = pair_count;
    clock->base = create_pair(clock);
    bool is_done = clock->base != NULL && record(clock->base->end, stream);
    if (is_done) {
        clock->base->user_count = 1;
    }
    while (is_done && clock->pair_count < PAIR_COUNT_FIRST && clock->pair_count < pair_count) {
        rondo__event_pair *pair = create_pair(clock);
        is_done = pair != NULL && (pair->begin = create_event(device)) != NULL;
        if (is_done) {
            put_free(clock, pair);
            clock->pair_count += 1;
        }
    }
    if (!is_done) {
        rondo__event_clock_destroy(clock);
        return NULL;
    }
    return clock;
}

void rondo__event_clock_destroy(rondo__event_clock *clock) {
    if (clock == NULL) {
        return;
    }
    for (rondo__event_pair *pair = clock->pairs; pair != NULL;) {
        rondo__event_pair *next = pair->next_made;
        free_pair(pair);
        pair = next;
    }
    rondo__profile_chunks_free(clock->times.first);
    pthread_mutex_destroy(&clock->lock);
    rondo_device_release(clock->device);
    rondo__profile_give_back(clock);
}

rondo_device *rondo__event_clock_get_device(const rondo__event_clock *clock) {
    return clock->device;
}
