// backend/host/host_team.c — running the branches of a graph on several threads.
//
// A job is one run of a program with parallel branches. Its owner (the stream's worker) and any
// helper that is free take segments that are ready from the job's queue:
//
//      take a segment -> run it -> for each successor: one predecessor less; at none left it is
//      ready: the first such successor is run next by the same thread, the others are queued
//
// so a chain of segments stays on one thread, with its data in that core's cache, and only real
// forks pass through the queue. The queue is an array with a place for every segment, since each
// becomes ready once; a push takes the next place with one atomic addition.
//
// Helpers belong to the device: one per processor beyond the first. They sleep when no job has
// anything ready, after spinning a while, as a replay is often followed by the next. A replay
// rouses them when it is put on a stream that has nothing else to do: so they wake while the
// stream's worker does, not after it, and short branches still gain. Several jobs
// (of different graphs on different streams) may be under way; helpers go where something is ready.
//
// A helper may touch a job only while it is counted in job->helper_count, which it enters under the
// team's lock while the job is listed. The owner takes the job off the list, then waits for the
// count to fall to zero: from then on no other thread can reach the job.
// SPDX-License-Identifier: Apache-2.0

#include <sched.h>
#include <stdio.h>

#include "backend/failure.h"
#include "backend/host/host_team.h"
#include "backend/host/host_timing.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"

_Thread_local uint64_t rondo__host_executed_count;

enum {
    HELPER_COUNT_MAX = 15,
    SPIN_NS = 30000,      // awake between two pieces of work
    SPINS_PER_LOOK = 16,  // at the clock
};
#define NO_SEGMENT UINT32_MAX

struct rondo__host_team {
    pthread_mutex_t lock;
    rondo__host_job *jobs;     // guarded by lock
    int32_t thread_count;      // guarded by lock
    bool is_started;           // guarded by lock
    atomic_bool is_stopping;   // set under lock
    atomic_uint signal;        // futex of idle helpers; changes when something is queued
    atomic_int sleeper_count;  // helpers asleep on `signal` or about to be
    pthread_t threads[HELPER_COUNT_MAX];
};

// ---- the queue of a job -----------------------------------------------------------------------

static void push_segment(rondo__host_job *job, uint32_t segment) {
    unsigned place = atomic_fetch_add_explicit(&job->pushed, 1, memory_order_relaxed);
    atomic_store(&job->ready[place], segment + 1);
}

