// kernel/host/convolution/host_byte_planes.c — convolutions of bytes whose filters have one
// channel: rows of the padded copy are added up, a tap after the other.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/checked.h"
#include "kernel/host/convolution/byte_convolution.h"
#include "kernel/host/host_threads.h"

// Sums that are made at a time, positions of a short row, and of a step.
enum { ROW_COLUMNS = 2048, SHORT_ROW = 64, PLACES_ALIGN = 16 };

typedef struct plane_run {
    const rondo__byte_convolution *kernel;
    const void *const *inputs;
    const uint8_t *x;  // of this image; NULL: padded already
    uint8_t *padded;
    int32_t x_zero;
    int64_t image;
    void *y;
} plane_run;

// What is the same for all positions of one filter.
typedef struct plane_taps {
    int32_t weights[RONDO__BYTE_TAPS_MAX];
    int64_t places[RONDO__BYTE_TAPS_MAX];  // where a tap sees the first position: of all filters
    int32_t start;                         // what the zero point of x takes away
} plane_taps;

static void find_places(const rondo__byte_convolution *kernel, int64_t *out_places) {
    int64_t tap[RONDO__BYTE_AXES] = {0};
    for (int64_t k = 0; k < kernel->k; ++k) {
        out_places[k] = rondo__byte_find_tap(kernel, tap);
        (void)rondo__byte_go_to_next_tap(kernel, tap);
    }
}

static void read_taps(const plane_run *run, int64_t filter, plane_taps *taps) {
    const rondo__byte_convolution *kernel = run->kernel;
    const uint8_t *w = (const uint8_t *)run->inputs[kernel->w] + filter * kernel->k;
    const uint8_t *zeros = rondo__byte_get_input(run->inputs, kernel->w_zero);
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
    const rondo__byte_convolution *kernel = run->kernel;
    const int64_t whole = rondo__round_up(count, PLACES_ALIGN);
    kernel->simd->add_taps(padded, kernel->is_x_signed, taps->places, taps->weights, kernel->k,
                           taps->start, whole, sums);
}

// Writes sums of positions from `first` on of one filter.
static void write_sums(const plane_run *run, int64_t filter, int64_t first, int64_t count,
                       const int32_t *sums) {
    const rondo__byte_convolution *kernel = run->kernel;
    const int64_t filters = kernel->group * kernel->filters;
    const int64_t at = (run->image * filters + filter) * rondo__byte_count_places(kernel) + first;
    if (!kernel->is_requantized) {
        memcpy((int32_t *)run->y + at, sums, (size_t)count * sizeof *sums);
        return;
    }
    rondo__byte_requantize(kernel, run->inputs, filter, sums, count, (uint8_t *)run->y + at);
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
    const rondo__byte_convolution *kernel = run->kernel;
    const int64_t width = kernel->out_width;
    const int64_t columns = width < ROW_COLUMNS ? width : ROW_COLUMNS;
    const int64_t row_step = kernel->stride[1] * rondo__byte_get_row_bytes(kernel);
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
    const rondo__byte_convolution *kernel = run->kernel;
    const int64_t image = kernel->depth * kernel->height * kernel->width;
    uint8_t *to = run->padded + room * kernel->channel_bytes;
    rondo__byte_padding p = {kernel, run->x + channel * image, (uint8_t)run->x_zero, to};
    rondo__byte_pad_rows(&p, 0, kernel->padded_depth * kernel->padded_height);
    return to;
}

static void run_filters(void *data, int64_t first_filter, int64_t end_filter) {
    const plane_run *run = data;
    const rondo__byte_convolution *kernel = run->kernel;
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

rondo_status rondo__byte_run_planes(rondo__host_kernel *head, const void *const *inputs,
                                    void *const *outputs, void *workspace) {
    const rondo__byte_convolution *kernel = (const rondo__byte_convolution *)head;
    const uint8_t *x_zero = rondo__byte_get_input(inputs, kernel->x_zero);
    const int32_t zero = x_zero != NULL ? rondo__byte_get(x_zero, kernel->is_x_signed, 0) : 0;
    const int64_t filters = kernel->group * kernel->filters;
    const double work =
        (double)(filters * rondo__byte_count_places(kernel)) * (double)(kernel->k + 4);
    const int64_t image_bytes = kernel->group * kernel->depth * kernel->height * kernel->width;
    for (int64_t image = 0; image < kernel->batch; ++image) {
        const uint8_t *x = (const uint8_t *)inputs[0] + image * image_bytes;
        const bool is_own = kernel->filters == 1;  // nothing else sees a filter's channel
        plane_run run = {kernel, inputs, is_own ? x : NULL, workspace, zero, image, outputs[0]};
        if (!is_own) {
            rondo__byte_pad_image(kernel, x, (uint8_t)zero, workspace);
        }
        rondo__workers_loop(filters, rondo__host_get_grain(filters, work, 0.0), run_filters, &run);
    }
    return RONDO_STATUS_OK;
}
