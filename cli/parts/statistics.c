// SPDX-License-Identifier: Apache-2.0

#include "statistics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int compare_doubles(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

bool cli_percentiles_parse(const char *text, cli_percentiles *out_percentiles) {
    cli_percentiles result = {.count = 0};
    for (const char *at = text;;) {
        char *end = NULL;
        errno = 0;
        const double percent = strtod(at, &end);
        if (errno != 0 || end == at || !(percent > 0.0 && percent <= 100.0) ||
            result.count == CLI_PERCENTILE_MAX || (*end != ',' && *end != '\0')) {
            return false;
        }
        result.percents[result.count++] = percent;
        if (*end == '\0') {
            *out_percentiles = result;
            return true;
        }
        at = end + 1;
    }
}

char *cli_percentile_format(double percent, char *buffer, size_t buffer_bytes) {
    snprintf(buffer, buffer_bytes, "p%.6g", percent);
    return buffer;
}

static double get_percentile(const double *sorted, size_t count, double percent) {
    const double rank = ceil(percent / 100.0 * (double)count - 1e-9);  // 99.9 % of 1000 is 999
    const size_t index = rank < 1.0 ? 0 : (size_t)rank - 1;
    return sorted[index < count ? index : count - 1];
}

double cli_statistics_median(double *values, size_t count) {
    if (count == 0) {
        return 0.0;
    }
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 == 1 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

double cli_statistics_noise(double *values, size_t count) {
    enum { COUNT_MIN = 5 };
    if (count < COUNT_MIN) {
        return (double)INFINITY;
    }
    const double median = cli_statistics_median(values, count);
    for (size_t i = 0; i < count; i++) {
        values[i] = fabs(values[i] - median);
    }
    // 1.4826: from that deviation to a standard deviation; 1.2533: from the error of a mean to that
    // of a median.
    return 3.0 * 1.2533 * 1.4826 * cli_statistics_median(values, count) / sqrt((double)count);
}

cli_statistics cli_statistics_compute(double *values, size_t count,
                                      const cli_percentiles *percentiles) {
    cli_statistics result = {0};
    if (count == 0) {
        return result;
    }
    result.median = cli_statistics_median(values, count);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    result.mean = sum / (double)count;
    double squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        squares += (values[i] - result.mean) * (values[i] - result.mean);
    }
    if (count > 1 && result.mean > 0.0) {
        result.variation = sqrt(squares / (double)(count - 1)) / result.mean;
    }
    result.min = values[0];
    result.max = values[count - 1];
    for (size_t i = 0; i < percentiles->count; i++) {
        result.percentiles[i] = get_percentile(values, count, percentiles->percents[i]);
    }
    return result;
}
