// program/window_write.c — see window_write.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/window_write.h"

#include "base/error.h"

rondo_status rondo__window_write(rondo__op *op, const rondo__window *window) {
    size_t rank = (size_t)window->rank;
    int64_t pads[2 * RONDO__SPATIAL_MAX] = {0};
    for (size_t i = 0; i < rank; ++i) {
        pads[i] = window->pad_begin[i];
        pads[rank + i] = window->pad_end[i];
    }
    RETURN_IF_ERROR(rondo__op_set_ints(op, "kernel_shape", window->kernel, rank));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "strides", window->stride, rank));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "dilations", window->dilation, rank));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "pads", pads, 2 * rank));
    if (rondo__op_find(op, "auto_pad") != NULL) {
        RETURN_IF_ERROR(rondo__op_set_string(op, "auto_pad", "NOTSET"));
    }
    return RONDO_STATUS_OK;
}
