// What takes part in a capture: found from every stream of it, asked and told in order.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "capture/capture.h"
#include "conformance/capture/label_support.h"
#include "conformance/control/inside_support.h"
#include "graph/graph_object.h"
#include "inside/inside_objects.h"
#include "rondo/update.h"

typedef struct witness {
    rondo__participant head;
    uint32_t *x;  // finish adds a node that works on this
    suite_context *context;
    rondo_status finish_status;
    rondo_status replay_status;
    int *finish_count;
    int *replay_count;
    int *destroy_count;
} witness;

static rondo_status finish(rondo__participant *participant, rondo__capture *capture) {
    witness *w = (witness *)participant;
    ++*w->finish_count;
    if (w->finish_status != RONDO_STATUS_OK) {
        return rondo__error_set(w->finish_status, 0, "", __FILE__, __LINE__,
                                "rondo_graph_capture_end", "on purpose");
    }
    return suite_affine(w->context, capture->origin, w->x, 1, 1, 100);
}

static rondo_status prepare_replay(rondo__participant *participant, rondo_stream *stream) {
    witness *w = (witness *)participant;
    (void)stream;
    return w->replay_status == RONDO_STATUS_OK
               ? RONDO_STATUS_OK
               : rondo__error_set(w->replay_status, 0, "", __FILE__, __LINE__, "rondo_graph_replay",
                                  "on purpose");
}

static void note_replay(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    ++*((witness *)participant)->replay_count;
}

static void destroy(rondo__participant *participant) {
    ++*((witness *)participant)->destroy_count;
    free(participant);
}

static const rondo__participant_type witness_type = {
    .name = "witness",
    .finish = finish,
    .prepare_replay = prepare_replay,
    .note_replay = note_replay,
    .destroy = destroy,
};

typedef struct counts {
    int finished;
    int replayed;
    int destroyed;
} counts;

static witness *add_witness(suite_context *context, rondo_stream *stream, uint32_t *x,
                            counts *tally) {
    rondo__capture *capture = NULL;
    ASSERT_OK(rondo__capture_find(stream, &capture, NULL));
    assert_non_null(capture);
    witness *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->head.type = &witness_type;
    w->head.key = x;
    w->context = context;
    w->x = x;
    w->finish_count = &tally->finished;
    w->replay_count = &tally->replayed;
    w->destroy_count = &tally->destroyed;
    assert_null(rondo__capture_find_participant(capture, &witness_type, x));
    rondo__capture_add_participant(capture, &w->head);
    assert_ptr_equal(rondo__capture_find_participant(capture, &witness_type, x), w);
    return w;
}

SUITE_CASE(test_inside_participants__record_last_and_follow_the_graph) {
    rondo_stream *other = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = NULL;
    counts tally = {0};
    rondo__capture *capture = NULL;
    uint64_t id = 7;
    ASSERT_OK(rondo_graph_create(context->device, NULL, &graph));
    ASSERT_OK(rondo__capture_find(context->stream, &capture, &id));
    assert_null(capture);
    assert_int_equal(id, 0);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo__capture_find(other, &capture, &id));
    assert_null(capture);
    // A forked stream finds the same capture.
    ASSERT_OK(rondo_event_record(event, context->stream));
    ASSERT_OK(rondo_stream_wait_event(other, event));
    ASSERT_OK(suite_affine(context, other, x, 1, 2, 3));
    witness *w = add_witness(context, other, x, &tally);
    ASSERT_OK(rondo__capture_find(context->stream, &capture, &id));
    assert_ptr_equal(rondo__capture_find_participant(capture, &witness_type, x), w);
    assert_int_equal(id, capture->id);
    ASSERT_OK(rondo_event_record(event, other));
    ASSERT_OK(rondo_stream_wait_event(context->stream, event));
    ASSERT_OK(rondo_graph_capture_end(graph));
    assert_int_equal(tally.finished, 1);
    assert_int_equal(tally.replayed, 0);
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 0, 1 * 2 + 3 + 100);
    assert_int_equal(tally.replayed, 1);
    w->replay_status = RONDO_STATUS_STATE;
    ASSERT_STATUS(rondo_graph_replay(graph, context->stream), STATE);
    assert_int_equal(tally.replayed, 1);
    ASSERT_VALUE(context, x, 0, 105);  // refused: nothing ran
    assert_int_equal(tally.destroyed, 0);
    ASSERT_OK(rondo_graph_reset(graph));
    assert_int_equal(tally.destroyed, 1);
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
    rondo_stream_destroy(other);
}

