// RONDO_GRAPHS_MEASURED with planted times, on the host, a real GPU where there is one, and the
// fake driver: which way runs go, why, and that what they compute is the same.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/add_world.h"
#include "support/on_devices.h"
#include "support/test.h"
#include "support/text_sink.h"

// What runs are said to take.
typedef struct costs {
    uint64_t eager_ns, replay_ns;
} costs;

static uint64_t get_ns(void *user_data, rondo__choice choice) {
    const costs *c = user_data;
    return choice == RONDO__CHOICE_CAPTURE  ? 4 * c->eager_ns
           : choice == RONDO__CHOICE_REPLAY ? c->replay_ns
                                            : c->eager_ns;
}

static add_world *open_world(costs *c) {
    add_world *w = add_world_open(RONDO_GRAPHS_MEASURED, false);
    w->executor->resources.governor.get_ns = get_ns;
    w->executor->resources.governor.user_data = c;
    return w;
}

static bool was_replayed(const add_world *w) {
    rondo_run_times times = {.struct_size = sizeof times};
    OK(rondo_executor_get_times(w->executor, &times));
    assert_int_equal(times.replayed_op_count, times.was_replayed ? times.ran_op_count : 0);
    return times.was_replayed;
}

static bool run(const add_world *w, float first) {
    OK(add_program_run(w->executor, first));
    return was_replayed(w);
}

// How many of `count` runs were replayed.
static int run_often(const add_world *w, int count) {
    int replayed = 0;
    for (int i = 0; i < count; ++i) {
        replayed += run(w, (float)(i % 100));
    }
    return replayed;
}

static bool has_graph(const add_world *w) {
    return w->executor->main.current->steps[0].run.graph != NULL;
}

static void expect_text(const add_world *w, rondo_text_format format, const char *words) {
    text_sink sink = {{0}, 0};
    OK(rondo_executor_describe(w->executor, format, text_sink_append, &sink));
    if (strstr(sink.text, words) == NULL) {
        fail_msg("\"%s\" is not in: %s", words, sink.text);
    }
}

TEST(test_executor_governed__what_pays_is_replayed) {
    costs c = {100000, 10000};
    add_world *w = open_world(&c);
    expect_text(w, RONDO_TEXT_PLAIN, "graphs measured: not run yet");
    assert_int_equal(run_often(w, 6), 0);
    assert_false(has_graph(w));
    expect_text(w, RONDO_TEXT_PLAIN, "measured: eager: 100 us; a capture should cost 400 us");
    assert_true(run(w, 3));
    expect_text(w, RONDO_TEXT_JSON, "\"graphs\": {\"choice\": \"replay\", \"reason\": \"replay: ");
    // All but the 4096th, whose eager run is measured anew.
    assert_int_equal(run_often(w, 4096), 4095);
    expect_text(w, RONDO_TEXT_PLAIN, "graphs measured: replay: 10 us against 100 us eager; ");
    expect_text(w, RONDO_TEXT_JSON, "\"eager_ns\": 100000, \"replay_ns\": 10000}");
    add_world_close(w);
}

TEST(test_executor_governed__what_is_slower_does_not_stay) {
    costs c = {10000, 1000};
    add_world *w = open_world(&c);
    assert_true(run_often(w, 100) > 80);
    // The machine has changed: the median of seven samples, one in 64, then eager runs.
    c.replay_ns = 20000;
    const int replayed = run_often(w, 1000);
    assert_in_range(replayed, 1, 64 * 6);
    assert_false(has_graph(w));
    assert_int_equal(run_often(w, 200), 0);
    expect_text(w, RONDO_TEXT_PLAIN, "graphs measured: eager: 10 us against 20 us replayed");
    expect_text(w, RONDO_TEXT_JSON, "{\"choice\": \"eager\", \"reason\": \"eager: 10 us");
    // It is tried again, hardly ever; and stays once it is faster again.
    assert_true(run_often(w, 4000) < 64);
    c.replay_ns = 1000;
    assert_true(run_often(w, 4000) > 100);
    assert_true(has_graph(w));
    add_world_close(w);
}

// Within an eighth nothing changes, and other modes do not ask.
TEST(test_executor_governed__no_flipping_and_other_modes) {
    costs c = {10000, 1000};
    add_world *w = open_world(&c);
    (void)run_often(w, 20);
    c.replay_ns = 11000;
    const int replayed = run_often(w, 2000);
    assert_in_range(replayed, 1900, 1999);
    assert_true(has_graph(w));
    c.replay_ns = 50000;
    OK(rondo_executor_set_graphs(w->executor, RONDO_GRAPHS_AUTO));
    assert_int_equal(run_often(w, 1000), 1000);
    text_sink sink = {{0}, 0};
    OK(rondo_executor_describe(w->executor, RONDO_TEXT_JSON, text_sink_append, &sink));
    assert_null(strstr(sink.text, "\"graphs\""));
    OK(rondo_executor_set_graphs(w->executor, RONDO_GRAPHS_OFF));
    assert_false(run(w, 1));
    EXPECT(INVALID, "no such rondo_graphs_mode",
           rondo_executor_set_graphs(w->executor, (rondo_graphs_mode)4));
    add_world_close(w);
}

// Bound runs go through one graph of their own; that one is not taken either where it is slower.
static rondo_bound_run *bind(const add_world *w) {
    rondo_bound_run *bound;
    OK(rondo_bound_run_create(w->executor, &bound));
    OK(rondo_bound_run_set_feed(bound, "x", &w->x));
    OK(rondo_bound_run_set_fetch(bound, "y", &w->y));
    return bound;
}

static int run_bound(const add_world *w, rondo_bound_run *bound, int count) {
    int replayed = 0;
    for (int i = 0; i < count; ++i) {
        OK(rondo_bound_run_run(bound));
        replayed += was_replayed(w);
    }
    add_world_expect(w->stream, &w->y, 7, true);
    return replayed;
}

TEST(test_executor_governed__bound_runs) {
    costs c = {10000, 1000};
    add_world *w = open_world(&c);
    rondo_bound_run *bound = bind(w);
    add_world_write(w->stream, &w->x, 7);
    assert_int_equal(run_bound(w, bound, 6), 0);
    assert_int_equal(run_bound(w, bound, 200), 200);
    c.replay_ns = 20000;
    assert_in_range(run_bound(w, bound, 1000), 1, 64 * 6);
    assert_int_equal(run_bound(w, bound, 100), 0);
    expect_text(w, RONDO_TEXT_PLAIN, "graphs measured: eager: 10 us against 20 us replayed");
    rondo_bound_run_destroy(bound);
    add_world_close(w);
}

// What is not waited for is not measured: as in AUTO, until replays were found slower.
TEST(test_executor_governed__runs_that_are_not_waited_for) {
    costs c = {10000, 1000};
    add_world *w = open_world(&c);
    add_world_write(w->stream, &w->x, 7);
    const rondo_binding feed = {"x", w->x};
    rondo_binding fetch = {"y", w->y};
    for (int i = 0; i < 400; ++i) {
        const bool is_slower = i >= 4;
        if (i == 4) {  // waited for, with a graph that is there
            c.replay_ns = 20000;
            (void)run_often(w, 600);
            expect_text(w, RONDO_TEXT_PLAIN, "graphs measured: eager: 10 us against 20 us");
        }
        OK(rondo_executor_run_async(w->executor, &feed, 1, &fetch, 1, NULL));
        OK(rondo_executor_wait(w->executor));
        assert_int_equal(was_replayed(w), !is_slower && i > 0);
    }
    add_world_expect(w->stream, &w->y, 7, true);
    add_world_close(w);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
