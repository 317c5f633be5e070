// base/library.h — shared libraries loaded when needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "rondo/status.h"

typedef struct rondo__library rondo__library;

// Opens the first of `names` that loads. Never closed while other threads may use it.
//
// reason     receives why none loaded (one line), always terminated.
// Errors:    UNAVAILABLE (record written), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__library_open(const char *const *names, size_t name_count,
                                                char *reason, size_t reason_bytes,
                                                rondo__library **out_library);
void *rondo__library_find(rondo__library *library, const char *symbol);  // NULL when absent
// Fills a struct of nothing but function pointers, named in their order. Returns the first name
// that is absent, or NULL.
const char *rondo__library_find_all(rondo__library *library, const char *const *names, size_t count,
                                    void *out_functions);
const char *rondo__library_get_path(const rondo__library *library);
void rondo__library_close(rondo__library *library);
