// program/describe_program.c — a program as text or JSON, as it stands. See rondo/builder.h.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/text.h"
#include "program/program.h"
#include "rondo/builder.h"
#include "tensor/elements.h"

enum { LIST_SHOWN_MAX = 16 };  // elements of an attribute that people see; JSON has all

typedef struct printer {
    rondo__text text;
    bool is_json;
    int depth;  // of bodies
} printer;

static void append_program(printer *p, const rondo_program *program);

// A name: escaped for eyes, or quoted for JSON.
static void append_name(printer *p, const char *name) {
    if (p->is_json) {
        rondo__text_append_json(&p->text, name);
    } else {
        rondo__text_append_escaped(&p->text, name);
    }
}

static void start_line(printer *p) {
    rondo__text_append(&p->text, "\n%*s", p->depth * 4, "");
}

// JSON has no word for what is no number.
static void append_float(printer *p, float value) {
    const char *quote = p->is_json && !isfinite(value) ? "\"" : "";
    rondo__text_append(&p->text, "%s%.9g%s", quote, (double)value, quote);
}

// ---- values

static void append_extent(printer *p, const rondo_program *program, const rondo__dimension *dim) {
    if (dim->number >= 0) {
        rondo__text_append(&p->text, "%" PRId64, dim->number);
    } else if (dim->symbol >= 0 && (size_t)dim->symbol < program->symbol_count) {
        append_name(p, program->symbols[dim->symbol].name);
    } else {
        rondo__text_append(&p->text, p->is_json ? "null" : "?");
    }
}

// "f32 [batch, 3]"; in JSON the two members.
static void append_type(printer *p, const rondo_program *program, const rondo__value *value) {
    const char *dtype = rondo_dtype_get_name(value->dtype);
    if (p->is_json) {
        const char *quote = value->dtype != RONDO_DTYPE_NONE ? "\"" : "";
        rondo__text_append(&p->text, "\"dtype\": %s%s%s, \"shape\": ", quote,
                           value->dtype != RONDO_DTYPE_NONE ? dtype : "null", quote);
    } else if (value->dtype != RONDO_DTYPE_NONE) {
        rondo__text_append(&p->text, "%s ", dtype);
    }
    if (!value->has_shape) {
        rondo__text_append(&p->text, p->is_json ? "null" : "[...]");
        return;
    }
    rondo__text_append(&p->text, "[");
    for (int32_t d = 0; d < value->rank; ++d) {
        rondo__text_append(&p->text, "%s", d > 0 ? ", " : "");
        append_extent(p, program, &value->dims[d]);
    }
    rondo__text_append(&p->text, "]");
}

static void append_value(printer *p, const rondo_program *program, const rondo__value *value,
                         size_t position) {
    if (p->is_json) {
        rondo__text_append(&p->text, "%s{\"name\": ", position > 0 ? ", " : "");
        append_name(p, value->name);
        rondo__text_append(&p->text, ", ");
        append_type(p, program, value);
        rondo__text_append(&p->text, "}");
        return;
    }
    start_line(p);
    rondo__text_append(&p->text, "    ");
    append_name(p, value->name);
    rondo__text_append(&p->text, "  ");
    append_type(p, program, value);
}

static void open_list(printer *p, const char *title) {
    if (p->is_json) {
        rondo__text_append(&p->text, ", \"%s\": [", title);
    } else {
        start_line(p);
        rondo__text_append(&p->text, "  %s", title);
    }
}

static void close_list(printer *p) {
    rondo__text_append(&p->text, "%s", p->is_json ? "]" : "");
}

static void append_ports(printer *p, const rondo_program *program, const char *title,
                         const int32_t *values, size_t count) {
    open_list(p, title);
    for (size_t i = 0; i < count; ++i) {
        append_value(p, program, &program->values[values[i]], i);
    }
    close_list(p);
}

static void append_parameters(printer *p, const rondo_program *program) {
    size_t position = 0;
    open_list(p, "parameters");
    for (size_t i = 0; i < program->value_count; ++i) {
        const rondo__value *value = &program->values[i];
        if (value->constant.dtype != RONDO_DTYPE_NONE && value->origin < 0) {
            append_value(p, program, value, position++);
        }
    }
    close_list(p);
}

// ---- nodes

static void append_element(printer *p, const rondo__attribute *a, size_t index) {
    switch (a->kind) {
        case RONDO__ATTRIBUTE_INTS:
            rondo__text_append(&p->text, "%" PRId64, a->ints[index]);
            break;
        case RONDO__ATTRIBUTE_FLOATS:
            append_float(p, a->floats[index]);
            break;
        default:
            append_name(p, a->strings[index]);
    }
}

static void append_list(printer *p, const rondo__attribute *a) {
    rondo__text_append(&p->text, "[");
    for (size_t i = 0; i < a->count; ++i) {
        if (!p->is_json && i == LIST_SHOWN_MAX) {
            rondo__text_append(&p->text, ", ... %zu in all", a->count);
            break;
        }
        rondo__text_append(&p->text, "%s", i > 0 ? ", " : "");
        append_element(p, a, i);
    }
    rondo__text_append(&p->text, "]");
}

