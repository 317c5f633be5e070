// executor/compile/body_plan.c — see body_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/body_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/base_form.h"
#include "executor/compile/destroy.h"
#include "executor/state/capture_verdict.h"
#include "op/draws.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

// ---- the unit of a body -----------------------------------------------------------------------

// A unit for planning alone: without plans or a stream of its own.
static rondo_status create_unit(const rondo__unit *around, rondo_program *body, rondo__part kind,
                                rondo__unit **out_unit) {
    rondo__unit *unit = rondo__calloc(1, sizeof *unit);
    if (unit == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__unit_init(unit, around->executor, body, around->is_training);
    unit->stream = around->stream;
    unit->depth = around->depth + 1;
    unit->part = kind;
    unit->is_lean = around->is_lean;
    return rondo__unit_finish(unit, rondo__unit_make_base(unit), out_unit);
}

// ---- what hinders -----------------------------------------------------------------------------

static void refuse_value(const rondo_program *program, int32_t value, const char *why,
                         rondo__refusal *refusal) {
    (void)snprintf(refusal->text, sizeof refusal->text, "\"%.60s\" in its body %s",
                   program->values[value].name, why);
}

static void check_value(const rondo_program *program, int32_t value, rondo__refusal *refusal) {
    rondo__tensor_info info;
    if (value < 0 || refusal->text[0] != '\0') {
        return;
    }
    rondo__program_get_info(program, value, &info);
    if (info.dtype != RONDO_DTYPE_NONE && !rondo__dtype_is_plain(info.dtype)) {
        refuse_value(program, value, "is no tensor of numbers", refusal);
    } else if (info.dtype == RONDO_DTYPE_NONE || !info.is_shape_known) {
        refuse_value(program, value, "has a shape that depends on data", refusal);
    }
}

// Looks for what rules the body out before any kernel of it is made.
static rondo_status check_program(const rondo_program *program, rondo__refusal *refusal) {
    rondo_status status = RONDO_STATUS_OK;
    for (size_t n = 0; n < program->node_count && status == RONDO_STATUS_OK; ++n) {
        const rondo__node *node = &program->nodes[n];
        rondo__tensor_info *infos = rondo__calloc(node->input_count + 1, sizeof *infos);
        if (infos == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        for (size_t i = 0; i < node->input_count; ++i) {
            check_value(program, node->inputs[i], refusal);
            rondo__program_get_info(program, node->inputs[i], &infos[i]);
        }
        for (size_t i = 0; i < node->output_count; ++i) {
            check_value(program, node->outputs[i], refusal);
        }
        // Generators stand in host control where each turn leaves them.
        if (refusal->text[0] == '\0' && rondo__op_draws(&node->op, infos, node->input_count)) {
            (void)snprintf(refusal->text, sizeof refusal->text,
                           "%.40s \"%.60s\" in its body draws random numbers", node->op.def->name,
                           node->op.name);
        }
        rondo__free(infos);
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        check_value(program, program->outputs[i], refusal);
    }
    return status;
}

// Every step of the plan has to be a segment that a graph can hold. An op that has to be tried
// would break what is around the body, too.
static void check_plan(const rondo__plan *plan, rondo__refusal *refusal) {
    for (size_t s = 0; s < plan->step_count && refusal->text[0] == '\0'; ++s) {
        if (plan->steps[s].kind != RONDO__STEP_SEGMENT) {
            (void)snprintf(refusal->text, sizeof refusal->text, "in its body %.300s",
                           plan->steps[s].reason);
        }
    }
    for (size_t i = 0; i < plan->item_count && refusal->text[0] == '\0'; ++i) {
        const rondo__op *op = rondo__plan_get_op(plan, i);
        if (rondo__verdict_get_rule(op, plan->items[i].kernel) == RONDO__CAPTURE_PROBE) {
            (void)snprintf(refusal->text, sizeof refusal->text,
                           "%.40s \"%.60s\" in its body does not say whether it can be captured",
                           op->def->name, op->name);
        }
    }
}

// ---- planning ---------------------------------------------------------------------------------

// Fixes inputs whose value decides shapes, where it is known. False: all that can be are fixed.
static bool fix_wanted(const rondo__tensor_info *infos, const uint8_t *wanted, size_t count,
                       rondo_tensor *feeds) {
    bool has_new = false;
    for (size_t i = 0; i < count; ++i) {
        if (wanted[i] && feeds[i].data == NULL && infos[i].constant != NULL) {
            feeds[i] = *infos[i].constant;  // borrowed
            has_new = true;
        }
    }
    return has_new;
}

static rondo_status specialise(const rondo__planner *planner, const rondo__unit *unit,
                               const rondo__tensor_info *infos, rondo_program **out_program) {
    const size_t count = unit->source->input_count;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_tensor *feeds = rondo__calloc(count + 1, sizeof *feeds);
    uint8_t *wanted = rondo__calloc(count + 1, sizeof *wanted);
    if (feeds != NULL && wanted != NULL) {
        for (size_t i = 0; i < count; ++i) {
            feeds[i] = (rondo_tensor){.dtype = infos[i].dtype, .shape = infos[i].shape};
        }
        status = planner->specialise(unit, feeds, out_program, wanted);
        while (status == RONDO_STATUS_OK && fix_wanted(infos, wanted, count, feeds)) {
            rondo_program_destroy(*out_program);
            *out_program = NULL;
            status = planner->specialise(unit, feeds, out_program, wanted);
        }
    }
    rondo__free(feeds);
    rondo__free(wanted);
    return status;
}

static rondo_status make_plan(rondo__unit *around, const rondo__planner *planner, rondo__part kind,
                              const rondo__tensor_info *feeds, rondo__body_plan *part,
                              rondo__refusal *refusal) {
    rondo_program *program = NULL;
    RETURN_IF_ERROR(create_unit(around, part->view.attribute->body, kind, &part->unit));
    RETURN_IF_ERROR(specialise(planner, part->unit, feeds, &program));
    rondo_status status = check_program(program, refusal);
    if (status != RONDO_STATUS_OK || refusal->text[0] != '\0') {
        rondo_program_destroy(program);
        return status;
    }
    RETURN_IF_ERROR(planner->create(part->unit, program, &part->plan));
    check_plan(part->plan, refusal);
    part->uses = rondo__calloc(part->plan->program->value_count + 1, sizeof *part->uses);
    if (part->uses == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__program_count_uses(part->plan->program, part->uses);
    return RONDO_STATUS_OK;
}

rondo_status rondo__body_plan_init(rondo__unit *around, const rondo__planner *planner,
                                   const rondo__body_view *view, rondo__part kind,
                                   const rondo__tensor_info *feeds, rondo__body_plan *out_part,
                                   rondo__refusal *out_refusal) {
    rondo_error saved;
    rondo__error_save(&saved);
    *out_part = (rondo__body_plan){.view = *view};
    rondo_status status = make_plan(around, planner, kind, feeds, out_part, out_refusal);
    // A body that cannot be compiled is no error here: the op gets no kernel, and the run says what
    // is wrong with the body, if it comes to it.
    if (status == RONDO_STATUS_BAD_DATA || status == RONDO_STATUS_UNSUPPORTED) {
        (void)snprintf(out_refusal->text, sizeof out_refusal->text, "its body: %.300s",
                       rondo_error_get_last()->message);
        rondo__error_restore(&saved);
        status = RONDO_STATUS_OK;
    }
    return status;
}

void rondo__body_plan_deinit(rondo__body_plan *part) {
    if (part->unit != NULL) {
        rondo__plan_destroy(part->unit, part->plan);
        rondo__unit_destroy(part->unit);
    }
    rondo__free(part->uses);
    memset(part, 0, sizeof *part);
}

// ---- addresses --------------------------------------------------------------------------------

const rondo__slot *rondo__body_plan_get_input(const rondo__body_plan *part, size_t index) {
    return &part->plan->slots[part->plan->program->inputs[index]];
}

const rondo__slot *rondo__body_plan_get_output(const rondo__body_plan *part, size_t index) {
    return &part->plan->slots[part->plan->program->outputs[index]];
}

// Of outputs that share their bytes, the first is made in place. An output that shares its bytes
// with an input or a constant is not made in place.
bool rondo__body_plan_makes_in_place(const rondo__body_plan *part, size_t index) {
    const rondo__plan *plan = part->plan;
    const int32_t root = rondo__body_plan_get_output(part, index)->root;
    bool is_first = part->unit->part == RONDO__PART_BRANCH && plan->slots[root].is_bound;
    for (size_t i = 0; i < plan->program->input_count; ++i) {
        is_first = is_first && plan->slots[plan->program->inputs[i]].root != root;
    }
    for (size_t i = 0; i < index; ++i) {
        is_first = is_first && rondo__body_plan_get_output(part, i)->root != root;
    }
    return is_first;
}

void rondo__body_plan_bind(rondo__body_plan *part, void *arena, void *const *inputs,
                           void *const *outputs) {
    rondo__plan *plan = part->plan;
    const rondo_program *program = plan->program;
    for (size_t i = 0; i < program->output_count; ++i) {
        if (rondo__body_plan_makes_in_place(part, i)) {
            plan->slots[rondo__body_plan_get_output(part, i)->root].address = outputs[i];
        }
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        plan->slots[program->inputs[i]].address = inputs[i];
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        if (slot->kind == RONDO__SLOT_ARENA && !slot->is_bound) {
            const rondo__slot *root = &plan->slots[slot->root];
            slot->address = root->is_bound ? root->address : (char *)arena + root->offset;
        }
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        rondo__item *item = &plan->items[i];
        const rondo__node *node = &program->nodes[item->node];
        for (size_t k = 0; k < node->input_count; ++k) {
            item->inputs[k] = node->inputs[k] >= 0 ? plan->slots[node->inputs[k]].address : NULL;
        }
        for (size_t k = 0; k < node->output_count; ++k) {
            const bool is_wanted = node->outputs[k] >= 0 && part->uses[node->outputs[k]] > 0;
            item->outputs[k] = is_wanted ? plan->slots[node->outputs[k]].address : NULL;
        }
        item->workspace =
            item->kernel->workspace_bytes > 0 ? (char *)arena + item->workspace_offset : NULL;
    }
}

rondo_status rondo__body_plan_launch(const rondo__body_plan *part, rondo_stream *stream) {
    const rondo__plan *plan = part->plan;
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__item *item = &plan->items[i];
        const rondo_status status = item->kernel->launch(item->kernel, stream, item->inputs,
                                                         item->outputs, item->workspace);
        if (status != RONDO_STATUS_OK) {
            rondo__node_blame(&plan->program->nodes[item->node]);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}
