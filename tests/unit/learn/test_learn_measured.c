// Steppers and learned steps that measure themselves, on a processor, a stream and a queue whose
// times are planted: which way steps go, why, what that costs, and that each does its work once,
// with the values of its own.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cache/governed_step.h"
#include "learn/learned.h"
#include "rondo/rondo.h"
#include "rondo/stepper.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { WORKS = 3, QUEUE_MOST = 1024 };

// What a step takes of the processor and of the device.
typedef struct costs {
    uint64_t call_ns, device_ns;
} costs;

typedef struct scene {
    rondo_device *device;
    rondo_stream *stream;
    int64_t *sum;  // of what all works added
    int64_t expected;
    rondo_stepper *stepper;
    rondo_learned *learned;
    costs eager, replay;
    uint64_t capture_ns;
    // The clock, when the stream will have done its work, and when each of its latest steps.
    uint64_t now_ns, stream_ns;
    uint64_t done_ns[QUEUE_MOST];
    size_t queue;        // steps that the queue holds; 0: the stream is waited for in each step
    size_t drain_every;  // or in one of so many; 0: never
    size_t step_count;
} scene;

typedef struct add_arguments {
    int64_t *sum;
    int64_t value;
} add_arguments;

static void add(void *arguments) {
    const add_arguments *a = arguments;
    *a->sum = *a->sum * 3 % 1000003 + a->value;
}

static uint64_t get_now(void *user_data) {
    return ((const scene *)user_data)->now_ns;
}

static uint64_t get_stream(void *user_data) {
    const scene *s = user_data;
    return s->stream_ns > s->now_ns ? s->stream_ns : s->now_ns;
}

// The work of a step is put behind what the stream has to do. A full queue keeps the call waiting.
static void pass(scene *s, costs c) {
    const size_t place = s->queue > 0 ? s->step_count % s->queue : 0;
    s->now_ns += c.call_ns;
    s->now_ns = s->now_ns < s->done_ns[place] ? s->done_ns[place] : s->now_ns;
    s->stream_ns = get_stream(s) + c.device_ns;
    s->done_ns[place] = s->stream_ns;
    ++s->step_count;
    if (s->queue == 0 || (s->drain_every > 0 && s->step_count % s->drain_every == 0)) {
        s->now_ns = s->stream_ns;
    }
}

static const rondo__step_meter *plant(scene *s) {
    static rondo__step_meter meter;
    meter = (rondo__step_meter){.now_ns = get_now, .stream_ns = get_stream, .user_data = s};
    return &meter;
}

static void open_scene(scene *s, costs eager, costs replay) {
    *s = (scene){.eager = eager, .replay = replay, .capture_ns = 4 * eager.call_ns};
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
    return LAUNCH("add", (void *)(uintptr_t)add, 1, 1, arguments, sizeof *arguments);
}

static void expect(scene *s, int64_t value) {
    add((void *)&(add_arguments){&s->expected, value});
}

// ---- steppers ---------------------------------------------------------------------------------

static void open_stepper(scene *s, costs eager, costs replay) {
    const rondo_stepper_options options = {.struct_size = sizeof options, .measures = true};
    open_scene(s, eager, replay);
    OK(rondo_stepper_create(s->device, &options, &s->stepper));
    rondo__stepper_get_governed(s->stepper)->meter = plant(s);
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
    if (mode == RONDO_STEPPER_RECORDS) {
        s->now_ns += s->capture_ns;
        OK(rondo_stepper_end(s->stepper));
        pass(s, s->replay);
    } else {
        pass(s, mode == RONDO_STEPPER_EAGER ? s->eager : s->replay);
        OK(rondo_stepper_end(s->stepper));
    }
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
    open_stepper(&s, (costs){100000, 0}, (costs){10000, 0});
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs measured: not run yet");
    // Two rounds of 24 steps, until a quarter of the time is enough for a trial.
    assert_int_equal(step_often(&s, 60), 60);
    expect_text(&s, RONDO_TEXT_PLAIN, "eager: 100 us; the other way is not tried yet; trials cost");
    assert_int_equal(step(&s, 5), RONDO_STEPPER_RECORDS);
    assert_int_equal(step_often(&s, 200), 0);
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs measured: replay: 10 us against 100 us eager; ");
    expect_text(&s, RONDO_TEXT_JSON, "{\"choice\": \"replay\", \"reason\": \"replay: 10 us");
    // Eager steps are tried now and then, for a hundredth of the time.
    const uint64_t start = s.now_ns;
    const int eager = step_often(&s, 100000);
    assert_in_range(eager, 1, 110);
    assert_true(s.now_ns - start < 100000 * UINT64_C(10200));
    OK(rondo_stepper_reset(s.stepper));
    assert_int_equal(step(&s, 5), RONDO_STEPPER_EAGER);
    close_scene(&s);
}

