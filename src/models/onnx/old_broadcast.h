// onnx/old_broadcast.h — broadcasting of versions before 7: the second operand begins at an axis of
// the first that an attribute names. Numpy's rule, which all of the program follows, is the case
// where both end at the same axis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/nodes.h"

// Where the node, complete but for its end, is of such a version and its second operand may begin
// further left than numpy has it: gives that operand axes of 1 at its end, by nodes of shapes that
// are known as soon as the operands' are. A PRelu's slope of one axis begins at the channels.
//
// Errors:    NO_MEMORY, BAD_DATA.
// Threads:   one thread per importer.
RONDO_MUST_USE rondo_status rondo__node_move_second(rondo__node_builder *builder);
