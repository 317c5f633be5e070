// graph/watchdog.c — replays that make no progress are reported; nothing is stopped.
//
// What the device has reached stands in two words of pinned memory for each graph, which fills in
// stream order write: `reached`, the number of the last mark that was passed, and `done`, the
// number of the last replay that is over. A thread reads them and asks no driver, whose questions
// would break captures in global mode:
//
//   stream:   reached = 0 | mark 1 ... mark 2 ...   the replay   | done = 7
//   thread:   is done < 7, and has neither word changed for the timeout?  then it tells, once
//
// A replay that is not watched costs nothing. One that is takes two fills more.
// SPDX-License-Identifier: Apache-2.0
#include "graph/watchdog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/areas.h"
#include "backend/check.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/thread.h"
#include "base/write_struct.h"
#include "device/device.h"
#include "graph/graph_object.h"
#include "rondo/label.h"

enum {
    CHUNK_GRAPHS = 1024,
    LABEL_BYTES = 128,
    TEXT_BYTES = 2048,
    SLEEP_MAX_NS = 250 * 1000 * 1000,
    SLEEP_MIN_NS = 1000 * 1000,
};
static const uint64_t default_timeout_ns = UINT64_C(10) * 1000 * 1000 * 1000;

typedef struct watched {
    const rondo_graph *graph;  // compared, and not looked at; NULL: it is gone
    char *words;               // in its chunk's memory: two atomic numbers of 32 bits
    uint64_t recording;        // of the graph: when it began
    char name[LABEL_BYTES];
    char (*labels)[LABEL_BYTES];  // of the marks
    size_t mark_count, mark_capacity;
    uint32_t stream;
    uint32_t ticket;  // of the replay put last
    uint32_t seen_reached, seen_done;
    uint64_t since_ns;  // the last change
    bool is_told;
} watched;

// Places for graphs; neither they nor their words move.
typedef struct chunk {
    watched list[CHUNK_GRAPHS];
    void *words;  // pinned
} chunk;

struct rondo_watchdog {
    rondo__watchdog_link link;  // the first member
    rondo_device *device;
    uint64_t timeout_ns;
    rondo_stall_function function;
    void *user_data;
    uint32_t driver_version;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool is_stopping;  // guarded by lock, as all below
    chunk **chunks;
    size_t chunk_count, chunk_capacity;
    size_t count;  // of graphs
    uint64_t stall_count;
};

enum { REACHED, DONE, WORDS };

static watched *get_watched(const rondo_watchdog *dog, size_t index) {
    return &dog->chunks[index / CHUNK_GRAPHS]->list[index % CHUNK_GRAPHS];
}

static void *find_word(const watched *w, int which) {
    return w->words + (size_t)which * sizeof(uint32_t);
}

static uint32_t read_word(const watched *w, int which) {
    const _Atomic uint32_t *word = find_word(w, which);
    return atomic_load_explicit(word, memory_order_relaxed);
}

// Without padding, since learned steps compare all bytes of arguments.
typedef struct word_value {
    void *word;
    uint64_t value;  // its low half is set
} word_value;

static void set_word(void *arguments) {
    const word_value *set = arguments;
    _Atomic uint32_t *word = set->word;
    atomic_store_explicit(word, (uint32_t)set->value, memory_order_relaxed);
}

// Lets the stream set a word; on the host by a function, for a fill there is no atomic one.
static rondo_status put_word(rondo_stream *stream, void *word, uint32_t value) {
    if (rondo_device_is_host(stream->device)) {
        const word_value set = {word, value};
        return rondo_stream_call_host(stream, "watchdog", set_word, &set, sizeof set);
    }
    return rondo_stream_fill(stream, word, value, sizeof value, 1);
}

// ---- the thread -------------------------------------------------------------------------------

// What is told of a stall, copied: the program is called without the lock.
typedef struct report {
    char graph[LABEL_BYTES], label[LABEL_BYTES];
    char text[TEXT_BYTES];
    rondo_stall stall;
} report;

