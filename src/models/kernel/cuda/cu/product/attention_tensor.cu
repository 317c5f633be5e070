// attention_tensor.cu - attention as in attention.cu, in f16 on tensor cores. Each warp of a block keeps
// 16 rows of q in registers; KEY_WARPS of them have the same rows and share the keys of a tile. The
// scores of a warp are the left operand of the second product without leaving their registers.
//
//   memory   k [tile keys][width + 8], v [tile keys][v_width + 8]: the 8 halves behind each row spread
//            the rows of a block of 8 x 8 over all banks
//
// What a short sequence takes is how long a warp waits: so all that a tile needs is asked for at once, and where there
// are several tiles the next one is on its way while a warp works. Where one
// tile has all keys (ONE_TILE) warps that share rows tell each other their peaks before they make weights, so that
// their parts are just added up; v is waited for no earlier than that.
//
// Rows by their lengths (UNIT_ROWS): a row of q lies in the registers of four lanes, which add up its squares;
// those of a key are added up by one thread out of memory. Scores are multiplied by both.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_mma.cuh"

typedef f16 T;
#ifndef WIDTH
#define WIDTH 64  // of q and k
#endif
#ifndef V_WIDTH
#define V_WIDTH 64
#endif
#ifndef KEY_WARPS
#define KEY_WARPS 1  // 1, 2, 4 or 8
#endif
#ifndef KEYS
#define KEYS 32  // of a warp and tile; a multiple of 16
#endif
#ifndef ONE_TILE
#define ONE_TILE 0  // 1: there are no more keys than a tile has
#endif
#ifndef FULL_KEYS
#define FULL_KEYS 0  // 1: all tiles are full of keys
#endif
#ifndef FULL_ROWS
#define FULL_ROWS 0  // 1: all blocks are full of rows
#endif
#ifndef Q_IS_WIDE
#define Q_IS_WIDE 0  // rows of q are whole 16 bytes
#endif
#ifndef K_IS_WIDE
#define K_IS_WIDE 0
#endif
#ifndef V_IS_WIDE
#define V_IS_WIDE 0
#endif

#ifndef HAS_MASK
#define HAS_MASK 1
#endif
#ifndef MASK_IS_WIDE
#define MASK_IS_WIDE 0  // pairs of keys begin at whole words, and there is no odd key
#endif

#include "rondo_attention.cuh"

enum {
    WARPS = KEY_WARPS > 4 ? KEY_WARPS : 4,
    THREADS = WARPS * 32,
    STEPS = (WIDTH + 15) / 16,
    K_PITCH = STEPS * 16 + 8,
    V_PAIRS = (V_WIDTH + 15) / 16,  // of blocks of 8 columns
    V_PITCH = V_PAIRS * 16 + 8,
    TILE = KEYS * KEY_WARPS,
    BLOCK_ROWS = WARPS / KEY_WARPS * 16,
    SCORES = KEYS / 4,  // of a lane and row
    K_BYTES = TILE * K_PITCH * 2,
    TILE_BYTES = K_BYTES + TILE * V_PITCH * 2,
    TILES = ONE_TILE ? 1 : 2,  // at once in memory
    MERGE_BYTES = KEY_WARPS > 1 ? WARPS * 16 * (V_WIDTH + 2) * 4 : 0,
    SHARES_PEAK = ONE_TILE && KEY_WARPS > 1,
    BYTES = TILES * TILE_BYTES > MERGE_BYTES ? TILES * TILE_BYTES : MERGE_BYTES,
    PAIR = V_WIDTH % 2 == 0 ? 2 : 1,  // halves that are written at once
};

