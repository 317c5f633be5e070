// kernel/turn.c — see turn.h.
//
// Tile by tile: a tile's rows and columns stay in the processor's first cache, where a walk along
// whole columns would load each line once for each of its elements. Elements of two bytes, the
// weights of half precision, are turned eight by eight in registers.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/turn.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { TILE = 64 };

static size_t at_most(size_t value, size_t most) {
    return value < most ? value : most;
}

// The part of a tile that is turned one by one: from `row_begin` and `column_begin` on.
#define DEFINE_TURN_RANGE(bits)                                                             \
    static void turn_range_##bits(const uint##bits##_t *from, size_t from_pitch,            \
                                  uint##bits##_t *to, size_t to_pitch, size_t row_begin,    \
                                  size_t row_end, size_t column_begin, size_t column_end) { \
        for (size_t column = column_begin; column < column_end; ++column) {                 \
            for (size_t row = row_begin; row < row_end; ++row) {                            \
                to[column * to_pitch + row] = from[row * from_pitch + column];              \
            }                                                                               \
        }                                                                                   \
    }

DEFINE_TURN_RANGE(8)
DEFINE_TURN_RANGE(16)
DEFINE_TURN_RANGE(32)
DEFINE_TURN_RANGE(64)

#if defined(__SSE2__)
// Eight rows of eight: three rounds of interleaving, of elements, pairs and fours.
static void turn_eight(const uint16_t *from, size_t from_pitch, uint16_t *to, size_t to_pitch) {
    __m128i a[8], b[8];
    for (size_t i = 0; i < 8; ++i) {
        a[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + i * from_pitch));
    }
    for (size_t i = 0; i < 4; ++i) {
        b[2 * i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    for (size_t i = 0; i < 2; ++i) {
        a[4 * i] = _mm_unpacklo_epi32(b[4 * i], b[4 * i + 2]);
        a[4 * i + 1] = _mm_unpackhi_epi32(b[4 * i], b[4 * i + 2]);
        a[4 * i + 2] = _mm_unpacklo_epi32(b[4 * i + 1], b[4 * i + 3]);
        a[4 * i + 3] = _mm_unpackhi_epi32(b[4 * i + 1], b[4 * i + 3]);
    }
    for (size_t i = 0; i < 4; ++i) {
        b[2 * i] = _mm_unpacklo_epi64(a[i], a[4 + i]);
        b[2 * i + 1] = _mm_unpackhi_epi64(a[i], a[4 + i]);
    }
    for (size_t i = 0; i < 8; ++i) {
        _mm_storeu_si128((__m128i *)(void *)(to + i * to_pitch), b[i]);
    }
}

static void turn_tile_16(const uint16_t *from, size_t from_pitch, uint16_t *to, size_t to_pitch,
                         size_t rows, size_t columns) {
    const size_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
    for (size_t column = 0; column < whole_columns; column += 8) {
        for (size_t row = 0; row < whole_rows; row += 8) {
            turn_eight(from + row * from_pitch + column, from_pitch, to + column * to_pitch + row,
                       to_pitch);
        }
    }
    turn_range_16(from, from_pitch, to, to_pitch, whole_rows, rows, 0, columns);
    turn_range_16(from, from_pitch, to, to_pitch, 0, whole_rows, whole_columns, columns);
}
#else
static void turn_tile_16(const uint16_t *from, size_t from_pitch, uint16_t *to, size_t to_pitch,
                         size_t rows, size_t columns) {
    turn_range_16(from, from_pitch, to, to_pitch, 0, rows, 0, columns);
}
#endif

static void turn_tile(const char *from, size_t from_pitch, char *to, size_t to_pitch, size_t rows,
                      size_t columns, size_t element_bytes) {
    switch (element_bytes) {
        case 1:
            turn_range_8((const uint8_t *)from, from_pitch, (uint8_t *)to, to_pitch, 0, rows, 0,
                         columns);
            break;
        case 2:
            turn_tile_16((const uint16_t *)(const void *)from, from_pitch, (uint16_t *)(void *)to,
                         to_pitch, rows, columns);
            break;
        case 4:
            turn_range_32((const uint32_t *)(const void *)from, from_pitch, (uint32_t *)(void *)to,
                          to_pitch, 0, rows, 0, columns);
            break;
        case 8:
            turn_range_64((const uint64_t *)(const void *)from, from_pitch, (uint64_t *)(void *)to,
                          to_pitch, 0, rows, 0, columns);
            break;
        default:
            for (size_t i = 0; i < rows * columns; ++i) {
                const size_t row = i / columns, column = i % columns;
                memcpy(to + (column * to_pitch + row) * element_bytes,
                       from + (row * from_pitch + column) * element_bytes, element_bytes);
            }
            break;
    }
}

void rondo__turn(const void *from, size_t from_pitch, void *to, size_t to_pitch, size_t rows,
                 size_t columns, size_t element_bytes) {
    if (columns == 1 && from_pitch == 1) {
        memcpy(to, from, rows * element_bytes);
        return;
    }
    for (size_t column = 0; column < columns; column += TILE) {
        for (size_t row = 0; row < rows; row += TILE) {
            turn_tile((const char *)from + (row * from_pitch + column) * element_bytes, from_pitch,
                      (char *)to + (column * to_pitch + row) * element_bytes, to_pitch,
                      at_most(rows - row, TILE), at_most(columns - column, TILE), element_bytes);
        }
    }
}
