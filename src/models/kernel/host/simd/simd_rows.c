// kernel/host/simd/simd_rows.c — sums, extremes, moments and softmax of rows, and the gates of an
// LSTM, for one instruction set.
//
// Rows are often short (64 numbers of a small network, 24 of its attention), so what a call costs
// beside its vectors counts: running values are vectors by their type, since compilers make single
// numbers of short loops over them, the rest of a row is one vector with a mask, and lanes are
// joined by halves. The order of additions is fixed by this file and not by the compiler.
// SPDX-License-Identifier: Apache-2.0
#include <float.h>

#include "kernel/host/simd/simd_level.h"
#include "kernel/host/simd/simd_math.h"

#define INLINE inline __attribute__((always_inline))

enum {
    WIDTH = RONDO_SIMD_WIDTH,
    GROUP = 4,  // running vectors, so that several additions are in flight
    LANES = GROUP * WIDTH,
    BLOCK = 64 * LANES,        // values of one sum in f32
    POWER_BLOCK = 64 * WIDTH,  // the same of powers, which one vector adds up
};

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(WIDTH * sizeof(float))));
typedef uint32_t bits __attribute__((vector_size(WIDTH * sizeof(float))));

static INLINE vector load(const float *x) {
    vector result;
    memcpy(&result, x, sizeof result);
    return result;
}

static INLINE vector splat(float value) {
    return value - (vector){0};
}

// The last of a row: `count` numbers, fewer than a vector, and `fill` behind them.
static INLINE vector load_rest(const float *x, int64_t count, float fill) {
    float last[WIDTH];
    rondo__load_rest(x, count, fill, last);
    return load(last);
}

static INLINE void store_rest(vector value, int64_t count, float *y) {
    float last[WIDTH];
    memcpy(last, &value, sizeof last);
    rondo__store_rest(last, count, y);
}

// ---- joining lanes ----------------------------------------------------------------------------

#if defined(__clang__)
#define PERMUTE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define PERMUTE(v, ...) __builtin_shuffle(v, (mask){__VA_ARGS__})
#endif

// The first lanes become what `step` makes of them and those behind: 8, 4, 2 and 1.
#if RONDO_SIMD_WIDTH == 16
#define JOIN_8(step, v) \
    (v) = step(PERMUTE(v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15), v)
#define JOIN_4(step, v) \
    (v) = step(PERMUTE(v, 4, 5, 6, 7, 4, 5, 6, 7, 12, 13, 14, 15, 12, 13, 14, 15), v)
#define JOIN_2(step, v) \
    (v) = step(PERMUTE(v, 2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15), v)
#define JOIN_1(step, v) \
    (v) = step(PERMUTE(v, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15), v)
#elif RONDO_SIMD_WIDTH == 8
#define JOIN_8(step, v) ((void)0)
#define JOIN_4(step, v) (v) = step(PERMUTE(v, 4, 5, 6, 7, 4, 5, 6, 7), v)
#define JOIN_2(step, v) (v) = step(PERMUTE(v, 2, 3, 2, 3, 6, 7, 6, 7), v)
#define JOIN_1(step, v) (v) = step(PERMUTE(v, 1, 1, 3, 3, 5, 5, 7, 7), v)
#else
#define JOIN_8(step, v) ((void)0)
#define JOIN_4(step, v) ((void)0)
#define JOIN_2(step, v) (v) = step(PERMUTE(v, 2, 3, 2, 3), v)
#define JOIN_1(step, v) (v) = step(PERMUTE(v, 1, 1, 3, 3), v)
#endif

#define JOIN_LANES(step, v) \
    JOIN_8(step, v);        \
    JOIN_4(step, v);        \
    JOIN_2(step, v);        \
    JOIN_1(step, v)

// ---- sums and extremes ------------------------------------------------------------------------

static INLINE vector add(vector value, vector sum) {
    return sum + value;
}

static INLINE vector choose(mask which, vector yes, vector no) {
    return (vector)(((mask)yes & which) | ((mask)no & ~which));
}

// NaN wins.
static INLINE vector keep_larger(vector value, vector most) {
    return choose((value > most) | (value != value), value, most);
}

static INLINE vector keep_smaller(vector value, vector least) {
    return choose((value < least) | (value != value), value, least);
}

#define DEFINE_REDUCTION(name, start, step)                            \
    name(const float *x, int64_t count) {                              \
        vector first = splat(start);                                   \
        int64_t i = 0;                                                 \
        if (count >= LANES) {                                          \
            vector second = first, third = first, fourth = first;      \
            for (; i + LANES <= count; i += LANES) {                   \
                first = step(load(x + i), first);                      \
                second = step(load(x + i + WIDTH), second);            \
                third = step(load(x + i + 2 * WIDTH), third);          \
                fourth = step(load(x + i + 3 * WIDTH), fourth);        \
            }                                                          \
            first = step(fourth, step(third, step(second, first)));    \
        }                                                              \
        for (; i + WIDTH <= count; i += WIDTH) {                       \
            first = step(load(x + i), first);                          \
        }                                                              \
        if (i < count) {                                               \
            first = step(load_rest(x + i, count - i, (start)), first); \
        }                                                              \
        JOIN_LANES(step, first);                                       \
        return first[0];                                               \
    }

