#include "kernel/host/strided_copy.h"

#include <string.h>

#include "kernel/host/host_threads.h"

enum { TILE = 16 };  // edge of a transposed block: two sides of it fit the first-level cache

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
    copy->tile_axis = -1;
    const int32_t last = kept - 1;
    if (copy->from_stride[last] != 1 && copy->from_stride[last] != 0 &&
        copy->to_stride[last] == 1 && copy->extent[last] > 1) {
        for (int32_t i = 0; i < last; ++i) {
            if (copy->from_stride[i] == 1) {
                copy->tile_axis = i;
            }
        }
    }
    copy->row_count = 1;
    for (int32_t i = 0; i < last; ++i) {
        copy->row_count *=
            i == copy->tile_axis ? (copy->extent[i] + TILE - 1) / TILE : copy->extent[i];
    }
    for (int32_t i = 0; i < kept; ++i) {
        copy->row_count = copy->extent[i] == 0 ? 0 : copy->row_count;
    }
}

// One row along the innermost axis, and one strip of TILE rows read along the tile axis.
#define DEFINE_ROWS(type)                                                                          \
    static void copy_row_##type(const type *from, int64_t from_stride, type *to,                   \
                                int64_t to_stride, int64_t count) {                                \
        if (to_stride == 1 && from_stride == 1) {                                                  \
            memcpy(to, from, (size_t)count * sizeof(type));                                        \
        } else if (to_stride == 1 && from_stride == 0) {                                           \
            const type value = *from;                                                              \
            for (int64_t i = 0; i < count; ++i) {                                                  \
                to[i] = value;                                                                     \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; ++i) {                                                  \
                to[i * to_stride] = from[i * from_stride];                                         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void copy_strip_##type(const type *from, int64_t from_stride, type *to, int64_t to_row, \
                                  int64_t rows, int64_t count) {                                   \
        for (int64_t first = 0; first < count; first += TILE) {                                    \
            const int64_t end = first + TILE < count ? first + TILE : count;                       \
            if (rows == TILE && end - first == TILE) {                                             \
                for (int64_t r = 0; r < TILE; ++r) {                                               \
                    for (int64_t i = 0; i < TILE; ++i) {                                           \
                        to[r * to_row + first + i] = from[(first + i) * from_stride + r];          \
                    }                                                                              \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t r = 0; r < rows; ++r) {                                                   \
                for (int64_t i = first; i < end; ++i) {                                            \
                    to[r * to_row + i] = from[i * from_stride + r];                                \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void copy_piece_##type(const rondo__strided_copy *copy, const void *from, void *to,     \
                                  int64_t row) {                                                   \
        const int32_t last = copy->rank - 1;                                                       \
        const type *x = (const type *)from + copy->from_offset;                                    \
        type *y = (type *)to + copy->to_offset;                                                    \
        int64_t rows = 0;                                                                          \
        for (int32_t i = last - 1; i >= 0; --i) {                                                  \
            const bool is_tiled = i == copy->tile_axis;                                            \
            const int64_t pieces =                                                                 \
                is_tiled ? (copy->extent[i] + TILE - 1) / TILE : copy->extent[i];                  \
            const int64_t index = (row % pieces) * (is_tiled ? TILE : 1);                          \
            row /= pieces;                                                                         \
            x += index * copy->from_stride[i];                                                     \
            y += index * copy->to_stride[i];                                                       \
            if (is_tiled) {                                                                        \
                rows = copy->extent[i] - index < TILE ? copy->extent[i] - index : TILE;            \
            }                                                                                      \
        }                                                                                          \
        if (copy->tile_axis >= 0) {                                                                \
            copy_strip_##type(x, copy->from_stride[last], y, copy->to_stride[copy->tile_axis],     \
                              rows, copy->extent[last]);                                           \
        } else {                                                                                   \
            copy_row_##type(x, copy->from_stride[last], y, copy->to_stride[last],                  \
                            copy->extent[last]);                                                   \
        }                                                                                          \
    }

DEFINE_ROWS(uint8_t)
DEFINE_ROWS(uint16_t)
DEFINE_ROWS(uint32_t)
DEFINE_ROWS(uint64_t)

void rondo__strided_copy_run(const rondo__strided_copy *copy, const void *from, void *to,
                             bool is_parallel) {
    (void)is_parallel;
    void (*copy_piece)(const rondo__strided_copy *, const void *, void *, int64_t) =
        copy->element_bytes == 1   ? copy_piece_uint8_t
        : copy->element_bytes == 2 ? copy_piece_uint16_t
        : copy->element_bytes == 4 ? copy_piece_uint32_t
                                   : copy_piece_uint64_t;
    RONDO_PARALLEL(parallel for schedule(static) if (is_parallel))
    for (int64_t row = 0; row < copy->row_count; ++row) {
        copy_piece(copy, from, to, row);
    }
}