// Rows `first` on of k or v, zeros behind the last and in the columns that fill up PADDED.
template <int USED, int PADDED, int PITCH, bool IS_WIDE>
__device__ __forceinline__ void load_tile(u16 *tile, const f16 *from, int first, int end,
                                          const strides &s) {
    if (IS_WIDE) {
        enum { PIECES = PADDED / 8, TURNS = (TILE * PIECES + THREADS - 1) / THREADS };
        enum { IS_EVEN = THREADS % PIECES == 0 };  // a thread stays in its column
        const int begin = (int)threadIdx.x / PIECES, piece = (int)threadIdx.x % PIECES * 8;
        const f16 *at_row = from + (i64)(first + begin) * s.row + piece;
        constexpr int at_once = ONE_TILE ? 1 : 4;  // code that runs once takes longer to fetch than to run
#pragma unroll at_once
        for (int i = 0; i < TURNS; i++) {
            const int at = (int)threadIdx.x + i * THREADS;
            const int row = IS_EVEN ? begin + i * (THREADS / PIECES) : at / PIECES;
            const int column = IS_EVEN ? piece : at % PIECES * 8;
            const bool is_there = (FULL_KEYS || first + row < end) && column < USED;
            if (TILE * PIECES % THREADS == 0 || row < TILE) {
                const f16 *here = IS_EVEN ? at_row : from + (i64)(first + row) * s.row + column;
                copy_16(tile + row * PITCH + column, is_there ? here : from, is_there);
            }
            at_row += s.row * (THREADS / PIECES);
        }
        return;
    }
    const bool is_turned = s.column != 1 && s.row == 1;
    for (int at = threadIdx.x; at < TILE * PADDED; at += THREADS) {
        const int row = is_turned ? at % TILE : at / PADDED;
        const int column = is_turned ? at / TILE : at % PADDED;
        tile[row * PITCH + column] =
            first + row < end && column < USED
                ? from[(i64)(first + row) * s.row + (i64)column * s.column].bits
                : (u16)0;
    }
}

// Columns `column` and the next of a row of q; zeros where there is no row.
__device__ __forceinline__ u32 load_q(const f16 *row, int column, const strides &s) {
    u32 pair = 0;
    if (Q_IS_WIDE) {
        pair = (FULL_ROWS || row != 0) && column < WIDTH ? *(const u32 *)(row + column) : 0;
    } else {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (row != 0 && column + i < WIDTH) {
                pair |= (u32)row[(column + i) * s.column].bits << (16 * i);
            }
        }
    }
    return pair;
}

// What is added to the scores of two neighbouring keys; 0 where there is no row or no key.
__device__ __forceinline__ void load_mask(const mask_type *row, int key, int keys, i64 column,
                                          float &first, float &second) {
    first = second = 0.0f;
    if (HAS_MASK && (FULL_ROWS || row != 0) && (FULL_KEYS || key < keys)) {
        if (MASK_IS_WIDE) {
            const pack<mask_type, 2> both = *(const pack<mask_type, 2> *)(row + key);
            first = read_mask(both.value[0]);
            second = read_mask(both.value[1]);
        } else {
            first = read_mask(row[key * column]);
            second = key + 1 < keys ? read_mask(row[(key + 1) * column]) : 0.0f;
        }
    }
}

__device__ __forceinline__ float square_pair(u32 pair) {
    f16 low, high;
    low.bits = (u16)pair;
    high.bits = (u16)(pair >> 16);
    const float x = half_to_float(low), z = half_to_float(high);
    return x * x + z * z;
}

// Over the four lanes of a row.
__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// The squares of a key in the tile, which has zeros behind it.
__device__ __forceinline__ float add_squares(const u16 *row) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < STEPS * 2; i++) {
        const uint4 piece = *(const uint4 *)(row + i * 8);
        sum += square_pair(piece.x) + square_pair(piece.y) + square_pair(piece.z) +
               square_pair(piece.w);
    }
    return sum;
}

// 2^(x - peak), where no peak (all before was -inf) takes nothing away. The weights become halves, for which the
// instruction is precise enough; expf is eight.
__device__ __forceinline__ float weigh(float x, float peak) {
    return power_of_two(x - (peak == -infinity() ? 0.0f : peak));
}

