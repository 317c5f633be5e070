// executor/compile/split_counted.c — see split_counted.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/split_counted.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/compile/device_control.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/transfers.h"
#include "executor/state/limits.h"
#include "executor/state/op_span.h"
#include "op/bounds.h"
#include "program/passes/rewrite.h"
#include "program/place_mark.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

enum {
    ROOM_PART = 4,    // rooms of one op may take this part of what the device has
    OUTPUTS_MAX = 8,  // of an op that finds something, the count among them
};

// ---- what can be done -------------------------------------------------------------------------

typedef struct splitting {
    const rondo__unit *unit;
    rondo__plan *plan;
    rondo_program *program;
    uint32_t *uses;              // by value, as they were before
    rondo__tensor_info *inputs;  // of the node at hand
    size_t count_output;         // which of its outputs will be the count
    rondo__op_bound bounds[OUTPUTS_MAX];
    rondo__tensor_info outputs[OUTPUTS_MAX];  // its rooms and the count
} splitting;

static bool is_wanted(const splitting *s, const rondo__node *node, size_t output) {
    return output < node->output_count && node->outputs[output] >= 0 &&
           s->uses[node->outputs[output]] > 0;
}

// Whether the op may run on the executor's own GPU, as far as the caller goes.
static bool is_placed_here(const splitting *s, const rondo__node *node) {
    const uint8_t place = node->place.place;
    return place == RONDO__PLACE_ANY || place == RONDO__PLACE_GPU ||
           (place >= RONDO__PLACE_GPU_0 &&
            place - RONDO__PLACE_GPU_0 == rondo__other_gpus_get_own(s->unit->executor));
}

// The sizes of a node's rooms. False: not known, or too large.
static bool find_rooms(splitting *s, const rondo__node *node) {
    const uint64_t most = rondo__executor_get_device_room(s->unit->executor) / ROOM_PART;
    uint64_t bytes = 0;
    s->count_output = rondo__op_get_count_output(node->op.def);
    if (s->count_output >= OUTPUTS_MAX || node->output_count > s->count_output) {
        return false;
    }
    memset(s->outputs, 0, sizeof s->outputs);
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__program_get_info(s->program, node->inputs[i], &s->inputs[i]);
        if (node->inputs[i] >= 0 && !rondo__dtype_is_plain(s->inputs[i].dtype)) {
            return false;
        }
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        rondo__tensor_info info;
        if (!is_wanted(s, node, i)) {
            continue;
        }
        rondo__program_get_info(s->program, node->outputs[i], &info);
        if (!rondo__op_get_bound(&node->op, s->inputs, node->input_count, i, &s->bounds[i]) ||
            info.dtype == RONDO_DTYPE_NONE) {
            return false;
        }
        s->outputs[i] = (rondo__tensor_info){
            .dtype = info.dtype, .is_shape_known = true, .shape = s->bounds[i].shape};
        const rondo_tensor room = {.dtype = info.dtype, .shape = s->bounds[i].shape};
        bytes += rondo_tensor_get_bytes(&room);
        if (rondo_tensor_get_bytes(&room) == 0 || bytes > most) {
            RONDO_LOG_INFO_F("%s runs on the host: the most that it can find %s",
                             rondo__node_describe(node),
                             bytes > most ? "does not fit beside all else" : "is nothing");
            return false;
        }
    }
    s->outputs[s->count_output] = (rondo__tensor_info){
        .dtype = RONDO_DTYPE_I64, .is_shape_known = true, .shape = {.rank = 1, .extent = {1}}};
    return bytes > 0;
}

// Whether the device has a kernel for it. The plan finds the text compiled when it prepares the
// kernel.
static rondo_status try_kernel(const splitting *s, const rondo__node *node, bool *out_has_kernel) {
    rondo__plan *plan = s->plan;
    rondo__kernel *kernel = NULL;
    const rondo__kernel_request request = {.device = s->unit->executor->device,
                                           .op = &node->op,
                                           .input_count = node->input_count,
                                           .inputs = s->inputs,
                                           .output_count = s->count_output + 1,
                                           .outputs = s->outputs,
                                           .weights = &plan->weights,
                                           .tuning = s->unit->executor->options.tuning,
                                           .choices = s->unit->executor->resources.choices};
    const size_t weight_count = plan->weights.count;
    const rondo_status status = rondo__kernel_prepare(&request, &kernel);
    rondo__kernel_destroy(kernel);
    rondo__weight_list_cut(&plan->weights, weight_count);
    *out_has_kernel = status == RONDO_STATUS_OK;
    if (status == RONDO_STATUS_UNSUPPORTED) {
        RONDO_LOG_INFO_F("%s runs on the host: %s", rondo__node_describe(node),
                         rondo_error_get_last()->message);
        return RONDO_STATUS_OK;
    }
    return status;
}

