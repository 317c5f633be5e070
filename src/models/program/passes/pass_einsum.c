// program/passes/pass_einsum.c — an Einsum of two operands becomes a product of matrices.
//
//   bhwc,hkc->bhwk     a ── Transpose ── Reshape [h, b w, c] ──┐
//                      b ── Transpose ── Reshape [h, c, k] ────┴ MatMul ── Reshape ── Transpose
//
// A label stands in both operands and the result (a batch), in one operand and the result (a row or
// a column), or in both operands alone (summed over). Other equations stay: diagonals, operands
// that are broadcast, labels that one operand alone has. Moves that move nothing are not written.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "op/math/einsum.h"
#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

typedef struct labels {
    int32_t at[RONDO_RANK_MAX];
    int32_t count;
} labels;

typedef struct product {
    const rondo__einsum_plan *plan;
    rondo_dtype dtype;
    labels operand[2];  // of each operand's axes but those of one element
    labels batch, rows, columns, sums, result;
} product;

// The labels of an operand by its axes; false where an axis has none of its own.
static bool read_operand(const rondo__einsum_plan *plan, size_t i, const rondo_shape *shape,
                         labels *out) {
    int64_t step = rondo_shape_get_count(shape);
    int32_t moving = 0;
    *out = (labels){.count = 0};
    for (int32_t label = 0; label < plan->label_count; ++label) {
        moving += plan->step[i][label] != 0;
    }
    for (int32_t axis = 0; axis < shape->rank; ++axis) {
        const int64_t extent = shape->extent[axis];
        step /= extent > 0 ? extent : 1;
        for (int32_t label = 0; extent > 1 && label < plan->label_count; ++label) {
            if (plan->step[i][label] == step && plan->extent[label] == extent) {
                out->at[out->count++] = label;
                break;
            }
        }
    }
    int32_t long_axes = 0;
    for (int32_t axis = 0; axis < shape->rank; ++axis) {
        long_axes += shape->extent[axis] > 1;
    }
    return out->count == long_axes && moving == long_axes;
}

static bool has_label(const labels *list, int32_t label) {
    for (int32_t i = 0; i < list->count; ++i) {
        if (list->at[i] == label) {
            return true;
        }
    }
    return false;
}

static void add_label(labels *list, int32_t label) {
    list->at[list->count++] = label;
}

static bool is_equal(const labels *a, const labels *b) {
    return a->count == b->count && memcmp(a->at, b->at, (size_t)a->count * sizeof a->at[0]) == 0;
}

// Sorts the labels into what they are; false where one is nothing of a product.
static bool sort_labels(product *p) {
    const rondo__einsum_plan *plan = p->plan;
    for (int32_t label = 0; label < plan->label_count; ++label) {
        const bool in_a = has_label(&p->operand[0], label), in_b = has_label(&p->operand[1], label);
        const bool in_result = label < plan->output_count;
        if (plan->extent[label] == 1) {
            continue;
        }
        if (plan->extent[label] == 0 || (!in_result && !(in_a && in_b)) || (!in_a && !in_b)) {
            return false;
        }
        if (!in_result) {
            continue;
        }
        add_label(&p->result, label);
        add_label(in_a && in_b ? &p->batch : in_a ? &p->rows : &p->columns, label);
    }
    for (int32_t i = 0; i < p->operand[0].count; ++i) {
        if (p->operand[0].at[i] >= plan->output_count) {
            add_label(&p->sums, p->operand[0].at[i]);
        }
    }
    return true;
}

static int64_t multiply(const product *p, const labels *list) {
    int64_t count = 1;
    for (int32_t i = 0; i < list->count; ++i) {
        count *= p->plan->extent[list->at[i]];
    }
    return count;
}

static labels join(const labels *a, const labels *b, const labels *c) {
    labels all = *a;
    for (int32_t i = 0; i < b->count; ++i) {
        add_label(&all, b->at[i]);
    }
    for (int32_t i = 0; i < c->count; ++i) {
        add_label(&all, c->at[i]);
    }
    return all;
}

static rondo_shape get_shape(const product *p, const labels *list) {
    rondo_shape shape = {.rank = list->count};
    for (int32_t i = 0; i < list->count; ++i) {
        shape.extent[i] = p->plan->extent[list->at[i]];
    }
    return shape;
}

// The value with this shape: itself, or a reshaped one.
static rondo_status reshape(rondo_program *program, const product *p, const rondo_shape *shape,
                            int32_t *value) {
    rondo_shape now;
    int32_t made;
    if (rondo__value_get_shape(&program->values[*value], &now) &&
        rondo_shape_is_equal(&now, shape)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "einsum", p->dtype, shape, &made));
    RETURN_IF_ERROR(rondo__program_add_reshape(program, *value, made, shape));
    *value = made;
    return RONDO_STATUS_OK;
}

static rondo_status add_transpose(rondo_program *program, const product *p,
                                  const rondo_shape *shape, const int64_t *order, int32_t *value) {
    int32_t made;
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "einsum", p->dtype, shape, &made));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Transpose", NULL, value, 1, &made, 1));
    *value = made;
    return rondo__op_set_ints(&program->nodes[program->node_count - 1].op, "perm", order,
                              (size_t)shape->rank);
}

