// Rondo inside a program that has its own functions and its own memory: no GPU, no model, no ops.
//
// One step of a small simulation: the two halves of a ring are advanced side by side, then their
// borders meet. It is recorded once; the loop then only replays it, and is checked against plain
// calls of the same functions.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

enum { CELLS = 512, STEPS = 1000 };

typedef struct half {
    float *cells;
    int first, last;
} half;

static void advance(void *arguments) {  // the engine's own "kernels"
    const half *h = arguments;
    for (int i = h->first; i < h->last; ++i) {
        h->cells[i] += 0.01f * (1.0f - h->cells[i]) * (float)(i % 7);
    }
}

static void join_borders(void *arguments) {
    float *cells = *(float **)arguments;
    float mean = (cells[0] + cells[CELLS / 2]) / 2;
    cells[0] = cells[CELLS / 2] = mean;
}

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

int main(void) {
    static float cells[CELLS], expected[CELLS];
    float *address = cells, *expected_address = expected;
    half left = {cells, 0, CELLS / 2}, right = {cells, CELLS / 2, CELLS};
    rondo_device *device;
    rondo_stream *main_stream, *side_stream;
    rondo_event *fork, *join;
    rondo_graph *graph;
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &main_stream));
    check(rondo_stream_create(device, NULL, &side_stream));
    check(rondo_event_create(device, 0, &fork));
    check(rondo_event_create(device, 0, &join));
    check(rondo_graph_create(device, NULL, &graph));

    check(rondo_graph_capture_begin(graph, main_stream, RONDO_CAPTURE_THREAD_LOCAL));
    check(rondo_event_record(fork, main_stream));
    check(rondo_stream_wait_event(side_stream, fork));
    check(rondo_stream_call_host(main_stream, "left", advance, &left, sizeof left));
    check(rondo_stream_call_host(side_stream, "right", advance, &right, sizeof right));
    check(rondo_event_record(join, side_stream));
    check(rondo_stream_wait_event(main_stream, join));
    check(rondo_stream_call_host(main_stream, "join", join_borders, &address, sizeof address));
    check(rondo_graph_capture_end(graph));

    half whole = {expected, 0, CELLS};
    for (int step = 0; step < STEPS; ++step) {
        check(rondo_graph_replay(graph, main_stream));
        advance(&whole);
        join_borders(&expected_address);
    }
    check(rondo_stream_synchronize(main_stream));
    int is_same = memcmp(cells, expected, sizeof cells) == 0 && cells[1] > 0.5f;
    printf("%d replays of 3 nodes: %s\n", STEPS, is_same ? "as expected" : "WRONG");
    rondo_graph_destroy(graph), rondo_event_destroy(fork), rondo_event_destroy(join);
    rondo_stream_destroy(main_stream), rondo_stream_destroy(side_stream);
    rondo_device_release(device);
    return is_same ? EXIT_SUCCESS : EXIT_FAILURE;
}
