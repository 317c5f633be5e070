// kernel/cuda/convolution/cuda_conv_tma.c — see cuda_conv_tma.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/convolution/cuda_conv_tma.h"
#include "base/checked.h"
#include "device/device.h"

#include "cu_sources.h"

enum {
    STEP_MOST = 64,    // elements of the inner extent in a step: rows of 128 bytes
    STAGES_MOST = 24,  // the kernel's barriers
    WARP = 32,
    BARRIER_BYTES = 8,
    HOPPER = 9,        // compute capability 9.0
    FEW_BLOCKS = 264,  // two for each multiprocessor
};

bool rondo__cuda_is_point(const rondo__window *window) {
    for (int d = 0; d < 3; d++) {
        if (window->kernel[d] != 1 || window->stride[d] != 1 || window->before[d] != 0 ||
            window->after[d] != 0) {
            return false;
        }
    }
    return true;
}

// Where pixels have few channels, the taps of a window along x are one pixel of more of them, if
// the image has no border there: its neighbours overlap it, which a map allows. Steps are longer
// so.
static rondo__window join_taps(const rondo__window *window) {
    rondo__window joined = *window;
    if (window->channels_in < STEP_MOST && window->kernel[2] > 1 && window->dilation[2] == 1 &&
        window->before[2] == 0 && window->after[2] == 0) {
        joined.channels_in *= window->kernel[2];
        joined.in[2] -= window->kernel[2] - 1;
        joined.kernel[2] = 1;
    }
    return joined;
}

// Elements of the inner extent in a step.
static int64_t get_step(const rondo__cuda_convolution *convolution) {
    const rondo__window window = join_taps(&convolution->window);
    int64_t step = STEP_MOST;
    if (!rondo__cuda_is_point(&convolution->window)) {
        while (window.channels_in % step != 0) {
            step /= 2;
        }
    }
    return step;
}

// How far a window that begins at the image's last pixel would reach behind it.
static int64_t get_behind(const rondo__window *window, int d) {
    return window->after[d] - (window->kernel[d] - 1) * window->dilation[d];
}

// What a map of images can say.
static bool has_map(const rondo__window *window) {
    for (int d = 1; d < 3; d++) {
        const int64_t behind = get_behind(window, d), most = RONDO__TENSOR_MAP_CORNER_MAX;
        const int64_t places = window->in[d] + behind + window->before[d];
        if (window->stride[d] > RONDO__TENSOR_MAP_STEP_MAX || window->before[d] > most ||
            behind > most || behind < -most ||
            (window->kernel[d] - 1) * window->dilation[d] > most ||
            (places + window->stride[d] - 1) / window->stride[d] != window->out[d]) {
            return false;
        }
    }
    return true;
}

// A step has channels of one of both: those of single pixels are filled up.
int64_t rondo__cuda_align_second(const rondo__window *window) {
    const int64_t depth = window->kernel[1] * window->kernel[2] * window->channels_in;
    return rondo__cuda_is_point(window) ? rondo__divide_up(depth, STEP_MOST) * STEP_MOST : depth;
}

static bool has_second_map(const rondo__cuda_convolution *convolution) {
    const rondo__window *second = &convolution->second;
    return second->channels_in % 8 == 0 && convolution->groups == 1 &&
           convolution->second_at == rondo__cuda_align_second(&convolution->window) &&
           (rondo__cuda_is_point(second) || has_map(second));
}

// Whether the device runs the kernel at all.
bool rondo__cuda_has_tma(rondo_device *device) {
    rondo_device_info info = {.struct_size = sizeof info};
    return rondo__cuda_can_map_tensors(device) &&
           rondo__device_get_facts(device, &info) == RONDO_STATUS_OK && info.arch_major == HOPPER &&
           info.arch_minor == 0;
}

