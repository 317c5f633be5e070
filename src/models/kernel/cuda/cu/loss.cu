// loss.cu - losses of labels, and how the one of a softmax changes with its scores. A line is taken by a
// block, by a warp where it is short, or by a thread where its elements are `inner` apart. The maximum and the sum
// of the exponentials are found in one walk; sums are in double.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_Y
#define RONDO_Y T  // the change of the scores
#endif
typedef RONDO_Y Y;
#ifndef RONDO_I
#define RONDO_I i64
#endif
typedef RONDO_I I;
#ifndef LANES
#define LANES 32  // of a line: 256, 32 or 1
#endif
#ifndef SOFTMAX
#define SOFTMAX 0  // the scores are no logarithms yet
#endif
typedef typename compute_of<T>::type real;

struct loss_arguments {
    i64 lines;        // [batch, inner]
    const T *x;       // [batch, length, inner]
    const I *labels;  // [batch, inner]
    const T *weight;  // [length], may be NULL
    T *losses;        // [batch, inner]; NULL: their sum is wanted
    T *logarithms;    // x's shape, may be NULL
    double *parts;    // [lines, 2]: loss and weight of each line
    i64 length, inner;
    i64 has_ignored, ignored;
    T *total;         // of loss_total
    i64 takes_mean;
    faults told;
};

__device__ __forceinline__ float power(float x) {
    return expf(x);
}
__device__ __forceinline__ double power(double x) {
    return exp(x);
}

#define PACK 4

// The logarithm of a sum of exponentials is most + log(sum).
struct exponentials {
    real most;
    double sum;
    __device__ __forceinline__ exponentials() : most(-(real)infinity()), sum(0.0) {
    }
    __device__ __forceinline__ void add(real x) {
        if (x > most) {
            sum *= (double)power(most - x);
            most = x;
        }
        if (x != -(real)infinity()) {
            sum += (double)power(x - most);
        }
    }
    __device__ __forceinline__ void add(const pack<T, PACK> &x) {
        real highest = most, part = (real)0;
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            const real next = convert<real>(x.value[k]);
            highest = next > highest ? next : highest;
        }
        if (highest > most) {
            sum *= (double)power(most - highest);
            most = highest;
        }
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            const real next = convert<real>(x.value[k]);
            part += next != -(real)infinity() ? power(next - most) : (real)0;
        }
        sum += (double)part;
    }
    __device__ __forceinline__ void join(real other, double other_sum) {
        const real all = other > most ? other : most;
        if (all != -(real)infinity()) {
            sum = sum * (double)power(most - all) + other_sum * (double)power(other - all);
        } else {
            sum += other_sum;  // NaN stays
        }
        most = all;
    }
};

// The elements of a line that lies together, as packs of PACK that begin at whole packs of memory; a
// line begins and ends with up to PACK - 1 single ones.
struct packs {
    i64 head, count, tail;
    __device__ __forceinline__ packs(const T *x, i64 length) {
        head = (i64)((0 - (u64)x / sizeof(T)) % PACK);
        head = head < length ? head : length;
        count = (length - head) / PACK;
        tail = head + count * PACK;
    }
};

// Of a line; every lane gets it.
__device__ __forceinline__ exponentials find_exponentials(const T *x, i64 length, i64 inner, int lane) {
    exponentials found;
    const packs p(x, LANES > 32 ? length : 0);
    for (i64 i = lane; LANES > 32 && i < p.head; i += LANES) {
        found.add(convert<real>(x[i]));
    }
#pragma unroll 4
    for (i64 i = lane; LANES > 32 && i < p.count; i += LANES) {
        found.add(*(const pack<T, PACK> *)(x + p.head + i * PACK));
    }
#pragma unroll 4
    for (i64 i = p.tail + lane; i < length; i += LANES) {
        found.add(convert<real>(x[i * inner]));
    }
#pragma unroll
    for (int step = (LANES < 32 ? LANES : 32) / 2; step > 0; step >>= 1) {
        found.join(__shfl_xor_sync(0xffffffffu, found.most, step),
                   __shfl_xor_sync(0xffffffffu, found.sum, step));
    }
    if (LANES > 32) {
        __shared__ real most[8];
        __shared__ double sums[8];
        __syncthreads();
        if ((lane & 31) == 0) {
            most[lane >> 5] = found.most;
            sums[lane >> 5] = found.sum;
        }
        __syncthreads();
        found = exponentials();
        for (int warp = 0; warp < 8; warp++) {
            found.join(most[warp], sums[warp]);
        }
    }
    return found;
}

