// gather.cu - moves of elements by index tensors. T is an unsigned type of the element's size, I the
// index type (i32 or i64).
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_index.cuh"

#ifndef RONDO_T
#define RONDO_T u32
#endif
typedef RONDO_T T;
#ifndef RONDO_I
#define RONDO_I i64
#endif
typedef RONDO_I I;
#ifndef RANK
#define RANK 4
#endif

// y[o][k][i] = x[o][index[k]][i]
struct gather_arguments {
    i64 count;
    const T *x;
    const I *index;
    T *y;
    i64 axis_extent, index_count, inner;
    faults told;
};
extern "C" __global__ void __launch_bounds__(256) gather(const gather_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        i64 i, k, o;
        if (a.count < 0x7fffffff) {
            const u32 row = (u32)n / (u32)a.inner;
            i = (u32)n % (u32)a.inner;
            k = row % (u32)a.index_count;
            o = row / (u32)a.index_count;
        } else {
            i = n % a.inner;
            k = n / a.inner % a.index_count;
            o = n / a.inner / a.index_count;
        }
        const i64 at = wrap_index((i64)a.index[k], a.axis_extent, a.told);
        a.y[n] = a.x[(o * a.axis_extent + at) * a.inner + i];
    }
}

// y[i_0 .. i_r] = x[.. index[i_0 .. i_r] at the axis ..], over the shape of the index.
struct gather_elements_arguments {
    i64 count;
    const T *x;
    const I *index;
    T *y;
    i64 axis, axis_extent;
    i64 extent[RANK];    // of the index
    i64 stride_x[RANK];  // of x
    faults told;
};
extern "C" __global__ void __launch_bounds__(256)
gather_elements(const gather_elements_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        i64 rest = n, from = 0;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            const i64 i = rest % a.extent[d];
            rest /= a.extent[d];
            const i64 at = d == a.axis ? wrap_index((i64)a.index[n], a.axis_extent, a.told) : i;
            from += at * a.stride_x[d];
        }
        a.y[n] = a.x[from];
    }
}
extern "C" __global__ void __launch_bounds__(256)
scatter_elements(const gather_elements_arguments a) {
    take_turn();  // x: updates; y: the result, copied before
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        i64 rest = n, to = 0;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            const i64 i = rest % a.extent[d];
            rest /= a.extent[d];
            const i64 at = d == a.axis ? wrap_index((i64)a.index[n], a.axis_extent, a.told) : i;
            to += at * a.stride_x[d];
        }
        a.y[to] = a.x[n];
    }
}

// GatherND: rows of `inner` elements picked by tuples of `depth` indices; `batch` leading extents
// are shared by x and index.
struct gather_nd_arguments {
    i64 count;
    const T *x;
    const I *index;
    T *y;
    i64 inner, depth, tuples_per_batch, batch_stride;
    i64 extent[RANK];
    i64 stride[RANK];
    faults told;
};
extern "C" __global__ void __launch_bounds__(256) gather_nd(const gather_nd_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 tuple = n / a.inner;
        i64 from = tuple / a.tuples_per_batch * a.batch_stride + n % a.inner;
        for (int d = 0; d < RANK; d++) {
            if (d < a.depth) {
                const i64 index = (i64)a.index[tuple * a.depth + d];
                from += wrap_index(index, a.extent[d], a.told) * a.stride[d];
            }
        }
        a.y[n] = a.x[from];
    }
}
extern "C" __global__ void __launch_bounds__(256) scatter_nd(const gather_nd_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 tuple = n / a.inner;
        i64 to = n % a.inner;
        for (int d = 0; d < RANK; d++) {
            if (d < a.depth) {
                const i64 index = (i64)a.index[tuple * a.depth + d];
                to += wrap_index(index, a.extent[d], a.told) * a.stride[d];
            }
        }
        a.y[to] = a.x[n];
    }
}
