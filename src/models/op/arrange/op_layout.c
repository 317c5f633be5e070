// op/arrange/op_layout.c — ops that move elements without changing them: Concat, DepthToSpace,
// ReverseSequence, Slice, SpaceToDepth, Split, Tile, Transpose, Trilu.
//
// Most of them are one strided copy: a dense result read from the input at some offset and strides.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/arrange/slice.h"
#include "op/op.h"
#include "op/support.h"

// ---- Concat -----------------------------------------------------------------------------------

// An input without elements may have any shape, as the rows of a loop that took no turn have: it
// adds nothing. The first input with elements says what the others must fit; the first of all where
// there is none.
static size_t find_concat_pattern(const rondo__infer *infer) {
    for (size_t i = 0; i < infer->input_count; ++i) {
        if (rondo_shape_get_count(&infer->inputs[i].shape) > 0) {
            return i;
        }
    }
    return 0;
}

static bool fits_concat(const rondo_shape *shape, const rondo_shape *next, int32_t axis) {
    bool fits = next->rank == shape->rank;
    for (int32_t d = 0; fits && d < shape->rank; ++d) {
        fits = d == axis || next->extent[d] == shape->extent[d];
    }
    return fits;
}

static rondo_status infer_concat(rondo__infer *infer) {
    const size_t pattern = find_concat_pattern(infer);
    rondo_shape shape = infer->inputs[pattern].shape;
    int32_t axis = 0;
    if (rondo__op_find(infer->op, "axis") == NULL) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute axis is missing");
    }
    RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", 0),
                                           shape.rank, &axis));
    for (size_t i = 0; i < infer->input_count; ++i) {
        const rondo_shape *next = &infer->inputs[i].shape;
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
        const bool fits = fits_concat(&shape, next, axis);
        if (i == pattern || (!fits && rondo_shape_get_count(next) == 0)) {
            continue;
        }
        if (!fits || !rondo__add_i64(shape.extent[axis], next->extent[axis], &shape.extent[axis])) {
            char a[80];
            char b[80];
            return RONDO_OP_FAIL(infer->op, BAD_DATA,
                                 "inputs %zu %s and %zu %s do not join along axis %d", pattern,
                                 rondo_shape_format(&infer->inputs[pattern].shape, a, sizeof a), i,
                                 rondo_shape_format(next, b, sizeof b), axis);
        }
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_concat(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inferred[0].shape;
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", 0),
                                           shape->rank, &axis));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    if (rondo_shape_get_count(shape) == 0) {
        return RONDO_STATUS_OK;
    }
    size_t element_bytes = rondo_dtype_get_bytes(compute->inputs[0]->dtype);
    size_t outer = (size_t)rondo__shape_multiply(shape, 0, axis);
    size_t pitch = (size_t)rondo__shape_multiply(shape, axis, shape->rank) * element_bytes;
    uint8_t *to = output;
    for (size_t i = 0; i < compute->input_count; ++i) {
        const rondo_tensor *input = compute->inputs[i];
        if (rondo_shape_get_count(&input->shape) == 0) {
            continue;
        }
        size_t bytes =
            (size_t)rondo__shape_multiply(&input->shape, axis, shape->rank) * element_bytes;
        const uint8_t *from = input->data;
        for (size_t row = 0; row < outer; ++row) {
            memcpy(to + row * pitch, from + row * bytes, bytes);
        }
        to += bytes;
    }
    return RONDO_STATUS_OK;
}

// ---- Split ------------------------------------------------------------------------------------

// Where the pieces come from: the attribute (up to opset 12), input 1, or equal parts.
typedef struct split_plan {
    int32_t axis;
    const int64_t *sizes;        // from the attribute; NULL otherwise
    const rondo_tensor *values;  // from the input; NULL otherwise
    int64_t chunk;               // equal parts, of which the last may be smaller
} split_plan;

static int64_t get_piece(const split_plan *plan, int64_t extent, size_t index) {
    if (plan->sizes != NULL) {
        return plan->sizes[index];
    }
    if (plan->values != NULL) {
        return rondo__tensor_get_int(plan->values, (int64_t)index);
    }
    int64_t rest = extent - (int64_t)index * plan->chunk;
    return rest < 0 ? 0 : rest < plan->chunk ? rest : plan->chunk;
}

