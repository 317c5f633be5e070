// program/half/half_marks.c — marks on nodes and values that the rules read.
// SPDX-License-Identifier: Apache-2.0
#include "program/half/half_pass.h"

#include "program/node_pattern.h"
#include "program/passes/match.h"

// The ops of a training step stay as they are, but for its averages over ranks: gradients that are
// f16 before, and are widened behind, may travel so.
static bool may_be_marked(const rondo__node *node, uint8_t precision) {
    return node->precision != RONDO__PRECISION_TRAINED ||
           (precision == RONDO__PRECISION_HALF && rondo__node_is(node, RONDO__FUSED_AllReduce));
}

void rondo__half_mark(rondo_program *program, const char *pattern, uint8_t precision) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        const bool is_match = rondo__node_matches(node, pattern);
        if (is_match && may_be_marked(node, precision)) {
            node->precision = precision;
        }
        for (size_t i = 0; i < node->op.attribute_count; ++i) {
            if (node->op.attributes[i].kind == RONDO__ATTRIBUTE_BODY) {
                rondo__half_mark(node->op.attributes[i].body, is_match ? NULL : pattern, precision);
            }
        }
    }
}
