// SPDX-License-Identifier: Apache-2.0

#include "tensor_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "rondo/text.h"

double cli_tensor_get_element(const rondo_tensor *tensor, size_t index) {
    const void *data = tensor->data;
    switch (tensor->dtype) {
        case RONDO_DTYPE_F32:
            return (double)((const float *)data)[index];
        case RONDO_DTYPE_F64:
            return ((const double *)data)[index];
        case RONDO_DTYPE_F16:
            return (double)rondo_f16_to_float(((const uint16_t *)data)[index]);
        case RONDO_DTYPE_BF16: {
            const uint32_t bits = (uint32_t)((const uint16_t *)data)[index] << 16;
            float value;
            memcpy(&value, &bits, sizeof value);
            return (double)value;
        }
        case RONDO_DTYPE_I8:
            return (double)((const int8_t *)data)[index];
        case RONDO_DTYPE_I16:
            return (double)((const int16_t *)data)[index];
        case RONDO_DTYPE_I32:
            return (double)((const int32_t *)data)[index];
        case RONDO_DTYPE_I64:
            return (double)((const int64_t *)data)[index];
        case RONDO_DTYPE_U8:
            return (double)((const uint8_t *)data)[index];
        case RONDO_DTYPE_U16:
            return (double)((const uint16_t *)data)[index];
        case RONDO_DTYPE_U32:
            return (double)((const uint32_t *)data)[index];
        case RONDO_DTYPE_U64:
            return (double)((const uint64_t *)data)[index];
        case RONDO_DTYPE_BOOL:
            return ((const uint8_t *)data)[index] != 0 ? 1.0 : 0.0;
        case RONDO_DTYPE_C64:
            return (double)((const float *)data)[2 * index];
        case RONDO_DTYPE_C128:
            return ((const double *)data)[2 * index];
        case RONDO_DTYPE_STRING:
        case RONDO_DTYPE_SEQUENCE:
        case RONDO_DTYPE_OPTIONAL:
        case RONDO_DTYPE_NONE:
        case RONDO_DTYPE_COUNT:
            break;
        default:
            return (double)rondo_narrow_to_float(tensor->dtype, ((const uint8_t *)data)[index]);
    }
    return 0.0;
}

rondo_tensor cli_view_parts(const rondo_tensor *tensor) {
    const rondo_dtype part = tensor->dtype == RONDO_DTYPE_C64 ? RONDO_DTYPE_F32 : RONDO_DTYPE_F64;
    return (rondo_tensor){
        .dtype = part,
        .shape = {.rank = 1, .extent = {2 * rondo_shape_get_count(&tensor->shape)}},
        .data = tensor->data};
}

char *cli_tensor_format_element(const rondo_tensor *tensor, size_t index, char *buffer) {
    if (tensor->dtype == RONDO_DTYPE_I64) {
        snprintf(buffer, CLI_ELEMENT_BYTES, "%" PRId64, ((const int64_t *)tensor->data)[index]);
    } else if (tensor->dtype == RONDO_DTYPE_U64) {
        snprintf(buffer, CLI_ELEMENT_BYTES, "%" PRIu64, ((const uint64_t *)tensor->data)[index]);
    } else if (cli_is_complex(tensor->dtype)) {
        const rondo_tensor parts = cli_view_parts(tensor);
        snprintf(buffer, CLI_ELEMENT_BYTES, "%.9g%+.9gi", cli_tensor_get_element(&parts, 2 * index),
                 cli_tensor_get_element(&parts, 2 * index + 1));
    } else {
        // Of 32 bits and fewer a double keeps all of the up to ten digits.
        const bool is_whole = tensor->dtype >= RONDO_DTYPE_I8 && tensor->dtype <= RONDO_DTYPE_U32;
        snprintf(buffer, CLI_ELEMENT_BYTES, is_whole ? "%.10g" : "%.9g",
                 cli_tensor_get_element(tensor, index));
    }
    return buffer;
}

char *cli_string_quote(const rondo_string *string, char *buffer, size_t buffer_bytes) {
    enum { SHOWN_MAX = 200 };
    char plain[SHOWN_MAX + 1];
    char escaped[4 * SHOWN_MAX];
    size_t size = string->size < SHOWN_MAX ? string->size : SHOWN_MAX;
    // A zero inside would end the text that is escaped.
    for (size_t i = 0; i < size; i++) {
        plain[i] = (char)(string->data[i] != '\0' ? string->data[i] : '\x01');
    }
    plain[size] = '\0';
    (void)rondo_text_escape(plain, escaped, buffer_bytes > 4 ? buffer_bytes - 3 : 1);
    snprintf(buffer, buffer_bytes, "\"%s\"", escaped);
    return buffer;
}

enum { PREVIEW_COUNT = 6 };

static void summarise_strings(const rondo_tensor *tensor, size_t count, char *buffer,
                              size_t buffer_bytes) {
    size_t length = 0;
    for (size_t i = 0; i < count && i < PREVIEW_COUNT && length + 1 < buffer_bytes; i++) {
        char quoted[64];
        const rondo_string *string = (const rondo_string *)tensor->data + i;
        snprintf(buffer + length, buffer_bytes - length, "%s%s", i > 0 ? " " : "",
                 cli_string_quote(string, quoted, sizeof quoted));
        length = strlen(buffer);
    }
    snprintf(buffer + length, buffer_bytes - length, "%s", count > PREVIEW_COUNT ? " ..." : "");
}

