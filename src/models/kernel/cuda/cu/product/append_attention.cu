// append_attention.cu - rondo.AppendAttention: one token attends to a cache while that is copied and the token's
// own key and value go behind it.
//
// A cluster of PARTS blocks has the keys of one head of the cache, which GROUP heads of the queries share; SPLIT
// clusters share a head, each for queries of its own, and the first of them copies. LANES
// neighbouring threads read a key and its value at once, so each keeps a softmax of the keys that it has seen:
// peak, sum, and sums of weighted values. They are joined in the warp, in the block, and by the first block of the
// cluster; the order of additions is fixed.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

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
#ifndef AT_ONCE
#define AT_ONCE 4  // keys of a thread that are on the way
#endif

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    LANES = HEAD / WIDTH,
    LINES = 32 / LANES,
    STEP = WARPS * LINES,
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

// What a part of the keys gives, by heads of the queries.
struct share {
    float marks[GROUP][2];  // peak and sum
    float values[GROUP * HEAD];
};

struct block_memory {
    piece fresh[2][LANES];  // the token's key, rotated, and value
    float queries[GROUP * HEAD];
    share of_parts[PARTS];  // in the first block of the cluster
    share of_warps[WARPS];
};

#if PARTS > 1
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
#endif

// Puts two numbers where the first block of the cluster finds them.
__device__ __forceinline__ void send(float *own, float a, float b) {
#if PARTS > 1
    const u32 address = (u32)__cvta_generic_to_shared(own);
    u32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(0));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(remote), "f"(a), "f"(b) : "memory");
#else
    own[0] = a;
    own[1] = b;
#endif
}

__device__ __forceinline__ float rotated(const append_arguments &a, const T *from, int d) {
    const float other = convert<float>(from[d < HEAD / 2 ? d + HEAD / 2 : d - HEAD / 2]);
    return convert<float>(from[d]) * convert<float>(a.cosines[d]) +
           (d < HEAD / 2 ? -other : other) * convert<float>(a.sines[d]);
}

// exp(peak - highest); 1 where both are equal, also where both are -inf.
__device__ __forceinline__ float get_factor(float peak, float highest) {
    return peak == highest ? 1.0f : expf(peak - highest);
}

// Joins `count` shares for the pair of columns `i`, all of them of one head.
__device__ __forceinline__ void join(const share *shares, int count, int i, float (&out)[2],
                                     float &peak, float &sum) {
    const int h = i / HEAD;
    peak = shares[0].marks[h][0];
    for (int s = 1; s < count; s++) {
        peak = fmaxf(peak, shares[s].marks[h][0]);
    }
    out[0] = out[1] = sum = 0.0f;
    for (int s = 0; s < count; s++) {
        const float factor = get_factor(shares[s].marks[h][0], peak);
        sum += shares[s].marks[h][1] * factor;
        out[0] += shares[s].values[i] * factor;
        out[1] += shares[s].values[i + 1] * factor;
    }
}

struct running {
    float peak[GROUP], sum[GROUP], value[GROUP][WIDTH];
};

__device__ __forceinline__ void add_key(const float (&query)[GROUP][WIDTH], const piece &k, const piece &v,
                                        bool is_there, running &r) {
#pragma unroll
    for (int h = 0; h < GROUP; h++) {
        float score = 0.0f;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            score += query[h][i] * convert<float>(k.value[i]);
        }
#pragma unroll
        for (int step = LANES / 2; step > 0; step >>= 1) {
            score += __shfl_xor_sync(0xffffffffu, score, step);
        }
        if (is_there) {
            const float peak = fmaxf(r.peak[h], score);
            const float factor = get_factor(r.peak[h], peak), weight = expf(score - peak);
            r.peak[h] = peak;
            r.sum[h] = r.sum[h] * factor + weight;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                r.value[h][i] = r.value[h][i] * factor + weight * convert<float>(v.value[i]);
            }
        }
    }
}

