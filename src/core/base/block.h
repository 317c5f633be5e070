// base/block.h — host memory for what may be large: tensors, packed weights, arenas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// Zero-filled bytes, counted against the thread's budget (base/budget.h). A large block is a
// mapping of its own, so that freeing it gives the memory back to the system. Inside the heap it
// would stay with the process behind any small allocation made later: measured after sixteen plans,
// four fifths of what they had used.
//
// alignment  a power of two.
//
// Errors:    NULL, with a record (NO_MEMORY).
// Ownership: free with rondo__block_free. NULL is fine there.
void *rondo__block_allocate(size_t bytes, size_t alignment);
// The same for a result of a run, which the next run wants as well: its bytes are not set, and some
// such blocks are kept when they are freed (base/memory.h), since faults of fresh pages take longer
// than most ops that write them.
void *rondo__block_allocate_result(size_t bytes, size_t alignment);
void rondo__block_free(void *block);
