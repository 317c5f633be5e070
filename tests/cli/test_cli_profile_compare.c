// What counts as faster, slower and chance between two profiles.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "profile_compare.h"

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

static void test_cli_profile_compare__verdicts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profile_event events[2];
        for (size_t k = 0; k < 2; k++) {
            events[k] = profile_event_make(10, cases[i].calls[k], cases[i].total[k] * 1e3,
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
static void test_cli_profile_compare__noise(void **state) {
    (void)state;
    const profile_event event = profile_event_make(10, 20, 2000e3, 80e3, 120e3);
    assert_true(event.calls == 2.0);
    assert_true(event.total > 0.19999 && event.total < 0.20001);
    assert_true(event.noise > 0.01436 && event.noise < 0.01438);
    assert_true(profile_event_make(10, 1, 100e3, 100e3, 100e3).noise < 0.0);
    // More calls than the table has.
    assert_true(profile_event_make(1, 1e9, 1e15, 0, 1e7).noise > 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_profile_compare__verdicts),
        cmocka_unit_test(test_cli_profile_compare__noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
