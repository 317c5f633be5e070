// Learned steps with special cases: which are never missed, how many draws are made, which runs are
// compared, what the program names or declares, and what is left out because the step refuses it.
// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/learned.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/learn_world.h"
#include "support/short_forms.h"
#include "support/test.h"

static learn_world g;

// ---- a step with a special case ---------------------------------------------------------------

// Whether the values are the case.
typedef bool (*special_case)(const rondo_value *a);

typedef struct work {
    unsigned char *out;
    const unsigned char *in;
    int64_t numbers[2];
    float f;
    uint32_t is_case;
} work;

static void run_kernel(void *arguments) {
    const work *w = arguments;
    w->out[0] = w->is_case != 0 ? 2 : 1;
}

static rondo_status launch(rondo_stream *stream, const work *w) {
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = run_kernel};
    const rondo_launch wanted = LAUNCH("kernel", kernel.address, 1, 1, w, sizeof *w);
    return rondo_stream_launch(stream, &wanted);
}

// x, y, n, m, f.
enum { X, Y, N, M, F, COUNT };

static rondo_status step_with_case(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const special_case *is_case = user_data;
    work w;
    memset(&w, 0, sizeof w);
    w.out = a[X].pointer;
    w.in = a[Y].pointer;
    w.numbers[0] = a[N].integer;
    w.numbers[1] = a[M].integer;
    w.f = a[F].single;
    w.is_case = (*is_case)(a);
    return launch(stream, &w);
}

static void describe(rondo_argument arguments[COUNT]) {
    arguments[X] = learn_arguments[0];
    arguments[Y] = learn_arguments[1];
    arguments[N] = (rondo_argument){.struct_size = sizeof *arguments,
                                    .name = "n",
                                    .kind = RONDO_ARGUMENT_INT32,
                                    .least.integer = -100,
                                    .most.integer = 10000};
    arguments[M] = arguments[N];
    arguments[M].name = "m";
    arguments[F] = learn_arguments[3];
}

// As few draws as can be, and none in runs.
static const rondo_learned_options fewest = {
    .struct_size = sizeof fewest, .fallback = RONDO_LEARN_EAGER, .learn_ns = 1, .draws_wanted = 1};

static rondo_learned *create(rondo_learned_function step, void *user_data,
                             const rondo_learned_options *options) {
    rondo_argument arguments[COUNT];
    rondo_learned *learned = NULL;
    describe(arguments);
    OK(rondo_learned_create(g.device, options, arguments, COUNT, step, user_data, &learned));
    return learned;
}

static void set(rondo_value values[COUNT], size_t x, size_t y, int64_t n, int64_t m, float f) {
    values[X].pointer = g.buffers[x];
    values[Y].pointer = g.buffers[y];
    values[N].integer = n;
    values[M].integer = m;
    values[F].single = f;
}

static rondo_learned_stats get_stats(const rondo_learned *learned) {
    rondo_learned_stats stats = {.struct_size = sizeof stats};
    OK(rondo_learned_get_stats(learned, &stats));
    return stats;
}

static int open_world(void **state) {
    (void)state;
    learn_world_open(&g, "host");
    return 0;
}

static int close_world(void **state) {
    (void)state;
    learn_world_close(&g);
    return 0;
}

// ---- what is never missed ---------------------------------------------------------------------

static bool is_in_place(const rondo_value *a) {
    return a[X].pointer == a[Y].pointer;
}
static bool is_zero(const rondo_value *a) {
    return a[F].single == 0.0f;
}
static bool is_one(const rondo_value *a) {
    return a[F].single == 1.0f;
}
static bool is_minus_one(const rondo_value *a) {
    return a[F].single == -1.0f;
}
static bool is_largest(const rondo_value *a) {
    return a[F].single == FLT_MAX;
}
static bool is_infinite(const rondo_value *a) {
    return isinf(a[F].single);
}
static bool is_no_number(const rondo_value *a) {
    return isnan(a[F].single);
}
static bool is_denormal(const rondo_value *a) {
    return a[F].single != 0.0f && fabsf(a[F].single) < FLT_MIN;
}
static bool is_n_zero(const rondo_value *a) {
    return a[N].integer == 0;
}
static bool is_n_one(const rondo_value *a) {
    return a[N].integer == 1;
}
static bool is_n_most(const rondo_value *a) {
    return a[N].integer == 10000;
}
static bool are_equal(const rondo_value *a) {
    return a[N].integer == a[M].integer;
}
static bool are_zero_and_one(const rondo_value *a) {
    return a[N].integer == 1 && a[M].integer == 0;
}

