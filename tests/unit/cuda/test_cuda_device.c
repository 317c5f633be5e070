// The CUDA backend on a real GPU, through the public calls: what the fake driver only claims.
// Skipped without a GPU; RONDO_REQUIRE=cuda makes that a failure.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "backend/backend.h"
#include "backend/cuda/driver/cuda_device.h"
#include "base/clock.h"
#include "device/device.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { SKIP = 77, COUNT = 1024 };

static rondo_device *g_device;
static rondo_stream *g_stream;
static float *g_values;  // device memory, COUNT floats
static float *g_pinned;  // the same size

static const char g_text[] =
    "extern \"C\" __global__ void scale(float *x, int n, float f, char c) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) { x[i] = x[i] * f + (c == 'r' ? ADD : 1000); }\n"
    "}\n"
    "struct big { float *x; int values[1000]; };\n"
    "extern \"C\" __global__ void sum_big(big b) {\n"
    "    int sum = 0;\n"
    "    for (int i = 0; i < 1000; i++) { sum += b.values[i]; }\n"
    "    b.x[0] = sum;\n"
    "}\n"
    "extern \"C\" __global__ void use_shared(float *x) {\n"
    "    extern __shared__ float room[];\n"
    "    room[threadIdx.x + 20000] = x[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    x[threadIdx.x] = room[20000 + blockDim.x - 1 - threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void trespass(float *x) { *(volatile float *)16 = *x; }\n";

static void *get_kernel(const char *name) {
    static const char *const options[] = {"-DADD=1"};
    void *function = NULL;
    OK(rondo__device_get_function(g_device, g_text, options, 1, name, &function));
    return function;
}

static rondo_status launch_scale(rondo_stream *stream, float *x, float factor) {
    struct {
        float *x;
        int n;
        float f;
        char c;
    } arguments = {x, COUNT, factor, 'r'};
    rondo_launch launch = LAUNCH("scale", get_kernel("scale"), COUNT / 128, 128, &arguments,
                                 offsetof(__typeof__(arguments), c) + 1);
    return rondo_stream_launch(stream, &launch);
}

static void set_values(float value) {
    for (int i = 0; i < COUNT; i++) {
        g_pinned[i] = value;
    }
    OK(rondo_stream_copy(g_stream, g_values, g_pinned, COUNT * 4, RONDO_COPY_HOST_TO_DEVICE));
    OK(rondo_stream_synchronize(g_stream));
}