bool rondo__cuda_suits_tma(const rondo__cuda_kernel *kernel,
                           const rondo__cuda_convolution *convolution) {
    const rondo__window *window = &convolution->window;
    const rondo__window joined = join_taps(window);
    return rondo__cuda_has_tma(kernel->device) &&
           (convolution->has_second
                ? has_second_map(convolution)
                : convolution->weight_pitch == convolution->taps * window->channels_in) &&
           convolution->weight_pitch % 8 == 0 &&
           (rondo__cuda_is_point(window) || (joined.channels_in % 16 == 0 && has_map(&joined)));
}

static int64_t get_stages_asked(const rondo__cuda_convolution *convolution,
                                const rondo__cuda_tma_tile *tile) {
    const int64_t stages = tile->stages * (STEP_MOST / get_step(convolution));
    return stages < STAGES_MOST ? stages : STAGES_MOST;
}

int64_t rondo__cuda_get_tma_stages(const rondo__cuda_convolution *convolution,
                                   const rondo__cuda_tma_tile *tile) {
    const int64_t step = get_step(convolution);
    const int64_t steps =
        rondo__divide_up(rondo__divide_up(convolution->weight_pitch, step), tile->split);
    const int64_t most = get_stages_asked(convolution, tile);
    return steps < most ? steps : most;
}

// A block that gives up the memory of unused buffers lets more blocks run beside it, which is good
// if there are many blocks. If there are few, they start while blocks of the launch before still
// run, and would pile up on the multiprocessors that are free first: they keep the memory, which
// spreads them.
static int64_t get_stages_held(const rondo__cuda_convolution *convolution,
                               const rondo__cuda_tma_tile *tile) {
    const int64_t blocks = rondo__divide_up(convolution->pixels, tile->m) *
                           rondo__divide_up(convolution->window.channels_out, tile->n) *
                           tile->split;
    return blocks <= FEW_BLOCKS ? get_stages_asked(convolution, tile)
                                : rondo__cuda_get_tma_stages(convolution, tile);
}

int64_t rondo__cuda_get_tma_bytes(const rondo__cuda_convolution *convolution,
                                  const rondo__cuda_tma_tile *tile) {
    const int64_t stages = get_stages_held(convolution, tile);
    const int64_t row_bytes = get_step(convolution) * 2;
    const int64_t buffers = stages * (tile->m + tile->n) * row_bytes;
    const int64_t sums = tile->m * (tile->n + 4) * 4;
    const int64_t barriers = (2 * stages + 1) * BARRIER_BYTES;
    const int64_t first = buffers > sums ? buffers : sums;  // sums are sent from the buffers
    return first + (tile->split > 1 ? sums : 0) + barriers;
}

static rondo__tensor_form describe_matrix(int64_t rows, int64_t columns, int64_t box_rows,
                                          int64_t box_columns) {
    return (rondo__tensor_form){
        .extent = {(uint64_t)columns, (uint64_t)rows},
        .pitch = {(uint64_t)columns},
        .box_columns = (uint32_t)box_columns,
        .box_rows = (uint32_t)box_rows,
    };
}

// The images as they lie, seen through a window whose taps may be joined.
static rondo__tensor_form describe_images(const rondo__window *images, const rondo__window *window,
                                          int64_t box_rows, int64_t box_columns) {
    const uint64_t pixel = (uint64_t)images->channels_in, row = pixel * (uint64_t)images->in[2];
    rondo__tensor_form form = {
        .is_image = true,
        .extent = {(uint64_t)window->channels_in, (uint64_t)window->in[2], (uint64_t)window->in[1],
                   (uint64_t)window->batch},
        .pitch = {pixel, row, row * (uint64_t)images->in[1]},
        .box_columns = (uint32_t)box_columns,
        .box_rows = (uint32_t)box_rows,
    };
    for (int i = 0; i < 2; i++) {
        const int d = 2 - i;  // x, then y
        form.step[i] = (uint32_t)window->stride[d];
        form.before[i] = (int32_t)window->before[d];
        form.behind[i] = (int32_t)get_behind(window, d);
    }
    return form;
}

