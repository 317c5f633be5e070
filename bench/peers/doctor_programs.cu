// Steps in plain CUDA for `rondo doctor` to predict, and what a real capture of them takes:
//
//   rondo doctor -- doctor_programs row|fork|large|dynamic|copies [SECONDS]
//   rondo doctor -- doctor_programs mix SECONDS KINDS,GRID,ROUNDS
//   doctor_programs truth NAME ...                         captures the step and replays it
//   rondo doctor --no-times -- doctor_programs launches    nanoseconds a launch; LIBCUPTI names the library
//   doctor_programs legacy                                 what a capture of the legacy stream answers
//
// Prints one JSON line; times are medians in microseconds, from before the step until the stream is idle. `eager_us` is
// of the loop's first quarter of a second, before the doctor takes device times; `late_eager_us` of its last third.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

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

double median(std::vector<double> *times) {
    std::sort(times->begin(), times->end());
    return (*times)[times->size() / 2];
}

std::vector<double> measure_all(const std::function<void()> &step, double seconds, int runs) {
    std::vector<double> times;
    const double end = now() + seconds;
    while (static_cast<int>(times.size()) < runs || now() < end) {
        const double start = now();
        step();
        CHECK(cudaStreamSynchronize(g_streams[0]));
        times.push_back((now() - start) * 1e6);
    }
    return times;
}

double measure(const std::function<void()> &step, double seconds, int runs) {
    std::vector<double> times = measure_all(step, seconds, runs);
    return median(&times);
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

void capture(void (*step)()) {
    cudaGraph_t graph;
    Patched patched{};
    size_t count = 0;
    CHECK(cudaStreamBeginCapture(g_streams[0], cudaStreamCaptureModeGlobal));
    step();
    CHECK(cudaStreamEndCapture(g_streams[0], &graph));
    CHECK(cudaGraphInstantiate(&patched.exec, graph, 0));
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    const auto replay = [&] { CHECK(cudaGraphLaunch(patched.exec, g_streams[0])); };
    measure(replay, 0.2, 20);
    std::printf(", \"graph_us\": %.1f, \"nodes\": %zu", measure(replay, 0.0, kReplays), count);
    if (step == dynamic) {
        patched.nodes.resize(count);
        patched.params.resize(count);
        CHECK(cudaGraphGetNodes(graph, patched.nodes.data(), &count));
        for (size_t i = 0; i < count; i++) {
            CHECK(cudaGraphKernelNodeGetParams(patched.nodes[i], &patched.params[i]));
        }
        std::printf(", \"patched_us\": %.1f", measure([&] { patched.replay(); }, 0.0, kReplays));
    }
}

int run(const char *name, void (*step)(), double seconds, bool is_truth) {
    measure(step, 0.0, 10);
    std::printf("{\"program\": \"%s\"", name);
    if (is_truth) {
        capture(step);
    }
    const double early = measure(step, 0.25, 20);
    std::vector<double> times = measure_all(step, seconds, 20);
    times.erase(times.begin(), times.begin() + static_cast<long>(times.size() * 2 / 3));
    std::printf(", \"eager_us\": %.1f, \"late_eager_us\": %.1f}\n", early, median(&times));
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

// The driver's own function, in front of which nobody stands: from the symbols of its library.
void *find_real(const char *name) {
    link_map *map = nullptr;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const Elf64_Sym *symbols = nullptr;
    const char *texts = nullptr;
    if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
        return nullptr;
    }
    for (const Elf64_Dyn *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        symbols = entry->d_tag == DT_SYMTAB ? reinterpret_cast<const Elf64_Sym *>(entry->d_un.d_ptr) : symbols;
        texts = entry->d_tag == DT_STRTAB ? reinterpret_cast<const char *>(entry->d_un.d_ptr) : texts;
    }
    for (const Elf64_Sym *one = symbols; reinterpret_cast<const char *>(one) < texts; one++) {
        if (one->st_value != 0 && std::strcmp(texts + one->st_name, name) == 0) {
            return reinterpret_cast<void *>(map->l_addr + one->st_value);
        }
    }
    return nullptr;
}

// Batches that the queue holds, so that no launch waits for the device, in turns within one process: the driver's
// function; the one that the program finds, which is the doctor's under `rondo doctor`; the same with a number that
// changes from launch to launch; the driver's with an empty CUPTI subscriber of all driver calls.
int count_launches() {
    constexpr int kBatch = 200;
    constexpr int kRounds = 200;
    static const char *const names[] = {"driver_ns", "found_ns", "changing_ns", "subscriber_ns"};
    using Launch = decltype(&cuLaunchKernel);
    const Launch real = reinterpret_cast<Launch>(find_real("cuLaunchKernel"));
    const Launch found = reinterpret_cast<Launch>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel"));
    std::vector<double> times[4];
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void *>(scale)));
    if (real == nullptr || found == nullptr) {
        std::fprintf(stderr, "no cuLaunchKernel in libcuda\n");
        return 3;
    }
    int count = 32;
    float by = 0.5f;
    void *arguments[] = {&g_small[0], &count, &by};
    const int kinds = std::getenv("LIBCUPTI") != nullptr ? 4 : 3;
    for (int round = 0; round < kRounds * kinds; round++) {
        const int which = round % kinds;
        const Launch launch = which == 1 || which == 2 ? found : real;
        void *handle = which == 3 ? subscribe() : nullptr;
        const double start = now();
        for (int i = 0; i < kBatch; i++) {
            by += which == 2 ? 1.0f : 0.0f;
            launch(reinterpret_cast<CUfunction>(function), 1, 1, 1, 32, 1, 1, 0, g_streams[0], arguments, nullptr);
        }
        times[which].push_back((now() - start) / kBatch * 1e9);
        CHECK(cudaStreamSynchronize(g_streams[0]));
        if (handle != nullptr) {
            unsubscribe(handle);
        }
    }
    std::printf("{\"launches\": \"%s\"", real == found ? "plain" : "watched");
    for (int i = 0; i < kinds; i++) {
        std::printf(", \"%s\": %.0f", names[i], median(&times[i]));
    }
    std::printf("}\n");
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    const bool is_truth = argc > 1 && std::strcmp(argv[1], "truth") == 0;
    argc -= is_truth ? 1 : 0;
    argv += is_truth ? 1 : 0;
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
        return count_launches();
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
            return run(name, row.step, argc > 2 ? std::atof(argv[2]) : 2.5, is_truth);
        }
    }
    std::fprintf(stderr, "no such step: %s\n", name);
    return 2;
}
