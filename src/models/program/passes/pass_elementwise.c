// program/passes/pass_elementwise.c — trees of element-wise ops become one rondo.Elementwise, so
// that values in between never go through memory.
//
// A node joins the group of its users when all its users are in one group and its result has the
// group's shape (operands may broadcast, results in between may not). Since every path out of the
// node then stays inside the group, no cycle can come about. Groups of one node are left alone:
// kernels for single ops exist. Since a group calculates in f32 whatever its operands are, casts
// between f16 and f32 join it and cost nothing there. A cast to f16 whose result is cast back is a
// rounding that somebody wants: it ends its group.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

enum { GROUP_OPS_MAX = 40, GROUP_INPUTS_MAX = 8 };

typedef struct grouping {
    rondo_program *program;
    rondo__uses uses;
    int32_t *group_of;  // node to the group's last node; -1: none
    size_t *size_of;    // ops in the group, by its last node
    bool *remove;
} grouping;

static bool is_candidate(const rondo_program *program, const rondo__node *node) {
    rondo__scalar_op op;
    int32_t first;
    int32_t second;
    float alpha;
    float beta;
    rondo_shape shape;
    if (!rondo__match_scalar_op(program, node, &op, &first, &second, &alpha, &beta) ||
        !rondo__value_get_shape(&program->values[node->outputs[0]], &shape) ||
        rondo_shape_get_count(&shape) < 1) {
        return false;
    }
    if (!rondo__dtype_is_f32_or_f16(rondo__match_dtype(program, node->outputs[0]))) {
        return false;
    }
    const int32_t positions[2] = {first, second};
    for (int k = 0; k < 2; ++k) {
        if (positions[k] < 0) {
            continue;
        }
        const int32_t operand = node->inputs[positions[k]];
        if (!rondo__dtype_is_f32_or_f16(rondo__match_dtype(program, operand)) ||
            !rondo__value_get_shape(&program->values[operand], &shape)) {
            return false;
        }
    }
    return true;
}

// The group that all users of the node's result share; -1 when there is none.
static int32_t find_user_group(const grouping *g, size_t n) {
    int32_t value = g->program->nodes[n].outputs[0];
    size_t first = g->uses.first[value];
    size_t end = g->uses.first[value + 1];
    if (g->uses.is_output[value] || first == end) {
        return -1;
    }
    int32_t group = g->group_of[g->uses.users[first]];
    for (size_t u = first + 1; u < end; ++u) {
        if (g->group_of[g->uses.users[u]] != group) {
            return -1;
        }
    }
    return group;
}

// x.half().float(), as it is written.
static bool is_rounding(const grouping *g, size_t n) {
    const rondo_program *program = g->program;
    const rondo__node *node = &program->nodes[n];
    if (!rondo__node_is(node, RONDO__OP_Cast) ||
        rondo__match_dtype(program, node->inputs[0]) != RONDO_DTYPE_F32 ||
        rondo__match_dtype(program, node->outputs[0]) != RONDO_DTYPE_F16) {
        return false;
    }
    const int32_t value = node->outputs[0];
    for (size_t u = g->uses.first[value]; u < g->uses.first[value + 1]; ++u) {
        if (rondo__node_is(&program->nodes[g->uses.users[u]], RONDO__OP_Cast)) {
            return true;
        }
    }
    return false;
}

static void assign_groups(grouping *g) {
    for (size_t n = g->program->node_count; n-- > 0;) {
        const rondo__node *node = &g->program->nodes[n];
        g->group_of[n] = -1;
        if (!is_candidate(g->program, node)) {
            continue;
        }
        const int32_t group = is_rounding(g, n) ? -1 : find_user_group(g, n);
        rondo_shape mine;
        rondo_shape theirs;
        if (group >= 0 && g->size_of[group] < GROUP_OPS_MAX &&
            rondo__value_get_shape(&g->program->values[node->outputs[0]], &mine) &&
            rondo__value_get_shape(&g->program->values[g->program->nodes[group].outputs[0]],
                                   &theirs) &&
            rondo_shape_is_equal(&mine, &theirs)) {
            g->group_of[n] = group;
            g->size_of[group] += 1;
        } else {
            g->group_of[n] = (int32_t)n;
            g->size_of[n] = 1;
        }
    }
}

// One group as the attributes of rondo.Elementwise.
typedef struct fused {
    int32_t inputs[GROUP_INPUTS_MAX];
    size_t input_count;
    int32_t results[GROUP_OPS_MAX];  // value each op makes
    const char *ops[GROUP_OPS_MAX];
    int64_t operands[3 * GROUP_OPS_MAX];
    float alphas[GROUP_OPS_MAX];
    float betas[GROUP_OPS_MAX];
    size_t op_count;
} fused;

// The operand's number: results of the group are numbered from 1000 up until all inputs are known.
enum { RESULT_BASE = 1000 };

