// kernel/host/convolution/host_convolution.c — Conv and rondo.Conv on f32.
//
//   y [positions, filters] = clamp(what the window sees [positions, taps * channels] x w' + b + z)
//
// With channels last, what a window sees of x are runs of numbers: one for each row of its taps,
// or, where part of the window lies in the padding, one for each tap. A tile of simd_tile.c takes
// lists of such runs, so no window is copied. Runs that are short (few channels: the first
// convolution of a network) or many would be all overhead; there x is copied once, with its padding
// around it, and a tile takes a window by its first number and the offsets of the others.
//
// Convolutions with one filter for each channel have an inner block of their own
// (simd_depthwise.c). x, z and y with channels first are turned around in the workspace.
// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/convolution/conv_windows.h"
#include "kernel/host/convolution/filter_panels.h"
#include "kernel/host/convolution/long_filters.h"
#include "kernel/host/convolution/winograd.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"
#include "kernel/host/rows/strided_copy.h"
#include "op/fused/fused.h"

enum {
    RUNS_MAX = 128,  // of a window
    ROWS_MAX = RONDO__VIEW_ROWS_MAX,
    SHORT_RUN = 32,  // numbers
    SHORT_K = 512,   // numbers of a window with short runs
};

typedef struct convolution_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__convolution shape;
    rondo__conv_windows windows;
    rondo__activation activation;
    float alpha, beta;
    float low, high;  // of a clamp that the activation is
    bool is_clamp;
    bool has_bias, has_addend;
    bool channels_last;
    bool reads_planes;  // x alone has channels first
    bool is_depthwise;
    bool is_plain;                  // positions of y are those of x: one tap, no stride, no padding
    int64_t channels, filters;      // of a group
    int64_t taps, k;                // k: numbers that a window sees
    int64_t run_count, run_length;  // of a window inside of x
    int32_t *offsets;               // of the k numbers of a window; NULL: by runs
    const float *weights;           // constant filters in panels; NULL: packed at each run
    int64_t panel_count;            // of a group
    rondo__cut cut;                 // of a group
    // Channels first: what is turned around, and where it lies in the workspace, in bytes.
    bool turns_x, turns_y;
    rondo__strided_copy turn_x, turn_y, turn_z;
    size_t x_at, y_at, weights_at;
    int64_t y_row;  // elements from one position of y to the next
    rondo__winograd winograd;
    const float *constant;  // filters as they are, where only winograd has its own form of them
} convolution_kernel;

typedef struct convolution_run {
    const convolution_kernel *kernel;
    const float *x, *bias, *z, *weights;
    float *y;
} convolution_run;

// ---- running ----------------------------------------------------------------------------------

// What a unit of work is: columns [first, end) of a group of filters, at positions [begin, begin +
// count).
typedef struct unit_of_work {
    int64_t group;
    int64_t begin, count;
    int64_t first, end;
} unit_of_work;

static unit_of_work find_unit(const convolution_kernel *kernel, int64_t number) {
    const rondo__cut *cut = &kernel->cut;
    const int64_t width = kernel->simd->panel_columns;
    const int64_t positions = kernel->shape.batch * kernel->shape.output_span;
    const int64_t unit = number % (cut->row_parts * cut->panel_parts);
    const int64_t row_part = unit % cut->row_parts, panel_part = unit / cut->row_parts;
    const int64_t height = kernel->is_depthwise ? ROWS_MAX : kernel->simd->narrow_tile_rows;
    const int64_t begin = rondo__host_row_part(positions, height, row_part, cut->row_parts);
    const int64_t last =
        width * rondo__host_part(kernel->panel_count, panel_part + 1, cut->panel_parts);
    return (unit_of_work){
        .group = number / (cut->row_parts * cut->panel_parts),
        .begin = begin,
        .count = rondo__host_row_part(positions, height, row_part + 1, cut->row_parts) - begin,
        .first = width * rondo__host_part(kernel->panel_count, panel_part, cut->panel_parts),
        .end = last < kernel->filters ? last : kernel->filters,
    };
}

// `count` columns of `rows` rows from y on.
static void activate(const convolution_kernel *kernel, float *y, int64_t rows, int64_t count) {
    const int64_t whole = kernel->shape.filters;
    if (kernel->is_clamp) {
        return;
    }
    if (count == whole && kernel->y_row == whole) {  // rows that are neighbours
        count *= rows;
        rows = 1;
    }
    for (int64_t r = 0; r < rows; ++r) {
        rondo__simd_activate(kernel->simd, kernel->activation, kernel->alpha, kernel->beta,
                             y + r * kernel->y_row, count);
    }
}

