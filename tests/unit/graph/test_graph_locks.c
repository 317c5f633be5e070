// The replay path takes no lock and no memory, so that threads with graphs of their own never wait
// for each other; nor with generators. Shown in two ways: every pthread_mutex_lock of a replaying
// thread is counted (the linker redirects it to here), and a thread replays while another holds
// every lock that the device has.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <pthread.h>

#include "backend/cuda/driver/cuda_device.h"
#include "backend/host/host_device.h"
#include "base/memory.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_cuda_state.h"
#include "support/fake/fake_random.h"
#include "support/test.h"

enum { REPLAY_COUNT = 1000, NODE_COUNT = 8 };

// ---- counting ---------------------------------------------------------------------------------

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

static _Thread_local bool is_counted;
static _Thread_local size_t lock_count;
static _Thread_local size_t allocation_count;

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
    // The fake driver has a lock of its own, which is no part of the library.
    lock_count += is_counted && mutex != &g_fake.lock;
    return __real_pthread_mutex_lock(mutex);
}

static bool count_allocation(void *user_data) {
    (void)user_data;
    allocation_count += is_counted;
    return false;
}

// ---- a graph ----------------------------------------------------------------------------------

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *fork;
    rondo_event *join;
    rondo_graph *graph;
    uint32_t *memory;
} world;

