// Programs that do not look at what calls return, functions that fail in ways of their own, and
// steps that do more than they should: no step loses work in silence, and no failure is blamed on
// an older one.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/control/inside_support.h"
#include "conformance/memory/memory_support.h"
#include "conformance/random/random_support.h"
#include "rondo/control.h"
#include "rondo/label.h"
#include "rondo/report.h"
#include "rondo/update.h"
#include "support/peek.h"

// ---- a call that failed is missing in the step ------------------------------------------------

typedef struct careless {
    suite_context *context;
    rondo_stream *stream;
    rondo_graph *conditional;  // cannot be recorded into another graph
    rondo_generator *generator;
    rondo_pool *pool;
    uint32_t *x;
} careless;

static rondo_status put_one(rondo_stream *stream, void *user_data) {
    careless *c = user_data;
    return suite_affine(c->context, stream, c->x, 1, 2, 1);
}

static rondo_status launch_null(careless *c) {
    return rondo_stream_launch(c->stream, NULL);
}

static rondo_status launch_with_unknown_flags(careless *c) {
    return rondo_stream_launch(c->stream, &(rondo_launch){.struct_size = sizeof(rondo_launch),
                                                          .name = "flags",
                                                          .function = c->context->affine,
                                                          .grid = {1, 1, 1},
                                                          .block = {1, 1, 1},
                                                          .flags = 1u << 9});
}

static rondo_status record_no_event(careless *c) {
    return rondo_event_record(NULL, c->stream);
}

static rondo_status wait_for_no_event(careless *c) {
    return rondo_stream_wait_event(c->stream, NULL);
}

static rondo_status choose_nothing(careless *c) {
    return rondo_control_if(c->stream, c->x, NULL, NULL, c);
}

static rondo_status switch_without_branches(careless *c) {
    return rondo_control_switch(c->stream, c->x, (rondo_body_function[]){put_one}, 0, c);
}

static rondo_status loop_over_odd_predicate(careless *c) {
    return rondo_control_while(c->stream, (char *)c->x + 1, put_one, c);
}

static rondo_status record_conditional_graph(careless *c) {
    return rondo_stream_add_graph(c->stream, c->conditional);
}

static rondo_status record_no_graph(careless *c) {
    return rondo_stream_add_graph(c->stream, NULL);
}

static rondo_status begin_scope_without_predicate(careless *c) {
    rondo_scope scope;
    return rondo_scope_begin(c->stream, RONDO_SCOPE_IF, NULL, 0, &scope);
}

static rondo_status begin_scope_for_nobody(careless *c) {
    return rondo_scope_begin(c->stream, RONDO_SCOPE_IF, c->x, 0, NULL);
}

static rondo_status enter_no_branch(careless *c) {
    rondo_scope scope;
    rondo_stream *body;
    rondo_status status = rondo_scope_begin(c->stream, RONDO_SCOPE_IF, c->x, 0, &scope);
    return status == RONDO_STATUS_OK ? rondo_scope_enter(scope, 7, &body) : status;
}

static rondo_status use_no_block(careless *c) {
    return rondo_pool_use(c->pool, c->stream, c->x);
}

static rondo_status draw_words_askew(careless *c) {
    return rondo_random_words(c->generator, c->stream, (uint32_t *)((uintptr_t)c->x + 1), 1);
}

static rondo_status draw_words_from_nobody(careless *c) {
    return rondo_random_words(NULL, c->stream, c->x, 1);
}

static rondo_status draw_nothing_from_nobody(careless *c) {
    return rondo_random_words(NULL, c->stream, c->x, 0);
}

static rondo_status draw_uniform_backwards(careless *c) {
    return rondo_random_uniform(c->generator, c->stream, RONDO_DTYPE_F32, c->x, 1, 1.0, 0.0);
}

