// executor/run/bypass.c — see bypass.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/bypass.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/device_control.h"
#include "executor/run/check_results.h"
#include "executor/run/control.h"
#include "executor/run/late_values.h"
#include "executor/state/generators.h"
#include "executor/state/op_span.h"
#include "op/draws.h"

typedef struct bypass {
    rondo__unit *unit;
    rondo__plan *plan;
    const rondo__node *node;
    rondo_tensor *inputs;  // borrowed or owned views of the inputs in host memory
    const rondo_tensor **input_pointers;
    rondo_tensor *outputs;
    bool *wants;
} bypass;

static void bypass_deinit(bypass *b) {
    for (size_t i = 0; b->inputs != NULL && i < b->node->input_count; ++i) {
        rondo_tensor_deinit(&b->inputs[i]);
    }
    for (size_t i = 0; b->outputs != NULL && i < b->node->output_count; ++i) {
        rondo_tensor_deinit(&b->outputs[i]);
    }
    rondo__free(b->inputs);
    rondo__free(b->input_pointers);
    rondo__free(b->outputs);
    rondo__free(b->wants);
}

static rondo_status bypass_init(rondo__unit *unit, rondo__plan *plan, const rondo__node *node,
                                bypass *out_bypass) {
    bypass b = {.unit = unit, .plan = plan, .node = node};
    b.inputs = rondo__calloc(node->input_count + 1, sizeof *b.inputs);
    b.input_pointers = rondo__calloc(node->input_count + 1, sizeof *b.input_pointers);
    b.outputs = rondo__calloc(node->output_count + 1, sizeof *b.outputs);
    b.wants = rondo__calloc(node->output_count + 1, sizeof *b.wants);
    if (b.inputs == NULL || b.input_pointers == NULL || b.outputs == NULL || b.wants == NULL) {
        bypass_deinit(&b);
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_bypass = b;
    return RONDO_STATUS_OK;
}

// Makes input `i` readable on the host. In a plan of a GPU it has been copied there (transfers.h),
// is empty, or is copied there now (late_values.h): it can be read when the stream was waited for.
static rondo_status fetch_input(bypass *b, size_t i) {
    int32_t value = b->node->inputs[i];
    if (value < 0) {
        return RONDO_STATUS_OK;
    }
    const rondo__slot *slot = &b->plan->slots[value];
    const rondo_tensor *root = NULL;
    switch (slot->kind) {
        case RONDO__SLOT_CONSTANT:
            root = &b->plan->program->values[slot->root].constant;
            rondo_tensor_share(root, &b->inputs[i]);
            b->inputs[i].dtype = slot->dtype;
            b->inputs[i].shape = slot->shape;
            break;
        case RONDO__SLOT_DYNAMIC:
            root = &b->plan->run.dynamic[value];
            if (!rondo__op_asks_shapes(&b->node->op)) {
                RETURN_IF_ERROR(rondo__late_values_bring(b->unit, b->plan, value, b->node, &root));
            }
            if (root->dtype == RONDO_DTYPE_NONE) {
                return RONDO_FAIL(INTERNAL, "input %zu of %s was not computed", i,
                                  rondo__node_describe(b->node));
            }
            rondo_tensor_share(root, &b->inputs[i]);
            break;
        case RONDO__SLOT_ARENA:
            b->inputs[i] =
                (rondo_tensor){.dtype = slot->dtype, .shape = slot->shape, .data = slot->address};
            break;
        case RONDO__SLOT_NONE:
            return RONDO_FAIL(INTERNAL, "input %zu of %s has no place", i,
                              rondo__node_describe(b->node));
    }
    b->input_pointers[i] = &b->inputs[i];
    return RONDO_STATUS_OK;
}

// Prepares output `i` for the reference: one of a known shape is written where it is to lie.
static rondo_status prepare_output(bypass *b, size_t i) {
    int32_t value = b->node->outputs[i];
    b->wants[i] = value >= 0 && b->plan->slots[value].kind != RONDO__SLOT_NONE;
    if (!b->wants[i] || b->plan->slots[value].kind != RONDO__SLOT_ARENA) {
        return RONDO_STATUS_OK;
    }
    const rondo__slot *slot = &b->plan->slots[value];
    b->outputs[i] =
        (rondo_tensor){.dtype = slot->dtype, .shape = slot->shape, .data = slot->address};
    return RONDO_STATUS_OK;
}

// Puts result `i` into its value slot.
static rondo_status store_output(bypass *b, size_t i) {
    int32_t value = b->node->outputs[i];
    if (!b->wants[i]) {
        return RONDO_STATUS_OK;
    }
    const rondo__slot *slot = &b->plan->slots[value];
    RETURN_IF_ERROR(rondo__results_check(b->plan, b->node, i, &b->outputs[i]));
    if (slot->kind == RONDO__SLOT_DYNAMIC) {
        rondo_tensor_deinit(&b->plan->run.dynamic[value]);
        b->plan->run.dynamic[value] = b->outputs[i];
        memset(&b->outputs[i], 0, sizeof b->outputs[i]);
        return RONDO_STATUS_OK;
    }
    if (slot->kind != RONDO__SLOT_ARENA || slot->bytes == 0) {
        return RONDO_STATUS_OK;
    }
    if (b->outputs[i].data != slot->address) {
        memcpy(slot->address, b->outputs[i].data, slot->bytes);
    }
    return RONDO_STATUS_OK;
}

// Runs the reference. One that draws does so from where its generator stands, and moves that on.
static rondo_status run_reference(bypass *b) {
    rondo__compute compute = {.op = &b->node->op,
                              .input_count = b->node->input_count,
                              .output_count = b->node->output_count,
                              .inputs = b->input_pointers,
                              .outputs = b->outputs,
                              .wants_output = b->wants};
    rondo__tensor_info training[3] = {{0}};
    if (b->node->input_count > 2 && b->input_pointers[2] != NULL) {
        training[2].dtype = b->input_pointers[2]->dtype;
        training[2].constant = b->input_pointers[2];
    }
    if (!rondo__op_draws(&b->node->op, training,
                         b->node->input_count < 3 ? b->node->input_count : 3)) {
        return rondo__op_compute(&compute);
    }
    rondo_generator *generator = NULL;
    rondo_generator_state state;
    uint64_t counters = 0;
    RETURN_IF_ERROR(rondo__executor_get_generator(b->unit->executor, b->node, &generator));
    RETURN_IF_ERROR(rondo_generator_get_state(generator, &state));
    compute.random = &state;
    compute.random_counters = &counters;
    RETURN_IF_ERROR(rondo__op_compute(&compute));
    state.offset += counters;
    return rondo_generator_set_state(generator, &state);
}

static rondo_status run_bypass(rondo__unit *unit, rondo__plan *plan, rondo__step *step,
                               rondo__body_runner run_body) {
    const rondo__node *node = &plan->program->nodes[step->node];
    bypass b;
    rondo_status status = bypass_init(unit, plan, node, &b);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    bool is_control = step->bypass == RONDO__BYPASS_CONTROL;
    for (size_t i = 0; i < node->input_count && status == RONDO_STATUS_OK; ++i) {
        status = fetch_input(&b, i);
    }
    for (size_t i = 0; i < node->output_count && status == RONDO_STATUS_OK; ++i) {
        status = is_control ? RONDO_STATUS_OK : prepare_output(&b, i);
        if (is_control) {
            b.wants[i] = node->outputs[i] >= 0;
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(unit->stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__device_control_check(unit->executor, plan);
    }
    if (status == RONDO_STATUS_OK && is_control) {
        const rondo__control control = {unit, node, step, run_body};
        status = rondo__control_run(&control, b.input_pointers, b.outputs);
    } else if (status == RONDO_STATUS_OK) {
        const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_COMPUTE, "compute");
        status = run_reference(&b);
        rondo__hook_leave(&scope);
    }
    for (size_t i = 0; i < node->output_count && status == RONDO_STATUS_OK; ++i) {
        status = store_output(&b, i);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__node_blame(node);
    }
    bypass_deinit(&b);
    return status;
}

rondo_status rondo__bypass_run(rondo__unit *unit, rondo__plan *plan, rondo__step *step,
                               rondo__body_runner run_body) {
    const rondo__hook_scope scope =
        rondo__op_span_enter(&plan->program->nodes[step->node].op, NULL, false);
    const rondo_status status = run_bypass(unit, plan, step, run_body);
    rondo__hook_leave(&scope);
    return status;
}
