// reduce.cu - reductions over any set of axes. KIND is the reduction (cuda_reduce.c has the list), A
// the accumulator. The host merges the kept and the reduced extents separately.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_A
#define RONDO_A float
#endif
typedef RONDO_A A;
#ifndef KIND
#define KIND 0
#endif
#ifndef KEPT
#define KEPT 2
#endif
#ifndef REDUCED
#define REDUCED 2
#endif

enum { SUM, MEAN, MAXIMUM, MINIMUM, PRODUCT, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP };

struct reduce_arguments {
    i64 outputs, length;  // elements kept, elements reduced into each
    const T *x;
    T *y;
    i64 kept_extent[KEPT], kept_stride[KEPT];
    i64 reduced_extent[REDUCED], reduced_stride[REDUCED];
};

__device__ __forceinline__ A first_value() {
    if (KIND == MAXIMUM || KIND == MINIMUM) {  // of real numbers; whole ones come without none
        return (A)(KIND == MAXIMUM ? -infinity() : infinity());
    }
    return KIND == PRODUCT ? (A)1 : (A)0;
}
__device__ __forceinline__ A take(A x, A shift) {
    if (KIND == L1) {
        return x < (A)0 ? -x : x;
    }
    if (KIND == L2 || KIND == SUM_SQUARE) {
        return x * x;
    }
    if (KIND == LOG_SUM_EXP) {
        // An infinite greatest element stands for itself.
        return isinf((double)shift) ? (A)(x == shift) : (A)exp((double)(x - shift));
    }
    return x;
}
__device__ __forceinline__ A combine(A a, A b) {
    if (KIND == MAXIMUM) {
        return a != a ? a : (b != b ? b : (a > b ? a : b));
    }
    if (KIND == MINIMUM) {
        return a != a ? a : (b != b ? b : (a < b ? a : b));
    }
    return KIND == PRODUCT ? (A)(a * b) : (A)(a + b);
}
// NaN wins.
__device__ __forceinline__ A larger(A a, A b) {
    return a > b || a != a ? a : b;
}
__device__ __forceinline__ T finish(A value, i64 length, A shift) {
    const bool is_whole = (A)0.5f == (A)0;
    if (KIND == MEAN) {
        value = is_whole && length == 0 ? (A)0 : value / (A)length;
    } else if (KIND == L2) {
        value = (A)sqrt((double)value);
    } else if (KIND == LOG_SUM) {
        value = (A)log((double)value);
    } else if (KIND == LOG_SUM_EXP) {
        value = (A)log((double)value) + shift;
    }
    return convert<T>(value);
}
__device__ __forceinline__ i64 kept_offset(const reduce_arguments &a, i64 n) {
    i64 at = 0;
#pragma unroll
    for (int d = KEPT - 1; d >= 0; d--) {
        const i64 i = d > 0 ? n % a.kept_extent[d] : n;
        n = d > 0 ? n / a.kept_extent[d] : 0;
        at += i * a.kept_stride[d];
    }
    return at;
}
__device__ __forceinline__ i64 reduced_offset(const reduce_arguments &a, i64 k) {
    if (REDUCED == 1) {
        return k * a.reduced_stride[0];
    }
    i64 at = 0;
    u32 rest = (u32)k;
#pragma unroll
    for (int d = REDUCED - 1; d >= 0; d--) {
        const u32 extent = (u32)a.reduced_extent[d];
        const u32 i = d > 0 ? rest % extent : rest;
        rest = d > 0 ? rest / extent : 0;
        at += (i64)i * a.reduced_stride[d];
    }
    return at;
}
__device__ __forceinline__ A load(const T *x) {
    return (A)convert<compute_of<T>::type>(*x);
}

// One thread for each output: where neighbouring outputs are neighbours in x.
extern "C" __global__ void __launch_bounds__(256) reduce_columns(const reduce_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.outputs; n += (i64)gridDim.x * 256) {
        const T *x = a.x + kept_offset(a, n);
        A shift = (A)0;
        if (KIND == LOG_SUM_EXP && a.length > 0) {
            shift = load(x + reduced_offset(a, 0));
            for (i64 k = 1; k < a.length; k++) {
                shift = larger(shift, load(x + reduced_offset(a, k)));
            }
        }
        A value = a.length > 0 ? take(load(x + reduced_offset(a, 0)), shift) : first_value();
        for (i64 k = 1; k < a.length; k++) {
            value = combine(value, take(load(x + reduced_offset(a, k)), shift));
        }
        a.y[n] = finish(value, a.length, shift);
    }
}