TEST(special_values_are_never_missed) {
    static const struct {
        const char *name;
        special_case is_case;
    } rows[] = {
        {"in place", is_in_place},
        {"f is 0", is_zero},
        {"f is 1", is_one},
        {"f is -1", is_minus_one},
        {"f is FLT_MAX", is_largest},
        {"f is infinite", is_infinite},
        {"f is NaN", is_no_number},
        {"f is denormal", is_denormal},
        {"n is 0", is_n_zero},
        {"n is 1", is_n_one},
        {"n is the most", is_n_most},
        {"n is m", are_equal},
        {"n is 1, m 0", are_zero_and_one},
    };
    rondo_value values[COUNT];
    set(values, 0, 1, 7, 9, 0.3f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        for (uint64_t seed = 1; seed <= 20; ++seed) {
            special_case is_case = rows[i].is_case;
            rondo_learned_options options = fewest;
            options.seed = seed;
            rondo_learned *learned = create(step_with_case, &is_case, &options);
            OK(rondo_learned_learn(learned, g.stream, values, COUNT));
            const rondo_learned_report report = learn_world_report(learned);
            if (report.state != RONDO_LEARNED_REFUSED) {
                print_error("%s, seed %d: learned\n", rows[i].name, (int)seed);
            }
            assert_int_equal(report.state, RONDO_LEARNED_REFUSED);
            rondo_learned_destroy(learned);
        }
    }
}

// All combinations of arguments with few values: one of 48.
static bool is_one_combination(const rondo_value *a) {
    return a[2].integer == 5 && a[3].unsigned_integer == 1 && a[4].integer == 7 &&
           a[5].unsigned_integer == 0;
}

static rondo_status step_of_few(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)user_data;
    work w;
    memset(&w, 0, sizeof w);
    w.out = a[0].pointer;
    w.in = a[1].pointer;
    w.numbers[0] = a[2].integer;
    w.numbers[1] = a[4].integer;
    w.f = 1.0f;
    w.is_case = is_one_combination(a);
    return launch(stream, &w);
}

TEST(few_values_are_combined) {
    static const rondo_value set[] = {{.integer = 3}, {.integer = 5}, {.integer = 9}};
    const rondo_argument arguments[] = {
        learn_arguments[0],
        learn_arguments[1],
        {.struct_size = sizeof(rondo_argument),
         .name = "k",
         .kind = RONDO_ARGUMENT_INT32,
         .values = set,
         .value_count = 3},
        {.struct_size = sizeof(rondo_argument), .name = "b", .kind = RONDO_ARGUMENT_BOOL},
        {.struct_size = sizeof(rondo_argument),
         .name = "l",
         .kind = RONDO_ARGUMENT_INT8,
         .least.integer = 4,
         .most.integer = 7},
        {.struct_size = sizeof(rondo_argument), .name = "c", .kind = RONDO_ARGUMENT_BOOL}};
    const rondo_value values[] = {{.pointer = g.buffers[0]},
                                  {.pointer = g.buffers[1]},
                                  {.integer = 3},
                                  {.unsigned_integer = 0},
                                  {.integer = 4},
                                  {.unsigned_integer = 0}};
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        rondo_learned *learned = NULL;
        rondo_learned_options options = fewest;
        options.seed = seed;
        OK(rondo_learned_create(g.device, &options, arguments, 6, step_of_few, NULL, &learned));
        OK(rondo_learned_learn(learned, g.stream, values, 6));
        assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_REFUSED);
        rondo_learned_destroy(learned);
    }
}

// ---- draws and odds ---------------------------------------------------------------------------

static bool is_never(const rondo_value *a) {
    (void)a;
    return false;
}
static bool is_rare(const rondo_value *a) {
    return a[N].integer == 4097;
}

