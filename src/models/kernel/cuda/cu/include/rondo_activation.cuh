// rondo_activation.cuh - the activations of op/fused/fused.h on floats. ACTIVATION is their number
// there.
// SPDX-License-Identifier: Apache-2.0

// 2^x and 1 / x by one instruction each, to 2 units of the last place; results below 1e-38 become 0.
__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// x times the normal distribution's share below x. The share beyond |x| is exp(-x^2 / 2) times a
// polynomial in 1 / (1 + 0.28 |x|), as in Abramowitz and Stegun 7.1.26, with a term more: it is right
// to 2e-8, and in the lower tail to a share of 1e-4, where 1 + erf would leave nothing. Of NaN and
// infinities it makes what 0.5 x (1 + erf(x / sqrt(2))) makes of them.
__device__ __forceinline__ float gelu(float x) {
    const float t = reciprocal(fmaf(fabsf(x), 0.28f, 1.0f));
    float beyond = -0.106518241f;
    beyond = fmaf(beyond, t, 0.392878067f);
    beyond = fmaf(beyond, t, -0.242046751f);
    beyond = fmaf(beyond, t, 0.273133237f);
    beyond = fmaf(beyond, t, 0.065743941f);
    beyond = fmaf(beyond, t, 0.11680974f) * t;
    beyond *= power_of_two(x * x * -0.72134752f);  // -1 / (2 ln 2)
    return x * (x < 0.0f ? beyond : 1.0f - beyond);
}
__device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
__device__ __forceinline__ float hard_swish(float x) {
    return x * fminf(fmaxf(x * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f);
}
// 0.5 x (1 + tanh(u)) is x / (1 + exp(-2 u)), with u = sqrt(2 / pi) (x + 0.044715 x^3): an exponential
// that leaves the range becomes infinity or 0, which are right.
__device__ __forceinline__ float gelu_tanh(float x) {
    const float power = x * fmaf(x * x, -0.102943240f, -2.30220820f);  // -2 u / ln 2
    return x * reciprocal(1.0f + power_of_two(power));
}
template <int KIND>
__device__ __forceinline__ float activate(float x, float alpha, float beta) {
    if (KIND == 1) {
        return x < 0.0f ? 0.0f : x;
    }
    if (KIND == 2) {
        return x < alpha ? alpha : (x > beta ? beta : x);
    }
    if (KIND == 3) {
        return x < 0.0f ? alpha * x : x;
    }
    if (KIND == 4) {
        return sigmoid(x);
    }
    if (KIND == 5) {
        return tanhf(x);
    }
    if (KIND == 6) {
        return gelu(x);
    }
    if (KIND == 7) {
        return x * sigmoid(x);
    }
    if (KIND == 8) {
        return hard_swish(x);
    }
    if (KIND == 9) {
        return gelu_tanh(x);
    }
    return x;
}

// The activation numbered at run time.
__device__ __forceinline__ float activate_by_number(i64 kind, float x, float alpha, float beta) {
    switch ((int)kind) {
        case 1:
            return activate<1>(x, alpha, beta);
        case 2:
            return activate<2>(x, alpha, beta);
        case 3:
            return activate<3>(x, alpha, beta);
        case 4:
            return activate<4>(x, alpha, beta);
        case 5:
            return activate<5>(x, alpha, beta);
        case 6:
            return activate<6>(x, alpha, beta);
        case 7:
            return activate<7>(x, alpha, beta);
        case 8:
            return activate<8>(x, alpha, beta);
        case 9:
            return activate<9>(x, alpha, beta);
        default:
            return x;
    }
}
