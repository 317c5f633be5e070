// executor/describe/describe_half.h — what half precision did to a plan: which ops of the model
// stayed in f32, and why. Ops that were folded are not counted; those that are fused later count
// one by one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Writes what half precision did to a plan and to the bodies in it, as text or as the member "half"
// of a JSON object; writes nothing in single precision.
void rondo__describe_half(rondo__text *text, const rondo_executor *executor,
                          const rondo__plan *plan, bool is_json);
