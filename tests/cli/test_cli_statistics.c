// Statistics of known rows of numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "statistics.h"

static void expect_near(double actual, double expected) {
    const double difference = actual - expected;
    if (!(difference <= 1e-12 && difference >= -1e-12)) {
        fail_msg("%.17g, expected %.17g", actual, expected);
    }
}

static void test_cli_statistics__hundred_numbers(void **state) {
    (void)state;
    double values[100];
    for (int i = 0; i < 100; i++) {
        values[i] = (double)(100 - i);  // 100 down to 1
    }
    const cli_statistics result = cli_statistics_compute(values, 100);
    expect_near(result.min, 1.0);
    expect_near(result.max, 100.0);
    expect_near(result.mean, 50.5);
    expect_near(result.median, 50.5);
    expect_near(result.p90, 90.0);
    expect_near(result.p95, 95.0);
    expect_near(result.p99, 99.0);
}

static void test_cli_statistics__odd_count_has_a_middle(void **state) {
    (void)state;
    double values[3] = {9.0, 1.0, 2.0};
    const cli_statistics result = cli_statistics_compute(values, 3);
    expect_near(result.median, 2.0);
    expect_near(result.p90, 9.0);
    expect_near(result.mean, 4.0);
    // Deviations 5, -3, -2: variance 38 / 2, coefficient sqrt(19) / 4.
    expect_near(result.variation * result.variation, 19.0 / 16.0);
}

static void test_cli_statistics__one_and_none(void **state) {
    (void)state;
    double values[1] = {3.0};
    const cli_statistics one = cli_statistics_compute(values, 1);
    expect_near(one.min, 3.0);
    expect_near(one.p99, 3.0);
    expect_near(one.variation, 0.0);
    const cli_statistics none = cli_statistics_compute(values, 0);
    expect_near(none.max, 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_statistics__hundred_numbers),
        cmocka_unit_test(test_cli_statistics__odd_count_has_a_middle),
        cmocka_unit_test(test_cli_statistics__one_and_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