static rondo_status plan_split(const rondo__op *op, const rondo_shape *shape, size_t output_count,
                               const rondo_tensor *values, split_plan *out_plan) {
    split_plan plan = {.values = values};
    size_t size_count = output_count;
    RETURN_IF_ERROR(
        rondo__op_resolve_axis(op, rondo__op_get_int(op, "axis", 0), shape->rank, &plan.axis));
    int64_t extent = shape->extent[plan.axis];
    if (values != NULL) {
        if (!rondo__dtype_is_integer(values->dtype) || values->shape.rank != 1) {
            return RONDO_OP_FAIL(op, BAD_DATA, "the sizes must be a list of integers");
        }
        size_count = (size_t)values->shape.extent[0];
    } else if (op->opset < 13 && rondo__op_find(op, "split") != NULL) {
        plan.sizes = rondo__op_get_ints(op, "split", &size_count);
    } else {
        int64_t parts = (int64_t)output_count;
        int64_t declared = rondo__op_get_int(op, "num_outputs", parts);
        if (declared != parts) {
            return RONDO_OP_FAIL(op, BAD_DATA, "num_outputs is %lld, but %lld outputs are named",
                                 (long long)declared, (long long)parts);
        }
        if (extent % parts != 0 && rondo__op_find(op, "num_outputs") == NULL) {
            return RONDO_OP_FAIL(op, BAD_DATA, "extent %lld does not split into %lld equal parts",
                                 (long long)extent, (long long)parts);
        }
        plan.chunk = extent / parts + (extent % parts != 0);
    }
    if (size_count != output_count) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%zu sizes are given for %zu outputs", size_count,
                             output_count);
    }
    int64_t total = 0;
    for (size_t i = 0; i < output_count; ++i) {
        int64_t piece = get_piece(&plan, extent, i);
        if (piece < 0 || !rondo__add_i64(total, piece, &total)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "size %zu is %lld", i, (long long)piece);
        }
    }
    if (total != extent) {
        return RONDO_OP_FAIL(op, BAD_DATA, "the sizes add up to %lld, the extent is %lld",
                             (long long)total, (long long)extent);
    }
    *out_plan = plan;
    return RONDO_STATUS_OK;
}

rondo_status rondo__split_find_extent(const rondo__op *op, const rondo__tensor_info *inputs,
                                      size_t input_count, size_t output_count, size_t index,
                                      int64_t *out_extent) {
    const bool has_sizes = input_count > 1 && inputs[1].dtype != RONDO_DTYPE_NONE;
    split_plan plan;
    if (has_sizes && inputs[1].constant == NULL) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(plan_split(op, &inputs[0].shape, output_count,
                               has_sizes ? inputs[1].constant : NULL, &plan));
    *out_extent = get_piece(&plan, inputs[0].shape.extent[plan.axis], index);
    return RONDO_STATUS_OK;
}

static rondo_status infer_split(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    for (size_t i = 0; i < infer->output_count; ++i) {
        infer->outputs[i].dtype = infer->inputs[0].dtype;
    }
    const rondo_tensor *values = NULL;
    if (rondo__infer_has_input(infer, 1)) {
        values = infer->inputs[1].constant;
        if (values == NULL) {
            return rondo__infer_needs_value(infer, 1);
        }
    }
    split_plan plan;
    RETURN_IF_ERROR(plan_split(infer->op, x, infer->output_count, values, &plan));
    for (size_t i = 0; i < infer->output_count; ++i) {
        rondo_shape shape = *x;
        shape.extent[plan.axis] = get_piece(&plan, x->extent[plan.axis], i);
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, infer->inputs[0].dtype, &shape));
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_split(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *values = rondo__compute_has_input(compute, 1) ? compute->inputs[1] : NULL;
    split_plan plan;
    RETURN_IF_ERROR(plan_split(compute->op, &input->shape, compute->output_count, values, &plan));
    size_t element_bytes = rondo_dtype_get_bytes(input->dtype);
    size_t outer = (size_t)rondo__shape_multiply(&input->shape, 0, plan.axis);
    size_t pitch =
        (size_t)rondo__shape_multiply(&input->shape, plan.axis, input->shape.rank) * element_bytes;
    const uint8_t *from = input->data;
    for (size_t i = 0; i < compute->output_count; ++i) {
        const rondo_shape *shape = &compute->inferred[i].shape;
        size_t bytes = (size_t)rondo__shape_multiply(shape, plan.axis, shape->rank) * element_bytes;
        if (rondo__compute_wants_output(compute, i)) {
            void *output = NULL;
            RETURN_IF_ERROR(rondo__compute_get_inferred(compute, i, &output));
            for (size_t row = 0; bytes > 0 && row < outer; ++row) {
                memcpy((uint8_t *)output + row * bytes, from + row * pitch, bytes);
            }
        }
        from = bytes > 0 ? from + bytes : from;
    }
    return RONDO_STATUS_OK;
}

