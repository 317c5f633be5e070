// onnx/wire.c — see wire.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/wire.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

// A body adds three levels (attribute, graph, node); types and tensors add a few at the end.
enum { DEPTH_MAX = 3 * RONDO__BODY_DEPTH_MAX + 16 };

// protobuf-c's own bookkeeping for each field while it unpacks one message.
enum { FIELD_COST_BYTES = 48 };

// Unpacked structs may take this much, plus a multiple of the file. Real models stay far below: a
// node of 60 bytes unpacks into some 700.
enum { UNPACKED_BASE_BYTES = 64 << 20, UNPACKED_FACTOR = 32 };

// Lengths of nested messages are written before they are known, as varints of this many bytes.
enum { PADDED_LENGTH_BYTES = 5 };

enum {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5
};

// Groups are older than ONNX, which has none; what is unknown may still be one.
enum { GROUP_DEPTH_MAX = 32 };

typedef struct wire_reducer {
    const uint8_t *start;
    uint8_t *reduced;
    size_t reduced_count;
    size_t reduced_capacity;
    size_t unpacked_bytes;  // estimate of what protobuf-c will allocate
    size_t unpacked_limit;
} wire_reducer;

static rondo_status fail_malformed(const wire_reducer *reducer, const uint8_t *at,
                                   const char *what) {
    return RONDO_FAIL(BAD_DATA, "malformed protobuf at byte %zu: %s", (size_t)(at - reducer->start),
                      what);
}

static rondo_status append(wire_reducer *reducer, const uint8_t *bytes, size_t byte_count) {
    if (byte_count > reducer->reduced_capacity - reducer->reduced_count) {
        size_t needed = reducer->reduced_count + byte_count;
        size_t capacity = needed + needed / 2 + 256;
        uint8_t *grown = rondo__realloc(reducer->reduced, capacity);
        if (grown == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        reducer->reduced = grown;
        reducer->reduced_capacity = capacity;
    }
    memcpy(reducer->reduced + reducer->reduced_count, bytes, byte_count);
    reducer->reduced_count += byte_count;
    return RONDO_STATUS_OK;
}

static rondo_status count_unpacked(wire_reducer *reducer, const uint8_t *at, size_t byte_count) {
    if (byte_count > reducer->unpacked_limit - reducer->unpacked_bytes) {
        return fail_malformed(reducer, at, "more fields than any real model of this size has");
    }
    reducer->unpacked_bytes += byte_count;
    return RONDO_STATUS_OK;
}

// Reads a varint and moves *cursor behind it.
static bool read_varint(const uint8_t **cursor, const uint8_t *end, uint64_t *out_value) {
    uint64_t value = 0;
    const uint8_t *at = *cursor;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *cursor = at;
            *out_value = value;
            return true;
        }
    }
    return false;
}

static void write_padded_length(uint8_t *target, size_t length) {
    for (int i = 0; i < PADDED_LENGTH_BYTES; ++i) {
        uint8_t more = i + 1 < PADDED_LENGTH_BYTES ? 0x80 : 0;
        target[i] = (uint8_t)((length >> (7 * i) & 0x7F) | more);
    }
}

static bool is_wire_type_right(const ProtobufCFieldDescriptor *field, unsigned wire_type) {
    bool is_scalar = true;
    unsigned expected = WIRE_VARINT;
    switch (field->type) {
        case PROTOBUF_C_TYPE_STRING:
        case PROTOBUF_C_TYPE_BYTES:
        case PROTOBUF_C_TYPE_MESSAGE:
            expected = WIRE_BYTES;
            is_scalar = false;
            break;
        case PROTOBUF_C_TYPE_FIXED32:
        case PROTOBUF_C_TYPE_SFIXED32:
        case PROTOBUF_C_TYPE_FLOAT:
            expected = WIRE_FIXED32;
            break;
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_SFIXED64:
        case PROTOBUF_C_TYPE_DOUBLE:
            expected = WIRE_FIXED64;
            break;
        default:
            break;
    }
    bool is_packed =
        is_scalar && field->label == PROTOBUF_C_LABEL_REPEATED && wire_type == WIRE_BYTES;
    return wire_type == expected || is_packed;
}

