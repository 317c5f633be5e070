// collective/mpi/mpi_module.c — see mpi_module.h. Built once for each MPI, with its mpi.h.
//
// A sum is begun and asked for, never waited for: MPI's own waits do not end when a rank is gone.
// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collective/mpi/mpi_module.h"

static MPI_Comm group = MPI_COMM_NULL;
static int is_ours;  // MPI was started here

static int fail(int code, char *out_problem, size_t bytes) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    (void)snprintf(out_problem, bytes, "%s", text);
    return code;
}

// MPI can be started once in a process, so it ends with that.
static void end_with_process(void) {
    int is_over = 0;
    if (is_ours && MPI_Finalized(&is_over) == MPI_SUCCESS && !is_over) {
        (void)MPI_Finalize();
    }
}

static int start(char *out_problem, size_t bytes) {
    int is_there = 0;
    int is_over = 0;
    int level = MPI_THREAD_SINGLE;
    (void)MPI_Finalized(&is_over);
    (void)MPI_Initialized(&is_there);
    if (is_over) {
        (void)snprintf(out_problem, bytes, "the program has ended MPI already");
        return -1;
    }
    if (is_there) {
        (void)MPI_Query_thread(&level);
    } else {
        const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
        if (code != MPI_SUCCESS) {
            return fail(code, out_problem, bytes);
        }
        is_ours = 1;
        (void)atexit(end_with_process);
    }
    if (level < MPI_THREAD_SERIALIZED) {
        (void)snprintf(out_problem, bytes,
                       "MPI was started without MPI_THREAD_SERIALIZED, and ops run on other "
                       "threads");
        return -1;
    }
    return 0;
}

static int open_mpi(int *out_rank, int *out_size, char *out_problem, size_t bytes) {
    int code = start(out_problem, bytes);
    if (code != 0) {
        return code;
    }
    code = MPI_Comm_dup(MPI_COMM_WORLD, &group);
    if (code != MPI_SUCCESS) {
        return fail(code, out_problem, bytes);
    }
    (void)MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(group, out_rank);
    (void)MPI_Comm_size(group, out_size);
    return 0;
}

static MPI_Datatype get_type(rondo__mpi_type type, size_t *out_bytes) {
    *out_bytes = type == RONDO__MPI_F32 || type == RONDO__MPI_I32 ? 4 : 8;
    return type == RONDO__MPI_F32   ? MPI_FLOAT
           : type == RONDO__MPI_F64 ? MPI_DOUBLE
           : type == RONDO__MPI_I32 ? MPI_INT32_T
                                    : MPI_INT64_T;
}

// At first others may want the processor; later the other ranks are far behind.
static void rest(int *tries) {
    enum { TRIES_MAX = 200 };
    const struct timespec pause = {.tv_nsec = 20000};
    *tries += *tries < TRIES_MAX ? 1 : 0;
    if (*tries < TRIES_MAX) {
        (void)sched_yield();
    } else {
        (void)nanosleep(&pause, NULL);
    }
}

static int sum_piece(void *buffer, int count, MPI_Datatype type, int (*is_lost)(void *data),
                     void *data) {
    MPI_Request request;
    int code = MPI_Iallreduce(MPI_IN_PLACE, buffer, count, type, MPI_SUM, group, &request);
    int is_done = 0;
    int tries = 0;
    while (code == MPI_SUCCESS && !is_done) {
        code = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        if (!is_done && is_lost(data)) {
            return -1;
        }
        if (!is_done) {
            rest(&tries);
        }
    }
    return code;
}

static int sum(void *buffer, int64_t count, rondo__mpi_type type, int (*is_lost)(void *data),
               void *data, char *out_problem, size_t bytes) {
    size_t element;
    const MPI_Datatype native = get_type(type, &element);
    for (int64_t first = 0; first < count;) {
        const int64_t left = count - first;
        const int piece = left < 1 << 28 ? (int)left : 1 << 28;
        const int code =
            sum_piece((char *)buffer + (size_t)first * element, piece, native, is_lost, data);
        if (code != MPI_SUCCESS) {
            return code == -1 ? -1 : fail(code, out_problem, bytes);
        }
        first += piece;
    }
    return 0;
}

static void close_mpi(int is_lost) {
    if (is_lost) {
        is_ours = 0;  // its end would wait for the lost rank
    } else if (group != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&group);
    }
    group = MPI_COMM_NULL;
}

__attribute__((visibility("default"))) const rondo__mpi_module *rondo_mpi_module_get(void);
const rondo__mpi_module *rondo_mpi_module_get(void) {
    static const rondo__mpi_module module = {
        .version = RONDO__MPI_VERSION, .open = open_mpi, .sum = sum, .close = close_mpi};
    return &module;
}
