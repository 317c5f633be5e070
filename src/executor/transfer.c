// executor/transfer.c — see transfer.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/transfer.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/declared.h"
#include "executor/limits.h"
#include "executor/plan_cache.h"
#include "executor/run.h"
#include "tensor/elements.h"

// Strings, sequences and optionals between a caller and an executor: a caller's are copied, since
// either side may write its own; those of a body are shared with the plan around it.
static rondo_status pass_object(const rondo_executor *executor, const rondo_tensor *from,
                                rondo_tensor *out_to) {
    return executor->depth > 0 ? rondo__tensor_keep(from, out_to)
                               : rondo__tensor_copy(from, out_to);
}

// Puts the inputs where the plan wants them. On CUDA they go through pinned memory that the plan
// owns, so that the caller's memory is free again at once.
static rondo_status feed_inputs(rondo_executor *executor, rondo__plan *plan,
                                const rondo_tensor *feeds) {
    const rondo_program *program = plan->program;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__slot *slot = &plan->slots[program->inputs[i]];
        if (slot->kind == RONDO__SLOT_DYNAMIC) {
            rondo_tensor *place = &plan->dynamic[program->inputs[i]];
            rondo_tensor_deinit(place);
            RETURN_IF_ERROR(pass_object(executor, &feeds[i], place));
        }
        if (slot->kind != RONDO__SLOT_ARENA || slot->bytes == 0) {
            continue;  // its value is part of the plan
        }
        if (plan->staging == NULL) {
            memcpy(slot->address, feeds[i].data, slot->bytes);
            continue;
        }
        char *staged = plan->staging + plan->input_staging[i];
        memcpy(staged, feeds[i].data, slot->bytes);
        RETURN_IF_ERROR(rondo_stream_copy(executor->stream, slot->address, staged, slot->bytes,
                                          RONDO_COPY_HOST_TO_DEVICE));
    }
    return RONDO_STATUS_OK;
}

// Starts the copies of outputs that lie on a GPU.
static rondo_status start_fetch(rondo_executor *executor, rondo__plan *plan, const bool *wants) {
    const rondo_program *program = plan->program;
    for (size_t i = 0; plan->staging != NULL && i < program->output_count; ++i) {
        const rondo__slot *slot = &plan->slots[program->outputs[i]];
        if (slot->kind != RONDO__SLOT_ARENA || slot->bytes == 0 || (wants != NULL && !wants[i])) {
            continue;
        }
        RETURN_IF_ERROR(rondo_stream_copy(executor->stream, plan->staging + plan->output_staging[i],
                                          slot->address, slot->bytes, RONDO_COPY_DEVICE_TO_HOST));
    }
    return RONDO_STATUS_OK;
}

// The host bytes of output `i`, borrowed, after the stream was waited for.
static rondo_status view_output(const rondo__plan *plan, size_t i, rondo_tensor *out_view) {
    int32_t value = plan->program->outputs[i];
    const rondo__slot *slot = &plan->slots[value];
    *out_view = (rondo_tensor){.dtype = slot->dtype, .shape = slot->shape};
    switch (slot->kind) {
        case RONDO__SLOT_CONSTANT:
            out_view->data = plan->program->values[slot->root].constant.data;
            out_view->storage = plan->program->values[slot->root].constant.storage;
            return RONDO_STATUS_OK;
        case RONDO__SLOT_DYNAMIC:
            *out_view = plan->dynamic[value];
            if (out_view->dtype != RONDO_DTYPE_NONE) {
                return RONDO_STATUS_OK;
            }
            break;
        case RONDO__SLOT_ARENA:
            out_view->data =
                plan->staging != NULL ? plan->staging + plan->output_staging[i] : slot->address;
            return RONDO_STATUS_OK;
        case RONDO__SLOT_NONE:
            break;
    }
    return RONDO_FAIL(INTERNAL, "output \"%s\" was not computed",
                      plan->program->values[value].name);
}

// Whether an output is a new tensor of the executor's: strings, sequences and optionals always are,
// in place of one of an earlier run.
static bool is_made_new(const rondo_tensor *view, const rondo_tensor *result) {
    return result->data == NULL || (!rondo__dtype_is_plain(view->dtype) &&
                                    result->dtype == view->dtype && result->storage != NULL);
}

