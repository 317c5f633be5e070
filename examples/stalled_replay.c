// A watchdog: a replay that hangs is reported, with the place that it has come to, and goes on when
// it can. Here a host function waits for something that comes late.
//
//   stalled_replay
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool has_come, was_told, was_right;

// The work that hangs: data from elsewhere, say.
static void wait_for_data(void *arguments) {
    (void)arguments;
    pthread_mutex_lock(&lock);
    while (!has_come) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

// Called on the watchdog's thread.
static void tell(void *user_data, const rondo_stall *stall) {
    (void)user_data;
    pthread_mutex_lock(&lock);
    printf("%s\n", stall->text);
    was_right = strcmp(stall->graph, "step") == 0 && strcmp(stall->last_label, "load") == 0;
    was_told = was_right;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void record(rondo_graph *graph, rondo_stream *stream, rondo_watchdog *watchdog, float *x) {
    static const char *const parts[] = {"prepare", "load", "compute"};
    check(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < 3; ++i) {
        check(rondo_label_push(stream, parts[i]));
        check(rondo_watchdog_mark(watchdog, graph, stream));
        if (i == 1) {
            check(rondo_stream_call_host(stream, "wait for data", wait_for_data, NULL, 0));
        } else {
            check(rondo_stream_fill(stream, x, 0, 4, 1));
        }
        check(rondo_label_pop(stream));
    }
    check(rondo_graph_capture_end(graph));
}

int main(void) {
    static float x;
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_watchdog *watchdog;
    const rondo_watchdog_options options = {
        .struct_size = sizeof options, .timeout_ns = 20 * 1000 * 1000, .function = tell};
    const rondo_graph_options named = {.struct_size = sizeof named, .label = "step"};
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_graph_create(device, &named, &graph));
    check(rondo_watchdog_create(device, &options, &watchdog));
    record(graph, stream, watchdog, &x);
    check(rondo_watchdog_replay(watchdog, graph, stream));

    pthread_mutex_lock(&lock);
    while (!was_told) {
        pthread_cond_wait(&changed, &lock);
    }
    has_come = true;  // whoever was told sees to it
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    check(rondo_stream_synchronize(stream));
    printf("the replay is over; %llu stalls\n",
           (unsigned long long)rondo_watchdog_get_stall_count(watchdog));

    rondo_graph_destroy(graph);
    rondo_watchdog_destroy(watchdog);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return was_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