static bool is_pending(const watched *w) {
    return (int32_t)(read_word(w, DONE) - w->ticket) < 0;
}

static const char *get_label(const watched *w, uint32_t reached) {
    return reached > 0 && reached <= w->mark_count ? w->labels[reached - 1] : "";
}

static void append_others(const rondo_watchdog *dog, const watched *told, report *r) {
    size_t length = strlen(r->text);
    for (size_t i = 0; i < dog->count && length + 1 < sizeof r->text; ++i) {
        const watched *w = get_watched(dog, i);
        if (w != told && is_pending(w)) {
            (void)snprintf(r->text + length, sizeof r->text - length,
                           "; graph \"%s\" on stream %u is under way, too", w->name,
                           (unsigned)w->stream);
            length += strlen(r->text + length);
        }
    }
}

static void describe(const rondo_watchdog *dog, const watched *w, uint64_t now_ns, report *r) {
    const uint32_t reached = read_word(w, REACHED);
    (void)snprintf(r->graph, sizeof r->graph, "%s", w->name);
    (void)snprintf(r->label, sizeof r->label, "%s", get_label(w, reached));
    r->stall = (rondo_stall){.struct_size = sizeof r->stall,
                             .device = rondo_device_get_name(dog->device),
                             .driver_version = (int32_t)dog->driver_version,
                             .graph = r->graph,
                             .last_label = r->label,
                             .mark = reached,
                             .mark_count = w->mark_count,
                             .stream = w->stream,
                             .waited_ns = now_ns - w->since_ns,
                             .text = r->text};
    (void)snprintf(r->text, sizeof r->text,
                   "graph \"%s\" on stream %u of %s (driver %u.%u) has made no progress for "
                   "%.3f s%s%s%s",
                   r->graph, (unsigned)w->stream, r->stall.device, dog->driver_version / 1000,
                   dog->driver_version % 1000 / 10, (double)r->stall.waited_ns * 1e-9,
                   r->label[0] != '\0' ? "; the last mark that it passed is in \"" : "", r->label,
                   r->label[0] != '\0' ? "\"" : "");
    append_others(dog, w, r);
}

// Whether a watched graph has stalled since it was looked at last.
static bool look(const rondo_watchdog *dog, watched *w, uint64_t now_ns) {
    const uint32_t reached = read_word(w, REACHED);
    const uint32_t done = read_word(w, DONE);
    if (!is_pending(w) || reached != w->seen_reached || done != w->seen_done) {
        w->seen_reached = reached;
        w->seen_done = done;
        w->since_ns = now_ns;
        w->is_told = false;
    }
    return !w->is_told && now_ns - w->since_ns >= dog->timeout_ns;
}

// Tells of one stall; false: there is none. The lock is given back for the call.
static bool tell_one(rondo_watchdog *dog) {
    const uint64_t now_ns = rondo__clock_now_ns();
    for (size_t i = 0; i < dog->count; ++i) {
        watched *w = get_watched(dog, i);
        if (!look(dog, w, now_ns)) {
            continue;
        }
        report r;
        describe(dog, w, now_ns, &r);
        w->is_told = true;
        dog->stall_count += 1;
        pthread_mutex_unlock(&dog->lock);
        if (dog->function != NULL) {
            dog->function(dog->user_data, &r.stall);
        } else {
            RONDO_LOG_WARN_F("%s", r.text);
        }
        pthread_mutex_lock(&dog->lock);
        return true;
    }
    return false;
}

static void sleep_a_while(rondo_watchdog *dog) {
    struct timespec until;
    uint64_t nap_ns = dog->timeout_ns / 8;
    nap_ns = nap_ns > SLEEP_MAX_NS ? SLEEP_MAX_NS : nap_ns < SLEEP_MIN_NS ? SLEEP_MIN_NS : nap_ns;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t end_ns = (uint64_t)until.tv_nsec + nap_ns;
    until.tv_sec += (time_t)(end_ns / 1000000000);
    until.tv_nsec = (long)(end_ns % 1000000000);
    (void)pthread_cond_timedwait(&dog->stopped, &dog->lock, &until);
}

