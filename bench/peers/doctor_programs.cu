// Steps in plain CUDA for `rondo doctor` to predict, and what a real capture of them takes:
//
//   rondo doctor -- doctor_programs row|fork|large|dynamic|copies [SECONDS]
//   rondo doctor -- doctor_programs mix SECONDS KINDS,GRID,ROUNDS
//   doctor_programs launches [plain|subscriber|held] nanoseconds a launch; LIBCUPTI names the library
//   doctor_programs legacy                           what a capture of the legacy stream answers
//
// Prints one JSON line; times are medians in microseconds, from before the step until the stream is idle.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define CHECK(call)                                                                \
    do {                                                                           \
        const cudaError_t status = (call);                                         \
        if (status != cudaSuccess) {                                               \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));   \
            std::exit(3);                                                          \
        }                                                                          \
    } while (0)

namespace {

constexpr int kSmall = 1 << 14;
constexpr int kLarge = 1 << 25;
constexpr int kReplays = 100;

__global__ void scale(float *x, int count, float by) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        x[i] = x[i] * by + 1.0f;
    }
}

// About `rounds` times four nanoseconds, on few multiprocessors.
__global__ void spin(float *x, int rounds) {
    float value = x[threadIdx.x];
    for (int i = 0; i < rounds; i++) {
        value = value * 0.999f + 0.5f;
    }
    x[threadIdx.x] = value;
}

// Kernels whose code is not that of the one before.
template <int kNumber>
__global__ void mix(float *x, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int k = 0; k < rounds; k++) {
        value = value * 0.999f + kNumber;
    }
    x[i] = value;
}

float *g_small[2];
float *g_large;
float *g_pinned;
cudaStream_t g_streams[2];
cudaEvent_t g_events[2];
int g_step;

void launch_small(float *x, float by, cudaStream_t stream) {
    scale<<<(kSmall + 255) / 256, 256, 0, stream>>>(x, kSmall, by);
}

void row() {
    for (int i = 0; i < 100; i++) {
        launch_small(g_small[0], 0.5f, g_streams[0]);
    }
}

void fork() {
    CHECK(cudaEventRecord(g_events[0], g_streams[0]));
    CHECK(cudaStreamWaitEvent(g_streams[1], g_events[0]));
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 2; k++) {
            spin<<<8, 256, 0, g_streams[k]>>>(g_small[k], 1000);
        }
    }
    CHECK(cudaEventRecord(g_events[1], g_streams[1]));
    CHECK(cudaStreamWaitEvent(g_streams[0], g_events[1]));
}

void large() {
    for (int i = 0; i < 5; i++) {
        scale<<<kLarge / 256, 256, 0, g_streams[0]>>>(g_large, kLarge, 0.5f);
    }
}

// A number and an address that are others in each step.
void dynamic() {
    for (int i = 0; i < 32; i++) {
        launch_small(g_small[(g_step + i) % 2], static_cast<float>(g_step % 1000), g_streams[0]);
    }
    ++g_step;
}

void copies() {
    CHECK(cudaMemcpyAsync(g_small[0], g_pinned, kSmall * 4, cudaMemcpyHostToDevice, g_streams[0]));
    for (int i = 0; i < 20; i++) {
        launch_small(g_small[0], 0.5f, g_streams[0]);
        CHECK(cudaMemcpyAsync(g_small[1], g_small[0], kSmall * 4, cudaMemcpyDeviceToDevice, g_streams[0]));
    }
    CHECK(cudaMemcpyAsync(g_pinned, g_small[0], kSmall * 4, cudaMemcpyDeviceToHost, g_streams[0]));
}

// What `mix KINDS,GRID,ROUNDS` says.
struct Mixture {
    int kinds = 1;
    int grid = 64;
    int rounds = 0;
} g_mixture;

template <int kNumber>
void launch_mix(int number) {
    if constexpr (kNumber < 16) {
        if (number != kNumber) {
            launch_mix<kNumber + 1>(number);
            return;
        }
        mix<kNumber><<<g_mixture.grid, 128, 0, g_streams[0]>>>(g_large, g_mixture.rounds);
    }
}

