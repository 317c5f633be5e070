// program/gradient/gradient_builder.c — gradients in programs that are built. See rondo/training.h.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "program/builder/builder_parts.h"
#include "program/gradient/gradient.h"
#include "rondo/training.h"

rondo_status rondo_builder_create_from(const rondo_program *program, rondo_builder **out_builder) {
    if (program == NULL || out_builder == NULL) {
        if (out_builder != NULL) {
            *out_builder = NULL;
        }
        return RONDO_FAIL(INVALID, "%s is NULL", program == NULL ? "program" : "out_builder");
    }
    *out_builder = NULL;
    int32_t opset = rondo_program_get_opset(program, "");
    opset = opset < RONDO_OP_OPSET_MIN ? RONDO_OP_OPSET_WRITTEN : opset;
    const rondo_builder_options options = {
        .struct_size = sizeof options, .name = program->name, .opset = opset};
    rondo_builder *builder = NULL;
    rondo_program *copy = NULL;
    RETURN_IF_ERROR(rondo_builder_create(&options, &builder));
    rondo_status status = rondo__program_clone_whole(program, &copy);
    for (size_t n = 0; n < program->node_count && status == RONDO_STATUS_OK; ++n) {
        const rondo__op *op = &program->nodes[n].op;
        status = rondo__builder_add_domain(builder, op->def->domain, op->opset);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(copy);
        rondo_builder_destroy(builder);
        return status;
    }
    rondo_program_destroy(builder->program);
    builder->program = copy;
    *out_builder = builder;
    return RONDO_STATUS_OK;
}

// The values that names stand for.
static rondo_status find_all(rondo_builder *builder, const char *const *names, size_t count,
                             int32_t **out_values) {
    static const char call[] = "rondo_builder_add_gradients";
    *out_values = rondo__calloc(count + 1, sizeof **out_values);
    if (*out_values == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        if (names[i] == NULL) {
            return RONDO_FAIL_AS(call, INVALID, "name %zu is NULL", i);
        }
        RETURN_IF_ERROR(rondo__builder_find(builder, names[i], call, &(*out_values)[i]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_named(rondo_builder *builder, int32_t from, const char *name) {
    int32_t to = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(rondo__program_add_value(builder->program, name, &to));
    builder->program->values[to].dtype = builder->program->values[from].dtype;
    return rondo__program_add_simple(builder->program, "", "Identity", NULL, &from, 1, &to, 1);
}

static rondo_status add_gradients(rondo_builder *builder, const char *y, const char *const *xs,
                                  const char *const *outputs, size_t count,
                                  const rondo_gradient_options *options) {
    static const char call[] = "rondo_builder_add_gradients";
    int32_t *values = NULL;
    int32_t *stops = NULL;
    int32_t *made = rondo__calloc(count + 1, sizeof *made);
    rondo__gradient_request request = {.seed = RONDO__VALUE_NONE,
                                       .x_count = count,
                                       .kept_count = options->stop_count,
                                       .recompute = options->recompute,
                                       .recompute_count = options->recompute_count};
    rondo_status status = made != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = rondo__builder_find(builder, y, call, &request.y);
    }
    if (status == RONDO_STATUS_OK && options->seed != NULL) {
        status = rondo__builder_find(builder, options->seed, call, &request.seed);
    }
    if (status == RONDO_STATUS_OK) {
        status = find_all(builder, xs, count, &values);
    }
    if (status == RONDO_STATUS_OK) {
        status = find_all(builder, options->stop, options->stop_count, &stops);
    }
    request.xs = values;
    request.kept = stops;
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_gradients(builder->program, &request, made);
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = rondo__builder_check_name(builder, outputs[i], call);
        status = status == RONDO_STATUS_OK ? add_named(builder, made[i], outputs[i]) : status;
    }
    rondo__free(values);
    rondo__free(stops);
    rondo__free(made);
    return status;
}

rondo_status rondo_builder_add_gradients(rondo_builder *builder, const char *y,
                                         const char *const *xs, const char *const *outputs,
                                         size_t count, const rondo_gradient_options *options) {
    rondo_gradient_options merged = {.struct_size = sizeof merged};
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    RETURN_IF_ERROR(
        rondo__read_options(options, &merged, sizeof merged, __func__, "rondo_gradient_options"));
    if (y == NULL || xs == NULL || outputs == NULL ||
        (merged.stop == NULL && merged.stop_count > 0) ||
        (merged.recompute == NULL && merged.recompute_count > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          y == NULL         ? "y"
                          : xs == NULL      ? "xs"
                          : outputs == NULL ? "outputs"
                                            : "a list of the options");
    }
    if (count > 65536 || merged.stop_count > 65536 || merged.recompute_count > 65536) {
        return RONDO_FAIL(INVALID, "a list is longer than 65536");
    }
    if (builder->parent != NULL) {
        return RONDO_FAIL(INVALID, "gradients are added to the program, not to a body");
    }
    // On a copy, because nodes on the way are changed, too: Dropout, and ops that say more.
    rondo_program *before = builder->program;
    rondo_program *copy = NULL;
    RETURN_IF_ERROR(rondo__program_clone_whole(before, &copy));
    builder->program = copy;
    rondo_status status = add_gradients(builder, y, xs, outputs, count, &merged);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_verify(copy);
    }
    builder->program = status == RONDO_STATUS_OK ? copy : before;
    rondo_program_destroy(status == RONDO_STATUS_OK ? before : copy);
    return status;
}
