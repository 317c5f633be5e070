// program/passes/pass_transposed.c — ConvTranspose becomes a Conv and a DepthToSpace, where the
// device's convolutions are much faster.
//
//   y[s q + r] = sum of x[q + d - t] w[p + s t] over t,  p = (r + before) % s, d = (r + before) / s
//
// with s the stride and r = 0 .. s - 1. Each r is a convolution of x with every s-th tap from p on.
// One Conv makes all of them as s * s groups of filters, over the inputs that any of them looks at;
// taps that a group does not have are 0. DepthToSpace puts the groups side by side.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "op/image/convolution.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum {
    AXES = 2,
    STRIDE_MAX = 16,
    GROWTH_MAX = 4,  // times the multiplications that the filter has
};

typedef struct transposed {
    rondo__convolution convolution;
    int64_t stride;
    int64_t lowest[AXES];  // input, seen from q, that any r looks at
    int64_t taps[AXES];    // inputs from there on
    int64_t count[AXES];   // of q
    int64_t pads[2 * AXES];
} transposed;

// What one r sees along an axis: the first tap, their number, and the input of the first.
typedef struct phase {
    int64_t first, count, input;
} phase;

static phase find_phase(const transposed *t, int32_t axis, int64_t r) {
    const rondo__window *w = &t->convolution.window;
    const int64_t at = r + w->pad_begin[axis], first = at % t->stride;
    return (phase){.first = first,
                   .count = first < w->kernel[axis]
                                ? (w->kernel[axis] - first + t->stride - 1) / t->stride
                                : 0,
                   .input = at / t->stride};
}

// False: it has no such form, or one that costs too much.
static bool find_form(transposed *t) {
    const rondo__window *w = &t->convolution.window;
    t->stride = w->stride[0];
    if (t->convolution.group != 1 || w->rank != AXES || t->stride < 2 || t->stride > STRIDE_MAX) {
        return false;
    }
    for (int32_t d = 0; d < AXES; ++d) {
        int64_t lowest = INT64_MAX, highest = INT64_MIN;
        if (w->stride[d] != t->stride || w->dilation[d] != 1 || w->output[d] % t->stride != 0) {
            return false;
        }
        for (int64_t r = 0; r < t->stride; ++r) {
            const phase p = find_phase(t, d, r);
            lowest = p.count > 0 && p.input - p.count + 1 < lowest ? p.input - p.count + 1 : lowest;
            highest = p.count > 0 && p.input > highest ? p.input : highest;
        }
        t->lowest[d] = lowest;
        t->taps[d] = highest - lowest + 1;
        t->count[d] = w->output[d] / t->stride;
        t->pads[d] = -lowest;
        t->pads[AXES + d] = t->count[d] - w->input[d] + lowest + t->taps[d] - 1;
        if (t->pads[d] < 0 || t->pads[AXES + d] < 0 ||
            t->taps[d] * t->stride > GROWTH_MAX / AXES * w->kernel[d]) {
            return false;
        }
    }
    return true;
}

static bool is_constant(const rondo_program *program, int32_t value) {
    return rondo__value_is_constant(&program->values[value]);
}

static bool read(const rondo_program *program, const rondo__node *node, transposed *out_form) {
    rondo_shape x, w, y;
    if (!rondo__node_is(node, RONDO__OP_ConvTranspose) || !is_constant(program, node->inputs[1]) ||
        (node->input_count > 2 && node->inputs[2] >= 0 && !is_constant(program, node->inputs[2]))) {
        return false;
    }
    const rondo_dtype dtype = program->values[node->outputs[0]].dtype;
    if ((dtype != RONDO_DTYPE_F32 && dtype != RONDO_DTYPE_F16) ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[node->inputs[1]], &w) ||
        !rondo__value_get_shape(&program->values[node->outputs[0]], &y) ||
        rondo_shape_get_count(&y) == 0) {
        return false;
    }
    *out_form = (transposed){0};
    return rondo__convolution_init_transposed(&node->op, &x, &w, &out_form->convolution) ==
               RONDO_STATUS_OK &&
           find_form(out_form);
}

