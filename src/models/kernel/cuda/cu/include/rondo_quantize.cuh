// rondo_quantize.cuh - from real numbers to steps of small integers, as QuantizeLinear has it.
// SPDX-License-Identifier: Apache-2.0

template <typename T>
struct whole_range {
    static const int low = 0, high = 255;  // u8
};
template <>
struct whole_range<i8> {
    static const int low = -128, high = 127;
};
template <>
struct whole_range<i16> {
    static const int low = -32768, high = 32767;
};
template <>
struct whole_range<u16> {
    static const int low = 0, high = 65535;
};

__device__ __forceinline__ float round_even(float x) {
    return rintf(x);
}
__device__ __forceinline__ double round_even(double x) {
    return rint(x);
}

// A quotient to the nearest whole number, ties to even, moved by the zero point and brought into
// range. NaN is 0, whatever the zero point.
template <typename To, typename Real>
__device__ __forceinline__ To quantize(Real quotient, To zero) {
    const Real x = round_even(quotient) + (Real)zero;
    const int low = whole_range<To>::low, high = whole_range<To>::high;
    return x != x ? (To)0 : x < (Real)low ? (To)low : x > (Real)high ? (To)high : (To)(int)x;
}

// The same for a small integer.
template <typename Real>
__device__ __forceinline__ int quantize_within(Real quotient, int zero, int low, int high) {
    const Real x = round_even(quotient) + (Real)zero;
    return x != x ? 0 : x < (Real)low ? low : x > (Real)high ? high : (int)x;
}

// The quotient is rounded to float before it is rounded to a whole number: a tie in float is a tie.
__device__ __forceinline__ float quotient_of(float x, float scale) {
    return x / scale;
}
__device__ __forceinline__ float quotient_of(double x, double scale) {
    return (float)(x / scale);
}
__device__ __forceinline__ float quotient_of(i32 x, float scale) {
    return (float)((double)x / (double)scale);
}
__device__ __forceinline__ float quotient_of(i32 x, double scale) {
    return (float)((double)x / scale);
}
__device__ __forceinline__ float quotient_of(float x, double scale) {
    return (float)((double)x / scale);
}
__device__ __forceinline__ float quotient_of(double x, float scale) {
    return (float)(x / (double)scale);
}

template <typename X, typename Scale>
__device__ __forceinline__ float quotient_of(X x, Scale scale) {
    return (float)((double)x / (double)scale);
}
// The quotient in a type that attribute precision asks for.
template <typename P>
struct division {
    template <typename X, typename Scale>
    static __device__ __forceinline__ float run(X x, Scale scale) {
        return convert<float>(convert<P>(convert<float>(convert<P>(x)) /
                                         convert<float>(convert<P>(scale))));
    }
};
template <>
struct division<float> {
    template <typename X, typename Scale>
    static __device__ __forceinline__ float run(X x, Scale scale) {
        return quotient_of(x, scale);
    }
};
template <>
struct division<double> {
    template <typename X, typename Scale>
    static __device__ __forceinline__ double run(X x, Scale scale) {
        return (double)x / (double)scale;
    }
};

// Steps of at most 16 bits: float holds the difference, and the product is rounded once.
template <typename T, typename Scale>
__device__ __forceinline__ Scale dequantize(T x, Scale scale, T zero) {
    return (Scale)((int)x - (int)zero) * scale;
}
template <typename Scale>
__device__ __forceinline__ Scale dequantize(i32 x, Scale scale, i32 zero) {
    return (Scale)(((double)x - (double)zero) * (double)scale);
}
// Of any types.
template <typename Y, typename X, typename Scale>
__device__ __forceinline__ Y dequantize_as(X x, Scale scale, X zero) {
    return (Y)(((double)x - (double)zero) * (double)scale);
}
