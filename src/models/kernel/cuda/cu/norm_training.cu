// norm_training.cu - BatchNormalization by the statistics of its batch, and the way back through it and
// through LayerNormalization.
//
// x is [OUTER, CHANNELS, INNER]; channels that come last have INNER 1, and so have the columns of a
// layer's rows. Three launches: sums of parts of each channel, one that joins the parts of a channel
// always in the same order, and one that makes the result.
//
//   FORWARD    y = (x - mean) scale / sqrt(variance + epsilon) + shift, with ADDED w more, with RELU not below 0
//   else       dx = scale inverse (g - mean(g) - n mean(g n)),  g: dy, n: the normalised x
//
// A part's sums are of distances from the median of three of its elements; parts are joined by Chan's formula,
// and the mean stays in two parts. So neither means far from 0 nor a few odd elements cost digits.
// Parts lie interleaved, so that all of them together go through x once from its beginning; `apply` begins at
// the end, which the cache still has. A thread reads BATCH packs before it looks at the first.
//
// (Tried and dropped: one launch, in which a cluster of 8 blocks has 16 channels. 26 us a norm beside 14.)
// A layer (LAYER) has its moments by row: `rows` makes them and dx, and the columns' sums are left.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float  // x, and what is made in its shape
#endif
typedef RONDO_T T;
#ifndef RONDO_D
#define RONDO_D float  // dy
#endif
typedef RONDO_D D;
#ifndef RONDO_G
#define RONDO_G float  // numbers of a channel
#endif
typedef RONDO_G G;
#ifndef FORWARD
#define FORWARD 0
#endif
#ifndef LAYER
#define LAYER 0
#endif
#ifndef MASKED
#define MASKED 0  // dy counts where y is not at most 0
#endif
#ifndef ADDED
#define ADDED 0
#endif
#ifndef RELU
#define RELU 0
#endif
#ifndef CHANNELS
#define CHANNELS 64
#endif
#ifndef INNER
#define INNER 1
#endif
#ifndef WIDTH
#define WIDTH 1  // elements of a pack
#endif
#define PACKS (INNER == 1 ? CHANNELS / WIDTH : 1)  // of a row of channels
#define COLUMNS (PACKS < 256 ? PACKS : 256)        // of them in a block
#define ROWS (256 / COLUMNS)                       // that a block has at a time
#define OWN (INNER == 1 ? WIDTH : 1)               // channels of a thread
#define LINE (INNER == 1 ? 1 : INNER / WIDTH)      // packs of a channel in an image
#define ABREAST (INNER == 1 ? ROWS : 256)          // rows of a block at a time; channels first: packs
#define BATCH 4

struct norm_arguments {
    const T *x;
    const D *dy;
    const T *y;  // MASKED: behind a Relu; ADDED: w
    const G *scale, *shift, *mean, *variance;
    T *out;  // these may be NULL
    G *running_mean, *running_variance, *batch_mean, *batch_variance;
    G *d_scale, *d_shift;
    float *parts;   // [part_count, CHANNELS, 3]
    float4 *joined; // [CHANNELS]
    float2 *rows;   // [OUTER]: mean and inverse deviation
    i64 outer, part_count;
    i64 rounds, left;  // what all parts have alike, ABREAST at a time, and what the first have beside it
    double epsilon, momentum;
};

struct moments {
    float count, center, rest, square;  // the mean is center + rest
    __device__ __forceinline__ moments() : count(0.0f), center(0.0f), rest(0.0f), square(0.0f) {
    }
    __device__ __forceinline__ void join(const moments &o) {
        if (o.count == 0.0f) {
            return;
        }
        if (count == 0.0f) {
            *this = o;
            return;
        }
        const float all = count + o.count, share = o.count / all;
        const float delta = o.center - center + (o.rest - rest);
        const bool is_finite = fabsf(delta) < infinity();
        rest = is_finite ? rest + delta * share : rest + (o.center + o.rest);
        square = is_finite ? square + o.square + delta * delta * count * share : delta - delta;
        count = all;
    }
};

