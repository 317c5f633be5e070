// op/fused/op_rotate.c — rondo.Rotate: pairs of numbers turned by angles (see op/fused/fused.h).
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "op/broadcast.h"
#include "op/fused/fused.h"
#include "op/fused/rotate.h"
#include "op/op.h"
#include "op/reference.h"

// Whether both extents of angles, counted from the end, are 1 or those of a turned part.
static bool do_angles_fit(const rondo_shape *angles, const rondo_shape *part) {
    for (int32_t d = 1; d <= angles->rank; d++) {
        const int64_t extent = angles->extent[angles->rank - d];
        if (d > 4 || (extent != 1 && (d == 3 || extent != part->extent[4 - d]))) {
            return false;
        }
    }
    return true;
}

rondo_status rondo__rotate_read_heads(const rondo__op *op, const rondo_shape *x,
                                      const rondo_shape *cosines, const rondo_shape *sines,
                                      size_t output_count, rondo__rotate_heads *out_heads) {
    size_t count = 0;
    const int64_t *heads = rondo__op_get_ints(op, "heads", &count);
    rondo__rotate_heads h = {.count = count, .turned = rondo__op_get_int(op, "turned", 0)};
    bool is_fit = x->rank == 3 && count == output_count && count <= RONDO__ROTATE_PARTS_MOST &&
                  h.turned >= 0 && h.turned <= (int64_t)count;
    for (size_t i = 0; is_fit && i < count; i++) {
        is_fit = heads[i] > 0 && heads[i] <= x->extent[2] - h.all;
        h.heads[i] = heads[i];
        h.all += heads[i];
    }
    is_fit = is_fit && h.all > 0 && x->extent[2] % (2 * h.all) == 0;
    if (is_fit) {
        h.width = x->extent[2] / h.all;
        const rondo_shape part = {4, {x->extent[0], 1, x->extent[1], h.width}};
        is_fit = do_angles_fit(cosines, &part) && do_angles_fit(sines, &part);
    }
    if (!is_fit) {
        return RONDO_OP_FAIL(op, BAD_DATA, "x, the angles and attribute heads do not fit together");
    }
    *out_heads = h;
    return RONDO_STATUS_OK;
}

static rondo_status infer_heads(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo__rotate_heads h;
    RETURN_IF_ERROR(rondo__rotate_read_heads(infer->op, x, &infer->inputs[1].shape,
                                             &infer->inputs[2].shape, infer->output_count, &h));
    for (size_t i = 0; i < h.count; i++) {
        const rondo_shape part = {4, {x->extent[0], h.heads[i], x->extent[1], h.width}};
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, infer->inputs[0].dtype, &part));
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_rotate(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 3));
    if (rondo__op_find(infer->op, "heads") != NULL) {
        return infer_heads(infer);
    }
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

// Output i: heads from `first` on.
static rondo_status compute_part(rondo__compute *compute, const rondo__rotate_heads *h, size_t i,
                                 int64_t first) {
    const rondo_shape *x_shape = &compute->inputs[0]->shape;
    const int64_t batch = x_shape->extent[0], rows = x_shape->extent[1], width = h->width;
    const rondo_shape shape = {4, {batch, h->heads[i], rows, width}};
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *cosines = spread(&scratch, compute->inputs[1], &shape);
    const double *sines = spread(&scratch, compute->inputs[2], &shape);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&shape));
    for (int64_t n = 0; scratch.status == RONDO_STATUS_OK && n < batch * h->heads[i] * rows; n++) {
        const int64_t row = n % rows, head = n / rows % h->heads[i], b = n / rows / h->heads[i];
        const double *from = x + ((b * rows + row) * h->all + first + head) * width;
        for (int64_t c = 0; c < width; c++) {
            const double other = c < width / 2 ? -from[c + width / 2] : from[c - width / 2];
            const int64_t at = n * width + c;
            y[at] = (int64_t)i < h->turned ? from[c] * cosines[at] + other * sines[at] : from[c];
        }
    }
    return rondo__scratch_end_as(&scratch, compute, i, y);
}

static rondo_status compute_heads(rondo__compute *compute) {
    rondo__rotate_heads h;
    int64_t first = 0;
    RETURN_IF_ERROR(rondo__rotate_read_heads(compute->op, &compute->inputs[0]->shape,
                                             &compute->inputs[1]->shape, &compute->inputs[2]->shape,
                                             compute->output_count, &h));
    for (size_t i = 0; i < h.count; first += h.heads[i], i++) {
        RETURN_IF_ERROR(compute_part(compute, &h, i, first));
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_rotate(rondo__compute *compute) {
    if (rondo__op_find(compute->op, "heads") != NULL) {
        return compute_heads(compute);
    }
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
    RONDO_OP_ROW(FUSED, Rotate, 1, RONDO_OP_OPSET_MAX, 3, 3, 1, RONDO__ROTATE_PARTS_MOST,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES, .infer = infer_rotate,
                 .compute = compute_rotate),
    {.name = NULL},
};
