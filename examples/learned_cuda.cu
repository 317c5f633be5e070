// A step with arguments that change: two kernels of the program's own and a product of cuBLAS. Its
// code says nothing of graphs. Rondo learns which words inside the kernels depend on which
// argument, and from then on patches those alone.
//
//   nvcc learned_cuda.cu -lrondo -lcublas -o learned_cuda
// SPDX-License-Identifier: Apache-2.0
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define N 256
#define BYTES (N * N * sizeof(float))
#define CUDA(call) check((call) == 0, #call, "a CUDA or cuBLAS error")
#define RONDO(call) check((call) == RONDO_STATUS_OK, #call, rondo_error_get_last()->message)
static void check(bool is_fine, const char *call, const char *message) {
    if (!is_fine) exit((fprintf(stderr, "%s: %s\n", call, message), EXIT_FAILURE));
}

static __device__ int at(void) { return blockIdx.x * N + threadIdx.x; }
__global__ void relu(float *y, const float *x) { y[at()] = fmaxf(x[at()], 0.0f); }
__global__ void move(float *y, const float *x, float rate) { y[at()] -= rate * x[at()]; }

static cublasHandle_t blas;
static cudaStream_t native;
static float *weights, *product;

// ---- what is told of the step
static rondo_status step(rondo_stream *stream, const rondo_value *arguments, void *user_data) {
    float *x = (float *)arguments[0].pointer, *y = (float *)arguments[1].pointer;
    const float rate = arguments[2].single, zero = 0.0f;
    relu<<<N, N, 0, native>>>(product, x);
    cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &rate, weights, N, x, N, &zero, product, N);
    move<<<N, N, 0, native>>>(y, product, rate);
    return cudaPeekAtLastError() == cudaSuccess ? RONDO_STATUS_OK : RONDO_STATUS_DRIVER;
}

static rondo_learned *describe(rondo_device *device) {
    rondo_argument arguments[3] = {};
    for (rondo_argument &argument : arguments) argument.struct_size = sizeof argument;
    arguments[0].name = "x", arguments[0].extent = BYTES;  // pointers
    arguments[1].name = "y", arguments[1].extent = BYTES;
    arguments[2].name = "rate", arguments[2].kind = RONDO_ARGUMENT_FLOAT;
    arguments[2].least.single = 1e-6f, arguments[2].most.single = 0.5f;
    rondo_learned *learned;
    RONDO(rondo_learned_create(device, NULL, arguments, 3, step, NULL, &learned));
    return learned;
}

static void train(rondo_learned *learned, rondo_stream *stream, float *x[2], float *y) {
    for (int i = 0; i < 1000; ++i) {  // the first run learns, the others patch and replay
        rondo_value values[3] = {{x[i % 2]}, {y}, {}};
        values[2].single = 0.1f / (float)(i + 1);
        RONDO(rondo_learned_run(learned, stream, values, 3));
    }
}
// ---- and what checks it

static float *allocate(int seed) {
    static float cells[N * N];
    float *made;
    for (int i = 0; i < N * N; ++i) cells[i] = (float)((i * 7 + seed) % 13 - 6) / 64;
    CUDA(cudaMalloc(&made, BYTES));
    CUDA(cudaMemcpy(made, cells, BYTES, cudaMemcpyHostToDevice));
    return made;
}

int main(void) {
    rondo_device *device;
    if (rondo_device_open("cuda:0", &device) != RONDO_STATUS_OK) {
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return getenv("RONDO_REQUIRE") != NULL ? EXIT_FAILURE : 77;
    }
    void *workspace;  // the program's own, so that cuBLAS takes none in each recording
    CUDA(cudaMalloc(&workspace, 32 << 20));
    CUDA(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking));
    CUDA(cublasCreate(&blas)), CUDA(cublasSetStream(blas, native));
    CUDA(cublasSetWorkspace(blas, workspace, 32 << 20));
    float *x[2] = {allocate(1), allocate(2)}, *y = allocate(3), *plain = allocate(3);
    weights = allocate(4), product = allocate(5);
    for (int i = 0; i < 1000; ++i) {  // the same without Rondo
        rondo_value values[3] = {{x[i % 2]}, {plain}, {}};
        values[2].single = 0.1f / (float)(i + 1);
        RONDO(step(NULL, values, NULL));
    }
    rondo_stream *stream;
    RONDO(rondo_stream_wrap(device, native, &stream));
    rondo_learned *learned = describe(device);
    train(learned, stream, x, y);
    rondo_learned_report report = {sizeof report};
    rondo_learned_stats stats = {sizeof stats};
    RONDO(rondo_learned_get_report(learned, &report));
    RONDO(rondo_learned_get_stats(learned, &stats));
    check(report.state == RONDO_LEARNED_PROVED, report.what, report.message);
    static float got[N * N], wanted[N * N];
    CUDA(cudaMemcpyAsync(got, y, BYTES, cudaMemcpyDeviceToHost, native));
    CUDA(cudaMemcpyAsync(wanted, plain, BYTES, cudaMemcpyDeviceToHost, native));
    CUDA(cudaStreamSynchronize(native));
    check(memcmp(got, wanted, BYTES) == 0, "learned runs", "differ from the step itself");
    printf("%llu runs, bit for bit as the step itself; %llu slots in %llu nodes, %llu nodes patched\n",
           (unsigned long long)stats.run_count, (unsigned long long)report.slot_count,
           (unsigned long long)report.node_count, (unsigned long long)stats.patched_node_count);
    rondo_learned_destroy(learned), rondo_stream_destroy(stream), rondo_device_release(device);
    return EXIT_SUCCESS;
}
