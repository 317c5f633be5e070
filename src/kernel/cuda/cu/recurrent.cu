// recurrent.cu - one time step of LSTM, GRU (with the reset after the product) and RNN, both directions
// at once. A warp makes one hidden unit of one batch entry: all its gates, from x and from the former
// state, then the new state. States between steps are float, in two buffers that take turns.
//
// Launched once a step: the steps of a sequence depend on each other through every unit, and a launch
// is the cheapest barrier over the whole chip that a graph offers.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef GATES
#define GATES 4  // 4 LSTM, 3 GRU, 1 RNN
#endif

struct recurrent_arguments {
    const T *x;           // [steps, batch, inputs]
    const T *w;           // [directions, GATES * hidden, inputs]
    const T *r;           // [directions, GATES * hidden, hidden]
    const T *bias;        // [directions, 2 * GATES * hidden], may be NULL
    const T *initial_h;   // [directions, batch, hidden], may be NULL: zeros
    const T *initial_c;
    T *y;                 // [steps, directions, batch, hidden], may be NULL
    T *y_h;               // [directions, batch, hidden], may be NULL; written by the last step
    T *y_c;
    const float *h_in;    // [directions, batch, hidden]
    float *h_out;
    float *c;
    i64 steps, batch, inputs, hidden, directions, step, reverse;
};

__device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

extern "C" __global__ void __launch_bounds__(128) recurrent_step(const recurrent_arguments a) {
    take_turn();
    const int lane = threadIdx.x & 31;
    const i64 unit = (i64)blockIdx.x * 4 + (threadIdx.x >> 5);
    const int hidden = (int)a.hidden, inputs = (int)a.inputs, batch = (int)a.batch;
    if (unit >= a.directions * batch * hidden) {
        return;
    }
    const int j = (int)(unit % hidden), b = (int)(unit / hidden % batch);
    const int d = (int)(unit / hidden / batch);
    const bool runs_back = a.reverse != 0 || d == 1;
    const i64 time = runs_back ? a.steps - 1 - a.step : a.step;
    const T *x = a.x + (time * batch + b) * inputs;
    const i64 state = ((i64)d * batch + b) * hidden;
    float from_x[GATES], from_h[GATES];
#pragma unroll
    for (int g = 0; g < GATES; g++) {
        from_x[g] = 0.0f;
        from_h[g] = 0.0f;
    }
    for (int k = lane; k < inputs; k += 32) {
        const float value = convert<float>(x[k]);
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            from_x[g] += value *
                convert<float>(a.w[(((i64)d * GATES + g) * hidden + j) * inputs + k]);
        }
    }
    for (int k = lane; k < hidden; k += 32) {
        float value = 0.0f;
        if (a.step > 0) {
            value = a.h_in[state + k];
        } else if (a.initial_h != 0) {
            value = convert<float>(a.initial_h[state + k]);
        }
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            from_h[g] += value *
                convert<float>(a.r[(((i64)d * GATES + g) * hidden + j) * hidden + k]);
        }
    }
#pragma unroll
    for (int g = 0; g < GATES; g++) {
        from_x[g] = warp_sum(from_x[g]);
        from_h[g] = warp_sum(from_h[g]);
        if (a.bias != 0) {
            const T *bias = a.bias + (i64)d * 2 * GATES * hidden + g * hidden + j;
            from_x[g] += convert<float>(bias[0]);
            from_h[g] += convert<float>(bias[GATES * hidden]);
        }
    }
    if (lane != 0) {
        return;
    }
    float h;
    float before = 0.0f;
    if (a.step > 0) {
        before = GATES == 4 ? a.c[state + j] : a.h_in[state + j];
    } else if (GATES == 4 ? a.initial_c != 0 : a.initial_h != 0) {
        before = convert<float>((GATES == 4 ? a.initial_c : a.initial_h)[state + j]);
    }
    if (GATES == 4) {  // in the order input, output, forget, cell
        const float i = sigmoid(from_x[0] + from_h[0]);
        const float o = sigmoid(from_x[1 % GATES] + from_h[1 % GATES]);
        const float f = sigmoid(from_x[2 % GATES] + from_h[2 % GATES]);
        const float c = f * before + i * tanhf(from_x[3 % GATES] + from_h[3 % GATES]);
        a.c[state + j] = c;
        h = o * tanhf(c);
        if (a.y_c != 0 && a.step == a.steps - 1) {
            a.y_c[state + j] = convert<T>(c);
        }
    } else if (GATES == 3) {  // update, reset, hidden
        const float z = sigmoid(from_x[0] + from_h[0]);
        const float r = sigmoid(from_x[1 % GATES] + from_h[1 % GATES]);
        const float n = tanhf(from_x[2 % GATES] + r * from_h[2 % GATES]);
        h = (1.0f - z) * n + z * before;
    } else {
        h = tanhf(from_x[0] + from_h[0]);
    }
    a.h_out[state + j] = h;
    if (a.y != 0) {
        a.y[((time * a.directions + d) * batch + b) * hidden + j] = convert<T>(h);
    }
    if (a.y_h != 0 && a.step == a.steps - 1) {
        a.y_h[state + j] = convert<T>(h);
    }
}
