// A program that ends in the middle of a capture, because an error in its step took another way out
// (PaddlePaddle issue 78194: an exception in a captured region, and the process died later with a
// driver error). Each variant is a process of its own, which must end as it wanted to.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rondo/graph.h"
#include "rondo/label.h"
#include "rondo/report.h"
#include "support/test.h"

enum { UNAVAILABLE = 77, FAILED = 1, WANTED = 42 };

typedef struct program {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    void *memory;
} program;

#define TRY(call)                                                                         \
    do {                                                                                  \
        if ((call) != RONDO_STATUS_OK) {                                                  \
            fprintf(stderr, "line %d: %s\n", __LINE__, rondo_error_get_last()->message);  \
            exit(rondo_error_get_last()->status == RONDO_STATUS_UNAVAILABLE ? UNAVAILABLE \
                                                                            : FAILED);    \
        }                                                                                 \
    } while (0)

static program begin(const char *device_name) {
    program p = {0};
    TRY(rondo_device_open(device_name, &p.device));
    TRY(rondo_stream_create(p.device, NULL, &p.stream));
    TRY(rondo_memory_allocate(p.device, RONDO_MEMORY_DEVICE, 256, &p.memory));
    TRY(rondo_graph_create(p.device, NULL, &p.graph));
    TRY(rondo_graph_capture_begin(p.graph, p.stream, RONDO_CAPTURE_THREAD_LOCAL));
    TRY(rondo_label_push(p.stream, "step"));
    TRY(rondo_stream_fill(p.stream, p.memory, 1, 4, 8));
    return p;
}

static void end(program *p) {
    rondo_graph_destroy(p->graph);
    rondo_memory_free(p->device, p->memory);
    rondo_stream_destroy(p->stream);
    rondo_device_release(p->device);
}

// What is left as it is when the process ends; leak checkers find it here.
static program left;

// The capture goes on until the process ends.
static void leave_it_open(const char *device_name) {
    left = begin(device_name);
}

static void leave_it_broken(const char *device_name) {
    left = begin(device_name);
    if (rondo_stream_synchronize(left.stream) == RONDO_STATUS_OK) {
        exit(FAILED);
    }
}

// The way out destroys what it knows, the graph last.
static void destroy_in_any_order(const char *device_name) {
    program p = begin(device_name);
    rondo_stream_destroy(p.stream);
    p.stream = NULL;
    end(&p);
}

// The step fails; everything works afterwards.
static rondo_status fail_in_step(rondo_stream *stream, void *user_data) {
    program *p = user_data;
    rondo_status status = rondo_stream_fill(stream, p->memory, 1, 4, 8);
    rondo_graph *none = NULL;
    return status == RONDO_STATUS_OK ? rondo_graph_create(NULL, NULL, &none) : status;
}

static void fail_and_go_on(const char *device_name) {
    program p = begin(device_name);
    rondo_step_outcome outcome;
    rondo_graph_capture_abort(p.graph);
    if (rondo_graph_capture_step(p.graph, p.stream, NULL, fail_in_step, &p, &outcome) !=
        RONDO_STATUS_INVALID) {
        exit(FAILED);
    }
    TRY(rondo_stream_fill(p.stream, p.memory, 1, 4, 8));
    TRY(rondo_stream_synchronize(p.stream));
    end(&p);
}

static void run(const char *device_name, void (*variant)(const char *)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        variant(device_name);
        exit(WANTED);  // with everything that runs at exit
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (!WIFEXITED(result)) {
        fail_msg("the process died of signal %d", WTERMSIG(result));
    }
    if (WEXITSTATUS(result) == UNAVAILABLE && getenv("RONDO_REQUIRE") == NULL) {
        print_message("skipped: %s is not there\n", device_name);
        skip();
    }
    assert_int_equal(WEXITSTATUS(result), WANTED);
}

static void run_all(const char *device_name) {
    run(device_name, leave_it_open);
    run(device_name, leave_it_broken);
    run(device_name, destroy_in_any_order);
    run(device_name, fail_and_go_on);
}

TEST(test_graph_exit__host) {
    run_all("host");
}

TEST(test_graph_exit__cuda) {
    run_all("cuda:0");
}

TEST_MAIN()
