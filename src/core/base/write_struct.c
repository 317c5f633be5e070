// base/write_struct.c — see write_struct.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/write_struct.h"

#include <string.h>

#include "base/error.h"

rondo_status rondo__check_struct_size(size_t given, size_t bytes, const char *call,
                                      const char *type) {
    if (given < sizeof given || given > bytes) {
        return RONDO_FAIL_AS(call, INVALID,
                             "struct_size is %zu; set it to sizeof(%s), which this library knows "
                             "with %zu bytes at most",
                             given, type, bytes);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__clear_struct(void *out, size_t bytes, const char *call, const char *type) {
    if (out == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "the address of the %s to be filled in is NULL", type);
    }
    size_t given;
    memcpy(&given, out, sizeof given);
    RETURN_IF_ERROR(rondo__check_struct_size(given, bytes, call, type));
    memset((char *)out + sizeof given, 0, given - sizeof given);
    return RONDO_STATUS_OK;
}

rondo_status rondo__read_stride(const void *list, size_t capacity, size_t bytes, const char *call,
                                const char *type, size_t *out_stride) {
    size_t given = 0;
    *out_stride = 0;
    if (capacity == 0) {
        return RONDO_STATUS_OK;
    }
    if (list == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "the list of %s is NULL, but has room for %zu", type,
                             capacity);
    }
    memcpy(&given, list, sizeof given);
    RETURN_IF_ERROR(rondo__check_struct_size(given, bytes, call, type));
    *out_stride = given;
    return RONDO_STATUS_OK;
}

void rondo__write_struct(void *out, const void *ours) {
    size_t given;
    memcpy(&given, out, sizeof given);
    memcpy((char *)out + sizeof given, (const char *)ours + sizeof given, given - sizeof given);
}
