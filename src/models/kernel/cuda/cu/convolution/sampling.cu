// sampling.cu - GridSample, AffineGrid, RoiAlign and MaxRoiPool: reading at computed places. Places are
// worked out in P, in the order of the reference and without fused multiply-adds, because ties and edges
// depend on the last bit; weights in double. The channels of a place share them.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_G
#define RONDO_G float  // of grids and boxes
#endif
typedef RONDO_G G;
typedef compute_of<G>::type P;  // of places
#ifndef RANK
#define RANK 2  // spatial
#endif
#ifndef MODE
#define MODE 1  // 0 nearest, 1 linear, 2 cubic
#endif
#ifndef PADDING
#define PADDING 0  // 0 zeros, 1 border, 2 reflection
#endif
#ifndef ALIGNS
#define ALIGNS 0
#endif
#define TAPS (MODE == 0 ? 1 : (MODE == 1 ? 2 : 4))

// ---- GridSample -------------------------------------------------------------------------------

struct sample_arguments {
    i64 count;  // of places
    const T *x;     // [batch, channels, in]
    const G *grid;  // [places, RANK], the last axis first
    T *y;           // [batch, channels, places of an image]
    i64 channels, in_span, out_span;
    i64 extent[RANK];
};

struct tap_list {
    i64 index[TAPS];
    double weight[TAPS];  // 0 for a tap that reads as 0
};

// Folds x into [low, high] as between two mirrors.
__device__ __forceinline__ double reflect(double x, double low, double high) {
    const double range = high - low;
    if (range <= 0.0) {
        return low;
    }
    const double beyond = x < low ? low - x : (x > high ? x - high : -1.0);
    if (beyond < 0.0) {
        return x;
    }
    const bool is_even = fmod(floor(beyond / range), 2.0) == 0.0;
    const double rest = fmod(beyond, range);
    return (x < low) == is_even ? low + rest : high - rest;
}

__device__ __forceinline__ tap_list find_taps(P normalized, i64 whole_extent) {
    const double extent = (double)whole_extent, last = extent - 1.0;
    const double low = ALIGNS ? 0.0 : -0.5, high = ALIGNS ? last : extent - 0.5;
    const P moved = normalized + (P)1;
    double x = ALIGNS ? moved / (P)2 * (P)last : (moved * (P)extent - (P)1) / (P)2;
    if (!(fabs(x) < 1e300)) {
        x = low;  // NaN and infinity read at the edge
    }
    if (MODE == 0) {
        x = rint(x);
    }
    if (x < low || x > high) {
        if (PADDING == 1 && MODE != 2) {
            x = fmin(fmax(x, 0.0), last);
        } else if (PADDING == 2) {
            x = reflect(x, low, high);
        }
    }
    tap_list taps;
    const double base = floor(x), part = x - base, a = -0.75;
    const double first = MODE == 0 ? trunc(x) : (MODE == 1 ? base : base - 1.0);
    if (MODE == 0) {
        taps.weight[0] = 1.0;
    } else if (MODE == 1) {
        taps.weight[0] = 1.0 - part;
        taps.weight[1 % TAPS] = part;
    } else {  // Keys' kernel
        const double y = 1.0 - part, far = part + 1.0, away = y + 1.0;
        taps.weight[0] = ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a;
        taps.weight[1 % TAPS] = ((a + 2.0) * part - (a + 3.0)) * part * part + 1.0;
        taps.weight[2 % TAPS] = ((a + 2.0) * y - (a + 3.0)) * y * y + 1.0;
        taps.weight[3 % TAPS] = ((a * away - 5.0 * a) * away + 8.0 * a) * away - 4.0 * a;
    }
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        double index = first + t;
        if (PADDING == 0 && (index < 0.0 || index > last)) {
            taps.weight[t] = 0.0;
        }
        if (PADDING == 2) {
            index = reflect(index, low, high);
        }
        taps.index[t] = (i64)fmin(fmax(index, 0.0), last);
    }
    return taps;
}

// Adds to one sum, in the order of the reference.
template <int D>
struct walk {
    static __device__ __forceinline__ void run(const sample_arguments &a, const T *x,
                                               const tap_list (&taps)[RANK], double weight, i64 at,
                                               double &sum) {
#pragma unroll
        for (int t = 0; t < TAPS; t++) {
            walk<D + 1>::run(a, x, taps, weight * taps[D].weight[t],
                             at * a.extent[D] + taps[D].index[t], sum);
        }
    }
};
template <>
struct walk<RANK> {
    static __device__ __forceinline__ void run(const sample_arguments &, const T *x,
                                               const tap_list (&)[RANK], double weight, i64 at,
                                               double &sum) {
        // An infinity that does not count must not become NaN.
        if (weight != 0.0) {
            sum += weight * convert<double>(x[at]);
        }
    }
};

