// kernel/host/rows/strided_copy.c — see strided_copy.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/rows/strided_copy.h"

#include <string.h>

#include "kernel/host/host_threads.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
    CORNER = 4,     // edge of a block that registers transpose
    TILE = 16,      // edge of a transposed block: two sides of it fit the first-level cache
    SHORT_ROW = 3,  // columns of rows for each of which a call would take longer than the copy
    STRIP = 512,    // rows of a block whose other edge is shorter than TILE
    BLOCK_BYTES = 16 * 1024,  // of one block of rows, the least that a thread gets
};

// Pieces that an outer axis is cut into.
static int64_t count_pieces(const rondo__strided_copy *copy, int32_t axis) {
    const int64_t extent = copy->extent[axis];
    return axis != copy->block_axis ? extent : (extent + copy->block_rows - 1) / copy->block_rows;
}

void rondo__strided_copy_init(rondo__strided_copy *copy, size_t element_bytes, int32_t rank,
                              const int64_t *extent, const int64_t *from_stride,
                              int64_t from_offset, const int64_t *to_stride, int64_t to_offset) {
    memset(copy, 0, sizeof *copy);
    copy->element_bytes = element_bytes;
    copy->from_offset = from_offset;
    copy->to_offset = to_offset;
    int32_t kept = 0;
    for (int32_t i = 0; i < rank; ++i) {
        if (extent[i] == 1) {
            continue;
        }
        const bool joins = kept > 0 && copy->from_stride[kept - 1] == extent[i] * from_stride[i] &&
                           copy->to_stride[kept - 1] == extent[i] * to_stride[i];
        if (joins) {
            copy->extent[kept - 1] *= extent[i];
        } else {
            copy->extent[kept++] = extent[i];
        }
        copy->from_stride[kept - 1] = from_stride[i];
        copy->to_stride[kept - 1] = to_stride[i];
    }
    if (kept == 0) {
        copy->extent[0] = 1;
        copy->from_stride[0] = 1;
        copy->to_stride[0] = 1;
        kept = 1;
    }
    copy->rank = kept;
    const int32_t last = kept - 1;
    const int64_t length = copy->extent[last];
    copy->block_axis = last - 1;
    copy->block_rows = BLOCK_BYTES / (length * (int64_t)element_bytes + 1) + 1;
    if (copy->from_stride[last] != 1 && copy->from_stride[last] != 0 &&
        copy->to_stride[last] == 1) {
        for (int32_t i = 0; i < last; ++i) {
            if (copy->from_stride[i] == 1) {
                copy->is_transposed = true;
                copy->block_axis = i;
                copy->block_rows = length < TILE ? STRIP : TILE;
            }
        }
    }
    copy->bytes = 2.0 * (double)element_bytes;
    for (int32_t i = 0; i < kept; ++i) {
        copy->bytes *= (double)copy->extent[i];
    }
    copy->block_count = length == 0 ? 0 : 1;
    for (int32_t i = 0; i < last; ++i) {
        copy->block_count *= count_pieces(copy, i);
    }
}

// Transposes a block of 4 x 4 elements of 2 or 4 bytes; rows are so many bytes apart.
static inline void copy_corner(const char *x, int64_t x_row, char *y, int64_t y_row,
                               size_t element_bytes) {
#if defined(__SSE2__)
    if (element_bytes == sizeof(float)) {
        __m128 a = _mm_loadu_ps((const float *)(const void *)x);
        __m128 b = _mm_loadu_ps((const float *)(const void *)(x + x_row));
        __m128 c = _mm_loadu_ps((const float *)(const void *)(x + 2 * x_row));
        __m128 d = _mm_loadu_ps((const float *)(const void *)(x + 3 * x_row));
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps((float *)(void *)y, a);
        _mm_storeu_ps((float *)(void *)(y + y_row), b);
        _mm_storeu_ps((float *)(void *)(y + 2 * y_row), c);
        _mm_storeu_ps((float *)(void *)(y + 3 * y_row), d);
        return;
    }
    const __m128i a = _mm_loadl_epi64((const __m128i *)(const void *)x);
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(x + x_row));
    const __m128i c = _mm_loadl_epi64((const __m128i *)(const void *)(x + 2 * x_row));
    const __m128i d = _mm_loadl_epi64((const __m128i *)(const void *)(x + 3 * x_row));
    const __m128i ab = _mm_unpacklo_epi16(a, b), cd = _mm_unpacklo_epi16(c, d);
    const __m128i low = _mm_unpacklo_epi32(ab, cd), high = _mm_unpackhi_epi32(ab, cd);
    _mm_storel_epi64((__m128i *)(void *)y, low);
    _mm_storel_epi64((__m128i *)(void *)(y + y_row), _mm_unpackhi_epi64(low, low));
    _mm_storel_epi64((__m128i *)(void *)(y + 2 * y_row), high);
    _mm_storel_epi64((__m128i *)(void *)(y + 3 * y_row), _mm_unpackhi_epi64(high, high));
