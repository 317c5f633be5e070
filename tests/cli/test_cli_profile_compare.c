// What counts as faster, slower and chance between two profiles.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "profile_compare.h"
#include "support/test.h"

// Ten runs each; times in us.
static const struct {
    const char *what;
    double calls[2];
    double total[2];
    double least[2];
    double most[2];
    profile_verdict verdict;
} cases[] = {
    {"half the time, little spread", {10, 10}, {1000, 500}, {95, 48}, {105, 52}, PROFILE_FASTER},
    {"twice the time", {10, 10}, {500, 1000}, {48, 95}, {52, 105}, PROFILE_SLOWER},
    {"a tenth less, but calls differ by a half",
     {10, 10},
     {1000, 900},
     {60, 50},
     {140, 130},
     PROFILE_SAME},
    {"the same difference over many calls",
     {10000, 10000},
     {1e6, 9e5},
     {60, 50},
     {140, 130},
     PROFILE_FASTER},
    {"equal", {1, 1}, {100, 100}, {100, 100}, {100, 100}, PROFILE_SAME},
    {"one call says nothing", {1, 1}, {100, 200}, {100, 200}, {100, 200}, PROFILE_UNKNOWN},
    {"nor does one of the two", {10, 1}, {1000, 200}, {95, 200}, {105, 200}, PROFILE_UNKNOWN},
    {"fewer calls of the same length",
     {20, 10},
     {2000, 1000},
     {95, 95},
     {105, 105},
     PROFILE_FASTER},
    {"no spread at all", {10, 10}, {1000, 1001}, {100, 100.1}, {100, 100.1}, PROFILE_SLOWER},
};

TEST(test_cli_profile_compare__verdicts) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profile_event events[2];
        for (size_t k = 0; k < 2; k++) {
            events[k] = profile_event_make_old(10, cases[i].calls[k], cases[i].total[k] * 1e3,
                                               cases[i].least[k] * 1e3, cases[i].most[k] * 1e3);
        }
        const profile_verdict verdict = profile_event_judge(&events[0], &events[1]);
        if (verdict != cases[i].verdict) {
            print_error("%s: verdict %d, expected %d\n", cases[i].what, (int)verdict,
                        (int)cases[i].verdict);
        }
        assert_int_equal(verdict, cases[i].verdict);
    }
}

// The noise is that of the time a run. Ten runs have two calls each, of 80 to 120 us, whose spread
// is 40 / 3.735 us; three standard errors of the mean of twenty, twice.
TEST(test_cli_profile_compare__noise) {
    const profile_event event = profile_event_make_old(10, 20, 2000e3, 80e3, 120e3);
    assert_true(event.calls == 2.0);
    assert_true(event.time > 0.19999 && event.time < 0.20001);
    assert_true(event.noise > 0.01436 && event.noise < 0.01438);
    assert_true(profile_event_make_old(10, 1, 100e3, 100e3, 100e3).noise < 0.0);
    // More calls than the table has.
    assert_true(profile_event_make_old(1, 1e9, 1e15, 0, 1e7).noise > 0.0);
}

// ---- drawn calls ------------------------------------------------------------------------------

enum { DRAWN_MAX = 400, DRAWN_ROWS = 2000 };

static uint64_t g_state;

// SplitMix64, as a number in [0, 1).
static double draw(void) {
    uint64_t x = g_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static int compare_times(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double at_part(const double *sorted, size_t count, double part) {
    return sorted[(size_t)(part * (double)(count - 1))];
}

// Calls of 100 us times `factor`, with about a tenth of noise; `slow` calls of 50 ms among them.
static profile_event draw_event(size_t count, double factor, size_t slow) {
    double times[DRAWN_MAX];
    for (size_t i = 0; i < count; ++i) {
        double noise = -6.0;  // twelve of them make a normal distribution
        for (int k = 0; k < 12; ++k) {
            noise += draw();
        }
        times[i] = i < slow ? 50e6 : 100e3 * factor * (1.0 + 0.1 * noise);
    }
    qsort(times, count, sizeof *times, compare_times);
    const double quartiles[] = {at_part(times, count, 0.25), at_part(times, count, 0.5),
                                at_part(times, count, 0.75)};
    return profile_event_make(20, (double)count, quartiles);
}

// Of events that differ by chance alone few may be called slower, and none of those that are a
// fifth slower may be missed, with a call among them that was held up or without.
TEST(test_cli_profile_compare__drawn_calls) {
    static const struct {
        size_t count;
        double factor;
        size_t slow[2];
        profile_verdict verdict;
        int most_others;  // of DRAWN_ROWS
    } drawn[] = {
        {100, 1.0, {0, 0}, PROFILE_SAME, 20},      {100, 1.0, {1, 0}, PROFILE_SAME, 20},
        {100, 1.0, {0, 1}, PROFILE_SAME, 20},      {400, 1.0, {0, 3}, PROFILE_SAME, 20},
        {100, 1.2, {0, 0}, PROFILE_SLOWER, 0},     {100, 1.2, {1, 0}, PROFILE_SLOWER, 0},
        {100, 1.2, {0, 1}, PROFILE_SLOWER, 0},     {400, 1.2, {3, 0}, PROFILE_SLOWER, 0},
        {100, 1 / 1.2, {0, 1}, PROFILE_FASTER, 0},
    };
    g_state = 1;
    for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; ++i) {
        int other_count = 0;
        for (int k = 0; k < DRAWN_ROWS; ++k) {
            const profile_event first = draw_event(drawn[i].count, 1.0, drawn[i].slow[0]);
            const profile_event second =
                draw_event(drawn[i].count, drawn[i].factor, drawn[i].slow[1]);
            other_count += profile_event_judge(&first, &second) != drawn[i].verdict;
        }
        if (other_count > drawn[i].most_others) {
            print_error("case %zu: %d of %d judged otherwise\n", i, other_count, (int)DRAWN_ROWS);
        }
        assert_true(other_count <= drawn[i].most_others);
    }
    const double one[] = {100e3, 100e3, 100e3};
    assert_true(profile_event_make(10, 1, one).noise < 0.0);
}

TEST_MAIN()
