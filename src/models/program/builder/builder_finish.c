// program/builder/builder_finish.c — the end of a program built in code: checks, and the types of
// outputs. See builder_parts.h.
//
// Types and shapes come from the walk that executors use (specialise.h), over a copy. If all
// extents are numbers, its results hold and its failures are the program's. If some are symbols, it
// is tried with 1 and with 3 for each: a failure then means nothing, and the outputs get only the
// types and ranks on which both tries agree.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/builder/builder_parts.h"
#include "program/drawing.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

enum { FOLD_BYTES = 1 << 16 };  // enough for computed shapes

static bool has_numbers_only(const rondo_program *program) {
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__value *v = &program->values[program->inputs[i]];
        for (int32_t d = 0; d < v->rank; ++d) {
            if (v->dims[d].number < 0) {
                return false;
            }
        }
        if (!v->has_shape && !rondo__dtype_is_nested(v->dtype)) {
            return false;
        }
    }
    return true;
}

// A copy with inferred shapes; `extent` stands for each extent that is no number.
static rondo_status infer(const rondo_program *program, int64_t extent, rondo_program **out_copy) {
    rondo_tensor *feeds = rondo__calloc(program->input_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__value *v = &program->values[program->inputs[i]];
        if (!v->has_shape && !rondo__dtype_is_nested(v->dtype)) {
            continue;  // nothing is known of it
        }
        feeds[i].dtype = v->dtype;
        feeds[i].shape.rank = v->rank;
        for (int32_t d = 0; d < v->rank; ++d) {
            feeds[i].shape.extent[d] = v->dims[d].number >= 0 ? v->dims[d].number : extent;
        }
    }
    const rondo_status status =
        rondo__program_specialise(program, feeds, FOLD_BYTES, out_copy, NULL);
    rondo__free(feeds);
    return status;
}

static rondo_status fail_declared(const rondo_program *program, const rondo__value *declared,
                                  const rondo_program *copy, const rondo__value *inferred) {
    char have[96];
    char want[96];
    return RONDO_FAIL_AS("rondo_builder_finish", BAD_DATA,
                         "output \"%.60s\" is declared %s %s; it is %s %s", declared->name,
                         rondo_dtype_get_name(declared->dtype),
                         rondo__value_format_shape(program, declared, want, sizeof want),
                         rondo_dtype_get_name(inferred->dtype),
                         rondo__value_format_shape(copy, inferred, have, sizeof have));
}

// Writes what was inferred of an output where nothing was declared, and compares otherwise.
// `is_exact`: extents are facts, not examples.
static rondo_status settle_output(rondo_program *program, int32_t output, const rondo_program *copy,
                                  int32_t copied, bool is_exact) {
    rondo__value *v = &program->values[output];
    const rondo__value *inferred = &copy->values[copied];
    if (v->producer < 0) {
        return RONDO_STATUS_OK;  // an input or a parameter, which says it all
    }
    bool fits = v->dtype == RONDO_DTYPE_NONE || inferred->dtype == RONDO_DTYPE_NONE ||
                v->dtype == inferred->dtype;
    fits = fits && (!v->has_shape || !inferred->has_shape || v->rank == inferred->rank);
    for (int32_t d = 0; fits && is_exact && inferred->has_shape && d < v->rank; ++d) {
        fits = v->dims[d].number < 0 || v->dims[d].number == inferred->dims[d].number;
    }
    if (!fits) {
        return fail_declared(program, v, copy, inferred);
    }
    v->dtype = v->dtype == RONDO_DTYPE_NONE ? inferred->dtype : v->dtype;
    if (!v->has_shape && inferred->has_shape && !rondo__dtype_is_nested(v->dtype)) {
        v->has_shape = true;
        v->rank = inferred->rank;
        for (int32_t d = 0; d < v->rank && is_exact; ++d) {
            v->dims[d].number = inferred->dims[d].number;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_exact(rondo_program *program) {
    rondo_program *copy = NULL;
    RETURN_IF_ERROR(infer(program, 0, &copy));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < program->output_count && status == RONDO_STATUS_OK; ++i) {
        status = settle_output(program, program->outputs[i], copy, copy->outputs[i], true);
    }
    rondo_program_destroy(copy);
    return status;
}

static rondo_status infer_by_examples(rondo_program *program) {
    rondo_program *ones = NULL;
    rondo_program *threes = NULL;
    rondo_status status = infer(program, 1, &ones);
    if (status == RONDO_STATUS_OK) {
        status = infer(program, 3, &threes);
    }
    if (status != RONDO_STATUS_OK) {
        status = status == RONDO_STATUS_NO_MEMORY ? status : RONDO_STATUS_OK;
        goto destroy;
    }
    for (size_t i = 0; i < program->output_count && status == RONDO_STATUS_OK; ++i) {
        const rondo__value *a = &ones->values[ones->outputs[i]];
        const rondo__value *b = &threes->values[threes->outputs[i]];
        if (a->dtype == b->dtype && a->has_shape == b->has_shape && a->rank == b->rank) {
            status = settle_output(program, program->outputs[i], threes, threes->outputs[i], false);
        }
    }

destroy:
    rondo_program_destroy(ones);
    rondo_program_destroy(threes);
    return status;
}

rondo_status rondo_builder_finish(rondo_builder *builder, rondo_program **out_program) {
    if (out_program == NULL) {
        return RONDO_FAIL(INVALID, "out_program is NULL");
    }
    *out_program = NULL;
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (builder->parent != NULL) {
        return RONDO_FAIL(INVALID, "a body ends by being an attribute of a node");
    }
    if (builder->place_count > 0) {
        return RONDO_FAIL(STATE,
                          "%zu scopes of places are open; end each with "
                          "rondo_builder_end_place",
                          builder->place_count);
    }
    rondo_program *program = builder->program;
    if (program->output_count == 0) {
        return RONDO_FAIL(INVALID, "the program has no outputs");
    }
    RETURN_IF_ERROR(rondo__program_verify(program));
    RETURN_IF_ERROR(rondo__program_name_draws(program, false));
    RETURN_IF_ERROR(has_numbers_only(program) ? infer_exact(program) : infer_by_examples(program));
    *out_program = program;
    builder->program = NULL;
    return RONDO_STATUS_OK;
}