TEST(odds_are_counted) {
    special_case is_case = is_never;
    const rondo_learned_options patient = {.struct_size = sizeof patient, .learn_ns = UINT64_MAX};
    rondo_learned *learned = create(step_with_case, &is_case, &patient);
    rondo_value values[COUNT];
    set(values, 0, 1, 7, 9, 0.3f);
    OK(rondo_learned_run(learned, g.stream, values, COUNT));
    const rondo_learned_report report = learn_world_report(learned);
    assert_int_equal(report.draw_count, 688);
    assert_true(report.missed_share < 0.01 && report.missed_share > 0.0099);
    assert_true(report.special_count > 50);
    set(values, 0, 1, 8, 9, 0.3f);
    OK(rondo_learned_run(learned, g.stream, values, COUNT));
    assert_int_equal(get_stats(learned).check_count, 0);
    rondo_learned_destroy(learned);
}

// Values that were met are not compared again, nor any when the draws are made.
TEST(runs_are_compared_until_the_odds_stand) {
    special_case is_case = is_never;
    rondo_learned_options options = {
        .struct_size = sizeof options, .learn_ns = 1, .draws_wanted = 40};
    rondo_learned *learned = create(step_with_case, &is_case, &options);
    rondo_value values[COUNT];
    set(values, 0, 1, 0, 9, 0.3f);
    OK(rondo_learned_learn(learned, g.stream, values, COUNT));
    const uint64_t drawn = learn_world_report(learned).draw_count;
    assert_true(drawn >= 16 && drawn < 40);
    for (int64_t i = 0; i < 100; ++i) {
        values[N].integer = i / 2 % 2 == 0 ? i : 1;
        learn_world_expect_same(&g, learned, step_with_case, &is_case, values, COUNT);
    }
    assert_int_equal(learn_world_report(learned).draw_count, 40);
    assert_int_equal(get_stats(learned).check_count, 40 - drawn);
    assert_int_equal(get_stats(learned).fallback_count, 0);
    rondo_learned_destroy(learned);
}

// The case comes while runs are compared: no run is wrong.
TEST(a_compared_run_finds_a_rare_case) {
    special_case is_case = is_rare;
    const rondo_learned_options options = {.struct_size = sizeof options, .learn_ns = 1};
    rondo_learned *learned = create(step_with_case, &is_case, &options);
    rondo_value values[COUNT];
    for (int64_t n = 4090; n < 4100; ++n) {
        set(values, 0, 1, n, 9, 0.3f);
        learn_world_expect_same(&g, learned, step_with_case, &is_case, values, COUNT);
        assert_int_equal(learn_world_report(learned).state,
                         n < 4097 ? RONDO_LEARNED_PROVED : RONDO_LEARNED_REFUSED);
    }
    assert_int_equal(learn_world_report(learned).refusal, RONDO_REFUSAL_CHANGED);
    rondo_learned_destroy(learned);
}

// Pointers that touch are not among what is always drawn: the first run with such is compared.
static bool does_touch(const rondo_value *a) {
    return (unsigned char *)a[X].pointer + LEARN_BYTES / 2 == a[Y].pointer;
}

TEST(ways_to_lie_that_were_not_drawn_are_compared) {
    rondo_argument arguments[COUNT];
    special_case is_case = does_touch;
    rondo_learned *learned = NULL;
    rondo_value values[COUNT];
    describe(arguments);
    arguments[X].extent = arguments[Y].extent = LEARN_BYTES / 2;
    OK(rondo_learned_create(g.device, &fewest, arguments, COUNT, step_with_case, &is_case,
                            &learned));
    set(values, 0, 1, 7, 9, 0.3f);
    learn_world_expect_same(&g, learned, step_with_case, &is_case, values, COUNT);
    assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
    values[Y].pointer = g.buffers[0] + LEARN_BYTES / 2;
    learn_world_expect_same(&g, learned, step_with_case, &is_case, values, COUNT);
    assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_REFUSED);
    rondo_learned_destroy(learned);
}

// x, y and z: two of three at one address are always drawn, all three never.
static bool are_all_one(const rondo_value *a) {
    return a[0].pointer == a[1].pointer && a[0].pointer == a[2].pointer;
}

static rondo_status step_of_three(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)user_data;
    work w;
    memset(&w, 0, sizeof w);
    w.out = a[0].pointer;
    w.in = a[1].pointer;
    w.numbers[0] = (int64_t)(uintptr_t)a[2].pointer;
    w.is_case = are_all_one(a);
    return launch(stream, &w);
}

