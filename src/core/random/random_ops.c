// random/random_ops.c — the ops: arguments checked, made what the kernels take, and launched.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "backend/check.h"
#include "capture/blame.h"
#include "core_cu_sources.h"
#include "random/cu/philox.cuh"
#include "random/cu/random_numbers.cuh"
#include "random/generator.h"
#include "random/generator_state.h"
#include "tensor/elements.h"

enum {
    BLOCK_THREADS = 256,
    GRID_BLOCKS_MAX = 4096,  // more than any device runs at once; the kernels loop
};

typedef struct op_launch {
    rondo__random_kernel kernel;
    uint64_t groups;
    rondo__random_arguments arguments;
} op_launch;

static rondo_status issue_op(rondo_generator *generator, rondo_stream *stream, uint64_t relative,
                             void *data) {
    op_launch *op = data;
    op->arguments.state = generator->state;
    op->arguments.relative = relative;
    const uint64_t blocks = (op->groups + BLOCK_THREADS - 1) / BLOCK_THREADS;
    const rondo_launch launch = {
        .struct_size = sizeof launch,
        .name = rondo__random_kernel_names[op->kernel],
        .function = generator->functions[op->kernel],
        .grid = {blocks < GRID_BLOCKS_MAX ? (uint32_t)blocks : GRID_BLOCKS_MAX, 1, 1},
        .block = {BLOCK_THREADS, 1, 1},
        .arguments = &op->arguments,
        .argument_bytes = sizeof op->arguments,
    };
    return rondo_stream_launch(stream, &launch);
}

// Passes the status on. A capture would lack the op, or draw other numbers than it was asked for.
static rondo_status mark_op(rondo_stream *stream, rondo__random_kernel kernel,
                            rondo_status status) {
    return rondo__mark_missing(stream, rondo__random_kernel_names[kernel], status);
}

// Draws for `op`, of whose arguments everything but the position is filled in. A group has 4
// elements, or 2.
static rondo_status run(rondo_generator *generator, rondo_stream *stream, op_launch *op,
                        uint64_t group_size, const char *call) {
    rondo_status status = rondo__check_pointer(generator, call, "generator");
    if (status == RONDO_STATUS_OK) {
        status = rondo__check_stream(stream, call);
    }
    if (status == RONDO_STATUS_OK && op->arguments.count > 0) {
        uint64_t relative;
        op->groups = (op->arguments.count + group_size - 1) / group_size;
        status =
            rondo__generator_draw(generator, stream, op->groups, call, issue_op, op, &relative);
    }
    return mark_op(stream, op->kernel, status);
}

// ---- checks -----------------------------------------------------------------------------------

static rondo_status check_real(rondo_dtype dtype, const char *call) {
    return rondo__dtype_is_float(dtype)
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, UNSUPPORTED,
                               "no kernel for elements of %s; there are f32, f64, f16 and bf16",
                               rondo_dtype_get_name(dtype));
}

// Bytes of an element; the list is rondo/tensor.h's.
static size_t get_bytes(rondo_dtype dtype) {
    switch (dtype) {
#define RONDO_RANDOM_BYTES(name, value, bytes, text) \
    case RONDO_DTYPE_##name:                         \
        return rondo__dtype_is_plain(dtype) ? (bytes) : 0;
        RONDO_DTYPE_MAP(RONDO_RANDOM_BYTES)
#undef RONDO_RANDOM_BYTES
        default:
            return 0;
    }
}