static void assert_values(float value) {
    OK(rondo_stream_copy(g_stream, g_pinned, g_values, COUNT * 4, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(g_stream));
    for (int i = 0; i < COUNT; i++) {
        if (!(g_pinned[i] == value)) {
            fail_msg("value %d is %g, not %g", i, (double)g_pinned[i], (double)value);
        }
    }
}

static void assert_stream_is_usable(void) {
    rondo_graph *graph = NULL;
    set_values(2);
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(launch_scale(g_stream, g_values, 3));
    OK(rondo_graph_capture_end(graph));
    OK(rondo_graph_replay(graph, g_stream));
    assert_values(7);
    rondo_graph_destroy(graph);
}

// ---- eager work -------------------------------------------------------------------------------

TEST(test_cuda_device__describes_itself) {
    rondo_device_info info = {.struct_size = sizeof info};
    OK(rondo_device_get_info(g_device, &info));
    print_message("%s, sm_%d%d, driver for CUDA %d.%d, %.1f of %.1f GiB free\n", info.description,
                  (int)info.arch_major, (int)info.arch_minor, (int)info.driver_version / 1000,
                  (int)info.driver_version % 1000 / 10, (double)info.free_bytes / (1 << 30),
                  (double)info.memory_bytes / (1 << 30));
    assert_true(info.free_bytes > 0 && info.free_bytes <= info.memory_bytes);
    assert_int_equal(rondo__cuda_device_of(g_device)->api->capabilities,
                     RONDO__CUDA_CAN_EVERYTHING);
}

TEST(test_cuda_device__launches_packed_arguments) {
    set_values(5);
    OK(launch_scale(g_stream, g_values, 2));
    assert_values(11);

    // 4008 bytes of parameters, eager and recorded.
    struct {
        float *x;
        int values[1000];
    } big = {.x = g_values};
    int sum = 0;
    for (int i = 0; i < 1000; i++) {
        big.values[i] = i % 7;
        sum += i % 7;
    }
    rondo_launch launch = LAUNCH("sum_big", get_kernel("sum_big"), 1, 1, &big, sizeof(big));
    rondo_graph *graph = NULL;
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_launch(g_stream, &launch));
    OK(rondo_graph_capture_end(graph));
    big.values[0] = 1000000;  // the graph has its own copy
    OK(rondo_graph_replay(graph, g_stream));
    OK(rondo_stream_copy(g_stream, g_pinned, g_values, 4, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(g_stream));
    assert_int_equal((int)g_pinned[0], sum);
    OK(rondo_stream_launch(g_stream, &launch));
    OK(rondo_stream_copy(g_stream, g_pinned, g_values, 4, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(g_stream));
    assert_int_equal((int)g_pinned[0], sum + 1000000);
    rondo_graph_destroy(graph);
}

TEST(test_cuda_device__large_shared_memory) {
    for (int i = 0; i < COUNT; i++) {
        g_pinned[i] = (float)i;
    }
    OK(rondo_stream_copy(g_stream, g_values, g_pinned, COUNT * 4, RONDO_COPY_HOST_TO_DEVICE));
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "use_shared",
                           .function = get_kernel("use_shared"),
                           .grid = {1, 1, 1},
                           .block = {COUNT, 1, 1},
                           .shared_bytes = 4 * (20000 + COUNT),
                           .arguments = &g_values,
                           .argument_bytes = sizeof(g_values)};
    OK(rondo_stream_launch(g_stream, &launch));
    OK(rondo_stream_copy(g_stream, g_pinned, g_values, COUNT * 4, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(g_stream));
    assert_true(g_pinned[0] == COUNT - 1 && g_pinned[COUNT - 1] == 0);
    launch.block[0] = 2048;
    assert_int_equal(rondo_stream_launch(g_stream, &launch), RONDO_STATUS_DRIVER);
    assert_string_equal(rondo_error_get_last()->op, "use_shared");
    OK(rondo_stream_synchronize(g_stream));  // not poisoned
}

TEST(test_cuda_device__share_of_shared_memory) {
    OK(rondo__device_prefer_shared(g_device, get_kernel("use_shared"), 100));
    OK(rondo__device_prefer_shared(g_device, get_kernel("use_shared"), 101));  // is refused
}

TEST(test_cuda_device__bad_kernels) {
    void *function = NULL;
    assert_int_equal(rondo__device_get_function(g_device, "not C", NULL, 0, "x", &function),
                     RONDO_STATUS_BAD_DATA);
    static const char *const options[] = {"-DADD=1"};
    assert_int_equal(rondo__device_get_function(g_device, g_text, options, 1, "absent", &function),
                     RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "absent"));
    assert_null(function);
    assert_ptr_equal(get_kernel("scale"), get_kernel("scale"));
}

TEST(test_cuda_device__events_tell_time) {
    rondo_event *start = NULL;
    rondo_event *end = NULL;
    int64_t elapsed_ns = -1;
    OK(rondo_event_create(g_device, RONDO_EVENT_TIMED, &start));
    OK(rondo_event_create(g_device, RONDO_EVENT_TIMED, &end));
    assert_int_equal(rondo_event_get_elapsed_ns(start, end, &elapsed_ns), RONDO_STATUS_STATE);
    const uint64_t start_ns = rondo__clock_now_ns();
    OK(rondo_event_record(start, g_stream));
    OK(launch_scale(g_stream, g_values, 1));
    OK(rondo_event_record(end, g_stream));
    OK(rondo_event_synchronize(end));
    const uint64_t most_ns = rondo__clock_now_ns() - start_ns + 1000000;  // two clocks
    OK(rondo_event_get_elapsed_ns(start, end, &elapsed_ns));
    assert_true(elapsed_ns > 0 && (uint64_t)elapsed_ns < most_ns);
    rondo_event_destroy(start);
    rondo_event_destroy(end);
}

static void count_up(void *arguments) {
    int *counter = NULL;
    memcpy(&counter, arguments, sizeof(counter));
    ++*counter;
}

TEST(test_cuda_device__host_functions) {
    int counter = 0;
    int *target = &counter;
    for (int i = 0; i < 100; i++) {
        OK(rondo_stream_call_host(g_stream, "count", count_up, &target, sizeof(target)));
    }
    OK(rondo_stream_synchronize(g_stream));
    assert_int_equal(counter, 100);
    rondo_graph *graph = NULL;
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_call_host(g_stream, "count", count_up, &target, sizeof(target)));
    OK(rondo_stream_call_host(g_stream, "count", count_up, &target, sizeof(target)));
    OK(rondo_graph_capture_end(graph));
    for (int i = 0; i < 50; i++) {
        OK(rondo_graph_replay(graph, g_stream));
    }
    OK(rondo_stream_synchronize(g_stream));
    assert_int_equal(counter, 200);
    rondo_graph_destroy(graph);
}

