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
// Each thread's sums are of distances from the first element it meets, and are joined by Chan's formula;
// the mean stays in two parts. So neither means far from 0 nor a few odd elements cost digits.
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
    __device__ __forceinline__ moments shuffle(int step) const {
        moments o;
        o.count = __shfl_down_sync(0xffffffffu, count, step);
        o.center = __shfl_down_sync(0xffffffffu, center, step);
        o.rest = __shfl_down_sync(0xffffffffu, rest, step);
        o.square = __shfl_down_sync(0xffffffffu, square, step);
        return o;
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

// What a thread adds up of one channel.
struct share {
    float count, center, first, second;
    __device__ __forceinline__ share() : count(0.0f), center(0.0f), first(0.0f), second(0.0f) {
    }
    __device__ __forceinline__ void add(float x) {
        if (count == 0.0f) {
            center = fabsf(x) < infinity() ? x : 0.0f;
        }
        const float d = x - center;
        count += 1.0f;
        first += d;
        second = fmaf(d, d, second);
    }
    __device__ __forceinline__ moments get() const {
        moments m;
        m.count = count;
        m.center = center;
        m.rest = count > 0.0f ? first / count : 0.0f;
        m.square = second - first * m.rest;
        m.square = m.square < 0.0f ? 0.0f : m.square;
        return m;
    }
    __device__ __forceinline__ void add_change(float g, float normal) {
        first += g;
        second = fmaf(g, normal, second);
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

__device__ __forceinline__ float get_change(const pack<D, WIDTH> &dy, const pack<T, WIDTH> &y, int i) {
    const float g = convert<float>(dy.value[i]);
    return MASKED && convert<float>(y.value[i]) <= 0.0f ? 0.0f : g;
}

// The packs of a part: where each begins, one behind the other for a thread.
struct walk {
    i64 at, end;
    int column;  // INNER 1: pack of a row
    i64 channel;
    __device__ __forceinline__ walk(const norm_arguments &a, i64 part) {
        if (INNER == 1) {
            const i64 rows = (a.outer + a.part_count - 1) / a.part_count;
            column = blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
            at = part * rows + threadIdx.x / COLUMNS;
            end = (part + 1) * rows < a.outer ? (part + 1) * rows : a.outer;
            if (threadIdx.x >= COLUMNS * ROWS || column >= PACKS) {
                end = at;
            }
            channel = (i64)column * WIDTH;
        } else {
            const i64 all = a.outer * LINE;
            const i64 packs = (all + a.part_count - 1) / a.part_count;
            channel = blockIdx.x;
            at = part * packs + threadIdx.x;
            end = (part + 1) * packs < all ? (part + 1) * packs : all;
            column = 0;
        }
    }
    __device__ __forceinline__ static int step() {
        return INNER == 1 ? ROWS : 256;
    }
    __device__ __forceinline__ i64 place(i64 i) const {
        if (INNER == 1) {
            return i * CHANNELS + channel;
        }
        const i64 image = i / LINE;
        return (image * CHANNELS + channel) * INNER + (i - image * LINE) * WIDTH;
    }
};

// ---- sums -------------------------------------------------------------------------------------

__device__ __forceinline__ void put_part(const norm_arguments &a, i64 channel, const total &t) {
    if (channel < CHANNELS) {
        float *part = a.parts + ((i64)blockIdx.y * CHANNELS + channel) * 3;
        part[0] = FORWARD ? t.m.center : t.one;
        part[1] = FORWARD ? t.m.rest : t.two;
        part[2] = t.m.square;
    }
}

extern "C" __global__ void __launch_bounds__(256) sums(const norm_arguments a) {
    take_turn();
    const walk w(a, blockIdx.y);
    share s[OWN];
    const int first = (int)w.channel;
    float mean[OWN], inverse[OWN];
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        const channel_numbers of(a, first + k < CHANNELS ? first + k : 0);
        mean[k] = of.mean;
        inverse[k] = of.inverse;
    }
#pragma unroll 4
    for (i64 i = w.at; i < w.end; i += walk::step()) {
        const i64 at = w.place(i);
        const pack<T, WIDTH> x = *(const pack<T, WIDTH> *)(a.x + at);
        pack<D, WIDTH> dy;
        pack<T, WIDTH> y;
        if (!FORWARD) {
            dy = *(const pack<D, WIDTH> *)(a.dy + at);
        }
        if (MASKED) {
            y = *(const pack<T, WIDTH> *)(a.y + at);
        }
        const float2 row = LAYER ? a.rows[i] : make_float2(0.0f, 0.0f);
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            const int c = INNER == 1 ? k : 0;
            const float value = convert<float>(x.value[k]);
            if (FORWARD) {
                s[c].add(value);
            } else {
                s[c].add_change(get_change(dy, y, k),
                                LAYER ? (value - row.x) * row.y : (value - mean[c]) * inverse[c]);
            }
        }
    }
    // Threads of the same channels. First those of a group, each of which has every so many rows.
    total t;
    if (INNER == 1) {
        const int wide = COLUMNS * WIDTH;  // channels of a block
        const int groups = 256 / wide > ROWS ? ROWS : 256 / wide > 1 ? 256 / wide : 1;
        __shared__ float held[KEPT][256 * OWN];
#pragma unroll
        for (int k = 0; k < OWN; k++) {
            t.m = s[k].get();
            t.one = s[k].first;
            t.two = s[k].second;
            t.hold(&held[0][threadIdx.x * OWN + k], 256 * OWN);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < wide * groups; i += 256) {
            const int c = i % wide;
            t = total();
            for (int r = i / wide; r < ROWS; r += groups) {
                t.join(total::find(&held[0][r * wide + c], 256 * OWN));
            }
            if (groups == 1) {
                put_part(a, (i64)blockIdx.x * wide + c, t);
            }
        }
        if (groups > 1) {
            __syncthreads();
            if (threadIdx.x < wide * groups) {
                t.hold(&held[0][threadIdx.x], 256 * OWN);
            }
            __syncthreads();
            if (threadIdx.x < wide) {
                for (int g = 1; g < groups; g++) {
                    t.join(total::find(&held[0][g * wide + threadIdx.x], 256 * OWN));
                }
                put_part(a, (i64)blockIdx.x * wide + threadIdx.x, t);
            }
        }
    } else {
        __shared__ float held[KEPT][8];
        t.m = s[0].get();
        t.one = warp_sum(s[0].first);
        t.two = warp_sum(s[0].second);
        for (int step = 16; FORWARD && step > 0; step >>= 1) {
            t.m.join(t.m.shuffle(step));
        }
        if (threadIdx.x % 32 == 0) {
            t.hold(&held[0][threadIdx.x / 32], 8);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int o = 1; o < 8; o++) {
                t.join(total::find(&held[0][o], 8));
            }
            put_part(a, w.channel, t);
        }
    }
}

