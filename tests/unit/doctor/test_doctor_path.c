// The critical path of a step and its replay: streams that fork and join, works that share the
// device, waits of the host, times that are not the step's.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "doctor/analysis/doctor_path.h"
#include "support/test.h"
#include "unit/doctor/stream_text.h"

enum { STEPS = 12, WORKS_MAX = 8 };

typedef struct row {
    const char *step;
    const char *names;  // of the works, a letter for each; = is a copy
    uint64_t lengths_us[WORKS_MAX];
    double path_us;
    size_t path_works;
    size_t streams;
    double replay_us;
} row;

#define FORK "cuEventRecord:o1 cuStreamWaitEvent:o1:s8"
#define TEN_WORDS ":w0:w1:w2:w3:w4:w5:w6:w7:w8:w9"
#define JOIN "cuEventRecord:o2:s8 cuStreamWaitEvent:o2"

static const row g_rows[] = {
    {"L:na L:nb W", "ab", {10, 5}, 15, 2, 1, 15.1},
    {"L:na L:na W", "aa", {10, 10}, 20, 2, 1, 20.1},
    // A turn from copy to kernel, and many words of arguments, take longer.
    {"L:na cuMemcpyDtoDAsync:b8 L:nb W", "a=b", {10, 5, 4}, 19, 3, 1, 19.8},
    {"L:na L:nb" TEN_WORDS ":w1:w2:w3 W", "ab", {10, 5}, 15, 2, 1, 15.7},
    {"L:na L:nb" TEN_WORDS ":w1:w2 W", "ab", {10, 5}, 15, 2, 1, 15.1},
    // Side by side, where the device has room for both.
    {"L:na " FORK " L:nb:s8 L:nc " JOIN " L:nd W", "abcd", {10, 20, 30, 5}, 45, 3, 2, 45.2},
    {"L:na " FORK " L:nb:s8:g90000 L:nc:g90000 " JOIN " L:nd W",
     "abcd",
     {10, 20, 30, 5},
     45,
     3,
     2,
     65.2},
    // Each of the branches fills half of it.
    {"L:na " FORK " L:nb:s8:g2112 L:nc:g2112 " JOIN " L:nd W",
     "abcd",
     {10, 20, 30, 5},
     45,
     3,
     2,
     45.2},
    // Nothing orders them.
    {"L:na L:nb:s8 W", "ab", {10, 20}, 20, 1, 2, 20},
    // The host orders them.
    {"L:na L:nb:s8 W L:nc:s8 W:s8:d60", "abc", {20, 5, 7}, 27, 2, 2, 27.1},
    {"L:na cuEventRecord:o1 L:nb cuEventSynchronize:o1 L:nc:s8 cuCtxSynchronize:d60",
     "abc",
     {20, 5, 7},
     27,
     2,
     2,
     27.1},
    // An event that was never recorded orders nothing; one that is recorded again counts anew.
    {"L:na cuStreamWaitEvent:o9:s8 L:nb:s8 W", "ab", {10, 20}, 20, 1, 2, 20},
    {"L:na cuEventRecord:o1 L:nb cuEventRecord:o1 cuStreamWaitEvent:o1:s8 L:nc:s8 W",
     "abc",
     {10, 5, 3},
     18,
     3,
     2,
     18.2},
};
enum { ROW_COUNT = sizeof(g_rows) / sizeof(g_rows[0]) };

static void add_work(rondo__doctor_log *log, char name, uint64_t length_us) {
    const char text[2] = {name, '\0'};
    stream_add_works(log, name == '=' ? "[copy]" : text, 1, length_us * 1000, 0);
}

static void add_device(rondo__doctor_log *log) {
    const rondo__doctor_event device = {
        .call = RONDO__DOCTOR_DEVICE, .grid = {132, 2048, 32}, .bytes = 233472};
    assert_true(rondo__doctor_log_add(log, &device, NULL));
}

static void find_path(rondo__doctor_log *log, rondo__doctor_path *out_path) {
    rondo__doctor_steps steps;
    assert_true(rondo__doctor_find_steps(log, &steps));
    assert_true(rondo__doctor_find_path(&steps, out_path));
    rondo__doctor_steps_clear(&steps);
}

static bool is_near(double found, double wanted) {
    return found > wanted - 1e-6 && found < wanted + 1e-6;
}

TEST(test_paths) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const row *r = &g_rows[i];
        rondo__doctor_log log = {.events = NULL};
        rondo__doctor_path path;
        stream_add_steps(&log, r->step, STEPS);
        add_device(&log);
        for (int k = 0; k < STEPS; k++) {
            for (size_t work = 0; r->names[work] != '\0'; work++) {
                add_work(&log, r->names[work], r->lengths_us[work]);
            }
        }
        find_path(&log, &path);
        if (!path.is_known || !is_near(path.path_us, r->path_us) ||
            path.work_count != r->path_works || path.stream_count != r->streams ||
            !is_near(path.replay_us, r->replay_us)) {
            fail_msg("\"%s\": %zu works, %g us, %zu streams, a replay of %g us", r->step,
                     path.work_count, path.path_us, path.stream_count, path.replay_us);
        }
        assert_true(path.replay_low_us <= path.replay_us);
        assert_true(path.replay_us <= path.replay_high_us);
        rondo__doctor_log_clear(&log);
    }
}

// Works that the program did while it started are left out, a lost one harms nothing, and the
// median counts.
TEST(test_other_works) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_path path;
    stream_add_steps(&log, "L:na L:nb L:nc L:nd L:ne L:nf L:ng L:nh W", STEPS);
    stream_add_works(&log, "start", 300, 50000, 0);
    for (int i = 0; i < 100; i++) {
        for (char name = 'a'; name <= 'h'; name++) {
            if (i != 50 || name != 'c') {
                add_work(&log, name, i % 10 == 9 ? 100 : 10);
            }
        }
    }
    find_path(&log, &path);
    assert_true(path.is_known);
    assert_true(is_near(path.path_us, 80));
    rondo__doctor_log_clear(&log);
}

// Without times of this step there is no path.
TEST(test_no_times) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_path path;
    stream_add_steps(&log, "L:na L:nb W", STEPS);
    find_path(&log, &path);
    assert_false(path.is_known);
    stream_add_works(&log, "start", 300, 50000, 0);
    find_path(&log, &path);
    assert_false(path.is_known);
    rondo__doctor_log_clear(&log);
}

// The order in which works were asked for counts, where it is known, and not when they ran.
TEST(test_order) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_path path;
    stream_add_steps(&log, "L:na " FORK " L:nb:s8 L:nc " JOIN " L:nd W", STEPS);
    add_device(&log);
    for (uint32_t i = 0; i < 4 * STEPS; i++) {
        static const char *const names[] = {"a", "c", "b", "d"};
        static const uint32_t orders[] = {1, 3, 2, 4};
        static const uint64_t lengths[] = {10, 30, 20, 5};
        const rondo__doctor_event work = {.call = RONDO__DOCTOR_WORK,
                                          .begin_ns = (uint64_t)i * 100000,
                                          .duration_ns = lengths[i % 4] * 1000,
                                          .source = i / 4 * 4 + orders[i % 4],
                                          .name = stream_add_text(&log, names[i % 4])};
        assert_true(rondo__doctor_log_add(&log, &work, NULL));
    }
    find_path(&log, &path);
    assert_true(path.is_known);
    assert_true(is_near(path.path_us, 45));
    rondo__doctor_log_clear(&log);
}

TEST_MAIN()