static bool add_operand(fused *f, int32_t value, int64_t *out_operand) {
    for (size_t k = 0; k < f->op_count; ++k) {
        if (f->results[k] == value) {
            *out_operand = RESULT_BASE + (int64_t)k;
            return true;
        }
    }
    for (size_t i = 0; i < f->input_count; ++i) {
        if (f->inputs[i] == value) {
            *out_operand = (int64_t)i;
            return true;
        }
    }
    if (f->input_count == GROUP_INPUTS_MAX) {
        return false;
    }
    *out_operand = (int64_t)f->input_count;
    f->inputs[f->input_count++] = value;
    return true;
}

static bool add_op(const rondo_program *program, fused *f, const rondo__node *node) {
    rondo__scalar_op op;
    int32_t positions[2];
    size_t k = f->op_count;
    if (k == GROUP_OPS_MAX || !rondo__match_scalar_op(program, node, &op, &positions[0],
                                                      &positions[1], &f->alphas[k], &f->betas[k])) {
        return false;
    }
    f->ops[k] = rondo__match_scalar_name(op);
    f->operands[3 * k] = f->operands[3 * k + 1] = f->operands[3 * k + 2] = -1;
    for (size_t i = 0; i < 2; ++i) {
        if (positions[i] >= 0 &&
            !add_operand(f, node->inputs[positions[i]], &f->operands[3 * k + i])) {
            return false;
        }
    }
    f->results[k] = node->outputs[0];
    f->op_count += 1;
    return true;
}

static rondo_status emit(grouping *g, size_t last, fused *f) {
    for (size_t i = 0; i < 3 * f->op_count; ++i) {
        if (f->operands[i] >= RESULT_BASE) {
            f->operands[i] += (int64_t)f->input_count - RESULT_BASE;
        }
    }
    int32_t result = g->program->nodes[last].outputs[0];
    const rondo_dtype dtype = rondo__match_dtype(g->program, result);
    bool is_mixed = false;
    for (size_t i = 0; i < f->input_count; ++i) {
        is_mixed = is_mixed || rondo__match_dtype(g->program, f->inputs[i]) != dtype;
    }
    RETURN_IF_ERROR(rondo__program_add_simple(g->program, "rondo", "Elementwise",
                                              g->program->nodes[last].op.name, f->inputs,
                                              f->input_count, &result, 1));
    rondo__op *op = &g->program->nodes[g->program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_strings(op, "ops", f->ops, f->op_count));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "operands", f->operands, 3 * f->op_count));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "alphas", f->alphas, f->op_count));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "betas", f->betas, f->op_count));
    return is_mixed ? rondo__op_set_int(op, "to", dtype == RONDO_DTYPE_F16 ? 10 : 1)
                    : RONDO_STATUS_OK;
}

// Fuses the group that ends in node `last`, unless it has too many inputs.
static rondo_status fuse_group(grouping *g, size_t last, size_t node_count) {
    fused *f = rondo__calloc(1, sizeof *f);
    if (f == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    bool fits = true;
    size_t first = last;
    for (size_t left = g->size_of[last]; left > 0 && first < node_count;) {
        left -= g->group_of[first] == (int32_t)last ? 1 : 0;
        first -= left > 0 ? 1 : 0;
    }
    for (size_t n = first; n <= last && fits; ++n) {
        fits = g->group_of[n] != (int32_t)last || add_op(g->program, f, &g->program->nodes[n]);
    }
    // A group without an input is all constants; a chain whose operands are all broadcast has no
    // lead operand.
    rondo_status status = RONDO_STATUS_OK;
    if (fits && f->input_count > 0) {
        status = emit(g, last, f);
        for (size_t n = first; n <= last && status == RONDO_STATUS_OK; ++n) {
            g->remove[n] = g->remove[n] || g->group_of[n] == (int32_t)last;
        }
    }
    rondo__free(f);
    return status;
}

rondo_status rondo__pass_elementwise(rondo_program *program) {
    size_t node_count = program->node_count;
    grouping g = {.program = program};
    rondo_status status = rondo__uses_init(program, &g.uses);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    g.group_of = rondo__calloc(node_count + 1, sizeof *g.group_of);
    g.size_of = rondo__calloc(node_count + 1, sizeof *g.size_of);
    g.remove = rondo__calloc(node_count + 1, sizeof *g.remove);
    if (g.group_of == NULL || g.size_of == NULL || g.remove == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_lists;
    }
    assign_groups(&g);
    for (size_t n = 0; n < node_count && status == RONDO_STATUS_OK; ++n) {
        if (g.group_of[n] == (int32_t)n && g.size_of[n] > 1) {
            status = fuse_group(&g, n, node_count);
        }
    }
    status = rondo__program_finish_rewrite(program, g.remove, node_count, status);

free_lists:
    rondo__free(g.group_of);
    rondo__free(g.size_of);
    rondo__free(g.remove);
    rondo__uses_deinit(&g.uses);
    return status;
}
