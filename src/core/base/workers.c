// base/workers.c — see workers.h.
//
// A loop that is under way stands on a board, one of a few. Its chunks are divided into runs of
// neighbours: the owner begins with the first run, a helper with the run of its number, and a
// thread that has finished its run takes chunks that others have left. So a thread mostly does the
// same part of one op after another, and finds its data in its own cache.
//
//   owner    write the board, is_open = true, signal += 1, wake sleepers take chunks until there
//            are none is_open = false, wait until no helper is inside
//   helper   inside += 1, look at is_open: true: take chunks, until there are none; inside -= 1
//
// All of these are sequentially consistent: either the helper sees that the board is closed, or the
// owner sees the helper. So a board is written only while no helper reads it.
//
// Helpers spin for a while before they sleep, since the next op follows within microseconds. How
// long adapts: a spin that met work doubles the next one, one in vain halves it; time in which the
// processor ran another thread does not count. After two milliseconds helpers offer their processor
// to other programs, between two loops. Otherwise the scheduler would take it a little later,
// perhaps inside a chunk, and the owner would wait until the helper runs again. A helper that
// offered it at each short wait would be away for milliseconds each time and help little.
//
// Turned down: OpenMP. Each thread that runs ops has a team of its own, so K networks at once have
// K times as many threads as they should; every region waits for each of its threads, also for one
// that sleeps or has lost its processor; and libgomp cannot be told how long to spin.
// SPDX-License-Identifier: Apache-2.0

#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"
#include "base/use_count.h"

enum {
    BOARD_COUNT = 16,  // loops at once; further ones are not shared
    LANE_MAX = 32,
    HELPER_MAX = 255,
    PLACES_MAX = HELPER_MAX + 1,
    CHUNKS_PER_THREAD = 4,
    SPINS_PER_LOOK = 16,  // at the clock
    SPIN_NS_MIN = 5000,
    SPIN_NS_MAX = 200000,
    GAP_NS = 20000,           // between two looks: the processor ran another thread
    TURN_NS = 2000000,        // of a helper; then it offers its processor to others
    POLITE_AFTER_NS = 20000,  // from then on a waiting owner does so, too
    OWNER_SPIN_NS = 50000,
    PATIENCE_NS = 2000000,  // a thread that waited longer is not overtaken any more
};

typedef struct lane {
    _Alignas(RONDO__CACHE_LINE_BYTES) _Atomic(int64_t) next;  // chunk
    int64_t end;
} lane;

typedef struct board {
    _Alignas(RONDO__CACHE_LINE_BYTES) atomic_bool is_taken;
    atomic_bool is_open;
    atomic_int joined;
    atomic_bool is_owner_asleep;
    atomic_int helper_limit;
    // Written by the owner while no helper is inside.
    int32_t lane_count;
    int64_t count;
    int64_t chunk_count;
    rondo__workers_work work;
    void *data;
    _Alignas(RONDO__CACHE_LINE_BYTES) atomic_uint inside;  // helpers; a futex of the owner
    lane lanes[LANE_MAX];
} board;

// A thread that waits until it may enter; the struct is on its stack.
typedef struct waiter {
    struct waiter *next;
    atomic_uint is_woken;  // futex
} waiter;

typedef struct helper {
    rondo__workers *workers;
    int32_t number;     // from 1; the owner of a loop is 0
    uint64_t until_ns;  // when its turn ends; the helper's own
    pthread_t thread;
} helper;

struct rondo_workers {
    board boards[BOARD_COUNT];
    _Alignas(RONDO__CACHE_LINE_BYTES) atomic_uint signal;  // futex: a loop was put on a board
    atomic_int sleeper_count;                              // asleep on it, or about to be
    _Alignas(RONDO__CACHE_LINE_BYTES) atomic_int inside;   // threads: who entered, and helpers
    atomic_int waiter_count;
    atomic_bool is_reserved;  // the first waiter was overtaken for long enough
    atomic_bool is_ending;
    atomic_int reference_count;
    int32_t limit;
    bool is_strict;
    pid_t process;  // that has the helpers
    pthread_mutex_t lock;
    waiter *first_waiter;     // guarded by lock
    waiter *last_waiter;      // guarded by lock
    atomic_int helper_count;  // grows under lock
    helper helpers[HELPER_MAX];
};