static void *watch(void *argument) {
    rondo_watchdog *dog = argument;
    pthread_mutex_lock(&dog->lock);
    while (!dog->is_stopping) {
        if (!tell_one(dog)) {
            sleep_a_while(dog);
        }
    }
    pthread_mutex_unlock(&dog->lock);
    return NULL;
}

// ---- life -------------------------------------------------------------------------------------

static void free_chunk(const rondo_watchdog *dog, chunk *made) {
    if (made->words != NULL) {
        (void)rondo__areas_free(dog->device, made->words);
    }
    rondo__free(made);
}

static void free_dog(rondo_watchdog *dog) {
    for (size_t i = 0; i < dog->count; ++i) {
        rondo__free(get_watched(dog, i)->labels);
    }
    for (size_t i = 0; i < dog->chunk_count; ++i) {
        free_chunk(dog, dog->chunks[i]);
    }
    rondo__free(dog->chunks);
    (void)pthread_mutex_destroy(&dog->lock);
    rondo_device_release(dog->device);
    rondo__free(dog);
}

static void forget(rondo__watchdog_link *link, const rondo_graph *graph) {
    rondo_watchdog *dog = (rondo_watchdog *)link;
    pthread_mutex_lock(&dog->lock);
    for (size_t i = 0; i < dog->count; ++i) {
        watched *w = get_watched(dog, i);
        if (w->graph == graph) {
            w->graph = NULL;
            w->mark_count = 0;
        }
    }
    pthread_mutex_unlock(&dog->lock);
}

// Makes places for more graphs. It asks the driver, so the caller does not hold the lock; a capture
// that is open is no obstacle.
static rondo_status add_chunk(rondo_watchdog *dog) {
    const size_t bytes = WORDS * CHUNK_GRAPHS * sizeof(uint32_t);
    chunk *made = rondo__calloc(1, sizeof *made);
    rondo_status status = made != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = rondo__areas_allocate(dog->device, RONDO_MEMORY_PINNED, bytes, &made->words);
    }
    if (status == RONDO_STATUS_OK) {
        memset(made->words, 0, bytes);
        for (size_t i = 0; i < CHUNK_GRAPHS; ++i) {
            made->list[i].words = (char *)made->words + WORDS * i * sizeof(uint32_t);
        }
        pthread_mutex_lock(&dog->lock);
        status = RONDO__ARRAY_RESERVE(dog->chunks, dog->chunk_capacity, dog->chunk_count + 1);
        if (status == RONDO_STATUS_OK) {
            dog->chunks[dog->chunk_count++] = made;
        }
        pthread_mutex_unlock(&dog->lock);
    }
    if (status != RONDO_STATUS_OK && made != NULL) {
        rondo_error saved;
        rondo__error_save(&saved);
        free_chunk(dog, made);
        rondo__error_restore(&saved);
    }
    return status;
}

static rondo_status make_parts(rondo_watchdog *dog) {
    rondo_device_info info = {.struct_size = sizeof info};
    RETURN_IF_ERROR(rondo__device_get_facts(dog->device, &info));
    dog->driver_version = (uint32_t)info.driver_version;
    return add_chunk(dog);
}

static rondo_status start(rondo_watchdog *dog) {
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&dog->stopped, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    const rondo_status status = rondo__thread_start("rondo-watchdog", watch, dog, &dog->thread);
    if (status != RONDO_STATUS_OK) {
        (void)pthread_cond_destroy(&dog->stopped);
    }
    return status;
}

