// support/models/build_node.h — programs that a test builds, with a line for each node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/builder.h"

// A builder, and the program of one, which goes. The test fails where a call fails, here and below.
rondo_builder *build_begin(void);
rondo_program *build_finish(rondo_builder *b);

// Adds a node. Names stand with a blank between; "-" stands for an input or output that is left
// out. `options` may be NULL.
//
//   build_node(b, "Clip", "x - top", "y", NULL);
void build_node(rondo_builder *b, const char *op, const char *inputs, const char *outputs,
                const rondo_builder_node_options *options);

// A node of one or two inputs (y NULL) without options.
void build_op(rondo_builder *b, const char *op, const char *x, const char *y, const char *out);
