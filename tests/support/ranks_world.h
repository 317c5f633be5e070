// support/ranks_world.h — several ranks in one process, a thread each, that meet at a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/models.h"

// What a rank does; a failure is text, written to `problem`: cmocka fails in the test's own thread.
typedef struct rank_world {
    int32_t rank, size;
    rondo_device *device;
    rondo_communicator *communicator;
    void *data;
    char problem[1000];
} rank_world;

typedef void (*rank_function)(rank_world *w);

// Runs `function` once for each rank, on the device of this name ("cuda" stands for one GPU a
// rank), and fails the test if one had a problem.
void ranks_world_run(int32_t size, const char *device, rank_function function, void *data);
// The same for one rank, which is this process; false, with its problem printed, if it had one.
bool ranks_world_run_one(int32_t rank, int32_t size, const char *device, const char *meeting,
                         rank_function function, void *data);
// A path for a meeting that no other has had.
void ranks_world_name_meeting(char *out_path, size_t bytes);

// In a rank's function: leaves it with a problem unless the call succeeds, or the condition holds.
#define RANK_OK(w, call)                                                                      \
    do {                                                                                      \
        if ((call) != RONDO_STATUS_OK) {                                                      \
            (void)snprintf((w)->problem, sizeof(w)->problem, "rank %d, %s:%d: %s", (w)->rank, \
                           __FILE__, __LINE__, rondo_error_get_last()->message);              \
            return;                                                                           \
        }                                                                                     \
    } while (0)
#define RANK_TRUE(w, condition)                                                             \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            (void)snprintf((w)->problem, sizeof(w)->problem, "rank %d, %s:%d: not %s (%s)", \
                           (w)->rank, __FILE__, __LINE__, #condition,                       \
                           rondo_error_get_last()->message);                                \
            return;                                                                         \
        }                                                                                   \
    } while (0)
