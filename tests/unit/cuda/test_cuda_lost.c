// A device that is lost while captures are open, one of them of a conditional body: everything says
// so, everything can be destroyed, and the process goes on. On a real GPU only, in a process of its
// own, since a fault poisons the context. RONDO_REQUIRE=cuda makes skipping a failure.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "device/device.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { SKIP = 77 };

static rondo_device *g_device;

static const char g_text[] =
    "extern \"C\" __global__ void trespass(unsigned *x) { *(volatile unsigned *)16 = *x; }\n";

static void lose_device(rondo_stream *stream, uint32_t *x) {
    void *function = NULL;
    OK(rondo__device_get_function(g_device, g_text, NULL, 0, "trespass", &function));
    rondo_launch launch = LAUNCH("trespass", function, 1, 1, &x, sizeof x);
    OK(rondo_stream_launch(stream, &launch));
    assert_int_not_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_LOST);
}

TEST(test_cuda_lost__while_bodies_are_recorded) {
    rondo_stream *streams[4];
    rondo_stream *body = NULL;
    rondo_stream *inner_body = NULL;
    rondo_event *fork = NULL;
    rondo_event *plain = NULL;
    rondo_graph *graphs[3];
    rondo_pool *pool = NULL;
    rondo_generator *generator = NULL;
    rondo_scope scope;
    rondo_scope inner;
    uint32_t *x = NULL;
    void *taken = NULL;
    for (int i = 0; i < 4; ++i) {
        OK(rondo_stream_create(g_device, NULL, &streams[i]));
    }
    for (int i = 0; i < 3; ++i) {
        OK(rondo_graph_create(g_device, NULL, &graphs[i]));
    }
    OK(rondo_event_create(g_device, 0, &fork));
    OK(rondo_event_create(g_device, 0, &plain));
    OK(rondo_pool_create(g_device, NULL, &pool));
    OK(rondo_generator_create(g_device, 7, &generator));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 4096, (void **)&x));
    // One that is ready, one plain one, and one with two bodies and a branch in the inner one.
    OK(rondo_graph_capture_begin(graphs[0], streams[0], RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_fill(streams[0], x, 1, 4, 16));
    OK(rondo_graph_capture_end(graphs[0]));
    OK(rondo_graph_replay(graphs[0], streams[0]));
    OK(rondo_graph_capture_begin(graphs[1], streams[1], RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_pool_allocate(pool, streams[1], 4096, &taken));
    OK(rondo_stream_fill(streams[1], taken, 1, 4, 16));
    OK(rondo_graph_capture_begin(graphs[2], streams[2], RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_scope_begin(streams[2], RONDO_SCOPE_WHILE, x, 0, &scope));
    OK(rondo_scope_enter(scope, 0, &body));
    OK(rondo_stream_fill(body, x, 0, 4, 1));
    OK(rondo_scope_begin(body, RONDO_SCOPE_IF, x + 1, 0, &inner));
    OK(rondo_scope_enter(inner, 0, &inner_body));
    OK(rondo_event_record(fork, inner_body));
    OK(rondo_stream_wait_event(streams[3], fork));
    OK(rondo_stream_fill(streams[3], x + 2, 0, 4, 1));

    rondo_stream *victim = NULL;
    OK(rondo_stream_create(g_device, NULL, &victim));
    lose_device(victim, x);

    assert_int_not_equal(rondo_scope_leave(inner), RONDO_STATUS_OK);
    assert_int_not_equal(rondo_graph_capture_end(graphs[2]), RONDO_STATUS_OK);
    assert_int_not_equal(rondo_graph_capture_end(graphs[1]), RONDO_STATUS_OK);
    assert_int_not_equal(rondo_graph_replay(graphs[0], streams[0]), RONDO_STATUS_OK);
    assert_int_equal(rondo_event_record(plain, streams[0]), RONDO_STATUS_LOST);
    for (int i = 0; i < 3; ++i) {
        rondo_graph_destroy(graphs[i]);
    }
    (void)rondo_pool_free(pool, taken);
    rondo_pool_release(pool);
    rondo_generator_release(generator);
    rondo_event_destroy(plain);
    rondo_event_destroy(fork);
    rondo_memory_free(g_device, x);
    rondo_stream_destroy(victim);
    for (int i = 0; i < 4; ++i) {
        rondo_stream_destroy(streams[i]);
    }
}

int main(void) {
    if (rondo_device_open("cuda:0", &g_device) != RONDO_STATUS_OK) {
        const char *required = getenv("RONDO_REQUIRE");
        bool is_required = required != NULL && strstr(required, "cuda") != NULL;
        printf("%s: %s\n", is_required ? "failed" : "skipped", rondo_error_get_last()->message);
        return is_required ? 1 : SKIP;
    }
    int result = 0;
    if (rondo_device_supports(g_device, RONDO_FEATURE_IF) == RONDO_STATUS_OK) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_cuda_lost__while_bodies_are_recorded),
        };
        result = cmocka_run_group_tests(tests, NULL, NULL);
    } else {
        printf("skipped: %s\n", rondo_error_get_last()->message);
        result = SKIP;
    }
    rondo_device_release(g_device);
    return result;
}
