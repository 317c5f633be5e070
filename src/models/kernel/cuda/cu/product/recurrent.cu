// recurrent.cu - LSTM, GRU and RNN, both directions at once. What the inputs add to the gates does not
// depend on the states, so one product makes it for many steps (recurrent_inputs). The rest goes step
// by step, in one of two ways:
//
//   recurrent_sequence  a block makes all steps of one batch entry and direction. Each of its threads
//                       keeps a row of R in registers, so a step costs two barriers of a block.
//   recurrent_step      a warp makes one hidden unit, and a launch one step: for states too large for
//                       a block. A launch is the cheapest barrier over the chip that a graph offers.
//                       GRU with the reset before the product takes two, which stages tell apart.
//
// States between launches are float, in two buffers that take turns.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_mma.cuh"
#include "tile_product.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef GATES
#define GATES 4  // 4 LSTM, 3 GRU, 1 RNN
#endif
#ifndef RESET_FIRST
#define RESET_FIRST 0  // GRU: the reset comes before the product
#endif
#ifndef USUAL
#define USUAL 1  // the usual functions, no clip: nothing is looked up
#endif
#ifndef HIDDEN
#define HIDDEN 4  // of recurrent_sequence
#endif
#ifndef FIXED_R
#define FIXED_R 0  // r is a constant, so a sequence may read it before its turn
#endif
#define THREADS ((GATES * HIDDEN + 31) / 32 * 32)

struct recurrent_arguments {
    const T *x;             // [steps, batch, inputs]; batch first, [batch, steps, inputs]
    const T *w;             // [directions, GATES * hidden, inputs]
    const T *r;             // [directions, GATES * hidden, hidden]
    const T *bias;          // [directions, 2 * GATES * hidden], may be NULL
    const i32 *lengths;     // [batch], may be NULL
    const T *initial_h;     // [directions, batch, hidden], may be NULL: zeros
    const T *initial_c;
    const T *peephole;      // [directions, 3 * hidden], may be NULL
    T *y;                   // [steps, directions, batch, hidden], may be NULL
    T *y_h;                 // [directions, batch, hidden], may be NULL; written by the last step
    T *y_c;
    float *parts;           // [directions, steps of this launch, batch, GATES * hidden]
    const float *h_in;      // [directions, batch, hidden]
    float *h_out;
    float *c;
    float *update, *reset;  // RESET_FIRST: z, and r * h
    i64 steps, batch, inputs, hidden, directions;
    i64 first, last, step;  // `parts` has steps first .. last - 1; the one to make
    i64 stage, reverse, batch_first, coupled;
    double clip;
    i64 kind[2][3];
    double alpha[2][3], beta[2][3];
};

// ---- functions --------------------------------------------------------------------------------

__device__ __forceinline__ float apply(i64 kind, float alpha, float beta, float x) {
    switch ((int)kind) {
        case 0:
            return sigmoid(x);
        case 1:
            return tanhf(x);
        case 2:
            return x < 0.0f ? 0.0f : x;
        case 3:
            return alpha * x + beta;
        case 4:
            return x < 0.0f ? alpha * x : x;
        case 5:
            return x > alpha ? x : 0.0f;
        case 6:
            return alpha * tanhf(beta * x);
        case 7: {
            const float value = alpha * x + beta;
            return value < 0.0f ? 0.0f : (value > 1.0f ? 1.0f : value);
        }
        case 8:
            return x < 0.0f ? alpha * expm1f(x) : x;
        case 9:
            return x / (1.0f + fabsf(x));
        default:
            return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
    }
}
// Function F of direction d; `bounds` as for the functions of gates.
template <int F, bool BOUNDS>
__device__ __forceinline__ float call(const recurrent_arguments &a, int d, float x) {
    if (USUAL) {
        return F == 0 && GATES > 1 ? sigmoid(x) : tanhf(x);
    }
    const float clip = (float)a.clip;
    if (BOUNDS) {
        x = x > clip ? clip : (x < -clip ? -clip : x);
    }
    return apply(a.kind[d][F], (float)a.alpha[d][F], (float)a.beta[d][F], x);
}

