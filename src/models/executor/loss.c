// executor/loss.c — finds the op that loses precision: runs the program in f32 and in f16, op by
// op.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "executor/state/plan.h"
#include "op/support.h"
#include "tensor/elements.h"

// Rounding to f16 alone makes an error of this size; ratios of smaller ones say nothing.
static const double rounding_error = 1.0 / 2048.0;

// The program with every value that a node makes as an output.
static rondo_status expose(const rondo_program *program, rondo_program **out_probe) {
    RETURN_IF_ERROR(rondo__program_clone(program, out_probe));
    rondo_program *probe = *out_probe;
    bool *is_output = rondo__calloc(probe->value_count + 1, sizeof *is_output);
    rondo_status status = is_output == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    for (size_t i = 0; status == RONDO_STATUS_OK && i < probe->output_count; ++i) {
        is_output[probe->outputs[i]] = true;
    }
    for (size_t n = 0; n < probe->node_count; ++n) {
        const rondo__node *node = &probe->nodes[n];
        for (size_t i = 0; status == RONDO_STATUS_OK && i < node->output_count; ++i) {
            const int32_t value = node->outputs[i];
            if (value >= 0 && !is_output[value]) {
                is_output[value] = true;
                status = rondo__program_add_output(probe, value);
            }
        }
    }
    rondo__free(is_output);
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(probe);
        *out_probe = NULL;
    }
    return status;
}

// One run in `dtype`; fetches are in the order of the probe's outputs.
static rondo_status run_probe(rondo_program *probe, rondo_device *device,
                              const rondo_executor_options *options, const rondo_binding *feeds,
                              size_t feed_count, rondo_binding *fetches) {
    rondo_executor *executor = NULL;
    RETURN_IF_ERROR(rondo_executor_create(probe, device, options, &executor));
    for (size_t i = 0; i < probe->output_count; ++i) {
        fetches[i].name = probe->values[probe->outputs[i]].name;
    }
    rondo_status status =
        rondo_executor_run(executor, feeds, feed_count, fetches, probe->output_count);
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_executor_destroy(executor);
    rondo__error_restore(&saved);
    return status;
}

static double compare_reals(const rondo_tensor *exact, const rondo_tensor *rounded, int64_t count) {
    double square = 0.0;
    double difference = 0.0;
    for (int64_t i = 0; i < count; ++i) {
        const double want = rondo__tensor_get_number(exact, i);
        const double got = rondo__tensor_get_number(rounded, i);
        if (!isfinite(want) || !isfinite(got)) {
            if (want != got && !(isnan(want) && isnan(got))) {
                return (double)INFINITY;
            }
            continue;
        }
        square += want * want;
        difference += (want - got) * (want - got);
    }
    return difference == 0.0 ? 0.0 : square == 0.0 ? sqrt(difference) : sqrt(difference / square);
}

// The part of the elements that differ.
static double compare_bytes(const rondo_tensor *exact, const rondo_tensor *rounded, int64_t count) {
    const size_t bytes = rondo_dtype_get_bytes(exact->dtype);
    int64_t differing = 0;
    for (int64_t i = 0; i < count && bytes > 0; ++i) {
        const size_t at = (size_t)i * bytes;
        differing += exact->dtype == RONDO_DTYPE_STRING
                         ? rondo__string_compare((const rondo_string *)exact->data + i,
                                                 (const rondo_string *)rounded->data + i) != 0
                         : memcmp((const char *)exact->data + at, (const char *)rounded->data + at,
                                  bytes) != 0;
    }
    return count > 0 ? (double)differing / (double)count : 0.0;
}

static double compare_tensors(const rondo_tensor *exact, const rondo_tensor *rounded) {
    const int64_t count = rondo_shape_get_count(&exact->shape);
    if (exact->dtype != rounded->dtype || !rondo_shape_is_equal(&exact->shape, &rounded->shape)) {
        return (double)INFINITY;
    }
    return rondo__dtype_is_float(exact->dtype) ? compare_reals(exact, rounded, count)
                                               : compare_bytes(exact, rounded, count);
}

