// normalize.cu - LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization,
// MeanVarianceNormalization, and LRN. Statistics in
// float; the variance is that of the deviations (two passes over data that the first pass cached), and
// the sum of the deviations corrects the mean. The mean stays in two parts: rounded to one float, it loses
// the digits of deviations that are far smaller.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_S
#define RONDO_S float  // statistics that LayerNormalization may put out
#endif
typedef RONDO_S S;
#ifndef RONDO_G
#define RONDO_G T  // gain and shift
#endif
typedef RONDO_G G;
#ifndef BROADCASTS
#define BROADCASTS 0  // LayerNormalization: gain or shift has not the shape of a row
#endif
#ifndef CENTERED
#define CENTERED 1  // 0: RMSNormalization, whose mean counts as 0
#endif
#ifndef RANK
#define RANK 1
#endif
// Of what is held in registers: threads of a block, packs that each holds, elements of a pack.
#ifndef THREADS
#define THREADS 256
#endif
#ifndef PACKS
#define PACKS 1
#endif
#ifndef WIDTH
#define WIDTH 1
#endif

// Behind a normalisation by groups.
#ifndef ACTIVATION
#define ACTIVATION 0
#endif

struct moments {
    float center, rest;  // the mean is their sum
    float variance;
    __device__ __forceinline__ float mean() const {
        return center + rest;
    }
    // x - mean: the first difference is exact where x is near the mean.
    __device__ __forceinline__ float away(float x) const {
        return x - center - rest;
    }
};
// Of `length` elements, whose distances from `center` have this sum and this sum of squares.
__device__ __forceinline__ moments join_moments(float center, float sum, float square, float length) {
    const float rest = sum / length;
    const float variance = square / length - rest * rest;
    moments result;
    result.center = center;
    result.rest = fabsf(rest) < infinity() ? rest : 0.0f;  // an infinite mean is none to correct
    result.variance = variance < 0.0f ? 0.0f : variance;
    return result;
}
// Mean and variance of x[place(0)] .. x[place(length - 1)], by one block; every thread gets them.
// `scratch` has 33 floats.
template <typename Place>
__device__ __forceinline__ moments find_moments(const T *x, i64 length, const Place &place,
                                                float *scratch) {
    long_sum sum, rest, square;
    for (i64 i = threadIdx.x; CENTERED && i < length; i += blockDim.x) {
        sum.add(convert<float>(x[place(i)]));
    }
    const float mean = CENTERED ? block_sum(sum.get(), scratch) / (float)length : 0.0f;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
        const float d = convert<float>(x[place(i)]) - mean;
        rest.add(d);
        square.add(d * d);
    }
    const float rests = CENTERED ? block_sum(rest.get(), scratch) : 0.0f;
    return join_moments(mean, rests, block_sum(square.get(), scratch), (float)length);
}
struct side_by_side {
    __device__ __forceinline__ i64 operator()(i64 i) const {
        return i;
    }
};
__device__ __forceinline__ moments row_moments(const T *x, i64 length, float *scratch) {
    return find_moments(x, length, side_by_side(), scratch);
}

// Where element n of a tensor of these extents is in one with these steps.
__device__ __forceinline__ i64 find_place(i64 n, const i64 (&extent)[RANK],
                                          const i64 (&step)[RANK]) {
    i64 place = 0;
#pragma unroll
    for (int d = RANK - 1; d >= 0; d--) {
        i64 at = n;
        if (d > 0) {
            at = n % extent[d];
            n /= extent[d];
        }
        place += at * step[d];
    }
    return place;
}

struct layer_arguments {
    i64 rows;
    const T *x;
    const G *gain;
    const G *shift;  // may be NULL
    T *y;
    S *mean;        // may be NULL
    S *inverse;     // may be NULL
    i64 length;
    double epsilon;
    // BROADCASTS: of x, gain and shift.
    i64 extent[RANK], gain_step[RANK], shift_step[RANK];
};

extern "C" __global__ void __launch_bounds__(256) layer_normalization(const layer_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = a.x + row * a.length;
        T *y = a.y + row * a.length;
        const moments found = row_moments(x, a.length, scratch);
        const float inverse = 1.0f / sqrtf(found.variance + (float)a.epsilon);
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            const i64 n = row * a.length + i;
            const i64 at_gain = BROADCASTS ? find_place(n, a.extent, a.gain_step) : i;
            float value =
                found.away(convert<float>(x[i])) * inverse * convert<float>(a.gain[at_gain]);
            if (a.shift != 0) {
                value += convert<float>(
                    a.shift[BROADCASTS ? find_place(n, a.extent, a.shift_step) : i]);
            }
            y[i] = convert<T>(value);
        }
        if (threadIdx.x == 0) {
            if (a.mean != 0) {
                a.mean[row] = convert<S>(found.mean());
            }
            if (a.inverse != 0) {
                a.inverse[row] = convert<S>(inverse);
            }
        }
    }
}

