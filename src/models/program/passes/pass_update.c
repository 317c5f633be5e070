// program/passes/pass_update.c — what a training step makes of its variables: trees of element-wise
// ops behind the gradients become rondo.Update, one node for many variables; and the check that all
// gradients are finite becomes rondo.Finite.
//
// An update ends in outputs of the program, each X or Where(applies, X, old). Their nodes have
// RONDO__PRECISION_TRAINED. A node joins the update of its users when all of them are in updates;
// then these are one. Since no path leaves an update and comes back, no cycle can come about.
// Updates of the same ops on the same scalars share a node.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/fused/update.h"
#include "program/half/half_pass.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// Addresses of a GPU's launch: its operands and results.
enum { ADDRESSES_MAX = 48 };

// What becomes of one or more variables of a shape.
typedef struct update {
    rondo_shape shape;
    int32_t applies;  // NONE: always
    size_t scalar_count, width, op_count, result_count;
    int32_t scalars[RONDO__UPDATE_SCALARS_MAX];
    int32_t operands[RONDO__UPDATE_WIDTH_MAX];
    int32_t made[RONDO__UPDATE_OPS_MAX];  // values
    rondo__scalar_op ops[RONDO__UPDATE_OPS_MAX];
    int32_t sources[RONDO__UPDATE_OPS_MAX][2];  // values
    float alphas[RONDO__UPDATE_OPS_MAX];
    float betas[RONDO__UPDATE_OPS_MAX];
    int32_t results[RONDO__UPDATE_RESULTS_MAX];  // values, then ops
    int32_t outputs[RONDO__UPDATE_RESULTS_MAX];
    int32_t keeps[RONDO__UPDATE_RESULTS_MAX];  // values, then operands
    bool is_late;                              // it needs the last average over ranks
    bool is_shared;                            // of which a rank has its part alone
    bool is_done;
} update;

typedef struct updates {
    rondo_program *program;
    rondo__uses uses;
    int32_t *update_of;  // node to the node its update is named by; -1: none
    int32_t *is_end_of;  // node: the value whose new form it makes; -1: none
    bool *remove;
    update *list;
    size_t count;
    int32_t last_average;  // node; -1: there are no ranks
} updates;

static bool has_shape(const rondo_program *program, int32_t value, const rondo_shape *shape) {
    rondo_shape own;
    return rondo__value_get_shape(&program->values[value], &own) &&
           rondo_shape_is_equal(&own, shape);
}

static bool is_widening(const rondo_program *program, const rondo__node *node) {
    return node->output_count == 1 && node->input_count >= 1 &&
           (rondo__node_is(node, RONDO__OP_Cast) ||
            rondo__node_is(node, RONDO__FUSED_Elementwise)) &&
           rondo__match_dtype(program, node->inputs[0]) == RONDO_DTYPE_F16 &&
           rondo__match_dtype(program, node->outputs[0]) == RONDO_DTYPE_F32;
}

// A node that is one scalar function, of operands of its own shape or of one element.
static bool is_step(const rondo_program *program, const rondo__node *node) {
    rondo__scalar_op op;
    int32_t positions[2];
    float alpha, beta;
    rondo_shape shape;
    if ((node->precision != RONDO__PRECISION_TRAINED && !is_widening(program, node)) ||
        !rondo__match_scalar_op(program, node, &op, &positions[0], &positions[1], &alpha, &beta) ||
        !rondo__value_get_shape(&program->values[node->outputs[0]], &shape) ||
        rondo_shape_get_count(&shape) < 2 ||
        rondo__match_dtype(program, node->outputs[0]) != RONDO_DTYPE_F32) {
        return false;
    }
    for (int k = 0; k < 2; ++k) {
        const int32_t operand = positions[k] >= 0 ? node->inputs[positions[k]] : -1;
        if (operand >= 0 &&
            (!rondo__match_is_f32_or_f16(program, operand) ||
             (!has_shape(program, operand, &shape) && rondo__match_count(program, operand) != 1))) {
            return false;
        }
    }
    return true;
}