static void append_attribute(printer *p, const rondo__attribute *a) {
    char shape[160];
    switch (a->kind) {
        case RONDO__ATTRIBUTE_INT:
            rondo__text_append(&p->text, "%" PRId64, a->int_value);
            break;
        case RONDO__ATTRIBUTE_FLOAT:
            append_float(p, a->float_value);
            break;
        case RONDO__ATTRIBUTE_STRING:
            append_name(p, a->string_value);
            break;
        case RONDO__ATTRIBUTE_TENSOR:
            (void)rondo_shape_format(&a->tensor_value.shape, shape, sizeof shape);
            rondo__text_append(&p->text,
                               p->is_json ? "{\"dtype\": \"%s\", \"shape\": %s}" : "%s %s",
                               rondo_dtype_get_name(a->tensor_value.dtype), shape);
            break;
        case RONDO__ATTRIBUTE_BODY:
            p->depth += 1;  // bounded depth: program.h
            append_program(p, a->body);
            p->depth -= 1;
            break;
        default:
            append_list(p, a);
    }
}

static void append_names(printer *p, const rondo_program *program, const int32_t *values,
                         size_t count) {
    for (size_t i = 0; i < count; ++i) {
        rondo__text_append(&p->text, "%s", i > 0 ? ", " : "");
        if (values[i] >= 0) {
            append_name(p, program->values[values[i]].name);
        } else {
            rondo__text_append(&p->text, p->is_json ? "null" : "-");
        }
    }
}

static void append_json_node(printer *p, const rondo_program *program, const rondo__node *node) {
    rondo__text_append(&p->text, "{\"op\": ");
    append_name(p, node->op.def->name);
    rondo__text_append(&p->text, ", \"domain\": ");
    append_name(p, node->op.def->domain);
    rondo__text_append(&p->text, ", \"version\": %d, \"name\": ", (int)node->op.opset);
    append_name(p, node->op.name);
    rondo__text_append(&p->text, ", \"inputs\": [");
    append_names(p, program, node->inputs, node->explicit_count);
    rondo__text_append(&p->text, "], \"outputs\": [");
    append_names(p, program, node->outputs, node->output_count);
    rondo__text_append(&p->text, "], \"attributes\": {");
    for (size_t i = 0; i < node->op.attribute_count; ++i) {
        rondo__text_append(&p->text, "%s", i > 0 ? ", " : "");
        append_name(p, node->op.attributes[i].name);
        rondo__text_append(&p->text, ": ");
        append_attribute(p, &node->op.attributes[i]);
    }
    rondo__text_append(&p->text, "}}");
}

// "y = Softmax(x) axis=1"
static void append_plain_node(printer *p, const rondo_program *program, const rondo__node *node) {
    start_line(p);
    rondo__text_append(&p->text, "    ");
    append_names(p, program, node->outputs, node->output_count);
    rondo__text_append(&p->text, " = %s%s%s(", node->op.def->domain,
                       node->op.def->domain[0] != '\0' ? "." : "", node->op.def->name);
    append_names(p, program, node->inputs, node->explicit_count);
    rondo__text_append(&p->text, ")");
    for (size_t i = 0; i < node->op.attribute_count; ++i) {
        rondo__text_append(&p->text, " ");
        append_name(p, node->op.attributes[i].name);
        rondo__text_append(&p->text, "=");
        append_attribute(p, &node->op.attributes[i]);
    }
}

// ---- the whole

static void append_program(printer *p, const rondo_program *program) {
    if (p->is_json) {
        rondo__text_append(&p->text, "{\"name\": ");
    } else if (p->depth > 0) {
        start_line(p);
        rondo__text_append(&p->text, "body ");
    } else {
        rondo__text_append(&p->text, "program ");
    }
    append_name(p, program->name);
    append_ports(p, program, "inputs", program->inputs, program->declared_count);
    append_parameters(p, program);
    open_list(p, "nodes");
    for (size_t i = 0; i < program->node_count; ++i) {
        if (p->is_json) {
            rondo__text_append(&p->text, "%s", i > 0 ? ",\n" : "");
            append_json_node(p, program, &program->nodes[i]);
        } else {
            append_plain_node(p, program, &program->nodes[i]);
        }
    }
    close_list(p);
    append_ports(p, program, "outputs", program->outputs, program->output_count);
    if (p->is_json) {
        rondo__text_append(&p->text, "}");
    }
}

rondo_status rondo_program_describe(const rondo_program *program, rondo_text_format format,
                                    rondo_write_function write, void *user_data) {
    if (program == NULL || write == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", program == NULL ? "program" : "write");
    }
    if (format != RONDO_TEXT_PLAIN && format != RONDO_TEXT_JSON) {
        return RONDO_FAIL(INVALID, "format %d; a program is written as PLAIN or JSON", (int)format);
    }
    printer p = {.is_json = format == RONDO_TEXT_JSON};
    append_program(&p, program);
    rondo__text_append(&p.text, "\n");
    const rondo_status status = rondo__text_get_status(&p.text);
    if (status == RONDO_STATUS_OK) {
        (void)write(user_data, p.text.bytes, p.text.length);
    }
    rondo__text_deinit(&p.text);
    return status;
}
