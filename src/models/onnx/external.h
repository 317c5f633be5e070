// onnx/external.h — tensors whose bytes lie in files beside the model.
//
// A model may come from anywhere, so it must not make us read any file it likes: what a location
// leads to must lie in the model's own folder or below it; see rondo__file_map_beside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/tensors.h"

// A file that was opened for a tensor.
typedef struct rondo__external_file {
    char *location;
    rondo__source *source;
} rondo__external_file;

// A checked range of such a file.
typedef struct rondo__external_range {
    rondo__source *source;  // borrowed from the reader
    const uint8_t *bytes;
} rondo__external_range;

// Finds the `needed_bytes` of a tensor in its file.
//
// Errors:    BAD_DATA (location, offset or length wrong), UNAVAILABLE (no such file), UNSUPPORTED
//            (the model itself is in memory), NO_MEMORY.
// Threads:   one thread per reader.
RONDO_MUST_USE rondo_status rondo__external_find(rondo__tensor_reader *reader,
                                                 const Onnx__TensorProto *proto, const char *owner,
                                                 size_t needed_bytes,
                                                 rondo__external_range *out_range);

// Closes the reader's external files.
void rondo__external_deinit(rondo__tensor_reader *reader);
