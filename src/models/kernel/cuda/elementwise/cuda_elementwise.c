// kernel/cuda/elementwise/cuda_elementwise.c — element-wise ops, alone and in fused chains, as
// bodies for the pointwise writer.
// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/elementwise/cuda_pointwise.h"
#include "op/fused/fused.h"
#include "op/support.h"

// ---- one op -----------------------------------------------------------------------------------

typedef enum operand_shape {
    PLAIN,       // op_Name(x0), op_Name(x0, x1)
    FOLD,        // op_Name over any number of operands (Max, Min, Sum, Mean)
    PARAMETERS,  // op_Name(x0, alpha, beta)
} operand_shape;

typedef struct pointwise_op {
    rondo__op_id op;
    const char *function;
    operand_shape shape;
    const char *alpha_name;
    float alpha;
    const char *beta_name;
    float beta;
} pointwise_op;

static const pointwise_op pointwise_ops[] = {
    {.op = RONDO__OP_Sum, .function = "Add", .shape = FOLD},
    {.op = RONDO__OP_Mean, .function = "Add", .shape = FOLD},
    {.op = RONDO__OP_Max, .function = "Max", .shape = FOLD},
    {.op = RONDO__OP_Min, .function = "Min", .shape = FOLD},
    {RONDO__OP_LeakyRelu, "LeakyRelu", PARAMETERS, "alpha", 0.01f, NULL, 0.0f},
    {RONDO__OP_Elu, "Elu", PARAMETERS, "alpha", 1.0f, NULL, 0.0f},
    {RONDO__OP_Celu, "Celu", PARAMETERS, "alpha", 1.0f, NULL, 0.0f},
    {RONDO__OP_Selu, "Selu", PARAMETERS, "alpha", 1.67326319217681884765625f, "gamma",
     1.05070102214813232421875f},
    {RONDO__OP_Swish, "Swish", PARAMETERS, "alpha", 1.0f, NULL, 0.0f},
    {RONDO__OP_HardSigmoid, "HardSigmoid", PARAMETERS, "alpha", 0.2f, "beta", 0.5f},
    {RONDO__OP_ThresholdedRelu, "ThresholdedRelu", PARAMETERS, "alpha", 1.0f, NULL, 0.0f},
    {RONDO__OP_Shrink, "Shrink", PARAMETERS, "bias", 0.0f, "lambd", 0.5f},
};

static void append_call(rondo__text *body, const char *function, const char *arguments) {
    rondo__text_append(body, "            y = op_%s(%s);\n", function, arguments);
}

static void append_parameters(rondo__text *body, float alpha, float beta) {
    rondo__text_append(body, ", ");
    rondo__pointwise_append_float(body, alpha);
    rondo__text_append(body, ", ");
    rondo__pointwise_append_float(body, beta);
}

static void append_clip(rondo__text *body, const rondo__op *op, const rondo__pointwise *pointwise,
                        bool has_low, bool has_high) {
    rondo__text_append(body, "            y = x0;\n");
    if (op->opset < 11) {
        rondo__text_append(body, "            y = op_Clip(x0, (decltype(y))");
        rondo__pointwise_append_float(body, rondo__op_get_float(op, "min", -FLT_MAX));
        rondo__text_append(body, ", (decltype(y))");
        rondo__pointwise_append_float(body, rondo__op_get_float(op, "max", FLT_MAX));
        rondo__text_append(body, ");\n");
        return;
    }
    if (has_low) {
        rondo__text_append(body, "            y = op_Max(y, x1);\n");
    }
    if (has_high) {
        rondo__text_append(body, "            y = op_Min(y, x%zu);\n", pointwise->input_count - 1);
    }
}