// ---- places -----------------------------------------------------------------------------------

__device__ __forceinline__ i64 length_of(const recurrent_arguments &a, i64 b) {
    const i64 length = a.lengths != 0 ? a.lengths[b] : a.steps;
    return length < 0 ? 0 : (length > a.steps ? a.steps : length);
}
__device__ __forceinline__ i64 time_of(const recurrent_arguments &a, int d, i64 b, i64 step) {
    const i64 length = length_of(a, b);
    return (a.reverse != 0 || d == 1) && step < length ? length - 1 - step : step;
}
__device__ __forceinline__ i64 outer_state(const recurrent_arguments &a, i64 d, i64 b) {
    return (a.batch_first != 0 ? b * a.directions + d : d * a.batch + b) * a.hidden;
}
__device__ __forceinline__ T *place_y(const recurrent_arguments &a, i64 d, i64 b, i64 time) {
    return a.y + (a.batch_first != 0 ? (b * a.steps + time) * a.directions + d
                                     : (time * a.directions + d) * a.batch + b) *
                     a.hidden;
}
// The states before the step, from the buffers or from the model.
__device__ __forceinline__ float former_h(const recurrent_arguments &a, i64 d, i64 b, i64 j) {
    if (a.step > 0) {
        return a.h_in[(d * a.batch + b) * a.hidden + j];
    }
    return a.initial_h != 0 ? convert<float>(a.initial_h[outer_state(a, d, b) + j]) : 0.0f;
}
__device__ __forceinline__ float former_c(const recurrent_arguments &a, i64 d, i64 b, i64 j) {
    if (a.step > 0) {
        return a.c[(d * a.batch + b) * a.hidden + j];
    }
    return a.initial_c != 0 ? convert<float>(a.initial_c[outer_state(a, d, b) + j]) : 0.0f;
}
__device__ __forceinline__ const float *place_parts(const recurrent_arguments &a, i64 d, i64 b,
                                                    i64 step) {
    return a.parts +
           ((d * (a.last - a.first) + step - a.first) * a.batch + b) * GATES * a.hidden;
}
// The part of the bias that a reset behind the product resets as well.
__device__ __forceinline__ float inner_bias(const recurrent_arguments &a, i64 d, i64 j) {
    return a.bias != 0 ? convert<float>(a.bias[(d * 2 * GATES + GATES + 2) * a.hidden + j]) : 0.0f;
}

// ---- cells ------------------------------------------------------------------------------------

// The new state of unit j from its gates before their functions: `x` of the inputs, `h` of the state.
// GRU with the reset first has its own way.
__device__ __forceinline__ float make_cell(const recurrent_arguments &a, int d, i64 j,
                                           const float (&x)[GATES], const float (&h)[GATES],
                                           float before, float &c) {
    if (GATES == 4) {  // in the order input, output, forget, cell
        float in = x[0] + h[0], out = x[1 % GATES] + h[1 % GATES];
        float forget = x[2 % GATES] + h[2 % GATES];
        const T *peephole = a.peephole != 0 ? a.peephole + d * 3 * a.hidden + j : 0;
        if (peephole != 0) {
            in += convert<float>(peephole[0]) * c;
            forget += convert<float>(peephole[2 * a.hidden]) * c;
        }
        in = call<0, true>(a, d, in);
        forget = a.coupled != 0 ? 1.0f - in : call<0, true>(a, d, forget);
        c = forget * c + in * call<1, true>(a, d, x[3 % GATES] + h[3 % GATES]);
        if (peephole != 0) {
            out += convert<float>(peephole[a.hidden]) * c;
        }
        return call<0, true>(a, d, out) * call<2, false>(a, d, c);
    }
    if (GATES == 3) {  // update, reset, hidden
        const float z = call<0, true>(a, d, x[0] + h[0]);
        const float r = call<0, true>(a, d, x[1 % GATES] + h[1 % GATES]);
        const float inner = h[2 % GATES] + inner_bias(a, d, j);
        const float n = call<1, true>(a, d, x[2 % GATES] + r * inner);
        return (1.0f - z) * n + z * before;
    }
    return call<0, true>(a, d, x[0] + h[0]);
}

