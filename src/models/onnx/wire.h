// onnx/wire.h — a look at serialized messages before protobuf-c unpacks them.
//
// protobuf-c copies every field, trusts the nesting depth to the C stack, and turns two bytes into
// a struct of hundreds. So a file is first walked once with the message descriptors at hand, and a
// reduced copy is written that
//   - holds no tensor bytes: the raw_data of each TensorProto becomes a rondo__wire_reference into
//     the original, which stays where it is (mapped, usually);
//   - holds no unknown fields (of a newer ONNX, or made up);
//   - is known to be well-formed down to the depth limit, and to unpack into bounded memory.
//
//        original  | node | node | initializer: dims, type, raw_data = 4 MiB of weights | ...
//        reduced   | node | node | initializer: dims, type, raw_data = {offset, 4 MiB}  | ...
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnx.pb-c.h"
#include "rondo/status.h"

// What raw_data of a reduced TensorProto holds: where the bytes lie in the original.
typedef struct rondo__wire_reference {
    uint64_t offset;
    uint64_t byte_count;
} rondo__wire_reference;

// Unpacks the serialized message `bytes`, of the type that `descriptor` describes, by way of its
// reduced form.
//
// Errors:    BAD_DATA (malformed, nested too deep, a field twice that can be there once, or far
//            more fields than bytes could sensibly hold), NO_MEMORY.
// Ownership: free *out_message with rondo__wire_free. It keeps no pointer into `bytes`.
// Cost:      one pass over all bytes but tensor contents, which are not touched; then protobuf-c's
//            two.
RONDO_MUST_USE rondo_status rondo__wire_unpack(const ProtobufCMessageDescriptor *descriptor,
                                               const uint8_t *bytes, size_t byte_count,
                                               ProtobufCMessage **out_message);

// One field of a message.
typedef struct rondo__wire_part {
    uint32_t number;
    bool is_bytes;  // a message, string, or packed list; otherwise a number
    const uint8_t *bytes;
    size_t byte_count;
    uint64_t number_value;  // of a varint; 0 otherwise
} rondo__wire_part;

// Reads the next field of a message for which there is no descriptor, and moves *cursor behind it.
// `start` is what messages count bytes from.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__wire_next(const uint8_t *start, const uint8_t **cursor,
                                             const uint8_t *end, rondo__wire_part *out_part);

// Frees a message from rondo__wire_unpack. NULL is fine.
void rondo__wire_free(ProtobufCMessage *message);

// Reads the reference that stands in a raw_data field of an unpacked message.
rondo__wire_reference rondo__wire_get_reference(const ProtobufCBinaryData *raw_data);