// One by a sum of weights.
__device__ __forceinline__ float share_of(float total) {
    return ZEROES_EMPTY && total == 0.0f ? 0.0f : 1.0f / total;
}

__device__ __forceinline__ void write_y(f16 *y, float x, float z) {
    if (PAIR == 2) {
        *(u32 *)y = pack_halves(x, z);
    } else {
        *y = half_from_float(x);
    }
}

// The grid is (row tiles, heads, batch).
extern "C" __global__ void __launch_bounds__(THREADS) attention_tensor(const attention_arguments a) {
    release_successor();
    extern __shared__ __align__(16) uint4 memory[];  // BYTES
    __shared__ float factors[KEY_WARPS * BLOCK_ROWS];
    __shared__ float of_key[UNIT_ROWS ? TILE : 1];
    u16 *k_tile = (u16 *)memory, *v_tile = k_tile + TILE * K_PITCH;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const int slice = warp % KEY_WARPS, row_in_block = warp / KEY_WARPS * 16 + g;
    const i64 head = blockIdx.y, batch = blockIdx.z;
    // Rows that see more keys begin first.
    const int row_tile = (int)(HAS_SIGHT ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    const int first_row = row_tile * BLOCK_ROWS, rows = (int)a.m * GROUP;
    const int row = first_row + row_in_block;
    const f16 *k = a.k + find(a.at_k, batch, head, 0), *v = a.v + find(a.at_v, batch, head, 0);
    // What a lane shows of a block of 8 x 8: row lane % 8 of block lane / 8. Of k the blocks are two of
    // columns, then the same of the next 8 keys; of v two of keys, then the same of the next 8 columns.
    const u16 *k_block = k_tile + (slice * KEYS + (lane >> 4) * 8 + (lane & 7)) * K_PITCH +
                         (lane >> 3 & 1) * 8;
    const u16 *v_block =
        v_tile + (slice * KEYS + (lane & 15)) * V_PITCH + (lane >> 4) * 8;

    read_early((u64)k | (u64)v | (u64)a.y | (u64)a.n | (u64)a.at_mask.row | (u64)a.at_y.row);
    await_predecessors();

    int first_key = 0, keys = (int)a.n, own_begin[2] = {0, 0}, own_end[2] = {keys, keys};
    int all_begin = 0, all_end = keys;  // what each row of the warp sees
    if (HAS_SIGHT) {
        const extents e = get_extents(a.sight, a.m, batch);
        const int end_row = first_row + BLOCK_ROWS < rows ? first_row + BLOCK_ROWS : rows;
        const sight seen = get_block_sight(a.sight, e, a.m, first_row, end_row);
        first_key = (int)seen.begin & ~1;  // a mask may be read in pairs
        keys = (int)seen.end;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const sight own = get_row_sight(a.sight, e, a.m, row + r * 8);
            own_begin[r] = (int)own.begin;
            own_end[r] = (int)own.end;
        }
        all_begin = own_begin[0] > own_begin[1] ? own_begin[0] : own_begin[1];
        all_end = own_end[0] < own_end[1] ? own_end[0] : own_end[1];
#pragma unroll
        for (int step = 4; step < 32; step *= 2) {
            const int begin = __shfl_xor_sync(0xffffffffu, all_begin, step);
            const int end = __shfl_xor_sync(0xffffffffu, all_end, step);
            all_begin = begin > all_begin ? begin : all_begin;
            all_end = end < all_end ? end : all_end;
        }
    }
    load_tile<WIDTH, STEPS * 16, K_PITCH, K_IS_WIDE>(k_tile, k, first_key, keys, a.at_k);
    asm volatile("cp.async.commit_group;");
    load_tile<V_WIDTH, V_PAIRS * 16, V_PITCH, V_IS_WIDE>(v_tile, v, first_key, keys, a.at_v);
    const f16 *q[2];
    const mask_type *mask[2];
    u32 of_q[STEPS][4];
#pragma unroll
    for (int r = 0; r < 2; r++) {  // rows g and g + 8
        const bool is_there = FULL_ROWS || row + r * 8 < rows;
        q[r] = is_there ? a.q + find_row(a.at_q, a.m, batch, head, row + r * 8) : 0;
        mask[r] = is_there && HAS_MASK
                      ? a.mask + find_row(a.at_mask, a.m, batch, head, row + r * 8)
                      : 0;
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            of_q[s][i] = load_q(q[i & 1], s * 16 + 2 * t + (i >> 1) * 8, a.at_q);
        }
    }
    // Scores and their peaks are logarithms to the base of two.
    const float log2_of_e = 1.4426950408889634f;
    enum { IS_BARE = !HAS_MASK && !HAS_SOFTCAP };  // scores are multiplied by the scale, and that is all
    const float scale = get_scale(a, head) * (IS_BARE ? log2_of_e : 1.0f);
    float scale_of[2] = {scale, scale};
