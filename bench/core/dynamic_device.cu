// dynamic_device — the step with changing floats, by the raw runtime API: what ways there are.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -rdc=true bench/core/dynamic_device.cu -lcudadevrt -o dynamic_device
//
// 40 000 steps; a step is twice { out = 1.004 in; in = 1.004 out; out = f in; in = f out } over 32
// floats, one block of 256 threads, with another f in each step. Each way runs five times in turn;
// the table has the medians, and every way must leave the same bits.
//
//   launches        no graph
//   recapture       capture again, update the executable, launch
//   patch           set the parameters of the four nodes, launch
//   patch overlap   the same with programmatic edges: a kernel starts early and waits by itself
//   device          a kernel at the beginning sets them (device-updatable nodes), launch alone
//   device overlap  both
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                            \
    do {                                                                       \
        cudaError_t error_ = (call);                                           \
        if (error_ != cudaSuccess) {                                           \
            fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(error_)); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

enum { STEPS = 40000, TURNS = 5, KERNELS = 8, CHANGING = 4, COUNT = 32 };

__device__ cudaGraphDeviceNode_t g_nodes[CHANGING];

template <bool OVERLAPS>
__global__ void scale(float *out, const float *in, int n, float f) {
    if (OVERLAPS) {
        cudaGridDependencySynchronize();
        cudaTriggerProgrammaticLaunchCompletion();
    }
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = f * in[i];
    }
}

// Near 1 / 1.004, so that the floats stay finite. As the host computes it: no fused multiply and
// add.
__host__ __device__ static inline float factor_of(unsigned step) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(0.996f, __fmul_rn(0.000001f, (float)(step % 1000)));
#else
    volatile float product = 0.000001f * (float)(step % 1000);
    return 0.996f + product;
#endif
}

__global__ void choose(unsigned *step, size_t offset) {
    float f = factor_of(*step);
    int i = threadIdx.x;
    if (i < CHANGING) {
        cudaGraphKernelNodeSetParam(g_nodes[i], offset, &f, sizeof f);
    }
    __syncthreads();
    if (i == 0) {
        *step += 1;
    }
}

static float *g_x, *g_y;
static unsigned *g_step;
static cudaStream_t g_stream;