// Of elements of a channel: their moments on the way forward, sums of changes on the way back.
#define KEPT (FORWARD ? 4 : 2)  // words
struct total {
    moments m;
    float one, two;
    __device__ __forceinline__ total() : one(0.0f), two(0.0f) {
    }
    __device__ __forceinline__ void join(const total &o) {
        if (FORWARD) {
            m.join(o.m);
        } else {
            one += o.one;
            two += o.two;
        }
    }
    __device__ __forceinline__ void hold(float *words, int step) const {
        words[0] = FORWARD ? m.center : one;
        words[step] = FORWARD ? m.rest : two;
        if (FORWARD) {
            words[2 * step] = m.square;
            words[3 * step] = m.count;
        }
    }
    __device__ __forceinline__ static total find(const float *words, int step) {
        total t;
        if (FORWARD) {
            t.m.center = words[0];
            t.m.rest = words[step];
            t.m.square = words[2 * step];
            t.m.count = words[3 * step];
        } else {
            t.one = words[0];
            t.two = words[step];
        }
        return t;
    }
};

struct channel_numbers {
    float mean, inverse;
    __device__ __forceinline__ channel_numbers(const norm_arguments &a, int c)
        : mean(0.0f), inverse(0.0f) {
        if (!FORWARD && !LAYER) {
            mean = convert<float>(a.mean[c]);
            inverse = 1.0f / sqrtf(convert<float>(a.variance[c]) + (float)a.epsilon);
        }
    }
};

// How many packs of a channel the part's thread of this row has.
__device__ __forceinline__ int count_packs(const norm_arguments &a, i64 part, int row) {
    return (int)a.rounds + (part * ABREAST + row < a.left ? 1 : 0);
}

// The packs of a part that a thread has: `count` of them, `step` rows apart.
struct walk {
    i64 at, step;
    int count;
    i64 channel;
    __device__ __forceinline__ walk(const norm_arguments &a, i64 part) {
        const int row = INNER == 1 ? threadIdx.x / COLUMNS : threadIdx.x;
        const int column = INNER == 1 ? (int)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS : 0;
        channel = INNER == 1 ? (i64)column * WIDTH : blockIdx.x;
        at = part * ABREAST + row;
        step = a.part_count * ABREAST;
        count = row < ABREAST && column < PACKS ? count_packs(a, part, row) : 0;
    }
    // Of pack `i`, by elements of x.
    __device__ __forceinline__ i64 place(int i) const {
        const i64 row = at + i * step;
        if (INNER == 1) {
            return row * CHANNELS + channel;
        }
        const i64 image = row / LINE;
        return (image * CHANNELS + channel) * INNER + (row - image * LINE) * WIDTH;
    }
};

// What is read of one place.
struct reading {
    pack<T, WIDTH> x, y;
    pack<D, WIDTH> dy;
    __device__ __forceinline__ void read(const norm_arguments &a, i64 at) {
        x = *(const pack<T, WIDTH> *)(a.x + at);
        if (!FORWARD) {
            dy = *(const pack<D, WIDTH> *)(a.dy + at);
        }
        if (MASKED || ADDED) {
            y = *(const pack<T, WIDTH> *)(a.y + at);
        }
    }
    __device__ __forceinline__ float get_change(int i) const {
        const float g = convert<float>(dy.value[i]);
        return MASKED && convert<float>(y.value[i]) <= 0.0f ? 0.0f : g;
    }
};

// BATCH packs of a thread, from its pack `begin` on; what is beyond its last is not read.
struct batch {
    reading of[BATCH];
    float2 row[BATCH];  // of a layer
    __device__ __forceinline__ void read(const norm_arguments &a, const walk &w, int begin) {
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (begin + b < w.count) {
                of[b].read(a, w.place(begin + b));
                row[b] = LAYER ? a.rows[w.at + (begin + b) * w.step] : make_float2(0.0f, 0.0f);
            }
        }
    }
};

// ---- sums -------------------------------------------------------------------------------------

