// rondo_group_norm.cuh - rondo.GroupNormalization with channels last: x is [images, pixels, channels].
//
// A slice is some channels, whole groups of them, and what one block looks at of a pixel. Each of
// its pieces is loaded at once:
//
//   slice    | piece 0: WIDTH channels | piece 1 | ... PIECES     a thread has one piece of every
//   units    | UNIT | UNIT | ...                                  ROWS-th pixel
//   groups   | GROUP channels = GROUP / UNIT units | ...
//
// A unit is the neighbours in a piece that are in one group for sure. Each thread finds mean and sum
// of squared deviations of its units, in two passes over what it holds; and these are joined by Chan's
// formula: over the rows of a block in shared memory, then over blocks.
//
//   mean = sum of n_i mean_i / n      square = sum of square_i + n_i (mean_i - mean)^2
//
// Sums are added in a fixed order. All of it is seen from a pivot, an element of the group: so a mean
// far from 0 costs no digits, and a group of equal numbers has no deviations at all.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_G
#define RONDO_G float  // gain and shift
#endif
typedef RONDO_G G;
#ifndef THREADS
#define THREADS 128
#endif
#ifndef WIDTH
#define WIDTH 4
#endif
#ifndef UNIT
#define UNIT 1
#endif
#ifndef GROUP
#define GROUP 1
#endif
#ifndef PIECES
#define PIECES 1
#endif
#ifndef PACKS
#define PACKS 4  // pieces that a thread holds at a time
#endif
#ifndef ACTIVATION
#define ACTIVATION 0
#endif

enum {
    ROWS = THREADS / PIECES,
    SLICE = PIECES * WIDTH,
    GROUPS = SLICE / GROUP,
    UNITS = WIDTH / UNIT,
    COLUMNS = PIECES * UNITS,
    PITCH = ROWS | 1,
    GROUP_COLUMNS = GROUP / UNIT,
};

struct image_arguments {
    const T *x;
    const G *gain, *shift;
    T *y;
    float2 *moments;  // of parts: [image, slice, group, part]
    i64 pixels, channels, slices;
    i64 parts, span;  // of the pixels, and how many there are in each but the last ones
    double epsilon, alpha, beta;
};

// Threads of a warp that join the moments of one group.
__device__ constexpr int choose_team() {
    int team = 32;
    while (team > 1 && team * GROUPS > THREADS) {
        team /= 2;
    }
    return team;
}
enum { TEAM = choose_team() };

__device__ __forceinline__ float team_sum(float x) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

// x * sigmoid(x) in 16 bits needs no more of exponential and quotient than one instruction each gives.
// Where the exponential is infinite, so is the divisor, and the quotient 0.
__device__ __forceinline__ float finish(float x, float alpha, float beta) {
    if (ACTIVATION == 7 && sizeof(T) == 2) {
        float power, share;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * -1.4426950408889634f));
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(1.0f + power));
        return x * share;
    }
    return activate<ACTIVATION>(x, alpha, beta);
}

// Mean (beside the pivot) and sum of squared deviations of a set that comes in `count` sets, by all
// lanes of a team; `part(i, n)` gives those of set i and its number of elements, `share` is 1 by the
// number of them all. Each lane of the team gets them. A lane keeps its first KEPT sets, and asks for
// the others twice.
template <int KEPT, typename Part>
__device__ __forceinline__ float2 join(int count, float share, const Part &part) {
    const int lane = threadIdx.x % TEAM;
    float2 kept[KEPT + 1];
    float kept_n[KEPT + 1], sum = 0.0f, square = 0.0f, n;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        kept[k] = make_float2(0.0f, kept_n[k] = 0.0f);
        if (lane + k * TEAM < count) {
            kept[k] = part(lane + k * TEAM, kept_n[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        sum += kept_n[k] * kept[k].x;
    }
    for (int i = lane + KEPT * TEAM; i < count; i += TEAM) {
        const float2 own = part(i, n);
        sum += n * own.x;
    }
    const float mean = team_sum(sum) * share;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        const float away = kept[k].x - mean;
        square += kept[k].y + kept_n[k] * away * away;
    }
    for (int i = lane + KEPT * TEAM; i < count; i += TEAM) {
        const float2 own = part(i, n);
        const float away = own.x - mean;
        square += own.y + n * away * away;
    }
    return make_float2(mean, team_sum(square));
}

// Mean and 1 / sqrt(variance + epsilon).
__device__ __forceinline__ float2 find_scale(float2 moments, float share, double epsilon) {
    return make_float2(moments.x, rsqrtf(moments.y * share + (float)epsilon));
}

// How many of a block's pixels are in a row: every ROWS-th from it on.
struct row_counts {
    int even, more;  // in each row; rows before this one have one more
    __device__ __forceinline__ int operator()(int row) const {
        return row < more ? even + 1 : even;
    }
};
__device__ __forceinline__ row_counts count_rows(int pixels) {
    const int even = pixels / ROWS;
    return {even, pixels - even * ROWS};
}
// Of part `i` of an image's pixels, which are fewer than 2^31.
__device__ __forceinline__ int count_part(const image_arguments &a, int i) {
    const u32 pixels = (u32)a.pixels, span = (u32)a.span, begin = (u32)i * span;
    const u32 left = begin < pixels ? pixels - begin : 0;
    return (int)(left < span ? left : span);
}

// What a block works on.
struct place {
    i64 task;               // image * slices + slice
    int part, pixels;       // of that part
    int piece, row, count;  // of this thread: pieces that it has, one of every ROWS-th pixel
    int channel;            // of the piece
    i64 start, first, step;  // in elements: the image, the thread's first piece, one to the next
};
__device__ __forceinline__ place find_place(const image_arguments &a, u32 parts) {
    place p;
    const u32 task = blockIdx.x / parts;
    const u32 image = task / (u32)a.slices;
    p.part = (int)(blockIdx.x - task * parts);
    p.task = task;
    p.start = (i64)image * a.pixels * a.channels;
    const i64 begin = p.part * a.span;
    p.pixels = count_part(a, p.part);
    p.piece = (int)threadIdx.x % PIECES;
    p.row = (int)threadIdx.x / PIECES;
    p.count = p.row < ROWS ? count_rows(p.pixels)(p.row) : 0;
    p.channel = (int)(task - image * (u32)a.slices) * SLICE + p.piece * WIDTH;
    p.first = p.start + (begin + p.row) * a.channels + p.channel;
    p.step = ROWS * a.channels;
    return p;
}

// What a unit's elements are seen from: the first channel of their group in the image's first pixel.
__device__ __forceinline__ void find_pivots(const image_arguments &a, const place &p,
                                            float (&pivot)[UNITS]) {
    const T *first = a.x + p.start;
    if (WIDTH % GROUP == 0) {
        const pack<T, WIDTH> all = *(const pack<T, WIDTH> *)(first + p.channel);
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            pivot[u] = convert<float>(all.value[u * UNIT / GROUP * GROUP]);
        }
    } else {
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            pivot[u] = convert<float>(first[(p.channel + u * UNIT) / GROUP * GROUP]);
        }
    }
}
__device__ __forceinline__ float see(T x, float pivot) {
    return convert<float>(x) - pivot;
}

