// base/read_options.h — structs filled in by callers that were compiled against another header.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "rondo/status.h"

// Puts what `given` says in the place of the defaults that `in_out_merged` holds; fields that an
// older struct lacks keep theirs. Both begin with struct_size, which is `bytes` in the result.
//
// given       may be NULL: the defaults stand.
// call        the public function, for the record.
// type        of the struct, for the record.
//
// Errors:    INVALID (a struct longer than ours, or one whose struct_size was not set).
RONDO_MUST_USE rondo_status rondo__read_options(const void *given, void *in_out_merged,
                                                size_t bytes, const char *call, const char *type);