// ---- joining ----------------------------------------------------------------------------------

// How many elements of a channel a part has.
__device__ __forceinline__ float count_part(const norm_arguments &a, i64 part) {
    const i64 all = INNER == 1 ? a.outer : a.outer * LINE;
    const i64 each = (all + a.part_count - 1) / a.part_count;
    const i64 left = all - part * each;
    return (float)((left < 0 ? 0 : left < each ? left : each) * (INNER == 1 ? 1 : WIDTH));
}
__device__ __forceinline__ void put(G *values, i64 at, float value) {
    if (values != 0) {
        values[at] = convert<G>(value);
    }
}
// JOINED channels a block, whose threads share the parts; then halves of them are joined.
#define JOINED 8
#define SHARERS (256 / JOINED)
extern "C" __global__ void __launch_bounds__(256) join(const norm_arguments a) {
    take_turn();
    __shared__ float held[KEPT][256];
    const int sharer = threadIdx.x / JOINED;
    const i64 c = (i64)blockIdx.x * JOINED + threadIdx.x % JOINED;
    total t;
#pragma unroll 4
    for (i64 part = sharer; part < a.part_count && c < CHANNELS; part += SHARERS) {
        const float *from = a.parts + (part * CHANNELS + c) * 3;
        total o;
        o.one = o.m.center = from[0];
        o.two = o.m.rest = from[1];
        o.m.square = FORWARD ? from[2] : 0.0f;
        o.m.count = count_part(a, part);
        t.join(o);
    }
    for (int half = SHARERS / 2; half > 0; half /= 2) {
        t.hold(&held[0][threadIdx.x], 256);
        __syncthreads();
        if (sharer < half) {
            t.join(total::find(&held[0][threadIdx.x + half * JOINED], 256));
        }
        __syncthreads();
    }
    if (sharer != 0 || c >= CHANNELS) {
        return;
    }
    const moments &all = t.m;
    const float one = t.one, two = t.two;
    const float count = (float)a.outer * (float)INNER;
    if (FORWARD) {
        const float mean = all.center + all.rest;
        const float variance = all.square / count;
        const float scale = convert<float>(a.scale[c]) / sqrtf(variance + (float)a.epsilon);
        a.joined[c] = make_float4(all.center, fabsf(all.rest) < infinity() ? all.rest : 0.0f, scale,
                                  convert<float>(a.shift[c]));
        const float keeps = (float)a.momentum, takes = (float)(1.0 - a.momentum);
        put(a.running_mean, c, convert<float>(a.mean[c]) * keeps + mean * takes);
        put(a.running_variance, c, convert<float>(a.variance[c]) * keeps + variance * takes);
        put(a.batch_mean, c, mean);
        put(a.batch_variance, c, variance);
    } else {
        put(a.d_shift, c, one);
        put(a.d_scale, c, two);
        if (!LAYER) {
            const channel_numbers of(a, (int)c);
            a.joined[c] = make_float4(convert<float>(a.scale[c]) * of.inverse, of.mean, one / count,
                                      of.inverse * (two / count));
        }
    }
}

// ---- results ----------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(256) apply(const norm_arguments a) {
    take_turn();
    const walk w(a, blockIdx.y);
    float4 of[OWN];
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        of[k] = a.joined[w.channel + k < CHANNELS ? w.channel + k : 0];
    }
#pragma unroll 4
    for (i64 i = w.at; i < w.end; i += walk::step()) {
        const i64 at = w.place(i);
        const pack<T, WIDTH> x = *(const pack<T, WIDTH> *)(a.x + at);
        pack<D, WIDTH> dy;
        pack<T, WIDTH> y, out;
        if (!FORWARD) {
            dy = *(const pack<D, WIDTH> *)(a.dy + at);
        }
        if (MASKED || ADDED) {
            y = *(const pack<T, WIDTH> *)(a.y + at);
        }
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            const float4 n = of[INNER == 1 ? k : 0];
            const float value = convert<float>(x.value[k]);
            float made = FORWARD ? (value - n.x - n.y) * n.z + n.w
                                 : n.x * (get_change(dy, y, k) - n.z - (value - n.y) * n.w);
            if (ADDED) {  // rounded in between, as if another op added
                made = convert<float>(convert<T>(made)) + convert<float>(y.value[k]);
            }
            out.value[k] = convert<T>(RELU && made < 0.0f ? 0.0f : made);
        }
        *(pack<T, WIDTH> *)(a.out + at) = out;
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
