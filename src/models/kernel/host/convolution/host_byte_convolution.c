// kernel/host/convolution/host_byte_convolution.c — ConvInteger and QLinearConv over one to three
// spatial axes.
//
// A convolution is the product of the filters [filters, taps] and of what the taps see at each
// position of the output [taps, positions], which comes out in the order of y:
//
//   x of one image -> copied with its padding, so that no tap falls outside; with a stride along
//                     the width, columns of one remainder together, so that neighbours in y are
//                     neighbours there
//   chunk of positions -> panels (byte_simd.h), a tap after the other in runs of whole rows
//   filters x chunk -> y, as any product; steps are made of its sums while the cache has them
//
// Filters of one tap see x as it is, without a copy.
//
// Filters of one channel have no sums that such a product is worth: there rows of the padded copy
// are added up, a tap after the other. Where each channel has one filter it is padded just before.
//
// Constant filters are prepared once for the program. Padding stands for x's zero point.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/byte_matrix.h"
#include "op/image/convolution.h"
#include "op/math/matrix.h"

// Depth, height, width.
enum { AXES = 3 };

enum {
    CHUNK_BYTES = 256 * 1024,  // of panels: they stay in the cache until they are used
    SUMS_BYTES = 512 * 1024,   // of a chunk: they stay there until they are steps
    COPY_BYTES = 32,           // of a run; more than needed is overwritten by the next
    NO_INPUT = 32,
    // Where filters have one channel: sums that are made at a time, positions of a step, most taps.
    ROW_COLUMNS = 2048,
    SHORT_ROW = 64,
    PLACES_ALIGN = 16,
    TAPS_MAX = 128,
};

typedef struct byte_convolution_kernel {
    rondo__host_kernel head;
    const rondo__byte_simd *simd;
    int64_t batch, group, channels, filters;  // of one group
    int64_t depth, height, width, out_depth, out_height, out_width;
    int64_t kernel[AXES], stride[AXES], dilation[AXES], pad[AXES];
    int64_t k;  // taps
    int64_t padded_depth, padded_height, phase_width;
    int64_t plane_bytes, channel_bytes;  // of the padded copy
    int64_t chunk_places;
    bool is_x_signed, is_w_signed, is_y_signed, is_requantized, is_depthwise, is_pointwise;
    uint32_t w, x_zero, w_zero, bias;
    int64_t w_zero_count, w_scale_count;
    const void *prepared;  // constant filters; NULL: prepared in each run
    rondo__byte_rows_form form;
    size_t padded_at, chunk_at, sums_at;  // work; filters come first
} byte_convolution_kernel;

enum {
    QLINEAR_X_SCALE = 1,
    QLINEAR_W_SCALE = 4,
    QLINEAR_Y_SCALE = 6,
    QLINEAR_Y_ZERO = 7,
    QLINEAR_BIAS = 8
};

// ---- running ----------------------------------------------------------------------------------

static int64_t get_row_bytes(const byte_convolution_kernel *kernel) {
    return kernel->phase_width * kernel->stride[2];
}

// Positions of the output, of one filter and image.
static int64_t count_places(const byte_convolution_kernel *kernel) {
    return kernel->out_depth * kernel->out_height * kernel->out_width;
}

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

static row_phase find_phase(const byte_convolution_kernel *kernel, int64_t phase) {
    const int64_t stride = kernel->stride[2], shift = phase - kernel->pad[2];
    const int64_t left = kernel->width - shift;
    const int64_t first = shift < 0 ? (stride - 1 - shift) / stride : 0;
    int64_t end = left > 0 ? (left + stride - 1) / stride : 0;
    end = end < kernel->phase_width ? end : kernel->phase_width;
    return (row_phase){shift, first < end ? first : end, end};
}

