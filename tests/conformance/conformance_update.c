// Captures that Rondo did not begin, executables on demand, one graph updated by another.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/control/inside_support.h"
#include "conformance/memory/memory_support.h"
#include "conformance/random/random_support.h"
#include "rondo/inspect.h"
#include "rondo/pool.h"
#include "rondo/update.h"
#include "support/driver.h"

// ---- captures that Rondo did not begin --------------------------------------------------------

SUITE_CASE(test_conformance_update__foreign_captures) {
    if (!context->is_cuda) {
        print_message("skipped: the host has no captures but Rondo's\n");
        skip();
    }
    const rondo__cuda_api *api;
    ASSERT_OK(rondo__cuda_get_api(&api));
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4);
    uint32_t *pinned = suite_allocate(context, RONDO_MEMORY_PINNED, 4);
    suite_set(context, x, 1, 4);
    pinned[0] = 0;
    rondo_graph *inner = inside_capture_affine(context, x, 2);
    rondo_generator *generator = suite_create_generator(context, 1);
    uint32_t *drawn = suite_allocate(context, RONDO_MEMORY_DEVICE, 64);
    rondo_graph *asking = inside_create_deferred(context);
    inside_begin(asking, context->stream);
    ASSERT_OK(suite_draw(generator, context->stream, drawn));
    ASSERT_OK(rondo_graph_capture_end(asking));
    // The program's own stream: wrapped, not taken over.
    rondo_stream *owner = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    rondo__cu_stream native = rondo_stream_get_native(owner);
    rondo_stream *stream;
    ASSERT_OK(rondo_stream_wrap(context->device, native, &stream));
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    inside_add_arguments add = {.x = pinned + 1, .term = 4};
    pinned[1] = 0;

    rondo_pool *pool;
    ASSERT_OK(rondo_pool_create(context->device, NULL, &pool));
    // As in a program of the runtime API: the primary context is current.
    rondo__cu_context pushed = NULL;
    assert_int_equal(api->cuDevicePrimaryCtxRetain(&pushed, 0), 0);
    assert_int_equal(api->cuCtxPushCurrent(pushed), 0);
    assert_int_equal(api->cuStreamBeginCapture(native, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL), 0);
    bool is_capturing = false;
    ASSERT_OK(rondo_stream_is_recording(stream, &is_capturing));
    assert_true(is_capturing);
    ASSERT_OK(rondo_stream_fill(stream, x, 5, 4, 4));
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(suite_affine(context, side, x + 1, 1, 3, 0));
    ASSERT_STATUS(rondo_graph_replay(inner, stream), STATE);
    ASSERT_MESSAGE_HAS("rondo_stream_add_graph");
    ASSERT_OK(rondo_stream_add_graph(stream, inner));
    ASSERT_STATUS(rondo_stream_add_graph(stream, asking), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("generator");
    ASSERT_STATUS(rondo_graph_replay(inner, side), STATE);  // it joined
    void *block = NULL;
    ASSERT_STATUS(rondo_pool_allocate(pool, stream, 64, &block), STATE);
    ASSERT_MESSAGE_HAS("did not begin");
    ASSERT_STATUS(rondo_pool_allocate(pool, side, 64, &block), STATE);
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_stream_call_host(stream, "add", inside_run_add, &add, sizeof add));
    ASSERT_OK(rondo_stream_copy(stream, pinned, x, 4, RONDO_COPY_DEVICE_TO_HOST));
    rondo__cu_graph graph = NULL;
    assert_int_equal(api->cuStreamEndCapture(native, &graph), 0);
    assert_int_equal(pinned[0], 0);
    ASSERT_VALUE(context, x, 0, 1);

    rondo__cu_graph_exec exec = NULL;
    assert_int_equal(api->cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    assert_int_equal(api->cuGraphLaunch(exec, native), 0);
    ASSERT_OK(rondo_stream_synchronize(stream));
    assert_int_equal(pinned[0], 11);
    assert_int_equal(pinned[1], 4);
    ASSERT_VALUE(context, x, 1, 15);
    assert_int_equal(api->cuGraphExecDestroy(exec), 0);
    assert_int_equal(api->cuGraphDestroy(graph), 0);
    assert_int_equal(api->cuCtxPopCurrent(&pushed), 0);
    assert_int_equal(api->cuDevicePrimaryCtxRelease(0), 0);
    // The stream is an ordinary one again.
    void *taken = NULL;
    ASSERT_OK(rondo_pool_allocate(pool, stream, 64, &taken));
    ASSERT_OK(rondo_pool_free(pool, taken));
    rondo_pool_release(pool);
    ASSERT_OK(rondo_graph_replay(inner, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, x, 0, 23);
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(stream);
    rondo_stream_destroy(side);
    rondo_stream_destroy(owner);
    rondo_graph_destroy(asking);
    rondo_generator_release(generator);
    rondo_graph_destroy(inner);
}

// ---- executables on demand --------------------------------------------------------------------

SUITE_CASE(test_conformance_update__instantiation_on_demand) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = inside_capture_affine(context, x, 2);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.instantiate_ns, 0);
    assert_int_equal(stats.node_count, 1);
    void *native = NULL;
    ASSERT_STATUS(rondo_graph_get_native(graph, NULL, &native), STATE);
    ASSERT_MESSAGE_HAS("rondo_graph_instantiate");
    ASSERT_STATUS(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL),
                  STATE);
    inside_replay_and_wait(context, graph);
    ASSERT_VALUE(context, x, 0, 3);
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_true(stats.instantiate_ns > 0);
    ASSERT_OK(rondo_graph_instantiate(graph));
    inside_replay_and_wait(context, graph);
    ASSERT_VALUE(context, x, 0, 7);
    ASSERT_OK(rondo_graph_reset(graph));
    ASSERT_STATUS(rondo_graph_get_native(graph, NULL, &native), STATE);
    // An upload makes one, too; so does asking for it.
    inside_begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_upload(graph, context->stream));
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_true(stats.instantiate_ns > 0);
    inside_replay_and_wait(context, graph);
    ASSERT_VALUE(context, x, 0, 15);
    rondo_graph_destroy(graph);
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE_ONLY + 1;
    ASSERT_STATUS(rondo_graph_create(context->device, &options, &graph), INVALID);
    ASSERT_MESSAGE_HAS("rondo_graph_keeps");
}

