// support/source_dir.c — see source_dir.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/source_dir.h"

#include <stdlib.h>

const char *get_source_dir(void) {
    const char *folder = getenv("RONDO_SOURCE_DIR");
    return folder != NULL && folder[0] != '\0' ? folder : RONDO_SOURCE_DIR;
}