static rondo_status draw_uniform_integers(careless *c) {
    return rondo_random_uniform(c->generator, c->stream, RONDO_DTYPE_I32, c->x, 1, 0.0, 1.0);
}

static rondo_status draw_normal_without_room(careless *c) {
    return rondo_random_normal(c->generator, c->stream, RONDO_DTYPE_F64, NULL, 1, 0.0, 1.0);
}

static rondo_status draw_normal_of_less_than_no_width(careless *c) {
    return rondo_random_normal(c->generator, c->stream, RONDO_DTYPE_F32, c->x, 1, 0.0, -1.0);
}

static rondo_status draw_bernoulli_for_certain(careless *c) {
    return rondo_random_bernoulli(c->generator, c->stream, RONDO_DTYPE_U8, c->x, 1, 2.0);
}

static rondo_status draw_bernoulli_of_no_type(careless *c) {
    return rondo_random_bernoulli(c->generator, c->stream, RONDO_DTYPE_NONE, c->x, 1, 0.5);
}

static rondo_status draw_bernoulli_each_of_integers(careless *c) {
    return rondo_random_bernoulli_each(c->generator, c->stream, RONDO_DTYPE_I32, c->x,
                                       RONDO_DTYPE_U8, c->x, 1);
}

static rondo_status drop_more_than_all(careless *c) {
    return rondo_random_dropout(c->generator, c->stream, RONDO_DTYPE_F32, c->x, c->x, NULL, 1, 1.5);
}

static rondo_status reserve_for_nobody(careless *c) {
    return rondo_generator_reserve(c->generator, c->stream, 1, NULL);
}

static rondo_status rewind_to_nothing(careless *c) {
    return rondo_generator_rewind(c->generator, c->stream, NULL);
}

static rondo_status rewind_to_elsewhere(careless *c) {
    return rondo_generator_rewind(c->generator, c->stream,
                                  &(rondo_generator_mark){.scope = UINT64_MAX});
}

// The first failure, and where the step was by then.
static void check_blame(const rondo_graph *graph, rondo_status status, const char *call) {
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(graph, &report));
    assert_int_equal(report.status, status);
    assert_int_equal(report.cause,
                     status == RONDO_STATUS_STATE ? RONDO_CAUSE_OTHER : RONDO_CAUSE_WORK_REFUSED);
    assert_string_equal(report.call, call);
    assert_true(report.has_last_node);
    // A scope that could be begun, and then not entered, is behind the second label.
    assert_memory_equal(report.last_node_label, "before", strlen("before"));
    assert_string_equal(report.label, "before/bad");
}

