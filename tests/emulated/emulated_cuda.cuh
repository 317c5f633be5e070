// emulated/emulated_cuda.cuh — CUDA C++ as a host compiler takes it: stands before each kernel text.
//
// Only what NVRTC knows without header files, and of that what kernels here use. A thread finds its
// place in the machine, one for all; __shared__ is static, as blocks run one after the other. What
// the instructions of a GPU define and C++ does not (conversions out of range, shifts) is written out.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_abi.h"

#define RONDO_EMULATED 1

static emulated_machine *emulated;

#define threadIdx (emulated->thread)
#define blockIdx (emulated->block)
#define blockDim (emulated->block_size)
#define gridDim (emulated->grid_size)
#define warpSize 32

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __grid_constant__

struct uint2 {
    unsigned int x, y;
};
struct alignas(16) uint4 {
    unsigned int x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};

// ---- mathematics ------------------------------------------------------------------------------

extern "C" {
#define EMULATED_ONE(name)   \
    float name##f(float x); \
    double name(double x);
#define EMULATED_TWO(name)             \
    float name##f(float x, float y); \
    double name(double x, double y);
EMULATED_ONE(acos)
EMULATED_ONE(acosh)
EMULATED_ONE(asin)
EMULATED_ONE(asinh)
EMULATED_ONE(atan)
EMULATED_ONE(atanh)
EMULATED_ONE(cbrt)
EMULATED_ONE(ceil)
EMULATED_ONE(cos)
EMULATED_ONE(cosh)
EMULATED_ONE(erf)
EMULATED_ONE(erfc)
EMULATED_ONE(exp)
EMULATED_ONE(exp2)
EMULATED_ONE(expm1)
EMULATED_ONE(fabs)
EMULATED_ONE(floor)
EMULATED_ONE(lgamma)
EMULATED_ONE(log)
EMULATED_ONE(log10)
EMULATED_ONE(log1p)
EMULATED_ONE(log2)
EMULATED_ONE(nearbyint)
EMULATED_ONE(rint)
EMULATED_ONE(round)
EMULATED_ONE(sin)
EMULATED_ONE(sinh)
EMULATED_ONE(sqrt)
EMULATED_ONE(tan)
EMULATED_ONE(tanh)
EMULATED_ONE(tgamma)
EMULATED_ONE(trunc)
EMULATED_TWO(atan2)
EMULATED_TWO(copysign)
EMULATED_TWO(fdim)
EMULATED_TWO(fmax)
EMULATED_TWO(fmin)
EMULATED_TWO(fmod)
EMULATED_TWO(hypot)
EMULATED_TWO(pow)
EMULATED_TWO(remainder)
float fmaf(float x, float y, float z);
double fma(double x, double y, double z);
float ldexpf(float x, int exponent);
double ldexp(double x, int exponent);
int abs(int x);
void *memcpy(void *to, const void *from, unsigned long bytes);
void *memset(void *to, int value, unsigned long bytes);
}
#undef EMULATED_ONE
#undef EMULATED_TWO

// The names that take both types in CUDA C++.
#define EMULATED_FLOAT_ONE(name)      \
    static inline float name(float x) { \
        return name##f(x);            \
    }
#define EMULATED_FLOAT_TWO(name)               \
    static inline float name(float x, float y) { \
        return name##f(x, y);                  \
    }
EMULATED_FLOAT_ONE(ceil)
EMULATED_FLOAT_ONE(cos)
EMULATED_FLOAT_ONE(erf)
EMULATED_FLOAT_ONE(exp)
EMULATED_FLOAT_ONE(expm1)
EMULATED_FLOAT_ONE(fabs)
EMULATED_FLOAT_ONE(floor)
EMULATED_FLOAT_ONE(log)
EMULATED_FLOAT_ONE(log1p)
EMULATED_FLOAT_ONE(log2)
EMULATED_FLOAT_ONE(rint)
EMULATED_FLOAT_ONE(round)
EMULATED_FLOAT_ONE(sin)
EMULATED_FLOAT_ONE(sqrt)
EMULATED_FLOAT_ONE(tanh)
EMULATED_FLOAT_ONE(trunc)
EMULATED_FLOAT_TWO(copysign)
EMULATED_FLOAT_TWO(fmax)
EMULATED_FLOAT_TWO(fmin)
EMULATED_FLOAT_TWO(fmod)
EMULATED_FLOAT_TWO(pow)
#undef EMULATED_FLOAT_ONE
#undef EMULATED_FLOAT_TWO
static inline float fma(float x, float y, float z) {
    return fmaf(x, y, z);
}
static inline float abs(float x) {
    return fabsf(x);
}
static inline double abs(double x) {
    return fabs(x);
}
static inline long long abs(long long x) {
    return x < 0 ? -x : x;
}

