// kernel/host/convolution/host_deform.c — DeformConv on f32: for a part of the output, what each
// tap sees of each channel is sampled once, and the filters are products with that. The samples are
// taken of an image whose channels stand side by side, which is vector code.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/block.h"
#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/image/convolution.h"

enum { PART = 128, TURN_TILE = 16, INPUT_OFFSET = 2, INPUT_BIAS = 3, INPUT_MASK = 4 };

typedef struct deform_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__convolution form;
    int64_t offset_group;
    int64_t unit_count;    // parts of all images
    int64_t thread_count;  // each has samples of its own
    int64_t sample_count;  // of a thread
    float *samples;        // [channels * taps, PART]
} deform_kernel;

typedef struct deform_run {
    const deform_kernel *kernel;
    const float *planes;  // x [batch, channels, span]
    float *x;             // [batch, span, channels]
    const float *w, *offset, *bias, *mask;
    float *y;
} deform_run;

// Where the samples of one tap lie in any plane, and the shares of the four neighbours.
typedef struct places {
    int32_t at[4][PART];
    float share[4][PART];
    float factor[PART];  // the mask
} places;

static void deinit_deform(rondo__host_kernel *head) {
    rondo__block_free(((deform_kernel *)head)->samples);
}

// Without branches, which becomes vector code. A neighbour outside is place -1.
static void set_places(const float *rows, const float *columns, int32_t height, int32_t width,
                       int64_t count, places *p) {
    for (int64_t i = 0; i < count; ++i) {
        const int is_inside = (rows[i] > -1.0f) & (rows[i] < (float)height) & (columns[i] > -1.0f) &
                              (columns[i] < (float)width);
        const float row = is_inside ? rows[i] : 0.0f, column = is_inside ? columns[i] : 0.0f;
        int32_t top = (int32_t)row, left = (int32_t)column;  // towards zero
        top -= row < (float)top;
        left -= column < (float)left;
        const float down = row - (float)top, across = column - (float)left;
        const float shares[2][2] = {{1.0f - down, down}, {1.0f - across, across}};
        for (int k = 0; k < 4; ++k) {
            const int32_t r = top + k / 2, c = left + k % 2;
            const int counts = is_inside & (r >= 0) & (r < height) & (c >= 0) & (c < width);
            p->at[k][i] = counts ? r * width + c : -1;
            p->share[k][i] = shares[0][k / 2] * shares[1][k % 2];
        }
    }
}

static void find_places(const deform_run *run, int64_t image, int64_t group, int64_t tap,
                        int64_t first, int64_t count, places *p) {
    const deform_kernel *kernel = run->kernel;
    const rondo__window *window = &kernel->form.window;
    const int64_t span = kernel->form.output_span;
    const int64_t at = (image * kernel->offset_group + group) * kernel->form.kernel_span + tap;
    const float *rows = run->offset + 2 * at * span, *columns = rows + span;
    const float *mask = run->mask != NULL ? run->mask + at * span : NULL;
    const int64_t tap_row = tap / window->kernel[1] * window->dilation[0] - window->pad_begin[0];
    const int64_t tap_column = tap % window->kernel[1] * window->dilation[1] - window->pad_begin[1];
    float row_places[PART], column_places[PART];
    int64_t row = first / window->output[1], column = first % window->output[1];
    for (int64_t i = 0; i < count; ++i) {
        row_places[i] = (float)(row * window->stride[0] + tap_row) + rows[first + i];
        column_places[i] = (float)(column * window->stride[1] + tap_column) + columns[first + i];
        p->factor[i] = mask != NULL ? mask[first + i] : 1.0f;
        column = column + 1 < window->output[1] ? column + 1 : 0;
        row += column == 0;
    }
    set_places(row_places, column_places, (int32_t)window->input[0], (int32_t)window->input[1],
               count, p);
}

enum { SIDE = 16 };  // channels that are summed up together

// The samples of `count` channels at place i; `x` is an image of rows of `channels`. An infinity
// beside the sample counts only where it is a neighbour.
static inline void sum_up(const places *p, int64_t i, const float *x, int64_t channels,
                          int64_t count, float *sums) {
    const float *rows[4];
    float shares[4];
    int all = 1;
    for (int k = 0; k < 4; ++k) {
        const int64_t at = p->at[k][i];
        all &= at >= 0;
        rows[k] = x + (at < 0 ? 0 : at) * channels;
        shares[k] = p->share[k][i];
    }
    if (all != 0) {
        for (int64_t c = 0; c < count; ++c) {
            sums[c] = shares[0] * rows[0][c] + shares[1] * rows[1][c] + shares[2] * rows[2][c] +
                      shares[3] * rows[3][c];
        }
        return;
    }
    for (int64_t c = 0; c < count; ++c) {
        sums[c] = 0.0f;
        for (int k = 0; k < 4; ++k) {
            sums[c] += p->at[k][i] >= 0 ? shares[k] * rows[k][c] : 0.0f;
        }
    }
}

// Writes the samples of `count` channels at each place, `step` apart.
static void take_samples(const places *p, const float *x, int64_t channels, int64_t count,
                         int64_t place_count, float *samples, int64_t step) {
    float sums[SIDE];
    for (int64_t first = 0; first < count; first += SIDE) {
        const int64_t side = count - first < SIDE ? count - first : SIDE;
        float *to = samples + first * step;
        for (int64_t i = 0; i < place_count; ++i) {
            if (side == SIDE) {
                sum_up(p, i, x + first, channels, SIDE, sums);
            } else {
                sum_up(p, i, x + first, channels, side, sums);
            }
            for (int64_t c = 0; c < side; ++c) {
                to[c * step + i] = sums[c] * p->factor[i];
            }
        }
    }
}

