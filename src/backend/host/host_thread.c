// backend/host/host_thread.c — starting a thread.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // pthread_setname_np
#endif

#include "backend/host/host_thread.h"

#include <signal.h>

#include "base/error.h"

rondo_status rondo__host_start_thread(const char *name, void *(*function)(void *), void *argument,
                                      pthread_t *out_thread) {
    // Signals are the program's business: its own threads get them.
    sigset_t all;
    sigset_t former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    int code = pthread_create(out_thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    if (code != 0) {
        return RONDO_FAIL(NO_MEMORY,
                          "cannot start the thread %s (error %d): too many threads, or "
                          "no memory for a stack",
                          name, code);
    }
    (void)pthread_setname_np(*out_thread, name);
    return RONDO_STATUS_OK;
}
