// executor/plan_visit.c — see plan_visit.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/plan_visit.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/plan_cache.h"
#include "executor/feeds.h"
#include "executor/run/settle.h"
#include "executor/state/limits.h"
#include "executor/variants.h"
#include "tensor/elements.h"

// The declared shape, without data yet; extents that nothing fixes count as 1.
static rondo_status declare_feed(const rondo_program *program, size_t index,
                                 rondo_tensor *out_tensor) {
    const rondo__value *value = &program->values[program->inputs[index]];
    if (value->dtype == RONDO_DTYPE_NONE) {
        return RONDO_FAIL(UNSUPPORTED, "input \"%s\" declares no element type", value->name);
    }
    rondo_shape shape = {.rank = value->has_shape ? value->rank : 0};
    for (int32_t d = 0; d < shape.rank; ++d) {
        int64_t extent = value->dims[d].number;
        if (extent < 0 && value->dims[d].symbol >= 0) {
            extent = program->symbols[value->dims[d].symbol].extent;
        }
        shape.extent[d] = extent >= 0 ? extent : 1;
    }
    *out_tensor = (rondo_tensor){.dtype = value->dtype, .shape = shape};
    return RONDO_STATUS_OK;
}

// All inputs: those given, then the others, which have no data yet.
static rondo_status complete_feeds(const rondo__unit *unit, const rondo_binding *given,
                                   size_t given_count, rondo_binding *feeds, size_t *out_count) {
    const rondo_program *program = unit->source;
    size_t count = 0;
    rondo_status status = RONDO_STATUS_OK;
    bool *is_given = rondo__calloc(program->value_count + 1, sizeof *is_given);
    if (is_given == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t f = 0; f < given_count; ++f) {
        if (given[f].tensor.dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        const int32_t value =
            given[f].name != NULL ? rondo__program_find_value(program, given[f].name) : -1;
        is_given[value >= 0 ? (size_t)value : program->value_count] = true;
        feeds[count] = given[f];
        feeds[count++].tensor.storage = NULL;
    }
    for (size_t i = 0; i < program->input_count && status == RONDO_STATUS_OK; ++i) {
        if (!is_given[program->inputs[i]]) {
            feeds[count].name = program->values[program->inputs[i]].name;
            status = declare_feed(program, i, &feeds[count++].tensor);
        }
    }
    *out_count = count;
    rondo__free(is_given);
    return status;
}

// Gives zeros to those that have no data, and no items to sequences and optionals.
static rondo_status fill_feeds(rondo_binding *feeds, size_t count) {
    for (size_t f = 0; f < count; ++f) {
        const rondo_tensor shell = feeds[f].tensor;
        if (shell.data != NULL) {
            continue;
        }
        rondo_tensor *items;
        rondo_status status = rondo__dtype_is_nested(shell.dtype)
                                  ? rondo__nested_create(shell.dtype, 0, &feeds[f].tensor, &items)
                                  : rondo_tensor_init(shell.dtype, &shell.shape, &feeds[f].tensor);
        if (status != RONDO_STATUS_OK) {
            rondo__error_prefix("input \"%.60s\"", feeds[f].name != NULL ? feeds[f].name : "");
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_visit_plan(rondo_executor *executor, const rondo_binding *feeds,
                                        size_t feed_count, const char *call,
                                        rondo__plan_visitor visit, void *user_data) {
    RETURN_IF_ERROR(rondo__executor_settle(executor, call));
    const size_t input_count =
        executor->main.source->input_count + executor->main.source->optional_count;
    size_t count = 0;
    rondo__plan *plan = NULL;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_tensor *tensors = rondo__calloc(input_count + 1, sizeof *tensors);
    rondo_binding *all = rondo__calloc(input_count + feed_count + 1, sizeof *all);
    if (tensors == NULL || all == NULL) {
        goto free_lists;
    }
    status = complete_feeds(&executor->main, feeds, feed_count, all, &count);
    rondo__budget *before = rondo__executor_begin_call(executor, all, count);
    if (status == RONDO_STATUS_OK) {
        status = fill_feeds(all, count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__executor_order_feeds(executor, all, count, tensors);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__executor_choose_variant(executor, tensors);
    }
    if (status == RONDO_STATUS_OK) {
        executor->is_described = true;
        status = rondo__unit_find_plan(executor->variants.active, tensors, &plan);
        executor->is_described = false;
    }
    if (status == RONDO_STATUS_OK) {
        status = visit(executor->variants.active, plan, user_data);
    }
    rondo__executor_end_call(executor, before, status);
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor_deinit(&all[i].tensor);
    }

free_lists:
    rondo__free(tensors);
    rondo__free(all);
    return status;
}