TEST(test_learn_measured__a_stepper_that_does_not) {
    scene s;
    open_stepper(&s, (costs){10000, 0}, (costs){20000, 0});
    (void)step_often(&s, 10000);
    expect_text(&s, RONDO_TEXT_JSON, "{\"choice\": \"eager\", \"reason\": \"eager: 10 us");
    expect_text(&s, RONDO_TEXT_PLAIN, "eager: 10 us against 20 us replayed; trials cost");
    assert_true(step_often(&s, 10000) > 9800);
    s.replay.call_ns = 1000;  // the machine has changed
    (void)step_often(&s, 60000);
    assert_int_equal(step(&s, 5), RONDO_STEPPER_PATCHES);
    // A step that is not whole ends the graph; others follow.
    OK(rondo_stepper_begin(s.stepper, s.stream));
    EXPECT(STATE, "0 works of the 3", rondo_stepper_end(s.stepper));
    assert_int_equal(step(&s, 5), RONDO_STEPPER_EAGER);
    close_scene(&s);
}

// Another program takes the processor for 5 ms during the first trial.
TEST(test_learn_measured__a_trial_that_is_disturbed) {
    scene s;
    open_stepper(&s, (costs){100000, 0}, (costs){10000, 0});
    (void)step_often(&s, 60);
    assert_int_equal(step(&s, 5), RONDO_STEPPER_RECORDS);
    assert_int_equal(step_often(&s, 3), 0);
    s.now_ns += 5000000;
    assert_int_equal(step(&s, 5), RONDO_STEPPER_EAGER);
    expect_text(&s, RONDO_TEXT_PLAIN, "eager: 100 us; the other way took longer, and was not");
    (void)step_often(&s, 1200);
    expect_text(&s, RONDO_TEXT_PLAIN, "replay: 10 us against 100 us eager");
    assert_int_equal(step_often(&s, 100), 0);
    close_scene(&s);
}

// Short runs gain, too, where a replay takes half as long or less.
TEST(test_learn_measured__a_short_run_gains) {
    static const uint64_t replays[] = {1000000, 2500000, 5000000};
    for (size_t k = 0; k < sizeof replays / sizeof replays[0]; ++k) {
        scene s;
        open_stepper(&s, (costs){5000000, 0}, (costs){replays[k], 0});
        assert_int_equal(step_often(&s, 16), 16);
        (void)step_often(&s, 24);
        const double own = 40 * 5e6;
        assert_true((double)s.now_ns <= (k == 0 ? 0.7 : k == 1 ? 0.85 : 1.11) * own);
        close_scene(&s);
    }
}

// First steps are slow, as kernels are loaded then; what they take is not what eager steps take.
TEST(test_learn_measured__first_steps_are_slow) {
    for (int slow = 1; slow <= 40; ++slow) {
        scene s;
        open_stepper(&s, (costs){3000000, 0}, (costs){150000, 0});
        s.capture_ns = 400000;
        (void)step_often(&s, slow);
        s.eager.call_ns = 100000;
        (void)step_often(&s, 4000);
        const uint64_t start = s.now_ns;
        (void)step_often(&s, 1000);
        if (s.now_ns - start > 1000 * UINT64_C(105000)) {
            fail_msg("%d slow steps: a step takes %.0f ns", slow,
                     (double)(s.now_ns - start) / 1000);
        }
        close_scene(&s);
    }
}

// At whatever step a program ends, trials have cost at most five sixteenths, and a step; in the
// long run a hundredth.
TEST(test_learn_measured__trials_cost_a_share) {
    static const costs eager[] = {{10000, 0}, {500, 0}, {3000000, 0}, {2000, 30000}, {3000000, 0}};
    static const costs replays[] = {
        {20000, 0}, {10000, 0}, {3500000, 0}, {60000, 30000}, {60000000, 0}};
    for (size_t k = 0; k < sizeof eager / sizeof eager[0]; ++k) {
        scene s;
        open_stepper(&s, eager[k], replays[k]);
        const double own = (double)(eager[k].call_ns + eager[k].device_ns);
        const double other = (double)(replays[k].call_ns + replays[k].device_ns);
        double lost = 0;
        for (int i = 1; i <= 60000; ++i) {
            (void)step(&s, i % 50);
            lost = (double)s.now_ns - own * i;
            if (!(lost <= own * i * 5 / 16 + other)) {
                fail_msg("case %zu: %g of %g ns are lost after %d steps", k, lost, own * i, i);
            }
        }
        if (!(lost <= own * 60000 / 80 || lost < 2e6)) {  // the first 24 ms have decided
            fail_msg("case %zu: %g of %g ns are lost", k, lost, own * 60000);
        }
        close_scene(&s);
    }
}

