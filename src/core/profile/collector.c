// profile/collector.c — see collector.h.
// SPDX-License-Identifier: Apache-2.0
#include "profile/collector.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/thread.h"
#include "profile/thread_log.h"

enum { LOG_COUNT = 256 };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static rondo__profile_log g_logs[LOG_COUNT];  // each guarded by its own lock
static size_t g_log_count;                    // in use; guarded by g_lock
static uint64_t g_last_session;               // guarded by g_lock
static _Atomic(uint64_t) g_session;           // 0: no profile runs
static _Atomic(const rondo__profile_source *) g_source;
static _Atomic(uint64_t) g_limit;
static _Atomic(uint64_t) g_kept_count;
static _Atomic(uint64_t) g_dropped_count;
static uint64_t g_begin_ns;  // of the region; used by the thread that starts and stops, as the next
static uint64_t g_end_ns;    // 0: not yet

// The log of this thread, for as long as the session is the same. NULL: there was none left.
static _Thread_local uint64_t t_session;
static _Thread_local rondo__profile_log *t_log;

// ---- logs -------------------------------------------------------------------------------------

// In the child of a fork: locks may be held, and records half written, by threads that it has not
// got. Records of the parent stay where they are, unused.
static void forget_logs(void) {
    atomic_store(&g_session, 0);
    g_log_count = 0;
    pthread_mutex_init(&g_lock, NULL);
    for (size_t i = 0; i < LOG_COUNT; ++i) {
        memset(&g_logs[i], 0, sizeof g_logs[i]);
        pthread_mutex_init(&g_logs[i].lock, NULL);
    }
}

static void init_logs(void) {
    for (size_t i = 0; i < LOG_COUNT; ++i) {
        pthread_mutex_init(&g_logs[i].lock, NULL);
    }
    if (pthread_atfork(NULL, NULL, forget_logs) != 0) {
        RONDO_LOG_WARN_F("no memory for a fork handler: do not profile in the child of a fork");
    }
}

static void take_log(void) {
    pthread_mutex_lock(&g_lock);
    t_session = atomic_load(&g_session);
    t_log = NULL;
    if (t_session != 0 && g_log_count < LOG_COUNT) {
        t_log = &g_logs[g_log_count++];
        pthread_mutex_lock(&t_log->lock);
        t_log->session = t_session;
        t_log->thread.native_id = (uint64_t)syscall(SYS_gettid);
        rondo__thread_get_name(t_log->thread.name, sizeof t_log->thread.name);
        pthread_mutex_unlock(&t_log->lock);
    }
    pthread_mutex_unlock(&g_lock);
}

// This thread's log, locked; NULL: nothing is to be written down.
static rondo__profile_log *enter_log(void) {
    const uint64_t session = atomic_load_explicit(&g_session, memory_order_acquire);
    if (session == 0) {
        return NULL;
    }
    if (t_session != session) {
        take_log();
    }
    if (t_log == NULL) {
        atomic_fetch_add_explicit(&g_dropped_count, 1, memory_order_relaxed);
        return NULL;
    }
    pthread_mutex_lock(&t_log->lock);
    if (t_log->session == t_session) {
        return t_log;
    }
    pthread_mutex_unlock(&t_log->lock);  // the profile has ended meanwhile
    return NULL;
}

static void leave_log(rondo__profile_log *log) {
    pthread_mutex_unlock(&log->lock);
}

// Room for one more record of a list; NULL, and counted: it is dropped.
static void *add_record(rondo__profile_list *list, size_t bytes) {
    void *record = NULL;
    if (atomic_fetch_add_explicit(&g_kept_count, 1, memory_order_relaxed) <
        atomic_load_explicit(&g_limit, memory_order_relaxed)) {
        record = rondo__profile_list_add(list, bytes);
    }
    if (record == NULL) {
        atomic_fetch_add_explicit(&g_dropped_count, 1, memory_order_relaxed);
        return NULL;
    }
    return memset(record, 0, bytes);
}

// A text for which there is no memory is "".
static uint32_t add_text(rondo__profile_log *log, const char *text) {
    uint32_t number = 0;
    (void)rondo__profile_texts_find(&log->texts, text, &number);
    return number;
}

// ---- what the hooks tell ----------------------------------------------------------------------

static void note_open(rondo__profile_log *log, uint64_t id, rondo__raw_span *span) {
    if (log->open_count == RONDO__PROFILE_OPEN_MAX) {
        memmove(log->open, log->open + 1, (RONDO__PROFILE_OPEN_MAX - 1) * sizeof *log->open);
        --log->open_count;
    }
    log->open[log->open_count++] = (rondo__open_span){id, span};
}

static void begin_span(void *self, uint64_t id, const rondo__hook_span *what) {
    (void)self;
    const rondo__profile_source *source = atomic_load_explicit(&g_source, memory_order_acquire);
    if (source != NULL && source->span_begin != NULL) {
        source->span_begin(id, what);
    }
    rondo__profile_log *log = enter_log();
    if (log == NULL) {
        return;
    }
    rondo__raw_span *span = add_record(&log->spans, sizeof *span);
    note_open(log, id, span);
    if (span != NULL) {
        span->id = id;
        span->name = add_text(log, what->name);
        span->detail = add_text(log, what->detail);
        span->bytes = what->bytes;
        span->category = (uint8_t)what->category;
        span->way = (uint8_t)what->way;
        span->is_async = what->is_async;
        span->begin_ns = rondo__clock_now_ns();
    }
    leave_log(log);
}

