// suppress.cu - NonMaxSuppression: of each batch and class the boxes that no better one covers.
//
// One block a class. It lists the boxes whose score is high enough as keys of score and number, which
// are all different, sorts them, and walks through them in chunks of CHUNK: a box goes when one kept
// earlier covers it (all threads look), or one kept of its own chunk, which a warp decides box by box
// with the bits of who covers whom. The few scores that mostly pass the threshold are sorted in shared
// memory; more than SORTED are sorted by pieces and merged.
//
// Overlaps are computed in float, as the reference rounds them: build with -fmad=false.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_boxes.cuh"
#include "rondo_keys.cuh"
#include "rondo_ranks.cuh"

#define THREADS 512
#define EACH 4  // scores of a thread in a turn
#define SORTED 2048
#define CHUNK 256
#define WORDS (CHUNK / 32)

struct suppress_arguments {
    i64 lines, classes, count;  // lines: of all batches
    const float *boxes;         // [batches, count, 4]
    const float *scores;        // [lines, count]
    const i64 *most;            // boxes to keep of each class; NULL: none
    const float *overlap;       // NULL: 0
    const float *score;         // NULL: all scores will do
    u64 *keys, *spare;          // [lines, count]; NULL where SORTED is enough
    u32 *kept;                  // [lines, limit]
    u32 *kept_counts;           // [lines]
    i64 limit, is_center;
};

// ---- candidates, the best first ---------------------------------------------------------------

// Lists the keys of a line: into `sorted` the first SORTED of them, into `keys` all of them, where
// there is such. Returns how many.
__device__ __forceinline__ u32 list_candidates(const suppress_arguments &a, const float *scores,
                                               u64 *keys, u64 *sorted, u32 *scratch) {
    const bool has_limit = a.score != 0;
    const float limit = has_limit ? *a.score : 0.0f;
    u32 listed = 0;
    for (i64 first = 0; first < a.count; first += THREADS * EACH) {
        u32 picked = 0, total;
        float own[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 i = first + k * THREADS + threadIdx.x;
            own[k] = i < a.count ? scores[i] : 0.0f;
            picked |= i < a.count && (!has_limit || own[k] > limit) ? 1u << k : 0u;
        }
        u32 at = listed + rank_in_block(__popc(picked), scratch, &total);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if ((picked >> k & 1u) != 0) {
                const u64 rank = ~(u32)key_of(own[k]);
                const u64 key = rank << 32 | (u32)(first + k * THREADS + threadIdx.x);
                if (at < SORTED) {
                    sorted[at] = key;
                }
                if (keys != 0) {
                    keys[at] = key;
                }
                at++;
            }
        }
        listed += total;
    }
    __syncthreads();
    return listed;
}

// A bitonic network over `count` keys in shared memory, with room for the next power of two.
__device__ __forceinline__ void sort_shared(u64 *key, u32 count) {
    u32 size = 32;
    while (size < count) {
        size *= 2;
    }
    for (u32 i = count + threadIdx.x; i < size; i += THREADS) {
        key[i] = ~(u64)0;
    }
    __syncthreads();
    for (u32 run = 2; run <= size; run *= 2) {
        for (u32 step = run / 2; step > 0; step /= 2) {
            for (u32 pair = threadIdx.x; pair < size / 2; pair += THREADS) {
                const u32 i = pair / step * 2 * step + pair % step, j = i + step;
                const u64 ki = key[i], kj = key[j];
                if ((ki > kj) == ((i & run) == 0)) {
                    key[i] = kj;
                    key[j] = ki;
                }
            }
            __syncthreads();
        }
    }
}

// The other way: pieces of SORTED, then pairs of runs are merged. Returns where the keys are then.
__device__ __forceinline__ const u64 *sort_long(u64 *keys, u64 *spare, u64 *piece, u32 count) {
    for (u32 first = 0; first < count; first += SORTED) {
        const u32 size = count - first < SORTED ? count - first : SORTED;
        for (u32 i = threadIdx.x; i < size; i += THREADS) {
            piece[i] = keys[first + i];
        }
        __syncthreads();
        sort_shared(piece, size);
        for (u32 i = threadIdx.x; i < size; i += THREADS) {
            keys[first + i] = piece[i];
        }
        __syncthreads();
    }
    u64 *from = keys, *to = spare;
    for (u64 span = SORTED; span < count; span *= 2) {
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            const u64 key = from[i], run = i / span, other = (run ^ 1) * span;
            const u64 rest = other < count ? count - other : 0;
            u64 low = 0, high = rest < span ? rest : span;  // of the other run, those before it
            while (low < high) {
                const u64 middle = (low + high) / 2;
                if (from[other + middle] < key) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            to[run / 2 * 2 * span + (i - run * span) + low] = key;
        }
        __syncthreads();
        u64 *const former = from;
        from = to;
        to = former;
    }
    return from;
}

// ---- the walk ---------------------------------------------------------------------------------

