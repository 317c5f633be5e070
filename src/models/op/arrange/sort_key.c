// op/arrange/sort_key.c — see sort_key.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/arrange/sort_key.h"

#include <string.h>

#include "op/support.h"

static uint64_t get_real_key(double value) {
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;
    if (value != value) {
        return UINT64_MAX;
    }
    value += 0.0;  // turns -0 into 0
    memcpy(&bits, &value, sizeof bits);
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

// In the high half, so that it compares as the keys of doubles do. Without branches: vector code.
static uint64_t get_float_key(float value) {
    uint32_t bits;
    const float sum = value + 0.0f;  // turns -0 into 0
    memcpy(&bits, &sum, sizeof bits);
    bits ^= (0u - (bits >> 31)) | 0x80000000u;
    return (uint64_t)(value != value ? UINT32_MAX : bits) << 32;
}

static uint64_t get_key(const rondo_tensor *tensor, int64_t index) {
    const uint64_t sign = UINT64_C(1) << 63;
    if (tensor->dtype == RONDO_DTYPE_U64) {
        return (uint64_t)rondo__tensor_get_int(tensor, index);
    }
    if (rondo__dtype_is_integer(tensor->dtype) || tensor->dtype == RONDO_DTYPE_BOOL) {
        return (uint64_t)rondo__tensor_get_int(tensor, index) ^ sign;
    }
    return get_real_key(rondo__tensor_get_number(tensor, index));
}

void rondo__sort_keys(const rondo_tensor *tensor, int64_t first, int64_t step, int64_t count,
                      uint64_t *keys) {
    const float *floats = tensor->data;
    const int64_t *whole = tensor->data;
    if (tensor->dtype == RONDO_DTYPE_F32 && step == 1) {
        for (int64_t i = 0; i < count; ++i) {
            keys[i] = get_float_key(floats[first + i]);
        }
    } else if (tensor->dtype == RONDO_DTYPE_F32) {
        for (int64_t i = 0; i < count; ++i) {
            keys[i] = get_float_key(floats[first + i * step]);
        }
    } else if (tensor->dtype == RONDO_DTYPE_I64) {
        for (int64_t i = 0; i < count; ++i) {
            keys[i] = (uint64_t)whole[first + i * step] ^ UINT64_C(1) << 63;
        }
    } else {
        for (int64_t i = 0; i < count; ++i) {
            keys[i] = get_key(tensor, first + i * step);
        }
    }
}

void rondo__sort_sift_down(rondo__sort_item *heap, int64_t count, int64_t at) {
    const rondo__sort_item item = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && rondo__sort_compare(&heap[child + 1], &heap[child]) < 0) {
            ++child;
        }
        if (rondo__sort_compare(&heap[child], &item) >= 0) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}
