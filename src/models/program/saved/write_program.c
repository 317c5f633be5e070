// program/saved/write_program.c — see saved_program.h; the order of all parts is that of
// read_program.c.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "program/saved/saved_program.h"
#include "tensor/elements.h"

typedef struct writer {
    rondo__text *out;
    rondo__data_blocks *blocks;
} writer;

static rondo_status put_tensor(writer *w, const rondo_tensor *tensor) {
    rondo__record_put(w->out, (uint64_t)tensor->dtype);
    if (tensor->dtype == RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;
    }
    rondo__record_put(w->out, (uint64_t)tensor->shape.rank);
    for (int32_t d = 0; d < tensor->shape.rank; ++d) {
        rondo__record_put(w->out, (uint64_t)tensor->shape.extent[d]);
    }
    if (rondo__dtype_is_plain(tensor->dtype)) {
        uint64_t offset = 0;
        RETURN_IF_ERROR(rondo__data_blocks_add(w->blocks, tensor->data,
                                               rondo_tensor_get_bytes(tensor), &offset));
        rondo__record_put(w->out, offset);
        return RONDO_STATUS_OK;
    }
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    for (int64_t i = 0; i < count; ++i) {
        if (tensor->dtype == RONDO_DTYPE_STRING) {
            const rondo_string *string = (const rondo_string *)tensor->data + i;
            rondo__record_put_bytes(w->out, string->data, string->size);
        } else {
            RETURN_IF_ERROR(put_tensor(w, (const rondo_tensor *)tensor->data + i));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status put_value(writer *w, const rondo__value *value) {
    rondo__record_put_text(w->out, value->name);
    rondo__record_put(w->out, (uint64_t)value->dtype);
    rondo__record_put(w->out, (uint64_t)value->item_dtype[0]);
    rondo__record_put(w->out, (uint64_t)value->item_dtype[1]);
    rondo__record_put(w->out, value->has_shape ? (uint64_t)value->rank + 1 : 0);
    for (int32_t d = 0; value->has_shape && d < value->rank; ++d) {
        rondo__record_put_signed(w->out, value->dims[d].number);
        rondo__record_put_signed(w->out, value->dims[d].symbol);
    }
    rondo__record_put_signed(w->out, value->origin);
    rondo__record_put_signed(w->out, value->most);
    RETURN_IF_ERROR(put_tensor(w, &value->constant));
    return put_tensor(w, &value->labels);
}

static void put_float(writer *w, float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    rondo__record_put(w->out, bits);
}

static void put_double(writer *w, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    rondo__record_put(w->out, bits);
}

static rondo_status put_attribute(writer *w, const rondo__attribute *attribute) {
    rondo__record_put_text(w->out, attribute->name);
    rondo__record_put(w->out, (uint64_t)attribute->kind);
    switch (attribute->kind) {
        case RONDO__ATTRIBUTE_INT:
            rondo__record_put_signed(w->out, attribute->int_value);
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_FLOAT:
            put_float(w, attribute->float_value);
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_STRING:
            rondo__record_put_text(w->out, attribute->string_value);
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_TENSOR:
            return put_tensor(w, &attribute->tensor_value);
        case RONDO__ATTRIBUTE_BODY:
            return rondo__program_write(attribute->body, w->blocks, w->out);  // bounded depth
        default:
            break;
    }
    rondo__record_put(w->out, attribute->count);
    for (size_t i = 0; i < attribute->count; ++i) {
        if (attribute->kind == RONDO__ATTRIBUTE_INTS) {
            rondo__record_put_signed(w->out, attribute->ints[i]);
        } else if (attribute->kind == RONDO__ATTRIBUTE_FLOATS) {
            put_float(w, attribute->floats[i]);
        } else {
            rondo__record_put_text(w->out, attribute->strings[i]);
        }
    }
    return RONDO_STATUS_OK;
}

static void put_values(writer *w, const int32_t *values, size_t count) {
    rondo__record_put(w->out, count);
    for (size_t i = 0; i < count; ++i) {
        rondo__record_put_signed(w->out, values[i]);
    }
}

static rondo_status put_node(writer *w, const rondo__node *node) {
    rondo__record_put_text(w->out, node->op.def->domain);
    rondo__record_put_text(w->out, node->op.def->name);
    rondo__record_put_text(w->out, node->op.name);
    rondo__record_put(w->out, (uint64_t)node->op.opset);
    rondo__record_put(w->out, node->op.is_training ? 1 : 0);
    rondo__record_put(w->out, node->precision);
    rondo__record_put(w->out, node->place.place);
    rondo__record_put(w->out, node->place.by);
    rondo__record_put(w->out, node->op.attribute_count);
    for (size_t i = 0; i < node->op.attribute_count; ++i) {
        RETURN_IF_ERROR(put_attribute(w, &node->op.attributes[i]));
    }
    put_values(w, node->inputs, node->input_count);
    rondo__record_put(w->out, node->explicit_count);
    put_values(w, node->outputs, node->output_count);
    return RONDO_STATUS_OK;
}

static rondo_status put_variable(writer *w, const rondo__variable *variable) {
    const rondo_start *start = &variable->start;
    rondo__record_put_signed(w->out, variable->value);
    rondo__record_put_signed(w->out, variable->update);
    rondo__record_put(w->out, (uint64_t)start->kind);
    put_double(w, start->a);
    put_double(w, start->b);
    rondo__record_put(w->out, start->seed);
    rondo__record_put(w->out, start->fan_in);
    rondo__record_put(w->out, start->fan_out);
    return put_tensor(w, &variable->first);
}

static rondo_status put_ports(writer *w, const rondo_program *program) {
    put_values(w, program->inputs, program->input_count);
    rondo__record_put(w->out, program->declared_count);
    put_values(w, program->outputs, program->output_count);
    rondo__record_put(w->out, program->optional_count);
    for (size_t i = 0; i < program->optional_count; ++i) {
        rondo__record_put_signed(w->out, program->optionals[i].value);
        rondo__value declared = program->optionals[i].declared;
        declared.constant = declared.labels = (rondo_tensor){0};
        RETURN_IF_ERROR(put_value(w, &declared));
    }
    rondo__record_put(w->out, program->variable_count);
    for (size_t i = 0; i < program->variable_count; ++i) {
        RETURN_IF_ERROR(put_variable(w, &program->variables[i]));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_write(const rondo_program *program, rondo__data_blocks *blocks,
                                  rondo__text *out) {
    writer w = {out, blocks};
    rondo__record_put_text(out, program->name);
    rondo__record_put(out, program->place_revision);
    rondo__record_put(out, program->file_bytes);
    rondo__record_put_bytes(out, program->metadata, program->metadata_bytes);
    rondo__record_put(out, program->symbol_count);
    for (size_t i = 0; i < program->symbol_count; ++i) {
        rondo__record_put_text(out, program->symbols[i].name);
        rondo__record_put_signed(out, program->symbols[i].extent);
    }
    rondo__record_put(out, program->value_count);
    for (size_t i = 0; i < program->value_count; ++i) {
        RETURN_IF_ERROR(put_value(&w, &program->values[i]));
    }
    rondo__record_put(out, program->node_count);
    for (size_t i = 0; i < program->node_count; ++i) {
        RETURN_IF_ERROR(put_node(&w, &program->nodes[i]));
    }
    RETURN_IF_ERROR(put_ports(&w, program));
    return rondo__text_get_status(out);
}

bool rondo__program_has_user_ops(const rondo_program *program) {
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__op *op = &program->nodes[n].op;
        bool has = (op->def->flags & RONDO__OP_USER) != 0;
        for (size_t a = 0; a < op->attribute_count && !has; ++a) {
            const rondo_program *body = op->attributes[a].body;
            has = body != NULL && rondo__program_has_user_ops(body);  // bounded depth: program.h
        }
        if (has) {
            return true;
        }
    }
    return false;
}
