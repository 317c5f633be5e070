// random/random_loops.c — the ops' loops on the host; compiled once for each instruction set.
//
// Groups are made in tiles that stay in the first-level cache: the words of a tile, word by word in
// arrays of their own, so that compilers turn the rounds into vector code; then numbers; then
// elements. The arithmetic is that of cu/random_numbers.cuh, the very text that runs on CUDA.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <string.h>

#include "random/cu/philox.cuh"
#include "random/cu/random_numbers.cuh"
#include "random/random_loops.h"
#include "rondo/tensor.h"

enum { TILE = 128 };  // groups

typedef struct word_tile {
    _Alignas(64) uint32_t word[4][TILE];
} word_tile;

static void make_words(const rondo__random_arguments *a, uint64_t group, word_tile *out) {
    const uint64_t seed = a->state[0];
    const uint64_t first = a->state[1] + a->relative + group;
    const uint32_t low = (uint32_t)first;
    const uint32_t high = (uint32_t)(first >> 32);
    for (uint32_t i = 0; i < TILE; ++i) {
        const uint32_t counter_low = low + i;
        const uint32_t counter[4] = {counter_low, high + (counter_low < low), 0, 0};
        uint32_t word[4];
        rondo_philox_words((uint32_t)seed, (uint32_t)(seed >> 32), counter, word);
        out->word[0][i] = word[0];
        out->word[1][i] = word[1];
        out->word[2][i] = word[2];
        out->word[3][i] = word[3];
    }
}

// Elements of the tile that starts at `group` and ends at `end` at the latest.
static size_t get_length(uint64_t count, uint64_t group, uint64_t end, uint64_t group_size) {
    const uint64_t groups = end - group < TILE ? end - group : TILE;
    const uint64_t left = count - group * group_size;
    return (size_t)(left < groups * group_size ? left : groups * group_size);
}

// ---- words ------------------------------------------------------------------------------------

static void run_words(const rondo__random_arguments *a, uint64_t begin, uint64_t end) {
    word_tile tile;
    uint32_t row[4 * TILE];
    for (uint64_t group = begin; group < end; group += TILE) {
        make_words(a, group, &tile);
        for (size_t i = 0; i < TILE; ++i) {
            row[4 * i] = tile.word[0][i];
            row[4 * i + 1] = tile.word[1][i];
            row[4 * i + 2] = tile.word[2][i];
            row[4 * i + 3] = tile.word[3][i];
        }
        memcpy((uint32_t *)a->out + group * 4, row,
               get_length(a->count, group, end, 4) * sizeof *row);
    }
}

// ---- single precision and halves --------------------------------------------------------------

static void store_floats(const rondo__random_arguments *a, uint64_t group, uint64_t end,
                         const float *row) {
    const size_t length = get_length(a->count, group, end, 4);
    if (a->dtype == RONDO_DTYPE_F32) {
        memcpy((float *)a->out + group * 4, row, length * sizeof *row);
        return;
    }
    uint16_t bits[4 * TILE];
    if (a->dtype == RONDO_DTYPE_F16) {
        for (size_t i = 0; i < (size_t)4 * TILE; ++i) {
            bits[i] = rondo_f16_bits(row[i]);
        }
    } else {
        for (size_t i = 0; i < (size_t)4 * TILE; ++i) {
            bits[i] = rondo_bf16_bits(row[i]);
        }
    }
    memcpy((uint16_t *)a->out + group * 4, bits, length * sizeof *bits);
}

