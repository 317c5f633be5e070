// Listening to CUPTI, over a fake one: what a record becomes, which span it belongs to, what is
// lost, and what a failure of any call leaves behind.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <pthread.h>

#include "base/clock.h"
#include "base/memory.h"
#include "profile/cupti_session.h"
#include "rondo/log.h"
#include "rondo/status.h"
#include "support/fake/fake_cupti.h"
#include "support/test.h"

enum { SEEN_MAX = 512 };

typedef struct seen {
    rondo__cupti_work works[SEEN_MAX];
    char names[SEEN_MAX][32];
    size_t count;
} seen;

static seen g_seen;

static void see(void *user_data, const rondo__cupti_work *work) {
    seen *all = user_data;
    if (all->count < SEEN_MAX) {
        all->works[all->count] = *work;
        (void)snprintf(all->names[all->count], sizeof all->names[0], "%s", work->name);
    }
    all->count += 1;
}

static void flush(void) {
    rondo__cupti_session_flush();
    rondo__cupti_session_visit(see, &g_seen);
}

static const rondo__cupti_api *install(const fake_cupti_options *options) {
    const rondo__cupti_api *api = NULL;
    fake_cupti_reset(options);
    fake_cupti_install();
    assert_int_equal(rondo__cupti_get_api(&api), RONDO_STATUS_OK);
    memset(&g_seen, 0, sizeof g_seen);
    return api;
}

static void check_closed(void) {
    assert_int_equal(fake_cupti_count_open(), 0);
    assert_string_equal(fake_cupti_get_violations(), "");
    fake_cupti_uninstall();
}

static void start(const fake_cupti_options *options) {
    assert_int_equal(rondo__cupti_session_start(install(options)), RONDO_STATUS_OK);
}

TEST(test_profile_cupti_session__joins_records_in_any_order) {
    for (int is_reversed = 0; is_reversed < 2; ++is_reversed) {
        char name[] = "gemm";
        start(&(fake_cupti_options){.reverses_records = is_reversed != 0});
        rondo__cupti_session_push(11);
        rondo__cupti_session_push(12);
        fake_cupti_add_kernel(fake_cupti_launch(), name, 0, 100, 250);
        rondo__cupti_session_pop(12);
        uint32_t graph = fake_cupti_launch();
        fake_cupti_add_kernel(graph, "relu", (UINT64_C(3) << 32) | 5, 300, 400);
        fake_cupti_add_copy(graph, RONDO__CUPTI_COPY_HTOD, 64, (UINT64_C(3) << 32) | 6, 400, 410);
        fake_cupti_add_kernel(fake_cupti_launch_by_runtime(), "library", 0, 420, 430);
        rondo__cupti_session_pop(11);
        fake_cupti_add_fill(fake_cupti_launch(), 16, 0, 500, 501);
        fake_cupti_add_copy(fake_cupti_launch(), RONDO__CUPTI_COPY_PTOP, 128, 0, 600, 700);
        name[0] = 'G';  // the module is gone
        flush();
        assert_int_equal(g_seen.count, 6);
        const struct {
            rondo__work_kind kind;
            rondo__way way;
            const char *name;
            uint64_t span, bytes, begin_ns, end_ns, graph_node;
        } rows[] = {
            {RONDO__WORK_KERNEL, RONDO__WAY_NONE, "gemm", 12, 0, 100, 250, 0},
            {RONDO__WORK_KERNEL, RONDO__WAY_NONE, "relu", 11, 0, 300, 400, 0x300000005},
            {RONDO__WORK_COPY, RONDO__WAY_H2D, "", 11, 64, 400, 410, 0x300000006},
            {RONDO__WORK_KERNEL, RONDO__WAY_NONE, "library", 11, 0, 420, 430, 0},
            {RONDO__WORK_FILL, RONDO__WAY_NONE, "", 0, 16, 500, 501, 0},
            {RONDO__WORK_COPY, RONDO__WAY_D2D, "", 0, 128, 600, 700, 0},
        };
        for (size_t i = 0; i < 6; ++i) {
            const rondo__cupti_work *work = &g_seen.works[i];
            assert_int_equal(work->kind, rows[i].kind);
            assert_int_equal(work->way, rows[i].way);
            assert_int_equal(work->span, rows[i].span);
            assert_int_equal(work->bytes, rows[i].bytes);
            assert_int_equal(work->begin_ns, rows[i].begin_ns);
            assert_int_equal(work->end_ns, rows[i].end_ns);
            assert_true(work->graph_node == rows[i].graph_node);
            assert_int_equal(work->stream, 7);
            if (i > 0) {
                assert_string_equal(g_seen.names[i], rows[i].name);
            }
        }
        rondo__cupti_session_stop();
        assert_int_equal(rondo__cupti_session_count_dropped(), 0);
        check_closed();
    }
}

