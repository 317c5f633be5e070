// program/passes/pass_concat.c — a Concat of images in NHWC reads what lies in blocks where it is:
//
//   before   x ── Reshape ── Transpose ── Reshape ──┐    DepthToSpace, behind a ConvTranspose
//                                            z ─── Concat    along channels
//   after    x, z ── rondo.Concat
//
// The Transpose would be a launch of its own, which moves what the Concat moves again.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

enum { IMAGE_RANK = 4, BLOCK_RANK = 6 };

static bool is_turn_of_blocks(const rondo__node *node) {
    static const int64_t perm[BLOCK_RANK] = {0, 1, 3, 2, 4, 5};
    const rondo__attribute *attribute = rondo__op_find(&node->op, "perm");
    return attribute != NULL && attribute->count == BLOCK_RANK &&
           memcmp(attribute->ints, perm, sizeof perm) == 0;
}

// The image in blocks of which operand `value` of a Concat is made, and the side of a block; the
// value itself, and 1, where it is not made so.
static int32_t find_source(const rondo__rewriting *rewriting, int32_t value, int64_t *out_block) {
    const rondo_program *program = rewriting->program;
    rondo_shape x, blocks, y;
    *out_block = 1;
    const rondo__node *joined = rondo__match_maker(program, value, RONDO__OP_Reshape);
    const rondo__node *turned =
        joined != NULL ? rondo__match_maker(program, joined->inputs[0], RONDO__OP_Transpose) : NULL;
    const rondo__node *split =
        turned != NULL ? rondo__match_maker(program, turned->inputs[0], RONDO__OP_Reshape) : NULL;
    if (split == NULL || !is_turn_of_blocks(turned) ||
        rondo__uses_get_single(&rewriting->uses, value) < 0 ||
        rondo__uses_get_single(&rewriting->uses, joined->inputs[0]) < 0 ||
        !rondo__value_get_shape(&program->values[split->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[turned->inputs[0]], &blocks) ||
        !rondo__value_get_shape(&program->values[value], &y)) {
        return value;
    }
    // [N, H, W, b, b, C], of [N, H, W, b b C], becomes [N, H b, W b, C].
    const int64_t *e = blocks.extent, b = e[3];
    if (x.rank != IMAGE_RANK || y.rank != IMAGE_RANK || e[4] != b || x.extent[0] != e[0] ||
        x.extent[1] != e[1] || x.extent[2] != e[2] || y.extent[1] != e[1] * b ||
        y.extent[2] != e[2] * b || y.extent[3] != e[5]) {
        return value;
    }
    *out_block = b;
    return split->inputs[0];
}

// Images of numbers that all lie in memory: along the last axis, known shapes, no constants.
static bool is_candidate(const rondo_program *program, const rondo__node *node) {
    const rondo__value *y = &program->values[node->outputs[0]];
    rondo_shape shape;
    const int64_t axis = rondo__op_get_int(&node->op, "axis", 0);
    bool is_it = rondo__dtype_is_f32_or_f16(y->dtype) && rondo__value_get_shape(y, &shape) &&
                 shape.rank == IMAGE_RANK && rondo_shape_get_count(&shape) > 0 &&
                 (axis == IMAGE_RANK - 1 || axis == -1) && node->input_count <= INT8_MAX / 2;
    for (size_t i = 0; is_it && i < node->input_count; ++i) {
        const rondo__value *x = &program->values[node->inputs[i]];
        is_it = x->dtype == y->dtype && rondo__value_get_shape(x, &shape) &&
                rondo_shape_get_count(&shape) > 0;
    }
    return is_it;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    rondo__node *node = &rewriting->program->nodes[n];
    if (!rondo__node_is(node, RONDO__OP_Concat) || !is_candidate(rewriting->program, node)) {
        return RONDO_STATUS_OK;
    }
    int64_t blocks[INT8_MAX];
    bool has_blocks = false;
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX, .def = rondo__op_get_def(RONDO__FUSED_Concat)};
    int32_t *inputs = rondo__calloc(node->input_count + 1, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        inputs[i] = find_source(rewriting, node->inputs[i], &blocks[i]);
        has_blocks = has_blocks || blocks[i] > 1;
    }
    const rondo_status status =
        has_blocks ? rondo__op_set_ints(&op, "blocks", blocks, node->input_count) : RONDO_STATUS_OK;
    if (status != RONDO_STATUS_OK || !has_blocks) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        return status;
    }
    rondo__node_become(node, &op, inputs, node->input_count);
    return status;
}

rondo_status rondo__pass_concat(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
