// executor/run/control.c — see control.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/control.h"
#include "device/copy_note.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/copy_note.h"
#include "executor/compile/plan_cache.h"
#include "executor/run/deferred_body.h"
#include "executor/run/sequence_map.h"
#include "executor/state/limits.h"
#include "tensor/elements.h"

static rondo_status read_scalar(const rondo__node *node, const char *what,
                                const rondo_tensor *tensor, rondo_dtype dtype, int64_t *out_value) {
    if (tensor == NULL || tensor->dtype != dtype || rondo_shape_get_count(&tensor->shape) != 1) {
        return RONDO_FAIL(BAD_DATA, "%s: %s must be one %s value", rondo__node_describe(node), what,
                          rondo_dtype_get_name(dtype));
    }
    if (dtype == RONDO_DTYPE_BOOL) {
        *out_value = *(const uint8_t *)tensor->data != 0;
    } else {
        memcpy(out_value, tensor->data, sizeof *out_value);
    }
    return RONDO_STATUS_OK;
}

// ---- If ---------------------------------------------------------------------------------------

static rondo_status run_if(const rondo__control *control, const rondo_tensor *const *inputs,
                           rondo_tensor *results) {
    const rondo__node *node = control->node;
    int64_t condition = 0;
    RETURN_IF_ERROR(read_scalar(node, "the condition", inputs[0], RONDO_DTYPE_BOOL, &condition));
    rondo__body_view view;
    if (!rondo__body_find(node, condition != 0 ? "then_branch" : "else_branch", &view)) {
        return RONDO_FAIL(BAD_DATA, "%s has no %s", rondo__node_describe(node),
                          condition != 0 ? "then_branch" : "else_branch");
    }
    rondo__unit *body;
    RETURN_IF_ERROR(rondo__body_get_unit(control->unit, node, control->step, &view, &body));
    size_t output_count = view.attribute->body->output_count;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_tensor *feeds = rondo__calloc(view.captured_count + 1, sizeof *feeds);
    rondo_tensor *outputs = rondo__calloc(output_count + 1, sizeof *outputs);
    if (feeds == NULL || outputs == NULL) {
        goto free_lists;
    }
    for (size_t i = 0; i < view.captured_count; ++i) {
        feeds[i] = *inputs[view.captured_first + i];  // borrowed for the run
    }
    status = control->run_body(body, feeds, outputs, NULL);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < node->output_count; ++i) {
        results[i] = outputs[i];
        memset(&outputs[i], 0, sizeof outputs[i]);
    }

free_lists:
    rondo__free(feeds);
    rondo__tensors_free(outputs, output_count);
    return status;
}

// ---- rows collected over iterations -----------------------------------------------------------

// Tensors of one shape, stacked along a new axis at the end.
typedef struct collector {
    rondo_tensor *rows;  // owned
    size_t count;
    size_t capacity;
} collector;

static void collector_deinit(collector *c) {
    rondo__tensors_free(c->rows, c->count);
    memset(c, 0, sizeof *c);
}

// Takes `row` (zeroed).
static rondo_status collector_take(collector *c, rondo_tensor *row) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(c->rows, c->capacity, c->count + 1));
    c->rows[c->count++] = *row;
    memset(row, 0, sizeof *row);
    return RONDO_STATUS_OK;
}

