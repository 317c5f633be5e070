// program/passes/pass_branch.c — puts the branch that is taken in the place of an If.
//
//   before   c, x ── If (then: Conv, Relu; else: ...) ── y        c is a constant: true
//   after    x ── Conv ── Relu ── y
//
// The condition may even be fed: an executor makes single integers part of a plan's key, and the
// plan has straight code. A branch that draws random numbers stays in its If, because its
// generators belong to it.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "program/body_view.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

// ---- which branch -----------------------------------------------------------------------------

// Whether a node of it may draw random numbers. Bodies nest only so deep, so this may recurse.
static bool may_draw(const rondo_program *body) {
    for (size_t n = 0; n < body->node_count; ++n) {
        const rondo__op *op = &body->nodes[n].op;
        if ((op->def->flags & (RONDO__OP_RANDOM | RONDO__OP_IMPURE)) != 0 || op->is_training ||
            op->def->id == RONDO__OP_Dropout) {
            return true;
        }
        for (size_t a = 0; a < op->attribute_count; ++a) {
            if (op->attributes[a].kind == RONDO__ATTRIBUTE_BODY &&
                may_draw(op->attributes[a].body)) {
                return true;
            }
        }
    }
    return false;
}

static bool can_move(const rondo__node *node, const rondo__body_view *view) {
    const rondo_program *body = view->attribute->body;
    if (body->declared_count != 0 || body->output_count < node->output_count ||
        view->captured_first + view->captured_count > node->input_count) {
        return false;
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        if (body->outputs[i] < 0) {
            return false;
        }
    }
    return !may_draw(body);
}

// False: not an If, or its branch has to stay.
static bool find_branch(const rondo__node *node, bool is_true, rondo__body_view *out_view) {
    return rondo__node_is(node, RONDO__OP_If) && node->explicit_count == 1 &&
           node->place.place == 0 && node->inputs[0] >= 0 &&
           rondo__body_find(node, is_true ? "then_branch" : "else_branch", out_view) &&
           can_move(node, out_view);
}

bool rondo__branches_may_move(const rondo__node *node) {
    rondo__body_view view;
    return find_branch(node, true, &view) && find_branch(node, false, &view);
}

// The branch that a constant condition takes.
static bool find_known_branch(const rondo_program *program, const rondo__node *node,
                              rondo__body_view *out_view) {
    if (node->explicit_count != 1 || node->inputs[0] < 0) {
        return false;
    }
    const rondo_tensor *flag = &program->values[node->inputs[0]].constant;
    return flag->dtype == RONDO_DTYPE_BOOL && rondo_shape_get_count(&flag->shape) == 1 &&
           find_branch(node, *(const uint8_t *)flag->data != 0, out_view);
}

bool rondo__program_has_known_branches(const rondo_program *program) {
    rondo__body_view view;
    for (size_t n = 0; n < program->node_count; ++n) {
        if (find_known_branch(program, &program->nodes[n], &view)) {
            return true;
        }
    }
    return false;
}

// ---- moving it --------------------------------------------------------------------------------

// A branch on its way into the program around it.
typedef struct moving {
    rondo_program *program;
    const rondo_program *body;
    int32_t *outer;  // number in the program of each value of the body; NONE: not there yet
    int32_t *inputs;
    int32_t *outputs;
} moving;

static void moving_deinit(moving *m) {
    rondo__free(m->outer);
    rondo__free(m->inputs);
    rondo__free(m->outputs);
}

static rondo_status moving_init(rondo_program *program, const rondo_program *body,
                                moving *out_moving) {
    size_t widest = 0;
    for (size_t n = 0; n < body->node_count; ++n) {
        const size_t width = body->nodes[n].input_count + body->nodes[n].output_count;
        widest = width > widest ? width : widest;
    }
    *out_moving = (moving){.program = program,
                           .body = body,
                           .outer = rondo__calloc(body->value_count + 1, sizeof(int32_t)),
                           .inputs = rondo__calloc(widest + 1, sizeof(int32_t)),
                           .outputs = rondo__calloc(widest + 1, sizeof(int32_t))};
    if (out_moving->outer == NULL || out_moving->inputs == NULL || out_moving->outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t v = 0; v < body->value_count; ++v) {
        out_moving->outer[v] = RONDO__VALUE_NONE;
    }
    return RONDO_STATUS_OK;
}

static rondo_status enter(moving *m, int32_t value, int32_t *out_outer) {
    *out_outer = RONDO__VALUE_NONE;
    if (value < 0) {
        return RONDO_STATUS_OK;
    }
    if (m->outer[value] < 0) {
        const rondo__value *inner = &m->body->values[value];
        RETURN_IF_ERROR(rondo__program_add_from_around(m->program, inner->name, m->body, value,
                                                       &m->outer[value]));
        rondo__value *made = &m->program->values[m->outer[value]];
        made->origin = -1;
        rondo_tensor_share(&inner->labels, &made->labels);
    }
    *out_outer = m->outer[value];
    return RONDO_STATUS_OK;
}

