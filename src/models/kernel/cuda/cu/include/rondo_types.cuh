// rondo_types.cuh - element types and conversions, written out so that NVRTC needs no header files.
//
// Half and bfloat16 are stored as bits; all arithmetic on them happens in float. Every kernel takes
// one struct of 8-byte words, so that the host packs it without knowing C++ layout rules.
// SPDX-License-Identifier: Apache-2.0

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};
struct b8 {
    u8 value;
};

template <typename T>
struct compute_of {
    typedef T type;
};
template <>
struct compute_of<f16> {
    typedef float type;
};
template <>
struct compute_of<bf16> {
    typedef float type;
};
template <>
struct compute_of<b8> {
    typedef bool type;
};

__device__ __forceinline__ float half_to_float(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ __forceinline__ f16 half_from_float(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
__device__ __forceinline__ float bfloat_to_float(bf16 x) {
    return __uint_as_float((u32)x.bits << 16);
}
__device__ __forceinline__ bf16 bfloat_from_float(float x) {
    bf16 y;
    u32 bits = __float_as_uint(x);
    if (x != x) {
        y.bits = (u16)((bits >> 16) | 0x40u);
    } else {
        y.bits = (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    }
    return y;
}

// Real numbers to whole ones, as the host does it: towards zero, beyond 64 bits to the nearest limit,
// then wrapped to narrower types; NaN becomes 0. The instructions alone make other things of NaN and
// of what is out of range.
__device__ __forceinline__ i64 whole_from_real(float x) {
    return x == x ? __float2ll_rz(x) : 0;
}
__device__ __forceinline__ i64 whole_from_real(double x) {
    return x == x ? __double2ll_rz(x) : 0;
}
__device__ __forceinline__ u64 large_from_real(float x) {
    return __float2ull_rz(x);
}
__device__ __forceinline__ u64 large_from_real(double x) {
    return __double2ull_rz(x);
}
template <typename To>
struct from_real {
    template <typename From>
    static __device__ __forceinline__ To run(From x) {
        return (To)x;
    }
};
template <typename To>
struct whole_from {
    template <typename From>
    static __device__ __forceinline__ To run(From x) {
        return (To)whole_from_real(x);
    }
};
template <>
struct from_real<i8> : whole_from<i8> {};
template <>
struct from_real<u8> : whole_from<u8> {};
template <>
struct from_real<i16> : whole_from<i16> {};
template <>
struct from_real<u16> : whole_from<u16> {};
template <>
struct from_real<i32> : whole_from<i32> {};
template <>
struct from_real<u32> : whole_from<u32> {};
template <>
struct from_real<i64> : whole_from<i64> {};
template <>
struct from_real<u64> {
    template <typename From>
    static __device__ __forceinline__ u64 run(From x) {
        return x >= (From)9223372036854775808.0 ? large_from_real(x) : (u64)whole_from_real(x);
    }
};

// convert<To>(x): the conversion of ONNX Cast between storage and compute types.
template <typename To>
struct converter {
    template <typename From>
    static __device__ __forceinline__ To run(From x) {
        return (To)x;
    }
    static __device__ __forceinline__ To run(float x) {
        return from_real<To>::run(x);
    }
    static __device__ __forceinline__ To run(double x) {
        return from_real<To>::run(x);
    }
    static __device__ __forceinline__ To run(f16 x) {
        return from_real<To>::run(half_to_float(x));
    }
    static __device__ __forceinline__ To run(bf16 x) {
        return from_real<To>::run(bfloat_to_float(x));
    }
    static __device__ __forceinline__ To run(b8 x) {
        return (To)(x.value != 0);
    }
};
// The float from which rounding to 16 bits gives what rounding x to them would: what a float does not
// hold is cut off, and sets its last bit.
__device__ __forceinline__ float set_odd(float cut, bool is_exact) {
    return is_exact ? cut : __uint_as_float(__float_as_uint(cut) | 1u);
}
template <typename From>
__device__ __forceinline__ float to_odd(From x) {
    return converter<float>::run(x);
}
__device__ __forceinline__ float to_odd(double x) {
    const float cut = __double2float_rz(x);
    return set_odd(cut, (double)cut == x || x != x);
}
__device__ __forceinline__ float to_odd(i64 x) {
    const float cut = __ll2float_rz(x);
    return set_odd(cut, (i64)cut == x);
}
__device__ __forceinline__ float to_odd(u64 x) {
    const float cut = __ull2float_rz(x);
    return set_odd(cut, (u64)cut == x);
}
__device__ __forceinline__ float to_odd(i32 x) {
    const float cut = __int2float_rz(x);
    return set_odd(cut, (i32)cut == x);
}
__device__ __forceinline__ float to_odd(u32 x) {
    const float cut = __uint2float_rz(x);
    return set_odd(cut, (u32)cut == x);
}
template <>
struct converter<f16> {
    template <typename From>
    static __device__ __forceinline__ f16 run(From x) {
        return half_from_float(to_odd(x));
    }
    static __device__ __forceinline__ f16 run(f16 x) {
        return x;
    }
};
template <>
struct converter<bf16> {
    template <typename From>
    static __device__ __forceinline__ bf16 run(From x) {
        return bfloat_from_float(to_odd(x));
    }
    static __device__ __forceinline__ bf16 run(bf16 x) {
        return x;
    }
};
template <>
struct converter<bool> {
    template <typename From>
    static __device__ __forceinline__ bool run(From x) {
        return x != (From)0;
    }
    static __device__ __forceinline__ bool run(f16 x) {
        return (x.bits & 0x7fffu) != 0;
    }
    static __device__ __forceinline__ bool run(bf16 x) {
        return (x.bits & 0x7fffu) != 0;
    }
    static __device__ __forceinline__ bool run(b8 x) {
        return x.value != 0;
    }
};
template <>
struct converter<b8> {
    template <typename From>
    static __device__ __forceinline__ b8 run(From x) {
        b8 y;
        y.value = converter<bool>::run(x) ? 1 : 0;
        return y;
    }
};
template <typename To, typename From>
__device__ __forceinline__ To convert(From x) {
    return converter<To>::run(x);
}

// The first words of every kernel. The host launches our kernels so that they may start while the one
// before is still running (programmatic dependent launch): its last blocks then hide our start. So a
// kernel first lets its own successor do the same, and then waits until everything before it is
// complete and visible, before it touches any memory that others write or read. A test follows every
// way through the PTX to see that (tests/support/ptx_turn.h).
__device__ __forceinline__ void release_successor() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ __forceinline__ void await_predecessors() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void take_turn() {
    release_successor();
    await_predecessors();
}

// For arguments that are needed behind the turn: the first look at a line of them takes about as long as one at
// memory, so one of each line is looked at before, all in one word. What is done with it never happens, which no
// compiler knows.
__device__ __forceinline__ void read_early(u64 word) {
#if __CUDA_ARCH__ >= 900
    if (word == 1) {
        __nanosleep(1);
    }
#endif
}

// Where a kernel tells of data that its op does not allow: a word of the host's, or nowhere. One of those who
// tell is heard.
struct faults {
    u64 *word;
    u64 who;
    __device__ __forceinline__ void tell() const {
        if (word != 0) {
            *(volatile u64 *)word = who;
        }
    }
};

// COUNT elements moved as one access; aligned so that the compiler emits one wide load or store.
template <typename T, int COUNT>
struct __align__(sizeof(T) * COUNT > 16 ? 16 : sizeof(T) * COUNT) pack {
    T value[COUNT];
};

__device__ __forceinline__ float infinity() {
    return __int_as_float(0x7f800000);
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}
// A long sum of one thread: parts of 64 terms in float, added up in double.
struct long_sum {
    double total;
    float part;
    int terms;
    __device__ __forceinline__ long_sum() : total(0.0), part(0.0f), terms(0) {
    }
    __device__ __forceinline__ void add(float x) {
        part += x;
        terms++;
        if (terms == 64) {
            total += (double)part;
            part = 0.0f;
            terms = 0;
        }
    }
    __device__ __forceinline__ float get() const {
        return (float)(total + (double)part);
    }
};

// Sums over the block; every thread gets the result. `scratch` has 33 floats of shared memory.
__device__ __forceinline__ float block_sum(float x, float *scratch) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    x = warp_sum(x);
    __syncthreads();
    if (lane == 0) {
        scratch[warp] = x;
    }
    __syncthreads();
    if (warp == 0) {
        float total = warp_sum(lane < warps ? scratch[lane] : 0.0f);
        if (lane == 0) {
            scratch[32] = total;
        }
    }
    __syncthreads();
    return scratch[32];
}
__device__ __forceinline__ float block_max(float x, float *scratch) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    x = warp_max(x);
    __syncthreads();
    if (lane == 0) {
        scratch[warp] = x;
    }
    __syncthreads();
    if (warp == 0) {
        float total = warp_max(lane < warps ? scratch[lane] : -infinity());
        if (lane == 0) {
            scratch[32] = total;
        }
    }
    __syncthreads();
    return scratch[32];
}
