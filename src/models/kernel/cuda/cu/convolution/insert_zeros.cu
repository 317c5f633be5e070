// insert_zeros.cu - zeros between the pixels of images: [outer, HEIGHT, WIDE, inner] becomes
// [outer, HEIGHT * STEP_Y, WIDE * STEP_X, inner], each pixel at the first place of its block.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_P
#define RONDO_P u32  // what is moved at once
#endif
typedef RONDO_P P;
#ifndef HEIGHT
#define HEIGHT 1
#define WIDE 1
#define STEP_Y 1
#define STEP_X 1
#define INNER 1  // of P
#endif

struct insert_arguments {
    const P *x;
    P *y;
    i64 count;  // of P in y
};

extern "C" __global__ void __launch_bounds__(256) insert_zeros(const insert_arguments a) {
    take_turn();
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (i64)gridDim.x * 256) {
        const i64 pixel = i / INNER, line = pixel / (WIDE * STEP_X);
        const int inner = (int)(i - pixel * INNER), column = (int)(pixel - line * (WIDE * STEP_X));
        const i64 outer = line / (HEIGHT * STEP_Y);
        const int row = (int)(line - outer * (HEIGHT * STEP_Y));
        P value = P();
        if (row % STEP_Y == 0 && column % STEP_X == 0) {
            value = a.x[((outer * HEIGHT + row / STEP_Y) * WIDE + column / STEP_X) * INNER + inner];
        }
        a.y[i] = value;
    }
}
