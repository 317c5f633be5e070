// copy_strided.cu - moves of elements between two strided layouts: transposes, slices, expansions,
// tiles, concatenation and splitting all come down to these three kernels, and moves between a whole
// and its parts along an axis; and images beside each other.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T u32
#endif
typedef RONDO_T T;
#ifndef RANK
#define RANK 4
#endif
#ifndef RONDO_INDEX
#define RONDO_INDEX u32
#endif
typedef RONDO_INDEX INDEX;

struct copy_arguments {
    i64 count;
    const T *x;
    T *y;
    i64 extent[RANK];
    i64 stride_x[RANK];
    i64 stride_y[RANK];
};

extern "C" __global__ void __launch_bounds__(256) copy_strided(const copy_arguments a) {
    take_turn();
    for (INDEX k = (INDEX)blockIdx.x * 256 + threadIdx.x; k < a.count;
         k += (INDEX)gridDim.x * 256) {
        INDEX rest = k;
        i64 from = 0, to = 0;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            INDEX i = rest;
            if (d > 0) {
                i = rest % (INDEX)a.extent[d];
                rest /= (INDEX)a.extent[d];
            }
            from += (i64)i * a.stride_x[d];
            to += (i64)i * a.stride_y[d];
        }
        a.y[to] = a.x[from];
    }
}

// y[b][c][r] = x[b][r][c] by way of a tile in shared memory, so that both sides are coalesced.
// Batch and rows may have any stride; the grid is (column tiles, row tiles, batches).
struct transpose_arguments {
    const T *x;
    T *y;
    i64 rows, columns;
    i64 row_stride;     // of x, in elements
    i64 column_stride;  // of y
    i64 batch_stride_x, batch_stride_y;
};

extern "C" __global__ void __launch_bounds__(256) transpose_tiles(const transpose_arguments a) {
    take_turn();
    __shared__ T tile[32][33];
    const T *x = a.x + blockIdx.z * a.batch_stride_x;
    T *y = a.y + blockIdx.z * a.batch_stride_y;
    const i64 column = (i64)blockIdx.x * 32, row = (i64)blockIdx.y * 32;
    const int lane = threadIdx.x & 31, line = threadIdx.x >> 5;
    for (int r = line; r < 32; r += 8) {
        if (row + r < a.rows && column + lane < a.columns) {
            tile[r][lane] = x[(row + r) * a.row_stride + column + lane];
        }
    }
    __syncthreads();
    for (int c = line; c < 32; c += 8) {
        if (column + c < a.columns && row + lane < a.rows) {
            y[(column + c) * a.column_stride + row + lane] = tile[lane][c];
        }
    }
}

// Rows of a whole lie side by side in parts: row r of part p is whole[r][begin .. begin + run). One
// launch moves all parts, there or back; the grid is (blocks for the largest part, parts).
#ifndef PARTS
#define PARTS 1
#endif
#ifndef IS_SPLIT
#define IS_SPLIT 0
#endif
struct part {
    T *elements;
    i64 run, begin;
};

struct parts_arguments {
    i64 rows;
    i64 row;  // of the whole, in elements
    T *whole;
    part parts[PARTS];
};

extern "C" __global__ void __launch_bounds__(256) move_parts(const __grid_constant__ parts_arguments a) {
    take_turn();
    T *const elements = a.parts[blockIdx.y].elements;
    const INDEX run = (INDEX)a.parts[blockIdx.y].run;
    const i64 begin = a.parts[blockIdx.y].begin;
    const INDEX count = (INDEX)a.rows * run;
    for (INDEX k = (INDEX)blockIdx.x * 256 + threadIdx.x; k < count; k += (INDEX)gridDim.x * 256) {
        const i64 at = (i64)(k / run) * a.row + begin + k % run;
        if (IS_SPLIT) {
            elements[k] = a.whole[at];
        } else {
            a.whole[at] = elements[k];
        }
    }
}

// Images with channels last side by side, as the parts of each pixel. A part may be in blocks: block x
// block pixels beside each other are one after the other in it, as the rows and columns of a block.
#ifndef IMAGES
#define IMAGES 1
#endif
struct image_part {
    const T *elements;
    i64 run, begin, block;
};

struct images_arguments {
    i64 pixels, width;
    i64 row;  // of the whole's pixel, in elements
    T *whole;
    image_part parts[IMAGES];
};

extern "C" __global__ void __launch_bounds__(256) join_images(const __grid_constant__ images_arguments a) {
    take_turn();
    const T *const elements = a.parts[blockIdx.y].elements;
    const INDEX run = (INDEX)a.parts[blockIdx.y].run, block = (INDEX)a.parts[blockIdx.y].block;
    const i64 begin = a.parts[blockIdx.y].begin;
    const INDEX count = (INDEX)a.pixels * run, width = (INDEX)a.width;
    for (INDEX k = (INDEX)blockIdx.x * 256 + threadIdx.x; k < count; k += (INDEX)gridDim.x * 256) {
        const INDEX pixel = k / run, at = k - pixel * run;
        i64 from = k;
        if (block > 1) {
            const INDEX y = pixel / width, x = pixel - y * width;
            const INDEX block_y = y / block, block_x = x / block;
            const i64 source = (i64)block_y * (width / block) + block_x;
            from = ((source * block + (y - block_y * block)) * block + (x - block_x * block)) * run + at;
        }
        a.whole[(i64)pixel * a.row + begin + at] = elements[from];
    }
}
