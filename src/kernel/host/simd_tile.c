// kernel/host/simd_tile.c — the inner block of matrix products.
//
// The result block lives in registers (rows x two vectors) while k runs: for each k, two vectors of
// b are loaded, one value of a per row is broadcast, and 2 * rows multiply-adds follow. With few
// rows there are too few independent sums to hide the latency of an addition, so k is then split
// into several sums that are joined at the end.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/simd_level.h"

enum { WIDTH = RONDO_SIMD_WIDTH, PANEL = 2 * WIDTH };

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));

#define LOAD(target, address) memcpy(&(target), (address), sizeof(vector))
#define STORE(address, source) memcpy((address), &(source), sizeof(vector))

#if defined(RONDO_SIMD_CHECKED)
#define INLINE_TILE
#else
#define INLINE_TILE inline __attribute__((always_inline))
#endif

static INLINE_TILE void multiply(const rondo__tile *tile, const int rows, const int splits) {
    vector sums[4][RONDO_TILE_ROWS][2];
    RONDO_UNROLL
    for (int s = 0; s < splits; ++s) {
        RONDO_UNROLL
        for (int r = 0; r < rows; ++r) {
            sums[s][r][0] = (vector){0};
            sums[s][r][1] = (vector){0};
        }
    }
    const float *row[RONDO_TILE_ROWS];
    RONDO_UNROLL
    for (int r = 0; r < rows; ++r) {
        row[r] = tile->a + r * tile->a_row;
    }
    const float *b = tile->b;
    const int64_t b_row = tile->b_row;
    const int64_t a_column = tile->a_column;
    const int64_t k = tile->k;
    int64_t p = 0;
    for (; p + splits <= k; p += splits) {
        RONDO_UNROLL
        for (int s = 0; s < splits; ++s) {
            vector b0, b1;
            LOAD(b0, b);
            LOAD(b1, b + WIDTH);
            b += b_row;
            RONDO_UNROLL
            for (int r = 0; r < rows; ++r) {
                const float value = row[r][(p + s) * a_column];
                sums[s][r][0] += value * b0;
                sums[s][r][1] += value * b1;
            }
        }
    }
    for (; p < k; ++p) {
        vector b0, b1;
        LOAD(b0, b);
        LOAD(b1, b + WIDTH);
        b += b_row;
        RONDO_UNROLL
        for (int r = 0; r < rows; ++r) {
            const float value = row[r][p * a_column];
            sums[0][r][0] += value * b0;
            sums[0][r][1] += value * b1;
        }
    }
    const bool is_whole = tile->columns == PANEL;
    vector bias0 = {0}, bias1 = {0};
    if (tile->bias != NULL) {
        float edge[PANEL] = {0};
        memcpy(edge, tile->bias, (size_t)tile->columns * sizeof(float));
        LOAD(bias0, edge);
        LOAD(bias1, edge + WIDTH);
    }
    RONDO_UNROLL
    for (int r = 0; r < rows; ++r) {
        vector y0 = sums[0][r][0], y1 = sums[0][r][1];
        RONDO_UNROLL
        for (int s = 1; s < splits; ++s) {
            y0 += sums[s][r][0];
            y1 += sums[s][r][1];
        }
        y0 = y0 * tile->scale + bias0;
        y1 = y1 * tile->scale + bias1;
        float *y = tile->y + r * tile->y_row;
        if (is_whole) {
            if (tile->z != NULL) {
                const float *z = tile->z + r * tile->z_row;
                vector z0, z1;
                LOAD(z0, z);
                LOAD(z1, z + WIDTH);
                y0 += z0;
                y1 += z1;
            }
            STORE(y, y0);
            STORE(y + WIDTH, y1);
        } else {
            float edge[PANEL];
            STORE(edge, y0);
            STORE(edge + WIDTH, y1);
            for (int c = 0; c < tile->columns; ++c) {
                y[c] = edge[c] + (tile->z != NULL ? tile->z[r * tile->z_row + c] : 0.0f);
            }
        }
    }
}

void RONDO_SIMD_NAME(rondo__simd_multiply_tile)(const rondo__tile *tile) {
    switch (tile->rows) {
        case 1:
            multiply(tile, 1, 4);
            break;
        case 2:
            multiply(tile, 2, 2);
            break;
        case 3:
            multiply(tile, 3, 2);
            break;
        case 4:
            multiply(tile, 4, 1);
            break;
#if RONDO_TILE_ROWS >= 6
        case 5:
            multiply(tile, 5, 1);
            break;
        case 6:
            multiply(tile, 6, 1);
            break;
#endif
#if RONDO_TILE_ROWS >= 12
        case 7:
            multiply(tile, 7, 1);
            break;
        case 8:
            multiply(tile, 8, 1);
            break;
        case 9:
            multiply(tile, 9, 1);
            break;
        case 10:
            multiply(tile, 10, 1);
            break;
        case 11:
            multiply(tile, 11, 1);
            break;
        case 12:
            multiply(tile, 12, 1);
            break;
#endif
        default:
            break;
    }
}