void mixture() {
    for (int i = 0; i < 64; i++) {
        launch_mix<0>(i % g_mixture.kinds);
    }
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double measure(const std::function<void()> &step, double seconds, int runs) {
    std::vector<double> times;
    const double end = now() + seconds;
    while (static_cast<int>(times.size()) < runs || now() < end) {
        const double start = now();
        step();
        CHECK(cudaStreamSynchronize(g_streams[0]));
        times.push_back((now() - start) * 1e6);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// The parameters of each kernel are set ahead of each replay, as the program does by launching anew.
struct Patched {
    cudaGraphExec_t exec;
    std::vector<cudaGraphNode_t> nodes;
    std::vector<cudaKernelNodeParams> params;

    void replay() {
        for (size_t i = 0; i < nodes.size(); i++) {
            float by = static_cast<float>(g_step % 1000);
            int count = kSmall;
            void *arguments[] = {&g_small[(g_step + i) % 2], &count, &by};
            params[i].kernelParams = arguments;
            CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[i], &params[i]));
        }
        ++g_step;
        CHECK(cudaGraphLaunch(exec, g_streams[0]));
    }
};

int run(const char *name, void (*step)(), double seconds) {
    cudaGraph_t graph;
    Patched patched{};
    size_t count = 0;
    measure(step, 0.0, 10);
    CHECK(cudaStreamBeginCapture(g_streams[0], cudaStreamCaptureModeGlobal));
    step();
    CHECK(cudaStreamEndCapture(g_streams[0], &graph));
    CHECK(cudaGraphInstantiate(&patched.exec, graph, 0));
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    const auto replay = [&] { CHECK(cudaGraphLaunch(patched.exec, g_streams[0])); };
    measure(replay, 0.2, 20);
    const double replayed = measure(replay, 0.0, kReplays);
    std::printf("{\"program\": \"%s\", \"graph_us\": %.1f, \"nodes\": %zu", name, replayed, count);
    if (step == dynamic) {
        patched.nodes.resize(count);
        patched.params.resize(count);
        CHECK(cudaGraphGetNodes(graph, patched.nodes.data(), &count));
        for (size_t i = 0; i < count; i++) {
            CHECK(cudaGraphKernelNodeGetParams(patched.nodes[i], &patched.params[i]));
        }
        std::printf(", \"patched_us\": %.1f", measure([&] { patched.replay(); }, 0.0, kReplays));
    }
    std::printf(", \"eager_us\": %.1f", measure(step, seconds, 0));
    // What CUPTI leaves behind.
    std::printf(", \"late_graph_us\": %.1f}\n", measure(replay, 0.0, kReplays));
    return 0;
}

void *find_cupti(const char *name) {
    static void *library = dlopen(std::getenv("LIBCUPTI"), RTLD_NOW);
    void *found = library != nullptr ? dlsym(library, name) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "no %s in LIBCUPTI\n", name);
        std::exit(3);
    }
    return found;
}

void *subscribe() {
    void *handle = nullptr;
    auto start = reinterpret_cast<int (*)(void **, void (*)(void *, int, unsigned, const void *), void *)>(
        find_cupti("cuptiSubscribe"));
    auto enable = reinterpret_cast<int (*)(unsigned, void *, int)>(find_cupti("cuptiEnableDomain"));
    if (start(&handle, [](void *, int, unsigned, const void *) {}, nullptr) != 0 || enable(1, handle, 1) != 0) {
        std::fprintf(stderr, "CUPTI refuses\n");
        std::exit(3);
    }
    return handle;
}

void unsubscribe(void *handle) {
    if (reinterpret_cast<int (*)(void *)>(find_cupti("cuptiUnsubscribe"))(handle) != 0) {
        std::fprintf(stderr, "CUPTI refuses\n");
        std::exit(3);
    }
}

double median(std::vector<double> *times) {
    std::sort(times->begin(), times->end());
    return (*times)[times->size() / 2];
}

// Batches that the queue holds, so that no launch waits for the device; in turn with a subscriber and without.
int count_launches(const char *how) {
    constexpr int kBatch = 500;
    std::vector<double> times[2];
    const bool has_subscriber = std::strcmp(how, "subscriber") == 0;
    if (std::strcmp(how, "held") == 0) {
        (void)subscribe();
    }
    for (int round = 0; round < 600; round++) {
        const int which = has_subscriber ? round % 2 : 0;
        void *handle = which == 1 ? subscribe() : nullptr;
        const double start = now();
        for (int i = 0; i < kBatch; i++) {
            scale<<<1, 32, 0, g_streams[0]>>>(g_small[0], 32, 0.5f);
        }
        times[which].push_back((now() - start) / kBatch * 1e9);
        CHECK(cudaStreamSynchronize(g_streams[0]));
        if (handle != nullptr) {
            unsubscribe(handle);
        }
    }
    std::printf("{\"launches\": \"%s\", \"ns\": %.0f", how, median(&times[0]));
    if (has_subscriber) {
        std::printf(", \"subscribed_ns\": %.0f", median(&times[1]));
    }
    std::printf("}\n");
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "row";
    static const struct {
        const char *name;
        void (*step)();
    } steps[] = {{"row", row}, {"fork", fork}, {"large", large}, {"dynamic", dynamic}, {"copies", copies}, {"mix", mixture}};
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&g_small[i], kSmall * 4));
        CHECK(cudaMemset(g_small[i], 0, kSmall * 4));
        CHECK(cudaStreamCreateWithFlags(&g_streams[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&g_events[i], cudaEventDisableTiming));
    }
    CHECK(cudaMalloc(&g_large, static_cast<size_t>(kLarge) * 4));
    CHECK(cudaMallocHost(&g_pinned, kSmall * 4));
    if (std::strcmp(name, "launches") == 0) {
        return count_launches(argc > 2 ? argv[2] : "plain");
    }
    if (std::strcmp(name, "legacy") == 0) {
        std::printf("{\"legacy\": \"%s\"}\n",
                    cudaGetErrorName(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeRelaxed)));
        return 0;
    }
    if (argc > 3) {
        std::sscanf(argv[3], "%d,%d,%d", &g_mixture.kinds, &g_mixture.grid, &g_mixture.rounds);
    }
    for (const auto &row : steps) {
        if (std::strcmp(row.name, name) == 0) {
            return run(name, row.step, argc > 2 ? std::atof(argv[2]) : 2.5);
        }
    }
    std::fprintf(stderr, "no such step: %s\n", name);
    return 2;
}
