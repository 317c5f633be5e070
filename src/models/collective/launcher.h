// collective/launcher.h — which rank this process is, and where the ranks of a job meet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/training.h"

typedef enum rondo__launcher_id {
    RONDO__LAUNCHER_NONE,
    RONDO__LAUNCHER_OWN,  // RONDO_RANK and RONDO_RANKS
    RONDO__LAUNCHER_OPEN_MPI,
    RONDO__LAUNCHER_TORCHRUN,
    RONDO__LAUNCHER_MPICH,
    RONDO__LAUNCHER_SLURM,
} rondo__launcher_id;

// Reads the variables that launchers set, in the order above; NONE: rank 0 of 1.
//
// Errors:    INVALID (a variable that is no number, or ranks that do not fit).
// Threads:   safe, while none changes the environment.
RONDO_MUST_USE rondo_status rondo__launcher_read(rondo_ranks *out_ranks,
                                                 rondo__launcher_id *out_launcher);

// The same place in all processes of a job on one machine, and in no other job: a file of the
// user's in the folder of temporary files.
//
// Errors:    INVALID (the folder's name is too long).
// Threads:   safe, while none changes the environment.
RONDO_MUST_USE rondo_status rondo__launcher_name_file(rondo__launcher_id launcher, char *out_path,
                                                      size_t bytes);

// "HOST:PORT" of MASTER_ADDR and MASTER_PORT, where nothing else listens there; false: none.
bool rondo__launcher_get_master(char *out_address, size_t bytes);
