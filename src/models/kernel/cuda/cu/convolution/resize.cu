// resize.cu - Resize and Upsample by tables. The host lists, for each axis that changes and each of its
// output positions, the input indices and their weights; so every mode is one weighted sum here, and
// nearest a move. An index of -1 stands for a position outside of the crop.
//
// x is [outer, RANK extents, inner]; axes before the first and behind the last that changes are in
// `outer` and `inner`. A thread makes one position of PLANES outer slices, which share its taps.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_A
#define RONDO_A float  // of sums and weights
#endif
typedef RONDO_A A;
#ifndef RONDO_INDEX
#define RONDO_INDEX u32
#endif
typedef RONDO_INDEX INDEX;
#ifndef RANK
#define RANK 2
#endif
#ifndef TAPS
#define TAPS 0  // of each axis; 0: they differ, or are many
#endif
#ifndef PLANES
#define PLANES 4
#endif
#ifndef WHOLE
#define WHOLE 0  // y holds whole numbers between `low` and `high`
#endif

struct tap {
    A weight;
    i32 index;
};

struct resize_arguments {
    i64 count;  // of positions and inner elements
    const T *x;
    T *y;
    const tap *table;
    i64 outer, inner, x_span, y_span;  // spans of an outer slice
    i64 outside;  // the bits of an element outside of the crop
    double low, high;
    i64 extent[RANK];  // of y
    i64 stride[RANK];  // of x, in elements
    i64 taps[RANK];
    i64 first[RANK];   // in the table
};

// The first axis is summed first, as in the reference: in whole numbers a last bit can become a step.
template <int D>
struct walk {
    static __device__ __forceinline__ A run(const resize_arguments &a, const T *x,
                                            const tap *const (&taps)[RANK]) {
        A sum = (A)0;
        const int count = TAPS > 0 ? TAPS : (int)a.taps[D];
#pragma unroll(TAPS > 0 ? TAPS : 1)
        for (int t = 0; t < count; t++) {
            const tap now = taps[D][t];
            sum += now.weight * walk<D - 1>::run(a, x + now.index * a.stride[D], taps);
        }
        return sum;
    }
};
template <>
struct walk<-1> {
    static __device__ __forceinline__ A run(const resize_arguments &, const T *x,
                                            const tap *const (&)[RANK]) {
        return convert<A>(*x);
    }
};

__device__ __forceinline__ T finish(const resize_arguments &a, A sum) {
    if (WHOLE) {
        const double whole = rint((double)sum);
        return convert<T>(whole < a.low ? a.low : (whole > a.high ? a.high : whole));
    }
    return convert<T>(sum);
}

extern "C" __global__ void __launch_bounds__(256) resize(const resize_arguments a) {
    take_turn();
    for (INDEX n = (INDEX)blockIdx.x * 256 + threadIdx.x; n < a.count;
         n += (INDEX)gridDim.x * 256) {
        INDEX rest = n / (INDEX)a.inner;
        const tap *taps[RANK];
        bool is_inside = true;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            const INDEX at = rest % (INDEX)a.extent[d];
            rest /= (INDEX)a.extent[d];
            taps[d] = a.table + a.first[d] + (i64)at * (TAPS > 0 ? TAPS : a.taps[d]);
            is_inside = is_inside && taps[d][0].index >= 0;
        }
        const T *x = a.x + n % (INDEX)a.inner;
        for (i64 group = blockIdx.y; group * PLANES < a.outer; group += gridDim.y) {
#pragma unroll
            for (int p = 0; p < PLANES; p++) {
                const i64 plane = group * PLANES + p;
                if (plane < a.outer) {
                    a.y[plane * a.y_span + n] =
                        is_inside ? finish(a, walk<RANK - 1>::run(a, x + plane * a.x_span, taps))
                                  : *(const T *)&a.outside;
                }
            }
        }
    }
}

// The element at the one tap of each axis.
extern "C" __global__ void __launch_bounds__(256) resize_nearest(const resize_arguments a) {
    take_turn();
    for (INDEX n = (INDEX)blockIdx.x * 256 + threadIdx.x; n < a.count;
         n += (INDEX)gridDim.x * 256) {
        INDEX rest = n / (INDEX)a.inner;
        i64 from = n % (INDEX)a.inner;
        bool is_inside = true;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            const INDEX at = rest % (INDEX)a.extent[d];
            rest /= (INDEX)a.extent[d];
            const i32 index = a.table[a.first[d] + at].index;
            is_inside = is_inside && index >= 0;
            from += index * a.stride[d];
        }
        for (i64 group = blockIdx.y; group * PLANES < a.outer; group += gridDim.y) {
#pragma unroll
            for (int p = 0; p < PLANES; p++) {
                const i64 plane = group * PLANES + p;
                if (plane < a.outer) {
                    a.y[plane * a.y_span + n] =
                        is_inside ? a.x[plane * a.x_span + from] : *(const T *)&a.outside;
                }
            }
        }
    }
}
