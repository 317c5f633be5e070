// kernel/cuda/normalize/cuda_norm_training.c — BatchNormalization in training, and the way back
// through normalisations (cu/norm_training.cu).
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

enum {
    // Blocks: the way back reads more at a time, and has enough under way with half as many.
    BLOCKS_SUMMED = 528,
    BLOCKS_APPLIED = 1056,
    PACKS_SUMMED = 8,   // of a thread, before there are more parts
    PACKS_APPLIED = 4,  // likewise
    JOINED = 8,         // channels of a block
    PACK_BYTES = 16,
};

// x as [outer, channels, inner].
typedef struct extents {
    int64_t outer, channels, inner, width;
} extents;

static extents read_extents(const rondo__cuda_kernel *kernel, const rondo_shape *x, bool is_layer,
                            int64_t layer) {
    extents e = {.channels = layer, .inner = 1};
    if (!is_layer) {
        const bool is_last =
            x->rank > 1 && rondo__op_get_int(kernel->request->op, "channels_last", 0) != 0;
        e.channels = x->rank < 2 ? 1 : x->extent[is_last ? x->rank - 1 : 1];
        e.inner = is_last || x->rank < 2 ? 1 : rondo__cuda_product(x, 2, x->rank);
    }
    e.outer = rondo_shape_get_count(x) / (e.channels * e.inner);
    return e;
}

// The widest pack of all that is read together.
static int64_t choose_width(const extents *e, rondo_dtype narrowest) {
    const int64_t run = e->inner == 1 ? e->channels : e->inner;
    int64_t width = PACK_BYTES / (int64_t)rondo_dtype_get_bytes(narrowest);
    while (run % width != 0) {
        width /= 2;
    }
    return width;
}

// Blocks along channels; then each has as many parts as make about `wanted` blocks.
static int64_t count_tiles(const extents *e) {
    const int64_t packs = e->channels / e->width;
    return e->inner == 1 ? (packs + RONDO__CUDA_BLOCK - 1) / RONDO__CUDA_BLOCK : e->channels;
}

// Rows that a block has at a time; where channels come first, packs of a channel.
static int64_t count_abreast(const extents *e) {
    const int64_t packs = e->inner > 1 ? 1 : e->channels / e->width;
    return packs < RONDO__CUDA_BLOCK ? RONDO__CUDA_BLOCK / packs : 1;
}

// All parts together have so many rows.
static int64_t count_rows(const extents *e) {
    return e->inner == 1 ? e->outer : e->outer * (e->inner / e->width);
}

static int64_t choose_parts(const extents *e, int64_t wanted, int64_t each, int64_t most) {
    const int64_t useful = count_rows(e) / (count_abreast(e) * each);
    const int64_t parts = (wanted + count_tiles(e) - 1) / count_tiles(e);
    const int64_t fewer = parts < useful ? parts : useful;
    return fewer < 1 ? 1 : fewer < most ? fewer : most;
}

// The arguments in the order of the text; addresses of kind NONE are 0.
typedef struct arguments {
    rondo__address parts, joined, rows;
    bool is_layer, is_forward;
    int64_t part_count;
} arguments;

static void push_arguments(const rondo__cuda_kernel *kernel, rondo__step *step, const extents *e,
                           const arguments *a) {
    static const int forward[] = {0, -1, 5, 1, 2, 3, 4}, back[] = {1, 0, 5, 2, -1, 3, 4};
    const int *inputs = a->is_forward ? forward : back;
    const rondo__op *op = kernel->request->op;
    for (size_t i = 0; i < sizeof forward / sizeof *forward; i++) {
        if (inputs[i] < 0) {
            rondo__step_int(step, 0);
        } else {
            rondo__step_optional_input(step, kernel, (size_t)inputs[i]);
        }
    }
    rondo__step_optional_output(step, kernel, 0);
    for (size_t i = 1; i < 5; i++) {
        rondo__step_optional_output(step, kernel, a->is_forward ? i : SIZE_MAX);
    }
    for (size_t i = 1; i < 3; i++) {
        rondo__step_optional_output(step, kernel, a->is_forward ? SIZE_MAX : i);
    }
    rondo__step_address(step, a->parts);
    rondo__step_address(step, a->joined);
    rondo__step_address(step, a->rows);
    rondo__step_int(step, e->outer);
    rondo__step_int(step, a->part_count);
    rondo__step_int(step, count_rows(e) / (a->part_count * count_abreast(e)));
    rondo__step_int(step, count_rows(e) % (a->part_count * count_abreast(e)));
    rondo__step_float(step, (double)rondo__op_get_float(op, "epsilon", 1e-5f));
    rondo__step_float(step, (double)rondo__op_get_float(op, "momentum", 0.9f));
}

static void add(rondo__cuda_kernel *kernel, const rondo__defines *defines, const char *name,
                int64_t blocks, int64_t parts, const extents *e, const arguments *a) {
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_norm_training, defines, name,
                                               blocks, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)parts;
    }
    push_arguments(kernel, step, e, a);
}