#else
    for (int64_t i = 0; i < CORNER * CORNER; ++i) {
        const int64_t row = i / CORNER, column = i % CORNER;
        memcpy(y + row * y_row + column * (int64_t)element_bytes,
               x + column * x_row + row * (int64_t)element_bytes, element_bytes);
    }
#endif
}

// The same of CORNER or more rows and columns; the last blocks overlap their neighbours. Rows are
// so many elements apart.
static inline void copy_corners(const void *from, int64_t from_stride, void *to, int64_t to_row,
                                int64_t rows, int64_t count, size_t element_bytes) {
    const int64_t bytes = (int64_t)element_bytes;
    for (int64_t r = 0; r < rows; r += CORNER) {
        const int64_t row = r + CORNER <= rows ? r : rows - CORNER;
        for (int64_t i = 0; i < count; i += CORNER) {
            const int64_t column = i + CORNER <= count ? i : count - CORNER;
            copy_corner((const char *)from + (column * from_stride + row) * bytes,
                        from_stride * bytes, (char *)to + (row * to_row + column) * bytes,
                        to_row * bytes, element_bytes);
        }
    }
}

// Rows of 8 to 64 bytes without a call: both ends of 8, 16 or 32, which may overlap.
static inline void copy_bytes(char *to, const char *from, size_t bytes) {
    enum { HALF = 8, END = 16 };
    if (bytes < HALF || bytes > 4 * END) {
        memcpy(to, from, bytes);
        return;
    }
    if (bytes < END) {
        memcpy(to, from, HALF);
        memcpy(to + bytes - HALF, from + bytes - HALF, HALF);
        return;
    }
    if (bytes > 2 * END) {
        memcpy(to + END, from + END, END);
        memcpy(to + bytes - 2 * END, from + bytes - 2 * END, END);
    }
    memcpy(to, from, END);
    memcpy(to + bytes - END, from + bytes - END, END);
}

#define HAS_CORNERS(type) (sizeof(type) == 2 || sizeof(type) == 4)