TEST(three_pointers_at_one_address_are_compared) {
    rondo_argument arguments[] = {learn_arguments[0], learn_arguments[1], learn_arguments[1]};
    arguments[2].name = "z";
    for (uint64_t seed = 1; seed <= 5; ++seed) {
        rondo_learned *learned = NULL;
        rondo_learned_options options = fewest;
        options.seed = seed;
        OK(rondo_learned_create(g.device, &options, arguments, 3, step_of_three, NULL, &learned));
        rondo_value values[] = {
            {.pointer = g.buffers[0]}, {.pointer = g.buffers[1]}, {.pointer = g.buffers[1]}};
        learn_world_expect_same(&g, learned, step_of_three, NULL, values, 3);
        assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
        values[1].pointer = values[2].pointer = g.buffers[0];
        learn_world_expect_same(&g, learned, step_of_three, NULL, values, 3);
        assert_int_equal(learn_world_report(learned).refusal, RONDO_REFUSAL_CHANGED);
        rondo_learned_destroy(learned);
    }
}

// ---- what the program names and declares -------------------------------------------------------

TEST(named_values_are_tried) {
    special_case is_case = is_rare;
    rondo_value values[COUNT];
    for (int is_late = 0; is_late < 2; ++is_late) {
        rondo_learned *learned = create(step_with_case, &is_case, &fewest);
        set(values, 0, 1, 7, 9, 0.3f);
        if (is_late != 0) {
            OK(rondo_learned_run(learned, g.stream, values, COUNT));
            assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
        }
        values[N].integer = 4097;
        values[X].pointer = NULL;  // any
        OK(rondo_learned_try(learned, values, COUNT));
        set(values, 0, 1, 7, 9, 0.3f);
        learn_world_expect_same(&g, learned, step_with_case, &is_case, values, COUNT);
        assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_REFUSED);
        rondo_learned_destroy(learned);
    }
    rondo_learned *learned = create(step_with_case, &is_case, &fewest);
    values[N].integer = 10001;
    assert_int_equal(rondo_learned_try(learned, values, COUNT), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_learned_try(learned, values, 2), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_learned_try(learned, NULL, COUNT), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_learned_try(NULL, values, COUNT), RONDO_STATUS_INVALID);
    rondo_learned_destroy(learned);
}

TEST(exclusive_pointers_share_no_memory) {
    rondo_argument arguments[COUNT];
    special_case is_case = is_in_place;
    rondo_learned *learned = NULL;
    rondo_value values[COUNT];
    describe(arguments);
    arguments[Y].is_exclusive = true;
    arguments[X].extent = LEARN_BYTES / 2;
    arguments[Y].extent = LEARN_BYTES / 2;
    const rondo_learned_options patient = {
        .struct_size = sizeof patient, .learn_ns = UINT64_MAX, .draws_wanted = 100};
    OK(rondo_learned_create(g.device, &patient, arguments, COUNT, step_with_case, &is_case,
                            &learned));
    set(values, 0, 0, 7, 9, 0.3f);
    for (int round = 0; round < 2; ++round) {
        assert_int_equal(rondo_learned_run(learned, g.stream, values, COUNT), RONDO_STATUS_INVALID);
        assert_non_null(strstr(rondo_error_get_last()->message,
                               "arguments \"x\" and \"y\" share memory, and \"y\""));
        values[Y].pointer = g.buffers[0] + LEARN_BYTES / 2;
        learn_world_expect_same(&g, learned, step_with_case, &is_case, values, COUNT);
        values[Y].pointer = g.buffers[0] + 256;
    }
    assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
    rondo_learned_destroy(learned);
    arguments[N].is_exclusive = true;
    assert_int_equal(
        rondo_learned_create(g.device, NULL, arguments, COUNT, step_with_case, &is_case, &learned),
        RONDO_STATUS_INVALID);
}

// ---- what the step refuses --------------------------------------------------------------------

// The areas of a copy must not overlap; and it takes no infinite f.
static rondo_status step_copies(rondo_stream *stream, const rondo_value *a, void *user_data) {
    special_case is_case = is_never;
    (void)user_data;
    if (isinf(a[F].single)) {
        return RONDO_STATUS_INVALID;
    }
    const rondo_status status =
        rondo_stream_copy(stream, a[X].pointer, a[Y].pointer, 64, RONDO_COPY_DEVICE_TO_DEVICE);
    return status == RONDO_STATUS_OK ? step_with_case(stream, a, &is_case) : status;
}

