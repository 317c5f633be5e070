// op/ml/ml_scores.c — see ml_scores.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/ml/ml_scores.h"

#include <math.h>
#include <string.h>

#include "op/half.h"
#include "op/support.h"
#include "tensor/elements.h"

rondo__ml_transform rondo__ml_get_transform(const rondo__op *op) {
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const rondo__attribute *attribute = rondo__op_find(op, "post_transform");
    if (attribute == NULL) {
        return RONDO__ML_NONE;
    }
    if (attribute->kind == RONDO__ATTRIBUTE_INT) {
        return attribute->int_value >= 0 && attribute->int_value < RONDO__ML_UNKNOWN
                   ? (rondo__ml_transform)attribute->int_value
                   : RONDO__ML_UNKNOWN;
    }
    for (size_t i = 0; attribute->kind == RONDO__ATTRIBUTE_STRING && i < RONDO__ML_UNKNOWN; ++i) {
        if (strcmp(attribute->string_value, names[i]) == 0) {
            return (rondo__ml_transform)i;
        }
    }
    return RONDO__ML_UNKNOWN;
}

rondo_status rondo__ml_check_transform(const rondo__op *op) {
    return rondo__ml_get_transform(op) != RONDO__ML_UNKNOWN
               ? RONDO_STATUS_OK
               : rondo__op_fail_unsupported(op, "attribute post_transform");
}

// ---- transforms -------------------------------------------------------------------------------

double rondo__ml_logistic(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double probit(double p) {
    static const double a = 0.147;
    static const double pi = 3.14159265358979323846;
    static const double root2 = 1.41421356237309504880;
    double x = 2.0 * p - 1.0;
    double log_term = log((1.0 - x) * (1.0 + x));
    double v = 2.0 / (pi * a) + 0.5 * log_term;
    double magnitude = sqrt(sqrt(v * v - log_term / a) - v);
    return root2 * (x < 0.0 ? -magnitude : magnitude);
}

static void softmax(double *scores, size_t count, bool keeps_zeros) {
    double greatest = scores[0];
    for (size_t i = 1; i < count; ++i) {
        greatest = scores[i] > greatest ? scores[i] : greatest;
    }
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i) {
        bool is_zero = keeps_zeros && fabs(scores[i]) <= 1e-7;
        scores[i] = is_zero ? scores[i] * exp(-greatest) : exp(scores[i] - greatest);
        sum += scores[i];
    }
    for (size_t i = 0; i < count; ++i) {
        scores[i] = sum == 0.0 ? 0.5 : scores[i] / sum;
    }
}

void rondo__ml_transform_row(rondo__ml_transform transform, double *scores, size_t count) {
    for (size_t i = 0; i < count && transform == RONDO__ML_PROBIT; ++i) {
        scores[i] = probit(scores[i]);
    }
    for (size_t i = 0; count > 1 && i < count && transform == RONDO__ML_LOGISTIC; ++i) {
        scores[i] = rondo__ml_logistic(scores[i]);
    }
    if (count > 1 && (transform == RONDO__ML_SOFTMAX || transform == RONDO__ML_SOFTMAX_ZERO)) {
        softmax(scores, count, transform == RONDO__ML_SOFTMAX_ZERO);
    }
}

void rondo__ml_split_score(rondo__ml_transform transform, double scores[2]) {
    double score = scores[0];
    if (transform == RONDO__ML_LOGISTIC) {
        scores[0] = rondo__ml_logistic(-score);
        scores[1] = rondo__ml_logistic(score);
        return;
    }
    scores[0] = 1.0 - score;
    scores[1] = score;
    if (transform == RONDO__ML_PROBIT) {
        rondo__ml_transform_row(transform, scores, 2);
    }
}

size_t rondo__ml_find_greatest(const double *scores, size_t count) {
    size_t greatest = 0;
    for (size_t i = 1; i < count; ++i) {
        greatest = scores[i] > scores[greatest] ? i : greatest;
    }
    return greatest;
}

// ---- labels -----------------------------------------------------------------------------------

rondo__ml_labels rondo__ml_get_labels(const rondo__op *op, const char *strings, const char *ints) {
    const rondo__attribute *words = rondo__op_find(op, strings);
    const rondo__attribute *numbers = rondo__op_find(op, ints);
    if (words != NULL && words->kind == RONDO__ATTRIBUTE_STRINGS && words->count > 0) {
        return (rondo__ml_labels){.attribute = words, .count = words->count};
    }
    if (numbers != NULL && numbers->kind == RONDO__ATTRIBUTE_INTS && numbers->count > 0) {
        return (rondo__ml_labels){.attribute = numbers, .count = numbers->count};
    }
    return (rondo__ml_labels){0};
}

rondo_dtype rondo__ml_get_label_dtype(const rondo__ml_labels *labels) {
    return labels->attribute != NULL && labels->attribute->kind == RONDO__ATTRIBUTE_STRINGS
               ? RONDO_DTYPE_STRING
               : RONDO_DTYPE_I64;
}

void rondo__ml_write_label(const rondo__ml_labels *labels, size_t index, void *output,
                           int64_t row) {
    if (labels->attribute == NULL) {
        ((int64_t *)output)[row] = (int64_t)index;
    } else if (labels->attribute->kind == RONDO__ATTRIBUTE_INTS) {
        ((int64_t *)output)[row] = labels->attribute->ints[index];
    } else {
        ((rondo_string *)output)[row] = rondo__string_from_text(labels->attribute->strings[index]);
    }
}

// ---- tables -----------------------------------------------------------------------------------

rondo_status rondo__ml_infer_table(const rondo__infer *infer, int64_t *out_rows,
                                   int64_t *out_columns) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo_dtype dtype = infer->inputs[0].dtype;
    // Of the ops on tables TreeEnsemble alone is written for f16.
    const bool is_half = dtype == RONDO_DTYPE_F16 && infer->op->def->id == RONDO__ML_TreeEnsemble;
    if (dtype != RONDO_DTYPE_F32 && dtype != RONDO_DTYPE_F64 && dtype != RONDO_DTYPE_I64 &&
        dtype != RONDO_DTYPE_I32 && !is_half) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    if (x->rank < 1) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the input is a scalar, not a table");
    }
    if (x->rank > 2) {
        return rondo__op_fail_unsupported(infer->op, "input 0 of rank above 2");
    }
    *out_rows = x->rank == 1 ? 1 : x->extent[0];
    *out_columns = x->extent[x->rank - 1];
    return RONDO_STATUS_OK;
}

void rondo__ml_read_row(const rondo_tensor *table, int64_t row, int64_t columns, double *out_row) {
    if (table->dtype == RONDO_DTYPE_F32) {  // most tables
        const float *values = (const float *)table->data + row * columns;
        for (int64_t i = 0; i < columns; ++i) {
            out_row[i] = (double)values[i];
        }
        return;
    }
    const char *from =
        (const char *)table->data + (size_t)(row * columns) * rondo_dtype_get_bytes(table->dtype);
    rondo__convert_elements(table->dtype, from, RONDO_DTYPE_F64, out_row, (size_t)columns);
    if (rondo__dtype_is_integer(table->dtype)) {
        for (int64_t i = 0; i < columns; ++i) {
            out_row[i] = (double)(float)out_row[i];
        }
    }
}
