// program/backward/pass_pool_gradient.c — how MaxPool changes with its image, as gradients write it
// (gradient/rules_image.c), becomes rondo.PoolGradient, which finds the maxima again, so that their
// places are not kept.
//
//   one of these for each class of windows that do not overlap, added up; with one class no Slices
//   Reshape(ScatterElements(zeros, Reshape(Slice(places)), Reshape(Slice(dy))))
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/image/pooling.h"
#include "op/op.h"
#include "program/backward/backward.h"
#include "program/backward/match_tree.h"
#include "program/passes/match.h"
#include "program/passes/rewrite.h"

enum { AXES = 2, IMAGE_RANK = AXES + 2, CLASSES_MAX = 8 };

typedef struct classes {
    int32_t dy;
    size_t count;
    int32_t made[CLASSES_MAX];
    int64_t starts[CLASSES_MAX][AXES], steps[AXES];
} classes;

static int32_t get_maker(const rondo_program *program, int32_t value, rondo__op_id op) {
    const int32_t maker = value >= 0 ? program->values[value].producer : -1;
    return maker >= 0 && rondo__node_is(&program->nodes[maker], op) ? maker : -1;
}

static bool is_zero(const rondo_program *program, int32_t value) {
    const rondo_tensor *tensor = &program->values[value].constant;
    float number;
    if (rondo__match_scalar(program, value, &number)) {
        return number == 0.0f;
    }
    bool is_good = tensor->dtype == RONDO_DTYPE_F32;
    for (int64_t i = 0; is_good && i < rondo_shape_get_count(&tensor->shape); ++i) {
        is_good = ((const float *)tensor->data)[i] == 0.0f;
    }
    return is_good;
}

// Zeros, however they are spread.
static bool are_zeros(const rondo_program *program, int32_t value) {
    for (int depth = 0; depth < 4; ++depth) {
        const int32_t maker = program->values[value].producer;
        if (maker < 0 || rondo__value_is_constant(&program->values[value])) {
            break;
        }
        const rondo__node *node = &program->nodes[maker];
        if (rondo__node_is(node, RONDO__OP_ConstantOfShape)) {
            return rondo__op_find(&node->op, "value") == NULL;
        }
        if (!rondo__node_is(node, RONDO__OP_Reshape) && !rondo__node_is(node, RONDO__OP_Expand)) {
            return false;
        }
        value = node->inputs[0];
    }
    return rondo__value_is_constant(&program->values[value]) && is_zero(program, value);
}

// Slice of axes 2 and 3 to their ends.
static bool read_slice(const rondo_program *program, const rondo__node *slice, int64_t *starts,
                       int64_t *steps) {
    int64_t ends[RONDO_RANK_MAX], axes[RONDO_RANK_MAX], lists[2][RONDO_RANK_MAX];
    if (slice->input_count != 5 || rondo__match_ints(program, slice->inputs[1], lists[0]) != AXES ||
        rondo__match_ints(program, slice->inputs[2], ends) != AXES ||
        rondo__match_ints(program, slice->inputs[3], axes) != AXES ||
        rondo__match_ints(program, slice->inputs[4], lists[1]) != AXES) {
        return false;
    }
    for (int d = 0; d < AXES; ++d) {
        starts[d] = lists[0][d];
        steps[d] = lists[1][d];
        if (axes[d] != 2 + d || ends[d] != INT64_MAX || starts[d] < 0 || starts[d] >= steps[d]) {
            return false;
        }
    }
    return true;
}

// The class whose places come as `value`, from which a Slice has taken some, or none has.
static bool read_class(const rondo__rewriting *r, int32_t value, bool is_cut, classes *c) {
    const rondo_program *program = r->program;
    const int32_t reshape = rondo__uses_get_single(&r->uses, value);
    const int32_t scatter =
        reshape >= 0 && rondo__node_is(&program->nodes[reshape], RONDO__OP_Reshape)
            ? rondo__uses_get_single(&r->uses, program->nodes[reshape].outputs[0])
            : -1;
    rondo__tree tree = {0};
    if (scatter < 0 || !rondo__node_is(&program->nodes[scatter], RONDO__OP_ScatterElements) ||
        program->nodes[scatter].inputs[1] != program->nodes[reshape].outputs[0] ||
        !are_zeros(program, program->nodes[scatter].inputs[0]) ||
        !rondo__match_tree(program, program->nodes[scatter].inputs[2], "Reshape(d)", &tree)) {
        return false;
    }
    int32_t dy = tree.value['d'];
    if (is_cut) {
        int64_t starts[AXES], steps[AXES];
        const int32_t slice = get_maker(program, dy, RONDO__OP_Slice);
        if (slice < 0 || !read_slice(program, &program->nodes[slice], starts, steps) ||
            memcmp(starts, c->starts[c->count], sizeof starts) != 0 ||
            memcmp(steps, c->steps, sizeof steps) != 0) {
            return false;
        }
        dy = program->nodes[slice].inputs[0];
    }
    const int32_t last = rondo__uses_get_single(&r->uses, program->nodes[scatter].outputs[0]);
    if ((c->count > 0 && dy != c->dy) || last < 0 ||
        !rondo__node_is(&program->nodes[last], RONDO__OP_Reshape)) {
        return false;
    }
    c->dy = dy;
    c->made[c->count++] = program->nodes[last].outputs[0];
    return true;
}

