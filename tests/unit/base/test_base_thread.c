// What a program has set for its threads, and what of that reaches the library: its signals, and
// its floating-point environment.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // feenableexcept
#endif
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/float_scope.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { COUNT = 4096, RUNS = 4 };

// ---- what a thread of the library has ---------------------------------------------------------

typedef struct seen {
    sigset_t blocked;
    int rounding;
    int traps;
} seen;

static void look(void *data) {
    seen *s = *(seen **)data;
    pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
    s->rounding = fegetround();
#ifdef __GLIBC__
    s->traps = fegetexcept();
#endif
}

static seen look_from_worker(void) {
    seen s;
    seen *address = &s;
    rondo_device *device;
    rondo_stream *stream;
    memset(&s, 0, sizeof s);
    OK(rondo_device_open("host", &device));
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_stream_call_host(stream, "look", look, &address, sizeof address));
    OK(rondo_stream_synchronize(stream));
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return s;
}

// A fault in a host function must find the program's handler; other signals are for its threads.
TEST(test_base_thread__faults_are_not_blocked) {
    static const struct {
        int number;
        int is_blocked;
    } rows[] = {{SIGSEGV, 0}, {SIGBUS, 0},  {SIGFPE, 0},  {SIGILL, 0}, {SIGTRAP, 0},
                {SIGSYS, 0},  {SIGTERM, 1}, {SIGUSR1, 1}, {SIGINT, 1}, {SIGPROF, 1}};
    const seen s = look_from_worker();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        assert_int_equal(sigismember(&s.blocked, rows[i].number), rows[i].is_blocked);
    }
    sigset_t own;
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    assert_int_equal(sigismember(&own, SIGTERM), 0);
}

// ---- environments -----------------------------------------------------------------------------

typedef enum environment {
    DEFAULT,
    UPWARD,
    DOWNWARD,
    TOWARD_ZERO,
    TRAPS,
    FLUSHING,
    ENVIRONMENT_COUNT
} environment;

static void set_environment(environment which) {
    static const int modes[] = {
        [UPWARD] = FE_UPWARD, [DOWNWARD] = FE_DOWNWARD, [TOWARD_ZERO] = FE_TOWARDZERO};
    assert_int_equal(fesetenv(FE_DFL_ENV), 0);
    if (which >= UPWARD && which <= TOWARD_ZERO) {
        assert_int_equal(fesetround(modes[which]), 0);
    }
#ifdef __GLIBC__
    if (which == TRAPS) {
        (void)feenableexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO);
    }
#endif
#if defined(__SSE__)
    if (which == FLUSHING) {
        _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
    }
#endif
}

static void check_environment(environment which) {
    fenv_t now;
    assert_int_equal(fegetround(), which == UPWARD        ? FE_UPWARD
                                   : which == DOWNWARD    ? FE_DOWNWARD
                                   : which == TOWARD_ZERO ? FE_TOWARDZERO
                                                          : FE_TONEAREST);
    assert_int_equal(fegetenv(&now), 0);
#ifdef __GLIBC__
    assert_int_equal(fegetexcept() != 0, which == TRAPS);
#endif
#if defined(__SSE__)
    assert_int_equal((_mm_getcsr() & 0x8040) == 0x8040, which == FLUSHING);
#endif
    assert_int_equal(fesetenv(FE_DFL_ENV), 0);
}

TEST(test_base_thread__threads_start_in_the_default_environment) {
    for (int which = 0; which < ENVIRONMENT_COUNT; ++which) {
        set_environment((environment)which);
        const seen s = look_from_worker();
        check_environment((environment)which);
        assert_int_equal(s.rounding, FE_TONEAREST);
        assert_int_equal(s.traps, 0);
    }
}

// ---- results ----------------------------------------------------------------------------------

// x goes by way of all that rounds, overflows and is denormal; a constant is folded likewise.
static rondo_program *build(void) {
    rondo_builder *b;
    rondo_program *program;
    static float third = 3, tiny = 1e-20f, large = 1e20f;
    const rondo_tensor scalar = {.dtype = RONDO_DTYPE_F32, .shape = {0, {0}}};
    rondo_tensor t = scalar;
    OK(rondo_builder_create(NULL, &b));
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, COUNT)));
    t.data = &third;
    OK(rondo_builder_add_parameter(b, "third", &t, RONDO_PARAMETER_COPIED));
    t.data = &tiny;
    OK(rondo_builder_add_parameter(b, "tiny", &t, RONDO_PARAMETER_COPIED));
    t.data = &large;
    OK(rondo_builder_add_parameter(b, "large", &t, RONDO_PARAMETER_COPIED));
    static const char *const nodes[][4] = {
        {"Div", "x", "third", "a"}, {"Exp", "a", NULL, "b"},        {"Mul", "x", "tiny", "c0"},
        {"Mul", "c0", "tiny", "c"}, {"Mul", "x", "large", "d0"},    {"Mul", "d0", "large", "d"},
        {"Sqrt", "x", NULL, "e"},   {"Div", "third", "tiny", "f0"}, {"Div", "f0", "third", "f1"},
        {"Mul", "x", "f1", "f"},    {"Tanh", "a", NULL, "g"},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; ++i) {
        const char *inputs[] = {nodes[i][1], nodes[i][2]};
        const char *outputs[] = {nodes[i][3]};
        OK(rondo_builder_add_node(b, nodes[i][0], inputs, nodes[i][2] != NULL ? 2 : 1, outputs, 1,
                                  NULL));
        if (nodes[i][3][1] == '\0') {
            OK(rondo_builder_add_output(b, nodes[i][3], NULL));
        }
    }
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    return program;
}