// From [channels, filters, kernel] to [stride, stride, filters, channels, taps].
static rondo_status make_weights(rondo_program *program, const transposed *t, int32_t value,
                                 int32_t *out_value) {
    const rondo_tensor *source = &program->values[value].constant;
    const rondo__convolution *c = &t->convolution;
    const int64_t *kernel = c->window.kernel, filters = c->filters, channels = c->channels;
    const size_t bytes = rondo_dtype_get_bytes(source->dtype);
    const rondo_shape shape = {
        .rank = 4, .extent = {t->stride * t->stride * filters, channels, t->taps[0], t->taps[1]}};
    rondo_tensor made;
    RETURN_IF_ERROR(rondo_tensor_init(source->dtype, &shape, &made));
    memset(made.data, 0, (size_t)rondo_shape_get_count(&shape) * bytes);
    for (int64_t of = 0; of < t->stride * t->stride * filters * channels; ++of) {
        const int64_t channel = of % channels, filter = of / channels % filters;
        const int64_t r = of / channels / filters;
        const phase p[AXES] = {find_phase(t, 0, r / t->stride), find_phase(t, 1, r % t->stride)};
        for (int64_t i = 0; i < p[0].count; ++i) {
            for (int64_t j = 0; j < p[1].count; ++j) {
                const int64_t tap0 = p[0].first + i * t->stride, tap1 = p[1].first + j * t->stride;
                const int64_t from =
                    ((channel * filters + filter) * kernel[0] + tap0) * kernel[1] + tap1;
                const int64_t to = (of * t->taps[0] + p[0].input - i - t->lowest[0]) * t->taps[1] +
                                   p[1].input - j - t->lowest[1];
                memcpy((char *)made.data + (size_t)to * bytes,
                       (const char *)source->data + (size_t)from * bytes, bytes);
            }
        }
    }
    const rondo_status status = rondo__program_add_constant(program, "phases", &made, out_value);
    rondo_tensor_deinit(&made);
    return status;
}

static rondo_status make_bias(rondo_program *program, const transposed *t, int32_t value,
                              int32_t *out_value) {
    *out_value = RONDO__VALUE_NONE;
    if (value < 0) {
        return RONDO_STATUS_OK;
    }
    const rondo_tensor *source = &program->values[value].constant;
    const int64_t filters = t->convolution.filters;
    const size_t bytes = (size_t)filters * rondo_dtype_get_bytes(source->dtype);
    const rondo_shape shape = {.rank = 1, .extent = {t->stride * t->stride * filters}};
    rondo_tensor made;
    RETURN_IF_ERROR(rondo_tensor_init(source->dtype, &shape, &made));
    for (int64_t r = 0; r < t->stride * t->stride; ++r) {
        memcpy((char *)made.data + (size_t)r * bytes, source->data, bytes);
    }
    const rondo_status status = rondo__program_add_constant(program, "bias", &made, out_value);
    rondo_tensor_deinit(&made);
    return status;
}

static rondo_status rewrite(rondo_program *program, size_t n, const transposed *t) {
    const rondo__node *node = &program->nodes[n];
    const int32_t x = node->inputs[0], w = node->inputs[1], result = node->outputs[0];
    const int32_t b = node->input_count > 2 ? node->inputs[2] : RONDO__VALUE_NONE;
    const uint8_t precision = node->precision;
    const rondo_shape shape = {
        .rank = 4,
        .extent = {t->convolution.batch, t->stride * t->stride * t->convolution.filters,
                   t->count[0], t->count[1]}};
    int32_t inputs[3] = {x, 0, 0}, between = 0;
    RETURN_IF_ERROR(make_weights(program, t, w, &inputs[1]));
    RETURN_IF_ERROR(make_bias(program, t, b, &inputs[2]));
    RETURN_IF_ERROR(rondo__program_add_shaped(program, program->values[result].name,
                                              program->values[result].dtype, &shape, &between));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Conv", program->nodes[n].op.name,
                                              inputs, inputs[2] >= 0 ? 3 : 2, &between, 1));
    rondo__node *made = &program->nodes[program->node_count - 1];
    made->precision = precision;
    RETURN_IF_ERROR(rondo__op_set_ints(&made->op, "pads", t->pads, 4));
    program->values[result].producer = -1;
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "DepthToSpace",
                                              program->nodes[n].op.name, &between, 1, &result, 1));
    made = &program->nodes[program->node_count - 1];
    made->precision = precision;
    return rondo__op_set_int(&made->op, "blocksize", t->stride);
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    transposed form;
    if (!read(rewriting->program, &rewriting->program->nodes[n], &form)) {
        return RONDO_STATUS_OK;
    }
    rewriting->remove[n] = true;
    return rewrite(rewriting->program, n, &form);
}

rondo_status rondo__pass_transposed(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
