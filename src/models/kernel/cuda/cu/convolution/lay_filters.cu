// lay_filters.cu - filters of a training step in half precision, as convolutions with channels last read them: w
// [rows, columns, TAPS] in f32 becomes `there` [rows, TAPS, columns] and, the taps turned round, `back` [columns,
// TAPS, rows]. One launch for many filters: a block has TILE rows and columns of one, which it reads once.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef FILTERS
#define FILTERS 1
#endif
#ifndef TAPS
#define TAPS 9
#endif
#ifndef SATURATES
#define SATURATES 0
#endif
#define TILE 32
#define ROW (TILE * TAPS)   // elements of a row of the tile
#define PITCH (ROW + 2)     // neighbouring rows lie in other banks
#define PIECE 4

// Rows and columns are multiples of 8.
struct lay_arguments {
    i64 rows[FILTERS], columns[FILTERS];
    i64 first[FILTERS];  // block
    const float *w[FILTERS];
    u16 *there[FILTERS], *back[FILTERS];  // may be NULL
};

__device__ __forceinline__ u16 narrow(float x) {
    const bool is_beyond = SATURATES && fabsf(x) > 65504.0f && fabsf(x) < infinity();
    return convert<f16>(is_beyond ? copysignf(65504.0f, x) : x).bits;
}

extern "C" __global__ void __launch_bounds__(256) lay_filters(const lay_arguments a) {
    take_turn();
    __shared__ u16 held[TILE * PITCH];
    int t = 0;
    while (t + 1 < FILTERS && (i64)blockIdx.x >= a.first[t + 1]) {
        t++;
    }
    const int rows = (int)a.rows[t], columns = (int)a.columns[t];
    const int tile = (int)((i64)blockIdx.x - a.first[t]), wide = (columns + TILE - 1) / TILE;
    const int row = tile / wide * TILE, column = tile % wide * TILE;
    const int high = rows - row < TILE ? rows - row : TILE;
    const int broad = columns - column < TILE ? columns - column : TILE;
    const float *w = a.w[t] + ((i64)row * columns + column) * TAPS;
#pragma unroll
    for (int i = threadIdx.x; i < TILE * ROW / PIECE; i += 256) {
        const int r = i / (ROW / PIECE), at = i % (ROW / PIECE) * PIECE;
        if (r < high && at < broad * TAPS) {
            const pack<float, PIECE> p =
                *(const pack<float, PIECE> *)(w + (i64)r * columns * TAPS + at);
#pragma unroll
            for (int k = 0; k < PIECE; k++) {
                held[r * PITCH + at + k] = narrow(p.value[k]);
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TAPS * (TILE / 2) && a.there[t] != 0; i += 256) {
        const int c = i % (TILE / 2) * 2, tap = i / (TILE / 2) % TAPS, r = i / (TILE / 2) / TAPS;
        if (r < high && c < broad) {
            const u16 *from = held + r * PITCH + c * TAPS + tap;
            *(u32 *)(a.there[t] + ((i64)(row + r) * TAPS + tap) * columns + column + c) =
                (u32)from[0] | (u32)from[TAPS] << 16;
        }
    }
    for (int i = threadIdx.x; i < TILE * TAPS * (TILE / 2) && a.back[t] != 0; i += 256) {
        const int r = i % (TILE / 2) * 2, tap = i / (TILE / 2) % TAPS, c = i / (TILE / 2) / TAPS;
        if (r < high && c < broad) {
            const u16 *from = held + r * PITCH + c * TAPS + TAPS - 1 - tap;
            *(u32 *)(a.back[t] + ((i64)(column + c) * TAPS + tap) * rows + row + r) =
                (u32)from[0] | (u32)from[PITCH] << 16;
        }
    }
}
