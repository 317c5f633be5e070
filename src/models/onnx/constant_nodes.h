// onnx/constant_nodes.h — nodes that only give values: Constant, and the labels of a ZipMap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "onnx/importer.h"
#include "onnx/scope.h"

bool rondo__node_is_constant(const Onnx__NodeProto *node);
// Imports a Constant node: its output becomes a constant value.
RONDO_MUST_USE rondo_status rondo__import_constant(rondo__importer *importer, rondo__scope *scope,
                                                   const Onnx__NodeProto *proto);
// For a ZipMap, `value` becomes scores with the class labels as names of their columns; other nodes
// are left alone.
RONDO_MUST_USE rondo_status rondo__import_labels(rondo__scope *scope, const Onnx__NodeProto *proto,
                                                 int32_t value);
