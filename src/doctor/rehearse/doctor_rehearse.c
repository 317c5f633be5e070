// doctor/rehearse/doctor_rehearse.c — see doctor_rehearse.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/rehearse/doctor_rehearse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STREAMS_MAX = 16,
    KERNEL_COUNT = 4,
    PARAMETERS_MAX = 96,   // words
    MULTIPROCESSORS = 16,  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    RELAXED = 2,           // CU_STREAM_CAPTURE_MODE_RELAXED
    NON_BLOCKING = 1,      // CU_STREAM_NON_BLOCKING
    SHARED_MAX = 97,       // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    SHARED_EVER = 48 << 10,
    SHARED_ALLOWED = 8,  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    TICKS_MAX = 400,
    REPLAYS_MIN = 5,
    REPLAYS_MAX = 400,
};

static const double EMPTY_US = 0.66;  // CUPTI's time for a kernel without code
static const uint64_t CLOCK_NS = 250000000u;
static const uint64_t WARM_NS = 60000000u;
static const uint64_t MEASURE_NS = 250000000u;
static const size_t BUFFER_MAX = (size_t)256 << 20;  // larger copies are waits
static const unsigned g_words[KERNEL_COUNT] = {4, 16, 32, PARAMETERS_MAX};

#define UUID "cuDeviceGetUuid"  // not every stand-in has it

typedef void *handle;
typedef uint64_t address;

#define DRIVER_MAP(X)                                                                           \
    X(init, "cuInit", (unsigned flags))                                                         \
    X(count_devices, "cuDeviceGetCount", (int *out))                                            \
    X(get_device, "cuDeviceGet", (int *out, int ordinal))                                       \
    X(get_uuid, "cuDeviceGetUuid", (void *out, int device))                                     \
    X(get_attribute, "cuDeviceGetAttribute", (int *out, int attribute, int device))             \
    X(retain, "cuDevicePrimaryCtxRetain", (handle * out, int device))                           \
    X(let_go, "cuDevicePrimaryCtxRelease_v2", (int device))                                     \
    X(push, "cuCtxPushCurrent_v2", (handle context))                                            \
    X(pop, "cuCtxPopCurrent_v2", (handle * out))                                                \
    X(load, "cuModuleLoadData", (handle * out, const void *image))                              \
    X(unload, "cuModuleUnload", (handle module))                                                \
    X(find, "cuModuleGetFunction", (handle * out, handle module, const char *name))             \
    X(allow, "cuFuncSetAttribute", (handle function, int attribute, int value))                 \
    X(launch, "cuLaunchKernel",                                                                 \
      (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,        \
       unsigned bz, unsigned shared, handle stream, void **parameters, void **extra))           \
    X(make_stream, "cuStreamCreate", (handle * out, unsigned flags))                            \
    X(end_stream, "cuStreamDestroy_v2", (handle stream))                                        \
    X(wait_stream, "cuStreamSynchronize", (handle stream))                                      \
    X(make_event, "cuEventCreate", (handle * out, unsigned flags))                              \
    X(end_event, "cuEventDestroy_v2", (handle event))                                           \
    X(record, "cuEventRecord", (handle event, handle stream))                                   \
    X(follow, "cuStreamWaitEvent", (handle stream, handle event, unsigned flags))               \
    X(get_time, "cuEventElapsedTime", (float *out_ms, handle first, handle last))               \
    X(allocate, "cuMemAlloc_v2", (address * out, size_t bytes))                                 \
    X(release, "cuMemFree_v2", (address memory))                                                \
    X(allocate_host, "cuMemHostAlloc", (void **out, size_t bytes, unsigned flags))              \
    X(release_host, "cuMemFreeHost", (void *memory))                                            \
    X(copy, "cuMemcpyDtoDAsync_v2", (address to, address from, size_t bytes, handle stream))    \
    X(bring, "cuMemcpyHtoDAsync_v2", (address to, const void *from, size_t bytes, handle s))    \
    X(fetch, "cuMemcpyDtoHAsync_v2", (void *to, address from, size_t bytes, handle stream))     \
    X(fill, "cuMemsetD8Async", (address to, unsigned char value, size_t count, handle stream))  \
    X(begin, "cuStreamBeginCapture_v2", (handle stream, int mode))                              \
    X(end, "cuStreamEndCapture", (handle stream, handle * out_graph))                           \
    X(instantiate, "cuGraphInstantiateWithFlags", (handle * out, handle graph, uint64_t flags)) \
    X(replay, "cuGraphLaunch", (handle exec, handle stream))                                    \
    X(end_exec, "cuGraphExecDestroy", (handle exec))                                            \
    X(end_graph, "cuGraphDestroy", (handle graph))

