// A process that forks in the middle of a capture, while another thread holds whatever lock: in the
// child nobody gives that back. There everything old answers LOST or is forgotten, and nothing
// waits.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool/arena.h"
#include "pool/pool_blocks.h"
#include "rondo/control.h"
#include "rondo/graph.h"
#include "rondo/label.h"
#include "rondo/random.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { BYTES = 64, GONE_WRONG = 200 };

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_event *event;
    rondo_arena *arena;
    rondo_pool *pool;
    rondo_generator *generator;
    rondo_graph *graph;
    rondo_scope scope;
    void *memory;
    void *block;
} world;

// A capture that draws, has memory of its own, and an open scope.
static void open_world(world *w) {
    OK(rondo_device_open("host", &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    OK(rondo_event_create(w->device, 0, &w->event));
    OK(rondo_arena_create(w->device, NULL, &w->arena));
    OK(rondo_pool_create(w->device, NULL, &w->pool));
    OK(rondo_generator_create(w->device, 1, &w->generator));
    OK(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, BYTES, &w->memory));
    rondo_graph_options options = {.struct_size = sizeof options};
    options.arena = w->arena;
    OK(rondo_graph_create(w->device, &options, &w->graph));
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_pool_allocate(w->pool, w->stream, BYTES, &w->block));
    OK(rondo_random_words(w->generator, w->stream, w->block, 4));
    OK(rondo_scope_begin(w->stream, RONDO_SCOPE_IF, w->memory, 0, &w->scope));
}

static void give_back(world *w) {
    rondo_graph_destroy(w->graph);
    rondo_generator_release(w->generator);
    rondo_pool_release(w->pool);
    rondo_arena_release(w->arena);
    rondo_memory_free(w->device, w->memory);
    rondo_event_destroy(w->event);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

static void close_world(world *w) {
    rondo_graph_capture_abort(w->graph);  // takes the block back, too
    give_back(w);
}

typedef rondo_status (*call)(world *w);

static rondo_status do_launch(world *w) {
    return rondo_stream_launch(w->stream, NULL);
}
static rondo_status do_record_event(world *w) {
    return rondo_event_record(w->event, w->stream);
}
static rondo_status do_push(world *w) {
    return rondo_label_push(w->stream, "late");
}
static rondo_status do_use(world *w) {
    return rondo_pool_use(w->pool, w->stream, w->block);
}
static rondo_status do_free(world *w) {
    return rondo_pool_free(w->pool, w->block);
}
static rondo_status do_pool_stats(world *w) {
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    return rondo_pool_get_stats(w->pool, &stats);
}
static rondo_status do_round(world *w) {
    return rondo_arena_begin_round(w->arena);
}
static rondo_status do_draw(world *w) {
    return rondo_random_words(w->generator, w->stream, w->memory, 4);
}
static rondo_status do_reserve(world *w) {
    rondo_random_range range;
    return rondo_generator_reserve(w->generator, w->stream, 1, &range);
}
static rondo_status do_rewind(world *w) {
    rondo_generator_mark mark = {0};
    return rondo_generator_rewind(w->generator, w->stream, &mark);
}
static rondo_status do_scope_begin(world *w) {
    rondo_scope inner;
    return rondo_scope_begin(w->stream, RONDO_SCOPE_IF, w->memory, 0, &inner);
}
static rondo_status do_scope_enter(world *w) {
    rondo_stream *body = NULL;
    return rondo_scope_enter(w->scope, 0, &body);
}
static rondo_status do_scope_end(world *w) {
    return rondo_scope_end(w->scope);
}
static rondo_status do_capture_end(world *w) {
    return rondo_graph_capture_end(w->graph);
}

static const struct {
    const char *name;
    call make;
} calls[] = {
    {"rondo_stream_launch", do_launch},
    {"rondo_event_record", do_record_event},
    {"rondo_label_push", do_push},
    {"rondo_pool_use", do_use},
    {"rondo_pool_free", do_free},
    {"rondo_pool_get_stats", do_pool_stats},
    {"rondo_arena_begin_round", do_round},
    {"rondo_random_words", do_draw},
    {"rondo_generator_reserve", do_reserve},
    {"rondo_generator_rewind", do_rewind},
    {"rondo_scope_begin", do_scope_begin},
    {"rondo_scope_enter", do_scope_enter},
    {"rondo_scope_end", do_scope_end},
    {"rondo_graph_capture_end", do_capture_end},
};

static void hold_locks(const world *w) {
    pthread_mutex_lock(&w->arena->lock);
    pthread_mutex_lock(&w->pool->lock);
    pthread_mutex_lock(&w->device->capture_list_lock);
}

static void release_locks(const world *w) {
    pthread_mutex_unlock(&w->device->capture_list_lock);
    pthread_mutex_unlock(&w->pool->lock);
    pthread_mutex_unlock(&w->arena->lock);
}

// What `in_child` returns, from a child that was forked with the locks held.
static int fork_and_run(world *w, int (*in_child)(world *w, size_t index), size_t index) {
    int result = 0;
    hold_locks(w);
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(in_child(w, index));
    }
    release_locks(w);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : GONE_WRONG;
}

static int make_call(world *w, size_t index) {
    return calls[index].make(w) == RONDO_STATUS_LOST ? 0 : 1;
}

TEST(test_graph_fork__a_child_is_told_that_all_is_lost) {
    world w;
    open_world(&w);
    int failures = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int result = fork_and_run(&w, make_call, i);
        if (result != 0) {
            print_error("%s %s\n", calls[i].name,
                        result == GONE_WRONG ? "waits for ever" : "did not answer LOST");
            failures++;
        }
    }
    close_world(&w);
    assert_int_equal(failures, 0);
}

static int give_all_back(world *w, size_t index) {
    (void)index;
    rondo_graph_capture_abort(w->graph);
    give_back(w);
    return 0;
}

TEST(test_graph_fork__a_child_may_give_all_back) {
    world w;
    open_world(&w);
    int result = fork_and_run(&w, give_all_back, 0);
    close_world(&w);
    assert_int_equal(result, 0);
}

TEST_MAIN()
