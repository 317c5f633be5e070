// normalize.cu - LayerNormalization, InstanceNormalization, GroupNormalization and LRN. Statistics in
// float; the variance is that of the deviations (two passes over data that the first pass cached), and
// the sum of the deviations corrects the mean.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_S
#define RONDO_S float  // statistics that LayerNormalization may put out
#endif
typedef RONDO_S S;

struct moments {
    float mean, variance;
};
// Mean and variance of a row, by one block; every thread gets them. `scratch` has 33 floats.
__device__ __forceinline__ moments row_moments(const T *x, i64 length, float *scratch) {
    long_sum sum, rest, square;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
        sum.add(convert<float>(x[i]));
    }
    const float mean = block_sum(sum.get(), scratch) / (float)length;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
        const float d = convert<float>(x[i]) - mean;
        rest.add(d);
        square.add(d * d);
    }
    const float shift = block_sum(rest.get(), scratch) / (float)length;
    const float variance = block_sum(square.get(), scratch) / (float)length - shift * shift;
    moments result;
    // An infinite mean is none to correct.
    result.mean = fabsf(shift) < infinity() ? mean + shift : mean;
    result.variance = variance < 0.0f ? 0.0f : variance;
    return result;
}

struct layer_arguments {
    i64 rows;
    const T *x;
    const T *gain;
    const T *shift;  // may be NULL
    T *y;
    S *mean;        // may be NULL
    S *inverse;     // may be NULL
    i64 length;
    double epsilon;
};

extern "C" __global__ void __launch_bounds__(256) layer_normalization(const layer_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = a.x + row * a.length;
        T *y = a.y + row * a.length;
        const moments row_of = row_moments(x, a.length, scratch);
        const float mean = row_of.mean;
        const float inverse = 1.0f / sqrtf(row_of.variance + (float)a.epsilon);
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            float value = (convert<float>(x[i]) - mean) * inverse * convert<float>(a.gain[i]);
            if (a.shift != 0) {
                value += convert<float>(a.shift[i]);
            }
            y[i] = convert<T>(value);
        }
        if (threadIdx.x == 0) {
            if (a.mean != 0) {
                a.mean[row] = convert<S>(mean);
            }
            if (a.inverse != 0) {
                a.inverse[row] = convert<S>(inverse);
            }
        }
    }
}

// One block for each (image, group): `length` = channels of the group x `spatial` elements.
struct group_arguments {
    i64 rows;
    const T *x;
    const T *gain;
    const T *shift;
    T *y;
    i64 groups, length, spatial;
    i64 per_group;  // 1: gain and shift have an entry a group; 0: an entry a channel
    double epsilon;
};
extern "C" __global__ void __launch_bounds__(256) group_normalization(const group_arguments a) {
    take_turn();
    __shared__ float scratch[33];
    for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = a.x + row * a.length;
        T *y = a.y + row * a.length;
        const moments row_of = row_moments(x, a.length, scratch);
        const float mean = row_of.mean;
        const float inverse = 1.0f / sqrtf(row_of.variance + (float)a.epsilon);
        const i64 group = row % a.groups;
        const i64 channels = a.length / a.spatial;
        for (i64 i = threadIdx.x; i < a.length; i += blockDim.x) {
            const i64 c = a.per_group ? group : group * channels + i / a.spatial;
            y[i] = convert<T>((convert<float>(x[i]) - mean) * inverse * convert<float>(a.gain[c]) +
                              convert<float>(a.shift[c]));
        }
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