// Stacks the rows along new axis `axis`; with `is_reversed` the last row comes first. Without rows
// `unmade` says what one would have been.
static rondo_status collector_stack(const rondo__node *node, const collector *c,
                                    const rondo_tensor *unmade, int64_t axis, bool is_reversed,
                                    rondo_tensor *out_tensor) {
    const rondo_shape row = c->count > 0 ? c->rows[0].shape : unmade->shape;
    const rondo_dtype dtype = c->count > 0 ? c->rows[0].dtype : unmade->dtype;
    axis = axis < 0 ? axis + row.rank + 1 : axis;
    if (row.rank == RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(&node->op, "scan output of rank above 8");
    }
    if (axis < 0 || axis > row.rank) {
        return RONDO_FAIL(BAD_DATA, "%s: scan output of rank %d cannot be stacked along axis %lld",
                          rondo__node_describe(node), (int)row.rank, (long long)axis);
    }
    rondo_shape shape = {.rank = row.rank + 1};
    size_t outer = 1;
    size_t inner_bytes = rondo_dtype_get_bytes(dtype);
    for (int32_t d = 0; d < row.rank; ++d) {
        shape.extent[d < axis ? d : d + 1] = row.extent[d];
        outer *= d < axis ? (size_t)row.extent[d] : 1;
        inner_bytes *= d < axis ? 1 : (size_t)row.extent[d];
    }
    shape.extent[axis] = (int64_t)c->count;
    for (size_t r = 0; r < c->count; ++r) {
        if (c->rows[r].dtype != dtype || !rondo_shape_is_equal(&c->rows[r].shape, &row)) {
            return RONDO_FAIL(BAD_DATA,
                              "%s: a scan output changed its shape or type in iteration %zu",
                              rondo__node_describe(node), r);
        }
    }
    if (rondo__dtype_is_nested(dtype)) {
        return RONDO_FAIL(BAD_DATA, "%s: a scan output is a %s; only tensors can be stacked",
                          rondo__node_describe(node), rondo_dtype_get_name(dtype));
    }
    RETURN_IF_ERROR(rondo_tensor_init(dtype, &shape, out_tensor));
    const rondo__hook_scope scope = rondo__copy_tell_host(rondo_tensor_get_bytes(out_tensor), NULL);
    for (size_t r = 0; inner_bytes > 0 && r < c->count; ++r) {
        size_t place = is_reversed ? c->count - 1 - r : r;
        for (size_t o = 0; o < outer; ++o) {
            memcpy((char *)out_tensor->data + (o * c->count + place) * inner_bytes,
                   (const char *)c->rows[r].data + o * inner_bytes, inner_bytes);
        }
    }
    rondo__hook_leave(&scope);
    return dtype == RONDO_DTYPE_STRING ? rondo__tensor_own_strings(out_tensor) : RONDO_STATUS_OK;
}

// ---- Loop and Scan share one engine -----------------------------------------------------------

typedef struct iteration {
    const rondo__control *control;
    rondo__unit *body;
    rondo__body_view view;
    size_t feed_count;
    rondo_tensor *feeds;  // borrowed views, one for each body input
    size_t carried_count;
    rondo_tensor *carried;  // owned current values of the carried state
    size_t output_count;
    rondo_tensor *outputs;  // of one turn
    uint64_t number;        // of the loop, among all of the caller's executor
    size_t collector_count;
    collector *collectors;
    rondo_tensor *unmade;  // dtype and shape of a row, one for each collector, when there is none
} iteration;

static void iteration_deinit(iteration *it) {
    rondo__free(it->feeds);
    rondo__tensors_free(it->carried, it->carried_count);
    rondo__tensors_free(it->outputs, it->output_count);
    for (size_t i = 0; it->collectors != NULL && i < it->collector_count; ++i) {
        collector_deinit(&it->collectors[i]);
    }
    rondo__free(it->collectors);
    rondo__free(it->unmade);
}

static rondo_status iteration_init(const rondo__control *control, size_t carried_count,
                                   size_t collector_count, iteration *out_iteration) {
    const rondo__node *node = control->node;
    iteration it = {
        .control = control, .carried_count = carried_count, .collector_count = collector_count};
    if (!rondo__body_find(node, "body", &it.view)) {
        return RONDO_FAIL(BAD_DATA, "%s has no body", rondo__node_describe(node));
    }
    it.feed_count = it.view.attribute->body->input_count;
    it.output_count = it.view.attribute->body->output_count;
    RETURN_IF_ERROR(rondo__body_get_unit(control->unit, node, control->step, &it.view, &it.body));
    it.feeds = rondo__calloc(it.feed_count + 1, sizeof *it.feeds);
    it.carried = rondo__calloc(carried_count + 1, sizeof *it.carried);
    it.outputs = rondo__calloc(it.output_count + 1, sizeof *it.outputs);
    it.collectors = rondo__calloc(collector_count + 1, sizeof *it.collectors);
    it.unmade = rondo__calloc(collector_count + 1, sizeof *it.unmade);
    if (it.feeds == NULL || it.carried == NULL || it.outputs == NULL || it.collectors == NULL ||
        it.unmade == NULL) {
        iteration_deinit(&it);
        return RONDO_STATUS_NO_MEMORY;
    }
    it.number = ++control->unit->executor->work.loop_count;
    *out_iteration = it;
    return RONDO_STATUS_OK;
}

