// op/math/op_random.c — RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial, and
// Dropout in training.
//
// The references draw from the position of a generator that the compute names (seed 0, counter 0
// when it names none), by the rules of rondo/random.h: the same words for the same elements as the
// kernels, and the same numbers up to the rounding of log and cos. They say how many counters they
// took.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/draws.h"
#include "op/element_types.h"
#include "op/op.h"
#include "op/reference.h"
#include "rondo/random.h"

bool rondo__op_draws(const rondo__op *op, const rondo__tensor_info *inputs, size_t input_count) {
    if ((op->def->flags & RONDO__OP_RANDOM) != 0) {
        return true;
    }
    if (op->def->id != RONDO__OP_Dropout) {
        return false;
    }
    if (op->opset < 12 || input_count < 3 || inputs[2].dtype == RONDO_DTYPE_NONE) {
        return op->is_training;
    }
    const rondo_tensor *training = inputs[2].constant;
    return training != NULL && rondo_shape_get_count(&training->shape) == 1 &&
           rondo__tensor_get_number(training, 0) != 0.0;
}

bool rondo__op_get_seed(const rondo__op *op, uint64_t *out_seed) {
    const rondo__attribute *seed = rondo__op_find(op, "seed");
    if (seed == NULL || seed->kind != RONDO__ATTRIBUTE_FLOAT) {
        return false;
    }
    // Whole numbers are themselves; others, what their bits are.
    const float value = seed->float_value;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const bool is_whole = value >= 0.0f && value < 0x1p63f && truncf(value) == value;
    *out_seed = is_whole ? (uint64_t)value : bits;
    return true;
}

// ---- drawing ----------------------------------------------------------------------------------

// Words of the compute's position, one after the other.
typedef struct source {
    uint64_t seed;
    uint64_t counter;
    uint32_t words[4];
    int used;            // of words
    uint64_t *counters;  // taken; may be NULL
} source;

static source begin(const rondo__compute *compute) {
    source s = {.used = 4, .counters = compute->random_counters};
    if (compute->random != NULL) {
        s.seed = compute->random->seed;
        s.counter = compute->random->offset;
    }
    if (s.counters != NULL) {
        *s.counters = 0;
    }
    return s;
}

static uint32_t take_word(source *s) {
    if (s->used == 4) {
        rondo_random_philox(s->seed, 0, s->counter++, s->words);
        s->used = 0;
        if (s->counters != NULL) {
            ++*s->counters;
        }
    }
    return s->words[s->used++];
}

// From [0, 1), with as many bits as an element of the dtype has.
static double take_unit(source *s, rondo_dtype dtype) {
    const uint32_t word = take_word(s);
    switch (dtype) {
        case RONDO_DTYPE_F64: {
            const uint64_t wide = (uint64_t)take_word(s) << 32 | word;
            return (double)(wide >> 11) * 0x1p-53;
        }
        case RONDO_DTYPE_F16:
            return (double)(word >> 21) * 0x1p-11;
        case RONDO_DTYPE_BF16:
            return (double)(word >> 24) * 0x1p-8;
        default:
            return (double)(word >> 8) * 0x1p-24;
    }
}

// Two standard normal numbers.
static void take_normals(source *s, rondo_dtype dtype, double out_pair[2]) {
    double unit = ((double)take_word(s) + 0.5) * 0x1p-32;
    double turn;
    if (dtype == RONDO_DTYPE_F64) {
        const uint64_t low = s->words[s->used - 1];
        const uint64_t wide = (uint64_t)take_word(s) << 32 | low;
        unit = (double)(wide >> 11) * 0x1p-53 + 0x1p-54;
        const uint64_t angle = take_word(s);
        turn = (double)((uint64_t)take_word(s) << 32 | angle) * 0x1p-64;
    } else {
        unit = (double)(float)unit;
        turn = (double)take_word(s) * 0x1p-32;
    }
    const double radius = sqrt(-2.0 * log(unit));
    out_pair[0] = radius * cos(turn * 6.283185307179586);
    out_pair[1] = radius * sin(turn * 6.283185307179586);
}