// One field as it stands in the file.
typedef struct wire_field {
    const ProtobufCFieldDescriptor *field;  // NULL when the message knows none of this number
    unsigned number;
    unsigned wire_type;
    const uint8_t *start;  // of the tag
    const uint8_t *value;  // of the contents (behind the length, for WIRE_BYTES)
    size_t value_bytes;
} wire_field;

// Moves *cursor behind the group `number`, whose first tag was read.
static rondo_status skip_group(const wire_reducer *reducer, uint64_t number, const uint8_t **cursor,
                               const uint8_t *end) {
    uint64_t open[GROUP_DEPTH_MAX] = {number};
    size_t depth = 1;
    while (depth > 0) {
        const uint8_t *start = *cursor;
        uint64_t tag = 0;
        uint64_t size = 0;
        bool is_read = read_varint(cursor, end, &tag) && tag >> 3 != 0;
        switch (tag & 7) {
            case WIRE_VARINT:
                is_read = is_read && read_varint(cursor, end, &size);
                size = 0;
                break;
            case WIRE_FIXED64:
                size = 8;
                break;
            case WIRE_FIXED32:
                size = 4;
                break;
            case WIRE_BYTES:
                is_read = is_read && read_varint(cursor, end, &size);
                break;
            case WIRE_GROUP:
                is_read = is_read && depth < GROUP_DEPTH_MAX;
                if (is_read) {
                    open[depth++] = tag >> 3;
                }
                break;
            case WIRE_GROUP_END:
                is_read = is_read && tag >> 3 == open[--depth];
                break;
            default:
                is_read = false;
                break;
        }
        if (!is_read || size > (uint64_t)(end - *cursor)) {
            return fail_malformed(reducer, start, "a group is cut off or nested wrongly");
        }
        *cursor += size;
    }
    return RONDO_STATUS_OK;
}

// Reads one field and moves *cursor behind it. `descriptor`: of the message; NULL: unknown.
static rondo_status read_field(const wire_reducer *reducer,
                               const ProtobufCMessageDescriptor *descriptor, const uint8_t **cursor,
                               const uint8_t *end, wire_field *out_field) {
    const uint8_t *at = *cursor;
    uint64_t tag = 0;
    uint64_t length = 0;
    *out_field = (wire_field){.start = at};
    if (!read_varint(&at, end, &tag) || tag >> 3 == 0 || tag >> 32 != 0) {
        return fail_malformed(reducer, out_field->start, "bad field number");
    }
    out_field->wire_type = (unsigned)(tag & 7);
    out_field->value = at;
    switch (out_field->wire_type) {
        case WIRE_VARINT: {
            uint64_t ignored = 0;
            if (!read_varint(&at, end, &ignored)) {
                return fail_malformed(reducer, out_field->start, "a number is cut off or too long");
            }
            length = (uint64_t)(at - out_field->value);
            break;
        }
        case WIRE_FIXED64:
            length = 8;
            break;
        case WIRE_FIXED32:
            length = 4;
            break;
        case WIRE_BYTES:
            if (!read_varint(&at, end, &length)) {
                return fail_malformed(reducer, out_field->start, "a length is cut off or too long");
            }
            out_field->value = at;
            break;
        case WIRE_GROUP:
            RETURN_IF_ERROR(skip_group(reducer, tag >> 3, &at, end));
            length = (uint64_t)(at - out_field->value);
            break;
        default:
            return fail_malformed(reducer, out_field->start, "unknown wire type");
    }
    if (length > (uint64_t)(end - out_field->value)) {
        return fail_malformed(reducer, out_field->start,
                              "a field reaches beyond its end (is the file cut off?)");
    }
    out_field->value_bytes = (size_t)length;
    *cursor = out_field->value + length;
    out_field->number = (unsigned)(tag >> 3);
    out_field->field = descriptor != NULL
                           ? protobuf_c_message_descriptor_get_field(descriptor, out_field->number)
                           : NULL;
    if (out_field->field != NULL && !is_wire_type_right(out_field->field, out_field->wire_type)) {
        return RONDO_FAIL(BAD_DATA, "malformed protobuf at byte %zu: field \"%s\" of another type",
                          (size_t)(out_field->start - reducer->start), out_field->field->name);
    }
    return RONDO_STATUS_OK;
}

