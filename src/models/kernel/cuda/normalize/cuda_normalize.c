// kernel/cuda/normalize/cuda_normalize.c — normalisations that need statistics of the data.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/elementwise/cuda_epilogue.h"
#include "kernel/cuda/normalize/cuda_row_norm.h"

static uint32_t choose_threads(int64_t length) {
    uint32_t threads = 32;
    while (threads < RONDO__CUDA_BLOCK && threads * 2 <= length) {
        threads *= 2;
    }
    return threads;
}

// The steps of a tensor that broadcasts to x, for each axis of x.
static void push_broadcast(rondo__step *step, const rondo_shape *shape, const rondo_shape *x) {
    for (int32_t d = 0; d < x->rank; d++) {
        const int32_t i = d - (x->rank - shape->rank);
        const bool moves = i >= 0 && shape->extent[i] != 1;
        rondo__step_int(step, moves ? rondo__cuda_product(shape, i + 1, shape->rank) : 0);
    }
}

enum { HELD_THREADS = 1024, HELD_MAX = 64 };  // of a block, elements of a thread

typedef struct held_rows {
    int64_t threads, packs, width;  // threads 0: the registers of a block do not hold a row
} held_rows;

// For a block each. A pack lies within one channel.
static held_rows hold_rows(rondo_dtype dtype, int64_t length, int64_t spatial) {
    held_rows held = {.threads = 32, .width = 16 / (int64_t)rondo_dtype_get_bytes(dtype)};
    const int64_t packs = length / held.width;
    while (held.threads < HELD_THREADS && held.threads * 2 < packs) {
        held.threads *= 2;
    }
    held.packs = (packs + held.threads - 1) / held.threads;
    if (spatial % held.width != 0 || held.packs * held.width > HELD_MAX) {
        held.threads = 0;
    }
    return held;
}

// For a warp each, in blocks of several where there are enough for all multiprocessors.
static held_rows hold_rows_by_warp(rondo_dtype dtype, int64_t rows, int64_t length) {
    enum { BLOCK_COUNT_MIN = 256, WARP = 32 };
    held_rows held = {.threads = RONDO__CUDA_BLOCK,
                      .width = 16 / (int64_t)rondo_dtype_get_bytes(dtype)};
    while (length % held.width != 0) {
        held.width /= 2;
    }
    while (held.threads > WARP && rows * WARP / held.threads < BLOCK_COUNT_MIN) {
        held.threads /= 2;
    }
    held.packs = (length / held.width + WARP - 1) / WARP;
    if (held.packs * held.width > HELD_MAX) {
        held.threads = 0;
    }
    return held;
}

static void define_held(rondo__defines *defines, const held_rows *held) {
    if (held->threads > 0) {
        rondo__define_int(defines, "THREADS", held->threads);
        rondo__define_int(defines, "PACKS", held->packs);
        rondo__define_int(defines, "WIDTH", held->width);
    }
}

// A warp for each row where its registers hold one, a block otherwise.
static rondo__step *add_layer_launch(rondo__cuda_kernel *kernel, rondo__defines *defines,
                                     const held_rows *held, int64_t rows, int64_t length) {
    define_held(defines, held);
    const int64_t rows_of_block = held->threads / 32;
    return held->threads > 0
               ? rondo__cuda_add_launch(
                     kernel, rondo__cu_normalize, defines, "layer_normalization_held",
                     (rows + rows_of_block - 1) / rows_of_block, (uint32_t)held->threads)
               : rondo__cuda_add_launch(kernel, rondo__cu_normalize, defines, "layer_normalization",
                                        rows, choose_threads(length));
}

void rondo__cuda_add_row_norm(rondo__cuda_kernel *kernel, const rondo__cuda_row_norm *norm) {
    rondo__defines defines = {0};
    const held_rows held = hold_rows_by_warp(norm->dtype, norm->rows, norm->length);
    rondo__define_type(&defines, "T", norm->dtype);
    rondo__define_type(&defines, "G", norm->gain_dtype);
    rondo__step *step = add_layer_launch(kernel, &defines, &held, norm->rows, norm->length);
    rondo__step_int(step, norm->rows);
    rondo__step_address(step, norm->x);
    rondo__step_address(step, norm->gain);
    rondo__step_optional(step, norm->has_shift ? &norm->shift : NULL);
    rondo__step_address(step, norm->normal);
    rondo__step_int(step, 0);
    rondo__step_int(step, 0);
    rondo__step_int(step, norm->length);
    rondo__step_float(step, (double)norm->epsilon);
}

