// Fail the nth for memory in captures: every driver call (on the fake driver) and every allocation
// (there and on the host) of a scenario fails once, in turn. Whatever fails: the failing call wrote
// a fresh record, the next capture works, nothing stays behind, and nothing illegal is asked of the
// driver.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/rondo.h"
#include "support/sweep.h"

enum { BYTES = 4096, BLOCKS_MAX = 64 };

typedef struct world {
    const char *device_name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *fork;
    rondo_event *join;
    rondo_pool *pool;
    rondo_pool *pinned;
    rondo_arena *arena;
    rondo_graph *first;
    rondo_graph *second;
    // What may be held in the end.
    struct {
        rondo_pool *pool;
        void *address;
    } blocks[BLOCKS_MAX];
    size_t block_count;
} world;

static rondo_status take(world *w, rondo_pool *pool, rondo_stream *stream, void **out_address) {
    rondo_status status = rondo_pool_allocate(pool, stream, BYTES, out_address);
    if (status == RONDO_STATUS_OK) {
        assert_true(w->block_count < BLOCKS_MAX);
        w->blocks[w->block_count].pool = pool;
        w->blocks[w->block_count++].address = *out_address;
    }
    return status;
}

static rondo_status give(world *w, void *address) {
    // It stays in the list: a capture that fails later undoes the free.
    for (size_t i = 0; i < w->block_count; ++i) {
        if (w->blocks[i].address == address) {
            return rondo_pool_free(w->blocks[i].pool, address);
        }
    }
    fail_msg("%p is not held", address);
    return RONDO_STATUS_INTERNAL;
}

static void open_world(world *w) {
    rondo_pool_options pinned = {.struct_size = sizeof pinned};
    pinned.kind = RONDO_MEMORY_PINNED;
    rondo_graph_options options = {.struct_size = sizeof options};
    STEP(rondo_device_open(w->device_name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_stream_create(w->device, NULL, &w->side));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, 0, &w->join));
    STEP(rondo_pool_create(w->device, NULL, &w->pool));
    STEP(rondo_pool_create(w->device, &pinned, &w->pinned));
    STEP(rondo_arena_create(w->device, NULL, &w->arena));
    options.arena = w->arena;
    options.pageable_sources = RONDO_PAGEABLE_SNAPSHOT;
    options.label = "first";
    STEP(rondo_graph_create(w->device, &options, &w->first));
    options.label = "second";
    options.check_addresses = true;
    STEP(rondo_graph_create(w->device, &options, &w->second));
}

static void fork_and_join(world *w, bool joins) {
    STEP(rondo_event_record(joins ? w->join : w->fork, joins ? w->side : w->stream));
    STEP(rondo_stream_wait_event(joins ? w->stream : w->side, joins ? w->join : w->fork));
}

