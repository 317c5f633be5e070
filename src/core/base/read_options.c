// base/read_options.c — see read_options.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/read_options.h"

#include <string.h>

#include "base/error.h"
#include "base/write_struct.h"

rondo_status rondo__read_options(const void *given, void *in_out_merged, size_t bytes,
                                 const char *call, const char *type) {
    if (given == NULL) {
        return RONDO_STATUS_OK;
    }
    size_t given_bytes = 0;
    memcpy(&given_bytes, given, sizeof given_bytes);
    RETURN_IF_ERROR(rondo__check_struct_size(given_bytes, bytes, call, type));
    memcpy(in_out_merged, given, given_bytes);
    memcpy(in_out_merged, &bytes, sizeof bytes);
    return RONDO_STATUS_OK;
}
