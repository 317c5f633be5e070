// kernel/host/simd/simd_byte_tile.c — the inner block of products of 8-bit numbers, and what brings
// operands into its form (byte_simd.h).
//
// As in simd_tile.c the result block lives in registers. A step takes 4 bytes of each row of a (4
// bytes, or 2 numbers of 16 bits) and as many numbers of each of two vectors of columns.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/simd/simd_byte_level.h"

#if defined(RONDO_BYTE_INTRINSICS)
#include <immintrin.h>
#endif

enum { WIDTH = RONDO_BYTE_WIDTH, GROUP = RONDO_BYTE_GROUP, COLUMNS = 2 * WIDTH };
enum { VECTOR_BYTES = WIDTH * GROUP };  // of b

typedef int32_t vector __attribute__((vector_size(WIDTH * sizeof(int32_t))));
typedef float reals __attribute__((vector_size(WIDTH * sizeof(float))));

// What each level has of its own: b as its instructions take it, and sum + a * b for WIDTH columns,
// where `a` are the same 4 bytes for all. Where cuts are wanted, is_cut says that they were made.
#if defined(__AVX512VNNI__)
typedef __m512i columns_b;
static RONDO_BYTE_INLINE columns_b load_b(const int8_t *b, const bool is_cut) {
    (void)is_cut;
    return _mm512_loadu_si512(b);
}
static RONDO_BYTE_INLINE vector add_product(vector sum, int32_t a, columns_b b, const bool is_cut) {
    (void)is_cut;
    return (vector)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(a), b);
}
#elif defined(RONDO_BYTE_CUTS)
#if defined(__AVX512BW__)
typedef __m512i all_bytes;
#define CALL(name) _mm512_##name
#define LOAD_BYTES(from) _mm512_loadu_si512(from)
#else
typedef __m256i all_bytes;
#define CALL(name) _mm256_##name
#define LOAD_BYTES(from) _mm256_loadu_si256((const __m256i *)(const void *)(from))
#endif
// Cut: the bytes. Otherwise numbers 0 and 2 of each column as 16 bits, then 1 and 3.
typedef struct columns_b {
    all_bytes first, second;
} columns_b;
static RONDO_BYTE_INLINE columns_b load_b(const int8_t *b, const bool is_cut) {
    const all_bytes all = LOAD_BYTES(b);
    if (is_cut) {
        return (columns_b){all, all};
    }
    return (columns_b){CALL(srai_epi16)(CALL(slli_epi16)(all, 8), 8), CALL(srai_epi16)(all, 8)};
}
static RONDO_BYTE_INLINE vector add_product(vector sum, int32_t a, columns_b b, const bool is_cut) {
    const all_bytes four = CALL(set1_epi32)(a);
    if (is_cut) {
        return sum +
               (vector)CALL(madd_epi16)(CALL(maddubs_epi16)(four, b.first), CALL(set1_epi16)(1));
    }
    const all_bytes even = CALL(srli_epi16)(CALL(slli_epi16)(four, 8), 8);
    const all_bytes odd = CALL(srli_epi16)(four, 8);
    return sum + (vector)CALL(madd_epi16)(even, b.first) + (vector)CALL(madd_epi16)(odd, b.second);
}
#elif defined(__AVX512BW__)
typedef __m512i columns_b;
static RONDO_BYTE_INLINE columns_b load_b(const int8_t *b, const bool is_cut) {
    (void)is_cut;
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)b));
}
static RONDO_BYTE_INLINE vector add_product(vector sum, int32_t a, columns_b b, const bool is_cut) {
    (void)is_cut;
    return sum + (vector)_mm512_madd_epi16(_mm512_set1_epi32(a), b);
}
#elif defined(__AVX2__)
typedef __m256i columns_b;
static RONDO_BYTE_INLINE columns_b load_b(const int8_t *b, const bool is_cut) {
    (void)is_cut;
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)b));
}
static RONDO_BYTE_INLINE vector add_product(vector sum, int32_t a, columns_b b, const bool is_cut) {
    (void)is_cut;
    return sum + (vector)_mm256_madd_epi16(_mm256_set1_epi32(a), b);
}
#elif defined(__SSE2__)
typedef __m128i columns_b;
static RONDO_BYTE_INLINE columns_b load_b(const int8_t *b, const bool is_cut) {
    (void)is_cut;
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)b);
    return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}
