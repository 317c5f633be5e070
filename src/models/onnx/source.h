// onnx/source.h — the bytes that tensors come from: the model's own file and those beside it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"
#include "rondo/tensor.h"

// A file in memory, which lives as long as the importer and each tensor that points into it.
typedef struct rondo__source rondo__source;

// Maps a file.
//
// Errors:    UNAVAILABLE (cannot be opened), NO_MEMORY.
// Ownership: give up with rondo__source_release.
RONDO_MUST_USE rondo_status rondo__source_map(const char *path, rondo__source **out_source);
// The same for a file that `location` names beside the file `path`; see rondo__file_map_beside.
//
// Errors:    BAD_DATA (the location leads elsewhere), UNAVAILABLE, NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__source_map_beside(const char *path, const char *location,
                                                     rondo__source **out_source);
void rondo__source_release(rondo__source *source);  // NULL is fine

const uint8_t *rondo__source_get_bytes(const rondo__source *source);
size_t rondo__source_get_byte_count(const rondo__source *source);

// Makes a tensor of `byte_count` bytes at `offset`, which the caller has checked to lie inside and
// to fit dtype and shape. The tensor keeps `source` mapped.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__source_borrow_tensor(rondo__source *source, size_t offset,
                                                        rondo_dtype dtype, const rondo_shape *shape,
                                                        rondo_tensor *out_tensor);

// Puts the path in front of the latest failure's message.
void rondo__source_prefix_path(const char *path);
