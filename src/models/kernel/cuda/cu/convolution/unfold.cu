// unfold.cu - what each tap of a convolution's windows sees: [images, taps * CHANNELS, out pixels], 0 outside.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T u32
#endif
typedef RONDO_T T;
#ifndef CHANNELS
#define CHANNELS 1
#define HEIGHT 1
#define WIDE 1
#define OUT_HEIGHT 1
#define OUT_WIDE 1
#define TAPS_Y 1
#define TAPS_X 1
#define STRIDE_Y 1
#define STRIDE_X 1
#define GAP_Y 1
#define GAP_X 1
#define BEFORE_Y 0
#define BEFORE_X 0
#endif
#ifndef WIDTH
#define WIDTH 1  // neighbours of y that a thread makes, all of one tap
#endif
#ifndef RONDO_INDEX
#define RONDO_INDEX i64
#endif
typedef RONDO_INDEX INDEX;  // counts elements of y

struct unfold_arguments {
    const T *x;
    T *y;
    i64 count;  // of y, in pieces of WIDTH
};

extern "C" __global__ void __launch_bounds__(256) unfold(const unfold_arguments a) {
    take_turn();
    const INDEX step = (INDEX)gridDim.x * 256;
    for (INDEX i = (INDEX)blockIdx.x * 256 + threadIdx.x; i < (INDEX)a.count; i += step) {
        const INDEX row = i / (OUT_HEIGHT * OUT_WIDE / WIDTH);
        const INDEX image = row / (TAPS_Y * TAPS_X * CHANNELS);
        const u32 first = (u32)(i - row * (OUT_HEIGHT * OUT_WIDE / WIDTH)) * WIDTH;
        const u32 column = (u32)(row - image * (TAPS_Y * TAPS_X * CHANNELS));
        const u32 tap = column / CHANNELS, channel = column - tap * CHANNELS;
        const T *plane = a.x + ((i64)image * CHANNELS + channel) * (HEIGHT * WIDE);
        pack<T, WIDTH> made;
#pragma unroll
        for (u32 k = 0; k < WIDTH; k++) {
            const u32 pixel = first + k;
            const int y = (int)(pixel / OUT_WIDE * STRIDE_Y + tap / TAPS_X * GAP_Y) - BEFORE_Y;
            const int x = (int)(pixel % OUT_WIDE * STRIDE_X + tap % TAPS_X * GAP_X) - BEFORE_X;
            const bool is_inside = (u32)y < HEIGHT && (u32)x < WIDE;
            made.value[k] = is_inside ? plane[y * WIDE + x] : T();
        }
        *(pack<T, WIDTH> *)(a.y + (i64)i * WIDTH) = made;
    }
}
