// kernel/host/simd/simd_tile.c — the inner block of matrix products and convolutions.
//
// The result block lives in registers (rows x one or two vectors) while k runs: for each k, the
// vectors of b are loaded, one value of a per row is broadcast, and as many multiply-adds follow.
// With few rows there are too few independent sums to hide the latency of an addition; k is then
// split into several sums that are joined at the end.
//
// The multiply-add units stay busy if the loop has few other instructions: so sums stay in their
// registers (ADD_PRODUCT), the index counts up to zero and needs no limit, and neighbouring rows of
// b have constant distances.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/host/simd/simd_level.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

enum { WIDTH = RONDO_SIMD_WIDTH, PANEL = 2 * WIDTH, SPLITS_MAX = 4, LINE = 16 };

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));

#define LOAD(target, address) memcpy(&(target), (address), sizeof(vector))
#define STORE(address, source) memcpy((address), &(source), sizeof(vector))

#if defined(RONDO_SIMD_CHECKED)
#define INLINE_TILE
#else
#define INLINE_TILE inline __attribute__((always_inline))
#endif

// sum += a * b. A compiler is free to leave the result in the register of a or b, and then moves
// sums about: a twentieth of a tile's time with AVX2.
#if defined(__AVX512F__)
#define ADD_PRODUCT(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#elif defined(__FMA__)
#define ADD_PRODUCT(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b))
#else
#define ADD_PRODUCT(sum, a, b) ((sum) += (a) * (b))
#endif

// What is constant where a tile is compiled.
typedef struct tile_kind {
    int rows;
    int vectors;  // of a row
    int splits;
    bool is_indexed;
    bool is_packed;  // rows of b follow each other
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
        const vector value = row[r][p] - (vector){0};
        ADD_PRODUCT(sums->at[split][r][0], value, b0);
        if (kind.vectors > 1) {
            ADD_PRODUCT(sums->at[split][r][1], value, b1);
        }
    }
}

// Adds `count` columns of a times rows of b; returns where b goes on.
static INLINE_TILE const float *add_run(const tile_kind kind, tile_sums *sums,
                                        const float *const *row, const int32_t *offsets,
                                        int64_t count, const float *b, int64_t b_row,
                                        int64_t b_ahead) {
    const int steps = kind.splits > RONDO_TILE_STEPS ? kind.splits : RONDO_TILE_STEPS;
    const int64_t whole = count / steps * steps;
    const int32_t *const offsets_end = kind.is_indexed ? offsets + whole : NULL;
    const float *end[RONDO_NARROW_TILE_ROWS];
    RONDO_UNROLL
    for (int r = 0; r < kind.rows; ++r) {
        end[r] = kind.is_indexed ? row[r] : row[r] + whole;
    }
    for (int64_t p = -whole; p < 0; p += steps) {
        __builtin_prefetch(b + b_ahead, 0, 2);
        RONDO_UNROLL
        for (int s = 0; s < steps; ++s) {
            add_column(kind, sums, s % kind.splits, end,
                       kind.is_indexed ? offsets_end[p + s] : p + s, b + s * b_row);
        }
        b += steps * b_row;
    }
    for (int64_t p = whole; p < count; ++p) {
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

// The first `count` numbers of a vector at `from`, and to `to`.
static INLINE_TILE vector load_part(const float *from, int count) {
#if defined(__AVX512F__)
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1u), from);
#elif defined(__AVX2__)
    const __m256i mask =
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_maskload_ps(from, mask);
#else
    vector result = {0};
    memcpy(&result, from, (size_t)count * sizeof(float));
    return result;
#endif
}

static INLINE_TILE void store_part(float *to, vector value, int count) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1u), value);
#elif defined(__AVX2__)
    const __m256i mask =
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_maskstore_ps(to, mask, value);
#else
    memcpy(to, &value, (size_t)count * sizeof(float));
#endif
}

// The end of a tile whose columns do not fill its vectors. `sums` has PANEL numbers for each row.
// All of z is read before y is written: they may be the same rows, and a load that meets part of a
// store waits for it.
static __attribute__((noinline)) void finish_part(const rondo__tile *tile, float *sums) {
    const int columns = tile->columns;
    float *const sums_end = sums + tile->rows * PANEL;
    const float scale = tile->scale, low = tile->low, high = tile->high;
    vector value;
    for (int first = 0; first < columns; first += WIDTH) {
        const int count = columns - first < WIDTH ? columns - first : WIDTH;
        const float *z = tile->z != NULL ? tile->z + first : NULL;
        const int64_t z_row = tile->z_row;
        vector bias = {0};
        if (tile->bias != NULL) {
            bias = load_part(tile->bias + first, count);
        }
        for (float *row = sums + first; row < sums_end; row += PANEL) {
            LOAD(value, row);
            value = value * scale + bias;
            if (z != NULL) {
                value += load_part(z, count);
                z += z_row;
            }
            value = clamp(value, low, high);
            STORE(row, value);
        }
    }
    for (int first = 0; first < columns; first += WIDTH) {
        const int count = columns - first < WIDTH ? columns - first : WIDTH;
        const int64_t y_row = tile->y_row;
        float *y = tile->y + first;
        for (const float *row = sums + first; row < sums_end; row += PANEL) {
            LOAD(value, row);
            store_part(y, value, count);
            y += y_row;
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
                                     const tile_sums *sums, bool has_addend, bool is_clamped) {
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
            if (is_clamped) {
                value = clamp(value, tile->low, tile->high);
            }
            STORE(tile->y + r * tile->y_row + v * WIDTH, value);
        }
    }
}

