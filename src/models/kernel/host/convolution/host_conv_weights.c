// kernel/host/convolution/host_conv_weights.c — rondo.ConvWeights of f32: a product of what the
// windows of x saw, [taps * channels, positions], which is read where it stands, with dy.
//
//   for each part of the images (some at once, each with sums of its own)
//     for each block of positions of an image
//       dy of the block is packed into panels
//       for each few rows: sums[rows, filters] += seen[rows, block] x panels
//   the sums of all parts are added up and turned to [filters, channels, taps]
//
// Parts come from the shape alone, so that sums do not depend on the threads.
// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/convolution/conv_windows.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"
#include "op/support.h"

enum {
    BLOCK = 256,             // positions
    UNITS_MAX = 16,          // parts of the images times parts of the rows
    SUMS_BYTES = 1 << 20,    // of all parts of the images together
    UNIT_ADDS = 512 * 1024,  // multiply-adds that a unit is worth
    ROWS_OF_UNIT = 48,
    ROWS_MAX = 16,  // of a tile
    FILTERS_OF_TURN = 16,
};

typedef struct weights_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__convolution shape;
    rondo__conv_windows windows;
    bool is_last;
    int32_t *offsets;  // of the first tap of each position, in x or its copy
    int64_t rows, width, panel_count;
    int64_t image_parts, row_parts;
    int64_t grain;
    size_t sums_at, panels_at;  // in the workspace, in floats
} weights_kernel;

typedef struct weights_run {
    const weights_kernel *kernel;
    const float *dy, *x;
    float *sums, *panels, *dw;
} weights_run;

static int64_t get_block_length(const weights_kernel *kernel) {
    return kernel->shape.output_span < BLOCK ? kernel->shape.output_span : BLOCK;
}

static void pack_block(const weights_run *run, int64_t image, int64_t position, int64_t count,
                       float *panels) {
    const weights_kernel *kernel = run->kernel;
    const int64_t filters = kernel->shape.filters, span = kernel->shape.output_span;
    const float *dy = run->dy + image * span * filters;
    for (int64_t panel = 0; panel < kernel->panel_count; ++panel) {
        rondo__pack_panel(kernel->simd, kernel->is_last ? dy + position * filters : dy + position,
                          kernel->is_last ? filters : 1, kernel->is_last ? 1 : span, count, filters,
                          panel, panels + panel * count * kernel->simd->panel_columns);
    }
}

// Adds a block of positions of an image to rows [first, end) of the sums.
static void add_block(const weights_run *run, int64_t image, int64_t position, int64_t count,
                      const float *panels, float *sums, int64_t first, int64_t end) {
    const weights_kernel *kernel = run->kernel;
    const rondo__conv_windows *w = &kernel->windows;
    const int64_t height = kernel->simd->narrow_tile_rows, channels = kernel->shape.channels;
    const int64_t groups = (end - first + height - 1) / height;
    const float *starts[ROWS_MAX];
    const float *x = run->x + image * w->image;
    for (int64_t i = 0; i < groups; ++i) {
        const int64_t row = first + (end - first) * i / groups;
        const int64_t last = first + (end - first) * (i + 1) / groups;
        const rondo__tile group = {
            .run_count = 1,
            .run_length = count,
            .starts = starts,
            .starts_row = height,
            .offsets = kernel->offsets + position,
            .b_row = kernel->simd->panel_columns,
            .rows = (int32_t)(last - row),
            .columns = (int32_t)kernel->width,
            .scale = 1.0f,
            .low = -INFINITY,
            .high = INFINITY,
            .z = sums + row * kernel->width,
            .z_row = kernel->width,
            .y = sums + row * kernel->width,
            .y_row = kernel->width,
        };
        for (int64_t r = row; r < last; ++r) {
            starts[r - row] = x + w->tap_offset[r / channels] + r % channels;
        }
        rondo__multiply_group(kernel->simd, &group, panels, count * kernel->simd->panel_columns);
    }
}

