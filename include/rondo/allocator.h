// rondo/allocator.h — whose heap the library uses.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_ALLOCATOR_H
#define RONDO_ALLOCATOR_H

#include <stddef.h>

#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// Functions of the program. All are called from any thread, also from those of the library, and
// must not call rondo functions.
typedef struct rondo_allocator {
    size_t struct_size;  // sizeof(rondo_allocator)
    // `bytes` is at least 1, `alignment` a power of two. NULL: there is no memory.
    void *(*allocate)(void *user_data, size_t bytes, size_t alignment);
    // Moves a block to one of another size, aligned as malloc does. NULL: the block is as it was.
    void *(*reallocate)(void *user_data, void *address, size_t bytes);
    void (*free)(void *user_data, void *address);
    void *user_data;  // must live as long as the process uses the library
} rondo_allocator;

// Makes the library take its host memory from the program, before it has taken any: as the first
// call. Memory that it maps as whole pages (large tensors, files), pinned memory, and memory of the
// driver and other libraries do not go through it.
//
// allocator  copied; all three functions are needed.
//
// Errors:    STATE (the library has taken memory already).
// Threads:   one, before others use the library.
RONDO_API RONDO_MUST_USE rondo_status rondo_set_allocator(const rondo_allocator *allocator);

RONDO_EXTERN_C_END

#endif  // RONDO_ALLOCATOR_H