void rondo__cuda_add_row_moments(rondo__cuda_kernel *kernel, rondo_dtype dtype, int64_t rows,
                                 int64_t columns, rondo__address x, rondo__address moments) {
    rondo__defines defines = {0};
    const int64_t count = rows * columns;
    rondo__define_type(&defines, "T", dtype);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_normalize, &defines, "part_moments",
                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_address(step, x);
    rondo__step_address(step, moments);
}

// LayerNormalization, and RMSNormalization, whose result has the type of the scale.
void rondo__cuda_prepare_layer_normalization(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const bool is_centered = op->def->id != RONDO__OP_RMSNormalization;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    const int32_t rank = x->shape.rank;
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", -1), rank);
    const int64_t rows = rondo__cuda_product(&x->shape, 0, axis);
    const int64_t length = rondo__cuda_product(&x->shape, axis, rank);

    const rondo__tensor_info *gain = rondo__cuda_input(kernel, 1);
    const rondo__tensor_info *shift = rondo__cuda_input(kernel, 2);
    const bool has_shift = rondo__cuda_has_input(kernel, 2);
    // Both broadcast to x, mostly as one row of it.
    const bool broadcasts =
        rondo_shape_get_count(&gain->shape) != length || gain->shape.rank > rank - axis ||
        (has_shift &&
         (rondo_shape_get_count(&shift->shape) != length || shift->shape.rank > rank - axis));

    if (!rondo__cuda_is_float(x->dtype) || (has_shift && shift->dtype != gain->dtype) ||
        (!is_centered && x->dtype != gain->dtype)) {
        rondo__cuda_refuse(kernel, "a scale or bias of this type");
        return;
    }
    if (!is_centered) {
        rondo__define_int(&defines, "CENTERED", 0);
    }
    rondo__define_type(&defines, "G", gain->dtype);
    rondo__define_int(&defines, "BROADCASTS", broadcasts);
    rondo__define_int(&defines, "RANK", broadcasts ? rank : 1);
    rondo__define_type(&defines, "T", x->dtype);
    if (rondo__cuda_wants_output(kernel, 1)) {
        rondo__define_type(&defines, "S", rondo__cuda_output(kernel, 1)->dtype);
    } else if (rondo__cuda_wants_output(kernel, 2)) {
        rondo__define_type(&defines, "S", rondo__cuda_output(kernel, 2)->dtype);
    }
    const held_rows held = broadcasts ? (held_rows){0} : hold_rows_by_warp(x->dtype, rows, length);
    rondo__step *step = add_layer_launch(kernel, &defines, &held, rows, length);
    rondo__step_int(step, rows);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_optional_input(step, kernel, 2);
    rondo__step_output(step, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_optional_output(step, kernel, 2);
    rondo__step_int(step, length);
    rondo__step_float(step, (double)rondo__op_get_float(op, "epsilon", 1e-5f));
    if (broadcasts) {
        rondo__step_ints(step, x->shape.extent, rank);
        push_broadcast(step, &gain->shape, &x->shape);
        push_broadcast(step, has_shift ? &shift->shape : &gain->shape, &x->shape);
    }
}

// What the kernels of normalisations by groups take. Of the fused op, an image's channels may come
// last.
static void add_groups(rondo__cuda_kernel *kernel, int64_t groups, bool is_strided) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *gain = rondo__cuda_input(kernel, 1);
    const int32_t rank = x->shape.rank;
    const int64_t channels = rank > 1 ? x->shape.extent[is_strided ? rank - 1 : 1] : 0;
    const int64_t scales = rondo_shape_get_count(&gain->shape);
    rondo__cuda_epilogue epilogue;
    rondo__defines defines = {0};

    if (!rondo__cuda_is_float(x->dtype) || !rondo__cuda_is_float(gain->dtype) ||
        rondo__cuda_input(kernel, 2)->dtype != gain->dtype || groups <= 0 ||
        channels % groups != 0 || (scales != channels && scales != groups)) {
        rondo__cuda_refuse(kernel, "a scale of this type or shape");
        return;
    }
    if (!rondo__cuda_read_epilogue(kernel, &epilogue)) {
        return;
    }
    const int64_t rows = x->shape.extent[0] * groups;
    const int64_t length = rondo_shape_get_count(&x->shape) / rows;
    const int64_t spatial = rondo_shape_get_count(&x->shape) / (x->shape.extent[0] * channels);
    const held_rows held = is_strided ? (held_rows){0} : hold_rows(x->dtype, length, spatial);
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_type(&defines, "G", gain->dtype);
    rondo__define_int(&defines, "ACTIVATION", epilogue.activation);
    define_held(&defines, &held);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_normalize, &defines,
        is_strided         ? "group_normalization_strided"
        : held.threads > 0 ? "group_normalization_held"
                           : "group_normalization",
        rows, held.threads > 0 ? (uint32_t)held.threads : choose_threads(length));
    rondo__step_int(step, rows);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
    rondo__step_int(step, groups);
    rondo__step_int(step, length);
    rondo__step_int(step, spatial);
    rondo__step_int(step, scales != channels);
    rondo__step_float(step, (double)rondo__op_get_float(op, "epsilon", 1e-5f));
    rondo__step_float(step, (double)epilogue.alpha);
    rondo__step_float(step, (double)epilogue.beta);
}

