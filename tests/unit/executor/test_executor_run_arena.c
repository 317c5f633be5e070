// Memory of runs that the program gives, or that executors share, on the host, a real GPU where
// there is one, and the fake driver.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/models/add_program.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/test.h"

enum { LENGTH = 4096, STEPS = 4 };

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_run_arena *arena;
    rondo_executor *executors[2];
    float *x[2], *y[2];
    int64_t length[2];
} world;

// y = 5 * x, by additions whose sums all are values of the run. Of any length.
static rondo_program *make_program(void) {
    rondo_program *program;
    rondo_port port = {
        .struct_size = sizeof port, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    static const char *const names[] = {"x", "s1", "s2", "s3", "y"};
    port.extent[0] = -1;
    port.symbol[0] = "n";
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &port));
    for (int i = 0; i < STEPS; ++i) {
        OK(rondo_builder_add_node(b, "Add", (const char *[]){names[i], "x"}, 2, &names[i + 1], 1,
                                  NULL));
    }
    OK(rondo_builder_add_output(b, "y", NULL));
    program = build_finish(b);
    return program;
}

static rondo_status create(world *w, int which) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .op_by_op = true, .run_arena = w->arena};
    return rondo_executor_create(w->program, w->device, &options, &w->executors[which]);
}

static world open_world(const rondo_run_arena_options *options) {
    world w = {.length = {LENGTH, LENGTH / 2}};
    OK(rondo_device_open(on_devices_get_name(), &w.device));
    w.program = make_program();
    OK(rondo_run_arena_create(w.device, options, &w.arena));
    for (int i = 0; i < 2; ++i) {
        OK(create(&w, i));
        OK(rondo_memory_allocate(w.device, RONDO_MEMORY_PINNED, LENGTH * sizeof(float),
                                 (void **)&w.x[i]));
        OK(rondo_memory_allocate(w.device, RONDO_MEMORY_PINNED, LENGTH * sizeof(float),
                                 (void **)&w.y[i]));
    }
    return w;
}

static void close_world(world *w) {
    for (int i = 0; i < 2; ++i) {
        rondo_executor_destroy(w->executors[i]);
        rondo_memory_free(w->device, w->x[i]);
        rondo_memory_free(w->device, w->y[i]);
    }
    rondo_run_arena_destroy(w->arena);
    rondo_run_arena_destroy(NULL);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
}

static rondo_tensor tensor_of(const world *w, int which, float *values) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32,
                          .shape = {.rank = 1, .extent = {w->length[which]}},
                          .data = values};
}

static rondo_status run(world *w, int which, float first, bool waits) {
    for (int64_t i = 0; i < w->length[which]; ++i) {
        w->x[which][i] = first + (float)i;
    }
    const rondo_binding feed = {"x", tensor_of(w, which, w->x[which])};
    rondo_binding fetch = {"y", tensor_of(w, which, w->y[which])};
    return waits ? rondo_executor_run(w->executors[which], &feed, 1, &fetch, 1)
                 : rondo_executor_run_async(w->executors[which], &feed, 1, &fetch, 1, NULL);
}

static void expect(const world *w, int which, float first) {
    for (int64_t i = 0; i < w->length[which]; ++i) {
        if (w->y[which][i] != 5 * (first + (float)i)) {
            fail_msg("executor %d, element %d", which, (int)i);
        }
    }
}

static uint64_t get_arena_bytes(rondo_executor *executor) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    return stats.arena_bytes;
}

TEST(test_executor_run_arena__executors_share_it) {
    const rondo_run_arena_options some = {.struct_size = sizeof some,
                                          .bytes = STEPS * LENGTH * sizeof(float)};
    world w = open_world(&some);
    assert_int_equal(rondo_run_arena_get_bytes(w.arena), 0);
    for (int i = 0; i < 6; ++i) {
        OK(run(&w, 1, (float)(100 + i), true));
        OK(run(&w, 0, (float)i, true));
        expect(&w, 0, (float)i);
        expect(&w, 1, (float)(100 + i));
    }
    // As much as was said, in which both lie.
    assert_int_equal(rondo_run_arena_get_bytes(w.arena), some.bytes);
    assert_true(get_arena_bytes(w.executors[0]) + get_arena_bytes(w.executors[1]) > some.bytes);
    EXPECT(STATE, "another executor that shares", rondo_executor_rerun(w.executors[1]));
    OK(rondo_executor_rerun(w.executors[0]));
    rondo_executor_destroy(w.executors[0]);
    w.executors[0] = NULL;
    OK(run(&w, 1, 7, true));
    expect(&w, 1, 7);
    rondo_executor_destroy(w.executors[1]);
    w.executors[1] = NULL;
    assert_int_equal(rondo_run_arena_get_bytes(w.arena), 0);
    close_world(&w);
}

