// backend/host/host_thread.h — starting a thread.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_HOST_HOST_THREAD_H
#define RONDO_BACKEND_HOST_HOST_THREAD_H

#include <pthread.h>

#include "rondo/status.h"

// Starts a thread that takes no signals.
RONDO_MUST_USE rondo_status rondo__host_start_thread(const char *name, void *(*function)(void *),
                                                     void *argument, pthread_t *out_thread);

#endif  // RONDO_BACKEND_HOST_HOST_THREAD_H