// ---- Slice ------------------------------------------------------------------------------------

static rondo_status infer_slice(rondo__infer *infer) {
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    const rondo_tensor *values[4] = {NULL, NULL, NULL, NULL};
    bool is_known = true;
    for (size_t i = 0; i < 4; ++i) {
        if (rondo__infer_has_input(infer, i + 1)) {
            values[i] = infer->inputs[i + 1].constant;
            if (values[i] == NULL) {
                (void)rondo__infer_needs_value(infer, i + 1);
                is_known = false;
            }
        }
    }
    if (!is_known) {
        return rondo__infer_set_rank(infer, 0, infer->inputs[0].shape.rank);
    }
    rondo__slice slice;
    RETURN_IF_ERROR(rondo__slice_init(infer->op, &infer->inputs[0].shape, values, &slice));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &slice.shape);
}

static rondo_status compute_slice(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *values[4] = {NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < 4; ++i) {
        values[i] = rondo__compute_has_input(compute, i + 1) ? compute->inputs[i + 1] : NULL;
    }
    rondo__slice slice;
    RETURN_IF_ERROR(rondo__slice_init(compute->op, &input->shape, values, &slice));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    const size_t bytes = rondo_dtype_get_bytes(input->dtype);
    rondo__copy_strided(bytes, slice.shape.rank, slice.shape.extent, slice.stride,
                        (const uint8_t *)input->data + slice.offset * (int64_t)bytes, output);
    return RONDO_STATUS_OK;
}

// ---- Transpose --------------------------------------------------------------------------------

static rondo_status read_permutation(const rondo__op *op, int32_t rank, int32_t *out_permutation) {
    size_t count = 0;
    const int64_t *given = rondo__op_get_ints(op, "perm", &count);
    if (given == NULL) {
        for (int32_t d = 0; d < rank; ++d) {
            out_permutation[d] = rank - 1 - d;
        }
        return RONDO_STATUS_OK;
    }
    uint32_t mask = 0;
    if (count != (size_t)rank) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute perm has %zu entries for rank %d", count,
                             rank);
    }
    RETURN_IF_ERROR(rondo__op_resolve_axes(op, given, count, rank, &mask));
    for (int32_t d = 0; d < rank; ++d) {
        // Unlike other axes these do not count from the end; kernels rely on it.
        if (given[d] < 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute perm has the negative entry %lld",
                                 (long long)given[d]);
        }
        out_permutation[d] = (int32_t)given[d];
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_transpose(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    int32_t permutation[RONDO_RANK_MAX];
    RETURN_IF_ERROR(read_permutation(infer->op, x->rank, permutation));
    rondo_shape shape = {.rank = x->rank};
    for (int32_t d = 0; d < x->rank; ++d) {
        shape.extent[d] = x->extent[permutation[d]];
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_transpose(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *shape = &compute->inferred[0].shape;
    int32_t permutation[RONDO_RANK_MAX];
    RETURN_IF_ERROR(read_permutation(compute->op, shape->rank, permutation));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    int64_t own[RONDO_RANK_MAX];
    int64_t strides[RONDO_RANK_MAX];
    rondo__shape_get_strides(&input->shape, own);
    for (int32_t d = 0; d < shape->rank; ++d) {
        strides[d] = own[permutation[d]];
    }
    rondo__copy_strided(rondo_dtype_get_bytes(input->dtype), shape->rank, shape->extent, strides,
                        input->data, output);
    return RONDO_STATUS_OK;
}

// ---- Tile -------------------------------------------------------------------------------------

static rondo_status infer_tile(rondo__infer *infer) {
    rondo_shape shape = infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    if (infer->inputs[1].constant == NULL) {
        (void)rondo__infer_needs_value(infer, 1);
        return rondo__infer_set_rank(infer, 0, shape.rank);
    }
    int64_t repeats[RONDO_RANK_MAX];
    size_t count = 0;
    RETURN_IF_ERROR(rondo__op_read_ints(infer->op, "repeats", infer->inputs[1].constant,
                                        RONDO_RANK_MAX, repeats, &count));
    if (count != (size_t)shape.rank) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "%zu repeats are given for rank %d", count,
                             shape.rank);
    }
    for (int32_t d = 0; d < shape.rank; ++d) {
        if (repeats[d] < 0 || !rondo__mul_i64(shape.extent[d], repeats[d], &shape.extent[d])) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "repeat %d is %lld", d,
                                 (long long)repeats[d]);
        }
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_tile(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *shape = &compute->inferred[0].shape;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    if (rondo_shape_get_count(shape) == 0) {
        return RONDO_STATUS_OK;
    }
    // Each extent becomes two: how often (stride 0), and the extent itself.
    int64_t own[RONDO_RANK_MAX];
    int64_t extent[RONDO_OP_STRIDED_RANK_MAX];
    int64_t strides[RONDO_OP_STRIDED_RANK_MAX];
    rondo__shape_get_strides(&input->shape, own);
    for (int32_t d = 0; d < shape->rank; ++d) {
        extent[2 * d] = shape->extent[d] / input->shape.extent[d];
        strides[2 * d] = 0;
        extent[2 * d + 1] = input->shape.extent[d];
        strides[2 * d + 1] = own[d];
    }
    rondo__copy_strided(rondo_dtype_get_bytes(input->dtype), 2 * shape->rank, extent, strides,
                        input->data, output);
    return RONDO_STATUS_OK;
}

