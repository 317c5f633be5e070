// program/program_variables.c — inputs that executors keep from run to run. See rondo/variable.h.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/variable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "op/support.h"
#include "program/builder/builder_parts.h"
#include "program/edit.h"
#include "program/program.h"
#include "tensor/elements.h"

rondo__variable *rondo__program_find_variable(const rondo_program *program, int32_t value) {
    for (size_t i = 0; i < program->variable_count; ++i) {
        if (program->variables[i].value == value) {
            return &program->variables[i];
        }
    }
    return NULL;
}

rondo_status rondo__program_add_variable(rondo_program *program, const rondo__variable *variable) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(program->variables, program->variable_capacity,
                                         program->variable_count + 1));
    rondo__variable *added = &program->variables[program->variable_count++];
    *added = *variable;
    rondo_tensor_share(&variable->first, &added->first);
    for (size_t i = 0; i < program->variable_count; ++i) {  // they may have moved
        rondo__variable *each = &program->variables[i];
        each->start.struct_size = sizeof each->start;
        each->start.tensor = each->first.dtype != RONDO_DTYPE_NONE ? &each->first : NULL;
    }
    return RONDO_STATUS_OK;
}

// Gives `copy`, a clone whose values have the same numbers, the variables of `program`.
static rondo_status copy_variables(const rondo_program *program, rondo_program *copy) {
    for (size_t i = 0; i < program->variable_count; ++i) {
        RETURN_IF_ERROR(rondo__program_add_variable(copy, &program->variables[i]));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_clone_whole(const rondo_program *program, rondo_program **out_program) {
    rondo_program *copy = NULL;
    *out_program = NULL;
    RETURN_IF_ERROR(rondo__program_clone(program, &copy));
    rondo_status status = copy_variables(program, copy);
    for (size_t i = 0; i < program->optional_count && status == RONDO_STATUS_OK; ++i) {
        const rondo__optional *optional = &program->optionals[i];
        status = rondo__program_add_optional(copy, optional->value, &optional->declared);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(copy);
        return status;
    }
    copy->file_bytes = program->file_bytes;
    *out_program = copy;
    return RONDO_STATUS_OK;
}

// ---- starts -----------------------------------------------------------------------------------

// The error in the numbers of a start; NULL: none.
static const char *find_fault(const rondo_start *start) {
    const bool is_finite = isfinite(start->a) && isfinite(start->b);
    switch (start->kind) {
        case RONDO_START_NONE:
        case RONDO_START_TENSOR:
            return NULL;
        case RONDO_START_CONSTANT:
            return isfinite(start->a) ? NULL : "its number a is not finite";
        case RONDO_START_UNIFORM:
            return is_finite && start->a <= start->b ? NULL : "its ends are not a <= b, finite";
        case RONDO_START_NORMAL:
            return is_finite && start->b >= 0 ? NULL : "its deviation b is not finite and >= 0";
        default:
            return is_finite && start->a >= 0 ? NULL : "its gain a is not finite and >= 0";
    }
}

static rondo_status check_drawn(const rondo__value *value, const rondo_start *start,
                                const char *call) {
    const char *fault = find_fault(start);
    if (fault != NULL) {
        return RONDO_FAIL_AS(call, INVALID, "the start of \"%.60s\": %s", value->name, fault);
    }
    const bool is_number =
        rondo__dtype_is_integer(value->dtype) || value->dtype == RONDO_DTYPE_BOOL;
    const bool is_constant = start->kind == RONDO_START_CONSTANT && (is_number || start->a == 0);
    if (start->kind > RONDO_START_NONE && start->kind < RONDO_START_TENSOR && !is_constant &&
        !rondo__dtype_is_float(value->dtype)) {
        return RONDO_FAIL_AS(call, INVALID, "the start of \"%.60s\": %s is not drawn, floats are",
                             value->name, rondo_dtype_get_name(value->dtype));
    }
    bool is_known = value->has_shape;
    for (int32_t d = 0; d < value->rank; ++d) {
        is_known = is_known && value->dims[d].number >= 0;
    }
    return is_known || start->kind == RONDO_START_NONE
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "the start of \"%.60s\": its extents must be numbers",
                               value->name);
}

static rondo_status check_tensor(const rondo__value *value, const rondo_tensor *tensor,
                                 const char *call) {
    bool fits =
        tensor != NULL && tensor->dtype == value->dtype && tensor->shape.rank == value->rank;
    for (int32_t d = 0; fits && d < value->rank; ++d) {
        fits = tensor->shape.extent[d] == value->dims[d].number;
    }
    return fits ? RONDO_STATUS_OK
                : RONDO_FAIL_AS(call, INVALID,
                                "the start of \"%.60s\": a tensor of its dtype and shape is needed",
                                value->name);
}

static rondo_status read_start(const rondo_program *program, int32_t value,
                               const rondo_start *given, const char *call,
                               rondo__variable *out_variable) {
    const rondo__value *v = &program->values[value];
    rondo_start start = {.struct_size = sizeof start};
    RETURN_IF_ERROR(rondo__read_options(given, &start, sizeof start, call, "rondo_start"));
    if (start.kind < RONDO_START_NONE || start.kind > RONDO_START_TENSOR) {
        return RONDO_FAIL_AS(call, INVALID, "kind %d is not a rondo_start_kind", (int)start.kind);
    }
    if (!rondo__dtype_is_plain(v->dtype)) {
        return RONDO_FAIL_AS(call, INVALID, "\"%.60s\" is a %s; a variable is a tensor of numbers",
                             v->name, rondo_dtype_get_name(v->dtype));
    }
    RETURN_IF_ERROR(check_drawn(v, &start, call));
    *out_variable = (rondo__variable){.value = value, .update = RONDO__VALUE_NONE, .start = start};
    if (start.kind == RONDO_START_TENSOR) {
        char what[112];
        (void)snprintf(what, sizeof what, "the start of \"%.80s\"", v->name);
        RETURN_IF_ERROR(check_tensor(v, start.tensor, call));
        RETURN_IF_ERROR(rondo__builder_copy_tensor(start.tensor, what, call, &out_variable->first));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_builder_add_variable(rondo_builder *builder, const rondo_port *port,
                                        const rondo_start *start) {
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (builder->parent != NULL) {
        return RONDO_FAIL(INVALID, "a body has no variables; its nodes use those around it");
    }
    const rondo__builder_mark mark = rondo__builder_get_mark(builder);
    RETURN_IF_ERROR(rondo_builder_add_input(builder, port));
    rondo_program *program = builder->program;
    rondo__variable variable = {0};
    rondo_status status =
        read_start(program, program->inputs[program->input_count - 1], start, __func__, &variable);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_variable(program, &variable);
    }
    rondo_tensor_deinit(&variable.first);
    if (status != RONDO_STATUS_OK) {
        rondo__builder_take_back(builder, &mark);
    }
    return status;
}

// ---- parameters that become variables ---------------------------------------------------------

static rondo_status make_variable(rondo_program *program, int32_t value) {
    rondo__variable variable = {
        .value = value,
        .update = RONDO__VALUE_NONE,
        .start = {.struct_size = sizeof variable.start, .kind = RONDO_START_TENSOR}};
    rondo_tensor_share(&program->values[value].constant, &variable.first);
    rondo_status status = rondo__program_add_variable(program, &variable);
    rondo_tensor_deinit(&variable.first);
    if (status == RONDO_STATUS_OK) {
        rondo__program_drop_optional(program, value);
        status = rondo__program_free_constant(program, value);
    }
    return status;
}

rondo_status rondo_program_make_variables(const rondo_program *program, const char *const *names,
                                          size_t name_count, rondo_program **out_program) {
    if (program == NULL || out_program == NULL || (names == NULL && name_count > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          program == NULL       ? "program"
                          : out_program == NULL ? "out_program"
                                                : "names");
    }
    rondo_program *copy = NULL;
    *out_program = NULL;
    RETURN_IF_ERROR(rondo__program_clone_whole(program, &copy));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < name_count && status == RONDO_STATUS_OK; ++i) {
        const int32_t value =
            names[i] != NULL ? rondo__program_find_value(copy, names[i]) : RONDO__VALUE_NONE;
        const bool is_there =
            value >= 0 && rondo__dtype_is_plain(copy->values[value].constant.dtype);
        status = is_there ? make_variable(copy, value)
                          : RONDO_FAIL(INVALID, "the program has no parameter of numbers \"%.60s\"",
                                       names[i] != NULL ? names[i] : "(null)");
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(copy);
        return status;
    }
    *out_program = copy;
    return RONDO_STATUS_OK;
}

// ---- updates ----------------------------------------------------------------------------------

static bool is_output(const rondo_program *program, int32_t value) {
    bool is = false;
    for (size_t i = 0; i < program->output_count; ++i) {
        is = is || program->outputs[i] == value;
    }
    return is;
}

static rondo_status check_types(const rondo_program *program, int32_t input, int32_t update,
                                const char *call) {
    const rondo__value *to = &program->values[input];
    const rondo__value *from = &program->values[update];
    if (from->dtype != RONDO_DTYPE_NONE && to->dtype != RONDO_DTYPE_NONE &&
        from->dtype != to->dtype) {
        return RONDO_FAIL_AS(call, INVALID, "\"%.60s\" is %s, \"%.60s\" %s", to->name,
                             rondo_dtype_get_name(to->dtype), from->name,
                             rondo_dtype_get_name(from->dtype));
    }
    return to->dtype == RONDO_DTYPE_NONE || rondo__dtype_is_plain(to->dtype)
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID,
                               "\"%.60s\" is a %s; a variable is a tensor of numbers", to->name,
                               rondo_dtype_get_name(to->dtype));
}

