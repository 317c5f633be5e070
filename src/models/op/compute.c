// op/compute.c — running an op's plain C reference.
//
// rondo__op_compute first runs the op's own shape inference on the actual inputs (values included).
// So each `compute` starts from inputs that `infer` has accepted, and knows its output shapes.
//
// Ops that lack NATIVE_HALF never see f16 or bf16: their half inputs are widened to f32, they run,
// and those outputs that should have been half are narrowed. Which ones those are is what `infer`
// says about the original dtypes.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/half.h"
#include "op/op.h"
#include "tensor/elements.h"

enum { SMALL_COUNT = 8 };  // inputs or outputs for which no heap is used

rondo_status rondo__compute_get_output(rondo__compute *compute, size_t output, rondo_dtype dtype,
                                       const rondo_shape *shape, void **out_data) {
    *out_data = NULL;
    if (output >= compute->output_count) {
        return RONDO_OP_FAIL(compute->op, INTERNAL, "asked for output %zu of %zu", output,
                             compute->output_count);
    }
    rondo_tensor *tensor = &compute->outputs[output];
    if (tensor->dtype == RONDO_DTYPE_NONE) {
        RETURN_IF_ERROR(rondo_tensor_init(dtype, shape, tensor));
    } else if (tensor->dtype != dtype || !rondo_shape_is_equal(&tensor->shape, shape)) {
        char planned[96];
        char computed[96];
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "output %zu was planned as %s %s, but is %s %s",
                             output, rondo_dtype_get_name(tensor->dtype),
                             rondo_shape_format(&tensor->shape, planned, sizeof planned),
                             rondo_dtype_get_name(dtype),
                             rondo_shape_format(shape, computed, sizeof computed));
    }
    *out_data = tensor->data;
    return RONDO_STATUS_OK;
}

rondo_status rondo__compute_get_inferred(rondo__compute *compute, size_t output, void **out_data) {
    *out_data = NULL;
    if (output >= compute->output_count || !compute->inferred[output].is_shape_known) {
        return RONDO_OP_FAIL(compute->op, INTERNAL, "the shape of output %zu was not inferred",
                             output);
    }
    const rondo__tensor_info *info = &compute->inferred[output];
    return rondo__compute_get_output(compute, output, info->dtype, &info->shape, out_data);
}

rondo_status rondo__compute_take_output(rondo__compute *compute, size_t output,
                                        rondo_tensor *tensor) {
    rondo_status status = RONDO_STATUS_OK;
    if (output < compute->output_count && compute->outputs[output].dtype == RONDO_DTYPE_NONE) {
        compute->outputs[output] = *tensor;
        *tensor = (rondo_tensor){0};
        return status;
    }
    void *data = NULL;
    status = rondo__compute_get_output(compute, output, tensor->dtype, &tensor->shape, &data);
    if (status == RONDO_STATUS_OK && rondo_tensor_get_bytes(tensor) > 0) {
        memcpy(data, tensor->data, rondo_tensor_get_bytes(tensor));
    }
    rondo_tensor_deinit(tensor);
    return status;
}

// Text made by one compute: one block for each string, in a list.
typedef struct rondo__text_block {
    struct rondo__text_block *next;
    char bytes[];
} rondo__text_block;

rondo_status rondo__compute_new_text(rondo__compute *compute, size_t size, char **out_text) {
    *out_text = NULL;
    size_t total;
    if (!rondo__add_size(size, sizeof(rondo__text_block), &total)) {
        return RONDO_FAIL(NO_MEMORY, "a string of %zu bytes does not fit the address space", size);
    }
    rondo__text_block *block = rondo__malloc(total);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    block->next = compute->texts;
    compute->texts = block;
    *out_text = block->bytes;
    return RONDO_STATUS_OK;
}

static void free_texts(rondo__compute *compute) {
    while (compute->texts != NULL) {
        rondo__text_block *next = compute->texts->next;
        rondo__free(compute->texts);
        compute->texts = next;
    }
}

