// kernel/host/simd_tile.c — the inner block of matrix products and convolutions.
//
// The result block lives in registers (rows x one or two vectors) while k runs: for each k, the
// vectors of b are loaded, one value of a per row is broadcast, and as many multiply-adds follow.
// With few rows there are too few independent sums to hide the latency of an addition; k is then
// split into several sums that are joined at the end.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/simd_level.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

enum { WIDTH = RONDO_SIMD_WIDTH, PANEL = 2 * WIDTH, SPLITS_MAX = 4 };

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));

#define LOAD(target, address) memcpy(&(target), (address), sizeof(vector))
#define STORE(address, source) memcpy((address), &(source), sizeof(vector))

#if defined(RONDO_SIMD_CHECKED)
#define INLINE_TILE
#else
#define INLINE_TILE inline __attribute__((always_inline))
#endif

// What is constant where a tile is compiled.
typedef struct tile_kind {
    int rows;
    int vectors;  // of a row
    int splits;
    bool is_indexed;
} tile_kind;

typedef struct tile_sums {
    vector at[SPLITS_MAX][RONDO_NARROW_TILE_ROWS][2];
} tile_sums;

// One k: column `p` of a, which starts at row[r], and the row of b.
static INLINE_TILE void add_column(const tile_kind kind, tile_sums *sums, int split,
                                   const float *const *row, int64_t p, const float *b) {
    vector b0, b1 = {0};
    LOAD(b0, b);
    if (kind.vectors > 1) {
        LOAD(b1, b + WIDTH);
    }
    RONDO_UNROLL
    for (int r = 0; r < kind.rows; ++r) {
        const float value = row[r][p];
        sums->at[split][r][0] += value * b0;
        if (kind.vectors > 1) {
            sums->at[split][r][1] += value * b1;
        }
    }
}

// Adds `count` columns of a times rows of b; returns where b goes on.
static INLINE_TILE const float *add_run(const tile_kind kind, tile_sums *sums,
                                        const float *const *row, const int32_t *offsets,
                                        int64_t count, const float *b, int64_t b_row,
                                        int64_t b_ahead) {
    // Longer unrolled, a loop has its addresses in memory for want of registers.
    const int steps = kind.splits > 2 ? kind.splits : 2;
    int64_t p = 0;
    for (; p + steps <= count; p += steps) {
        __builtin_prefetch(b + b_ahead, 0, 2);
        RONDO_UNROLL
        for (int s = 0; s < steps; ++s) {
            add_column(kind, sums, s % kind.splits, row, kind.is_indexed ? offsets[p + s] : p + s,
                       b);
            b += b_row;
        }
    }
    for (; p < count; ++p) {
        add_column(kind, sums, 0, row, kind.is_indexed ? offsets[p] : p, b);
        b += b_row;
    }
    return b;
}

// NaN stays NaN: the instructions give their second operand where they cannot tell.
static INLINE_TILE vector clamp(vector y, float low, float high) {
#if defined(__AVX512F__)
    return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), y));
#elif defined(__AVX__)
    return _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), y));
#elif defined(__SSE__)
    return _mm_min_ps(_mm_set1_ps(high), _mm_max_ps(_mm_set1_ps(low), y));
#else
    for (int i = 0; i < WIDTH; ++i) {
        y[i] = y[i] < low ? low : y[i];
        y[i] = y[i] > high ? high : y[i];
    }
    return y;
#endif
}

// The first `count` numbers, fewer than a vector, at `from`, and to `to`.
static INLINE_TILE vector load_part(const float *from, int count) {
    float part[WIDTH] = {0};
    vector result;
    int at = 0;
    RONDO_UNROLL
    for (int piece = WIDTH / 2; piece > 0; piece /= 2) {
        if ((count & piece) != 0) {
            memcpy(part + at, from + at, (size_t)piece * sizeof(float));
            at += piece;
        }
    }
    LOAD(result, part);
    return result;
}

static INLINE_TILE void store_part(float *to, vector value, int count) {
    float part[WIDTH];
    STORE(part, value);
    int at = 0;
    RONDO_UNROLL
    for (int piece = WIDTH / 2; piece > 0; piece /= 2) {
        if ((count & piece) != 0) {
            memcpy(to + at, part + at, (size_t)piece * sizeof(float));
            at += piece;
        }
    }
}

static INLINE_TILE vector load_some(const float *from, int count) {
    vector result;
    if (count < WIDTH) {
        return load_part(from, count);
    }
    LOAD(result, from);
    return result;
}

// The end of a tile whose columns do not fill its vectors. `sums` has PANEL numbers for each row.
static __attribute__((noinline)) void finish_part(const rondo__tile *tile, const float *sums) {
    for (int v = 0; v * WIDTH < tile->columns; ++v) {
        const int count = tile->columns - v * WIDTH;
        vector bias = {0};
        if (tile->bias != NULL) {
            bias = load_some(tile->bias + v * WIDTH, count);
        }
        for (int r = 0; r < tile->rows; ++r) {
            float *y = tile->y + r * tile->y_row + v * WIDTH;
            vector value;
            LOAD(value, sums + r * PANEL + v * WIDTH);
            value = value * tile->scale + bias;
            if (tile->z != NULL) {
                value += load_some(tile->z + r * tile->z_row + v * WIDTH, count);
            }
            value = clamp(value, tile->low, tile->high);
            if (count < WIDTH) {
                store_part(y, value, count);
            } else {
                STORE(y, value);
            }
        }
    }
}

