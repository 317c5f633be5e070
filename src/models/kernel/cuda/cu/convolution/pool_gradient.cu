// pool_gradient.cu - how MaxPool changes with its image: each pixel gets dy of the windows whose maximum it
// is. A thread looks at the windows of one pixel (WIDTH channels, where they come last) and finds the maximum
// of each anew, as pool.cu does: the first of the greatest, or the first NaN. So no places are kept, and
// sums have one order.
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
#endif

struct pool_gradient_arguments {
    const D *dy;
    const T *x;
    T *dx;
    i64 count;  // packs of x
};

// The first window along an axis that reaches the place, which is seen from the first window's begin.
__device__ __forceinline__ int first_window(int place, int taps, int stride) {
    const int from = place - taps + 1;
    return from <= 0 ? 0 : (from + stride - 1) / stride;
}

extern "C" __global__ void __launch_bounds__(256) pool_gradient(const pool_gradient_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (i64)gridDim.x * 256) {
        const i64 pixel = i / (INNER / WIDTH), line = pixel / WIDE, outer = line / HEIGHT;
        const int channel = (int)(i - pixel * (INNER / WIDTH)) * WIDTH;
        const int column = (int)(pixel - line * WIDE), row = (int)(line - outer * HEIGHT);
        const T *x = a.x + outer * HEIGHT * WIDE * INNER + channel;
        const D *dy = a.dy + outer * OUT_HEIGHT * OUT_WIDE * INNER + channel;
        C sum[WIDTH];
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            sum[v] = (C)0;
        }
        for (int oy = first_window(row + BEFORE_Y, TAPS_Y, STRIDE_Y);
             oy < OUT_HEIGHT && oy * STRIDE_Y <= row + BEFORE_Y; oy++) {
            for (int ox = first_window(column + BEFORE_X, TAPS_X, STRIDE_X);
                 ox < OUT_WIDE && ox * STRIDE_X <= column + BEFORE_X; ox++) {
                C value[WIDTH];
                bool is_mine[WIDTH];
                bool any = false;
#pragma unroll
                for (int v = 0; v < WIDTH; v++) {
                    value[v] = (C)0;
                    is_mine[v] = false;
                }
#pragma unroll
                for (int ky = 0; ky < TAPS_Y; ky++) {
#pragma unroll
                    for (int kx = 0; kx < TAPS_X; kx++) {
                        const int iy = oy * STRIDE_Y - BEFORE_Y + ky;
                        const int ix = ox * STRIDE_X - BEFORE_X + kx;
                        if ((u32)iy >= HEIGHT || (u32)ix >= WIDE) {
                            continue;
                        }
                        const pack<T, WIDTH> in =
                            *(const pack<T, WIDTH> *)(x + ((i64)iy * WIDE + ix) * INNER);
#pragma unroll
                        for (int v = 0; v < WIDTH; v++) {
                            const C next = convert<C>(in.value[v]);
                            if (!any || next > value[v] || (next != next && value[v] == value[v])) {
                                value[v] = next;
                                is_mine[v] = iy == row && ix == column;
                            }
                        }
                        any = true;
                    }
                }
                const pack<D, WIDTH> change =
                    *(const pack<D, WIDTH> *)(dy + ((i64)oy * OUT_WIDE + ox) * INNER);
#pragma unroll
                for (int v = 0; v < WIDTH; v++) {
                    if (is_mine[v]) {
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
        *(pack<T, WIDTH> *)(a.dx + i * WIDTH) = result;
    }
}