static bool is_input(const rondo_program *program, int32_t value) {
    return value >= 0 && program->values[value].producer < 0 &&
           !rondo__value_is_constant(&program->values[value]);
}

// Where(applies, X, old).
static bool is_choice(const rondo_program *program, const rondo__node *node) {
    return rondo__node_is(node, RONDO__OP_Where) && node->input_count == 3 &&
           node->precision == RONDO__PRECISION_TRAINED && is_input(program, node->inputs[2]) &&
           rondo__match_dtype(program, node->inputs[0]) == RONDO_DTYPE_BOOL &&
           rondo__match_count(program, node->inputs[0]) == 1 &&
           rondo__match_dtype(program, node->outputs[0]) == RONDO_DTYPE_F32 &&
           rondo__match_count(program, node->outputs[0]) > 1;
}

// ---- which nodes --------------------------------------------------------------------------------

static int32_t find_update(updates *u, int32_t node) {
    while (u->update_of[node] != node) {
        u->update_of[node] = u->update_of[u->update_of[node]];
        node = u->update_of[node];
    }
    return node;
}

// Joins the updates of all users; -1: a user is in none, or there is no user.
static int32_t join_users(updates *u, size_t n) {
    const int32_t value = u->program->nodes[n].outputs[0];
    const size_t first = u->uses.first[value];
    const size_t end = u->uses.first[value + 1];
    for (size_t i = first; i < end; ++i) {
        if (u->update_of[u->uses.users[i]] < 0) {
            return -1;
        }
    }
    int32_t joined = -1;
    for (size_t i = first; i < end; ++i) {
        const int32_t one = find_update(u, (int32_t)u->uses.users[i]);
        joined = joined < 0 ? one : joined;
        u->update_of[one] = joined;
    }
    return joined;
}

static void assign(updates *u) {
    const rondo_program *program = u->program;
    for (size_t n = program->node_count; n-- > 0;) {
        const rondo__node *node = &program->nodes[n];
        u->update_of[n] = -1;
        u->is_end_of[n] = -1;
        if (node->output_count != 1 || node->outputs[0] < 0) {
            continue;
        }
        const bool chooses = is_choice(program, node);
        if (!chooses && !is_step(program, node)) {
            continue;
        }
        const int32_t value = node->outputs[0];
        const bool is_output = u->uses.is_output[value];
        const bool is_used = u->uses.first[value] < u->uses.first[value + 1];
        const int32_t joined = is_used && !chooses ? join_users(u, n) : -1;
        if (is_output && (!is_used || joined >= 0)) {
            u->update_of[n] = joined >= 0 ? joined : (int32_t)n;
            u->is_end_of[n] = chooses ? node->inputs[2] : -2;
        } else if (!is_output && joined >= 0) {
            u->update_of[n] = joined;
        }
    }
}

// ---- one update ---------------------------------------------------------------------------------

static bool add_operand(const rondo_program *program, update *one, int32_t value) {
    const bool is_scalar = rondo__match_count(program, value) == 1;
    int32_t *list = is_scalar ? one->scalars : one->operands;
    size_t *count = is_scalar ? &one->scalar_count : &one->width;
    const size_t most =
        is_scalar ? (size_t)RONDO__UPDATE_SCALARS_MAX : (size_t)RONDO__UPDATE_WIDTH_MAX;
    for (size_t i = 0; i < one->op_count; ++i) {
        if (one->made[i] == value) {
            return true;
        }
    }
    for (size_t i = 0; i < *count; ++i) {
        if (list[i] == value) {
            return true;
        }
    }
    if (*count == most) {
        return false;
    }
    list[(*count)++] = value;
    return true;
}

