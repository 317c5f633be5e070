// rondo_ending.cuh - how the kernels for tensor cores end: sums of the product in shared memory become results
// with bias, residual and activation, and where rows of x are to be normalised first (NORM) with that:
//
//   y = ((x - mean) / deviation * gain + shift) W + bias = (x W' - mean c) / deviation + d
//   W' = gain W, c = the sums of W' as it was rounded, d = shift W + bias
//
// Where what made x has left moments of its rows (NORM_GIVEN), mean and deviation are put together from those.
// Otherwise the kernel finds the sums of each row while the product runs. Elements count from the row's first: that is
// one of them, so it lies within sqrt(n - 1) deviations of the mean, and the difference of two sums that the
// variance is loses a share of n * 2^-24 at most. Where all elements are equal their squares add up to 0,
// exactly, and so does what the product is to add.
//
// The including text defines TILE_N, SPLIT, OWN_ROWS (rows that a block finishes) and FINISHERS (the threads that
// do). Sums are [SPLIT][OWN_ROWS][SUM_PITCH]: of each block of a cluster, row by row; behind the TILE_N sums of
// a row lie those of its elements (NORM): of the elements less the first, of their squares, and the first; or mean
// and one over the deviation (NORM_GIVEN), in the first block's.
// SPDX-License-Identifier: Apache-2.0

#ifndef ACTIVATION
#define ACTIVATION 0  // see rondo_activation.cuh; fixed, since code that is not there is not fetched
#endif
#ifndef RONDO_Y
#define RONDO_Y f16  // or float: the sums as they are
#endif
typedef RONDO_Y Y;
#ifndef NARROW
#define NARROW 0  // 1: filters are no multiple of 8, so rows of results are not aligned
#endif
#ifndef NORM
#define NORM 0  // 1: rows of x are normalised
#endif
#ifndef NORM_OUT
#define NORM_OUT 0  // 1: and are an output themselves
#endif
#ifndef NORM_GIVEN
#define NORM_GIVEN 0  // parts of a row whose moments are given; 0: they are not
#endif
#ifndef MOMENTS
#define MOMENTS 0  // 1: moments of the rows of y are an output; not with NARROW
#endif
#ifndef GROUPED
#define GROUPED 0  // 1: filters are those of groups, of which a block has one; not with NARROW, NORM or MOMENTS
#endif
#ifndef GATES
#define GATES 0  // 1: the residual is no addend: activated, it is a factor of the sums
#endif
#ifndef ROW_BIAS
#define ROW_BIAS 0  // 1: the bias has one number for each pixel; not with NORM
#endif
#define MOMENT_COLUMNS 32  // of a row, which share mean and sum of squares

// Results are finished in packs of neighbouring filters, or one by one where rows are not aligned: then a
// warp still writes neighbours.
#define EACH (OWN_ROWS * TILE_N / FINISHERS)
#define WIDTH (NARROW ? 1 : EACH >= 8 ? 8 : EACH >= 4 ? 4 : 2)
#define COLUMNS (TILE_N / WIDTH)  // packs in a row of the tile; divides FINISHERS
#define ROW_STRIDE (FINISHERS / COLUMNS)
#define PACKS ((OWN_ROWS + ROW_STRIDE - 1) / ROW_STRIDE)
#define EARLY (NARROW ? 1 : PACKS)  // packs whose residual is fetched early: single ones are too many
#define SUM_PITCH (TILE_N + 4)      // floats of a row of sums
#define SUM_BYTES (OWN_ROWS * SUM_PITCH * 4)  // of one block

struct ending_arguments {
    const f16 *bias;  // may be NULL
    const f16 *z;     // may be NULL; y's shape
    Y *y;             // [pixels, filters]
    i64 pixels, filters, depth;  // depth: taps * channels
    double alpha, beta;
#if NORM
    const f16 *x;               // [pixels, depth]
    const float *weight_sums;   // [filters], c
    const float *offsets;       // [filters], d; `bias` is NULL
    const float *weight_scale;  // one number, by which w is to be multiplied
    const f16 *gain;            // NORM_OUT; [depth]
    const f16 *shift;           // NORM_OUT; may be NULL
    f16 *normal;                // NORM_OUT; x's shape
    double epsilon;
#endif
#if NORM_GIVEN
    const float2 *given;  // [pixels, depth / MOMENT_COLUMNS]
#endif
#if MOMENTS
    float2 *moments;  // [pixels, filters / MOMENT_COLUMNS]
#endif
#if GROUPED
    i64 group_filters;
#endif

