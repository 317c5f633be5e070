// rondo_byte_ending.cuh - what becomes of an exact sum of 8-bit products: it is the result (Y is i32), it
// is brought to the steps of another scale (u8, i8), or it is made a real number, with bias,
// residual and activation (float). x is what changes, and its parameters go by row of the result; w
// are the weights, whose parameters go by column. Each has one value or as many as it counts.
// SPDX-License-Identifier: Apache-2.0

#ifndef RONDO_Y
#define RONDO_Y i32
#endif
typedef RONDO_Y Y;
#ifndef RONDO_S
#define RONDO_S float  // scales
#endif
typedef RONDO_S S;
#ifndef X_IS_UNSIGNED
#define X_IS_UNSIGNED 0
#endif
#ifndef W_IS_UNSIGNED
#define W_IS_UNSIGNED 0
#endif
#ifndef X_HAS_ZERO
#define X_HAS_ZERO 1  // its zero point may be another than 0, as the kernel takes its bytes
#endif
#ifndef W_HAS_ZERO
#define W_HAS_ZERO 1
#endif
#ifndef BIAS_IN_STEPS
#define BIAS_IN_STEPS 0  // of a real result: the bias is rounded down to whole steps of the sum
#endif
#ifndef ACTIVATION
#define ACTIVATION 0  // see rondo_activation.cuh
#endif

template <typename T>
struct bias_of {
    typedef i32 type;
};
template <>
struct bias_of<float> {
    typedef float type;
};

struct ending {
    const u8 *x_zero, *w_zero;                         // may be NULL
    const S *x_scale, *w_scale, *y_scale;              // NULL: 1
    const Y *y_zero;                                   // may be NULL
    const typename bias_of<Y>::type *bias;             // by column; may be NULL
    const float *z;                                    // laid out as y; may be NULL
    i64 x_zeros, w_zeros, x_scales, w_scales, biases;  // how many there are
    i64 depth;                                         // inner extent
    double alpha, beta;
};

__device__ __forceinline__ float read_scale(const S *scale, i64 at) {
    return scale == 0 ? 1.0f : convert<float>(scale[at]);
}

// What a column's sums need, fetched once. `z` is the residual's element.
template <typename To>
struct column_ending {  // steps, in float as the reference rounds them
    i32 bias;
    To zero;
    float w_scale, factor;  // factor: of all rows, or where they have one scale

    __device__ __forceinline__ float scale_of(const ending &e, i64 row) const {
        return __fdiv_rn(__fmul_rn(read_scale(e.x_scale, row), w_scale), read_scale(e.y_scale, 0));
    }
    __device__ __forceinline__ void load(const ending &e, i64 column) {
        bias = e.bias != 0 ? e.bias[find_column(e.biases, column)] : 0;
        zero = e.y_zero != 0 ? *e.y_zero : (To)0;
        w_scale = read_scale(e.w_scale, find_column(e.w_scales, column));
        factor = scale_of(e, 0);
    }
    __device__ __forceinline__ To run(const ending &e, i64 value, i64 row, i64, float) const {
        const float scale =
            e.x_scales == 1 ? factor : scale_of(e, find_parameter(e.x_scales, row));
        return quantize<To>(__fmul_rn((float)(value + bias), scale), zero);
    }
};
template <>
struct column_ending<i32> {  // the sums themselves
    __device__ __forceinline__ void load(const ending &, i64) {
    }
    __device__ __forceinline__ i32 run(const ending &, i64 value, i64, i64, float) const {
        return (i32)value;
    }
};
// As the model's Cast, Mul and Add would have it, each rounded by itself.
template <>
struct column_ending<float> {
    float scale, bias;
    i32 steps;

    __device__ __forceinline__ void load(const ending &e, i64 column) {
        scale = __fmul_rn(read_scale(e.x_scale, 0),
                          read_scale(e.w_scale, find_column(e.w_scales, column)));
        bias = e.bias != 0 ? (float)e.bias[find_column(e.biases, column)] : 0.0f;
        steps = BIAS_IN_STEPS ? convert<i32>(floorf(__fdiv_rn(bias, scale))) : 0;
    }
    __device__ __forceinline__ float run(const ending &e, i64 value, i64, i64, float z) const {
        const i32 sum = (i32)((u32)value + (u32)steps);
        float x = __fmul_rn((float)sum, scale);
        x = !BIAS_IN_STEPS && e.bias != 0 ? __fadd_rn(x, bias) : x;
        x = e.z != 0 ? __fadd_rn(x, z) : x;
        return activate<ACTIVATION>(x, (float)e.alpha, (float)e.beta);
    }
};