static double now() {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static void launch(bool overlaps, bool is_updatable, cudaGraphDeviceNode_t *node, float *out,
                   const float *in, float f) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(256);
    config.stream = g_stream;
    config.attrs = attributes;
    if (overlaps) {
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    int updatable = -1;
    if (is_updatable) {
        updatable = (int)config.numAttrs;
        attributes[config.numAttrs].id = cudaLaunchAttributeDeviceUpdatableKernelNode;
        attributes[config.numAttrs++].val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    }
    CHECK(overlaps ? cudaLaunchKernelEx(&config, scale<true>, out, in, (int)COUNT, f)
                   : cudaLaunchKernelEx(&config, scale<false>, out, in, (int)COUNT, f));
    if (node != nullptr) {
        *node = attributes[updatable].val.deviceUpdatableKernelNode.devNode;
    }
}

static void step(bool overlaps, bool is_updatable, cudaGraphDeviceNode_t *nodes, float f) {
    for (int i = 0, changing = 0; i < KERNELS; ++i) {
        const bool changes = i % 4 >= 2;
        launch(overlaps, changes && is_updatable,
               changes && is_updatable ? &nodes[changing++] : nullptr, i % 2 ? g_x : g_y,
               i % 2 ? g_y : g_x, changes ? f : 1.004f);
    }
}

static void start() {
    float ones[COUNT];
    for (float &x : ones) {
        x = 1e-30f;
    }
    unsigned zero = 0;
    CHECK(cudaMemcpy(g_x, ones, sizeof ones, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g_step, &zero, sizeof zero, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
}

typedef struct result {
    double ms;  // until all is done
    double cpu_ms;
    float x;
} result;

static result finish(double begin) {
    result r;
    r.cpu_ms = now() - begin;
    CHECK(cudaStreamSynchronize(g_stream));
    r.ms = now() - begin;
    CHECK(cudaMemcpy(&r.x, g_x, sizeof r.x, cudaMemcpyDeviceToHost));
    return r;
}

static cudaGraph_t record(bool overlaps, bool is_updatable, float f) {
    cudaGraph_t graph;
    cudaGraphDeviceNode_t nodes[CHANGING] = {};
    CHECK(cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeThreadLocal));
    if (is_updatable) {
        // The offset of f among the parameters: two pointers and an int before it.
        choose<<<1, 32, 0, g_stream>>>(g_step, 20);
    }
    step(overlaps, is_updatable, nodes, f);
    CHECK(cudaStreamEndCapture(g_stream, &graph));
    if (is_updatable) {
        CHECK(cudaMemcpyToSymbol(g_nodes, nodes, sizeof nodes));
    }
    return graph;
}

static result run_launches() {
    start();
    double begin = now();
    for (unsigned i = 0; i < STEPS; ++i) {
        step(false, false, nullptr, factor_of(i));
    }
    return finish(begin);
}

static result run_recapture() {
    start();
    cudaGraph_t graph = record(false, false, 1.0f);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    double begin = now();
    for (unsigned i = 0; i < STEPS; ++i) {
        cudaGraphExecUpdateResultInfo info;
        graph = record(false, false, factor_of(i));
        CHECK(cudaGraphExecUpdate(exec, graph, &info));
        CHECK(cudaGraphDestroy(graph));
        CHECK(cudaGraphLaunch(exec, g_stream));
    }
    result r = finish(begin);
    CHECK(cudaGraphExecDestroy(exec));
    return r;
}

static result run_patch(bool overlaps) {
    start();
    cudaGraph_t graph = record(overlaps, false, 1.0f);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    cudaGraphNode_t nodes[KERNELS];
    size_t count = KERNELS;
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    cudaKernelNodeParams params[KERNELS];
    for (int i = 0; i < KERNELS; ++i) {
        CHECK(cudaGraphKernelNodeGetParams(nodes[i], &params[i]));
    }
    double begin = now();
    for (unsigned i = 0; i < STEPS; ++i) {
        float f = factor_of(i);
        for (int k = 0; k < KERNELS; ++k) {
            if (k % 4 >= 2) {
                void *arguments[] = {params[k].kernelParams[0], params[k].kernelParams[1],
                                     params[k].kernelParams[2], &f};
                cudaKernelNodeParams changed = params[k];
                changed.kernelParams = arguments;
                CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[k], &changed));
            }
        }
        CHECK(cudaGraphLaunch(exec, g_stream));
    }
    result r = finish(begin);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return r;
}

static result run_device(bool overlaps) {
    start();
    cudaGraph_t graph = record(overlaps, true, 1.0f);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, g_stream));
    CHECK(cudaStreamSynchronize(g_stream));
    double begin = now();
    for (unsigned i = 0; i < STEPS; ++i) {
        CHECK(cudaGraphLaunch(exec, g_stream));
    }
    result r = finish(begin);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return r;
}

int main() {
    CHECK(cudaMalloc(&g_x, 1024));
    CHECK(cudaMalloc(&g_y, 1024));
    CHECK(cudaMalloc(&g_step, sizeof *g_step));
    CHECK(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking));
    static const char *const names[] = {"launches",      "recapture", "patch",
                                        "patch overlap", "device",    "device overlap"};
    std::vector<double> ms[6], cpu[6];
    float x[6];
    for (int turn = 0; turn < TURNS; ++turn) {
        const result results[] = {run_launches(),  run_recapture(),   run_patch(false),
                                  run_patch(true), run_device(false), run_device(true)};
        for (int i = 0; i < 6; ++i) {
            ms[i].push_back(results[i].ms);
            cpu[i].push_back(results[i].cpu_ms);
            x[i] = results[i].x;
        }
    }
    printf("| way | ms | us of the processor a step | same bits |\n|---|---|---|---|\n");
    for (int i = 0; i < 6; ++i) {
        std::sort(ms[i].begin(), ms[i].end());
        std::sort(cpu[i].begin(), cpu[i].end());
        printf("| %s | %.0f | %.2f | %s |\n", names[i], ms[i][TURNS / 2],
               cpu[i][TURNS / 2] / STEPS * 1000.0,
               memcmp(&x[i], &x[0], sizeof x[0]) == 0 ? "yes" : "NO");
    }
    return 0;
}