// Joins what the lines of a warp have.
__device__ __forceinline__ void join_lines(running &r) {
#pragma unroll
    for (int h = 0; h < GROUP; h++) {
#pragma unroll
        for (int step = LANES; step < 32; step <<= 1) {
            const float other = __shfl_xor_sync(0xffffffffu, r.peak[h], step);
            const float peak = fmaxf(r.peak[h], other);
            const float factor = get_factor(r.peak[h], peak), of_other = get_factor(other, peak);
            const float sum = __shfl_xor_sync(0xffffffffu, r.sum[h], step);
            r.peak[h] = peak;
            r.sum[h] = r.sum[h] * factor + sum * of_other;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                const float value = __shfl_xor_sync(0xffffffffu, r.value[h][i], step);
                r.value[h][i] = r.value[h][i] * factor + value * of_other;
            }
        }
    }
}

// The past comes as far as the second-level cache while the kernel before still runs.
__device__ __forceinline__ void ask_early(const T *from, i64 count) {
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
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, place = lane % LANES;
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
    await_predecessors();
    const T *row = a.row + batch * a.kv_heads * (GROUP * SPLIT + 2) * HEAD;
    for (int i = threadIdx.x; i < GROUP * HEAD; i += THREADS) {
        m.queries[i] = rotated(a, row + ((i64)blockIdx.y * GROUP + i / HEAD) * HEAD, i % HEAD) * (float)a.scale;
    }
    for (int i = threadIdx.x; i < 2 * HEAD; i += THREADS) {
        const T *from = row + (a.kv_heads * (GROUP * SPLIT + i / HEAD) + head) * HEAD;
        ((T *)m.fresh[i / HEAD])[i % HEAD] =
            i < HEAD ? convert<T>(rotated(a, from, i)) : from[i - HEAD];
    }
    __syncthreads();
    float query[GROUP][WIDTH];
    running r;
#pragma unroll
    for (int h = 0; h < GROUP; h++) {
        r.peak[h] = -infinity();
        r.sum[h] = 0.0f;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            query[h][i] = m.queries[h * HEAD + place * WIDTH + i];
            r.value[h][i] = 0.0f;
        }
    }
    for (i64 first = begin + warp * LINES + lane / LANES; first - lane / LANES < end; first += AT_ONCE * STEP) {
        piece k[AT_ONCE], v[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const i64 key = first + u * STEP, at = key * HEAD + place * WIDTH;
            k[u] = key < end_of_past ? *(const piece *)(past_k + at) : m.fresh[0][place];
            v[u] = key < end_of_past ? *(const piece *)(past_v + at) : m.fresh[1][place];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const i64 key = first + u * STEP, at = (line * count + key) * HEAD + place * WIDTH;
            if (copies && key < end && a.present_k != 0) {  // 0: that cache is not read
                *(piece *)(a.present_k + at) = k[u];
            }
            if (copies && key < end && a.present_v != 0) {
                *(piece *)(a.present_v + at) = v[u];
            }
            add_key(query, k[u], v[u], key < end, r);
        }
    }
    join_lines(r);
#pragma unroll
    for (int h = 0; h < GROUP; h++) {
        if (lane == 0) {
            m.of_warps[warp].marks[h][0] = r.peak[h];
            m.of_warps[warp].marks[h][1] = r.sum[h];
        }
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            if (lane < LANES) {
                m.of_warps[warp].values[h * HEAD + place * WIDTH + i] = r.value[h][i];
            }
        }
    }
    __syncthreads();
#if PARTS > 1
    cluster_meet();  // the first block is there
#endif
    for (int i = threadIdx.x * 2; i < GROUP * HEAD; i += 2 * THREADS) {
        float two[2], peak, sum;
        join(m.of_warps, WARPS, i, two, peak, sum);
        send(m.of_parts[blockIdx.x].values + i, two[0], two[1]);
        if (i % HEAD == 0) {
            send(m.of_parts[blockIdx.x].marks[i / HEAD], peak, sum);
        }
    }
#if PARTS > 1
    cluster_meet();
#else
    __syncthreads();
#endif
    for (int i = threadIdx.x * 2; blockIdx.x == 0 && i < GROUP * HEAD; i += 2 * THREADS) {
        float two[2], peak, sum;
        join(m.of_parts, PARTS, i, two, peak, sum);
        T *y = a.y + group * GROUP * HEAD + i;
        y[0] = convert<T>(two[0] / sum);
        y[1] = convert<T>(two[1] / sum);
    }
}
