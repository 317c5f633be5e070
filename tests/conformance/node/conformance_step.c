// rondo_graph_capture_step: a step is recorded, or runs at once with the same results.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/conformance.h"
#include "conformance/random/random_support.h"
#include "rondo/label.h"
#include "rondo/pool.h"
#include "rondo/report.h"

enum { COUNT = 32 };

typedef enum step_kind {
    STEP_RECORDS,           // nothing is wrong with it
    STEP_WAITS,             // waits for its stream, and passes a failure on
    STEP_WAITS_CARELESSLY,  // the same, and ignores the failure
    STEP_LEAVES_A_BRANCH,   // forks a stream and does not join it
    STEP_FAILS,             // fails for a reason of its own
    STEP_LAUNCHES_WRONGLY,  // fails whether recorded or not
    STEP_ALLOCATES,         // outside a pool: global mode forbids it
    STEP_WAITS_THEN_FAILS,  // cannot be recorded, and fails by itself when it runs
} step_kind;

typedef struct step_data {
    suite_context *context;
    step_kind kind;
    rondo_stream *branch;
    rondo_event *event;
    uint32_t *x;
    rondo_pool *pool;  // each run takes a block and gives it back, when there is a pool
    rondo_generator *generator;
    uint32_t *random;  // DRAW_WORDS, drawn by each run when there is a generator
    int call_count;
} step_data;

static rondo_status fail_for_a_reason_of_its_own(void) {
    // As a program would: an error of Rondo's that has nothing to do with the capture.
    rondo_pool *pool = NULL;
    return rondo_pool_create(NULL, NULL, &pool);
}

static rondo_status run_step(rondo_stream *stream, void *user_data) {
    step_data *data = user_data;
    suite_context *context = data->context;
    rondo_status status = rondo_label_push(stream, "step");
    ++data->call_count;
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(context, stream, data->x, COUNT, 3, 1);
    }
    if (status == RONDO_STATUS_OK && data->generator != NULL) {
        status = suite_draw(data->generator, stream, data->random);
    }
    if (status == RONDO_STATUS_OK && data->pool != NULL) {
        void *block = NULL;
        status = rondo_pool_allocate(data->pool, stream, 4096, &block);
        if (status == RONDO_STATUS_OK) {
            status = rondo_pool_free(data->pool, block);
        }
    }
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    switch (data->kind) {
        case STEP_WAITS:
        case STEP_WAITS_THEN_FAILS:
            status = rondo_stream_synchronize(stream);
            if (status == RONDO_STATUS_OK && data->kind == STEP_WAITS_THEN_FAILS) {
                status = fail_for_a_reason_of_its_own();
            }
            break;
        case STEP_WAITS_CARELESSLY:
            (void)!rondo_stream_synchronize(stream);
            break;
        case STEP_LEAVES_A_BRANCH:
            status = rondo_event_record(data->event, stream);
            if (status == RONDO_STATUS_OK) {
                status = rondo_stream_wait_event(data->branch, data->event);
            }
            if (status == RONDO_STATUS_OK) {
                status = suite_affine(context, data->branch, data->x + COUNT, 1, 1, 0);
            }
            break;
        case STEP_FAILS:
            status = fail_for_a_reason_of_its_own();
            break;
        case STEP_LAUNCHES_WRONGLY:
            status =
                rondo_stream_launch(stream, &(rondo_launch){.struct_size = sizeof(rondo_launch),
                                                            .name = "wrong",
                                                            .function = context->affine});
            break;
        case STEP_ALLOCATES: {
            void *address = NULL;
            status = rondo_memory_allocate(context->device, RONDO_MEMORY_DEVICE, 64, &address);
            rondo_memory_free(context->device, address);
            break;
        }
        case STEP_RECORDS:
            break;
    }
    // A careless step does not notice that this is refused; a careful one is gone by now.
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(context, stream, data->x, COUNT, 1, 1);
        status = data->kind == STEP_WAITS_CARELESSLY ? RONDO_STATUS_OK : status;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_label_pop(stream);
    }
    return status;  // a step that fails leaves its scope open
}

typedef struct scene {
    suite_context *context;
    rondo_graph *graph;
    rondo_stream *stream;
    step_data data;
} scene;

static scene create_scene(suite_context *context) {
    scene s = {.context = context,
               .graph = suite_create_graph(context, false),
               .stream = suite_create_stream(context)};
    s.data.context = context;
    s.data.branch = suite_create_stream(context);
    s.data.event = suite_create_event(context, 0);
    s.data.x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT + 1);
    return s;
}