static bool add_step(const rondo_program *program, update *one, const rondo__node *node) {
    int32_t positions[2];
    const size_t k = one->op_count;
    if (k == RONDO__UPDATE_OPS_MAX ||
        !rondo__match_scalar_op(program, node, &one->ops[k], &positions[0], &positions[1],
                                &one->alphas[k], &one->betas[k])) {
        return false;
    }
    for (int i = 0; i < 2; ++i) {
        one->sources[k][i] = positions[i] >= 0 ? node->inputs[positions[i]] : -1;
        if (one->sources[k][i] >= 0 && !add_operand(program, one, one->sources[k][i])) {
            return false;
        }
    }
    one->made[k] = node->outputs[0];
    one->op_count += 1;
    return true;
}

// The number of a value as the attributes have it.
static int64_t number_of(const update *one, int32_t value) {
    int64_t found = -1;
    for (size_t i = 0; i < one->scalar_count; ++i) {
        found = one->scalars[i] == value ? (int64_t)i : found;
    }
    for (size_t i = 0; i < one->width; ++i) {
        found = one->operands[i] == value ? (int64_t)(one->scalar_count + i) : found;
    }
    for (size_t i = 0; i < one->op_count; ++i) {
        found = one->made[i] == value ? (int64_t)(one->scalar_count + one->width + i) : found;
    }
    return found;
}

// An end: `value` is what the output has where the update applies.
static bool add_end(const rondo_program *program, update *one, const rondo__node *node) {
    const bool chooses = rondo__node_is(node, RONDO__OP_Where);
    const int32_t applies = chooses ? node->inputs[0] : RONDO__VALUE_NONE;
    if (one->result_count == RONDO__UPDATE_RESULTS_MAX ||
        (one->result_count > 0 && applies != one->applies)) {
        return false;
    }
    one->applies = applies;
    one->results[one->result_count] = chooses ? node->inputs[1] : node->outputs[0];
    one->outputs[one->result_count] = node->outputs[0];
    one->keeps[one->result_count] = chooses ? node->inputs[2] : RONDO__VALUE_NONE;
    one->result_count += 1;
    return !chooses || add_operand(program, one, node->inputs[2]);
}

// The variable of which an output without a choice is the new form: the input of its name, less
// ".next"; otherwise the first operand that is an input.
static int32_t find_kept(const rondo_program *program, const update *one, size_t k) {
    const char *name = program->values[one->outputs[k]].name;
    int32_t found = RONDO__VALUE_NONE;
    for (size_t i = 0; i < one->width; ++i) {
        const int32_t value = one->operands[i];
        const char *own = program->values[value].name;
        const size_t length = own != NULL ? strlen(own) : 0;
        if (is_input(program, value) && name != NULL && length > 0 &&
            strncmp(name, own, length) == 0 && strcmp(name + length, ".next") == 0) {
            found = value;
        }
    }
    return found;
}

// Puts numbers in the place of values; false where something does not fit.
static bool settle(const rondo_program *program, update *one) {
    for (size_t k = 0; k < one->result_count; ++k) {
        const int32_t kept = one->keeps[k] >= 0 ? one->keeps[k] : find_kept(program, one, k);
        const int64_t op =
            number_of(one, one->results[k]) - (int64_t)(one->scalar_count + one->width);
        const int64_t operand = kept >= 0 ? number_of(one, kept) - (int64_t)one->scalar_count : -1;
        if (op < 0 || operand < 0 || operand >= (int64_t)one->width ||
            rondo__match_dtype(program, kept) != RONDO_DTYPE_F32) {
            return false;
        }
        one->results[k] = (int32_t)op;
        one->keeps[k] = (int32_t)operand;
        for (size_t i = 0; i < k; ++i) {
            if (one->keeps[i] == one->keeps[k]) {
                return false;
            }
        }
    }
    return one->result_count > 0 && one->op_count > 0;
}

static bool is_made_last(const updates *u, const update *one) {
    bool is = false;
    for (size_t i = 0; i < one->width && u->last_average >= 0; ++i) {
        is = is || u->program->values[one->operands[i]].producer == u->last_average;
    }
    return is;
}