static _Thread_local rondo__workers_place own_place;
static _Thread_local rondo__workers *home;
static _Thread_local rondo__workers *chosen;

// ---- places -----------------------------------------------------------------------------------

static bool take_room(rondo__workers *workers) {
    int inside = atomic_load(&workers->inside);
    while (inside < workers->limit) {
        if (atomic_compare_exchange_weak(&workers->inside, &inside, inside + 1)) {
            return true;
        }
    }
    return false;
}

static void wake_first_waiter(rondo__workers *workers) {
    pthread_mutex_lock(&workers->lock);
    waiter *first = workers->first_waiter;
    if (first != NULL) {
        atomic_store(&first->is_woken, 1);
        rondo__futex_wake_one(&first->is_woken);
    }
    pthread_mutex_unlock(&workers->lock);
}

static void give_room(rondo__workers *workers) {
    atomic_fetch_sub(&workers->inside, 1);
    if (atomic_load(&workers->waiter_count) > 0) {
        wake_first_waiter(workers);
    }
}

static bool is_first(rondo__workers *workers, const waiter *self) {
    pthread_mutex_lock(&workers->lock);
    const bool is = workers->first_waiter == self;
    pthread_mutex_unlock(&workers->lock);
    return is;
}

static void join_queue(rondo__workers *workers, waiter *self) {
    pthread_mutex_lock(&workers->lock);
    if (workers->last_waiter != NULL) {
        workers->last_waiter->next = self;
    } else {
        workers->first_waiter = self;
    }
    workers->last_waiter = self;
    pthread_mutex_unlock(&workers->lock);
    atomic_fetch_add(&workers->waiter_count, 1);
}

// Of the first. The next one may find room, too.
static void leave_queue(rondo__workers *workers, const waiter *self) {
    pthread_mutex_lock(&workers->lock);
    workers->first_waiter = self->next;
    if (workers->first_waiter == NULL) {
        workers->last_waiter = NULL;
    }
    pthread_mutex_unlock(&workers->lock);
    atomic_store(&workers->is_reserved, false);
    if (atomic_fetch_sub(&workers->waiter_count, 1) > 1 &&
        atomic_load(&workers->inside) < workers->limit) {
        wake_first_waiter(workers);
    }
}

// In the order of asking, but a thread that comes at the right moment may overtake: the thread that
// leaves is often back at once, long before a sleeper has woken, and its data are in the cache. A
// thread that was overtaken for PATIENCE_NS gets the next free place.
static void wait_for_room(rondo__workers *workers) {
    waiter self = {0};
    const uint64_t start = rondo__clock_now_ns();
    join_queue(workers, &self);
    while (!is_first(workers, &self) || !take_room(workers)) {
        if (rondo__clock_now_ns() - start > PATIENCE_NS) {
            atomic_store(&workers->is_reserved, true);
        }
        rondo__futex_wait(&self.is_woken, 0);
        atomic_store(&self.is_woken, 0);
    }
    leave_queue(workers, &self);
}

static void come_in(rondo__workers *workers) {
    if (!workers->is_strict) {
        atomic_fetch_add(&workers->inside, 1);
    } else if (atomic_load(&workers->is_reserved) || !take_room(workers)) {
        wait_for_room(workers);
    }
}

rondo__workers_place rondo__workers_enter(rondo__workers_place place) {
    const rondo__workers_place former = own_place;
    if (place.workers != NULL && place.workers != former.workers) {
        come_in(place.workers);
    }
    own_place = place;
    return former;
}

void rondo__workers_leave(rondo__workers_place former) {
    rondo__workers *workers = own_place.workers;
    own_place = former;
    if (workers != NULL && workers != former.workers) {
        give_room(workers);
    }
}

void rondo__workers_set_home(rondo__workers *workers) {
    home = workers;
}

rondo__workers *rondo__workers_choose(rondo__workers *workers) {
    rondo__workers *former = chosen;
    chosen = workers;
    return former;
}

rondo__workers *rondo__workers_get_chosen(void) {
    return chosen;
}

