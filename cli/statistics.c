#include "statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double get_percentile(const double *sorted, size_t count, double percent) {
    const double rank = ceil(percent / 100.0 * (double)count);
    const size_t index = rank < 1.0 ? 0 : (size_t)rank - 1;
    return sorted[index < count ? index : count - 1];
}

cli_statistics cli_statistics_compute(double *values, size_t count) {
    cli_statistics result = {0};
    if (count == 0) {
        return result;
    }
    qsort(values, count, sizeof *values, compare_doubles);
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
    result.median =
        count % 2 == 1 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
    result.p90 = get_percentile(values, count, 90.0);
    result.p95 = get_percentile(values, count, 95.0);
    result.p99 = get_percentile(values, count, 99.0);
    return result;
}
