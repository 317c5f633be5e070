// kernel/host/convolution/byte_convolution.h — what the parts of ConvInteger and QLinearConv share;
// see host_byte_convolution.c.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/host/host_kernel.h"
#include "kernel/host/product/byte_matrix.h"

enum {
    RONDO__BYTE_AXES = 3,         // depth, height, width
    RONDO__BYTE_COPY_BYTES = 32,  // of a run; more than needed is overwritten by the next
    RONDO__BYTE_TAPS_MAX = 128,   // of filters of one channel
    RONDO__BYTE_NO_INPUT = 32,
};

typedef struct rondo__byte_convolution {
    rondo__host_kernel head;
    const rondo__byte_simd *simd;
    int64_t batch, group, channels, filters;  // of one group
    int64_t depth, height, width, out_depth, out_height, out_width;
    int64_t kernel[RONDO__BYTE_AXES], stride[RONDO__BYTE_AXES], dilation[RONDO__BYTE_AXES],
        pad[RONDO__BYTE_AXES];
    int64_t k;  // taps
    int64_t padded_depth, padded_height, phase_width;
    int64_t plane_bytes, channel_bytes;  // of the padded copy
    int64_t chunk_places;
    bool is_x_signed, is_w_signed, is_y_signed, is_requantized, is_depthwise, is_pointwise;
    uint32_t w, x_zero, w_zero, bias;
    int64_t w_zero_count, w_scale_count;
    const void *prepared;  // constant filters; NULL: prepared in each run
    rondo__byte_rows_form form;
    size_t padded_at, chunk_at, sums_at;  // work; filters come first
} rondo__byte_convolution;

enum {
    RONDO__QLINEAR_X_SCALE = 1,
    RONDO__QLINEAR_W_SCALE = 4,
    RONDO__QLINEAR_Y_SCALE = 6,
    RONDO__QLINEAR_Y_ZERO = 7,
    RONDO__QLINEAR_BIAS = 8
};

static inline int64_t rondo__byte_get_row_bytes(const rondo__byte_convolution *kernel) {
    return kernel->phase_width * kernel->stride[2];
}

// Positions of the output, of one filter and image.
static inline int64_t rondo__byte_count_places(const rondo__byte_convolution *kernel) {
    return kernel->out_depth * kernel->out_height * kernel->out_width;
}

// Where a tap sees the first position of the output, in a padded channel.
static inline int64_t rondo__byte_find_tap(const rondo__byte_convolution *kernel,
                                           const int64_t *tap) {
    const int64_t shift = tap[2] * kernel->dilation[2];
    return tap[0] * kernel->dilation[0] * kernel->plane_bytes +
           tap[1] * kernel->dilation[1] * rondo__byte_get_row_bytes(kernel) +
           shift % kernel->stride[2] * kernel->phase_width + shift / kernel->stride[2];
}

// False: that was the last one of a channel; `tap` is the first again.
static inline bool rondo__byte_go_to_next_tap(const rondo__byte_convolution *kernel, int64_t *tap) {
    for (int axis = RONDO__BYTE_AXES - 1; axis >= 0; --axis) {
        if (++tap[axis] < kernel->kernel[axis]) {
            return true;
        }
        tap[axis] = 0;
    }
    return false;
}

static inline const uint8_t *rondo__byte_get_input(const void *const *inputs, uint32_t input) {
    return input == RONDO__BYTE_NO_INPUT ? NULL : inputs[input];
}

// Makes steps of y of `count` sums of a filter.
static inline void rondo__byte_requantize(const rondo__byte_convolution *kernel,
                                          const void *const *inputs, int64_t filter,
                                          const int32_t *sums, int64_t count, uint8_t *y) {
    const float *w_scale = inputs[RONDO__QLINEAR_W_SCALE];
    const int32_t *bias = kernel->bias == RONDO__BYTE_NO_INPUT ? NULL : inputs[kernel->bias];
    const float x_scale = *(const float *)inputs[RONDO__QLINEAR_X_SCALE];
    const int32_t y_zero =
        rondo__byte_get((const uint8_t *)inputs[RONDO__QLINEAR_Y_ZERO], kernel->is_y_signed, 0);
    kernel->simd->requantize(sums, bias != NULL ? bias[filter] : 0,
                             x_scale * w_scale[kernel->w_scale_count == 1 ? 0 : filter], NULL,
                             *(const float *)inputs[RONDO__QLINEAR_Y_SCALE], y_zero,
                             kernel->is_y_signed, count, y);
}

// Copies rows [first, end) of the channels of `x` to `to`, with what lies around them.
typedef struct rondo__byte_padding {
    const rondo__byte_convolution *kernel;
    const uint8_t *x;
    uint8_t zero;
    uint8_t *to;
} rondo__byte_padding;

void rondo__byte_pad_rows(void *data, int64_t first, int64_t end);
// The same of all channels of an image, by all threads.
void rondo__byte_pad_image(const rondo__byte_convolution *kernel, const uint8_t *x, uint8_t zero,
                           uint8_t *to);

// Filters of one channel: the kernel's run function where is_depthwise.
rondo_status rondo__byte_run_planes(rondo__host_kernel *head, const void *const *inputs,
                                    void *const *outputs, void *workspace);
