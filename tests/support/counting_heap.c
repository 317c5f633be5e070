// support/counting_heap.c — see the header.
// SPDX-License-Identifier: Apache-2.0
#include "support/counting_heap.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "rondo/allocator.h"

static atomic_size_t counts[2];  // all, large ones

static void note(size_t bytes) {
    atomic_fetch_add(&counts[0], 1);
    atomic_fetch_add(&counts[1], bytes >= COUNTING_HEAP_LARGE_BYTES ? 1 : 0);
}

static void *take(void *user_data, size_t bytes, size_t alignment) {
    void *address = NULL;
    (void)user_data;
    note(bytes);
    return posix_memalign(&address, alignment < sizeof address ? sizeof address : alignment,
                          bytes) == 0
               ? address
               : NULL;
}

static void *retake(void *user_data, void *address, size_t bytes) {
    (void)user_data;
    note(bytes);
    return realloc(address, bytes);
}

static void give(void *user_data, void *address) {
    (void)user_data;
    free(address);
}

bool counting_heap_install(void) {
    const rondo_allocator counting = {
        .struct_size = sizeof counting, .allocate = take, .reallocate = retake, .free = give};
    return rondo_set_allocator(&counting) == RONDO_STATUS_OK;
}

size_t counting_heap_count(bool is_large) {
    return atomic_load(&counts[is_large]);
}
