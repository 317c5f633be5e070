// executor/variants.c — see variants.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/variants.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/destroy.h"
#include "executor/compile/retire.h"
#include "executor/compile/unit.h"

// Makes the variant for these, and for the mode, the last in the list; false when there is none.
static bool find_variant(rondo_executor *executor, const bool *is_fed, size_t count) {
    for (size_t i = 0; i < executor->variants.count; ++i) {
        rondo__unit *variant = executor->variants.list[i];
        if (variant->is_training != executor->variants.is_training ||
            memcmp(variant->feeds_optional, is_fed, count * sizeof *is_fed) != 0) {
            continue;
        }
        for (size_t k = i; k + 1 < executor->variants.count; ++k) {
            executor->variants.list[k] = executor->variants.list[k + 1];
        }
        executor->variants.list[executor->variants.count - 1] = variant;
        return true;
    }
    return false;
}

static void drop_oldest(rondo_executor *executor) {
    rondo__unit *oldest = executor->variants.list[0];
    executor->variants.active =
        executor->variants.active == oldest ? &executor->main : executor->variants.active;
    for (size_t k = 0; k + 1 < executor->variants.count; ++k) {
        executor->variants.list[k] = executor->variants.list[k + 1];
    }
    executor->variants.count -= 1;
    rondo__variant_give_up(executor, oldest);
}

static rondo_status add_variant(rondo_executor *executor, const bool *is_fed, size_t count) {
    rondo_program *program = NULL;
    rondo__unit *variant = NULL;
    RETURN_IF_ERROR(rondo__program_override(executor->main.source, is_fed, &program));
    rondo_status status = rondo__unit_create_variant(executor, program, &variant);
    rondo_program_destroy(program);  // the variant has retained it
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    variant->feeds_optional = rondo__calloc(count + 1, sizeof *is_fed);
    if (variant->feeds_optional == NULL) {
        rondo__unit_destroy(variant);
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(variant->feeds_optional, is_fed, count * sizeof *is_fed);
    if (executor->variants.count == RONDO__VARIANT_MAX) {
        drop_oldest(executor);
    }
    executor->variants.list[executor->variants.count++] = variant;
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_choose_variant(rondo_executor *executor, rondo_tensor *tensors) {
    const size_t first = executor->main.source->input_count;
    const size_t count = executor->main.source->optional_count;
    bool *is_fed = executor->ports.lists.is_fed;
    size_t fed_count = 0;
    for (size_t i = 0; i < count; ++i) {
        is_fed[i] = tensors[first + i].dtype != RONDO_DTYPE_NONE;
        if (is_fed[i]) {
            tensors[first + fed_count++] = tensors[first + i];
        }
    }
    rondo_status status = RONDO_STATUS_OK;
    executor->variants.active = &executor->main;
    if (fed_count > 0 || executor->variants.is_training != executor->main.is_training) {
        if (!find_variant(executor, is_fed, count)) {
            status = add_variant(executor, is_fed, count);
        }
        if (status == RONDO_STATUS_OK) {
            executor->variants.active = executor->variants.list[executor->variants.count - 1];
        }
    }
    return status;
}
