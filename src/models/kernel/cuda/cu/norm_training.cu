// norm_training.cu - BatchNormalization by the statistics of its batch, and the way back through it and
// through LayerNormalization.
//
// x is [OUTER, CHANNELS, INNER]; channels that come last have INNER 1, and so have the columns of a
// layer's rows. Three launches: sums of parts of each channel, one that joins the parts of a channel in
// their order, and one that makes the result.
//
//   FORWARD    y = (x - mean) scale / sqrt(variance + epsilon) + shift
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
    const T *y;  // behind a Relu
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

extern "C" __global__ void __launch_bounds__(256) sums(const norm_arguments a) {
    take_turn();
    __shared__ float held[3][256 * OWN];
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
    // Threads of the same channels, in their order.
    moments own[OWN];
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        own[k] = s[k].get();
    }
    if (INNER == 1) {
        __shared__ float counts[256];
        counts[threadIdx.x] = s[0].count;
#pragma unroll
        for (int k = 0; k < OWN; k++) {
            const int at = threadIdx.x * OWN + k;
            held[0][at] = FORWARD ? own[k].center : s[k].first;
            held[1][at] = FORWARD ? own[k].rest : s[k].second;
            held[2][at] = own[k].square;
        }
        __syncthreads();
        for (int c = threadIdx.x; c < COLUMNS * WIDTH; c += 256) {
            const i64 to = (i64)blockIdx.x * COLUMNS * WIDTH + c;
            moments all;
            float one = 0.0f, two = 0.0f;
            for (int r = 0; r < ROWS; r++) {
                const int at = r * COLUMNS * WIDTH + c;
                if (FORWARD) {
                    moments o;
                    o.count = counts[r * COLUMNS + c / WIDTH];
                    o.center = held[0][at];
                    o.rest = held[1][at];
                    o.square = held[2][at];
                    all.join(o);
                } else {
                    one += held[0][at];
                    two += held[1][at];
                }
            }
            if (to < CHANNELS) {
                float *part = a.parts + ((i64)blockIdx.y * CHANNELS + to) * 3;
                part[0] = FORWARD ? all.center : one;
                part[1] = FORWARD ? all.rest : two;
                part[2] = all.square;
            }
        }
    } else {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        moments all = own[0];
        float one = warp_sum(s[0].first), two = warp_sum(s[0].second);
        for (int step = 16; FORWARD && step > 0; step >>= 1) {
            all.join(all.shuffle(step));
        }
        if (lane == 0) {
            held[0][warp] = FORWARD ? all.center : one;
            held[1][warp] = FORWARD ? all.rest : two;
            held[2][warp] = FORWARD ? all.square : 0.0f;
            held[0][32 + warp] = all.count;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int o = 1; o < 8; o++) {
                moments other;
                other.count = held[0][32 + o];
                other.center = held[0][o];
                other.rest = held[1][o];
                other.square = held[2][o];
                all.join(other);
                one += held[0][o];
                two += held[1][o];
            }
            float *part = a.parts + ((i64)blockIdx.y * CHANNELS + w.channel) * 3;
            part[0] = FORWARD ? all.center : one;
            part[1] = FORWARD ? all.rest : two;
            part[2] = FORWARD ? all.square : 0.0f;
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
// 32 channels a block, whose warps share the parts: what neighbours read lies together.
#define SHARERS 8
extern "C" __global__ void __launch_bounds__(SHARERS * 32) join(const norm_arguments a) {
    take_turn();
    __shared__ float held[SHARERS][32][4];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const i64 c = (i64)blockIdx.x * 32 + lane;
    moments all;
    float one = 0.0f, two = 0.0f;
#pragma unroll 4
    for (i64 part = warp; part < a.part_count && c < CHANNELS; part += SHARERS) {
        const float *from = a.parts + (part * CHANNELS + c) * 3;
        if (FORWARD) {
            moments o;
            o.count = count_part(a, part);
            o.center = from[0];
            o.rest = from[1];
            o.square = from[2];
            all.join(o);
        } else {
            one += from[0];
            two += from[1];
        }
    }
    held[warp][lane][0] = FORWARD ? all.count : one;
    held[warp][lane][1] = FORWARD ? all.center : two;
    held[warp][lane][2] = all.rest;
    held[warp][lane][3] = all.square;
    __syncthreads();
    if (warp != 0 || c >= CHANNELS) {
        return;
    }
    for (int other = 1; other < SHARERS; other++) {
        const float *from = held[other][lane];
        if (FORWARD) {
            moments o;
            o.count = from[0];
            o.center = from[1];
            o.rest = from[2];
            o.square = from[3];
            all.join(o);
        } else {
            one += from[0];
            two += from[1];
        }
    }
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
        if (MASKED) {
            y = *(const pack<T, WIDTH> *)(a.y + at);
        }
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            const float4 n = of[INNER == 1 ? k : 0];
            const float value = convert<float>(x.value[k]);
            out.value[k] = convert<T>(
                FORWARD ? (value - n.x - n.y) * n.z + n.w
                        : n.x * (get_change(dy, y, k) - n.z - (value - n.y) * n.w));
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
