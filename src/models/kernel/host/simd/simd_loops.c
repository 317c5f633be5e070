// kernel/host/simd/simd_loops.c — element-wise loops and row functions for one instruction set.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/simd/simd_level.h"
#include "kernel/host/simd/simd_math.h"

// ---- one operand ------------------------------------------------------------------------------

#define DEFINE_UNARY(name, expression) DEFINE_UNARY_LOOP(name, RONDO_VECTORISE, expression)
// The expression calls the C library, which keeps the loop scalar.
#define DEFINE_UNARY_CALL(name, expression) DEFINE_UNARY_LOOP(name, , expression)
#define DEFINE_UNARY_LOOP(name, pragma, expression)                                              \
    static void unary_##name(const float *x, float *y, int64_t count, float alpha, float beta) { \
        (void)alpha;                                                                             \
        (void)beta;                                                                              \
        pragma for (int64_t i = 0; i < count; ++i) {                                             \
            const float a = x[i];                                                                \
            y[i] = (expression);                                                                 \
        }                                                                                        \
    }

// What is left of a vector goes through a whole one: by itself it would be slow.
#define DEFINE_UNARY_COSTLY(name, expression)                                                    \
    DEFINE_UNARY_LOOP(name##_whole, RONDO_VECTORISE, expression)                                 \
    static void unary_##name(const float *x, float *y, int64_t count, float alpha, float beta) { \
        const int64_t rest = count % RONDO_SIMD_WIDTH, whole = count - rest;                     \
        float last[RONDO_SIMD_WIDTH];                                                            \
        unary_##name##_whole(x, y, whole, alpha, beta);                                          \
        if (rest > 0) {                                                                          \
            rondo__load_rest(x + whole, rest, 0.0f, last);                                       \
            unary_##name##_whole(last, last, rondo__get_width(), alpha, beta);                   \
            rondo__store_rest(last, rest, y + whole);                                            \
        }                                                                                        \
    }

DEFINE_UNARY(Relu, math_select(a < 0.0f, 0.0f, a))
DEFINE_UNARY_COSTLY(Sigmoid, math_sigmoid(a))
DEFINE_UNARY_COSTLY(Tanh, math_tanh(a))
DEFINE_UNARY_COSTLY(Erf, math_erf(a))
DEFINE_UNARY_COSTLY(Exp, math_exp(a))
DEFINE_UNARY_CALL(Log, logf(a))
DEFINE_UNARY_CALL(Sqrt, sqrtf(a))
DEFINE_UNARY(Neg, -a)
DEFINE_UNARY(Abs, fabsf(a))
DEFINE_UNARY(Reciprocal, 1.0f / a)
DEFINE_UNARY_CALL(Floor, floorf(a))
DEFINE_UNARY_CALL(Ceil, ceilf(a))
DEFINE_UNARY_COSTLY(Softplus, math_select(a > 0.0f, a, 0.0f) + math_log_1p(math_exp(-fabsf(a))))
DEFINE_UNARY_COSTLY(Gelu, 0.5f * a * (1.0f + math_erf(a * 0.70710678f)))
// 0.5 (1 + tanh(u)) is sigmoid(2 u), which needs no second branch.
DEFINE_UNARY_COSTLY(GeluTanh, a *math_sigmoid(1.5957691f * (a + 0.044715f * a * a * a)))
DEFINE_UNARY_COSTLY(Silu, a *math_sigmoid(a))
DEFINE_UNARY(HardSwish, a *math_clip(a / 6.0f + 0.5f, 0.0f, 1.0f))
DEFINE_UNARY(Clip, math_clip(a, alpha, beta))
DEFINE_UNARY(LeakyRelu, math_select(a < 0.0f, alpha *a, a))
DEFINE_UNARY_COSTLY(Elu, math_select(a < 0.0f, alpha *math_expm1_negative(-fabsf(a)), a))
DEFINE_UNARY(HardSigmoid, math_clip(alpha *a + beta, 0.0f, 1.0f))
DEFINE_UNARY(Affine, alpha *a + beta)
DEFINE_UNARY(Saturate,
             math_select(fabsf(a) <= 3.40282347e38f, math_clip(a, -65504.0f, 65504.0f), a))

// ---- two operands -----------------------------------------------------------------------------