// ---- RandomNormal, RandomUniform, and Like ------------------------------------------------------

static bool makes_normal(const rondo__op *op) {
    return op->def->id == RONDO__OP_RandomNormal || op->def->id == RONDO__OP_RandomNormalLike;
}

void rondo__op_get_distribution(const rondo__op *op, double *out_first, double *out_second) {
    const bool is_normal = makes_normal(op);
    *out_first = (double)rondo__op_get_float(op, is_normal ? "mean" : "low", 0.0f);
    *out_second = (double)rondo__op_get_float(op, is_normal ? "scale" : "high", 1.0f);
}

static rondo_status check_distribution(const rondo__op *op, rondo_dtype dtype) {
    double first;
    double second;
    rondo__op_get_distribution(op, &first, &second);
    const bool is_valid = makes_normal(op) ? second >= 0.0 && isfinite(second) : first <= second;
    if (!is_valid || !isfinite(first) || !isfinite(second)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "there is no such distribution: %g, %g", first, second);
    }
    if (!rondo__dtype_is_float(dtype)) {
        return rondo__op_fail_unsupported(op, "attribute dtype: only f16, bf16, f32 and f64");
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_random(rondo__infer *infer) {
    const rondo__op *op = infer->op;
    const rondo_dtype dtype = rondo__dtype_from_onnx(rondo__op_get_int(op, "dtype", 1));
    RETURN_IF_ERROR(check_distribution(op, dtype));
    size_t rank = 0;
    const int64_t *extents = rondo__op_get_ints(op, "shape", &rank);
    if (extents == NULL && rondo__op_find(op, "shape") == NULL) {
        return RONDO_OP_FAIL(op, BAD_DATA, "has no attribute shape");
    }
    if (rank > RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(op, "attribute shape of rank above 8");
    }
    rondo_shape shape = {.rank = (int32_t)rank};
    for (size_t i = 0; i < rank; ++i) {
        shape.extent[i] = extents[i];
    }
    if (rondo_shape_get_count(&shape) < 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute shape is no shape");
    }
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

static rondo_status infer_random_like(rondo__infer *infer) {
    const int64_t wanted = rondo__op_get_int(infer->op, "dtype", 0);
    const rondo_dtype dtype = wanted != 0 ? rondo__dtype_from_onnx(wanted) : infer->inputs[0].dtype;
    RETURN_IF_ERROR(check_distribution(infer->op, dtype));
    return rondo__infer_set_output(infer, 0, dtype, &infer->inputs[0].shape);
}

static rondo_status compute_random(rondo__compute *compute) {
    void *y = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    const rondo_dtype dtype = compute->inferred[0].dtype;
    const size_t bytes = rondo_dtype_get_bytes(dtype);
    const int64_t count = rondo_shape_get_count(&compute->inferred[0].shape);
    const bool is_normal = makes_normal(compute->op);
    double first;
    double second;
    rondo__op_get_distribution(compute->op, &first, &second);
    source s = begin(compute);
    double pair[2] = {0};
    for (int64_t i = 0; i < count; ++i) {
        double value;
        if (is_normal) {
            if (i % 2 == 0) {
                take_normals(&s, dtype, pair);
            }
            value = pair[i % 2] * second + first;
        } else {
            value = take_unit(&s, dtype) * (second - first) + first;
        }
        rondo__convert_elements(RONDO_DTYPE_F64, &value, dtype, (char *)y + (size_t)i * bytes, 1);
    }
    return RONDO_STATUS_OK;
}

// ---- Bernoulli --------------------------------------------------------------------------------

static rondo_status infer_bernoulli(rondo__infer *infer) {
    const int64_t wanted = rondo__op_get_int(infer->op, "dtype", 0);
    const rondo_dtype dtype = wanted != 0 ? rondo__dtype_from_onnx(wanted) : infer->inputs[0].dtype;
    if (!rondo__dtype_is_float(infer->inputs[0].dtype)) {
        return rondo__op_fail_dtype(infer->op, 0, infer->inputs[0].dtype);
    }
    if (dtype == RONDO_DTYPE_NONE) {
        return rondo__op_fail_element_type(infer->op, "dtype", wanted);
    }
    return rondo__infer_set_output(infer, 0, dtype, &infer->inputs[0].shape);
}

static rondo_status compute_bernoulli(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    void *y = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    const rondo_dtype dtype = compute->inferred[0].dtype;
    const size_t bytes = rondo_dtype_get_bytes(dtype);
    const int64_t count = rondo_shape_get_count(&x->shape);
    source s = begin(compute);
    for (int64_t i = 0; i < count; ++i) {
        const double p = rondo__tensor_get_number(x, i);
        const uint8_t value = (double)take_word(&s) < p * 0x1p32;
        rondo__convert_elements(RONDO_DTYPE_U8, &value, dtype, (char *)y + (size_t)i * bytes, 1);
    }
    return RONDO_STATUS_OK;
}

// ---- Multinomial ------------------------------------------------------------------------------

static rondo_status infer_multinomial(rondo__infer *infer) {
    const rondo__op *op = infer->op;
    const rondo_shape *x = &infer->inputs[0].shape;
    const int64_t samples = rondo__op_get_int(op, "sample_size", 1);
    const rondo_dtype dtype = rondo__dtype_from_onnx(rondo__op_get_int(op, "dtype", 6));
    if (!rondo__dtype_is_float(infer->inputs[0].dtype)) {
        return rondo__op_fail_dtype(op, 0, infer->inputs[0].dtype);
    }
    if (dtype != RONDO_DTYPE_I32 && dtype != RONDO_DTYPE_I64) {
        return rondo__op_fail_unsupported(op, "attribute dtype: only i32 and i64");
    }
    rondo_shape shape = {.rank = 2, .extent = {x->extent[0], samples}};
    if (x->rank != 2 || samples < 1 || rondo_shape_get_count(&shape) < 0 ||
        (x->extent[1] == 0 && x->extent[0] != 0)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "needs [batch, classes] and a sample_size of 1 or more");
    }
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

// A class of one row of unnormalised log-probabilities, by the inverse of their running sum.
static int64_t choose(const double *x, int64_t classes, double unit) {
    double largest = -(double)INFINITY;
    double total = 0.0;
    for (int64_t k = 0; k < classes; ++k) {
        largest = fmax(largest, x[k]);
    }
    for (int64_t k = 0; k < classes; ++k) {
        total += exp(x[k] - largest);
    }
    double left = unit * total;
    for (int64_t k = 0; k + 1 < classes; ++k) {
        left -= exp(x[k] - largest);
        if (left < 0.0) {
            return k;
        }
    }
    return classes - 1;
}

static rondo_status compute_multinomial(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const rondo_dtype dtype = compute->inferred[0].dtype;
    const int64_t samples = compute->inferred[0].shape.extent[1];
    void *y = NULL;
    double *x = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    rondo__scratch scratch = {0};
    x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    source s = begin(compute);
    for (int64_t i = 0; scratch.status == RONDO_STATUS_OK && i < shape->extent[0] * samples; ++i) {
        const int64_t row = i / samples;
        const int64_t chosen =
            choose(x + row * shape->extent[1], shape->extent[1], take_unit(&s, RONDO_DTYPE_F64));
        rondo__convert_elements(RONDO_DTYPE_I64, &chosen, dtype,
                                (char *)y + (size_t)i * rondo_dtype_get_bytes(dtype), 1);
    }
    return rondo__scratch_end(&scratch);
}

// ---- Dropout in training ------------------------------------------------------------------------

rondo_status rondo__op_get_ratio(const rondo__op *op, const rondo_tensor *input,
                                 double *out_ratio) {
    *out_ratio = op->opset < 12 ? (double)rondo__op_get_float(op, "ratio", 0.5f) : 0.5;
    if (input != NULL && rondo_shape_get_count(&input->shape) == 1) {
        *out_ratio = rondo__tensor_get_number(input, 0);
    }
    if (!(*out_ratio >= 0.0 && *out_ratio <= 1.0)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "ratio %g is not from 0 to 1", *out_ratio);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__op_compute_dropout(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    double ratio;
    void *y = NULL;
    void *mask = NULL;
    RETURN_IF_ERROR(rondo__op_get_ratio(
        compute->op, rondo__compute_has_input(compute, 1) ? compute->inputs[1] : NULL, &ratio));
    if (rondo__compute_wants_output(compute, 0)) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    }
    if (rondo__compute_wants_output(compute, 1)) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 1, &mask));
    }
    const double scale = ratio < 1.0 ? 1.0 / (1.0 - ratio) : 0.0;
    const int64_t count = rondo_shape_get_count(&x->shape);
    const size_t bytes = rondo_dtype_get_bytes(x->dtype);
    const rondo_dtype mask_dtype =
        compute->output_count > 1 ? compute->inferred[1].dtype : RONDO_DTYPE_NONE;
    const size_t mask_bytes = rondo_dtype_get_bytes(mask_dtype);  // of version 7 it is a float
    source s = begin(compute);
    for (int64_t i = 0; i < count; ++i) {
        const bool is_kept = (double)take_word(&s) >= ratio * 0x1p32;
        const double value = is_kept ? rondo__tensor_get_number(x, i) * scale : 0.0;
        if (y != NULL) {
            rondo__convert_elements(RONDO_DTYPE_F64, &value, x->dtype,
                                    (char *)y + (size_t)i * bytes, 1);
        }
        if (mask != NULL) {
            const uint8_t kept = is_kept ? 1 : 0;
            rondo__convert_elements(RONDO_DTYPE_U8, &kept, mask_dtype,
                                    (char *)mask + (size_t)i * mask_bytes, 1);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const normal_attributes[] = {"dtype", "mean", "scale", "seed", "shape", NULL};
static const char *const uniform_attributes[] = {"dtype", "high", "low", "seed", "shape", NULL};
static const char *const normal_like_attributes[] = {"dtype", "mean", "scale", "seed", NULL};
static const char *const uniform_like_attributes[] = {"dtype", "high", "low", "seed", NULL};
static const char *const bernoulli_attributes[] = {"dtype", "seed", NULL};
static const char *const multinomial_attributes[] = {"dtype", "sample_size", "seed", NULL};

#define ENTRY(op, first, inputs, more_flags, attribute_list, infer_function, ...)  \
    RONDO_OP_ROW(OP, op, first, RONDO_OP_OPSET_MAX, inputs, inputs, 1, 1,          \
                 .flags = RONDO__OP_RANDOM | RONDO__OP_NATIVE_HALF | (more_flags), \
                 .capture = RONDO__CAPTURE_YES, .attributes = attribute_list,      \
                 .infer = infer_function, .compute = __VA_ARGS__)

const rondo__op_def rondo__op_table_random[] = {
    ENTRY(Bernoulli, 15, 1, 0, bernoulli_attributes, infer_bernoulli, compute_bernoulli),
    ENTRY(Multinomial, 7, 1, 0, multinomial_attributes, infer_multinomial, compute_multinomial),
    ENTRY(RandomNormal, 1, 0, 0, normal_attributes, infer_random, compute_random),
    ENTRY(RandomNormalLike, 1, 1, RONDO__OP_SHAPE_ONLY, normal_like_attributes, infer_random_like,
          compute_random),
    ENTRY(RandomUniform, 1, 0, 0, uniform_attributes, infer_random, compute_random),
    ENTRY(RandomUniformLike, 1, 1, RONDO__OP_SHAPE_ONLY, uniform_like_attributes, infer_random_like,
          compute_random),
    {0},
};
