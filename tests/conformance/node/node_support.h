// node_support.h — what the cases about nodes by handle share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/memory/memory_support.h"
#include "rondo/node.h"

enum { NODE_COUNT = 4 };

typedef struct node_scene {
    suite_context *context;
    rondo_stream *stream;
    rondo_graph *graph;
    uint32_t *x, *y;  // device; NODE_COUNT elements, all 1
    uint32_t *seen;   // pinned
} node_scene;

node_scene node_open_scene(void **state, bool keeps_template);
void node_close_scene(node_scene *s);
// The first element of device memory, once the stream has run; `seen` has all.
uint32_t node_look(node_scene *s, const uint32_t *x);

rondo_work node_kernel_work(const rondo_launch *launch);  // borrowed
rondo_work node_fill_work(uint32_t *x, uint32_t value, size_t count);
rondo_work node_copy_work(void *to, const void *from, size_t bytes, rondo_copy_kind kind);

// Puts the work on the stream, which records, and gives its handle.
rondo_node node_add(rondo_stream *stream, const rondo_work *work);
// The same for the kernel of suite_affine.
rondo_node node_add_affine(suite_context *context, rondo_stream *stream, uint32_t *x,
                           uint32_t count, uint32_t factor, uint32_t term);
// Patches such a node.
rondo_status node_patch_affine(suite_context *context, rondo_graph *graph, rondo_node node,
                               uint32_t *x, uint32_t count, uint32_t factor, uint32_t term);
