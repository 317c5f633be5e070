// executor/state/limits.c — see limits.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/limits.h"

#include <inttypes.h>

#include "base/error.h"
#include "device/device.h"
#include "executor/state/run_state.h"
#include "tensor/elements.h"

enum {
    LOOP_LIMIT_DEFAULT = 10 * 1000 * 1000,
    // The default memory limit: this much, and multiples of the model's file and of what is fed.
    BASE_GIB = 2,
    FILE_FACTOR = 64,   // weights in several forms, folded constants, and plans by the dozen
    FEED_FACTOR = 256,  // a convolution of 64 channels over an image, a few of them alive at a time
};

static const char memory_option[] = "memory_limit_bytes (--memory-limit)";

static uint64_t get_default_limit(const rondo__unit *unit) {
    const uint64_t limit =
        rondo__budget_choose_limit((uint64_t)BASE_GIB << 30, unit->source->file_bytes, FILE_FACTOR);
    return rondo__budget_choose_limit(limit, unit->runs.fed_bytes, FEED_FACTOR);
}

rondo_status rondo__executor_make_budgets(rondo_executor *executor) {
    const uint64_t wanted = executor->options.memory_limit_bytes;
    RETURN_IF_ERROR(rondo__budget_create(wanted > 0 ? wanted : get_default_limit(&executor->main),
                                         memory_option, &executor->resources.budget));
    if (rondo_device_is_host(executor->device)) {
        return RONDO_STATUS_OK;
    }
    return rondo__executor_make_device_budget(executor, &executor->resources.device_budget);
}

rondo_status rondo__executor_make_device_budget(const rondo_executor *executor,
                                                rondo__budget **out_budget) {
    const uint64_t wanted = executor->options.memory_limit_bytes;
    return rondo__budget_create(wanted > 0 ? wanted : UINT64_MAX, memory_option, out_budget);
}

void rondo__name_largest_on_gpu(const rondo__budget *budget, rondo_status status) {
    if (status == RONDO_STATUS_NO_DEVICE_MEMORY) {
        rondo__budget_name_largest(budget);
    }
}

rondo_status rondo__executor_note_limit(const rondo_executor *executor, uint64_t refusals,
                                        rondo_status status) {
    return status == RONDO_STATUS_OK ||
                   rondo__budget_get_refusals(executor->resources.budget) == refusals
               ? status
               : RONDO_FAIL(NO_MEMORY, "%s", rondo_error_get_last()->message);
}

rondo_status rondo__executor_allocate(rondo_executor *executor, rondo__owner owner, size_t bytes,
                                      void **out_address) {
    rondo__budget *budget =
        executor->resources.device_budget;  // the host's own blocks count themselves
    if (!rondo__budget_take(budget, owner, bytes)) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const uint64_t refusals = rondo__budget_get_refusals(executor->resources.budget);
    const rondo__owner before = rondo__budget_enter_owner(owner);
    rondo_status status =
        rondo_memory_allocate(executor->device, RONDO_MEMORY_DEVICE, bytes, out_address);
    (void)rondo__budget_enter_owner(before);
    if (status == RONDO_STATUS_OK) {
        return status;
    }
    rondo__budget_give_back(budget, owner, bytes);
    rondo__name_largest_on_gpu(budget, status);
    return rondo__executor_note_limit(executor, refusals, status);
}

void rondo__executor_free(rondo_executor *executor, rondo__owner owner, void *address,
                          size_t bytes) {
    if (address != NULL) {
        rondo_memory_free(executor->device, address);
        rondo__budget_give_back(executor->resources.device_budget, owner, bytes);
    }
}