rondo_status rondo_watchdog_create(rondo_device *device, const rondo_watchdog_options *options,
                                   rondo_watchdog **out_watchdog) {
    RETURN_IF_ERROR(rondo__check_pointer(out_watchdog, __func__, "out_watchdog"));
    *out_watchdog = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_watchdog_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_watchdog_options"));
    rondo_watchdog *dog = rondo__calloc(1, sizeof *dog);
    if (dog == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    (void)pthread_mutex_init(&dog->lock, NULL);
    dog->device = device;
    dog->link.forget = forget;
    dog->timeout_ns = wanted.timeout_ns > 0 ? wanted.timeout_ns : default_timeout_ns;
    dog->function = wanted.function;
    dog->user_data = wanted.user_data;
    rondo_status status = make_parts(dog);
    if (status == RONDO_STATUS_OK) {
        status = start(dog);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        free_dog(dog);
        rondo__error_restore(&saved);
        return status;
    }
    rondo__watchdog_list_add(&dog->link);
    *out_watchdog = dog;
    return RONDO_STATUS_OK;
}

void rondo_watchdog_destroy(rondo_watchdog *watchdog) {
    if (watchdog == NULL || atomic_load(&watchdog->device->is_forked)) {
        return;
    }
    if (pthread_equal(watchdog->thread, pthread_self()) != 0) {
        RONDO_LOG_WARN_F(
            "rondo_watchdog_destroy: the function of a watchdog must not destroy it, and it is "
            "left "
            "as it is");
        return;
    }
    rondo__watchdog_list_remove(&watchdog->link);
    pthread_mutex_lock(&watchdog->lock);
    watchdog->is_stopping = true;
    (void)pthread_cond_signal(&watchdog->stopped);
    pthread_mutex_unlock(&watchdog->lock);
    (void)pthread_join(watchdog->thread, NULL);
    (void)pthread_cond_destroy(&watchdog->stopped);
    free_dog(watchdog);
}

// ---- what is watched --------------------------------------------------------------------------

// A place of a graph that is gone, with nothing under way, or a new one; SIZE_MAX: there is none.
static size_t find_free(rondo_watchdog *dog) {
    for (size_t i = 0; i < dog->count; ++i) {
        const watched *w = get_watched(dog, i);
        if (w->graph == NULL && !is_pending(w)) {
            return i;
        }
    }
    return dog->count < dog->chunk_count * CHUNK_GRAPHS ? dog->count++ : SIZE_MAX;
}

// The graph's place, or one that it gets; NULL: there are no more.
static watched *find_place(rondo_watchdog *dog, rondo_graph *graph) {
    size_t i = graph->watch_place;  // of the watchdog that saw it last
    if (i >= dog->count || get_watched(dog, i)->graph != graph) {
        for (i = 0; i < dog->count && get_watched(dog, i)->graph != graph;) {
            ++i;
        }
        i = i < dog->count ? i : find_free(dog);
        if (i == SIZE_MAX) {
            return NULL;
        }
        graph->watch_place = i;
    }
    watched *w = get_watched(dog, i);
    if (w->graph != graph) {
        w->ticket = w->seen_done = read_word(w, DONE);
        w->graph = graph;
        w->recording = UINT64_MAX;
        graph->is_watched = true;
    }
    return w;
}

// The graph's place; one of an earlier recording begins anew. OK: the lock is held.
static rondo_status find_and_lock(rondo_watchdog *dog, rondo_graph *graph, watched **out_watched) {
    watched *w;
    pthread_mutex_lock(&dog->lock);
    while ((w = find_place(dog, graph)) == NULL) {
        pthread_mutex_unlock(&dog->lock);
        RETURN_IF_ERROR(add_chunk(dog));
        pthread_mutex_lock(&dog->lock);
    }
    if (w->recording != graph->begin_ns) {
        w->recording = graph->begin_ns;
        w->mark_count = 0;
        (void)snprintf(w->name, sizeof w->name, "%s", graph->label);
    }
    *out_watched = w;
    return RONDO_STATUS_OK;
}

static rondo_status check(const rondo_watchdog *dog, const rondo_graph *graph,
                          const rondo_stream *stream, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(dog, call, "watchdog"));
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    return graph->device == dog->device && stream->device == dog->device
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID,
                               "the watchdog is of %s, graph and stream of %s and %s",
                               dog->device->name, graph->device->name, stream->device->name);
}

