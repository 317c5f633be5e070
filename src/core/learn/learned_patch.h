// learn/learned_patch.h — words of a learned step, changed and written to its executable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/learned.h"

// Brings the executable to `next`. Bit i of `changed`: argument i is another.
//
// Errors:    NO_MEMORY; those of patches.
RONDO_MUST_USE rondo_status rondo__learned_patch(rondo_learned *learned, uint64_t changed);
