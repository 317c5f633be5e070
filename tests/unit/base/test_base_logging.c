// Levels by room, records with their particulars, the log of transfers.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log/logging.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/test.h"

typedef struct seen {
    size_t count;
    rondo_log_record latest;
    char message[512];
    char room[32];
} seen;

static void see(void *user_data, const rondo_log_record *record) {
    seen *s = user_data;
    s->count += 1;
    s->latest = *record;
    (void)snprintf(s->message, sizeof s->message, "%s", record->message);
    (void)snprintf(s->room, sizeof s->room, "%s", record->room);
}

TEST(test_base_logging__levels_by_room) {
    static const char run[] = "../src/models/executor/run/run.c";
    static const char pool[] = "/home/me/src/rondo/src/pool/pool.c";
    static const char other[] = "src/core/graph/graph.c";
    static const char ranks[] = "src/models/collective/communicator.c";
    OK(rondo_log_set_levels("executor=debug,error,pool=warn,collective=info,saved=error"));
    assert_true(rondo__log_is_wanted_in(RONDO_LOG_DEBUG, run));
    assert_true(rondo__log_is_wanted_in(RONDO_LOG_WARNING, pool));
    assert_false(rondo__log_is_wanted_in(RONDO_LOG_INFO, pool));
    assert_true(rondo__log_is_wanted_in(RONDO_LOG_INFO, ranks));
    assert_true(rondo__log_is_wanted_in(RONDO_LOG_ERROR, other));
    assert_false(rondo__log_is_wanted_in(RONDO_LOG_WARNING, other));
    assert_false(rondo__log_is_wanted_in(RONDO_LOG_WARNING, "elsewhere.c"));
    static const char *const wrong[] = {"loud",     "executor=loud", "nowhere=debug",
                                        "executor", "=info",         "info;debug"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        assert_int_equal(rondo_log_set_levels(wrong[i]), RONDO_STATUS_INVALID);
        assert_true(rondo__log_is_wanted_in(RONDO_LOG_DEBUG, run));  // as before
    }
    assert_int_equal(rondo_log_set_levels(NULL), RONDO_STATUS_INVALID);
    OK(rondo_log_set_levels(",info,"));
    assert_true(rondo__log_is_wanted_in(RONDO_LOG_INFO, run));
    rondo_log_set_level(RONDO_LOG_WARNING);
    assert_false(rondo__log_is_wanted_in(RONDO_LOG_INFO, run));
}

TEST(test_base_logging__records_say_when_who_and_where) {
    seen s = {0};
    struct timespec before, after;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &before), 0);
    rondo_log_set_record_sink(see, &s);
    const int32_t line = __LINE__ + 1;
    RONDO_LOG_WARN_F("number %d", 7);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &after), 0);
    assert_int_equal(s.count, 1);
    assert_string_equal(s.message, "number 7");
    assert_int_equal(s.latest.level, RONDO_LOG_WARNING);
    assert_int_equal(s.latest.line, line);
    assert_non_null(strstr(s.latest.file, "test_base_logging.c"));
    assert_int_equal(s.latest.thread, syscall(SYS_gettid));
    const uint64_t second = s.latest.time_ns / 1000000000u;
    assert_true(second >= (uint64_t)before.tv_sec && second <= (uint64_t)after.tv_sec);
    assert_int_equal(s.latest.struct_size, sizeof s.latest);
    rondo_log_set_record_sink(NULL, NULL);
}

TEST(test_base_logging__each_transfer_is_told) {
    seen s = {0};
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    void *memory = NULL;
    char bytes[48] = {0};
    OK(rondo_device_open("host", &device));
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, sizeof bytes, &memory));
    rondo_log_set_record_sink(see, &s);
    OK(rondo_stream_copy(stream, memory, bytes, sizeof bytes, RONDO_COPY_HOST_TO_DEVICE));
    assert_int_equal(s.count, 0);
    OK(rondo_log_set_levels("device=debug"));
    OK(rondo_stream_copy(stream, memory, bytes, sizeof bytes, RONDO_COPY_HOST_TO_DEVICE));
    assert_int_equal(s.count, 1);
    assert_string_equal(s.room, "device");
    assert_string_equal(s.message, "transfer: a copy from the host to host, 48 bytes, waited for");
    rondo_log_set_level(RONDO_LOG_WARNING);
    rondo_log_set_record_sink(NULL, NULL);
    OK(rondo_stream_synchronize(stream));
    rondo_memory_free(device, memory);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

TEST_MAIN()
