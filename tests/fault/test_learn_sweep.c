// Fail the nth: learning a step, patching it, checking it and falling back, on the fake driver
// (each driver call and each allocation) and on the host (each allocation). Whatever fails: the
// call wrote a fresh record, nothing stays behind, and the next runs do what they should.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "rondo/rondo.h"

// What a function returns when a STEP in it failed.
#define STEP_RESULT false
#include "support/sweep.h"

enum { BYTES = 1024 };

typedef struct world {
    const char *name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_pool *pool;
    rondo_learned *learned;
    rondo_learned *refused;
    unsigned char *buffers[2];
    uint32_t calls;
} world;

typedef struct addition {
    unsigned char *out;
    const unsigned char *in;
    uint64_t count;
} addition;

static void add(void *arguments) {
    const addition *a = arguments;
    for (uint64_t i = 0; i < a->count; ++i) {
        a->out[i] = (unsigned char)(a->out[i] + a->in[i]);
    }
}

// Arguments: x, y, n. A block of a pool, a host function, a copy and a fill.
static rondo_status issue(rondo_stream *stream, const rondo_value *a, void *user_data) {
    world *w = user_data;
    void *block = NULL;
    RETURN_IF_ERROR(rondo_pool_allocate(w->pool, stream, BYTES, &block));
    const addition sum = {a[1].pointer, block, a[2].unsigned_integer};
    rondo_status status =
        rondo_stream_copy(stream, block, a[0].pointer, BYTES / 2, RONDO_COPY_DEVICE_TO_DEVICE);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, (unsigned char *)a[1].pointer + 16,
                                   (uint32_t)a[2].unsigned_integer, 4, 3);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_call_host(stream, "add", add, &sum, sizeof sum);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_error failure;
        rondo__error_save(&failure);
        (void)rondo_pool_free(w->pool, block);
        rondo__error_restore(&failure);
        return status;
    }
    return rondo_pool_free(w->pool, block);
}

static rondo_status issue_counting(rondo_stream *stream, const rondo_value *a, void *user_data) {
    world *w = user_data;
    const addition sum = {a[1].pointer, a[0].pointer, a[2].unsigned_integer + 0 * ++w->calls};
    RETURN_IF_ERROR(rondo_stream_fill(stream, a[1].pointer, w->calls, 4, 1));
    return rondo_stream_call_host(stream, "add", add, &sum, sizeof sum);
}

static const rondo_argument arguments[] = {
    {.struct_size = sizeof(rondo_argument), .name = "x", .extent = BYTES},
    {.struct_size = sizeof(rondo_argument), .name = "y", .extent = BYTES},
    {.struct_size = sizeof(rondo_argument),
     .name = "n",
     .kind = RONDO_ARGUMENT_UINT32,
     .most.unsigned_integer = BYTES / 2},
};

static bool open_world(world *w) {
    // No draws that are not always made: their number would depend on the machine.
    const rondo_learned_options options = {
        .struct_size = sizeof options, .check_every = 2, .learn_ns = 1, .draws_wanted = 1};
    const rondo_learned_options recaptured = {.struct_size = sizeof options,
                                              .fallback = RONDO_LEARN_RECAPTURE,
                                              .learn_ns = 1,
                                              .draws_wanted = 1};
    STEP(rondo_device_open(w->name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_pool_create(w->device, NULL, &w->pool));
    for (size_t i = 0; i < 2; ++i) {
        STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, BYTES, (void **)&w->buffers[i]));
    }
    STEP(rondo_learned_create(w->device, &options, arguments, 3, issue, w, &w->learned));
    STEP(
        rondo_learned_create(w->device, &recaptured, arguments, 3, issue_counting, w, &w->refused));
    return true;
}

static bool run_all(world *w) {
    for (uint64_t i = 0; i < 3; ++i) {
        const rondo_value values[] = {{.pointer = w->buffers[i % 2]},
                                      {.pointer = w->buffers[1 - i % 2]},
                                      {.unsigned_integer = 100 + 50 * i}};
        STEP(rondo_learned_run(w->learned, w->stream, values, 3));
        STEP(rondo_learned_run(w->refused, w->stream, values, 3));
    }
    STEP(rondo_stream_synchronize(w->stream));
    return true;
}

static void close_world(world *w) {
    rondo_learned_destroy(w->learned);
    rondo_learned_destroy(w->refused);
    if (w->device != NULL) {
        rondo_memory_free(w->device, w->buffers[0]);
        rondo_memory_free(w->device, w->buffers[1]);
    }
    rondo_pool_release(w->pool);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

// What eager calls leave in the buffers.
static void expect_results(const sweep_point *point, world *w) {
    static unsigned char expected[2][BYTES];
    OK(rondo_stream_synchronize(w->stream));
    for (int is_learned = 0; is_learned < 2; ++is_learned) {
        for (size_t k = 0; k < 2; ++k) {
            for (size_t i = 0; i < BYTES; ++i) {
                w->buffers[k][i] = (unsigned char)(i * (k + 3));
            }
        }
        for (uint64_t i = 0; i < 4; ++i) {
            const rondo_value values[] = {{.pointer = w->buffers[i % 2]},
                                          {.pointer = w->buffers[1 - i % 2]},
                                          {.unsigned_integer = 7 + 33 * i}};
            OK(is_learned != 0 ? rondo_learned_run(w->learned, w->stream, values, 3)
                               : issue(w->stream, values, w));
        }
        OK(rondo_stream_synchronize(w->stream));
        for (size_t k = 0; k < 2; ++k) {
            if (is_learned == 0) {
                memcpy(expected[k], w->buffers[k], BYTES);
            } else if (memcmp(expected[k], w->buffers[k], BYTES) != 0) {
                sweep_fail(point, "buffer %zu is not what eager calls leave", k);
            }
        }
    }
}

// After a failing driver call the device may be lost, so there only what was made goes. A capture
// that the driver broke is a step that failed.
static void run_round(const sweep_point *point) {
    world w = {.name = point->device_name};
    const bool is_open = open_world(&w);
    const bool is_done = is_open && run_all(&w);
    const bool has_failed = sweep_lift();
    const bool is_usable =
        point->code == RONDO__CU_SUCCESS || point->code == RONDO__CU_ERROR_OUT_OF_MEMORY;
    if (is_open && is_usable && (has_failed || is_done)) {
        rondo_learned_report report = {.struct_size = sizeof report};
        expect_results(point, &w);
        OK(rondo_learned_get_report(w.learned, &report));
        if (report.state != RONDO_LEARNED_PROVED &&
            !(report.refusal == RONDO_REFUSAL_STEP_FAILED && point->code != RONDO__CU_SUCCESS)) {
            sweep_fail(point, "the step was not learned: %s", report.message);
        }
    }
    close_world(&w);
}

static const sweep_subject subject = {
    .run = run_round,
    .codes = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_UNKNOWN,
              RONDO__CU_ERROR_LAUNCH_FAILED}};

TEST(learning_survives_on_the_fake_driver) {
    const sweep_count count = sweep_on_fake("learned steps", &subject);
    assert_true(count.driver_calls > 100);
    assert_true(count.allocations > 100);
}

TEST(learning_survives_on_the_host) {
    assert_true(sweep_allocations(&subject, "host") > 100);
}

TEST_MAIN()