// ---- inputs -----------------------------------------------------------------------------------

// The inputs of row m: step first + m / batch, in the order of the direction.
__device__ __forceinline__ const T *place_x(const recurrent_arguments &a, int d, i64 m) {
    const i64 b = m % a.batch, time = time_of(a, d, b, a.first + m / a.batch);
    return a.x + (a.batch_first != 0 ? b * a.steps + time : time * a.batch + b) * a.inputs;
}
// What the biases add to column n of `parts`.
__device__ __forceinline__ float outer_bias(const recurrent_arguments &a, int d, i64 n) {
    if (a.bias == 0) {
        return 0.0f;
    }
    const i64 columns = GATES * a.hidden;
    const T *both = a.bias + d * 2 * columns + n;
    const bool is_inner = GATES == 3 && !RESET_FIRST && n >= 2 * a.hidden;
    return convert<float>(both[0]) + (is_inner ? 0.0f : convert<float>(both[columns]));
}

struct load_rows {
    const recurrent_arguments &a;
    int d;
    i64 first, count;
    __device__ __forceinline__ float operator()(i64 i, i64 k) const {
        return first + i < count ? convert<float>(place_x(a, d, first + i)[k]) : 0.0f;
    }
};
struct load_weights {
    const T *w;
    i64 first, count, inputs;
    __device__ __forceinline__ float operator()(i64 k, i64 j) const {
        return first + j < count ? convert<float>(w[(first + j) * inputs + k]) : 0.0f;
    }
};

// parts = x W' + biases. The grid is (tiles of steps and batch, tiles of gates, directions).
extern "C" __global__ void __launch_bounds__(256) recurrent_inputs(const recurrent_arguments a) {
    take_turn();
    const int d = blockIdx.z;
    const i64 rows = (a.last - a.first) * a.batch, columns = GATES * a.hidden;
    const i64 m0 = (i64)blockIdx.x * 64, n0 = (i64)blockIdx.y * 64;
    const load_rows load_a = {a, d, m0, rows};
    const load_weights load_b = {a.w + d * columns * a.inputs, n0, columns, a.inputs};
    float sum[4][4];
    tile_product<float>(a.inputs, sum, load_a, load_b);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const i64 n = n0 + column + 16 * j;
        const float bias = n < columns ? outer_bias(a, d, n) : 0.0f;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const i64 m = m0 + row + 16 * i;
            if (m < rows && n < columns) {
                a.parts[(d * rows + m) * columns + n] = sum[i][j] + bias;
            }
        }
    }
}

// The same on tensor cores, for f16 and an even number of inputs: a warp makes 16 rows of 32 columns
// straight from memory. The grid is (tiles of rows, fours of tiles of columns, directions).
__device__ __forceinline__ u32 load_pair(const T *row, i64 k, i64 count) {
    return row != 0 && k < count ? *(const u32 *)(row + k) : 0;
}

extern "C" __global__ void __launch_bounds__(128)
recurrent_inputs_tensor(const recurrent_arguments a) {
    take_turn();
    const int d = blockIdx.z, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const i64 rows = (a.last - a.first) * a.batch, columns = GATES * a.hidden;
    const i64 m0 = (i64)blockIdx.x * 16 + g, n0 = (blockIdx.y * 4 + (threadIdx.x >> 5)) * 32;
    const T *x[2], *w[4];
    float sum[4][4] = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        x[i] = m0 + 8 * i < rows ? place_x(a, d, m0 + 8 * i) : 0;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const i64 n = n0 + 8 * j + g;
        w[j] = n < columns ? a.w + (d * columns + n) * a.inputs : 0;
    }
