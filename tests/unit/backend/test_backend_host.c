// The host backend from inside: rings that fill up, positions, failures of host functions, forks,
// listings of devices.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/failure.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_object.h"
#include "support/test.h"

// The thread sanitizer ends a forked child that starts a thread.
#if defined(__SANITIZE_THREAD__)
#define HAS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_THREAD_SANITIZER 1
#endif
#endif

static rondo_device *open_host(void) {
    rondo_device *device;
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    return device;
}

typedef struct append_arguments {
    uint32_t *list;
    uint32_t index;
    uint32_t value;
    unsigned char padding[500];  // no divisor of the ring's size: commands meet its end
} append_arguments;

static void append_value(void *data) {
    append_arguments *arguments = data;
    arguments->list[arguments->index] = arguments->value + arguments->padding[499];
}

TEST(test_backend_host__a_full_ring_waits_and_keeps_order) {
    enum { COUNT = 20000 };
    rondo_device *device = open_host();
    rondo_stream *stream;
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    uint32_t *list = calloc(COUNT, sizeof *list);
    assert_non_null(list);
    for (uint32_t i = 0; i < COUNT; ++i) {
        append_arguments arguments = {.list = list, .index = i, .value = i};
        arguments.padding[499] = 7;
        assert_int_equal(
            rondo_stream_call_host(stream, "append", append_value, &arguments, sizeof arguments),
            RONDO_STATUS_OK);
    }
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_int_equal(list[i], i + 7);
    }
    free(list);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

typedef struct note_arguments {
    pthread_t *thread;
    atomic_bool *may_go;  // NULL: at once
    bool fails;
} note_arguments;

static void note_thread(void *data) {
    const note_arguments *arguments = data;
    while (arguments->may_go != NULL && !atomic_load(arguments->may_go)) {
        sched_yield();
    }
    *arguments->thread = pthread_self();
    if (arguments->fails) {
        (void)RONDO_FAIL(INVALID, "planted");
        rondo__host_report_failure();
    }
}

static void call(rondo_stream *stream, const note_arguments *arguments) {
    assert_int_equal(
        rondo_stream_call_host(stream, "note", note_thread, arguments, sizeof *arguments),
        RONDO_STATUS_OK);
}

// A replay that may be run by who asks for it is, unless the stream has something else to do.
TEST(test_backend_host__replays_run_here) {
    rondo_device *device = open_host();
    rondo_stream *stream, *other;
    rondo_graph *graph;
    pthread_t thread, first;
    atomic_bool may_go = false;
    note_arguments note = {.thread = &thread};
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_create(device, NULL, &other), RONDO_STATUS_OK);
    for (int fails = 0; fails < 2; ++fails) {
        note.fails = fails != 0;
        assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_STATUS_OK);
        assert_int_equal(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL),
                         RONDO_STATUS_OK);
        call(stream, &note);
        assert_int_equal(rondo_graph_capture_end(graph), RONDO_STATUS_OK);
        const rondo_status want = note.fails ? RONDO_STATUS_INVALID : RONDO_STATUS_OK;
        for (int turn = 0; turn < 2; ++turn) {
            thread = (pthread_t){0};
            bool ran_here;
            assert_int_equal(rondo__graph_replay_here(graph, stream, &ran_here), RONDO_STATUS_OK);
            assert_true(ran_here);
            assert_true(pthread_equal(thread, pthread_self()));
            assert_int_equal(rondo_stream_synchronize(stream), want);
        }
        assert_int_equal(rondo_graph_replay(graph, stream), RONDO_STATUS_OK);
        assert_int_equal(rondo_stream_synchronize(stream), want);
        assert_false(pthread_equal(thread, pthread_self()));

        // Behind other work, and behind a replay on another stream.
        atomic_store(&may_go, false);
        call(stream, &(note_arguments){.thread = &first, .may_go = &may_go});
        bool ran_here;
        assert_int_equal(rondo__graph_replay_here(graph, stream, &ran_here), RONDO_STATUS_OK);
        assert_false(ran_here);
        atomic_store(&may_go, true);
        assert_int_equal(rondo_stream_synchronize(stream), want);
        assert_false(pthread_equal(thread, pthread_self()));
        assert_int_equal(rondo_graph_replay(graph, other), RONDO_STATUS_OK);
        assert_int_equal(rondo__graph_replay_here(graph, stream, &ran_here), RONDO_STATUS_OK);
        assert_false(ran_here);
        assert_int_equal(rondo_stream_synchronize(other), want);
        assert_int_equal(rondo_stream_synchronize(stream), want);
        rondo_graph_destroy(graph);
    }
    rondo_stream_destroy(other);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