// ---- the rewriting ----------------------------------------------------------------------------

static rondo_status add_value(splitting *s, int32_t of, const char *what,
                              const rondo__tensor_info *info, int32_t *out_value) {
    char name[160];
    (void)snprintf(name, sizeof name, "%.140s.%s", s->program->values[of].name, what);
    return rondo__program_add_shaped(s->program, name, info->dtype, &info->shape, out_value);
}

// Lets node `n` write rooms and a count; `outputs` is the new list, which it takes.
static void set_outputs(splitting *s, size_t n, int32_t *outputs) {
    rondo__node *node = &s->program->nodes[n];
    rondo__free(node->outputs);
    node->outputs = outputs;
    node->output_count = s->count_output + 1;
    for (size_t i = 0; i < node->output_count; ++i) {
        if (outputs[i] >= 0) {
            s->program->values[outputs[i]].producer = (int32_t)n;
        }
    }
}

static rondo_status split_node(splitting *s, size_t n) {
    int32_t results[OUTPUTS_MAX];
    int32_t reads[OUTPUTS_MAX];
    size_t count = 0;
    int32_t *outputs = rondo__calloc(s->count_output + 1, sizeof *outputs);
    if (outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i <= s->count_output; ++i) {
        outputs[i] = RONDO__VALUE_NONE;
    }
    for (size_t i = 0; i < s->count_output && status == RONDO_STATUS_OK; ++i) {
        const bool is_made = is_wanted(s, &s->program->nodes[n], i);
        const int32_t value = is_made ? s->program->nodes[n].outputs[i] : RONDO__VALUE_NONE;
        if (is_made && s->bounds[i].axis < 0) {  // known after all: written where it is to lie
            outputs[i] = value;
            rondo__value_set_shape(&s->program->values[value], s->outputs[i].dtype,
                                   &s->outputs[i].shape);
        } else if (is_made) {
            status = add_value(s, value, "room", &s->outputs[i], &outputs[i]);
            results[count] = value;
            reads[count++] = outputs[i];
        }
    }
    if (status == RONDO_STATUS_OK && count > 0) {
        status = add_value(s, results[0], "count", &s->outputs[s->count_output],
                           &outputs[s->count_output]);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(outputs);
        return status;
    }
    reads[count] = outputs[s->count_output];
    set_outputs(s, n, outputs);
    return count > 0 ? rondo__program_add_simple(s->program, "rondo", "Counted",
                                                 s->program->nodes[n].op.name, reads, count + 1,
                                                 results, count)
                     : RONDO_STATUS_OK;
}

static rondo_status visit_node(splitting *s, size_t n, bool *out_is_changed) {
    const rondo__node *node = &s->program->nodes[n];
    bool has_kernel = false;
    if (node->op.def->bound == NULL || !is_placed_here(s, node)) {
        return RONDO_STATUS_OK;
    }
    s->inputs = rondo__calloc(node->input_count + 1, sizeof *s->inputs);
    if (s->inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = find_rooms(s, node) ? try_kernel(s, node, &has_kernel) : RONDO_STATUS_OK;
    rondo__free(s->inputs);
    if (status == RONDO_STATUS_OK && has_kernel) {
        *out_is_changed = true;
        status = split_node(s, n);
    }
    return status;
}

rondo_status rondo__counted_split(const rondo__unit *unit, rondo__plan *plan) {
    rondo_program *program = plan->program;
    const size_t node_count = program->node_count;
    splitting s = {.unit = unit, .plan = plan, .program = program};
    bool is_changed = false;
    if (!rondo__unit_has_two_sides(unit) || unit->is_lean || unit->executor->options.reference) {
        return RONDO_STATUS_OK;
    }
    s.uses = rondo__calloc(program->value_count + 1, sizeof *s.uses);
    bool *remove = rondo__calloc(node_count + 1, sizeof *remove);
    rondo_status status =
        s.uses == NULL || remove == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK) {
        rondo__program_count_uses(program, s.uses);
    }
    for (size_t n = 0; n < node_count && status == RONDO_STATUS_OK; ++n) {
        status = visit_node(&s, n, &is_changed);
    }
    if (is_changed) {
        status = rondo__program_finish_rewrite(program, remove, node_count, status);
    }
    rondo__free(s.uses);
    rondo__free(remove);
    return status;
}
