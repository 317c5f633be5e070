// What a replay costs the CPU beyond the driver: rondo_graph_replay against the bare cuGraphLaunch
// of the same executable, in one process, turn by turn.
//
//   build/bench/replay_cost [CALLS]
//
// Each turn times one call of each kind, in changing order, with the clock's own cost on both
// sides; the stream is drained every 16 turns, so that no call waits for room in the driver's
// queue. The numbers are the median and the 10th and 90th percentile over all turns.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "rondo/rondo.h"

typedef int (*graph_launch_function)(void *executable, void *stream);
typedef int (*set_context_function)(void *context);
typedef int (*get_stream_context_function)(void *stream, void **out_context);

enum { DRAIN_EVERY = 16, WARM_UP_TURNS = 500 };

static const char g_text[] =
    "extern \"C\" __global__ void step(float *x, float f) { x[threadIdx.x] *= f; }\n";

static void must(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        fprintf(stderr, "%s: %s (%s)\n", error->call, error->message, error->driver_name);
        exit(1);
    }
}

static int compare_times(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static uint32_t get_percentile(const uint32_t *sorted, size_t count, unsigned percent) {
    return sorted[(count - 1) * percent / 100];
}

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    void *executable;
    graph_launch_function launch;
} bench;

static uint32_t time_bare(const bench *b) {
    uint64_t start = rondo__clock_now_ns();
    int code = b->launch(b->executable, rondo_stream_get_native(b->stream));
    uint64_t end = rondo__clock_now_ns();
    if (code != 0) {
        fprintf(stderr, "cuGraphLaunch: %d\n", code);
        exit(1);
    }
    return (uint32_t)(end - start);
}

static uint32_t time_rondo(const bench *b) {
    uint64_t start = rondo__clock_now_ns();
    rondo_status status = rondo_graph_replay(b->graph, b->stream);
    uint64_t end = rondo__clock_now_ns();
    must(status);
    return (uint32_t)(end - start);
}

static void run(const bench *b, size_t call_count, uint32_t *bare, uint32_t *ours) {
    for (size_t i = 0; i < WARM_UP_TURNS + call_count; i++) {
        size_t slot = i < WARM_UP_TURNS ? 0 : i - WARM_UP_TURNS;
        if (i % 2 == 0) {
            bare[slot] = time_bare(b);
            ours[slot] = time_rondo(b);
        } else {
            ours[slot] = time_rondo(b);
            bare[slot] = time_bare(b);
        }
        if (i % DRAIN_EVERY == 0) {
            must(rondo_stream_synchronize(b->stream));
        }
    }
    must(rondo_stream_synchronize(b->stream));
    qsort(bare, call_count, sizeof(*bare), compare_times);
    qsort(ours, call_count, sizeof(*ours), compare_times);
}

static void record(bench *b, void *function, void *memory, size_t node_count) {
    struct {
        void *x;
        float f;
    } arguments = {memory, 1.0f};
    rondo_launch launch = {.name = "step",
                           .function = function,
                           .grid = {1, 1, 1},
                           .block = {32, 1, 1},
                           .arguments = &arguments,
                           .argument_bytes = sizeof(void *) + sizeof(float)};
    must(rondo_graph_create(b->device, NULL, &b->graph));
    must(rondo_graph_capture_begin(b->graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (size_t i = 0; i < node_count; i++) {
        must(rondo_stream_launch(b->stream, &launch));
    }
    must(rondo_graph_capture_end(b->graph));
    must(rondo_graph_get_native(b->graph, NULL, &b->executable));
    must(rondo_graph_upload(b->graph, b->stream));
}

static void *find(void *driver, const char *name) {
    void *address = dlsym(driver, name);
    if (address == NULL) {
        fprintf(stderr, "libcuda has no %s\n", name);
        exit(1);
    }
    return address;
}

// A function pointer out of dlsym's object pointer.
#define FIND(driver, name, out_function)                     \
    do {                                                     \
        void *address_ = find((driver), (name));             \
        memcpy((out_function), &address_, sizeof(address_)); \
    } while (0)

int main(int argc, char **argv) {
    static const size_t node_counts[] = {1, 8, 100, 1000};
    size_t call_count = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    uint32_t *bare = calloc(call_count + 1, sizeof(*bare));
    uint32_t *ours = calloc(call_count + 1, sizeof(*ours));
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (call_count == 0 || bare == NULL || ours == NULL || driver == NULL) {
        fprintf(stderr, "replay_cost: needs an NVIDIA driver and a positive number of calls\n");
        return 1;
    }
    bench b = {0};
    rondo_device_info info;
    set_context_function set_context = NULL;
    get_stream_context_function get_stream_context = NULL;
    FIND(driver, "cuGraphLaunch", &b.launch);
    FIND(driver, "cuCtxSetCurrent", &set_context);
    FIND(driver, "cuStreamGetCtx", &get_stream_context);
    must(rondo_device_open("cuda:0", &b.device));
    must(rondo_device_get_info(b.device, &info));
    must(rondo_stream_create(b.device, &b.stream));
    void *context = NULL;
    void *memory = NULL;
    void *function = NULL;
    if (get_stream_context(rondo_stream_get_native(b.stream), &context) != 0 ||
        set_context(context) != 0) {
        fprintf(stderr, "cannot make the context current\n");
        return 1;
    }
    must(rondo_memory_allocate(b.device, RONDO_MEMORY_DEVICE, 256, &memory));
    must(rondo_stream_fill(b.stream, memory, 0, 4, 64));
    must(rondo__device_get_function(b.device, g_text, NULL, 0, "step", &function));

    printf("%s, CUDA driver %d.%d, %zu calls of each kind\n", info.description,
           info.driver_version / 1000, info.driver_version % 1000 / 10, call_count);
    printf("%6s  %28s  %28s  %10s  %10s\n", "nodes", "cuGraphLaunch ns (p10 p90)",
           "rondo_graph_replay (p10 p90)", "over, ns", "no ctx, ns");
    for (size_t i = 0; i < sizeof(node_counts) / sizeof(node_counts[0]); i++) {
        record(&b, function, memory, node_counts[i]);
        run(&b, call_count, bare, ours);
        uint32_t bare_median = get_percentile(bare, call_count, 50);
        uint32_t ours_median = get_percentile(ours, call_count, 50);
        printf("%6zu  %12u (%6u %6u)  %12u (%6u %6u)  %10d", node_counts[i], bare_median,
               get_percentile(bare, call_count, 10), get_percentile(bare, call_count, 90),
               ours_median, get_percentile(ours, call_count, 10),
               get_percentile(ours, call_count, 90), (int)ours_median - (int)bare_median);
        // The same from a thread where no context is current: Rondo selects it and puts it back.
        set_context(NULL);
        for (size_t call = 0; call < call_count; call++) {
            ours[call] = time_rondo(&b);
            if (call % DRAIN_EVERY == 0) {
                must(rondo_stream_synchronize(b.stream));
            }
        }
        set_context(context);
        qsort(ours, call_count, sizeof(*ours), compare_times);
        printf("  %10d\n", (int)get_percentile(ours, call_count, 50) - (int)bare_median);
        rondo_graph_destroy(b.graph);
    }
    rondo_memory_free(b.device, RONDO_MEMORY_DEVICE, memory);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    free(bare);
    free(ours);
    return 0;
}