// What a tile reads at `rows` positions from `position` on.
static void list_starts(const convolution_run *run, int64_t position, int64_t channel,
                        const float **starts, rondo__tile *group) {
    const convolution_kernel *kernel = run->kernel;
    const rondo__conv_windows *windows = &kernel->windows;
    rondo__conv_view view;
    if (kernel->is_plain) {
        for (int32_t r = 0; r < group->rows; ++r) {
            starts[r] = run->x + (position + r) * kernel->shape.channels + channel;
        }
        return;
    }
    rondo__conv_windows_find(windows, run->x, position, group->rows, &view);
    if (windows->is_copied) {
        for (int32_t r = 0; r < group->rows; ++r) {
            starts[r] = view.at[r] + channel;
        }
        return;
    }
    if (!view.is_inside) {
        group->run_count = kernel->taps;
        group->run_length = kernel->channels;
    }
    const int64_t taps_of_run = kernel->taps / group->run_count;
    for (int64_t i = 0; i < group->run_count; ++i) {
        rondo__conv_view_list_tap(windows, &view, i * taps_of_run, channel,
                                  starts + i * group->starts_row);
    }
}

// Group i of `groups` of the unit's rows, with its columns [first, end).
static void run_rows(const convolution_run *run, const unit_of_work *unit, int64_t i,
                     int64_t groups, int64_t first, int64_t end) {
    const convolution_kernel *kernel = run->kernel;
    const int64_t width = kernel->simd->panel_columns, whole = kernel->shape.filters;
    const int64_t position = unit->begin + unit->count * i / groups;
    const int64_t column = unit->group * kernel->filters + first;
    const int64_t panel_floats = kernel->k * width;
    const float *starts[RUNS_MAX * ROWS_MAX];
    rondo__tile group = {
        .run_count = kernel->run_count,
        .run_length = kernel->run_length,
        .starts = starts,
        .starts_row = ROWS_MAX,
        .offsets = kernel->offsets,
        .b_row = width,
        .b_ahead = kernel->cut.streams ? rondo__panels_get_ahead(kernel->simd, panel_floats, i) : 0,
        .rows = (int32_t)(unit->begin + unit->count * (i + 1) / groups - position),
        .columns = (int32_t)(end - first),
        .is_split = kernel->shape.batch * kernel->shape.output_span <= 3,
        .scale = 1.0f,
        .low = kernel->low,
        .high = kernel->high,
        .bias = run->bias != NULL ? run->bias + column : NULL,
        .z = run->z != NULL ? run->z + position * whole + column : NULL,
        .z_row = whole,
        .y = run->y + position * kernel->y_row + column,
        .y_row = kernel->y_row,
    };
    list_starts(run, position, unit->group * kernel->channels, starts, &group);
    rondo__multiply_group(
        kernel->simd, &group,
        run->weights + (unit->group * kernel->panel_count + first / width) * panel_floats,
        panel_floats);
    activate(kernel, group.y, group.rows, group.columns);
}

// The same for one filter for each channel: all columns, and as many positions as have the same
// taps.
static int64_t run_depthwise_line(const convolution_run *run, int64_t position, int64_t most) {
    const convolution_kernel *kernel = run->kernel;
    const int64_t whole = kernel->shape.filters;
    rondo__tap taps[RUNS_MAX];
    rondo__conv_line line;
    rondo__conv_windows_find_line(&kernel->windows, run->x, position, most, &line, taps);
    const rondo__depthwise rows = {
        .channels = whole,
        .rows = line.count,
        .x = line.x,
        .x_step = line.x_step,
        .tap_count = line.tap_count,
        .taps = taps,
        .weights = run->weights,
        .is_clamped = kernel->is_clamp && kernel->activation != RONDO__ACTIVATION_NONE,
        .low = kernel->low,
        .high = kernel->high,
        .bias = run->bias,
        .z = run->z != NULL ? run->z + position * whole : NULL,
        .z_row = whole,
        .y = run->y + position * kernel->y_row,
        .y_row = kernel->y_row,
    };
    kernel->simd->convolve_depthwise(&rows);
    activate(kernel, rows.y, line.count, whole);
    return line.count;
}

static void run_depthwise_units(void *data, int64_t begin, int64_t end) {
    const convolution_run *run = data;
    for (int64_t number = begin; number < end; ++number) {
        const unit_of_work unit = find_unit(run->kernel, number);
        for (int64_t done = 0; done < unit.count;) {
            done += run_depthwise_line(run, unit.begin + done, unit.count - done);
        }
    }
}

