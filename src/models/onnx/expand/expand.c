// onnx/expand/expand.c — see expand.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/expand/expand.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "rondo/tensor.h"

// ---- the rows ---------------------------------------------------------------------------------

static const rondo__expansion *const tables[] = {
#define TABLE_ADDRESS(family) rondo__expansions_##family,
    RONDO_EXPANSION_MAP(TABLE_ADDRESS)
#undef TABLE_ADDRESS
        NULL,
};

void rondo__expansion_visit(void (*visit)(void *user_data, const rondo__op_def *def),
                            void *user_data) {
    for (size_t t = 0; tables[t] != NULL; ++t) {
        for (const rondo__expansion *row = tables[t]; row->def.name != NULL; ++row) {
            visit(user_data, &row->def);
        }
    }
}

typedef struct search {
    const char *domain, *name;
    int32_t opset;
    const rondo__op_def *found;  // of this opset
    int32_t min, max;            // of all; 0 while none was found
} search;

static void look_at(void *user_data, const rondo__op_def *def) {
    search *s = user_data;
    if (strcmp(def->name, s->name) != 0 || strcmp(def->domain, s->domain) != 0) {
        return;
    }
    const bool is_first = s->max == 0;
    s->min = is_first || def->opset_min < s->min ? def->opset_min : s->min;
    s->max = is_first || def->opset_max > s->max ? def->opset_max : s->max;
    if (s->opset >= def->opset_min && s->opset <= def->opset_max) {
        s->found = def;
    }
}

const rondo__expansion *rondo__expansion_find(const char *domain, const char *name, int32_t opset) {
    search s = {.domain = domain, .name = name, .opset = opset};
    rondo__expansion_visit(look_at, &s);
    return (const rondo__expansion *)(const void *)s.found;  // its first member
}

bool rondo__expansion_get_versions(const char *domain, const char *name, int32_t *out_min,
                                   int32_t *out_max) {
    search s = {.domain = domain, .name = name};
    rondo__expansion_visit(look_at, &s);
    *out_min = s.min;
    *out_max = s.max;
    return s.max != 0;
}