TEST(what_the_step_refuses_is_left_out) {
    for (int refuses = 0; refuses < 2; ++refuses) {
        rondo_learned_options options = fewest;
        rondo_value values[COUNT];
        options.fallback = refuses != 0 ? RONDO_LEARN_REFUSE : RONDO_LEARN_RECAPTURE;
        const rondo_status failure = refuses != 0 ? RONDO_STATUS_UNSUPPORTED : RONDO_STATUS_INVALID;
        rondo_learned *learned = create(step_copies, NULL, &options);
        for (int round = 0; round < 2; ++round) {
            set(values, 0, 1, 7 + round, 9, 0.3f);
            learn_world_expect_same(&g, learned, step_copies, NULL, values, COUNT);
            values[Y] = values[X];
            assert_int_equal(rondo_learned_run(learned, g.stream, values, COUNT), failure);
            assert_non_null(strstr(rondo_error_get_last()->message, "overlap"));
            set(values, 0, 1, 7, 9, INFINITY);
            assert_int_equal(rondo_learned_run(learned, g.stream, values, COUNT), failure);
        }
        const rondo_learned_report report = learn_world_report(learned);
        assert_int_equal(report.state, RONDO_LEARNED_PROVED);
        assert_true(report.excluded_count >= 3);  // equal pointers, both infinities
        rondo_learned_destroy(learned);
    }
}

// ---- memory, refusals, keys -------------------------------------------------------------------

TEST(freed_memory_is_noticed_where_nothing_has_changed) {
    special_case is_case = is_never;
    rondo_learned *learned = create(step_with_case, &is_case, &fewest);
    rondo_value values[COUNT];
    void *freed = NULL;
    void *other = NULL;
    OK(rondo_memory_allocate(g.device, RONDO_MEMORY_DEVICE, LEARN_BYTES, &freed));
    OK(rondo_memory_allocate(g.device, RONDO_MEMORY_DEVICE, LEARN_BYTES, &other));
    set(values, 0, 1, 7, 9, 0.3f);
    values[X].pointer = freed;
    OK(rondo_learned_run(learned, g.stream, values, COUNT));
    rondo_memory_free(g.device, other);
    OK(rondo_learned_run(learned, g.stream, values, COUNT));
    assert_int_equal(get_stats(learned).unchanged_count, 1);
    OK(rondo_stream_synchronize(g.stream));
    rondo_memory_free(g.device, freed);
    for (int64_t n = 7; n < 9; ++n) {
        values[N].integer = n;
        assert_int_equal(rondo_learned_run(learned, g.stream, values, COUNT), RONDO_STATUS_INVALID);
        assert_non_null(strstr(rondo_error_get_last()->message, "\"x\""));
        assert_non_null(strstr(rondo_error_get_last()->message, "freed since"));
    }
    values[X].pointer = g.buffers[2];
    learn_world_expect_same(&g, learned, step_with_case, &is_case, values, COUNT);
    rondo_learned_destroy(learned);
}

