// tensor/storage.c — reference-counted bytes. One heap block holds the header and our own bytes.
#include "tensor/storage.h"

#include <stdatomic.h>
#include <stdint.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

enum { STORAGE_ALIGNMENT = 64 };

struct rondo_storage {
    atomic_size_t reference_count;
    void (*release)(void *user_data);  // NULL: the bytes are part of this block
    void *user_data;
    void *block;  // what the heap gave
};

_Static_assert(sizeof(rondo_storage) <= STORAGE_ALIGNMENT, "the header fits before the bytes");

rondo_status rondo__storage_create(size_t bytes, rondo_storage **out_storage, void **out_bytes) {
    *out_storage = NULL;
    *out_bytes = NULL;
    size_t total;
    if (!rondo__add_size(bytes, 2 * STORAGE_ALIGNMENT, &total)) {
        return RONDO_FAIL(NO_MEMORY, "a tensor of %zu bytes does not fit the address space", bytes);
    }
    // calloc, not an aligned allocation and memset: large blocks come zeroed from the system.
    char *block = rondo__calloc(1, total);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t skip = (size_t)(-(uintptr_t)block) & (STORAGE_ALIGNMENT - 1);
    void *header = block + skip;
    rondo_storage *storage = header;
    atomic_init(&storage->reference_count, 1);
    storage->block = block;
    *out_storage = storage;
    *out_bytes = block + skip + STORAGE_ALIGNMENT;
    return RONDO_STATUS_OK;
}

rondo_status rondo__storage_wrap(void (*release)(void *user_data), void *user_data,
                                 rondo_storage **out_storage) {
    *out_storage = NULL;
    rondo_storage *storage = rondo__calloc(1, sizeof *storage);
    if (storage == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    atomic_init(&storage->reference_count, 1);
    storage->release = release;
    storage->user_data = user_data;
    storage->block = storage;
    *out_storage = storage;
    return RONDO_STATUS_OK;
}

void rondo__storage_retain(rondo_storage *storage) {
    if (storage != NULL) {
        atomic_fetch_add_explicit(&storage->reference_count, 1, memory_order_relaxed);
    }
}

void rondo__storage_release(rondo_storage *storage) {
    if (storage == NULL ||
        atomic_fetch_sub_explicit(&storage->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (storage->release != NULL) {
        storage->release(storage->user_data);
    }
    rondo__free(storage->block);
}