static rondo_status check_result(const rondo__plan *plan, size_t i, const rondo_tensor *view,
                                 const rondo_tensor *result) {
    if (is_made_new(view, result) ||
        (rondo__dtype_is_plain(view->dtype) && result->dtype == view->dtype &&
         rondo_shape_is_equal(&result->shape, &view->shape))) {
        return RONDO_STATUS_OK;
    }
    char have[96];
    char want[96];
    if (!rondo__dtype_is_plain(view->dtype)) {
        return RONDO_FAIL(INVALID,
                          "fetch \"%s\": a %s is always allocated; give a tensor with data = NULL, "
                          "or the one of an earlier run",
                          plan->program->values[plan->program->outputs[i]].name,
                          rondo_dtype_get_name(view->dtype));
    }
    return RONDO_FAIL(
        INVALID, "fetch \"%s\": the tensor given is %s %s, the output is %s %s",
        plan->program->values[plan->program->outputs[i]].name, rondo_dtype_get_name(result->dtype),
        rondo_shape_format(&result->shape, have, sizeof have), rondo_dtype_get_name(view->dtype),
        rondo_shape_format(&view->shape, want, sizeof want));
}

// Copies the outputs to the caller: all of them or, on failure, none.
static rondo_status finish_fetch(const rondo_executor *executor, const rondo__plan *plan,
                                 rondo_tensor *results, const bool *wants) {
    size_t count = plan->program->output_count;
    rondo_tensor *fresh = rondo__calloc(count + 1, sizeof *fresh);
    if (fresh == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        rondo_tensor view;
        if (wants != NULL && !wants[i]) {
            continue;
        }
        status = view_output(plan, i, &view);
        if (status == RONDO_STATUS_OK) {
            status = check_result(plan, i, &view, &results[i]);
        }
        if (status == RONDO_STATUS_OK && is_made_new(&view, &results[i])) {
            status = rondo__dtype_is_plain(view.dtype)
                         ? rondo_tensor_init(view.dtype, &view.shape, &fresh[i])
                         : pass_object(executor, &view, &fresh[i]);
            if (status != RONDO_STATUS_OK) {
                rondo__error_prefix("output \"%.60s\"",
                                    plan->program->values[plan->program->outputs[i]].name);
            }
        }
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        rondo_tensor view;
        if (wants != NULL && !wants[i]) {
            continue;
        }
        status = view_output(plan, i, &view);
        if (is_made_new(&view, &results[i])) {
            if (!rondo__dtype_is_plain(view.dtype) && results[i].dtype == view.dtype) {
                rondo_tensor_deinit(&results[i]);
            }
            results[i] = fresh[i];
            memset(&fresh[i], 0, sizeof fresh[i]);
        }
        if (status == RONDO_STATUS_OK && rondo__dtype_is_plain(view.dtype) &&
            rondo_tensor_get_bytes(&view) > 0) {
            memcpy(results[i].data, view.data, rondo_tensor_get_bytes(&view));
        }
    }
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor_deinit(&fresh[i]);
    }
    rondo__free(fresh);
    return status;
}

