// op/kinds.h — which ops take strings, sequences, optionals, narrow and complex numbers, and at
// which inputs.
//
// Most ops know usual numbers only, and would misread such elements. So rondo__op_infer refuses by
// name every input type that the op's row does not list, before the op sees it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "op/op.h"

// Refuses inputs of such types that the op's row does not have.
//
// Errors:    UNSUPPORTED (the input and its type).
RONDO_MUST_USE rondo_status rondo__infer_check_kinds(const rondo__infer *infer);
// Refuses outputs of strings, narrow and complex numbers that the op's row does not have: a number
// in an attribute must not turn an op that knows nothing of them into one that makes them.
//
// Errors:    UNSUPPORTED.
RONDO_MUST_USE rondo_status rondo__infer_check_made_kinds(const rondo__infer *infer);