DEFINE_REDUCTION(static float block_sum, 0.0f, add)
DEFINE_REDUCTION(float RONDO_SIMD_NAME(rondo__simd_maximum), -INFINITY, keep_larger)
DEFINE_REDUCTION(float RONDO_SIMD_NAME(rondo__simd_minimum), INFINITY, keep_smaller)

double RONDO_SIMD_NAME(rondo__simd_sum)(const float *x, int64_t count) {
    double total = 0.0;
    for (int64_t i = 0; i < count; i += BLOCK) {
        total += (double)block_sum(x + i, count - i < BLOCK ? count - i : BLOCK);
    }
    return total;
}

void RONDO_SIMD_NAME(rondo__simd_sum_lines)(const float *x, float *y, double *sums, int64_t count,
                                            bool is_exclusive) {
    if (is_exclusive) {
        RONDO_VECTORISE for (int64_t i = 0; i < count; ++i) {
            const double before = sums[i];
            sums[i] = before + (double)x[i];
            y[i] = (float)before;
        }
        return;
    }
    RONDO_VECTORISE for (int64_t i = 0; i < count; ++i) {
        const double sum = sums[i] + (double)x[i];
        sums[i] = sum;
        y[i] = (float)sum;
    }
}

// ---- moments ----------------------------------------------------------------------------------

typedef struct vector_moments {
    vector sum, squares;
} vector_moments;

static INLINE void add_moments(vector value, vector center, vector_moments *m) {
    const vector away = value - center;
    m->sum += away;
    m->squares += away * away;
}

// The sums of x - center and of its square over at most BLOCK values.
static void block_moments(const float *x, int64_t count, float center, float *out_sum,
                          float *out_squares) {
    const vector middle = splat(center);
    vector_moments first = {{0}, {0}}, second = first;
    int64_t i = 0;
    for (; i + 2 * WIDTH <= count; i += 2 * WIDTH) {
        add_moments(load(x + i), middle, &first);
        add_moments(load(x + i + WIDTH), middle, &second);
    }
    if (i + WIDTH <= count) {
        add_moments(load(x + i), middle, &first);
        i += WIDTH;
    }
    if (i < count) {
        add_moments(load_rest(x + i, count - i, center), middle, &second);
    }
    first.sum += second.sum;
    first.squares += second.squares;
    JOIN_LANES(add, first.sum);
    JOIN_LANES(add, first.squares);
    *out_sum = first.sum[0];
    *out_squares = first.squares[0];
}

void RONDO_SIMD_NAME(rondo__simd_moments)(const float *x, int64_t count, float center,
                                          double *out_sum, double *out_squares) {
    *out_sum = 0.0;
    *out_squares = 0.0;
    for (int64_t i = 0; i < count; i += BLOCK) {
        float sum, squares;
        block_moments(x + i, count - i < BLOCK ? count - i : BLOCK, center, &sum, &squares);
        *out_sum += (double)sum;
        *out_squares += (double)squares;
    }
}

// ---- softmax ----------------------------------------------------------------------------------

// The larger of both; NaN stays.
static INLINE vector keep_above(vector x, float least) {
#if defined(__AVX512F__)
    return _mm512_max_ps(_mm512_set1_ps(least), x);
#elif defined(__AVX__)
    return _mm256_max_ps(_mm256_set1_ps(least), x);
#else
    return choose(x < splat(least), splat(least), x);
#endif
}

// The smaller of both; NaN stays.
static INLINE vector keep_below(vector x, float most) {
#if defined(__AVX512F__)
    return _mm512_min_ps(_mm512_set1_ps(most), x);
#elif defined(__AVX__)
    return _mm256_min_ps(_mm256_set1_ps(most), x);
#else
    return choose(x > splat(most), splat(most), x);
#endif
}

// math_exp_negative of a vector: of a loop that is one vector long, compilers make single numbers.
static INLINE vector find_power(vector x) {
    const float magic = 12582912.0f;
    const vector near = keep_above(x, -88.3f);
    const vector shifted = near * 1.44269504f + magic;
    const vector n = shifted - magic;
    const vector r = near - n * 0.693359375f + n * 2.12194440e-4f;
    vector p = r * 0.001394858118146658f + 0.008375128731131554f;
    p = p * r + 0.041666217148303986f;
    p = p * r + 0.16666415333747864f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * (vector)(((bits)shifted - (bits)splat(magic) + 127u) << 23);
}

