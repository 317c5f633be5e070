// rondo_few_rows.cuh - two to eight rows of f16 as columns of the right operand on tensor cores: lanes 4 g to 4 g + 3 of
// a block's warps have row g, each 8 pieces of 8 numbers in a turn along k. find_place(turn, i), which stands before,
// says where along k piece i of this lane begins; the pieces of a warp are as many numbers beside each other.
// SPDX-License-Identifier: Apache-2.0

typedef pack<u32, 4> piece;
enum { PIECES = 8 };

// Of no more than `count` rows, what is behind k is zeros.
__device__ __forceinline__ void load_pieces(const f16 *rows, i64 count, i64 k, int turn, piece (&own)[PIECES]) {
    const i64 row = (threadIdx.x & 31) >> 2;
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        const i64 at = find_place(turn, i);
        own[i] = piece();
        if (row < count && (WHOLE || at < k)) {
            own[i] = *(const piece *)(rows + row * k + at);
        }
    }
}

// RMSNormalization of rows that are there whole.
template <int WARP_COUNT, int COUNT>
__device__ __forceinline__ void normalise_pieces(const f16 *gain, i64 k, float epsilon, piece (&rows)[COUNT][PIECES]) {
    __shared__ float squares[WARP_COUNT][8];
    __shared__ piece gains[COUNT * WARP_COUNT * 32];
    const int warp = threadIdx.x >> 5, g = (threadIdx.x & 31) >> 2;
    piece own_gain[COUNT];
    load_row<WARP_COUNT * 32>(gain, k, own_gain);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT * PIECES * 4; i++) {
        const u32 pair = rows[i / 32][i / 4 % PIECES].value[i % 4];
        sum += first_half(pair) * first_half(pair) + second_half(pair) * second_half(pair);
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if ((threadIdx.x & 3) == 0) {
        squares[warp][g] = sum;
    }
#pragma unroll
    for (int t = 0; t < COUNT; t++) {
        gains[t * WARP_COUNT * 32 + threadIdx.x] = own_gain[t];
    }
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARP_COUNT; w++) {
        sum += squares[w][g];
    }
    const float inverse = 1.0f / sqrtf(sum / (float)k + epsilon);
#pragma unroll
    for (int i = 0; i < COUNT * PIECES; i++) {
        const piece by = gains[(u32)find_place(i / PIECES, i % PIECES) / 8];
        piece &row = rows[i / PIECES][i % PIECES];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            row.value[j] = pack_halves(first_half(row.value[j]) * inverse * first_half(by.value[j]),
                                       second_half(row.value[j]) * inverse * second_half(by.value[j]));
        }
    }
}
