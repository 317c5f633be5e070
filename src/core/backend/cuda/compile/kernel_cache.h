// backend/cuda/compile/kernel_cache.h — compiled kernels on disk, by content.
//
// An entry's name is the hash of everything that decides its content (text, options, compiler
// version, architecture), so it never goes stale; a changed text is another entry. Files carry a
// checksum and are written whole, so that a damaged or half-written one counts as absent. Where the
// folder cannot be written the cache does nothing, quietly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backend/cuda/compile/nvrtc.h"
#include "base/hash.h"

// The folder: RONDO_CACHE_DIR, else XDG_CACHE_HOME/rondo, else HOME/.cache/rondo. An empty
// RONDO_CACHE_DIR turns the cache off.
//
// Returns:   false when there is none, or the path does not fit.
bool rondo__kernel_cache_get_folder(char *out_path, size_t path_bytes);

// Looks an entry up.
//
// Returns:   false when there is no sound entry; the error record is as before.
// Ownership: free *out_image with rondo__cuda_image_deinit.
// Threads:   safe, also across processes.
bool rondo__kernel_cache_load(rondo__hash128 key, rondo__cuda_image *out_image);

// Stores an entry as well as it goes; the error record is as before.
//
// Threads:   safe, also across processes.
void rondo__kernel_cache_store(rondo__hash128 key, const rondo__cuda_image *image);
