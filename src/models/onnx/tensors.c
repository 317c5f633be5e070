// onnx/tensors.c — see tensors.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/memory.h"
#include "onnx/external.h"
#include "onnx/wire.h"
#include "op/element_types.h"
#include "op/support.h"
#include "tensor/narrow.h"

// Smaller tensors are copied: a page of the file kept mapped costs more than they do.
enum { MAPPED_BYTES_MIN = 1024 };

rondo_status rondo__onnx_get_dtype(int32_t data_type, const char *owner, rondo_dtype *out_dtype) {
    *out_dtype = rondo__dtype_from_onnx(data_type);
    if (rondo__onnx_type_get_name(data_type) == NULL) {
        return RONDO_FAIL(BAD_DATA, "%s has element type %d, which is not known; 1 to %d are",
                          owner, data_type, RONDO_ONNX_TYPE_MAX);
    }
    if (*out_dtype == RONDO_DTYPE_NONE) {
        return RONDO_FAIL(UNSUPPORTED, "unsupported: %s is %s", owner,
                          rondo__onnx_type_explain(data_type));
    }
    return RONDO_STATUS_OK;
}

int32_t rondo__onnx_from_dtype(rondo_dtype dtype) {
    for (int32_t i = 1; dtype != RONDO_DTYPE_NONE && i <= RONDO_ONNX_TYPE_MAX; ++i) {
        if (rondo__dtype_from_onnx(i) == dtype) {
            return i;
        }
    }
    return 0;
}

const char *rondo__tensor_explain(const Onnx__TensorProto *proto) {
    const char *explanation = rondo__onnx_type_explain(proto->data_type);
    return explanation != NULL              ? explanation
           : proto->n_dims > RONDO_RANK_MAX ? "a tensor of rank above 8"
           : proto->segment != NULL         ? "a tensor in segments"
                                    : "external data of a model in memory, which has no folder";
}

void rondo__tensor_reader_deinit(rondo__tensor_reader *reader) {
    rondo__external_deinit(reader);
}

// "tensor \"weight\"" for messages.
static void describe(const Onnx__TensorProto *proto, char *buffer, size_t buffer_bytes) {
    const char *name = proto->name == NULL ? "" : proto->name;
    snprintf(buffer, buffer_bytes, "tensor \"%.80s\"", name);
}

static rondo_status read_shape(const Onnx__TensorProto *proto, const char *owner,
                               rondo_shape *out_shape) {
    *out_shape = (rondo_shape){0};
    if (proto->n_dims > RONDO_RANK_MAX) {
        return RONDO_FAIL(UNSUPPORTED, "unsupported: %s has rank %zu; at most %d is possible",
                          owner, proto->n_dims, RONDO_RANK_MAX);
    }
    out_shape->rank = (int32_t)proto->n_dims;
    for (size_t i = 0; i < proto->n_dims; ++i) {
        if (proto->dims[i] < 0) {
            return RONDO_FAIL(BAD_DATA, "%s has the negative extent %lld", owner,
                              (long long)proto->dims[i]);
        }
        out_shape->extent[i] = proto->dims[i];
    }
    if (rondo_shape_get_count(out_shape) < 0) {
        char text[160];
        return RONDO_FAIL(BAD_DATA, "%s has shape %s, more elements than can be counted", owner,
                          rondo_shape_format(out_shape, text, sizeof(text)));
    }
    return RONDO_STATUS_OK;
}

static rondo_status fail_byte_count(const char *owner, uint64_t present, const char *unit,
                                    const rondo_shape *shape, size_t needed) {
    char text[160];
    return RONDO_FAIL(BAD_DATA, "%s holds %llu %s; its shape %s needs %zu", owner,
                      (unsigned long long)present, unit,
                      rondo_shape_format(shape, text, sizeof(text)), needed);
}

// ---- raw bytes

// Bytes other than 0 and 1 must never be looked at as a C bool.
static void normalize_bools(rondo_tensor *tensor, size_t count) {
    uint8_t *bytes = tensor->data;
    for (size_t i = 0; i < count; ++i) {
        bytes[i] = bytes[i] != 0;
    }
}

// Two or four elements a byte in a file, one in memory.
static bool is_packed(rondo_dtype dtype) {
    const unsigned bits = rondo__narrow_get_bits(dtype);
    return bits == 4 || bits == 2;
}

