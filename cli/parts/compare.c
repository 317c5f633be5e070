// SPDX-License-Identifier: Apache-2.0

#include "compare.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tensor_text.h"

static bool is_real(rondo_dtype dtype) {
    return cli_is_real(dtype) || cli_is_narrow(dtype);
}

// |actual - expected|; 0 when both are the same NaN or infinity, infinite when only one is.
static double get_difference(double actual, double expected) {
    if (isnan(expected) || isnan(actual)) {
        return isnan(expected) && isnan(actual) ? 0.0 : (double)INFINITY;
    }
    if (isinf(expected) || isinf(actual)) {
        return actual == expected ? 0.0 : (double)INFINITY;
    }
    return fabs(actual - expected);
}

static double get_relative(double difference, double expected) {
    return difference == 0.0 ? 0.0 : fabs(difference / expected);
}

static double get_largest_magnitude(const rondo_tensor *tensor, size_t count) {
    double largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double magnitude = fabs(cli_tensor_get_element(tensor, i));
        if (isfinite(magnitude) && magnitude > largest) {
            largest = magnitude;
        }
    }
    return largest;
}

static void compare_reals(const rondo_tensor *actual, const rondo_tensor *expected, size_t count,
                          const cli_tolerance *tolerance, cli_comparison *result) {
    const double absolute =
        tolerance->absolute + tolerance->scale * get_largest_magnitude(expected, count);
    // Two units of bf16's eight bits, as ONNX's own tests allow.
    const bool is_rounded = expected->dtype == RONDO_DTYPE_BF16 && tolerance->relative > 0.0;
    const double relative =
        is_rounded ? fmax(tolerance->relative, 1.0 / 64.0) : tolerance->relative;
    for (size_t i = 0; i < count; i++) {
        const double got = cli_tensor_get_element(actual, i);
        const double want = cli_tensor_get_element(expected, i);
        const double difference = get_difference(got, want);
        const double allowed = isfinite(want) ? absolute + relative * fabs(want) : absolute;
        result->largest_error = fmax(result->largest_error, difference);
        result->largest_relative =
            fmax(result->largest_relative, get_relative(difference, isfinite(want) ? want : 1.0));
        if (!(difference <= allowed)) {
            if (result->mismatch_count++ == 0) {
                result->first_mismatch = i;
                snprintf(result->reason, sizeof result->reason,
                         "element %zu is %.9g, expected %.9g", i, got, want);
            }
        }
    }
}

// Single elements may stray where the whole does not: near the steep part of a sigmoid, say.
static void compare_norms(const rondo_tensor *actual, const rondo_tensor *expected, size_t count,
                          const cli_tolerance *tolerance, cli_comparison *result) {
    double square = 0.0;
    double difference = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double got = cli_tensor_get_element(actual, i);
        const double want = cli_tensor_get_element(expected, i);
        if (isfinite(got) && isfinite(want)) {
            square += want * want;
            difference += (got - want) * (got - want);
        }
    }
    const double allowed =
        tolerance->norm * sqrt(square) + tolerance->absolute * sqrt((double)count);
    if (!(sqrt(difference) <= allowed) && result->mismatch_count++ == 0) {
        snprintf(result->reason, sizeof result->reason,
                 "the difference is %.3g of the output (norms), %.3g is allowed",
                 square > 0.0 ? sqrt(difference / square) : (double)INFINITY, tolerance->norm);
    }
}

// |actual - expected| of whole numbers, whose low digits a double would lose.
static double get_whole_difference(const rondo_tensor *actual, const rondo_tensor *expected,
                                   size_t i) {
    if (expected->dtype == RONDO_DTYPE_U64) {
        const uint64_t got = ((const uint64_t *)actual->data)[i];
        const uint64_t want = ((const uint64_t *)expected->data)[i];
        return (double)(got > want ? got - want : want - got);
    }
    if (expected->dtype == RONDO_DTYPE_I64) {
        const int64_t got = ((const int64_t *)actual->data)[i];
        const int64_t want = ((const int64_t *)expected->data)[i];
        return (double)(got > want ? (uint64_t)got - (uint64_t)want
                                   : (uint64_t)want - (uint64_t)got);
    }
    // Two bools that are true may have several bytes; they differ all the same.
    return fmax(1.0, fabs(cli_tensor_get_element(actual, i) - cli_tensor_get_element(expected, i)));
}

