// program/backward/pass_conv_back.c — ConvTranspose with weights that change, as gradients of
// convolutions with steps are, becomes a Conv of images with zeros between their pixels:
//
//   ConvTranspose(x, w)  =  Conv(InsertZeros(x), w turned round, channels exchanged)
//
// A window of one pixel comes first, and the zeros behind it. See pass_transposed.c for weights
// that are constant. What turns weights round (rondo.TurnFilters) is found, too, where gradients of
// convolutions without steps write it: Transpose(Slice(w)).
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "op/image/convolution.h"
#include "op/op.h"
#include "program/backward/backward.h"
#include "program/backward/match_tree.h"
#include "program/passes/match.h"
#include "program/passes/rewrite.h"

enum { AXES = 2 };

typedef struct form {
    rondo__convolution c;
    int64_t pads[2 * AXES];
    bool is_point;
} form;

static bool read_form(const rondo_program *program, const rondo__node *node, form *f) {
    rondo_shape x, w;
    if (!rondo__node_is(node, RONDO__OP_ConvTranspose) ||
        rondo__value_is_constant(&program->values[node->inputs[1]]) ||
        (node->input_count > 2 && node->inputs[2] >= 0) ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[node->inputs[1]], &w) || x.rank != 2 + AXES ||
        program->values[node->inputs[0]].dtype != RONDO_DTYPE_F32 ||
        rondo__convolution_init_transposed(&node->op, &x, &w, &f->c) != RONDO_STATUS_OK ||
        f->c.group != 1) {
        return false;
    }
    f->is_point = true;
    bool fits = false;
    for (int d = 0; d < AXES; ++d) {
        const rondo__window *win = &f->c.window;
        const int64_t span = (win->kernel[d] - 1) * win->dilation[d];
        f->pads[d] = span - win->pad_begin[d];
        f->pads[AXES + d] = win->output[d] - win->input[d] * win->stride[d] - f->pads[d] + span;
        fits = fits || win->stride[d] > 1;
        f->is_point = f->is_point && span == 0 && f->pads[d] == 0 && f->pads[AXES + d] == 0;
    }
    return fits && f->pads[0] >= 0 && f->pads[1] >= 0 && f->pads[2] >= 0 && f->pads[3] >= 0;
}

// Adds a node that makes a value of this shape.
static rondo_status add(rondo_program *program, size_t like, const char *domain, const char *name,
                        const int32_t *inputs, size_t count, const rondo_shape *shape,
                        int32_t *in_out_value) {
    const char *of = program->nodes[like].op.name;
    const uint8_t precision = program->nodes[like].precision;
    if (*in_out_value < 0) {
        RETURN_IF_ERROR(
            rondo__program_add_shaped(program, of, RONDO_DTYPE_F32, shape, in_out_value));
    } else {
        program->values[*in_out_value].producer = -1;
    }
    RETURN_IF_ERROR(rondo__program_add_simple(program, domain, name, program->nodes[like].op.name,
                                              inputs, count, in_out_value, 1));
    program->nodes[program->node_count - 1].precision = precision;
    return RONDO_STATUS_OK;
}

static rondo__op *get_last(rondo_program *program) {
    return &program->nodes[program->node_count - 1].op;
}

// [in, out, kernel...] turned round, as [out, in, kernel...].
static rondo_status turn_weights(rondo_program *program, size_t n, const form *f,
                                 int32_t *out_weights) {
    const rondo_shape turned = {
        .rank = 4,
        .extent = {f->c.filters, f->c.channels, f->c.window.kernel[0], f->c.window.kernel[1]}};
    *out_weights = RONDO__VALUE_NONE;
    return add(program, n, "rondo", "TurnFilters", &program->nodes[n].inputs[1], 1, &turned,
               out_weights);
}