#ifdef WHOLE_LOW
__device__ __forceinline__ T finish(double sum) {
    const double whole = rint(sum);
    return convert<T>(whole < WHOLE_LOW ? (double)WHOLE_LOW
                                        : (whole > WHOLE_HIGH ? (double)WHOLE_HIGH : whole));
}
#else
__device__ __forceinline__ T finish(double sum) {
    return convert<T>(sum);
}
#endif

// The grid is (places, slices of the channels).
extern "C" __global__ void __launch_bounds__(256) grid_sample(const sample_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        tap_list taps[RANK];
#pragma unroll
        for (int d = 0; d < RANK; d++) {
            taps[d] = find_taps(convert<P>(a.grid[n * RANK + RANK - 1 - d]), a.extent[d]);
        }
        const i64 image = n / a.out_span, place = n % a.out_span;
        for (i64 c = blockIdx.y; c < a.channels; c += gridDim.y) {
            const i64 plane = image * a.channels + c;
            double sum = 0.0;
            walk<0>::run(a, a.x + plane * a.in_span, taps, 1.0, 0, sum);
            a.y[plane * a.out_span + place] = finish(sum);
        }
    }
}

// ---- AffineGrid -------------------------------------------------------------------------------

struct affine_arguments {
    i64 count;
    const T *theta;  // [batch, RANK, RANK + 1]
    T *y;            // [batch, extent, RANK]
    i64 extent[RANK];
};
extern "C" __global__ void __launch_bounds__(256) affine_grid(const affine_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 row = n % RANK;
        i64 rest = n / RANK, index[RANK];
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            index[d] = rest % a.extent[d];
            rest /= a.extent[d];
        }
        const T *factors = a.theta + (rest * RANK + row) * (RANK + 1);
        double sum = convert<double>(factors[RANK]);
#pragma unroll
        for (int k = 0; k < RANK; k++) {  // column k belongs to axis RANK - 1 - k: x first
            const double extent = (double)a.extent[RANK - 1 - k];
            const double at = (double)index[RANK - 1 - k];
            const double place = !ALIGNS ? (2.0 * at + 1.0) / extent - 1.0
                                         : (extent > 1.0 ? 2.0 * at / (extent - 1.0) - 1.0 : 0.0);
            sum += convert<double>(factors[k]) * place;
        }
        a.y[n] = convert<T>(sum);
    }
}

// ---- boxes ------------------------------------------------------------------------------------

struct box_arguments {
    i64 count;
    const T *x;          // [batch, channels, height, width]
    const G *rois;       // [boxes, 4]; MaxRoiPool, [boxes, 5], the batch first
    const i64 *batches;  // [boxes]; RoiAlign
    T *y;                // [boxes, channels, out_height, out_width]
    i64 batch, channels, height, width, out_height, out_width;
    i64 ratio, half_pixel, takes_max;
    double scale;
    faults told;
};

__device__ __forceinline__ i64 clamp(i64 x, i64 last) {
    return x < 0 ? 0 : (x > last ? last : x);
}
__device__ __forceinline__ double larger(double a, double b) {
    return a != a ? a : (b != b ? b : (a > b ? a : b));
}

__device__ __forceinline__ double sample_box(const box_arguments &a, const T *plane, double y,
                                             double x) {
    if (!(y >= -1.0 && y <= (double)a.height && x >= -1.0 && x <= (double)a.width)) {
        return 0.0;
    }
    y = fmin(fmax(y, 0.0), (double)(a.height - 1));
    x = fmin(fmax(x, 0.0), (double)(a.width - 1));
    const i64 top = (i64)y, left = (i64)x;
    const i64 bottom = clamp(top + 1, a.height - 1), right = clamp(left + 1, a.width - 1);
    const double down = y - (double)top, across = x - (double)left;
    const double p0 = (1.0 - down) * (1.0 - across) * convert<double>(plane[top * a.width + left]);
    const double p1 = (1.0 - down) * across * convert<double>(plane[top * a.width + right]);
    const double p2 = down * (1.0 - across) * convert<double>(plane[bottom * a.width + left]);
    const double p3 = down * across * convert<double>(plane[bottom * a.width + right]);
    return a.takes_max ? larger(larger(p0, p1), larger(p2, p3)) : p0 + p1 + p2 + p3;
}

