// executor/foresee.c — see foresee.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/foresee.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/bodies.h"
#include "executor/compile/plan_cache.h"
#include "program/edit.h"
#include "tensor/elements.h"

// Zeros of the shape that a value of the plan has; false when that depends on data.
static bool make_zeros(const rondo__plan *plan, int32_t value, int64_t scan_axis,
                       rondo_tensor *out_tensor, rondo_status *out_status) {
    const rondo__slot *slot = value >= 0 ? &plan->slots[value] : NULL;
    if (slot == NULL || slot->dtype == RONDO_DTYPE_NONE || rondo__dtype_is_nested(slot->dtype) ||
        (slot->kind != RONDO__SLOT_CONSTANT && slot->kind != RONDO__SLOT_ARENA)) {
        return false;
    }
    rondo_shape shape = slot->shape;
    if (scan_axis != INT64_MIN) {  // one slice of it
        const int64_t axis = scan_axis < 0 ? scan_axis + shape.rank : scan_axis;
        if (axis < 0 || axis >= shape.rank) {
            return false;
        }
        shape = (rondo_shape){.rank = slot->shape.rank - 1};
        for (int32_t d = 0; d < slot->shape.rank; ++d) {
            if (d != axis) {
                shape.extent[d < axis ? d : d - 1] = slot->shape.extent[d];
            }
        }
    }
    *out_status = rondo_tensor_init(slot->dtype, &shape, out_tensor);
    return *out_status == RONDO_STATUS_OK;
}

// What the body is fed at its first turn. False when the plan does not know that, or on failure.
static bool make_first_feeds(const rondo__plan *plan, const rondo__node *node,
                             const rondo__body_view *view, rondo_tensor *feeds,
                             rondo_status *out_status) {
    const rondo_program *body = view->attribute->body;
    const bool is_loop = node->op.def->id == RONDO__OP_Loop;
    const bool is_scan = node->op.def->id == RONDO__OP_Scan;
    const int64_t scan_count = is_scan ? rondo__op_get_int(&node->op, "num_scan_inputs", 0) : 0;
    if (((is_loop || is_scan) && body->declared_count != node->explicit_count) ||
        (!is_loop && !is_scan && body->declared_count != 0) || scan_count < 0 ||
        (uint64_t)scan_count > node->explicit_count) {
        return false;
    }
    const size_t scan_first = node->explicit_count - (size_t)scan_count;
    for (size_t i = 0; i < body->input_count; ++i) {
        if (i >= body->declared_count) {
            const size_t captured = view->captured_first + (i - body->declared_count);
            if (!make_zeros(plan, node->inputs[captured], INT64_MIN, &feeds[i], out_status)) {
                return false;
            }
        } else if (is_loop && i < 2) {  // the iteration number and the condition
            const rondo__value *declared = &body->values[body->inputs[i]];
            rondo_shape shape = {.rank = declared->has_shape && declared->rank == 1 ? 1 : 0};
            shape.extent[0] = shape.rank;
            *out_status =
                rondo_tensor_init(i == 0 ? RONDO_DTYPE_I64 : RONDO_DTYPE_BOOL, &shape, &feeds[i]);
            if (*out_status != RONDO_STATUS_OK) {
                return false;
            }
        } else {
            const bool is_slice = is_scan && i >= scan_first;
            const int64_t axis =
                is_slice ? rondo__node_get_list_entry(node, "scan_input_axes", i - scan_first)
                         : INT64_MIN;
            if (!make_zeros(plan, node->inputs[i], axis, &feeds[i], out_status)) {
                return false;
            }
        }
    }
    return true;
}

rondo_status rondo__control_plan_body(rondo__unit *unit, const rondo__plan *plan, rondo__step *step,
                                      const char *name, rondo__unit **out_body,
                                      rondo__plan **out_plan) {
    const rondo__node *node = &plan->program->nodes[step->node];
    rondo__body_view view;
    *out_body = NULL;
    *out_plan = NULL;
    if (!rondo__body_find(node, name, &view) || rondo__node_is(node, RONDO__FUSED_Rest)) {
        return RONDO_STATUS_OK;
    }
    const rondo_program *body = view.attribute->body;
    if (view.captured_first + view.captured_count > node->input_count) {
        return RONDO_STATUS_OK;
    }
    rondo_tensor *feeds = rondo__calloc(body->input_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    if (make_first_feeds(plan, node, &view, feeds, &status)) {
        status = rondo__body_get_unit(unit, node, step, &view, out_body);
        if (status == RONDO_STATUS_OK) {
            status = rondo__unit_find_plan(*out_body, feeds, out_plan);
        }
    }
    rondo__tensors_free(feeds, body->input_count);
    return status;
}

rondo_status rondo__control_foresee(rondo__unit *unit, const rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        const rondo__op *op = &plan->program->nodes[step->node].op;
        const bool is_control =
            step->kind == RONDO__STEP_BYPASS && step->bypass == RONDO__BYPASS_CONTROL;
        for (size_t a = 0; is_control && a < op->attribute_count; ++a) {
            rondo__unit *body = NULL;
            rondo__plan *body_plan = NULL;
            if (op->attributes[a].kind != RONDO__ATTRIBUTE_BODY) {
                continue;
            }
            rondo_error saved;
            rondo__error_save(&saved);
            rondo_status status = rondo__control_plan_body(unit, plan, step, op->attributes[a].name,
                                                           &body, &body_plan);
            if (status == RONDO_STATUS_BAD_DATA || status == RONDO_STATUS_UNSUPPORTED) {
                rondo__error_restore(&saved);  // no failure: the model may never run it like that
                continue;
            }
            if (status == RONDO_STATUS_OK && body_plan != NULL) {
                status = rondo__control_foresee(body, body_plan);
            }
            RETURN_IF_ERROR(status);
        }
    }
    return RONDO_STATUS_OK;
}
