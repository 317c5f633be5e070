// tile_product.cuh - a 64 x 64 tile of a product in plain arithmetic: 256 threads, 4 x 4 elements each,
// sixteen steps of the inner extent at a time through shared memory. What A and B are is the
// caller's affair: `load_a(m, k)` and `load_b(k, n)` return 0 outside.
// SPDX-License-Identifier: Apache-2.0

template <typename A, typename LoadA, typename LoadB>
__device__ __forceinline__ void tile_product(i64 depth, A (&sum)[4][4], const LoadA &load_a,
                                             const LoadB &load_b) {
    __shared__ A tile_a[16][65];
    __shared__ A tile_b[16][65];
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            sum[i][j] = (A)0;
        }
    }
    for (i64 k = 0; k < depth; k += 16) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = threadIdx.x + i * 256;
            // Neighbouring threads take neighbouring k of A and neighbouring n of B.
            const int ka = at & 15, ma = at >> 4, nb = at & 63, kb = at >> 6;
            tile_a[ka][ma] = k + ka < depth ? load_a(ma, k + ka) : (A)0;
            tile_b[kb][nb] = k + kb < depth ? load_b(k + kb, nb) : (A)0;
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < 16; s++) {
            A a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                a[i] = tile_a[s][row + 16 * i];
                b[i] = tile_b[s][column + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sum[i][j] += a[i] * b[j];
                }
            }
        }
        __syncthreads();
    }
}
