// Steppers and learned steps that measure themselves, with planted times: which way steps go, why,
// and that each does its work once, with the values of its own.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cache/governed_step.h"
#include "learn/learned.h"
#include "rondo/rondo.h"
#include "rondo/stepper.h"
#include "support/expect_ok.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { WORKS = 3 };

typedef struct scene {
    rondo_device *device;
    rondo_stream *stream;
    int64_t *sum;  // of what all works added
    int64_t expected;
    uint64_t eager_ns, replay_ns;
    rondo_stepper *stepper;
    rondo_learned *learned;
} scene;

typedef struct add_arguments {
    int64_t *sum;
    int64_t value;
} add_arguments;

static void add(void *arguments) {
    const add_arguments *a = arguments;
    *a->sum = *a->sum * 3 % 1000003 + a->value;
}

static uint64_t get_ns(void *user_data, rondo__choice choice) {
    const scene *s = user_data;
    return choice == RONDO__CHOICE_CAPTURE  ? 4 * s->eager_ns
           : choice == RONDO__CHOICE_REPLAY ? s->replay_ns
                                            : s->eager_ns;
}

static void plant(scene *s, rondo__governed_step *governed) {
    governed->governor.get_ns = get_ns;
    governed->governor.user_data = s;
}

static void open_scene(scene *s, uint64_t eager_ns, uint64_t replay_ns) {
    *s = (scene){.eager_ns = eager_ns, .replay_ns = replay_ns};
    OK(rondo_device_open("host", &s->device));
    OK(rondo_stream_create(s->device, NULL, &s->stream));
    OK(rondo_memory_allocate(s->device, RONDO_MEMORY_DEVICE, sizeof *s->sum, (void **)&s->sum));
    *s->sum = 0;
}

static void close_scene(scene *s) {
    OK(rondo_stream_synchronize(s->stream));
    assert_int_equal(*s->sum, s->expected);
    rondo_stepper_destroy(s->stepper);
    rondo_learned_destroy(s->learned);
    rondo_memory_free(s->device, s->sum);
    rondo_stream_destroy(s->stream);
    rondo_device_release(s->device);
}

static rondo_launch describe_launch(const add_arguments *arguments) {
    return (rondo_launch){.struct_size = sizeof(rondo_launch),
                          .name = "add",
                          .function = (void *)(uintptr_t)add,
                          .grid = {1, 1, 1},
                          .block = {1, 1, 1},
                          .arguments = arguments,
                          .argument_bytes = sizeof *arguments};
}

static void expect(scene *s, int64_t value) {
    add((void *)&(add_arguments){&s->expected, value});
}

// ---- steppers ---------------------------------------------------------------------------------

static void open_stepper(scene *s, uint64_t eager_ns, uint64_t replay_ns) {
    const rondo_stepper_options options = {.struct_size = sizeof options, .measures = true};
    open_scene(s, eager_ns, replay_ns);
    OK(rondo_stepper_create(s->device, &options, &s->stepper));
    plant(s, rondo__stepper_get_governed(s->stepper));
}

// The second work is left out of each third step.
static rondo_stepper_mode step(scene *s, int64_t value) {
    OK(rondo_stepper_begin(s->stepper, s->stream));
    const rondo_stepper_mode mode = rondo_stepper_get_mode(s->stepper);
    for (int64_t i = 0; i < WORKS; ++i) {
        const add_arguments arguments = {s->sum, value + i};
        const rondo_launch launch = describe_launch(&arguments);
        const rondo_work work = {
            .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &launch};
        if (i == 1 && value % 3 == 0) {
            OK(rondo_stepper_skip(s->stepper, &work));
        } else {
            OK(rondo_stepper_put(s->stepper, &work));
            expect(s, value + i);
        }
    }
    OK(rondo_stepper_end(s->stepper));
    return mode;
}

static int step_often(scene *s, int count) {
    int eager = 0;
    for (int i = 0; i < count; ++i) {
        eager += step(s, i % 50) == RONDO_STEPPER_EAGER;
    }
    return eager;
}

static void expect_text(const scene *s, rondo_text_format format, const char *words) {
    text_sink sink = {{0}, 0};
    OK(s->stepper != NULL ? rondo_stepper_describe(s->stepper, format, text_sink_append, &sink)
                          : rondo_learned_describe(s->learned, format, text_sink_append, &sink));
    if (strstr(sink.text, words) == NULL) {
        fail_msg("\"%s\" is not in: %s", words, sink.text);
    }
}

TEST(test_learn_measured__a_stepper_that_pays) {
    scene s;
    open_stepper(&s, 100000, 10000);
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs measured: not run yet");
    assert_int_equal(step_often(&s, 6), 6);
    assert_int_equal(step(&s, 5), RONDO_STEPPER_RECORDS);
    assert_int_equal(step_often(&s, 4096), 1);  // E is measured anew
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs measured: replay: 10 us against 100 us eager; ");
    expect_text(&s, RONDO_TEXT_JSON, "{\"choice\": \"replay\", \"reason\": \"replay: 10 us");
    OK(rondo_stepper_reset(s.stepper));
    assert_int_equal(step(&s, 5), RONDO_STEPPER_EAGER);
    close_scene(&s);
}

