// executor/plan_cache.c — see plan_cache.h.
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "backend/thread_count.h"
#include "base/error.h"
#include "base/logging.h"
#include "base/memory.h"
#include "executor/declared.h"
#include "executor/destroy.h"
#include "executor/executor.h"
#include "executor/plan_cache.h"
#include "program/specialise.h"
#include "tensor/elements.h"

// Plans made for new values of a keyed input before values stop being keys.
enum { KEYED_MISS_LIMIT = 8 };

static bool plan_matches(const rondo_executor *executor, const rondo__plan *plan,
                         const rondo_tensor *feeds) {
    for (size_t i = 0; i < plan->feed_count; ++i) {
        const rondo_tensor *have = &plan->feeds[i];
        // A plan serves sequences of any length.
        if (have->dtype != feeds[i].dtype ||
            (!rondo__dtype_is_nested(have->dtype) &&
             !rondo_shape_is_equal(&have->shape, &feeds[i].shape))) {
            return false;
        }
        bool is_keyed = have->data != NULL;
        if (is_keyed != (executor->keyed[i] && rondo_tensor_get_bytes(&feeds[i]) > 0) ||
            (is_keyed && memcmp(have->data, feeds[i].data, rondo_tensor_get_bytes(have)) != 0)) {
            return false;
        }
    }
    return true;
}

static void evict_oldest(rondo_executor *executor) {
    size_t oldest = 0;
    for (size_t i = 1; i < executor->plan_count; ++i) {
        if (executor->plans[i]->last_use < executor->plans[oldest]->last_use) {
            oldest = i;
        }
    }
    rondo__plan *victim = executor->plans[oldest];
    executor->plans[oldest] = executor->plans[--executor->plan_count];
    if (executor->current == victim) {
        executor->current = NULL;
    }
    rondo__plan_destroy(executor, victim);
}

static void evict_plans(rondo_executor *executor, size_t count) {
    for (; count > 0 && executor->plan_count > 0; --count) {
        evict_oldest(executor);
    }
}

static bool is_out_of_memory(rondo_status status) {
    return status == RONDO_STATUS_NO_MEMORY || status == RONDO_STATUS_NO_DEVICE_MEMORY;
}

// Plans wait for their shapes to come back; they leave half of the limit to runs.
static void drop_crowded(rondo_executor *executor) {
    const rondo__budget *budget = executor->root->budget;
    while (executor->plan_count > 0 &&
           rondo__budget_get_used(budget) > rondo__budget_get_limit(budget) / 2) {
        evict_oldest(executor);
    }
}

// Marks small inputs whose values decide shapes as keys. A body is spared: its inputs change each
// turn.
static rondo_status find_keys(rondo_executor *executor, const rondo_tensor *keys,
                              bool *out_has_new) {
    *out_has_new = false;
    size_t count = executor->base->input_count;
    if (executor->depth > 0 || executor->keyed_miss_count > KEYED_MISS_LIMIT) {
        return RONDO_STATUS_OK;
    }
    bool *wanted = rondo__calloc(count + 1, sizeof *wanted);
    if (wanted == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_program *trial = NULL;
    rondo_status status = rondo__program_specialise(executor->base, keys, 1 << 20, &trial, wanted);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < count; ++i) {
        if (wanted[i] && !executor->keyed[i]) {
            executor->keyed[i] = true;
            *out_has_new = true;
        }
    }
    rondo_program_destroy(trial);
    rondo__free(wanted);
    return status;
}

static void select_keys(const rondo_executor *executor, const rondo_tensor *feeds,
                        rondo_tensor *out_keys) {
    for (size_t i = 0; i < executor->base->input_count; ++i) {
        out_keys[i] = feeds[i];
        out_keys[i].storage = NULL;
        if (!executor->keyed[i]) {
            out_keys[i].data = NULL;
        }
    }
}

// What plans of the same program hold for runs with other optional inputs.
static void evict_others(const rondo_executor *executor) {
    rondo_executor *root = executor->depth == 0 ? executor->root : NULL;
    for (size_t v = 0; root != NULL && v < root->variant_count; ++v) {
        if (root->variants[v] != executor) {
            evict_plans(root->variants[v], SIZE_MAX);
        }
    }
    if (root != NULL && root != executor) {
        evict_plans(root, SIZE_MAX);
    }
}

