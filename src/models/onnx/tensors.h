// onnx/tensors.h — TensorProto to rondo_tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx.pb-c.h"
#include "onnx/source.h"
#include "program/names.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

// Where raw bytes are found.
typedef struct rondo__tensor_reader {
    const uint8_t *bytes;   // what the references of rondo__wire_unpack count from
    rondo__source *source;  // the same bytes when tensors may keep pointing at them; NULL: copy
    const char *path;       // of the model, for external data beside it; NULL: refused
    size_t external_count, external_capacity;
    struct rondo__external_file *externals;  // files opened so far
    rondo__namemap external_index;           // location to index among them
    uint64_t external_bytes;                 // of all of them
} rondo__tensor_reader;

// Frees what the reader opened; tensors keep what they point into.
void rondo__tensor_reader_deinit(rondo__tensor_reader *reader);

// Converts one TensorProto.
//
// Bytes are only allocated once as many are known to be in the file, so that a shape cannot ask for
// more memory than the file is long.
//
// Errors:    BAD_DATA (dims, byte count, location), UNSUPPORTED (element type, segments),
//            UNAVAILABLE (external file), NO_MEMORY. Messages name the tensor.
// Ownership: caller frees *out_tensor with rondo_tensor_deinit.
// Threads:   one thread per reader.
RONDO_MUST_USE rondo_status rondo__tensor_read(rondo__tensor_reader *reader,
                                               const Onnx__TensorProto *proto,
                                               rondo_tensor *out_tensor);

// Why rondo__tensor_read answers UNSUPPORTED: "a tensor of int4: use int8".
const char *rondo__tensor_explain(const Onnx__TensorProto *proto);

// The element type of an ONNX data_type.
//
// Errors:    UNSUPPORTED (the message names the type and `owner`, for example "input \"x\"").
RONDO_MUST_USE rondo_status rondo__onnx_get_dtype(int32_t data_type, const char *owner,
                                                  rondo_dtype *out_dtype);

// The ONNX data_type of an element type; 0 (undefined) for those of no tensor.
int32_t rondo__onnx_from_dtype(rondo_dtype dtype);
