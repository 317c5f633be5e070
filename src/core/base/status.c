// base/status.c — names of the statuses.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/status.h"

const char *rondo_status_get_name(rondo_status status) {
    static const char *const names[] = {
#define NAME(name) [RONDO_STATUS_##name] = #name
        NAME(OK),        NAME(INVALID),          NAME(STATE),       NAME(UNSUPPORTED),
        NAME(NO_MEMORY), NAME(NO_DEVICE_MEMORY), NAME(UNAVAILABLE), NAME(DRIVER),
        NAME(LOST),      NAME(BAD_DATA),         NAME(INTERNAL),    NAME(CANCELLED),
        NAME(MISMATCH)
#undef NAME
    };
    const int32_t count = (int32_t)(sizeof names / sizeof *names);
    return status >= 0 && status < count ? names[status] : "UNKNOWN";
}