rondo__cuda_ending rondo__cuda_get_ending(const rondo__cuda_convolution *convolution) {
    return (rondo__cuda_ending){.epilogue = &convolution->epilogue,
                                .norm = convolution->norm,
                                .y = convolution->y,
                                .pixels = convolution->pixels,
                                .filters = convolution->window.channels_out,
                                .depth = convolution->weight_pitch};
}

void rondo__cuda_add_tma(rondo__cuda_kernel *kernel, const rondo__cuda_convolution *convolution,
                         const rondo__cuda_tma_tile *tile) {
    rondo__defines defines = {0};
    const rondo__window *window = &convolution->window;
    const rondo__window joined = join_taps(window);
    const rondo__window *second = &convolution->second;
    const bool is_point = rondo__cuda_is_point(window);
    const int64_t step_elements = get_step(convolution);
    const rondo__tensor_form weights =
        describe_matrix(window->channels_out, convolution->weight_pitch, tile->n, step_elements);
    const bool is_turned = convolution->x_depth > 0;
    const rondo__tensor_form pixels =
        is_turned
            ? describe_matrix(convolution->x_depth, convolution->pixels, step_elements, STEP_MOST)
        : is_point
            ? describe_matrix(convolution->pixels, window->channels_in, tile->m, step_elements)
            : describe_images(window, &joined, tile->m, step_elements);

    const rondo__cuda_ending ending = rondo__cuda_get_ending(convolution);
    rondo__define_option(&defines, "--gpu-architecture=sm_90a");
    rondo__define_int(&defines, "TILE_M", tile->m);
    rondo__define_int(&defines, "TILE_N", tile->n);
    rondo__define_int(&defines, "TILE_K", step_elements);
    rondo__define_int(&defines, "STAGES", rondo__cuda_get_tma_stages(convolution, tile));
    rondo__define_int(&defines, "SPLIT", tile->split);
    rondo__define_int(&defines, "POINT", is_point);
    if (is_turned) {
        rondo__define_int(&defines, "A_IS_TURNED", 1);
    }
    if (convolution->has_second) {
        rondo__define_int(&defines, "SECOND", rondo__cuda_is_point(second) ? 2 : 1);
    }
    rondo__define_int(&defines, "EAGER_WEIGHTS", rondo__address_is_fixed(&convolution->w));
    rondo__define_int(&defines, "ACTIVATION", convolution->epilogue.activation);
    rondo__define_type(&defines, "Y", convolution->y_dtype);
    rondo__define_ending(&defines, &ending);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_conv_tma, &defines, "conv_tma",
                                               tile->split, (uint32_t)(2 * tile->m + WARP));
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)((window->channels_out + tile->n - 1) / tile->n);
        step->launch.grid[2] = (uint32_t)((convolution->pixels + tile->m - 1) / tile->m);
        step->launch.shared_bytes = (uint32_t)rondo__cuda_get_tma_bytes(convolution, tile);
    }
    rondo__step_map(step, convolution->x, &pixels);
    rondo__step_map(step, convolution->w, &weights);
    if (convolution->has_second) {
        const rondo__tensor_form others =
            rondo__cuda_is_point(second)
                ? describe_matrix(convolution->pixels, second->channels_in, tile->m, step_elements)
                : describe_images(second, second, tile->m, step_elements);
        rondo__step_map(step, convolution->second_x, &others);
    }
    rondo__step_ending(step, &ending);
    rondo__step_int(step, joined.channels_in);
    rondo__step_int(step, window->out[1]);
    rondo__step_int(step, window->out[2]);
    rondo__step_int(step, joined.kernel[2]);
    rondo__step_int(step, window->stride[1]);
    rondo__step_int(step, window->stride[2]);
    rondo__step_int(step, window->dilation[1]);
    rondo__step_int(step, window->dilation[2]);
    rondo__step_int(step, window->before[1]);
    rondo__step_int(step, window->before[2]);
    if (convolution->has_second) {
        rondo__step_int(step, convolution->second_at);
        rondo__step_int(step, second->stride[1]);
        rondo__step_int(step, second->stride[2]);
    }
    rondo__step_end_maps(step);
}