TEST(test_learn_measured__a_stepper_that_does_not) {
    scene s;
    open_stepper(&s, 10000, 20000);
    assert_in_range(step_often(&s, 200), 200 - 64, 199);
    assert_int_equal(step_often(&s, 200), 200);
    expect_text(&s, RONDO_TEXT_JSON, "{\"choice\": \"eager\", \"reason\": \"eager: 10 us");
    s.replay_ns = 1000;
    (void)step_often(&s, 4000);
    assert_int_equal(step(&s, 5), RONDO_STEPPER_PATCHES);
    // A step that is not whole ends the graph; others follow.
    OK(rondo_stepper_begin(s.stepper, s.stream));
    EXPECT(STATE, "0 works of the 3", rondo_stepper_end(s.stepper));
    assert_int_equal(step(&s, 5), RONDO_STEPPER_EAGER);
    close_scene(&s);
}

TEST(test_learn_measured__options_of_steppers) {
    scene s;
    rondo_stepper *none;
    open_scene(&s, 1, 1);
    const rondo_stepper_options both = {
        .struct_size = sizeof both, .measures = true, .records_at_once = true};
    EXPECT(INVALID, "begins with eager steps", rondo_stepper_create(s.device, &both, &none));
    OK(rondo_stepper_create(s.device, NULL, &s.stepper));
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs are not measured");
    text_sink sink = {{0}, 0};
    EXPECT(INVALID, "RONDO_TEXT_PLAIN or _JSON",
           rondo_stepper_describe(s.stepper, RONDO_TEXT_DOT, text_sink_append, &sink));
    close_scene(&s);
}

// ---- learned steps ----------------------------------------------------------------------------

static rondo_status put(rondo_stream *stream, const rondo_value *values, void *user_data) {
    const scene *s = user_data;
    for (int64_t i = 0; i < WORKS; ++i) {
        const add_arguments arguments = {
            s->sum, (int64_t)((uint64_t)values[0].integer + (uint64_t)i)};  // it wraps
        const rondo_launch launch = describe_launch(&arguments);
        const rondo_status status = rondo_stream_launch(stream, &launch);
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

static void open_learned(scene *s, uint64_t eager_ns, uint64_t replay_ns) {
    const rondo_learned_options options = {
        .struct_size = sizeof options, .measures = true, .draws_wanted = 1};
    const rondo_argument argument = {
        .struct_size = sizeof argument, .name = "n", .kind = RONDO_ARGUMENT_INT64};
    open_scene(s, eager_ns, replay_ns);
    OK(rondo_learned_create(s->device, &options, &argument, 1, put, s, &s->learned));
    plant(s, s->learned->governed);
}

// How many of the runs were eager. Each value comes twice in turn.
static int run_often(scene *s, int count) {
    int eager = 0;
    for (int i = 0; i < count; ++i) {
        const rondo_value value = {.integer = i / 2 % 50};
        OK(rondo_learned_run(s->learned, s->stream, &value, 1));
        eager += s->learned->governed->choice < RONDO__CHOICE_CAPTURE;
        for (int64_t k = 0; k < WORKS; ++k) {
            expect(s, value.integer + k);
        }
    }
    return eager;
}

TEST(test_learn_measured__a_learned_step) {
    scene s;
    open_learned(&s, 10000, 1000);
    (void)run_often(&s, 1);  // learns
    assert_int_equal(run_often(&s, 100), 3);
    expect_text(&s, RONDO_TEXT_PLAIN, "measured: replay: 1.0 us against 10 us eager; paid back");
    s.replay_ns = 20000;
    (void)run_often(&s, 700);
    assert_int_equal(run_often(&s, 500), 500);
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs measured: eager: 10 us against 20 us replayed");
    expect_text(&s, RONDO_TEXT_JSON, "\"graphs\": {\"choice\": \"eager\", \"reason\": \"eager");
    rondo_learned_stats stats = {.struct_size = sizeof stats};
    OK(rondo_learned_get_stats(s.learned, &stats));
    assert_int_equal(stats.run_count, 1301);
    assert_int_equal(stats.fallback_count, 0);
    close_scene(&s);
}

// Memory that was freed between an eager run and a replay is looked at by the replay.
TEST(test_learn_measured__eager_runs_hide_nothing) {
    scene s;
    open_learned(&s, 10000, 1000);
    (void)run_often(&s, 40);
    const uint64_t looked_at = s.learned->removal_count;
    void *other;
    OK(rondo_memory_allocate(s.device, RONDO_MEMORY_DEVICE, 64, &other));
    rondo_memory_free(s.device, other);
    s.learned->governed->measures.run_count = 4095;  // the next one is eager
    assert_int_equal(run_often(&s, 1), 1);
    assert_int_equal(s.learned->removal_count, looked_at);
    assert_int_equal(run_often(&s, 1), 0);
    assert_true(s.learned->removal_count != looked_at);
    close_scene(&s);
}

TEST_MAIN()
