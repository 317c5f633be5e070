// What a capture costs beside the CUDA runtime's own calls: begin, N short kernels, end.
//
//   build/bench/capture_runtime [--quick] [--check]
//
//   --quick   fewer rounds
//   --check   exit status 1 when a goal is missed
//
// The loop is that of the project's baseline program: N dependent kernels of one block with <<<>>>
// between cudaStreamBeginCapture and cudaStreamEndCapture, then instantiation, launch, wait and
// clean-up outside of the time taken. Three ways take turns in one process:
//
//   raw       the runtime's begin and end, kernels with <<<>>>
//   own       Rondo's begin and end, kernels with rondo_stream_launch
//   embedded  Rondo's begin and end on the program's own stream, kernels with <<<>>>
//
// Ratios are taken within a turn; the median over the turns is printed.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "rondo/rondo.h"

#define MUST(call)                                                                    \
    do {                                                                              \
        if ((call) != 0) {                                                            \
            fprintf(stderr, "capture_runtime: %s failed: %s%s\n", #call,              \
                    cudaGetErrorString(cudaPeekAtLastError()), rondo_error_get_last()->message); \
            exit(2);                                                                  \
        }                                                                             \
    } while (0)

static int g_missed_count;

static double now_us() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static double get_median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

__global__ void step(float *output, const float *input, int count, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        output[i] = factor * input[i];
    }
}

// As the kernel lays its parameters out.
struct step_arguments {
    float *output;
    const float *input;
    int count;
    float factor;
};

struct bench {
    cudaStream_t native;
    rondo_device *device;
    rondo_stream *own;
    rondo_stream *wrapped;
    rondo_graph *graph;
    void *function;
    float *memory[2];
};

static void launch_raw(const bench &b, int node_count) {
    for (int i = 0; i < node_count; ++i) {
        step<<<1, 256, 0, b.native>>>(b.memory[i & 1], b.memory[~i & 1], 32, 1.0f);
    }
}

static void launch_own(const bench &b, int node_count) {
    for (int i = 0; i < node_count; ++i) {
        step_arguments arguments = {b.memory[i & 1], b.memory[~i & 1], 32, 1.0f};
        rondo_launch launch = {sizeof launch};
        launch.name = "step";
        launch.function = b.function;
        launch.grid[0] = launch.grid[1] = launch.grid[2] = 1;
        launch.block[0] = 256;
        launch.block[1] = launch.block[2] = 1;
        launch.arguments = &arguments;
        launch.argument_bytes = sizeof arguments;
        MUST(rondo_stream_launch(b.own, &launch));
    }
}

static double time_raw(const bench &b, int node_count) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    double start = now_us();
    MUST(cudaStreamBeginCapture(b.native, cudaStreamCaptureModeThreadLocal));
    launch_raw(b, node_count);
    MUST(cudaStreamEndCapture(b.native, &graph));
    double end = now_us();
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphLaunch(executable, b.native));
    MUST(cudaStreamSynchronize(b.native));
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
    return end - start;
}

// The graph defers its instantiation, as the raw side instantiates outside of the time taken.
static double time_ours(const bench &b, rondo_stream *stream, int node_count,
                        void (*launch)(const bench &, int)) {
    double start = now_us();
    MUST(rondo_graph_capture_begin(b.graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    launch(b, node_count);
    MUST(rondo_graph_capture_end(b.graph));
    double end = now_us();
    MUST(rondo_graph_instantiate(b.graph));
    MUST(rondo_graph_replay(b.graph, stream));
    MUST(rondo_stream_synchronize(stream));
    MUST(rondo_graph_reset(b.graph));
    return end - start;
}

static void report(double ratio) {
    bool is_missed = !(ratio <= 1.1);
    g_missed_count += is_missed;
    printf(" %5.2f %-6s |", ratio, is_missed ? "MISSED" : "ok");
}

static void measure(const bench &b, int node_count, bool is_quick) {
    int turns = node_count <= 10 ? 2000 : node_count <= 100 ? 600 : node_count <= 1000 ? 120 : 30;
    turns = is_quick ? turns / 6 : turns;
    std::vector<double> raw, own, embedded, own_ratio, embedded_ratio;
    for (int turn = 0; turn < turns + turns / 10; ++turn) {
        double times[3];
        for (int i = 0; i < 3; ++i) {
            int way = (turn + i) % 3;
            times[way] = way == 0   ? time_raw(b, node_count)
                         : way == 1 ? time_ours(b, b.own, node_count, launch_own)
                                    : time_ours(b, b.wrapped, node_count, launch_raw);
        }
        if (turn < turns / 10) {
            continue;  // the first ones warm up
        }
        raw.push_back(times[0]);
        own.push_back(times[1]);
        embedded.push_back(times[2]);
        own_ratio.push_back(times[1] / times[0]);
        embedded_ratio.push_back(times[2] / times[0]);
    }
    printf("| %5d | %9.2f | %9.2f | %9.2f |", node_count, get_median(raw), get_median(own),
           get_median(embedded));
    report(get_median(own_ratio));
    report(get_median(embedded_ratio));
    printf("\n");
    fflush(stdout);
}

int main(int argument_count, char **arguments) {
    bool is_quick = false;
    bool must_check = false;
    for (int i = 1; i < argument_count; ++i) {
        is_quick = is_quick || strcmp(arguments[i], "--quick") == 0;
        must_check = must_check || strcmp(arguments[i], "--check") == 0;
    }
    bench b = {};
    if (rondo_device_open("cuda:0", &b.device) != RONDO_STATUS_OK) {
        fprintf(stderr, "capture_runtime: %s\n", rondo_error_get_last()->message);
        return 77;
    }
    MUST(cudaStreamCreateWithFlags(&b.native, cudaStreamNonBlocking));
    MUST(rondo_stream_create(b.device, NULL, &b.own));
    MUST(rondo_stream_wrap(b.device, b.native, &b.wrapped));
    rondo_graph_options options = {sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE_ONLY;
    MUST(rondo_graph_create(b.device, &options, &b.graph));
    MUST(cudaMalloc(&b.memory[0], 1024));
    MUST(cudaMalloc(&b.memory[1], 1024));
    cudaFunction_t function;
    MUST(cudaGetFuncBySymbol(&function, (const void *)step));
    b.function = function;
    int driver = 0;
    cudaDeviceProp properties;
    MUST(cudaDriverGetVersion(&driver));
    MUST(cudaGetDeviceProperties(&properties, 0));
    printf("Rondo %s; %s, CUDA driver %d.%d, runtime %d.%d; goal: at most 1.1 times raw\n\n",
           rondo_version_get_text(), properties.name, driver / 1000, driver % 1000 / 10,
           CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    printf("| nodes | raw us    | own us    | embed. us | own / raw    | embed. / raw |\n"
           "|---|---|---|---|---|---|\n");
    static const int node_counts[] = {1, 8, 10, 50, 100, 500, 1000, 5000};
    for (int node_count : node_counts) {
        measure(b, node_count, is_quick);
    }
    rondo_graph_destroy(b.graph);
    rondo_stream_destroy(b.wrapped);
    rondo_stream_destroy(b.own);
    MUST(cudaStreamDestroy(b.native));
    MUST(cudaFree(b.memory[0]));
    MUST(cudaFree(b.memory[1]));
    rondo_device_release(b.device);
    printf("\n%d goals missed\n", g_missed_count);
    return must_check && g_missed_count > 0 ? 1 : 0;
}