#define DEFINE_BINARY(name, expression) DEFINE_BINARY_LOOPS(name, RONDO_VECTORISE, expression)
#define DEFINE_BINARY_CALL(name, expression) DEFINE_BINARY_LOOPS(name, , expression)
#define DEFINE_BINARY_LOOPS(name, pragma, expression)                                        \
    static void binary_##name(const float *x0, const float *x1, float *y, int64_t count) {   \
        pragma for (int64_t i = 0; i < count; ++i) {                                         \
            const float a = x0[i], b = x1[i];                                                \
            y[i] = (expression);                                                             \
        }                                                                                    \
    }                                                                                        \
    static void scalar_a_##name(const float *x0, const float *x1, float *y, int64_t count) { \
        const float a = *x0;                                                                 \
        pragma for (int64_t i = 0; i < count; ++i) {                                         \
            const float b = x1[i];                                                           \
            y[i] = (expression);                                                             \
        }                                                                                    \
    }                                                                                        \
    static void scalar_b_##name(const float *x0, const float *x1, float *y, int64_t count) { \
        const float b = *x1;                                                                 \
        pragma for (int64_t i = 0; i < count; ++i) {                                         \
            const float a = x0[i];                                                           \
            y[i] = (expression);                                                             \
        }                                                                                    \
    }

DEFINE_BINARY(Add, a + b)
DEFINE_BINARY(Sub, a - b)
DEFINE_BINARY(Mul, a *b)
DEFINE_BINARY(Div, a / b)
DEFINE_BINARY(Max, math_maximum(a, b))
DEFINE_BINARY(Min, math_minimum(a, b))
DEFINE_BINARY(Gate, a <= 0.0f ? 0.0f : b)
// Squares and cubes make up most powers of models; with one exponent for all, the compiler makes a
// loop of each.
DEFINE_BINARY_CALL(Pow, b == 2.0f ? a * a : b == 3.0f ? a * a * a : powf(a, b))

// ---- rows --------------------------------------------------------------------------------------
// Sums, extremes, moments and softmax of rows are simd_rows.c's.

// Of `lanes` columns, at most a vector of them, `stride` floats apart along their length.
RONDO_INLINE void lanes_softmax(const float *x, float *y, int64_t length, int64_t stride,
                                const int lanes) {
    float most[RONDO_SIMD_WIDTH], scale[RONDO_SIMD_WIDTH];
    double sums[RONDO_SIMD_WIDTH] = {0};
    for (int j = 0; j < lanes; ++j) {
        most[j] = -INFINITY;
    }
    for (int64_t i = 0; i < length; ++i) {
        for (int j = 0; j < lanes; ++j) {
            most[j] = math_maximum(x[i * stride + j], most[j]);
        }
    }
    for (int64_t i = 0; i < length; ++i) {
        RONDO_VECTORISE
        for (int j = 0; j < lanes; ++j) {
            const float power = math_exp_negative(x[i * stride + j] - most[j]);
            y[i * stride + j] = power;
            sums[j] += (double)power;
        }
    }
    for (int j = 0; j < lanes; ++j) {
        scale[j] = (float)(1.0 / sums[j]);
    }
    for (int64_t i = 0; i < length; ++i) {
        RONDO_VECTORISE
        for (int j = 0; j < lanes; ++j) {
            y[i * stride + j] *= scale[j];
        }
    }
}

static void columns_softmax(const float *x, float *y, int64_t length, int64_t columns) {
    int64_t first = 0;
    for (; first + RONDO_SIMD_WIDTH <= columns; first += RONDO_SIMD_WIDTH) {
        lanes_softmax(x + first, y + first, length, columns, RONDO_SIMD_WIDTH);
    }
    for (; RONDO_SIMD_WIDTH > 8 && first + 8 <= columns; first += 8) {
        lanes_softmax(x + first, y + first, length, columns, 8);
    }
    for (; RONDO_SIMD_WIDTH > 4 && first + 4 <= columns; first += 4) {
        lanes_softmax(x + first, y + first, length, columns, 4);
    }
    for (; first < columns; ++first) {
        lanes_softmax(x + first, y + first, length, columns, 1);
    }
}

