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

struct unfold_arguments {
    const T *x;
    T *y;
    i64 count;  // of y
};

extern "C" __global__ void __launch_bounds__(256) unfold(const unfold_arguments a) {
    take_turn();
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (i64)gridDim.x * 256) {
        const i64 row = i / (OUT_HEIGHT * OUT_WIDE), image = row / (TAPS_Y * TAPS_X * CHANNELS);
        const int pixel = (int)(i - row * (OUT_HEIGHT * OUT_WIDE));
        const int column = (int)(row - image * (TAPS_Y * TAPS_X * CHANNELS));
        const int tap = column / CHANNELS, channel = column - tap * CHANNELS;
        const int y = pixel / OUT_WIDE * STRIDE_Y + tap / TAPS_X * GAP_Y - BEFORE_Y;
        const int x = pixel % OUT_WIDE * STRIDE_X + tap % TAPS_X * GAP_X - BEFORE_X;
        T value = T();
        if ((u32)y < HEIGHT && (u32)x < WIDE) {
            value = a.x[((image * CHANNELS + channel) * HEIGHT + y) * WIDE + x];
        }
        a.y[i] = value;
    }
}