static void sample_part(const deform_run *run, int64_t image, int64_t first, int64_t count,
                        float *samples) {
    const deform_kernel *kernel = run->kernel;
    const rondo__convolution *form = &kernel->form;
    const int64_t taps = form->kernel_span;
    const int64_t channels = form->channels / kernel->offset_group;
    places p;
    for (int64_t group = 0; group < kernel->offset_group; ++group) {
        for (int64_t tap = 0; tap < taps; ++tap) {
            find_places(run, image, group, tap, first, count, &p);
            take_samples(&p, run->x + image * form->channels * form->input_span + group * channels,
                         form->channels, channels, count,
                         samples + (group * channels * taps + tap) * PART, taps * PART);
        }
    }
}

static void run_part(const deform_run *run, int64_t unit, float *samples) {
    const deform_kernel *kernel = run->kernel;
    const rondo__convolution *form = &kernel->form;
    const int64_t parts = (form->output_span + PART - 1) / PART;
    const int64_t image = unit / parts, first = unit % parts * PART;
    const int64_t rest = form->output_span - first, count = rest < PART ? rest : PART;
    const int64_t terms = form->channels / form->group * form->kernel_span;
    sample_part(run, image, first, count, samples);
    for (int64_t m = 0; m < form->filters; ++m) {
        float *y = run->y + (image * form->filters + m) * form->output_span + first;
        for (int64_t i = 0; i < count; ++i) {
            y[i] = run->bias != NULL ? run->bias[m] : 0.0f;
        }
        kernel->simd->add_rows(run->w + m * terms,
                               samples + m / (form->filters / form->group) * terms * PART, PART,
                               terms, y, count);
    }
}

static void run_parts(void *data, int64_t first, int64_t end) {
    const deform_run *run = data;
    const deform_kernel *kernel = run->kernel;
    for (int64_t thread = first; thread < end; ++thread) {
        const int64_t last = rondo__host_part(kernel->unit_count, thread + 1, kernel->thread_count);
        int64_t unit = rondo__host_part(kernel->unit_count, thread, kernel->thread_count);
        for (; unit < last; ++unit) {
            run_part(run, unit, kernel->samples + thread * kernel->sample_count);
        }
    }
}

static void turn_images(void *data, int64_t first, int64_t end) {
    const deform_run *run = data;
    const rondo__convolution *form = &run->kernel->form;
    const int64_t span = form->input_span, channels = form->channels;
    for (int64_t unit = first; unit < end; ++unit) {
        const int64_t tiles = (span + TURN_TILE - 1) / TURN_TILE;
        const float *from = run->planes + unit / tiles * channels * span;
        float *to = run->x + unit / tiles * channels * span;
        const int64_t begin = unit % tiles * TURN_TILE;
        const int64_t stop = span - begin < TURN_TILE ? span : begin + TURN_TILE;
        for (int64_t c = 0; c < channels; ++c) {
            for (int64_t i = begin; i < stop; ++i) {
                to[i * channels + c] = from[c * span + i];
            }
        }
    }
}

static rondo_status run_deform(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    const deform_kernel *kernel = (const deform_kernel *)head;
    const int64_t tiles = (kernel->form.input_span + TURN_TILE - 1) / TURN_TILE;
    deform_run run = {.kernel = kernel,
                      .planes = inputs[0],
                      .x = workspace,
                      .w = inputs[1],
                      .offset = inputs[INPUT_OFFSET],
                      .bias = head->input_count > INPUT_BIAS ? inputs[INPUT_BIAS] : NULL,
                      .mask = head->input_count > INPUT_MASK ? inputs[INPUT_MASK] : NULL,
                      .y = outputs[0]};
    rondo__workers_loop(kernel->form.batch * tiles, 64, turn_images, &run);
    rondo__workers_loop(kernel->thread_count, 1, run_parts, &run);
    return RONDO_STATUS_OK;
}

static bool is_f32(const rondo__kernel_request *request) {
    bool is = request->outputs[0].dtype == RONDO_DTYPE_F32;
    for (size_t i = 0; i < request->input_count; ++i) {
        is = is && (request->inputs[i].dtype == RONDO_DTYPE_F32 ||
                    request->inputs[i].dtype == RONDO_DTYPE_NONE);
    }
    return is;
}

rondo_status rondo__host_prepare_deform(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    rondo__convolution form;
    const rondo_shape *x = &request->inputs[0].shape, *w = &request->inputs[1].shape;
    if (!is_f32(request) || x->rank != 4) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__convolution_init(request->op, x, w, false, &form));
    if (form.input_span > INT32_MAX) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(deform_kernel), "simd",
                                                         run_deform, deinit_deform);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    deform_kernel *kernel = (deform_kernel *)head;
    const double terms = (double)form.channels * (double)form.kernel_span;
    const double positions = (double)form.batch * (double)form.output_span;
    kernel->simd = rondo__simd_get();
    kernel->form = form;
    kernel->offset_group = rondo__op_get_int(request->op, "offset_group", 1);
    kernel->unit_count = form.batch * ((form.output_span + PART - 1) / PART);
    kernel->thread_count = rondo__host_count_parts(
        kernel->unit_count, 0.0,
        positions * terms * (8.0 + (double)form.filters / (double)form.group));
    head->base.workspace_bytes = rondo_tensor_get_bytes(
        &(rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = request->inputs[0].shape});
    kernel->sample_count = form.channels * form.kernel_span * PART;
    kernel->samples = rondo__block_allocate(
        (size_t)(kernel->thread_count * kernel->sample_count) * sizeof(float), 64);
    if (kernel->samples == NULL) {
        rondo__kernel_destroy(&head->base);
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
