// kernel/cuda/arrange/cuda_copy.c — see cuda_copy.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/cuda/arrange/cuda_copy.h"

#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/arrange/slice.h"
#include "op/support.h"

enum { PARTS_MAX = RONDO__STEP_ADDRESSES_MAX - 1 };  // of one launch: beside the whole

// ---- the strided move -------------------------------------------------------------------------

void rondo__strided_copy_push(rondo__strided_copy *copy, int64_t extent, int64_t stride_x,
                              int64_t stride_y) {
    if (copy->rank < RONDO__COPY_RANK_MAX) {
        copy->extent[copy->rank] = extent;
        copy->stride_x[copy->rank] = stride_x;
        copy->stride_y[copy->rank] = stride_y;
        copy->rank++;
    }
}

static void merge_extents(rondo__strided_copy *copy) {
    int32_t rank = 0;
    for (int32_t d = 0; d < copy->rank; d++) {
        if (copy->extent[d] == 1) {
            continue;
        }
        if (rank > 0 && copy->stride_x[rank - 1] == copy->stride_x[d] * copy->extent[d] &&
            copy->stride_y[rank - 1] == copy->stride_y[d] * copy->extent[d]) {
            copy->extent[rank - 1] *= copy->extent[d];
        } else {
            copy->extent[rank] = copy->extent[d];
            rank++;
        }
        copy->stride_x[rank - 1] = copy->stride_x[d];
        copy->stride_y[rank - 1] = copy->stride_y[d];
    }
    if (rank == 0) {
        copy->extent[0] = 1;
        copy->stride_x[0] = 1;
        copy->stride_y[0] = 1;
        rank = 1;
    }
    copy->rank = rank;
}

// Drops and merges extents, and widens the element where whole vectors move.
static void simplify(rondo__strided_copy *copy) {
    merge_extents(copy);
    const int32_t inner = copy->rank - 1;
    if (copy->stride_x[inner] != 1 || copy->stride_y[inner] != 1) {
        return;
    }
    while (copy->element_bytes < 16) {
        bool even =
            copy->extent[inner] % 2 == 0 && copy->offset_x % 2 == 0 && copy->offset_y % 2 == 0;
        for (int32_t d = 0; d < inner && even; d++) {
            even = copy->stride_x[d] % 2 == 0 && copy->stride_y[d] % 2 == 0;
        }
        if (!even) {
            return;
        }
        copy->element_bytes *= 2;
        copy->extent[inner] /= 2;
        copy->offset_x /= 2;
        copy->offset_y /= 2;
        for (int32_t d = 0; d < inner; d++) {
            copy->stride_x[d] /= 2;
            copy->stride_y[d] /= 2;
        }
    }
}

static rondo__address get_source(const rondo__strided_copy *copy) {
    return rondo__address_offset(copy->from, (size_t)copy->offset_x * copy->element_bytes);
}

static rondo__address get_destination(const rondo__strided_copy *copy) {
    return rondo__address_offset(copy->to, (size_t)copy->offset_y * copy->element_bytes);
}

// [batch, rows, columns] to [batch, columns, rows], in either writing of the loop nest.
static bool add_transpose(rondo__cuda_kernel *kernel, const rondo__strided_copy *copy) {
    rondo__defines defines = {0};
    const int32_t rank = copy->rank;
    if (rank < 2 || rank > 3) {
        return false;
    }
    int32_t row = -1, column = -1;  // x is contiguous along column, y along row
    for (int32_t d = rank - 2; d < rank; d++) {
        if (copy->stride_x[d] == 1) {
            column = d;
        } else if (copy->stride_y[d] == 1) {
            row = d;
        }
    }
    if (row < 0 || column < 0 || copy->extent[row] < 8 || copy->extent[column] < 8) {
        return false;
    }
    const int64_t batches = rank == 3 ? copy->extent[0] : 1;
    const int64_t row_tiles = (copy->extent[row] + 31) / 32;
    if (batches > 65535 || row_tiles > 65535) {
        return false;
    }
    rondo__define_bytes(&defines, "T", copy->element_bytes);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_copy_strided, &defines, "transpose_tiles",
                               (copy->extent[column] + 31) / 32, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)row_tiles;
        step->launch.grid[2] = (uint32_t)batches;
    }
    rondo__step_address(step, get_source(copy));
    rondo__step_address(step, get_destination(copy));
    rondo__step_int(step, copy->extent[row]);
    rondo__step_int(step, copy->extent[column]);
    rondo__step_int(step, copy->stride_x[row]);
    rondo__step_int(step, copy->stride_y[column]);
    rondo__step_int(step, rank == 3 ? copy->stride_x[0] : 0);
    rondo__step_int(step, rank == 3 ? copy->stride_y[0] : 0);
    return true;
}

