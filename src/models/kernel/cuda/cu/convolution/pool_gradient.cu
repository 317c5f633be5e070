// pool_gradient.cu - how MaxPool changes with its image: each pixel gets dy of the windows whose maximum it
// is. A block has a tile of pixels (PACKS packs of WIDTH channels, where they come last). First it finds the
// maximum of each window that reaches into the tile anew, as pool.cu does: the first of the greatest, or the
// first NaN; then each pixel adds up what its windows say. So no places are kept, and sums have one order.
// Windows that neither overlap nor leave pixels out need no tile. (Tried and dropped: a thread for all pixels that
// the same windows reach. 95 us in place of 79 for the first pool of resnet18.)
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_D
#define RONDO_D T  // dy
#endif
typedef RONDO_D D;
#ifndef WIDTH
#define WIDTH 1
#endif
#ifndef INNER
#define INNER 1  // channels that come last
#define HEIGHT 1
#define WIDE 1
#define OUT_HEIGHT 1
#define OUT_WIDE 1
#define TAPS_Y 1
#define TAPS_X 1
#define STRIDE_Y 1
#define STRIDE_X 1
#define BEFORE_Y 0
#define BEFORE_X 0
#define TILE_Y 1  // pixels
#define TILE_X 1
#define REACH_Y 1  // windows that reach into a tile, at most
#define REACH_X 1
#define PACKS 1
#endif

struct pool_gradient_arguments {
    const D *dy;
    const T *x;
    T *dx;
    i64 tiles;  // of all images
};

// The first window along an axis that reaches the place, which is seen from the first window's begin.
__device__ __forceinline__ int first_window(int place, int taps, int stride) {
    const int from = place - taps + 1;
    return from <= 0 ? 0 : (from + stride - 1) / stride;
}

// Windows that lie side by side and leave no pixel out: a thread has a pack of one, and looks at it once. Where
// channels come first, RUN pixels of a row lie together.
#ifndef RUN
#define RUN 1
#endif
extern "C" __global__ void __launch_bounds__(256) pool_gradient_apart(const pool_gradient_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    enum {
        LINES = INNER / WIDTH,
        TAPS = TAPS_Y * TAPS_X <= 16 ? TAPS_Y * TAPS_X : 1,  // of more it is not launched
        SPAN = WIDTH * RUN
    };
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.tiles; i += (i64)gridDim.x * 256) {
        const u32 n = (u32)i, line = n % LINES, ox = n / LINES % OUT_WIDE;
        const u32 oy = n / LINES / OUT_WIDE % OUT_HEIGHT, outer = n / LINES / OUT_WIDE / OUT_HEIGHT;
        const i64 from = (((i64)outer * HEIGHT + oy * TAPS_Y) * WIDE + ox * TAPS_X) * INNER + line * WIDTH;
        const pack<D, WIDTH> dy = *(const pack<D, WIDTH> *)(a.dy + i * WIDTH);
        pack<T, SPAN> in[TAPS / RUN];
#pragma unroll
        for (int t = 0; t < TAPS / RUN; t++) {
            const int tap = t * RUN;
            in[t] = *(const pack<T, SPAN> *)(a.x + from + (tap / TAPS_X * WIDE + tap % TAPS_X) * INNER);
        }
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            C value = convert<C>(in[0].value[v]);
            int best = 0;
#pragma unroll
            for (int tap = 1; tap < TAPS; tap++) {
                const C next = convert<C>(in[tap / RUN].value[tap % RUN * WIDTH + v]);
                if (next > value || (next != next && value == value)) {
                    value = next;
                    best = tap;
                }
            }
#pragma unroll
            for (int tap = 0; tap < TAPS; tap++) {
                in[tap / RUN].value[tap % RUN * WIDTH + v] =
                    convert<T>(best == tap ? (C)((C)0 + convert<C>(dy.value[v])) : (C)0);
            }
        }
