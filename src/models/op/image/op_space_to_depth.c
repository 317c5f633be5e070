// op/image/op_space_to_depth.c — rondo.SpaceToDepth; see space_to_depth.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "op/fused/fused.h"
#include "op/image/space_to_depth.h"
#include "op/reference.h"

enum { IMAGE_RANK = 4 };

static const int64_t most = INT32_MAX;  // of an extent, a block, a pad, and of channels

// Two ints of at least `least`.
static rondo_status read_pair(const rondo__op *op, const char *name, int64_t least, int64_t *out) {
    size_t count = 0;
    const int64_t *values = rondo__op_get_ints(op, name, &count);
    if (count != RONDO__SPACE_AXES) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s has %zu entries, 2 are expected", name,
                             count);
    }
    for (size_t i = 0; i < count; i++) {
        if (values[i] < least || values[i] > most) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s[%zu] is %lld, out of range", name, i,
                                 (long long)values[i]);
        }
        out[i] = values[i];
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_channels(const rondo__op *op, const rondo__space_to_depth *s,
                                   int64_t channels) {
    int64_t needed;
    if (!rondo__mul_i64(s->depth, s->block[0], &needed) ||
        !rondo__mul_i64(needed, s->block[1], &needed) || channels < needed || channels > most) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "attribute channels is %lld, too few for %lld channels in blocks of "
                             "%lld x %lld",
                             (long long)channels, (long long)s->depth, (long long)s->block[0],
                             (long long)s->block[1]);
    }
    return RONDO_STATUS_OK;
}

static void find_strides(rondo__space_to_depth *s) {
    const int64_t pixels = s->image[0] * s->image[1];
    const int64_t step = s->is_last ? s->depth : 1;
    s->image_stride = pixels * s->depth;
    s->channel_stride = s->is_last ? 1 : pixels;
    s->pixel_stride[0] = s->image[1] * step;
    s->pixel_stride[1] = step;
}

rondo_status rondo__space_to_depth_init(const rondo__op *op, const rondo_shape *x,
                                        rondo__space_to_depth *out_form) {
    rondo__space_to_depth s = {
        .is_last = rondo__op_get_int(op, "channels_last", 0) != 0,
        .saturates = rondo__op_get_int(op, "saturate", 0) != 0,
        .dtype = rondo__dtype_from_onnx(rondo__op_get_int(op, "to", 0)),
    };
    int64_t extent[RONDO__SPACE_AXES];
    if (x->rank != IMAGE_RANK) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input x has rank %d, 4 is expected", x->rank);
    }
    if (s.dtype != RONDO_DTYPE_F32 && s.dtype != RONDO_DTYPE_F16) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute to is neither f32 nor f16");
    }
    s.batch = x->extent[0];
    s.depth = x->extent[s.is_last ? 3 : 1];
    s.image[0] = x->extent[s.is_last ? 1 : 2];
    s.image[1] = x->extent[s.is_last ? 2 : 3];
    RETURN_IF_ERROR(read_pair(op, "block", 1, s.block));
    RETURN_IF_ERROR(read_pair(op, "before", 0, s.before));
    RETURN_IF_ERROR(read_pair(op, "extent", 1, extent));
    const int64_t channels = rondo__op_get_int(op, "channels", 0);
    RETURN_IF_ERROR(check_channels(op, &s, channels));
    find_strides(&s);
    s.output =
        (rondo_shape){.rank = IMAGE_RANK, .extent = {s.batch, extent[0], extent[1], channels}};
    *out_form = s;
    return RONDO_STATUS_OK;
}

static rondo_status infer_space_to_depth(rondo__infer *infer) {
    rondo__space_to_depth s;
    const rondo_dtype dtype = infer->inputs[0].dtype;
    if (dtype != RONDO_DTYPE_F32 && dtype != RONDO_DTYPE_F16) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    RETURN_IF_ERROR(rondo__space_to_depth_init(infer->op, &infer->inputs[0].shape, &s));
    return rondo__infer_set_output(infer, 0, s.dtype, &s.output);
}

// The channels of one position of y.
static void fill_block(const rondo__space_to_depth *s, int64_t row, int64_t column,
                       const double *image, double *channels) {
    for (int64_t d = 0; d < s->depth * s->block[0] * s->block[1]; d++) {
        const int64_t c = d / (s->block[0] * s->block[1]);
        const int64_t y = row * s->block[0] + d / s->block[1] % s->block[0] - s->before[0];
        const int64_t x = column * s->block[1] + d % s->block[1] - s->before[1];
        if (y < 0 || y >= s->image[0] || x < 0 || x >= s->image[1]) {
            continue;
        }
        channels[d] =
            image[c * s->channel_stride + y * s->pixel_stride[0] + x * s->pixel_stride[1]];
        if (s->saturates) {
            channels[d] = (double)rondo__scalar_op_apply(RONDO__SCALAR_Saturate, 0.0f, 0.0f,
                                                         (float)channels[d], 0.0f);
        }
    }
}

static rondo_status compute_space_to_depth(rondo__compute *compute) {
    rondo__space_to_depth s;
    RETURN_IF_ERROR(rondo__space_to_depth_init(compute->op, &compute->inputs[0]->shape, &s));
    const int64_t *extent = s.output.extent;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&s.output));
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t at = 0; at < extent[0] * extent[1] * extent[2]; at++) {
            const int64_t column = at % extent[2], row = at / extent[2] % extent[1];
            fill_block(&s, row, column, x + at / extent[2] / extent[1] * s.image_stride,
                       y + at * extent[3]);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

const rondo__op_def rondo__op_table_space_to_depth[] = {
    RONDO_OP_ROW(FUSED, SpaceToDepth, 1, RONDO_OP_OPSET_MAX, 1, 1, 1, 1,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_space_to_depth, .compute = compute_space_to_depth),
    {.name = NULL},
};
