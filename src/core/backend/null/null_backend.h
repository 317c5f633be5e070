// backend/null/null_backend.h — the smallest backend.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_NULL_NULL_BACKEND_H
#define RONDO_BACKEND_NULL_NULL_BACKEND_H

#include "backend/backend.h"

extern const rondo__backend rondo__backend_null;

#endif  // RONDO_BACKEND_NULL_NULL_BACKEND_H
