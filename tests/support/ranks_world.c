// support/ranks_world.c — see ranks_world.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/ranks_world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants those above first
#include <cmocka.h>

#include "rondo/models.h"

typedef struct rank_thread {
    rank_world world;
    char device[16];
    char meeting[200];
    rank_function function;
    pthread_t thread;
} rank_thread;

void ranks_world_name_meeting(char *out_path, size_t bytes) {
    static atomic_int count;
    const char *folder = getenv("TMPDIR");
    (void)snprintf(out_path, bytes, "%s/rondo-test-%ld-%d", folder != NULL ? folder : "/tmp",
                   (long)getpid(), atomic_fetch_add(&count, 1));
}

static void live(rank_thread *t) {
    rank_world *w = &t->world;
    const rondo_communicator_options options = {.struct_size = sizeof options,
                                                .rank = w->rank,
                                                .size = w->size,
                                                .meeting = t->meeting,
                                                .wait_ms = 60000};
    RANK_OK(w, rondo_device_open(t->device, &w->device));
    RANK_OK(w, rondo_communicator_create(w->device, &options, &w->communicator));
    t->function(w);
}

static void *run_rank(void *argument) {
    rank_thread *t = argument;
    live(t);
    rondo_communicator_destroy(t->world.communicator);
    rondo_device_release(t->world.device);
    return NULL;
}

bool ranks_world_run_one(int32_t rank, int32_t size, const char *device, const char *meeting,
                         rank_function function, void *data) {
    rank_thread t = {.world = {.rank = rank, .size = size, .data = data}, .function = function};
    (void)snprintf(t.meeting, sizeof t.meeting, "%s", meeting);
    (void)snprintf(t.device, sizeof t.device, "%s", device);
    (void)run_rank(&t);
    if (t.world.problem[0] != '\0') {
        print_error("%s\n", t.world.problem);
    }
    return t.world.problem[0] == '\0';
}

void ranks_world_run(int32_t size, const char *device, rank_function function, void *data) {
    rank_thread threads[8] = {0};
    char meeting[200];
    assert_in_range(size, 1, 8);
    ranks_world_name_meeting(meeting, sizeof meeting);
    for (int32_t r = 0; r < size; ++r) {
        rank_thread *t = &threads[r];
        t->world = (rank_world){.rank = r, .size = size, .data = data};
        t->function = function;
        (void)snprintf(t->meeting, sizeof t->meeting, "%s", meeting);
        if (strcmp(device, "cuda") == 0) {
            (void)snprintf(t->device, sizeof t->device, "cuda:%d", (int)r);
        } else {
            (void)snprintf(t->device, sizeof t->device, "%s", device);
        }
        assert_int_equal(pthread_create(&t->thread, NULL, run_rank, t), 0);
    }
    for (int32_t r = 0; r < size; ++r) {
        assert_int_equal(pthread_join(threads[r].thread, NULL), 0);
    }
    for (int32_t r = 0; r < size; ++r) {
        if (threads[r].world.problem[0] != '\0') {
            fail_msg("%s", threads[r].world.problem);
        }
    }
}