// Blocks that cross streams, in and out of pending; snapshots and pinned sources.
static void capture_first(world *w, void **out_output) {
    void *x, *y, *z, *host;
    uint32_t pageable[64] = {1, 2, 3};
    STEP(rondo_graph_capture_begin(w->first, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(take(w, w->pool, w->stream, &x));
    STEP(rondo_stream_copy(w->stream, x, pageable, sizeof pageable, RONDO_COPY_HOST_TO_DEVICE));
    STEP(take(w, w->pinned, w->stream, &host));
    memset(host, 1, BYTES);
    STEP(rondo_stream_copy(w->stream, x, host, 64, RONDO_COPY_HOST_TO_DEVICE));
    STEP(give(w, host));
    fork_and_join(w, false);
    STEP(take(w, w->pool, w->side, &y));
    STEP(rondo_stream_fill(w->side, y, 7, 1, 64));
    STEP(rondo_pool_use(w->pool, w->side, x));
    STEP(rondo_stream_copy(w->side, y, x, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    STEP(give(w, x));
    STEP(give(w, y));
    STEP(take(w, w->pool, w->stream, &z));
    STEP(rondo_stream_fill(w->stream, z, 9, 1, 64));
    fork_and_join(w, true);
    STEP(take(w, w->pool, w->stream, &x));
    STEP(take(w, w->pool, w->stream, &y));
    STEP(rondo_stream_fill(w->stream, y, 5, 1, 64));
    STEP(give(w, x));
    STEP(give(w, y));
    STEP(rondo_graph_capture_end(w->first));
    *out_output = z;
}

// Takes in a block of the first and frees it.
static void capture_second(world *w, void *input) {
    void *eager, *x;
    STEP(take(w, w->pool, w->side, &eager));
    STEP(rondo_graph_capture_begin(w->second, w->stream, RONDO_CAPTURE_GLOBAL));
    STEP(take(w, w->pool, w->stream, &x));
    STEP(rondo_stream_copy(w->stream, x, input, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    STEP(rondo_stream_copy(w->stream, eager, x, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    STEP(give(w, input));
    STEP(take(w, w->pool, w->stream, &input));
    STEP(rondo_stream_fill(w->stream, input, 1, 1, 64));
    STEP(rondo_graph_capture_end(w->second));
}

static void work(world *w) {
    void *output = NULL;
    rondo_arena_stats stats = {.struct_size = sizeof stats};
    capture_first(w, &output);
    if (output == NULL) {
        return;
    }
    STEP(rondo_graph_replay(w->first, w->stream));
    capture_second(w, output);
    STEP(rondo_arena_begin_round(w->arena));
    STEP(rondo_graph_replay(w->first, w->side));
    STEP(rondo_graph_replay(w->second, w->stream));
    STEP(rondo_arena_begin_round(w->arena));
    STEP(rondo_graph_replay(w->first, w->stream));
    STEP(rondo_stream_synchronize(w->stream));
    STEP(rondo_arena_get_stats(w->arena, &stats));
    STEP(rondo_graph_reset(w->first));
    STEP(rondo_pool_trim(w->pool, 0, NULL));
    capture_first(w, &output);
    STEP(rondo_graph_capture_begin(w->second, w->stream, RONDO_CAPTURE_RELAXED) == RONDO_STATUS_OK
             ? RONDO_STATUS_OK
             : rondo_graph_reset(w->second));
    void *x;
    STEP(take(w, w->pool, w->stream, &x));
    rondo_graph_capture_abort(w->second);
}

static void close_world(world *w) {
    rondo_graph_capture_abort(w->first);  // which would undo frees
    rondo_graph_capture_abort(w->second);
    while (w->block_count > 0) {
        w->block_count -= 1;
        (void)rondo_pool_free(w->blocks[w->block_count].pool, w->blocks[w->block_count].address);
    }
    rondo_graph_destroy(w->first);
    rondo_graph_destroy(w->second);
    rondo_arena_release(w->arena);
    rondo_pool_release(w->pool);
    rondo_pool_release(w->pinned);
    rondo_event_destroy(w->fork);
    rondo_event_destroy(w->join);
    rondo_stream_destroy(w->side);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

static void capture_again(world *w, uint32_t *out_seen) {
    void *x = NULL;
    STEP(rondo_graph_reset(w->first));
    STEP(rondo_graph_reset(w->second));
    STEP(rondo_graph_capture_begin(w->first, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(take(w, w->pool, w->stream, &x));
    STEP(rondo_stream_fill(w->stream, x, 42, 4, 1));
    STEP(rondo_graph_capture_end(w->first));
    STEP(rondo_graph_replay(w->first, w->side));
    STEP(rondo_stream_copy(w->side, out_seen, x, sizeof *out_seen, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_stream_synchronize(w->side));
}

// With the failure over, and unless the device is lost: a fresh capture works on the same objects.
static void check_recovery(world *w, const sweep_point *point) {
    uint32_t seen = 0;
    rondo_graph_capture_abort(w->first);
    rondo_graph_capture_abort(w->second);
    if (w->second == NULL || rondo_device_synchronize(w->device) == RONDO_STATUS_LOST) {
        return;
    }
    capture_again(w, &seen);
    if (seen != 42) {
        sweep_fail(point, "no capture afterwards: %u, %s", (unsigned)seen,
                   rondo_error_get_last()->message);
    }
}

static void run_round(const sweep_point *point) {
    world w = {.device_name = point->device_name};
    open_world(&w);
    if (w.second != NULL) {
        work(&w);
    }
    (void)sweep_lift();
    if (point->code != RONDO__CU_ERROR_LAUNCH_FAILED) {
        check_recovery(&w, point);
    }
    close_world(&w);
}

static const sweep_subject subject = {.run = run_round};

TEST(test_pool_sweep__fake_driver) {
    sweep_count count = sweep_on_fake("memory in captures", &subject);
    assert_true(count.driver_calls > 400 && count.allocations > 60);
}

TEST(test_pool_sweep__host) {
    size_t points = sweep_allocations(&subject, "host");
    print_message("memory in captures, host: swept %zu points\n", points);
    assert_true(points > 60);
}

TEST_MAIN()
