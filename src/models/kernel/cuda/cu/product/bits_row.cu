// bits_row.cu - one row of f16 times weights of 4 bits in blocks (op/math/bits_product.h, rondo.BitsRow): act(n B + bias),
// or with a gate act(n G) * (n B), where n is the row, or RMSNormalization of it.
//
// A block makes 16 columns; its warps have 256 numbers along k each, in turns. A lane holds two times 16 bytes of two
// columns, which it asks for before the kernel's turn: nothing of the row is in them. They are the left operand on tensor
// cores, as pairs of f16 that are whole numbers, so nothing is rounded; blocks of 32 numbers go into columns of their own
// of the product, in which the row is the right operand, and meet their scales in float.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_mma.cuh"
#include "rondo_row.cuh"

typedef f16 T;

#ifndef WARPS
#define WARPS 8
#endif
#ifndef TURNS
#define TURNS 1  // of the warps, so that all of k is held
#endif
#ifndef NORMALISED
#define NORMALISED 0
#endif
#ifndef GATED
#define GATED 0
#endif
#ifndef PREPARED
#define PREPARED 0  // whole numbers are made of a warp's one share before the row is there
#endif
#ifndef EARLY
#define EARLY 1  // weights, scales and zeros are constants
#endif
#ifndef BLOCK
#define BLOCK 32  // numbers that share a scale, or more; a power of two
#endif
#ifndef ZEROS
#define ZEROS 0  // 0: 8; 1: packed
#endif

struct row_arguments {
    const T *a;
    const u8 *b;
    const T *scales;
    const u8 *zeros;
    const T *bias;  // may be NULL
    T *y;
    const T *gain;  // of NORMALISED
    const u8 *gate;  // of GATED, as the next two
    const T *gate_scales;
    const u8 *gate_zeros;
    i64 n, k;
    i64 blocks, row_bytes, zero_bytes;  // of a column
    double epsilon;
    i64 activation;
    double alpha, beta;
};

enum {
    THREADS = WARPS * 32,
    SPAN = 256,        // numbers along k of a warp
    PIECE_BYTES = 80,  // of 32 numbers of the row in shared memory, so that 8 lanes meet no bank twice
    TILES = 1 + GATED,
};

// What a warp has of a tile of 16 columns in a turn; of columns g and g + 8, a lane.
struct share {
    pack<u32, 4> words[2][2];  // blocks of 32 `place` and 4 + `place`
    u32 zeros[2][2];           // of the same blocks
    u32 scales[2];             // a pair each, of blocks 2 * place and 2 * place + 1
};

// What is behind k is zeros: the row is, too.
__device__ __forceinline__ void fetch_share(const row_arguments &p, bool is_gate, i64 first, i64 k, share &held) {
    const u8 *b = is_gate ? p.gate : p.b;
    const T *scales = is_gate ? p.gate_scales : p.scales;
    const u8 *zeros = is_gate ? p.gate_zeros : p.zeros;
    const int place = threadIdx.x & 3;
#pragma unroll
    for (int c = 0; c < 2; c++) {
        const i64 n = first + c * 8 < p.n ? first + c * 8 : p.n - 1;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const i64 at = k + h * 128 + place * 32;
            held.words[c][h] = pack<u32, 4>();
            held.zeros[c][h] = 8;
            if (at < p.k) {
                held.words[c][h] = *(const pack<u32, 4> *)(b + n * p.row_bytes + at / 2);
                if (ZEROS) {
                    const i64 block = at / BLOCK;
                    held.zeros[c][h] = zeros[n * p.zero_bytes + block / 2] >> (block % 2 * 4) & 15;
                }
            }
        }
        const i64 at = k + place * 64;
        held.scales[c] = 0;
        if (at < p.k) {
            const T *scale = scales + n * p.blocks + at / BLOCK;
            held.scales[c] = BLOCK == 32 ? *(const u32 *)scale : scale->bits * 0x10001u;
        }
    }
}

// Numbers less their zero, j and j + 4 of the word in pair j. Their bits stand where 1024 + number has them, or, of the
// odd ones, 64 + number. One instruction chooses bits and sets the others, which takes half as long as two.
__device__ __forceinline__ void centre_word(u32 word, u32 zero, u32 (&pairs)[4]) {
    const u32 less = (0x6400u + zero) * 0x10001u, odd_less = (0x5400u + zero * 16) * 0x10001u;
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
        u32 even, odd;
        asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(even) : "r"(word >> (4 * j)), "r"(0x000f000fu), "r"(0x64006400u), "n"(0xea));
        asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(odd) : "r"(word >> (4 * j)), "r"(0x00f000f0u), "r"(0x54005400u), "n"(0xea));
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(pairs[j]) : "r"(even), "r"(less));
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(pairs[j + 1]) : "r"(odd), "r"(odd_less));
    }
}

struct share_pairs {
    u32 of[2][2][4][4];  // of column, half, word
};

