// signal.cu - DFT, STFT and the windows of cosines. A transform is taken by definition: each output is
// a sum over a line against a table of the roots of unity. Quadratic in the length; in double.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;

struct root {
    double cosine, sine;
};

struct transform_arguments {
    i64 count;  // of complex outputs
    const T *x;
    const T *window;    // may be NULL
    T *y;
    root *roots;        // [length]
    i64 length;         // of the transform
    i64 extent, inner;  // of x; x is [outer, extent, inner, parts]
    i64 bins, parts, out_parts;
    i64 inverse, mirrored;  // mirrored: x has the lower half of the spectrum of a real signal
    i64 frames, step;       // STFT: frame f of a line starts at f * step
    double factor;
};

extern "C" __global__ void __launch_bounds__(256) transform_roots(const transform_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.length; n += (i64)gridDim.x * 256) {
        const double angle = 6.283185307179586476925 * (double)n / (double)a.length;
        a.roots[n].cosine = cos(angle);
        a.roots[n].sine = a.inverse ? sin(angle) : -sin(angle);
    }
}

extern "C" __global__ void __launch_bounds__(256) transform(const transform_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        // y is [outer, bins, inner] or, with frames, [outer, frames, bins].
        const i64 i = a.frames > 0 ? 0 : n % a.inner;
        const i64 bin = a.frames > 0 ? n % a.bins : n / a.inner % a.bins;
        const i64 line = a.frames > 0 ? n / a.bins : n / a.inner / a.bins;
        const T *x = a.x;
        if (a.frames > 0) {
            x += (line / a.frames * a.extent + line % a.frames * a.step) * a.parts;
        } else {
            x += (line * a.extent * a.inner + i) * a.parts;
        }
        double re = 0.0, im = 0.0;
        i64 at = 0;  // bin * k modulo the length
        for (i64 k = 0; k < a.length; k++) {
            const bool is_upper = a.mirrored && k > a.length / 2;
            const i64 from = is_upper ? a.length - k : k;
            if (from < a.extent) {  // beyond it the signal goes on with zeros
                const T *value = x + from * a.inner * a.parts;
                const double weight = a.window != 0 ? convert<double>(a.window[k]) : 1.0;
                const double x_re = convert<double>(value[0]) * weight;
                double x_im = a.parts == 2 ? convert<double>(value[1]) * weight : 0.0;
                x_im = is_upper ? -x_im : x_im;
                const root now = a.roots[at];
                re += x_re * now.cosine - x_im * now.sine;
                im += x_re * now.sine + x_im * now.cosine;
            }
            at += bin;
            at -= at >= a.length ? a.length : 0;
        }
        a.y[n * a.out_parts] = convert<T>(re * a.factor);
        if (a.out_parts == 2) {
            a.y[n * 2 + 1] = convert<T>(im * a.factor);
        }
    }
}

// y[n] = a0 - a1 cos(2 pi n / period) + a2 cos(4 pi n / period)
struct window_arguments {
    i64 count;
    T *y;
    i64 period, whole;
    double a0, a1, a2;
};
extern "C" __global__ void __launch_bounds__(256) cosine_window(const window_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const double angle = 6.283185307179586476925 * (double)n / (double)a.period;
        const double value = a.a0 - a.a1 * cos(angle) + a.a2 * cos(2.0 * angle);
        // Whole numbers are cut off from f32, in which the peak is 1 and not a little less.
        a.y[n] = convert<T>(a.whole ? (double)(float)value : value);
    }
}
