// tensor/elements.c — tensors of strings and of tensors.
// SPDX-License-Identifier: Apache-2.0
#include "tensor/elements.h"

#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/storage.h"

bool rondo__dtype_is_float(rondo_dtype dtype) {
    return rondo__dtype_is_f32_or_f16(dtype) || dtype == RONDO_DTYPE_BF16 ||
           dtype == RONDO_DTYPE_F64;
}

bool rondo__dtype_is_f32_or_f16(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F16;
}

bool rondo__dtype_is_integer(rondo_dtype dtype) {
    return dtype >= RONDO_DTYPE_I8 && dtype <= RONDO_DTYPE_U64;
}

bool rondo__dtype_is_plain(rondo_dtype dtype) {
    return (dtype > RONDO_DTYPE_NONE && dtype < RONDO_DTYPE_STRING) ||
           (dtype > RONDO_DTYPE_OPTIONAL && dtype < RONDO_DTYPE_COUNT);
}

bool rondo__dtype_is_nested(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_SEQUENCE || dtype == RONDO_DTYPE_OPTIONAL;
}

// ---- strings ----------------------------------------------------------------------------------

rondo_string rondo__string_from_text(const char *text) {
    return (rondo_string){.data = text, .size = strlen(text)};
}

int rondo__string_compare(const rondo_string *a, const rondo_string *b) {
    size_t shorter = a->size < b->size ? a->size : b->size;
    int order = shorter > 0 ? memcmp(a->data, b->data, shorter) : 0;
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

// Bytes of the block: the elements, then each string with a zero behind it.
static rondo_status measure_strings(const rondo_string *strings, size_t count, size_t *out_bytes) {
    size_t total = 0;
    bool fits = rondo__mul_size(count, sizeof(rondo_string), &total);
    for (size_t i = 0; i < count && fits; ++i) {
        if (strings[i].data == NULL && strings[i].size > 0) {
            return RONDO_FAIL_AS("rondo_tensor_init_strings", INVALID,
                                 "string %zu has %zu bytes, but no address", i, strings[i].size);
        }
        fits = rondo__add_size(total, strings[i].size, &total) && rondo__add_size(total, 1, &total);
    }
    if (!fits || total > (size_t)PTRDIFF_MAX) {
        return RONDO_FAIL_AS("rondo_tensor_init_strings", NO_MEMORY,
                             "%zu strings do not fit the address space", count);
    }
    *out_bytes = total;
    return RONDO_STATUS_OK;
}

rondo_status rondo_tensor_init_strings(const rondo_shape *shape, const rondo_string *strings,
                                       rondo_tensor *out_tensor) {
    if (out_tensor == NULL || shape == NULL) {
        return RONDO_FAIL(INVALID,
                          "rondo_tensor_init_strings needs a shape and a place for the "
                          "tensor");
    }
    rondo_shape wanted = *shape;  // the shape may lie inside *out_tensor
    *out_tensor = (rondo_tensor){0};
    int64_t count = rondo_shape_get_count(&wanted);
    if (count > 0 && strings == NULL) {
        return RONDO_FAIL(INVALID, "strings is NULL, but the shape has %lld elements",
                          (long long)count);
    }
    size_t bytes = 0;
    rondo_storage *storage = NULL;
    void *block = NULL;
    if (count > 0) {
        RETURN_IF_ERROR(measure_strings(strings, (size_t)count, &bytes));
    }
    RETURN_IF_ERROR(rondo__storage_create(bytes, &storage, &block));
    rondo_status status =
        rondo__tensor_init_storage(RONDO_DTYPE_STRING, &wanted, block, storage, out_tensor);
    rondo_string *elements = block;
    char *text = (char *)block + (size_t)(count > 0 ? count : 0) * sizeof *elements;
    for (int64_t i = 0; status == RONDO_STATUS_OK && i < count; ++i) {
        elements[i] = (rondo_string){.data = text, .size = strings[i].size};
        if (strings[i].size > 0) {
            memcpy(text, strings[i].data, strings[i].size);
        }
        text += strings[i].size + 1;  // the storage is zeroed
    }
    rondo__storage_release(storage);
    return status;
}

rondo_status rondo__tensor_own_strings(rondo_tensor *tensor) {
    rondo_tensor owned;
    RETURN_IF_ERROR(rondo_tensor_init_strings(&tensor->shape, tensor->data, &owned));
    rondo_tensor_deinit(tensor);
    *tensor = owned;
    return RONDO_STATUS_OK;
}

// ---- sequences and optionals ------------------------------------------------------------------

typedef struct item_block {
    size_t count;
    rondo_tensor items[];
} item_block;

static void release_items(void *user_data) {
    item_block *block = user_data;
    for (size_t i = 0; i < block->count; ++i) {
        rondo_tensor_deinit(&block->items[i]);
    }
    rondo__free(block);
}

rondo_status rondo__nested_create(rondo_dtype dtype, size_t count, rondo_tensor *out_tensor,
                                  rondo_tensor **out_items) {
    *out_tensor = (rondo_tensor){0};
    *out_items = NULL;
    size_t bytes;
    if (!rondo__mul_size(count, sizeof(rondo_tensor), &bytes) ||
        !rondo__add_size(bytes, sizeof(item_block), &bytes) || bytes > (size_t)PTRDIFF_MAX) {
        return RONDO_FAIL(NO_MEMORY, "%zu tensors do not fit the address space", count);
    }
    item_block *block = rondo__calloc(1, bytes);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    block->count = count;
    rondo_storage *storage;
    rondo_status status = rondo__storage_wrap(release_items, block, &storage);
    if (status != RONDO_STATUS_OK) {
        rondo__free(block);
        return status;
    }
    *out_tensor = (rondo_tensor){.dtype = dtype,
                                 .shape = {.rank = 1, .extent = {(int64_t)count}},
                                 .data = block->items,
                                 .storage = storage};
    *out_items = block->items;
    return RONDO_STATUS_OK;
}

// Whether `item` can stand in a sequence, or in an optional.
static rondo_status check_item(const char *call, size_t index, const rondo_tensor *item,
                               bool may_be_sequence) {
    bool fits = rondo__dtype_is_plain(item->dtype) || item->dtype == RONDO_DTYPE_STRING ||
                (may_be_sequence && item->dtype == RONDO_DTYPE_SEQUENCE);
    if (!fits) {
        return RONDO_FAIL_AS(call, INVALID, "item %zu is %s; it must be a tensor%s", index,
                             rondo_dtype_get_name(item->dtype),
                             may_be_sequence ? " or a sequence" : "");
    }
    if (rondo_shape_get_count(&item->shape) < 0) {
        return RONDO_FAIL_AS(call, INVALID, "item %zu has no valid shape", index);
    }
    if (!rondo_tensor_is_on_host(item)) {
        return RONDO_FAIL_AS(call, INVALID,
                             "item %zu lies on %s, and sequences and optionals hold tensors in "
                             "host memory; copy it with rondo_tensor_copy",
                             index, rondo__tensor_get_place(item));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_tensor_init_sequence(const rondo_tensor *items, size_t count,
                                        rondo_tensor *out_tensor) {
    if (out_tensor == NULL || (items == NULL && count > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL", out_tensor == NULL ? "out_tensor" : "items");
    }
    rondo_tensor *copies;
    for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(check_item("rondo_tensor_init_sequence", i, &items[i], false));
        if (items[i].dtype != items[0].dtype) {
            return RONDO_FAIL(INVALID, "item %zu is %s, item 0 is %s; a sequence has one type", i,
                              rondo_dtype_get_name(items[i].dtype),
                              rondo_dtype_get_name(items[0].dtype));
        }
    }
    rondo_tensor sequence;
    RETURN_IF_ERROR(rondo__nested_create(RONDO_DTYPE_SEQUENCE, count, &sequence, &copies));
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor_share(&items[i], &copies[i]);
    }
    *out_tensor = sequence;
    return RONDO_STATUS_OK;
}

rondo_status rondo_tensor_init_optional(const rondo_tensor *item, rondo_tensor *out_tensor) {
    if (out_tensor == NULL) {
        return RONDO_FAIL(INVALID, "out_tensor is NULL");
    }
    if (item != NULL) {
        RETURN_IF_ERROR(check_item("rondo_tensor_init_optional", 0, item, true));
    }
    rondo_tensor *copy;
    rondo_tensor optional;
    RETURN_IF_ERROR(rondo__nested_create(RONDO_DTYPE_OPTIONAL, item != NULL, &optional, &copy));
    if (item != NULL) {
        rondo_tensor_share(item, copy);
    }
    *out_tensor = optional;
    return RONDO_STATUS_OK;
}

const rondo_tensor *rondo_tensor_get_item(const rondo_tensor *tensor, size_t index) {
    if (tensor == NULL || !rondo__dtype_is_nested(tensor->dtype) || tensor->data == NULL ||
        tensor->shape.rank != 1 || tensor->shape.extent[0] < 0 ||
        index >= (size_t)tensor->shape.extent[0]) {
        return NULL;
    }
    return (const rondo_tensor *)tensor->data + index;
}

// ---- copies -----------------------------------------------------------------------------------

static rondo_status copy_plain(const rondo_tensor *tensor, rondo_tensor *out_tensor) {
    if (tensor->dtype == RONDO_DTYPE_STRING) {
        return rondo_tensor_init_strings(&tensor->shape, tensor->data, out_tensor);
    }
    RETURN_IF_ERROR(rondo_tensor_init(tensor->dtype, &tensor->shape, out_tensor));
    size_t bytes = rondo_tensor_get_bytes(tensor);
    if (bytes > 0) {
        memcpy(out_tensor->data, tensor->data, bytes);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__tensor_copy(const rondo_tensor *tensor, rondo_tensor *out_tensor) {
    *out_tensor = (rondo_tensor){0};
    if (!rondo__dtype_is_nested(tensor->dtype)) {
        return copy_plain(tensor, out_tensor);
    }
    size_t count = tensor->shape.rank == 1 && tensor->shape.extent[0] > 0
                       ? (size_t)tensor->shape.extent[0]
                       : 0;
    const rondo_tensor *items = tensor->data;
    rondo_tensor copy;
    rondo_tensor *copies;
    RETURN_IF_ERROR(rondo__nested_create(tensor->dtype, count, &copy, &copies));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = rondo__tensor_copy(&items[i], &copies[i]);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(&copy);
        return status;
    }
    *out_tensor = copy;
    return RONDO_STATUS_OK;
}

rondo_status rondo__tensor_keep(const rondo_tensor *tensor, rondo_tensor *out_tensor) {
    if (tensor->storage == NULL) {
        return rondo__tensor_copy(tensor, out_tensor);
    }
    rondo_tensor_share(tensor, out_tensor);
    return RONDO_STATUS_OK;
}

static uint64_t add_bytes(uint64_t a, uint64_t b) {
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

uint64_t rondo__tensor_measure(const rondo_tensor *tensor) {
    uint64_t bytes = rondo_tensor_get_bytes(tensor);
    const int64_t count = tensor->data != NULL ? rondo_shape_get_count(&tensor->shape) : 0;
    for (int64_t i = 0; tensor->dtype == RONDO_DTYPE_STRING && i < count; ++i) {
        bytes = add_bytes(bytes, ((const rondo_string *)tensor->data)[i].size);
    }
    for (int64_t i = 0; rondo__dtype_is_nested(tensor->dtype) && i < count; ++i) {
        bytes = add_bytes(bytes, rondo__tensor_measure((const rondo_tensor *)tensor->data + i));
    }
    return bytes;
}

void rondo__tensors_free(rondo_tensor *tensors, size_t count) {
    for (size_t i = 0; tensors != NULL && i < count; ++i) {
        rondo_tensor_deinit(&tensors[i]);
    }
    rondo__free(tensors);
}
