// random.cu - random words and numbers from a generator's state in device memory.
//
// A group is what one counter gives: four words, or two numbers of double precision. One thread
// makes one group at a time, in registers. The launch passes where the state is and the op's
// distance from it, so a recorded launch makes new numbers whenever the state has moved.
// SPDX-License-Identifier: Apache-2.0
#include "philox.cuh"
#include "random_numbers.cuh"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// rondo__random_arguments of random_loops.h, in 8-byte words.
struct random_arguments {
    const u64 *state;  // seed, offset
    u64 relative;
    u64 count;  // elements
    void *out;
    const void *in;
    u8 *mask;
    double a, b, c;
    u64 bits;
    u64 threshold;
    u64 dtype;
    u64 in_dtype;
    u64 is_aligned;  // whole groups may be moved at once
};

enum { F32 = 1, F64 = 2, F16 = 3, BF16 = 4 };  // rondo_dtype

struct __align__(16) group_of_words {
    u32 word[4];
};
struct __align__(16) group_of_floats {
    float value[4];
};
struct __align__(16) pair_of_doubles {
    double value[2];
};
struct __align__(8) group_of_halves {
    u16 bits[4];
};

#define FOR_EACH_GROUP(group, size)                                                     \
    const u64 seed = a.state[0], first_counter = a.state[1] + a.relative;               \
    const u64 groups = (a.count + (size) - 1) / (size);                                 \
    for (u64 group = (u64)blockIdx.x * 256 + threadIdx.x; group < groups; group += (u64)gridDim.x * 256)

// Elements of a group that exist.
static __device__ __forceinline__ int get_length(u64 count, u64 group, int size) {
    const u64 left = count - group * size;
    return left < size ? (int)left : size;
}

static __device__ __forceinline__ u16 to_half(u64 dtype, float value) {
    return dtype == F16 ? rondo_f16_bits(value) : rondo_bf16_bits(value);
}
static __device__ __forceinline__ float from_half(u64 dtype, u16 bits) {
    return dtype == F16 ? rondo_f16_value(bits) : rondo_bf16_value(bits);
}

static __device__ __forceinline__ void store_floats(const random_arguments &a, u64 group, const float *v) {
    const int length = get_length(a.count, group, 4);
    if (a.dtype == F32) {
        float *out = (float *)a.out + group * 4;
        if (length == 4 && a.is_aligned) {
            group_of_floats whole = {v[0], v[1], v[2], v[3]};
            *(group_of_floats *)out = whole;
        } else {
            for (int i = 0; i < length; ++i) {
                out[i] = v[i];
            }
        }
    } else {
        u16 *out = (u16 *)a.out + group * 4;
        group_of_halves whole;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            whole.bits[i] = to_half(a.dtype, v[i]);
        }
        if (length == 4 && a.is_aligned) {
            *(group_of_halves *)out = whole;
        } else {
            for (int i = 0; i < length; ++i) {
                out[i] = whole.bits[i];
            }
        }
    }
}

static __device__ __forceinline__ void store_doubles(const random_arguments &a, u64 group, double first,
                                                     double second) {
    double *out = (double *)a.out + group * 2;
    if (group * 2 + 1 >= a.count) {
        out[0] = first;
    } else if (a.is_aligned) {
        pair_of_doubles whole = {first, second};
        *(pair_of_doubles *)out = whole;
    } else {
        out[0] = first;
        out[1] = second;
    }
}

extern "C" __global__ void __launch_bounds__(256) rondo_random_words(const random_arguments a) {
    FOR_EACH_GROUP(group, 4) {
        group_of_words whole;
        rondo_philox(seed, first_counter + group, whole.word);
        u32 *out = (u32 *)a.out + group * 4;
        const int length = get_length(a.count, group, 4);
        if (length == 4 && a.is_aligned) {
            *(group_of_words *)out = whole;
        } else {
            for (int i = 0; i < length; ++i) {
                out[i] = whole.word[i];
            }
        }
    }
}

// a low, b high - low, c the largest number below high; bits the shift.
extern "C" __global__ void __launch_bounds__(256) rondo_random_uniform(const random_arguments a) {
    const float low = (float)a.a, range = (float)a.b, top = (float)a.c;
    const int shift = (int)a.bits;
    const float step = rondo_bits_to_f32((127u - 32u + (u32)shift) << 23);
    FOR_EACH_GROUP(group, 4) {
        u32 word[4];
        float value[4];
        rondo_philox(seed, first_counter + group, word);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            value[i] = rondo_uniform_f32(word[i], shift, step, low, range, top);
        }
        store_floats(a, group, value);
    }
}
extern "C" __global__ void __launch_bounds__(256) rondo_random_uniform_f64(const random_arguments a) {
    FOR_EACH_GROUP(group, 2) {
        u32 word[4];
        rondo_philox(seed, first_counter + group, word);
        store_doubles(a, group, rondo_uniform_f64(word[0], word[1], a.a, a.b, a.c),
                      rondo_uniform_f64(word[2], word[3], a.a, a.b, a.c));
    }
}