static void row_normalize(const float *x, float *y, int64_t count, float center, float rest,
                          float scale, const float *gain, const float *bias) {
    if (gain != NULL && bias != NULL) {
        RONDO_VECTORISE
        for (int64_t i = 0; i < count; ++i) {
            y[i] = (x[i] - center - rest) * scale * gain[i] + bias[i];
        }
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        const float value = (x[i] - center - rest) * scale * (gain != NULL ? gain[i] : 1.0f);
        y[i] = value + (bias != NULL ? bias[i] : 0.0f);
    }
}

static void row_scale_shift(const float *x, const float *center, const float *rest,
                            const float *scale, const float *shift, float *y, int64_t count) {
    if (rest != NULL) {
        RONDO_VECTORISE
        for (int64_t i = 0; i < count; ++i) {
            y[i] = (x[i] - center[i] - rest[i]) * scale[i] + shift[i];
        }
        return;
    }
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] = (x[i] - center[i]) * scale[i] + shift[i];
    }
}

static void row_center_scale(const float *x, float *y, int64_t count, float center, float rest,
                             float scale, float shift) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] = (x[i] - center - rest) * scale + shift;
    }
}

static void row_accumulate_moments(const float *x, const float *center, float *sum, float *squares,
                                   int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        const float away = x[i] - center[i];
        sum[i] += away;
        squares[i] += away * away;
    }
}

static void row_accumulate(const float *x, float *y, int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] += x[i];
    }
}

static void row_accumulate_maximum(const float *x, float *y, int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] = math_maximum(x[i], y[i]);
    }
}

typedef float vector __attribute__((vector_size(RONDO_SIMD_WIDTH * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(RONDO_SIMD_WIDTH * sizeof(float))));

// The larger of each pair, b where one of them is NaN: one instruction, if written like this.
RONDO_INLINE vector larger_of(vector a, vector b) {
    vector result;
    for (int lane = 0; lane < RONDO_SIMD_WIDTH; ++lane) {
        result[lane] = a[lane] > b[lane] ? a[lane] : b[lane];
    }
    return result;
}

RONDO_INLINE bool has_nan(vector v) {
    const mask found = v != v;
    uint64_t words[sizeof found / sizeof(uint64_t)], any = 0;
    memcpy(words, &found, sizeof found);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
        any |= words[i];
    }
    return any != 0;
}

static void maximum_of_columns(const float *const *rows, int64_t row_count, float *y, int64_t first,
                               int64_t end) {
    for (int64_t i = first; i < end; ++i) {
        float best = rows[0][i];
        for (int64_t r = 1; r < row_count; ++r) {
            best = math_maximum(rows[r][i], best);
        }
        y[i] = best;
    }
}

// Of all but the columns behind the last whole vector. Whether any element is NaN, which wins, and
// which larger_of loses: then a sum of all elements is NaN, too.
RONDO_INLINE bool maximum_of_vectors(const float *const *rows, int64_t row_count, float *y,
                                     int64_t count) {
    vector sums = {0};
    for (int64_t i = 0; i + RONDO_SIMD_WIDTH <= count; i += RONDO_SIMD_WIDTH) {
        vector best, next;
        memcpy(&best, rows[0] + i, sizeof best);
        sums += best;
        for (int64_t r = 1; r < row_count; ++r) {
            memcpy(&next, rows[r] + i, sizeof next);
            sums += next;
            best = larger_of(next, best);
        }
        memcpy(y + i, &best, sizeof best);
    }
    return has_nan(sums);
}

// The rows of usual windows are known in number, so that the loop over them is none. Of 16 lanes
// gcc 12 makes single numbers then.
static void row_maximum_of_rows(const float *const *rows, int64_t row_count, float *y,
                                int64_t count) {
    const bool may_unroll = RONDO_SIMD_WIDTH <= 8;
    const bool is_odd = may_unroll && row_count == 2   ? maximum_of_vectors(rows, 2, y, count)
                        : may_unroll && row_count == 3 ? maximum_of_vectors(rows, 3, y, count)
                        : may_unroll && row_count == 4
                            ? maximum_of_vectors(rows, 4, y, count)
                            : maximum_of_vectors(rows, row_count, y, count);
    maximum_of_columns(rows, row_count, y, is_odd ? 0 : count - count % RONDO_SIMD_WIDTH, count);
}

