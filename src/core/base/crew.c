// base/crew.c — see crew.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/crew.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/thread_count.h"
#include "base/workers.h"

enum {
    THREADS_MAX = 16,  // with the caller; memory is not read faster by more
    RANGE_BYTES = 256 << 10,
    SHARED_BYTES_MIN = 1 << 20,  // less is done before the others are awake
};

// Of this thread.
static _Thread_local struct {
    size_t depth;  // of scopes
    bool was_tried;
    rondo__workers_place crew;
} scope;

// Where there is no memory or no thread for it, there is no crew, and that is no failure.
static rondo__workers_place make_crew(void) {
    const int32_t limit = rondo__host_get_thread_count();
    const int32_t most = limit < THREADS_MAX ? limit : THREADS_MAX;
    if (most < 2) {
        return (rondo__workers_place){0};
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__workers *workers = rondo__workers_create(most, false);
    rondo__error_restore(&saved);
    RONDO_LOG_DEBUG_F("a crew of %d threads", workers != NULL ? (int)most : 1);
    return (rondo__workers_place){workers, most};
}

void rondo__crew_enter(void) {
    scope.depth += 1;
}

void rondo__crew_leave(void) {
    scope.depth -= 1;
    if (scope.depth > 0) {
        return;
    }
    rondo__workers_release(scope.crew.workers);
    scope.crew.workers = NULL;
    scope.was_tried = false;
}

// ---- work -------------------------------------------------------------------------------------

typedef struct piece {
    void (*work)(void *data, size_t first, size_t last);
    void *data;
} piece;

static void do_items(void *data, int64_t first, int64_t end) {
    const piece *p = data;
    p->work(p->data, (size_t)first, (size_t)end);
}

void rondo__crew_run(size_t count, size_t item_bytes,
                     void (*work)(void *data, size_t first, size_t last), void *data) {
    const size_t range = item_bytes < RANGE_BYTES ? RANGE_BYTES / (item_bytes + 1) + 1 : 1;
    const bool is_large = count > range && count > SHARED_BYTES_MIN / (item_bytes + 1);
    if (is_large && scope.depth > 0 && !scope.was_tried) {
        scope.was_tried = true;
        scope.crew = make_crew();
    }
    if (is_large && scope.crew.workers != NULL) {
        piece p = {work, data};
        const rondo__workers_place former = rondo__workers_enter(scope.crew);
        rondo__workers_loop((int64_t)count, (int64_t)range, do_items, &p);
        rondo__workers_leave(former);
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
