// vector_parts.cu - one row times a matrix whose rows (outputs) are contiguous in k, where those are long: the four
// warps of a team have a part of k each, in turn, of four outputs, so that what they ask for is on its way at once,
// the first of it before the turn where weights are constants.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_Y
#define RONDO_Y T  // or wider
#endif
typedef RONDO_Y Y;
#ifndef WIDTH
#define WIDTH 4  // numbers in 16 bytes; k is a multiple
#endif
#ifndef EAGER_WEIGHTS
#define EAGER_WEIGHTS 0  // whether nobody writes b
#endif

struct parts_arguments {
    const T *a;
    const T *b;
    const T *bias;  // may be NULL
    const T *z;     // may be NULL
    Y *y;
    i64 n, k;
    i64 activation;
    double alpha, beta;
};

enum {
    TEAMS = 2,
    MEMBERS = 4,
    OUTPUTS = 4,  // of a team
    HELD = 4,     // pieces of each output that a lane has asked for
    TURN = MEMBERS * 32 * WIDTH,
};
typedef pack<T, WIDTH> piece;

__device__ __forceinline__ void fetch(const parts_arguments &p, i64 first, i64 k, piece (&to)[OUTPUTS]) {
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++) {
        const i64 n = first + o < p.n ? first + o : p.n - 1;
        to[o] = k < p.k ? *(const piece *)(p.b + n * p.k + k) : piece();
    }
}

extern "C" __global__ void __launch_bounds__(TEAMS * MEMBERS * 32) vector_parts(const parts_arguments p) {
    __shared__ float sums[TEAMS][MEMBERS][OUTPUTS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, team = warp / MEMBERS, member = warp % MEMBERS;
    const i64 first = ((i64)blockIdx.x * TEAMS + team) * OUTPUTS;
    piece held[HELD][OUTPUTS];
    release_successor();
    if (!EAGER_WEIGHTS) {
        await_predecessors();
    }
#pragma unroll
    for (int u = 0; u < HELD; u++) {
        fetch(p, first, u * TURN + (member * 32 + lane) * WIDTH, held[u]);
    }
    if (EAGER_WEIGHTS) {
        await_predecessors();
    }
    float sum[OUTPUTS] = {};
    for (i64 begin = 0; begin < p.k; begin += HELD * TURN) {
#pragma unroll
        for (int u = 0; u < HELD; u++) {
            const i64 k = begin + u * TURN + (member * 32 + lane) * WIDTH;
            if (k < p.k) {
                const piece x = *(const piece *)(p.a + k);
#pragma unroll
                for (int v = 0; v < WIDTH; v++) {
#pragma unroll
                    for (int o = 0; o < OUTPUTS; o++) {
                        sum[o] += convert<float>(x.value[v]) * convert<float>(held[u][o].value[v]);
                    }
                }
            }
            fetch(p, first, k + HELD * TURN, held[u]);
        }
    }
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++) {
        sum[o] = warp_sum(sum[o]);
        if (lane == 0) {
            sums[team][member][o] = sum[o];
        }
    }
    __syncthreads();
    const i64 n = (i64)blockIdx.x * TEAMS * OUTPUTS + threadIdx.x;
    if (threadIdx.x < TEAMS * OUTPUTS && n < p.n) {
        float value = 0.0f;
#pragma unroll
        for (int m = 0; m < MEMBERS; m++) {
            value += sums[threadIdx.x / OUTPUTS][m][threadIdx.x % OUTPUTS];
        }
        value += p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f;
        value += p.z != 0 ? convert<float>(p.z[n]) : 0.0f;
        p.y[n] = convert<Y>(activate_by_number(p.activation, value, (float)p.alpha, (float)p.beta));
    }
}
