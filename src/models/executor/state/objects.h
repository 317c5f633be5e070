// executor/state/objects.h — strings, sequences and optionals between a caller and an executor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"
#include "tensor/elements.h"

// A caller's are copied, since either side may write its own; those of a body are shared with the
// plan around it.
//
// Errors:    NO_MEMORY.
// Ownership: free *out_to with rondo_tensor_deinit.
// Threads:   one thread per executor.
RONDO_MUST_USE static inline rondo_status rondo__unit_pass_object(const rondo__unit *unit,
                                                                  const rondo_tensor *from,
                                                                  rondo_tensor *out_to) {
    return unit->depth > 0 ? rondo__tensor_keep(from, out_to) : rondo__tensor_copy(from, out_to);
}
