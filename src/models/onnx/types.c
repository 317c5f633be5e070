// onnx/types.c — see types.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/types.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/element_types.h"
#include "op/support.h"

static int32_t find_symbol(const rondo_program *program, const char *name) {
    for (size_t i = 0; i < program->symbol_count; ++i) {
        if (strcmp(program->symbols[i].name, name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

// Exporters write this for each unknown extent: no two of these need be equal.
static bool is_placeholder(const char *symbol) {
    static const char *const placeholders[] = {"", "?", "-1", "None", "unk"};
    for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; ++i) {
        if (strcmp(symbol, placeholders[i]) == 0) {
            return true;
        }
    }
    return false;
}

static rondo_status import_dimension(rondo__importer *importer, const rondo__scope *scope,
                                     const Onnx__TensorShapeProto__Dimension *dim, bool is_port,
                                     rondo__dimension *out_dimension) {
    *out_dimension = (rondo__dimension){.number = -1, .symbol = -1};
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        // Old exporters write -1 for what they do not know.
        out_dimension->number = dim->dim_value < 0 ? -1 : dim->dim_value;
        return RONDO_STATUS_OK;
    }
    bool has_symbol = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                      dim->dim_param != NULL && !is_placeholder(dim->dim_param);
    // A symbol of the file may stand for different extents in different bodies, so only the main
    // graph has them. Exporters invent one for each dimension of each value between nodes; those
    // say nothing that inference does not find out.
    if (!has_symbol || !is_port || scope->program != importer->main) {
        return RONDO_STATUS_OK;
    }
    out_dimension->symbol = find_symbol(importer->main, dim->dim_param);
    if (out_dimension->symbol < 0) {
        return rondo__program_add_symbol(importer->main, dim->dim_param, &out_dimension->symbol);
    }
    return RONDO_STATUS_OK;
}

// Refuses numbers whose product no memory could hold, whatever the symbols will be.
static rondo_status check_extents(const rondo__value *value) {
    size_t bytes = value->dtype == RONDO_DTYPE_NONE ? 1 : rondo_dtype_get_bytes(value->dtype);
    for (int32_t i = 0; i < value->rank; ++i) {
        if (value->dims[i].number == 0) {
            return RONDO_STATUS_OK;
        }
    }
    for (int32_t i = 0; i < value->rank; ++i) {
        int64_t number = value->dims[i].number;
        if (number > 0 &&
            (!rondo__mul_size(bytes, (size_t)number, &bytes) || bytes > (size_t)PTRDIFF_MAX)) {
            return RONDO_FAIL(BAD_DATA,
                              "value \"%.80s\" is declared with extents whose product overflows "
                              "(extent %d is %lld)",
                              value->name, i, (long long)number);
        }
    }
    return RONDO_STATUS_OK;
}

// Fills `value`, which is number `number` or what that is declared as.
static rondo_status import_tensor_type(rondo__importer *importer, rondo__scope *scope,
                                       int32_t number, const Onnx__TypeProto__Tensor *type,
                                       bool is_port, rondo__value *value) {
    char owner[128];
    snprintf(owner, sizeof(owner), "value \"%.96s\"", value->name);
    if (type->has_elem_type && type->elem_type != 0) {
        rondo_dtype dtype = RONDO_DTYPE_NONE;
        rondo_status status = rondo__onnx_get_dtype(type->elem_type, owner, &dtype);
        if (status == RONDO_STATUS_UNSUPPORTED) {
            return rondo__oddities_set(scope->oddities, number,
                                       rondo__onnx_type_explain(type->elem_type));
        }
        if (status != RONDO_STATUS_OK) {
            return status;
        }
        value->dtype = dtype;
    }
    if (type->shape == NULL) {
        return RONDO_STATUS_OK;
    }
    if (type->shape->n_dim > RONDO_RANK_MAX) {
        return rondo__oddities_set(scope->oddities, number, "a tensor of rank above 8");
    }
    value->has_shape = true;
    value->rank = (int32_t)type->shape->n_dim;
    for (size_t i = 0; i < type->shape->n_dim; ++i) {
        RETURN_IF_ERROR(
            import_dimension(importer, scope, type->shape->dim[i], is_port, &value->dims[i]));
    }
    return check_extents(value);
}

// Writes what a sequence or optional holds to item_dtype[0] and, where that is a sequence, [1].
//
// Returns:   NULL, or what it holds that we cannot.
static const char *read_item_type(const Onnx__TypeProto *type, rondo_dtype *item_dtype,
                                  bool may_be_sequence) {
    if (type == NULL) {
        return NULL;
    }
    switch (type->value_case) {
        case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
            item_dtype[0] = rondo__dtype_from_onnx(type->tensor_type->elem_type);
            return item_dtype[0] != RONDO_DTYPE_NONE || type->tensor_type->elem_type == 0 ? NULL
                   : rondo__onnx_type_get_name(type->tensor_type->elem_type) == NULL
                       ? "a sequence or optional of tensors of a type that is not known"
                       : rondo__onnx_type_explain_nested(type->tensor_type->elem_type);
        case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
            item_dtype[0] = RONDO_DTYPE_SEQUENCE;
            return may_be_sequence
                       ? read_item_type(type->sequence_type->elem_type, item_dtype + 1, false)
                       : "a sequence of sequences";
        case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
            return "a sequence or optional of maps";
        case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
            return "a sequence or optional of optionals";
        case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
            return "a sequence or optional of sparse tensors";
        default:
            return NULL;
    }
}

static rondo_status import_nested_type(rondo__scope *scope, int32_t number, rondo_dtype dtype,
                                       const Onnx__TypeProto *item) {
    rondo__value *value = &scope->program->values[number];
    rondo_dtype item_dtype[2] = {RONDO_DTYPE_NONE, RONDO_DTYPE_NONE};
    const char *problem = read_item_type(item, item_dtype, dtype == RONDO_DTYPE_OPTIONAL);
    if (problem != NULL) {
        return rondo__oddities_set(scope->oddities, number, problem);
    }
    value->dtype = dtype;
    memcpy(value->item_dtype, item_dtype, sizeof value->item_dtype);
    return RONDO_STATUS_OK;
}

// Refuses a declaration that its own initializer contradicts.
static rondo_status check_default(const rondo_program *program, const rondo__value *value,
                                  const rondo__value *declared) {
    const rondo_tensor *constant = &value->constant;
    bool fits = !declared->has_shape || declared->rank == constant->shape.rank;
    for (int32_t d = 0; fits && declared->has_shape && d < declared->rank; ++d) {
        fits =
            declared->dims[d].number < 0 || declared->dims[d].number == constant->shape.extent[d];
    }
    if (declared->dtype != RONDO_DTYPE_NONE && declared->dtype != constant->dtype) {
        return RONDO_FAIL(BAD_DATA, "input \"%.80s\" is declared %s, its initializer is %s",
                          value->name, rondo_dtype_get_name(declared->dtype),
                          rondo_dtype_get_name(constant->dtype));
    }
    if (!fits) {
        char have[96];
        char want[96];
        return RONDO_FAIL(BAD_DATA, "input \"%.80s\" is declared %s, its initializer is %s",
                          value->name,
                          rondo__value_format_shape(program, declared, want, sizeof want),
                          rondo_shape_format(&constant->shape, have, sizeof have));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__import_optional(rondo__importer *importer, rondo__scope *scope, int32_t value,
                                    const Onnx__TypeProto *type) {
    const rondo__value *constant = &scope->program->values[value];
    if (constant->constant.dtype == RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;  // an initializer of an unsupported type
    }
    rondo__value declared = {.name = constant->name, .dtype = constant->dtype, .producer = -1};
    for (int32_t d = 0; d < RONDO_RANK_MAX; ++d) {
        declared.dims[d] = (rondo__dimension){.number = -1, .symbol = -1};
    }
    if (type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        RETURN_IF_ERROR(
            import_tensor_type(importer, scope, value, type->tensor_type, true, &declared));
    }
    RETURN_IF_ERROR(check_default(scope->program, &scope->program->values[value], &declared));
    return rondo__program_add_optional(scope->program, value, &declared);
}

rondo_status rondo__import_type(rondo__importer *importer, rondo__scope *scope, int32_t value,
                                const Onnx__TypeProto *type, bool is_port) {
    const rondo__value *v = &scope->program->values[value];
    if (type == NULL || v->constant.dtype != RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;
    }
    if (v->labels.dtype != RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;  // of a ZipMap: scores instead of a sequence of maps
    }
    switch (type->value_case) {
        case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
            return import_tensor_type(importer, scope, value, type->tensor_type, is_port,
                                      &scope->program->values[value]);
        case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
            return import_nested_type(scope, value, RONDO_DTYPE_SEQUENCE,
                                      type->sequence_type->elem_type);
        case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
            return rondo__oddities_set(scope->oddities, value, "a map");
        case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
            return import_nested_type(scope, value, RONDO_DTYPE_OPTIONAL,
                                      type->optional_type->elem_type);
        case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
            return rondo__oddities_set(scope->oddities, value, "a sparse tensor");
        default:
            return RONDO_STATUS_OK;
    }
}
