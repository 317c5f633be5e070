// emulated/emulated_cuda.cuh — CUDA C++ for a host compiler: stands before each kernel text.
//
// Only what NVRTC knows without header files, and of that what kernels here use. A thread finds its
// place in the machine, one for all; __shared__ is static, as blocks run one after the other. What
// the instructions of a GPU define and C++ does not (conversions out of range) is written out.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_abi.h"

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
#define __cluster_dims__(...)
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

// To float, towards zero. What a long double of 64 digits holds is exact.
template <typename From>
static inline float emulated_cut(From x) {
    const float nearest = (float)x;
    const bool is_beyond =
        __builtin_fabsl((long double)nearest) > __builtin_fabsl((long double)x);
    return is_beyond ? __builtin_nextafterf(nearest, 0.0f) : nearest;
}
static inline float __double2float_rz(double x) {
    return emulated_cut(x);
}
static inline float __ll2float_rz(long long x) {
    return emulated_cut(x);
}
static inline float __ull2float_rz(unsigned long long x) {
    return emulated_cut(x);
}
static inline float __int2float_rz(int x) {
    return emulated_cut(x);
}
static inline float __uint2float_rz(unsigned int x) {
    return emulated_cut(x);
}

// Real to whole, towards zero: NaN becomes 0 or the smallest, what is out of range the nearest.
template <typename To, typename From>
static inline To emulated_whole(From x, From below, From above, To smallest, To largest,
                                To of_nan) {
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
static inline void emulated_cvt_f32_f16(float &y, unsigned short bits) {
    const unsigned int sign = (unsigned int)(bits & 0x8000u) << 16;
    const unsigned int exponent = bits >> 10 & 31u, fraction = bits & 1023u;
    if (exponent == 0) {
        const float size = (float)fraction * 0x1p-24f;
        y = sign != 0 ? -size : size;
        return;
    }
    const unsigned int moved = exponent == 31 ? 255u : exponent + 112u;
    y = __uint_as_float(sign | moved << 23 | fraction << 13);
}
static inline unsigned short emulated_half(float x) {
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
static inline void emulated_cvt_rn_f16_f32(unsigned short &y, float x) {
    y = emulated_half(x);
}
// Two halves at once.
static inline void emulated_both_halves(unsigned int &y, unsigned int a, unsigned int b, float sign,
                                        bool is_product) {
    unsigned int both = 0;
    for (int i = 0; i < 32; i += 16) {
        float of_a, of_b;
        unsigned short half;
        emulated_cvt_f32_f16(of_a, (unsigned short)(a >> i));
        emulated_cvt_f32_f16(of_b, (unsigned short)(b >> i));
        emulated_cvt_rn_f16_f32(half, is_product ? of_a * of_b : of_a + sign * of_b);
        both |= (unsigned int)half << i;
    }
    y = both;
}
static inline void emulated_sub_rn_f16x2(unsigned int &y, unsigned int a, unsigned int b) {
    emulated_both_halves(y, a, b, -1.0f, false);
}
// Bit i of the last operand is what three bits give whose number is i, the first one the highest.
static inline void emulated_lop3_b32(unsigned int &y, unsigned int a, unsigned int b,
                                     unsigned int c, unsigned int bits) {
    y = 0;
    for (unsigned int i = 0; i < 8; i++) {
        const unsigned int is_it = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
        y |= bits >> i & 1 ? is_it : 0u;
    }
}
static inline void emulated_mul_rn_f16x2(unsigned int &y, unsigned int a, unsigned int b) {
    emulated_both_halves(y, a, b, 1.0f, true);
}

// Denormals are zeros, and come out as such.
static inline float emulated_flush(float x) {
    return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x;
}
static inline void emulated_ex2_approx_ftz_f32(float &y, float x) {
    y = emulated_flush(exp2f(emulated_flush(x)));
}
static inline void emulated_rcp_approx_ftz_f32(float &y, float x) {
    y = emulated_flush(1.0f / emulated_flush(x));
}

// Clocks, and launches that overlap: here nothing does.
static inline void emulated_mov_u64_globaltimer(unsigned long long &ns) {
    ns = emulated->now_ns();
}
static inline void emulated_griddepcontrol_launch_dependents(void) {
}
static inline void emulated_griddepcontrol_wait(void) {
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
    const emulated_words nothing = {};
    emulated->meet_warp(mask, &nothing, &lanes);
}
// The value of another lane of this group of `width`; one that is not there yields the own one.
template <typename T>
static inline T emulated_shuffle(unsigned int mask, T value, int source, bool is_inside) {
    static_assert(sizeof(T) <= 8, "a shuffle moves a word");
    emulated_words word = {};
    unsigned int lanes;
    memcpy(&word, &value, sizeof(T));
    const emulated_words *words = emulated->meet_warp(mask, &word, &lanes);
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
static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int distance,
                                 int width = 32) {
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
    const emulated_words word = {{predicate != 0 ? 1ull : 0ull}};
    const emulated_words *words = emulated->meet_warp(mask, &word, &lanes);
    for (int lane = 0; lane < EMULATED_WARP; lane++) {
        ballot |= (lanes >> lane & 1u) != 0 && words[lane].word[0] != 0 ? 1u << lane : 0;
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
template <typename... P>
static constexpr unsigned int emulated_get_bytes(void (*)(P...)) {
    unsigned long at = 0;
    ((at = (at + alignof(P) - 1) / alignof(P) * alignof(P) + sizeof(P)), ...);
    return (unsigned int)at;
}
template <typename... P>
static constexpr unsigned int emulated_count_parameters(void (*)(P...)) {
    return sizeof...(P);
}
template <unsigned int N>
struct emulated_layout {
    unsigned int count;
    unsigned int place[2 * N + 1];  // offset and size of each, and one that is not used
};
template <typename... P>
static constexpr emulated_layout<sizeof...(P)> emulated_get_layout(void (*)(P...)) {
    emulated_layout<sizeof...(P)> layout = {sizeof...(P), {0}};
    unsigned long at = 0;
    unsigned int i = 0;
    (void)i;
    ((at = (at + alignof(P) - 1) / alignof(P) * alignof(P), layout.place[i++] = (unsigned int)at,
      layout.place[i++] = sizeof(P), at += sizeof(P)),
     ...);
    return layout;
}
static constexpr unsigned int emulated_count_blocks(unsigned int x, unsigned int y = 1,
                                                   unsigned int z = 1) {
    return x * y * z;
}
// `blocks` of the grid run together, as a cluster.
#define EMULATED_KERNEL(name, blocks)                                                          \
    extern "C" __attribute__((visibility("default"))) void emulated_thread_##name(             \
        emulated_machine *machine, const unsigned char *arguments) {                           \
        emulated = machine;                                                                    \
        emulated_call(name, arguments);                                                        \
    }                                                                                          \
    extern "C" __attribute__((visibility("default")))                                          \
    const unsigned int emulated_bytes_##name = emulated_get_bytes(name);                       \
    extern "C" __attribute__((visibility("default")))                                          \
    const emulated_layout<emulated_count_parameters(name)> emulated_layout_##name =            \
        emulated_get_layout(name);                                                             \
    extern "C" __attribute__((visibility("default")))                                          \
    const unsigned int emulated_cluster_##name = (blocks);

// ---- instructions of the tensor cores ---------------------------------------------------------

static inline void __nanosleep(unsigned int) {}
static inline void emulated_prefetch_global_L2(const void *) {}
static inline float2 make_float2(float x, float y) {
    const float2 v = {x, y};
    return v;
}
static inline float4 make_float4(float x, float y, float z, float w) {
    const float4 v = {x, y, z, w};
    return v;
}

// Addresses in shared memory are offsets into the dynamic one of this block; those of static arrays,
// which lie in the text's own data, are offsets from an anchor there.
enum { EMULATED_DYNAMIC_BYTES = 1 << 24, EMULATED_STATIC_MIDDLE = 1 << 28 };
static unsigned char emulated_anchor[16] __attribute__((aligned(16)));
static inline unsigned long __cvta_generic_to_shared(const void *address) {
    const unsigned char *at = (const unsigned char *)address;
    return at >= emulated->shared && at < emulated->shared + EMULATED_DYNAMIC_BYTES
               ? (unsigned long)(at - emulated->shared)
               : (unsigned long)(at - emulated_anchor + EMULATED_STATIC_MIDDLE);
}
static inline unsigned char *emulated_at_shared(unsigned int address) {
    return address < EMULATED_DYNAMIC_BYTES
               ? emulated->shared + address
               : emulated_anchor + ((long)address - EMULATED_STATIC_MIDDLE);
}
static inline float emulated_read_half(const unsigned char *bytes) {
    unsigned short bits;
    float value;
    memcpy(&bits, bytes, sizeof(bits));
    emulated_cvt_f32_f16(value, bits);
    return value;
}
static inline float emulated_low_half(unsigned long long word, unsigned int index) {
    float value;
    emulated_cvt_f32_f16(value, (unsigned short)(word >> (16 * index)));
    return value;
}

// Copies happen when their group is waited for, as late as they may.
enum { EMULATED_COPIES = 256 };
struct emulated_copies {
    struct {
        unsigned char *to;
        const void *from;
        int bytes, size;  // there are, and with the zeros behind them
        unsigned int group;
    } copy[EMULATED_COPIES];
    unsigned int count, group;
};
static inline emulated_copies &emulated_own_copies(void) {
    static emulated_copies all[EMULATED_THREADS];
    return all[emulated->index];
}
static inline void emulated_cp_async_ca_shared_global(unsigned int to, const void *from, int bytes,
                                                      int size) {
    emulated_copies &own = emulated_own_copies();
    if (own.count == EMULATED_COPIES || to % (unsigned int)size != 0 ||
        (unsigned long)from % (unsigned long)size != 0) {
        __builtin_trap();
    }
    own.copy[own.count++] = {emulated_at_shared(to), from, bytes, size, own.group};
}
static inline void emulated_cp_async_cg_shared_global(unsigned int to, const void *from,
                                                      int bytes) {
    emulated_cp_async_ca_shared_global(to, from, bytes, 16);
}
static inline void emulated_cp_async_commit_group(void) {
    emulated_own_copies().group++;
}
// All but the last `left` groups.
static inline void emulated_cp_async_wait_group(int left = 0) {
    emulated_copies &own = emulated_own_copies();
    unsigned int kept = 0;
    for (unsigned int i = 0; i < own.count; i++) {
        if (own.copy[i].group + (unsigned int)left >= own.group) {
            own.copy[kept++] = own.copy[i];
        } else {
            memset(own.copy[i].to, 0, (unsigned long)own.copy[i].size);
            memcpy(own.copy[i].to, own.copy[i].from, (unsigned long)own.copy[i].bytes);
        }
    }
    own.count = kept;
}
static inline void emulated_cp_async_wait_all(void) {
    emulated_cp_async_commit_group();
    emulated_cp_async_wait_group();
}

// Four matrices of 8 x 8 halves: lane i brings the address of row i % 8 of matrix i / 8, and takes
// two neighbours of row i / 4 of each.
static inline void emulated_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned int &r0,
                                                                     unsigned int &r1,
                                                                     unsigned int &r2,
                                                                     unsigned int &r3,
                                                                     unsigned int from) {
    const emulated_words own = {{from}};
    unsigned int lanes, r[4];
    const emulated_words *all = emulated->meet_warp(~0u, &own, &lanes);
    const unsigned int lane = emulated_get_lane();
    for (unsigned int i = 0; i < 4; i++) {
        memcpy(&r[i], emulated_at_shared((unsigned int)all[i * 8 + lane / 4].word[0]) + lane % 4 * 4,
               4);
    }
    r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
}

// The same of the matrices turned: lane i takes two neighbours of column i / 4.
static inline void emulated_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned int &r0,
                                                                           unsigned int &r1,
                                                                           unsigned int &r2,
                                                                           unsigned int &r3,
                                                                           unsigned int from) {
    const emulated_words own = {{from}};
    unsigned int lanes, r[4];
    const emulated_words *all = emulated->meet_warp(~0u, &own, &lanes);
    const unsigned int lane = emulated_get_lane(), row = lane % 4 * 2, column = lane / 4 * 2;
    for (unsigned int i = 0; i < 4; i++) {
        const emulated_words *rows = &all[i * 8 + row];
        memcpy(&r[i], emulated_at_shared((unsigned int)rows[0].word[0]) + column, 2);
        memcpy((unsigned char *)&r[i] + 2, emulated_at_shared((unsigned int)rows[1].word[0]) + column,
               2);
    }
    r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
}

// d += A B, with A 16 x 16 and B 16 x 8. Lane i has of A rows i / 4 and that + 8, columns i % 4 * 2
// and its neighbour, and those + 8; of B column i / 4, rows as A's columns; of d A's rows, columns
// i % 4 * 2 and its neighbour.
static inline void emulated_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(
    float &d0, float &d1, float &d2, float &d3, unsigned int a0, unsigned int a1, unsigned int a2,
    unsigned int a3, unsigned int b0, unsigned int b1) {
    const emulated_words own = {{a0 | (unsigned long long)a1 << 32,
                                 a2 | (unsigned long long)a3 << 32,
                                 b0 | (unsigned long long)b1 << 32}};
    unsigned int lanes;
    const emulated_words *all = emulated->meet_warp(~0u, &own, &lanes);
    const unsigned int lane = emulated_get_lane(), row = lane / 4, column = lane % 4 * 2;
    float sum[4] = {d0, d1, d2, d3};
    for (unsigned int k = 0; k < 16; k++) {
        // The lane with this k among the four of a row or column, its half in the lower or upper
        // eight columns.
        const unsigned int holder = k % 8 / 2, upper = k / 8, half = k % 2;
        const emulated_words *const of_a = &all[row * 4 + holder];
        const float low = emulated_low_half(of_a->word[upper], half);
        const float high = emulated_low_half(of_a->word[upper], 2 + half);
        for (unsigned int c = 0; c < 2; c++) {
            const float b =
                emulated_low_half(all[(column + c) * 4 + holder].word[2], 2 * upper + half);
            sum[c] += low * b;
            sum[2 + c] += high * b;
        }
    }
    d0 = sum[0], d1 = sum[1], d2 = sum[2], d3 = sum[3];
}

// Hopper's product of 64 rows: both operands lie in shared memory, their rows 128, 64 or 32 bytes long,
// with 16-byte pieces permuted by the row.
static inline unsigned int emulated_swizzle(unsigned int address, unsigned int row_bytes) {
    return address ^ ((address >> 7) & (row_bytes / 16 - 1)) << 4;
}
static inline float emulated_read_tile(unsigned long long tile, unsigned int row, unsigned int k,
                                       bool is_turned = false) {
    if (is_turned) {  // lines of 64 rows, a line for each k
        const unsigned int line = row;
        row = k;
        k = line;
    }
    const unsigned int start = (unsigned int)(tile & 0x3fff) << 4;
    const unsigned int stride = (unsigned int)(tile >> 32 & 0x3fff) << 4;
    if (tile >> 62 == 0) {
        __builtin_trap();
    }
    const unsigned int row_bytes = 256u >> (tile >> 62);
    const unsigned int at = start + row / 8 * stride + row % 8 * row_bytes + k * 2;
    return emulated_read_half(emulated->shared + emulated_swizzle(at, row_bytes));
}
static inline void emulated_multiply_group(float *const *d, unsigned int columns,
                                           unsigned long long a, unsigned long long b,
                                           bool a_is_turned) {
    const unsigned int lane = emulated_get_lane();
    const unsigned int row = emulated->thread.x / 32 % 4 * 16 + lane / 4, column = lane % 4 * 2;
    for (unsigned int k = 0; k < 16; k++) {
        const float low = emulated_read_tile(a, row, k, a_is_turned);
        const float high = emulated_read_tile(a, row + 8, k, a_is_turned);
        for (unsigned int j = 0; j < columns; j += 8) {
            for (unsigned int c = 0; c < 2; c++) {
                const float other = emulated_read_tile(b, j + column + c, k);
                *d[j / 2 + c] += low * other;
                *d[j / 2 + 2 + c] += high * other;
            }
        }
    }
}
template <unsigned int COLUMNS, typename... D>
static inline void emulated_wgmma(unsigned long long a, unsigned long long b, int a_is_turned,
                                  D &...d) {
    static_assert(sizeof...(D) == COLUMNS / 2, "the sums of one lane");
    float *const sums[] = {&d...};
    emulated_multiply_group(sums, COLUMNS, a, b, a_is_turned != 0);
}
// The sums come first, the tiles and how the left one lies last.
template <unsigned int COLUMNS, unsigned int TAKEN, typename First, typename... Rest>
static inline void emulated_wgmma_turn(First &&first, Rest &&...rest) {
    if constexpr (TAKEN == COLUMNS / 2) {
        emulated_wgmma<COLUMNS>(first, rest...);
    } else {
        emulated_wgmma_turn<COLUMNS, TAKEN + 1>(rest..., first);
    }
}
#define EMULATED_WGMMA(n)                                                                         \
    template <typename... T>                                                                      \
    static inline void emulated_wgmma_mma_async_sync_aligned_m64n##n##k16_f32_f16_f16(T &&...t) { \
        emulated_wgmma_turn<n, 0>(t...);                                                          \
    }
