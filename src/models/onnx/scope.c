// onnx/scope.c — see scope.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/scope.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

// ---- odd values

rondo_status rondo__oddities_set(rondo__oddities *oddities, int32_t value, const char *reason) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(oddities->reasons, oddities->capacity, (size_t)value + 1));
    oddities->reasons[value] = reason;
    return RONDO_STATUS_OK;
}

const char *rondo__oddities_get(const rondo__oddities *oddities, int32_t value) {
    return value >= 0 && (size_t)value < oddities->capacity ? oddities->reasons[value] : NULL;
}

// ---- names

rondo_status rondo__scope_declare(rondo__scope *scope, const char *name, int32_t *out_value) {
    *out_value = RONDO__VALUE_NONE;
    if (scope->function == NULL) {
        if (rondo__program_find_value(scope->program, name) != RONDO__VALUE_NONE) {
            return RONDO_FAIL(BAD_DATA, "value \"%.80s\" is made twice", name);
        }
        return rondo__program_add_value(scope->program, name, out_value);
    }
    // Inside a function: its outputs are mapped to the caller's values already.
    enum { UNKNOWN = -2 };
    int32_t number = rondo__namemap_find(&scope->names, name, UNKNOWN);
    if (number == UNKNOWN) {
        bool is_new = false;
        RETURN_IF_ERROR(rondo__program_add_value(scope->program, name, &number));
        RETURN_IF_ERROR(rondo__namemap_add(&scope->names, name, number, &is_new));
    }
    *out_value = number;
    return RONDO_STATUS_OK;
}

// Brings a value of the scope around into a body.
static rondo_status capture(rondo__scope *scope, const char *name, int32_t outer,
                            int32_t *out_value) {
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(scope->captured, scope->captured_capacity, scope->captured_count + 1));
    RETURN_IF_ERROR(rondo__program_add_from_around(scope->program, name, scope->parent->program,
                                                   outer, out_value));
    if (scope->program->values[*out_value].constant.dtype != RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;
    }
    const char *reason = rondo__oddities_get(scope->parent->oddities, outer);
    if (reason != NULL) {
        RETURN_IF_ERROR(rondo__oddities_set(scope->oddities, *out_value, reason));
    }
    RETURN_IF_ERROR(rondo__program_add_captured(scope->program, *out_value));
    scope->captured[scope->captured_count++] = outer;
    return RONDO_STATUS_OK;
}

// Finds a name; RONDO__VALUE_NONE when no scope knows it. Recurses once for each body around.
static rondo_status find_or_capture(rondo__scope *scope, const char *name, int32_t *out_value) {
    if (scope->function != NULL) {
        *out_value = rondo__namemap_find(&scope->names, name, RONDO__VALUE_NONE);
        return RONDO_STATUS_OK;
    }
    *out_value = rondo__program_find_value(scope->program, name);
    if (*out_value != RONDO__VALUE_NONE || scope->parent == NULL) {
        return RONDO_STATUS_OK;
    }
    int32_t outer = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(find_or_capture(scope->parent, name, &outer));
    if (outer == RONDO__VALUE_NONE) {
        return RONDO_STATUS_OK;
    }
    return capture(scope, name, outer, out_value);
}

rondo_status rondo__scope_resolve(rondo__scope *scope, const char *name, int32_t *out_value) {
    RETURN_IF_ERROR(find_or_capture(scope, name, out_value));
    if (*out_value == RONDO__VALUE_NONE && scope->function != NULL) {
        // An argument that the caller left out, perhaps.
        enum { UNKNOWN = -2 };
        if (rondo__namemap_find(&scope->names, name, UNKNOWN) == RONDO__VALUE_NONE) {
            return RONDO_STATUS_OK;
        }
    }
    if (*out_value == RONDO__VALUE_NONE) {
        return RONDO_FAIL(BAD_DATA, "value \"%.80s\" is used, but nothing makes it", name);
    }
    return RONDO_STATUS_OK;
}

// ---- versions and references

const char *rondo__onnx_domain(const char *domain) {
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int32_t rondo__scope_get_opset(const rondo__scope *scope, const char *domain) {
    for (size_t i = 0; i < scope->opset_count; ++i) {
        const Onnx__OperatorSetIdProto *opset = scope->opsets[i];
        if (strcmp(rondo__onnx_domain(opset->domain), domain) == 0) {
            return opset->version < 1           ? 1
                   : opset->version > INT16_MAX ? INT16_MAX
                                                : (int32_t)opset->version;
        }
    }
    return 1;
}

static const Onnx__AttributeProto *find_attribute(Onnx__AttributeProto *const *attributes,
                                                  size_t count, const char *name) {
    for (size_t i = 0; i < count; ++i) {
        if (attributes[i]->name != NULL && strcmp(attributes[i]->name, name) == 0) {
            return attributes[i];
        }
    }
    return NULL;
}

const Onnx__AttributeProto *rondo__scope_get_attribute(const rondo__scope *scope,
                                                       const Onnx__AttributeProto *attribute) {
    const Onnx__AttributeProto *fallback = NULL;
    while (attribute->ref_attr_name != NULL && attribute->ref_attr_name[0] != '\0') {
        while (scope != NULL && scope->function == NULL) {
            scope = scope->parent;
        }
        if (scope == NULL) {
            return NULL;
        }
        const char *name = attribute->ref_attr_name;
        const Onnx__FunctionProto *function = scope->function;
        const Onnx__AttributeProto *value =
            find_attribute(function->attribute_proto, function->n_attribute_proto, name);
        fallback = value != NULL ? value : fallback;  // of the outermost call that leaves it out
        attribute = find_attribute(scope->call->attribute, scope->call->n_attribute, name);
        if (attribute == NULL) {
            return fallback;
        }
        scope = scope->parent;
    }
    return attribute;
}
