// onnx/constant_nodes.c — see constant_nodes.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/constant_nodes.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "onnx/nodes.h"
#include "onnx/sparse.h"

bool rondo__node_is_constant(const Onnx__NodeProto *node) {
    return node->op_type != NULL && strcmp(node->op_type, "Constant") == 0 &&
           rondo__onnx_domain(node->domain)[0] == '\0';
}

static rondo_status make_list(rondo_dtype dtype, int32_t rank, const void *elements, size_t count,
                              rondo_tensor *out_tensor) {
    rondo_shape shape = {.rank = rank};
    if (rank == 1) {
        shape.extent[0] = (int64_t)count;
    }
    RETURN_IF_ERROR(rondo_tensor_init(dtype, &shape, out_tensor));
    if (count > 0) {
        memcpy(out_tensor->data, elements, count * rondo_dtype_get_bytes(dtype));
    }
    return RONDO_STATUS_OK;
}

static rondo_status make_strings(int32_t rank, const ProtobufCBinaryData *elements, size_t count,
                                 rondo_tensor *out_tensor) {
    rondo_shape shape = {.rank = rank};
    if (rank == 1) {
        shape.extent[0] = (int64_t)count;
    }
    rondo_string *strings = rondo__calloc(count, sizeof *strings);
    if (strings == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        strings[i] =
            (rondo_string){.data = (const char *)elements[i].data, .size = elements[i].len};
    }
    rondo_status status = rondo_tensor_init_strings(&shape, strings, out_tensor);
    rondo__free(strings);
    return status;
}

static rondo_status fail_value(const Onnx__NodeProto *proto, int32_t opset, const char *name,
                               const char *explanation) {
    char detail[160];
    snprintf(detail, sizeof detail, "attribute %.32s is %s", name, explanation);
    return rondo__node_fail_unsupported(proto, opset, detail);
}

// Makes the tensor that one attribute of a Constant node describes.
static rondo_status read_constant(rondo__importer *importer, const Onnx__NodeProto *proto,
                                  int32_t opset, const char *name,
                                  const Onnx__AttributeProto *value, rondo_tensor *out_tensor) {
    if (strcmp(name, "value") == 0 && value->t != NULL) {
        rondo_status status = rondo__tensor_read(&importer->reader, value->t, out_tensor);
        return status == RONDO_STATUS_UNSUPPORTED
                   ? fail_value(proto, opset, name, rondo__tensor_explain(value->t))
                   : status;
    }
    if (strcmp(name, "sparse_value") == 0 && value->sparse_tensor != NULL) {
        rondo_status status =
            rondo__sparse_read(&importer->reader, value->sparse_tensor, out_tensor);
        return status == RONDO_STATUS_UNSUPPORTED
                   ? fail_value(proto, opset, name, rondo__sparse_explain(value->sparse_tensor))
                   : status;
    }
    if (strcmp(name, "value_float") == 0) {
        return make_list(RONDO_DTYPE_F32, 0, &value->f, 1, out_tensor);
    }
    if (strcmp(name, "value_int") == 0) {
        return make_list(RONDO_DTYPE_I64, 0, &value->i, 1, out_tensor);
    }
    if (strcmp(name, "value_floats") == 0) {
        return make_list(RONDO_DTYPE_F32, 1, value->floats, value->n_floats, out_tensor);
    }
    if (strcmp(name, "value_ints") == 0) {
        return make_list(RONDO_DTYPE_I64, 1, value->ints, value->n_ints, out_tensor);
    }
    if (strcmp(name, "value_string") == 0) {
        return make_strings(0, &value->s, 1, out_tensor);
    }
    if (strcmp(name, "value_strings") == 0) {
        return make_strings(1, value->strings, value->n_strings, out_tensor);
    }
    char detail[96];
    snprintf(detail, sizeof(detail), "attribute %.80s", name);
    return rondo__node_fail_unsupported(proto, opset, detail);
}

