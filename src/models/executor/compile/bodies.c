// executor/compile/bodies.c — makes the units of the bodies of control nodes.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/bodies.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/unit.h"
#include "program/edit.h"

rondo_status rondo__body_get_unit(rondo__unit *parent, const rondo__node *node, rondo__step *step,
                                  const rondo__body_view *view, rondo__unit **out_unit) {
    if (step->run.bodies == NULL) {
        size_t count = 0;
        for (size_t a = 0; a < node->op.attribute_count; ++a) {
            count += node->op.attributes[a].kind == RONDO__ATTRIBUTE_BODY ? 1 : 0;
        }
        step->run.bodies = rondo__calloc(count, sizeof(rondo__unit *));
        if (step->run.bodies == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        step->run.body_count = count;
    }
    if (step->run.bodies[view->index] == NULL) {
        // Results that a GPU finds stay on it, in stream order (deferred_body.h).
        const bool is_beside = !rondo__node_is(node, RONDO__FUSED_Rest) ||
                               rondo_device_is_host(parent->executor->device);
        RETURN_IF_ERROR(rondo__unit_create_body(parent, view->attribute->body,
                                                is_beside ? NULL : parent->stream,
                                                &step->run.bodies[view->index]));
    }
    *out_unit = step->run.bodies[view->index];
    return RONDO_STATUS_OK;
}
