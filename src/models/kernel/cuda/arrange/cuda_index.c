// kernel/cuda/arrange/cuda_index.c — ops that pick, place or make elements by index.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_order.h"
#include "kernel/cuda/cuda_families.h"
#include "op/image/pad.h"
#include "op/support.h"

static int64_t count_of(const rondo__tensor_info *info) {
    return rondo_shape_get_count(&info->shape);
}

static size_t bytes_of(const rondo__tensor_info *info) {
    return rondo_dtype_get_bytes(info->dtype);
}

static bool define_index(rondo__cuda_kernel *kernel, rondo__defines *defines, size_t input) {
    const rondo_dtype dtype = rondo__cuda_input(kernel, input)->dtype;
    if (dtype != RONDO_DTYPE_I32 && dtype != RONDO_DTYPE_I64) {
        rondo__cuda_refuse(kernel, "indices of this type");
        return false;
    }
    rondo__define_type(defines, "I", dtype);
    return true;
}

// ---- gather and scatter -----------------------------------------------------------------------

void rondo__cuda_prepare_gather(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *index = rondo__cuda_input(kernel, 1);
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    rondo__defines defines = {0};
    const int32_t rank = x->shape.rank;
    const int32_t axis =
        rondo__cuda_wrap_axis(rondo__op_get_int(kernel->request->op, "axis", 0), rank);
    int64_t inner = rondo__cuda_product(&x->shape, axis + 1, rank);
    int64_t count = count_of(y);
    size_t bytes = bytes_of(x);

    while (bytes < 16 && inner % 2 == 0) {  // rows move as wide as they can
        bytes *= 2;
        inner /= 2;
        count /= 2;
    }
    rondo__define_bytes(&defines, "T", bytes);
    if (!define_index(kernel, &defines, 1)) {
        return;
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_gather, &defines, "gather",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, x->shape.extent[axis]);
    rondo__step_int(step, count_of(index));
    rondo__step_int(step, inner);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

static void add_elements(rondo__cuda_kernel *kernel, const char *name, const rondo_shape *target,
                         size_t index_input, size_t source_input) {
    rondo__defines defines = {0};
    int64_t strides[RONDO_RANK_MAX];
    const rondo__tensor_info *index = rondo__cuda_input(kernel, index_input);
    const int64_t count = count_of(index);
    const int32_t axis =
        rondo__cuda_wrap_axis(rondo__op_get_int(kernel->request->op, "axis", 0), target->rank);

    if (count == 0) {
        return;
    }
    rondo__shape_get_strides(target, strides);
    rondo__define_bytes(&defines, "T", bytes_of(rondo__cuda_output(kernel, 0)));
    rondo__define_int(&defines, "RANK", target->rank);
    if (!define_index(kernel, &defines, index_input)) {
        return;
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_gather, &defines, name,
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, source_input);
    rondo__step_input(step, index_input);
    rondo__step_output(step, 0);
    rondo__step_int(step, axis);
    rondo__step_int(step, target->extent[axis]);
    rondo__step_ints(step, index->shape.extent, target->rank);
    rondo__step_ints(step, strides, target->rank);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

void rondo__cuda_prepare_gather_elements(rondo__cuda_kernel *kernel) {
    add_elements(kernel, "gather_elements", &rondo__cuda_input(kernel, 0)->shape, 1, 0);
}

// The first step of a scatter, which is left out where the data lie where the result is to be.
static void copy_data(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    rondo__cuda_add_data_copy(kernel, (size_t)count_of(y) * bytes_of(y));
}

void rondo__cuda_prepare_scatter_elements(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    copy_data(kernel);
    if (rondo__cuda_add_reduction(kernel)) {
        return;
    }
    add_elements(kernel, "scatter_elements", &y->shape, 1, 2);
}

static void add_nd(rondo__cuda_kernel *kernel, const char *name, const rondo_shape *target,
                   int32_t batch, size_t source_input, int64_t count) {
    rondo__defines defines = {0};
    int64_t strides[RONDO_RANK_MAX];
    const rondo_shape *index = &rondo__cuda_input(kernel, 1)->shape;
    const int64_t depth = index->rank > 0 ? index->extent[index->rank - 1] : 1;

    if (count == 0) {
        return;
    }
    if (depth < 1 || depth + batch > target->rank) {
        rondo__cuda_refuse(kernel, "index tuples of this length");
        return;
    }
    rondo__shape_get_strides(target, strides);
    rondo__define_bytes(&defines, "T", bytes_of(rondo__cuda_output(kernel, 0)));
    rondo__define_int(&defines, "RANK", depth);
    if (!define_index(kernel, &defines, 1)) {
        return;
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_gather, &defines, name,
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, source_input);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, rondo__cuda_product(target, batch + (int32_t)depth, target->rank));
    rondo__step_int(step, depth);
    rondo__step_int(step, rondo__cuda_product(index, batch, index->rank - 1));
    rondo__step_int(step, rondo__cuda_product(target, batch, target->rank));
    rondo__step_ints(step, target->extent + batch, (int32_t)depth);
    rondo__step_ints(step, strides + batch, (int32_t)depth);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

void rondo__cuda_prepare_gather_nd(rondo__cuda_kernel *kernel) {
    const int64_t batch = rondo__op_get_int(kernel->request->op, "batch_dims", 0);
    add_nd(kernel, "gather_nd", &rondo__cuda_input(kernel, 0)->shape, (int32_t)batch, 0,
           count_of(rondo__cuda_output(kernel, 0)));
}

void rondo__cuda_prepare_scatter_nd(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    copy_data(kernel);
    if (rondo__cuda_add_reduction(kernel)) {
        return;
    }
    add_nd(kernel, "scatter_nd", &y->shape, 0, 2, count_of(rondo__cuda_input(kernel, 2)));
}

// ---- pad --------------------------------------------------------------------------------------

static void add_pad(rondo__cuda_kernel *kernel, const int64_t *before, const char *mode,
                    bool has_value, int64_t bits) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const int32_t rank = x->shape.rank;
    rondo__defines defines = {0};
    int64_t strides[RONDO_RANK_MAX], kept[RONDO_RANK_MAX], shift[RONDO_RANK_MAX];
    int64_t first = 0;

    if (rank == 0) {
        (void)rondo__cuda_add_copy(kernel, rondo__address_input(0), rondo__address_output(0),
                                   bytes_of(x));
        return;
    }
    rondo__shape_get_strides(&x->shape, strides);
    for (int32_t d = 0; d < rank; d++) {
        const rondo__kept_range range =
            rondo__pad_get_kept(x->shape.extent[d], y->shape.extent[d], before[d]);
        kept[d] = range.extent;
        shift[d] = before[d] + range.first;
        first += range.first * strides[d];
    }
    rondo__define_bytes(&defines, "T", bytes_of(x));
    rondo__define_int(&defines, "RANK", rank);
    rondo__define_int(&defines, "MODE",
                      strcmp(mode, "edge") == 0      ? 1
                      : strcmp(mode, "reflect") == 0 ? 2
                      : strcmp(mode, "wrap") == 0    ? 3
                                                     : 0);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_pad, &defines, "pad",
                                               rondo__cuda_blocks(count_of(y)), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count_of(y));
    rondo__step_address(
        step, rondo__address_offset(rondo__address_input(0), (size_t)first * (size_t)bytes_of(x)));
    rondo__step_output(step, 0);
    if (has_value) {
        rondo__step_input(step, 2);
    } else {
        rondo__step_int(step, 0);
    }
    rondo__step_int(step, bits);
    rondo__step_ints(step, y->shape.extent, rank);
    rondo__step_ints(step, kept, rank);
    rondo__step_ints(step, strides, rank);
    rondo__step_ints(step, shift, rank);
}

