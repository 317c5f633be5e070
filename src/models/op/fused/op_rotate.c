// op/fused/op_rotate.c — rondo.Rotate: pairs of numbers turned by angles (see op/fused/fused.h).
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "op/broadcast.h"
#include "op/fused/fused.h"
#include "op/op.h"
#include "op/reference.h"

static rondo_status infer_rotate(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 3));
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    if (!rondo_shape_is_equal(&shape, x) || x->rank == 0 || x->extent[x->rank - 1] % 2 != 0) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "x has no even last axis, or the angles are not as long");
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, x);
}

// An angle's number for each element of x.
static const double *spread(rondo__scratch *scratch, const rondo_tensor *angles,
                            const rondo_shape *shape) {
    const rondo_shape *const operands[] = {&angles->shape};
    const double *wide = rondo__scratch_widen(scratch, angles);
    double *all = rondo__scratch_create(scratch, rondo_shape_get_count(shape));
    rondo__broadcast walk;
    if (scratch->status != RONDO_STATUS_OK) {
        return NULL;
    }
    rondo__broadcast_init(&walk, shape, operands, 1);
    for (int64_t row = 0; row < walk.row_count; row++, rondo__broadcast_advance(&walk)) {
        for (int64_t i = 0; i < walk.row_length; i++) {
            all[row * walk.row_length + i] = wide[walk.offset[0] + i * walk.row_stride[0]];
        }
    }
    return all;
}

static rondo_status compute_rotate(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const int64_t count = rondo_shape_get_count(shape), length = shape->extent[shape->rank - 1];
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *cosines = spread(&scratch, compute->inputs[1], shape);
    const double *sines = spread(&scratch, compute->inputs[2], shape);
    double *y = rondo__scratch_create(&scratch, count);
    for (int64_t i = 0; scratch.status == RONDO_STATUS_OK && i < count; i++) {
        const bool is_first = i % length < length / 2;
        const double other = is_first ? -x[i + length / 2] : x[i - length / 2];
        y[i] = x[i] * cosines[i] + other * sines[i];
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

const rondo__op_def rondo__op_table_rotate[] = {
    RONDO_OP_ROW(FUSED, Rotate, 1, RONDO_OP_OPSET_MAX, 3, 3, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_rotate, .compute = compute_rotate),
    {.name = NULL},
};
