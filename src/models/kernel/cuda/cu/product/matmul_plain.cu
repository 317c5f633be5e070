// matmul_plain.cu - y = act(scale * A x B + factor * bias + z) for any strides, any batch broadcast and
// any numeric type: the product that is always there.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "tile_product.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_Y
#define RONDO_Y T  // or wider
#endif
typedef RONDO_Y Y;
#ifndef RONDO_A
#define RONDO_A float
#endif
typedef RONDO_A A;

#ifndef GATES
#define GATES 0  // 1: z is no addend: activated, it is a factor of the sums
#endif

struct matmul_arguments {
    const T *a;
    const T *b;
    const T *bias;  // may be NULL
    const T *z;     // may be NULL; y's shape
    Y *y;
    i64 m, n, k;
    i64 a_row, a_column, b_row, b_column;  // strides
    i64 bias_row, bias_column;
    i64 batch_extent[4], a_batch[4], b_batch[4];
    i64 activation;
    double scale, factor, alpha, beta;
};

struct load_operand {
    const T *base;
    i64 first, count, outer_stride, inner_stride;
    bool inner_is_k;
    __device__ __forceinline__ A operator()(i64 i, i64 j) const {
        // load_a(m, k) has the counted extent first, load_b(k, n) second.
        const i64 outer = inner_is_k ? i : j, k = inner_is_k ? j : i;
        if (first + outer >= count) {
            return (A)0;
        }
        return (A)convert<compute_of<T>::type>(
            base[(first + outer) * outer_stride + k * inner_stride]);
    }
};

extern "C" __global__ void __launch_bounds__(256) matmul_plain(const matmul_arguments p) {
    take_turn();
    i64 batch = blockIdx.z, at_a = 0, at_b = 0;
#pragma unroll
    for (int d = 3; d >= 0; d--) {
        const i64 i = batch % p.batch_extent[d];
        batch /= p.batch_extent[d];
        at_a += i * p.a_batch[d];
        at_b += i * p.b_batch[d];
    }
    const i64 m0 = (i64)blockIdx.y * 64, n0 = (i64)blockIdx.x * 64;
    const load_operand load_a = {p.a + at_a, m0, p.m, p.a_row, p.a_column, true};
    const load_operand load_b = {p.b + at_b, n0, p.n, p.b_column, p.b_row, false};
    A sum[4][4];
    tile_product<A>(p.k, sum, load_a, load_b);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
            if (m >= p.m || n >= p.n) {
                continue;
            }
            const i64 at = ((i64)blockIdx.z * p.m + m) * p.n + n;
            A value = sum[i][j];
            if (p.scale != 1.0) {
                value = (A)(value * (A)p.scale);
            }
            if (p.bias != 0) {
                value += (A)p.factor * (A)convert<compute_of<T>::type>(
                                           p.bias[m * p.bias_row + n * p.bias_column]);
            }
            A end = value;
            if (p.z != 0) {
                const A z = (A)convert<compute_of<T>::type>(p.z[at]);
                end = GATES ? z : value + z;
            }
            if (p.activation != 0) {
                end = (A)activate_by_number(p.activation, (float)end, (float)p.alpha,
                                            (float)p.beta);
            }
            p.y[at] = convert<Y>(GATES ? (A)(value * end) : end);
        }
    }
}

// One row times a matrix whose rows (outputs) are contiguous in k: a warp an output. The row may be
// normalised on the way (RMSNormalization), and a second matrix may gate the result.
#include "rondo_row_arguments.cuh"
#ifndef WIDTH
#define WIDTH 4
#endif
#ifndef EARLY_LINES
#define EARLY_LINES 0  // of 128 bytes, that a lane asks for before the turn
#endif
#ifndef NORMALISED
#define NORMALISED 0
#endif
#ifndef GATED
#define GATED 0
#endif

// A row of a matrix comes as far as the second-level cache while the kernel before still runs. What is
// written meanwhile is written there, too.
__device__ __forceinline__ void ask_early(const T *row, i64 count) {
#pragma unroll
    for (int i = 0; i < EARLY_LINES; i++) {
        const i64 at = (i64)(i * 32 + (threadIdx.x & 31)) * 128;
        if (at < count * (i64)sizeof(T)) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)row + at));
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) vector_product(const row_arguments p) {
    release_successor();
    const int lane = threadIdx.x & 31;
    const i64 n = (i64)blockIdx.x * 8 + (threadIdx.x >> 5), m = blockIdx.y;
    if (m == 0 && n < p.n) {
        ask_early(p.b + n * p.k, p.k);
        if (GATED) {
            ask_early(p.gate + n * p.k, p.k);
        }
    }
    await_predecessors();
    if (n >= p.n) {
        return;
    }
    const T *a = p.a + m * p.k, *b = p.b + n * p.k, *g = GATED ? p.gate + n * p.k : b;
    float sum = 0.0f, gate = 0.0f, squares = 0.0f;
#pragma unroll 4
    for (i64 k = (i64)lane * WIDTH; k < p.k; k += 32 * WIDTH) {
        const pack<T, WIDTH> va = *(const pack<T, WIDTH> *)(a + k);
        const pack<T, WIDTH> vb = *(const pack<T, WIDTH> *)(b + k);
        const pack<T, WIDTH> vg = *(const pack<T, WIDTH> *)(g + k);
        const pack<T, WIDTH> gain = *(const pack<T, WIDTH> *)((NORMALISED ? p.gain : a) + k);
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            float x = convert<float>(va.value[v]);
            if (NORMALISED) {
                squares += x * x;
                x *= convert<float>(gain.value[v]);
            }
            sum += x * convert<float>(vb.value[v]);
            if (GATED) {
                gate += x * convert<float>(vg.value[v]);
            }
        }
    }
    sum = warp_sum(sum);
    if (NORMALISED) {
        const float inverse = 1.0f / sqrtf(warp_sum(squares) / (float)p.k + (float)p.epsilon);
        sum *= inverse;
        gate = GATED ? warp_sum(gate) * inverse : 0.0f;
    } else if (GATED) {
        gate = warp_sum(gate);
    }
    if (lane == 0) {
        if (p.bias != 0) {
            sum += convert<float>(p.bias[n]);
        }
        if (p.z != 0) {
            sum += convert<float>(p.z[m * p.n + n]);
        }
        const float end =
            activate_by_number(p.activation, GATED ? gate : sum, (float)p.alpha, (float)p.beta);
        p.y[m * p.n + n] = convert<Y>(GATED ? end * sum : end);
    }
}