// The value, as one whose axes are `from`, with its axes in the order of `to`.
static rondo_status transpose(rondo_program *program, const product *p, const labels *from,
                              const labels *to, int32_t *value) {
    int64_t order[RONDO_RANK_MAX] = {0};
    const rondo_shape axes = get_shape(p, from), shape = get_shape(p, to);
    if (is_equal(from, to)) {
        return RONDO_STATUS_OK;
    }
    for (int32_t i = 0; i < to->count; ++i) {
        for (int32_t k = 0; k < from->count; ++k) {
            if (from->at[k] == to->at[i]) {
                order[i] = k;
            }
        }
    }
    RETURN_IF_ERROR(reshape(program, p, &axes, value));
    return add_transpose(program, p, &shape, order, value);
}

// [batch, first, second], or [first, second] where there is no batch.
static rondo_shape get_matrix(const product *p, const labels *first, const labels *second) {
    const int64_t rows = multiply(p, first), columns = multiply(p, second);
    return p->batch.count > 0 ? (rondo_shape){3, {multiply(p, &p->batch), rows, columns}}
                              : (rondo_shape){2, {rows, columns}};
}

// One operand as a matrix. Where it lies transposed, that Transpose is one that products take in.
static rondo_status make_matrix(rondo_program *program, const product *p, size_t i,
                                const labels *first, const labels *second, int32_t *value) {
    const labels order = join(&p->batch, first, second);
    const labels transposed = join(&p->batch, second, first);
    const rondo_shape matrix = get_matrix(p, first, second);
    const bool lies_transposed =
        first->count > 0 && second->count > 0 && is_equal(&p->operand[i], &transposed);
    if (!lies_transposed) {
        RETURN_IF_ERROR(transpose(program, p, &p->operand[i], &order, value));
        return reshape(program, p, &matrix, value);
    }
    const rondo_shape source = get_matrix(p, second, first);
    RETURN_IF_ERROR(reshape(program, p, &source, value));
    return add_transpose(program, p, &matrix,
                         matrix.rank == 3 ? (int64_t[]){0, 2, 1} : (int64_t[]){1, 0}, value);
}

static rondo_status write_product(rondo_program *program, const product *p, const int32_t *inputs,
                                  int32_t result) {
    int32_t factors[2] = {inputs[0], inputs[1]}, value;
    const rondo_shape made = get_matrix(p, &p->rows, &p->columns);
    const labels order = join(&p->batch, &p->rows, &p->columns);
    RETURN_IF_ERROR(make_matrix(program, p, 0, &p->rows, &p->sums, &factors[0]));
    RETURN_IF_ERROR(make_matrix(program, p, 1, &p->sums, &p->columns, &factors[1]));
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "einsum", p->dtype, &made, &value));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "MatMul", NULL, factors, 2, &value, 1));
    RETURN_IF_ERROR(transpose(program, p, &order, &p->result, &value));
    RETURN_IF_ERROR(reshape(program, p, &p->plan->output, &value));
    program->nodes[program->node_count - 1].outputs[0] = result;  // of the node that is last
    program->values[result].producer = (int32_t)program->node_count - 1;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    if (!rondo__node_is(node, RONDO__OP_Einsum) || node->input_count != 2 ||
        !rondo__dtype_is_f32_or_f16(program->values[node->outputs[0]].dtype)) {
        return RONDO_STATUS_OK;
    }
    rondo_shape shapes[2];
    rondo__einsum_plan plan;
    for (size_t i = 0; i < 2; ++i) {
        if (!rondo__value_get_shape(&program->values[node->inputs[i]], &shapes[i])) {
            return RONDO_STATUS_OK;
        }
    }
    const rondo_shape *const known[2] = {&shapes[0], &shapes[1]};
    RETURN_IF_ERROR(rondo__einsum_make_plan(&node->op, 2, known, &plan));
    product p = {.plan = &plan, .dtype = program->values[node->outputs[0]].dtype};
    int32_t inputs[2] = {node->inputs[0], node->inputs[1]};
    const int32_t result = node->outputs[0];
    if (!read_operand(&plan, 0, &shapes[0], &p.operand[0]) ||
        !read_operand(&plan, 1, &shapes[1], &p.operand[1]) || !sort_labels(&p)) {
        return RONDO_STATUS_OK;
    }
    if (p.columns.count > 0 && p.rows.count > 0 && p.columns.at[0] < p.rows.at[0]) {
        // the result's rows are those of the second operand: no Transpose behind the product
        const product as_written = p;
        p.rows = as_written.columns;
        p.columns = as_written.rows;
        p.operand[0] = as_written.operand[1];
        p.operand[1] = as_written.operand[0];
        inputs[0] = node->inputs[1];
        inputs[1] = node->inputs[0];
    }
    r->remove[n] = true;
    return write_product(program, &p, inputs, result);
}

rondo_status rondo__pass_einsum(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
