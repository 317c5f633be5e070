// graph/conditional.h — what the forms of conditional nodes share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"
#include "rondo/control.h"

// Checks a predicate, or the branch count of a switch; `call` is the name in messages.
//
// Errors:    INVALID.
RONDO_MUST_USE rondo_status rondo__scope_check_predicate(const void *predicate, const char *call);
RONDO_MUST_USE rondo_status rondo__scope_check_switch(uint32_t branch_count, const char *call);
