// onnx/gradient_nodes.h — Gradient of ai.onnx.preview.training: written out where it stands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "onnx/importer.h"
#include "onnx/scope.h"

bool rondo__node_is_gradient(const Onnx__NodeProto *proto);

// Appends the nodes that compute the gradients. What `y` is made of stands before the node. Inputs
// of other names than `xs` and `zs` are other points: the nodes in between are then there once
// more.
//
// Errors:    BAD_DATA (names, attributes), UNSUPPORTED (an op without a gradient), NO_MEMORY.
// Threads:   one thread per importer.
RONDO_MUST_USE rondo_status rondo__import_gradient(rondo__scope *scope,
                                                   const Onnx__NodeProto *proto);
