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

uint64_t rondo__sort_key(const rondo_tensor *tensor, int64_t index) {
    const uint64_t sign = UINT64_C(1) << 63;
    if (tensor->dtype == RONDO_DTYPE_F32) {  // before the others, because most are
        return get_real_key((double)((const float *)tensor->data)[index]);
    }
    if (tensor->dtype == RONDO_DTYPE_U64) {
        return (uint64_t)rondo__tensor_get_int(tensor, index);
    }
    if (rondo__dtype_is_integer(tensor->dtype) || tensor->dtype == RONDO_DTYPE_BOOL) {
        return (uint64_t)rondo__tensor_get_int(tensor, index) ^ sign;
    }
    return get_real_key(rondo__tensor_get_number(tensor, index));
}