static void open_world(world *w, const char *name, bool has_branches) {
    *w = (world){0};
    void *memory = NULL;
    OK(rondo_device_open(name, &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    OK(rondo_stream_create(w->device, NULL, &w->side));
    OK(rondo_event_create(w->device, 0, &w->fork));
    OK(rondo_event_create(w->device, 0, &w->join));
    OK(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 4096, &memory));
    w->memory = memory;
    OK(rondo_graph_create(w->device, NULL, &w->graph));
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    if (has_branches) {
        OK(rondo_event_record(w->fork, w->stream));
        OK(rondo_stream_wait_event(w->side, w->fork));
        OK(rondo_stream_fill(w->side, w->memory + 512, 1, 4, 1));
        OK(rondo_event_record(w->join, w->side));
    }
    for (uint32_t i = 0; i < NODE_COUNT; ++i) {
        OK(rondo_stream_fill(w->stream, w->memory, i, 4, 1));
    }
    if (has_branches) {
        OK(rondo_stream_wait_event(w->stream, w->join));
    }
    OK(rondo_graph_capture_end(w->graph));
}

static void close_world(world *w) {
    rondo_graph_destroy(w->graph);
    rondo_event_destroy(w->fork);
    rondo_event_destroy(w->join);
    rondo_stream_destroy(w->side);
    rondo_stream_destroy(w->stream);
    rondo_memory_free(w->device, w->memory);
    rondo_device_release(w->device);
}

// ---- no lock, no memory -----------------------------------------------------------------------

static void count_replays(world *w) {
    // The first replay starts the stream's thread and remembers the stream.
    OK(rondo_graph_replay(w->graph, w->stream));
    OK(rondo_stream_synchronize(w->stream));
    rondo__memory_set_fault(count_allocation, NULL);
    lock_count = 0;
    allocation_count = 0;
    is_counted = true;
    rondo_status status = RONDO_STATUS_OK;
    for (int i = 0; i < REPLAY_COUNT && status == RONDO_STATUS_OK; ++i) {
        status = rondo_graph_replay(w->graph, w->stream);
    }
    is_counted = false;
    rondo__memory_set_fault(NULL, NULL);
    OK(status);
    OK(rondo_stream_synchronize(w->stream));
    assert_int_equal(lock_count, 0);
    assert_int_equal(allocation_count, 0);
}

static void check_counts(const char *name, bool has_branches) {
    world w;
    open_world(&w, name, has_branches);
    count_replays(&w);
    close_world(&w);
}

TEST(test_graph_locks__a_host_replay_takes_none) {
    check_counts("host", false);
    check_counts("host", true);
}

TEST(test_graph_locks__a_cuda_replay_takes_none) {
    fake_cuda_reset(NULL);
    fake_cuda_install();
    check_counts("cuda:0", false);
    check_counts("cuda:0", true);
    fake_cuda_uninstall();
}

static void check_generators(const char *name) {
    world w;
    rondo_generator *generators[3];
    open_world(&w, name, false);
    OK(rondo_graph_reset(w.graph));
    for (uint64_t i = 0; i < 3; ++i) {
        OK(rondo_generator_create(w.device, i, &generators[i]));
    }
    for (size_t count = 1; count <= 3; ++count) {
        OK(rondo_graph_capture_begin(w.graph, w.stream, RONDO_CAPTURE_THREAD_LOCAL));
        for (size_t i = 0; i < count; ++i) {
            OK(rondo_random_words(generators[i], w.stream, w.memory, 4));
        }
        OK(rondo_graph_capture_end(w.graph));
        count_replays(&w);
        OK(rondo_graph_reset(w.graph));
    }
    for (int i = 0; i < 3; ++i) {
        rondo_generator_release(generators[i]);
    }
    close_world(&w);
}

TEST(test_graph_locks__a_replay_with_generators_takes_none) {
    check_generators("host");
    setenv("RONDO_CACHE_DIR", "", 1);
    fake_cuda_reset(NULL);
    fake_random_set_kernels();
    fake_cuda_install();
    fake_cuda_install_compiler();
    check_generators("cuda:0");
    fake_cuda_uninstall();
}

// The counter works: what is known to lock is counted.
TEST(test_graph_locks__a_lock_is_counted) {
    world w;
    open_world(&w, "host", false);
    void *memory = NULL;
    lock_count = 0;
    is_counted = true;
    rondo_status status = rondo_memory_allocate(w.device, RONDO_MEMORY_DEVICE, 64, &memory);
    is_counted = false;
    OK(status);
    assert_true(lock_count > 0);
    rondo_memory_free(w.device, memory);
    close_world(&w);
}

// ---- while every lock is held -----------------------------------------------------------------

typedef struct runner {
    world *world;
    rondo_status status;
    atomic_bool is_done;
} runner;

static void *run_replays(void *data) {
    runner *self = data;
    for (int i = 0; i < REPLAY_COUNT && self->status == RONDO_STATUS_OK; ++i) {
        self->status = rondo_graph_replay(self->world->graph, self->world->stream);
    }
    if (self->status == RONDO_STATUS_OK) {
        self->status = rondo_stream_synchronize(self->world->stream);
    }
    atomic_store(&self->is_done, true);
    return NULL;
}

// Replays on another thread while this one holds the locks; gives it ten seconds.
static void check_progress(world *w, pthread_mutex_t *const *locks, size_t count) {
    runner self = {.world = w};
    pthread_t thread;
    OK(rondo_graph_replay(w->graph, w->stream));
    OK(rondo_stream_synchronize(w->stream));
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(pthread_mutex_lock(locks[i]), 0);
    }
    assert_int_equal(pthread_create(&thread, NULL, run_replays, &self), 0);
    struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 10000 && !atomic_load(&self.is_done); ++i) {
        nanosleep(&pause, NULL);
    }
    bool was_done = atomic_load(&self.is_done);
    for (size_t i = count; i-- > 0;) {
        pthread_mutex_unlock(locks[i]);
    }
    pthread_join(thread, NULL);
    assert_true(was_done);
    OK(self.status);
}

TEST(test_graph_locks__host_replays_run_while_all_locks_are_held) {
    world w;
    open_world(&w, "host", false);
    rondo__host_device *device = rondo__host_device_of(w.device);
    pthread_mutex_t *const locks[] = {&device->lock, &device->capture_lock, &w.device->areas.lock,
                                      &w.device->capture_list_lock};
    check_progress(&w, locks, sizeof locks / sizeof *locks);
    close_world(&w);
}

TEST(test_graph_locks__cuda_replays_run_while_all_locks_are_held) {
    fake_cuda_reset(NULL);
    fake_cuda_install();
    world w;
    open_world(&w, "cuda:0", false);
    pthread_mutex_t *const locks[] = {&rondo__cuda_device_of(w.device)->lock,
                                      &w.device->capture_list_lock};
    check_progress(&w, locks, sizeof locks / sizeof *locks);
    close_world(&w);
    fake_cuda_uninstall();
}

TEST_MAIN()
