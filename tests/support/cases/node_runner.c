// SPDX-License-Identifier: Apache-2.0

#include "support/cases/node_runner.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "op/support.h"
#include "program/program.h"
#include "rondo/onnx.h"
#include "tensor/elements.h"

// The tolerance of ONNX's own runner.
#define RELATIVE_TOLERANCE 1e-3
// ONNX's bf16 data was cut, not rounded: one unit of eight bits.
#define BFLOAT_TOLERANCE (1.0 / 128.0)
#define ABSOLUTE_TOLERANCE 1e-7

typedef struct runner {
    const rondo_program *program;
    rondo_tensor *values;  // one for each value of the program
    char *reason;
    size_t reason_bytes;
} runner;

static node_outcome say(runner *run, node_outcome outcome, const char *what) {
    snprintf(run->reason, run->reason_bytes, "%s", what);
    return outcome;
}

// The outcome of a library call that failed: refused as unsupported is a skip.
static node_outcome say_error(runner *run, rondo_status status) {
    const rondo_error *error = rondo_error_get_last();
    snprintf(run->reason, run->reason_bytes, "%s: %s", rondo_status_get_name(status),
             error->message);
    return status == RONDO_STATUS_UNSUPPORTED ? NODE_SKIPPED : NODE_FAILED;
}

// ---- one node

static rondo__tensor_info describe(const rondo_tensor *tensor, bool with_value) {
    rondo__tensor_info info = {0};
    if (tensor != NULL) {
        info.dtype = tensor->dtype;
        info.is_shape_known = true;
        info.shape = tensor->shape;
        info.constant = with_value ? tensor : NULL;
    }
    return info;
}

// What an item of a sequence or optional is, shows only when it is at hand.
static bool takes_from_items(const rondo__node *node, const rondo_tensor *const *inputs) {
    bool takes = false;
    for (size_t i = 0; i < node->input_count; i++) {
        takes = takes || (inputs[i] != NULL && rondo__dtype_is_nested(inputs[i]->dtype));
    }
    return takes;
}

// What inference says without any value must agree with what was computed.
static node_outcome check_inference(runner *run, const rondo__node *node,
                                    const rondo_tensor *const *inputs,
                                    const rondo_tensor *outputs) {
    node_outcome outcome = NODE_PASSED;
    rondo__tensor_info *infos =
        calloc(node->input_count + node->output_count + 1, sizeof(rondo__tensor_info));
    for (size_t i = 0; i < node->input_count; i++) {
        infos[i] = describe(inputs[i], false);
    }
    rondo__infer infer = {.op = &node->op,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .inputs = infos,
                          .outputs = infos + node->input_count};
    rondo_status status = rondo__op_infer(&infer);
    if (status != RONDO_STATUS_OK) {
        outcome = say_error(run, status);
    }
    for (size_t i = 0; outcome == NODE_PASSED && i < node->output_count; i++) {
        const rondo__tensor_info *info = &infer.outputs[i];
        if (outputs[i].dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        if (info->dtype == RONDO_DTYPE_NONE && takes_from_items(node, inputs)) {
            continue;
        }
        if (info->dtype != outputs[i].dtype) {
            snprintf(run->reason, run->reason_bytes, "%s: output %zu is inferred as %s, is %s",
                     node->op.def->name, i, rondo_dtype_get_name(info->dtype),
                     rondo_dtype_get_name(outputs[i].dtype));
            outcome = NODE_FAILED;
        } else if (info->is_shape_known && !rondo_shape_is_equal(&info->shape, &outputs[i].shape)) {
            char a[96];
            char b[96];
            snprintf(run->reason, run->reason_bytes, "%s: output %zu is inferred as %s, is %s",
                     node->op.def->name, i, rondo_shape_format(&info->shape, a, sizeof a),
                     rondo_shape_format(&outputs[i].shape, b, sizeof b));
            outcome = NODE_FAILED;
        } else if (!info->is_shape_known && !infer.is_data_dependent && infer.needed_inputs == 0) {
            snprintf(run->reason, run->reason_bytes,
                     "%s: inference neither knows the shape nor says what it needs",
                     node->op.def->name);
            outcome = NODE_FAILED;
        }
    }
    free(infos);
    return outcome;
}

static node_outcome run_node(runner *run, const rondo__node *node) {
    if (node->op.def->compute == NULL) {
        char text[96];
        snprintf(text, sizeof text, "control flow: %s", node->op.def->name);
        return say(run, NODE_SKIPPED, text);
    }
    const rondo_tensor **inputs = calloc(node->input_count + 1, sizeof *inputs);
    rondo_tensor *outputs = calloc(node->output_count + 1, sizeof *outputs);
    bool *wants = calloc(node->output_count + 1, sizeof *wants);
    node_outcome outcome = NODE_PASSED;
    for (size_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != RONDO__VALUE_NONE) {
            inputs[i] = &run->values[node->inputs[i]];
        }
    }
    for (size_t i = 0; i < node->output_count; i++) {
        wants[i] = node->outputs[i] != RONDO__VALUE_NONE;
    }
    rondo__compute compute = {.op = &node->op,
                              .input_count = node->input_count,
                              .output_count = node->output_count,
                              .inputs = inputs,
                              .outputs = outputs,
                              .wants_output = wants};
    rondo_status status = rondo__op_compute(&compute);
    if (status != RONDO_STATUS_OK) {
        outcome = say_error(run, status);
    } else {
        outcome = check_inference(run, node, inputs, outputs);
    }
    for (size_t i = 0; i < node->output_count; i++) {
        if (wants[i] && outcome == NODE_PASSED) {
            run->values[node->outputs[i]] = outputs[i];
        } else {
            rondo_tensor_deinit(&outputs[i]);
        }
    }
    free(wants);
    free(outputs);
    free(inputs);
    return outcome;
}