// Makes a tensor of bytes that lie at `bytes`; maps them when `source` says they stay, when there
// are many, and when they are aligned for their type.
static rondo_status read_raw(rondo__source *source, const uint8_t *bytes, size_t byte_count,
                             rondo_dtype dtype, const rondo_shape *shape,
                             rondo_tensor *out_tensor) {
    bool is_aligned = (uintptr_t)bytes % rondo_dtype_get_bytes(dtype) == 0;
    if (source != NULL && is_aligned && byte_count >= MAPPED_BYTES_MIN &&
        dtype != RONDO_DTYPE_BOOL && !is_packed(dtype)) {
        size_t offset = (size_t)(bytes - rondo__source_get_bytes(source));
        return rondo__source_borrow_tensor(source, offset, dtype, shape, out_tensor);
    }
    RETURN_IF_ERROR(rondo_tensor_init(dtype, shape, out_tensor));
    if (is_packed(dtype)) {
        rondo__narrow_unpack(dtype, bytes, (size_t)rondo_shape_get_count(shape), out_tensor->data);
    } else if (byte_count > 0) {
        rondo__crew_copy(out_tensor->data, bytes, byte_count);
    }
    if (dtype == RONDO_DTYPE_BOOL) {
        normalize_bools(out_tensor, byte_count);
    }
    return RONDO_STATUS_OK;
}

// ---- typed lists

// The one list of a TensorProto that holds elements of a type: numbers of them, parts of complex
// ones, or bytes that hold several.
typedef struct typed_list {
    const void *elements;
    size_t count;
    size_t element_bytes;
} typed_list;

static typed_list get_typed_list(const Onnx__TensorProto *proto, rondo_dtype dtype) {
    switch (dtype) {
        case RONDO_DTYPE_F32:
        case RONDO_DTYPE_C64:
            return (typed_list){proto->float_data, proto->n_float_data, sizeof(float)};
        case RONDO_DTYPE_F64:
        case RONDO_DTYPE_C128:
            return (typed_list){proto->double_data, proto->n_double_data, sizeof(double)};
        case RONDO_DTYPE_I64:
            return (typed_list){proto->int64_data, proto->n_int64_data, sizeof(int64_t)};
        case RONDO_DTYPE_U32:
        case RONDO_DTYPE_U64:
            return (typed_list){proto->uint64_data, proto->n_uint64_data, sizeof(uint64_t)};
        default:
            return (typed_list){proto->int32_data, proto->n_int32_data, sizeof(int32_t)};
    }
}

// Narrows elements as ONNX stores them into elements as we store them: the low bytes of each.
static void narrow(const typed_list *list, rondo_tensor *tensor) {
    size_t bytes = rondo_dtype_get_bytes(tensor->dtype);
    const uint8_t *from = list->elements;
    uint8_t *to = tensor->data;
    for (size_t i = 0; i < list->count; ++i) {
        memcpy(to + i * bytes, from + i * list->element_bytes, bytes);
    }
    if (tensor->dtype == RONDO_DTYPE_BOOL) {
        normalize_bools(tensor, list->count);
    }
}

