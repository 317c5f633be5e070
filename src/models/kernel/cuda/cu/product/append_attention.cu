// append_attention.cu - rondo.AppendAttention: one token attends to a cache while that is copied and
// the token's own key and value go behind it.
//
// A cluster of PARTS blocks has the keys of one head of the cache, which GROUP heads of the queries
// share; SPLIT clusters share a head, each for queries of its own, and the first of them copies. A
// block has TILE keys and values at once in shared memory, and the next ones on the way. OF_KEY
// neighbouring threads make the scores of a key; then each thread has two columns of a head of the
// queries, for some of the keys. The first block of the cluster joins what the others send; the
// order of additions is fixed.
//
// A block fetches its instructions once, at some 0.1 us a KiB: what can be a loop is one.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_cluster.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef WIDTH
#define WIDTH 4  // numbers in 16 bytes
#endif
#ifndef HEAD
#define HEAD 64  // columns
#endif
#ifndef GROUP
#define GROUP 1
#endif
#ifndef PARTS
#define PARTS 1
#endif
#ifndef SPLIT
#define SPLIT 1
#endif
#ifndef STAGES
#define STAGES 1  // 2: a block has more than a tile
#endif

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    LANES = HEAD / WIDTH,  // pieces of a key
    OF_KEY = LANES < 32 ? 4 : 8,  // threads
    TILE = THREADS / OF_KEY,
    PITCH = LANES % 8 == 0 ? LANES + 4 : LANES,  // pieces from key to key: eight lanes meet no bank twice
    PAIRS = GROUP * HEAD / 2,
    SLICES = THREADS / PAIRS,  // of a tile's keys
};
typedef pack<T, WIDTH> piece;

struct append_arguments {
    const T *row;
    const T *past_k;
    const T *past_v;
    const T *cosines;
    const T *sines;
    T *y;
    T *present_k;
    T *present_v;
    i64 past, kv_heads;
    double scale;
};

// What some of the keys give, by heads of the queries. Peaks are those of powers of two.
struct share {
    float marks[GROUP][2];  // peak and sum
    float values[GROUP * HEAD];
};

struct block_memory {
    piece k[STAGES][TILE * PITCH], v[STAGES][TILE * PITCH];
    float queries[GROUP * HEAD];
    float peaks[WARPS][GROUP];
    float weights[GROUP][TILE];
    share of_slices[SLICES];
    share of_parts[PARTS];  // in the first block of the cluster
};

// Puts two numbers where the first block of the cluster finds them.
__device__ __forceinline__ void send(float *own, float a, float b) {
#if PARTS > 1
    store_remote(address_in_block(shared_address(own), 0), a, b);
#else
    own[0] = a;
    own[1] = b;
#endif
}

__device__ __forceinline__ void copy_piece(piece *to, const T *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(16)
                 : "memory");
#else
    *to = *(const piece *)from;
#endif
}

__device__ __forceinline__ float rotated(const append_arguments &a, const T *from, int d) {
    const float other = convert<float>(from[d < HEAD / 2 ? d + HEAD / 2 : d - HEAD / 2]);
    return convert<float>(from[d]) * convert<float>(a.cosines[d]) +
           (d < HEAD / 2 ? -other : other) * convert<float>(a.sines[d]);
}

// 2^(peak - highest); 1 where both are equal, also where both are -inf.
__device__ __forceinline__ float get_factor(float peak, float highest) {
    return peak == highest ? 1.0f : power_of_two(peak - highest);
}

// Keys and values of the past from `first` on, up to `end`.
__device__ __forceinline__ void copy_tile(piece *k, piece *v, const T *past_k, const T *past_v, i64 first, i64 end) {
#pragma unroll 1
    for (int i = threadIdx.x; i < TILE * LANES; i += THREADS) {
        const i64 key = first + i / LANES;
        const int to = i / LANES * PITCH + i % LANES;
        if (key < end) {
            copy_piece(k + to, past_k + key * HEAD + i % LANES * WIDTH);
            copy_piece(v + to, past_v + key * HEAD + i % LANES * WIDTH);
        }
    }
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// The past comes as far as the second-level cache while the kernel before still runs.
__device__ __forceinline__ void ask_early(const T *from, i64 count) {
#pragma unroll 1
    for (i64 at = (i64)threadIdx.x * 128; at < count * (i64)sizeof(T); at += THREADS * 128) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)from + at));
    }
}