SUITE_CASE(test_inside_participants__leave_a_capture_that_fails) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = NULL;
    counts tally = {0};
    ASSERT_OK(rondo_graph_create(context->device, NULL, &graph));
    // One that cannot finish.
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    add_witness(context, context->stream, x, &tally)->finish_status = RONDO_STATUS_NO_MEMORY;
    ASSERT_STATUS(rondo_graph_capture_end(graph), NO_MEMORY);
    ASSERT_MESSAGE_HAS("on purpose");
    assert_int_equal(tally.destroyed, 1);
    // A capture given up.
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    add_witness(context, context->stream, x, &tally);
    rondo_graph_capture_abort(graph);
    assert_int_equal(tally.finished, 1);
    assert_int_equal(tally.destroyed, 2);
    // Afterwards all is well.
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    add_witness(context, context->stream, x, &tally);
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 0, 101);
    rondo_graph_destroy(graph);
    assert_int_equal(tally.destroyed, 3);
}

// What the frontier is, what nodes depend on, and that a dependency can be added by hand.
SUITE_CASE(test_inside_participants__see_where_a_capture_stands) {
    const rondo__backend *backend = context->device->backend;
    rondo_stream *other = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    suite_set(context, x, 1, 2);
    rondo_graph *graph = NULL;
    rondo__node_handle first[4];
    rondo__node_handle second[4];
    rondo__node_handle nodes[4];
    size_t count = 9;
    ASSERT_OK(rondo_graph_create(context->device, NULL, &graph));
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(backend->get_frontier(context->stream, nodes, 4, &count));
    assert_int_equal(count, 0);
    ASSERT_OK(rondo_event_record(event, context->stream));
    ASSERT_OK(rondo_stream_wait_event(other, event));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 3));
    ASSERT_OK(backend->get_frontier(context->stream, first, 4, &count));
    assert_int_equal(count, 1);
    ASSERT_OK(backend->get_predecessors(context->stream, first[0], nodes, 4, &count));
    assert_int_equal(count, 0);
    // Without the dependency added by hand the two branches would be independent.
    ASSERT_OK(suite_affine(context, other, x + 1, 1, 1, 1));
    ASSERT_OK(backend->get_frontier(other, second, 4, &count));
    assert_int_equal(count, 1);
    assert_true(second[0] != first[0]);
    ASSERT_OK(backend->add_dependencies(other, first, 1));
    ASSERT_OK(backend->get_frontier(other, nodes, 4, &count));
    assert_int_equal(count, 2);
    ASSERT_OK(suite_affine(context, other, x, 1, 10, 0));
    ASSERT_OK(backend->get_frontier(other, second, 4, &count));
    assert_int_equal(count, 1);
    ASSERT_OK(backend->get_predecessors(other, second[0], nodes, 4, &count));
    assert_int_equal(count, 2);
    assert_true(nodes[0] == first[0] || nodes[1] == first[0]);
    ASSERT_OK(rondo_event_record(event, other));
    ASSERT_OK(rondo_stream_wait_event(context->stream, event));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_VALUE(context, x, 0, (1 * 2 + 3) * 10);
    ASSERT_VALUE(context, x, 1, 2);
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
    rondo_stream_destroy(other);
}

