// The error record: written fresh, kept per thread, prefixed, saved and restored; the log.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <pthread.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "support/test.h"

TEST(test_base_error__record_is_fresh_and_complete) {
    uint64_t before = rondo_error_get_last()->sequence;
    rondo_status status = RONDO_FAIL(INVALID, "extent %d\nis too large", 7);
    const rondo_error *error = rondo_error_get_last();
    assert_int_equal(status, RONDO_STATUS_INVALID);
    assert_int_equal(error->status, RONDO_STATUS_INVALID);
    assert_string_equal(error->message, "extent 7 is too large");
    assert_string_equal(error->call, "test_base_error__record_is_fresh_and_complete");
    assert_string_equal(error->op, "");
    assert_string_equal(error->driver_name, "");
    assert_int_equal(error->sequence, before + 1);
    assert_non_null(error->file);

    status = RONDO_FAIL_DRIVER(RONDO_STATUS_DRIVER, 901, "CUDA_ERROR_X", "cuThing", "broken");
    assert_int_equal(status, RONDO_STATUS_DRIVER);
    assert_int_equal(error->driver_code, 901);
    assert_string_equal(error->driver_name, "CUDA_ERROR_X");
    assert_string_equal(error->call, "cuThing");
    assert_int_equal(error->sequence, before + 2);
}

TEST(test_base_error__op_is_named_once) {
    (void)RONDO_FAIL(BAD_DATA, "shape mismatch");
    rondo__error_set_op("conv1");
    rondo__error_set_op("outer");
    assert_string_equal(rondo_error_get_last()->op, "conv1");
}

// What is too long loses its middle, at whole characters: what to do stands at the end.
TEST(test_base_error__long_messages_keep_their_ends) {
    char names[900];
    for (size_t shift = 0; shift < 4; ++shift) {
        size_t length = 0;
        for (; length < shift; ++length) {
            names[length] = 'a';
        }
        for (; length + 4 < sizeof names; length += 3) {
            memcpy(names + length, "\xe2\x82\xac", 3);  // a euro sign
        }
        names[length] = '\0';
        (void)RONDO_FAIL(STATE, "graph \"%s\" is in the way; free it, or see rondo_arena_options",
                         names);
        const char *message = rondo_error_get_last()->message;
        const char *gap = strstr(message, "...");
        assert_memory_equal(message, "graph \"", 7);
        assert_non_null(gap);
        assert_non_null(strstr(gap, "\" is in the way; free it, or see rondo_arena_options"));
        assert_int_equal((unsigned char)gap[-1] & 0xc0, 0x80);  // the end of a character
        assert_int_equal((unsigned char)gap[3], 0xe2);          // the begin of one
        assert_true(strlen(message) + 4 >= sizeof rondo_error_get_last()->message - 1);
    }
}

// Two names of 64 bytes, some numbers and what to do fit.
TEST(test_base_error__messages_have_room) {
    char name[65];
    char expected[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    (void)snprintf(expected, sizeof expected,
                   "graph \"%s\" takes in a block of 18446744073709551615 bytes at 0x7fffffffffff "
                   "that graph \"%s\" produces, but another one, which shares the memory, has "
                   "written over it since; replay it first, or see rondo_arena_options",
                   name, name);
    (void)RONDO_FAIL(STATE, "%s", expected);
    assert_string_equal(rondo_error_get_last()->message, expected);
}

TEST(test_base_error__prefix_goes_in_front_and_is_cut) {
    (void)RONDO_FAIL(BAD_DATA, "node \"%s\" is odd", "n");
    rondo__error_prefix("%s", "model.onnx");
    assert_string_equal(rondo_error_get_last()->message, "model.onnx: node \"n\" is odd");
    // The former message may itself be an argument.
    (void)RONDO_FAIL(BAD_DATA, "again: %s", rondo_error_get_last()->message);
    assert_string_equal(rondo_error_get_last()->message, "again: model.onnx: node \"n\" is odd");
    char path[600];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    rondo__error_prefix("%s", path);
    assert_int_equal(strlen(rondo_error_get_last()->message),
                     sizeof rondo_error_get_last()->message - 1);
}

TEST(test_base_error__first_error_wins_over_cleanup) {
    (void)RONDO_FAIL(NO_DEVICE_MEMORY, "first");
    rondo_error saved;
    rondo__error_save(&saved);
    (void)RONDO_FAIL(DRIVER, "clean-up");
    uint64_t sequence = rondo_error_get_last()->sequence;
    rondo__error_restore(&saved);
    assert_string_equal(rondo_error_get_last()->message, "first");
    assert_int_equal(rondo_error_get_last()->status, RONDO_STATUS_NO_DEVICE_MEMORY);
    assert_int_equal(rondo_error_get_last()->sequence, sequence);
}

static void *read_other_thread(void *data) {
    *(rondo_error *)data = *rondo_error_get_last();
    return NULL;
}

TEST(test_base_error__threads_see_their_own_record) {
    (void)RONDO_FAIL(INTERNAL, "mine");
    rondo_error other;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_other_thread, &other), 0);
    pthread_join(thread, NULL);
    assert_int_equal(other.status, RONDO_STATUS_OK);
    assert_int_equal(other.sequence, 0);
    assert_non_null(other.file);
}

TEST(test_base_error__status_names) {
    assert_string_equal(rondo_status_get_name(RONDO_STATUS_OK), "OK");
    assert_string_equal(rondo_status_get_name(RONDO_STATUS_NO_DEVICE_MEMORY), "NO_DEVICE_MEMORY");
    assert_string_equal(rondo_status_get_name(99), "UNKNOWN");
}

typedef struct sink_record {
    int count;
    rondo_log_level level;
    char message[128];
} sink_record;

static void record_message(void *user_data, rondo_log_level level, const char *message) {
    sink_record *record = user_data;
    ++record->count;
    record->level = level;
    snprintf(record->message, sizeof record->message, "%s", message);
    errno = EPERM;
    (void)RONDO_FAIL(INTERNAL, "a failure inside the sink");
}

TEST(test_base_error__log_goes_to_the_sink_and_keeps_the_record) {
    sink_record record = {0};
    rondo_log_set_sink(record_message, &record);
    rondo_log_set_level(RONDO_LOG_INFO);
    (void)RONDO_FAIL(INVALID, "kept");
    errno = ENOENT;
    RONDO_LOG_INFO_F("line %d\nwith a break", 3);
    RONDO_LOG_DEBUG_F("too detailed");
    assert_int_equal(errno, ENOENT);
    assert_string_equal(rondo_error_get_last()->message, "kept");
    assert_int_equal(record.count, 1);
    assert_int_equal(record.level, RONDO_LOG_INFO);
    assert_string_equal(record.message, "line 3 with a break");
    assert_false(RONDO_LOG_IS_WANTED(RONDO_LOG_DEBUG));
    rondo_log_set_sink(NULL, NULL);
    rondo_log_set_level(RONDO_LOG_WARNING);
}

TEST_MAIN()
