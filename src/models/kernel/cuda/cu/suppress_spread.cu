// suppress_spread.cu - NonMaxSuppression of a few lines of many boxes, by all of the GPU; suppress.cu is for many
// lines. The keys of the boxes, the best first, come sorted (sort.cu).
//
//   spread_keys    a key for each score: of the score and the box's number; of one that is too low all bits
//   spread_boxes   the boxes in the order of the keys; those of no key are gone
//   spread_cover   of a strip of STRIP boxes: which later boxes each of them covers, a bit each
//   spread_walk    one block a line walks through the strip, 32 boxes at a time: one that is not gone is kept,
//                  and those that it covers are gone
//
// Strips come one after the other, so that what one has driven out is not looked at by the next ones.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_boxes.cuh"
#include "rondo_keys.cuh"

#define NO_KEY (~(u64)0)
#define WALKERS 1024  // threads of spread_walk
#define TILE_ROWS 64
#define TILE_WORDS 4

struct spread_arguments {
    i64 lines, classes, count;
    i64 words;            // of 32 boxes
    const float *boxes;   // [batches, count, 4]
    const float *scores;  // [lines, count]
    const i64 *most;      // NULL: none is to be kept
    const float *overlap;  // NULL: 0
    const float *score;    // NULL: all scores will do
    u64 *keys;             // [lines, count], as they come
    const u64 *sorted;     // [lines, count]
    pack<float, 4> *corners;  // [lines, count]: low and high of both axes
    u32 *gone;             // [lines, words]
    u32 *covered;          // [lines, STRIP, words]
    u32 *kept;             // [lines, limit]
    u32 *kept_counts;      // [lines]
    i64 limit, is_center;
    i64 strip, first;  // of this launch
};

__device__ __forceinline__ u32 get_most(const spread_arguments &a) {
    const i64 wanted = a.most != 0 ? *a.most : 0;
    return wanted < 0 ? 0 : (u32)(wanted < a.limit ? wanted : a.limit);
}

extern "C" __global__ void __launch_bounds__(256) spread_keys(const spread_arguments a) {
    take_turn();
    const bool has_limit = a.score != 0;
    const float limit = has_limit ? *a.score : 0.0f;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.lines * a.count;
         n += (i64)gridDim.x * 256) {
        const float own = a.scores[n];
        const u64 rank = ~(u32)key_of(own);
        a.keys[n] = !has_limit || own > limit ? rank << 32 | (u32)(n % a.count) : NO_KEY;
    }
}

// A thread a box; a warp a word of those that are gone.
extern "C" __global__ void __launch_bounds__(256) spread_boxes(const spread_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.lines * a.words * 32;
         n += (i64)gridDim.x * 256) {
        const i64 line = n / (a.words * 32), i = n % (a.words * 32);
        const u64 key = i < a.count ? a.sorted[line * a.count + i] : NO_KEY;
        if (key != NO_KEY) {
            const float *boxes = a.boxes + line / a.classes * a.count * 4;
            const box b = read_box(boxes + 4 * (i64)(u32)key, a.is_center != 0);
            pack<float, 4> corners;
            corners.value[0] = b.low[0];
            corners.value[1] = b.low[1];
            corners.value[2] = b.high[0];
            corners.value[3] = b.high[1];
            a.corners[line * a.count + i] = corners;
        }
        const u32 gone = __ballot_sync(0xffffffffu, key == NO_KEY);
        if ((threadIdx.x & 31) == 0) {
            a.gone[n / 32] = gone;
        }
        if (i == 0) {
            a.kept_counts[line] = 0;
        }
    }
}

__device__ __forceinline__ box read_corners(const pack<float, 4> &corners) {
    box b;
    b.area = 1.0f;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        b.low[i] = corners.value[i];
        b.high[i] = corners.value[2 + i];
        b.area *= b.high[i] - b.low[i];
    }
    return b;
}

