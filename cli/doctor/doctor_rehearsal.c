// doctor_rehearsal.c — see doctor_rehearsal.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor_rehearsal.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/rehearse/doctor_rehearse.h"

enum { WAIT_MS = 30000, PROBLEM_MAX = 128 };

static const double LONG_US = 200e3;

typedef struct outcome {
    rondo__doctor_rehearsal times;
    char problem[PROBLEM_MAX];
} outcome;

static void *find_symbol(void *library, const char *symbol) {
    return dlsym(library, symbol);
}

static void rehearse(const rondo__doctor_part *parts, size_t count, const uint64_t *uuid, int to) {
    outcome result = {.problem = ""};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *problem = library == NULL ? "there is no libcuda.so.1"
                                          : rondo__doctor_rehearse(parts, count, uuid, find_symbol,
                                                                   library, &result.times);
    (void)snprintf(result.problem, sizeof result.problem, "%s", problem != NULL ? problem : "");
    (void)!write(to, &result, sizeof result);
    _exit(0);
}

static bool await(int from, outcome *out) {
    struct pollfd one = {.fd = from, .events = POLLIN};
    return poll(&one, 1, WAIT_MS) == 1 && read(from, out, sizeof *out) == (ssize_t)sizeof *out;
}

static void start(const rondo__doctor_part *parts, size_t count, const uint64_t *uuid,
                  outcome *out) {
    int ends[2];
    *out = (outcome){.problem = "no process for it could be started"};
    if (pipe(ends) != 0) {
        return;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        rehearse(parts, count, uuid, ends[1]);
    }
    (void)close(ends[1]);
    if (child > 0) {
        if (!await(ends[0], out)) {
            snprintf(out->problem, sizeof out->problem, "the driver gave no answer");
            (void)kill(child, SIGKILL);
        }
        (void)waitpid(child, NULL, 0);
    }
    (void)close(ends[0]);
}

static bool is_long(const rondo__doctor_part *parts, size_t count) {
    double length_us = 0.0;
    for (size_t i = 0; i < count; i++) {
        length_us += parts[i].length_us;
    }
    return length_us > LONG_US;
}

void cli_doctor_rehearse(rondo__doctor_log *log, char *out_problem, size_t bytes) {
    rondo__doctor_steps steps;
    out_problem[0] = '\0';
    if (!rondo__doctor_find_steps(log, &steps)) {
        return;
    }
    rondo__doctor_part *parts = steps.period > 0 ? rondo__doctor_list_parts(&steps) : NULL;
    if (parts != NULL && is_long(parts, steps.period)) {
        snprintf(out_problem, bytes, "in a step so long gaps do not count");
    } else if (parts != NULL) {
        outcome result;
        start(parts, steps.period, log->device_uuid, &result);
        snprintf(out_problem, bytes, "%s", result.problem);
        if (result.problem[0] == '\0') {
            log->rehearsal = (rondo__doctor_replays){.works = steps.period,
                                                     .median_ns = result.times.median_ns,
                                                     .low_ns = result.times.low_ns,
                                                     .high_ns = result.times.high_ns};
        }
    }
    free(parts);
    rondo__doctor_steps_clear(&steps);
}