SUITE_CASE_EXECUTED(test_conformance_careless__a_step_does_not_lack_what_failed) {
    static const struct {
        rondo_status (*call)(careless *c);
        rondo_status status;
        bool needs_capture;
        const char *name;
    } cases[] = {
        {launch_null, RONDO_STATUS_INVALID, false, "rondo_stream_launch"},
        {launch_with_unknown_flags, RONDO_STATUS_INVALID, false, "rondo_stream_launch"},
        {record_no_event, RONDO_STATUS_INVALID, false, "rondo_event_record"},
        {wait_for_no_event, RONDO_STATUS_INVALID, false, "rondo_stream_wait_event"},
        {choose_nothing, RONDO_STATUS_INVALID, false, "rondo_control_if"},
        {switch_without_branches, RONDO_STATUS_INVALID, false, "rondo_control_switch"},
        {loop_over_odd_predicate, RONDO_STATUS_INVALID, false, "rondo_control_while"},
        {record_conditional_graph, RONDO_STATUS_UNSUPPORTED, true, "rondo_stream_add_graph"},
        {record_no_graph, RONDO_STATUS_INVALID, false, "rondo_stream_add_graph"},
        {begin_scope_without_predicate, RONDO_STATUS_INVALID, false, "rondo_scope_begin"},
        {begin_scope_for_nobody, RONDO_STATUS_INVALID, false, "rondo_scope_begin"},
        {enter_no_branch, RONDO_STATUS_INVALID, true, "rondo_scope_enter"},
        {use_no_block, RONDO_STATUS_INVALID, false, "rondo_pool_use"},
        {draw_words_askew, RONDO_STATUS_INVALID, false, "rondo_random_words"},
        {draw_words_from_nobody, RONDO_STATUS_INVALID, false, "rondo_random_words"},
        {draw_nothing_from_nobody, RONDO_STATUS_INVALID, false, "rondo_random_words"},
        {draw_uniform_backwards, RONDO_STATUS_INVALID, false, "rondo_random_uniform"},
        {draw_uniform_integers, RONDO_STATUS_UNSUPPORTED, false, "rondo_random_uniform"},
        {draw_normal_without_room, RONDO_STATUS_INVALID, false, "rondo_random_normal"},
        {draw_normal_of_less_than_no_width, RONDO_STATUS_INVALID, false, "rondo_random_normal"},
        {draw_bernoulli_for_certain, RONDO_STATUS_INVALID, false, "rondo_random_bernoulli"},
        {draw_bernoulli_of_no_type, RONDO_STATUS_UNSUPPORTED, false, "rondo_random_bernoulli"},
        {draw_bernoulli_each_of_integers, RONDO_STATUS_UNSUPPORTED, false,
         "rondo_random_bernoulli_each"},
        {drop_more_than_all, RONDO_STATUS_INVALID, false, "rondo_random_dropout"},
        {reserve_for_nobody, RONDO_STATUS_INVALID, false, "rondo_generator_reserve"},
        {rewind_to_nothing, RONDO_STATUS_INVALID, false, "rondo_generator_rewind"},
        {rewind_to_elsewhere, RONDO_STATUS_STATE, false, "rondo_generator_rewind"},
    };
    careless c = {.context = context, .stream = suite_create_stream(context)};
    c.x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    c.conditional = suite_create_graph(context, true);
    c.generator = suite_create_generator(context, 7);
    c.pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    suite_set(context, c.x, 0, 2);
    memory_begin(c.conditional, c.stream);
    ASSERT_OK(rondo_control_if(c.stream, c.x, put_one, NULL, &c));
    memory_end(c.conditional);
    rondo_graph *graph = suite_create_graph(context, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        // The same outside a capture, where nothing is to be broken.
        suite_assert_status(cases[i].call(&c),
                            cases[i].needs_capture ? RONDO_STATUS_STATE : cases[i].status,
                            cases[i].name, __FILE__, __LINE__);
        memory_begin(graph, c.stream);
        ASSERT_OK(rondo_label_push(c.stream, "before"));
        ASSERT_OK(put_one(c.stream, &c));
        ASSERT_OK(rondo_label_push(c.stream, "bad"));
        suite_assert_status(cases[i].call(&c), cases[i].status, cases[i].name, __FILE__, __LINE__);
        (void)rondo_label_pop(c.stream);
        (void)!put_one(c.stream, &c);
        (void)!launch_null(&c);
        ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
        assert_string_equal(rondo_error_get_last()->call, cases[i].name);
        check_blame(graph, cases[i].status, cases[i].name);
    }
    memory_begin(graph, c.stream);
    ASSERT_OK(put_one(c.stream, &c));
    memory_end(graph);
    memory_replay(graph, c.stream);
    ASSERT_VALUE(context, c.x, 0, 1);
    rondo_graph_destroy(graph);
    rondo_graph_destroy(c.conditional);
    rondo_generator_release(c.generator);
    rondo_pool_release(c.pool);
    rondo_stream_destroy(c.stream);
}