static rondo_status move_nodes(moving *m) {
    for (size_t n = 0; n < m->body->node_count; ++n) {
        const rondo__node *node = &m->body->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            RETURN_IF_ERROR(enter(m, node->inputs[i], &m->inputs[i]));
        }
        for (size_t i = 0; i < node->output_count; ++i) {
            RETURN_IF_ERROR(enter(m, node->outputs[i], &m->outputs[i]));
        }
        RETURN_IF_ERROR(rondo__program_add_copy(m->program, node, m->inputs, m->outputs));
    }
    return RONDO_STATUS_OK;
}

// A value that the branch makes becomes the If's output; a value that it only passes on goes
// through an Identity.
static rondo_status move_branch(moving *m, const rondo__node *node, const rondo__body_view *view) {
    const rondo_program *body = m->body;
    for (size_t i = 0; i < view->captured_count; ++i) {
        m->outer[body->inputs[i]] = node->inputs[view->captured_first + i];
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        const int32_t made = body->outputs[i];
        if (node->outputs[i] >= 0 && body->values[made].producer >= 0 && m->outer[made] < 0) {
            m->outer[made] = node->outputs[i];
        }
    }
    RETURN_IF_ERROR(move_nodes(m));
    for (size_t i = 0; i < node->output_count; ++i) {
        int32_t from;
        RETURN_IF_ERROR(enter(m, body->outputs[i], &from));
        if (node->outputs[i] >= 0 && from != node->outputs[i]) {
            RETURN_IF_ERROR(rondo__program_add_simple(m->program, "", "Identity", node->op.name,
                                                      &from, 1, &node->outputs[i], 1));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_branch(rondo__rewriting *r, size_t n) {
    const rondo__node node = r->program->nodes[n];  // its lists stay where they are
    rondo__body_view view;
    if (!find_known_branch(r->program, &node, &view)) {
        return RONDO_STATUS_OK;
    }
    moving m;
    rondo_status status = moving_init(r->program, view.attribute->body, &m);
    if (status == RONDO_STATUS_OK) {
        status = move_branch(&m, &node, &view);
    }
    moving_deinit(&m);
    r->remove[n] = true;
    return status;
}

rondo_status rondo__pass_branch(rondo_program *program) {
    return rondo__program_rewrite(program, take_branch);
}

// ---- what decides -----------------------------------------------------------------------------

static bool can_decide(const rondo__value *value) {
    rondo_shape shape;
    const bool is_whole = value->dtype == RONDO_DTYPE_BOOL ||
                          (value->dtype >= RONDO_DTYPE_I8 && value->dtype <= RONDO_DTYPE_U64);
    return is_whole && !rondo__value_is_constant(value) && rondo__value_get_shape(value, &shape) &&
           rondo_shape_get_count(&shape) == 1;
}

// Values that are known once the single integers are.
static void mark_computable(const rondo_program *program, bool *is_computable) {
    for (size_t v = 0; v < program->value_count; ++v) {
        is_computable[v] = rondo__value_is_constant(&program->values[v]);
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        is_computable[program->inputs[i]] = can_decide(&program->values[program->inputs[i]]);
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        const uint32_t hindrances = RONDO__OP_CONTROL | RONDO__OP_IMPURE | RONDO__OP_RANDOM;
        bool is_known = node->op.def->compute != NULL && (node->op.def->flags & hindrances) == 0;
        for (size_t i = 0; i < node->input_count; ++i) {
            is_known = is_known && (node->inputs[i] < 0 || is_computable[node->inputs[i]]);
        }
        for (size_t i = 0; i < node->output_count; ++i) {
            if (node->outputs[i] >= 0) {
                is_computable[node->outputs[i]] = is_known;
            }
        }
    }
}

static bool can_be_taken(const rondo__node *node) {
    rondo__body_view view;
    return find_branch(node, true, &view) || find_branch(node, false, &view);
}

rondo_status rondo__program_find_deciding(const rondo_program *program, bool *out_decides) {
    bool *is_computable = rondo__calloc(program->value_count + 1, sizeof *is_computable);
    bool *decides = rondo__calloc(program->value_count + 1, sizeof *decides);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (is_computable != NULL && decides != NULL) {
        mark_computable(program, is_computable);
        for (size_t n = program->node_count; n-- > 0;) {
            const rondo__node *node = &program->nodes[n];
            bool is_wanted = false;
            for (size_t i = 0; i < node->output_count; ++i) {
                is_wanted = is_wanted || (node->outputs[i] >= 0 && decides[node->outputs[i]]);
            }
            for (size_t i = 0; i < node->input_count && is_wanted; ++i) {
                if (node->inputs[i] >= 0) {
                    decides[node->inputs[i]] = true;
                }
            }
            if (can_be_taken(node) && is_computable[node->inputs[0]]) {
                decides[node->inputs[0]] = true;
            }
        }
        for (size_t i = 0; i < program->input_count; ++i) {
            out_decides[i] = decides[program->inputs[i]];
        }
        status = RONDO_STATUS_OK;
    }
    rondo__free(is_computable);
    rondo__free(decides);
    return status;
}
