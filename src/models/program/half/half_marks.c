// program/half/half_marks.c — marks on nodes and values that the rules read.
// SPDX-License-Identifier: Apache-2.0
#include "program/half/half_pass.h"

#include "program/node_pattern.h"

void rondo__half_mark(rondo_program *program, const char *pattern, uint8_t precision) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        const bool is_match = rondo__node_matches(node, pattern);
        if (is_match && node->precision != RONDO__PRECISION_TRAINED) {
            node->precision = precision;
        }
        for (size_t i = 0; i < node->op.attribute_count; ++i) {
            if (node->op.attributes[i].kind == RONDO__ATTRIBUTE_BODY) {
                rondo__half_mark(node->op.attributes[i].body, is_match ? NULL : pattern, precision);
            }
        }
    }
}
