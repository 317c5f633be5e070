// The number of threads is a matter of each executor: counted in /proc while its ops have run.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/host/host_stream.h"
#include "base/thread_count.h"
#include "executor/state/plan.h"
#include "rondo/executor_stream.h"
#include "rondo/models.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"

enum { PATH_BYTES = 64 };

static size_t count_tasks(void) {
    DIR *folder = opendir("/proc/self/task");
    size_t count = 0;
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    closedir(folder);
    return count;
}

// A thread that was joined may stand in /proc for a while.
static void expect_tasks(size_t wanted) {
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && count_tasks() != wanted; ++i) {
        nanosleep(&pause, NULL);
    }
    assert_int_equal(count_tasks(), wanted);
}

static void *note_itself(void *data) {
    (void)snprintf(data, PATH_BYTES, "/proc/self/task/%d", (int)gettid());
    return NULL;
}

// The process has `wanted` threads while an executor with `thread_count` is there and has run
// three times.
static void run_with(uint32_t thread_count, size_t wanted) {
    char path[512];
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_port port = {.struct_size = sizeof port};
    rondo_executor_options options = {.struct_size = sizeof options};
    options.thread_count = thread_count;
    (void)snprintf(path, sizeof path, "%s/examples/models/squeezenet1_1/model.onnx",
                   get_source_dir());
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_load_onnx(path, &program), RONDO_STATUS_OK);
    assert_int_equal(rondo_executor_create(program, device, &options, &executor), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_get_input(program, 0, &port), RONDO_STATUS_OK);
    rondo_shape shape = {.rank = port.rank};
    for (int32_t d = 0; d < port.rank; ++d) {
        shape.extent[d] = port.extent[d] >= 0 ? port.extent[d] : 1;
    }
    rondo_binding feed = {.name = port.name};
    assert_int_equal(rondo_tensor_init(port.dtype, &shape, &feed.tensor), RONDO_STATUS_OK);
    for (int run = 0; run < 3; ++run) {
        assert_int_equal(rondo_executor_run(executor, &feed, 1, NULL, 0), RONDO_STATUS_OK);
    }
    expect_tasks(wanted);
    rondo_tensor_deinit(&feed.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST(test_executor_threads__as_many_as_asked_for) {
    // A sanitizer starts a thread of its own with the first one.
    pthread_t thread;
    char task[PATH_BYTES];
    assert_int_equal(pthread_create(&thread, NULL, note_itself, task), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && access(task, F_OK) == 0; ++i) {
        nanosleep(&pause, NULL);
    }
    const size_t before = count_tasks();
    // The stream's worker; then helpers, no more than there are processors for.
    const size_t processors = (size_t)rondo__host_get_processor_count();
    run_with(1, before + 1);
    run_with(3, before + (processors < 3 ? processors : 3));
    // Nothing is left behind for the thread that prepared the plans.
    const int32_t chosen = rondo__host_choose_thread_count(0);
    assert_int_equal(chosen, 0);
}

TEST(test_executor_threads__a_choice_is_one_threads_own) {
    const int32_t before = rondo__host_get_thread_count();
    assert_int_equal(rondo__host_choose_thread_count(before + 5), 0);
    assert_int_equal(rondo__host_get_thread_count(), before + 5);
    assert_int_equal(rondo__host_choose_thread_count(0), before + 5);
    assert_int_equal(rondo__host_get_thread_count(), before);
}

TEST(test_executor_threads__too_many_is_refused) {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    char path[512];
    rondo_executor_options options = {.struct_size = sizeof options};
    options.thread_count = 1025;
    (void)snprintf(path, sizeof path, "%s/tests/cli/models/add_relu.onnx", get_source_dir());
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_load_onnx(path, &program), RONDO_STATUS_OK);
    assert_int_equal(rondo_executor_create(program, device, &options, &executor),
                     RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "thread_count is 1025"));
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// What the stream of an executor of Relu over `count` elements was given in the third run.
static uint64_t count_handed_over(int64_t count, uint32_t thread_count, bool waits) {
    rondo_device *device;
    rondo_builder *builder;
    rondo_program *program;
    rondo_executor *executor;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .thread_count = thread_count};
    rondo_binding feed = {.name = "x"}, fetch = {.name = "y"};
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_create(NULL, &builder), RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, count)),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_add_node(builder, "Relu", (const char *[]){"x"}, 1,
                                            (const char *[]){"y"}, 1, NULL),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_add_output(builder, "y", NULL), RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_finish(builder, &program), RONDO_STATUS_OK);
    assert_int_equal(rondo_executor_create(program, device, &options, &executor), RONDO_STATUS_OK);
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &(rondo_shape){1, {count}}, &feed.tensor),
                     RONDO_STATUS_OK);
    const rondo__host_stream *stream =
        (const rondo__host_stream *)rondo_executor_get_stream(executor);
    uint64_t before = 0;
    // The stream's thread has to be through with what the executor gave it at first.
    assert_int_equal(rondo_stream_synchronize(rondo_executor_get_stream(executor)),
                     RONDO_STATUS_OK);
    for (int run = 0; run < 3; ++run) {
        float *x = feed.tensor.data;
        x[0] = -1;
        x[count - 1] = (float)run;
        before = stream->submitted;
        if (waits) {
            assert_int_equal(rondo_executor_run(executor, &feed, 1, &fetch, 1), RONDO_STATUS_OK);
        } else {
            assert_int_equal(rondo_executor_run_async(executor, &feed, 1, &fetch, 1, NULL),
                             RONDO_STATUS_OK);
            assert_int_equal(rondo_executor_wait(executor), RONDO_STATUS_OK);
        }
        const float *y = fetch.tensor.data;
        assert_true(y[0] == 0 && y[count - 1] == (float)run);
        assert_true(waits ? stream->submitted == before : run > 0 || stream->submitted > before);
    }
    const uint64_t after = stream->submitted;
    rondo_tensor_deinit(&feed.tensor);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_builder_destroy(builder);
    rondo_device_release(device);
    return after - before;
}

