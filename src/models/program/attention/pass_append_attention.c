// program/attention/pass_append_attention.c — one token's attention with all that prepares it.
//
//   before   q, k, v = parts of row              after   y, K', V' = rondo.AppendAttention(
//            K'      = Concat(K, Rotate(k))                  row, K, V, cosines, sines)
//            V'      = Concat(V, v)
//            y       = rondo.Attention(Rotate(q), K', V')
//
// where row is a product whose columns are q, k and v beside each other (pass_join.c). K' and V'
// are outputs of the model, mostly, so that they stay. Without a mask, and as far as a kernel takes
// it (kernel/cuda/product/cuda_append_attention.c).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/fused/attention.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/view.h"

enum { PAST_MOST = 4096, GROUP_MOST = 8, GROUP_COLUMNS_MOST = 512 };

typedef struct pattern {
    const rondo_program *program;
    rondo__attention a;
    int64_t heads;  // of the queries
    int32_t row, past[2], present[2], angles[2];
} pattern;

static const rondo__node *get_maker(const pattern *p, int32_t value, rondo__op_id op) {
    const int32_t maker = value >= 0 ? p->program->values[value].producer : -1;
    const rondo__node *node = maker >= 0 ? &p->program->nodes[maker] : NULL;
    return node != NULL && rondo__node_is(node, op) ? node : NULL;
}

// Whether `value` is heads of each batch's row, from column `first` on; the row becomes p->row.
static bool is_part_of_row(pattern *p, int32_t value, int64_t heads, int64_t first) {
    const int64_t width = p->a.width, pitch = (p->heads + 2 * p->a.heads) * width;
    rondo__view view;
    rondo__view_trace(p->program, value, false, &view);
    rondo_shape row;
    if (view.rank != 4 || view.extent[0] != p->a.batch || view.extent[1] != heads ||
        view.extent[2] != 1 || view.extent[3] != width || view.stride[3] != 1 ||
        (heads > 1 && view.stride[1] != width) || (p->a.batch > 1 && view.stride[0] != pitch) ||
        view.offset != first || (p->row >= 0 && p->row != view.base) ||
        !rondo__value_get_shape(&p->program->values[view.base], &row) ||
        rondo_shape_get_count(&row) != p->a.batch * pitch) {
        return false;
    }
    p->row = view.base;
    return true;
}

// The same behind a rotation; its angles become p->angles.
static bool is_rotated_part(pattern *p, int32_t value, int64_t heads, int64_t first) {
    rondo__view view;
    rondo__view_trace(p->program, value, false, &view);
    const rondo__node *rotate = get_maker(p, view.base, RONDO__FUSED_Rotate);
    if (rotate == NULL || !rondo__view_is_whole(p->program, &view) ||
        !is_part_of_row(p, rotate->inputs[0], heads, first)) {
        return false;
    }
    for (size_t i = 0; i < 2; ++i) {
        rondo_shape angles;
        const int32_t value_of_angles = rotate->inputs[1 + i];
        if ((p->angles[i] >= 0 && p->angles[i] != value_of_angles) ||
            !rondo__value_get_shape(&p->program->values[value_of_angles], &angles) ||
            rondo_shape_get_count(&angles) != p->a.width) {
            return false;
        }
        p->angles[i] = value_of_angles;
    }
    return true;
}

// Whether keys or values are the past, dense, and one row behind it, which *out_fresh is then.
static bool is_grown(pattern *p, int32_t value, const rondo__attention_strides *s, int which,
                     int32_t *out_fresh) {
    const rondo__attention *a = &p->a;
    const rondo__node *concat = get_maker(p, value, RONDO__OP_Concat);
    rondo_shape past, present;
    if (concat == NULL || concat->input_count != 2 ||
        !rondo__value_get_shape(&p->program->values[value], &present) || present.rank != 4 ||
        !rondo__value_get_shape(&p->program->values[concat->inputs[0]], &past) || past.rank != 4) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&concat->op, "axis", 0);
    const int64_t want[4] = {a->batch, a->heads, a->n, a->width};
    *out_fresh = concat->inputs[1];
    p->past[which] = concat->inputs[0];
    p->present[which] = value;
    return (axis == 2 || axis == -2) && memcmp(present.extent, want, sizeof want) == 0 &&
           past.extent[2] == a->n - 1 && s->offset == 0 && s->column == 1 && s->row == a->width &&
           (a->heads == 1 || s->head == a->n * a->width) &&
           (a->batch == 1 || s->batch == a->heads * a->n * a->width);
}

