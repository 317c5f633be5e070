// elementwise.cu - scalar functions of the element-wise ops. The host appends one kernel that calls
// them (cuda_pointwise.c), so a chain of ops becomes one kernel of exactly the types it needs.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#ifdef RONDO_NARROW
#include "rondo_narrow.cuh"
#endif
#include "rondo_activation.cuh"
#include "rondo_quantize.cuh"

template <typename T>
struct is_floating {
    static const bool value = false;
};
template <>
struct is_floating<float> {
    static const bool value = true;
};
template <>
struct is_floating<double> {
    static const bool value = true;
};

// Float and double versions of one function, under one name.
#define RONDO_REAL(name, single, twofold)                      \
    __device__ __forceinline__ float op_##name(float x) {      \
        return single;                                         \
    }                                                          \
    __device__ __forceinline__ double op_##name(double x) {    \
        return twofold;                                        \
    }
RONDO_REAL(Acos, acosf(x), acos(x))
RONDO_REAL(Acosh, acoshf(x), acosh(x))
RONDO_REAL(Asin, asinf(x), asin(x))
RONDO_REAL(Asinh, asinhf(x), asinh(x))
RONDO_REAL(Atan, atanf(x), atan(x))
RONDO_REAL(Atanh, atanhf(x), atanh(x))
RONDO_REAL(Ceil, ceilf(x), ceil(x))
RONDO_REAL(Cos, cosf(x), cos(x))
RONDO_REAL(Cosh, coshf(x), cosh(x))
RONDO_REAL(Erf, erff(x), erf(x))
RONDO_REAL(Exp, expf(x), exp(x))
RONDO_REAL(Floor, floorf(x), floor(x))
RONDO_REAL(Log, logf(x), log(x))
RONDO_REAL(Round, rintf(x), rint(x))
RONDO_REAL(Sin, sinf(x), sin(x))
RONDO_REAL(Sinh, sinhf(x), sinh(x))
RONDO_REAL(Sqrt, sqrtf(x), sqrt(x))
RONDO_REAL(Tan, tanf(x), tan(x))
RONDO_REAL(Tanh, tanhf(x), tanh(x))
RONDO_REAL(Sigmoid, 1.0f / (1.0f + expf(-x)), 1.0 / (1.0 + exp(-x)))
RONDO_REAL(Softplus, fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))),
           fmax(x, 0.0) + log1p(exp(-fabs(x))))
RONDO_REAL(Softsign, x / (1.0f + fabsf(x)), x / (1.0 + fabs(x)))
RONDO_REAL(Gelu, gelu(x), 0.5 * x * (1.0 + erf(x * 0.70710678118654752)))
RONDO_REAL(GeluTanh, gelu_tanh(x),
           0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))))
RONDO_REAL(Silu, x / (1.0f + expf(-x)), x / (1.0 + exp(-x)))
RONDO_REAL(HardSwish, hard_swish(x), x * fmin(fmax(x / 6.0 + 0.5, 0.0), 1.0))
RONDO_REAL(Mish, x * tanhf(op_Softplus(x)), x * tanh(op_Softplus(x)))
#undef RONDO_REAL

template <typename T>
__device__ __forceinline__ T op_Abs(T x) {
    return x < (T)0 ? (T)-x : (x == (T)0 ? (T)0 : x);
}
template <typename T>
__device__ __forceinline__ T op_Neg(T x) {
    return (T)-x;
}
template <typename T>
__device__ __forceinline__ T op_Reciprocal(T x) {
    return (T)1 / x;
}
template <typename T>
__device__ __forceinline__ T op_Sign(T x) {
    return x > (T)0 ? (T)1 : (x < (T)0 ? (T)-1 : x);
}
template <typename T>
__device__ __forceinline__ T op_Relu(T x) {
    return x < (T)0 ? (T)0 : x;
}
template <typename T>
__device__ __forceinline__ T op_BitwiseNot(T x) {
    return (T)~x;
}
__device__ __forceinline__ bool op_Not(bool x) {
    return !x;
}
template <typename T>
__device__ __forceinline__ bool op_IsNaN(T x) {
    return x != x;
}
template <typename T>
__device__ __forceinline__ bool op_IsInf(T x, bool negative, bool positive) {
    const T huge_value = (T)infinity();
    return (positive && x == huge_value) || (negative && x == -huge_value);
}

