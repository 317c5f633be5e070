// The snippet of the README: a step of two functions, captured once and replayed.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <rondo/rondo.h>

static void add_one(void *argument) {
    ++**(int **)argument;
}

int main(void) {
    int x = 0, *address = &x;
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    if (rondo_device_open("host", &device) || rondo_stream_create(device, NULL, &stream) ||
        rondo_graph_create(device, NULL, &graph) ||
        rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL) ||
        rondo_stream_call_host(stream, "one", add_one, &address, sizeof address) ||
        rondo_stream_call_host(stream, "two", add_one, &address, sizeof address) ||
        rondo_graph_capture_end(graph) ||     // recorded, not yet run: x is 0
        rondo_graph_replay(graph, stream) ||  // both, by one call
        rondo_graph_replay(graph, stream) || rondo_stream_synchronize(stream)) {
        printf("%s\n", rondo_error_get_last()->message);
        return 1;
    }
    printf("x is %d\n", x);
    rondo_graph_destroy(graph), rondo_stream_destroy(stream), rondo_device_release(device);
    return x == 4 ? 0 : 1;
}
