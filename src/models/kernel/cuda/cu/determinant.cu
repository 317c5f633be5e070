// determinant.cu - Det by elimination with row pivots, in double; a block a matrix.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;

struct determinant_arguments {
    i64 count;
    const T *x;
    T *y;
    double *rows;  // [count, n, n], scratch
    i64 n;
};

extern "C" __global__ void __launch_bounds__(256) determinant(const determinant_arguments a) {
    take_turn();
    __shared__ i64 chosen;
    const i64 n = a.n;
    for (i64 matrix = blockIdx.x; matrix < a.count; matrix += gridDim.x) {
        double *rows = a.rows + matrix * n * n;
        for (i64 i = threadIdx.x; i < n * n; i += 256) {
            rows[i] = convert<double>(a.x[matrix * n * n + i]);
        }
        __syncthreads();
        double product = 1.0;
        for (i64 k = 0; k < n; k++) {
            if (threadIdx.x == 0) {
                i64 pivot = k;
                for (i64 i = k + 1; i < n; i++) {
                    pivot = fabs(rows[i * n + k]) > fabs(rows[pivot * n + k]) ? i : pivot;
                }
                chosen = pivot;
            }
            __syncthreads();
            const i64 pivot = chosen;
            const double head = rows[pivot * n + k];
            __syncthreads();
            if (head == 0.0) {
                product = 0.0;
                break;
            }
            product *= pivot != k ? -head : head;
            for (i64 j = threadIdx.x; j < n && pivot != k; j += 256) {
                const double swapped = rows[k * n + j];
                rows[k * n + j] = rows[pivot * n + j];
                rows[pivot * n + j] = swapped;
            }
            __syncthreads();
            // Column k itself is read by all and changed by none: later steps do not look at it.
            const i64 width = n - k - 1;
            for (i64 at = threadIdx.x; at < width * width; at += 256) {
                const i64 i = k + 1 + at / width, j = k + 1 + at % width;
                rows[i * n + j] -= rows[i * n + k] / head * rows[k * n + j];
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            a.y[matrix] = convert<T>(product);
        }
        __syncthreads();
    }
}