void rondo__cuda_add_strided_norm(rondo__cuda_kernel *kernel) {
    add_groups(kernel, rondo__op_get_int(kernel->request->op, "groups", 1), true);
}

void rondo__cuda_prepare_group_normalization(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const bool is_fused = (op->def->flags & RONDO__OP_INTERNAL) != 0;
    const bool is_group = is_fused || op->def->id == RONDO__OP_GroupNormalization;
    add_groups(kernel,
               is_group      ? rondo__op_get_int(op, is_fused ? "groups" : "num_groups", 1)
               : x->rank > 1 ? x->extent[1]
                             : 0,
               false);
}

void rondo__cuda_prepare_lrn(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    const int64_t count = rondo_shape_get_count(&x->shape);

    if (!rondo__cuda_is_float(x->dtype) || x->shape.rank < 2) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
        return;
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_normalize, &defines, "lrn",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, x->shape.extent[1]);
    rondo__step_int(step, rondo__cuda_product(&x->shape, 2, x->shape.rank));
    rondo__step_int(step, rondo__op_get_int(op, "size", 1));
    rondo__step_float(step, (double)rondo__op_get_float(op, "alpha", 0.0001f));
    rondo__step_float(step, (double)rondo__op_get_float(op, "beta", 0.75f));
    rondo__step_float(step, (double)rondo__op_get_float(op, "bias", 1.0f));
}

void rondo__cuda_prepare_axes_normalization(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const int32_t rank = x->shape.rank;
    int64_t axes[RONDO_RANK_MAX] = {0, 2, 3};
    int64_t steps[RONDO_RANK_MAX], kept[RONDO_RANK_MAX], inside[RONDO_RANK_MAX];
    rondo__defines defines = {0};
    int64_t count = 3, groups = 1, length = 1;
    size_t given = 0;

    if (rondo__op_get_ints(kernel->request->op, "axes", &given) != NULL) {
        count = rondo__cuda_read_axes(kernel, "axes", 1, rank, axes);
    }
    if (!rondo__cuda_is_float(x->dtype)) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
        return;
    }
    for (int32_t d = 0; d < rank; d++) {
        kept[d] = x->shape.extent[d];
        inside[d] = 1;
        steps[d] = rondo__cuda_product(&x->shape, d + 1, rank);
    }
    for (int64_t i = 0; i < count; i++) {
        kept[axes[i]] = 1;
        inside[axes[i]] = x->shape.extent[axes[i]];
    }
    for (int32_t d = 0; d < rank; d++) {
        groups *= kept[d];
        length *= inside[d];
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "RANK", rank);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_normalize, &defines, "axes_normalization", groups,
                               choose_threads(length));
    rondo__step_int(step, groups);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, length);
    rondo__step_ints(step, kept, rank);
    rondo__step_ints(step, steps, rank);
    rondo__step_ints(step, inside, rank);
    rondo__step_ints(step, steps, rank);
}