// How many elements of a channel a part has.
__device__ __forceinline__ i64 count_part(const norm_arguments &a, i64 part) {
    const i64 more = a.left - part * ABREAST;
    return (a.rounds * ABREAST + (more < 0 ? 0 : more < ABREAST ? more : ABREAST)) *
           (INNER == 1 ? 1 : WIDTH);
}

// Of three packs of the part, element by element: the same for all threads of a channel.
__device__ __forceinline__ void find_centers(const norm_arguments &a, const walk &w, float *center) {
    const int count = count_packs(a, blockIdx.y, 0);
    if (w.count == 0) {
        return;
    }
    walk from = w;
    from.at = (i64)blockIdx.y * ABREAST;
    const pack<T, WIDTH> p = *(const pack<T, WIDTH> *)(a.x + from.place(0));
    const pack<T, WIDTH> q = *(const pack<T, WIDTH> *)(a.x + from.place(count / 2));
    const pack<T, WIDTH> r = *(const pack<T, WIDTH> *)(a.x + from.place(count - 1));
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        const float x = convert<float>(p.value[k]), y = convert<float>(q.value[k]);
        const float z = convert<float>(r.value[k]);
        const float middle = fmaxf(fminf(x, y), fminf(fmaxf(x, y), z));
        center[k] = fabsf(middle) < infinity() ? middle : 0.0f;
    }
}

// `one` and `two`: the sums of a part's distances or changes.
__device__ __forceinline__ void put_part(const norm_arguments &a, i64 channel, float center, float one,
                                         float two) {
    if (channel < CHANNELS) {
        float *part = a.parts + ((i64)blockIdx.y * CHANNELS + channel) * 3;
        if (FORWARD) {
            const i64 count = count_part(a, blockIdx.y);
            const float rest = count > 0 ? one / (float)count : 0.0f;
            const float square = two - one * rest;
            part[2] = square < 0.0f ? 0.0f : square;
            two = rest;
            one = center;
        }
        part[0] = one;
        part[1] = two;
    }
}

extern "C" __global__ void __launch_bounds__(256) sums(const norm_arguments a) {
    take_turn();
    __shared__ float held[2][INNER == 1 ? 256 * OWN : 33];
    __shared__ float centers[FORWARD && INNER == 1 ? COLUMNS * OWN : 1];
    const walk w(a, blockIdx.y);
    batch next;
    next.read(a, w, 0);  // under way while the channels' numbers come
    float one[OWN], two[OWN], center[OWN], inverse[OWN];
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        const channel_numbers of(a, w.channel + k < CHANNELS ? (int)w.channel + k : 0);
        center[k] = of.mean;
        inverse[k] = of.inverse;
        one[k] = two[k] = 0.0f;
    }
    if (FORWARD) {
        find_centers(a, w, center);
    }
    for (int begin = 0; begin < w.count; begin += BATCH) {
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
#pragma unroll
            for (int k = 0; k < WIDTH && begin + b < w.count; k++) {
                const int c = INNER == 1 ? k : 0;
                const float value = convert<float>(next.of[b].x.value[k]);
                const float2 row = next.row[b];
                const float d = LAYER ? (value - row.x) * row.y : value - center[c];
                const float g = FORWARD ? d : next.of[b].get_change(k);
                one[c] += g;
                two[c] = fmaf(g, FORWARD || LAYER ? d : d * inverse[c], two[c]);
            }
        }
        next.read(a, w, begin + BATCH);
    }
    // Threads of the same channels: first those of a group, each of which has every so many rows.
    if (INNER == 1) {
        const int wide = COLUMNS * WIDTH;  // channels of a block
        const int groups = 256 / wide > ROWS ? ROWS : 256 / wide > 1 ? 256 / wide : 1;
#pragma unroll
        for (int k = 0; k < OWN; k++) {
            held[0][threadIdx.x * OWN + k] = one[k];
            held[1][threadIdx.x * OWN + k] = two[k];
            if (FORWARD && threadIdx.x < COLUMNS) {
                centers[threadIdx.x * OWN + k] = center[k];
            }
        }
        __syncthreads();
        float sum = 0.0f, other = 0.0f;
        for (int i = threadIdx.x; i < wide * groups; i += 256) {
            const int c = i % wide;
            sum = other = 0.0f;
#pragma unroll 4
            for (int r = i / wide; r < ROWS; r += groups) {
                sum += held[0][r * wide + c];
                other += held[1][r * wide + c];
            }
            if (groups == 1) {
                put_part(a, (i64)blockIdx.x * wide + c, FORWARD ? centers[c] : 0.0f, sum, other);
            }
        }
        if (groups > 1) {
            __syncthreads();
            if (threadIdx.x < wide * groups) {
                held[0][threadIdx.x] = sum;
                held[1][threadIdx.x] = other;
            }
            __syncthreads();
            if (threadIdx.x < wide) {
                const int c = threadIdx.x;
                for (int g = 1; g < groups; g++) {
                    sum += held[0][g * wide + c];
                    other += held[1][g * wide + c];
                }
                put_part(a, (i64)blockIdx.x * wide + c, FORWARD ? centers[c] : 0.0f, sum, other);
            }
        }
    } else {
        const float sum = block_sum(one[0], held[0]), other = block_sum(two[0], held[1]);
        if (threadIdx.x == 0) {
            put_part(a, w.channel, center[0], sum, other);
        }
    }
}