void rondo__cuda_add_strided_copy(rondo__cuda_kernel *kernel, rondo__strided_copy *copy) {
    rondo__defines defines = {0};
    int64_t count = 1;

    for (int32_t d = 0; d < copy->rank; d++) {
        count *= copy->extent[d];
    }
    if (count == 0) {
        return;
    }
    simplify(copy);
    if (copy->rank == 1 && copy->stride_x[0] == 1 && copy->stride_y[0] == 1) {
        (void)rondo__cuda_add_copy(kernel, get_source(copy), get_destination(copy),
                                   (size_t)copy->extent[0] * copy->element_bytes);
        return;
    }
    if (add_transpose(kernel, copy)) {
        return;
    }
    count = 1;
    for (int32_t d = 0; d < copy->rank; d++) {
        count *= copy->extent[d];
    }
    rondo__define_bytes(&defines, "T", copy->element_bytes);
    rondo__define_int(&defines, "RANK", copy->rank);
    rondo__define_word(&defines, "INDEX", count < INT64_C(1) << 31 ? "u32" : "u64");
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_copy_strided, &defines, "copy_strided",
                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_address(step, get_source(copy));
    rondo__step_address(step, get_destination(copy));
    for (int32_t d = 0; d < copy->rank; d++) {
        rondo__step_int(step, copy->extent[d]);
    }
    for (int32_t d = 0; d < copy->rank; d++) {
        rondo__step_int(step, copy->stride_x[d]);
    }
    for (int32_t d = 0; d < copy->rank; d++) {
        rondo__step_int(step, copy->stride_y[d]);
    }
}

// ---- the ops ----------------------------------------------------------------------------------

static rondo__strided_copy begin_copy(const rondo__cuda_kernel *kernel, size_t input,
                                      size_t output) {
    return (rondo__strided_copy){
        .element_bytes = rondo_dtype_get_bytes(rondo__cuda_output(kernel, output)->dtype),
        .from = rondo__address_input(input),
        .to = rondo__address_output(output),
    };
}

// Reshape and its kin, where the executor did not alias input and output.
void rondo__cuda_prepare_view(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    (void)rondo__cuda_add_copy(
        kernel, rondo__address_input(0), rondo__address_output(0),
        (size_t)rondo_shape_get_count(&y->shape) * rondo_dtype_get_bytes(y->dtype));
}

void rondo__cuda_prepare_transpose(rondo__cuda_kernel *kernel) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    rondo__strided_copy copy = begin_copy(kernel, 0, 0);
    int64_t strides_x[RONDO_RANK_MAX], strides_y[RONDO_RANK_MAX];
    size_t count = 0;
    const int64_t *permutation = rondo__op_get_ints(kernel->request->op, "perm", &count);

    rondo__shape_get_strides(x, strides_x);
    rondo__shape_get_strides(&rondo__cuda_output(kernel, 0)->shape, strides_y);
    for (int32_t d = 0; d < x->rank; d++) {
        const int32_t from = permutation != NULL && (size_t)d < count
                                 ? rondo__cuda_wrap_axis(permutation[d], x->rank)
                                 : x->rank - 1 - d;
        rondo__strided_copy_push(&copy, x->extent[from], strides_x[from], strides_y[d]);
    }
    rondo__cuda_add_strided_copy(kernel, &copy);
}