// What is not recorded, and what only asks, fails without harm.
SUITE_CASE_EXECUTED(test_conformance_careless__a_step_does_not_break_by_what_it_does_not_need) {
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_generator *generator = suite_create_generator(context, 7);
    rondo_pool_options small = {.struct_size = sizeof small};
    small.limit_bytes = 4096;
    rondo_pool *pool;
    ASSERT_OK(rondo_pool_create(context->device, &small, &pool));
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    bool answer;
    void *block = NULL;
    rondo_generator_mark mark;
    rondo_generator_state position;
    rondo_scope scope;
    memory_begin(graph, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(rondo_random_words(generator, stream, x, 0));
    ASSERT_OK(rondo_generator_get_mark(generator, stream, &mark));
    ASSERT_STATUS(rondo_pool_allocate(pool, stream, 1 << 20, &block), NO_DEVICE_MEMORY);
    ASSERT_STATUS(rondo_pool_free(pool, x), INVALID);
    ASSERT_STATUS(rondo_stream_is_recording(stream, NULL), INVALID);
    ASSERT_STATUS(rondo_stream_query(stream, NULL), INVALID);
    ASSERT_STATUS(rondo_event_query(NULL, &answer), INVALID);
    ASSERT_STATUS(rondo_label_push(stream, ""), INVALID);
    ASSERT_STATUS(rondo_label_pop(stream), STATE);
    ASSERT_STATUS(rondo_generator_get_mark(NULL, stream, &mark), INVALID);
    ASSERT_STATUS(rondo_generator_get_state(generator, &position), STATE);
    ASSERT_STATUS(rondo_graph_replay(graph, stream), STATE);
    ASSERT_STATUS(rondo_graph_upload(graph, stream), STATE);
    ASSERT_STATUS(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_RELAXED), STATE);
    // A scope that stays open is not forgotten by the end.
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, x, 0, &scope));
    ASSERT_STATUS(rondo_scope_leave(scope), STATE);
    ASSERT_OK(rondo_scope_end(scope));
    ASSERT_STATUS(rondo_scope_end(scope), STATE);
    memory_end(graph);
    memory_replay(graph, stream);
    ASSERT_VALUE(context, x, 0, 3);
    rondo_graph_destroy(graph);
    rondo_generator_release(generator);
    rondo_pool_release(pool);
    rondo_stream_destroy(stream);
}

// In a body too, which then cannot be left well.
SUITE_CASE_EXECUTED(test_conformance_careless__a_body_does_not_lack_what_failed) {
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_generator *generator = suite_create_generator(context, 7);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    for (int has_drawn = 0; has_drawn < 2; ++has_drawn) {
        rondo_scope scope;
        rondo_stream *body;
        memory_begin(graph, stream);
        ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, x, 0, &scope));
        ASSERT_OK(rondo_scope_enter(scope, 0, &body));
        if (has_drawn) {
            ASSERT_OK(rondo_random_words(generator, body, x, 1));
        }
        ASSERT_STATUS(rondo_random_words(generator, body, NULL, 1), INVALID);
        (void)rondo_scope_leave(scope);
        (void)rondo_scope_end(scope);
        ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
        assert_string_equal(rondo_error_get_last()->call, "rondo_random_words");
        rondo_capture_report report = {.struct_size = sizeof report};
        ASSERT_OK(rondo_graph_get_report(graph, &report));
        assert_string_equal(report.op, "rondo_random_words");
        assert_int_equal(report.last_node_depth, has_drawn);
    }
    rondo_graph_destroy(graph);
    rondo_generator_release(generator);
    rondo_stream_destroy(stream);
}

// ---- functions that fail without a call of Rondo's ----------------------------------------------

static rondo_status fail_by_itself(rondo_stream *stream, void *user_data) {
    (void)stream;
    (void)user_data;
    return RONDO_STATUS_INVALID;
}

// The thread's record is an old one of the same status.
static void leave_old_record(void) {
    ASSERT_STATUS(rondo_stream_synchronize(NULL), INVALID);
}

static void assert_new_record(const char *call) {
    ASSERT_MESSAGE_HAS("returned 1 (INVALID)");
    assert_string_equal(rondo_error_get_last()->call, call);
}