// The same for rows that a warp's registers hold: a warp for each row.
extern "C" __global__ void __launch_bounds__(THREADS)
layer_normalization_held(const layer_arguments a) {
    release_successor();
    read_early((u64)a.x | (u64)a.length);
    await_predecessors();
    const int lane = threadIdx.x & 31, packs = (int)(a.length / WIDTH);
    const i64 row = (i64)blockIdx.x * (THREADS / 32) + (threadIdx.x >> 5);
    if (row >= a.rows) {
        return;
    }
    const pack<T, WIDTH> *x = (const pack<T, WIDTH> *)(a.x + row * a.length);
    const pack<G, WIDTH> *gain = (const pack<G, WIDTH> *)a.gain;
    const pack<G, WIDTH> *shift = (const pack<G, WIDTH> *)a.shift;
    pack<T, WIDTH> in[PACKS];
    pack<G, WIDTH> scale[PACKS], offset[PACKS];
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        const int i = lane + p * 32;
        in[p] = pack<T, WIDTH>();
        scale[p] = offset[p] = pack<G, WIDTH>();
        if (i < packs) {
            in[p] = x[i];
            scale[p] = gain[i];
            if (a.shift != 0) {
                offset[p] = shift[i];
            }
        }
    }
    float sum = 0.0f, rest = 0.0f, square = 0.0f;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            sum += convert<float>(in[p].value[v]);
        }
    }
    const float center = CENTERED ? warp_sum(sum) / (float)a.length : 0.0f;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            const float d = lane + p * 32 < packs ? convert<float>(in[p].value[v]) - center : 0.0f;
            rest += d;
            square += d * d;
        }
    }
    const moments found = join_moments(center, CENTERED ? warp_sum(rest) : 0.0f, warp_sum(square),
                                       (float)a.length);
    const float inverse = 1.0f / sqrtf(found.variance + (float)a.epsilon);
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        pack<T, WIDTH> out;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            float value = found.away(convert<float>(in[p].value[v])) * inverse *
                          convert<float>(scale[p].value[v]);
            if (a.shift != 0) {
                value += convert<float>(offset[p].value[v]);
            }
            out.value[v] = convert<T>(value);
        }
        if (lane + p * 32 < packs) {
            ((pack<T, WIDTH> *)(a.y + row * a.length))[lane + p * 32] = out;
        }
    }
    if (lane == 0) {
        if (a.mean != 0) {
            a.mean[row] = convert<S>(found.mean());
        }
        if (a.inverse != 0) {
            a.inverse[row] = convert<S>(inverse);
        }
    }
}

// One block for each (image, group): `length` = channels of the group x `spatial` elements.
struct group_arguments {
    i64 rows;
    const T *x;
    const G *gain;
    const G *shift;
    T *y;
    i64 groups, length, spatial;
    i64 per_group;  // 1: gain and shift have an entry a group; 0: an entry a channel
    double epsilon, alpha, beta;
};
__device__ __forceinline__ T finish(const group_arguments &a, float x) {
    return convert<T>(activate<ACTIVATION>(x, (float)a.alpha, (float)a.beta));
}
extern "C" __global__ void __launch_bounds__(256) group_normalization(const group_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = a.x + row * a.length;
        T *y = a.y + row * a.length;
        const moments found = row_moments(x, a.length, scratch);
        const float inverse = 1.0f / sqrtf(found.variance + (float)a.epsilon);
        const i64 group = row % a.groups;
        const i64 channels = a.length / a.spatial;
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            const i64 c = a.per_group ? group : group * channels + i / a.spatial;
            const float away = found.away(convert<float>(x[i]));
            y[i] = finish(a, away * inverse * convert<float>(a.gain[c]) +
                                 convert<float>(a.shift[c]));
        }
    }
}

// The same for images with channels last, where a group's elements are `channels` of each pixel.
struct inside_pixels {
    i64 first, channels, step;
    __device__ __forceinline__ i64 operator()(i64 i) const {
        return first + i / channels * step + i % channels;
    }
};
extern "C" __global__ void __launch_bounds__(256)
group_normalization_strided(const group_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    const i64 channels = a.length / a.spatial, step = channels * a.groups;
    for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const i64 image = row / a.groups, group = row - image * a.groups;
        const inside_pixels place = {image * a.spatial * step + group * channels, channels, step};
        const moments found = find_moments(a.x, a.length, place, scratch);
        const float inverse = 1.0f / sqrtf(found.variance + (float)a.epsilon);
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            const i64 at = place(i), c = group * channels + i % channels;
            const float away = found.away(convert<float>(a.x[at]));
            a.y[at] = finish(a, away * inverse * convert<float>(a.gain[c]) +
                                    convert<float>(a.shift[c]));
        }
    }
}