#define MEMBER(member, name, parameters) int(*member) parameters;
typedef struct driver {
    DRIVER_MAP(MEMBER)
} driver;

typedef struct stage {
    driver cu;
    const rondo__doctor_part *parts;
    size_t count;
    int device;
    int multiprocessors;
    int shared_max;
    handle context;
    bool is_current;
    bool is_recording;
    handle modules[KERNEL_COUNT];
    handle kernels[KERNEL_COUNT];
    handle streams[STREAMS_MAX];
    uint64_t names[STREAMS_MAX];  // of the program's streams
    bool is_forked[STREAMS_MAX];  // belongs to the capture
    size_t stream_count;
    handle *events;  // of each part, if one of another stream follows it
    uint32_t *of_stream;
    handle sides[2];  // events
    address memory[2];
    void *pinned;
    size_t buffer_bytes;
    double ticks_a_us;
    handle graph;
    handle exec;
    const char *problem;
} stage;

// Keeps the first failure, to be reported.
#define DO(s, member, ...)                                         \
    ((s)->problem == NULL && (s)->cu.member(__VA_ARGS__) != 0      \
         ? (void)((s)->problem = "the driver refused to " #member) \
         : (void)0)

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// ---- the device -------------------------------------------------------------------------------

static bool find_driver(stage *s, rondo__doctor_resolve resolve, void *user_data) {
#define FIND(member, name, parameters)                                                        \
    {                                                                                         \
        void *found = resolve(user_data, name);                                               \
        memcpy(&s->cu.member, &found, sizeof(found));                                         \
        s->problem =                                                                          \
            found == NULL && strcmp(name, UUID) != 0 ? "the driver lacks " name : s->problem; \
    }
    DRIVER_MAP(FIND)
#undef FIND
    return s->problem == NULL;
}

static void find_device(stage *s, const uint64_t *uuid) {
    int count = 0;
    bool is_found = false;
    DO(s, init, 0);
    DO(s, count_devices, &count);
    for (int i = 0; i < count && s->problem == NULL && !is_found; i++) {
        uint64_t own[2] = {0};
        DO(s, get_device, &s->device, i);
        if (s->cu.get_uuid != NULL) {
            DO(s, get_uuid, own, s->device);
        }
        is_found = (uuid[0] | uuid[1]) == 0 || memcmp(own, uuid, sizeof(own)) == 0;
    }
    if (s->problem == NULL && !is_found) {
        s->problem = "the program's GPU is not visible to the doctor";
    }
    DO(s, get_attribute, &s->multiprocessors, MULTIPROCESSORS, s->device);
    DO(s, get_attribute, &s->shared_max, SHARED_MAX, s->device);
    DO(s, retain, &s->context, s->device);
    DO(s, push, s->context);
    s->is_current = s->problem == NULL;
}

// A kernel that waits for so many ticks of its multiprocessor, and has so many words of arguments.
static void load_kernel(stage *s, int which) {
    char text[1024];
    char name[32];
    (void)snprintf(name, sizeof(name), "rondo_wait_%u", g_words[which]);
    (void)snprintf(text, sizeof(text),
                   ".version 7.0\n.target sm_75\n.address_size 64\n"
                   ".visible .entry %s(.param .u64 ticks, .param .align 8 .b8 rest[%u])\n{\n"
                   "    .reg .pred %%p<2>;\n    .reg .b64 %%rd<5>;\n"
                   "    ld.param.u64 %%rd1, [ticks];\n    mov.u64 %%rd2, %%clock64;\nagain:\n"
                   "    mov.u64 %%rd3, %%clock64;\n    sub.s64 %%rd4, %%rd3, %%rd2;\n"
                   "    setp.lt.s64 %%p1, %%rd4, %%rd1;\n    @%%p1 bra again;\n    ret;\n}\n",
                   name, (g_words[which] - 1) * 8);
    DO(s, load, &s->modules[which], text);
    DO(s, find, &s->kernels[which], s->modules[which], name);
    // What every kernel may have is enough where more is refused.
    if (s->problem == NULL && s->cu.allow(s->kernels[which], SHARED_ALLOWED, s->shared_max) != 0) {
        s->shared_max = SHARED_EVER;
    }
}

static void launch_wait(stage *s, size_t words, unsigned blocks, unsigned threads, unsigned shared,
                        uint64_t ticks, handle stream) {
    uint64_t arguments[PARAMETERS_MAX] = {ticks};
    int which = 0;
    while (which < KERNEL_COUNT - 1 && g_words[which] < words) {
        ++which;
    }
    size_t bytes = g_words[which] * sizeof(uint64_t);
    void *extra[] = {(void *)1, arguments, (void *)2, &bytes, NULL};  // CU_LAUNCH_PARAM_...
    DO(s, launch, s->kernels[which], blocks, 1, 1, threads, 1, 1, shared, stream, NULL, extra);
}

// At the rate of a device that has worked for a while; one that idled begins slowly.
static void find_ticks(stage *s) {
    static const uint64_t TICKS = 2000000;
    const uint64_t warm = now_ns() + CLOCK_NS;
    float shortest_ms = 0.0f;
    for (int i = 0; i < 2; i++) {
        DO(s, make_event, &s->sides[i], 0);
    }
    for (int i = 0; s->problem == NULL && (i < 4 || (now_ns() < warm && i < TICKS_MAX)); i++) {
        float ms = 0.0f;
        DO(s, record, s->sides[0], s->streams[0]);
        launch_wait(s, 0, 1, 32, 0, TICKS, s->streams[0]);
        DO(s, record, s->sides[1], s->streams[0]);
        DO(s, wait_stream, s->streams[0]);
        DO(s, get_time, &ms, s->sides[0], s->sides[1]);
        shortest_ms = i == 0 || ms < shortest_ms ? ms : shortest_ms;
    }
    s->ticks_a_us = shortest_ms > 0.0f ? (double)TICKS / ((double)shortest_ms * 1e3) : 0.0;
}

// ---- the stage --------------------------------------------------------------------------------

static bool is_copy(const rondo__doctor_event *call) {
    const rondo__doctor_kind kind = rondo__doctor_call_kind(call->call);
    return kind == RONDO__DOCTOR_KIND_COPY || kind == RONDO__DOCTOR_KIND_COPY_WAIT;
}

static bool is_fill(const rondo__doctor_event *call) {
    const rondo__doctor_kind kind = rondo__doctor_call_kind(call->call);
    return kind == RONDO__DOCTOR_KIND_FILL || kind == RONDO__DOCTOR_KIND_FILL_WAIT;
}

static void make_buffers(stage *s) {
    for (size_t i = 0; i < s->count; i++) {
        const rondo__doctor_event *call = s->parts[i].call;
        const bool is_moved = (is_copy(call) || is_fill(call)) && call->bytes <= BUFFER_MAX;
        s->buffer_bytes = is_moved && call->bytes > s->buffer_bytes ? call->bytes : s->buffer_bytes;
    }
    if (s->buffer_bytes > 0) {
        DO(s, allocate, &s->memory[0], s->buffer_bytes);
        DO(s, allocate, &s->memory[1], s->buffer_bytes);
        DO(s, allocate_host, &s->pinned, s->buffer_bytes, 0);
    }
}

static uint32_t find_stream(stage *s, uint64_t name) {
    uint32_t i = 0;
    while (i < s->stream_count && s->names[i] != name) {
        ++i;
    }
    if (i == s->stream_count && i < STREAMS_MAX) {
        s->names[i] = name;
        DO(s, make_stream, &s->streams[i], NON_BLOCKING);
        s->stream_count += 1;
    }
    return i < STREAMS_MAX ? i : STREAMS_MAX - 1;
}

static bool make_streams(stage *s) {
    s->events = calloc(s->count, sizeof(*s->events));
    s->of_stream = calloc(s->count, sizeof(*s->of_stream));
    if (s->events == NULL || s->of_stream == NULL) {
        s->problem = "there is not enough memory";
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        const rondo__doctor_part *part = &s->parts[i];
        s->of_stream[i] = find_stream(s, part->call->stream);
        for (uint32_t k = 0; k < part->after_count; k++) {
            const uint32_t before = part->after[k];
            if (s->of_stream[before] != s->of_stream[i] && s->events[before] == NULL) {
                DO(s, make_event, &s->events[before], 2);  // CU_EVENT_DISABLE_TIMING
            }
        }
    }
    return s->problem == NULL;
}

// ---- the graph --------------------------------------------------------------------------------

static unsigned count_blocks(const stage *s, const rondo__doctor_event *call) {
    const uint64_t blocks = (uint64_t)call->grid[0] * call->grid[1] * call->grid[2];
    // In one stream nothing shares the device, and few blocks start sooner.
    const uint64_t room = (uint64_t)s->multiprocessors * (s->stream_count > 1 ? 8 : 1);
    return (unsigned)(blocks < 1 ? 1 : blocks < room ? blocks : room);
}

static void add_kernel(stage *s, const rondo__doctor_part *part, handle stream) {
    const rondo__doctor_event *call = part->call;
    const bool is_kernel = rondo__doctor_call_kind(call->call) == RONDO__DOCTOR_KIND_LAUNCH;
    const double wait_us = part->length_us > EMPTY_US ? part->length_us - EMPTY_US : 0.0;
    const uint64_t threads =
        is_kernel ? (uint64_t)call->block[0] * call->block[1] * call->block[2] : 32;
    const bool is_whole = (call->flags & RONDO__DOCTOR_WORDS_WHOLE) != 0;
    const size_t words =
        is_whole || call->word_count < RONDO__DOCTOR_WORDS_MAX ? call->word_count : PARAMETERS_MAX;
    launch_wait(
        s, words, is_kernel ? count_blocks(s, call) : 1,
        (unsigned)(threads < 1      ? 1
                   : threads > 1024 ? 1024
                                    : threads),
        call->shared_bytes < (unsigned)s->shared_max ? call->shared_bytes : (unsigned)s->shared_max,
        (uint64_t)(wait_us * s->ticks_a_us), stream);
}

static void add_part(stage *s, const rondo__doctor_part *part, handle stream) {
    const rondo__doctor_event *call = part->call;
    const size_t bytes = call->bytes;
    const bool is_moved = bytes > 0 && bytes <= s->buffer_bytes;
    if (is_moved && is_fill(call)) {
        DO(s, fill, s->memory[0], 0, bytes, stream);
    } else if (is_moved && (call->call == RONDO__DOCTOR_cuMemcpyHtoDAsync ||
                            call->call == RONDO__DOCTOR_cuMemcpyHtoD)) {
        DO(s, bring, s->memory[0], s->pinned, bytes, stream);
    } else if (is_moved && (call->call == RONDO__DOCTOR_cuMemcpyDtoHAsync ||
                            call->call == RONDO__DOCTOR_cuMemcpyDtoH)) {
        DO(s, fetch, s->pinned, s->memory[0], bytes, stream);
    } else if (is_moved && (call->call == RONDO__DOCTOR_cuMemcpyDtoDAsync ||
                            call->call == RONDO__DOCTOR_cuMemcpyDtoD)) {
        DO(s, copy, s->memory[1], s->memory[0], bytes, stream);
    } else {
        add_kernel(s, part, stream);
    }
}

// Each stream joins the capture by an event of the first one, and comes back to it in the end.
static void capture(stage *s) {
    DO(s, begin, s->streams[0], RELAXED);
    s->is_recording = s->problem == NULL;
    DO(s, record, s->sides[0], s->streams[0]);
    s->is_forked[0] = true;
    for (size_t i = 0; i < s->count && s->problem == NULL; i++) {
        const rondo__doctor_part *part = &s->parts[i];
        const uint32_t own = s->of_stream[i];
        if (!s->is_forked[own]) {
            s->is_forked[own] = true;
            DO(s, follow, s->streams[own], s->sides[0], 0);
        }
        for (uint32_t k = 0; k < part->after_count; k++) {
            if (s->of_stream[part->after[k]] != own) {
                DO(s, follow, s->streams[own], s->events[part->after[k]], 0);
            }
        }
        add_part(s, part, s->streams[own]);
        if (s->events[i] != NULL) {
            DO(s, record, s->events[i], s->streams[own]);
        }
    }
    for (size_t i = 1; i < s->stream_count; i++) {
        DO(s, record, s->sides[1], s->streams[i]);
        DO(s, follow, s->streams[0], s->sides[1], 0);
    }
    DO(s, end, s->streams[0], &s->graph);
    s->is_recording = s->is_recording && s->problem != NULL;
    DO(s, instantiate, &s->exec, s->graph, 0);
}

static int compare_times(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void measure(stage *s, rondo__doctor_rehearsal *out) {
    uint64_t times[REPLAYS_MAX];
    size_t count = 0;
    const uint64_t warm = now_ns() + WARM_NS;
    const uint64_t end = warm + MEASURE_NS;
    uint64_t now = now_ns();
    while (s->problem == NULL && count < REPLAYS_MAX && (now < end || count < REPLAYS_MIN)) {
        const uint64_t begin = now_ns();
        DO(s, replay, s->exec, s->streams[0]);
        DO(s, wait_stream, s->streams[0]);
        now = now_ns();
        if (begin >= warm) {
            times[count++] = now - begin;
        }
    }
    if (s->problem == NULL) {
        qsort(times, count, sizeof(times[0]), compare_times);
        *out = (rondo__doctor_rehearsal){.median_ns = times[count / 2],
                                         .low_ns = times[count / 10],
                                         .high_ns = times[count - 1 - count / 10]};
    }
}

static void clean_up(stage *s) {
    const driver *cu = &s->cu;
    (void)(s->is_recording ? cu->end(s->streams[0], &s->graph) : 0);
    (void)(s->exec != NULL ? cu->end_exec(s->exec) : 0);
    (void)(s->graph != NULL ? cu->end_graph(s->graph) : 0);
    for (size_t i = 0; s->events != NULL && i < s->count; i++) {
        (void)(s->events[i] != NULL ? cu->end_event(s->events[i]) : 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)(s->sides[i] != NULL ? cu->end_event(s->sides[i]) : 0);
        (void)(s->memory[i] != 0 ? cu->release(s->memory[i]) : 0);
    }
    (void)(s->pinned != NULL ? cu->release_host(s->pinned) : 0);
    for (size_t i = 0; i < s->stream_count; i++) {
        (void)(s->streams[i] != NULL ? cu->end_stream(s->streams[i]) : 0);
    }
    for (int i = 0; i < KERNEL_COUNT; i++) {
        (void)(s->modules[i] != NULL ? cu->unload(s->modules[i]) : 0);
    }
    if (s->is_current) {
        handle context = NULL;
        (void)cu->pop(&context);
    }
    if (s->context != NULL) {
        (void)cu->let_go(s->device);
    }
    free(s->events);
    free(s->of_stream);
}

const char *rondo__doctor_rehearse(const rondo__doctor_part *parts, size_t count,
                                   const uint64_t *uuid, rondo__doctor_resolve resolve,
                                   void *user_data, rondo__doctor_rehearsal *out) {
    stage s = {.parts = parts, .count = count};
    if (!find_driver(&s, resolve, user_data)) {
        return s.problem;
    }
    find_device(&s, uuid);
    for (int i = 0; i < KERNEL_COUNT; i++) {
        load_kernel(&s, i);
    }
    if (make_streams(&s)) {
        make_buffers(&s);
        find_ticks(&s);
        capture(&s);
        measure(&s, out);
    }
    clean_up(&s);
    return s.problem;
}