// One operand and constants.
template <typename T>
__device__ __forceinline__ T op_Clip(T x, T low, T high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}
// Finite numbers stay finite as f16.
__device__ __forceinline__ float op_Saturate(float x) {
    return fabsf(x) < infinity() ? op_Clip(x, -65504.0f, 65504.0f) : x;
}
template <typename T>
__device__ __forceinline__ T op_LeakyRelu(T x, float alpha, float beta) {
    return x < (T)0 ? (T)alpha * x : x;
}
// exp(x) - 1, also where x is so small that exp(x) is 1.
__device__ __forceinline__ float exp_minus_one(float x) {
    return expm1f(x);
}
__device__ __forceinline__ double exp_minus_one(double x) {
    return expm1(x);
}
template <typename T>
__device__ __forceinline__ T op_Elu(T x, float alpha, float beta) {
    return x < (T)0 ? (T)alpha * exp_minus_one(x) : x;
}
template <typename T>
__device__ __forceinline__ T op_Celu(T x, float alpha, float beta) {
    return x > (T)0 ? x : (T)alpha * exp_minus_one(x / (T)alpha);
}
template <typename T>
__device__ __forceinline__ T op_Selu(T x, float alpha, float beta) {
    return (T)beta * (x > (T)0 ? x : (T)alpha * exp_minus_one(x));
}
__device__ __forceinline__ float op_Swish(float x, float alpha, float beta) {
    return x / (1.0f + expf(-(alpha * x)));
}
__device__ __forceinline__ double op_Swish(double x, float alpha, float beta) {
    return x / (1.0 + exp(-((double)alpha * x)));
}
template <typename T>
__device__ __forceinline__ T op_HardSigmoid(T x, float alpha, float beta) {
    const T y = (T)alpha * x + (T)beta;
    return y < (T)0 ? (T)0 : (y > (T)1 ? (T)1 : y);
}
template <typename T>
__device__ __forceinline__ T op_ThresholdedRelu(T x, float alpha, float beta) {
    return x > (T)alpha ? x : (T)0;  // 0 for NaN, as the standard defines it
}
template <typename T>
__device__ __forceinline__ T op_Shrink(T x, float bias, float lambda) {
    const double wide = (double)x;
    const bool is_below = wide < -(double)lambda;
    if (!is_below && !(wide > (double)lambda)) {
        return (T)0;  // also for NaN
    }
    const float shift = is_below ? bias : -bias;
    return is_floating<T>::value ? (T)(x + (T)shift) : convert<T>(wide + (double)shift);
}
template <typename T>
__device__ __forceinline__ T op_Affine(T x, float alpha, float beta) {
    return (T)alpha * x + (T)beta;
}

