// support/cases/interpret.c — see interpret.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/interpret.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tensor/elements.h"

static rondo_status run_node(const rondo_program *program, const rondo__node *node,
                             rondo_tensor *values) {
    const rondo_tensor **inputs = calloc(node->input_count + 1, sizeof *inputs);
    rondo_tensor *outputs = calloc(node->output_count + 1, sizeof *outputs);
    for (size_t i = 0; i < node->input_count; ++i) {
        int32_t v = node->inputs[i];
        inputs[i] = v < 0 ? NULL
                    : program->values[v].constant.dtype != RONDO_DTYPE_NONE
                        ? &program->values[v].constant
                        : &values[v];
    }
    rondo__compute compute = {.op = &node->op,
                              .input_count = node->input_count,
                              .output_count = node->output_count,
                              .inputs = inputs,
                              .outputs = outputs};
    rondo_status status = node->op.def->compute != NULL
                              ? rondo__op_compute(&compute)
                              : RONDO_FAIL(UNSUPPORTED, "%s is control flow", node->op.name);
    for (size_t i = 0; i < node->output_count; ++i) {
        if (status == RONDO_STATUS_OK && node->outputs[i] >= 0) {
            values[node->outputs[i]] = outputs[i];
        } else {
            rondo_tensor_deinit(&outputs[i]);
        }
    }
    free(inputs);
    free(outputs);
    return status;
}

rondo_status interpret_program(const rondo_program *program, const rondo_tensor *inputs,
                               rondo_tensor *outputs) {
    rondo_tensor *values = calloc(program->value_count + 1, sizeof *values);
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < program->input_count; ++i) {
        rondo_tensor_share(&inputs[i], &values[program->inputs[i]]);
    }
    for (size_t n = 0; n < program->node_count && status == RONDO_STATUS_OK; ++n) {
        status = run_node(program, &program->nodes[n], values);
    }
    for (size_t i = 0; i < program->output_count && status == RONDO_STATUS_OK; ++i) {
        const rondo__value *v = &program->values[program->outputs[i]];
        rondo_tensor_share(
            v->constant.dtype != RONDO_DTYPE_NONE ? &v->constant : &values[program->outputs[i]],
            &outputs[i]);
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        rondo_tensor_deinit(&values[v]);
    }
    free(values);
    return status;
}

static double get_element(const rondo_tensor *t, int64_t i) {
    switch (t->dtype) {
        case RONDO_DTYPE_F32:
            return (double)((const float *)t->data)[i];
        case RONDO_DTYPE_F64:
            return ((const double *)t->data)[i];
        case RONDO_DTYPE_F16:
            return (double)rondo_f16_to_float(((const uint16_t *)t->data)[i]);
        case RONDO_DTYPE_I64:
            return (double)((const int64_t *)t->data)[i];
        case RONDO_DTYPE_I32:
            return (double)((const int32_t *)t->data)[i];
        case RONDO_DTYPE_U8:
        case RONDO_DTYPE_BOOL:
            return (double)((const uint8_t *)t->data)[i];
        default:
            return (double)NAN;
    }
}

double compare_tensors(const rondo_tensor *a, const rondo_tensor *b) {
    if (a->dtype != b->dtype || !rondo_shape_is_equal(&a->shape, &b->shape)) {
        return (double)INFINITY;
    }
    double worst = 0.0;
    int64_t count = rondo_shape_get_count(&a->shape);
    for (int64_t i = 0; i < count; ++i) {
        if (a->dtype == RONDO_DTYPE_STRING) {
            bool is_same = rondo__string_compare((const rondo_string *)a->data + i,
                                                 (const rondo_string *)b->data + i) == 0;
            worst = is_same ? worst : (double)INFINITY;
            continue;
        }
        if (rondo__dtype_is_nested(a->dtype)) {
            double error = compare_tensors(rondo_tensor_get_item(a, (size_t)i),
                                           rondo_tensor_get_item(b, (size_t)i));
            worst = error > worst ? error : worst;
            continue;
        }
        double x = get_element(a, i);
        double y = get_element(b, i);
        if (x == y || (isnan(x) && isnan(y))) {  // infinities, too
            continue;
        }
        double difference = fabs(x - y) / (1.0 + fabs(y));
        if (!(difference <= worst)) {
            worst = isnan(difference) ? (double)INFINITY : difference;
        }
    }
    return worst;
}

size_t interpret_count(const rondo_program *program, rondo__op_id op) {
    size_t count = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        count += rondo__node_is(&program->nodes[n], op) ? 1 : 0;
    }
    return count;
}

const rondo__node *interpret_find(const rondo_program *program, rondo__op_id op) {
    for (size_t n = 0; n < program->node_count; ++n) {
        if (rondo__node_is(&program->nodes[n], op)) {
            return &program->nodes[n];
        }
    }
    return NULL;
}
