// kernel/host/convolution/host_conv_transpose.c — ConvTranspose on f32, up to three spatial axes,
// as products with our tiles. A weight that is constant is turned once, any other at each run.
//
// Work is cut by rows of the output along the last axis, of all filters of a group at once. Into
// one such row goes each tap of the leading axes that meets it in the input:
//
//   w[tap]' [filters * last kernel axis, channels]  x  row of x [channels, width]
//
// The result has, for each filter and tap of the last axis, a row as wide as x, which is added to
// the output at the positions of that tap, `stride` apart. No two units of work write the same
// element, and no product is made twice.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/thread_count.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"
#include "op/image/convolution.h"

typedef struct transposed_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__convolution shape;
    // [group, leading taps, filters of a group * last kernel axis, channels]; NULL: in the
    // workspace
    const float *weights;
    size_t weights_at;          // there, in floats
    int64_t channels, filters;  // of a group
    int64_t leading_taps;
    int64_t leading_outputs;  // rows of a plane of y
    int64_t part_count;
    int64_t scratch_floats;  // of a part
} transposed_kernel;

// ---- running ----------------------------------------------------------------------------------

// Which row of the input tap `tap` of the leading axes puts into the output row at `position`.
static bool find_row(const rondo__window *window, const int64_t *position, const int64_t *tap,
                     int64_t *out_row) {
    int64_t row = 0;
    for (int32_t i = 0; i + 1 < window->rank; ++i) {
        const int64_t at = position[i] + window->pad_begin[i] - tap[i] * window->dilation[i];
        if (at < 0 || at % window->stride[i] != 0 || at / window->stride[i] >= window->input[i]) {
            return false;
        }
        row = row * window->input[i] + at / window->stride[i];
    }
    *out_row = row;
    return true;
}

// Elements of a row of x that a tap of the last axis has a place for in y: element i goes to
// offset + i * stride.
typedef struct tap_range {
    int64_t offset, begin, end;
} tap_range;

static tap_range find_range(const rondo__window *window, int64_t tap) {
    const int32_t last = window->rank - 1;
    const int64_t stride = window->stride[last];
    const int64_t offset = tap * window->dilation[last] - window->pad_begin[last];
    const int64_t room = window->output[last] - offset;
    const int64_t end = room <= 0 ? 0 : (room + stride - 1) / stride;
    return (tap_range){.offset = offset,
                       .begin = offset < 0 ? (-offset + stride - 1) / stride : 0,
                       .end = end < window->input[last] ? end : window->input[last]};
}

static inline void add_strided(const float *x, int64_t stride, float *y, int64_t begin,
                               int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        y[i * stride] += x[i];
    }
}

// y[position of each element of x] += x, for one tap of all filters: rows of x are x_row apart,
// those of y y_row.
static void scatter(const rondo__window *window, int64_t tap, int64_t filters, const float *x,
                    int64_t x_row, float *y, int64_t y_row) {
    const int64_t stride = window->stride[window->rank - 1];
    const tap_range r = find_range(window, tap);
    for (int64_t m = 0; m < filters; ++m, x += x_row, y += y_row) {
        if (stride == 1) {
            add_strided(x, 1, y + r.offset, r.begin, r.end);
        } else {
            add_strided(x, stride, y + r.offset, r.begin, r.end);
        }
    }
}

// The same for a tap and the next one, whose rows of x are `width` apart, with a stride of 2: what
// they add lies side by side.
static void scatter_two(const rondo__window *window, int64_t tap, int64_t filters, const float *x,
                        int64_t width, int64_t x_row, float *y, int64_t y_row) {
    const tap_range r = find_range(window, tap), next = find_range(window, tap + 1);
    const int64_t begin = r.begin > next.begin ? r.begin : next.begin;
    const int64_t end = r.end < next.end ? r.end : next.end;
    if (begin >= end) {
        scatter(window, tap, filters, x, x_row, y, y_row);
        scatter(window, tap + 1, filters, x + width, x_row, y, y_row);
        return;
    }
    for (int64_t m = 0; m < filters; ++m, x += x_row, y += y_row) {
        const float *a = x, *b = x + width;
        float *to = y + r.offset;
        add_strided(a, 2, to, r.begin, begin);
        add_strided(b, 2, to + 1, next.begin, begin);
        for (int64_t i = begin; i < end; ++i) {
            to[2 * i] += a[i];
            to[2 * i + 1] += b[i];
        }
        add_strided(a, 2, to, end, r.end);
        add_strided(b, 2, to + 1, end, next.end);
    }
}