static void compare_exact(const rondo_tensor *actual, const rondo_tensor *expected, size_t count,
                          cli_comparison *result) {
    const size_t width = rondo_dtype_get_bytes(expected->dtype);
    for (size_t i = 0; i < count; i++) {
        const char *got = (const char *)actual->data + i * width;
        const char *want = (const char *)expected->data + i * width;
        if (memcmp(got, want, width) == 0) {
            continue;
        }
        const double want_number = cli_tensor_get_element(expected, i);
        const double difference = get_whole_difference(actual, expected, i);
        result->largest_error = fmax(result->largest_error, difference);
        result->largest_relative =
            fmax(result->largest_relative, get_relative(difference, want_number));
        if (result->mismatch_count++ == 0) {
            result->first_mismatch = i;
            char got_text[CLI_ELEMENT_BYTES];
            char want_text[CLI_ELEMENT_BYTES];
            snprintf(result->reason, sizeof result->reason, "element %zu is %s, expected %s", i,
                     cli_tensor_format_element(actual, i, got_text),
                     cli_tensor_format_element(expected, i, want_text));
        }
    }
}

static void compare_strings(const rondo_tensor *actual, const rondo_tensor *expected, size_t count,
                            cli_comparison *result) {
    const rondo_string *got = actual->data;
    const rondo_string *want = expected->data;
    for (size_t i = 0; i < count; i++) {
        if (got[i].size == want[i].size &&
            (got[i].size == 0 || memcmp(got[i].data, want[i].data, got[i].size) == 0)) {
            continue;
        }
        result->largest_error = 1.0;
        if (result->mismatch_count++ == 0) {
            char a[64];
            char b[64];
            snprintf(result->reason, sizeof result->reason, "element %zu is %s, expected %s", i,
                     cli_string_quote(&got[i], a, sizeof a),
                     cli_string_quote(&want[i], b, sizeof b));
        }
    }
}

// Compares what two sequences or optionals of the same length hold, one by one.
static void compare_items(const rondo_tensor *actual, const rondo_tensor *expected, size_t count,
                          const cli_tolerance *tolerance, cli_comparison *result) {
    for (size_t i = 0; i < count; i++) {
        const cli_comparison item = cli_compare(rondo_tensor_get_item(actual, i),
                                                rondo_tensor_get_item(expected, i), tolerance);
        result->largest_error = fmax(result->largest_error, item.largest_error);
        if (item.is_equal) {
            continue;
        }
        if (result->mismatch_count == 0) {
            snprintf(result->reason, sizeof result->reason, "item %zu: %.360s", i, item.reason);
        }
        result->mismatch_count += item.mismatch_count > 0 ? item.mismatch_count : 1;
    }
}

cli_comparison cli_compare(const rondo_tensor *actual, const rondo_tensor *expected,
                           const cli_tolerance *tolerance) {
    cli_comparison result = {0};
    char got[128];
    char want[128];
    if (actual->dtype != expected->dtype ||
        !rondo_shape_is_equal(&actual->shape, &expected->shape)) {
        result.largest_error = (double)INFINITY;
        result.largest_relative = (double)INFINITY;
        snprintf(result.reason, sizeof result.reason, "got %s %s, expected %s %s",
                 rondo_dtype_get_name(actual->dtype),
                 rondo_shape_format(&actual->shape, got, sizeof got),
                 rondo_dtype_get_name(expected->dtype),
                 rondo_shape_format(&expected->shape, want, sizeof want));
        return result;
    }
    const int64_t count = rondo_shape_get_count(&expected->shape);
    if (expected->dtype == RONDO_DTYPE_SEQUENCE || expected->dtype == RONDO_DTYPE_OPTIONAL) {
        compare_items(actual, expected, count > 0 ? (size_t)count : 0, tolerance, &result);
    } else if (count > 0 && expected->dtype == RONDO_DTYPE_STRING) {
        compare_strings(actual, expected, (size_t)count, &result);
    } else if (count > 0 && cli_is_complex(expected->dtype)) {
        const rondo_tensor actual_parts = cli_view_parts(actual);
        const rondo_tensor expected_parts = cli_view_parts(expected);
        compare_reals(&actual_parts, &expected_parts, 2 * (size_t)count, tolerance, &result);
        if (result.mismatch_count > 0) {
            const size_t at = result.first_mismatch /= 2;
            char got_text[CLI_ELEMENT_BYTES];
            char want_text[CLI_ELEMENT_BYTES];
            snprintf(result.reason, sizeof result.reason, "element %zu is %s, expected %s", at,
                     cli_tensor_format_element(actual, at, got_text),
                     cli_tensor_format_element(expected, at, want_text));
        }
    } else if (count > 0 && is_real(expected->dtype)) {
        compare_reals(actual, expected, (size_t)count, tolerance, &result);
        if (tolerance->norm > 0.0) {
            compare_norms(actual, expected, (size_t)count, tolerance, &result);
        }
    } else if (count > 0) {
        compare_exact(actual, expected, (size_t)count, &result);
    }
    result.is_equal = count >= 0 && result.mismatch_count == 0;
    return result;
}
