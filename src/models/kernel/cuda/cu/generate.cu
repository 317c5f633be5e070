// generate.cu - tensors made from little or no input: constants, ranges, one-hot, triangles, running
// sums.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_index.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_I
#define RONDO_I i64
#endif
typedef RONDO_I I;
#ifndef RONDO_A
#define RONDO_A compute_of<T>::type  // the type of running sums
#endif

struct fill_arguments {
    i64 count;
    T *y;
    i64 bits;  // the element in the low bytes
};
extern "C" __global__ void __launch_bounds__(256) fill(const fill_arguments a) {
    take_turn();
    const T value = *(const T *)&a.bits;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        a.y[n] = value;
    }
}

struct range_arguments {
    i64 count;
    const T *start;
    const T *delta;
    T *y;
};
extern "C" __global__ void __launch_bounds__(256) range(const range_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    const C start = convert<C>(*a.start), delta = convert<C>(*a.delta);
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        a.y[n] = convert<T>((C)(start + (C)n * delta));
    }
}

struct one_hot_arguments {
    i64 count;
    const I *index;
    const T *values;  // off, on
    T *y;
    i64 depth, inner;
};
extern "C" __global__ void __launch_bounds__(256) one_hot(const one_hot_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 i = n % a.inner, d = n / a.inner % a.depth, o = n / a.inner / a.depth;
        i64 hot = convert<i64>(a.index[o * a.inner + i]);
        if (hot < 0) {
            hot += a.depth;
        }
        a.y[n] = a.values[hot == d ? 1 : 0];
    }
}

struct trilu_arguments {
    i64 count;
    const T *x;
    T *y;
    i64 rows, columns;
    const i64 *diagonal;  // or NULL: 0
    i64 upper;
};
extern "C" __global__ void __launch_bounds__(256) trilu(const trilu_arguments a) {
    take_turn();
    i64 diagonal = a.diagonal != 0 ? *a.diagonal : 0;  // beyond the corners nothing changes
    diagonal = diagonal < -a.rows ? -a.rows : diagonal > a.columns ? a.columns : diagonal;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 column = n % a.columns, row = n / a.columns % a.rows;
        const bool keeps = a.upper ? column >= row + diagonal : column <= row + diagonal;
        T zero;
        for (int b = 0; b < (int)sizeof(T); b++) {
            ((u8 *)&zero)[b] = 0;
        }
        a.y[n] = keeps ? a.x[n] : zero;
    }
}

struct eye_arguments {
    i64 count;
    T *y;
    i64 columns, diagonal;
};
extern "C" __global__ void __launch_bounds__(256) eye_like(const eye_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 column = n % a.columns, row = n / a.columns;
        a.y[n] = convert<T>((i32)(column == row + a.diagonal ? 1 : 0));
    }
}

#ifndef MULTIPLIES
#define MULTIPLIES 0  // 1: CumProd
#endif
#ifndef RANK
#define RANK 0  // or the rank of the input, whose axis is fed
#endif
struct cum_sum_arguments {
    i64 lines;  // elements where the axis is fed
    const T *x;
    T *y;
    i64 exclusive, reverse;
#if RANK > 0
    const I *axis;
    i64 extent[RANK];
    faults told;
#else
    i64 length, inner;
#endif
};
extern "C" __global__ void __launch_bounds__(256) cum_sum(const cum_sum_arguments a) {
    take_turn();
    typedef RONDO_A C;
#if RANK > 0
    const i64 axis = wrap_index((i64)*a.axis, RANK, a.told);
    i64 length = 1, inner = 1;
    for (int d = 0; d < RANK; d++) {
        length = d == axis ? a.extent[d] : length;
        inner *= d > axis ? a.extent[d] : 1;
    }
    const i64 lines = a.lines / length;
#else
    const i64 length = a.length, inner = a.inner, lines = a.lines;
#endif
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < lines; n += (i64)gridDim.x * 256) {
        const i64 base = n / inner * length * inner + n % inner;
        C sum = (C)(MULTIPLIES ? 1 : 0);
        for (i64 k = 0; k < length; k++) {
            const i64 at = base + (a.reverse ? length - 1 - k : k) * inner;
            const C value = convert<C>(a.x[at]);
            if (a.exclusive) {
                a.y[at] = convert<T>(sum);
                sum = (C)(MULTIPLIES ? sum * value : sum + value);
            } else {
                sum = (C)(MULTIPLIES ? sum * value : sum + value);
                a.y[at] = convert<T>(sum);
            }
        }
    }
}