#define isnan(x) __builtin_isnan(x)
#define isinf(x) (__builtin_isinf(x) != 0)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) (__builtin_signbit(x) != 0)

template <typename A, typename B>
struct emulated_wider {
    typedef decltype(A() + B()) type;
};
template <typename A, typename B>
static inline typename emulated_wider<A, B>::type min(A a, B b) {
    typedef typename emulated_wider<A, B>::type C;
    return (C)b < (C)a ? (C)b : (C)a;
}
template <typename A, typename B>
static inline typename emulated_wider<A, B>::type max(A a, B b) {
    typedef typename emulated_wider<A, B>::type C;
    return (C)b > (C)a ? (C)b : (C)a;
}
// A NaN loses.
static inline float min(float a, float b) {
    return fminf(a, b);
}
static inline float max(float a, float b) {
    return fmaxf(a, b);
}
static inline double min(double a, double b) {
    return fmin(a, b);
}
static inline double max(double a, double b) {
    return fmax(a, b);
}

static inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x) {
    return 1.0 / sqrt(x);
}
static inline float __expf(float x) {
    return expf(x);
}
static inline float __logf(float x) {
    return logf(x);
}
static inline float __fdividef(float x, float y) {
    return x / y;
}
static inline float __fmaf_rn(float x, float y, float z) {
    return fmaf(x, y, z);
}
static inline double __fma_rn(double x, double y, double z) {
    return fma(x, y, z);
}
// Never fused with what comes next.
static inline float __fmul_rn(float x, float y) {
    return x * y;
}
static inline float __fadd_rn(float x, float y) {
    return x + y;
}
static inline float __fsub_rn(float x, float y) {
    return x - y;
}
static inline float __fdiv_rn(float x, float y) {
    return x / y;
}
static inline double __dmul_rn(double x, double y) {
    return x * y;
}
static inline double __dadd_rn(double x, double y) {
    return x + y;
}
static inline double __ddiv_rn(double x, double y) {
    return x / y;
}
static inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
static inline double __dsqrt_rn(double x) {
    return sqrt(x);
}

// ---- bits -------------------------------------------------------------------------------------