// Puts carried state and captured values behind feeds[0 .. first_carried), which the caller sets.
static void iteration_bind(iteration *it, const rondo_tensor *const *inputs, size_t first_carried) {
    size_t captured_at = it->feed_count - it->view.captured_count;
    for (size_t i = 0; i < it->carried_count; ++i) {
        it->feeds[first_carried + i] = it->carried[i];
    }
    for (size_t i = 0; i < it->view.captured_count; ++i) {
        it->feeds[captured_at + i] = *inputs[it->view.captured_first + i];
    }
}

// Runs the body once. Outputs from `first_output` on are carried state, then rows.
static rondo_status iteration_turn(iteration *it, const rondo_tensor *const *inputs,
                                   size_t first_carried, size_t first_output) {
    iteration_bind(it, inputs, first_carried);
    it->body->runs.loop = it->number;
    it->body->runs.steady_first = it->feed_count - it->view.captured_count;
    const rondo_status status = it->control->run_body(it->body, it->feeds, it->outputs, NULL);
    it->body->runs.loop = 0;
    RETURN_IF_ERROR(status);
    for (size_t i = 0; i < it->carried_count; ++i) {
        rondo_tensor_deinit(&it->carried[i]);
        it->carried[i] = it->outputs[first_output + i];
        memset(&it->outputs[first_output + i], 0, sizeof it->outputs[first_output + i]);
    }
    for (size_t i = 0; i < it->collector_count; ++i) {
        RETURN_IF_ERROR(
            collector_take(&it->collectors[i], &it->outputs[first_output + it->carried_count + i]));
    }
    return RONDO_STATUS_OK;
}

// The shape of a row if no turn made one: inferred from the shapes before the first turn; if
// inference does not know, the shape that the body declares, with 0 for unknown extents.
static rondo_status describe_row(const iteration *it, size_t output,
                                 const rondo__tensor_info *inferred, rondo_tensor *out_row) {
    const rondo_program *body = it->view.attribute->body;
    const rondo__value *declared = &body->values[body->outputs[output]];
    *out_row = (rondo_tensor){.dtype = inferred->dtype != RONDO_DTYPE_NONE ? inferred->dtype
                                                                           : declared->dtype};
    const bool has_rank = rondo__info_has_rank(inferred);
    const bool is_declared =
        declared->has_shape && (!has_rank || declared->rank == inferred->shape.rank);
    out_row->shape.rank = has_rank ? inferred->shape.rank : is_declared ? declared->rank : 0;
    for (int32_t d = 0; d < out_row->shape.rank; ++d) {
        int64_t extent = has_rank ? inferred->shape.extent[d] : -1;
        extent = extent < 0 && is_declared ? declared->dims[d].number : extent;
        out_row->shape.extent[d] = extent > 0 ? extent : 0;
    }
    if (out_row->dtype == RONDO_DTYPE_NONE) {
        return RONDO_FAIL(BAD_DATA,
                          "%s: no turn is taken, and nothing says of which type the scan output "
                          "\"%.60s\" is; declare it in the body",
                          rondo__node_describe(it->control->node), declared->name);
    }
    return RONDO_STATUS_OK;
}

