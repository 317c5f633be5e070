// onnx/values.c — values in files of their own: TensorProto, SequenceProto, OptionalProto, and the
// sequences of maps that a ZipMap would make.
//
// Of the last three the distribution's onnx.proto has no definition, so their fields are read by
// number. A tensor inside is unpacked like any other.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "onnx.pb-c.h"
#include "onnx/file_kinds.h"
#include "onnx/source.h"
#include "onnx/tensors.h"
#include "onnx/wire.h"
#include "rondo/onnx.h"
#include "tensor/elements.h"

// A serialized message, and where positions in error messages count from.
typedef struct message_bytes {
    const uint8_t *start;
    const uint8_t *bytes;
    size_t count;
} message_bytes;

static message_bytes get_inner(const message_bytes *outer, const rondo__wire_part *part) {
    return (message_bytes){.start = outer->start, .bytes = part->bytes, .count = part->byte_count};
}

static rondo_status read_tensor(const message_bytes *message, rondo_tensor *out_tensor) {
    ProtobufCMessage *proto = NULL;
    RETURN_IF_ERROR(rondo__wire_unpack(&onnx__tensor_proto__descriptor, message->bytes,
                                       message->count, &proto));
    rondo__tensor_reader reader = {.bytes = message->bytes};
    rondo_status status = rondo__tensor_read(&reader, (const Onnx__TensorProto *)proto, out_tensor);
    rondo__tensor_reader_deinit(&reader);
    rondo__wire_free(proto);
    return status;
}

// Counts the fields `number` that hold messages or strings.
static rondo_status count_parts(const message_bytes *message, uint32_t number, size_t *out_count) {
    const uint8_t *cursor = message->bytes;
    *out_count = 0;
    while (cursor < message->bytes + message->count) {
        rondo__wire_part part;
        RETURN_IF_ERROR(
            rondo__wire_next(message->start, &cursor, message->bytes + message->count, &part));
        *out_count += part.number == number && part.is_bytes;
    }
    return RONDO_STATUS_OK;
}