// An output that no row has made would be a value without a maker.
static rondo_status check_outputs(const rondo__node_builder *builder) {
    const rondo__node *node = &builder->node;
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0 &&
            builder->scope->program->values[node->outputs[i]].producer < 0) {
            char *detail = rondo__strformat("output %zu", i);
            const rondo_status status =
                rondo__op_fail_unsupported(&node->op, detail != NULL ? detail : "an output");
            rondo__free(detail);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__expansion_run(const rondo__expansion *expansion, rondo__node_builder *builder) {
    rondo__expander e = {
        .builder = builder, .program = builder->scope->program, .opset = RONDO_OP_OPSET_MAX};
    const size_t first = e.program->node_count;
    expansion->expand(&e);
    for (size_t n = first; n < e.program->node_count && e.status == RONDO_STATUS_OK; ++n) {
        e.status = rondo__op_check(&e.program->nodes[n].op);  // attributes are the file's
    }
    return e.status == RONDO_STATUS_OK ? check_outputs(builder) : e.status;
}

// ---- for rows ---------------------------------------------------------------------------------

int32_t rondo__expand_in(const rondo__expander *e, size_t input) {
    const rondo__node *node = &e->builder->node;
    return input < node->input_count ? node->inputs[input] : RONDO__VALUE_NONE;
}

int32_t rondo__expand_out(const rondo__expander *e, size_t output) {
    const rondo__node *node = &e->builder->node;
    return output < node->output_count ? node->outputs[output] : RONDO__VALUE_NONE;
}

const rondo__op *rondo__expand_op(const rondo__expander *e) {
    return &e->builder->node.op;
}

int32_t rondo__expand_value(rondo__expander *e, const char *name) {
    int32_t value = RONDO__VALUE_NONE;
    if (rondo__expand_failed(e)) {
        return value;
    }
    char *full = rondo__strformat("%s/%s", e->builder->node.op.name, name);
    e->status =
        full != NULL ? rondo__program_add_value(e->program, full, &value) : RONDO_STATUS_NO_MEMORY;
    rondo__free(full);
    return value;
}

// The node that makes the first output has the name of the node as read; others have their op
// behind it.
static char *make_name(const rondo__expander *e, const char *op, const int32_t *outputs,
                       size_t output_count) {
    const char *name = e->builder->node.op.name;
    const int32_t first = rondo__expand_out(e, 0);
    const bool is_main = output_count > 0 && first >= 0 && outputs[0] == first;
    return is_main ? rondo__strdup(name) : rondo__strformat("%s/%s", name, op);
}

#define VENDOR "com.microsoft."

void rondo__expand_node_of(rondo__expander *e, const char *op_name, const int32_t *inputs,
                           size_t input_count, const int32_t *outputs, size_t output_count) {
    if (rondo__expand_failed(e)) {
        return;
    }
    // Trailing inputs that are absent are none.
    while (input_count > 0 && inputs[input_count - 1] == RONDO__VALUE_NONE) {
        --input_count;
    }
    const char *domain = strncmp(op_name, VENDOR, strlen(VENDOR)) == 0 ? "com.microsoft" : "";
    op_name += *domain != '\0' ? strlen(VENDOR) : 0;
    rondo__op op = {.opset = *domain != '\0' ? 1 : e->opset};
    op.def = rondo__op_lookup(domain, op_name, op.opset);
    if (op.def == NULL) {
        e->status = RONDO_FAIL(INTERNAL, "%s is not registered", op_name);
        return;
    }
    op.name = make_name(e, op_name, outputs, output_count);
    e->status = op.name != NULL ? rondo__program_add_node(e->program, &op, inputs, input_count,
                                                          input_count, outputs, output_count)
                                : RONDO_STATUS_NO_MEMORY;
    rondo__op_deinit(&op);
}

int32_t rondo__expand_node(rondo__expander *e, const char *op, int32_t result,
                           const int32_t *inputs, size_t input_count) {
    if (result == RONDO__VALUE_NONE) {
        result = rondo__expand_value(e, op);
    }
    rondo__expand_node_of(e, op, inputs, input_count, &result, 1);
    return result;
}

static rondo__op *get_latest(rondo__expander *e) {
    return &e->program->nodes[e->program->node_count - 1].op;
}

void rondo__expand_set_int(rondo__expander *e, const char *name, int64_t value) {
    if (!rondo__expand_failed(e)) {
        e->status = rondo__op_set_int(get_latest(e), name, value);
    }
}

void rondo__expand_set_float(rondo__expander *e, const char *name, float value) {
    if (!rondo__expand_failed(e)) {
        e->status = rondo__op_set_float(get_latest(e), name, value);
    }
}

void rondo__expand_set_text(rondo__expander *e, const char *name, const char *value) {
    if (!rondo__expand_failed(e)) {
        e->status = rondo__op_set_string(get_latest(e), name, value);
    }
}

void rondo__expand_set_ints(rondo__expander *e, const char *name, const int64_t *values,
                            size_t count) {
    if (!rondo__expand_failed(e)) {
        e->status = rondo__op_set_ints(get_latest(e), name, values, count);
    }
}

static void copy_one(rondo__expander *e, const rondo__attribute *attribute) {
    switch (attribute->kind) {
        case RONDO__ATTRIBUTE_INT:
            rondo__expand_set_int(e, attribute->name, attribute->int_value);
            break;
        case RONDO__ATTRIBUTE_FLOAT:
            rondo__expand_set_float(e, attribute->name, attribute->float_value);
            break;
        case RONDO__ATTRIBUTE_STRING:
            rondo__expand_set_text(e, attribute->name, attribute->string_value);
            break;
        case RONDO__ATTRIBUTE_INTS:
            rondo__expand_set_ints(e, attribute->name, attribute->ints, attribute->count);
            break;
        default:
            rondo__expand_refuse(e, "an attribute is of another kind");
            break;
    }
}

void rondo__expand_copy(rondo__expander *e, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; ++i) {
        const rondo__attribute *attribute = rondo__op_find(rondo__expand_op(e), names[i]);
        if (attribute != NULL && !rondo__expand_failed(e)) {
            copy_one(e, attribute);
        }
    }
}

static int32_t add_constant(rondo__expander *e, const rondo_tensor *tensor) {
    int32_t value = RONDO__VALUE_NONE;
    char *name = rondo__strformat("%s/constant", e->builder->node.op.name);
    e->status = name != NULL ? rondo__program_add_constant(e->program, name, tensor, &value)
                             : RONDO_STATUS_NO_MEMORY;
    rondo__free(name);
    return value;
}

