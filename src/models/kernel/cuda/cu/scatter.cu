// scatter.cu - ScatterElements and ScatterND that reduce. Where updates meet, they are taken in their
// order, as the reference takes them, so that sums are the same each time: the updates' places are
// sorted (sort.cu), and the first of each run of equal places walks over the run. Of few updates each
// looks at all places itself.
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
#ifndef RANK
#define RANK 4
#endif
#ifndef REDUCTION
#define REDUCTION 1  // 1 add, 2 mul, 3 max, 4 min
#endif
#ifndef WHOLE
#define WHOLE 0  // T is a whole number: sums and products wrap
#endif
typedef compute_of<T>::type C;

struct scatter_arguments {
    i64 count;     // of updates; in scatter_reduce, of all their elements
    const I *index;
    const T *updates;
    T *y;          // the result, copied before
    u64 *keys;     // where each update goes, in elements of y
    const u32 *order;
    i64 inner;     // elements of an update
    i64 axis;      // ScatterElements; -1: tuples of RANK indices
    i64 extent[RANK];    // of y, where an index goes in
    i64 stride[RANK];    // of y
    i64 index_extent[RANK];
    faults told;
};

__device__ __forceinline__ u64 find_key(const scatter_arguments &a, i64 n) {
    i64 rest = n, to = 0;
#pragma unroll
    for (int d = RANK - 1; d >= 0; d--) {
        i64 at;
        if (a.axis < 0) {
            at = wrap_index((i64)a.index[n * RANK + d], a.extent[d], a.told);
        } else {
            at = d == a.axis ? wrap_index((i64)a.index[n], a.extent[d], a.told)
                             : rest % a.index_extent[d];
            rest /= a.index_extent[d];
        }
        to += at * a.stride[d];
    }
    return (u64)to;
}

extern "C" __global__ void __launch_bounds__(256) scatter_keys(const scatter_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        a.keys[n] = find_key(a, n);
    }
}

__device__ __forceinline__ C combine(C now, C update) {
    if (REDUCTION == 1) {
        return WHOLE ? (C)((u64)now + (u64)update) : (C)(now + update);
    }
    if (REDUCTION == 2) {
        return WHOLE ? (C)((u64)now * (u64)update) : (C)(now * update);
    }
    const bool takes = REDUCTION == 3 ? now < update : now > update;
    return takes || update != update ? update : now;  // NaN wins
}

extern "C" __global__ void __launch_bounds__(256) scatter_reduce(const scatter_arguments a) {
    take_turn();
    const i64 updates = a.count / a.inner;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 i = n % a.inner, first = n / a.inner;
        const u64 key = a.keys[first];
        if (first > 0 && a.keys[first - 1] == key) {
            continue;
        }
        C value = convert<C>(a.y[key + i]);
        for (i64 k = first; k < updates && a.keys[k] == key; k++) {
            value = combine(value, convert<C>(a.updates[(i64)a.order[k] * a.inner + i]));
        }
        a.y[key + i] = convert<T>(value);
    }
}

extern "C" __global__ void __launch_bounds__(256) scatter_few(const scatter_arguments a) {
    take_turn();
    const i64 updates = a.count / a.inner;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 i = n % a.inner, first = n / a.inner;
        const u64 key = find_key(a, first);
        bool is_first = true;
        for (i64 k = 0; k < first && is_first; k++) {
            is_first = find_key(a, k) != key;
        }
        if (!is_first) {
            continue;
        }
        C value = convert<C>(a.y[key + i]);
        for (i64 k = first; k < updates; k++) {
            if (find_key(a, k) == key) {
                value = combine(value, convert<C>(a.updates[k * a.inner + i]));
            }
        }
        a.y[key + i] = convert<T>(value);
    }
}