// All taps of the last axis.
static void scatter_taps(const transposed_kernel *kernel, const float *products, float *y) {
    const rondo__window *window = &kernel->shape.window;
    const int32_t last = window->rank - 1;
    const int64_t taps = window->kernel[last], width = window->input[last];
    const int64_t y_row = kernel->shape.output_span;
    int64_t i = 0;
    for (; window->stride[last] == 2 && window->dilation[last] == 1 && i + 1 < taps; i += 2) {
        scatter_two(window, i, kernel->filters, products + i * width, width, taps * width, y,
                    y_row);
    }
    for (; i < taps; ++i) {
        scatter(window, i, kernel->filters, products + i * width, taps * width, y, y_row);
    }
}

// products [rows, width of x] = weights [rows, channels] x row of x.
static void multiply_row(const transposed_kernel *kernel, const float *weights, const float *x,
                         float *panel, float *products) {
    const rondo__window *window = &kernel->shape.window;
    const int64_t width = window->input[window->rank - 1];
    const int64_t rows = kernel->filters * window->kernel[window->rank - 1];
    const int64_t panel_width = kernel->simd->panel_columns;
    for (int64_t column = 0; column < width; column += panel_width) {
        const int64_t columns = width - column < panel_width ? width - column : panel_width;
        // Then rows are read where they lie: a narrow tile reads half a panel.
        const bool is_whole = columns == panel_width || 2 * columns == panel_width;
        for (int64_t c = 0; !is_whole && c < kernel->channels; ++c) {
            memcpy(panel + c * panel_width, x + c * kernel->shape.input_span + column,
                   (size_t)columns * sizeof(float));
        }
        const rondo__row_product product = {
            .simd = kernel->simd,
            .m = rows,
            .k = kernel->channels,
            .n = columns,
            .a = weights,
            .a_row = kernel->channels,
            .panels = is_whole ? x + column : panel,
            .b_row = is_whole ? kernel->shape.input_span : panel_width,
            .scale = 1.0f,
            .low = -INFINITY,
            .high = INFINITY,
            .y = products + column,
            .y_row = width,
        };
        rondo__multiply_rows(&product);
    }
}

// One row of each plane of a group: `y` is that row of its first plane.
static void run_row(const transposed_kernel *kernel, int64_t group, const int64_t *position,
                    const float *x, const float *bias, const float *weights, float *y,
                    float *scratch) {
    const rondo__window *window = &kernel->shape.window;
    const int32_t last = window->rank - 1;
    const int64_t width = window->input[last];
    const int64_t rows = kernel->filters * window->kernel[last];
    const int64_t panel_floats = kernel->channels * kernel->simd->panel_columns;
    float *products = scratch + panel_floats;
    for (int64_t m = 0; m < kernel->filters; ++m) {
        const float start = bias != NULL ? bias[group * kernel->filters + m] : 0.0f;
        float *plane = y + m * kernel->shape.output_span;
        for (int64_t i = 0; i < window->output[last]; ++i) {
            plane[i] = start;
        }
    }
    int64_t tap[RONDO__SPATIAL_MAX] = {0};
    weights += group * kernel->leading_taps * rows * kernel->channels;
    do {
        int64_t row;
        if (find_row(window, position, tap, &row)) {
            multiply_row(kernel, weights, x + row * width, scratch, products);
            scatter_taps(kernel, products, y);
        }
        weights += rows * kernel->channels;
    } while (rondo__index_advance(last, window->kernel, tap));
}

typedef struct transposed_run {
    const transposed_kernel *kernel;
    const float *x, *bias, *weights;
    float *y, *workspace;
} transposed_run;

static void run_parts(void *data, int64_t first_part, int64_t end_part) {
    const transposed_run *run = data;
    const transposed_kernel *kernel = run->kernel;
    const rondo__convolution *shape = &kernel->shape;
    const rondo__window *window = &shape->window;
    const int64_t count = shape->batch * shape->group * kernel->leading_outputs;
    const int64_t parts = kernel->part_count;
    for (int64_t part = first_part; part < end_part; ++part) {
        float *scratch = run->workspace + part * kernel->scratch_floats;
        memset(scratch, 0,
               (size_t)(kernel->channels * kernel->simd->panel_columns) * sizeof(float));
        for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
            const int64_t block = i / kernel->leading_outputs;  // group of an image
            int64_t position[RONDO__SPATIAL_MAX];
            int64_t rest = i % kernel->leading_outputs;
            const int64_t row = rest;
            for (int32_t d = window->rank - 2; d >= 0; --d) {
                position[d] = rest % window->output[d];
                rest /= window->output[d];
            }
            run_row(kernel, block % shape->group, position,
                    run->x + block * kernel->channels * shape->input_span, run->bias, run->weights,
                    run->y + block * kernel->filters * shape->output_span +
                        row * window->output[window->rank - 1],
                    scratch);
        }
    }
}

typedef struct weight_form {
    char kind[8];
    int64_t group, channels, filters, leading_taps, kernel_width;
} weight_form;

typedef struct turning {
    const weight_form *form;
    const float *from;
    float *to;
} turning;

