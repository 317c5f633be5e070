// executor/bodies.c — finds the bodies of control nodes and makes their executors.
// SPDX-License-Identifier: Apache-2.0
#include "executor/bodies.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/executor.h"

bool rondo__body_find(const rondo__node *node, const char *name, rondo__body_view *out_view) {
    size_t first = node->explicit_count;
    size_t index = 0;
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        const rondo__attribute *attribute = &node->op.attributes[a];
        if (attribute->kind != RONDO__ATTRIBUTE_BODY) {
            continue;
        }
        size_t count = attribute->body->input_count - attribute->body->declared_count;
        if (strcmp(attribute->name, name) == 0) {
            *out_view = (rondo__body_view){attribute, index, first, count};
            return true;
        }
        first += count;
        index += 1;
    }
    return false;
}

rondo_status rondo__body_get_executor(rondo_executor *parent, const rondo__node *node,
                                      rondo__step *step, const rondo__body_view *view,
                                      rondo_executor **out_executor) {
    if (step->bodies == NULL) {
        size_t count = 0;
        for (size_t a = 0; a < node->op.attribute_count; ++a) {
            count += node->op.attributes[a].kind == RONDO__ATTRIBUTE_BODY ? 1 : 0;
        }
        step->bodies = rondo__calloc(count, sizeof(rondo_executor *));
        if (step->bodies == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        step->body_count = count;
    }
    if (step->bodies[view->index] == NULL) {
        RETURN_IF_ERROR(
            rondo__executor_create_body(parent, view->attribute->body, &step->bodies[view->index]));
    }
    *out_executor = step->bodies[view->index];
    return RONDO_STATUS_OK;
}

int64_t rondo__node_get_list_entry(const rondo__node *node, const char *name, size_t index) {
    size_t count = 0;
    const int64_t *list = rondo__op_get_ints(&node->op, name, &count);
    return list != NULL && index < count ? list[index] : 0;
}
