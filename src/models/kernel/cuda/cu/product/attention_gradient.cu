// attention_gradient.cu - how attention changes with q, k and v (op/attention/op_attention_gradient.c): a
// launch for rows of q makes dq, and keeps of each row the logarithm of its sum and the mean of its change;
// one for keys makes dk and dv with them. Scores are never written to memory, and sums have one order. Here a block
// takes one row or key; attention_gradient_tensor.cu has the same on tensor cores.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_attention_gradient.cuh"

__device__ __forceinline__ float multiply(const T *a, const T *b, int count) {
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        sum = fmaf(convert<float>(a[i]), convert<float>(b[i]), sum);
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(128) gradient_rows(const gradient_arguments a) {
    take_turn();
    extern __shared__ float memory[];  // [n] scores, [n] changes
    __shared__ float scratch[33];
    const view w(a);
    const i64 row = blockIdx.x;
    const int seen = (int)(CAUSAL && row + 1 < a.n ? row + 1 : a.n);
    const T *q = w.q + row * w.pitch, *dy = w.dy + row * w.v_pitch;
    float *score = memory, *change = memory + a.n;
    float most = -infinity(), one = 0.0f, two = 0.0f;
    for (int j = threadIdx.x; j < seen; j += 128) {
        score[j] = multiply(q, w.k + j * w.pitch, WIDTH) * (float)a.scale;
        change[j] = multiply(dy, w.v + j * w.v_pitch, V_WIDTH);
        most = fmaxf(most, score[j]);
    }
    most = block_max(most, scratch);
    for (int j = threadIdx.x; j < seen; j += 128) {
        score[j] = expf(score[j] - most);
        one += score[j];
    }
    one = block_sum(one, scratch);
    for (int j = threadIdx.x; j < seen; j += 128) {
        score[j] /= one;
        two = fmaf(score[j], change[j], two);
    }
    two = block_sum(two, scratch);
    for (int j = threadIdx.x; j < seen; j += 128) {
        score[j] *= change[j] - two;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < WIDTH && a.dq != 0; c += 128) {
        float sum = 0.0f;
        for (int j = 0; j < seen; j++) {
            sum = fmaf(score[j], convert<float>(w.k[j * w.pitch + c]), sum);
        }
        a.dq[w.at_q + row * a.out_pitch + c] = convert<T>(sum * (float)a.scale);
    }
    if (threadIdx.x == 0) {
        w.rows[row] = make_float2(most + logf(one), two);
    }
}

#define OWN ((WIDTH > V_WIDTH ? WIDTH : V_WIDTH) + 127) / 128
extern "C" __global__ void __launch_bounds__(128) gradient_keys(const gradient_arguments a) {
    take_turn();
    __shared__ float weight[128], share[128];
    const view w(a);
    const i64 key = blockIdx.x;
    const T *k = w.k + key * w.pitch, *v = w.v + key * w.v_pitch;
    float dk[OWN] = {}, dv[OWN] = {};
    for (i64 first = CAUSAL ? key : 0; first < a.m; first += 128) {
        const i64 row = first + threadIdx.x;
        const int count = (int)(a.m - first < 128 ? a.m - first : 128);
        __syncthreads();
        if (row < a.m) {
            const float2 of = w.rows[row];
            const float x = multiply(w.q + row * w.pitch, k, WIDTH) * (float)a.scale;
            weight[threadIdx.x] = expf(x - of.x);
            share[threadIdx.x] =
                weight[threadIdx.x] * (multiply(w.dy + row * w.v_pitch, v, V_WIDTH) - of.y);
        }
        __syncthreads();
        for (int i = 0; i < count; i++) {
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                const int c = threadIdx.x + o * 128;
                if (c < WIDTH) {
                    dk[o] = fmaf(share[i], convert<float>(w.q[(first + i) * w.pitch + c]), dk[o]);
                }
                if (c < V_WIDTH) {
                    dv[o] = fmaf(weight[i], convert<float>(w.dy[(first + i) * w.v_pitch + c]), dv[o]);
                }
            }
        }
    }
#pragma unroll
    for (int o = 0; o < OWN; o++) {
        const int c = threadIdx.x + o * 128;
        if (c < WIDTH && a.dk != 0) {
            a.dk[w.at_k + key * a.out_pitch + c] = convert<T>(dk[o] * (float)a.scale);
        }
        if (c < V_WIDTH && a.dv != 0) {
            a.dv[w.at_v + key * a.out_v_pitch + c] = convert<T>(dv[o]);
        }
    }
}
