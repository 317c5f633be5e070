// tensor/storage.c — reference-counted bytes. One block holds the header and our own bytes.
// SPDX-License-Identifier: Apache-2.0
#include "tensor/storage.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/block.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/use_count.h"

enum { STORAGE_ALIGNMENT = 64 };

struct rondo_storage {
    atomic_int reference_count;
    void (*release)(void *user_data);  // NULL: the bytes are part of this block
    void *user_data;
    bool is_block;  // header and bytes are one block; otherwise the header is alone, on the heap
};

_Static_assert(sizeof(rondo_storage) <= STORAGE_ALIGNMENT, "the header fits before the bytes");

static rondo_status create(size_t bytes, bool is_result, rondo_storage **out_storage,
                           void **out_bytes) {
    *out_storage = NULL;
    *out_bytes = NULL;
    size_t total;
    if (!rondo__add_size(bytes, STORAGE_ALIGNMENT, &total)) {
        return RONDO_FAIL(NO_MEMORY, "a tensor of %zu bytes does not fit the address space", bytes);
    }
    rondo_storage *storage = is_result ? rondo__block_allocate_result(total, STORAGE_ALIGNMENT)
                                       : rondo__block_allocate(total, STORAGE_ALIGNMENT);
    if (storage == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    storage->release = NULL;
    storage->user_data = NULL;
    atomic_init(&storage->reference_count, 1);
    storage->is_block = true;
    *out_storage = storage;
    *out_bytes = (char *)storage + STORAGE_ALIGNMENT;
    return RONDO_STATUS_OK;
}

rondo_status rondo__storage_create(size_t bytes, rondo_storage **out_storage, void **out_bytes) {
    return create(bytes, false, out_storage, out_bytes);
}

rondo_status rondo__storage_create_result(size_t bytes, rondo_storage **out_storage,
                                          void **out_bytes) {
    return create(bytes, true, out_storage, out_bytes);
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
    *out_storage = storage;
    return RONDO_STATUS_OK;
}

static void unmap(void *user_data) {
    rondo__file *file = user_data;
    rondo__file_unmap(file);
    rondo__free(file);
}

rondo_status rondo__storage_map_file(const char *path, const char *location,
                                     rondo_storage **out_storage, rondo__file *out_file) {
    *out_storage = NULL;
    *out_file = (rondo__file){0};
    rondo__file *file = rondo__calloc(1, sizeof *file);
    if (file == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = location == NULL ? rondo__file_map(path, file)
                                           : rondo__file_map_beside(path, location, file);
    if (status == RONDO_STATUS_OK) {
        status = rondo__storage_wrap(unmap, file, out_storage);
    }
    if (status != RONDO_STATUS_OK) {
        unmap(file);
        return status;
    }
    *out_file = *file;
    return RONDO_STATUS_OK;
}

void rondo__storage_retain(rondo_storage *storage) {
    if (storage != NULL) {
        rondo__reference_take(&storage->reference_count);
    }
}

void rondo__storage_release(rondo_storage *storage) {
    if (storage == NULL || !rondo__reference_drop(&storage->reference_count)) {
        return;
    }
    if (storage->release != NULL) {
        storage->release(storage->user_data);
    }
    if (storage->is_block) {
        rondo__block_free(storage);
    } else {
        rondo__free(storage);
    }
}
