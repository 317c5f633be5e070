// kernel/cuda/product/cuda_quantize.c — QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/elementwise/cuda_pointwise.h"
#include "kernel/cuda/product/cuda_byte_product.h"
#include "op/reference.h"

enum { INPUT_X, INPUT_SCALE, INPUT_ZERO };

// x as [outer, length / block, block, inner], and which of these extents the scales follow.
typedef struct scale_grid {
    int64_t outer, length, inner;
    int64_t block;     // positions of the axis that share a scale
    int64_t scales;    // scales along the axis
    bool follows_all;  // scale is [outer, scales, inner]; otherwise one for all or [scales]
} scale_grid;

static scale_grid read_grid(const rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, INPUT_X)->shape;
    const rondo_shape *scale = &rondo__cuda_input(kernel, INPUT_SCALE)->shape;
    const int64_t scale_count = rondo_shape_get_count(scale);
    const int64_t block = rondo__op_get_int(op, "block_size", 0);
    scale_grid grid = {.outer = 1,
                       .length = rondo_shape_get_count(x),
                       .inner = 1,
                       .block = rondo_shape_get_count(x),
                       .scales = 1};
    if (scale->rank == 0 || (scale->rank == 1 && scale_count == 1 && block == 0)) {
        return grid;
    }
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", 1), x->rank);
    grid.length = x->extent[axis];
    grid.inner = rondo__cuda_product(x, axis + 1, x->rank);
    grid.outer = rondo__cuda_product(x, 0, axis);
    grid.block = block == 0 ? 1 : block;
    grid.follows_all = block != 0;
    grid.scales = grid.follows_all ? scale->extent[axis] : grid.length;
    return grid;
}

static void take_parameter(rondo__pointwise *pointwise, const rondo__cuda_kernel *kernel,
                           size_t index, const scale_grid *grid) {
    const rondo_shape all = {.rank = 4, .extent = {grid->outer, grid->scales, 1, grid->inner}};
    const rondo_shape places = {.rank = 4, .extent = {1, grid->scales, 1, 1}};
    rondo__pointwise_take_input(pointwise, kernel, index);
    pointwise->inputs[pointwise->input_count - 1].shape = grid->follows_all ? all : places;
}

// The type of the quotient, which attribute precision may give.
static const char *get_precision(const rondo__cuda_kernel *kernel) {
    const rondo_dtype dtype =
        rondo__dtype_from_onnx(rondo__op_get_int(kernel->request->op, "precision", 0));
    return dtype == RONDO_DTYPE_NONE ? "float" : rondo__cuda_type_name(dtype);
}

static void append_quantize(rondo__text *body, const rondo__cuda_kernel *kernel, bool has_zero) {
    const rondo_dtype dtype = rondo__cuda_output(kernel, 0)->dtype;
    const char *zero = has_zero ? "x2" : "(decltype(y))0";
    rondo__text_append(body, "            const auto quotient = division<%s>::run(x0, x1);\n",
                       get_precision(kernel));
    if (rondo__dtype_is_narrow_integer(dtype)) {
        rondo__text_append(body, "            y = quantize_within(quotient, %s, %d, %d);\n", zero,
                           (int)rondo__saturate(-100.0, dtype), (int)rondo__saturate(100.0, dtype));
    } else if (rondo__dtype_is_narrow(dtype)) {
        rondo__text_append(body, "            y = (float)(quotient + %s);\n", zero);
    } else {
        rondo__text_append(body, "            y = quantize<decltype(y)>(quotient, %s);\n", zero);
    }
}

