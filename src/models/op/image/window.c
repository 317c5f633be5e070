// op/image/window.c — see window.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/image/window.h"

#include <string.h>

#include "base/checked.h"
#include "op/reference.h"

enum {
    // No real network pads more, and a bound here keeps the products below in range.
    PAD_MAX = 1 << 20,
};

static const int64_t EXTENT_MAX = INT64_C(1) << 40;  // of an input; more is not addressable anyway

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t maximum(int64_t a, int64_t b) {
    return a > b ? a : b;
}

rondo_status rondo__window_read_positive(const rondo__op *op, const char *name, int32_t rank,
                                         int64_t *out_values) {
    size_t count;
    const int64_t *values = rondo__op_get_ints(op, name, &count);
    if (values != NULL && count != (size_t)rank) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "attribute %s has %zu entries, the input has %d spatial axes", name,
                             count, rank);
    }
    for (int32_t i = 0; i < rank; i++) {
        out_values[i] = values == NULL ? 1 : values[i];
        if (out_values[i] < 1 || out_values[i] > INT32_MAX) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attribute %s[%d] is %lld, it must be 1 to 2147483647", name, i,
                                 (long long)out_values[i]);
        }
    }
    return RONDO_STATUS_OK;
}

// What both forms share: counts, kernel, strides, dilations, explicit pads (zero when absent).
static rondo_status read_common(const rondo__op *op, int32_t rank, const int64_t *input,
                                const int64_t *kernel, rondo__window *window) {
    memset(window, 0, sizeof *window);
    if (rank < 1) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "input X has no spatial axis; its rank must be at least 3");
    }
    if (rank > RONDO__SPATIAL_MAX) {
        return rondo__op_fail_unsupported(op, "rank above 8");
    }
    window->rank = rank;
    for (int32_t i = 0; i < rank; i++) {
        window->input[i] = input[i];
        if (input[i] < 0 || input[i] > EXTENT_MAX) {
            return RONDO_OP_FAIL(op, BAD_DATA, "spatial extent %d of the input is %lld", i,
                                 (long long)input[i]);
        }
    }
    size_t kernel_count;
    const bool is_given = rondo__op_get_ints(op, "kernel_shape", &kernel_count) != NULL;
    if (kernel == NULL && !is_given) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute kernel_shape is missing");
    }
    RETURN_IF_ERROR(rondo__window_read_positive(op, "kernel_shape", rank, window->kernel));
    if (kernel != NULL) {
        for (int32_t i = 0; i < rank; i++) {
            if (kernel[i] < 1 || kernel[i] > INT32_MAX) {
                return RONDO_OP_FAIL(op, BAD_DATA, "kernel extent %d of the weight is %lld", i,
                                     (long long)kernel[i]);
            }
            if (is_given && window->kernel[i] != kernel[i]) {
                return RONDO_OP_FAIL(op, BAD_DATA,
                                     "attribute kernel_shape[%d] is %lld, the weight has %lld", i,
                                     (long long)window->kernel[i], (long long)kernel[i]);
            }
            window->kernel[i] = kernel[i];
        }
    }
    RETURN_IF_ERROR(rondo__window_read_positive(op, "strides", rank, window->stride));
    RETURN_IF_ERROR(rondo__window_read_positive(op, "dilations", rank, window->dilation));
    size_t count;
    const int64_t *pads = rondo__op_get_ints(op, "pads", &count);
    if (pads != NULL && count != 2 * (size_t)rank) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute pads has %zu entries, %d are expected", count,
                             2 * rank);
    }
    for (int32_t i = 0; pads != NULL && i < 2 * rank; i++) {
        if (pads[i] < 0 || pads[i] > PAD_MAX) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute pads[%d] is %lld, it must be 0 to %d", i,
                                 (long long)pads[i], PAD_MAX);
        }
        if (i < rank) {
            window->pad_begin[i] = pads[i];
        } else {
            window->pad_end[i - rank] = pads[i];
        }
    }
    return RONDO_STATUS_OK;
}