static RONDO_BYTE_INLINE vector add_product(vector sum, int32_t a, columns_b b, const bool is_cut) {
    (void)is_cut;
    return sum + (vector)_mm_madd_epi16(_mm_set1_epi32(a), b);
}
#else
typedef struct columns_b {
    vector first, second;
} columns_b;
static RONDO_BYTE_INLINE columns_b load_b(const int8_t *b, const bool is_cut) {
    (void)is_cut;
    columns_b columns;
    for (int c = 0; c < WIDTH; ++c) {
        columns.first[c] = b[GROUP * c];
        columns.second[c] = b[GROUP * c + 1];
    }
    return columns;
}
static RONDO_BYTE_INLINE vector add_product(vector sum, int32_t a, columns_b b, const bool is_cut) {
    (void)is_cut;
    int16_t parts[GROUP];
    memcpy(parts, &a, sizeof a);
    return sum + b.first * parts[0] + b.second * parts[1];
}
#endif

#define LOAD(target, address) memcpy(&(target), (address), sizeof(target))

static RONDO_BYTE_INLINE int32_t load_a(const char *a) {
    int32_t bytes;
    memcpy(&bytes, a, sizeof bytes);
    return bytes;
}

static RONDO_BYTE_INLINE reals make_real(vector sum) {
    return __builtin_convertvector(sum, reals);
}

#if defined(RONDO_BYTE_CUTS)
// b as unsigned bytes, 128 larger.
static RONDO_BYTE_INLINE all_bytes load_turned(const int8_t *b) {
    return LOAD_BYTES(b) ^ CALL(set1_epi32)((int32_t)0x80808080u);
}

// sum + b * a of unsigned b and signed a.
static RONDO_BYTE_INLINE vector add_turned(vector sum, all_bytes b, all_bytes a) {
    return sum + (vector)CALL(madd_epi16)(CALL(maddubs_epi16)(b, a), CALL(set1_epi16)(1));
}

// What was cut from row r, and its constant.
static RONDO_BYTE_INLINE void add_row_cuts(const rondo__byte_tile *tile, int r, vector *y0,
                                           vector *y1) {
    const rondo__byte_row_cuts *cuts = &tile->row_cuts;
    *y0 += cuts->constants[r];
    *y1 += cuts->constants[r];
    for (int32_t i = 0; i < cuts->counts[r]; ++i) {
        const rondo__byte_cut *cut = &cuts->cuts[r * (int64_t)cuts->limit + i];
        const int8_t *b = tile->b + (int64_t)(cut->k / GROUP) * 2 * VECTOR_BYTES;
        const int shift = cut->k % GROUP * 8;
        // The rest is a byte, too, alone among its neighbours.
        const all_bytes rest = CALL(set1_epi32)((int32_t)((uint32_t)(uint8_t)cut->rest << shift));
        *y0 = add_turned(*y0, load_turned(b), rest);
        *y1 = add_turned(*y1, load_turned(b + VECTOR_BYTES), rest);
    }
}
#endif

