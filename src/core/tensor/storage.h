// tensor/storage.h — reference-counted bytes behind tensors: our own, or another owner's, which a
// function gives back when the last tensor is freed (a mapped file, say).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "base/file.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

// Allocates `bytes` zero-filled bytes aligned to 64.
//
// Errors:    NO_MEMORY.
// Ownership: one reference; give back with rondo__storage_release.
RONDO_MUST_USE rondo_status rondo__storage_create(size_t bytes, rondo_storage **out_storage,
                                                  void **out_bytes);
// The same with bytes that are not set, for a result of a run (rondo__block_allocate_result).
RONDO_MUST_USE rondo_status rondo__storage_create_result(size_t bytes, rondo_storage **out_storage,
                                                         void **out_bytes);

// Makes a storage for bytes of another owner. `release` (may be NULL) runs once with `user_data`
// when the last reference goes, on whichever thread that is. On failure it is not called.
//
// Errors:    NO_MEMORY.
// Ownership: one reference; give back with rondo__storage_release.
RONDO_MUST_USE rondo_status rondo__storage_wrap(void (*release)(void *user_data), void *user_data,
                                                rondo_storage **out_storage);

// Maps a file for as long as the storage lives: `path`, or where `location` is not NULL what that
// names beside it (rondo__file_map_beside).
//
// out_file   a view of the bytes, which the storage owns.
//
// Errors:    those of rondo__file_map and rondo__file_map_beside.
// Ownership: one reference; give back with rondo__storage_release.
RONDO_MUST_USE rondo_status rondo__storage_map_file(const char *path, const char *location,
                                                    rondo_storage **out_storage,
                                                    rondo__file *out_file);

void rondo__storage_retain(rondo_storage *storage);   // NULL is fine; threads: safe
void rondo__storage_release(rondo_storage *storage);  // NULL is fine; threads: safe

// A tensor over bytes that `storage` keeps alive; takes one more reference (storage may be NULL:
// the caller keeps `data` alive).
//
// Errors:    INVALID (dtype, shape).
// Ownership: free with rondo_tensor_deinit.
RONDO_MUST_USE rondo_status rondo__tensor_init_storage(rondo_dtype dtype, const rondo_shape *shape,
                                                       void *data, rondo_storage *storage,
                                                       rondo_tensor *out_tensor);

// rondo_tensor_init with bytes that are not set, for a result of a run.
//
// Errors:    INVALID (dtype, shape); NO_MEMORY.
// Ownership: free with rondo_tensor_deinit.
RONDO_MUST_USE rondo_status rondo__tensor_init_result(rondo_dtype dtype, const rondo_shape *shape,
                                                      rondo_tensor *out_tensor);

// A tensor with dtype and shape, and no bytes yet.
//
// Errors:    INVALID (dtype, shape).
RONDO_MUST_USE rondo_status rondo__tensor_init_shell(rondo_dtype dtype, const rondo_shape *shape,
                                                     rondo_tensor *out_tensor);
