// SPDX-License-Identifier: Apache-2.0

#include "op/text/number_text.h"

#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/support.h"

enum { NUMBER_MAX = 512 };  // characters of a number that is read

// ---- writing ----------------------------------------------------------------------------------

// As few digits as read back to the same number, with an exponent where %g would write one.
static int write_real(double value, bool is_double, char *buffer, size_t bytes) {
    const int most = is_double ? 17 : 9;
    int digits = 1;
    for (; digits < most; ++digits) {
        (void)snprintf(buffer, bytes, "%.*e", digits - 1, value);
        double back = is_double ? strtod(buffer, NULL) : (double)strtof(buffer, NULL);
        if (!(back < value) && !(back > value)) {
            break;
        }
    }
    (void)snprintf(buffer, bytes, "%.*e", digits - 1, value);
    const char *exponent_at = strchr(buffer, 'e');
    long exponent = exponent_at != NULL ? strtol(exponent_at + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= (is_double ? 17 : 8)) {
        return (int)strlen(buffer);
    }
    long decimals = digits - 1 - exponent;
    return snprintf(buffer, bytes, "%.*f", (int)(decimals > 0 ? decimals : 0), value);
}

static bool is_narrow_float(rondo_dtype dtype) {
    return rondo__dtype_is_narrow(dtype) && !rondo__dtype_is_narrow_integer(dtype);
}

static int write_number(const rondo_tensor *tensor, int64_t index, char *buffer, size_t bytes) {
    if (tensor->dtype == RONDO_DTYPE_U64) {
        return snprintf(buffer, bytes, "%" PRIu64, ((const uint64_t *)tensor->data)[index]);
    }
    if (!rondo__dtype_is_float(tensor->dtype) && !is_narrow_float(tensor->dtype)) {
        return snprintf(buffer, bytes, "%" PRId64, rondo__tensor_get_int(tensor, index));
    }
    double value = rondo__tensor_get_number(tensor, index);
    if (isnan(value)) {
        return snprintf(buffer, bytes, "NaN");
    }
    if (isinf(value)) {
        return snprintf(buffer, bytes, value < 0 ? "-INF" : "INF");
    }
    return write_real(value, tensor->dtype == RONDO_DTYPE_F64, buffer, bytes);
}

static rondo_status write_numbers(rondo__compute *compute, const rondo_tensor *input,
                                  rondo_string *output, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        char buffer[64];
        char *text;
        int length = write_number(input, i, buffer, sizeof buffer);
        output[i].size = length > 0 ? (size_t)length : 0;
        RETURN_IF_ERROR(rondo__compute_new_text(compute, output[i].size, &text));
        memcpy(text, buffer, output[i].size);
        output[i].data = text;
    }
    return RONDO_STATUS_OK;
}

// ---- reading ----------------------------------------------------------------------------------

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Copies the string without the blanks around it; false when what is left is no number.
static bool trim(const rondo_string *string, char *buffer) {
    size_t from = 0;
    size_t to = string->size;
    while (from < to && is_blank(string->data[from])) {
        from += 1;
    }
    while (to > from && is_blank(string->data[to - 1])) {
        to -= 1;
    }
    if (from == to || to - from >= NUMBER_MAX) {
        return false;
    }
    memcpy(buffer, string->data + from, to - from);
    buffer[to - from] = '\0';
    return memchr(buffer, '\0', to - from) == NULL;
}

// For what is rounded once more, to fewer bits: of the two floats around the number the one whose
// last bit is 1. A number that is no float then never looks like one that lies half-way between two
// of the narrow type.
static float read_odd_float(const char *text, char **out_end) {
    const int mode = fegetround();
    uint32_t bits;
    (void)fesetround(FE_DOWNWARD);
    const float below = strtof(text, out_end);
    (void)fesetround(FE_UPWARD);
    const float above = strtof(text, out_end);
    (void)fesetround(mode);
    memcpy(&bits, &below, sizeof bits);
    return below < above && (bits & 1) == 0 ? above : below;
}

// Whole numbers keep all 64 bits; anything else goes through a double, or for narrow floats through
// a float.
static bool read_number(const char *text, rondo_dtype dtype, const rondo__narrow_rule *rule,
                        void *out_element) {
    char *end = NULL;
    errno = 0;
    if (dtype == RONDO_DTYPE_U64 && text[0] != '-') {
        unsigned long long whole = strtoull(text, &end, 10);
        if (*end == '\0' && errno == 0) {
            *(uint64_t *)out_element = whole;
            return true;
        }
    } else if (!rondo__dtype_is_float(dtype)) {
        long long whole = strtoll(text, &end, 10);
        if (*end == '\0' && errno == 0) {
            int64_t value = whole;
            rondo__convert_elements_by(RONDO_DTYPE_I64, &value, dtype, out_element, 1, rule);
            return true;
        }
    }
    if (dtype == RONDO_DTYPE_F32) {
        // Not by way of a double, which would round twice.
        *(float *)out_element = strtof(text, &end);
        return *end == '\0';
    }
    if (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16 || is_narrow_float(dtype)) {
        const float value = read_odd_float(text, &end);
        rondo__convert_elements_by(RONDO_DTYPE_F32, &value, dtype, out_element, 1, rule);
        return *end == '\0';
    }
    double value = strtod(text, &end);
    rondo__convert_elements(RONDO_DTYPE_F64, &value, dtype, out_element, 1);
    return *end == '\0';
}

static rondo_status read_numbers(const rondo__compute *compute, const rondo_string *input,
                                 rondo_dtype dtype, const rondo__narrow_rule *rule, void *output,
                                 int64_t count) {
    size_t bytes = rondo_dtype_get_bytes(dtype);
    for (int64_t i = 0; i < count; ++i) {
        char buffer[NUMBER_MAX];
        if (!trim(&input[i], buffer) ||
            !read_number(buffer, dtype, rule, (char *)output + (size_t)i * bytes)) {
            return RONDO_OP_FAIL(compute->op, BAD_DATA, "element %lld, \"%.*s\", is no number",
                                 (long long)i, (int)(input[i].size < 40 ? input[i].size : 40),
                                 input[i].size > 0 ? input[i].data : "");
        }
    }
    return RONDO_STATUS_OK;
}

// ---- both -------------------------------------------------------------------------------------

rondo_status rondo__op_cast_strings(rondo__compute *compute, const rondo__narrow_rule *rule) {
    const rondo_tensor *input = compute->inputs[0];
    rondo_dtype dtype = compute->inferred[0].dtype;
    int64_t count = rondo_shape_get_count(&input->shape);
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    if (input->dtype == dtype) {
        memcpy(output, input->data, rondo_tensor_get_bytes(input));
        return RONDO_STATUS_OK;
    }
    // A decimal point is a point, whatever the program has set.
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) {
        return RONDO_FAIL(NO_MEMORY, "the locale \"C\" cannot be had");
    }
    locale_t before = uselocale(plain);
    rondo_status status = dtype == RONDO_DTYPE_STRING
                              ? write_numbers(compute, input, output, count)
                              : read_numbers(compute, input->data, dtype, rule, output, count);
    (void)uselocale(before);
    freelocale(plain);
    return status;
}
