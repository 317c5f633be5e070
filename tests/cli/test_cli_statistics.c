// Statistics of known rows of numbers.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "statistics.h"
#include "support/test.h"

static void expect_near(double actual, double expected) {
    const double difference = actual - expected;
    if (!(difference <= 1e-12 && difference >= -1e-12)) {
        fail_msg("%.17g, expected %.17g", actual, expected);
    }
}

static const cli_percentiles usual = CLI_PERCENTILES_DEFAULT;

TEST(test_cli_statistics__hundred_numbers) {
    double values[100];
    for (int i = 0; i < 100; i++) {
        values[i] = (double)(100 - i);  // 100 down to 1
    }
    const cli_statistics result = cli_statistics_compute(values, 100, &usual);
    expect_near(result.min, 1.0);
    expect_near(result.max, 100.0);
    expect_near(result.mean, 50.5);
    expect_near(result.median, 50.5);
    expect_near(result.percentiles[0], 90.0);
    expect_near(result.percentiles[1], 95.0);
    expect_near(result.percentiles[2], 99.0);
}

TEST(test_cli_statistics__odd_count_has_a_middle) {
    double values[3] = {9.0, 1.0, 2.0};
    const cli_statistics result = cli_statistics_compute(values, 3, &usual);
    expect_near(result.median, 2.0);
    expect_near(result.percentiles[0], 9.0);
    expect_near(result.mean, 4.0);
    // Deviations 5, -3, -2: variance 38 / 2, coefficient sqrt(19) / 4.
    expect_near(result.variation * result.variation, 19.0 / 16.0);
}

TEST(test_cli_statistics__one_and_none) {
    double values[1] = {3.0};
    const cli_statistics one = cli_statistics_compute(values, 1, &usual);
    expect_near(one.min, 3.0);
    expect_near(one.percentiles[2], 3.0);
    expect_near(one.variation, 0.0);
    const cli_statistics none = cli_statistics_compute(values, 0, &usual);
    expect_near(none.max, 0.0);
}

TEST(test_cli_statistics__chosen_percentiles) {
    cli_percentiles percentiles;
    char name[32];
    assert_true(cli_percentiles_parse("50,99.9,100", &percentiles));
    assert_int_equal(percentiles.count, 3);
    expect_near(percentiles.percents[1], 99.9);
    assert_string_equal(cli_percentile_format(99.9, name, sizeof name), "p99.9");
    assert_string_equal(cli_percentile_format(50.0, name, sizeof name), "p50");
    double values[1000];
    for (int i = 0; i < 1000; i++) {
        values[i] = (double)(1000 - i);
    }
    const cli_statistics result = cli_statistics_compute(values, 1000, &percentiles);
    expect_near(result.percentiles[0], 500.0);
    expect_near(result.percentiles[1], 999.0);
    expect_near(result.percentiles[2], 1000.0);
    static const char *const malformed[] = {
        "", ",", "50,", "0", "101", "-5", "nan", "50;99", "1,2,3,4,5,6,7,8,9", "x"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        if (cli_percentiles_parse(malformed[i], &percentiles)) {
            fail_msg("accepted: %s", malformed[i]);
        }
    }
}

TEST(test_cli_statistics__noise_is_not_moved_by_outliers) {
    double few[4] = {1.0, 1.0, 1.0, 1.0};
    assert_true(isinf(cli_statistics_noise(few, 4)));
    // Deviations of 1 from the median 10, but for one run in which something else happened.
    double values[25];
    for (int i = 0; i < 25; i++) {
        values[i] = i % 2 == 0 ? 9.0 : 11.0;
    }
    values[12] = 10.0;
    values[24] = 1e6;
    expect_near(cli_statistics_noise(values, 25), 3.0 * 1.2533 * 1.4826 / 5.0);
    double same[6] = {2.0, 2.0, 2.0, 2.0, 2.0, 2.0};
    expect_near(cli_statistics_noise(same, 6), 0.0);
}

TEST_MAIN()