template <bool IS_MAXIMUM>
__device__ A block_combine(A value, bool is_valid, A *values, int *valid) {
    values[threadIdx.x] = value;
    valid[threadIdx.x] = is_valid;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step >>= 1) {
        if (threadIdx.x < step && valid[threadIdx.x + step]) {
            const A other = values[threadIdx.x + step];
            values[threadIdx.x] = !valid[threadIdx.x] ? other
                                  : IS_MAXIMUM        ? larger(values[threadIdx.x], other)
                                                      : combine(values[threadIdx.x], other);
            valid[threadIdx.x] = 1;
        }
        __syncthreads();
    }
    const A result = values[0];
    __syncthreads();
    return result;
}

// One block for each output; the block's size is a power of two.
extern "C" __global__ void __launch_bounds__(256) reduce_rows(const reduce_arguments a) {
    take_turn();
    __shared__ A values[256];
    __shared__ int valid[256];
    for (i64 n = blockIdx.x; n < a.outputs; n += gridDim.x) {
        const T *x = a.x + kept_offset(a, n);
        A shift = (A)0;
        bool any = false;
        if (KIND == LOG_SUM_EXP) {
            for (i64 k = threadIdx.x; k < a.length; k += blockDim.x) {
                const A value = load(x + reduced_offset(a, k));
                shift = any ? larger(shift, value) : value;
                any = true;
            }
            shift = block_combine<true>(shift, any, values, valid);
        }
        A value = first_value();
        any = false;
        for (i64 k = threadIdx.x; k < a.length; k += blockDim.x) {
            const A next = take(load(x + reduced_offset(a, k)), shift);
            value = any ? combine(value, next) : next;
            any = true;
        }
        value = block_combine<false>(value, any, values, valid);
        if (threadIdx.x == 0) {
            a.y[n] = finish(value, a.length, shift);
        }
    }
}

// 32 neighbouring outputs a block, whose 16 rows of threads share the elements of each.
extern "C" __global__ void __launch_bounds__(512) reduce_strips(const reduce_arguments a) {
    take_turn();
    __shared__ A values[16][33];
    const int column = threadIdx.x & 31, row = threadIdx.x >> 5;
    for (i64 n0 = (i64)blockIdx.x * 32; n0 < a.outputs; n0 += (i64)gridDim.x * 32) {
        const i64 n = n0 + column;
        const bool is_there = n < a.outputs && row < a.length;
        const T *x = a.x + (is_there ? kept_offset(a, n) : 0);
        A value = first_value();
        if (is_there) {
            value = take(load(x + reduced_offset(a, row)), (A)0);
#pragma unroll 4
            for (i64 k = row + 16; k < a.length; k += 16) {
                value = combine(value, take(load(x + reduced_offset(a, k)), (A)0));
            }
        }
        values[row][column] = value;
        __syncthreads();
        if (row == 0 && n < a.outputs) {
            for (i64 k = 1; k < 16 && k < a.length; k++) {
                value = combine(value, values[k][column]);
            }
            a.y[n] = finish(value, a.length, (A)0);
        }
        __syncthreads();
    }
}

// ArgMax and ArgMin: one warp for each line of `length` elements that are `inner` apart.
struct arg_arguments {
    i64 lines;
    const T *x;
    i64 *y;
    i64 length, inner, minimum, last;
};
// NaN is better than any number, and as good as another NaN.
template <typename C>
__device__ __forceinline__ bool is_better(C a, C b, i64 minimum) {
    return (minimum ? a < b : a > b) || (a != a && b == b);
}
template <typename C>
__device__ __forceinline__ bool is_tie(C a, C b) {
    return a == b || (a != a && b != b);
}
extern "C" __global__ void __launch_bounds__(256) arg_extreme(const arg_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    const int lane = threadIdx.x & 31;
    for (i64 line = (i64)blockIdx.x * 8 + (threadIdx.x >> 5); line < a.lines;
         line += (i64)gridDim.x * 8) {
        const T *x = a.x + line / a.inner * a.length * a.inner + line % a.inner;
        C best = convert<C>(x[0]);
        i64 at = 0;
        for (i64 k = lane; k < a.length; k += 32) {
            const C value = convert<C>(x[k * a.inner]);
            if (is_better(value, best, a.minimum) || (a.last && is_tie(value, best))) {
                best = value;
                at = k;
            }
        }
#pragma unroll
        for (int step = 16; step > 0; step >>= 1) {
            const C other = __shfl_xor_sync(0xffffffffu, best, step);
            const i64 other_at = __shfl_xor_sync(0xffffffffu, at, step);
            const bool comes_first = a.last ? other_at > at : other_at < at;
            if (is_better(other, best, a.minimum) || (is_tie(other, best) && comes_first)) {
                best = other;
                at = other_at;
            }
        }
        if (lane == 0) {
            a.y[line] = at;
        }
    }
}
