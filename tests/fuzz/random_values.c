// Values for declared inputs, the same in each run.
// SPDX-License-Identifier: Apache-2.0
#include "random_values.h"

#include <stdint.h>

enum { ITEM_COUNT = 3, STRING_COUNT_MAX = 1024 };

static bool make_strings(const rondo_shape *shape, rondo_tensor *out_tensor) {
    static const rondo_string words[] = {{"one", 3}, {"", 0},    {"-1.5e3", 6}, {"\xc3\xa4\xff", 3},
                                         {"A b", 3}, {"one", 3}, {"a\0b", 3}};
    rondo_string strings[STRING_COUNT_MAX];
    const int64_t count = rondo_shape_get_count(shape);
    for (int64_t i = 0; i < count && i < STRING_COUNT_MAX; ++i) {
        strings[i] = words[i % 7];
    }
    return count <= STRING_COUNT_MAX &&
           rondo_tensor_init_strings(shape, strings, out_tensor) == RONDO_STATUS_OK;
}

// Small numbers of any sign, the same bytes for each type.
static bool make_numbers(rondo_dtype dtype, const rondo_shape *shape, rondo_tensor *out_tensor) {
    if (rondo_tensor_init(dtype, shape, out_tensor) != RONDO_STATUS_OK) {
        return false;
    }
    uint8_t *bytes = out_tensor->data;
    const size_t element_bytes = rondo_dtype_get_bytes(dtype);
    const size_t byte_count = rondo_tensor_get_bytes(out_tensor);
    for (size_t i = 0; i < byte_count; i += element_bytes) {
        bytes[i] = (uint8_t)(dtype == RONDO_DTYPE_BOOL ? i % 2 : i % 5);
    }
    return true;
}

static bool make_items(rondo_dtype dtype, const rondo_dtype *item_dtype, rondo_tensor *out_tensor) {
    const rondo_dtype below[2] = {item_dtype[1], RONDO_DTYPE_NONE};
    rondo_tensor items[ITEM_COUNT] = {0};
    bool is_made = item_dtype[0] != RONDO_DTYPE_OPTIONAL && item_dtype[0] != dtype;
    const size_t count = dtype == RONDO_DTYPE_SEQUENCE ? ITEM_COUNT : 1;
    for (size_t i = 0; i < count && is_made; ++i) {
        const rondo_shape shape = {.rank = 2, .extent = {2, (int64_t)i + 1}};
        is_made = fuzz_make_value(item_dtype[0], below, &shape, &items[i]);
    }
    if (is_made) {
        is_made = (dtype == RONDO_DTYPE_SEQUENCE
                       ? rondo_tensor_init_sequence(items, count, out_tensor)
                       : rondo_tensor_init_optional(&items[0], out_tensor)) == RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < ITEM_COUNT; ++i) {
        rondo_tensor_deinit(&items[i]);
    }
    return is_made;
}

bool fuzz_make_value(rondo_dtype dtype, const rondo_dtype *item_dtype, const rondo_shape *shape,
                     rondo_tensor *out_tensor) {
    switch (dtype) {
        case RONDO_DTYPE_NONE:
            return false;
        case RONDO_DTYPE_STRING:
            return make_strings(shape, out_tensor);
        case RONDO_DTYPE_SEQUENCE:
        case RONDO_DTYPE_OPTIONAL:
            return make_items(dtype, item_dtype, out_tensor);
        default:
            return make_numbers(dtype, shape, out_tensor);
    }
}
