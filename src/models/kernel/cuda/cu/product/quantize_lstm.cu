// quantize_lstm.cu - one time step of DynamicQuantizeLSTM, both directions at once. A warp makes one
// hidden unit of one batch entry: the state is brought to bytes on the way, four gates take it, and
// the products of x are there already. Each block finds the extremes of the whole state itself: it is
// short, and a launch less.
// SPDX-License-Identifier: Apache-2.0
#define NAN_WINS 0
#include "rondo_types.cuh"
#include "rondo_quantize.cuh"
#include "rondo_extremes.cuh"
#include "rondo_bytes.cuh"

#ifndef R_IS_UNSIGNED
#define R_IS_UNSIGNED 0
#endif

struct lstm_arguments {
    const float *from_x;     // [directions, steps, batch, 4 * hidden]
    const u32 *r;            // [directions, 4 * hidden, words], signed, zeros behind the end
    const float *scale;      // of r
    const u8 *zero;          // of r; may be NULL
    const float *bias;       // [directions, 8 * hidden], may be NULL
    const float *peephole;   // [directions, 3 * hidden], may be NULL
    const float *initial_h;  // [directions, batch, hidden], may be NULL: zeros
    const float *initial_c;
    float *y;    // [steps, directions, batch, hidden], may be NULL
    float *y_h;  // [directions, batch, hidden], may be NULL; written by the last step
    float *y_c;
    const float *h_in;  // [directions, batch, hidden]
    float *h_out;
    float *c;
    i64 steps, batch, hidden, directions, step, reverse;
    i64 words;  // of a column of r
    i64 has_scale_for_each;  // of r: one for each column; otherwise for each direction
    i64 is_coupled;
    double clip;
};

__device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
__device__ __forceinline__ float limit(float x, float clip) {
    return x > clip ? clip : x < -clip ? -clip : x;
}
__device__ __forceinline__ int warp_total(int x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

// The grid is (units in eights, batch, directions).
extern "C" __global__ void __launch_bounds__(256) quantize_lstm_step(const lstm_arguments a) {
    take_turn();
    const int lane = threadIdx.x & 31, hidden = (int)a.hidden, words = (int)a.words;
    const int j = (int)blockIdx.x * 8 + ((int)threadIdx.x >> 5);
    const i64 b = blockIdx.y, d = blockIdx.z;
    const float *before = a.step > 0 ? a.h_in : a.initial_h;  // NULL: zeros
    const i64 states = a.batch * hidden, row = (d * a.batch + b) * hidden;

    extremes span = {0.0f, 0.0f};
    for (i64 i = threadIdx.x; before != 0 && i < states; i += 256) {
        const extremes one = {before[d * states + i], before[d * states + i]};
        span.meet(one);
    }
    span = block_extremes(span);
    if (j >= hidden) {
        return;
    }
    const float scale = span.high == span.low ? 1.0f : (span.high - span.low) / 255.0f;
    const u8 zero = quantize<u8>(-span.low / scale, (u8)0);
    const u32 *r = a.r + (d * 4 * hidden + j) * words;

    i32 dot[4] = {0, 0, 0, 0}, r_sum[4] = {0, 0, 0, 0}, h_sum = 0;
    for (int word = lane; word < words; word += 32) {
        u32 h = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = word * 4 + i;
            const float value = before != 0 && k < hidden ? before[row + k] : 0.0f;
            const u8 step = quantize<u8>(value / scale, zero);
            h |= (k < hidden ? (u32)(u8)(step ^ 0x80) : 0u) << (8 * i);
        }
        h_sum = dot_bytes(h, 0x01010101u, h_sum);
#pragma unroll
        for (int g = 0; g < 4; g++) {
            const u32 weights = r[(i64)g * hidden * words + word];
            dot[g] = dot_bytes(h, weights, dot[g]);
            r_sum[g] = dot_bytes(weights, 0x01010101u, r_sum[g]);
        }
    }
    h_sum = warp_total(h_sum);
    float gate[4];
#pragma unroll
    for (int g = 0; g < 4; g++) {
        const i64 column = (i64)g * hidden + j;
        const i64 at = a.has_scale_for_each ? d * 4 * hidden + column : d;
        const int p = (int)zero - 128;
        const int q = read_zero(a.zero != 0 ? a.zero + at : 0, 1, 0, R_IS_UNSIGNED);
        const i32 sum = warp_total(dot[g]) - q * h_sum - p * warp_total(r_sum[g]) + hidden * p * q;
        const i64 time = a.reverse != 0 || d == 1 ? a.steps - 1 - a.step : a.step;
        gate[g] = a.from_x[((d * a.steps + time) * a.batch + b) * 4 * hidden + column] +
                  (float)sum * (scale * a.scale[at]);
        if (a.bias != 0) {
            gate[g] += a.bias[d * 8 * hidden + column] + a.bias[(d * 8 + 4) * hidden + column];
        }
    }
    if (lane != 0) {
        return;
    }
    const float clip = (float)a.clip;
    const float *peephole = a.peephole != 0 ? a.peephole + d * 3 * hidden + j : 0;
    float c = 0.0f;
    if (a.step > 0) {
        c = a.c[row + j];
    } else if (a.initial_c != 0) {
        c = a.initial_c[row + j];
    }
    if (peephole != 0) {
        gate[0] += peephole[0] * c;
        gate[2] += peephole[2 * hidden] * c;
    }
    const float in = sigmoid(limit(gate[0], clip));  // in the order input, output, forget, cell
    const float forget = a.is_coupled ? 1.0f - in : sigmoid(limit(gate[2], clip));
    c = forget * c + in * tanhf(limit(gate[3], clip));
    if (peephole != 0) {
        gate[1] += peephole[hidden] * c;
    }
    const float h = sigmoid(limit(gate[1], clip)) * tanhf(c);
    a.c[row + j] = c;
    a.h_out[row + j] = h;
    const i64 time = a.reverse != 0 || d == 1 ? a.steps - 1 - a.step : a.step;
    if (a.y != 0) {
        a.y[((time * a.directions + d) * a.batch + b) * hidden + j] = h;
    }
    if (a.step == a.steps - 1) {
        if (a.y_h != 0) {
            a.y_h[row + j] = h;
        }
        if (a.y_c != 0) {
            a.y_c[row + j] = c;
        }
    }
}