// A template edited by the driver's own calls runs as edited once it is instantiated again.
SUITE_CASE(test_conformance_update__edits_through_the_raw_handle) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    suite_set(context, x, 1, 2);
    rondo_graph *graph = inside_capture_affine(context, x, 2);
    rondo_graph *added = inside_capture_affine(context, x + 1, 3);
    inside_replay_and_wait(context, graph);
    void *native = NULL;
    if (!context->is_cuda) {
        ASSERT_STATUS(rondo_graph_get_native(graph, &native, NULL), UNSUPPORTED);
        ASSERT_MESSAGE_HAS("no native handles");
    } else {
        const rondo__cuda_api *api;
        void *child = NULL;
        rondo__cu_graph_node node;
        ASSERT_OK(rondo__cuda_get_api(&api));
        ASSERT_OK(rondo_graph_get_native(graph, &native, NULL));
        ASSERT_OK(rondo_graph_get_native(added, &child, NULL));
        assert_int_equal(api->cuGraphAddChildGraphNode(&node, native, NULL, 0, child), 0);
        inside_replay_and_wait(context, graph);  // still the former executable
        ASSERT_VALUE(context, x, 1, 1);
        ASSERT_OK(rondo_graph_instantiate(graph));
        inside_replay_and_wait(context, graph);
        ASSERT_VALUE(context, x, 0, 15);
        ASSERT_VALUE(context, x, 1, 4);
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_int_equal(stats.node_count, 2);
        assert_int_equal(stats.kernel_count, 2);
        assert_int_equal(stats.replay_count, 3);
        inside_assert_dump_has(graph, RONDO_TEXT_JSON, "\"kind\": \"child\"");
    }
    rondo_graph_destroy(added);
    rondo_graph_destroy(graph);
}