#pragma unroll 4
    for (i64 k = 2 * t; k - 2 * t < a.inputs; k += 16) {
        const u32 of_x[4] = {load_pair(x[0], k, a.inputs), load_pair(x[1], k, a.inputs),
                             load_pair(x[0], k + 8, a.inputs), load_pair(x[1], k + 8, a.inputs)};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const u32 of_w[2] = {load_pair(w[j], k, a.inputs), load_pair(w[j], k + 8, a.inputs)};
            mma_f16(sum[j], of_x, of_w);
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const i64 m = m0 + 8 * (i >> 1), n = n0 + 8 * j + 2 * t + (i & 1);
            if (m < rows && n < columns) {
                a.parts[(d * rows + m) * columns + n] = sum[j][i] + outer_bias(a, d, n);
            }
        }
    }
}

// ---- one step of all units --------------------------------------------------------------------

// Gates [FROM, TO) of a unit from the state, or from `reset`; all lanes get them.
template <int FROM, int TO>
__device__ __forceinline__ void warp_gates(const recurrent_arguments &a, i64 d, i64 b, i64 j,
                                           bool from_reset, float (&sum)[GATES]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int g = FROM; g < TO; g++) {
        sum[g] = 0.0f;
    }
    for (i64 k = lane; k < a.hidden; k += 32) {
        const float value =
            from_reset ? a.reset[(d * a.batch + b) * a.hidden + k] : former_h(a, d, b, k);
#pragma unroll
        for (int g = FROM; g < TO; g++) {
            sum[g] += value * convert<float>(a.r[((d * GATES + g) * a.hidden + j) * a.hidden + k]);
        }
    }
#pragma unroll
    for (int g = FROM; g < TO; g++) {
        sum[g] = warp_sum(sum[g]);
    }
}

extern "C" __global__ void __launch_bounds__(128) recurrent_step(const recurrent_arguments a) {
    take_turn();
    const i64 unit = (i64)blockIdx.x * 4 + (threadIdx.x >> 5);
    if (unit >= a.directions * a.batch * a.hidden) {
        return;
    }
    const i64 j = unit % a.hidden, b = unit / a.hidden % a.batch;
    const int d = (int)(unit / a.hidden / a.batch);
    const bool is_last = a.step == a.steps - 1, is_live = a.step < length_of(a, b);
    const bool leads = (threadIdx.x & 31) == 0;
    float x[GATES], h[GATES];
    const float *parts = place_parts(a, d, b, a.step);
#pragma unroll
    for (int g = 0; g < GATES; g++) {
        x[g] = parts[g * a.hidden + j];
    }
    const float before = former_h(a, d, b, j);
    float c = GATES == 4 ? former_c(a, d, b, j) : 0.0f;
    float state;
    if (RESET_FIRST && a.stage == 0) {
        warp_gates<0, 2 % (GATES + 1)>(a, d, b, j, false, h);
        if (leads) {
            a.update[unit] = call<0, true>(a, d, x[0] + h[0]);
            a.reset[unit] = call<0, true>(a, d, x[1 % GATES] + h[1 % GATES]) * before;
        }
        return;
    }
    if (RESET_FIRST) {
        warp_gates<GATES - 1, GATES>(a, d, b, j, true, h);
        const float z = a.update[unit];
        state = (1.0f - z) * call<1, true>(a, d, x[GATES - 1] + h[GATES - 1]) + z * before;
    } else {
        warp_gates<0, GATES>(a, d, b, j, false, h);
        state = make_cell(a, d, j, x, h, before, c);
    }
    if (!leads) {
        return;
    }
    if (!is_live) {
        state = before;
        c = GATES == 4 ? former_c(a, d, b, j) : 0.0f;
    }
    a.h_out[unit] = state;
    if (GATES == 4) {
        a.c[unit] = c;
    }
    if (a.y != 0) {
        place_y(a, d, b, time_of(a, d, b, a.step))[j] = convert<T>(is_live ? state : 0.0f);
    }
    if (is_last && a.y_h != 0) {
        a.y_h[outer_state(a, d, b) + j] = convert<T>(state);
    }
    if (is_last && GATES == 4 && a.y_c != 0) {
        a.y_c[outer_state(a, d, b) + j] = convert<T>(c);
    }
}

