// op/attribute.c — an op's attributes: look-up, building, copying, freeing.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"

const rondo__attribute *rondo__op_find(const rondo__op *op, const char *name) {
    for (size_t i = 0; i < op->attribute_count; ++i) {
        // Ops ask in each run, and most names differ in their first letter.
        if (op->attributes[i].name[0] == name[0] && strcmp(op->attributes[i].name, name) == 0) {
            return &op->attributes[i];
        }
    }
    return NULL;
}

static const rondo__attribute *find_kind(const rondo__op *op, const char *name,
                                         rondo__attribute_kind kind) {
    const rondo__attribute *attribute = rondo__op_find(op, name);
    return attribute != NULL && attribute->kind == kind ? attribute : NULL;
}

int64_t rondo__op_get_int(const rondo__op *op, const char *name, int64_t fallback) {
    const rondo__attribute *attribute = find_kind(op, name, RONDO__ATTRIBUTE_INT);
    return attribute != NULL ? attribute->int_value : fallback;
}

float rondo__op_get_float(const rondo__op *op, const char *name, float fallback) {
    const rondo__attribute *attribute = find_kind(op, name, RONDO__ATTRIBUTE_FLOAT);
    return attribute != NULL ? attribute->float_value : fallback;
}

const char *rondo__op_get_string(const rondo__op *op, const char *name, const char *fallback) {
    const rondo__attribute *attribute = find_kind(op, name, RONDO__ATTRIBUTE_STRING);
    return attribute != NULL ? attribute->string_value : fallback;
}

const int64_t *rondo__op_get_ints(const rondo__op *op, const char *name, size_t *out_count) {
    const rondo__attribute *attribute = find_kind(op, name, RONDO__ATTRIBUTE_INTS);
    *out_count = attribute != NULL ? attribute->count : 0;
    return attribute != NULL ? attribute->ints : NULL;
}

const float *rondo__op_get_floats(const rondo__op *op, const char *name, size_t *out_count) {
    const rondo__attribute *attribute = find_kind(op, name, RONDO__ATTRIBUTE_FLOATS);
    *out_count = attribute != NULL ? attribute->count : 0;
    return attribute != NULL ? attribute->floats : NULL;
}

bool rondo__op_trains(const rondo__op *op) {
    // Before version 14 the number of outputs decides.
    return op->opset >= 14 && rondo__op_get_int(op, "training_mode", op->is_training ? 1 : 0) != 0;
}

void rondo__attribute_deinit(rondo__attribute *attribute) {
    if (attribute == NULL) {
        return;
    }
    rondo__free(attribute->name);
    rondo__free(attribute->string_value);
    rondo_tensor_deinit(&attribute->tensor_value);
    rondo__free(attribute->ints);
    rondo__free(attribute->floats);
    for (size_t i = 0; attribute->strings != NULL && i < attribute->count; ++i) {
        rondo__free(attribute->strings[i]);
    }
    rondo__free(attribute->strings);
    *attribute = (rondo__attribute){0};
}

rondo_status rondo__op_take_attribute(rondo__op *op, rondo__attribute *attribute) {
    for (size_t i = 0; i < op->attribute_count; ++i) {
        if (strcmp(op->attributes[i].name, attribute->name) == 0) {
            rondo__attribute_deinit(&op->attributes[i]);
            op->attributes[i] = *attribute;
            *attribute = (rondo__attribute){0};
            return RONDO_STATUS_OK;
        }
    }
    rondo__attribute *grown =
        rondo__realloc(op->attributes, (op->attribute_count + 1) * sizeof(rondo__attribute));
    if (grown == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    op->attributes = grown;
    op->attributes[op->attribute_count++] = *attribute;
    *attribute = (rondo__attribute){0};
    return RONDO_STATUS_OK;
}

// Names `attribute`, hands it to `op`, and frees what was not taken.
static rondo_status take_named(rondo__op *op, const char *name, rondo__attribute *attribute) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    attribute->name = rondo__strdup(name);
    if (attribute->name != NULL) {
        status = rondo__op_take_attribute(op, attribute);
    }
    rondo__attribute_deinit(attribute);
    return status;
}

rondo_status rondo__op_set_int(rondo__op *op, const char *name, int64_t value) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_INT, .int_value = value};
    return take_named(op, name, &attribute);
}

rondo_status rondo__op_set_float(rondo__op *op, const char *name, float value) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_FLOAT, .float_value = value};
    return take_named(op, name, &attribute);
}

