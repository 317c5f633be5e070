// base/memory.h — every heap allocation of the library goes through here, so that tests can fail
// the nth.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// Each writes an error record (NO_MEMORY) and returns NULL on failure. Size 0 gives a unique
// address.
void *rondo__malloc(size_t bytes);
void *rondo__calloc(size_t count, size_t bytes);  // checked product, zero-filled
void *rondo__realloc(void *address, size_t bytes);
void *rondo__malloc_aligned(size_t bytes, size_t alignment);  // free with rondo__free

enum { RONDO__CACHE_LINE_BYTES = 64 };
// Zeroed, from the start of a line of the processor's cache on; free with rondo__free.
void *rondo__calloc_lines(size_t bytes);

char *rondo__strdup(const char *text);
char *rondo__strndup(const char *text, size_t length);
RONDO_PRINTF(1, 2) char *rondo__strformat(const char *format, ...);
void rondo__free(void *address);

// Takes zero-filled pages of a mapping of their own; the second call gives them back, with the same
// size. Callers with large memory use base/block.h.
//
// Errors:    NULL, with a record (NO_MEMORY).
void *rondo__memory_map(size_t bytes);
void rondo__memory_unmap(void *address, size_t bytes);

enum {
    RONDO__KEPT_MAPPINGS = 4,
    RONDO__KEPT_BYTES_MAX = 8 * 1024 * 1024,
};
// The same for what is soon wanted again, with the same size: up to 4 mappings of at most 8 MiB are
// kept when they are given back. Their bytes are what they were.
void *rondo__memory_map_again(size_t bytes);
void rondo__memory_unmap_later(void *address, size_t bytes);

// Gives kept mappings, and free pages of the heap where it can do that, back to the system; for
// after much was freed.  Cost: up to some milliseconds.
void rondo__memory_trim(void);

// The array, grown to hold at least `needed` elements of `element_bytes`; new ones are zeroed. On
// failure array and capacity are as before.
void *rondo__array_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes);

// Grows the array in place: OK, or NO_MEMORY with a record. The arguments are evaluated more than
// once.
#define RONDO__ARRAY_RESERVE(array, capacity, needed)                              \
    ((array) = rondo__array_grow((array), &(capacity), (needed), sizeof *(array)), \
     (needed) <= (capacity) ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY)

// The same by no more than is needed, and new elements are not zeroed: for an array to which more
// may be appended than often are, each set as a whole.
void *rondo__array_make_room(void *array, size_t *capacity, size_t needed, size_t element_bytes);
#define RONDO__ARRAY_ROOM(array, capacity, needed)                                      \
    ((array) = rondo__array_make_room((array), &(capacity), (needed), sizeof *(array)), \
     (needed) <= (capacity) ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY)

// Bytes that this thread has taken with the functions above less those that it gave back. Memory of
// a program's own allocator does not count, because its size is not known. The difference between
// two calls is what the work between them keeps. A caller that makes something on the side, which
// is measured by itself, sets the number back.
int64_t rondo__memory_get_thread_bytes(void);
void rondo__memory_set_thread_bytes(int64_t bytes);

// Test hook: called before each allocation with its ordinal; returning true makes it fail. NULL:
// none.
typedef bool (*rondo__fault_function)(void *user_data);
void rondo__memory_set_fault(rondo__fault_function function, void *user_data);
// Allocations less frees since the first hook was set; not counted before.  Threads: safe.
int64_t rondo__memory_get_balance(void);
