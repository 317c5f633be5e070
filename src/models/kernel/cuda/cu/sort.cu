// sort.cu - lines of 64-bit keys in rising order, with the places that they had; equal keys keep their
// order. Runs of CHUNK are sorted in shared memory by a bitonic network, then pairs of runs are merged:
// an element's place is its own plus the number of elements of the other run that go before it. Of a
// run only the first `limit` elements are kept, so that short lists of large lines stay cheap.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef CHUNK
#define CHUNK 2048  // a power of two
#endif

struct sort_arguments {
    i64 lines, length;
    const u64 *keys;   // [lines, length]; merging, the runs before: [lines, runs, kept]
    const u32 *order;  // merging
    u64 *out_keys;     // [lines, runs, kept]
    u32 *out_order;
    i64 limit;
    i64 span;  // elements of a line that went into a run; merging, into one of the runs before
};

// How many elements run r of such a span has.
__device__ __forceinline__ i64 count_run(const sort_arguments &a, i64 r, i64 span) {
    const i64 rest = a.length - r * span;
    const i64 count = rest < span ? rest : span;
    return count < 0 ? 0 : (count < a.limit ? count : a.limit);
}

// One block a run.
extern "C" __global__ void __launch_bounds__(256) sort_chunks(const sort_arguments a) {
    take_turn();
    __shared__ u64 key[CHUNK];
    __shared__ u32 place[CHUNK];
    const i64 runs = (a.length + CHUNK - 1) / CHUNK, kept = a.limit < CHUNK ? a.limit : CHUNK;
    for (i64 run = blockIdx.x; run < a.lines * runs; run += gridDim.x) {
        const i64 first = run % runs * CHUNK, count = a.length - first;
        const u64 *keys = a.keys + run / runs * a.length + first;
        for (int i = threadIdx.x; i < CHUNK; i += 256) {
            key[i] = i < count ? keys[i] : ~(u64)0;
            place[i] = i < count ? (u32)(first + i) : ~(u32)0;
        }
        __syncthreads();
        for (int size = 2; size <= CHUNK; size *= 2) {
            for (int step = size / 2; step > 0; step /= 2) {
                for (int pair = threadIdx.x; pair < CHUNK / 2; pair += 256) {
                    const int i = pair / step * 2 * step + pair % step, j = i + step;
                    const bool rises = (i & size) == 0;
                    const u64 ki = key[i], kj = key[j];
                    const u32 pi = place[i], pj = place[j];
                    const bool is_after = ki > kj || (ki == kj && pi > pj);
                    if (is_after == rises) {
                        key[i] = kj;
                        key[j] = ki;
                        place[i] = pj;
                        place[j] = pi;
                    }
                }
                __syncthreads();
            }
        }
        for (int i = threadIdx.x; i < kept && i < count; i += 256) {
            a.out_keys[run * kept + i] = key[i];
            a.out_order[run * kept + i] = place[i];
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256) merge_runs(const sort_arguments a) {
    take_turn();
    const i64 kept = a.limit < a.span ? a.limit : a.span;
    const i64 out_kept = a.limit < 2 * a.span ? a.limit : 2 * a.span;
    const i64 runs = (a.length + a.span - 1) / a.span, out_runs = (runs + 1) / 2;
    const i64 total = a.lines * runs * kept;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < total; n += (i64)gridDim.x * 256) {
        const i64 at = n % kept, run = n / kept % runs, line = n / kept / runs;
        if (at >= count_run(a, run, a.span)) {
            continue;
        }
        const i64 sibling = run ^ 1;
        const i64 other = (line * runs + sibling) * kept;
        const u64 key = a.keys[n];
        const u32 place = a.order[n];
        // Elements of the sibling before this one.
        i64 low = 0, high = sibling < runs ? count_run(a, sibling, a.span) : 0;
        while (low < high) {
            const i64 middle = (low + high) / 2;
            const u64 theirs = a.keys[other + middle];
            if (theirs < key || (theirs == key && a.order[other + middle] < place)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (at + low < out_kept) {
            const i64 to = (line * out_runs + run / 2) * out_kept + at + low;
            a.out_keys[to] = key;
            a.out_order[to] = place;
        }
    }
}
