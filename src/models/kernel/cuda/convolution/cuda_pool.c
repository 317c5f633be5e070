// kernel/cuda/convolution/cuda_pool.c — pools in both layouts.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/convolution/cuda_window.h"
#include "kernel/cuda/cuda_families.h"

// Averages of more elements are summed in double.
#define LONG_WINDOW 1024

// How the global average is cut: see global_average.cu.
typedef struct average_cut {
    int64_t width, slice, slices, split;
} average_cut;

static average_cut cut_average(const rondo__cuda_kernel *kernel, const rondo__window *window,
                               int64_t positions, rondo_dtype dtype) {
    enum { SECTOR = 32, SLICE_MAX = 32, SPLIT_MAX = 8, LOADS = 4 };  // LOADS: worth a thread
    const int64_t bytes = (int64_t)rondo_dtype_get_bytes(dtype), channels = window->channels_in;
    rondo_device_info info;
    const bool is_known = rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK;
    const int64_t units = is_known && info.compute_units > 0 ? info.compute_units : 1;
    average_cut cut = {.width = 16 / bytes, .slice = 2, .split = 1};
    while (channels % cut.width != 0) {
        cut.width /= 2;
    }
    // Memory comes in sectors. Wide slices read as much with fewer blocks.
    const int64_t packs = channels / cut.width;
    while (cut.slice < SLICE_MAX && cut.slice < packs &&
           (cut.slice * cut.width * bytes < SECTOR ||
            (positions * cut.slice < LOADS * RONDO__CUDA_BLOCK &&
             packs * window->batch >= 4 * units * cut.slice))) {
        cut.slice *= 2;
    }
    cut.slices = (packs + cut.slice - 1) / cut.slice;
    while (is_known && info.arch_major >= 9 && cut.split < SPLIT_MAX &&
           cut.slices * window->batch * cut.split < units &&
           positions * cut.slice >= cut.split * LOADS * RONDO__CUDA_BLOCK) {
        cut.split *= 2;
    }
    return cut;
}

static void add_global_average(rondo__cuda_kernel *kernel, const rondo__window *window) {
    rondo__defines defines = {0};
    const rondo_dtype dtype = rondo__cuda_input(kernel, 0)->dtype;
    const int64_t positions = window->in[0] * window->in[1] * window->in[2];
    const average_cut cut = cut_average(kernel, window, positions, dtype);
    rondo__define_type(&defines, "T", dtype);
    rondo__define_int(&defines, "WIDTH", cut.width);
    rondo__define_int(&defines, "SLICE", cut.slice);
    rondo__define_int(&defines, "SPLIT", cut.split);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_global_average, &defines, "global_average",
                               cut.slices * cut.split, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        const int64_t warps = RONDO__CUDA_BLOCK / 32;
        step->launch.grid[1] = (uint32_t)window->batch;
        step->launch.shared_bytes =
            (uint32_t)((cut.split + warps) * cut.slice * cut.width * (int64_t)sizeof(float));
    }
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, positions);
    rondo__step_int(step, window->channels_in);
}

// Whether the kernel with all loads at once takes the window: a small square of one image, with
// something of the image in it; of an average, nothing else.
static bool is_square(const rondo__window *window, bool is_average) {
    bool is_it = window->channels_last && window->kernel[0] == 1 && window->in[0] == 1 &&
                 window->kernel[1] == window->kernel[2] && window->kernel[1] <= 3;
    for (int d = 1; d < 3; d++) {
        const int64_t end = (window->out[d] - 1) * window->stride[d] + window->kernel[d];
        is_it = is_it && window->dilation[d] == 1 &&
                (is_average ? window->before[d] == 0 && end <= window->in[d]
                            : window->before[d] < window->kernel[d]);
    }
    return is_it;
}

void rondo__cuda_prepare_pool(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__op_id id = op->def->id;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    rondo__window window;
    const bool is_global =
        id == RONDO__OP_GlobalAveragePool || id == RONDO__FUSED_GlobalAveragePool;
    const bool is_average =
        is_global || id == RONDO__OP_AveragePool || id == RONDO__FUSED_AveragePool;
    const bool is_norm = id == RONDO__OP_LpPool || id == RONDO__OP_GlobalLpPool;

    if ((is_average || is_norm) && !rondo__cuda_is_float(x->dtype)) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
    }
    if (!rondo__cuda_read_window(kernel, NULL, &window) || kernel->status != RONDO_STATUS_OK) {
        return;
    }
    if (is_global && window.channels_last && window.batch < 65536) {
        add_global_average(kernel, &window);
        return;
    }
    // A thread a window is too few of them.
    const bool is_global_maximum = id == RONDO__OP_GlobalMaxPool && rondo__cuda_is_float(x->dtype);
    if ((is_global || is_global_maximum) && !window.channels_last) {
        rondo__cuda_add_global_pool(kernel, is_global);
        return;
    }
    int64_t width = 1;
    if (window.channels_last) {
        width = 16 / (int64_t)rondo_dtype_get_bytes(x->dtype);
        while (width > 8 || window.channels_in % width != 0) {
            width /= 2;
        }
    }
    const int64_t groups = rondo_shape_get_count(&rondo__cuda_output(kernel, 0)->shape) / width;
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "AVERAGE", is_average);
    rondo__define_int(&defines, "NORM", is_norm);
    if ((is_average || is_norm) &&
        window.kernel[0] * window.kernel[1] * window.kernel[2] > LONG_WINDOW) {
        rondo__define_word(&defines, "A", "double");
    }
    rondo__define_int(&defines, "WIDTH", width);
    rondo__define_int(&defines, "CHANNELS_LAST", window.channels_last);
    const bool at_once = !is_norm && is_square(&window, is_average) && groups < INT64_C(1) << 31;
    rondo__define_int(&defines, "SQUARE", at_once ? window.kernel[1] : 0);
    rondo__step *step = at_once
                            ? rondo__cuda_add_launch(kernel, rondo__cu_pool, &defines,
                                                     "pool_square", (groups + 127) / 128, 128)
                            : rondo__cuda_add_launch(kernel, rondo__cu_pool, &defines, "pool",
                                                     rondo__cuda_blocks(groups), RONDO__CUDA_BLOCK);
    rondo__step_int(step, groups);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_int(step, window.channels_in / width);
    rondo__step_ints(step, window.in, 3);
    rondo__step_ints(step, window.out, 3);
    rondo__step_ints(step, window.kernel, 3);
    rondo__step_ints(step, window.stride, 3);
    rondo__step_ints(step, window.dilation, 3);
    rondo__step_ints(step, window.before, 3);
    rondo__step_ints(step, window.after, 3);
    rondo__step_int(step, rondo__op_get_int(op, "count_include_pad", 0));
    rondo__step_int(step, rondo__op_get_int(op, "storage_order", 0));
    rondo__step_float(step, (double)rondo__op_get_int(op, "p", 2));
}
