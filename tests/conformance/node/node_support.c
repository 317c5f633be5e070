// node_support.c — see node_support.h.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"

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
