// support/models/build_node.h — nodes of a program that a test builds, in one line each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/builder.h"

// Adds a node; the test fails where that fails. Names stand with a blank between; "-" stands for an
// input or output that is left out. `options` may be NULL.
//
//   build_node(b, "Clip", "x - top", "y", NULL);
void build_node(rondo_builder *b, const char *op, const char *inputs, const char *outputs,
                const rondo_builder_node_options *options);

// A node of one or two inputs (y NULL) without options.
void build_op(rondo_builder *b, const char *op, const char *x, const char *y, const char *out);