static void run_units(void *data, int64_t begin, int64_t end) {
    const convolution_run *run = data;
    const convolution_kernel *kernel = run->kernel;
    const int64_t height = kernel->simd->narrow_tile_rows;
    for (int64_t number = begin; number < end; ++number) {
        const unit_of_work unit = find_unit(kernel, number);
        const int64_t groups = (unit.count + height - 1) / height;
        const int64_t width = kernel->simd->panel_columns;
        const int64_t held = rondo__panels_count_held(kernel->k * width);
        const int64_t columns = kernel->cut.streams ? held * width : unit.end - unit.first;
        for (int64_t first = unit.first; first < unit.end; first += columns) {
            const int64_t last = first + columns < unit.end ? first + columns : unit.end;
            for (int64_t i = 0; i < groups; ++i) {
                run_rows(run, &unit, i, groups, first, last);
            }
        }
    }
}

// Makes of the inputs what the units read.
static void prepare_inputs(const convolution_kernel *kernel, const void *const *inputs, char *work,
                           convolution_run *run) {
    float *x = (float *)(void *)(work + kernel->x_at);
    float *weights = (float *)(void *)(work + kernel->weights_at);
    if (kernel->weights == NULL) {
        rondo__filter_panels_fill(kernel->simd, &kernel->shape, kernel->is_depthwise, inputs[1],
                                  weights);
        run->weights = weights;
    }
    if (kernel->windows.is_copied) {
        rondo__conv_windows_copy(&kernel->windows, inputs[0],
                                 kernel->channels_last && !kernel->reads_planes, x);
        run->x = x;
    } else if (kernel->turns_x) {
        rondo__strided_copy_run(&kernel->turn_x, inputs[0], x);
        run->x = x;
    }
    if (kernel->turns_y && run->z != NULL) {
        rondo__strided_copy_run(&kernel->turn_z, inputs[3], run->y);
        run->z = run->y;
    }
}

// False: to be done in order.
static bool run_winograd(const convolution_kernel *kernel, const convolution_run *run, void *work) {
    const rondo__winograd_call call = {
        .x = run->x,
        .bias = run->bias,
        .z = run->z,
        .zeros = kernel->windows.zeros,
        .low = kernel->low,
        .high = kernel->high,
        .activation = kernel->is_clamp ? RONDO__ACTIVATION_NONE : kernel->activation,
        .alpha = kernel->alpha,
        .beta = kernel->beta,
        .y = run->y,
        .y_row = kernel->y_row,
        .work = work,
    };
    return rondo__winograd_run(&kernel->winograd, &call);
}

