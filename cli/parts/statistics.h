// statistics.h — what a row of times comes to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CLI_PERCENTILE_MAX = 8 };

// Which percentiles are asked for, each above 0 and up to 100.
typedef struct cli_percentiles {
    size_t count;
    double percents[CLI_PERCENTILE_MAX];
} cli_percentiles;

#define CLI_PERCENTILES_DEFAULT                      \
    {                                                \
        .count = 3, .percents = { 90.0, 95.0, 99.0 } \
    }

// Reads "50,99,99.9"; false when that is malformed.
bool cli_percentiles_parse(const char *text, cli_percentiles *out_percentiles);

// Writes "p99.9" into `buffer` and returns it.
char *cli_percentile_format(double percent, char *buffer, size_t buffer_bytes);

typedef struct cli_statistics {
    double min;
    double max;
    double mean;
    double median;
    double percentiles[CLI_PERCENTILE_MAX];  // nearest rank: the smallest value that at least so
                                             // many percent do not exceed
    double variation;                        // standard deviation over mean; 0 when the mean is 0
} cli_statistics;

// Sorts `values` in place. All zero when `count` is 0.
cli_statistics cli_statistics_compute(double *values, size_t count,
                                      const cli_percentiles *percentiles);

// The middle of the values, which are sorted in place; 0 of none.
double cli_statistics_median(double *values, size_t count);

// How far the median of such values may lie from the true one by chance: three standard errors.
// The spread is taken from the median absolute deviation, which a few outliers do not move.
// Infinite below five values. `values` is sorted, and then holds deviations.
double cli_statistics_noise(double *values, size_t count);