static void append_dequantize(rondo__text *body, const rondo__cuda_kernel *kernel, bool has_zero) {
    const rondo_dtype dtype = rondo__cuda_input(kernel, INPUT_X)->dtype;
    const rondo_dtype scale = rondo__cuda_input(kernel, INPUT_SCALE)->dtype;
    const char *zero = has_zero ? "x2" : "(decltype(x0))0";
    if (scale != rondo__cuda_output(kernel, 0)->dtype ||
        (rondo__dtype_is_narrow(dtype) && !rondo__dtype_is_narrow_integer(dtype))) {
        rondo__text_append(body, "            y = dequantize_as<decltype(y)>(x0, x1, %s);\n", zero);
    } else if (rondo__dtype_is_narrow(dtype)) {
        rondo__text_append(body, "            y = dequantize((i16)x0, x1, (i16)%s);\n", zero);
    } else {
        rondo__text_append(body, "            y = dequantize(x0, x1, %s);\n", zero);
    }
}

// Scales that follow whole blocks: a view of x in four extents makes it element-wise.
static void add_elementwise(rondo__cuda_kernel *kernel, const scale_grid *grid, bool quantizes) {
    rondo__pointwise pointwise = {0};
    const rondo_shape view = {.rank = 4,
                              .extent = {grid->outer, grid->scales, grid->block, grid->inner}};
    const bool has_zero = rondo__cuda_has_input(kernel, INPUT_ZERO);
    rondo__pointwise_take_output(&pointwise, kernel, 0);
    pointwise.output_shape = view;
    rondo__pointwise_take_input(&pointwise, kernel, INPUT_X);
    pointwise.inputs[0].shape = view;
    take_parameter(&pointwise, kernel, INPUT_SCALE, grid);
    if (has_zero) {
        take_parameter(&pointwise, kernel, INPUT_ZERO, grid);
    }
    if (quantizes) {
        append_quantize(&pointwise.body, kernel, has_zero);
    } else {
        append_dequantize(&pointwise.body, kernel, has_zero);
    }
    rondo__cuda_add_pointwise(kernel, &pointwise);
}

static void add_blocks(rondo__cuda_kernel *kernel, const scale_grid *grid, bool quantizes) {
    rondo__defines defines = {0};
    const rondo__tensor_info *x = rondo__cuda_input(kernel, INPUT_X);
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const rondo_dtype scale = rondo__cuda_input(kernel, INPUT_SCALE)->dtype;
    const rondo_dtype steps = quantizes ? y->dtype : x->dtype;
    const int64_t count = rondo_shape_get_count(&x->shape);
    rondo__define_type(&defines, "S", scale);
    rondo__define_type(&defines, "Q", steps);
    if (quantizes) {
        rondo__define_type(&defines, "X", x->dtype);
        rondo__define_word(&defines, "P", get_precision(kernel));
    } else {
        rondo__define_type(&defines, "Y", y->dtype);
    }
    if (rondo__dtype_is_narrow(steps) || rondo__dtype_is_narrow(scale)) {
        rondo__cuda_define_narrow(&defines, kernel->request->op);
    }
    if (rondo__dtype_is_narrow_integer(steps)) {
        rondo__define_int(&defines, "LOW", (int64_t)rondo__saturate(-100.0, steps));
        rondo__define_int(&defines, "HIGH", (int64_t)rondo__saturate(100.0, steps));
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_quantize, &defines,
                                               quantizes ? "quantize_blocks" : "dequantize_blocks",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, INPUT_X);
    rondo__step_input(step, INPUT_SCALE);
    rondo__step_optional_input(step, kernel, INPUT_ZERO);
    rondo__step_output(step, 0);
    rondo__step_int(step, grid->length);
    rondo__step_int(step, grid->inner);
    rondo__step_int(step, grid->block);
    rondo__step_int(step, grid->scales);
}

static void add_quantization(rondo__cuda_kernel *kernel, bool quantizes) {
    const scale_grid grid = read_grid(kernel);
    if (grid.block * grid.scales == grid.length) {
        add_elementwise(kernel, &grid, quantizes);
    } else {
        add_blocks(kernel, &grid, quantizes);
    }
}

void rondo__cuda_prepare_quantize(rondo__cuda_kernel *kernel) {
    add_quantization(kernel, true);
}