typedef enum auto_pad {
    AUTO_PAD_NOTSET,
    AUTO_PAD_VALID,
    AUTO_PAD_SAME_UPPER,
    AUTO_PAD_SAME_LOWER
} auto_pad;

static rondo_status read_auto_pad(const rondo__op *op, auto_pad *out_mode) {
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const char *text = rondo__op_get_string(op, "auto_pad", "NOTSET");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0 || (i == 0 && text[0] == '\0')) {
            *out_mode = (auto_pad)i;
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_OP_FAIL(op, BAD_DATA,
                         "attribute auto_pad is \"%.40s\", none of the four known modes", text);
}

rondo_status rondo__window_init(const rondo__op *op, int32_t rank, const int64_t *input,
                                const int64_t *kernel, rondo__window *out_window) {
    rondo__window *window = out_window;
    RETURN_IF_ERROR(read_common(op, rank, input, kernel, window));
    auto_pad mode = AUTO_PAD_NOTSET;
    RETURN_IF_ERROR(read_auto_pad(op, &mode));
    const bool rounds_up = rondo__op_get_int(op, "ceil_mode", 0) != 0;
    for (int32_t i = 0; i < rank; i++) {
        // Both factors are below 2^31: no overflow.
        const int64_t reach = window->dilation[i] * (window->kernel[i] - 1) + 1;
        const int64_t stride = window->stride[i];
        if (mode == AUTO_PAD_SAME_UPPER || mode == AUTO_PAD_SAME_LOWER) {
            const int64_t output = (input[i] + stride - 1) / stride;
            const int64_t needed = maximum((output - 1) * stride + reach - input[i], 0);
            const int64_t half = needed / 2;
            window->output[i] = output;
            window->pad_begin[i] = mode == AUTO_PAD_SAME_UPPER ? half : needed - half;
            window->pad_end[i] = needed - window->pad_begin[i];
            continue;
        }
        if (mode == AUTO_PAD_VALID) {
            window->pad_begin[i] = 0;
            window->pad_end[i] = 0;
        }
        const int64_t slack = window->pad_begin[i] + input[i] + window->pad_end[i] - reach;
        if (slack < 0) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "the window of attributes kernel_shape, dilations spans %lld on "
                                 "spatial axis %d, the padded input only %lld",
                                 (long long)reach, i, (long long)(slack + reach));
        }
        int64_t output = slack / stride + 1;
        if (rounds_up) {
            output += slack % stride != 0;
            // A window that would start in the padding at the end does not count.
            if ((output - 1) * stride >= input[i] + window->pad_begin[i]) {
                output--;
            }
        }
        window->output[i] = output;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__window_init_transposed(const rondo__op *op, int32_t rank, const int64_t *input,
                                           const int64_t *kernel, rondo__window *out_window) {
    rondo__window *window = out_window;
    RETURN_IF_ERROR(read_common(op, rank, input, kernel, window));
    auto_pad mode = AUTO_PAD_NOTSET;
    RETURN_IF_ERROR(read_auto_pad(op, &mode));
    size_t extra_count;
    const int64_t *extra = rondo__op_get_ints(op, "output_padding", &extra_count);
    if (extra != NULL && extra_count != (size_t)rank) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "attribute output_padding has %zu entries, %d are expected",
                             extra_count, rank);
    }
    size_t wanted_count;
    const int64_t *wanted = rondo__op_get_ints(op, "output_shape", &wanted_count);
    if (wanted != NULL && wanted_count != (size_t)rank) {
        // Some exporters list batch and channels too; only the spatial part counts.
        if (wanted_count != (size_t)rank + 2) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attribute output_shape has %zu entries, %d are expected",
                                 wanted_count, rank);
        }
        wanted += 2;
    }
    for (int32_t i = 0; i < rank; i++) {
        const int64_t more = extra == NULL ? 0 : extra[i];
        if (more < 0 || more > PAD_MAX) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute output_padding[%d] is %lld", i,
                                 (long long)more);
        }
        const int64_t reach = window->dilation[i] * (window->kernel[i] - 1) + 1;
        int64_t spread;  // output extent before pads are cut off
        if (!rondo__mul_i64(window->stride[i], input[i] - 1, &spread) ||
            !rondo__add_i64(spread, reach + more, &spread)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute strides[%d] makes the output too large",
                                 i);
        }
        if (wanted != NULL || mode == AUTO_PAD_SAME_UPPER || mode == AUTO_PAD_SAME_LOWER) {
            int64_t output;
            if (wanted != NULL) {
                output = wanted[i];
            } else if (!rondo__mul_i64(input[i], window->stride[i], &output)) {
                return RONDO_OP_FAIL(op, BAD_DATA,
                                     "attribute strides[%d] makes the output too large", i);
            }
            if (output < 0 || output > EXTENT_MAX) {
                return RONDO_OP_FAIL(op, BAD_DATA, "attribute output_shape[%d] asks for %lld", i,
                                     (long long)output);
            }
            const int64_t total = maximum(spread - output, 0);
            const int64_t half = total / 2;
            window->pad_begin[i] = mode == AUTO_PAD_SAME_UPPER ? half : total - half;
            window->pad_end[i] = total - window->pad_begin[i];
            window->output[i] = output;
            continue;
        }
        if (mode == AUTO_PAD_VALID) {
            window->pad_begin[i] = 0;
            window->pad_end[i] = 0;
        }
        window->output[i] = spread - window->pad_begin[i] - window->pad_end[i];
        if (window->output[i] < 0) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attribute pads cuts spatial axis %d down to extent %lld", i,
                                 (long long)window->output[i]);
        }
    }
    return RONDO_STATUS_OK;
}

