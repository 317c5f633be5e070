// kernel/weights/weight_slab.c — see weight_slab.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/weights/weight_slab.h"

#include "base/block.h"
#include "base/budget.h"
#include "base/checked.h"
#include "base/memory.h"

// The address sanitizer sees the ends of blocks, not of parts of one.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OWN_BLOCKS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define OWN_BLOCKS 1
#endif

enum {
    LINE_BYTES = 64,
    BYTES_MIN = 256 * 1024,
    BYTES_MAX = 32 * 1024 * 1024,
    LARGE_PAGE_BYTES = 2 * 1024 * 1024,
};

struct rondo__slab {
    rondo__slab *older;
    char *bytes;
    size_t capacity;
    size_t used;
    size_t count;  // of what was taken and not given back
};

// Not with less than what is wanted; otherwise as much as there is already.
static size_t choose_capacity(const rondo__slab_list *list, size_t wanted) {
#ifdef OWN_BLOCKS
    (void)list;
    return wanted;
#else
    size_t bytes = list->total_bytes > BYTES_MIN ? list->total_bytes : BYTES_MIN;
    bytes = bytes < BYTES_MAX ? bytes : BYTES_MAX;
    return bytes > wanted ? bytes : wanted;
#endif
}

static rondo__slab *create_slab(rondo__slab_list *list, size_t wanted) {
    const size_t capacity = choose_capacity(list, wanted);
    rondo__slab *slab = rondo__calloc(1, sizeof *slab);
    if (slab == NULL) {
        return NULL;
    }
    const size_t alignment = capacity >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : LINE_BYTES;
    rondo__budget *entered = rondo__budget_enter(NULL);
    slab->bytes = rondo__block_allocate(capacity, alignment);
    (void)rondo__budget_enter(entered);
    if (slab->bytes == NULL) {
        rondo__free(slab);
        return NULL;
    }
    slab->capacity = capacity;
    slab->older = list->newest;
    list->newest = slab;
    list->total_bytes += capacity;
    return slab;
}

void *rondo__slab_take(rondo__slab_list *list, size_t bytes, rondo__slab **out_slab) {
    rondo__slab *slab = list->newest;
    bytes = rondo__align_up(bytes > 0 ? bytes : 1, LINE_BYTES);
    if (slab == NULL || slab->capacity - slab->used < bytes) {
        slab = create_slab(list, bytes);
    }
    if (slab == NULL) {
        return NULL;
    }
    void *address = slab->bytes + slab->used;
    slab->used += bytes;
    slab->count += 1;
    *out_slab = slab;
    return address;
}

void rondo__slab_give_back(rondo__slab_list *list, rondo__slab *slab) {
    slab->count -= 1;
    if (slab->count > 0) {
        return;
    }
    rondo__slab **link = &list->newest;
    while (*link != slab) {
        link = &(*link)->older;
    }
    *link = slab->older;
    list->total_bytes -= slab->capacity;
    rondo__block_free(slab->bytes);
    rondo__free(slab);
}
