// base/read_options.c — see read_options.h.
#include "base/read_options.h"

#include <string.h>

#include "base/error.h"

rondo_status rondo__read_options(const void *given, void *in_out_merged, size_t bytes,
                                 const char *call, const char *defaults) {
    if (given == NULL) {
        return RONDO_STATUS_OK;
    }
    size_t given_bytes = 0;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes < sizeof given_bytes || given_bytes > bytes) {
        return RONDO_FAIL_AS(call, INVALID,
                             "options.struct_size is %zu, but options of this library have %zu "
                             "bytes at most; start from %s()",
                             given_bytes, bytes, defaults);
    }
    memcpy(in_out_merged, given, given_bytes);
    memcpy(in_out_merged, &bytes, sizeof bytes);
    return RONDO_STATUS_OK;
}
