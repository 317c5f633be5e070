// support/cases/one_op.h — a program of one op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/builder.h"

// result = op(operands), which are names of the inputs. Fails the running test where that fails.
//
// operands   as the op takes them, ended by NULL.
// options    of the node, as its attributes; may be NULL.
rondo_program *one_op_build(const char *op, const rondo_port *inputs, size_t input_count,
                            const char *const *operands, const char *result,
                            const rondo_builder_node_options *options);