// Row r of the result from its two vectors of sums.
static RONDO_BYTE_INLINE void finish_row(const rondo__byte_tile *tile, int r, vector y0,
                                         vector y1) {
    vector part;
#if defined(RONDO_BYTE_CUTS)
    if (tile->row_cuts.counts != NULL) {
        add_row_cuts(tile, r, &y0, &y1);
    } else if (tile->cut_count > 0) {
        const uint8_t *a = (const uint8_t *)tile->a + r * tile->a_row;
        int32_t rests[COLUMNS] = {0};
        for (int32_t i = 0; i < tile->cut_count; ++i) {
            rests[tile->cuts[i].column] += a[tile->cuts[i].k] * tile->cuts[i].rest;
        }
        LOAD(part, rests);
        y0 += part;
        LOAD(part, rests + WIDTH);
        y1 += part;
    }
#endif
    const int32_t factor = tile->a_factors[r];
    if (factor != 0) {
        LOAD(part, tile->b_sums);
        y0 += part * factor;
        LOAD(part, tile->b_sums + WIDTH);
        y1 += part * factor;
    }
    if (tile->b_zeros != NULL && tile->has_one_zero) {
        const vector all =
            (int32_t)((uint32_t)tile->b_zeros[0] * (uint32_t)tile->a_rests[r]) - (vector){0};
        y0 += all;
        y1 += all;
    } else if (tile->b_zeros != NULL) {
        const int32_t rest = tile->a_rests[r];
        LOAD(part, tile->b_zeros);
        y0 += part * rest;
        LOAD(part, tile->b_zeros + WIDTH);
        y1 += part * rest;
    }
    const bool is_whole = tile->columns == COLUMNS;
    const size_t bytes = (size_t)tile->columns * sizeof(int32_t);
    int32_t edge[COLUMNS];
    char *y = (char *)tile->y + (size_t)(r * tile->y_row) * sizeof(int32_t);
    char *target = is_whole ? y : (char *)edge;
    if (tile->scales == NULL) {
        memcpy(target, &y0, sizeof y0);
        memcpy(target + sizeof y0, &y1, sizeof y1);
    } else {
        reals scale, addend, z0, z1;
        LOAD(scale, tile->scales);
        z0 = make_real(y0) * scale;
        LOAD(scale, tile->scales + WIDTH);
        z1 = make_real(y1) * scale;
        if (tile->addend != NULL) {
            const float *from = tile->addend + r * tile->addend_row;
            float padded[COLUMNS];
            if (!is_whole) {
                memset(padded, 0, sizeof padded);
                memcpy(padded, from, bytes);
                from = padded;
            }
            LOAD(addend, from);
            z0 += addend;
            LOAD(addend, from + WIDTH);
            z1 += addend;
        }
        memcpy(target, &z0, sizeof z0);
        memcpy(target + sizeof z0, &z1, sizeof z1);
    }
    if (!is_whole) {
        memcpy(y, edge, bytes);
    }
}

static RONDO_BYTE_INLINE void multiply_as(const rondo__byte_tile *tile, const int rows,
                                          const int splits, const bool is_cut) {
    vector sums[4][RONDO_BYTE_ROWS][2];
    RONDO_UNROLL
    for (int s = 0; s < splits; ++s) {
        RONDO_UNROLL
        for (int r = 0; r < rows; ++r) {
            sums[s][r][0] = (vector){0};
            sums[s][r][1] = (vector){0};
        }
    }
    const char *a = tile->a;
    const int64_t a_row = tile->a_row;
    const int8_t *b = tile->b;
    const int64_t blocks = tile->blocks;
    int64_t p = 0;
    for (; p + splits <= blocks; p += splits) {
        RONDO_UNROLL
        for (int s = 0; s < splits; ++s) {
            const columns_b b0 = load_b(b, is_cut);
            const columns_b b1 = load_b(b + VECTOR_BYTES, is_cut);
            b += 2 * VECTOR_BYTES;
            RONDO_UNROLL
            for (int r = 0; r < rows; ++r) {
                const int32_t four = load_a(a + r * a_row + 4 * s);
                sums[s][r][0] = add_product(sums[s][r][0], four, b0, is_cut);
                sums[s][r][1] = add_product(sums[s][r][1], four, b1, is_cut);
            }
        }
        a += 4 * splits;
    }
    for (; p < blocks; ++p) {
        const columns_b b0 = load_b(b, is_cut);
        const columns_b b1 = load_b(b + VECTOR_BYTES, is_cut);
        b += 2 * VECTOR_BYTES;
        RONDO_UNROLL
        for (int r = 0; r < rows; ++r) {
            const int32_t four = load_a(a + r * a_row);
            sums[0][r][0] = add_product(sums[0][r][0], four, b0, is_cut);
            sums[0][r][1] = add_product(sums[0][r][1], four, b1, is_cut);
        }
        a += 4;
    }
    RONDO_UNROLL
    for (int r = 0; r < rows; ++r) {
        vector y0 = sums[0][r][0], y1 = sums[0][r][1];
        RONDO_UNROLL
        for (int s = 1; s < splits; ++s) {
            y0 += sums[s][r][0];
            y1 += sums[s][r][1];
        }
        finish_row(tile, r, y0, y1);
    }
}

