// Rondo inside a plain CUDA program: its own kernels, cuBLAS, two streams. The engine's step stays
// as it is; Rondo wraps the stream that it runs on, records it once and replays it.
//
//   nvcc embed_cuda.cu -lrondo -lcublas -o embed_cuda
// SPDX-License-Identifier: Apache-2.0
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define N 256
#define CUDA(call) check((call) == 0, #call, "a CUDA or cuBLAS error")
#define RONDO(call) check((call) == RONDO_STATUS_OK, #call, rondo_error_get_last()->message)
static void check(bool is_fine, const char *call, const char *message) {
    if (!is_fine) exit((fprintf(stderr, "%s: %s\n", call, message), EXIT_FAILURE));
}

// ---- the engine -------------------------------------------------------------------------------
__device__ int at(void) { return blockIdx.x * N + threadIdx.x; }
__global__ void relu(float *y) { y[at()] = fmaxf(y[at()], 0.0f); }
__global__ void halve(float *z, const float *x) { z[at()] = 0.5f * x[at()]; }
__global__ void add(float *y, const float *z) { y[at()] += z[at()]; }

static cudaStream_t main_stream, side_stream;
static cudaEvent_t fork_event, join_event;
static cublasHandle_t blas;
static float *w, *x, *y, *z;  // N x N each, in device memory
static void step(void) {  // y = relu(w x) + x / 2, the two halves of it side by side
    const float one = 1.0f, zero = 0.0f;
    CUDA(cudaEventRecord(fork_event, main_stream));
    CUDA(cudaStreamWaitEvent(side_stream, fork_event, 0));
    CUDA(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, w, N, x, N, &zero, y, N));
    relu<<<N, N, 0, main_stream>>>(y);
    halve<<<N, N, 0, side_stream>>>(z, x);
    CUDA(cudaEventRecord(join_event, side_stream));
    CUDA(cudaStreamWaitEvent(main_stream, join_event, 0));
    add<<<N, N, 0, main_stream>>>(y, z);
}

static void get(float *to, const float *from) {  // waits until it is there
    CUDA(cudaMemcpyAsync(to, from, N * N * sizeof(float), cudaMemcpyDeviceToHost, main_stream));
    CUDA(cudaStreamSynchronize(main_stream));
}

int main(void) {
    rondo_device *device;
    if (rondo_device_open("cuda:0", &device) != RONDO_STATUS_OK) {
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return getenv("RONDO_REQUIRE") != NULL ? EXIT_FAILURE : 77;
    }
    CUDA(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&side_stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&fork_event)), CUDA(cudaEventCreate(&join_event));
    CUDA(cublasCreate(&blas)), CUDA(cublasSetStream(blas, main_stream));
    static float input[N * N], expected[N * N], found[N * N];
    float **matrices[] = {&w, &x, &y, &z};
    for (int i = 0; i < 4; i++) CUDA(cudaMalloc(matrices[i], sizeof input));
    for (int i = 0; i < N * N; i++) input[i] = (float)(i % 13 - 6) / 13;
    CUDA(cudaMemcpy(w, input, sizeof input, cudaMemcpyHostToDevice));
    step();  // once as ever: libraries set themselves up in their first call

    rondo_stream *stream;
    rondo_graph *graph;
    RONDO(rondo_stream_wrap(device, main_stream, &stream));  // not taken over
    RONDO(rondo_graph_create(device, NULL, &graph));
    RONDO(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    step();
    RONDO(rondo_graph_capture_end(graph));

    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N * N; i++) input[i] = (float)((i + round) % 17 - 8) / 17;
        CUDA(cudaMemcpyAsync(x, input, sizeof input, cudaMemcpyHostToDevice, main_stream));
        step();
        get(expected, y);
        CUDA(cudaMemsetAsync(y, 0, sizeof found, main_stream));
        CUDA(cudaMemsetAsync(z, 0, sizeof found, main_stream));
        RONDO(rondo_graph_replay(graph, stream));
        get(found, y);
        check(memcmp(expected, found, sizeof found) == 0, "replay", "differs from the step itself");
    }
    printf("10 replays: bit for bit as the step itself; y[0] = %g\n", found[0]);
    rondo_graph_destroy(graph), rondo_stream_destroy(stream), rondo_device_release(device);
    return EXIT_SUCCESS;
}
