// Work on streams: order, forks and joins, copies, fills, host functions; in every mode.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/conformance.h"

// ---- order --------------------------------------------------------------------------------------

enum { CHAIN_LENGTH = 64, CHAIN_COUNT = 300 };

static rondo_status issue_chain(suite_context *context, rondo_stream *stream, void *data) {
    uint32_t *x = data;
    rondo_status status = rondo_stream_fill(stream, x, 1, 4, CHAIN_COUNT);
    for (uint32_t i = 0; i < CHAIN_LENGTH && status == RONDO_STATUS_OK; ++i) {
        status = suite_affine(context, stream, x, CHAIN_COUNT, 3, i);
    }
    return status;
}

static uint32_t compute_chain(void) {
    uint32_t value = 1;
    for (uint32_t i = 0; i < CHAIN_LENGTH; ++i) {
        value = value * 3 + i;
    }
    return value;
}

SUITE_CASE_IN_MODES(test_conformance_work__runs_in_order) {
    suite_case *run = *state;
    uint32_t *x = suite_allocate(run->context, RONDO_MEMORY_DEVICE, CHAIN_COUNT);
    suite_run(run, issue_chain, x, x);
    ASSERT_VALUE(run->context, x, 0, compute_chain());
    ASSERT_VALUE(run->context, x, CHAIN_COUNT - 1, compute_chain());
    suite_free(run->context, RONDO_MEMORY_DEVICE, x);
}

// ---- forks and joins ----------------------------------------------------------------------------

enum { BRANCH_COUNT = 4 };

typedef struct branches {
    uint32_t *x;  // one element per branch
    uint32_t *sum;
    rondo_stream *streams[BRANCH_COUNT];
    rondo_event *fork;
    rondo_event *joins[BRANCH_COUNT];
} branches;

static void init_branches(suite_context *context, branches *out) {
    out->x = suite_allocate(context, RONDO_MEMORY_DEVICE, 64 * BRANCH_COUNT);
    out->sum = suite_allocate(context, RONDO_MEMORY_DEVICE, 64 * BRANCH_COUNT);
    out->fork = suite_create_event(context, 0);
    for (int i = 0; i < BRANCH_COUNT; ++i) {
        out->streams[i] = suite_create_stream(context);
        out->joins[i] = suite_create_event(context, 0);
    }
}

static void deinit_branches(suite_context *context, branches *work) {
    for (int i = 0; i < BRANCH_COUNT; ++i) {
        rondo_stream_destroy(work->streams[i]);
        rondo_event_destroy(work->joins[i]);
    }
    rondo_event_destroy(work->fork);
    suite_free(context, RONDO_MEMORY_DEVICE, work->x);
    suite_free(context, RONDO_MEMORY_DEVICE, work->sum);
}