static void row_sum_of_rows(const float *const *rows, const float *weights, int64_t row_count,
                            float *y, int64_t count) {
    int64_t i = 0;
    for (; i + RONDO_SIMD_WIDTH <= count; i += RONDO_SIMD_WIDTH) {
        vector sum, next;
        memcpy(&sum, rows[0] + i, sizeof sum);
        sum *= weights[0];
        for (int64_t r = 1; r < row_count; ++r) {
            memcpy(&next, rows[r] + i, sizeof next);
            sum += weights[r] * next;
        }
        memcpy(y + i, &sum, sizeof sum);
    }
    for (; i < count; ++i) {
        float sum = weights[0] * rows[0][i];
        for (int64_t r = 1; r < row_count; ++r) {
            sum += weights[r] * rows[r][i];
        }
        y[i] = sum;
    }
}

// y[r] = x times row r; four rows at once, so that sums do not wait for each other.
static void row_dot_rows(const float *x, const float *rows, int64_t row_step, int64_t row_count,
                         float *y, int64_t count) {
    enum { ROWS = 4 };
    for (int64_t r = 0; r < row_count; r += ROWS) {
        const int64_t group = row_count - r < ROWS ? row_count - r : ROWS;
        const float *at[ROWS];
        vector sum[ROWS] = {{0}}, value, of_x;
        for (int j = 0; j < ROWS; ++j) {
            at[j] = rows + (r + (j < group ? j : 0)) * row_step;
        }
        int64_t i = 0;
        for (; i + RONDO_SIMD_WIDTH <= count; i += RONDO_SIMD_WIDTH) {
            memcpy(&of_x, x + i, sizeof of_x);
            for (int j = 0; j < ROWS; ++j) {
                memcpy(&value, at[j] + i, sizeof value);
                sum[j] += of_x * value;
            }
        }
        for (int64_t j = 0; j < group; ++j) {
            float total = 0.0f;
            for (int l = 0; l < RONDO_SIMD_WIDTH; ++l) {
                total += sum[j][l];
            }
            for (int64_t k = i; k < count; ++k) {
                total += x[k] * at[j][k];
            }
            y[r + j] = total;
        }
    }
}

// y += the sum of weight * row over rows that follow each other.
static void row_add_rows(const float *weights, const float *rows, int64_t row_step,
                         int64_t row_count, float *y, int64_t count) {
    enum { VECTORS = 4, COLUMNS = VECTORS * RONDO_SIMD_WIDTH };
    int64_t i = 0;
    for (; i + COLUMNS <= count; i += COLUMNS) {
        vector sum[VECTORS], value;
        memcpy(sum, y + i, sizeof sum);
        for (int64_t r = 0; r < row_count; ++r) {
            for (int v = 0; v < VECTORS; ++v) {
                memcpy(&value, rows + r * row_step + i + v * RONDO_SIMD_WIDTH, sizeof value);
                sum[v] += weights[r] * value;
            }
        }
        memcpy(y + i, sum, sizeof sum);
    }
    for (; i + RONDO_SIMD_WIDTH <= count; i += RONDO_SIMD_WIDTH) {
        vector sum, value;
        memcpy(&sum, y + i, sizeof sum);
        for (int64_t r = 0; r < row_count; ++r) {
            memcpy(&value, rows + r * row_step + i, sizeof value);
            sum += weights[r] * value;
        }
        memcpy(y + i, &sum, sizeof sum);
    }
    for (; i < count; ++i) {
        float sum = y[i];
        for (int64_t r = 0; r < row_count; ++r) {
            sum += weights[r] * rows[r * row_step + i];
        }
        y[i] = sum;
    }
}

// Pairs of a and b are turned by the angles whose cosines and sines these are.
static void row_turn(const float *cosines, const float *sines, float *a, float *b, int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        const float real = cosines[i] * a[i] - sines[i] * b[i];
        b[i] = sines[i] * a[i] + cosines[i] * b[i];
        a[i] = real;
    }
}

// ---- the table --------------------------------------------------------------------------------

#define UNARY_ENTRY(name) [RONDO__SCALAR_##name] = unary_##name
#define BINARY_MAP(prefix)                                                      \
    {                                                                           \
        [RONDO__SCALAR_Add] = prefix##Add, [RONDO__SCALAR_Sub] = prefix##Sub,   \
        [RONDO__SCALAR_Mul] = prefix##Mul, [RONDO__SCALAR_Div] = prefix##Div,   \
        [RONDO__SCALAR_Max] = prefix##Max, [RONDO__SCALAR_Min] = prefix##Min,   \
        [RONDO__SCALAR_Pow] = prefix##Pow, [RONDO__SCALAR_Gate] = prefix##Gate, \
    }

