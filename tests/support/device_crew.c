// SPDX-License-Identifier: Apache-2.0
#include "support/device_crew.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/copy.h"
#include "support/expect_ok.h"
#include "support/short_forms.h"

enum {
    WIDTH = 8,
    BATCHES = 3,
    DEVICES_MAX = 4,
    THREADS_MAX = 8,
    ROUNDS_MAX = 8,
    OUTPUTS = 3,
    COPIED_BYTES = 4096,
};

static const int64_t batches[BATCHES] = {1, 3, 6};
static const char *const output_names[OUTPUTS] = {"y", "places", "sum"};

// ---- the program --------------------------------------------------------------------------------

typedef struct crew_node {
    const char *op;
    const char *inputs[2];
    const char *output;
} crew_node;

static const crew_node nodes[] = {
    {"Neg", {"x"}, "a"},          {"RandomNormalLike", {"x"}, "noise"},
    {"Add", {"a", "noise"}, "b"}, {"Mul", {"b", "half"}, "c"},
    {"Relu", {"c"}, "d"},         {"NonZero", {"d"}, "places"},
    {"Exp", {"c"}, "e"},          {"Add", {"e", "d"}, "y"},
};

// sum: y, doubled three times by a loop.
static rondo_status add_loop(rondo_builder *builder) {
    const rondo_shape scalar = {.rank = 0};
    const int64_t turns = 3;
    const char *const loop_inputs[] = {"turns", "", "y"};
    const char *const sum = "sum";
    rondo_port v = {.struct_size = sizeof v, .name = "v", .dtype = RONDO_DTYPE_F32, .rank = 2};
    v.extent[0] = -1;
    v.extent[1] = WIDTH;
    const char *const twice[] = {"v", "v"};
    const char *const w = "w";
    const char *const more_name = "more";
    const char *const goes_on = "goes_on";
    rondo_builder *body = NULL;
    rondo_status status =
        rondo_builder_add_constant(builder, "turns", RONDO_DTYPE_I64, &scalar, &turns);
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_create_body(builder, "twice", &body);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_input(body, &PORT("i", RONDO_DTYPE_I64));
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_input(body, &PORT("more", RONDO_DTYPE_BOOL));
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_input(body, &v);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_node(body, "Identity", &more_name, 1, &goes_on, 1, NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_node(body, "Add", twice, 2, &w, 1, NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_output(body, "goes_on", NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_output(body, "w", NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_node(builder, "Loop", loop_inputs, 3, &sum, 1,
                                        &WITH(ATTRIBUTE_BODY("body", body)));
    }
    rondo_builder_destroy(body);
    return status;
}

rondo_status device_crew_build(rondo_program **out_program) {
    const rondo_shape scalar = {.rank = 0};
    const float half = 0.5f;
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 2};
    x.symbol[0] = "batch";
    x.extent[1] = WIDTH;
    rondo_builder *builder = NULL;
    rondo_status status = rondo_builder_create(NULL, &builder);
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_input(builder, &x);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_constant(builder, "half", RONDO_DTYPE_F32, &scalar, &half);
    }
    for (size_t n = 0; n < sizeof nodes / sizeof nodes[0] && status == RONDO_STATUS_OK; ++n) {
        status =
            rondo_builder_add_node(builder, nodes[n].op, nodes[n].inputs,
                                   nodes[n].inputs[1] != NULL ? 2 : 1, &nodes[n].output, 1, NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = add_loop(builder);
    }
    for (size_t o = 0; o < OUTPUTS && status == RONDO_STATUS_OK; ++o) {
        status = rondo_builder_add_output(builder, output_names[o], NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_finish(builder, out_program);
    }
    rondo_builder_destroy(builder);
    return status;
}

// ---- runs ---------------------------------------------------------------------------------------

// What one executor makes over the rounds: the sums of the bytes of its outputs.
typedef struct crew_results {
    uint64_t sums[ROUNDS_MAX][BATCHES][OUTPUTS];
} crew_results;

typedef struct crew_member {
    rondo_program *program;
    rondo_device *const *devices;
    size_t device_count;
    size_t rounds;
    rondo_dtype dtype;
    size_t number;
    crew_results results[DEVICES_MAX];
    rondo_status status;
    char message[640];
} crew_member;

static uint64_t hash_bytes(const void *bytes, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; ++i) {
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static rondo_status run_once(rondo_executor *executor, int64_t batch, uint64_t *out_sums) {
    float x[6 * WIDTH];
    rondo_binding feed = {"x", {RONDO_DTYPE_F32, {2, {batch, WIDTH}}, x, NULL, NULL}};
    rondo_binding fetches[OUTPUTS] = {{.name = "y"}, {.name = "places"}, {.name = "sum"}};
    for (int64_t i = 0; i < batch * WIDTH; ++i) {
        x[i] = (float)(i % 7) - 3.0f;
    }
    rondo_status status = rondo_executor_run(executor, &feed, 1, fetches, OUTPUTS);
    for (size_t o = 0; o < OUTPUTS; ++o) {
        if (status == RONDO_STATUS_OK) {
            out_sums[o] =
                hash_bytes(fetches[o].tensor.data, rondo_tensor_get_bytes(&fetches[o].tensor));
        }
        rondo_tensor_deinit(&fetches[o].tensor);
    }
    return status;
}

static rondo_status run_member(crew_member *m, rondo_executor **executors) {
    rondo_executor_options options = {.struct_size = sizeof options, .seed = 3, .dtype = m->dtype};
    options.thread_count = 1;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t d = 0; d < m->device_count && status == RONDO_STATUS_OK; ++d) {
        status = rondo_executor_create(m->program, m->devices[d], &options, &executors[d]);
    }
    for (size_t round = 0; round < m->rounds && status == RONDO_STATUS_OK; ++round) {
        for (size_t b = 0; b < BATCHES && status == RONDO_STATUS_OK; ++b) {
            for (size_t k = 0; k < m->device_count && status == RONDO_STATUS_OK; ++k) {
                const size_t d = (k + m->number) % m->device_count;
                status = run_once(executors[d], batches[b], m->results[d].sums[round][b]);
            }
        }
    }
    return status;
}

static void *be_member(void *data) {
    crew_member *m = data;
    rondo_executor *executors[DEVICES_MAX] = {NULL};
    m->status = run_member(m, executors);
    (void)snprintf(m->message, sizeof m->message, "%s: %s", rondo_error_get_last()->op,
                   rondo_error_get_last()->message);
    for (size_t d = 0; d < m->device_count; ++d) {
        rondo_executor_destroy(executors[d]);
    }
    return NULL;
}

static void check_member(const crew_member *m, const crew_member *alone) {
    if (m->status != RONDO_STATUS_OK) {
        fail_msg("thread %zu: %s", m->number, m->message);
    }
    for (size_t d = 0; d < m->device_count; ++d) {
        for (size_t i = 0; i < m->rounds * BATCHES * OUTPUTS; ++i) {
            const size_t round = i / OUTPUTS / BATCHES;
            const size_t b = i / OUTPUTS % BATCHES;
            const size_t o = i % OUTPUTS;
            if (m->results[d].sums[round][b][o] != alone->results[d].sums[round][b][o]) {
                fail_msg(
                    "thread %zu on %s: \"%s\" of round %zu, batch %d, is not what one thread "
                    "alone gets",
                    m->number, rondo_device_get_name(m->devices[d]), output_names[o], round,
                    (int)batches[b]);
            }
        }
    }
}

void device_crew_run(rondo_program *program, rondo_device *const *devices, size_t device_count,
                     size_t thread_count, size_t rounds, rondo_dtype dtype) {
    static crew_member members[THREADS_MAX + 1];
    pthread_t threads[THREADS_MAX];
    assert_true(thread_count <= THREADS_MAX && device_count <= DEVICES_MAX && rounds <= ROUNDS_MAX);
    for (size_t t = 0; t <= thread_count; ++t) {
        members[t] = (crew_member){.program = program,
                                   .devices = devices,
                                   .device_count = device_count,
                                   .rounds = rounds,
                                   .dtype = dtype,
                                   .number = t};
    }
    crew_member *alone = &members[thread_count];
    (void)be_member(alone);
    check_member(alone, alone);
    for (size_t t = 0; t < thread_count; ++t) {
        assert_int_equal(pthread_create(&threads[t], NULL, be_member, &members[t]), 0);
    }
    for (size_t t = 0; t < thread_count; ++t) {
        pthread_join(threads[t], NULL);
    }
    for (size_t t = 0; t < thread_count; ++t) {
        check_member(&members[t], alone);
    }
}

// ---- copies -------------------------------------------------------------------------------------

void device_crew_pass_round(rondo_device *const *devices, size_t device_count) {
    static unsigned char first[COPIED_BYTES];
    static unsigned char last[COPIED_BYTES];
    rondo_stream *streams[DEVICES_MAX];
    rondo_event *written[DEVICES_MAX];
    void *memory[DEVICES_MAX];
    size_t count = 0;
    for (size_t d = 0; d < device_count; ++d) {
        if (!rondo_device_is_host(devices[d])) {
            OK(rondo_stream_create(devices[d], NULL, &streams[count]));
            OK(rondo_event_create(devices[d], 0, &written[count]));
            OK(rondo_memory_allocate(devices[d], RONDO_MEMORY_DEVICE, COPIED_BYTES,
                                     &memory[count]));
            count += 1;
        }
    }
    for (size_t i = 0; i < sizeof first; ++i) {
        first[i] = (unsigned char)(i * 7 + i / 256);
    }
    OK(rondo_stream_copy(streams[0], memory[0], first, sizeof first, RONDO_COPY_HOST_TO_DEVICE));
    OK(rondo_event_record(written[0], streams[0]));
    // Each copy stands on the stream of the one that receives; the way back on that of the giver.
    for (size_t d = 1; d <= count; ++d) {
        const size_t to = d % count;
        const size_t on = d < count ? to : d - 1;
        OK(rondo_stream_wait_event(streams[on], written[d - 1]));
        OK(rondo_stream_copy_between(streams[on], rondo_stream_get_device(streams[to]), memory[to],
                                     rondo_stream_get_device(streams[d - 1]), memory[d - 1],
                                     COPIED_BYTES));
        OK(rondo_event_record(written[on], streams[on]));
    }
    OK(rondo_stream_wait_event(streams[0], written[count - 1]));
    OK(rondo_stream_copy(streams[0], last, memory[0], sizeof last, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(streams[0]));
    assert_memory_equal(first, last, sizeof first);
    for (size_t d = 0; d < count; ++d) {
        OK(rondo_stream_synchronize(streams[d]));
        rondo_memory_free(rondo_stream_get_device(streams[d]), memory[d]);
        rondo_event_destroy(written[d]);
        rondo_stream_destroy(streams[d]);
    }
}