// Ops whose call depends on attributes; false when the op is none of them.
static bool append_special(rondo__cuda_kernel *kernel, const rondo__pointwise *pointwise,
                           rondo__text *body) {
    const rondo__op *op = kernel->request->op;
    const rondo__op_id id = op->def->id;

    if (id == RONDO__OP_Cast || id == RONDO__OP_CastLike) {
        // What is kept as a float until it is stored in fewer bits is rounded once.
        const rondo_dtype dtype = pointwise->output_dtype;
        const bool is_half =
            dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16 ||
            (rondo__dtype_is_narrow(dtype) && !rondo__dtype_is_narrow_integer(dtype));
        rondo__text_append(body, is_half ? "            y = to_odd(x0);\n"
                                         : "            y = convert<decltype(y)>(x0);\n");
    } else if (id == RONDO__OP_Where) {
        rondo__text_append(body, "            y = x0 ? x1 : x2;\n");
    } else if (id == RONDO__OP_Clip) {
        append_clip(body, op, pointwise, rondo__cuda_has_input(kernel, 1),
                    rondo__cuda_has_input(kernel, 2));
    } else if (id == RONDO__OP_Mod) {
        append_call(body, op->def->name,
                    rondo__op_get_int(op, "fmod", 0) ? "x0, x1, true" : "x0, x1, false");
    } else if (id == RONDO__OP_BitShift) {
        const bool left = strcmp(rondo__op_get_string(op, "direction", "LEFT"), "LEFT") == 0;
        append_call(body, op->def->name, left ? "x0, x1, true" : "x0, x1, false");
    } else if (id == RONDO__OP_IsInf) {
        rondo__text_append(body, "            y = op_IsInf(x0, %s, %s);\n",
                           rondo__op_get_int(op, "detect_negative", 1) ? "true" : "false",
                           rondo__op_get_int(op, "detect_positive", 1) ? "true" : "false");
    } else if (id == RONDO__OP_SwiGLU) {
        rondo__text_append(body, "            y = op_Swish(x0");
        append_parameters(body, rondo__op_get_float(op, "alpha", 1.0f), 0.0f);
        rondo__text_append(body, ") * x1;\n");
    } else if (id == RONDO__OP_Gelu) {
        const bool is_tanh = strcmp(rondo__op_get_string(op, "approximate", "none"), "tanh") == 0;
        append_call(body, is_tanh ? "GeluTanh" : "Gelu", "x0");
    } else {
        return false;
    }
    return true;
}

static void append_op(rondo__cuda_kernel *kernel, const rondo__pointwise *pointwise,
                      rondo__text *body) {
    const rondo__op *op = kernel->request->op;
    const size_t count = pointwise->input_count;

    if (append_special(kernel, pointwise, body)) {
        return;
    }
    for (size_t i = 0; i < sizeof(pointwise_ops) / sizeof(pointwise_ops[0]); i++) {
        const pointwise_op *entry = &pointwise_ops[i];
        if (op->def->id != entry->op) {
            continue;
        }
        if (entry->shape == FOLD) {
            rondo__text_append(body, "            y = x0;\n");
            for (size_t k = 1; k < count; k++) {
                rondo__text_append(body, "            y = op_%s(y, x%zu);\n", entry->function, k);
            }
            if (entry->op == RONDO__OP_Mean) {
                rondo__text_append(body, "            y = y / (decltype(y))%zu;\n", count);
            }
        } else {
            rondo__text_append(body, "            y = op_%s(x0", entry->function);
            append_parameters(body, rondo__op_get_float(op, entry->alpha_name, entry->alpha),
                              entry->beta_name != NULL
                                  ? rondo__op_get_float(op, entry->beta_name, entry->beta)
                                  : 0.0f);
            rondo__text_append(body, ");\n");
        }
        return;
    }
    append_call(body, op->def->name, count == 1 ? "x0" : "x0, x1");
}

// Each thread reads its elements of an input of the output's shape before it writes them.
static void mark_in_place(rondo__cuda_kernel *kernel, size_t input) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, input);
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    if (rondo_dtype_get_bytes(x->dtype) == rondo_dtype_get_bytes(y->dtype) &&
        rondo_shape_is_equal(&x->shape, &y->shape)) {
        kernel->head.in_place_inputs |= UINT64_C(1) << input;
    }
}

// Where moves elements whose numbers no kernel needs to know.
static void move_bits(rondo__pointwise *pointwise) {
    const rondo_dtype dtype = pointwise->output_dtype;
    const rondo_dtype bits = rondo__dtype_is_narrow(dtype) ? RONDO_DTYPE_U8
                             : dtype == RONDO_DTYPE_C64    ? RONDO_DTYPE_U64
                                                           : dtype;
    for (size_t i = 1; i < pointwise->input_count; i++) {
        pointwise->inputs[i].dtype = bits;
    }
    pointwise->output_dtype = bits;
}

void rondo__cuda_prepare_elementwise(rondo__cuda_kernel *kernel) {
    rondo__pointwise pointwise = {0};

    rondo__pointwise_take_output(&pointwise, kernel, 0);
    size_t count = kernel->request->input_count;
    if (kernel->request->op->def->id == RONDO__OP_CastLike) {
        count = 1;
    }
    if (count > RONDO__POINTWISE_INPUTS_MAX) {
        rondo__cuda_refuse(kernel, "more than 16 operands");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (rondo__cuda_has_input(kernel, i)) {
            rondo__pointwise_take_input(&pointwise, kernel, i);
            mark_in_place(kernel, i);
        }
    }
    const rondo__op_id id = kernel->request->op->def->id;
    if (id == RONDO__OP_Where) {
        move_bits(&pointwise);
    }
    if ((id == RONDO__OP_Div || id == RONDO__OP_Mod) &&
        rondo__dtype_is_integer(rondo__cuda_input(kernel, 1)->dtype)) {
        pointwise.fault = RONDO__FAULT_DIVISOR;
        rondo__text_append(&pointwise.body,
                           "            if (x1 == 0) {\n"
                           "                a.told.tell();\n"
                           "            }\n");
    }
    append_op(kernel, &pointwise, &pointwise.body);
    rondo__cuda_add_pointwise(kernel, &pointwise);
}