#pragma unroll
    for (int r = 0; r < 2 && UNIT_ROWS; r++) {
        float squares = 0.0f;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            squares += square_pair(of_q[s][r]) + square_pair(of_q[s][r + 2]);
        }
        scale_of[r] = scale * inverse_length(row_sum(squares));
    }
    float sums[V_PAIRS * 2][4] = {};
    float peak[2] = {-infinity(), -infinity()}, total[2] = {0.0f, 0.0f};
#pragma unroll
    for (int r = 0; r < 2 && HAS_SINK != 0; r++) {  // one of those that share a row begins with it
        if (slice == 0 && row + r * 8 < rows) {
            peak[r] = get_sink(a, head, row + r * 8) * log2_of_e;
            total[r] = 1.0f;
        }
    }
    int at_tile = 0;  // in halves
    for (int key = first_key; key < (ONE_TILE ? first_key + 1 : keys); key += TILE) {
        const int mine = key + slice * KEYS + 2 * t;
        float added[2][SCORES];
#pragma unroll
        for (int r = 0; r < 2; r++) {
#pragma unroll
            for (int at = 0; at < SCORES; at += 2) {
                load_mask(mask[r], mine + (at >> 1) * 8, keys, a.at_mask.column, added[r][at],
                          added[r][at + 1]);
            }
        }
        if (SHARES_PEAK) {
            asm volatile("cp.async.commit_group;");
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            wait_copies();
        }
        __syncthreads();
        if (!ONE_TILE && key + TILE < keys) {  // where the last tile but one was, which all have left
            const int to = TILE_BYTES / 2 - at_tile, next = key + TILE;
            load_tile<WIDTH, STEPS * 16, K_PITCH, K_IS_WIDE>(k_tile + to, k, next, keys, a.at_k);
            load_tile<V_WIDTH, V_PAIRS * 16, V_PITCH, V_IS_WIDE>(v_tile + to, v, next, keys, a.at_v);
        }
        if (UNIT_ROWS) {
            for (int i = threadIdx.x; i < TILE; i += THREADS) {
                of_key[i] = inverse_length(add_squares(k_tile + at_tile + i * K_PITCH));
            }
            __syncthreads();
        }
        const bool is_seen = key + slice * KEYS >= all_begin && key + (slice + 1) * KEYS <= all_end;
        float score[KEYS / 8][4] = {};
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
#pragma unroll
            for (int j = 0; j < KEYS / 8; j += 2) {
                u32 block[4];
                load_blocks(block, k_block + at_tile + j * 8 * K_PITCH + s * 16);
                const u32 first[2] = {block[0], block[1]}, second[2] = {block[2], block[3]};
                mma_f16(score[j], of_q[s], first);
                mma_f16(score[j + 1], of_q[s], second);
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
#pragma unroll
            for (int at = 0; at < SCORES; at++) {
                float &x = score[at >> 1][r * 2 + (at & 1)];
                x *= UNIT_ROWS ? of_key[slice * KEYS + 2 * t + (at >> 1) * 8 + (at & 1)] : 1.0f;
                x *= scale_of[r];
                if (!IS_BARE) {
                    x = add_mask(cap_score(x, a.softcap), added[r][at]) * log2_of_e;
                }
            }
        }
        if (HAS_SIGHT && !is_seen) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
#pragma unroll
                for (int at = 0; at < SCORES; at++) {
                    float &x = score[at >> 1][r * 2 + (at & 1)];
                    const int at_key = mine + (at >> 1) * 8 + (at & 1);
                    x = at_key >= own_begin[r] && at_key < own_end[r] ? x : -infinity();
                }
            }
        }
        float highest[2] = {peak[0], peak[1]};