SUITE_CASE_EXECUTED(test_conformance_careless__own_failures_are_not_older_ones) {
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    const rondo_body_function bodies[] = {NULL, fail_by_itself};
    for (int records = 0; records < 2; ++records) {
        for (int kind = 0; kind < 3; ++kind) {
            if (records != 0) {
                memory_begin(graph, stream);
            }
            leave_old_record();
            if (kind == 0) {
                ASSERT_STATUS(rondo_control_if(stream, x, fail_by_itself, NULL, NULL), INVALID);
                assert_new_record("rondo_control_if");
            } else if (kind == 1) {
                ASSERT_STATUS(rondo_control_switch(stream, x, bodies, 2, NULL), INVALID);
                assert_new_record("rondo_control_switch");
            } else {
                ASSERT_STATUS(rondo_control_while(stream, x, fail_by_itself, NULL), INVALID);
                assert_new_record("rondo_control_while");
            }
            if (records != 0) {
                ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
                assert_new_record(kind == 0   ? "rondo_control_if"
                                  : kind == 1 ? "rondo_control_switch"
                                              : "rondo_control_while");
            }
        }
    }
    rondo_step_outcome outcome;
    leave_old_record();
    ASSERT_STATUS(rondo_graph_capture_step(graph, stream, NULL, fail_by_itself, NULL, &outcome),
                  INVALID);
    assert_new_record("rondo_graph_capture_step");
    assert_int_equal(outcome, RONDO_STEP_NOTHING);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// ---- steps that do more than put work on the stream ---------------------------------------------

typedef struct meddler {
    suite_context *context;
    rondo_graph *graph;
    uint32_t *x;
    bool aborts;
    int call_count;
} meddler;

static rondo_status end_own_capture(rondo_stream *stream, void *user_data) {
    meddler *m = user_data;
    ++m->call_count;
    if (m->aborts) {
        rondo_graph_capture_abort(m->graph);
        return RONDO_STATUS_OK;
    }
    rondo_status status = suite_affine(m->context, stream, m->x, 1, 2, 1);
    return status == RONDO_STATUS_OK ? rondo_graph_capture_end(m->graph) : status;
}

static rondo_status wait_and_destroy(rondo_stream *stream, void *user_data) {
    ++((meddler *)user_data)->call_count;
    rondo_status status = rondo_stream_synchronize(stream);
    rondo_stream_destroy(stream);
    return status;
}

SUITE_CASE(test_conformance_careless__steps_that_meddle_are_refused) {
    rondo_stream *stream = suite_create_stream(context);
    meddler m = {.context = context, .graph = suite_create_graph(context, false)};
    m.x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, m.x, 0, 1);
    rondo_step_outcome outcome;
    for (int i = 0; i < 2; ++i) {
        m.aborts = i == 1;
        m.call_count = 0;
        ASSERT_STATUS(
            rondo_graph_capture_step(m.graph, stream, NULL, end_own_capture, &m, &outcome), STATE);
        ASSERT_MESSAGE_HAS("by itself");
        assert_int_equal(outcome, RONDO_STEP_NOTHING);
        assert_int_equal(m.call_count, 1);
        ASSERT_STATUS(rondo_graph_replay(m.graph, stream), STATE);
    }
    // The first failure is the wait; the second call would get a stream that is gone.
    m.call_count = 0;
    ASSERT_STATUS(rondo_graph_capture_step(m.graph, stream, NULL, wait_and_destroy, &m, &outcome),
                  STATE);
    assert_int_equal(m.call_count, 1);
    ASSERT_VALUE(context, m.x, 0, 0);
    rondo_graph_destroy(m.graph);
}

// ---- memory given back the wrong way ------------------------------------------------------------