// Compiles a plan. Where memory is short, what plans of other shapes hold is given up for it (the
// older half of them, then all), and then what was folded ahead, which may be more than a run
// needs.
static rondo_status create_plan(rondo_executor *executor, const rondo_tensor *keys,
                                rondo__plan **out_plan) {
    // Kernels that cut their work ahead must see the number of threads that will run them.
    const int32_t count = (int32_t)executor->options.thread_count;
    const int32_t former = rondo__host_choose_thread_count(count);
    rondo_status status = rondo__plan_create(executor, keys, out_plan);
    for (size_t keep = executor->plan_count / 2;
         is_out_of_memory(status) && executor->plan_count > 0; keep = 0) {
        evict_plans(executor, executor->plan_count - keep);
        evict_others(executor);
        status = rondo__plan_create(executor, keys, out_plan);
    }
    if (is_out_of_memory(status) && !executor->is_lean) {
        rondo_error saved;
        rondo__error_save(&saved);
        executor->is_lean = true;
        evict_others(executor);
        if (rondo__executor_make_base(executor) == RONDO_STATUS_OK) {
            status = rondo__plan_create(executor, keys, out_plan);
        } else {
            rondo__error_restore(&saved);
        }
    }
    (void)rondo__host_choose_thread_count(former);
    return status;
}

// Destroys a plan whose outputs contradict what the model declares.
static rondo_status check_outputs(rondo_executor *executor, rondo__plan *plan) {
    for (size_t i = 0; i < plan->program->output_count; ++i) {
        const rondo__slot *slot = &plan->slots[plan->program->outputs[i]];
        if (slot->kind == RONDO__SLOT_DYNAMIC) {
            continue;  // known after the run
        }
        rondo_status status = rondo__executor_check_output(executor, i, slot->dtype, &slot->shape);
        if (status != RONDO_STATUS_OK) {
            rondo__plan_destroy(executor, plan);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_find_plan(rondo_executor *executor, const rondo_tensor *feeds,
                                       rondo__plan **out_plan) {
    *out_plan = NULL;
    executor->clock += 1;
    if (executor->current != NULL && plan_matches(executor, executor->current, feeds)) {
        executor->current->last_use = executor->clock;
        *out_plan = executor->current;
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < executor->plan_count; ++i) {
        if (plan_matches(executor, executor->plans[i], feeds)) {
            executor->current = executor->plans[i];
            executor->current->last_use = executor->clock;
            *out_plan = executor->current;
            return RONDO_STATUS_OK;
        }
    }
    bool has_keys = false;
    for (size_t i = 0; i < executor->base->input_count; ++i) {
        has_keys = has_keys || executor->keyed[i];
    }
    if (has_keys && ++executor->keyed_miss_count > KEYED_MISS_LIMIT) {
        // The values keep changing: making a plan for each costs more than running those ops
        // conventionally.
        RONDO_LOG_INFO_F(
            "input values that decide shapes keep changing; such ops now run conventionally");
        memset(executor->keyed, 0, executor->base->input_count * sizeof *executor->keyed);
    }
    rondo_tensor *keys = rondo__calloc(executor->base->input_count + 1, sizeof *keys);
    if (keys == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    rondo__plan *plan = NULL;
    bool has_new = true;
    while (status == RONDO_STATUS_OK && has_new) {
        select_keys(executor, feeds, keys);
        status = find_keys(executor, keys, &has_new);
    }
    if (status == RONDO_STATUS_OK) {
        status = RONDO__ARRAY_RESERVE(executor->plans, executor->plan_capacity,
                                      executor->plan_count + 1);
    }
    if (status == RONDO_STATUS_OK && executor->plan_count >= executor->options.plan_limit) {
        evict_plans(executor, 1);
    }
    if (status == RONDO_STATUS_OK) {
        status = create_plan(executor, keys, &plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_outputs(executor, plan);
    }
    if (status == RONDO_STATUS_OK) {
        drop_crowded(executor);
        executor->plans[executor->plan_count++] = plan;
        executor->current = plan;
        plan->last_use = executor->clock;
        *out_plan = plan;
    }
    rondo__free(keys);
    return status;
}

rondo_status rondo__executor_infer_outputs(rondo_executor *executor, const rondo_tensor *feeds,
                                           rondo__tensor_info *out_infos) {
    const size_t count = executor->base->input_count;
    rondo_tensor *shapes = rondo__calloc(count + 1, sizeof *shapes);
    if (shapes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        shapes[i] = (rondo_tensor){.dtype = feeds[i].dtype, .shape = feeds[i].shape};
    }
    rondo_program *trial = NULL;
    rondo_status status =
        rondo__program_specialise(executor->base, shapes, RONDO__LEAN_FOLD_BYTES, &trial, NULL);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < trial->output_count; ++i) {
        rondo__program_get_info(trial, trial->outputs[i], &out_infos[i]);
        out_infos[i].constant = NULL;
    }
    rondo_program_destroy(trial);
    rondo__free(shapes);
    return status == RONDO_STATUS_NO_MEMORY ? status : RONDO_STATUS_OK;
}
