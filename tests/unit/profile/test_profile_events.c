// Timing events as the source of a profile's device times, over the fake driver, whose events have
// the host's time: what a span becomes, on whose clock, and what failures leave.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/log/hook.h"
#include "base/memory.h"
#include "profile/event_clock.h"
#include "profile/profile.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/add_program.h"
#include "support/sweep.h"
#include "support/test.h"

static rondo_device *g_device;
static rondo_stream *g_stream;

static int set_up(void **state) {
    (void)state;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    OK(rondo_device_open("cuda:0", &g_device));
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
    return 0;
}

static void spin(uint64_t ns) {
    const uint64_t end = rondo__clock_now_ns() + ns;
    while (rondo__clock_now_ns() < end) {
    }
}

static rondo__hook_scope begin(rondo__span_category category, const char *name,
                               rondo_stream *stream) {
    return rondo__hook_is_on(RONDO__HOOK_SPANS)
               ? rondo__hook_begin(
                     &(rondo__hook_span){.category = category, .name = name, .stream = stream})
               : (rondo__hook_scope){0};
}

static rondo_profile *start(void) {
    rondo_profile *profile = NULL;
    rondo_profile_options options = {.struct_size = sizeof options,
                                     .source = RONDO_PROFILE_SOURCE_EVENTS};
    OK(rondo_profile_create(&options, &profile));
    OK(rondo_profile_start(profile));
    return profile;
}

static const rondo__profile_work *find_work(const rondo_profile *profile, const char *name) {
    const rondo__profile_records *records = &profile->store.records;
    for (size_t i = 0; i < records->work_count; ++i) {
        if (strcmp(records->works[i].name, name) == 0) {
            return &records->works[i];
        }
    }
    return NULL;
}

// The work lies where the clock was read, give or take what it takes to tie two clocks.
static void check_within(const rondo__profile_work *work, uint64_t begin_ns, uint64_t end_ns) {
    enum { SLACK_NS = 300 * 1000 };
    assert_non_null(work);
    assert_true(work->begin_ns + SLACK_NS >= begin_ns);
    assert_true(work->end_ns <= end_ns + SLACK_NS);
    assert_true(work->begin_ns <= work->end_ns);
}

TEST(test_profile_events__measures_ops_replays_and_copies) {
    static const rondo__span_category categories[] = {RONDO__SPAN_OP, RONDO__SPAN_REPLAY,
                                                      RONDO__SPAN_COPY};
    static const rondo__work_kind kinds[] = {RONDO__WORK_KERNEL, RONDO__WORK_GRAPH,
                                             RONDO__WORK_COPY};
    static const char *const names[] = {"Conv a", "replay b", "copy c"};
    uint64_t begin_ns[3];
    uint64_t end_ns[3];
    rondo_profile *profile = start();
    for (int i = 0; i < 3; ++i) {
        begin_ns[i] = rondo__clock_now_ns();
        rondo__hook_scope outer = begin(RONDO__SPAN_RUN, "run", NULL);
        rondo__hook_scope scope = begin(categories[i], names[i], g_stream);
        spin(5 * 1000 * 1000);
        rondo__hook_leave(&scope);
        rondo__hook_leave(&outer);
        end_ns[i] = rondo__clock_now_ns();
    }
    OK(rondo_profile_stop(profile));
    assert_int_equal(profile->store.records.work_count, 3);
    for (int i = 0; i < 3; ++i) {
        const rondo__profile_work *work = find_work(profile, names[i]);
        check_within(work, begin_ns[i], end_ns[i]);
        const uint64_t duration_ns = work->end_ns - work->begin_ns;
        assert_true(duration_ns >= 5 * 1000 * 1000 && duration_ns <= end_ns[i] - begin_ns[i]);
        assert_int_equal(work->kind, kinds[i]);
        assert_int_equal(work->device, 0);
        assert_string_equal(profile->store.records.spans[work->span - 1].name, names[i]);
    }
    assert_non_null(strstr(profile->store.records.source, "timing events"));
    assert_int_equal(profile->store.records.dropped_count, 0);
    rondo_profile_destroy(profile);
}

TEST(test_profile_events__measures_a_replay) {
    rondo_graph *graph = NULL;
    void *memory = NULL;
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 64, &memory));
    OK(rondo_graph_create(g_device, NULL, &graph));
    rondo_profile *profile = start();
    rondo_profile_destroy(profile);
    profile = start();
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo__hook_scope scope = begin(RONDO__SPAN_OP, "recorded", g_stream);
    OK(rondo_stream_fill(g_stream, memory, 7, 4, 16));
    rondo__hook_leave(&scope);
    OK(rondo_graph_capture_end(graph));
    OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 1);
    OK(rondo_graph_replay(graph, g_stream));
    OK(rondo_profile_stop(profile));
    assert_null(find_work(profile, "recorded"));
    const rondo__profile_work *work = find_work(profile, "replay graph");
    assert_non_null(work);
    assert_int_equal(work->kind, RONDO__WORK_GRAPH);
    rondo_profile_destroy(profile);
    rondo_graph_destroy(graph);
    rondo_memory_free(g_device, memory);
}

