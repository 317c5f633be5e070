// program/attention/pass_rotate.c — names the rotation by position that exporters write out in
// small ops, rondo.Rotate.
//
//   x ─┬──────────────────────────────────────────── Mul cosines ──┐
//      ├─ Slice (second half of the last axis) ── Neg ──┐          Add ── y
//      └─ Slice (first half) ────────────────────────── Concat ── Mul sines ──┘
//
// The halves may be a Split's. In a plan, where shapes and types are known.
//
// Then what stands behind the joined product of several rows (pass_join.c) becomes one rotation of
// heads, which reads the product as it is:
//
//   Split ─┬─ Reshape ── Transpose ── rondo.Rotate ── q          rondo.Rotate (heads) ─┬─ q
//          ├─ Reshape ── Transpose ── rondo.Rotate ── k                                ├─ k
//          └─ Reshape ── Transpose ── v                                                └─ v
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/fused/rotate.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/view.h"

enum { RANK_MAX = 4 };

static const rondo__node *get_maker(const rondo__rewriting *r, int32_t value) {
    const int32_t maker = value >= 0 ? r->program->values[value].producer : -1;
    return maker >= 0 && !r->remove[maker] ? &r->program->nodes[maker] : NULL;
}

static bool is_alone(const rondo__rewriting *r, int32_t value) {
    return rondo__uses_get_single(&r->uses, value) >= 0;
}

// The value whose part this is; RONDO__VALUE_NONE: of none.
static int32_t get_whole(const rondo__rewriting *r, int32_t part) {
    const rondo__node *node = get_maker(r, part);
    return node != NULL &&
                   (rondo__node_is(node, RONDO__OP_Slice) || rondo__node_is(node, RONDO__OP_Split))
               ? node->inputs[0]
               : RONDO__VALUE_NONE;
}

// Whether the part is half of x's last axis, from `begin` on.
static bool is_half(const rondo_program *program, int32_t part, int32_t x, int64_t begin) {
    rondo__view of_part, of_x;
    rondo_shape shape;
    rondo__view_trace(program, part, false, &of_part);
    rondo__view_trace(program, x, false, &of_x);
    const int32_t last = of_x.rank - 1;
    if (of_part.base != of_x.base || of_part.rank != of_x.rank || of_x.rank == 0 ||
        !rondo__value_get_shape(&program->values[x], &shape) || shape.extent[last] % 2 != 0 ||
        of_part.offset != of_x.offset + begin * of_x.stride[last]) {
        return false;
    }
    for (int32_t d = 0; d < of_x.rank; ++d) {
        const int64_t extent = d == last ? of_x.extent[d] / 2 : of_x.extent[d];
        if (of_part.extent[d] != extent || (extent > 1 && of_part.stride[d] != of_x.stride[d])) {
            return false;
        }
    }
    return true;
}

// The x of whose halves the Concat makes a quarter turn; RONDO__VALUE_NONE: it does not.
static int32_t get_turned(const rondo__rewriting *r, const rondo__node *concat) {
    const rondo_program *program = r->program;
    rondo_shape shape;
    if (concat->input_count != 2 || !is_alone(r, concat->outputs[0]) ||
        !rondo__value_get_shape(&program->values[concat->outputs[0]], &shape) || shape.rank == 0 ||
        shape.rank > RANK_MAX) {
        return RONDO__VALUE_NONE;
    }
    const int64_t axis = rondo__op_get_int(&concat->op, "axis", 0);
    const rondo__node *negation = get_maker(r, concat->inputs[0]);
    if ((axis != -1 && axis != shape.rank - 1) || negation == NULL ||
        !rondo__node_is(negation, RONDO__OP_Neg) || !is_alone(r, concat->inputs[0])) {
        return RONDO__VALUE_NONE;
    }
    const int32_t first = concat->inputs[1], second = negation->inputs[0];
    const int32_t x = get_whole(r, first);
    return x >= 0 && get_whole(r, second) == x && is_half(program, first, x, 0) &&
                   is_half(program, second, x, shape.extent[shape.rank - 1] / 2)
               ? x
               : RONDO__VALUE_NONE;
}

static int32_t get_other(const rondo__node *node, int32_t value) {
    return node->inputs[node->inputs[0] == value ? 1 : 0];
}