    // A block's filters end here; from the first of its group on, if there are groups.
    __device__ __forceinline__ int get_end() const {
#if GROUPED
        return (int)group_filters;
#else
        return (int)filters;
#endif
    }
};

typedef pack<f16, WIDTH> half_pack;
typedef pack<float, WIDTH> float_pack;

#if NORM
struct row_moments {
    float mean, inverse;  // of the deviation
};
#if NORM_GIVEN
// Of one row: SHARERS neighbouring threads fetch its parts' and put them together.
template <int SHARERS>
struct given_moments {
    static constexpr int COUNT = (NORM_GIVEN + SHARERS - 1) / SHARERS;
    float2 pair[COUNT];

    __device__ __forceinline__ void fetch(const ending_arguments &p, int m, int thread) {
        const int row = m < (int)p.pixels ? m : (int)p.pixels - 1;
        const float2 *const of = p.given + (i64)row * NORM_GIVEN + thread % SHARERS;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            pair[i] = i * SHARERS + thread % SHARERS < NORM_GIVEN ? of[i * SHARERS]
                                                                  : make_float2(0.0f, 0.0f);
        }
    }

    // All of the threads get them.
    __device__ __forceinline__ row_moments join(const ending_arguments &p, int thread) const {
        const float origin = __shfl_sync(0xffffffffu, pair[0].x, thread % 32 / SHARERS * SHARERS);
        float total = 0.0f, square = 0.0f;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const bool is_there = i * SHARERS + thread % SHARERS < NORM_GIVEN;
            const float d = is_there ? pair[i].x - origin : 0.0f;
            total += d;
            square += fmaf(d * MOMENT_COLUMNS, d, pair[i].y);
        }
#pragma unroll
        for (int step = 1; step < SHARERS; step *= 2) {
            total += __shfl_xor_sync(0xffffffffu, total, step);
            square += __shfl_xor_sync(0xffffffffu, square, step);
        }
        const float shifted = total / (float)NORM_GIVEN;
        const float variance =
            fmaf(-shifted, shifted, square / (float)(NORM_GIVEN * MOMENT_COLUMNS));
        row_moments moments;
        moments.mean = origin + shifted;
        moments.inverse = square == 0.0f
                              ? 0.0f
                              : rsqrtf((variance < 0.0f ? 0.0f : variance) + (float)p.epsilon);
        return moments;
    }
};
#endif
// Of the row whose sums begin at `row` in the first part.
__device__ __forceinline__ row_moments find_moments(const float *row, int count, float epsilon) {
#if NORM_GIVEN
    row_moments found;
    found.mean = row[TILE_N];
    found.inverse = row[TILE_N + 1];
    return found;
#endif
    float total = 0.0f, square = 0.0f;
#pragma unroll
    for (int s = 0; s < SPLIT; s++) {
        const float *of = row + s * OWN_ROWS * SUM_PITCH + TILE_N;
        total += of[0], square += of[1];
    }
    const float share = 1.0f / (float)count, shifted = total * share;
    const float variance = fmaf(-shifted, shifted, square * share);
    row_moments moments;
    moments.mean = row[TILE_N + 2] + shifted;
    moments.inverse =
        square == 0.0f ? 0.0f : rsqrtf((variance < 0.0f ? 0.0f : variance) + epsilon);
    return moments;
}
__device__ __forceinline__ half_pack normalise(const half_pack &x, const half_pack &gain,
                                               const half_pack &shift, const row_moments &row) {
    half_pack y;
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        const float normal = (half_to_float(x.value[v]) - row.mean) * row.inverse;
        y.value[v] = half_from_float(
            fmaf(normal, half_to_float(gain.value[v]), half_to_float(shift.value[v])));
    }
    return y;
}
#endif

