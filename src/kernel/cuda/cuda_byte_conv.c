// ConvInteger and QLinearConv.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_byte_product.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/cuda_window.h"

enum {
    DIRECT_FILTERS_MAX = 7,    // of a group; a tile would be nearly empty
    DIRECT_DEPTH_MAX = 33025,  // sums of 255 x 255 then fit 32 bits
    GRID_MAX = 65535,
};

typedef struct byte_conv {
    rondo__byte_product product;
    rondo__window window;
    int64_t groups, channels, filters;  // channels and filters of a group
    int64_t taps, words;                // words of channels
    rondo__address w;
} byte_conv;

// From [filters, channels, taps] to [filters, taps, channels in words], signed.
typedef struct filter_form {
    char kind[8];
    int64_t filters, channels, taps, words;
    int64_t is_unsigned;
} filter_form;

static rondo_status fill_filters(const rondo__weight_want *want, void *packed) {
    const filter_form *form = want->form;
    const uint8_t *from = want->constant->data;
    uint8_t *to = packed;
    const uint8_t flip = form->is_unsigned != 0 ? 0x80 : 0;
    for (int64_t f = 0; f < form->filters; f++) {
        for (int64_t c = 0; c < form->channels; c++) {
            for (int64_t t = 0; t < form->taps; t++) {
                to[(f * form->taps + t) * form->words * 4 + c] = (uint8_t)(*from++ ^ flip);
            }
        }
    }
    return RONDO_STATUS_OK;
}

static void pack_filters(rondo__cuda_kernel *kernel, byte_conv *conv) {
    const size_t index = (size_t)conv->product.a.index;
    const filter_form form = {
        .kind = "filters",
        .filters = conv->filters * conv->groups,
        .channels = conv->channels,
        .taps = conv->taps,
        .words = conv->words,
        .is_unsigned = conv->product.a.is_unsigned,
    };
    const int64_t words = form.filters * form.taps * form.words;
    rondo__weight_want want = {
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)words * 4,
        .fill = fill_filters,
    };
    if (rondo__cuda_input(kernel, index)->constant != NULL) {
        (void)rondo__cuda_own_input(kernel, index, &want, &conv->w);
        return;
    }
    rondo__defines defines = {0};
    conv->w = rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, want.bytes));
    rondo__step *step = rondo__byte_product_add(kernel, &conv->product, &defines, "pack_filters",
                                                rondo__cuda_blocks(words));
    rondo__step_int(step, words);
    rondo__step_input(step, index);
    rondo__step_address(step, conv->w);
    rondo__step_int(step, conv->channels);
    rondo__step_int(step, conv->taps);
    rondo__step_int(step, conv->words);
}

static void push_three(rondo__step *step, const int64_t *values) {
    for (int d = 0; d < 3; d++) {
        rondo__step_int(step, values[d]);
    }
}

static void push_conv(rondo__step *step, const rondo__cuda_kernel *kernel, const byte_conv *conv) {
    const rondo__window *w = &conv->window;
    rondo__step_input(step, (size_t)conv->product.b.index);
    rondo__step_address(step, conv->w);
    rondo__step_output(step, 0);
    rondo__step_int(step, w->batch);
    rondo__step_int(step, conv->groups);
    rondo__step_int(step, conv->channels);
    rondo__step_int(step, conv->filters);
    push_three(step, w->in);
    push_three(step, w->out);
    push_three(step, w->kernel);
    push_three(step, w->stride);
    push_three(step, w->dilation);
    push_three(step, w->before);
    rondo__step_int(step, conv->words);
    rondo__byte_product_push(step, kernel, &conv->product);
}

static void add_conv(rondo__cuda_kernel *kernel, const rondo__byte_product *product) {
    byte_conv conv = {.product = *product};
    rondo__defines defines = {0};
    const rondo__tensor_info *w = rondo__cuda_input(kernel, (size_t)product->a.index);
    if (!rondo__byte_product_read(kernel, &conv.product) ||
        !rondo__cuda_read_window(kernel, w->shape.extent + 2, &conv.window)) {
        return;
    }
    const rondo__window *window = &conv.window;
    const int64_t positions = window->out[0] * window->out[1] * window->out[2];
    const int64_t pixels = window->batch * positions;
    conv.groups = rondo__op_get_int(kernel->request->op, "group", 1);
    conv.channels = window->channels_in / conv.groups;
    conv.filters = window->channels_out / conv.groups;
    conv.taps = rondo__cuda_product(&w->shape, 2, w->shape.rank);
    conv.words = (conv.channels + 3) / 4;
    conv.product.depth = conv.channels * conv.taps;
    if (conv.filters <= DIRECT_FILTERS_MAX && conv.product.depth <= DIRECT_DEPTH_MAX) {
        conv.w = rondo__address_input((size_t)product->a.index);
        rondo__step *step =
            rondo__byte_product_add(kernel, &conv.product, &defines, "byte_conv_direct",
                                    rondo__cuda_blocks(pixels * conv.groups * conv.filters));
        push_conv(step, kernel, &conv);
        return;
    }
    const int64_t filter_tiles = (conv.filters + 63) / 64;
    if (filter_tiles > GRID_MAX || conv.groups > GRID_MAX || positions > INT32_MAX ||
        conv.taps * conv.words > INT32_MAX) {
        rondo__cuda_refuse(kernel, "more filters, groups or positions than a grid holds");
        return;
    }
    pack_filters(kernel, &conv);
    rondo__step *step =
        rondo__byte_product_add(kernel, &conv.product, &defines, "byte_conv", (pixels + 63) / 64);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)filter_tiles;
        step->launch.grid[2] = (uint32_t)conv.groups;
    }
    push_conv(step, kernel, &conv);
}

void rondo__cuda_prepare_conv_integer(rondo__cuda_kernel *kernel) {
    const rondo__byte_product product = {
        .a = {.index = 1, .zero = 3, .scale = RONDO__BYTE_NONE},
        .b = {.index = 0, .zero = 2, .scale = RONDO__BYTE_NONE},
        .y_scale = RONDO__BYTE_NONE,
        .y_zero = RONDO__BYTE_NONE,
        .bias = RONDO__BYTE_NONE,
    };
    add_conv(kernel, &product);
}

void rondo__cuda_prepare_qlinear_conv(rondo__cuda_kernel *kernel) {
    const rondo__byte_product product = {
        .a = {.index = 3, .scale = 4, .zero = 5},
        .b = {.index = 0, .scale = 1, .zero = 2},
        .y_scale = 6,
        .y_zero = 7,
        .bias = 8,
    };
    add_conv(kernel, &product);
}
