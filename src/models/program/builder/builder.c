// program/builder/builder.c — a program built in code: its life, inputs, parameters and outputs.
// See builder_parts.h.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/builder.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "program/builder/builder_parts.h"
#include "program/place_mark.h"
#include "program/training/step_parts.h"
#include "tensor/elements.h"

// ---- life

static rondo_status create(const char *name, rondo_builder *parent, rondo_builder **out_builder) {
    rondo_builder *builder = rondo__calloc(1, sizeof *builder);
    if (builder == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    builder->parent = parent;
    builder->depth = parent != NULL ? parent->depth + 1 : 0;
    const rondo_status status = rondo__program_create(name, &builder->program);
    if (status != RONDO_STATUS_OK) {
        rondo__free(builder);
        return status;
    }
    *out_builder = builder;
    return RONDO_STATUS_OK;
}

rondo_status rondo_builder_create(const rondo_builder_options *options,
                                  rondo_builder **out_builder) {
    rondo_builder_options merged = {.struct_size = sizeof merged};
    if (out_builder == NULL) {
        return RONDO_FAIL(INVALID, "out_builder is NULL");
    }
    *out_builder = NULL;
    RETURN_IF_ERROR(
        rondo__read_options(options, &merged, sizeof merged, __func__, "rondo_builder_options"));
    const int32_t opset = merged.opset == 0 ? RONDO_OP_OPSET_WRITTEN : merged.opset;
    if (opset < RONDO_OP_OPSET_MIN || opset > RONDO_OP_OPSET_MAX) {
        return RONDO_FAIL(INVALID, "opset %d; %d to %d are known", opset, RONDO_OP_OPSET_MIN,
                          RONDO_OP_OPSET_MAX);
    }
    rondo_builder *builder = NULL;
    RETURN_IF_ERROR(create(merged.name == NULL ? "program" : merged.name, NULL, &builder));
    rondo_status status = RONDO__ARRAY_RESERVE(builder->domains, builder->domain_capacity, 1);
    if (status == RONDO_STATUS_OK) {
        builder->domains[0] = (rondo__builder_domain){rondo__strdup(""), opset};
        builder->domain_count = 1;
        status = builder->domains[0].name != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    if (status != RONDO_STATUS_OK) {
        rondo_builder_destroy(builder);
        return status;
    }
    *out_builder = builder;
    return RONDO_STATUS_OK;
}

rondo_status rondo_builder_create_body(rondo_builder *builder, const char *name,
                                       rondo_builder **out_body) {
    if (out_body == NULL) {
        return RONDO_FAIL(INVALID, "out_body is NULL");
    }
    *out_body = NULL;
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (builder->depth + 1 >= RONDO__BODY_DEPTH_MAX) {
        return RONDO_FAIL(INVALID, "bodies are nested more than %d deep",
                          RONDO__BODY_DEPTH_MAX - 1);
    }
    return create(name == NULL ? "body" : name, builder, out_body);
}

rondo_status rondo__builder_add_domain(rondo_builder *builder, const char *domain,
                                       int32_t version) {
    for (size_t i = 0; i < builder->domain_count; ++i) {
        if (strcmp(builder->domains[i].name, domain) == 0) {
            return RONDO_STATUS_OK;
        }
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(builder->domains, builder->domain_capacity,
                                         builder->domain_count + 1));
    char *name = rondo__strdup(domain);
    if (name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    builder->domains[builder->domain_count++] = (rondo__builder_domain){name, version};
    return RONDO_STATUS_OK;
}

void rondo__builder_deinit(rondo_builder *builder) {
    rondo_program_destroy(builder->program);
    for (size_t i = 0; i < builder->domain_count; ++i) {
        rondo__free(builder->domains[i].name);
    }
    rondo__free(builder->domains);
    rondo__free(builder->captures);
}

void rondo_builder_destroy(rondo_builder *builder) {
    if (builder != NULL) {
        rondo__builder_deinit(builder);
        rondo__free(builder);
    }
}

rondo_status rondo__builder_check(const rondo_builder *builder, const char *call) {
    if (builder == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "builder is NULL");
    }
    for (const rondo_builder *at = builder; at != NULL; at = at->parent) {
        if (at->program == NULL) {
            return RONDO_FAIL_AS(call, STATE, "the builder%s is finished; create another one",
                                 at == builder ? "" : " around this body");
        }
    }
    return RONDO_STATUS_OK;
}

int32_t rondo__builder_get_opset(const rondo_builder *builder) {
    while (builder->parent != NULL) {
        builder = builder->parent;
    }
    return builder->domains[0].version;
}

// ---- places

rondo_status rondo_builder_begin_place(rondo_builder *builder, const char *place) {
    uint8_t parsed;
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    RETURN_IF_ERROR(rondo__place_parse(place, __func__, &parsed));
    if (builder->place_count == RONDO__BUILDER_PLACE_MAX) {
        return RONDO_FAIL(INVALID, "more than %d scopes of places are open",
                          RONDO__BUILDER_PLACE_MAX);
    }
    builder->places[builder->place_count++] = parsed;
    return RONDO_STATUS_OK;
}

rondo_status rondo_builder_end_place(rondo_builder *builder) {
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (builder->place_count == 0) {
        return RONDO_FAIL(STATE, "no scope of a place is open in this builder");
    }
    builder->place_count -= 1;
    return RONDO_STATUS_OK;
}

void rondo__builder_place_node(rondo_builder *builder) {
    const rondo_builder *at = builder;
    while (at->place_count == 0 && at->parent != NULL) {
        at = at->parent;
    }
    const uint8_t place = at->place_count > 0 ? at->places[at->place_count - 1] : RONDO__PLACE_ANY;
    builder->program->nodes[builder->program->node_count - 1].place = (rondo__place_mark){
        place, place != RONDO__PLACE_ANY ? RONDO__PLACED_BY_PROGRAM : RONDO__PLACED_BY_NOBODY};
}

// ---- marks

rondo__builder_mark rondo__builder_get_mark(const rondo_builder *builder) {
    const rondo_program *program = builder->program;
    return (rondo__builder_mark){
        .values = program->value_count,
        .nodes = program->node_count,
        .inputs = program->input_count,
        .declared = program->declared_count,
        .outputs = program->output_count,
        .optionals = program->optional_count,
        .symbols = program->symbol_count,
        .variables = program->variable_count,
    };
}

void rondo__builder_take_back(rondo_builder *builder, const rondo__builder_mark *mark) {
    rondo_program *program = builder->program;
    while (program->node_count > mark->nodes) {
        rondo__node_deinit(&program->nodes[--program->node_count]);
    }
    while (program->value_count > mark->values) {
        rondo__value *value = &program->values[--program->value_count];
        rondo_tensor_deinit(&value->constant);
        rondo__free(value->name);
    }
    while (program->symbol_count > mark->symbols) {
        rondo__free(program->symbols[--program->symbol_count].name);
    }
    while (builder->capture_count > 0 &&
           (size_t)builder->captures[builder->capture_count - 1].inner >= mark->values) {
        builder->capture_count -= 1;
    }
    program->input_count = mark->inputs;
    program->declared_count = mark->declared;
    program->output_count = mark->outputs;
    program->optional_count = mark->optionals;
    while (program->variable_count > mark->variables) {
        rondo_tensor_deinit(&program->variables[--program->variable_count].first);
    }
    rondo__program_rebuild_names(program);
}

// ---- names

rondo_status rondo__builder_check_name(const rondo_builder *builder, const char *name,
                                       const char *call) {
    if (name == NULL || name[0] == '\0') {
        return RONDO_FAIL_AS(call, INVALID, "a value needs a name");
    }
    if (rondo__program_find_value(builder->program, name) != RONDO__VALUE_NONE) {
        return RONDO_FAIL_AS(call, INVALID, "there is a value \"%.80s\" already", name);
    }
    return RONDO_STATUS_OK;
}

// Recurses once for each builder around.
static rondo_status find_or_capture(rondo_builder *builder, const char *name, const char *call,
                                    int32_t *out_value) {
    *out_value = rondo__program_find_value(builder->program, name);
    if (*out_value != RONDO__VALUE_NONE || builder->parent == NULL) {
        return rondo__step_check_reader(builder->program, *out_value, call);
    }
    int32_t outer = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(find_or_capture(builder->parent, name, call, &outer));
    if (outer == RONDO__VALUE_NONE) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(builder->captures, builder->capture_capacity,
                                         builder->capture_count + 1));
    RETURN_IF_ERROR(rondo__program_add_from_around(builder->program, name, builder->parent->program,
                                                   outer, out_value));
    if (builder->program->values[*out_value].constant.dtype == RONDO_DTYPE_NONE) {
        builder->captures[builder->capture_count++] = (rondo__builder_capture){outer, *out_value};
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__builder_find(rondo_builder *builder, const char *name, const char *call,
                                 int32_t *out_value) {
    RETURN_IF_ERROR(find_or_capture(builder, name, call, out_value));
    if (*out_value == RONDO__VALUE_NONE) {
        return RONDO_FAIL_AS(call, INVALID, "no input, parameter or node makes a value \"%.80s\"",
                             name);
    }
    return RONDO_STATUS_OK;
}

// ---- declared types

static rondo_status check_dtype(rondo_dtype dtype, bool may_be_nested, const char *name,
                                const char *call) {
    if (dtype <= RONDO_DTYPE_NONE || dtype >= RONDO_DTYPE_COUNT ||
        (!may_be_nested && rondo__dtype_is_nested(dtype))) {
        return RONDO_FAIL_AS(call, INVALID, "\"%.80s\": dtype %d is none of %s", name, (int)dtype,
                             may_be_nested ? "rondo/tensor.h" : "numbers and strings");
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_port(const rondo_builder *builder, const char *name,
                               const rondo_port *port, const char *call) {
    RETURN_IF_ERROR(check_dtype(port->dtype, true, name, call));
    if (port->labels != NULL) {
        return RONDO_FAIL_AS(call, INVALID, "\"%.80s\": only a ZipMap gives labels", name);
    }
    if (port->rank < -1 || port->rank > RONDO_RANK_MAX) {
        return RONDO_FAIL_AS(call, INVALID, "\"%.80s\": rank %d is outside [-1, %d]", name,
                             port->rank, RONDO_RANK_MAX);
    }
    size_t bytes = rondo_dtype_get_bytes(port->dtype);
    for (int32_t d = 0; d < port->rank; ++d) {
        const int64_t extent = port->extent[d];
        if (port->symbol[d] != NULL) {
            if (port->symbol[d][0] == '\0' || builder->parent != NULL) {
                return RONDO_FAIL_AS(
                    call, INVALID, "\"%.80s\": extent %d is a symbol %s", name, d,
                    builder->parent != NULL ? "in a body, which has none" : "without a name");
            }
        } else if (extent < -1) {
            return RONDO_FAIL_AS(call, INVALID, "\"%.80s\": extent %d is %lld", name, d,
                                 (long long)extent);
        } else if (extent > 0 && (!rondo__mul_size(bytes, (size_t)extent, &bytes) ||
                                  bytes > (size_t)PTRDIFF_MAX)) {
            return RONDO_FAIL_AS(call, INVALID,
                                 "\"%.80s\": more bytes than can be addressed (extent %d is %lld)",
                                 name, d, (long long)extent);
        }
    }
    return RONDO_STATUS_OK;
}

// Sets dtype, rank and extents of a value as a caller's port says.
static rondo_status declare(rondo_builder *builder, int32_t value, const rondo_port *port,
                            const char *call) {
    rondo_program *program = builder->program;
    RETURN_IF_ERROR(check_port(builder, program->values[value].name, port, call));
    rondo__dimension dims[RONDO_RANK_MAX];
    for (int32_t d = 0; d < RONDO_RANK_MAX; ++d) {
        dims[d] = (rondo__dimension){.number = -1, .symbol = -1};
        if (d < port->rank && port->symbol[d] != NULL) {
            RETURN_IF_ERROR(rondo__program_add_symbol(program, port->symbol[d], &dims[d].symbol));
        } else if (d < port->rank) {
            dims[d].number = port->extent[d];
        }
    }
    rondo__value *v = &program->values[value];
    v->dtype = port->dtype;
    memcpy(v->item_dtype, port->item_dtype, sizeof v->item_dtype);
    v->has_shape = port->rank >= 0 && !rondo__dtype_is_nested(port->dtype);
    v->rank = v->has_shape ? port->rank : 0;
    memcpy(v->dims, dims, sizeof v->dims);
    return RONDO_STATUS_OK;
}

// ---- inputs and outputs

rondo_status rondo_builder_add_input(rondo_builder *builder, const rondo_port *port) {
    rondo_port whole = {.struct_size = sizeof whole};
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (port == NULL) {
        return RONDO_FAIL(INVALID, "port is NULL");
    }
    RETURN_IF_ERROR(rondo__read_options(port, &whole, sizeof whole, __func__, "rondo_port"));
    RETURN_IF_ERROR(rondo__builder_check_name(builder, whole.name, __func__));
    const rondo__builder_mark mark = rondo__builder_get_mark(builder);
    int32_t value = RONDO__VALUE_NONE;
    rondo_status status = rondo__program_add_value(builder->program, whole.name, &value);
    if (status == RONDO_STATUS_OK) {
        status = declare(builder, value, &whole, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_input(builder->program, value);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__builder_take_back(builder, &mark);
    }
    return status;
}

// Compares a declared output with the type and shape of its value, if no node makes that.
static rondo_status check_declared(const rondo_builder *builder, int32_t value,
                                   const rondo_port *port, const char *call) {
    const rondo__value *v = &builder->program->values[value];
    bool fits =
        port->dtype == v->dtype && (port->rank < 0 || !v->has_shape || port->rank == v->rank);
    for (int32_t d = 0; fits && v->has_shape && d < port->rank; ++d) {
        fits = port->extent[d] < 0 || v->dims[d].number < 0 || port->extent[d] == v->dims[d].number;
    }
    if (!fits) {
        char text[160];
        return RONDO_FAIL_AS(call, INVALID, "output \"%.80s\" is %s %s, which is not as declared",
                             v->name, rondo_dtype_get_name(v->dtype),
                             rondo__value_format_shape(builder->program, v, text, sizeof text));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_builder_add_output(rondo_builder *builder, const char *name,
                                      const rondo_port *declared) {
    rondo_port whole = {.struct_size = sizeof whole};
    int32_t value = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (name == NULL) {
        return RONDO_FAIL(INVALID, "name is NULL");
    }
    RETURN_IF_ERROR(rondo__read_options(declared, &whole, sizeof whole, __func__, "rondo_port"));
    const rondo__builder_mark mark = rondo__builder_get_mark(builder);
    rondo_status status = rondo__builder_find(builder, name, __func__, &value);
    rondo_program *program = builder->program;
    for (size_t i = 0; i < program->output_count && status == RONDO_STATUS_OK; ++i) {
        if (program->outputs[i] == value) {
            status = RONDO_FAIL(INVALID, "\"%.80s\" is an output already", name);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_output(program, value);
    }
    if (status == RONDO_STATUS_OK && declared != NULL) {
        status = program->values[value].producer < 0
                     ? check_declared(builder, value, &whole, __func__)
                     : declare(builder, value, &whole, __func__);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__builder_take_back(builder, &mark);
    }
    return status;
}

// ---- parameters

static rondo_status check_tensor(const rondo_tensor *tensor, const char *what, const char *call) {
    if (tensor == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "%.100s: the tensor is NULL", what);
    }
    RETURN_IF_ERROR(check_dtype(tensor->dtype, false, what, call));
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    size_t bytes = 0;
    if (count < 0 ||
        !rondo__mul_size((size_t)count, rondo_dtype_get_bytes(tensor->dtype), &bytes) ||
        bytes > (size_t)PTRDIFF_MAX) {
        return RONDO_FAIL_AS(call, INVALID, "%.100s: the shape is not valid", what);
    }
    if (!rondo_tensor_is_on_host(tensor)) {
        return RONDO_FAIL_AS(call, INVALID,
                             "%s lies on %s; a program is in host memory: copy it with "
                             "rondo_tensor_copy",
                             what, rondo__tensor_get_place(tensor));
    }
    if (count > 0 && tensor->data == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "%.100s: data is NULL", what);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__builder_copy_tensor(const rondo_tensor *tensor, const char *what,
                                        const char *call, rondo_tensor *out_copy) {
    *out_copy = (rondo_tensor){0};
    RETURN_IF_ERROR(check_tensor(tensor, what, call));
    RETURN_IF_ERROR(rondo__tensor_copy(tensor, out_copy));
    // Bytes other than 0 and 1 must never be looked at as a C bool.
    uint8_t *bytes = out_copy->data;
    const size_t count = tensor->dtype == RONDO_DTYPE_BOOL ? rondo_tensor_get_bytes(tensor) : 0;
    for (size_t i = 0; i < count; ++i) {
        bytes[i] = bytes[i] != 0;
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_parameter(rondo_builder *builder, const char *name,
                                  const rondo_tensor *tensor, rondo_parameter_kind kind) {
    const rondo__builder_mark mark = rondo__builder_get_mark(builder);
    int32_t value = RONDO__VALUE_NONE;
    rondo_status status = rondo__program_add_constant(builder->program, name, tensor, &value);
    if (status == RONDO_STATUS_OK && kind == RONDO_PARAMETER_INPUT) {
        rondo__value declared = builder->program->values[value];
        declared.constant = (rondo_tensor){0};
        status = rondo__program_add_optional(builder->program, value, &declared);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__builder_take_back(builder, &mark);
    }
    return status;
}

rondo_status rondo_builder_add_parameter(rondo_builder *builder, const char *name,
                                         const rondo_tensor *tensor, rondo_parameter_kind kind) {
    char what[112];
    rondo_tensor copy = {0};
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    RETURN_IF_ERROR(rondo__builder_check_name(builder, name, __func__));
    if (kind < RONDO_PARAMETER_COPIED || kind > RONDO_PARAMETER_INPUT) {
        return RONDO_FAIL(INVALID, "kind %d is not a rondo_parameter_kind", (int)kind);
    }
    if (kind == RONDO_PARAMETER_INPUT && builder->parent != NULL) {
        return RONDO_FAIL(INVALID, "\"%.80s\": inputs of bodies have no defaults", name);
    }
    (void)snprintf(what, sizeof what, "parameter \"%.80s\"", name);
    if (kind != RONDO_PARAMETER_SHARED) {
        RETURN_IF_ERROR(rondo__builder_copy_tensor(tensor, what, __func__, &copy));
        const rondo_status status = add_parameter(builder, name, &copy, kind);
        rondo_tensor_deinit(&copy);
        return status;
    }
    RETURN_IF_ERROR(check_tensor(tensor, what, __func__));
    const size_t alignment =
        tensor->dtype == RONDO_DTYPE_STRING ? sizeof(void *) : rondo_dtype_get_bytes(tensor->dtype);
    if ((uintptr_t)tensor->data % alignment != 0) {
        return RONDO_FAIL(INVALID, "%s: data is not aligned to %zu bytes; copy it", what,
                          alignment);
    }
    return add_parameter(builder, name, tensor, kind);
}

rondo_status rondo_builder_add_constant(rondo_builder *builder, const char *name, rondo_dtype dtype,
                                        const rondo_shape *shape, const void *elements) {
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (shape == NULL) {
        return RONDO_FAIL(INVALID, "shape is NULL");
    }
    // Only read: the parameter is a copy.
    union {
        const void *from;
        void *to;
    } data = {.from = elements};
    const rondo_tensor tensor = {.dtype = dtype, .shape = *shape, .data = data.to};
    return rondo_builder_add_parameter(builder, name, &tensor, RONDO_PARAMETER_COPIED);
}
