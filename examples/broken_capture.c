// What happens when a step cannot be recorded: it runs at once instead, and the report says what
// was in the way. Plain C functions as kernels; runs on every machine.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

static void add_one(void *arguments) {
    ++**(int **)arguments;
}

// Two layers. The second waits for the first, as a debugging print would: that cannot be recorded.
static rondo_status step(rondo_stream *stream, void *user_data) {
    int *x = user_data;
    rondo_status status = rondo_label_push(stream, "layer1");
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_call_host(stream, "add_one", add_one, &x, sizeof x);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_label_push(stream, "debugging");
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(stream);
    }
    return status;
}

int main(void) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    rondo_step_outcome outcome = RONDO_STEP_NOTHING;
    rondo_capture_report report = {.struct_size = sizeof report};
    char text[2048];
    int x = 0;
    int result = EXIT_FAILURE;
    if (rondo_device_open("host", &device) == RONDO_STATUS_OK &&
        rondo_stream_create(device, NULL, &stream) == RONDO_STATUS_OK &&
        rondo_graph_create(device, NULL, &graph) == RONDO_STATUS_OK &&
        rondo_graph_capture_step(graph, stream, NULL, step, &x, &outcome) == RONDO_STATUS_OK &&
        rondo_graph_get_report(graph, &report) == RONDO_STATUS_OK) {
        rondo_capture_report_format(&report, text, sizeof text);
        printf("%sx is %d all the same\n", text, x);
        result = outcome == RONDO_STEP_RAN_EAGERLY && x == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
    } else {
        fprintf(stderr, "%s\n", rondo_error_get_last()->message);
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return result;
}
