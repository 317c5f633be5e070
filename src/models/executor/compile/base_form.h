// executor/compile/base_form.h — the program after the rewrites that need no shapes, made once for
// all plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Makes unit->base, the program after what is done once for all plans, in place of the one that
// there is; again once the executor is lean.
//
// Errors:    NO_MEMORY, BAD_DATA, INVALID, INTERNAL.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_make_base(rondo__unit *unit);

// All options that decide the base of the executor's own program, as text, by which a plan file has
// it; NULL when memory is exhausted. The caller frees it.
char *rondo__unit_write_base_key(const rondo__unit *unit);
