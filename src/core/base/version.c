// base/version.c — the version as text and as a number.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/version.h"

#define RONDO_TEXT_OF(value) #value
#define RONDO_TEXT(value) RONDO_TEXT_OF(value)

const char *rondo_version_get_text(void) {
    return RONDO_TEXT(RONDO_VERSION_MAJOR) "." RONDO_TEXT(RONDO_VERSION_MINOR) "." RONDO_TEXT(
        RONDO_VERSION_PATCH);
}

int32_t rondo_version_get_number(void) {
    return RONDO_VERSION_NUMBER;
}