static void run_uniform(const rondo__random_arguments *a, uint64_t begin, uint64_t end) {
    const float low = (float)a->a;
    const float range = (float)a->b;
    const float top = (float)a->c;
    const int shift = (int)a->bits;
    const float step = rondo_bits_to_f32((127u - 32u + (uint32_t)shift) << 23);
    word_tile tile;
    float row[4 * TILE];
    for (uint64_t group = begin; group < end; group += TILE) {
        make_words(a, group, &tile);
        for (size_t i = 0; i < TILE; ++i) {
            row[4 * i] = rondo_uniform_f32(tile.word[0][i], shift, step, low, range, top);
            row[4 * i + 1] = rondo_uniform_f32(tile.word[1][i], shift, step, low, range, top);
            row[4 * i + 2] = rondo_uniform_f32(tile.word[2][i], shift, step, low, range, top);
            row[4 * i + 3] = rondo_uniform_f32(tile.word[3][i], shift, step, low, range, top);
        }
        store_floats(a, group, end, row);
    }
}

static void run_normal(const rondo__random_arguments *a, uint64_t begin, uint64_t end) {
    const float mean = (float)a->a;
    const float deviation = (float)a->b;
    word_tile tile;
    float row[4 * TILE];
    for (uint64_t group = begin; group < end; group += TILE) {
        make_words(a, group, &tile);
        for (size_t i = 0; i < TILE; ++i) {
            float x0, x1, x2, x3;
            rondo_normal_f32(tile.word[0][i], tile.word[1][i], &x0, &x1);
            rondo_normal_f32(tile.word[2][i], tile.word[3][i], &x2, &x3);
            row[4 * i] = RONDO_FMA_F32(x0, deviation, mean);
            row[4 * i + 1] = RONDO_FMA_F32(x1, deviation, mean);
            row[4 * i + 2] = RONDO_FMA_F32(x2, deviation, mean);
            row[4 * i + 3] = RONDO_FMA_F32(x3, deviation, mean);
        }
        store_floats(a, group, end, row);
    }
}

// ---- double precision -------------------------------------------------------------------------

static void run_uniform_f64(const rondo__random_arguments *a, uint64_t begin, uint64_t end) {
    word_tile tile;
    double row[2 * TILE];
    for (uint64_t group = begin; group < end; group += TILE) {
        make_words(a, group, &tile);
        for (size_t i = 0; i < TILE; ++i) {
            row[2 * i] = rondo_uniform_f64(tile.word[0][i], tile.word[1][i], a->a, a->b, a->c);
            row[2 * i + 1] = rondo_uniform_f64(tile.word[2][i], tile.word[3][i], a->a, a->b, a->c);
        }
        memcpy((double *)a->out + group * 2, row,
               get_length(a->count, group, end, 2) * sizeof *row);
    }
}

static void run_normal_f64(const rondo__random_arguments *a, uint64_t begin, uint64_t end) {
    word_tile tile;
    double row[2 * TILE];
    for (uint64_t group = begin; group < end; group += TILE) {
        make_words(a, group, &tile);
        for (size_t i = 0; i < TILE; ++i) {
            const uint64_t first = (uint64_t)tile.word[1][i] << 32 | tile.word[0][i];
            const uint64_t second = (uint64_t)tile.word[3][i] << 32 | tile.word[2][i];
            double x0, x1;
            rondo_normal_f64(first, second, &x0, &x1);
            row[2 * i] = RONDO_FMA_F64(x0, a->b, a->a);
            row[2 * i + 1] = RONDO_FMA_F64(x1, a->b, a->a);
        }
        memcpy((double *)a->out + group * 2, row,
               get_length(a->count, group, end, 2) * sizeof *row);
    }
}

// ---- Bernoulli and dropout --------------------------------------------------------------------

static uint64_t get_threshold(const rondo__random_arguments *a, uint64_t n) {
    switch (a->in_dtype) {
        case RONDO_DTYPE_F32:
            return rondo_threshold_f32(((const float *)a->in)[n]);
        case RONDO_DTYPE_F64:
            return rondo_threshold_f64(((const double *)a->in)[n]);
        case RONDO_DTYPE_F16:
            return rondo_threshold_f32(rondo_f16_value(((const uint16_t *)a->in)[n]));
        default:
            return rondo_threshold_f32(rondo_bf16_value(((const uint16_t *)a->in)[n]));
    }
}