void rondo__cuda_prepare_pad(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    int64_t pads[2 * RONDO_RANK_MAX] = {0}, axes[RONDO_RANK_MAX];
    int64_t before[RONDO_RANK_MAX] = {0};
    const int32_t rank = x->shape.rank;
    int64_t bits = 0, given = rank;
    size_t attribute_count = 0;

    const int64_t *attribute = rondo__op_get_ints(op, "pads", &attribute_count);
    for (int32_t d = 0; d < rank; d++) {
        axes[d] = d;
    }
    if (attribute != NULL) {  // opset 9
        for (size_t i = 0; i < attribute_count && i < 2 * RONDO_RANK_MAX; i++) {
            pads[i] = attribute[i];
        }
        const float value = rondo__op_get_float(op, "value", 0.0f);
        rondo__convert_elements(RONDO_DTYPE_F32, &value, x->dtype, &bits, 1);
    } else {
        if (rondo__cuda_has_input(kernel, 3)) {
            given = rondo__cuda_read_ints(kernel, 3, axes, rank);
        }
        (void)rondo__cuda_read_ints(kernel, 1, pads, 2 * RONDO_RANK_MAX);
    }
    for (int64_t i = 0; i < given; i++) {
        const int32_t axis = rondo__cuda_wrap_axis(axes[i], rank);
        if (axis < rank) {
            before[axis] = pads[i];
        }
    }
    if (kernel->status == RONDO_STATUS_OK) {
        add_pad(kernel, before, rondo__op_get_string(op, "mode", "constant"),
                rondo__cuda_has_input(kernel, 2), bits);
    }
}

