// op/math/cast_rule.h — what the attributes of Cast and CastLike say of narrow floats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op.h"
#include "tensor/narrow.h"

// Errors:    UNSUPPORTED (another round_mode).
RONDO_MUST_USE rondo_status rondo__cast_read_rule(const rondo__op *op,
                                                  rondo__narrow_rule *out_rule);