#pragma unroll
        for (int r = 0; r < 2; r++) {
#pragma unroll
            for (int at = 0; at < SCORES; at++) {
                const float x = score[at >> 1][r * 2 + (at & 1)];
                const bool is_key =
                    FULL_KEYS || HAS_SIGHT || mine + (at >> 1) * 8 + (at & 1) < keys;
                highest[r] = is_key ? fmaxf(highest[r], x) : highest[r];
            }
            highest[r] = row_max(highest[r]);
        }
        if (SHARES_PEAK) {
            if (t == 0) {
                factors[slice * BLOCK_ROWS + row_in_block] = highest[0];
                factors[slice * BLOCK_ROWS + row_in_block + 8] = highest[1];
            }
            wait_copies();
            __syncthreads();
#pragma unroll
            for (int s = 0; s < KEY_WARPS; s++) {
                highest[0] = fmaxf(highest[0], factors[s * BLOCK_ROWS + row_in_block]);
                highest[1] = fmaxf(highest[1], factors[s * BLOCK_ROWS + row_in_block + 8]);
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float base = highest[r] == -infinity() ? 0.0f : highest[r];
            float sum = 0.0f;
#pragma unroll
            for (int at = 0; at < SCORES; at++) {
                float &x = score[at >> 1][r * 2 + (at & 1)];
                const bool is_key =
                    FULL_KEYS || HAS_SIGHT || mine + (at >> 1) * 8 + (at & 1) < keys;
                x = is_key ? power_of_two(x - base) : 0.0f;
                sum += half_to_float(half_from_float(x));  // as the product takes it
            }
            const bool was_none = ONE_TILE && HAS_SINK == 0;
            const float kept = was_none ? 0.0f : weigh(peak[r], highest[r]);
            peak[r] = highest[r];
            total[r] = (was_none ? 0.0f : total[r] * kept) + row_sum(sum);
#pragma unroll
            for (int j = 0; j < V_PAIRS * 2 && !ONE_TILE; j++) {
                sums[j][r * 2] *= kept;
                sums[j][r * 2 + 1] *= kept;
            }
        }
#pragma unroll
        for (int s = 0; s < KEYS / 16; s++) {
            const float(&x)[4] = score[2 * s], (&z)[4] = score[2 * s + 1];
            const u32 weights[4] = {pack_halves(x[0], x[1]), pack_halves(x[2], x[3]),
                                    pack_halves(z[0], z[1]), pack_halves(z[2], z[3])};
#pragma unroll
            for (int j = 0; j < V_PAIRS; j++) {
                u32 block[4];
                load_blocks_turned(block, v_block + at_tile + s * 16 * V_PITCH + j * 16);
                const u32 first[2] = {block[0], block[1]}, second[2] = {block[2], block[3]};
                mma_f16(sums[2 * j], weights, first);
                mma_f16(sums[2 * j + 1], weights, second);
            }
        }
        at_tile = ONE_TILE ? 0 : TILE_BYTES / 2 - at_tile;
    }
    if (HAS_SIGHT && !ONE_TILE) {
        wait_copies();  // where no key is seen, what was asked for at first has not arrived
    }
    if (KEY_WARPS == 1) {
        const float share[2] = {share_of(total[0]), share_of(total[1])};
#pragma unroll
        for (int at = 0; at < V_PAIRS * 4; at++) {
            const int r = at & 1, column = (at >> 1) * 8 + 2 * t;
            const float *of = &sums[at >> 1][r * 2];
            if ((FULL_ROWS || row + r * 8 < rows) && column < V_WIDTH) {
                f16 *y = a.y + find_row(a.at_y, a.m, batch, head, row + r * 8) + column;
                write_y(y, of[0] * share[r], of[1] * share[r]);
                if (PAIR == 1 && column + 1 < V_WIDTH) {
                    write_y(y + 1, of[1] * share[r], 0.0f);
                }
            }
        }
        return;
    }
    // The warps of the same rows put their parts together: [KEY_WARPS][BLOCK_ROWS][V_WIDTH + 2].
    float *parts = (float *)memory;
    if (!SHARES_PEAK || MERGE_BYTES > K_BYTES) {  // k was read before the peaks were shared
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float *part = parts + (slice * BLOCK_ROWS + row_in_block + r * 8) * (V_WIDTH + 2);
        if (t == 0) {
            part[V_WIDTH] = peak[r];
            part[V_WIDTH + 1] = total[r];
        }
#pragma unroll
        for (int j = 0; j < V_PAIRS * 2; j++) {
            const int column = j * 8 + 2 * t;
            const float *of = &sums[j][r * 2];
            if (PAIR == 2 && column < V_WIDTH) {
                *(float2 *)(part + column) = make_float2(of[0], of[1]);
            }
            for (int c = 0; c < 2 && PAIR == 1; c++) {
                if (column + c < V_WIDTH) {
                    part[column + c] = of[c];
                }
            }
        }
    }
    __syncthreads();
    if (!SHARES_PEAK && threadIdx.x < KEY_WARPS * BLOCK_ROWS) {
        const float *part = parts + threadIdx.x % BLOCK_ROWS * (V_WIDTH + 2) + V_WIDTH;
        float highest = -infinity(), all = 0.0f;
#pragma unroll
        for (int s = 0; s < KEY_WARPS; s++) {
            highest = fmaxf(highest, part[s * BLOCK_ROWS * (V_WIDTH + 2)]);
        }
#pragma unroll
        for (int s = 0; s < KEY_WARPS; s++) {
            const float *of = part + s * BLOCK_ROWS * (V_WIDTH + 2);
            all += of[1] * weigh(of[0], highest);
        }
        const float *of = part + threadIdx.x / BLOCK_ROWS * BLOCK_ROWS * (V_WIDTH + 2);
        factors[threadIdx.x] = weigh(of[0], highest) * share_of(all);
    }
    if (!SHARES_PEAK) {
        __syncthreads();
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < BLOCK_ROWS * V_WIDTH / PAIR; i += THREADS) {
        const int line = i * PAIR / V_WIDTH, column = i * PAIR % V_WIDTH;
        const int to = first_row + line;
        float sum[PAIR] = {}, all = 0.0f;
#pragma unroll
        for (int s = 0; s < KEY_WARPS; s++) {
            const float *part = parts + (s * BLOCK_ROWS + line) * (V_WIDTH + 2);
            const float factor = SHARES_PEAK ? 1.0f : factors[s * BLOCK_ROWS + line];
            all += part[V_WIDTH + 1];
#pragma unroll
            for (int c = 0; c < PAIR; c++) {
                sum[c] += part[column + c] * factor;
            }
        }
#pragma unroll
        for (int c = 0; c < PAIR && SHARES_PEAK; c++) {
            sum[c] *= share_of(all);
        }
        if (FULL_ROWS || to < rows) {
            write_y(a.y + find_row(a.at_y, a.m, batch, head, to) + column, sum[0], sum[PAIR - 1]);
        }
    }
}
