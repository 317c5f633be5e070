// Fail the nth for memory in captures: every driver call (on the fake driver) and every allocation
// (there and on the host) of a scenario fails once, in turn. Whatever fails: the failing call wrote
// a fresh record, the next capture works, nothing stays behind, and nothing illegal is asked of the
// driver.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/memory.h"
#include "rondo/rondo.h"
#include "support/fake_cuda.h"
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
    // What is held, to be freed in the end.
    struct {
        rondo_pool *pool;
        void *address;
    } blocks[BLOCKS_MAX];
    size_t block_count;
} world;

#define STEP(call)                                             \
    do {                                                       \
        uint64_t sequence_ = rondo_error_get_last()->sequence; \
        if (!sweep_step((call), sequence_, #call)) {           \
            return;                                            \
        }                                                      \
    } while (0)

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
    for (size_t i = 0; i < w->block_count; ++i) {
        if (w->blocks[i].address == address) {
            rondo_pool *pool = w->blocks[i].pool;
            w->blocks[i] = w->blocks[--w->block_count];
            return rondo_pool_free(pool, address);
        }
    }
    fail_msg("%p is not held", address);
    return RONDO_STATUS_INTERNAL;
}

static void open_world(world *w) {
    rondo_pool_options pinned = rondo_pool_options_default();
    pinned.kind = RONDO_MEMORY_PINNED;
    rondo_graph_options options = rondo_graph_options_default();
    STEP(rondo_device_open(w->device_name, &w->device));
    STEP(rondo_stream_create(w->device, &w->stream));
    STEP(rondo_stream_create(w->device, &w->side));
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
    STEP(rondo_pool_use(w->pool, x, w->side));
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
    rondo_arena_stats stats;
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
    while (w->block_count > 0) {
        w->block_count -= 1;
        (void)!rondo_pool_free(w->blocks[w->block_count].pool, w->blocks[w->block_count].address);
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

// With the failure over, and unless the device is lost: a fresh capture works on the same objects.
static void check_recovery(world *w, const char *what, size_t n) {
    rondo_graph_capture_abort(w->first);
    rondo_graph_capture_abort(w->second);
    if (w->second == NULL || rondo_device_synchronize(w->device) == RONDO_STATUS_LOST) {
        return;
    }
    void *x = NULL;
    uint32_t seen = 0;
    rondo_status status = rondo_graph_reset(w->first);
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_reset(w->second);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_capture_begin(w->first, w->stream, RONDO_CAPTURE_THREAD_LOCAL);
    }
    if (status == RONDO_STATUS_OK) {
        status = take(w, w->pool, w->stream, &x);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(w->stream, x, 42, 4, 1);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_capture_end(w->first);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_replay(w->first, w->side);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_copy(w->side, &seen, x, sizeof seen, RONDO_COPY_DEVICE_TO_HOST);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(w->side);
    }
    if (status != RONDO_STATUS_OK || seen != 42) {
        fail_msg("%s %zu (%s): no capture afterwards: %u, %s", what, n, fake_cuda_get_failed_call(),
                 (unsigned)seen, rondo_error_get_last()->message);
    }
}

// ---- the sweeps -------------------------------------------------------------------------------

static void run_scenario(world *w) {
    open_world(w);
    if (w->second != NULL) {
        work(w);
    }
}

static void start_fake(void) {
    fake_cuda_reset(NULL);
    fake_cuda_install();
}

static void check_nothing_is_left(const char *what, size_t n) {
    if (fake_cuda_count_objects() != 0 || fake_cuda_get_violations()[0] != '\0') {
        fail_msg("%s %zu (%s): %zu objects left; violations: %s", what, n,
                 fake_cuda_get_failed_call(), fake_cuda_count_objects(),
                 fake_cuda_get_violations());
    }
}

static size_t sweep_driver_calls(rondo__cu_result code) {
    for (size_t n = 0;; ++n) {
        world w = {.device_name = "cuda:0"};
        start_fake();
        fake_cuda_fail_nth((long)n, code);
        run_scenario(&w);
        bool has_failed = fake_cuda_has_failed();
        if (!has_failed) {
            fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
        }
        if (code != RONDO__CU_ERROR_LAUNCH_FAILED) {
            check_recovery(&w, "driver call", n);
        }
        close_world(&w);
        check_nothing_is_left("driver call", n);
        if (!has_failed) {
            return n;
        }
    }
}

typedef struct heap_plan {
    pthread_t thread;
    size_t countdown;
    bool has_failed;
} heap_plan;

static bool fail_allocation(void *user_data) {
    heap_plan *plan = user_data;
    if (!pthread_equal(plan->thread, pthread_self()) || plan->has_failed || plan->countdown-- > 0) {
        return false;
    }
    plan->has_failed = true;
    return true;
}

static size_t sweep_allocations(const char *device_name) {
    bool is_fake = strcmp(device_name, "host") != 0;
    for (size_t n = 0;; ++n) {
        world w = {.device_name = device_name};
        heap_plan plan = {.thread = pthread_self(), .countdown = n};
        if (is_fake) {
            start_fake();
        }
        rondo__memory_set_fault(fail_allocation, &plan);
        run_scenario(&w);
        rondo__memory_set_fault(NULL, NULL);
        check_recovery(&w, "allocation", n);
        close_world(&w);
        if (is_fake) {
            check_nothing_is_left("allocation", n);
        }
        if (!plan.has_failed) {
            return n;
        }
    }
}

static void test_pool_sweep__fake_driver(void **state) {
    (void)state;
    static const rondo__cu_result codes[] = {
        RONDO__CU_ERROR_OUT_OF_MEMORY,
        RONDO__CU_ERROR_UNKNOWN,
        RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        RONDO__CU_ERROR_LAUNCH_FAILED,
    };
    rondo_log_set_sink(sweep_ignore_line, NULL);
    size_t driver_points = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
        driver_points += sweep_driver_calls(codes[i]);
    }
    size_t heap_points = sweep_allocations("cuda:0");
    rondo_log_set_sink(NULL, NULL);
    fake_cuda_uninstall();
    print_message("memory in captures: swept %zu points (%zu driver calls, %zu allocations)\n",
                  driver_points + heap_points, driver_points, heap_points);
    assert_true(driver_points > 400 && heap_points > 60);
}

static void test_pool_sweep__host(void **state) {
    (void)state;
    rondo_log_set_sink(sweep_ignore_line, NULL);
    size_t points = sweep_allocations("host");
    rondo_log_set_sink(NULL, NULL);
    print_message("memory in captures, host: swept %zu points\n", points);
    assert_true(points > 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_sweep__fake_driver),
        cmocka_unit_test(test_pool_sweep__host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