// An element of a string output points to wherever the op found it; the output gets its own.
static rondo_status own_outputs(rondo__compute *compute) {
    for (size_t i = 0; i < compute->output_count; ++i) {
        if (compute->outputs[i].dtype == RONDO_DTYPE_STRING) {
            RETURN_IF_ERROR(rondo__tensor_own_strings(&compute->outputs[i]));
        }
    }
    return RONDO_STATUS_OK;
}

bool rondo__compute_has_input(const rondo__compute *compute, size_t input) {
    return input < compute->input_count && compute->inputs[input] != NULL;
}

bool rondo__compute_wants_output(const rondo__compute *compute, size_t output) {
    return output < compute->output_count &&
           (compute->wants_output == NULL || compute->wants_output[output]);
}

// Infers from the actual inputs into infos[input_count + output_count].
static rondo_status infer_actual(const rondo__compute *compute, rondo__tensor_info *infos) {
    for (size_t i = 0; i < compute->input_count; ++i) {
        const rondo_tensor *input = compute->inputs[i];
        infos[i] = (rondo__tensor_info){0};
        if (input != NULL) {
            infos[i].dtype = input->dtype;
            infos[i].is_shape_known = true;
            infos[i].shape = input->shape;
            infos[i].constant = input;
        }
    }
    rondo__infer infer = {
        .op = compute->op,
        .input_count = compute->input_count,
        .output_count = compute->output_count,
        .inputs = infos,
        .outputs = infos + compute->input_count,
    };
    return rondo__op_infer(&infer);
}

// Makes the outputs when all of them are empty, which needs no work.
static rondo_status make_empty(rondo__compute *compute, bool *out_is_done) {
    *out_is_done = false;
    for (size_t i = 0; i < compute->output_count; ++i) {
        const rondo__tensor_info *info = &compute->inferred[i];
        if (!info->is_shape_known || rondo_shape_get_count(&info->shape) != 0) {
            return RONDO_STATUS_OK;
        }
    }
    for (size_t i = 0; i < compute->output_count; ++i) {
        void *data = NULL;
        if (rondo__compute_wants_output(compute, i)) {
            RETURN_IF_ERROR(rondo__compute_get_inferred(compute, i, &data));
        }
    }
    *out_is_done = true;
    return RONDO_STATUS_OK;
}

// Runs `infer` and `compute` on inputs that the op takes as they are.
static rondo_status run_direct(rondo__compute *compute) {
    rondo__tensor_info small[2 * SMALL_COUNT];
    size_t info_count = compute->input_count + compute->output_count;
    rondo__tensor_info *infos = small;
    if (info_count > 2 * SMALL_COUNT) {
        infos = rondo__calloc(info_count, sizeof *infos);
        if (infos == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo_status status = infer_actual(compute, infos);
    if (status == RONDO_STATUS_OK) {
        compute->inferred = infos + compute->input_count;
        bool is_done = false;
        status = make_empty(compute, &is_done);
        if (status == RONDO_STATUS_OK && !is_done) {
            status = compute->op->def->compute(compute);
        }
        compute->inferred = NULL;
    }
    if (infos != small) {
        rondo__free(infos);
    }
    return status;
}

// Widens each half input of `compute` into wide[]; pointers[] then lists what the op gets.
static rondo_status widen_inputs(const rondo__compute *compute, rondo_tensor *wide,
                                 const rondo_tensor **pointers) {
    for (size_t i = 0; i < compute->input_count; ++i) {
        const rondo_tensor *input = compute->inputs[i];
        pointers[i] = input;
        if (input == NULL || !rondo__is_half(input->dtype)) {
            continue;
        }
        RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F32, &input->shape, &wide[i]));
        rondo__half_to_float_array(input->dtype, input->data, wide[i].data,
                                   (size_t)rondo_shape_get_count(&input->shape));
        pointers[i] = &wide[i];
    }
    return RONDO_STATUS_OK;
}