// What one thread finishes: PACKS packs of filters, each of another pixel, always the same filters.
struct ending {
    int n, own_row;
    half_pack bias, z[EARLY];
#if ROW_BIAS
    f16 row_bias[EARLY];
#endif
#if NORM
    float weight_scale;
    float_pack weight_sum, offset;
#endif
#if NORM_OUT
    half_pack raw[EARLY], gain, shift;
#endif

    // Before the turn.
    __device__ __forceinline__ void read_arguments(const ending_arguments &p) {
        u64 word = (u64)p.y | (u64)p.depth;
#if NORM
        word |= (u64)p.weight_scale | (u64)p.normal;
#endif
#if NORM_GIVEN
        word |= (u64)p.given;
#endif
#if MOMENTS
        word |= (u64)p.moments;
#endif
        read_early(word);
    }

    // Fetches what does not depend on the product, which runs meanwhile. `first_row` is the first pixel that
    // this block finishes.
    __device__ __forceinline__ void begin(const ending_arguments &p, int thread, int first_row, int n0) {
        const int filters = (int)p.filters, pixels = (int)p.pixels;
        n = n0 + thread % COLUMNS * WIDTH;
        own_row = thread / COLUMNS;
        if (n < p.get_end()) {
            if (!NORM && !ROW_BIAS && p.bias != 0) {
                bias = *(const half_pack *)(p.bias + n);
            }
            if (!NARROW && p.z != 0) {
#pragma unroll
                for (int i = 0; i < EARLY; i++) {
                    const int r = own_row + i * ROW_STRIDE, m = first_row + r;
                    if (r < OWN_ROWS && m < pixels) {
                        z[i] = *(const half_pack *)(p.z + (i64)m * filters + n);
                    }
                }
            }
        }
#if ROW_BIAS
#pragma unroll
        for (int i = 0; i < EARLY && !NARROW; i++) {
            const int r = own_row + i * ROW_STRIDE, m = first_row + r;
            if (r < OWN_ROWS && m < pixels) {
                row_bias[i] = p.bias[m];
            }
        }
#endif
#if NORM
        weight_scale = *p.weight_scale;
        if (n < filters) {
            weight_sum = *(const float_pack *)(p.weight_sums + n);
            offset = *(const float_pack *)(p.offsets + n);
        }
#endif
#if NORM_OUT
        const int depth = (int)p.depth;
        shift = half_pack();
        if (n < depth) {
            gain = *(const half_pack *)(p.gain + n);
            if (p.shift != 0) {
                shift = *(const half_pack *)(p.shift + n);
            }
#pragma unroll
            for (int i = 0; i < EARLY && !NARROW; i++) {
                const int r = own_row + i * ROW_STRIDE, m = first_row + r;
                if (r < OWN_ROWS && m < pixels) {
                    raw[i] = *(const half_pack *)(p.x + (i64)m * depth + n);
                }
            }
        }
#endif
    }

#if NORM_OUT
    // The first pack of the normalised rows, which the blocks share by columns.
    __device__ __forceinline__ void write_normal(const ending_arguments &p, int m,
                                                 const row_moments &moments) {
        const int depth = (int)p.depth;
        const f16 *const x = p.x + (i64)m * depth;
        f16 *const normal = p.normal + (i64)m * depth;
        if (n < depth) {
            const half_pack first = NARROW ? *(const half_pack *)(x + n) : raw[0];
            *(half_pack *)(normal + n) = normalise(first, gain, shift, moments);
        }
        // Mostly there are as many filters as channels, and nothing is left.
        for (int c = n + (int)gridDim.y * TILE_N; c < depth; c += (int)gridDim.y * TILE_N) {
            half_pack plus = half_pack();
            if (p.shift != 0) {
                plus = *(const half_pack *)(p.shift + c);
            }
            *(half_pack *)(normal + c) = normalise(*(const half_pack *)(x + c),
                                                   *(const half_pack *)(p.gain + c), plus, moments);
        }
    }
#endif

#if MOMENTS
    // The lanes that have MOMENT_COLUMNS neighbouring columns put theirs together. All of a warp call it.
    __device__ __forceinline__ void write_moments(const ending_arguments &p, bool is_there, int m,
                                                  const pack<Y, WIDTH> &result) {
        constexpr int lanes = MOMENT_COLUMNS / WIDTH;
        float mean = 0.0f, square = 0.0f;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            mean += convert<float>(result.value[v]);
        }
#pragma unroll
        for (int step = 1; step < lanes; step *= 2) {
            mean += __shfl_xor_sync(0xffffffffu, mean, step);
        }
        mean /= (float)MOMENT_COLUMNS;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            const float d = convert<float>(result.value[v]) - mean;
            square = fmaf(d, d, square);
        }