// A constant with a copy of these elements.
static int32_t add_list(rondo__expander *e, rondo_dtype dtype, int32_t rank, const void *elements,
                        size_t count) {
    rondo_tensor tensor = {0};
    int32_t value = RONDO__VALUE_NONE;
    const rondo_shape shape = {.rank = rank, .extent = {rank == 1 ? (int64_t)count : 0}};
    if (rondo__expand_failed(e)) {
        return value;
    }
    e->status = rondo_tensor_init(dtype, &shape, &tensor);
    if (e->status == RONDO_STATUS_OK) {
        memcpy(tensor.data, elements, count * rondo_dtype_get_bytes(dtype));
        value = add_constant(e, &tensor);
    }
    rondo_tensor_deinit(&tensor);
    return value;
}

int32_t rondo__expand_ints(rondo__expander *e, const int64_t *values, size_t count) {
    return add_list(e, RONDO_DTYPE_I64, 1, values, count);
}

int32_t rondo__expand_floats(rondo__expander *e, const float *values, size_t count) {
    return add_list(e, RONDO_DTYPE_F32, 1, values, count);
}

int32_t rondo__expand_number(rondo__expander *e, float value, int32_t like) {
    const int32_t number = add_list(e, RONDO_DTYPE_F32, 0, &value, 1);
    if (like == RONDO__VALUE_NONE || rondo__expand_get_dtype(e, like) == RONDO_DTYPE_F32) {
        return number;
    }
    return EXPAND(e, "CastLike", RONDO__VALUE_NONE, number, like);
}

int32_t rondo__expand_get_rank(const rondo__expander *e, int32_t value) {
    return !rondo__expand_failed(e) && value >= 0 && e->program->values[value].has_shape
               ? e->program->values[value].rank
               : -1;
}

rondo_dtype rondo__expand_get_dtype(const rondo__expander *e, int32_t value) {
    return !rondo__expand_failed(e) && value >= 0 ? e->program->values[value].dtype
                                                  : RONDO_DTYPE_NONE;
}

void rondo__expand_refuse(rondo__expander *e, const char *detail) {
    if (!rondo__expand_failed(e)) {
        e->status = rondo__op_fail_unsupported(rondo__expand_op(e), detail);
    }
}

int32_t rondo__expand_add(rondo__expander *e, int32_t value, int32_t addend) {
    return addend == RONDO__VALUE_NONE ? value : EXPAND(e, "Add", RONDO__VALUE_NONE, value, addend);
}

int32_t rondo__expand_activation(rondo__expander *e, const char *activation, const float *params,
                                 size_t param_count, int32_t x, int32_t result) {
    static const char *const plain[] = {"Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus"};
    const float alpha = param_count > 0 ? params[0] : 0.0f;
    const float beta = param_count > 1 ? params[1] : 0.0f;
    if (activation == NULL || activation[0] == '\0') {
        return result == RONDO__VALUE_NONE ? x : EXPAND(e, "Identity", result, x);
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; ++i) {
        if (strcmp(activation, plain[i]) == 0) {
            return EXPAND(e, activation, result, x);
        }
    }
    if (strcmp(activation, "Clip") == 0) {
        if (param_count < 2) {
            rondo__expand_refuse(e, "activation Clip without its limits");
        }
        const int32_t low = rondo__expand_number(e, alpha, x);
        const int32_t high = rondo__expand_number(e, beta, x);
        return EXPAND(e, "Clip", result, x, low, high);
    }
    if (strcmp(activation, "LeakyRelu") != 0 && strcmp(activation, "HardSigmoid") != 0) {
        char *detail = rondo__strformat("activation %.60s", activation);
        rondo__expand_refuse(e, detail != NULL ? detail : "activation");
        rondo__free(detail);
        return result;
    }
    result = EXPAND(e, activation, result, x);
    if (param_count > 0) {
        rondo__expand_set_float(e, "alpha", alpha);
    }
    if (param_count > 1 && activation[0] == 'H') {
        rondo__expand_set_float(e, "beta", beta);
    }
    return result;
}

int32_t rondo__expand_channels_first(rondo__expander *e, int32_t x, int32_t result) {
    result = EXPAND(e, "Transpose", result, x);
    rondo__expand_set_ints(e, "perm", (const int64_t[]){0, 3, 1, 2}, 4);
    return result;
}

int32_t rondo__expand_channels_last(rondo__expander *e, int32_t x, int32_t result) {
    result = EXPAND(e, "Transpose", result, x);
    rondo__expand_set_ints(e, "perm", (const int64_t[]){0, 2, 3, 1}, 4);
    return result;
}