// One row along the innermost axis; rows read along the block axis; one block.
#define DEFINE_ROWS(type)                                                                        \
    static void copy_row_##type(const type *from, int64_t from_stride, type *to,                 \
                                int64_t to_stride, int64_t count) {                              \
        if (to_stride == 1 && from_stride == 1) {                                                \
            copy_bytes((char *)to, (const char *)from, (size_t)count * sizeof(type));            \
        } else if (to_stride == 1 && from_stride == 0) {                                         \
            const type value = *from;                                                            \
            for (int64_t i = 0; i < count; ++i) {                                                \
                to[i] = value;                                                                   \
            }                                                                                    \
        } else {                                                                                 \
            for (int64_t i = 0; i < count; ++i) {                                                \
                to[i * to_stride] = from[i * from_stride];                                       \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    static void copy_strip_##type(const type *restrict from, int64_t from_stride,                \
                                  type *restrict to, int64_t to_row, int64_t rows,               \
                                  int64_t count) {                                               \
        if (count == 3 && to_row == 3) { /* the colours of an image: stores interleave */        \
            for (int64_t r = 0; r < rows; ++r) {                                                 \
                to[3 * r] = from[r];                                                             \
                to[3 * r + 1] = from[from_stride + r];                                           \
                to[3 * r + 2] = from[2 * from_stride + r];                                       \
            }                                                                                    \
            return;                                                                              \
        }                                                                                        \
        const bool has_corners = HAS_CORNERS(type) && CORNER <= rows;                            \
        if (count < TILE && has_corners && CORNER <= count) {                                    \
            copy_corners(from, from_stride, to, to_row, rows, count, sizeof(type));              \
            return;                                                                              \
        }                                                                                        \
        if (count < TILE) { /* read whole runs of the source, one after the other */             \
            for (int64_t i = 0; i < count; ++i) {                                                \
                for (int64_t r = 0; r < rows; ++r) {                                             \
                    to[r * to_row + i] = from[i * from_stride + r];                              \
                }                                                                                \
            }                                                                                    \
            return;                                                                              \
        }                                                                                        \
        for (int64_t first = 0; first < count; first += TILE) {                                  \
            const int64_t end = first + TILE < count ? first + TILE : count;                     \
            if (rows == TILE && end - first == TILE) {                                           \
                for (int64_t r = 0; r < TILE; ++r) {                                             \
                    for (int64_t i = 0; i < TILE; ++i) {                                         \
                        to[r * to_row + first + i] = from[(first + i) * from_stride + r];        \
                    }                                                                            \
                }                                                                                \
                continue;                                                                        \
            }                                                                                    \
            const int64_t rest = end - first;                                                    \
            if (has_corners && CORNER <= rest) {                                                 \
                const type *x = from + first * from_stride;                                      \
                copy_corners(x, from_stride, to + first, to_row, rows, rest, sizeof(type));      \
                continue;                                                                        \
            }                                                                                    \
            for (int64_t r = 0; r < rows; ++r) {                                                 \
                for (int64_t i = first; i < end; ++i) {                                          \
                    to[r * to_row + i] = from[i * from_stride + r];                              \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    static void copy_block_##type(const rondo__strided_copy *copy, const void *from, void *to,   \
                                  int64_t block) {                                               \
        const int32_t last = copy->rank - 1;                                                     \
        const type *x = (const type *)from + copy->from_offset;                                  \
        type *y = (type *)to + copy->to_offset;                                                  \
        int64_t rows = 1;                                                                        \
        for (int32_t i = last - 1; i >= 0; --i) {                                                \
            const int64_t pieces = count_pieces(copy, i);                                        \
            int64_t index = pieces == 1 ? 0 : block % pieces;                                    \
            block = pieces == 1 ? block : block / pieces;                                        \
            if (i == copy->block_axis) {                                                         \
                index *= copy->block_rows;                                                       \
                rows = copy->extent[i] - index;                                                  \
                rows = rows < copy->block_rows ? rows : copy->block_rows;                        \
            }                                                                                    \
            x += index * copy->from_stride[i];                                                   \
            y += index * copy->to_stride[i];                                                     \
        }                                                                                        \
        const int64_t length = copy->extent[last];                                               \
        const int64_t x_row = copy->block_axis >= 0 ? copy->from_stride[copy->block_axis] : 0;   \
        const int64_t y_row = copy->block_axis >= 0 ? copy->to_stride[copy->block_axis] : 0;     \
        if (copy->is_transposed) {                                                               \
            copy_strip_##type(x, copy->from_stride[last], y, y_row, rows, length);               \
            return;                                                                              \
        }                                                                                        \
        if (length <= SHORT_ROW && copy->from_stride[last] == 1 && copy->to_stride[last] == 1) { \
            for (int64_t i = 0; i < length; ++i) {                                               \
                for (int64_t r = 0; r < rows; ++r) {                                             \
                    y[r * y_row + i] = x[r * x_row + i];                                         \
                }                                                                                \
            }                                                                                    \
            return;                                                                              \
        }                                                                                        \
        for (int64_t r = 0; r < rows; ++r) {                                                     \
            copy_row_##type(x + r * x_row, copy->from_stride[last], y + r * y_row,               \
                            copy->to_stride[last], length);                                      \
        }                                                                                        \
    }

DEFINE_ROWS(uint8_t)
DEFINE_ROWS(uint16_t)
DEFINE_ROWS(uint32_t)
DEFINE_ROWS(uint64_t)

typedef struct pair {
    uint64_t parts[2];
} pair;
DEFINE_ROWS(pair)

typedef void (*block_copier)(const rondo__strided_copy *, const void *, void *, int64_t);

typedef struct copy_run {
    const rondo__strided_copy *copy;
    block_copier copy_block;
    const void *from;
    void *to;
} copy_run;

static void copy_blocks(void *data, int64_t first, int64_t end) {
    const copy_run *run = data;
    for (int64_t block = first; block < end; ++block) {
        run->copy_block(run->copy, run->from, run->to, block);
    }
}

void rondo__strided_copy_run(const rondo__strided_copy *copy, const void *from, void *to) {
    const block_copier copy_block = copy->element_bytes == 1   ? copy_block_uint8_t
                                    : copy->element_bytes == 2 ? copy_block_uint16_t
                                    : copy->element_bytes == 4 ? copy_block_uint32_t
                                    : copy->element_bytes == 8 ? copy_block_uint64_t
                                                               : copy_block_pair;
    copy_run run = {copy, copy_block, from, to};
    rondo__workers_loop(copy->block_count,
                        rondo__host_get_grain(copy->block_count, copy->bytes, 0.0), copy_blocks,
                        &run);
}
