// kernel/host/simd/simd_bits.c — products with numbers of 2, 4 or 8 bits, as they are stored.
//
// A row of the panel has one byte of each column, and in it neighbours along k. A step widens such
// a row to as many vectors as a byte has numbers, and multiplies each with one number of a. Scales
// and zero points are the same for a block, so that its sum is put right at its end:
//
//   sum a * (q - zero) * scale = scale * (sum a * q - zero * sum a)
//
// Of 4 bits a byte is p + 16 q, and a * p + b * q = (a - b / 16) * p + b / 16 * byte: so the second
// number is not cut out.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/host/simd/simd_level.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

enum { WIDTH = RONDO_SIMD_WIDTH, PANEL = 2 * WIDTH, SPLITS_MAX = 4 };

#if defined(RONDO_SIMD_CHECKED)
#define INLINE_TILE
#else
#define INLINE_TILE inline __attribute__((always_inline))
#endif

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));
typedef int32_t whole __attribute__((vector_size(WIDTH * sizeof(int32_t))));

#define LOAD(target, address) memcpy(&(target), (address), sizeof(target))
#define STORE(address, source) memcpy((address), &(source), sizeof(source))

// WIDTH bytes.
static INLINE_TILE whole load_bytes(const uint8_t *bytes) {
#if defined(__AVX512F__)
    return (whole)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)bytes));
#elif defined(__AVX2__)
    return (whole)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
#else
    whole wide;
    for (int i = 0; i < WIDTH; ++i) {
        wide[i] = bytes[i];
    }
    return wide;
#endif
}

// Number `part` of each byte.
static INLINE_TILE vector get_part(whole bytes, const int bits, const int part) {
    const whole moved = part > 0 ? bytes >> (bits * part) : bytes;
    whole mask;
    for (int i = 0; i < WIDTH; ++i) {
        mask[i] = (1 << bits) - 1;
    }
    const whole alone = bits * (part + 1) < 8 ? moved & mask : moved;
    return __builtin_convertvector(alone, vector);
}

static INLINE_TILE vector get_zero(const rondo__bits_tile *tile, int64_t at, const int bits) {
    vector zero = (float)(1 << (bits - 1)) - (vector){0};
    if (tile->byte_zeros != NULL) {
        zero = __builtin_convertvector(load_bytes(tile->byte_zeros + at), vector);
    } else if (tile->zeros != NULL) {
        LOAD(zero, tile->zeros + at);
    }
    return zero;
}

// The sums of one block; a's numbers begin at a.
static INLINE_TILE void add_block(const rondo__bits_tile *tile, const float *a, const uint8_t *b,
                                  const int rows, const int bits, vector sums[][2]) {
    const int parts = 8 / bits, splits = rows == 1 ? 4 : rows <= 3 ? 2 : 1;
    vector split[SPLITS_MAX][RONDO__BITS_ROWS][2];
    RONDO_UNROLL
    for (int i = 0; i < splits * rows * 2; ++i) {
        split[i / (rows * 2)][i / 2 % rows][i % 2] = (vector){0};
    }
    for (int64_t i = 0; i < tile->block_bytes; i += 2) {  // even: blocks have 4 bytes at least
        RONDO_UNROLL
        for (int step = 0; step < 2; ++step) {
            const whole b0 = load_bytes(b + (i + step) * PANEL);
            const whole b1 = load_bytes(b + (i + step) * PANEL + WIDTH);
            RONDO_UNROLL
            for (int part = 0; part < parts; ++part) {
                const bool is_whole = bits == 4 && part == 1;
                const vector q0 =
                    is_whole ? __builtin_convertvector(b0, vector) : get_part(b0, bits, part);
                const vector q1 =
                    is_whole ? __builtin_convertvector(b1, vector) : get_part(b1, bits, part);
                const int s = (step * parts + part) % splits;
                RONDO_UNROLL
                for (int r = 0; r < rows; ++r) {
                    const vector value =
                        a[r * tile->a_row + (i + step) * parts + part] - (vector){0};
                    split[s][r][0] += value * q0;
                    split[s][r][1] += value * q1;
                }
            }
        }
    }
    RONDO_UNROLL
    for (int i = 0; i < rows * 2; ++i) {
        vector sum = split[0][i / 2][i % 2];
        for (int s = 1; s < splits; ++s) {
            sum += split[s][i / 2][i % 2];
        }
        sums[i / 2][i % 2] = sum;
    }
}