void rondo__window_clip_taps(const rondo__window *window, int32_t axis, int64_t position,
                             int64_t *out_begin, int64_t *out_end) {
    const int64_t dilation = window->dilation[axis];
    const int64_t start = position * window->stride[axis] - window->pad_begin[axis];
    const int64_t room = window->input[axis] - start;  // taps at 0 <= k * dilation < room
    *out_begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    *out_end = room <= 0 ? 0 : minimum(window->kernel[axis], (room + dilation - 1) / dilation);
    *out_begin = minimum(*out_begin, *out_end);
}

void rondo__window_clip_positions(const rondo__window *window, int32_t axis, int64_t tap,
                                  int64_t *out_begin, int64_t *out_end) {
    const int64_t stride = window->stride[axis];
    const int64_t shift = tap * window->dilation[axis] - window->pad_begin[axis];
    const int64_t room = window->input[axis] - shift;  // positions with 0 <= o * stride + shift
    *out_begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    *out_end = room <= 0 ? 0 : minimum(window->output[axis], (room + stride - 1) / stride);
    *out_begin = minimum(*out_begin, *out_end);
}

void rondo__window_clip(const rondo__window *window, int32_t axes, const int64_t *position,
                        int64_t *out_start, int64_t *out_extent) {
    for (int32_t i = 0; i < axes; ++i) {
        int64_t begin, end;
        rondo__window_clip_taps(window, i, position[i], &begin, &end);
        out_start[i] =
            position[i] * window->stride[i] - window->pad_begin[i] + begin * window->dilation[i];
        out_extent[i] = end - begin;
    }
}

bool rondo__window_has_empty(const rondo__window *window) {
    for (int32_t i = 0; i < window->rank; ++i) {
        for (int64_t position = 0; position < window->output[i]; ++position) {
            int64_t begin, end;
            rondo__window_clip_taps(window, i, position, &begin, &end);
            if (begin >= end) {
                return true;
            }
        }
    }
    return false;
}

bool rondo__index_advance(int32_t rank, const int64_t *extents, int64_t *index) {
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (++index[i] < extents[i]) {
            return true;
        }
        index[i] = 0;
    }
    return false;
}