void rondo__cuda_prepare_center_crop_pad(rondo__cuda_kernel *kernel) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    int64_t before[RONDO_RANK_MAX] = {0};
    for (int32_t d = 0; d < x->rank; d++) {  // halves round down before the data
        before[d] = y->extent[d] >= x->extent[d] ? (y->extent[d] - x->extent[d]) / 2
                                                 : -((x->extent[d] - y->extent[d]) / 2);
    }
    add_pad(kernel, before, "constant", false, 0);
}

// ---- made from little -------------------------------------------------------------------------

static rondo__step *add_generator(rondo__cuda_kernel *kernel, rondo__defines *defines,
                                  const char *name, int64_t count) {
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_generate, defines, name,
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    return step;
}

void rondo__cuda_prepare_constant_of_shape(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const rondo__attribute *value = rondo__op_find(kernel->request->op, "value");
    rondo__defines defines = {0};
    int64_t bits = 0;

    if (value != NULL && value->kind == RONDO__ATTRIBUTE_TENSOR &&
        rondo_shape_get_count(&value->tensor_value.shape) == 1) {
        memcpy(&bits, value->tensor_value.data, bytes_of(y));
    }
    rondo__define_bytes(&defines, "T", bytes_of(y));
    rondo__step *step = add_generator(kernel, &defines, "fill", count_of(y));
    rondo__step_output(step, 0);
    rondo__step_int(step, bits);
}

// In inference: the input as it is, and a mask of ones.
void rondo__cuda_prepare_dropout(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *mask = rondo__cuda_output(kernel, 1);
    const uint8_t one = 1;
    int64_t bits = 0;
    rondo__defines defines = {0};
    if (rondo__cuda_wants_output(kernel, 0)) {
        rondo__cuda_prepare_view(kernel);
    }
    if (!rondo__cuda_wants_output(kernel, 1)) {
        return;
    }
    rondo__convert_elements(RONDO_DTYPE_U8, &one, mask->dtype, &bits, 1);
    rondo__define_type(&defines, "T", mask->dtype);
    rondo__step *step = add_generator(kernel, &defines, "fill", count_of(mask));
    rondo__step_output(step, 1);
    rondo__step_int(step, bits);
}

void rondo__cuda_prepare_range(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", y->dtype);
    rondo__step *step = add_generator(kernel, &defines, "range", count_of(y));
    rondo__step_input(step, 0);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
}

