// quantize.cu - QuantizeLinear and DequantizeLinear with blocks that end before their time (all other
// forms are element-wise), and DynamicQuantizeLinear: the extremes in parts, then the steps.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#ifdef RONDO_NARROW
#include "rondo_narrow.cuh"
#endif
#include "rondo_quantize.cuh"
#include "rondo_extremes.cuh"

#ifndef RONDO_X
#define RONDO_X float
#endif
typedef RONDO_X X;
#ifndef RONDO_S
#define RONDO_S float
#endif
typedef RONDO_S S;
#ifndef RONDO_Q
#define RONDO_Q u8
#endif
typedef RONDO_Q Q;
#ifndef RONDO_P
#define RONDO_P float  // the quotient
#endif
#ifndef RONDO_Y
#define RONDO_Y RONDO_S  // what DequantizeLinear makes
#endif
typedef RONDO_Y Y;
#ifndef LOW
#define LOW 0  // limits of a small integer
#define HIGH 0
#endif

#ifndef ONE_WHEN_FLAT
#define ONE_WHEN_FLAT 0  // the scale where all values are 0
#endif

struct quantize_arguments {
    i64 count;
    const void *x;
    const S *scale;
    const Q *zero;  // may be NULL
    void *y;
    i64 length, inner, block, scales;  // x [outer, length, inner], scale [outer, scales, inner]
};

__device__ __forceinline__ i64 find_scale(const quantize_arguments &a, i64 i) {
    const i64 place = i / a.inner % a.length, outer = i / a.inner / a.length;
    return (outer * a.scales + place / a.block) * a.inner + i % a.inner;
}

// A quotient becomes a step, which is of a usual type, a small integer or a small float.
template <typename To>
struct stepper {
    template <typename Real>
    static __device__ __forceinline__ To run(Real quotient, const To *zero) {
        return quantize<To>(quotient, zero != 0 ? *zero : (To)0);
    }
};
#ifdef RONDO_NARROW
template <int BITS, bool IS_SIGNED>
struct stepper<small_int<BITS, IS_SIGNED>> {
    typedef small_int<BITS, IS_SIGNED> To;
    template <typename Real>
    static __device__ __forceinline__ To run(Real quotient, const To *zero) {
        return convert<To>(quantize_within(quotient, zero != 0 ? (i32)*zero : 0, LOW, HIGH));
    }
};
template <int F, int B, u32 S_, u32 L, u32 O, u32 N>
struct stepper<small_float<F, B, S_, L, O, N>> {
    typedef small_float<F, B, S_, L, O, N> To;
    template <typename Real>
    static __device__ __forceinline__ To run(Real quotient, const To *zero) {
        return convert<To>((float)(quotient + (Real)(zero != 0 ? (float)*zero : 0.0f)));
    }
};
#endif

extern "C" __global__ void __launch_bounds__(256) quantize_blocks(const quantize_arguments a) {
    take_turn();
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (i64)gridDim.x * 256) {
        const i64 at = find_scale(a, i);
        const auto x = convert<compute_of<X>::type>(((const X *)a.x)[i]);
        const auto scale = convert<compute_of<S>::type>(a.scale[at]);
        ((Q *)a.y)[i] =
            stepper<Q>::run(division<RONDO_P>::run(x, scale), a.zero != 0 ? a.zero + at : a.zero);
    }
}

extern "C" __global__ void __launch_bounds__(256) dequantize_blocks(const quantize_arguments a) {
    take_turn();
    typedef compute_of<Q>::type C;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (i64)gridDim.x * 256) {
        const i64 at = find_scale(a, i);
        const auto scale = convert<compute_of<S>::type>(a.scale[at]);
        const C zero = a.zero != 0 ? convert<C>(a.zero[at]) : (C)0;
        ((Y *)a.y)[i] = convert<Y>(dequantize_as<compute_of<Y>::type>(
            convert<C>(((const Q *)a.x)[i]), scale, zero));
    }
}

// ---- DynamicQuantizeLinear --------------------------------------------------------------------

struct dynamic_arguments {
    i64 count;
    const float *x;
    extremes *parts;
    i64 part_count;
    u8 *y;         // may be NULL
    float *scale;  // may be NULL
    u8 *zero;      // may be NULL
};

// Of all of x, four at a time, by threads `first`, `first` + `stride` and so on.
__device__ __forceinline__ extremes find_extremes(const dynamic_arguments &a, i64 first,
                                                  i64 stride) {
    extremes mine = {0.0f, 0.0f};
    for (i64 i = first; i < a.count / 4; i += stride) {
        const pack<float, 4> x = *(const pack<float, 4> *)(a.x + i * 4);
#pragma unroll
        for (int v = 0; v < 4; v++) {
            const extremes one = {x.value[v], x.value[v]};
            mine.meet(one);
        }
    }
    for (i64 i = a.count / 4 * 4 + first; i < a.count; i += stride) {
        const extremes one = {a.x[i], a.x[i]};
        mine.meet(one);
    }
    return mine;
}

// A part for each block.
extern "C" __global__ void __launch_bounds__(256) dynamic_extremes(const dynamic_arguments a) {
    take_turn();
    const extremes mine = block_extremes(find_extremes(
        a, (i64)blockIdx.x * 256 + threadIdx.x, (i64)gridDim.x * 256));
    if (threadIdx.x == 0) {
        a.parts[blockIdx.x] = mine;
    }
}

// Without parts one block finds the extremes itself. Threads: a multiple of 32.
extern "C" __global__ void __launch_bounds__(1024) dynamic_quantize(const dynamic_arguments a) {
    take_turn();
    extremes mine = {0.0f, 0.0f};
    for (i64 i = threadIdx.x; i < a.part_count; i += blockDim.x) {
        mine.meet(a.parts[i]);
    }
    if (a.part_count == 0) {
        mine = find_extremes(a, threadIdx.x, blockDim.x);
    }
    mine = block_extremes(mine);
    const float scale =
        ONE_WHEN_FLAT && mine.high == mine.low ? 1.0f : (mine.high - mine.low) / 255.0f;
    const u8 zero = scale == 0.0f ? (u8)0 : quantize<u8>((0.0f - mine.low) / scale, (u8)0);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (a.scale != 0) {
            a.scale[0] = scale;
        }
        if (a.zero != 0) {
            a.zero[0] = zero;
        }
    }
    const i64 stride = (i64)gridDim.x * blockDim.x;
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    for (i64 i = first; a.y != 0 && i < a.count / 4; i += stride) {
        const pack<float, 4> x = *(const pack<float, 4> *)(a.x + i * 4);
        pack<u8, 4> y;
#pragma unroll
        for (int v = 0; v < 4; v++) {
            y.value[v] = quantize<u8>(scale == 0.0f ? 0.0f : x.value[v] / scale, zero);
        }
        *(pack<u8, 4> *)(a.y + i * 4) = y;
    }
    for (i64 i = a.count / 4 * 4 + first; a.y != 0 && i < a.count; i += stride) {
        a.y[i] = quantize<u8>(scale == 0.0f ? 0.0f : a.x[i] / scale, zero);
    }
}
