// kernel/host/simd/simd_winograd.c — tiles of Winograd's way to convolve with 3 x 3 taps, for one
// instruction set: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016.
//
//   y = A' [ (G g G') * (B' d B) ] A      d [n, n] of x, y [m, m], n = m + 2, * number by number
//
// Points 0, 1, -1 and infinity for m = 2; 0, 3/4, -3/4, 3/2, -3/2 and infinity for m = 4, where
// the usual ones (0, 1, -1, 2, -2) lose three times as many digits. Channels are the lanes.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/simd/simd_level.h"
#include "kernel/host/simd/simd_math.h"

#define INLINE inline __attribute__((always_inline))

enum { WIDTH = RONDO_SIMD_WIDTH, N_MAX = RONDO__WINOGRAD_N_MAX };

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(WIDTH * sizeof(float))));

static INLINE vector load(const float *x) {
    vector result;
    memcpy(&result, x, sizeof result);
    return result;
}

static INLINE vector choose(mask which, vector yes, vector no) {
    return (vector)(((mask)yes & which) | ((mask)no & ~which));
}

static const float a1 = 0.75f, b1 = 1.5f;                                  // the points
static const float a2 = 0.5625f, b2 = 2.25f, a3 = 0.421875f, b3 = 3.375f;  // their powers
static const float sum_2 = 2.8125f, product_2 = 1.265625f;                 // a2 + b2, a2 * b2

// t = B' d of one line.
static INLINE void turn_x(const int m, const vector *d, vector *t) {
    if (m == 2) {
        t[0] = d[2] - d[0];
        t[1] = d[2] + d[1];
        t[2] = d[2] - d[1];
        t[3] = d[3] - d[1];
        return;
    }
    const vector even_a = d[4] - b2 * d[2], odd_a = a1 * (d[3] - b2 * d[1]);
    const vector even_b = d[4] - a2 * d[2], odd_b = b1 * (d[3] - a2 * d[1]);
    t[0] = product_2 * d[0] - sum_2 * d[2] + d[4];
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = product_2 * d[1] - sum_2 * d[3] + d[5];
}

// y = A' t of one line.
static INLINE void turn_y(const int m, const vector *t, vector *y) {
    const vector even_a = t[1] + t[2], odd_a = t[1] - t[2];
    if (m == 2) {
        y[0] = t[0] + even_a;
        y[1] = odd_a + t[3];
        return;
    }
    const vector even_b = t[3] + t[4], odd_b = t[3] - t[4];
    y[0] = t[0] + even_a + even_b;
    y[1] = a1 * odd_a + b1 * odd_b;
    y[2] = a2 * even_a + b2 * even_b;
    y[3] = a3 * odd_a + b3 * odd_b + t[5];
}

static INLINE void turn_in(const rondo__winograd_tile *tile, const int m) {
    const int n = m + 2;
    for (int64_t c = 0; c < tile->channels; c += WIDTH) {
        vector half[N_MAX][N_MAX], line[N_MAX], turned[N_MAX];
        RONDO_UNROLL
        for (int j = 0; j < n; ++j) {
            RONDO_UNROLL
            for (int i = 0; i < n; ++i) {
                line[i] = load(tile->x[i * n + j] + c);
            }
            turn_x(m, line, turned);
            RONDO_UNROLL
            for (int i = 0; i < n; ++i) {
                half[i][j] = turned[i];
            }
        }
        RONDO_UNROLL
        for (int i = 0; i < n; ++i) {
            turn_x(m, half[i], turned);
            RONDO_UNROLL
            for (int j = 0; j < n; ++j) {
                memcpy(tile->v + (i * n + j) * tile->v_step + c, &turned[j], sizeof(vector));
            }
        }
    }
}

// Puts one vector of y, which is a sum by now.
static INLINE void put(const rondo__winograd_tile *tile, int pixel, int64_t f, vector value) {
    if (tile->y[pixel] == NULL) {
        return;
    }
    if (tile->bias != NULL) {
        value += load(tile->bias + f);
    }
    if (tile->z != NULL) {
        value += load(tile->z[pixel] + f);
    }
    const vector low = tile->low - (vector){0}, high = tile->high - (vector){0};
    value = choose(value < low, low, value);  // NaN stays
    value = choose(value > high, high, value);
    memcpy(tile->y[pixel] + f, &value, sizeof value);
}

static INLINE bool turn_back(const rondo__winograd_tile *tile, const int m) {
    const int n = m + 2;
    vector strays = {0};  // stays 0 while all sums are finite
    for (int64_t f = 0; f < tile->filters; f += WIDTH) {
        vector half[N_MAX][N_MAX], line[N_MAX], turned[N_MAX];
        RONDO_UNROLL
        for (int j = 0; j < n; ++j) {
            RONDO_UNROLL
            for (int i = 0; i < n; ++i) {
                line[i] = load(tile->sums + (i * n + j) * tile->sums_step + f);
            }
            turn_y(m, line, turned);
            RONDO_UNROLL
            for (int i = 0; i < m; ++i) {
                half[i][j] = turned[i];
            }
        }
        RONDO_UNROLL
        for (int i = 0; i < m; ++i) {
            turn_y(m, half[i], turned);
            RONDO_UNROLL
            for (int j = 0; j < m; ++j) {
                strays += turned[j] - turned[j];
                put(tile, i * m + j, f, turned[j]);
            }
        }
    }
    const mask found = strays != (vector){0};
    int32_t any = 0;
    for (int lane = 0; lane < WIDTH; ++lane) {
        any |= found[lane];
    }
    return any == 0;
}

void RONDO_SIMD_NAME(rondo__simd_winograd_in)(const rondo__winograd_tile *tile) {
    if (tile->m == 2) {
        turn_in(tile, 2);
    } else {
        turn_in(tile, 4);
    }
}

bool RONDO_SIMD_NAME(rondo__simd_winograd_back)(const rondo__winograd_tile *tile) {
    return tile->m == 2 ? turn_back(tile, 2) : turn_back(tile, 4);
}
