// kernel/host/convolution/host_byte_pad.c — the padded copy of an image of bytes; with a stride
// along the width, columns of one remainder lie together.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/convolution/byte_convolution.h"
#include "kernel/host/host_threads.h"

// `columns` bytes from x, in pieces that may overlap: rows are short, and calls would take longer.
static inline void copy_columns(uint8_t *to, const uint8_t *x, int64_t columns) {
    enum { PIECE = 16, LONG = 512 };
    if (columns >= LONG) {
        memcpy(to, x, (size_t)columns);
    } else if (columns >= PIECE) {
        for (int64_t i = 0; i < columns - PIECE; i += PIECE) {
            memcpy(to + i, x + i, PIECE);
        }
        memcpy(to + columns - PIECE, x + columns - PIECE, PIECE);
    } else if (columns >= PIECE / 2) {
        memcpy(to, x, PIECE / 2);
        memcpy(to + columns - PIECE / 2, x + columns - PIECE / 2, PIECE / 2);
    } else {
        for (int64_t i = 0; i < columns; ++i) {
            to[i] = x[i];
        }
    }
}

// Fills the first `left` and the last `right` of `columns`. What lies between them is written
// afterwards, so that short edges may be whole words.
static inline void fill_edges(uint8_t *to, int64_t columns, int64_t left, int64_t right,
                              uint8_t zero) {
    const uint64_t word = zero * UINT64_C(0x0101010101010101);
    if (left == 0 && right == 0) {
        return;
    }
    if (columns < (int64_t)sizeof word || left > (int64_t)sizeof word ||
        right > (int64_t)sizeof word) {
        memset(to, zero, (size_t)left);
        memset(to + columns - right, zero, (size_t)right);
        return;
    }
    memcpy(to, &word, sizeof word);
    memcpy(to + columns - sizeof word, &word, sizeof word);
}

// Of a padded row with a stride: columns first to end - 1 are those i * stride + shift of x, the
// others lie outside.
typedef struct row_phase {
    int64_t shift, first, end;
} row_phase;

enum { PHASES_KEPT = 8 };

static row_phase find_phase(const rondo__byte_convolution *kernel, int64_t phase) {
    const int64_t stride = kernel->stride[2], shift = phase - kernel->pad[2];
    const int64_t left = kernel->width - shift;
    const int64_t first = shift < 0 ? (stride - 1 - shift) / stride : 0;
    int64_t end = left > 0 ? (left + stride - 1) / stride : 0;
    end = end < kernel->phase_width ? end : kernel->phase_width;
    return (row_phase){shift, first < end ? first : end, end};
}

// One row of the padded copy, with a stride, whose first phases are known.
static void pad_row(const rondo__byte_convolution *kernel, const row_phase *kept, const uint8_t *x,
                    uint8_t zero, uint8_t *to) {
    const int64_t stride = kernel->stride[2], width = kernel->phase_width;
    const bool is_by_four = stride == 4 && kept[3].end - kept[0].first >= 4;
    const bool is_inside = is_by_four && kept[0].first == 0 && kept[3].end == width;
    for (int64_t phase = 0; phase < stride && !is_inside; ++phase) {
        const row_phase at = phase < PHASES_KEPT ? kept[phase] : find_phase(kernel, phase);
        // By four, a phase lacks its first and its last column at most.
        const int64_t step = is_by_four ? at.end - at.first - 1 : 1, shift = at.shift;
        uint8_t *columns = to + phase * width;
        fill_edges(columns, width, at.first, width - at.end, zero);
        if (stride == 2 && at.first < at.end) {
            kernel->simd->take_every_second(x + at.first * 2 + shift, columns + at.first,
                                            at.end - at.first);
        }
        for (int64_t i = at.first; i < at.end && stride != 2; i += step) {
            columns[i] = x[i * stride + shift];
        }
    }
    if (is_by_four) {
        const int64_t first = kept[0].first;
        rondo__byte_take_fourths(x + first * 4 + kept[0].shift, to + first, width,
                                 kept[3].end - first);
    }
}

void rondo__byte_pad_rows(void *data, int64_t first, int64_t end) {
    const rondo__byte_padding *p = data;
    const rondo__byte_convolution *kernel = p->kernel;
    const int64_t row_bytes = rondo__byte_get_row_bytes(kernel), width = kernel->width;
    const int64_t left = kernel->pad[2] < row_bytes ? kernel->pad[2] : row_bytes;
    const int64_t room = row_bytes - left, middle = width < room ? width : room;
    const uint8_t zero = p->zero;
    row_phase phases[PHASES_KEPT];
    for (int64_t i = 0; i < PHASES_KEPT && i < kernel->stride[2]; ++i) {
        phases[i] = find_phase(kernel, i);
    }
    for (int64_t i = first; i < end;) {
        const int64_t plane = i / kernel->padded_height, begin = plane * kernel->padded_height;
        const int64_t rest = begin + kernel->padded_height;
        const int64_t z = plane % kernel->padded_depth - kernel->pad[0];
        const int64_t from = plane / kernel->padded_depth * kernel->depth + z;
        const bool is_plane = z >= 0 && z < kernel->depth;
        for (; i < end && i < rest; ++i) {
            const int64_t y = i - begin - kernel->pad[1];
            uint8_t *to = p->to + i * row_bytes;
            if (!is_plane || y < 0 || y >= kernel->height) {
                memset(to, zero, (size_t)row_bytes);
                continue;
            }
            const uint8_t *x = p->x + (from * kernel->height + y) * width;
            if (kernel->stride[2] == 1) {
                fill_edges(to, row_bytes, left, room - middle, zero);
                copy_columns(to + left, x, middle);
            } else {
                pad_row(kernel, phases, x, zero, to);
            }
        }
    }
}

void rondo__byte_pad_image(const rondo__byte_convolution *kernel, const uint8_t *x, uint8_t zero,
                           uint8_t *to) {
    rondo__byte_padding p = {kernel, x, zero, to};
    const int64_t rows =
        kernel->group * kernel->channels * kernel->padded_depth * kernel->padded_height;
    const double bytes = (double)(rows * rondo__byte_get_row_bytes(kernel)) * 2.0;
    rondo__workers_loop(rows, rondo__host_get_grain(rows, bytes, 0.0), rondo__byte_pad_rows, &p);
}