// Buffers are full, come back and are used again; the names of gone modules stay.
TEST(test_profile_cupti_session__takes_many_records) {
    enum { COUNT = 20000 };
    static char names[7][8];
    start(NULL);
    for (uint32_t i = 0; i < COUNT; ++i) {
        char *name = names[i % 7];
        (void)snprintf(name, sizeof names[0], "k%u", (unsigned)(i % 7));
        rondo__cupti_session_push(i + 1);
        fake_cupti_add_kernel(fake_cupti_launch(), name, 0, i + 1, i + 2);
        rondo__cupti_session_pop(i + 1);
    }
    flush();
    assert_int_equal(g_seen.count, COUNT);
    for (uint32_t i = 0; i < SEEN_MAX; ++i) {
        assert_int_equal(g_seen.works[i].span, i + 1);
    }
    flush();
    assert_int_equal(g_seen.count, COUNT);
    rondo__cupti_session_stop();
    check_closed();
}

static void *end_span(void *span) {
    rondo__cupti_session_pop(*(uint64_t *)span);
    return NULL;
}

static uint64_t find_span_of_launch(void) {
    memset(&g_seen, 0, sizeof g_seen);
    fake_cupti_add_kernel(fake_cupti_launch(), "k", 0, 1, 2);
    flush();
    assert_int_equal(g_seen.count, 1);
    return g_seen.works[0].span;
}

TEST(test_profile_cupti_session__spans_end_in_any_order) {
    start(NULL);
    uint64_t span = 1;
    pthread_t thread;
    rondo__cupti_session_push(1);
    rondo__cupti_session_push(2);
    rondo__cupti_session_push(3);
    assert_int_equal(pthread_create(&thread, NULL, end_span, &span), 0);
    pthread_join(thread, NULL);
    assert_int_equal(find_span_of_launch(), 3);
    rondo__cupti_session_pop(2);  // before the one inside
    assert_int_equal(find_span_of_launch(), 3);
    rondo__cupti_session_pop(3);
    assert_int_equal(find_span_of_launch(), 1);
    rondo__cupti_session_pop(99);
    rondo__cupti_session_pop(1);
    assert_int_equal(find_span_of_launch(), 0);
    for (uint64_t i = 1; i <= 100; ++i) {
        rondo__cupti_session_push(i);
    }
    assert_int_equal(find_span_of_launch(), 64);  // as deep as it goes
    for (uint64_t i = 100; i >= 2; --i) {
        rondo__cupti_session_pop(i);
    }
    rondo__cupti_session_push(200);
    assert_int_equal(find_span_of_launch(), 200);
    rondo__cupti_session_stop();  // 1 and 200 are open
    // The next one does not know them.
    assert_int_equal(rondo__cupti_session_start(install(NULL)), RONDO_STATUS_OK);
    rondo__cupti_session_pop(200);
    assert_int_equal(find_span_of_launch(), 0);
    rondo__cupti_session_push(5);
    rondo__cupti_session_pop(5);
    assert_int_equal(find_span_of_launch(), 0);
    rondo__cupti_session_stop();
    check_closed();
}

