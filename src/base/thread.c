// base/thread.c — which thread this is, for messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // pthread_getname_np
#endif
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

uint64_t rondo__thread_get_number(void) {
    static _Atomic(uint64_t) last_number;
    static _Thread_local uint64_t own_number;
    if (own_number == 0) {
        own_number = atomic_fetch_add(&last_number, 1) + 1;
    }
    return own_number;
}

void rondo__thread_get_name(char *out_name, size_t bytes) {
    if (pthread_getname_np(pthread_self(), out_name, bytes) != 0) {
        out_name[0] = '\0';
    }
}
