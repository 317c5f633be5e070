// onnx/gradient_nodes.c — see gradient_nodes.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/gradient_nodes.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/gradient/gradient.h"

bool rondo__node_is_gradient(const Onnx__NodeProto *proto) {
    return proto->op_type != NULL && strcmp(proto->op_type, "Gradient") == 0 &&
           strcmp(rondo__onnx_domain(proto->domain), "ai.onnx.preview.training") == 0;
}

static const Onnx__AttributeProto *find_attribute(const rondo__scope *scope,
                                                  const Onnx__NodeProto *proto, const char *name) {
    for (size_t i = 0; i < proto->n_attribute; ++i) {
        if (proto->attribute[i]->name != NULL && strcmp(proto->attribute[i]->name, name) == 0) {
            return rondo__scope_get_attribute(scope, proto->attribute[i]);
        }
    }
    return NULL;
}

static rondo_status resolve(rondo__scope *scope, const ProtobufCBinaryData *name,
                            int32_t *out_value) {
    char *text = rondo__strndup(name->len == 0 ? "" : (const char *)name->data, name->len);
    if (text == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = rondo__scope_resolve(scope, text, out_value);
    rondo__free(text);
    return status;
}

// What the node names, as values: xs and behind them zs, the points, and y.
typedef struct names {
    size_t x_count, count;
    int32_t *values;
    int32_t *points;
    int32_t y;
} names;

static rondo_status read_names(rondo__scope *scope, const Onnx__NodeProto *proto,
                               names *out_names) {
    const Onnx__AttributeProto *xs = find_attribute(scope, proto, "xs");
    const Onnx__AttributeProto *zs = find_attribute(scope, proto, "zs");
    const Onnx__AttributeProto *y = find_attribute(scope, proto, "y");
    if (xs == NULL || xs->n_strings == 0 || y == NULL) {
        return RONDO_FAIL(BAD_DATA, "attribute %s is missing", y == NULL ? "y" : "xs");
    }
    names n = {.x_count = xs->n_strings, .count = xs->n_strings + (zs != NULL ? zs->n_strings : 0)};
    if (proto->n_input != n.count || proto->n_output > n.x_count || proto->n_output == 0) {
        return RONDO_FAIL(BAD_DATA, "has %zu inputs and %zu outputs for %zu names, %zu of them xs",
                          proto->n_input, proto->n_output, n.count, n.x_count);
    }
    n.values = rondo__calloc(2 * n.count + 1, sizeof *n.values);
    *out_names = n;
    if (n.values == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    out_names->points = n.values + n.count;
    for (size_t i = 0; i < n.count; ++i) {
        const ProtobufCBinaryData *name =
            i < n.x_count ? &xs->strings[i] : &zs->strings[i - n.x_count];
        RETURN_IF_ERROR(resolve(scope, name, &out_names->values[i]));
        RETURN_IF_ERROR(rondo__scope_resolve(scope, proto->input[i], &out_names->points[i]));
    }
    RETURN_IF_ERROR(resolve(scope, &y->s, &out_names->y));
    const rondo__value *made = &scope->program->values[out_names->y];
    const bool is_there = made->producer >= 0 || made->constant.dtype != RONDO_DTYPE_NONE;
    for (size_t i = 0; i < n.count && !is_there; ++i) {
        if (out_names->values[i] == out_names->y) {
            return RONDO_STATUS_OK;
        }
    }
    return is_there ? RONDO_STATUS_OK
                    : RONDO_FAIL(BAD_DATA, "y \"%.64s\" is not made before the node", made->name);
}

// Copies node `n` over what stands for its inputs, if that is something else.
static rondo_status copy_node(rondo_program *program, size_t n, int32_t *map) {
    const size_t inputs = program->nodes[n].input_count;
    const size_t outputs = program->nodes[n].output_count;
    int32_t *lists = rondo__calloc(inputs + outputs + 1, sizeof *lists);
    if (lists == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    bool is_other = false;
    for (size_t i = 0; i < inputs; ++i) {
        const int32_t input = program->nodes[n].inputs[i];
        lists[i] = input >= 0 ? map[input] : input;
        is_other = is_other || lists[i] != input;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < outputs && is_other && status == RONDO_STATUS_OK; ++i) {
        const int32_t output = program->nodes[n].outputs[i];
        lists[inputs + i] = RONDO__VALUE_NONE;
        if (output >= 0) {
            status =
                rondo__program_add_value(program, program->values[output].name, &lists[inputs + i]);
        }
        if (output >= 0 && status == RONDO_STATUS_OK) {
            program->values[lists[inputs + i]].dtype = program->values[output].dtype;
            map[output] = lists[inputs + i];
        }
    }
    if (status == RONDO_STATUS_OK && is_other) {
        const rondo__node node = program->nodes[n];  // the array may move
        status = rondo__program_add_copy(program, &node, lists, lists + inputs);
    }
    rondo__free(lists);
    return status;
}

// Computes y at other points: *in_out_names then has these as its xs.
static rondo_status move_points(rondo_program *program, names *n) {
    bool is_other = false;
    const size_t values = program->value_count;
    const size_t nodes = program->node_count;
    for (size_t i = 0; i < n->count; ++i) {
        is_other = is_other || n->points[i] != n->values[i];
    }
    if (!is_other) {
        return RONDO_STATUS_OK;
    }
    int32_t *map = rondo__calloc(values + 1, sizeof *map);
    if (map == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t v = 0; v < values; ++v) {
        map[v] = (int32_t)v;
    }
    for (size_t i = 0; i < n->count; ++i) {
        map[n->values[i]] = n->points[i];
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t k = 0; k < nodes && status == RONDO_STATUS_OK; ++k) {
        // What makes an x or z is not on the way from it.
        bool is_start = false;
        for (size_t i = 0; i < n->count; ++i) {
            is_start = is_start || program->values[n->values[i]].producer == (int32_t)k;
        }
        status = is_start ? status : copy_node(program, k, map);
    }
    n->y = map[n->y];
    memcpy(n->values, n->points, n->count * sizeof *n->values);
    rondo__free(map);
    return status;
}

static rondo_status append(rondo__scope *scope, const Onnx__NodeProto *proto, const names *n) {
    int32_t *made = rondo__calloc(n->x_count + 1, sizeof *made);
    if (made == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo__gradient_request request = {
        .y = n->y, .seed = RONDO__VALUE_NONE, .xs = n->values, .x_count = n->x_count};
    rondo_status status = rondo__program_add_gradients(scope->program, &request, made);
    for (size_t i = 0; i < proto->n_output && status == RONDO_STATUS_OK; ++i) {
        int32_t output = RONDO__VALUE_NONE;
        if (proto->output[i] == NULL || proto->output[i][0] == '\0') {
            continue;
        }
        status = rondo__scope_resolve(scope, proto->output[i], &output);
        if (status == RONDO_STATUS_OK) {
            status = rondo__program_add_simple(scope->program, "", "Identity", NULL, &made[i], 1,
                                               &output, 1);
        }
    }
    rondo__free(made);
    return status;
}

rondo_status rondo__import_gradient(rondo__scope *scope, const Onnx__NodeProto *proto) {
    names n = {0};
    rondo_status status = read_names(scope, proto, &n);
    if (status == RONDO_STATUS_OK) {
        status = move_points(scope->program, &n);
    }
    if (status == RONDO_STATUS_OK) {
        status = append(scope, proto, &n);
    }
    rondo__free(n.values);
    return status;
}