// Hands the wide result of output `i` over as the dtype that `info` asks for.
static rondo_status narrow_output(rondo__compute *compute, size_t i, rondo_tensor *result,
                                  const rondo__tensor_info *info) {
    void *data = NULL;
    if (result->dtype == RONDO_DTYPE_F32 && rondo__is_half(info->dtype)) {
        RETURN_IF_ERROR(rondo__compute_get_output(compute, i, info->dtype, &result->shape, &data));
        rondo__half_from_float_array(info->dtype, result->data, data,
                                     (size_t)rondo_shape_get_count(&result->shape));
        return RONDO_STATUS_OK;
    }
    if (compute->outputs[i].dtype == RONDO_DTYPE_NONE) {
        compute->outputs[i] = *result;
        *result = (rondo_tensor){0};
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__compute_get_output(compute, i, result->dtype, &result->shape, &data));
    size_t bytes = rondo_tensor_get_bytes(result);
    if (bytes > 0) {
        memcpy(data, result->data, bytes);
    }
    return RONDO_STATUS_OK;
}

static rondo_status run_widened(rondo__compute *compute) {
    size_t input_count = compute->input_count;
    size_t output_count = compute->output_count;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    const rondo_tensor **pointers = NULL;
    rondo__tensor_info *infos = NULL;
    rondo_tensor *tensors = rondo__calloc(input_count + output_count, sizeof *tensors);
    if (tensors == NULL) {
        return status;
    }
    pointers = rondo__calloc(input_count, sizeof *pointers);
    if (pointers == NULL) {
        goto free_tensors;
    }
    infos = rondo__calloc(input_count + output_count, sizeof *infos);
    if (infos == NULL) {
        goto free_pointers;
    }
    status = infer_actual(compute, infos);
    if (status != RONDO_STATUS_OK) {
        goto free_infos;
    }
    status = widen_inputs(compute, tensors, pointers);
    if (status != RONDO_STATUS_OK) {
        goto free_infos;
    }
    rondo__compute inner = *compute;
    inner.inputs = pointers;
    inner.outputs = tensors + input_count;
    status = run_direct(&inner);
    compute->texts = inner.texts;
    for (size_t i = 0; status == RONDO_STATUS_OK && i < output_count; ++i) {
        if (inner.outputs[i].dtype != RONDO_DTYPE_NONE) {
            status = narrow_output(compute, i, &inner.outputs[i], &infos[input_count + i]);
        }
    }
free_infos:
    rondo__free(infos);
free_pointers:
    rondo__free(pointers);
free_tensors:
    for (size_t i = 0; i < input_count + output_count; ++i) {
        rondo_tensor_deinit(&tensors[i]);
    }
    rondo__free(tensors);
    return status;
}

rondo_status rondo__op_compute(rondo__compute *compute) {
    const rondo__op_def *def = compute->op->def;
    if (def->compute == NULL) {
        return rondo__op_fail_unsupported(compute->op,
                                          "no reference: control flow is run by the executor");
    }
    bool small_was_given[SMALL_COUNT];
    bool *was_given = small_was_given;
    if (compute->output_count > SMALL_COUNT) {
        was_given = rondo__calloc(compute->output_count, sizeof *was_given);
        if (was_given == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < compute->output_count; ++i) {
        was_given[i] = compute->outputs[i].dtype != RONDO_DTYPE_NONE;
        if (was_given[i] && !rondo__dtype_is_plain(compute->outputs[i].dtype)) {
            status = RONDO_OP_FAIL(compute->op, INTERNAL, "output %zu of %s cannot be preallocated",
                                   i, rondo_dtype_get_name(compute->outputs[i].dtype));
        }
    }
    bool has_half = false;
    for (size_t i = 0; i < compute->input_count; ++i) {
        has_half |= compute->inputs[i] != NULL && rondo__is_half(compute->inputs[i]->dtype);
    }
    bool must_widen = has_half && (def->flags & (RONDO__OP_NATIVE_HALF | RONDO__OP_USER)) == 0;
    if (status == RONDO_STATUS_OK) {
        status = must_widen ? run_widened(compute) : run_direct(compute);
    }
    if (status == RONDO_STATUS_OK) {
        status = own_outputs(compute);
    }
    free_texts(compute);
    for (size_t i = 0; status != RONDO_STATUS_OK && i < compute->output_count; ++i) {
        if (!was_given[i]) {
            rondo_tensor_deinit(&compute->outputs[i]);
        }
    }
    if (was_given != small_was_given) {
        rondo__free(was_given);
    }
    return status;
}
