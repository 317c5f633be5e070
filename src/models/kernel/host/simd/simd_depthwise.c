// kernel/host/simd/simd_depthwise.c — the inner block of convolutions with one filter for each
// channel.
//
// Channels are neighbours, so a vector of them goes through all taps of a window by itself. A few
// windows are done together: they share the loads of the weights, and there are enough sums to hide
// the latency of an addition.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/simd/simd_level.h"

enum { WIDTH = RONDO_SIMD_WIDTH };

#if defined(RONDO_SIMD_CHECKED)
#define INLINE_BLOCK
#else
#define INLINE_BLOCK inline __attribute__((always_inline))
#endif

typedef float wide __attribute__((vector_size(WIDTH * sizeof(float))));
typedef float small __attribute__((vector_size(4 * sizeof(float))));

// Defines name(d, c, row, rows): channels from `c` on, as many as `vectors` of a type have, of
// windows from `row` on.
#define DEFINE_BLOCK(name, type, vectors, row_most)                                    \
    static INLINE_BLOCK void name(const rondo__depthwise *d, int64_t c, int64_t row,   \
                                  const int rows) {                                    \
        enum { LANES = sizeof(type) / sizeof(float) };                                 \
        type sums[row_most][vectors];                                                  \
        RONDO_UNROLL                                                                   \
        for (int v = 0; v < (vectors); ++v) {                                          \
            type bias = {0};                                                           \
            if (d->bias != NULL) {                                                     \
                memcpy(&bias, d->bias + c + v * LANES, sizeof bias);                   \
            }                                                                          \
            RONDO_UNROLL                                                               \
            for (int r = 0; r < rows; ++r) {                                           \
                sums[r][v] = bias;                                                     \
            }                                                                          \
        }                                                                              \
        const float *x = d->x + row * d->x_step + c;                                   \
        for (int32_t tap = 0; tap < d->tap_count; ++tap) {                             \
            const float *from = x + d->taps[tap].offset;                               \
            const float *weights = d->weights + d->taps[tap].number * d->channels + c; \
            RONDO_UNROLL                                                               \
            for (int v = 0; v < (vectors); ++v) {                                      \
                type weight, value;                                                    \
                memcpy(&weight, weights + v * LANES, sizeof weight);                   \
                RONDO_UNROLL                                                           \
                for (int r = 0; r < rows; ++r) {                                       \
                    memcpy(&value, from + r * d->x_step + v * LANES, sizeof value);    \
                    sums[r][v] += weight * value;                                      \
                }                                                                      \
            }                                                                          \
        }                                                                              \
        RONDO_UNROLL                                                                   \
        for (int r = 0; r < rows; ++r) {                                               \
            RONDO_UNROLL                                                               \
            for (int v = 0; v < (vectors); ++v) {                                      \
                if (d->z != NULL) {                                                    \
                    type z;                                                            \
                    memcpy(&z, d->z + (row + r) * d->z_row + c + v * LANES, sizeof z); \
                    sums[r][v] += z;                                                   \
                }                                                                      \
                memcpy(d->y + (row + r) * d->y_row + c + v * LANES, &sums[r][v],       \
                       sizeof sums[r][v]);                                             \
            }                                                                          \
        }                                                                              \
    }

DEFINE_BLOCK(double_block, wide, 2, 4)
DEFINE_BLOCK(wide_block, wide, 1, 8)
DEFINE_BLOCK(small_block, small, 1, 4)

static void single_block(const rondo__depthwise *d, int64_t c, int64_t row) {
    float sum = d->bias != NULL ? d->bias[c] : 0.0f;
    for (int32_t tap = 0; tap < d->tap_count; ++tap) {
        sum += d->weights[d->taps[tap].number * d->channels + c] *
               d->x[row * d->x_step + d->taps[tap].offset + c];
    }
    d->y[row * d->y_row + c] = sum + (d->z != NULL ? d->z[row * d->z_row + c] : 0.0f);
}

// All windows, at channels from `c` on that fill one or two vectors.
static void do_doubles(const rondo__depthwise *d, int64_t c) {
    int64_t row = 0;
    for (; row + 4 <= d->rows; row += 4) {
        double_block(d, c, row, 4);
    }
    for (; row < d->rows; ++row) {
        double_block(d, c, row, 1);
    }
}

static void do_wides(const rondo__depthwise *d, int64_t c) {
    int64_t row = 0;
    for (; row + 8 <= d->rows; row += 8) {
        wide_block(d, c, row, 8);
    }
    for (; row < d->rows; ++row) {
        wide_block(d, c, row, 1);
    }
}

static void do_smalls(const rondo__depthwise *d, int64_t c) {
    int64_t row = 0;
    for (; row + 4 <= d->rows; row += 4) {
        small_block(d, c, row, 4);
    }
    for (; row < d->rows; ++row) {
        small_block(d, c, row, 1);
    }
}

static void clamp_row(float *y, int64_t count, float low, float high) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        const float raised = y[i] < low ? low : y[i];
        y[i] = raised > high ? high : raised;
    }
}

void RONDO_SIMD_NAME(rondo__simd_convolve_depthwise)(const rondo__depthwise *d) {
    int64_t c = 0;
    for (; c + 2 * WIDTH <= d->channels; c += 2 * WIDTH) {
        do_doubles(d, c);
    }
    for (; c + WIDTH <= d->channels; c += WIDTH) {
        do_wides(d, c);
    }
    for (; c + 4 <= d->channels; c += 4) {
        do_smalls(d, c);
    }
    for (; c < d->channels; ++c) {
        for (int64_t row = 0; row < d->rows; ++row) {
            single_block(d, c, row);
        }
    }
    for (int64_t row = 0; row < d->rows && d->is_clamped; ++row) {
        clamp_row(d->y + row * d->y_row, d->channels, d->low, d->high);
    }
}