rondo_status rondo__op_set_string(rondo__op *op, const char *name, const char *value) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_STRING};
    attribute.string_value = rondo__strdup(value);
    if (attribute.string_value == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    return take_named(op, name, &attribute);
}

static void *copy_array(const void *source, size_t count, size_t element_bytes) {
    void *copy = rondo__calloc(count, element_bytes);
    if (copy != NULL && count > 0) {
        memcpy(copy, source, count * element_bytes);
    }
    return copy;
}

rondo_status rondo__op_set_ints(rondo__op *op, const char *name, const int64_t *values,
                                size_t count) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_INTS, .count = count};
    attribute.ints = copy_array(values, count, sizeof(int64_t));
    if (attribute.ints == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    return take_named(op, name, &attribute);
}

rondo_status rondo__op_set_floats(rondo__op *op, const char *name, const float *values,
                                  size_t count) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_FLOATS, .count = count};
    attribute.floats = copy_array(values, count, sizeof(float));
    if (attribute.floats == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    return take_named(op, name, &attribute);
}

rondo_status rondo__op_set_strings(rondo__op *op, const char *name, const char *const *values,
                                   size_t count) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_STRINGS, .count = count};
    attribute.strings = rondo__calloc(count, sizeof(char *));
    rondo_status status = attribute.strings != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        attribute.strings[i] = rondo__strdup(values[i]);
        status = attribute.strings[i] != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    if (status != RONDO_STATUS_OK) {
        rondo__attribute_deinit(&attribute);
        return status;
    }
    return take_named(op, name, &attribute);
}

rondo_status rondo__op_set_tensor(rondo__op *op, const char *name, const rondo_tensor *value) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_TENSOR};
    rondo_tensor_share(value, &attribute.tensor_value);
    return take_named(op, name, &attribute);
}

static rondo_status copy_strings(const rondo__attribute *source, rondo__attribute *copy) {
    copy->strings = rondo__calloc(source->count, sizeof(char *));
    if (copy->strings == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < source->count; ++i) {
        copy->strings[i] = rondo__strdup(source->strings[i]);
        if (copy->strings[i] == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    return RONDO_STATUS_OK;
}

// On failure *copy holds what was made so far, for rondo__attribute_deinit.
static rondo_status copy_attribute(const rondo__attribute *source, rondo__attribute *copy) {
    *copy = (rondo__attribute){
        .kind = source->kind,
        .int_value = source->int_value,
        .float_value = source->float_value,
        .count = source->count,
    };
    copy->name = rondo__strdup(source->name);
    if (copy->name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (source->string_value != NULL) {
        copy->string_value = rondo__strdup(source->string_value);
        if (copy->string_value == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    if (source->tensor_value.dtype != RONDO_DTYPE_NONE) {
        rondo_tensor_share(&source->tensor_value, &copy->tensor_value);
    }
    if (source->ints != NULL) {
        copy->ints = copy_array(source->ints, source->count, sizeof(int64_t));
        if (copy->ints == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    if (source->floats != NULL) {
        copy->floats = copy_array(source->floats, source->count, sizeof(float));
        if (copy->floats == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    if (source->strings != NULL) {
        RETURN_IF_ERROR(copy_strings(source, copy));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__op_copy(const rondo__op *source, rondo__op *out_copy) {
    *out_copy = (rondo__op){0};
    rondo__op copy = {
        .def = source->def, .opset = source->opset, .is_training = source->is_training};
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    copy.name = rondo__strdup(source->name);
    if (copy.name == NULL) {
        goto fail;
    }
    if (source->attribute_count > 0) {
        copy.attributes = rondo__calloc(source->attribute_count, sizeof(rondo__attribute));
        if (copy.attributes == NULL) {
            goto fail;
        }
    }
    for (size_t i = 0; i < source->attribute_count; ++i) {
        copy.attribute_count = i + 1;
        status = copy_attribute(&source->attributes[i], &copy.attributes[i]);
        if (status != RONDO_STATUS_OK) {
            goto fail;
        }
    }
    *out_copy = copy;
    return RONDO_STATUS_OK;
fail:
    rondo__op_deinit(&copy);
    return status;
}

void rondo__op_deinit(rondo__op *op) {
    if (op == NULL) {
        return;
    }
    for (size_t i = 0; i < op->attribute_count; ++i) {
        rondo__attribute_deinit(&op->attributes[i]);
    }
    rondo__free(op->attributes);
    rondo__free(op->name);
    *op = (rondo__op){0};
}
