// inside_table.c — what the backend's table does by itself, without a graph around it.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_child.h"
#include "conformance/control/inside_support.h"
#include "graph/graph_object.h"
#include "inside/inside_objects.h"

static rondo__template *record_template(suite_context *context, uint32_t *x, uint32_t factor,
                                        int extra_nodes) {
    inside_begin_bare(context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, factor, 1));
    for (int i = 0; i < extra_nodes; ++i) {
        ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
    }
    return inside_end_bare(context->stream);
}

SUITE_CASE(test_inside_table__executables_take_updates) {
    const rondo__backend *backend = context->device->backend;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo__template *first = record_template(context, x, 3, 1);
    rondo__template *same = record_template(context, x, 10, 1);
    rondo__template *longer = record_template(context, x, 7, 4);
    rondo__executable *executable = NULL;
    ASSERT_OK(backend->instantiate(first, &executable));
    inside_keep_executable(executable);
    ASSERT_OK(backend->replay(executable, context->stream));  // (1 * 3 + 1) + 1
    bool was_updated = false;
    ASSERT_OK(backend->update(executable, same, &was_updated));
    assert_true(was_updated);
    // The template is no longer needed, and the replay in flight is not disturbed.
    inside_drop_template(same);
    ASSERT_OK(backend->replay(executable, context->stream));  // (5 * 10 + 1) + 1
    ASSERT_VALUE(context, x, 0, 52);
    ASSERT_OK(backend->update(executable, longer, &was_updated));
    assert_false(was_updated);
    ASSERT_OK(backend->replay(executable, context->stream));
    ASSERT_VALUE(context, x, 0, 522);
    inside_drop_executable(executable);
    inside_drop_template(longer);
    inside_drop_template(first);
}

// What runs on the host: all nodes, each behind those before it, across the borders of the graphs.
SUITE_CASE(test_inside_table__host_graphs_are_flattened) {
    if (!context->is_host) {
        print_message("skipped: only the host flattens graphs in graphs\n");
        skip();
    }
    inside_nest nest;
    inside_make_nest(context, &nest);
    const rondo__host_template *recorded = (const rondo__host_template *)nest.outer->recorded;
    const rondo__host_template *flat;
    ASSERT_OK(rondo__host_flatten(recorded, &flat));
    assert_int_equal(flat->node_count, 7);
    assert_int_equal(flat->edge_count, 10);
    rondo__host_unflatten(recorded, flat);
    inside_drop_nest(context, &nest);
}
