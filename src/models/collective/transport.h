// collective/transport.h — what moves the numbers of an all-reduce.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collective/communicator.h"

typedef struct rondo__transport {
    const char *name;
    // After the meeting, with the watch running.
    rondo_status (*open)(rondo_communicator *communicator);
    // On the host: the sum over all ranks, in place, of f32, f64, i32 or i64. NULL: a GPU's.
    rondo_status (*sum)(rondo_communicator *communicator, void *buffer, size_t count,
                        rondo_dtype dtype);
    // On a GPU. NULL: the host's.
    rondo_status (*put)(rondo_communicator *communicator, const rondo__reduction *reduction,
                        const void *const *inputs, void *const *outputs, rondo_stream *stream);
    // After a wait: whether what was put went well. NULL: `sum` has told.
    rondo_status (*check)(rondo_communicator *communicator);
    // A rank is lost: what waits for it must end. By any thread, once, without locks.
    void (*interrupt)(rondo_communicator *communicator);
    void (*close)(rondo_communicator *communicator);  // also when `open` failed
} rondo__transport;

extern const rondo__transport rondo__transport_sockets;
extern const rondo__transport rondo__transport_mpi;
extern const rondo__transport rondo__transport_nccl;

// Whether there is a module for the MPI of this launcher (transport_mpi.c).
//
// Errors:    UNAVAILABLE (why not).
RONDO_MUST_USE rondo_status rondo__mpi_find(rondo__launcher_id launcher);
