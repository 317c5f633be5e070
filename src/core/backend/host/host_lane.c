// backend/host/host_lane.c — waiting for a stream's progress.
//
// The worker publishes its position after each command. It also reads the smallest position that a
// thread sleeps for, and makes a system call only when it has passed that: a thousand small
// commands with a sleeper for the last one cost one wake, not a thousand.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_lane.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/thread_count.h"
#include "base/use_count.h"

enum {
    // A sleep and a wake cost a few microseconds, so waiting that long awake is never much worse
    // than sleeping at once. Longer would take the processor from the threads inside the ops.
    WAIT_SPIN_NS = 4000,
    // But where waits are shorter than a wake (tens of microseconds, if the processor idles), they
    // are waited for awake. Now and then a wait finds out whether they are.
    SHORT_WAIT_NS = 50000,
    WAITS_PER_TRIAL = 32,
    SPINS_PER_LOOK = 16,  // at the clock
};

rondo__host_lane *rondo__host_lane_create(void) {
    rondo__host_lane *lane = rondo__malloc_aligned(sizeof *lane, RONDO__CACHE_LINE_BYTES);
    if (lane == NULL) {
        return NULL;
    }
    atomic_init(&lane->completed, 0);
    atomic_init(&lane->wake_target, UINT64_MAX);
    atomic_init(&lane->wake_word, 0);
    atomic_init(&lane->wait_count, 0);
    atomic_init(&lane->is_short, false);
    atomic_init(&lane->reference_count, 1);
    atomic_init(&lane->failure.state, 0);
    pthread_mutex_init(&lane->lock, NULL);
    return lane;
}

rondo__host_lane *rondo__host_lane_retain(rondo__host_lane *lane) {
    rondo__reference_take(&lane->reference_count);
    return lane;
}

void rondo__host_lane_release(rondo__host_lane *lane) {
    if (lane == NULL || !rondo__reference_drop(&lane->reference_count)) {
        return;
    }
    pthread_mutex_destroy(&lane->lock);
    rondo__free(lane);
}

void rondo__host_lane_wake(rondo__host_lane *lane) {
    pthread_mutex_lock(&lane->lock);
    atomic_store(&lane->wake_target, UINT64_MAX);
    atomic_fetch_add(&lane->wake_word, 1);
    pthread_mutex_unlock(&lane->lock);
    // All waiters wake; those with a later position go back to sleep.
    rondo__futex_wake_all(&lane->wake_word);
}

// False when the lane has not passed `position` in time.
static bool spin_until(rondo__host_lane *lane, uint64_t position) {
    const bool was_short = atomic_load_explicit(&lane->is_short, memory_order_relaxed);
    const bool is_trial =
        atomic_fetch_add_explicit(&lane->wait_count, 1, memory_order_relaxed) % WAITS_PER_TRIAL ==
        0;
    const bool is_long = was_short || is_trial;
    const uint64_t limit = is_long ? SHORT_WAIT_NS : WAIT_SPIN_NS;
    const uint64_t start = rondo__clock_now_ns();
    bool has_passed = false;
    do {
        for (int i = 0; i < SPINS_PER_LOOK && !has_passed; ++i) {
            rondo__cpu_relax();
            has_passed = rondo__host_lane_has_passed(lane, position);
        }
    } while (!has_passed && rondo__clock_now_ns() - start < limit);
    if (is_long && has_passed != was_short) {
        atomic_store_explicit(&lane->is_short, has_passed, memory_order_relaxed);
    }
    return has_passed;
}

void rondo__host_lane_wait(rondo__host_lane *lane, uint64_t position) {
    if (rondo__host_lane_has_passed(lane, position) ||
        (rondo__host_get_processor_count() > 1 && spin_until(lane, position))) {
        return;
    }
    while (!rondo__host_lane_has_passed(lane, position)) {
        pthread_mutex_lock(&lane->lock);
        if (position < atomic_load(&lane->wake_target)) {
            atomic_store(&lane->wake_target, position);
        }
        unsigned word = atomic_load(&lane->wake_word);
        pthread_mutex_unlock(&lane->lock);
        if (atomic_load(&lane->completed) >= position) {
            return;  // the target stays behind and costs one needless wake
        }
        rondo__futex_wait(&lane->wake_word, word);
    }
}

rondo_status rondo__host_lane_wait_outside(rondo__host_lane *lane, uint64_t position) {
    if (rondo__failure_is_inside(&lane->failure) && !rondo__host_lane_has_passed(lane, position)) {
        return RONDO_FAIL(STATE,
                          "a host function waits for its own stream, which goes on when the "
                          "function has returned; wait outside of it");
    }
    rondo__host_lane_wait(lane, position);
    return RONDO_STATUS_OK;
}
