// executor/run/sequence_map.c — see sequence_map.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/sequence_map.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/elements.h"

// Runs the body on item `index` of each sequence; inputs that are no sequences are passed as they
// are. out_items[k] is where the k-th result goes.
static rondo_status map_item(const rondo__control *control, rondo__unit *body,
                             const rondo__body_view *view, const rondo_tensor *const *inputs,
                             size_t index, rondo_tensor **items) {
    const rondo__node *node = control->node;
    size_t output_count = view->attribute->body->output_count;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_tensor *feeds = rondo__calloc(node->input_count + 1, sizeof *feeds);
    rondo_tensor *outputs = rondo__calloc(output_count + 1, sizeof *outputs);
    if (feeds == NULL || outputs == NULL) {
        goto free_lists;
    }
    for (size_t i = 0; i < node->explicit_count; ++i) {
        const rondo_tensor *item = inputs[i]->dtype == RONDO_DTYPE_SEQUENCE
                                       ? rondo_tensor_get_item(inputs[i], index)
                                       : inputs[i];
        if (item == NULL) {
            status = RONDO_FAIL(BAD_DATA, "%s: sequence %zu is shorter than the first",
                                rondo__node_describe(node), i);
            goto free_lists;
        }
        feeds[i] = *item;  // borrowed for the run
    }
    for (size_t i = 0; i < view->captured_count; ++i) {
        feeds[node->explicit_count + i] = *inputs[view->captured_first + i];
    }
    status = control->run_body(body, feeds, outputs, NULL);
    for (size_t i = 0; i < output_count && status == RONDO_STATUS_OK; ++i) {
        items[i][index] = outputs[i];
        memset(&outputs[i], 0, sizeof outputs[i]);
    }

free_lists:
    rondo__free(feeds);
    rondo__tensors_free(outputs, output_count);
    return status;
}

rondo_status rondo__control_run_sequence_map(const rondo__control *control,
                                             const rondo_tensor *const *inputs,
                                             rondo_tensor *results) {
    const rondo__node *node = control->node;
    rondo__body_view view;
    rondo__unit *body;
    bool is_right = rondo__body_find(node, "body", &view) && node->explicit_count > 0 &&
                    view.attribute->body->declared_count == node->explicit_count &&
                    view.attribute->body->output_count == node->output_count;
    for (size_t i = 0; is_right && i < node->explicit_count; ++i) {
        is_right = inputs[i] != NULL && (i > 0 || inputs[i]->dtype == RONDO_DTYPE_SEQUENCE);
    }
    if (!is_right) {
        return RONDO_FAIL(BAD_DATA,
                          "%s: its first input must be a sequence, and its body take %zu "
                          "inputs and make %zu outputs",
                          rondo__node_describe(node), node->explicit_count, node->output_count);
    }
    RETURN_IF_ERROR(rondo__body_get_unit(control->unit, node, control->step, &view, &body));
    size_t count = (size_t)rondo_shape_get_count(&inputs[0]->shape);
    rondo_status status = RONDO_STATUS_OK;
    rondo_tensor **items = rondo__calloc(node->output_count + 1, sizeof(rondo_tensor *));
    if (items == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < node->output_count && status == RONDO_STATUS_OK; ++i) {
        status = rondo__nested_create(RONDO_DTYPE_SEQUENCE, count, &results[i], &items[i]);
    }
    for (size_t k = 0; k < count && status == RONDO_STATUS_OK; ++k) {
        status = map_item(control, body, &view, inputs, k, items);
    }
    rondo__free((void *)items);
    return status;
}