// At most so many samples along a side of a bin; a box that asks for more is absurd.
#define SAMPLES_MAX 4096

__device__ __forceinline__ i64 count_samples(i64 ratio, double size) {
    return ratio > 0 ? ratio : (i64)fmax(ceil(size), 0.0);
}

// Sample `index` of `count` in a bin that begins at `start`.
__device__ __forceinline__ P place_sample(P start, P size, i64 index, i64 count) {
    return start + ((P)index + (P)0.5) * size / (P)count;
}

extern "C" __global__ void __launch_bounds__(256) roi_align(const box_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 column = n % a.out_width, row = n / a.out_width % a.out_height;
        const i64 c = n / a.out_width / a.out_height % a.channels;
        const i64 box = n / a.out_width / a.out_height / a.channels, image = a.batches[box];
        if (image < 0 || image >= a.batch || a.height == 0 || a.width == 0) {
            a.told.tell();
            a.y[n] = convert<T>(0.0);
            continue;
        }
        const T *plane = a.x + (image * a.channels + c) * a.height * a.width;
        P edge[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            edge[i] = convert<P>(a.rois[4 * box + i]) * (P)a.scale - (P)(a.half_pixel ? 0.5 : 0.0);
        }
        P width = edge[2] - edge[0], height = edge[3] - edge[1];
        if (!a.half_pixel) {
            width = width > (P)1 ? width : (P)1;
            height = height > (P)1 ? height : (P)1;
        }
        width /= (P)a.out_width;
        height /= (P)a.out_height;
        if (!(fabs((double)height) < SAMPLES_MAX && fabs((double)width) < SAMPLES_MAX)) {
            a.told.tell();
            a.y[n] = convert<T>(0.0);
            continue;
        }
        const i64 rows = count_samples(a.ratio, height), columns = count_samples(a.ratio, width);
        const P top = edge[1] + (P)row * height;
        const P left = edge[0] + (P)column * width;
        double result = a.takes_max ? -(double)infinity() : 0.0;
        for (i64 i = 0; i < rows; i++) {
            const double y = place_sample(top, height, i, rows);
            for (i64 j = 0; j < columns; j++) {
                const double x = place_sample(left, width, j, columns);
                const double value = sample_box(a, plane, y, x);
                result = a.takes_max ? larger(result, value) : result + value;
            }
        }
        const i64 samples = rows * columns;
        a.y[n] = convert<T>(
            samples == 0 ? 0.0 : (a.takes_max ? result : result / (double)samples));
    }
}

// The cells [begin, end) of bin `index` when [start, start + length) is cut into `count` bins.
__device__ __forceinline__ void find_cells(double start, double length, i64 count, i64 index,
                                           i64 extent, i64 &begin, i64 &end) {
    const P size = (P)length / (P)count;
    const double first = (P)index * size, behind = (P)(index + 1) * size, last = (double)extent;
    begin = (i64)fmin(fmax(floor(first) + start, 0.0), last);
    end = (i64)fmin(fmax(ceil(behind) + start, 0.0), last);
}

extern "C" __global__ void __launch_bounds__(256) max_roi_pool(const box_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 column = n % a.out_width, row = n / a.out_width % a.out_height;
        const i64 c = n / a.out_width / a.out_height % a.channels;
        const i64 box = n / a.out_width / a.out_height / a.channels;
        double edge[5];
#pragma unroll
        for (int i = 0; i < 5; i++) {
            const P value = convert<P>(a.rois[5 * box + i]);
            edge[i] = i == 0 ? (double)value : round((double)(value * (P)a.scale));
        }
        if (!(edge[0] >= 0.0 && edge[0] < (double)a.batch)) {
            a.told.tell();
            a.y[n] = convert<T>(0.0);
            continue;
        }
        const double width = fmax(edge[3] - edge[1] + 1.0, 1.0);
        const double height = fmax(edge[4] - edge[2] + 1.0, 1.0);
        const T *plane = a.x + ((i64)edge[0] * a.channels + c) * a.height * a.width;
        i64 top, bottom, left, right;
        find_cells(edge[2], height, a.out_height, row, a.height, top, bottom);
        find_cells(edge[1], width, a.out_width, column, a.width, left, right);
        bool is_empty = true;
        double best = 0.0;  // of an empty bin
        for (i64 i = top; i < bottom; i++) {
            for (i64 j = left; j < right; j++) {
                const double value = convert<double>(plane[i * a.width + j]);
                best = is_empty ? value : larger(best, value);
                is_empty = false;
            }
        }
        a.y[n] = convert<T>(best);
    }
}
