// rondo_attention.cuh - what the kernels of attention are told, and which keys a row sees. T and V_WIDTH
// are defined before. See op/attention/attention_form.h for the words.
//
// Heads of q that share one of k and v are folded into rows: row `r` of a block's head is row r % m of head
// r / m of the group. So keys are read once for all of them, and one row of q fills a tile.
// SPDX-License-Identifier: Apache-2.0

#ifndef GROUP
#define GROUP 1  // heads of q for each of k and v
#endif
#ifndef HAS_SIGHT
#define HAS_SIGHT 0  // rows see some keys only
#endif
#ifndef LENGTHS
#define LENGTHS 0  // how many keys there are is data: 1 counts of i64, 2 last places of i32
#endif
#ifndef HAS_SOFTCAP
#define HAS_SOFTCAP 0
#endif
#ifndef HAS_SINK
#define HAS_SINK 0  // 1: a score of each head that has no value; 2: the same, 0 for all
#endif
#ifndef ZEROES_EMPTY
#define ZEROES_EMPTY 0  // who sees nothing gets zeros, not NaN
#endif
#ifndef UNIT_ROWS
#define UNIT_ROWS 0  // rows of q and k are divided by their lengths
#endif
#ifndef RONDO_MASK
#define RONDO_MASK T
#endif
typedef RONDO_MASK mask_type;

struct strides {
    i64 batch, head, row, column;
};

struct sight_arguments {
    const void *lengths;  // NULL while ways are timed: all keys
    const i32 *total;  // LENGTHS 2: where it is `fresh`, nothing stands before; NULL: unknown
    i64 fresh, past, keys;
    i64 columns;  // of the mask: keys from there on are not seen
    i64 is_causal, left, right;  // -1: all
    faults told;
};

struct attention_arguments {
    const T *q;
    const T *k;
    const T *v;
    const mask_type *mask;  // may be NULL
    T *y;
    float *parts;  // [batch, heads, m, part_count, V_WIDTH + 2]: sums, their peak, their total
    i64 batch, heads, m, n;  // heads of k and v; m rows of each head of q
    strides at_q, at_k, at_v, at_mask, at_y;
    i64 part_count;
    double scale, softcap;
    const T *sinks;
    const T *factors;  // of the scores of each head; NULL: none
    sight_arguments sight;
};

__device__ __forceinline__ i64 find(const strides &s, i64 batch, i64 head, i64 row) {
    return batch * s.batch + head * s.head + row * s.row;
}

// The same for a row of all heads of a group.
__device__ __forceinline__ i64 find_row(const strides &s, i64 m, i64 batch, i64 head, i64 row) {
    return GROUP == 1 ? find(s, batch, head, row)
                      : find(s, batch, head * GROUP + (i64)((u32)row / (u32)m),
                             (i64)((u32)row % (u32)m));
}

// exp(x - peak), where no peak (all before was -inf) takes nothing away.
__device__ __forceinline__ float weight_of(float x, float peak) {
    return expf(x - (peak == -infinity() ? 0.0f : peak));
}

// What scores of a head are multiplied by.
__device__ __forceinline__ float get_scale(const attention_arguments &a, i64 head) {
    const float scale = (float)a.scale;
    return UNIT_ROWS && a.factors != 0 ? scale * convert<float>(a.factors[head]) : scale;
}

// One by the length of a row, whose squares add up to this; 0 for a row of zeros.
__device__ __forceinline__ float inverse_length(float squares) {
    return squares == 0.0f ? 0.0f : 1.0f / sqrtf(squares);
}

// Of one batch: rows of the past that count, where row 0 of q stands, and how many keys there are.
struct extents {
    i64 past, place, keys;
};

__device__ __forceinline__ i64 clamp_length(i64 x, i64 end, const faults &told) {
    if (x < 0 || x > end) {
        told.tell();
    }
    return x < 0 ? 0 : x < end ? x : end;
}

__device__ __forceinline__ extents get_extents(const sight_arguments &s, i64 m, i64 batch) {
    extents e = {s.past, s.past, s.keys};
    if (LENGTHS == 1 && s.lengths != 0) {
        e.keys = clamp_length(((const i64 *)s.lengths)[batch], s.keys, s.told);
        e.past = 0;
        e.place = e.keys - m;
    } else if (LENGTHS == 2 && s.lengths != 0) {
        const i64 keys = (i64)((const i32 *)s.lengths)[batch] + 1;
        const i64 total = s.total != 0 ? (i64)*s.total : s.past + s.fresh;
        const bool is_first = total == s.fresh;
        if (keys < 1 || total < s.fresh || (!is_first && keys < s.fresh)) {
            s.told.tell();
        }
        e.past = is_first || keys < s.fresh ? 0 : keys - s.fresh;
        e.past = e.past < s.past ? e.past : s.past;
        e.place = e.past;
        e.keys = clamp_length(keys, s.keys, s.told);
    }
    return e;
}

// The keys that a row of q sees: from begin to before end.
struct sight {
    i64 begin, end;
};

__device__ __forceinline__ sight get_sight(const sight_arguments &s, const extents &e, i64 row) {
    const i64 place = e.place + row;
    sight seen = {0, e.keys};
    if (s.is_causal != 0 && seen.end > place + 1) {
        seen.end = place + 1;
    }
    if (s.right >= 0 && seen.end > place + 1 + s.right) {
        seen.end = place + 1 + s.right;
    }
    if (s.left >= 0 && place - s.left > 0) {
        seen.begin = place - s.left;
    }
    seen.end = seen.end < s.columns ? seen.end : s.columns;
    seen.end = seen.end < 0 ? 0 : seen.end;
    seen.begin = seen.begin < seen.end ? seen.begin : seen.end;
    return seen;
}

__device__ __forceinline__ sight get_row_sight(const sight_arguments &s, const extents &e, i64 m,
                                               i64 row) {
    return get_sight(s, e, GROUP == 1 ? row : (i64)((u32)row % (u32)m));
}

// What rows from `row` to before `end` see, together: where they are of one head, the first sees what begins
// first, and the last what ends last.
__device__ __forceinline__ sight get_block_sight(const sight_arguments &s, const extents &e, i64 m,
                                                 i64 row, i64 end) {
    const bool is_one = GROUP == 1 || (u32)row / (u32)m == (u32)(end - 1) / (u32)m;
    const sight first = get_row_sight(s, e, m, is_one ? row : 0);
    const sight last = get_row_sight(s, e, m, is_one ? end - 1 : m - 1);
    sight all;
    all.end = last.end > first.end ? last.end : first.end;
    all.begin = first.begin < all.end ? first.begin : all.end;
    return all;
}

// What a mask adds; -inf where it says that the key is not seen.
__device__ __forceinline__ float read_mask(T x) {
    return convert<float>(x);
}
__device__ __forceinline__ float read_mask(b8 x) {
    return x.value != 0 ? 0.0f : -infinity();
}

// A score with what the mask adds. What it takes away wholly is gone, even if the score is NaN; the pattern of
// small ops that becomes rondo.Attention adds.
__device__ __forceinline__ float add_mask(float score, float added) {
    return ZEROES_EMPTY && added == -infinity() ? added : score + added;
}

__device__ __forceinline__ float cap_score(float x, double softcap) {
    return HAS_SOFTCAP ? (float)softcap * tanhf(x / (float)softcap) : x;
}

__device__ __forceinline__ float get_sink(const attention_arguments &a, i64 head, i64 row) {
    return HAS_SINK == 1
               ? convert<float>(a.sinks[head * GROUP + (GROUP == 1 ? 0 : (u32)row / (u32)a.m)])
               : 0.0f;
}
