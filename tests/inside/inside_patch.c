// What patched graphs leave on the heap.
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "conformance/memory_support.h"
#include "graph/patch.h"
#include "rondo/update.h"

static void count_call(void *arguments) {
    uint32_t *counter;
    memcpy(&counter, arguments, sizeof counter);
    ++*counter;
}

static rondo_status put_call(rondo_stream *stream, void *user_data) {
    return rondo_stream_call_host(stream, "count", count_call, user_data, sizeof(uint32_t *));
}

// Without a handle, as who patches and updates in turns does it.
static void patch_call(rondo_graph *graph, uint32_t *counter) {
    rondo__node_image *image = NULL;
    size_t done = 0;
    ASSERT_OK(rondo__graph_get_image(graph, 0, &image));
    memcpy(image->arguments, &counter, sizeof counter);
    ASSERT_OK(rondo__graph_write_images(graph, &image, 1, &done));
    assert_int_equal(done, 1);
}

// A host function's arguments are kept for the replays that use them. An update replaces the node:
// no replay uses them then.
static void test_inside_patch__calls_of_updated_nodes_are_freed(void **state) {
    suite_context *context = suite_get_context(state);
    suite_need_execution(context);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, true);
    uint32_t *counters = suite_allocate(context, RONDO_MEMORY_PINNED, 2);
    counters[0] = 0;
    counters[1] = 0;
    int64_t balance = 0;
    const uint32_t rounds = (uint32_t)suite_rounds(30, 4);
    for (uint32_t i = 0; i < rounds; ++i) {
        ASSERT_OK(rondo_graph_recapture(graph, stream, NULL, put_call, &counters, NULL));
        patch_call(graph, counters + 1);
        memory_replay(graph, stream);
        ASSERT_OK(rondo_graph_recapture(graph, stream, NULL, put_call, &counters, NULL));
        memory_replay(graph, stream);
        if (i == rounds / 2) {
            balance = rondo__memory_get_balance();
        }
    }
    assert_int_equal(counters[0], rounds);
    assert_int_equal(counters[1], rounds);
    assert_int_equal(rondo__memory_get_balance(), balance);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    suite_free(context, RONDO_MEMORY_PINNED, counters);
}

static const suite_entry inside_patch_cases[] = {
    SUITE_CASE(test_inside_patch__calls_of_updated_nodes_are_freed),
    {NULL, NULL, false},
};
SUITE_LIST(inside_patch);
