// bits_product.cu - products with weights of 2, 4 or 8 bits in blocks that share a scale and a zero point
// (op/math/bits_product.h), and rows of such weights as real numbers.
//
//   bits_vector   a few rows: a warp reads some columns as they are stored, 16 bytes a lane
//   bits_plain    any type, blocks that each number chooses (g_idx), any extents
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "tile_product.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_I
#define RONDO_I i64  // indices of gather_bits
#endif
typedef RONDO_I I;
#include "rondo_bits.cuh"
#ifndef ROWS
#define ROWS 1  // of a, of bits_vector
#endif
#ifndef COLUMNS
#define COLUMNS 2  // of a warp of bits_vector
#endif
#ifndef PACK
#define PACK 16  // bytes of weights that a lane reads at once; they are of one block
#endif
#ifndef WIDTH
#define WIDTH 1  // numbers of a that are read at once; k is a multiple
#endif

// ---- a few rows -------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(256) bits_vector(const bits_arguments p) {
    release_successor();
    enum { NUMBERS = PACK * PARTS };
    const int lane = threadIdx.x & 31;
    const i64 first = ((i64)blockIdx.x * 8 + (threadIdx.x >> 5)) * COLUMNS;
    const i64 m = (i64)blockIdx.y * ROWS, packs = p.row_bytes / PACK;
    if (blockIdx.y == 0) {
        ask_early(p, first, COLUMNS, lane, 32);
    }
    await_predecessors();
    if (first >= p.n) {
        return;
    }
    float sum[ROWS][COLUMNS] = {};
    for (i64 at = lane; at < packs; at += 32) {
        pack<u32, PACK / 4> words[COLUMNS];
        float scale[COLUMNS], zero[COLUMNS], part[ROWS][COLUMNS] = {};
        const i64 block = at * NUMBERS / p.block;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const i64 n = first + c < p.n ? first + c : p.n - 1;
            words[c] = ((const pack<u32, PACK / 4> *)(p.b + n * p.row_bytes))[at];
            scale[c] = convert<float>(p.scales[n * p.blocks + block]);
            zero[c] = get_zero(p, n, block);
        }
#pragma unroll
        for (int w = 0; w < NUMBERS / WIDTH; w++) {
            const i64 k = at * NUMBERS + w * WIDTH;
            if (k < p.k) {
                pack<T, WIDTH> a[ROWS];
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    const i64 row = m + r < p.m ? m + r : p.m - 1;
                    a[r] = *(const pack<T, WIDTH> *)(p.a + row * p.k + k);
                }
#pragma unroll
                for (int v = 0; v < WIDTH; v++) {
                    const int i = w * WIDTH + v;
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++) {
                        const u32 word = words[c].value[i / (4 * PARTS)];
                        const float q =
                            centre_number(word >> (i % (4 * PARTS) * BITS) & MASK, zero[c]);
#pragma unroll
                        for (int r = 0; r < ROWS; r++) {
                            part[r][c] += convert<float>(a[r].value[v]) * q;
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            sum[i / COLUMNS][i % COLUMNS] += part[i / COLUMNS][i % COLUMNS] * scale[i % COLUMNS];
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const i64 row = m + i / COLUMNS, n = first + i % COLUMNS;
        float value = warp_sum(sum[i / COLUMNS][i % COLUMNS]);
        if (lane == 0 && row < p.m && n < p.n) {
            value += p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f;
            p.y[row * p.n + n] = convert<T>(value);
        }
    }
}

// ---- anything ---------------------------------------------------------------------------------

struct load_rows {
    const bits_arguments &p;
    i64 first;
    __device__ __forceinline__ float operator()(i64 m, i64 k) const {
        return first + m < p.m ? convert<float>(p.a[(first + m) * p.k + k]) : 0.0f;
    }
};
struct load_weights {
    const bits_arguments &p;
    i64 first;
    __device__ __forceinline__ float operator()(i64 k, i64 column) const {
        const i64 n = first + column;
        if (n >= p.n) {
            return 0.0f;
        }
        i64 block = k / p.block;
        if (p.groups != 0) {
            block = p.groups[k];
            if (block < 0 || block >= p.blocks) {
                p.told.tell();
                block = 0;
            }
        }
        const u32 byte = p.b[n * p.row_bytes + k / PARTS];
        return ((float)(byte >> (k % PARTS * BITS) & MASK) - get_zero(p, n, block)) *
               convert<float>(p.scales[n * p.blocks + block]);
    }
};

extern "C" __global__ void __launch_bounds__(256) bits_plain(const bits_arguments p) {
    take_turn();
    const i64 m0 = (i64)blockIdx.y * 64, n0 = (i64)blockIdx.x * 64;
    const load_rows load_a = {p, m0};
    const load_weights load_b = {p, n0};
    float sum[4][4];
    tile_product<float>(p.k, sum, load_a, load_b);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const i64 m = m0 + row + 16 * (i / 4), n = n0 + column + 16 * (i % 4);
        if (m < p.m && n < p.n) {
            const float value = sum[i / 4][i % 4] + (p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f);
            p.y[m * p.n + n] = convert<T>(value);
        }
    }
}

// ---- rows -------------------------------------------------------------------------------------

// data is seen as [outer, length, middle, columns], indices choose along `length`; scales are of
// [outer, length, middle / middle_block, columns / column_block], one of which is 1.
struct gather_arguments {
    i64 count;  // numbers of y
    const u8 *data;
    const I *indices;
    const T *scales;
    const u8 *zeros;  // may be NULL
    T *y;
    i64 length, index_count, middle, columns;
    i64 middle_block, column_block;
    faults told;
};

extern "C" __global__ void __launch_bounds__(256) gather_bits(const gather_arguments p) {
    take_turn();
    const i64 scale_columns = (p.columns + p.column_block - 1) / p.column_block;
    const i64 scale_middle = (p.middle + p.middle_block - 1) / p.middle_block;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (i64)gridDim.x * blockDim.x) {
        const i64 column = i % p.columns, middle = i / p.columns % p.middle;
        const i64 place = i / p.columns / p.middle;
        i64 index = (i64)p.indices[place % p.index_count];
        if (index < -p.length || index >= p.length) {
            p.told.tell();
            index = 0;
        }
        const i64 row = place / p.index_count * p.length + (index < 0 ? index + p.length : index);
        const i64 at = row * p.middle + middle;
        const i64 scale_row = row * scale_middle + middle / p.middle_block;
        const i64 scale_column = column / p.column_block;
        const u32 byte = p.data[at * (p.columns / PARTS) + column / PARTS];
        float zero = (float)(1 << (BITS - 1));
        if (p.zeros != 0) {
            const u32 packed =
                p.zeros[scale_row * ((scale_columns + PARTS - 1) / PARTS) + scale_column / PARTS];
            zero = (float)(packed >> (scale_column % PARTS * BITS) & MASK);
        }
        p.y[i] = convert<T>(((float)(byte >> (column % PARTS * BITS) & MASK) - zero) *
                            convert<float>(p.scales[scale_row * scale_columns + scale_column]));
    }
}