static void add_units(void *data, int64_t begin, int64_t stop) {
    const weights_run *run = data;
    const weights_kernel *kernel = run->kernel;
    const int64_t span = kernel->shape.output_span;
    for (int64_t unit = begin; unit < stop; ++unit) {
        const int64_t image_part = unit / kernel->row_parts, row_part = unit % kernel->row_parts;
        const int64_t first = rondo__host_part(kernel->rows, row_part, kernel->row_parts);
        const int64_t end = rondo__host_part(kernel->rows, row_part + 1, kernel->row_parts);
        const int64_t batch = kernel->shape.batch;
        const int64_t last = rondo__host_part(batch, image_part + 1, kernel->image_parts);
        float *panels = run->panels + unit * get_block_length(kernel) * kernel->width;
        float *sums = run->sums + image_part * kernel->rows * kernel->width;
        for (int64_t i = first * kernel->width; i < end * kernel->width; ++i) {
            sums[i] = 0.0f;
        }
        for (int64_t image = rondo__host_part(batch, image_part, kernel->image_parts); image < last;
             ++image) {
            for (int64_t position = 0; position < span; position += BLOCK) {
                const int64_t count = span - position < BLOCK ? span - position : BLOCK;
                pack_block(run, image, position, count, panels);
                add_block(run, image, position, count, panels, sums, first, end);
            }
        }
    }
}

// Some filters of the sums, from [parts, taps, channels, filters] to [filters, channels, taps].
static void turn_filters(void *data, int64_t begin, int64_t end) {
    const weights_run *run = data;
    const weights_kernel *kernel = run->kernel;
    const int64_t channels = kernel->shape.channels, taps = kernel->shape.kernel_span;
    for (int64_t group = begin; group < end; ++group) {
        const int64_t filter = group * FILTERS_OF_TURN;
        const int64_t rest = kernel->shape.filters - filter;
        const int64_t count = rest < FILTERS_OF_TURN ? rest : FILTERS_OF_TURN;
        for (int64_t row = 0; row < kernel->rows; ++row) {
            float total[FILTERS_OF_TURN] = {0.0f};
            for (int64_t part = 0; part < kernel->image_parts; ++part) {
                const float *sums =
                    run->sums + (part * kernel->rows + row) * kernel->width + filter;
                for (int64_t i = 0; i < FILTERS_OF_TURN; ++i) {  // padded to panels
                    total[i] += i < count ? sums[i] : 0.0f;
                }
            }
            float *to = run->dw + (filter * channels + row % channels) * taps + row / channels;
            for (int64_t i = 0; i < count; ++i) {
                to[i * channels * taps] = total[i];
            }
        }
    }
}

