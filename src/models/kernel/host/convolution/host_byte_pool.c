// kernel/host/convolution/host_byte_pool.c — MaxPool (without places) of 8-bit integers in both
// layouts.
//
// As in host_pool.c a unit of work is one run of outputs: all channels of a position where channels
// are last, otherwise a row along the last axis, of the joined rows of the window first.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "op/image/pooling.h"

enum { ROW_MAX = 4096 };  // bytes of a row that lies on the stack once its like are joined

typedef struct byte_pool {
    rondo__host_kernel head;
    rondo__window window;
    bool channels_last;
    uint8_t flip;     // 128 where bytes are signed: flipped ones are in the order of unsigned ones
    int32_t leading;  // spatial axes outside of a run
    int64_t units;    // runs
    int64_t per_image;  // runs of an image or plane
    int64_t image;      // bytes of its input
    int64_t run, row;   // outputs of a run; bytes of the input that a tap of the leading axes takes
    int64_t grain;
} byte_pool;

typedef struct byte_pool_run {
    const byte_pool *kernel;
    const uint8_t *x;
    uint8_t *y;
} byte_pool_run;

// y[i] = max(y[i], x[i * stride]). A stride that the compiler knows makes vector code.
static inline void take(const uint8_t *x, int64_t stride, uint8_t flip, uint8_t *y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const uint8_t value = x[i * stride] ^ flip;
        y[i] = value > y[i] ? value : y[i];
    }
}

// Along the last axis, with channels first.
static void pool_row(const byte_pool *kernel, const uint8_t *row, uint8_t flip, uint8_t *y) {
    const rondo__window *window = &kernel->window;
    const int32_t last = window->rank - 1;
    const int64_t stride = window->stride[last];
    for (int64_t tap = 0; tap < window->kernel[last]; ++tap) {
        int64_t first, end;
        rondo__window_clip_positions(window, last, tap, &first, &end);
        if (first >= end) {
            continue;
        }
        const uint8_t *x =
            row + first * stride + tap * window->dilation[last] - window->pad_begin[last];
        if (stride == 1) {
            take(x, 1, flip, y + first, end - first);
        } else if (stride == 2) {
            take(x, 2, flip, y + first, end - first);
        } else {
            take(x, stride, flip, y + first, end - first);
        }
    }
}

// One run of outputs, flipped.
static void pool_run(const byte_pool *kernel, const uint8_t *x, const int64_t *position,
                     uint8_t *y) {
    const rondo__window *window = &kernel->window;
    int64_t start[RONDO__SPATIAL_MAX], extent[RONDO__SPATIAL_MAX], tap[RONDO__SPATIAL_MAX] = {0};
    uint8_t joined[ROW_MAX];
    const bool is_joined = !kernel->channels_last && kernel->row <= ROW_MAX;
    uint8_t *to = is_joined ? joined : y;
    memset(y, 0, (size_t)kernel->run);
    memset(joined, 0, is_joined ? (size_t)kernel->row : 0);
    rondo__window_clip(window, kernel->leading, position, start, extent);
    do {
        int64_t at = 0;
        for (int32_t i = 0; i < kernel->leading; ++i) {
            at = at * window->input[i] + start[i] + tap[i] * window->dilation[i];
        }
        const uint8_t *row = x + at * kernel->row;
        if (is_joined || kernel->channels_last) {
            take(row, 1, kernel->flip, to, kernel->row);
        } else {
            pool_row(kernel, row, kernel->flip, y);
        }
    } while (rondo__index_advance(kernel->leading, extent, tap));
    if (is_joined) {
        pool_row(kernel, joined, 0, y);
    }
}

static void pool_units(void *data, int64_t first, int64_t end) {
    const byte_pool_run *run = data;
    const byte_pool *kernel = run->kernel;
    int64_t position[RONDO__SPATIAL_MAX] = {0};
    int64_t rest = first % kernel->per_image;
    const uint8_t *x = run->x + first / kernel->per_image * kernel->image;
    for (int32_t i = kernel->leading - 1; i >= 0; --i) {
        position[i] = rest % kernel->window.output[i];
        rest /= kernel->window.output[i];
    }
    for (int64_t unit = first; unit < end; ++unit) {
        uint8_t *y = run->y + unit * kernel->run;
        pool_run(kernel, x, position, y);
        for (int64_t i = 0; i < kernel->run; ++i) {
            y[i] ^= kernel->flip;
        }
        if (!rondo__index_advance(kernel->leading, kernel->window.output, position)) {
            x += kernel->image;
        }
    }
}

static rondo_status run_pool(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    (void)workspace;
    const byte_pool *kernel = (const byte_pool *)head;
    byte_pool_run run = {kernel, inputs[0], outputs[0]};
    rondo__workers_loop(kernel->units, kernel->grain, pool_units, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_byte_pool(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_dtype type = request->inputs[0].dtype;
    const rondo_shape *x = &request->inputs[0].shape;
    const bool channels_last = rondo__op_get_int(op, "channels_last", 0) != 0;
    rondo__pool pool;
    if (type != RONDO_DTYPE_U8 && type != RONDO_DTYPE_I8) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__pool_init(op, x, channels_last, &pool));
    if (rondo__window_has_empty(&pool.window)) {
        return RONDO_STATUS_UNSUPPORTED;  // the reference decides what they are
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(byte_pool), "simd", run_pool, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    byte_pool *kernel = (byte_pool *)head;
    const int32_t last = pool.window.rank - 1;
    double taps = 1.0;
    for (int32_t i = 0; i <= last; ++i) {
        taps *= (double)pool.window.kernel[i];
    }
    kernel->window = pool.window;
    kernel->channels_last = channels_last;
    kernel->flip = type == RONDO_DTYPE_I8 ? 128 : 0;
    kernel->leading = channels_last ? pool.window.rank : last;
    kernel->run = channels_last ? pool.channels : pool.window.output[last];
    kernel->row = channels_last ? pool.channels : pool.window.input[last];
    kernel->image = pool.input_span * (channels_last ? pool.channels : 1);
    kernel->per_image = pool.output_span / (channels_last ? 1 : kernel->run);
    kernel->units = pool.batch * (channels_last ? 1 : pool.channels) * kernel->per_image;
    kernel->grain = rondo__host_get_grain(kernel->units,
                                          taps * (double)rondo_shape_get_count(&pool.output), 0.0);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
