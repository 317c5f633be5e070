// base/file.h — whole files: mapped for reading, written atomically.
#ifndef RONDO_BASE_FILE_H
#define RONDO_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// A read-only file in memory. `bytes` is page aligned when mapped; NULL for an empty file.
typedef struct rondo__file {
    const uint8_t *bytes;
    size_t byte_count;
} rondo__file;

// Errors:    UNAVAILABLE (path and reason in the message), NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__file_map(const char *path, rondo__file *out_file);
void rondo__file_unmap(rondo__file *file);

// Writes to a temporary name beside `path` and renames, so that readers see all or nothing.
//
// Errors:    UNAVAILABLE, NO_MEMORY.
// Threads:   safe, also across processes.
RONDO_MUST_USE rondo_status rondo__file_write_atomic(const char *path, const void *bytes,
                                                     size_t byte_count);

// Makes a directory and its parents; one that exists is fine.
//
// Errors:    UNAVAILABLE.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__directory_create(const char *path);

#endif  // RONDO_BASE_FILE_H
