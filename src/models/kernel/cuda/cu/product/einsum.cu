// einsum.cu - Einsum. Two operands make a batch of products of matrices, each of whose extents stands for
// several labels; other counts are summed element by element.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "tile_product.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_A
#define RONDO_A float  // of sums
#endif
typedef RONDO_A A;
#ifndef OPERANDS
#define OPERANDS 2
#endif
#define SECOND (OPERANDS > 1 ? 1 : 0)  // of two
#ifndef LABELS
#define LABELS 4  // of one class, at most
#endif

// Labels that count as one extent. Steps of each operand, then of y.
struct label_class {
    i64 count;  // the product of the extents
    i64 extent[LABELS];
    i64 step[OPERANDS + 1][LABELS];
};

// The offset in operand `which` of place n.
__device__ __forceinline__ i64 find_offset(const label_class &labels, int which, i64 n) {
    i64 offset = 0;
#pragma unroll
    for (int d = LABELS - 1; d >= 0; d--) {
        i64 at = n;
        if (d > 0) {
            at = n % labels.extent[d];
            n /= labels.extent[d];
        }
        offset += at * labels.step[which][d];
    }
    return offset;
}

struct einsum_arguments {
    T *y;
    const T *x[OPERANDS];
    label_class batch, rows, columns, inner;  // with other than two operands: batch and inner
};

struct load_rows {
    const einsum_arguments &a;
    const T *x;
    i64 first;
    __device__ __forceinline__ A operator()(i64 i, i64 k) const {
        return first + i < a.rows.count
                   ? convert<A>(x[find_offset(a.rows, 0, first + i) + find_offset(a.inner, 0, k)])
                   : (A)0;
    }
};
struct load_columns {
    const einsum_arguments &a;
    const T *x;
    i64 first;
    __device__ __forceinline__ A operator()(i64 k, i64 j) const {
        return first + j < a.columns.count
                   ? convert<A>(
                         x[find_offset(a.columns, SECOND, first + j) +
                           find_offset(a.inner, SECOND, k)])
                   : (A)0;
    }
};

// The grid is (tiles of rows, tiles of columns, batch).
extern "C" __global__ void __launch_bounds__(256) einsum_product(const einsum_arguments a) {
    take_turn();
    const i64 m0 = (i64)blockIdx.x * 64, n0 = (i64)blockIdx.y * 64;
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
    for (i64 b = blockIdx.z; b < a.batch.count; b += gridDim.z) {
        const load_rows load_a = {a, a.x[0] + find_offset(a.batch, 0, b), m0};
        const load_columns load_b = {a, a.x[SECOND] + find_offset(a.batch, SECOND, b), n0};
        A sum[4][4];
        tile_product<A>(a.inner.count, sum, load_a, load_b);
        T *y = a.y + find_offset(a.batch, OPERANDS, b);
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
                if (m < a.rows.count && n < a.columns.count) {
                    y[find_offset(a.rows, OPERANDS, m) + find_offset(a.columns, OPERANDS, n)] =
                        convert<T>(sum[i][j]);
                }
            }
        }
    }
}
extern "C" __global__ void __launch_bounds__(256) einsum_each(const einsum_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.batch.count;
         n += (i64)gridDim.x * 256) {
        A sum = (A)0;
        for (i64 k = 0; k < a.inner.count; k++) {
            A product = (A)1;
#pragma unroll
            for (int x = 0; x < OPERANDS; x++) {
                product *= convert<A>(
                    a.x[x][find_offset(a.batch, x, n) + find_offset(a.inner, x, k)]);
            }
            sum += product;
        }
        a.y[find_offset(a.batch, OPERANDS, n)] = convert<T>(sum);
    }
}