static rondo_status fail_taken(const rondo_program *program, const rondo__variable *variable,
                               const char *call) {
    return RONDO_FAIL_AS(call, INVALID, "\"%.60s\" has an update already, \"%.60s\"",
                         program->values[variable->value].name,
                         program->values[variable->update].name);
}

rondo_status rondo_builder_set_update(rondo_builder *builder, const char *variable,
                                      const char *value) {
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    rondo_program *program = builder->program;
    const int32_t input = variable != NULL ? rondo__program_find_value(program, variable) : -1;
    rondo__variable *found = input >= 0 ? rondo__program_find_variable(program, input) : NULL;
    if (found == NULL) {
        return RONDO_FAIL(INVALID, "there is no variable \"%.60s\"",
                          variable != NULL ? variable : "(null)");
    }
    if (found->update != RONDO__VALUE_NONE) {
        return fail_taken(program, found, __func__);
    }
    int32_t update = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(rondo__builder_find(builder, value, __func__, &update));
    RETURN_IF_ERROR(check_types(program, input, update, __func__));
    if (!is_output(program, update)) {
        RETURN_IF_ERROR(rondo_builder_add_output(builder, value, NULL));
    }
    found->update = update;
    return RONDO_STATUS_OK;
}

static rondo_status find_input(const rondo_program *program, const char *name, const char *call,
                               int32_t *out_value) {
    *out_value = name != NULL ? rondo__program_find_value(program, name) : RONDO__VALUE_NONE;
    for (size_t i = 0; i < program->declared_count; ++i) {
        if (program->inputs[i] == *out_value) {
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_FAIL_AS(call, INVALID, "the program has no input without a default \"%.60s\"",
                         name != NULL ? name : "(null)");
}

rondo_status rondo_program_set_update(rondo_program *program, const char *input,
                                      const char *output) {
    int32_t value = RONDO__VALUE_NONE;
    if (program == NULL) {
        return RONDO_FAIL(INVALID, "program is NULL");
    }
    RETURN_IF_ERROR(find_input(program, input, __func__, &value));
    const int32_t update =
        output != NULL ? rondo__program_find_value(program, output) : RONDO__VALUE_NONE;
    if (update == RONDO__VALUE_NONE || !is_output(program, update)) {
        return RONDO_FAIL(INVALID, "the program has no output \"%.60s\"",
                          output != NULL ? output : "(null)");
    }
    RETURN_IF_ERROR(check_types(program, value, update, __func__));
    rondo__variable *found = rondo__program_find_variable(program, value);
    if (found != NULL && found->update != RONDO__VALUE_NONE) {
        return fail_taken(program, found, __func__);
    }
    if (found != NULL) {
        found->update = update;
        return RONDO_STATUS_OK;
    }
    const rondo__variable fresh = {.value = value, .update = update};
    return rondo__program_add_variable(program, &fresh);
}

// ---- from a file ------------------------------------------------------------------------------

static bool is_input(const rondo_program *program, int32_t value) {
    bool is = false;
    for (size_t i = 0; i < program->declared_count; ++i) {
        is = is || program->inputs[i] == value;
    }
    return is;
}

static rondo_status check_saved(const rondo_program *program, int32_t value, int32_t update,
                                const rondo_start *start) {
    static const char call[] = "rondo_program_load_onnx";
    const bool is_tensor = start->kind == RONDO_START_TENSOR;
    const rondo__value *v = &program->values[value];
    const rondo_dtype dtype = is_tensor ? v->constant.dtype : v->dtype;
    bool fits = start->kind >= RONDO_START_NONE && start->kind <= RONDO_START_TENSOR &&
                rondo__dtype_is_plain(dtype) && is_input(program, value) == !is_tensor &&
                rondo__program_find_variable(program, value) == NULL &&
                (update == RONDO__VALUE_NONE || is_output(program, update));
    if (fits && !is_tensor) {
        fits = check_drawn(v, start, call) == RONDO_STATUS_OK;
    }
    if (fits && update != RONDO__VALUE_NONE) {
        const rondo_dtype made = program->values[update].dtype;
        fits = made == RONDO_DTYPE_NONE || made == dtype;
    }
    return fits ? RONDO_STATUS_OK
                : RONDO_FAIL_AS(call, BAD_DATA,
                                "the metadata of variable \"%.60s\" does not fit the graph",
                                v->name);
}

rondo_status rondo__program_add_saved_variable(rondo_program *program, int32_t value,
                                               int32_t update, const rondo_start *start) {
    RETURN_IF_ERROR(check_saved(program, value, update, start));
    if (start->kind == RONDO_START_TENSOR) {
        RETURN_IF_ERROR(make_variable(program, value));
        program->variables[program->variable_count - 1].update = update;
        return RONDO_STATUS_OK;
    }
    const rondo__variable variable = {.value = value, .update = update, .start = *start};
    return rondo__program_add_variable(program, &variable);
}

// ---- reading back -----------------------------------------------------------------------------

rondo_status rondo_program_list_variables(const rondo_program *program, size_t capacity,
                                          rondo_variable *out_variables, size_t *out_count) {
    if (program == NULL || out_count == NULL || (out_variables == NULL && capacity > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          program == NULL     ? "program"
                          : out_count == NULL ? "out_count"
                                              : "out_variables");
    }
    for (size_t i = 0; i < program->variable_count && i < capacity; ++i) {
        const rondo__variable *variable = &program->variables[i];
        const bool has_update = variable->update != RONDO__VALUE_NONE;
        out_variables[i] =
            (rondo_variable){.name = program->values[variable->value].name,
                             .update = has_update ? program->values[variable->update].name : NULL,
                             .start = &variable->start};
    }
    *out_count = program->variable_count;
    return RONDO_STATUS_OK;
}