static void summarise_items(const rondo_tensor *tensor, size_t count, char *buffer,
                            size_t buffer_bytes) {
    size_t length = 0;
    for (size_t i = 0; i < count && i < PREVIEW_COUNT && length + 1 < buffer_bytes; i++) {
        char shape[128];
        const rondo_tensor *item = rondo_tensor_get_item(tensor, i);
        snprintf(buffer + length, buffer_bytes - length, "%s%s %s", i > 0 ? ", " : "",
                 rondo_dtype_get_name(item->dtype),
                 rondo_shape_format(&item->shape, shape, sizeof shape));
        length = strlen(buffer);
    }
    snprintf(buffer + length, buffer_bytes - length, "%s", count > PREVIEW_COUNT ? ", ..." : "");
}

// "min ..., mean ..., max ...; 2 NaN; ": what there is of them.
static void summarise_range(const rondo_tensor *tensor, size_t count, char *buffer,
                            size_t buffer_bytes) {
    double smallest = (double)INFINITY;
    double largest = -(double)INFINITY;
    double sum = 0.0;
    size_t largest_index = 0;
    size_t nan_count = 0;
    size_t length = 0;
    const float *floats = tensor->dtype == RONDO_DTYPE_F32 ? tensor->data : NULL;
    for (size_t i = 0; i < count; i++) {
        const double value = floats != NULL ? (double)floats[i] : cli_tensor_get_element(tensor, i);
        if (isnan(value)) {
            nan_count++;
            continue;
        }
        sum += value;
        smallest = value < smallest ? value : smallest;
        if (value > largest) {
            largest = value;
            largest_index = i;
        }
    }
    if (nan_count < count) {
        const double mean = sum / (double)(count - nan_count);  // NaN: of both infinities
        snprintf(buffer, buffer_bytes, "min %.6g, mean %.6g, max %.6g (at %zu); ", smallest,
                 isnan(mean) ? (double)NAN : mean, largest, largest_index);
        length = strlen(buffer);
    }
    if (nan_count > 0) {
        snprintf(buffer + length, buffer_bytes - length, "%zu NaN; ", nan_count);
    }
}

// "values 1 2 3 ...".
static void summarise_first(const rondo_tensor *tensor, size_t count, char *buffer,
                            size_t buffer_bytes) {
    const bool is_exact = cli_is_complex(tensor->dtype) ||
                          (tensor->dtype >= RONDO_DTYPE_I8 && tensor->dtype <= RONDO_DTYPE_U64);
    snprintf(buffer, buffer_bytes, "values");
    for (size_t i = 0; i < count && i < PREVIEW_COUNT; i++) {
        const size_t length = strlen(buffer);
        char element[CLI_ELEMENT_BYTES];
        if (is_exact) {
            (void)cli_tensor_format_element(tensor, i, element);
        } else {
            snprintf(element, sizeof element, "%.6g", cli_tensor_get_element(tensor, i));
        }
        snprintf(buffer + length, buffer_bytes - length, " %s", element);
    }
    if (count > PREVIEW_COUNT) {
        const size_t length = strlen(buffer);
        snprintf(buffer + length, buffer_bytes - length, " ...");
    }
}

char *cli_tensor_summarise(const rondo_tensor *tensor, char *buffer, size_t buffer_bytes) {
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    if (count <= 0) {
        snprintf(buffer, buffer_bytes, "no elements");
    } else if (tensor->dtype == RONDO_DTYPE_STRING) {
        summarise_strings(tensor, (size_t)count, buffer, buffer_bytes);
    } else if (rondo_tensor_get_item(tensor, 0) != NULL) {
        summarise_items(tensor, (size_t)count, buffer, buffer_bytes);
    } else {
        buffer[0] = '\0';
        if (!cli_is_complex(tensor->dtype)) {  // which have no order
            summarise_range(tensor, (size_t)count, buffer, buffer_bytes);
        }
        const size_t length = strlen(buffer);
        summarise_first(tensor, (size_t)count, buffer + length, buffer_bytes - length);
    }
    return buffer;
}

bool cli_is_number(rondo_dtype dtype) {
    return (dtype >= RONDO_DTYPE_F32 && dtype <= RONDO_DTYPE_BOOL) || cli_is_narrow(dtype);
}

bool cli_is_complex(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_C64 || dtype == RONDO_DTYPE_C128;
}

bool cli_is_real(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64 || dtype == RONDO_DTYPE_F16 ||
           dtype == RONDO_DTYPE_BF16;
}

bool cli_is_narrow(rondo_dtype dtype) {
    return dtype >= RONDO_DTYPE_I4 && dtype <= RONDO_DTYPE_F8E8M0;
}

bool cli_is_narrow_float(rondo_dtype dtype) {
    return dtype >= RONDO_DTYPE_F4E2M1 && dtype <= RONDO_DTYPE_F8E8M0;
}