// Origin: fill. Branch i, late: x[i] = x[i] * (i + 2) + 5, on its own cache line. Origin: copies
// all.
static rondo_status issue_branches(suite_context *context, rondo_stream *stream, void *data) {
    branches *work = data;
    rondo_status status = suite_spin(context, stream, 200);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, work->x, 7, 4, 64 * BRANCH_COUNT);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_event_record(work->fork, stream);
    }
    for (uint32_t i = 0; i < BRANCH_COUNT && status == RONDO_STATUS_OK; ++i) {
        rondo_stream *branch = work->streams[i];
        status = rondo_stream_wait_event(branch, work->fork);
        if (status == RONDO_STATUS_OK) {
            status = suite_spin(context, branch, 100 * i);
        }
        for (uint32_t j = 0; j < 3 && status == RONDO_STATUS_OK; ++j) {
            status = suite_affine(context, branch, work->x + 64 * i, 64, i + 2, 5);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo_event_record(work->joins[i], branch);
        }
    }
    for (uint32_t i = 0; i < BRANCH_COUNT && status == RONDO_STATUS_OK; ++i) {
        status = rondo_stream_wait_event(stream, work->joins[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_copy(stream, work->sum, work->x, 64 * BRANCH_COUNT * sizeof(uint32_t),
                                   RONDO_COPY_DEVICE_TO_DEVICE);
    }
    return status;
}

SUITE_CASE_IN_MODES(test_conformance_work__forked_branches_join) {
    suite_need_execution(context);
    suite_case *run = *state;
    branches work;
    init_branches(run->context, &work);
    suite_run(run, issue_branches, &work, work.sum);
    for (uint32_t i = 0; i < BRANCH_COUNT; ++i) {
        uint32_t expected = 7;
        for (int j = 0; j < 3; ++j) {
            expected = expected * (i + 2) + 5;
        }
        ASSERT_VALUE(run->context, work.sum, 64 * i, expected);
        ASSERT_VALUE(run->context, work.sum, 64 * i + 63, expected);
    }
    deinit_branches(run->context, &work);
}

// A ladder: two streams hand over to each other many times.
static rondo_status issue_ladder(suite_context *context, rondo_stream *stream, void *data) {
    branches *work = data;
    rondo_stream *other = work->streams[0];
    rondo_status status = rondo_stream_fill(stream, work->x, 1, 4, 64);
    for (uint32_t i = 0; i < 20 && status == RONDO_STATUS_OK; ++i) {
        status = suite_affine(context, stream, work->x, 64, 3, i);
        if (status == RONDO_STATUS_OK) {
            status = rondo_event_record(work->fork, stream);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo_stream_wait_event(other, work->fork);
        }
        if (status == RONDO_STATUS_OK) {
            status = suite_affine(context, other, work->x, 64, 5, i);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo_event_record(work->joins[0], other);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo_stream_wait_event(stream, work->joins[0]);
        }
    }
    return status;
}

SUITE_CASE_IN_MODES(test_conformance_work__streams_hand_over) {
    suite_need_execution(context);
    suite_case *run = *state;
    branches work;
    init_branches(run->context, &work);
    suite_run(run, issue_ladder, &work, work.x);
    uint32_t expected = 1;
    for (uint32_t i = 0; i < 20; ++i) {
        expected = (expected * 3 + i) * 5 + i;
    }
    ASSERT_VALUE(run->context, work.x, 63, expected);
    deinit_branches(run->context, &work);
}

// ---- copies -------------------------------------------------------------------------------------

enum { COPY_COUNT = 100003 };

typedef struct copies {
    uint32_t *pinned_in;
    uint32_t *a;
    uint32_t *b;
    uint32_t *pinned_out;
} copies;

static rondo_status issue_copies(suite_context *context, rondo_stream *stream, void *data) {
    (void)context;
    const copies *work = data;
    size_t bytes = COPY_COUNT * sizeof(uint32_t);
    rondo_status status =
        rondo_stream_copy(stream, work->a, work->pinned_in, bytes, RONDO_COPY_HOST_TO_DEVICE);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_copy(stream, work->b, work->a, bytes, RONDO_COPY_DEVICE_TO_DEVICE);
    }
    // Odd size and alignment.
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_copy(stream, (char *)work->b + 1, (char *)work->a + 6, 1,
                                   RONDO_COPY_DEVICE_TO_DEVICE);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            rondo_stream_copy(stream, work->pinned_out, work->b, bytes, RONDO_COPY_DEVICE_TO_HOST);
    }
    return status;
}

SUITE_CASE_IN_MODES(test_conformance_work__copies_in_all_directions) {
    suite_case *run = *state;
    copies work = {.pinned_in = suite_allocate(context, RONDO_MEMORY_PINNED, COPY_COUNT),
                   .a = suite_allocate(context, RONDO_MEMORY_DEVICE, COPY_COUNT),
                   .b = suite_allocate(context, RONDO_MEMORY_DEVICE, COPY_COUNT),
                   .pinned_out = suite_allocate(context, RONDO_MEMORY_PINNED, COPY_COUNT)};
    for (uint32_t i = 0; i < COPY_COUNT; ++i) {
        work.pinned_in[i] = i * 2654435761u + 0x01020304;
        work.pinned_out[i] = 0;
    }
    suite_run(run, issue_copies, &work, work.b);
    uint32_t first = work.pinned_in[0];
    ((unsigned char *)&first)[1] = ((unsigned char *)work.pinned_in)[6];
    assert_int_equal(work.pinned_out[0], first);
    assert_memory_equal(work.pinned_out + 1, work.pinned_in + 1,
                        (COPY_COUNT - 1) * sizeof(uint32_t));
}