EMULATED_WGMMA(16)
EMULATED_WGMMA(32)
EMULATED_WGMMA(64)
EMULATED_WGMMA(128)
#undef EMULATED_WGMMA
static inline void emulated_wgmma_fence_sync_aligned(void) {
}
static inline void emulated_wgmma_commit_group_sync_aligned(void) {
}
static inline void emulated_wgmma_wait_group_sync_aligned(int = 0) {
}
static inline void emulated_fence_proxy_async_shared__cta(void) {
}

// Clusters. An address without EMULATED_REMOTE is one of the own block.
enum { EMULATED_REMOTE = 1 << 30, EMULATED_CLUSTER_BLOCKS = 8 };
static inline void emulated_barrier_cluster_arrive_release_aligned(void) {
    emulated->meet_cluster();
}
// Every thread that arrives waits later, so the wait is where they meet.
static inline void emulated_barrier_cluster_arrive_relaxed_aligned(void) {
}
static inline void emulated_barrier_cluster_wait_acquire_aligned(void) {
    emulated->meet_cluster();
}
static inline void emulated_barrier_cluster_wait_aligned(void) {
    emulated->meet_cluster();
}
static inline void emulated_mapa_shared__cluster_u32(unsigned int &remote, unsigned int address,
                                                     unsigned int rank) {
    remote = EMULATED_REMOTE + address + rank * EMULATED_BLOCK_SHARED;
}
static inline unsigned char *emulated_at_cluster(unsigned int address) {
    return (address & EMULATED_REMOTE) != 0
               ? emulated->cluster_shared + (address & ~(unsigned int)EMULATED_REMOTE)
               : emulated_at_shared(address);
}
static inline void emulated_st_shared__cluster_v2_f32(unsigned int to, float x, float y) {
    const float2 v = {x, y};
    memcpy(emulated_at_cluster(to), &v, sizeof(v));
}
static inline void emulated_ld_shared__cluster_v2_f32(float &x, float &y, unsigned int from) {
    float2 v;
    memcpy(&v, emulated_at_cluster(from), sizeof(v));
    x = v.x;
    y = v.y;
}

#include "emulated_copies.cuh"
#include "emulated_bytes.cuh"
