// base/status.c — names and texts of the statuses.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/status.h"

const char *rondo_status_get_name(rondo_status status) {
    switch (status) {
#define RONDO_STATUS_NAME(name, value, text) \
    case value:                              \
        return #name;
        RONDO_STATUS_MAP(RONDO_STATUS_NAME)
#undef RONDO_STATUS_NAME
        default:
            return "UNKNOWN";
    }
}

const char *rondo_status_get_text(rondo_status status) {
    switch (status) {
#define RONDO_STATUS_TEXT(name, value, text) \
    case value:                              \
        return text;
        RONDO_STATUS_MAP(RONDO_STATUS_TEXT)
#undef RONDO_STATUS_TEXT
        default:
            return "not a status of this library";
    }
}
