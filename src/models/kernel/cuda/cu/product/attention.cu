// attention.cu - softmax(scale * q k^T + mask) v for each head, without the scores in memory: a block
// keeps 16 * ROWS rows of q and walks over k and v in tiles, with the peak and the sum of each row so
// far. A new peak scales what was added before (online softmax). All arithmetic is in float.
//
// Few rows and many keys leave most of the chip idle; there several blocks share the keys, and
// attention_merge puts their parts together. attention_softmax serves the way of two products. A block looks
// at the keys that its rows see and at no others, so a cache that is mostly empty costs what is in it.
// Source: Dao et al., FlashAttention, arXiv:2205.14135; Milakov, Gimelshein, arXiv:1805.02867.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef WIDTH
#define WIDTH 64  // of q and k
#endif
#ifndef V_WIDTH
#define V_WIDTH 64
#endif
#ifndef ROWS
#define ROWS 1  // of a thread
#endif
#ifndef KEYS
#define KEYS 32  // of a tile; a multiple of 16
#endif
#ifndef HAS_PARTS
#define HAS_PARTS 0
#endif

#include "rondo_attention.cuh"

enum {
    BLOCK_ROWS = 16 * ROWS,
    COLUMNS = (V_WIDTH + 15) / 16,  // of a thread
    WIDEST = WIDTH > V_WIDTH ? WIDTH : V_WIDTH,
};

