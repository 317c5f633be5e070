// executor/run/late_values.c — see late_values.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/late_values.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/transfers.h"
#include "executor/state/op_span.h"
#include "executor/state/run_memory.h"

bool rondo__late_values_is_on_gpu(const rondo_executor *executor, const rondo_tensor *tensor) {
    return tensor->device == executor->device && !rondo_device_is_host(executor->device);
}

static rondo_status copy_to_host(rondo__unit *unit, const rondo__plan *plan, int32_t value,
                                 const rondo__node *node, rondo_tensor *out_copy) {
    const rondo_tensor *near = &plan->run.dynamic[value];
    const size_t bytes = rondo_tensor_get_bytes(near);
    rondo__copy_note note = rondo__plan_note_copy(plan, value, &node->op, NULL);
    rondo_tensor copy;
    note.shape = &near->shape;
    RETURN_IF_ERROR(rondo_tensor_init(near->dtype, &near->shape, &copy));
    const rondo_status status = bytes > 0
                                    ? rondo__transfers_copy(unit->stream, RONDO__TO_HOST, &note,
                                                            copy.data, near->data, bytes)
                                    : RONDO_STATUS_OK;
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(&copy);
        return status;
    }
    if (bytes > 0) {
        rondo__transfers_note(unit->executor, RONDO__TO_HOST, bytes, true);
    }
    *out_copy = copy;
    return RONDO_STATUS_OK;
}

rondo_status rondo__late_values_bring(rondo__unit *unit, rondo__plan *plan, int32_t value,
                                      const rondo__node *node, const rondo_tensor **out_tensor) {
    *out_tensor = &plan->run.dynamic[value];
    if (!rondo__late_values_is_on_gpu(unit->executor, *out_tensor)) {
        return RONDO_STATUS_OK;
    }
    if (plan->run.late_copies == NULL) {
        plan->run.late_copies =
            rondo__calloc(plan->program->value_count + 1, sizeof *plan->run.late_copies);
    }
    if (plan->run.late_copies == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_tensor = &plan->run.late_copies[value];
    return plan->run.late_copies[value].dtype != RONDO_DTYPE_NONE
               ? RONDO_STATUS_OK
               : copy_to_host(unit, plan, value, node, &plan->run.late_copies[value]);
}

rondo_status rondo__late_values_reserve(rondo__unit *unit, rondo__plan *plan, size_t bytes) {
    if (bytes == 0 || (plan->run.late_staging != NULL && plan->run.late_staging->bytes >= bytes)) {
        return RONDO_STATUS_OK;
    }
    // Runs that were not waited for may be using the former one.
    RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    rondo__run_memory_release(unit, plan->run.late_staging);
    plan->run.late_staging = NULL;
    return rondo__run_memory_acquire_late(unit, bytes, &plan->run.late_staging);
}
