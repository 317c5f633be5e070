// onnx/sparse.c — see sparse.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/sparse.h"

#include <string.h>

#include "base/error.h"

const char *rondo__sparse_get_name(const Onnx__SparseTensorProto *proto) {
    return proto->values != NULL ? proto->values->name : NULL;
}

static bool holds_strings(const Onnx__SparseTensorProto *proto) {
    return proto->values->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
}

const char *rondo__sparse_explain(const Onnx__SparseTensorProto *proto) {
    return proto->n_dims > RONDO_RANK_MAX ? "a tensor of rank above 8"
           : proto->values == NULL        ? "a sparse tensor without values"
           : holds_strings(proto)         ? "a sparse tensor of strings"
                                          : rondo__tensor_explain(proto->values);
}

static rondo_status read_shape(const Onnx__SparseTensorProto *proto, const char *name,
                               rondo_shape *out_shape) {
    *out_shape = (rondo_shape){.rank = (int32_t)proto->n_dims};
    for (size_t i = 0; i < proto->n_dims; ++i) {
        if (proto->dims[i] < 0) {
            return RONDO_FAIL(BAD_DATA, "sparse tensor \"%.80s\" has the negative extent %lld",
                              name, (long long)proto->dims[i]);
        }
        out_shape->extent[i] = proto->dims[i];
    }
    if (rondo_shape_get_count(out_shape) < 0) {
        return RONDO_FAIL(BAD_DATA, "sparse tensor \"%.80s\" has more elements than can be counted",
                          name);
    }
    return RONDO_STATUS_OK;
}

// The position of element `i` in the tensor: its number, or one index for each axis. -1: outside.
static int64_t get_place(const rondo_tensor *indices, const rondo_shape *shape, int64_t i) {
    const int64_t *numbers = indices->data;
    if (indices->shape.rank == 1) {
        const bool is_inside = numbers[i] >= 0 && numbers[i] < rondo_shape_get_count(shape);
        return is_inside ? numbers[i] : -1;
    }
    int64_t place = 0;
    for (int32_t d = 0; d < shape->rank; ++d) {
        const int64_t index = numbers[i * shape->rank + d];
        if (index < 0 || index >= shape->extent[d]) {
            return -1;
        }
        place = place * shape->extent[d] + index;
    }
    return place;
}

static rondo_status check_parts(const rondo_tensor *values, const rondo_tensor *indices,
                                const rondo_shape *shape, const char *name) {
    const rondo_shape *form = &indices->shape;
    const int64_t count = values->shape.rank == 1 ? values->shape.extent[0] : -1;
    const bool is_list = form->rank == 1 || (form->rank == 2 && form->extent[1] == shape->rank);
    if (indices->dtype != RONDO_DTYPE_I64 || !is_list || form->extent[0] != count) {
        return RONDO_FAIL(BAD_DATA,
                          "sparse tensor \"%.80s\": values are [n], and their indices i64 [n] or "
                          "[n, rank]",
                          name);
    }
    return RONDO_STATUS_OK;
}

static rondo_status spread(const rondo_tensor *values, const rondo_tensor *indices,
                           const char *name, rondo_tensor *dense) {
    const size_t bytes = rondo_dtype_get_bytes(values->dtype);
    int64_t last = -1;
    for (int64_t i = 0; i < values->shape.extent[0]; ++i) {
        const int64_t place = get_place(indices, &dense->shape, i);
        if (place <= last) {
            return RONDO_FAIL(BAD_DATA, "sparse tensor \"%.80s\": index number %lld is %s", name,
                              (long long)i, place < 0 ? "out of range" : "not behind the last one");
        }
        memcpy((uint8_t *)dense->data + (size_t)place * bytes,
               (const uint8_t *)values->data + (size_t)i * bytes, bytes);
        last = place;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__sparse_read(rondo__tensor_reader *reader, const Onnx__SparseTensorProto *proto,
                                rondo_tensor *out_tensor) {
    const char *name = rondo__sparse_get_name(proto);
    name = name != NULL ? name : "";
    rondo_shape shape;
    rondo_tensor values = {0};
    rondo_tensor indices = {0};
    *out_tensor = (rondo_tensor){0};
    if (proto->values == NULL || proto->indices == NULL) {
        return RONDO_FAIL(BAD_DATA, "sparse tensor \"%.80s\" lacks its values or indices", name);
    }
    if (proto->n_dims > RONDO_RANK_MAX || holds_strings(proto)) {
        return RONDO_FAIL(UNSUPPORTED, "unsupported: \"%.80s\" is %s", name,
                          rondo__sparse_explain(proto));
    }
    RETURN_IF_ERROR(read_shape(proto, name, &shape));
    rondo_status status = rondo__tensor_read(reader, proto->values, &values);
    if (status == RONDO_STATUS_OK) {
        status = rondo__tensor_read(reader, proto->indices, &indices);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_parts(&values, &indices, &shape, name);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_tensor_init(values.dtype, &shape, out_tensor);
    }
    if (status == RONDO_STATUS_OK) {
        status = spread(&values, &indices, name, out_tensor);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(out_tensor);
    }
    rondo_tensor_deinit(&values);
    rondo_tensor_deinit(&indices);
    return status;
}