// Finds the first field of this number; the caller knows that there is one.
static rondo_status find_part(const message_bytes *message, uint32_t number,
                              rondo__wire_part *out_part) {
    const uint8_t *cursor = message->bytes;
    while (cursor < message->bytes + message->count) {
        RETURN_IF_ERROR(
            rondo__wire_next(message->start, &cursor, message->bytes + message->count, out_part));
        if (out_part->number == number && out_part->is_bytes) {
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_FAIL(INTERNAL, "field %u was counted, but is not there", (unsigned)number);
}

// ---- SequenceProto, OptionalProto -------------------------------------------------------------

enum { SEQUENCE_TENSORS = 3, SEQUENCE_MAPS = 6, OPTIONAL_TENSOR = 3, OPTIONAL_SEQUENCE = 5 };
// From field 4 on these messages have kinds that Rondo cannot hold.
enum { OTHERS_FIRST = 4, OTHERS_LAST = 7 };
// The name and the data of a TensorProto, which reads as an empty sequence but for them.
enum { TENSOR_FIRST = 8, TENSOR_LAST = 11 };

static rondo_status refuse_others(const message_bytes *message, uint32_t known, const char *what) {
    for (uint32_t number = OTHERS_FIRST; number <= OTHERS_LAST; ++number) {
        size_t count = 0;
        RETURN_IF_ERROR(count_parts(message, number, &count));
        if (count > 0 && number != known) {
            return RONDO_FAIL(UNSUPPORTED, "unsupported: %s that holds no plain tensors", what);
        }
    }
    for (uint32_t number = TENSOR_FIRST; number <= TENSOR_LAST; ++number) {
        size_t count = 0;
        RETURN_IF_ERROR(count_parts(message, number, &count));
        if (count > 0) {
            return RONDO_FAIL(BAD_DATA, "a tensor, where %s is expected", what);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status fill_sequence(const message_bytes *message, rondo_tensor *items, size_t count) {
    const uint8_t *cursor = message->bytes;
    for (size_t i = 0; i < count;) {
        rondo__wire_part part;
        RETURN_IF_ERROR(
            rondo__wire_next(message->start, &cursor, message->bytes + message->count, &part));
        if (part.number != SEQUENCE_TENSORS || !part.is_bytes) {
            continue;
        }
        message_bytes inner = get_inner(message, &part);
        RETURN_IF_ERROR(read_tensor(&inner, &items[i]));
        if (items[i].dtype != items[0].dtype) {
            return RONDO_FAIL(BAD_DATA, "item %zu is %s, item 0 is %s; a sequence has one type", i,
                              rondo_dtype_get_name(items[i].dtype),
                              rondo_dtype_get_name(items[0].dtype));
        }
        i += 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_sequence(const message_bytes *message, rondo_tensor *out_tensor) {
    size_t count = 0;
    rondo_tensor sequence;
    rondo_tensor *items;
    RETURN_IF_ERROR(refuse_others(message, 0, "a sequence"));
    RETURN_IF_ERROR(count_parts(message, SEQUENCE_TENSORS, &count));
    RETURN_IF_ERROR(rondo__nested_create(RONDO_DTYPE_SEQUENCE, count, &sequence, &items));
    rondo_status status = fill_sequence(message, items, count);
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(&sequence);
        return status;
    }
    *out_tensor = sequence;
    return RONDO_STATUS_OK;
}

static rondo_status read_optional(const message_bytes *message, rondo_tensor *out_tensor) {
    size_t tensor_count = 0;
    size_t sequence_count = 0;
    rondo_tensor optional;
    rondo_tensor *item;
    RETURN_IF_ERROR(refuse_others(message, OPTIONAL_SEQUENCE, "an optional"));
    RETURN_IF_ERROR(count_parts(message, OPTIONAL_TENSOR, &tensor_count));
    RETURN_IF_ERROR(count_parts(message, OPTIONAL_SEQUENCE, &sequence_count));
    if (tensor_count + sequence_count > 1) {
        return RONDO_FAIL(BAD_DATA, "an optional has %zu elements", tensor_count + sequence_count);
    }
    RETURN_IF_ERROR(rondo__nested_create(RONDO_DTYPE_OPTIONAL, tensor_count + sequence_count,
                                         &optional, &item));
    rondo_status status = RONDO_STATUS_OK;
    if (tensor_count + sequence_count > 0) {
        rondo__wire_part part;
        status = find_part(message, tensor_count > 0 ? OPTIONAL_TENSOR : OPTIONAL_SEQUENCE, &part);
        if (status == RONDO_STATUS_OK) {
            message_bytes inner = get_inner(message, &part);
            status = tensor_count > 0 ? read_tensor(&inner, item) : read_sequence(&inner, item);
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(&optional);
        return status;
    }
    *out_tensor = optional;
    return RONDO_STATUS_OK;
}

// ---- scores, from a sequence of maps ----------------------------------------------------------

enum { MAP_KEYS = 3, MAP_STRING_KEYS = 4, MAP_VALUES = 5 };

// The column of the label that stands in the map as key number `key`; -1 when there is none.
static rondo_status find_column(const message_bytes *map, const rondo_tensor *labels, size_t key,
                                int64_t *out_column) {
    const uint8_t *cursor = map->bytes;
    *out_column = -1;
    while (cursor < map->bytes + map->count && *out_column < 0) {
        rondo__wire_part part;
        RETURN_IF_ERROR(rondo__wire_next(map->start, &cursor, map->bytes + map->count, &part));
        bool is_string = part.number == MAP_STRING_KEYS && part.is_bytes;
        bool is_number = part.number == MAP_KEYS && !part.is_bytes;
        if ((!is_string && !is_number) || key-- != 0) {
            continue;
        }
        rondo_string text = {.data = (const char *)part.bytes, .size = part.byte_count};
        for (int64_t i = 0; i < labels->shape.extent[0]; ++i) {
            bool fits = labels->dtype == RONDO_DTYPE_STRING
                            ? is_string && rondo__string_compare(
                                               &text, (const rondo_string *)labels->data + i) == 0
                            : is_number &&
                                  (uint64_t)((const int64_t *)labels->data)[i] == part.number_value;
            if (fits) {
                *out_column = i;
                return RONDO_STATUS_OK;
            }
        }
        return RONDO_STATUS_OK;
    }
    return RONDO_STATUS_OK;
}

// Fills one row of scores from a map.
static rondo_status read_map(const message_bytes *map, const rondo_tensor *labels, float *row) {
    rondo__wire_part part;
    rondo_tensor values = {0};
    size_t count = 0;
    RETURN_IF_ERROR(count_parts(map, MAP_VALUES, &count));
    if (count != 1) {
        return RONDO_FAIL(BAD_DATA, "a map has no values");
    }
    RETURN_IF_ERROR(find_part(map, MAP_VALUES, &part));
    message_bytes inner = get_inner(map, &part);
    RETURN_IF_ERROR(read_sequence(&inner, &values));
    rondo_status status = RONDO_STATUS_OK;
    const rondo_tensor *items = values.data;
    if (values.shape.extent[0] > labels->shape.extent[0]) {
        status = RONDO_FAIL(BAD_DATA, "a map has %lld entries for %lld labels",
                            (long long)values.shape.extent[0], (long long)labels->shape.extent[0]);
    }
    for (int64_t i = 0; i < values.shape.extent[0] && status == RONDO_STATUS_OK; ++i) {
        int64_t column = -1;
        status = find_column(map, labels, (size_t)i, &column);
        if (status != RONDO_STATUS_OK) {
            break;
        }
        if (column < 0 || items[i].dtype != RONDO_DTYPE_F32 ||
            rondo_shape_get_count(&items[i].shape) != 1) {
            status = RONDO_FAIL(BAD_DATA, "entry %lld of a map is no score of a known label",
                                (long long)i);
        } else {
            row[column] = *(const float *)items[i].data;
        }
    }
    rondo_tensor_deinit(&values);
    return status;
}

// A sequence of maps as [maps, labels].
static rondo_status read_scores(const message_bytes *message, const rondo_tensor *labels,
                                rondo_tensor *out_tensor) {
    size_t count = 0;
    RETURN_IF_ERROR(count_parts(message, SEQUENCE_MAPS, &count));
    rondo_shape shape = {.rank = 2, .extent = {(int64_t)count, labels->shape.extent[0]}};
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F32, &shape, out_tensor));
    rondo_status status = RONDO_STATUS_OK;
    float *row = out_tensor->data;
    const uint8_t *cursor = message->bytes;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK;) {
        rondo__wire_part part;
        status = rondo__wire_next(message->start, &cursor, message->bytes + message->count, &part);
        if (status == RONDO_STATUS_OK && part.number == SEQUENCE_MAPS && part.is_bytes) {
            message_bytes map = get_inner(message, &part);
            status = read_map(&map, labels, row);
            row += labels->shape.extent[0];
            i += 1;
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(out_tensor);
    }
    return status;
}

// ---- files ------------------------------------------------------------------------------------

static rondo_status read_value(const message_bytes *message, rondo_dtype dtype,
                               const rondo_tensor *labels, rondo_tensor *out_tensor) {
    switch (dtype) {
        case RONDO_DTYPE_SEQUENCE:
            return read_sequence(message, out_tensor);
        case RONDO_DTYPE_OPTIONAL:
            return read_optional(message, out_tensor);
        default:
            return labels != NULL ? read_scores(message, labels, out_tensor)
                                  : read_tensor(message, out_tensor);
    }
}

static rondo_status load(const char *path, rondo_dtype dtype, const rondo_tensor *labels,
                         rondo_tensor *out_tensor) {
    rondo__source *source = NULL;
    RETURN_IF_ERROR(rondo__source_map(path, &source));
    const uint8_t *bytes = rondo__source_get_bytes(source);
    message_bytes message = {
        .start = bytes, .bytes = bytes, .count = rondo__source_get_byte_count(source)};
    // An empty sequence may take no bytes at all; a tensor takes some.
    rondo_status status = message.count == 0 && !rondo__dtype_is_nested(dtype)
                              ? RONDO_FAIL(BAD_DATA, "not a tensor: the file is empty")
                              : read_value(&message, dtype, labels, out_tensor);
    const char *kind =
        status == RONDO_STATUS_BAD_DATA ? rondo__file_kind_explain(bytes, message.count) : NULL;
    if (kind != NULL) {
        status = RONDO_FAIL(BAD_DATA, "not a tensor: it is %s", kind);
    }
    if (status != RONDO_STATUS_OK && status != RONDO_STATUS_UNSUPPORTED) {
        rondo__source_prefix_path(path);
    }
    rondo__source_release(source);
    return status;
}

rondo_status rondo_tensor_load_onnx(const char *path, rondo_tensor *out_tensor) {
    if (out_tensor == NULL) {
        return RONDO_FAIL(INVALID, "out_tensor is NULL");
    }
    *out_tensor = (rondo_tensor){0};
    if (path == NULL) {
        return RONDO_FAIL(INVALID, "path is NULL");
    }
    return load(path, RONDO_DTYPE_NONE, NULL, out_tensor);
}

rondo_status rondo_port_load_onnx(const rondo_port *port, const char *path,
                                  rondo_tensor *out_tensor) {
    if (out_tensor == NULL) {
        return RONDO_FAIL(INVALID, "out_tensor is NULL");
    }
    *out_tensor = (rondo_tensor){0};
    if (port == NULL || path == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", port == NULL ? "port" : "path");
    }
    rondo_port whole = {.struct_size = sizeof whole};
    RETURN_IF_ERROR(rondo__read_options(port, &whole, sizeof whole, __func__, "rondo_port"));
    return load(path, whole.dtype, whole.labels, out_tensor);
}
