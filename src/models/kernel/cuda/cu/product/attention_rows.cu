// attention_rows.cu - what attention does before and beside its products: rows of q, k and v with their
// bias, normalised and turned, into the place where they are read; rows of the past beside them; masks of
// padding as numbers to add; and the scores as an output. See op/attention/attention_form.h.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_PIECE
#define RONDO_PIECE u32
#endif
typedef RONDO_PIECE piece;  // what rows of the past are copied by
#ifndef WIDTH
#define WIDTH 64
#endif
#ifndef INTERLEAVED
#define INTERLEAVED 0  // pairs that turn lie side by side
#endif
#ifndef PADDING
#define PADDING 0  // rondo__attention_padding
#endif
#ifndef KIND
#define KIND 0  // of scores: rondo__attention_scores
#endif

#include "rondo_attention.cuh"

enum { WARPS = 8 };

struct rows_arguments {
    const T *from;
    T *to;
    const T *bias;     // [heads, WIDTH], NULL: none
    const T *gain;     // [WIDTH], NULL: not normalised
    const T *cosines;  // [angle_rows, turned / 2], NULL: does not turn
    const T *sines;
    const i64 *places;  // NULL: counted
    i64 batch, heads, rows, m, to_rows;
    strides at_from, at_to;
    i64 turned, angle_rows;
    i64 has_one_place;  // `places` holds that of row 0
    i64 is_shifted;     // rows go behind those of the past
    double epsilon;
    sight_arguments sight;
    faults told;
};

__device__ __forceinline__ i64 get_place(const rows_arguments &a, const extents &e, i64 batch,
                                         i64 row) {
    i64 place = e.place + row;
    if (a.places != 0) {
        place = a.has_one_place ? a.places[0] + row : a.places[batch * a.rows + row];
    } else if (place >= e.keys) {
        return 0;  // behind a padded prompt; these rows are not read
    }
    if (place < 0 || place >= a.angle_rows) {
        a.told.tell();
        place = place < 0 ? 0 : a.angle_rows - 1;
    }
    return place;
}

// A warp a row.
extern "C" __global__ void __launch_bounds__(256) attention_rows(const rows_arguments a) {
    take_turn();
    __shared__ float memory[WARPS][WIDTH];
    const int lane = threadIdx.x & 31;
    float *row = memory[threadIdx.x >> 5];
    for (i64 line = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5);
         line < a.batch * a.heads * a.rows; line += (i64)gridDim.x * WARPS) {
        const i64 at = line % a.rows, head = line / a.rows % a.heads;
        const i64 batch = line / a.rows / a.heads;
        const extents e = get_extents(a.sight, a.m, batch);
        const i64 to_row = a.is_shifted ? e.past + at : at;
        const T *from = a.from + find(a.at_from, batch, head, at);
        float squares = 0.0f;
        if (to_row >= a.to_rows) {
            continue;
        }
        for (int i = lane; i < WIDTH; i += 32) {
            float x = convert<float>(from[i * a.at_from.column]);
            x += a.bias != 0 ? convert<float>(a.bias[head * WIDTH + i]) : 0.0f;
            squares += x * x;
            row[i] = x;
        }
        if (a.gain != 0) {
            const float mean = warp_sum(squares) / WIDTH;
            const float inverse = 1.0f / sqrtf(mean + (float)a.epsilon);
            for (int i = lane; i < WIDTH; i += 32) {
                row[i] *= inverse * convert<float>(a.gain[i]);
            }
        }
        __syncwarp();
        if (a.cosines != 0) {
            const int pairs = (int)a.turned / 2;
            const i64 angles = get_place(a, e, batch, at) * pairs;
            for (int i = lane; i < pairs; i += 32) {
                const int first = INTERLEAVED ? 2 * i : i, second = INTERLEAVED ? 2 * i + 1 : i + pairs;
                const float x = row[first], z = row[second];
                const float c = convert<float>(a.cosines[angles + i]);
                const float s = convert<float>(a.sines[angles + i]);
                row[first] = c * x - s * z;
                row[second] = s * x + c * z;
            }
            __syncwarp();
        }
        T *to = a.to + find(a.at_to, batch, head, to_row);
        for (int i = lane; i < WIDTH; i += 32) {
            to[i] = convert<T>(row[i]);
        }
        __syncwarp();
    }
}

struct past_arguments {
    const piece *from;
    piece *to;
    i64 batch, heads, rows, to_rows, m;
    i64 width;  // pieces of a row
    strides at_from, at_to;  // in pieces
    sight_arguments sight;
};

