// Checked graphs and memory that Rondo did not give out: the program's own, used by Rondo's work
// and by the program's own launches, in bodies and in recorded graphs.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/control/inside_support.h"
#include "conformance/memory/memory_support.h"
#include "rondo/control.h"
#include "support/driver.h"

enum { COUNT = 64, BYTES = COUNT * sizeof(uint32_t) };

typedef enum way {
    OWN_LAUNCH,      // rondo_stream_launch
    OWN_COPY,        // rondo_stream_copy
    FOREIGN_FILL,    // past the public calls
    FOREIGN_ARRAY,   // the driver's launch with a parameter array
    FOREIGN_PACKED,  // and with packed arguments
    IN_BODY,         // a launch with an array, in a body
    IN_CHILD,        // one in a graph that is recorded into the checked one
    WAY_COUNT,
} way;

typedef struct scene {
    suite_context *context;
    rondo_stream *stream;
    uint32_t *predicate;
    uint32_t *other;
} scene;

// As another library would: Rondo is not told.
static rondo_device *g_device;

static void deallocate(void *address) {
    suite_forget(address);
    driver_free(g_device, address);
}

static uint32_t *allocate(const scene *s) {
    void *address = NULL;
    g_device = s->context->device;
    ASSERT_OK(driver_allocate(g_device, BYTES, &address));
    suite_remember(deallocate, address);
    return address;
}

// x[1] = x[1] * 2 + 1, as a program's own code would.
static void launch(const scene *s, rondo_stream *stream, uint32_t *x, bool is_packed) {
    struct {
        uint32_t *x;
        uint32_t count;
        uint32_t factor;
        uint32_t term;
        uint32_t rest;
    } arguments = {x + 1, 1, 2, 1, 0};
    size_t bytes = offsetof(__typeof__(arguments), rest);
    void *parameters[] = {&arguments.x, &arguments.count, &arguments.factor, &arguments.term};
    void *extra[] = {RONDO__CU_LAUNCH_BUFFER_POINTER, &arguments, RONDO__CU_LAUNCH_BUFFER_SIZE,
                     &bytes, RONDO__CU_LAUNCH_END};
    ASSERT_OK(driver_launch(stream, s->context->affine, 32, is_packed ? NULL : parameters,
                            is_packed ? extra : NULL));
}

static void launch_in_body(const scene *s, uint32_t *x) {
    rondo_scope scope;
    rondo_stream *body;
    ASSERT_OK(rondo_scope_begin(s->stream, RONDO_SCOPE_IF, s->predicate, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    launch(s, body, x, false);
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
}

static void put_work(const scene *s, rondo_graph *child, uint32_t *x, way how) {
    switch (how) {
        case OWN_LAUNCH:
            ASSERT_OK(suite_affine(s->context, s->stream, x + 1, 1, 2, 1));
            break;
        case OWN_COPY:
            ASSERT_OK(
                rondo_stream_copy(s->stream, s->other, x, BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
            break;
        case FOREIGN_FILL:
            ASSERT_OK(driver_fill(s->stream, x, 0, COUNT));
            break;
        case FOREIGN_ARRAY:
        case FOREIGN_PACKED:
            launch(s, s->stream, x, how == FOREIGN_PACKED);
            break;
        case IN_BODY:
            launch_in_body(s, x);
            break;
        default:
            ASSERT_OK(rondo_stream_add_graph(s->stream, child));
            break;
    }
}

static void check_way(const scene *s, way how) {
    static const char *const names[] = {
        [OWN_LAUNCH] = "affine",    [OWN_COPY] = "a copy",       [FOREIGN_FILL] = "a fill",
        [FOREIGN_ARRAY] = "affine", [FOREIGN_PACKED] = "affine", [IN_BODY] = "affine",
        [IN_CHILD] = "affine"};
    rondo_graph *graph = memory_create_checked_graph(s->context);
    rondo_graph *child = suite_create_graph(s->context, true);
    uint32_t *x = allocate(s);
    uint32_t *kept = allocate(s);
    memory_begin(child, s->stream);
    launch(s, s->stream, x, false);
    memory_end(child);
    memory_begin(graph, s->stream);
    launch(s, s->stream, kept, false);
    put_work(s, child, x, how);
    memory_end(graph);
    memory_replay(graph, s->stream);
    memory_replay(graph, s->stream);
    deallocate(x);
    ASSERT_STATUS(rondo_graph_replay(graph, s->stream), STATE);
    ASSERT_MESSAGE_HAS("graph \"checked\" uses memory that is gone");
    ASSERT_MESSAGE_HAS(names[how]);
    ASSERT_MESSAGE_HAS("allocation of the program's own of 256 bytes");
    // Perhaps at the same address again, but another allocation.
    uint32_t *again = allocate(s);
    ASSERT_STATUS(rondo_graph_replay(graph, s->stream), STATE);
    ASSERT_OK(rondo_graph_reset(graph));
    memory_begin(graph, s->stream);
    launch(s, s->stream, again, false);
    memory_end(graph);
    memory_replay(graph, s->stream);
    rondo_graph_destroy(graph);
    rondo_graph_destroy(child);
    deallocate(again);
    deallocate(kept);
}

SUITE_CASE(test_conformance_guard__memory_of_the_program) {
    if (!context->is_cuda) {
        print_message("skipped: the host cannot tell whose memory an address is in\n");
        skip();
    }
    scene s = {.context = context,
               .stream = suite_create_stream(context),
               .predicate = suite_allocate(context, RONDO_MEMORY_DEVICE, 1),
               .other = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT)};
    suite_set(context, s.predicate, 1, 1);
    bool has_bodies = rondo_device_supports(context->device, RONDO_FEATURE_IF) == RONDO_STATUS_OK;
    for (int how = 0; how < WAY_COUNT; ++how) {
        if (how != IN_BODY || has_bodies) {
            check_way(&s, (way)how);
        }
    }
    rondo_stream_destroy(s.stream);
}

// What a conditional node reads is used like any other memory, on every backend.
SUITE_CASE(test_conformance_guard__predicates_count_as_used) {
    if (rondo_device_supports(context->device, RONDO_FEATURE_IF) != RONDO_STATUS_OK) {
        print_message("skipped: %s\n", rondo_error_get_last()->message);
        skip();
    }
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = memory_create_checked_graph(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    uint32_t *predicate = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, predicate, 0, 1);
    rondo_scope scope;
    rondo_stream *body;
    memory_begin(graph, stream);
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, predicate, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    memory_fill(body, x, 1, 1);
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    memory_end(graph);
    memory_replay(graph, stream);
    suite_free(context, RONDO_MEMORY_DEVICE, predicate);
    ASSERT_STATUS(rondo_graph_replay(graph, stream), STATE);
    ASSERT_MESSAGE_HAS("\"a predicate\"");
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// What the kernels of a recorded graph use counts, too, on every backend.
SUITE_CASE(test_conformance_guard__kernels_of_recorded_graphs_count_as_used) {
    suite_need_children(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *inner = inside_capture_affine(context, x, 2);
    rondo_graph *graph = memory_create_checked_graph(context);
    memory_begin(graph, context->stream);
    ASSERT_OK(rondo_stream_add_graph(context->stream, inner));
    memory_end(graph);
    memory_replay(graph, context->stream);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    ASSERT_STATUS(rondo_graph_replay(graph, context->stream), STATE);
    ASSERT_MESSAGE_HAS("\"affine\"");
    rondo_graph_destroy(graph);
    rondo_graph_destroy(inner);
}
