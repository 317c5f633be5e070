// rondo_row.cuh - a row of f16 that all threads of a block read, 8 numbers each in some turns, perhaps to be normalised.
// SPDX-License-Identifier: Apache-2.0

__device__ __forceinline__ float first_half(u32 pair) {
    const f16 half = {(u16)pair};
    return half_to_float(half);
}
__device__ __forceinline__ float second_half(u32 pair) {
    const f16 half = {(u16)(pair >> 16)};
    return half_to_float(half);
}

// What is behind `count` numbers is zeros. The number of threads is a constant, so that addresses wait for nothing.
template <int THREAD_COUNT, int COUNT>
__device__ __forceinline__ void load_row(const f16 *from, i64 count, pack<u32, 4> (&row)[COUNT]) {
#pragma unroll
    for (int t = 0; t < COUNT; t++) {
        const i64 k = ((i64)t * THREAD_COUNT + threadIdx.x) * 8;
        row[t] = pack<u32, 4>();
        if (k < count) {
            row[t] = *(const pack<u32, 4> *)(from + k);
        }
    }
}

// RMSNormalization, of a block of WARP_COUNT warps.
template <int WARP_COUNT, int COUNT>
__device__ __forceinline__ void normalise_row(i64 count, float epsilon, const pack<u32, 4> (&gain)[COUNT],
                                              pack<u32, 4> (&row)[COUNT]) {
    __shared__ float squares[WARP_COUNT];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT * 4; i++) {
        const float x = first_half(row[i / 4].value[i % 4]), y = second_half(row[i / 4].value[i % 4]);
        sum += x * x + y * y;
    }
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) {
        squares[threadIdx.x >> 5] = sum;
    }
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARP_COUNT; w++) {
        sum += squares[w];
    }
    const float inverse = 1.0f / sqrtf(sum / (float)count + epsilon);
#pragma unroll
    for (int i = 0; i < COUNT * 4; i++) {
        const u32 x = row[i / 4].value[i % 4], g = gain[i / 4].value[i % 4];
        row[i / 4].value[i % 4] = pack_halves(first_half(x) * inverse * first_half(g),
                                              second_half(x) * inverse * second_half(g));
    }
}