// ---- fused chains -----------------------------------------------------------------------------

static void append_operand(rondo__text *body, int64_t operand, int64_t inputs) {
    if (operand < inputs) {
        rondo__text_append(body, "x%lld", (long long)operand);
    } else {
        rondo__text_append(body, "t%lld", (long long)(operand - inputs));
    }
}

void rondo__cuda_prepare_fused_elementwise(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__attribute *ops = rondo__op_find(op, "ops");
    size_t operand_count = 0, alpha_count = 0, beta_count = 0;
    const int64_t *operands = rondo__op_get_ints(op, "operands", &operand_count);
    const float *alphas = rondo__op_get_floats(op, "alphas", &alpha_count);
    const float *betas = rondo__op_get_floats(op, "betas", &beta_count);
    rondo__pointwise pointwise = {0};
    rondo__text *body = &pointwise.body;

    if (ops == NULL || ops->kind != RONDO__ATTRIBUTE_STRINGS || operand_count != 3 * ops->count ||
        alpha_count != ops->count || beta_count != ops->count || ops->count == 0 ||
        kernel->request->input_count > RONDO__POINTWISE_INPUTS_MAX) {
        rondo__cuda_refuse(kernel, "a chain of this form");
        return;
    }
    rondo__pointwise_take_output(&pointwise, kernel, 0);
    const int64_t inputs = (int64_t)kernel->request->input_count;
    for (size_t i = 0; i < kernel->request->input_count; i++) {
        rondo__pointwise_take_input(&pointwise, kernel, i);
        mark_in_place(kernel, i);
    }
    for (size_t k = 0; k < ops->count; k++) {
        const int scalar = rondo__scalar_op_parse(ops->strings[k]);
        if (scalar < 0) {
            rondo__cuda_refuse(kernel, "a chain with an unknown op");
            break;
        }
        const int arity = rondo__scalar_op_get_operand_count((rondo__scalar_op)scalar);
        rondo__text_append(body, "            const float t%zu = op_%s(", k, ops->strings[k]);
        for (int i = 0; i < arity; i++) {
            const int64_t operand = operands[3 * k + (size_t)i];
            if (operand < 0 || operand >= inputs + (int64_t)k) {
                rondo__cuda_refuse(kernel, "a chain with an operand out of order");
            }
            rondo__text_append(body, "%s", i > 0 ? ", " : "");
            append_operand(body, operand, inputs);
        }
        switch ((rondo__scalar_op)scalar) {
            case RONDO__SCALAR_Clip:
            case RONDO__SCALAR_LeakyRelu:
            case RONDO__SCALAR_Elu:
            case RONDO__SCALAR_HardSigmoid:
            case RONDO__SCALAR_Affine:
                append_parameters(body, alphas[k], betas[k]);
                break;
            default:
                break;
        }
        rondo__text_append(body, ");\n");
    }
    rondo__text_append(body, "            y = t%zu;\n", ops->count - 1);
    if (kernel->status == RONDO_STATUS_OK) {
        rondo__cuda_add_pointwise(kernel, &pointwise);
    } else {
        rondo__text_deinit(body);
    }
}

// ---- batch normalisation that no convolution took in ------------------------------------------

void rondo__cuda_prepare_batch_normalization(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    rondo__pointwise pointwise = {0};

    if (op->opset >= 14 ? rondo__op_trains(op) : kernel->request->output_count > 1) {
        rondo__cuda_prepare_batch_training(kernel);
        return;
    }
    rondo__pointwise_take_output(&pointwise, kernel, 0);
    for (size_t i = 0; i < 5; i++) {
        rondo__pointwise_take_input(&pointwise, kernel, i);
        if (i > 0 && x->rank > 2) {  // [C] becomes [C, 1, 1]
            rondo_shape *shape = &pointwise.inputs[i].shape;
            shape->rank = x->rank - 1;
            for (int32_t d = 1; d < shape->rank; d++) {
                shape->extent[d] = 1;
            }
        }
    }
    rondo__text_append(&pointwise.body, "            y = (x0 - x3) / op_Sqrt(x4 + (decltype(x4))");
    rondo__pointwise_append_float(&pointwise.body, rondo__op_get_float(op, "epsilon", 1e-5f));
    rondo__text_append(&pointwise.body, ") * x1 + x2;\n");
    rondo__cuda_add_pointwise(kernel, &pointwise);
}
