// rondo_boxes.cuh - boxes, and which of them cover each other, as NonMaxSuppression has it. In float, as the
// reference rounds: build with -fmad=false.
// SPDX-License-Identifier: Apache-2.0

struct box {
    float low[2], high[2], area;
};

// Corners may come in either order; a center box is (x, y, width, height), and one of a negative extent
// covers nothing.
__device__ __forceinline__ box read_box(const float *values, bool is_center) {
    box b;
    b.area = 1.0f;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float first = values[i], second = values[i + 2];
        if (is_center) {
            b.low[i] = first - second / 2.0f;
            b.high[i] = first + second / 2.0f;
        } else {
            b.low[i] = first < second ? first : second;
            b.high[i] = first < second ? second : first;
        }
        b.area *= b.high[i] - b.low[i];
    }
    return b;
}

__device__ __forceinline__ bool covers(const box &mine, const box &other, float threshold) {
    float shared = 1.0f;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float low = mine.low[i] > other.low[i] ? mine.low[i] : other.low[i];
        const float high = mine.high[i] < other.high[i] ? mine.high[i] : other.high[i];
        shared *= high > low ? high - low : 0.0f;
    }
    if (!(shared > 0.0f)) {
        return 0.0f > threshold;
    }
    const float all = mine.area + other.area - shared;
    const bool is_real = mine.area > 0.0f && other.area > 0.0f && all > 0.0f;
    return (is_real ? __fdiv_rn(shared, all) : 0.0f) > threshold;
}