// Describes the rows in it->collectors, outputs from `first_row` on, when no turn was taken. The
// caller has set the feeds that iteration_bind does not.
static rondo_status iteration_describe(iteration *it, const rondo_tensor *const *inputs,
                                       size_t first_carried, size_t first_row) {
    rondo__tensor_info *infos = rondo__calloc(it->output_count + 1, sizeof *infos);
    if (infos == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    iteration_bind(it, inputs, first_carried);
    rondo_status status = rondo__unit_infer_outputs(it->body, it->feeds, infos);
    for (size_t i = 0; i < it->collector_count && status == RONDO_STATUS_OK; ++i) {
        status = describe_row(it, first_row + i, &infos[first_row + i], &it->unmade[i]);
    }
    rondo__free(infos);
    return status;
}

// Makes an input owned carried state: inputs may be borrowed from value slots that later plan steps
// reuse.
static rondo_status iteration_carry(iteration *it, size_t index, const rondo_tensor *input) {
    if (input == NULL) {
        return RONDO_FAIL(BAD_DATA, "%s: initial state %zu is missing",
                          rondo__node_describe(it->control->node), index);
    }
    return rondo__tensor_keep(input, &it->carried[index]);
}

// Feeds the number of the turn and the condition, which may be declared [1] instead of scalars.
static void feed_turn(iteration *it, int64_t *turn, uint8_t *condition) {
    const rondo_program *body = it->view.attribute->body;
    it->feeds[0] = (rondo_tensor){.dtype = RONDO_DTYPE_I64, .data = turn};
    it->feeds[1] = (rondo_tensor){.dtype = RONDO_DTYPE_BOOL, .data = condition};
    for (size_t k = 0; k < 2; ++k) {
        const rondo__value *declared = &body->values[body->inputs[k]];
        if (declared->has_shape && declared->rank == 1) {
            it->feeds[k].shape = (rondo_shape){.rank = 1, .extent = {1}};
        }
    }
}

static rondo_status run_loop(const rondo__control *control, const rondo_tensor *const *inputs,
                             rondo_tensor *results) {
    const rondo__node *node = control->node;
    int64_t limit = INT64_MAX;
    int64_t condition = 1;
    if (node->explicit_count > 0 && inputs[0] != NULL) {
        RETURN_IF_ERROR(read_scalar(node, "the trip count", inputs[0], RONDO_DTYPE_I64, &limit));
    }
    if (node->explicit_count > 1 && inputs[1] != NULL) {
        RETURN_IF_ERROR(
            read_scalar(node, "the condition", inputs[1], RONDO_DTYPE_BOOL, &condition));
    }
    size_t carried_count = node->explicit_count > 2 ? node->explicit_count - 2 : 0;
    size_t row_count = node->output_count > carried_count ? node->output_count - carried_count : 0;
    iteration it;
    RETURN_IF_ERROR(iteration_init(control, carried_count, row_count, &it));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < carried_count && status == RONDO_STATUS_OK; ++i) {
        status = iteration_carry(&it, i, inputs[2 + i]);
    }
    int64_t turn = 0;
    uint8_t flag = 1;
    feed_turn(&it, &turn, &flag);
    if (status == RONDO_STATUS_OK && row_count > 0 && (limit <= 0 || condition == 0)) {
        status = iteration_describe(&it, inputs, 2, 1 + carried_count);
    }
    for (; status == RONDO_STATUS_OK && turn < limit && condition != 0; ++turn) {
        status = rondo__executor_count_turn(control->unit->executor);
        if (status != RONDO_STATUS_OK) {
            break;
        }
        status = iteration_turn(&it, inputs, 2, 1);
        if (status == RONDO_STATUS_OK) {
            status = read_scalar(node, "the body's condition", &it.outputs[0], RONDO_DTYPE_BOOL,
                                 &condition);
            rondo_tensor_deinit(&it.outputs[0]);
        }
    }
    for (size_t i = 0; i < row_count && status == RONDO_STATUS_OK; ++i) {
        status = collector_stack(node, &it.collectors[i], &it.unmade[i], 0, false,
                                 &results[carried_count + i]);
    }
    for (size_t i = 0; i < carried_count && status == RONDO_STATUS_OK; ++i) {
        results[i] = it.carried[i];
        memset(&it.carried[i], 0, sizeof it.carried[i]);
    }

    iteration_deinit(&it);
    return status;
}