// A short copy is made at once, unless the stream has something else to do.
TEST(test_backend_host__short_copies_run_here) {
    rondo_device *device = open_host();
    rondo_stream *stream;
    pthread_t thread;
    atomic_bool may_go = false;
    unsigned char *values;
    const unsigned char source[3] = {1, 2, 3};
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 8, (void **)&values),
                     RONDO_STATUS_OK);
    memset(values, 0, 8);
    memcpy(values + 4, source, sizeof source);
    for (int turn = 0; turn < 2; ++turn) {
        assert_int_equal(
            rondo_stream_copy(stream, values, values + 4, 3, RONDO_COPY_DEVICE_TO_DEVICE),
            RONDO_STATUS_OK);
        assert_int_equal(values[2], 3);
        values[2] = 0;
        call(stream, &(note_arguments){.thread = &thread, .may_go = &may_go});
        assert_int_equal(
            rondo_stream_copy(stream, values, values + 4, 3, RONDO_COPY_DEVICE_TO_DEVICE),
            RONDO_STATUS_OK);
        assert_int_equal(values[2], 0);
        atomic_store(&may_go, true);
        assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
        assert_int_equal(values[2], 3);
        values[2] = 0;
        atomic_store(&may_go, false);
    }
    rondo_memory_free(device, values);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

TEST(test_backend_host__devices_are_shared_and_named) {
    rondo_device *a = open_host();
    rondo_device *b = open_host();
    assert_ptr_equal(a, b);
    assert_string_equal(rondo_device_get_name(a), "host");
    assert_true(rondo_device_is_host(a));
    rondo_device_release(b);
    rondo_device_info info = {.struct_size = sizeof info};
    assert_int_equal(rondo_device_get_info(a, &info), RONDO_STATUS_OK);
    assert_true(info.available);
    assert_true(info.compute_units >= 1);
    assert_true(info.memory_bytes > 0);
    assert_true(info.free_bytes <= info.memory_bytes);
    rondo_device_release(a);

    rondo_device *none = (rondo_device *)1;
    static const char *const wrong[] = {
        "",      "hos",    "host:0",  "host:1",  "gpu",
        "cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cuda:99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        assert_int_equal(rondo_device_open(wrong[i], &none), RONDO_STATUS_INVALID);
        assert_null(none);
        assert_non_null(strstr(rondo_error_get_last()->message, "host, "));
    }
    assert_int_equal(rondo_device_open(NULL, &none), RONDO_STATUS_INVALID);
}

TEST(test_backend_host__listing_names_what_is_missing) {
    size_t count = 0;
    assert_int_equal(rondo_device_list(NULL, 0, &count), RONDO_STATUS_OK);
    assert_true(count >= 2);
    rondo_device_info infos[16] = {{.struct_size = sizeof *infos}};
    size_t again = 0;
    assert_int_equal(rondo_device_list(infos, 16, &again), RONDO_STATUS_OK);
    assert_int_equal(count, again);
    assert_string_equal(infos[0].name, "host");
    for (size_t i = 0; i < count && i < 16; ++i) {
        assert_true(infos[i].available == (infos[i].reason[0] == '\0'));
    }
    rondo_device_info first = {.struct_size = sizeof first};
    assert_int_equal(rondo_device_list(&first, 1, &again), RONDO_STATUS_OK);
    assert_int_equal(again, count);
    assert_int_equal(rondo_device_list(NULL, 1, &again), RONDO_STATUS_INVALID);
}

static void fail_out_of_range(void *data) {
    (void)RONDO_FAIL(BAD_DATA, "index %d is out of range", *(int *)data);
    rondo__error_set_op("gather_7");
    rondo__host_report_failure();
}

TEST(test_backend_host__failures_of_functions_reach_the_wait) {
    rondo_device *device = open_host();
    rondo_stream *stream;
    rondo_stream *other;
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_create(device, NULL, &other), RONDO_STATUS_OK);
    rondo__host_report_failure();  // outside of a host function: nothing
    for (int value = 1; value <= 2; ++value) {
        assert_int_equal(
            rondo_stream_call_host(stream, "gather", fail_out_of_range, &value, sizeof value),
            RONDO_STATUS_OK);
    }
    assert_int_equal(rondo_stream_synchronize(other), RONDO_STATUS_OK);
    uint64_t before = rondo_error_get_last()->sequence;
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_BAD_DATA);
    assert_string_equal(rondo_error_get_last()->message, "index 1 is out of range");
    assert_string_equal(rondo_error_get_last()->op, "gather_7");
    assert_true(rondo_error_get_last()->sequence > before);
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
    int value = 3;
    assert_int_equal(
        rondo_stream_call_host(stream, "gather", fail_out_of_range, &value, sizeof value),
        RONDO_STATUS_OK);
    assert_int_equal(rondo_device_synchronize(device), RONDO_STATUS_BAD_DATA);
    assert_int_equal(rondo_device_synchronize(device), RONDO_STATUS_OK);
    rondo_stream_destroy(other);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

typedef struct wait_arguments {
    rondo_device *device;
    rondo_stream *stream;
    rondo_event *event;
    rondo_status *statuses;  // of the three waits
} wait_arguments;

static void wait_for_itself(void *data) {
    const wait_arguments *arguments = data;
    arguments->statuses[0] = rondo_stream_synchronize(arguments->stream);
    arguments->statuses[1] = rondo_device_synchronize(arguments->device);
    arguments->statuses[2] = rondo_event_synchronize(arguments->event);
}