#pragma unroll
        for (int step = 1; step < lanes; step *= 2) {
            square += __shfl_xor_sync(0xffffffffu, square, step);
        }
        if (is_there && n % MOMENT_COLUMNS == 0) {
            p.moments[(i64)m * ((int)p.filters / MOMENT_COLUMNS) + n / MOMENT_COLUMNS] =
                make_float2(mean, square);
        }
    }
#endif

    // The first pack of the results, which is of pixel m.
    __device__ __forceinline__ pack<Y, WIDTH> make_result(const ending_arguments &p, int m,
                                                          const float *row) {
        const int column = own_column();
        if (NARROW && p.z != 0) {
            z[0] = *(const half_pack *)(p.z + (i64)m * (int)p.filters + n);
        }
#if ROW_BIAS
        const float added = half_to_float(NARROW ? p.bias[m] : row_bias[0]);
#endif
#if NORM
        const row_moments moments = find_moments(row, (int)p.depth, (float)p.epsilon);
        const float factor = moments.inverse * weight_scale;
#endif
        float_pack of[SPLIT];
#pragma unroll
        for (int s = 0; s < SPLIT; s++) {
            of[s] = *(const float_pack *)(row + s * OWN_ROWS * SUM_PITCH + column);
        }
        pack<Y, WIDTH> result;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            float t = of[0].value[v];
#pragma unroll
            for (int s = 1; s < SPLIT; s++) {
                t += of[s].value[v];
            }
#if NORM
            t = fmaf(fmaf(-moments.mean, weight_sum.value[v], t), factor, offset.value[v]);
#elif ROW_BIAS
            t += added;
#else
            t += p.bias != 0 ? half_to_float(bias.value[v]) : 0.0f;
#endif
            const float residual = p.z != 0 ? half_to_float(z[0].value[v]) : 0.0f;
            const float activated =
                activate<ACTIVATION>(GATES ? residual : t + residual, (float)p.alpha, (float)p.beta);
            result.value[v] = convert<Y>(GATES ? t * activated : activated);
        }
        return result;
    }

    // All sums have come.
    __device__ __forceinline__ void finish(const ending_arguments &p, const float *sums, int first_row) {
        const int filters = (int)p.filters, pixels = (int)p.pixels;
        // The code of one pack, run for each: code that runs once is not in a multiprocessor's cache, and to
        // fetch it takes longer than the work. So the next pack moves to the front of what was fetched early.
        constexpr int at_once = NARROW ? 8 : 1;
#pragma unroll at_once
        for (int i = 0; i < PACKS; i++) {
            const int r = own_row + i * ROW_STRIDE, m = first_row + r;
            const bool is_row = r < OWN_ROWS && m < pixels;
            const float *const row = sums + r * SUM_PITCH;
#if NORM_OUT
            if (is_row) {
                write_normal(p, m, find_moments(row, (int)p.depth, (float)p.epsilon));
            }
#endif
            pack<Y, WIDTH> result = pack<Y, WIDTH>();
            if (is_row && n < p.get_end()) {
                result = make_result(p, m, row);
                *(pack<Y, WIDTH> *)(p.y + (i64)m * filters + n) = result;
            }
#if MOMENTS
            write_moments(p, is_row && n < filters, m, result);
#endif
#pragma unroll
            for (int next = 1; next < EARLY; next++) {
                z[next - 1] = z[next];
#if ROW_BIAS
                row_bias[next - 1] = row_bias[next];
#endif
#if NORM_OUT
                raw[next - 1] = raw[next];
#endif
            }
        }
    }

    __device__ __forceinline__ int own_column() const {
        return threadIdx.x % COLUMNS * WIDTH;
    }
};
