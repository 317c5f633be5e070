// executor/output_shapes.c — what the outputs would be for given inputs, without a run or a plan.
//
// Shapes are inferred as for a plan: from the inputs' shapes, and from the values of those that
// decide shapes, which are looked at only where an output is not known without.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "backend/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/feeds.h"
#include "executor/run/settle.h"
#include "executor/state/limits.h"
#include "executor/variants.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

// The shapes of the feeds, and the values of those that are wanted and lie in host memory. To be
// freed with rondo__tensors_free.
static rondo_status copy_wanted(const rondo__unit *unit, const rondo_tensor *feeds,
                                const uint8_t *wanted, rondo_tensor **out_known) {
    const size_t count = unit->base->input_count;
    rondo_status status = RONDO_STATUS_OK;
    rondo_tensor *known = rondo__calloc(count + 1, sizeof *known);
    if (known == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        const bool has_value = wanted[i] != RONDO__WANT_NOTHING && feeds[i].data != NULL &&
                               rondo_tensor_is_on_host(&feeds[i]);
        if (has_value) {
            status = rondo__tensor_copy(&feeds[i], &known[i]);
        } else {
            known[i] = (rondo_tensor){.dtype = feeds[i].dtype, .shape = feeds[i].shape};
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__tensors_free(known, count);
        return status;
    }
    *out_known = known;
    return RONDO_STATUS_OK;
}

static bool knows_all(const rondo_program *program) {
    bool knows = true;
    for (size_t i = 0; i < program->output_count; ++i) {
        rondo__tensor_info info;
        rondo__program_get_info(program, program->outputs[i], &info);
        knows = knows && (info.is_shape_known || rondo__dtype_is_nested(info.dtype));
    }
    return knows;
}

// The program with these inputs; more values are looked at as long as that tells more.
static rondo_status specialise(const rondo__unit *unit, const rondo_tensor *feeds,
                               rondo_program **out_program) {
    const size_t count = unit->base->input_count;
    uint8_t *wanted = rondo__calloc(2 * count + 1, sizeof *wanted);
    if (wanted == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_program *program = NULL;
    rondo_status status;
    bool has_new;
    do {
        rondo_tensor *known = NULL;
        rondo_program_destroy(program);
        program = NULL;
        uint8_t *more = wanted + count;
        const rondo__value_wants wants = {.wanted = more};
        status = copy_wanted(unit, feeds, wanted, &known);
        if (status == RONDO_STATUS_OK) {
            status = rondo__program_specialise(unit->base, known, RONDO__LEAN_FOLD_BYTES, &program,
                                               &wants);
        }
        rondo__tensors_free(known, count);
        has_new = false;
        for (size_t i = 0; i < count; ++i) {
            has_new = has_new || (more[i] > wanted[i] && feeds[i].data != NULL);
            wanted[i] = more[i] > wanted[i] ? more[i] : wanted[i];
        }
    } while (status == RONDO_STATUS_OK && has_new && !knows_all(program));
    rondo__free(wanted);
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(program);
        return status;
    }
    *out_program = program;
    return RONDO_STATUS_OK;
}

static rondo_tensor describe(const rondo_program *program, size_t index) {
    rondo__tensor_info info;
    rondo__program_get_info(program, program->outputs[index], &info);
    rondo_tensor tensor = {.dtype = info.dtype, .shape = {.rank = -1}};
    if (rondo__info_has_rank(&info) && !rondo__dtype_is_nested(info.dtype)) {
        tensor.shape = info.shape;
    }
    return tensor;
}

// Feeds in input order; those without data stand for their shape.
static rondo_status order(rondo_executor *executor, const rondo_binding *feeds, size_t feed_count,
                          rondo_tensor *tensors) {
    const rondo_program *program = executor->main.source;
    memset(tensors, 0, (program->input_count + program->optional_count) * sizeof *tensors);
    for (size_t f = 0; f < feed_count; ++f) {
        size_t index;
        RETURN_IF_ERROR(rondo__executor_find_input(executor, feeds[f].name, &index));
        if (tensors[index].dtype != RONDO_DTYPE_NONE) {
            return RONDO_FAIL(INVALID, "input \"%.60s\" is given twice", feeds[f].name);
        }
        RETURN_IF_ERROR(rondo__executor_check_shape(executor, index, &feeds[f].tensor));
        if (feeds[f].tensor.data != NULL) {
            RETURN_IF_ERROR(rondo__executor_check_feed(executor, index, &feeds[f].tensor));
        }
        tensors[index] = feeds[f].tensor;
    }
    return rondo__executor_complete_feeds(executor, tensors);
}

static rondo_status infer(rondo_executor *executor, const rondo_binding *feeds, size_t feed_count,
                          rondo_program **out_program) {
    rondo_tensor *tensors = executor->ports.lists.feeds;
    RETURN_IF_ERROR(order(executor, feeds, feed_count, tensors));
    RETURN_IF_ERROR(rondo__executor_choose_variant(executor, tensors));
    return specialise(executor->variants.active, tensors, out_program);
}

rondo_status rondo_executor_infer_outputs(rondo_executor *executor, const rondo_binding *feeds,
                                          size_t feed_count, rondo_binding *outputs,
                                          size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__check_pointer(executor, __func__, "executor"));
    if ((feeds == NULL && feed_count > 0) || (outputs == NULL && capacity > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          feeds == NULL && feed_count > 0 ? "feeds" : "outputs");
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    rondo_program *program = NULL;
    rondo__budget *before = rondo__executor_begin_call(executor, NULL, 0);
    const rondo_status status = infer(executor, feeds, feed_count, &program);
    const rondo_program *source = executor->main.source;
    for (size_t i = 0; status == RONDO_STATUS_OK && i < source->output_count && i < capacity; ++i) {
        outputs[i] = (rondo_binding){source->values[source->outputs[i]].name, describe(program, i)};
    }
    rondo_program_destroy(program);
    rondo__executor_end_call(executor, before, status);
    *out_count = status == RONDO_STATUS_OK ? source->output_count : 0;
    return status;
}
