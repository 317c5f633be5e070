// collective/mpi/mpi_module.h — what a module gives that was built for one MPI. Open MPI and MPICH
// have other types and constants, so there is a shared object for each, of the same source; the
// library loads the one that fits the launcher, and needs no MPI itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { RONDO__MPI_VERSION = 1 };

typedef enum rondo__mpi_type {
    RONDO__MPI_F32,
    RONDO__MPI_F64,
    RONDO__MPI_I32,
    RONDO__MPI_I64,
} rondo__mpi_type;

typedef struct rondo__mpi_module {
    uint32_t version;  // RONDO__MPI_VERSION
    // Starts MPI, unless the program has. 0, or a code with its text in out_problem.
    int (*open)(int *out_rank, int *out_size, char *out_problem, size_t bytes);
    // Sums in place over all ranks, until `is_lost(data)` says so: then -1.
    int (*sum)(void *buffer, int64_t count, rondo__mpi_type type, int (*is_lost)(void *data),
               void *data, char *out_problem, size_t bytes);
    // Ends MPI, if `open` has started it and no rank is lost.
    void (*close)(int is_lost);
} rondo__mpi_module;

#define RONDO__MPI_SYMBOL "rondo_mpi_module_get"
typedef const rondo__mpi_module *(*rondo__mpi_getter)(void);