static uint32_t pop_segment(rondo__host_job *job) {
    unsigned place = atomic_load_explicit(&job->popped, memory_order_relaxed);
    while (place < atomic_load_explicit(&job->pushed, memory_order_acquire)) {
        if (atomic_compare_exchange_weak_explicit(&job->popped, &place, place + 1,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
            unsigned value;
            // The pusher has taken the place and is about to write it.
            while ((value = atomic_load_explicit(&job->ready[place], memory_order_acquire)) == 0) {
                rondo__cpu_relax();
            }
            return value - 1;
        }
    }
    return NO_SEGMENT;
}

static bool has_ready(rondo__host_job *job) {
    return atomic_load(&job->popped) < atomic_load(&job->pushed);
}

static void wake_owner(rondo__host_job *job) {
    atomic_fetch_add(&job->signal, 1);
    if (atomic_load(&job->is_owner_asleep)) {
        rondo__futex_wake_one(&job->signal);
    }
}

static void wake_helpers(rondo__host_team *team, uint32_t count) {
    atomic_fetch_add(&team->signal, 1);
    if (atomic_load(&team->sleeper_count) > 0) {
        rondo__futex_wake(&team->signal, (int)count);
    }
}

// ---- running segments -------------------------------------------------------------------------

// Runs a segment and then, one after the other, successors that became ready by it.
static void run_chain(rondo__host_team *team, rondo__host_job *job, uint32_t segment_index) {
    const rondo__host_program *program = job->program;
    while (segment_index != NO_SEGMENT) {
        const rondo__host_segment *segment = &program->segments[segment_index];
        const rondo__host_instruction *instruction = program->instructions + segment->first;
        const bool is_timed = rondo__host_is_timed(program);
        if (is_timed) {
            rondo__host_run_timed(program, segment->first, segment->count);
        }
        for (uint32_t i = 0; i < segment->count && !is_timed; ++i) {
            instruction[i].run(instruction[i].arguments);
        }
        rondo__host_executed_count += segment->count;
        segment_index = NO_SEGMENT;
        for (uint32_t edge = 0; edge < segment->successor_count; ++edge) {
            uint32_t successor = program->successors[segment->first_successor + edge];
            if (atomic_fetch_sub_explicit(&job->pending[successor], 1, memory_order_acq_rel) != 1) {
                continue;
            }
            if (segment_index == NO_SEGMENT) {
                segment_index = successor;
            } else {
                push_segment(job, successor);
                wake_helpers(team, 1);
                wake_owner(job);
            }
        }
        if (atomic_fetch_sub(&job->remaining, 1) == 1) {
            wake_owner(job);
        }
    }
}

// Runs what is ready until, for a while, nothing is.
static void help(rondo__host_team *team, rondo__host_job *job) {
    uint64_t idle_since = 0;
    rondo__failure_slot *former = rondo__failure_enter(job->failure);
    while (atomic_load_explicit(&job->remaining, memory_order_acquire) != 0) {
        uint32_t segment = pop_segment(job);
        if (segment != NO_SEGMENT) {
            run_chain(team, job, segment);
            idle_since = 0;
            continue;
        }
        for (int i = 0; i < SPINS_PER_LOOK; ++i) {
            rondo__cpu_relax();
        }
        uint64_t now = rondo__clock_now_ns();
        if (idle_since == 0) {
            idle_since = now;
        } else if (now - idle_since > SPIN_NS) {
            break;
        }
    }
    rondo__failure_enter(former);
}

// ---- helpers ----------------------------------------------------------------------------------

// A job with something ready, entered; NULL when there is none.
static rondo__host_job *enter_job(rondo__host_team *team) {
    pthread_mutex_lock(&team->lock);
    rondo__host_job *job = team->jobs;
    while (job != NULL && !has_ready(job)) {
        job = job->next;
    }
    if (job != NULL) {
        atomic_fetch_add(&job->helper_count, 1);
    }
    pthread_mutex_unlock(&team->lock);
    return job;
}

// Spins, then sleeps, until the signal has moved on from `seen`.
static void wait_for_signal(rondo__host_team *team, unsigned seen) {
    uint64_t start = rondo__clock_now_ns();
    do {
        for (int i = 0; i < SPINS_PER_LOOK; ++i) {
            rondo__cpu_relax();
            if (atomic_load_explicit(&team->signal, memory_order_acquire) != seen) {
                return;
            }
        }
    } while (rondo__clock_now_ns() - start < SPIN_NS);
    atomic_fetch_add(&team->sleeper_count, 1);
    if (atomic_load(&team->signal) == seen) {
        rondo__futex_wait(&team->signal, seen);
    }
    atomic_fetch_sub(&team->sleeper_count, 1);
}

static void *run_helper(void *argument) {
    rondo__host_team *team = argument;
    for (;;) {
        unsigned seen = atomic_load(&team->signal);
        if (atomic_load(&team->is_stopping)) {
            return NULL;
        }
        rondo__host_job *job = enter_job(team);
        if (job == NULL) {
            wait_for_signal(team, seen);
            continue;
        }
        uint64_t executed = rondo__host_executed_count;
        rondo__host_timing_now = job->timing;
        help(team, job);
        rondo__host_timing_now = NULL;
        executed = rondo__host_executed_count - executed;
        atomic_fetch_add_explicit(&job->helped_count, executed, memory_order_relaxed);
        atomic_fetch_sub_explicit(&job->helper_count, 1, memory_order_release);
    }
}

// ---- the owner --------------------------------------------------------------------------------

static void reset_job(rondo__host_job *job) {
    const rondo__host_program *program = job->program;
    for (size_t i = 0; i < program->segment_count; ++i) {
        atomic_store_explicit(&job->pending[i], program->segments[i].predecessor_count,
                              memory_order_relaxed);
        atomic_store_explicit(&job->ready[i], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&job->pushed, 0, memory_order_relaxed);
    atomic_store_explicit(&job->popped, 0, memory_order_relaxed);
    atomic_store_explicit(&job->remaining, (unsigned)program->segment_count, memory_order_relaxed);
}

static void list_job(rondo__host_team *team, rondo__host_job *job) {
    pthread_mutex_lock(&team->lock);
    job->next = team->jobs;
    team->jobs = job;
    pthread_mutex_unlock(&team->lock);
}

static void unlist_job(rondo__host_team *team, rondo__host_job *job) {
    pthread_mutex_lock(&team->lock);
    rondo__host_job **link = &team->jobs;
    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
    pthread_mutex_unlock(&team->lock);
    // Helpers leave as soon as they see that nothing remains. They may have lost the processor.
    for (int i = 0; atomic_load_explicit(&job->helper_count, memory_order_acquire) != 0; ++i) {
        if (i < 1000) {
            rondo__cpu_relax();
        } else {
            sched_yield();
        }
    }
}

// Waits until something is ready or all is done.
static void wait_for_job(rondo__host_job *job) {
    uint64_t start = rondo__clock_now_ns();
    do {
        for (int i = 0; i < SPINS_PER_LOOK; ++i) {
            rondo__cpu_relax();
            if (atomic_load_explicit(&job->remaining, memory_order_acquire) == 0 ||
                has_ready(job)) {
                return;
            }
        }
    } while (rondo__clock_now_ns() - start < SPIN_NS);
    atomic_store(&job->is_owner_asleep, true);
    unsigned seen = atomic_load(&job->signal);
    if (atomic_load(&job->remaining) != 0 && !has_ready(job)) {
        rondo__futex_wait(&job->signal, seen);
    }
    atomic_store(&job->is_owner_asleep, false);
}

void rondo__host_team_rouse(rondo__host_team *team, const rondo__host_program *program) {
    wake_helpers(team, (uint32_t)program->width - 1);
}

void rondo__host_team_run(rondo__host_team *team, rondo__host_job *job) {
    const rondo__host_program *program = job->program;
    job->timing = rondo__host_timing_now;
    job->failure = rondo__failure_enter(NULL);
    rondo__failure_enter(job->failure);
    reset_job(job);
    uint32_t first = NO_SEGMENT;
    uint32_t queued_count = 0;
    for (size_t i = 0; i < program->segment_count; ++i) {
        if (program->segments[i].predecessor_count == 0) {
            if (first == NO_SEGMENT) {
                first = (uint32_t)i;
            } else {
                push_segment(job, (uint32_t)i);
                ++queued_count;
            }
        }
    }
    list_job(team, job);
    if (queued_count > 0) {
        wake_helpers(team, queued_count);
    }
    while (first != NO_SEGMENT ||
           atomic_load_explicit(&job->remaining, memory_order_acquire) != 0) {
        if (first != NO_SEGMENT) {
            run_chain(team, job, first);
        } else {
            wait_for_job(job);
        }
        first = pop_segment(job);
    }
    unlist_job(team, job);
    rondo__host_executed_count +=
        atomic_exchange_explicit(&job->helped_count, 0, memory_order_relaxed);
}

// ---- life -------------------------------------------------------------------------------------

rondo__host_team *rondo__host_team_create(void) {
    rondo__host_team *team = rondo__calloc(1, sizeof *team);
    if (team != NULL) {
        pthread_mutex_init(&team->lock, NULL);
    }
    return team;
}

void rondo__host_team_start(rondo__host_team *team) {
    pthread_mutex_lock(&team->lock);
    if (!team->is_started) {
        team->is_started = true;
        int32_t wanted = rondo__host_get_processor_count() - 1;
        wanted = wanted < HELPER_COUNT_MAX ? wanted : HELPER_COUNT_MAX;
        while (team->thread_count < wanted) {
            char name[16];
            snprintf(name, sizeof name, "rondo-h%u", (unsigned)team->thread_count % 100u);
            if (rondo__thread_start(name, run_helper, team, &team->threads[team->thread_count]) !=
                RONDO_STATUS_OK) {
                // Slower, not wrong: the owner runs what no helper takes.
                RONDO_LOG_WARN_F("branches run on %d threads only: %s", (int)team->thread_count + 1,
                                 rondo_error_get_last()->message);
                break;
            }
            ++team->thread_count;
        }
    }
    pthread_mutex_unlock(&team->lock);
}

void rondo__host_team_destroy(rondo__host_team *team) {
    if (team == NULL) {
        return;
    }
    atomic_store(&team->is_stopping, true);
    atomic_fetch_add(&team->signal, 1);
    rondo__futex_wake_all(&team->signal);
    for (int32_t i = 0; i < team->thread_count; ++i) {
        pthread_join(team->threads[i], NULL);
    }
    pthread_mutex_destroy(&team->lock);
    rondo__free(team);
}