static void end_in_log(rondo__profile_log *log, uint64_t id, uint64_t now) {
    for (size_t i = log->open_count; i-- > 0;) {
        if (log->open[i].id == id) {
            if (log->open[i].span != NULL) {
                log->open[i].span->end_ns = now;
            }
            --log->open_count;
            memmove(log->open + i, log->open + i + 1, (log->open_count - i) * sizeof *log->open);
            return;
        }
    }
    // Another thread began it, or it is older than this profile.
    rondo__raw_end *end = rondo__profile_list_add(&log->ends, sizeof *end);
    if (end != NULL) {
        *end = (rondo__raw_end){id, now};
    }
}

static void end_span(void *self, uint64_t id) {
    (void)self;
    const uint64_t now = rondo__clock_now_ns();
    rondo__profile_log *log = enter_log();
    if (log != NULL) {
        end_in_log(log, id, now);
        leave_log(log);
    }
    const rondo__profile_source *source = atomic_load_explicit(&g_source, memory_order_acquire);
    if (source != NULL && source->span_end != NULL) {
        source->span_end(id);
    }
}

static void add_work(void *self, const rondo__hook_work *what) {
    (void)self;
    rondo__profile_log *log = enter_log();
    if (log == NULL) {
        return;
    }
    rondo__raw_work *work = add_record(&log->works, sizeof *work);
    if (work != NULL) {
        *work = (rondo__raw_work){.span = what->span,
                                  .stream = what->stream,
                                  .bytes = what->bytes,
                                  .begin_ns = what->begin_ns,
                                  .end_ns = what->end_ns,
                                  .name = add_text(log, what->name),
                                  .label = add_text(log, what->label),
                                  .device = what->device,
                                  .kind = (uint8_t)what->kind,
                                  .way = (uint8_t)what->way};
    }
    leave_log(log);
}

static void add_sample(void *self, const char *name, uint64_t value) {
    (void)self;
    rondo__profile_log *log = enter_log();
    if (log == NULL) {
        return;
    }
    rondo__raw_sample *sample = add_record(&log->samples, sizeof *sample);
    if (sample != NULL) {
        *sample = (rondo__raw_sample){
            .time_ns = rondo__clock_now_ns(), .value = value, .name = add_text(log, name)};
    }
    leave_log(log);
}

static const rondo__hook_listener g_listener = {
    .begin = begin_span,
    .end = end_span,
    .work = add_work,
    .counter = add_sample,
};

// ---- begin and end ----------------------------------------------------------------------------

rondo_status rondo__collector_start(uint64_t record_limit, const rondo__profile_source *source,
                                    uint32_t what) {
    pthread_once(&g_once, init_logs);
    pthread_mutex_lock(&g_lock);
    atomic_store(&g_limit, record_limit);
    atomic_store(&g_kept_count, 0);
    atomic_store(&g_dropped_count, 0);
    atomic_store(&g_source, source);
    g_log_count = 0;
    g_end_ns = 0;
    atomic_store(&g_session, ++g_last_session);
    pthread_mutex_unlock(&g_lock);
    take_log();  // the first is that of the thread that starts
    g_begin_ns = rondo__clock_now_ns();
    if (!rondo__hook_listen(&g_listener, what)) {
        rondo__collector_abandon();
        return RONDO_FAIL_AS("rondo_profile_start", STATE, "the hooks have a listener already");
    }
    return RONDO_STATUS_OK;
}

void rondo__collector_end_region(void) {
    if (g_end_ns == 0) {
        g_end_ns = rondo__clock_now_ns();
    }
}

// Afterwards no thread writes into a log. Returns how many there are.
static size_t close_logs(void) {
    rondo__collector_end_region();
    rondo__hook_unlisten();
    pthread_mutex_lock(&g_lock);
    atomic_store(&g_session, 0);
    const size_t count = g_log_count;
    for (size_t i = 0; i < count; ++i) {
        pthread_mutex_lock(&g_logs[i].lock);
        g_logs[i].session = 0;
        pthread_mutex_unlock(&g_logs[i].lock);
    }
    pthread_mutex_unlock(&g_lock);
    atomic_store(&g_source, NULL);
    return count;
}

static void clear_logs(size_t count) {
    for (size_t i = 0; i < count; ++i) {
        rondo__profile_log_clear(&g_logs[i]);
    }
}

rondo_status rondo__collector_stop(rondo__profile_store *out_store) {
    const size_t count = close_logs();
    const rondo_status status =
        rondo__profile_logs_merge(g_logs, count, g_begin_ns, g_end_ns, out_store);
    if (status == RONDO_STATUS_OK) {
        out_store->records.dropped_count = atomic_load(&g_dropped_count);
    }
    clear_logs(count);
    return status;
}

void rondo__collector_abandon(void) {
    clear_logs(close_logs());
}