template <typename To, typename From>
static inline To emulated_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
static inline float __int_as_float(int x) {
    return emulated_bits<float>(x);
}
static inline float __uint_as_float(unsigned int x) {
    return emulated_bits<float>(x);
}
static inline int __float_as_int(float x) {
    return emulated_bits<int>(x);
}
static inline unsigned int __float_as_uint(float x) {
    return emulated_bits<unsigned int>(x);
}
static inline double __longlong_as_double(long long x) {
    return emulated_bits<double>(x);
}
static inline long long __double_as_longlong(double x) {
    return emulated_bits<long long>(x);
}
static inline int __popc(unsigned int x) {
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
static inline int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz((unsigned int)x);
}
static inline int __clzll(long long x) {
    return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
static inline unsigned int __brev(unsigned int x) {
    unsigned int y = 0;
    for (int bit = 0; bit < 32; bit++) {
        y |= (x >> bit & 1u) << (31 - bit);
    }
    return y;
}
static inline unsigned int __umulhi(unsigned int x, unsigned int y) {
    return (unsigned int)((unsigned long long)x * y >> 32);
}
static inline int __mulhi(int x, int y) {
    return (int)((long long)x * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
// Four products of bytes, added to z.
static inline int __dp4a(int x, int y, int z) {
    for (int i = 0; i < 4; i++) {
        z += (int)(signed char)(x >> (8 * i)) * (int)(signed char)(y >> (8 * i));
    }
    return z;
}
static inline unsigned int __dp4a(unsigned int x, unsigned int y, unsigned int z) {
    for (int i = 0; i < 4; i++) {
        z += (x >> (8 * i) & 255u) * (y >> (8 * i) & 255u);
    }
    return z;
}
static inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned int z = 0;
    for (int i = 0; i < 4; i++) {
        z |= (unsigned int)(both >> (8 * (selector >> (4 * i) & 7u)) & 255u) << (8 * i);
    }
    return z;
}

// Real to whole, towards zero: NaN becomes 0 or the smallest, what is out of range the nearest.
template <typename To, typename From>
static inline To emulated_whole(From x, From below, From above, To smallest, To largest, To of_nan) {
    return x != x ? of_nan : x <= below ? smallest : x >= above ? largest : (To)x;
}
#define EMULATED_SMALLEST ((long long)(1ull << 63))
static inline long long __double2ll_rz(double x) {
    return emulated_whole<long long>(x, -0x1p63, 0x1p63, EMULATED_SMALLEST, ~EMULATED_SMALLEST,
                                     EMULATED_SMALLEST);
}
static inline long long __float2ll_rz(float x) {
    return emulated_whole<long long>(x, -0x1p63f, 0x1p63f, EMULATED_SMALLEST, ~EMULATED_SMALLEST,
                                     EMULATED_SMALLEST);
}
static inline unsigned long long __double2ull_rz(double x) {
    return emulated_whole<unsigned long long>(x, 0.0, 0x1p64, 0ull, ~0ull, 1ull << 63);
}
static inline unsigned long long __float2ull_rz(float x) {
    return emulated_whole<unsigned long long>(x, 0.0f, 0x1p64f, 0ull, ~0ull, 1ull << 63);
}
static inline int __float2int_rz(float x) {
    return emulated_whole<int>(x, -0x1p31f, 0x1p31f, (int)(1u << 31), 0x7fffffff, 0);
}
static inline int __double2int_rz(double x) {
    return emulated_whole<int>(x, -0x1p31, 0x1p31, (int)(1u << 31), 0x7fffffff, 0);
}
static inline int __float2int_rn(float x) {
    return __float2int_rz(rintf(x));
}
static inline int __double2int_rn(double x) {
    return __double2int_rz(rint(x));
}
static inline unsigned int __float2uint_rz(float x) {
    return emulated_whole<unsigned int>(x, 0.0f, 0x1p32f, 0u, ~0u, 0u);
}

// The instructions cvt.f32.f16 and cvt.rn.f16.f32 (every NaN becomes 0x7fff).
static inline float emulated_half_to_float(unsigned short bits) {
    const unsigned int sign = (unsigned int)(bits & 0x8000u) << 16;
    const unsigned int exponent = bits >> 10 & 31u, fraction = bits & 1023u;
    if (exponent == 0) {
        const float size = (float)fraction * 0x1p-24f;
        return sign != 0 ? -size : size;
    }
    const unsigned int moved = exponent == 31 ? 255u : exponent + 112u;
    return __uint_as_float(sign | moved << 23 | fraction << 13);
}
static inline unsigned short emulated_half_from_float(float x) {
    const unsigned int all = __float_as_uint(x), sign = all >> 16 & 0x8000u;
    const float size = fabsf(x);
    if (x != x) {
        return 0x7fff;
    }
    if (size >= 65520.0f) {
        return (unsigned short)(sign | 0x7c00u);
    }
    if (size < 0x1p-14f) {
        // Steps of 2^-24; 1024 of them are the smallest normal number.
        return (unsigned short)(sign | (unsigned int)rintf(size * 0x1p24f));
    }
    const unsigned int kept = all & 0x7fffffffu;
    const unsigned int rounded = kept + 0xfffu + (kept >> 13 & 1u);
    return (unsigned short)(sign | ((rounded >> 13) - (112u << 10)));
}

// ---- memory and threads -----------------------------------------------------------------------

template <typename T>
static inline T __ldg(const T *address) {
    return *address;
}
static inline void __threadfence(void) {
}
static inline void __threadfence_block(void) {
}
static inline void __threadfence_system(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define EMULATED_ATOMIC(name, result)                            \
    template <typename T, typename V>                            \
    static inline T name(T *address, V operand) {                \
        const T old = *address, value = (T)operand;              \
        *address = (result);                                     \
        return old;                                              \
    }
EMULATED_ATOMIC(atomicAdd, (T)(old + value))
EMULATED_ATOMIC(atomicSub, (T)(old - value))
EMULATED_ATOMIC(atomicExch, value)
EMULATED_ATOMIC(atomicMin, value < old ? value : old)
EMULATED_ATOMIC(atomicMax, value > old ? value : old)
EMULATED_ATOMIC(atomicAnd, old &value)
EMULATED_ATOMIC(atomicOr, old | value)
EMULATED_ATOMIC(atomicXor, old ^ value)
#undef EMULATED_ATOMIC
template <typename T, typename V, typename W>
static inline T atomicCAS(T *address, V expected, W desired) {
    const T old = *address;
    if (old == (T)expected) {
        *address = (T)desired;
    }
    return old;
}

static inline void __syncthreads(void) {
    emulated->meet_block();
}
static inline int __syncthreads_count(int predicate) {
    static int count;
    emulated->meet_block();
    count = 0;
    emulated->meet_block();
    count += predicate != 0 ? 1 : 0;
    emulated->meet_block();
    return count;
}
static inline int __syncthreads_or(int predicate) {
    return __syncthreads_count(predicate) != 0;
}
static inline int __syncthreads_and(int predicate) {
    return __syncthreads_count(predicate == 0) == 0;
}

static inline unsigned int emulated_get_lane(void) {
    const unsigned int row = emulated->thread.y + emulated->block_size.y * emulated->thread.z;
    return (emulated->thread.x + emulated->block_size.x * row) % EMULATED_WARP;
}
static inline void __syncwarp(unsigned int mask = ~0u) {
    unsigned int lanes;
    emulated->meet_warp(mask, 0, &lanes);
}
// The value of another lane of this group of `width`; one that is not there yields the own one.
template <typename T>
static inline T emulated_shuffle(unsigned int mask, T value, int source, bool is_inside) {
    static_assert(sizeof(T) <= 8, "a shuffle moves a word");
    unsigned long long word = 0;
    unsigned int lanes;
    memcpy(&word, &value, sizeof(T));
    const unsigned long long *words = emulated->meet_warp(mask, word, &lanes);
    if (is_inside && (lanes >> source & 1u) != 0) {
        memcpy(&value, &words[source], sizeof(T));
    }
    return value;
}
template <typename T>
static inline T __shfl_sync(unsigned int mask, T value, int source, int width = 32) {
    const int lane = (int)emulated_get_lane();
    return emulated_shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), true);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned int mask, T value, int flipped, int width = 32) {
    const int lane = (int)emulated_get_lane(), source = lane ^ flipped;
    return emulated_shuffle(mask, value, source & 31, source < (lane & ~(width - 1)) + width);
}
template <typename T>
static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int distance, int width = 32) {
    const int lane = (int)emulated_get_lane(), source = lane + (int)distance;
    return emulated_shuffle(mask, value, source & 31, source < (lane & ~(width - 1)) + width);
}
template <typename T>
static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int distance, int width = 32) {
    const int lane = (int)emulated_get_lane(), source = lane - (int)distance;
    return emulated_shuffle(mask, value, source & 31, source >= (lane & ~(width - 1)));
}
static inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
    unsigned int lanes, ballot = 0;
    const unsigned long long *words = emulated->meet_warp(mask, predicate != 0 ? 1 : 0, &lanes);
    for (int lane = 0; lane < EMULATED_WARP; lane++) {
        ballot |= (lanes >> lane & 1u) != 0 && words[lane] != 0 ? 1u << lane : 0;
    }
    return ballot & mask;
}
static inline int __any_sync(unsigned int mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned int mask, int predicate) {
    return __ballot_sync(mask, predicate == 0) == 0;
}