static rondo_status add_mark(watched *w, const rondo_stream *stream) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(w->labels, w->mark_capacity, w->mark_count + 1));
    (void)snprintf(w->labels[w->mark_count], LABEL_BYTES, "%s", rondo_label_get_path(stream));
    w->mark_count += 1;
    return RONDO_STATUS_OK;
}

rondo_status rondo_watchdog_mark(rondo_watchdog *watchdog, rondo_graph *graph,
                                 rondo_stream *stream) {
    RETURN_IF_ERROR(check(watchdog, graph, stream, __func__));
    rondo__place place;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    if (graph->state != RONDO__GRAPH_RECORDING || place.capture != graph->capture) {
        return RONDO_FAIL(STATE, "stream %u does not record graph \"%s\"", (unsigned)stream->number,
                          graph->label);
    }
    watched *w;
    RETURN_IF_ERROR(find_and_lock(watchdog, graph, &w));
    const rondo_status status = add_mark(w, stream);
    const uint32_t number = (uint32_t)w->mark_count;
    pthread_mutex_unlock(&watchdog->lock);
    return status == RONDO_STATUS_OK ? put_word(stream, find_word(w, REACHED), number) : status;
}

rondo_status rondo__watchdog_mark_again(rondo_watchdog *watchdog, rondo_graph *graph,
                                        uint32_t number, rondo_stream *stream) {
    watched *w;
    RETURN_IF_ERROR(find_and_lock(watchdog, graph, &w));
    pthread_mutex_unlock(&watchdog->lock);
    return put_word(stream, find_word(w, REACHED), number);
}

rondo_status rondo__watchdog_watch(rondo_watchdog *watchdog, rondo_graph *graph,
                                   rondo_stream *stream, rondo__watchdog_put put, void *user_data) {
    watched *w;
    RETURN_IF_ERROR(find_and_lock(watchdog, graph, &w));
    w->stream = stream->number;
    pthread_mutex_unlock(&watchdog->lock);
    RETURN_IF_ERROR(put_word(stream, find_word(w, REACHED), 0));
    RETURN_IF_ERROR(put(user_data));
    // One thread at a time uses the graph, so no other takes a number from it.
    pthread_mutex_lock(&watchdog->lock);
    if (!is_pending(w)) {
        w->since_ns = rondo__clock_now_ns();
        w->is_told = false;
    }
    const uint32_t ticket = ++w->ticket;
    pthread_mutex_unlock(&watchdog->lock);
    return put_word(stream, find_word(w, DONE), ticket);
}

typedef struct replay {
    rondo_graph *graph;
    rondo_stream *stream;
} replay;

static rondo_status put_replay(void *user_data) {
    const replay *r = user_data;
    return rondo_graph_replay(r->graph, r->stream);
}

rondo_status rondo_watchdog_replay(rondo_watchdog *watchdog, rondo_graph *graph,
                                   rondo_stream *stream) {
    RETURN_IF_ERROR(check(watchdog, graph, stream, __func__));
    replay r = {graph, stream};
    return rondo__watchdog_watch(watchdog, graph, stream, put_replay, &r);
}

uint64_t rondo_watchdog_get_stall_count(rondo_watchdog *watchdog) {
    if (watchdog == NULL) {
        return 0;
    }
    pthread_mutex_lock(&watchdog->lock);
    const uint64_t count = watchdog->stall_count;
    pthread_mutex_unlock(&watchdog->lock);
    return count;
}

rondo_device *rondo__watchdog_get_device(const rondo_watchdog *watchdog) {
    return watchdog->device;
}