static rondo_status add_zeros(rondo_program *program, size_t n, const form *f, int32_t x,
                              int64_t channels, int32_t *in_out_y) {
    const rondo__window *w = &f->c.window;
    const rondo_shape shape = {
        .rank = 4,
        .extent = {f->c.batch, channels, w->input[0] * w->stride[0], w->input[1] * w->stride[1]}};
    RETURN_IF_ERROR(add(program, n, "rondo", "InsertZeros", &x, 1, &shape, in_out_y));
    return rondo__op_set_ints(get_last(program), "strides", w->stride, AXES);
}

static rondo_status rewrite(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    form f;
    if (!read_form(program, &program->nodes[n], &f)) {
        return RONDO_STATUS_OK;
    }
    const rondo__window *w = &f.c.window;
    const int32_t result = program->nodes[n].outputs[0];
    int32_t inputs[2] = {program->nodes[n].inputs[0], RONDO__VALUE_NONE};
    int32_t wide = RONDO__VALUE_NONE, made = f.is_point ? RONDO__VALUE_NONE : result;
    const rondo_shape small = {.rank = 4,
                               .extent = {f.c.batch, f.c.filters, w->input[0], w->input[1]}};
    RETURN_IF_ERROR(turn_weights(program, n, &f, &inputs[1]));
    if (!f.is_point) {
        RETURN_IF_ERROR(add_zeros(program, n, &f, inputs[0], f.c.channels, &wide));
        inputs[0] = wide;
    }
    RETURN_IF_ERROR(add(program, n, "", "Conv", inputs, 2, &small, &made));
    RETURN_IF_ERROR(rondo__op_set_ints(get_last(program), "pads", f.pads, (size_t)2 * AXES));
    RETURN_IF_ERROR(rondo__op_set_ints(get_last(program), "dilations", w->dilation, AXES));
    if (f.is_point) {
        wide = result;
        RETURN_IF_ERROR(add_zeros(program, n, &f, made, f.c.filters, &wide));
    }
    r->remove[n] = true;
    return RONDO_STATUS_OK;
}

// Whether the node takes all elements of axes 2 and 3 from the last to the first.
static bool turns_round(const rondo_program *program, const rondo__node *slice) {
    static const int64_t axes[AXES] = {2, 3};
    bool turns = slice->input_count == 5;
    for (size_t i = 1; i < 5 && turns; ++i) {
        int64_t list[RONDO_RANK_MAX];
        turns = rondo__match_ints(program, slice->inputs[i], list) == AXES;
        for (int d = 0; d < AXES && turns; ++d) {
            turns = i == 2 ? list[d] <= INT32_MIN : i == 3 ? list[d] == axes[d] : list[d] == -1;
        }
    }
    return turns;
}

static rondo_status name_turned(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    const int32_t maker =
        rondo__node_is(node, RONDO__OP_Transpose) ? program->values[node->inputs[0]].producer : -1;
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    rondo_shape w, turned;
    if (maker < 0 || !rondo__node_is(&program->nodes[maker], RONDO__OP_Slice) || count != 4 ||
        perm[0] != 1 || perm[1] != 0 || perm[2] != 2 || perm[3] != 3 ||
        !turns_round(program, &program->nodes[maker])) {
        return RONDO_STATUS_OK;
    }
    const int32_t from = program->nodes[maker].inputs[0];
    int32_t result = node->outputs[0];
    if (program->values[from].dtype != RONDO_DTYPE_F32 ||
        !rondo__value_get_shape(&program->values[from], &w) ||
        !rondo__value_get_shape(&program->values[result], &turned) || w.rank != 2 + AXES) {
        return RONDO_STATUS_OK;
    }
    r->remove[n] = true;
    return add(program, n, "rondo", "TurnFilters", &from, 1, &turned, &result);
}

rondo_status rondo__pass_conv_back(rondo_program *program) {
    RETURN_IF_ERROR(rondo__program_rewrite(program, name_turned));
    return rondo__program_rewrite(program, rewrite);
}
