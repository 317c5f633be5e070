// onnx/types.h — declared element types and shapes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "onnx/importer.h"
#include "onnx/scope.h"

// Sets the declared type and shape of a value. A type that a rondo_tensor cannot hold is noted as
// an oddity. Symbols are added for ports of the main graph only; elsewhere known ones are used.
RONDO_MUST_USE rondo_status rondo__import_type(rondo__importer *importer, rondo__scope *scope,
                                               int32_t value, const Onnx__TypeProto *type,
                                               bool is_port);
// Makes an initializer that is also an input of the main graph the default of that input, whose
// type it must have.
RONDO_MUST_USE rondo_status rondo__import_optional(rondo__importer *importer, rondo__scope *scope,
                                                   int32_t value, const Onnx__TypeProto *type);