#define FOR_EACH_LINE(a, line, lane)                                                         \
    const int lane = LANES > 1 ? (int)(threadIdx.x % LANES) : 0;                             \
    for (i64 line = ((i64)blockIdx.x * 256 + threadIdx.x) / LANES; line < (a).lines;         \
         line += (i64)gridDim.x * 256 / LANES)

extern "C" __global__ void __launch_bounds__(256) loss_lines(const loss_arguments a) {
    take_turn();
    FOR_EACH_LINE(a, line, lane) {
        const i64 first = line / a.inner * a.length * a.inner + line % a.inner;
        // Added up, a large maximum would swallow the logarithm.
        double most = 0.0, logarithm = 0.0;
        if (SOFTMAX) {
            const exponentials found = find_exponentials(a.x + first, a.length, a.inner, lane);
            most = (double)found.most;
            logarithm = log(found.sum);
        }
        if (a.logarithms != 0) {
            for (i64 i = lane; i < a.length; i += LANES) {
                const i64 at = first + i * a.inner;
                a.logarithms[at] = convert<T>(convert<double>(a.x[at]) - most - logarithm);
            }
        }
        if (lane == 0) {
            i64 label = (i64)a.labels[line];
            const bool counts = a.has_ignored == 0 || label != a.ignored;
            if (label < 0 || label >= a.length) {
                if (counts) {
                    a.told.tell();
                }
                label = label < 0 ? 0 : a.length - 1;
            }
            const double factor =
                !counts ? 0.0 : (a.weight != 0 ? convert<double>(a.weight[label]) : 1.0);
            const double value = convert<double>(a.x[first + label * a.inner]) - most - logarithm;
            const double loss = counts ? -factor * value : 0.0;
            if (a.losses != 0) {
                a.losses[line] = convert<T>(loss);
            } else {
                a.parts[2 * line] = loss;
                a.parts[2 * line + 1] = factor;
            }
        }
    }
}

// One block: the same sum in each run.
extern "C" __global__ void __launch_bounds__(256) loss_total(const loss_arguments a) {
    take_turn();
    __shared__ double sums[2][256];
    double loss = 0.0, weight = 0.0;
    for (i64 i = threadIdx.x; i < a.lines; i += 256) {
        loss += a.parts[2 * i];
        weight += a.parts[2 * i + 1];
    }
    sums[0][threadIdx.x] = loss;
    sums[1][threadIdx.x] = weight;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if ((int)threadIdx.x < half) {
            sums[0][threadIdx.x] += sums[0][threadIdx.x + half];
            sums[1][threadIdx.x] += sums[1][threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *a.total = convert<T>(a.takes_mean ? sums[0][0] / sums[1][0] : sums[0][0]);
    }
}

// ---- the way back -----------------------------------------------------------------------------

struct change_arguments {
    i64 lines;
    const T *x;       // [batch, length, inner]
    const I *labels;  // [batch, inner]
    const T *share;   // [batch, inner]: what a line's loss counts; 0: nothing, whatever x is
    Y *y;
    i64 length, inner;
};

extern "C" __global__ void __launch_bounds__(256) loss_change(const change_arguments a) {
    take_turn();
    FOR_EACH_LINE(a, line, lane) {
        const i64 first = line / a.inner * a.length * a.inner + line % a.inner;
        const exponentials found = find_exponentials(a.x + first, a.length, a.inner, lane);
        const real share = convert<real>(a.share[line]), most = found.most;
        const real logarithm = (real)log(found.sum);
        const i64 label = (i64)a.labels[line];
        const auto change = [&](T x, i64 i) {
            const real chance = power(convert<real>(x) - most - logarithm);
            return convert<Y>(share == (real)0 ? (real)0
                                               : (chance - (i == label ? (real)1 : (real)0)) * share);
        };
        const bool is_even = (u64)a.x % (PACK * sizeof(T)) == 0 && (u64)a.y % (PACK * sizeof(Y)) == 0;
        const packs p(a.x + first, LANES > 32 && is_even ? a.length : 0);
        for (i64 i = lane; LANES > 32 && i < p.head; i += LANES) {
            a.y[first + i] = change(a.x[first + i], i);
        }
#pragma unroll 2
        for (i64 i = lane; LANES > 32 && i < p.count; i += LANES) {
            const i64 at = p.head + i * PACK;
            const pack<T, PACK> x = *(const pack<T, PACK> *)(a.x + first + at);
            pack<Y, PACK> y;
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                y.value[k] = change(x.value[k], at + k);
            }
            *(pack<Y, PACK> *)(a.y + first + at) = y;
        }
#pragma unroll 4
        for (i64 i = p.tail + lane; i < a.length; i += LANES) {
            a.y[first + i * a.inner] = change(a.x[first + i * a.inner], i);
        }
    }
}