static void add_launches(rondo__cuda_kernel *kernel, rondo__defines *defines, const extents *e,
                         arguments *a) {
    const bool wants_sums = a->is_forward || !a->is_layer || rondo__cuda_wants_output(kernel, 1) ||
                            rondo__cuda_wants_output(kernel, 2);
    const int64_t summed = a->is_forward ? BLOCKS_SUMMED : BLOCKS_SUMMED / 2;
    const int64_t applied = a->is_forward ? BLOCKS_APPLIED : BLOCKS_APPLIED / 2;
    const int64_t parts = choose_parts(e, summed, PACKS_SUMMED, summed);
    const size_t channel_bytes = (size_t)e->channels * sizeof(float);
    const size_t joined = rondo__cuda_reserve_workspace(kernel, 4 * channel_bytes);
    a->parts = rondo__address_workspace(
        rondo__cuda_reserve_workspace(kernel, (size_t)parts * 3 * channel_bytes));
    a->joined = rondo__address_workspace(joined);
    a->rows = rondo__address_workspace(rondo__cuda_reserve_workspace(
        kernel, a->is_layer ? (size_t)e->outer * 2 * sizeof(float) : 8));
    a->part_count = parts;
    rondo__define_int(defines, "CHANNELS", e->channels);
    rondo__define_int(defines, "INNER", e->inner);
    rondo__define_int(defines, "WIDTH", e->width);
    rondo__define_int(defines, "FORWARD", a->is_forward);
    rondo__define_int(defines, "LAYER", a->is_layer);
    if (a->is_layer) {
        add(kernel, defines, "rows", e->outer, 1, e, a);
    }
    if (wants_sums) {
        add(kernel, defines, "sums", count_tiles(e), parts, e, a);
        add(kernel, defines, "join", (e->channels + JOINED - 1) / JOINED, 1, e, a);
    }
    if (!a->is_layer && rondo__cuda_wants_output(kernel, 0)) {
        a->part_count = choose_parts(e, applied, PACKS_APPLIED, UINT16_MAX);
        add(kernel, defines, "apply", count_tiles(e), a->part_count, e, a);
    }
}

static bool has_equal_types(rondo__cuda_kernel *kernel, size_t first, size_t end) {
    const rondo_dtype dtype = rondo__cuda_input(kernel, first)->dtype;
    for (size_t i = first; i < end; i++) {
        if (rondo__cuda_has_input(kernel, i) && rondo__cuda_input(kernel, i)->dtype != dtype) {
            rondo__cuda_refuse(kernel, "parameters of several types");
            return false;
        }
    }
    return true;
}

// BatchNormalization by the statistics of the batch, which it puts out too.
void rondo__cuda_prepare_batch_training(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    arguments a = {.is_forward = true};
    extents e = read_extents(kernel, &x->shape, false, 0);
    if (!has_equal_types(kernel, 1, 5)) {
        return;
    }
    if (!rondo__cuda_is_float(x->dtype) ||
        !rondo__cuda_is_float(rondo__cuda_input(kernel, 1)->dtype)) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
        return;
    }
    for (int32_t i = 0; i < 2; i++) {  // `join` reads the running ones where it writes them
        if (rondo__cuda_wants_output(kernel, (size_t)i + 1)) {
            kernel->head.kept[kernel->head.kept_count++] =
                (rondo__kernel_kept){.input = 3 + i, .output = 1 + i};
        }
    }
    e.width = choose_width(&e, x->dtype);
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_type(&defines, "G", rondo__cuda_input(kernel, 1)->dtype);
    rondo__define_int(&defines, "ADDED", rondo__cuda_has_input(kernel, 5));
    rondo__define_int(&defines, "RELU", rondo__op_get_int(kernel->request->op, "relu", 0));
    add_launches(kernel, &defines, &e, &a);
}

void rondo__cuda_prepare_norm_gradient(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *dy = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 1);
    const rondo__tensor_info *scale = rondo__cuda_input(kernel, 2);
    rondo__defines defines = {0};
    arguments a = {.is_layer = !rondo__cuda_has_input(kernel, 3)};
    extents e = read_extents(kernel, &x->shape, a.is_layer, rondo_shape_get_count(&scale->shape));
    if (!has_equal_types(kernel, 2, 5)) {
        return;
    }
    if (!rondo__cuda_is_float(x->dtype) || !rondo__cuda_is_float(dy->dtype) ||
        !rondo__cuda_is_float(scale->dtype)) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
        return;
    }
    const bool is_dy_wide = rondo_dtype_get_bytes(dy->dtype) > rondo_dtype_get_bytes(x->dtype);
    e.width = choose_width(&e, is_dy_wide ? x->dtype : dy->dtype);
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_type(&defines, "D", dy->dtype);
    rondo__define_type(&defines, "G", scale->dtype);
    rondo__define_int(&defines, "MASKED", rondo__cuda_has_input(kernel, 5));
    add_launches(kernel, &defines, &e, &a);
}
