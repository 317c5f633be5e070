// executor/run/run_counted.c — see run_counted.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/run_counted.h"

#include <string.h>

#include "base/error.h"
#include "executor/compile/device_control.h"
#include "executor/state/counted.h"
#include "executor/state/op_span.h"
#include "program/shapes/specialise.h"

// The op that has counted, with what it can find at most, says which axis a count is the extent of:
// the only one of its result that the plan does not know.
static rondo_status set_result(rondo_executor *executor, rondo__plan *plan, const rondo__node *node,
                               size_t i, int64_t count) {
    const rondo__slot *room = &plan->slots[node->inputs[i]];
    rondo_tensor *result = &plan->run.dynamic[node->outputs[i]];
    rondo__tensor_info info;
    rondo_shape shape = room->shape;
    rondo__program_get_info(plan->program, node->outputs[i], &info);
    for (int32_t d = 0; d < shape.rank; ++d) {
        const bool is_counted = info.shape.extent[d] < 0;
        if (is_counted && count > shape.extent[d]) {
            return RONDO_FAIL(INTERNAL, "it found %lld of at most %lld", (long long)count,
                              (long long)shape.extent[d]);
        }
        shape.extent[d] = is_counted ? count : shape.extent[d];
    }
    rondo_tensor_deinit(result);
    *result = (rondo_tensor){
        .dtype = room->dtype, .shape = shape, .data = room->address, .device = executor->device};
    return RONDO_STATUS_OK;
}

static rondo_status read_count(rondo__unit *unit, rondo__plan *plan, const rondo__node *node) {
    const int32_t value = node->inputs[rondo__counted_get_input(node)];
    int64_t count;
    RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    RETURN_IF_ERROR(rondo__device_control_check(unit->executor, plan));
    memcpy(&count, plan->slots[value].address, sizeof count);
    for (size_t i = 0; i < node->output_count; ++i) {
        RETURN_IF_ERROR(count >= 0 ? set_result(unit->executor, plan, node, i, count)
                                   : RONDO_FAIL(INTERNAL, "it found %lld", (long long)count));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__counted_run(rondo__unit *unit, rondo__plan *plan, const rondo__step *step) {
    const rondo__node *node = &plan->program->nodes[step->node];
    const rondo__hook_scope scope = rondo__op_span_enter(&node->op, NULL, false);
    const rondo_status status = read_count(unit, plan, node);
    rondo__hook_leave(&scope);
    if (status != RONDO_STATUS_OK) {
        rondo__node_blame(rondo__counted_get_maker(plan, step->node));
    }
    return status;
}