static rondo_status run_weights(rondo__host_kernel *head, const void *const *inputs,
                                void *const *outputs, void *workspace) {
    const weights_kernel *kernel = (const weights_kernel *)head;
    float *room = workspace;
    weights_run run = {.kernel = kernel,
                       .dy = inputs[0],
                       .x = inputs[1],
                       .sums = room + kernel->sums_at,
                       .panels = room + kernel->panels_at,
                       .dw = outputs[0]};
    if (kernel->windows.is_copied) {
        rondo__conv_windows_copy(&kernel->windows, inputs[1], kernel->is_last, room);
        run.x = room;
    }
    rondo__workers_loop(kernel->image_parts * kernel->row_parts, kernel->grain, add_units, &run);
    const int64_t groups = (kernel->shape.filters + FILTERS_OF_TURN - 1) / FILTERS_OF_TURN;
    const double bytes =
        4.0 * (double)(kernel->image_parts * kernel->rows * kernel->width) * sizeof(float);
    rondo__workers_loop(groups, rondo__host_get_grain(groups, bytes, 0.0), turn_filters, &run);
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

static void deinit_weights(rondo__host_kernel *head) {
    weights_kernel *kernel = (weights_kernel *)head;
    rondo__conv_windows_deinit(&kernel->windows);
    rondo__free(kernel->offsets);
}

static rondo_status init_shape(const rondo__kernel_request *request, weights_kernel *kernel) {
    const rondo_shape *dy = &request->inputs[0].shape, *x = &request->inputs[1].shape;
    const int32_t first = kernel->is_last ? 1 : 2, channel = kernel->is_last ? x->rank - 1 : 1;
    rondo__convolution *shape = &kernel->shape;
    RETURN_IF_ERROR(
        rondo__window_init(request->op, x->rank - 2, x->extent + first, NULL, &shape->window));
    shape->batch = x->extent[0];
    shape->channels = x->extent[channel];
    shape->filters = dy->extent[channel];
    shape->group = 1;
    shape->kernel_span = shape->output_span = shape->input_span = 1;
    for (int32_t d = 0; d < shape->window.rank; ++d) {
        shape->kernel_span *= shape->window.kernel[d];
        shape->output_span *= shape->window.output[d];
        shape->input_span *= shape->window.input[d];
    }
    return RONDO_STATUS_OK;
}

// Where the windows of an image begin.
static rondo_status list_offsets(weights_kernel *kernel) {
    const rondo__window *window = &kernel->windows.window;
    const int64_t span = kernel->shape.output_span;
    if (kernel->windows.image > INT_MAX) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    kernel->offsets = rondo__calloc((size_t)span, sizeof *kernel->offsets);
    for (int64_t position = 0; kernel->offsets != NULL && position < span; ++position) {
        int64_t rest = position, at = 0, step = kernel->shape.channels;
        for (int32_t d = window->rank - 1; d >= 0; --d) {
            at += rest % window->output[d] * window->stride[d] * step;
            rest /= window->output[d];
            step *= window->input[d];
        }
        kernel->offsets[position] = (int32_t)at;
    }
    return kernel->offsets != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void cut_work(weights_kernel *kernel) {
    const rondo__convolution *shape = &kernel->shape;
    const double work =
        (double)(shape->batch * shape->output_span) * (double)(kernel->rows * kernel->width);
    const int64_t sums = kernel->rows * kernel->width;
    const int64_t wanted =
        work / UNIT_ADDS < UNITS_MAX ? (int64_t)(work / UNIT_ADDS) + 1 : UNITS_MAX;
    const int64_t room = SUMS_BYTES / (sums * (int64_t)sizeof(float)) + 1;
    kernel->image_parts = smaller(smaller(shape->batch, wanted), room);
    kernel->row_parts = smaller((wanted + kernel->image_parts - 1) / kernel->image_parts,
                                (kernel->rows + ROWS_OF_UNIT - 1) / ROWS_OF_UNIT);
    const int64_t units = kernel->image_parts * kernel->row_parts;
    kernel->grain = rondo__host_get_grain(units, 0.0, work);
    kernel->sums_at =
        (rondo__conv_windows_get_copy_bytes(&kernel->windows) / sizeof(float) + 15) / 16 * 16;
    kernel->panels_at = kernel->sums_at + (size_t)(kernel->image_parts * sums);
    kernel->head.base.workspace_bytes =
        (kernel->panels_at + (size_t)(units * get_block_length(kernel) * kernel->width)) *
        sizeof(float);
}

static rondo_status init_kernel(const rondo__kernel_request *request, weights_kernel *kernel) {
    kernel->simd = rondo__simd_get();
    kernel->is_last = rondo__op_get_int(request->op, "channels_last", 0) != 0;
    RETURN_IF_ERROR(init_shape(request, kernel));
    bool copies = !kernel->is_last;
    for (int32_t d = 0; d < kernel->shape.window.rank; ++d) {
        copies = copies || kernel->shape.window.pad_begin[d] + kernel->shape.window.pad_end[d] > 0;
    }
    RETURN_IF_ERROR(rondo__conv_windows_init(&kernel->windows, &kernel->shape, copies));
    kernel->rows = kernel->shape.kernel_span * kernel->shape.channels;
    kernel->panel_count =
        (kernel->shape.filters + kernel->simd->panel_columns - 1) / kernel->simd->panel_columns;
    kernel->width = kernel->panel_count * kernel->simd->panel_columns;
    cut_work(kernel);
    return list_offsets(kernel);
}

rondo_status rondo__host_prepare_conv_weights(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel) {
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 ||
        request->inputs[1].dtype != RONDO_DTYPE_F32) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(weights_kernel), "simd",
                                                         run_weights, deinit_weights);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = init_kernel(request, (weights_kernel *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