// Checks what only the run has told of the outputs.
static rondo_status check_dynamic(rondo_executor *executor, const rondo__plan *plan) {
    for (size_t i = 0; executor->depth == 0 && i < plan->program->output_count; ++i) {
        const int32_t value = plan->program->outputs[i];
        const rondo_tensor *result = &plan->dynamic[value];
        if (plan->slots[value].kind == RONDO__SLOT_DYNAMIC && result->dtype != RONDO_DTYPE_NONE) {
            RETURN_IF_ERROR(
                rondo__executor_check_output(executor, i, result->dtype, &result->shape));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status mark(rondo_executor *executor, size_t index) {
    return executor->events[index] != NULL
               ? rondo_event_record(executor->events[index], executor->stream)
               : RONDO_STATUS_OK;
}

static uint64_t get_span_ns(rondo_executor *executor, size_t first) {
    int64_t span_ns = 0;
    if (executor->events[0] == NULL ||
        rondo_event_get_elapsed_ns(executor->events[first], executor->events[first + 1],
                                   &span_ns) != RONDO_STATUS_OK) {
        return 0;
    }
    return span_ns > 0 ? (uint64_t)span_ns : 0;
}

static void count_run(rondo_executor *executor, rondo__plan *plan, bool was_replayed) {
    plan->run_count += 1;
    executor->eager_run_count += was_replayed ? 0 : 1;
    executor->replay_run_count += was_replayed ? 1 : 0;
    executor->has_run = true;
}

rondo_status rondo__executor_run_tensors(rondo_executor *executor, const rondo_tensor *feeds,
                                         rondo_tensor *results, const bool *wants) {
    rondo__plan *plan;
    RETURN_IF_ERROR(rondo__executor_find_plan(executor, feeds, &plan));
    rondo_run_times times = {0};
    uint64_t start_ns = rondo__clock_now_ns();
    RETURN_IF_ERROR(mark(executor, 0));
    RETURN_IF_ERROR(feed_inputs(executor, plan, feeds));
    RETURN_IF_ERROR(mark(executor, 1));
    uint64_t fed_ns = rondo__clock_now_ns();
    rondo_status status =
        rondo__plan_run_steps(executor, plan, rondo__executor_run_tensors, &times.was_replayed);
    times.enqueue_ns = rondo__clock_now_ns() - fed_ns;
    if (status != RONDO_STATUS_OK) {
        // What was put on the stream still uses the plan's memory; the first failure stays the one
        // reported.
        rondo_error saved;
        rondo__error_save(&saved);
        (void)!rondo_stream_synchronize(executor->stream);
        rondo__error_restore(&saved);
        return status;
    }
    RETURN_IF_ERROR(check_dynamic(executor, plan));
    RETURN_IF_ERROR(mark(executor, 2));
    RETURN_IF_ERROR(start_fetch(executor, plan, wants));
    RETURN_IF_ERROR(mark(executor, 3));
    RETURN_IF_ERROR(rondo__plan_capture_ahead(executor, plan));
    RETURN_IF_ERROR(rondo_stream_synchronize(executor->stream));
    uint64_t done_ns = rondo__clock_now_ns();
    // What a caller fetches is the caller's, and counts no more here.
    rondo__budget *entered = rondo__budget_get_entered();
    (void)rondo__budget_enter(executor->depth == 0 ? NULL : entered);
    status = finish_fetch(executor, plan, results, wants);
    (void)rondo__budget_enter(entered);
    RETURN_IF_ERROR(status);
    times.latency_ns = rondo__clock_now_ns() - start_ns;
    times.host_to_device_ns = get_span_ns(executor, 0);
    times.compute_ns = executor->events[0] != NULL ? get_span_ns(executor, 1) : done_ns - fed_ns;
    times.device_to_host_ns = get_span_ns(executor, 2);
    times.ran_op_count = executor->root->ran_count;
    times.replayed_op_count = executor->root->replayed_count;
    executor->times = times;
    count_run(executor, plan, times.was_replayed);
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_rerun(rondo_executor *executor) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    rondo_executor *active = executor->active;
    if (active->current == NULL || !active->has_run) {
        return RONDO_FAIL(STATE, "nothing has run yet; call rondo_executor_run first");
    }
    rondo_run_times times = {0};
    uint64_t start_ns = rondo__clock_now_ns();
    rondo__budget *before = rondo__executor_begin_call(executor, NULL, 0);
    rondo_status status = rondo__plan_run_steps(active, active->current,
                                                rondo__executor_run_tensors, &times.was_replayed);
    times.enqueue_ns = rondo__clock_now_ns() - start_ns;
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_status waited = rondo_stream_synchronize(active->stream);
    rondo__executor_end_call(executor, before, status != RONDO_STATUS_OK ? status : waited);
    if (status != RONDO_STATUS_OK) {
        rondo__error_restore(&saved);
        return status;
    }
    RETURN_IF_ERROR(waited);
    times.latency_ns = rondo__clock_now_ns() - start_ns;
    times.compute_ns = times.latency_ns;
    times.ran_op_count = executor->ran_count;
    times.replayed_op_count = executor->replayed_count;
    active->times = times;
    count_run(active, active->current, times.was_replayed);
    return RONDO_STATUS_OK;
}
