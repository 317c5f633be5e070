// executor/compile/base_form.c — see base_form.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/base_form.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/devices/op_device.h"
#include "executor/state/precision.h"
#include "executor/state/prepared.h"
#include "program/node_pattern.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"

enum { BASE_FOLD_BYTES_MAX = 256 << 20 };

// Whether weights of one value's products are put side by side: where attention reads the result.
static bool joins_products(const rondo__unit *unit) {
    rondo__kernel_traits traits;
    rondo__kernel_get_traits(unit->executor->device, unit->executor->options.dtype, &traits);
    return traits.fuses_attention && !unit->executor->options.op_by_op &&
           !unit->executor->options.no_folding && !unit->is_training && !unit->is_lean;
}

// Whether denormal weights are cleared: where they cost time, and nothing tells them from zeros.
static bool clears_denormals(const rondo__unit *unit) {
    const rondo_executor_options *options = &unit->executor->options;
    const rondo_program *whole = unit->executor->main.source;
    return rondo_device_is_host(unit->executor->device) && !options->op_by_op &&
           !options->no_folding && !unit->is_training &&
           rondo__program_count_matches(whole, "Log") == 0 &&
           rondo__program_count_matches(whole, "ReduceLogSum") == 0;
}

// The program as the executor's options have it, before anything is folded: what is asked of an op
// is looked at whether that folds away or not. To be destroyed where it is not the executor's.
static rondo_status make_source(const rondo__unit *unit, rondo_program **out_source) {
    const rondo_executor_options *options = &unit->executor->options;
    const bool is_training = unit->is_training;
    const bool has_places = rondo__op_device_has_marks(unit);
    const bool is_quantised = !is_training && !options->op_by_op && !options->no_folding &&
                              rondo__program_has_quantised(unit->source);
    *out_source = unit->source;
    if (unit->depth > 0 || !(is_training || has_places || is_quantised)) {  // bodies come marked
        return RONDO_STATUS_OK;
    }
    rondo_program *source;
    RETURN_IF_ERROR(rondo__program_clone(unit->source, &source));
    if (is_training) {
        rondo__program_set_training(source);
    }
    rondo_status status = has_places ? rondo__op_device_mark(unit, source) : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK && is_quantised) {
        status = rondo__program_quantise(source);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(source);
        return status;
    }
    *out_source = source;
    return status;
}

static rondo_status make_base_program(const rondo__unit *unit, rondo_program **out_base) {
    const size_t fold_bytes = unit->executor->options.no_folding ? 0
                              : unit->is_lean                    ? RONDO__LEAN_FOLD_BYTES
                                                                 : BASE_FOLD_BYTES_MAX;
    rondo_program *base;
    rondo_program *source;
    RETURN_IF_ERROR(make_source(unit, &source));
    rondo_status status = rondo__program_specialise(source, NULL, fold_bytes, &base, NULL);
    if (source != unit->source) {
        rondo_program_destroy(source);
    }
    RETURN_IF_ERROR(status);
    if (unit->depth == 0) {  // bodies come marked
        status = rondo__precision_mark(base, unit->source, &unit->executor->options);
    }
    if (status == RONDO_STATUS_OK && !unit->executor->options.op_by_op) {
        status = rondo__program_simplify(base);
    }
    if (status == RONDO_STATUS_OK && clears_denormals(unit)) {
        status = rondo__program_clear_denormals(base);
    }
    if (status == RONDO_STATUS_OK && joins_products(unit)) {
        status = rondo__program_join_products(base);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(base);
        return status;
    }
    *out_base = base;
    return RONDO_STATUS_OK;
}

// All options that decide the base, as text, to which what depends on this machine is added if it
// counts; NULL when memory is exhausted.
static char *write_base_key(const rondo_executor *executor, bool is_for_here) {
    const rondo_executor_options *options = &executor->options;
    const size_t keep = options->keep_f32 != NULL ? options->keep_f32_count : 0;
    const size_t use = options->use_f16 != NULL ? options->use_f16_count : 0;
    const char *device =
        rondo__op_device_has_marks(&executor->main) ? rondo_device_get_name(executor->device) : "";
    char *key = rondo__strformat(
        "%d %d %d %d %d %d %zu %zu %s %" PRIu64 " %" PRIu64, (int)options->op_by_op,
        (int)executor->main.is_training, (int)options->no_folding, (int)options->dtype,
        (int)joins_products(&executor->main), (int)clears_denormals(&executor->main), keep, use,
        device, executor->main.source->place_revision,
        is_for_here ? rondo__budget_get_limit(executor->resources.budget) : 0);
    for (size_t i = 0; key != NULL && i < executor->caller.pattern_count; ++i) {
        const char *pattern =
            executor->caller.patterns[i] != NULL ? executor->caller.patterns[i] : "";
        char *longer = rondo__strformat("%s\n%zu %s", key, strlen(pattern), pattern);
        rondo__free(key);
        key = longer;
    }
    return key;
}

char *rondo__unit_write_base_key(const rondo__unit *unit) {
    return write_base_key(unit->executor, false);
}

// From a plan file, or made; *out_base stays NULL where there is none in the file.
static rondo_status find_base(const rondo__unit *unit, rondo_program **out_base) {
    *out_base = NULL;
    if (unit->source->saved == NULL) {
        return RONDO_STATUS_OK;
    }
    char *key = rondo__unit_write_base_key(unit);
    const rondo_status status =
        key != NULL ? rondo__prepared_find_base(unit, key, out_base) : RONDO_STATUS_NO_MEMORY;
    rondo__free(key);
    return status;
}

static rondo_status get_base(void *user_data, rondo_program **out_program,
                             rondo__half_cache **out_halves) {
    const rondo__unit *unit = user_data;
    rondo_program *base = NULL;
    rondo__half_cache *halves = NULL;
    rondo_status status = find_base(unit, &base);
    if (status == RONDO_STATUS_OK && base == NULL) {
        status = make_base_program(unit, &base);
    }
    if (status == RONDO_STATUS_OK && unit->executor->options.dtype != RONDO_DTYPE_F32) {
        status = rondo__half_cache_create(base, unit->executor->options.dtype, &halves);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(base);
        return status;
    }
    *out_program = base;
    *out_halves = halves;
    return RONDO_STATUS_OK;
}

// Executors that the caller made share it. A variant and a body have a base of their own, and so
// has an executor that folded while memory was short.
rondo_status rondo__unit_make_base(rondo__unit *unit) {
    const bool is_shared = unit == &unit->executor->main && !unit->is_lean;
    char *key = is_shared ? write_base_key(unit->executor, true) : NULL;
    if (is_shared && key == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__base *fresh = NULL;
    const uint64_t start_ns = rondo__clock_now_ns();
    const rondo_status status =
        rondo__shared_acquire_base(unit->source, key, key != NULL ? strlen(key) : 0,
                                   unit->executor->resources.budget, get_base, unit, &fresh);
    rondo__free(key);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    RONDO_LOG_DEBUG_F("the base of a program in %.0f ms",
                      (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    rondo__shared_release_base(unit->source, unit->base_form, unit->executor->resources.budget);
    unit->base_form = fresh;
    unit->base = fresh->program;
    return RONDO_STATUS_OK;
}