// Whether it needs an average of which a rank has its part alone.
static bool has_parts(const rondo_program *program, const update *one) {
    bool has = false;
    for (size_t i = 0; i < one->width && !has; ++i) {
        const int32_t maker = program->values[one->operands[i]].producer;
        const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
        if (node == NULL || !rondo__node_is(node, RONDO__FUSED_AllReduce)) {
            continue;
        }
        size_t count = 0;
        const int64_t *parts = rondo__op_get_ints(&node->op, "parts", &count);
        for (size_t k = 0; k < count && k < node->output_count; ++k) {
            has = has || (parts[k] != 0 && node->outputs[k] == one->operands[i]);
        }
    }
    return has;
}

static int32_t find_last_average(const rondo_program *program) {
    int32_t last = -1;
    for (size_t n = 0; n < program->node_count; ++n) {
        last = rondo__node_is(&program->nodes[n], RONDO__FUSED_AllReduce) ? (int32_t)n : last;
    }
    return last;
}

static bool collect(updates *u, int32_t root, update *one) {
    const rondo_program *program = u->program;
    *one = (update){.applies = RONDO__VALUE_NONE};
    (void)rondo__value_get_shape(&program->values[program->nodes[root].outputs[0]], &one->shape);
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        if (u->update_of[n] < 0 || find_update(u, (int32_t)n) != root) {
            continue;
        }
        const bool chooses = u->is_end_of[n] >= 0;
        if (!has_shape(program, node->outputs[0], &one->shape) ||
            (!chooses && !add_step(program, one, node)) ||
            (u->is_end_of[n] != -1 && !add_end(program, one, node))) {
            return false;
        }
    }
    one->is_late = is_made_last(u, one);
    one->is_shared = has_parts(program, one);
    return settle(program, one);
}

// ---- many updates -------------------------------------------------------------------------------

static bool are_alike(const rondo_program *program, const update *a, const update *b) {
    bool are = a->applies == b->applies && a->is_late == b->is_late &&
               a->is_shared == b->is_shared && a->scalar_count == b->scalar_count &&
               a->width == b->width && a->op_count == b->op_count &&
               a->result_count == b->result_count;
    for (size_t i = 0; i < a->scalar_count && are; ++i) {
        are = a->scalars[i] == b->scalars[i];
    }
    for (size_t i = 0; i < a->width && are; ++i) {
        are = rondo__match_dtype(program, a->operands[i]) ==
              rondo__match_dtype(program, b->operands[i]);
    }
    for (size_t i = 0; i < a->op_count && are; ++i) {
        are = a->ops[i] == b->ops[i] &&
              memcmp(&a->alphas[i], &b->alphas[i], sizeof a->alphas[i]) == 0 &&
              memcmp(&a->betas[i], &b->betas[i], sizeof a->betas[i]) == 0;
        for (int k = 0; k < 2 && are; ++k) {
            are = number_of(a, a->sources[i][k]) == number_of(b, b->sources[i][k]);
        }
    }
    for (size_t i = 0; i < a->result_count && are; ++i) {
        are = a->results[i] == b->results[i] && a->keeps[i] == b->keeps[i];
    }
    return are;
}