// ---- fills --------------------------------------------------------------------------------------

static rondo_status issue_fills(suite_context *context, rondo_stream *stream, void *data) {
    (void)context;
    unsigned char *bytes = data;
    rondo_status status = rondo_stream_fill(stream, bytes, 0xffffffff, 4, 16);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, bytes + 3, 0xabcdef12, 1, 5);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, bytes + 10, 0xabcdef12, 2, 3);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, bytes + 20, 0xabcdef12, 4, 2);
    }
    return status;
}

SUITE_CASE_IN_MODES(test_conformance_work__fills_of_each_size) {
    suite_case *run = *state;
    uint32_t *x = suite_allocate(run->context, RONDO_MEMORY_DEVICE, 16);
    suite_run(run, issue_fills, x, x);
    unsigned char expected[64];
    memset(expected, 0xff, sizeof expected);
    memset(expected + 3, 0x12, 5);
    for (int i = 0; i < 3; ++i) {
        expected[10 + 2 * i] = 0x12;
        expected[11 + 2 * i] = 0xef;
    }
    for (int i = 0; i < 2; ++i) {
        expected[20 + 4 * i] = 0x12;
        expected[21 + 4 * i] = 0xef;
        expected[22 + 4 * i] = 0xcd;
        expected[23 + 4 * i] = 0xab;
    }
    uint32_t got[16];
    for (size_t i = 0; i < 16; ++i) {
        got[i] = suite_get(run->context, x, i);
    }
    assert_memory_equal(got, expected, sizeof expected);
    suite_free(run->context, RONDO_MEMORY_DEVICE, x);
}

// ---- host functions -----------------------------------------------------------------------------

typedef struct host_note {
    uint32_t *slot;  // pinned
    uint32_t value;
    unsigned char rest[4000];
} host_note;

static void write_note(void *data) {
    const host_note *note = data;
    bool is_aligned = (uintptr_t)data % 16 == 0;
    *note->slot = is_aligned ? note->value + note->rest[3999] : 0xbad;
}

static void write_nothing(void *data) {
    (void)data;
}

// The slot goes to the device by a copy after the function, so order is seen, too.
typedef struct host_work {
    uint32_t *slot;
    uint32_t *x;
} host_work;

static rondo_status issue_host(suite_context *context, rondo_stream *stream, void *data) {
    const host_work *work = data;
    host_note note = {.slot = work->slot, .value = 40};
    note.rest[3999] = 2;
    rondo_status status = suite_spin(context, stream, 200);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_call_host(stream, "nothing", write_nothing, NULL, 0);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_call_host(stream, "note", write_note, &note, sizeof note);
    }
    memset(&note, 0xee, sizeof note);  // the bytes were copied when the call was made
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_copy(stream, work->x, work->slot, sizeof(uint32_t),
                                   RONDO_COPY_HOST_TO_DEVICE);
    }
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(context, stream, work->x, 1, 2, 1);
    }
    return status;
}

SUITE_CASE_IN_MODES(test_conformance_work__host_functions_run_in_order) {
    suite_case *run = *state;
    host_work work = {.slot = suite_allocate(context, RONDO_MEMORY_PINNED, 1),
                      .x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1)};
    *work.slot = 0;
    suite_run(run, issue_host, &work, work.x);
    assert_int_equal(*work.slot, 42);
    ASSERT_VALUE(context, work.x, 0, 85);
}
