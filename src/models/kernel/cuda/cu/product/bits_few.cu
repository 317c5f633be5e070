// bits_few.cu - two to 32 rows of f16 times weights of 4 bits in blocks (op/math/bits_product.h, rondo.BitsRow):
// act(n B + addend), or with a gate act(n G) * (n B), where n are the rows, or RMSNormalization of them.
//
// A block makes 16 columns, or two times 16; its warps have 256 numbers along k each, in turns. A lane holds two times 16
// bytes of two columns, which it asks for before the kernel's turn: nothing of the rows is in them. As f16 they are the
// left operand on tensor cores; rows are columns of the right one, each lane's own straight from memory. What stands
// where along k is one for the sum, as long as both operands have the same order.
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
#ifndef COLUMN_TILES
#define COLUMN_TILES 1  // of 16 columns; without a gate
#endif
#ifndef ROW_TILES
#define ROW_TILES 1  // of 8 rows
#endif
#ifndef NORMALISED
#define NORMALISED 0  // of one tile of rows
#endif
#ifndef GATED
#define GATED 0
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

struct few_arguments {
    const T *a;
    const u8 *b;
    const T *scales;
    const u8 *zeros;
    const T *addend;  // may be NULL
    T *y;
    const T *gain;  // of NORMALISED
    const u8 *gate;  // of GATED, as the next two
    const T *gate_scales;
    const u8 *gate_zeros;
    i64 m, n, k;
    i64 blocks, row_bytes, zero_bytes;  // of a column
    i64 addend_stride;                  // from row to row; 0: all rows have the same
    double epsilon;
    i64 activation;
    double alpha, beta;
};

enum {
    THREADS = WARPS * 32,
    SPAN = 256,  // numbers along k of a warp
    ROWS = 8,
    TILES = GATED ? 2 : COLUMN_TILES,
    ENDS = (GATED ? 1 : COLUMN_TILES) * ROW_TILES,  // tiles of the result
    ENDS_OF_THREAD = (ENDS * 128 + THREADS - 1) / THREADS,
    CHAINS = ROW_TILES == 1 ? 2 : 1,  // of sums that do not wait for each other
};

// What a warp has of a tile of 16 columns in a turn; of columns g and g + 8, a lane, which has the
// blocks of 32 numbers `place` and 4 + `place`. Scales and zeros stand in both halves.
struct share {
    pack<u32, 4> words[2][2];
    u32 zeros[2][2];
    u32 scales[2][2];
};

// What is behind k is zeros: the rows are, too.
__device__ __forceinline__ void fetch_share(const few_arguments &p, bool is_gate, i64 first, i64 k, share &held) {
    const u8 *b = is_gate ? p.gate : p.b;
    const T *scales = is_gate ? p.gate_scales : p.scales;
    const u8 *zeros = is_gate ? p.gate_zeros : p.zeros;
    const int place = threadIdx.x & 3;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int c = i & 1, h = i >> 1;
        const i64 n = first + c * 8 < p.n ? first + c * 8 : p.n - 1;
        const i64 at = k + h * 128 + place * 32, block = at / BLOCK;
        held.words[c][h] = pack<u32, 4>();
        held.zeros[c][h] = 8;
        held.scales[c][h] = 0;
        if (at < p.k) {
            held.words[c][h] = *(const pack<u32, 4> *)(b + n * p.row_bytes + at / 2);
            held.scales[c][h] = scales[n * p.blocks + block].bits * 0x10001u;
            if (ZEROS) {
                held.zeros[c][h] = zeros[n * p.zero_bytes + block / 2] >> (block % 2 * 4) & 15;
            }
        }
    }
}

// (number - zero) * scale, j and j + 4 of the word in pair j; see bits_row.cu.
__device__ __forceinline__ void make_pairs(u32 word, u32 zero, u32 scale, u32 (&pairs)[4]) {
    const u32 less = (0x6400u + zero) * 0x10001u, odd_less = (0x5400u + zero * 16) * 0x10001u;
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
        u32 even, odd;
        asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(even) : "r"(word >> (4 * j)), "r"(0x000f000fu), "r"(0x64006400u), "n"(0xea));
        asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(odd) : "r"(word >> (4 * j)), "r"(0x00f000f0u), "r"(0x54005400u), "n"(0xea));
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(even) : "r"(even), "r"(less));
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(odd) : "r"(odd), "r"(odd_less));
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(pairs[j]) : "r"(even), "r"(scale));
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(pairs[j + 1]) : "r"(odd), "r"(scale));
    }
}

// Where along k this lane's numbers of a piece begin, which are those of a word of its weights.
__device__ __forceinline__ i64 find_place(int turn, int i) {
    return (i64)(turn * WARPS + (threadIdx.x >> 5)) * SPAN + i / 4 * 128 + (threadIdx.x & 3) * 32 + i % 4 * 8;
}

