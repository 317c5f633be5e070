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
#include "kernel/host/convolution/byte_convolution.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_threads.h"
#include "op/image/convolution.h"
#include "op/math/matrix.h"

enum {
    CHUNK_BYTES = 256 * 1024,  // of panels: they stay in the cache until they are used
    SUMS_BYTES = 512 * 1024,   // of a chunk: they stay there until they are steps
};

// ---- running ----------------------------------------------------------------------------------

// Where a run of positions begins in a padded channel, and in the panel.
typedef struct place_run {
    int64_t from;
    int32_t to;
} place_run;

static int32_t find_runs(const rondo__byte_convolution *kernel, int64_t first, int64_t count,
                         place_run *out_runs) {
    const int64_t row_step = kernel->stride[1] * rondo__byte_get_row_bytes(kernel);
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

// Packs the panel of positions [first, first + count), seen from one group's channels.
static void pack_places(const rondo__byte_convolution *kernel, const uint8_t *padded, int64_t first,
                        int64_t count, int8_t *panel, int32_t *sums) {
    const rondo__byte_simd *simd = kernel->simd;
    const int64_t columns = simd->panel_columns, group = simd->group;
    uint8_t rows[RONDO__BYTE_GROUP_MAX * RONDO__BYTE_COLUMNS_MAX + RONDO__BYTE_COPY_BYTES];
    place_run runs[RONDO__BYTE_COLUMNS_MAX];
    const int32_t run_count = find_runs(kernel, first, count, runs);
    int64_t tap[RONDO__BYTE_AXES] = {0};
    if (sums != NULL) {
        memset(sums, 0, (size_t)columns * sizeof *sums);
    }
    memset(rows, 0, sizeof rows);
    for (int64_t k = 0; k < kernel->k;) {
        int64_t g = 0;
        for (; g < group && k < kernel->k; ++g, ++k) {
            const uint8_t *from = padded + rondo__byte_find_tap(kernel, tap);
            for (int32_t i = 0; i < run_count; ++i) {
                memcpy(rows + g * columns + runs[i].to, from + runs[i].from,
                       RONDO__BYTE_COPY_BYTES);
            }
            padded += rondo__byte_go_to_next_tap(kernel, tap) ? 0 : kernel->channel_bytes;
        }
        for (; g < group; ++g) {  // what is packed as 0
            memset(rows + g * columns, kernel->is_x_signed ? 0 : 0x80, (size_t)columns);
        }
        simd->pack_block(rows, kernel->is_x_signed, panel, sums);
        panel += group * columns;
    }
}

// The same where each filter has one tap, from x itself, of which nothing behind its end is read.
static void pack_points(const rondo__byte_convolution *kernel, const uint8_t *x, int64_t first,
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

// Packs panels of the chunk of positions from `first` on.
typedef struct packing {
    const rondo__byte_convolution *kernel;
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
    const rondo__byte_convolution *kernel;
    const void *const *inputs;
    int64_t group;
    const int32_t *sums;  // [filters, count]
    int64_t count;
    uint8_t *y;  // of the first of these positions
} requantizing;

static void requantize_rows(void *data, int64_t first, int64_t end) {
    const requantizing *job = data;
    for (int64_t r = first; r < end; ++r) {
        rondo__byte_requantize(job->kernel, job->inputs, job->group * job->kernel->filters + r,
                               job->sums + r * job->count, job->count,
                               job->y + r * rondo__byte_count_places(job->kernel));
    }
}

// y [filters, positions] of one group and image; `sums` is work.
static void run_group(const rondo__byte_convolution *kernel, const void *const *inputs,
                      const rondo__byte_rows *filters, int64_t group, const uint8_t *padded,
                      const int32_t *zeros, char *chunk, int32_t *sums, void *y) {
    const int64_t places = rondo__byte_count_places(kernel);
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

// ---- filters of several channels --------------------------------------------------------------

// The filters with this run's zero points.
static rondo__byte_rows get_filters(const rondo__byte_convolution *kernel,
                                    const void *const *inputs, void *work) {
    const rondo__byte_simd *simd = kernel->simd;
    const int64_t count = kernel->group * kernel->filters;
    const uint8_t *zeros = rondo__byte_get_input(inputs, kernel->w_zero);
    if (kernel->prepared == NULL) {
        return rondo__byte_rows_prepare(simd, inputs[kernel->w], kernel->is_w_signed, kernel->k,
                                        count, zeros, kernel->w_zero_count, true, work);
    }
    return rondo__byte_rows_use(&kernel->form, kernel->prepared, zeros, kernel->w_zero_count, work);
}

static rondo_status run_convolution(rondo__host_kernel *head, const void *const *inputs,
                                    void *const *outputs, void *workspace) {
    const rondo__byte_convolution *kernel = (const rondo__byte_convolution *)head;
    if (kernel->is_depthwise) {
        return rondo__byte_run_planes(head, inputs, outputs, workspace);
    }
    char *work = workspace;
    uint8_t *padded = (uint8_t *)work + kernel->padded_at;
    const rondo__byte_rows filters = get_filters(kernel, inputs, work);
    const uint8_t *x_zero = rondo__byte_get_input(inputs, kernel->x_zero);
    const int32_t zero = x_zero != NULL ? rondo__byte_get(x_zero, kernel->is_x_signed, 0) : 0;
    const int32_t zeros = zero - (kernel->is_x_signed ? 0 : 128);
    const int64_t image =
        kernel->group * kernel->channels * kernel->depth * kernel->height * kernel->width;
    const int64_t plane = kernel->filters * rondo__byte_count_places(kernel);
    const size_t y_bytes = kernel->is_requantized ? sizeof(uint8_t) : sizeof(int32_t);
    for (int64_t i = 0; i < kernel->batch * kernel->group; ++i) {
        const int64_t group = i % kernel->group;
        const uint8_t *x = (const uint8_t *)inputs[0] + i / kernel->group * image;
        if (group == 0 && !kernel->is_pointwise) {
            rondo__byte_pad_image(kernel, x, (uint8_t)zero, padded);
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
               : RONDO__BYTE_NO_INPUT;
}

static int64_t count_values(const rondo__kernel_request *request, uint32_t input) {
    return input == RONDO__BYTE_NO_INPUT ? 1 : rondo_shape_get_count(&request->inputs[input].shape);
}

// False where scales are no f32.
static bool read_inputs(const rondo__kernel_request *request, rondo__byte_convolution *kernel) {
    kernel->is_requantized = request->op->def->id == RONDO__OP_QLinearConv;
    kernel->w = kernel->is_requantized ? 3 : 1;
    kernel->x_zero = find_input(request, 2);
    kernel->w_zero = find_input(request, kernel->is_requantized ? 5 : 3);
    kernel->bias = RONDO__BYTE_NO_INPUT;
    kernel->w_zero_count = count_values(request, kernel->w_zero);
    kernel->is_x_signed = request->inputs[0].dtype == RONDO_DTYPE_I8;
    kernel->is_w_signed = request->inputs[kernel->w].dtype == RONDO_DTYPE_I8;
    if (!kernel->is_requantized) {
        return true;
    }
    kernel->bias = find_input(request, RONDO__QLINEAR_BIAS);
    kernel->w_scale_count = count_values(request, RONDO__QLINEAR_W_SCALE);
    kernel->is_y_signed = request->inputs[RONDO__QLINEAR_Y_ZERO].dtype == RONDO_DTYPE_I8;
    return request->inputs[RONDO__QLINEAR_X_SCALE].dtype == RONDO_DTYPE_F32 &&
           request->inputs[RONDO__QLINEAR_W_SCALE].dtype == RONDO_DTYPE_F32 &&
           request->inputs[RONDO__QLINEAR_Y_SCALE].dtype == RONDO_DTYPE_F32 &&
           (kernel->bias == RONDO__BYTE_NO_INPUT ||
            request->inputs[kernel->bias].dtype == RONDO_DTYPE_I32);
}

// Fewer axes than three count as the last of them. A filter of one tap sees all positions as one
// row.
static void read_extents(const rondo__convolution *given, rondo__byte_convolution *kernel) {
    const rondo__window *window = &given->window;
    kernel->batch = given->batch;
    kernel->group = given->group;
    kernel->channels = given->channels / given->group;
    kernel->filters = given->filters / given->group;
    int64_t input[RONDO__BYTE_AXES] = {1, 1, 1}, output[RONDO__BYTE_AXES] = {1, 1, 1};
    bool is_pointwise = true;  // and nothing is left out
    for (int32_t i = 0; i < RONDO__BYTE_AXES; ++i) {
        const int32_t axis = i - (RONDO__BYTE_AXES - window->rank);
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
static bool plan_copy(rondo__byte_convolution *kernel) {
    enum { GROWTH = 16 };
    const int64_t outs[RONDO__BYTE_AXES] = {kernel->out_depth, kernel->out_height,
                                            kernel->out_width};
    int64_t seen[RONDO__BYTE_AXES];
    for (int i = 0; i < RONDO__BYTE_AXES; ++i) {
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
    if (!rondo__mul_i64(kernel->padded_height, rondo__byte_get_row_bytes(kernel),
                        &kernel->plane_bytes) ||
        !rondo__mul_i64(kernel->padded_depth, kernel->plane_bytes, &kernel->channel_bytes)) {
        return false;
    }
    const int64_t used =
        kernel->depth * kernel->height * kernel->width + rondo__byte_count_places(kernel);
    return kernel->channel_bytes / GROWTH <= used + 4096;
}

// Chunks whose panels and sums stay in the cache, and the work of a run.
static void plan_chunks(rondo__byte_convolution *kernel) {
    const rondo__byte_simd *simd = kernel->simd;
    const int64_t places = rondo__byte_count_places(kernel);
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
        kernel->chunk_places = rondo__round_up(places, columns);
    }
    const rondo__byte_form form =
        rondo__byte_form_make(simd, kernel->k, kernel->chunk_places, true, false);
    const size_t sizes[] = {
        rondo__byte_rows_get_bytes(simd, kernel->k, kernel->group * kernel->filters),
        kernel->is_pointwise ? 0
                             : (size_t)(kernel->group * kernel->channels * kernel->channel_bytes) +
                                   RONDO__BYTE_COPY_BYTES,
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
}

static bool plan_work(rondo__byte_convolution *kernel) {
    if (!plan_copy(kernel)) {
        return false;
    }
    kernel->is_depthwise = kernel->channels == 1 && kernel->k <= RONDO__BYTE_TAPS_MAX;
    if (kernel->is_depthwise) {
        kernel->head.base.workspace_bytes =
            (size_t)(kernel->group * kernel->channel_bytes) + RONDO__BYTE_COPY_BYTES;
    } else {
        plan_chunks(kernel);
    }
    return true;
}

static rondo_status init_kernel(const rondo__kernel_request *request,
                                rondo__byte_convolution *kernel) {
    rondo__convolution given;
    if (!read_inputs(request, kernel)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__convolution_init(request->op, &request->inputs[0].shape,
                                            &request->inputs[kernel->w].shape, false, &given));
    if (given.window.rank > RONDO__BYTE_AXES) {
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
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(rondo__byte_convolution),
                                                         "simd", run_convolution, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = init_kernel(request, (rondo__byte_convolution *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
