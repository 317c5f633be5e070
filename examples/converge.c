// Repeat until converged, decided on the device. `example_converge` runs on the host, where a turn
// is a C function; built by nvcc -x cu, `example_converge_cuda cuda:0` runs a kernel on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>

#include <rondo/rondo.h>

typedef struct newton {
    float x, target;  // x becomes the square root of the target
    unsigned go_on;   // the predicate: not zero while another turn is needed
    unsigned turns;
} newton;

#ifndef ON_BOTH  // nvcc: __host__ __device__
#define ON_BOTH
#endif

ON_BOTH static void improve(newton *n) {
    float next = 0.5f * (n->x + n->target / n->x);
    n->go_on = fabsf(next - n->x) > 1e-6f * next;
    n->x = next;
    n->turns++;
}

static void improve_on_host(void *arguments) {
    improve(*(newton **)arguments);
}

#ifdef __CUDACC__
__global__ void improve_on_device(newton *n) {
    improve(n);
}
#endif

// One turn of the loop, put on the stream of the body.
static rondo_status turn(rondo_stream *stream, void *user_data) {
    newton *n = (newton *)user_data;
#ifdef __CUDACC__
    if (!rondo_device_is_host(rondo_stream_get_device(stream))) {
        improve_on_device<<<1, 1, 0, (cudaStream_t)rondo_stream_get_native(stream)>>>(n);
        return cudaGetLastError() == cudaSuccess ? RONDO_STATUS_OK : RONDO_STATUS_DRIVER;
    }
#endif
    return rondo_stream_call_host(stream, "improve", improve_on_host, &n, sizeof n);
}

#define TRY(call) status = status == RONDO_STATUS_OK ? (call) : status

int main(int argc, char **argv) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    newton *on_device = NULL, *pinned = NULL;
    rondo_status status = rondo_device_open(argc > 1 ? argv[1] : "host", &device);
    TRY(rondo_stream_create(device, NULL, &stream));
    TRY(rondo_graph_create(device, NULL, &graph));
    TRY(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, sizeof *on_device, (void **)&on_device));
    TRY(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, sizeof *pinned, (void **)&pinned));
    TRY(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    TRY(rondo_stream_copy(stream, on_device, pinned, sizeof *pinned, RONDO_COPY_HOST_TO_DEVICE));
    TRY(rondo_control_while(stream, &on_device->go_on, turn, on_device));
    TRY(rondo_stream_copy(stream, pinned, on_device, sizeof *pinned, RONDO_COPY_DEVICE_TO_HOST));
    TRY(rondo_graph_capture_end(graph));
    for (float target = 2; status == RONDO_STATUS_OK && target < 1e7f; target *= 1000) {
        newton begin = {1, target, 1, 0};
        *pinned = begin;
        TRY(rondo_graph_replay(graph, stream));
        TRY(rondo_stream_synchronize(stream));
        printf("sqrt(%g) = %g after %u turns\n", (double)target, (double)pinned->x, pinned->turns);
    }
    bool is_right = status == RONDO_STATUS_OK && fabsf(pinned->x - 1414.2136f) < 1e-2f;
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s\n", rondo_error_get_last()->message);
    }
    rondo_graph_destroy(graph);
    rondo_memory_free(device, pinned);
    rondo_memory_free(device, on_device);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return status == RONDO_STATUS_UNAVAILABLE ? 77 : is_right ? 0 : 1;
}