#if defined(RONDO_BYTE_CUTS)
// Where rows are cut.
static RONDO_BYTE_INLINE void multiply_turned(const rondo__byte_tile *tile, const int rows) {
    vector sums[RONDO_BYTE_ROWS][2];
    RONDO_UNROLL
    for (int r = 0; r < rows; ++r) {
        sums[r][0] = (vector){0};
        sums[r][1] = (vector){0};
    }
    const char *a = tile->a;
    const int8_t *b = tile->b;
    for (int64_t p = 0; p < tile->blocks; ++p, a += 4, b += 2 * VECTOR_BYTES) {
        const all_bytes b0 = load_turned(b), b1 = load_turned(b + VECTOR_BYTES);
        RONDO_UNROLL
        for (int r = 0; r < rows; ++r) {
            const all_bytes four = CALL(set1_epi32)(load_a(a + r * tile->a_row));
            sums[r][0] = add_turned(sums[r][0], b0, four);
            sums[r][1] = add_turned(sums[r][1], b1, four);
        }
    }
    RONDO_UNROLL
    for (int r = 0; r < rows; ++r) {
        finish_row(tile, r, sums[r][0], sums[r][1]);
    }
}

// Widened operands take more registers: half the rows at a time.
static RONDO_BYTE_INLINE void multiply(const rondo__byte_tile *tile, const int rows,
                                       const int splits) {
    if (tile->row_cuts.counts != NULL) {
        multiply_turned(tile, rows);
        return;
    }
    if (tile->cut_count >= 0) {
        multiply_as(tile, rows, splits, true);
        return;
    }
    const int half = WIDTH < 16 && rows > 3 ? rows - 3 : rows;
    multiply_as(tile, half, half == rows ? splits : 1, false);
    if (half < rows) {
        rondo__byte_tile rest = *tile;
        rest.a = (const char *)tile->a + half * tile->a_row;
        rest.a_factors += half;
        rest.a_rests += half;
        rest.addend = tile->addend != NULL ? tile->addend + half * tile->addend_row : NULL;
        rest.y = (char *)tile->y + (size_t)(half * tile->y_row) * sizeof(int32_t);
        multiply_as(&rest, rows - half, 1, false);
    }
}
#else
static RONDO_BYTE_INLINE void multiply(const rondo__byte_tile *tile, const int rows,
                                       const int splits) {
    multiply_as(tile, rows, splits, true);
}
#endif