// ---- all steps of a small state ---------------------------------------------------------------

__device__ __forceinline__ float row_product(const float (&row)[HIDDEN], const float *values) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < HIDDEN; k++) {
        sum[k & 3] += row[k] * values[k];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

__device__ __forceinline__ void load_parts(const recurrent_arguments &a, int d, i64 b, i64 step,
                                           bool is_there, float (&x)[GATES]) {
    if (is_there) {
        const float *parts = place_parts(a, d, b, step) + threadIdx.x;
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            x[g] = parts[g * HIDDEN];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
recurrent_sequence(const recurrent_arguments a) {
    if (!FIXED_R) {
        take_turn();
    }
    __align__(16) __shared__ float state[HIDDEN];
    __align__(16) __shared__ float reset[HIDDEN];
    __shared__ float gates[GATES * HIDDEN];
    const int me = threadIdx.x;
    const i64 b = blockIdx.x % a.batch;
    const int d = (int)(blockIdx.x / a.batch);
    const bool has_row = me < GATES * HIDDEN, has_unit = me < HIDDEN;
    float row[HIDDEN];
    float h = 0.0f, c = 0.0f;
#pragma unroll
    for (int k = 0; k < HIDDEN; k++) {
        row[k] = has_row
                     ? convert<float>(a.r[((i64)d * GATES * HIDDEN + me) * HIDDEN + k]) : 0.0f;
    }
    if (FIXED_R) {
        take_turn();
    }
    const i64 length = length_of(a, b), outer = outer_state(a, d, b);
    const i64 end = a.last < length ? a.last : length;
    float next[GATES];  // of the next step, so that no thread waits for memory
    load_parts(a, d, b, a.first, has_unit && a.first < end, next);
    if (has_unit) {
        h = former_h(a, d, b, me);
        c = GATES == 4 ? former_c(a, d, b, me) : 0.0f;
        state[me] = h;
    }
    __syncthreads();
    for (i64 step = a.first; step < end; step++) {
        float x[GATES], from_h[GATES];
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            x[g] = next[g];
        }
        load_parts(a, d, b, step + 1, has_unit && step + 1 < end, next);
        if (has_row && (!RESET_FIRST || me < 2 * HIDDEN)) {
            gates[me] = row_product(row, state);
        }
        __syncthreads();
        if (RESET_FIRST) {
            float z = 0.0f;
            if (has_unit) {
                z = call<0, true>(a, d, x[0] + gates[me]);
                reset[me] = call<0, true>(a, d, x[1 % GATES] + gates[HIDDEN + me]) * h;
            }
            __syncthreads();
            if (has_row && me >= 2 * HIDDEN) {
                gates[me] = row_product(row, reset);
            }
            __syncthreads();
            if (has_unit) {
                const float n =
                    call<1, true>(a, d, x[GATES - 1] + gates[(GATES - 1) * HIDDEN + me]);
                h = (1.0f - z) * n + z * h;
            }
        } else if (has_unit) {
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                from_h[g] = gates[g * HIDDEN + me];
            }
            h = make_cell(a, d, me, x, from_h, h, c);
        }
        if (has_unit) {
            state[me] = h;
            if (a.y != 0) {
                place_y(a, d, b, time_of(a, d, b, step))[me] = convert<T>(h);
            }
        }
        __syncthreads();
    }
    if (!has_unit) {
        return;
    }
    for (i64 step = length > a.first ? length : a.first; step < a.last && a.y != 0; step++) {
        place_y(a, d, b, step)[me] = convert<T>(0.0f);
    }
    a.h_out[(d * a.batch + b) * HIDDEN + me] = h;
    if (GATES == 4) {
        a.c[(d * a.batch + b) * HIDDEN + me] = c;
    }
    if (a.last == a.steps) {
        if (a.y_h != 0) {
            a.y_h[outer + me] = convert<T>(h);
        }
        if (GATES == 4 && a.y_c != 0) {
            a.y_c[outer + me] = convert<T>(c);
        }
    }
}
