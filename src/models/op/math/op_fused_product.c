// op/math/op_fused_product.c — com.microsoft.FusedMatMul and its elder TransposeMatMul: a factor,
// and operands that are stored transposed.
//
// transA and transB swap the last two axes of an operand. transBatchA and transBatchB say that its
// rows stand in front of the axes of the batch: [m, batch..., k].
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "op/math/matrix.h"
#include "op/op.h"
#include "op/reference.h"

static bool has_rows_in_front(const rondo__op *op, const char *attribute,
                              const rondo_shape *shape) {
    return shape->rank > 2 && rondo__op_get_int(op, attribute, 0) != 0;
}

// The shape with the first axis behind those of the batch.
static rondo_shape move_rows(const rondo_shape *shape) {
    rondo_shape moved = *shape;
    for (int32_t i = 0; i + 2 < shape->rank; i++) {
        moved.extent[i] = shape->extent[i + 1];
    }
    moved.extent[shape->rank - 2] = shape->extent[0];
    return moved;
}

static rondo_status init_product(const rondo__op *op, const rondo_shape *a, const rondo_shape *b,
                                 rondo__product *out_product) {
    const rondo_shape left = has_rows_in_front(op, "transBatchA", a) ? move_rows(a) : *a;
    const rondo_shape right = has_rows_in_front(op, "transBatchB", b) ? move_rows(b) : *b;
    return rondo__product_init(op, &left, &right, rondo__op_get_int(op, "transA", 0) != 0,
                               rondo__op_get_int(op, "transB", 0) != 0, out_product);
}

static rondo_status infer_fused(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 2));
    rondo__product product;
    RETURN_IF_ERROR(init_product(infer->op, &inputs[0].shape, &inputs[1].shape, &product));
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &product.output);
}

// The operand with its batch in front.
static const double *get_operand(rondo__scratch *scratch, const rondo_tensor *tensor, bool moves) {
    const double *values = rondo__scratch_widen(scratch, tensor);
    const rondo_shape *shape = &tensor->shape;
    const int64_t count = rondo_shape_get_count(shape);
    if (!moves || count == 0) {
        return values;
    }
    double *moved = rondo__scratch_create(scratch, count);
    if (scratch->status != RONDO_STATUS_OK) {
        return NULL;
    }
    const int64_t rows = shape->extent[0], columns = shape->extent[shape->rank - 1];
    const int64_t batch = count / rows / columns;
    for (int64_t i = 0; i < count; i++) {
        const int64_t column = i % columns, row = i / columns % rows, at = i / columns / rows;
        moved[i] = values[(row * batch + at) * columns + column];
    }
    return moved;
}

static rondo_status compute_fused(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_tensor *const *inputs = compute->inputs;
    const double alpha = (double)rondo__op_get_float(op, "alpha", 1.0f);
    rondo__product product;
    RETURN_IF_ERROR(init_product(op, &inputs[0]->shape, &inputs[1]->shape, &product));
    const int64_t count = rondo_shape_get_count(&product.output);
    rondo__scratch scratch = {0};
    const double *a =
        get_operand(&scratch, inputs[0], has_rows_in_front(op, "transBatchA", &inputs[0]->shape));
    const double *b =
        get_operand(&scratch, inputs[1], has_rows_in_front(op, "transBatchB", &inputs[1]->shape));
    double *y = rondo__scratch_create(&scratch, count);
    if (scratch.status == RONDO_STATUS_OK) {
        rondo__product_run(&product, a, b, y);
        for (int64_t i = 0; i < count; i++) {
            y[i] *= alpha;
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static const char *const fused_attributes[] = {"alpha",       "transA",      "transB",
                                               "transBatchA", "transBatchB", NULL};
static const char *const transposed_attributes[] = {"alpha", "transA", "transB", NULL};

#define ENTRY(op_name, attribute_list)                                                           \
    RONDO_OP_ROW(MS, op_name, 1, 1, 2, 2, 1, 1, .capture = RONDO__CAPTURE_YES,                   \
                 .attributes = (attribute_list), .infer = infer_fused, .compute = compute_fused, \
                 .weights = 1, .half.kind = HALF_PRODUCT)

const rondo__op_def rondo__op_table_fused_product[] = {
    ENTRY(FusedMatMul, fused_attributes),
    ENTRY(TransposeMatMul, transposed_attributes),
    {.name = NULL},
};