static void run_bernoulli(const rondo__random_arguments *a, uint64_t begin, uint64_t end) {
    word_tile tile;
    for (uint64_t group = begin; group < end; group += TILE) {
        make_words(a, group, &tile);
        const size_t length = get_length(a->count, group, end, 4);
        for (size_t i = 0; i < length; ++i) {
            const uint64_t n = group * 4 + i;
            const uint64_t threshold = a->in != NULL ? get_threshold(a, n) : a->threshold;
            const uint64_t value = tile.word[i % 4][i / 4] < threshold ? a->bits : 0;
            switch (a->dtype) {  // bytes of an element
                case 1:
                    ((uint8_t *)a->out)[n] = (uint8_t)value;
                    break;
                case 2:
                    ((uint16_t *)a->out)[n] = (uint16_t)value;
                    break;
                case 4:
                    ((uint32_t *)a->out)[n] = (uint32_t)value;
                    break;
                default:
                    ((uint64_t *)a->out)[n] = value;
                    break;
            }
        }
    }
}

// Multiplies what is kept. The mask is 0 or 1.
static void drop_floats(const float *x, float *y, const uint8_t *kept, size_t length, float scale) {
    for (size_t i = 0; i < length; ++i) {
        const float scaled = x[i] * scale;
        y[i] = kept[i] ? scaled : 0.0f;
    }
}

static void run_dropout(const rondo__random_arguments *a, uint64_t begin, uint64_t end) {
    const float scale = (float)a->a;
    word_tile tile;
    uint8_t kept[4 * TILE];
    float row[4 * TILE] = {0};
    for (uint64_t group = begin; group < end; group += TILE) {
        make_words(a, group, &tile);
        const size_t length = get_length(a->count, group, end, 4);
        // As 64-bit numbers, since a ratio of 1 drops every word.
        for (size_t i = 0; i < TILE; ++i) {
            kept[4 * i] = tile.word[0][i] >= a->threshold;
            kept[4 * i + 1] = tile.word[1][i] >= a->threshold;
            kept[4 * i + 2] = tile.word[2][i] >= a->threshold;
            kept[4 * i + 3] = tile.word[3][i] >= a->threshold;
        }
        if (a->mask != NULL) {
            memcpy(a->mask + group * 4, kept, length);
        }
        switch (a->dtype) {
            case RONDO_DTYPE_F32:
                drop_floats((const float *)a->in + group * 4, (float *)a->out + group * 4, kept,
                            length, scale);
                break;
            case RONDO_DTYPE_F64:
                for (size_t i = 0; i < length; ++i) {
                    const double scaled = ((const double *)a->in)[group * 4 + i] * a->a;
                    ((double *)a->out)[group * 4 + i] = kept[i] ? scaled : 0.0;
                }
                break;
            default: {
                const uint16_t *x = (const uint16_t *)a->in + group * 4;
                for (size_t i = 0; i < length; ++i) {
                    row[i] = a->dtype == RONDO_DTYPE_F16 ? rondo_f16_value(x[i])
                                                         : rondo_bf16_value(x[i]);
                }
                drop_floats(row, row, kept, length, scale);
                store_floats(a, group, end, row);
                break;
            }
        }
    }
}

const rondo__random_loops RONDO_RANDOM_NAME(rondo__random_loops) = {
    .run =
        {
            [RONDO__RANDOM_WORDS] = run_words,
            [RONDO__RANDOM_UNIFORM] = run_uniform,
            [RONDO__RANDOM_UNIFORM_F64] = run_uniform_f64,
            [RONDO__RANDOM_NORMAL] = run_normal,
            [RONDO__RANDOM_NORMAL_F64] = run_normal_f64,
            [RONDO__RANDOM_BERNOULLI] = run_bernoulli,
            [RONDO__RANDOM_DROPOUT] = run_dropout,
        },
};
