// softmax.cu - Softmax and LogSoftmax, in float (doubles by softmax_columns in double); with ZERO_ROWS a row that is no number becomes zeros.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef LOGARITHM
#define LOGARITHM 0
#endif
#ifndef ZERO_ROWS
#define ZERO_ROWS 0
#endif
#ifndef PER_THREAD
#define PER_THREAD 4
#endif

struct softmax_arguments {
    i64 lines;
    const T *x;
    T *y;
    i64 length, inner;
};

__device__ __forceinline__ T finish(float x, float peak, float sum) {
    if (ZERO_ROWS && !(sum > 0.0f)) {
        return convert<T>(0.0f);
    }
    return convert<T>(LOGARITHM ? x - peak - logf(sum) : expf(x - peak) / sum);
}

__device__ __forceinline__ T finish(double x, double peak, double sum) {
    return convert<T>(LOGARITHM ? x - peak - log(sum) : exp(x - peak) / sum);
}

__device__ __forceinline__ float power(float x) {
    return expf(x);
}
__device__ __forceinline__ double power(double x) {
    return exp(x);
}

template <typename C>
struct line_sum : long_sum {};
template <>
struct line_sum<double> {
    double total;
    __device__ __forceinline__ line_sum() : total(0.0) {
    }
    __device__ __forceinline__ void add(double x) {
        total += x;
    }
    __device__ __forceinline__ double get() const {
        return total;
    }
};

// Contiguous rows of at most blockDim * PER_THREAD elements: one read, one write, a block a row.
extern "C" __global__ void __launch_bounds__(256) softmax_short_rows(const softmax_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 line = blockIdx.x; line < a.lines; line += gridDim.x) {
        const T *x = a.x + line * a.length;
        T *y = a.y + line * a.length;
        float value[PER_THREAD];
        float peak = -infinity(), sum = 0.0f;
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            const i64 i = (i64)k * blockDim.x + threadIdx.x;
            value[k] = i < a.length ? convert<float>(x[i]) : -infinity();
            peak = fmaxf(peak, value[k]);
        }
        peak = blockDim.x == 32 ? warp_max(peak) : block_max(peak, scratch);
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            const i64 i = (i64)k * blockDim.x + threadIdx.x;
            sum += i < a.length ? expf(value[k] - peak) : 0.0f;
        }
        sum = blockDim.x == 32 ? warp_sum(sum) : block_sum(sum, scratch);
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            const i64 i = (i64)k * blockDim.x + threadIdx.x;
            if (i < a.length) {
                y[i] = finish(value[k], peak, sum);
            }
        }
    }
}

// Rows of any length.
extern "C" __global__ void __launch_bounds__(256) softmax_rows(const softmax_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 line = blockIdx.x; line < a.lines; line += gridDim.x) {
        const T *x = a.x + line * a.length;
        T *y = a.y + line * a.length;
        float peak = -infinity();
        long_sum terms;
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            peak = fmaxf(peak, convert<float>(x[i]));
        }
        peak = block_max(peak, scratch);
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            terms.add(expf(convert<float>(x[i]) - peak));
        }
        const float sum = block_sum(terms.get(), scratch);
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            y[i] = finish(convert<float>(x[i]), peak, sum);
        }
    }
}

// Lines whose elements are `inner` apart: a thread a line, so that neighbours read neighbours.
extern "C" __global__ void __launch_bounds__(256) softmax_columns(const softmax_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    for (i64 line = (i64)blockIdx.x * 256 + threadIdx.x; line < a.lines;
         line += (i64)gridDim.x * 256) {
        const i64 base = line / a.inner * a.length * a.inner + line % a.inner;
        C peak = (C)-infinity();
        line_sum<C> terms;
        for (i64 i = 0; i < a.length; i++) {
            const C x = convert<C>(a.x[base + i * a.inner]);
            peak = x > peak ? x : peak;
        }
        for (i64 i = 0; i < a.length; i++) {
            terms.add(power(convert<C>(a.x[base + i * a.inner]) - peak));
        }
        const C sum = terms.get();
        for (i64 i = 0; i < a.length; i++) {
            a.y[base + i * a.inner] = finish(convert<C>(a.x[base + i * a.inner]), peak, sum);
        }
    }
}