// A whole and its parts along an axis: inputs and the output of Concat, the input and outputs of
// Split. Lengths are in elements.
typedef struct whole {
    rondo__address address;
    int64_t rows;
    int64_t row;
    size_t element_bytes;
    size_t part_count;
    bool is_split;
    int64_t width;  // of images whose pixels the rows are: parts may be in blocks; 0: other rows
    struct {
        rondo__address address;
        int64_t block, run, begin;
    } parts[PARTS_MAX];
} whole;

static void init_whole(whole *w, const rondo_shape *shape, int32_t axis, rondo_dtype dtype) {
    w->rows = rondo__cuda_product(shape, 0, axis);
    w->row = rondo__cuda_product(shape, axis, shape->rank);
    w->element_bytes = rondo_dtype_get_bytes(dtype);
}

// Elements become as wide as all lengths allow.
static void widen(whole *w) {
    bool is_even = w->row % 2 == 0;
    while (w->element_bytes < 16 && is_even) {
        for (size_t i = 0; i < w->part_count && is_even; i++) {
            is_even = w->parts[i].run % 2 == 0 && w->parts[i].begin % 2 == 0;
        }
        if (!is_even) {
            return;
        }
        w->element_bytes *= 2;
        w->row /= 2;
        for (size_t i = 0; i < w->part_count; i++) {
            w->parts[i].run /= 2;
            w->parts[i].begin /= 2;
        }
        is_even = w->row % 2 == 0;
    }
}

static void move_together(rondo__cuda_kernel *kernel, const whole *narrow) {
    rondo__defines defines = {0};
    int64_t largest = 0;
    whole wide = *narrow;
    const whole *w = &wide;
    widen(&wide);
    for (size_t i = 0; i < w->part_count; i++) {
        largest = w->parts[i].run > largest ? w->parts[i].run : largest;
    }
    largest *= w->rows;
    rondo__define_bytes(&defines, "T", w->element_bytes);
    rondo__define_int(&defines, w->width > 0 ? "IMAGES" : "PARTS", (int64_t)w->part_count);
    rondo__define_int(&defines, "IS_SPLIT", w->is_split ? 1 : 0);
    rondo__define_word(&defines, "INDEX", largest < INT64_C(1) << 31 ? "u32" : "u64");
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_copy_strided, &defines,
                                               w->width > 0 ? "join_images" : "move_parts",
                                               rondo__cuda_blocks(largest), RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)w->part_count;
    }
    rondo__step_int(step, w->rows);
    if (w->width > 0) {
        rondo__step_int(step, w->width);
    }
    rondo__step_int(step, w->row);
    rondo__step_address(step, w->address);
    for (size_t i = 0; i < w->part_count; i++) {
        rondo__step_address(step, w->parts[i].address);
        rondo__step_int(step, w->parts[i].run);
        rondo__step_int(step, w->parts[i].begin);
        if (w->width > 0) {
            rondo__step_int(step, w->parts[i].block);
        }
    }
}

static void move_one(rondo__cuda_kernel *kernel, const whole *w, size_t index) {
    const int64_t run = w->parts[index].run;
    rondo__strided_copy copy = {
        .element_bytes = w->element_bytes,
        .from = w->is_split ? w->address : w->parts[index].address,
        .to = w->is_split ? w->parts[index].address : w->address,
        .offset_x = w->is_split ? w->parts[index].begin : 0,
        .offset_y = w->is_split ? 0 : w->parts[index].begin,
    };
    rondo__strided_copy_push(&copy, w->rows, w->is_split ? w->row : run,
                             w->is_split ? run : w->row);
    rondo__strided_copy_push(&copy, run, 1, 1);
    rondo__cuda_add_strided_copy(kernel, &copy);
}

// By one launch; one alone, and two that lie in a row, as plain copies.
static void move_parts(rondo__cuda_kernel *kernel, whole *w) {
    if (w->width > 0 || w->part_count > 2 || (w->part_count == 2 && w->rows > 1)) {
        move_together(kernel, w);
    } else {
        for (size_t i = 0; i < w->part_count; i++) {
            move_one(kernel, w, i);
        }
    }
    w->part_count = 0;
}