// Those of the inner graph are asked by the outer graph's replays and outlive the inner.
SUITE_CASE(test_inside_participants__travel_along) {
    suite_need_children(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    int tally_of_inner[3] = {0, 0, 0};
    rondo_graph *other_outer;
    rondo_graph *inner = inside_capture_with_witness(context, x, tally_of_inner);
    inside_replay_and_wait(context, inner);
    assert_int_equal(tally_of_inner[0], 1);
    rondo_graph *outers[2];
    for (int i = 0; i < 2; ++i) {
        outers[i] = suite_create_graph(context, false);
        inside_begin(outers[i], context->stream);
        ASSERT_OK(rondo_stream_add_graph(context->stream, inner));
        ASSERT_OK(rondo_stream_add_graph(context->stream, inner));
        ASSERT_OK(rondo_graph_capture_end(outers[i]));
    }
    // A capture that is given up gives up its share.
    rondo_graph *aborted = suite_create_graph(context, false);
    inside_begin(aborted, context->stream);
    ASSERT_OK(rondo_stream_add_graph(context->stream, inner));
    rondo_graph_capture_abort(aborted);
    rondo_graph_destroy(aborted);

    inside_replay_and_wait(context, inner);
    assert_int_equal(tally_of_inner[0], 2);
    inside_replay_and_wait(context, outers[0]);
    assert_int_equal(tally_of_inner[0], 3);  // once, though it is in there twice
    assert_int_equal(tally_of_inner[1], 3);
    rondo_graph_destroy(inner);
    assert_int_equal(tally_of_inner[2], 0);
    inside_replay_and_wait(context, outers[1]);
    assert_int_equal(tally_of_inner[0], 4);
    // One level more: both stay what they are.
    int others[3] = {0, 0, 0};
    rondo_graph *other = inside_capture_with_witness(context, x, others);
    inside_begin(other_outer = inside_create_deferred(context), context->stream);
    ASSERT_OK(rondo_stream_add_graph(context->stream, other));
    int own[3] = {0, 0, 0};
    inside_add_witness(context->stream, own);  // behind what it shares with the inner graph
    ASSERT_OK(rondo_graph_capture_end(other_outer));
    rondo_graph *top = suite_create_graph(context, false);
    inside_begin(top, context->stream);
    ASSERT_OK(rondo_stream_add_graph(context->stream, other_outer));
    ASSERT_OK(rondo_graph_capture_end(top));
    rondo_graph_destroy(other);
    inside_replay_and_wait(context, other_outer);
    rondo_graph_destroy(other_outer);
    inside_replay_and_wait(context, top);
    assert_int_equal(others[0], 2);
    assert_int_equal(own[0], 2);
    assert_int_equal(others[2] + own[2], 0);
    rondo_graph_destroy(top);
    assert_int_equal(others[2], 1);
    assert_int_equal(own[2], 1);

    ASSERT_OK(rondo_graph_reset(outers[0]));
    assert_int_equal(tally_of_inner[2], 0);
    rondo_graph_destroy(outers[1]);
    assert_int_equal(tally_of_inner[2], 1);
    ASSERT_VALUE(context, x, 0, 511);  // eight times
    rondo_graph_destroy(outers[0]);
}

// Memory that the inner graph took from a pool lives as long as the outer graph.
// What takes part in the source goes along, and what took part in the graph is given up.
SUITE_CASE(test_inside_participants__go_along_with_an_update) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    int first[3] = {0, 0, 0};
    int second[3] = {0, 0, 0};
    rondo_graph *graph = inside_capture_with_witness(context, x, first);
    inside_replay_and_wait(context, graph);
    rondo_graph *source = inside_capture_with_witness(context, x, second);
    ASSERT_OK(rondo_graph_update(graph, source, NULL));
    assert_int_equal(first[2], 1);
    rondo_graph_destroy(source);
    assert_int_equal(second[2], 0);
    inside_replay_and_wait(context, graph);
    assert_int_equal(second[0], 1);
    ASSERT_VALUE(context, x, 0, 7);
    rondo_graph *last = suite_create_graph(context, true);
    ASSERT_OK(rondo_graph_update(last, graph, NULL));
    inside_replay_and_wait(context, last);
    ASSERT_VALUE(context, x, 0, 15);
    rondo_graph_destroy(last);
    assert_int_equal(second[2], 1);
    rondo_graph_destroy(graph);
}

// Who uses no labels pays for none.
SUITE_CASE(test_inside_participants__no_labels_are_kept_of_none) {
    suite_need(context, RONDO_FEATURE_IF);
    label_scene s = label_create_scene(context);
    rondo_graph *inner = inside_capture_affine(context, s.x, 3);
    label_begin(&s);
    rondo_scope scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    rondo_stream *body = label_enter(scope, 0);
    (void)label_work(&s, body);
    label_leave_and_end(scope);
    ASSERT_OK(rondo_stream_add_graph(s.a, inner));
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    for (const rondo__participant *one = s.graph->participants; one != NULL; one = one->next) {
        assert_string_not_equal(one->type->name, "labels");
    }
    rondo_graph_destroy(inner);
    label_destroy_scene(&s);
}
