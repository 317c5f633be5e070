// base/write_struct.h — fills structs of callers that were compiled against another header.
// base/read_options.h reads structs that such callers have filled.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "rondo/status.h"

// Whether the library can work with a struct of `given` bytes, where its own has `bytes`: the same,
// or fewer, as in an older program.
//
// type        of the struct, for the record.
//
// Errors:    INVALID (a struct longer than ours, or one whose struct_size was not set).
RONDO_MUST_USE rondo_status rondo__check_struct_size(size_t given, size_t bytes, const char *call,
                                                     const char *type);

// Checks the caller's struct and zeroes what stands behind its struct_size.
//
// out         the address that the caller gave; may be NULL.
//
// Errors:    INVALID (NULL, or as rondo__check_struct_size); then nothing is written.
RONDO_MUST_USE rondo_status rondo__clear_struct(void *out, size_t bytes, const char *call,
                                                const char *type);

// How far apart the entries of a list lie that the caller has given room for: struct_size of the
// first. *out_stride is 0 where there is no room for any.
//
// Errors:    INVALID (NULL with a capacity, or as rondo__check_struct_size).
RONDO_MUST_USE rondo_status rondo__read_stride(const void *list, size_t capacity, size_t bytes,
                                               const char *call, const char *type,
                                               size_t *out_stride);

// Copies as much of `ours` as the caller's struct, which was cleared, has room for.
void rondo__write_struct(void *out, const void *ours);