// ---- DepthToSpace, SpaceToDepth ---------------------------------------------------------------

static rondo_status check_blocks(const rondo__infer *infer, int64_t *out_block) {
    const rondo_shape *x = &infer->inputs[0].shape;
    int64_t block = rondo__op_get_int(infer->op, "blocksize", 0);
    if (x->rank != 4 || block <= 0 || block > INT32_MAX) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "needs rank 4 and blocksize above 0; has %d, %lld", x->rank,
                             (long long)block);
    }
    *out_block = block;
    return RONDO_STATUS_OK;
}

static rondo_status check_block_mode(const rondo__op *op) {
    const char *mode = rondo__op_get_string(op, "mode", "DCR");
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0) {
        return rondo__op_fail_unsupported(op, "attribute mode");
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_depth_to_space(rondo__infer *infer) {
    int64_t block = 0;
    RETURN_IF_ERROR(check_blocks(infer, &block));
    rondo_shape shape = infer->inputs[0].shape;
    if (shape.extent[1] % (block * block) != 0) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "%lld channels do not make blocks of %lld",
                             (long long)shape.extent[1], (long long)block);
    }
    shape.extent[1] /= block * block;
    for (int32_t d = 2; d < 4; ++d) {
        if (!rondo__mul_i64(shape.extent[d], block, &shape.extent[d])) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "the result is too large");
        }
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_depth_to_space(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *y = &compute->inferred[0].shape;
    bool is_crd = strcmp(rondo__op_get_string(compute->op, "mode", "DCR"), "CRD") == 0;
    int64_t block = rondo__op_get_int(compute->op, "blocksize", 1);
    int64_t height = input->shape.extent[2];
    int64_t width = input->shape.extent[3];
    int64_t plane = height * width;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    // The result as [N, C, H, block, W, block]. A channel of the input is (block row, block column,
    // c) in DCR order and (c, block row, block column) in CRD order.
    int64_t extent[6] = {y->extent[0], y->extent[1], height, block, width, block};
    int64_t c_stride = is_crd ? block * block * plane : plane;
    int64_t column_stride = is_crd ? plane : y->extent[1] * plane;
    int64_t strides[6] = {input->shape.extent[1] * plane, c_stride, width,
                          block * column_stride,          1,        column_stride};
    rondo__copy_strided(rondo_dtype_get_bytes(input->dtype), 6, extent, strides, input->data,
                        output);
    return RONDO_STATUS_OK;
}