// More than one launch takes go in several.
static void add_part(rondo__cuda_kernel *kernel, whole *w, rondo__address address, int64_t run,
                     int64_t begin) {
    if (w->part_count == PARTS_MAX) {
        move_parts(kernel, w);
    }
    w->parts[w->part_count].address = address;
    w->parts[w->part_count].run = run;
    w->parts[w->part_count].begin = begin;
    w->parts[w->part_count].block = 1;
    w->part_count++;
}

void rondo__cuda_prepare_concat(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *output = rondo__cuda_output(kernel, 0);
    const rondo_shape *y = &output->shape;
    const int32_t axis =
        rondo__cuda_wrap_axis(rondo__op_get_int(kernel->request->op, "axis", 0), y->rank);
    const int64_t inner = rondo__cuda_product(y, axis + 1, y->rank);
    whole w = {.address = rondo__address_output(0)};
    int64_t at = 0;

    init_whole(&w, y, axis, output->dtype);
    for (size_t i = 0; i < kernel->request->input_count; i++) {
        const rondo_shape *x = &rondo__cuda_input(kernel, i)->shape;
        if (rondo_shape_get_count(x) == 0) {
            continue;  // may have any shape
        }
        const int64_t run = x->extent[axis] * inner;
        add_part(kernel, &w, rondo__address_input(i), run, at);
        at += run;
    }
    const bool may_stay = w.rows == 1 && w.part_count == 2 && kernel->request->input_count == 2;
    move_parts(kernel, &w);
    rondo__cuda_may_skip_first(kernel, may_stay && kernel->step_count == 2);
}

void rondo__cuda_prepare_fused_concat(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *output = rondo__cuda_output(kernel, 0);
    whole w = {.address = rondo__address_output(0), .width = output->shape.extent[2]};
    int64_t at = 0;
    size_t count;
    const int64_t *blocks = rondo__op_get_ints(kernel->request->op, "blocks", &count);

    init_whole(&w, &output->shape, 3, output->dtype);
    for (size_t i = 0; i < count; i++) {
        const int64_t run = rondo__cuda_input(kernel, i)->shape.extent[3] / (blocks[i] * blocks[i]);
        add_part(kernel, &w, rondo__address_input(i), run, at);
        w.parts[w.part_count - 1].block = blocks[i];
        at += run;
    }
    move_parts(kernel, &w);
}

void rondo__cuda_prepare_split(rondo__cuda_kernel *kernel) {
    const rondo__kernel_request *request = kernel->request;
    const rondo__tensor_info *input = rondo__cuda_input(kernel, 0);
    const rondo_shape *x = &input->shape;
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(request->op, "axis", 0), x->rank);
    const int64_t inner = rondo__cuda_product(x, axis + 1, x->rank);
    whole w = {.address = rondo__address_input(0), .is_split = true};
    int64_t at = 0;

    init_whole(&w, x, axis, input->dtype);
    for (size_t i = 0; i < request->output_count; i++) {
        int64_t extent = 0;
        if (!rondo__cuda_check(
                kernel, rondo__split_find_extent(request->op, request->inputs, request->input_count,
                                                 request->output_count, i, &extent))) {
            return;
        }
        const int64_t run = extent * inner;
        const bool is_wanted = request->outputs[i].dtype != RONDO_DTYPE_NONE;
        if (is_wanted && run > 0 && w.rows > 0) {
            add_part(kernel, &w, rondo__address_output(i), run, at);
        }
        at += run;
    }
    move_parts(kernel, &w);
}

void rondo__cuda_prepare_slice(rondo__cuda_kernel *kernel) {
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    const rondo__kernel_request *request = kernel->request;
    int64_t strides_y[RONDO_RANK_MAX];
    rondo__slice slice;
    const rondo_status status =
        rondo__slice_init_known(request->op, request->inputs, request->input_count, &slice);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        rondo__cuda_refuse(kernel, "a bound whose value is not known beforehand");
        return;
    }
    if (!rondo__cuda_check(kernel, status)) {
        return;
    }
    rondo__strided_copy copy = begin_copy(kernel, 0, 0);
    rondo__shape_get_strides(y, strides_y);
    copy.offset_x = slice.offset;
    for (int32_t d = 0; d < y->rank; d++) {
        rondo__strided_copy_push(&copy, y->extent[d], slice.stride[d], strides_y[d]);
    }
    rondo__cuda_add_strided_copy(kernel, &copy);
}

