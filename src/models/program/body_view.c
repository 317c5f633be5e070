// program/body_view.c — see body_view.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/body_view.h"

#include <string.h>

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

int64_t rondo__node_get_list_entry(const rondo__node *node, const char *name, size_t index) {
    size_t count = 0;
    const int64_t *list = rondo__op_get_ints(&node->op, name, &count);
    return list != NULL && index < count ? list[index] : 0;
}