// For sequences and optionals, the largest error of their items.
static double compare(const rondo_tensor *exact, const rondo_tensor *rounded) {
    const bool is_nested = rondo__dtype_is_nested(exact->dtype) && exact->dtype == rounded->dtype &&
                           rondo_shape_is_equal(&exact->shape, &rounded->shape);
    if (!is_nested) {
        return compare_tensors(exact, rounded);
    }
    double largest = 0.0;
    for (size_t i = 0; i < (size_t)exact->shape.extent[0]; ++i) {
        const rondo_tensor *item = rondo_tensor_get_item(exact, i);
        const rondo_tensor *other = rondo_tensor_get_item(rounded, i);
        const bool is_list = rondo__dtype_is_nested(item->dtype);
        const double error = is_list ? compare(item, other) : compare_tensors(item, other);
        largest = error > largest ? error : largest;
    }
    return largest;
}

// errors[v]: of each value of the probe; 0 for inputs and constants.
static void judge(const rondo_program *probe, const double *errors, double limit,
                  rondo_precision_loss *loss) {
    double steepest = 1.0;
    for (size_t n = 0; n < probe->node_count; ++n) {
        const rondo__node *node = &probe->nodes[n];
        double before = 0.0;
        double after = 0.0;
        for (size_t i = 0; i < node->input_count; ++i) {
            const double error = node->inputs[i] >= 0 ? errors[node->inputs[i]] : 0.0;
            before = error > before ? error : before;
        }
        for (size_t i = 0; i < node->output_count; ++i) {
            const double error = node->outputs[i] >= 0 ? errors[node->outputs[i]] : 0.0;
            after = error > after ? error : after;
        }
        const double floor = before > rounding_error ? before : rounding_error;
        const double growth = after / floor;
        // Errors behind an infinite error mean nothing.
        if (!(after > limit) || isinf(before) || !(growth > steepest)) {
            continue;
        }
        steepest = growth;
        loss->is_found = true;
        loss->error_before = before;
        loss->error_after = after;
        (void)snprintf(loss->op, sizeof loss->op, "%s", node->op.def->name);
        if (snprintf(loss->node, sizeof loss->node, "%s", node->op.name) >=
            (int)sizeof loss->node) {
            loss->node[sizeof loss->node - 2] = '*';
        }
        if (growth >= 4.0) {
            return;
        }
    }
}

rondo_status rondo_executor_find_loss(rondo_program *program, rondo_device *device,
                                      const rondo_executor_options *options,
                                      const rondo_binding *feeds, size_t feed_count, double limit,
                                      rondo_precision_loss *out_loss) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_loss, sizeof *out_loss, __func__, "rondo_precision_loss"));
    if (program == NULL || device == NULL || options == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          program == NULL  ? "program"
                          : device == NULL ? "device"
                                           : "options");
    }
    rondo_executor_options half = {.struct_size = sizeof half};
    RETURN_IF_ERROR(
        rondo__read_options(options, &half, sizeof half, __func__, "rondo_executor_options"));
    if (half.dtype != RONDO_DTYPE_F16) {
        return RONDO_FAIL(INVALID, "options->dtype is %s; only f16 loses what f32 has",
                          rondo_dtype_get_name(half.dtype));
    }
    rondo_precision_loss loss = {.struct_size = sizeof loss};
    rondo_executor_options single = half;
    single.dtype = RONDO_DTYPE_F32;
    single.keep_f32_count = 0;
    single.use_f16_count = 0;
    rondo_program *probe = NULL;
    RETURN_IF_ERROR(expose(program, &probe));
    const size_t count = probe->output_count;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_binding *exact = rondo__calloc(count + 1, sizeof *exact);
    rondo_binding *rounded = rondo__calloc(count + 1, sizeof *rounded);
    double *errors = rondo__calloc(probe->value_count + 1, sizeof *errors);
    if (exact == NULL || rounded == NULL || errors == NULL) {
        goto free_lists;
    }
    status = run_probe(probe, device, &single, feeds, feed_count, exact);
    if (status == RONDO_STATUS_OK) {
        status = run_probe(probe, device, &half, feeds, feed_count, rounded);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    for (size_t i = 0; i < count; ++i) {
        double *error = &errors[probe->outputs[i]];
        *error = compare(&exact[i].tensor, &rounded[i].tensor);
        const bool is_result = i < program->output_count;
        loss.output_error = is_result && *error > loss.output_error ? *error : loss.output_error;
    }
    loss.compared_count = count;
    judge(probe, errors, limit, &loss);
    rondo__write_struct(out_loss, &loss);

free_lists:
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor_deinit(exact != NULL ? &exact[i].tensor : NULL);
        rondo_tensor_deinit(rounded != NULL ? &rounded[i].tensor : NULL);
    }
    rondo__free(exact);
    rondo__free(rounded);
    rondo__free(errors);
    rondo_program_destroy(probe);
    return status;
}
