// executor/rest.c — see rest.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/rest.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/worth.h"
#include "tensor/elements.h"

rondo_status rondo__control_run_rest(const rondo__control *control,
                                     const rondo_tensor *const *inputs, rondo_tensor *results) {
    const rondo__node *node = control->node;
    rondo__body_view view;
    rondo_executor *body;
    if (!rondo__body_find(node, "rest", &view) || view.captured_count != node->input_count ||
        view.attribute->body->output_count != node->output_count) {
        return RONDO_FAIL(INTERNAL, "%s has no body", rondo__node_describe(node));
    }
    RETURN_IF_ERROR(rondo__body_get_executor(control->executor, node, control->step, &view, &body));
    if (body->worth == NULL) {
        body->worth = rondo__calloc(1, sizeof *body->worth);
        if (body->worth == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        rondo__worth_init(view.attribute->body, body->worth);
    }
    rondo_tensor *feeds = rondo__calloc(node->input_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        feeds[i] = *inputs[i];  // borrowed for the run
    }
    const rondo_status status = control->run_body(body, feeds, results, NULL);
    rondo__free(feeds);
    return status;
}
