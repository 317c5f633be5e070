// support/counting_heap.h — malloc as the library's allocator, which counts what it gives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { COUNTING_HEAP_LARGE_BYTES = 16 * 1024 };

// Before the library has taken memory.
bool counting_heap_install(void);
// Blocks given so far, moved ones too; with is_large those of at least so many bytes alone.
size_t counting_heap_count(bool is_large);