// ---- chunks -----------------------------------------------------------------------------------

static void do_chunk(const board *b, int64_t chunk) {
    // Runs with one element more are spread over all threads.
    const int64_t whole = b->count / b->chunk_count, rest = b->count % b->chunk_count;
    const int64_t first = chunk * whole + chunk * rest / b->chunk_count;
    const int64_t end = (chunk + 1) * whole + (chunk + 1) * rest / b->chunk_count;
    b->work(b->data, first, end);
}

static bool may_stay(rondo__workers *workers) {
    return atomic_load_explicit(&workers->inside, memory_order_relaxed) <= workers->limit &&
           atomic_load_explicit(&workers->waiter_count, memory_order_relaxed) == 0;
}

// Takes chunks of all runs, beginning with run `start`. A helper leaves when others want its room,
// and when its turn ends, at `until_ns`; an owner, with 0, stays. Returns whether chunks may be
// left.
static bool do_chunks(rondo__workers *workers, board *b, int32_t start, uint64_t until_ns) {
    for (int32_t i = 0; i < b->lane_count; ++i) {
        lane *l = &b->lanes[(start + i) % b->lane_count];
        while (atomic_load_explicit(&l->next, memory_order_relaxed) < l->end) {
            const int64_t chunk = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
            if (chunk < l->end) {
                do_chunk(b, chunk);
            }
            if (until_ns != 0 && (!may_stay(workers) || rondo__clock_now_ns() > until_ns)) {
                return true;
            }
        }
    }
    return false;
}

// ---- helpers ----------------------------------------------------------------------------------

static void leave_board(board *b) {
    if (atomic_fetch_sub(&b->inside, 1) == 1 && atomic_load(&b->is_owner_asleep)) {
        rondo__futex_wake_one(&b->inside);
    }
}

// Whether there was something to do there.
static bool help_at(helper *self, board *b) {
    if (!atomic_load(&b->is_open) || atomic_load(&b->joined) >= atomic_load(&b->helper_limit)) {
        return false;
    }
    bool has_helped = false;
    atomic_fetch_add(&b->inside, 1);
    if (atomic_load(&b->is_open) &&
        atomic_fetch_add(&b->joined, 1) < atomic_load(&b->helper_limit) &&
        take_room(self->workers)) {
        own_place = (rondo__workers_place){self->workers, atomic_load(&b->helper_limit) + 1};
        if (do_chunks(self->workers, b, self->number % b->lane_count, self->until_ns)) {
            atomic_fetch_sub(&b->joined, 1);  // it may come back
        }
        own_place = (rondo__workers_place){0};
        give_room(self->workers);
        has_helped = true;
    }
    leave_board(b);
    return has_helped;
}

static bool help_anyone(helper *self, int32_t *last) {
    rondo__workers *workers = self->workers;
    for (int32_t i = 0; i < BOARD_COUNT && atomic_load(&workers->inside) < workers->limit; ++i) {
        const int32_t at = (*last + i) % BOARD_COUNT;
        if (help_at(self, &workers->boards[at])) {
            *last = at;
            return true;
        }
    }
    return false;
}

// Waits until the signal has moved on from `seen`. Time in which the processor ran another thread
// does not count.
static void wait_for_signal(rondo__workers *workers, unsigned seen, uint64_t *spin_ns) {
    uint64_t last = rondo__clock_now_ns(), spun_ns = 0;
    while (spun_ns < *spin_ns && may_stay(workers)) {
        for (int i = 0; i < SPINS_PER_LOOK; ++i) {
            rondo__cpu_relax();
            if (atomic_load_explicit(&workers->signal, memory_order_acquire) != seen) {
                *spin_ns = *spin_ns * 2 < SPIN_NS_MAX ? *spin_ns * 2 : SPIN_NS_MAX;
                return;
            }
        }
        const uint64_t now = rondo__clock_now_ns();
        spun_ns += now - last < GAP_NS ? now - last : 0;
        last = now;
    }
    *spin_ns = *spin_ns / 2 > SPIN_NS_MIN ? *spin_ns / 2 : SPIN_NS_MIN;
    atomic_fetch_add(&workers->sleeper_count, 1);
    if (atomic_load(&workers->signal) == seen) {
        rondo__futex_wait(&workers->signal, seen);
    }
    atomic_fetch_sub(&workers->sleeper_count, 1);
}

