// kernel/cuda/elementwise/cuda_pointwise.c — see cuda_pointwise.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/cuda/elementwise/cuda_pointwise.h"

#include <string.h>

#include "cu_sources.h"
#include "tensor/narrow.h"

// ---- the loop nest ----------------------------------------------------------------------------

// The merged loop nest: what the kernel text and its parameters are made from.
typedef struct pointwise_layout {
    int32_t rank;    // at least 1
    int32_t width;   // elements of one access
    int64_t groups;  // vectors in the output
    int64_t extent[RONDO_RANK_MAX];
    int64_t stride[RONDO__POINTWISE_INPUTS_MAX][RONDO_RANK_MAX];  // in elements; innermost 0 or 1
                                                                  // where width > 1
    bool is_wide;                                                 // 64-bit offsets
} pointwise_layout;

static void set_strides(const rondo_shape *shape, const rondo_shape *output, int64_t *out_strides) {
    int64_t stride = 1;
    const int32_t shift = output->rank - shape->rank;
    for (int32_t d = output->rank - 1; d >= 0; d--) {
        const int32_t own = d - shift;
        const int64_t extent = own >= 0 ? shape->extent[own] : 1;
        out_strides[d] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
}

// Whether vectors of `width` elements can be used by every tensor.
static bool fits_width(const rondo__pointwise *pointwise, const pointwise_layout *layout,
                       int32_t width) {
    const int32_t inner = layout->rank - 1;
    if (layout->extent[inner] % width != 0) {
        return false;
    }
    for (size_t i = 0; i < pointwise->input_count; i++) {
        const int64_t *stride = layout->stride[i];
        if (stride[inner] == 0) {
            continue;
        }
        if (stride[inner] != 1) {
            return false;
        }
        for (int32_t d = 0; d < inner; d++) {
            if (stride[d] % width != 0) {
                return false;
            }
        }
    }
    return true;
}

static void plan(const rondo__pointwise *pointwise, pointwise_layout *out_layout) {
    pointwise_layout layout = {0};
    int64_t strides[RONDO__POINTWISE_INPUTS_MAX][RONDO_RANK_MAX];
    const rondo_shape *output = &pointwise->output_shape;

    size_t widest = rondo_dtype_get_bytes(pointwise->output_dtype);
    for (size_t i = 0; i < pointwise->input_count; i++) {
        set_strides(&pointwise->inputs[i].shape, output, strides[i]);
        const size_t bytes = rondo_dtype_get_bytes(pointwise->inputs[i].dtype);
        widest = bytes > widest ? bytes : widest;
    }
    for (int32_t d = 0; d < output->rank; d++) {
        if (output->extent[d] == 1) {
            continue;
        }
        // Merge with the extent before it where every tensor runs through both in one go.
        bool merges = layout.rank > 0;
        for (size_t i = 0; i < pointwise->input_count && merges; i++) {
            merges = layout.stride[i][layout.rank - 1] == strides[i][d] * output->extent[d];
        }
        if (!merges) {
            layout.rank++;
            layout.extent[layout.rank - 1] = 1;
        }
        layout.extent[layout.rank - 1] *= output->extent[d];
        for (size_t i = 0; i < pointwise->input_count; i++) {
            layout.stride[i][layout.rank - 1] = strides[i][d];
        }
    }
    if (layout.rank == 0) {
        layout.rank = 1;
        layout.extent[0] = 1;
    }
    layout.width = (int32_t)(16 / (widest > 0 ? widest : 1));
    if (layout.width > 8) {
        layout.width = 8;
    }
    while (layout.width > 1 && !fits_width(pointwise, &layout, layout.width)) {
        layout.width /= 2;
    }
    const int64_t count = rondo_shape_get_count(output);
    layout.groups = count / layout.width;
    layout.extent[layout.rank - 1] /= layout.width;
    layout.is_wide = count >= INT64_C(1) << 31;
    *out_layout = layout;
}

// ---- the text ---------------------------------------------------------------------------------

void rondo__pointwise_append_float(rondo__text *text, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    rondo__text_append(text, "__int_as_float(0x%08x)", bits);
}

// Where each operand stands for the group at hand.
static void write_offsets(const pointwise_layout *layout, size_t inputs, rondo__text *text) {
    const char *index = layout->is_wide ? "u64" : "u32";
    if (layout->rank > 1) {
        rondo__text_append(text, "        %s rest = group, i;\n        %s", index, index);
        for (size_t i = 0; i < inputs; i++) {
            rondo__text_append(text, "%s o%zu = 0", i > 0 ? "," : "", i);
        }
        rondo__text_append(text, "%s;\n", inputs == 0 ? " unused" : "");
        for (int32_t d = layout->rank - 1; d >= 0; d--) {
            if (d > 0) {
                rondo__text_append(text,
                                   "        i = rest %% (%s)a.extent[%d];\n"
                                   "        rest /= (%s)a.extent[%d];\n",
                                   index, d, index, d);
            } else {
                rondo__text_append(text, "        i = rest;\n");
            }
            for (size_t i = 0; i < inputs; i++) {
                if (layout->stride[i][d] != 0) {
                    rondo__text_append(text, "        o%zu += i * (%s)a.stride[%zu][%d];\n", i,
                                       index, i, d);
                }
            }
        }
    } else {
        for (size_t i = 0; i < inputs; i++) {
            const bool moves = layout->stride[i][0] != 0;
            rondo__text_append(text, "        const %s o%zu = %s;\n", index, i,
                               moves ? "group" : "0");
        }
    }
}

static void write_loads(const rondo__pointwise *pointwise, const pointwise_layout *layout,
                        rondo__text *text) {
    const int32_t inner = layout->rank - 1;
    // Offsets of moving operands count in vectors along the innermost extent, so each is scaled by
    // what its innermost stride says: the host has already multiplied strides by the width.
    for (size_t i = 0; i < pointwise->input_count; i++) {
        const char *type = rondo__cuda_type_name(pointwise->inputs[i].dtype);
        const bool moves = layout->stride[i][inner] != 0;
        const char *scale = layout->rank == 1 && moves ? " * WIDTH" : "";
        if (moves && layout->width > 1) {
            rondo__text_append(text,
                               "        const pack<%s, WIDTH> v%zu = *(const pack<%s, WIDTH> "
                               "*)(a.x%zu + o%zu%s);\n",
                               type, i, type, i, i, scale);
        } else {
            rondo__text_append(text, "        const %s v%zu = a.x%zu[o%zu];\n", type, i, i, i);
        }
    }
}

// Appends the kernel ("pointwise") to `text`, which holds the texts it needs.
static void write_kernel(const rondo__pointwise *pointwise, const pointwise_layout *layout,
                         rondo__text *text) {
    const size_t inputs = pointwise->input_count;
    const int32_t inner = layout->rank - 1;
    const char *index = layout->is_wide ? "u64" : "u32";
    const char *output_type = rondo__cuda_type_name(pointwise->output_dtype);

    rondo__text_append(text, "\nstruct pointwise_arguments {\n    i64 groups;\n    %s *y;\n",
                       output_type);
    for (size_t i = 0; i < inputs; i++) {
        rondo__text_append(text, "    const %s *x%zu;\n",
                           rondo__cuda_type_name(pointwise->inputs[i].dtype), i);
    }
    if (layout->rank > 1) {
        rondo__text_append(text, "    i64 extent[%d];\n    i64 stride[%zu][%d];\n", layout->rank,
                           inputs > 0 ? inputs : 1, layout->rank);
    }
    if (pointwise->fault != 0) {
        rondo__text_append(text, "    faults told;\n");
    }
    rondo__text_append(text,
                       "};\n"
                       "extern \"C\" __global__ void __launch_bounds__(256)\n"
                       "pointwise(const pointwise_arguments a) {\n"
                       "    take_turn();\n"
                       "    for (%s group = (%s)blockIdx.x * 256 + threadIdx.x; group < a.groups;\n"
                       "         group += (%s)gridDim.x * 256) {\n",
                       index, index, index);
    write_offsets(layout, inputs, text);
    write_loads(pointwise, layout, text);
    rondo__text_append(text,
                       "        pack<%s, WIDTH> result;\n"
                       "#pragma unroll\n"
                       "        for (int k = 0; k < WIDTH; k++) {\n",
                       output_type);
    for (size_t i = 0; i < inputs; i++) {
        const char *type = rondo__cuda_type_name(pointwise->inputs[i].dtype);
        const bool is_vector = layout->stride[i][inner] != 0 && layout->width > 1;
        rondo__text_append(text,
                           "            const compute_of<%s>::type x%zu = "
                           "convert<compute_of<%s>::type>(v%zu%s);\n",
                           type, i, type, i, is_vector ? ".value[k]" : "");
    }
    rondo__text_append(text, "            compute_of<%s>::type y;\n", output_type);
    rondo__text_append_bytes(text, pointwise->body.bytes != NULL ? pointwise->body.bytes : "",
                             pointwise->body.length);
    rondo__text_append(text,
                       "            result.value[k] = convert<%s>(y);\n"
                       "        }\n"
                       "        *(pack<%s, WIDTH> *)(a.y + group * WIDTH) = result;\n"
                       "    }\n}\n",
                       output_type, output_type);
}

// ---- the step ---------------------------------------------------------------------------------

void rondo__pointwise_take_input(rondo__pointwise *pointwise, const rondo__cuda_kernel *kernel,
                                 size_t index) {
    const rondo__tensor_info *info = rondo__cuda_input(kernel, index);
    if (pointwise->input_count < RONDO__POINTWISE_INPUTS_MAX) {
        pointwise->inputs[pointwise->input_count].address = rondo__address_input(index);
        pointwise->inputs[pointwise->input_count].dtype = info->dtype;
        pointwise->inputs[pointwise->input_count].shape = info->shape;
        pointwise->input_count++;
    }
}

void rondo__pointwise_take_output(rondo__pointwise *pointwise, const rondo__cuda_kernel *kernel,
                                  size_t index) {
    const rondo__tensor_info *info = rondo__cuda_output(kernel, index);
    pointwise->output = rondo__address_output(index);
    pointwise->output_dtype = info->dtype;
    pointwise->output_shape = info->shape;
}

void rondo__cuda_define_narrow(rondo__defines *defines, const rondo__op *op) {
    const char *mode = rondo__op_get_string(op, "round_mode", "up");
    rondo__define_int(defines, "RONDO_NARROW", 1);
    rondo__define_int(defines, "RONDO_UNBOUNDED", rondo__op_get_int(op, "saturate", 1) == 0);
    rondo__define_int(defines, "RONDO_ROUNDING",
                      strcmp(mode, "down") == 0      ? 1
                      : strcmp(mode, "nearest") == 0 ? 2
                                                     : 0);
}

static bool has_narrow(const rondo__pointwise *pointwise) {
    bool is_narrow = rondo__dtype_is_narrow(pointwise->output_dtype);
    for (size_t i = 0; i < pointwise->input_count; i++) {
        is_narrow = is_narrow || rondo__dtype_is_narrow(pointwise->inputs[i].dtype);
    }
    return is_narrow;
}

void rondo__cuda_add_pointwise(rondo__cuda_kernel *kernel, rondo__pointwise *pointwise) {
    pointwise_layout layout;
    rondo__text text = {0};
    rondo__defines defines = {0};

    plan(pointwise, &layout);
    const int32_t inner = layout.rank - 1;
    // Each op rounds, as it does alone: a Floor behind a Mul and an Add depends on the last bit.
    rondo__define_option(&defines, "-fmad=false");
    if (has_narrow(pointwise)) {
        rondo__cuda_define_narrow(&defines, kernel->request->op);
    }
    rondo__text_append_bytes(&text, rondo__cu_elementwise, strlen(rondo__cu_elementwise));
    rondo__text_append(&text, "#define WIDTH %d\n", layout.width);
    write_kernel(pointwise, &layout, &text);
    if (rondo__cuda_check(kernel, rondo__text_get_status(&pointwise->body)) &&
        rondo__cuda_check(kernel, rondo__text_get_status(&text)) && layout.groups > 0) {
        rondo__step *step =
            rondo__cuda_add_launch(kernel, text.bytes, &defines, "pointwise",
                                   rondo__cuda_blocks(layout.groups), RONDO__CUDA_BLOCK);
        rondo__step_int(step, layout.groups);
        rondo__step_address(step, pointwise->output);
        for (size_t i = 0; i < pointwise->input_count; i++) {
            rondo__step_address(step, pointwise->inputs[i].address);
        }
        for (int32_t d = 0; d < layout.rank && layout.rank > 1; d++) {
            rondo__step_int(step, layout.extent[d]);
        }
        for (size_t i = 0; i < pointwise->input_count && layout.rank > 1; i++) {
            for (int32_t d = 0; d < layout.rank; d++) {
                const int64_t scale = d == inner ? layout.width : 1;
                rondo__step_int(step, layout.stride[i][d] * scale);
            }
        }
        if (pointwise->fault != 0) {
            rondo__step_faults(step, kernel, pointwise->fault);
        }
    }
    rondo__text_deinit(&text);
    rondo__text_deinit(&pointwise->body);
}