// ---- comparison

static bool is_close(double got, double want, double relative) {
    if (isnan(want) || isnan(got)) {
        return isnan(want) && isnan(got);
    }
    if (isinf(want) || isinf(got)) {
        return got == want;
    }
    return fabs(got - want) <= ABSOLUTE_TOLERANCE + relative * fabs(want);
}

static node_outcome compare_strings(runner *run, size_t output, const rondo_tensor *got,
                                    const rondo_tensor *want) {
    const rondo_string *a = got->data;
    const rondo_string *b = want->data;
    for (int64_t i = 0; i < rondo_shape_get_count(&want->shape); i++) {
        if (rondo__string_compare(&a[i], &b[i]) != 0) {
            snprintf(run->reason, run->reason_bytes,
                     "output %zu element %lld is \"%.*s\", expected \"%.*s\"", output, (long long)i,
                     (int)a[i].size, a[i].data, (int)b[i].size, b[i].data);
            return NODE_FAILED;
        }
    }
    return NODE_PASSED;
}

static node_outcome compare_numbers(runner *run, size_t output, const rondo_tensor *got,
                                    const rondo_tensor *want) {
    int64_t count = rondo_shape_get_count(&want->shape);
    bool is_exact = !rondo__dtype_is_float(want->dtype);
    double relative = want->dtype == RONDO_DTYPE_BF16 ? BFLOAT_TOLERANCE : RELATIVE_TOLERANCE;
    for (int64_t i = 0; i < count; i++) {
        double a = rondo__tensor_get_number(got, i);
        double b = rondo__tensor_get_number(want, i);
        if (is_exact ? a != b : !is_close(a, b, relative)) {
            snprintf(run->reason, run->reason_bytes,
                     "output %zu element %lld of %lld is %.9g, expected %.9g", output, (long long)i,
                     (long long)count, a, b);
            return NODE_FAILED;
        }
    }
    return NODE_PASSED;
}

static node_outcome compare(runner *run, size_t output, const rondo_tensor *got,
                            const rondo_tensor *want) {
    if (got->dtype != want->dtype || !rondo_shape_is_equal(&got->shape, &want->shape)) {
        char a[96];
        char b[96];
        snprintf(run->reason, run->reason_bytes, "output %zu is %s %s, expected %s %s", output,
                 rondo_dtype_get_name(got->dtype), rondo_shape_format(&got->shape, a, sizeof a),
                 rondo_dtype_get_name(want->dtype), rondo_shape_format(&want->shape, b, sizeof b));
        return NODE_FAILED;
    }
    if (want->dtype == RONDO_DTYPE_STRING) {
        return compare_strings(run, output, got, want);
    }
    if (!rondo__dtype_is_nested(want->dtype)) {
        return compare_numbers(run, output, got, want);
    }
    node_outcome outcome = NODE_PASSED;
    for (size_t i = 0; outcome == NODE_PASSED && i < (size_t)want->shape.extent[0]; i++) {
        outcome =
            compare(run, output, rondo_tensor_get_item(got, i), rondo_tensor_get_item(want, i));
    }
    return outcome;
}