static size_t count_kind(const rondo_profile *profile, rondo__work_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < profile->store.records.work_count; ++i) {
        count += profile->store.records.works[i].kind == kind ? 1 : 0;
    }
    return count;
}

static rondo__hook_scope begin_next(const char *name) {
    return rondo__hook_begin(&(rondo__hook_span){
        .category = RONDO__SPAN_OP, .name = name, .stream = g_stream, .is_next = true});
}

// One event a span where spans follow each other on a stream, and where something came in between
// two, as the time in between is nobody's.
TEST(test_profile_events__begins_where_the_one_before_ended) {
    static const char *const names[] = {"a", "b", "c", "d"};
    enum { SPAN_NS = 2 * 1000 * 1000, GAP_NS = 20 * 1000 * 1000 };
    rondo_profile *profile = start();
    const size_t count = fake_cuda_count_calls("cuEventRecord");
    for (int i = 0; i < 4; ++i) {
        rondo__hook_scope scope = begin_next(names[i]);
        spin(SPAN_NS);
        rondo__hook_leave(&scope);
        if (i == 1) {
            scope = begin(RONDO__SPAN_WAIT, "wait", NULL);
            spin(GAP_NS);
            rondo__hook_leave(&scope);
        }
    }
    // a: two, b: one, c: two, d: one
    assert_int_equal(fake_cuda_count_calls("cuEventRecord") - count, 6);
    OK(rondo_profile_stop(profile));
    assert_int_equal(profile->store.records.work_count, 4);
    assert_int_equal(profile->store.records.dropped_count, 0);
    const rondo__profile_work *last = NULL;
    for (int i = 0; i < 4; ++i) {
        const rondo__profile_work *work = find_work(profile, names[i]);
        assert_non_null(work);
        const uint64_t duration_ns = work->end_ns - work->begin_ns;
        assert_true(duration_ns >= SPAN_NS);
        if (i == 2) {
            assert_true(work->begin_ns - last->end_ns >= GAP_NS);
        } else if (i > 0) {
            assert_true(work->begin_ns == last->end_ns);
        }
        last = work;
    }
    rondo_profile_destroy(profile);
}