// Dtype and shape of a slice along `axis`, which was checked.
static void describe_slice(const rondo_tensor *source, int64_t axis, rondo_tensor *out_slice) {
    *out_slice = (rondo_tensor){.dtype = source->dtype, .shape = {.rank = source->shape.rank - 1}};
    axis += axis < 0 ? source->shape.rank : 0;
    for (int32_t d = 0; d < source->shape.rank; ++d) {
        if (d != axis) {
            out_slice->shape.extent[d < axis ? d : d - 1] = source->shape.extent[d];
        }
    }
}

// Copies slice `index` along `axis` of `source` into a new tensor without that axis.
static rondo_status take_slice(const rondo_tensor *source, int64_t axis, int64_t index,
                               rondo_tensor *out_slice) {
    rondo_shape shape = {.rank = source->shape.rank - 1};
    size_t outer = 1;
    size_t inner_bytes = rondo_dtype_get_bytes(source->dtype);
    for (int32_t d = 0; d < source->shape.rank; ++d) {
        if (d != axis) {
            shape.extent[d < axis ? d : d - 1] = source->shape.extent[d];
        }
        outer *= d < axis ? (size_t)source->shape.extent[d] : 1;
        inner_bytes *= d > axis ? (size_t)source->shape.extent[d] : 1;
    }
    RETURN_IF_ERROR(rondo_tensor_init(source->dtype, &shape, out_slice));
    size_t length = (size_t)source->shape.extent[axis];
    const rondo__hook_scope scope = rondo__copy_tell_host(rondo_tensor_get_bytes(out_slice), NULL);
    for (size_t o = 0; inner_bytes > 0 && o < outer; ++o) {
        memcpy((char *)out_slice->data + o * inner_bytes,
               (const char *)source->data + (o * length + (size_t)index) * inner_bytes,
               inner_bytes);
    }
    rondo__hook_leave(&scope);
    return source->dtype == RONDO_DTYPE_STRING ? rondo__tensor_own_strings(out_slice)
                                               : RONDO_STATUS_OK;
}

// Checks the scan inputs and finds the common length.
static rondo_status measure_scan(const rondo__node *node, const rondo_tensor *const *inputs,
                                 size_t carried_count, size_t scan_count, int64_t *out_length) {
    int64_t length = -1;
    for (size_t i = 0; i < scan_count; ++i) {
        const rondo_tensor *input = inputs[carried_count + i];
        int64_t axis = rondo__node_get_list_entry(node, "scan_input_axes", i);
        if (input == NULL || input->shape.rank < 1) {
            return RONDO_FAIL(BAD_DATA, "%s: scan input %zu needs at least one axis",
                              rondo__node_describe(node), i);
        }
        axis = axis < 0 ? axis + input->shape.rank : axis;
        if (axis < 0 || axis >= input->shape.rank) {
            return RONDO_FAIL(BAD_DATA, "%s: scan_input_axes[%zu] is out of range",
                              rondo__node_describe(node), i);
        }
        if (length >= 0 && input->shape.extent[axis] != length) {
            return RONDO_FAIL(BAD_DATA, "%s: scan inputs have %lld and %lld slices",
                              rondo__node_describe(node), (long long)length,
                              (long long)input->shape.extent[axis]);
        }
        length = input->shape.extent[axis];
    }
    *out_length = length > 0 ? length : 0;
    return RONDO_STATUS_OK;
}