static void destroy_scene(scene *s) {
    rondo_graph_destroy(s->graph);
    rondo_event_destroy(s->data.event);
    rondo_stream_destroy(s->data.branch);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->data.x);
}

// Runs the step on x == 1 and waits.
static rondo_status capture(scene *s, step_kind kind, const rondo_step_options *options,
                            rondo_step_outcome *out_outcome) {
    s->data.kind = kind;
    s->data.call_count = 0;
    suite_set(s->context, s->data.x, 1, COUNT);
    rondo_status status =
        rondo_graph_capture_step(s->graph, s->stream, options, run_step, &s->data, out_outcome);
    rondo_error saved = *rondo_error_get_last();
    assert_string_equal(rondo_label_get_path(s->stream), "");
    ASSERT_OK(rondo_stream_synchronize(s->stream));
    ASSERT_OK(rondo_stream_synchronize(s->data.branch));
    if (status != RONDO_STATUS_OK) {
        assert_int_equal(saved.status, status);
    }
    return status;
}

static int32_t get_cause(scene *s) {
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(s->graph, &report));
    return report.cause;
}

SUITE_CASE(test_conformance_step__a_step_that_records) {
    scene s = create_scene(context);
    rondo_step_outcome outcome = RONDO_STEP_RAN_EAGERLY;
    ASSERT_OK(capture(&s, STEP_RECORDS, NULL, &outcome));
    assert_int_equal(outcome, RONDO_STEP_CAPTURED);
    assert_int_equal(s.data.call_count, 1);
    ASSERT_VALUE(s.context, s.data.x, 0, 1);
    ASSERT_OK(rondo_graph_replay(s.graph, s.stream));
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.data.x, COUNT - 1, 5);
    assert_int_equal(get_cause(&s), RONDO_CAUSE_NONE);
    destroy_scene(&s);
}

SUITE_CASE(test_conformance_step__what_cannot_be_recorded_runs) {
    static const struct {
        step_kind kind;
        rondo_capture_mode mode;
        rondo_capture_cause cause;
    } rows[] = {
        {STEP_WAITS, RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAUSE_SYNCHRONIZE},
        {STEP_WAITS_CARELESSLY, RONDO_CAPTURE_RELAXED, RONDO_CAUSE_SYNCHRONIZE},
        {STEP_LEAVES_A_BRANCH, RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAUSE_UNJOINED_STREAM},
        {STEP_ALLOCATES, RONDO_CAPTURE_GLOBAL, RONDO_CAUSE_ALLOCATION},
    };
    scene s = create_scene(context);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_step_options options = {.struct_size = sizeof options};
        rondo_step_outcome outcome = RONDO_STEP_CAPTURED;
        options.mode = rows[i].mode;
        ASSERT_OK(capture(&s, rows[i].kind, &options, &outcome));
        assert_int_equal(outcome, RONDO_STEP_RAN_EAGERLY);
        assert_int_equal(s.data.call_count, 2);
        ASSERT_VALUE(s.context, s.data.x, COUNT - 1, 5);
        assert_int_equal(get_cause(&s), rows[i].cause);
        ASSERT_STATUS(rondo_graph_replay(s.graph, s.stream), STATE);
        // Without the option the failure is the result, and nothing ran.
        options.capture_only = true;
        outcome = RONDO_STEP_CAPTURED;
        ASSERT_STATUS(capture(&s, rows[i].kind, &options, &outcome), STATE);
        assert_int_equal(outcome, RONDO_STEP_NOTHING);
        assert_int_equal(s.data.call_count, 1);
        ASSERT_VALUE(s.context, s.data.x, 0, 1);
        assert_int_equal(get_cause(&s), rows[i].cause);
        // The same graph records afterwards.
        ASSERT_OK(capture(&s, STEP_RECORDS, NULL, &outcome));
        assert_int_equal(outcome, RONDO_STEP_CAPTURED);
        ASSERT_OK(rondo_graph_reset(s.graph));
    }
    destroy_scene(&s);
}

