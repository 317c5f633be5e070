// SPDX-License-Identifier: Apache-2.0

#include "cast.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "console.h"
#include "tensor_text.h"

static bool is_real(rondo_dtype dtype) {
    return cli_is_real(dtype) || cli_is_narrow_float(dtype);
}

// Rounds to nearest even; NaN stays NaN.
static uint16_t bf16_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static void store_real(rondo_dtype dtype, void *data, size_t index, double value) {
    switch (dtype) {
        case RONDO_DTYPE_F64:
            ((double *)data)[index] = value;
            break;
        case RONDO_DTYPE_F16:
            ((uint16_t *)data)[index] = rondo_f16_from_float((float)value);
            break;
        case RONDO_DTYPE_BF16:
            ((uint16_t *)data)[index] = bf16_from_float((float)value);
            break;
        case RONDO_DTYPE_F32:
            ((float *)data)[index] = (float)value;
            break;
        default:
            ((uint8_t *)data)[index] = rondo_narrow_from_float(dtype, (float)value);
            break;
    }
}

// A whole number of either sign: U64 holds what exceeds I64, everything else fits a signed one.
typedef struct whole {
    bool is_negative;
    uint64_t magnitude;
} whole;

static whole from_signed(int64_t value) {
    return (whole){.is_negative = value < 0,
                   .magnitude = value < 0 ? ~(uint64_t)value + 1 : (uint64_t)value};
}

static whole load_whole(const rondo_tensor *tensor, size_t index) {
    if (tensor->dtype == RONDO_DTYPE_I64) {
        return from_signed(((const int64_t *)tensor->data)[index]);
    }
    if (tensor->dtype == RONDO_DTYPE_U64) {
        return (whole){.magnitude = ((const uint64_t *)tensor->data)[index]};
    }
    return from_signed((int64_t)cli_tensor_get_element(tensor, index));  // exact in a double
}

// False when `value` is none.
static bool whole_from_real(double value, whole *out_whole) {
    if (!(fabs(value) < 18446744073709551616.0) || value != trunc(value)) {
        return false;
    }
    *out_whole = (whole){.is_negative = value < 0.0, .magnitude = (uint64_t)fabs(value)};
    return true;
}

// Whether a small integer holds the number.
static bool store_narrow(rondo_dtype dtype, void *data, size_t index, whole value) {
    enum { BEYOND_ALL = 16 };
    if (value.magnitude >= BEYOND_ALL) {
        return false;
    }
    const float number = value.is_negative ? -(float)value.magnitude : (float)value.magnitude;
    const uint8_t bits = rondo_narrow_from_float(dtype, number);
    ((uint8_t *)data)[index] = bits;
    return rondo_narrow_to_float(dtype, bits) == number;
}

static bool store_whole(rondo_dtype dtype, void *data, size_t index, whole value) {
    if (cli_is_narrow(dtype)) {
        return store_narrow(dtype, data, index, value);
    }
    const size_t width = rondo_dtype_get_bytes(dtype);
    const bool is_signed = dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_I16 ||
                           dtype == RONDO_DTYPE_I32 || dtype == RONDO_DTYPE_I64;
    const uint64_t top = UINT64_C(1) << (8 * width - 1);
    const uint64_t most = dtype == RONDO_DTYPE_BOOL ? 1
                          : !is_signed              ? top - 1 + top
                          : value.is_negative       ? top
                                                    : top - 1;
    if (value.magnitude > most || (value.is_negative && !is_signed && value.magnitude > 0)) {
        return false;
    }
    const uint64_t bits = value.is_negative ? ~value.magnitude + 1 : value.magnitude;
    memcpy((char *)data + index * width, &bits, width);  // little endian
    return true;
}

// False when the element does not survive.
static bool cast_element(const rondo_tensor *from, rondo_tensor *to, size_t index) {
    whole number;
    if (!is_real(to->dtype)) {
        if (!is_real(from->dtype)) {
            number = load_whole(from, index);
        } else if (!whole_from_real(cli_tensor_get_element(from, index), &number)) {
            return false;
        }
        return store_whole(to->dtype, to->data, index, number);
    }
    const double value = cli_tensor_get_element(from, index);
    store_real(to->dtype, to->data, index, value);
    const double stored = cli_tensor_get_element(to, index);
    return isfinite(stored) || !isfinite(value);
}

bool cli_cast(const char *label, rondo_dtype dtype, rondo_tensor *tensor) {
    rondo_tensor result;
    if (tensor->dtype == dtype) {
        return true;
    }
    if (!cli_is_number(dtype) || !cli_is_number(tensor->dtype)) {
        cli_print_error("%s: %s cannot be cast to %s", label, rondo_dtype_get_name(tensor->dtype),
                        rondo_dtype_get_name(dtype));
        return false;
    }
    if (rondo_tensor_init(dtype, &tensor->shape, &result) != RONDO_STATUS_OK) {
        cli_fail_about(label, "");
        return false;
    }
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        if (!cast_element(tensor, &result, (size_t)i)) {
            cli_print_error("%s: element %" PRId64 " is %.17g, which %s cannot hold", label, i,
                            cli_tensor_get_element(tensor, (size_t)i), rondo_dtype_get_name(dtype));
            rondo_tensor_deinit(&result);
            return false;
        }
    }
    rondo_tensor_deinit(tensor);
    *tensor = result;
    return true;
}