// The grid is (PARTS, heads of the cache times SPLIT, batches).
extern "C" __global__ void
#if PARTS > 1
__cluster_dims__(PARTS, 1, 1)
#endif
__launch_bounds__(THREADS) append_attention(const append_arguments a) {
    extern __shared__ __align__(16) u8 memory[];
    block_memory &m = *(block_memory *)memory;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, place = threadIdx.x % OF_KEY;
    const i64 head = blockIdx.y / SPLIT, batch = blockIdx.z, line = batch * a.kv_heads + head;
    const i64 group = batch * a.kv_heads * SPLIT + blockIdx.y;
    const bool copies = blockIdx.y % SPLIT == 0;
    const i64 count = a.past + 1, part = (count + PARTS - 1) / PARTS, begin = blockIdx.x * part;
    const i64 end = begin + part < count ? begin + part : count;
    const i64 end_of_past = end < a.past ? end : a.past;
    const T *past_k = a.past_k + line * a.past * HEAD, *past_v = a.past_v + line * a.past * HEAD;
    release_successor();
    ask_early(past_k + begin * HEAD, (end_of_past - begin) * HEAD);
    ask_early(past_v + begin * HEAD, (end_of_past - begin) * HEAD);
#if PARTS > 1
    cluster_arrive();  // this block is there
#endif
    await_predecessors();
    const T *row = a.row + batch * a.kv_heads * (GROUP * SPLIT + 2) * HEAD;
    const int h = threadIdx.x % PAIRS * 2 / HEAD, column = threadIdx.x % PAIRS * 2 % HEAD, slice = threadIdx.x / PAIRS;
    float peak[GROUP], own_peak = -infinity(), sum = 0.0f, value[2] = {0.0f, 0.0f};
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        peak[g] = -infinity();
    }
    copy_tile(m.k[0], m.v[0], past_k, past_v, begin, end_of_past);
#pragma unroll 1
    for (int i = threadIdx.x; i < GROUP * HEAD; i += THREADS) {
        m.queries[i] = rotated(a, row + ((i64)blockIdx.y * GROUP + i / HEAD) * HEAD, i % HEAD) *
                       (float)(a.scale * 1.4426950408889634);  // so that exponentials are powers of two
    }
    int stage = 0;
#pragma unroll 1
    for (i64 first = begin; first < end; first += TILE) {
        const int keys = end - first < TILE ? (int)(end - first) : TILE;
        const piece *all_k = m.k[stage], *all_v = m.v[stage];
        if (first + keys == count && threadIdx.x >= THREADS / 2) {  // others than those of few queries
#pragma unroll 1
            for (int i = threadIdx.x - THREADS / 2; i < 2 * HEAD; i += THREADS / 2) {
                const T *from = row + (a.kv_heads * (GROUP * SPLIT + i / HEAD) + head) * HEAD;
                T *to = (T *)((i < HEAD ? m.k[stage] : m.v[stage]) + (keys - 1) * PITCH);
                to[i % HEAD] = i < HEAD ? convert<T>(rotated(a, from, i)) : from[i - HEAD];
            }
        }
        if (STAGES > 1) {
            copy_tile(m.k[stage ^ 1], m.v[stage ^ 1], past_k, past_v, first + TILE, end_of_past);
        }
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
#endif
        __syncthreads();
        // scores
        const int key = threadIdx.x / OF_KEY;
        float score[GROUP] = {};
#pragma unroll 1
        for (int i = place; i < LANES; i += OF_KEY) {
            const piece k = all_k[key * PITCH + i];
#pragma unroll
            for (int j = 0; j < WIDTH; j++) {
                const float x = convert<float>(k.value[j]);
#pragma unroll
                for (int g = 0; g < GROUP; g++) {
                    score[g] += m.queries[g * HEAD + i * WIDTH + j] * x;
                }
            }
        }
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
#pragma unroll
            for (int step = 1; step < OF_KEY; step <<= 1) {
                score[g] += __shfl_xor_sync(0xffffffffu, score[g], step);
            }
            float highest = key < keys ? score[g] : -infinity();
#pragma unroll
            for (int step = OF_KEY; step < 32; step <<= 1) {
                highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, step));
            }
            if (lane == 0) {
                m.peaks[warp][g] = highest;
            }
        }
        // The caches' copies leave while others still count.