static rondo_status set_attributes(rondo__op *op, const update *one) {
    const char *names[RONDO__UPDATE_OPS_MAX];
    int64_t operands[2 * RONDO__UPDATE_OPS_MAX];
    int64_t results[RONDO__UPDATE_RESULTS_MAX];
    int64_t keeps[RONDO__UPDATE_RESULTS_MAX];
    for (size_t i = 0; i < one->op_count; ++i) {
        names[i] = rondo__match_scalar_name(one->ops[i]);
        operands[2 * i] = number_of(one, one->sources[i][0]);
        operands[2 * i + 1] = one->sources[i][1] >= 0 ? number_of(one, one->sources[i][1]) : -1;
    }
    for (size_t i = 0; i < one->result_count; ++i) {
        results[i] = one->results[i];
        keeps[i] = one->keeps[i];
    }
    RETURN_IF_ERROR(rondo__op_set_strings(op, "ops", names, one->op_count));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "operands", operands, 2 * one->op_count));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "alphas", one->alphas, one->op_count));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "betas", one->betas, one->op_count));
    RETURN_IF_ERROR(rondo__op_set_int(op, "scalars", (int64_t)one->scalar_count));
    RETURN_IF_ERROR(rondo__op_set_int(op, "width", (int64_t)one->width));
    RETURN_IF_ERROR(rondo__op_set_int(op, "is_conditional", one->applies >= 0));
    RETURN_IF_ERROR(rondo__op_set_int(op, "is_shared", one->is_shared));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "results", results, one->result_count));
    return rondo__op_set_ints(op, "keeps", keeps, one->result_count);
}

// Adds one node for the update and those like it, as many as fit.
static rondo_status emit(updates *u, size_t first) {
    const update *one = &u->list[first];
    int32_t inputs[1 + RONDO__UPDATE_SCALARS_MAX + ADDRESSES_MAX];
    int32_t outputs[RONDO__UPDATE_KEPT_MAX];
    size_t input_count = 0;
    size_t output_count = 0;
    if (one->applies >= 0) {
        inputs[input_count++] = one->applies;
    }
    for (size_t i = 0; i < one->scalar_count; ++i) {
        inputs[input_count++] = one->scalars[i];
    }
    for (size_t k = first; k < u->count; ++k) {
        update *other = &u->list[k];
        if (other->is_done || !are_alike(u->program, one, other) ||
            input_count + output_count + one->width + one->result_count > ADDRESSES_MAX ||
            output_count + one->result_count > RONDO__UPDATE_KEPT_MAX) {
            continue;
        }
        other->is_done = true;
        memcpy(inputs + input_count, other->operands, one->width * sizeof *inputs);
        memcpy(outputs + output_count, other->outputs, one->result_count * sizeof *outputs);
        input_count += one->width;
        output_count += one->result_count;
    }
    RETURN_IF_ERROR(rondo__program_add_simple(u->program, "rondo", "Update", NULL, inputs,
                                              input_count, outputs, output_count));
    return set_attributes(&u->program->nodes[u->program->node_count - 1].op, one);
}

static rondo_status fuse(updates *u, size_t node_count) {
    for (size_t n = 0; n < node_count; ++n) {
        if (u->update_of[n] == (int32_t)n && collect(u, (int32_t)n, &u->list[u->count])) {
            u->count += 1;
            for (size_t i = 0; i < node_count; ++i) {
                u->remove[i] = u->remove[i] ||
                               (u->update_of[i] >= 0 && find_update(u, (int32_t)i) == (int32_t)n);
            }
        }
    }
    // Those that need the last average come last: the others go on while it is under way.
    for (int late = 0; late < 2; ++late) {
        for (size_t i = 0; i < u->count; ++i) {
            if (!u->list[i].is_done && u->list[i].is_late == (late != 0)) {
                RETURN_IF_ERROR(emit(u, i));
            }
        }
    }
    return RONDO_STATUS_OK;
}

static size_t count_roots(const updates *u) {
    size_t count = 0;
    for (size_t n = 0; n < u->program->node_count; ++n) {
        count += u->update_of[n] == (int32_t)n;
    }
    return count;
}