// Calls of one way wait for what the other has put into the queue; only the rate decides.
static void expect_choice(costs eager, costs replay, size_t queue, bool is_replay) {
    scene s;
    open_stepper(&s, eager, replay);
    s.queue = queue;
    (void)step_often(&s, 30000);
    const uint64_t start = s.now_ns;
    const int count = step_often(&s, 10000);
    const uint64_t rate = (s.now_ns - start) / 10000;
    const costs best = is_replay ? replay : eager;
    const uint64_t wanted = best.call_ns > best.device_ns ? best.call_ns : best.device_ns;
    if (is_replay ? count > 1000 : count < 9000) {
        fail_msg("%d of 10000 steps are eager with a queue of %zu", count, queue);
    }
    assert_in_range(rate, wanted - wanted / 20, wanted + wanted / 25);  // trials overlap
    close_scene(&s);
}

TEST(test_learn_measured__steps_that_nobody_waits_for) {
    for (size_t queue = 1; queue <= 64; queue *= 4) {
        // Patches that take more of the processor than launches, on a device that is fast or not.
        expect_choice((costs){74000, 30000}, (costs){190000, 30000}, queue, false);
        expect_choice((costs){20000, 74000}, (costs){128000, 74000}, queue, false);
        // Short calls of replays that the device takes longer for.
        expect_choice((costs){50000, 30000}, (costs){5000, 70000}, queue, false);
        // The device decides, whatever the calls take.
        expect_choice((costs){50000, 100000}, (costs){60000, 80000}, queue, true);
        expect_choice((costs){90000, 40000}, (costs){2000, 60000}, queue, true);
    }
}

// A queue that never fills shows in no call what the device takes.
TEST(test_learn_measured__steps_that_are_waited_for_seldom) {
    scene s;
    open_stepper(&s, (costs){50000, 30000}, (costs){5000, 70000});
    s.queue = QUEUE_MOST;
    s.drain_every = 1000;
    assert_true(step_often(&s, 10000) > 9600);
    expect_text(&s, RONDO_TEXT_PLAIN, "eager: 50 us against 70 us replayed; trials cost");
    close_scene(&s);
}

static scene g_scene;

static uint64_t get_gpu_clock(void) {
    return get_stream(&g_scene);
}

// What a block waits for is not only its own: replays that were put before it.
TEST(test_learn_measured__blocks_behind_a_queue) {
    scene s;
    open_stepper(&s, (costs){3400000, 3000000}, (costs){16000, 740000});
    s.queue = QUEUE_MOST;
    s.drain_every = 64;
    for (int i = 0; i < 10; ++i) {
        (void)step_often(&s, 131);
        expect_text(&s, RONDO_TEXT_PLAIN,
                    i == 0 ? "graphs measured: replay: " : "replay: 740 us against 3.4 ms eager");
    }
    close_scene(&s);
}

// The same with the events of a driver, whose clock is that of the planted stream.
TEST(test_learn_measured__events_of_a_gpu) {
    const rondo_stepper_options options = {.struct_size = sizeof options, .measures = true};
    const rondo__step_meter meter = {.now_ns = get_now, .user_data = &g_scene};
    scene *s = &g_scene;
    void *memory;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    fake_cuda_set_clock(get_gpu_clock);
    for (int is_replay_slow = 0; is_replay_slow < 2; ++is_replay_slow) {
        *s = (scene){.eager = {50000, 30000},
                     .replay = {5000, is_replay_slow ? 70000 : 20000},
                     .queue = QUEUE_MOST};
        OK(rondo_device_open("cuda:0", &s->device));
        OK(rondo_stream_create(s->device, NULL, &s->stream));
        OK(rondo_memory_allocate(s->device, RONDO_MEMORY_DEVICE, 64, &memory));
        OK(rondo_stepper_create(s->device, &options, &s->stepper));
        rondo__stepper_get_governed(s->stepper)->meter = &meter;
        int eager = 0;
        for (int i = 0; i < 900; ++i) {
            const rondo_work work = {.struct_size = sizeof work,
                                     .kind = RONDO_NODE_FILL,
                                     .destination = memory,
                                     .fill_value = (uint32_t)i,
                                     .element_bytes = 4,
                                     .element_count = 16};
            OK(rondo_stepper_begin(s->stepper, s->stream));
            const bool is_eager = rondo_stepper_get_mode(s->stepper) == RONDO_STEPPER_EAGER;
            OK(rondo_stepper_put(s->stepper, &work));
            pass(s, is_eager ? s->eager : s->replay);
            OK(rondo_stepper_end(s->stepper));
            eager += is_eager;
        }
        expect_text(s, RONDO_TEXT_PLAIN,
                    is_replay_slow ? "eager: 50 us against 70 us replayed"
                                   : "replay: 20 us against 50 us eager");
        assert_true(is_replay_slow ? eager > 800 : eager < 600);
        rondo_stepper_destroy(s->stepper);
        rondo_memory_free(s->device, memory);
        rondo_stream_destroy(s->stream);
        rondo_device_release(s->device);
    }
    fake_cuda_set_clock(NULL);
    fake_cuda_uninstall();
}

