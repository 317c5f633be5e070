// rows.cu - lines along an axis, each seen as a whole: LpNormalization and Hardmax. A warp
// takes a line whose elements lie side by side, a thread one whose elements are `inner` apart, so that
// neighbours read neighbours either way.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef LANES
#define LANES 32  // of a line: 32 or 1
#endif

__device__ __forceinline__ double line_sum(double x) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
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