__device__ __forceinline__ void centre_share(const share &held, share_pairs &pairs) {
#pragma unroll
    for (int i = 0; i < 16; i++) {
        centre_word(held.words[i & 1][i >> 1 & 1].value[i >> 2], held.zeros[i & 1][i >> 1 & 1],
                    pairs.of[i & 1][i >> 1 & 1][i >> 2]);
    }
}

// The row into shared memory, with the numbers of each 8 in the order of centre_word's pairs. A warp writes what it
// reads.
__device__ __forceinline__ void store_row(const pack<u32, 4> (&row)[TURNS], u8 *memory) {
#pragma unroll
    for (int t = 0; t < TURNS; t++) {
        const int at = t * THREADS + threadIdx.x;
        pack<u32, 4> turned;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            turned.value[j] = __byte_perm(row[t].value[j / 2], row[t].value[j / 2 + 2], j % 2 == 0 ? 0x5410 : 0x7632);
        }
        *(pack<u32, 4> *)(memory + at / 4 * PIECE_BYTES + at % 4 * 16) = turned;
    }
    __syncwarp();
}

// Adds what a share gives for columns g and g + 8. Lane 4 g + place has the row's block g where that is `place` or
// 4 + `place`, whose weights it is then multiplied with; the sums are those of blocks 2 * place and 2 * place + 1.
__device__ __forceinline__ void add_share(const share &held, const share_pairs &pairs, const u8 *pieces,
                                          float (&total)[2]) {
    const int lane = threadIdx.x & 31, place = lane & 3, g = lane >> 2;
    float sum[2][4] = {};
#pragma unroll
    for (int w = 0; w < 4; w++) {
        pack<u32, 4> row = pack<u32, 4>();
        if ((g & 3) == place) {
            row = *(const pack<u32, 4> *)(pieces + g * PIECE_BYTES + w * 16);
        }
        const u32 first[2] = {row.value[0], row.value[1]}, second[2] = {row.value[2], row.value[3]};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 x[4], y[4];
            if (PREPARED) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    x[j] = pairs.of[0][h][w][j];
                    y[j] = pairs.of[1][h][w][j];
                }
            } else {
                centre_word(held.words[0][h].value[w], held.zeros[0][h], x);
                centre_word(held.words[1][h].value[w], held.zeros[1][h], y);
            }
            const u32 left[4] = {x[0], y[0], x[1], y[1]}, right[4] = {x[2], y[2], x[3], y[3]};
            mma_f16(sum[h], left, first);
            mma_f16(sum[h], right, second);
        }
    }
#pragma unroll
    for (int c = 0; c < 2; c++) {
        total[c] += (place < 2 ? sum[0][c * 2] : sum[1][c * 2]) * first_half(held.scales[c]) +
                    (place < 2 ? sum[0][c * 2 + 1] : sum[1][c * 2 + 1]) * second_half(held.scales[c]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) bits_row(const row_arguments p) {
    release_successor();
    extern __shared__ __align__(16) u8 memory[];
    __shared__ float sums[WARPS][TILES][16];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const i64 first = (i64)blockIdx.x * 16, n = first + threadIdx.x;
    share held[TURNS][TILES];
    if (!EARLY) {
        await_predecessors();
    }
#pragma unroll
    for (int i = 0; i < TURNS * TILES; i++) {
        fetch_share(p, i % TILES != 0, first + lane / 4, (i64)(i / TILES * WARPS + warp) * SPAN,
                    held[i / TILES][i % TILES]);
    }
    if (EARLY) {
        await_predecessors();
    }
    const float bias = threadIdx.x < 16 && n < p.n && p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f;
    pack<u32, 4> row[TURNS], gain[TURNS];
    load_row<THREADS>(p.a, p.k, row);
    load_row<THREADS>(NORMALISED ? p.gain : p.a, p.k, gain);
    share_pairs pairs;
    if (PREPARED) {
        centre_share(held[0][0], pairs);
    }
    if (NORMALISED) {
        normalise_row<WARPS>(p.k, (float)p.epsilon, gain, row);
    }
    store_row(row, memory);
    float total[TILES][2] = {};
#pragma unroll
    for (int i = 0; i < TURNS * TILES; i++) {
        add_share(held[i / TILES][i % TILES], pairs,
                  memory + (i / TILES * WARPS + warp) * (SPAN / 32) * PIECE_BYTES, total[i % TILES]);
    }
#pragma unroll
    for (int i = 0; i < TILES * 2; i++) {
        float value = total[i / 2][i % 2];
        value += __shfl_xor_sync(0xffffffffu, value, 1);
        value += __shfl_xor_sync(0xffffffffu, value, 2);
        if (lane % 4 == 0) {
            sums[warp][i / 2][i % 2 * 8 + lane / 4] = value;
        }
    }
    __syncthreads();
    if (threadIdx.x < 16 && n < p.n) {
        float value[TILES] = {};
#pragma unroll
        for (int i = 0; i < WARPS * TILES; i++) {
            value[i % TILES] += sums[i / TILES][i % TILES][threadIdx.x];
        }
        const float end = activate_by_number(p.activation, value[TILES - 1] + bias, (float)p.alpha, (float)p.beta);
        p.y[n] = convert<T>(GATED ? end * value[0] : end);
    }
}