TEST(test_learn_measured__options_of_steppers) {
    scene s;
    rondo_stepper *none;
    open_scene(&s, (costs){1, 1}, (costs){1, 1});
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

static void open_learned(scene *s, costs eager, costs replay) {
    const rondo_learned_options options = {
        .struct_size = sizeof options, .measures = true, .draws_wanted = 1};
    const rondo_argument argument = {
        .struct_size = sizeof argument, .name = "n", .kind = RONDO_ARGUMENT_INT64};
    open_scene(s, eager, replay);
    OK(rondo_learned_create(s->device, &options, &argument, 1, put, s, &s->learned));
    s->learned->governed->meter = plant(s);
}

// How many of the runs were eager. Each value comes twice in turn.
static int run_often(scene *s, int count) {
    int eager = 0;
    for (int i = 0; i < count; ++i) {
        const rondo_value value = {.integer = i / 2 % 50};
        OK(rondo_learned_run(s->learned, s->stream, &value, 1));
        const bool is_eager = s->learned->governed->choice < RONDO__CHOICE_CAPTURE;
        pass(s, is_eager ? s->eager : s->replay);
        eager += is_eager;
        for (int64_t k = 0; k < WORKS; ++k) {
            expect(s, value.integer + k);
        }
    }
    return eager;
}

TEST(test_learn_measured__a_learned_step) {
    scene s;
    open_learned(&s, (costs){10000, 0}, (costs){1000, 0});
    (void)run_often(&s, 1);  // learns
    const int count = 100000;
    assert_in_range(run_often(&s, count), 1, 160);  // 1.5 ms of the first 24, and no more
    assert_true(s.now_ns < (uint64_t)count * 1030);
    expect_text(&s, RONDO_TEXT_PLAIN, "measured: replay: 1.0 us against 10 us eager; trials cost");
    s.replay.call_ns = 20000;
    (void)run_often(&s, 20000);
    assert_true(run_often(&s, 5000) > 4900);
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs measured: eager: 10 us against 20 us replayed");
    expect_text(&s, RONDO_TEXT_JSON, "\"graphs\": {\"choice\": \"eager\", \"reason\": \"eager");
    rondo_learned_stats stats = {.struct_size = sizeof stats};
    OK(rondo_learned_get_stats(s.learned, &stats));
    assert_int_equal(stats.run_count, count + 25001);
    assert_int_equal(stats.fallback_count, 0);
    close_scene(&s);
}

// Eager calls stand behind the replays in the queue.
TEST(test_learn_measured__a_learned_step_with_a_full_queue) {
    scene s;
    open_learned(&s, (costs){45000, 30000}, (costs){5000, 60000});
    s.queue = 64;
    (void)run_often(&s, 800);
    assert_int_equal(run_often(&s, 100), 100);
    expect_text(&s, RONDO_TEXT_PLAIN, "graphs measured: eager: 4");
    close_scene(&s);
}

// Memory that was freed between an eager run and a replay is looked at by the replay.
TEST(test_learn_measured__eager_runs_hide_nothing) {
    scene s;
    open_learned(&s, (costs){10000, 0}, (costs){1000, 0});
    (void)run_often(&s, 40);
    const uint64_t looked_at = s.learned->removal_count;
    void *other;
    OK(rondo_memory_allocate(s.device, RONDO_MEMORY_DEVICE, 64, &other));
    rondo_memory_free(s.device, other);
    s.learned->governed->is_replay = false;  // the next one is eager
    assert_int_equal(run_often(&s, 1), 1);
    assert_int_equal(s.learned->removal_count, looked_at);
    s.learned->governed->is_replay = true;
    assert_int_equal(run_often(&s, 1), 0);
    assert_true(s.learned->removal_count != looked_at);
    close_scene(&s);
}

TEST_MAIN()
