// program/passes/pass_shortcut.c — the convolution on the shortcut of a residual block goes into
// the one that its result is added to.
//
//   before   z = rondo.Conv(x2, w2)           single pixels, no activation, no other reader of z
//            y = rondo.Conv(x, w, z)
//   after    y = rondo.Conv(x, w, x2, w2)     one sum over the channels of both
//
// Or the other way around, where it is the second that reads all pixels in rows. z is as large as
// y: it is neither written nor read any more, nor rounded. For convolutions of f16 with channels
// last, on devices with a kernel for both (kernel/cuda/convolution/cuda_conv_tma.c).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/half.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum {
    INPUT_W = 1,
    INPUT_BIAS = 2,
    INPUT_RESIDUAL = 3,
    INPUTS = 6,
    CHANNEL_MULTIPLE = 8,          // of rows that the tensor memory accelerator reads
    WINDOW_CHANNEL_MULTIPLE = 64,  // where a window has more taps than one, or a stride
    TAPS_MOST = 7,
    STRIDE_MOST = 2,
};

static bool are_all(const rondo__op *op, const char *name, int64_t least, int64_t most,
                    int64_t missing) {
    size_t count = 0;
    const int64_t *values = rondo__op_get_ints(op, name, &count);
    bool is_so = count > 0 || (missing >= least && missing <= most);
    for (size_t i = 0; i < count; ++i) {
        is_so = is_so && values[i] >= least && values[i] <= most;
    }
    return is_so;
}

static const rondo_tensor *get_constant(const rondo_program *program, int32_t value, int32_t rank) {
    if (value < 0 || !rondo__value_is_constant(&program->values[value])) {
        return NULL;
    }
    const rondo_tensor *constant = &program->values[value].constant;
    return constant->dtype == RONDO_DTYPE_F16 && constant->shape.rank == rank ? constant : NULL;
}

// Of images in f16 with channels last, in one group, with known weights; and that the kernel takes.
static bool is_convolution(const rondo_program *program, const rondo__node *node) {
    const rondo_tensor *w;
    rondo_shape x;
    if (!rondo__node_is(node, RONDO__FUSED_Conv) ||
        rondo__match_input(node, INPUT_RESIDUAL + 1) >= 0 ||
        rondo__op_get_int(&node->op, "channels_last", 0) == 0 ||
        rondo__op_get_int(&node->op, "group", 1) != 1 ||
        program->values[node->inputs[0]].dtype != RONDO_DTYPE_F16 ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) || x.rank != 4 ||
        (w = get_constant(program, node->inputs[INPUT_W], 4)) == NULL) {
        return false;
    }
    const int32_t bias = rondo__match_input(node, INPUT_BIAS);
    const int64_t *e = w->shape.extent;
    const bool is_point = e[2] == 1 && e[3] == 1;
    return (bias < 0 || get_constant(program, bias, 1) != NULL) && e[2] <= TAPS_MOST &&
           e[3] <= TAPS_MOST &&
           e[1] % (is_point ? CHANNEL_MULTIPLE : WINDOW_CHANNEL_MULTIPLE) == 0 &&
           are_all(&node->op, "dilations", 1, 1, 1) &&
           are_all(&node->op, "strides", 1, STRIDE_MOST, 1) &&
           are_all(&node->op, "pads", 0, TAPS_MOST - 1, 0);
}

// A convolution of single pixels, and nothing behind it.
static bool is_shortcut(const rondo_program *program, const rondo__node *node) {
    if (!is_convolution(program, node) || rondo__match_input(node, INPUT_RESIDUAL) >= 0) {
        return false;
    }
    const int64_t *e = program->values[node->inputs[INPUT_W]].constant.shape.extent;
    return e[2] == 1 && e[3] == 1 && are_all(&node->op, "pads", 0, 0, 0) &&
           strcmp(rondo__op_get_string(&node->op, "activation", "none"), "none") == 0;
}

