// op/text/number_text.h — numbers as text and back, for Cast.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op.h"
#include "tensor/narrow.h"

// Cast and CastLike where strings come in or go out.
//
// Floats are written with as few digits as read back to the same number ("0.1", "1e+10", "NaN",
// "INF", "-INF"), which ONNX's tests want; ONNX Runtime writes eight digits, so that its last one
// may differ. Integers have all of theirs, bool is 1 or 0. Read is what C's strtod reads
// (infinities and NaN too), with blanks around; for integers towards zero. The program's locale has
// no say in either. `rule` is for narrow floats.
//
// Errors:    BAD_DATA (an element that is no number: which one), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__op_cast_strings(rondo__compute *compute,
                                                   const rondo__narrow_rule *rule);
