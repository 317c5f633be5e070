// program/pass_half.c — f32 to f16: weights once, activations throughout, casts at the borders.
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/edit.h"
#include "program/passes.h"

enum { ONNX_FLOAT = 1, ONNX_FLOAT16 = 10 };  // TensorProto.DataType

static rondo_status round_tensor(const rondo_tensor *source, rondo_tensor *out_tensor) {
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F16, &source->shape, out_tensor));
    const float *from = source->data;
    uint16_t *to = out_tensor->data;
    int64_t count = rondo_shape_get_count(&source->shape);
    for (int64_t i = 0; i < count; ++i) {
        // Large finite numbers, such as the -3.4e38 of attention masks, stay finite: infinities
        // would make NaN.
        float x = from[i];
        x = isfinite(x) && x > 65504.0f ? 65504.0f : isfinite(x) && x < -65504.0f ? -65504.0f : x;
        to[i] = rondo_half_from_float(x);
    }
    return RONDO_STATUS_OK;
}

// Inputs that ONNX fixes to f32 whatever the data's type.
static bool stays_single(const rondo__node *node, size_t input) {
    const char *name = node->op.def->name;
    if (strcmp(name, "Resize") == 0) {
        return input == 2 || (input == 1 && node->op.opset < 11);
    }
    return (strcmp(name, "Upsample") == 0 || strcmp(name, "Dropout") == 0) && input == 1;
}

static rondo_status convert_constants(rondo_program *program) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    bool *keep = rondo__calloc(program->value_count + 1, sizeof *keep);
    if (keep == NULL) {
        return status;
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] >= 0 && stays_single(node, i)) {
                keep[node->inputs[i]] = true;
            }
        }
    }
    status = RONDO_STATUS_OK;
    for (size_t v = 0; v < program->value_count && status == RONDO_STATUS_OK; ++v) {
        rondo__value *value = &program->values[v];
        if (keep[v]) {
            continue;
        }
        if (value->constant.dtype == RONDO_DTYPE_F32) {
            rondo_tensor half;
            status = round_tensor(&value->constant, &half);
            if (status == RONDO_STATUS_OK) {
                rondo_tensor_deinit(&value->constant);
                value->constant = half;
            }
        }
        if (value->dtype == RONDO_DTYPE_F32) {
            value->dtype = RONDO_DTYPE_F16;
        }
    }
    rondo__free(keep);
    return status;
}

// Attributes that say f32 as an element type or hold f32 tensors.
static rondo_status convert_attributes(rondo__node *node) {
    static const char *const type_attributes[] = {"to", "dtype", "output_datatype"};
    for (size_t i = 0; i < sizeof type_attributes / sizeof type_attributes[0]; ++i) {
        if (rondo__op_get_int(&node->op, type_attributes[i], 0) == ONNX_FLOAT) {
            RETURN_IF_ERROR(rondo__op_set_int(&node->op, type_attributes[i], ONNX_FLOAT16));
        }
    }
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        rondo__attribute *attribute = &node->op.attributes[a];
        if (attribute->kind == RONDO__ATTRIBUTE_BODY) {
            RETURN_IF_ERROR(rondo__pass_half(attribute->body, true));
        }
        if (attribute->kind == RONDO__ATTRIBUTE_TENSOR &&
            attribute->tensor_value.dtype == RONDO_DTYPE_F32) {
            rondo_tensor half;
            RETURN_IF_ERROR(round_tensor(&attribute->tensor_value, &half));
            rondo_tensor_deinit(&attribute->tensor_value);
            attribute->tensor_value = half;
        }
    }
    // Without a dtype these make f32.
    if ((rondo__node_is(node, "", "RandomNormal") || rondo__node_is(node, "", "RandomUniform")) &&
        rondo__op_find(&node->op, "dtype") == NULL) {
        return rondo__op_set_int(&node->op, "dtype", ONNX_FLOAT16);
    }
    // ConstantOfShape without a value makes f32 zeros.
    if (rondo__node_is(node, "", "ConstantOfShape") && rondo__op_find(&node->op, "value") == NULL) {
        rondo_shape one = {.rank = 1, .extent = {1}};
        rondo_tensor zero;
        RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F16, &one, &zero));
        rondo_status status = rondo__op_set_tensor(&node->op, "value", &zero);
        rondo_tensor_deinit(&zero);
        return status;
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_cast(rondo_program *program, int32_t from, int32_t to, int64_t type) {
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Cast", NULL, &from, 1, &to, 1));
    return rondo__op_set_int(&program->nodes[program->node_count - 1].op, "to", type);
}

// Casts behind f32 inputs and before f32 outputs, so that the outside sees the model's own types.
static rondo_status add_border_casts(rondo_program *program, const bool *was_single,
                                     size_t value_count) {
    for (size_t i = 0; i < program->input_count; ++i) {
        int32_t input = program->inputs[i];
        if (!was_single[input]) {
            continue;
        }
        int32_t half;
        RETURN_IF_ERROR(rondo__program_add_value(program, program->values[input].name, &half));
        program->values[half].dtype = RONDO_DTYPE_F16;
        rondo__program_replace_uses(program, input, half);
        program->values[input].dtype = RONDO_DTYPE_F32;
        RETURN_IF_ERROR(add_cast(program, input, half, ONNX_FLOAT16));
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        int32_t output = program->outputs[i];
        if ((size_t)output >= value_count || !was_single[output]) {
            continue;
        }
        int32_t single;
        RETURN_IF_ERROR(rondo__program_add_value(program, program->values[output].name, &single));
        program->values[single].dtype = RONDO_DTYPE_F32;
        RETURN_IF_ERROR(add_cast(program, output, single, ONNX_FLOAT));
        program->outputs[i] = single;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_half(rondo_program *program, bool is_body) {
    size_t value_count = program->value_count;
    bool *was_single = rondo__calloc(value_count + 1, sizeof *was_single);
    if (was_single == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t v = 0; v < value_count; ++v) {
        was_single[v] = program->values[v].dtype == RONDO_DTYPE_F32;
    }
    rondo_status status = convert_constants(program);
    for (size_t n = 0; n < program->node_count && status == RONDO_STATUS_OK; ++n) {
        status = convert_attributes(&program->nodes[n]);
    }
    if (status == RONDO_STATUS_OK && !is_body) {
        status = add_border_casts(program, was_single, value_count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_verify(program);
    }
    rondo__free(was_single);
    return status;
}