// Whether the kernel takes it as the first of two: each of its steps reads channels of whole rows.
static bool leads(const rondo_program *program, const rondo__node *node) {
    const int64_t *e = program->values[node->inputs[INPUT_W]].constant.shape.extent;
    const bool is_row = e[2] == 1 && e[3] == 1 && are_all(&node->op, "strides", 1, 1, 1) &&
                        are_all(&node->op, "pads", 0, 0, 0);
    return is_row || e[1] % WINDOW_CHANNEL_MULTIPLE == 0;
}

// Whether it could be the second.
static bool is_bare_point(const rondo_program *program, const rondo__node *node) {
    const int64_t *e = program->values[node->inputs[INPUT_W]].constant.shape.extent;
    return e[2] == 1 && e[3] == 1 && are_all(&node->op, "pads", 0, 0, 0);
}

// The sum of both biases, each of which may be missing.
static rondo_status add_biases(rondo_program *program, int32_t first, int32_t second,
                               int32_t *out_sum) {
    rondo_tensor sum;
    *out_sum = first >= 0 ? first : second;
    if (first < 0 || second < 0) {
        return RONDO_STATUS_OK;
    }
    const rondo_tensor *a = &program->values[first].constant;
    const rondo_tensor *b = &program->values[second].constant;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F16, &a->shape, &sum));
    for (int64_t i = 0; i < a->shape.extent[0]; ++i) {
        ((uint16_t *)sum.data)[i] =
            rondo_f16_from_float(rondo_f16_to_float(((const uint16_t *)a->data)[i]) +
                                 rondo_f16_to_float(((const uint16_t *)b->data)[i]));
    }
    const rondo_status status = rondo__program_add_constant(program, "biases", &sum, out_sum);
    rondo_tensor_deinit(&sum);
    return status;
}

// Gives node `n` the work of both; `first` is one of them, `second` the other.
static rondo_status join(rondo_program *program, size_t n, size_t first, size_t second) {
    int32_t bias = RONDO__VALUE_NONE;
    size_t first_count = 0, second_count = 0;
    RETURN_IF_ERROR(add_biases(program, rondo__match_input(&program->nodes[first], INPUT_BIAS),
                               rondo__match_input(&program->nodes[second], INPUT_BIAS), &bias));
    rondo__node *node = &program->nodes[n];
    const int64_t *strides =
        rondo__op_get_ints(&program->nodes[second].op, "strides", &second_count);
    const int64_t *own = rondo__op_get_ints(&program->nodes[first].op, "strides", &first_count);
    int64_t of_first[2] = {1, 1};
    if (first_count == 2) {
        memcpy(of_first, own, sizeof of_first);
    }
    if (second_count > 0) {
        RETURN_IF_ERROR(rondo__op_set_ints(&node->op, "second_strides", strides, second_count));
    }
    RETURN_IF_ERROR(rondo__op_set_ints(&node->op, "strides", of_first, 2));
    int32_t *inputs = rondo__calloc(INPUTS, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo__node *a = &program->nodes[first], *b = &program->nodes[second];
    const int32_t from[INPUTS] = {a->inputs[0],      a->inputs[INPUT_W], bias,
                                  RONDO__VALUE_NONE, b->inputs[0],       b->inputs[INPUT_W]};
    memcpy(inputs, from, sizeof from);
    rondo__free(node->inputs);
    node->inputs = inputs;
    node->input_count = node->explicit_count = INPUTS;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    const int32_t z = rondo__match_input(node, INPUT_RESIDUAL);
    if (!is_convolution(program, node) || z < 0 || r->uses.is_output[z] ||
        rondo__uses_get_single(&r->uses, z) != (int32_t)n) {
        return RONDO_STATUS_OK;
    }
    const int32_t other = program->values[z].producer;
    if (other < 0 || r->remove[other] || !is_shortcut(program, &program->nodes[other])) {
        return RONDO_STATUS_OK;
    }
    const bool is_first = leads(program, node);
    if (!is_first && !(leads(program, &program->nodes[other]) && is_bare_point(program, node))) {
        return RONDO_STATUS_OK;
    }
    r->remove[other] = true;
    return is_first ? join(program, n, n, (size_t)other) : join(program, n, (size_t)other, n);
}

rondo_status rondo__pass_shortcut(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