static rondo_status run_scan(const rondo__control *control, const rondo_tensor *const *inputs,
                             rondo_tensor *results) {
    const rondo__node *node = control->node;
    int64_t scan_inputs = rondo__op_get_int(&node->op, "num_scan_inputs", 0);
    if (scan_inputs < 1 || (uint64_t)scan_inputs > node->explicit_count) {
        return RONDO_FAIL(BAD_DATA, "%s: num_scan_inputs is %lld, but the node has %zu inputs",
                          rondo__node_describe(node), (long long)scan_inputs, node->explicit_count);
    }
    size_t scan_count = (size_t)scan_inputs;
    size_t carried_count = node->explicit_count - scan_count;
    size_t row_count = node->output_count > carried_count ? node->output_count - carried_count : 0;
    const char *directions = node->op.opset < 9 ? "directions" : "scan_input_directions";
    int64_t length = 0;
    RETURN_IF_ERROR(measure_scan(node, inputs, carried_count, scan_count, &length));
    iteration it;
    RETURN_IF_ERROR(iteration_init(control, carried_count, row_count, &it));
    const rondo_program *body = it.view.attribute->body;
    rondo_status status = RONDO_STATUS_OK;
    if (body->declared_count != node->explicit_count ||
        body->output_count != carried_count + row_count || node->output_count < carried_count) {
        status = RONDO_FAIL(BAD_DATA,
                            "%s: the body has %zu inputs and %zu outputs, expected %zu and %zu",
                            rondo__node_describe(node), body->declared_count, body->output_count,
                            node->explicit_count, carried_count + row_count);
        goto free_iteration;
    }
    for (size_t i = 0; i < carried_count && status == RONDO_STATUS_OK; ++i) {
        status = iteration_carry(&it, i, inputs[i]);
    }
    if (status == RONDO_STATUS_OK && row_count > 0 && length == 0) {
        for (size_t i = 0; i < scan_count; ++i) {
            describe_slice(inputs[carried_count + i],
                           rondo__node_get_list_entry(node, "scan_input_axes", i),
                           &it.feeds[carried_count + i]);
        }
        status = iteration_describe(&it, inputs, 0, carried_count);
    }
    for (int64_t turn = 0; status == RONDO_STATUS_OK && turn < length; ++turn) {
        size_t taken = 0;
        status = rondo__executor_check_cancelled(control->unit->executor);
        for (; taken < scan_count && status == RONDO_STATUS_OK; ++taken) {
            const rondo_tensor *input = inputs[carried_count + taken];
            int64_t axis = rondo__node_get_list_entry(node, "scan_input_axes", taken);
            bool is_backward = rondo__node_get_list_entry(node, directions, taken) == 1;
            status = take_slice(input, axis < 0 ? axis + input->shape.rank : axis,
                                is_backward ? length - 1 - turn : turn,
                                &it.feeds[carried_count + taken]);
        }
        if (status == RONDO_STATUS_OK) {
            status = iteration_turn(&it, inputs, 0, 0);
        }
        for (size_t i = 0; i < taken; ++i) {
            rondo_tensor_deinit(&it.feeds[carried_count + i]);
        }
    }
    for (size_t i = 0; i < row_count && status == RONDO_STATUS_OK; ++i) {
        status = collector_stack(node, &it.collectors[i], &it.unmade[i],
                                 rondo__node_get_list_entry(node, "scan_output_axes", i),
                                 rondo__node_get_list_entry(node, "scan_output_directions", i) == 1,
                                 &results[carried_count + i]);
    }
    for (size_t i = 0; i < carried_count && status == RONDO_STATUS_OK; ++i) {
        results[i] = it.carried[i];
        memset(&it.carried[i], 0, sizeof it.carried[i]);
    }

free_iteration:
    iteration_deinit(&it);
    return status;
}

// ---- Scan of opset 8: a batch in front of everything -------------------------------------------

// The batch, which every input has as its first axis. Sequences of different lengths are refused.
static rondo_status measure_batch(const rondo__node *node, const rondo_tensor *const *inputs,
                                  int64_t *out_batch) {
    for (size_t i = 1; i < node->explicit_count; ++i) {
        if (inputs[i] == NULL || inputs[i]->shape.rank < 1 ||
            (i > 1 && inputs[i]->shape.extent[0] != inputs[1]->shape.extent[0])) {
            return RONDO_FAIL(BAD_DATA, "%s: input %zu does not begin with the batch",
                              rondo__node_describe(node), i);
        }
    }
    const rondo_tensor *lengths = inputs[0];
    const rondo_tensor *rows = inputs[node->explicit_count - 1];
    int64_t most = rows->shape.rank > 1 ? rows->shape.extent[1] : 0;
    for (int64_t i = 0; lengths != NULL && i < rondo_shape_get_count(&lengths->shape); ++i) {
        if (lengths->dtype != RONDO_DTYPE_I64 || ((const int64_t *)lengths->data)[i] != most) {
            return rondo__op_fail_unsupported(&node->op, "input 0: sequences of several lengths");
        }
    }
    *out_batch = inputs[1]->shape.extent[0];
    return RONDO_STATUS_OK;
}