#define WHOLE 0
#include "rondo_few_rows.cuh"

// Element `i` of the result that this thread makes.
struct result {
    int tile, c;
    i64 m, n;
    bool is_there;
};

__device__ __forceinline__ result find_result(const few_arguments &p, i64 first, int i) {
    const int at = threadIdx.x + i * THREADS, lane = at & 31;
    result r = {at / 128, at / 32 % 4};
    r.n = first + r.tile / ROW_TILES * 16 + r.c / 2 * 8 + (lane >> 2);
    r.m = r.tile % ROW_TILES * 8 + (lane & 3) * 2 + r.c % 2;
    r.is_there = r.tile < ENDS && r.n < p.n && r.m < p.m;
    return r;
}

// Numbers j and j + 4 of each 8 in pair j, as weights have them.
__device__ __forceinline__ void turn_row(const pack<u32, 4> &row, u32 (&first)[2], u32 (&second)[2]) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        first[i] = __byte_perm(row.value[0], row.value[2], i == 0 ? 0x5410 : 0x7632);
        second[i] = __byte_perm(row.value[1], row.value[3], i == 0 ? 0x5410 : 0x7632);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, WARPS <= 8 ? 2 : 1) bits_few(const few_arguments p) {
    release_successor();
    __shared__ float sums[WARPS][TILES * ROW_TILES][4][32];
    static_assert(sizeof sums <= 48 * 1024, "a kernel declares no more shared memory");
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2;
    const i64 first = (i64)blockIdx.x * 16 * (GATED ? 1 : COLUMN_TILES);
    share held[TURNS][TILES];
    if (!EARLY) {
        await_predecessors();
    }
#pragma unroll
    for (int i = 0; i < TURNS * TILES; i++) {
        const int tile = i % TILES;
        fetch_share(p, GATED && tile != 0, first + g + (GATED ? 0 : tile * 16), (i64)(i / TILES * WARPS + warp) * SPAN,
                    held[i / TILES][tile]);
    }
    if (EARLY) {
        await_predecessors();
    }
    piece rows[TURNS][PIECES];  // of one tile
#pragma unroll
    for (int t = 0; ROW_TILES == 1 && t < TURNS; t++) {
        load_pieces(p.a, p.m, p.k, t, rows[t]);
    }
    float addend[ENDS_OF_THREAD];
#pragma unroll
    for (int i = 0; i < ENDS_OF_THREAD; i++) {
        const result r = find_result(p, first, i);
        addend[i] = r.is_there && p.addend != 0 ? convert<float>(p.addend[r.m * p.addend_stride + r.n]) : 0.0f;
    }
    if (NORMALISED) {
        normalise_pieces<WARPS>(p.gain, p.k, (float)p.epsilon, rows);
    }
    float sum[TILES * ROW_TILES][CHAINS][4] = {};
#pragma unroll
    for (int i = 0; i < TURNS * 8; i++) {
        const int t = i / 8, h = i / 4 % 2, w = i % 4;
        const i64 at = find_place(t, i % 8);
        u32 front[ROW_TILES][2], back[ROW_TILES][2];
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++) {
            piece own = rows[t][i % 8];
            if (ROW_TILES > 1) {
                own = piece();
                if (r * 8 + g < p.m && at < p.k) {
                    own = *(const piece *)(p.a + (r * 8 + g) * p.k + at);
                }
            }
            turn_row(own, front[r], back[r]);
        }
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const share &s = held[t][tile];
            u32 x[4], y[4];
            make_pairs(s.words[0][h].value[w], s.zeros[0][h], s.scales[0][h], x);
            make_pairs(s.words[1][h].value[w], s.zeros[1][h], s.scales[1][h], y);
            const u32 left[4] = {x[0], y[0], x[1], y[1]}, right[4] = {x[2], y[2], x[3], y[3]};
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++) {
                mma_f16(sum[tile * ROW_TILES + r][0], left, front[r]);
                mma_f16(sum[tile * ROW_TILES + r][CHAINS - 1], right, back[r]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TILES * ROW_TILES * 4; i++) {
        sums[warp][i / 4][i % 4][lane] = sum[i / 4][0][i % 4] + (CHAINS > 1 ? sum[i / 4][CHAINS - 1][i % 4] : 0.0f);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ENDS_OF_THREAD; i++) {
        const result r = find_result(p, first, i);
        if (r.is_there) {
            float value = addend[i], gate = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
                value += sums[w][r.tile][r.c][lane];
                gate += GATED ? sums[w][(TILES - 1) * ROW_TILES + r.tile][r.c][lane] : 0.0f;
            }
            const float made = activate_by_number(p.activation, GATED ? gate : value, (float)p.alpha, (float)p.beta);
            p.y[r.m * p.n + r.n] = convert<T>(GATED ? made * value : made);
        }
    }
}
