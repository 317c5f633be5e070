// program/gradient/gradient_rules.c — which op has which rule.
// SPDX-License-Identifier: Apache-2.0
#include "op/op.h"
#include "program/gradient/gradient_parts.h"

static const rondo__gradient_row *const tables[] = {
    rondo__gradient_rows_elementwise, rondo__gradient_rows_arrange,   rondo__gradient_rows_reduce,
    rondo__gradient_rows_product,     rondo__gradient_rows_image,     rondo__gradient_rows_norm,
    rondo__gradient_rows_loss,        rondo__gradient_rows_recurrent, rondo__gradient_rows_control,
    rondo__gradient_rows_attention,
};

rondo__gradient_rule rondo__gradient_find_rule(const rondo__op_def *def, bool *out_is_zero) {
    *out_is_zero = false;
    if ((def->flags & RONDO__OP_USER) != 0) {
        return rondo__gradient_find_user_rule(def);
    }
    for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t) {
        for (const rondo__gradient_row *row = tables[t]; row->op != RONDO__OP_NONE; ++row) {
            if (row->op == def->id) {
                *out_is_zero = row->rule == NULL;
                return row->rule;
            }
        }
    }
    return NULL;
}