// The thread that waits for a run computes it, eager or replayed, and a crew helps there, too.
TEST(test_executor_threads__runs_stay_here) {
    assert_int_equal(count_handed_over(64, 2, true), 0);
    assert_true(count_handed_over(64, 2, false) > 0);
    assert_int_equal(count_handed_over(1 << 20, 2, true), 0);
    assert_int_equal(count_handed_over(1 << 20, 1, true), 0);
}

// An executor of one op over tensors of the host device, whose bytes the processor can read.
typedef struct near_world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_binding feed, fetch;
} near_world;

static void open_near(near_world *w, const char *op, rondo_dtype dtype, const rondo_shape *result,
                      int64_t count) {
    rondo_builder *builder;
    const rondo_executor_options options = {.struct_size = sizeof options, .thread_count = 1};
    const rondo_port port = {.struct_size = sizeof port,
                             .name = "x",
                             .dtype = RONDO_DTYPE_F32,
                             .rank = 1,
                             .extent = {count}};
    *w = (near_world){.feed.name = "x", .fetch.name = "y"};
    assert_int_equal(rondo_device_open("host", &w->device), RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_create(NULL, &builder), RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_add_input(builder, &port), RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_add_node(builder, op, (const char *[]){"x"}, 1,
                                            (const char *[]){"y"}, 1, NULL),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_add_output(builder, "y", NULL), RONDO_STATUS_OK);
    assert_int_equal(rondo_builder_finish(builder, &w->program), RONDO_STATUS_OK);
    rondo_builder_destroy(builder);
    assert_int_equal(rondo_executor_create(w->program, w->device, &options, &w->executor),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32,
                                              &(rondo_shape){1, {count}}, &w->feed.tensor),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_tensor_init_device(w->device, dtype, result, &w->fetch.tensor),
                     RONDO_STATUS_OK);
}

static void close_near(near_world *w) {
    rondo_tensor_deinit(&w->feed.tensor);
    rondo_tensor_deinit(&w->fetch.tensor);
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
}

// Feeds and results of a run that waits, of any size, are copied by the thread that waits: here one
// of a shape that only the run knows, so that no graph has the tensors in place.
TEST(test_executor_threads__copies_stay_here) {
    enum { COUNT = 4096 };
    near_world w;
    open_near(&w, "NonZero", RONDO_DTYPE_I64, &(rondo_shape){2, {1, COUNT}}, COUNT);
    const rondo__host_stream *stream =
        (const rondo__host_stream *)rondo_executor_get_stream(w.executor);
    assert_int_equal(rondo_stream_synchronize(rondo_executor_get_stream(w.executor)),
                     RONDO_STATUS_OK);
    for (int i = 0; i < COUNT; ++i) {
        ((float *)w.feed.tensor.data)[i] = 1;
    }
    const uint64_t before = stream->submitted;
    for (int run = 0; run < 3; ++run) {
        int64_t *y = w.fetch.tensor.data;
        y[COUNT - 1] = 0;
        assert_int_equal(rondo_executor_run(w.executor, &w.feed, 1, &w.fetch, 1), RONDO_STATUS_OK);
        assert_int_equal(y[COUNT - 1], COUNT - 1);
        assert_int_equal(stream->submitted, before);
    }
    close_near(&w);
}

// Branches are never tried with one thread, so bound runs need not wait for that to become one
// replay, which leaves no spans of steps.
TEST(test_executor_threads__one_thread_replays_bound_runs) {
    near_world w;
    rondo_bound_run *bound;
    open_near(&w, "Relu", RONDO_DTYPE_F32, &(rondo_shape){1, {64}}, 64);
    assert_int_equal(rondo_bound_run_create(w.executor, &bound), RONDO_STATUS_OK);
    assert_int_equal(rondo_bound_run_set_feed(bound, "x", &w.feed.tensor), RONDO_STATUS_OK);
    assert_int_equal(rondo_bound_run_set_fetch(bound, "y", &w.fetch.tensor), RONDO_STATUS_OK);
    for (int run = 0; run < 8; ++run) {
        ((float *)w.feed.tensor.data)[63] = (float)run;
        assert_int_equal(rondo_bound_run_run(bound), RONDO_STATUS_OK);
        assert_true(((const float *)w.fetch.tensor.data)[63] == (float)run);
    }
    assert_false(w.executor->main.runs.has_unread_spans);
    rondo_bound_run_destroy(bound);
    close_near(&w);
}

TEST_MAIN()
