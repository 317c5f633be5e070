// executor/state/precision.c — see precision.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/precision.h"

#include "base/error.h"
#include "program/node_pattern.h"

static rondo_status mark_all(rondo_program *program, const rondo_program *source,
                             const char *option, const char *const *patterns, size_t count,
                             uint8_t precision) {
    for (size_t i = 0; i < count; ++i) {
        if (patterns == NULL || patterns[i] == NULL) {
            return RONDO_FAIL(INVALID, "options.%s: pattern %zu is NULL", option, i);
        }
        // Counted where nothing is folded yet: an op that folds away is no mistake of the caller's.
        if (rondo__program_count_matches(source, patterns[i]) == 0) {
            return RONDO_FAIL(INVALID,
                              "%s \"%.80s\" matches no op: neither a name of a node nor a type of "
                              "op (* stands for any characters, ? for one)",
                              option, patterns[i]);
        }
        rondo__half_mark(program, patterns[i], precision);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__precision_mark(rondo_program *program, const rondo_program *source,
                                   const rondo_executor_options *options) {
    const size_t keeps = options->dtype == RONDO_DTYPE_BF16 ? 0 : options->keep_f32_count;
    if (options->dtype != RONDO_DTYPE_F16 && keeps + options->use_f16_count > 0) {
        return RONDO_FAIL(INVALID, "options.keep_f32 and options.use_f16 need dtype f16, it is %s",
                          rondo_dtype_get_name(options->dtype));
    }
    RETURN_IF_ERROR(mark_all(program, source, "use_f16", options->use_f16, options->use_f16_count,
                             RONDO__PRECISION_HALF));
    return mark_all(program, source, "keep_f32", options->keep_f32, options->keep_f32_count,
                    RONDO__PRECISION_SINGLE);
}

rondo_status rondo__precision_apply(rondo__unit *unit, rondo__plan *plan) {
    if (unit->executor->options.dtype == RONDO_DTYPE_F32) {
        return RONDO_STATUS_OK;
    }
    return rondo__pass_half(plan->program, unit->base_form->halves, &plan->halves);
}
