// The period, the steps, the log and its file, the verdicts.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/analysis/doctor_period.h"
#include "doctor/analysis/doctor_predict.h"
#include "support/test.h"
#include "unit/doctor/stream_text.h"

// ---- the period -------------------------------------------------------------------------------

static rondo__doctor_period find(const uint64_t *tokens, size_t count) {
    rondo__doctor_period period;
    assert_true(rondo__doctor_find_period(tokens, count, &period));
    return period;
}

TEST(test_period_lengths) {
    static const size_t lengths[] = {1, 2, 7, 100, 3001, 20000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t count = 3 * lengths[i];
        uint64_t *tokens = malloc(count * sizeof(*tokens));
        assert_non_null(tokens);
        for (size_t k = 0; k < count; k++) {
            tokens[k] = k % lengths[i] * 7920 + 2;
        }
        assert_int_equal(find(tokens, count).length, lengths[i]);
        free(tokens);
    }
}

// Twelve layers of nine kernels and a head: the step is the period, not the layer.
TEST(test_layers) {
    enum { LAYERS = 12, KERNELS = 9, HEAD = 3, STEP = LAYERS * KERNELS + HEAD, STEPS = 6 };
    uint64_t tokens[STEP * STEPS];
    for (size_t i = 0; i < STEP * STEPS; i++) {
        const size_t place = i % STEP;
        tokens[i] = 2 * (place < HEAD ? 1000 + place : (place - HEAD) % KERNELS);
    }
    assert_int_equal(find(tokens, STEP * STEPS).length, STEP);
}

// So many layers that they match nearly as well as the step does; the wait behind them decides.
TEST(test_many_layers) {
    enum {
        LAYERS = 150,
        KERNELS = 9,
        STEP = LAYERS * KERNELS + 1,
        STEPS = 5,
        COUNT = STEP * STEPS
    };
    uint64_t *tokens = malloc(COUNT * sizeof(*tokens));
    assert_non_null(tokens);
    for (size_t i = 0; i < COUNT; i++) {
        tokens[i] = i % STEP == STEP - 1 ? 7 : 2 * (i % STEP % KERNELS);
    }
    assert_int_equal(find(tokens, COUNT).length, STEP);
    free(tokens);
}

TEST(test_noise) {
    enum { STEP = 50, STEPS = 20, COUNT = STEP * STEPS };
    uint64_t tokens[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        tokens[i] = 2 * (i % 53 == 0 ? 9000 + i : i % STEP);
    }
    const rondo__doctor_period period = find(tokens, COUNT);
    assert_int_equal(period.length, STEP);
    assert_true(period.match > 0.9 && period.match < 1.0);
    for (size_t i = 0; i < COUNT; i++) {
        tokens[i] = (i + 1) * 0x9e3779b97f4a7c15u * 2;
    }
    assert_int_equal(find(tokens, COUNT).length, 0);
    assert_int_equal(find(tokens, 2).length, 0);
    assert_int_equal(find(tokens, 0).length, 0);
}

// ---- steps ------------------------------------------------------------------------------------

TEST(test_start_up_is_no_step) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_steps steps;
    char name[64];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof(name), "L:nstart%d cuMemAlloc", i);
        stream_add_steps(&log, name, 1);
    }
    stream_add_steps(&log, "L:na L:nb L:nc L:nd W", 100);
    assert_true(rondo__doctor_find_steps(&log, &steps));
    assert_int_equal(steps.period, 4);
    assert_true(steps.typical_count >= 90);
    const rondo__doctor_step *step = &steps.steps[steps.reference];
    assert_string_equal(rondo__doctor_log_text(&log, log.events[step->first].name), "a");
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

// Without the waits, equal layers would be the step.
TEST(test_waits_part_steps) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_steps steps;
    stream_add_steps(&log, "L:na L:nb L:na L:nb L:na L:nb W", 20);
    assert_true(rondo__doctor_find_steps(&log, &steps));
    assert_int_equal(steps.period, 6);
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

