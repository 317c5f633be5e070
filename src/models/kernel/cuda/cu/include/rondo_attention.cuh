// rondo_attention.cuh - what the kernels of attention are told. T and V_WIDTH are defined before.
// SPDX-License-Identifier: Apache-2.0

struct strides {
    i64 batch, head, row, column;
};

struct attention_arguments {
    const T *q;
    const T *k;
    const T *v;
    const T *mask;  // may be NULL
    T *y;
    float *parts;  // [batch, heads, m, part_count, V_WIDTH + 2]: sums, their peak, their total
    i64 batch, heads, m, n;
    strides at_q, at_k, at_v, at_mask, at_y;
    i64 part_count, part_keys;
    double scale;
};

__device__ __forceinline__ i64 find(const strides &s, i64 batch, i64 head, i64 row) {
    return batch * s.batch + head * s.head + row * s.row;
}

// exp(x - peak), where no peak (all before was -inf) takes nothing away.
__device__ __forceinline__ float weight_of(float x, float peak) {
    return expf(x - (peak == -infinity() ? 0.0f : peak));
}
