// Fail the nth in a profile of captures, replays and copies: every driver call (on the fake driver)
// and every allocation (there and on the host) fails once, in turn. Whatever fails: the failing
// call wrote a fresh record, nothing stays behind, and a profile can be made again. What a profile
// has no memory for it drops and counts.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/rondo.h"
#include "support/sweep.h"
#include "support/text_sink.h"

typedef struct round {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_profile *profile;
    void *memory;
} round;

static void do_nothing(void *arguments) {
    (void)arguments;
}

static void capture_and_replay(round *r) {
    static char bytes[256];
    STEP(rondo_graph_create(r->device, NULL, &r->graph));
    STEP(rondo_graph_capture_begin(r->graph, r->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_label_push(r->stream, "layer"));
    STEP(rondo_stream_call_host(r->stream, "nothing", do_nothing, NULL, 0));
    STEP(rondo_label_pop(r->stream));
    STEP(rondo_graph_capture_end(r->graph));
    STEP(rondo_memory_allocate(r->device, RONDO_MEMORY_DEVICE, sizeof bytes, &r->memory));
    STEP(rondo_profile_begin("copy"));
    STEP(rondo_stream_copy(r->stream, r->memory, bytes, sizeof bytes, RONDO_COPY_HOST_TO_DEVICE));
    STEP(rondo_profile_end());
    STEP(rondo_graph_replay(r->graph, r->stream));
    STEP(rondo_stream_synchronize(r->stream));
}

static void read_profile(round *r) {
    rondo_profile_summary summary = {.struct_size = sizeof summary};
    rondo_profile_row rows[64] = {{.struct_size = sizeof rows[0]}};
    rondo_profile_write_options options = {.struct_size = sizeof options};
    size_t count = 0;
    STEP(rondo_profile_stop(r->profile));
    STEP(rondo_profile_get_summary(r->profile, &summary));
    if (summary.computation_ns + summary.framework_ns != summary.total_ns) {
        fail_msg("%s", "computation and overhead are not the total");
    }
    STEP(rondo_profile_get_rows(r->profile, RONDO_PROFILE_BY_CALLS, true, rows, 64, &count));
    for (options.format = RONDO_PROFILE_PLAIN; options.format <= RONDO_PROFILE_JSON;
         ++options.format) {
        STEP(rondo_profile_write(r->profile, &options, text_sink_ignore, NULL));
    }
}

static void begin(round *r, const char *device_name) {
    STEP(rondo_device_open(device_name, &r->device));
    STEP(rondo_stream_create(r->device, NULL, &r->stream));
    STEP(rondo_profile_create(NULL, &r->profile));
    STEP(rondo_profile_start(r->profile));
    capture_and_replay(r);
    while (rondo_profile_end() == RONDO_STATUS_OK) {
    }
    read_profile(r);
}

static void run_round(const sweep_point *point) {
    round r = {0};
    begin(&r, point->device_name);
    (void)sweep_lift();
    rondo_profile_destroy(r.profile);
    r.profile = NULL;
    if (rondo_profile_create(NULL, &r.profile) == RONDO_STATUS_OK) {
        rondo_graph_capture_abort(r.graph);
        const rondo_status status = rondo_profile_start(r.profile);
        if (status != RONDO_STATUS_OK) {
            sweep_fail(point, "the next profile: %s", rondo_error_get_last()->message);
        }
        rondo_profile_destroy(r.profile);
    }
    rondo_graph_destroy(r.graph);
    if (r.memory != NULL) {
        rondo_memory_free(r.device, r.memory);
    }
    rondo_stream_destroy(r.stream);
    rondo_device_release(r.device);
}

TEST(test_profile_sweep__fake_driver) {
    // Most of the calls make and end the 256 pairs of events that wait to be used.
    const sweep_subject subject = {.run = run_round, .dense = 200};
    const sweep_count count = sweep_on_fake("a profile", &subject);
    assert_true(count.driver_calls > 10 && count.allocations > 10);
}

TEST(test_profile_sweep__host) {
    const sweep_subject subject = {.run = run_round};
    assert_true(sweep_allocations(&subject, "host") > 20);
}

int main(void) {
    rondo_log_set_sink(sweep_ignore_line, NULL);
    return RUN_TESTS(NULL, NULL);
}