TEST(test_profile_cupti_session__counts_what_is_lost) {
    start(NULL);
    fake_cupti_add_kernel(fake_cupti_launch(), "untimed", 0, 0, 0);
    fake_cupti_add_kernel(fake_cupti_launch(), "timed", 0, 5, 9);
    fake_cupti_drop(40);
    flush();
    rondo__cupti_session_stop();
    assert_int_equal(g_seen.count, 2);
    assert_int_equal(rondo__cupti_session_count_dropped(), 40);
    rondo__cupti_session_drop();
    assert_int_equal(rondo__cupti_session_count_dropped(), 41);
    start(NULL);
    assert_int_equal(rondo__cupti_session_count_dropped(), 0);
    rondo__cupti_session_stop();
    check_closed();
}

TEST(test_profile_cupti_session__says_why_not) {
    assert_int_equal(rondo__cupti_session_start(install(&(fake_cupti_options){.is_taken = true})),
                     RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "another tool"));
    assert_string_equal(rondo_error_get_last()->call, "cuptiSubscribe");
    check_closed();

    rondo__cupti_api api;
    fake_cupti_reset(&(fake_cupti_options){.version = 17});
    assert_int_equal(rondo__cupti_api_load(fake_cupti_resolve, NULL, "libcupti.so.11.8", &api),
                     RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "version 17"));
    fake_cupti_reset(&(fake_cupti_options){.missing_symbol = "cuptiActivityFlushAll"});
    assert_int_equal(rondo__cupti_api_load(fake_cupti_resolve, NULL, "libcupti.so.11.8", &api),
                     RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "cuptiActivityFlushAll"));
}

// A CUPTI that cannot choose calls tells of all of them.
TEST(test_profile_cupti_session__works_without_a_choice_of_calls) {
    start(&(fake_cupti_options){.missing_symbol = "cuptiActivityEnableDriverApi"});
    rondo__cupti_session_push(4);
    assert_int_equal(find_span_of_launch(), 4);
    rondo__cupti_session_pop(4);
    rondo__cupti_session_stop();
    check_closed();
}

static void run_once(const rondo__cupti_api *api, rondo_status *out_status) {
    *out_status = rondo__cupti_session_start(api);
    if (*out_status == RONDO_STATUS_OK) {
        rondo__cupti_session_push(1);
        fake_cupti_add_kernel(fake_cupti_launch(), "k", 0, 1, 2);
        rondo__cupti_session_pop(1);
        flush();
        rondo__cupti_session_stop();
    }
}

TEST(test_profile_cupti_session__survives_each_failing_call) {
    size_t refused_count = 0;
    bool has_failed = true;
    for (long n = 0; has_failed; ++n) {
        const rondo__cupti_api *api = install(NULL);
        rondo_status status = RONDO_STATUS_OK;
        fake_cupti_fail_nth(n, RONDO__CUPTI_ERROR_UNKNOWN);
        run_once(api, &status);
        has_failed = fake_cupti_has_failed();
        assert_true(status == RONDO_STATUS_OK || status == RONDO_STATUS_UNAVAILABLE);
        if (status != RONDO_STATUS_OK) {
            refused_count += 1;
            assert_non_null(strstr(rondo_error_get_last()->call, "cupti"));
        } else if (!has_failed) {
            assert_int_equal(g_seen.count, 1);
            assert_int_equal(g_seen.works[0].span, 1);
        }
        check_closed();
    }
    assert_true(refused_count > 8);
}

static bool fail_now(void *countdown) {
    long *left = countdown;
    return (*left)-- == 0;
}

TEST(test_profile_cupti_session__counts_what_has_no_room) {
    for (long n = 0; n < 6; ++n) {
        const rondo__cupti_api *api = install(NULL);
        rondo_status status = RONDO_STATUS_OK;
        long left = n;
        rondo__memory_set_fault(fail_now, &left);
        const int64_t balance = rondo__memory_get_balance();
        run_once(api, &status);
        rondo__memory_set_fault(NULL, NULL);
        assert_int_equal(rondo__memory_get_balance(), balance);
        assert_int_equal(status, RONDO_STATUS_OK);
        // A name that is lost leaves the times.
        assert_true(g_seen.count == 1 || rondo__cupti_session_count_dropped() > 0);
        assert_true(left < 0 || g_seen.works[0].span == 1);
        check_closed();
    }
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);  // failing clean-up is told as a warning
    return RUN_TESTS(NULL, NULL);
}