// All that is made of the places.
static bool read_classes(const rondo__rewriting *r, int32_t places, classes *c) {
    const size_t first = r->uses.first[places], end = r->uses.first[places + 1];
    if (r->uses.is_output[places] || first == end || end - first > CLASSES_MAX) {
        return false;
    }
    if (end - first == 1 &&
        rondo__node_is(&r->program->nodes[r->uses.users[first]], RONDO__OP_Reshape)) {
        return read_class(r, places, false, c);
    }
    for (size_t u = first; u < end; ++u) {
        const rondo__node *slice = &r->program->nodes[r->uses.users[u]];
        int64_t steps[AXES];
        if (!rondo__node_is(slice, RONDO__OP_Slice) ||
            !read_slice(r->program, slice, c->starts[c->count], steps) ||
            (u > first && memcmp(steps, c->steps, sizeof steps) != 0)) {
            return false;
        }
        memcpy(c->steps, steps, sizeof steps);
        for (size_t k = 0; k < c->count; ++k) {
            if (memcmp(c->starts[k], c->starts[c->count], sizeof c->starts[k]) == 0) {
                return false;
            }
        }
        if (!read_class(r, slice->outputs[0], true, c)) {
            return false;
        }
    }
    return (int64_t)c->count == c->steps[0] * c->steps[1];
}

static bool is_made(const classes *c, int32_t value) {
    for (size_t k = 0; k < c->count; ++k) {
        if (c->made[k] == value) {
            return true;
        }
    }
    return false;
}

// The node that makes the sum of all classes.
static int32_t find_sum(const rondo__rewriting *r, const classes *c) {
    int32_t value = c->made[0];
    for (size_t k = 1; k < c->count; ++k) {
        const int32_t add = rondo__uses_get_single(&r->uses, value);
        if (add < 0 || !rondo__node_is(&r->program->nodes[add], RONDO__OP_Add)) {
            return -1;
        }
        const int32_t *inputs = r->program->nodes[add].inputs;
        if (!is_made(c, inputs[inputs[0] == value ? 1 : 0])) {
            return -1;
        }
        value = r->program->nodes[add].outputs[0];
    }
    return r->program->values[value].producer;
}

static bool fits(const rondo_program *program, const rondo__node *node, int32_t dy) {
    rondo_shape x, change;
    rondo__pool pool;
    return rondo__value_get_shape(&program->values[node->inputs[0]], &x) && x.rank == IMAGE_RANK &&
           rondo__value_get_shape(&program->values[dy], &change) &&
           program->values[node->inputs[0]].dtype == RONDO_DTYPE_F32 &&
           program->values[dy].dtype == RONDO_DTYPE_F32 &&
           rondo__pool_init(&node->op, &x, false, &pool) == RONDO_STATUS_OK &&
           rondo_shape_is_equal(&pool.output, &change) && pool.window.dilation[0] == 1 &&
           pool.window.dilation[1] == 1;
}

static rondo_status rewrite(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    classes c = {0};
    if (!rondo__node_is(node, RONDO__OP_MaxPool) || node->output_count < 2 ||
        node->outputs[1] < 0 || rondo__op_get_int(&node->op, "storage_order", 0) != 0 ||
        !read_classes(r, node->outputs[1], &c) || !fits(program, node, c.dy)) {
        return RONDO_STATUS_OK;
    }
    const int32_t sum = find_sum(r, &c);
    if (sum < 0) {
        return RONDO_STATUS_OK;
    }
    rondo__op op = {0};
    int32_t *inputs = rondo__calloc(2, sizeof *inputs);
    const rondo_status status =
        inputs != NULL ? rondo__op_copy(&node->op, &op) : RONDO_STATUS_NO_MEMORY;
    if (status != RONDO_STATUS_OK) {
        rondo__free(inputs);
        return status;
    }
    rondo__free(op.name);
    op.name = NULL;
    op.def = rondo__op_get_def(RONDO__FUSED_PoolGradient);
    inputs[0] = c.dy;
    inputs[1] = node->inputs[0];
    rondo__node_become(&program->nodes[sum], &op, inputs, 2);
    return RONDO_STATUS_OK;
}

// Places without a reader are not made.
static rondo_status drop_places(rondo_program *program) {
    uint32_t *uses = rondo__calloc(program->value_count + 1, sizeof *uses);
    if (uses == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__program_count_uses(program, uses);
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        if (rondo__node_is(node, RONDO__OP_MaxPool) && node->output_count > 1 &&
            node->outputs[1] >= 0 && uses[node->outputs[1]] == 0) {
            program->values[node->outputs[1]].producer = -1;
            node->outputs[1] = RONDO__VALUE_NONE;
        }
    }
    rondo__free(uses);
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_pool_gradient(rondo_program *program) {
    RETURN_IF_ERROR(rondo__program_rewrite(program, rewrite));
    return drop_places(program);
}