// Rows of channels, from [group, channels, filters, leading taps, last kernel axis].
static void turn_rows(void *data, int64_t first, int64_t end) {
    const turning *t = data;
    const weight_form *form = t->form;
    const int64_t rows = form->filters * form->kernel_width;
    for (int64_t row = first; row < end; ++row) {
        const int64_t m = row % rows / form->kernel_width, last = row % form->kernel_width;
        const int64_t tap = row / rows % form->leading_taps, g = row / rows / form->leading_taps;
        float *to = t->to + row * form->channels;
        for (int64_t c = 0; c < form->channels; ++c) {
            const int64_t plane = (g * form->channels + c) * form->filters + m;
            to[c] = t->from[(plane * form->leading_taps + tap) * form->kernel_width + last];
        }
    }
}

static int64_t count_rows(const weight_form *form) {
    return form->group * form->leading_taps * form->filters * form->kernel_width;
}

static rondo_status fill_weights(const rondo__weight_want *want, void *bytes) {
    turning t = {want->form, want->constant->data, bytes};
    turn_rows(&t, 0, count_rows(t.form));
    return RONDO_STATUS_OK;
}

static weight_form get_form(const transposed_kernel *kernel) {
    const rondo__window *window = &kernel->shape.window;
    return (weight_form){.kind = "turned",
                         .group = kernel->shape.group,
                         .channels = kernel->channels,
                         .filters = kernel->filters,
                         .leading_taps = kernel->leading_taps,
                         .kernel_width = window->kernel[window->rank - 1]};
}

static rondo_status run_transposed(rondo__host_kernel *head, const void *const *inputs,
                                   void *const *outputs, void *workspace) {
    const transposed_kernel *kernel = (const transposed_kernel *)head;
    transposed_run run = {kernel,          inputs[0],  head->input_count > 2 ? inputs[2] : NULL,
                          kernel->weights, outputs[0], workspace};
    if (kernel->weights == NULL) {
        const weight_form form = get_form(kernel);
        turning t = {&form, inputs[1], run.workspace + kernel->weights_at};
        const int64_t rows = count_rows(&form);
        const double bytes = 4.0 * (double)(rows * form.channels) * sizeof(float);
        rondo__workers_loop(rows, rondo__host_get_grain(rows, bytes, 0.0), turn_rows, &t);
        run.weights = t.to;
    }
    rondo__workers_loop(kernel->part_count, 1, run_parts, &run);
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

static rondo_status init_kernel(const rondo__kernel_request *request, transposed_kernel *kernel) {
    const rondo__convolution *shape = &kernel->shape;
    const rondo__window *window = &shape->window;
    const int32_t last = window->rank - 1;
    kernel->simd = rondo__simd_get();
    kernel->channels = shape->channels / shape->group;
    kernel->filters = shape->filters / shape->group;
    kernel->leading_taps = shape->kernel_span / window->kernel[last];
    kernel->leading_outputs = shape->output_span / window->output[last];
    const int64_t rows = kernel->filters * window->kernel[last];
    const int64_t count = shape->batch * shape->group * kernel->leading_outputs;
    const double work = (double)shape->batch * (double)shape->input_span * (double)shape->channels *
                        (double)rows * (double)kernel->leading_taps;
    kernel->part_count = rondo__host_count_parts(count, 0.0, work);
    kernel->scratch_floats =
        (kernel->channels * kernel->simd->panel_columns + rows * window->input[last] + 15) / 16 *
        16;
    kernel->weights_at = (size_t)(kernel->part_count * kernel->scratch_floats);
    const int64_t weights = rondo_shape_get_count(&request->inputs[1].shape);
    const bool is_known = request->inputs[1].constant != NULL;
    kernel->head.base.workspace_bytes =
        (kernel->weights_at + (is_known ? 0 : (size_t)weights)) * sizeof(float);
    if (!is_known) {
        return RONDO_STATUS_OK;
    }
    const weight_form form = get_form(kernel);
    const rondo__weight_want want = {
        .constant = request->inputs[1].constant,
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)weights * sizeof(float),
        .fill = fill_weights,
    };
    void *turned = NULL;
    const rondo_status status = rondo__weight_list_add(request->weights, &want, &turned);
    kernel->weights = turned;
    return status;
}

rondo_status rondo__host_prepare_conv_transpose(const rondo__kernel_request *request,
                                                rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || x->rank < 3 || x->rank > 5 ||
        request->inputs[1].dtype != RONDO_DTYPE_F32) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__convolution shape;
    RETURN_IF_ERROR(
        rondo__convolution_init_transposed(request->op, x, &request->inputs[1].shape, &shape));
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(transposed_kernel), "simd", run_transposed, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    ((transposed_kernel *)head)->shape = shape;
    const rondo_status status = init_kernel(request, (transposed_kernel *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