// Up to PACKS pieces of a thread.
struct held {
    pack<T, WIDTH> pieces[PACKS];
    int count;
};
__device__ __forceinline__ void load(held &h, const T *x, i64 step, int count) {
    h.count = count < PACKS ? count : PACKS;
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        if (i < h.count) {
            h.pieces[i] = *(const pack<T, WIDTH> *)(x + i * step);
        }
    }
}

// The moments of each unit of what is held.
__device__ __forceinline__ void find_moments(const held &h, const float (&pivot)[UNITS],
                                             float (&mean)[UNITS], float (&square)[UNITS]) {
    const float share = 1.0f / (float)((h.count > 0 ? h.count : 1) * UNIT);
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        mean[u] = square[u] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            if (i < h.count) {
                mean[v / UNIT] += see(h.pieces[i].value[v], pivot[v / UNIT]);
            }
        }
    }
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        mean[u] *= share;
    }
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            if (i < h.count) {
                const float away = see(h.pieces[i].value[v], pivot[v / UNIT]) - mean[v / UNIT];
                square[v / UNIT] += away * away;
            }
        }
    }
}

// Those of each group in the block's pixels, out of those of its threads; the first lane of group
// `g`'s team hands them to `take`. `sets` has the moments of COLUMNS units in ROWS rows.
template <typename Take>
__device__ __forceinline__ void join_block(float2 *sets, const place &p,
                                           const float (&mean)[UNITS],
                                           const float (&square)[UNITS], const Take &take) {
    if (p.row < ROWS) {
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            sets[(p.piece * UNITS + u) * PITCH + p.row] = make_float2(mean[u], square[u]);
        }
    }
    __syncthreads();
    const row_counts rows = count_rows(p.pixels);
    const float even = (float)(rows.even * UNIT), share = 1.0f / ((float)p.pixels * GROUP);
    for (int first = 0; first < GROUPS; first += THREADS / TEAM) {
        const int g = first + (int)threadIdx.x / TEAM;
        const int columns = g < GROUPS ? GROUP_COLUMNS : 0;
        const float2 found = join<0>(columns * ROWS, share, [&](int i, float &n) {
            const int row = i % ROWS;
            n = row < rows.more ? even + UNIT : even;
            return sets[(g * GROUP_COLUMNS + i / ROWS) * PITCH + row];
        });
        if (g < GROUPS && threadIdx.x % TEAM == 0) {
            take(g, p.pixels > 0 ? found : make_float2(0.0f, 0.0f));  // else NaN
        }
    }
}

// Gain and shift of a thread's channels.
struct by_channel {
    pack<G, WIDTH> gain, shift;
};
__device__ __forceinline__ by_channel load_channels(const image_arguments &a, const place &p) {
    by_channel c;
    c.gain = *(const pack<G, WIDTH> *)(a.gain + p.channel);
    c.shift = *(const pack<G, WIDTH> *)(a.shift + p.channel);
    return c;
}

// What is held goes out. `scales` has mean and 1 / deviation of each group.
__device__ __forceinline__ void store(const image_arguments &a, const place &p, const held &h,
                                      const float (&pivot)[UNITS], const by_channel &c,
                                      const float2 *scales, T *y) {
    float mean[UNITS], scale[WIDTH];
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        const float2 own = scales[(p.piece * WIDTH + v) / GROUP];
        mean[v / UNIT] = own.x;
        scale[v] = own.y * convert<float>(c.gain.value[v]);
    }
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        if (i < h.count) {
            pack<T, WIDTH> out;
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                const float away = see(h.pieces[i].value[v], pivot[v / UNIT]) - mean[v / UNIT];
                out.value[v] =
                    convert<T>(finish(away * scale[v] + convert<float>(c.shift.value[v]),
                                      (float)a.alpha, (float)a.beta));
            }
            *(pack<T, WIDTH> *)(y + i * p.step) = out;
        }
    }
}