// Two operands.
template <typename T>
__device__ __forceinline__ T op_Add(T a, T b) {
    return (T)(a + b);
}
template <typename T>
__device__ __forceinline__ T op_Sub(T a, T b) {
    return (T)(a - b);
}
template <typename T>
__device__ __forceinline__ T op_Mul(T a, T b) {
    return (T)(a * b);
}
template <typename T>
__device__ __forceinline__ T op_Div(T a, T b) {
    if (!is_floating<T>::value && b == (T)0) {
        return (T)0;
    }
    if (!is_floating<T>::value && (T)-1 < (T)0 && b == (T)-1) {
        return (T)((T)0 - a);  // the smallest number stays itself
    }
    return (T)(a / b);
}
// NaN in either operand is the result, as in the reference.
template <typename T>
__device__ __forceinline__ T op_Max(T a, T b) {
    return a != a ? a : (b != b ? b : (a > b ? a : b));
}
template <typename T>
__device__ __forceinline__ T op_Min(T a, T b) {
    return a != a ? a : (b != b ? b : (a < b ? a : b));
}
template <typename T>
__device__ __forceinline__ T op_Gate(T a, T b) {
    return a <= (T)0 ? (T)0 : b;
}
__device__ __forceinline__ float real_power(float a, float b) {
    return powf(a, b);
}
__device__ __forceinline__ double real_power(double a, double b) {
    return pow(a, b);
}
template <typename T, typename E, bool REAL>
struct power {
    static __device__ __forceinline__ T run(T a, E b) {
        return real_power(a, (T)b);
    }
};
template <typename T, typename E>
struct power<T, E, false> {
    static __device__ __forceinline__ T run(T a, E b) {
        if (is_floating<E>::value) {
            return (T)pow((double)a, (double)b);
        }
        i64 exponent = (i64)b;
        if (exponent < 0) {
            const bool is_minus_one = (T)-1 < (T)0 && a == (T)-1;
            return is_minus_one ? (exponent & 1 ? a : (T)1) : a == (T)1 ? a : (T)0;
        }
        T base = a, result = (T)1;
        for (; exponent > 0; exponent >>= 1) {
            if (exponent & 1) {
                result = (T)(result * base);
            }
            base = (T)(base * base);
        }
        return result;
    }
};
template <typename T, typename E>
__device__ __forceinline__ T op_Pow(T a, E b) {
    return power<T, E, is_floating<T>::value>::run(a, b);
}
template <typename T, bool REAL>
struct modulo {
    static __device__ __forceinline__ T run(T a, T b, bool truncate) {
        if (b == (T)0) {
            return (T)0;
        }
        if (b == (T)-1 && (T)-1 < (T)0) {
            return (T)0;
        }
        T r = (T)(a % b);
        if (!truncate && r != (T)0 && ((r < (T)0) != (b < (T)0))) {
            r = (T)(r + b);
        }
        return r;
    }
};
template <typename T>
struct modulo<T, true> {
    static __device__ __forceinline__ T run(T a, T b, bool truncate) {
        T r = (T)fmod(a, b);
        if (!truncate && r != (T)0 && ((r < (T)0) != (b < (T)0))) {
            r = r + b;
        }
        if (!truncate && r == (T)0) {
            r = b < (T)0 ? -(T)0 : (T)0;
        }
        return r;
    }
};
template <typename T>
__device__ __forceinline__ T op_Mod(T a, T b, bool truncate) {
    return modulo<T, is_floating<T>::value>::run(a, b, truncate);
}
template <typename T>
__device__ __forceinline__ T op_PRelu(T x, T slope) {
    return x < (T)0 ? (T)(x * slope) : x;
}
__device__ __forceinline__ bool op_And(bool a, bool b) {
    return a && b;
}
__device__ __forceinline__ bool op_Or(bool a, bool b) {
    return a || b;
}
__device__ __forceinline__ bool op_Xor(bool a, bool b) {
    return a != b;
}
template <typename T>
__device__ __forceinline__ T op_BitwiseAnd(T a, T b) {
    return (T)(a & b);
}
template <typename T>
__device__ __forceinline__ T op_BitwiseOr(T a, T b) {
    return (T)(a | b);
}
template <typename T>
__device__ __forceinline__ T op_BitwiseXor(T a, T b) {
    return (T)(a ^ b);
}
template <typename T>
__device__ __forceinline__ T op_BitShift(T a, T b, bool left) {
    if ((u64)b >= sizeof(T) * 8) {
        return !left && a < (T)0 ? (T)-1 : (T)0;
    }
    return left ? (T)((u64)a << b) : (T)(a >> b);
}
template <typename T>
__device__ __forceinline__ bool op_Equal(T a, T b) {
    return a == b;
}
template <typename T>
__device__ __forceinline__ bool op_Less(T a, T b) {
    return a < b;
}
template <typename T>
__device__ __forceinline__ bool op_LessOrEqual(T a, T b) {
    return a <= b;
}
template <typename T>
__device__ __forceinline__ bool op_Greater(T a, T b) {
    return a > b;
}
template <typename T>
__device__ __forceinline__ bool op_GreaterOrEqual(T a, T b) {
    return a >= b;
}