static rondo_status infer_space_to_depth(rondo__infer *infer) {
    int64_t block = 0;
    RETURN_IF_ERROR(check_blocks(infer, &block));
    rondo_shape shape = infer->inputs[0].shape;
    if (shape.extent[2] % block != 0 || shape.extent[3] % block != 0 ||
        !rondo__mul_i64(shape.extent[1], block * block, &shape.extent[1])) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "%lld x %lld does not divide into blocks of %lld",
                             (long long)shape.extent[2], (long long)shape.extent[3],
                             (long long)block);
    }
    shape.extent[2] /= block;
    shape.extent[3] /= block;
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_space_to_depth(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *x = &input->shape;
    const rondo_shape *y = &compute->inferred[0].shape;
    int64_t block = rondo__op_get_int(compute->op, "blocksize", 1);
    int64_t plane = x->extent[2] * x->extent[3];
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    // The result as [N, block row, block column, C, H / block, W / block], in CRD order with C in
    // front of the block.
    const bool is_crd = strcmp(rondo__op_get_string(compute->op, "mode", "DCR"), "CRD") == 0;
    const int32_t row = is_crd ? 2 : 1, column = is_crd ? 3 : 2, c = is_crd ? 1 : 3;
    int64_t extent[6] = {x->extent[0], 0, 0, 0, y->extent[2], y->extent[3]};
    int64_t strides[6] = {x->extent[1] * plane, 0, 0, 0, block * x->extent[3], block};
    extent[row] = extent[column] = block;
    extent[c] = x->extent[1];
    strides[row] = x->extent[3];
    strides[column] = 1;
    strides[c] = plane;
    rondo__copy_strided(rondo_dtype_get_bytes(input->dtype), 6, extent, strides, input->data,
                        output);
    return RONDO_STATUS_OK;
}

// ---- Trilu ------------------------------------------------------------------------------------

