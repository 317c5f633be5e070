// program/program.c — see program.h.
// SPDX-License-Identifier: Apache-2.0

#include "rondo/program.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/use_count.h"
#include "base/write_struct.h"
#include "program/program.h"

rondo_status rondo__program_create(const char *name, rondo_program **out_program) {
    *out_program = NULL;
    rondo_program *program = rondo__calloc(1, sizeof(*program));
    if (program == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    atomic_init(&program->reference_count, 1);
    program->name = rondo__strdup(name == NULL ? "" : name);
    if (program->name == NULL) {
        rondo__free(program);
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_program = program;
    return RONDO_STATUS_OK;
}

void rondo__node_deinit(rondo__node *node) {
    for (size_t i = 0; i < node->op.attribute_count; ++i) {
        rondo_program_destroy(node->op.attributes[i].body);  // bounded depth: program.h
    }
    rondo__op_deinit(&node->op);
    rondo__free(node->inputs);
    rondo__free(node->outputs);
    *node = (rondo__node){0};
}

void rondo__program_retain(rondo_program *program) {
    rondo__reference_take(&program->reference_count);
}

void rondo_program_destroy(rondo_program *program) {
    if (program == NULL || !rondo__reference_drop(&program->reference_count)) {
        return;
    }
    for (size_t i = 0; i < program->node_count; ++i) {
        rondo__node_deinit(&program->nodes[i]);
    }
    for (size_t i = 0; i < program->value_count; ++i) {
        rondo_tensor_deinit(&program->values[i].constant);
        rondo_tensor_deinit(&program->values[i].labels);
        rondo__free(program->values[i].name);
    }
    for (size_t i = 0; i < program->symbol_count; ++i) {
        rondo__free(program->symbols[i].name);
    }
    rondo__free(program->metadata);
    rondo__free(program->nodes);
    rondo__free(program->values);
    rondo__free(program->symbols);
    rondo__free(program->optionals);
    for (size_t i = 0; i < program->variable_count; ++i) {
        rondo_tensor_deinit(&program->variables[i].first);
    }
    rondo__free(program->variables);
    rondo__free(program->inputs);
    rondo__free(program->outputs);
    rondo__namemap_deinit(&program->names);
    rondo__free(program->name);
    rondo__program_attachment *attachment = atomic_load(&program->attachment);
    if (attachment != NULL) {
        attachment->free(attachment);
    }
    if (program->saved != NULL) {
        program->saved->free(program->saved);
    }
    rondo__free(program);
}

// ---- names

int32_t rondo__program_find_value(const rondo_program *program, const char *name) {
    return rondo__namemap_find(&program->names, name, RONDO__VALUE_NONE);
}

void rondo__program_rebuild_names(rondo_program *program) {
    rondo__namemap_clear(&program->names);
    for (size_t i = 0; i < program->value_count; ++i) {
        (void)rondo__namemap_put(&program->names, program->values[i].name, (int32_t)i);
    }
}

// ---- ports

size_t rondo_program_get_input_count(const rondo_program *program) {
    return program == NULL ? 0 : program->declared_count;
}

size_t rondo_program_get_output_count(const rondo_program *program) {
    return program == NULL ? 0 : program->output_count;
}

static void fill_port(const rondo_program *program, const rondo__value *value, rondo_port *port) {
    port->name = value->name;
    port->dtype = value->dtype;
    port->rank = -1;
    memcpy(port->item_dtype, value->item_dtype, sizeof(port->item_dtype));
    port->labels = value->labels.dtype != RONDO_DTYPE_NONE ? &value->labels : NULL;
    if (value->constant.dtype != RONDO_DTYPE_NONE) {
        port->dtype = value->constant.dtype;
        port->rank = value->constant.shape.rank;
        memcpy(port->extent, value->constant.shape.extent, sizeof(port->extent));
        return;
    }
    if (!value->has_shape) {
        return;
    }
    port->rank = value->rank;
    for (int32_t i = 0; i < value->rank; ++i) {
        const rondo__dimension *dimension = &value->dims[i];
        port->extent[i] = dimension->number;
        if (dimension->symbol >= 0 && (size_t)dimension->symbol < program->symbol_count) {
            port->extent[i] = program->symbols[dimension->symbol].extent;
            port->symbol[i] = program->symbols[dimension->symbol].name;
        }
    }
}

static void write_port(const rondo_program *program, const rondo__value *value,
                       rondo_port *out_port) {
    rondo_port port = {.struct_size = sizeof port};
    fill_port(program, value, &port);
    rondo__write_struct(out_port, &port);
}

// Whether there is a port with this index, of `count`; clears *out_port.
static rondo_status check_port(const rondo_program *program, size_t count, size_t index,
                               const char *what, const char *call, rondo_port *out_port) {
    RETURN_IF_ERROR(rondo__clear_struct(out_port, sizeof *out_port, call, "rondo_port"));
    if (program == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "program is NULL");
    }
    if (index >= count) {
        return RONDO_FAIL_AS(call, INVALID, "%s %zu asked for; the program has %zu", what, index,
                             count);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_program_get_input(const rondo_program *program, size_t index,
                                     rondo_port *out_port) {
    const size_t count = program != NULL ? program->declared_count : 0;
    RETURN_IF_ERROR(check_port(program, count, index, "input", __func__, out_port));
    write_port(program, &program->values[program->inputs[index]], out_port);
    return RONDO_STATUS_OK;
}

rondo_status rondo_program_get_output(const rondo_program *program, size_t index,
                                      rondo_port *out_port) {
    const size_t count = program != NULL ? program->output_count : 0;
    RETURN_IF_ERROR(check_port(program, count, index, "output", __func__, out_port));
    write_port(program, &program->values[program->outputs[index]], out_port);
    return RONDO_STATUS_OK;
}

size_t rondo_program_get_optional_input_count(const rondo_program *program) {
    return program == NULL ? 0 : program->optional_count;
}

rondo_status rondo_program_get_optional_input(const rondo_program *program, size_t index,
                                              rondo_port *out_port) {
    const size_t count = rondo_program_get_optional_input_count(program);
    RETURN_IF_ERROR(check_port(program, count, index, "optional input", __func__, out_port));
    write_port(program, &program->optionals[index].declared, out_port);
    return RONDO_STATUS_OK;
}

const char *rondo_program_get_metadata(const rondo_program *program, const char *key) {
    const char *at = program != NULL && key != NULL ? program->metadata : NULL;
    const char *end = at != NULL ? at + program->metadata_bytes : NULL;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, key) == 0) {
            return value;
        }
        at = value + strlen(value) + 1;
    }
    return NULL;
}