#pragma unroll 1
        for (int i = threadIdx.x; copies && i < keys * LANES; i += THREADS) {
            const i64 at = (line * count + first + i / LANES) * HEAD + i % LANES * WIDTH;
            const int from = i / LANES * PITCH + i % LANES;
            if (a.present_k != 0) {  // 0: that cache is not read
                *(piece *)(a.present_k + at) = all_k[from];
            }
            if (a.present_v != 0) {
                *(piece *)(a.present_v + at) = all_v[from];
            }
        }
        __syncthreads();
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
                peak[g] = fmaxf(peak[g], m.peaks[w][g]);
            }
            if (g % OF_KEY == place) {
                m.weights[g][key] = power_of_two(score[g] - peak[g]);
            }
        }
        float highest = peak[0];
#pragma unroll
        for (int g = 1; g < GROUP; g++) {
            highest = h == g ? peak[g] : highest;
        }
        const float factor = get_factor(own_peak, highest);
        own_peak = highest;
        sum *= factor;
        value[0] *= factor;
        value[1] *= factor;
        __syncthreads();
        // values
        if (slice < SLICES) {
#pragma unroll 4
            for (int i = slice; i < keys; i += SLICES) {
                const float weight = m.weights[h][i];
                const pack<T, 2> v = *(const pack<T, 2> *)((const T *)(all_v + i * PITCH) + column);
                sum += weight;
                value[0] += weight * convert<float>(v.value[0]);
                value[1] += weight * convert<float>(v.value[1]);
            }
        }
        __syncthreads();
        stage ^= STAGES - 1;
    }
    if (slice < SLICES) {
        share &s = m.of_slices[slice];
        s.values[h * HEAD + column] = value[0];
        s.values[h * HEAD + column + 1] = value[1];
        if (column == 0) {
            s.marks[h][0] = own_peak;
            s.marks[h][1] = sum;
        }
    }
    __syncthreads();
#if PARTS > 1
    cluster_wait();  // the first block is there
#endif
    if (slice == 0) {
        const int i = h * HEAD + column;
        sum = value[0] = value[1] = 0.0f;
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            sum += m.of_slices[s].marks[h][1];
            value[0] += m.of_slices[s].values[i];
            value[1] += m.of_slices[s].values[i + 1];
        }
        send(m.of_parts[blockIdx.x].values + i, value[0], value[1]);
        if (column == 0) {
            send(m.of_parts[blockIdx.x].marks[h], own_peak, sum);
        }
    }
#if PARTS > 1
    cluster_meet();
#else
    __syncthreads();
#endif
    if (blockIdx.x == 0 && slice == 0) {
        const int i = h * HEAD + column;
        float highest = m.of_parts[0].marks[h][0];
#pragma unroll
        for (int s = 1; s < PARTS; s++) {
            highest = fmaxf(highest, m.of_parts[s].marks[h][0]);
        }
        sum = value[0] = value[1] = 0.0f;
#pragma unroll
        for (int s = 0; s < PARTS; s++) {
            const float factor = get_factor(m.of_parts[s].marks[h][0], highest);
            sum += m.of_parts[s].marks[h][1] * factor;
            value[0] += m.of_parts[s].values[i] * factor;
            value[1] += m.of_parts[s].values[i + 1] * factor;
        }
        T *y = a.y + group * GROUP * HEAD + i;
        y[0] = convert<T>(value[0] / sum);
        y[1] = convert<T>(value[1] / sum);
    }
}
