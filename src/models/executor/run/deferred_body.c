// executor/run/deferred_body.c — see deferred_body.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/deferred_body.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/device_control.h"
#include "executor/devices/transfers.h"
#include "executor/run/check_results.h"
#include "executor/state/op_span.h"
#include "executor/state/plan_worth.h"
#include "program/edit.h"
#include "tensor/elements.h"

// The body's unit, with its own measure of which shapes are worth a plan (plan_worth.h).
static rondo_status find_body(rondo__unit *unit, const rondo__node *node, rondo__step *step,
                              rondo__unit **out_body) {
    rondo__body_view view;
    if (!rondo__body_find(node, "rest", &view) || view.captured_count != node->input_count ||
        view.attribute->body->output_count != node->output_count) {
        return RONDO_FAIL(INTERNAL, "%s has no body", rondo__node_describe(node));
    }
    RETURN_IF_ERROR(rondo__body_get_unit(unit, node, step, &view, out_body));
    rondo__unit *body = *out_body;
    if (body->worth == NULL) {
        body->worth = rondo__calloc(1, sizeof *body->worth);
        if (body->worth == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        rondo__plan_worth_init(view.attribute->body, body->worth);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__control_run_rest(const rondo__control *control,
                                     const rondo_tensor *const *inputs, rondo_tensor *results) {
    const rondo__node *node = control->node;
    rondo__unit *body;
    RETURN_IF_ERROR(find_body(control->unit, node, control->step, &body));
    rondo_tensor *feeds = rondo__calloc(node->input_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        feeds[i] = *inputs[i];  // borrowed for the run
    }
    const rondo_status status = control->run_body(body, feeds, results, NULL);
    rondo__free(feeds);
    return status;
}

// ---- on a GPU ---------------------------------------------------------------------------------

bool rondo__deferred_stays_on_device(const rondo__plan *plan, const rondo__step *step) {
    return step->kind == RONDO__STEP_BYPASS && step->bypass == RONDO__BYPASS_CONTROL &&
           plan->sides != NULL &&
           rondo__node_is(&plan->program->nodes[step->node], RONDO__FUSED_Rest);
}

// Where an input lies. Borrowed.
static rondo_status find_input(const rondo_executor *executor, const rondo__plan *plan,
                               int32_t value, rondo_tensor *out_feed) {
    const rondo__slot *slot = &plan->slots[value];
    rondo_tensor feed = {.dtype = slot->dtype, .shape = slot->shape, .data = slot->address};
    switch (slot->kind) {
        case RONDO__SLOT_CONSTANT:
            feed.data = plan->program->values[slot->root].constant.data;
            feed.storage = plan->program->values[slot->root].constant.storage;
            break;
        case RONDO__SLOT_DYNAMIC:
            feed = plan->run.dynamic[value];
            break;
        case RONDO__SLOT_ARENA:
            feed.device = slot->is_on_host ? NULL : executor->device;
            break;
        case RONDO__SLOT_NONE:
            break;
    }
    if (feed.dtype == RONDO_DTYPE_NONE || slot->kind == RONDO__SLOT_NONE) {
        return RONDO_FAIL(INTERNAL, "\"%s\" was not computed", plan->program->values[value].name);
    }
    *out_feed = feed;
    return RONDO_STATUS_OK;
}

// Puts a result into its value slot: a view stays one; a value of the arena is copied there.
static rondo_status store_result(rondo__unit *unit, rondo__plan *plan, const rondo__node *node,
                                 size_t i, rondo_tensor *result) {
    const int32_t value = node->outputs[i];
    const rondo__slot *slot = &plan->slots[value];
    RETURN_IF_ERROR(rondo__results_check(plan, node, i, result));
    if (slot->kind == RONDO__SLOT_DYNAMIC) {
        rondo_tensor_deinit(&plan->run.dynamic[value]);
        plan->run.dynamic[value] = *result;
        *result = (rondo_tensor){0};
        return RONDO_STATUS_OK;
    }
    if (slot->kind != RONDO__SLOT_ARENA || slot->bytes == 0) {
        return RONDO_STATUS_OK;
    }
    const rondo__copy_note note = rondo__plan_note_copy(plan, value, &node->op, NULL);
    if (result->device != NULL) {
        return rondo__stream_copy_noted(unit->stream, slot->address, result->data, slot->bytes,
                                        RONDO_COPY_DEVICE_TO_DEVICE, &note);
    }
    rondo__transfers_note(unit->executor, RONDO__TO_DEVICE, slot->bytes, false);
    return rondo__transfers_copy(unit->stream, RONDO__TO_DEVICE, &note, slot->address, result->data,
                                 slot->bytes);
}

typedef struct near_run {
    rondo__unit *body;
    rondo_tensor *feeds;
    rondo_tensor *results;
    bool *wants;
} near_run;

static rondo_status run_body_near(rondo__unit *unit, rondo__plan *plan, const rondo__node *node,
                                  rondo__body_runner run_body, const near_run *run) {
    for (size_t i = 0; i < node->input_count; ++i) {
        RETURN_IF_ERROR(find_input(unit->executor, plan, node->inputs[i], &run->feeds[i]));
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        const int32_t value = node->outputs[i];
        run->wants[i] = value >= 0 && plan->slots[value].kind != RONDO__SLOT_NONE;
    }
    RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    RETURN_IF_ERROR(rondo__device_control_check(unit->executor, plan));
    run->body->device_feeds = run->feeds;
    const rondo_status status = run_body(run->body, run->feeds, run->results, run->wants);
    run->body->device_feeds = NULL;
    RETURN_IF_ERROR(status);
    for (size_t i = 0; i < node->output_count; ++i) {
        if (run->wants[i]) {
            RETURN_IF_ERROR(store_result(unit, plan, node, i, &run->results[i]));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status run_near(rondo__unit *unit, rondo__plan *plan, rondo__step *step,
                             rondo__body_runner run_body) {
    const rondo__node *node = &plan->program->nodes[step->node];
    near_run run = {0};
    RETURN_IF_ERROR(find_body(unit, node, step, &run.body));
    run.body->stays_on_device = true;
    run.feeds = rondo__calloc(node->input_count + 1, sizeof *run.feeds);
    run.results = rondo__calloc(node->output_count + 1, sizeof *run.results);
    run.wants = rondo__calloc(node->output_count + 1, sizeof *run.wants);
    const rondo_status status = run.feeds == NULL || run.results == NULL || run.wants == NULL
                                    ? RONDO_STATUS_NO_MEMORY
                                    : run_body_near(unit, plan, node, run_body, &run);
    rondo__free(run.feeds);
    rondo__tensors_free(run.results, node->output_count);
    rondo__free(run.wants);
    return status;
}

rondo_status rondo__deferred_run_on_device(rondo__unit *unit, rondo__plan *plan, rondo__step *step,
                                           rondo__body_runner run_body) {
    const rondo__node *node = &plan->program->nodes[step->node];
    const rondo__hook_scope scope = rondo__op_span_enter(&node->op, NULL, false);
    const rondo_status status = run_near(unit, plan, step, run_body);
    rondo__hook_leave(&scope);
    if (status != RONDO_STATUS_OK) {
        rondo__node_blame(node);
    }
    return status;
}