// What a program does at its end, often or not, is not its step.
TEST(test_other_ends) {
    static const char *const ends[] = {"cuGraphLaunch W", "cuGraphLaunch L:nz W", "L:nx L:ny W"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        rondo__doctor_log log = {.events = NULL};
        rondo__doctor_steps steps;
        stream_add_steps(&log, "L:na L:nb L:nc L:nd L:ne L:nf L:ng W", 300);
        stream_add_steps(&log, ends[i], 60);
        assert_true(rondo__doctor_find_steps(&log, &steps));
        assert_int_equal(steps.period, 7);
        assert_true(steps.typical_count > 290);
        const rondo__doctor_step *step = &steps.steps[steps.reference];
        assert_string_equal(rondo__doctor_log_text(&log, log.events[step->first].name), "a");
        rondo__doctor_steps_clear(&steps);
        rondo__doctor_log_clear(&log);
    }
}

// Steps of one kernel alone begin behind the wait, too, wherever in a step the records begin.
TEST(test_one_kernel) {
    for (int ahead = 0; ahead < 9; ahead++) {
        rondo__doctor_log log = {.events = NULL};
        rondo__doctor_steps steps;
        stream_add_steps(&log, "L:na", ahead);
        stream_add_steps(&log, "W", 1);
        stream_add_steps(&log, "L:na L:na L:na L:na L:na L:na L:na L:na L:na W", 50);
        assert_true(rondo__doctor_find_steps(&log, &steps));
        assert_int_equal(steps.period, 9);
        const rondo__doctor_step *step = &steps.steps[steps.reference];
        assert_int_equal(log.events[step->first - 1].call, RONDO__DOCTOR_cuStreamSynchronize);
        rondo__doctor_steps_clear(&steps);
        rondo__doctor_log_clear(&log);
    }
}

// Some steps do more; the others are still steps.
TEST(test_longer_steps) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_steps steps;
    for (int i = 0; i < 60; i++) {
        stream_add_steps(&log, "L:na L:nb L:nc L:nd L:ne L:nf L:ng L:nh L:ni W", 1);
        if (i == 7 || i == 12 || i == 31 || i == 50) {
            stream_add_steps(&log, "D:b4 W L:nlog", 1);
        }
    }
    assert_true(rondo__doctor_find_steps(&log, &steps));
    assert_int_equal(steps.period, 9);
    assert_true(steps.typical_count > 40 && steps.typical_count < steps.count);
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

TEST(test_nothing) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_steps steps;
    rondo__doctor_costs costs;
    assert_true(rondo__doctor_find_steps(&log, &steps));
    assert_true(rondo__doctor_predict(&steps, &costs));
    assert_int_equal(costs.verdict, RONDO__DOCTOR_NO_STEP);
    assert_false(rondo__doctor_is_worth_it(&costs));
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

// ---- the log ----------------------------------------------------------------------------------

// Hours of calls take no more memory than minutes do.
TEST(test_memory_is_bounded) {
    rondo__doctor_log log = {.events = NULL};
    const rondo__doctor_event event = {.call = RONDO__DOCTOR_cuLaunchKernel, .word_count = 4};
    const uint64_t words[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < 3 * RONDO__DOCTOR_EVENTS_MAX; i++) {
        assert_true(rondo__doctor_log_add(&log, &event, words));
    }
    assert_true(log.event_count <= RONDO__DOCTOR_EVENTS_MAX);
    assert_int_equal(log.seen_count, 3 * RONDO__DOCTOR_EVENTS_MAX);
    assert_int_equal(log.word_count, 4 * log.event_count);
    assert_int_equal(rondo__doctor_log_words(&log, log.event_count - 1)[3], 4);
    rondo__doctor_log_clear(&log);
}

