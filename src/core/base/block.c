// base/block.c — see block.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/block.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/budget.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

// From here on a block is a mapping of its own. Zeroing as many bytes takes as long as the faults
// of fresh pages.
enum { MAPPED_BYTES_MIN = 256 * 1024 };

// Sanitizers watch the heap, not mappings.
#if defined(__SANITIZE_ADDRESS__)
enum { CAN_MAP = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
enum { CAN_MAP = 0 };
#else
enum { CAN_MAP = 1 };
#endif
#else
enum { CAN_MAP = 1 };
#endif

// Stands directly before a block.
typedef struct block_header {
    rondo__budget *budget;  // retained
    void *base;             // what the heap or the system gave
    size_t total_bytes;     // from `base` on; what counts against the budget
    bool is_mapped;
    bool is_result;
    rondo__owner owner;
} block_header;

static void *take_bytes(size_t total, bool is_mapped, bool is_result) {
    return !is_mapped  ? rondo__calloc(1, total)
           : is_result ? rondo__memory_map_again(total)
                       : rondo__memory_map(total);
}

static void *allocate(size_t bytes, size_t alignment, bool is_result) {
    size_t total;
    alignment = alignment < sizeof(block_header) ? sizeof(block_header) : alignment;
    if (!rondo__add_size(bytes, 2 * alignment, &total)) {
        (void)RONDO_FAIL_AS("malloc", NO_MEMORY, "cannot allocate 1 x %zu bytes of host memory",
                            bytes);
        return NULL;
    }
    rondo__budget *budget = rondo__budget_get_entered();
    const rondo__owner owner = rondo__budget_get_owner();
    if (!rondo__budget_take(budget, owner, total)) {
        return NULL;
    }
    const bool is_mapped = CAN_MAP && total >= MAPPED_BYTES_MIN;
    char *base = take_bytes(total, is_mapped, is_result);
    if (base == NULL) {
        rondo__budget_give_back(budget, owner, total);
        return NULL;
    }
    rondo__budget_retain(budget);
    // The first aligned place that leaves room for the header.
    size_t skip = (size_t)(-(uintptr_t)base) & (alignment - 1);
    skip += skip < sizeof(block_header) ? alignment : 0;
    block_header header = {.budget = budget,
                           .base = base,
                           .total_bytes = total,
                           .is_mapped = is_mapped,
                           .is_result = is_result,
                           .owner = owner};
    memcpy(base + skip - sizeof header, &header, sizeof header);
    return base + skip;
}

void *rondo__block_allocate(size_t bytes, size_t alignment) {
    return allocate(bytes, alignment, false);
}

void *rondo__block_allocate_result(size_t bytes, size_t alignment) {
    return allocate(bytes, alignment, true);
}

void rondo__block_free(void *block) {
    if (block == NULL) {
        return;
    }
    block_header header;
    memcpy(&header, (char *)block - sizeof header, sizeof header);
    if (header.is_mapped && header.is_result) {
        rondo__memory_unmap_later(header.base, header.total_bytes);
    } else if (header.is_mapped) {
        rondo__memory_unmap(header.base, header.total_bytes);
    } else {
        rondo__free(header.base);
    }
    rondo__budget_give_back(header.budget, header.owner, header.total_bytes);
    rondo__budget_release(header.budget);
}