// ---- captures ---------------------------------------------------------------------------------

typedef struct collected {
    char text[65536];
    size_t length;
} collected;

static bool collect(void *user_data, const char *text, size_t bytes) {
    collected *c = user_data;
    if (c->length + bytes >= sizeof(c->text)) {
        return false;
    }
    memcpy(c->text + c->length, text, bytes);
    c->length += bytes;
    c->text[c->length] = '\0';
    return true;
}

TEST(test_cuda_device__branches_and_dump) {
    rondo_stream *side = NULL;
    rondo_event *fork = NULL;
    rondo_event *join = NULL;
    rondo_graph *graph = NULL;
    float *other = NULL;
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE;
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, COUNT * 4, (void **)&other));
    OK(rondo_stream_create(g_device, NULL, &side));
    OK(rondo_event_create(g_device, 0, &fork));
    OK(rondo_event_create(g_device, 0, &join));
    OK(rondo_graph_create(g_device, &options, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_copy(g_stream, g_values, g_pinned, COUNT * 4, RONDO_COPY_HOST_TO_DEVICE));
    OK(rondo_event_record(fork, g_stream));
    OK(rondo_stream_wait_event(side, fork));
    OK(rondo_stream_fill(side, other, 0x3f800000, 4, COUNT));
    OK(launch_scale(side, other, 4));
    OK(launch_scale(g_stream, g_values, 2));
    OK(rondo_event_record(join, side));
    OK(rondo_stream_wait_event(g_stream, join));
    OK(rondo_stream_copy(g_stream, other, g_values, COUNT * 2, RONDO_COPY_DEVICE_TO_DEVICE));
    OK(rondo_graph_capture_end(graph));
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 5);
    assert_int_equal(stats.kernel_count, 2);
    assert_int_equal(stats.copy_count, 3);
    print_message("5 nodes: capture %llu ns, instantiate %llu ns, %llu bytes of device memory\n",
                  (unsigned long long)stats.capture_ns, (unsigned long long)stats.instantiate_ns,
                  (unsigned long long)stats.device_bytes);
    static collected dump;
    dump.length = 0;
    OK(rondo_graph_dump(graph, RONDO_TEXT_DOT, collect, &dump));
    print_message("%s", dump.text);
    assert_non_null(strstr(dump.text, "scale"));
    dump.length = 0;
    OK(rondo_graph_dump(graph, RONDO_TEXT_JSON, collect, &dump));
    print_message("%s\n", dump.text);
    for (int i = 0; i < COUNT; i++) {
        g_pinned[i] = 8;
    }
    OK(rondo_graph_replay(graph, g_stream));
    OK(rondo_stream_synchronize(g_stream));
    OK(rondo_stream_copy(g_stream, g_pinned, other, COUNT * 4, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(g_stream));
    assert_true(g_pinned[0] == 17 && g_pinned[COUNT / 2 - 1] == 17);
    assert_true(g_pinned[COUNT / 2] == 5 && g_pinned[COUNT - 1] == 5);
    OK(rondo_graph_instantiate(graph));
    OK(rondo_graph_upload(graph, side));
    OK(rondo_graph_replay(graph, side));
    OK(rondo_stream_synchronize(side));

    // Unjoined.
    OK(rondo_graph_reset(graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_event_record(fork, g_stream));
    OK(rondo_stream_wait_event(side, fork));
    OK(launch_scale(side, other, 4));
    assert_int_equal(rondo_graph_capture_end(graph), RONDO_STATUS_STATE);
    print_message("unjoined: %s\n", rondo_error_get_last()->message);
    OK(rondo_stream_synchronize(side));
    rondo_graph_destroy(graph);
    rondo_event_destroy(fork);
    rondo_event_destroy(join);
    rondo_stream_destroy(side);
    rondo_memory_free(g_device, other);
    assert_stream_is_usable();
}

// Each way to break a capture: the call says so, the end names the culprit, the stream lives on.
static rondo_status break_by_synchronize(void) {
    return rondo_stream_synchronize(g_stream);
}
static rondo_status break_by_query(void) {
    bool is_idle = false;
    return rondo_stream_query(g_stream, &is_idle);
}
static rondo_status break_by_device_wait(void) {
    return rondo_device_synchronize(g_device);
}
static rondo_status break_by_old_event(void) {
    rondo_event *event = NULL;
    rondo_stream *side = NULL;
    OK(rondo_event_create(g_device, 0, &event));
    OK(rondo_stream_create(g_device, NULL, &side));
    OK(rondo_event_record(event, side));
    rondo_status status = rondo_stream_wait_event(g_stream, event);
    rondo_event_destroy(event);
    rondo_stream_destroy(side);
    return status;
}

static rondo_status break_by_pageable_copy(void) {
    static float pageable[16];
    return rondo_stream_copy(g_stream, g_values, pageable, 64, RONDO_COPY_HOST_TO_DEVICE);
}

TEST(test_cuda_device__broken_captures) {
    static const struct {
        const char *name;
        rondo_status (*function)(void);
    } ways[] = {
        {"synchronize", break_by_synchronize},
        {"query", break_by_query},
        {"wait for the device", break_by_device_wait},
        {"an event from outside", break_by_old_event},
        {"a pageable copy", break_by_pageable_copy},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        rondo_graph *graph = NULL;
        OK(rondo_graph_create(g_device, NULL, &graph));
        OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
        OK(launch_scale(g_stream, g_values, 3));
        rondo_status status = ways[i].function();
        print_message("%s: call %d (%s); ", ways[i].name, (int)status,
                      rondo_error_get_last()->driver_name);
        assert_int_equal(status, RONDO_STATUS_STATE);
        status = rondo_graph_capture_end(graph);
        print_message("end %d: %s\n", (int)status, rondo_error_get_last()->message);
        assert_int_equal(status, RONDO_STATUS_STATE);
        rondo_graph_destroy(graph);
        assert_stream_is_usable();
    }
}

TEST(test_cuda_device__own_calls_leave_the_capture_alone) {
    rondo_graph *graph = NULL;
    rondo_stream *other = NULL;
    void *memory = NULL;
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_stream_create(g_device, NULL, &other));
    set_values(1);
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(launch_scale(other, g_values, 0));
    OK(rondo_stream_synchronize(other));
    // Allocating, freeing and compiling are legal in a capture of one's own.
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 1 << 20, &memory));
    rondo_memory_free(g_device, memory);
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_PINNED, 1 << 20, &memory));
    rondo_memory_free(g_device, memory);
    void *function = NULL;
    OK(rondo__device_get_function(g_device, "extern \"C\" __global__ void fresh() {}", NULL, 0,
                                  "fresh", &function));
    OK(launch_scale(g_stream, g_values, 3));
    OK(rondo_graph_capture_end(graph));
    OK(rondo_graph_replay(graph, g_stream));
    assert_values(4);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(other);

    // In a global capture an allocation breaks it.
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_GLOBAL));
    rondo_status status = rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 1 << 20, &memory);
    print_message("allocation in a global capture: %d %s\n", (int)status,
                  rondo_error_get_last()->message);
    assert_int_equal(status, RONDO_STATUS_STATE);
    rondo_graph_capture_abort(graph);
    rondo_graph_destroy(graph);
    assert_stream_is_usable();
}