void RONDO_SIMD_NAME(rondo__byte_multiply)(const rondo__byte_tile *tile) {
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
#if RONDO_BYTE_ROWS >= 6
        case 5:
            multiply(tile, 5, 1);
            break;
        case 6:
            multiply(tile, 6, 1);
            break;
#endif
#if RONDO_BYTE_ROWS >= 12
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

// ---- operands ---------------------------------------------------------------------------------

int32_t RONDO_SIMD_NAME(rondo__byte_prepare_row)(const uint8_t *x, bool is_signed, int64_t count,
                                                 void *row) {
    enum { PIECE = 4 / GROUP };  // bytes of a prepared number
    int32_t sum = 0;
#if RONDO_BYTE_GROUP == 4
    uint8_t *to = row;
    const uint8_t flip = is_signed ? 0x80 : 0;
    for (int64_t i = 0; i < count; ++i) {
        to[i] = x[i] ^ flip;
        sum += x[i] ^ flip;
    }
#else
    int16_t *to = row;
    if (is_signed) {
        for (int64_t i = 0; i < count; ++i) {
            to[i] = (int8_t)x[i];
            sum += (int8_t)x[i];
        }
    } else {
        for (int64_t i = 0; i < count; ++i) {
            to[i] = x[i];
            sum += x[i];
        }
    }
#endif
    for (int64_t i = count; i % GROUP != 0; ++i) {
        memset((char *)row + i * PIECE, 0, PIECE);
    }
    return sum;
}

#if defined(__SSE2__)
typedef __m128i piece;  // 16 bytes of a row

static RONDO_BYTE_INLINE piece load_piece(const uint8_t *row, piece flip) {
    return _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)row), flip);
}

static RONDO_BYTE_INLINE void store_piece(int8_t *block, piece value) {
    _mm_storeu_si128((__m128i *)(void *)block, value);
}

// 16 columns, and of pairs (group 2) with COLUMNS = 8 the first 8 of them.
static RONDO_BYTE_INLINE void interleave(const uint8_t *rows, piece flip, int8_t *block) {
#if RONDO_BYTE_GROUP == 4
    const piece r0 = load_piece(rows, flip), r1 = load_piece(rows + COLUMNS, flip);
    const piece r2 = load_piece(rows + 2 * COLUMNS, flip),
                r3 = load_piece(rows + 3 * COLUMNS, flip);
    const piece low01 = _mm_unpacklo_epi8(r0, r1), high01 = _mm_unpackhi_epi8(r0, r1);
    const piece low23 = _mm_unpacklo_epi8(r2, r3), high23 = _mm_unpackhi_epi8(r2, r3);
    store_piece(block, _mm_unpacklo_epi16(low01, low23));
    store_piece(block + 16, _mm_unpackhi_epi16(low01, low23));
    store_piece(block + 32, _mm_unpacklo_epi16(high01, high23));
    store_piece(block + 48, _mm_unpackhi_epi16(high01, high23));
#elif RONDO_BYTE_WIDTH > 4
    const piece r0 = load_piece(rows, flip), r1 = load_piece(rows + COLUMNS, flip);
    store_piece(block, _mm_unpacklo_epi8(r0, r1));
    store_piece(block + 16, _mm_unpackhi_epi8(r0, r1));
#else
    const piece both = load_piece(rows, flip);
    store_piece(block, _mm_unpacklo_epi8(both, _mm_srli_si128(both, 8)));
#endif
}
#endif

void RONDO_SIMD_NAME(rondo__byte_pack_block)(const uint8_t *rows, bool is_signed, int8_t *block,
                                             int32_t *sums) {
#if defined(__SSE2__)
    const piece flip = _mm_set1_epi8(is_signed ? 0 : (char)0x80);
    for (int c = 0; c < COLUMNS; c += 16) {
        interleave(rows + c, flip, block + c * GROUP);
    }
#else
    const uint8_t flip = is_signed ? 0 : 0x80;
    for (int c = 0; c < COLUMNS; ++c) {
        for (int g = 0; g < GROUP; ++g) {
            block[c * GROUP + g] = (int8_t)(rows[g * COLUMNS + c] ^ flip);
        }
    }
#endif
    const int32_t ones = GROUP == 4 ? 0x01010101 : 0x00010001;
    if (sums == NULL) {
        return;
    }
    vector sum;
    for (int i = 0; i < 2; ++i) {
        LOAD(sum, sums + i * WIDTH);
        sum = add_product(sum, ones, load_b(block + i * VECTOR_BYTES, true), true);
        memcpy(sums + i * WIDTH, &sum, sizeof sum);
    }
}