// ---- one graph updated by another -------------------------------------------------------------

SUITE_CASE(test_conformance_update__update_patches_or_instantiates) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    uint32_t *y = x + 1;
    suite_set(context, x, 1, 2);
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_update_report report = {.struct_size = sizeof report};
    // Empty: the first instantiation.
    rondo_graph *source = inside_capture_affine(context, x, 2);
    ASSERT_OK(rondo_graph_update(graph, source, &report));
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    ASSERT_STATUS(rondo_graph_replay(source, context->stream), STATE);
    inside_replay_and_wait(context, graph);
    ASSERT_VALUE(context, x, 0, 3);
    // The same nodes with other arguments, while a replay is in flight.
    for (uint32_t round = 0; round < 3; ++round) {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        inside_begin(source, context->stream);
        ASSERT_OK(suite_affine(context, context->stream, y, 1, 3 + round, 0));
        ASSERT_OK(rondo_graph_capture_end(source));
        ASSERT_OK(rondo_graph_update(graph, source, &report));
        assert_int_equal(report.result, RONDO_UPDATE_PATCHED);
    }
    inside_replay_and_wait(context, graph);
    ASSERT_VALUE(context, x, 0, 7);
    ASSERT_VALUE(context, y, 0, 60);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.replay_count, 5);
    assert_int_equal(stats.node_count, 1);
    // One node more.
    inside_begin(source, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, y, 1, 1, 1));
    ASSERT_OK(suite_affine(context, context->stream, y, 1, 2, 0));
    ASSERT_OK(rondo_graph_capture_end(source));
    ASSERT_OK(rondo_graph_update(graph, source, NULL));
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 2);
    inside_replay_and_wait(context, graph);
    ASSERT_VALUE(context, y, 0, 122);
    rondo_graph_destroy(source);
    rondo_graph_destroy(graph);
}

SUITE_CASE(test_conformance_update__update_takes_what_belongs_to_it) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = inside_capture_affine(context, x, 2);
    inside_replay_and_wait(context, graph);
    rondo_graph *source = inside_capture_affine(context, x, 2);
    rondo_update_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_update(graph, source, &report));
    assert_int_equal(report.result, RONDO_UPDATE_PATCHED);
    rondo_graph_destroy(source);
    inside_replay_and_wait(context, graph);
    ASSERT_VALUE(context, x, 0, 7);
    // It keeps its template, so it can be looked at, recorded, and be a source itself.
    uint64_t count = 0;
    ASSERT_OK(rondo_graph_get_node_count(graph, &count));
    assert_int_equal(count, 1);
    rondo_graph *last = suite_create_graph(context, true);
    ASSERT_OK(rondo_graph_update(last, graph, &report));
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    inside_replay_and_wait(context, last);
    ASSERT_VALUE(context, x, 0, 15);
    ASSERT_STATUS(rondo_graph_update(last, last, &report), INVALID);
    ASSERT_STATUS(rondo_graph_update(last, graph, &report), STATE);  // it is empty now
    ASSERT_STATUS(rondo_graph_update(NULL, last, &report), INVALID);
    ASSERT_STATUS(rondo_graph_update(last, NULL, &report), INVALID);
    inside_begin(graph, context->stream);
    ASSERT_STATUS(rondo_graph_update(graph, last, &report), STATE);
    ASSERT_STATUS(rondo_graph_update(last, graph, &report), STATE);
    rondo_graph_capture_abort(graph);
    inside_replay_and_wait(context, last);
    ASSERT_VALUE(context, x, 0, 31);
    rondo_graph_destroy(last);
    rondo_graph_destroy(graph);
}

