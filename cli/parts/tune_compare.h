// tune_compare.h — whether a network with one set of kernels is slower than with another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "session.h"

enum { TUNE_ROUNDS = 11 };

// Medians of each round's runs, and of these. In seconds.
typedef struct tune_times {
    size_t round_count;
    double before[TUNE_ROUNDS], after[TUNE_ROUNDS];
    double before_s, after_s;
} tune_times;

// Fills in the medians of all rounds. True: slower afterwards beyond what chance explains, by more
// than 1 % and in three of four rounds.
bool tune_times_judge(tune_times *times);

// Runs the session's network by both executors in turns, with what is fed left on the device.
// False: a run failed, or was none that can be compared; this thread's error record says why.
bool tune_compare(cli_session *session, rondo_executor *before, rondo_executor *after,
                  tune_times *out_times);
