// SPDX-License-Identifier: Apache-2.0

#include "random_tensor.h"

#include <stdlib.h>
#include <string.h>

#include "tensor_text.h"

// SplitMix64: good enough for test data, and the same everywhere.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void store_random(rondo_dtype dtype, void *data, size_t index, uint64_t bits) {
    const float real = (float)(bits >> 40) * (1.0f / 8388608.0f) - 1.0f;  // 24 bits: [-1, 1)
    uint32_t real_bits;
    memcpy(&real_bits, &real, sizeof real_bits);
    switch (dtype) {
        case RONDO_DTYPE_F32:
            ((float *)data)[index] = real;
            break;
        case RONDO_DTYPE_F64:
            ((double *)data)[index] = (double)real;
            break;
        case RONDO_DTYPE_F16:
            ((uint16_t *)data)[index] = rondo_f16_from_float(real);
            break;
        case RONDO_DTYPE_BF16:
            ((uint16_t *)data)[index] = (uint16_t)(real_bits >> 16);
            break;
        case RONDO_DTYPE_C64:
            ((float *)data)[2 * index] = real;
            ((float *)data)[2 * index + 1] = -real;
            break;
        case RONDO_DTYPE_C128:
            ((double *)data)[2 * index] = (double)real;
            ((double *)data)[2 * index + 1] = -(double)real;
            break;
        default: {
            if (cli_is_narrow_float(dtype)) {
                ((uint8_t *)data)[index] = rondo_narrow_from_float(dtype, real);
                break;
            }
            const size_t width = rondo_dtype_get_bytes(dtype);
            const uint64_t bit = bits >> 63;
            memcpy((char *)data + index * width, &bit, width);
            break;
        }
    }
}

static rondo_status init_strings(const rondo_shape *shape, uint64_t seed,
                                 rondo_tensor *out_tensor) {
    uint64_t state = seed;
    const int64_t count = rondo_shape_get_count(shape);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_string *strings = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof *strings);
    char(*digits)[2] = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof *digits);
    if (strings == NULL || digits == NULL) {
        goto free_lists;
    }
    for (int64_t i = 0; i < count; i++) {
        const unsigned number = (unsigned)(next_random(&state) % 100);
        digits[i][0] = (char)('0' + number / 10);
        digits[i][1] = (char)('0' + number % 10);
        strings[i] = number < 10 ? (rondo_string){.data = &digits[i][1], .size = 1}
                                 : (rondo_string){.data = digits[i], .size = 2};
    }
    status = rondo_tensor_init_strings(shape, strings, out_tensor);

free_lists:
    free(strings);
    free(digits);
    return status;
}

rondo_status cli_random_init(rondo_dtype dtype, const rondo_shape *shape, uint64_t seed,
                             rondo_tensor *out_tensor) {
    uint64_t state = seed;
    if (dtype == RONDO_DTYPE_STRING) {
        return init_strings(shape, seed, out_tensor);
    }
    const rondo_status status = rondo_tensor_init(dtype, shape, out_tensor);
    const int64_t count = status == RONDO_STATUS_OK ? rondo_shape_get_count(shape) : 0;
    for (int64_t i = 0; i < count; i++) {
        store_random(dtype, out_tensor->data, (size_t)i, next_random(&state));
    }
    return status;
}