// ---- what is called ---------------------------------------------------------------------------

// Takes the arguments out of the driver's packed bytes: each at the next multiple of its alignment.
template <typename T>
static inline T emulated_take(const unsigned char *arguments, unsigned long &at) {
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    T value;
    memcpy((void *)&value, arguments + at, sizeof(T));
    at += sizeof(T);
    return value;
}
template <typename T>
struct emulated_plain {
    typedef T type;
};
template <typename T>
struct emulated_plain<const T> {
    typedef T type;
};
template <typename... P>
struct emulated_taken {
    void (*kernel)(P...);
    // Braces are evaluated from left to right.
    emulated_taken(void (*kernel)(P...), P... p) {
        kernel(p...);
    }
};
template <typename... P>
static inline void emulated_call(void (*kernel)(P...), const unsigned char *arguments) {
    unsigned long at = 0;
    (void)at;
    emulated_taken<P...>{kernel, emulated_take<typename emulated_plain<P>::type>(arguments, at)...};
}
#define EMULATED_KERNEL(name)                                                                  \
    extern "C" __attribute__((visibility("default"))) void emulated_thread_##name(             \
        emulated_machine *machine, const unsigned char *arguments) {                           \
        emulated = machine;                                                                    \
        emulated_call(name, arguments);                                                        \
    }