// a mean, b standard deviation.
extern "C" __global__ void __launch_bounds__(256) rondo_random_normal(const random_arguments a) {
    const float mean = (float)a.a, deviation = (float)a.b;
    FOR_EACH_GROUP(group, 4) {
        u32 word[4];
        float value[4];
        rondo_philox(seed, first_counter + group, word);
        rondo_normal_f32(word[0], word[1], &value[0], &value[1]);
        rondo_normal_f32(word[2], word[3], &value[2], &value[3]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            value[i] = __fmaf_rn(value[i], deviation, mean);
        }
        store_floats(a, group, value);
    }
}
extern "C" __global__ void __launch_bounds__(256) rondo_random_normal_f64(const random_arguments a) {
    FOR_EACH_GROUP(group, 2) {
        u32 word[4];
        double first, second;
        rondo_philox(seed, first_counter + group, word);
        rondo_normal_f64((u64)word[1] << 32 | word[0], (u64)word[3] << 32 | word[2], &first, &second);
        store_doubles(a, group, __fma_rn(first, a.b, a.a), __fma_rn(second, a.b, a.a));
    }
}

static __device__ __forceinline__ u64 get_threshold(const random_arguments &a, u64 n) {
    switch (a.in_dtype) {
        case F32: return rondo_threshold_f32(((const float *)a.in)[n]);
        case F64: return rondo_threshold_f64(((const double *)a.in)[n]);
        default: return rondo_threshold_f32(from_half(a.in_dtype, ((const u16 *)a.in)[n]));
    }
}

// in: a probability for each element, or NULL: threshold is that of all. dtype: bytes of an element;
// bits: what one is.
extern "C" __global__ void __launch_bounds__(256) rondo_random_bernoulli(const random_arguments a) {
    FOR_EACH_GROUP(group, 4) {
        u32 word[4];
        rondo_philox(seed, first_counter + group, word);
        const int length = get_length(a.count, group, 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i < length) {
                const u64 n = group * 4 + i;
                const u64 threshold = a.in != 0 ? get_threshold(a, n) : a.threshold;
                const u64 value = word[i] < threshold ? a.bits : 0;
                switch (a.dtype) {
                    case 1: ((u8 *)a.out)[n] = (u8)value; break;
                    case 2: ((u16 *)a.out)[n] = (u16)value; break;
                    case 4: ((u32 *)a.out)[n] = (u32)value; break;
                    default: ((u64 *)a.out)[n] = value; break;
                }
            }
        }
    }
}

// threshold: words below drop their element; a: what the others are multiplied by.
extern "C" __global__ void __launch_bounds__(256) rondo_random_dropout(const random_arguments a) {
    const float scale = (float)a.a;
    FOR_EACH_GROUP(group, 4) {
        u32 word[4];
        u32 kept = 0;  // a byte each
        rondo_philox(seed, first_counter + group, word);
        const int length = get_length(a.count, group, 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            kept |= (word[i] < a.threshold ? 0u : 1u) << (8 * i);
        }
        if (a.dtype == F64) {
            for (int i = 0; i < length; ++i) {
                const u64 n = group * 4 + i;
                const double x = ((const double *)a.in)[n];
                ((double *)a.out)[n] = (kept >> (8 * i) & 1u) ? x * a.a : 0.0;
            }
        } else {
            float value[4];
            if (a.dtype == F32) {
                const float *in = (const float *)a.in + group * 4;
                group_of_floats whole = {0.0f, 0.0f, 0.0f, 0.0f};
                if (length == 4 && a.is_aligned) {
                    whole = *(const group_of_floats *)in;
                } else {
                    for (int i = 0; i < length; ++i) {
                        whole.value[i] = in[i];
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    value[i] = whole.value[i];
                }
            } else {
                const u16 *in = (const u16 *)a.in + group * 4;
                group_of_halves whole = {0, 0, 0, 0};
                if (length == 4 && a.is_aligned) {
                    whole = *(const group_of_halves *)in;
                } else {
                    for (int i = 0; i < length; ++i) {
                        whole.bits[i] = in[i];
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    value[i] = from_half(a.dtype, whole.bits[i]);
                }
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                value[i] = (kept >> (8 * i) & 1u) ? value[i] * scale : 0.0f;
            }
            store_floats(a, group, value);
        }
        if (a.mask != 0) {
            u8 *mask = a.mask + group * 4;
            if (length == 4 && ((u64)a.mask & 3) == 0) {
                *(u32 *)mask = kept;
            } else {
                for (int i = 0; i < length; ++i) {
                    mask[i] = (u8)(kept >> (8 * i));
                }
            }
        }
    }
}

// Sets the state, or moves the offset on. One thread.
extern "C" __global__ void rondo_random_set(u64 *state, u64 seed, u64 offset) {
    state[0] = seed;
    state[1] = offset;
}
extern "C" __global__ void rondo_random_advance(u64 *state, u64 count) {
    atomicAdd(state + 1, count);
}
