// rondo_conv_weights.cuh - what the kernels of conv_weights.cu and conv_weights_tensor.cu share: the
// extents of a convolution, and where its windows look.
// SPDX-License-Identifier: Apache-2.0

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_D
#define RONDO_D float  // dy
#endif
typedef RONDO_D D;
#ifndef RONDO_P
#define RONDO_P float  // parts
#endif
typedef RONDO_P P;
#ifndef PACKED
#define PACKED 0
#endif
#ifndef LAST
#define LAST 0  // channels come last
#endif
#ifndef TILE_M
#define TILE_M 64
#endif
#ifndef TILE_N
#define TILE_N 64
#endif
#ifndef FILTERS
#define FILTERS 8
#define CHANNELS 8
#define HEIGHT 8
#define WIDE 8
#define OUT_HEIGHT 8
#define OUT_WIDE 8
#define TAPS_Y 1
#define TAPS_X 1
#define STRIDE_Y 1
#define STRIDE_X 1
#define GAP_Y 1
#define GAP_X 1
#define BEFORE_Y 0
#define BEFORE_X 0
#endif
#ifndef CHUNK
#define CHUNK 0  // channels of a block that joins
#endif
#define COLUMNS (TAPS_Y * TAPS_X * CHANNELS)

struct weights_arguments {
    const D *dy;
    const T *x;
    P *parts;      // [part_count, FILTERS, COLUMNS]
    float *dw;     // [FILTERS, CHANNELS, TAPS_Y, TAPS_X]
    i64 pixels, part_count, part_pixels;
};

// Where a column's tap looks, seen from the window's first pixel.
struct column_place {
    int y, x, channel;
    bool is_there;
    __device__ __forceinline__ column_place(int column) {
        const int tap = column / CHANNELS;
        is_there = column < COLUMNS;
        channel = column - tap * CHANNELS;
        y = tap / TAPS_X * GAP_Y - BEFORE_Y;
        x = tap % TAPS_X * GAP_X - BEFORE_X;
    }
    // The element that pixel `p` sees there; -1: none.
    __device__ __forceinline__ i64 find(i64 p) const {
        const int image = (int)(p / (OUT_HEIGHT * OUT_WIDE));
        const int at = (int)(p - (i64)image * (OUT_HEIGHT * OUT_WIDE));
        const int in_y = at / OUT_WIDE * STRIDE_Y + y, in_x = at % OUT_WIDE * STRIDE_X + x;
        if ((u32)in_y >= HEIGHT || (u32)in_x >= WIDE || !is_there) {
            return -1;
        }
        return LAST ? (((i64)image * HEIGHT + in_y) * WIDE + in_x) * CHANNELS + channel
                    : (((i64)image * CHANNELS + channel) * HEIGHT + in_y) * WIDE + in_x;
    }
};

__device__ __forceinline__ i64 find_change(i64 p, int filter) {
    const i64 image = p / (OUT_HEIGHT * OUT_WIDE);
    return LAST ? p * FILTERS + filter
                : (image * FILTERS + filter) * (OUT_HEIGHT * OUT_WIDE) +
                      (p - image * (OUT_HEIGHT * OUT_WIDE));
}