// ---- joining ----------------------------------------------------------------------------------

__device__ __forceinline__ void put(G *values, i64 at, float value) {
    if (values != 0) {
        values[at] = convert<G>(value);
    }
}
// JOINED channels a block, whose threads share the parts, 8 of which a thread reads at once; then halves of
// them are joined.
#define JOINED 8
#define SHARERS (256 / JOINED)
extern "C" __global__ void __launch_bounds__(256) join(const norm_arguments a) {
    take_turn();
    __shared__ float held[KEPT][256];
    const int sharer = threadIdx.x / JOINED;
    const i64 c = (i64)blockIdx.x * JOINED + threadIdx.x % JOINED;
    // The numbers that are wanted behind the joining are on their way meanwhile.
    const bool ends = sharer == 0 && c < CHANNELS, has_numbers = ends && !LAYER;
    const float scale = has_numbers ? convert<float>(a.scale[c]) : 0.0f;
    const float shift = has_numbers && FORWARD ? convert<float>(a.shift[c]) : 0.0f;
    const float old_mean = has_numbers ? convert<float>(a.mean[c]) : 0.0f;
    const float old_variance = has_numbers ? convert<float>(a.variance[c]) : 0.0f;
    total t;
    for (i64 begin = sharer; begin < a.part_count && c < CHANNELS; begin += 8 * SHARERS) {
        float words[8][3];
#pragma unroll
        for (int b = 0; b < 8; b++) {
            const i64 part = begin + b * SHARERS;
#pragma unroll
            for (int k = 0; k < (FORWARD ? 3 : 2); k++) {
                words[b][k] = part < a.part_count ? a.parts[(part * CHANNELS + c) * 3 + k] : 0.0f;
            }
        }
#pragma unroll
        for (int b = 0; b < 8; b++) {
            const i64 part = begin + b * SHARERS;
            if (part < a.part_count) {
                total o;
                o.one = o.m.center = words[b][0];
                o.two = o.m.rest = words[b][1];
                o.m.square = FORWARD ? words[b][2] : 0.0f;
                o.m.count = FORWARD ? (float)count_part(a, part) : 0.0f;
                t.join(o);
            }
        }
    }
    for (int half = SHARERS / 2; half > 0; half /= 2) {
        t.hold(&held[0][threadIdx.x], 256);
        __syncthreads();
        if (sharer < half) {
            t.join(total::find(&held[0][threadIdx.x + half * JOINED], 256));
        }
        __syncthreads();
    }
    if (!ends) {
        return;
    }
    const float count = (float)a.outer * (float)INNER;
    if (FORWARD) {
        const moments &all = t.m;
        const float mean = all.center + all.rest;
        const float variance = all.square / count;
        a.joined[c] = make_float4(all.center, fabsf(all.rest) < infinity() ? all.rest : 0.0f,
                                  scale / sqrtf(variance + (float)a.epsilon), shift);
        const float keeps = (float)a.momentum, takes = (float)(1.0 - a.momentum);
        put(a.running_mean, c, old_mean * keeps + mean * takes);
        put(a.running_variance, c, old_variance * keeps + variance * takes);
        put(a.batch_mean, c, mean);
        put(a.batch_variance, c, variance);
    } else {
        put(a.d_shift, c, t.one);
        put(a.d_scale, c, t.two);
        if (!LAYER) {
            const float inverse = 1.0f / sqrtf(old_variance + (float)a.epsilon);
            a.joined[c] = make_float4(scale * inverse, old_mean, t.one / count,
                                      inverse * (t.two / count));
        }
    }
}