// Steps whose device times are known stay, however long the program goes on behind them, and some
// ahead of them, which say how long a step takes: CUPTI leaves the later ones slower.
TEST(test_doctor_steps__timed_steps_stay) {
    enum {
        STEP = 4,
        TIMED_FROM = 100,
        TIMED_TO = 120,
        STEPS = 3 * RONDO__DOCTOR_EVENTS_MAX / STEP
    };
    rondo__doctor_log log = {0};
    rondo__doctor_steps steps;
    for (uint64_t i = 0; i < STEPS * STEP; i++) {
        const bool is_timed = i / STEP >= TIMED_FROM && i / STEP < TIMED_TO;
        const uint64_t pace = i / STEP < TIMED_FROM ? 1000 : 2000;
        const rondo__doctor_event event = {
            .call = RONDO__DOCTOR_cuLaunchKernel,
            .object = 1 + i % STEP,
            .source = i,
            .begin_ns = pace * i + (i % STEP > 0 ? 0 : 500),
            .duration_ns = 100,
            .word_count = (uint32_t)(i % STEP),
            .flags = is_timed ? RONDO__DOCTOR_TIMED : 0,
        };
        const uint64_t words[STEP] = {i, i, i, i};
        assert_true(rondo__doctor_log_add(&log, &event, words));
    }
    assert_true(rondo__doctor_find_steps(&log, &steps));
    assert_int_equal(steps.period, STEP);
    size_t timed = 0;
    for (size_t i = 0; i < steps.count; i++) {
        timed += steps.steps[i].is_typical && steps.steps[i].is_timed;
    }
    assert_true(timed >= TIMED_TO - TIMED_FROM - 1);
    rondo__doctor_costs costs;
    assert_true(rondo__doctor_predict(&steps, &costs));
    assert_true(costs.step_us == STEP && costs.step_low_us == STEP);
    for (size_t i = 0; i < log.event_count; i++) {
        const rondo__doctor_event *event = &log.events[i];
        for (size_t w = 0; w < event->word_count; w++) {
            assert_int_equal(rondo__doctor_log_words(&log, i)[w], event->source);
        }
    }
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

typedef struct stream_file {
    rondo__doctor_header header;
    rondo__doctor_event text;
    char tail[8];
    rondo__doctor_event launch;
    uint64_t words[2];
} stream_file;

static stream_file make_file(void) {
    stream_file file = {
        .header = {RONDO__DOCTOR_MAGIC, RONDO__DOCTOR_VERSION, sizeof(rondo__doctor_event)},
        .text = {.call = RONDO__DOCTOR_TEXT, .name = 1, .word_count = 3},
        .tail = "add",
        .launch = {.call = RONDO__DOCTOR_cuLaunchKernel, .name = 1, .word_count = 2},
        .words = {5, 6},
    };
    return file;
}

static const char *read_file(const stream_file *file, size_t bytes, rondo__doctor_log *log) {
    rondo__doctor_log_clear(log);
    FILE *stream = tmpfile();
    assert_non_null(stream);
    assert_int_equal(fwrite(file, 1, bytes, stream), bytes);
    rewind(stream);
    const char *problem = rondo__doctor_log_read(log, stream);
    (void)fclose(stream);
    return problem;
}

TEST(test_file) {
    rondo__doctor_log log = {.events = NULL};
    stream_file file = make_file();
    assert_null(read_file(&file, sizeof(file), &log));
    assert_int_equal(log.launch_count, 1);
    assert_string_equal(rondo__doctor_log_text(&log, 1), "add");
    assert_int_equal(rondo__doctor_log_words(&log, 0)[1], 6);
    for (size_t bytes = 0; bytes < sizeof(file); bytes++) {
        const bool is_whole =
            bytes == sizeof(file.header) || bytes == offsetof(stream_file, launch);
        assert_true((read_file(&file, bytes, &log) == NULL) == is_whole);
    }
    file.header.version += 1;
    assert_non_null(strstr(read_file(&file, sizeof(file), &log), "version"));
    file = make_file();
    file.header.magic = 7;
    assert_non_null(strstr(read_file(&file, sizeof(file), &log), "no stream"));
    file = make_file();
    file.launch.word_count = UINT32_MAX;
    assert_non_null(read_file(&file, sizeof(file), &log));
    file = make_file();
    file.launch.call = UINT16_MAX;
    assert_non_null(read_file(&file, sizeof(file), &log));
    file = make_file();
    file.text.name = 9;
    assert_non_null(read_file(&file, sizeof(file), &log));
    rondo__doctor_log_clear(&log);
}

// ---- verdicts ---------------------------------------------------------------------------------

typedef struct verdict_row {
    const char *step;  // 40 of them
    const char *work;
    uint64_t length_ns;
    rondo__doctor_verdict verdict;
    bool is_worth_it;
} verdict_row;

TEST(test_verdicts) {
    // Ten calls and a wait: 50 us a step.
    static const char ten[] = "L:na L:nb L:nc L:nd L:ne L:nf L:ng L:nh L:ni L:nj W";
    static const char graph[] = "cuGraphLaunch L:nb W";
    static const verdict_row rows[] = {
        {ten, "a", 500, RONDO__DOCTOR_LAUNCH_BOUND, true},
        {ten, "a", 5200, RONDO__DOCTOR_KERNEL_BOUND, false},
        {ten, "[copy to the device]", 5200, RONDO__DOCTOR_COPY_BOUND, false},
        {ten, "a", 0, RONDO__DOCTOR_NO_TIMES, false},
        {"L:na:p600 L:nb W", "a", 500, RONDO__DOCTOR_HOST_BOUND, false},
        {"L:na L:nb:p600 W", "a", 500, RONDO__DOCTOR_LAUNCH_BOUND, true},
        {graph, "a", 1000, RONDO__DOCTOR_IS_GRAPH, false},
        {graph, "a", 0, RONDO__DOCTOR_IS_GRAPH, false},
        {"L:na cuGraphLaunch L:nb W", "a", 0, RONDO__DOCTOR_NO_TIMES, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rondo__doctor_log log = {.events = NULL};
        rondo__doctor_steps steps;
        rondo__doctor_costs costs;
        stream_add_steps(&log, rows[i].step, 40);
        if (rows[i].length_ns > 0) {
            stream_add_works(&log, rows[i].work, 100, rows[i].length_ns, 500);
        }
        assert_true(rondo__doctor_find_steps(&log, &steps));
        assert_true(rondo__doctor_predict(&steps, &costs));
        assert_string_equal(rondo__doctor_verdict_name(costs.verdict),
                            rondo__doctor_verdict_name(rows[i].verdict));
        assert_true(rondo__doctor_is_worth_it(&costs) == rows[i].is_worth_it);
        if (costs.has_times) {
            assert_true(costs.graph_low_us <= costs.graph_us);
            assert_true(costs.graph_us <= costs.graph_high_us);
            assert_true(costs.after_us <= costs.step_us);
        }
        rondo__doctor_steps_clear(&steps);
        rondo__doctor_log_clear(&log);
    }
}

TEST(test_numbers) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_steps steps;
    rondo__doctor_costs costs;
    stream_add_steps(&log, "H:b4 L:na L:nb W", 40);
    stream_add_works(&log, "a", 30, 1000, 0);
    assert_true(rondo__doctor_find_steps(&log, &steps));
    assert_true(rondo__doctor_predict(&steps, &costs));
    // Three calls of 2 us, a wait of 20 us, four pauses of 1 us.
    assert_true(costs.step_us > 29.9 && costs.step_us < 30.1);
    assert_true(costs.launch_us > 1.9 && costs.launch_us < 2.1);
    assert_true(costs.waits_us > 19.9 && costs.waits_us < 20.1);
    assert_int_equal(costs.launch_count, 2);
    // Ten steps of three works without pauses.
    assert_true(costs.device_us > 2.9 && costs.device_us < 3.1);
    assert_true(costs.idle_share > 0.89 && costs.idle_share < 0.91);
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

TEST_MAIN()