// The grid is (TILE_WORDS words of later boxes, TILE_ROWS boxes of the strip, lines). Words before a row's own
// are not written, nor rows of boxes that are gone already.
extern "C" __global__ void __launch_bounds__(256) spread_cover(const spread_arguments a) {
    take_turn();
    __shared__ pack<float, 4> others[TILE_WORDS * 32];
    const i64 line = blockIdx.z, row0 = a.first + (i64)blockIdx.y * TILE_ROWS;
    const i64 word0 = (i64)blockIdx.x * TILE_WORDS;
    if ((word0 + TILE_WORDS) * 32 <= row0 || a.kept_counts[line] >= get_most(a)) {
        return;
    }
    const pack<float, 4> *corners = a.corners + line * a.count;
    if (threadIdx.x < TILE_WORDS * 32 && word0 * 32 + threadIdx.x < a.count) {
        others[threadIdx.x] = corners[word0 * 32 + threadIdx.x];
    }
    __syncthreads();
    const i64 row = row0 + threadIdx.x % TILE_ROWS, word = word0 + threadIdx.x / TILE_ROWS;
    const u32 *gone = a.gone + line * a.words;
    if (row >= a.count || row >= a.first + a.strip || word >= a.words || word < row / 32 ||
        (gone[row / 32] >> (row % 32) & 1u) != 0) {
        return;
    }
    const float threshold = a.overlap != 0 ? *a.overlap : 0.0f;
    const box own = read_corners(corners[row]);
    u32 covered = 0;
    for (u32 rest = ~gone[word]; rest != 0; rest &= rest - 1) {
        const int i = __ffs((int)rest) - 1;
        const box other = read_corners(others[threadIdx.x / TILE_ROWS * 32 + i]);
        covered |= word * 32 + i > row && covers(other, own, threshold) ? 1u << i : 0u;
    }
    a.covered[(line * a.strip + row - a.first) * a.words + word] = covered;
}

// Which of 32 boxes are kept: one warp, each lane with what its box covers of them.
__device__ __forceinline__ u32 decide(u32 gone, u32 covered, u32 room) {
    u32 keeps = 0;
    for (u32 rest = ~gone; rest != 0 && room > 0; room--) {
        const int i = __ffs((int)rest) - 1;
        keeps |= 1u << i;
        rest &= ~(1u << i) & ~__shfl_sync(0xffffffffu, covered, i);
    }
    return keeps;
}

extern "C" __global__ void __launch_bounds__(WALKERS) spread_walk(const spread_arguments a) {
    extern __shared__ u32 gone[];  // a.words of them
    take_turn();
    __shared__ u32 chosen;
    const i64 line = blockIdx.x, last = a.first + a.strip < a.count ? a.first + a.strip : a.count;
    const u32 most = get_most(a);
    u32 kept_count = a.kept_counts[line];
    u32 *all_gone = a.gone + line * a.words;
    const u64 *sorted = a.sorted + line * a.count;
    if (kept_count >= most) {
        return;
    }
    for (i64 w = a.first / 32 + threadIdx.x; w < a.words; w += WALKERS) {
        gone[w] = all_gone[w];
    }
    __syncthreads();
    for (i64 word = a.first / 32; word * 32 < last && kept_count < most; word++) {
        const u32 *rows = a.covered + (line * a.strip + word * 32 - a.first) * a.words;
        if (threadIdx.x < 32) {
            const bool is_there = (gone[word] >> threadIdx.x & 1u) == 0;
            const u32 covered = is_there ? rows[threadIdx.x * a.words + word] : 0;
            const u32 keeps = decide(gone[word], covered, most - kept_count);
            if ((keeps >> threadIdx.x & 1u) != 0) {
                const u32 before = __popc(keeps & ((1u << threadIdx.x) - 1));
                a.kept[line * a.limit + kept_count + before] =
                    (u32)sorted[word * 32 + threadIdx.x];
            }
            if (threadIdx.x == 0) {
                chosen = keeps;
            }
        }
        __syncthreads();
        const u32 keeps = chosen;
        kept_count += __popc(keeps);
        for (i64 w = word + 1 + threadIdx.x; w < a.words; w += WALKERS) {
            u32 found = 0;
#pragma unroll
            for (int i = 0; i < 32; i++) {
                found |= (keeps >> i & 1u) != 0 ? rows[i * a.words + w] : 0;
            }
            gone[w] |= found;
        }
        __syncthreads();
    }
    for (i64 w = last / 32 + threadIdx.x; w < a.words; w += WALKERS) {
        all_gone[w] = gone[w];
    }
    if (threadIdx.x == 0) {
        a.kept_counts[line] = kept_count;
    }
}
