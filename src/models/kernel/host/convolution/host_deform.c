// kernel/host/convolution/host_deform.c — DeformConv on f32: for a part of the output, what each
// tap sees of each channel is sampled once, and the filters are products with that.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/block.h"
#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/image/convolution.h"

enum { PART = 128, INPUT_OFFSET = 2, INPUT_BIAS = 3, INPUT_MASK = 4 };

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
    const float *x, *w, *offset, *bias, *mask;
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

// A neighbour outside is place -1.
static void set_place(places *p, int64_t i, float row, float column, const rondo__window *window) {
    const int64_t height = window->input[0], width = window->input[1];
    const bool is_inside =
        row > -1.0f && row < (float)height && column > -1.0f && column < (float)width;
    const float top = is_inside ? floorf(row) : 0.0f, left = is_inside ? floorf(column) : 0.0f;
    const float down = row - top, across = column - left;
    for (int64_t k = 0; k < 4; ++k) {
        const int64_t r = (int64_t)top + k / 2, c = (int64_t)left + k % 2;
        const bool counts = is_inside && r >= 0 && r < height && c >= 0 && c < width;
        p->at[k][i] = counts ? (int32_t)(r * width + c) : -1;
        p->share[k][i] =
            !counts ? 0.0f
                    : (k / 2 != 0 ? down : 1.0f - down) * (k % 2 != 0 ? across : 1.0f - across);
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
    for (int64_t i = 0; i < count; ++i) {
        const int64_t place = first + i;
        const int64_t row = place / window->output[1] * window->stride[0] + tap_row;
        const int64_t column = place % window->output[1] * window->stride[1] + tap_column;
        set_place(p, i, (float)row + rows[place], (float)column + columns[place], window);
        p->factor[i] = mask != NULL ? mask[place] : 1.0f;
    }
}

// An infinity beside the sample counts only where it is a neighbour.
static void take_samples(const places *p, const float *plane, int64_t count, float *samples) {
    for (int64_t i = 0; i < count; ++i) {
        float sum = 0.0f;
        for (int64_t k = 0; k < 4; ++k) {
            const int32_t at = p->at[k][i];
            sum += at >= 0 ? p->share[k][i] * plane[at] : 0.0f;
        }
        samples[i] = sum * p->factor[i];
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
            for (int64_t c = group * channels; c < (group + 1) * channels; ++c) {
                take_samples(&p, run->x + (image * form->channels + c) * form->input_span, count,
                             samples + (c * taps + tap) * PART);
            }
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

static rondo_status run_deform(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const deform_kernel *kernel = (const deform_kernel *)head;
    deform_run run = {.kernel = kernel,
                      .x = inputs[0],
                      .w = inputs[1],
                      .offset = inputs[INPUT_OFFSET],
                      .bias = head->input_count > INPUT_BIAS ? inputs[INPUT_BIAS] : NULL,
                      .mask = head->input_count > INPUT_MASK ? inputs[INPUT_MASK] : NULL,
                      .y = outputs[0]};
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