enum { OUTPUTS = 7 };

static void run(const rondo_program *program, environment which, uint32_t threads,
                float (*results)[OUTPUTS][COUNT]) {
    static const char *const names[OUTPUTS] = {"a", "b", "c", "d", "e", "f", "g"};
    static float values[COUNT];
    rondo_device *device;
    rondo_executor *executor;
    set_environment(DEFAULT);
    for (int i = 0; i < COUNT; ++i) {
        values[i] = (float)(i - COUNT / 2) / 9.0f;
    }
    const rondo_executor_options options = {.struct_size = sizeof options, .thread_count = threads};
    set_environment(which);
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_create((rondo_program *)(uintptr_t)program, device, &options, &executor));
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, values, COUNT);
    for (int r = 0; r < RUNS; ++r) {
        rondo_binding fetches[OUTPUTS];
        for (int i = 0; i < OUTPUTS; ++i) {
            fetches[i] = BIND(names[i], RONDO_DTYPE_F32, results[r][i], COUNT);
        }
        OK(rondo_executor_run(executor, &feed, 1, fetches, OUTPUTS));
    }
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    check_environment(which);
}

// Eager, captured and replayed, by one thread and by several: bit for bit the same.
TEST(test_base_thread__results_do_not_depend_on_it) {
    static float expected[RUNS][OUTPUTS][COUNT];
    static float seen_values[RUNS][OUTPUTS][COUNT];
    rondo_program *program = build();
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        run(program, DEFAULT, threads, expected);
        assert_true(isinf(expected[0][3][COUNT - 1]) && expected[0][2][COUNT - 1] != 0);
        for (int which = UPWARD; which < ENVIRONMENT_COUNT; ++which) {
            rondo_program *again = build();  // what is folded must not depend on it, either
            memset(seen_values, 0, sizeof seen_values);
            run(again, (environment)which, threads, seen_values);
            assert_memory_equal(seen_values, expected, sizeof expected);
            rondo_program_destroy(again);
        }
    }
    rondo_program_destroy(program);
}

// A Range whose length is known when it runs is computed by the calling thread.
static void run_range(environment which, rondo_tensor *out_result) {
    static const char *const names[] = {"start", "limit", "delta"};
    static float values[] = {0, 100, 0.1f};
    rondo_builder *b;
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    rondo_binding feeds[3];
    set_environment(DEFAULT);
    OK(rondo_builder_create(NULL, &b));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_builder_add_input(b, &PORT(names[i], RONDO_DTYPE_F32)));
        feeds[i] = BIND(names[i], RONDO_DTYPE_F32, &values[i]);
    }
    OK(rondo_builder_add_node(b, "Range", names, 3, (const char *[]){"y"}, 1, NULL));
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    set_environment(which);
    rondo_binding fetch = {.name = "y"};
    OK(rondo_executor_run(executor, feeds, 3, &fetch, 1));
    check_environment(which);
    *out_result = fetch.tensor;
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
}

TEST(test_base_thread__nor_do_those_that_the_caller_computes) {
    rondo_tensor expected;
    rondo_tensor seen_result;
    run_range(DEFAULT, &expected);
    assert_true(expected.shape.extent[0] >= 1000);
    for (int which = UPWARD; which < ENVIRONMENT_COUNT; ++which) {
        run_range((environment)which, &seen_result);
        assert_true(rondo_shape_is_equal(&seen_result.shape, &expected.shape));
        assert_memory_equal(seen_result.data, expected.data, rondo_tensor_get_bytes(&expected));
        rondo_tensor_deinit(&seen_result);
    }
    rondo_tensor_deinit(&expected);
}

// The C library rounds what it reads by x87's control word, where there is one.
TEST(test_base_thread__texts_are_read_in_the_default_environment) {
    for (int which = DEFAULT; which < ENVIRONMENT_COUNT; ++which) {
        set_environment((environment)which);
        const rondo__float_scope scope = rondo__float_enter();
        const float above = strtof("1.000000059604644775390626", NULL);
        const float below = strtof("1.000000059604644775390624", NULL);
        rondo__float_leave(&scope);
        check_environment((environment)which);
        assert_true(above == 1.00000012f && below == 1.0f);
    }
}

TEST_MAIN()
