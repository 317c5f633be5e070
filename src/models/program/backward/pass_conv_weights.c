// program/backward/pass_conv_weights.c — how a convolution changes with its weights, as gradients
// write it (gradient/rules_image.c), becomes rondo.ConvWeights:
//
//   Transpose(Reshape(ReduceSum(MatMul(Reshape(dy), Transpose(Reshape(seen))))))
//   seen = Concat of a Slice for each tap, of Pad(x)
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "program/backward/backward.h"
#include "program/backward/match_tree.h"
#include "program/passes/match.h"
#include "program/passes/rewrite.h"

enum { AXES = 2, IMAGE_RANK = AXES + 2 };

typedef struct form {
    int32_t dy, x, seen;
    rondo_shape dy_shape, x_shape;
    int64_t kernel[AXES], stride[AXES], dilation[AXES];
    int64_t pads[2 * AXES];
} form;

static bool is_single_image(const rondo_program *program, int32_t value, rondo_shape *out_shape) {
    const rondo__value *v = &program->values[value];
    return v->dtype == RONDO_DTYPE_F32 && !rondo__value_is_constant(v) &&
           rondo__value_get_shape(v, out_shape) && out_shape->rank == IMAGE_RANK;
}

// Pads of the two last axes, of zeros; without a Pad none.
static bool read_pad(const rondo_program *program, int32_t padded, form *f) {
    int64_t list[RONDO_RANK_MAX];
    float zero = 0.0f;
    const rondo__node *pad = rondo__match_maker(program, padded, RONDO__OP_Pad);
    f->x = padded;
    if (pad == NULL) {
        return true;
    }
    f->x = pad->inputs[0];
    if (rondo__match_ints(program, pad->inputs[1], list) != 2 * IMAGE_RANK ||
        (pad->input_count > 2 && pad->inputs[2] >= 0 &&
         (!rondo__match_scalar(program, pad->inputs[2], &zero) || zero != 0.0f)) ||
        (pad->input_count > 3 && pad->inputs[3] >= 0) || rondo__op_find(&pad->op, "mode") != NULL ||
        list[0] != 0 || list[1] != 0 || list[IMAGE_RANK] != 0 || list[IMAGE_RANK + 1] != 0) {
        return false;
    }
    for (int d = 0; d < AXES; ++d) {
        f->pads[d] = list[2 + d];
        f->pads[AXES + d] = list[IMAGE_RANK + 2 + d];
    }
    return f->pads[0] >= 0 && f->pads[1] >= 0 && f->pads[2] >= 0 && f->pads[3] >= 0;
}

// What tap (y, x) of each window saw; the first taps tell the dilation.
static bool is_tap(const rondo_program *program, int32_t seen, int32_t padded, int64_t tap,
                   form *f) {
    int64_t starts[RONDO_RANK_MAX], ends[RONDO_RANK_MAX], axes[RONDO_RANK_MAX],
        steps[RONDO_RANK_MAX];
    const rondo__node *slice = rondo__match_maker(program, seen, RONDO__OP_Slice);
    const int64_t at[AXES] = {tap / f->kernel[1], tap % f->kernel[1]};
    if (slice == NULL || slice->input_count != 5 || slice->inputs[0] != padded ||
        rondo__match_ints(program, slice->inputs[1], starts) != AXES ||
        rondo__match_ints(program, slice->inputs[2], ends) != AXES ||
        rondo__match_ints(program, slice->inputs[3], axes) != AXES ||
        rondo__match_ints(program, slice->inputs[4], steps) != AXES) {
        return false;
    }
    for (int d = 0; d < AXES; ++d) {
        if (tap == 0) {
            f->stride[d] = steps[d];
        }
        if (at[d] == 1 && f->dilation[d] == 0) {
            f->dilation[d] = starts[d];
        }
        if (axes[d] != 2 + d || steps[d] != f->stride[d] || steps[d] < 1 ||
            starts[d] != at[d] * f->dilation[d] ||
            ends[d] != starts[d] + (f->dy_shape.extent[2 + d] - 1) * steps[d] + 1) {
            return false;
        }
    }
    return true;
}

static bool read_taps(const rondo_program *program, int32_t seen, form *f) {
    const int64_t taps = f->kernel[0] * f->kernel[1];
    const rondo__node *concat = rondo__match_maker(program, seen, RONDO__OP_Concat);
    const int32_t *parts = concat != NULL ? concat->inputs : &seen;
    if ((concat != NULL ? (int64_t)concat->input_count : 1) != taps ||
        (concat != NULL && rondo__op_get_int(&concat->op, "axis", 0) != 1)) {
        return false;
    }
    const rondo__node *first = rondo__match_maker(program, parts[0], RONDO__OP_Slice);
    if (first == NULL || !read_pad(program, first->inputs[0], f)) {
        return false;
    }
    for (int64_t t = 0; t < taps; ++t) {
        if (!is_tap(program, parts[t], first->inputs[0], t, f)) {
            return false;
        }
    }
    for (int d = 0; d < AXES; ++d) {
        f->dilation[d] = f->dilation[d] > 0 ? f->dilation[d] : 1;
    }
    return true;
}