// The sum of exp(x - shift); these go to y unless it is NULL, and the last of them, fewer than a
// vector, to *out_last.
static INLINE double add_powers(const float *x, float *y, int64_t count, float shift,
                                vector *out_last) {
    const vector most = splat(shift);
    const int64_t whole = count - count % WIDTH;
    double total = 0.0;
    int64_t i = 0;
    do {
        const int64_t end = whole - i < POWER_BLOCK ? whole : i + POWER_BLOCK;
        vector sum = {0};
        for (; i < end; i += WIDTH) {
            const vector power = find_power(load(x + i) - most);
            sum += power;
            if (y != NULL) {
                memcpy(y + i, &power, sizeof power);
            }
        }
        if (i == whole && whole < count) {
            *out_last = find_power(load_rest(x + i, count - i, -INFINITY) - most);
            sum += *out_last;
        }
        JOIN_LANES(add, sum);
        total += (double)sum[0];
    } while (i < whole);
    return total;
}

double RONDO_SIMD_NAME(rondo__simd_sum_exp)(const float *x, int64_t count, float shift) {
    vector last;
    return add_powers(x, NULL, count, shift, &last);
}

void RONDO_SIMD_NAME(rondo__simd_softmax)(const float *x, float *y, int64_t count) {
    vector last = {0};
    const float scale =
        (float)(1.0 /
                add_powers(x, y, count, RONDO_SIMD_NAME(rondo__simd_maximum)(x, count), &last));
    const int64_t whole = count - count % WIDTH;
    for (int64_t i = 0; i < whole; i += WIDTH) {
        const vector weight = load(y + i) * scale;
        memcpy(y + i, &weight, sizeof weight);
    }
    if (whole < count) {
        store_rest(last * scale, count - whole, y + whole);
    }
}

void RONDO_SIMD_NAME(rondo__simd_log_softmax)(const float *x, float *y, int64_t count) {
    const float maximum = RONDO_SIMD_NAME(rondo__simd_maximum)(x, count);
    const float logarithm = logf((float)RONDO_SIMD_NAME(rondo__simd_sum_exp)(x, count, maximum));
    // Added up, a large maximum would swallow the logarithm.
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] = x[i] - maximum - logarithm;
    }
}

// ---- gates ------------------------------------------------------------------------------------

static INLINE vector find_magnitude(vector x) {
    return (vector)((mask)x & INT32_MAX);
}

// math_sigmoid of a vector.
static INLINE vector find_sigmoid(vector x) {
    const vector power = find_power(-find_magnitude(x));
    return choose(x < 0.0f, power, splat(1.0f)) / (1.0f + power);
}

// x P(x^2) / Q(x^2), fitted on [0, 8] to 7e-9; with the rounding of f32 within 3e-7 of tanh, and
// never beyond 1. For gates that is quicker than an exponential.
static INLINE vector find_tanh(vector x) {
    const vector near = keep_below(keep_above(x, -8.0f), 8.0f), square = near * near;
    vector p = square * 1.52300306e-08f + 2.18944133e-05f;
    vector q = square * 8.52229789e-07f + 0.000341126812f;
    p = p * square + 0.00357158389f;
    q = q * square + 0.0261643901f;
    p = p * square + 0.134444863f;
    q = q * square + 0.467778146f;
    p = p * square + 1.0f;
    q = q * square + 1.0f;
    return near * p / q;
}

// A gate that is shut leaves denormals, and the product with h then takes several times as long.
static INLINE vector clear_denormals(vector x) {
    return choose(find_magnitude(x) < FLT_MIN, splat(0.0f), x);
}

// The new c of a vector; *out_h is the new h.
static INLINE vector step_cell(vector in, vector out, vector forget, vector candidate, vector c,
                               vector *out_h) {
    const vector fresh = find_sigmoid(in) * find_tanh(candidate);
    const vector cell = clear_denormals(find_sigmoid(forget) * c + fresh);
    *out_h = clear_denormals(find_sigmoid(out) * find_tanh(cell));
    return cell;
}

// Functions of five vectors side by side hide each other's waits.
void RONDO_SIMD_NAME(rondo__simd_lstm_step)(const float *gates, float *h, float *c, int64_t count) {
    const float *in = gates, *out = in + count, *forget = out + count, *candidate = forget + count;
    const int64_t rest = count % WIDTH, whole = count - rest;
    vector state, cell;
    for (int64_t i = 0; i < whole; i += WIDTH) {
        cell = step_cell(load(in + i), load(out + i), load(forget + i), load(candidate + i),
                         load(c + i), &state);
        memcpy(c + i, &cell, sizeof cell);
        memcpy(h + i, &state, sizeof state);
    }
    if (rest > 0) {
        cell = step_cell(load_rest(in + whole, rest, 0.0f), load_rest(out + whole, rest, 0.0f),
                         load_rest(forget + whole, rest, 0.0f),
                         load_rest(candidate + whole, rest, 0.0f), load_rest(c + whole, rest, 0.0f),
                         &state);
        store_rest(cell, rest, c + whole);
        store_rest(state, rest, h + whole);
    }
}
