// The rehearsal of a step: which waits and copies its graph has, in which order, and what is left
// behind when the driver refuses a call.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "doctor/rehearse/doctor_rehearse.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

enum { PART_COUNT = 7, REFUSED = 999 };

static const uint64_t g_any_device[2] = {0};

#define KERNEL(words, own_stream)                                                            \
    {                                                                                        \
        .call = RONDO__DOCTOR_cuLaunchKernel, .stream = (own_stream), .grid = {90000, 1, 1}, \
        .block = {256, 1, 1}, .word_count = (words), .flags = RONDO__DOCTOR_WORDS_WHOLE,     \
    }
#define MOVE(what, own_stream) \
    { .call = RONDO__DOCTOR_##what, .stream = (own_stream), .bytes = 4096 }

static const rondo__doctor_event g_calls[PART_COUNT] = {
    MOVE(cuMemcpyHtoDAsync, 7),
    KERNEL(3, 7),
    KERNEL(14, 8),
    KERNEL(20, 7),
    KERNEL(32, 9),
    MOVE(cuMemsetD8Async, 7),
    MOVE(cuMemcpyDtoDAsync, 7),
};

// A copy, then three streams side by side, which the last two follow.
static const rondo__doctor_part g_parts[PART_COUNT] = {
    {.call = &g_calls[0], .length_us = 2},
    {.call = &g_calls[1], .length_us = 5, .after = {0}, .after_count = 1},
    {.call = &g_calls[2], .length_us = 7, .after = {1}, .after_count = 1},
    {.call = &g_calls[3], .length_us = 0.5, .after = {1}, .after_count = 1},
    {.call = &g_calls[4], .length_us = 9, .after = {0}, .after_count = 1},
    {.call = &g_calls[5], .length_us = 1, .after = {2, 3, 4}, .after_count = 3},
    {.call = &g_calls[6], .length_us = 1, .after = {5}, .after_count = 1},
};

static size_t g_waits[4];
static uint64_t g_longest_ticks;

static void note(size_t which, const void *arguments, size_t bytes, size_t words) {
    uint64_t ticks = 0;
    assert_int_equal(bytes, words * sizeof(uint64_t));
    memcpy(&ticks, arguments, sizeof(ticks));
    g_waits[which] += 1;
    g_longest_ticks = ticks > g_longest_ticks ? ticks : g_longest_ticks;
}

static void wait_4(const void *arguments, size_t bytes) {
    note(0, arguments, bytes, 4);
}

static void wait_16(const void *arguments, size_t bytes) {
    note(1, arguments, bytes, 16);
}

static void wait_32(const void *arguments, size_t bytes) {
    note(2, arguments, bytes, 32);
}

static void wait_96(const void *arguments, size_t bytes) {
    note(3, arguments, bytes, 96);
}

static void start(void) {
    fake_cuda_reset(NULL);
    fake_cuda_set_kernel("rondo_wait_4", wait_4);
    fake_cuda_set_kernel("rondo_wait_16", wait_16);
    fake_cuda_set_kernel("rondo_wait_32", wait_32);
    fake_cuda_set_kernel("rondo_wait_96", wait_96);
    memset(g_waits, 0, sizeof(g_waits));
    g_longest_ticks = 0;
}

static void check_nothing_is_left(void) {
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_int_equal(fake_cuda_count_bytes(false) + fake_cuda_count_bytes(true), 0);
}

TEST(test_graph) {
    rondo__doctor_rehearsal found = {0};
    start();
    assert_null(
        rondo__doctor_rehearse(g_parts, PART_COUNT, g_any_device, fake_cuda_resolve, NULL, &found));
    assert_true(found.low_ns > 0 && found.low_ns <= found.median_ns &&
                found.median_ns <= found.high_ns);
    const size_t replays = fake_cuda_count_calls("cuGraphLaunch");
    assert_true(replays > 5);
    // By one the rate of the clock is found ahead of the replays.
    assert_true(g_waits[0] >= replays + 4 && g_waits[0] <= replays + 400);
    assert_int_equal(g_waits[1], replays);
    assert_int_equal(g_waits[2], 2 * replays);
    assert_int_equal(g_waits[3], 0);
    check_nothing_is_left();
}

TEST(test_another_device) {
    rondo__doctor_rehearsal found;
    const uint64_t uuid[2] = {1, 2};
    start();
    assert_non_null(
        rondo__doctor_rehearse(g_parts, PART_COUNT, uuid, fake_cuda_resolve, NULL, &found));
    check_nothing_is_left();
}

// Whichever call is refused, the reason is told and nothing stays.
TEST(test_refusals) {
    bool has_failed = true;
    for (long n = 0; has_failed; n++) {
        rondo__doctor_rehearsal found;
        start();
        fake_cuda_fail_nth(n, REFUSED);
        const char *problem = rondo__doctor_rehearse(g_parts, PART_COUNT, g_any_device,
                                                     fake_cuda_resolve, NULL, &found);
        has_failed = fake_cuda_has_failed() && fake_cuda_count_calls("cuGraphLaunch") < 3;
        if (has_failed && problem == NULL &&
            strcmp(fake_cuda_get_failed_call(), "cuFuncSetAttribute") != 0) {
            fail_msg("%s was refused, and nobody says so", fake_cuda_get_failed_call());
        }
        fake_cuda_fail_nth(-1, 0);
        check_nothing_is_left();
    }
}

TEST_MAIN()
