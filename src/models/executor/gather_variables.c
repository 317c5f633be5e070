// executor/gather_variables.c — at all ranks, variables of which each rank updates a part become
// whole, and the sums that each rank makes of its own gradients become their average. See
// rondo/training.h.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "collective/communicator.h"
#include "executor/run/settle.h"
#include "executor/state/states.h"
#include "rondo/training.h"

static const char call_name[] = "rondo_executor_gather_variables";

// As many tensors at once.
enum { TENSORS_MAX = 64 };

// Ranks that gather something else must not meet.
static rondo_status agree(rondo_executor *executor) {
    rondo__collectives all = {.hash = RONDO__HASH_SEED,
                              .text = rondo__calloc(1, RONDO__COLLECTIVES_TEXT_BYTES)};
    if (all.text == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t used = 0;
    for (const rondo__state *state = executor->caller.states; state != NULL; state = state->next) {
        char line[64];
        const rondo_tensor *tensor = &state->value.tensor;
        if (!rondo__state_has_parts(state)) {
            continue;
        }
        const int length = snprintf(
            line, sizeof line, "%s of %s x %" PRId64 "\n", state->is_sum ? "sum" : "variable",
            rondo_dtype_get_name(tensor->dtype), rondo_shape_get_count(&tensor->shape));
        all.hash = rondo__hash64(all.hash, line, (size_t)length);
        all.count += 1;
        if (used + (size_t)length + 1 < RONDO__COLLECTIVES_TEXT_BYTES) {
            memcpy(all.text + used, line, (size_t)length + 1);
            used += (size_t)length;
        }
    }
    const rondo_status status = rondo__communicator_begin_run(executor->options.communicator, &all);
    rondo__free(all.text);
    return status;
}

// What all ranks answer alike, also where one alone has set some variables since.
static bool have_gathered(const rondo_executor *executor) {
    const rondo__caller *caller = &executor->caller;
    return !caller->has_parts || caller->gathered_runs == caller->part_runs;
}

static rondo_status check_values(const rondo_executor *executor) {
    for (const rondo__state *state = executor->caller.states; state != NULL; state = state->next) {
        const char *name =
            executor->main.source->values[executor->main.source->inputs[state->input]].name;
        const bool is_gathered = rondo__state_has_parts(state);
        if (is_gathered && state->is_lost) {
            return RONDO_FAIL_AS(call_name, STATE,
                                 "a run that failed may have written a part of \"%.60s\"", name);
        }
        if (is_gathered && state->value.tensor.dtype == RONDO_DTYPE_NONE) {
            return RONDO_FAIL_AS(call_name, STATE, "\"%.60s\" has no value yet", name);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status gather(rondo_executor *executor, const rondo__reduction *reduction,
                           void *const *addresses) {
    rondo_communicator *communicator = executor->options.communicator;
    const void *inputs[TENSORS_MAX];
    memcpy(inputs, addresses, reduction->part_count * sizeof *inputs);
    return rondo_device_is_host(executor->device)
               ? rondo__communicator_reduce(communicator, reduction, inputs, addresses)
               : rondo__communicator_put(communicator, reduction, inputs, addresses,
                                         executor->main.stream);
}

// Of one kind: sums, or what is in parts.
static rondo_status gather_all(rondo_executor *executor, bool are_sums) {
    rondo__reduction_part parts[TENSORS_MAX];
    void *addresses[TENSORS_MAX];
    rondo__reduction reduction = {.gathers = !are_sums, .parts = parts};
    for (rondo__state *state = executor->caller.states; state != NULL; state = state->next) {
        const rondo_tensor *tensor = &state->value.tensor;
        if (are_sums ? state->is_sum : state->is_split) {
            state->is_lost = are_sums;  // until all have come to the average
            parts[reduction.part_count] =
                (rondo__reduction_part){.dtype = tensor->dtype,
                                        .count = (size_t)rondo_shape_get_count(&tensor->shape),
                                        .is_average = are_sums,
                                        .is_split = !are_sums};
            addresses[reduction.part_count++] = tensor->data;
        }
        if (reduction.part_count == TENSORS_MAX ||
            (state->next == NULL && reduction.part_count > 0)) {
            RETURN_IF_ERROR(gather(executor, &reduction, addresses));
            reduction.part_count = 0;
        }
    }
    RETURN_IF_ERROR(rondo_stream_synchronize(executor->main.stream));
    return rondo__communicator_check(executor->options.communicator);
}

rondo_status rondo_executor_gather_variables(rondo_executor *executor) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    if (have_gathered(executor)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(check_values(executor));
    RETURN_IF_ERROR(agree(executor));
    rondo_status status = gather_all(executor, false);
    status = status == RONDO_STATUS_OK ? gather_all(executor, true) : status;
    if (status != RONDO_STATUS_OK) {
        rondo__communicator_break(executor->options.communicator);
        return status;
    }
    for (rondo__state *state = executor->caller.states; state != NULL; state = state->next) {
        state->whole_at = executor->caller.part_runs;
        state->is_lost = state->is_lost && !state->is_sum;
    }
    executor->caller.gathered_runs = executor->caller.part_runs;
    return RONDO_STATUS_OK;
}