// Whether queries, and what becomes of them, are rows of `heads` heads of each batch in turn.
static bool is_in_turn(const pattern *p, const rondo__attention_strides *s) {
    const rondo__attention *a = &p->a;
    return s->offset == 0 && s->column == 1 && (a->m == 1 || s->row == a->width) &&
           (a->heads == 1 || s->head == a->m * a->width) &&
           (a->batch == 1 || s->batch == p->heads * a->width);
}

static bool has_fit_extents(const pattern *p, rondo_dtype dtype) {
    const rondo__attention *a = &p->a;
    const int64_t lanes = a->width * (int64_t)rondo_dtype_get_bytes(dtype) / 16;
    return a->width == a->v_width && a->n > 1 && a->n <= PAST_MOST && a->m <= GROUP_MOST &&
           a->m * a->width <= GROUP_COLUMNS_MOST && a->width % 8 == 0 && lanes <= 32 &&
           (lanes & (lanes - 1)) == 0 && (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_F32);
}

static bool match(pattern *p, const rondo__node *node) {
    const rondo_program *program = p->program;
    rondo_shape shapes[3];
    int32_t fresh[2];
    if (!rondo__node_is(node, RONDO__FUSED_Attention) || rondo__match_input(node, 3) >= 0 ||
        rondo__op_get_int(&node->op, "unit_rows", 0) != 0) {
        return false;
    }
    for (size_t i = 0; i < 3; ++i) {
        if (!rondo__value_get_shape(&program->values[node->inputs[i]], &shapes[i])) {
            return false;
        }
    }
    rondo_error saved;
    rondo__error_save(&saved);
    const bool is_read = rondo__attention_init(&node->op, &shapes[0], &shapes[1], &shapes[2], NULL,
                                               &p->a) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    p->heads = p->a.heads * p->a.m;  // that share keys: rows (pass_attention.c)
    const int64_t width = p->a.width, kv_heads = p->a.heads;
    return is_read && has_fit_extents(p, program->values[node->inputs[0]].dtype) &&
           is_in_turn(p, &p->a.q) && is_in_turn(p, &p->a.y) &&
           is_grown(p, node->inputs[1], &p->a.k, 0, &fresh[0]) &&
           is_grown(p, node->inputs[2], &p->a.v, 1, &fresh[1]) &&
           is_rotated_part(p, node->inputs[0], p->heads, 0) &&
           is_rotated_part(p, fresh[0], kv_heads, p->heads * width) &&
           is_part_of_row(p, fresh[1], kv_heads, (p->heads + kv_heads) * width);
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    pattern p = {.program = program, .row = -1, .angles = {-1, -1}};
    if (r->remove[n] || !match(&p, &program->nodes[n])) {
        return RONDO_STATUS_OK;
    }
    const int32_t result = program->nodes[n].outputs[0];
    const int32_t inputs[5] = {p.row, p.past[0], p.past[1], p.angles[0], p.angles[1]};
    const int32_t outputs[3] = {result, p.present[0], p.present[1]};
    for (size_t i = 0; i < 3; ++i) {
        r->remove[program->values[outputs[i]].producer] = true;
        program->values[outputs[i]].producer = -1;
    }
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "AppendAttention",
                                              program->values[result].name, inputs, 5, outputs, 3));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_int(op, "heads", p.heads));
    RETURN_IF_ERROR(rondo__op_set_float(op, "scale", p.a.scale));
    return rondo__op_set_ints(op, "shape", p.a.output.extent, (size_t)p.a.output.rank);
}

rondo_status rondo__pass_append_attention(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
