// base/file.h — whole files: mapped for reading, written atomically.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// A read-only file in memory. `bytes` is page aligned when mapped; NULL for an empty file.
typedef struct rondo__file {
    const uint8_t *bytes;
    size_t byte_count;
} rondo__file;

// Errors:    UNAVAILABLE (path and reason in the message), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__file_map(const char *path, rondo__file *out_file);
void rondo__file_unmap(rondo__file *file);

// Maps the file that `location` names from the folder of the file `path`, as external data of a
// model is named. It must lie in that folder or below it; where `path` is a symbolic link, the
// folder of what it leads to counts as well, since model caches are built from links. Links inside
// are followed, links that lead out are not, also when they are changed meanwhile.
//
// Errors:    BAD_DATA (the location is empty, absolute, or leads out of the folder), UNAVAILABLE
//            (no such file, not a regular one), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__file_map_beside(const char *path, const char *location,
                                                   rondo__file *out_file);

// Writes to a temporary name beside `path` and renames, so that readers see all or nothing.
//
// Errors:    UNAVAILABLE, NO_MEMORY.
// Threads:   safe, also across processes.
RONDO_MUST_USE rondo_status rondo__file_write_atomic(const char *path, const void *bytes,
                                                     size_t byte_count);

// The same for bytes that lie in parts.
typedef struct rondo__file_part {
    const void *bytes;
    size_t byte_count;
} rondo__file_part;
RONDO_MUST_USE rondo_status rondo__file_write_parts(const char *path, const rondo__file_part *parts,
                                                    size_t part_count);

// Makes a directory and its parents; one that exists is fine.
//
// Errors:    UNAVAILABLE.
RONDO_MUST_USE rondo_status rondo__directory_create(const char *path);