void rondo__cuda_prepare_one_hot(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    rondo__defines defines = {0};
    const int32_t axis =
        rondo__cuda_wrap_axis(rondo__op_get_int(kernel->request->op, "axis", -1), y->shape.rank);
    rondo__define_bytes(&defines, "T", bytes_of(y));
    rondo__define_type(&defines, "I", rondo__cuda_input(kernel, 0)->dtype);
    rondo__step *step = add_generator(kernel, &defines, "one_hot", count_of(y));
    rondo__step_input(step, 0);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
    rondo__step_int(step, y->shape.extent[axis]);
    rondo__step_int(step, rondo__cuda_product(&y->shape, axis + 1, y->shape.rank));
}

// If the axis is an input the kernel reads it. It gets all extents, and as many blocks as the
// shortest axis needs.
static void prepare_fed_axis(rondo__cuda_kernel *kernel, rondo__defines *defines) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    int64_t shortest = x->extent[0];
    for (int32_t d = 1; d < x->rank; d++) {
        shortest = x->extent[d] < shortest ? x->extent[d] : shortest;
    }
    rondo__define_int(defines, "RANK", x->rank);
    rondo__define_type(defines, "I", rondo__cuda_input(kernel, 1)->dtype);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_generate, defines, "cum_sum",
        rondo__cuda_blocks(rondo_shape_get_count(x) / shortest), RONDO__CUDA_BLOCK);
    rondo__step_int(step, rondo_shape_get_count(x));
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, rondo__op_get_int(kernel->request->op, "exclusive", 0));
    rondo__step_int(step, rondo__op_get_int(kernel->request->op, "reverse", 0));
    rondo__step_input(step, 1);
    rondo__step_ints(step, x->extent, x->rank);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

void rondo__cuda_prepare_cum_sum(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    int64_t axis = 0;

    if (x->shape.rank == 0) {
        rondo__cuda_refuse(kernel, "an axis of this form");
        return;
    }
    rondo__define_type(&defines, "T", x->dtype);
    if (rondo__cuda_is_float(x->dtype)) {
        rondo__define_word(&defines, "A", "double");
    }
    rondo__define_int(&defines, "MULTIPLIES", op->def->id == RONDO__OP_CumProd);
    if (rondo__cuda_input(kernel, 1)->constant == NULL) {
        prepare_fed_axis(kernel, &defines);
        return;
    }
    if (rondo__cuda_read_ints(kernel, 1, &axis, 1) != 1) {
        return;
    }
    axis = rondo__cuda_wrap_axis(axis, x->shape.rank);
    const int64_t length = x->shape.extent[axis];
    rondo__step *step = add_generator(kernel, &defines, "cum_sum", count_of(x) / length);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, rondo__op_get_int(op, "exclusive", 0));
    rondo__step_int(step, rondo__op_get_int(op, "reverse", 0));
    rondo__step_int(step, length);
    rondo__step_int(step, rondo__cuda_product(&x->shape, (int32_t)axis + 1, x->shape.rank));
}

void rondo__cuda_prepare_trilu(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    rondo__define_bytes(&defines, "T", bytes_of(x));
    rondo__step *step = add_generator(kernel, &defines, "trilu", count_of(x));
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, x->shape.extent[x->shape.rank - 2]);
    rondo__step_int(step, x->shape.extent[x->shape.rank - 1]);
    rondo__step_optional_input(step, kernel, 1);
    rondo__step_int(step, rondo__op_get_int(kernel->request->op, "upper", 1));
}

void rondo__cuda_prepare_eye_like(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", y->dtype);
    rondo__step *step = add_generator(kernel, &defines, "eye_like", count_of(y));
    rondo__step_output(step, 0);
    rondo__step_int(step, y->shape.extent[1]);
    rondo__step_int(step, rondo__op_get_int(kernel->request->op, "k", 0));
}