// Over the 16 threads of a row.
__device__ __forceinline__ float row_max(float x) {
#pragma unroll
    for (int step = 8; step > 0; step >>= 1) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
    for (int step = 8; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

// The squares of a row, over its 16 threads, of which this is the c-th.
template <int COUNT>
__device__ __forceinline__ float add_squares(const float *row, int c) {
    float sum = 0.0f;
    for (int w = c; w < COUNT; w += 16) {
        sum += row[w] * row[w];
    }
    return row_sum(sum);
}

// Rows `first` on of a matrix into shared memory, zeros behind its end. Neighbouring threads take
// neighbouring elements, whichever way it lies.
template <int COUNT, int WIDTH_OF, int PITCH>
__device__ __forceinline__ void load_tile(float (&tile)[COUNT][PITCH], const T *from, i64 first,
                                          i64 end, const strides &s) {
    const bool is_turned = s.column != 1 && s.row == 1;
    for (int at = threadIdx.x; at < COUNT * WIDTH_OF; at += 256) {
        const int row = is_turned ? at % COUNT : at / WIDTH_OF;
        const int column = is_turned ? at / COUNT : at % WIDTH_OF;
        tile[row][column] =
            first + row < end ? convert<float>(from[(first + row) * s.row + column * s.column])
                              : 0.0f;
    }
}

// The grid is (row tiles * parts, heads, batch).
extern "C" __global__ void __launch_bounds__(256) attention(const attention_arguments a) {
    take_turn();
    __shared__ float q_tile[BLOCK_ROWS][WIDTH + 1];
    __shared__ float tile[KEYS][WIDEST + 1];  // of k, then of v
    __shared__ float weights[BLOCK_ROWS][KEYS + 1];
    __shared__ float of_key[UNIT_ROWS ? KEYS : 1];
    const int r = threadIdx.x >> 4, c = threadIdx.x & 15;
    const i64 head = blockIdx.y, batch = blockIdx.z;
    const i64 first_row = blockIdx.x / a.part_count * BLOCK_ROWS, part = blockIdx.x % a.part_count;
    const i64 rows = a.m * GROUP;
    const i64 end_row = first_row + BLOCK_ROWS < rows ? first_row + BLOCK_ROWS : rows;
    sight seen = {0, a.n}, own[ROWS];
    if (HAS_SIGHT) {
        const extents e = get_extents(a.sight, a.m, batch);
        seen = get_block_sight(a.sight, e, a.m, first_row, end_row);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            own[i] = get_row_sight(a.sight, e, a.m, first_row + r + 16 * i);
        }
    }
    // Parts are of the keys that are seen, which data may say.
    const i64 part_keys = (seen.end - seen.begin + a.part_count - 1) / a.part_count;
    const i64 first_key = seen.begin + part * part_keys;
    const i64 end = first_key + part_keys < seen.end ? first_key + part_keys : seen.end;
    const T *k = a.k + find(a.at_k, batch, head, 0), *v = a.v + find(a.at_v, batch, head, 0);
    const float scale = get_scale(a, head);
    float of_row[ROWS];
    float sums[ROWS][COLUMNS], peak[ROWS], total[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const i64 row = first_row + r + 16 * i;
        const bool sinks = HAS_SINK != 0 && part == 0 && row < rows;
        peak[i] = sinks ? get_sink(a, head, row) : -infinity();
        total[i] = sinks ? 1.0f : 0.0f;
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            sums[i][j] = 0.0f;
        }
    }
    if (GROUP == 1) {
        load_tile<BLOCK_ROWS, WIDTH>(q_tile, a.q + find(a.at_q, batch, head, 0), first_row, a.m,
                                     a.at_q);
    } else {
        for (int at = threadIdx.x; at < BLOCK_ROWS * WIDTH; at += 256) {
            const i64 row = first_row + at / WIDTH;
            const T *of = a.q + find_row(a.at_q, a.m, batch, head, row < rows ? row : 0);
            q_tile[at / WIDTH][at % WIDTH] =
                row < rows ? convert<float>(of[at % WIDTH * a.at_q.column]) : 0.0f;
        }
    }
    for (i64 key = first_key; key < end; key += KEYS) {
        __syncthreads();
        load_tile<KEYS, WIDTH>(tile, k, key, end, a.at_k);
        __syncthreads();
        if (UNIT_ROWS) {
#pragma unroll
            for (int j = 0; j < KEYS / 16; j++) {
                const float length = inverse_length(add_squares<WIDTH>(tile[r + 16 * j], c));
                if (c == 0) {
                    of_key[r + 16 * j] = length;
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                of_row[i] = inverse_length(add_squares<WIDTH>(q_tile[r + 16 * i], c));
            }
            __syncthreads();
        }
        float score[ROWS][KEYS / 16];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int j = 0; j < KEYS / 16; j++) {
                score[i][j] = 0.0f;
            }
        }
#pragma unroll 8
        for (int w = 0; w < WIDTH; w++) {
            float of_k[KEYS / 16];
#pragma unroll
            for (int j = 0; j < KEYS / 16; j++) {
                of_k[j] = tile[c + 16 * j][w];
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const float of_q = q_tile[r + 16 * i][w];
#pragma unroll
                for (int j = 0; j < KEYS / 16; j++) {
                    score[i][j] += of_q * of_k[j];
                }
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const i64 row = first_row + r + 16 * i;
            float highest = peak[i], added = 0.0f;
#pragma unroll
            for (int j = 0; j < KEYS / 16; j++) {
                const i64 at = key + c + 16 * j;
                const bool is_seen = HAS_SIGHT ? at >= own[i].begin && at < own[i].end && at < end
                                               : at < end;
                score[i][j] *= UNIT_ROWS ? of_row[i] * of_key[c + 16 * j] : 1.0f;
                score[i][j] = cap_score(score[i][j] * scale, a.softcap);
                if (a.mask != 0 && row < rows && at < end) {
                    const i64 of_row = find_row(a.at_mask, a.m, batch, head, row);
                    score[i][j] = add_mask(score[i][j],
                                           read_mask(a.mask[of_row + at * a.at_mask.column]));
                }
                score[i][j] = is_seen ? score[i][j] : -infinity();
                highest = fmaxf(highest, score[i][j]);
            }
            highest = row_max(highest);
            const float kept = weight_of(peak[i], highest);
#pragma unroll
            for (int j = 0; j < KEYS / 16; j++) {
                const float weight = weight_of(score[i][j], highest);
                weights[r + 16 * i][c + 16 * j] = weight;
                added += weight;
            }
            peak[i] = highest;
            total[i] = total[i] * kept + row_sum(added);
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                sums[i][j] *= kept;
            }
        }
        __syncthreads();
        load_tile<KEYS, V_WIDTH>(tile, v, key, end, a.at_v);
        __syncthreads();
#pragma unroll 4
        for (int at = 0; at < KEYS; at++) {
            float of_v[COLUMNS];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                of_v[j] = c + 16 * j < V_WIDTH ? tile[at][c + 16 * j] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const float weight = weights[r + 16 * i][at];
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    sums[i][j] += weight * of_v[j];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const i64 row = first_row + r + 16 * i;
        if (row >= rows) {
            continue;
        }
        float *to = a.parts + (((batch * a.heads + head) * rows + row) * a.part_count + part) *
                                  (V_WIDTH + 2);
        if (HAS_PARTS && c == 0) {
            to[V_WIDTH] = peak[i];
            to[V_WIDTH + 1] = total[i];
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int column = c + 16 * j;
            if (column >= V_WIDTH) {
                continue;
            }
            if (HAS_PARTS) {
                to[column] = sums[i][j];
            } else {
                const float whole = ZEROES_EMPTY && total[i] == 0.0f ? 1.0f : total[i];
                a.y[find_row(a.at_y, a.m, batch, head, row) + column] =
                    convert<T>(sums[i][j] / whole);
            }
        }
    }
}