// These would hang for ever.
TEST(test_backend_host__no_function_waits_for_its_own_stream) {
    rondo_device *device = open_host();
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_event *event;
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_STATUS_OK);
    assert_int_equal(rondo_event_create(device, 0, &event), RONDO_STATUS_OK);
    rondo_status statuses[3];
    const wait_arguments arguments = {device, stream, event, statuses};
    for (int is_replay = 0; is_replay < 2; ++is_replay) {
        memset(statuses, 0, sizeof statuses);
        if (is_replay) {
            assert_int_equal(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL),
                             RONDO_STATUS_OK);
        }
        assert_int_equal(
            rondo_stream_call_host(stream, "wait", wait_for_itself, &arguments, sizeof arguments),
            RONDO_STATUS_OK);
        if (is_replay) {
            assert_int_equal(rondo_graph_capture_end(graph), RONDO_STATUS_OK);
            assert_int_equal(rondo_event_record(event, stream), RONDO_STATUS_OK);  // of before
            assert_int_equal(rondo_graph_replay(graph, stream), RONDO_STATUS_OK);
        }
        assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
        assert_int_equal(statuses[0], RONDO_STATUS_STATE);
        assert_int_equal(statuses[1], RONDO_STATUS_STATE);
        assert_int_equal(statuses[2], RONDO_STATUS_OK);  // complete before the function
    }
    rondo_event_destroy(event);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

TEST(test_backend_host__a_forked_child_starts_afresh) {
#ifdef HAS_THREAD_SANITIZER
    skip();
#endif
    rondo_device *device = open_host();
    rondo_stream *stream;
    rondo_event *event;
    void *memory;
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_event_create(device, 0, &event), RONDO_STATUS_OK);
    assert_int_equal(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 64, &memory),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_fill(stream, memory, 1, 1, 64), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        // The worker thread does not exist here: everything of old answers LOST, nothing hangs.
        alarm(20);
        int failures = 0;
        failures += rondo_stream_fill(stream, memory, 2, 1, 64) != RONDO_STATUS_LOST;
        failures += rondo_stream_synchronize(stream) != RONDO_STATUS_LOST;
        failures += strstr(rondo_error_get_last()->message, "fork") == NULL;
        rondo_memory_free(device, memory);
        rondo_event_destroy(event);
        rondo_stream_destroy(stream);
        rondo_device_release(device);
        rondo_device *fresh = NULL;
        failures += rondo_device_open("host", &fresh) != RONDO_STATUS_OK;
        failures += fresh == device;
        failures += rondo_stream_create(fresh, NULL, &stream) != RONDO_STATUS_OK;
        unsigned char bytes[64] = {0};
        failures +=
            rondo_memory_allocate(fresh, RONDO_MEMORY_PINNED, 64, &memory) != RONDO_STATUS_OK;
        failures += rondo_stream_fill(stream, memory, 3, 1, 64) != RONDO_STATUS_OK;
        failures += rondo_stream_synchronize(stream) != RONDO_STATUS_OK;
        memcpy(bytes, memory, sizeof bytes);
        failures += bytes[63] != 3;
        _exit(failures);
    }
    int code = 0;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
    // The parent goes on as before.
    assert_int_equal(rondo_stream_fill(stream, memory, 4, 1, 64), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
    assert_int_equal(((unsigned char *)memory)[0], 4);
    rondo_memory_free(device, memory);
    rondo_event_destroy(event);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

TEST(test_backend_host__a_lost_device_refuses_all_but_destroy) {
    rondo_device *device = open_host();
    rondo_stream *stream;
    rondo_event *event;
    rondo_graph *graph;
    void *memory;
    bool flag;
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_event_create(device, 0, &event), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_STATUS_OK);
    assert_int_equal(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 64, &memory),
                     RONDO_STATUS_OK);
    atomic_store(&device->is_lost, true);
    rondo_stream *none;
    void *address;
    assert_int_equal(rondo_stream_create(device, NULL, &none), RONDO_STATUS_LOST);
    assert_int_equal(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 64, &address),
                     RONDO_STATUS_LOST);
    assert_int_equal(rondo_stream_fill(stream, memory, 1, 1, 64), RONDO_STATUS_LOST);
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_LOST);
    assert_int_equal(rondo_stream_query(stream, &flag), RONDO_STATUS_LOST);
    assert_int_equal(rondo_stream_wait_event(stream, event), RONDO_STATUS_LOST);
    assert_int_equal(rondo_event_record(event, stream), RONDO_STATUS_LOST);
    assert_int_equal(rondo_event_query(event, &flag), RONDO_STATUS_LOST);
    assert_int_equal(rondo_device_synchronize(device), RONDO_STATUS_LOST);
    assert_int_equal(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL),
                     RONDO_STATUS_LOST);
    rondo_memory_free(device, memory);
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    // Opened again it is whole.
    device = open_host();
    assert_int_equal(rondo_device_synchronize(device), RONDO_STATUS_OK);
    rondo_device_release(device);
}

TEST_MAIN()
