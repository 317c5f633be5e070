// tensor/tensor.c — shapes and dense tensors.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/tensor.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/elements.h"
#include "tensor/storage.h"

int64_t rondo_shape_get_count(const rondo_shape *shape) {
    if (shape == NULL || shape->rank < 0 || shape->rank > RONDO_RANK_MAX) {
        return -1;
    }
    // An overflow counts even when another extent is 0: such a shape is never meant.
    int64_t count = 1;
    bool is_empty = false;
    for (int32_t i = 0; i < shape->rank; ++i) {
        int64_t extent = shape->extent[i];
        if (extent < 0) {
            return -1;
        }
        if (extent == 0) {
            is_empty = true;
            continue;
        }
        if (!rondo__mul_i64(count, extent, &count)) {
            return -1;
        }
    }
    return is_empty ? 0 : count;
}

bool rondo_shape_is_equal(const rondo_shape *a, const rondo_shape *b) {
    if (a == NULL || b == NULL || a->rank != b->rank) {
        return false;
    }
    for (int32_t i = 0; i < a->rank && i < RONDO_RANK_MAX; ++i) {
        if (a->extent[i] != b->extent[i]) {
            return false;
        }
    }
    return true;
}

char *rondo_shape_format(const rondo_shape *shape, char *buffer, size_t buffer_bytes) {
    if (buffer == NULL || buffer_bytes == 0) {
        return buffer;
    }
    buffer[0] = '\0';
    size_t used = 0;
    int32_t rank = shape == NULL || shape->rank < 0 ? 0 : shape->rank;
    if (rank > RONDO_RANK_MAX) {
        rank = RONDO_RANK_MAX;
    }
    for (int32_t i = -1; i <= rank && used < buffer_bytes - 1; ++i) {
        int length = 0;
        if (i < 0) {
            length = snprintf(buffer, buffer_bytes, "[");
        } else if (i == rank) {
            length = snprintf(buffer + used, buffer_bytes - used, "]");
        } else {
            length = snprintf(buffer + used, buffer_bytes - used, "%s%lld", i > 0 ? ", " : "",
                              (long long)shape->extent[i]);
        }
        used += length > 0 ? (size_t)length : 0;
    }
    return buffer;
}

static rondo_status measure(rondo_dtype dtype, const rondo_shape *shape, size_t *out_bytes) {
    size_t element_bytes = rondo_dtype_get_bytes(dtype);
    if (dtype == RONDO_DTYPE_SEQUENCE || dtype == RONDO_DTYPE_OPTIONAL) {
        return RONDO_FAIL_AS("rondo_tensor_init", INVALID,
                             "a tensor of tensors is made with rondo_tensor_init_%s",
                             rondo_dtype_get_name(dtype));
    }
    if (element_bytes == 0) {
        return RONDO_FAIL_AS("rondo_tensor_init", INVALID,
                             "%d is not an element type; use a RONDO_DTYPE_ value", (int)dtype);
    }
    int64_t count = rondo_shape_get_count(shape);
    if (count < 0 || !rondo__mul_size((size_t)count, element_bytes, out_bytes)) {
        char text[192];
        return RONDO_FAIL_AS("rondo_tensor_init", INVALID,
                             "shape %s of rank %d is no shape: the rank is 0 to %d, extents are at "
                             "least 0 and their product fits 63 bits",
                             rondo_shape_format(shape, text, sizeof text), (int)shape->rank,
                             (int)RONDO_RANK_MAX);
    }
    return RONDO_STATUS_OK;
}

// Copies with the unused extents zeroed, so that equal shapes have equal bytes.
static rondo_shape tidy(const rondo_shape *shape) {
    rondo_shape result = {.rank = shape->rank};
    for (int32_t i = 0; i < shape->rank; ++i) {
        result.extent[i] = shape->extent[i];
    }
    return result;
}

