// backend/host/host_patience.c — see the header.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // sched_getaffinity
#endif

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/host/futex.h"
#include "backend/host/host_patience.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"

enum {
    PROCESSORS_MAX = 1024,
    TEXT_BYTES = 256 * 1024,  // of /proc/stat; a line of a processor has less than 256
    LOOK_NS = 50 * 1000 * 1000,
    MEASURE_NS = 250 * 1000 * 1000,  // between two readings of /proc/stat, which counts in 10 ms
    FORGET_NS = 2000 * 1000 * 1000,  // readings that lie further apart say nothing about now
};

// Of one processor, and a second.
static const double shared_from = 0.3, shared_to = 0.1;
static const double displaced_from = 20.0;

// ---- judging ----------------------------------------------------------------------------------

bool rondo__host_load_is_shared(const rondo__host_load *load, bool was_shared) {
    const double others = (load->busy - load->own) / load->seconds;
    if (was_shared) {
        return others > shared_to;
    }
    return others > shared_from && load->displaced > displaced_from * load->seconds;
}

// The seconds of a line "cpu3 user nice system idle iowait irq softirq steal ...".
static double read_line(const char *numbers, double ticks_per_second) {
    enum { IDLE = 3, IO_WAIT = 4, COUNT = 8 };
    double ticks = 0.0;
    char *end = NULL;
    for (int i = 0; i < COUNT; ++i) {
        const double value = strtod(numbers, &end);
        if (end == numbers) {
            break;
        }
        ticks += i == IDLE || i == IO_WAIT ? 0.0 : value;
        numbers = end;
    }
    return ticks / ticks_per_second;
}

bool rondo__host_load_read(const char *text, const bool *is_ours, int32_t count,
                           double ticks_per_second, double *out_busy) {
    bool was_found = false;
    *out_busy = 0.0;
    while (strncmp(text, "cpu", 3) == 0) {
        char *end = NULL;
        const long number = strtol(text + 3, &end, 10);
        // The first line is of all processors and has no number.
        if (end != text + 3 && text[3] != ' ' && number >= 0 && number < count && is_ours[number]) {
            *out_busy += read_line(end, ticks_per_second);
            was_found = true;
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return was_found;
}

// ---- looking ----------------------------------------------------------------------------------

typedef struct reading {
    uint64_t at;
    double busy, own;
    double displaced;
} reading;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t g_next_look;
static reading g_looked;    // guarded by g_lock; without busy
static reading g_measured;  // guarded by g_lock; at 0: there is none
static bool g_is_shared;    // guarded by g_lock

static reading look_at_process(uint64_t now) {
    struct rusage usage;
    reading result = {.at = now};
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        result.own = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
        result.displaced = (double)usage.ru_nivcsw;
    }
    return result;
}

static bool look_at_machine(double *out_busy) {
    bool is_ours[PROCESSORS_MAX] = {false};
    cpu_set_t set;
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL) {
        return false;
    }
    bool was_read = false;
    char *text = rondo__malloc(TEXT_BYTES);
    if (text != NULL && sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int32_t i = 0; i < PROCESSORS_MAX && i < CPU_SETSIZE; ++i) {
            is_ours[i] = CPU_ISSET((size_t)i, &set) != 0;
        }
        text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
        was_read = rondo__host_load_read(text, is_ours, PROCESSORS_MAX,
                                         (double)sysconf(_SC_CLK_TCK), out_busy);
    }
    rondo__free(text);
    fclose(file);
    return was_read;
}

static rondo__host_load compare(const reading *before, const reading *now) {
    return (rondo__host_load){
        .seconds = (double)(now->at - before->at) * 1e-9,
        .busy = now->busy - before->busy,
        .own = now->own - before->own,
        .displaced = now->displaced - before->displaced,
    };
}

// ---- the second team --------------------------------------------------------------------------

static pthread_t g_holder;  // guarded by g_lock, as the next
static bool g_has_holder;
static atomic_uint g_is_over;  // a futex

static void *hold_team(void *unused) {
    (void)unused;
#ifdef _OPENMP
    const int count = (int)rondo__host_get_processor_count() + 1;
    atomic_uint met = 0;
#pragma omp parallel num_threads(count)
    atomic_fetch_add(&met, 1);
#endif
    while (atomic_load(&g_is_over) == 0) {
        rondo__futex_wait(&g_is_over, 0);
    }
    return NULL;  // libgomp ends the threads of a thread that ends
}

static void set_shared(bool is_shared) {
    g_is_shared = is_shared;
    if (is_shared && !g_has_holder) {
        atomic_store(&g_is_over, 0);
        g_has_holder =
            rondo__thread_start("rondo-patience", hold_team, NULL, &g_holder) == RONDO_STATUS_OK;
    } else if (!is_shared && g_has_holder) {
        atomic_store(&g_is_over, 1);
        rondo__futex_wake_all(&g_is_over);
        pthread_join(g_holder, NULL);
        g_has_holder = false;
    }
}

// Measures when there is reason to: threads have lost their processors, or waits are short and the
// reason may be gone.
static void look(uint64_t now) {
    reading current = look_at_process(now);
    const rondo__host_load since = compare(&g_looked, &current);
    g_looked = current;
    const bool is_old = g_measured.at == 0 || now - g_measured.at > FORGET_NS;
    const bool is_suspect = since.displaced > displaced_from * since.seconds;
    if (is_old ? !g_is_shared && !is_suspect : now - g_measured.at < MEASURE_NS) {
        return;
    }
    if (!look_at_machine(&current.busy)) {
        set_shared(false);
        return;
    }
    if (!is_old) {
        const rondo__host_load load = compare(&g_measured, &current);
        set_shared(rondo__host_load_is_shared(&load, g_is_shared));
    }
    g_measured = is_old || g_is_shared ? current : (reading){0};
}

// Whether the user has said how OpenMP's threads wait.
static bool is_left_alone(void) {
    static atomic_int kept;  // 1 or 2
    int value = atomic_load_explicit(&kept, memory_order_relaxed);
    if (value == 0) {
        const bool is_set = getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL;
        const int32_t share = rondo__host_set_thread_share(1);
        value = is_set || rondo__host_get_thread_count() < 2 ? 2 : 1;
        (void)rondo__host_set_thread_share(share);
        atomic_store_explicit(&kept, value, memory_order_relaxed);
    }
    return value == 2;
}

void rondo__host_patience_look(void) {
    const uint64_t now = rondo__clock_now_ns();
    if (now < atomic_load_explicit(&g_next_look, memory_order_relaxed) || is_left_alone() ||
        pthread_mutex_trylock(&g_lock) != 0) {
        return;
    }
    atomic_store_explicit(&g_next_look, now + LOOK_NS, memory_order_relaxed);
    look(now);
    pthread_mutex_unlock(&g_lock);
}

void rondo__host_patience_end(void) {
    pthread_mutex_lock(&g_lock);
    set_shared(false);
    g_measured = (reading){0};
    pthread_mutex_unlock(&g_lock);
}