// Whether angles broadcast to x, in its type.
static bool are_angles(const rondo_program *program, int32_t angles, int32_t x) {
    rondo_shape own, all;
    const rondo__value *value = &program->values[angles];
    const rondo_dtype dtype = program->values[x].dtype;
    if (!rondo__value_get_shape(value, &own) ||
        !rondo__value_get_shape(&program->values[x], &all) || own.rank > all.rank ||
        (rondo__value_is_constant(value) ? value->constant.dtype : value->dtype) != dtype ||
        (dtype != RONDO_DTYPE_F32 && dtype != RONDO_DTYPE_F16)) {
        return false;
    }
    for (int32_t d = 1; d <= own.rank; ++d) {
        if (own.extent[own.rank - d] != 1 && own.extent[own.rank - d] != all.extent[all.rank - d]) {
            return false;
        }
    }
    return true;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *concat = &program->nodes[n];
    if (r->remove[n] || !rondo__node_is(concat, RONDO__OP_Concat)) {
        return RONDO_STATUS_OK;
    }
    const int32_t x = get_turned(r, concat), turned = concat->outputs[0];
    const int32_t by_sines = x >= 0 ? rondo__uses_get_single(&r->uses, turned) : -1;
    if (by_sines < 0 || !rondo__node_is(&program->nodes[by_sines], RONDO__OP_Mul)) {
        return RONDO_STATUS_OK;
    }
    const int32_t product = program->nodes[by_sines].outputs[0];
    const int32_t sum = rondo__uses_get_single(&r->uses, product);
    if (sum < 0 || !rondo__node_is(&program->nodes[sum], RONDO__OP_Add)) {
        return RONDO_STATUS_OK;
    }
    const int32_t straight = get_other(&program->nodes[sum], product);
    const rondo__node *by_cosines = get_maker(r, straight);
    if (by_cosines == NULL || !rondo__node_is(by_cosines, RONDO__OP_Mul) ||
        !is_alone(r, straight) || (by_cosines->inputs[0] != x && by_cosines->inputs[1] != x)) {
        return RONDO_STATUS_OK;
    }
    const int32_t cosines = get_other(by_cosines, x);
    const int32_t sines = get_other(&program->nodes[by_sines], turned);
    if (!are_angles(program, cosines, x) || !are_angles(program, sines, x)) {
        return RONDO_STATUS_OK;
    }
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX, .def = rondo__op_get_def(RONDO__FUSED_Rotate)};
    int32_t *inputs = rondo__calloc(3, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = x;
    inputs[1] = cosines;
    inputs[2] = sines;
    rondo__node_become(&program->nodes[sum], &op, inputs, 3);
    return RONDO_STATUS_OK;
}

// ---- heads ------------------------------------------------------------------------------------

typedef struct heads {
    int32_t x, outputs[RONDO__ROTATE_PARTS_MOST], angles[2];
    size_t count, turned;
    int64_t heads[RONDO__ROTATE_PARTS_MOST], columns, width;  // columns: of the parts so far
    size_t gone_count, gone[3 * RONDO__ROTATE_PARTS_MOST];
    size_t first;  // rotation
} heads;

// Whether angles are the same for all heads.
static bool are_for_heads(const rondo_program *program, int32_t angles) {
    rondo_shape shape;
    return rondo__value_get_shape(&program->values[angles], &shape) && shape.rank <= 4 &&
           (shape.rank < 3 || shape.extent[shape.rank - 3] == 1);
}

