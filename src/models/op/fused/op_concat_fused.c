// op/fused/op_concat_fused.c — rondo.Concat: images beside each other by channels (see
// op/fused/fused.h).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "op/fused/fused.h"
#include "op/op.h"

enum { INPUTS_MAX = 64 };

static rondo_status read_blocks(const rondo__op *op, size_t input_count,
                                const int64_t **out_blocks) {
    size_t count;
    *out_blocks = rondo__op_get_ints(op, "blocks", &count);
    for (size_t i = 0; i < count; i++) {
        count = (*out_blocks)[i] >= 1 ? count : 0;
    }
    return count == input_count
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(op, BAD_DATA, "attribute blocks has not a size for each input");
}

// Channels of an input whose blocks lie side by side; 0: they do not fit, or not `y`.
static int64_t count_spread_channels(const rondo_shape *x, int64_t block, const rondo_shape *y) {
    const bool fits = x->rank == 4 && block <= INT32_MAX && x->extent[3] % (block * block) == 0 &&
                      x->extent[0] == y->extent[0] && x->extent[1] * block == y->extent[1] &&
                      x->extent[2] * block == y->extent[2];
    return fits ? x->extent[3] / (block * block) : 0;
}

static rondo_status infer_concat(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const int64_t *blocks;
    RETURN_IF_ERROR(read_blocks(infer->op, infer->input_count, &blocks));
    rondo_shape shape = inputs[0].shape;
    if (shape.rank == 4) {
        shape.extent[1] *= blocks[0];
        shape.extent[2] *= blocks[0];
        shape.extent[3] = 0;
    }
    for (size_t i = 0; i < infer->input_count; i++) {
        const int64_t channels = count_spread_channels(&inputs[i].shape, blocks[i], &shape);
        if (channels == 0 || inputs[i].dtype != inputs[0].dtype) {
            char text[96];
            return RONDO_OP_FAIL(infer->op, BAD_DATA,
                                 "input %zu of shape %s does not go beside input 0", i,
                                 rondo_shape_format(&inputs[i].shape, text, sizeof text));
        }
        shape.extent[3] += channels;
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &shape);
}

// The channels of an image, in blocks, to where they begin in each pixel of the result.
static void spread_image(const rondo_tensor *x, int64_t block, const rondo_shape *y, size_t begin,
                         uint8_t *to) {
    const size_t element_bytes = rondo_dtype_get_bytes(x->dtype);
    const size_t bytes = (size_t)count_spread_channels(&x->shape, block, y) * element_bytes;
    const size_t pitch = (size_t)y->extent[3] * element_bytes;
    const int64_t height = y->extent[1], width = y->extent[2];
    for (int64_t row = 0; row < y->extent[0] * height; row++) {
        for (int64_t column = 0; column < width; column++) {
            const int64_t source = row / block * (width / block) + column / block;
            const int64_t from = (source * block + row % block) * block + column % block;
            memcpy(to + (size_t)(row * width + column) * pitch + begin * element_bytes,
                   (const uint8_t *)x->data + (size_t)from * bytes, bytes);
        }
    }
}

static rondo_status compute_concat(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int64_t *blocks;
    void *output = NULL;
    size_t begin = 0;
    RETURN_IF_ERROR(read_blocks(compute->op, compute->input_count, &blocks));
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    for (size_t i = 0; i < compute->input_count; i++) {
        const rondo_tensor *x = compute->inputs[i];
        spread_image(x, blocks[i], shape, begin, output);
        begin += (size_t)count_spread_channels(&x->shape, blocks[i], shape);
    }
    return RONDO_STATUS_OK;
}

const rondo__op_def rondo__op_table_concat_fused[] = {
    RONDO_OP_ROW(FUSED, Concat, 1, RONDO_OP_OPSET_MAX, 1, INPUTS_MAX, 1, 1,
                 .flags = RONDO__OP_INTERNAL | RONDO__OP_NATIVE_HALF, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_concat, .compute = compute_concat),
    {.name = NULL},
};