static rondo_status infer_trilu(rondo__infer *infer) {
    if (infer->inputs[0].shape.rank < 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the input has rank %d; it must have matrices",
                             infer->inputs[0].shape.rank);
    }
    if (rondo__infer_has_input(infer, 1) && (infer->inputs[1].dtype != RONDO_DTYPE_I64 ||
                                             rondo_shape_get_count(&infer->inputs[1].shape) != 1)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "k must be one i64 number");
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_trilu(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *shape = &input->shape;
    bool is_upper = rondo__op_get_int(compute->op, "upper", 1) != 0;
    int64_t k =
        rondo__compute_has_input(compute, 1) ? rondo__tensor_get_int(compute->inputs[1], 0) : 0;
    int64_t rows = shape->extent[shape->rank - 2];
    int64_t columns = shape->extent[shape->rank - 1];
    int64_t count = rondo_shape_get_count(shape);
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    if (count == 0) {
        return RONDO_STATUS_OK;
    }
    // Beyond the corners nothing changes; this also keeps row + k in range.
    k = k < -rows ? -rows : k > columns ? columns : k;
    memset(output, 0, (size_t)count * bytes);
    for (int64_t row = 0; row < count / columns; ++row) {
        // The first column of the upper triangle is row + k, the last of the lower one too.
        int64_t edge = row % rows + k + (is_upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        int64_t first = is_upper ? edge : 0;
        int64_t last = is_upper ? columns : edge;
        size_t at = (size_t)(row * columns + first) * bytes;
        memcpy((uint8_t *)output + at, (const uint8_t *)input->data + at,
               (size_t)(last - first) * bytes);
    }
    return RONDO_STATUS_OK;
}

// ---- ReverseSequence --------------------------------------------------------------------------

static rondo_status infer_reverse_sequence(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo__tensor_info *lengths = &infer->inputs[1];
    int64_t batch = rondo__op_get_int(infer->op, "batch_axis", 1);
    int64_t time = rondo__op_get_int(infer->op, "time_axis", 0);
    if (x->rank < 2 || (time != 0 && time != 1) || batch != 1 - time) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "time_axis and batch_axis must be 0 and 1, and the rank at least 2");
    }
    if (lengths->dtype != RONDO_DTYPE_I64 || lengths->shape.rank != 1 ||
        lengths->shape.extent[0] != x->extent[batch]) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "there must be %lld sequence lengths of type i64",
                             (long long)x->extent[batch]);
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_reverse_sequence(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *x = &input->shape;
    bool is_time_first = rondo__op_get_int(compute->op, "time_axis", 0) == 0;
    int64_t batches = x->extent[is_time_first ? 1 : 0];
    int64_t steps = x->extent[is_time_first ? 0 : 1];
    size_t bytes =
        (size_t)rondo__shape_multiply(x, 2, x->rank) * rondo_dtype_get_bytes(input->dtype);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    for (int64_t b = 0; b < batches; ++b) {
        int64_t length = rondo__tensor_get_int(compute->inputs[1], b);
        if (length < 0 || length > steps) {
            return RONDO_OP_FAIL(compute->op, BAD_DATA,
                                 "length %lld of sequence %lld is not in "
                                 "[0, %lld]",
                                 (long long)length, (long long)b, (long long)steps);
        }
        for (int64_t t = 0; bytes > 0 && t < steps; ++t) {
            int64_t from = t < length ? length - 1 - t : t;
            int64_t to_row = is_time_first ? t * batches + b : b * steps + t;
            int64_t from_row = is_time_first ? from * batches + b : b * steps + from;
            memcpy((uint8_t *)output + (size_t)to_row * bytes,
                   (const uint8_t *)input->data + (size_t)from_row * bytes, bytes);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const axis_attributes[] = {"axis", NULL};
static const char *const depth_to_space_attributes[] = {"blocksize", "mode", NULL};
static const char *const reverse_attributes[] = {"batch_axis", "time_axis", NULL};
static const char *const slice_attributes[] = {"axes", "ends", "starts", NULL};
static const char *const space_to_depth_attributes[] = {"blocksize", NULL};
static const char *const split_attributes[] = {"axis", "split", NULL};
static const char *const split_13_attributes[] = {"axis", NULL};
static const char *const split_18_attributes[] = {"axis", "num_outputs", NULL};
static const char *const transpose_attributes[] = {"perm", NULL};
static const char *const trilu_attributes[] = {"upper", NULL};

#define ENTRY(op, first, last, inputs_min, inputs_max, outputs_max, attribute_list, \
              infer_function, compute_function, ...)                                \
    RONDO_OP_ROW(OP, op, first, last, inputs_min, inputs_max, 1, outputs_max,       \
                 .flags = RONDO__OP_NATIVE_HALF, .capture = RONDO__CAPTURE_YES,     \
                 .attributes = attribute_list, .infer = infer_function,             \
                 .compute = compute_function, .check = __VA_ARGS__)
#define ANY RONDO_OP_ANY_COUNT

const rondo__op_def rondo__op_table_layout[] = {
    ENTRY(Concat, 4, 28, 1, ANY, 1, axis_attributes, infer_concat, compute_concat, NULL,
          .strings = RONDO__INPUTS_ALL, .moved = RONDO__INPUTS_ALL),
    ENTRY(DepthToSpace, 1, 28, 1, 1, 1, depth_to_space_attributes, infer_depth_to_space,
          compute_depth_to_space, check_block_mode, .strings = RONDO__INPUT_0,
          .moved = RONDO__INPUT_0),
    ENTRY(ReverseSequence, 10, 28, 2, 2, 1, reverse_attributes, infer_reverse_sequence,
          compute_reverse_sequence, NULL, .strings = RONDO__INPUT_0, .is_fallible = true,
          .moved = RONDO__INPUT_0),
    ENTRY(Slice, 1, 9, 1, 1, 1, slice_attributes, infer_slice, compute_slice, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Slice, 10, 28, 3, 5, 1, no_attributes, infer_slice, compute_slice, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(SpaceToDepth, 1, 27, 1, 1, 1, space_to_depth_attributes, infer_space_to_depth,
          compute_space_to_depth, NULL, .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(SpaceToDepth, 28, 28, 1, 1, 1, depth_to_space_attributes, infer_space_to_depth,
          compute_space_to_depth, check_block_mode, .strings = RONDO__INPUT_0,
          .moved = RONDO__INPUT_0),
    ENTRY(Split, 2, 12, 1, 1, ANY, split_attributes, infer_split, compute_split, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Split, 13, 17, 1, 2, ANY, split_13_attributes, infer_split, compute_split, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Split, 18, 28, 1, 2, ANY, split_18_attributes, infer_split, compute_split, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Tile, 6, 28, 2, 2, 1, no_attributes, infer_tile, compute_tile, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Transpose, 1, 28, 1, 1, 1, transpose_attributes, infer_transpose, compute_transpose, NULL,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(Trilu, 14, 28, 1, 2, 1, trilu_attributes, infer_trilu, compute_trilu, NULL,
          .moved = RONDO__INPUT_0),
    {0},
};