static rondo_status fuse_updates(rondo_program *program) {
    const size_t node_count = program->node_count;
    updates u = {.program = program, .last_average = find_last_average(program)};
    RETURN_IF_ERROR(rondo__uses_init(program, &u.uses));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    u.update_of = rondo__calloc(node_count + 1, sizeof *u.update_of);
    u.is_end_of = rondo__calloc(node_count + 1, sizeof *u.is_end_of);
    u.remove = rondo__calloc(node_count + 1, sizeof *u.remove);
    if (u.update_of != NULL && u.is_end_of != NULL && u.remove != NULL) {
        assign(&u);
        u.list = rondo__calloc(count_roots(&u) + 1, sizeof *u.list);
    }
    if (u.list != NULL) {
        status = fuse(&u, node_count);
        status = rondo__program_finish_rewrite(program, u.remove, node_count, status);
    }
    rondo__free(u.update_of);
    rondo__free(u.is_end_of);
    rondo__free(u.remove);
    rondo__free(u.list);
    rondo__uses_deinit(&u.uses);
    return status;
}

// ---- the check ----------------------------------------------------------------------------------

typedef struct terms {
    int32_t *values;
    size_t count;
} terms;

static const rondo__node *find_maker(const rondo_program *program, int32_t value) {
    const int32_t maker = value >= 0 ? program->values[value].producer : -1;
    return maker >= 0 ? &program->nodes[maker] : NULL;
}

// The values whose products with 0 are added up in `value`; false where it is something else.
// `values` has room for as many as there are nodes.
static bool find_terms(const rondo_program *program, int32_t value, terms *t) {
    const rondo__node *node = find_maker(program, value);
    while (node != NULL && rondo__node_is(node, RONDO__OP_Add) &&
           node->precision == RONDO__PRECISION_TRAINED) {
        if (!find_terms(program, node->inputs[1], t)) {  // one term: sums grow to the left
            return false;
        }
        node = find_maker(program, node->inputs[0]);
    }
    while (node != NULL &&
           (rondo__node_is(node, RONDO__OP_Cast) || rondo__node_is(node, RONDO__OP_Reshape))) {
        node = find_maker(program, node->inputs[0]);
    }
    if (node == NULL || !rondo__node_is(node, RONDO__OP_ReduceSum) ||
        node->precision != RONDO__PRECISION_TRAINED) {
        return false;
    }
    node = find_maker(program, node->inputs[0]);
    float factor = 1.0f;
    if (node == NULL || !rondo__node_is(node, RONDO__OP_Mul) ||
        !rondo__match_scalar(program, node->inputs[1], &factor) || factor != 0.0f ||
        !rondo__match_is_f32_or_f16(program, node->inputs[0])) {
        return false;
    }
    int32_t term = node->inputs[0];
    const rondo__node *maker = find_maker(program, term);
    if (maker != NULL && is_widening(program, maker) && maker->input_count == 1) {
        term = maker->inputs[0];  // it keeps infinities and NaN
    }
    t->values[t->count++] = term;
    return true;
}

// Not(IsNaN(sum of x * 0)).
static rondo_status check_once(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    const rondo__node *nan =
        rondo__node_is(node, RONDO__OP_Not) && node->precision == RONDO__PRECISION_TRAINED
            ? find_maker(program, node->inputs[0])
            : NULL;
    if (nan == NULL || !rondo__node_is(nan, RONDO__OP_IsNaN) ||
        rondo__match_count(program, node->outputs[0]) != 1) {
        return RONDO_STATUS_OK;
    }
    terms t = {.values = rondo__calloc(program->node_count + 1, sizeof *t.values)};
    if (t.values == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    rondo_shape shape;
    if (find_terms(program, nan->inputs[0], &t) &&
        rondo__value_get_shape(&program->values[node->outputs[0]], &shape) && shape.rank == 0) {
        const int32_t output = node->outputs[0];
        status = rondo__program_add_simple(program, "rondo", "Finite", NULL, t.values, t.count,
                                           &output, 1);
        r->remove[n] = true;
    }
    rondo__free(t.values);
    return status;
}

rondo_status rondo__pass_update(rondo_program *program) {
    bool trains = false;
    for (size_t n = 0; n < program->node_count && !trains; ++n) {
        trains = program->nodes[n].precision == RONDO__PRECISION_TRAINED;
    }
    if (!trains) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_rewrite(program, check_once));
    return fuse_updates(program);
}