// One row of the padded copy, with a stride, whose first phases are known.
static void pad_row(const byte_convolution_kernel *kernel, const row_phase *kept, const uint8_t *x,
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

typedef struct padding {
    const byte_convolution_kernel *kernel;
    const uint8_t *x;
    uint8_t zero;
    uint8_t *to;
} padding;

static void pad_rows(void *data, int64_t first, int64_t end) {
    const padding *p = data;
    const byte_convolution_kernel *kernel = p->kernel;
    const int64_t row_bytes = get_row_bytes(kernel), width = kernel->width;
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

static void pad_image(const byte_convolution_kernel *kernel, const uint8_t *x, uint8_t zero,
                      uint8_t *to) {
    padding p = {kernel, x, zero, to};
    const int64_t rows =
        kernel->group * kernel->channels * kernel->padded_depth * kernel->padded_height;
    const double bytes = (double)(rows * get_row_bytes(kernel)) * 2.0;
    rondo__workers_loop(rows, rondo__host_get_grain(rows, bytes, 0.0), pad_rows, &p);
}

// Where a run of positions begins in a padded channel, and in the panel.
typedef struct place_run {
    int64_t from;
    int32_t to;
} place_run;

static int32_t find_runs(const byte_convolution_kernel *kernel, int64_t first, int64_t count,
                         place_run *out_runs) {
    const int64_t row_step = kernel->stride[1] * get_row_bytes(kernel);
    const int64_t plane_step = kernel->stride[0] * kernel->plane_bytes;
    int32_t runs = 0;
    for (int64_t done = 0; done < count;) {
        const int64_t row = (first + done) / kernel->out_width;
        const int64_t column = (first + done) % kernel->out_width;
        const int64_t from =
            row / kernel->out_height * plane_step + row % kernel->out_height * row_step + column;
        out_runs[runs++] = (place_run){from, (int32_t)done};
        done += kernel->out_width - column;
    }
    return runs;
}

// Where a tap sees the first position of the output, in a padded channel.
static int64_t find_tap(const byte_convolution_kernel *kernel, const int64_t *tap) {
    const int64_t shift = tap[2] * kernel->dilation[2];
    return tap[0] * kernel->dilation[0] * kernel->plane_bytes +
           tap[1] * kernel->dilation[1] * get_row_bytes(kernel) +
           shift % kernel->stride[2] * kernel->phase_width + shift / kernel->stride[2];
}

// False: that was the last one of a channel; `tap` is the first again.
static bool go_to_next_tap(const byte_convolution_kernel *kernel, int64_t *tap) {
    for (int axis = AXES - 1; axis >= 0; --axis) {
        if (++tap[axis] < kernel->kernel[axis]) {
            return true;
        }
        tap[axis] = 0;
    }
    return false;
}

// Packs the panel of positions [first, first + count), seen from one group's channels.
static void pack_places(const byte_convolution_kernel *kernel, const uint8_t *padded, int64_t first,
                        int64_t count, int8_t *panel, int32_t *sums) {
    const rondo__byte_simd *simd = kernel->simd;
    const int64_t columns = simd->panel_columns, group = simd->group;
    uint8_t rows[RONDO__BYTE_GROUP_MAX * RONDO__BYTE_COLUMNS_MAX + COPY_BYTES];
    place_run runs[RONDO__BYTE_COLUMNS_MAX];
    const int32_t run_count = find_runs(kernel, first, count, runs);
    int64_t tap[AXES] = {0};
    if (sums != NULL) {
        memset(sums, 0, (size_t)columns * sizeof *sums);
    }
    memset(rows, 0, sizeof rows);
    for (int64_t k = 0; k < kernel->k;) {
        int64_t g = 0;
        for (; g < group && k < kernel->k; ++g, ++k) {
            const uint8_t *from = padded + find_tap(kernel, tap);
            for (int32_t i = 0; i < run_count; ++i) {
                memcpy(rows + g * columns + runs[i].to, from + runs[i].from, COPY_BYTES);
            }
            padded += go_to_next_tap(kernel, tap) ? 0 : kernel->channel_bytes;
        }
        for (; g < group; ++g) {  // what is packed as 0
            memset(rows + g * columns, kernel->is_x_signed ? 0 : 0x80, (size_t)columns);
        }
        simd->pack_block(rows, kernel->is_x_signed, panel, sums);
        panel += group * columns;
    }
}

// The same where each filter has one tap, from x itself, of which nothing behind its end is read.
static void pack_points(const byte_convolution_kernel *kernel, const uint8_t *x, int64_t first,
                        int64_t count, int8_t *panel, int32_t *sums) {
    const rondo__byte_simd *simd = kernel->simd;
    const int64_t columns = simd->panel_columns, group = simd->group;
    uint8_t rows[RONDO__BYTE_GROUP_MAX * RONDO__BYTE_COLUMNS_MAX] = {0};
    if (sums != NULL) {
        memset(sums, 0, (size_t)columns * sizeof *sums);
    }
    for (int64_t k = 0; k < kernel->k; k += group, panel += group * columns) {
        for (int64_t g = 0; g < group; ++g) {
            const uint8_t *from = x + (k + g) * kernel->channel_bytes + first;
            uint8_t *row = rows + g * columns;
            if (k + g >= kernel->k) {
                memset(row, kernel->is_x_signed ? 0 : 0x80, (size_t)columns);  // is packed as 0
            } else if (count == RONDO__BYTE_COLUMNS_MAX) {
                memcpy(row, from, RONDO__BYTE_COLUMNS_MAX);
            } else if (count == RONDO__BYTE_COLUMNS_MAX / 2) {
                memcpy(row, from, RONDO__BYTE_COLUMNS_MAX / 2);
            } else {
                memcpy(row, from, (size_t)count);
            }
        }
        simd->pack_block(rows, kernel->is_x_signed, panel, sums);
    }
}

static const uint8_t *get_input(const void *const *inputs, uint32_t input) {
    return input == NO_INPUT ? NULL : inputs[input];
}

// Packs panels of the chunk of positions from `first` on.
typedef struct packing {
    const byte_convolution_kernel *kernel;
    const rondo__byte_form *form;
    const uint8_t *padded;
    int64_t first;
    char *chunk;
    int32_t *sums;  // NULL: not wanted
} packing;

static void pack_panels(void *data, int64_t first_panel, int64_t end_panel) {
    const packing *p = data;
    const int64_t width = p->kernel->simd->panel_columns;
    for (int64_t panel = first_panel; panel < end_panel; ++panel) {
        const int64_t left = p->form->n - panel * width;
        (p->kernel->is_pointwise ? pack_points : pack_places)(
            p->kernel, p->padded, p->first + panel * width, left < width ? left : width,
            (int8_t *)p->chunk + (size_t)panel * p->form->panel_bytes,
            p->sums == NULL ? NULL : p->sums + panel * width);
    }
}

typedef struct requantizing {
    const byte_convolution_kernel *kernel;
    const void *const *inputs;
    int64_t group;
    const int32_t *sums;  // [filters, count]
    int64_t count;
    uint8_t *y;  // of the first of these positions
} requantizing;

static void requantize_rows(void *data, int64_t first, int64_t end) {
    const requantizing *job = data;
    const byte_convolution_kernel *kernel = job->kernel;
    const void *const *inputs = job->inputs;
    const float *w_scale = inputs[QLINEAR_W_SCALE];
    const int32_t *bias = kernel->bias == NO_INPUT ? NULL : inputs[kernel->bias];
    const float x_scale = *(const float *)inputs[QLINEAR_X_SCALE];
    const float y_scale = *(const float *)inputs[QLINEAR_Y_SCALE];
    const int32_t y_zero =
        rondo__byte_get((const uint8_t *)inputs[QLINEAR_Y_ZERO], kernel->is_y_signed, 0);
    for (int64_t r = first; r < end; ++r) {
        const int64_t filter = job->group * kernel->filters + r;
        const float scale = x_scale * w_scale[kernel->w_scale_count == 1 ? 0 : filter];
        kernel->simd->requantize(job->sums + r * job->count, bias != NULL ? bias[filter] : 0, scale,
                                 NULL, y_scale, y_zero, kernel->is_y_signed, job->count,
                                 job->y + r * count_places(kernel));
    }
}

// y [filters, positions] of one group and image; `sums` is work.
static void run_group(const byte_convolution_kernel *kernel, const void *const *inputs,
                      const rondo__byte_rows *filters, int64_t group, const uint8_t *padded,
                      const int32_t *zeros, char *chunk, int32_t *sums, void *y) {
    const int64_t places = count_places(kernel);
    for (int64_t first = 0; first < places; first += kernel->chunk_places) {
        const int64_t rest = places - first;
        const int64_t count = rest < kernel->chunk_places ? rest : kernel->chunk_places;
        const rondo__byte_form form =
            rondo__byte_form_make(kernel->simd, kernel->k, count, kernel->is_x_signed, false);
        int32_t *const panel_sums =
            (int32_t *)(void *)(chunk + (size_t)form.panel_count * form.panel_bytes);
        packing p = {kernel, &form, padded, first, chunk, filters->has_factors ? panel_sums : NULL};
        const double bytes = (double)form.panel_count * (double)form.panel_bytes * 4.0;
        rondo__workers_loop(form.panel_count, rondo__host_get_grain(form.panel_count, bytes, 0.0),
                            pack_panels, &p);
        const rondo__byte_product product = {
            .form = &form,
            .matrix = chunk,
            .b_zeros = zeros,
            .has_one_zero = true,
            .a = filters,
            .first = group * kernel->filters,
            .rows = kernel->filters,
            .y = kernel->is_requantized ? sums : (int32_t *)y + first,
            .y_row = kernel->is_requantized ? count : places,
        };
        rondo__byte_product_run(&product);
        if (kernel->is_requantized) {
            requantizing job = {kernel, inputs, group, sums, count, (uint8_t *)y + first};
            rondo__workers_loop(kernel->filters,
                                rondo__host_get_grain(kernel->filters,
                                                      (double)(kernel->filters * count) * 5.0, 0.0),
                                requantize_rows, &job);
        }
    }
}

// ---- filters of one channel -------------------------------------------------------------------

typedef struct plane_run {
    const byte_convolution_kernel *kernel;
    const void *const *inputs;
    const uint8_t *x;  // of this image; NULL: padded already
    uint8_t *padded;
    int32_t x_zero;
    int64_t image;
    void *y;
} plane_run;

// What is the same for all positions of one filter.
typedef struct plane_taps {
    int32_t weights[TAPS_MAX];
    int64_t places[TAPS_MAX];  // where a tap sees the first position: of all filters
    int32_t start;             // what the zero point of x takes away
} plane_taps;

static void find_places(const byte_convolution_kernel *kernel, int64_t *out_places) {
    int64_t tap[AXES] = {0};
    for (int64_t k = 0; k < kernel->k; ++k) {
        out_places[k] = find_tap(kernel, tap);
        (void)go_to_next_tap(kernel, tap);
    }
}

static void read_taps(const plane_run *run, int64_t filter, plane_taps *taps) {
    const byte_convolution_kernel *kernel = run->kernel;
    const uint8_t *w = (const uint8_t *)run->inputs[kernel->w] + filter * kernel->k;
    const uint8_t *zeros = get_input(run->inputs, kernel->w_zero);
    const int64_t place = kernel->w_zero_count == 1 ? 0 : filter;
    const int32_t zero = zeros != NULL ? rondo__byte_get(zeros, kernel->is_w_signed, place) : 0;
    int32_t total = 0;
    for (int64_t k = 0; k < kernel->k; ++k) {
        taps->weights[k] = rondo__byte_get(w, kernel->is_w_signed, k) - zero;
        total += taps->weights[k];
    }
    taps->start = -total * run->x_zero;
}

// Sums of whole vectors of positions, the first of which is seen at `padded`; there is room for
// them.
static void sum_row(const plane_run *run, const plane_taps *taps, const uint8_t *padded,
                    int64_t count, int32_t *sums) {
    const byte_convolution_kernel *kernel = run->kernel;
    const int64_t whole = (count + PLACES_ALIGN - 1) / PLACES_ALIGN * PLACES_ALIGN;
    kernel->simd->add_taps(padded, kernel->is_x_signed, taps->places, taps->weights, kernel->k,
                           taps->start, whole, sums);
}

// Writes sums of positions from `first` on of one filter.
static void write_sums(const plane_run *run, int64_t filter, int64_t first, int64_t count,
                       const int32_t *sums) {
    const byte_convolution_kernel *kernel = run->kernel;
    const void *const *inputs = run->inputs;
    const int64_t filters = kernel->group * kernel->filters;
    const int64_t at = (run->image * filters + filter) * count_places(kernel) + first;
    if (!kernel->is_requantized) {
        memcpy((int32_t *)run->y + at, sums, (size_t)count * sizeof *sums);
        return;
    }
    const int32_t *bias = kernel->bias == NO_INPUT ? NULL : inputs[kernel->bias];
    const float *w_scale = inputs[QLINEAR_W_SCALE];
    const int32_t y_zero =
        rondo__byte_get((const uint8_t *)inputs[QLINEAR_Y_ZERO], kernel->is_y_signed, 0);
    kernel->simd->requantize(
        sums, bias != NULL ? bias[filter] : 0,
        *(const float *)inputs[QLINEAR_X_SCALE] * w_scale[kernel->w_scale_count == 1 ? 0 : filter],
        NULL, *(const float *)inputs[QLINEAR_Y_SCALE], y_zero, kernel->is_y_signed, count,
        (uint8_t *)run->y + at);
}

// Rows of few positions are added up as one, with what lies between them; then the sums move
// together.
static void sum_short_rows(const plane_run *run, const plane_taps *taps, const uint8_t *padded,
                           int64_t rows, int64_t row_step, int32_t *sums) {
    const int64_t width = run->kernel->out_width;
    sum_row(run, taps, padded, (rows - 1) * row_step + width, sums);
    for (int64_t r = 1; r < rows; ++r) {
        memmove(sums + r * width, sums + r * row_step, (size_t)width * sizeof *sums);
    }
}

// One plane of the output, whose positions begin at `first`; the first is seen at `padded`. Rows
// follow each other in the sums: what a row has too many is overwritten by the next.
static void run_plane(const plane_run *run, const plane_taps *taps, int64_t filter,
                      const uint8_t *padded, int64_t first) {
    const byte_convolution_kernel *kernel = run->kernel;
    const int64_t width = kernel->out_width;
    const int64_t columns = width < ROW_COLUMNS ? width : ROW_COLUMNS;
    const int64_t row_step = kernel->stride[1] * get_row_bytes(kernel);
    const bool is_short = width < SHORT_ROW && row_step <= 4 * SHORT_ROW;
    const int64_t rows = ROW_COLUMNS / (is_short ? row_step : columns);
    int32_t sums[ROW_COLUMNS + PLACES_ALIGN];
    for (int64_t row = 0; row < kernel->out_height; row += rows) {
        const int64_t end = row + rows < kernel->out_height ? row + rows : kernel->out_height;
        if (is_short) {
            sum_short_rows(run, taps, padded + row * row_step, end - row, row_step, sums);
            write_sums(run, filter, first + row * width, (end - row) * width, sums);
            continue;
        }
        for (int64_t column = 0; column < width; column += columns) {
            const int64_t count = width - column < columns ? width - column : columns;
            for (int64_t r = row; r < end; ++r) {
                sum_row(run, taps, padded + r * row_step + column, count, sums + (r - row) * count);
            }
            write_sums(run, filter, first + row * width + column, (end - row) * count, sums);
        }
    }
}

// Pads a channel of these filters to the room of channel number `room`.
static const uint8_t *pad_channel(const plane_run *run, int64_t channel, int64_t room) {
    const byte_convolution_kernel *kernel = run->kernel;
    const int64_t image = kernel->depth * kernel->height * kernel->width;
    uint8_t *to = run->padded + room * kernel->channel_bytes;
    padding p = {kernel, run->x + channel * image, (uint8_t)run->x_zero, to};
    pad_rows(&p, 0, kernel->padded_depth * kernel->padded_height);
    return to;
}

static void run_planes(void *data, int64_t first_filter, int64_t end_filter) {
    const plane_run *run = data;
    const byte_convolution_kernel *kernel = run->kernel;
    plane_taps taps;
    find_places(kernel, taps.places);
    for (int64_t filter = first_filter; filter < end_filter; ++filter) {
        const uint8_t *padded = run->padded + filter / kernel->filters * kernel->channel_bytes;
        if (run->x != NULL) {  // to the room of the first one, which the cache keeps
            padded = pad_channel(run, filter, first_filter);
        }
        read_taps(run, filter, &taps);
        for (int64_t z = 0; z < kernel->out_depth; ++z) {
            run_plane(run, &taps, filter, padded + z * kernel->stride[0] * kernel->plane_bytes,
                      z * kernel->out_height * kernel->out_width);
        }
    }
}

static rondo_status run_depthwise(rondo__host_kernel *head, const void *const *inputs,
                                  void *const *outputs, void *workspace) {
    const byte_convolution_kernel *kernel = (const byte_convolution_kernel *)head;
    const uint8_t *x_zero = get_input(inputs, kernel->x_zero);
    const int32_t zero = x_zero != NULL ? rondo__byte_get(x_zero, kernel->is_x_signed, 0) : 0;
    const int64_t filters = kernel->group * kernel->filters;
    const double work = (double)(filters * count_places(kernel)) * (double)(kernel->k + 4);
    const int64_t image_bytes = kernel->group * kernel->depth * kernel->height * kernel->width;
    for (int64_t image = 0; image < kernel->batch; ++image) {
        const uint8_t *x = (const uint8_t *)inputs[0] + image * image_bytes;
        const bool is_own = kernel->filters == 1;  // nothing else sees a filter's channel
        plane_run run = {kernel, inputs, is_own ? x : NULL, workspace, zero, image, outputs[0]};
        if (!is_own) {
            pad_image(kernel, x, (uint8_t)zero, workspace);
        }
        rondo__workers_loop(filters, rondo__host_get_grain(filters, work, 0.0), run_planes, &run);
    }
    return RONDO_STATUS_OK;
}

// ---- filters of several channels --------------------------------------------------------------

// The filters with this run's zero points.
static rondo__byte_rows get_filters(const byte_convolution_kernel *kernel,
                                    const void *const *inputs, void *work) {
    const rondo__byte_simd *simd = kernel->simd;
    const int64_t count = kernel->group * kernel->filters;
    const uint8_t *zeros = get_input(inputs, kernel->w_zero);
    if (kernel->prepared == NULL) {
        return rondo__byte_rows_prepare(simd, inputs[kernel->w], kernel->is_w_signed, kernel->k,
                                        count, zeros, kernel->w_zero_count, true, work);
    }
    return rondo__byte_rows_use(&kernel->form, kernel->prepared, zeros, kernel->w_zero_count, work);
}

static rondo_status run_convolution(rondo__host_kernel *head, const void *const *inputs,
                                    void *const *outputs, void *workspace) {
    const byte_convolution_kernel *kernel = (const byte_convolution_kernel *)head;
    if (kernel->is_depthwise) {
        return run_depthwise(head, inputs, outputs, workspace);
    }
    char *work = workspace;
    uint8_t *padded = (uint8_t *)work + kernel->padded_at;
    const rondo__byte_rows filters = get_filters(kernel, inputs, work);
    const uint8_t *x_zero = get_input(inputs, kernel->x_zero);
    const int32_t zero = x_zero != NULL ? rondo__byte_get(x_zero, kernel->is_x_signed, 0) : 0;
    const int32_t zeros = zero - (kernel->is_x_signed ? 0 : 128);
    const int64_t image =
        kernel->group * kernel->channels * kernel->depth * kernel->height * kernel->width;
    const int64_t plane = kernel->filters * count_places(kernel);
    const size_t y_bytes = kernel->is_requantized ? sizeof(uint8_t) : sizeof(int32_t);
    for (int64_t i = 0; i < kernel->batch * kernel->group; ++i) {
        const int64_t group = i % kernel->group;
        const uint8_t *x = (const uint8_t *)inputs[0] + i / kernel->group * image;
        if (group == 0 && !kernel->is_pointwise) {
            pad_image(kernel, x, (uint8_t)zero, padded);
        }
        run_group(
            kernel, inputs, &filters, group,
            (kernel->is_pointwise ? x : padded) + group * kernel->channels * kernel->channel_bytes,
            &zeros, work + kernel->chunk_at, (int32_t *)(void *)(work + kernel->sums_at),
            (char *)outputs[0] + (size_t)(i * plane) * y_bytes);
    }
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

static uint32_t find_input(const rondo__kernel_request *request, uint32_t input) {
    return input < request->input_count && request->inputs[input].dtype != RONDO_DTYPE_NONE
               ? input
               : NO_INPUT;
}

static int64_t count_values(const rondo__kernel_request *request, uint32_t input) {
    return input == NO_INPUT ? 1 : rondo_shape_get_count(&request->inputs[input].shape);
}

// False where scales are no f32.
static bool read_inputs(const rondo__kernel_request *request, byte_convolution_kernel *kernel) {
    kernel->is_requantized = request->op->def->id == RONDO__OP_QLinearConv;
    kernel->w = kernel->is_requantized ? 3 : 1;
    kernel->x_zero = find_input(request, 2);
    kernel->w_zero = find_input(request, kernel->is_requantized ? 5 : 3);
    kernel->bias = NO_INPUT;
    kernel->w_zero_count = count_values(request, kernel->w_zero);
    kernel->is_x_signed = request->inputs[0].dtype == RONDO_DTYPE_I8;
    kernel->is_w_signed = request->inputs[kernel->w].dtype == RONDO_DTYPE_I8;
    if (!kernel->is_requantized) {
        return true;
    }
    kernel->bias = find_input(request, QLINEAR_BIAS);
    kernel->w_scale_count = count_values(request, QLINEAR_W_SCALE);
    kernel->is_y_signed = request->inputs[QLINEAR_Y_ZERO].dtype == RONDO_DTYPE_I8;
    return request->inputs[QLINEAR_X_SCALE].dtype == RONDO_DTYPE_F32 &&
           request->inputs[QLINEAR_W_SCALE].dtype == RONDO_DTYPE_F32 &&
           request->inputs[QLINEAR_Y_SCALE].dtype == RONDO_DTYPE_F32 &&
           (kernel->bias == NO_INPUT || request->inputs[kernel->bias].dtype == RONDO_DTYPE_I32);
}

// Fewer axes than three count as the last of them. A filter of one tap sees all positions as one
// row.
static void read_extents(const rondo__convolution *given, byte_convolution_kernel *kernel) {
    const rondo__window *window = &given->window;
    kernel->batch = given->batch;
    kernel->group = given->group;
    kernel->channels = given->channels / given->group;
    kernel->filters = given->filters / given->group;
    int64_t input[AXES] = {1, 1, 1}, output[AXES] = {1, 1, 1};
    bool is_pointwise = true;  // and nothing is left out
    for (int32_t i = 0; i < AXES; ++i) {
        const int32_t axis = i - (AXES - window->rank);
        kernel->kernel[i] = axis < 0 ? 1 : window->kernel[axis];
        kernel->stride[i] = axis < 0 ? 1 : window->stride[axis];
        kernel->dilation[i] = axis < 0 ? 1 : window->dilation[axis];
        kernel->pad[i] = axis < 0 ? 0 : window->pad_begin[axis];
        input[i] = axis < 0 ? 1 : window->input[axis];
        output[i] = axis < 0 ? 1 : window->output[axis];
        is_pointwise = is_pointwise && kernel->kernel[i] == 1 && kernel->stride[i] == 1 &&
                       kernel->pad[i] == 0 && input[i] == output[i];
    }
    kernel->is_pointwise = is_pointwise;
    const int64_t all_input = input[0] * input[1] * input[2];
    const int64_t all_output = output[0] * output[1] * output[2];
    kernel->depth = is_pointwise ? 1 : input[0];
    kernel->height = is_pointwise ? 1 : input[1];
    kernel->width = is_pointwise ? all_input : input[2];
    kernel->out_depth = is_pointwise ? 1 : output[0];
    kernel->out_height = is_pointwise ? 1 : output[1];
    kernel->out_width = is_pointwise ? all_output : output[2];
    kernel->k = kernel->channels * kernel->kernel[0] * kernel->kernel[1] * kernel->kernel[2];
}

// False where the padded copy would be out of proportion.
static bool plan_work(byte_convolution_kernel *kernel) {
    enum { GROWTH = 16 };
    const rondo__byte_simd *simd = kernel->simd;
    const int64_t outs[AXES] = {kernel->out_depth, kernel->out_height, kernel->out_width};
    int64_t seen[AXES];
    for (int i = 0; i < AXES; ++i) {
        int64_t span, reach;
        if (!rondo__mul_i64(outs[i] - 1, kernel->stride[i], &span) ||
            !rondo__mul_i64(kernel->kernel[i] - 1, kernel->dilation[i], &reach) ||
            span > INT32_MAX || reach > INT32_MAX) {
            return false;
        }
        seen[i] = span + reach + 1;
    }
    kernel->padded_depth = seen[0];
    kernel->padded_height = seen[1];
    kernel->phase_width = (seen[2] + kernel->stride[2] - 1) / kernel->stride[2];
    if (!rondo__mul_i64(kernel->padded_height, get_row_bytes(kernel), &kernel->plane_bytes) ||
        !rondo__mul_i64(kernel->padded_depth, kernel->plane_bytes, &kernel->channel_bytes)) {
        return false;
    }
    const int64_t used = kernel->depth * kernel->height * kernel->width + count_places(kernel);
    if (kernel->channel_bytes / GROWTH > used + 4096) {
        return false;
    }
    kernel->is_depthwise = kernel->channels == 1 && kernel->k <= TAPS_MAX;
    if (kernel->is_depthwise) {
        kernel->head.base.workspace_bytes =
            (size_t)(kernel->group * kernel->channel_bytes) + COPY_BYTES;
        return true;
    }
    const int64_t places = count_places(kernel);
    const rondo__byte_form one =
        rondo__byte_form_make(simd, kernel->k, simd->panel_columns, true, false);
    const int64_t fitting = CHUNK_BYTES / (int64_t)one.panel_bytes;
    const int64_t columns = simd->panel_columns;
    const int64_t summed = kernel->is_requantized
                               ? SUMS_BYTES / (int64_t)sizeof(int32_t) / kernel->filters / columns
                               : fitting;
    const int64_t panels = fitting < summed ? fitting : summed;
    kernel->chunk_places = (panels > 8 ? panels : 8) * columns;
    if (kernel->chunk_places > places) {
        kernel->chunk_places = (places + columns - 1) / columns * columns;
    }
    const rondo__byte_form form =
        rondo__byte_form_make(simd, kernel->k, kernel->chunk_places, true, false);
    const size_t sizes[] = {
        rondo__byte_rows_get_bytes(simd, kernel->k, kernel->group * kernel->filters),
        kernel->is_pointwise
            ? 0
            : (size_t)(kernel->group * kernel->channels * kernel->channel_bytes) + COPY_BYTES,
        form.matrix_bytes,
        kernel->is_requantized ? (size_t)(kernel->filters * kernel->chunk_places) * sizeof(int32_t)
                               : 0,
    };
    size_t *const offsets[] = {NULL, &kernel->padded_at, &kernel->chunk_at, &kernel->sums_at};
    size_t at = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        if (offsets[i] != NULL) {
            *offsets[i] = at;
        }
        at += rondo__align_up(sizes[i], 64);
    }
    kernel->head.base.workspace_bytes = at;
    return true;
}

static rondo_status init_kernel(const rondo__kernel_request *request,
                                byte_convolution_kernel *kernel) {
    rondo__convolution given;
    if (!read_inputs(request, kernel)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__convolution_init(request->op, &request->inputs[0].shape,
                                            &request->inputs[kernel->w].shape, false, &given));
    if (given.window.rank > AXES) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    read_extents(&given, kernel);
    const rondo_tensor *w = request->inputs[kernel->w].constant;
    kernel->form = rondo__byte_rows_choose(w, kernel->k, kernel->group * kernel->filters);
    kernel->simd = kernel->form.simd;
    if (kernel->k > RONDO__BYTE_PRODUCT_K_MAX || !plan_work(kernel)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    if (w == NULL || kernel->is_depthwise) {
        return RONDO_STATUS_OK;
    }
    return rondo__byte_rows_keep(request->weights, &kernel->form, w, &kernel->prepared);
}

rondo_status rondo__host_prepare_byte_convolution(const rondo__kernel_request *request,
                                                  rondo__kernel **out_kernel) {
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(byte_convolution_kernel),
                                                         "simd", run_convolution, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = init_kernel(request, (byte_convolution_kernel *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
