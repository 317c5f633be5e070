// space_to_depth.cu - rondo.SpaceToDepth (op/image/space_to_depth.h): cast, padding, blocks and NHWC
// in one pass over an image, which is what stands before a first convolution on the tensor cores.
//
// A thread makes WIDTH neighbouring channels of one position, 16 bytes where there are as many; its
// neighbours make the rest of the position and the positions to the right, so that stores fill whole
// lines. Channels count through rows of a block, then its rows, then the planes of the image: RUN of
// them lie side by side in x, and are read at once. A run lies wholly inside of the image or wholly
// outside, since width, pad and block are multiples of RUN. What a warp reads at once is a piece of a
// row in each of a few planes: whole sectors, too.
//
// (Tried on paper and dropped: a tile in shared memory. It would save nothing: no byte of x is wanted
// twice, and both sides are coalesced as it is.)
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_FROM
#define RONDO_FROM float
#endif
#ifndef RONDO_TO
#define RONDO_TO f16
#endif
#ifndef RONDO_INDEX
#define RONDO_INDEX u32
#endif
typedef RONDO_FROM FROM;
typedef RONDO_TO TO;
typedef RONDO_INDEX INDEX;  // counts elements of x and of y
#ifndef BLOCK_Y
#define BLOCK_Y 2
#endif
#ifndef BLOCK_X
#define BLOCK_X 2
#endif
#ifndef DEPTH
#define DEPTH 3  // channels of x
#endif
#ifndef WIDTH
#define WIDTH 8
#endif
#ifndef PIECES
#define PIECES 2  // of WIDTH channels at a position of y
#endif
#ifndef RUN
#define RUN 1  // divides WIDTH and BLOCK_X; above 1 the pixels of a row lie side by side
#endif
#ifndef SATURATE
#define SATURATE 0
#endif
#define RUNS (WIDTH / RUN)

struct space_arguments {
    const FROM *x;
    TO *y;
    i64 count;          // pieces of y
    i64 rows, columns;  // of y
    i64 height, width;
    i64 before_y, before_x;
    i64 image_stride, channel_stride, row_stride, pixel_stride;
};

__device__ __forceinline__ TO round_pixel(FROM pixel) {
    float value = convert<float>(pixel);
    if (SATURATE && fabsf(value) < infinity()) {
        value = fminf(fmaxf(value, -65504.0f), 65504.0f);
    }
    return convert<TO>(value);
}

extern "C" __global__ void __launch_bounds__(128) space_to_depth(const space_arguments a) {
    take_turn();
    for (INDEX k = (INDEX)blockIdx.x * 128 + threadIdx.x; k < a.count;
         k += (INDEX)gridDim.x * 128) {
        const INDEX position = k / PIECES, line = position / (INDEX)a.columns;
        const int first = (int)(k % PIECES) * WIDTH;  // channel of y
        const int y0 = (int)(line % (INDEX)a.rows) * BLOCK_Y - (int)a.before_y;
        const int x0 = (int)(position % (INDEX)a.columns) * BLOCK_X - (int)a.before_x;
        const FROM *image = a.x + (line / (INDEX)a.rows) * (INDEX)a.image_stride;
        pack<FROM, RUN> runs[RUNS];
#pragma unroll
        for (int r = 0; r < RUNS; r++) {
            const int channel = first + r * RUN;
            const int plane = channel / (BLOCK_Y * BLOCK_X);
            const int y = y0 + channel / BLOCK_X % BLOCK_Y, x = x0 + channel % BLOCK_X;
            const bool is_inside = plane < DEPTH && y >= 0 && y < (int)a.height && x >= 0 &&
                                   x < (int)a.width;
            runs[r] = pack<FROM, RUN>{};
            if (is_inside) {
                runs[r] = *(const pack<FROM, RUN> *)(image + (INDEX)plane * (INDEX)a.channel_stride +
                                                     (INDEX)y * (INDEX)a.row_stride +
                                                     (INDEX)x * (INDEX)a.pixel_stride);
            }
        }
        pack<TO, WIDTH> made;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            made.value[i] = round_pixel(runs[i / RUN].value[i % RUN]);
        }
        *(pack<TO, WIDTH> *)(a.y + k * WIDTH) = made;
    }
}
