// train_ranks.h — a training that several ranks make together: mpirun -n 2 rondo train ...
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rondo/models.h"

typedef struct cli_train_ranks {
    rondo_ranks ranks;
    rondo_communicator *communicator;  // NULL: this process is alone
    bool is_stopped;                   // some rank was interrupted; all know, after the same batch
    double said_at;                    // seconds of waiting after which it was said last
} cli_train_ranks;

// Reads which rank this is. On failure prints why.
bool cli_train_ranks_find(cli_train_ranks *out_ranks);
static inline bool cli_train_ranks_are_many(const cli_train_ranks *ranks) {
    return ranks->ranks.size > 1;
}
// Whether this rank writes and speaks.
static inline bool cli_train_ranks_is_first(const cli_train_ranks *ranks) {
    return ranks->ranks.rank == 0;
}

// Opens the device of this rank: of "auto" and of several ranks, the GPU with its number among the
// ranks of this machine, or the host where there is no GPU. On failure prints why.
bool cli_train_ranks_open_device(const cli_train_ranks *ranks, const char *name,
                                 rondo_device **out_device);
// Meets the others, if there are any, and says on stderr that it waits. On failure prints why.
//
// common      what all ranks must have alike (rondo_communicator_options).
bool cli_train_ranks_meet(cli_train_ranks *ranks, rondo_device *device, const char *common);

// The part of a batch of `count` samples that this rank takes; of none the first, which counts 0.
//
// Returns:   what its mean counts in the mean over ranks.
float cli_train_ranks_take(const cli_train_ranks *ranks, int64_t count, int64_t *out_first,
                           int64_t *out_count);

// Whether training is to end now: each rank must come to the same answer.
bool cli_train_ranks_stop(const cli_train_ranks *ranks);
