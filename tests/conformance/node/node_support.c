// node_support.c — see node_support.h.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"

node_scene node_open_scene(void **state, bool keeps_template) {
    suite_context *context = suite_get_context(state);
    node_scene s = {.context = context,
                    .stream = suite_create_stream(context),
                    .graph = suite_create_graph(context, keeps_template),
                    .x = suite_allocate(context, RONDO_MEMORY_DEVICE, NODE_COUNT),
                    .y = suite_allocate(context, RONDO_MEMORY_DEVICE, NODE_COUNT),
                    .seen = suite_allocate(context, RONDO_MEMORY_PINNED, NODE_COUNT)};
    memory_fill(s.stream, s.x, 1, NODE_COUNT);
    memory_fill(s.stream, s.y, 1, NODE_COUNT);
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    return s;
}

void node_close_scene(node_scene *s) {
    rondo_graph_destroy(s->graph);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->x);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->y);
    suite_free(s->context, RONDO_MEMORY_PINNED, s->seen);
}

uint32_t node_look(node_scene *s, const uint32_t *x) {
    ASSERT_OK(rondo_stream_copy(s->stream, s->seen, x, NODE_COUNT * sizeof *x,
                                RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_synchronize(s->stream));
    return s->seen[0];
}

rondo_work node_kernel_work(const rondo_launch *launch) {
    return (rondo_work){
        .struct_size = sizeof(rondo_work), .kind = RONDO_NODE_KERNEL, .launch = launch};
}

rondo_work node_fill_work(uint32_t *x, uint32_t value, size_t count) {
    return (rondo_work){.struct_size = sizeof(rondo_work),
                        .kind = RONDO_NODE_FILL,
                        .destination = x,
                        .fill_value = value,
                        .element_bytes = 4,
                        .element_count = count};
}

rondo_work node_copy_work(void *to, const void *from, size_t bytes, rondo_copy_kind kind) {
    return (rondo_work){.struct_size = sizeof(rondo_work),
                        .kind = RONDO_NODE_COPY,
                        .copy_kind = kind,
                        .source = from,
                        .destination = to,
                        .byte_count = bytes};
}

rondo_node node_add(rondo_stream *stream, const rondo_work *work) {
    rondo_node node;
    ASSERT_OK(rondo_stream_add_node(stream, work, &node));
    return node;
}

rondo_node node_add_affine(suite_context *context, rondo_stream *stream, uint32_t *x,
                           uint32_t count, uint32_t factor, uint32_t term) {
    const suite_affine_arguments arguments = {x, count, factor, term};
    const rondo_launch launch = suite_describe_affine(context, &arguments);
    const rondo_work work = node_kernel_work(&launch);
    return node_add(stream, &work);
}

rondo_status node_patch_affine(suite_context *context, rondo_graph *graph, rondo_node node,
                               uint32_t *x, uint32_t count, uint32_t factor, uint32_t term) {
    const suite_affine_arguments arguments = {x, count, factor, term};
    const rondo_launch launch = suite_describe_affine(context, &arguments);
    const rondo_work work = node_kernel_work(&launch);
    return rondo_graph_patch_node(graph, node, &work);
}
