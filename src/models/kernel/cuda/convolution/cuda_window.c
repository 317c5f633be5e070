// kernel/cuda/convolution/cuda_window.c — see cuda_window.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/convolution/cuda_window.h"

#include <string.h>

bool rondo__cuda_read_window(rondo__cuda_kernel *kernel, const int64_t *kernel_shape,
                             rondo__window *out_window) {
    const rondo__op *op = kernel->request->op;
    const bool is_last = (op->def->flags & RONDO__OP_INTERNAL) != 0 &&
                         rondo__op_get_int(op, "channels_last", 1) != 0;
    return rondo__cuda_spread_window(kernel, &rondo__cuda_input(kernel, 0)->shape,
                                     &rondo__cuda_output(kernel, 0)->shape, is_last, kernel_shape,
                                     out_window);
}

bool rondo__cuda_spread_window(rondo__cuda_kernel *kernel, const rondo_shape *x,
                               const rondo_shape *y, bool channels_last,
                               const int64_t *kernel_shape, rondo__window *out_window) {
    const rondo__op *op = kernel->request->op;
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
    window.channels_last = channels_last;
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
