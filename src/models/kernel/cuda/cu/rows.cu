// rows.cu - lines along an axis, each seen as a whole: LpNormalization, Hardmax and the losses. A warp
// takes a line whose elements lie side by side, a thread one whose elements are `inner` apart, so that
// neighbours read neighbours either way.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_I
#define RONDO_I i64
#endif
typedef RONDO_I I;
#ifndef LANES
#define LANES 32  // of a line: 32 or 1
#endif
#ifndef SOFTMAX
#define SOFTMAX 0  // of the losses: the scores are no logarithms yet
#endif

__device__ __forceinline__ double line_sum(double x) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}
__device__ __forceinline__ double line_max(double x) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step >>= 1) {
        x = fmax(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}

struct row_arguments {
    i64 lines;
    const T *x;
    T *y;
    i64 length, inner;
    i64 p;  // LpNormalization: 1 or 2
};

#define FOR_EACH_LINE(a, line, lane)                                                         \
    const int lane = LANES > 1 ? (int)(threadIdx.x & 31) : 0;                                \
    for (i64 line = ((i64)blockIdx.x * 256 + threadIdx.x) / LANES; line < (a).lines;         \
         line += (i64)gridDim.x * 256 / LANES)

extern "C" __global__ void __launch_bounds__(256) lp_normalization(const row_arguments a) {
    take_turn();
    FOR_EACH_LINE(a, line, lane) {
        const i64 first = line / a.inner * a.length * a.inner + line % a.inner;
        double sum = 0.0;
        for (i64 i = lane; i < a.length; i += LANES) {
            const double value = convert<double>(a.x[first + i * a.inner]);
            sum += a.p == 1 ? fabs(value) : value * value;
        }
        sum = line_sum(sum);
        const double norm = a.p == 1 ? sum : sqrt(sum);
        for (i64 i = lane; i < a.length; i += LANES) {
            const double value = convert<double>(a.x[first + i * a.inner]);
            a.y[first + i * a.inner] = convert<T>(norm == 0.0 ? 0.0 : value / norm);
        }
    }
}

// The first NaN, or the first of the greatest.
extern "C" __global__ void __launch_bounds__(256) hardmax(const row_arguments a) {
    take_turn();
    FOR_EACH_LINE(a, line, lane) {
        const i64 first = line / a.inner * a.length * a.inner + line % a.inner;
        double best = 0.0;
        i64 at = -1;
        for (i64 i = lane; i < a.length; i += LANES) {
            const double value = convert<double>(a.x[first + i * a.inner]);
            if (at < 0 || (best == best && !(value <= best))) {
                best = value;
                at = i;
            }
        }
#pragma unroll
        for (int step = LANES / 2; step > 0; step >>= 1) {
            const double other = __shfl_xor_sync(0xffffffffu, best, step);
            const i64 other_at = __shfl_xor_sync(0xffffffffu, at, step);
            const bool is_nan = best != best, other_nan = other != other;
            const bool is_equal = (is_nan && other_nan) || other == best;
            const bool is_better = is_equal ? other_at < at : (other_nan || other > best);
            if (other_at >= 0 && (at < 0 || (is_better && !(is_nan && !other_nan)))) {
                best = other;
                at = other_at;
            }
        }
        for (i64 i = lane; i < a.length; i += LANES) {
            a.y[first + i * a.inner] = convert<T>(i == at ? 1.0f : 0.0f);
        }
    }
}

// ---- losses -----------------------------------------------------------------------------------

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

extern "C" __global__ void __launch_bounds__(256) loss_lines(const loss_arguments a) {
    take_turn();
    FOR_EACH_LINE(a, line, lane) {
        const i64 first = line / a.inner * a.length * a.inner + line % a.inner;
        // Added up, a large maximum would swallow the logarithm.
        double most = 0.0, logarithm = 0.0;
        if (SOFTMAX) {
            double sum = 0.0;
            most = -(double)infinity();
            for (i64 i = lane; i < a.length; i += LANES) {
                most = fmax(most, convert<double>(a.x[first + i * a.inner]));
            }
            most = line_max(most);
            for (i64 i = lane; i < a.length; i += LANES) {
                sum += exp(convert<double>(a.x[first + i * a.inner]) - most);
            }
            logarithm = log(line_sum(sum));
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
