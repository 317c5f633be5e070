// doctor_watch.h — starts a program with the recorder in it, and reads what it records while it
// runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "doctor/analysis/doctor_log.h"

enum { CLI_WATCH_PROCESSES_MAX = 64 };

// A process of the program that called the driver.
typedef struct cli_watched {
    rondo__doctor_log log;
    uint32_t process;
    char program[256];
    double cost_us;       // what watching a call takes; 0: not known
    uint32_t lost_count;  // records that were lost
    int problem;          // errno of why nothing was recorded; 0: none
} cli_watched;

typedef struct cli_watch {
    cli_watched *processes;
    size_t count;
    int status;          // the program's exit status, 128 + N when signal N ended it
    bool is_static;      // the program has no loader, so that nothing can be put into it
    bool is_privileged;  // the loader puts nothing into it
} cli_watch;

// Runs `program` (NULL at its end) until it ends. Returns false with a message when it could not be
// started; out_watch->status is what the tool then ends with.
bool cli_watch_program(char *const *program, bool with_times, cli_watch *out_watch);

// The process that launched most; NULL: none called the driver.
cli_watched *cli_watch_choose(const cli_watch *watch);

void cli_watch_clear(cli_watch *watch);
