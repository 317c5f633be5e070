// base/crew.c — see crew.h.
//
// A piece of work is open for threads that wake while it lasts: each that joins is counted, takes
// range after range, and is counted off. The caller takes ranges, too; when none is left it closes
// the piece, so that who wakes late finds nothing, and waits until nobody is counted any more.
// SPDX-License-Identifier: Apache-2.0
#include "base/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"

enum {
    THREADS_MAX = 16,  // with the caller; memory is not read faster by more
    RANGE_BYTES = 256 << 10,
    SHARED_BYTES_MIN = 1 << 20,  // less is done before the others are awake
};

typedef struct crew {
    pthread_mutex_t lock;
    pthread_cond_t has_work;  // a piece was opened, or the crew is to end
    pthread_cond_t is_idle;   // nobody is counted
    uint64_t number;          // of the latest piece; guarded by lock
    bool is_open;             // guarded by lock
    bool is_ending;           // guarded by lock
    size_t joined_count;      // guarded by lock
    // The latest piece; constant while it is open or somebody is counted, but for `next`.
    void (*work)(void *data, size_t first, size_t last);
    void *data;
    size_t count, range;
    atomic_size_t next;  // the first item that nobody has taken
    size_t thread_count;
    pthread_t threads[THREADS_MAX - 1];
} crew;

// Of this thread.
static _Thread_local struct {
    size_t depth;  // of scopes
    bool was_tried;
    crew *crew;
} scope;

static void take_ranges(crew *c) {
    for (;;) {
        const size_t first = atomic_fetch_add(&c->next, c->range);
        if (first >= c->count) {
            return;
        }
        c->work(c->data, first, c->count - first < c->range ? c->count : first + c->range);
    }
}

static void *serve(void *data) {
    crew *c = data;
    uint64_t seen = 0;
    pthread_mutex_lock(&c->lock);
    while (!c->is_ending) {
        if (!c->is_open || c->number == seen) {
            (void)pthread_cond_wait(&c->has_work, &c->lock);
            continue;
        }
        seen = c->number;
        c->joined_count += 1;
        pthread_mutex_unlock(&c->lock);
        take_ranges(c);
        pthread_mutex_lock(&c->lock);
        c->joined_count -= 1;
        if (c->joined_count == 0) {
            (void)pthread_cond_signal(&c->is_idle);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

// ---- scopes -----------------------------------------------------------------------------------

// Where there is no memory or no thread for it, there is no crew, and that is no failure.
static crew *make_crew(void) {
    const int32_t limit = rondo__host_get_thread_count();
    const size_t most = limit < THREADS_MAX ? (size_t)limit : THREADS_MAX;
    if (most < 2) {
        return NULL;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    crew *made = rondo__calloc(1, sizeof *made);
    if (made != NULL) {
        (void)pthread_mutex_init(&made->lock, NULL);
        (void)pthread_cond_init(&made->has_work, NULL);
        (void)pthread_cond_init(&made->is_idle, NULL);
        while (made->thread_count + 1 < most &&
               rondo__thread_start("rondo-crew", serve, made, &made->threads[made->thread_count]) ==
                   RONDO_STATUS_OK) {
            made->thread_count += 1;
        }
        RONDO_LOG_DEBUG_F("a crew of %zu threads", made->thread_count + 1);
    }
    rondo__error_restore(&saved);
    return made;
}

static void destroy_crew(crew *c) {
    pthread_mutex_lock(&c->lock);
    c->is_ending = true;
    (void)pthread_cond_broadcast(&c->has_work);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->thread_count; ++i) {
        (void)pthread_join(c->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&c->has_work);
    (void)pthread_cond_destroy(&c->is_idle);
    (void)pthread_mutex_destroy(&c->lock);
    rondo__free(c);
}

void rondo__crew_enter(void) {
    scope.depth += 1;
}

void rondo__crew_leave(void) {
    scope.depth -= 1;
    if (scope.depth > 0) {
        return;
    }
    if (scope.crew != NULL) {
        destroy_crew(scope.crew);
    }
    scope.crew = NULL;
    scope.was_tried = false;
}

// ---- work -------------------------------------------------------------------------------------

static void share(crew *c, size_t count, size_t range,
                  void (*work)(void *data, size_t first, size_t last), void *data) {
    pthread_mutex_lock(&c->lock);
    c->work = work;
    c->data = data;
    c->count = count;
    c->range = range;
    atomic_store(&c->next, 0);
    c->number += 1;
    c->is_open = true;
    (void)pthread_cond_broadcast(&c->has_work);
    pthread_mutex_unlock(&c->lock);
    take_ranges(c);
    pthread_mutex_lock(&c->lock);
    c->is_open = false;
    while (c->joined_count > 0) {
        (void)pthread_cond_wait(&c->is_idle, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

void rondo__crew_run(size_t count, size_t item_bytes,
                     void (*work)(void *data, size_t first, size_t last), void *data) {
    const size_t range = item_bytes < RANGE_BYTES ? RANGE_BYTES / (item_bytes + 1) + 1 : 1;
    const bool is_large = count > range && count > SHARED_BYTES_MIN / (item_bytes + 1);
    if (is_large && scope.depth > 0 && !scope.was_tried) {
        scope.was_tried = true;
        scope.crew = make_crew();
    }
    if (is_large && scope.crew != NULL) {
        share(scope.crew, count, range, work, data);
    } else if (count > 0) {
        work(data, 0, count);
    }
}

// ---- copies -----------------------------------------------------------------------------------

typedef struct copy {
    char *to;
    const char *from;
    size_t bytes;
} copy;

enum { COPIED_BYTES = 64 };  // an item

static void copy_items(void *data, size_t first, size_t last) {
    const copy *c = data;
    const size_t begin = first * COPIED_BYTES;
    const size_t end = last * COPIED_BYTES < c->bytes ? last * COPIED_BYTES : c->bytes;
    memcpy(c->to + begin, c->from + begin, end - begin);
}

void rondo__crew_copy(void *to, const void *from, size_t bytes) {
    copy c = {.to = to, .from = from, .bytes = bytes};
    rondo__crew_run((bytes + COPIED_BYTES - 1) / COPIED_BYTES, (size_t)2 * COPIED_BYTES, copy_items,
                    &c);
}