// An executor's ops where it launches them, its graphs where it replays, and its copies.
TEST(test_profile_events__measures_an_executor) {
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    add_program_prepare_fake();
    OK(add_program_create(g_device, RONDO_GRAPHS_ON, &program, &executor));
    for (int is_replayed = 0; is_replayed < 2; ++is_replayed) {
        rondo_profile *profile = start();
        OK(add_program_run(executor, 1));
        OK(rondo_profile_stop(profile));
        assert_int_equal(count_kind(profile, RONDO__WORK_KERNEL), is_replayed ? 0 : 2);
        assert_int_equal(count_kind(profile, RONDO__WORK_GRAPH), is_replayed ? 1 : 0);
        assert_true(count_kind(profile, RONDO__WORK_COPY) >= 2);
        assert_int_equal(profile->store.records.dropped_count, 0);
        rondo_profile_destroy(profile);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

TEST(test_profile_events__knows_devices_that_are_opened_later) {
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    rondo_profile *profile = start();
    OK(rondo_device_open("cuda:0", &g_device));
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    const uint64_t begin_ns = rondo__clock_now_ns();
    rondo__hook_scope scope = begin(RONDO__SPAN_OP, "late", g_stream);
    spin(1000 * 1000);
    rondo__hook_leave(&scope);
    const uint64_t end_ns = rondo__clock_now_ns();
    OK(rondo_profile_stop(profile));
    check_within(find_work(profile, "late"), begin_ns, end_ns);
    rondo_profile_destroy(profile);
}

static void *end_scope(void *scope) {
    rondo__hook_leave(scope);
    return NULL;
}

TEST(test_profile_events__leaves_out_what_has_no_end) {
    pthread_t thread;
    rondo_profile *profile = start();
    rondo__hook_scope open = begin(RONDO__SPAN_OP, "open", g_stream);
    rondo__hook_scope other = begin(RONDO__SPAN_OP, "ended elsewhere", g_stream);
    rondo__hook_scope first = begin(RONDO__SPAN_OP, "ended first", g_stream);
    rondo__hook_scope inner = begin(RONDO__SPAN_OP, "ended last", g_stream);
    assert_int_equal(pthread_create(&thread, NULL, end_scope, &other), 0);
    pthread_join(thread, NULL);
    rondo__hook_leave(&first);
    rondo__hook_leave(&inner);
    OK(rondo_profile_stop(profile));
    rondo__hook_leave(&open);
    assert_null(find_work(profile, "open"));
    assert_null(find_work(profile, "ended elsewhere"));
    assert_non_null(find_work(profile, "ended first"));
    assert_non_null(find_work(profile, "ended last"));
    rondo_profile_destroy(profile);
}

// ---- the clock --------------------------------------------------------------------------------

typedef struct seen {
    size_t count;
    uint64_t begin_ns[512];
    uint64_t end_ns[512];
} seen;

static void see(void *user_data, const rondo__event_clock *clock, const rondo__event_time *time) {
    (void)clock;
    seen *all = user_data;
    assert_true(time->span < 512);
    all->begin_ns[time->span] = time->begin_ns;
    all->end_ns[time->span] = time->end_ns;
    all->count += 1;
}

// More pairs than there are: those that have happened are read in between, none is lost.
TEST(test_profile_events__uses_pairs_again) {
    enum { PAIRS = 16, COUNT = 500 };
    static seen all;
    static uint64_t now_ns[COUNT];
    memset(&all, 0, sizeof all);
    rondo__event_clock *clock = rondo__event_clock_create(g_device, g_stream, PAIRS);
    assert_non_null(clock);
    rondo__event_clock_tie(clock);
    rondo__event_pair *former = NULL;
    for (size_t i = 0; i < COUNT; ++i) {
        now_ns[i] = rondo__clock_now_ns();
        rondo__event_pair *pair = rondo__event_clock_begin(clock, g_stream, former);
        assert_non_null(pair);
        pair->span = i;
        spin(i == COUNT / 2 ? 1100 * 1000 * 1000 : 10000);  // the base moves along
        assert_true(rondo__event_clock_end(clock, pair, g_stream));
        if (former != NULL) {
            rondo__event_clock_release(clock, former);
        }
        former = pair;
        if (i % 5 == 0) {  // the next one begins by itself
            rondo__event_clock_release(clock, former);
            former = NULL;
        }
    }
    assert_true(fake_cuda_count_calls("cuEventCreate") <= 2 * PAIRS + 4);
    rondo__event_clock_read(clock, see, &all);
    assert_int_equal(all.count, COUNT);
    assert_int_equal(rondo__event_clock_count_lost(clock), 0);
    for (size_t i = 0; i < COUNT; ++i) {
        if (i > 0 && (i - 1) % 5 != 0) {
            assert_true(all.begin_ns[i] == all.end_ns[i - 1]);
        } else {
            assert_true(all.begin_ns[i] + 300000 > now_ns[i]);
        }
        assert_true(all.begin_ns[i] < now_ns[i] + 100 * 1000 * 1000);
        assert_true(all.end_ns[i] - all.begin_ns[i] > 9000);
    }
    rondo__event_clock_destroy(clock);
}

// ---- failures ---------------------------------------------------------------------------------

static void profile_once(size_t *out_known_count) {
    rondo_profile *profile = NULL;
    rondo_profile_options options = {.struct_size = sizeof options,
                                     .source = RONDO_PROFILE_SOURCE_EVENTS};
    *out_known_count = 0;
    if (rondo_profile_create(&options, &profile) == RONDO_STATUS_OK &&
        rondo_profile_start(profile) == RONDO_STATUS_OK) {
        rondo__hook_scope scope = begin(RONDO__SPAN_OP, "op", g_stream);
        rondo__hook_leave(&scope);
        if (rondo_profile_stop(profile) == RONDO_STATUS_OK) {
            *out_known_count =
                profile->store.records.work_count + profile->store.records.dropped_count;
        }
    }
    rondo_profile_destroy(profile);
}

TEST(test_profile_events__survives_each_failing_call) {
    const size_t object_count = fake_cuda_count_objects();
    bool has_failed = true;
    const long every = (long)sweep_get_every();
    for (long n = 0; has_failed; n += every * (n < 40 || n > 500 ? 1 : 7)) {
        size_t known_count = 0;
        fake_cuda_fail_nth(n, RONDO__CU_ERROR_INVALID_VALUE);
        profile_once(&known_count);
        has_failed = fake_cuda_has_failed();
        fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
        assert_int_equal(known_count, 1);
        assert_int_equal(fake_cuda_count_objects(), object_count);
    }
}

static bool fail_now(void *countdown) {
    long *left = countdown;
    return (*left)-- == 0;
}

TEST(test_profile_events__survives_want_of_memory) {
    const size_t object_count = fake_cuda_count_objects();
    long left = 0;
    const long every = (long)sweep_get_every();
    for (long n = 0; n == 0 || left < 0; n += every * (n < 40 || n > 700 ? 1 : 9)) {
        size_t known_count = 0;
        left = n;
        rondo__memory_set_fault(fail_now, &left);
        const int64_t balance = rondo__memory_get_balance();
        profile_once(&known_count);
        rondo__memory_set_fault(NULL, NULL);
        assert_int_equal(rondo__memory_get_balance(), balance);
        assert_int_equal(fake_cuda_count_objects(), object_count);
    }
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);  // failing clean-up is told as a warning
    return test_run("tests", g_listed, set_up, tear_down, NULL, NULL);
}