// ---- one call ---------------------------------------------------------------------------------

typedef struct changing_step {
    suite_context *context;
    uint32_t *x;
    uint32_t count;  // launches
    uint32_t term;
    bool fails;
} changing_step;

static rondo_status put_changing(rondo_stream *stream, void *user_data) {
    const changing_step *s = user_data;
    for (uint32_t i = 0; i < s->count; ++i) {
        rondo_status status = suite_affine(s->context, stream, s->x, 4, 1, s->term);
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    return s->fails ? rondo_stream_synchronize(stream) : RONDO_STATUS_OK;
}

SUITE_CASE_EXECUTED(test_conformance_update__a_step_is_recorded_again_in_one_call) {
    rondo_graph *graph = suite_create_graph(context, true);
    rondo_stream *stream = suite_create_stream(context);
    changing_step step = {
        .context = context, .x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4), .count = 2};
    suite_set(context, step.x, 0, 4);
    rondo_update_report report = {.struct_size = sizeof report};
    step.term = 1;
    ASSERT_OK(rondo_graph_recapture(graph, stream, NULL, put_changing, &step, &report));
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    assert_false(report.has_difference);
    ASSERT_OK(rondo_graph_replay(graph, stream));
    step.term = 10;
    ASSERT_OK(rondo_graph_recapture(graph, stream, NULL, put_changing, &step, &report));
    assert_int_equal(report.result, RONDO_UPDATE_PATCHED);
    ASSERT_OK(rondo_graph_replay(graph, stream));
    step.fails = true;
    step.term = 5000;
    ASSERT_STATUS(rondo_graph_recapture(graph, stream, NULL, put_changing, &step, &report), STATE);
    ASSERT_OK(rondo_graph_replay(graph, stream));
    step.fails = false;
    step.count = 3;
    step.term = 100;
    ASSERT_OK(rondo_graph_recapture(graph, stream, NULL, put_changing, &step, &report));
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    // Where memory is short, the search for the difference is left out.
    assert_true(report.has_difference || suite_is_swept);
    char text[256] = "";
    if (report.has_difference) {
        (void)rondo_difference_format(&report.difference, text, sizeof text);
        assert_non_null(strstr(text, "none before, kernel now"));
    }
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    assert_int_equal(suite_get(context, step.x, 0), 2 + 20 + 20 + 300);
    ASSERT_OK(rondo_graph_reset(graph));
    memory_begin(graph, stream);
    ASSERT_STATUS(rondo_graph_recapture(graph, stream, NULL, put_changing, &step, &report), STATE);
    rondo_graph_capture_abort(graph);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// An update exchanges the arenas of both graphs; what is recorded again afterwards lies in the one
// that the graph has now.
SUITE_CASE(test_conformance_update__recaptures_follow_the_arena) {
    rondo_stream *stream = suite_create_stream(context);
    rondo_arena *arenas[2];
    rondo_graph *graphs[2];
    for (size_t i = 0; i < 2; ++i) {
        ASSERT_OK(rondo_arena_create(context->device, NULL, &arenas[i]));
        const rondo_graph_options options = {
            .struct_size = sizeof options, .keep = RONDO_KEEP_TEMPLATE, .arena = arenas[i]};
        ASSERT_OK(rondo_graph_create(context->device, &options, &graphs[i]));
    }
    changing_step step = {.context = context,
                          .x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4),
                          .count = 1,
                          .term = 1};
    for (size_t round = 0; round < 3; ++round) {
        ASSERT_OK(rondo_graph_recapture(graphs[0], stream, NULL, put_changing, &step, NULL));
        rondo_arena *arena;
        ASSERT_OK(rondo_graph_get_arena(graphs[0], &arena));
        assert_ptr_equal(arena, arenas[round % 2]);
        memory_begin(graphs[1], stream);
        memory_fill(stream, step.x, 5, 4);
        memory_end(graphs[1]);
        ASSERT_OK(rondo_graph_update(graphs[0], graphs[1], NULL));
    }
    for (size_t i = 0; i < 2; ++i) {
        rondo_graph_destroy(graphs[i]);
        rondo_arena_release(arenas[i]);
    }
    rondo_stream_destroy(stream);
}

