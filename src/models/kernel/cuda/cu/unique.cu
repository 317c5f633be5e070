// unique.cu - groups of equal elements, or of equal slices along an axis, for Unique. A slice is a
// column of `keys` [columns, extent] (rondo_keys.cuh); elements are slices of one key. Sorted by their
// keys, equal ones stand together, the first of each group in the order of the input: its head.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_ranks.cuh"

// A slice's place is the number of those that go before it: quadratic, but two slices mostly differ
// in their first key. One block a slice.
struct order_arguments {
    i64 extent;
    const u64 *keys;
    u32 *order;
    i64 columns;
};
extern "C" __global__ void __launch_bounds__(256) unique_order(const order_arguments a) {
    take_turn();
    __shared__ u32 scratch[8];
    for (i64 n = blockIdx.x; n < a.extent; n += gridDim.x) {
        u32 before = 0, total;
        for (i64 m = threadIdx.x; m < a.extent; m += 256) {
            i64 c = 0;
            u64 mine = a.keys[n], other = a.keys[m];
            while (mine == other && ++c < a.columns) {
                mine = a.keys[c * a.extent + n];
                other = a.keys[c * a.extent + m];
            }
            before += other < mine || (other == mine && m < n) ? 1 : 0;
        }
        rank_in_block(before, scratch, &total);
        if (threadIdx.x == 0) {
            a.order[total] = (u32)n;
        }
    }
}

struct heads_arguments {
    i64 extent;
    const u64 *keys;
    const u32 *order;  // of the slices; NULL: the keys are sorted themselves
    u8 *heads;
    i64 columns;
};
extern "C" __global__ void __launch_bounds__(256) unique_heads(const heads_arguments a) {
    take_turn();
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.extent; i += (i64)gridDim.x * 256) {
        bool is_head = i == 0;
        const i64 own = a.order != 0 ? a.order[i] : i;
        const i64 before = is_head ? own : (a.order != 0 ? a.order[i - 1] : i - 1);
        for (i64 c = 0; c < a.columns && !is_head; c++) {
            is_head = a.keys[c * a.extent + own] != a.keys[c * a.extent + before];
        }
        a.heads[i] = is_head ? 1 : 0;
    }
}

// Heads in the order of the input.
struct marks_arguments {
    i64 extent;
    const u32 *order;
    const u8 *heads;
    u8 *marks;
};
extern "C" __global__ void __launch_bounds__(256) unique_marks(const marks_arguments a) {
    take_turn();
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.extent; i += (i64)gridDim.x * 256) {
        a.marks[a.order[i]] = a.heads[i];
    }
}

struct write_arguments {
    i64 extent;
    const u32 *order;
    const u32 *groups;  // of each sorted slice
    const u32 *begins;  // of each group
    const u32 *slots;   // by slice: where the group that it is the head of goes; NULL: as sorted
    const i64 *found;
    u32 *places;    // [found]: heads, in the order of the output
    i64 *firsts;    // the same; may be NULL
    i64 *inverses;  // [extent]; may be NULL
    i64 *counts;    // [found]; may be NULL
};
extern "C" __global__ void __launch_bounds__(256) unique_write(const write_arguments a) {
    take_turn();
    const i64 found = *a.found;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.extent; i += (i64)gridDim.x * 256) {
        const u32 group = a.groups[i], begin = a.begins[group], head = a.order[begin];
        const u32 to = a.slots != 0 ? a.slots[head] : group;
        if (a.inverses != 0) {
            a.inverses[a.order[i]] = to;
        }
        if (i != begin) {
            continue;
        }
        a.places[to] = head;
        if (a.firsts != 0) {
            a.firsts[to] = head;
        }
        if (a.counts != 0) {
            a.counts[to] = (group + 1 < found ? a.begins[group + 1] : a.extent) - begin;
        }
    }
}
