// A step whose arguments change in every run: its code says nothing of graphs, and is replayed.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

enum { CELLS = 1024, STEPS = 1000 };

typedef struct axpy {
    float *y;
    const float *x;
    float a;
    int32_t n;
} axpy;

static void run_axpy(void *arguments) {  // the program's own "kernels"
    const axpy *k = arguments;
    for (int32_t i = 0; i < k->n; ++i) {
        k->y[i] += k->a * k->x[i];
    }
}

static void run_decay(void *arguments) {
    const axpy *k = arguments;
    for (int32_t i = 0; i < k->n; ++i) {
        k->y[i] *= 1.0f - k->a;
    }
}

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

// ---- what is told of the step
// The step as it is: it puts two kernels on the stream, for a buffer, a rate and a count.
static rondo_status step(rondo_stream *stream, const rondo_value *arguments, void *weights) {
    axpy work = {.y = weights, .x = arguments[0].pointer, .a = arguments[1].single};
    work.n = (int32_t)arguments[2].integer;
    rondo_status status = rondo_stream_call_host(stream, "axpy", run_axpy, &work, sizeof work);
    return status == RONDO_STATUS_OK
               ? rondo_stream_call_host(stream, "decay", run_decay, &work, sizeof work)
               : status;
}

static const rondo_argument arguments[] = {
    {sizeof(rondo_argument), .name = "x", .extent = CELLS * sizeof(float)},  // a pointer
    {sizeof(rondo_argument), .name = "rate", .kind = RONDO_ARGUMENT_FLOAT},
    {sizeof(rondo_argument), .name = "n", .kind = RONDO_ARGUMENT_INT32, .most.integer = CELLS},
};

static void train(rondo_device *device, rondo_stream *stream, float *weights, float *x[2]) {
    rondo_learned *learned;
    check(rondo_learned_create(device, NULL, arguments, 3, step, weights, &learned));
    for (int i = 0; i < STEPS; ++i) {  // learns at the first run, then patches what has changed
        rondo_value values[] = {
            {x[i % 2]}, {.single = 0.1f / (float)(i + 1)}, {.integer = CELLS - i}};
        check(rondo_learned_run(learned, stream, values, 3));
    }
    rondo_learned_destroy(learned);
}
// ---- and what checks it

static float *allocate(rondo_device *device) {
    float *cells;
    check(
        rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, CELLS * sizeof(float), (void **)&cells));
    for (int i = 0; i < CELLS; ++i) {
        cells[i] = (float)(i % 13);
    }
    return cells;
}

int main(void) {
    rondo_device *device;
    rondo_stream *stream;
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    float *weights = allocate(device), *expected = allocate(device);
    float *x[2] = {allocate(device), allocate(device)};
    x[1][5] = 100.0f;
    train(device, stream, weights, x);
    for (int i = 0; i < STEPS; ++i) {
        rondo_value values[] = {
            {x[i % 2]}, {.single = 0.1f / (float)(i + 1)}, {.integer = CELLS - i}};
        check(step(stream, values, expected));
    }
    check(rondo_stream_synchronize(stream));
    int wrong = 0;
    for (int i = 0; i < CELLS; ++i) {
        wrong += !(weights[i] == expected[i]);
    }
    printf("%d steps with other arguments each: %s\n", STEPS, wrong == 0 ? "as eagerly" : "WRONG");
    for (int i = 0; i < 2; ++i) {
        rondo_memory_free(device, x[i]);
    }
    rondo_memory_free(device, weights);
    rondo_memory_free(device, expected);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