TEST(test_cuda_device__legacy_stream) {
    rondo_stream *legacy = NULL;
    rondo_graph *graph = NULL;
    OK(rondo_stream_wrap(g_device, NULL, &legacy));
    set_values(1);
    OK(launch_scale(legacy, g_values, 5));
    OK(rondo_stream_synchronize(legacy));
    assert_values(6);
    OK(rondo_graph_create(g_device, NULL, &graph));
    assert_int_equal(rondo_graph_capture_begin(graph, legacy, RONDO_CAPTURE_THREAD_LOCAL),
                     RONDO_STATUS_INVALID);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(legacy);
    rondo_stream *wrapped = NULL;
    OK(rondo_stream_wrap(g_device, rondo_stream_get_native(g_stream), &wrapped));
    OK(launch_scale(wrapped, g_values, 1));
    rondo_stream_destroy(wrapped);
    assert_values(7);
}

TEST(test_cuda_device__updates_executables) {
    const rondo__backend *cuda = &rondo__backend_cuda;
    rondo__template *templates[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        OK(cuda->begin_capture(g_stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
        OK(launch_scale(g_stream, g_values, (float)(i + 1)));
        if (i == 2) {
            OK(launch_scale(g_stream, g_values, 1));
        }
        OK(cuda->end_capture(g_stream, &templates[i]));
    }
    rondo__executable *executable = NULL;
    bool was_updated = false;
    OK(cuda->instantiate(templates[0], &executable));
    OK(cuda->update(executable, templates[1], &was_updated));
    assert_true(was_updated);
    set_values(10);
    OK(cuda->replay(executable, g_stream));
    assert_values(21);
    OK(cuda->update(executable, templates[2], &was_updated));
    assert_false(was_updated);
    cuda->destroy_executable(executable);
    for (int i = 0; i < 3; i++) {
        cuda->destroy_template(templates[i]);
    }
}

// ---- threads ----------------------------------------------------------------------------------

enum { THREADS = 8, ROUNDS = 50 };

static void *capture_and_replay(void *user_data) {
    size_t *failures = user_data;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    float *values = NULL;
    float *pinned = NULL;
    bool is_fine = rondo_stream_create(g_device, NULL, &stream) == RONDO_STATUS_OK &&
                   rondo_graph_create(g_device, NULL, &graph) == RONDO_STATUS_OK &&
                   rondo_memory_allocate(g_device, RONDO_MEMORY_PINNED, COUNT * 4,
                                         (void **)&pinned) == RONDO_STATUS_OK;
    for (int round = 0; is_fine && round < ROUNDS; round++) {
        is_fine = rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, COUNT * 4,
                                        (void **)&values) == RONDO_STATUS_OK &&
                  rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL) ==
                      RONDO_STATUS_OK &&
                  rondo_stream_fill(stream, values, 0x3f800000, 4, COUNT) == RONDO_STATUS_OK &&
                  launch_scale(stream, values, (float)round) == RONDO_STATUS_OK &&
                  rondo_stream_copy(stream, pinned, values, COUNT * 4, RONDO_COPY_DEVICE_TO_HOST) ==
                      RONDO_STATUS_OK &&
                  rondo_graph_capture_end(graph) == RONDO_STATUS_OK &&
                  rondo_graph_replay(graph, stream) == RONDO_STATUS_OK &&
                  rondo_stream_synchronize(stream) == RONDO_STATUS_OK &&
                  pinned[COUNT - 1] == (float)round + 1;
        if (!is_fine) {
            fprintf(stderr, "round %d: %s\n", round, rondo_error_get_last()->message);
        }
        is_fine = rondo_graph_reset(graph) == RONDO_STATUS_OK && is_fine;
        rondo_memory_free(g_device, values);
        values = NULL;
    }
    *failures = is_fine ? 0 : 1;
    rondo_graph_destroy(graph);
    rondo_memory_free(g_device, pinned);
    rondo_stream_destroy(stream);
    return NULL;
}