// Joins split sums.
static INLINE_TILE vector get_sum(const tile_kind kind, const tile_sums *sums, int r, int v) {
    vector sum = sums->at[0][r][v];
    RONDO_UNROLL
    for (int s = 1; s < kind.splits; ++s) {
        sum += sums->at[s][r][v];
    }
    return sum;
}

static INLINE_TILE void finish_whole(const rondo__tile *tile, const tile_kind kind,
                                     const tile_sums *sums, bool has_addend) {
    RONDO_UNROLL
    for (int v = 0; v < kind.vectors; ++v) {
        vector bias = {0}, addend;
        if (tile->bias != NULL) {
            LOAD(bias, tile->bias + v * WIDTH);
        }
        RONDO_UNROLL
        for (int r = 0; r < kind.rows; ++r) {
            vector value = get_sum(kind, sums, r, v) * tile->scale + bias;
            if (has_addend) {
                LOAD(addend, tile->z + r * tile->z_row + v * WIDTH);
                value += addend;
            }
            value = clamp(value, tile->low, tile->high);
            STORE(tile->y + r * tile->y_row + v * WIDTH, value);
        }
    }
}

static INLINE_TILE void finish(const rondo__tile *tile, const tile_kind kind,
                               const tile_sums *sums) {
    if (tile->columns == kind.vectors * WIDTH) {
        if (tile->z != NULL) {
            finish_whole(tile, kind, sums, true);
        } else {
            finish_whole(tile, kind, sums, false);
        }
        return;
    }
    float parts[RONDO_NARROW_TILE_ROWS * PANEL];
    RONDO_UNROLL
    for (int r = 0; r < kind.rows; ++r) {
        RONDO_UNROLL
        for (int v = 0; v < kind.vectors; ++v) {
            const vector sum = get_sum(kind, sums, r, v);
            STORE(parts + r * PANEL + v * WIDTH, sum);
        }
    }
    finish_part(tile, parts);
}

static INLINE_TILE void multiply(const rondo__tile *tile, const tile_kind kind) {
    tile_sums sums;
    RONDO_UNROLL
    for (int s = 0; s < kind.splits; ++s) {
        RONDO_UNROLL
        for (int r = 0; r < kind.rows; ++r) {
            sums.at[s][r][0] = (vector){0};
            sums.at[s][r][1] = (vector){0};
        }
    }
    const float *b = tile->b;
    const float *const *starts = tile->starts;
    for (int64_t run = 0; run < tile->run_count; ++run) {
        const float *row[RONDO_NARROW_TILE_ROWS];
        RONDO_UNROLL
        for (int r = 0; r < kind.rows; ++r) {
            row[r] = starts[r];
        }
        starts += tile->starts_row;
        b = add_run(kind, &sums, row, tile->offsets, tile->run_length, b, tile->b_row,
                    tile->b_ahead);
    }
    finish(tile, kind, &sums);
}

// Of one to three rows, where k is split.
static void multiply_split(const rondo__tile *tile) {
    switch (tile->rows) {
        case 1:
            multiply(tile, (tile_kind){1, 2, 4, false});
            break;
        case 2:
            multiply(tile, (tile_kind){2, 2, 2, false});
            break;
        default:
            multiply(tile, (tile_kind){3, 2, 2, false});
            break;
    }
}

#define WIDE_CASE(row_count)                                       \
    case row_count:                                                \
        if (tile->offsets != NULL) {                               \
            multiply(tile, (tile_kind){(row_count), 2, 1, true});  \
        } else {                                                   \
            multiply(tile, (tile_kind){(row_count), 2, 1, false}); \
        }                                                          \
        break;

#define NARROW_CASE(row_count)                                     \
    case row_count:                                                \
        if (tile->offsets != NULL) {                               \
            multiply(tile, (tile_kind){(row_count), 1, 1, true});  \
        } else {                                                   \
            multiply(tile, (tile_kind){(row_count), 1, 1, false}); \
        }                                                          \
        break;

static void multiply_narrow(const rondo__tile *tile) {
    switch (tile->rows) {
        NARROW_CASE(1)
        NARROW_CASE(2)
        NARROW_CASE(3)
        NARROW_CASE(4)
#if RONDO_NARROW_TILE_ROWS >= 8
        NARROW_CASE(5)
        NARROW_CASE(6)
        NARROW_CASE(7)
        NARROW_CASE(8)
#endif
#if RONDO_NARROW_TILE_ROWS >= 12
        NARROW_CASE(9)
        NARROW_CASE(10)
        NARROW_CASE(11)
        NARROW_CASE(12)
#endif
        default:
            break;
    }
}

static void multiply_wide(const rondo__tile *tile) {
    switch (tile->rows) {
        WIDE_CASE(1)
        WIDE_CASE(2)
        WIDE_CASE(3)
        WIDE_CASE(4)
#if RONDO_TILE_ROWS >= 6
        WIDE_CASE(5)
        WIDE_CASE(6)
#endif
#if RONDO_TILE_ROWS >= 12
        WIDE_CASE(7)
        WIDE_CASE(8)
        WIDE_CASE(9)
        WIDE_CASE(10)
        WIDE_CASE(11)
        WIDE_CASE(12)
#endif
        default:
            break;
    }
}

void RONDO_SIMD_NAME(rondo__simd_multiply_tile)(const rondo__tile *tile) {
    if (tile->is_split && tile->offsets == NULL && tile->rows <= 3) {
        multiply_split(tile);
    } else if (tile->columns <= WIDTH) {
        multiply_narrow(tile);
    } else {
        multiply_wide(tile);
    }
}
