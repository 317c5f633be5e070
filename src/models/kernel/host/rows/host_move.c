// kernel/host/rows/host_move.c — ops that move elements without computing: Transpose, Expand,
// Slice, Concat, Split, Tile of one axis, Gather. All but Gather are lists of strided copies.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/rows/strided_copy.h"
#include "op/arrange/slice.h"
#include "op/support.h"

typedef struct piece {
    uint32_t input;
    uint32_t output;
    bool is_skipped;  // it is there already
    rondo__strided_copy copy;
} piece;

typedef struct move_kernel {
    rondo__host_kernel head;
    size_t piece_count;
    piece *pieces;
} move_kernel;

static void deinit_move(rondo__host_kernel *head) {
    rondo__free(((move_kernel *)head)->pieces);
}

static rondo_status run_move(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    (void)workspace;
    const move_kernel *kernel = (const move_kernel *)head;
    for (size_t i = 0; i < kernel->piece_count; ++i) {
        const piece *now = &kernel->pieces[i];
        if (outputs[now->output] != NULL && !now->is_skipped) {
            rondo__strided_copy_run(&now->copy, inputs[now->input], outputs[now->output]);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status create_move(const rondo__kernel_request *request, size_t piece_count,
                                move_kernel **out_kernel) {
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(move_kernel), "simd", run_move, deinit_move);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    move_kernel *kernel = (move_kernel *)head;
    kernel->piece_count = piece_count;
    kernel->pieces = rondo__calloc(piece_count, sizeof *kernel->pieces);
    if (kernel->pieces == NULL) {
        rondo__kernel_destroy(&head->base);
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_kernel = kernel;
    return RONDO_STATUS_OK;
}

static void init_piece(piece *now, uint32_t input, uint32_t output, size_t element_bytes,
                       const rondo_shape *box, const int64_t *from_stride, int64_t from_offset,
                       const int64_t *to_stride, int64_t to_offset) {
    now->input = input;
    now->output = output;
    rondo__strided_copy_init(&now->copy, element_bytes, box->rank, box->extent, from_stride,
                             from_offset, to_stride, to_offset);
}

static void skip_input(rondo__kernel *base, size_t input) {
    move_kernel *kernel = (move_kernel *)base;
    for (size_t i = 0; i < kernel->piece_count; ++i) {
        piece *now = &kernel->pieces[i];
        now->is_skipped = now->is_skipped || now->input == input;
    }
}

static const rondo__kernel_moves skipped_moves = {.skip_input = skip_input};

static void join_output(rondo__kernel *base) {
    skip_input(base, 0);
}

// An op that fills its one output from input 0 at these strides.
static rondo_status prepare_single(const rondo__kernel_request *request, const int64_t *from_stride,
                                   int64_t from_offset, rondo__kernel **out_kernel) {
    move_kernel *kernel = NULL;
    RETURN_IF_ERROR(create_move(request, 1, &kernel));
    const rondo_shape *box = &request->outputs[0].shape;
    int64_t to_stride[RONDO_RANK_MAX];
    rondo__shape_get_strides(box, to_stride);
    init_piece(&kernel->pieces[0], 0, 0, rondo_dtype_get_bytes(request->outputs[0].dtype), box,
               from_stride, from_offset, to_stride, 0);
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_transpose(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    size_t count = 0;
    const int64_t *order = rondo__op_get_ints(request->op, "perm", &count);
    int64_t strides[RONDO_RANK_MAX];
    int64_t from_stride[RONDO_RANK_MAX];
    rondo__shape_get_strides(x, strides);
    for (int32_t i = 0; i < x->rank; ++i) {
        from_stride[i] = strides[order != NULL ? order[i] : x->rank - 1 - i];
    }
    RETURN_IF_ERROR(prepare_single(request, from_stride, 0, out_kernel));
    (*out_kernel)->moves = &skipped_moves;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_expand(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    const rondo_shape *y = &request->outputs[0].shape;
    int64_t strides[RONDO_RANK_MAX];
    int64_t from_stride[RONDO_RANK_MAX];
    rondo__shape_get_strides(x, strides);
    for (int32_t i = 0; i < y->rank; ++i) {
        const int32_t own = x->rank - y->rank + i;
        from_stride[i] = own >= 0 && x->extent[own] != 1 ? strides[own] : 0;
    }
    return prepare_single(request, from_stride, 0, out_kernel);
}

rondo_status rondo__host_prepare_slice(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel) {
    rondo__slice slice;
    RETURN_IF_ERROR(
        rondo__slice_init_known(request->op, request->inputs, request->input_count, &slice));
    return prepare_single(request, slice.stride, slice.offset, out_kernel);
}

rondo_status rondo__host_prepare_concat(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    const rondo_shape *y = &request->outputs[0].shape;
    int32_t axis;
    RETURN_IF_ERROR(rondo__op_resolve_axis(request->op, rondo__op_get_int(request->op, "axis", 1),
                                           y->rank, &axis));
    move_kernel *kernel = NULL;
    RETURN_IF_ERROR(create_move(request, request->input_count, &kernel));
    int64_t to_stride[RONDO_RANK_MAX];
    rondo__shape_get_strides(y, to_stride);
    int64_t offset = 0;
    kernel->piece_count = 0;
    kernel->head.base.moves = &skipped_moves;
    kernel->head.base.join_output = join_output;
    for (size_t i = 0; i < request->input_count; ++i) {
        const rondo_shape *x = &request->inputs[i].shape;
        if (rondo_shape_get_count(x) == 0) {
            continue;  // may have any shape
        }
        int64_t from_stride[RONDO_RANK_MAX];
        rondo__shape_get_strides(x, from_stride);
        init_piece(&kernel->pieces[kernel->piece_count++], (uint32_t)i, 0,
                   rondo_dtype_get_bytes(request->outputs[0].dtype), x, from_stride, 0, to_stride,
                   offset);
        offset += x->extent[axis] * to_stride[axis];
    }
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_split(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    int32_t axis;
    RETURN_IF_ERROR(rondo__op_resolve_axis(request->op, rondo__op_get_int(request->op, "axis", 0),
                                           x->rank, &axis));
    move_kernel *kernel = NULL;
    RETURN_IF_ERROR(create_move(request, request->output_count, &kernel));
    int64_t from_stride[RONDO_RANK_MAX];
    rondo__shape_get_strides(x, from_stride);
    int64_t offset = 0;
    for (size_t i = 0; i < request->output_count; ++i) {
        rondo_shape y = *x;
        int64_t to_stride[RONDO_RANK_MAX];
        const rondo_status status =
            rondo__split_find_extent(request->op, request->inputs, request->input_count,
                                     request->output_count, i, &y.extent[axis]);
        if (status != RONDO_STATUS_OK) {
            rondo__kernel_destroy(&kernel->head.base);
            return status;
        }
        rondo__shape_get_strides(&y, to_stride);
        init_piece(&kernel->pieces[i], 0, (uint32_t)i,
                   rondo_dtype_get_bytes(request->inputs[0].dtype), &y, from_stride, offset,
                   to_stride, 0);
        kernel->pieces[i].is_skipped = request->outputs[i].dtype == RONDO_DTYPE_NONE;
        offset += y.extent[axis] * from_stride[axis];
    }
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

// ---- Gather -----------------------------------------------------------------------------------

typedef struct gather_kernel {
    rondo__host_kernel head;
    bool is_wide;         // indices are i64, otherwise i32
    int64_t outer_count;  // of the axes before the gathered one
    int64_t axis_extent;
    int64_t index_count;
    size_t inner_bytes;  // of the axes behind it
} gather_kernel;

typedef struct gather_run {
    const gather_kernel *kernel;
    const char *x;
    const void *indices;
    char *y;
} gather_run;

// The rows that indices [first, end) name of one part of x, into one part of y.
static inline void gather_part(const gather_kernel *kernel, const char *x, const void *indices,
                               int64_t first, int64_t end, size_t bytes, char *y) {
    const int64_t extent = kernel->axis_extent;
    const bool is_wide = kernel->is_wide;
    for (int64_t at = first; at < end; ++at) {
        int64_t index = is_wide ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
        index += index < 0 ? extent : 0;
        memcpy(y + (size_t)at * bytes, x + (size_t)index * bytes, bytes);
    }
}

static void gather_rows(void *data, int64_t first, int64_t end) {
    const gather_run *run = data;
    const gather_kernel *kernel = run->kernel;
    const size_t bytes = kernel->inner_bytes;
    int64_t outer = first / kernel->index_count, at = first % kernel->index_count;
    for (int64_t i = first; i < end; ++outer) {
        const int64_t rest = kernel->index_count - at;
        const int64_t past = at + (end - i < rest ? end - i : rest);
        const char *x = run->x + (size_t)(outer * kernel->axis_extent) * bytes;
        char *y = run->y + (size_t)(outer * kernel->index_count) * bytes;
        if (bytes == 4) {  // single numbers: no calls
            gather_part(kernel, x, run->indices, at, past, 4, y);
        } else if (bytes == 8) {
            gather_part(kernel, x, run->indices, at, past, 8, y);
        } else {
            gather_part(kernel, x, run->indices, at, past, bytes, y);
        }
        i += past - at;
        at = 0;
    }
}

static rondo_status run_gather(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const gather_kernel *kernel = (const gather_kernel *)head;
    const int64_t extent = kernel->axis_extent;
    for (int64_t i = 0; i < kernel->index_count; ++i) {
        const int64_t index =
            kernel->is_wide ? ((const int64_t *)inputs[1])[i] : ((const int32_t *)inputs[1])[i];
        if (index < -extent || index >= extent) {
            return RONDO_OP_FAIL(head->op, BAD_DATA, "index %lld is outside an axis of extent %lld",
                                 (long long)index, (long long)extent);
        }
    }
    const int64_t count = kernel->outer_count * kernel->index_count;
    gather_run run = {kernel, inputs[0], inputs[1], outputs[0]};
    rondo__workers_loop(
        count, rondo__host_get_grain(count, (double)count * (double)kernel->inner_bytes, 0.0),
        gather_rows, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_gather(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    const rondo_dtype index_dtype = request->inputs[1].dtype;
    if (index_dtype != RONDO_DTYPE_I64 && index_dtype != RONDO_DTYPE_I32) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    int32_t axis;
    RETURN_IF_ERROR(rondo__op_resolve_axis(request->op, rondo__op_get_int(request->op, "axis", 0),
                                           x->rank, &axis));
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(gather_kernel), "simd", run_gather, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    gather_kernel *kernel = (gather_kernel *)head;
    kernel->is_wide = index_dtype == RONDO_DTYPE_I64;
    kernel->outer_count = rondo__shape_multiply(x, 0, axis);
    kernel->axis_extent = x->extent[axis];
    kernel->index_count = rondo_shape_get_count(&request->inputs[1].shape);
    kernel->inner_bytes = (size_t)rondo__shape_multiply(x, axis + 1, x->rank) *
                          rondo_dtype_get_bytes(request->inputs[0].dtype);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