static bool is_raw_data(const ProtobufCMessageDescriptor *descriptor,
                        const ProtobufCFieldDescriptor *field) {
    return descriptor == &onnx__tensor_proto__descriptor && strcmp(field->name, "raw_data") == 0;
}

static rondo_status append_reference(wire_reducer *reducer, const wire_field *field) {
    rondo__wire_reference reference = {
        .offset = (uint64_t)(field->value - reducer->start),
        .byte_count = field->value_bytes,
    };
    uint8_t length = sizeof(reference);
    uint8_t bytes[sizeof(reference)];
    memcpy(bytes, &reference, sizeof(reference));
    // The tag of raw_data is one byte, but the file may have padded it: write it afresh.
    uint8_t tag = (uint8_t)(field->field->id << 3 | WIRE_BYTES);
    RETURN_IF_ERROR(append(reducer, &tag, 1));
    RETURN_IF_ERROR(append(reducer, &length, 1));
    return append(reducer, bytes, sizeof(bytes));
}

// A message as it stands in the file: in one part as a rule. A second part adds to the first.
typedef struct message_part {
    const uint8_t *start;
    const uint8_t *end;
} message_part;

typedef struct message_parts {
    message_part first;  // when there is one only
    message_part *list;  // otherwise
    size_t count, capacity;
} message_parts;

static const message_part *get_part(const message_parts *parts, size_t i) {
    return parts->count == 1 ? &parts->first : &parts->list[i];
}

static rondo_status add_part(message_parts *parts, const wire_field *field) {
    const message_part part = {field->value, field->value + field->value_bytes};
    if (parts->count == 0) {
        parts->first = part;
        parts->count = 1;
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(parts->list, parts->capacity, parts->count + 1));
    parts->list[0] = parts->first;
    parts->list[parts->count++] = part;
    return RONDO_STATUS_OK;
}