#pragma unroll
        for (int t = 0; t < TAPS / RUN; t++) {
            const int tap = t * RUN;
            *(pack<T, SPAN> *)(a.dx + from + (tap / TAPS_X * WIDE + tap % TAPS_X) * INNER) = in[t];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) pool_gradient(const pool_gradient_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    enum {
        LINES = INNER / WIDTH,
        GROUPS = (LINES + PACKS - 1) / PACKS,
        TILES_Y = (HEIGHT + TILE_Y - 1) / TILE_Y,
        TILES_X = (WIDE + TILE_X - 1) / TILE_X
    };
    __shared__ pack<u16, WIDTH> taps[REACH_Y * REACH_X * PACKS];  // where each window's maximum is
    for (i64 tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        const i64 outer = tile / (GROUPS * TILES_Y * TILES_X);
        const int at = (int)(tile - outer * (GROUPS * TILES_Y * TILES_X));
        const int group = at % GROUPS, column0 = at / GROUPS % TILES_X * TILE_X;
        const int row0 = at / GROUPS / TILES_X * TILE_Y;
        const int oy0 = first_window(row0 + BEFORE_Y, TAPS_Y, STRIDE_Y);
        const int ox0 = first_window(column0 + BEFORE_X, TAPS_X, STRIDE_X);
        const T *x = a.x + outer * HEIGHT * WIDE * INNER + group * PACKS * WIDTH;
        const D *dy = a.dy + outer * OUT_HEIGHT * OUT_WIDE * INNER + group * PACKS * WIDTH;
        __syncthreads();
        for (int i = threadIdx.x; i < REACH_Y * REACH_X * PACKS; i += 256) {
            const int line = i % PACKS, ox = ox0 + i / PACKS % REACH_X, oy = oy0 + i / PACKS / REACH_X;
            if (oy >= OUT_HEIGHT || ox >= OUT_WIDE || group * PACKS + line >= LINES) {
                continue;
            }
            C value[WIDTH];
            pack<u16, WIDTH> best;
            bool any = false;
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                value[v] = (C)0;
                best.value[v] = 0;
            }
#pragma unroll
            for (int tap = 0; tap < TAPS_Y * TAPS_X; tap++) {
                const int iy = oy * STRIDE_Y - BEFORE_Y + tap / TAPS_X;
                const int ix = ox * STRIDE_X - BEFORE_X + tap % TAPS_X;
                if ((u32)iy >= HEIGHT || (u32)ix >= WIDE) {
                    continue;
                }
                const pack<T, WIDTH> in =
                    *(const pack<T, WIDTH> *)(x + ((i64)iy * WIDE + ix) * INNER + line * WIDTH);
#pragma unroll
                for (int v = 0; v < WIDTH; v++) {
                    const C next = convert<C>(in.value[v]);
                    if (!any || next > value[v] || (next != next && value[v] == value[v])) {
                        value[v] = next;
                        best.value[v] = (u16)tap;
                    }
                }
                any = true;
            }
            taps[i] = best;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < TILE_Y * TILE_X * PACKS; i += 256) {
            const int line = i % PACKS, column = column0 + i / PACKS % TILE_X;
            const int row = row0 + i / PACKS / TILE_X;
            if (row >= HEIGHT || column >= WIDE || group * PACKS + line >= LINES) {
                continue;
            }
            C sum[WIDTH];
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                sum[v] = (C)0;
            }
            for (int oy = first_window(row + BEFORE_Y, TAPS_Y, STRIDE_Y);
                 oy < OUT_HEIGHT && oy * STRIDE_Y <= row + BEFORE_Y; oy++) {
                for (int ox = first_window(column + BEFORE_X, TAPS_X, STRIDE_X);
                     ox < OUT_WIDE && ox * STRIDE_X <= column + BEFORE_X; ox++) {
                    const int tap = (row + BEFORE_Y - oy * STRIDE_Y) * TAPS_X + column + BEFORE_X -
                                    ox * STRIDE_X;
                    const pack<u16, WIDTH> best =
                        taps[((oy - oy0) * REACH_X + ox - ox0) * PACKS + line];
                    const pack<D, WIDTH> change = *(const pack<D, WIDTH> *)(
                        dy + ((i64)oy * OUT_WIDE + ox) * INNER + line * WIDTH);
#pragma unroll
                    for (int v = 0; v < WIDTH; v++) {
                        if (best.value[v] == tap) {
                            sum[v] = (C)(sum[v] + convert<C>(change.value[v]));
                        }
                    }
                }
            }
            pack<T, WIDTH> result;
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                result.value[v] = convert<T>(sum[v]);
            }
            *(pack<T, WIDTH> *)(a.dx + (((outer * HEIGHT + row) * WIDE + column) * LINES +
                                        group * PACKS + line) * WIDTH) = result;
        }
    }
}
