// rondo/version.h — which Rondo this is.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_VERSION_H
#define RONDO_VERSION_H

#include <stdint.h>

#include "rondo/export.h"

RONDO_EXTERN_C_BEGIN

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 1
#define RONDO_VERSION_PATCH 0

// Of the headers: 10 000 * major + 100 * minor + patch.
#define RONDO_VERSION_NUMBER \
    (RONDO_VERSION_MAJOR * 10000 + RONDO_VERSION_MINOR * 100 + RONDO_VERSION_PATCH)

// The version of the library in use, "0.1.0".
RONDO_API const char *rondo_version_get_text(void);

// RONDO_VERSION_NUMBER of the library in use.
RONDO_API int32_t rondo_version_get_number(void);

RONDO_EXTERN_C_END

#endif  // RONDO_VERSION_H