// Rows of the past but for those that fresh ones replace, and zeros behind both; nothing where both are one
// buffer.
extern "C" __global__ void __launch_bounds__(256) attention_past(const past_arguments a) {
    take_turn();
    if ((const void *)a.from == (const void *)a.to) {
        return;
    }
    const i64 count = a.batch * a.heads * a.to_rows * a.width;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += (i64)gridDim.x * 256) {
        const i64 line = i / a.width, row = line % a.to_rows, head = line / a.to_rows % a.heads;
        const i64 batch = line / a.to_rows / a.heads;
        const extents e = get_extents(a.sight, a.m, batch);
        if (row < e.past || row >= e.past + a.sight.fresh) {
            a.to[find(a.at_to, batch, head, row) + i % a.width] =
                row < a.rows ? a.from[find(a.at_from, batch, head, row) + i % a.width] : piece();
        }
    }
}

struct padding_arguments {
    const i32 *padding;
    const T *added;  // may be NULL
    T *y;            // [batch, heads, rows, columns]: what both add to the scores
    i64 batch, heads, rows, columns;
    strides at_added;
    double filter;
};

__device__ __forceinline__ bool is_padding(const padding_arguments &a, i64 batch, i64 row, i64 key) {
    return PADDING == 1   ? key >= a.padding[batch]
           : PADDING == 2 ? key >= a.padding[batch] || key < a.padding[a.batch + batch]
           : PADDING == 3 ? a.padding[batch * a.columns + key] == 0
                          : a.padding[(batch * a.rows + row) * a.columns + key] == 0;
}

extern "C" __global__ void __launch_bounds__(256) attention_padding(const padding_arguments a) {
    take_turn();
    const i64 count = a.batch * a.heads * a.rows * a.columns;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += (i64)gridDim.x * 256) {
        const i64 key = i % a.columns, row = i / a.columns % a.rows;
        const i64 head = i / a.columns / a.rows % a.heads, batch = i / a.columns / a.rows / a.heads;
        float x = is_padding(a, batch, row, key) ? (float)a.filter : 0.0f;
        if (a.added != 0) {
            x += convert<float>(
                a.added[find(a.at_added, batch, head, row) + key * a.at_added.column]);
        }
        a.y[i] = convert<T>(x);
    }
}

struct scores_arguments {
    const T *q;
    const T *k;
    const mask_type *mask;  // may be NULL
    T *y;                   // [batch, heads of q, m, n]
    i64 batch, heads, m, n;
    strides at_q, at_k, at_mask;
    double scale, softcap, unseen;
    const T *sinks;
    sight_arguments sight;
};

__device__ float get_score(const scores_arguments &a, const T *q, const T *k,
                           const mask_type *mask, i64 key) {
    const T *of_k = k + key * a.at_k.row;
    float score = 0.0f;
    for (int i = 0; i < WIDTH; i++) {
        score += convert<float>(q[i * a.at_q.column]) * convert<float>(of_k[i * a.at_k.column]);
    }
    score *= (float)a.scale;
    if (KIND > 0) {
        score = cap_score(score, a.softcap);
    }
    return KIND > 1 && mask != 0 ? add_mask(score, read_mask(mask[key * a.at_mask.column])) : score;
}

// A block a row.
extern "C" __global__ void __launch_bounds__(256) attention_scores(const scores_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 line = blockIdx.x; line < a.batch * a.heads * a.m; line += gridDim.x) {
        const i64 row = line % a.m, head = line / a.m % a.heads, batch = line / a.m / a.heads;
        const T *q = a.q + find(a.at_q, batch, head, row);
        const T *k = a.k + find(a.at_k, batch, head / GROUP, 0);
        const mask_type *mask = a.mask != 0 ? a.mask + find(a.at_mask, batch, head, row) : 0;
        const sight seen = get_sight(a.sight, get_extents(a.sight, a.m, batch), row);
        const float sink = HAS_SINK == 1 ? convert<float>(a.sinks[head]) : 0.0f;
        float peak = HAS_SINK != 0 ? sink : -infinity(), total = 0.0f;
        if (KIND == 3) {
            for (i64 j = seen.begin + threadIdx.x; j < seen.end; j += 256) {
                peak = fmaxf(peak, get_score(a, q, k, mask, j));
            }
            peak = block_max(peak, scratch);
            for (i64 j = seen.begin + threadIdx.x; j < seen.end; j += 256) {
                total += weight_of(get_score(a, q, k, mask, j), peak);
            }
            total = block_sum(total, scratch) + (HAS_SINK != 0 ? weight_of(sink, peak) : 0.0f);
            total = ZEROES_EMPTY && total == 0.0f ? 1.0f : total;
        }
        for (i64 j = threadIdx.x; j < a.n; j += 256) {
            const bool is_seen = j >= seen.begin && j < seen.end;
            float x = is_seen || KIND < 2 ? get_score(a, q, k, mask, j) : (float)a.unseen;
            if (KIND == 3) {
                x = is_seen ? weight_of(x, peak) / total : 0.0f;
            }
            a.y[line * a.n + j] = convert<T>(x);
        }
    }
}