static INLINE_TILE void multiply(const rondo__bits_tile *tile, const int rows, const int bits) {
    vector totals[RONDO__BITS_ROWS][2];
    for (int r = 0; r < rows; ++r) {
        for (int v = 0; v < 2; ++v) {
            totals[r][v] = (vector){0};
            if (tile->bias != NULL) {
                LOAD(totals[r][v], tile->bias + v * WIDTH);
            }
        }
    }
    const int64_t block = tile->block_bytes * (8 / bits);
    for (int64_t i = 0; i < tile->blocks; ++i) {
        vector sums[RONDO__BITS_ROWS][2];
        add_block(tile, (bits == 4 ? tile->paired : tile->a) + i * block,
                  tile->b + i * tile->block_bytes * PANEL, rows, bits, sums);
        for (int v = 0; v < 2; ++v) {
            const int64_t at = i * PANEL + v * WIDTH;
            const vector zero = get_zero(tile, at, bits);
            vector scale;
            LOAD(scale, tile->scales + at);
            for (int r = 0; r < rows; ++r) {
                totals[r][v] += scale * (sums[r][v] - zero * tile->sums[r * tile->sums_row + i]);
            }
        }
    }
    for (int r = 0; r < rows; ++r) {
        memcpy(tile->y + r * tile->y_row, totals[r], (size_t)tile->columns * sizeof(float));
    }
}

// Infinities in a, which the difference of two sums would make NaN.
static bool is_finite(const rondo__bits_tile *tile) {
    for (int32_t r = 0; r < tile->rows; ++r) {
        for (int64_t i = 0; i < tile->blocks; ++i) {
            if (!isfinite(tile->sums[r * tile->sums_row + i])) {
                return false;
            }
        }
    }
    return true;
}

static void multiply_plain(const rondo__bits_tile *tile) {
    const int parts = 8 / tile->bits;
    const int64_t block = tile->block_bytes * parts;
    for (int32_t at = 0; at < tile->rows * tile->columns; ++at) {
        const int32_t r = at / tile->columns, c = at % tile->columns;
        float sum = tile->bias != NULL ? tile->bias[c] : 0.0f;
        for (int64_t i = 0; i < tile->blocks * block; ++i) {
            const int64_t scale = i / block * PANEL + c;
            const int number = tile->b[i / parts * PANEL + c] >> (tile->bits * (int)(i % parts)) &
                               ((1 << tile->bits) - 1);
            const float zero = tile->byte_zeros != NULL ? (float)tile->byte_zeros[scale]
                               : tile->zeros != NULL    ? tile->zeros[scale]
                                                        : (float)(1 << (tile->bits - 1));
            sum += tile->a[r * tile->a_row + i] * (((float)number - zero) * tile->scales[scale]);
        }
        tile->y[r * tile->y_row + c] = sum;
    }
}

#define DEFINE_ROWS(bits)                                       \
    static void multiply_##bits(const rondo__bits_tile *tile) { \
        switch (tile->rows) {                                   \
            case 1:                                             \
                multiply(tile, 1, bits);                        \
                break;                                          \
            case 2:                                             \
                multiply(tile, 2, bits);                        \
                break;                                          \
            case 3:                                             \
                multiply(tile, 3, bits);                        \
                break;                                          \
            default:                                            \
                multiply(tile, RONDO__BITS_ROWS, bits);         \
                break;                                          \
        }                                                       \
    }
DEFINE_ROWS(2)
DEFINE_ROWS(4)
DEFINE_ROWS(8)

void RONDO_SIMD_NAME(rondo__simd_multiply_bits)(const rondo__bits_tile *tile) {
    if (!is_finite(tile)) {
        multiply_plain(tile);
    } else if (tile->bits == 2) {
        multiply_2(tile);
    } else if (tile->bits == 4) {
        multiply_4(tile);
    } else {
        multiply_8(tile);
    }
}

static INLINE_TILE void widen(const rondo__bits_tile *tile, float *y, const int bits) {
    const int parts = 8 / bits;
    for (int64_t i = 0; i < tile->blocks; ++i) {
        for (int v = 0; v < 2; ++v) {
            const int64_t at = i * PANEL + v * WIDTH;
            const vector zero = get_zero(tile, at, bits);
            vector scale;
            LOAD(scale, tile->scales + at);
            for (int64_t j = i * tile->block_bytes; j < (i + 1) * tile->block_bytes; ++j) {
                const whole b = load_bytes(tile->b + j * PANEL + v * WIDTH);
                RONDO_UNROLL
                for (int part = 0; part < parts; ++part) {
                    const vector value = (get_part(b, bits, part) - zero) * scale;
                    STORE(y + (j * parts + part) * PANEL + v * WIDTH, value);
                }
            }
        }
    }
}

void RONDO_SIMD_NAME(rondo__simd_widen_bits)(const rondo__bits_tile *tile, float *y) {
    if (tile->bits == 2) {
        widen(tile, y, 2);
    } else if (tile->bits == 4) {
        widen(tile, y, 4);
    } else {
        widen(tile, y, 8);
    }
}
