// onnx/source.c — see source.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/source.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/storage.h"

struct rondo__source {
    rondo__file file;  // a view of what the storage owns
    rondo_storage *storage;
};

// `location` may be NULL: the file is `path` itself.
static rondo_status map(const char *path, const char *location, rondo__source **out_source) {
    *out_source = NULL;
    rondo__source *source = rondo__calloc(1, sizeof(*source));
    if (source == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status =
        rondo__storage_map_file(path, location, &source->storage, &source->file);
    if (status != RONDO_STATUS_OK) {
        rondo__free(source);
        return status;
    }
    *out_source = source;
    return RONDO_STATUS_OK;
}

rondo_status rondo__source_map(const char *path, rondo__source **out_source) {
    return map(path, NULL, out_source);
}

rondo_status rondo__source_map_beside(const char *path, const char *location,
                                      rondo__source **out_source) {
    return map(path, location, out_source);
}

void rondo__source_release(rondo__source *source) {
    if (source != NULL) {
        rondo__storage_release(source->storage);
        rondo__free(source);
    }
}

const uint8_t *rondo__source_get_bytes(const rondo__source *source) {
    return source->file.bytes;
}

size_t rondo__source_get_byte_count(const rondo__source *source) {
    return source->file.byte_count;
}

rondo_status rondo__source_borrow_tensor(rondo__source *source, size_t offset, rondo_dtype dtype,
                                         const rondo_shape *shape, rondo_tensor *out_tensor) {
    // The pages are read-only, and no code writes through a constant's address.
    void *data = (void *)((uintptr_t)source->file.bytes + offset);
    return rondo__tensor_init_storage(dtype, shape, data, source->storage, out_tensor);
}

// Long paths lose their beginning, so that the reason behind them still fits into the record.
enum { PATH_SHOWN_MAX = 72 };

void rondo__source_prefix_path(const char *path) {
    size_t length = strlen(path);
    bool is_cut = length > PATH_SHOWN_MAX;
    rondo__error_prefix("%s%s", is_cut ? "..." : "",
                        is_cut ? path + length - PATH_SHOWN_MAX : path);
}