static rondo_status run_convolution(rondo__host_kernel *head, const void *const *inputs,
                                    void *const *outputs, void *workspace) {
    const convolution_kernel *kernel = (const convolution_kernel *)head;
    char *work = workspace;
    convolution_run run = {
        .kernel = kernel,
        .x = inputs[0],
        .bias = kernel->has_bias ? inputs[2] : NULL,
        .z = kernel->has_addend ? inputs[3] : NULL,
        .weights = kernel->weights,
        .y = kernel->turns_y ? (float *)(void *)(work + kernel->y_at) : outputs[0],
    };
    if (kernel->winograd.m > 0 && !kernel->reads_planes && run_winograd(kernel, &run, workspace)) {
        return RONDO_STATUS_OK;
    }
    prepare_inputs(kernel, inputs, work, &run);
    const int64_t groups = kernel->is_depthwise ? 1 : kernel->shape.group;
    rondo__workers_loop(groups * kernel->cut.row_parts * kernel->cut.panel_parts, 1,
                        kernel->is_depthwise ? run_depthwise_units : run_units, &run);
    if (kernel->turns_y) {
        rondo__strided_copy_run(&kernel->turn_y, run.y, outputs[0]);
    }
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

static void deinit_convolution(rondo__host_kernel *head) {
    convolution_kernel *kernel = (convolution_kernel *)head;
    rondo__conv_windows_deinit(&kernel->windows);
    rondo__free(kernel->offsets);
}

// The numbers of a window of the padded copy, from its first.
static rondo_status init_offsets(convolution_kernel *kernel) {
    const rondo__conv_windows *windows = &kernel->windows;
    if (windows->tap_offset[kernel->taps - 1] + kernel->channels > INT_MAX) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    kernel->offsets = rondo__calloc((size_t)kernel->k, sizeof *kernel->offsets);
    for (int64_t i = 0; kernel->offsets != NULL && i < kernel->k; ++i) {
        kernel->offsets[i] =
            (int32_t)(windows->tap_offset[i / kernel->channels] + i % kernel->channels);
    }
    kernel->run_count = 1;
    kernel->run_length = kernel->k;
    return kernel->offsets != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

// How the windows are read.
static rondo_status init_windows(convolution_kernel *kernel) {
    const rondo__window *window = &kernel->shape.window;
    const int32_t last = window->rank - 1;
    kernel->is_plain = !kernel->is_depthwise;
    for (int32_t i = 0; i < window->rank; ++i) {
        kernel->is_plain = kernel->is_plain && window->kernel[i] == 1 && window->stride[i] == 1 &&
                           window->pad_begin[i] == 0 && window->pad_end[i] == 0;
    }
    const bool are_joined = kernel->shape.group == 1 && window->dilation[last] == 1;
    kernel->run_count = are_joined ? kernel->taps / window->kernel[last] : kernel->taps;
    kernel->run_length = kernel->k / kernel->run_count;
    const bool is_short = kernel->run_length < SHORT_RUN && kernel->k <= SHORT_K;
    const bool copies =
        kernel->taps > 1 && !kernel->is_depthwise && (is_short || kernel->taps > RUNS_MAX);
    RETURN_IF_ERROR(rondo__conv_windows_init(&kernel->windows, &kernel->shape, copies));
    return copies && kernel->run_count > 1 ? init_offsets(kernel) : RONDO_STATUS_OK;
}

// From [images, channels, span] to [images, span, channels], or back.
static void init_turn(rondo__strided_copy *copy, int64_t images, int64_t channels, int64_t span,
                      bool is_back) {
    const int64_t last = is_back ? span : channels, middle = is_back ? channels : span;
    const int64_t extent[3] = {images, middle, last};
    const int64_t from[3] = {channels * span, 1, middle};
    const int64_t to[3] = {channels * span, last, 1};
    rondo__strided_copy_init(copy, sizeof(float), 3, extent, from, 0, to, 0);
}

static size_t take_room(size_t *bytes, size_t wanted) {
    const size_t at = *bytes;
    *bytes += (wanted + 63) / 64 * 64;
    return at;
}

// Places in the workspace of what is copied, turned around or packed at each run.
static void lay_out(convolution_kernel *kernel) {
    const rondo__convolution *shape = &kernel->shape;
    const size_t x_bytes =
        (size_t)(shape->batch * shape->channels * shape->input_span) * sizeof(float);
    const size_t y_bytes =
        (size_t)(shape->batch * shape->filters * shape->output_span) * sizeof(float);
    const bool channels_first = !kernel->channels_last;
    size_t bytes = 0;
    kernel->turns_x = channels_first && !kernel->windows.is_copied && shape->channels > 1 &&
                      shape->input_span > 1;
    kernel->turns_y = channels_first && shape->filters > 1 && shape->output_span > 1;
    init_turn(&kernel->turn_x, shape->batch, shape->channels, shape->input_span, false);
    init_turn(&kernel->turn_y, shape->batch, shape->filters, shape->output_span, true);
    init_turn(&kernel->turn_z, shape->batch, shape->filters, shape->output_span, false);
    if (kernel->windows.is_copied) {
        kernel->x_at = take_room(&bytes, rondo__conv_windows_get_copy_bytes(&kernel->windows));
    } else if (kernel->turns_x) {
        kernel->x_at = take_room(&bytes, x_bytes);
    }
    if (kernel->turns_y) {
        kernel->y_at = take_room(&bytes, y_bytes);
    }
    if (kernel->weights == NULL) {
        kernel->weights_at = take_room(
            &bytes, rondo__filter_panels_get_bytes(kernel->simd, shape, kernel->is_depthwise));
    }
    const size_t other = kernel->winograd.m > 0 ? rondo__winograd_get_bytes(&kernel->winograd) : 0;
    kernel->head.base.workspace_bytes = bytes > other ? bytes : other;
}

static void cut_work(convolution_kernel *kernel) {
    const rondo__convolution *shape = &kernel->shape;
    const double positions = (double)shape->batch * (double)shape->output_span;
    const double weights = (double)kernel->k * (double)kernel->filters;
    // All groups together are worth the threads; each gets its share of them.
    const double groups = (double)shape->group;
    const double x_bytes =
        (double)shape->batch * (double)shape->input_span * (double)kernel->channels * sizeof(float);
    const double y_bytes = positions * (double)kernel->filters * sizeof(float);
    if (kernel->is_depthwise) {
        kernel->cut = rondo__host_cut(positions * weights * groups, (int64_t)positions, ROWS_MAX,
                                      (x_bytes + y_bytes) * groups, 1, 0.0, 1.0);
        kernel->panel_count = 1;
        return;
    }
    kernel->cut =
        rondo__host_cut(positions * weights * groups, (int64_t)positions,
                        kernel->simd->narrow_tile_rows, x_bytes * groups, kernel->panel_count,
                        weights * sizeof(float), (double)rondo__panels_get_cache_bytes());
    kernel->cut.row_parts =
        shape->group < kernel->cut.row_parts ? kernel->cut.row_parts / shape->group : 1;
}

static void read_planes(rondo__kernel *base) {
    ((convolution_kernel *)base)->reads_planes = true;
}

static void set_output_pitch(rondo__kernel *base, int64_t elements) {
    ((convolution_kernel *)base)->y_row = elements;
}

// The filters in the forms that runs read. With Winograd's way there is no other: the few runs that
// meet what is not finite pack them.
static rondo_status init_weights(const rondo__kernel_request *request, convolution_kernel *kernel) {
    const rondo_tensor *constant = request->inputs[1].constant;
    if (constant == NULL) {
        return RONDO_STATUS_OK;
    }
    if (kernel->channels_last) {
        rondo__winograd_plan(kernel->simd, &kernel->shape, &kernel->winograd);
    }
    if (kernel->winograd.m == 0) {
        return rondo__filter_panels_keep(request->weights, kernel->simd, &kernel->shape,
                                         kernel->is_depthwise, constant, &kernel->weights);
    }
    kernel->constant = constant->data;
    return rondo__winograd_keep(&kernel->winograd, request->weights, constant);
}

static rondo_status init_kernel(const rondo__kernel_request *request, convolution_kernel *kernel) {
    if (rondo__host_has_input(request, 4)) {  // a second convolution is for GPUs
        return RONDO_STATUS_UNSUPPORTED;
    }
    const rondo__op *op = request->op;
    const rondo__convolution *shape = &kernel->shape;
    kernel->simd = rondo__simd_get();
    kernel->activation =
        (rondo__activation)rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    kernel->alpha = rondo__op_get_float(op, "alpha", 0.0f);
    kernel->beta = rondo__op_get_float(op, "beta", 0.0f);
    kernel->is_clamp = rondo__simd_get_clamp(kernel->activation, kernel->alpha, kernel->beta,
                                             &kernel->low, &kernel->high);
    kernel->has_bias = rondo__host_has_input(request, 2);
    kernel->has_addend = rondo__host_has_input(request, 3);
    kernel->channels = shape->channels / shape->group;
    kernel->filters = shape->filters / shape->group;
    kernel->taps = shape->kernel_span;
    kernel->k = kernel->taps * kernel->channels;
    kernel->is_depthwise = shape->group > 1 && kernel->channels == 1 && kernel->filters == 1 &&
                           kernel->taps <= RUNS_MAX;
    kernel->panel_count =
        (kernel->filters + kernel->simd->panel_columns - 1) / kernel->simd->panel_columns;
    RETURN_IF_ERROR(init_windows(kernel));
    RETURN_IF_ERROR(init_weights(request, kernel));
    cut_work(kernel);
    lay_out(kernel);
    kernel->y_row = shape->filters;
    if (kernel->channels_last) {
        static const rondo__kernel_moves rows = {.set_output_pitch = set_output_pitch};
        static const rondo__kernel_moves rows_and_planes = {.set_output_pitch = set_output_pitch,
                                                            .read_planes = read_planes};
        kernel->head.base.moves = kernel->windows.is_copied ? &rows_and_planes : &rows;
    }
    // A tile reads its part of z before it writes y.
    if (kernel->has_addend && !kernel->turns_y && kernel->winograd.m == 0) {
        kernel->head.base.in_place_inputs = UINT64_C(1) << 3;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_convolution(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel) {
    const bool channels_last = rondo__op_get_int(request->op, "channels_last", 0) != 0;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 ||
        rondo__op_get_int(request->op, "filters_last", 0) != 0) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__convolution shape;
    RETURN_IF_ERROR(rondo__convolution_init(request->op, &request->inputs[0].shape,
                                            &request->inputs[1].shape, channels_last, &shape));
    const rondo_status is_long = rondo__host_prepare_long_filters(request, &shape, out_kernel);
    if (is_long != RONDO_STATUS_UNSUPPORTED) {
        return is_long;
    }
    rondo__host_kernel *head = rondo__host_kernel_create(
        request, sizeof(convolution_kernel), "simd", run_convolution, deinit_convolution);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    convolution_kernel *kernel = (convolution_kernel *)head;
    kernel->shape = shape;
    kernel->channels_last = channels_last;
    const rondo_status status = init_kernel(request, kernel);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