// Two words of two nodes have no explanation.
static rondo_status step_of_hashes(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)user_data;
    for (int i = 0; i < 2; ++i) {
        work w;
        memset(&w, 0, sizeof w);
        w.out = a[X].pointer;
        w.in = a[Y].pointer;
        w.numbers[0] = (a[N].integer * 2654435761) % (97 + i);
        w.numbers[1] = a[M].integer;
        w.f = a[F].single;
        const rondo_status status = launch(stream, &w);
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

typedef struct log_lines {
    size_t count;
    char last[1024];
} log_lines;

static void take_line(void *user_data, rondo_log_level level, const char *message) {
    log_lines *log = user_data;
    log->count += level == RONDO_LOG_WARNING;
    (void)snprintf(log->last, sizeof log->last, "%s", message);
}

TEST(refusals_are_told_once_and_listed) {
    rondo_learned *learned = create(step_of_hashes, NULL, NULL);
    rondo_value values[COUNT];
    log_lines log = {0};
    rondo_log_set_sink(take_line, &log);
    for (int64_t n = 0; n < 10; ++n) {
        set(values, 0, 1, n, 9, 0.3f);
        learn_world_expect_same(&g, learned, step_of_hashes, NULL, values, COUNT);
    }
    rondo_log_set_sink(NULL, NULL);
    assert_int_equal(log.count, 1);
    assert_non_null(strstr(log.last, "was refused (WORD at node "));
    assert_non_null(strstr(log.last, "; cure: give the word"));
    assert_non_null(strstr(log.last, " us; to record the step takes "));
    const rondo_learned_report report = learn_world_report(learned);
    assert_true(report.fallback == RONDO_LEARN_EAGER || report.fallback == RONDO_LEARN_RECAPTURE);
    assert_true(report.fallback_ns > 0);
    assert_int_equal(report.finding_count, 2);
    rondo_learned_finding findings[2] = {{.struct_size = sizeof findings[0]}};
    size_t count = 0;
    OK(rondo_learned_list_findings(learned, findings, 2, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < 2; ++i) {
        assert_int_equal(findings[i].refusal, RONDO_REFUSAL_WORD);
        assert_int_equal(findings[i].node, i);
        assert_false(findings[i].is_warning);
        assert_string_equal(findings[i].word, "arguments, bytes 16 to 23");
    }
    rondo_learned_destroy(learned);
}

TEST(keys_are_eight_bytes_a_value) {
    const rondo_graph_cache_options always = {.struct_size = sizeof always,
                                              .policy = RONDO_CACHE_ALWAYS_CAPTURE};
    rondo_learned_options options = fewest;
    options.fallback = RONDO_LEARN_CACHE;
    options.cache = &always;
    rondo_learned *learned = create(step_of_hashes, NULL, &options);
    rondo_value values[COUNT];
    rondo_graph_cache_entry entry = {.struct_size = sizeof entry};
    set(values, 0, 1, 7, 9, 0.3f);
    uint64_t key[COUNT] = {(uintptr_t)g.buffers[0], (uintptr_t)g.buffers[1], 7, 9};
    memcpy(&key[F], &values[F].single, sizeof(float));
    for (int i = 0; i < 3; ++i) {
        learn_world_expect_same(&g, learned, step_of_hashes, NULL, values, COUNT);
    }
    OK(rondo_graph_cache_get_entry(rondo_learned_get_cache(learned), key, sizeof key, &entry));
    rondo_learned_destroy(learned);
}

// ---- ops of Rondo's own -----------------------------------------------------------------------

// A MatMul keeps something in between, in memory that each recording takes anew.
static rondo_status step_of_product(rondo_stream *stream, const rondo_value *a, void *user_data) {
    rondo_op *op = user_data;
    const rondo_shape shape = {.rank = 2, .extent = {16, 16}};
    const rondo_tensor inputs[] = {
        {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = a[0].pointer},
        {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = a[1].pointer}};
    const rondo_tensor output = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = a[2].pointer};
    return rondo_op_put(op, stream, inputs, 2, &output, 1);
}

TEST(ops_are_learned) {
    static const char *const names[] = {"MatMul", "Add"};
    const rondo_shape shape = {.rank = 2, .extent = {16, 16}};
    const rondo_tensor infos[] = {{.dtype = RONDO_DTYPE_F32, .shape = shape},
                                  {.dtype = RONDO_DTYPE_F32, .shape = shape}};
    const rondo_argument arguments[] = {learn_arguments[0],
                                        learn_arguments[1],
                                        {.struct_size = sizeof(rondo_argument),
                                         .name = "z",
                                         .extent = LEARN_BYTES,
                                         .is_exclusive = true}};
    for (size_t i = 0; i < 2; ++i) {
        rondo_learned *learned = NULL;
        rondo_op *op = NULL;
        OK(rondo_op_prepare(g.device, names[i], NULL, infos, 2, 1, &op));
        OK(rondo_learned_create(g.device, NULL, arguments, 3, step_of_product, op, &learned));
        for (size_t k = 0; k < 3; ++k) {
            const rondo_value values[] = {{.pointer = g.buffers[k]},
                                          {.pointer = g.buffers[(k + 1) % 3]},
                                          {.pointer = g.buffers[(k + 2) % 3]}};
            learn_world_expect_same(&g, learned, step_of_product, op, values, 3);
        }
        assert_string_equal(learn_world_report(learned).message, "");
        assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
        rondo_learned_destroy(learned);
        rondo_op_destroy(op);
    }
}

TEST_MAIN_WITH(open_world, close_world)