// Each entry holds a byte of packed elements.
static rondo_status unpack_typed(const typed_list *list, rondo_tensor *tensor) {
    enum { CHUNK = 256 };
    uint8_t packed[CHUNK];
    const size_t count = (size_t)rondo_shape_get_count(&tensor->shape);
    const size_t each = 8 / rondo__narrow_get_bits(tensor->dtype);
    for (size_t done = 0; done < list->count; done += CHUNK) {
        const size_t now = list->count - done < CHUNK ? list->count - done : CHUNK;
        for (size_t i = 0; i < now; ++i) {
            packed[i] = (uint8_t)((const int32_t *)list->elements)[done + i];
        }
        const size_t first = done * each;
        const size_t rest = count - first < now * each ? count - first : now * each;
        rondo__narrow_unpack(tensor->dtype, packed, rest, (uint8_t *)tensor->data + first);
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_typed(const Onnx__TensorProto *proto, const char *owner, rondo_dtype dtype,
                               const rondo_shape *shape, rondo_tensor *out_tensor) {
    typed_list list = get_typed_list(proto, dtype);
    const bool is_complex = dtype == RONDO_DTYPE_C64 || dtype == RONDO_DTYPE_C128;
    size_t count = (size_t)rondo_shape_get_count(shape);
    size_t needed = count;
    if (is_packed(dtype)) {
        (void)rondo__dtype_get_packed_bytes(dtype, count, &needed);
    } else if (is_complex) {
        needed = count > SIZE_MAX / 2 ? SIZE_MAX : 2 * count;
    }
    if (list.count != needed) {
        return fail_byte_count(owner, list.count, "elements", shape, needed);
    }
    RETURN_IF_ERROR(rondo_tensor_init(dtype, shape, out_tensor));
    if (is_packed(dtype)) {
        return unpack_typed(&list, out_tensor);
    }
    if (count > 0 && (is_complex || rondo_dtype_get_bytes(dtype) == list.element_bytes)) {
        memcpy(out_tensor->data, list.elements, list.count * list.element_bytes);
    } else if (count > 0) {
        narrow(&list, out_tensor);
    }
    return RONDO_STATUS_OK;
}

// ---- strings

static rondo_status read_strings(const Onnx__TensorProto *proto, const char *owner,
                                 const rondo_shape *shape, rondo_tensor *out_tensor) {
    size_t count = (size_t)rondo_shape_get_count(shape);
    bool is_external = proto->has_data_location &&
                       proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (is_external || proto->raw_data.len > 0) {
        return RONDO_FAIL(BAD_DATA, "%s holds strings, which cannot be %s", owner,
                          is_external ? "external" : "raw bytes");
    }
    if (proto->n_string_data != count) {
        return fail_byte_count(owner, proto->n_string_data, "strings", shape, count);
    }
    rondo_string *strings = rondo__calloc(count, sizeof *strings);
    if (strings == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        strings[i] = (rondo_string){.data = (const char *)proto->string_data[i].data,
                                    .size = proto->string_data[i].len};
    }
    rondo_status status = rondo_tensor_init_strings(shape, strings, out_tensor);
    rondo__free(strings);
    return status;
}

// ---- the whole

static rondo_status read_described(rondo__tensor_reader *reader, const Onnx__TensorProto *proto,
                                   const char *owner, rondo_tensor *out_tensor) {
    rondo_dtype dtype = RONDO_DTYPE_NONE;
    rondo_shape shape;
    size_t needed = 0;
    RETURN_IF_ERROR(rondo__onnx_get_dtype(proto->data_type, owner, &dtype));
    RETURN_IF_ERROR(read_shape(proto, owner, &shape));
    if (proto->segment != NULL) {
        return RONDO_FAIL(UNSUPPORTED, "unsupported: %s is stored in segments", owner);
    }
    if (dtype == RONDO_DTYPE_STRING) {
        return read_strings(proto, owner, &shape, out_tensor);
    }
    if (!rondo__dtype_get_packed_bytes(dtype, (size_t)rondo_shape_get_count(&shape), &needed)) {
        char text[160];
        return RONDO_FAIL(BAD_DATA, "%s has shape %s, more bytes than can be addressed", owner,
                          rondo_shape_format(&shape, text, sizeof(text)));
    }
    if (proto->has_data_location &&
        proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        rondo__external_range range = {0};
        RETURN_IF_ERROR(rondo__external_find(reader, proto, owner, needed, &range));
        return read_raw(range.source, range.bytes, needed, dtype, &shape, out_tensor);
    }
    rondo__wire_reference reference = rondo__wire_get_reference(&proto->raw_data);
    if (reference.byte_count == 0) {
        return read_typed(proto, owner, dtype, &shape, out_tensor);
    }
    if (reference.byte_count != needed) {
        return fail_byte_count(owner, reference.byte_count, "bytes", &shape, needed);
    }
    return read_raw(reader->source, reader->bytes + reference.offset, needed, dtype, &shape,
                    out_tensor);
}

rondo_status rondo__tensor_read(rondo__tensor_reader *reader, const Onnx__TensorProto *proto,
                                rondo_tensor *out_tensor) {
    char owner[96];
    describe(proto, owner, sizeof(owner));
    *out_tensor = (rondo_tensor){0};
    rondo_status status = read_described(reader, proto, owner, out_tensor);
    if (status == RONDO_STATUS_NO_MEMORY) {
        rondo__error_prefix("%s", owner);
    }
    return status;
}
