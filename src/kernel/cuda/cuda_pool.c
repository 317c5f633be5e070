// Pools in both layouts.
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/cuda_window.h"

// Averages of more elements are summed in double.
#define LONG_WINDOW 1024

bool rondo__cuda_read_window(rondo__cuda_kernel *kernel, const int64_t *kernel_shape,
                             rondo__window *out_window) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    rondo__window window = {0};
    size_t kernel_count = 0, stride_count = 0, dilation_count = 0, pad_count = 0;
    const int32_t spatial = x->rank - 2;

    if (spatial < 1 || spatial > 3 || y->rank != x->rank) {
        rondo__cuda_refuse(kernel, "more than three spatial extents");
        return false;
    }
    const int64_t *kernels =
        kernel_shape != NULL ? kernel_shape : rondo__op_get_ints(op, "kernel_shape", &kernel_count);
    const int64_t *strides = rondo__op_get_ints(op, "strides", &stride_count);
    const int64_t *dilations = rondo__op_get_ints(op, "dilations", &dilation_count);
    const int64_t *pads = rondo__op_get_ints(op, "pads", &pad_count);
    const char *auto_pad = rondo__op_get_string(op, "auto_pad", "NOTSET");
    const bool is_same = strncmp(auto_pad, "SAME", 4) == 0;
    if (strcmp(auto_pad, "VALID") == 0) {
        pads = NULL;
    }
    window.spatial_rank = spatial;
    window.channels_last =
        strcmp(op->def->domain, "rondo") == 0 && rondo__op_get_int(op, "channels_last", 1) != 0;
    const int32_t first = window.channels_last ? 1 : 2;
    const int32_t channel = window.channels_last ? x->rank - 1 : 1;
    window.batch = x->extent[0];
    window.channels_in = x->extent[channel];
    window.channels_out = y->extent[channel];
    for (int32_t d = 0; d < 3; d++) {
        const int32_t i = d - (3 - spatial);  // the model's number of this extent
        window.in[d] = i < 0 ? 1 : x->extent[first + i];
        window.out[d] = i < 0 ? 1 : y->extent[first + i];
        // Without any kernel the pool is global.
        window.kernel[d] = i < 0 ? 1 : kernels != NULL ? kernels[i] : window.in[d];
        window.stride[d] = i < 0 || strides == NULL ? 1 : strides[i];
        window.dilation[d] = i < 0 || dilations == NULL ? 1 : dilations[i];
        if (i >= 0 && is_same) {
            const int64_t reach = (window.kernel[d] - 1) * window.dilation[d] + 1;
            int64_t total = (window.out[d] - 1) * window.stride[d] + reach - window.in[d];
            total = total < 0 ? 0 : total;
            window.before[d] = strcmp(auto_pad, "SAME_LOWER") == 0 ? total - total / 2 : total / 2;
            window.after[d] = total - window.before[d];
        } else if (i >= 0 && pads != NULL) {
            window.before[d] = pads[i];
            window.after[d] = pads[i + spatial];
        }
    }
    *out_window = window;
    return true;
}

static void push_three(rondo__step *step, const int64_t *values) {
    for (int d = 0; d < 3; d++) {
        rondo__step_int(step, values[d]);
    }
}

static void add_global_average(rondo__cuda_kernel *kernel, const rondo__window *window) {
    rondo__defines defines = {0};
    const rondo_dtype dtype = rondo__cuda_input(kernel, 0)->dtype;
    int64_t width = 16 / (int64_t)rondo_dtype_get_bytes(dtype);
    while (window->channels_in % width != 0) {
        width /= 2;
    }
    // Few blocks hide little latency: narrow the lanes until there are enough of them.
    while (width > 2 && window->channels_in / (32 * width) * window->batch < 64) {
        width /= 2;
    }
    rondo__define_type(&defines, "T", dtype);
    rondo__define_int(&defines, "WIDTH", width);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_pool, &defines, "global_average",
        (window->channels_in + 32 * width - 1) / (32 * width), RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)window->batch;
    }
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, window->in[0] * window->in[1] * window->in[2]);
    rondo__step_int(step, window->channels_in);
}

void rondo__cuda_prepare_pool(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const char *name = op->def->name;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    rondo__window window;
    const bool is_average = strstr(name, "Average") != NULL;

    if (is_average && !rondo__cuda_is_float(x->dtype)) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
    }
    if (!rondo__cuda_read_window(kernel, NULL, &window) || kernel->status != RONDO_STATUS_OK) {
        return;
    }
    if (is_average && strncmp(name, "Global", 6) == 0 && window.channels_last &&
        window.batch < 65536) {
        add_global_average(kernel, &window);
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
    if (is_average && window.kernel[0] * window.kernel[1] * window.kernel[2] > LONG_WINDOW) {
        rondo__define_word(&defines, "A", "double");
    }
    rondo__define_int(&defines, "WIDTH", width);
    rondo__define_int(&defines, "CHANNELS_LAST", window.channels_last);
    const bool is_square = window.channels_last && !is_average && window.kernel[0] == 1 &&
                           window.in[0] == 1 && window.kernel[1] == window.kernel[2] &&
                           window.kernel[1] <= 3 && window.dilation[1] == 1 &&
                           window.dilation[2] == 1 && window.before[1] < window.kernel[1] &&
                           window.before[2] < window.kernel[2] && groups < INT64_C(1) << 31;
    rondo__define_int(&defines, "SQUARE", is_square ? window.kernel[1] : 0);
    rondo__step *step = is_square
                            ? rondo__cuda_add_launch(kernel, rondo__cu_pool, &defines,
                                                     "max_pool_square", (groups + 127) / 128, 128)
                            : rondo__cuda_add_launch(kernel, rondo__cu_pool, &defines, "pool",
                                                     rondo__cuda_blocks(groups), RONDO__CUDA_BLOCK);
    rondo__step_int(step, groups);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    if (rondo__cuda_wants_output(kernel, 1)) {
        rondo__step_output(step, 1);
    } else {
        rondo__step_int(step, 0);
    }
    rondo__step_int(step, window.channels_in / width);
    push_three(step, window.in);
    push_three(step, window.out);
    push_three(step, window.kernel);
    push_three(step, window.stride);
    push_three(step, window.dilation);
    push_three(step, window.before);
    push_three(step, window.after);
    rondo__step_int(step, rondo__op_get_int(op, "count_include_pad", 0));
    rondo__step_int(step, rondo__op_get_int(op, "storage_order", 0));
}
