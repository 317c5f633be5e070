// rondo_activation.cuh - the activations of op/fused.h on floats. ACTIVATION is their number there.
// SPDX-License-Identifier: Apache-2.0

__device__ __forceinline__ float gelu(float x) {
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}
__device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
__device__ __forceinline__ float hard_swish(float x) {
    return x * fminf(fmaxf(x * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f);
}
__device__ __forceinline__ float gelu_tanh(float x) {
    return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
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
