// base/thread_count.c — how many threads host work may use.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // sched_getaffinity
#endif

#include "base/thread_count.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static int32_t count_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return (int32_t)CPU_COUNT(&set);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < RONDO__HOST_THREAD_COUNT_MAX ? (int32_t)online : 1;
}

// Neither number changes while the process runs, so each is found once and kept.
int32_t rondo__host_get_processor_count(void) {
    static atomic_int kept;
    int count = atomic_load_explicit(&kept, memory_order_relaxed);
    if (count == 0) {
        count = (int)count_processors();
        atomic_store_explicit(&kept, count, memory_order_relaxed);
    }
    return count;
}

// A positive number at the start of the variable (OMP_NUM_THREADS may be a list); otherwise 0.
static int32_t read_count(const char *variable) {
    const char *text = getenv(variable);
    if (text == NULL) {
        return 0;
    }
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (end == text || (*end != '\0' && *end != ',') || value < 1) {
        return 0;
    }
    return value > RONDO__HOST_THREAD_COUNT_MAX ? RONDO__HOST_THREAD_COUNT_MAX : (int32_t)value;
}

static _Thread_local int32_t chosen_count;  // 0: nothing was chosen for this thread

int32_t rondo__host_choose_thread_count(int32_t count) {
    int32_t former = chosen_count;
    chosen_count = count;
    return former;
}

static int get_default_count(void) {
    static atomic_int kept;
    int count = atomic_load_explicit(&kept, memory_order_relaxed);
    if (count == 0) {
        count = (int)read_count("RONDO_NUM_THREADS");
        if (count == 0) {
            count = (int)read_count("OMP_NUM_THREADS");
        }
        if (count == 0) {
            count = (int)rondo__host_get_processor_count();
        }
        atomic_store_explicit(&kept, count, memory_order_relaxed);
    }
    return count;
}

int32_t rondo__host_get_thread_count(void) {
    return chosen_count > 0 ? chosen_count : (int32_t)get_default_count();
}