void rondo__cuda_prepare_expand(rondo__cuda_kernel *kernel) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    rondo__strided_copy copy = begin_copy(kernel, 0, 0);
    int64_t strides_x[RONDO_RANK_MAX], strides_y[RONDO_RANK_MAX];

    rondo__shape_get_strides(x, strides_x);
    rondo__shape_get_strides(y, strides_y);
    for (int32_t d = 0; d < y->rank; d++) {
        const int32_t own = d - (y->rank - x->rank);
        const bool repeats = own < 0 || x->extent[own] == 1;
        rondo__strided_copy_push(&copy, y->extent[d], repeats ? 0 : strides_x[own], strides_y[d]);
    }
    rondo__cuda_add_strided_copy(kernel, &copy);
}

// Each extent becomes (repetition, element): the repetition does not move in x.
void rondo__cuda_prepare_tile(rondo__cuda_kernel *kernel) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    rondo__strided_copy copy = begin_copy(kernel, 0, 0);
    int64_t strides_x[RONDO_RANK_MAX], strides_y[RONDO_RANK_MAX];

    rondo__shape_get_strides(x, strides_x);
    rondo__shape_get_strides(y, strides_y);
    for (int32_t d = 0; d < x->rank; d++) {
        if (x->extent[d] == 0) {
            return;
        }
        const int64_t repeats = y->extent[d] / x->extent[d];
        rondo__strided_copy_push(&copy, repeats, 0, x->extent[d] * strides_y[d]);
        rondo__strided_copy_push(&copy, x->extent[d], strides_x[d], strides_y[d]);
    }
    rondo__cuda_add_strided_copy(kernel, &copy);
}

// DepthToSpace (modes DCR and CRD) and SpaceToDepth: transposes of the split extents.
void rondo__cuda_prepare_depth_space(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    const int64_t block = rondo__op_get_int(op, "blocksize", 1);
    const bool to_space = op->def->id == RONDO__OP_DepthToSpace;
    const bool is_crd = strcmp(rondo__op_get_string(op, "mode", "DCR"), "CRD") == 0;
    // The small image (deep, d) and the large one (wide, w); channels of the wide image.
    const rondo_shape *deep = to_space ? x : y;
    const rondo_shape *wide = to_space ? y : x;
    const int64_t channels = wide->extent[1];
    const int64_t height = deep->extent[2], width = deep->extent[3];
    int64_t sd[RONDO_RANK_MAX], sw[RONDO_RANK_MAX];

    rondo__shape_get_strides(deep, sd);
    rondo__shape_get_strides(wide, sw);
    // Deep channel number: DCR (bh * b + bw) * C + c; CRD c * b * b + bh * b + bw.
    const int64_t step_c = is_crd ? block * block : 1;
    const int64_t step_bh = is_crd ? block : block * channels;
    const int64_t step_bw = is_crd ? 1 : channels;
    const int64_t extent[6] = {x->extent[0], channels, height, block, width, block};
    const int64_t in_deep[6] = {sd[0],           step_c * sd[1], sd[2],
                                step_bh * sd[1], sd[3],          step_bw * sd[1]};
    const int64_t in_wide[6] = {sw[0], sw[1], block * sw[2], sw[2], block * sw[3], sw[3]};
    rondo__strided_copy copy = begin_copy(kernel, 0, 0);
    for (int d = 0; d < 6; d++) {
        rondo__strided_copy_push(&copy, extent[d], to_space ? in_deep[d] : in_wide[d],
                                 to_space ? in_wide[d] : in_deep[d]);
    }
    rondo__cuda_add_strided_copy(kernel, &copy);
}
