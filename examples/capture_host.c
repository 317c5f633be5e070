// Capture a step once and replay it, with plain C functions as kernels. Runs on every machine.
//
// The step reads x, writes y = 2 * x + 1. It is recorded once; afterwards each replay is one call,
// and sees whatever x holds by then.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

enum { COUNT = 4 };

typedef struct step_arguments {
    const float *x;
    float *y;
    float factor;
    float addend;
} step_arguments;

static void scale_and_add(void *arguments) {
    const step_arguments *step = arguments;
    for (int i = 0; i < COUNT; i++) {
        step->y[i] = step->factor * step->x[i] + step->addend;
    }
}

// Prints the error record when a call failed.
static int check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
    }
    return status == RONDO_STATUS_OK;
}

int main(void) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    float x[COUNT] = {0};
    float y[COUNT] = {0};
    const step_arguments arguments = {.x = x, .y = y, .factor = 2.0f, .addend = 1.0f};
    int status = EXIT_FAILURE;

    if (!check(rondo_device_open("host", &device)) ||
        !check(rondo_stream_create(device, NULL, &stream)) ||
        !check(rondo_graph_create(device, NULL, &graph))) {
        goto clean_up;
    }
    // Between begin and end nothing runs: y stays 0.
    if (!check(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL)) ||
        !check(rondo_stream_call_host(stream, "scale_and_add", scale_and_add, &arguments,
                                      sizeof arguments)) ||
        !check(rondo_graph_capture_end(graph))) {
        goto clean_up;
    }
    printf("captured: y[3] = %g\n", (double)y[3]);
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            x[i] = (float)(round * i);
        }
        if (!check(rondo_graph_replay(graph, stream)) || !check(rondo_stream_synchronize(stream))) {
            goto clean_up;
        }
        printf("replay %d: y[3] = %g\n", round, (double)y[3]);
    }
    status = y[3] == 19.0f ? EXIT_SUCCESS : EXIT_FAILURE;

clean_up:
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return status;
}