static rondo_status set_constant(rondo__scope *scope, int32_t number, rondo_tensor *tensor) {
    rondo__value *value = &scope->program->values[number];
    if (value->constant.dtype != RONDO_DTYPE_NONE) {
        return RONDO_FAIL(BAD_DATA, "value \"%.80s\" is made twice", value->name);
    }
    value->constant = *tensor;
    *tensor = (rondo_tensor){0};
    value->dtype = value->constant.dtype;
    value->has_shape = true;
    value->rank = value->constant.shape.rank;
    for (int32_t i = 0; i < value->rank; ++i) {
        value->dims[i].number = value->constant.shape.extent[i];
    }
    return RONDO_STATUS_OK;
}

static rondo_status import_constant_checked(rondo__importer *importer, rondo__scope *scope,
                                            const Onnx__NodeProto *proto, int32_t opset) {
    if (proto->n_output != 1 || proto->output[0] == NULL || proto->output[0][0] == '\0' ||
        proto->n_input != 0) {
        return RONDO_FAIL(BAD_DATA, "a Constant has no input and one output");
    }
    int32_t number = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(rondo__scope_declare(scope, proto->output[0], &number));
    if (number == RONDO__VALUE_NONE) {
        return RONDO_STATUS_OK;  // an output of a function that the caller leaves out
    }
    if (proto->n_attribute != 1 || proto->attribute[0]->name == NULL) {
        return RONDO_FAIL(BAD_DATA, "a Constant has one attribute, this one %zu",
                          proto->n_attribute);
    }
    const Onnx__AttributeProto *value = rondo__scope_get_attribute(scope, proto->attribute[0]);
    if (value == NULL) {
        return RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" refers to one that is not given",
                          proto->attribute[0]->name);
    }
    rondo_tensor tensor = {0};
    rondo_status status =
        read_constant(importer, proto, opset, proto->attribute[0]->name, value, &tensor);
    if (status == RONDO_STATUS_OK) {
        status = set_constant(scope, number, &tensor);
    }
    rondo_tensor_deinit(&tensor);
    return status;
}

rondo_status rondo__import_constant(rondo__importer *importer, rondo__scope *scope,
                                    const Onnx__NodeProto *proto) {
    int32_t opset = rondo__scope_get_opset(scope, "");
    return rondo__node_finish(importer, scope, proto, opset,
                              import_constant_checked(importer, scope, proto, opset));
}

// ---- ZipMap

static bool is_zip_map(const Onnx__NodeProto *proto) {
    return proto->op_type != NULL && strcmp(proto->op_type, "ZipMap") == 0 &&
           strcmp(rondo__onnx_domain(proto->domain), "ai.onnx.ml") == 0;
}

rondo_status rondo__import_labels(rondo__scope *scope, const Onnx__NodeProto *proto,
                                  int32_t value) {
    rondo_tensor labels = {0};
    if (value == RONDO__VALUE_NONE || !is_zip_map(proto)) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < proto->n_attribute; ++i) {
        const Onnx__AttributeProto *attribute =
            rondo__scope_get_attribute(scope, proto->attribute[i]);
        if (attribute == NULL || labels.dtype != RONDO_DTYPE_NONE) {
            continue;
        }
        if (attribute->n_strings > 0) {
            RETURN_IF_ERROR(make_strings(1, attribute->strings, attribute->n_strings, &labels));
        } else if (attribute->n_ints > 0) {
            RETURN_IF_ERROR(
                make_list(RONDO_DTYPE_I64, 1, attribute->ints, attribute->n_ints, &labels));
        }
    }
    if (labels.dtype == RONDO_DTYPE_NONE) {
        return RONDO_FAIL(BAD_DATA, "a ZipMap has no class labels");
    }
    RONDO_LOG_INFO_F("ZipMap \"%s\" gives the plain scores; their labels are in the port",
                     scope->program->values[value].name);
    scope->program->values[value].dtype = RONDO_DTYPE_F32;
    scope->program->values[value].labels = labels;
    return RONDO_STATUS_OK;
}