// Puts the parts of each row together, a thread an element.
extern "C" __global__ void __launch_bounds__(256) attention_merge(const attention_arguments a) {
    take_turn();
    const i64 rows = a.m * GROUP, count = a.batch * a.heads * rows * V_WIDTH;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += (i64)gridDim.x * 256) {
        const i64 line = i / V_WIDTH, column = i % V_WIDTH;
        const float *from = a.parts + line * a.part_count * (V_WIDTH + 2);
        float peak = -infinity(), sum = 0.0f, total = 0.0f;
        for (i64 part = 0; part < a.part_count; part++) {
            peak = fmaxf(peak, from[part * (V_WIDTH + 2) + V_WIDTH]);
        }
        for (i64 part = 0; part < a.part_count; part++) {
            const float *one = from + part * (V_WIDTH + 2);
            const float weight = weight_of(one[V_WIDTH], peak);
            sum += one[column] * weight;
            total += one[V_WIDTH + 1] * weight;
        }
        const i64 row = line % rows, head = line / rows % a.heads, batch = line / rows / a.heads;
        total = ZEROES_EMPTY && total == 0.0f ? 1.0f : total;
        a.y[find_row(a.at_y, a.m, batch, head, row) + column] = convert<T>(sum / total);
    }
}

// The scores of q and k, [batch, heads, m, n] at y, become their softmax where they lie: a block a row.
extern "C" __global__ void __launch_bounds__(256) attention_softmax(const attention_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 line = blockIdx.x; line < a.batch * a.heads * a.m; line += gridDim.x) {
        const i64 row = line % a.m, head = line / a.m % a.heads, batch = line / a.m / a.heads;
        const mask_type *mask = a.mask != 0 ? a.mask + find(a.at_mask, batch, head, row) : 0;
        T *y = a.y + line * a.n;
        float peak = -infinity();
        long_sum terms;
        for (i64 i = threadIdx.x; i < a.n; i += blockDim.x) {
            const float x = convert<float>(y[i]);
            peak = fmaxf(peak, mask != 0 ? x + read_mask(mask[i * a.at_mask.column]) : x);
        }
        peak = block_max(peak, scratch);
        for (i64 i = threadIdx.x; i < a.n; i += blockDim.x) {
            const float x = convert<float>(y[i]);
            terms.add(expf(
                (mask != 0 ? x + read_mask(mask[i * a.at_mask.column]) : x) - peak));
        }
        const float sum = block_sum(terms.get(), scratch);
        for (i64 i = threadIdx.x; i < a.n; i += blockDim.x) {
            const float x = convert<float>(y[i]);
            const float score = mask != 0 ? x + read_mask(mask[i * a.at_mask.column]) : x;
            y[i] = convert<T>(expf(score - peak) / sum);
        }
    }
}
