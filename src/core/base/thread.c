// base/thread.c — see thread.h.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // pthread_getname_np, pthread_setname_np
#endif
#include "base/thread.h"

#include <fenv.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

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

rondo_status rondo__thread_start(const char *name, void *(*function)(void *), void *argument,
                                 pthread_t *out_thread) {
    // Signals are the program's business: its own threads get them. Those of a fault, which may be
    // in a host function of the program's, come to the thread itself: blocked, they would end the
    // process before a crash handler has run.
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigset_t former;
    fenv_t environment;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
        sigdelset(&blocked, faults[i]);
    }
    // A thread inherits both, the floating-point environment, too: it shall be the default one.
    const bool has_environment = fegetenv(&environment) == 0 && fesetenv(FE_DFL_ENV) == 0;
    pthread_sigmask(SIG_SETMASK, &blocked, &former);
    int code = pthread_create(out_thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    if (has_environment) {
        (void)fesetenv(&environment);
    }
    if (code != 0) {
        return RONDO_FAIL(NO_MEMORY,
                          "cannot start the thread %s (error %d): too many threads, or "
                          "no memory for a stack",
                          name, code);
    }
    (void)pthread_setname_np(*out_thread, name);
    return RONDO_STATUS_OK;
}
