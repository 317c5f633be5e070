// onnx/graphs.h — a graph: its values, its nodes, the bodies and function calls among them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/importer.h"
#include "onnx/scope.h"

// Imports a graph into scope->program, which is empty.
RONDO_MUST_USE rondo_status rondo__import_graph(rondo__importer *importer, rondo__scope *scope,
                                                const Onnx__GraphProto *graph);