rondo_status rondo__tensor_init_shell(rondo_dtype dtype, const rondo_shape *shape,
                                      rondo_tensor *out_tensor) {
    size_t bytes;
    const rondo_shape wanted = *shape;
    *out_tensor = (rondo_tensor){0};
    RETURN_IF_ERROR(measure(dtype, &wanted, &bytes));
    *out_tensor = (rondo_tensor){.dtype = dtype, .shape = tidy(&wanted)};
    return RONDO_STATUS_OK;
}

typedef rondo_status (*create_function)(size_t bytes, rondo_storage **out_storage,
                                        void **out_bytes);

static rondo_status init(rondo_dtype dtype, const rondo_shape *shape, create_function create,
                         rondo_tensor *out_tensor) {
    rondo_shape wanted = *shape;  // the shape may lie inside *out_tensor
    *out_tensor = (rondo_tensor){0};
    size_t bytes;
    RETURN_IF_ERROR(measure(dtype, &wanted, &bytes));
    rondo_storage *storage;
    void *data;
    rondo_status status = create(bytes, &storage, &data);
    if (status != RONDO_STATUS_OK) {
        char text[192];
        rondo__error_prefix("a tensor %s %s", rondo_dtype_get_name(dtype),
                            rondo_shape_format(&wanted, text, sizeof text));
        return status;
    }
    *out_tensor =
        (rondo_tensor){.dtype = dtype, .shape = tidy(&wanted), .data = data, .storage = storage};
    return RONDO_STATUS_OK;
}

rondo_status rondo_tensor_init(rondo_dtype dtype, const rondo_shape *shape,
                               rondo_tensor *out_tensor) {
    if (out_tensor == NULL || shape == NULL) {
        return RONDO_FAIL(INVALID, "rondo_tensor_init needs a shape and a place for the tensor");
    }
    return init(dtype, shape, rondo__storage_create, out_tensor);
}

rondo_status rondo__tensor_init_result(rondo_dtype dtype, const rondo_shape *shape,
                                       rondo_tensor *out_tensor) {
    return init(dtype, shape, rondo__storage_create_result, out_tensor);
}

rondo_status rondo__tensor_init_storage(rondo_dtype dtype, const rondo_shape *shape, void *data,
                                        rondo_storage *storage, rondo_tensor *out_tensor) {
    rondo_shape wanted = *shape;
    *out_tensor = (rondo_tensor){0};
    size_t bytes;
    RETURN_IF_ERROR(measure(dtype, &wanted, &bytes));
    if (data == NULL && bytes != 0) {
        return RONDO_FAIL(INVALID, "a tensor of %zu bytes needs an address", bytes);
    }
    rondo__storage_retain(storage);
    *out_tensor =
        (rondo_tensor){.dtype = dtype, .shape = tidy(&wanted), .data = data, .storage = storage};
    return RONDO_STATUS_OK;
}

bool rondo_tensor_is_on_host(const rondo_tensor *tensor) {
    return tensor == NULL || tensor->device == NULL || rondo_device_is_host(tensor->device);
}

const char *rondo__tensor_get_place(const rondo_tensor *tensor) {
    return tensor->device != NULL ? rondo_device_get_name(tensor->device) : "host memory";
}

void rondo_tensor_share(const rondo_tensor *tensor, rondo_tensor *out_tensor) {
    if (out_tensor == NULL) {
        return;
    }
    rondo_tensor copy = tensor != NULL ? *tensor : (rondo_tensor){0};
    rondo__storage_retain(copy.storage);
    *out_tensor = copy;
}

void rondo_tensor_deinit(rondo_tensor *tensor) {
    if (tensor == NULL) {
        return;
    }
    rondo__storage_release(tensor->storage);
    *tensor = (rondo_tensor){0};
}

size_t rondo_tensor_get_bytes(const rondo_tensor *tensor) {
    int64_t count = tensor != NULL ? rondo_shape_get_count(&tensor->shape) : 0;
    size_t bytes;
    if (count <= 0 ||
        !rondo__mul_size((size_t)count, rondo_dtype_get_bytes(tensor->dtype), &bytes)) {
        return 0;
    }
    return bytes;
}