static void drop_warning(void *user_data, rondo_log_level level, const char *message) {
    (void)level;
    *(bool *)user_data = strstr(message, "rondo_pool_free") != NULL;
}

SUITE_CASE(test_conformance_careless__memory_of_pools_is_not_freed) {
    size_t area_count = peek_count_areas(context->device);
    rondo_stream *stream = suite_create_stream(context);
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    uint32_t *x = memory_take(pool, stream, 1);
    static bool was_told;  // outlives a case that stops here
    was_told = false;
    rondo_log_set_sink(drop_warning, &was_told);
    rondo_memory_free(context->device, x);
    rondo_log_set_sink(NULL, NULL);
    assert_true(was_told);
    memory_fill(stream, x, 5, 1);
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, x, 0, 5);
    memory_free(pool, x);
    rondo_pool_release(pool);
    rondo_stream_destroy(stream);
    assert_int_equal(peek_count_areas(context->device), area_count);
}

// A graph keeps pinned memory that its copies read beyond the end of the pool; a checked graph that
// is recorded with such an address asks nobody who is gone. (Address sanitizer: the pool.)
SUITE_CASE(test_conformance_careless__memory_that_outlives_its_pool) {
    rondo_stream *stream = suite_create_stream(context);
    uint32_t *y = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    size_t area_count = peek_count_areas(context->device);
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_PINNED);
    rondo_graph *keeper = suite_create_graph(context, false);
    rondo_graph *checked = memory_create_checked_graph(context);
    uint32_t *x = memory_take(pool, stream, 1);
    *x = 9;
    memory_begin(keeper, stream);
    ASSERT_OK(rondo_stream_copy(stream, y, x, sizeof *x, RONDO_COPY_HOST_TO_DEVICE));
    memory_end(keeper);
    memory_free(pool, x);
    rondo_pool_release(pool);
    memory_begin(checked, stream);
    ASSERT_OK(rondo_stream_copy(stream, y, x, sizeof *x, RONDO_COPY_HOST_TO_DEVICE));
    memory_end(checked);
    memory_replay(checked, stream);
    ASSERT_VALUE(context, y, 0, 9);
    rondo_graph_destroy(keeper);
    memory_replay(checked, stream);
    rondo_graph_destroy(checked);
    assert_int_equal(peek_count_areas(context->device), area_count);
    rondo_stream_destroy(stream);
}

// ---- counters -----------------------------------------------------------------------------------

static rondo_graph *capture_with_memory(suite_context *context, rondo_pool *pool,
                                        rondo_stream *stream) {
    rondo_graph *graph = suite_create_graph(context, true);
    memory_begin(graph, stream);
    uint32_t *x = memory_take(pool, stream, 1);
    memory_fill(stream, x, 1, 1);
    memory_free(pool, x);
    memory_end(graph);
    return graph;
}

static uint64_t count_executed(rondo_graph *graph) {
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    return stats.executed_count;
}

// Counters are since the last reset, whatever executable ran.
SUITE_CASE_EXECUTED(test_conformance_careless__executed_nodes_stay_counted) {
    if (context->is_cuda) {
        skip();  // the driver does not count
    }
    rondo_stream *stream = suite_create_stream(context);
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = capture_with_memory(context, pool, stream);
    rondo_graph *source = capture_with_memory(context, pool, stream);
    ASSERT_OK(rondo_graph_replay(graph, stream));
    memory_replay(graph, stream);
    assert_int_equal(count_executed(graph), 2);
    ASSERT_OK(rondo_graph_update(graph, source, NULL));
    assert_int_equal(count_executed(graph), 2);
    ASSERT_OK(rondo_graph_instantiate(graph));
    assert_int_equal(count_executed(graph), 2);
    memory_replay(graph, stream);
    assert_int_equal(count_executed(graph), 3);
    rondo_graph_destroy(source);
    rondo_graph_destroy(graph);
    rondo_pool_release(pool);
    rondo_stream_destroy(stream);
}