SUITE_CASE(test_conformance_step__own_failures_are_passed_on) {
    scene s = create_scene(context);
    rondo_step_outcome outcome = RONDO_STEP_CAPTURED;
    ASSERT_STATUS(capture(&s, STEP_FAILS, NULL, &outcome), INVALID);
    assert_int_equal(outcome, RONDO_STEP_NOTHING);
    assert_int_equal(s.data.call_count, 1);
    ASSERT_VALUE(s.context, s.data.x, 0, 1);
    assert_int_equal(get_cause(&s), RONDO_CAUSE_ABORTED);
    ASSERT_STATUS(capture(&s, STEP_LAUNCHES_WRONGLY, NULL, &outcome), INVALID);
    assert_int_equal(outcome, RONDO_STEP_NOTHING);
    assert_int_equal(s.data.call_count, 1);
    assert_int_equal(get_cause(&s), RONDO_CAUSE_WORK_REFUSED);
    // A step that runs eagerly may still fail.
    ASSERT_STATUS(capture(&s, STEP_WAITS_THEN_FAILS, NULL, &outcome), INVALID);
    assert_int_equal(outcome, RONDO_STEP_NOTHING);
    assert_int_equal(s.data.call_count, 2);
    ASSERT_OK(capture(&s, STEP_RECORDS, NULL, &outcome));
    assert_int_equal(outcome, RONDO_STEP_CAPTURED);
    destroy_scene(&s);
}

// What ran eagerly drew the numbers that it would have drawn without any capture.
SUITE_CASE_EXECUTED(test_conformance_step__generators_and_pools_are_rolled_back) {
    scene s = create_scene(context);
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    rondo_step_outcome outcome;
    uint64_t seed = 77;
    s.data.generator = suite_create_generator(context, seed);
    s.data.random = suite_allocate(context, RONDO_MEMORY_DEVICE, DRAW_WORDS);
    ASSERT_OK(rondo_pool_create(context->device, NULL, &s.data.pool));
    for (uint64_t round = 0; round < 3; ++round) {
        ASSERT_OK(capture(&s, STEP_WAITS, NULL, &outcome));
        assert_int_equal(outcome, RONDO_STEP_RAN_EAGERLY);
        ASSERT_DRAWN(context, s.data.random, seed, round * DRAW_COUNTERS);
        ASSERT_STANDS(s.data.generator, seed, (round + 1) * DRAW_COUNTERS);
        ASSERT_OK(rondo_pool_get_stats(s.data.pool, &stats));
        assert_int_equal(stats.live_bytes, 0);
        // A step that gives up draws nothing.
        ASSERT_STATUS(capture(&s, STEP_FAILS, NULL, &outcome), INVALID);
        ASSERT_STANDS(s.data.generator, seed, (round + 1) * DRAW_COUNTERS);
    }
    ASSERT_OK(capture(&s, STEP_RECORDS, NULL, &outcome));
    assert_int_equal(outcome, RONDO_STEP_CAPTURED);
    ASSERT_OK(rondo_graph_replay(s.graph, s.stream));
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_DRAWN(context, s.data.random, seed, 3 * DRAW_COUNTERS);
    suite_free(context, RONDO_MEMORY_DEVICE, s.data.random);
    rondo_generator *generator = s.data.generator;
    rondo_pool *pool = s.data.pool;
    destroy_scene(&s);
    rondo_generator_release(generator);
    rondo_pool_release(pool);
}

SUITE_CASE(test_conformance_step__misuse) {
    scene s = create_scene(context);
    rondo_step_outcome outcome = RONDO_STEP_CAPTURED;
    rondo_step_options options = {.struct_size = sizeof options};
    ASSERT_STATUS(rondo_graph_capture_step(s.graph, s.stream, NULL, NULL, NULL, &outcome), INVALID);
    assert_int_equal(outcome, RONDO_STEP_NOTHING);
    ASSERT_STATUS(rondo_graph_capture_step(s.graph, s.stream, NULL, run_step, &s.data, NULL),
                  INVALID);
    ASSERT_STATUS(rondo_graph_capture_step(NULL, s.stream, NULL, run_step, &s.data, &outcome),
                  INVALID);
    ASSERT_STATUS(rondo_graph_capture_step(s.graph, NULL, NULL, run_step, &s.data, &outcome),
                  INVALID);
    options.struct_size = sizeof options + 8;
    ASSERT_STATUS(
        rondo_graph_capture_step(s.graph, s.stream, &options, run_step, &s.data, &outcome),
        INVALID);
    assert_int_equal(s.data.call_count, 0);
    // A graph that holds something cannot record; nor is the step run then.
    ASSERT_OK(capture(&s, STEP_RECORDS, NULL, &outcome));
    ASSERT_STATUS(rondo_graph_capture_step(s.graph, s.stream, NULL, run_step, &s.data, &outcome),
                  STATE);
    assert_int_equal(s.data.call_count, 1);
    destroy_scene(&s);
}