rondo_status rondo__executor_allocate_pinned(rondo_executor *executor, size_t bytes,
                                             void **out_address) {
    const bool is_host = rondo_device_is_host(executor->device);  // whose blocks count themselves
    rondo__budget *budget = is_host ? NULL : executor->resources.budget;
    if (!rondo__budget_take(budget, RONDO__OWNER_PINNED, bytes)) {
        rondo__error_prefix("pinned memory");
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo__owner before = rondo__budget_enter_owner(RONDO__OWNER_PINNED);
    const rondo_status status =
        rondo_memory_allocate(executor->device, RONDO_MEMORY_PINNED, bytes, out_address);
    (void)rondo__budget_enter_owner(before);
    if (status != RONDO_STATUS_OK) {
        rondo__budget_give_back(budget, RONDO__OWNER_PINNED, bytes);
    }
    return status;
}

void rondo__executor_free_pinned(rondo_executor *executor, void *address, size_t bytes) {
    if (address != NULL) {
        rondo_memory_free(executor->device, address);
        rondo__budget_give_back(
            rondo_device_is_host(executor->device) ? NULL : executor->resources.budget,
            RONDO__OWNER_PINNED, bytes);
    }
}

uint64_t rondo__executor_get_device_room(const rondo_executor *executor) {
    const rondo__budget *budget = executor->resources.device_budget;
    const uint64_t limit = budget != NULL ? rondo__budget_get_limit(budget) : UINT64_MAX;
    rondo_device_info info = {.struct_size = sizeof info};
    if (rondo__device_get_facts(executor->device, &info) != RONDO_STATUS_OK) {
        return limit;
    }
    return info.memory_bytes > 0 && info.memory_bytes < limit ? info.memory_bytes : limit;
}

rondo_status rondo__peer_allocate(rondo__peer *peer, rondo__owner owner, size_t bytes,
                                  void **out_address) {
    if (!rondo__budget_take(peer->budget, owner, bytes)) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status =
        rondo_memory_allocate(peer->device, RONDO_MEMORY_DEVICE, bytes, out_address);
    if (status != RONDO_STATUS_OK) {
        rondo__budget_give_back(peer->budget, owner, bytes);
        rondo__name_largest_on_gpu(peer->budget, status);
    }
    return status;
}

void rondo__peer_free(rondo__peer *peer, rondo__owner owner, void *address, size_t bytes) {
    if (address != NULL) {
        rondo_memory_free(peer->device, address);
        rondo__budget_give_back(peer->budget, owner, bytes);
    }
}

// ---- one call of the caller -------------------------------------------------------------------

enum { CALL_NONE, CALL_RUNNING, CALL_CANCELLED = RONDO__FLOW_CANCELLED };

// As rondo__error_save; most threads have no failure to remember, and the record is long.
static void save_record(rondo__call *call) {
    const rondo_error *last = rondo_error_get_last();
    if (last->status != RONDO_STATUS_OK || call->record_before.status != RONDO_STATUS_OK) {
        rondo__error_save(&call->record_before);
    }
    call->record_before.struct_size = last->struct_size;
    call->record_before.file = last->file;
    call->record_before.sequence = last->sequence;
}

rondo__budget *rondo__executor_begin_call(rondo_executor *executor, const rondo_binding *feeds,
                                          size_t feed_count) {
    uint64_t fed_bytes = 0;
    for (size_t i = 0; i < feed_count; ++i) {
        const uint64_t bytes = rondo__tensor_measure(&feeds[i].tensor);
        fed_bytes = bytes > UINT64_MAX - fed_bytes ? UINT64_MAX : fed_bytes + bytes;
    }
    return rondo__executor_begin_fed(executor, fed_bytes);
}

rondo__budget *rondo__executor_begin_fed(rondo_executor *executor, uint64_t fed_bytes) {
    if (fed_bytes > executor->main.runs.fed_bytes && executor->options.memory_limit_bytes == 0) {
        executor->main.runs.fed_bytes = fed_bytes;
        rondo__budget_set_limit(executor->resources.budget, get_default_limit(&executor->main));
    }
    save_record(&executor->call);
    executor->work.turn_count = 0;
    atomic_store(executor->call.state, CALL_RUNNING);
    executor->work.ran_count = 0;
    executor->work.replayed_count = 0;
    executor->work.here_ns = 0;
    executor->work.is_all_here = false;
    executor->call.float_scope = rondo__float_enter();
    return rondo__budget_enter(executor->resources.budget);
}

void rondo__executor_end_call(rondo_executor *executor, rondo__budget *before,
                              rondo_status status) {
    rondo__float_leave(&executor->call.float_scope);
    // Failures that the call recovered from leave no record.
    if (status == RONDO_STATUS_OK &&
        rondo_error_get_last()->sequence != executor->call.record_before.sequence) {
        rondo__error_restore(&executor->call.record_before);
    }
    // The call has failed: events on the device meanwhile are not reported by the next call, unless
    // they may belong to an earlier run, for which no call has waited.
    const bool is_alone = executor->caller.async == NULL || !executor->caller.async->is_under_way;
    if (status != RONDO_STATUS_OK && executor->resources.watch != NULL && is_alone) {
        atomic_store(&executor->resources.watch->stopped, 0);
        atomic_store(&executor->resources.watch->faulty, 0);
    }
    (void)rondo__budget_enter(before);
    atomic_store(executor->call.state, CALL_NONE);
}

rondo_status rondo__executor_synchronize(rondo_executor *executor) {
    int expected = CALL_NONE;
    const bool is_call =
        atomic_compare_exchange_strong(executor->call.state, &expected, CALL_RUNNING);
    const rondo_status status = rondo_stream_synchronize(executor->main.stream);
    if (is_call) {
        atomic_store(executor->call.state, CALL_NONE);
    }
    return status;
}

rondo_status rondo_executor_cancel(rondo_executor *executor) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    int expected = CALL_RUNNING;
    (void)atomic_compare_exchange_strong(executor->call.state, &expected, CALL_CANCELLED);
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_fail_cancelled(void) {
    return RONDO_FAIL_AS("rondo_executor_cancel", CANCELLED,
                         "the run was cancelled; the executor can run again");
}

rondo_status rondo__executor_check_cancelled(const rondo_executor *executor) {
    return atomic_load_explicit(executor->call.state, memory_order_relaxed) == CALL_CANCELLED
               ? rondo__executor_fail_cancelled()
               : RONDO_STATUS_OK;
}

int64_t rondo__executor_get_loop_limit(const rondo_executor *executor) {
    const uint64_t given = executor->options.loop_limit;
    return given == 0 ? LOOP_LIMIT_DEFAULT : given < INT64_MAX ? (int64_t)given : INT64_MAX;
}

rondo_status rondo__executor_fail_limit(const rondo_executor *executor) {
    return RONDO_FAIL(
        BAD_DATA,
        "no end after %" PRId64
        " turns of this run's loops; loop_limit in rondo_executor_options (--loop-limit) "
        "allows more",
        rondo__executor_get_loop_limit(executor));
}

rondo_status rondo__executor_count_turn(rondo_executor *executor) {
    if (executor->work.turn_count >= (uint64_t)rondo__executor_get_loop_limit(executor)) {
        return rondo__executor_fail_limit(executor);
    }
    executor->work.turn_count += 1;
    return rondo__executor_check_cancelled(executor);
}
