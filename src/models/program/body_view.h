// program/body_view.h — the bodies of control nodes, and the inputs that they capture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.h"

// One body attribute of a control node and the captured values that belong to it.
typedef struct rondo__body_view {
    const rondo__attribute *attribute;
    size_t index;           // among the body attributes
    size_t captured_first;  // first of its captured values among the node's inputs
    size_t captured_count;
} rondo__body_view;

// False when the node has no body of this name.
bool rondo__body_find(const rondo__node *node, const char *name, rondo__body_view *out_view);

// Entry `index` of a node's attribute that is a list of ints; 0 beyond its end.
int64_t rondo__node_get_list_entry(const rondo__node *node, const char *name, size_t index);
