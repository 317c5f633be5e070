// statistics.h — what a row of times comes to.
#ifndef RONDO_CLI_STATISTICS_H
#define RONDO_CLI_STATISTICS_H

#include <stddef.h>

typedef struct cli_statistics {
    double min;
    double max;
    double mean;
    double median;
    double p90;  // nearest rank: the smallest value that at least 90 % do not exceed
    double p95;
    double p99;
    double variation;  // standard deviation over mean; 0 when the mean is 0
} cli_statistics;

// Sorts `values` in place. All zero when `count` is 0.
cli_statistics cli_statistics_compute(double *values, size_t count);

#endif  // RONDO_CLI_STATISTICS_H