static const char cluster_text[] =
    "extern \"C\" __global__ void look(unsigned *x) {\n"
    "    asm volatile(\"mov.u32 %0, %%cluster_nctaid.x;\" : \"=r\"(*x));\n"
    "}\n";

// A graph of one kernel that writes how many blocks are in a cluster; 0: asks for no clusters.
static rondo_graph *record_cluster(void *function, uint32_t blocks) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph *graph = NULL;
    rondo__cu_launch_attribute attribute = {
        .id = RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value.cluster = {blocks, 1, 1},
    };
    const rondo__cu_launch_config config = {.grid = {16, 1, 1},
                                            .block = {1, 1, 1},
                                            .stream = rondo_stream_get_native(g_stream),
                                            .attributes = &attribute,
                                            .attribute_count = blocks > 0};
    void *parameters[] = {&g_values};
    OK(rondo_graph_create(g_device, &options, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(
        rondo__cuda_device_of(g_device)->api->cuLaunchKernelEx(&config, function, parameters, NULL),
        RONDO__CU_SUCCESS);
    OK(rondo_graph_capture_end(graph));
    return graph;
}

static void expect_cluster(rondo_graph *graph, uint32_t blocks) {
    uint32_t seen = 0;
    OK(rondo_graph_replay(graph, g_stream));
    OK(rondo_stream_copy(g_stream, g_pinned, g_values, 4, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(g_stream));
    memcpy(&seen, g_pinned, sizeof seen);
    assert_int_equal(seen, blocks);
}

TEST(test_cuda_device__updates_take_other_clusters) {
    static const uint32_t blocks[] = {2, 4, 0, 8, 8, 1};
    rondo_graph *graph = NULL;
    void *function = NULL;
    if (rondo__cuda_device_of(g_device)->arch < 90) {
        skip();
    }
    OK(rondo__device_get_function(g_device, cluster_text, NULL, 0, "look", &function));
    OK(rondo_graph_create(g_device, NULL, &graph));
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) {
        rondo_graph *source = record_cluster(function, blocks[i]);
        rondo_update_report report = {.struct_size = sizeof report};
        OK(rondo_graph_update(graph, source, &report));
        assert_int_equal(report.result, i == 4 ? RONDO_UPDATE_PATCHED : RONDO_UPDATE_INSTANTIATED);
        expect_cluster(graph, blocks[i] > 0 ? blocks[i] : 1);
        rondo_graph_destroy(source);
    }
    rondo_graph_destroy(graph);
}

TEST(test_cuda_device__threads_capture_at_once) {
    pthread_t threads[THREADS];
    size_t failures[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, capture_and_replay, &failures[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(failures[i], 0);
    }
}

// ---- leaks ------------------------------------------------------------------------------------

TEST(test_cuda_device__rounds_do_not_grow) {
    rondo_graph *graph = NULL;
    rondo_device_info before = {.struct_size = sizeof before};
    rondo_device_info after = {.struct_size = sizeof after};
    int counter = 0;
    int *target = &counter;
    OK(rondo_graph_create(g_device, NULL, &graph));
    for (int round = 0; round < 600; round++) {
        if (round == 100) {
            OK(rondo_device_get_info(g_device, &before));
        }
        OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
        for (int i = 0; i < 20; i++) {
            OK(launch_scale(g_stream, g_values, 1));
        }
        OK(rondo_stream_call_host(g_stream, "count", count_up, &target, sizeof(target)));
        OK(rondo_graph_capture_end(graph));
        OK(rondo_graph_replay(graph, g_stream));
        OK(rondo_graph_reset(graph));
    }
    OK(rondo_device_get_info(g_device, &after));
    assert_int_equal(counter, 600);
    print_message("device memory: %lld bytes more after 500 capture-reset rounds\n",
                  (long long)before.free_bytes - (long long)after.free_bytes);
    assert_true(after.free_bytes + (4 << 20) >= before.free_bytes);
    rondo_graph_destroy(graph);
}

// ---- the end of the device --------------------------------------------------------------------

// Last, since it poisons the process's context: the fault surfaces, names its cause, and everything
// can still be destroyed (which happens in main).
TEST(test_cuda_device__fault_loses_the_device) {
    rondo_launch launch =
        LAUNCH("trespass", get_kernel("trespass"), 1, 1, &g_values, sizeof(g_values));
    int counter = 0;
    int *target = &counter;
    OK(rondo_stream_launch(g_stream, &launch));
    // Already LOST when the fault was quick.
    rondo_status status =
        rondo_stream_call_host(g_stream, "count", count_up, &target, sizeof(target));
    assert_true(status == RONDO_STATUS_OK || status == RONDO_STATUS_LOST);
    assert_int_equal(rondo_stream_synchronize(g_stream), RONDO_STATUS_LOST);
    print_message("fault: %s (%s)\n", rondo_error_get_last()->message,
                  rondo_error_get_last()->driver_name);
    assert_int_equal(rondo_stream_synchronize(g_stream), RONDO_STATUS_LOST);
    void *memory = NULL;
    assert_int_equal(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 64, &memory),
                     RONDO_STATUS_LOST);
}

static int open_everything(void) {
    if (rondo_device_open("cuda:0", &g_device) != RONDO_STATUS_OK) {
        const char *required = getenv("RONDO_REQUIRE");
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return required != NULL && strstr(required, "cuda") != NULL ? 1 : SKIP;
    }
    if (rondo_stream_create(g_device, NULL, &g_stream) != RONDO_STATUS_OK ||
        rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, COUNT * 4, (void **)&g_values) !=
            RONDO_STATUS_OK ||
        rondo_memory_allocate(g_device, RONDO_MEMORY_PINNED, COUNT * 4, (void **)&g_pinned) !=
            RONDO_STATUS_OK) {
        printf("failed: %s\n", rondo_error_get_last()->message);
        return 1;
    }
    return 0;
}

int main(void) {
    int result = open_everything();
    if (result == 0) {
        result = RUN_TESTS(NULL, NULL);
    }
    if (g_device != NULL) {
        rondo_memory_free(g_device, g_values);
        rondo_memory_free(g_device, g_pinned);
        rondo_stream_destroy(g_stream);
        rondo_device_release(g_device);
    }
    return result;
}