const rondo__simd RONDO_SIMD_NAME(rondo__simd) = {
#if RONDO_SIMD_WIDTH == 16
    .name = "avx512",
#elif RONDO_SIMD_WIDTH == 8
    .name = "avx2",
#else
    .name = "baseline",
#endif
    .unary =
        {
            UNARY_ENTRY(Relu),       UNARY_ENTRY(Sigmoid),   UNARY_ENTRY(Tanh),
            UNARY_ENTRY(Erf),        UNARY_ENTRY(Exp),       UNARY_ENTRY(Log),
            UNARY_ENTRY(Sqrt),       UNARY_ENTRY(Neg),       UNARY_ENTRY(Abs),
            UNARY_ENTRY(Reciprocal), UNARY_ENTRY(Floor),     UNARY_ENTRY(Ceil),
            UNARY_ENTRY(Softplus),   UNARY_ENTRY(Gelu),      UNARY_ENTRY(GeluTanh),
            UNARY_ENTRY(Silu),       UNARY_ENTRY(HardSwish), UNARY_ENTRY(Clip),
            UNARY_ENTRY(LeakyRelu),  UNARY_ENTRY(Elu),       UNARY_ENTRY(HardSigmoid),
            UNARY_ENTRY(Affine),     UNARY_ENTRY(Saturate),
        },
    .binary = BINARY_MAP(binary_),
    .binary_scalar_a = BINARY_MAP(scalar_a_),
    .binary_scalar_b = BINARY_MAP(scalar_b_),
    .plain = RONDO_SIMD_NAME(rondo__simd_plain),
    .add_changes = RONDO_SIMD_NAME(rondo__simd_add_changes),
    .apply_changes = RONDO_SIMD_NAME(rondo__simd_apply_changes),
    .list_row_changes = RONDO_SIMD_NAME(rondo__simd_list_row_changes),
    .apply_row_changes = RONDO_SIMD_NAME(rondo__simd_apply_row_changes),
    .add_products = RONDO_SIMD_NAME(rondo__simd_add_products),
    .place_changes = RONDO_SIMD_NAME(rondo__simd_place_changes),
    .sum = RONDO_SIMD_NAME(rondo__simd_sum),
    .moments = RONDO_SIMD_NAME(rondo__simd_moments),
    .maximum = RONDO_SIMD_NAME(rondo__simd_maximum),
    .minimum = RONDO_SIMD_NAME(rondo__simd_minimum),
    .sum_exp = RONDO_SIMD_NAME(rondo__simd_sum_exp),
    .softmax = RONDO_SIMD_NAME(rondo__simd_softmax),
    .columns_softmax = columns_softmax,
    .log_softmax = RONDO_SIMD_NAME(rondo__simd_log_softmax),
    .sum_lines = RONDO_SIMD_NAME(rondo__simd_sum_lines),
    .lstm_step = RONDO_SIMD_NAME(rondo__simd_lstm_step),
    .normalize = row_normalize,
    .center_scale = row_center_scale,
    .scale_shift = row_scale_shift,
    .accumulate = row_accumulate,
    .accumulate_moments = row_accumulate_moments,
    .accumulate_maximum = row_accumulate_maximum,
    .maximum_of_rows = row_maximum_of_rows,
    .sum_of_rows = row_sum_of_rows,
    .dot_rows = row_dot_rows,
    .add_rows = row_add_rows,
    .turn = row_turn,
    .tile_rows = RONDO_TILE_ROWS,
    .narrow_tile_rows = RONDO_NARROW_TILE_ROWS,
    .panel_columns = 2 * RONDO_SIMD_WIDTH,
    .tile_steps = RONDO_TILE_STEPS,
    .multiply_tile = RONDO_SIMD_NAME(rondo__simd_multiply_tile),
    .winograd_in = RONDO_SIMD_NAME(rondo__simd_winograd_in),
    .winograd_back = RONDO_SIMD_NAME(rondo__simd_winograd_back),
    .multiply_bits = RONDO_SIMD_NAME(rondo__simd_multiply_bits),
    .widen_bits = RONDO_SIMD_NAME(rondo__simd_widen_bits),
    .convolve_depthwise = RONDO_SIMD_NAME(rondo__simd_convolve_depthwise),
};