// Runs element `index` of the batch and keeps its results. The node of `control` is the one without
// the lengths.
static rondo_status run_batch_element(const rondo__control *control,
                                      const rondo_tensor *const *inputs, int64_t index,
                                      collector *collectors) {
    const rondo__node *single = control->node;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t taken = 0;
    rondo_tensor *slices = rondo__calloc(single->explicit_count + 1, sizeof *slices);
    const rondo_tensor **pointers = rondo__calloc(single->input_count + 1, sizeof *pointers);
    rondo_tensor *results = rondo__calloc(single->output_count + 1, sizeof *results);
    if (slices == NULL || pointers == NULL || results == NULL) {
        goto free_lists;
    }
    status = RONDO_STATUS_OK;
    for (size_t i = 0; i < single->input_count; ++i) {
        pointers[i] = i < single->explicit_count ? &slices[i] : inputs[i];
    }
    for (; taken < single->explicit_count && status == RONDO_STATUS_OK; ++taken) {
        status = take_slice(inputs[taken], 0, index, &slices[taken]);
    }
    if (status == RONDO_STATUS_OK) {
        status = run_scan(control, pointers, results);
    }
    for (size_t i = 0; i < single->output_count && status == RONDO_STATUS_OK; ++i) {
        status = collector_take(&collectors[i], &results[i]);
    }

free_lists:
    for (size_t i = 0; slices != NULL && i < taken; ++i) {
        rondo_tensor_deinit(&slices[i]);
    }
    rondo__free(slices);
    rondo__free((void *)pointers);
    rondo__tensors_free(results, single->output_count);
    return status;
}

static rondo_status run_batches(const rondo__control *control, const rondo_tensor *const *inputs,
                                rondo_tensor *results) {
    const rondo__node *node = control->node;
    static const rondo_tensor unknown = {0};
    int64_t batch = 0;
    RETURN_IF_ERROR(measure_batch(node, inputs, &batch));
    rondo__node single = *node;
    single.inputs += 1;
    single.input_count -= 1;
    single.explicit_count -= 1;
    rondo__control inner = *control;
    inner.node = &single;
    collector *collectors = rondo__calloc(node->output_count + 1, sizeof *collectors);
    if (collectors == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (int64_t b = 0; b < batch && status == RONDO_STATUS_OK; ++b) {
        status = run_batch_element(&inner, inputs + 1, b, collectors);
    }
    for (size_t i = 0; i < node->output_count && status == RONDO_STATUS_OK; ++i) {
        status = batch > 0 ? collector_stack(node, &collectors[i], &unknown, 0, false, &results[i])
                           : rondo__op_fail_unsupported(&node->op, "an empty batch");
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        collector_deinit(&collectors[i]);
    }
    rondo__free(collectors);
    return status;
}

rondo_status rondo__control_run(const rondo__control *control, const rondo_tensor *const *inputs,
                                rondo_tensor *results) {
    const rondo__op *op = &control->node->op;
    const struct {
        rondo__op_id op;
        rondo_status (*run)(const rondo__control *, const rondo_tensor *const *, rondo_tensor *);
    } runners[] = {{RONDO__OP_If, run_if},
                   {RONDO__OP_Loop, run_loop},
                   {RONDO__OP_Scan, op->opset < 9 ? run_batches : run_scan},
                   {RONDO__OP_SequenceMap, rondo__control_run_sequence_map},
                   {RONDO__FUSED_Rest, rondo__control_run_rest}};
    for (size_t i = 0; i < sizeof runners / sizeof runners[0]; ++i) {
        if (op->def->id == runners[i].op) {
            return runners[i].run(control, inputs, results);
        }
    }
    return rondo__op_fail_unsupported(op, "control flow of this kind");
}
