// support/cases/one_op.c — see one_op.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/one_op.h"

#include "support/expect_ok.h"
#include "support/models/build_node.h"

rondo_program *one_op_build(const char *op, const rondo_port *inputs, size_t input_count,
                            const char *const *operands, const char *result,
                            const rondo_builder_node_options *options) {
    size_t count = 0;
    while (operands[count] != NULL) {
        ++count;
    }
    rondo_builder *builder = build_begin();
    for (size_t i = 0; i < input_count; ++i) {
        OK(rondo_builder_add_input(builder, &inputs[i]));
    }
    OK(rondo_builder_add_node(builder, op, operands, count, &result, 1, options));
    OK(rondo_builder_add_output(builder, result, NULL));
    return build_finish(builder);
}