static INLINE_TILE void finish(const rondo__tile *tile, const tile_kind kind,
                               const tile_sums *sums) {
    if (tile->columns == kind.vectors * WIDTH) {
        const bool is_clamped = tile->low > -INFINITY || tile->high < INFINITY;
        if (tile->z != NULL && is_clamped) {
            finish_whole(tile, kind, sums, true, true);
        } else if (tile->z != NULL) {
            finish_whole(tile, kind, sums, true, false);
        } else if (is_clamped) {
            finish_whole(tile, kind, sums, false, true);
        } else {
            finish_whole(tile, kind, sums, false, false);
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

// The rows that are added at the end are fetched while k runs.
static INLINE_TILE void fetch_addend(const rondo__tile *tile, const tile_kind kind) {
    RONDO_UNROLL
    for (int r = 0; r < kind.rows; ++r) {
        RONDO_UNROLL
        for (int i = 0; i < kind.vectors * WIDTH; i += LINE) {
            __builtin_prefetch(tile->z + r * tile->z_row + i, 0, 3);
        }
    }
}

static INLINE_TILE void multiply(const rondo__tile *tile, const tile_kind kind) {
    tile_sums sums;
    if (tile->z != NULL) {
        fetch_addend(tile, kind);
    }
    RONDO_UNROLL
    for (int s = 0; s < kind.splits; ++s) {
        RONDO_UNROLL
        for (int r = 0; r < kind.rows; ++r) {
            sums.at[s][r][0] = (vector){0};
            sums.at[s][r][1] = (vector){0};
        }
    }
    if (tile->sums != NULL) {
        RONDO_UNROLL
        for (int r = 0; r < kind.rows; ++r) {
            RONDO_UNROLL
            for (int v = 0; v < kind.vectors; ++v) {
                LOAD(sums.at[0][r][v], tile->sums + r * PANEL + v * WIDTH);
            }
        }
    }
    const float *b = tile->b;
    const int64_t b_row = kind.is_packed ? PANEL : tile->b_row;
    const float *const *starts = tile->starts;
    for (int64_t run = 0; run < tile->run_count; ++run) {
        const float *row[RONDO_NARROW_TILE_ROWS];
        RONDO_UNROLL
        for (int r = 0; r < kind.rows; ++r) {
            row[r] = starts[r];
        }
        starts += tile->starts_row;
        b = add_run(kind, &sums, row, tile->offsets, tile->run_length, b, b_row, tile->b_ahead);
    }
    finish(tile, kind, &sums);
}

// Each kind is a function of its own: in one with many loops, compilers run out of registers.
#define TILE(name, ...)                                                   \
    static __attribute__((noinline)) void name(const rondo__tile *tile) { \
        multiply(tile, (tile_kind){__VA_ARGS__});                         \
    }

// Of one to three rows, where k is split.
TILE(split_1, 1, 2, 4, false, false)
TILE(split_2, 2, 2, 2, false, false)
TILE(split_3, 3, 2, 2, false, false)

typedef void (*tile_function)(const rondo__tile *tile);

// By is_indexed and is_packed.
typedef struct tile_functions {
    tile_function by_kind[2][2];
} tile_functions;

#define WIDE(rows)                                     \
    TILE(wide_##rows, rows, 2, 1, false, false)        \
    TILE(wide_packed_##rows, rows, 2, 1, false, true)  \
    TILE(wide_indexed_##rows, rows, 2, 1, true, false) \
    TILE(wide_indexed_packed_##rows, rows, 2, 1, true, true)

#define NARROW(rows)                              \
    TILE(narrow_##rows, rows, 1, 1, false, false) \
    TILE(narrow_indexed_##rows, rows, 1, 1, true, false)

#define WIDE_ROW(rows) \
    {{{wide_##rows, wide_packed_##rows}, {wide_indexed_##rows, wide_indexed_packed_##rows}}},
#define NARROW_ROW(rows) \
    {{{narrow_##rows, narrow_##rows}, {narrow_indexed_##rows, narrow_indexed_##rows}}},

#if RONDO_TILE_ROWS >= 12
#define WIDE_LIST(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif RONDO_TILE_ROWS >= 6
#define WIDE_LIST(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define WIDE_LIST(X) X(1) X(2) X(3) X(4)
#endif

#if RONDO_NARROW_TILE_ROWS >= 12
#define NARROW_LIST(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif RONDO_NARROW_TILE_ROWS >= 8
#define NARROW_LIST(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define NARROW_LIST(X) X(1) X(2) X(3) X(4)
#endif

WIDE_LIST(WIDE)
NARROW_LIST(NARROW)

static const tile_function split_tiles[] = {split_1, split_2, split_3};
static const tile_functions wide_tiles[] = {WIDE_LIST(WIDE_ROW)};
static const tile_functions narrow_tiles[] = {NARROW_LIST(NARROW_ROW)};

void RONDO_SIMD_NAME(rondo__simd_multiply_tile)(const rondo__tile *tile) {
    const bool is_indexed = tile->offsets != NULL;
    if (tile->is_split && !is_indexed && tile->rows <= 3) {
        split_tiles[tile->rows - 1](tile);
        return;
    }
    const tile_functions *functions =
        tile->columns <= WIDTH ? &narrow_tiles[tile->rows - 1] : &wide_tiles[tile->rows - 1];
    functions->by_kind[is_indexed][tile->b_row == PANEL](tile);
}