// ---- symbols

// Names that people set are short; what an exporter computed ("floor(height/2 - 1/2) + 1") is
// counted only, because it would push the others out of the message.
static rondo_status fail_unknown_symbol(const rondo_program *program, const char *symbol) {
    enum { SHOWN_MAX = 32 };
    if (program->symbol_count == 0) {
        return RONDO_FAIL(INVALID, "no dimension \"%s\": the program has no symbolic dimensions",
                          symbol);
    }
    rondo__text list = {0};
    size_t shown = 0;
    for (size_t i = 0; i < program->symbol_count; ++i) {
        const char *name = program->symbols[i].name;
        if (strlen(name) <= SHOWN_MAX && strpbrk(name, "()+*/ ") == NULL && list.length < 120) {
            rondo__text_append(&list, "%s%s", shown++ == 0 ? "" : ", ", name);
        }
    }
    if (shown < program->symbol_count) {
        rondo__text_append(&list, "%s%zu %s", shown == 0 ? "" : " and ",
                           program->symbol_count - shown,
                           shown == 0 ? "with long names or expressions" : "more");
    }
    rondo_status status = RONDO_FAIL(INVALID, "no dimension \"%.60s\"; there are: %s", symbol,
                                     list.bytes == NULL ? "" : list.bytes);
    rondo__text_deinit(&list);
    return status;
}

rondo_status rondo_program_set_dimension(rondo_program *program, const char *symbol,
                                         int64_t extent) {
    if (program == NULL || symbol == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", program == NULL ? "program" : "symbol");
    }
    if (extent < 0) {
        return RONDO_FAIL(INVALID, "dimension \"%s\" cannot be %lld; it must be at least 0", symbol,
                          (long long)extent);
    }
    for (size_t i = 0; i < program->symbol_count; ++i) {
        if (strcmp(program->symbols[i].name, symbol) == 0) {
            program->symbols[i].extent = extent;
            return RONDO_STATUS_OK;
        }
    }
    return fail_unknown_symbol(program, symbol);
}

// ---- description

const char *rondo__value_format_shape(const rondo_program *program, const rondo__value *value,
                                      char *buffer, size_t bytes) {
    size_t used = (size_t)snprintf(buffer, bytes, "[");
    for (int32_t d = 0; d < value->rank && used < bytes; ++d) {
        const rondo__dimension *dim = &value->dims[d];
        int written;
        if (dim->number >= 0) {
            written = snprintf(buffer + used, bytes - used, "%s%lld", d > 0 ? ", " : "",
                               (long long)dim->number);
        } else if (dim->symbol >= 0 && program->symbols[dim->symbol].extent >= 0) {
            const rondo__symbol *symbol = &program->symbols[dim->symbol];
            written = snprintf(buffer + used, bytes - used, "%s%.40s=%lld", d > 0 ? ", " : "",
                               symbol->name, (long long)symbol->extent);
        } else {
            written = snprintf(buffer + used, bytes - used, "%s%.40s", d > 0 ? ", " : "",
                               dim->symbol >= 0 ? program->symbols[dim->symbol].name : "?");
        }
        used += written > 0 ? (size_t)written : 0;
    }
    if (used < bytes) {
        (void)snprintf(buffer + used, bytes - used, "]");
    }
    return buffer;
}

const char *rondo__node_describe(const rondo__node *node) {
    static _Thread_local char buffer[160];
    const char *op = node->op.def == NULL ? "(no op)" : node->op.def->name;
    const char *name = node->op.name == NULL ? "" : node->op.name;
    snprintf(buffer, sizeof(buffer), "%.48s node \"%.96s\"", op, name);
    return buffer;
}

void rondo__node_blame(const rondo__node *node) {
    if (rondo_error_get_last()->op[0] == '\0') {
        rondo__error_prefix("%s", rondo__node_describe(node));
        rondo__error_set_op(node->op.name);
    }
}