// Each executor has a stream of its own.
TEST(test_executor_run_arena__runs_that_do_not_wait_come_in_turn) {
    world w = open_world(NULL);
    for (int i = 0; i < 40; ++i) {
        OK(run(&w, 0, (float)i, false));
        OK(run(&w, 1, (float)(50 + i), i % 4 == 3));
        OK(run(&w, 0, (float)(7 + i), false));
        OK(rondo_executor_wait(w.executors[1]));
        expect(&w, 1, (float)(50 + i));
        OK(rondo_executor_wait(w.executors[0]));
        expect(&w, 0, (float)(7 + i));
    }
    close_world(&w);
}

TEST(test_executor_run_arena__the_program_gives_it) {
    rondo_run_arena_options options = {.struct_size = sizeof options};
    rondo_device *device;
    OK(rondo_device_open(on_devices_get_name(), &device));
    // How much is asked by describing; then a byte less, and just as much.
    world w = open_world(NULL);
    OK(run(&w, 0, 0, true));
    const size_t bytes = (size_t)get_arena_bytes(w.executors[0]);
    close_world(&w);
    OK(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, bytes, &options.address));
    options.bytes = bytes - 1;
    w = open_world(&options);
    EXPECT(NO_MEMORY, "of the run arena, which was given", run(&w, 0, 0, true));
    OK(run(&w, 1, 3, true));  // half as long
    expect(&w, 1, 3);
    close_world(&w);
    options.bytes = bytes;
    w = open_world(&options);
    assert_int_equal(rondo_run_arena_get_bytes(w.arena), bytes);
    for (int i = 0; i < 5; ++i) {
        OK(run(&w, i % 2, (float)i, true));
        expect(&w, i % 2, (float)i);
    }
    close_world(&w);
    rondo_memory_free(device, options.address);
    rondo_device_release(device);
}

// ---- what is refused --------------------------------------------------------------------------

static void *run_meanwhile(void *user_data, const char *name, const rondo_tensor *wanted,
                           size_t bytes) {
    world *w = user_data;
    (void)name;
    (void)wanted;
    EXPECT(STATE, "shares the run arena", run(w, 1, 1, true));
    return bytes <= LENGTH * sizeof(float) ? w->y[0] : NULL;
}

TEST(test_executor_run_arena__what_is_refused) {
    world w = open_world(NULL);
    rondo_bound_run *bound;
    rondo_run_arena *arena;
    const rondo_tensor x = tensor_of(&w, 0, w.x[0]);
    OK(run(&w, 1, 1, true));
    OK(rondo_bound_run_create(w.executors[0], &bound));
    OK(rondo_bound_run_set_feed(bound, "x", &x));
    OK(rondo_bound_run_set_fetch(bound, "y", &(rondo_tensor){0}));
    OK(rondo_bound_run_set_allocator(bound, run_meanwhile, &w));
    OK(rondo_bound_run_run(bound));
    rondo_bound_run_destroy(bound);
    OK(run(&w, 1, 1, true));
    expect(&w, 1, 1);
    rondo_run_arena_options options = {.struct_size = sizeof options, .address = w.x[0]};
    EXPECT(INVALID, "options.bytes is 0", rondo_run_arena_create(w.device, &options, &arena));
    options.address = (char *)w.x[0] + 4;
    options.bytes = 4096;
    EXPECT(INVALID, "no multiple of 256", rondo_run_arena_create(w.device, &options, &arena));
    rondo_executor *executor;
    rondo_device *host;
    OK(rondo_device_open("host", &host));
    const rondo_executor_options shared = {.struct_size = sizeof shared, .run_arena = w.arena};
    if (!rondo_device_is_host(w.device)) {
        EXPECT(INVALID, "options.run_arena is of",
               rondo_executor_create(w.program, host, &shared, &executor));
    }
    rondo_device_release(host);
    close_world(&w);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
