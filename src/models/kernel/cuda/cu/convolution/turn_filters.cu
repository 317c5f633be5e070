// turn_filters.cu - filters [rows, columns, TAPS] as [columns, rows, TAPS], the taps turned round: a block has
// TILE rows and columns, whose taps lie together in what it reads and in what it writes.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T u16
#endif
typedef RONDO_T T;
#ifndef TAPS
#define TAPS 9
#define TILE 16
#endif

struct turn_arguments {
    const T *from;
    T *to;
    i64 rows, columns;
};

extern "C" __global__ void __launch_bounds__(256) turn_filters(const turn_arguments a) {
    take_turn();
    __shared__ T held[TILE * TILE * TAPS];
    const i64 wide = (a.columns + TILE - 1) / TILE;
    const i64 row = blockIdx.x / wide * TILE, column = blockIdx.x % wide * TILE;
    for (int i = threadIdx.x; i < TILE * TILE * TAPS; i += 256) {
        const int r = i / (TILE * TAPS), rest = i % (TILE * TAPS);
        if (row + r < a.rows && column + rest / TAPS < a.columns) {
            held[i] = a.from[((row + r) * a.columns + column) * TAPS + rest];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE * TAPS; i += 256) {
        const int c = i / (TILE * TAPS), rest = i % (TILE * TAPS), r = rest / TAPS;
        if (column + c < a.columns && row + r < a.rows) {
            a.to[((column + c) * a.rows + row) * TAPS + rest] =
                held[(r * TILE + c) * TAPS + TAPS - 1 - rest % TAPS];
        }
    }
}