// `count` elements at `address` can be there.
static rondo_status check_elements(const void *address, size_t count, size_t bytes,
                                   const char *call, const char *argument) {
    if (count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__check_pointer(address, call, argument));
    if ((uintptr_t)address % bytes != 0) {
        return RONDO_FAIL_AS(call, INVALID, "%s is not aligned to its elements of %zu bytes",
                             argument, bytes);
    }
    if (count > (size_t)PTRDIFF_MAX / bytes) {
        return RONDO_FAIL_AS(call, INVALID, "%zu elements are larger than memory", count);
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_reals(rondo_dtype dtype, const void *address, size_t count,
                                const char *call, const char *argument) {
    RETURN_IF_ERROR(check_real(dtype, call));
    return check_elements(address, count, get_bytes(dtype), call, argument);
}

// Whether a group's elements can be moved as one: 4 of up to 4 bytes, or 2 of 8.
static bool is_aligned(const void *address, size_t bytes) {
    return (uintptr_t)address % (bytes == 8 ? 16 : 4 * bytes) == 0;
}

// ---- the ops ----------------------------------------------------------------------------------

rondo_status rondo_random_words(rondo_generator *generator, rondo_stream *stream, uint32_t *out,
                                size_t count) {
    rondo_status status = check_elements(out, count, sizeof *out, __func__, "out");
    if (status != RONDO_STATUS_OK) {
        return mark_op(stream, RONDO__RANDOM_WORDS, status);
    }
    op_launch op = {
        .kernel = RONDO__RANDOM_WORDS,
        .arguments = {.count = count, .out = out, .is_aligned = is_aligned(out, sizeof *out)}};
    return run(generator, stream, &op, 4, __func__);
}

// The value as an element, and the largest element below `high`, which is one.
static double round_to(rondo_dtype dtype, double value) {
    switch (dtype) {
        case RONDO_DTYPE_F16:
            return (double)rondo_f16_value(rondo_f16_bits((float)value));
        case RONDO_DTYPE_BF16:
            return (double)rondo_bf16_value(rondo_bf16_bits((float)value));
        case RONDO_DTYPE_F32:
            return (double)(float)value;
        default:
            return value;
    }
}

static double get_next_below(rondo_dtype dtype, double high) {
    if (dtype == RONDO_DTYPE_F64) {
        return nextafter(high, -(double)INFINITY);
    }
    if (dtype == RONDO_DTYPE_F32) {
        return (double)nextafterf((float)high, -INFINITY);
    }
    // Halves are ordered as their bits are.
    const bool is_f16 = dtype == RONDO_DTYPE_F16;
    uint16_t bits = is_f16 ? rondo_f16_bits((float)high) : rondo_bf16_bits((float)high);
    if ((bits & 0x7fffu) == 0) {
        bits = 0x8001u;
    } else {
        bits = (uint16_t)((bits & 0x8000u) != 0 ? bits + 1u : bits - 1u);
    }
    return (double)(is_f16 ? rondo_f16_value(bits) : rondo_bf16_value(bits));
}

static rondo_status check_range(rondo_dtype dtype, double low, double high, const char *call) {
    const double first = round_to(dtype, low);
    const double end = round_to(dtype, high);
    if (low <= high && isfinite(first) && isfinite(end) && isfinite(round_to(dtype, end - first))) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(call, INVALID,
                         "there is no range from %g to %g: low must not be above high, and both "
                         "and their difference must be finite in the element type",
                         low, high);
}

rondo_status rondo_random_uniform(rondo_generator *generator, rondo_stream *stream,
                                  rondo_dtype dtype, void *out, size_t count, double low,
                                  double high) {
    const rondo__random_kernel kernel =
        dtype == RONDO_DTYPE_F64 ? RONDO__RANDOM_UNIFORM_F64 : RONDO__RANDOM_UNIFORM;
    rondo_status status = check_reals(dtype, out, count, __func__, "out");
    if (status == RONDO_STATUS_OK) {
        status = check_range(dtype, low, high, __func__);
    }
    if (status != RONDO_STATUS_OK) {
        return mark_op(stream, kernel, status);
    }
    const double first = round_to(dtype, low);
    const double end = round_to(dtype, high);
    const double below = get_next_below(dtype, end);
    op_launch op = {.kernel = kernel,
                    .arguments = {.count = count,
                                  .out = out,
                                  .a = first,
                                  .b = end - first,
                                  .c = below > first ? below : first,
                                  // What is left are as many bits as a significand has.
                                  .bits = dtype == RONDO_DTYPE_F16    ? 32 - 11
                                          : dtype == RONDO_DTYPE_BF16 ? 32 - 8
                                                                      : 32 - 24,
                                  .dtype = (uint64_t)dtype,
                                  .is_aligned = is_aligned(out, get_bytes(dtype))}};
    return run(generator, stream, &op, dtype == RONDO_DTYPE_F64 ? 2 : 4, __func__);
}

rondo_status rondo_random_normal(rondo_generator *generator, rondo_stream *stream,
                                 rondo_dtype dtype, void *out, size_t count, double mean,
                                 double deviation) {
    const rondo__random_kernel kernel =
        dtype == RONDO_DTYPE_F64 ? RONDO__RANDOM_NORMAL_F64 : RONDO__RANDOM_NORMAL;
    rondo_status status = check_reals(dtype, out, count, __func__, "out");
    if (status == RONDO_STATUS_OK && (!isfinite(mean) || !isfinite(deviation) || deviation < 0.0)) {
        status = RONDO_FAIL(INVALID,
                            "there is no normal distribution of mean %g and standard deviation %g; "
                            "both must be finite, and the deviation not negative",
                            mean, deviation);
    }
    if (status != RONDO_STATUS_OK) {
        return mark_op(stream, kernel, status);
    }
    op_launch op = {.kernel = kernel,
                    .arguments = {.count = count,
                                  .out = out,
                                  .a = mean,
                                  .b = deviation,
                                  .dtype = (uint64_t)dtype,
                                  .is_aligned = is_aligned(out, get_bytes(dtype))}};
    return run(generator, stream, &op, dtype == RONDO_DTYPE_F64 ? 2 : 4, __func__);
}

// The bits of one as an element.
static uint64_t get_one(rondo_dtype dtype) {
    switch (dtype) {
        case RONDO_DTYPE_F32:
            return 0x3f800000u;
        case RONDO_DTYPE_F64:
            return UINT64_C(0x3ff0000000000000);
        case RONDO_DTYPE_F16:
            return 0x3c00u;
        case RONDO_DTYPE_BF16:
            return 0x3f80u;
        default:
            return 1;
    }
}

static rondo_status check_any(rondo_dtype dtype, const void *address, size_t count,
                              const char *call) {
    const size_t bytes = get_bytes(dtype);
    return bytes > 0 ? check_elements(address, count, bytes, call, "out")
                     : RONDO_FAIL_AS(
                           call, UNSUPPORTED,
                           "ones and zeros of dtype %s (%d) cannot be; use one of numbers, or bool",
                           rondo_dtype_get_name(dtype), (int)dtype);
}

// `status`: of the checks so far.
static rondo_status run_bernoulli(rondo_generator *generator, rondo_stream *stream,
                                  rondo_dtype dtype, void *out, size_t count, op_launch *op,
                                  rondo_status status, const char *call) {
    if (status == RONDO_STATUS_OK) {
        status = check_any(dtype, out, count, call);
    }
    if (status != RONDO_STATUS_OK) {
        return mark_op(stream, RONDO__RANDOM_BERNOULLI, status);
    }
    op->kernel = RONDO__RANDOM_BERNOULLI;
    op->arguments.count = count;
    op->arguments.out = out;
    op->arguments.bits = get_one(dtype);
    op->arguments.dtype = get_bytes(dtype);
    return run(generator, stream, op, 4, call);
}

rondo_status rondo_random_bernoulli(rondo_generator *generator, rondo_stream *stream,
                                    rondo_dtype dtype, void *out, size_t count,
                                    double probability) {
    bool is_right = probability >= 0.0 && probability <= 1.0;
    rondo_status status =
        is_right ? RONDO_STATUS_OK
                 : RONDO_FAIL(INVALID, "%g is no probability; it is from 0 to 1", probability);
    op_launch op = {.arguments = {.threshold = is_right ? rondo_threshold_f64(probability) : 0}};
    return run_bernoulli(generator, stream, dtype, out, count, &op, status, __func__);
}

rondo_status rondo_random_bernoulli_each(rondo_generator *generator, rondo_stream *stream,
                                         rondo_dtype probability_dtype, const void *probabilities,
                                         rondo_dtype dtype, void *out, size_t count) {
    rondo_status status =
        check_reals(probability_dtype, probabilities, count, __func__, "probabilities");
    op_launch op = {.arguments = {.in = probabilities, .in_dtype = (uint64_t)probability_dtype}};
    return run_bernoulli(generator, stream, dtype, out, count, &op, status, __func__);
}

rondo_status rondo_random_dropout(rondo_generator *generator, rondo_stream *stream,
                                  rondo_dtype dtype, const void *x, void *y, uint8_t *mask,
                                  size_t count, double ratio) {
    rondo_status status = check_reals(dtype, x, count, __func__, "x");
    if (status == RONDO_STATUS_OK) {
        status = check_reals(dtype, y, count, __func__, "y");
    }
    if (status == RONDO_STATUS_OK && !(ratio >= 0.0 && ratio <= 1.0)) {
        status = RONDO_FAIL(INVALID, "%g is no part to be dropped; it is from 0 to 1", ratio);
    }
    if (status != RONDO_STATUS_OK) {
        return mark_op(stream, RONDO__RANDOM_DROPOUT, status);
    }
    const size_t bytes = get_bytes(dtype);
    op_launch op = {.kernel = RONDO__RANDOM_DROPOUT,
                    .arguments = {.count = count,
                                  .out = y,
                                  .in = x,
                                  .mask = mask,
                                  .a = ratio < 1.0 ? 1.0 / (1.0 - ratio) : 0.0,
                                  .threshold = rondo_threshold_f64(ratio),
                                  .dtype = (uint64_t)dtype,
                                  .is_aligned = is_aligned(x, bytes) && is_aligned(y, bytes)}};
    return run(generator, stream, &op, 4, __func__);
}

// ---- own kernels ------------------------------------------------------------------------------

rondo_status rondo_generator_reserve(rondo_generator *generator, rondo_stream *stream,
                                     uint64_t counters, rondo_random_range *out_range) {
    rondo_status status = rondo__check_pointer(out_range, __func__, "out_range");
    uint64_t relative = 0;
    if (status == RONDO_STATUS_OK) {
        *out_range = (rondo_random_range){0};
        status =
            rondo__generator_draw(generator, stream, counters, __func__, NULL, NULL, &relative);
    }
    if (status == RONDO_STATUS_OK) {
        *out_range = (rondo_random_range){
            .state = generator->state, .relative = relative, .count = counters};
    }
    return rondo__mark_missing(stream, "", status);
}

const char *rondo_random_get_device_text(void) {
    return rondo__cu_philox;
}