static void *run_helper(void *argument) {
    helper *self = argument;
    int32_t last = 0;
    uint64_t spin_ns = SPIN_NS_MAX;
    self->until_ns = rondo__clock_now_ns() + TURN_NS;
    for (;;) {
        const unsigned seen = atomic_load(&self->workers->signal);
        if (atomic_load(&self->workers->is_ending)) {
            return NULL;
        }
        if (!help_anyone(self, &last)) {
            wait_for_signal(self->workers, seen, &spin_ns);
        }
        if (rondo__clock_now_ns() > self->until_ns) {
            (void)sched_yield();
            self->until_ns = rondo__clock_now_ns() + TURN_NS;
        }
    }
}

// Starts helpers until there are `wanted`. Fewer are slower, not wrong.
static void start_helpers(rondo__workers *workers, int32_t wanted) {
    rondo_error saved;
    rondo__error_save(&saved);
    pthread_mutex_lock(&workers->lock);
    int32_t count = atomic_load(&workers->helper_count);
    while (count < wanted) {
        char name[16];
        helper *next = &workers->helpers[count];
        *next = (helper){.workers = workers, .number = count + 1};
        snprintf(name, sizeof name, "rondo-h%u", (unsigned)count % 1000u);
        if (rondo__thread_start(name, run_helper, next, &next->thread) != RONDO_STATUS_OK) {
            RONDO_LOG_WARN_F("ops run on %d threads only: %s", (int)count + 1,
                             rondo_error_get_last()->message);
            break;
        }
        atomic_store(&workers->helper_count, ++count);
    }
    pthread_mutex_unlock(&workers->lock);
    rondo__error_restore(&saved);
}

// ---- the owner --------------------------------------------------------------------------------

static board *take_board(rondo__workers *workers) {
    for (int32_t i = 0; i < BOARD_COUNT; ++i) {
        bool is_taken = false;
        if (!atomic_load_explicit(&workers->boards[i].is_taken, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&workers->boards[i].is_taken, &is_taken, true)) {
            return &workers->boards[i];
        }
    }
    return NULL;
}

static void deal_out(board *b, int32_t thread_count) {
    b->lane_count = thread_count < LANE_MAX ? thread_count : LANE_MAX;
    for (int32_t i = 0; i < b->lane_count; ++i) {
        atomic_store_explicit(&b->lanes[i].next, b->chunk_count * i / b->lane_count,
                              memory_order_relaxed);
        b->lanes[i].end = b->chunk_count * (i + 1) / b->lane_count;
    }
}

static void call_helpers(rondo__workers *workers, int32_t wanted) {
    atomic_fetch_add(&workers->signal, 1);
    const int room = workers->limit - atomic_load(&workers->inside);
    if (room > 0 && atomic_load(&workers->sleeper_count) > 0) {
        rondo__futex_wake(&workers->signal, room < wanted ? room : wanted);
    }
}

static void close_board(board *b) {
    atomic_store(&b->is_open, false);
    const uint64_t start = rondo__clock_now_ns();
    for (int i = 1; atomic_load(&b->inside) != 0; ++i) {
        rondo__cpu_relax();
        if (i % SPINS_PER_LOOK != 0 || rondo__clock_now_ns() - start < POLITE_AFTER_NS) {
            continue;
        }
        if (rondo__clock_now_ns() - start < OWNER_SPIN_NS) {
            (void)sched_yield();
            continue;
        }
        atomic_store(&b->is_owner_asleep, true);
        for (unsigned now = atomic_load(&b->inside); now != 0; now = atomic_load(&b->inside)) {
            rondo__futex_wait(&b->inside, now);
        }
        atomic_store(&b->is_owner_asleep, false);
    }
    atomic_store(&b->is_taken, false);
}

