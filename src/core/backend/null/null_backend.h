// backend/null/null_backend.h — the smallest backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

extern const rondo__backend rondo__backend_null;