void rondo__cuda_prepare_dequantize(rondo__cuda_kernel *kernel) {
    add_quantization(kernel, false);
}

void rondo__cuda_prepare_qlinear_add(rondo__cuda_kernel *kernel) {
    rondo__pointwise pointwise = {0};
    rondo__pointwise_take_output(&pointwise, kernel, 0);
    for (size_t i = 0; i < kernel->request->input_count; ++i) {
        rondo__pointwise_take_input(&pointwise, kernel, i);
    }
    rondo__text_append(
        &pointwise.body,
        "            const float sum = __fadd_rn(dequantize(x0, x1, x2),\n"
        "                                        dequantize(x3, x4, x5));\n"
        "            y = quantize<decltype(y)>(division<float>::run(sum, x6), x7);\n");
    rondo__cuda_add_pointwise(kernel, &pointwise);
}

// ---- DynamicQuantizeLinear --------------------------------------------------------------------

enum {
    ONE_BLOCK_COUNT = 8192,  // elements that one block of DYNAMIC_THREADS deals with in one launch
    DYNAMIC_THREADS = 1024,
    PARTS_MAX = 512,
};

static void push_dynamic(rondo__step *step, const rondo__dynamic_quantize *dynamic,
                         const rondo__address *parts, int64_t part_count) {
    rondo__step_int(step, dynamic->count);
    rondo__step_address(step, dynamic->x);
    rondo__step_optional(step, part_count > 0 ? parts : NULL);
    rondo__step_int(step, part_count);
    rondo__step_optional(step, dynamic->y);
    rondo__step_optional(step, dynamic->scale);
    rondo__step_optional(step, dynamic->zero);
}

void rondo__cuda_add_dynamic_quantize(rondo__cuda_kernel *kernel,
                                      const rondo__dynamic_quantize *dynamic) {
    rondo__defines defines = {0};
    rondo__address parts = {0};
    const int64_t blocks = rondo__cuda_blocks((dynamic->count + 3) / 4);
    int64_t part_count = 0;
    rondo__define_int(&defines, "NAN_WINS", !dynamic->is_lstm);
    rondo__define_int(&defines, "ONE_WHEN_FLAT", dynamic->is_lstm);
    if (dynamic->count > ONE_BLOCK_COUNT) {
        part_count = blocks > PARTS_MAX ? PARTS_MAX : blocks;
        parts = rondo__address_workspace(
            rondo__cuda_reserve_workspace(kernel, (size_t)part_count * 2 * sizeof(float)));
        rondo__step *step =
            rondo__cuda_add_launch(kernel, rondo__cu_quantize, &defines, "dynamic_extremes",
                                   part_count, RONDO__CUDA_BLOCK);
        push_dynamic(step, dynamic, &parts, part_count);
    }
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_quantize, &defines, "dynamic_quantize", part_count > 0 ? blocks : 1,
        part_count > 0 ? RONDO__CUDA_BLOCK : DYNAMIC_THREADS);
    push_dynamic(step, dynamic, &parts, part_count);
}

void rondo__cuda_prepare_dynamic_quantize(rondo__cuda_kernel *kernel) {
    const rondo__address outputs[3] = {rondo__address_output(0), rondo__address_output(1),
                                       rondo__address_output(2)};
    const rondo__dynamic_quantize dynamic = {
        .count = rondo_shape_get_count(&rondo__cuda_input(kernel, INPUT_X)->shape),
        .x = rondo__address_input(INPUT_X),
        .y = rondo__cuda_wants_output(kernel, 0) ? &outputs[0] : NULL,
        .scale = rondo__cuda_wants_output(kernel, 1) ? &outputs[1] : NULL,
        .zero = rondo__cuda_wants_output(kernel, 2) ? &outputs[2] : NULL,
    };
    rondo__cuda_add_dynamic_quantize(kernel, &dynamic);
}