// The same for rows that a block's registers hold: x is read once, in whole packs.
extern "C" __global__ void __launch_bounds__(THREADS)
group_normalization_held(const group_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    const int packs = (int)(a.length / WIDTH);
    for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const pack<T, WIDTH> *x = (const pack<T, WIDTH> *)(a.x + row * a.length);
        pack<T, WIDTH> *y = (pack<T, WIDTH> *)(a.y + row * a.length);
        float value[PACKS][WIDTH];
        float sum = 0.0f, rest = 0.0f, square = 0.0f;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const int i = (int)threadIdx.x + p * THREADS;
            pack<T, WIDTH> in;
            if (i < packs) {
                in = x[i];
            }
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                value[p][v] = i < packs ? convert<float>(in.value[v]) : 0.0f;
                sum += value[p][v];
            }
        }
        const float center = block_sum(sum, scratch) / (float)a.length;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const bool is_there = (int)threadIdx.x + p * THREADS < packs;
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                const float d = is_there ? value[p][v] - center : 0.0f;
                rest += d;
                square += d * d;
            }
        }
        const float rests = block_sum(rest, scratch);
        const moments found =
            join_moments(center, rests, block_sum(square, scratch), (float)a.length);
        const float inverse = 1.0f / sqrtf(found.variance + (float)a.epsilon);
        const i64 group = row % a.groups, channels = a.length / a.spatial;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const int i = (int)threadIdx.x + p * THREADS;
            if (i < packs) {
                const i64 c =
                    a.per_group ? group : group * channels + (u32)i * WIDTH / (u32)a.spatial;
                const float scale = inverse * convert<float>(a.gain[c]);
                const float offset = convert<float>(a.shift[c]);
                pack<T, WIDTH> out;
#pragma unroll
                for (int v = 0; v < WIDTH; v++) {
                    out.value[v] = finish(a, found.away(value[p][v]) * scale + offset);
                }
                y[i] = out;
            }
        }
    }
}

// Moments of rows, as op/fused/fused.h has them: of each 32 neighbouring elements mean and sum of squared
// deviations, by a warp.
struct moments_arguments {
    i64 count;  // of all elements
    const T *x;
    float2 *moments;
};
extern "C" __global__ void __launch_bounds__(256) part_moments(const moments_arguments a) {
    take_turn();
    const i64 at = (i64)blockIdx.x * 256 + threadIdx.x;
    const float x = at < a.count ? convert<float>(a.x[at]) : 0.0f;
    const float mean = warp_sum(x) / 32.0f;
    const float square = warp_sum((x - mean) * (x - mean));
    if (at < a.count && at % 32 == 0) {
        a.moments[at / 32] = make_float2(mean, square);
    }
}

struct lrn_arguments {
    i64 count;
    const T *x;
    T *y;
    i64 channels, spatial, size;
    double alpha, beta, bias;
};
extern "C" __global__ void __launch_bounds__(256) lrn(const lrn_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 c = n / a.spatial % a.channels;
        const i64 first = c - (a.size - 1) / 2, last = c + a.size / 2;
        float sum = 0.0f;
        for (i64 k = first < 0 ? 0 : first; k <= last && k < a.channels; k++) {
            const float value = convert<float>(a.x[n + (k - c) * a.spatial]);
            sum += value * value;
        }
        a.y[n] = convert<T>(
            convert<float>(a.x[n]) /
            powf((float)a.bias + (float)a.alpha / (float)a.size * sum, (float)a.beta));
    }
}

// ---- over any axes ----------------------------------------------------------------------------

struct axes_arguments {
    i64 groups;
    const T *x;
    T *y;
    i64 length;  // elements of a group
    i64 kept_extent[RANK], kept_step[RANK];  // of the axes that name a group
    i64 extent[RANK], step[RANK];            // of those inside of it
};
struct inside_group {
    const axes_arguments &a;
    i64 first;
    __device__ __forceinline__ i64 operator()(i64 i) const {
        return first + find_place(i, a.extent, a.step);
    }
};
extern "C" __global__ void __launch_bounds__(256) axes_normalization(const axes_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 group = blockIdx.x; group < a.groups; group += gridDim.x) {
        const inside_group place = {a, find_place(group, a.kept_extent, a.kept_step)};
        const moments found = find_moments(a.x, a.length, place, scratch);
        const float divisor = sqrtf(found.variance) + 1e-9f;
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            a.y[place(i)] = convert<T>(found.away(convert<float>(a.x[place(i)])) / divisor);
        }
    }
}
