// onnx/nodes.h — one node: its op, attributes and wiring, and what is said of it when that fails.
//
// The caller imports the bodies among a node's attributes, because they are graphs:
//
//     rondo__node_begin, for each attribute rondo__node_add_attribute (and for a graph among them
//     rondo__node_add_body), rondo__node_end; whatever happened, rondo__node_deinit(&builder.node).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "onnx/importer.h"
#include "onnx/scope.h"

struct rondo__expansion;

// A node under construction. The captured values of its bodies stand behind its own inputs.
typedef struct rondo__node_builder {
    rondo__importer *importer;
    rondo__scope *scope;
    const Onnx__NodeProto *proto;
    rondo__node node;
    const struct rondo__expansion *expansion;  // what is written in its place; NULL: itself
    size_t input_capacity;
} rondo__node_builder;

// The version of the node's op: what the scope imports, or the newest known one before it where the
// load allows that.
int32_t rondo__node_get_opset(rondo__importer *importer, const rondo__scope *scope,
                              const Onnx__NodeProto *proto);
// Finds the op, and the values that the node takes and makes.
//
// Errors:    UNSUPPORTED, BAD_DATA, NO_MEMORY.
// Threads:   one thread per importer; so are all functions below.
RONDO_MUST_USE rondo_status rondo__node_begin(rondo__importer *importer, rondo__scope *scope,
                                              const Onnx__NodeProto *proto, int32_t opset,
                                              rondo__node_builder *out_builder);
// Adds an attribute, unless it is a graph: that goes to *out_graph, otherwise NULL.
RONDO_MUST_USE rondo_status rondo__node_add_attribute(rondo__node_builder *builder,
                                                      const Onnx__AttributeProto *proto,
                                                      const Onnx__GraphProto **out_graph);
// Adds the attribute `name`, a body that captures these values of the scope. Takes `body`.
RONDO_MUST_USE rondo_status rondo__node_add_body(rondo__node_builder *builder, const char *name,
                                                 rondo_program *body, const int32_t *captured,
                                                 size_t captured_count);
// Checks the op, and puts the node, or what it is expanded into, into the scope's program.
RONDO_MUST_USE rondo_status rondo__node_end(rondo__node_builder *builder);

// The wording of rondo__op_fail_unsupported for a node that has no op.
rondo_status rondo__node_fail_unsupported(const Onnx__NodeProto *proto, int32_t opset,
                                          const char *detail);
// Ends the import of a node: a failure names the node. An unsupported node becomes an entry in the
// list, and the import goes on to find others.
RONDO_MUST_USE rondo_status rondo__node_finish(rondo__importer *importer, const rondo__scope *scope,
                                               const Onnx__NodeProto *proto, int32_t opset,
                                               rondo_status status);
