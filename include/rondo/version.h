// rondo/version.h — which Rondo this is.
#ifndef RONDO_VERSION_H
#define RONDO_VERSION_H

#include "rondo/export.h"

RONDO_EXTERN_C_BEGIN

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 1
#define RONDO_VERSION_PATCH 0

// The version of the library in use, "0.1.0".  Threads: safe.
RONDO_API const char *rondo_version_get_text(void);

RONDO_EXTERN_C_END

#endif  // RONDO_VERSION_H