static bool has_perm(const rondo__node *node, const int64_t *want, size_t count) {
    size_t have;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &have);
    bool is_same = perm != NULL && have == count;
    for (size_t i = 0; i < count && is_same; ++i) {
        is_same = perm[i] == want[i];
    }
    return is_same;
}

// [filters, kernel..., channels] before the last Transpose; the sum is over axis 0.
static bool read_form(const rondo_program *program, const rondo__node *node, form *f) {
    static const int64_t last[] = {0, 3, 1, 2}, swapped[] = {0, 2, 1};
    rondo__tree tree = {0};
    rondo_shape split, flat, images;
    int64_t axes[RONDO_RANK_MAX];
    if (!has_perm(node, last, IMAGE_RANK) ||
        !rondo__match_tree(program, node->inputs[0],
                           "s=Reshape(ReduceSum(MatMul(r=Reshape(d),t=Transpose(i=Reshape(c))),a))",
                           &tree) ||
        !rondo__value_get_shape(&program->values[tree.value['s']], &split) ||
        !rondo__value_get_shape(&program->values[tree.value['r']], &flat) ||
        !rondo__value_get_shape(&program->values[tree.value['c']], &images) ||
        !is_single_image(program, tree.value['d'], &f->dy_shape) || split.rank != IMAGE_RANK ||
        flat.rank != 3 || images.rank != IMAGE_RANK || flat.extent[0] != f->dy_shape.extent[0] ||
        flat.extent[1] != f->dy_shape.extent[1] ||
        rondo__match_ints(program, tree.value['a'], axes) != 1 || axes[0] != 0 ||
        !has_perm(rondo__match_maker(program, tree.value['t'], RONDO__OP_Transpose), swapped, 3)) {
        return false;
    }
    f->dy = tree.value['d'];
    f->seen = tree.value['c'];
    f->kernel[0] = split.extent[1];
    f->kernel[1] = split.extent[2];
    return split.extent[0] == f->dy_shape.extent[1] && read_taps(program, tree.value['c'], f) &&
           is_single_image(program, f->x, &f->x_shape) && f->x_shape.extent[1] == split.extent[3] &&
           images.extent[1] == split.extent[1] * split.extent[2] * split.extent[3] &&
           images.extent[2] == f->dy_shape.extent[2] && images.extent[3] == f->dy_shape.extent[3];
}

// Pads at the ends may be more than the windows see; the op has as many as they do.
static void cut_pads(form *f) {
    for (int d = 0; d < AXES; ++d) {
        const int64_t seen = (f->dy_shape.extent[2 + d] - 1) * f->stride[d] +
                             (f->kernel[d] - 1) * f->dilation[d] + 1;
        const int64_t end = seen - f->x_shape.extent[2 + d] - f->pads[d];
        f->pads[AXES + d] = end > 0 ? end : 0;
    }
}

// Turns the node into the op, which has the attributes of the Conv.
static rondo_status become(rondo__rewriting *r, size_t n, rondo__op_id id, const form *f,
                           const int32_t *from, size_t count) {
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX, .def = rondo__op_get_def(id)};
    int32_t *inputs = rondo__calloc(count, sizeof *inputs);
    rondo_status status = inputs != NULL ? rondo__op_set_ints(&op, "kernel_shape", f->kernel, AXES)
                                         : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_ints(&op, "strides", f->stride, AXES);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_ints(&op, "dilations", f->dilation, AXES);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_ints(&op, "pads", f->pads, (size_t)2 * AXES);
    }
    if (status == RONDO_STATUS_OK && id == RONDO__FUSED_ConvWeights) {
        status = rondo__op_set_int(&op, "may_round", 1);  // as products of the way back do
    }
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        return status;
    }
    memcpy(inputs, from, count * sizeof *inputs);
    rondo__node_become(&r->program->nodes[n], &op, inputs, count);
    return RONDO_STATUS_OK;
}

static bool find(const rondo_program *program, size_t n, form *f) {
    if (!rondo__node_is(&program->nodes[n], RONDO__OP_Transpose) ||
        !read_form(program, &program->nodes[n], f)) {
        return false;
    }
    cut_pads(f);
    return true;
}

static rondo_status rewrite(rondo__rewriting *r, size_t n) {
    form f = {0};
    if (!find(r->program, n, &f)) {
        return RONDO_STATUS_OK;
    }
    return become(r, n, RONDO__FUSED_ConvWeights, &f, (const int32_t[]){f.dy, f.x}, 2);
}

rondo_status rondo__pass_conv_weights(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite);
}

// The product stays, and one op makes what it reads.
static rondo_status unfold(rondo__rewriting *r, size_t n) {
    form f = {0};
    if (!find(r->program, n, &f) ||
        rondo__match_maker(r->program, f.seen, RONDO__OP_Concat) == NULL) {
        return RONDO_STATUS_OK;
    }
    return become(r, (size_t)r->program->values[f.seen].producer, RONDO__FUSED_Unfold, &f, &f.x, 1);
}

rondo_status rondo__pass_unfold(rondo_program *program) {
    return rondo__program_rewrite(program, unfold);
}
