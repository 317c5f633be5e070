// support/learn_world.c — see learn_world.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/learn_world.h"

#include "support/expect_ok.h"

const rondo_argument learn_arguments[LEARN_ARGUMENTS] = {
    {.struct_size = sizeof(rondo_argument), .name = "x", .extent = LEARN_BYTES},
    {.struct_size = sizeof(rondo_argument), .name = "y", .extent = LEARN_BYTES},
    {.struct_size = sizeof(rondo_argument),
     .name = "n",
     .kind = RONDO_ARGUMENT_INT32,
     .least.integer = 1,
     .most.integer = 512},
    {.struct_size = sizeof(rondo_argument), .name = "f", .kind = RONDO_ARGUMENT_FLOAT},
};

void learn_world_open(learn_world *w, const char *device_name) {
    OK(rondo_device_open(device_name, &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    for (size_t i = 0; i < LEARN_BUFFERS; ++i) {
        OK(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, LEARN_BYTES,
                                 (void **)&w->buffers[i]));
        memset(w->buffers[i], 0, LEARN_BYTES);
    }
}

void learn_world_close(learn_world *w) {
    OK(rondo_device_synchronize(w->device));
    for (size_t i = 0; i < LEARN_BUFFERS; ++i) {
        rondo_memory_free(w->device, w->buffers[i]);
    }
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

void learn_world_set(const learn_world *w, rondo_value *values, size_t x, size_t y, int64_t n,
                     float f) {
    values[0].pointer = w->buffers[x];
    values[1].pointer = w->buffers[y];
    values[2].integer = n;
    values[3].single = f;
}

static void fill(const learn_world *w) {
    for (size_t i = 0; i < LEARN_BUFFERS; ++i) {
        for (size_t k = 0; k < LEARN_BYTES; ++k) {
            w->buffers[i][k] = (unsigned char)(k * (7 + i));
        }
    }
}

rondo_learned_report learn_world_report(const rondo_learned *learned) {
    rondo_learned_report report = {.struct_size = sizeof report};
    OK(rondo_learned_get_report(learned, &report));
    return report;
}

void learn_world_expect_same(const learn_world *w, rondo_learned *learned,
                             rondo_learned_function step, void *user_data,
                             const rondo_value *values, size_t value_count) {
    static unsigned char expected[LEARN_BUFFERS][LEARN_BYTES];
    OK(rondo_stream_synchronize(w->stream));  // an earlier run may still write
    fill(w);
    OK(step(w->stream, values, user_data));
    OK(rondo_stream_synchronize(w->stream));
    for (size_t i = 0; i < LEARN_BUFFERS; ++i) {
        memcpy(expected[i], w->buffers[i], LEARN_BYTES);
    }
    fill(w);
    OK(rondo_learned_run(learned, w->stream, values, value_count));
    OK(rondo_stream_synchronize(w->stream));
    for (size_t i = 0; i < LEARN_BUFFERS; ++i) {
        assert_memory_equal(expected[i], w->buffers[i], LEARN_BYTES);
    }
}