// ---- results ----------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(256) apply(const norm_arguments a) {
    take_turn();
    const walk w(a, a.part_count - 1 - blockIdx.y);
    float4 of[OWN];
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        of[k] = a.joined[w.channel + k < CHANNELS ? w.channel + k : 0];
    }
    for (int end = w.count; end > 0; end -= BATCH) {
        reading from[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (b < end) {
                from[b].read(a, w.place(end - 1 - b));
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            pack<T, WIDTH> out;
#pragma unroll
            for (int k = 0; k < WIDTH; k++) {
                const float4 n = of[INNER == 1 ? k : 0];
                const float value = convert<float>(from[b].x.value[k]);
                float made = FORWARD ? (value - n.x - n.y) * n.z + n.w
                                     : n.x * (from[b].get_change(k) - n.z - (value - n.y) * n.w);
                if (ADDED) {  // rounded in between, as if another op added
                    made = convert<float>(convert<T>(made)) + convert<float>(from[b].y.value[k]);
                }
                out.value[k] = convert<T>(RELU && made < 0.0f ? 0.0f : made);
            }
            if (b < end) {
                *(pack<T, WIDTH> *)(a.out + w.place(end - 1 - b)) = out;
            }
        }
    }
}

// A block for each row of a layer: dx, and the row's moments.
extern "C" __global__ void __launch_bounds__(256) rows(const norm_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 row = blockIdx.x; row < a.outer; row += gridDim.x) {
        const T *x = a.x + row * CHANNELS;
        const D *dy = a.dy + row * CHANNELS;
        float sum = 0.0f, square = 0.0f, one = 0.0f, two = 0.0f;
        const float center = convert<float>(x[0]);
        for (int i = threadIdx.x; i < CHANNELS; i += 256) {
            sum += convert<float>(x[i]) - center;
        }
        const float rest = block_sum(sum, scratch) / (float)CHANNELS;
        for (int i = threadIdx.x; i < CHANNELS; i += 256) {
            const float d = convert<float>(x[i]) - center - rest;
            square = fmaf(d, d, square);
        }
        const float variance = block_sum(square, scratch) / (float)CHANNELS;
        const float inverse = 1.0f / sqrtf(variance + (float)a.epsilon);
        for (int i = threadIdx.x; i < CHANNELS; i += 256) {
            const float c = convert<float>(dy[i]) * convert<float>(a.scale[i]);
            one += c;
            two = fmaf(c, (convert<float>(x[i]) - center - rest) * inverse, two);
        }
        one = block_sum(one, scratch) / (float)CHANNELS;
        two = block_sum(two, scratch) / (float)CHANNELS;
        for (int i = threadIdx.x; i < CHANNELS && a.out != 0; i += 256) {
            const float c = convert<float>(dy[i]) * convert<float>(a.scale[i]);
            const float normal = (convert<float>(x[i]) - center - rest) * inverse;
            a.out[row * CHANNELS + i] = convert<T>((c - one - normal * two) * inverse);
        }
        if (threadIdx.x == 0) {
            a.rows[row] = make_float2(center + rest, inverse);
        }
    }
}