// Replays of one graph come one behind another, also where another executable was made between.
SUITE_CASE_EXECUTED(test_conformance_update__replays_stay_in_order) {
    rondo_graph *graph = suite_create_graph(context, true);
    rondo_stream *streams[] = {suite_create_stream(context), suite_create_stream(context)};
    changing_step step = {
        .context = context, .x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4), .term = 1};
    suite_set(context, step.x, 0, 4);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        step.count = i + 1;
        expected += step.count;
        ASSERT_OK(rondo_graph_recapture(graph, streams[i % 2], NULL, put_changing, &step, NULL));
        ASSERT_OK(suite_linger(context, streams[i % 2], 5000));
        ASSERT_OK(rondo_graph_replay(graph, streams[i % 2]));
    }
    ASSERT_OK(rondo_stream_synchronize(streams[1]));
    assert_int_equal(suite_get(context, step.x, 0), expected);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(streams[0]);
    rondo_stream_destroy(streams[1]);
}

SUITE_CASE(test_conformance_update__differences_are_listed) {
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graphs[] = {suite_create_graph(context, true), suite_create_graph(context, true)};
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4);
    for (uint32_t i = 0; i < 2; ++i) {
        memory_begin(graphs[i], stream);
        memory_fill(stream, x, 5 + i, 4);
        memory_fill(stream, x + i, 9, 2);
        memory_end(graphs[i]);
    }
    size_t count = 0;
    ASSERT_OK(rondo_graph_compare(graphs[0], graphs[1], NULL, 0, &count));
    assert_int_equal(count, 2);
    rondo_difference found[2] = {{.struct_size = sizeof found[0]}};
    ASSERT_OK(rondo_graph_compare(graphs[0], graphs[1], found, 2, &count));
    assert_string_equal(found[0].field, "fill_value");
    assert_string_equal(found[1].field, "destination");
    ASSERT_OK(rondo_graph_compare(graphs[0], graphs[0], found, 2, &count));
    assert_int_equal(count, 0);
    found[0].struct_size = 0;
    ASSERT_STATUS(rondo_graph_compare(graphs[0], graphs[1], found, 2, &count), INVALID);
    ASSERT_STATUS(rondo_graph_compare(graphs[0], NULL, NULL, 0, &count), INVALID);
    ASSERT_OK(rondo_graph_reset(graphs[0]));
    ASSERT_STATUS(rondo_graph_compare(graphs[0], graphs[1], NULL, 0, &count), STATE);
    rondo_graph_destroy(graphs[0]);
    rondo_graph_destroy(graphs[1]);
    rondo_stream_destroy(stream);
}

// ---- memory of the program's own --------------------------------------------------------------

// A step that takes memory by cudaMallocAsync and leaves it: each replay takes it anew.
SUITE_CASE_EXECUTED(test_conformance_update__steps_that_leave_driver_memory_are_replayed) {
    if (!context->is_cuda) {
        suite_skip("only CUDA has memory in stream order");
    }
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, true);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4);
    suite_set(context, x, 0, 4);
    memory_begin(graph, stream);
    ASSERT_OK(driver_take_in_order(stream, 1 << 20));
    ASSERT_OK(suite_affine(context, stream, x, 4, 1, 1));
    memory_end(graph);
    const int rounds = suite_rounds(1000, 3);
    for (int i = 0; i < rounds; ++i) {
        ASSERT_OK(rondo_graph_replay(graph, stream));
    }
    ASSERT_OK(rondo_graph_instantiate(graph));  // one executable at a time
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    assert_int_equal(suite_get(context, x, 0), rounds + 1);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}
