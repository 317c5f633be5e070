// Random numbers under replay: each replay draws anew, and the sequence is that of eager ops. Runs
// on every machine.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

enum { COUNT = 8, ROUNDS = 4 };

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

static void draw(rondo_generator *generator, rondo_stream *stream, float *out) {
    check(rondo_random_normal(generator, stream, RONDO_DTYPE_F32, out, COUNT, 0.0, 1.0));
}

int main(void) {
    static float noise[COUNT], eager[ROUNDS][COUNT], mixed[ROUNDS][COUNT];
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_generator *generator;
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_graph_create(device, NULL, &graph));
    check(rondo_generator_create(device, 42, &generator));

    for (int round = 0; round < ROUNDS; ++round) {
        draw(generator, stream, noise);
        check(rondo_stream_synchronize(stream));
        memcpy(eager[round], noise, sizeof noise);
    }
    // ---- the capture
    check(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    draw(generator, stream, noise);  // recorded: the generator stands where it stood
    check(rondo_graph_capture_end(graph));
    check(rondo_generator_set_seed(generator, 42));
    for (int round = 0; round < ROUNDS; ++round) {
        if (round % 2 == 0) {
            draw(generator, stream, noise);
        } else {
            check(rondo_graph_replay(graph, stream));
        }
        check(rondo_stream_synchronize(stream));
        memcpy(mixed[round], noise, sizeof noise);
    }
    // ---- the comparison
    const int is_same = memcmp(eager, mixed, sizeof eager) == 0;
    const int is_new = memcmp(mixed[0], mixed[1], sizeof noise) != 0;
    printf("eager, replay, eager, replay: %s\n",
           is_same && is_new ? "the numbers of four eager draws" : "WRONG");
    rondo_graph_destroy(graph), rondo_generator_release(generator);
    rondo_stream_destroy(stream), rondo_device_release(device);
    return is_same && is_new ? EXIT_SUCCESS : EXIT_FAILURE;
}