struct chunk {
    box boxes[CHUNK];
    u32 number[CHUNK];
    u32 covered[CHUNK][WORDS];  // by which earlier ones of the chunk
    u32 is_gone[CHUNK];
    u32 kept;
};

// Who is covered by what earlier chunks have kept, and by whom of its own.
__device__ __forceinline__ void look(chunk &c, u32 size, const float *boxes, const u32 *kept,
                                     u32 kept_count, bool is_center, float threshold) {
    for (u32 i = threadIdx.x % CHUNK, k = threadIdx.x / CHUNK; i < size && k < kept_count;
         k += THREADS / CHUNK) {
        if (covers(c.boxes[i], read_box(boxes + 4 * (i64)kept[k], is_center), threshold)) {
            c.is_gone[i] = 1;
            break;
        }
    }
    for (u32 n = threadIdx.x; n < size * WORDS; n += THREADS) {
        const u32 i = n / WORDS, first = n % WORDS * 32;
        u32 bits = 0;
        for (u32 j = first; j < first + 32 && j < i; j++) {
            bits |= covers(c.boxes[i], c.boxes[j], threshold) ? 1u << (j - first) : 0u;
        }
        c.covered[i][n % WORDS] = bits;
    }
}

// One warp; each lane has the bits of 32 boxes of the chunk that are kept.
__device__ __forceinline__ void decide(chunk &c, u32 size, u32 *kept, u32 kept_count, u32 most) {
    const u32 lane = threadIdx.x;
    u32 own = 0;
    for (u32 i = 0; i < size && kept_count < most; i++) {
        const u32 by = lane < WORDS ? c.covered[i][lane] & own : 0;
        if (__any_sync(0xffffffffu, by != 0 || c.is_gone[i] != 0)) {
            continue;
        }
        own |= lane == i / 32 ? 1u << (i % 32) : 0u;
        if (lane == 0) {
            kept[kept_count] = c.number[i];
        }
        kept_count++;
    }
    if (lane == 0) {
        c.kept = kept_count;
    }
}

__device__ __forceinline__ u32 walk(const suppress_arguments &a, chunk &c, const u64 *sorted,
                                    u32 count, const float *boxes, u32 *kept, u32 most) {
    const float threshold = a.overlap != 0 ? *a.overlap : 0.0f;
    u32 kept_count = 0;
    for (u32 first = 0; first < count && kept_count < most; first += CHUNK) {
        const u32 size = count - first < CHUNK ? count - first : CHUNK;
        for (u32 i = threadIdx.x; i < size; i += THREADS) {
            c.number[i] = (u32)sorted[first + i];
            c.boxes[i] = read_box(boxes + 4 * (i64)c.number[i], a.is_center != 0);
            c.is_gone[i] = 0;
        }
        __syncthreads();
        look(c, size, boxes, kept, kept_count, a.is_center != 0, threshold);
        __syncthreads();
        if (threadIdx.x < 32) {
            decide(c, size, kept, kept_count, most);
        }
        __syncthreads();
        kept_count = c.kept;
    }
    return kept_count;
}

extern "C" __global__ void __launch_bounds__(THREADS) suppress_class(const suppress_arguments a) {
    take_turn();
    __shared__ u64 piece[SORTED];
    __shared__ u32 scratch[THREADS / 32];
    __shared__ chunk c;
    const i64 wanted = a.most != 0 ? *a.most : 0;
    const u32 most = wanted < 0 ? 0 : (u32)(wanted < a.limit ? wanted : a.limit);
    for (i64 line = blockIdx.x; line < a.lines; line += gridDim.x) {
        u64 *keys = a.keys != 0 ? a.keys + line * a.count : 0;
        const u32 count =
            list_candidates(a, a.scores + line * a.count, keys, piece, scratch);
        const u64 *sorted = piece;
        if (count <= SORTED) {
            sort_shared(piece, count);
        } else {
            sorted = sort_long(keys, a.spare + line * a.count, piece, count);
        }
        const u32 kept = walk(a, c, sorted, count, a.boxes + line / a.classes * a.count * 4,
                              a.kept + line * a.limit, most);
        if (threadIdx.x == 0) {
            a.kept_counts[line] = kept;
        }
        __syncthreads();
    }
}

// Batch, class and number of each box that is kept, class by class.
struct write_arguments {
    i64 lines, classes;
    const u32 *kept;    // [lines, limit]
    const u32 *begins;  // [lines]
    const i64 *found;
    i64 *y;  // [found, 3]
    i64 limit;
};
extern "C" __global__ void __launch_bounds__(256) suppress_write(const write_arguments a) {
    take_turn();
    for (i64 line = blockIdx.x; line < a.lines; line += gridDim.x) {
        const i64 begin = a.begins[line];
        const i64 end = line + 1 < a.lines ? a.begins[line + 1] : *a.found;
        for (i64 n = begin + threadIdx.x; n < end; n += 256) {
            a.y[3 * n] = line / a.classes;
            a.y[3 * n + 1] = line % a.classes;
            a.y[3 * n + 2] = a.kept[line * a.limit + n - begin];
        }
    }
}