static bool is_same_choice(const ProtobufCFieldDescriptor *a, const ProtobufCFieldDescriptor *b) {
    return (a->flags & b->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
           a->quantifier_offset == b->quantifier_offset;
}

// Collects all parts of the message `wanted` of a message: the field that was just read, and those
// behind it, from `cursor` in part number `at` on.
static rondo_status collect_parts(wire_reducer *reducer,
                                  const ProtobufCMessageDescriptor *descriptor,
                                  const message_parts *outer, size_t at, const uint8_t *cursor,
                                  const wire_field *wanted, message_parts *out_parts) {
    bool has_rival = false;
    RETURN_IF_ERROR(add_part(out_parts, wanted));
    for (size_t i = at; i < outer->count; ++i) {
        const message_part *part = get_part(outer, i);
        cursor = i == at ? cursor : part->start;
        while (cursor < part->end) {
            wire_field field;
            RETURN_IF_ERROR(read_field(reducer, descriptor, &cursor, part->end, &field));
            if (field.field == wanted->field) {
                RETURN_IF_ERROR(count_unpacked(reducer, field.start, FIELD_COST_BYTES));
                RETURN_IF_ERROR(add_part(out_parts, &field));
            } else if (field.field != NULL && is_same_choice(field.field, wanted->field)) {
                has_rival = true;
            }
        }
    }
    // In a choice the last field counts and removes the others.
    return out_parts->count > 1 && has_rival
               ? fail_malformed(reducer, wanted->start, "a choice is made several times")
               : RONDO_STATUS_OK;
}

static rondo_status reduce_message(wire_reducer *reducer,
                                   const ProtobufCMessageDescriptor *descriptor,
                                   const message_parts *parts, int depth);

static rondo_status reduce_submessage(wire_reducer *reducer, const wire_field *field,
                                      const message_parts *parts, int depth) {
    static const uint8_t blank[PADDED_LENGTH_BYTES];
    uint8_t tag[2] = {(uint8_t)(field->field->id << 3 | WIRE_BYTES), 0};
    size_t tag_bytes = 1;
    if (field->field->id >= 16) {
        tag[0] |= 0x80;
        tag[1] = (uint8_t)(field->field->id >> 4);
        tag_bytes = 2;
    }
    RETURN_IF_ERROR(append(reducer, tag, tag_bytes));
    size_t length_at = reducer->reduced_count;
    RETURN_IF_ERROR(append(reducer, blank, sizeof(blank)));
    RETURN_IF_ERROR(reduce_message(reducer, field->field->descriptor, parts, depth + 1));
    size_t length = reducer->reduced_count - length_at - sizeof(blank);
    if (length > INT32_MAX) {
        return fail_malformed(reducer, field->start,
                              "a message of more than 2 GiB without tensors");
    }
    write_padded_length(reducer->reduced + length_at, length);
    return RONDO_STATUS_OK;
}

// Texts that the importer does not read.
static bool is_remark(const char *field) {
    static const char *const remarks[] = {"doc_string", "producer_name", "producer_version"};
    for (size_t i = 0; i < sizeof remarks / sizeof remarks[0]; ++i) {
        if (strcmp(field, remarks[i]) == 0) {
            return true;
        }
    }
    return false;
}

// Refuses fields that the importer would misread.
static rondo_status check_field(const wire_reducer *reducer,
                                const ProtobufCMessageDescriptor *descriptor,
                                const wire_field *field) {
    // C strings would end there, and name something else.
    if (field->field != NULL && field->field->type == PROTOBUF_C_TYPE_STRING &&
        !is_remark(field->field->name) && field->value_bytes > 0 &&
        memchr(field->value, 0, field->value_bytes) != NULL) {
        return RONDO_FAIL(BAD_DATA, "malformed text at byte %zu: \"%s\" of a %s holds a zero byte",
                          (size_t)(field->start - reducer->start), field->field->name,
                          descriptor->short_name);
    }
    return RONDO_STATUS_OK;
}

static rondo_status reduce_scalar(wire_reducer *reducer,
                                  const ProtobufCMessageDescriptor *descriptor,
                                  const wire_field *field) {
    RETURN_IF_ERROR(count_unpacked(reducer, field->start, FIELD_COST_BYTES));
    if (is_raw_data(descriptor, field->field)) {
        return append_reference(reducer, field);
    }
    // A packed list unpacks into at most 8 bytes for each of its own.
    size_t factor = field->field->label == PROTOBUF_C_LABEL_REPEATED ? 8 : 1;
    size_t unpacked = field->value_bytes > SIZE_MAX / 8 ? SIZE_MAX : factor * field->value_bytes;
    RETURN_IF_ERROR(count_unpacked(reducer, field->start, unpacked));
    const uint8_t *end = field->value + field->value_bytes;
    return append(reducer, field->start, (size_t)(end - field->start));
}

// Reduces the field that was just read, at `cursor` of part number `at`. `seen` has a bit for each
// single message that is done, with all its parts: protobuf-c would merge them at a cost that grows
// with the square.
static rondo_status reduce_field(wire_reducer *reducer,
                                 const ProtobufCMessageDescriptor *descriptor,
                                 const message_parts *outer, size_t at, const uint8_t *cursor,
                                 const wire_field *field, uint64_t *seen, int depth) {
    if (field->field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return reduce_scalar(reducer, descriptor, field);
    }
    message_parts parts = {0};
    rondo_status status = RONDO_STATUS_OK;
    RETURN_IF_ERROR(count_unpacked(reducer, field->start, FIELD_COST_BYTES));
    if (field->field->label == PROTOBUF_C_LABEL_REPEATED) {
        status = add_part(&parts, field);
    } else {
        const uint64_t bit = UINT64_C(1) << ((size_t)(field->field - descriptor->fields) % 64);
        if ((*seen & bit) != 0) {
            return RONDO_STATUS_OK;
        }
        *seen |= bit;
        status = collect_parts(reducer, descriptor, outer, at, cursor, field, &parts);
    }
    if (status == RONDO_STATUS_OK) {
        status = reduce_submessage(reducer, field, &parts, depth);
    }
    rondo__free(parts.list);
    return status;
}

static rondo_status reduce_message(wire_reducer *reducer,
                                   const ProtobufCMessageDescriptor *descriptor,
                                   const message_parts *parts, int depth) {
    uint64_t seen = 0;
    if (depth > DEPTH_MAX) {
        return fail_malformed(reducer, get_part(parts, 0)->start, "messages are nested too deep");
    }
    RETURN_IF_ERROR(count_unpacked(reducer, get_part(parts, 0)->start, descriptor->sizeof_message));
    for (size_t i = 0; i < parts->count; ++i) {
        const message_part *part = get_part(parts, i);
        for (const uint8_t *cursor = part->start; cursor < part->end;) {
            wire_field field;
            RETURN_IF_ERROR(read_field(reducer, descriptor, &cursor, part->end, &field));
            RETURN_IF_ERROR(check_field(reducer, descriptor, &field));
            if (field.field != NULL) {
                RETURN_IF_ERROR(
                    reduce_field(reducer, descriptor, parts, i, cursor, &field, &seen, depth));
            }
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__wire_next(const uint8_t *start, const uint8_t **cursor, const uint8_t *end,
                              rondo__wire_part *out_part) {
    const wire_reducer reader = {.start = start};
    wire_field field;
    RETURN_IF_ERROR(read_field(&reader, NULL, cursor, end, &field));
    *out_part = (rondo__wire_part){.number = field.number,
                                   .is_bytes = field.wire_type == WIRE_BYTES,
                                   .bytes = field.value,
                                   .byte_count = field.value_bytes};
    if (field.wire_type == WIRE_VARINT) {
        const uint8_t *at = field.value;
        (void)read_varint(&at, end, &out_part->number_value);
    }
    return RONDO_STATUS_OK;
}

// ---- unpacking

static void *allocate(void *user_data, size_t byte_count) {
    bool *has_failed = user_data;
    void *address = rondo__malloc(byte_count);
    if (address == NULL) {
        *has_failed = true;
    }
    return address;
}

static void deallocate(void *user_data, void *address) {
    (void)user_data;
    rondo__free(address);
}

rondo_status rondo__wire_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
                                size_t byte_count, ProtobufCMessage **out_message) {
    static const uint8_t empty[1];
    *out_message = NULL;
    wire_reducer reducer = {
        .start = byte_count == 0 ? empty : bytes,
        .unpacked_limit = byte_count > SIZE_MAX / UNPACKED_FACTOR / 2
                              ? SIZE_MAX / 2
                              : UNPACKED_BASE_BYTES + UNPACKED_FACTOR * byte_count,
    };
    const message_parts whole = {.first = {reducer.start, reducer.start + byte_count}, .count = 1};
    rondo_status status = reduce_message(&reducer, descriptor, &whole, 0);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    bool has_failed = false;
    ProtobufCAllocator allocator = {
        .alloc = allocate, .free = deallocate, .allocator_data = &has_failed};
    *out_message = protobuf_c_message_unpack(descriptor, &allocator, reducer.reduced_count,
                                             reducer.reduced == NULL ? empty : reducer.reduced);
    if (*out_message == NULL) {
        status = has_failed ? RONDO_STATUS_NO_MEMORY
                            : RONDO_FAIL(BAD_DATA, "malformed protobuf: a %s does not unpack",
                                         descriptor->short_name);
    }

done:
    rondo__free(reducer.reduced);
    return status;
}

void rondo__wire_free(ProtobufCMessage *message) {
    bool ignored = false;
    ProtobufCAllocator allocator = {
        .alloc = allocate, .free = deallocate, .allocator_data = &ignored};
    if (message != NULL) {
        protobuf_c_message_free_unpacked(message, &allocator);
    }
}

rondo__wire_reference rondo__wire_get_reference(const ProtobufCBinaryData *raw_data) {
    rondo__wire_reference reference = {0};
    if (raw_data->len == sizeof(reference)) {
        memcpy(&reference, raw_data->data, sizeof(reference));
    }
    return reference;
}
