// program/override.c — inputs that have a default, and programs in which they are fed.
//
// A loaded program has such values as constants, so that a run which feeds none of them costs no
// more: they are folded and packed like all others. A run that feeds some gets a program in which
// those are inputs.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

rondo_status rondo__program_add_optional(rondo_program *program, int32_t constant,
                                         const rondo__value *declared) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(program->optionals, program->optional_capacity,
                                         program->optional_count + 1));
    rondo__optional *optional = &program->optionals[program->optional_count++];
    *optional = (rondo__optional){.value = constant, .declared = *declared};
    optional->declared.name = program->values[constant].name;
    return RONDO_STATUS_OK;
}

// Makes a constant a value that comes from outside.
static void forget_constant(rondo__value *value, const rondo__value *declared) {
    rondo_tensor_deinit(&value->constant);
    value->producer = -1;
    value->origin = -1;
    value->dtype = declared->dtype;
    value->has_shape = declared->has_shape;
    value->rank = declared->rank;
    for (int32_t d = 0; d < RONDO_RANK_MAX; ++d) {
        value->dims[d] = declared->dims[d];
    }
}

// Adds `value` to the inputs of a node, at `place`.
static rondo_status insert_input(rondo__node *node, size_t place, int32_t value) {
    int32_t *grown = rondo__realloc(node->inputs, (node->input_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = node->input_count; i > place; --i) {
        grown[i] = grown[i - 1];
    }
    grown[place] = value;
    node->inputs = grown;
    node->input_count += 1;
    return RONDO_STATUS_OK;
}

static rondo_status override_bodies(rondo_program *program, int32_t value,
                                    const rondo__value *declared);

// The constant of a body that came from `value` around it becomes a captured one.
static rondo_status override_in_body(rondo_program *body, int32_t value,
                                     const rondo__value *declared, bool *out_is_captured) {
    *out_is_captured = false;
    for (size_t v = 0; v < body->value_count; ++v) {
        if (body->values[v].origin != value) {
            continue;
        }
        forget_constant(&body->values[v], declared);
        RETURN_IF_ERROR(rondo__program_add_captured(body, (int32_t)v));
        *out_is_captured = true;
        return override_bodies(body, (int32_t)v, declared);
    }
    return RONDO_STATUS_OK;
}

// Bodies nest only so deep, so this may recurse.
static rondo_status override_bodies(rondo_program *program, int32_t value,
                                    const rondo__value *declared) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        size_t place = node->explicit_count;  // behind what the bodies so far capture
        for (size_t a = 0; a < node->op.attribute_count; ++a) {
            rondo_program *body = node->op.attributes[a].body;
            if (node->op.attributes[a].kind != RONDO__ATTRIBUTE_BODY || body == NULL) {
                continue;
            }
            bool is_captured = false;
            RETURN_IF_ERROR(override_in_body(body, value, declared, &is_captured));
            place += body->input_count - body->declared_count;
            if (is_captured) {
                RETURN_IF_ERROR(insert_input(node, place - 1, value));
            }
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_override(const rondo_program *program, const bool *is_fed,
                                     rondo_program **out_program) {
    rondo_program *copy = NULL;
    *out_program = NULL;
    RETURN_IF_ERROR(rondo__program_clone(program, &copy));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < program->optional_count && status == RONDO_STATUS_OK; ++i) {
        const rondo__optional *optional = &program->optionals[i];
        if (!is_fed[i]) {
            continue;
        }
        // Bodies get numbers only: symbols are the main program's.
        rondo__value plain = optional->declared;
        for (int32_t d = 0; d < RONDO_RANK_MAX; ++d) {
            plain.dims[d].symbol = -1;
        }
        forget_constant(&copy->values[optional->value], &optional->declared);
        status = rondo__program_add_input(copy, optional->value);
        if (status == RONDO_STATUS_OK) {
            status = override_bodies(copy, optional->value, &plain);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_verify(copy);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(copy);
        return status;
    }
    *out_program = copy;
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_capture_in_bodies(rondo_program *program, int32_t value) {
    rondo__value plain = program->values[value];
    for (int32_t d = 0; d < RONDO_RANK_MAX; ++d) {
        plain.dims[d].symbol = -1;
    }
    return override_bodies(program, value, &plain);
}

rondo_status rondo__program_free_constant(rondo_program *program, int32_t value) {
    const rondo_tensor *constant = &program->values[value].constant;
    rondo__value declared = {.dtype = constant->dtype, .has_shape = true};
    declared.rank = constant->shape.rank;
    for (int32_t d = 0; d < RONDO_RANK_MAX; ++d) {
        declared.dims[d] = (rondo__dimension){
            .number = d < declared.rank ? constant->shape.extent[d] : -1, .symbol = -1};
    }
    forget_constant(&program->values[value], &declared);
    RETURN_IF_ERROR(rondo__program_add_input(program, value));
    RETURN_IF_ERROR(override_bodies(program, value, &declared));
    return rondo__program_verify(program);
}