// The loop on a board; false: there is none left.
static bool share(rondo__workers *workers, int64_t threads, int64_t count, int64_t grains,
                  rondo__workers_work work, void *data) {
    board *b = take_board(workers);
    if (b == NULL) {
        return false;
    }
    const int32_t helpers = (int32_t)(threads - 1 < HELPER_MAX ? threads - 1 : HELPER_MAX);
    if (atomic_load_explicit(&workers->helper_count, memory_order_relaxed) < helpers) {
        start_helpers(workers, helpers);
    }
    atomic_store(&b->helper_limit, helpers);
    b->count = count;
    b->chunk_count = grains < threads * CHUNKS_PER_THREAD ? grains : threads * CHUNKS_PER_THREAD;
    b->work = work;
    b->data = data;
    deal_out(b, (int32_t)threads);
    atomic_store(&b->joined, 0);
    atomic_store(&b->is_open, true);
    call_helpers(workers, helpers);
    (void)do_chunks(workers, b, 0, 0);
    close_board(b);
    return true;
}

void rondo__workers_loop(int64_t count, int64_t grain, rondo__workers_work work, void *data) {
    const int64_t grains = grain > 1 ? count / grain : count;
    const bool is_outside = own_place.workers == NULL && home != NULL && grains > 1;
    const rondo__workers_place at_home = {home, rondo__host_get_thread_count()};
    const rondo__workers_place former = is_outside ? rondo__workers_enter(at_home) : own_place;
    rondo__workers *workers = own_place.workers;
    int64_t threads = own_place.thread_count < grains ? own_place.thread_count : grains;
    threads = workers == NULL ? 1 : threads < workers->limit ? threads : workers->limit;
    const bool is_shared = threads > 1 && share(workers, threads, count, grains, work, data);
    if (!is_shared && count > 0) {
        work(data, 0, count);
    }
    if (is_outside) {
        rondo__workers_leave(former);
    }
}

// ---- life -------------------------------------------------------------------------------------

rondo__workers *rondo__workers_create(int32_t limit, bool is_strict) {
    rondo__workers *workers = rondo__calloc_lines(sizeof *workers);
    if (workers == NULL) {
        return NULL;
    }
    workers->limit = limit > 1 ? limit : 1;
    workers->is_strict = is_strict;
    workers->process = getpid();
    atomic_init(&workers->reference_count, 1);
    (void)pthread_mutex_init(&workers->lock, NULL);
    return workers;
}

rondo__workers *rondo__workers_retain(rondo__workers *workers) {
    rondo__reference_take(&workers->reference_count);
    return workers;
}

static void end_helpers(rondo__workers *workers) {
    atomic_store(&workers->is_ending, true);
    atomic_fetch_add(&workers->signal, 1);
    rondo__futex_wake_all(&workers->signal);
    for (int32_t i = 0; i < atomic_load(&workers->helper_count); ++i) {
        (void)pthread_join(workers->helpers[i].thread, NULL);
    }
}

void rondo__workers_release(rondo__workers *workers) {
    if (workers == NULL || !rondo__reference_drop(&workers->reference_count)) {
        return;
    }
    if (workers->process == getpid()) {
        end_helpers(workers);
    }
    (void)pthread_mutex_destroy(&workers->lock);
    rondo__free(workers);
}

int32_t rondo__workers_get_limit(const rondo__workers *workers) {
    return workers->limit;
}

int32_t rondo__workers_count_helpers(rondo__workers *workers) {
    return atomic_load(&workers->helper_count);
}

// ---- of the program ---------------------------------------------------------------------------

rondo_status rondo_workers_create(uint32_t count, rondo_workers **out_workers) {
    if (out_workers == NULL) {
        return RONDO_FAIL(INVALID, "out_workers is NULL");
    }
    *out_workers = NULL;
    if (count < 1 || count > PLACES_MAX) {
        return RONDO_FAIL(INVALID, "count is %u; it is 1 to %d", (unsigned)count, PLACES_MAX);
    }
    rondo_workers *workers = rondo__workers_create((int32_t)count, true);
    if (workers == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_workers = workers;
    return RONDO_STATUS_OK;
}

void rondo_workers_retain(rondo_workers *workers) {
    if (workers != NULL) {
        (void)rondo__workers_retain(workers);
    }
}

void rondo_workers_release(rondo_workers *workers) {
    rondo__workers_release(workers);
}