// ---- one data set

static node_outcome load(runner *run, const char *data_set, bool is_input, size_t index,
                         rondo_tensor *out_tensor) {
    char path[1024];
    rondo_port port = {.struct_size = sizeof port};
    rondo_status status = is_input ? rondo_program_get_input(run->program, index, &port)
                                   : rondo_program_get_output(run->program, index, &port);
    snprintf(path, sizeof path, "%s/%s_%zu.pb", data_set, is_input ? "input" : "output", index);
    if (status == RONDO_STATUS_OK) {
        status = rondo_port_load_onnx(&port, path, out_tensor);
    }
    return status == RONDO_STATUS_OK ? NODE_PASSED : say_error(run, status);
}

static node_outcome run_data_set(runner *run, const char *data_set) {
    const rondo_program *program = run->program;
    node_outcome outcome = NODE_PASSED;
    for (size_t i = 0; i < program->value_count; i++) {
        const rondo_tensor *constant = &program->values[i].constant;
        if (constant->dtype != RONDO_DTYPE_NONE) {
            rondo_tensor_share(constant, &run->values[i]);
        }
    }
    for (size_t i = 0; i < program->declared_count && outcome == NODE_PASSED; i++) {
        rondo_tensor *value = &run->values[program->inputs[i]];
        rondo_tensor_deinit(value);
        outcome = load(run, data_set, true, i, value);
        // ONNX's test data has the bits of bf16 as u16.
        if (value->dtype == RONDO_DTYPE_U16 &&
            program->values[program->inputs[i]].dtype == RONDO_DTYPE_BF16) {
            value->dtype = RONDO_DTYPE_BF16;
        }
    }
    for (size_t i = 0; i < program->node_count && outcome == NODE_PASSED; i++) {
        outcome = run_node(run, &program->nodes[i]);
    }
    for (size_t i = 0; i < program->output_count && outcome == NODE_PASSED; i++) {
        rondo_tensor want = {0};
        outcome = load(run, data_set, false, i, &want);
        if (want.dtype == RONDO_DTYPE_U16 &&
            run->values[program->outputs[i]].dtype == RONDO_DTYPE_BF16) {
            want.dtype = RONDO_DTYPE_BF16;
        }
        if (outcome == NODE_PASSED) {
            outcome = compare(run, i, &run->values[program->outputs[i]], &want);
        }
        rondo_tensor_deinit(&want);
    }
    for (size_t i = 0; i < program->value_count; i++) {
        rondo_tensor_deinit(&run->values[i]);
    }
    return outcome;
}

node_outcome node_runner_run(const char *directory, char *reason, size_t reason_bytes) {
    runner run = {.reason = reason, .reason_bytes = reason_bytes};
    char path[1024];
    rondo_program *program = NULL;
    snprintf(path, sizeof path, "%s/model.onnx", directory);
    reason[0] = '\0';
    rondo_status status = rondo_program_load_onnx(path, &program);
    if (status != RONDO_STATUS_OK) {
        return say_error(&run, status);
    }
    node_outcome outcome = NODE_FAILED;
    run.program = program;
    run.values = calloc(program->value_count + 1, sizeof *run.values);
    snprintf(path, sizeof path, "%s/test_data_set_0", directory);
    if (access(path, F_OK) != 0) {
        outcome = say(&run, NODE_SKIPPED, "no data set");
    }
    for (int set = 0; access(path, F_OK) == 0; set++) {
        outcome = run_data_set(&run, path);
        if (outcome != NODE_PASSED) {
            break;
        }
        snprintf(path, sizeof path, "%s/test_data_set_%d", directory, set + 1);
    }
    free(run.values);
    rondo_program_destroy(program);
    return outcome;
}