// Follows a part of the Split as far as heads stand in front of rows.
static bool take_heads(const rondo__rewriting *r, int32_t part, heads *h) {
    const rondo_program *program = r->program;
    int32_t value = part, user = rondo__uses_get_single(&r->uses, part);
    for (int i = 0; i < 2 && user >= 0 && !r->remove[user] &&
                    ((program->nodes[user].op.def->flags & RONDO__OP_VIEW) != 0 ||
                     rondo__node_is(&program->nodes[user], RONDO__OP_Transpose));
         ++i) {
        h->gone[h->gone_count++] = (size_t)user;
        value = program->nodes[user].outputs[0];
        user = rondo__uses_get_single(&r->uses, value);
    }
    rondo__view view;
    rondo_shape x;
    rondo__view_trace(program, value, false, &view);
    if (view.base != h->x || view.rank != 4 || view.stride[3] != 1 || view.extent[3] % 2 != 0 ||
        !rondo__value_get_shape(&program->values[h->x], &x) || x.rank != 3 ||
        view.extent[0] != x.extent[0] || view.extent[2] != x.extent[1] ||
        view.offset != h->columns || (h->width != 0 && view.extent[3] != h->width) ||
        (view.extent[0] > 1 && view.stride[0] != x.extent[1] * x.extent[2]) ||
        (view.extent[1] > 1 && view.stride[1] != view.extent[3]) ||
        (view.extent[2] > 1 && view.stride[2] != x.extent[2])) {
        return false;
    }
    h->width = view.extent[3];
    h->columns += view.extent[1] * view.extent[3];
    h->heads[h->count] = view.extent[1];
    const rondo__node *rotate = user >= 0 && !r->remove[user] ? &program->nodes[user] : NULL;
    if (rotate != NULL && rondo__node_is(rotate, RONDO__FUSED_Rotate) &&
        rotate->output_count == 1 && rotate->inputs[0] == value && h->turned == h->count &&
        are_for_heads(program, rotate->inputs[1]) && are_for_heads(program, rotate->inputs[2]) &&
        (h->turned == 0 ||
         (rotate->inputs[1] == h->angles[0] && rotate->inputs[2] == h->angles[1]))) {
        h->first = h->turned == 0 ? (size_t)user : h->first;
        h->angles[0] = rotate->inputs[1];
        h->angles[1] = rotate->inputs[2];
        h->turned += 1;
        h->gone[h->gone_count++] = (size_t)user;
        value = rotate->outputs[0];
    }
    h->outputs[h->count++] = value;
    return value != part;
}

// Whether the angles are made of what the Split makes: one node cannot take them and make it.
static rondo_status need_split(const rondo_program *program, const rondo__node *split,
                               const int32_t angles[2], bool *out_need) {
    bool *reached = rondo__calloc(program->value_count + 1, sizeof *reached);
    if (reached == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < split->output_count; ++i) {
        reached[split->outputs[i]] = true;
    }
    // Nodes stand behind what they read, but for those of this pass, which stand last.
    for (bool grows = true; grows;) {
        grows = false;
        for (size_t n = 0; n < program->node_count; ++n) {
            const rondo__node *node = &program->nodes[n];
            bool reads = false;
            for (size_t i = 0; i < node->input_count && !reads; ++i) {
                reads = node->inputs[i] >= 0 && reached[node->inputs[i]];
            }
            for (size_t i = 0; i < node->output_count && reads; ++i) {
                if (node->outputs[i] >= 0 && !reached[node->outputs[i]]) {
                    reached[node->outputs[i]] = grows = true;
                }
            }
        }
    }
    *out_need = reached[angles[0]] || reached[angles[1]];
    rondo__free(reached);
    return RONDO_STATUS_OK;
}

static rondo_status join_heads(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *split = &program->nodes[n];
    heads h = {0};
    rondo_shape x;
    if (r->remove[n] || !rondo__node_is(split, RONDO__OP_Split) || split->output_count < 2 ||
        split->output_count > RONDO__ROTATE_PARTS_MOST ||
        !rondo__value_get_shape(&program->values[split->inputs[0]], &x) || x.rank != 3 ||
        x.extent[0] * x.extent[1] < 2) {
        return RONDO_STATUS_OK;
    }
    h.x = split->inputs[0];
    for (size_t i = 0; i < split->output_count; ++i) {
        if (split->outputs[i] < 0 || !take_heads(r, split->outputs[i], &h)) {
            return RONDO_STATUS_OK;
        }
    }
    if (h.turned == 0 || h.columns != x.extent[2]) {
        return RONDO_STATUS_OK;
    }
    bool need = false;
    RETURN_IF_ERROR(need_split(program, split, h.angles, &need));
    if (need) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < h.gone_count; ++i) {
        r->remove[h.gone[i]] = true;
    }
    r->remove[n] = true;
    for (size_t i = 0; i < h.count; ++i) {
        program->values[h.outputs[i]].producer = -1;
    }
    const int32_t inputs[3] = {h.x, h.angles[0], h.angles[1]};
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "Rotate",
                                              program->values[h.outputs[0]].name, inputs, 3,
                                              h.outputs, h.count));
    rondo__node *node = &program->nodes[program->node_count - 1];
    node->precision = program->nodes[h.first].precision;
    node->place = program->nodes[h.first].place;
    RETURN_IF_ERROR(rondo__op_set_ints(&node->op, "heads", h.heads, h.count));
    return rondo__op_set_int(&node->op, "turned", (int64_t)h.turned);
}

rondo_status rondo__pass_rotate_heads(rondo_program *program) {
    return rondo__program_rewrite(program, join_heads);
}

rondo_status rondo__pass_rotate(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
